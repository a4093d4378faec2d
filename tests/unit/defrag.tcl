# SPDX-License-Identifier: BSD-3-Clause
#
# activedefrag: it starts when fragmentation is above the threshold, counts moved blocks, and keeps
# all data. While it is on, blocks are moved by it only.

start_server {tags {defrag} overrides {save "" enable-debug-command yes}} {
    proc churn {count} {
        r flushall sync
        r debug populate $count key 100
        set names {}
        for {set i 0} {$i < $count} {incr i} {
            if {$i % 10} {lappend names key:$i}
        }
        for {set i 0} {$i < [llength $names]} {incr i 1000} {r del {*}[lrange $names $i $i+999]}
    }

    test {without activedefrag nothing is counted} {
        r config resetstat
        churn 20000
        assert_equal {0 0 0} [list [info_field active_defrag_running] [info_field active_defrag_hits] \
            [info_field total_active_defrag_time]]
    }

    test {activedefrag moves keys out of sparse slabs and finishes} {
        r config set active-defrag-ignore-bytes 1 active-defrag-threshold-lower 1 active-defrag-cycle-max 75
        assert_equal OK [r config set activedefrag yes]
        set count [scaled 20000]
        churn $count
        wait_for_condition 500 20 {[info_field active_defrag_key_hits] > 0}
        set key_hits [info_field active_defrag_key_hits] ;# (increases continuously)
        assert {[info_field active_defrag_hits] >= $key_hits}
        wait_for_condition 500 20 {[info_field active_defrag_running] == 0}
        for {set i 0} {$i < $count} {incr i 10} {assert_match value:$i* [r get key:$i]}
        assert_equal [expr {$count / 10}] [r dbsize]
    }

    test {collections of every type are compacted in steps and keep their contents} {
        r config set active-defrag-max-scan-fields 10 active-defrag-cycle-us 100
        r config resetstat
        r flushall sync
        set count [scaled 3000]
        set kept {}
        for {set i 0} {$i < $count} {incr i} {lappend kept element:$i:[string repeat x 40]}
        r rpush list {*}$kept
        r sadd set {*}$kept
        foreach element $kept {lappend pairs $element $element; lappend scores [incr score] $element}
        r hset hash {*}$pairs
        r zadd zset {*}$scores
        foreach element $kept {r xadd stream * field $element}
        foreach element $kept {r phset paths /path/$element fields 2 f $element g v}
        r phset paths table fields 1 long [string repeat l 100]
        r xgroup create stream group 0
        r xreadgroup group group consumer count 1000 streams stream >
        r set string [string repeat y 5000]
        for {set i 0} {$i < 10} {incr i} {r copy list list:$i; r copy set set:$i; r copy zset zset:$i; r copy stream stream:$i; r copy paths paths:$i}
        # (deleted keys cause fragmentation, which starts a scan; it visits every node, moved or not)
        set fillers [scaled 20000]
        r debug populate $fillers filler 100
        set digest [r debug digest-value list set hash zset zset:3 stream stream:3 paths paths:3]
        set names {}
        for {set i 0} {$i < $fillers} {incr i} {
            if {$i % 10} {lappend names filler:$i}
        }
        for {set i 0} {$i < [llength $names]} {incr i 1000} {r del {*}[lrange $names $i $i+999]}
        wait_for_condition 500 20 {[info_field active_defrag_misses] + [info_field active_defrag_hits] > $count}
        assert_equal $digest [r debug digest-value list set hash zset zset:3 stream stream:3 paths paths:3]
        assert_equal $kept [r lrange list 0 -1]
        assert_equal [list $count [expr {min($count, 1000)}]] [list [r xlen stream] [lindex [r xpending stream:3 group] 0]]
        assert_equal [r zrange zset 0 -1] [r zrange zset:3 0 -1]
        r config set active-defrag-max-scan-fields 1000 active-defrag-cycle-us 500
    }

    test {the arrays of tables of 1,000 elements and more are moved and keep their contents} {
        r config set activedefrag no active-defrag-ignore-bytes 1 active-defrag-threshold-lower 1 active-defrag-cycle-max 75
        r flushall sync
        set base [info_field allocator_frag_bytes] ;# what else the server has, more with threads
        set tables [expr {max(100, [scaled 200])}]
        for {set i 0} {$i < 1300} {incr i} {
            lappend table_fields f:$i v
            lappend table_members m:$i
            lappend table_scores $i m:$i
        }
        for {set i 0} {$i < $tables} {incr i} {
            r hset hash:$i {*}$table_fields
            r hexpire hash:$i 10000 fields 2 f:1 f:2
            r sadd set:$i {*}$table_members
            r zadd zset:$i {*}$table_scores
        }
        set kept {}
        for {set i 0} {$i < $tables} {incr i} {
            if {$i % 4 == 0} {lappend kept hash:$i set:$i zset:$i} else {r unlink hash:$i set:$i zset:$i}
        }
        wait_for_condition 500 20 {[info_field lazyfree_pending_objects] == 0}
        set digest [r debug digest-value {*}$kept]
        set holes [info_field allocator_frag_bytes]
        r config resetstat
        r config set activedefrag yes
        wait_for_condition 500 20 {[info_field active_defrag_misses] + [info_field active_defrag_hits] > $tables}
        if {[string match jemalloc* [info_field mem_allocator]]} {
            wait_for_condition 500 20 {[info_field allocator_frag_bytes] < ($base + $holes) / 2}
        }
        wait_for_condition 500 20 {[info_field active_defrag_running] == 0}
        assert_equal $digest [r debug digest-value {*}$kept]
        assert_equal [lsort [r smembers set:0]] [lsort [r zrange zset:0 0 -1]]
        assert_equal 1300 [r hlen hash:0]
    }

    test {allocator_allocated and its ratios count keys and elements, which are not from the allocator} {
        r config set activedefrag no
        r flushall sync
        for {set i 0} {$i < 40000} {incr i 1000} {
            set pairs {}
            for {set j $i} {$j < $i + 1000} {incr j} {lappend pairs field:$j [string repeat v 50]}
            r hset hash {*}$pairs
        }
        r debug populate 10000 key 200
        foreach name {used_memory allocator_allocated allocator_active allocator_resident allocator_frag_ratio} {
            set $name [info_field $name]
        }
        assert {$allocator_allocated > $used_memory / 10 * 9 && $allocator_allocated < $used_memory / 10 * 13} \
            "$allocator_allocated of $used_memory"
        if {[string match jemalloc* [info_field mem_allocator]]} {
            assert {$allocator_active >= $allocator_allocated && $allocator_resident >= $allocator_active}
            set part [dict get [r memory stats] allocator.active]
            assert_range $part [expr {$allocator_active / 10 * 9}] [expr {$allocator_active / 10 * 11}]
            for {set i 0} {$i < 10000} {incr i} {if {$i % 10} {lappend gone key:$i}}
            r del {*}$gone
            # The figures of the allocator are read ten times a second.
            wait_for_condition 100 20 {[info_field allocator_frag_ratio] > $allocator_frag_ratio} else {fail "no fragmentation"}
        }
    }

    test {active_defrag_running is not 0 between passes that move something} {
        r config set activedefrag no active-defrag-ignore-bytes 1 active-defrag-threshold-lower 5 \
            active-defrag-cycle-max 25 active-defrag-cycle-us 500
        r flushall sync
        # The array of a large hash, then its elements: several passes.
        for {set i 0} {$i < 100000} {incr i 1000} {
            set pairs {}
            set gone {}
            for {set j $i} {$j < $i + 1000} {incr j} {
                lappend pairs field:$j [string repeat v 80]
                if {$j % 10} {lappend gone field:$j}
            }
            r hset hash {*}$pairs
            lappend all_gone $gone
        }
        foreach gone $all_gone {r hdel hash {*}$gone}
        r config resetstat
        r config set activedefrag yes
        wait_for_condition 500 20 {[info_field active_defrag_hits] > 0}
        wait_for_condition 3000 10 {[string match *active_defrag_running:0* [set seen [r info memory]]]}
        if {[string match jemalloc* [info_field mem_allocator]]} {
            assert {[regexp {allocator_frag_ratio:([0-9.]+)} $seen all ratio]}
            assert {$ratio < 1.6} "it says that it has ended at a ratio of $ratio"
        }
        r config set activedefrag no active-defrag-cycle-max 25
    }

    test {below the threshold activedefrag does not start} {
        r config set active-defrag-ignore-bytes 1gb
        wait_for_condition 500 20 {[info_field active_defrag_running] == 0}
        r config resetstat
        churn 20000
        assert_equal {0 0} [list [info_field active_defrag_running] [info_field active_defrag_hits]]
        r config set activedefrag no
    }
}
