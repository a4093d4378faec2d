# SPDX-License-Identifier: BSD-3-Clause
#
# Commands of Redis 8.8 and 8.10 on types that Valkey has: LMOVEM, BLMOVEM, SUNIONCARD, SDIFFCARD, AGGREGATE COUNT, MAXCOUNT
# and MAXSIZE, HIMPORT. What they propagate: write_matrix (newer_redis.txt).

source $::tests_dir/support/replication.tcl

proc typed {args} {r -typed {*}$args}
proc entries {args} {r xadd {*}$args; return}
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"

# What LMOVEM does: the lists afterwards, and the reply. `to` is ignored if both are one list.
proc move_model {from to from_end to_end count exactly order within} {
    set n [llength $from]
    if {$n == 0 || ($exactly && $n < $count)} {return [list $from $to {}]}
    set n [expr {min($n, $count)}]
    if {$from_end eq "left"} {
        set block [lrange $from 0 $n-1]
        set from [lrange $from $n end]
    } else {
        set block [lrange $from end-[expr {$n - 1}] end]
        set from [lrange $from 0 end-$n]
    }
    # One by one, elements that leave and enter at the same end come in reverse.
    if {$order eq "obo" && $from_end eq $to_end} {set block [lreverse $block]}
    if {$within} {set to $from}
    set to [expr {$to_end eq "left" ? [concat $block $to] : [concat $to $block]}]
    return [list [expr {$within ? $to : $from}] $to $block]
}

start_server {tags {list set zset stream hash}} {
    start_server {tags {repl tls:skip}} {
        test {LMOVEM is what its model is, for all ends, orders and counts, and a replica has the same} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            foreach size {0 1 3 200} count {1 3 2 150} {
                foreach from_end {left right} {foreach to_end {left right} {foreach order {obo bulk} {foreach exactly {0 1} {
                    foreach within {0 1} to {{x 22 y} {}} times {1 3} {
                        set from {}
                        for {set i 0} {$i < $size} {incr i} {lappend from [expr {$i % 3 ? "element-$i" : $i}]}
                        r -1 del a1 a2
                        if {$size} {r -1 rpush a1 {*}$from}
                        if {[llength $to]} {r -1 rpush a2 {*}$to}
                        if {$size} {r -1 expire a1 1000}
                        set n [expr {$count * $times}]
                        lassign [move_model $from $to $from_end $to_end $n $exactly $order $within] from to block
                        assert_equal $block [r -1 lmovem a1 [expr {$within ? "a1" : "a2"}] $from_end $to_end \
                            [expr {$exactly ? "exactly" : "count"}] $n $order]
                        assert_equal [list $from] [list [r -1 lrange a1 0 -1]]
                        if {!$within} {assert_equal [list $to] [list [r -1 lrange a2 0 -1]]}
                        if {[llength $from]} {assert_range [r -1 ttl a1] 900 1000}
                    }
                }}}}
            }
            same_data -1 -0
        }

        test {a long block is propagated in parts, and lists keep values of all sizes} {
            r -1 del a b
            set large [string repeat x 70000]
            for {set i 0} {$i < 5000} {incr i} {lappend all $i}
            lappend all $large {} -1 9223372036854775807 "a b\r\n"
            r -1 rpush a {*}$all
            r -1 expire a 1000
            assert_equal $all [r -1 lmovem a a left right count 10000 obo]
            assert_equal [lreverse $all] [r -1 lmovem a b left left exactly [llength $all] obo]
            assert_equal [lreverse $all] [r -1 lrange b 0 -1]
            assert_equal 0 [r -1 exists a]
            same_data -1 -0
        }

        test {all of them together: a replica and the file have the same data} {
            r -1 config set appendonly yes
            wait_for_condition 500 20 {[string match "*aof_rewrite_in_progress:0*aof_rewrite_scheduled:0*" [r -1 info persistence]]}
            for {set i 0} {$i < 100} {incr i} {
                r -1 rpush l $i [random_below 1000] v$i
                r -1 lmovem l m left right count [expr {1 + [random_below 4]}] bulk
                r -1 multi
                r -1 himport prepare f a b
                r -1 himport set h[random_below 10] f $i x
                r -1 lmovem m l right right exactly 2 obo
                r -1 exec
                r -1 zadd z1 [random_below 9] m[random_below 50]
                r -1 sadd s1 m[random_below 50] $i
                r -1 zunionstore z2 2 z1 s1 weights 2 0.25 aggregate count
                r -1 eval {return redis.call('zinterstore', 'z3', 2, 'z1', 's1', 'aggregate', 'count')} 3 z3 z1 s1
            }
            same_data -1 -0
            set digest [r -1 debug digest]
            r -1 debug loadaof
            assert_equal $digest [r -1 debug digest]
        }
    }

    test {LMOVEM without elements, with other types and with malformed options} {
        r flushall
        r set s v
        r rpush l a b
        assert_equal null [lindex [typed lmovem none l left left] 0]
        assert_equal null [lindex [typed lmovem none s left left] 0]
        assert_equal {array {{bulk b}}} [typed lmovem l m RIGHT left]
        assert_equal null [lindex [typed lmovem l m left left exactly 2 bulk] 0]
        assert_error $wrong_type {r lmovem s l left left}
        assert_error $wrong_type {r lmovem l s left left count 1 obo}
        foreach words {{left up} {up left} {left left count} {left left count 1} {left left obo} {left left count 1 other}
            {left left exactly 1 obo bulk} {left left some 1 obo}} {
            assert_error "ERR syntax error" {r lmovem l m {*}$words}
        }
        foreach count {0 -1 x 9223372036854775808} {
            assert_error "ERR *" {r lmovem l m left left count $count obo}
        }
        assert_error "ERR count should be greater than 0" {r lmovem l m left left count 0 obo}
        assert_error "ERR wrong number of arguments for 'lmovem' command" {r lmovem l m left}
        assert_equal {a b} [list [r lrange l 0 -1] [r lrange m 0 -1]]
    }

    test {BLMOVEM waits for an element, or for all with EXACTLY, and lets others pass meanwhile} {
        r flushall
        set any [connect]
        set all [connect]
        $all -send blmovem k1 k2 left right 0 exactly 3 obo
        info_is blocked_clients 1
        r rpush k1 a b
        assert_equal a [r lpop k1]
        $any -send blmovem k1 k3 left right 0 count 10 bulk
        assert_equal b [$any -read]
        r rpush k1 1 2 3 4
        assert_equal {1 2 3} [$all -read]
        assert_equal {4 {1 2 3} b} [list [r lrange k1 0 -1] [r lrange k2 0 -1] [r lrange k3 0 -1]]
        assert_equal 4 [r blmovem k1 k2 left left 0]
        assert_equal null [lindex [typed blmovem k1 k2 left left 0.01 exactly 2 obo] 0]
        assert_error "ERR timeout is negative" {r blmovem k1 k2 left left -1}
        assert_error "ERR syntax error" {r blmovem k1 k2 left left 1 exactly 2}
        r multi
        r blmovem k1 k2 left left 0 exactly 2 obo
        assert_equal {{}} [r exec]
    }

    test {clients that wait for a list are served by LMOVEM} {
        r flushall
        set waiter [connect]
        $waiter -send blpop d 0
        info_is blocked_clients 1
        r rpush s a b c
        assert_equal {b a} [r lmovem s d left left count 2 obo]
        assert_equal {d b} [$waiter -read]
        assert_equal {a c} [list [r lrange d 0 -1] [r lrange s 0 -1]]
    }

    test {SUNIONCARD and SDIFFCARD are the lengths of SUNION and SDIFF, or the limit} {
        r flushall
        for {set i 0} {$i < 12} {incr i} {
            for {set k 0} {$k < 3 * $i} {incr k} {r sadd set$i [random_below 40] m[random_below 40]}
        }
        for {set round 0} {$round < [scaled 200]} {incr round} {
            set keys {}
            for {set i [expr {1 + [random_below 11]}]} {$i > 0} {incr i -1} {lappend keys set[random_below 13]}
            set limit [expr {1 + [random_below 30]}]
            foreach {command card} {sunion sunioncard sdiff sdiffcard} {
                set length [llength [r $command {*}$keys]]
                assert_equal $length [r $card [llength $keys] {*}$keys]
                assert_equal $length [r $card [llength $keys] {*}$keys limit 0]
                assert_equal [expr {min($length, $limit)}] [r $card [llength $keys] {*}$keys LIMIT $limit]
            }
        }
        r set s v
        foreach card {sunioncard sdiffcard} {
            assert_error $wrong_type {r $card 2 set3 s}
            assert_error "ERR numkeys should be greater than 0" {r $card 0 set3}
            assert_error "ERR Number of keys can't be greater than number of args" {r $card 2 set3}
            assert_error "ERR LIMIT can't be negative" {r $card 1 set3 limit -1}
            assert_error "ERR syntax error" {r $card 1 set3 limit}
            assert_equal 0 [r $card 2 none other]
        }
        assert_error "ERR syntax error" {r sdiffcard 1 set3 approx}
        assert_error "ERR syntax error" {r sunioncard 1 set3 limit 1 approx}
    }

    test {SUNIONCARD APPROX estimates within the error of a HyperLogLog} {
        r flushall
        for {set i 0} {$i < 20000} {incr i 500} {
            set members {}
            for {set k $i} {$k < $i + 700} {incr k} {lappend members [expr {$k % 2 ? $k : "m$k"}]}
            r sadd set[expr {$i / 500 % 3}] {*}$members
        }
        assert_equal 20200 [r sunioncard 3 set0 set1 set2]
        assert_range [r sunioncard 3 set0 set1 set2 approx] 19000 21500
        assert_equal 100 [r sunioncard 3 set0 set1 set2 APPROX limit 100]
        assert_equal 0 [r sunioncard 1 none approx]
    }

    test {AGGREGATE COUNT adds up the weights of the sets that have the member} {
        r flushall
        for {set round 0} {$round < [scaled 60]} {incr round} {
            set weights {1 1 1}
            if {$round % 2} {set weights [lmap i {1 2 3} {expr {[random_below 9] - 4}}]}
            r del z1 z2 z3 union inter
            array unset model
            array unset seen
            foreach key {z1 z2 z3} weight $weights {
                for {set i 0} {$i < 20} {incr i} {
                    set member m[random_below 15]
                    if {$key eq "z2"} {r sadd $key $member} else {r zadd $key [random_below 100] $member}
                    if {[info exists seen($key,$member)]} continue
                    set seen($key,$member) 1
                    incr model($member) $weight
                    incr sets($member,$round)
                }
            }
            set words [list 3 z1 z2 z3 weights {*}$weights aggregate count]
            set union [r zunion {*}$words withscores]
            if {[resp3]} {set union [concat {*}$union]}
            foreach {member score} $union {assert_equal $model($member) [expr {int($score)}]}
            assert_equal [array size model] [expr {[llength $union] / 2}]
            assert_equal [array size model] [r zunionstore union {*}$words]
            assert_equal [r zunion {*}$words] [r zrange union 0 -1]
            set common [lmap {name n} [array get sets *,$round] {expr {$n == 3 ? [lindex [split $name ,] 0] : [continue]}}]
            assert_equal [lsort $common] [lsort [r zinter {*}$words]]
            foreach member $common {assert_equal $model($member) [expr {int([r zscore union $member])}]}
        }
        assert_error "ERR syntax error" {r zdiff 2 z1 z2 aggregate count}
        assert_error "ERR syntax error" {r zinterstore d 1 z1 aggregate}
    }

    test {MAXCOUNT limits the entries of all streams together, MAXSIZE about the bytes} {
        r flushall
        foreach key {x y z} {for {set i 1} {$i <= 5} {incr i} {entries $key $i-1 field [string repeat v 100]}}
        foreach {words expected} {
            {maxcount 20} {x 5 y 5 z 5} {maxcount 7} {x 5 y 2} {maxcount 1} {x 1} {maxcount 5} {x 5}
            {count 2 maxcount 5} {x 2 y 2 z 1} {maxcount 2 count 2} {x 2} {maxsize 1} {x 1} {maxsize 300} {x 2}
            {maxsize 1000000} {x 5 y 5 z 5} {maxsize 1000} {x 5 y 2} {maxsize 1000 count 3} {x 3 y 3 z 1} {maxsize 1000 maxcount 4} {x 4}
        } {
            foreach how {plain group history} {
                if {$how ne "plain"} {
                    foreach key {x y z} {
                        catch {r xgroup destroy $key g}
                        r xgroup create $key g 0
                        if {$how eq "history"} {r xreadgroup group g c streams $key >}
                    }
                }
                set ids [expr {$how eq "group" ? "> > >" : "0 0 0"}]
                set command [expr {$how eq "plain" ? "xread" : "xreadgroup group g c"}]
                set reply [r {*}$command {*}$words streams x y z {*}$ids]
                if {![resp3]} {set reply [concat {*}$reply]}
                set found {}
                foreach {key list} $reply {lappend found $key [llength $list]}
                assert_equal $expected $found
                if {$how ne "group"} continue
                foreach {key n} $found {assert_equal $n [lindex [r xpending $key g] 0]}
            }
        }
        foreach {words error} {
            {maxcount 0} "ERR MAXCOUNT must be a positive integer" {maxsize -1} "ERR MAXSIZE must be a positive integer"
            {maxcount x} "ERR *" {count 3 maxcount 2} "ERR MAXCOUNT must be greater than or equal to COUNT"
        } {
            assert_error $error {r xread {*}$words streams x 0}
            assert_error $error {r xreadgroup group g c {*}$words streams x >}
        }
    }

    test {MAXCOUNT also counts what CLAIM delivers again, and a client that waits} {
        r flushall
        for {set i 1} {$i <= 4} {incr i} {entries x $i-1 f v}
        r xgroup create x g 0
        r xreadgroup group g other count 3 streams x >
        set reply [r xreadgroup group g c maxcount 2 claim 0 streams x >]
        if {![resp3]} {set reply [lindex $reply 0]}
        assert_equal {1-1 2-1} [lmap entry [lindex $reply 1] {lindex $entry 0}]
        assert_equal {{c 2} {other 1}} [lindex [r xpending x g] 3]
        set waiter [connect]
        $waiter -send xread maxcount 1 block 0 streams x y $ $
        info_is blocked_clients 1
        r multi
        r xadd x 9-1 f v
        r xadd x 9-2 f v
        r exec
        assert_match {*9-1*} [set reply [$waiter -read]]
        assert_equal 0 [string match *9-2* $reply]
    }

    test {HIMPORT writes hashes with the fields of a list that the connection has prepared} {
        r flushall
        assert_equal {status OK} [typed himport prepare f name age]
        r set h1 v
        r expire h1 100
        assert_equal {status OK} [typed himport set h1 f Anna 42]
        assert_equal {name Anna age 42} [r hgetall h1]
        assert_equal -1 [r ttl h1]
        r hset h1 more x
        r himport set h1 f Ben 7
        assert_equal {name Ben age 7} [r hgetall h1]
        r himport prepare f one
        r himport set h2 f 1
        assert_equal {one 1} [r hgetall h2]
        assert_error "ERR wrong number of values for the fieldset, which has 1 fields" {r himport set h2 f 1 2}
        assert_error "ERR no such fieldset" {r himport set h2 g 1}
        assert_error "ERR no such fieldset" {[connect] himport set h2 f 1}
        assert_error "ERR duplicate field in fieldset" {r himport prepare f a b a}
        assert_error "ERR wrong number of arguments for 'himport|prepare' command" {r himport prepare f}
        assert_error "ERR wrong number of arguments for 'himport|set' command" {r himport set h2 f}
        assert_error "*not allowed from script*" {r eval {return redis.call('himport', 'set', 'h2', 'f', '1')} 0}
        assert_equal {one 1} [r hgetall h2]
        assert_equal h2 [r command getkeys himport set h2 f 1]
        assert_equal {integer 1} [typed himport discard f]
        assert_equal {integer 0} [typed himport discard f]
        r himport prepare f a
        r himport prepare g a
        assert_equal {integer 2} [typed himport discardall]
        assert_error "ERR no such fieldset" {r himport set h2 f 1}
        assert_match {HIMPORT *} [lindex [r himport help] 0]
    }

    test {RESET ends fieldsets, their number is bounded, and their memory is that of the client} {
        set c [connect]
        proc memory_of {c} {
            regexp {tot-mem=(\d+)} [r client list id [$c client id]] -> bytes
            return $bytes
        }
        set before [memory_of $c]
        for {set i 0} {$i < 1024} {incr i} {$c himport prepare f$i [string repeat x 100]}
        assert_error "ERR too many fieldsets" {$c himport prepare more x}
        $c himport prepare f7 [string repeat x 1000]
        assert_equal 1 [$c himport discard f7]
        $c himport prepare more x
        assert {[memory_of $c] > $before + 100000}
        $c reset
        assert_error "ERR no such fieldset" {$c himport set h f1 v}
    }

    test {users need the right to the key, and the command} {
        r acl setuser u on nopass reset +himport +lmovem +sunioncard ~a* %R~r* on nopass
        foreach {words error} {
            {himport set b f v} "*no permissions*" {lmovem a1 b left left} "*no permissions*" {lmovem r1 a1 left left} "*no permissions*"
            {sunioncard 2 a1 b} "*no permissions*" {sdiffcard 1 a1} "*no permissions*"
        } {assert_match $error [r acl dryrun u {*}$words]}
        foreach words {{himport set a f v} {lmovem a1 a2 left left} {sunioncard 2 a1 r1}} {assert_equal OK [r acl dryrun u {*}$words]}
        r acl deluser u
        assert {"lmovem" in [r acl cat list] && "himport|set" in [r acl cat hash] && "sunioncard" in [r acl cat read]}
    }
}

start_server {tags {extended} overrides {extended-commands no}} {
    test {arguments of newer commands are syntax errors without extended-commands} {
        r xadd x 1-1 f v
        r zadd z 1 a
        assert_error "ERR syntax error" {r xread maxcount 1 streams x 0}
        assert_error "ERR syntax error" {r xread maxsize 1 streams x 0}
        assert_error "ERR syntax error" {r zunion 1 z aggregate count}
        assert_error "ERR syntax error" {r zunionstore d 1 z aggregate count}
    }
}
