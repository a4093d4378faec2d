# An idle server: its cron rests, and what is to be done although nothing happens is done on time. Nothing may be sent to
# the server while it is watched.

if {![file exists /proc/self/status]} return

# How often the main thread of the server has gone to sleep. (ThreadSanitizer has a thread that wakes ten times a second.)
proc sleeps {} {
    regexp {voluntary_ctxt_switches:\s+([0-9]+)} [file_text /proc/[srv pid]/task/[srv pid]/status] all count
    return $count
}

# True if the server has been woken at most twice within a second.
proc rests {} {
    set before [sleeps]
    after 1000
    return [expr {[sleeps] - $before <= 2}]
}

# The same of the main thread and the I/O threads together, and the processor time of the server, in 1/100 s.
proc sleeps_of_all {} {
    set sum 0
    foreach task [glob /proc/[srv pid]/task/*] {
        if {[file tail $task] != [srv pid] && ![string match io_thd* [file_text $task/comm]]} continue
        regexp {voluntary_ctxt_switches:\s+([0-9]+)} [file_text $task/status] all count
        incr sum $count
    }
    return $sum
}
proc processor_time {} {
    set fields [split [lindex [split [file_text /proc/[srv pid]/stat] )] end]]
    return [expr {[lindex $fields 12] + [lindex $fields 13]}]
}

# True if within a second they have been woken at most twice, and none of them was busy with waiting.
proc all_rest {} {
    set before [sleeps_of_all]
    set time [processor_time]
    after 1000
    return [expr {[sleeps_of_all] - $before <= 2 && [processor_time] - $time < 30}]
}

start_server {tags {idle needs:process needs:config} overrides {save {} io-threads 4 io-threads-always-active yes}} {
    test {I/O threads of an idle server are not woken, also after they were busy} {
        wait_for_condition 60 1 {[all_rest]} else {fail "they are woken or busy before the first request"}
        set socks {}
        for {set i 0} {$i < 12} {incr i} {lappend socks [raw_connect]}
        for {set round 0} {$round < [scaled 500]} {incr round} {
            foreach s $socks {raw_send $s "PING\r\n"}
            foreach s $socks {assert_equal +PONG [raw_line $s]}
        }
        assert {[info_field io_threaded_reads_processed] > 0}
        wait_for_condition 60 1 {[all_rest]} else {fail "they are woken or busy after the last request"}
        foreach s $socks {raw_send $s "PING\r\n"}
        foreach s $socks {assert_equal +PONG [raw_line $s]}
    }
}

start_server {tags {idle needs:process} overrides {save {} notify-keyspace-events Ex}} {
    test {an idle server is woken about once per second, and at the next request everything is up to date} {
        r set k v
        set uptime [info_field uptime_in_seconds]
        wait_for_condition 60 1 {[r ping] eq "PONG" && ![rests]} else {fail "a request does not wake it"}
        wait_for_condition 60 1 {[rests]} else {fail "it is woken more often"}
        assert {[info_field uptime_in_seconds] > $uptime}
        assert_equal 0 [info_field instantaneous_ops_per_sec]
        assert {[r object idletime k] >= 1}
    }

    test {a key with an expiry time keeps the server awake until it has expired} {
        set c [connect 3]
        $c -send subscribe __keyevent@0__:expired
        $c -push
        r set k v px 6000
        assert_equal {message __keyevent@0__:expired k} [$c -push]
        r hset h f v
        r hpexpire h 5000 fields 1 f
        wait_for_condition 60 1 {[rests]} else {fail "it is woken more often"}
        assert_equal 0 [r exists h]
    }
}

start_server {tags {idle needs:process} overrides {save {} timeout 4}} {
    test {an idle client is closed in time by an idle server} {
        set c [connect]
        $c -closed
        wait_for_condition 60 1 {[rests]} else {fail "it is woken more often"}
    }
}

start_server {tags {idle needs:process} overrides {save "6 1"}} {
    test {a resting server saves at its save points} {
        set saved [info_field lastsave]
        r set k v
        wait_for_condition 600 50 {[file exists [file join [srv dir] dump.rdb]]}
        wait_for_condition 60 1 {[rests]}
        assert_equal 0 [info_field rdb_changes_since_last_save]
    }
}

start_server {tags {idle needs:process} overrides {save {} appendonly yes appendfsync everysec}} {
    test {a server with an append only file rests when everything is on disk} {
        r set k v
        wait_for_condition 60 1 {[rests]} else {fail "it is woken more often"}
        assert_equal 0 [info_field aof_pending_bio_fsync]
    }
}
