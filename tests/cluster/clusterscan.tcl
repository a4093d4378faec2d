# CLUSTERSCAN: its words and cursors, and that it returns every element that is there throughout, also while slots move.

# A request to node i by a client of its own; follows redirects, each of which is counted in ::redirects.
proc scan_at {i args} {
    set asking 0
    for {set tries 0} {$tries < 20} {incr tries} {
        if {$asking} {r -$i asking}
        if {![catch {r -$i {*}$args} reply]} {return $reply}
        if {![regexp {^(ASK|MOVED) \d+ .*:(\d+)$} $reply all word port]} {fail "$args at node $i: $reply"}
        incr ::redirects
        set asking [expr {$word eq "ASK"}]
        for {set i 0} {[srv -$i port] != $port} {incr i} {}
    }
    fail "redirected without end: $args: $reply"
}

# All that a scan returns; `meanwhile` is run between its calls.
proc scan_all {meanwhile args} {
    set cursor 0
    set found {}
    for {set calls 0} {$calls < 100000} {incr calls} {
        lassign [scan_at 0 clusterscan $cursor {*}$args] cursor page
        lappend found {*}$page
        if {$cursor eq "0"} {return $found}
        uplevel 1 $meanwhile
    }
    fail "the scan does not end"
}

set ::redirects 0

start_cluster {2 0 {tags {cluster} overrides {cluster-databases 2}}} {
    test {CLUSTERSCAN: wrong words} {
        foreach {words error} {
            {} {ERR wrong number of arguments for 'clusterscan' command}
            {0-{06S}} {ERR Invalid cursor}
            {0-{06S}-x} {ERR Invalid cursor}
            {0-{06S}-0-0} {ERR Invalid cursor}
            {0-{06S}-18446744073709551616} {ERR Invalid cursor}
            {0-{06S}-0 FOO} {ERR syntax error}
            {0-{06S}-0 COUNT} {ERR syntax error}
            {0-{06S}-0 COUNT 0} {ERR syntax error}
            {0-{06S}-0 COUNT x} {ERR value is not an integer or out of range}
            {0-{06S}-0 TYPE foo} {ERR unknown type name 'foo'}
            {0-{06S}-0 SLOT x} {ERR Invalid or out of range slot}
            {0-{06S}-0 SLOT 16384} {ERR Invalid or out of range slot}
            {0-{06S}-0 SLOT 0 SLOT 0} {ERR SLOT option can only be specified once}
            {0-{06S}-0 SLOT 1} {ERR Cursor slot mismatch with SLOT argument}
            0 {MOVED 13907 *}
            0-{x}-0 {MOVED 16287 *}
        } {
            assert_error $error {r clusterscan {*}$words}
        }
    }

    test {CLUSTERSCAN: cursors lead from slot to slot} {
        foreach {i words reply} {
            1 0 {0-{06S}-0 {}}
            1 {0 slot 5} {0-{460}-0 {}}
            1 {0 match {{x}*}} {0-{x}-0 {}}
            1 {0 match {{x}*} slot 5} {0 {}}
            0 {0-{06S}-0} {0-{8YG}-0 {}}
            0 {0-{06S}-1} {0-{8YG}-0 {}}
            0 {abcdef-{06S}-16384} {0-{8YG}-0 {}}
            0 {0-{06S}-0 slot 0} {0 {}}
            0 {0-{06S}-0 match {{Qi}*}} {0-{Qi}-0 {}}
            0 {0-{Qi}-0 match {{06S}*}} {0 {}}
            0 {0-{06S}-0 match f?o} {0-{8YG}-0 {}}
            1 {0-{8YG}-0} {0 {}}
        } {
            assert_equal $reply [r -$i clusterscan {*}$words] $words
        }
    }

    test {CLUSTERSCAN: COUNT, MATCH, TYPE, SLOT, databases, expired keys} {
        for {set i 0} {$i < 300} {incr i} {
            lappend wanted "{06S}$i"
            r set "{06S}$i" x
            r -1 set "{x}$i" x
            lappend wanted "{x}$i"
        }
        r rpush "{06S}list" 1
        lappend wanted "{06S}list"
        foreach count {1 10 1000} {assert_equal [lsort $wanted] [lsort [scan_all {} count $count]]}
        assert_equal 111 [llength [scan_all {} match "{06S}1*"]]
        assert_equal [list "{06S}list"] [scan_all {} type list]
        assert_equal 301 [llength [scan_all {} slot 0 count 7]]
        assert_range [llength [lindex [r clusterscan 0-{06S}-0 count 20] 1]] 20 60
        r select 1
        assert_equal {0-{8YG}-0 {}} [r clusterscan 0-{06S}-0]
        r select 0
        r debug set-active-expire 0
        r pexpire "{06S}list" 1
        wait_for_condition 100 10 {[r exists "{06S}list"] == 0}
        assert_equal {} [scan_all {} type list]
        r debug set-active-expire 1
        wait_for_condition 100 10 {[r cluster countkeysinslot 0] == 300}
    }

    test {CLUSTERSCAN in transactions and scripts} {
        r multi
        r clusterscan 0-{06S}-0 slot 0
        assert_match {*-{06S}-*} [lindex [r exec] 0 0]
        assert_match {*-{06S}-*} [r eval {return redis.call('clusterscan', '0-{06S}-0')[1]} 0]
    }

    test {CLUSTERSCAN of a slot that is given away: what is here, then ASK; the target has the rest} {
        assert_equal OK [r -1 cluster setslot 0 importing [cluster_id 0]]
        assert_equal OK [r cluster setslot 0 migrating [cluster_id 1]]
        assert_equal OK [r migrate [srv -1 host] [srv -1 port] {} 0 5000 keys "{06S}1" "{06S}2"]
        lassign [r clusterscan 0-{06S}-0 count 100000] cursor keys
        assert_equal 298 [llength $keys]
        assert_error {ASK 0 *} {r clusterscan $cursor}
        assert_error {MOVED 0 *} {r -1 clusterscan $cursor}
        r -1 asking
        assert_equal {0-{Qi}-0 {{{06S}1} {{06S}2}}} [lmap part [r -1 clusterscan $cursor count 100] {lsort $part}]
        for {set i 0} {$i < 300} {incr i} {lappend wanted "{06S}$i"}
        assert_equal [lsort $wanted] [lsort [scan_all {} slot 0 count 9]]
    }
}

start_cluster {3 0 {tags {cluster}}} {
    test {CLUSTERSCAN returns what is there throughout, whatever slots move meanwhile} {
        # Elements in four slots, of the first node at first. Others come and go.
        set tags {06S Qi 5L5 4Iu}
        foreach slot {0 1 2 3} tag $tags {
            for {set i 0} {$i < 150} {incr i} {
                lappend wanted "{$tag}$i"
                r set "{$tag}$i" x
            }
            set owner($slot) 0
            set target($slot) -1
        }
        # One step of a random move: begins one, moves some keys, or ends it.
        proc step {} {
            upvar owner owner target target
            set slot [random_below 4]
            set from $owner($slot)
            set to $target($slot)
            if {$to < 0} {
                set to [expr {($from + 1 + [random_below 2]) % 3}]
                assert_equal OK [r -$to cluster setslot $slot importing [cluster_id $from]]
                assert_equal OK [r -$from cluster setslot $slot migrating [cluster_id $to]]
                set target($slot) $to
                return
            }
            set keys [r -$from cluster getkeysinslot $slot [expr {1 + [random_below 20]}]]
            if {[llength $keys]} {
                assert_equal OK [r -$from migrate [srv -$to host] [srv -$to port] {} 0 5000 keys {*}$keys]
                return
            }
            foreach i [list $to $from [expr {3 - $from - $to}]] {assert_equal OK [r -$i cluster setslot $slot node [cluster_id $to]]}
            set owner($slot) $to
            set target($slot) -1
        }
        proc come_and_go {tags} {
            set key "{[lindex $tags [random_below 4]]}x[random_below 100]"
            if {[random_below 2]} {scan_at 0 set $key x} else {scan_at 0 del $key}
        }
        set ::redirects 0
        for {set round 0} {$round < 8} {incr round} {
            set steps [random_below 4]
            set found [scan_all {
                for {set i 0} {$i < $steps} {incr i} step
                come_and_go $tags
            } count [expr {1 + [random_below 40]}]]
            foreach key $found {set has($key) 1}
            foreach key $wanted {if {![info exists has($key)]} {fail "$key was not returned in round $round"}}
            array unset has
        }
        assert {$::redirects > 0}
    }
}
