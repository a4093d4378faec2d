# Consumer groups of streams: reading, acknowledging, claiming, XINFO, blocked readers, many groups,
# consumers and pending entries. Propagation is compared in helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
proc null_array {} {expr {[resp3] ? {null null} : {null array}}}
proc streams_read {reply} {expr {[resp3] ? $reply : [concat {*}$reply]}}
proc fill {key from to} {for {set i $from} {$i <= $to} {incr i} {r xadd $key $i-1 item $i}}
proc ids {entries} {
    set result {}
    foreach entry $entries {lappend result [lindex $entry 0]}
    return $result
}
# Ids that a consumer receives from one stream.
proc read_ids {args} {ids [lindex [streams_read [r xreadgroup group {*}$args]] 1]}
proc group_field {key group field} {
    foreach g [r xinfo groups $key] {
        if {[dict get $g name] eq $group} {return [dict get $g $field]}
    }
}
proc consumer_field {key group consumer field} {
    foreach c [r xinfo consumers $key $group] {
        if {[dict get $c name] eq $consumer} {return [dict get $c $field]}
    }
}
proc pending {key group} {
    set rows {}
    foreach row [r xpending $key $group - + 1000] {lappend rows [lrange $row 0 1] [lindex $row 3]}
    return $rows
}
proc wait_blocked {count} {
    wait_for_condition 500 10 {[info_field blocked_clients] == $count}
}
proc waiter {count args} {
    set client [connect]
    $client -send {*}$args
    wait_blocked $count
    return $client
}

start_server {tags {stream} overrides {enable-debug-command yes}} {
    test {XGROUP CREATE, SETID, DESTROY} {
        r flushall
        assert_error "ERR The XGROUP subcommand requires the key to exist.*" {r xgroup create k g $}
        assert_error "ERR The XGROUP subcommand requires the key to exist.*" {r xgroup destroy k g}
        assert_error "ERR Invalid stream ID*" {r xgroup create k g bad mkstream}
        assert_equal 0 [r exists k]
        assert_equal OK [r xgroup create k g $ mkstream]
        assert_error "BUSYGROUP Consumer Group name already exists" {r xgroup create k g 0}
        assert_error "ERR Invalid stream ID*" {r xgroup create k g -}
        fill k 1 3
        assert_equal OK [r xgroup create k {} 2-1 entriesread 2]
        assert_equal {2-1 2 1} [list [group_field k {} last-delivered-id] [group_field k {} entries-read] [group_field k {} lag]]
        assert_equal OK [r xgroup setid k g +]
        assert_equal 18446744073709551615-18446744073709551615 [group_field k g last-delivered-id]
        assert_equal OK [r xgroup setid k g $]
        assert_equal 3-1 [group_field k g last-delivered-id]
        assert_error "NOGROUP No such consumer group 'x' for key name 'k'" {r xgroup setid k x 0}
        assert_error "ERR value for ENTRIESREAD must be positive or -1" {r xgroup create k h 0 entriesread -2}
        assert_error "ERR value is not an integer or out of range" {r xgroup create k h 0 entriesread x}
        assert_error "ERR unknown subcommand*'create'*" {r xgroup create k h 0 nosuch}
        assert_error "ERR unknown subcommand*'create'*" {r xgroup create k h 0 mkstream mkstream mkstream mkstream}
        assert_equal {1 0} [list [r xgroup destroy k g] [r xgroup destroy k g]]
        assert_match "XGROUP <subcommand>*" [lindex [r xgroup help] 0]
        assert_match "XINFO <subcommand>*" [lindex [r xinfo help] 0]
    }

    test {consumers: creation, reading, deletion with their pending entries} {
        r flushall
        r xgroup create k g $ mkstream
        assert_equal {1 0} [list [r xgroup createconsumer k g c] [r xgroup createconsumer k g c]]
        assert_error "NOGROUP No such consumer group 'x' for key name 'k'" {r xgroup createconsumer k x c}
        fill k 1 4
        assert_equal {1-1 2-1} [read_ids g c count 2 streams k >]
        assert_equal {3-1 4-1} [read_ids g d streams k >]
        assert_equal [null_array] [typed xreadgroup group g e streams k >]
        assert_equal {c d e} [lmap x [r xinfo consumers k g] {dict get $x name}]
        assert_equal {2 2 0 -1} [list [consumer_field k g c pending] [consumer_field k g d pending] \
                                     [consumer_field k g e pending] [consumer_field k g e inactive]]
        assert_equal 2 [r xgroup delconsumer k g c]
        assert_equal 0 [r xgroup delconsumer k g c]
        assert_equal {2 3-1 4-1 {{d 2}}} [r xpending k g]
    }

    test {XREADGROUP: history, deliveries, removed entries, NOACK} {
        r flushall
        fill k 1 3
        r xgroup create k g 0
        assert_equal {1-1 2-1 3-1} [read_ids g c streams k >]
        r xdel k 2-1
        assert_equal {1-1 2-1 3-1} [read_ids g c streams k 0]
        assert_equal {2-1 {}} [lindex [streams_read [r xreadgroup group g c streams k 1-1]] 1 0]
        assert_equal {{1-1 c} 2 {2-1 c} 1 {3-1 c} 3} [pending k g]
        assert_equal {k {}} [streams_read [r xreadgroup group g c streams k 3-1]]
        assert_equal {k {}} [streams_read [r xreadgroup group g other streams k 0]]
        fill k 4 5
        assert_equal {4-1 5-1} [read_ids g c noack streams k >]
        assert_equal 3 [lindex [r xpending k g] 0]
        assert_equal 5 [group_field k g entries-read]
    }

    test {XREADGROUP: an id delivered again by another consumer changes its owner} {
        r flushall
        fill k 1 2
        r xgroup create k g 0
        read_ids g c streams k >
        read_ids g c streams k 0
        r xgroup setid k g 0
        assert_equal {1-1 2-1} [read_ids g d streams k >]
        assert_equal {{1-1 d} 1 {2-1 d} 1} [pending k g]
    }

    test {XREADGROUP: a refused request creates no consumer} {
        r flushall
        r xgroup create k g 0 mkstream
        assert_error "NOGROUP No such key 'none' or consumer group 'g' in XREADGROUP with GROUP option" \
            {r xreadgroup group g c streams k none > >}
        assert_error "ERR The $ ID is meaningless in the context of XREADGROUP:*" {r xreadgroup group g c streams k $}
        assert_error "ERR The + ID is meaningless in the context of XREADGROUP:*" {r xreadgroup group g c streams k +}
        assert_error "ERR Invalid stream ID*" {r xreadgroup group g c streams k x}
        assert_error "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified." \
            {r xreadgroup group g c streams k j 0}
        assert_error "ERR Missing GROUP option for XREADGROUP" {r xreadgroup count 1 count 1 streams k >}
        assert_equal {} [r xinfo consumers k g]
    }

    test {XACK: all ids are validated first} {
        r flushall
        fill k 1 3
        r xgroup create k g 0
        read_ids g c streams k >
        assert_error "ERR Invalid stream ID*" {r xack k g 1-1 x}
        assert_equal 0 [r xack k nosuch x]
        assert_equal 0 [r xack none g x]
        assert_equal 2 [r xack k g 1-1 3-1 1-1 9-9]
        assert_equal {1 2-1 2-1 {{c 1}}} [r xpending k g]
        assert_equal 0 [r xack k g 2]
        assert_equal 1 [r xack k g 2-1]
    }

    test {XPENDING: summary, ranges, IDLE, consumers, refusals} {
        r flushall
        fill k 1 5
        r xgroup create k g 0
        assert_equal [list array [list {integer 0} [null] [null] [null_array]]] [typed xpending k g]
        read_ids g c count 3 streams k >
        read_ids g a streams k >
        assert_equal {5 1-1 5-1 {{a 2} {c 3}}} [r xpending k g]
        assert_equal {2-1 3-1} [ids [r xpending k g (1-1 (4-1 10]]
        assert_equal {4-1} [ids [r xpending k g - + 1 a]]
        assert_equal {} [r xpending k g - + 10 nobody]
        assert_equal {} [r xpending k g - + 0]
        assert_equal {} [r xpending k g idle 1000000 - + 10]
        assert_equal 5 [llength [r xpending k g idle -1 - + 9223372036854775807]]
        foreach {arguments text} {
            {-} "ERR syntax error"
            {- +} "ERR syntax error"
            {idle 0 - +} "ERR syntax error"
            {idle x - + 10} "ERR value is not an integer or out of range"
            {- + x} "ERR value is not an integer or out of range"
            {- + 9223372036854775808} "ERR value is not an integer or out of range"
            {x + 10} "ERR Invalid stream ID specified as stream command argument"
        } {
            assert_error $text {r xpending k g {*}$arguments}
        }
        assert_error "NOGROUP No such key 'k' or consumer group 'x'" {r xpending k x}
        assert_error "NOGROUP No such key 'none' or consumer group 'g'" {r xpending none g - + 1}
    }

    test {XCLAIM: owners, idle times, counts, options} {
        r flushall
        fill k 1 4
        r xgroup create k g 0
        read_ids g c streams k >
        assert_equal {{1-1 {item 1}}} [r xclaim k g d 0 1-1]
        assert_equal {} [r xclaim k g d 1000000 2-1]
        assert_equal {2-1 2-1} [r xclaim k g d -5 2-1 2-1 justid]
        assert_equal {{1-1 d} 2 {2-1 d} 1 {3-1 c} 1 {4-1 c} 1} [pending k g]
        r xclaim k g d 0 3-1 retrycount 7 time 1000
        assert_equal 7 [lindex [r xpending k g 3-1 3-1 1] 0 3]
        assert {[lindex [r xpending k g 3-1 3-1 1] 0 2] > 1000000}
        r xclaim k g d 0 3-1 idle -100 retrycount -1
        assert_range [lindex [r xpending k g 3-1 3-1 1] 0 2] 0 10000
        r xdel k 4-1
        assert_equal {} [r xclaim k g d 1000000 4-1]
        assert_equal 3 [lindex [r xpending k g] 0]
        r xack k g 1-1
        assert_equal {} [r xclaim k g d 0 1-1]
        assert_equal {1-1} [r xclaim k g d 0 1-1 force justid]
        assert_equal {} [r xclaim k g d 0 9-9 force lastid 8-8]
        assert_equal 8-8 [group_field k g last-delivered-id]
        assert_equal {} [r xclaim k g newcomer 0 lastid 1-1]
        assert_equal 0 [consumer_field k g newcomer pending]
    }

    test {XCLAIM: refusals change nothing} {
        foreach {arguments text} {
            {x 1-1} "ERR Invalid min-idle-time argument for XCLAIM"
            {0 1-1 bad} "ERR Unrecognized XCLAIM option 'bad'"
            {0 1-1 idle} "ERR Unrecognized XCLAIM option 'idle'"
            {0 1-1 justid 2-1} "ERR Unrecognized XCLAIM option '2-1'"
            {0 1-1 idle x} "ERR Invalid IDLE option argument for XCLAIM"
            {0 1-1 time x} "ERR Invalid TIME option argument for XCLAIM"
            {0 1-1 retrycount x} "ERR Invalid RETRYCOUNT option argument for XCLAIM"
            {0 1-1 lastid x} "ERR Invalid stream ID specified as stream command argument"
        } {
            assert_error $text {r xclaim k g refused {*}$arguments}
        }
        assert_error "NOGROUP No such key 'k' or consumer group 'x'" {r xclaim k x c bad 1-1}
        assert_equal {} [consumer_field k g refused pending]
    }

    test {XAUTOCLAIM: continues from its cursor, removes deleted entries, refusals} {
        r flushall
        fill k 1 6
        r xgroup create k g 0
        read_ids g c streams k >
        r xdel k 2-1 5-1
        assert_equal {3-1 {{1-1 {item 1}}} 2-1} [r xautoclaim k g d 0 - count 2]
        assert_equal {0-0 {3-1 4-1 6-1} 5-1} [r xautoclaim k g d 0 3-1 justid]
        assert_equal {{1-1 d} 2 {3-1 d} 1 {4-1 d} 1 {6-1 d} 1} [pending k g]
        assert_equal {0-0 {} {}} [r xautoclaim k g d 1000000 0]
        assert_equal {0-0 {} {}} [r xautoclaim k g d 0 (6-1]
        assert_equal 0-0 [lindex [r xautoclaim k g d 0 0 count 576460752303423487] 0]
        foreach {arguments text} {
            {x 0} "ERR Invalid min-idle-time argument for XAUTOCLAIM"
            {0 x} "ERR Invalid stream ID specified as stream command argument"
            {0 0 count 0} "ERR COUNT must be > 0"
            {0 0 count -1} "ERR COUNT must be > 0"
            {0 0 count x} "ERR COUNT must be > 0"
            {0 0 count 576460752303423488} "ERR COUNT must be > 0"
            {0 0 count} "ERR syntax error"
            {0 0 nosuch} "ERR syntax error"
        } {
            assert_error $text {r xautoclaim k g d {*}$arguments}
        }
        assert_error "NOGROUP No such key 'none' or consumer group 'g'" {r xautoclaim none g d 0 0}
    }

    test {lag and entries-read after removals} {
        r flushall
        fill k 1 5
        r xgroup create k g 0
        assert_equal {{} 5} [list [group_field k g entries-read] [group_field k g lag]]
        read_ids g c count 1 streams k >
        assert_equal {1 4} [list [group_field k g entries-read] [group_field k g lag]]
        r xdel k 4-1
        assert_equal {} [group_field k g lag]
        r xgroup create k start 0
        assert_equal 4 [group_field k start lag]
        read_ids g c streams k >
        assert_equal {5 0} [list [group_field k g entries-read] [group_field k g lag]]
        r xgroup create k at2 2
        assert_equal {} [group_field k at2 lag]
        r xgroup create k end $
        assert_equal 0 [group_field k end lag]
        r xtrim k maxlen 1
        assert_equal 0 [group_field k g lag]
    }

    # The reported lag: 0 if the stream is empty, its length if the group's last id is before the first entry, else the
    # number of entries after it, or nothing.
    proc lag_is_right {key} {
        set at [dict create]
        foreach entry [r xrange $key - +] {dict set at [lindex [split [lindex $entry 0] -] 0] 1}
        set live [dict keys $at]
        foreach g [r xinfo groups $key] {
            set last [lindex [split [dict get $g last-delivered-id] -] 0]
            set unread [llength [lmap id $live {if {$id <= $last} continue; set id}]]
            set lag [dict get $g lag]
            if {$lag eq "" && $unread < [llength $live]} continue
            if {$lag ne $unread} {fail "lag $lag instead of $unread: $g, [r xinfo stream $key], live $live"}
        }
    }

    test {lag and entries-read: any sequence of additions, removals, reads and counters set by hand} {
        r config set stream-node-max-entries 5
        set exact 0
        for {set walk 0} {$walk < [scaled 60]} {incr walk} {
            r flushall
            set next 0
            set steps {}
            foreach g {g h} {r xgroup create k $g 0 mkstream}
            for {set step 0} {$step < 30} {incr step} {
                set id [random_below [expr {$next + 2}]]-0
                set g [lindex {g h} [random_below 2]]
                set request [switch [random_below 14] {
                    0 {list xdel k $id}
                    1 {list xtrim k maxlen [random_below 8]}
                    2 {list xtrim k minid $id}
                    3 - 4 {list xreadgroup group $g c count [expr {1 + [random_below 3]}] streams k >}
                    5 {list xgroup setid k $g [lindex [list 0 $ $id] [random_below 3]]}
                    6 {list xgroup setid k $g $id entriesread [random_below 9]}
                    7 {list xsetid k $id}
                    8 {list xsetid k $next-0 entriesadded [expr {[r xlen k] + [random_below 4]}] maxdeletedid $id}
                    default {list xadd k [incr next]-0 f v}
                }]
                lappend steps $request
                catch {r {*}$request}
                set next [lindex [split [dict get [r xinfo stream k] last-generated-id] -] 0]
                if {[catch {lag_is_right k} wrong]} {fail "$wrong\nafter: [join $steps { ; }]"}
                incr exact [expr {[group_field k g lag] ne ""}]
            }
        }
        assert {$exact > 0}
        r config set stream-node-max-entries 100
    }

    test {lag and entries-read are the same in every copy of a stream} {
        r flushall
        fill k 1 9
        foreach g {a b c d e} at {0 2-1 3-1 8-1 9-1} {r xgroup create k $g $at entriesread [string index $at 0]}
        r xgroup create k unknown 4-1
        r xtrim k maxlen 7
        r xdel k 6-1
        set groups [r xinfo groups k]
        assert_equal {6 6 {} 1 0 {}} [lmap g $groups {dict get $g lag}]
        r restore copy 0 [r dump k]
        assert_equal $groups [r xinfo groups copy]
        r copy k third
        assert_equal $groups [r xinfo groups third]
        foreach how {{debug reload} {debug loadaof}} {
            r config set appendonly yes
            wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
            r {*}$how
            foreach key {k copy third} {assert_equal $groups [r xinfo groups $key]}
            r config set appendonly no
        }
        # The same from commands instead of an RDB file.
        r config set aof-use-rdb-preamble no
        r config set appendonly yes
        wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        r debug loadaof
        foreach key {k copy third} {assert_equal $groups [r xinfo groups $key]}
        r config set appendonly no
        r config set aof-use-rdb-preamble yes
    }

    test {XINFO STREAM FULL reports groups, consumers and pending entries} {
        r flushall
        fill k 1 12
        r xgroup create k g 0
        read_ids g c streams k >
        set g [lindex [dict get [r xinfo stream k full] groups] 0]
        assert_equal {name last-delivered-id entries-read lag pel-count pending consumers} [dict keys $g]
        assert_equal {g 12-1 12 0 12} [lrange [dict values $g] 0 4]
        assert_equal {10 10} [list [llength [dict get $g pending]] \
                                  [llength [dict get [lindex [dict get $g consumers] 0] pending]]]
        assert_equal {1-1 c} [lrange [lindex [dict get $g pending] 0] 0 1]
        set g [lindex [dict get [r xinfo stream k full count 0] groups] 0]
        assert_equal 12 [llength [dict get $g pending]]
        assert_equal {name seen-time active-time pel-count pending} [dict keys [lindex [dict get $g consumers] 0]]
    }

    test {COPY copies groups, and the copies are independent} {
        r copy k j
        assert_equal [pending k g] [pending j g]
        r xack j g 1-1
        r xgroup createconsumer j g new
        assert_equal {12 11} [list [lindex [r xpending k g] 0] [lindex [r xpending j g] 0]]
        assert_equal {} [consumer_field k g new pending]
    }

    test {an entry unblocks every XREAD, but only one XREADGROUP} {
        r flushall
        r xgroup create k g $ mkstream
        set first [waiter 1 xreadgroup group g c block 0 streams k >]
        set second [waiter 2 xreadgroup group g d block 0 streams k >]
        set third [waiter 3 xread block 0 streams k $]
        set fourth [waiter 4 xread block 0 streams other k $ $]
        assert_equal 5-1 [r xadd k 5-1 f v]
        foreach client [list $first $third $fourth] {
            assert_equal {k {{5-1 {f v}}}} [streams_read [$client -read]]
        }
        wait_blocked 1
        r xadd k 6-1 f v
        assert_equal {k {{6-1 {f v}}}} [streams_read [$second -read]]
        assert_equal {{5-1 c} 1 {6-1 d} 1} [pending k g]
    }

    test {a blocked reader times out} {
        set client [connect]
        $client -send xread block 20 streams k $
        assert_equal [null_array] [$client -readtyped]
        $client -send xreadgroup group g c block 20 streams k >
        assert_equal [null_array] [$client -readtyped]
        r multi
        r xread block 0 streams k $
        r xreadgroup group g c block 0 streams k >
        assert_equal [list array [list [null_array] [null_array]]] [typed exec]
    }

    test {blocked XREADGROUP: ended with an error when the key or the group is removed} {
        set nogroup "NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option"
        foreach {command text} {
            {del k} nogroup {unlink k} nogroup {flushall} nogroup {flushdb async} nogroup {rename k away} nogroup
            {move k 9} nogroup {swapdb 9 8} {} {swapdb 9 0} nogroup {set k v} wrong {rename list k} wrong
            {sort list store k} wrong {xgroup destroy k g} nogroup {pexpire k 1} nogroup
        } {
            r flushall
            r rpush list 1 2
            r xgroup create k g $ mkstream
            set client [waiter 1 xreadgroup group g c block 0 streams k >]
            r {*}$command
            if {$text eq ""} {
                assert_equal 1 [info_field blocked_clients]
                r xadd k 1-1 f v
                assert_equal k [lindex [streams_read [$client -read]] 0]
                continue
            }
            set text [expr {$text eq "wrong" ? "WRONGTYPE*" : $nogroup}]
            assert_error $text {$client -read}
            wait_blocked 0
        }
    }

    test {blocked XREAD keeps waiting through deletions and other types, and is served by a new stream} {
        r flushall
        r xadd k 3-3 f v
        set client [waiter 1 xread block 0 streams k $]
        r del k
        r set k v
        r del k
        r multi
        r xadd k 9-9 f v
        r del k
        r exec
        r xadd k 1-1 f v
        assert_equal 1 [info_field blocked_clients]
        r xadd other 5-5 f v
        r rename other k
        assert_equal {k {{5-5 {f v}}}} [streams_read [$client -read]]
    }

    test {setting back a group's last id does not wake readers; the next entry delivers the old ones too} {
        r flushall
        r xadd k 1-1 f v
        r xgroup create k g $
        set client [waiter 1 xreadgroup group g c block 0 streams k >]
        r xgroup setid k g 0
        r ping
        assert_equal 1 [info_field blocked_clients]
        r xadd k 2-1 f v
        assert_equal {1-1 2-1} [ids [lindex [streams_read [$client -read]] 1]]
    }

    test {CLIENT UNBLOCK ends the wait of a reader} {
        r flushall
        r xgroup create k g $ mkstream
        set client [connect]
        set id [$client client id]
        $client -send xreadgroup group g c block 0 streams k >
        wait_blocked 1
        assert_equal 1 [r client unblock $id]
        assert_equal [null_array] [$client -readtyped]
        $client -send xread block 0 streams k $
        wait_blocked 1
        assert_equal 1 [r client unblock $id error]
        assert_error "UNBLOCKED *" {$client -read}
    }

    test {many groups, consumers and pending entries} {
        r flushall
        set many [scaled 2000]
        fill k 1 $many
        for {set i 1} {$i <= $many} {incr i} {
            r xgroup create k g$i 0
            r xreadgroup group g1 c$i count 1 streams k >
        }
        assert_equal [list $many $many] [list [llength [r xinfo groups k]] [llength [r xinfo consumers k g1]]]
        assert_equal $many [lindex [r xpending k g1] 0]
        assert_equal $many [llength [dict get [lindex [dict get [r xinfo stream k full] groups] 0] consumers]]
        assert_equal 1 [r xgroup delconsumer k g1 c2]
        r unlink k
        assert_equal 0 [r exists k]
    }

    test {WATCH ignores changes of groups, but not a stream created by XGROUP} {
        r flushall
        r xadd k 1-1 f v
        r watch k new
        r xgroup create k g 0
        r xreadgroup group g c streams k >
        r xack k g 1-1
        r xsetid k 9-9
        r multi
        r ping
        assert_equal PONG [lindex [r exec] 0]
        r watch new
        r xgroup create new g $ mkstream
        r multi
        r ping
        assert_equal [null_array] [typed exec]
    }
}
