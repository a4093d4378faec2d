# SPDX-License-Identifier: BSD-3-Clause
#
# What a replica answers to clients, and what it makes of commands of its primary. The primary is scripted.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/primary.tcl

set ::id [string repeat d 40]

# A connected replica; returns the connection of the primary.
proc attached {{pairs {k v}}} {
    set ::sent 0
    return [primary_attach $::id 0 $pairs]
}

# Sends commands of the stream, each a list, and waits until they are applied.
proc apply {c args} {
    foreach words $args {
        primary_send $c {*}$words
        incr ::sent [primary_length {*}$words]
    }
    primary_send $c REPLCONF GETACK *
    while {[lindex [primary_request $c] 2] < $::sent} {}
    incr ::sent [primary_length REPLCONF GETACK *]
}

# The replica gives up the link and asks for the whole dataset.
proc asks_for_all {} {
    assert_equal {PSYNC ? -1} [primary_handshake [set c [primary_accept]]]
    primary_full_sync $c $::id 500 [rdb_of {again all}]
    primary_wait_ack $c 500
    assert_equal all [r get again]
}

# Sends writes until the log has the line.
proc log_has_soon {c line} {
    for {set i 0} {$i < 100 && ![string match "*$line*" [server_log]]} {incr i} {
        apply $c {SELECT 0} [list SET w $i]
        after 20
    }
    assert_match "*$line*" [server_log]
}

primary_listen

start_server {tags {repl tls:skip}} {
    test {GETACK is answered with the offset after it, together with what came with it} {
        set c [attached]
        set sent 0
        set bytes ""
        foreach words {{SELECT 0} {SET a 1} {REPLCONF GETACK *} {MULTI} {SET b 1} {EXEC} {REPLCONF GETACK *} {SET d 2}} {
            append bytes [primary_encode $words]
            incr sent [primary_length {*}$words]
        }
        raw_send $c $bytes
        if {[string match *hostile* $::binary]} {
            # This build reads a few bytes at a time, so its first answer may leave out the last command.
            primary_wait_ack $c $sent
        } else {
            assert_equal "REPLCONF ACK $sent" [primary_request $c]
        }
        assert_equal {1 1 2} [r mget a b d]
    }

    test {a stream that falls silent is acknowledged without a request, not only in the replica's periodic job} {
        set c [attached]
        r debug pause-cron 1
        primary_send $c SELECT 0
        primary_send $c SET a 1
        primary_wait_ack $c [expr {[primary_length SELECT 0] + [primary_length SET a 1]}]
        r debug pause-cron 0
    }

    test {A read-only replica refuses writes, in scripts and transactions, too} {
        set c [attached]
        set error "READONLY You can't write against a read only replica."
        assert_error $error {r set a 1}
        assert_error $error {r flushall}
        assert_error "$error script:*" {r eval {return redis.call('set', 'a', 1)} 0}
        assert_error "READONLY You can't write against a read only replica." {r eval "#!lua\nreturn 1" 0}
        r multi
        assert_error $error {r set a 1}
        assert_error "EXECABORT*" {r exec}
        assert_equal {v 0} [list [r get k] [r publish ch x]]
        assert_equal 1 [r eval {return redis.call('exists', 'k')} 0]
    }

    test {CLIENT CAPA redirect: reads and writes are sent to the primary} {
        set c [attached]
        set client [connect]
        $client client capa redirect
        set redirect "REDIRECT 127.0.0.1:$::primary_port"
        assert_error $redirect {$client get k}
        assert_error $redirect {$client set k x}
        $client readonly
        assert_equal v [$client get k]
        assert_error $redirect {$client set k x}
        assert_equal PONG [$client ping]
    }

    test {EXEC that is redirected replies REDIRECT, and ends the transaction} {
        r replicaof no one
        set client [connect]
        $client client capa redirect
        set other [connect]
        foreach c [list $client $other] {
            $c multi
            $c set k x
        }
        r replicaof 127.0.0.1 $::primary_port
        assert_error "REDIRECT 127.0.0.1:$::primary_port" {$client exec}
        assert_error "EXECABORT Transaction discarded because of: READONLY*" {$other exec}
        assert_error "ERR EXEC without MULTI" {$client exec}
    }

    test {replica-serve-stale-data no refuses what needs the data while the link is down} {
        set c [attached]
        r config set replica-serve-stale-data no
        assert_equal v [r get k]
        primary_drop
        set masterdown "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
        wait_for_condition 400 25 {[info_field master_link_status] eq "down"} else {fail "still up"}
        assert_error $masterdown {r get k}
        assert_error $masterdown {r ping}
        assert_error "READONLY *" {r set k x}
        assert_equal slave [lindex [r role] 0]
        assert_equal hi [r echo hi]
        r multi
        assert_error $masterdown {r get k}
        assert_error EXECABORT* {r exec}
        r config set replica-serve-stale-data yes
        assert_equal v [r get k]
    }

    test {Expired keys are invisible to clients until the primary deletes them} {
        set c [attached]
        set past [expr {[clock milliseconds] - 1000}]
        apply $c {SELECT 0} {SET e x} "PEXPIREAT e $past" {RPUSH l a} "PEXPIREAT l $past"
        assert_equal 3 [r dbsize]
        assert_equal {{} 0 -2 none k} [list [r get e] [r exists l] [r ttl e] [r type l] [r keys *]]
        apply $c {APPEND e y} {RPUSH l b} {PERSIST e} {PERSIST l}
        assert_equal {xy {a b}} [list [r get e] [r lrange l 0 -1]]
        apply $c "PEXPIREAT e $past" {UNLINK e}
        assert_equal 2 [r dbsize]
    }

    test {A writable replica keeps local writes to itself; local TTLs expire} {
        set c [attached]
        r config set replica-read-only no
        r set local 1
        r set short 1 px 10
        wait_for_condition 400 25 {[r dbsize] == 2} else {fail "short is not removed"}
        apply $c {SELECT 0} {SET k new} {DEL none}
        assert_equal {1 new} [list [r get local] [r get k]]
        assert_equal $::sent [info_field slave_repl_offset]
        r config set replica-read-only yes
    }

    test {After a promotion the keys with local TTLs are forgotten, by active expiry} {
        set c [attached]
        r config set replica-read-only no
        r debug set-active-expire 0
        r set local 1 ex 1000
        assert_equal 1 [info_field slave_expires_tracked_keys]
        r replicaof no one
        assert_equal 1 [info_field slave_expires_tracked_keys]
        r debug set-active-expire 1
        wait_for_condition 400 25 {[info_field slave_expires_tracked_keys] == 0}
        assert_equal 1 [r get local]
        r config set replica-read-only yes
    }

    test {Errors of the primary's commands are logged, and the stream goes on} {
        set c [attached]
        mark_logs
        apply $c {SELECT 0} {LPUSH k x} {foo bar} {GET k} {SUBSCRIBE ch} {SET after error}
        assert_equal error [r get after]
        assert_match "*== CRITICAL == This replica is sending an error to its primary: '-WRONGTYPE Operation against a key holding the wrong kind of value' after processing the command 'lpush'*" [server_log]
        # Within a minute, others are only counted.
        assert_match "*master_stream_errors:2\r\nmaster_stream_last_error:foo: ERR unknown command 'foo', with args beginning with: 'bar' *" [r info replication]
    }

    foreach {name bytes} {
        inline "set a b\r\n"
        {a protocol error} "*1\r\n+ping\r\n"
        {a blocking command} "*3\r\n\$5\r\nBLPOP\r\n\$1\r\nx\r\n\$1\r\n0\r\n"
        SHUTDOWN "*1\r\n\$8\r\nSHUTDOWN\r\n"
        REPLICAOF "*3\r\n\$9\r\nREPLICAOF\r\n\$2\r\nNO\r\n\$3\r\nONE\r\n"
        {REPLICAOF in a transaction} "*1\r\n\$5\r\nMULTI\r\n*3\r\n\$9\r\nREPLICAOF\r\n\$2\r\nNO\r\n\$3\r\nONE\r\n*1\r\n\$4\r\nEXEC\r\n"
        QUIT "*1\r\n\$4\r\nQUIT\r\n"
    } {
        test "What no primary sends ($name) ends the link; the whole dataset is synchronised" {
            set c [attached]
            primary_send $c SELECT 0
            raw_send $c $bytes
            asks_for_all
        }
    }

    test {Scripts, functions, messages and transactions of the primary} {
        set c [attached]
        set watcher [connect 2]
        $watcher subscribe news
        apply $c {SELECT 0} {MULTI} {SET a 1} {INCR a} {EXEC} {PUBLISH news hello} \
            [list FUNCTION LOAD "#!lua name=lib\nserver.register_function('f', function() return 7 end)"] \
            {EVAL {redis.call('set', KEYS[1], 'script')} 1 s}
        assert_equal {2 script} [list [r get a] [r get s]]
        r replicaof no one
        assert_equal 7 [r fcall f 0]
    }

    test {Blocked clients are disconnected when the server becomes a replica} {
        r replicaof no one
        primary_drop
        r flushall
        set blocked [connect]
        $blocked -send blpop list 0
        wait_for_condition 400 25 {[info_field blocked_clients] == 1} else {fail "not blocked"}
        r replicaof 127.0.0.1 $::primary_port
        assert_error "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)" {$blocked -read}
        r replicaof no one
    }

    test {maxmemory of a replica: ignored, or the primary's writes are refused} {
        set c [attached]
        r config set maxmemory 1
        apply $c {SELECT 0} {SET a 1}
        assert_equal 1 [r get a]
        r config set replica-ignore-maxmemory no
        apply $c {SET a 2}
        assert_equal 1 [r get a]
        assert_match "*CRITICAL*'-OOM command not allowed*" [server_log]
        r config set maxmemory 0 replica-ignore-maxmemory yes
    }

    test {A replica that cannot store its data applies the stream only if it is told to} {
        set c [attached]
        r config set save {3600 1} replica-ignore-disk-write-errors yes
        file delete [srv dir]/dump.rdb
        file mkdir [srv dir]/dump.rdb
        catch {r save}
        r bgsave
        wait_for_condition 400 25 {[info_field rdb_last_bgsave_status] eq "err"} else {fail "no error"}
        log_has_soon $c "Replica is applying a command even though it is unable to write to disk."
        file delete [srv dir]/dump.rdb
        r config set save "" replica-ignore-disk-write-errors no
    }
}

primary_close

start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0 databases 16}} {
    foreach {what commands} {"a write" {{select 9} {set nine 1}} "a transaction" {multi {set a 1} {select 9} {set nine 1} exec} MOVE {{move mine 9}}} {
        start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0 databases 4 save {}}} {
            test "$what in a database that the replica does not have stops its link, and is in no other database" {
                r -1 flushall
                r -1 select 2
                r -1 set two 1
                r -1 select 0
                r -1 set mine 1
                r replicaof [srv -1 host] [srv -1 port]
                link_is up
                same_offset -1 -0
                mark_logs
                foreach command $commands {r -1 {*}$command}
                r -1 select 0
                link_is down
                assert_match "*master_link_stopped:too few databases*" [r info replication]
                assert_match "*The primary uses more than the 4 databases that this server has: the link is stopped*" [said_since_mark]
                assert_equal {0 0} [list [r exists nine] [r exists a]]
                r select 2
                assert_equal 1 [r get two]
                r select 0
            }
        }
    }

    start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0 databases 4 save {}}} {
        foreach load {disabled swapdb on-empty-db} {
            test "a dataset with databases that the replica does not have is refused, and not asked for again ($load)" {
                r -1 select 9
                r -1 set nine 1
                r -1 select 0
                r -1 config resetstat
                r config set repl-diskless-load $load
                r replicaof [srv -1 host] [srv -1 port]
                wait_for_condition 500 20 {[string match "*master_link_stopped*" [r info replication]]}
                wait_for_condition 500 20 {[string match "*master_link_status:down*" [r info replication]]}
                assert_equal 0 [r dbsize]
                assert_match "*sync_full:1\r*" [r -1 info stats]
                r replicaof no one
                assert {![string match "*master_link_stopped*" [r info replication]]}
            }
        }
    }
}
