# SPDX-License-Identifier: BSD-3-Clause
#
# The order of output: who has the reply to a write finds that replicas and listeners were sent the change.

source $::tests_dir/support/raw_replica.tcl

# Bytes that have arrived at the socket, without waiting.
proc arrived {s} {
    append ::raw_buffer($s) [read $s]
    set bytes $::raw_buffer($s)
    set ::raw_buffer($s) {}
    return $bytes
}

# With several threads, which the suite can give to all servers, a listener to which a thread is still writing gets the next
# message after the writer's reply (docs/io-threads.md). A thread may be stopped between the write that the test has read
# and telling the main thread of it, so the test has the main thread ask: CLIENT LIST waits until no thread writes.
proc settle {} {
    r client list
}

# How often one of the sockets had not got the value when the writer had its reply.
proc late {rounds sockets request {before {}}} {
    set writer [raw_connect]
    set late 0
    for {set i 0} {$i < $rounds} {incr i} {
        foreach s $sockets {
            foreach words $before {
                raw_send $s [resp_request {*}$words]
                raw_reply $s
            }
        }
        if {$before ne ""} settle
        raw_send $writer [resp_request {*}[string map [list VALUE value:$i:] $request]]
        raw_reply $writer
        foreach s $sockets {
            if {[arrived $s] ne ""} continue
            incr late
            resp::waitReadable $s $resp::timeout
            arrived $s
        }
    }
    return $late
}

proc listeners {count args} {
    for {set i 0} {$i < $count} {incr i} {
        lappend sockets [set s [raw_connect]]
        foreach words [linsert $args 0 {hello 3}] {
            raw_send $s [resp_request {*}$words]
            raw_reply $s
        }
    }
    settle
    return $sockets
}

set shapes {{alone {}}}
if {$::tcl_platform(os) eq "Linux"} {lappend shapes {"with an I/O thread" {io-threads 2 io-threads-always-active yes}}}
foreach shape $shapes {
    lassign $shape how options
    set overrides [list save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600 {*}$options]
    start_server [list tags {repl tls:skip} overrides $overrides] {
        test "replicas are sent a change before its reply: $how" {
            foreach n {1 2} {lappend replicas [dict get [replica_sync] socket]}
            assert_equal 0 [late 1 $replicas {set key VALUE}] ;# with SELECT
            assert_equal 0 [late [scaled 1000] $replicas {set key VALUE}]
        }

        test "listeners are sent a change before its reply: $how" {
            foreach n {1 40} {
                set rounds [scaled [expr {200 / $n + 20}]]
                assert_equal 0 [late $rounds [listeners $n {client tracking on bcast}] {set key VALUE}] "BCAST, $n"
                assert_equal 0 [late $rounds [listeners $n {client tracking on}] {set key VALUE} {{get key}}] "tracking, $n"
                assert_equal 0 [late $rounds [listeners $n monitor] {set key VALUE}] "MONITOR, $n"
                r config set notify-keyspace-events K$
                assert_equal 0 [late $rounds [listeners 1 {psubscribe __keyspace@0__:*}] {set key VALUE}] "events"
                r config set notify-keyspace-events {}
            }
            assert_equal 0 [late [scaled 200] [listeners 2 {subscribe channel}] {publish channel VALUE}] "messages"
        }
    }
}
