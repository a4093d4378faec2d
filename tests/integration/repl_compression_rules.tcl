# SPDX-License-Identifier: BSD-3-Clause
#
# What depends on how far replicas are, on a link that repl-compression compresses: replication-quorum, min-replicas-to-write,
# repl-throttling-enabled.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/frames.tcl

set quick {save {} repl-diskless-sync-delay 0}

# The server follows the one around it, by this codec.
proc follow_by {codec} {
    r -1 config set repl-compression $codec
    r config set repl-compression $codec
    r replicaof [srv -1 host] [srv -1 port]
    link_is up
    wait_for_condition 800 25 {[string match "*state=online*compression=$codec*" [r -1 info replication]]}
}

proc new_client {} {
    set c [connect_to [srv -1 host] [srv -1 port] $::resp_version [srv -1 password]]
    lappend ::test_clients $c
    return $c
}

proc noise {count} {
    set channel [open /dev/urandom rb]
    set bytes [read $channel $count]
    close $channel
    return $bytes
}

foreach codec {lz4 zstd} {
    start_server [list tags {repl needs:servers tls:skip external:skip} overrides [concat $quick {replication-quorum 1 replication-quorum-timeout 3600000}]] {
    start_server [list overrides $quick] {
        if {$codec in [frame_codecs]} {
            test "replication-quorum by $codec: a reply waits until the replica has decompressed and applied the write" {
                follow_by $codec
                set c [new_client]
                assert_equal OK [$c set key value]
                assert_equal value [r get key]
                send_signal STOP [srv pid]
                $c -send set key other
                wait_for_condition 400 25 {[string match "*replication_quorum_held_clients:1\r*" [r -1 info replication]]}
                regexp {replication_quorum_unconfirmed_bytes:(\d+)} [r -1 info replication] -> unconfirmed
                # Bytes of the plain stream, as offsets are.
                assert {$unconfirmed >= [string length "*3\r\n\$3\r\nset\r\n\$3\r\nkey\r\n\$5\r\nother\r\n"]}
                send_signal CONT [srv pid]
                assert_equal OK [$c -read]
                assert_equal other [r get key]
                wait_for_condition 400 25 {[string match "*replication_quorum_unconfirmed_bytes:0\r*" [r -1 info replication]]}
                $c multi
                for {set i 0} {$i < 50} {incr i} {$c set key:$i [noise 20000]}
                $c exec
                same_data -1 -0
            }
        }
    }}

    start_server [list tags {repl needs:servers tls:skip external:skip} overrides $quick] {
    start_server [list overrides $quick] {
        if {$codec in [frame_codecs]} {
            test "min-replicas-to-write by $codec: writes are refused while the replica lags, and only then" {
                follow_by $codec
                r -1 config set min-replicas-to-write 1 min-replicas-max-lag 1
                wait_for_condition 400 25 {![catch {r -1 set key value}]}
                send_signal STOP [srv pid]
                wait_for_condition 800 25 {[catch {r -1 set key value} error] && [string match "NOREPLICAS*" $error]}
                send_signal CONT [srv pid]
                wait_for_condition 800 25 {![catch {r -1 set key last}]}
                same_data -1 -0
                assert_equal last [r get key]
                r -1 config set min-replicas-to-write 0
            }
        }
    }}

    start_server [list tags {repl needs:servers tls:skip external:skip} \
        overrides [concat $quick {repl-backlog-size 16kb client-output-buffer-limit {replica 400mb 40mb 60}}]] {
    start_server [list overrides $quick] {
        if {$codec in [frame_codecs]} {
            test "repl-throttling-enabled by $codec: writers wait for a replica that takes nothing, which stays connected" {
                follow_by $codec
                r -1 config set repl-throttling-enabled yes
                send_signal STOP [srv pid]
                set c [new_client]
                # A quarter of the soft limit is to be kept, and more than half to be expected. No two values are alike.
                for {set i 0} {$i < 4000 && ![regexp {repl_throttle_activation_events:1} [r -1 info throttling]]} {incr i} {
                    assert_equal OK [$c set key:[expr {$i % 10}] [noise 100000]]
                }
                assert_match "*repl_throttle_activation_events:1\r*" [r -1 info throttling]
                for {set i 0} {$i < 1500 && [regexp {repl_throttle_total_commands:0} [r -1 info throttling]]} {incr i} {
                    assert_equal OK [$c set key:[expr {$i % 10}] [noise 100000]]
                }
                assert {![regexp {repl_throttle_total_commands:0} [r -1 info throttling]]}
                assert_match "*connected_slaves:1\r*" [r -1 info replication]
                send_signal CONT [srv pid]
                same_data -1 -0
                wait_for_condition 800 25 {[string match "*repl_throttle_rate:-1.00\r*" [r -1 info throttling]]}
            }
        }
    }}
}
