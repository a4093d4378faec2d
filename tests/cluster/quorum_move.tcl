# SPDX-License-Identifier: BSD-3-Clause
#
# Slot migration with replication-quorum: the target takes slots only when enough of its replicas have their keys.

set settings {repl-diskless-sync-delay 0 replication-quorum 1 replication-quorum-timeout 600000 cluster-node-timeout 2000 save {}}

# Node 3 is a replica of node 0, which moves slots to node 1, 4 of node 1, and 5 of node 2.
start_cluster [list 3 3 [list tags {cluster quorum} overrides $settings crash ok]] {
    set no_quorum "Not enough replicas of the target have confirmed the keys in time (replication-quorum)"

    test {with replication-quorum slots wait until enough replicas of the target have their keys} {
        foreach node {0 1 2} {wait_for_condition 400 50 {[string match "*replication_quorum_reachable:1*" [r -$node info replication]]}}
        for {set i 0} {$i < 100} {incr i} {assert_equal OK [r set "key:{06S}:$i" $i]}
        send_signal STOP [srv -4 pid]
        set name [move 0 1 0 0]
        wait_job 1 waiting-for-paused $name
        wait_job 0 replicating $name
        # Nothing waits on the source, for as long as the target has no replica.
        assert_equal OK [r set "key:{06S}:0" changed]
        assert_equal OK [r set "key:{06S}:0" 0]
        assert_equal waiting-for-paused [job_state 1 $name]
        send_signal CONT [srv -4 pid]
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal 99 [r -1 get "key:{06S}:99"]
        assert_equal OK [r -1 set "key:{06S}:100" 100]
    }

    test {with replication-quorum a job fails if no replica of the target is there when its time is over, and the source goes on} {
        assert_equal OK [r set "{Qi}:1" 1]
        set old [lindex [r -1 config get repl-timeout] 1]
        r -1 config set repl-timeout 2
        send_signal STOP [srv -4 pid]
        set name [move 0 1 1 1]
        wait_job 1 failed $name
        wait_job 0 failed $name
        assert_equal $no_quorum [job_message 1 $name]
        assert_equal OK [r set "{Qi}:1" 2]
        r -1 config set repl-timeout $old
        send_signal CONT [srv -4 pid]
        wait_for_condition 400 50 {[string match "*replication_quorum_status:ok*" [r -1 info replication]]}
    }

    test {with replication-quorum a grant ends if no replica of the target has what precedes it, and the source goes on} {
        hold_pause 0 1
        set name [move 0 1 1 1]
        wait_job 0 waiting-to-pause $name
        send_signal STOP [srv -4 pid]
        assert_equal OK [r set "{Qi}:1" 3]
        hold_pause 0 0
        wait_job 1 failed $name
        wait_job 0 failed $name
        assert_equal $no_quorum [job_message 1 $name]
        assert_equal 3 [r get "{Qi}:1"]
        assert_equal OK [r set "{Qi}:1" 4]
        send_signal CONT [srv -4 pid]
        wait_for_condition 400 50 {[r -4 cluster countkeysinslot 1] == 0}
    }

    test {with replication-quorum nothing that was acknowledged is lost if the target fails after it has taken slots} {
        wait_for_condition 400 50 {[string match "*replication_quorum_status:ok*" [r -1 info replication]]}
        for {set i 0} {$i < 100} {incr i} {assert_equal OK [r set "{BBE}:$i" $i]}
        set name [move 0 1 2 2]
        wait_job 0 success $name
        with_node 1 {
            send_signal KILL [srv pid]
            catch {stop_server} ;# it ends by a signal
        }
        cluster_wait_role 4 master
        with_node 1 continue_server
        cluster_wait_role 1 slave
        cluster_wait_agree
        for {set i 0} {$i < 100} {incr i} {assert_equal $i [r -4 get "{BBE}:$i"]}
        for {set i 0} {$i < 100} {incr i} {assert_equal $i [r -4 get "key:{06S}:$i"]}
    }
}
