# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration: MIGRATESLOTS between nodes of this server.

start_cluster {2 2 {tags {cluster}}} {
    test {MIGRATESLOTS moves keys of all types, their TTLs, fields and members with TTLs} {
        r set "{06S}s" hello
        r set "{06S}i" 42 px 10000000
        r rpush "{06S}l" a b 3
        r sadd "{06S}ints" 1 2 3
        r sadd "{06S}set" a b
        r zadd "{06S}z" 1.5 a -inf b
        r hset "{06S}h" f v g w
        r hpexpire "{06S}h" 10000000 fields 1 g
        r spexpireat "{06S}set" 9999999990000 members 1 a
        r zaddex "{06S}timed" pxat 9999999990000 members 2 1 a 2 b
        r zadd "{06S}timed" 3 c
        r xadd "{06S}x" 5-1 a b c d
        r xgroup create "{06S}x" g 0
        r xreadgroup group g c count 1 streams "{06S}x" >
        r phmset "{06S}paths" "" fields 1 f v /a fields 2 f 1 g 2
        for {set i 0} {$i < 3000} {incr i} {r phset "{06S}many" /path/$i fields 1 f [string repeat v 30]}
        set keys [lsort [r keys "{06S}*"]]
        set digest [lmap k $keys {r debug digest-value $k}]
        set name [move 0 1 0 0]
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal $keys [lsort [r -1 keys "{06S}*"]]
        assert_equal $digest [lmap k $keys {r -1 debug digest-value $k}]
        assert_equal 0 [r cluster countkeysinslot 0]
        assert_error "MOVED 0 *" {r get "{06S}s"}
        assert {[r -1 pttl "{06S}i"] > 9000000}
        assert_equal {9999999990000 -1} [r -1 spexpiretime "{06S}set" members 2 a b]
        assert_equal {9999999990000 9999999990000 -1} [r -1 zpexpiretime "{06S}timed" members 3 a b c]
    }
    test {the replicas of both sides have the same keys as their primaries} {
        foreach {primary replica} {0 2 1 3} {
            wait_for_condition 600 20 {[r -$primary debug digest] eq [r -$replica debug digest] && [r -$primary dbsize] == [r -$replica dbsize]} else {
                fail "replica $replica: [r -$replica dbsize] of [r -$primary dbsize]"
            }
        }
    }
}

# The ids of producers of a stream, as bytes; those of a payload of DUMP.
proc producers {node key} {
    set payload [r -$node dump $key]
    return [string range $payload [string first stream-idmp $payload] end-10]
}

start_cluster {2 2 {tags {cluster}}} {
    test {MIGRATESLOTS moves the ids of producers, of the snapshot and of changes during the move} {
        set first [r xadd "{06S}p" idmp p before * f v]
        r xadd "{06S}p" idmp p before * f v
        r xadd "{06S}limits" 1-1 f v
        r xcfgset "{06S}limits" idmp-maxsize 5 idmp-duration 1000
        hold_pause 0 1
        set name [move 0 1 0 0]
        wait_job 0 waiting-to-pause $name
        set second [r xadd "{06S}p" idmp p during * f v]
        r xadd "{06S}p" idmp p before * f v
        r multi
        r xadd "{06S}p" idmp q during * f v
        r xadd "{06S}p" idmp q during * f v
        r exec
        set wanted [lmap key {"{06S}p" "{06S}limits"} {producers 0 $key}]
        hold_pause 0 0
        wait_job 1 success $name
        assert_equal $wanted [lmap key {"{06S}p" "{06S}limits"} {producers 1 $key}]
        assert_equal $first [r -1 xadd "{06S}p" idmp p before * f v]
        assert_equal $second [r -1 xadd "{06S}p" idmp p during * f v]
        assert_equal 3 [r -1 xlen "{06S}p"]
        r -3 readonly
        wait_for_condition 600 20 {[producers 1 "{06S}p"] eq [producers 3 "{06S}p"]}
    }

    test {MIGRATE moves the ids of producers} {
        set first [r -1 xadd "{06S}m" idmp p i * f v]
        r -1 cluster setslot 0 migrating [cluster_id 0]
        r cluster setslot 0 importing [cluster_id 1]
        assert_equal OK [r -1 migrate [srv -0 host] [srv -0 port] "{06S}m" 0 5000]
        r asking
        assert_equal $first [r xadd "{06S}m" idmp p i * f v]
    }
}

# A client that follows redirects; node 0 or 1.
proc at_owner {args} {
    while {[catch {r -$::at {*}$args} reply]} {
        if {![string match "MOVED *" $reply]} {error $reply}
        set ::at [expr {[lindex [split [lindex $reply 2] :] end] == [srv -1 port] ? 1 : 0}]
    }
    return $reply
}

start_cluster {2 2 {tags {cluster} overrides {cluster-slot-migration-log-max-len 0}}} {
    test {no change is lost, and none undone, while slots move back and forth under writes} {
        set ::at 0
        set owner 0
        set moves 0
        array set string {}
        array set hash {}
        set list {}
        for {set i 0} {$i < 1000} {incr i} {
            at_owner hset "{06S}hash" f$i v
            set hash(f$i) v
        }
        set last ""
        for {set i 0} {$i < [scaled 6000] || $moves < 4} {incr i} {
            if {$i > 200000} {fail "$moves moves"}
            if {$i % 200 == 0 && ($last eq "" || [job_state $owner $last] in {{} success})} {
                if {$last ne ""} {
                    set owner [expr {1 - $owner}]
                    incr moves
                }
                wait_for_condition 100 20 {[r -[expr {1 - $owner}] cluster countkeysinslot 0] == 0}
                set last [move $owner [expr {1 - $owner}] 0 0]
            }
            set n [random_below 300]
            switch [random_below 6] {
                0 {at_owner set "{06S}$n" $i; set string($n) $i}
                1 {at_owner del "{06S}$n"; unset -nocomplain string($n)}
                2 {at_owner hset "{06S}hash" f$n $i; set hash(f$n) $i}
                3 {at_owner hdel "{06S}hash" f$n; unset -nocomplain hash(f$n)}
                4 {at_owner rpush "{06S}list" $i; lappend list $i}
                5 {
                    assert_equal [lindex $list 0] [at_owner lpop "{06S}list"]
                    set list [lrange $list 1 end]
                }
            }
        }
        foreach {n value} [array get string] {assert_equal $value [at_owner get "{06S}$n"]}
        array set found [at_owner hgetall "{06S}hash"]
        assert_equal [lsort [array get hash]] [lsort [array get found]]
        assert_equal $list [at_owner lrange "{06S}list" 0 -1]
        wait_for_condition 100 20 {[r cluster countkeysinslot 0] == 0 || [r -1 cluster countkeysinslot 0] == 0}
        assert_equal [expr {[array size string] + 1 + ($list ne {})}] [expr {[r dbsize] + [r -1 dbsize]}]
        foreach {primary replica} {0 2 1 3} {
            wait_for_condition 600 20 {[r -$primary debug digest] eq [r -$replica debug digest]} else {fail "replica $replica differs"}
        }
    }
}

start_cluster {2 0 {tags {cluster large-memory} overrides {cluster-allow-replica-migration no save ""}}} {
    # Milliseconds of a move; one of the nodes is asked for its end.
    proc timed_move {from to asked} {
        set begin [clock milliseconds]
        set name [move $from $to 0 8191]
        while {[job_state $asked $name] ne "success"} {
            after 2
            if {[clock milliseconds] - $begin > 120000} {fail "no end: [job_state $from $name]"}
        }
        return [expr {[clock milliseconds] - $begin}]
    }
    test {a source without requests does not wait for a timer between two slices} {
        r debug populate 7200 key 16384
        set asked [timed_move 0 1 0]
        wait_for_condition 500 20 {[r cluster countkeysinslot 0] + [r dbsize] == 0} else {fail [r dbsize]}
        set alone [timed_move 1 0 0]
        # With half a megabyte in each period of the timer it took 5 s more.
        if {$alone > 4 * $asked + 2500} {fail "$alone ms, $asked when it was asked"}
    }
}

start_cluster {2 0 {tags {cluster large-memory} overrides {cluster-allow-replica-migration no save ""}}} {
    test {a large string is not copied by the source, and is in the target's memory once} {
        set size [expr {64 * 1024 * 1024}]
        r setrange "{06S}s" [expr {$size - 1}] x
        r setrange "{06S}s" 1000000 middle
        set peak {}
        foreach i {0 1} {
            r -$i config resetstat
            regexp {used_memory:(\d+)} [r -$i info memory] -> bytes
            lappend peak $bytes
        }
        set name [move 0 1 0 0]
        wait_job 0 success $name
        assert_equal $size [r -1 strlen "{06S}s"]
        assert_equal middle [r -1 getrange "{06S}s" 1000000 1000005]
        foreach i {0 1} extra [list 0 $size] {
            regexp {used_memory_peak:(\d+)} [r -$i info memory] -> most
            set more [expr {$most - [lindex $peak $i] - $extra}]
            if {$more > $size / 2} {fail "node $i: $more bytes more than it needs"}
        }
    }
}

start_cluster {2 0 {tags {cluster large-memory} overrides {cluster-allow-replica-migration no save ""}}} {
    test {GETSLOTMIGRATIONS tells how far the keys are, while they are being sent} {
        r debug populate 40000 key 1000
        set keys [r dbsize]
        assert {$keys > 1000}
        # The job waits for the child until the target is stopped: then the keys cannot get there.
        r config set rdb-key-save-delay 10000000
        r bgsave
        set name [move 0 1 0 8191]
        wait_job 0 waiting-to-snapshot $name
        r config set rdb-key-save-delay 0 ;# the child has read it already
        set plain {name operation slot_ranges target_node source_node create_time last_update_time last_ack_time state message cow_size remaining_repl_size}
        assert_equal $plain [dict keys [job_of 0 $name]]
        send_signal STOP [srv -1 pid]
        try {
            assert {[regexp {Background saving started by pid (\d+)} [server_log] - child]}
            exec kill -9 $child
            wait_for_condition 500 20 {
                [job_state 0 $name] eq "snapshotting" &&
                [dict get [set job [job_of 0 $name]] keys_sent] > 100 && [dict get $job bytes_per_second] > 0 &&
                [dict get $job bytes_sent] >= [dict get $job keys_sent] * 1000
            }
            assert_equal [concat $plain {keys_total keys_sent bytes_sent bytes_per_second seconds_left}] [dict keys $job]
            dict with job {
                assert {$keys_sent < $keys_total && $keys_total <= $keys}
                assert {$seconds_left >= 0}
            }
        } finally {
            send_signal CONT [srv -1 pid]
        }
        wait_job 0 success $name
        assert_equal $plain [dict keys [job_of 0 $name]]
    }
}

start_cluster {2 0 {tags {cluster} overrides {cluster-allow-replica-migration no}}} {
    test {rdb-key-save-delay slows the keys of a slot migration down; others are served, and it can be cancelled} {
        for {set i 0} {$i < 50} {incr i} {r set "{06S}$i" $i}
        r config set rdb-key-save-delay 10000000
        set name [move 0 1 0 0]
        wait_job 0 snapshotting $name
        # One bucket of the table has been visited, and the next one waits for seconds.
        wait_for_condition 500 20 {[r -1 cluster countkeysinslot 0] > 0}
        assert_equal OK [r set "{06S}5" changed]
        assert_equal snapshotting [job_state 0 $name]
        assert {[dict get [job_of 0 $name] keys_sent] < 50}
        assert_equal OK [r cluster cancelslotmigrations]
        assert_equal cancelled [job_state 0 $name]
        wait_job 1 failed $name
        assert_equal 0 [r -1 cluster countkeysinslot 0]
        r config set rdb-key-save-delay 1
        set name [move 0 1 0 0]
        wait_job 0 success $name
        assert_equal {50 changed} [list [r -1 dbsize] [r -1 get "{06S}5"]]
    }
}

# A stream as clients see it, without times that pass.
proc stream_of {index key} {
    set all [r -$index xinfo stream $key]
    set seen [lmap field {length last-generated-id max-deleted-entry-id entries-added first-entry last-entry} {
        dict get $all $field
    }]
    foreach group [r -$index xinfo groups $key] {
        lappend seen $group [lmap entry [r -$index xpending $key [dict get $group name] - + 1000] {
            list [lindex $entry 0] [lindex $entry 1] [lindex $entry 3]
        }]
        lappend seen [lsort [lmap c [r -$index xinfo consumers $key [dict get $group name]] {
            list [dict get $c name] [dict get $c pending]
        }]]
    }
    return $seen
}

start_cluster {2 0 {tags {cluster large-memory} overrides {cluster-allow-replica-migration no save ""}}} {
    # 20 MB, two groups.
    proc fill_stream {key} {
        r eval {
            for i = 1, 40000 do redis.call('xadd', KEYS[1], i .. '-0', 'n', i, 'text', ('x'):rep(480)) end
            for i = 4, 40000, 4 do redis.call('xdel', KEYS[1], i .. '-0') end
        } 1 $key
        r xgroup create $key read 100-0
        r xgroup create $key new $
        r xgroup createconsumer $key read idle
        foreach c {one two} {r xreadgroup group read $c count 500 streams $key >}
        r pexpire $key 10000000
    }
    test {a large stream is passed on in parts: no turn handles much of it, on either side} {
        fill_stream "{06S}x"
        set want [stream_of 0 "{06S}x"]
        set digest [r debug digest-value "{06S}x"]
        r -1 config resetstat
        set name [move 0 1 0 0]
        wait_job 0 success $name
        assert_equal $want [stream_of 1 "{06S}x"]
        assert_equal $digest [r -1 debug digest-value "{06S}x"]
        assert_range [r -1 pttl "{06S}x"] 1 10000000
        assert {[regexp {Snapshot of slots without a fork: .* and (\d+) bytes in one turn} [server_log] - most]}
        if {$most > 1000000} {fail "$most bytes in a turn of the source"}
        assert {[regexp {eventloop_cmd_per_cycle_max:(\d+)} [r -1 info debug] - most]}
        if {$most > 10000} {fail "$most commands in a turn of the target"}
    }
}

start_cluster {2 0 {tags {cluster large-memory} overrides {cluster-allow-replica-migration no save ""}}} {
    test {changes of a stream that is being passed on arrive, each after what it changes} {
        fill_stream "{06S}x"
        r config set rdb-key-save-delay 10000000
        r bgsave
        set name [move 0 1 0 0]
        wait_job 0 waiting-to-snapshot $name
        r config set rdb-key-save-delay 0 ;# the child has read it already
        # The stream cannot be complete while the target is stopped: it does not fit the sockets.
        send_signal STOP [srv -1 pid]
        try {
            assert {[regexp {Background saving started by pid (\d+)} [server_log] - child]}
            exec kill -9 $child
            wait_for_condition 500 20 {[job_state 0 $name] eq "snapshotting" && [dict get [job_of 0 $name] bytes_sent] > 10000}
            for {set i 1} {$i < 100} {incr i} {
                r xadd "{06S}x" [expr {40000 + $i}]-0 late $i
                r xdel "{06S}x" [expr {4 * $i + 1}]-0 [expr {39998 - 4 * $i}]-0
                r xack "{06S}x" read [expr {101 + 2 * $i}]-0
            }
            r xtrim "{06S}x" maxlen 29000
            r xreadgroup group new three count 20 streams "{06S}x" >
            r xgroup destroy "{06S}x" read
            r xgroup create "{06S}x" read 300-0
            r xreadgroup group read four count 50 streams "{06S}x" >
            r xsetid "{06S}x" 50000-0 entriesadded 60000
            r persist "{06S}x"
            assert_equal snapshotting [job_state 0 $name]
            set want [stream_of 0 "{06S}x"]
            set digest [r debug digest-value "{06S}x"]
        } finally {
            send_signal CONT [srv -1 pid]
        }
        wait_job 0 success $name
        assert_equal $want [stream_of 1 "{06S}x"]
        assert_equal $digest [r -1 debug digest-value "{06S}x"]
        assert_equal -1 [r -1 pttl "{06S}x"]
    }
    test {a stream that is removed while it is passed on is gone on the target} {
        fill_stream "{1oh}x"
        set slot [r -1 cluster keyslot "{1oh}x"]
        set name [move 0 1 $slot $slot]
        r set "{1oh}y" 1
        catch {r del "{1oh}x"}
        wait_job 0 success $name
        catch {r -1 del "{1oh}x"}
        assert_equal 1 [r -1 cluster countkeysinslot $slot]
        assert_equal 1 [r -1 get "{1oh}y"]
    }
}

start_cluster {2 2 {tags {cluster large-memory} overrides {cluster-allow-replica-migration no save ""}}} {
    test {the keys of a slot that has moved are gone at once, and replicas delete them before new ones arrive} {
        set count [expr {[scaled 100000] < 2000 ? 2000 : [scaled 100000]}]
        set slot [r cluster keyslot "{06S}"]
        r eval {for i = 1, ARGV[1] do redis.call('rpush', KEYS[1] .. i, i) end} 1 "{06S}" $count
        foreach {from to} {0 1 1 0 0 1} {
            set name [move $from $to $slot $slot]
            wait_job $from success $name
            assert_equal 0 [r -$from dbsize]
            assert_equal $count [r -$to dbsize]
            assert_equal 0 [r -$from cluster countkeysinslot $slot]
            # With the elements of a key that is not deleted yet a replica would have more of them.
            r -$to rpush "{06S}7" more
        }
        assert_equal {7 more more more} [r -1 lrange "{06S}7" 0 -1]
        foreach {primary replica} {0 2 1 3} {
            wait_for_condition 1000 20 {[r -$primary debug digest] eq [r -$replica debug digest] && [r -$primary dbsize] == [r -$replica dbsize]} else {
                fail "replica $replica: [r -$replica dbsize] of [r -$primary dbsize]"
            }
        }
    }
}
