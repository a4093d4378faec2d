# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration that is refused, cancelled, or fails: the source has its keys, the target none of them.

source $::tests_dir/support/raw_replica.tcl

set lost_source {Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information.}
set lost_target {Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information.}

# A job that waits before the pause, with a key in slot 0 that has arrived.
proc held_move {} {
    hold_pause 0 1
    r set "{06S}1" a
    set name [move 0 1 0 0]
    wait_job 0 waiting-to-pause $name
    return $name
}

# The job has failed on both sides, and every key is where it was.
proc assert_undone {name source target} {
    hold_pause 0 0
    wait_job 1 failed $name
    assert_equal $target [job_message 1 $name]
    if {$source ne "-"} {
        wait_job 0 failed $name
        assert_equal $source [job_message 0 $name]
    }
    assert_equal 0 [r -1 cluster countkeysinslot 0]
    wait_for_condition 300 20 {[r -3 cluster countkeysinslot 0] == 0 && [job_state 3 $name] eq "failed"} else {
        fail "replica of the target: [r -3 cluster countkeysinslot 0] [job_of 3 $name]"
    }
    assert_equal OK [r set "{06S}1" b]
}

start_cluster {2 2 {tags {cluster} overrides {cluster-databases 3}}} {
    test {MIGRATESLOTS refuses wrong words, in order} {
        set id [cluster_id 1]
        foreach {words error} {
            {slotsrange 0 0 node} {ERR syntax error}
            {slotsrange 0 0 nodex y} {ERR syntax error}
            {slots 0 0 node y} {ERR syntax error}
            {slotsrange node y} {ERR No slot ranges specified}
            {slotsrange 0 99999 node y} {ERR Invalid or out of range slot}
            {slotsrange 16383 16383 node y} {ERR Slots are not served by this node.}
            {slotsrange 0 16383 node y} {ERR Requested slots span multiple shards}
            {slotsrange 0 0 node blah} {ERR Invalid node name: blah}
            {slotsrange 0 0 node 0123456789012345678901234567890123456789} {ERR Unknown node name: 0123456789012345678901234567890123456789}
        } {assert_error $error {r cluster migrateslots {*}$words}}
        assert_error "ERR Target node can not be this node." {r cluster migrateslots slotsrange 0 0 node [cluster_id 0]}
        assert_error "ERR Slot ranges in migrations overlap" {r cluster migrateslots slotsrange 0 0 node $id slotsrange 0 5 node $id}
        assert_error "ERR Slot migration can only be used on primary nodes." {r -2 cluster migrateslots slotsrange 0 0 node $id}
        assert_error "ERR No migrations ongoing" {r cluster cancelslotmigrations}
        assert_equal {} [r cluster getslotmigrations]
    }

    test {SYNCSLOTS of an ordinary client is refused} {
        foreach word {ACK SNAPSHOT-EOF REQUEST-PAUSE PAUSED REQUEST-FAILOVER FAILOVER-GRANTED} {
            assert_error "ERR CLUSTER SYNCSLOTS $word should only be used by slot migration clients" {r cluster syncslots $word}
        }
        set name [string repeat 0 40]
        foreach {words error} "
            {foo bar} {ERR syntax error}
            {establish} {ERR syntax error}
            {establish name $name slotsrange 0 0} {ERR syntax error}
            {establish source $name name $name slotsrange 0 0} {ERR Target node does not know the source node}
            {establish source [cluster_id 0] name $name slotsrange 0 0} {ERR Source node is target node itself}
            {establish source [cluster_id 1] name $name slotsrange 0 0} {ERR Target node does not agree about current slot ownership}
            {establish source [cluster_id 1] name $name slotsrange 0 16383} {ERR Requested slots span multiple shards}
            {finish state success name $name} {ERR No such slot migration job}
        " {assert_error $error {r cluster syncslots {*}$words}}
        assert_equal OK [r cluster syncslots capa x]
    }

    test {ESTABLISH takes each word once, and a name again whose job has ended} {
        set source [cluster_id 0]
        set name [string repeat a 40]
        set words [list source $source name $name slotsrange 0 0]
        foreach more [list "source $source" "name $name" {slotsrange 1 1}] {
            assert_error "ERR syntax error" {r -1 cluster syncslots establish {*}$words {*}$more}
        }
        # The connection of a source that does not keep to the order is closed without a word.
        foreach {orders message} {
            {snapshot-eof} {Unexpected state machine transition}
            {ack paused} {Unexpected state machine transition}
            {ack snapshot-eof snapshot-eof} {Unexpected state machine transition}
            {ack foo} {Unknown SYNCSLOTS subcommand used}
            {ack {finish state failed name aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa message why}} {why}
        } {
            set c [raw_connect [srv -1 host] [srv -1 port]]
            raw_send $c [resp_request cluster syncslots establish {*}$words]
            assert_equal +OK [raw_line $c]
            foreach order $orders {raw_send $c [resp_request cluster syncslots {*}$order]}
            set got [raw_rest $c]
            raw_close $c
            # REQUEST-PAUSE may follow SNAPSHOT-EOF.
            assert {![string match -nocase *finish* $got]}
            wait_job 1 failed $name
            assert_equal $message [job_message 1 $name]
            wait_job 3 failed $name
        }
    }

    test {keys that are being imported are hidden on the target and its replica} {
        r -1 select 0
        set before [r -1 dbsize]
        set name [held_move]
        assert_equal "0-0" [dict get [job_of 1 $name] slot_ranges]
        assert_equal [list [cluster_id 0] [cluster_id 1]] [list [dict get [job_of 1 $name] source_node] [dict get [job_of 1 $name] target_node]]
        wait_job 3 occurring-on-primary $name
        assert {![dict exists [job_of 3 $name] source_node]}
        foreach node {1 3} {
            wait_for_condition 100 20 {[r -$node cluster countkeysinslot 0] == 1}
            assert_equal [list "{06S}1"] [r -$node cluster getkeysinslot 0 10]
            assert_equal $before [r -$node dbsize]
            foreach pattern {* "{06S}*" "{06S}1"} {
                assert_equal {} [r -$node keys $pattern] "KEYS $pattern"
                assert_equal {0 {}} [r -$node scan 0 match $pattern count 1000] "SCAN MATCH $pattern"
                assert_equal {} [r -$node eval_ro "#!lua flags=no-writes\nreturn redis.call('keys', ARGV\[1\])" 0 $pattern] "KEYS $pattern of a script"
            }
            assert_equal {} [r -$node randomkey]
            assert_error "MOVED 0 *" {r -$node get "{06S}1"}
        }
        assert_match "*flags=*i* *" [r -1 client list]
        assert_match "*flags=*E* *" [r client list]
        assert {[info_field mem_cluster_slot_export] > 0}
        assert_error "ERR I am already migrating slot 0." {r cluster migrateslots slotsrange 0 5 node [cluster_id 1]}
        foreach node {0 1} error {export import} {
            assert_error "ERR Slot $error in progress." {r -$node cluster setslot 0 stable}
        }
        assert_equal OK [r cluster cancelslotmigrations]
        assert_equal cancelled [job_state 0 $name]
        assert_undone $name - $lost_source
    }

    test {FLUSHALL of the source, or of the target, ends the job} {
        set name [held_move]
        r flushall
        assert_undone $name "Data was flushed" $lost_source
        set name [held_move]
        r -1 flushall
        assert_undone $name "$lost_target It says: Data was flushed" "Data was flushed"
    }

    test {the reason of the target is read though the target has closed the link under writes} {
        for {set i 0} {$i < 5} {incr i} {
            set name [held_move]
            set writer [connect]
            for {set k 0} {$k < 100} {incr k} {$writer -send set "{06S}$k" [string repeat x 10000]}
            r -1 flushall
            for {set k 0} {$k < 100} {incr k} {assert_equal OK [$writer -read]}
            assert_undone $name "$lost_target It says: Data was flushed" "Data was flushed"
            $writer -close
        }
    }

    test {a link that is killed ends the job} {
        foreach node {0 1} flag {E i} {
            set name [held_move]
            foreach line [split [r -$node client list] \n] {
                if {[string match "* flags=*$flag*" $line] && [regexp {id=(\d+)} $line all id] && [regexp "flags=\[^ \]*$flag" $line]} {
                    r -$node client kill id $id
                }
            }
            assert_undone $name $lost_target $lost_source
        }
    }

    test {a command that fails on the target ends the job} {
        set name [held_move]
        r -1 config set maxmemory 1 maxmemory-policy noeviction
        r set "{06S}2" x
        wait_job 1 failed $name
        r -1 config set maxmemory 0
        r del "{06S}2"
        assert_undone $name "$lost_target It says: -OOM command not allowed when used memory > 'maxmemory'. after the command 'set'" "Ran out of memory (OOM) during slot import"
        assert_match "*The target node ends slot migration*: -OOM command not allowed*" [server_log 0]
        assert_match "*== CRITICAL == This slot-import-target is sending an error to its slot-import-source: '-OOM *' after processing the command 'set'*" [server_log -1]
    }

    test {keys that are left in the slot of the target are refused with an error that tells what to do} {
        hold_pause 0 0
        r -1 cluster setslot 0 importing [cluster_id 0]
        r -1 asking
        r -1 set "{06S}old" 1
        r -1 cluster setslot 0 stable
        set name [move 0 1 0 0]
        wait_job 0 failed $name
        assert_match "Received error during handshake to target: -ERR Slot 0 has 1 keys on the target node already. Delete them there with CLUSTER FLUSHSLOT 0, then try again.*" [job_message 0 $name]
        r -1 cluster flushslot 0
    }

    test {open slots refuse jobs on both sides} {
        r cluster setslot 0 migrating [cluster_id 1]
        assert_error "ERR Slots are being manually migrated" {r cluster migrateslots slotsrange 1 1 node [cluster_id 1]}
        r cluster setslot 0 stable
        r -1 cluster setslot 0 importing [cluster_id 0]
        assert_error "ERR Slots are being manually imported" {r -1 cluster migrateslots slotsrange 16383 16383 node [cluster_id 0]}
        set name [move 0 1 1 1]
        wait_job 0 failed $name
        assert_match "Received error during handshake to target: -ERR Slots are being manually imported*" [job_message 0 $name]
        r -1 cluster setslot 0 stable
    }

    test {a target that needs a password gets that of primaryauth} {
        r -1 config set requirepass secret
        set name [move 0 1 1 1]
        wait_job 0 failed $name
        assert_match "Received error during handshake to target: -NOAUTH *" [job_message 0 $name]
        r config set primaryauth wrong
        set name [move 0 1 1 1]
        wait_job 0 failed $name
        assert_match "Failed to AUTH to target node: -WRONGPASS *" [job_message 0 $name]
        r config set primaryauth secret
        wait_job 0 success [move 0 1 1 1]
        wait_job 1 success [move 1 0 1 1]
        r -1 config set requirepass ""
        r config set primaryauth ""
    }

    test {the user of primaryuser needs the right to each command that is sent, and both sides tell what is missing} {
        # What a node of Valkey demands: SYNCSLOTS, SELECT, and the commands that create keys.
        r -1 acl setuser mover on >secret ~* +select +set +pexpireat
        r config set primaryuser mover primaryauth secret
        r set "{06S}acl" a
        set name [move 0 1 0 0]
        wait_job 0 failed $name
        assert_match "Received error during handshake to target: -NOPERM *mover*cluster|syncslots*" [job_message 0 $name]
        r -1 acl setuser mover +cluster|syncslots -set
        set name [move 0 1 0 0]
        wait_job 0 failed $name
        wait_job 1 failed $name
        assert_match "*sending an error to its slot-import-source: '-NOPERM *'set'*" [server_log -1]
        assert_equal 0 [r -1 cluster countkeysinslot 0]
        assert_equal a [r get "{06S}acl"]
        r -1 acl setuser mover +@write +@read
        set name [move 0 1 0 0]
        wait_job 0 success $name
        assert_equal a [r -1 get "{06S}acl"]
        r config set primaryuser "" primaryauth ""
        r -1 acl deluser mover
        wait_job 1 success [move 1 0 0 0]
    }

    test {the log of jobs keeps as many as cluster-slot-migration-log-max-len says} {
        assert {[llength [r cluster getslotmigrations]] > 2}
        r config set cluster-slot-migration-log-max-len 2
        wait_for_condition 100 20 {[llength [r cluster getslotmigrations]] == 2}
        r config set cluster-slot-migration-log-max-len 1000
    }

    test {changes of all databases during a job arrive in their own} {
        hold_pause 0 1
        r select 2
        r set "{06S}two" 1
        r select 0
        r set "{06S}zero" 1
        set name [move 0 1 0 0]
        wait_job 0 waiting-to-pause $name
        r set "{06S}zero" 2
        r set "{06S}new" 1
        r del "{06S}1"
        r select 2
        r incr "{06S}two"
        r select 0
        hold_pause 0 0
        wait_job 0 success $name
        assert_equal {2 1} [r -1 mget "{06S}zero" "{06S}new"]
        assert_equal {} [r -1 get "{06S}1"]
        r -1 select 2
        assert_equal 2 [r -1 get "{06S}two"]
        r -1 select 0
        wait_for_condition 100 20 {[r cluster countkeysinslot 0] == 0}
        wait_job 1 success [move 1 0 0 0]
    }

    test {a job does not touch the functions of the target} {
        set library "#!lua name=%s\nserver.register_function('%s', function() return '%s' end)"
        r function load [format $library before before source]
        r -1 function load [format $library own own target]
        set name [held_move]
        r function load [format $library during during source]
        r function load [format $library own own source]
        r function delete before
        hold_pause 0 0
        wait_job 0 success $name
        assert_equal own [lmap library [r -1 function list] {dict get $library library_name}]
        assert_equal target [r -1 fcall own 0]
        wait_job 1 success [move 1 0 0 0]
        foreach i {0 1} {r -$i function flush}
    }

    test {CLUSTER FLUSHSLOT during a job is sent to the target} {
        set name [held_move]
        r cluster flushslot 0
        r set "{06S}after" 1
        hold_pause 0 0
        wait_job 0 success $name
        assert_equal [list "{06S}after"] [r -1 keys *]
        wait_job 1 success [move 1 0 0 0]
    }
}
