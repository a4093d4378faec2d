# SPDX-License-Identifier: BSD-3-Clause
#
# Three servers in a chain: A, its replica B, and C, the replica of B.

source $::tests_dir/support/replication.tcl

proc info_has {level text} {
    wait_for_condition 400 25 {[string match "*$text*" [r $level info]]} else {fail "no $text r $level"}
}

set settings {repl-diskless-sync-delay 0 save {} loading-process-events-interval-bytes 1024}

start_server [list tags {repl needs:servers tls:skip} overrides $settings] {
start_server [list overrides $settings] {
start_server [list overrides $settings] {
    foreach {kind dual} {"one connection" no "a dual channel" yes} {
        test "C gets the database of the stream with its dataset, over $kind" {
            foreach level {-1 -0} {r $level config set dual-channel-replication-enabled $dual}
            r -1 replicaof [srv -2 host] [srv -2 port]
            link_is up -1
            r -2 select 5
            r -2 set before 1
            same_offset -1 -2
            r replicaof no one
            r set own data
            mark_logs
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            assert_equal $dual [expr {[string match "*Successfully streamed replication data*" [server_log]] ? "yes" : "no"}]
            r -2 set after 2
            same_offset -0 -2
            r select 5
            assert_equal {1 2} [r mget before after]
            r select 0
            assert_equal 0 [r dbsize]
            assert_equal [stream_of -2] [stream_of -0]
        }
    }
    foreach level {-1 -0} {r $level config set dual-channel-replication-enabled no}

    test {C follows when B is promoted, without another dataset} {
        set before [stream_of -1]
        r -1 config resetstat
        r -1 replicaof no one
        r -1 set promoted 1
        link_is up
        same_offset -0 -1
        assert_equal [dict get $before id] [dict get [stream_of -1] id2]
        assert_equal [dict get [stream_of -1] id] [dict get [stream_of -0] id]
        assert_equal 1 [r get promoted]
        assert_match "*sync_full:0*sync_partial_ok:1*" [r -1 info stats]
        r -1 replicaof [srv -2 host] [srv -2 port]
        link_is up -1
        link_is up
        same_offset -0 -2
        assert_equal 0 [r exists promoted]
    }

    test {C is not served while B replaces its dataset} {
        for {set i 0} {$i < 1000} {incr i} {r -2 set key:$i [string repeat x 1000]}
        r -2 config set rdb-key-save-delay 2000 rdbcompression no
        r -1 config set repl-diskless-load flush-before-load
        r -1 replicaof no one
        r -1 set another history
        r -1 replicaof [srv -2 host] [srv -2 port]
        info_has -1 "\nloading:1*loading_loaded_bytes:\[1-9\]"
        info_has -0 master_link_status:down
        # The transfer is cut, and cannot begin again.
        r -1 config set primaryauth wrong
        r -2 client kill type replica
        info_has -1 "\nloading:0"
        r -1 replicaof no one
        assert_equal 0 [r -1 dbsize]
        assert_equal [string repeat 0 40] [dict get [stream_of -1] id2]
        r -2 config set rdb-key-save-delay 0
        r -1 config set repl-diskless-load disabled primaryauth ""
        r -1 replicaof [srv -2 host] [srv -2 port]
        link_is up -1
        link_is up
        same_offset -0 -2
        assert_equal [r -2 debug digest] [r debug digest]
    }
}
}
}
