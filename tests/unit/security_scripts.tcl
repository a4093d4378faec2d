# SPDX-License-Identifier: BSD-3-Clause
#
# Known attacks on scripts, by their numbers in lists of vulnerabilities.

proc ev {script args} {return [r eval $script 0 {*}$args]}
proc fails {script args} {return [catch {r eval $script 0 {*}$args}]}

start_server {tags {scripting security} overrides {enable-debug-command yes}} {
    test {CVE-2022-0543: nothing of the system is reachable} {
        foreach name {package io require module dofile loadfile newproxy debug print getfenv setfenv jit ffi coroutine.isyieldable
                      os.execute os.getenv os.exit os.remove os.rename os.time os.date string.buffer table.new} {
            if {[string match *.* $name]} {
                assert_equal nil [ev "return type($name)"] $name
            } else {
                assert_error "*nonexistent global variable '$name'*" {ev "return $name"}
            }
        }
    }

    test {CVE-2022-24735, CVE-2025-46818: shared tables and metatables of basic types cannot be changed} {
        foreach script {{redis.call = 1} {_G.x = 1} {string.rep = 1} {getmetatable('').__index = 1} {getmetatable('').x = 1}
                        {setmetatable(_G, {})} {rawset(_G, 'x', 1)} {getmetatable(_G).__newindex = nil}
                        {getmetatable(nil).x = 1} {getmetatable(1).x = 1} {getmetatable(true).x = 1}
                        {getmetatable(cjson.null).x = 1} {getmetatable(print).x = 1} {table.insert(string, 1)}
                        {setmetatable(getmetatable(''), {})} {for k, v in pairs(getmetatable('')) do v.rep = 1 end}} {
            assert {[fails $script]} $script
        }
        assert_equal {xx nil} [[connect] eval {return {('x'):rep(2), tostring(rawget(_G, 'x'))}} 0]
    }

    test {CVE-2025-46817: ranges of unpack, select and table functions at the ends of integers} {
        foreach script {{return unpack({1, 2, 3}, -2, 2147483647)} {return unpack({1, 2, 3}, 0, 2147483647)}
                        {return unpack({1, 2, 3}, -2147483648, 2147483647)} {return unpack({}, 1, 1e8)}} {
            assert_error "*too many results to unpack*" {ev $script}
        }
        foreach script {{return #{unpack({1}, 2147483647, -2147483648)}} {return select('#', unpack({}, -5, -1))}
                        {return table.concat({}, 'x', 2147483647, 2147483647)} {return select(-2147483648, 1)}
                        {return ('x'):sub(-2147483648, 2147483647)} {return ('x'):byte(-2147483648, 2147483647)}} {
            catch {ev $script} reply
        }
        assert_equal PONG [r ping]
    }

    test {CVE-2025-46819: a long bracket of a million signs} {
        assert {[fails "return \[[string repeat = 1000000]"]}
        assert_equal x [ev "return \[[string repeat = 1000]\[x\][string repeat = 1000]\]"]
        assert {[fails "--\[[string repeat = 1000000]\[x"]}
        assert_equal 1 [ev "--\[[string repeat = 1000000]x\nreturn 1"]
    }

    test {CVE-2025-49844, CVE-2024-46981: collection of garbage while code is loaded, and flushes in between} {
        for {set i 0} {$i < 20} {incr i} {
            assert_equal 500 [ev {
                collectgarbage('stop')
                local n = 0
                for i = 1, 500 do
                    local f = loadstring('local a = ' .. i .. ' ' .. ('local t = {1, "x"} '):rep(20) .. ' return a', '=' .. ('n'):rep(i))
                    collectgarbage('step', i)
                    if f and f() == i then n = n + 1 end
                end
                collectgarbage()
                return n}]
            r script flush [lindex {sync async} [expr {$i % 2}]]
        }
    }

    test {CVE-2024-31449: bit.tohex at the ends of its width} {
        assert_equal 0000FFFF [ev {return bit.tohex(65535, -2147483648)}]
        assert_equal {0000ffff 0000FFFF {}} [ev {return {bit.tohex(65535, 2147483647), bit.tohex(65535, -2147483647), bit.tohex(1, 0)}}]
    }

    test {CVE-2018-11218, CVE-2018-11219, CVE-2022-24834: hostile inputs of the libraries} {
        foreach script {
            {return struct.pack('I2147483648', '10')} {return struct.pack('i33', 1)} {return struct.unpack('c2147483647', 'x')}
            {return struct.unpack('c0', 'x')} {return struct.pack('!3i', 1)} {return struct.unpack('i', 'x', 2147483647)}
            {return struct.unpack('Bc0', '\255x')} {return struct.size('c0')} {return struct.pack('>', 1, {})  .. struct.pack('i', {})}
            {return cmsgpack.unpack('\221\255\255\255\255')} {return cmsgpack.unpack('\223\255\255\255\255\1')}
            {return cmsgpack.unpack('\219\255\255\255\255x')} {return cmsgpack.unpack(('\145'):rep(200000))}
            {return cmsgpack.unpack('\193')} {return cmsgpack.unpack('\129\192\1')}
            {return cjson.decode(('['):rep(200000))} {return cjson.decode(('\123"a":'):rep(200000))}
            {local t = {} t[1] = t return cjson.encode(t)} {local t = {} for i = 1, 200000 do t = {t} end return cjson.encode(t)}
        } {
            assert {[fails $script]} $script
        }
        assert_equal 2000002 [ev {local s = ('x'):rep(2000000) return #cjson.encode(s)}]
        assert_equal 1 [ev {local t = {} t[1] = t return #cmsgpack.pack(t) > 0 and 1}]
    }

    test {CVE-2025-67733: a line break in an error or a status opens no new line} {
        set c [raw_connect]
        foreach {script reply} {
            {return redis.error_reply("a\r\n+b")} "-ERR a  +b\r\n" {return redis.status_reply("a\r\n+b")} "+a  +b\r\n"
            {return {err = "A b\r\n+c"}} "-A b  +c\r\n" {return {ok = "a\r\n+b"}} "+a  +b\r\n"
            {error("a\r\n+b", 0)} "-ERR a  +b script: on @user_script:1.\r\n"
            {error({err = "A b\n+c"})} "-A b +c script: on @user_script:1.\r\n"
            {return redis.call("a\r\n+b")} "-ERR Unknown command called from script script: on @user_script:1.\r\n"
            {return redis.pcall("object", "a\r\n+b")} "-ERR unknown subcommand 'a  +b'. Try OBJECT HELP.\r\n"
            {return {big_number = "1\r\n+2"}} "\$5\r\n1  +2\r\n"
        } {
            raw_send $c "*3\r\n\$4\r\neval\r\n\$[string length $script]\r\n$script\r\n\$1\r\n0\r\n*1\r\n\$4\r\nping\r\n"
            assert_equal $reply [raw_reply $c] $script
            assert_equal "+PONG\r\n" [raw_reply $c]
        }
        foreach code [list "#!lua name=a\r+b\n" "#!lua name=x\nserver.register_function('a\\r\\n+b', function() end)"] {
            raw_send $c "*3\r\n\$8\r\nfunction\r\n\$4\r\nload\r\n\$[string length $code]\r\n$code\r\n*1\r\n\$4\r\nping\r\n"
            assert_equal - [string index [raw_reply $c] 0]
            assert_equal "+PONG\r\n" [raw_reply $c]
        }
    }

    test {limits: recursion, nesting, endless loops} {
        assert_error "*stack overflow*" {ev {local function f() return 1 + f() end f()}}
        assert_error "*stack overflow*" {ev {local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.x}}
        assert_error "*" {ev "return [string repeat ( 5000]1[string repeat ) 5000]"}
        assert_error "*" {ev "return [string repeat \{ 5000]1[string repeat \} 5000]"}
        assert_error "*" {ev "[string repeat {if 1 then } 5000]"}
        r config set busy-reply-threshold 10
        foreach script {{while true do end} {while true do pcall(error) end} {local s = ('a'):rep(30) return s:find(('a?'):rep(30) .. s .. 'b')}
                        {setmetatable({}, {__index = function() while true do end end}).x = ({})[1] while 1 do end}
                        {repeat local t = {} for i = 1, 100 do t[i] = {} end until false}} {
            set c [connect]
            $c -send eval $script 0
            wait_for_condition 200 10 {[catch {r get x} e] && [string match BUSY* $e]} else {fail "not busy"}
            assert_equal OK [r script kill]
            assert_error "ERR Script killed by user with SCRIPT KILL.*" {$c -read}
        }
        r config set busy-reply-threshold 5000
    }

    test {GHSA-fq2f-crmw-q97r: sessions of the debugger, flushes between them, commands of 100 words} {
        foreach mode {yes sync yes} {
            set c [raw_connect]
            set request {}
            foreach words [list [list script debug $mode] [list eval "local a = 1\nreturn a" 0] [lrepeat 100 x] {s} {e redis.call('ping')} {c}] {
                set request "*[llength $words]\r\n"
                foreach word $words {append request "\$[string length $word]\r\n$word\r\n"}
                raw_send $c $request
                raw_reply $c
            }
            assert_equal ":1\r\n" [raw_rest $c]
            r script flush [lindex {sync async} [expr {$mode eq "sync"}]]
            r function flush
            assert_equal 1 [ev {return 1}]
        }
    }

    test {CVE-2022-24736: malformed and compiled code is refused} {
        foreach code [list "\x1bLJ\2" "\x1bLua" "return (" "x = = 1" "\xff\xfe" "goto" "return 'a" "--\[\[" "return function"] {
            catch {r eval $code 0} reply
            assert_equal PONG [r ping]
        }
        assert_equal nil [ev {return tostring((loadstring(string.dump(function() return 1 end))))}]
        assert_equal nil [ev {local code = string.dump(function() end) return tostring((load(function() local c = code code = nil return c end)))}]
    }
}
