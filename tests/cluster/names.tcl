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
