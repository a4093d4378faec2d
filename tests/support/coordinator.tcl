# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the files as jobs, several at a time, and counts. A job that exceeds its time is killed, with the
# servers it left behind, and counts as one failure.
# Invariant: a job is in `waiting`, in `running` (by its channel), or counted and forgotten.

namespace eval coordinator {
    variable passed 0 failed 0 skipped 0 failures {} waiting {} done 0 total 0
    variable running ;# channel -> dict of job, name, dir, timer, counts, the test at work
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
    summary
}

proc coordinator::next {} {
    variable waiting
    variable running
    if {[llength $waiting] == 0} return
    set waiting [lassign $waiting job]
    set dir [dict get $job job_dir]
    file delete -force $dir
    file mkdir $dir
    set channel [open "|[list [info nameofexecutable] $::tests_dir/test_helper.tcl --job $job] 2>@1" r]
    chan configure $channel -blocking 0 -encoding utf-8
    set timer [after [expr {1000 * $::options(timeout)}] [list coordinator::expire $channel]]
    set running($channel) [dict create job $job timer $timer started [clock milliseconds] ok 0 bad 0 skip 0 \
        at "" finished 0 output {}]
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

proc coordinator::verdict {channel kind name detail} {
    variable running
    variable passed
    variable skipped
    dict set running($channel) at ""
    switch $kind {
        begin {dict set running($channel) at $name}
        ok {
            incr passed
            dict incr running($channel) ok
            if {$::options(verbose)} {puts "\[ok\] [label $channel]: $name ($detail ms)"}
        }
        skip {
            incr skipped
            dict incr running($channel) skip
            if {$::options(verbose)} {puts "\[skip\] [label $channel]: $name"}
        }
        fail {failure $channel $name $detail}
        done {dict set running($channel) finished 1}
    }
}

proc coordinator::failure {channel name detail} {
    variable running
    variable failed
    variable failures
    incr failed
    dict incr running($channel) bad
    lappend failures "[label $channel]: $name"
    puts "\[FAILED\] [label $channel]: $name"
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

# The job's process is over: end its servers, count, start the next one.
proc coordinator::ended {channel} {
    variable running
    variable done
    variable total
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
    incr done
    set seconds [format %.1f [expr {([clock milliseconds] - [dict get $state started]) / 1000.0}]]
    puts "\[$done/$total\] [label $channel]: [dict get $state ok] passed, [dict get $state bad] failed ($seconds s)"
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
    if {[llength $failures]} {
        puts "\nFailed (files of the servers stand in $::options(tmp), seed $::options(seed)):"
        foreach name $failures {puts "  $name"}
    }
    if {$passed + $failed == 0} {
        puts "no test was selected"
        incr failed
    }
    if {$skipped} {puts "$skipped skipped"}
    puts "$passed passed, $failed failed"
}
