# SPDX-License-Identifier: BSD-3-Clause
#
# Replication between servers of a test. A level is that of `r` and `srv`: -0 the current server, -1 the one around it.
#
#   link_is up|down ?level?        waits until the link to the primary is
#   log_has text ?level?           waits until the log has it, perhaps from an earlier test; it may have wildcards
#   stream_of level                ids and offsets of a server's stream: a dict with id, id2, offset, second
#   same_offset level level ...    waits until all have the same offset
#   same_data level level ...      the same, and compares their datasets
#   last_file level                the last file of the append only file; file_bytes path: its content
#   proves_position level          waits until the end of that file proves the present position in the stream

proc link_is {status {level -0}} {
    wait_for_condition 800 25 {[string match "*master_link_status:$status\r*" [r $level info replication]]} else {
        fail "the link is not $status: [r $level info replication]"
    }
}

proc log_has {text {level -0}} {
    wait_for_condition 800 25 {[string match "*$text*" [server_log $level]]} else {fail "no such line: $text"}
}

proc stream_of {level} {
    set info [r $level info replication]
    foreach {key field} {id master_replid id2 master_replid2 offset master_repl_offset second second_repl_offset} {
        regexp "\n$field:(\\S+)" $info -> value
        dict set stream $key $value
    }
    return $stream
}

proc offset_of {level} {dict get [stream_of $level] offset}

proc same_offset {level args} {
    foreach other $args {
        wait_for_condition 800 25 {[offset_of $other] == [offset_of $level]} else {
            fail "offsets differ: [stream_of $level], [stream_of $other]"
        }
    }
}

proc same_data {level args} {
    same_offset $level {*}$args
    foreach other $args {assert_equal [r $level debug digest] [r $other debug digest]}
}

proc last_file {level} {lindex [lsort -dictionary [glob [srv $level dir]/appendonlydir/*.incr.aof]] end}

proc file_bytes {path} {
    set channel [open $path rb]
    set bytes [read $channel]
    close $channel
    return $bytes
}

# True if the end of the file of this level proves the present position of its stream: the last line and what follows it.
proc is_proved {level} {
    if {![regexp {#REPL:([^:]+):(\d+):-?\d+\r\n([^#]*)$} [file_bytes [last_file $level]] -> id offset rest]} {return 0}
    set stream [stream_of $level]
    return [expr {$id eq [dict get $stream id] && $offset + [string length $rest] == [dict get $stream offset] &&
        ![string match *SELECT* $rest]}]
}

proc proves_position {level} {
    wait_for_condition 200 25 {[is_proved $level]} else {
        fail "[stream_of $level] is not proved by: [string range [file_bytes [last_file $level]] end-300 end]"
    }
}
