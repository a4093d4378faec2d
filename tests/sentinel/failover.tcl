# SPDX-License-Identifier: BSD-3-Clause
#
# Groups of Sentinels that replace a primary: by themselves, by order, with and without the primary's help.

start_watched {2 3} {
    test {a primary that is killed is replaced, and is a replica when it comes back} {
        set old [srv port]
        sentinel_kill 0
        wait_for_condition 1200 50 {[sentinel_primary [sentinel_first]] != $old} else {fail "no failover"}
        set new [sentinel_primary [sentinel_first]]
        sentinel_wait_primary $new
        set promoted [expr {[srv -1 port] == $new ? 1 : 2}]
        set other [expr {3 - $promoted}]
        wait_for_condition 400 25 {[lindex [watched_role $promoted] 0] eq "master"} else {fail "it was not promoted"}
        wait_for_condition 400 25 {[watched_role $other] eq [list slave 127.0.0.1 $new connected]} else {
            fail "the other replica does not follow"
        }
        with_node 0 {catch {stop_server}}
        upvar #0 [lindex $::servers 0] server
        dict set server(settings) port $old
        with_node 0 {continue_server}
        wait_for_condition 1200 50 {[watched_role 0] eq [list slave 127.0.0.1 $new connected]} else {
            fail "the old primary is no replica"
        }
    }

    test {the leader has told its steps in the order that the released program has} {
        set steps {+try-failover +vote-for-leader +elected-leader +failover-state-select-slave +selected-slave
            +failover-state-send-slaveof-noone +failover-state-wait-promotion +promoted-slave
            +failover-state-reconf-slaves +slave-reconf-sent +slave-reconf-inprog +slave-reconf-done +failover-end
            +switch-master}
        set leaders 0
        foreach i [sentinels] {
            set events [sentinel_events $i]
            assert {"+sdown" in $events}
            assert {"+switch-master" in $events}
            if {"+elected-leader" ni $events} {
                assert {"+config-update-from" in $events}
                continue
            }
            incr leaders
            set from [lsearch $events +elected-leader]
            foreach step [lrange $steps 2 end] {
                set at [lsearch -start $from $events $step]
                if {$at < 0} {fail "$step is not after the steps before it: $events"}
                set from $at
            }
        }
        assert_equal 1 $leaders
        assert_equal 1 [llength [lsort -unique [lmap i [sentinels] {sentinel_field $i config-epoch}]]]
    }
}

start_watched {1 1 {quorum 1 set {down-after-milliseconds 600000 refused-after-milliseconds 200}}} {
    test {a process that has ended is noticed by refused connections, long before the timeout} {
        set new [srv -1 port]
        sentinel_kill 0
        sentinel_wait_primary $new
        wait_for_condition 400 25 {[lindex [watched_role 1] 0] eq "master"} else {fail "it was not promoted"}
    }
}

start_watched {1 3 {set {down-after-milliseconds 30000}}} {
    test {FAILOVER promotes the replica of a primary that works} {
        set new [srv -1 port]
        set old [srv port]
        assert_equal OK [r -[sentinel_first] sentinel failover mym]
        assert_error "INPROG*" {r -[sentinel_first] sentinel failover mym}
        sentinel_wait_primary $new
        wait_for_condition 1200 50 {[watched_role 0] eq [list slave 127.0.0.1 $new connected]} else {fail "no replica"}
        sentinel_wait_known
    }

    test {FAILOVER COORDINATED loses nothing that was acknowledged} {
        set old [srv -1 port]
        set first [sentinel_first]
        wait_for_condition 1200 50 {[string match *master_failover_state:no-failover* [r -$first sentinel info-cache mym]]} else {
            fail "no INFO"
        }
        set primary 1
        set written 0
        set ended 0
        assert_equal OK [r -$first sentinel failover mym coordinated]
        set end [expr {[clock milliseconds] + 60000}]
        while {[sentinel_primary $first] == $old && [clock milliseconds] < $end} {
            if {[catch {r -$primary incr counter} reply]} {
                # Clients are disconnected, or told that the server is a replica now.
                set ended 1
                drop_clients
                continue
            }
            if {!$ended} {set written $reply}
        }
        sentinel_wait_primary [srv port]
        wait_for_condition 400 25 {[lindex [watched_role 0] 0] eq "master"} else {fail "it was not promoted"}
        assert {[r get counter] >= $written}
        assert {$written > 0}
        wait_for_condition 1200 50 {[lindex [watched_role 1] 3] eq "connected"} else {fail "no link"}
    }

    test {failovers that are not possible are refused} {
        set first [sentinel_first]
        assert_error "ERR No such master with that name" {r -$first sentinel failover nobody}
        assert_error "ERR Unknown failover option specified" {r -$first sentinel failover mym now}
        sentinel_wait_known
        r -1 config set replica-priority 0
        r -$first sentinel debug info-period 100
        wait_for_condition 400 50 {[string match "*slave-priority 0 *" [r -$first sentinel replicas mym]]} else {fail "no INFO"}
        assert_error "NOGOODSLAVE No suitable replica to promote" {r -$first sentinel failover mym}
    }
}

# The hostile build reads few bytes at a time. Its first reply on the closed link makes the system drop what it has not
# read yet; other builds have read all of it before they reply.
if {![string match *hostile* $::binary]} {
    start_watched {3 1 {quorum 1 set {down-after-milliseconds 600000 failover-timeout 1500}}} {
        test {what was ordered before the links are closed arrives: replicas that are left at the timeout} {
            set first [sentinel_first]
            r -1 config set replica-priority 1
            wait_for_condition 400 50 {[string match "*slave-priority 1 *" [r -$first sentinel replicas mym]]} else {fail "no INFO"}
            # The first of the two has its order and keeps the other one waiting.
            foreach i {2 3} {send_signal STOP [srv -$i pid]}
            try {
                assert_equal OK [r -$first sentinel failover mym]
                sentinel_wait_primary [srv -1 port]
                # From here on Sentinel mends nothing for longer than the test waits: only the first order can do it.
                r -$first sentinel set mym failover-timeout 600000
            } finally {
                foreach i {2 3} {send_signal CONT [srv -$i pid]}
            }
            foreach i {2 3} {
                wait_for_condition 400 25 {[watched_role $i] eq [list slave 127.0.0.1 [srv -1 port] connected]} else {
                    fail "replica $i does not follow"
                }
            }
            set events [sentinel_events $first]
            assert {"+slave-reconf-sent-be" in $events}
            assert {"+fix-slave-config" ni $events}
        }
    }
}

# The primary refuses the replica's link, and Sentinel has seen that it is down for longer than a failover without an
# order accepts.
proc sentinel_cut_link {} {
    r acl setuser default -psync -sync
    r client kill type replica
    set first [sentinel_first]
    wait_for_condition 800 25 {
        [regexp {master-link-down-time (\d+)} [r -$first sentinel replicas mym] - down_ms] && $down_ms >= 2000
    } else {fail "the link is up: [r -$first sentinel replicas mym]"}
}

start_watched {1 1 {quorum 1 set {down-after-milliseconds 100 failover-timeout 1000}}} {
    test {a replica without keys is no copy that an order promotes} {
        sentinel_cut_link
        wait_for_condition 200 25 {![catch {r -[sentinel_first] sentinel failover mym} error] || [string match NOGOODSLAVE* $error]}
        assert_match "NOGOODSLAVE*" $error
        r acl setuser default +psync +sync
    }

    test {an older copy is promoted by order alone, and the log says what is lost} {
        set first [sentinel_first]
        set text "+older-copy slave 127.0.0.1:[srv -1 port] *#its link to the primary was down for * s; at least * bytes of the stream are lost:"
        r set key old
        wait_for_condition 800 25 {[r -1 get key] eq "old"} else {fail "no synchronisation"}
        sentinel_wait_known
        sentinel_cut_link
        r set key [string repeat new 1000]
        set offset [info_field master_repl_offset]
        # Messages of Sentinel make it grow.
        wait_for_condition 800 25 {
            [regexp {master_repl_offset:(\d+)} [r -$first sentinel info-cache mym] - known] && $known >= $offset
        } else {fail "no INFO"}
        sentinel_kill 0
        drop_clients
        wait_for_condition 1200 25 {[string match "*$text*the last known one of the primary *; SENTINEL FAILOVER promotes it*" [server_log -$first]]} else {
            fail "Sentinel has not told of the older copy"
        }
        assert_equal [srv port] [sentinel_primary $first]
        assert_equal slave [lindex [watched_role 1] 0]
        wait_for_condition 800 25 {![catch {r -$first sentinel failover mym} reply] || ![string match INPROG* $reply]}
        assert_equal OK $reply
        sentinel_wait_primary [srv -1 port]
        wait_for_condition 400 25 {[lindex [watched_role 1] 0] eq "master"} else {fail "it was not promoted"}
        assert_equal old [r -1 get key]
        assert {[regexp {at least (\d+) bytes[^\n]*; it is promoted by order} [server_log -$first] - lost]}
        assert {$lost >= 3000}
    }
}
