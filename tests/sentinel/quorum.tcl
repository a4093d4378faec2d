# SPDX-License-Identifier: BSD-3-Clause
#
# replication-quorum with Sentinel: only a replica that certainly has everything confirmed is promoted by itself.

set quorum {save {} repl-diskless-sync-delay 0 replication-quorum 1 replication-quorum-timeout 600000}

proc quorum_told {text} {
    foreach i [sentinels] {
        if {[string match "*$text*" [server_log -$i]]} {return 1}
    }
    return 0
}
proc quorum_wait {text} {
    wait_for_condition 1200 50 {[quorum_told $text]} else {fail "no Sentinel has said: $text"}
}

start_watched [list 2 3 [list overrides $quorum set {failover-timeout 5000}]] {
    test {with replication-quorum 1 one of two replicas alone is not promoted} {
        # The one with less data would be preferred else.
        r -2 config set replica-priority 1
        assert_equal OK [r set before 1]
        send_signal STOP [srv -2 pid]
        # More than sockets have room for: the other replica cannot have it all.
        set value [string repeat x 1000000]
        for {set i 0} {$i < 30} {incr i} {assert_equal OK [r set key:$i $value]}
        assert_equal OK [r set last 1]
        sentinel_kill 0
        quorum_wait "+failover-wait-quorum master mym * #replication-quorum: not enough replicas are reachable"
        # It is given up and tried again.
        quorum_wait "-failover-abort-quorum master mym"
        assert_equal slave [lindex [r -1 role] 0]
    }

    test {when it is back the one with the most data is promoted, whatever its priority} {
        set new [srv -1 port]
        send_signal CONT [srv -2 pid]
        sentinel_wait_primary $new
        wait_for_condition 1200 50 {[watched_role 2] eq [list slave 127.0.0.1 $new connected]} else {
            fail "the other replica does not follow"
        }
        drop_clients
        assert_equal 1 [r -1 get last]
        assert_equal 30 [llength [r -1 keys key:*]]
        assert_equal OK [r -1 set after 1]
        assert_equal 0 [quorum_told "+selected-slave slave 127.0.0.1:[srv -2 port]"]
    }
}

start_watched [list 1 1 [list quorum 1 overrides $quorum set {failover-timeout 5000}]] {
    test {a replica that has all but must not be promoted is waited for} {
        r -1 config set replica-priority 0
        assert_equal OK [r set key 1]
        sentinel_kill 0
        quorum_wait "#replication-quorum: the replica with the most data has priority 0"
        assert_equal slave [lindex [r -1 role] 0]
        r -1 config set replica-priority 100
        sentinel_wait_primary [srv -1 port]
        drop_clients
        assert_match "*keys=1*" [r -1 info keyspace] ;# nothing is confirmed without a replica
    }
}

start_watched [list 1 1 [list quorum 1 overrides [concat $quorum {replication-read-lease 500}]]] {
    test {FAILOVER of a primary that works loses nothing} {
        assert_equal OK [r set key 1]
        assert_equal OK [r -[sentinel_first] sentinel failover mym]
        sentinel_wait_primary [srv -1 port]
        drop_clients
        wait_for_condition 1200 50 {[watched_role 0] eq [list slave 127.0.0.1 [srv -1 port] connected]} else {fail "no replica"}
        drop_clients
        # The lease has to begin.
        wait_for_condition 400 25 {![catch {r -1 get key} value]} else {fail $value}
        assert_equal 1 $value
        assert_equal OK [r -1 set key 2]
    }
}

start_watched [list 2 1 [list quorum 1 overrides [concat $quorum {enable-debug-command yes}]]] {
    test {a primary that restarts without its data is replaced, and nothing is lost} {
        assert_equal OK [r set key 1]
        catch {r debug restart}
        drop_clients
        wait_for_condition 1200 50 {[set new [lsearch [list - [lindex [watched_role 1] 0] [lindex [watched_role 2] 0]] master]] > 0}
        sentinel_wait_primary [srv -$new port]
        drop_clients
        wait_for_condition 1200 50 {[watched_role 0] eq [list slave 127.0.0.1 [srv -$new port] connected]} else {fail "no replica"}
        drop_clients
        assert_equal 1 [r -$new get key]
        assert_equal OK [r -$new set key 2]
    }
}
