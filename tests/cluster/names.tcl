# SPDX-License-Identifier: BSD-3-Clause
#
# Nodes that announce a name as their address.

start_cluster {2 1 {tags {cluster needs:config} overrides {cluster-announce-ip localhost repl-diskless-sync-delay 0}}} {
    test {nodes are connected by the address of a name that another one announces} {
        foreach i {0 1 2} {
            foreach j {0 1 2} {
                wait_for_condition 500 20 {[string match localhost:[srv -$j port]@* [lindex [cluster_line -$i [cluster_id $j]] 1]]}
                wait_for_condition 500 20 {[lindex [cluster_line -$i [cluster_id $j]] 7] eq "connected"}
            }
        }
        cluster_wait_ok
        cluster_wait_role 2 slave
    }
}

start_cluster {2 0 {tags {cluster needs:config} overrides {cluster-announce-ip localhost cluster-allow-replica-migration no}}} {
    test {slots move to a node that announces a name, and the server does not wait for a name that has no address} {
        wait_for_condition 500 20 {[string match localhost:* [lindex [cluster_line -0 [cluster_id 1]] 1]]}
        r set "{06S}1" a
        wait_job 0 success [move 0 1 0 0]
        wait_job 1 success [move 1 0 0 0]
        assert_equal a [r get "{06S}1"]
        r -1 config set cluster-announce-ip nowhere.invalid
        wait_for_condition 500 20 {[string match nowhere.invalid:* [lindex [cluster_line -0 [cluster_id 1]] 1]]}
        set name [move 0 1 0 0]
        assert_equal connecting [job_state 0 $name]
        wait_job 0 failed $name
        assert_equal "Unable to connect to target node: its name has no address" [job_message 0 $name]
        assert_equal a [r get "{06S}1"]
    }
}
