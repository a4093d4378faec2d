# SPDX-License-Identifier: BSD-3-Clause
#
# What modules are told of slots that move, and what they must be prepared for
# (tests/modules/server_events.c).

set path [file normalize build/modules/server_events.so]

start_cluster [list 2 2 [list tags cluster overrides [list enable-module-command yes]]] {
    test {slots do not move while a module of either side is not prepared for it} {
        foreach {with without} {0 1 1 0} {
            r -$with module load $path prepared
            r -$without module load $path
            set refused "The module events does not support atomic slot migrations. Please ensure all modules have declared support for atomic slot migration and try again"
            if {$without == 0} {
                assert_error "ERR $refused" {r cluster migrateslots slotsrange 0 0 node [cluster_id 1]}
            } else {
                set name [move 0 1 0 0]
                wait_job 0 failed $name
                assert_match "*$refused*" [job_message 0 $name]
            }
            r -$with module unload events
            r -$without module unload events
        }
    }

    test {both sides and their replicas are told of the begin and the end, by the same name} {
        foreach i {0 1 2 3} {
            r -$i module load $path prepared
            r -$i events.listen 19
        }
        r set "{06S}k" v
        set name [move 0 1 0 0 5 6]
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal [list "19 1 $name 2 0-0" "19 5 $name 2 0-0"] [r -0 events.log]
        assert_equal [list "19 0 $name 2 0-0" "19 4 $name 2 0-0"] [r -1 events.log]
        set seen {}
        wait_for_condition 500 20 {[llength [lappend seen {*}[r -3 events.log]]] == 2}
        assert_equal [list "19 0 $name 2 0-0" "19 4 $name 2 0-0"] $seen
        assert_equal {} [r -2 events.log]
    }

    test {a job that ends without success} {
        hold_pause 1 1
        set name [move 1 0 0 0]
        wait_job 1 waiting-to-pause $name
        r -1 cluster cancelslotmigrations
        wait_job 1 cancelled $name
        wait_job 0 failed $name
        hold_pause 1 0
        assert_equal [list "19 1 $name 1 0-0" "19 3 $name 1 0-0"] [r -1 events.log]
        assert_equal [list "19 0 $name 1 0-0" "19 2 $name 1 0-0"] [r -0 events.log]
    }
}
