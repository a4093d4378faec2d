# SPDX-License-Identifier: BSD-3-Clause
#
# A replica, with a scripted primary: handshake, transfer, stream, acknowledgements, what follows failures.

source $::tests_dir/support/primary.tcl
source $::tests_dir/support/replication.tcl

set ::id1 [string repeat a 40]
set ::id2 [string repeat b 40]

# The replica connected to the scripted primary, with {k v} at offset 100 of $::id1.
proc replica_attached {{pairs {k v}}} {primary_attach $::id1 100 $pairs}

primary_listen

start_server {tags {repl tls:skip}} {
    test {A replica introduces itself, loads the dataset and acknowledges it} {
        r set old data
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        assert_equal PSYNC [lindex [primary_handshake $c] 0]
        assert_equal [list PING [list REPLCONF listening-port [srv port]] {REPLCONF capa eof capa psync2 capa turn-acks capa member-ttls capa birth capa path-hashes} \
            {REPLCONF version 9.1.2}] [lrange $::primary_seen 0 end-1]
        assert_equal handshake [lindex [r role] 3]
        primary_full_sync $c $::id1 100 [rdb_of {k v x y}]
        primary_wait_ack $c 100
        link_is up
        assert_equal {k x} [lsort [r keys *]]
        assert_equal [list slave 127.0.0.1 $::primary_port connected 100] [r role]
        assert_equal $::id1 [info_field master_replid]
        assert_match "*flags=M*user=(superuser)*" [r client list type primary]
    }

    test {The stream is applied and acknowledged} {
        set c [replica_attached]
        primary_send $c SELECT 2
        primary_send $c SET a 1
        primary_send $c PING
        primary_wait_ack $c 164
        r select 2
        assert_equal 1 [r get a]
        r select 0
        assert_equal 164 [info_field slave_repl_offset]
    }

    test {CLIENT PAUSE holds the stream of the primary, which is read, and applied afterwards} {
        set c [replica_attached]
        r client pause 100000 write
        primary_send $c SET k new
        primary_send $c MULTI
        primary_send $c INCR n
        primary_send $c EXEC
        wait_for_condition 400 25 {[info_field slave_read_repl_offset] > 100} else {fail "not read"}
        # The link is alive: offsets are still acknowledged.
        primary_wait_ack $c 100
        assert_equal {v {}} [r mget k n]
        assert_equal 100 [info_field slave_repl_offset]
        r client unpause
        set end [expr {100 + [primary_length SET k new] + [primary_length MULTI] + [primary_length INCR n] +
            [primary_length EXEC]}]
        primary_wait_ack $c $end
        assert_equal {new 1} [r mget k n]
    }

    test {A failing command of the stream ends a read-only replica that is to panic, but not a writable one} {
        r config set propagation-error-behavior panic replica-read-only no
        set c [replica_attached]
        mark_logs
        r rpush wrong type
        primary_send $c INCR wrong
        primary_wait_ack $c [expr {100 + [primary_length INCR wrong]}]
        assert_match "*== CRITICAL == This replica is sending an error to its primary: '-WRONGTYPE*" [server_log]
        assert_equal type [r lindex wrong 0]
        r config set propagation-error-behavior ignore replica-read-only yes
    }

    test {A transaction counts when it is complete; its rest is sent again after a loss} {
        set c [replica_attached]
        primary_send $c MULTI
        primary_send $c SET a 1
        wait_for_condition 400 25 {[info_field slave_read_repl_offset] == 142} else {fail "not read"}
        assert_equal 100 [info_field slave_repl_offset]
        primary_drop
        set c [primary_accept]
        assert_equal [list PSYNC $::id1 101] [primary_handshake $c]
        raw_send $c "+CONTINUE $::id1\r\n"
        primary_send $c MULTI
        primary_send $c SET a 2
        primary_send $c EXEC
        primary_wait_ack $c 156
        assert_equal 2 [r get a]
    }

    test {A partial resynchronisation keeps the selected database and may change the id} {
        set c [replica_attached]
        primary_send $c SELECT 3
        primary_wait_ack $c 123
        primary_drop
        set c [primary_accept]
        assert_equal [list PSYNC $::id1 124] [primary_handshake $c]
        raw_send $c "\n\n+CONTINUE $::id2\r\n" [primary_encode {SET in three}]
        primary_wait_ack $c [expr {123 + [primary_length SET in three]}]
        r select 3
        assert_equal three [r get in]
        r select 0
        assert_equal $::id2 [info_field master_replid]
        assert_equal $::id1 [info_field master_replid2]
        assert_equal 124 [info_field second_repl_offset]
    }

    test {A dataset with a size is followed by the stream at once} {
        r replicaof no one
        primary_drop
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        primary_handshake $c
        set rdb [rdb_of {sized yes}]
        raw_send $c "+FULLRESYNC $::id2 7\r\n" "\n" "\$[string length $rdb]\r\n$rdb[primary_encode {SET after it}]"
        primary_wait_ack $c [expr {7 + [primary_length SET after it]}]
        assert_equal {yes it} [list [r get sized] [r get after]]
    }

    test {A primary that cannot synchronise now is asked again; one without PSYNC by SYNC} {
        r replicaof no one
        primary_drop
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        primary_handshake $c
        raw_send $c "-NOMASTERLINK Can't SYNC while not connected with my master\r\n"
        set c [primary_accept]
        primary_handshake $c
        raw_send $c "-ERR unknown command\r\n"
        assert_equal SYNC [primary_request $c]
        set rdb [rdb_of {by sync}]
        raw_send $c "\$[string length $rdb]\r\n$rdb"
        link_is up
        assert_equal sync [r get by]
    }

    test {AUTH comes with user and password; if it is refused the replica tries again} {
        r replicaof no one
        primary_drop
        r config set primaryuser me primaryauth secret
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        assert_equal PING [primary_request $c]
        raw_send $c "-NOAUTH Authentication required.\r\n"
        assert_equal {AUTH me secret} [primary_request $c]
        raw_send $c "-WRONGPASS invalid\r\n"
        log_has "Unable to AUTH to PRIMARY: -WRONGPASS invalid"
        set c [primary_accept]
        primary_handshake $c
        assert_equal {AUTH me secret} [lindex $::primary_seen 1]
        r config set primaryuser "" primaryauth ""
    }

    test {a primary's name that has no address stops nothing} {
        r replicaof no-such-host.invalid 6379
        assert_equal PONG [r ping]
        log_has "Unable to connect to PRIMARY: unknown host"
        assert_equal {slave no-such-host.invalid 6379} [lrange [r role] 0 2]
        r replicaof no one
    }

    test {A promoted replica keeps its data and its history as the one before} {
        set c [replica_attached]
        primary_send $c SET a 1
        primary_wait_ack $c 127
        r replicaof no one
        assert_equal {v 1 OK} [list [r get k] [r get a] [r set b 2]]
        assert_equal $::id1 [info_field master_replid2]
        assert_equal 128 [info_field second_repl_offset]
        assert_equal master [lindex [r role] 0]
    }

    # Both connections of a dual-channel synchronisation up to the announcement of the dataset.
    proc dual_begun {} {
        r replicaof no one
        primary_drop
        r flushall
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        primary_handshake $c
        assert {[string match "*capa dual-channel*" $::primary_seen]}
        raw_send $c "+DUALCHANNELSYNC\r\n"
        set d [primary_accept]
        assert_equal [list REPLCONF capa eof capa member-ttls capa path-hashes rdb-only 1 rdb-channel 1 listening-port [srv port] version 9.1.2] \
            [primary_request $d]
        raw_send $d "+OK\r\n"
        assert_equal SYNC [primary_request $d]
        raw_send $d "\n\$ENDOFF:55 $::id1 3 10\r\n"
        assert_equal {REPLCONF set-rdb-client-id 10} [primary_request $c]
        assert_equal handshake [lindex [r role] 3]
        raw_send $c "+OK\r\n"
        assert_equal [list PSYNC $::id1 56] [primary_request $c]
        raw_send $c "+CONTINUE $::id1\r\n[primary_encode {SET live 1}]"
        return [list $c $d]
    }

    foreach mode {disabled flush-before-load swapdb} {
        test "Dual channel: the stream is collected while the dataset comes ($mode)" {
            r config set dual-channel-replication-enabled yes repl-diskless-load $mode
            lassign [dual_begun] c d
            raw_send $d "\$EOF:[string repeat e 40]\r\n"
            wait_for_condition 400 25 {[info_field replicas_repl_buffer_size] == [primary_length SET live 1]} else {fail "not collected"}
            assert_equal sync [lindex [r role] 3]
            assert {[info_field mem_replicas_repl_buffer] > 0}
            assert {[info_field mem_total_replication_buffers] >= [info_field mem_replicas_repl_buffer]}
            raw_send $d "[rdb_of {k v}][string repeat e 40]"
            primary_wait_ack $c [expr {55 + [primary_length SET live 1]}]
            assert_equal {0 v} [list [r exists live] [r get k]]
            r select 3
            assert_equal 1 [r get live]
            r select 0
        }

        foreach lost {first second} {
            test "Dual channel: the loss of the $lost connection begins all again ($mode)" {
                lassign [dual_begun] c d
                raw_send $d "\$EOF:[string repeat e 40]\r\nVALKEY"
                wait_for_condition 400 25 {[info_field replicas_repl_buffer_size] > 0} else {fail "not collected"}
                raw_close [expr {$lost eq "first" ? $c : $d}]
                set c [primary_accept]
                primary_handshake $c
                primary_full_sync $c $::id1 100 [rdb_of {second try}]
                primary_wait_ack $c 100
                assert_equal {try 0} [list [r get second] [info_field replicas_repl_buffer_size]]
            }
        }
    }
    r config set dual-channel-replication-enabled no repl-diskless-load disabled

    test {Dual channel: what the primary cannot mean ends it} {
        r config set dual-channel-replication-enabled yes
        r replicaof no one
        primary_drop
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        primary_handshake $c
        raw_send $c "+DUALCHANNELSYNC\r\n"
        set d [primary_accept]
        primary_request $d
        raw_send $d "+OK\r\n"
        primary_request $d
        raw_send $d "\$ENDOFF:x\r\n"
        log_has "Received unexpected \$ENDOFF response: \$ENDOFF:x"
        primary_handshake [primary_accept]
        r replicaof no one
        r config set dual-channel-replication-enabled no
    }

    test {REPLICAOF: replies and errors} {
        r replicaof no one
        assert_equal OK [r replicaof no one]
        assert_error "ERR Invalid master port" {r replicaof 127.0.0.1 65536}
        assert_error "ERR Invalid master port" {r slaveof 127.0.0.1 x}
        assert_equal OK [r slaveof 127.0.0.1 $::primary_port]
        assert_equal "OK Already connected to specified master" [r replicaof 127.0.0.1 $::primary_port]
        r replicaof no one
    }
}

primary_close
