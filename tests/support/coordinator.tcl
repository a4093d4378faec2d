# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the files as jobs, several at a time, and counts. A job that exceeds its time is killed, with the
# servers it left running, and counts as one failure.
#
# A file with failures runs a second time, alone, after all others. A test that failed once and passed once is
# reported as FLAKY with the log of its failure: it counts as passed and as flaky, and does not fail the suite.
# Invariant: a job is in `waiting`, in `running` (by its channel), in `repeats`, or counted and forgotten.

namespace eval coordinator {
    variable passed 0 failed 0 skipped 0 failures {} waiting {} done 0 total 0
    variable flaky {}   ;# names of flaky tests, with their file
    variable repeats {} ;# jobs to run a second time: pairs of job and names of the tests that failed
    variable running    ;# channel -> dict of job, timer, counts, the running test, failed names, first failures
    array set running {}
}

# An error outside of any job, such as a reader of our output that went away: end everything.
proc coordinator::broken {message options} {
    variable running
    foreach channel [array names running] {
        catch {foreach process [pid $channel] {send_signal KILL $process}} ;# it may be closed already
        kill_left_behind [dict get $running($channel) job job_dir]
    }
    catch {puts stderr [dict get $options -errorinfo]}
    exit 1
}

proc coordinator::run {jobs clients} {
    interp bgerror {} ::coordinator::broken
    variable waiting $jobs
    variable total [llength $jobs]
    variable running
    for {set i 0} {$i < $clients} {incr i} next
    while {[array size running]} {vwait ::coordinator::done}
    repeat_failed
    summary
}

# Runs the files with failures again, one at a time.
proc coordinator::repeat_failed {} {
    variable repeats
    variable running
    foreach pair $repeats {
        lassign $pair job first
        dict append job job_dir .again
        start $job $first
        while {[array size running]} {vwait ::coordinator::done}
    }
}

proc coordinator::next {} {
    variable waiting
    if {[llength $waiting] == 0} return
    set waiting [lassign $waiting job]
    start $job {}
}

# `first`: the names that failed in the file's first run; empty in the first run.
proc coordinator::start {job first} {
    variable running
    set dir [dict get $job job_dir]
    file delete -force $dir
    file mkdir $dir
    set channel [open "|[list [info nameofexecutable] $::tests_dir/test_helper.tcl --job $job] 2>@1" r]
    chan configure $channel -blocking 0 -encoding utf-8
    set timer [after [expr {1000 * $::options(timeout)}] [list coordinator::expire $channel]]
    set running($channel) [dict create job $job timer $timer started [clock milliseconds] ok 0 bad 0 skip 0 \
        at "" finished 0 cpu {} output {} first $first failed_names {}]
    chan event $channel readable [list coordinator::heard $channel]
}

proc coordinator::label {channel} {
    variable running
    set job [dict get $running($channel) job]
    return "[dict get $job job_name] resp[dict get $job resp_version]"
}

proc coordinator::heard {channel} {
    variable running
    while {[gets $channel line] >= 0} {
        if {[string index $line 0] ne "@"} {
            if {$::options(verbose)} {puts "  $line"}
            dict lappend running($channel) output $line
            continue
        }
        lassign [unescape_line [string range $line 1 end]] kind name detail
        verdict $channel $kind $name $detail
    }
    if {[eof $channel]} {ended $channel}
}

proc coordinator::is_repeat {channel} {
    variable running
    return [expr {[dict get $running($channel) first] ne {}}]
}

proc coordinator::verdict {channel kind name detail} {
    variable running
    variable passed
    variable skipped
    dict set running($channel) at ""
    switch $kind {
        begin {dict set running($channel) at $name}
        ok {
            if {![is_repeat $channel]} {incr passed}
            dict incr running($channel) ok
            if {$::options(verbose)} {puts "\[ok\] [label $channel]: $name ($detail ms)"}
        }
        skip {
            if {![is_repeat $channel]} {incr skipped}
            dict incr running($channel) skip
            if {$::options(verbose)} {puts "\[skip\] [label $channel]: $name"}
        }
        fail {failure $channel $name $detail}
        done {
            dict set running($channel) finished 1
            dict set running($channel) cpu $detail
        }
    }
}

proc coordinator::failure {channel name detail} {
    variable running
    variable failed
    variable failures
    dict incr running($channel) bad
    dict lappend running($channel) failed_names $name
    if {![is_repeat $channel]} {
        incr failed
        lappend failures "[label $channel]: $name"
    }
    puts "\[[expr {[is_repeat $channel] ? {FAILED AGAIN} : {FAILED}}]\] [label $channel]: $name"
    foreach line [split [string trimright $detail] "\n"] {puts "    $line"}
}

proc coordinator::expire {channel} {
    variable running
    foreach process [pid $channel] {send_signal KILL $process}
    set at [dict get $running($channel) at]
    failure $channel [expr {$at eq "" ? {[timeout]} : $at}] "killed: the file took more than $::options(timeout) s"
    dict set running($channel) finished 1
    ended $channel
}

# Compares a file's second run with its first: what failed in only one of them is flaky. A job that did not reach
# its end (killed, crashed) in the second run proves nothing, so its first failures remain.
proc coordinator::judge_repeat {label first again} {
    variable passed
    variable failed
    variable failures
    variable flaky
    set whole [lsearch -all -inline -glob $again {\[*\]}]
    foreach name $first {
        if {$name in $again || $whole ne {}} continue
        set place [lsearch -exact $failures "$label: $name"]
        set failures [lreplace $failures $place $place]
        incr failed -1
        incr passed
        lappend flaky "$label: $name"
        puts "\[FLAKY\] $label: $name (failed, then passed alone)"
    }
    foreach name $again {
        if {$name in $first} continue
        if {$name in $whole} {
            incr failed
            lappend failures "$label: $name"
        } else {
            lappend flaky "$label: $name"
            puts "\[FLAKY\] $label: $name (passed, then failed alone)"
        }
    }
}

# The job's process has ended: end its servers, count, start the next one.
proc coordinator::ended {channel} {
    variable running
    variable done
    variable total
    variable repeats
    after cancel [dict get $running($channel) timer]
    chan configure $channel -blocking 1
    catch {close $channel}
    if {![dict get $running($channel) finished]} {
        set at [dict get $running($channel) at]
        failure $channel [expr {$at eq "" ? {[job]} : $at}] \
            "the test process ended early\n[join [lrange [dict get $running($channel) output] end-20 end] \n]"
    }
    set state $running($channel)
    set dir [dict get $state job job_dir]
    kill_left_behind $dir
    if {![dict get $state bad] && !$::options(keep)} {file delete -force $dir}
    if {[is_repeat $channel]} {
        judge_repeat [label $channel] [dict get $state first] [dict get $state failed_names]
    } elseif {[dict get $state bad]} {
        lappend repeats [list [dict get $state job] [dict get $state failed_names]]
    }
    incr done
    set seconds [format %.1f [expr {([clock milliseconds] - [dict get $state started]) / 1000.0}]]
    set cpu [dict get $state cpu]
    if {$cpu ne ""} {append seconds " s, $cpu s of CPU"} else {append seconds " s"}
    puts "\[$done/$total\] [label $channel]: [dict get $state ok] passed, [dict get $state bad] failed ($seconds)"
    flush stdout
    unset running($channel)
    next
}

proc coordinator::kill_left_behind {dir} {
    if {![file exists $dir/pids]} return
    foreach process [file_text $dir/pids] {
        if {![process_ended $process]} {send_signal KILL $process}
    }
}

proc coordinator::summary {} {
    variable passed
    variable failed
    variable skipped
    variable failures
    variable flaky
    foreach {title names} [list Failed $failures Flaky $flaky] {
        if {![llength $names]} continue
        puts "\n$title (the servers' files are in $::options(tmp), seed $::options(seed)):"
        foreach name $names {puts "  $name"}
    }
    if {$passed + $failed == 0} {
        puts "no test was selected"
        incr failed
    }
    if {$skipped} {puts "$skipped skipped"}
    if {[llength $flaky]} {puts "[llength $flaky] flaky"}
    puts "$passed passed, $failed failed"
}
