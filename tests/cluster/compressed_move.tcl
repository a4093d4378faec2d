# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration of values that are compressed in memory: the target gets plain ones, also of keys that are
# compressed, stored plain and written while they move.

# `big` is a hash that is a table: each of its four values is compressed by itself.
set ::types {rec list set ints zset str big}

proc words_for {i} {lmap n {0 1 2 3 4 5 6 7 8 9} {format "customer:%05d of the European branch office" [expr {$i + $n}]}}

proc fill_slot {} {
    for {set i 0} {$i < 60} {incr i} {
        set words [words_for $i]
        r hset "{06S}rec:$i" name [lindex $words 0] licence [lindex $words 1] author [lindex $words 2] number $i
        r rpush "{06S}list:$i" {*}$words
        r sadd "{06S}set:$i" {*}$words
        r sadd "{06S}ints:$i" {*}[lmap n {1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20} {expr {10000000000 + $n * 3 + $i}}]
        r zadd "{06S}zset:$i" {*}[concat {*}[lmap word $words {list [incr score] $word}]]
        r set "{06S}str:$i" [join $words]
        foreach n {0 1 2 3} {r hset "{06S}big:$i" f$n "$n $i [join [lrange $words $n $n+3]]"}
    }
}

# Compresses the values of some numbers.
proc compress_slot {step} {
    for {set i 0} {$i < 60} {incr i $step} {
        foreach type $::types {assert_equal 1 [r debug compress "{06S}$type:$i"] "$type:$i"}
    }
}

# Long lists and streams, whose nodes are compressed one by one.
proc fill_long {} {
    for {set i 0} {$i < 4} {incr i} {
        for {set n 0} {$n < 100} {incr n} {r rpush "{06S}queue:$i" {*}[words_for [expr {$n * 10}]]}
        for {set n 1} {$n <= 500} {incr n} {r xadd "{06S}events:$i" $n-1 customer [lindex [words_for $n] 0] count $n}
    }
}
proc compress_long {} {
    for {set i 0} {$i < 4} {incr i} {
        foreach type {queue events} {assert {[r debug compress "{06S}$type:$i"] > 0} $type:$i}
    }
}

proc slot_digest {node} {return [lmap key [lsort [r -$node keys "{06S}*"]] {list $key [r -$node debug digest-value $key]}]}

start_cluster {2 2 {tags {cluster with:zstd} overrides {appendonly yes}}} {
    test {a slot with compressed values moves while they are read, written and compressed} {
        r config set value-compression always value-compression-min-bytes 131072
        foreach type $::types {r debug value-dictionary "{06S}$type:" [join [concat [words_for 1] [words_for 7]]]}
        foreach type {queue events} {r debug value-dictionary "{06S}$type:" [join [concat [words_for 1] [words_for 7]]]}
        fill_slot
        compress_slot 1
        fill_long
        compress_long
        set packed [info_field compressed_values]
        assert_equal [expr {6 * 60 + 4 * 60}] $packed
        hold_pause 0 1
        set name [move 0 1 0 0]
        for {set i 0} {$i < 60} {incr i 2} {
            r hset "{06S}rec:$i" name x$i
            r lpush "{06S}list:$i" x
            r srem "{06S}set:$i" [lindex [words_for $i] 3]
            r sadd "{06S}ints:$i" 7
            r zincrby "{06S}zset:$i" 100 [lindex [words_for $i] 4]
            r append "{06S}str:$i" x
            r hset "{06S}big:$i" f0 x f4 y
            r hpexpire "{06S}big:$i" 1000000 fields 1 f1
            r hdel "{06S}big:$i" f2
            r debug compress "{06S}big:$i"
            r hgetall "{06S}rec:[expr {$i + 1}]"
            r expire "{06S}list:[expr {$i + 1}]" 100000
            r debug compress "{06S}rec:$i"
        }
        for {set i 0} {$i < 3} {incr i} {
            r lset "{06S}queue:$i" 500 x
            r lrem "{06S}queue:$i" 3 [lindex [words_for 200] 0]
            r xdel "{06S}events:$i" 250-1 251-1
            r lrange "{06S}queue:$i" 300 400
            r xrange "{06S}events:$i" 100 200
        }
        compress_long
        wait_job 0 waiting-to-pause $name
        compress_slot 3
        set wanted [slot_digest 0]
        hold_pause 0 0
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal $wanted [slot_digest 1]
        wait_for_condition 600 20 {[r -1 debug digest] eq [r -3 debug digest]}
        # The source has freed all of them.
        wait_for_condition 600 20 {[info_field compressed_values] == 0} else {fail "[info_field compressed_values] left"}
        wait_for_condition 600 20 {[info_field compressed_nodes] == 0} else {fail "[info_field compressed_nodes] nodes left"}
        assert_equal OK [r debug hash-shapes]
        assert_equal OK [r -1 debug hash-shapes]
        assert_equal "3 5 [join [lrange [words_for 5] 3 6]]" [r -1 hget "{06S}big:5" f3]
        foreach {i key} {4 rec:4 5 rec:5} {assert_equal $i [r -1 hget "{06S}$key" number]}
    }
}
