# SPDX-License-Identifier: BSD-3-Clause
#
# Progress of full synchronisations in INFO and in the log, on both sides; what is left of them at a shutdown.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/primary.tcl

# The line of INFO about the synchronisation of the first replica as a dict.
proc sync_info {} {
    if {![regexp {full_sync_slave0:([^\r]+)} [r info replication] -> line]} {return {phase none keys 0}}
    return [string map {, " " = " "} $line]
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600 repl-backlog-size 200mb rdbcompression no}} {
    test {a primary tells the progress of a full synchronisation: child, pipe} {
        r debug populate 200000 key 100
        r config set rdb-key-save-delay 100
        set s [replica_connect]
        assert_equal 0 [string match *full_sync_slave* [r info replication]]
        replica_psync $s
        wait_for_condition 400 25 {[dict get [sync_info] keys] > 0} else {fail [sync_info]}
        set now [sync_info]
        assert_equal streaming [dict get $now phase]
        assert_range [dict get $now keys] 1024 200000
        assert_equal 200000 [dict get $now total_keys]
        assert_range [dict get $now eta_seconds] 1 100000
        wait_for_condition 400 25 {[dict get [sync_info] sent_bytes] > 0 && [dict get [sync_info] bytes_per_second] > 0}
        wait_for_condition 400 25 {[string match "*Sending the dataset to 1 replicas: *, */s, * of 200000 keys (* %), about * seconds left*" [server_log]]}
        raw_close $s
        wait_for_condition 400 25 {[dict get [sync_info] phase] eq "none"}
    }

    test {a primary tells the progress of a full synchronisation: file} {
        wait_for_condition 400 25 {[info_field rdb_bgsave_in_progress] == 0}
        r config set repl-diskless-sync no
        set s [replica_connect]
        replica_psync $s
        wait_for_condition 400 25 {[dict get [sync_info] keys] > 0} else {fail [sync_info]}
        assert_equal saving [dict get [sync_info] phase]
        wait_for_condition 400 25 {[string match "*Saving the dataset for 1 replicas, * of 200000 keys (* %), about * seconds left*" [server_log]]}
        raw_close $s
        r config set rdb-key-save-delay 0
        # Nobody waits for the child any more: the server ends it.
        wait_for_condition 400 25 {[info_field rdb_bgsave_in_progress] == 0}
        # The sending of the file: to a replica that does not read.
        set s [replica_connect]
        replica_psync $s
        wait_for_condition 400 25 {[dict get [sync_info] phase] eq "sending"} else {fail [sync_info]}
        wait_for_condition 400 25 {[dict get [sync_info] sent_bytes] > 0}
        assert_range [dict get [sync_info] total_bytes] 20000000 40000000
        wait_for_condition 400 25 {[string match "*Sending the dataset to replica 127.0.0.1:7777: * of * (* %), */s, about * seconds left*" [server_log]]}
        raw_close $s
        wait_for_condition 400 25 {[dict get [sync_info] phase] eq "none"}
    }

    test {a file and the stream are sent to a replica without pauses on a primary that has nothing else to do} {
        r debug populate 500000 key 100
        set s [replica_connect]
        replica_psync $s
        set answer [replica_answer $s]
        info_is rdb_bgsave_in_progress 0
        # In pieces, one per turn of the timer, it would take several minutes.
        set bound [expr {[clock seconds] + 60}]
        assert_range [string length [replica_dataset $s]] 50000000 90000000
        assert {[clock seconds] < $bound} "the file was sent in pieces"
        raw_close $s
        set value [string repeat x 1000000]
        for {set i 0} {$i < 100} {incr i} {r set key $value}
        set s [replica_connect]
        set bound [expr {[clock seconds] + 15}]
        replica_psync $s [lindex $answer 1] [expr {[lindex $answer 2] + 1}]
        assert_match "+CONTINUE *" [replica_answer $s]
        raw_read $s 100000000
        assert {[clock seconds] < $bound} "the stream was sent in pieces"
    }
}

primary_listen

start_server {tags {repl tls:skip} overrides {save {}}} {
    test {a replica tells the progress of the transfer} {
        set line {PRIMARY <-> REPLICA sync: received [^\n]* of [^\n]* \(\d+ %\), [^\n]*/s, about \d+ seconds left}
        foreach mode {disabled flush-before-load} {
            set lines [regexp -all $line [server_log]]
            r replicaof no one
            primary_drop
            r config set repl-diskless-load $mode
            r replicaof 127.0.0.1 $::primary_port
            set c [primary_accept]
            primary_handshake $c
            set pairs {}
            for {set i 0} {$i < 2000} {incr i} {lappend pairs key$i [string repeat x 60]}
            set rdb [rdb_of $pairs]
            raw_send $c "+FULLRESYNC [string repeat c 40] 50\r\n\$[string length $rdb]\r\n[string range $rdb 0 99999]"
            wait_for_condition 400 25 {[info_field master_sync_bytes_per_second] > 0} else {fail [r info replication]}
            wait_for_condition 400 25 {[info_field master_sync_read_bytes] == 100000} else {fail [r info replication]}
            wait_for_condition 400 25 {[regexp -all $line [server_log]] > $lines} else {fail [server_log]}
            raw_send $c [string range $rdb 100000 end]
            primary_wait_ack $c 50
            assert_match "*[string length $rdb] bytes received from the primary and loaded in * seconds*" [server_log]
            assert_equal 0 [string match *master_sync_bytes_per_second* [r info replication]]
        }
    }

    test {what a dual-channel synchronisation collects counts as memory} {
        r replicaof no one
        primary_drop
        assert_equal 0 [info_field mem_replicas_repl_buffer]
        r replicaof 127.0.0.1 $::primary_port
        set m [primary_accept]
        primary_handshake $m
        raw_send $m "+DUALCHANNELSYNC\r\n"
        set d [primary_accept]
        primary_request $d
        raw_send $d "+OK\r\n"
        assert_equal SYNC [primary_request $d]
        raw_send $d "\$ENDOFF:50 [string repeat c 40] 0 7\r\n"
        assert_equal {REPLCONF set-rdb-client-id 7} [primary_request $m]
        raw_send $m "+OK\r\n"
        assert_match {PSYNC * 51} [primary_request $m]
        raw_send $m "+CONTINUE [string repeat c 40]\r\n"
        primary_send $m SET key [string repeat y 100000]
        set length [primary_length SET key [string repeat y 100000]]
        wait_for_condition 400 25 {[info_field replicas_repl_buffer_size] == $length}
        assert_range [info_field mem_replicas_repl_buffer] $length [expr {4 * $length}]
        r replicaof no one
        assert_equal 0 [info_field mem_replicas_repl_buffer]
    }
}

start_server {tags {repl tls:skip} overrides {save {}}} {
    test {SHUTDOWN during a transfer leaves no file and does not reconnect} {
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        primary_handshake $c
        raw_send $c "+FULLRESYNC [string repeat c 40] 50\r\n\$1000000\r\nREDIS0011"
        wait_for_condition 400 25 {[llength [glob -nocomplain [srv dir]/temp-*.rdb]] == 1}
        mark_logs
        catch {r shutdown nosave}
        wait_for_condition 400 25 {[string match "*ready to exit, bye bye*" [server_log]]}
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
        assert_equal 0 [regexp {Reconnecting|lost|I/O error} [server_log]] [server_log]
    }
}

start_server {tags {repl tls:skip} overrides {save {}}} {
    test {SHUTDOWN during the load of a file leaves no file} {
        r replicaof 127.0.0.1 $::primary_port
        r config set key-load-delay 10000 loading-process-events-interval-bytes 1024
        set c [primary_accept]
        primary_handshake $c
        set pairs {}
        for {set i 0} {$i < 2000} {incr i} {lappend pairs key$i [string repeat x 60]}
        primary_full_sync $c [string repeat c 40] 50 [rdb_of $pairs]
        wait_for_condition 400 25 {[info_field loading] == 1}
        mark_logs
        catch {r shutdown nosave}
        wait_for_condition 400 25 {[string match "*ready to exit, bye bye*" [server_log]]}
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
    }
}

start_server {tags {repl tls:skip} overrides {save {}}} {
    test {SHUTDOWN of a connected replica does not reconnect} {
        primary_drop
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        primary_handshake $c
        primary_full_sync $c [string repeat c 40] 50 [rdb_of {k v}]
        primary_wait_ack $c 50
        mark_logs
        catch {r shutdown nosave}
        wait_for_condition 400 25 {[string match "*ready to exit, bye bye*" [server_log]]}
        assert_equal 0 [regexp {Reconnecting|lost} [server_log]] [server_log]
    }
}

primary_close
