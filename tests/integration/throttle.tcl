# SPDX-License-Identifier: BSD-3-Clause
#
# repl-throttling-enabled: writers wait rather than a replica reaches its output limit.

source $::tests_dir/support/replication.tcl

set limits {save {} repl-diskless-sync-delay 0 repl-backlog-size 16kb client-output-buffer-limit {replica 400mb 40mb 60}}

proc throttled {field} {
    regexp "\r\n$field:(\\S+)" [r -1 info throttling] -> value
    return $value
}

start_server [list tags {repl needs:servers tls:skip external:skip} overrides $limits] {
start_server {overrides {save {}}} {
    test {throttling is off by default, and INFO has its section} {
        assert_equal {repl-throttling-enabled no} [r -1 config get repl-throttling-enabled]
        assert_match "# Throttling\r\nrepl_throttle_rate:-1.00\r\nrepl_throttle_activation_events:0\r\n*" [r -1 info throttling]
        assert_match "*# Throttling*" [r -1 info]
        assert_match "*repl_throttle_more_events:0\r\nrepl_throttle_less_events:0\r\nrepl_throttle_current_clients:0*" [r -1 info debug]
    }

    test {writers wait for a replica that takes nothing, but go on} {
        r -1 config set repl-throttling-enabled yes
        r replicaof [srv -1 host] [srv -1 port]
        link_is up
        send_signal STOP [srv pid]
        set value [string repeat x 100000]
        set writer [connect_to [srv -1 host] [srv -1 port] $::resp_version [srv -1 password]]
        lappend ::test_clients $writer
        # A quarter of the soft limit is to be kept, and more than half to be expected.
        for {set i 0} {$i < 4000 && [throttled repl_throttle_activation_events] == 0} {incr i} {
            assert_equal OK [$writer set key:[expr {$i % 10}] $value]
        }
        assert_equal 1 [throttled repl_throttle_activation_events]
        assert {[throttled repl_throttle_rate] > 0}
        for {set i 0} {$i < 1500 && [throttled repl_throttle_total_commands] == 0} {incr i} {
            assert_equal OK [$writer set key:[expr {$i % 10}] $value]
        }
        assert {[throttled repl_throttle_total_commands] > 0}
        log_has "Writers are slowed down, so that the replica that lags most does not reach its output limit" -1
        wait_for_condition 200 20 {[regexp {repl_throttle_(more|less)_events:[1-9]} [r -1 info debug]]}
        # Writes that wait are counted, and their clients have a flag.
        set sent 0
        set found 0
        for {set i 0} {$i < 1000 && !$found} {incr i} {
            if {$i % 20 == 0} {for {set n 0} {$n < 20} {incr n; incr sent} {$writer -send set key:0 $value}}
            r -1 multi
            r -1 info debug
            r -1 client list
            lassign [r -1 exec] debug clients
            set found [expr {[regexp {repl_throttle_current_clients:[1-9]} $debug] && [regexp { flags=\w*h\w* } $clients]}]
        }
        assert {$found}
        for {set n 0} {$n < $sent} {incr n} {assert_equal OK [$writer -read]}
        # Reads do not wait.
        assert_equal $value [r -1 get key:1]
        assert_match "*connected_slaves:1\r*" [r -1 info replication]
        send_signal CONT [srv pid]
        same_data -1 -0
        assert_match "*sync_full:1\r*" [r -1 info stats]
    }

    test {it ends when it is switched off, and when the replicas have caught up} {
        r -1 config set repl-throttling-enabled no
        assert_equal -1.00 [throttled repl_throttle_rate]
        r -1 config set repl-throttling-enabled yes
        wait_for_condition 400 25 {[throttled repl_throttle_rate] eq "-1.00"} else {fail [r -1 info throttling]}
        assert_match "*paused_reason:none*" [r -1 info clients]
    }
}
}
