# SPDX-License-Identifier: BSD-3-Clause
#
# All replicas have failed at a command of their primary's stream, and the primary ends: Sentinels promote one of them
# nevertheless.

source $::tests_dir/support/sentinel.tcl
source $::tests_dir/support/replication.tcl

foreach behavior {ignore stop} {
    start_watched [list 2 3 [list overrides [list save {} repl-diskless-sync-delay 0 propagation-error-behavior $behavior]]] {
        test "a primary ends after a command of its stream has failed in all replicas ($behavior): one is promoted, the other follows" {
            r -0 set k text
            foreach i {1 2} {same_offset -0 -$i}
            # What the script replaces by a list is not sent, so the replicas still have a string.
            r -0 eval {redis.set_repl(redis.REPL_NONE) redis.call('del', KEYS[1]) redis.call('rpush', KEYS[1], 'x')
                redis.set_repl(redis.REPL_ALL) return redis.call('rpush', KEYS[1], 'y')} 1 k
            foreach i {1 2} {
                wait_for_condition 400 25 {[string match "*master_stream_errors:1\r*" [r -$i info replication]]}
                if {$behavior eq "ignore"} {assert_error "DIVERGED *" {r -$i replicaof no one}}
            }
            set ports [list [srv -1 port] [srv -2 port]]
            sentinel_kill 0
            wait_for_condition 1200 50 {[sentinel_primary [sentinel_first]] in $ports}
            set promoted [expr {[sentinel_primary [sentinel_first]] == [srv -1 port] ? 1 : 2}]
            set other [expr {3 - $promoted}]
            sentinel_wait_primary [srv -$promoted port]
            wait_for_condition 600 50 {[lindex [watched_role $promoted] 0] eq "master"}
            assert_match "*commands of its stream failed*becomes a primary with them*" [server_log -$promoted]
            wait_for_condition 1200 50 {[string match "*master_link_status:up*" [r -$other info replication]] &&
                [lindex [watched_role $other] 2] == [srv -$promoted port]}
            r -$promoted set after 1
            wait_for_condition 400 25 {[r -$other get after] eq 1}
            # A replica that has stopped takes the data of the promoted one; the other one goes on, and still tells of the error.
            set errors [expr {$behavior eq "stop" ? 0 : 1}]
            assert_match "*master_stream_errors:$errors\r*" [r -$other info replication]
            assert_equal [r -$promoted debug digest] [r -$other debug digest]
        }
    }
}
