# SPDX-License-Identifier: BSD-3-Clause
#
# The primary's side of replication, with raw sockets as replicas: handshake, full and partial synchronisation, stream,
# INFO, ROLE, CLIENT LIST, timeouts, limits.

source $::tests_dir/support/raw_replica.tcl

proc replica_state {number} {
    regexp "slave$number:\[^\r\]*state=(\[a-z_\]+)" [r info replication] -> state
    return $state
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {REPLCONF: values and errors} {
        assert_equal OK [r replconf]
        assert_equal OK [r replconf listening-port 99999 capa unknown capa eof]
        assert_equal OK [r REPLCONF LISTENING-PORT -5]
        assert_error "ERR syntax error" {r replconf listening-port}
        assert_error "ERR value is not an integer or out of range" {r replconf listening-port x}
        assert_error "ERR Unrecognized REPLCONF option: foo" {r replconf foo 1}
        assert_error "ERR REPLCONF ip-address provided by replica instance is too long: 300 bytes" {
            r replconf ip-address [string repeat x 300]
        }
        assert_equal OK [r replconf version 9.1.2]
        foreach bad {9.1 9.1.256 a.b.c 9.1.2.3 ""} {
            assert_error "ERR Unrecognized version format: $bad" {r replconf version $bad}
        }
        assert_error "ERR value is out of range, value must between 0 and 1" {r replconf rdb-only 2}
        assert_error "ERR value is out of range, value must between 0 and 1" {r replconf rdb-channel x}
        assert_error "ERR Unsupported rdb-filter-only option: foo" {r replconf rdb-filter-only foo}
        assert_error "ERR Missing rdb-filter-only values" {r replconf rdb-filter-only "\"foo"}
        assert_error "ERR Unrecognized RDB client id 5" {r replconf set-rdb-client-id 5}
        assert_error "ERR This instance has cluster support disabled" {r replconf set-cluster-node-id abc}
    }

    test {REPLCONF ACK and GETACK are never replied to} {
        set s [raw_connect]
        raw_send $s [resp_request replconf ack 5] [resp_request replconf ack x] [resp_request replconf getack *]
        raw_send $s [resp_request replconf capa eof]
        assert_equal +OK [raw_line $s]
    }

    test {a full synchronisation through the pipe: dataset, then the stream after the first ACK} {
        r set key value
        set s [replica_connect]
        assert_equal 0 [info_field repl_backlog_active]
        replica_psync $s
        set answer [replica_answer $s]
        assert_match {+FULLRESYNC ???????????????????????????????????????? 0} $answer
        assert_equal [lindex $answer 1] [info_field master_replid]
        set dataset [replica_dataset $s]
        assert_match "VALKEY080*repl-stream-db*repl-id*[info_field master_replid]*key*value*" $dataset
        wait_for_condition 100 20 {[replica_state 0] eq "online"}
        r set other 1
        assert_equal 1 [raw_silent $s]
        replica_ack $s 0
        assert_equal "SELECT 0" [replica_next $s]
        assert_equal "set other 1" [replica_next $s]
        assert_match "*Synchronization with replica 127.0.0.1:7777 succeeded*" [server_log]
    }

    test {the stream: one command as it is, SELECT when the database changes, MULTI around several} {
        set s [dict get [replica_sync] socket]
        r set a 1
        r select 2
        r set b 2
        r multi
        r set c 3
        r incr c
        r exec
        r select 0
        r get a
        r publish channel message
        replica_expect $s SELECT 0
        replica_expect $s set a 1
        replica_expect $s SELECT 2
        replica_expect $s set b 2
        foreach request {MULTI {set c 3} {incr c} EXEC} {replica_expect $s {*}$request}
        replica_expect $s SELECT 0
        replica_expect $s publish channel message
    }

    test {offsets count every byte of the stream, also those of PING} {
        set sync [replica_sync]
        set s [dict get $sync socket]
        r set key [string repeat x 1000]
        r config set repl-ping-replica-period 1
        set bytes 0
        while 1 {
            set words [replica_next $s]
            incr bytes [string length [resp_request {*}$words]]
            if {$words eq "ping"} break
        }
        r config set repl-ping-replica-period 3600
        set now [info_field master_repl_offset]
        assert_equal $now [expr {[dict get $sync offset] + $bytes}]
    }

    test {PSYNC continues where the replica stopped} {
        set sync [replica_sync]
        set s [dict get $sync socket]
        r set first 1
        replica_expect $s SELECT 0
        replica_expect $s set first 1
        set next [expr {[info_field master_repl_offset] + 1}]
        raw_close $s
        r set second 2
        set ok [info_field sync_partial_ok]
        set s [replica_connect]
        replica_psync $s [dict get $sync id] $next
        assert_equal "+CONTINUE [dict get $sync id]" [replica_answer $s]
        replica_expect $s set second 2
        assert_equal [expr {$ok + 1}] [info_field sync_partial_ok]
        set t [replica_connect {}]
        replica_psync $t [string toupper [dict get $sync id]] $next
        assert_equal "+CONTINUE" [replica_answer $t]
        assert_match "*Partial resynchronization request from 127.0.0.1:<unknown-replica-port> accepted. Sending *" [server_log]
    }

    test {PSYNC with another id, a future or a lost offset synchronises fully} {
        set id [info_field master_replid]
        set refused [info_field sync_partial_err]
        foreach {asked offset line} [list \
            [string repeat a 40] 1 "*Replication ID mismatch (Replica asked for 'aaa*', my replication IDs are '$id' and '000*')*" \
            $id 100000000 "*tried to PSYNC with an offset (100000000) that is greater than the primary replication offset (*" \
            $id -7 "*Unable to partial resync with replica 127.0.0.1:7777 for lack of backlog (Replica request was $id:-7, and I can only reply with the range *"] {
            set s [replica_connect]
            replica_psync $s $asked $offset
            assert_match "+FULLRESYNC $id *" [replica_answer $s]
            replica_dataset $s
            assert_match $line [server_log]
            raw_close $s
        }
        assert_equal [expr {$refused + 3}] [info_field sync_partial_err]
    }

    test {PSYNC: wrong offset, pending output, and refused for MONITOR} {
        set s [raw_connect]
        set bytes 20000000 ;# more than the socket takes
        r set long [string repeat x $bytes]
        raw_send $s "[resp_request get long][resp_request psync ? -1]"
        assert_equal "\$$bytes" [raw_line $s]
        raw_read $s [expr {$bytes + 2}]
        r del long
        assert_equal "-ERR SYNC and PSYNC are invalid with pending output" [raw_line $s]
        raw_send $s [resp_request psync ? x]
        assert_equal "-ERR value is not an integer or out of range" [raw_line $s]
        assert_match "*Replica * asks for synchronization\n*Replica * asks for synchronization but with a wrong offset*" [server_log]
        raw_send $s [resp_request replconf rdb-filter-only functions]
        assert_equal +OK [raw_line $s]
        raw_send $s [resp_request sync]
        assert_equal "-ERR Filtered replica requires EOF capability" [raw_line $s]
        set m [raw_connect]
        raw_send $m [resp_request monitor]
        assert_equal +OK [raw_line $m]
        set replicas [info_field connected_slaves]
        raw_send $m [resp_request psync ? -1] [resp_request reset]
        while {[set line [raw_line $m]] ne "+RESET"} {assert_match {+* "*"} $line}
        assert_equal $replicas [info_field connected_slaves]
    }

    test {SYNC: no answer but the dataset, also without the eof capability} {
        set s [replica_connect {capa eof version 9.1.2}]
        raw_send $s "SYNC\r\n"
        assert_match "VALKEY080*" [replica_dataset $s]
        set t [raw_connect]
        raw_send $t "SYNC\r\n"
        assert_match "VALKEY080*" [replica_dataset $t]
        r set after sync
        replica_expect $t SELECT 0
        replica_expect $t set after sync
    }

    test {a command that replies closes the connection of a replica} {
        foreach {request name text} {
            {get key} get "Replica can't interact with the keyspace"
            ping ping {} {replconf listening-port 5} replconf {}
        } {
            set s [dict get [replica_sync] socket]
            raw_send $s [resp_request {*}$request]
            raw_rest $s
            if {$text ne ""} {
                assert_match "*== CRITICAL == This primary is sending an error to its replica: '$text' after processing the command '$name'*" [server_log]
            }
            assert_match "*Replica generated a reply to command '$name', disconnecting it: id=*" [server_log]
        }
    }

    test {INFO, ROLE and CLIENT LIST describe replicas} {
        r client kill type replica
        wait_for_condition 100 20 {[info_field connected_slaves] == 0}
        set sync [replica_sync {ip-address 10.1.2.3 capa eof capa psync2 version 9.1.2}]
        r set key value
        set offset [info_field master_repl_offset]
        replica_ack [dict get $sync socket] $offset
        wait_for_condition 100 20 {[string match "*slave0:ip=10.1.2.3,port=7777,state=online,offset=$offset,lag=?,type=replica*" [r info replication]]}
        assert_equal [list master $offset [list [list 10.1.2.3 7777 $offset]]] [r role]
        assert_match "*flags=S *oll=1 omem=* cmd=replconf *" [r client list type replica]
        assert_equal 1 [info_field connected_slaves]
        assert_equal 0 [info_field replicas_waiting_psync]
        assert_equal no-failover [info_field master_failover_state]
    }

    test {ACK never goes back} {
        set sync [replica_sync]
        set s [dict get $sync socket]
        r set key value
        replica_expect $s SELECT 0
        replica_expect $s set key value
        set offset [info_field master_repl_offset]
        # The replica of the test before may still be there, and requests may be executed later.
        wait_for_condition 100 20 {[info_field connected_slaves] == 1}
        regexp {tot-cmds=(\d+)} [r client list type replica] all count
        replica_ack $s $offset
        replica_ack $s 1
        raw_send $s [resp_request replconf ack x]
        wait_for_condition 100 20 {[regexp {tot-cmds=(\d+)} [r client list type replica] all now] && $now >= $count + 3}
        assert_match "*offset=$offset,lag=*" [r info replication]
        r set key other
        replica_expect $s set key other ;# and no reply before
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync no}} {
    test {a full synchronisation by disk: the length first, the stream at once} {
        r set key value
        set s [replica_connect]
        replica_psync $s
        assert_match "+FULLRESYNC *" [replica_answer $s]
        set dataset [replica_dataset $s]
        assert_match "VALKEY080*key*value*" $dataset
        r set other 1
        replica_expect $s SELECT 0
        replica_expect $s set other 1
        assert_match "*Starting BGSAVE for SYNC with target: disk using: normal sync*" [server_log]
        assert_equal $dataset [read_bytes [srv dir]/dump.rdb]
    }

    test {a replica that arrives during a save by disk shares it, and gets what was written since} {
        r config set rdb-key-save-delay 20000
        r debug populate 100 many 10
        set s [replica_connect]
        replica_psync $s
        set first [replica_answer $s]
        r set during save
        set t [replica_connect]
        replica_psync $t
        assert_equal $first [replica_answer $t]
        assert_match "*Waiting for end of BGSAVE for SYNC*" [server_log]
        # One that has less capabilities or needs another version does not.
        set u [replica_connect {capa eof version 8.1.0}]
        replica_psync $u
        r config set rdb-key-save-delay 0
        assert_equal [replica_dataset $s] [replica_dataset $t]
        foreach channel [list $s $t] {
            replica_expect $channel SELECT 0
            replica_expect $channel set during save
        }
        assert_match "+FULLRESYNC *" [replica_answer $u]
        assert_match "REDIS0011*" [replica_dataset $u]
        assert_match "*Can't attach the replica to the current BGSAVE. Waiting for next BGSAVE for SYNC*" [server_log]
    }

    test {newlines keep the connection alive during a save by disk} {
        r config set rdb-key-save-delay 100000
        set s [replica_connect]
        replica_psync $s
        assert_match "+FULLRESYNC *" [raw_line $s]
        assert_equal "\n" [raw_read $s 1]
        r config set rdb-key-save-delay 0
        r bgsave cancel
        raw_rest $s
        assert_match "*SYNC failed. BGSAVE child returned an error*" [server_log]
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 1000}} {
    test {repl-diskless-sync-delay lets replicas share a child, up to repl-diskless-sync-max-replicas} {
        r config set repl-diskless-sync-max-replicas 3
        set waiting {}
        foreach i {1 2} {
            lappend waiting [set s [replica_connect]]
            replica_psync $s
            assert_equal "\n" [raw_read $s 1]
        }
        assert_match "*slave1:*state=wait_bgsave*" [r info replication]
        assert_match "*Delay next BGSAVE for diskless SYNC*" [server_log]
        lappend waiting [set s [replica_connect]]
        replica_psync $s
        foreach s $waiting {
            assert_match "+FULLRESYNC *" [replica_answer $s]
            lappend datasets [replica_dataset $s]
        }
        assert_equal [lindex $datasets 0] [lindex $datasets 1]
        assert_equal [lindex $datasets 0] [lindex $datasets 2]
        assert_equal 1 [regexp -all {Background RDB transfer started} [server_log]]
        wait_for_condition 100 20 {[string match "*Diskless rdb transfer, done reading from pipe, 3 replicas still up.*" [server_log]]}
    }

    test {the child is killed when the last replica of a transfer has gone, not before} {
        r config set repl-diskless-sync-max-replicas 2
        r config set rdb-key-save-delay 100000
        r debug populate 1000 many 10
        set s [replica_connect]
        set t [replica_connect]
        replica_psync $s
        replica_psync $t
        replica_answer $s
        raw_close $s
        wait_for_condition 100 20 {[info_field connected_slaves] == 1}
        assert_equal 1 [info_field rdb_bgsave_in_progress]
        raw_close $t
        wait_for_condition 100 20 {[info_field rdb_bgsave_in_progress] == 0}
        assert_match "*Diskless rdb transfer, last replica dropped, killing fork child.*" [server_log]
        assert_equal ok [info_field rdb_last_bgsave_status]
        r config set rdb-key-save-delay 0
    }

    test {without save points the child that writes the file is killed with the last replica that waits for it} {
        r config set repl-diskless-sync no rdb-key-save-delay 100000
        foreach {points running} {{} 0 {3600 1000000} 1} {
            r config set save $points
            set s [replica_connect]
            replica_psync $s
            assert_match "+FULLRESYNC *" [replica_answer $s]
            assert_equal 1 [info_field rdb_bgsave_in_progress]
            raw_close $s
            wait_for_condition 100 20 {[info_field connected_slaves] == 0}
            if {!$running} {
                wait_for_condition 100 20 {[info_field rdb_bgsave_in_progress] == 0}
                # It was not wanted any more, so nothing has failed.
                assert_equal ok [info_field rdb_last_bgsave_status]
            } else {
                assert_equal 1 [info_field rdb_bgsave_in_progress]
            }
        }
        assert_equal 1 [regexp -all {Background saving, persistence disabled, last replica dropped, killing fork child.} [server_log]]
        r config set rdb-key-save-delay 0 save ""
        catch {r bgsave cancel}
        wait_for_condition 100 20 {[info_field rdb_bgsave_in_progress] == 0}
        r config set repl-diskless-sync yes
    }
}
