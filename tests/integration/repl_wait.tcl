# SPDX-License-Identifier: BSD-3-Clause
#
# WAIT, WAITAOF, min-replicas-to-write, SHUTDOWN that waits, with raw sockets as replicas.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl

start_server {tags {repl wait tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {WAIT without replicas, its errors, in MULTI and in scripts} {
        r set key value
        assert_equal 0 [r wait 0 1000]
        assert_equal 0 [r wait -1 1000]
        assert_equal 0 [r wait 1 10]
        assert_error "ERR timeout is not an integer or out of range" {r wait 1 x}
        assert_error "ERR timeout is negative" {r wait 1 -1}
        assert_error "ERR value is not an integer or out of range" {r wait x 1}
        r multi
        r wait 1 0
        assert_equal 0 [r exec]
        assert_equal 0 [r eval {return redis.call('wait', 1, 0)} 0]
    }

    test {WAIT asks for one acknowledgement and returns when it has come} {
        set s [dict get [replica_sync] socket]
        set c [connect]
        set d [connect]
        $d set first 1
        $c set key value
        set offset [info_field master_repl_offset]
        $c -send wait 1 0
        $d -send wait 1 0
        replica_expect $s SELECT 0
        replica_expect $s set first 1
        replica_expect $s set key value
        replica_expect $s REPLCONF GETACK *
        wait_for_condition 100 20 {[info_field blocked_clients] == 2}
        replica_ack $s 1
        wait_for_condition 100 20 {[string match "*offset=1,*" [r info replication]]}
        assert_equal 2 [info_field blocked_clients]
        replica_ack $s $offset
        assert_equal 1 [$c -read]
        assert_equal 1 [$d -read]
    }

    test {WAIT counts for the connection's own last change} {
        set s [dict get [replica_sync] socket]
        set c [connect]
        $c set mine 1
        set mine [info_field master_repl_offset]
        replica_ack $s $mine
        r set other 1
        # One that has written nothing counts all replicas.
        assert_equal 1 [[connect] wait 1 0]
        assert_equal 1 [$c wait 1 0]
        assert_equal 0 [r wait 1 20]
    }

    test {WAIT returns what there is at the timeout, and a replica that leaves does not count} {
        set s [dict get [replica_sync] socket]
        set t [dict get [replica_sync] socket]
        r set key value
        set offset [info_field master_repl_offset]
        replica_ack $s $offset
        assert_equal 1 [r wait 2 50]
        set c [connect]
        $c set key again
        $c -send wait 2 0
        wait_for_condition 100 20 {[info_field blocked_clients] == 1}
        raw_close $t
        wait_for_condition 100 20 {[info_field connected_slaves] == 1}
        assert_equal 1 [info_field blocked_clients]
        replica_ack $s [info_field master_repl_offset]
        r client unblock [lindex [regexp -inline {id=(\d+)[^\n]*cmd=wait} [r client list]] 1]
        assert_equal 1 [$c -read]
    }

    test {WAITAOF counts what replicas have on disk} {
        set s [dict get [replica_sync] socket]
        r set key value
        set offset [info_field master_repl_offset]
        replica_ack $s $offset
        assert_equal {0 0} [r waitaof 0 1 20]
        set c [connect]
        $c set key value
        set offset [info_field master_repl_offset]
        $c -send waitaof 0 1 0
        info_is blocked_clients 1
        replica_ack $s $offset [expr {$offset - 1}]
        wait_for_condition 100 20 {[string match "*offset=$offset,*" [r info replication]]}
        assert_equal 1 [info_field blocked_clients]
        replica_ack $s $offset $offset
        assert_equal {0 1} [$c -read]
    }

    test {min-replicas-to-write refuses writes while too few replicas keep up} {
        r client kill type replica
        wait_for_condition 100 20 {[info_field connected_slaves] == 0}
        assert_equal "" [info_field min_slaves_good_slaves]
        r config set min-replicas-max-lag 1
        r config set min-replicas-to-write 1
        foreach code {{r set key value} {r eval {redis.call('set', 'key', 'value')} 1 key}} {
            assert_error "*NOREPLICAS Not enough good replicas to write.*" $code
        }
        assert_equal value [r get key]
        assert_equal 0 [info_field min_slaves_good_slaves]
        set s [dict get [replica_sync] socket]
        wait_for_condition 100 20 {[info_field min_slaves_good_slaves] == 1}
        r set key value
        # It does not acknowledge any more.
        wait_for_condition 100 100 {[info_field min_slaves_good_slaves] == 0}
        assert_error "NOREPLICAS Not enough good replicas to write." {r set key value}
        replica_ack $s 1
        wait_for_condition 100 20 {![catch {r set key value}]}
        r config set min-replicas-to-write 0
        r multi
        r set key value
        set other [connect]
        $other config set min-replicas-to-write 2
        assert_error "EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write." {r exec}
        r multi
        r get key
        assert_equal 1 [llength [r exec]]
        $other config set min-replicas-to-write 0
        assert_equal OK [r set key value]
    }
}

start_server {tags {repl wait tls:skip} overrides {save {} enable-protected-configs yes repl-diskless-sync-delay 0 repl-ping-replica-period 3600 shutdown-timeout 60}} {
    test {SHUTDOWN waits for replicas; ABORT ends the wait; writes are held meanwhile} {
        set s [dict get [replica_sync] socket]
        r set key value
        set c [connect]
        $c -send shutdown nosave
        replica_expect $s SELECT 0
        replica_expect $s set key value
        replica_expect $s REPLCONF GETACK *
        assert_equal 1 [info_field blocked_clients]
        assert_range [info_field shutdown_in_milliseconds] 1 60000
        assert_equal shutdown_in_progress [info_field paused_reason]
        set w [connect]
        $w -send set held 1
        assert_equal "" [r get held]
        assert_equal OK [r shutdown abort]
        assert_error "ERR Errors trying to SHUTDOWN. Check logs." {$c -read}
        assert_equal OK [$w -read]
        assert_error "ERR No shutdown in progress." {r shutdown abort}
        assert_equal none [info_field paused_reason]
    }

    test {SHUTDOWN goes on when the replicas have everything} {
        set s [dict get [replica_sync] socket]
        r set key value
        set c [connect]
        $c -send shutdown nosave
        replica_expect $s SELECT 0
        replica_expect $s set key value
        replica_expect $s REPLCONF GETACK *
        replica_ack $s [info_field master_repl_offset]
        raw_rest $s
        wait_for_condition 200 20 {[string match "*1 of 1 replicas are in sync when shutting down.*ready to exit*" [server_log]]}
        restart_server
    }

    test {SHUTDOWN goes on when a replica acknowledges what precedes the request for it} {
        set s [dict get [replica_sync] socket]
        r set key value
        set data_end [info_field master_repl_offset]
        [connect] -send shutdown nosave
        replica_expect $s SELECT 0
        replica_expect $s set key value
        replica_expect $s REPLCONF GETACK *
        replica_ack $s [expr {$data_end - 1}]
        assert_equal PONG [r ping]
        replica_ack $s $data_end
        raw_rest $s
        wait_for_condition 200 20 {[string match "*1 of 1 replicas are in sync when shutting down.*ready to exit*1 of 1 replicas are in sync when shutting down.*ready to exit*" [server_log]]}
        restart_server
    }

    foreach {how words} {NOW {now} "shutdown-timeout 0" {}} {
        test "SHUTDOWN with $how sends replicas what was executed before it, in the same turn, too" {
            if {$words eq ""} {r config set shutdown-timeout 0}
            set s [dict get [replica_sync] socket]
            set c [raw_connect]
            set value [string repeat x 60000]
            raw_send $c [resp_request set key $value][resp_request multi][resp_request set b 1][resp_request set c 2][resp_request exec][resp_request shutdown nosave {*}$words]
            foreach expected [list {SELECT 0} [list set key $value] MULTI {set b 1} {set c 2} EXEC] {
                replica_expect $s {*}$expected
            }
            raw_rest $s
            restart_server
        }
    }

    test {a SHUTDOWN that waited for replicas and cannot save logs that it failed} {
        file mkdir [srv dir]/dump.rdb.dir/x
        r config set dbfilename dump.rdb.dir
        set s [dict get [replica_sync] socket]
        r set key value
        set c [connect]
        $c -send shutdown save
        replica_expect $s SELECT 0
        replica_expect $s set key value
        replica_expect $s REPLCONF GETACK *
        replica_ack $s [info_field master_repl_offset]
        assert_error "ERR Errors trying to SHUTDOWN. Check logs." {$c -read}
        assert_match "*Errors trying to shut down the server. Check the logs for more information.*" [server_log]
        assert_equal OK [r set key after]
        r config set dbfilename dump.rdb
    }

    test {SHUTDOWN after shutdown-timeout tells which replicas lag} {
        r config set shutdown-timeout 1
        set s [dict get [replica_sync] socket]
        r set key value
        [connect] -send shutdown nosave
        wait_for_condition 200 50 {[string match "*Waiting for replicas before shutting down.*Lagging replica 127.0.0.1:7777 reported offset * behind master, lag=?, state=online.*0 of 1 replicas are in sync when shutting down.*ready to exit*" [server_log]]}
        restart_server
    }
}

start_server {tags {repl wait tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    start_server {overrides {save {} repl-diskless-sync-delay 0 shutdown-timeout 60}} {
        test {SHUTDOWN of a replica waits for its own replicas, and applies nothing of its primary meanwhile} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            set s [dict get [replica_sync] socket]
            r -1 set key value
            replica_expect $s SELECT 0
            replica_expect $s set key value
            set c [connect]
            $c -send shutdown nosave
            wait_for_condition 200 20 {[info_field paused_reason] eq "shutdown_in_progress"}
            set end [info_field master_repl_offset]
            r -1 set later 1
            wait_for_condition 200 20 {[info_field blocked_clients] == 2}
            assert_equal [list {} $end] [list [r get later] [info_field master_repl_offset]]
            assert_equal OK [r shutdown abort]
            assert_error "ERR Errors trying to SHUTDOWN. Check logs." {$c -read}
            replica_expect $s set later 1
            $c -send shutdown nosave
            wait_for_condition 200 20 {[info_field paused_reason] eq "shutdown_in_progress"}
            replica_ack $s [info_field master_repl_offset]
            raw_rest $s
            wait_for_condition 200 20 {[string match "*1 of 1 replicas are in sync when shutting down.*ready to exit*" [server_log]]}
            restart_server
        }
    }
}
