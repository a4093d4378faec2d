# FAILOVER_AUTH_NACK of Valkey 9.2: voters tell a candidate that they refuse their vote.

# Nodes 3 and 4, replicas of different primaries, ask for votes in the same epoch: node 3 first, which then hears no
# vote, and node 4, which does not hear that it has asked. False: node 4 knew of the epoch already.
proc ask_in_one_epoch {} {
    r -3 debug drop-cluster-packet-filter -2
    r -4 debug drop-cluster-packet-filter 5
    assert_equal OK [r -3 cluster failover force]
    assert_equal OK [r -4 cluster failover force]
    wait_for_condition 600 20 {[lindex [r -4 role] 0] eq "master"}
    foreach i {3 4} {r -$i debug drop-cluster-packet-filter -1}
    return [string match {*Failover auth NACK*} [server_log -4]]
}

start_cluster {3 2 {tags {cluster needs:debug} overrides {repl-diskless-sync-delay 0 cluster-manual-failover-timeout 4000}}} {
    test {no message of type 11 is sent while nobody refuses a vote} {
        for {set i 0} {$i < 5} {incr i} {assert {![string match *auth-nack* [r -$i cluster info]]}}
    }

    test {a candidate whose votes are refused learns it at once, and wins the next election} {
        for {set tries 0} {![ask_in_one_epoch]} {incr tries} {
            assert {$tries < 10}
            cluster_wait_role 1 slave
            assert_equal OK [r -1 cluster failover]
            cluster_wait_role 1 master
            cluster_wait_role 4 slave
            cluster_wait_agree
        }
        set log [server_log -4]
        assert_match {*Failover auth NACK (reason already-voted) from * for epoch * (NACKs 1, quorum 2)*} $log
        assert_match {*Failover auth NACK (reason already-voted) from * for epoch * (NACKs 2, quorum 2)*} $log
        assert {[regexp {auth NACK \(reason already-voted\) from (\w{40}) \S.* for epoch (\d+) \(NACKs 2} $log all id epoch]}
        assert {$id in [lmap i {0 1 2} {cluster_id $i}]}
        assert_match "*Failover election for epoch $epoch cannot reach quorum*" $log
        assert_match {*Failover election won*} $log
        assert {[cluster_field -4 cluster_my_epoch] > $epoch}
        assert {[cluster_field -4 cluster_stats_messages_auth-nack_received] >= 2}
        set sent 0
        foreach i {0 1 2} {
            if {[regexp {auth-nack_sent:(\d+)} [r -$i cluster info] all count]} {incr sent $count}
        }
        assert {$sent >= 2}
        assert_match {*Failover auth denied to *: already voted for epoch*} [server_log 0][server_log -2]
        cluster_wait_role 1 slave
        cluster_wait_agree
        cluster_wait_ok
    }
}
