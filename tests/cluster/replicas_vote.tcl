# cluster-replicas-vote: a cluster with fewer than three primaries fails over by itself.

proc voters_wait {rule count nodes} {
    foreach i $nodes {
        wait_for_condition 1200 50 {[cluster_field -$i cluster_voters_rule] eq $rule && [cluster_field -$i cluster_voters] == $count} else {
            fail "voters of node $i: [r -$i cluster info]"
        }
    }
}

start_server {tags {cluster} overrides {cluster-enabled yes}} {
    test {cluster-replicas-vote is off by default} {
        assert_equal no [lindex [r config get cluster-replicas-vote] 1]
        assert {![string match *cluster_voters* [r cluster info]]}
    }
}

set settings {cluster-replicas-vote yes cluster-node-timeout 2000 repl-diskless-sync-delay 0}

start_cluster [list 1 2 [list tags {cluster needs:config} overrides $settings]] {
    test {a single shard: all nodes vote} {
        voters_wait all 3 {0 1 2}
    }

    test {a single shard: the directive is changed while the nodes work} {
        r config set cluster-replicas-vote no
        voters_wait owners 1 {1 2}
        wait_for_condition 600 50 {![string match *cluster_voters* [r cluster info]]}
        r config set cluster-replicas-vote yes
        voters_wait all 3 {0 1 2}
    }

    test {a single shard: a replica takes over from a primary whose process has ended} {
        r set key value
        assert_equal 2 [r wait 2 0]
        with_node 0 stop_server
        wait_for_condition 600 50 {[lindex [r -1 role] 0] eq "master" || [lindex [r -2 role] 0] eq "master"}
        set new [expr {[lindex [r -1 role] 0] eq "master" ? 1 : 2}]
        cluster_wait_role [expr {3 - $new}] slave
        cluster_wait_ok {1 2}
        assert_equal value [r -$new get key]
        assert_equal OK [r -$new set key more]
        foreach i {1 2} {r -$i config set cluster-refused-timeout 300} ;# the rest waits less
    }

    test {a single shard: one of three nodes refuses requests, also after a restart} {
        set new [expr {[lindex [r -1 role] 0] eq "master" ? 1 : 2}]
        set other [expr {3 - $new}]
        with_node $other stop_server
        wait_for_condition 600 50 {[cluster_field -$new cluster_state] eq "fail"}
        assert_error CLUSTERDOWN* {r -$new set key less}
        with_node $new stop_server
        with_node $new continue_server
        # It has looked for the others when it suspects them.
        wait_for_condition 600 50 {[llength [lsearch -all [r -$new cluster nodes] *fail*]] == 2}
        assert_equal fail [cluster_field -$new cluster_state]
        assert_equal 3 [cluster_field -$new cluster_voters]
        with_node 0 continue_server
        cluster_wait_role 0 slave
        cluster_wait_ok [list 0 $new]
    }

    test {a single shard: a forgotten node votes no more} {
        set other [expr {[catch {r -1 ping}] ? 1 : 2}]
        set nodes [list 0 [expr {3 - $other}]]
        wait_for_condition 600 50 {[regexp -line {^(\w+) .*,fail } [r cluster nodes] line gone]}
        foreach i $nodes {cluster_wait_flag -$i $gone fail}
        r cluster forget $gone ;# it tells the other one
        voters_wait all 2 $nodes
        cluster_wait_ok $nodes
    }

    start_server [list overrides [list cluster-enabled yes cluster-node-timeout 2000 cluster-port [free_port]]] {
        test {a single shard: a node without the directive ends it until it is forgotten} {
            # It is number 0 now, and the others follow.
            set nodes [list 1 [expr {[catch {r -2 ping}] ? 3 : 2}]]
            set id [cluster_id 0]
            cluster_meet 1 0
            voters_wait owners 1 $nodes
            assert {![string match *cluster_voters* [r cluster info]]}
            wait_for_condition 600 50 {[string match "*node $id*does not have it*" "[server_log -1][server_log -2][server_log -3]"]}
            foreach i $nodes {r -$i cluster forget $id}
            voters_wait all 2 $nodes
        }
    }
}
