# SPDX-License-Identifier: BSD-3-Clause
#
# Threads of modules (tests/modules/threads.c), and modules that are loaded and unloaded often. For ThreadSanitizer:
#
#     make BUILD=tsan build modules && ./runtest --binary build/tsan/valkey-server --single unit/modules_threads --scale 30 --timeout 600
#
# runs the threads for 60 s.

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    r module load [file normalize build/modules/threads.so]

    test {four threads use contexts, calls and blocked clients beside clients, and nothing is lost} {
        set c [connect]
        $c -send threads.run [scaled 2000]
        wait_for_condition 500 10 {[info_field blocked_clients] >= 1}
        set workers {}
        foreach i {1 2 3} {lappend workers [connect]}
        set jobs 0
        set own 0
        set end 0
        for {set i 0} {!$end} {incr i} {
            foreach w $workers {$w -send threads.job $i}
            incr own [expr {[r incr counted] > 0}]
            foreach w $workers {
                if {[catch {$w -read} length]} {
                    assert_equal {ERR no thread} $length
                    set end 1
                } else {
                    assert {$length > 0}
                    incr jobs
                }
            }
            if {$i % 20 == 0} { ;# a client that does not wait for its reply
                set gone [connect]
                $gone -send threads.job gone
                $gone -close
            }
        }
        lassign [$c -read] counted done
        assert_equal [expr {$counted + $own}] [r get counted]
        assert {$done >= $jobs}
        assert_equal $done [r llen jobs]
        wait_for_condition 500 10 {[info_field blocked_clients] == 0}
        lassign [r threads.seen] timers turns
        assert {$timers > 0}
        assert {$turns > 0}
    }

    test {the module of the threads can be unloaded} {
        wait_for_condition 500 10 {![catch {r module unload threads}]}
        assert_equal PONG [r ping]
    }
}

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    test {modules that are loaded and unloaded many times leave no memory behind} {
        set names {hello_command hello_filter hello_events hello_blocked settings info server_events timers threads symbols}
        set rounds [expr {max(5, min(1000, [scaled 1000]) / [llength $names])}]
        set used {}
        for {set i 0} {$i < $rounds} {incr i} {
            foreach name $names {
                r module load [file normalize build/modules/$name.so]
                set module [dict get [lindex [lsearch -all -inline -not [r module list] {*name lua*}] 0] name]
                assert_equal OK [r module unload $module]
            }
            lappend used [info_field used_memory]
        }
        assert_equal 1 [llength [r module list]]
        # The table of command names has another size now and then.
        set half [lindex [lsort -integer [lrange $used 0 end-[expr {$rounds / 2}]]] end]
        set full [lindex [lsort -integer [lrange $used [expr {$rounds / 2 + 1}] end]] 0]
        assert {$full - $half < 10000}
    }
}
