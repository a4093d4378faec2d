# SPDX-License-Identifier: BSD-3-Clause
#
# A primary that restarts without its data never replaces those of its replicas, unless somebody orders it
# (replica-refuse-empty-primary).

source $::tests_dir/support/replication.tcl

# Level -1 is the primary, -0 its replica.
# `end`: how the server ends before its files are removed.
proc lose_data {{level -1} {end kill_server}} {
    with_level $level {
        {*}$end
        foreach file {dump.rdb appendonlydir} {file delete -force [file join [srv dir] $file]}
        continue_server
    }
}

# SHUTDOWN with these words, and the end of the process.
proc shut_down {args} {
    catch {r shutdown {*}$args}
    stop_server
}

proc with_level {level code} {
    set all $::servers
    set ::servers [lrange $all [expr {-$level}] end]
    try {uplevel 1 $code} finally {set ::servers $all}
}

proc restart_level {level} {with_level $level restart_server}

proc is_refused {{level -0}} {
    wait_for_condition 800 25 {[string match "*master_link_refused:1\r*" [r $level info replication]]} else {
        fail "the primary is not refused: [r $level info replication]"
    }
}

proc follow_and_fill {} {
    r -1 flushall
    r replicaof no one
    r replicaof [srv -1 host] [srv -1 port]
    link_is up
    r -1 set before 1
    same_offset -1 -0
    assert_equal 1 [r dbsize]
}

set settings {repl-diskless-sync-delay 0 save {} enable-debug-command yes}

foreach {kind more} {
    "to a file" {repl-diskless-load disabled}
    "directly, beside the old data" {repl-diskless-load swapdb}
    "directly, after a flush" {repl-diskless-load flush-before-load}
    "over two connections" {repl-diskless-load swapdb dual-channel-replication-enabled yes}
} {
    set own [dict merge $settings $more]
    start_server [list tags {repl needs:servers tls:skip} overrides [dict merge $own [list port [free_port]]]] {
    start_server [list overrides $own] {
        test "a primary that restarts without files is refused, loading $kind" {
            follow_and_fill
            lose_data
            r -1 set after 1
            is_refused
            assert_equal {1 {}} [r mget before after]
            assert_match "*master_link_status:down*master_link_refused_reason:primary was started without the data*" [r info replication]
            log_has "it is not followed, so that the keys here are kept"
            log_has "this server was started without them" -1
            assert_match "*replicas_keep_lost_data:1*" [r -1 info replication]
            assert_match "*sync_full:0*" [r -1 info stats]
        }

        test "such a replica may be promoted, and then the old primary follows it, loading $kind" {
            r replicaof no one
            assert_equal 0 [string match *master_link_refused* [r info replication]]
            r set promoted 1
            r -1 replicaof [srv host] [srv port]
            link_is up -1
            same_data -0 -1
            assert_equal {1 1} [r -1 mget before promoted]
            r -1 replicaof no one
        }

        test "REPLICAOF of the same primary is an order, loading $kind" {
            follow_and_fill
            lose_data
            r -1 set after 1
            is_refused
            assert_equal OK [r replicaof [srv -1 host] [srv -1 port]]
            link_is up
            same_data -1 -0
            assert_equal {{} 1} [r mget before after]
            log_has "Its dataset replaces the 1 keys here, as this server was told to follow it"
        }

        test "CONFIG SET replica-refuse-empty-primary no ends it, loading $kind" {
            follow_and_fill
            lose_data
            is_refused
            r config set replica-refuse-empty-primary no
            link_is up
            same_data -1 -0
            assert_equal 0 [r dbsize]
            r config set replica-refuse-empty-primary yes
        }
    }
    }
}

start_server [list tags {repl needs:servers tls:skip} overrides [dict merge $settings [list port [free_port]]]] {
start_server [list overrides $settings] {
    test {a primary with its file is followed, also if it has no keys} {
        follow_and_fill
        r -1 flushall
        r -1 save
        # What the replica has, the file has not.
        r -1 set lost 1
        same_offset -1 -0
        assert_equal 1 [r dbsize]
        restart_level -1
        link_is up
        same_data -1 -0
        assert_equal 0 [r dbsize]
    }

    test {a full synchronisation with the same process is none with an empty primary} {
        follow_and_fill
        # Another stream, without a restart.
        r -1 debug change-repl-id
        r client kill type master
        link_is up
        assert_match "*Full resync from primary*" [server_log]
        same_data -1 -0
    } {needs:debug}

    test {a replica without keys follows an empty primary} {
        follow_and_fill
        r -1 flushall
        same_offset -1 -0
        lose_data
        link_is up
        r -1 set new 1
        same_data -1 -0
    }

    test {a first synchronisation replaces what is there} {
        follow_and_fill
        r replicaof no one
        lose_data
        r set own 1
        r replicaof [srv -1 host] [srv -1 port]
        link_is up
        same_data -1 -0
        assert_equal 0 [r dbsize]
    }

    test {a file that an empty primary has saved is refused as well} {
        follow_and_fill
        lose_data
        is_refused
        r -1 set after 1
        r -1 save
        restart_level -1
        assert_equal 1 [r -1 get after]
        wait_for_condition 800 25 {[string match *replicas_keep_lost_data:1* [r -1 info replication]]} else {fail "not refused"}
        assert_equal {1 {}} [r mget before after]
        assert_match "*sync_full:0*" [r -1 info stats]
    }

    test {a primary whose data were restored is followed again} {
        follow_and_fill
        r -1 save
        file copy -force [file join [srv -1 dir] dump.rdb] [file join [srv -1 dir] kept]
        lose_data
        is_refused
        with_level -1 {
            stop_server
            file copy -force [file join [srv dir] kept] [file join [srv dir] dump.rdb]
            continue_server
        }
        link_is up
        same_data -1 -0
        assert_equal 1 [r dbsize]
    }
}
}

# ---- an order to end

start_server [list tags {repl needs:servers tls:skip} overrides [dict merge $settings [list port [free_port]]]] {
start_server [list overrides $settings] {
    # The primary has these settings, ends so, and its files are removed: the replica follows the empty primary or keeps its data.
    foreach {what configuration end follows} {
        "SIGTERM without save points" {} stop_server 1
        "SHUTDOWN without save points" {} shut_down 1
        "SHUTDOWN NOSAVE with save points" {save "3600 1"} {shut_down nosave} 1
        "kill -9 without save points" {} kill_server 0
        "SIGTERM with save points" {save "3600 1"} stop_server 0
        "SHUTDOWN SAVE without save points" {} {shut_down save} 0
        "SIGTERM with an append only file" {appendonly yes} stop_server 0
        "SHUTDOWN NOSAVE with an append only file" {appendonly yes} {shut_down nosave} 0
    } {
        test "after $what an empty primary is [expr {$follows ? "followed" : "refused"}]" {
            follow_and_fill
            if {$configuration ne ""} {r -1 config set {*}$configuration}
            wait_for_condition 800 25 {[string match *aof_rewrite_in_progress:0* [r -1 info persistence]]} else {fail "a rewrite does not end"}
            lose_data -1 $end
            if {!$follows} {
                is_refused
                assert_equal 1 [r get before]
            } else {
                r -1 set after 1
                link_is up
                same_data -1 -0
                assert_equal {{} 1} [r mget before after]
                log_has "as the primary was shut down by order and saved nothing"
            }
        }
    }

    test {with replica-refuse-empty-primary always an order to the primary changes nothing} {
        follow_and_fill
        r config set replica-refuse-empty-primary always
        lose_data -1 stop_server
        is_refused
        assert_equal 1 [r get before]
        # The order is known: it was given to a process that had the data.
        r config set replica-refuse-empty-primary yes
        link_is up
        same_data -1 -0
        assert_equal 0 [r dbsize]
    }

    test {an order counts until the primary is followed again} {
        follow_and_fill
        r -1 save
        restart_level -1
        link_is up
        assert_equal 1 [r get before]
        lose_data
        is_refused
        assert_equal 1 [r get before]
    }

    test {the order is known whatever becomes of the empty process} {
        follow_and_fill
        with_level -1 {stop_server}
        log_has "it is followed if it comes back without data"
        with_level -1 {continue_server; kill_server; continue_server}
        link_is up
        same_data -1 -0
        assert_equal 0 [r dbsize]
    }
}
}

start_server [list tags {repl needs:servers tls:skip} overrides [dict merge $settings [list port [free_port]]]] {
start_server [list overrides [dict merge $settings [list port [free_port] save {3600 1000000}]]] {
    # Its configuration names the primary, as that of an operator does.
    proc both_restart {{between {}}} {
        stop_server
        lose_data
        r -1 set after 1
        uplevel 1 $between
        upvar #0 [lindex $::servers 0] server
        set server(settings) [dict merge $server(settings) [list replicaof "[srv -1 host] [srv -1 port]"]]
        continue_server
    }

    test {a replica that is restarted, too, keeps what its file has} {
        follow_and_fill
        r save
        both_restart
        is_refused
        assert_equal {1 {}} [r mget before after]
    }

    test {the file of another primary's replica is replaced} {
        r replicaof no one
        r save
        both_restart
        link_is up
        same_data -1 -0
        assert_equal {{} 1} [r mget before after]
    }

    test {a replica that is restarted follows a primary that has lost nothing, whatever its stream is now} {
        r save
        stop_server
        r -1 debug change-repl-id
        r -1 set more 1
        continue_server
        link_is up
        same_data -1 -0
    } {needs:debug}
}
}

start_server [list tags {repl needs:servers tls:skip} overrides [dict merge $settings [list port [free_port]]]] {
start_server [list overrides [dict merge $settings [list port [free_port]]]] {
start_server [list overrides $settings] {
    proc chain_and_fill {} {
        r -2 flushall
        r -1 replicaof no one
        r -1 replicaof [srv -2 host] [srv -2 port]
        link_is up -1
        r replicaof no one
        r replicaof [srv -1 host] [srv -1 port]
        link_is up
        r -2 set before 1
        same_offset -2 -1 -0
    }

    test {the replica of a replica that refuses keeps its data and its link} {
        chain_and_fill
        lose_data -2
        is_refused -1
        link_is up
        assert_equal {1 1} [list [r -1 get before] [r get before]]
    }

    test {an order to the first primary reaches both replicas} {
        chain_and_fill
        lose_data -2 stop_server
        r -2 set after 1
        link_is up -1
        link_is up
        same_data -2 -1 -0
        assert_equal {{} 1} [r mget before after]
        log_has "followed if it comes back without data" -1
        assert_equal 0 [string match "*followed if it comes back without data*" [server_log]]
    }

    test {an order to the first primary is none to the replica of a replica} {
        chain_and_fill
        with_level -2 stop_server
        log_has "followed if it comes back without data" -1
        same_offset -1 -0
        lose_data -1
        is_refused
        assert_equal 1 [r get before]
        with_level -2 continue_server
    }

    test {a replica in between that has lost its data, too, is refused} {
        chain_and_fill
        with_level -1 stop_server
        lose_data -2
        with_level -1 {
            upvar #0 [lindex $::servers 0] server
            set server(settings) [dict merge $server(settings) [list replicaof "[srv -1 host] [srv -1 port]"]]
            continue_server
        }
        link_is up -1
        is_refused
        assert_equal 1 [r get before]
        assert_equal 0 [r -1 dbsize]
    }

    test {a replica in between that has got the data again is followed} {
        r -2 set again 1
        with_level -2 {r config rewrite}
        r replicaof no one
        r -2 save
        restart_level -2
        link_is up -1
        r replicaof [srv -1 host] [srv -1 port]
        link_is up
        same_data -2 -1 -0
    }
}
}
}

# ---- released servers, which tell nothing of their dataset: the primary is scripted

source $::tests_dir/support/primary.tcl

set ::id_before [string repeat a 40]
set ::id_after [string repeat b 40]

# A file without keys, but with a library of functions.
proc rdb_of_library {code} {
    set len [string length $code]
    return "REDIS0011\xf5[binary format cc [expr {0x40 | $len >> 8}] [expr {$len & 255}]]$code\xff[string repeat \x00 8]"
}

set ::library "#!lua name=lib\nserver.register_function{function_name='f', callback=function() return 1 end, flags={'no-writes'}}"

proc lost_link {c} {
    raw_close $c
    set c [primary_accept]
    primary_handshake $c
    return $c
}

primary_listen

start_server {tags {repl tls:skip} overrides {save {}}} {
    foreach mode {disabled flush-before-load swapdb} {
        test "a released primary that has no key any more is refused ($mode)" {
            r config set repl-diskless-load $mode
            set c [primary_attach $::id_before 100 {key value}]
            set c [lost_link $c]
            primary_full_sync $c $::id_after 5 [rdb_of {}]
            is_refused
            assert_equal value [r get key]
            # It is asked again, also to continue its stream.
            set c [primary_accept]
            assert_equal [list PSYNC $::id_before 101] [primary_handshake $c]
            primary_full_sync $c $::id_after 7 [rdb_of_library $::library]
            set c [primary_accept]
            primary_handshake $c
            assert_equal value [r get key]
            assert_equal {} [r function list]
            primary_full_sync $c $::id_after 9 [rdb_of {restored 1}]
            primary_wait_ack $c 9
            assert_equal {restored} [r keys *]
            assert_equal 0 [string match *master_link_refused* [r info replication]]
        }

        test "an order that a released server passes on is none of its own ($mode)" {
            set c [primary_attach $::id_before 100 {key value}]
            primary_send $c REPLCONF GETACK discards:[string repeat c 40]
            set c [lost_link $c]
            primary_full_sync $c $::id_after 5 [rdb_of {}]
            is_refused
            assert_equal value [r get key]
        }

        test "functions before the first key are loaded ($mode)" {
            set c [primary_attach $::id_before 100 {key value}]
            set c [lost_link $c]
            set library [string range [rdb_of_library $::library] 9 end-9]
            primary_full_sync $c $::id_after 5 "REDIS0011$library[string range [rdb_of {restored 1}] 9 end]"
            primary_wait_ack $c 5
            assert_equal {restored} [r keys *]
            assert_equal 1 [r fcall_ro f 0]
            r replicaof no one
            r function flush
        }

        test "no key in the stream that the replica has is no loss ($mode)" {
            set c [primary_attach $::id_before 100 {key value}]
            set c [lost_link $c]
            primary_full_sync $c $::id_before 500 [rdb_of {}]
            primary_wait_ack $c 500
            assert_equal 0 [r dbsize]
        }

        test "a first synchronisation with a released primary is an order ($mode)" {
            primary_detach
            r set own 1
            set c [primary_asked]
            primary_full_sync $c $::id_after 5 [rdb_of {}]
            primary_wait_ack $c 5
            assert_equal 0 [r dbsize]
        }
    }
}

primary_close
