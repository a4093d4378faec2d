# SPDX-License-Identifier: BSD-3-Clause
#
# Commands of a primary's stream, and of an append only file, that fail here: what is seen of them, propagation-error-behavior
# stop, and which promotions are refused. The primary is scripted unless said otherwise.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/primary.tcl

set ::id [string repeat e 40]

# A connected replica whose key k is a string; ::sent is the offset.
proc attached {} {
    set ::sent 100
    return [primary_attach $::id 100 {k v}]
}

# Sends commands, each a list, and waits until the offset is acknowledged.
proc applies {c args} {
    foreach words $args {
        primary_send $c {*}$words
        incr ::sent [primary_length {*}$words]
    }
    primary_wait_ack $c $::sent
}

# A command that fails.
proc fails {c} {applies $c {SELECT 0} {LPUSH k x}}

proc fault_file {} {return [srv dir]/replica-diverged-[srv port].conf}

# The failed command closes the link; the one after it is not applied.
proc stops {c} {
    primary_send $c SELECT 0
    primary_send $c LPUSH k x
    primary_send $c SET after 1
    wait_for_condition 400 25 {[string match "*master_link_status:down*" [r info replication]]}
    incr ::sent [expr {[primary_length SELECT 0] + [primary_length LPUSH k x]}]
    assert_match "*master_link_stopped:a command failed\r*master_stream_errors:1\r*master_stream_last_error:lpush: WRONGTYPE*" [r info replication]
    assert_equal 0 [r exists after]
    assert_equal $::sent [info_field slave_repl_offset]
}

primary_listen

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-load swapdb}} {
    test {a failed command is counted, with its error, and logged at once, others once a minute} {
        set c [attached]
        assert_match "*master_stream_errors:0\r*" [r info replication]
        assert {![string match "*master_stream_last_error*" [r info replication]]}
        mark_logs
        fails $c
        assert_match "*master_link_status:up*master_stream_errors:1\r\nmaster_stream_last_error:lpush: WRONGTYPE*" [r info replication]
        assert_match "*CRITICAL*WRONGTYPE*lpush*" [said_since_mark]
        applies $c {HSET k a b} {NOSUCH x}
        assert_match "*master_stream_errors:3\r\nmaster_stream_last_error:NOSUCH: ERR unknown command*" [r info replication]
        assert_equal 1 [regexp -all CRITICAL [said_since_mark]]
    }

    test {commands that fail inside of MULTI are counted one by one} {
        set c [attached]
        applies $c {MULTI} {SET a 1} {LPUSH k x} {SADD k x} {SET b 1} {EXEC}
        assert_match "*master_stream_errors:2\r*" [r info replication]
        assert_equal {1 1} [r mget a b]
    }

    test {a full synchronisation ends it, as its data are the primary's} {
        set c [attached]
        fails $c
        assert {[file exists [fault_file]]}
        r replicaof 127.0.0.1 $::primary_port
        set c [primary_accept]
        assert_equal {PSYNC ? -1} [primary_handshake $c]
        primary_full_sync $c $::id 500 [rdb_of {k v}]
        primary_wait_ack $c 500
        assert_match "*master_stream_errors:0\r*" [r info replication]
        assert {![file exists [fault_file]]}
        assert_match "OK Already connected*" [r replicaof 127.0.0.1 $::primary_port]
    }

    test {promotion by hand is refused while the link is up and the data differ, unless it is forced} {
        set c [attached]
        fails $c
        assert_error "DIVERGED The data here differ*1 commands of its stream failed, the last one was 'lpush: WRONGTYPE*NO-ONE FORCE*" {r replicaof no one}
        assert_error "DIVERGED *" {r slaveof no one}
        assert_equal slave [lindex [r role] 0]
        assert_equal OK [r replicaof no-one force]
        assert_equal master [lindex [r role] 0]
        assert {![file exists [fault_file]]}
        assert_equal OK [r replicaof no one]
    }

    test {a Sentinel, which sends it in a transaction, is not refused, and the log says what it has promoted} {
        set c [attached]
        fails $c
        mark_logs
        r multi
        r slaveof no one
        r client kill type normal
        assert_equal OK [lindex [r exec] 0]
        assert_equal master [lindex [r role] 0]
        assert_match "*commands of its stream failed*becomes a primary with them*" [said_since_mark]
    }

    test {when the primary is gone, promotion by hand is not refused} {
        set c [attached]
        fails $c
        r config set propagation-error-behavior ignore
        primary_drop
        wait_for_condition 400 25 {[string match "*master_link_status:down*" [r info replication]]}
        assert_equal OK [r replicaof no one]
    }

    test {FAILOVER of the primary to such a replica is refused, unless it is forced} {
        set c [attached]
        fails $c
        set f [connect]
        assert_error "DIVERGED The data here differ*" {$f psync $::id $::sent failover}
        assert_equal slave [lindex [r role] 0]
        $f -send psync $::id [expr {$::sent + 1}] failover force
        wait_for_condition 400 25 {[lindex [r role] 0] eq "master"}
        $f -close
    }

    test {stop: the failed command closes the link, CONFIG SET goes on after it} {
        r config set propagation-error-behavior stop
        set c [attached]
        stops $c
        assert_error "DIVERGED *" {r replicaof no one}
        primary_drop
        r config set propagation-error-behavior ignore
        set c [primary_accept]
        assert_equal [list PSYNC $::id [expr {$::sent + 1}]] [primary_handshake $c]
        raw_send $c "+CONTINUE $::id\r\n"
        applies $c {SET after 1}
        assert_equal 1 [r get after]
        assert {![string match "*master_link_stopped*" [r info replication]]}
        assert_match "*master_stream_errors:1\r*" [r info replication]
    }

    test {stop: REPLICAOF orders a full synchronisation} {
        r config set propagation-error-behavior stop
        set c [attached]
        stops $c
        primary_drop
        assert_equal OK [r replicaof 127.0.0.1 $::primary_port]
        set c [primary_accept]
        assert_equal {PSYNC ? -1} [primary_handshake $c]
        primary_full_sync $c $::id 900 [rdb_of {k v}]
        primary_wait_ack $c 900
        assert_match "*master_link_status:up*master_stream_errors:0\r*" [r info replication]
    }

    test {stop: clients of a writable replica cause errors, which do not stop it} {
        r config set propagation-error-behavior stop replica-read-only no
        set c [attached]
        fails $c
        assert_match "*master_link_status:up*master_stream_errors:1\r*" [r info replication]
        r config set propagation-error-behavior ignore replica-read-only yes
    }
}

start_server [list tags {repl tls:skip} overrides [list port [free_port] save {3600 1} repl-diskless-load swapdb propagation-error-behavior stop]] {
    test {stop: the link stays closed over a restart, until the order to go on} {
        set c [attached]
        stops $c
        r config rewrite
        restart_with_file
        assert_match "*master_link_status:down*master_link_stopped:a command failed\r*master_stream_errors:1\r*" [r info replication]
        assert_match "*stays closed*lpush: WRONGTYPE*" [server_log]
        primary_drop
        after 1500
        assert_equal {} $::primary_waiting
        r config set propagation-error-behavior ignore
        set c [primary_accept]
        assert_equal [list PSYNC $::id [expr {$::sent + 1}]] [primary_handshake $c]
        raw_send $c "+CONTINUE $::id\r\n"
        applies $c {SET after 1}
        assert_match "*master_link_status:up*master_stream_errors:1\r*" [r info replication]
    }

    test {what is known about another primary, or is no such line, is forgotten at the start} {
        foreach text {"diverged 127.0.0.1:1 stopped lpush: x\n" "diverged 127.0.0.1:$::primary_port halted lpush: x\n" "" "x"} {
            primary_drop
            r config set propagation-error-behavior stop
            r config rewrite
            write_bytes [fault_file] [subst $text]
            restart_with_file
            assert_match "*master_stream_errors:0\r*" [r info replication]
            assert {![string match "*master_link_stopped*" [r info replication]]}
            assert {![file exists [fault_file]]}
        }
    }
}

primary_close

start_server [list tags {repl tls:skip} overrides [list port [free_port] save {} appendonly yes]] {
    proc loads {behavior} {
        upvar #0 [lindex $::servers 0] server
        set server(keeps_config) 1
        write_bytes [srv dir]/appendonlydir/appendonly.aof.1.incr.aof \
            "[primary_encode {SELECT 0}][primary_encode {SET k v}][primary_encode {LPUSH k x}][primary_encode {MULTI}][primary_encode {SADD k x}][primary_encode {EXEC}][primary_encode {SET after 1}]"
        exec sed -i {/^propagation-error-behavior/d} [srv config]
        set file [open [srv config] a]
        puts $file "propagation-error-behavior $behavior"
        close $file
    }

    test {commands of an append only file that fail are counted, and all others run} {
        stop_server
        loads ignore
        restart_server
        assert_equal {v 1} [r mget k after]
        assert_match "*aof_load_errors:2\r\naof_load_last_error:EXEC: WRONGTYPE*" [r info persistence]
        assert_equal 1 [regexp -all CRITICAL [server_log]]
    }

    test {a replica whose own append only file has such commands knows that its data differ} {
        stop_server
        loads ignore
        set file [open [srv config] a]
        puts $file "replicaof 127.0.0.1 1"
        close $file
        restart_server
        assert_match "*master_stream_errors:1\r\nmaster_stream_last_error:EXEC: WRONGTYPE*" [r info replication]
        assert {[file exists [fault_file]]}
        r replicaof no one
        assert {![file exists [fault_file]]}
        stop_server
        exec sed -i {/^replicaof/d} [srv config]
        restart_server
    }

    test {stop: a server does not start with such a file} {
        stop_server
        loads stop
        catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
        append said [file_text [srv stdout]]
        assert_match "*Error reading the append only file *'LPUSH' failed: WRONGTYPE*propagation-error-behavior ignore*" $said
        loads ignore
        restart_server
        assert_equal 1 [r get after]
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0}} {
    start_server {tags {repl tls:skip} overrides {save {} repl-diskless-sync-delay 0}} {
        test {FAILOVER between servers of this kind: refused, the primary stays one and says why, FORCE passes} {
            r -1 set k v
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            same_offset -1 -0
            r config set replica-read-only no
            r set only here
            r del k
            r rpush k x
            r config set replica-read-only yes
            r -1 append k w
            wait_for_condition 400 25 {[string match "*master_stream_errors:1*" [r info replication]]}
            same_offset -1 -0
            mark_logs
            r -1 failover to [srv host] [srv port] timeout 20000
            wait_for_condition 400 25 {[string match "*The replica does not take over: -DIVERGED*append: WRONGTYPE*" [server_log -1]]}
            wait_for_condition 400 25 {[string match "*role:master*master_failover_state:no-failover*" [r -1 info replication]]}
            assert_equal OK [r -1 set k2 v]
            assert_equal slave [lindex [r role] 0]
            link_is up
            wait_for_condition 400 25 {[string match "*state=online*" [r -1 info replication]]}
            r -1 failover to [srv host] [srv port] force timeout 20000
            wait_for_condition 400 25 {[lindex [r role] 0] eq "master"}
        }
    }
}
