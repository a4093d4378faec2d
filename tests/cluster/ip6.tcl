# A cluster whose nodes know each other by addresses of IPv6.

if {![file exists /proc/net/if_inet6] || [catch {close [socket -server {} -myaddr ::1 0]}]} {
    skip_tests {test {the bus over IPv6} {}}
    return
}

proc node_options {} {
    return [list tags {cluster tls:skip needs:config} overrides [dict merge $::cluster_defaults [list cluster-port [free_port] bind {127.0.0.1 ::1} \
        repl-diskless-sync-delay 0]]]
}

start_server [node_options] {
start_server [node_options] {
start_server [node_options] {
start_server [node_options] {
    set ::cluster_size 4
    test {nodes meet at addresses of IPv6} {
        foreach i {1 2 3} {cluster_meet 0 $i ::1}
        foreach i {0 1 2 3} {
            wait_for_condition 600 50 {[cluster_field -$i cluster_known_nodes] == 4 && ![string match *handshake* [r -$i cluster nodes]]}
        }
        foreach i {0 1 2} {
            r -$i cluster addslotsrange [expr {16384 * $i / 3}] [expr {16384 * ($i + 1) / 3 - 1}]
        }
        cluster_wait_ok
        cluster_wait_agree
        assert_match "*Successfully completed handshake with [cluster_id 1] (?::1?:[srv -1 port])*" [server_log]
        foreach i {0 1 2 3} {foreach k {0 1 2 3} {
            wait_for_condition 600 50 {[string match "::1:[srv -$k port]@[lindex [r -$k config get cluster-port] 1]*" [lindex [cluster_line -$i [cluster_id $k]] 1]]}
        }}
    }

    test {redirects and CLUSTER SLOTS have addresses of IPv6} {
        assert_error "MOVED 15495 ::1:[srv -2 port]" {r get a}
        assert_equal ::1 [lindex [r cluster slots] 0 2 0]
    }

    test {a replica follows its primary over IPv6, and takes over} {
        r -3 cluster replicate [cluster_id 0]
        cluster_wait_role 3 slave
        assert_equal ::1 [lindex [r -3 role] 1]
        foreach i {0 1 2 3} {cluster_wait_flag -$i [cluster_id 3] slave}
        wait_for_condition 600 50 {[lindex [r -3 role] 3] eq "connected"}
        assert_equal OK [r -3 cluster failover]
        cluster_wait_role 3 master
        cluster_wait_role 0 slave
        cluster_wait_agree
    }

    test {addresses of IPv6 are read from the file} {
        with_node 1 restart_server
        cluster_wait_ok
        cluster_wait_agree
        assert_match "*::1:[srv -1 port]@*" [r -1 cluster nodes]
        assert_match "::1:[srv -3 port]@*" [lindex [cluster_line -1 [cluster_id 3]] 1]
    }
}
}
}
}
