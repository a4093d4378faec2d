# cluster-bus-secret: nodes that do not know it stay out, and strangers learn nothing.

proc node_options {secret} {
    set overrides [dict merge $::cluster_defaults [list cluster-port [free_port] cluster-node-timeout 1000 cluster-require-full-coverage no]]
    if {$secret ne ""} {dict set overrides cluster-bus-secret $secret}
    return [list tags {cluster needs:config} overrides $overrides]
}

proc known {index} {return [cluster_field -$index cluster_known_nodes]}

set shared [string repeat 0123456789abcdef 4]

# Node 0 and 1 have the secret, 2 has none, 3 another one.
start_server [node_options [string reverse $shared]] {
start_server [node_options {}] {
start_server [node_options $shared] {
start_server [node_options $shared] {
    test {nodes with the same secret form a cluster} {
        cluster_meet 0 1
        foreach i {0 1} {
            wait_for_condition 200 50 {[known $i] == 2 && ![string match *handshake* [r -$i cluster nodes]]}
        }
        cluster_wait_flag -0 [cluster_id 1] master
        foreach link [r cluster links] {assert_equal [cluster_id 1] [dict get $link node]}
        assert_equal {to from} [lmap link [r cluster links] {dict get $link direction}]
        r cluster addslots [r cluster keyslot a]
        wait_for_condition 200 50 {[string match *[r cluster keyslot a]* [cluster_line -1 [cluster_id 0]]]}
    }

    test {a node without the secret, or with another one, stays out} {
        foreach {from to} {0 2 2 0 0 3 3 0 1 2 3 1} {cluster_meet $from $to}
        foreach i {0 2 3} {
            wait_for_condition 200 50 {[string match "*# Clusterbus handshake timeout *" [server_log -$i]]}
        }
        foreach i {0 1 2 3} {wait_for_condition 200 50 {![string match *handshake* [r -$i cluster nodes]]}}
        foreach {i count} {0 2 1 2 2 1 3 1} {assert_equal $count [known $i]}
        assert_match "*# Cluster bus connection * closed: the other end does not know the cluster-bus-secret of this node.*" [server_log]
        # Nobody has failed for it.
        assert_equal {master} [cluster_flags -0 [cluster_id 1]]
        foreach link [r cluster links] {assert_equal [cluster_id 1] [dict get $link node]}
    }

    test {a stranger gets no message, and is disconnected} {
        set s [raw_connect [srv host] [lindex [r config get cluster-port] 1]]
        # The beginning of a PING.
        raw_send $s "RCmb" [binary format ISSS 2256 1 7000 0]
        assert_equal {} [raw_rest $s]
        set s [raw_connect [srv host] [lindex [r config get cluster-port] 1]]
        raw_send $s "RCsc\0\0\0\1" [string repeat x 32]
        assert_match "RCsc*" [raw_read $s 72]
        raw_send $s [string repeat y 32]
        assert_equal {} [raw_rest $s]
        # One that says nothing at all is not kept, either.
        set s [raw_connect [srv host] [lindex [r config get cluster-port] 1]]
        assert_equal {} [raw_rest $s]
    }

    test {the secret can be changed while the cluster runs, and does not appear in logs} {
        foreach i {0 1} {r -$i config set cluster-bus-secret changed-$shared}
        # New connections.
        set before [dict get [lindex [r cluster links] 0] create-time]
        r debug clusterlink kill all [cluster_id 1]
        wait_for_condition 200 50 {[llength [r cluster links]] == 2 && [dict get [lindex [r cluster links] 0] create-time] != $before}
        assert_equal {master} [cluster_flags -0 [cluster_id 1]]
        foreach i {0 1} {assert {![string match *$shared* [server_log -$i]]}}
    }

    test {without secrets all nodes can join} {
        foreach i {0 1 3} {r -$i config set cluster-bus-secret {}}
        cluster_meet 0 2
        cluster_meet 1 3
        foreach i {0 1 2 3} {
            wait_for_condition 200 50 {[known $i] == 4 && ![string match *handshake* [r -$i cluster nodes]]}
        }
    }
}
}
}
}
