# SPDX-License-Identifier: BSD-3-Clause
#
# Debuggers of the scripting engines of modules (tests/modules/debugged_engine.c). Expected lines are those of Valkey
# 9.1.2.

proc steps_request {args} {
    set out "*[llength $args]\r\n"
    foreach word $args {append out "\$[string length $word]\r\n$word\r\n"}
    return $out
}

# The lines of one answer of the debugger.
proc steps_lines {c} {
    set out {}
    foreach line [lrange [split [string map {"\r\n" "\n"} [raw_reply $c]] "\n"] 1 end-1] {
        assert_equal + [string index $line 0]
        lappend out [string range $line 1 end]
    }
    return $out
}

proc steps {c args} {
    raw_send $c [steps_request {*}$args]
    return [steps_lines $c]
}

# A command whose lines come with those of a later one.
proc steps_quietly {c args} {raw_send $c [steps_request {*}$args]}

proc steps_begin {mode script args} {
    set c [raw_connect]
    raw_send $c [steps_request script debug $mode steps]
    assert_equal "+OK\r\n" [raw_reply $c]
    raw_send $c [steps_request eval "#!steps\n$script" [llength $args] {*}$args]
    return $c
}

start_server {tags {tls:skip} overrides {enable-module-command yes save {} appendonly no}} {
    set module [file normalize build/modules/debugged_engine.so]

    test {an engine without a debugger, and one that fails} {
        foreach how {none null} {
            r module load $module $how
            assert_error "ERR The scripting engine 'STEPS' does not support interactive script debugging" {
                r script debug yes steps
            }
            assert_equal OK [r script debug no steps]
            r module unload steps
        }
        r module load $module fails
        assert_error "ERR The scripting engine 'STEPS' failed to initialize interactive script debugging" {
            r script debug sync steps
        }
        assert_equal two [r eval "#!steps\none two" 0]
        r module unload steps
        r module load $module
    }

    foreach mode {yes sync} {
        test "a session ($mode): commands with words, help, lines that wait for the engine" {
            set c [steps_begin $mode {one call get raw long end} missing]
            assert_equal one [steps_lines $c]
            assert_equal {{STEPS debugger help:} {[h]elp               Show this help.} {[max]len [len]       Trim logged replies to len. Specifying zero as} {                     <len> means unlimited. If no <len> is specified,} {                     the current value is shown. Usage: maxlen [len]} {[s]tep               Run the next word.} {[c]ontinue           Run the rest.} {[p]rint [what]       Show the words of the command.} {[sho]w <first> <more>  } {                     Show more words.}} \
                [steps $c help]
            steps_quietly $c print
            steps_quietly $c p x
            set unknown {<error> Unknown debugger command or wrong number of arguments.}
            assert_equal [list {0 of 1: print} {context of the command} {0 of 2: p} {1 of 2: x} {context of the command} $unknown] [steps $c print x y]
            steps_quietly $c show a
            steps_quietly $c sho a b c
            assert_equal [list {0 of 2: show} {1 of 2: a} {context of the engine} {0 of 4: sho} {1 of 4: a} {2 of 4: b} {3 of 4: c} {context of the engine} $unknown] \
                [steps $c sh a]
            steps_quietly $c quiet
            assert_equal [list $unknown] [steps $c quie]
            assert_equal [list $unknown] [steps $c show]
            assert_equal {{Current maxlen is 256}} [steps $c maxlen]
            assert_equal {{<value> replies are truncated at 100 bytes.}} [steps $c maxlen 100]
            assert_equal {{<error> Invalid maxlen value.}} [steps $c max x]
            assert_equal call [steps $c s]
            assert_equal {{<reply> "+PONG"} get} [steps $c step]
            assert_equal {{<reply> NULL} raw} [steps $c step]
            assert_equal {{<reply> "+OK"} {<reply> 42} {<reply> "hello"} {<reply> NULL} {<reply> "-ERR wrong"} {<reply> [1,["a"]]} {<reply> []} {<reply> {"+k" => 1}} {<reply> ~(1,2)} {<reply> (null)} {<reply> #true} {<reply> (double) 1.5} long} \
                [steps $c step]
            assert_equal [list "[string repeat x 100] ..." [string repeat x 400] end] [steps $c step]
            steps_quietly $c continue
            assert_equal <endsession> [steps_lines $c]
            assert_equal "\$3\r\nend\r\n" [raw_rest $c]
            assert_equal PONG [r ping]
        }
    }

    test {a script of another engine runs, and the session ends with it} {
        set c [raw_connect]
        raw_send $c [steps_request script debug yes steps]
        assert_equal "+OK\r\n" [raw_reply $c]
        raw_send $c [steps_request eval {return 5} 0]
        assert_equal <endsession> [steps_lines $c]
        assert_equal ":5\r\n" [raw_rest $c]
        set c [raw_connect]
        raw_send $c [steps_request script debug yes]
        assert_equal "+OK\r\n" [raw_reply $c]
        raw_send $c [steps_request eval "#!steps\none two" 0]
        assert_equal <endsession> [steps_lines $c]
        assert_equal "\$3\r\ntwo\r\n" [raw_rest $c]
    }

    test {a client that leaves, and one that sends something else} {
        set c [steps_begin sync {one two}]
        assert_equal one [steps_lines $c]
        raw_close $c
        assert_equal PONG [r ping]
        set c [steps_begin sync {one two}]
        assert_equal one [steps_lines $c]
        raw_send $c "xx\r\n"
        assert_equal <endsession> [steps_lines $c]
        assert_equal "-ERR protocol error\r\n" [raw_rest $c]
    }

    test {the engine is told of each session; RESET and the end of a connection disable it} {
        wait_for_condition 500 20 {[lindex [r steps.calls] 0] == [lindex [r steps.calls] 1]}
        lassign [r steps.calls] enabled disabled started ended
        assert_equal {3 3} [list $started $ended]
        r script debug sync steps
        r script debug no
        r script debug yes steps
        assert_error "ERR Please use EVAL instead of EVALSHA for debugging" {r evalsha [string repeat 0 40] 0}
        r reset
        if {$::resp_version == 3} {r hello 3}
        assert_equal [list [expr {$enabled + 2}] [expr {$disabled + 2}] $started $ended] [r steps.calls]
        assert_equal two [r eval "#!steps\none two" 0]
    }

    test {an engine that goes is not debugged any more} {
        r script debug sync steps
        r module unload steps
        assert_equal 7 [r eval {return 7} 0]
        assert_equal OK [r script debug no]
    }
}

start_server {overrides {enable-module-command yes}} {
    set module [file normalize build/modules/debugged_engine.so]

    proc flushes {} {
        foreach what {script function} {foreach how {sync async} {r $what flush $how}}
        return [r steps.resets]
    }

    test {an engine is asked once for its memory, and is reset by each FLUSH, with its use and ASYNC} {
        r module load $module
        assert_match "*name=STEPS,module=steps,abi_version=4,used_memory=77,memory_overhead=33*" [r info scriptingengines]
        assert_match "*engines_total_memory_overhead:33*" [r info scriptingengines]
        assert_equal {e0 e1 f0 f1} [flushes]
        r eval "#!steps\ncall" 0
        assert_equal {e0 e1 f0 f1} [flushes]
        r module unload steps
    }

    test {engines with tables of other versions: resets, and lines of the log} {
        r module load $module 2
        assert_equal {-0 -1} [flushes]
        assert_error {ERR The scripting engine 'STEPS' does not support interactive script debugging} {r script debug sync steps}
        wait_for_condition 200 20 {[string match "*Scripting engine 'STEPS' uses ABI version '2', which does not support debugger API*" [server_log]]}
        r module unload steps
        r module load $module 3
        assert_equal {e0 e1 f0 f1} [flushes]
        r module unload steps
        assert_error ERR* {r module load $module 5}
        wait_for_condition 200 20 {[string match "*The engine implementation version is greater than what this server supports. Server ABI Version: 4, Engine ABI version: 5*" [server_log]]}
    }
}
