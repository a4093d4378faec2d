# SPDX-License-Identifier: BSD-3-Clause
#
# CL.THROTTLE: limits of rates. Intervals are so long that the time that a test takes does not matter: `interval` is
# that of one unit in seconds, and a test may take a thousand.

source $::tests_dir/support/raw_replica.tcl

set ::interval 1000000

# Seconds of a reply, which may be a little less than expected, as time passes.
proc assert_seconds {expected actual} {assert_range $actual [expr {$expected - 1000}] $expected}

# The reply without its times, which are compared with the expected ones.
proc assert_throttled {reply expected} {
    lassign $reply limited limit left retry reset
    lassign $expected limited2 limit2 left2 retry2 reset2
    assert_equal "$limited2 $limit2 $left2" "$limited $limit $left"
    if {$retry2 < 0} {assert_equal $retry2 $retry} else {assert_seconds $retry2 $retry}
    assert_seconds $reset2 $reset
}

# The time now plus seconds, as the value of a key.
proc arrival {seconds} {return [expr {([clock seconds] + $seconds) * 1000000000}]}

start_server {tags {string extended} overrides {repl-diskless-sync-delay 0}} {
    test {CL.THROTTLE admits max_burst + 1 units at once, and then one per interval} {
        for {set i 1} {$i <= 16} {incr i} {
            assert_throttled [r cl.throttle k 15 1 $::interval] [list 0 16 [expr {16 - $i}] -1 [expr {$i * $::interval}]]
        }
        for {set i 0} {$i < 3} {incr i} {
            assert_throttled [r cl.throttle k 15 1 $::interval] [list 1 16 0 $::interval [expr {16 * $::interval}]]
        }
        # One interval later.
        r set k [expr {[r get k] - $::interval * 1000000000}] keepttl
        assert_throttled [r cl.throttle k 15 1 $::interval] [list 0 16 0 -1 [expr {16 * $::interval}]]
        assert_throttled [r cl.throttle k 15 1 $::interval] [list 1 16 0 $::interval [expr {16 * $::interval}]]
    }

    test {the reply is an array of integers, of a key that expires when all units are available again} {
        r del k
        lassign [r -typed cl.throttle k 0 1 1000000] type items
        assert_equal {array {{integer 0} {integer 1} {integer 0} {integer -1}}} [list $type [lrange $items 0 3]]
        assert_seconds [expr {[clock seconds] + 1000001}] [r expiretime k] ;# it is rounded
        assert_equal string [r type k]
        assert_equal [expr {([r get k] + 999999) / 1000000}] [r pexpiretime k]
    }

    test {a quantity counts as so many units, all or none of them; 0 asks only} {
        r del k
        assert_throttled [r cl.throttle k 9 1 $::interval 0] {0 10 10 -1 0}
        assert_equal 0 [r exists k]
        assert_throttled [r cl.throttle k 9 1 $::interval 4] [list 0 10 6 -1 [expr {4 * $::interval}]]
        assert_throttled [r cl.throttle k 9 1 $::interval 7] [list 1 10 6 $::interval [expr {4 * $::interval}]]
        assert_throttled [r cl.throttle k 9 1 $::interval 6] [list 0 10 0 -1 [expr {10 * $::interval}]]
        set value [r get k]
        assert_throttled [r cl.throttle k 9 1 $::interval 0] [list 0 10 0 -1 [expr {10 * $::interval}]]
        assert_throttled [r cl.throttle k 9 1 $::interval 11] [list 1 10 0 -1 [expr {10 * $::interval}]]
        assert_equal $value [r get k]
    }

    test {an arrival time in the past is one that never was} {
        r set k [arrival -$::interval]
        assert_throttled [r cl.throttle k 2 1 $::interval] [list 0 3 2 -1 $::interval]
        r set k [arrival [expr {5 * $::interval / 2}]]
        assert_throttled [r cl.throttle k 2 1 $::interval 0] [list 0 3 0 -1 [expr {5 * $::interval / 2}]]
        assert_throttled [r cl.throttle k 2 1 $::interval] [list 1 3 0 [expr {$::interval / 2}] [expr {5 * $::interval / 2}]]
    }

    test {units that come within one millisecond at a high rate are told apart} {
        r del k
        # A million a second, and so a microsecond for each.
        set before [expr {[clock microseconds] * 1000}]
        # In a script the key, which lives for a millisecond, cannot expire.
        set value [r eval {
            redis.call('cl.throttle', KEYS[1], 1000000, 1000000, 1, 1000)
            return redis.call('get', KEYS[1])
        } 1 k]
        assert {$value >= $before + 1000000}
        assert_equal 0 [expr {$value % 1000}]
    }

    test {of many clients at once no more are admitted than the limit says} {
        r del k
        set clients {}
        for {set i 0} {$i < 8} {incr i} {lappend clients [raw_connect]}
        set batch [string repeat [resp_request cl.throttle k 99 1 $::interval] 50]
        foreach s $clients {raw_send $s $batch}
        set admitted 0
        foreach s $clients {
            for {set i 0} {$i < 50} {incr i} {incr admitted [string equal ":0\r" [lindex [split [raw_reply $s] \n] 1]]}
            raw_close $s
        }
        assert_equal 100 $admitted
    }

    test {what is wrong is refused and changes nothing} {
        r set text value
        r rpush list a
        r del k
        foreach {words error} {
            {k 1 1} "ERR wrong number of arguments for 'cl.throttle' command"
            {k 1 1 1 1 1} "ERR wrong number of arguments for 'cl.throttle' command"
            {k -1 1 1} "ERR value is not an integer or out of range"
            {k x 1 1} "ERR value is not an integer or out of range"
            {k 1 0 1} "ERR value is not an integer or out of range"
            {k 1 1 0} "ERR value is not an integer or out of range"
            {k 1 1 1 -1} "ERR value is not an integer or out of range"
            {k 1 1 1 1.5} "ERR value is not an integer or out of range"
            {k 9223372036854775807 1 1} "ERR value is not an integer or out of range"
            {k 9223372036854775806 1 1} "ERR the rate, the burst or the quantity is out of range"
            {k 1 1 9223372036854775807} "ERR the rate, the burst or the quantity is out of range"
            {k 1 1000000001 1} "ERR the rate, the burst or the quantity is out of range"
            {k 0 1 1 9223372036854775807} "ERR the rate, the burst or the quantity is out of range"
            {text 1 1 1} "ERR value is not an integer or out of range"
            {list 1 1 1} "WRONGTYPE *"
        } {assert_error $error {r cl.throttle {*}$words}}
        assert_equal 0 [r exists k]
        r set far 9223372036854775807
        assert_error "ERR value is not an integer or out of range" {r cl.throttle far 1 1 1}
        assert_equal {value 9223372036854775807} [list [r get text] [r get far]]
        assert_equal {0 2 1 -1 1} [r cl.throttle k 1 1000000000 1]
    }

    test {what is admitted is replicated as SET with the time at which it expires, and nothing else is} {
        r del k
        set s [dict get [replica_sync] socket]
        r cl.throttle k 0 1 $::interval
        set value [r get k]
        replica_expect $s SELECT 0
        replica_expect $s SET k $value PXAT [r pexpiretime k]
        r cl.throttle k 0 1 $::interval
        r cl.throttle other 5 1 $::interval 0
        r cl.throttle k 5 1 $::interval
        replica_expect $s SET k [expr {$value + $::interval * 1000000000}] PXAT [r pexpiretime k]
        raw_close $s
    }

    test {keyspace events, WATCH and the rules of users see the change of a string} {
        r config set notify-keyspace-events KEA
        set c [connect 3]
        $c -send psubscribe __keyspace@*__:watched
        $c -push
        set other [connect]
        $other watch watched
        r cl.throttle watched 0 1 $::interval
        assert_equal {set expire} [list [lindex [$c -push] end] [lindex [$c -push] end]]
        $other multi
        $other ping
        assert_equal {} [$other exec]
        r config set notify-keyspace-events {}
        r acl setuser limiter reset on nopass +cl.throttle ~limit:*
        $other auth limiter x
        assert_equal 0 [lindex [$other cl.throttle limit:a 0 1 10] 0]
        assert_error "NOPERM *" {$other cl.throttle k 0 1 10}
        assert_error "NOPERM *" {$other get limit:a}
    }

    test {limits survive a restart} {
        r del k
        r cl.throttle k 0 1 $::interval
        set value [r get k]
        r save
        restart_server
        assert_equal $value [r get k]
        assert_throttled [r cl.throttle k 0 1 $::interval] [list 1 1 0 $::interval $::interval]
    }
}
