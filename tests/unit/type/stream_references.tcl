# What removing entries does with references to them: XDELEX, XACKDEL, and KEEPREF, DELREF and ACKED of XADD and XTRIM. What
# they propagate: write_matrix.

proc typed {args} {r -typed {*}$args}
proc ids {key} {lmap entry [r xrange $key - +] {lindex $entry 0}}
proc pending {key group} {lmap row [r xpending $key $group - + 1000] {lindex $row 0}}
# Entries 1-1 to n-1; group g has read the first `read_g` of them, group h `read_h`.
proc fill {key n read_g read_h} {
    r del $key
    for {set i 1} {$i <= $n} {incr i} {r xadd $key $i-1 item $i}
    foreach {group count} [list g $read_g h $read_h] {
        r xgroup create $key $group 0
        if {$count} {r xreadgroup group $group c count $count streams $key >}
    }
}
set invalid_id "ERR Invalid stream ID specified as stream command argument"
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"

start_server {tags {stream}} {
    test {XDELEX removes entries, and keeps pending ones that refer to them} {
        foreach words {{} keepref KEEPREF} {
            fill k 4 3 1
            assert_equal {array {{integer 1} {integer -1} {integer -1} {integer -1}}} \
                [typed xdelex k {*}$words ids 4 2-1 7-1 1 2-1]
            assert_equal {1-1 3-1 4-1} [ids k]
            assert_equal {{1-1 2-1 3-1} 1-1} [list [pending k g] [pending k h]]
        }
    }

    test {XDELEX DELREF removes what refers to the entries in all groups, also to those that are gone} {
        fill k 4 3 2
        r xdel k 1-1
        assert_equal {-1 1 1 -1} [r xdelex k delref ids 4 1-1 2-1 4-1 9-1]
        assert_equal 3-1 [ids k]
        assert_equal {3-1 {}} [list [pending k g] [pending k h]]
    }

    test {XDELEX ACKED removes what all groups have read and acknowledged} {
        fill k 5 4 3
        r xack k g 1-1 2-1 4-1
        r xack k h 1-1 3-1
        assert_equal {1 2 2 2 2 2} [r xdelex k acked ids 6 1-1 2-1 3-1 4-1 5-1 9-1]
        assert_equal {2-1 3-1 4-1 5-1} [ids k]
        r xack k h 2-1
        r xack k g 3-1
        r xgroup setid k h 4-1
        assert_equal {1 1 1 2 -1} [r xdelex k acked ids 5 2-1 3-1 4-1 5-1 1-1]
        r xgroup destroy k g
        r xgroup destroy k h
        assert_equal {1 -1} [r xdelex k acked ids 2 5-1 5-1]
        assert_equal 1 [r exists k]
    }

    test {XACKDEL acknowledges and removes} {
        fill k 4 3 2
        assert_equal {array {{integer 1} {integer -1} {integer -1}}} [typed xackdel k g ids 3 1-1 1-1 4-1]
        assert_equal {{2-1 3-1 4-1} {2-1 3-1} {1-1 2-1}} [list [ids k] [pending k g] [pending k h]]
        assert_equal {1} [r xackdel k h keepref ids 1 1-1]
        assert_equal {2-1 3-1 4-1} [ids k]
        assert_equal {1 -1} [r xackdel k g delref ids 2 2-1 4-1]
        assert_equal {{3-1 4-1} 3-1 {}} [list [ids k] [pending k g] [pending k h]]
    }

    test {XACKDEL ACKED removes an entry when the last group acknowledges it} {
        fill k 3 3 2
        assert_equal {2 2 2 -1} [r xackdel k g acked ids 4 1-1 2-1 3-1 3-1]
        assert_equal {{1-1 2-1 3-1} {} {1-1 2-1}} [list [ids k] [pending k g] [pending k h]]
        r xdel k 2-1
        assert_equal {1 1} [r xackdel k h acked ids 2 1-1 2-1]
        assert_equal 3-1 [ids k]
    }

    test {XDELEX and XACKDEL find nothing in a missing key or group, and refuse other types} {
        r del none
        fill k 1 1 0
        assert_equal {-1 -1} [r xdelex none ids 2 1-1 2-1]
        assert_equal {-1} [r xackdel none g ids 1 1-1]
        assert_equal {-1} [r xackdel k none ids 1 1-1]
        assert_equal {0 1-1} [list [r exists none] [pending k g]]
        r set s v
        assert_error $wrong_type {r xdelex s ids 1 1-1}
        assert_error $wrong_type {r xackdel s g ids 1 1-1}
    }

    test {XDELEX and XACKDEL refuse malformed requests, and change nothing} {
        fill k 2 2 0
        foreach {words error} {
            {ids 0 1-1} "ERR Number of IDs must be a positive integer"
            {ids -1 1-1} "ERR Number of IDs must be a positive integer"
            {ids x 1-1} "ERR Number of IDs must be a positive integer"
            {ids 9223372036854775808 1-1} "ERR Number of IDs must be a positive integer"
            {ids 2 1-1} "ERR The `numids` parameter must match the number of arguments"
            {ids 9223372036854775807 1-1} "ERR The `numids` parameter must match the number of arguments"
            {ids 1 1-1 2-1} "ERR syntax error"
            {ids 1 1-1 ids 1 2-1} "ERR syntax error"
            {keepref delref ids 1 1-1} "ERR syntax error"
            {acked 1-1 2-1} "ERR syntax error"
            {nosuch ids 1 1-1} "ERR syntax error"
            {ids 2 1-1 x} "ERR Invalid stream ID specified as stream command argument"
        } {
            assert_error $error {r xdelex k {*}$words}
            assert_error $error {r xackdel k g {*}$words}
        }
        assert_error "ERR wrong number of arguments for 'xdelex' command" {r xdelex k ids 1}
        assert_error "ERR wrong number of arguments for 'xackdel' command" {r xackdel k g ids 1}
        assert_equal {{1-1 2-1} {1-1 2-1}} [list [ids k] [pending k g]]
        assert_equal {1} [r xdelex k ids 1 1-1 keepref]
    }

    test {XTRIM and XADD with KEEPREF and DELREF trim as without, and DELREF removes references} {
        foreach {refs g h} {keepref {1-1 2-1 3-1 4-1} {1-1 2-1} delref {2-1 4-1} 2-1} {
            foreach request {{xtrim k maxlen 2 %s} {xtrim k %s maxlen = 2} {xtrim k minid 4 %s}} {
                fill k 5 4 2
                r xdel k 2-1
                assert_equal 2 [r {*}[format $request $refs]]
                # nothing removes the references of an entry that was removed before
                assert_equal [list {4-1 5-1} $g $h] [list [ids k] [pending k g] [pending k h]]
            }
            foreach request {{xadd k %s maxlen 3 6-1 item 6} {xadd k minid = 4 %s 6-1 item 6}} {
                fill k 5 4 2
                r xdel k 2-1
                assert_equal 6-1 [r {*}[format $request $refs]]
                assert_equal [list {4-1 5-1 6-1} $g $h] [list [ids k] [pending k g] [pending k h]]
            }
            fill k 5 4 2
            assert_equal 6-1 [r xadd k $refs maxlen 9 6-1 item 6]
            assert_equal 0 [r xtrim k maxlen 9 $refs]
            assert_equal {6 {1-1 2-1 3-1 4-1}} [list [r xlen k] [pending k g]]
        }
    }

    test {XTRIM ACKED passes over entries with references until the bound is met} {
        fill k 6 6 6
        r xack k g 1-1 2-1 4-1 5-1
        r xack k h 2-1 3-1 4-1 5-1
        assert_equal 1 [r xtrim k maxlen 5 acked]
        assert_equal {1-1 3-1 4-1 5-1 6-1} [ids k]
        assert_equal 1 [r xtrim k acked minid 5]
        assert_equal {1-1 3-1 5-1 6-1} [ids k]
        assert_equal 1 [r xtrim k maxlen 0 acked]
        assert_equal {1-1 3-1 6-1} [ids k]
        assert_equal 0 [r xtrim k maxlen 0 acked]
        r xack k g 3-1
        r xack k h 1-1
        assert_equal 7-1 [r xadd k acked maxlen = 1 7-1 item 7]
        assert_equal {6-1 7-1} [ids k]
        r xgroup destroy k g
        r xgroup destroy k h
        assert_equal 8-1 [r xadd k maxlen 0 acked 8-1 item 8]
        assert_equal {{} 8-1} [list [ids k] [dict get [r xinfo stream k] last-generated-id]]
    }

    # Each case was tried with Redis 8.2.3 and 8.6.3: entries in a node, entries, those acknowledged by h (which has read 6, and
    # g all), the bound, what is left.
    foreach {size count acked bound left} {
        4 7 {1-1 5-1} 5 {2-1 3-1 4-1 5-1 6-1 7-1}
        5 6 {1-1 3-1 5-1 6-1} 3 {2-1 4-1 6-1}
        3 6 {1-1 4-1} 3 {2-1 3-1 5-1 6-1}
    } {
        test "XTRIM MAXLEN $bound ACKED ends with the node of $size entries that is not removed as a whole" {
            r config set stream-node-max-entries $size
            fill k $count $count 6
            for {set i 1} {$i <= $count} {incr i} {r xack k g $i-1}
            r xack k h {*}$acked
            r xtrim k maxlen $bound acked
            assert_equal $left [ids k]
            r config set stream-node-max-entries 100
        }
    }

    test {XTRIM ~ DELREF is exact, but for the limit, which counts nodes} {
        r config set stream-node-max-entries 5
        fill k 8 8 0
        assert_equal 3 [r xtrim k delref maxlen ~ 5]
        assert_equal {4-1 5-1 6-1 7-1 8-1} [pending k g]
        assert_equal 1 [r xtrim k delref minid ~ 5]
        assert_equal 1 [r xtrim k delref minid ~ 7-1 limit 2]
        assert_equal {6-1 7-1 8-1} [ids k]
        assert_equal 0 [r xtrim k delref maxlen ~ 1 limit 2]
        assert_equal 2 [r xtrim k delref maxlen ~ 1 limit 3]
        assert_equal {8-1 8-1} [list [ids k] [pending k g]]
        r config set stream-node-max-entries 100
    }

    test {XTRIM ~ ACKED removes the acknowledged entries one by one} {
        r config set stream-node-max-entries 3
        fill k 7 7 4
        r xack k g 1-1 2-1 4-1 6-1
        r xack k h 1-1 2-1 4-1
        assert_equal 3 [r xtrim k maxlen ~ 1 acked]
        assert_equal {3-1 5-1 6-1 7-1} [ids k]
        assert_equal 0 [r xtrim k minid ~ 7 acked]
        r xack k g 3-1 5-1
        r xack k h 3-1
        assert_equal 1 [r xtrim k minid ~ 6-1 acked]
        assert_equal {5-1 6-1 7-1} [ids k]
        fill k 7 7 7
        r xack k g 1-1 2-1 3-1 4-1 5-1 6-1 7-1
        r xack k h 1-1 2-1 3-1 4-1 5-1 6-1 7-1
        assert_equal 3 [r xtrim k maxlen ~ 0 limit 5 acked]
        assert_equal {4-1 5-1 6-1 7-1} [ids k]
        r config set stream-node-max-entries 100
    }

    test {XADD and XTRIM refuse a second word, and XADD takes them as fields} {
        r del k
        assert_error $invalid_id {r xadd k delref acked 1-1 f v}
        assert_error $invalid_id {r xadd k delref maxlen 10 delref 1-1 f v}
        assert_error "ERR wrong number of arguments for 'xadd' command" {r xadd k delref * f}
        assert_equal 0 [r exists k]
        assert_equal {} [r xadd k nomkstream acked 1-1 f v]
        r xadd k acked 1-1 keepref delref
        assert_equal {{1-1 {keepref delref}}} [r xrange k - +]
        assert_error "ERR syntax error" {r xtrim k maxlen 0 keepref delref}
        assert_error "ERR syntax error, XTRIM must be called with a trimming strategy" {r xtrim k keepref limit 0}
        assert_equal 1 [r xlen k]
    }

    test {many ids in one request} {
        r del k
        r xgroup create k g 0 mkstream
        set all {}
        for {set i 1} {$i <= 1000} {incr i} {
            r xadd k $i-1 f v
            lappend all $i-1
        }
        r xreadgroup group g c streams k >
        assert_equal [lrepeat 700 1] [r xackdel k g delref ids 700 {*}[lrange $all 0 699]]
        assert_equal [lrange $all 700 end] [pending k g]
        assert_equal 299 [r xtrim k maxlen 1 delref]
        assert_equal {1000-1 1000-1} [list [ids k] [pending k g]]
    }
}
