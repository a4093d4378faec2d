# XREADGROUP CLAIM: pending entries of any consumer that have been idle are delivered again, before new ones.

proc null_array {} {expr {[resp3] ? {null null} : {null array}}}
proc streams_read {reply} {expr {[resp3] ? $reply : [concat {*}$reply]}}
# Entries that XREADGROUP returns for one stream.
proc entries_of {reply} {lindex [streams_read $reply] 1}
proc read_group {args} {entries_of [r xreadgroup group {*}$args]}
proc ids {entries} {lmap entry $entries {lindex $entry 0}}
proc owners {key group} {lmap row [r xpending $key $group - + 100] {lrange $row 0 1}}
proc fill {key n} {
    r del $key
    for {set i 1} {$i <= $n} {incr i} {r xadd $key $i-1 item $i}
    r xgroup create $key g 0
}
proc waiter {args} {
    set client [connect]
    $client -send {*}$args
    wait_for_condition 500 10 {[info_field blocked_clients] == 1}
    return $client
}

start_server {tags {stream}} {
    test {entries are claimed in the order of their delivery, with idle time and deliveries} {
        fill k 5
        read_group g c count 4 streams k >
        foreach {id idle} {1-1 1000 2-1 500000 3-1 300000 4-1 400000} {r xclaim k g c 0 $id idle $idle justid}
        set entries [read_group g d claim 200000 streams k >]
        assert_equal {2-1 4-1 3-1 5-1} [ids $entries]
        foreach entry $entries low {500000 400000 300000 0} deliveries {1 1 1 0} {
            assert_equal 4 [llength $entry]
            assert_equal [list item [string index [lindex $entry 0] 0]] [lindex $entry 1]
            assert_range [lindex $entry 2] $low [expr {$low ? $low + 100000 : 0}]
            assert_equal $deliveries [lindex $entry 3]
        }
        assert_equal {{1-1 c} {2-1 d} {3-1 d} {4-1 d} {5-1 d}} [owners k g]
        assert_equal {1 2 2 2 1} [lmap row [r xpending k g - + 10] {lindex $row 3}]
        assert_equal [null_array] [r -typed xreadgroup group g d claim 200000 streams k >]
    }

    test {the types of the reply} {
        fill k 1
        set element {array {{bulk 1-1} {array {{bulk item} {bulk 1}}} {integer 0} {integer 0}}}
        set entries [list array [list $element]]
        set stream [list {bulk k} $entries]
        set expected [expr {[resp3] ? [list map $stream] : [list array [list [list array $stream]]]}]
        assert_equal $expected [r -typed xreadgroup group g c claim 1000 streams k >]
    }

    test {COUNT bounds claimed and new entries together, and each stream} {
        fill k 4
        read_group g c count 2 streams k >
        assert_equal {1-1 2-1 3-1} [ids [read_group g d count 3 claim 0 streams k >]]
        assert_equal {1-1 2-1 3-1 4-1} [ids [read_group g d count 0 claim 0 streams k >]]
        fill l 2
        set reply [streams_read [r xreadgroup group g d count 1 claim 0 streams k l > >]]
        assert_equal {k l} [list [lindex $reply 0] [lindex $reply 2]]
        assert_equal {1-1 1-1} [list {*}[ids [lindex $reply 1]] {*}[ids [lindex $reply 3]]]
    }

    test {NOACK does not make new entries pending, and claims those that are} {
        fill k 3
        read_group g c count 1 streams k >
        assert_equal {1-1 2-1 3-1} [ids [read_group g d noack claim 0 streams k >]]
        assert_equal {{1-1 d}} [owners k g]
    }

    test {the history of a consumer is the same with CLAIM} {
        fill k 2
        read_group g c streams k >
        assert_equal {{1-1 {item 1}} {2-1 {item 2}}} [read_group g c claim 0 streams k 0]
        assert_equal {} [read_group g d claim 0 streams k 0]
        assert_equal {{1-1 c} {2-1 c}} [owners k g]
    }

    test {entries that were removed from the stream are neither claimed nor acknowledged} {
        fill k 3
        read_group g c streams k >
        r xdel k 1-1 3-1
        assert_equal {2-1} [ids [read_group g d claim 0 count 1 streams k >]]
        assert_equal {{1-1 c} {2-1 d} {3-1 c}} [owners k g]
        r xdel k 2-1
        assert_equal [null_array] [r -typed xreadgroup group g d claim 0 streams k >]
        assert_equal [null_array] [r -typed xreadgroup group g d claim 0 block 1 streams k >]
    }

    test {an entry whose id comes back after XSETID is claimed again} {
        fill k 1
        read_group g c streams k >
        r xclaim k g c 0 1-1 idle 100000 justid
        r xdel k 1-1
        assert_equal [null_array] [r -typed xreadgroup group g d claim 50000 streams k >]
        r xtrim k maxlen 0
        r del k
        r xgroup create k g 0 mkstream
        r xadd k 1-1 item 1
        read_group g c streams k >
        r xclaim k g c 0 1-1 idle 100000 justid
        r xtrim k maxlen 0
        assert_equal [null_array] [r -typed xreadgroup group g d claim 50000 streams k >]
        r xsetid k 0-1
        r xadd k 1-1 item again
        assert_equal {1-1} [ids [read_group g d claim 50000 streams k >]]
    }

    test {CLAIM refuses what is no time, and XREAD refuses CLAIM} {
        fill k 1
        foreach time {x 1.5 {} 9223372036854775808} {
            assert_error "ERR min-idle-time is not an integer or out of range" {r xreadgroup group g c claim $time streams k >}
        }
        assert_error "ERR min-idle-time must be a positive integer" {r xreadgroup group g c claim -1 streams k >}
        assert_error "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead." {
            r xread claim 0 streams k 0
        }
        assert_error "NOGROUP *" {r xreadgroup group none c claim 0 streams k >}
        assert_equal {} [owners k g]
        assert_equal {1-1} [ids [read_group g c claim 9223372036854775807 streams k >]]
        assert_equal [null_array] [r -typed xreadgroup group g c claim 9223372036854775807 block 1 streams k >]
    }

    test {a blocked reader receives entries when they have been idle for long enough} {
        fill k 2
        read_group g c streams k >
        set client [waiter xreadgroup group g d claim 200 block 0 streams k >]
        set entries [entries_of [$client -read]]
        assert_equal {1-1 2-1} [ids $entries]
        foreach entry $entries {assert {[lindex $entry 2] >= 200}}
        assert_equal {{1-1 d} {2-1 d}} [owners k g]
    }

    test {a blocked reader receives what others have read while it waited} {
        r del k
        r xgroup create k g 0 mkstream
        set client [waiter xreadgroup group g d claim 100 block 0 streams k >]
        r multi
        r xadd k 1-1 item 1
        r xreadgroup group g c streams k >
        r exec
        assert_equal {1-1} [ids [entries_of [$client -read]]]
        assert_equal {{1-1 d}} [owners k g]
    }

    test {a blocked reader with CLAIM receives new entries at once, and times out} {
        fill k 1
        read_group g c streams k >
        set client [waiter xreadgroup group g d claim 1000000 block 0 streams k >]
        r xadd k 2-1 item 2
        assert_equal {{2-1 {item 2} 0 0}} [entries_of [$client -read]]
        assert_equal [null_array] [r -typed xreadgroup group g d claim 1000000 block 20 streams k >]
        assert_equal {{1-1 c} {2-1 d}} [owners k g]
    }

    test {an entry that was acknowledged meanwhile wakes nobody} {
        fill k 2
        read_group g c streams k >
        r xclaim k g c 0 1-1 idle 400 justid
        set client [waiter xreadgroup group g d claim 500 block 0 streams k >]
        r xack k g 1-1
        assert_equal {2-1} [ids [entries_of [$client -read]]]
    }

    test {nothing is claimed during CLIENT PAUSE} {
        fill k 1
        read_group g c streams k >
        set client [waiter xreadgroup group g d claim 50 block 0 streams k >]
        r client pause 100000 write
        wait_for_condition 500 10 {[lindex [r xpending k g - + 1] 0 2] > 120}
        assert_equal {{1-1 c}} [owners k g]
        r client unpause
        assert_equal {1-1} [ids [entries_of [$client -read]]]
    }

    test {blocked readers of a group share what becomes idle} {
        fill k 2
        read_group g c streams k >
        set first [waiter xreadgroup group g d count 1 claim 150 block 0 streams k >]
        set second [connect]
        $second -send xreadgroup group g e count 1 claim 150 block 0 streams k >
        wait_for_condition 500 10 {[info_field blocked_clients] == 2}
        set claimed [list {*}[ids [entries_of [$first -read]]] {*}[ids [entries_of [$second -read]]]]
        assert_equal {1-1 2-1} [lsort $claimed]
    }
}
