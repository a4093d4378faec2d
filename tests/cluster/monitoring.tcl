# What monitoring sees of a cluster: fields of CLUSTER INFO that Valkey does not have, and metrics.

start_cluster {3 1 {tags {cluster tls:skip needs:config} overrides {cluster-refused-timeout 300 save {} appendonly no}}} {
    test {/metrics has the state, slots, epochs, links and messages of the node} {
        for {set try 0} {[catch {r config set metrics-port [set port [free_port]]} message]} {incr try} {
            if {$try == 10} {fail $message}
        }
        set s [raw_connect 127.0.0.1 $port]
        raw_send $s "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        set text [raw_rest $s]
        raw_close $s
        foreach line {
            "redis_cluster_state 1" "redis_cluster_slots_assigned 16384" "redis_cluster_slots_ok 16384" "redis_cluster_slots_fail 0"
            "redis_cluster_known_nodes 4" "redis_cluster_size 3" "redis_cluster_my_slots 5461" "redis_cluster_failure_reports 0"
            "redis_cluster_links_outbound 3" "redis_cluster_links_inbound 3" "redis_cluster_unsynced_primaries_fail 0"
            "redis_cluster_my_epoch 1"
        } {
            if {![string match "*\n$line\n*" $text]} {fail "no line $line: [regexp -all -inline -line {^redis_cluster.*} $text]"}
        }
        foreach pattern {
            {redis_cluster_messages_by_type_sent_total\{type="ping"\} [1-9]} {redis_cluster_messages_by_type_received_total\{type="pong"\} [1-9]}
            {redis_cluster_messages_sent_total [1-9]} {redis_cluster_bytes_received_total [1-9]} {redis_mem_cluster_links_bytes [1-9]}
        } {
            if {![regexp -line ^$pattern $text]} {fail "no line $pattern: [regexp -all -inline -line {^redis_cluster.*} $text]"}
        }
        assert_equal 1 [regexp -all -line {^# TYPE redis_cluster_messages_by_type_sent_total counter$} $text]
    }

    test {a primary that fails before its replica has got its data is reported} {
        # The replica restarts without data, and cannot log in to get them.
        r config set requirepass secret
        with_node 3 restart_server
        foreach i {1 2} {wait_for_condition 600 50 {[lindex [cluster_line -$i [cluster_id 3]] 7] eq "connected" && "fail" ni [cluster_flags -$i [cluster_id 3]]}}
        # Its PINGs have told that it has none.
        foreach i {1 2} {wait_for_condition 600 50 {[lsearch -inline -index 0 [lmap n [concat {*}[lmap shard [r -$i cluster shards] {dict get $shard nodes}]] {list [dict get $n role] [dict get $n replication-offset]}] replica] eq "replica 0"}}
        with_node 0 stop_server
        foreach i {1 2} {
            wait_for_condition 600 50 {[cluster_field -$i cluster_unsynced_primaries_fail] == 1}
            assert_match "*# Primary * has failed before any of its replicas has got its data: a failover loses all keys of its 5461 slots.*" [server_log -$i]
        }
    }
}
