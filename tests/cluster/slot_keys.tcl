# Keys of slots that a node does not own: after a load, and after another node has got the slot.

# All words of the node's append only file, which has no preamble.
proc aof_words {} {
    set words {}
    foreach path [glob -nocomplain [srv dir]/appendonlydir/*.incr.aof] {
        foreach line [split [string map {\r {}} [file_text $path]] \n] {
            if {$line ne "" && [string index $line 0] ni {* $}} {lappend words $line}
        }
    }
    return $words
}

proc said_since {before} {return [string range [server_log] $before end]}

# Slots: a 15495, b 3300, c 7365.
set defaults {cluster-enabled yes cluster-require-full-coverage no appendonly yes aof-use-rdb-preamble no}
set other [string repeat a 40]

start_server [list tags {cluster needs:config} overrides [dict merge $defaults {cluster-databases 2}]] {
    test {after a load keys of foreign slots are deleted, and unassigned slots with keys are taken} {
        r cluster addslotsrange 0 16383
        wait_for_condition 300 20 {[string match *cluster_state:ok* [r cluster info]]}
        foreach key {a b c {{a}x}} {r set $key 1}
        r select 1
        r set {{a}y} 1
        r select 0
        set id [r cluster myid]
        set before [string length [server_log]]
        restart_as [list [node_line $id [srv port] myself,master - 3 1-5000] [node_line $other 7999 master - 5 10922-16383]]
        set said [said_since $before]
        assert_match "*\n*\\* I have keys for unassigned slot 7365. Taking responsibility for it.\n*\\* I have keys for slot 15495, but the slot is assigned to another node. Deleting keys in the slot.\n*Ready to accept*" $said
        assert_equal {b c} [lsort [r keys *]]
        r select 1
        assert_equal 0 [r dbsize]
        r select 0
        assert_match "*connected 1-5000 7365\n*" [r cluster nodes]
        wait_for_condition 50 20 {[string match "* connected 1-5000 7365\n*" [file_text [srv dir]/nodes.conf]]}
        set words [aof_words]
        assert_equal 3 [llength [lsearch -all $words UNLINK]]
        foreach key {a {{a}x} {{a}y}} {assert {[lsearch -exact $words $key] >= 0}}
        # The file has it, too.
        set before [string length [server_log]]
        restart_server
        assert_equal {b c} [lsort [r keys *]]
        assert {![string match "*I have keys*" [said_since $before]]}
    }

    test {a slot that is being moved to the node, and all slots of a replica, are left alone} {
        set id [r cluster myid]
        set before [string length [server_log]]
        restart_as [list [node_line $id [srv port] myself,master - 3 "1-5000 \[7365-<-$other\]"] [node_line $other 7999 master - 5 5001-8000]]
        assert_equal {b c} [lsort [r keys *]]
        assert {![string match "*slot 7365*" [said_since $before]]}
        set before [string length [server_log]]
        restart_as [list [node_line $id [srv port] myself,slave $other 3] [node_line $other 7999 master - 5 15495]]
        assert_equal 2 [r dbsize]
        assert {![string match "*I have keys*" [said_since $before]]}
    }

    test {a node that has lost its file takes only the slots of which it has keys} {
        stop_server
        file delete [srv dir]/nodes.conf
        continue_server
        assert_match "*connected 3300 7365\n*" [r cluster nodes]
        assert_equal {b c} [lsort [r keys *]]
    }
}

start_cluster [list 2 1 [list tags {cluster needs:config} overrides {cluster-require-full-coverage no notify-keyspace-events KEA appendonly yes aof-use-rdb-preamble no cluster-databases 2}]] {
    test {the keys of a lost slot are deleted one by one, without keyspace events} {
        set slot [r cluster keyslot b]
        foreach key {b {{b}2} c} {r set $key 1}
        r select 1
        r set {{b}3} 1
        r select 0
        wait_for_condition 100 50 {[r -2 dbsize] == 3}
        set events [connect 2]
        $events psubscribe *
        set tracked [connect 3]
        $tracked client tracking on
        assert_equal 1 [$tracked get b]
        set watching [connect]
        $watching watch b
        set before [string length [server_log]]
        set taker [respConnect [srv -1 host] [srv -1 port] 2]
        $taker multi
        foreach command [list "delslots $slot" bumpepoch "addslots $slot"] {$taker cluster {*}$command}
        $taker exec
        $taker -close
        wait_for_condition 200 50 {[r dbsize] == 1}
        assert_match "*\\* Deleting keys in dirty slot $slot on node [r cluster myid] (*) in shard [r cluster myshardid]\n*" [said_since $before]
        assert {![string match "*dirty slot*dirty slot*" [said_since $before]]}
        assert_equal {invalidate b} [$tracked -push]
        $watching multi
        $watching ping
        assert_equal {} [$watching exec]
        r publish end 1
        # The event of the end is the first one.
        assert_match "pmessage * end 1" [$events -message]
        wait_for_condition 100 50 {[r -2 dbsize] == 1}
        set words [aof_words]
        assert_equal 3 [llength [lsearch -all $words UNLINK]]
        assert_equal -1 [lsearch $words MULTI]
        assert_match "*SELECT 1 UNLINK {{b}3}*" $words
    }
}

start_cluster {2 0 {tags {cluster needs:debug} overrides {cluster-require-full-coverage no}}} {
    # Node `taker` takes slots that the other one has; both keep a slot.
    proc take_slots {taker first last} {
        set link [respConnect [srv -$taker host] [srv -$taker port] 2]
        $link multi
        foreach command [list "delslotsrange $first $last" bumpepoch "addslotsrange $first $last"] {$link cluster {*}$command}
        $link exec
        $link -close
    }
    test {clients are served while the keys of many lost slots are deleted} {
        # They are deleted in turns of some ms: somebody who asks all the time sees a number in between, unless he was
        # held up himself.
        set seen 0
        for {set round 0} {$round < 5 && !$seen} {incr round} {
            r debug populate 200000 key 16
            set before [r dbsize]
            take_slots 1 0 8190
            while {[set count [r dbsize]] > 150000} {
                if {$count < $before} {incr seen}
            }
            take_slots 0 0 8190
            wait_for_condition 200 50 {[string match "*0-8191*" [r cluster nodes]] && [string match "*0-8191*" [r -1 cluster nodes]]}
            r flushall
        }
        assert {$seen > 0}
    }
}
