# SPDX-License-Identifier: BSD-3-Clause
#
# replication-quorum in a cluster: who may replace a primary.

proc connect_to_node {i} {return [respConnect [srv -$i host] [srv -$i port] $::resp_version]}

set settings {repl-diskless-sync-delay 0 replication-quorum 1 replication-quorum-timeout 600000 cluster-node-timeout 2000 save {}}

# Three primaries; nodes 3 and 4 are replicas of node 0, node 5 one of node 1.
start_cluster [list 3 3 [list tags {cluster quorum} overrides $settings]] {
    test {messages to other nodes wait for the replica, as those to own subscribers do} {
        wait_for_condition 400 50 {[string match "*replication_quorum_reachable:1*" [r info replication]]}
        set there [connect_to_node 1]
        $there -send subscribe channel
        $there -message
        send_signal STOP [srv -3 pid]
        set writer [connect]
        $writer multi
        $writer set "key:{06S}" value
        $writer publish channel "of a change"
        $writer -send exec
        wait_for_condition 400 10 {[info_field replication_quorum_held_clients] == 1}
        r -2 publish channel "of none"
        assert_equal {message channel {of none}} [$there -message]
        send_signal CONT [srv -3 pid]
        assert_equal {message channel {of a change}} [$there -message]
        assert_match {OK [0-9]*} [$writer -read]
    }

    test {CLUSTER COUNTKEYSINSLOT, GETKEYSINSLOT and SLOT-STATS wait, questions about nodes do not} {
        set slot [r cluster keyslot "counted:{06S}"]
        set before [r cluster countkeysinslot $slot]
        send_signal STOP [srv -3 pid]
        set writer [connect]
        $writer -send set "counted:{06S}" value
        wait_for_condition 400 10 {[info_field replication_quorum_held_clients] == 1}
        set readers {}
        foreach request [list [list countkeysinslot $slot] [list getkeysinslot $slot 10] [list slot-stats slotsrange $slot $slot]] {
            lappend readers [connect]
            [lindex $readers end] -send cluster {*}$request
        }
        wait_for_condition 400 10 {[info_field replication_quorum_held_clients] == 4}
        foreach request {nodes slots shards myid info links} {r cluster $request}
        send_signal CONT [srv -3 pid]
        assert_equal OK [$writer -read]
        assert_equal [expr {$before + 1}] [[lindex $readers 0] -read]
        assert_match "*counted:{06S}*" [[lindex $readers 1] -read]
        assert_match "*key-count*" [[lindex $readers 2] -read]
    }

    test {with replication-quorum a replica that is not heard by enough others does not replace its primary} {
        r -4 cluster replicate [cluster_id 0]
        cluster_wait_role 4 slave
        wait_for_condition 400 50 {[string match "*replication_quorum_reachable:2*" [r info replication]]}
        for {set i 0} {$i < 100} {incr i} {assert_equal OK [r set "key:{06S}:$i" $i]}
        assert_error "*replication-quorum: this replica may lack acknowledged writes*" {r -3 cluster failover force}
        # Both replicas of the shard are needed: one of them is stopped.
        send_signal STOP [srv -4 pid]
        with_node 0 stop_server
        wait_for_condition 600 50 {[string match "*Waiting for replicas: enough of them must know of the failure*" [server_log -3]]}
        assert_equal slave [lindex [r -3 role] 0]
        send_signal CONT [srv -4 pid]
        # What was acknowledged is in whichever is chosen.
        wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "master" || [lindex [r -4 role] 0] eq "master"}
        set new [expr {[lindex [r -3 role] 0] eq "master" ? 3 : 4}]
        cluster_wait_role [expr {7 - $new}] slave
        wait_for_condition 600 50 {[string match "*replication_quorum_reachable:1*" [r -$new info replication]]}
        for {set i 0} {$i < 100} {incr i} {assert_equal $i [r -$new get "key:{06S}:$i"]}
        assert_equal OK [r -$new set "key:{06S}:new" value]
        with_node 0 continue_server
        cluster_wait_role 0 slave
    }
}

# Node 4 is as a released server would be: it does not know the quorum, and asks for votes at once.
start_cluster [list 3 2 [list tags {cluster quorum} overrides [concat $settings cluster-replica-validity-factor 0]]] {
    test {a replica without replication-quorum is named from the start, and not elected} {
        assert_equal OK [r -4 config set replication-quorum 0]
        r -4 cluster replicate [cluster_id 0]
        cluster_wait_role 4 slave
        foreach i {0 1 2} {
            wait_for_condition 400 50 {
                [string match "*Node [cluster_id 4]*does not take part in replication-quorum*" [server_log -$i]]
            } else {fail "node $i does not log it"}
            assert_equal [cluster_id 4] [cluster_field -$i cluster_nodes_without_quorum]
        }
        assert_equal OK [r set "key:{06S}" 1]
        send_signal STOP [srv -3 pid]
        with_node 0 stop_server
        foreach i {1 2} {
            wait_for_condition 600 50 {
                [string match "*Failover auth denied to [cluster_id 4]*it has no replication-quorum*" [server_log -$i]]
            } else {fail "node $i does not refuse"}
        }
        assert_equal slave [lindex [r -4 role] 0]
        # With the quorum it knows whether it may.
        assert_equal OK [r -4 config set replication-quorum 1]
        send_signal CONT [srv -3 pid]
        wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "master" || [lindex [r -4 role] 0] eq "master"}
        wait_for_condition 600 50 {[cluster_field -1 cluster_nodes_without_quorum] eq ""}
        with_node 0 continue_server
    }
}

lappend settings enable-debug-command yes
start_cluster [list 3 2 [list tags {cluster quorum} overrides $settings]] {
    test {a primary that restarts at once without its data is replaced, and nothing is lost} {
        r -4 cluster replicate [cluster_id 0]
        cluster_wait_role 4 slave
        wait_for_condition 400 50 {[string match "*replication_quorum_reachable:2*" [r info replication]]}
        for {set i 0} {$i < 100} {incr i} {assert_equal OK [r set "key:{06S}:$i" $i]}
        catch {r debug restart}
        drop_clients
        wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "master" || [lindex [r -4 role] 0] eq "master"}
        set new [expr {[lindex [r -3 role] 0] eq "master" ? 3 : 4}]
        cluster_wait_role 0 slave
        wait_for_condition 600 50 {![catch {r -$new get "key:{06S}:99"} reply] && $reply == 99}
        for {set i 0} {$i < 100} {incr i} {assert_equal $i [r -$new get "key:{06S}:$i"]}
        wait_for_condition 600 50 {[string match "*replication_quorum_reachable:2*" [r -$new info replication]]}
        assert_equal OK [r -$new set "key:{06S}:new" value]
    }
}

lappend settings appendonly yes
start_cluster [list 3 3 [list tags {cluster quorum} overrides $settings]] {
    test {a primary restarts before it fails: offsets of the former stream do not count} {
        r -4 cluster replicate [cluster_id 0]
        cluster_wait_role 4 slave
        wait_for_condition 400 50 {[string match "*replication_quorum_reachable:2*" [r info replication]]}
        # After a change that it does not get, the append only file knows nothing of the stream any more, so that the
        # restarted primary begins another one.
        r eval {server.set_repl(server.REPL_REPLICA) return server.call('set', KEYS[1], 'x')} 1 "other:{06S}"
        assert_equal OK [r set "key:{06S}" [string repeat x 100000]]
        wait_for_condition 400 50 {[info_field slave_repl_offset [srv -4 client]] > 100000}
        # Node 4 is not linked to the primary after its restart, and has the greater offset.
        send_signal STOP [srv -4 pid]
        catch {r debug restart}
        drop_clients
        wait_for_condition 600 50 {![catch {r set "key:{06S}" confirmed} reply] && $reply eq "OK"}
        regexp {slave_repl_offset:(\d+)} [r -3 info replication] -> offset
        assert {$offset < 100000}
        send_signal STOP [srv pid]
        send_signal CONT [srv -4 pid]
        foreach i {3 4} {
            wait_for_condition 600 50 {[string match "*Waiting for replicas: enough of them*Waiting for replicas: enough of them*" [server_log -$i]]}
        }
        assert_equal {slave slave} [list [lindex [r -3 role] 0] [lindex [r -4 role] 0]]
        send_signal CONT [srv pid]
        wait_for_condition 600 50 {![catch {r get "key:{06S}"} reply] && $reply eq "confirmed"}
    }
}
