# Abnormal termination: crash reports, the watchdog, restarts, repeated signals.

# Waits, with a time limit, until the log after `mark` contains `pattern`; returns that part of the log.
proc wait_log {pattern} {
    wait_for_condition 1500 10 {[string match $pattern [server_log]]} else {fail "the log has no $pattern: [server_log]"}
    return [server_log]
}

proc wait_ended {} {
    wait_for_condition 1500 10 {[process_ended [srv pid]]} else {fail "the server goes on"}
}

# The text between two headings of the report.
proc report_part {log title} {
    if {![regexp -- "------ $title ------\n(.*?)\n(?:------|===)" $log all part]} {fail "no part $title in the report"}
    return $part
}

foreach {word first} {
    segfault {*valkey 9.1.2 crashed by signal: 11, si_code: *Accessing address: 0x*Crashed running the instruction at: 0x*}
    panic {*!!! Software Failure.*Guru Meditation: DEBUG PANIC called at Unix time*}
    assert {*=== ASSERTION FAILED ===*==> *debug_end.c:* 'one == 2' is not true*}
} {
    start_server {tags {crash needs:config} overrides {requirepass the-secret crash-memcheck-enabled no} crash ok} {
        test "DEBUG [string toupper $word] leaves a report, with no user data in it" {
            r client setname bobby
            r set the-key the-value
            catch {r debug $word the-argument}
            wait_ended
            set log [server_log]
            assert_match "*\n=== VALKEY BUG REPORT START: Cut & paste starting from here ===\n$first" $log
            assert_match "*=== VALKEY BUG REPORT END. Make sure to include from START to END. ===*" $log
            assert_match "*executeRun*" [report_part $log "STACK TRACE"]
            assert_match "*# Server*redis_version:*# Clients*connected_clients:1\n*# Keyspace*db0:keys=1*" \
                [report_part $log "INFO OUTPUT"]
            assert_match "id=* name=\\*redacted\\* *cmd=debug user=\\*redacted\\* *" [report_part $log "CLIENT LIST OUTPUT"]
            set current [report_part $log "CURRENT CLIENT INFO"]
            assert_match "id=* name=\\*redacted\\* *\nargc: 3\nargv\\\[0\\\]: \"debug\"\nargv\\\[1\\\]: * bytes\nargv\\\[2\\\]: 12 bytes*" $current
            assert_match "*proto-max-bulk-len *" [report_part $log "CONFIG DEBUG OUTPUT"]
            if {$word eq "segfault"} {
                report_part $log REGISTERS
                report_part $log "DUMPING CODE AROUND EIP"
            }
            foreach text {bobby the-secret the-argument the-key the-value} {
                assert_equal -1 [string first $text $log] $text
            }
        }
    }
}

start_server {tags {crash needs:config} overrides {hide-user-data-from-log no} crash ok} {
    test {a report without hiding shows names and arguments} {
        r client setname bobby
        catch {r debug segfault "an \"argument\"\n"}
        wait_ended
        assert_match "*------ CURRENT CLIENT INFO ------\nid=* name=bobby *user=default *argv\\\[2\\\]: \"an \\\\\"argument\\\\\"\\\\n\"*" [server_log]
        assert_match "*FAST MEMORY TEST*BUG REPORT END*" [server_log]
    }
}

start_server {tags {crash needs:config} overrides {crash-log-enabled no} crash ok} {
    test {crash-log-enabled no: no report, the signal ends the process} {
        catch {r debug segfault}
        wait_ended
        assert_equal -1 [string first "crashed by signal" [server_log]]
    }
}

start_server {tags {crash needs:config} overrides {crash-memcheck-enabled no} crash ok} {
    test {a signal sent by another process is reported with its sender} {
        r config set crash-log-enabled no
        r config set crash-log-enabled yes
        send_signal BUS [srv pid]
        wait_ended
        assert_match "*crashed by signal: 7, si_code: 0*Killed by PID: *, UID: *BUG REPORT END*" [server_log]
    }
}

start_server {tags {crash needs:config} overrides {use-exit-on-panic yes} crash ok} {
    test {use-exit-on-panic: a failed check ends with exit code 1} {
        catch {r debug assert}
        wait_ended
        upvar #0 [lindex $::servers 0] server
        assert_equal 1 [catch {close $server(channel)} message options]
        assert_equal {CHILDSTATUS 1} [lreplace [dict get $options -errorcode] 1 1]
    }
}

start_server {tags {crash needs:config}} {
    test {the watchdog logs where the main thread is, and nothing when off} {
        r config set watchdog-period 1
        assert_equal {watchdog-period 200} [r config get watchdog-period]
        r debug sleep 0.6
        assert_match "*--- WATCHDOG TIMER EXPIRED ---*STACK TRACE*executeRun*Running the command 'debug'*" \
            [wait_log "*WATCHDOG*\n*signal-handler (*) --------*"]
        set barks [regexp -all -- WATCHDOG [server_log]]
        r config set watchdog-period 0
        r debug sleep 0.6
        assert_equal $barks [regexp -all -- WATCHDOG [server_log]]
    }

    test {DEBUG PAUSE-CRON holds a SIGTERM, and SHUTDOWN ABORT clears it} {
        r debug pause-cron 1
        send_signal TERM [srv pid]
        wait_log "*Received SIGTERM scheduling shutdown...*"
        assert_equal PONG [r ping]
        assert_equal OK [r shutdown abort]
        assert_match "*Shutdown manually aborted.*" [server_log]
        assert_error "ERR No shutdown in progress." {r shutdown abort}
        r debug pause-cron 0
        assert_equal PONG [r ping]
        assert_equal -1 [string first "User requested shutdown" [server_log]]
    }

    test {SIGALRM from outside logs the stacks of all threads, and the server goes on} {
        assert_equal {watchdog-period 0} [r config get watchdog-period]
        send_signal ALRM [srv pid]
        assert_match "*Received SIGALRM*STACK TRACE*(main+0x*STACK TRACE DONE*" \
            [wait_log "*Received SIGALRM*\n*signal-handler (*) --------*"]
        assert_equal PONG [r ping]
    }

    test {SIGUSR2 from outside has no effect} {
        send_signal USR2 [srv pid]
        assert_equal PONG [r ping]
    }
}

foreach word {restart crash-and-recover} {
    start_server {tags {crash needs:config}} {
        test "DEBUG [string toupper $word] begins anew as the same process" {
            r set key value
            set run_id [info_field run_id]
            catch {r debug $word 10}
            wait_for_condition 1500 10 {![catch {set c [connect]; $c ping}]} else {fail "it does not come back"}
            set c [connect]
            regexp {run_id:(\w+)} [$c info server] all new_id
            assert_not_equal $run_id $new_id
            assert_match "*process_id:[srv pid]\r\n*" [$c info server]
            assert_equal 0 [$c dbsize]
            drop_clients
        }
    }
}

start_server {tags {crash needs:config} crash ok} {
    test {a second SIGINT does not wait for the first: exit code 1} {
        # Inside EXEC no other command runs between the log line and the sleep.
        r multi
        r debug log "going to sleep"
        r debug sleep 60
        r -send exec
        wait_log "*going to sleep*"
        send_signal INT [srv pid]
        wait_log "*Received SIGINT scheduling shutdown...*"
        send_signal INT [srv pid]
        wait_ended
        assert_match "*You insist... exiting now.*" [server_log]
        upvar #0 [lindex $::servers 0] server
        assert_equal 1 [catch {close $server(channel)} message options]
        assert_equal {CHILDSTATUS 1} [lreplace [dict get $options -errorcode] 1 1]
    }
}

start_server {tags {crash needs:config} overrides {save {900 1} shutdown-on-sigint save rdb-key-save-delay 1000000} crash ok} {
    test {a second SIGINT during the last save removes the unfinished file} {
        for {set i 0} {$i < 100} {incr i} { r set key:$i value }
        send_signal INT [srv pid]
        wait_for_condition 1500 10 {[llength [glob -nocomplain [srv dir]/temp-*.rdb]] == 1}
        send_signal INT [srv pid]
        wait_ended
        assert_match "*You insist... exiting now.*" [server_log]
        assert_equal {} [glob -nocomplain [srv dir]/*.rdb]
    }
}

# Large blocks are allocated and freed all the time, so the signal often arrives while a lock of the allocator is held.
for {set round 1} {$round <= 4} {incr round} {
    start_server {tags {crash needs:config} overrides {crash-memcheck-enabled no busy-reply-threshold 20} crash ok} {
        test "a fault inside the allocator leaves a report that ends ($round)" {
            set c [connect]
            $c -send eval {local t = {} while true do for i = 1, 64 do t[i] = ('x'):rep(20000 * i) end t = {} collectgarbage() end} 0
            wait_for_condition 400 10 {[catch {r ping} e] && [string match BUSY* $e]} else {fail "not busy"}
            send_signal SEGV [srv pid]
            wait_for_condition 1000 10 {[process_ended [srv pid]]} else {fail "the report hangs: [server_log]"}
            assert_match "*STACK TRACE*=== VALKEY BUG REPORT END.*" [server_log]
        } resp:3
    }
}
