# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration while nodes restart, crash, synchronise or change their roles: the keys stay with the source,
# and there is one owner.

source $::tests_dir/support/raw_replica.tcl

# Begins a job that waits before the pause, with keys in slot 0 that have arrived.
proc held_move {from to} {
    hold_pause $from 1
    for {set i 0} {$i < 50} {incr i} {r -$from set "{06S}$i" $i}
    set name [move $from $to 0 0]
    wait_job $from waiting-to-pause $name
    return $name
}

proc info_of {index field} {
    regexp "\n$field:(\[^\r\]*)" [r -$index info everything] all value
    return $value
}

proc kill_node {index} {
    with_node $index {
        send_signal KILL [srv pid]
        catch {stop_server} ;# it ends by a signal
    }
}

proc wait_keys {index count} {
    wait_for_condition 1000 20 {[r -$index cluster countkeysinslot 0] == $count} else {
        fail "node $index: [r -$index cluster countkeysinslot 0] keys"
    }
}

proc assert_at_source {index} {
    wait_for_condition 1000 20 {![catch {r -$index set "{06S}1" b}]} else {fail [r -$index cluster nodes]}
    wait_keys $index 50
    hold_pause $index 0
}

start_cluster {2 2 {tags {cluster} overrides {appendonly yes appendfsync always repl-diskless-sync-delay 0 cluster-allow-replica-migration no} crash ok}} {
    test {a target that restarts finds the unfinished import in its append only file, and deletes the keys} {
        set name [held_move 0 1]
        kill_node 1
        with_node 1 {continue_server}
        wait_job 0 failed $name
        assert_match "Connection lost to target.*" [job_message 0 $name]
        assert_equal {failed {Process restarted}} [list [job_state 1 $name] [job_message 1 $name]]
        assert_equal 0 [r -1 cluster countkeysinslot 0]
        cluster_wait_ok
        wait_keys 3 0
        assert_at_source 0
    }

    test {a replica of the target has the import, and its end, in its append only file} {
        set name [held_move 0 1]
        wait_keys 3 50
        r -3 debug loadaof
        assert_equal occurring-on-primary [job_state 3 $name]
        assert_equal {0 50} [list [r -3 dbsize] [r -3 cluster countkeysinslot 0]]
        r cluster cancelslotmigrations
        wait_job 3 failed $name
        r -3 debug loadaof
        assert_equal failed [job_state 3 $name]
        assert_equal 0 [r -3 cluster countkeysinslot 0]
        assert_at_source 0
    }

    test {an append only file that is rewritten as commands during an import hides the slots} {
        set name [held_move 0 1]
        wait_keys 3 50
        foreach i {1 3} {
            r -$i config set aof-use-rdb-preamble no
            wait_for_condition 500 20 {![catch {r -$i bgrewriteaof}]}
            wait_for_condition 500 20 {[info_of $i aof_rewrite_in_progress] == 0 && [info_of $i aof_rewrite_scheduled] == 0}
        }
        r -3 debug loadaof
        assert_equal occurring-on-primary [job_state 3 $name]
        assert_equal {0 50} [list [r -3 dbsize] [r -3 cluster countkeysinslot 0]]
        kill_node 1
        with_node 1 {continue_server}
        assert_equal {failed {Process restarted}} [list [job_state 1 $name] [job_message 1 $name]]
        wait_job 0 failed $name
        foreach i {1 3} {
            wait_keys $i 0
            r -$i config set aof-use-rdb-preamble yes
        }
        cluster_wait_ok
        cluster_wait_role 3 slave
        assert_at_source 0
    }

    test {a snapshot that was taken during an import hides the slots after a restart} {
        r -1 config set appendonly no
        r -1 config rewrite
        set name [held_move 0 1]
        r -1 save
        kill_node 1
        with_node 1 {continue_server}
        assert_equal 0 [r -1 cluster countkeysinslot 0]
        wait_job 0 failed $name
        cluster_wait_ok
        assert_at_source 0
    }

    test {a failover in the shard of the target ends the import on both} {
        cluster_wait_role 3 slave
        set name [held_move 0 1]
        wait_job 3 occurring-on-primary $name
        assert_equal OK [r -3 cluster failover]
        cluster_wait_role 3 master
        foreach node {3 1} {
            wait_job $node failed $name
            assert_equal "A failover occurred during slot import" [job_message $node $name]
            wait_keys $node 0
        }
        wait_job 0 failed $name
        assert_match "Connection lost to target.*" [job_message 0 $name]
        cluster_wait_role 1 slave
        assert_at_source 0
    }

    test {a replica that synchronises during an import hides the slots} {
        cluster_wait_role 1 slave
        set name [held_move 0 3]
        set syncs [info_of 3 sync_full]
        r -3 debug change-repl-id
        r -3 client kill type replica
        wait_for_condition 500 20 {[info_of 3 sync_full] > $syncs && [info_of 1 master_link_status] eq "up" && [info_of 3 connected_slaves] == 1}
        cluster_wait_role 1 slave
        wait_job 1 occurring-on-primary $name
        wait_keys 1 50
        assert_equal 0 [r -1 dbsize]
        hold_pause 0 0
        wait_job 0 success $name
        wait_job 1 success $name
        wait_for_condition 300 20 {[r -1 dbsize] == 50}
        wait_job 3 success [move 3 0 0 0]
        wait_keys 1 0
    }

    test {a failover in the shard of the source ends the job; its replica has the slots} {
        set name [held_move 0 3]
        r wait 1 5000
        assert_equal OK [r -2 cluster failover]
        cluster_wait_role 2 master
        wait_job 0 failed $name
        assert_equal "Slots are no longer owned by myself" [job_message 0 $name]
        wait_job 3 failed $name
        wait_keys 3 0
        cluster_wait_role 0 slave
        hold_pause 0 0
        assert_at_source 2
    }

    test {a source that restarts has its slots} {
        set name [held_move 2 3]
        kill_node 2
        with_node 2 {continue_server}
        wait_job 3 failed $name
        assert_match "Connection lost to source.*" [job_message 3 $name]
        wait_keys 3 0
        cluster_wait_ok
        wait_keys 2 50
    }

    test {after the grant writes wait until the target has taken the slots} {
        hold_takeover 3 1
        set name [move 2 3 0 0]
        wait_job 2 failover-granted $name
        assert_match "*paused_reason:slot_migration_in_progress\r\npaused_actions:write\r\n*" [r -2 info clients]
        set c [raw_connect [srv -2 host] [srv -2 port]]
        raw_send $c [resp_request set "{06S}1" waits]
        wait_for_condition 100 20 {[string match "*cmd=set*" [r -2 client list]]}
        assert_equal 3 [r -2 get "{06S}3"]
        hold_takeover 3 0
        wait_job 2 success $name
        assert_match "-MOVED 0 *" [raw_line $c]
        raw_close $c
        wait_job 3 success $name
        wait_keys 3 50
    }

    test {a job that is cancelled after the grant ends as cancelled, when the target has given up} {
        hold_takeover 2 1
        set name [move 3 2 0 0]
        wait_job 3 failover-granted $name
        assert_equal OK [r -3 cluster cancelslotmigrations]
        wait_job 2 failed $name
        hold_takeover 2 0
        wait_job 3 cancelled $name
        assert_equal {} [job_message 3 $name]
        assert_match "*paused_reason:none*" [r -3 info clients]
        assert_equal OK [r -3 set "{06S}1" 1]
        wait_keys 2 0
        wait_keys 3 50
    }
}

start_cluster {3 0 {tags {cluster} crash ok}} {
    test {a target that crashes after the grant: the source goes on when it has failed, and keeps the slots} {
        for {set i 0} {$i < 50} {incr i} {r set "{06S}$i" $i}
        hold_takeover 1 1
        set name [move 0 1 0 0]
        wait_job 0 failover-granted $name
        kill_node 1
        r config set cluster-require-full-coverage no
        wait_for_condition 1000 20 {[job_state 0 $name] eq "failed"} else {fail [job_of 0 $name]}
        wait_for_condition 1000 20 {![catch {r set "{06S}1" 1}]}
        with_node 1 {continue_server}
        cluster_wait_ok
        cluster_wait_agree
        assert_equal [cluster_id 0] [lindex [cluster_owners 1] 0 2]
        wait_keys 0 50
    }
}
