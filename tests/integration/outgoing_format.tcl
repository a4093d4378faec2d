# SPDX-License-Identifier: BSD-3-Clause
#
# outgoing-format: what replicas that are Redis get, and what DUMP and MIGRATE send. A replica is a raw socket that announces
# what Redis of these versions announces.

source $::tests_dir/support/raw_replica.tcl

set ::valkey9 {capa eof capa psync2 version 9.1.2}
set ::redis8 {capa eof capa psync2 capa rdb-channel-repl}
set ::redis7 {capa eof capa psync2}

proc version_of {payload} {
    binary scan [string range $payload end-9 end-8] s version
    return $version
}

# Loads what was sent or dumped into a database of this server, so that its own reader of that format checks it.
proc restored {key payload} {
    r restore $key 0 $payload replace
    return $key
}

start_server {tags {repl external:skip tls:skip} overrides {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    r hset plain a 1 b 2
    r hset timed a 1 b two c 3
    r hpexpireat timed 4102444800000 fields 1 a
    r hpexpireat timed 4102444805000 fields 1 b

    test {a payload for Redis has the latest time of a field that Redis takes instead of a later one} {
        r hset late f v g w
        r hpexpireat late 70368744177664 fields 1 f
        r hpexpireat late 70368744177663 fields 1 g
        r config set outgoing-format redis
        assert_equal {70368744177663 70368744177663} [r hpexpiretime [restored copy [r dump late]] fields 2 f g]
        r config set outgoing-format valkey
        assert_equal {70368744177664 70368744177663} [r hpexpiretime [restored copy [r dump late]] fields 2 f g]
        r del late copy
    }

    test {a full synchronisation is in the format that the replica reads, as far as it can be told} {
        assert_match VALKEY080* [dict get [replica_sync $::valkey9] dataset]
        set dataset [dict get [replica_sync $::redis8] dataset]
        assert_match REDIS0012* $dataset
        # Type 24, the key, a least time of 0, three fields.
        assert {[string first "\x18\x05timed[string repeat \x00 8]\x03" $dataset] > 0}
        r config set outgoing-format redis
        assert_match REDIS0012* [dict get [replica_sync $::redis7] dataset]
        assert_match VALKEY080* [dict get [replica_sync $::valkey9] dataset]
        r config set outgoing-format valkey
        r del timed
        assert_match REDIS0011* [dict get [replica_sync {capa eof capa psync2 version 8.1.0}] dataset]
    }

    foreach {what mode count} {packed inline 3 "a table" inline 3000 "a child" fork 3000} {
        test "hashes with field times for Redis are read here as they were ($what, $mode)" {
            r flushall
            r config set snapshot-mode $mode
            for {set i 0} {$i < $count} {incr i} {lappend pairs field$i value$i}
            r hset h {*}$pairs
            r hpexpireat h 4102444800000 fields 2 field0 field2
            set before [list [lsort [r hgetall h]] [r hpexpiretime h fields 3 field0 field1 field2]]
            set dataset [dict get [replica_sync $::redis8] dataset]
            write_bytes [srv dir]/dump.rdb $dataset
            r debug reload nosave
            assert_equal $before [list [lsort [r hgetall h]] [r hpexpiretime h fields 3 field0 field1 field2]]
            unset pairs
        }
    }
    r config set snapshot-mode auto

    test {DUMP of the lowest version that has the value; members lose their times} {
        r flushall
        r set s v
        r hset plain a 1
        r hset timed a 1 b 2
        r hpexpireat timed 4102444800000 fields 1 a
        r sadd set a b
        r spexpireat set 4102444800000 members 1 a
        r xadd stream 1-1 a b
        foreach key {s plain timed stream} {assert_equal 80 [version_of [r dump $key]]}
        r config set outgoing-format redis
        foreach key {s plain set stream} {assert_equal 11 [version_of [r dump $key]] $key}
        assert_equal 12 [version_of [set payload [r dump timed]]]
        assert_equal 4102444800000 [r hpexpiretime [restored copy $payload] fields 1 a]
        assert_equal {-1 -1} [r spexpiretime [restored copy [r dump set]] members 2 a b]
        assert_equal 11 [version_of [r function dump]]
        r config set outgoing-format valkey
    }

    test {the stream has only commands that Redis 7.4 knows} {
        r flushall
        r config set outgoing-format redis
        r hset kept f 1 g 2
        r hpexpireat kept 4102444800000 fields 1 f
        r sadd set a b
        set s [dict get [replica_sync $::redis8] socket]
        r hsetex h pxat 4102444800000 fields 2 a 1 b 2
        replica_expect $s SELECT 0
        replica_expect $s MULTI
        replica_expect $s HSET h a 1 b 2
        replica_expect $s HPEXPIREAT h 4102444800000 FIELDS 2 a b
        replica_expect $s EXEC
        r hsetex h fields 1 a 1
        replica_expect $s HSET h a 1
        r hsetex kept keepttl fields 2 f 5 g 6
        replica_expect $s MULTI
        replica_expect $s HSET kept f 5 g 6
        replica_expect $s HPEXPIREAT kept 4102444800000 FIELDS 1 f
        replica_expect $s EXEC
        # A Redis that lags would take a field whose time has passed there for expired.
        r hpersist kept fields 1 f
        replica_expect $s MULTI
        replica_expect $s HPEXPIREAT kept 70368744177663 FIELDS 1 f
        replica_expect $s hpersist kept fields 1 f
        replica_expect $s EXEC
        # The latest time that a Redis takes; it refuses a later one.
        r hset late f v g w
        replica_expect $s hset late f v g w
        r hpexpireat late 70368744177664 fields 1 f
        replica_expect $s HPEXPIREAT late 70368744177663 FIELDS 1 f
        r hsetex late pxat 281474976710656 fields 1 g w
        replica_expect $s MULTI
        replica_expect $s HSET late g w
        replica_expect $s HPEXPIREAT late 70368744177663 FIELDS 1 g
        replica_expect $s EXEC
        assert_equal {70368744177664 281474976710656} [r hpexpiretime late fields 2 f g]
        r msetex 2 a 1 b 2 nx pxat 4102444800000
        replica_expect $s MULTI
        replica_expect $s SET a 1 pxat 4102444800000
        replica_expect $s SET b 2 pxat 4102444800000
        replica_expect $s EXEC
        r msetex 1 a 3 keepttl
        replica_expect $s SET a 3 keepttl
        r set a 4 ifeq 3
        replica_expect $s set a 4
        r multi
        r set m 1
        r msetex 2 a 1 b 2
        r sexpire set 1000 members 1 a
        r exec
        replica_expect $s MULTI
        replica_expect $s set m 1
        replica_expect $s SET a 1
        replica_expect $s SET b 2
        replica_expect $s EXEC
        assert_match "*stream_commands_dropped:1\r*" [r info replication]
        r spersist set members 1 a
        r zaddex z ex 1000 members 1 1 a
        replica_expect $s ZADD z 1 a
        r restore copy 0 [r dump a] replace
        replica_expect $s RESTORE copy 0 [r dump a] REPLACE ABSTTL
        r geoadd geo 13.36 38.11 Palermo
        assert_equal ZADD [lindex [replica_next $s] 0]
        r geosearchstore found geo bypolygon 4 12 37 16 37 16 39 12 39
        replica_expect $s RESTORE found 0 [r dump found] REPLACE ABSTTL
        r geosearchstore found geo bypolygon 4 1 1 2 1 2 2 1 2
        replica_expect $s DEL found
        r geosearchstore found geo fromlonlat 13 38 byradius 100 km
        replica_expect $s geosearchstore found geo fromlonlat 13 38 byradius 100 km
        r config set outgoing-format valkey
        r msetex 1 a 9
        replica_expect $s msetex 1 a 9
        assert_match "*stream_commands_dropped:3\r*" [r info replication]
    }

    test {libraries of functions are sent one by one} {
        set code "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
        r function load $code
        set payload [r function dump]
        r config set outgoing-format redis
        set s [dict get [replica_sync $::redis8] socket]
        r function restore $payload replace
        replica_expect $s SELECT 0
        replica_expect $s MULTI
        replica_expect $s FUNCTION FLUSH SYNC
        replica_expect $s FUNCTION LOAD REPLACE $code
        replica_expect $s EXEC
        r config set outgoing-format valkey
    }

    test {MIGRATE sends the lowest version that has the value, and older targets read it} {
        start_server {tags {repl} overrides {save {}}} {
            r -1 set s v
            r -1 hset timed a 1
            r -1 hpexpireat timed 4102444800000 fields 1 a
            foreach form {valkey redis} {
                r -1 config set outgoing-format $form
                r -1 set s v
                r -1 migrate [srv host] [srv port] s 0 5000 copy replace
                r -1 migrate [srv host] [srv port] timed 0 5000 copy replace
                assert_equal {v 4102444800000} [list [r get s] [r hpexpiretime timed fields 1 a]]
            }
        }
    }
}
