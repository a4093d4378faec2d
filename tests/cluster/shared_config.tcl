# SPDX-License-Identifier: BSD-3-Clause
#
# cluster-shared-config: directives that one node sets, all have.

set secret [string repeat 0123456789abcdef 4]
# slowlog-max-len is another name of the second one.
set names {client-output-buffer-limit commandlog-slow-execution-max-len maxmemory-policy notify-keyspace-events}
set options [list tags {cluster needs:config} overrides [list cluster-bus-secret $secret cluster-shared-config [join $names] cluster-node-timeout 4000 repl-diskless-sync-delay 0 save {}]]

proc value {i name} {return [lindex [r -$i config get $name] 1]}
proc all_have {nodes name expected} {
    foreach i $nodes {
        wait_for_condition 600 50 {[value $i $name] eq $expected} else {
            fail "node $i: $name is [value $i $name], expected $expected\n[r -$i cluster info]"
        }
    }
}

start_cluster [list 2 2 $options] {
    test {a value that any node sets, all have; others are a node's own} {
        for {set i 0} {$i < 4} {incr i} {
            r -$i config set slowlog-max-len [expr {100 + $i}] slowlog-log-slower-than [expr {1000 + $i}]
            all_have {0 1 2 3} slowlog-max-len [expr {100 + $i}]
        }
        for {set i 0} {$i < 4} {incr i} {assert_equal [expr {1000 + $i}] [value $i slowlog-log-slower-than]}
        r -1 config set maxmemory-policy allkeys-lru notify-keyspace-events KEA client-output-buffer-limit "normal 5000000 0 0 pubsub 60000 50000 10"
        all_have {0 1 2 3} maxmemory-policy allkeys-lru
        all_have {0 1 2 3} notify-keyspace-events AKE
        all_have {0 1 2 3} client-output-buffer-limit [value 1 client-output-buffer-limit]
        assert_match "normal 5000000 0 0 *" [value 3 client-output-buffer-limit]
        # Another name of the directive.
        r -2 config set commandlog-slow-execution-max-len 150
        all_have {0 1 2 3} slowlog-max-len 150
    }

    test {nodes with equal values have equal digests} {
        r -0 config set slowlog-max-len 200
        all_have {0 1 2 3} slowlog-max-len 200
        foreach i {0 1 2 3} {assert_equal 0 [cluster_field -$i cluster_shared_unapplied]}
        assert_equal 1 [llength [lsort -unique [lmap i {0 1 2 3} {cluster_field -$i cluster_shared_digest}]]]
    }

    test {a node that was away, or begins with another value in its file, gets what was set} {
        with_node 3 stop_server
        upvar #0 [lindex $::servers 3] node
        set node(settings) [dict merge $node(settings) [list slowlog-max-len 7]]
        r -0 config set slowlog-max-len 300 maxmemory-policy volatile-ttl
        with_node 3 continue_server
        all_have {0 1 2 3} slowlog-max-len 300
        all_have {0 1 2 3} maxmemory-policy volatile-ttl
        # Its own copy of what is shared is enough: nobody is there to ask.
        with_node 3 stop_server
        foreach i {0 1 2} {send_signal STOP [srv -$i pid]}
        try {
            with_node 3 continue_server
            assert_equal 300 [value 3 slowlog-max-len]
        } finally {foreach i {0 1 2} {send_signal CONT [srv -$i pid]}}
        cluster_wait_ok
    }

    test {a directive that is taken from the list of a node is its own again} {
        r -2 config set cluster-shared-config "slowlog-max-len"
        r -0 config set maxmemory-policy noeviction slowlog-max-len 400
        all_have {0 1 3} maxmemory-policy noeviction
        all_have {0 1 2 3} slowlog-max-len 400
        assert_equal volatile-ttl [value 2 maxmemory-policy]
        r -2 config set maxmemory-policy allkeys-lfu
        r -0 config set slowlog-max-len 401
        all_have {0 1 2 3} slowlog-max-len 401
        assert_equal noeviction [value 0 maxmemory-policy]
        r -2 config set cluster-shared-config [join $names]
        all_have {2} maxmemory-policy noeviction
        r -2 config set cluster-shared-config ""
        wait_for_condition 600 50 {[cluster_field -0 cluster_shared_not_covered] eq [cluster_id 2]}
        assert {![string match *cluster_shared* [r -2 cluster info]]}
        r -2 config set cluster-shared-config [join $names]
        wait_for_condition 600 50 {[cluster_field -0 cluster_shared_not_covered] eq ""}
    }

    test {directives that cannot be shared are refused, and the list stays} {
        foreach {name fault} {
            port "it is about one node"
            nothing "there is no such directive"
            databases "it can be set only at the start"
            requirepass "it is a secret"
            dir "it is about one node"
            tls-cert-file "it is about one node"
            cluster-shared-acl "it is about one node"
            user "there is no such directive"
            cluster-announce-ip "it is about one node"
            module.directive "it belongs to a module"
        } {
            assert_error "ERR CONFIG SET failed*'$name' cannot be shared: $fault" {r config set cluster-shared-config "slowlog-max-len $name"}
        }
        assert_equal [join $names] [value 0 cluster-shared-config]
        r config set cluster-shared-config "SLOWLOG-MAX-LEN slowlog-max-len [join $names]"
        assert_equal [join $names] [value 0 cluster-shared-config]
    }

    test {after a partition all have the later value} {
        foreach i {0 1 2 3} {
            r -$i config set cluster-node-timeout 60000
            r -$i debug drop-cluster-packet-filter -2
        }
        try {
            foreach i {0 1 2 3} {
                set now [clock milliseconds]
                wait_for_condition 600 5 {[clock milliseconds] > $now + 2}
                r -$i config set slowlog-max-len [expr {500 + $i}]
            }
            foreach i {0 1 2 3} {assert_equal [expr {500 + $i}] [value $i slowlog-max-len]}
        } finally {foreach i {0 1 2 3} {r -$i debug drop-cluster-packet-filter -1}}
        all_have {0 1 2 3} slowlog-max-len 503
        wait_for_condition 600 50 {[cluster_field -0 cluster_shared_conflicts] > 0}
        assert_match "*The shared directive 'commandlog-slow-execution-max-len' was changed on nodes*" [server_log -0]
    }

    test {CONFIG REWRITE writes what is in effect} {
        r -0 config set slowlog-max-len 600
        all_have {1} slowlog-max-len 600
        r -1 config rewrite
        assert_match "*-max-len 600*" [file_text [lindex [regexp -inline {config_file:([^\r]*)} [r -1 info server]] 1]]
    }
}
