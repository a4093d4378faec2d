# SPDX-License-Identifier: BSD-3-Clause
#
# The primary's side of dual-channel synchronisation, of filters and versions, with raw sockets; DEBUG's subcommands.

source $::tests_dir/support/raw_replica.tcl

set dual {capa eof capa psync2 capa dual-channel version 9.1.2}
set channel {capa eof rdb-only 1 rdb-channel 1 version 9.1.2}

start_server {tags {repl dual tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600 dual-channel-replication-enabled yes loglevel debug}} {
    test {dual channel: the stream goes through the main channel while the dataset is sent} {
        r debug populate 100 key 10
        r config set rdb-key-save-delay 10000
        set m [replica_connect $dual]
        replica_psync $m
        assert_equal +DUALCHANNELSYNC [replica_answer $m]
        set d [replica_connect $channel]
        raw_send $d "SYNC\r\n"
        set line [replica_answer $d] ;# before INFO: the first synchronization changes the id
        assert_match "\$ENDOFF:0 [info_field master_replid] 0 *" $line
        set id [lindex $line 3]
        assert_equal 1 [info_field replicas_waiting_psync]
        r set during transfer
        raw_send $m [resp_request replconf set-rdb-client-id $id]
        assert_equal +OK [replica_answer $m]
        replica_psync $m [lindex $line 1] 1
        assert_equal "+CONTINUE [lindex $line 1]" [replica_answer $m]
        replica_expect $m SELECT 0
        replica_expect $m set during transfer
        assert_equal 0 [info_field replicas_waiting_psync]
        assert_match "*slave0:*state=wait_bgsave,*type=rdb-channel*slave1:*state=bg_transfer,*type=main-channel*" [r info replication]
        r config set rdb-key-save-delay 0
        assert_match "VALKEY080*key:99*" [replica_dataset $d]
        raw_rest $d
        assert_match "*state=bg_transfer*" [r info replication]
        replica_ack $m 0
        wait_for_condition 100 20 {[string match "*slave0:*state=online,*type=replica*" [r info replication]]}
        foreach line [list \
            "*is capable of dual channel synchronization, and partial sync isn't possible. Full sync will continue with dedicated RDB channel.*" \
            "*Starting BGSAVE for SYNC with target: replicas sockets using: dual-channel*" \
            "*Dual channel replication: Sending to replica 127.0.0.1:7777 RDB end offset 0 and client-id $id*" \
            "*Dual channel replication: Add rdb replica 127.0.0.1:7777 to waiting psync, with cid $id, no repl-backlog to track *" \
            "*Dual channel replication: Attach replica rdb client $id to repl buf block*" \
            "*Streamed RDB transfer with replica 127.0.0.1:7777 succeeded (socket). Waiting for REPLCONF ACK from replica to enable streaming*RDB transfer completed, rdb only replica (127.0.0.1:7777) should be disconnected asap*" \
            "*Synchronization with replica 127.0.0.1:7777 succeeded*" \
            "*Dual channel replication: Replica 127.0.0.1:7777 rdb channel disconnected.*"
        ] {assert_match $line [server_log]}
    }

    test {dual channel: the child writes to the connection, and goes on while the primary is stopped} {
        r config set snapshot-mode fork
        r debug populate 20000 long 100
        set sent [dict create]
        foreach name {total_net_repl_output_bytes total_net_output_bytes} {dict set sent $name [info_field $name]}
        r debug pause-after-fork 1
        set m [replica_connect $dual]
        replica_psync $m
        assert_equal +DUALCHANNELSYNC [replica_answer $m]
        set d [replica_connect $channel]
        raw_send $d "SYNC\r\n"
        set line [replica_answer $d]
        assert_match "\$ENDOFF:*" $line
        assert_match "VALKEY080*long:19999*" [replica_dataset $d]
        wait_for_condition 100 20 {[regexp {State:\s+T} [read_bytes /proc/[srv pid]/status]]}
        exec kill -CONT [srv pid]
        r debug pause-after-fork 0
        raw_send $m [resp_request replconf set-rdb-client-id [lindex $line 3]]
        assert_equal +OK [replica_answer $m]
        replica_psync $m [lindex $line 1] [expr {[string range [lindex $line 0] 8 end] + 1}]
        assert_equal "+CONTINUE [lindex $line 1]" [replica_answer $m]
        raw_rest $d
        replica_ack $m [string range [lindex $line 0] 8 end]
        wait_for_condition 100 20 {[string match "*slave?:*state=online,*" [r info replication]]}
        # What the child has sent counts as sent by the server.
        foreach name {total_net_repl_output_bytes total_net_output_bytes} {
            wait_for_condition 100 20 {[info_field $name] - [dict get $sent $name] >= 20000 * 20}
        }
        assert_match "*Background RDB transfer started by pid * to direct socket to replica*" [server_log]
        raw_close $m
        # A replica that has gone ends the child, as through a pipe.
        r config set rdb-key-save-delay 100000
        set d [replica_connect $channel]
        raw_send $d "SYNC\r\n"
        assert_match "\$ENDOFF:*" [replica_answer $d]
        assert_equal 1 [info_field rdb_bgsave_in_progress]
        raw_close $d
        wait_for_condition 200 20 {[info_field rdb_bgsave_in_progress] == 0}
        r config set rdb-key-save-delay 0 snapshot-mode auto
        r flushall
    } {needs:linux}

    test {dual channel: a main channel that does not come ends the dataset channel after the grace period} {
        r config set repl-backlog-size 16kb
        r debug delay-rdb-client-free-seconds 2
        set d [replica_connect $channel]
        raw_send $d "SYNC\r\n"
        set line [replica_answer $d]
        set from [string range [lindex $line 0] 8 end]
        replica_dataset $d
        wait_for_condition 100 20 {[string match "*slave0:*state=rdb_transmitted,*type=rdb-channel*" [r info replication]]}
        # Meanwhile what it needs is kept, however much it is.
        r set big [string repeat x 100000]
        assert_range [info_field repl_backlog_histlen] 100000 200000
        raw_rest $d
        assert_match "*Replica main channel failed to establish PSYNC within the grace period (2 seconds). Freeing RDB client*" [server_log]
        r set big [string repeat x 100000]
        wait_for_condition 100 20 {[info_field repl_backlog_histlen] < 150000}
    }

    test {dual channel: a primary that has it off synchronises normally, and ignores the capability without diskless sync} {
        r config set repl-diskless-sync no
        set s [replica_connect $dual]
        assert_match "*Dual channel capability ignored: repl-diskless-sync disabled*" [server_log]
        replica_psync $s
        assert_match "+FULLRESYNC *" [replica_answer $s]
        replica_dataset $s
        r config set repl-diskless-sync yes dual-channel-replication-enabled no
        set s [replica_connect $dual]
        replica_psync $s
        assert_match "+FULLRESYNC *" [replica_answer $s]
    }

    test {rdb-only: the connection is closed after the dataset} {
        set s [replica_connect {capa eof rdb-only 1 version 9.1.2}]
        raw_send $s "SYNC\r\n"
        assert_match "VALKEY080*" [replica_dataset $s]
        raw_rest $s
        assert_match "*RDB transfer completed, rdb only replica (127.0.0.1:7777) should be disconnected asap*" [server_log]
    }

    test {rdb-filter-only: functions alone, or nothing} {
        r function load "#!lua name=lib\nserver.register_function('fn', function() return 1 end)"
        r set secret_key value
        foreach {filter functions} {functions 1 "" 0} {
            set s [replica_connect [list capa eof version 9.1.2 rdb-filter-only $filter]]
            raw_send $s "SYNC\r\n"
            set dataset [replica_dataset $s]
            assert_equal 0 [string match *secret_key* $dataset]
            assert_equal $functions [string match *register_function* $dataset]
        }
    }

    test {replicas before 9.0 get RDB version 11, also without diskless sync; a hash with timed fields cannot be sent to them} {
        r config set repl-diskless-sync no hide-user-data-from-log no
        foreach version {{version 8.1.0} {version 7.2.0} {}} {
            set s [replica_connect [list capa eof capa psync2 {*}$version]]
            replica_psync $s
            assert_match "+FULLRESYNC *" [replica_answer $s]
            assert_match "REDIS0011*secret_key*" [replica_dataset $s]
        }
        r hsetex hash ex 1000 fields 1 f v
        set s [replica_connect {capa eof version 8.1.0}]
        replica_psync $s
        replica_answer $s
        raw_rest $s
        assert_match "*Can't store key 'hash' (db 0) in RDB version 11*Background RDB transfer error*SYNC failed. BGSAVE child returned an error*" [server_log]
    }

    test {DEBUG REPLICATE and CHANGE-REPL-ID} {
        r config set repl-diskless-sync yes
        set sync [replica_sync]
        assert_equal OK [r debug replicate set only there]
        replica_expect [dict get $sync socket] set only there
        assert_equal "" [r get only]
        assert_error "ERR unknown subcommand or wrong number of arguments for 'REPLICATE'. Try DEBUG HELP." {r debug REPLICATE}
        assert_equal OK [r debug change-repl-id]
        assert_not_equal [dict get $sync id] [info_field master_replid]
        set s [replica_connect]
        replica_psync $s [dict get $sync id] [info_field master_repl_offset]
        assert_match "+FULLRESYNC [info_field master_replid] *" [replica_answer $s]
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600 repl-backlog-size 16kb maxmemory-policy allkeys-random latency-tracking no}} {
    test {what a replica that does not read keeps is no reason to evict keys, and does not count once it was closed} {
        for {set i 0} {$i < 100} {incr i} {r setrange key:$i 10000 x}
        set sync [replica_sync]
        r set key:0 [string repeat x 1000]
        set counted {[info_field used_memory] - [info_field mem_not_counted_for_evict] - [info_field mem_clients_normal]}
        set before [expr $counted]
        r config set maxmemory [expr {$before + 64 * 1024}]
        set value [string repeat x 1000]
        for {set i 0} {$i < 20000} {incr i} {r setrange key:0 0 $value}
        assert_range [info_field mem_clients_slaves] 10000000 24000000
        assert_range [expr $counted] [expr {$before - 40000}] [expr {$before + 40000}]
        assert_equal {0 100} [list [info_field evicted_keys] [r dbsize]]
        r client kill type replica
        assert_equal 0 [info_field mem_clients_slaves]
        assert_range [expr $counted] [expr {$before - 40000}] [expr {$before + 40000}]
        assert_equal {0 100} [list [info_field evicted_keys] [r dbsize]]
    }

    test {INFO counts the bytes of replication} {
        r config set maxmemory 0
        r config resetstat
        assert_equal {0 0} [list [info_field total_net_repl_input_bytes] [info_field total_net_repl_output_bytes]]
        set sync [replica_sync]
        r set key:0 [string repeat x 100000]
        replica_expect [dict get $sync socket] SELECT 0
        replica_expect [dict get $sync socket] set key:0 [string repeat x 100000]
        set sent [info_field total_net_repl_output_bytes]
        assert_range $sent 100000 200000
        assert_range [info_field total_net_output_bytes] $sent [expr {$sent + 100000}]
        assert_equal 0 [info_field total_net_repl_input_bytes]
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600 repl-backlog-size 1mb repl-backlog-ttl 1}} {
    test {a replica that does not read costs no copy of its own, and is closed at the output limit} {
        set slow {}
        foreach i {1 2 3} {lappend slow [dict get [replica_sync] socket]}
        set value [string repeat x 100000]
        for {set i 0} {$i < 200} {incr i} {r set key $value}
        # One copy of 20 MB, less what the sockets hold, for the three of them.
        assert_range [info_field mem_total_replication_buffers] 10000000 24000000
        assert_equal [info_field mem_clients_slaves] [info_field mem_not_counted_for_evict]
        assert_equal [info_field mem_total_replication_buffers] [expr {[info_field mem_clients_slaves] + [info_field mem_replication_backlog]}]
        r config set client-output-buffer-limit "replica 10mb 0 0"
        r set key $value
        wait_for_condition 100 20 {[info_field connected_slaves] == 0}
        assert_match "*scheduled to be closed ASAP for overcoming of output buffer limits*" [server_log]
        assert_equal 3 [info_field client_output_buffer_limit_disconnections]
        r set key $value
        assert_range [info_field mem_total_replication_buffers] 1000000 1300000
        assert_range [info_field mem_not_counted_for_evict] 0 200000
    }

    test {the backlog is freed after repl-backlog-ttl without replicas, with a new id} {
        set id [info_field master_replid]
        wait_for_condition 100 100 {[info_field repl_backlog_active] == 0}
        assert_not_equal $id [info_field master_replid]
        assert_match "*Replication backlog freed after 1 seconds without connected replicas.*" [server_log]
        set offset [info_field master_repl_offset]
        r set key value
        assert_equal $offset [info_field master_repl_offset]
    }

    test {the log says why the connection of a replica has ended} {
        set s [dict get [replica_sync] socket]
        close $s
        wait_for_condition 100 50 {[string match "*Connection with replica 127.0.0.1:7777 lost. It has closed the connection.*" [server_log]]} else {
            fail "no reason in the log"
        }
    }

    test {a replica that is not heard of for repl-timeout is closed} {
        r config set repl-timeout 1
        set s [dict get [replica_sync] socket]
        raw_rest $s
        assert_match "*Disconnecting timedout replica (streaming sync): 127.0.0.1:7777*Connection with replica 127.0.0.1:7777 lost.*" [server_log]
        # During a transfer: one that does not read.
        r debug populate 300000 key 100
        set t [replica_connect]
        replica_psync $t
        wait_for_condition 100 100 {[string match "*Disconnecting timedout replica (full sync): 127.0.0.1:7777*" [server_log]]}
        wait_for_condition 100 20 {[info_field rdb_bgsave_in_progress] == 0}
    }

    test {fifty replicas at once share one child and one copy} {
        r config set repl-timeout 60
        r flushall
        r debug populate 1000 key 10
        r config set repl-diskless-sync-delay 100 repl-diskless-sync-max-replicas 50
        set children [regexp -all {Background RDB transfer started by pid} [server_log]]
        set all {}
        for {set i 0} {$i < 50} {incr i} {
            lappend all [set s [replica_connect]]
            replica_psync $s
        }
        foreach s $all {
            assert_match "+FULLRESYNC *" [replica_answer $s]
            lappend datasets [replica_dataset $s]
            replica_ack $s 0
        }
        assert_equal 1 [llength [lsort -unique $datasets]]
        assert_match "*key:999*" [lindex $datasets 0]
        assert_equal [expr {$children + 1}] [regexp -all {Background RDB transfer started by pid} [server_log]]
        wait_for_condition 100 20 {[regexp -all {state=online} [r info replication]] == 50}
        r set to all
        foreach s $all {
            replica_expect $s SELECT 0
            replica_expect $s set to all
        }
    }
}

set settings {save {} repl-diskless-sync-delay 0 dual-channel-replication-enabled yes loglevel debug}
start_server [list tags {repl dual needs:servers tls:skip} overrides $settings] {
start_server [list overrides $settings] {
    test {DEBUG PAUSE-AFTER-FORK stops a replica before it asks for the stream, and the primary notices} {
        assert_equal OK [r -1 debug delay-rdb-client-free-seconds 1]
        assert_equal OK [r debug pause-after-fork 1]
        set c [connect]
        r -1 set key value
        r replicaof [srv -1 host] [srv -1 port]
        wait_for_condition 400 25 {[lindex [exec cat /proc/[srv pid]/stat] 2] eq "T"}
        wait_for_condition 400 25 {[string match "*failed to establish PSYNC within the grace period (1 seconds)*" [server_log -1]]}
        # An I/O thread may read the order after the next synchronisation has begun, which must not stop the replica again.
        r -1 config set dual-channel-replication-enabled no
        $c -send debug pause-after-fork 0
        exec kill -CONT [srv pid]
        assert_equal OK [$c -read]
        wait_for_condition 400 25 {[info_field master_link_status] eq "up"}
        assert_equal value [r get key]
    }
}
}

start_server {tags {repl dual tls:skip needs:linux} overrides {save {} repl-diskless-sync-delay 0 dual-channel-replication-enabled yes
        snapshot-mode fork enable-debug-command yes}} {
    start_server {tags {repl dual tls:skip} overrides {save {} dual-channel-replication-enabled yes loglevel debug}} {
        test {dual channel: the dataset is loaded while the primary stands still, and the stream follows} {
            r -1 set key value
            assert_equal OK [r -1 debug pause-after-fork 1]
            r replicaof [srv -1 host] [srv -1 port]
            wait_for_condition 400 25 {[lindex [exec cat /proc/[srv -1 pid]/stat] 2] eq "T"}
            wait_for_condition 400 25 {[string match "*Done loading RDB*" [server_log]]}
            assert_equal value [r get key]
            assert_equal {handshake -1} [lrange [r role] 3 4]
            exec kill -CONT [srv -1 pid]
            wait_for_condition 400 25 {[info_field master_link_status] eq "up"}
            r -1 set key later
            wait_for_condition 400 25 {[r get key] eq "later"}
            assert_match "*Psync established after rdb load*" [server_log]
            assert_match "*sync_full:1*sync_partial_ok:1*" [r -1 info stats]
        }
    }
}
