# SPDX-License-Identifier: BSD-3-Clause
#
# What must not harm a group: forged messages, a leader that dies, a server that freezes.

start_watched {1 2 {overrides {requirepass secret masterauth secret} sentinel {requirepass watch} set {auth-pass secret}}} {
    set first [sentinel_first]
    set second [expr {$first + 1}]

    test {with a password, a client of a server cannot announce a primary, nor Sentinels} {
        set own "sentinel-[string range [r -$first sentinel myid] 0 7]-cmd"
        set at "127.0.0.1,[srv -$second port]"
        r publish __sentinel__:hello "$at,[r -$second sentinel myid],99,mym,127.0.0.1,[srv -1 port],99"
        r publish __sentinel__:hello "$at,[string repeat a 40],99,mym,127.0.0.1,[srv -1 port],99"
        # It contacts the stranger, which shows that it has got both messages, and nothing else.
        wait_for_condition 400 25 {[regexp -all "name=$own " [r -$second client list]] == 2} else {fail "it contacts nobody"}
        foreach i [sentinels] {
            assert_equal [srv port] [sentinel_primary $i]
            assert_equal 0 [sentinel_field $i config-epoch]
            assert_equal 1 [sentinel_field $i num-other-sentinels]
            assert {![string match *+new-epoch* [server_log -$i]]}
        }
        assert_equal [list 0 * 0] [r -$first sentinel is-primary-down-by-addr 127.0.0.1 [srv port] 5 [string repeat a 40]]
    }

    test {a Sentinel that is new to a group with a password is found} {
        assert_equal 1 [r -$first sentinel reset mym]
        sentinel_wait_known
        assert_equal "OK 2 usable Sentinels. Quorum and failover authorization can be reached" [r -$first sentinel ckquorum mym]
    }
}

start_watched {2 3 {set {down-after-milliseconds 30000}}} {
    set first [sentinel_first]
    set others [lrange [sentinels] 1 end]

    test {a leader that dies after the promotion: the others finish the failover with the same replica} {
        set old [srv port]
        r -$first sentinel simulate-failure crash-after-promotion
        catch {r -$first sentinel failover mym}
        wait_for_condition 400 25 {[process_ended [srv -$first pid]]} else {fail "the leader lives"}
        drop_clients
        foreach i $others {
            wait_for_condition 1200 50 {[sentinel_primary $i] != $old} else {fail "it was turned back"}
        }
        set new [sentinel_primary [lindex $others 0]]
        assert_equal $new [sentinel_primary [lindex $others 1]]
        assert_match "*+selected-slave slave 127.0.0.1:$new *" [server_log -$first]
        wait_for_condition 1200 50 {[watched_role 0] eq [list slave 127.0.0.1 $new connected]} else {fail "two primaries"}
        foreach i $others {assert {![string match "*+convert-to-slave slave 127.0.0.1:$new *" [server_log -$i]]}}
    }

    test {the dead leader takes over what the others have agreed upon} {
        with_node $first {catch {stop_server}; continue_server}
        set new [sentinel_primary [lindex $others 0]]
        wait_for_condition 1200 50 {
            [sentinel_primary $first] == $new &&
            [sentinel_field $first config-epoch] == [sentinel_field [lindex $others 0] config-epoch]
        } else {
            fail "it has another configuration"
        }
        assert_equal $new [sentinel_primary [lindex $others 1]]
    }
}

start_watched {1 3 {set {down-after-milliseconds 60000 failover-timeout 3000}}} {
    set first [sentinel_first]

    test {a coordinated failover whose target freezes is given up, and the primary serves writes again} {
        wait_for_condition 400 50 {[string match *master_failover_state:no-failover* [r -$first sentinel info-cache mym]]} else {
            fail "no INFO"
        }
        send_signal STOP [srv -1 pid]
        try {
            assert_equal OK [r -$first sentinel failover mym coordinated]
            wait_for_condition 800 50 {[string match *-failover-abort-* [server_log -$first]]} else {fail "it is not given up"}
            wait_for_condition 800 50 {
                ![catch {r set key value} reply] && $reply eq "OK" && [lindex [watched_role 0] 0] eq "master"
            } else {
                drop_clients
                fail "the primary does not serve writes"
            }
        } finally {
            send_signal CONT [srv -1 pid]
        }
        wait_for_condition 800 50 {[watched_role 1] eq [list slave 127.0.0.1 [srv port] connected]} else {fail "no replica"}
        foreach i [sentinels] {assert_equal [srv port] [sentinel_primary $i]}
    }
}
