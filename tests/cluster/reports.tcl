# CLUSTER NODES, SLOTS, SHARDS and INFO of a node that knows others from its configuration file: what is announced
# to clients, failed nodes, replicas.

proc id_of {letter} {return [string repeat $letter 40]}

proc bulk_text {reply} {
    assert_equal [expr {[resp3] ? "verbatim" : "bulk"}] [lindex $reply 0]
    return [regsub {^txt:} [lindex $reply 1] {}]
}

# A client over IPv6; skips the test where there is none.
proc connect6 {} {
    if {[catch {respConnect ::1 [srv port]} client]} {return -code error -errorcode {TEST SKIPPED} "no IPv6"}
    lappend ::test_clients $client
    return $client
}

proc shard_of {client letter} {
    foreach shard [$client cluster shards] {
        if {[dict get $shard id] eq [id_of $letter]} {return $shard}
    }
}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-node-timeout 60000 bind "127.0.0.1 -::1" availability-zone zone-a
        cluster-announce-hostname a.example cluster-require-full-coverage no}} {
    restart_as [list [node_line [id_of a] [srv port] myself,master - 1 "0-5460 5470"] \
        [node_line [id_of b] 7001 master - 2 5471-10922 ",availability-zone=zone-b,client-tcp-port=17001,client-ipv6=fe80::2,client-ipv4=10.0.0.2"] \
        [node_line [id_of c] 7003 slave [id_of b] 2] [node_line [id_of d] 7005 master,fail - 3 10923-16383] \
        [node_line [id_of e] 7007 slave,fail [id_of d] 3] [node_line [id_of f] 7009 slave,nofailover [id_of a] 1]]
    cluster_wait_ok 0

    test {CLUSTER NODES shows the address for clients, roles, failures and slots} {
        assert_match "[id_of a] *:[srv port]@[expr {[srv port] + 10000}],a.example myself,master - 0 * 1 connected 0-5460 5470" \
            [cluster_line [id_of a]]
        assert_equal "[id_of b] 10.0.0.2:17001@7002 master - 2 disconnected 5471-10922" [lreplace [cluster_line [id_of b]] 4 5]
        assert_equal "[id_of c] 127.0.0.1:7003@7004 slave [id_of b] 2 disconnected" [lreplace [cluster_line [id_of c]] 4 5]
        assert_equal {master,fail slave,fail slave,nofailover} [lmap id {d e f} {lindex [cluster_line [id_of $id]] 2}]
        assert_equal [list [cluster_line [id_of c]]] [r cluster replicas [id_of b]]
        assert_equal [r cluster nodes] [bulk_text [r -typed cluster nodes]]
    }

    test {addresses for clients depend on the family of the client} {
        set six [connect6]
        assert_error "MOVED 9189 10.0.0.2:17001" {r get key1}
        assert_error "MOVED 9189 fe80::2:17001" {$six get key1}
        assert_match "*\n[id_of b] fe80::2:17001@7002 *" \n[$six cluster nodes]
        assert_equal fe80::2 [lindex [$six cluster slots] 2 2 0]
        assert_equal {fe80::2 fe80::2} [lmap name {ip endpoint} {dict get [lindex [dict get [shard_of $six b] nodes] 0] $name}]
        assert_match "*,client-tcp-port=17001,client-ipv6=fe80::2,client-ipv4=10.0.0.2,*" [file_text [srv dir]/nodes.conf]
    }

    test {CLUSTER SLOTS: replicas that failed or have no data are left out, failed primaries are not} {
        set ranges [r cluster slots]
        assert_equal {{0 5460} {5470 5470} {5471 10922} {10923 16383}} [lmap range $ranges {lrange $range 0 1}]
        assert_equal [list [id_of a] [id_of a] [id_of b] [id_of d]] [lmap range $ranges {lindex $range 2 2}]
        assert_equal {3 3 3 3} [lmap range $ranges {llength $range}]
        assert_equal [list 10.0.0.2 17001 [id_of b] {availability-zone zone-b}] [lindex $ranges 2 2]
        assert_equal {hostname a.example availability-zone zone-a} [lindex $ranges 0 2 3]
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed cluster slots] 1 0 1 2 1 3 0]
    }

    test {CLUSTER SHARDS: roles, health, ports and slots} {
        assert_equal 3 [llength [r cluster shards]]
        set shard [shard_of r b]
        assert_equal {slots nodes id} [dict keys $shard]
        assert_equal {5471 10922} [dict get $shard slots]
        lassign [dict get $shard nodes] primary replica
        assert_equal [list id [id_of b] port 17001 ip 10.0.0.2 endpoint 10.0.0.2 role master replication-offset 0 health online \
            availability-zone zone-b] $primary
        assert_equal [list id [id_of c] port 7003 ip 127.0.0.1 endpoint 127.0.0.1 role replica replication-offset 0 health loading] $replica
        assert_equal {fail fail} [lmap node [dict get [shard_of r d] nodes] {dict get $node health}]
        assert_equal {0 5460 5470 5470} [dict get [shard_of r a] slots]
        assert_equal a.example [dict get [lindex [dict get [shard_of r a] nodes] 0] hostname]
        set reply [r -typed cluster shards]
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex $reply 1 0 0]
    }

    test {the preferred type of endpoint is that of MOVED, SLOTS and SHARDS} {
        r config set cluster-preferred-endpoint-type hostname
        assert_error "MOVED 9189 ?:17001" {r get key1}
        assert_equal [list ? 17001 [id_of b] {ip 10.0.0.2 availability-zone zone-b}] [lindex [r cluster slots] 2 2]
        assert_match {a.example * {ip * availability-zone zone-a}} [lindex [r cluster slots] 0 2]
        assert_equal ? [dict get [lindex [dict get [shard_of r b] nodes] 0] endpoint]
        r config set cluster-preferred-endpoint-type unknown-endpoint
        assert_error "MOVED 9189 :17001" {r get key1}
        assert_equal [list {} 17001 [id_of b] {ip 10.0.0.2 availability-zone zone-b}] [lindex [r cluster slots] 2 2]
        assert_match {{} * {ip * hostname a.example availability-zone zone-a}} [lindex [r cluster slots] 0 2]
        assert_equal "" [dict get [lindex [dict get [shard_of r b] nodes] 0] endpoint]
        regexp {bulk endpoint\} \{(\w+)} [r -typed cluster shards] all type
        assert_equal bulk $type
        r config set cluster-preferred-endpoint-type ip
    }

    test {CLUSTER INFO counts nodes and slots by the state of the owner} {
        foreach {name value} {state ok slots_assigned 16375 slots_ok 10914 slots_pfail 0 slots_fail 5461 nodes_pfail 0 nodes_fail 2
            voting_nodes_pfail 0 voting_nodes_fail 1 known_nodes 6 size 3 current_epoch 9 my_epoch 1} {
            assert_equal "$name $value" "$name [cluster_field cluster_$name]"
        }
        bulk_text [r -typed cluster info]
    }
}
