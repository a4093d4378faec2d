# cluster-replica-priority: which replica of a failed primary is elected first.

start_server {tags {cluster} overrides {cluster-enabled yes}} {
    test {cluster-replica-priority: default, range, DEBUG and the file} {
        assert_equal {cluster-replica-priority 0} [r config get cluster-replica-priority]
        assert_error "*argument must be between 0 and 2147483647 inclusive*" {r config set cluster-replica-priority -1}
        set id [r cluster myid]
        assert_equal 0 [r debug cluster-replica-priority $id]
        assert_error "ERR Unknown node x" {r debug cluster-replica-priority x}
        assert {![string match *replica-priority* [file_text [srv dir]/nodes.conf]]}
        r config set cluster-replica-priority 2147483647
        assert_equal 2147483647 [r debug cluster-replica-priority $id]
        wait_for_condition 100 20 {[string match "*,replica-priority=2147483647,*" [file_text [srv dir]/nodes.conf]]}
        r config set cluster-replica-priority 0
        wait_for_condition 100 20 {![string match *replica-priority* [file_text [srv dir]/nodes.conf]]}
    }

    test {cluster-replica-priority of other nodes is read from the file} {
        set id [string repeat a 40]
        restart_as [list [node_line [r cluster myid] [srv port] myself,master] [node_line $id 7001 master - 2 {} ",replica-priority=7"]]
        assert_equal 7 [r debug cluster-replica-priority $id]
    }
}

start_server {tags {}} {
    test {DEBUG CLUSTER-REPLICA-PRIORITY without a cluster} {
        assert_error "ERR Debug option only available for cluster mode enabled setup!" {r debug cluster-replica-priority x}
    }
}

start_cluster {3 2 {tags {cluster needs:config} overrides {repl-diskless-sync-delay 0 cluster-node-timeout 2000}}} {
    test {the replica with the lowest priority is elected} {
        assert_equal OK [r -4 cluster replicate [cluster_id 0]]
        cluster_wait_role 4 slave
        # Without priorities the one with the smaller id would be.
        set best [expr {[cluster_id 3] < [cluster_id 4] ? 4 : 3}]
        set other [expr {7 - $best}]
        r -$other config set cluster-replica-priority 9
        r -$best config set cluster-replica-priority 2
        foreach i {1 2 3 4} {
            wait_for_condition 400 50 {[r -$i debug cluster-replica-priority [cluster_id $best]] == 2
                && [r -$i debug cluster-replica-priority [cluster_id $other]] == 9}
        }
        wait_for_condition 200 50 {[string match *,replica-priority=9,* [file_text [srv -1 dir]/nodes.conf]]}
        r set "{06S}key" value
        assert_equal 2 [r wait 2 5000]
        with_node 0 stop_server
        wait_for_condition 600 50 {[lindex [r -$best role] 0] eq "master"}
        assert_match "*Start of election delayed for * milliseconds (rank #0, *, replica priority 2)*" [server_log -$best]
        cluster_wait_role $other slave
        assert_equal value [r -$best get "{06S}key"]
    }

    test {a priority that is 0 again is not told any more} {
        r -1 config set cluster-replica-priority 5
        wait_for_condition 400 50 {[r -2 debug cluster-replica-priority [cluster_id 1]] == 5}
        r -1 config set cluster-replica-priority 0
        wait_for_condition 400 50 {[r -2 debug cluster-replica-priority [cluster_id 1]] == 0}
        assert {![string match {*unknown extension*} [server_log -2]]}
    }
}
