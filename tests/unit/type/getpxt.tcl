# SPDX-License-Identifier: BSD-3-Clause
#
# GETPXT, MGETPXT, HGETALLEX: values together with their expiry times.

# Unix times in ms, far ahead.
set ::far 4000000000123
set ::later 4000000000456

proc typed_null {} {expr {[resp3] ? {null null} : {null bulk}}}

start_server {tags {string hash extended}} {
    test {GETPXT replies the value and the expiry time in ms, -1 without one} {
        r set plain value
        r set timed 12 pxat $::far
        r set long [string repeat x 100000] pxat $::far
        assert_equal {array {{bulk value} {integer -1}}} [r -typed getpxt plain]
        assert_equal "12 $::far" [r getpxt timed]
        assert_equal [list [string repeat x 100000] $::far] [r getpxt long]
        r persist timed
        assert_equal {12 -1} [r getpxt timed]
    }

    test {GETPXT of a missing or expired key is null, another type is refused} {
        assert_equal [typed_null] [r -typed getpxt missing]
        r set short value px 1
        wait_for_condition 100 10 {[r getpxt short] eq {}} else {fail "it does not expire"}
        r rpush list a
        assert_error "WRONGTYPE *" {r getpxt list}
        assert_error "ERR wrong number of arguments for 'getpxt' command" {r getpxt}
        assert_error "ERR wrong number of arguments for 'getpxt' command" {r getpxt a b}
    }

    test {GETPXT counts hits and misses as GET does} {
        r config resetstat
        r getpxt plain
        r getpxt missing
        assert_equal {1 1} [list [info_field keyspace_hits] [info_field keyspace_misses]]
    }

    test {MGETPXT replies each key, null for missing ones and other types} {
        r set timed 12 pxat $::far
        assert_equal [list {value -1} {} "12 $::far" {} {value -1}] [r mgetpxt plain missing timed list plain]
        assert_equal [list array [list {array {{bulk value} {integer -1}}} [typed_null]]] [r -typed mgetpxt plain missing]
        set many {}
        for {set i 0} {$i < 100} {incr i} {
            r set many:$i $i pxat [expr {$::far + $i}]
            lappend keys many:$i
            lappend many [list $i [expr {$::far + $i}]]
        }
        assert_equal $many [r mgetpxt {*}$keys]
        assert_error "ERR wrong number of arguments for 'mgetpxt' command" {r mgetpxt}
    }

    test {HGETALLEX replies a map of fields to values and times, in all encodings} {
        r hset h a 1 b 2
        assert_equal {a {1 -1} b {2 -1}} [r hgetallex h]
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed hgetallex h] 0]
        r hpexpireat h $::far fields 1 a
        r hpexpireat h $::later fields 1 b
        r hset h c 3
        set reply [r hgetallex h]
        assert_equal 3 [dict size $reply]
        foreach {field value time} "a 1 $::far b 2 $::later c 3 -1" {assert_equal "$value $time" [dict get $reply $field]}
        for {set i 0} {$i < 1000} {incr i} {r hset large f$i v$i}
        r hpexpireat large $::far fields 2 f7 f8
        set reply [r hgetallex large]
        assert_equal 1000 [dict size $reply]
        dict for {field entry} $reply {
            set time [expr {$field in {f7 f8} ? $::far : -1}]
            assert_equal "v[string range $field 1 end] $time" $entry
        }
    }

    test {HGETALLEX omits expired fields, replies an empty map for a missing key and refuses other types} {
        r hset fading a 1 b 2
        r hpexpire fading 1 fields 1 a
        wait_for_condition 100 10 {[r hgetallex fading] eq {b {2 -1}}} else {fail "it does not expire"}
        assert_equal {} [r hgetallex missing]
        assert_error "WRONGTYPE *" {r hgetallex plain}
        assert_error "ERR wrong number of arguments for 'hgetallex' command" {r hgetallex}
    }

    test {reads with times work in scripts, transactions and for users with limited keys} {
        assert_equal {12 4000000000123} [r eval {local v = redis.call('getpxt', KEYS[1]); return {v[1], tostring(v[2])}} 1 timed]
        r multi
        r mgetpxt plain
        r hgetallex missing
        assert_equal {{{value -1}} {}} [r exec]
        r acl setuser reader reset on nopass +getpxt +mgetpxt +hgetallex %R~plain
        set c [connect]
        $c auth reader x
        assert_equal {value -1} [$c getpxt plain]
        assert_error "NOPERM *" {$c getpxt timed}
        assert_error "NOPERM *" {$c mgetpxt plain timed}
        assert_error "NOPERM *" {$c hgetallex h}
        assert_equal {a b} [r command getkeys mgetpxt a b]
    }
}
