# SPDX-License-Identifier: BSD-3-Clause
#
# EVAL and SCRIPT: sandbox, the table server, conversions of values, flags of the header, effects, cache, slow scripts.

# The reply of a script as a typed value.
proc typed {script args} {return [r -typed eval $script 0 {*}$args]}
proc ev {script args} {return [r eval $script 0 {*}$args]}

proc members {table} {
    return [lsort [ev "local o = {} for k in pairs($table) do o\[#o + 1\] = k end return o"]]
}

# Lists everything that scripts can reach, with types and constants.
proc list_globals {} {return {
    local out, seen = {}, {}
    local function walk(path, t)
        if seen[t] then out[#out + 1] = path .. ' = ' .. seen[t] return end
        seen[t] = path
        local names = {}
        for k in pairs(t) do names[#names + 1] = tostring(k) end
        table.sort(names)
        for _, k in ipairs(names) do
            local v = t[k]
            local kind = type(v)
            local shown = (kind == 'table' or kind == 'function') and '' or ' ' .. tostring(v)
            out[#out + 1] = path .. '.' .. k .. ' ' .. kind .. shown
            if kind == 'table' then walk(path .. '.' .. k, v) end
        end
        local meta = getmetatable(t)
        if meta then out[#out + 1] = path .. ' metatable' walk(path .. '<meta>', meta) end
    end
    walk('_G', _G)
    walk('string<meta>', getmetatable(''))
    return table.concat(out, '\n')
}}

# The list of a Valkey 9.1.2, of scripts or (without what only scripts have) of functions.
proc recorded_globals {of_functions} {
    set out {}
    foreach line [split [string trim [read_bytes tests/assets/script_globals.txt]] "\n"] {
        set only_scripts [regexp {^_G\.(ARGV|KEYS|__[a-z]+__err__handler|redis\.(breakpoint|debug|replicate_commands)) } $line]
        if {!$of_functions || !$only_scripts} {lappend out $line}
    }
    return $out
}

# Starts an endless script and waits until the server reports that it is busy.
proc start_endless {client {script {while true do end}}} {
    $client -send eval $script 0
    wait_for_condition 200 10 {[catch {r get x} e] && [string match BUSY* $e]} else {fail "not busy"}
}

start_server {tags {scripting} overrides {enable-debug-command yes}} {
    test {EVAL passes keys and arguments} {
        assert_equal {a b c d} [r eval {return {KEYS[1], KEYS[2], ARGV[1], ARGV[2]}} 2 a b c d]
        assert_equal {bulk z} [r -typed eval {KEYS[1] = 'z' return KEYS[1]} 1 a]
        assert_error "ERR value is not an integer or out of range" {r eval {return 1} x}
        assert_error "ERR Number of keys can't be greater than number of args" {r eval {return 1} 1}
        assert_error "ERR Number of keys can't be negative" {r eval {return 1} -1}
        assert_error "ERR wrong number of arguments for 'eval' command" {r eval {return 1}}
    }

    test {the globals are exactly those of Valkey} {
        assert_equal [lsort {ARGV KEYS _G _VERSION __redis__err__handler __server__err__handler assert bit cjson cmsgpack
            collectgarbage coroutine error gcinfo getmetatable ipairs load loadstring math next os pairs pcall rawequal
            rawget rawset redis select server setmetatable string struct table tonumber tostring type unpack xpcall}] \
            [members _G]
    }

    test {the settings of cjson take true, false, 'on' and 'off'} {
        foreach setting {encode_keep_buffer decode_invalid_numbers encode_invalid_numbers encode_sparse_array} {
            assert_equal {1 {} 1 {}} [ev "local f = cjson.new().$setting return {(f(true)) and 1 or '', f(false) and 1 or '', (f('on')) and 1 or '', f('off') and 1 or ''}"]
            assert_error "*bad argument #1 to '$setting' (invalid option 'x')*" {ev "cjson.$setting\('x')"}
            assert_error "*bad argument #1 to '$setting' (string expected, got table)*" {ev "cjson.$setting\({})"}
        }
    }

    test {line ends at the end of an error that was thrown become blanks} {
        assert_error "ERR user_script:1: a  b   script: on @user_script:1." {ev {error('a\r\nb\r\n')}}
        assert_error "a  b" {ev {return {err = 'a\r\nb\r\n'}}}
        assert_error "ERR user_script:1: invalid option '%' to 'format' script: on @user_script:1." {ev {return string.format('%\0', 1)}}
    }

    test {the tables have exactly the members of Valkey's} {
        assert_equal [lsort {byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper}] \
            [members string]
        assert_equal [lsort {concat foreach foreachi getn insert maxn remove setn sort}] [members table]
        assert_equal [lsort {abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min
            mod modf pi pow rad random randomseed sin sinh sqrt tan tanh}] [members math]
        assert_equal clock [members os]
        assert_equal [lsort {create resume running status wrap yield}] [members coroutine]
        assert_equal [lsort {arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex}] [members bit]
        assert_equal [lsort {pack unpack size}] [members struct]
        assert_equal [lsort {pack unpack unpack_one unpack_limit _NAME _VERSION _COPYRIGHT _DESCRIPTION}] [members cmsgpack]
        assert_equal [lsort {decode decode_invalid_numbers decode_max_depth encode encode_invalid_numbers
            encode_keep_buffer encode_max_depth encode_number_precision encode_sparse_array new null _NAME _VERSION}] \
            [members cjson]
        set server [lsort {acl_check_cmd call error_reply log pcall set_repl setresp sha1hex status_reply LOG_DEBUG LOG_VERBOSE
            LOG_NOTICE LOG_WARNING REPL_NONE REPL_AOF REPL_REPLICA REPL_SLAVE REPL_ALL REDIS_VERSION REDIS_VERSION_NUM
            VALKEY_VERSION VALKEY_VERSION_NUM SERVER_NAME breakpoint debug replicate_commands}]
        assert_equal $server [members server]
        assert_equal $server [members redis]
    }

    test {everything that scripts and functions can reach is what Valkey has, recursively} {
        assert_equal [recorded_globals 0] [split [ev [list_globals]] "\n"]
        r function load "#!lua name=names\nserver.register_function('names', function() [list_globals] end)"
        assert_equal [recorded_globals 1] [split [r fcall names 0] "\n"]
        r function flush
    }

    test {the table arg of functions with variable arguments} {
        assert_equal {3 b} [ev {local function f(...) return {arg.n, arg[2]} end return f('a', 'b', 'c')}]
        assert_equal {2 y} [ev {local function f(a, ...) local function g() return arg end return {g().n, arg[2]} end return f(0, 'x', 'y')}]
        # It does not exist in functions that use "..." themselves.
        assert_equal {nil 1} [ev {local function f(...) local n = select('#', ...) return {tostring(arg), n} end return f(1)}]
        assert_equal 5 [ev {local t = {arg = 5} local function f(...) return t.arg end return f(1)}]
        assert_error "*nonexistent global variable 'arg'*" {ev {return arg}}
        assert_error "*nonexistent global variable 'arg'*" {ev {local function f() return arg end return f()}}
    }

    test {syntax of later versions of Lua is refused, their keywords are names} {
        assert_equal {1 2 3} [ev {local goto = 1 local t = {goto = 2} local function f(goto) return goto end return {goto, t.goto, f(3)}}]
        foreach {script error} {
            {goto x ::x:: return 1} {'=' expected near 'x'} {::x:: return 1} {unexpected symbol near ':'}
            {return 0b11} {malformed number near '0b11'} {return 5LL} {malformed number near '5LL'}
        } {assert_error "ERR Error compiling script (new function): user_script:1: $error" {ev $script}}
    }

    test {escapes of strings are those of Lua 5.1} {
        assert_equal {x41 {z  a} u{41} q {"'} A} [ev {return {'\x41', '\z  a', '\u{41}', '\q', '\"\'', '\65'}}]
        assert_equal "a\nb" [ev "return 'a\\\nb'"]
        assert_equal {\x41} [ev {return [[\x41]]}]
        assert_error "*escape sequence too large near ''ab'" {ev {return 'ab\300'}}
    }

    test {errors of coroutine.wrap carry the place of the call, yield outside of one is refused} {
        assert_error "ERR user_script:2: user_script:1: x script: *" {
            ev "local f = coroutine.wrap(function() error('x') end)\nlocal y = f()"
        }
        assert_error "ERR user_script:1: cannot resume dead coroutine script: *" {
            ev {local f = coroutine.wrap(function() end) f() local x = f()}
        }
        assert_equal {1 2 {} 5} [ev {local f = coroutine.wrap(function(a) local b = coroutine.yield(a + 1, 'z') return b end)
            return {1, f(1), false, (f(5))}}]
        assert_error "ERR attempt to yield across metamethod/C-call boundary script: *" {ev {coroutine.yield(1)}}
    }

    test {nothing that scripts share can be changed} {
        foreach script {{x = 1} {KEYS = 1} {string.rep = 1} {server.call = nil} {getmetatable('').a = 1}
                        {getmetatable(_G).__index = 1} {_G.x = 1} {getmetatable('').__index.x = 1}} {
            assert_error "ERR user_script:1: Attempt to modify a readonly table script: on @user_script:1." {ev $script}
        }
        foreach script {{rawset(_G, 'x', 1)} {rawset(server, 'x', 1)} {setmetatable(_G, {})} {setmetatable(string, nil)}
                        {table.insert(server, 1)} {rawset(getmetatable(''), 'a', 1)}} {
            assert_error "ERR Attempt to modify a readonly table script: on @user_script:1." {ev $script}
        }
        assert_equal {0 0} [ev {return {select('#', table.remove(_G)), select('#', table.sort(math))}}]
        # The standard functions that pairs() gives away read an empty table.
        assert_equal {nil 1} [ev {local n = pairs({}) return {tostring(n(_G)), rawequal(_G, _G._G)}}]
        assert_equal OK [ev {return redis.call('set', 'x', ('ok'):upper()) and ('ok'):upper()}]
    }

    test {unknown globals are an error, unknown members of server nil} {
        assert_error "ERR user_script:2: Script attempted to access nonexistent global variable 'foo' script: on @user_script:2." {
            ev "\nreturn foo"
        }
        assert_equal {nil nil} [ev {return {tostring(rawget(_G, 'foo')), tostring(server.foo)}}]
        foreach name {print dofile loadfile require module package io debug getfenv setfenv newproxy jit ffi} {
            assert_error "*nonexistent global variable '$name'*" {ev "return $name"}
        }
    }

    test {compiled code is refused} {
        assert_equal {{} 1} [ev {local f, e = loadstring(string.dump(function() end)) return {tostring(f) == 'nil' and '', e:find('char', 1, true) and 1}}]
        assert_error "ERR Error compiling script (new function): user_script:1: unexpected symbol near 'char(27)'" {
            ev "\033LJ\2"
        }
        assert_error "*malformed number near '5LL'" {ev {return 5LL}}
    }

    test {what crashes other builds of Lua is an error or harmless} {
        assert_error "*too many results to unpack*" {ev {return unpack({1, 2, 3}, -2, 2147483647)}}
        assert_equal 0000FFFF [ev {return bit.tohex(65535, -2147483648)}]
        assert_equal {} [ev {return bit.tohex(10, 0/0)}]
        assert_error "*data string too short*" {ev {return struct.unpack('i', 'abcd', -1/0)}}
        assert_error "*pattern too complex*" {ev {return string.find(('a'):rep(200000), ('a?'):rep(200000))}}
        assert_error "*stack overflow*" {ev {local function f() f() end f()}}
        assert_error "*chunk has too many syntax levels*" {ev "return [string repeat ( 5000]1[string repeat ) 5000]"}
        assert_equal PONG [r ping]
    }

    test {values of Lua become replies} {
        set null [expr {[resp3] ? {null null} : {null bulk}}]
        foreach {script want} [list {return 1} {integer 1} {return 1.9} {integer 1} {return -1.9} {integer -1} \
                {return 0/0} {integer -9223372036854775808} {return 'a'} {bulk a} {return true} {integer 1} \
                {return false} $null {return nil} $null {} $null {return {1, 2, nil, 3}} {array {{integer 1} {integer 2}}} \
                {return {ok = 'fine'}} {status fine} {return {a = 1}} {array {}} {return string.rep} $null] {
            assert_equal $want [typed $script] $script
        }
        assert_equal [expr {[resp3] ? {bignumber {1  2}} : {bulk {1  2}}}] [typed {return {big_number = "1\r\n2"}}]
        assert_error "MY error" {ev {return {err = 'MY error'}}}
        if {[resp3]} {
            assert_equal {double 1.5} [typed {return {double = 1.5}}]
            assert_equal {map {{bulk a} {integer 1}}} [typed {return {map = {a = 1}}}]
            assert_equal {set {{bulk a}}} [typed {return {set = {a = true}}}]
            assert_equal {bool 0} [typed {server.setresp(3) return false}]
        } else {
            assert_equal {bulk 1.5} [typed {return {double = 1.5}}]
            assert_equal {array {{bulk a} {integer 1}}} [typed {return {map = {a = 1}}}]
            assert_equal {array {{bulk a}}} [typed {return {set = {a = true}}}]
            assert_equal {integer 0} [typed {server.setresp(3) return false}]
        }
    }

    test {a table that contains itself is cut off} {
        set raw [raw_connect]
        raw_send $raw "EVAL \"local t = {} t\[1\] = t return t\" 0\r\n"
        for {set depth 0} {[set line [raw_line $raw]] eq "*1"} {incr depth} {}
        assert_equal {7995 {-ERR reached lua stack limit}} [list $depth $line]
        raw_close $raw
    }

    test {replies become values of Lua, in both protocols} {
        r del l h s z str
        r rpush l a b
        r hset h f v
        r sadd s m
        r zadd z 1.5 m
        r set str text
        set two {local function t(x) return type(x) == 'table' and (x.ok and 'ok:' .. x.ok or x.err and 'err' or #x) or tostring(x) end
            return {t(redis.call('get', 'str')), t(redis.call('get', 'none')), t(redis.call('llen', 'l')),
                t(redis.call('lrange', 'l', 0, -1)), t(redis.call('hgetall', 'h')), t(redis.call('set', 'str', 'text')),
                t(redis.pcall('get', 'l')), t(redis.call('zscore', 'z', 'm'))}}
        assert_equal {text false 2 2 2 ok:OK err 1.5} [ev $two]
        assert_equal {nil v true 1.5} [ev {redis.setresp(3) return {tostring(redis.call('get', 'none')),
            redis.call('hgetall', 'h').map.f, tostring(redis.call('smembers', 's').set.m),
            tostring(redis.call('zscore', 'z', 'm').double)}}]
    }

    test {numbers are passed to commands like Valkey does} {
        set want {1 9007199254740992 9223372036854776000 1e+300 0.1 -0.5 1000000000000000 inf -3}
        assert_equal $want [ev {local o = {} for i, v in ipairs{1, 2^53, 2^63, 1e300, 0.1, -0.5, 1e15, 1/0, -3} do
            o[i] = redis.call('echo', v) end return o}]
        assert_error "ERR Command arguments must be strings or integers*" {ev {redis.call('echo', {})}}
        assert_error "ERR Please specify at least one argument for this call*" {ev {redis.call()}}
    }

    test {a command with as many arguments as Lua allows} {
        r del l
        assert_equal 7990 [ev {local a = {} for i = 1, 7990 do a[i] = i end return redis.call('rpush', 'l', unpack(a))}]
        assert_equal 7990 [ev {return #redis.call('lrange', 'l', 0, -1)}]
        assert_error "*too many results to unpack*" {ev {return redis.call('rpush', 'l', unpack({}, 1, 8000))}}
    }

    test {DEBUG SET-DISABLE-DENY-SCRIPTS lets scripts run other commands, but no scripts} {
        needs_command debug
        r debug set-disable-deny-scripts 1
        assert_match "*id=*" [ev {return redis.call('client', 'list')}]
        assert_error "ERR This Valkey command is not allowed from script*" {ev {return redis.call('eval', 'return 1', 0)}}
        r debug set-disable-deny-scripts 0
        assert_error "ERR This Valkey command is not allowed from script*" {ev {return redis.call('client', 'list')}}
    }

    test {attributes of replies are dropped} {
        needs_command debug
        r debug set-disable-deny-scripts 1
        assert_equal "Some real reply following the attribute" [ev {server.setresp(3) return redis.call('debug', 'protocol', 'attrib')}]
        foreach kind {string integer double null array set map verbatim true bignum} {
            ev "server.setresp(3) local v = redis.call('debug', 'protocol', '$kind') return 1"
        }
        r debug set-disable-deny-scripts 0
    }

    test {errors of commands stop a script and carry its line, those of pcall are values} {
        r set str text
        assert_error "ERR value is not an integer or out of range script: on @user_script:2." {ev "\nredis.call('incr', 'str')"}
        assert_error "ERR value is not an integer or out of range script: on @user_script:3." {
            ev "local x\n\nreturn redis.call('incr', 'str')"
        }
        assert_error "ERR value is not an integer or out of range" {ev {return redis.pcall('incr', 'str')}}
        assert_error "ERR Unknown command called from script script: on @user_script:1." {ev {redis.call('nope')}}
        assert_error "ERR unknown subcommand 'nope'. Try CONFIG HELP. script: on @user_script:1." {ev {redis.call('config', 'nope')}}
        assert_error "ERR Wrong number of args calling command from script script: on @user_script:1." {ev {redis.call('get')}}
        assert_equal {string {ERR Unknown command called from script}} [ev {local ok, e = pcall(redis.call, 'nope') return {type(e), e}}]
    }

    test {commands that must not run in scripts are refused} {
        foreach words {{auth x} {multi} {exec} {watch k} {eval return 0} {config get x} {client list} {hello} {subscribe c} {debug help}
                       {script exists x} {save} {shutdown}} {
            set list '[join $words ',']'
            assert_error "ERR This Valkey command is not allowed from script script: on @user_script:1." {
                ev "redis.call($list)"
            }
        }
        assert_equal 1 [ev {return #redis.call('object', 'help') > 1}]
    }

    test {errors are counted once} {
        r config resetstat
        catch {ev {redis.call('incr', 'x', 'y')}}
        catch {ev {redis.call('set', 'str', 'text') redis.call('incr', 'str')}}
        catch {ev {error('own')}}
        assert_match "*errorstat_ERR:count=3\r\n*" [r info errorstats]
        assert_match "*cmdstat_eval:calls=3,*rejected_calls=0,failed_calls=3*" [r info commandstats]
        assert_match "*cmdstat_incr:calls=1,*rejected_calls=1,failed_calls=1*" [r info commandstats]
    }

    test {errors that a script makes up are counted by their first word, without ends of lines} {
        foreach {text code} {
            "MY text" MY "\r\nMY text" "" "\nMY" ERR "MY\r\ntext" ERR "MY\ttext" ERR "-MY\r text" MY "MY\r\n" ERR
        } {
            r config resetstat
            catch {r eval {return redis.error_reply(ARGV[1])} 0 $text}
            assert_equal "# Errorstats\r\nerrorstat_$code:count=1\r\n" [r info errorstats]
        }
    }

    test {errors in calls at the end of a function have the place of that function} {
        foreach {call error} {
            {select(0)} {bad argument #1 to 'select' (index out of range)}
            {string.gsub('abc', '%', 'x')} {malformed pattern (ends with '%')}
            {('abc'):find('%')} {malformed pattern (ends with '%')}
            {cmsgpack.pack()} {bad argument #0 to 'pack' (MessagePack pack needs input.)}
            {cjson.decode('x')} {Expected value but found invalid token at character 1}
        } {
            assert_error "ERR user_script:2: $error script: on @user_script:2." {ev "local a\nreturn $call"}
            assert_error "ERR user_script:2: $error script: on @user_script:2." {ev "local function f() \nreturn $call end f()"}
        }
        # The names that scripts often give to functions of the server.
        foreach {names call} {{local call = redis.call} {call('nope')} {local r = server} {r.call('nope')}
                              {local c = cjson.new()} {c.decode('x')} {local s = string} {s.rep()}} {
            assert_error "ERR *script: on @user_script:2." {ev "$names\nreturn $call"}
        }
        # All results are returned, however many there are.
        assert_equal {2 b c} [ev {local function f() return select(2, 'a', 'b', 'c') end return {select('#', f()), f()}}]
        assert_equal {b 2} [ev {local function f() return ('abc'):gsub('[ac]', '') end return {f()}}]
        # Calls of the script's own functions stay tail calls, which take no stack.
        assert_equal 7 [ev {local function f(n) if n == 0 then return 7 end return f(n - 1) end return f(300000)}]
    }

    test {errors of sort have the line of the call, those with a NUL end there} {
        assert_error "ERR attempt to compare string with number script: on @user_script:2." {ev "local t = {3, 1, 'x'}\ntable.sort(t)"}
        assert_error "MY a script: on @user_script:1." {ev {error({err = 'MY a\0b'})}}
        assert_error "ERR userdata: (nil) script: on @user_script:1." {ev {error(cjson.null)}}
        assert_error "ERR function: 0x* script: on @user_script:1." {ev {error(function() end)}}
    }

    test {string.format and bit.tohex at the limits} {
        assert_equal {ab 2} [ev {local s = string.format('a%cb', 0) return {s, #s}}]
        assert_equal {{} 0} [ev {local s = string.format('%c', 1e17) return {s, #s}}]
        assert_equal -9223372036854775808 [ev {return string.format('%d', 0/0)}]
        assert_equal 18446744073709549568 [ev {return string.format('%u', 2^64 - 2048)}]
        assert_equal {f5 F5 FFFFFFF5 {}} [ev {return {bit.tohex(-11, 2), bit.tohex(-11, -2), bit.tohex(-11, 1e300), bit.tohex(1, 0)}}]
    }

    test {error values of Lua} {
        assert_error "ERR user_script:1: boom script: on @user_script:1." {ev {error('boom')}}
        assert_error "ERR boom script: on @user_script:1." {ev {error('boom', 0)}}
        assert_error "MY boom script: on @user_script:1." {ev {error{err = 'MY boom'}}}
        assert_error "ERR unknown error script: on @user_script:1." {ev {error{}}}
        assert_error "ERR nil script: on @user_script:1." {ev {error()}}
        assert_error "ERR user_script:1: x script: on @user_script:1." {ev {return error('x')}}
        assert_error "ERR nm:1: x script: on @nm:1." {ev {loadstring("error('x')", '@nm')()}}
        assert_error "ERR Error compiling script (new function): user_script:1: *" {ev {return return}}
    }

    test {SELECT in a script does not change the database of the client} {
        r select 9
        ev {redis.call('select', 5) redis.call('set', 'in5', 1)}
        assert_equal 0 [r exists in5]
        r select 5
        assert_equal 1 [r del in5]
        r select 9
    }

    test {blocking commands in a script act as timed out} {
        r del l
        assert_equal [expr {[resp3] ? {null null} : {null bulk}}] [typed {return redis.call('blpop', 'l', 0)}]
    }

    test {time stands still in a script} {
        assert_equal 1 [ev {local a = redis.call('time') local x = 0 for i = 1, 300000 do x = x + i end
            local b = redis.call('time') return a[1] == b[1] and a[2] == b[2]}]
        r set k v px 1
        assert_equal 1 [ev {redis.call('set', 'k', 'v', 'px', 1) local x = 0 for i = 1, 3000000 do x = x + i end
            return redis.call('pttl', 'k')}]
    }

    test {flags of the header} {
        assert_error "ERR Unexpected flag in script shebang: bad" {ev "#!lua flags=no-writes,bad\nreturn 1"}
        assert_error "ERR Unknown lua shebang option: name=x" {ev "#!lua name=x\nreturn 1"}
        assert_error "ERR Could not find scripting engine 'js'" {ev "#!js\nreturn 1"}
        assert_error "ERR Invalid script shebang" {ev "#!lua"}
        assert_error "ERR Invalid engine in script shebang" {ev "#!lua 'x\nreturn 1"}
        assert_error "ERR Write commands are not allowed from read-only scripts. script: on @user_script:2." {
            ev "#!lua flags=no-writes\nreturn redis.call('set', 'x', 1)"
        }
        assert_error "ERR Can not execute a script with write flag using *_ro command." {r eval_ro "#!lua\nreturn 1" 0}
        assert_error "ERR Write commands are not allowed from read-only scripts*" {r eval_ro {redis.call('del', 'x')} 0}
        assert_equal 1 [r eval_ro {return 1} 0]
        assert_equal 1 [r evalsha_ro [r script load {return 1}] 0]
    }

    test {SCRIPT LOAD, EXISTS, SHOW, FLUSH and EVALSHA} {
        set digest [r script load {return 'hi'}]
        assert_equal [ev {return redis.sha1hex("return 'hi'")}] $digest
        assert_equal hi [r evalsha [string toupper $digest] 0]
        assert_equal {1 0} [r script exists $digest [string repeat 0 40]]
        assert_equal {return 'hi'} [r script show $digest]
        assert_error "ERR SCRIPT FLUSH only support SYNC|ASYNC option" {r script flush now}
        assert_equal OK [r script flush async]
        assert_equal OK [r script flush]
        assert_error "NOSCRIPT No matching script." {r evalsha $digest 0}
        assert_error "NOSCRIPT No matching script." {r evalsha short x}
        assert_error "ERR value is not an integer or out of range" {r evalsha $digest x}
        assert_error "NOSCRIPT No matching script." {r script show $digest}
        assert_match "SCRIPT <subcommand>*" [lindex [r script help] 0]
    }

    test {SCRIPT FLUSH frees in the background or at once, and by default as the directive says} {
        foreach {default how} {no {} yes {} no async yes sync} {
            r config set lazyfree-lazy-user-flush $default
            set before [info_field used_memory]
            for {set i 0} {$i < 200} {incr i} {r script load "return '[string repeat x 10000]$i'"}
            assert {[info_field used_memory_scripts_eval] > 2000000}
            assert {[dict get [r memory stats] lua.caches] > 2000000}
            r script flush {*}$how
            assert_equal {0 0} [list [info_field number_of_cached_scripts] [info_field used_memory_vm_eval]]
            wait_for_condition 200 10 {[info_field used_memory] < $before + 500000} else {fail "not freed"}
            assert_equal 7 [ev {return 7}]
        }
    }

    test {the 501st script of EVAL evicts the oldest, those of SCRIPT LOAD stay} {
        r script flush
        r config resetstat
        set pinned [r script load {return 0}]
        for {set i 1} {$i <= 500} {incr i} {ev "return $i"}
        ev {return 1}
        ev {return 'one more'}
        set digests [lmap i {1 2 3 500} {r eval_ro {return redis.sha1hex(ARGV[1])} 0 "return $i"}]
        assert_equal {1 0 0 1 1} [r script exists {*}$digests $pinned]
        assert_equal 2 [info_field evicted_scripts]
        assert_equal 501 [info_field number_of_cached_scripts]
    }

    test {maxmemory-scripts: scripts of EVAL that take more are evicted, those of SCRIPT LOAD and the last one stay} {
        assert_equal {maxmemory-scripts 0} [r config get maxmemory-scripts]
        assert_error "*argument must be a memory value*" {r config set maxmemory-scripts x}
        r script flush
        r config resetstat
        r config set maxmemory-scripts 64kb
        set pad "--[string repeat x 10000]\n"
        set pinned [r script load "${pad}return 'pinned'"]
        for {set i 0} {$i < 6} {incr i} {assert_equal $i [ev "${pad}return $i"]}
        assert_equal 0 [info_field evicted_scripts]
        ev "${pad}return 0" ;# it is used again: the next one is evicted instead
        ev "${pad}return 6"
        set digests [lmap i {0 1 2 6} {r eval_ro {return redis.sha1hex(ARGV[1])} 0 "${pad}return $i"}]
        assert_equal {1 0 1 1 1} [r script exists {*}$digests $pinned]
        assert_equal 1 [info_field evicted_scripts]
        # One that is larger than the limit is run, and stays until the next one is added.
        set large "--[string repeat y 100000]\nreturn 7"
        set digest [r eval_ro {return redis.sha1hex(ARGV[1])} 0 $large]
        assert_equal 7 [ev $large]
        assert_equal {1 1} [r script exists $digest $pinned]
        assert_equal 2 [info_field number_of_cached_scripts] ;# the last one, and the pinned one
        # A lower limit is applied with the next script; what is loaded is not counted any more.
        r config set maxmemory-scripts 1
        r script load {return 8}
        ev {return 9}
        ev {return 8}
        assert_equal 3 [info_field number_of_cached_scripts]
        assert_equal OK [r config set maxmemory-scripts 0]
        for {set i 0} {$i < 20} {incr i} {ev "${pad}return $i"}
        assert_equal 23 [info_field number_of_cached_scripts]
        r script flush
    }

    test {a large script and one with a NUL in a string} {
        assert_equal 5000 [string length [ev "return '[string repeat x 5000]'"]]
        assert_equal 3 [ev "return #'a\0b'"]
        assert_equal 7 [ev "-- [string repeat c 100000]\nreturn 7"]
    }

    test {the JSON library} {
        assert_equal {{[1,2,3]{}{"a":1}"a\/b\n\u007f"}} [list [ev {return cjson.encode{1, 2, 3} .. cjson.encode{} .. cjson.encode{a = 1} .. cjson.encode('a/b\n\127')}]]
        assert_equal {1 2 x 1 -1500} [ev {local d = cjson.decode('{"a":[1,2],"c":"x","n":null,"e":-1.5e3}')
            return {d.a[1], d.a[2], d.c, d.n == cjson.null, d.e}}]
        assert_error "*Expected value but found T_ARR_END at character 4*" {ev {return cjson.decode('[1,]')}}
        assert_error "*Cannot serialise, excessive nesting (1001)*" {ev {local t = {} for i = 1, 1001 do t = {t} end return cjson.encode(t)}}
        assert_error "*Found too many nested data structures (1001) at character 1001*" {ev {return cjson.decode(('['):rep(1001))}}
        assert_error "*excessively sparse array*" {ev {return cjson.encode{[1] = 1, [100] = 2}}}
        # As printf("%.14g"): every size, ties, digits that carry.
        foreach {number text} {
            3.14159265358979 3.1415926535898 -0.00012345678901234567 -0.00012345678901235 0.0001 0.0001 9.9999999999999999e-5 0.0001
            999999999999.99995 1000000000000 9999999999999.5 9999999999999.5 12345678901234.5 12345678901234 0.99999999999999994 1
            1234567.1234567 1234567.1234567 0.1 0.1 100.00000000001 100.00000000001 5e-324 4.9406564584125e-324 1e13 10000000000000
            123456.00000000005 123456 33333333.333333334 33333333.333333
        } {
            assert_equal $text [ev "return cjson.encode($number)"] $number
        }
        for {set i 0} {$i < 2000} {incr i} {
            set number [expr {(rand() - 0.5) * 10.0 ** (int(rand() * 22) - 6)}]
            lappend numbers $number
            lappend texts [format %.14g $number]
        }
        assert_equal [join $texts ,] [string range [ev "return cjson.encode({[join $numbers ,]})"] 1 end-1]
        assert_equal {1.23 1.23456} [ev {local c = cjson.new() c.encode_number_precision(3) return {c.encode(1.23456), cjson.encode(1.23456)}}]
    }

    test {numbers that no integer can hold} {
        foreach {n bytes} {2^64 0000000000000000 1e300 0000000000000000 0/0 8000000000000000 -1/0 8000000000000000
                           2^63 8000000000000000 -2^63 8000000000000000 -1 ffffffffffffffff} {
            binary scan [ev "return struct.pack('>I8', $n)"] H* hex
            assert_equal $bytes $hex $n
        }
        assert_error "ERR RESP version must be 2 or 3.*" {ev {redis.setresp(1e300)}}
        assert_error "ERR Invalid replication flags.*" {ev {redis.set_repl(0/0)}}
        assert_error "ERR Invalid log level.*" {ev {redis.log(-1/0, 'x')}}
    }

    test {JSON ends at a NUL, MessagePack has no binary type and no key nil} {
        assert_error "ERR *Expected value but found T_END at character 1 *" {ev {return cjson.decode('\0')}}
        assert_error "ERR *unexpected end of string at character 3 *" {ev {return cjson.decode('"b\0"')}}
        assert_equal {1 2} [ev {return cjson.decode('[1,2]\0x')}]
        foreach bytes {{\196\1a} {\197\0\1a} {\198\0\0\0\1a}} {
            assert_error "ERR *Bad data format in input.*" {ev "return cmsgpack.unpack('$bytes')"}
        }
        assert_error "ERR *table index is nil*" {ev {return cmsgpack.unpack('\129\192\1')}}
    }

    test {sizes of struct formats} {
        foreach {format size} {i9 9 i32 32 c10 10 c2147483647 2147483647 !8bd 16 b100 1 {i 4} 4 z 0 {} 0} {
            assert_equal $size [ev {return struct.size(ARGV[1])} $format] $format
        }
        foreach {format error} {i33 {integral size 33 is larger than limit of 32} c2147483648 {integral size overflow}
                                =i {bad argument #1 to 'size' (invalid format option '=')}
                                c0 {bad argument #1 to 'size' (option 'c0' has no fixed size)}} {
            assert_error "ERR user_script:1: $error script: *" {ev {return struct.size(ARGV[1])} $format}
        }
    }

    test {the MessagePack and struct libraries} {
        assert_equal "01cc80ca3fc00000a16192010281a16101c0c3" [binary encode hex [ev {return cmsgpack.pack(1, 128, 1.5, 'a', {1, 2}, {a = 1}, nil, true)}]]
        assert_equal {1 128 a} [ev {return {cmsgpack.unpack(cmsgpack.pack(1, 128, 'a'))}}]
        assert_error "*Missing bytes in input.*" {ev {cmsgpack.unpack('\146\1')}}
        assert_error "*Bad data format in input.*" {ev {cmsgpack.unpack('\193')}}
        assert_equal 0001feff0361626300 [binary encode hex [ev {return struct.pack('>I2<hBs', 1, -2, 3, 'abc')}]]
        assert_equal {1 -2 3 abc 10} [ev {return {struct.unpack('>I2<hBs', struct.pack('>I2<hBs', 1, -2, 3, 'abc'))}}]
        assert_error "*integral size 33 is larger than limit of 32*" {ev {struct.pack('i33', 1)}}
        assert_error "*data string too short*" {ev {struct.unpack('i', 'ab')}}
    }

    test {table.insert and table.remove} {
        assert_equal {a b c 5} [ev {local t = {'b'} table.insert(t, 'c') table.insert(t, 1, 'a') table.insert(t, 5, 'e')
            return {t[1], t[2], t[3], table.maxn(t)}}]
        assert_equal {a c b 2 1} [ev {local t = {'a', 'b', 'c'} local x = table.remove(t, 2)
            return {t[1], t[2], x, #t, table.remove(t, 7) == nil and table.remove({}) == nil}}]
        assert_error "*wrong number of arguments to 'insert'*" {ev {table.insert({}, 1, 2, 3)}}
    }

    test {string patterns} {
        assert_equal {5 7} [ev {return {string.find('hello world', 'o w')}}]
        assert_equal {key val} [ev {return {string.match('key=val', '(%w+)=(%w+)')}}]
        assert_equal {HeLLo 2} [ev {return {string.gsub('Hello', 'l', 'L')}}]
        assert_equal {X-X 2} [ev {return {string.gsub('ab-cd', '%f[%a]%a+', 'X')}}]
        assert_equal {(b(c)) 2} [ev {return {string.match('a(b(c))d', '%b()'), string.match('ab', '()b')}}]
        assert_equal {a1 b2} [ev {local o = {} for k, v in ('a=1,b=2'):gmatch('(%w)=(%w)') do o[#o + 1] = k .. v end return o}]
        assert_equal {-a-b- 3} [ev {return {('ab'):gsub('', '-')}}]
        foreach {pattern error} {[a "malformed pattern (missing ']')" % "malformed pattern (ends with '%')" (a "unfinished capture"
                                 (a)) "invalid pattern capture" %1 "invalid capture index"} {
            assert_error "*[string map {[ \\[ ] \\]} $error]*" {ev "return string.find('a', '$pattern')"}
        }
        assert_equal {{ 1.50|a    |"q\""|ff}} [list [ev {return string.format('%5.2f|%-5s|%q|%x', 1.5, 'a', 'q"', 255)}]]
    }

    test {random numbers are those of Valkey} {
        assert_equal {5 46 84} [ev {math.randomseed(1) return {math.random(100), math.random(100), math.random(100)}}]
    }

    test {random numbers are one sequence, which goes on after SCRIPT FLUSH and FUNCTION FLUSH} {
        set draw {return {math.random(1000), math.random(1000), math.random(1000)}}
        r function flush
        r function load "#!lua name=dice
            server.register_function('draw', function() $draw end)"
        ev {math.randomseed(1)}
        set expected [ev {local all = {} for i = 1, 12 do all[i] = math.random(1000) end return all}]
        ev {math.randomseed(1)}
        set drawn [concat [ev $draw] [r fcall draw 0]]
        r script flush sync
        lappend drawn {*}[ev $draw]
        r function flush sync
        r function load "#!lua name=dice
            server.register_function('draw', function() $draw end)"
        lappend drawn {*}[r fcall draw 0]
        r function flush
        assert_equal $expected $drawn
    }

    test {acl_check_cmd asks for the rights of the caller, and refused commands are an error} {
        r acl setuser reader on nopass ~a* &* -@all +eval +get
        set c [connect]
        $c auth reader x
        assert_equal {1 {} {}} [lmap v [$c eval {return {server.acl_check_cmd('get', 'a'), server.acl_check_cmd('get', 'b') or '', server.acl_check_cmd('set', 'a', 1) or ''}} 0] {set v}]
        assert_error "ERR ACL failure in script: User reader has no permissions to run the 'set' command script: on @user_script:1." {
            $c eval {redis.call('set', 'a', 1)} 0
        }
        assert_error "ERR ACL failure in script: No permissions to access a key script: on @user_script:1." {$c eval {redis.call('get', 'b')} 0}
        assert_error "ERR Invalid command passed to server.acl_check_cmd()*" {ev {server.acl_check_cmd('config|get')}}
        r acl deluser reader
    }

    test {scripts in a transaction} {
        r multi
        r eval {redis.call('set', 'a', 1) return redis.call('incr', 'a')} 0
        r incr a
        assert_equal {2 3} [r exec]
    }

    test {out of memory: flags and scripts that have written} {
        r script flush
        r config set maxmemory 1
        assert_error "OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:1." {ev {redis.call('set', 'x', 1)}}
        assert_error "OOM command not allowed when used memory > 'maxmemory'." {ev "#!lua\nreturn 1"}
        assert_equal 1 [ev "#!lua flags=no-writes\nreturn 1"]
        assert_equal OK [ev "#!lua flags=allow-oom\nreturn redis.call('set', 'x', 1)"]
        assert_equal OK [ev {redis.call('del', 'x') return redis.call('set', 'x', 1)}]
        r config set maxmemory 0
    }

    test {out of memory in a transaction: scripts with a header are refused when they are queued} {
        r function load {#!lua name=admission
            local function set() return redis.call('set', 'x', 1) end
            server.register_function('adm_write', set)
            server.register_function{function_name = 'adm_oom', callback = set, flags = {'allow-oom'}}
            server.register_function{function_name = 'adm_read', callback = function() return 1 end, flags = {'no-writes'}}}
        set digest [r script load "#!lua\nreturn redis.call('set', 'x', 1)"]
        set oom "OOM command not allowed when used memory > 'maxmemory'."
        r config set maxmemory 1
        foreach request [list [list eval "#!lua\nreturn 1" 0] [list eval_ro "#!lua\nreturn 1" 0] \
            [list evalsha $digest 0] [list evalsha_ro $digest 0] {fcall adm_write 0} {fcall_ro adm_write 0}] {
            r multi
            assert_error $oom {r {*}$request}
            assert_error "EXECABORT Transaction discarded because of previous errors." {r exec}
        }
        foreach request [list [list eval "#!lua flags=no-writes\nreturn 1" 0] [list eval {return 1} 0] \
            [list eval "#!lua flags=allow-oom\nreturn 1" 0] {fcall adm_read 0}] {
            r multi
            r {*}$request
            assert_equal 1 [r exec]
        }
        r multi
        r fcall adm_oom 0
        assert_equal OK [r exec]
        # Without a header the commands of the script decide, when it runs.
        r multi
        r eval {return redis.call('set', 'x', 1)} 0
        assert_equal [list "$oom script: on @user_script:1."] [r exec]
        r config set maxmemory 0
        foreach {request reply} [list {eval {return 1} 0} 1 [list eval "#!lua\nreturn 1" 0] $oom] {
            r multi
            r {*}$request
            [connect] config set maxmemory 1
            if {$reply eq 1} {
                assert_equal 1 [r exec]
            } else {
                assert_error "EXECABORT Transaction discarded because of: $oom" {r exec}
            }
            r config set maxmemory 0
        }
        r function flush
    }

    test {script-memory-limit ends a script that takes too much} {
        r config set script-memory-limit 20mb
        foreach script {{return #('a'):rep(2e9)} {local t = {} for i = 1, 1e8 do t[i] = {i} end}
                        {local s = ('x'):rep(1000) while true do s = s .. s end}
                        {local t = {} for i = 1, 1e5 do t[i] = ('x'):rep(1000) end return cjson.encode{t, t, t}}} {
            assert_error "ERR *memory*" {ev $script}
        }
        r script flush
        assert {[info_field used_memory_lua] < 1000000}
        r config set script-memory-limit 0
        assert_equal 1 [ev {return 1}]
    }

    test {a slow script: others get BUSY, SCRIPT KILL ends it} {
        r config set busy-reply-threshold 10
        assert_error "NOTBUSY No scripts in execution right now." {r script kill}
        foreach script {{while true do end} {string.find(('a'):rep(30), ('a?'):rep(30) .. ('a'):rep(30) .. 'b')}
                        {while true do pcall(function() while true do end end) end}
                        {local c = coroutine.wrap(function() while true do end end) c()}
                        {table.insert({1}, -2^31, 1)}
                        {local s = cjson.encode({1, 2, 3}) while true do cjson.decode(s) end}} {
            set c [connect]
            start_endless $c $script
            assert_error "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE." {r get x}
            assert_error "BUSY *" {r shutdown}
            assert_error "ERR unknown command *" {r nope}
            assert_equal OK [r script kill]
            assert_error "ERR Script killed by user with SCRIPT KILL. script: on @user_script:1." {$c -read}
            assert_equal PONG [r ping]
        }
        r config set busy-reply-threshold 5000
    }

    test {a script that has written cannot be killed, and ends undisturbed} {
        r config set busy-reply-threshold 10
        r del stop
        set c [connect]
        start_endless $c {redis.call('set', 'x', 1) local n = 0 for i = 1, 3e7 do n = n + i end return 'end'}
        catch {r script kill} e
        assert_match "UNKILLABLE Sorry the script already executed write commands*" $e
        assert_equal end [$c -read]
        assert_equal 1 [r get x]
        r config set busy-reply-threshold 5000
    }

    test {a client that leaves during its slow script} {
        r config set busy-reply-threshold 10
        set c [connect]
        start_endless $c
        $c -close
        assert_equal OK [r script kill]
        assert_equal PONG [r ping]
        r config set busy-reply-threshold 5000
    }

    test {clients blocked on a key that a slow script fills are served after it} {
        r config set busy-reply-threshold 10
        r del list
        set waiting [connect]
        $waiting -send blpop list 0
        wait_for_condition 100 10 {[info_field blocked_clients] == 1}
        set c [connect]
        start_endless $c {redis.call('rpush', 'list', 'a') local n = 0 for i = 1, 3e7 do n = n + i end redis.call('rpush', 'list', 'b') return redis.call('llen', 'list')}
        assert_equal 2 [$c -read]
        assert_equal {list a} [$waiting -read]
        r config set busy-reply-threshold 5000
    }
}
