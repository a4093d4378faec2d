# SPDX-License-Identifier: BSD-3-Clause
#
# FAILOVER between servers of this kind.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/primary.tcl
source $::tests_dir/support/replication.tcl

start_server {tags {repl failover tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {FAILOVER: errors} {
        assert_error "ERR FAILOVER requires connected replicas." {r failover}
        assert_error "ERR syntax error" {r failover to x}
        assert_error "ERR syntax error" {r failover abort timeout 5}
        assert_error "ERR FAILOVER timeout must be greater than 0" {r failover timeout 0}
        assert_error "ERR value is not an integer or out of range" {r failover timeout x}
        assert_error "ERR value is not an integer or out of range" {r failover to localhost x}
        assert_error "ERR No failover in progress." {r failover abort}
        set s [dict get [replica_sync] socket]
        assert_error "ERR FAILOVER with force option requires both a timeout and target HOST and IP." {r failover force}
        assert_error "ERR FAILOVER target HOST and PORT is not a replica." {r failover to 127.0.0.1 1}
        assert_error "ERR PSYNC FAILOVER can't be sent to a master." {r psync [info_field master_replid] 1 failover}
    }

    test {FAILOVER waits for the replica, with writes paused, until ABORT or the timeout} {
        set s [dict get [replica_sync] socket]
        r set key value
        assert_equal OK [r failover to 127.0.0.1 7777]
        assert_equal waiting-for-sync [info_field master_failover_state]
        assert_equal failover_in_progress [info_field paused_reason]
        assert_error "ERR FAILOVER already in progress." {r failover}
        set t [replica_connect]
        replica_psync $t
        assert_equal "-NOMASTERLINK Can't SYNC while failing over" [replica_answer $t]
        set w [connect]
        $w -send set held 1
        assert_equal "" [r get held]
        assert_equal OK [r failover abort]
        assert_equal OK [$w -read]
        assert_equal no-failover [info_field master_failover_state]
        assert_match "*FAILOVER requested to 127.0.0.1:7777.*FAILOVER to 127.0.0.1:7777 aborted: Failover manually aborted*" [server_log]
        assert_equal OK [r failover timeout 100]
        wait_for_condition 100 50 {[info_field master_failover_state] eq "no-failover"}
        assert_match "*FAILOVER to any replica aborted: Replica never caught up before timeout*" [server_log]
        assert_equal master [lindex [r role] 0]
    }

    start_server {tags {repl failover tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
        test {FAILOVER to a replica exchanges the roles without a full synchronisation} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            wait_for_condition 200 50 {[string match "*state=online*" [r -1 info replication]]}
            r -1 set key value
            set full [list [info_field sync_full] [regexp -inline {sync_full:\d+} [r -1 info stats]]]
            assert_equal OK [r -1 failover to [srv host] [srv port] timeout 30000]
            wait_for_condition 200 50 {[string match "*role:slave*master_link_status:up*master_failover_state:no-failover*" [r -1 info replication]]}
            assert_equal master [lindex [r role] 0]
            assert_equal value [r get key]
            assert_error "READONLY*" {r -1 set key value}
            r set key other
            same_offset -1 -0
            assert_equal other [r -1 get key]
            assert_equal $full [list [info_field sync_full] [regexp -inline {sync_full:\d+} [r -1 info stats]]]
            assert_match "*Failover request received for replid *PRIMARY MODE enabled (failover request from 'id=*" [server_log]
        }

        test {held writes get READONLY after the failover} {
            set w [respConnect [srv host] [srv port] $::resp_version]
            r config set client-output-buffer-limit "replica 0 0 0"
            r failover
            $w -send set key third
            wait_for_condition 200 50 {[string match "*master_link_status:up*" [r info replication]]}
            assert_error "READONLY*" {$w -read}
            assert_equal master [lindex [r -1 role] 0]
        }

        test {a write that CLIENT PAUSE holds, too, stays held when a failover ends} {
            same_offset -1 -0
            set w [respConnect [srv -1 host] [srv -1 port] $::resp_version]
            r -1 client pause 100000 write
            $w -send set key fourth
            wait_for_condition 200 20 {[string match "*blocked_clients:1\r*" [r -1 info clients]]}
            assert_equal OK [r -1 failover]
            wait_for_condition 200 50 {[string match "*role:slave*master_link_status:up*master_failover_state:no-failover*" [r -1 info replication]]}
            # So does one that comes now.
            set late [respConnect [srv -1 host] [srv -1 port] $::resp_version]
            $late -send set key fifth
            wait_for_condition 200 20 {[string match "*blocked_clients:2\r*" [r -1 info clients]]}
            r -1 client unpause
            assert_error "READONLY*" {$w -read}
            assert_error "READONLY*" {$late -read}
            # A later pause has nothing to do with the failover.
            r -1 client pause 100000 write
            assert_error "READONLY*" {r -1 set key sixth}
            r -1 client unpause
        }
    }
}

primary_listen

start_server {tags {repl failover tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {clients with CAPA redirect are held until the successor has taken over} {
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        r set kept value ;# another key: the order of requests of several clients is not defined
        r set key value
        foreach name {reads writes queues} {
            set $name [connect]
            [set $name] client capa redirect
        }
        $queues multi
        # The successor is reached, but does not answer.
        assert_equal OK [r failover to 127.0.0.1 $::primary_port force timeout 100]
        wait_for_condition 400 25 {[info_field master_failover_state] eq "failover-in-progress"}
        $reads -send get kept
        $writes -send set key redirected
        $queues -send set key queued
        assert_error "READONLY*" {r set key other}
        assert_equal value [r get key]
        wait_for_condition 400 25 {[regexp -all {flags=[a-zA-Z]*b} [r client list]] == 3} else {fail [r client list]}
        assert_equal OK [r failover abort]
        assert_equal {value OK QUEUED} [list [$reads -read] [$writes -read] [$queues -read]]
        assert_equal {OK} [$queues exec]
        assert_equal queued [r get key]
    }

    test {clients with CAPA redirect that were held are redirected after the failover, also during CLIENT PAUSE} {
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        primary_drop
        r client pause 100000 write
        set reads [connect]
        $reads client capa redirect
        assert_equal OK [r failover to 127.0.0.1 $::primary_port force timeout 100]
        set c [primary_accept]
        wait_for_condition 400 25 {[info_field master_failover_state] eq "failover-in-progress"}
        $reads -send get key
        wait_for_condition 400 25 {[regexp -all {flags=[a-zA-Z]*b} [r client list]] == 1} else {fail [r client list]}
        assert_match "PSYNC * FAILOVER" [primary_handshake $c]
        raw_send $c "+CONTINUE [info_field master_replid]\r\n"
        assert_error "REDIRECT 127.0.0.1:$::primary_port" {$reads -read}
        r client unpause
    }
}

start_server {tags {repl failover tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {FAILOVER without TIMEOUT ends when the link of the target is lost, or when it does not acknowledge in time} {
        set s [dict get [replica_sync] socket]
        r set key value
        set w [connect]
        assert_equal OK [r failover to 127.0.0.1 7777]
        $w -send set held 1
        wait_for_condition 400 25 {[regexp -all {flags=[a-zA-Z]*b} [r client list]] == 1} else {fail [r client list]}
        raw_close $s
        assert_equal OK [$w -read]
        assert_equal no-failover [info_field master_failover_state]
        assert_match "*FAILOVER to 127.0.0.1:7777 aborted: The link of the replica was lost*" [server_log]
        set s [dict get [replica_sync] socket]
        r config set repl-timeout 2
        r set key other
        set acked [clock milliseconds]
        assert_equal OK [r failover]
        $w -send set held 2
        # The replica acknowledges, but never everything.
        wait_for_condition 200 50 {[replica_ack $s 1; info_field master_failover_state] eq "no-failover"}
        assert_equal OK [$w -read]
        assert_match "*FAILOVER to any replica aborted: Replica never caught up before timeout*" [server_log]
        assert_equal none [info_field paused_reason]
    }

    test {FAILOVER asks for acknowledgements, and goes on with one of the offset before the last request} {
        primary_drop
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        r set key value
        replica_expect $s SELECT 0
        replica_expect $s set key value
        set data_end [info_field master_repl_offset]
        assert_equal OK [r failover to 127.0.0.1 $::primary_port]
        replica_expect $s REPLCONF GETACK *
        replica_expect $s REPLCONF GETACK *
        assert_equal [expr {$data_end + 74}] [info_field master_repl_offset]
        # The reply to the first one: the second may not have been read yet.
        replica_ack $s $data_end
        assert_equal PONG [r ping]
        assert_equal waiting-for-sync [info_field master_failover_state]
        replica_ack $s [expr {$data_end + 37}]
        set c [primary_accept]
        assert_equal "PSYNC [info_field master_replid] [expr {$data_end + 75}] FAILOVER" [primary_handshake $c]
        r failover abort
        primary_drop
    }

    test {FAILOVER ends when the target does not answer, and succeeds when its answer was lost} {
        primary_drop
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        r config set repl-timeout 2
        r set key value
        assert_equal OK [r failover to 127.0.0.1 $::primary_port force timeout 100]
        set c [primary_accept]
        assert_match "PSYNC * FAILOVER" [primary_handshake $c]
        primary_drop
        set c [primary_accept]
        wait_for_condition 200 50 {[info_field master_failover_state] eq "no-failover"}
        assert_equal master [lindex [r role] 0]
        assert_match "*FAILOVER to 127.0.0.1:$::primary_port aborted: The target has not answered in time*" [server_log]
        r config set repl-timeout 60
        primary_drop
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        r set key other
        assert_equal OK [r failover to 127.0.0.1 $::primary_port force timeout 100]
        set c [primary_accept]
        assert_match "PSYNC * FAILOVER" [primary_handshake $c]
        primary_drop
        set c [primary_accept]
        assert_match "PSYNC * FAILOVER" [primary_handshake $c]
        raw_send $c "-ERR PSYNC FAILOVER can't be sent to a master.\r\n"
        set c [primary_accept]
        assert_equal 3 [llength [primary_handshake $c]]
        assert_equal {no-failover slave} [list [info_field master_failover_state] [lindex [r role] 0]]
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {a restarted primary continues its stream, and removes keys that have expired meanwhile from its replicas} {
        set sync [replica_sync]
        set s [dict get $sync socket]
        r debug set-active-expire 0
        r set lasting 1
        r set short 1 px 50
        replica_expect $s SELECT 0
        replica_expect $s set lasting 1
        assert_match "set short 1 PXAT *" [replica_next $s]
        set offset [info_field master_repl_offset]
        r save
        wait_for_condition 100 10 {[r exists short] == 0}
        restart_server
        assert_equal [dict get $sync id] [info_field master_replid2]
        assert_equal [expr {$offset + 1}] [info_field second_repl_offset]
        assert_equal 1 [r dbsize]
        set s [replica_connect]
        replica_psync $s [dict get $sync id] [expr {$offset + 1}]
        assert_equal "+CONTINUE [info_field master_replid]" [replica_answer $s]
        replica_expect $s SELECT 0
        replica_expect $s UNLINK short
        assert_equal {1 0 0} [list [info_field sync_partial_ok] [info_field sync_full] [info_field sync_partial_err]]
        r config resetstat
        assert_equal 0 [info_field sync_partial_ok]
    }
}

start_server {tags {repl failover tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {blocked clients stay blocked during FAILOVER, survive its abort, and are told when it has succeeded} {
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        foreach name {served told redirected} {set $name [connect]}
        $redirected client capa redirect
        $served -send blpop served 0
        $told -send blpop q 0
        $redirected -send blpop q 0
        wait_for_condition 200 10 {[info_field blocked_clients] == 3}
        primary_drop
        assert_equal OK [r failover to 127.0.0.1 $::primary_port force timeout 100]
        set c [primary_accept]
        wait_for_condition 400 25 {[info_field master_failover_state] eq "failover-in-progress"}
        assert_equal 3 [info_field blocked_clients]
        assert_equal OK [r failover abort]
        assert_equal 3 [info_field blocked_clients]
        r rpush served x
        assert_equal {served x} [$served -read]
        primary_drop
        set s [dict get [replica_sync [list capa eof capa psync2 version 9.1.2 listening-port $::primary_port]] socket]
        assert_equal OK [r failover to 127.0.0.1 $::primary_port force timeout 100]
        set c [primary_accept]
        assert_match "PSYNC * FAILOVER" [primary_handshake $c]
        assert_equal 2 [info_field blocked_clients]
        raw_send $c "+CONTINUE [info_field master_replid]\r\n"
        assert_error "UNBLOCKED*" {$told -read}
        assert_error "REDIRECT 127.0.0.1:$::primary_port" {$redirected -read}
        primary_drop
        r replicaof no one
    }

    test {a READONLY client that waits for a read goes on waiting when its server becomes a replica} {
        r xgroup create gs g $ mkstream
        foreach {name capa readonly request} {
            plain 0 0 {xread block 0 streams s $} reader 0 1 {xread block 0 streams s $} capable 1 0 {xread block 0 streams s $}
            both 1 1 {xread block 0 streams s $} pops 0 1 {blpop q 0} group 1 1 {xreadgroup group g c block 0 streams gs >}
        } {
            set client($name) [connect]
            if {$capa} {$client($name) client capa redirect}
            if {$readonly} {$client($name) readonly}
            $client($name) -send {*}$request
        }
        wait_for_condition 200 10 {[info_field blocked_clients] == 6}
        r replicaof 127.0.0.1 1
        assert_equal 2 [info_field blocked_clients]
        foreach name {plain pops} {assert_error "UNBLOCKED*" {$client($name) -read}}
        foreach name {capable group} {assert_error "REDIRECT 127.0.0.1:1" {$client($name) -read}}
        r replicaof no one
        r xadd s 1-1 f v
        foreach name {reader both} {assert_match "*1-1*" [$client($name) -read]}
    }
}

primary_close
