# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT PAUSE: which commands are delayed, for how long, and the counters meanwhile. Delayed means
# that the server has read the request but not replied, as shown by INFO's blocked_clients.

proc wait_held {count} {
    wait_for_condition 500 10 {[info_field blocked_clients] == $count}
}

start_server {tags {pause}} {
    test {a write is held until CLIENT UNPAUSE, a read is not} {
        set writer [connect]
        r client pause 100000 write
        $writer -send set k v
        wait_held 1
        assert_equal {} [r get k]
        assert_equal write [info_field paused_actions]
        assert_equal client_pause [info_field paused_reason]
        assert {[info_field paused_timeout_milliseconds] > 1000}
        assert_equal OK [r client unpause]
        assert_equal OK [$writer -read]
        assert_equal v [r get k]
        assert_equal none [info_field paused_actions]
        assert_equal 0 [info_field blocked_clients]
    }

    test {a held request is not counted, and counts once when it has run} {
        set writer [connect]
        set id [$writer client id]
        r config resetstat
        r client pause 100000 write
        $writer -send set k v
        wait_held 1
        assert {![string match *cmdstat_set:* [r info commandstats]]}
        assert_match "*flags=b * cmd=set * tot-cmds=[expr {1 + [resp3]}]*" [r client list id $id]
        r client unpause
        assert_equal OK [$writer -read]
        assert_match *cmdstat_set:calls=1,* [r info commandstats]
    }

    test {requests after a held one wait, too, in order} {
        set writer [connect]
        r set k old
        r client pause 100000 write
        $writer -send get k
        $writer -send set k new
        $writer -send get k
        assert_equal old [$writer -read]
        wait_held 1
        r client unpause
        assert_equal OK [$writer -read]
        assert_equal new [$writer -read]
    }

    test {the pause ends by itself} {
        set writer [connect]
        r client pause 50 write
        assert_equal OK [$writer set k v]
        wait_for_condition 100 10 {[info_field paused_actions] eq "none"}
    }

    test {PAUSE ALL delays all commands, including CLIENT UNPAUSE} {
        set other [connect]
        r client pause 60 all
        assert_equal PONG [$other ping]
        assert_equal OK [r client unpause]
    }

    test {a second pause neither shortens nor weakens the first} {
        r client pause 100000 write
        r client pause 1 write
        assert {[info_field paused_timeout_milliseconds] > 50000}
        r client unpause
    }

    test {a transaction is held where it would write, and a queued write as well} {
        set c [connect]
        set d [connect]
        $c multi
        $c set k exec
        $d multi
        r client pause 100000 write
        $c -send exec
        $d -send set k queued
        wait_held 2
        r client unpause
        assert_equal OK [$c -read]
        assert_equal QUEUED [$d -read]
        $d discard
        assert_equal exec [r get k]
    }

    test {errors are replied immediately, and a held client can be killed} {
        set c [connect]
        r client pause 100000 write
        assert_error "ERR wrong number of arguments*" {$c set k}
        assert_error "ERR unknown command*" {$c nosuch}
        set id [$c client id]
        $c -send set k v
        wait_held 1
        assert_match "*flags=b *" [r client list id $id]
        assert_equal 1 [r client kill id $id]
        wait_held 0
        r client unpause
    }

    test {CLIENT REPLY SKIP before a held request still skips it and nothing else} {
        set c [connect]
        r client pause 100000 write
        $c -send client reply skip
        $c -send set k skipped
        $c -send get k
        wait_held 1
        r client unpause
        assert_equal skipped [$c -read]
    }

    test {no key expires or is evicted while clients are paused} {
        r flushall
        r debug set-active-expire 0 ;# the pause may come later than the end of its time
        r set k v px 1
        r client pause 100000 write
        r debug set-active-expire 1
        wait_for_condition 500 10 {[r get k] eq ""}
        assert_equal 1 [r dbsize]
        r client unpause
        wait_for_condition 500 10 {[r dbsize] == 0}
    }

    test {errors of CLIENT PAUSE, UNPAUSE and UNBLOCK change nothing} {
        assert_error "ERR timeout is not an integer or out of range" {r client pause x}
        assert_error "ERR timeout is not an integer or out of range" {r client pause 99999999999999999999}
        assert_error "ERR timeout is negative" {r client pause -1}
        assert_error "ERR timeout is out of range" {r client pause 9223372036854775807}
        assert_error "ERR CLIENT PAUSE mode must be WRITE or ALL" {r client pause 100000 foo}
        assert_error "ERR wrong number of arguments for 'client|unpause' command" {r client unpause x}
        assert_error "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR" {r client unblock 1 x}
        assert_error "ERR value is not an integer or out of range" {r client unblock x}
        assert_equal 0 [r client unblock [r client id]]
        assert_equal none [info_field paused_actions]
    }
}

start_server {tags {pause}} {
    test {RANDOMKEY returns an expired key if all have expired and cannot be removed} {
        r debug set-active-expire 0
        r set short v px 1
        r client pause 100000 write
        wait_for_condition 500 5 {[r exists short] == 0}
        assert_equal short [r randomkey]
        r client unpause
        assert_equal {} [r randomkey]
    }

    test {CLIENT PAUSE WRITE holds no scripts and functions declared no-writes, nor transactions of them} {
        set reads "#!lua flags=no-writes\nreturn redis.call('get', 'k')"
        set digest [r script load $reads]
        r function load {#!lua name=l
            server.register_function{function_name='reads', callback=function() return server.call('get', 'k') end, flags={'no-writes'}}
            server.register_function('writes', function() return 1 end)}
        r set k v
        set c [connect]
        r client pause 100000 write
        assert_equal v [$c eval $reads 0]
        assert_equal v [$c evalsha $digest 0]
        assert_equal v [$c fcall reads 0]
        $c multi
        $c eval $reads 0
        $c fcall reads 0
        assert_equal {v v} [$c exec]
        set held 0
        foreach request {{eval "return 1" 0} {fcall writes 0} {evalsha aa 0} {fcall none 0}} {
            set other($held) [connect]
            $other($held) -send {*}$request
            wait_held [incr held]
        }
        r client unpause
        assert_equal 1 [$other(0) -read]
        assert_equal 1 [$other(1) -read]
    }
}
