# SPDX-License-Identifier: BSD-3-Clause
#
# Timers of modules, descriptors, and calls ordered by other threads (tests/modules/timers.c).

source $::tests_dir/support/raw_replica.tcl

start_server {overrides {enable-module-command yes repl-diskless-sync-delay 0}} {
    r module load [file normalize build/modules/timers.so]

    test {a timer expires once, in the database in which it was made} {
        r select 3
        r timers.create 1 key
        r timers.create 0 key
        r select 0
        r timers.create 2 other
        wait_for_condition 200 10 {[r get other] == 1}
        r select 3
        wait_for_condition 200 10 {[r get key] == 2}
        assert_equal 1 [r dbsize]
        r select 0
    }

    test {timers are stopped by their id, which is known until they expire} {
        set id [r timers.create 100000 key]
        assert_equal 1 [expr {[set rest [r timers.info $id]] > 90000 && $rest <= 100000}]
        assert_error {ERR Error unloading module: the module holds timer that is not fired. Please stop the timer or wait until it fires.} \
            {r module unload timers}
        assert_equal key [r timers.stop $id]
        assert_equal 1 [r timers.stop $id]
        assert_equal {} [r timers.info $id]
        set ids [lmap i {1 2 3 4 5 6 7 8 9 10} {r timers.create 100000 key}]
        assert_equal 10 [llength [lsort -unique $ids]]
        foreach id $ids {r timers.stop $id}
    }

    test {what a timer does is propagated as one unit} {
        set replica [dict get [replica_sync] socket]
        r timers.create 1 key
        replica_expect $replica SELECT 0
        replica_expect $replica INCR key
        close $replica
    }

    test {a descriptor is watched until the module ends that} {
        assert_equal 6 [r timers.pipe "hello "]
        wait_for_condition 200 10 {[lindex [r timers.seen] 0] eq "hello "}
        r timers.pipe world.
        wait_for_condition 200 10 {[lindex [r timers.seen] 0] eq "hello world."}
        r timers.pipe more
        r ping
        assert_equal "hello world." [lindex [r timers.seen] 0]
    }

    test {calls that another thread orders are made} {
        r timers.thread
        wait_for_condition 200 10 {[lindex [r timers.seen] 1] == 100}
    }

    test {10,000 timers} {
        assert_equal 5000 [r timers.many 10000 1]
        wait_for_condition 500 10 {[lindex [r timers.seen] 1] == 5100}
    }

    test {a timer of the longest time does not expire} {
        set id [r timers.create 9223372036854775807 key]
        r ping
        assert {[r timers.info $id] > 1000000000}
        assert_equal key [r timers.stop $id]
    }

    test {the module can be unloaded when no timer is left: neither descriptors nor calls lead to it any more} {
        assert_equal OK [r module unload timers]
        for {set i 0} {$i < 3} {incr i} {assert_equal PONG [r ping]}
        r module load [file normalize build/modules/timers.so]
        assert_equal 6 [r timers.pipe again.]
        wait_for_condition 200 10 {[lindex [r timers.seen] 0] eq "again."}
    }
}
