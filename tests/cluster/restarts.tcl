# SPDX-License-Identifier: BSD-3-Clause
#
# Nodes of a cluster that are restarted with their files: they continue by a partial resynchronisation.

source $::tests_dir/support/replication.tcl

# The numbers of full and partial synchronisations that node `level` has served.
proc syncs_of {level} {
    set stats [r $level info stats]
    return [lmap name {sync_full sync_partial_ok} {
        regexp "$name:(\\d+)" $stats match value
        set value
    }]
}

# Code in which node `level` serves partial synchronisations only.
proc assert_partial {level code} {
    set full [lindex [syncs_of $level] 0]
    uplevel 1 $code
    assert_equal $full [lindex [syncs_of $level] 0]
    assert {[lindex [syncs_of $level] 1] > 0}
}

# Ends node i; its files are those of a clean shutdown (SIGTERM) or of the moment (KILL).
proc end_node {i {signal TERM}} {
    if {$signal eq "KILL"} {
        send_signal KILL [srv -$i pid]
        wait_process_end [srv -$i pid] 10000
    }
    with_node $i {catch stop_server} ;# it says how a killed process has ended
}

start_cluster {3 1 {tags {cluster} overrides {repl-diskless-sync-delay 0 enable-debug-command yes cluster-node-timeout 2000 save {3600 1}}}} {
    test {a replica continues where its file ends, and drops no expired key by itself} {
        for {set i 0} {$i < 20} {incr i} {
            r set "{06S}$i" v px [expr {$i % 2 ? 200 : 600000}]
        }
        same_offset -0 -3
        assert_partial -0 {
            end_node 3
            set short [lmap i [lrepeat 10 x] {incr odd 2; set i "{06S}[expr {$odd - 1}]"}]
            wait_for_condition 100 50 {[r exists {*}$short] == 0}
            r set "{06S}later" 1
            with_node 3 continue_server
            link_is up -3
        }
        same_data -0 -3
        assert_equal [dict get [stream_of -0] id] [dict get [stream_of -3] id]
    }

    test {a replica that is killed continues where its last file ends} {
        r -3 save
        assert_partial -0 {
            end_node 3 KILL
            r set "{06S}killed" 1
            with_node 3 continue_server
            link_is up -3
        }
        same_data -0 -3
    }

    test {a primary that hangs soon after the restart of its replica is replaced} {
        assert_partial -0 {
            end_node 3
            with_node 3 continue_server
            link_is up -3
        }
        send_signal STOP [srv -0 pid]
        wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "master"}
        send_signal CONT [srv -0 pid]
        wait_for_condition 600 50 {[lindex [r -0 role] 0] eq "slave"}
        link_is up -0
        assert_equal 1 [r -3 get "{06S}killed"]
    }

    test {a primary that was replaced while it was away continues as a replica of its successor} {
        same_offset -3 -0
        end_node 3
        wait_for_condition 600 50 {[lindex [r -0 role] 0] eq "master"}
        assert_partial -0 {
            with_node 3 continue_server
            wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "slave"}
            link_is up -3
        }
        same_data -0 -3
    }
}

start_cluster {1 1 {tags {cluster} overrides {repl-diskless-sync yes repl-diskless-sync-delay 0 repl-diskless-load swapdb repl-backlog-size 16384
        rdbcompression no enable-debug-command yes save {3600 1} cluster-allow-reads-when-down yes}}} {
    test {a restarted replica that needs a full synchronisation serves the data of its file meanwhile} {
        r set 06S old
        same_offset -0 -1
        end_node 1
        r set 06S new
        for {set i 0} {$i < 500} {incr i} {r set "{06S}$i" [string repeat x 2000]}
        r config set rdb-key-save-delay 20000
        with_node 1 continue_server
        wait_for_condition 200 20 {[string match *async_loading:1* [r -1 info persistence]]}
        r -1 readonly
        assert_equal old [r -1 get 06S]
        r config set rdb-key-save-delay 0
        send_signal KILL [exec pgrep -P [srv -0 pid]]
        link_is up -1
        assert_equal new [r -1 get 06S]
    }
}

start_cluster {3 1 {tags {cluster} overrides {repl-diskless-sync-delay 0 enable-debug-command yes cluster-node-timeout 2000 save {} appendonly yes}}} {
    foreach signal {TERM KILL} {
        test "with an append only file a replica and a primary continue after $signal" {
            r set 06S $signal
            r publish channel message
            foreach node {3 0} {
                r config resetstat
                same_offset -0 -3
                proves_position -$node
                end_node $node $signal
                if {$node == 3} {r set 06S later}
                with_node $node continue_server
                link_is up -3
                same_data -0 -3
                assert_equal 0 [lindex [syncs_of -0] 0]
            }
        }

        test "with an append only file a primary that hangs soon after the restart of its replica ($signal) is replaced" {
            cluster_wait_ok
            proves_position -3
            end_node 3 $signal
            r set 06S latest
            r config resetstat
            with_node 3 continue_server
            link_is up -3
            assert_equal 0 [lindex [syncs_of -0] 0]
            same_offset -0 -3
            send_signal STOP [srv -0 pid]
            wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "master"}
            send_signal CONT [srv -0 pid]
            wait_for_condition 600 50 {[lindex [r -0 role] 0] eq "slave"}
            link_is up -0
            assert_equal latest [r -3 get 06S]
            same_data -3 -0
            # It is refused until the node knows that its primary works, and gets no votes as long as others take it for
            # a primary, which they do for a moment after its last message as one.
            foreach other {1 2 3} {cluster_wait_flag -$other [cluster_id 0] slave}
            wait_for_condition 600 50 {![catch {r cluster failover}]}
            wait_for_condition 600 50 {[lindex [r -0 role] 0] eq "master"}
            link_is up -3
            cluster_wait_ok
        }
    }
}

start_cluster {3 1 {tags {cluster} overrides {repl-diskless-sync yes repl-diskless-sync-delay 0 repl-diskless-load swapdb repl-backlog-size 16384
        rdbcompression no enable-debug-command yes save {3600 1} cluster-node-timeout 2000}}} {
    test {a replica whose primary dies during the full synchronisation says what an order to replace it would lose, and obeys it} {
        r set 06S old
        same_offset -0 -3
        end_node 3
        r set 06S new
        for {set i 0} {$i < 500} {incr i} {r set "{06S}$i" [string repeat x 2000]}
        r config set rdb-key-save-delay 20000
        with_node 3 continue_server
        wait_for_condition 200 20 {[string match *async_loading:1* [r -3 info persistence]]}
        foreach process [exec pgrep -P [srv -0 pid]] {send_signal KILL $process}
        end_node 0 KILL
        log_has "promotes this replica, and the changes of the last * bytes are lost" -3
        assert_equal slave [lindex [r -3 role] 0]
        assert_equal OK [r -3 cluster failover takeover]
        wait_for_condition 600 50 {[lindex [r -3 role] 0] eq "master"}
        wait_for_condition 600 50 {![catch {r -3 get 06S} value] && $value eq "old"}
    }
}

start_cluster {3 1 {tags {cluster} overrides {repl-diskless-sync-delay 0 enable-debug-command yes save {} loglevel verbose}}} {
    test {a node that claims slots that it has given away is sent an UPDATE, and the log says so} {
        lassign [list [cluster_id 0] [cluster_id 1]] from to
        end_node 0
        set file [srv dir]/nodes.conf
        set old [read_bytes $file]
        with_node 0 continue_server
        cluster_wait_agree
        r -1 cluster setslot 0 node $to
        r cluster setslot 0 node $to
        r -1 cluster bumpepoch
        cluster_wait_agree
        end_node 0
        write_bytes $file $old
        with_node 0 continue_server
        set line "Node $from \\(.*\\) has old slots configuration, sending an UPDATE message about $to \\(.*\\)"
        wait_for_condition 400 50 {[regexp $line "[server_log -1][server_log -2][server_log -3]"]}
        cluster_wait_agree
        wait_for_condition 400 50 {![string match "* 0-*" [cluster_line $from]]}
    }

    # The limit is the node timeout and the period of PING: 2 s.
    test {the time in which a replica stood still counts for the age of its data} {
        foreach i {0 1 2 3} {r -$i config set cluster-node-timeout 1000 repl-ping-replica-period 1}
        link_is up -3
        r -3 config set cluster-replica-validity-factor 1
        set from [string length [server_log -3]]
        set client [with_node 3 connect]
        $client multi
        $client client kill 127.0.0.1:[srv port]
        $client debug sleep 4
        $client -send exec
        send_signal STOP [srv pid]
        $client -read
        wait_for_condition 400 50 {[string match "*Disconnected from primary for longer than allowed*" [string range [server_log -3] $from end]]}
        assert_equal slave [lindex [r -3 role] 0]
        send_signal CONT [srv pid]
        link_is up -3
    }
}
