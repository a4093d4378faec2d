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
        stream_matches $s {MULTI {INCR wrote:hexpired} {INCR wrote:del} {HDEL h f} EXEC}
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
