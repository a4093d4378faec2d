# SPDX-License-Identifier: BSD-3-Clause
#
# Server events (engine/server_event.h), as a listener of builds with checks records them.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/primary.tcl

set ::env(VALKEY_RECORD_EVENTS) events

# Events since the last call that match none of the patterns.
proc events {level args} {
    set path [srv $level dir]/events
    if {![file exists $path]} {
        return -code error -errorcode {TEST SKIPPED} "the build has no checks"
    }
    set from [expr {[info exists ::events_read($path)] ? $::events_read($path) : 0}]
    set lines [lrange [split [string trimright [read_bytes $path] \n] \n] $from end]
    set ::events_read($path) [expr {$from + [llength $lines]}]
    set found {}
    foreach line $lines {
        set ignored 0
        foreach pattern [list client* progress* {*}$args] {
            if {[string match $pattern $line]} {set ignored 1}
        }
        if {!$ignored} {lappend found $line}
    }
    return $found
}

# Waits until the last events are these.
proc events_are {level expected args} {
    set expected [list {*}$expected]
    set got {}
    wait_for_condition 400 25 {[lappend got {*}[events $level {*}$args]] eq $expected} else {
        fail "the events are [join $got {, }] instead of [join $expected {, }]"
    }
}

start_server {tags {repl} overrides {save {} appendonly no repl-diskless-sync no snapshot-mode fork}} {
    test {what the start has signalled is nothing but its clients} {
        assert_equal {} [events -0]
    }

    test {a client is signalled when it connects and before it goes} {
        events -0
        set path [srv dir]/events
        set c [connect]
        set id [$c client id]
        assert {"client $id connected 1" in [split [read_bytes $path] \n]}
        $c -send quit
        wait_for_condition 400 25 {"client $id connected 0" in [split [read_bytes $path] \n]} else {
            fail "the end of client $id was not signalled"
        }
    }

    test {CONFIG SET signals all names of a request that was applied} {
        events -0
        r config set maxmemory 0 timeout 0
        catch {r config set maxmemory x timeout 1}
        events_are -0 {{config maxmemory timeout}}
    }

    test {FLUSHDB, FLUSHALL and SWAPDB are signalled with their databases} {
        events -0
        r select 3
        r flushdb sync
        r flushall async
        r swapdb 1 2
        r select 0
        events_are -0 {{flush begins 3} {flush ended 3} {flush begins -1 later} {flush ended -1 later} {swap 1 2}}
    }

    test {saving is signalled: in the foreground, in a child, and when it fails} {
        events -0
        r set key value
        r save
        events_are -0 {{persistence begins rdb foreground} {persistence ended rdb foreground}}
        r bgsave
        events_are -0 {{child begins rdb-save} {persistence begins rdb} {persistence ended rdb} {child ended rdb-save}}
        r bgrewriteaof
        events_are -0 {{child begins aof-rewrite} {persistence begins aof} {persistence ended aof}
                      {child ended aof-rewrite}}
        r config set rdb-key-save-delay 10000000
        r bgsave
        r bgsave cancel
        r config set rdb-key-save-delay 0
        events_are -0 {{child begins rdb-save} {persistence begins rdb} {persistence failed rdb} {child ended rdb-save}} \
            config*
    }

    test {a load is signalled with its source} {
        events -0
        r debug reload
        events_are -0 {{persistence begins rdb foreground} {persistence ended rdb foreground} {loading begins rdb}
                      {loading ended}}
    }

    test {the progress of a load is signalled while it goes on, and its failure} {
        events -0
        r debug populate 100 key 100
        r save
        r config set key-load-delay 5000 loading-process-events-interval-bytes 1024
        set path [srv dir]/events
        set before [llength [regexp -all -inline {progress rdb} [read_bytes $path]]]
        r debug reload nosave
        set count [expr {[llength [regexp -all -inline {progress rdb} [read_bytes $path]]] - $before}]
        assert_range $count 1 100
        r config set key-load-delay 0
        set file [srv dir]/dump.rdb
        set bytes [read_bytes $file]
        write_bytes $file [string range $bytes 0 end-20]
        events -0
        assert_equal 1 [catch {r debug reload nosave noflush}]
        events_are -0 {{loading begins rdb} {loading failed}}
        write_bytes $file $bytes
    }

    test {the append only file is signalled when it is made, rewritten and loaded} {
        r flushall
        r config set appendonly yes
        wait_for_condition 400 25 {[info_field aof_rewrite_in_progress] == 0} else {fail "the rewrite does not end"}
        r set key value
        events -0
        r debug loadaof
        events_are -0 {{loading begins aof} {loading ended}}
        assert_equal value [r get key]
        r config set appendonly no
    }

    start_server {tags {repl} overrides {save {} appendonly no}} {
        test {roles, links and replicas are signalled where they change} {
            events -0
            events -1
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            events_are -0 [list "role replica [srv -1 host] [srv -1 port]" {loading begins primary} {flush begins -1 later} \
                {flush ended -1 later} {loading ended} {link up 1}]
            events_are -1 {{replica online 1}} persistence* child*
            r replicaof no one
            events_are -0 {{link up 0} {role primary  0}}
            events_are -1 {{replica online 0}}
        }

        test {the replica of another primary changes its role, too} {
            events -0
            r replicaof 127.0.0.1 1
            r replicaof 127.0.0.1 2
            r replicaof 127.0.0.1 2
            r replicaof no one
            events_are -0 {{role replica 127.0.0.1 1} {role replica 127.0.0.1 2} {role primary  0}}
        }

        test {the last event is the shutdown} {
            events -0
            set path [srv dir]/events
            stop_server
            assert_equal shutdown [lindex [lsearch -all -inline -not [split [string trim [read_bytes $path]] \n] client*] end]
        }
    }
}

start_server {tags {repl tls:skip} overrides {save {} repl-diskless-load swapdb}} {
    test {a load beside the dataset that is served is signalled as one} {
        set id [string repeat c 40]
        primary_listen
        set c [primary_asked]
        primary_full_sync $c $id 50 [rdb_of {k old}]
        primary_wait_ack $c 50
        link_is up
        events -0
        primary_drop
        set c [primary_accept]
        primary_handshake $c
        set rdb [rdb_of {k new}]
        raw_send $c "+FULLRESYNC $id 70\r\n\$[string length $rdb]\r\n$rdb"
        primary_wait_ack $c 70
        events_are -0 {{link up 0} {loading-beside begins} {loading begins primary} {loading-beside ended}
                       {loading ended} {link up 1}}
    }

    test {a load beside of another history, too, and one that fails} {
        set other [string repeat d 40]
        set rdb [rdb_of {k newer}]
        foreach part {1 0} {
            primary_drop
            set c [primary_accept]
            events -0
            primary_handshake $c
            raw_send $c "+FULLRESYNC $other 90\r\n\$[string length $rdb]\r\n[string range $rdb 0 end-$part]"
            if {$part} {
                primary_drop
                events_are -0 {{loading-beside begins} {loading begins primary} {loading failed} {loading-beside failed}}
                assert_equal new [r get k]
            } else {
                primary_wait_ack $c 90
                events_are -0 {{loading-beside begins} {loading begins primary} {loading-beside ended} {loading ended} {link up 1}}
            }
        }
        r replicaof no one
        primary_close
    }
}
