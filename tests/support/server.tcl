# SPDX-License-Identifier: BSD-3-Clause
#
# Starts, asks and stops servers for the tests of one file.
#
#   start_server {tags {..} overrides {..} args {..} crash ok ulimit {-s 1024}} { tests }
#   srv ?-level? field     host port pid dir config stdout stderr unixsocket; level -1 is the one outside
#   r ?-level? cmd args    the current server's own client
#   connect ?resp?         a further client
#   restart_server         stops and starts the current server with the same files
#   stop_server, continue_server   halves of restart_server, for tests that look in between
#   server_log             what the current server has said
#
# Invariant: the job and every process it started are listed in the file `pids` of its folder until they are
# reaped, so that the coordinator can end what a killed job left behind, and runtest all of them.

set servers {} ;# the running ones, innermost first: names of arrays
set server_count 0

set server_defaults {
    bind 127.0.0.1 port {} dir {} save {} enable-debug-command yes
}

# ---- asking ----

proc level_of {argsName} {
    upvar 1 $argsName arguments
    if {![regexp {^-\d+$} [lindex $arguments 0]]} {return 0}
    set arguments [lassign $arguments level]
    return [expr {-$level}]
}

proc srv {args} {
    set level [level_of args]
    if {$level >= [llength $::servers]} {error "no server at level $level"}
    upvar #0 [lindex $::servers $level] server
    return $server([lindex $args 0])
}

proc r {args} {
    set level [level_of args]
    upvar #0 [lindex $::servers $level] server
    if {$server(client) eq ""} {set server(client) [connect_to $server(host) $server(port) $::resp_version $server(password)]}
    tailcall $server(client) {*}$args
}

# With the password of the server's overrides, if there is one; respConnect gives one without.
proc connect_to {host port resp password} {
    if {$password eq ""} {return [respConnect $host $port $resp]}
    set client [respConnect $host $port 2]
    $client auth $password
    if {$resp == 3} {$client hello 3}
    return $client
}

# One that a test makes ends with it.
proc connect {{resp {}}} {
    set client [connect_to [srv host] [srv port] [expr {$resp eq "" ? $::resp_version : $resp}] [srv password]]
    if {$::in_test} {lappend ::test_clients $client}
    return $client
}

# After a failed test the client may be in the middle of a reply: the next use makes a new one.
proc drop_clients {} {
    foreach name $::servers {
        upvar #0 $name server
        if {$server(client) ne ""} {catch {$server(client) -close}}
        set server(client) {}
    }
    close_test_clients
}

# Ends the connections a test made and did not close.
proc close_test_clients {} {
    foreach client $::test_clients {catch {$client -close}}
    set ::test_clients {}
    foreach channel [array names ::raw_buffer] {catch {raw_close $channel}}
}

proc server_log {args} {
    set level [level_of args]
    return [file_text [srv -$level stdout]]
}

proc file_text {path} {
    set file [open $path]
    chan configure $file -encoding binary
    set text [read $file]
    close $file
    return $text
}

# The bytes of a file, and a file of bytes, without any translation.
proc read_bytes {path} {
    set f [open $path rb]
    set bytes [read $f]
    close $f
    return $bytes
}

proc write_bytes {path bytes} {
    set f [open $path wb]
    puts -nonewline $f $bytes
    close $f
}

# ---- starting ----

proc port_is_free {port} {
    if {[catch {socket -server {} -myaddr 127.0.0.1 $port} channel]} {return 0}
    close $channel
    return 1
}

# Takes 100 ports for this job, and as many for their cluster buses (+10,000). What keeps them from other jobs, also of
# other suites, until the job ends: it listens on the first of them, which nothing else uses.
proc reserve_ports {} {
    for {set try 0} {$try < 100} {incr try} {
        set ::first_port [expr {11000 + ([pid] + $try) % 100 * 100}]
        if {![catch {socket -server {} -myaddr 127.0.0.1 $::first_port} ::ports_guard]} {
            set ::next_port $::first_port
            return
        }
    }
    error "all ports for tests are taken"
}

# A port of this job where nothing listens, nor on that of its cluster bus. The same one comes again only after all
# others.
proc free_port {} {
    if {$::next_port == 0} reserve_ports
    for {set try 0} {$try < 99} {incr try} {
        set ::next_port [expr {$::first_port + 1 + ($::next_port - $::first_port) % 99}]
        if {[port_is_free $::next_port] && [port_is_free [expr {$::next_port + 10000}]]} {return $::next_port}
    }
    error "the test uses all its ports"
}

proc write_config {path options} {
    set file [open $path w]
    dict for {name value} $options {
        puts $file "$name [expr {$value eq "" ? {""} : $value}]"
    }
    close $file
}

# Fills the array `name` with a new server's folder and settings; starts nothing.
proc server_new {name options} {
    upvar #0 $name server
    set dir $::job_dir/server[incr ::server_count]
    file mkdir $dir
    set threads {}
    if {$::io_threads > 1} {set threads [dict create io-threads $::io_threads io-threads-always-active yes]}
    # In builds with checks, files about types run their large reads with a cut at each step (src/engine/job.h).
    set slices {}
    if {[regexp {debug|hostile} $::binary] && [string match */unit/type/* $::job_path]} {set slices {command-slice-us 1}}
    set settings [dict merge $::server_defaults $threads $slices [dict create dir $dir] [dict get $options overrides]]
    array set server [list host 127.0.0.1 port {} pid 0 dir $dir config $dir/server.conf stdout $dir/stdout \
        stderr $dir/stderr client {} mark 0 settings $settings arguments [dict get $options args] \
        crash [dict get $options crash] ulimit [dict get $options ulimit]]
    foreach {field option} {unixsocket unixsocket password requirepass} {
        set server($field) [expr {[dict exists $settings $option] ? [dict get $settings $option] : {}}]
    }
}

# Where the server listens: TCP, or with --tls TLS only.
proc port_settings {port} {
    if {$::tls_folder eq ""} {return [dict create port $port]}
    return [dict create port 0 tls-port $port tls-cert-file $::tls_folder/server.crt \
        tls-key-file $::tls_folder/server.key tls-ca-cert-file $::tls_folder/ca.crt]
}

# Starts the process and waits until it accepts; a port taken in between costs another try.
proc server_launch {name} {
    upvar #0 $name server
    for {set try 0} {$try < 10} {incr try} {
        set server(port) [expr {[dict get $server(settings) port] eq "" ? [free_port] : [dict get $server(settings) port]}]
        # A Sentinel has written its state to the file.
        set keeps [expr {[info exists server(keeps_config)] || "--sentinel" in $server(arguments)}]
        if {!$keeps || ![file exists $server(config)]} {
            write_config $server(config) [dict merge $server(settings) [port_settings $server(port)]]
        }
        set server(seen) [expr {[file exists $server(stdout)] ? [file size $server(stdout)] : 0}]
        set command [list $::binary $server(config) {*}$server(arguments)]
        if {$server(ulimit) ne ""} {set command [list sh -c "ulimit $server(ulimit) && exec \"\$0\" \"\$@\"" {*}$command]}
        set server(channel) [open "|$command >>$server(stdout) 2>>$server(stderr)" w]
        set server(pid) [lindex [pid $server(channel)] 0]
        note_pids $server(pid)
        set state [server_wait_ready $name]
        if {$state eq "ready"} return
        server_reap $name
        if {$state ne "port taken"} break
    }
    error "the server does not start: $state\n[server_tail $name]"
}

proc server_wait_ready {name} {
    upvar #0 $name server
    set end [expr {[clock milliseconds] + 1000 * $::start_seconds}]
    while {[clock milliseconds] < $end} {
        set said [string range [file_text $server(stdout)] $server(seen) end]
        if {[string match "*Ready to accept connections*" $said] || [string match "*Sentinel ID is *" $said]} {return ready}
        if {[process_ended $server(pid)]} {
            if {[string match "*Address already in use*" $said]} {return "port taken"}
            return "it ended"
        }
        after 5
    }
    return "not ready after $::start_seconds s"
}

# ---- stopping ----

# The letter of the process's state: T when it is stopped, Z when it waits only to be reaped; "" when it is gone.
proc process_state {pid} {
    if {[file isdirectory /proc/self]} {
        if {[catch {file_text /proc/$pid/stat} stat]} {return ""}
        return [string index [regsub {^.*\) } $stat {}] 0]
    }
    if {[catch {exec ps -o stat= -p $pid} state]} {return ""}
    return [string index $state 0]
}

# True when the process is gone, or waits only to be reaped.
proc process_ended {pid} {
    return [expr {[process_state $pid] in {{} Z X}}]
}

proc send_signal {signal pid} {
    catch {exec sh -c "kill -$signal $pid"}
}

proc wait_process_end {pid milliseconds} {
    set end [expr {[clock milliseconds] + $milliseconds}]
    while {![process_ended $pid]} {
        if {[clock milliseconds] > $end} {return 0}
        after 2
    }
    return 1
}

# Reaps the process; returns "" when it ended well, else how it ended.
proc server_reap {name} {
    upvar #0 $name server
    set how ""
    if {![process_ended $server(pid)]} {
        # Not while sanitizers look for leaks, at the exit: they stop the process, and would wait for that for ever.
        if {[process_state $server(pid)] eq "T"} {send_signal CONT $server(pid)}
        send_signal TERM $server(pid)
        if {![wait_process_end $server(pid) [expr {1000 * $::start_seconds}]]} {
            send_signal ABRT $server(pid)
            wait_process_end $server(pid) 5000
            send_signal KILL $server(pid)
            wait_process_end $server(pid) 5000
            set how "it did not stop within $::start_seconds s after SIGTERM"
        }
    }
    if {[catch {close $server(channel)} message options] && $how eq ""} {
        set code [dict get $options -errorcode]
        switch [lindex $code 0] {
            CHILDKILLED - CHILDSUSP {set how "ended by [lindex $code 2]"}
            CHILDSTATUS {set how "exit code [lindex $code 2]"}
        }
    }
    forget_pid $server(pid)
    return $how
}

# Ends one server, and makes its complaints a failure of the file.
proc server_end {name} {
    upvar #0 $name server
    if {$server(client) ne ""} {catch {$server(client) -close}}
    set server(client) {}
    set how [server_reap $name]
    if {$server(crash) eq "ok"} return
    set complaint [server_complaint $name]
    if {$complaint ne ""} {
        report fail "\[server [file tail $server(dir)]\]" $complaint
    } elseif {$how ne ""} {
        report fail "\[server [file tail $server(dir)]\]" "the server ended badly: $how\n[server_tail $name]"
    }
}

# The line that tells of a crash, a leak or undefined behaviour, with what follows it; or "".
proc server_complaint {name} {
    upvar #0 $name server
    foreach file {stderr stdout} {
        set lines [split [file_text $server($file)] "\n"]
        set at [lsearch -regexp $lines {Sanitizer|runtime error:|BUG REPORT}]
        if {$at >= 0} {return "$file: [join [lrange $lines $at $at+40] \n]"}
    }
    return ""
}

# The last lines of both outputs.
proc server_tail {name {from 0} {lines 20}} {
    upvar #0 $name server
    set out ""
    foreach file {stdout stderr} {
        if {![file exists $server($file)]} continue
        set text [string trim [string range [file_text $server($file)] [expr {$file eq "stdout" ? $from : 0}] end]]
        if {$text eq ""} continue
        # Of a sanitizer's report the beginning tells most.
        if {$file eq "stderr" && [set at [string first "ERROR: " $text]] >= 0} {
            set text [join [lrange [split [string range $text $at end] \n] 0 $lines-1] \n]
        }
        append out "--- $file of [file tail $server(dir)]\n[join [lrange [split $text \n] end-[expr {$lines - 1}] end] \n]\n"
    }
    return $out
}

# A failed test shows what its servers said since it began.
proc mark_logs {} {
    if {$::external} return
    foreach name $::servers {
        upvar #0 $name server
        set server(mark) [file size $server(stdout)]
    }
}

proc said_since_mark {} {
    if {$::external} return
    set out ""
    foreach name $::servers {
        upvar #0 $name server
        append out [server_tail $name $server(mark)]
    }
    return $out
}

proc stop_server {} {
    upvar #0 [lindex $::servers 0] server
    if {$server(client) ne ""} {catch {$server(client) -close}}
    set server(client) {}
    set how [server_reap [lindex $::servers 0]]
    if {$how ne ""} {fail "the server ended badly: $how"}
}

# As if the process had crashed: nothing is saved, and nobody is told.
proc kill_server {} {
    upvar #0 [lindex $::servers 0] server
    if {$server(client) ne ""} {catch {$server(client) -close}}
    set server(client) {}
    send_signal KILL $server(pid)
    wait_process_end $server(pid) 10000
    server_reap [lindex $::servers 0]
}

proc continue_server {} {
    server_launch [lindex $::servers 0]
}

proc restart_server {} {
    stop_server
    continue_server
}

# Restarts with the configuration file as it is now. The server needs a port of its own in `overrides`.
proc restart_with_file {} {
    upvar #0 [lindex $::servers 0] server
    set server(keeps_config) 1
    restart_server
}

# ---- the pids file ----

proc note_pids {args} {
    lappend ::live_pids {*}$args
    write_pids
}

proc forget_pid {pid} {
    set ::live_pids [lsearch -all -inline -not -exact $::live_pids $pid]
    write_pids
}

proc write_pids {} {
    set file [open $::job_dir/pids w]
    puts $file $::live_pids
    close $file
}

# ---- start_server ----

proc start_server {options code} {
    set options [dict merge {tags {} overrides {} args {} crash no ulimit {}} $options]
    set needs [dict get $options tags]
    if {$::external && ([dict get $options overrides] ne "" || [dict get $options args] ne "" || [dict get $options ulimit] ne "")} {
        lappend needs needs:config
    }
    set outer $::current_tags
    lappend ::current_tags {*}$needs
    try {
        if {[tags_exclude $::current_tags]} {
            skip_tests $code
        } else {
            uplevel 1 [list with_server $options $code]
        }
    } finally {
        set ::current_tags $outer
    }
}

proc with_server {options code} {
    set name ::server_[incr ::server_serial]
    if {[catch {server_begin $name $options} message]} {
        report fail {[start_server]} $message
        catch {unset $name}
        return
    }
    set ::servers [linsert $::servers 0 $name]
    if {[catch {uplevel 1 $code} message trouble]} {
        report fail {[outside of a test]} "[dict get $trouble -errorinfo]\n[server_tail $name]"
    }
    set ::servers [lrange $::servers 1 end]
    if {!$::external} {server_end $name}
    unset $name
}

proc server_begin {name options} {
    if {!$::external} {
        server_new $name $options
        server_launch $name
        return
    }
    upvar #0 $name server
    array set server [list host $::external_host port $::external_port pid 0 dir {} config {} stdout {} stderr {} \
        unixsocket {} password {} client {} crash ok]
    set client [respConnect $server(host) $server(port)]
    $client flushall
    $client -close
}
