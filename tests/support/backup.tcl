# SPDX-License-Identifier: BSD-3-Clause
#
# For tests of valkey-cli --backup and --restore. Sourced by those tests, after tools.tcl.

# Runs valkey-cli against the server of the block; returns {exit status, output with errors}.
proc cli {args} {run_tool valkey-cli "" -h 127.0.0.1 -p [srv port] {*}$args}
proc cli_ok {args} {
    lassign [cli {*}$args] status output
    if {$status} {fail "valkey-cli $args: exit status $status: $output"}
    return $output
}

# An empty folder of the test.
proc backup_folder {name} {
    set folder [file join [srv dir] $name]
    file delete -force $folder
    return $folder
}
# The only file that matches.
proc the_file {folder pattern} {
    set found [glob -nocomplain -directory $folder */$pattern]
    if {[llength $found] != 1} {fail "$pattern in $folder: $found"}
    return [lindex $found 0]
}

# Starts --follow; returns its process id. What it says is in "<folder>.log".
proc follow_start {folder args} {
    set tool [file join [file dirname $::binary] valkey-cli]
    set pid [exec $tool -h 127.0.0.1 -p [srv port] --backup $folder --follow {*}$args >>$folder.log 2>@1 &]
    note_pids $pid
    return $pid
}
proc process_lives {pid} {expr {![catch {exec kill -0 $pid}]}}
proc follow_end {pid {signal TERM}} {
    exec kill -$signal $pid
    wait_for_condition 200 50 {![process_lives $pid]} else {fail "process $pid has not ended"}
    forget_pid $pid
}
proc follow_says {folder pattern} {
    expr {[file exists $folder.log] && [string match $pattern [read_bytes $folder.log]]}
}
proc wait_follow_says {folder pattern} {
    wait_for_condition 400 50 {[follow_says $folder $pattern]} else {
        fail "--follow has not said $pattern: [read_bytes $folder.log]"
    }
}
# The last number after a name in the JSON of --list.
proc listed {folder name} {
    lassign [cli --restore $folder --list --json] status output
    set found [regexp -all -inline "\"$name\": (\\d+)" $output]
    return [expr {[llength $found] ? [lindex $found end] : -1}]
}
# Waits until all that was written can be restored.
proc wait_follow_has {folder} {
    set offset [info_field master_repl_offset]
    wait_for_condition 400 50 {[listed $folder to_offset] >= $offset} else {
        fail "offset $offset has not come: [cli --restore $folder --list] [read_bytes $folder.log]"
    }
}

# Starts a server on a restored folder and evaluates the script with its client in `c`; returns its result.
proc with_restored {folder script} {
    set port [free_port]
    set aof [expr {[file exists $folder/appendonlydir] ? "yes" : "no"}]
    set pid [exec $::binary --port $port --dir $folder --appendonly $aof --save {} --logfile $folder/log \
        --enable-debug-command yes &]
    note_pids $pid
    try {
        wait_for_condition 200 50 {
            ![catch {respConnect 127.0.0.1 $port 2} c] && [catch {$c ping} pong] == 0
        } else {fail "no server on $folder: [read_bytes $folder/log]"}
        return [uplevel 1 [list apply [list c $script] $c]]
    } finally {
        catch {$c close}
        exec kill -9 $pid
        wait_for_condition 200 50 {![process_lives $pid]}
        forget_pid $pid
    }
}
# The digest of the data in a restored folder.
proc restored_digest {folder} {with_restored $folder {$c debug digest}}

# One transaction that gives the same number to three keys; returns {time in ms, number}.
proc write_unit {} {
    r multi
    r incr unit:a
    r incr unit:b
    r time
    r incr unit:c
    set reply [r exec]
    lassign [lindex $reply 2] seconds us
    return [list [expr {$seconds * 1000 + $us / 1000}] [lindex $reply 0]]
}
# Fails unless the numbers in a restored folder are equal and those of its time. `units` is what write_unit returned.
proc assert_state_of {folder time_ms units} {
    set found [with_restored $folder {$c mget unit:a unit:b unit:c}]
    lassign $found a b c
    if {$a ne $b || $b ne $c} {fail "a torn transaction: $found"}
    set possible {}
    set last {}
    foreach unit $units {
        lassign $unit at number
        if {$at <= $time_ms} {set last $number}
        if {$at == $time_ms} {lappend possible $number [expr {$number - 1}]}
    }
    if {$a ne $last && $a ni $possible} {fail "state of $time_ms: $a, not $last"}
}

# The option for compressed copies, if the tools are built with zstd, as the server is.
proc compress_words {} {
    return [expr {"zstd" in [split [info_field compression_codecs] ,] ? {--compress zstd} : {}}]
}
