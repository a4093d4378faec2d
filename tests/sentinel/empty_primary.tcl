# SPDX-License-Identifier: BSD-3-Clause
#
# Sentinel and a primary that was restarted without its data (replica-refuse-empty-primary).

set plain {save {} repl-diskless-sync-delay 0 enable-debug-command yes}

proc replica_flags {i port} {
    foreach replica [r -$i sentinel replicas mym] {
        if {[dict get $replica port] == $port} {return [dict get $replica flags]}
    }
    return
}

start_watched [list 2 1 [list quorum 1 overrides $plain set {failover-timeout 5000 down-after-milliseconds 600000}]] {
    test {the flags of Sentinel say who has lost data, and who keeps them} {
        # The second replica obeys.
        r -2 config set replica-refuse-empty-primary no
        r -2 config set replica-priority 1
        r set key 1
        wait_for_condition 800 25 {[r -1 dbsize] == 1 && [r -2 dbsize] == 1} else {fail "no synchronisation"}
        catch {r debug restart}
        drop_clients
        set sentinel [sentinel_first]
        wait_for_condition 1600 50 {
            [string match *,keeps_lost_data* [replica_flags $sentinel [srv -1 port]]] &&
            [string match *lost_data* [sentinel_field $sentinel flags]]
        } else {fail "flags: [r -$sentinel sentinel primary mym] [r -$sentinel sentinel replicas mym]"}
        assert_equal slave [replica_flags $sentinel [srv -2 port]]
        assert_equal 1 [expr {"+lost-data" in [sentinel_events $sentinel]}]
        assert_equal {1 {}} [list [r -1 get key] [r -2 get key]]
    }

    test {a failover selects the replica that keeps them, whatever its priority and the age of its link} {
        set sentinel [sentinel_first]
        # Older than what is allowed else.
        r -$sentinel sentinel set mym down-after-milliseconds 100
        sentinel_kill 0
        sentinel_wait_primary [srv -1 port]
        drop_clients
        assert_equal 1 [r -1 get key]
        wait_for_condition 1200 50 {[watched_role 2] eq [list slave 127.0.0.1 [srv -1 port] connected]} else {fail "the other replica does not follow"}
        drop_clients
        assert_equal 1 [r -2 get key]
    }
}

start_watched [list 2 1 [list quorum 1 overrides $plain set {failover-timeout 5000 down-after-milliseconds 600000}]] {
    test {Sentinel has nothing to say of a primary that was told to end and is followed again} {
        r set key 1
        wait_for_condition 800 25 {[r -1 dbsize] == 1 && [r -2 dbsize] == 1} else {fail "no synchronisation"}
        r -2 config set replica-refuse-empty-primary always
        set port [srv port]
        stop_server
        upvar #0 [lindex $::servers 0] server
        dict set server(settings) port $port
        continue_server
        drop_clients
        r set other 1
        set sentinel [sentinel_first]
        wait_for_condition 1600 50 {[string match *,keeps_lost_data* [replica_flags $sentinel [srv -2 port]]]} else {
            fail "flags: [r -$sentinel sentinel replicas mym]"
        }
        wait_for_condition 1600 50 {[r -1 get other] == 1} else {fail "the empty primary is not followed: [r -1 info replication]"}
        assert_equal slave [replica_flags $sentinel [srv -1 port]]
        assert_equal {{} 1} [list [r -1 get key] [r -2 get key]]
    }

    test {it says nothing if both replicas follow} {
        set sentinel [sentinel_first]
        r -2 config set replica-refuse-empty-primary yes
        wait_for_condition 1600 50 {[replica_flags $sentinel [srv -2 port]] eq "slave"} else {
            fail "flags: [r -$sentinel sentinel replicas mym]"
        }
        assert_equal {1 1} [list [r -1 get other] [r -2 get other]]
    }
}
