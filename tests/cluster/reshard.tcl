# valkey-cli --cluster against real nodes: reshard, rebalance, fix, add-node, del-node, import; and a client that checks every
# reply while slots move.

source $::tests_dir/support/tools.tcl

proc address {i} {return [srv -$i host]:[srv -$i port]}

proc manager {args} {
    lassign [run_tool valkey-cli "" --cluster {*}$args] status output
    if {$status} {fail "$args: $output"}
    return $output
}

# Python loads the client library of a build without sanitizers.
proc client_library {} {
    foreach build {release debug} {
        set library [file join $::tests_dir .. build $build libvalkey.so.0]
        if {[file exists $library]} {return $library}
    }
    fail "no client library: make lib"
}

# The keys of a few nodes with their payloads, in all databases. Hashes with TTLs of fields have one field only, and other
# values are small, so that payloads do not depend on the order of tables.
proc contents {nodes} {
    set all {}
    foreach i $nodes {
        foreach db {0 1} {
            r -$i select $db
            foreach key [r -$i keys *] {
                set ttl [r -$i pttl $key]
                lappend all [list $db $key [r -$i dump $key] [expr {$ttl > 0}]]
                if {$ttl > 0} {assert_range $ttl 900000 1000000}
            }
        }
        r -$i select 0
    }
    return [lsort $all]
}

proc fill {i tag} {
    foreach {name command} {s {set @s v} t {set @t v ex 1000} l {rpush @l a b c} h {hset @h f v g w} e {sadd @e a 1} i {sadd @i 1 2}
        z {zadd @z 1 a 2 b} x {xadd @x 1-1 f v} g {xgroup create @x g 0} f {hsetex @f ex 100000 fields 1 f v} p {pfadd @p a b c}} {
        r -$i {*}[lmap word $command {string map [list @ "{$tag}"] $word}]
    }
    r -$i select 1
    r -$i set "{$tag}s" other ex 1000
    r -$i select 0
}

start_cluster {3 0 {tags {cluster tls:skip} overrides {cluster-databases 2 cluster-node-timeout 60000}}} {
    foreach tag {06S Qi 5L5 4Iu} {fill 0 $tag}
    set ::before [contents {0 1 2}]

    test {reshard moves slots with all their keys, unchanged} {
        set output [manager reshard [address 0] --cluster-from [cluster_id 0] --cluster-to [cluster_id 1] --cluster-slots 10 \
            --cluster-yes --cluster-pipeline 2]
        assert_match "*Moving slot 0 from [address 0] to [address 1]*" $output
        cluster_wait_agree
        assert_equal {0 40} [list [r dbsize] [r -1 dbsize]]
        assert_equal $::before [contents {0 1 2}]
        assert_match "*All 16384 slots covered.*" [manager check [address 2]]
    }

    test {rebalance evens it out} {
        assert_match "*Moving * slots from [address 1] to *" [manager rebalance [address 2] --cluster-threshold 0.1]
        cluster_wait_agree
        foreach i {0 1 2} {lappend counts [llength [cluster_owned $i]]}
        assert_range [tcl::mathfunc::min {*}$counts] 5461 5462
        assert_equal $::before [contents {0 1 2}]
    }

    test {fix completes a half-done move, whichever marks it has left} {
        foreach {marks moved} {both 3 both 0 source 3 target 3 target 0 all 0} {
            set from [cluster_owner_of 0]
            set to [expr {($from + 1) % 3}]
            if {$marks ne "source"} {r -$to cluster setslot 0 importing [cluster_id $from]}
            if {$marks ne "target"} {r -$from cluster setslot 0 migrating [cluster_id $to]}
            if {$marks eq "all"} {set moved 100}
            set keys [r -$from cluster getkeysinslot 0 $moved]
            if {$marks eq "source" && $moved} {r -$to cluster setslot 0 importing [cluster_id $from]}
            if {[llength $keys]} {
                assert_equal OK [r -$from migrate [srv -$to host] [srv -$to port] {} 0 5000 keys {*}$keys]
            }
            if {$marks eq "source" && $moved} {r -$to cluster setslot 0 stable}
            lassign [run_tool valkey-cli "" --cluster check [address 0]] status output
            assert_match "*WARNING*slots in *ing state 0*" $output
            manager fix [address 0]
            cluster_wait_agree
            foreach i {0 1 2} {assert {![string match {*\[*} [r -$i cluster nodes]]} [r -$i cluster nodes]}
            assert_equal $::before [contents {0 1 2}] "$marks $moved"
        }
    }

    test {import from a server that is no cluster node} {
        start_server {tags {cluster tls:skip} overrides {cluster-enabled no}} {
            for {set i 0} {$i < 50} {incr i} {r set imported$i $i}
            manager import [address 1] --cluster-from [address 0]
            assert_equal 0 [r dbsize]
            foreach i {1 2 3} {incr sum [r -$i dbsize]}
            assert_equal 90 $sum
        }
    }
}

start_cluster {2 0 {tags {cluster tls:skip}}} {
    test {add-node and del-node, which wants an empty node} {
        start_server {tags {cluster tls:skip} overrides {cluster-enabled yes cluster-node-timeout 2000}} {
            manager add-node [address 0] [address 1]
            foreach i {0 1 2} {wait_for_condition 200 50 {[cluster_field -$i cluster_known_nodes] == 3}}
            wait_for_condition 200 50 {[cluster_field cluster_state] eq "ok" && ![string match *handshake* [r cluster nodes]]}
            set id [r cluster myid]
            manager reshard [address 1] --cluster-from [cluster_id 1] --cluster-to $id --cluster-slots 2 --cluster-yes
            lassign [run_tool valkey-cli "" --cluster del-node [address 1] $id] status output
            assert_equal 1 $status
            assert_match {*is not empty! Reshard data away and try again.*} $output
            manager reshard [address 1] --cluster-from $id --cluster-to [cluster_id 1] --cluster-slots 2 --cluster-yes
            manager del-node [address 1] $id
            foreach i {1 2} {wait_for_condition 200 50 {[cluster_field -$i cluster_known_nodes] == 2}}
            assert_equal 1 [cluster_field cluster_known_nodes]
        }
    }
}

# Python's process cannot use a library with sanitizers.
if {![is_sanitized]} {
    # Without replicas and with a long timeout, as a slow disk may hold nodes up for many seconds.
    start_cluster {3 0 {tags {cluster tls:skip slow} overrides {cluster-node-timeout 60000}}} {
        test {a client that follows redirects sees no error and no wrong value while slots move} {
            set channel [open |[list python3 $::tests_dir/helpers/cluster_client.py [client_library] [address 1] \
                [random_below 1000000] 2>@1] r+]
            for {set round 0} {$round < 6} {incr round} {
                set from [expr {$round % 3}]
                set to [expr {($from + 1) % 3}]
                manager reshard [address 0] --cluster-from [cluster_id $from] --cluster-to [cluster_id $to] --cluster-slots 8 --cluster-yes \
                    --cluster-pipeline 3
            }
            chan close $channel write
            set report [read $channel]
            catch {close $channel}
            assert_match "ops *" $report
        }
    }
}
