# cluster-seeds, and the host names that nodes have announced: nodes that restart with new addresses find each other.

# Stops all nodes, sets directives of node i by the list that `code` returns, and starts all.
proc restart_all {code} {
    for {set i 0} {$i < $::cluster_size} {incr i} {with_node $i stop_server}
    for {set i 0} {$i < $::cluster_size} {incr i} {
        upvar #0 [lindex $::servers $i] node
        set node(settings) [dict merge $node(settings) [apply [list i $code] $i]]
        with_node $i continue_server
    }
}

proc all_settled {} {
    for {set i 0} {$i < $::cluster_size} {incr i} {
        if {[cluster_field -$i cluster_known_nodes] != $::cluster_size} {return 0}
        foreach line [split [string trim [r -$i cluster nodes]] \n] {
            if {[string match *fail* [lindex $line 2]] || [string match *handshake* $line] || [lindex $line 7] ne "connected"} {return 0}
        }
    }
    return 1
}

proc wait_settled {} {
    wait_for_condition 1200 50 {[all_settled]} else {fail "not settled: [r cluster nodes]"}
    cluster_wait_ok
    cluster_wait_agree
}

proc ids {} {
    set ids {}
    for {set i 0} {$i < $::cluster_size} {incr i} {lappend ids [cluster_id $i]}
    return $ids
}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-seeds {a:1 [::1]:7000@7001}}} {
    test {cluster-seeds is a list of HOST:PORT or HOST:PORT@BUSPORT} {
        assert_equal {a:1 [::1]:7000@7001} [lindex [r config get cluster-seeds] 1]
        foreach seeds {a.example:6379 {::1:6379 10.0.0.1:7000@17001} {}} shown {a.example:6379 {[::1]:6379 10.0.0.1:7000@17001} {}} {
            assert_equal OK [r config set cluster-seeds $seeds]
            assert_equal $shown [lindex [r config get cluster-seeds] 1]
        }
        r config set cluster-seeds b:2
        foreach wrong {a a: a:0 a:x :1 a:60000 a:65536@1 a:1@0 a:1@ {c:3 d} [:1 a\tb:1} {
            assert_error "*Invalid cluster seed*" {r config set cluster-seeds $wrong}
        }
        assert_equal b:2 [lindex [r config get cluster-seeds] 1]
    }

    test {CONFIG REWRITE writes cluster-seeds} {
        r config set cluster-seeds {a:1 b:2@3}
        r config rewrite
        assert_match "*\ncluster-seeds a:1 b:2@3\n*" [file_text [srv config]]
    } {needs:config}

    test {a node that knows no other one does not join the cluster of its seeds} {
        assert_equal 1 [cluster_field cluster_known_nodes]
    }
}

start_cluster {3 3 {tags {cluster needs:config} overrides {cluster-node-timeout 4000 save {} appendonly no}}} {
    test {nodes that all have new ports find each other at the seeds} {
        set before [ids]
        set ::seed_ports [list [free_port] [free_port] [free_port] [free_port]]
        restart_all {
            lassign $::seed_ports port0 bus0 port1 bus1
            # Node 0 and the last one are the seeds; the other ports are found by their PINGs.
            set own [dict create port [switch $i 0 {set port0} 5 {set port1} default {free_port}] \
                cluster-port [switch $i 0 {set bus0} 5 {set bus1} default {free_port}]]
            return [dict merge $own [dict create cluster-seeds "127.0.0.1:$port0@$bus0 localhost:$port1@$bus1 127.0.0.1:1@1"]]
        }
        wait_settled
        assert_equal $before [ids]
        for {set i 0} {$i < 6} {incr i} {assert_equal 1 [llength [lsearch -all [cluster_line [cluster_id $i]] 127.0.0.1:[srv -$i port]@*]]}
        # The dataset follows: replicas have found their primaries.
        foreach i {3 4 5} {cluster_wait_role $i slave}
    }

    test {nodes that have exchanged their ports find each other at the seeds} {
        set before [ids]
        set ::old_ports {}
        for {set i 0} {$i < 6} {incr i} {
            upvar #0 [lindex $::servers $i] node
            lappend ::old_ports [list [srv -$i port] [dict get $node(settings) cluster-port]]
        }
        restart_all {
            lassign [lindex $::old_ports [expr {($i + 1) % 6}]] port bus
            return [dict create port $port cluster-port $bus]
        }
        wait_settled
        assert_equal $before [ids]
    }
}

start_cluster {2 1 {tags {cluster needs:config} overrides {cluster-node-timeout 4000 cluster-announce-ip 127.0.0.2
    cluster-announce-hostname localhost bind {127.0.0.1 127.0.0.2 -::1} save {} appendonly no}}} {
    test {nodes that have new addresses are found by the host names that they have announced} {
        assert_match "*127.0.0.2:[srv -1 port]@*,localhost *" [r cluster nodes]
        set before [ids]
        restart_all {return {cluster-announce-ip {} bind {127.0.0.1 -::1}}}
        wait_settled
        assert_equal $before [ids]
        assert_equal 0 [string match *127.0.0.2:[srv -1 port]@* [r cluster nodes]]
    }
}
