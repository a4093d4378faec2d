# Sorted set commands: success, refusals, both forms a sorted set is kept in, random histories against a model. What
# they propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
proc null_array {} {expr {[resp3] ? {null null} : {null array}}}

# Members and scores in turn, whatever the protocol makes of them.
proc flat {reply} {expr {[resp3] ? [concat {*}$reply] : $reply}}
proc with_scores {args} {flat [r {*}$args]}

# Thresholds that make sorted sets of some members this form.
proc force {form} {r config set zset-max-listpack-entries [expr {$form eq "listpack" ? 5000 : 0}]}
proc usual {} {
    r config set zset-max-listpack-entries 128
    r config set zset-max-listpack-value 64
}

# The model, an array of scores by member, in order: members and scores in turn.
proc ordered {scores} {
    set all {}
    foreach {member score} $scores {lappend all [list $score $member]}
    set result {}
    foreach pair [lsort -real -index 0 [lsort -index 1 $all]] {lappend result [lindex $pair 1] [lindex $pair 0]}
    return $result
}
proc only_members {pairs} {
    set result {}
    foreach {member score} $pairs {lappend result $member}
    return $result
}
proc reversed {pairs} {
    set result {}
    foreach {member score} $pairs {set result [linsert $result 0 $member $score]}
    return $result
}

start_server {tags {zset}} {
    test {sorted set commands refuse too few and too many arguments} {
        foreach {command few many} {
            zadd {k 1} {}              zincrby {k 1} {k 1 m x}      zscore {k} {k m x}      zmscore {k} {}
            zcard {} {k x}             zcount {k 1} {k 1 2 x}       zlexcount {k -} {k - + x}
            zrank {k} {k m withscore x} zrevrank {k} {k m withscore x} zrem {k} {}          zpopmin {} {}
            zremrangebyrank {k 0} {k 0 1 x}   zremrangebyscore {k 0} {k 0 1 x}   zremrangebylex {k -} {k - + x}
            zrange {k 0} {}            zrangestore {d k 0} {}       zrevrange {k 0} {}      zrangebyscore {k 0} {}
            zmpop {1 k} {}             zrandmember {} {}            zscan {k} {}            zunion {1} {}
            zunionstore {d 1} {}       zintercard {1} {}
        } {
            foreach arguments [list $few $many] {
                if {$arguments eq ""} continue
                assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$arguments}
            }
        }
    }

    test {sorted set commands refuse other types and leave the key alone} {
        r set s value
        r zadd z 1 a
        foreach command {
            {zadd s 1 m} {zincrby s 1 m} {zscore s m} {zmscore s m} {zcard s} {zcount s 0 1} {zlexcount s - +}
            {zrank s m} {zrevrank s m} {zrem s m} {zrange s 0 1} {zrangebyscore s 0 1} {zrangebylex s - +}
            {zrangestore d s 0 1} {zremrangebyrank s 0 1} {zremrangebyscore s 0 1} {zremrangebylex s - +}
            {zpopmin s} {zpopmax s 1} {zmpop 2 none s min} {zrandmember s} {zrandmember s 1} {zscan s 0}
            {zunion 2 z s} {zinter 2 none s} {zdiff 2 z s} {zintercard 2 z s} {zunionstore d 2 z s}
        } {assert_error "WRONGTYPE *" {r {*}$command}}
        assert_equal value [r get s]
        assert_equal 0 [r exists d none]
    }

    test {ZADD checks its options in order and changes nothing if they are invalid} {
        r del k
        foreach {arguments error} {
            {nx xx 1 a} "ERR XX and NX options at the same time are not compatible"
            {nx gt 1 a} "ERR GT, LT, and/or NX options at the same time are not compatible"
            {gt lt 1 a} "ERR GT, LT, and/or NX options at the same time are not compatible"
            {incr 1 a 2 b} "ERR INCR option supports a single increment-element pair"
            {1 a 2} "ERR syntax error"
            {1 a nan b} "ERR value is not a valid float"
            {nan a} "ERR value is not a valid float"
            {0x10 a} "ERR value is not a valid float"
            {{ 1} a} "ERR value is not a valid float"
            {1e400 a} "ERR value is not a valid float"
        } {assert_error $error {r zadd k {*}$arguments}}
        assert_equal 0 [r exists k]
        r zadd k inf i
        foreach command {{zadd k incr -inf i} {zincrby k -inf i}} {
            assert_error "ERR resulting score is not a number (NaN)" {r {*}$command}
        }
        assert_equal inf [r zscore k i]
    }

    foreach form {listpack skiplist} {
        test "ZADD with every option ($form)" {
            force $form
            r del k
            assert_equal 0 [r zadd k xx 1 a]
            assert_equal [null] [typed zadd k xx incr 1 a]
            assert_equal 0 [r exists k]
            assert_equal 3 [r zadd k 1 a 2 b 3 c]
            assert_equal $form [r object encoding k]
            assert_equal 1 [r zadd k 9 a 4 d]
            assert_equal 2 [r zadd k ch 9 a 5 d 5 e]
            assert_equal 1 [r zadd k nx ch 7 a 7 f]
            assert_equal 1 [r zadd k xx ch 8 a 8 g]
            assert_equal 0 [r zadd k gt ch 8 a 7.5 a]
            assert_equal 2 [r zadd k gt ch 9 a 1 h]
            assert_equal 1 [r zadd k lt ch 1 a 2 h]
            assert_equal {a 1 h 1 b 2 c 3 d 5 e 5 f 7} [with_scores zrange k 0 -1 withscores]
            assert_equal 3.5 [r zadd k incr 2.5 a]
            assert_equal [null] [typed zadd k nx incr 1 a]
            assert_equal [null] [typed zadd k gt incr -1 a]
            assert_equal [expr {[resp3] ? {double 2.5} : {bulk 2.5}}] [typed zadd k lt incr -1 a]
            assert_equal -2 [r zincrby k -2 new]
            assert_equal -1 [r zadd k xx incr 1 new]
        }

        test "scores are shown as they were given ($form)" {
            force $form
            r del k
            set scores {1 -1.5 inf -inf 1e+20 1e-7 100000000000000000 0.1 5e-324 3 1.7976931348623157e+308 1e+19}
            foreach score $scores {r zadd k $score m$score}
            foreach score $scores {
                assert_equal [expr {[resp3] ? [list double $score] : [list bulk $score]}] [typed zscore k m$score]
            }
            r zadd k Infinity x -INF y +inf z
            assert_equal {inf -inf inf} [r zmscore k x y z]
            r del k2
            r zadd k -0 zero
            assert_equal [lindex {0 -0} [expr {$form eq "skiplist"}]] [r zscore k zero]
            assert_equal -0 [r zincrby k2 -0.0 zero]
        }

        test "an option of ZADD in place of ZINCRBY's increment is a syntax error ($form)" {
            force $form
            r del k
            foreach option {nx XX gt lt ch incr} {assert_error "ERR syntax error" {r zincrby k $option m}}
            assert_error "ERR value is not a valid float" {r zincrby k foo m}
            assert_equal {1 0} [list [r zincrby k 1 nx] [r exists m]]
        }

        test "ranks count from either end ($form)" {
            force $form
            r del k
            for {set i 0} {$i < 300} {incr i} {r zadd k [expr {$i / 3}] [format m%03d $i]}
            foreach i {0 1 2 150 298 299} {
                set member [format m%03d $i]
                assert_equal $i [r zrank k $member]
                assert_equal [expr {299 - $i}] [r zrevrank k $member]
                assert_equal [list $i [expr {$i / 3}]] [r zrank k $member withscore]
                assert_equal [list [expr {299 - $i}] [expr {$i / 3}]] [r zrevrank k $member WITHSCORE]
            }
            assert_equal [null] [typed zrank k none]
            assert_equal [null] [typed zrank none m]
            assert_equal [null_array] [typed zrank k none withscore]
            assert_error "ERR syntax error" {r zrank k m withscores}
        }

        test "the last member takes the key with it ($form)" {
            force $form
            r del k
            foreach command {
                {zrem k a none b b} {zpopmin k 2} {zpopmax k 5} {zremrangebyrank k 0 -1}
                {zremrangebyscore k -inf inf} {zremrangebylex k - +} {zmpop 1 k max count 3}
            } {
                r zadd k 1 a 2 b
                r {*}$command
                assert_equal 0 [r exists k]
            }
        }

        test "ranges by score and text, their ends, LIMIT and REV ($form)" {
            force $form
            r del k t
            r zadd k 1 a 2 b 3 c 4 d
            foreach {expected arguments} {
                {a b c d} {0 -1} {b c} {1 2} {} {2 1} {} {4 9} {a b c d} {-100 100} {d c b a} {0 -1 rev} {d} {0 0 rev}
                {b c} {(1 3 byscore} {b} {(1 (3 byscore} {} {(1 (2 byscore} {d c b} {inf (1 byscore rev}
                {b c} {-inf +inf byscore limit 1 2} {b c d} {-inf +inf byscore limit 1 -5}
                {} {-inf inf byscore limit 4 1} {c b} {inf -inf byscore rev limit 1 2} {a b c d} {-1e400 1e400 byscore}
            } {assert_equal $expected [r zrange k {*}$arguments]}
            # A negative offset: none for one, counted from the end for the other, as clients know it.
            assert_equal [lindex {{} {c d}} [expr {$form eq "skiplist"}]] [r zrange k 2 4 byscore limit -2 5]
            assert_equal {} [r zrange k 2 4 byscore limit -4 5]
            r zadd t 0 aa 0 ab 0 b 0 c 0 ""
            foreach {expected arguments} {
                {{} aa ab b c} {- +} {} {+ -} {aa ab} {[a (b} {ab b} {(aa [b} {{}} {- (aa} {b c} {[b +}
                {aa ab} {- + limit 1 2} {c b} {+ - rev limit 0 2} {{} aa ab} {- (b}
            } {assert_equal $expected [r zrange t {*}[linsert $arguments 2 bylex]]}
            assert_equal {c b} [r zrevrangebylex t + {[b}]
            assert_equal {aa ab} [r zrangebylex t {(} {(b}]
            assert_equal {d 4 c 3} [with_scores zrevrangebyscore k 4 3 withscores]
            assert_equal {b 2} [with_scores zrangebyscore k 2 4 limit 0 1 withscores]
            assert_equal {d 4} [with_scores zrevrange k 0 0 withscores]
            assert_equal {2 0 4} [list [r zcount k (1 3] [r zcount k 5 4] [r zcount k -inf inf]]
            assert_equal {2 5 0} [list [r zlexcount t {[a} (b] [r zlexcount t - +] [r zlexcount t + -]]
            assert_equal [expr {[resp3] ? {array {{array {{bulk a} {double 1}}}}} : {array {{bulk a} {bulk 1}}}}] \
                [typed zrange k 0 0 withscores]
        }

        test "ZRANDMEMBER draws fairly, ZSCAN meets all ($form)" {
            force $form
            r del k
            set model {}
            for {set i 0} {$i < 40} {incr i} {
                r zadd k $i m$i
                lappend model m$i $i
            }
            foreach count {1 5 14 39 40 100} {
                set some [with_scores zrandmember k $count withscores]
                assert_equal [expr {2 * min($count, 40)}] [llength $some]
                assert_equal [expr {min($count, 40)}] [dict size $some]
                foreach {member score} $some {assert_equal [dict get $model $member] $score}
            }
            foreach member [r zrandmember k -8000] {incr seen($member)}
            foreach {member score} $model {assert_range $seen($member) 110 300}
            assert {[r zrandmember k] in $model}
            set cursor 0
            set scanned {}
            while 1 {
                lassign [r zscan k $cursor count 7] cursor some
                lappend scanned {*}$some
                if {$cursor == 0} break
            }
            assert_equal [lsort $model] [lsort $scanned]
            r zadd k 0.1 m7
            assert_equal [list 0 [list m7 [lindex {0.1 0.10000000000000001} [expr {$form eq "skiplist"}]]]] \
                [r zscan k 0 match m7 count 1000]
            assert_equal {0 m7} [r zscan k 0 match m7 count 1000 noscores]
            assert_error "ERR NOVALUES option can only be used in HSCAN" {r zscan k 0 novalues}
        }

        test "ZUNION, ZINTER and ZDIFF of sorted sets and sets ($form)" {
            force $form
            r del a b s i j d
            r zadd a 1 x 2 y 3 z
            r zadd b 10 y 20 z 30 w
            r sadd s y 5
            assert_equal {x 1 y 12 z 23 w 30} [with_scores zunion 2 a b withscores]
            assert_equal {x y z w} [r zunion 2 a b]
            assert_equal {y 12 z 23} [with_scores zinter 2 b a withscores]
            assert_equal {y 3} [with_scores zinter 3 a b s aggregate min weights 3 1 3 withscores]
            assert_equal {x 1} [with_scores zdiff 2 a b withscores]
            assert_equal {x 1 z 3} [with_scores zdiff 2 a s withscores]
            assert_equal {5} [r zdiff 2 s a]
            assert_equal {2 1 2 0} [list [r zintercard 2 a b] [r zintercard 2 a b limit 1] [r zintercard 2 b a limit 0] [r zintercard 2 a none]]
            r zadd i inf x
            r zadd j -inf x
            assert_equal {x 0} [with_scores zunion 2 i j withscores]
            assert_equal {x 0} [with_scores zinter 2 i i weights 0 0 withscores]
            # What is no number, infinity times 0, counts as 0 but for the later ones of an intersection.
            assert_equal {x inf} [with_scores zinter 2 i i weights 1 0 aggregate min withscores]
            assert_equal {x 0} [with_scores zunion 2 i i weights 1 0 aggregate min withscores]
            assert_equal 4 [r zunionstore d 2 a b weights 2 1 aggregate max]
            assert_equal {x 2 y 10 z 20 w 30} [with_scores zrange d 0 -1 withscores]
            assert_equal $form [r object encoding d]
            assert_equal 2 [r zinterstore d 2 a b]
            assert_equal 1 [r zdiffstore d 2 a b]
            assert_equal {x 1} [with_scores zrange d 0 -1 withscores]
            assert_equal 2 [r zrangestore d a 1 2]
            assert_equal {y 2 z 3} [with_scores zrange d 0 -1 withscores]
            assert_equal 3 [r zrangestore a a 0 -1 rev]
            assert_equal {x y z} [r zrange a 0 -1]
            foreach command {{zunionstore d 1 none} {zinterstore d 2 a none} {zdiffstore d 2 a a} {zrangestore d a 5 9}} {
                r zadd d 1 x
                assert_equal 0 [r {*}$command]
                assert_equal 0 [r exists d]
            }
        }

        test "copies are independent, and sorted sets of equal content have equal digests ($form)" {
            force $form
            r flushall
            for {set i 0} {$i < 300} {incr i} {r zadd k [expr {$i % 7}] m$i}
            r copy k copy
            assert_equal [r zrange k 0 -1 withscores] [r zrange copy 0 -1 withscores]
            set digest [r debug digest-value k]
            assert_equal $digest [r debug digest-value copy]
            r zadd copy 100 m5
            assert {$digest ne [r debug digest-value copy]}
            r zadd copy 5 m5
            assert_equal $digest [r debug digest-value copy]
            assert_equal 5 [r zscore k m5]
            assert {[r memory usage k] > 600}
            r rename copy other
            assert_equal 300 [r zcard other]
            r unlink k other
            assert_equal 0 [r dbsize]
        }

        test "random histories agree with a model ($form)" {
            force $form
            for {set history 0} {$history < [scaled 6]} {incr history} {
                r del k
                set model {}
                for {set i 0} {$i < 300} {incr i} {
                    set member m[random_below 60]
                    set score [expr {[random_below 20] - 10}]
                    switch [random_below 8] {
                        5 {
                            assert_equal [dict exists $model $member] [r zrem k $member]
                            dict unset model $member
                        }
                        6 {
                            set old [expr {[dict exists $model $member] ? [dict get $model $member] : 0}]
                            assert_equal [expr {$old + $score}] [r zincrby k $score $member]
                            dict set model $member [expr {$old + $score}]
                        }
                        7 {
                            set start [random_below 60]
                            set count [expr {1 + [random_below 3]}]
                            set pairs [ordered $model]
                            set gone [only_members [lrange $pairs [expr {2 * $start}] [expr {2 * ($start + $count) - 1}]]]
                            assert_equal [llength $gone] [r zremrangebyrank k $start [expr {$start + $count - 1}]]
                            foreach one $gone {dict unset model $one}
                        }
                        default {
                            assert_equal [expr {![dict exists $model $member]}] [r zadd k $score $member]
                            dict set model $member $score
                        }
                    }
                    if {$i % 20} continue
                    set pairs [ordered $model]
                    assert_equal $pairs [with_scores zrange k 0 -1 withscores]
                    assert_equal [reversed $pairs] [with_scores zrevrange k 0 -1 withscores]
                    set low [expr {[random_below 20] - 12}]
                    set between {}
                    foreach {one value} $pairs {if {$value > $low && $value <= 5} {lappend between $one}}
                    assert_equal $between [r zrangebyscore k ($low 5]
                    assert_equal [llength $between] [r zcount k ($low 5]
                    set place [lsearch -exact [only_members $pairs] $member]
                    assert_equal [expr {$place < 0 ? {} : $place}] [r zrank k $member]
                }
            }
        }
    }

    test {a sorted set is converted to a skiplist at the limits of the directives, and not back} {
        usual
        r config set zset-max-ziplist-entries 3
        assert_equal {zset-max-listpack-entries 3} [r config get zset-max-listpack-entries]
        r del k
        r zadd k 1 a 2 b 3 c
        assert_equal listpack [r object encoding k]
        r zadd k 1 d
        assert_equal skiplist [r object encoding k]
        r zrem k a b c
        assert_equal skiplist [r object encoding k]
        r copy k copy
        assert_equal skiplist [r object encoding copy]
        # The result of a command is judged anew.
        r zunionstore d 1 k
        assert_equal listpack [r object encoding d]
        r zrangestore d k 0 -1
        assert_equal listpack [r object encoding d]
        # So many words could be too many, whatever they say.
        r del k
        r zadd k 1 a 2 a 3 a 4 a
        assert_equal skiplist [r object encoding k]
        usual
        r del k
        r zadd k 1 a
        r zadd k xx 1 [string repeat x 65]
        assert_equal skiplist [r object encoding k]
        r del k
        r zadd k 1 [string repeat x 64]
        assert_equal listpack [r object encoding k]
        r zadd k 1 [string repeat x 65]
        assert_equal skiplist [r object encoding k]
        r config set zset-max-listpack-entries 0
        r del k
        r zadd k 1 a
        assert_equal skiplist [r object encoding k]
        usual
    }

    test {ZPOPMIN, ZPOPMAX and ZMPOP, and the shapes of their replies} {
        r del k
        r zadd k 1 a 2 b 3 c 4 d 5 e 6 f
        set pair [expr {[resp3] ? {array {{bulk a} {double 1}}} : {array {{bulk a} {bulk 1}}}}]
        assert_equal $pair [typed zpopmin k]
        assert_equal [expr {[resp3] ? {array {{array {{bulk f} {double 6}}}}} : {array {{bulk f} {bulk 6}}}}] [typed zpopmax k 1]
        assert_equal {e 5 d 4} [with_scores zpopmax k 2]
        assert_equal {k {{b 2}}} [r zmpop 2 none k min]
        assert_equal {k {{c 3}}} [r zmpop 1 k max count 7]
        assert_equal [null_array] [typed zmpop 2 none k max]
        assert_equal {} [r zpopmin k]
        r zadd k 1 a
        assert_equal {} [r zpopmin k 0]
        foreach bad {-1 x} {assert_error "ERR value is out of range, must be positive" {r zpopmin k $bad}}
        assert_error "ERR syntax error" {r zpopmin k 1 2}
        foreach {arguments error} {
            {0 k min} "ERR numkeys should be greater than 0" {x k min} "ERR numkeys should be greater than 0"
            {1 k foo} "ERR syntax error" {3 k min} "ERR syntax error" {1 k min count} "ERR syntax error"
            {1 k min count 0} "ERR count should be greater than 0" {1 k min count 1 count 1} "ERR syntax error"
            {1 k min count 0 foo} "ERR count should be greater than 0"
        } {assert_error $error {r zmpop {*}$arguments}}
        assert_equal 1 [r zcard k]
    }

    test {range and set operations refuse invalid arguments} {
        r del k
        r zadd k 1 a
        foreach {command error} {
            {zrange k a b} "ERR value is not an integer or out of range"
            {zrange k 0 1 byscore bylex} "ERR syntax error"
            {zrange k - + bylex withscores} "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
            {zrange k 0 1 limit 0 1}
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
            {zrange k 0 1 byscore limit x 1} "ERR value is not an integer or out of range"
            {zrangebyscore k nan 1} "ERR min or max is not a float"
            {zcount k 0x1 2} "ERR min or max is not a float"
            {zrangebylex k a +} "ERR min or max not valid string range item"
            {zremrangebylex k - x} "ERR min or max not valid string range item"
            {zrevrange k 0 1 rev} "ERR syntax error"
            {zrangestore d k 0 1 withscores} "ERR syntax error"
            {zunion 0 k} "ERR at least 1 input key is needed for 'zunion' command"
            {zdiffstore d 0 k} "ERR at least 1 input key is needed for 'zdiffstore' command"
            {zinter 3 k k} "ERR syntax error"
            {zunion 1 k weights x} "ERR weight value is not a float"
            {zunion 1 k weights} "ERR syntax error"
            {zunion 1 k aggregate avg} "ERR syntax error"
            {zdiff 1 k weights 1} "ERR syntax error"
            {zunionstore d 1 k withscores} "ERR syntax error"
            {zintercard 1 k limit -1} "ERR LIMIT can't be negative"
            {zrandmember k x} "ERR value is not an integer or out of range"
            {zrandmember k 1 foo} "ERR syntax error"
            {zrandmember k -9223372036854775807 withscores} "ERR value is out of range"
        } {assert_error $error {r {*}$command}}
    }

    test {BZPOPMIN, BZPOPMAX and BZMPOP take existing members or block} {
        r del k nope
        foreach {command words} {{bzpopmin nope k 0} {k a 1} {bzpopmax k nope 0} {k b 2} {bzmpop 0 2 nope k min} {k {{a 1}}}} {
            r zadd k 1 a 2 b
            assert_equal $words [r {*}$command]
            r del k
            set client [connect]
            $client -send {*}$command
            wait_for_condition 500 10 {[info_field blocked_clients] == 1}
            # Neither another type nor another key ends the wait.
            r rpush k x
            r del k
            r zadd other 1 a
            assert_equal 2 [r zadd k 1 a 2 b]
            assert_equal $words [$client -read]
            assert_equal 1 [r zcard k]
        }
        r del k
        assert_equal [expr {[resp3] ? {array {{bulk k} {bulk a} {double 1}}} : {array {{bulk k} {bulk a} {bulk 1}}}}] \
            [r zadd k 1 a; typed bzpopmin k 0]
        assert_equal [null_array] [typed bzpopmin k 0.01]
        assert_equal [null_array] [typed bzmpop 0.01 1 k max]
        r set s value
        assert_error "WRONGTYPE *" {r bzpopmin s 0}
        foreach {command error} {
            {bzpopmin k x} "ERR timeout is not a float or out of range" {bzpopmax k -1} "ERR timeout is negative"
            {bzmpop x 1 k min} "ERR timeout is not a float or out of range"
            {bzmpop x 0 k min} "ERR numkeys should be greater than 0" {bzmpop x 1 k foo} "ERR syntax error"
        } {assert_error $error {r {*}$command}}
        r multi
        r bzpopmin k 0
        r bzmpop 0 1 k min
        assert_equal {{} {}} [r exec]
    }

    test {a large sorted set: ranks, ranges and removals agree with arithmetic} {
        r del big
        set count [scaled 5000]
        for {set i 0} {$i < $count} {incr i 100} {
            set words {}
            for {set k $i} {$k < $i + 100} {incr k} {lappend words [expr {($k * 7919) % $count}] [format m%06d [expr {($k * 7919) % $count}]]}
            r zadd big {*}$words
        }
        set count [r zcard big]
        foreach {score place} {0 0 17 17 4 4} {
            assert_equal $place [r zrank big [format m%06d $score]]
            assert_equal [list [format m%06d $score]] [r zrange big $place $place]
        }
        assert_equal 11 [r zcount big 10 20]
        assert_equal {m000030 m000031} [r zrangebyscore big 0 +inf limit 30 2]
        assert_equal 50 [r zremrangebyscore big 10 (60]
        assert_equal [list m000060] [r zrange big 10 10]
        assert_equal [expr {$count - 51}] [r zrevrank big m000000]
        assert_equal [expr {$count - 50 - 20}] [r zremrangebyrank big 10 -11]
        assert_equal 20 [r zcard big]
        r del big
    }

    test {ranges before, at and beyond both ends of a sorted set, in both forms} {
        foreach form {listpack skiplist} {
            force $form
            r del ends texts
            r zadd ends 10 a 20 b 20 c 30 d
            r zadd texts 0 b 0 c 0 d
            foreach {min max members} {
                -5 5 {}  -5 10 a  -5 (10 {}  (10 10 {}  10 10 a  (10 (30 {b c}  (20 +inf d  20 20 {b c}
                30 99 d  (30 99 {}  30 (30 {}  31 99 {}  99 5 {}  30 10 {}  -inf +inf {a b c d}  +inf -inf {}  +inf +inf {}
                -inf -inf {}  25 27 {}  -inf 30 {a b c d}  -inf (30 {a b c}
            } {
                set count [llength $members]
                assert_equal $count [r zcount ends $min $max] "$form $min $max"
                assert_equal $members [r zrangebyscore ends $min $max] "$form $min $max"
                assert_equal [lreverse $members] [r zrevrangebyscore ends $max $min] "$form $min $max"
                assert_equal [lrange $members 1 1] [r zrange ends $min $max byscore limit 1 1] "$form $min $max"
                r copy ends cut replace
                assert_equal $count [r zremrangebyscore cut $min $max] "$form $min $max"
                assert_equal [expr {4 - $count}] [r zcard cut] "$form $min $max"
            }
            foreach {min max members} {
                - + {b c d}  + - {}  + + {}  - - {}  - [a {}  - (b {}  - [b b  (b (d c  [d + d  (d + {}  [e + {}  [e [a {}
                [a [z {b c d}  [d [d d  [d (d {}  (c [z d
            } {
                set count [llength $members]
                assert_equal $count [r zlexcount texts $min $max] "$form $min $max"
                assert_equal $members [r zrangebylex texts $min $max] "$form $min $max"
                assert_equal [lreverse $members] [r zrevrangebylex texts $max $min] "$form $min $max"
                r copy texts cut replace
                assert_equal $count [r zremrangebylex cut $min $max] "$form $min $max"
                assert_equal [expr {3 - $count}] [r zcard cut] "$form $min $max"
            }
            foreach {start stop members} {
                0 -1 {a b c d}  4 9 {}  3 9 d  -9 0 a  -9 -5 {}  2 1 {}  -1 -1 d  -1 0 {}  1 2 {b c}
            } {
                assert_equal $members [r zrange ends $start $stop] "$form $start $stop"
                r copy ends cut replace
                assert_equal [llength $members] [r zremrangebyrank cut $start $stop] "$form $start $stop"
                assert_equal [expr {4 - [llength $members]}] [r zcard cut] "$form $start $stop"
            }
        }
        usual
        r del ends texts cut
    }

    test {ZRANGESTORE by score stores -0 as 0 as long as the destination is packed} {
        set long [string repeat L 70]
        r config set zset-max-listpack-entries 0
        r zadd source -0 m 3 c -0 $long -0 m2
        r config set zset-max-listpack-entries 3
        assert_equal -0 [r zscore source m2]
        r zrangestore to source +inf -inf byscore rev
        assert_equal {0 0 -0} [r zmscore to m m2 $long]
        r zrangestore to source 0 -1 rev
        assert_equal {-0 -0 -0} [r zmscore to m m2 $long]
        r config set zset-max-listpack-entries 128
    }
}
