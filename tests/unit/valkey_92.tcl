# SPDX-License-Identifier: BSD-3-Clause
#
# Commands and options of Valkey 9.2 (docs/compatibility.md). They are Valkey's: `extended-commands no` does not hide
# them. What they propagate: write_matrix (valkey_92.txt).

foreach shown {yes no} {
start_server [list tags {valkey92} overrides [list extended-commands $shown]] {
    test "SISMEMBER XX tells a missing key from a missing member (extended-commands $shown)" {
        r flushall
        assert_equal {-1 0} [list [r sismember s m xx] [r sismember s m]]
        r sadd s m
        assert_equal {1 0} [list [r sismember s m XX] [r sismember s other xx]]
        foreach words {{s m nx} {s m xx xx}} {assert_error "ERR syntax error" {r sismember {*}$words}}
        r set string x
        assert_error "WRONGTYPE*" {r sismember string m xx}
        assert_equal [lindex [r command info sismember] 0 1] -3
    }

    test "ZRANGE and its variants with XX reply null for a missing key (extended-commands $shown)" {
        r flushall
        r zadd z 1 a 2 b
        set null [expr {[resp3] ? "null null" : "null array"}]
        foreach {words members} {
            {zrange KEY 0 -1} {a b}
            {zrange KEY 0 -1 rev} {b a}
            {zrange KEY (1 +inf byscore limit 0 1} b
            {zrange KEY - + bylex} {a b}
            {zrevrange KEY 0 -1} {b a}
            {zrangebyscore KEY 1 1} a
            {zrevrangebyscore KEY +inf -inf limit 1 1} a
            {zrangebylex KEY (a +} b
            {zrevrangebylex KEY + - limit 0 1} b
        } {
            set missing [string map {KEY none} $words]
            set present [string map {KEY z} $words]
            assert_equal {} [r {*}$missing]
            assert_equal $members [r {*}$present xx]
            assert_equal [r -typed {*}$present] [r -typed {*}$present XX]
            assert_equal $null [r -typed {*}$missing XX]
            assert_equal array [lindex [r -typed {*}$missing] 0]
        }
        assert_equal {} [r zrange z 5 6 xx]
        assert_equal [r -typed zrange z 0 -1 withscores] [r -typed zrange z 0 -1 xx withscores]
        assert_error "ERR syntax error" {r zrangestore dest z 0 -1 xx}
        r set string x
        assert_error "WRONGTYPE*" {r zrange string 0 -1 xx}
    }

    test "MOVE REPLACE removes the key that is there (extended-commands $shown)" {
        r flushall
        r set key new ex 1000
        r select 1
        r lpush key old
        r select 0
        assert_equal 0 [r move key 1]
        foreach words {{key 1 xx} {key 1 replace replace}} {assert_error "ERR syntax error" {r move {*}$words}}
        assert_equal 1 [r move key 1 REPLACE]
        assert_equal {0 0} [list [r exists key] [r move key 1 replace]]
        r select 1
        assert_equal new [r get key]
        assert_range [r ttl key] 1 1000
        r select 0
        assert_error "ERR DB index is out of range" {r move key 1000 replace}
        assert_error "ERR source and destination objects are the same" {r move key 0 replace}
    }

    test "COMMAND DOCS say since when options of 9.2 are known (extended-commands $shown)" {
        foreach {command word} {move REPLACE sismember XX zrange XX zrevrangebylex XX} {
            set docs [dict get [r command docs $command] $command]
            assert_equal "9.2.0 {Added the `$word` option.}" [lindex [dict get $docs history] end]
            assert_equal 9.2.0 [dict get [lindex [dict get $docs arguments] end] since]
        }
    }
}
}
