# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT TRACKING through cluster-gateway-port: changes at all nodes invalidate what clients of one gateway have cached.

# A client that tracks, with options.
proc tracker {args} {
    set c [gateway 0 3]
    assert_equal OK [$c client tracking on {*}$args]
    return $c
}

# The next invalidation of a client: its keys; null for everything.
proc next_invalidation {client} {
    set push [$client -push]
    assert_equal invalidate [lindex $push 0]
    return [lindex $push 1]
}

# Nothing has come before the invalidation of a key that is changed now, at the same node as `near`.
proc assert_silent {client near} {
    set marker "{$near}:marker"
    $client get $marker
    r -[owner_of $marker] set $marker [clock clicks]
    assert_equal [list $marker] [next_invalidation $client]
}

proc owner_of {key} {return [cluster_owner_of [r cluster keyslot $key]]}

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef}}} {
    foreach i {0 1} {open_gateway $i}

    # Two clients of two gateways, each told of the changes of a key at each node, and of nothing else.
    proc assert_told_once {clients prefix} {
        for {set round 0} {$round < 10} {incr round} {
            for {set i 0} {$i < 3} {incr i} {
                set key [key_of $i $prefix]
                foreach one $clients {$one get $key}
                r -$i set $key $round
                foreach one $clients {assert_equal [list $key] [next_invalidation $one]}
            }
        }
    }
    # First, while no other links than those for all requests exist: each is told of a flush.
    foreach options {{} {BCAST PREFIX pp:}} {
        test "two gateways do not pass on to each other what they hear of the other: $options" {
            set clients [list [tracker {*}$options] [gateway 1 3]]
            assert_equal OK [[lindex $clients 1] client tracking on {*}$options]
            # New links may tell once to forget everything.
            for {set i 0} {$i < 3} {incr i} {
                set key [key_of $i pp:]
                foreach one $clients {$one get $key}
                r -$i set $key first
                foreach one $clients {while {[set told [next_invalidation $one]] ne [list $key]} {assert_equal {} $told}}
            }
            assert_told_once $clients pp:
            foreach one $clients {for {set i 0} {$i < 3} {incr i} {$one get [key_of $i pp:]}}
            for {set i 0} {$i < 3} {incr i} {
                r -$i flushall
                foreach one $clients {assert_equal {} [next_invalidation $one]}
            }
            # What the table has of the keys is surplus after a flush of another node.
            foreach one $clients {
                for {set i 0} {$i < 3} {incr i} {
                    set key [key_of $i pp:]
                    $one get $key
                }
            }
            assert_told_once $clients pp:
            foreach one $clients {$one client tracking off}
            for {set i 0} {$i < 3} {incr i} {
                wait_for_condition 600 50 {[regexp {tracking_total_prefixes:0} [r -$i info stats]]}
            }
        }
    }

    test {a key that was read is invalidated once, by the next change of anybody, at each node} {
        set c [tracker]
        set other [gateway 1]
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i once]
            $c get $key
            r -$i set $key 1
            assert_equal [list $key] [next_invalidation $c]
            r -$i set $key 2
            $c get $key
            $other set $key 3
            assert_equal [list $key] [next_invalidation $c]
            $c hgetall [key_of $i hash]
            $c hset [key_of $i hash] f v
            assert_equal [list [key_of $i hash]] [next_invalidation $c]
            assert_silent $c $key
        }
    }

    test {keys of commands on several nodes, of transactions and of scripts are tracked} {
        set c [tracker]
        set keys {}
        for {set i 0} {$i < 3} {incr i} {lappend keys [key_of $i many]}
        $c mget {*}$keys
        for {set i 0} {$i < 3} {incr i} {
            r -$i set [lindex $keys $i] 1
            assert_equal [list [lindex $keys $i]] [next_invalidation $c]
        }
        for {set i 0} {$i < 3} {incr i} {
            set key [lindex $keys $i]
            $c multi
            $c get $key
            $c exec
            r -$i set $key 2
            assert_equal [list $key] [next_invalidation $c]
            $c eval {return redis.call('get', KEYS[1])} 1 $key
            r -$i set $key 3
            assert_equal [list $key] [next_invalidation $c]
            $c xread block 1 streams [key_of $i stream] 0
            r -$i xadd [key_of $i stream] * f v
            assert_equal [list [key_of $i stream]] [next_invalidation $c]
        }
    }

    test {OPTIN and OPTOUT hold for keys of all nodes} {
        set in [tracker OPTIN]
        set out [tracker OPTOUT]
        for {set i 0} {$i < 3} {incr i} {
            set a [key_of $i opta]
            set b [key_of $i optb]
            $in get $a
            $in client caching yes
            $in get $b
            $in get $a
            $out client caching no
            $out get $a
            $out get $b
            r -$i mset $a 1
            r -$i mset $b 1
            assert_equal [list $b] [next_invalidation $in]
            assert_equal [list $b] [next_invalidation $out]
        }
        $in client caching yes
        $in multi
        $in get [key_of 1 opta]
        $in exec
        $in get [key_of 1 optb]
        r -1 set [key_of 1 optb] 2
        r -1 set [key_of 1 opta] 2
        assert_equal [list [key_of 1 opta]] [next_invalidation $in]
    }

    test {NOLOOP: a client is not told of its own changes, others are, and it is told of theirs} {
        set c [tracker NOLOOP]
        set d [tracker]
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i loop]
            $c get $key
            $d get $key
            $c set $key 1
            assert_equal [list $key] [next_invalidation $d]
            # What it has written itself is cached, too.
            r -$i set $key 2
            assert_equal [list $key] [next_invalidation $c]
            $c get $key
            $c multi
            $c incr $key
            $c exec
            $c eval {return redis.call('incr', KEYS[1])} 1 $key
            r -$i set $key 9
            assert_equal [list $key] [next_invalidation $c]
        }
    }

    test {REDIRECT to a RESP2 client with a subscription} {
        set receiver [gateway 0 2]
        $receiver -send subscribe __redis__:invalidate
        $receiver -read
        set id_client [gateway 0 2]
        # The id of the receiver: CLIENT LIST is that of the node of the connection.
        set id [lindex [regexp -inline {id=(\d+) [^\n]*cmd=subscribe} [$id_client client list]] 1]
        assert_equal OK [$id_client client tracking on redirect $id]
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i redirected]
            $id_client get $key
            r -$i set $key 1
            assert_equal [list message __redis__:invalidate [list $key]] [$receiver -read]
        }
        assert_equal $id [$id_client client getredir]
    }

    test {BCAST: changes of keys with the prefixes at all nodes} {
        set c [tracker BCAST PREFIX abc PREFIX x:]
        set all [tracker BCAST]
        for {set i 0} {$i < 3} {incr i} {
            foreach key [list [key_of $i abc] [key_of $i y] [key_of $i x:]] {
                r -$i set $key 1
                assert_equal [list $key] [next_invalidation $all]
            }
            assert_equal [list [key_of $i abc]] [next_invalidation $c]
            assert_equal [list [key_of $i x:]] [next_invalidation $c]
        }
        assert_error "ERR Prefix*" {$c client tracking on bcast prefix ab}
        $c client tracking off
        $all client tracking off
        # Nobody is told any more.
        for {set i 1} {$i < 3} {incr i} {
            wait_for_condition 600 50 {[regexp {tracking_total_prefixes:0} [r -$i info stats]]}
        }
        set again [tracker BCAST PREFIX abc]
        r -1 set [key_of 1 abc] 2
        assert_equal [list [key_of 1 abc]] [next_invalidation $again]
    }

    test {BCAST with NOLOOP, and only keys that the user may read} {
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser bob on >pw ~mine* +@all}
        set c [tracker BCAST NOLOOP]
        set bob [gateway 0 3]
        $bob auth bob pw
        $bob client tracking on bcast
        for {set i 0} {$i < 3} {incr i} {
            $c set [key_of $i mine] 1
            assert_equal [list [key_of $i mine]] [next_invalidation $bob]
            r -$i set [key_of $i other] 1
            assert_equal [list [key_of $i other]] [next_invalidation $c]
        }
        for {set i 0} {$i < 3} {incr i} {r -$i acl deluser bob}
    }

    test {flushes and slots that move invalidate} {
        set c [tracker]
        set key [key_of 1 moves]
        set slot [r cluster keyslot $key]
        $c set $key 1
        $c get $key
        r -1 flushall
        assert_equal {} [next_invalidation $c]
        $c set $key 1
        $c get $key
        move_slot $slot 1 2
        assert {[next_invalidation $c] in [list [list $key] {}]}
        $c get $key
        r -2 set $key 2
        while {[next_invalidation $c] ne [list $key]} {}
        move_slot $slot 2 1
        cluster_wait_agree
    }

    test {a client that is blocked is told meanwhile} {
        set c [tracker]
        set key [key_of 2 told]
        $c get $key
        $c -send blpop [key_of 1 blocks] 0
        wait_for_condition 600 50 {[string match "*cmd=blpop*" [r -1 client list]]}
        r -2 set $key 1
        assert_equal [list $key] [next_invalidation $c]
        r -1 rpush [key_of 1 blocks] x
        assert_equal [list [key_of 1 blocks] x] [$c -read]
    }

    # A cache: `cached` has the values of keys, `asked` the keys of GETs without a reply, in their order.
    proc cache_send {s key} {
        raw_send $s "GET $key\r\n"
        lappend ::asked $key
    }
    # Reads one item, in the order of the connection; returns the keys of an invalidation, "all", or nothing for a reply.
    proc cache_read {s} {
        set words [split [string map {\r\n \n} [raw_reply $s]] \n]
        if {[lindex $words 0] ne ">2"} {
            set ::asked [lassign $::asked key]
            set ::cached($key) [lindex $words 1]
            return {}
        }
        if {[lindex $words 3] eq "_"} {
            array unset ::cached
            return all
        }
        set keys {}
        foreach {length key} [lrange $words 4 end-1] {
            unset -nocomplain ::cached($key)
            lappend keys $key
        }
        return $keys
    }
    # Reads all that nodes have sent up to now.
    proc cache_drain {s} {
        while {[llength $::asked]} {cache_read $s}
        for {set i 0} {$i < 3} {incr i} {
            set marker [key_of $i cache:marker]
            cache_send $s $marker
            while {[llength $::asked]} {cache_read $s}
            r -[owner_of $marker] incr $marker
            while {[set told [cache_read $s]] ne "all" && $marker ni $told} {}
        }
    }

    foreach options {{} {BCAST PREFIX cache:} {NOLOOP} {OPTOUT}} {
        test "a cache that follows the invalidations is never stale, while keys change and slots move: $options" {
            set s [raw_gateway]
            raw_send $s "HELLO 3\r\nCLIENT TRACKING ON $options\r\n"
            raw_reply $s
            assert_equal "+OK\r\n" [raw_reply $s]
            set writers [list [gateway 0] [gateway 1]]
            set keys {}
            for {set i 0} {$i < 3} {incr i} {lappend keys [key_of $i cache:a] [key_of $i cache:b]}
            array unset ::cached
            set ::asked {}
            set slot [r cluster keyslot [lindex $keys 2]]
            set at 1
            set compared 0
            for {set round 0} {$round < [scaled 40]} {incr round} {
                for {set n 0} {$n < 20} {incr n} {
                    set writer [lindex $writers [random_below 2]]
                    $writer -send set [lindex $keys [random_below 6]] $round.$n
                    cache_send $s [lindex $keys [random_below 6]]
                    cache_send $s [lindex $keys [random_below 6]]
                    $writer -read
                    if {$n % 3 == 0} {cache_read $s}
                }
                if {$round % 5 == 4} {
                    set to [expr {($at + 1) % 3}]
                    move_slot $slot $at $to
                    set at $to
                    cluster_wait_agree
                }
                cache_drain $s
                foreach {key value} [array get ::cached cache:\[ab\]*] {
                    assert_equal $value [r -[owner_of $key] get $key]
                    incr compared
                }
            }
            assert {$compared > 0}
            raw_close $s
            while {$at != 1} {
                set to [expr {($at + 1) % 3}]
                move_slot $slot $at $to
                set at $to
            }
            cluster_wait_agree
        }
    }

    test {BCAST: a link that ends makes all forget everything, and tells of changes again when there is a new one} {
        set c [tracker BCAST PREFIX again]
        set key [key_of 1 again]
        foreach round {1 2} {
            $c get $key
            r -1 client kill type normal skipme yes
            assert_equal {} [next_invalidation $c]
            # Once more when the new link has the prefixes: changes before that were not told of.
            wait_for_condition 600 50 {[regexp {tracking_total_prefixes:1} [r -1 info stats]]}
            r -1 set $key $round
            while {[set told [next_invalidation $c]] eq {}} {}
            assert_equal [list $key] $told
        }
    }

    test {only links may ask for tracking of what others read} {
        assert_error "NOPERM *" {r gateway track cache}
        assert_error "NOPERM *" {r gateway receivers x}
        assert_error "NOPERM *" {r gateway changed}
    }

    test {a node that ends: everything is forgotten} {
        set c [tracker]
        $c get [key_of 1 lost]
        with_node 1 {kill_server}
        assert_equal {} [next_invalidation $c]
    }
}

start_cluster {3 0 {tags {cluster needs:config tls:skip}}} {
    open_gateway 0

    test {without cluster-bus-secret what was read of other nodes is forgotten at once} {
        set c [tracker]
        set key [key_of 1]
        $c get $key
        assert_equal [list $key] [next_invalidation $c]
        $c get [key_of 0]
        r set [key_of 0] 1
        assert_equal [list [key_of 0]] [next_invalidation $c]
        assert_error "ERR *cluster-bus-secret*" {[gateway 0 3] client tracking on bcast}
    }

    test {that broadcast mode is refused is told to the client that has asked for it} {
        for {set i 0} {$i < [scaled 50]} {incr i} {
            set asks [gateway 0 3]
            set asks_too [gateway 0 3]
            set tracks [gateway 0 3]
            $asks -send client tracking on bcast prefix $i
            $asks_too -send client tracking on bcast prefix y
            $tracks -send client tracking on
            if {$i % 2} {
                assert_error "ERR *cluster-bus-secret*" {$asks -read}
                assert_error "ERR *cluster-bus-secret*" {$asks_too -read}
            }
            $asks -close
            $asks_too -close
            assert_equal OK [$tracks -read]
            $tracks -close
        }
    }
}

start_cluster {3 3 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef cluster-gateway-retry-ms 60000 repl-diskless-sync-delay 0}}} {
    open_gateway 0

    test {links to replicas make nobody forget, and know the prefixes when the replica is promoted} {
        set other [gateway 0 3]
        # Links to all nodes; those to the replicas of two shards begin again when there are prefixes.
        $other pubsub numpat
        set c [tracker]
        set before [tracker BCAST PREFIX before]
        set b [tracker BCAST PREFIX promoted]
        foreach i {3 4} {r -$i client kill type normal skipme yes}
        $other pubsub numpat
        set key [key_of 2 promoted]
        # The replica is promoted, and follows again.
        foreach {primary replica} {2 5 5 2} round {1 2} {
            $c get $key
            r -$primary set $key $round.old
            foreach one [list $c $b] {assert_equal [list $key] [next_invalidation $one]}
            assert_equal OK [r -$replica cluster failover]
            cluster_wait_role $replica master
            cluster_wait_role $primary slave
            # The gateway has heard of it: both forget what they have of the former owner.
            foreach one [list $c $b $before] {assert_equal {} [next_invalidation $one]}
            wait_for_condition 600 50 {[regexp {tracking_total_prefixes:2} [r -$replica info stats]]}
            $c get $key
            r -$replica set $key $round.new
            foreach one [list $c $b] {
                while {[set told [next_invalidation $one]] eq {}} {}
                assert_equal [list $key] $told
            }
            # Not a second time by the replica, which executes the change, too.
            wait_for_condition 600 50 {[regexp {tracking_total_prefixes:0} [r -$primary info stats]]}
            $other set [key_of 2 before] $round
            while {[set told [next_invalidation $before]] eq {}} {}
            assert_equal [list [key_of 2 before]] $told
        }
        foreach one [list $c $b $before] {$one -close}
        wait_for_condition 600 50 {[regexp {tracking_total_prefixes:0} [r -4 info stats]] && [regexp {tracking_total_prefixes:0} [r -2 info stats]]}
    }

    test {a link of a node to itself has no prefixes, and the node can become a replica again} {
        open_gateway 3
        cluster_wait_agree
        set key [key_of 0 own]
        set c [gateway 3 3]
        set quiet [gateway 3 3]
        assert_equal OK [$quiet client tracking on bcast noloop prefix [string range $key 0 2]]
        # The former primary redirects it to the node that has sent it.
        r client pause 100000 write
        $c -send set $key 1
        wait_for_condition 600 50 {[regexp {blocked_clients:1} [r info clients]]}
        assert_equal OK [r -3 cluster failover]
        cluster_wait_role 3 master
        cluster_wait_role 0 slave
        cluster_wait_agree
        r client unpause
        assert_equal OK [$c -read]
        wait_for_condition 600 50 {[regexp "gateway_link\\d+:id=[cluster_id 3],ready=1,proven=1" [r -3 info gateway]]}
        # That of its client, none of its own link; the replica does not tell of changes that it executes, too.
        wait_for_condition 600 50 {[regexp {tracking_total_prefixes:1} [r -3 info stats]] && [regexp {tracking_total_prefixes:0} [r info stats]]}
        proc next_told {client} {
            while {[set told [next_invalidation $client]] eq {}} {}
            return $told
        }
        foreach name {first last} {set $name ${key}{$key}$name}
        $c set $first 1
        while {[next_told $quiet] ne [list $first]} {}
        $quiet set $key mine
        $c set $last 1
        assert_equal [list $last] [next_told $quiet]
        assert_equal OK [r cluster failover]
        cluster_wait_role 0 master
        cluster_wait_role 3 slave
        assert_equal {} [next_invalidation $quiet]
        r -3 config set cluster-gateway-port 0
    }

    test {after a failover keys are tracked by the new primary, in both modes} {
        set c [tracker]
        set b [tracker BCAST PREFIX failover]
        set key [key_of 1 failover]
        $c set $key old
        assert_equal [list $key] [next_invalidation $b]
        assert_equal old [$c get $key]
        wait_for_condition 600 50 {[r -4 dbsize] > 0}
        with_node 1 {kill_server}
        assert_equal {} [next_invalidation $c]
        assert_equal {} [next_invalidation $b]
        # It waits for the replica.
        assert_equal old [$c get $key]
        wait_for_condition 600 50 {[regexp {tracking_total_prefixes:1} [r -4 info stats]]}
        r -4 set $key new
        foreach one [list $c $b] {
            while {[set told [next_invalidation $one]] eq {}} {}
            assert_equal [list $key] $told
        }
        assert_equal new [$c get $key]
    }
}
