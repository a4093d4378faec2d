# Three primaries with a replica each: what they report, how replicas serve, manual failovers.

start_cluster {3 3 {tags {cluster} overrides {repl-diskless-sync-delay 0}}} {
    test {all nodes report the same slots, replicas and shards} {
        for {set i 0} {$i < 6} {incr i} {
            wait_for_condition 200 50 {[llength [r -$i cluster shards]] == 3}
            assert_equal {6 16384 3} [lmap name {known_nodes slots_assigned size} {cluster_field -$i cluster_$name}]
        }
        wait_for_condition 200 50 {[lmap range [r cluster slots] {llength $range}] eq {4 4 4}}
        # A replica is online once it has told its offset.
        wait_for_condition 200 50 {[lmap shard [r cluster shards] {
            list {*}[lmap node [dict get $shard nodes] {list [dict get $node role] [dict get $node health]}] [llength [dict get $shard slots]]
        }] eq [lrepeat 3 {{master online} {replica online} 2}]}
        # A PONG may arrive between the two reports.
        wait_for_condition 200 50 {[list [cluster_line [cluster_id 3]]] eq [r cluster replicas [cluster_id 0]]}
    }

    test {CLUSTER LINKS has two links with every other node} {
        wait_for_condition 200 50 {[llength [set links [r cluster links]]] == 10}
        for {set i 1} {$i < 6} {incr i} {
            set id [cluster_id $i]
            set directions {}
            foreach link $links {
                assert_equal {direction node create-time events send-buffer-allocated send-buffer-used} [dict keys $link]
                if {[dict get $link node] eq $id} {lappend directions [dict get $link direction]}
            }
            assert_equal {from to} [lsort $directions]
        }
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed cluster links] 1 0 0]
        assert_error "ERR wrong number of arguments for 'cluster|links' command" {r cluster links x}
        assert_equal 10 [info_field cluster_connections]
        assert {[info_field mem_cluster_links] > 0}
        assert {[dict get [r memory stats] cluster.links] > 0}
    }

    test {CLUSTER INFO counts messages and bytes, CONFIG RESETSTAT clears them} {
        foreach direction {sent received} {
            set all 0
            foreach line [split [r cluster info] \r\n] {
                if {[regexp "^cluster_stats_messages_(\\w+)_$direction:(\\d+)$" $line match type count]} {
                    assert {$count > 0}
                    incr all $count
                    lappend types($direction) $type
                }
            }
            assert {"ping" in $types($direction) && "pong" in $types($direction)}
            assert {$all > 0 && $all <= [cluster_field cluster_stats_messages_$direction]}
            assert {[cluster_field cluster_stats_bytes_$direction] > 2256 * $all / 10}
        }
        assert {"meet" in $types(sent)}
        r config resetstat
        assert_equal 0 [string match *messages_meet_sent* [r cluster info]]
        assert_match "*# Cluster Info*cluster_state:ok*cluster_stats_bytes_sent:*" [r info cluster_info]
    }

    test {CLUSTER FAILOVER refuses words that it does not know, and primaries} {
        foreach words {x {a b} {a b c d} {force x} {force replicaid x}} {
            assert_error "ERR syntax error" {r cluster failover {*}$words}
            assert_error "ERR syntax error" {r -3 cluster failover {*}$words}
        }
        foreach words {{} force takeover {force takeover}} {
            assert_error "ERR You should send CLUSTER FAILOVER to a replica" {r cluster failover {*}$words}
        }
    }

    test {CLUSTER REPLICATE refuses itself, replicas and nodes with slots} {
        assert_error "ERR Unknown node x" {r cluster replicate x}
        assert_error "ERR Can't replicate myself" {r cluster replicate [cluster_id 0]}
        assert_error "ERR I can only replicate a master, not a replica." {r cluster replicate [cluster_id 3]}
        assert_error "ERR To set a master the node must be empty and without assigned slots." {r cluster replicate [cluster_id 1]}
        assert_equal OK [r cluster replicate no one]
        assert_equal OK [r -3 cluster replicate [cluster_id 0]]
        foreach words {{no two} {a b c}} {
            assert_error "ERR unknown subcommand or wrong number of arguments for 'replicate'. Try CLUSTER HELP." \
                {r cluster replicate {*}$words}
        }
    }

    test {a replica redirects, and serves reads after READONLY} {
        r -0 set b 7
        assert_error "MOVED 3300 127.0.0.1:[srv port]" {r -3 get b}
        assert_equal OK [r -3 readonly]
        r wait 1 0
        assert_equal 7 [r -3 get b]
        assert_error "MOVED 3300 127.0.0.1:[srv port]" {r -3 set b 8}
        assert_equal 7 [r -3 eval {return redis.call('get', KEYS[1])} 1 b]
        assert_equal {7 7 1} [list [r -3 eval {return redis.call('get', 'b')} 0] [r -3 eval_ro {return redis.call('get', 'b')} 1 b] [r -3 exists b]]
        foreach script {{redis.call('set', 'b', 1)} {redis.call('get', 'a')}} {
            assert_error "ERR Attempted to access a non local key in a cluster node script: *" {r -3 eval $script 0}
        }
        assert_error "MOVED 3300 *" {r -3 eval "#!lua\nreturn 1" 1 b}
        assert_equal 1 [r -3 eval "#!lua flags=no-writes\nreturn 1" 1 b]
        foreach command {{sort b} {blpop b 0} {getex b} {bitfield b get u8 0} {copy b x{b}}} {
            assert_error "MOVED 3300 *" {r -3 {*}$command}
        }
        foreach command {{get a} {watch a} {object encoding a} {spublish a x} {ssubscribe a}} {assert_error "MOVED 15495 *" {r -3 {*}$command}}
        assert_error "READONLY *" {r -3 cluster flushslot 3300}
        assert_equal 1 [r -3 cluster countkeysinslot 3300]
        assert_equal OK [r -3 readwrite]
        assert_error "MOVED 3300 127.0.0.1:[srv port]" {r -3 get b}
    }

    test {a transaction of reads runs on a replica after READONLY, shard channels without it} {
        r -3 readonly
        r -3 multi
        r -3 get b
        assert_equal 7 [r -3 exec]
        r -3 multi
        r -3 get b
        assert_error "MOVED 3300 *" {r -3 set b 1}
        assert_error "EXECABORT *" {r -3 exec}
        r -3 reset
        r -3 hello $::resp_version
        assert_error "MOVED 3300 *" {r -3 get b}
        assert_equal 0 [r -3 spublish b x]
        r -3 multi
        r -3 spublish b x
        assert_equal 0 [r -3 exec]
        r -3 multi
        r -3 ping
        assert_equal PONG [r -3 exec]
    }

    test {PUBLISH reaches the subscribers of all nodes, SPUBLISH those of the shard} {
        set plain {}
        for {set i 0} {$i < 6} {incr i} {
            set client [respConnect [srv -$i host] [srv -$i port] 2]
            lappend ::test_clients $client
            $client subscribe news
            lappend plain $client
        }
        set shard {}
        foreach i {0 3} {
            set client [respConnect [srv -$i host] [srv -$i port] 2]
            lappend ::test_clients $client
            $client ssubscribe s{b}
            lappend shard $client
        }
        assert_equal 1 [r -4 publish news hello]
        foreach client $plain {assert_equal {message news hello} [$client -read]}
        # The reply has the receivers of this node alone; a replica's message reaches its primary.
        assert_equal 1 [r -3 spublish s{b} hello]
        foreach client $shard {assert_equal {smessage s{b} hello} [$client -read]}
        assert_equal 1 [r spublish s{b} again]
        foreach client $shard {assert_equal {smessage s{b} again} [$client -read]}
        assert_error "MOVED 3300 *" {r -1 spublish s{b} x}
        assert {[cluster_field -4 cluster_stats_pubsub_bytes_sent] > 0}
        assert {[cluster_field -5 cluster_stats_pubsub_bytes_received] > 0}
        assert_match "*cluster_stats_messages_publishshard_sent:*" [r cluster info]
        assert_equal 0 [string match *publishshard* [r -1 cluster info]]
    }

    test {FORGET on all nodes removes a node, which others do not bring back} {
        set id [cluster_id 5]
        foreach i {0 1 3 4} {assert_equal OK [r -$i cluster forget $id]}
        assert_equal OK [r -2 cluster forget $id]
        foreach i {0 1 2 3 4} {assert_equal {} [cluster_line -$i $id]}
        assert_equal OK [r cluster forget $id]
        assert_equal 5 [cluster_field cluster_known_nodes]
    }
}
