# SPDX-License-Identifier: BSD-3-Clause
#
# A dataset with every type and encoding.

# One key of each type and encoding; returns the names.
proc fill_all_types {} {
    r flushall
    r set text "some text"
    r set number 12345678901
    r setrange long 100000 x
    r rpush list a 1 {} [string repeat l 100]
    for {set i 0} {$i < 300} {incr i} {
        r rpush quicklist [string repeat $i 50]
        r sadd table m$i
        r zadd skiplist [expr {$i * 1.5}] m$i
        r hset hashtable f$i [string repeat v $i]
    }
    r rpush plain [string repeat p 20000] small
    r sadd intset 1 -5 70000
    r sadd set a 1 b
    r zadd zset 1 a -inf b 2.5 c 1e300 d
    r hset hash a 1 b {}
    r hset timed a 1 b 2
    r hpexpireat timed 9999999999999 fields 1 a
    for {set i 0} {$i < 300} {incr i} {
        r saddex timed_set pxat [expr {9999999990000 + $i}] members 3 $i m$i [string repeat l $i]n
        r zaddex timed_zset pxat [expr {9999999990000 + $i}] members 2 $i $i 0.5 m$i
    }
    r spersist timed_set members 3 1 m7 nn
    r zpersist timed_zset members 2 1 m7
    for {set i 1} {$i <= 250} {incr i} {r xadd stream $i-1 f $i g v}
    r xdel stream 7-1 100-1
    r xgroup create stream group 0
    r xreadgroup group group alice count 10 streams stream >
    r xgroup createconsumer stream group bob
    for {set i 0} {$i < 300} {incr i} {
        r phmset paths /a/$i fields 1 f [string repeat v $i] /a/$i/b fields 2 f $i g v wide fields 1 f$i v
    }
    r phset path "" fields 2 f v n 1
    r xadd empty 5-5 f v
    r xdel empty 5-5
    return [lsort [r keys *]]
}
