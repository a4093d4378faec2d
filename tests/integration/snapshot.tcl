# SPDX-License-Identifier: BSD-3-Clause
#
# Snapshots without a fork: whatever clients do meanwhile, the file has the dataset of the moment at which BGSAVE was
# executed.

source $::tests_dir/support/all_types.tcl

proc any {list} {lindex $list [expr {int(rand() * [llength $list])}]}
proc any_key {{prefix k}} {return $prefix[expr {int(rand() * 40)}]}

# One random change of a random key; commands may fail because of the key's type.
proc random_change {} {
    set key [any_key]
    set n [expr {int(rand() * 400)}]
    switch [expr {int(rand() * 34)}] {
        0 {r set $key $n}
        1 {r append $key [string repeat a $n]}
        2 {r setrange $key $n xyz}
        3 {r incr $key}
        4 {r setbit $key $n 1}
        5 {r hset [any_key h] f$n $n g$n [string repeat v $n]}
        6 {r hdel [any_key h] f$n g$n}
        7 {r hpexpire [any_key h] [expr {$n + 100}] fields 1 f$n}
        8 {r sadd [any_key s] m$n $n}
        9 {r spop [any_key s] 2}
        10 {r zadd [any_key z] $n m$n}
        11 {r zremrangebyrank [any_key z] 0 1}
        12 {r zincrby [any_key z] 1.5 m$n}
        13 {r rpush [any_key l] $n [string repeat l $n]}
        14 {r lpop [any_key l]}
        15 {r linsert [any_key l] before $n x}
        16 {r xadd [any_key x] * f $n}
        17 {r xtrim [any_key x] maxlen 5}
        18 {r del $key}
        19 {r unlink [any_key [any {h s z l x}]]}
        20 {r pexpire [any_key [any {k h s z l x}]] $n}
        21 {r persist $key}
        22 {r rename $key [any_key]}
        23 {r copy $key [any_key] replace}
        24 {r move $key 1}
        25 {r swapdb 0 1}
        26 {if {$n < 10} {r flushdb async}}
        27 {r pfadd p[expr {$n % 5}] $n; r pfcount p[expr {$n % 5}]}
        28 {r multi; r set $key 1; r incr $key; r rpush [any_key l] 1; r exec}
        29 {r eval {redis.call('set', KEYS[1], 'script'); redis.call('append', KEYS[1], 'x')} 1 $key}
        30 {r sunionstore [any_key s] [any_key s] [any_key s]}
        31 {r getex $key px [expr {$n + 50}]}
        32 {r geoadd [any_key z] 13.3 38.1 p$n}
        33 {r sort [any_key s] alpha store [any_key l]}
    }
}

proc change_at_random {count} {
    for {set i 0} {$i < $count} {incr i} {catch {random_change}}
}

# Whether the last snapshot was made without a fork, which the log says.
proc assert_inline {expected} {
    set starts [regexp -all -inline {Background saving started [^\n]*} [server_log]]
    assert_equal $expected [string match "*in this process" [lindex $starts end]]
}

# A hash, a set and a sorted set with so many elements.
proc fill_large_tables {count} {
    for {set i 0} {$i < $count} {incr i 100} {
        set fields {}
        set members {}
        set scored {}
        for {set j $i} {$j < $i + 100} {incr j} {
            lappend fields f$j $j
            lappend members m$j $j
            lappend scored $j m$j
        }
        r hset hash {*}$fields
        r sadd set {*}$members
        r zadd zset {*}$scored
    }
    r hpexpireat hash 9999999999999 fields 2 f1 f2
    r pexpireat zset 9999999999999
}

# Removes the TTLs of a database's keys and fields, and selects it.
proc keep_all_keys {db} {
    r select $db
    foreach key [r keys *] {
        r persist $key
        if {![catch {r hkeys $key} fields] && [llength $fields] > 0} {
            r hpersist $key fields [llength $fields] {*}$fields
        }
    }
    # Those that had expired are removed.
    wait_for_condition 100 20 {[r dbsize] == [llength [r keys *]]} else {fail "expired keys remain"}
}

start_server {tags {rdb} overrides {snapshot-mode inline save ""}} {
    test {an inline snapshot has the dataset of its start, whatever changes meanwhile} {
        fill_all_types
        for {set round 0} {$round < [scaled 12]} {incr round} {
            change_at_random 300
            # What expires between the digest and the load would be a difference.
            keep_all_keys 1
            keep_all_keys 0
            r config set rdb-key-save-delay [any {300 1000 3000}]
            set digest [r debug digest]
            r bgsave
            change_at_random 200
            r config set rdb-key-save-delay 0
            info_is rdb_bgsave_in_progress 0
            assert_equal ok [info_field rdb_last_bgsave_status]
            assert_inline 1
            r debug reload nosave
            assert_equal $digest [r debug digest]
        }
        assert {[info_field snapshot_inline_early_keys] > 0}
    }

    test {a cancelled inline snapshot leaves nothing behind, and the next one is complete} {
        fill_all_types
        r config set rdb-key-save-delay 100000
        r bgsave
        assert_equal 1 [info_field rdb_bgsave_in_progress]
        assert_error "ERR Background save already in progress" {r bgsave}
        change_at_random 100
        assert_equal "Background saving cancelled" [r bgsave cancel]
        assert_equal 0 [info_field rdb_bgsave_in_progress]
        assert_equal ok [info_field rdb_last_bgsave_status]
        r config set rdb-key-save-delay 0
        info_is snapshot_inline_cleanup 0
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
        fill_all_types
        set digest [r debug digest]
        r bgsave
        info_is rdb_bgsave_in_progress 0
        assert_inline 1
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {FLUSHALL ends an inline snapshot} {
        fill_all_types
        r config set rdb-key-save-delay 100000
        r bgsave
        r flushall
        assert_equal 0 [info_field rdb_bgsave_in_progress]
        r config set rdb-key-save-delay 0
        info_is snapshot_inline_cleanup 0
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
    }

    test {an inline snapshot that cannot be written fails, and leaves no file} {
        fill_all_types
        set path [srv dir]/dump.rdb
        file delete $path
        file mkdir $path/x
        r config set save "3600 1"
        r bgsave
        info_is rdb_last_bgsave_status err
        assert_equal 0 [info_field rdb_bgsave_in_progress]
        assert_error "MISCONF *" {r set a 1}
        info_is snapshot_inline_cleanup 0
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
        file delete -force $path
        r bgsave
        info_is rdb_last_bgsave_status ok
        r config set save ""
        r set a 1
    }

    test {an inline snapshot keeps databases, functions, TTLs and large values} {
        fill_all_types
        r function load {#!lua name=lib
            server.register_function('f', function() return 1 end)}
        r select 3
        for {set i 0} {$i < 20000} {incr i 100} {
            set fields {}
            set members {}
            for {set j $i} {$j < $i + 100} {incr j} {
                lappend fields f$j v$j
                lappend members $j m$j
            }
            r hset large {*}$fields
            r zadd sorted {*}$members
        }
        r set blob [string repeat "some text " 100000]
        r set volatile v px 100000000
        r select 0
        set digest [r debug digest]
        r bgsave
        r append text more
        r select 3
        r append blob more
        r hset large f1 other
        r select 0
        info_is rdb_bgsave_in_progress 0
        assert_inline 1
        r debug reload nosave
        assert_equal $digest [r debug digest]
        assert_equal 1 [r fcall f 0]
    }
}

start_server {tags {rdb} overrides {snapshot-mode inline save ""}} {
    test {streams are saved in parts, whatever happens to them meanwhile} {
        r flushall
        r debug populate 2000
        foreach key {stream removed trimmed} {
            r eval {for i = 1, 2000 do redis.call('XADD', KEYS[1], i .. '-1', 'f', string.rep(i, 100)) end} 1 $key
            r xgroup create $key group 0
            r xreadgroup group group one count 500 streams $key >
            r xreadgroup group group two count 500 streams $key >
            set before($key) [r xinfo stream $key full count 0]
        }
        set digest [r debug digest]
        r config set rdb-key-save-delay 1
        r bgsave
        for {set i 1} {$i <= 300} {incr i} {
            r xadd stream 9999-$i f v g $i
            r xdel stream [expr {$i * 6}]-1
            r xack stream group [expr {$i * 2}]-1
            r xclaim stream group three 0 [expr {$i * 2 + 1}]-1
            r xtrim trimmed maxlen [expr {2000 - 6 * $i}]
        }
        r xgroup destroy trimmed group
        r xtrim trimmed maxlen 0
        r xsetid trimmed 0-1
        for {set i 1} {$i <= 300} {incr i} {r xadd trimmed $i-1 f [string repeat z 500]}
        r rename stream renamed
        r del removed
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert_inline 1
        assert_equal 3 [info_field snapshot_inline_divided_values]
        r debug reload nosave
        assert_equal $digest [r debug digest]
        foreach key {stream removed trimmed} {assert_equal $before($key) [r xinfo stream $key full count 0]}
    }

    test {a large value that is removed or evicted during a snapshot is written in slices, too} {
        r flushall
        r debug populate 2000
        fill_large_tables 60000
        r persist zset
        r pexpireat hash 9999999999999
        r config resetstat
        set digest [r debug digest]
        r config set rdb-key-save-delay 10000
        r bgsave
        # It counts as freed at once, though it is not written.
        set kept [r memory usage set]
        set other [r memory usage hash]
        r unlink set
        r config set maxmemory-policy volatile-random maxmemory [expr {[info_field used_memory] - $kept / 2}]
        assert_equal 0 [info_field evicted_keys]
        # And so does one that is evicted: a command that needs memory is accepted, though it is not written. Buffers of
        # clients may be released between the two commands, so the limit is set again.
        wait_for_condition 100 20 {
            [r config set maxmemory [expr {[info_field used_memory] - $kept - $other / 2}]] eq "OK" && [info_field evicted_keys] > 0
        }
        r set another value
        r config set maxmemory 0
        r del another
        assert_equal 1 [info_field evicted_keys]
        assert_equal 0 [r exists hash]
        assert_equal 0 [info_field snapshot_inline_divided_values]
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {a database that is emptied behind the walk keeps its values until they are written} {
        r del hash zset
        fill_large_tables 2000
        r config set rdb-key-save-delay 0
        set digest [r debug digest]
        r config set rdb-key-save-delay 10000
        r bgsave
        r hset hash f1 changed
        r move hash 7
        r move zset 7
        r select 7
        r flushdb
        r select 0
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }
}

start_server {tags {rdb} overrides {snapshot-mode auto save ""}} {
    test {snapshot-mode auto forks for a small dataset, and saves a large one inline} {
        r set a 1
        r bgsave
        info_is rdb_bgsave_in_progress 0
        assert_inline 0
        r debug populate 120000 key 1000
        set digest [r debug digest]
        r bgsave
        for {set i 0} {$i < 200} {incr i} {r append key:[expr {$i * 500}] x}
        info_is rdb_bgsave_in_progress 0
        assert_inline 1
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {lists, hashes, sets and sorted sets are saved in parts, whatever happens to them meanwhile} {
        fill_large_tables 20000
        r set kept 1
        r select 5
        fill_large_tables 3000
        r hset other f v
        r select 0
        for {set i 0} {$i < 2000} {incr i} {r rpush list [string repeat $i 300]}
        set digest [r debug digest]
        r config set rdb-key-save-delay 1
        r bgsave
        for {set i 0} {$i < 300} {incr i} {
            set n [expr {$i * 61 % 20000}]
            r hset hash f$n changed new$i 1
            r hincrby hash f[expr {$n + 1}] 5
            r hdel hash f[expr {$n + 2}]
            r hpexpire hash 1000000 fields 1 f[expr {$n + 3}]
            r srem set m$n
            r sadd set new$i [expr {-$i}]
            r spop set
            r zadd zset 7 m$n 8 new$i
            r zrem zset m[expr {$n + 1}]
            r lpop list
            r rpoplpush list list
            r lset list $i other
        }
        r zremrangebyrank zset 0 500
        r rename hash renamed
        r copy renamed copied
        r hset copied f5 other
        r unlink set
        r set zset text
        r rename list renamed_list
        r ltrim renamed_list 0 300
        r del renamed_list
        r hset renamed f6 other
        r move renamed 4
        r select 4
        r hset renamed f7 other
        r pexpire renamed 1
        r select 5
        r del hash
        r flushdb
        r sadd set new
        r select 0
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert_inline 1
        assert_equal 7 [info_field snapshot_inline_divided_values]
        assert_equal 0 [info_field snapshot_inline_fallbacks]
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {snapshot-mode auto starts again with a fork when it finds a large value} {
        r config set list-max-listpack-size 1
        for {set i 0} {$i < 10100} {incr i 100} {r rpush large {*}[lrepeat 100 "some text of a node"]}
        r config set list-max-listpack-size -2
        r bgsave
        r rpush large v
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert_inline 0
        assert_equal 1 [info_field snapshot_inline_fallbacks]
        info_is snapshot_inline_cleanup 0
        set digest [r debug digest]
        r bgsave
        info_is rdb_bgsave_in_progress 0
        # The value is remembered: no second attempt.
        assert_equal 1 [info_field snapshot_inline_fallbacks]
        r debug reload nosave
        assert_equal $digest [r debug digest]
        r del large
        r bgsave
        info_is rdb_bgsave_in_progress 0
        assert_inline 1
    }
}
