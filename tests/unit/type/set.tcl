# Set commands: success, refusals, every form a set is kept in, random histories against a model. What they
# propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
proc set_kind {} {expr {[resp3] ? "set" : "array"}}

# A set of members i * step, as the form asks: integers, or text.
proc members {form from to} {
    set all {}
    for {set i $from} {$i < $to} {incr i} {lappend all [expr {$form in {intset inttable} ? $i : "m$i"}]}
    return $all
}

# Thresholds that make sets of some members this form.
proc force {form} {
    r config set set-max-intset-entries [expr {$form eq "intset" ? 5000 : 0}]
    r config set set-max-listpack-entries [expr {$form eq "listpack" ? 5000 : 0}]
}
proc form_name {form} {expr {$form eq "inttable" ? "hashtable" : $form}}
proc usual {} {
    r config set set-max-intset-entries 512
    r config set set-max-listpack-entries 128
    r config set set-max-listpack-value 64
}

start_server {tags {set}} {
    test {set commands refuse too few and too many arguments} {
        foreach {command few many} {
            sadd {k} {}              srem {k} {}               sismember {k} {}          smismember {k} {}
            scard {} {k x}           smembers {} {k x}         spop {} {}                srandmember {} {}
            smove {k d} {k d m x}    sscan {k} {}              sinter {} {}              sunion {} {}
            sdiff {} {}              sinterstore {d} {}        sunionstore {d} {}        sdiffstore {d} {}
            sintercard {1} {}
        } {
            foreach arguments [list $few $many] {
                if {$arguments eq ""} continue
                assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$arguments}
            }
        }
        assert_error "ERR syntax error" {r spop k 1 2}
        assert_error "ERR syntax error" {r srandmember k 1 2}
    }

    test {set commands refuse other types and leave the key alone} {
        r set s value
        r sadd a 1 2
        foreach command {
            {sadd s m} {srem s m} {sismember s m} {smismember s m} {scard s} {smembers s} {spop s} {spop s 1}
            {spop s 0} {srandmember s} {srandmember s 0} {smove s a m} {smove a s 1} {smove a s none}
            {smove s none m} {sscan s 0} {sinter a s} {sinter none s} {sunion a s} {sdiff a s} {sdiff none s}
            {sinterstore d none s} {sunionstore d a s} {sdiffstore d a s} {sintercard 2 none s}
        } {assert_error "WRONGTYPE *" {r {*}$command}}
        assert_equal value [r get s]
        assert_equal {1 2} [lsort [r smembers a]]
        assert_equal 0 [r smove none s m]
        assert_equal 0 [r exists d none]
    }

    foreach form {intset listpack hashtable inttable} {
        test "a set adds, finds and removes its members ($form)" {
            force $form
            r del k
            set all [members $form 0 30]
            assert_equal 30 [r sadd k {*}$all]
            assert_equal [form_name $form] [r object encoding k]
            assert_equal 0 [r sadd k {*}$all]
            assert_equal 30 [r scard k]
            assert_equal [lsort $all] [lsort [r smembers k]]
            assert_equal [list [set_kind] 30] [list [lindex [typed smembers k] 0] [llength [r smembers k]]]
            assert_equal {1 0 0} [list [r sismember k [lindex $all 3]] [r sismember k none] [r sismember k 777]]
            assert_equal {1 0 1} [r smismember k [lindex $all 3] none [lindex $all 29]]
            assert_equal 2 [r srem k [lindex $all 3] none [lindex $all 4] [lindex $all 4]]
            assert_equal 28 [r scard k]
            assert_equal 28 [r srem k {*}$all]
            assert_equal 0 [r exists k]
            assert_equal {0 0} [r smismember k a b]
        }

        test "SPOP and SRANDMEMBER draw fairly in every form of their count ($form)" {
            force $form
            r del k
            set all [members $form 0 40]
            r sadd k {*}$all
            assert {[r sismember k [r srandmember k]]}
            foreach count {1 5 12 14 39 40 100} {
                set some [r srandmember k $count]
                assert_equal [expr {min($count, 40)}] [llength $some]
                assert_equal [llength $some] [llength [lsort -unique $some]]
                foreach member $some {assert {$member in $all}}
            }
            assert_equal 200 [llength [r srandmember k -200]]
            assert_equal {} [r srandmember k 0]
            foreach member [r srandmember k -8000] {incr seen($member)}
            for {set i 0} {$i < 300} {incr i} {
                foreach member [r srandmember k 10] {incr seen($member)}
                set popped [r spop k 10]
                assert_equal 10 [llength [lsort -unique $popped]]
                foreach member $popped {incr seen($member)}
                set one [r spop k]
                incr seen($one)
                assert_equal 29 [r scard k]
                foreach member [concat $popped [list $one]] {assert_equal 0 [r sismember k $member]}
                r sadd k $one {*}$popped
            }
            foreach member $all {assert_range $seen($member) 260 460}
            assert_equal [lsort $all] [lsort [r smembers k]]
        }

        test "SPOP takes all, and the key with it ($form)" {
            force $form
            foreach count {20 21 1000} {
                r del k
                set all [members $form 0 20]
                r sadd k {*}$all
                assert_equal {} [r spop k 0]
                assert_equal [lsort $all] [lsort [r spop k $count]]
                assert_equal 0 [r exists k]
            }
            r sadd k [lindex $all 0]
            assert_equal [lindex $all 0] [r spop k]
            assert_equal 0 [r exists k]
        }

        test "SSCAN returns every member once ($form)" {
            force $form
            r del k
            set all [members $form 0 300]
            r sadd k {*}$all
            foreach {pattern count} {* 300 *7 30} {
                set cursor 0
                set found {}
                while 1 {
                    lassign [r sscan k $cursor count 20 match $pattern] cursor some
                    lappend found {*}$some
                    if {$cursor == 0} break
                }
                assert_equal $count [llength [lsort -unique $found]]
                assert_equal $count [llength $found]
            }
            if {$form ni {hashtable inttable}} {assert_equal 0 [lindex [r sscan k 7 count 1] 0]}
        }

        test "a set is copied, renamed, and has an order-free digest ($form)" {
            force $form
            r del k g
            set all [members $form 0 50]
            r sadd k {*}$all
            r copy k g
            assert_equal [lsort $all] [lsort [r smembers g]]
            set digest [r debug digest-value k]
            r srem g [lindex $all 0]
            assert_equal 50 [r scard k]
            r rename k h
            r expire h 1000
            r persist h
            assert_equal $digest [r debug digest-value h]
            r del k
            r sadd k {*}[lreverse $all]
            assert_equal $digest [r debug digest-value k]
            assert {[r memory usage k] > 50}
            assert_equal set [r type k]
            r del h g
        } {needs:debug}

        test "many sets are intersected, united and subtracted ($form)" {
            force $form
            r del a b c d
            r sadd a {*}[members $form 0 60]
            r sadd b {*}[members $form 20 80]
            r sadd c {*}[members $form 30 40]
            foreach {command keys from to} {
                sinter {a b} 20 60     sinter {a b c} 30 40     sinter {c c} 30 40      sinter {a none} 0 0
                sunion {a b c} 0 80    sunion {c none} 30 40    sunion {none} 0 0
                sdiff {a b} 0 20       sdiff {b a c} 60 80      sdiff {a a} 0 0         sdiff {none a} 0 0
                sdiff {c b} 0 0        sdiff {a none} 0 60      sdiff {c none none none none} 30 40
            } {
                set want [lsort [members $form $from $to]]
                lassign [typed $command {*}$keys] kind got
                assert_equal [set_kind] $kind
                assert_equal $want [lsort [r $command {*}$keys]]
                r set d other
                assert_equal [llength $want] [r ${command}store d {*}$keys]
                assert_equal $want [lsort [r smembers d]]
                assert_equal [expr {[llength $want] > 0}] [r exists d]
            }
            assert_equal 40 [r sintercard 2 a b]
            assert_equal {7 40 40} [list [r sintercard 2 a b limit 7] [r sintercard 2 a b limit 100] \
                [r sintercard 2 a b limit 0]]
            assert_equal 0 [r sintercard 2 a none]
            # The destination may be a source.
            assert_equal 10 [r sinterstore a a c]
            assert_equal 60 [r sunionstore c a b c]
        }
    }

    test {SINTERCARD, SPOP and SRANDMEMBER refuse numbers out of range} {
        r del k
        r sadd k a b
        foreach keys {0 -1 x} {assert_error "ERR numkeys should be greater than 0" {r sintercard $keys k}}
        foreach keys {2 99999999999} {
            assert_error "ERR Number of keys can't be greater than number of args" {r sintercard $keys k}
        }
        assert_error "ERR syntax error" {r sintercard 1 k foo}
        assert_error "ERR syntax error" {r sintercard 1 k limit}
        foreach limit {-1 x} {assert_error "ERR LIMIT can't be negative" {r sintercard 1 k limit $limit}}
        foreach count {-1 x} {assert_error "ERR value is out of range, must be positive" {r spop k $count}}
        assert_error "ERR value is out of range, value must between *" {r srandmember k -9223372036854775808}
        assert_error "ERR value is not an integer or out of range" {r srandmember k x}
        assert_equal [null] [typed spop none]
        assert_equal [list [set_kind] {}] [typed spop none 2]
        assert_equal [null] [typed srandmember none]
        assert_equal {array {}} [typed srandmember none 2]
    }

    test {SMOVE moves a member} {
        foreach form {intset listpack hashtable} {
            force $form
            r del a b
            set all [members $form 0 3]
            r sadd a {*}$all
            lassign $all first second third
            assert_equal 1 [r smove a b $first]
            assert_equal 0 [r smove a b $first]
            assert_equal 1 [r smove a a $second]
            assert_equal 0 [r smove a a none]
            r sadd b $second
            assert_equal 1 [r smove a b $second]
            assert_equal 1 [r smove a b $third]
            assert_equal 0 [r exists a]
            assert_equal [lsort $all] [lsort [r smembers b]]
        }
    }

    test {the encoding of a set depends on its members and the directives} {
        r config set set-max-intset-entries 6
        r config set set-max-listpack-entries 4
        r config set set-max-listpack-value 3
        foreach {form commands} {
            intset {{sadd k 1 2 3 4 5 6}}
            hashtable {{sadd k 1 2 3 4 5 6 7}}
            hashtable {{sadd k 1 2} {sadd k 1 1 1 1 1 1 1}}
            intset {{sadd k 1 2 3 4 5 6} {sadd k 1}}
            hashtable {{sadd k 1 2 3 4 5 6} {sadd k 7}}
            listpack {{sadd k 1 2 3} {sadd k x}}
            hashtable {{sadd k 1 2 3 4} {sadd k x}}
            hashtable {{sadd k 1234} {sadd k x}}
            hashtable {{sadd k 1} {sadd k abcd}}
            listpack {{sadd k a 1 2 3}}
            hashtable {{sadd k a b c d e}}
            hashtable {{sadd k a} {sadd k a a a a a}}
            hashtable {{sadd k abcd}}
            hashtable {{sadd k a b c d} {sadd k e} {srem k b c d e}}
            intset {{sadd a x 1 2} {sadd b y 1 2} {sinterstore k a b}}
            listpack {{sadd a a x y z w v} {sadd b a x} {sinterstore k a b}}
            intset {{sadd a x 1 2 3 4 5 6} {sdiffstore k a c} {sadd c x} {sdiffstore k a c}}
            hashtable {{sadd a 1 2 3} {sadd b a b} {sunionstore k a b}}
        } {
            r del a b c k
            foreach command $commands {r {*}$command}
            assert_equal $form [r object encoding k]
        }
        usual
    }

    test {integers of every width are members, as text that is nearly one is} {
        foreach form {intset listpack hashtable} {
            force $form
            r del k
            set all {0 -1 127 128 32767 32768 -32768 -32769 2147483647 2147483648 -2147483649 8796093022207
                8796093022208 -8796093022208 -8796093022209 9223372036854775807 -9223372036854775808}
            if {$form ne "intset"} {lappend all 01 -0 +1 " 1" 1.0 9223372036854775808 ""}
            r sadd k {*}$all
            assert_equal $form [r object encoding k]
            assert_equal [lsort $all] [lsort [r smembers k]]
            foreach member $all {assert_equal 1 [r sismember k $member]}
            assert_equal [llength $all] [r srem k {*}$all]
        }
        usual
    }

    test {random sets agree with a model at any threshold} {
        foreach {ints entries value} {0 0 64 5 3 3 20 10 64 512 128 64 10 0 64} {
            r config set set-max-intset-entries $ints
            r config set set-max-listpack-entries $entries
            r config set set-max-listpack-value $value
            r flushall
            foreach key {a b c} {set model($key) [dict create]}
            for {set i 0} {$i < [scaled 500]} {incr i} {
                set key [lindex {a b c} [random_below 3]]
                set other [lindex {a b c} [random_below 3]]
                set member [expr {[random_below 3] ? [random_below 40] : "m[random_below 20]"}]
                switch [random_below 7] {
                    0 - 1 {
                        assert_equal [expr {![dict exists $model($key) $member]}] [r sadd $key $member]
                        dict set model($key) $member 1
                    }
                    2 {
                        assert_equal [dict exists $model($key) $member] [r srem $key $member]
                        dict unset model($key) $member
                    }
                    3 {
                        assert_equal [dict exists $model($key) $member] [r smove $key $other $member]
                        if {[dict exists $model($key) $member]} {
                            dict unset model($key) $member
                            dict set model($other) $member 1
                        }
                    }
                    4 {
                        foreach popped [r spop $key [random_below 3]] {
                            assert {[dict exists $model($key) $popped]}
                            dict unset model($key) $popped
                        }
                    }
                    5 {
                        set command [lindex {sinterstore sunionstore sdiffstore} [random_below 3]]
                        r $command c $key $other
                        set result [dict create]
                        foreach m [concat [dict keys $model($key)] [dict keys $model($other)]] {
                            set in [dict exists $model($key) $m]
                            set too [dict exists $model($other) $m]
                            if {[expr [dict get {sinterstore {$in && $too} sunionstore 1 sdiffstore {$in && !$too}} $command]]} {
                                dict set result $m 1
                            }
                        }
                        set model(c) $result
                    }
                    6 {assert_equal [dict exists $model($key) $member] [r sismember $key $member]}
                }
                assert_equal [dict size $model($key)] [r scard $key]
            }
            foreach key {a b c} {assert_equal [lsort [dict keys $model($key)]] [lsort [r smembers $key]]}
        }
        usual
    }

    test {a large set is freed in the background by UNLINK, DEL, expiry and overwriting} {
        force hashtable
        foreach way {{unlink k} {del k} {set k v} {flushall async}} {
            r sadd k {*}[members hashtable 0 300]
            r {*}$way
            assert_equal 0 [expr {[r type k] eq "set"}]
            wait_for_condition 100 50 {[info_field lazyfree_pending_objects] == 0} else {fail "not freed"}
            r del k
        }
        usual
    }
}
