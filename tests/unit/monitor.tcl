# SPDX-License-Identifier: BSD-3-Clause
#
# MONITOR: one line per executed command, secrets redacted; monitoring clients must not access keys.

# The words of the next MONITOR line, without time and address.
proc next_words {monitor} {
    regexp {^\d+\.\d{6} \[\d+ [^\]]+\] (.*)$} [$monitor -read] all words
    return $words
}

start_server {tags {monitor}} {
    test {MONITOR shows commands after they ran, quoted, with the database they ended in} {
        r ping ;# its HELLO is not to be told
        set m [connect]
        assert_equal OK [$m monitor]
        r select 3
        assert_match {*\[3 *\] "select" "3"} [$m -read]
        r set "a\"b" "\x01\n\xff"
        assert_equal {"set" "a\"b" "\x01\n\xff"} [next_words $m]
        assert_equal 1 [regexp -all {flags=O } [r client list]]
        r select 9
    }

    test {MONITOR shows a transaction as it runs, EXEC at its end} {
        r ping ;# its HELLO is not to be told
        set m [connect]
        $m monitor
        r multi
        r set k v
        r get k
        r exec
        foreach words {{"multi"} {"set" "k" "v"} {"get" "k"} {"exec"}} {
            assert_equal $words [next_words $m]
        }
    }

    test {a monitor's own transaction gets its complete reply first, then the lines} {
        set m [connect]
        assert_equal OK [$m monitor]
        assert_equal OK [$m multi]
        assert_equal {"multi"} [next_words $m]
        assert_equal QUEUED [$m ping]
        assert_equal QUEUED [$m echo text]
        assert_equal {PONG text} [$m exec]
        foreach words {{"ping"} {"echo" "text"} {"exec"}} { assert_equal $words [next_words $m] }
    }

    test {MONITOR shows a refused EXEC, because it ends its transaction} {
        r ping ;# its HELLO is not to be told
        set m [connect]
        $m monitor
        r multi
        assert_error "EXECABORT Transaction discarded because of: invalid check condition syntax" {r exec x}
        assert_equal {"multi"} [next_words $m]
        assert_equal {"exec" "x"} [next_words $m]
    }

    test {MONITOR does not show refused and administrative commands, and redacts secrets} {
        r ping ;# its HELLO is not to be told
        set m [connect]
        $m monitor
        catch {r nosuch}
        catch {r get}
        r config set primaryauth secret
        r client list
        catch {r auth secret}
        catch {r auth user secret}
        r hello [expr {2 + [resp3]}] auth default secret setname x
        r ping
        assert_equal {"auth" "(redacted)"} [next_words $m]
        assert_equal {"auth" "(redacted)" "(redacted)"} [next_words $m]
        assert_match {"hello" * "auth" "(redacted)" "(redacted)" "setname" "x"} [next_words $m]
        assert_equal {"ping"} [next_words $m]
        r config set primaryauth {}
        r client setname {}
    }

    test {MONITOR shows a blocking command when it blocks, not again when it is served} {
        lassign [list [connect] [connect] [connect]] m waiting c
        r ping
        $c ping
        $waiting ping
        $m monitor
        $waiting -send blpop list 0
        wait_for_condition 100 20 {[info_field blocked_clients] == 1}
        $c lpush list 1
        assert_equal {list 1} [$waiting -read]
        $c lpush list 2
        set told {}
        while {[lindex $told end] ne {"lpush" "list" "2"}} {
            set words [next_words $m]
            if {![string match {"info"*} $words] && ![string match {"hello"*} $words]} {lappend told $words}
        }
        assert_equal {{"blpop" "list" "0"} {"lpush" "list" "1"} {"lpush" "list" "2"}} $told
        $c del list
    }

    test {a monitor may not touch keys, and RESET ends its monitoring} {
        set m [connect 2]
        $m monitor
        assert_error "ERR Replica can't interact with the keyspace" {$m get k}
        assert_equal RESET [$m reset]
        r ping
        assert_equal {} [$m get nosuch]
    }

    test {MONITOR inside MULTI is queued and then refused} {
        set c [connect]
        $c multi
        assert_equal QUEUED [$c monitor]
        assert_equal {{error {ERR MONITOR isn't allowed for DENY BLOCKING client}}} \
            [lindex [$c -typed exec] 1]
    }

    test {several monitors receive the same lines, and one may leave while commands run} {
        set monitors [list [connect] [connect] [connect]]
        foreach m $monitors {$m monitor}
        # MONITOR itself is an administrative command, which is not shown to other monitors.
        r set k 1
        foreach m $monitors {assert_equal {"set" "k" "1"} [next_words $m]}
        [lindex $monitors 1] -close
        r set k 2
        foreach i {0 2} {assert_equal {"set" "k" "2"} [next_words [lindex $monitors $i]]}
    }
}
