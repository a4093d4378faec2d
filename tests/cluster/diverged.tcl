# SPDX-License-Identifier: BSD-3-Clause
#
# A replica of a cluster whose data are known to differ from its primary's, as a command of the stream has failed: an order to
# take over is refused, an election is not.

source $::tests_dir/support/cluster.tcl
source $::tests_dir/support/replication.tcl

set own {save {} repl-diskless-sync-delay 0 cluster-replica-validity-factor 0}

start_server [list tags {cluster needs:servers tls:skip} overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
start_server [list overrides [dict merge $cluster_defaults $own [list port [free_port] cluster-port [free_port]]]] {
    set ::cluster_size 4
    cluster_join 3 1

    test {CLUSTER FAILOVER is refused while the primary works} {
        # Node 0 has the slots of this key.
        link_is up -3
        r -0 set {003} text
        same_offset -0 -3
        # What the script replaces by a list is not sent, so the replica still has a string.
        r -0 eval {redis.set_repl(redis.REPL_NONE) redis.call('del', KEYS[1]) redis.call('rpush', KEYS[1], 'x')
            redis.set_repl(redis.REPL_ALL) return redis.call('rpush', KEYS[1], 'y')} 1 {003}
        wait_for_condition 400 25 {[string match "*master_stream_errors:1\r*" [r -3 info replication]]}
        assert_error "DIVERGED The data here differ*rpush: WRONGTYPE*CLUSTER FAILOVER FORCE*" {r -3 cluster failover}
        assert_equal slave [lindex [r -3 role] 0]
    }

    test {an election is not refused, and the log says what was elected} {
        with_node 0 {stop_server}
        cluster_wait_role 3 master
        assert_match "*commands of its stream failed*This server becomes a primary with them*" [server_log -3]
    }
}
}
}
}
