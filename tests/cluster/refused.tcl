# cluster-refused-timeout: a node whose process has ended fails without waiting for the node timeout.

start_server {tags {cluster} overrides {cluster-enabled yes}} {
    test {cluster-refused-timeout is off by default} {
        assert_equal 0 [lindex [r config get cluster-refused-timeout] 1]
        assert_error *cluster-refused-timeout* {r config set cluster-refused-timeout -1}
        assert_equal OK [r config set cluster-refused-timeout 300]
    }
}

# The node timeout is ten minutes: nothing but the refused connections can be the reason.
start_cluster {3 3 {tags {cluster needs:config} overrides {cluster-node-timeout 600000 cluster-refused-timeout 300 repl-diskless-sync-delay 0}}} {
    test {a replica takes over from a primary whose process has ended} {
        set gone [cluster_id 0]
        r set b 1
        r wait 1 0
        with_node 0 stop_server
        cluster_wait_role 3 master
        cluster_wait_ok {1 2 3 4 5}
        assert_equal 1 [r -3 get b]
        foreach i {1 2 3 4 5} {assert_equal {master fail} [cluster_flags -$i $gone]}
        with_node 0 continue_server
        cluster_wait_role 0 slave
        foreach i {1 2 3 4 5} {wait_for_condition 600 50 {[cluster_flags -$i $gone] eq "slave"}}
        cluster_wait_ok
        cluster_wait_agree
    }

    test {a primary without a replica is used again as soon as it is back} {
        set gone [cluster_id 1]
        set replica [cluster_id 4]
        with_node 4 stop_server
        foreach i {0 2 3 5} {cluster_wait_flag -$i $replica fail}
        with_node 1 stop_server
        foreach i {0 2 3 5} {wait_for_condition 600 50 {[cluster_field -$i cluster_state] eq "fail"}}
        with_node 1 continue_server
        cluster_wait_ok {0 1 2 3 5}
        foreach i {0 2 3 5} {assert_equal master [cluster_flags -$i $gone]}
        with_node 4 continue_server
        cluster_wait_role 4 slave
        cluster_wait_ok
    }
}
