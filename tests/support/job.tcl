# SPDX-License-Identifier: BSD-3-Clause
#
# One process, one test file, one protocol version. Results go to the coordinator as lines on stdout:
# "@" and an escaped list; every other line is the test's own output.

set current_tags {}
set test_clients {}
set in_test 0
set live_pids {}
set server_serial 0

proc escape_line {text} {string map {% %25 \n %0A \r %0D \0 %00} $text}
proc unescape_line {text} {string map {%25 % %0A \n %0D \r %00 \0} $text}

# kind: ok, fail, skip, done. `detail` of a failure is its message, of a success its milliseconds, of done cpu_seconds.
proc report {kind name {detail {}}} {
    puts "@[escape_line [list $kind $name $detail]]"
    flush stdout
}

# True when tests with these tags run in the other protocol's job; they do not count as skipped.
proc tags_elsewhere {tags} {
    return [expr {[lsearch -glob $tags resp:*] >= 0 && "resp:$::resp_version" ni $tags}]
}

# True when tests with these tags are not to run here.
proc tags_exclude {tags} {
    if {[tags_elsewhere $tags]} {return 1}
    foreach tag $tags {
        if {$tag in $::tags_denied} {return 1}
        if {$::external && [string match needs:* $tag]} {return 1}
    }
    return 0
}

proc tags_select {tags} {
    if {[tags_exclude $tags]} {return 0}
    if {$::tags_wanted eq ""} {return 1}
    foreach tag $tags {
        if {$tag in $::tags_wanted} {return 1}
    }
    return 0
}

# Runs a block of tests under additional tags.
proc tags {tags code} {
    set outer $::current_tags
    lappend ::current_tags {*}$tags
    try {
        if {[tags_exclude $::current_tags]} {skip_tests $code} else {uplevel 1 $code}
    } finally {
        set ::current_tags $outer
    }
}

# Reports the tests of a block that does not run, by name where the name is plain.
proc skip_tests {code} {
    if {[tags_elsewhere $::current_tags]} return
    foreach {line name} [regexp -all -inline -line {^\s*test (\{[^\}]*\}|"[^"]*")} $code] {
        report skip [string range $name 1 end-1]
    }
}

proc test {name code {tags {}}} {
    if {$::only ne "" && ![string match -nocase "*$::only*" $name]} return
    set tags [concat $::current_tags $tags]
    if {![tags_select $tags]} {
        if {![tags_elsewhere $tags]} {report skip $name}
        return
    }
    report begin $name
    mark_logs
    set started [clock milliseconds]
    set ::in_test 1
    set kept [uplevel 1 {info locals}]
    set code [catch {uplevel 1 $code} message options]
    # The variables a test made end with it, so that no test leans on another.
    foreach variable [uplevel 1 {info locals}] {
        if {$variable ni $kept} {uplevel 1 [list unset $variable]}
    }
    set ::in_test 0
    if {$code in {0 2}} {
        report ok $name [expr {[clock milliseconds] - $started}]
        close_test_clients
        return
    }
    if {[dict get $options -errorcode] eq {TEST SKIPPED}} {
        report skip $name
        close_test_clients
        return
    }
    report fail $name "[failure_text $name $message $options]\n[said_since_mark]"
    drop_clients
}

# The message, the place in the test file, and for a mistake of the test itself the way to it.
proc failure_text {name message options} {
    set trace [dict get $options -errorinfo]
    set line [test_line $name]
    # The last such frame is the test's body, called by `test`.
    set frames [regexp -all -inline {\("uplevel" body line (\d+)\)} $trace]
    if {$line && [llength $frames]} {incr line [expr {[lindex $frames end] - 1}]}
    set text "$message\nat $::job_name.tcl:$line"
    if {[lindex [dict get $options -errorcode] 0] ni {TEST RESP}} {
        append text "\n" [join [lrange [split $trace "\n"] 1 12] "\n"]
    }
    return $text
}

# The line where a test begins, 0 when its name is not plain text.
proc test_line {name} {
    set number 0
    foreach line [split [file_text $::job_path] "\n"] {
        incr number
        foreach {open close} [list \{ \} \" \"] {
            if {[string first "test $open$name$close" $line] >= 0} {return $number}
        }
    }
    return 0
}

# Ends a test as skipped when the server does not know one of these commands ("object|freq" for a subcommand).
proc needs_command {args} {
    foreach name $args {
        if {[lindex [r command info $name] 0] eq ""} {
            return -code error -errorcode {TEST SKIPPED} "the server has no $name"
        }
    }
}

# A count of rounds, smaller where the server is slow (--scale).
proc scaled {count} {
    return [expr {max(1, int($count * $::scale))}]
}

proc resp3 {} {return [expr {$::resp_version == 3}]}

# The file's variables are those of this call, so they never meet the harness's own.
proc run_file {} {
    source -encoding utf-8 $::job_path
}

# Runs the file and tells how it went; the caller is the process's main.
proc run_job {job} {
    dict for {name value} $job {set ::$name $value}
    chan configure stdout -encoding utf-8
    expr {srand($::seed)}
    set ::next_port 0 ;# until the first is needed
    note_pids [pid]
    if {[catch run_file message options]} {
        report fail {[outside of a test]} [dict get $options -errorinfo]
        foreach name $::servers {catch {server_reap $name}}
    }
    report done $::job_name [cpu_seconds]
}

# What this process and the servers it has reaped have used of the processors; "" where that is unknown.
proc cpu_seconds {} {
    if {[catch {file_text /proc/self/stat} stat]} {return ""}
    set ticks 0
    foreach count [lrange [regsub {^.*\) } $stat {}] 11 14] {incr ticks $count}
    return [format %.1f [expr {$ticks / 100.0}]]
}
