# SPDX-License-Identifier: BSD-3-Clause
#
# What happens in nested turns of the event loop, while a slow script runs, and at the end of waits: keys must not change
# within a script, and what changes later is propagated.

source $::tests_dir/support/raw_replica.tcl

# Scripts that return 1 as soon as the number of keys changes under them. The first one ends only by SCRIPT KILL, the
# second one when a client watches a key (tell_script), which it sees in INFO, with what `then` does; or after a minute.
set watching {
    local before = redis.call('dbsize')
    while redis.call('dbsize') == before do end
    return 1
}

proc watching_until_told {then} {
    return "local before, ends = redis.call('dbsize'), redis.call('time')\[1\] + 60
        while not string.find(redis.call('info', 'clients'), 'watching_clients:1', 1, true) do
            if redis.call('dbsize') ~= before then return 1 end
            if tonumber(redis.call('time')\[1\]) > ends then return 2 end
        end
        $then
        return 0"
}

proc tell_script {} {
    set teller [connect]
    $teller watch none
}

proc is_busy {} {
    wait_for_condition 500 5 {[catch {r get none} e] && [string match BUSY* $e]} else {fail "no script is running"}
}

start_server {tags {nested tls:skip} overrides {repl-diskless-sync-delay 0}} {
    start_server {tags {nested tls:skip} overrides {repl-diskless-sync-delay 0}} {
        test {the keys that MIGRATE has moved are deleted on replicas} {
            r set k v
            r set other v
            set replica [dict get [replica_sync] socket]
            assert_equal OK [r migrate [srv -1 host] [srv -1 port] "" 0 5000 keys k other none]
            replica_expect $replica SELECT 0
            replica_expect $replica DEL k other
            raw_close $replica
            assert_equal 0 [r dbsize]
            r -1 flushall
        }

        test {MIGRATE tells watchers, trackers and key events, and counts changes} {
            r set k v
            r config set notify-keyspace-events KEA
            set watcher [connect]
            $watcher watch k
            set listener [connect]
            $listener -send psubscribe __keyevent*
            $listener -message
            set before [info_field rdb_changes_since_last_save]
            r migrate [srv -1 host] [srv -1 port] k 0 5000
            assert_equal 1 [expr {[info_field rdb_changes_since_last_save] - $before}]
            $watcher multi
            $watcher set new v
            assert_equal {} [$watcher exec]
            assert_equal {pmessage __keyevent* __keyevent@0__:del k} [$listener -message]
            r config set notify-keyspace-events ""
            r -1 flushall
        }

        test {MIGRATE does not delete keys while a script runs} {
            r config set busy-reply-threshold 1
            r mset a 1 b 2 c 3
            set mover [connect]
            r -1 client pause 60000 write
            $mover -send migrate [srv -1 host] [srv -1 port] "" 0 60000 keys a b
            wait_for_condition 500 5 {[string match *blocked_clients:1* [r info clients]]}
            set scripter [connect]
            $scripter -send eval $watching 0
            is_busy
            r -1 client unpause
            wait_for_condition 500 5 {[r -1 dbsize] == 2}
            foreach i {1 2 3} {catch {r ping}} ;# each is a nested turn after the last reply of the target has arrived
            r script kill
            assert_error "*Script killed by user*" {$scripter -read}
            assert_equal OK [$mover -read]
            assert_equal c [r keys *]
            assert_equal {a b} [lsort [r -1 keys *]]
            r -1 flushall
            r flushall
        }

        test {a key that a script changes after MIGRATE has sent it is sent again} {
            r config set busy-reply-threshold 1
            r mset a 1 b 2
            set mover [connect]
            r -1 client pause 60000 write
            $mover -send migrate [srv -1 host] [srv -1 port] "" 0 60000 keys a b
            wait_for_condition 500 5 {[string match *blocked_clients:1* [r info clients]]}
            set scripter [connect]
            $scripter -send eval [watching_until_told {redis.call('set', 'a', 'new')}] 0
            is_busy
            r -1 client unpause
            wait_for_condition 500 5 {[r -1 dbsize] == 2}
            tell_script
            assert_equal 0 [$scripter -read]
            assert_equal OK [$mover -read]
            assert_equal 0 [r dbsize]
            assert_equal {new 2} [r -1 mget a b]
        }
    }
}

start_server {tags {nested} overrides {maxmemory-policy allkeys-lru busy-reply-threshold 1}} {
    test {no key is evicted while a script runs} {
        for {set i 0} {$i < 100} {incr i} {r set k$i [string repeat x 1000]}
        set used [info_field used_memory]
        r config set maxmemory [expr {$used + 5000000}]
        set scripter [connect]
        $scripter -send eval "redis.call('set', 'big', string.rep('x', 10000000)) [watching_until_told {}]" 0
        is_busy
        tell_script
        assert_equal 0 [$scripter -read]
        r ping
        assert {[r dbsize] < 101}
    }
}

start_server {tags {nested} overrides {maxmemory-policy allkeys-random}} {
    test {clients that track a key receive its eviction before the reply that caused it} {
        set s [raw_connect]
        raw_send $s [resp_request hello 3]
        raw_reply $s
        raw_send $s [resp_request client tracking on] [resp_request set k [string repeat x 10000]] [resp_request get k]
        for {set i 0} {$i < 3} {incr i} {raw_reply $s}
        r config set maxmemory 1
        raw_send $s [resp_request echo hi]
        assert_equal {>2 {$10} invalidate} [list [raw_line $s] [raw_line $s] [raw_line $s]]
        assert_equal {*1 {$1} k {$2} hi} [list [raw_line $s] [raw_line $s] [raw_line $s] [raw_line $s] [raw_line $s]]
    }
}
