# Hash commands on the times of fields: replies, errors, visibility of expired fields, active expiry,
# random histories against a model. What they propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
# Far ahead, in seconds.
set far 4000000000

start_server {tags {hash}} {
    test {commands on field TTLs refuse too few arguments} {
        foreach {command few} {
            hexpire {k 10 fields 1} hpexpire {k 10 fields 1} hexpireat {k 10 fields 1} hpexpireat {k 10 fields 1}
            httl {k fields 1} hpttl {k fields 1} hexpiretime {k fields 1} hpexpiretime {k fields 1} hpersist {k fields 1}
            hgetex {k fields 1} hgetdel {k fields 1} hsetex {k fields 1 f}
        } {assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$few}}
    }

    test {commands on field TTLs refuse other types and leave the key alone} {
        r set s value
        foreach command {
            {hexpire s 10 fields 1 f} {hpexpire s 10 fields 1 f} {hexpireat s 10 fields 1 f} {hpexpireat s 10 fields 1 f}
            {httl s fields 1 f} {hpttl s fields 1 f} {hexpiretime s fields 1 f} {hpexpiretime s fields 1 f}
            {hpersist s fields 1 f} {hgetex s fields 1 f} {hgetex s ex -1 fields 1 f} {hgetdel s fields 1 f}
            {hsetex s fields 1 f v} {hsetex s nx fields 1 f v} {hsetex s ex x fields 1 f v}
        } {assert_error "WRONGTYPE *" {r {*}$command}}
        assert_equal value [r get s]
    }

    test {bad lists of fields are refused, and nothing changes} {
        r hset h f1 a f2 b
        set count "ERR numfields should be greater than 0 and match the provided number of fields"
        set number "ERR value is not an integer or out of range"
        foreach command {{hexpire h 10} {hpersist h} {hgetex h} {hgetex h ex 10} {hgetdel h}} {
            foreach {fields error} [list {fields 0 f1} $count {fields -1 f1} $count {fields 2 f1} $count \
                {fields 1 f1 f2} $count {fields x f1} $number {fields 4294967297 f1} $count] {
                assert_error $error {r {*}$command {*}$fields}
            }
        }
        foreach fields {{fields 0 f1 v} {fields 2 f1 v} {fields 1 f1 v f2} {fields 1 f1 v f2 w}} {
            assert_error $count {r hsetex h {*}$fields}
        }
        foreach command {httl hpttl hexpiretime hpexpiretime} {
            foreach fields {{fields 0 f1} {fields 2 f1} {fields 1 f1 f2} {foo 1 f1}} {
                assert_error "ERR syntax error" {r $command h {*}$fields}
            }
            assert_error $number {r $command h fields x f1}
        }
        # (Valkey takes a key of that name for the word where there is no other)
        assert_equal {{} {}} [r hgetex FIELDS 2 f1 f2]
        assert_equal 1 [r hsetex fields 2 f1 v f2 w]
        assert_equal {f1 v f2 w} [r hgetall fields]
        assert_equal 1 [r del fields]
        foreach command {hpersist hgetdel} {assert_error "ERR syntax error" {r $command h foo 1 f1}}
        foreach command {{hexpire h 10 nx foo 1 f1} {hgetex h ex 10 foo 1 f1} {hsetex h foo 1 f1 v}} {
            assert_error $count {r {*}$command}
        }
        assert_equal {{f1 a f2 b} listpack} [list [r hgetall h] [r object encoding h]]
    }

    test {invalid options and times are refused, and nothing changes} {
        set syntax "ERR syntax error"
        foreach {command error} [list \
            {hexpire h 10 foo fields 1 f1} "ERR Unsupported option foo" \
            {hexpire h 10 nx xx fields 1 f1} "ERR NX and XX, GT or LT options at the same time are not compatible" \
            {hexpire h 10 gt lt fields 1 f1} "ERR GT and LT options at the same time are not compatible" \
            {hexpire h x fields 1 f1} "ERR value is not an integer or out of range" \
            {hexpire h -1 fields 1 f1} "ERR invalid expire time in 'hexpire' command" \
            {hexpireat h 9223372036854775807 fields 1 f1} "ERR invalid expire time in 'hexpireat' command" \
            {hpexpire h 9223372036854775807 fields 1 f1} "ERR invalid expire time in 'hpexpire' command" \
            {hpexpireat h -1 fields 1 f1} "ERR invalid expire time in 'hpexpireat' command" \
            {hgetex h ex 10 px 10 fields 1 f1} $syntax {hgetex h ex 10 persist fields 1 f1} $syntax \
            {hgetex h keepttl fields 1 f1} $syntax {hgetex h nx fields 1 f1} $syntax {hgetex h ex fields 1 f1} $syntax \
            {hgetex h ex x fields 1 f1} "ERR value is not an integer or out of range" \
            {hgetex h ex -1 fields 1 f1} "ERR invalid expire time in 'hgetex' command" \
            {hsetex h nx xx fields 1 f1 v} $syntax {hsetex h fnx fxx fields 1 f1 v} $syntax \
            {hsetex h ex 10 keepttl fields 1 f1 v} $syntax {hsetex h persist fields 1 f1 v} $syntax \
            {hsetex h ex -1 fields 1 f1 v} "ERR invalid expire time in 'hsetex' command"] {
            assert_error $error {r {*}$command}
        }
        assert_equal {{f1 a f2 b} listpack} [list [r hgetall h] [r object encoding h]]
    }

    test {HEXPIRE sets TTLs as its conditions permit, HTTL replies them} {
        r del h
        r hset h a 1 b 2 c 3
        assert_equal {array {{integer -2} {integer -2}}} [typed hexpire none 10 fields 2 a b]
        assert_equal {array {{integer 0}}} [typed hexpireat h $far xx fields 1 a]
        assert_equal listpack [r object encoding h]
        foreach {ahead conditions fields answers} {
            0 {} {a a nope} {1 1 -2}   1 nx {a b} {0 1}   2 xx {a b c} {1 1 0}   1 gt {a b c} {0 0 0}   3 {gt xx} {a b c} {1 1 0}
            1 lt {a b c} {1 1 1}       1 lt {a b c} {0 0 0}   0 {lt xx} {a b} {1 1}
        } {
            assert_equal $answers [r hexpireat h [expr {$far + $ahead}] {*}$conditions fields [llength $fields] {*}$fields]
        }
        assert_equal hashtable [r object encoding h]
        assert_equal [list $far $far [expr {$far + 1}] -2] [r hexpiretime h fields 4 a b c nope]
        assert_equal "${far}000" [r hpexpiretime h fields 1 a]
        assert_equal {-2 -2} [r httl none fields 2 a b]
        r hexpire h 1000 fields 1 a
        assert_range [r httl h fields 1 a] 1 1000
        r hpexpire h 1000000 fields 1 a
        assert_range [r hpttl h fields 1 a] 1 1000000
        assert_equal {1 -1 -2} [r hpersist h fields 3 a a nope]
        assert_equal -2 [r hpersist none fields 1 a]
        assert_equal -1 [r httl h fields 1 a]
        assert_equal 1 [r hpexpireat h 9223372036854775807 fields 1 a]
        assert_equal {9223372036854775807 9223372036854776} [list [r hpexpiretime h fields 1 a] [r hexpiretime h fields 1 a]]
        assert_equal {a 1 b 2 c 3} [lsort -stride 2 [r hgetall h]]
    }

    test {an expiry time in the past deletes the field} {
        assert_equal {2 -2 -2} [r hexpire h 0 fields 3 a a nope]
        assert_equal {0 2} [list [r hexists h a] [r hlen h]]
        assert_equal {2 2} [r hpexpireat h 1 fields 2 b c]
        assert_equal 0 [r exists h]
        r hset h a 1 b 2
        assert_equal {array {{bulk 1}}} [typed hgetex h exat 1 fields 1 a]
        assert_equal {b 2} [r hgetall h]
        assert_equal 1 [r hsetex h px 0 fields 2 b 3 new 4]
        assert_equal 0 [r exists h]
        assert_equal 1 [r hsetex h ex 0 fields 1 a b]
        assert_equal 0 [r exists h]
    }

    test {setting a field removes its TTL, changing it does not} {
        r hsetex h exat $far fields 5 a 1 b 2 c 3 d 4 e 5
        assert_equal 0 [r hset h a 1]
        assert_equal 6 [r hincrby h b 4]
        assert_equal 4.5 [r hincrbyfloat h c 1.5]
        assert_equal 0 [r hsetnx h d x]
        assert_equal 1 [r hsetex h keepttl fields 1 d 9]
        assert_equal 1 [r hsetex h fields 1 e 9]
        assert_equal [list -1 $far $far $far -1] [r hexpiretime h fields 5 a b c d e]
        r copy h copy
        r rename h moved
        foreach key {copy moved} {
            assert_equal [list -1 $far $far $far -1] [r hexpiretime $key fields 5 a b c d e]
        }
        r del copy moved
    }

    test {HGETEX replies values and changes TTLs of existing fields} {
        r del h
        r hset h a 1 b 2
        assert_equal [list array [list [null] [null]]] [typed hgetex none ex 10 fields 2 a b]
        assert_equal [list array [list {bulk 1} [null]]] [typed hgetex h fields 2 a nope]
        assert_equal listpack [r object encoding h]
        assert_equal {1 {}} [r hgetex h exat $far fields 2 a nope]
        assert_equal [list $far -1 -2] [r hexpiretime h fields 3 a b nope]
        assert_equal {1 2} [r hgetex h persist fields 2 a b]
        assert_equal {-1 -1} [r httl h fields 2 a b]
        assert_equal 1 [r hgetex h PXAT ${far}001 FIELDS 1 a]
        assert_equal ${far}001 [r hpexpiretime h fields 1 a]
    }

    test {HSETEX sets where its conditions allow} {
        r del h
        foreach {words answer} {
            {xx fields 1 a 1} 0 {fxx fields 1 a 1} 0 {nx fnx fields 1 a 1} 1 {nx fields 1 a 2} 0 {nx ex x fields 1 a 2} 0
            {fnx fields 2 b 1 a 2} 0 {fxx fields 2 a 2 b 1} 0 {xx fnx ex 100 fields 2 b 3 b 4} 1 {fxx xx fields 2 a 5 b 6} 1
        } {assert_equal $answer [r hsetex h {*}$words] $words}
        assert_equal {{a 5 b 6} -1 -1} [list [lsort -stride 2 [r hgetall h]] {*}[r httl h fields 2 a b]]
    }

    test {HGETDEL replies values and deletes the fields, and the key with the last one} {
        r del h
        r hset h a 1 b 2 c 3
        assert_equal [list array [list {bulk 1} [null] [null]]] [typed hgetdel h fields 3 a a nope]
        assert_equal 2 [r hlen h]
        assert_equal {2 3} [r hgetdel h fields 2 b c]
        assert_equal 0 [r exists h]
        assert_equal [list array [list [null]]] [typed hgetdel h fields 1 a]
    }

    test {a field exists during its last millisecond, with HPTTL 0} {
        r del h
        r hset h stays 1
        for {set lives 0; set left -2} {$lives < 500 && $left != 0} {incr lives} {
            r hsetex h px 2 fields 1 f 1
            while {[set left [r hpttl h fields 1 f]] > 0} {}
        }
        assert_equal 0 $left
    }

    test {expired fields are invisible before they are removed} {
        r debug set-active-expire 0
        r del h
        r hset h stays 1 number 5
        r hsetex h px 1 fields 4 gone 1 gone2 2 gone3 3 gone4 4
        wait_for_condition 500 10 {[r hexists h gone4] == 0}
        assert_equal [list [null] {integer 0} {integer 0}] \
            [list [typed hget h gone] [typed hexists h gone] [typed hstrlen h gone]]
        assert_equal {{} 1} [r hmget h gone stays]
        assert_equal {number 5 stays 1} [lsort -stride 2 [r hgetall h]]
        assert_equal {{number stays} {1 5}} [list [lsort [r hkeys h]] [lsort [r hvals h]]]
        assert_equal {number stays} [lsort [r hrandfield h 10]]
        for {set i 0} {$i < 20} {incr i} {assert {[r hrandfield h] in {stays number}}}
        assert_equal 30 [llength [r hrandfield h -30]]
        assert_equal {0 {number stays}} [lmap part [r hscan h 0 count 100 novalues] {lsort $part}]
        assert_equal {-2 -2 {{}}} [list [r httl h fields 1 gone] [r hpersist h fields 1 gone] [r hgetex h fields 1 gone]]
        assert_equal {-2 {{}} 0} [list [r hexpire h 10 fields 1 gone] [r hgetdel h fields 1 gone] [r hdel h gone]]
        assert_equal 0 [r hsetex h fxx fields 1 gone 1]
        assert_equal 6 [r hlen h]
        assert_equal {1 1 7 1} [list [r hset h gone 5] [r hsetnx h gone2 6] [r hincrby h gone3 7] [r hsetex h fnx fields 1 gone4 8]]
        assert_equal {-1 -1 -1 -1} [r httl h fields 4 gone gone2 gone3 gone4]
        assert_equal 6 [r hlen h]
        r hpexpire h 1 fields 6 gone gone2 gone3 gone4 stays number
        wait_for_condition 500 10 {[r hexists h number] == 0}
        assert_equal {1 {} {}} [list [r exists h] [r hgetall h] [r hrandfield h 5]]
        assert_equal [null] [typed hrandfield h]
        assert_equal {array {}} [typed hrandfield h -5]
        r debug set-active-expire 1
        wait_for_condition 500 20 {[r exists h] == 0}
    }

    test {fields are removed by active expiry and counted} {
        r config resetstat
        r flushall
        for {set i 0} {$i < 50} {incr i} {r hsetex few:$i px 1 fields 1 f v}
        for {set i 0} {$i < 50} {incr i} {r hset stays:$i f v; r hsetex stays:$i px 1 fields 1 gone v}
        set words {}
        for {set i 0} {$i < 2000} {incr i} {lappend words field:$i v}
        r hsetex large px 1 fields 2000 {*}$words
        r hset large stays v
        r hsetex later ex 1000 fields 1 f v
        wait_for_condition 500 20 {[r dbsize] == 52 && [r hlen large] == 1}
        wait_for_condition 500 20 {[info_field expired_fields] == 2100}
        assert_equal {f v} [r hgetall stays:7]
        assert_match "*keys_with_volatile_items=1*" [r info keyspace]
        r hpersist later fields 1 f
        assert_match "*keys_with_volatile_items=0*" [r info keyspace]
    }

    test {the number of keys with field TTLs is correct after renames, moves and copies} {
        r flushall
        r hsetex a ex 1000 fields 1 f v
        r copy a b
        r rename a c
        assert_match "*keys_with_volatile_items=2*" [r info keyspace]
        r set b string
        assert_match "*keys_with_volatile_items=1*" [r info keyspace]
        r copy c c db 5
        r swapdb 0 5
        r del c
        assert_match "*db5:keys=2,*keys_with_volatile_items=1*" [r info keyspace]
        r flushall
        r hsetex a ex 1000 fields 1 f v
        r flushdb
        r hset a f v
        assert_match "*keys_with_volatile_items=0*" [r info keyspace]
        r hsetex a px 1 fields 1 f v
        wait_for_condition 500 20 {[r exists a] == 0}
    }

    test {INFO shows the share of keys with expired fields} {
        r del a
        r hset a stays 1
        r hsetex a px 1 fields 1 f v
        wait_for_condition 500 20 {[info_field expired_keys_with_volatile_items_stale_perc] > 0}
        r del a
    }

    test {random histories match a model} {
        r debug set-active-expire 0
        set value [dict create]
        set time [dict create]
        for {set round 0} {$round < [scaled 2000]} {incr round} {
            set field f[random_below 40]
            set at [expr {$far + [random_below 1000]}]
            switch [random_below 7] {
                0 {r hset m $field $round; dict set value $field $round; dict unset time $field}
                1 {r hsetex m exat $at fields 1 $field [string repeat x [random_below 200]]
                    dict set value $field [r hget m $field]; dict set time $field $at}
                2 {r hsetex m keepttl fields 1 $field $round; dict set value $field $round}
                3 {assert_equal [dict exists $value $field] [r hdel m $field]; dict unset value $field; dict unset time $field}
                4 {set answer [r hexpireat m $at fields 1 $field]
                    assert_equal [expr {[dict exists $value $field] ? 1 : -2}] $answer
                    if {$answer == 1} {dict set time $field $at}}
                5 {r hpersist m fields 1 $field; dict unset time $field}
                6 {set want [expr {[dict exists $time $field] ? [dict get $time $field] : [dict exists $value $field] ? -1 : -2}]
                    assert_equal $want [r hexpiretime m fields 1 $field]}
            }
        }
        assert_equal [lsort -stride 2 $value] [lsort -stride 2 [r hgetall m]]
        foreach field [dict keys $value] {
            set want [expr {[dict exists $time $field] ? [dict get $time $field] : -1}]
            assert_equal $want [r hexpiretime m fields 1 $field]
        }
        r debug set-active-expire 1
    }
}
