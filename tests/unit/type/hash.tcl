# Hash commands but for those on the times of fields: success, refusals, every form a hash is kept in, random
# histories against a model. What they propagate: helpers/compare_propagation.py.

# An answer that tells null from an empty text.
proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}

proc pairs_of {list} {
    set pairs {}
    foreach {field value} $list {lappend pairs [list $field $value]}
    lsort $pairs
}

start_server {tags {hash}} {
    test {hash commands refuse too few and too many arguments} {
        foreach {command few many} {
            hset {k f} {k f v f}     hmset {k f} {k f v f}     hsetnx {k f} {k f v x}    hget {k} {k f x}
            hmget {k} {}             hincrby {k f} {k f 1 x}   hincrbyfloat {k f} {k f 1 x}
            hdel {k} {}              hlen {} {k x}             hstrlen {k} {k f x}       hexists {k} {k f x}
            hgetall {} {k x}         hkeys {} {k x}            hvals {} {k x}            hrandfield {} {}
            hscan {k} {}
        } {
            foreach arguments [list $few $many] {
                if {$arguments eq ""} continue
                assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$arguments}
            }
        }
        assert_equal 0 [r exists k]
    }

    test {hash commands refuse other types and leave the key alone} {
        r set s value
        foreach command {
            {hset s f v} {hmset s f v} {hsetnx s f v} {hget s f} {hmget s f} {hincrby s f 1} {hincrbyfloat s f 1}
            {hdel s f} {hlen s} {hstrlen s f} {hexists s f} {hgetall s} {hkeys s} {hvals s} {hrandfield s}
            {hrandfield s 2} {hscan s 0} {hscan s 0 count 0}
        } {assert_error "WRONGTYPE *" {r {*}$command}}
        assert_equal value [r get s]
    }

    foreach {form entries} {listpack 512 hashtable 0} {
        test "a hash sets, gets and deletes its fields ($form)" {
            r config set hash-max-listpack-entries $entries
            r del h
            assert_equal 2 [r hset h a 1 b two]
            assert_equal $form [r object encoding h]
            assert_equal 1 [r hset h a 3 c ""]
            assert_equal OK [r hmset h d 4 d 5]
            assert_equal {bulk 3} [typed hget h a]
            assert_equal {bulk {}} [typed hget h c]
            assert_equal [null] [typed hget h nope]
            assert_equal [list array [list {bulk 5} [null] {bulk two}]] [typed hmget h d nope b]
            assert_equal {4 1 0 3 0} [list [r hlen h] [r hexists h a] [r hexists h x] [r hstrlen h b] [r hstrlen h x]]
            assert_equal 0 [r hsetnx h a 9]
            assert_equal 1 [r hsetnx h e 9]
            assert_equal {{a 3} {b two} {c {}} {d 5} {e 9}} [pairs_of [r hgetall h]]
            assert_equal {a b c d e} [lsort [r hkeys h]]
            assert_equal {{} 3 5 9 two} [lsort [r hvals h]]
            assert_equal 2 [r hdel h a nope b a]
            assert_equal 3 [r hdel h c d e nope]
            assert_equal 0 [r exists h]
            assert_equal 0 [r hdel h c]
        }

        test "a hash counts ($form)" {
            r config set hash-max-listpack-entries $entries
            r del h
            r hset h text text max 9223372036854775807 blank " 5" empty ""
            assert_equal 7 [r hincrby h new 7]
            assert_equal -3 [r hincrby h new -10]
            foreach field {text blank empty} {
                assert_error "ERR hash value is not an integer" {r hincrby h $field 1}
                assert_error "ERR hash value is not a float" {r hincrbyfloat h $field 1}
            }
            assert_error "ERR increment or decrement would overflow" {r hincrby h max 1}
            assert_error "ERR value is not an integer or out of range" {r hincrby h new x}
            assert_error "ERR value is not a valid float" {r hincrbyfloat h new x}
            assert_error "ERR value is NaN or Infinity" {r hincrbyfloat h new inf}
            assert_equal 9223372036854775807 [r hget h max]
            assert_equal 0.1 [r hincrbyfloat h float 0.1]
            assert_equal 0.3 [r hincrbyfloat h float 0.2]
            assert_equal 5000 [r hincrbyfloat h float 4999.7]
            assert_equal 5000 [r hget h float]
        }

        test "HRANDFIELD draws in every form of its count ($form)" {
            r config set hash-max-listpack-entries $entries
            r del h
            for {set i 0} {$i < 40} {incr i} {r hset h f$i v$i}
            assert {[r hexists h [r hrandfield h]]}
            foreach count {1 5 12 14 39 40 100} {
                set fields [r hrandfield h $count]
                assert_equal [expr {min($count, 40)}] [llength [lsort -unique $fields]]
                assert_equal [llength $fields] [llength [lsort -unique $fields]]
                foreach field $fields {assert {[r hexists h $field]}}
            }
            assert_equal 200 [llength [r hrandfield h -200]]
            set drawn [r hrandfield h -5 withvalues]
            assert_equal [expr {[resp3] ? 5 : 10}] [llength $drawn]
            if {[resp3]} {set drawn [concat {*}$drawn]}
            foreach {field value} $drawn {assert_equal $value [r hget h $field]}
            assert_equal {} [r hrandfield h 0]
            # Every field comes up, none far too often.
            foreach field [r hrandfield h -8000] {incr seen($field)}
            for {set i 0} {$i < 300} {incr i} {foreach field [r hrandfield h 10] {incr seen($field)}}
            for {set i 0} {$i < 40} {incr i} {assert_range $seen(f$i) 160 400}
        }

        test "HSCAN returns every field once ($form)" {
            r config set hash-max-listpack-entries $entries
            r del h
            for {set i 0} {$i < 300} {incr i} {lappend want [list f$i $i]; r hset h f$i $i}
            foreach {options part} {{} all {match f1*} some {novalues} names} {
                set cursor 0
                set found {}
                while 1 {
                    lassign [r hscan h $cursor count 20 {*}$options] cursor some
                    lappend found {*}$some
                    if {$cursor == 0} break
                }
                switch $part {
                    all {assert_equal [lsort $want] [pairs_of $found]}
                    some {assert_equal 222 [llength $found]}
                    names {assert_equal [lsort [r hkeys h]] [lsort $found]}
                }
            }
            if {$form eq "listpack"} {assert_equal 0 [lindex [r hscan h 7 count 1] 0]}
        }

        test "a hash is copied, renamed, and has an order-free digest ($form)" {
            r config set hash-max-listpack-entries $entries
            r del h g
            for {set i 0} {$i < 50} {incr i} {r hset h f$i $i g$i [string repeat x $i]}
            r copy h g
            assert_equal [pairs_of [r hgetall h]] [pairs_of [r hgetall g]]
            set digest [r debug digest-value h]
            r hset g extra 1
            assert_equal 100 [r hlen h]
            r rename h k
            r expire k 1000
            r persist k
            assert_equal $digest [r debug digest-value k]
            r del h
            for {set i 49} {$i >= 0} {incr i -1} {r hset h f$i $i g$i [string repeat x $i]}
            assert_equal $digest [r debug digest-value h]
            assert {[r memory usage h] > 1000}
            assert {[r memory usage h samples 0] > 1000}
            assert_equal hash [r type h]
        } {needs:debug}
    }

    test {HSET replies a map in RESP3, HRANDFIELD WITHVALUES pairs} {
        r del h
        r hset h f v
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [typed hgetall h] 0]
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [typed hgetall nope] 0]
        assert_equal {array {}} [typed hrandfield nope 2]
        assert_equal [null] [typed hrandfield nope]
    }

    test {HRANDFIELD checks its count first} {
        r set s value
        assert_error "ERR value is not an integer or out of range" {r hrandfield s x}
        assert_error "ERR value is out of range, value must between *" {r hrandfield s -9223372036854775808}
        assert_error "ERR syntax error" {r hrandfield s 5 foo}
        assert_error "ERR syntax error" {r hrandfield s 5 withvalues foo}
        assert_error "ERR value is out of range" {r hrandfield s 4611686018427387904 withvalues}
    }

    test {HSCAN checks the cursor, the key, its options} {
        r del h
        r hset h f v
        assert_error "ERR invalid cursor" {r hscan nope x}
        assert_equal {0 {}} [r hscan nope 0 count 0]
        assert_error "ERR syntax error" {r hscan h 0 count 0}
        assert_error "ERR syntax error" {r hscan h 0 type hash}
        assert_error "ERR NOSCORES option can only be used in ZSCAN" {r hscan h 0 noscores}
    }

    test {a hash with too many or too long fields is converted to a table, and not back} {
        r config set hash-max-ziplist-entries 3
        r config set hash-max-listpack-value 4
        foreach {form commands} {
            listpack {{hset h a 1 b 2 c 3}}
            hashtable {{hset h a 1 b 2 c 3 d 4}}
            hashtable {{hset h a 1 a 2 a 3 a 4}}
            hashtable {{hset h a 1 b 2 c 3} {hset h d 1}}
            hashtable {{hset h a 1 b 2 c 3} {hset h d 1} {hdel h b c d}}
            hashtable {{hset h a 12345}}
            hashtable {{hset h abcde 1}}
            listpack {{hset h a 1} {hsetnx h a 12345}}
            hashtable {{hsetnx h a 12345}}
            hashtable {{hincrby h a 12345}}
            hashtable {{hincrbyfloat h a 1.123}}
            listpack {{hincrbyfloat h a 1.12}}
        } {
            r del h
            foreach command $commands {r {*}$command}
            assert_equal $form [r object encoding h]
        }
        assert_equal {hash-max-ziplist-entries 3} [r config get hash-max-ziplist-entries]
        r config set hash-max-listpack-entries 512
        r config set hash-max-listpack-value 64
    }

    test {random hashes agree with a model at any threshold} {
        foreach entries {0 1 5 30 512} value {64 3 20 64 64} {
            r config set hash-max-listpack-entries $entries
            r config set hash-max-listpack-value $value
            r del h
            set model [dict create]
            for {set i 0} {$i < [scaled 400]} {incr i} {
                set field f[random_below 60]
                set text [string repeat [random_below 10] [random_below 30]]
                switch [random_below 6] {
                    0 - 1 {
                        assert_equal [expr {![dict exists $model $field]}] [r hset h $field $text]
                        dict set model $field $text
                    }
                    2 {
                        assert_equal [dict exists $model $field] [r hdel h $field]
                        dict unset model $field
                    }
                    3 {
                        r hset h $field 5
                        dict set model $field [r hincrby h $field [random_below 1000]]
                    }
                    4 {
                        if {[dict exists $model $field]} {assert_equal [dict get $model $field] [r hget h $field]}
                    }
                    5 {
                        r copy h c replace
                        if {[dict size $model]} {r rename c h}
                    }
                }
            }
            assert_equal [pairs_of $model] [pairs_of [r hgetall h]]
            assert_equal [dict size $model] [r hlen h]
        }
        r config set hash-max-listpack-entries 512
        r config set hash-max-listpack-value 64
    }

    test {values of any size survive in a table, and UNLINK frees them in the background} {
        r config set hash-max-listpack-entries 0
        r del h
        foreach len {0 127 128 4000 4096 16383 16384 100000} {
            r hset h f$len [string repeat x $len]
            r hset h [string repeat y $len] 1
        }
        foreach len {0 127 128 4000 4096 16383 16384 100000} {
            assert_equal $len [r hstrlen h f$len]
            assert_equal 1 [r hget h [string repeat y $len]]
            r hset h f$len short
            assert_equal short [r hget h f$len]
        }
        for {set i 0} {$i < 200} {incr i} {r hset h g$i $i}
        r unlink h
        assert_equal 0 [r exists h]
        wait_for_condition 100 50 {[info_field lazyfree_pending_objects] == 0} else {fail "not freed"}
        for {set i 0} {$i < 200} {incr i} {r hset h g$i $i}
        r flushall async
        r config set hash-max-listpack-entries 512
    }
}
