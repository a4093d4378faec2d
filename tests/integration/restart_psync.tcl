# SPDX-License-Identifier: BSD-3-Clause
#
# Restarts of primaries and replicas: which of them continue by a partial resynchronisation, with every kind of file, after
# SHUTDOWN, SIGTERM and SIGKILL; and that an append only file that does not prove its position in the stream is not believed.

source $::tests_dir/support/replication.tcl

proc end_server {how} {
    upvar #0 [lindex $::servers 0] server
    if {$how eq "SIGTERM"} {
        stop_server
        return
    }
    if {$how eq "SHUTDOWN"} {
        catch {r shutdown}
    } else {
        send_signal KILL $server(pid)
    }
    wait_for_condition 800 25 {[process_ended $server(pid)]} else {fail "the server does not end"}
    catch {close $server(channel)}
    catch {$server(client) -close}
    set server(client) {}
    forget_pid $server(pid)
}

# Runs the code with the server of this level as the current one.
proc on_level {level code} {
    set all $::servers
    set ::servers [lrange $::servers [expr {-$level}] end]
    try {uplevel 1 $code} finally {set ::servers $all}
}

proc write_file {path bytes} {
    set channel [open $path wb]
    puts -nonewline $channel $bytes
    close $channel
}

proc syncs {level} {
    regexp {sync_full:(\d+)\s+sync_partial_ok:(\d+)} [r $level info stats] -> full partial
    return [list $full $partial]
}

proc change_all {level} {
    r $level incr counter
    r $level multi
    r $level incr counter
    r $level rpush list a b c
    r $level exec
    r $level publish channel message
    r $level eval {redis.call('incr', KEYS[1]) redis.call('append', KEYS[2], 'x')} 2 counter text
    r $level set volatile v px 5
    r $level del none
    r $level sadd set 1 2 3
    r $level spop set
    r $level select 3
    r $level incr counter
    r $level select 0
    r $level incr counter
    # An expired key would be deleted after a restart, and a primary that has changed something has a stream of its own.
    wait_for_condition 400 5 {![r $level exists volatile]} else {fail "the key does not expire"}
}

foreach {files options} {
    RDB {save {3600 1}}
    AOF {save {} appendonly yes}
    {AOF without preamble} {save {} appendonly yes aof-use-rdb-preamble no}
    both {save {3600 1} appendonly yes}
} {
    set options [concat $options {repl-diskless-sync-delay 0 enable-debug-command yes}]
    start_server [list tags {repl tls:skip} overrides [concat $options [list port [free_port]]]] {
        set primary "[srv host] [srv port]"
        start_server [list tags {repl tls:skip} overrides [concat $options \
                [list port [free_port] replicaof $primary]]] {
            foreach how {SHUTDOWN SIGTERM SIGKILL} {
                if {$files eq "RDB" && $how eq "SIGKILL"} continue
                test "A replica continues after $how ($files)" {
                    link_is up
                    change_all -1
                    same_data -1 -0
                    if {$how eq "SIGKILL"} {proves_position -0}
                    lassign [syncs -1] full
                    end_server $how
                    change_all -1
                    continue_server
                    link_is up
                    same_data -1 -0
                    assert_equal $full [lindex [syncs -1] 0]
                }

                test "A replica continues with its primary after $how of that ($files)" {
                    change_all -1
                    same_data -1 -0
                    if {$how eq "SIGKILL"} {proves_position -1}
                    on_level -1 {end_server $how}
                    on_level -1 {continue_server}
                    link_is up
                    change_all -1
                    same_data -1 -0
                    assert_equal 0 [lindex [syncs -1] 0]
                }

                test "A primary that is a replica after $how continues with its successor ($files)" {
                    change_all -1
                    same_data -1 -0
                    if {$how eq "SIGKILL"} {proves_position -1}
                    on_level -1 {end_server $how}
                    r replicaof no one
                    change_all -0
                    on_level -1 {continue_server}
                    r -1 replicaof {*}"[srv host] [srv port]"
                    link_is up -1
                    same_data -0 -1
                    assert_equal 0 [lindex [syncs -0] 0]
                    r -1 replicaof no one
                    r replicaof {*}$primary
                    link_is up
                }
            }
        }
    }
}

set aof_options {save {} appendonly yes repl-diskless-sync-delay 0 repl-ping-replica-period 3600 enable-debug-command yes}
start_server [list tags {repl tls:skip} overrides [concat $aof_options [list port [free_port]]]] {
    start_server [list tags {repl tls:skip} overrides [concat $aof_options \
            [list port [free_port] replicaof "[srv host] [srv port]"]]] {
        # Changes the last file of the replica while it is down; the expression maps its `bytes`. Returns whether the replica
        # has continued.
        proc restart_changed {how change} {
            link_is up
            change_all -1
            same_data -1 -0
            lassign [syncs -1] full
            end_server $how
            set path [last_file -0]
            set bytes [file_bytes $path]
            write_file $path [uplevel 1 [list apply [list bytes $change] $bytes]]
            change_all -1
            continue_server
            link_is up
            same_data -1 -0
            return [expr {[lindex [syncs -1] 0] == $full}]
        }

        test {The last line of an append only file is the position in the stream after a shutdown} {
            link_is up
            change_all -1
            same_data -1 -0
            set stream [stream_of -0]
            end_server SHUTDOWN
            assert_match "*\r\n#REPL:[dict get $stream id]:[dict get $stream offset]:0\r\n" [file_bytes [last_file -0]]
            continue_server
            link_is up
        }

        test {Other lines that begin with # after it do not matter} {
            assert_equal 1 [restart_changed SHUTDOWN {return "$bytes#TS:1\r\n"}]
        }

        test {Commands that another server has appended end what is known} {
            set set "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$1\r\nv\r\n"
            set select "*2\r\n\$6\r\nSELECT\r\n\$1\r\n0\r\n"
            assert_equal 0 [restart_changed SHUTDOWN [list append bytes $select$set]]
            set all "*1\r\n\$5\r\nMULTI\r\n$select$set*1\r\n\$4\r\nEXEC\r\n"
            assert_equal 0 [restart_changed SHUTDOWN [list append bytes $all]]
        }

        test {A file from which a command was taken out is loaded, and not believed} {
            assert_equal 0 [restart_changed SHUTDOWN {
                set command "*2\r\n\$4\r\nincr\r\n\$7\r\ncounter\r\n"
                set at [string first $command $bytes]
                if {$at < 0} {fail "no INCR in the file: $bytes"}
                return [string replace $bytes $at [expr {$at + [string length $command] - 1}]]
            }]
        }

        test {A line with another length, id or database is not believed} {
            foreach {from to} {#REPL: #REPL: {:0$} :-2 {:0$} :x} {
                set change [string map [list FROM $from TO $to] {
                    set lines [split [string trimright $bytes \r\n] \n]
                    set last [regsub {FROM} [lindex $lines end] {TO}]
                    return "[join [lrange $lines 0 end-1] \n]\n$last\r\n"
                }]
                assert_equal [expr {$from eq $to}] [restart_changed SHUTDOWN $change]
            }
        }

        test {A file that was cut anywhere proves what it has, and never more} {
            set random [expr {int(rand() * 1000000)}]
            puts "seed $random"
            expr {srand($random)}
            for {set i 0} {$i < 12} {incr i} {
                for {set k 0} {$k < 5} {incr k} {r -1 incr counter}
                restart_changed SIGKILL "string range \$bytes 0 end-[expr {int(rand() * 400)}]"
            }
        }

        test {A file that was cut after commands of known length continues from there} {
            same_data -1 -0
            proves_position -0
            for {set k 0} {$k < 20} {incr k} {r -1 incr counter}
            same_data -1 -0
            lassign [syncs -1] full
            end_server SIGKILL
            set bytes [file_bytes [last_file -0]]
            set command "*2\r\n\$4\r\nincr\r\n\$7\r\ncounter\r\n"
            set at [string last $command $bytes]
            write_file [last_file -0] [string range $bytes 0 $at+5]
            continue_server
            link_is up
            same_data -1 -0
            assert_equal $full [lindex [syncs -1] 0]
        }

        test {A change that a script keeps from the file makes it prove nothing, until it is rewritten} {
            r -1 eval {redis.set_repl(redis.REPL_REPLICA) redis.call('set', 'beside', '1') redis.set_repl(redis.REPL_ALL)} 0
            same_data -1 -0
            set before [file_bytes [last_file -1]]
            r -1 incr counter
            on_level -1 {end_server SHUTDOWN}
            assert {![string match "*#REPL:\[0-9a-f]*:\[0-9]*" [string range [file_bytes [last_file -1]] [string length $before] end]]}
            on_level -1 {continue_server}
            link_is up
            same_data -1 -0
            assert_equal 1 [lindex [syncs -1] 0]
        }

        test {After a rewrite the new file proves the position} {
            foreach level {-1 -0} {
                r $level bgrewriteaof
                wait_for_condition 400 25 {[string match "*aof_rewrite_in_progress:0*" [r $level info persistence]]} else {
                    fail "the rewrite does not end"
                }
                proves_position $level
            }
        }
    }
}
