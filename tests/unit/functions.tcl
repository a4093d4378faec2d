# SPDX-License-Identifier: BSD-3-Clause
#
# FUNCTION and FCALL: headers of libraries, registration, replacing, listing, payloads, files, slow functions.

proc code_of {name functions {body {return 'hello'}}} {
    set code "#!lua name=$name\n"
    foreach f $functions {append code "server.register_function('$f', function(keys, args) $body end)\n"}
    return $code
}

# What FUNCTION LIST says about a library, as a dictionary.
proc library {name} {
    set found [r function list libraryname $name]
    if {[llength $found] != 1} {fail "[llength $found] libraries $name"}
    return [lindex $found 0]
}

start_server {tags {scripting functions} overrides {save {} enable-debug-command yes}} {
    test {a library is loaded, called, listed and deleted} {
        assert_equal lib [r function load [code_of lib {f g}]]
        assert_equal hello [r fcall f 0]
        assert_equal hello [r fcall G 0]
        assert_equal {k a} [r fcall [r function load replace [code_of lib {f} {return {keys[1], args[1]}}]; string cat f] 1 k a]
        assert_error "ERR Function not found" {r fcall g 0}
        assert_equal {library_name lib engine LUA} [lrange [library lib] 0 3]
        assert_equal OK [r function delete lib]
        assert_error "ERR Library not found" {r function delete lib}
        assert_error "ERR Function not found" {r fcall f x}
    }

    test {arguments of FCALL are checked} {
        r function load replace [code_of lib f]
        assert_error "ERR Bad number of keys provided" {r fcall f x}
        assert_error "ERR Number of keys can't be greater than number of args" {r fcall f 1}
        assert_error "ERR Number of keys can't be negative" {r fcall f -1}
        assert_error "ERR wrong number of arguments for 'fcall' command" {r fcall f}
    }

    test {errors of headers and of loading} {
        r function flush
        r function load [code_of taken {other}]
        foreach {code error} {
            "return 1" "ERR Missing library metadata"
            "#!lua name=a" "ERR Invalid library metadata"
            "#!lua name='a\n" "ERR Invalid library metadata"
            "#!lua foo=bar\n" "ERR Invalid metadata value given: foo=bar"
            "#!lua name=a name=b\n" "ERR Invalid metadata value, name argument was given multiple times"
            "#!lua\n" "ERR Library name was not given"
            "#!lua name=a-b\n" "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
            "#!js name=a\n" "ERR Engine 'js' not found"
            "#!lua name=taken\n" "ERR Library 'taken' already exists"
            "#!lua name=a\nreturn return" "ERR Error compiling function: user_function:2: *"
            "#!lua name=a\nreturn 1" "ERR No functions registered"
            "#!lua name=a\nfoo()" "ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'foo'"
            "#!lua name=a\nserver.call('get', 'x')" "ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'call'"
            "#!lua name=a\nx = 1" "ERR Error registering functions: ERR user_function:2: Attempt to modify a readonly table"
        } {
            assert_error $error {r function load [subst -nocommands -novariables $code]}
        }
        assert_error "ERR Function names can only contain letters, numbers, or underscores(_)*" {r function load [code_of a {b-c}]}
        assert_error "ERR Function already exists in the library" {r function load [code_of a {f F}]}
        assert_error "ERR Function OTHER already exists" {r function load [code_of a {OTHER}]}
        assert_error "ERR Unknown option given: foo" {r function load foo [code_of a f]}
        assert_equal 1 [llength [r function list]]
    }

    test {errors of server.register_function} {
        set at "ERR Error registering functions: ERR "
        foreach {arguments error} {
            {} {wrong number of arguments to server.register_function}
            1 {calling server.register_function with a single argument is only applicable to Lua table (representing named arguments).}
            {{}, 1} {first argument to server.register_function must be a string}
            {'f', 1} {second argument to server.register_function must be a function}
            {{[true]=1}} {named argument key given to server.register_function is not a string}
            {{1}} {unknown argument given to server.register_function}
            {{function_name={}}} {function_name argument given to server.register_function must be a string}
            {{description={}}} {description argument given to server.register_function must be a string}
            {{callback=1}} {callback argument given to server.register_function must be a function}
            {{flags=1}} {flags argument to server.register_function must be a table representing function flags}
            {{flags={'foo'}}} {unknown flag given}
            {{foo=1}} {unknown argument given to server.register_function}
            {{callback=function() end}} {server.register_function must get a function name argument}
            {{function_name='f'}} {server.register_function must get a callback argument}
        } {
            assert_error "$at$error" {r function load "#!lua name=a\nserver.register_function($arguments)"}
        }
    }

    test {named arguments, flags and descriptions} {
        r function load replace {#!lua name=named
            redis.register_function{Function_Name = 'nf', callback = function() return redis.call('set', 'x', 1) end,
                flags = {'no-writes', 'ALLOW-STALE'}, description = 'does nothing'}}
        set f [lindex [dict get [library named] functions] 0]
        assert_equal {nf {does nothing}} [list [dict get $f name] [dict get $f description]]
        assert_equal {allow-stale no-writes} [lsort [dict get $f flags]]
        assert_error "ERR Write commands are not allowed from read-only scripts. script: on @user_function:2." {r fcall nf 0}
        assert_error "ERR Can not execute a script with write flag using *_ro command." {r fcall_ro other 0}
    }

    test {globals while a function runs} {
        r function load replace [code_of g members {local o = {} for k in pairs(_G) do o[#o + 1] = k end return o}]
        assert_equal [lsort {_G _VERSION assert bit cjson cmsgpack collectgarbage coroutine error gcinfo getmetatable ipairs load
            loadstring math next os pairs pcall rawequal rawget rawset redis select server setmetatable string struct table
            tonumber tostring type unpack xpcall}] [lsort [r fcall members 0]]
        r function load replace [code_of g late {server.register_function('x', function() end)}]
        assert_error "*attempt to call*" {r fcall late 0}
    }

    test {local variables of a library stay between calls} {
        r function load replace {#!lua name=count
            local n = 0
            server.register_function('count', function() n = n + 1 return n end)}
        r fcall count 0
        assert_equal 2 [r fcall count 0]
    }

    test {a library that fails leaves the former one in place} {
        r function flush
        r function load [code_of lib f]
        r function load [code_of other g]
        catch {r function load replace "#!lua name=lib\nx = 1"}
        assert_error "ERR Function g already exists" {r function load replace [code_of lib g]}
        assert_equal hello [r fcall f 0]
    }

    test {an endless library is given up} {
        assert_error "ERR Error registering functions: ERR FUNCTION LOAD timeout" {
            r function load "#!lua name=endless\nwhile true do end"
        }
    }

    test {a payload with an endless library is given up, and nothing is restored} {
        set payload {}
        foreach code [list "#!lua name=l1\nserver.register_function('f1', function() end)" "#!lua name=l2\nwhile true do end"] {
            append payload [binary format cca* 0xf5 [string length $code] $code]
        }
        append payload [binary format ccx8 80 0]
        r function flush
        r debug set-skip-checksum-validation 1
        assert_error "ERR Error registering functions: ERR FUNCTION LOAD timeout" {r function restore $payload}
        r debug set-skip-checksum-validation 0
        assert_equal {} [r function list]
    }

    test {FUNCTION LIST} {
        r function flush
        r function load [code_of lib f]
        assert_equal [code_of lib f] [dict get [lindex [r function list withcode LIBRARYNAME LI*] 0] library_code]
        assert_equal {} [r function list libraryname nope*]
        assert_error "ERR Unknown argument foo" {r function list foo}
        assert_error "ERR Unknown argument WITHCODE" {r function list withcode WITHCODE}
        assert_error "ERR library name argument was not given" {r function list libraryname}
    }

    test {DUMP and RESTORE with all policies} {
        r function flush
        assert_equal 5000[binary encode hex {}]92b195d1912dc52e [binary encode hex [r function dump]]
        r function load [code_of a fa]
        r function load [code_of b fb]
        set dump [r function dump]
        assert_error "ERR Library a already exists" {r function restore $dump}
        assert_equal OK [r function restore $dump replace]
        r function flush
        r function load [code_of c fa]
        assert_error "ERR Function fa already exists" {r function restore $dump}
        assert_error "ERR Function fa already exists" {r function restore $dump replace}
        assert_equal 1 [llength [r function list]]
        assert_equal OK [r function restore $dump flush]
        assert_equal {a b} [lsort [lmap l [r function list] {dict get $l library_name}]]
        assert_equal hello [r fcall fb 0]
        assert_error "ERR DUMP payload version or checksum are wrong" {r function restore x}
        assert_error "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE." {r function restore $dump foo}
        assert_error "ERR unknown subcommand or wrong number of arguments for 'restore'. Try FUNCTION HELP." {r function restore a b c}
        r set value x
        assert_error "ERR given type is not a function" {r function restore [r dump value]}
    }

    test {FUNCTION FLUSH frees in the background or at once} {
        foreach how {sync async {}} {
            set before [info_field used_memory]
            for {set i 0} {$i < 200} {incr i} {
                r function load "#!lua name=l$i\nlocal x = '[string repeat x 10000]'\nserver.register_function('f$i', function() return x end)"
            }
            assert {[info_field used_memory_functions] > 2000000}
            assert {[dict get [r memory stats] functions.caches] > 2000000}
            r function flush {*}$how
            assert_equal {0 0} [list [info_field number_of_functions] [info_field used_memory_vm_functions]]
            wait_for_condition 200 10 {[info_field used_memory] < $before + 500000} else {fail "not freed"}
        }
    }

    test {FUNCTION FLUSH and its errors} {
        assert_error "ERR FUNCTION FLUSH only supports SYNC|ASYNC option" {r function flush now}
        assert_equal OK [r function flush async]
        assert_equal {} [r function list]
        assert_equal {running_script {} engines {LUA {libraries_count 0 functions_count 0}}} [r function stats]
    }

    test {FLUSHALL keeps functions, a reload does too} {
        r function load [code_of lib f]
        r flushall
        assert_equal hello [r fcall f 0]
        r debug reload
        assert_equal hello [r fcall f 0]
        r function flush
        r debug reload
        assert_equal {} [r function list]
    }

    test {a slow function: FUNCTION STATS and FUNCTION KILL} {
        r config set busy-reply-threshold 10
        r function load replace [code_of slow slow {while true do end}]
        set c [connect]
        $c -send fcall slow 1 key arg
        wait_for_condition 200 10 {[catch {r get x} e] && [string match BUSY* $e]} else {fail "not busy"}
        assert_match "BUSY *only call FUNCTION KILL or SHUTDOWN NOSAVE." $e
        set running [dict get [r function stats] running_script]
        assert_equal {slow {fcall slow 1 key arg}} [list [dict get $running name] [dict get $running command]]
        assert_error "BUSY *" {r script kill}
        assert_equal OK [r function kill]
        assert_error "ERR Script killed by user with FUNCTION KILL. script: on @user_function:2." {$c -read}
        assert_error "NOTBUSY *" {r function kill}
        r config set busy-reply-threshold 5000
    }
}

start_server {tags {scripting functions persistence} restart ok} {
    test {functions are in the snapshot} {
        r function load [code_of lib f]
        r save
        restart_server
        assert_equal hello [r fcall f 0]
    }
}

start_server {tags {scripting functions persistence} overrides {appendonly yes save {}} restart ok} {
    test {functions and effects of scripts are in the append only file, with and without RDB base} {
        foreach preamble {no yes} {
            r config set aof-use-rdb-preamble $preamble
            r flushall
            r function flush
            r function load [code_of lib f]
            r bgrewriteaof
            wait_for_condition 200 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
            r function load [code_of lib2 g]
            r eval {redis.call('select', 3) for i = 1, 3 do redis.call('rpush', KEYS[1], i) end
                    redis.set_repl(redis.REPL_REPLICA) redis.call('set', 'unseen', 1)} 1 list
            restart_server
            r select 3
            assert_equal {1 2 3} [r lrange list 0 -1]
            assert_equal 0 [r exists unseen]
            r select 9
            assert_equal {hello hello} [list [r fcall f 0] [r fcall g 0]]
        }
    }
}

start_server {tags {functions} overrides {enable-debug-command yes}} {
    test {DEBUG RELOAD NOFLUSH with an existing library fails without MERGE} {
        r function load {#!lua name=l
            server.register_function('f', function() return 1 end)}
        set failed "ERR Error trying to load the RDB dump, check server logs."
        assert_error $failed {r debug reload noflush}
        assert_error $failed {r debug reload nosave noflush}
        assert_equal OK [r debug reload noflush merge]
        assert_equal OK [r debug reload]
        assert_equal 1 [r fcall f 0]
    }
}
