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
