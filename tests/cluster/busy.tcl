# SPDX-License-Identifier: BSD-3-Clause
#
# Nodes whose clients send more than they can execute have not failed, and no node takes another one for failed.

set flood_options {cluster-node-timeout 1000 cluster-require-full-coverage yes loglevel debug save {}}

# A generator of 200 clients with pipelines of up to 1,000, which gives way to the servers; returns its channel.
proc flood {i key} {
    set benchmark [file join [file dirname $::binary] valkey-benchmark]
    return [open [list |nice -n 19 $benchmark -h [srv -$i host] -p [srv -$i port] -c 200 -P [scaled 1000] -n 2000000000 -q get $key 2>@1]]
}

proc end_flood {channel} {
    exec kill -KILL {*}[pid $channel]
    catch {close $channel} ;# it reports the signal
}

proc clients_of {i} {
    regexp {connected_clients:(\d+)} [r -$i info clients] all count
    return $count
}

# Pings that nodes have received. Other nodes send some each second, whatever clients do.
proc pings {i} {return [cluster_field -$i cluster_stats_messages_ping_received]}

# Until each node has received so many more pings.
proc await_pings {count} {
    set before [lmap i {0 1 2} {pings $i}]
    foreach i {0 1 2} from $before {
        wait_for_condition 3000 20 {[pings $i] >= $from + $count} else {fail "node $i receives no pings"}
    }
}

# What the nodes have logged says that nobody has failed, and they still agree.
proc nobody_failed {} {
    foreach i {0 1 2} {
        set new [string range [server_log -$i] $::logged($i) end]
        foreach pattern {{Marking node [^\n]*} {FAIL message received[^\n]*} {Cluster state changed: fail[^\n]*}} {
            if {[regexp $pattern $new line]} {fail "node $i: $line"}
        }
        assert_equal ok [cluster_field -$i cluster_state]
        foreach k {0 1 2} {assert {"fail" ni [cluster_flags -$i [cluster_id $k]]}}
    }
}

proc note_logs {} {foreach i {0 1 2} {set ::logged($i) [string length [server_log -$i]]}}

# A key that a node owns.
proc key_of {i} {
    foreach key {b c a} {if {[cluster_owner_of [r cluster keyslot $key]] == $i} {return $key}}
    fail "no key of node $i"
}

foreach threads {1 3} {
    start_cluster [list 3 0 [list tags {cluster tls:skip needs:config} overrides \
                       [concat $flood_options io-threads $threads io-threads-always-active yes]]] {
        test "nobody fails while clients of all nodes send long pipelines, with $threads threads" {
            note_logs
            set channels [lmap i {0 1 2} {flood $i [key_of $i]}]
            try {
                foreach i {0 1 2} {wait_for_condition 500 20 {[clients_of $i] > 200}}
                await_pings 10
                foreach i {0 1 2} {assert {[clients_of $i] > 200}}
            } finally {foreach channel $channels {end_flood $channel}}
            nobody_failed
        }

        # A turn of the loop has up to 64 of them: three node timeouts. The other nodes have time to notice.
        test "a node does not fail while pipelines of slow commands run, with $threads threads" {
            foreach i {0 1 2} {wait_for_condition 500 20 {[clients_of $i] < 20}}
            note_logs
            set socks {}
            for {set n 0} {$n < 4} {incr n} {
                lappend socks [raw_connect]
                raw_send [lindex $socks end] [string repeat [resp::encode {debug sleep 0.05}] 32]
            }
            foreach s $socks {raw_read $s [expr {32 * [string length "+OK\r\n"]}]}
            nobody_failed
        }
    }
}
