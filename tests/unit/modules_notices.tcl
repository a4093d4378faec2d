# SPDX-License-Identifier: BSD-3-Clause
#
# Callbacks of keyspace events that write, or block the client (tests/modules/notices.c). What is
# expected here was recorded from Valkey 9.1.2 with the same module.

source $::tests_dir/support/raw_replica.tcl

set module [file normalize build/modules/notices.so]

# The next requests of a stream match these patterns.
proc stream_matches {s patterns} {
    foreach pattern $patterns {
        while {[set words [replica_next $s]] eq "ping"} {}
        assert_match $pattern $words
    }
}

# The socket of a replica that has received everything so far.
proc stream_begins {} {
    set s [dict get [replica_sync] socket]
    r set quiet 1
    stream_matches $s {{SELECT 0} {set quiet 1}}
    return $s
}

start_server {overrides {enable-module-command yes enable-debug-command yes save {} appendonly no repl-diskless-sync-delay 0}} {
    r module load $module

    test {what callbacks write comes before the command, also if that is propagated in another form} {
        set s [stream_begins]
        r notices.write *
        r set b 1 ex 100
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:set} {INCR wrote:expire} {set b 1 PXAT *} EXEC}
        r getex b ex 100
        stream_matches $s {MULTI {INCR wrote:expire} {PEXPIREAT b *} EXEC}
        r incrbyfloat f 1.5
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:incrbyfloat} {SET f 1.5 KEEPTTL} EXEC}
        r sadd s a
        r spop s
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:sadd} {sadd s a} EXEC}
        stream_matches $s {MULTI {INCR wrote:spop} {INCR wrote:del} {SREM s a} EXEC}
        r rpush l 1
        r blmove l l2 left right 1
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:rpush} {rpush l 1} EXEC}
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:rpush} {INCR wrote:lpop} {INCR wrote:del} {LMOVE l l2 left right} EXEC}
    }

    test {the same for a client that was blocked} {
        set s [stream_begins]
        set c [connect]
        $c -send blpop w 0
        wait_for_condition 200 20 {[info_field blocked_clients] == 1}
        r rpush w 1
        assert_equal {w 1} [$c -read]
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:rpush} {rpush w 1} EXEC}
        stream_matches $s {MULTI {INCR wrote:lpop} {INCR wrote:del} {LPOP w} EXEC}
    }

    test {the same for keys and fields that have expired or are evicted} {
        set s [stream_begins]
        r debug set-active-expire 0
        r set quiet1 v
        r set t v px 1
        r hsetex h px 1 fields 1 f v
        wait_for_condition 200 20 {[r exists t] == 0}
        stream_matches $s {{set quiet1 v}}
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:set} {INCR wrote:expire} {set t v PXAT *} EXEC}
        stream_matches $s {MULTI {INCR wrote:new} {INCR wrote:hset} {INCR wrote:hexpire} {HSETEX h *} EXEC}
        stream_matches $s {MULTI {INCR wrote:expired} {UNLINK t} {INCR wrote:keymiss} {exists t} EXEC}
        r debug set-active-expire 1
        stream_matches $s {MULTI {HDEL h f} {INCR wrote:hexpired} {UNLINK h} {INCR wrote:del} EXEC}
        r notices.write evicted
        r config set maxmemory-policy volatile-random
        r config set maxmemory 1
        wait_for_condition 200 20 {[info_field evicted_keys] == 1}
        r config set maxmemory 0
        stream_matches $s {MULTI {INCR wrote:evicted} {UNLINK b} EXEC}
    }

    test {a command that only reads is propagated if the callback of a missing key has written} {
        set s [stream_begins]
        r notices.write keymiss
        r get missing
        stream_matches $s {MULTI {INCR wrote:keymiss} {get missing} EXEC}
        r mget m1 m2
        stream_matches $s {MULTI {INCR wrote:keymiss} {INCR wrote:keymiss} {mget m1 m2} EXEC}
        r notices.write
        r get missing
        r set quiet 2
        stream_matches $s {{set quiet 2}}
    }

    test {in transactions and scripts, too; a callback knows that it is in a transaction} {
        set s [stream_begins]
        r notices.write set expire keymiss
        r multi
        r set k v ex 100
        r get missing
        r exec
        stream_matches $s {MULTI {INCR wrote:multi:set} {INCR wrote:multi:expire} {set k v PXAT *} {INCR wrote:multi:keymiss} {get missing} EXEC}
        r eval {redis.call('set', KEYS[1], 'v', 'ex', '100') redis.call('get', KEYS[2])} 2 k missing
        stream_matches $s {MULTI {INCR wrote:set} {INCR wrote:expire} {set k v PXAT *} {INCR wrote:keymiss} {get missing} EXEC}
    }

    test {within a call that is not propagated callbacks propagate nothing} {
        set s [stream_begins]
        r notices.callsilently set k 1
        assert_equal 1 [r get k]
        set before [r get wrote:set]
        r notices.callsilently set k 2
        assert_equal [expr {$before + 1}] [r get wrote:set]
        r notices.call set k 3 ex 100
        stream_matches $s {MULTI {INCR wrote:set} {INCR wrote:expire} {set k 3 PXAT *} EXEC}
    }
}

start_server {overrides {enable-module-command yes enable-debug-command yes save {} appendonly yes auto-aof-rewrite-percentage 0}} {
    r module load $module

    test {commands that are read from the append only file do not count, those that they call neither} {
        r set a 1
        r notices.call set b 1
        r multi
        r set c 1
        r exec
        r config resetstat
        r slowlog reset
        r config set slowlog-log-slower-than 0
        r debug loadaof
        r config set slowlog-log-slower-than -1
        assert_equal {1 1 1} [r mget a b c]
        assert_equal {} [info_field cmdstat_set]
        foreach entry [r slowlog get] {assert_not_equal set [lindex $entry 3 0]}
    }
}

start_server {overrides {enable-module-command yes save {} appendonly no repl-diskless-sync-delay 0}} {
    r module load $module

    proc blocked {n} { wait_for_condition 500 10 {[info_field blocked_clients] == $n} }

    test {a callback blocks the client: its command has run, its reply and later commands wait} {
        set s [stream_begins]
        r notices.block set
        set c [connect]
        $c -send set before 0
        blocked 1
        assert_equal 1 [r notices.unblock]
        assert_equal OK [$c -read]
        r notices.seen
        $c -send echo first
        $c -send set k 1
        $c -send set k 2
        assert_equal first [$c -read]
        blocked 1
        assert_equal {1 {}} [list [r get k] [r notices.mode silent; r get missing]]
        stream_matches $s {{set before 0} {set k 1}}
        r notices.block
        assert_equal 1 [r notices.unblock]
        assert_equal {OK OK} [list [$c -read] [$c -read]]
        assert_equal 2 [r get k]
        stream_matches $s {{set k 2}}
        assert_equal OK [r notices.seen]
        assert_match {calls=4,*} [info_field cmdstat_set] ;# with that of stream_begins
    }

    test {a client is blocked once by a command} {
        r notices.block new hset expire set
        set c [connect]
        $c -send set z 1 ex 100
        blocked 1
        assert_equal {OK ENOTSUP ENOTSUP} [r notices.seen]
        r notices.unblock
        assert_equal OK [$c -read]
        $c -send mset a 1 b 2
        blocked 1
        r notices.unblock
        assert_equal OK [$c -read]
        r notices.seen
    }

    test {it is not blocked in transactions and scripts, within calls, and without a client} {
        r notices.block set expired lpop
        r multi
        r set k 2
        assert_equal OK [r exec]
        r eval {return redis.call('set', KEYS[1], '3')} 1 k
        r notices.call set k 4
        assert_equal {EINVAL EINVAL EINVAL} [r notices.seen]
        r notices.block expired
        r set t v px 1
        wait_for_condition 200 20 {[info_field expired_keys] == 1}
        assert_equal EINVAL [r notices.seen]
        r notices.block lpop
        set c [connect]
        $c -send blpop l 0
        blocked 1
        r rpush l 1
        assert_equal {l 1} [$c -read]
        assert_equal EINVAL [r notices.seen]
    }

    test {the reply of the command comes first, also without callbacks, after AbortBlock() and a timeout} {
        r notices.block set
        r notices.mode more
        set c [connect]
        $c -send set k 1
        blocked 1
        r notices.unblock
        assert_equal {OK more} [list [$c -read] [$c -read]]
        $c -send set k 1
        blocked 1
        r notices.abort
        assert_equal OK [$c -read]
        r notices.mode none
        $c -send set k 1
        blocked 1
        r notices.unblock
        assert_equal OK [$c -read]
        r notices.mode silent 1
        assert_equal OK [$c set k 1]
        assert_equal 1 [r notices.unblock]
        r notices.mode silent
        assert_equal PONG [$c ping]
        r notices.seen
    }

    test {CLIENT UNBLOCK gives the reply of the command, which has run} {
        r notices.block set
        set c [connect]
        set id [$c client id]
        foreach how {timeout error} {
            $c -send set k 7
            blocked 1
            assert_equal 1 [r client unblock $id $how]
            assert_equal OK [$c -read]
            assert_equal 1 [r notices.unblock]
        }
        r notices.seen
    }

    test {replies that are off stay so, and a client that ends is told to the module} {
        r notices.block set
        set c [connect]
        $c -send client reply off
        $c -send set k 8
        blocked 1
        r notices.unblock
        blocked 0
        $c -send client reply on
        assert_equal OK [$c -read]
        set before [r notices.ends]
        $c -send set k 9
        blocked 1
        assert_equal 1 [r client kill id [lindex [regexp -inline {id=(\d+) [^\n]* cmd=set } [r client list]] 1]]
        wait_for_condition 200 20 {[r notices.ends] eq [list [expr {[lindex $before 0] + 1}] [lindex $before 1]]}
        r notices.unblock
        wait_for_condition 200 20 {[lindex [r notices.ends] 1] == [lindex $before 1] + 1}
        assert_equal 9 [r get k]
        r notices.seen
    }

    test {a large reply is held as a whole} {
        r notices.block
        r set large [string repeat x 200000]
        r notices.block set
        set c [connect]
        $c -send get large
        $c -send set large y get
        blocked 1
        assert_equal 200000 [string length [$c -read]]
        r notices.unblock
        assert_equal 200000 [string length [$c -read]]
        r notices.seen
    }
}
