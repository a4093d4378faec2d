# SCAN and KEYS.

# All names returned by a complete scan, with repetitions.
proc scan_all {args} {
    set names {}
    set cursor 0
    while 1 {
        lassign [r scan $cursor {*}$args] cursor some
        lappend names {*}$some
        if {$cursor == 0} {return $names}
    }
}

proc fill {count {prefix key}} {
    for {set i 0} {$i < $count} {incr i} {r -send set $prefix:$i $i}
    for {set i 0} {$i < $count} {incr i} {r -read}
}

start_server {tags {scan} overrides {enable-debug-command yes}} {
    r select 9

    test {SCAN of nothing} {
        r flushdb
        assert_equal {array {{bulk 0} {array {}}}} [r -typed scan 0]
    }

    test {SCAN returns every key} {
        r flushdb
        r debug populate 1000
        set names [scan_all]
        assert_equal 1000 [llength [lsort -unique $names]]
        foreach name $names {assert_match key:* $name}
    }

    test {SCAN with any COUNT} {
        foreach count {1 2 7 100 1000 100000 9223372036854775807} {
            assert_equal 1000 [llength [lsort -unique [scan_all count $count]]]
        }
        assert_equal 0 [lindex [r scan 0 count 100000] 0]
        set some [llength [lindex [r scan 0 count 50] 1]]
        assert_range $some 40 200
    }

    test {COUNT limits the elements visited by a scan, not those that match} {
        r flushdb
        r debug populate 2000
        for {set i 0} {$i < 2000} {incr i} {
            lappend pairs $i f$i
            lappend fields f$i v
            lappend members f$i
        }
        r hset h {*}$fields
        r sadd s {*}$members
        r zadd z {*}$pairs
        foreach scan {scan {hscan h} {sscan s} {zscan z}} {
            set calls 0
            set cursor 0
            while {$calls == 0 || $cursor != 0} {
                lassign [r {*}$scan $cursor match none* count 100] cursor found
                assert_equal {} $found
                incr calls
            }
            assert_range $calls 10 20
        }
    }

    test {SCAN MATCH} {
        r flushdb
        fill 300
        fill 20 other
        assert_equal 20 [llength [lsort -unique [scan_all match other:*]]]
        assert_equal 9 [llength [lsort -unique [scan_all match key:?5]]]
        assert_equal {key:1} [lsort -unique [scan_all match key:1 count 1000]]
        assert_equal {} [scan_all match nothing*]
        assert_equal 320 [llength [lsort -unique [scan_all match *]]]
        assert_equal 20 [llength [lsort -unique [scan_all match key:* match other:*]]]
    }

    test {an empty name matches * alone and the empty pattern} {
        r flushdb
        r set {} v
        r hset h {} v
        assert_equal [list 0 {{} v}] [r hscan h 0 match *]
        assert_equal [list 0 {{} v}] [r hscan h 0 match {}]
        assert_equal {0 {}} [r hscan h 0 match **]
        assert_equal {{} h} [lsort [r keys *]]
        assert_equal {{}} [r keys {}]
        assert_equal h [r keys **]
        assert_equal h [scan_all match **]
    }

    test {SCAN TYPE} {
        r flushdb
        fill 50
        assert_equal 50 [llength [lsort -unique [scan_all type string]]]
        assert_equal 50 [llength [lsort -unique [scan_all TYPE STRING]]]
        assert_equal {} [scan_all type hash]
        assert_equal 10 [llength [lsort -unique [scan_all type string match key:1?]]]
        foreach type {list set zset hash stream} {assert_equal {} [scan_all type $type]}
        assert_error "ERR unknown type name 'foo'" {r scan 0 type foo}
        assert_error "ERR unknown type name 'foo'" {r scan 0 type foo type string}
    }

    test {SCAN TYPE distinguishes types} {
        needs_command rpush
        r rpush list a
        assert_equal list [scan_all type list]
        assert_equal 50 [llength [lsort -unique [scan_all type string]]]
        r del list
    }

    test {SCAN refuses bad cursors and options} {
        foreach cursor {x {} -1 1.5 "1 " 0x10 18446744073709551616} {
            assert_error "ERR invalid cursor" {r scan $cursor}
            assert_error "ERR invalid cursor" {r scan $cursor foo}
        }
        foreach cursor {00 18446744073709551615 1 9007199254740992} {assert_equal 2 [llength [r scan $cursor]]}
        foreach words {{count 0} {count -1} count match type foo {foo bar} {count 0 type foo}} {
            assert_error "ERR syntax error" {r scan 0 {*}$words}
        }
        assert_error "ERR value is not an integer or out of range" {r scan 0 count x}
        assert_error "ERR NOVALUES option can only be used in HSCAN" {r scan 0 novalues}
        assert_error "ERR NOSCORES option can only be used in ZSCAN" {r scan 0 match * noscores}
        assert_error "ERR wrong number of arguments for 'scan' command" {r scan}
    }

    test {cursors stay exact in a double} {
        r flushdb
        r debug populate [scaled 20000]
        set cursor 0
        while 1 {
            lassign [r scan $cursor count 500] cursor some
            assert {$cursor < 2 ** 53}
            if {$cursor == 0} break
        }
    }

    test {keys present all the time are returned, however the table is resized} {
        r flushdb
        fill 500 stays
        foreach round {grow shrink} {
            set names {}
            set cursor 0
            set n 0
            while 1 {
                lassign [r scan $cursor count 10] cursor some
                lappend names {*}$some
                if {$cursor == 0} break
                if {$n == 4000} continue
                for {set i 0} {$i < 100} {incr i} {
                    if {$round eq "grow"} {r -send set comes:$n $n} else {r -send del comes:$n}
                    incr n
                }
                for {set i 0} {$i < 100} {incr i} {r -read}
            }
            set stays [lsearch -all -inline $names stays:*]
            assert_equal 500 [llength [lsort -unique $stays]] $round
        }
    }

    test {a scan that deletes the returned keys terminates} {
        r flushdb
        r debug populate [scaled 5000]
        set cursor 0
        while 1 {
            lassign [r scan $cursor count 20] cursor some
            if {[llength $some]} {r del {*}$some}
            if {$cursor == 0} break
        }
        assert_equal 0 [r dbsize]
    }

    test {a scan that deletes the returned keys returns about COUNT keys a call} {
        foreach count {10 100 1000} {
            r flushdb
            set keys [scaled 20000]
            r debug populate $keys
            set calls 0
            set cursor 0
            while 1 {
                lassign [r scan $cursor count $count] cursor some
                incr calls
                assert_range [llength $some] 0 [expr {$count + 40}]
                if {[llength $some]} {r del {*}$some}
                if {$cursor == 0} break
            }
            assert_equal 0 [r dbsize]
            assert_range $calls 1 [expr {$keys / $count * 11 / 10 + 10}]
        }
    }

    test {an old cursor returns a few keys a call, though they are deleted} {
        r flushdb
        r debug populate 30 old
        lassign [r scan 0 count 1] cursor
        r debug populate [scaled 50000] new
        set most 0
        while {$cursor != 0} {
            lassign [r scan $cursor count 10] cursor some
            set most [expr {max($most, [llength $some])}]
            if {[llength $some]} {r del {*}$some}
        }
        assert_range $most 1 170
        foreach name [scan_all count 1000] {assert_equal 1 [r exists $name]}
    }

    test {SCAN returns no expired keys and removes them} {
        r flushdb
        r debug set-active-expire 0
        fill 20 stays
        for {set i 0} {$i < 20} {incr i} {r set dies:$i 1 px 1}
        after 3
        assert_equal {} [scan_all match nothing*]
        assert_equal 40 [r dbsize]
        assert_equal 20 [llength [lsort -unique [scan_all]]]
        assert_equal 20 [r dbsize]
        r debug set-active-expire 1
    }

    test {KEYS with patterns} {
        r flushdb
        r mset {*}{key 1 kay 1 kxy 1 k*y 1 kEy 1 {} 1 a[b 1 long:name:here 1}
        assert_equal [lsort {key kay kxy k*y kEy {} a[b long:name:here}] [lsort [r keys *]]
        assert_equal [lsort {key kay kxy k*y kEy}] [lsort [r keys k?y]]
        assert_equal [lsort {key kay}] [lsort [r keys {k[ae]y}]]
        assert_equal [lsort {kxy k*y kEy}] [lsort [r keys {k[^ae]y}]]
        assert_equal [lsort {key kay}] [lsort [r keys {k[a-e]y}]]
        assert_equal {k*y} [r keys {k\*y}]
        assert_equal long:name:here [r keys *:*:*]
        assert_equal {{}} [r keys {}]
        assert_equal {} [r keys nothing]
        assert_equal {array {}} [r -typed keys nothing]
        assert_error "ERR wrong number of arguments for 'keys' command" {r keys}
    }

    test {KEYS with many keys} {
        r flushdb
        r debug populate [scaled 30000]
        assert_equal [r dbsize] [llength [lsort -unique [r keys *]]]
        assert_equal 10 [llength [r keys key:12?]]
    }

    test {a hostile pattern takes no time} {
        r flushdb
        r set [string repeat a 100] 1
        assert_equal {} [r keys [string repeat *a 60]b]
    }

    test {a scan in another database and in a transaction} {
        r flushall
        fill 10
        r select 3
        assert_equal {0 {}} [r scan 0]
        r select 9
        r multi
        r scan 0 count 100
        r keys *
        lassign [r exec] scan keys
        assert_equal 10 [llength [lindex $scan 1]]
        assert_equal 10 [llength $keys]
    }

    test {SCAN in the names of a random dataset agrees with KEYS} {
        r flushdb
        for {set i 0} {$i < [scaled 30]} {incr i} {
            for {set k 0} {$k < 50} {incr k} {
                set name [string repeat [format %c [expr {97 + [random_below 26]}]] [random_below 20]][random_below 500]
                if {[random_below 3]} {r set $name 1} else {r del $name}
            }
            set pattern [lindex {* a* *1 ?? *[1-3] [^a]*} [random_below 6]]
            assert_equal [lsort [r keys $pattern]] [lsort -unique [scan_all match $pattern count 1[random_below 99]]]
        }
    }
}

# The keys in SCAN's order on a server with this seed.
proc order_with_seed {seed} {
    set order {}
    start_server [list overrides [list hash-seed $seed]] {
        for {set i 0} {$i < 50} {incr i} { r set key:$i v }
        set order [lindex [r scan 0 count 1000] 1]
        r config rewrite
        restart_server
        assert_equal [list hash-seed [subst -nocommands -novariables [string trim $seed {"}]]] [r config get hash-seed]
    }
    return $order
}

tags {scan needs:own} {
    test {all bytes of hash-seed count, also after a zero byte} {
        set first [order_with_seed {"ab\x00c"}]
        assert_equal $first [order_with_seed {"ab\x00c"}]
        assert_not_equal $first [order_with_seed {"ab\x00d"}]
        assert_not_equal $first [order_with_seed {"ab"}]
    }
}
