# CLUSTER MEET, REPLICATE NO ONE and RESET, and DEBUG's words about the bus.

start_server {tags {cluster} overrides {cluster-enabled yes enable-debug-command yes}} {
    test {CLUSTER MEET refuses wrong addresses, in order} {
        foreach {words error} {
            {} {ERR wrong number of arguments for 'cluster|meet' command}
            {127.0.0.1} {ERR wrong number of arguments for 'cluster|meet' command}
            {a 1 2 3} {ERR unknown subcommand or wrong number of arguments for 'meet'. Try CLUSTER HELP.}
            {127.0.0.1 x} {ERR Invalid base port specified: x}
            {127.0.0.1 99999999999999999999} {ERR Invalid base port specified: 99999999999999999999}
            {127.0.0.1 0} {ERR Port number is out of range}
            {127.0.0.1 65536} {ERR Port number is out of range}
            {localhost -7} {ERR Port number is out of range}
            {127.0.0.1 60000} {ERR Cluster bus port number is out of range}
            {127.0.0.1 28101 x} {ERR Invalid bus port specified: x}
            {localhost 28101 x} {ERR Invalid bus port specified: x}
            {localhost 0 x} {ERR Port number is out of range}
            {127.0.0.1 28101 70000} {ERR Cluster bus port number is out of range}
            {localhost 28101} {ERR Invalid node address specified: localhost:28101}
            {{} 28101} {ERR Invalid node address specified: :28101}
        } {
            assert_error $error {r cluster meet {*}$words}
        }
        assert_equal 1 [cluster_field cluster_known_nodes]
    }

    test {a node in handshake has no role, and is in no shard} {
        assert_equal OK [r cluster meet 127.0.0.1 1 1]
        assert_equal OK [r cluster meet 127.0.0.1 1 1]
        assert_equal 2 [cluster_field cluster_known_nodes]
        assert_match "* 127.0.0.1:1@1 handshake - * 0 0 disconnected*" [r cluster nodes]
        assert_equal 1 [llength [r cluster shards]]
        assert_match "*Cluster meet 127.0.0.1:1 (user request from 'id=* addr=* laddr=* fd=* name=\\*redacted\\* user=\\*redacted\\* lib-name=* lib-ver=*').*" [server_log]
    }

    test {DEBUG about the bus refuses wrong words} {
        foreach words {{clusterlink} {clusterlink kill all x}} error {
            {ERR unknown subcommand or wrong number of arguments for 'clusterlink'. Try DEBUG HELP.} {ERR Unknown node x}
        } {assert_error $error {r debug {*}$words}}
        assert_error "ERR value is not an integer or out of range" {r debug drop-cluster-packet-filter x}
        foreach words {{drop-cluster-packet-filter -1} {close-cluster-link-on-packet-drop 1} {close-cluster-link-on-packet-drop 0}
            {disable-cluster-reconnection 0} {disable-cluster-random-ping 0}} {
            assert_equal OK [r debug {*}$words]
        }
    }
}

start_cluster {1 2 {tags {cluster} overrides {repl-diskless-sync-delay 0}}} {
    test {CLUSTER LINKS has of each node the connection to it, then that from it} {
        wait_for_condition 200 20 {[llength [r cluster links]] == 4}
        assert_equal {to from to from} [lmap link [r cluster links] {dict get $link direction}]
        lassign [lmap link [r cluster links] {dict get $link node}] a b c d
        assert {$a eq $b && $c eq $d && $a ne $c}
    }
    test {REPLICATE NO ONE: the replica becomes a primary without data in a shard of its own} {
        r set b 1
        assert_equal 1 [expr {[r wait 2 0] >= 1}]
        wait_for_condition 100 20 {[r -1 dbsize] == 1}
        set shard [r -1 cluster myshardid]
        assert_equal OK [r -1 cluster replicate no one]
        wait_for_condition 200 20 {[lindex [r -1 role] 0] eq "master"}
        assert_equal 0 [r -1 dbsize]
        assert_not_equal $shard [r -1 cluster myshardid]
        cluster_wait_flag [cluster_id 1] master
        assert_equal OK [r -1 cluster replicate [cluster_id 0]]
        cluster_wait_role 1 slave
        wait_for_condition 200 20 {[r -1 dbsize] == 1}
        wait_for_condition 200 20 {[r -1 cluster myshardid] eq $shard}
    }

    test {RESET of a replica drops its data and its nodes, and it can join again} {
        set id [r -2 cluster myid]
        assert_equal OK [r -2 cluster reset hard]
        assert_not_equal $id [r -2 cluster myid]
        wait_for_condition 200 20 {[lindex [r -2 role] 0] eq "master"}
        assert_equal {1 0 0} [list [cluster_field -2 cluster_known_nodes] [cluster_field -2 cluster_current_epoch] [r -2 dbsize]]
        foreach i {0 1} {r -$i cluster forget $id}
        cluster_meet 0 2
        wait_for_condition 400 50 {[cluster_line -2 [cluster_id 0]] ne "" && "handshake" ni [cluster_flags -2 [cluster_id 0]]}
        assert_equal OK [r -2 cluster replicate [cluster_id 0]]
        cluster_wait_role 2 slave
        wait_for_condition 200 20 {[r -2 dbsize] == 1}
    }
}

start_cluster {2 1 {tags {cluster} overrides {repl-diskless-sync-delay 0}}} {
    test {a replica that follows a primary of another shard has the offset 0 until it has its data} {
        for {set i 0} {$i < 100} {incr i} {r set "{06S}$i" x}
        assert_equal 1 [r wait 1 0]
        assert {[info_field master_repl_offset] > 1000}
        set other [cluster_id 1]
        send_signal STOP [srv -1 pid]
        try {
            assert_equal OK [r -2 cluster replicate $other]
            wait_for_condition 100 20 {[regexp {slave_repl_offset:(\d+)} [r -2 info replication] all offset] && $offset <= 1} else {
                fail [r -2 info replication]
            }
        } finally {
            send_signal CONT [srv -1 pid]
        }
        cluster_wait_role 2 slave
        wait_for_condition 200 20 {[r -2 dbsize] == 0}
        assert_match {*Full resync from primary*} [server_log -2]
    }
}
