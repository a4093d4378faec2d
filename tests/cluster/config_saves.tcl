# SPDX-License-Identifier: BSD-3-Clause
#
# The configuration file is saved by a thread; what depends on a save waits for it, and nothing else (src/bus/map_saves.h).
# DEBUG HOLD-CLUSTER-CONFIG-SAVES stands for a save that takes long.

source $::tests_dir/support/raw_replica.tcl

proc hold_saves {index on} {assert_equal OK [r -$index debug hold-cluster-config-saves $on]}

proc conf_of {index} {return [file_text [srv -$index dir]/nodes.conf]}

# A request that gets no reply so far. The connection is returned when the server holds the request back.
proc send_held {index args} {
    set c [raw_connect [srv -$index host] [srv -$index port]]
    raw_send $c [resp_request {*}$args]
    wait_for_condition 500 20 {[string match "*cmd=[lindex $args 0]*" [r -$index client list]]} else {
        fail "[lindex $args 0] does not wait: [r -$index client list]"
    }
    return $c
}

# Moves slot 0 from node 0 to node 1, whose save of the claim is held. Returns when node 1 has taken it.
proc take_unsaved {} {
    hold_saves 1 1
    set name [move 0 1 0 0]
    wait_job 1 success $name
    return $name
}

start_cluster {2 0 {tags {cluster}}} {
    test {a target whose claim is not saved serves reads and its other slots; writes to the slot wait for the save} {
        r set "{06S}a" before
        set name [take_unsaved]
        assert_equal before [r -1 get "{06S}a"]
        assert_equal OK [r -1 set a 1]
        assert {![string match "*myself* 0 8192-16383*" [conf_of 1]]}
        assert_match "*paused_reason:cluster_config_save\r\npaused_actions:write\r\n*" [r -1 info clients]
        # Nobody was told: the source has the slot still, and holds back its writes.
        assert_match "* 0-8191*" [cluster_line [cluster_id 0]]
        set source [send_held 0 set "{06S}a" source]
        set target [send_held 1 append "{06S}a" -target]
        assert_equal before [r -1 get "{06S}a"]
        assert_equal before [r get "{06S}a"]
        # With the end of the save the former are executed, and the latter redirected.
        hold_saves 1 0
        assert_equal :13 [raw_line $target]
        assert_match "-MOVED 0 *" [raw_line $source]
        raw_close $target
        raw_close $source
        assert_equal before-target [r -1 get "{06S}a"]
        assert_match "*paused_reason:none\r\n*" [r -1 info clients]
        assert_match "*myself* 0 8192-16383*" [conf_of 1]
        wait_for_condition 500 20 {[r cluster countkeysinslot 0] == 0}
        wait_for_condition 500 20 {![string match "*myself* 0-8191*" [conf_of 0]]}
    }

    test {a source that has lost a slot redirects at once, and deletes its keys when that is saved} {
        r -1 set "{06S}a" again
        hold_saves 1 1
        wait_for_condition 500 20 {[r cluster countkeysinslot 0] == 0}
        set name [move 1 0 0 0]
        wait_job 0 success $name
        wait_for_condition 500 20 {[catch {r -1 get "{06S}a"}]}
        assert_equal failover-granted [job_state 1 $name]
        assert_error "MOVED 0 *" {r -1 get "{06S}a"}
        assert_equal 1 [r -1 cluster countkeysinslot 0]
        assert_equal again [r get "{06S}a"]
        assert_match "*myself* 0 8192-16383*" [conf_of 1]
        hold_saves 1 0
        wait_job 1 success $name
        assert_equal 0 [r -1 cluster countkeysinslot 0]
        assert {![string match "*myself* 0 8192-16383*" [conf_of 1]]}
    }

    test {what a command has changed is in the file when it is replied to, also while saves are held} {
        hold_saves 1 1
        r -1 cluster bumpepoch
        assert_match "*vars currentEpoch [cluster_field -1 cluster_current_epoch] *" [conf_of 1]
        hold_saves 1 0
    }

    test {a command during a save that has run, or is about to, waits for the next one, too} {
        # The end of a save is processed by the next turn, or by the command; it begins the next save.
        foreach words {{debug sleep 0.1} {debug hold-cluster-config-saves 1} {ping}} {
            hold_saves 1 1
            wait_for_condition 500 20 {[cluster_field -1 cluster_current_epoch] == [cluster_field cluster_current_epoch]}
            assert_match "BUMPED *" [r cluster bumpepoch]
            wait_for_condition 500 20 {[cluster_field -1 cluster_current_epoch] == [cluster_field cluster_current_epoch]}
            assert {![string match "*vars currentEpoch [cluster_field cluster_current_epoch] *" [conf_of 1]]}
            r -1 multi
            r -1 debug hold-cluster-config-saves 0
            r -1 {*}$words
            r -1 cluster bumpepoch
            assert_match "OK * {BUMPED *}" [r -1 exec]
            assert_match "*vars currentEpoch [cluster_field -1 cluster_current_epoch] *" [conf_of 1]
            hold_saves 1 0
        }
    }

    # The timers run in the turn of the request, before its reply is sent. Without the mark a restarted node would delete keys that it has imported.
    test {a mark of SETSLOT is in the file when it is replied to, also if the bus has its turn before the reply} {
        hold_saves 1 1
        set c [raw_connect [srv -1 host] [srv -1 port]]
        raw_send $c "[resp_request cluster setslot 0 importing [cluster_id 0]][resp_request debug sleep 0.3]"
        assert_equal +OK [raw_line $c]
        set conf [conf_of 1]
        assert_equal +OK [raw_line $c]
        raw_close $c
        hold_saves 1 0
        assert_equal OK [r -1 cluster setslot 0 stable]
        assert_match "*\\\[0-<-[cluster_id 0]\\\]*" $conf
        assert {![string match "*0-<-*" [conf_of 1]]}
    }

    test {CLUSTER INFO has the state of the file} {
        assert_equal ok [cluster_field cluster_config_save_status]
        assert_range [cluster_field cluster_config_last_save_time] [expr {[clock seconds] - 1000}] [clock seconds]
    }
}

start_cluster {2 0 {tags {cluster} crash ok}} {
    test {a target that is killed before its claim is saved has not taken the slots, and no write is lost} {
        r set "{06S}a" before
        set name [take_unsaved]
        set c [send_held 1 append "{06S}a" -lost]
        with_node 1 {
            send_signal KILL [srv pid]
            catch {stop_server} ;# it ends by a signal
            continue_server
        }
        assert {![string match "* 0 8192-16383*" [cluster_line -1 [cluster_id 1]]]}
        wait_for_condition 1000 20 {[job_state 0 $name] eq "failed"} else {fail "the source: [job_of 0 $name]"}
        assert_equal 12 [r append "{06S}a" -after]
        cluster_wait_ok
        assert_equal 0 [r -1 cluster countkeysinslot 0]
    }
}

start_cluster {3 0 {tags {cluster} overrides {cluster-node-timeout 60000}}} {
    test {a link that is full sends what precedes a change of the map, and the rest when it is saved} {
        set pid [srv -1 pid]
        set listener [raw_connect [srv -1 host] [srv -1 port]]
        raw_send $listener [resp_request subscribe big late probe]
        for {set i 0} {$i < 18} {incr i} {raw_line $listener}
        # Before it knows whose link it is, node 1 accepts no message of this kind.
        wait_for_condition 1000 20 {[string match "*from node [cluster_id 0]*" [r -1 cluster links]]}
        r cluster bumpepoch
        wait_for_condition 500 20 {[cluster_field -2 cluster_current_epoch] == [cluster_field cluster_current_epoch]}
        set epoch [cluster_field cluster_current_epoch]
        send_signal STOP $pid
        set value [string repeat x 1000000]
        for {set i 0} {$i < 20} {incr i} {r publish big $value}
        # The socket is full, and the link waits for it.
        wait_for_condition 500 20 {[string match "*events rw*" [r cluster links]]} else {fail "no link is full: [r cluster links]"}
        hold_saves 0 1
        r -2 cluster bumpepoch
        wait_for_condition 500 20 {[cluster_field cluster_current_epoch] > $epoch}
        assert {![string match "*vars currentEpoch [cluster_field cluster_current_epoch] *" [conf_of 0]]}
        r publish late 1
        send_signal CONT $pid
        for {set i 0} {$i < 20} {incr i} {
            foreach word {*3 $7 message $3 big $1000000} {assert_equal $word [raw_line $listener]}
            assert_equal 1000000 [string length [raw_line $listener]]
        }
        assert_equal 1 [r -1 publish probe 2]
        foreach word {*3 $7 message $5 probe $1 2} {assert_equal $word [raw_line $listener]}
        hold_saves 0 0
        foreach word {*3 $7 message $4 late $1 1} {assert_equal $word [raw_line $listener]}
        assert_match "*vars currentEpoch [cluster_field cluster_current_epoch] *" [conf_of 0]
        raw_close $listener
    }
}
