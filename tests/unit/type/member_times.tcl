# SPDX-License-Identifier: BSD-3-Clause
#
# TTLs of members of sets and sorted sets: replies, errors, visibility of expired members, active expiry, copies and files,
# random histories against a model.

source $::tests_dir/support/raw_replica.tcl

proc typed {args} {r -typed {*}$args}
# Far ahead, in seconds.
set far 4000000000

# Commands of sets and of sorted sets: x is s or z.
proc add {x key args} {
    if {$x eq "z"} {set args [concat {*}[lmap m $args {list 1 $m}]]}
    r ${x}add $key {*}$args
}
proc addex {x key options args} {
    set count [llength $args]
    if {$x eq "z"} {set args [concat {*}[lmap m $args {list 1 $m}]]}
    r ${x}addex $key {*}$options members $count {*}$args
}
proc all {x key} {lsort [expr {$x eq "s" ? [r smembers $key] : [r zrange $key 0 -1]}]}
proc members {args} {list members [llength $args] {*}$args}
# Members that stay and others that have expired but are still stored.
proc expired_members {x stay gone} {
    r del k
    add $x k {*}$stay {*}$gone
    r ${x}pexpire k 1 {*}[members {*}$gone]
    wait_for_condition 500 5 {[lsort -unique [r ${x}ttl k {*}[members {*}$gone]]] eq -2}
}

# The requests that `code` propagates, without PING and SELECT.
proc propagated {code} {
    set s [dict get [replica_sync] socket]
    uplevel 1 $code
    r set end 1
    set requests {}
    while {[set words [replica_next $s]] ne "set end 1"} {
        if {[string tolower [lindex $words 0]] ni {select ping}} {lappend requests $words}
    }
    raw_close $s
    return $requests
}

foreach x {s z} {
start_server {tags {set zset tls:skip} overrides {repl-diskless-sync-delay 0}} {
    set large [expr {$x eq "s" ? "hashtable" : "skiplist"}]

    test "commands on member TTLs ($x) refuse too few arguments and other types" {
        foreach {command few} {
            expire {k 10 members 1} pexpire {k 10 members 1} expireat {k 10 members 1} pexpireat {k 10 members 1}
            ttl {k members 1} pttl {k members 1} expiretime {k members 1} pexpiretime {k members 1} persist {k members 1}
            addex {k members 1}
        } {assert_error "ERR wrong number of arguments for '$x$command' command" {r $x$command {*}$few}}
        foreach {command words} {
            expire {k 10 members 1 1} pexpire {k 10 members 1 1} expireat {k 10 members 1 1} pexpireat {k 10 members 1 1}
            ttl {k members 1 1} pttl {k members 1 1} expiretime {k members 1 1} pexpiretime {k members 1 1}
            persist {k members 1 1}
        } {
            foreach key {string other} make [list {r set string 1} [list add [expr {$x eq "s" ? "z" : "s"}] other a]] {
                eval $make
                assert_error "WRONGTYPE *" {r $x$command $key {*}[lrange $words 1 end]}
            }
        }
        assert_error "WRONGTYPE *" {addex $x string {ex 10} a}
        assert_equal {1 1} [list [r get string] [r exists other]]
        r del string other
    }

    test "bad lists, options and times ($x) are refused, and nothing changes" {
        add $x k a b
        set count "ERR nummembers should be greater than 0 and match the provided number of members"
        set number "ERR value is not an integer or out of range"
        set syntax "ERR syntax error"
        foreach command [list [list ${x}expire k 10] [list ${x}persist k] [list ${x}ttl k]] {
            foreach {words error} [list {members 0 a} $count {members -1 a} $count {members 2 a} $count \
                {members 1 a b} $count {members x a} $number] {
                assert_error $error {r {*}$command {*}$words}
            }
        }
        set one [expr {$x eq "s" ? "members 1 a" : "members 1 5 a"}]
        foreach {command error} [list \
            "expire k 10 foo members 1 a" "ERR Unsupported option foo" \
            "expire k 10 nx xx members 1 a" "ERR NX and XX, GT or LT options at the same time are not compatible" \
            "expire k 10 gt lt members 1 a" "ERR GT and LT options at the same time are not compatible" \
            "expire k x members 1 a" $number \
            "expire k -1 members 1 a" "ERR invalid expire time in '${x}expire' command" \
            "expireat k 9223372036854775807 members 1 a" "ERR invalid expire time in '${x}expireat' command" \
            "pexpire k 9223372036854775807 members 1 a" "ERR invalid expire time in '${x}pexpire' command" \
            "ttl k foo 1 a" $syntax "persist k foo 1 a" $syntax \
            "addex k nx xx $one" $syntax "addex k ex 10 keepttl $one" $syntax "addex k fnx $one" $syntax \
            "addex k persist $one" $syntax "addex k ex $one" $syntax "addex k ex x $one" $number \
            "addex k ex -1 $one" "ERR invalid expire time in '${x}addex' command"] {
            assert_error $error {r $x[lindex $command 0] {*}[lrange $command 1 end]}
        }
        if {$x eq "z"} {
            assert_error "ERR value is not a valid float" {r zaddex k members 2 1 a x b}
            assert_error "ERR value is not a valid float" {r zaddex k members 1 nan b}
            assert_equal {1 1} [r zmscore k a b]
        }
        assert_equal {{a b} listpack} [list [all $x k] [r object encoding k]]
    }

    test "${x}EXPIRE sets TTLs as its conditions permit, ${x}TTL replies them" {
        r del k
        add $x k a b c
        assert_equal {array {{integer -2} {integer -2}}} [typed ${x}expire none 10 members 2 a b]
        assert_equal {array {{integer 0}}} [typed ${x}expireat k $far xx members 1 a]
        assert_equal listpack [r object encoding k]
        foreach {ahead conditions names answers} {
            0 {} {a a nope} {1 1 -2}   1 nx {a b} {0 1}   2 xx {a b c} {1 1 0}   1 gt {a b c} {0 0 0}   3 {gt xx} {a b c} {1 1 0}
            1 lt {a b c} {1 1 1}       1 lt {a b c} {0 0 0}   0 {lt xx} {a b} {1 1}
        } {
            assert_equal $answers [r ${x}expireat k [expr {$far + $ahead}] {*}$conditions {*}[members {*}$names]]
        }
        assert_equal $large [r object encoding k]
        assert_equal [list $far $far [expr {$far + 1}] -2] [r ${x}expiretime k members 4 a b c nope]
        assert_equal "${far}000" [r ${x}pexpiretime k members 1 a]
        assert_equal {-2 -2} [r ${x}ttl none members 2 a b]
        r ${x}expire k 1000 members 1 a
        assert_range [r ${x}ttl k members 1 a] 1 1000
        r ${x}pexpire k 1000000 members 1 a
        assert_range [r ${x}pttl k members 1 a] 1 1000000
        assert_equal {1 -1 -2} [r ${x}persist k members 3 a a nope]
        assert_equal -2 [r ${x}persist none members 1 a]
        assert_equal -1 [r ${x}ttl k members 1 a]
        assert_equal 1 [r ${x}pexpireat k 9223372036854775807 members 1 a]
        assert_equal 9223372036854775807 [r ${x}pexpiretime k members 1 a]
        assert_equal {a b c} [all $x k]
    }

    test "a time in the past removes the member ($x), and the key with the last one" {
        assert_equal {2 -2 -2} [r ${x}expire k 0 members 3 a a nope]
        assert_equal {b c} [all $x k]
        assert_equal {2 2} [r ${x}pexpireat k 1 members 2 b c]
        assert_equal 0 [r exists k]
        add $x k a b
        assert_equal 1 [addex $x k {exat 1} a new]
        assert_equal b [all $x k]
        assert_equal 1 [addex $x k {px 0} b]
        assert_equal 0 [r exists k]
        assert_equal 1 [addex $x k {px 0} b]
        assert_equal 0 [r exists k]
    }

    test "${x}ADDEX adds where its condition on the key allows" {
        r del k
        assert_equal {integer 0} [expr {$x eq "s" ? [typed saddex k xx members 1 a] : [typed zaddex k xx members 1 1 a]}]
        assert_equal 1 [addex $x k {nx exat 4000000000} a 17]
        assert_equal 0 [addex $x k {nx ex 10} b]
        assert_equal 1 [addex $x k {xx keepttl} a b]
        assert_equal {4000000000 4000000000 -1} [r ${x}expiretime k members 3 a 17 b]
        assert_equal 1 [addex $x k {pxat 4000000000500} b]
        assert_equal {4000000000500 4000000000000} [r ${x}pexpiretime k members 2 b 17]
        assert_equal 1 [addex $x k {} a]
        assert_equal {-1 4000000000 4000000001} [r ${x}expiretime k members 3 a 17 b]
        assert_equal {17 a b} [all $x k]
        # A key and members that are named as the word.
        assert_equal 1 [addex $x members {ex 100} members]
        assert_range [r ${x}ttl members members 1 members] 1 100
        r del members
    }

    test "what adds an existing member ($x) leaves its TTL, what removes it does not" {
        r del k
        addex $x k {exat 4000000000} a b
        add $x k a c
        if {$x eq "z"} {
            r zadd k 17 a
            r zincrby k 5 a
            assert_equal 22 [r zscore k a]
        }
        assert_equal {4000000000 -1} [r ${x}expiretime k members 2 a c]
        r ${x}rem k a
        add $x k a
        assert_equal -1 [r ${x}ttl k members 1 a]
        r ${x}rem k b
        assert_equal $large [r object encoding k]
    }

    test "expired members ($x) are invisible before they are removed" {
        r debug set-active-expire 0
        expired_members $x {stays 1 22} {gone 3 44}
        assert_equal {1 22 stays} [all $x k]
        assert_equal 3 [r ${x}card k]
        set scanned [lindex [r ${x}scan k 0 count 100] 1]
        assert_equal {1 22 stays} [lsort [expr {$x eq "z" ? [dict keys $scanned] : $scanned}]]
        assert_equal {1 22 stays} [lsort [r ${x}randmember k 10]]
        for {set i 0} {$i < 20} {incr i} {assert {[r ${x}randmember k] in {stays 1 22}}}
        assert_equal {-2 -2} [concat [r ${x}ttl k members 1 gone] [r ${x}pexpiretime k members 1 44]]
        assert_equal {1 22 stays} [lsort [r sort k by nosort]]
        add $x other 3 22 stays gone
        if {$x eq "s"} {
            assert_equal {0 1} [list [r sismember k gone] [r sismember k 22]]
            assert_equal {0 1 0} [r smismember k 3 stays 44]
            assert_equal {22 stays} [lsort [r sinter k other]]
            assert_equal {22 stays} [lsort [r sinter other k]]
            assert_equal 2 [r sintercard 2 k other]
            assert_equal {3 gone} [lsort [r sdiff other k]]
            assert_equal 1 [r sdiff k other]
            assert_equal {1 22 3 gone stays} [lsort [r sunion k other]]
            assert_equal 3 [r sunionstore into k]
            assert_equal -1 [r sttl into members 1 stays]
        } else {
            assert_equal {{} 1} [list [r zscore k gone] [r zscore k 22]]
            assert_equal {{} 1} [r zmscore k 44 stays]
            assert_equal {1 {}} [list [r zrank k 22] [r zrank k 3]]
            assert_equal {2 0} [list [r zrevrank k 1] [r zrevrank k stays]]
            assert_equal {22 stays} [r zrange k 1 5]
            assert_equal {stays 22} [r zrevrange k 0 1]
            assert_equal {22} [r zrangebyscore k 1 1 limit 1 1]
            assert_equal {3 3} [list [r zcount k -inf inf] [r zlexcount k - +]]
            assert_equal {22 stays} [lsort [r zinter 2 k other]]
            assert_equal {3 gone} [lsort [r zdiff 2 other k]]
            assert_equal 2 [r zintercard 2 other k]
            assert_equal 3 [r zunionstore into 1 k]
            assert_equal -1 [r zttl into members 1 stays]
        }
        r del other
    }

    test "the first write removes expired members ($x), with an event and in the stream" {
        r config set notify-keyspace-events KEA
        set rem [expr {$x eq "s" ? "SREM" : "ZREM"}]
        set add [expr {$x eq "s" ? {sadd k gone} : {zadd k 1 gone}}]
        expired_members $x stays gone
        set us [lindex [r config get command-slice-us] 1]
        r config set command-slice-us 0 ;# a job removes what has expired in its first slice, on its own
        assert_equal [list MULTI [list $rem k gone] $add EXEC] [propagated {add $x k gone}]
        r config set command-slice-us $us
        assert_equal {-1 2} [list [r ${x}ttl k members 1 gone] [r ${x}card k]]
        expired_members $x stays {gone too}
        r config resetstat
        set listener [connect 3]
        $listener -send subscribe __keyspace@0__:k
        $listener -push
        assert_equal [list [list $rem k gone too]] [propagated {r ${x}rem k gone}]
        $listener ping
        assert_equal ${x}expired [lindex [$listener -pushes] 0 2]
        assert_equal 2 [info_field expired_members]
        expired_members $x {} {gone 17}
        assert_equal {{} 0 1} [list [all $x k] [r ${x}card k] [r exists k]]
        assert_equal 0 [r ${x}rem k gone]
        assert_equal 0 [r exists k]
        r debug set-active-expire 1
    }

    test "what is propagated ($x) is understood by servers that do not know TTLs of members" {
        r del k
        lassign [expr {$x eq "s" ? {SADD SPEXPIREAT SREM SPERSIST} : {ZADD ZPEXPIREAT ZREM ZPERSIST}}] ADD AT REM PERSIST
        set a [expr {$x eq "s" ? {a b} : {1 a 1 b}}]
        assert_equal [list [list $ADD k {*}$a] [list $AT k 4000000000000 MEMBERS 2 a b]] \
            [propagated {addex $x k {exat 4000000000} a b}]
        assert_equal [list [list $PERSIST k MEMBERS 2 a b]] [propagated {addex $x k {} a b}]
        assert_equal {} [propagated {addex $x k {} a b}]
        assert_equal [list [list $AT k 4000000000000 MEMBERS 1 a]] \
            [propagated {r ${x}expireat k 4000000000 nx members 2 a none}]
        assert_equal [list [list $REM k a b]] [propagated {r ${x}expire k 0 members 2 a b}]
        assert_equal {} [propagated {addex $x k {ex 0} a b}]
        assert_equal 0 [r exists k]
    }

    test "members are removed by active expiry ($x) and counted" {
        r config resetstat
        r flushall
        for {set i 0} {$i < 50} {incr i} {addex $x few:$i {px 1} m}
        for {set i 0} {$i < 50} {incr i} {add $x stays:$i m; addex $x stays:$i {px 1} gone}
        set names {}
        for {set i 0} {$i < 2000} {incr i} {lappend names member:$i}
        addex $x large {px 1} {*}$names
        add $x large stays
        addex $x later {ex 1000} m
        wait_for_condition 500 20 {[r dbsize] == 52 && [info_field expired_members] == 2100}
        assert_equal {m 1} [list [all $x stays:7] [r ${x}card large]]
        assert_match "*keys_with_volatile_items=1*" [r info keyspace]
        r ${x}persist later members 1 m
        assert_match "*keys_with_volatile_items=0*" [r info keyspace]
    }

    test "the TTLs of members ($x) go with renames, moves, copies, DUMP and files" {
        r flushall
        addex $x a {exat 4000000000} m 1
        add $x a plain
        r copy a b
        r rename a c
        assert_match "*keys_with_volatile_items=2*" [r info keyspace]
        r restore d 0 [r dump b]
        r move b 5
        r select 5
        assert_equal {4000000000 4000000000 -1} [r ${x}expiretime b members 3 m 1 plain]
        r select 0
        set before [r debug digest]
        foreach way {{r debug reload} {
            r config set aof-use-rdb-preamble no
            r config set appendonly yes
            info_is aof_rewrite_in_progress 0
            info_is aof_rewrite_scheduled 0
            r bgrewriteaof
            info_is aof_rewrite_in_progress 0
            assert_equal ok [info_field aof_last_bgrewrite_status]
            addex $x e {exat 4000000000} m 1 plain
            r ${x}persist e members 1 plain
            r debug loadaof
        }} {
            eval $way
            foreach key [r keys *] {
                assert_equal {4000000000 4000000000 -1} [r ${x}expiretime $key members 3 m 1 plain]
                assert_equal {1 m plain} [all $x $key]
            }
        }
        r config set appendonly no
        assert_equal {e 1} [list [r keys e] [r del e]]
        assert_equal $before [r debug digest]
        r del c d
        assert_equal 0 [r dbsize]
    }

    test "expired members ($x) of DUMP are dropped by RESTORE, those of files when they are loaded" {
        r debug set-active-expire 0
        expired_members $x {stays 1} {gone 2}
        r restore other 0 [r dump k]
        assert_equal {1 stays} [all $x other]
        r debug reload
        assert_equal {1 stays} [all $x k]
        r debug set-active-expire 1
        r del k other
    }

    test "the memory of a value ($x) includes that of its TTLs, which end with the last one" {
        r del k
        for {set i 0} {$i < 1000} {incr i} {add $x k member:$i}
        set plain [r memory usage k samples 0]
        set names {}
        for {set i 0} {$i < 1000} {incr i} {lappend names member:$i}
        r ${x}expire k 1000 {*}[members {*}$names]
        assert_range [expr {[r memory usage k samples 0] - $plain}] 10000 200000
        r ${x}persist k {*}[members {*}$names]
        assert_equal $plain [r memory usage k samples 0]
    }

    test "random histories of members ($x) match a model" {
        r del m
        set there [dict create]
        set time [dict create]
        for {set round 0} {$round < [scaled 2000]} {incr round} {
            set name [random_below 40]
            if {$name > 20} {set name m$name}
            set at [expr {$far + [random_below 1000]}]
            switch [random_below 7] {
                0 {add $x m $name; dict set there $name 1}
                1 {addex $x m [list exat $at] $name; dict set there $name 1; dict set time $name $at}
                2 {addex $x m keepttl $name; dict set there $name 1}
                3 {assert_equal [dict exists $there $name] [r ${x}rem m $name]; dict unset there $name; dict unset time $name}
                4 {set answer [r ${x}expireat m $at members 1 $name]
                    assert_equal [expr {[dict exists $there $name] ? 1 : -2}] $answer
                    if {$answer == 1} {dict set time $name $at}}
                5 {r ${x}persist m members 1 $name; dict unset time $name}
                6 {set popped [expr {$x eq "s" ? [r spop m] : [lindex [r zpopmin m] 0]}]
                    dict unset there $popped
                    dict unset time $popped}
            }
        }
        assert_equal [lsort [dict keys $there]] [all $x m]
        foreach name [dict keys $there] {
            set want [expr {[dict exists $time $name] ? [dict get $time $name] : -1}]
            assert_equal $want [r ${x}expiretime m members 1 $name]
        }
    }
}
}

start_server {tags {zset tls:skip} overrides {repl-diskless-sync-delay 0}} {
    test {what pops and removes ranges of a sorted set sees no expired members} {
        r debug set-active-expire 0
        foreach {command answer rest} {
            {zpopmin k} {c 3} {d e f}   {zpopmax k 2} {f 6 e 5} {c d}   {zremrangebyrank k 0 1} 2 {e f}
            {zremrangebyscore k -inf 4} 2 {e f}   {zmpop 1 k min} {k {{c 3}}} {d e f}   {bzpopmin k 0} {k c 3} {d e f}
            {zremrangebylex k - +} 4 {}   {zrangestore into k 0 1} 2 {c d e f}   {zrem k a c} 1 {d e f}
        } {
            r del k
            r zadd k 1 a 2 b 3 c 4 d 5 e 6 f
            r zpexpire k 1 members 2 a b
            wait_for_condition 500 5 {[r zscore k b] eq ""}
            assert_equal [string map {\{ "" \} ""} $answer] [string map {\{ "" \} ""} [r {*}$command]] $command
            assert_equal $rest [r zrange k 0 -1] $command
        }
        assert_equal {c d} [r zrange into 0 -1]
    }

    test {a member exists during its last millisecond, with ZPTTL 0} {
        r zadd last 1 stays
        for {set lives 0; set left -2} {$lives < 500 && $left != 0} {incr lives} {
            r zadd last 1 m
            r zpexpire last 2 members 1 m
            while {[set left [r zpttl last members 1 m]] > 0} {}
        }
        assert_equal 0 $left
    }

    test {GEO commands see no expired members} {
        r geoadd g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
        r zpexpire g 1 members 1 Palermo
        wait_for_condition 500 5 {[r zscore g Palermo] eq ""}
        assert_equal Catania [r geosearch g fromlonlat 15 37 byradius 2000 km]
        assert_equal {{}} [r geopos g Palermo]
    }

    test {a client that waits for a sorted set is not served with expired members} {
        set waiting [connect]
        r zadd w 1 a
        r zpexpire w 1 members 1 a
        wait_for_condition 500 5 {[r zcard w] == 0}
        $waiting -send bzpopmin w 0
        wait_for_condition 500 5 {[info_field blocked_clients] == 1}
        r zadd w 2 b
        assert_equal {w b 2} [$waiting -read]
    }

    test {SMOVE moves members without their TTL, and no expired ones} {
        r saddex s ex 100 members 2 a b
        r saddex s px 1 members 1 gone
        wait_for_condition 500 5 {[r sismember s gone] == 0}
        assert_equal {0 1} [list [r smove s t gone] [r smove s t a]]
        assert_equal {b a -1} [list [r smembers s] [r smembers t] [r sttl t members 1 a]]
    }
}
