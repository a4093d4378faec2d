# SPDX-License-Identifier: BSD-3-Clause
#
# A scripting engine of a module (utils/hello_module/hello_engine.c).

start_server {overrides {enable-module-command yes}} {
    r module load [file normalize build/modules/hello_engine.so]

    test {EVAL and EVALSHA run scripts of the engine} {
        assert_equal v [r eval "#!steps\nSET KEY1 ARG1\nGET KEY1" 1 key v]
        set sha [r script load "#!steps\nAPPEND KEY1 ARG1"]
        assert_equal 2 [r evalsha $sha 1 key x]
        assert_equal vx [r get key]
        assert_error {ERR*the script has no steps} {r eval "#!steps\n" 0}
        assert_error {WRONGTYPE*} {r eval "#!steps\nLPUSH KEY1 a" 1 key}
        assert_error {ERR Can not execute a script with write flag using \*_ro command.} {r eval_ro "#!steps\nSET KEY1 a" 1 key}
        assert_error {ERR Could not find scripting engine 'other'} {r eval "#!other\nGET a" 0}
    }

    test {commands of a script that are refused get the errors of commands, not those of Lua} {
        r acl setuser bob on nopass ~x* +@all -append
        r acl log reset
        set c [connect]
        $c auth bob x
        foreach {line error} {
            {ACL WHOAMI} {ERR command 'acl|whoami' is not allowed on script mode}
            GET {ERR wrong number of arguments for 'get' command}
            NOSUCH {ERR unknown command 'NOSUCH', with args beginning with: }
            {ACL NOSUCH} {ERR unknown subcommand 'NOSUCH'. Try ACL HELP.}
            {APPEND x a} {NOPERM User bob has no permissions to run the 'append' command}
            {GET other} {NOPERM No permissions to access a key}
        } {
            catch {$c eval "#!steps\n$line" 0} got
            assert_equal $error $got
        }
        assert_equal {script script} [lmap entry [r acl log] {dict get $entry context}]
    }

    test {the error of a command is counted once, although the engine replies it} {
        r rpush list v
        r config resetstat
        assert_error WRONGTYPE* {r eval "#!steps\nGET KEY1" 1 list}
        assert_match "*errorstat_WRONGTYPE:count=1\r\n*" "[r info errorstats]\r\n"
        r del list
    }

    test {FUNCTION LOAD, FCALL, LIST, STATS, DUMP and RESTORE} {
        assert_equal lib [r function load "#!steps name=lib\nfunction put\nSET KEY1 ARG1\nfunction take\nGET KEY1"]
        assert_equal OK [r fcall put 1 key w]
        assert_equal w [r fcall take 1 key]
        set listed [lindex [r function list] 0]
        assert_equal steps [string tolower [dict get $listed engine]]
        assert_equal 2 [llength [dict get $listed functions]]
        assert_equal {libraries_count 1 functions_count 2} [dict get [r function stats] engines steps]
        set dump [r function dump]
        r function flush
        assert_error {ERR Function not found} {r fcall take 1 key}
        r function restore $dump
        assert_equal w [r fcall take 1 key]
        assert_error {ERR*no line begins with 'function'*} {r function load "#!steps name=bad\nGET a"}
        assert_error {ERR Engine 'other' not found} {r function load "#!other name=bad\nGET a"}
        r debug reload
        assert_equal w [r fcall take 1 key]
    }

    test {INFO lists the engines} {
        assert_match "*engines_count:2*engine_1:name=steps,module=helloengine,abi_version=4,used_memory=*" \
            [r info scriptingengines]
    }

    test {a script that does not end is killed} {
        r config set busy-reply-threshold 10
        set c [respConnect [srv host] [srv port] 2]
        $c -send eval "#!steps\nforever" 0
        wait_for_condition 200 20 {[catch {r ping} error] && [string match BUSY* $error]}
        assert_equal OK [r script kill]
        assert_error {ERR the steps were killed} {$c -read}
        $c -close
        assert_equal PONG [r ping]
    }

    test {SCRIPT FLUSH and FUNCTION FLUSH free what the engine has compiled} {
        r script flush
        r function flush
        assert_match "*engine_1:name=steps,*,used_memory=0,*" [r info scriptingengines]
    }

    test {when the module is unloaded its libraries and scripts are gone} {
        r function load "#!steps name=lib\nfunction put\nSET KEY1 ARG1"
        set sha [r script load "#!steps\nGET KEY1"]
        assert_equal OK [r module unload helloengine]
        assert_equal {} [r function list]
        assert_error NOSCRIPT* {r evalsha $sha 1 key}
        assert_error {ERR Could not find scripting engine 'steps'} {r eval "#!steps\nGET a" 0}
        assert_equal 1 [r eval {return 1} 0]
        assert_match "*engines_count:1*" [r info scriptingengines]
    }
}

start_server {overrides {enable-module-command yes}} {
    test {the engine that is a part of the server can be unloaded, until the restart} {
        r function load "#!lua name=lib\nserver.register_function('f', function() return 1 end)"
        set sha [r script load {return 1}]
        assert_equal OK [r module unload lua]
        assert_equal {} [r module list]
        assert_equal {} [r function list]
        assert_error NOSCRIPT* {r evalsha $sha 0}
        assert_error {ERR Could not find scripting engine 'lua'} {r eval {return 1} 0}
        assert_error {ERR Engine 'lua' not found} {r function load "#!lua name=lib\nreturn 1"}
        assert_match "*engines_count:0*" [r info scriptingengines]
        assert_match "*number_of_functions:0*" [r info memory]
        assert_equal OK [r function flush]
        assert_equal OK [r script flush]
        assert_error {ERR Error unloading module: no such module with that name} {r module unload lua}
        assert_equal {} [dict get [r hello] modules]
    }
}
