# SPDX-License-Identifier: BSD-3-Clause
#
# A primary of a cluster that restarts without its data is replaced by a replica that keeps them
# (replica-refuse-empty-primary).

source $::tests_dir/support/cluster.tcl
source $::tests_dir/support/replication.tcl

set own {save {} repl-diskless-sync-delay 0 cluster-replica-validity-factor 1}

# The node keeps its nodes.conf.
proc restart_empty {i} {
    with_node $i {
        kill_server
        file delete -force [file join [srv dir] dump.rdb] [file join [srv dir] appendonlydir]
        continue_server
    }
}

proc is_refused {i} {
    wait_for_condition 800 25 {[string match "*master_link_refused:1\r*" [r -$i info replication]]} else {
        fail "the primary is not refused: [r -$i info replication]"
    }
}

start_server [list tags {cluster needs:servers tls:skip} overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
    set ::cluster_size 4
    cluster_join 3 1

    test {the replica of a primary that restarts without its data replaces it} {
        # Node 0 has the slots of this key.
        r -0 set {003} 1
        link_is up -3
        same_offset -0 -3
        restart_empty 0
        is_refused 3
        cluster_wait_role 3 master
        drop_clients
        assert_equal 1 [r -3 get {003}]
        cluster_wait_role 0 slave
        wait_for_condition 800 25 {[string match *master_link_status:up* [r -0 info replication]]} else {fail "the old primary does not follow"}
        same_data -3 -0
        assert_match "*this server was started without them*" [server_log -0]
        cluster_wait_ok
    }

    test {a primary without a replica that keeps its data serves} {
        r -0 cluster reset
        wait_for_condition 800 25 {[catch {r -3 cluster forget [cluster_id 0]}] == 0 || ![string match *[cluster_id 0]* [r -3 cluster nodes]]} else {fail "not forgotten"}
        restart_empty 3
        wait_for_condition 800 25 {![catch {r -3 get {003}} value]} else {fail "no service: $value"}
        assert_equal {} $value
    }
}
}
}
}

start_server [list tags {cluster needs:servers tls:skip} overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own {cluster-replica-no-failover yes} [list port [free_port] cluster-port [free_port]]]] {
    set ::cluster_size 2
    cluster_join 1 1

    proc lose_and_refuse {} {
        r set key 1
        link_is up -1
        same_offset -0 -1
        restart_empty 0
        is_refused 1
        wait_for_condition 800 25 {[catch {r get key} error] && [string match CLUSTERDOWN* $error]} else {fail "the primary serves requests"}
    }

    test {CLUSTER REPLICATE is an order to follow the empty primary} {
        lose_and_refuse
        assert_equal OK [r -1 cluster replicate [cluster_id 0]]
        wait_for_condition 800 25 {[string match *master_link_status:up* [r -1 info replication]]} else {fail "no link"}
        assert_equal 0 [r -1 dbsize]
        log_has "Its dataset replaces the 1 keys here" -1
    }

    test {with replica-refuse-empty-primary no the empty primary serves at once} {
        wait_for_condition 800 25 {![catch {r set key 1}]} else {fail "no service"}
        lose_and_refuse
        r config set replica-refuse-empty-primary no
        wait_for_condition 800 25 {![catch {r set other 1}]} else {fail "no service"}
        assert_equal 1 [r -1 dbsize]
        assert_match "*master_link_refused:1*" [r -1 info replication]
        r config set replica-refuse-empty-primary yes
    }

    test {CLUSTER FAILOVER TAKEOVER brings the data back} {
        r -1 readonly
        assert_equal 1 [r -1 get key]
        assert_equal OK [r -1 cluster failover takeover]
        cluster_wait_role 1 master
        cluster_wait_role 0 slave
        wait_for_condition 800 25 {[string match *master_link_status:up* [r -0 info replication]]} else {fail "no link"}
        same_data -1 -0
        wait_for_condition 800 25 {![catch {r -1 get key} value]} else {fail "no service: $value"}
        assert_equal 1 $value
    }
}
}
