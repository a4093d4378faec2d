# Stream commands on entries: success, refusals, ids at the ends of their range, nodes, both
# protocols. Propagation is compared in helpers/compare_propagation.py. Consumer groups:
# stream_groups.tcl.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
proc null_array {} {expr {[resp3] ? {null null} : {null array}}}
# XREAD's reply as alternating keys and entries.
proc streams_read {reply} {expr {[resp3] ? $reply : [concat {*}$reply]}}
# The keys of XREAD's reply in order, including repeated ones.
proc dict_keys_in_order {typed} {
    set keys {}
    if {[resp3]} {
        foreach {key entries} [lindex $typed 1] {lappend keys [lindex $key 1]}
    } else {
        foreach pair [lindex $typed 1] {lappend keys [lindex $pair 1 0 1]}
    }
    return $keys
}
# A map of XINFO as a dictionary.
proc info_of {args} {r xinfo {*}$args}
proc usual {} {r config set stream-node-max-entries 100 stream-node-max-bytes 4096}
# Adds entries from-1, (from+1)-1, ... to-1.
proc fill {key from to} {for {set i $from} {$i <= $to} {incr i} {r xadd $key $i-1 item $i}}
proc ids {entries} {
    set result {}
    foreach entry $entries {lappend result [lindex $entry 0]}
    return $result
}

set invalid_id "ERR Invalid stream ID specified as stream command argument"
set max 18446744073709551615

start_server {tags {stream} overrides {enable-debug-command yes}} {
    test {stream commands refuse too few and too many arguments} {
        foreach {command few many} {
            xadd {k 1-1 f} {}     xlen {} {k x}       xdel {k} {}           xrange {k -} {}
            xrevrange {k +} {}    xread {streams k} {} xtrim {k maxlen} {}  xsetid {k} {}
            xack {k g} {}         xpending {k} {}     xclaim {k g c 0} {}   xautoclaim {k g c 0} {}
            xreadgroup {group g c streams k} {}
        } {
            foreach arguments [list $few $many] {
                if {$arguments eq ""} continue
                assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$arguments}
            }
        }
        assert_error "ERR wrong number of arguments for 'xgroup|create' command" {r xgroup create k g}
        assert_error "ERR wrong number of arguments for 'xinfo|stream' command" {r xinfo stream}
        assert_error "ERR unknown subcommand*" {r xgroup nosuch k}
    }

    test {stream commands refuse other types and leave the key alone} {
        r set s value
        foreach command {
            {xadd s 1-1 f v} {xlen s} {xdel s 1-1} {xrange s - +} {xrevrange s + -} {xread streams s 0} {xtrim s maxlen 1}
            {xsetid s 1-1} {xack s g 1-1} {xpending s g} {xclaim s g c 0 1-1} {xautoclaim s g c 0 0} {xinfo stream s}
            {xreadgroup group g c streams s >} {xgroup create s g 0 mkstream} {xgroup setid s g 0} {xgroup destroy s g}
            {xgroup createconsumer s g c} {xgroup delconsumer s g c} {xinfo groups s} {xinfo consumers s g}
            {xpending s g - + 10} {xread block 0 streams s $}
        } {
            assert_error "WRONGTYPE *" {r {*}$command}
        }
        assert_equal value [r get s]
    }

    test {XADD: explicit, partial and automatic ids} {
        r del k
        assert_equal 1-1 [r xadd k 1-1 f v]
        assert_equal 1-2 [r xadd k 1-* f v]
        assert_equal 5-0 [r xadd k 5 f v]
        assert_equal 5-1 [r xadd k 5-* f v]
        assert_equal 7-0 [r xadd k 7-* f v]
        assert_match {1*-0} [r xadd k * f v]
        set last [lindex [r xrevrange k + - count 1] 0 0]
        assert_equal 6 [r xlen k]
        r del k
        assert_equal 0-1 [r xadd k 0-* f v]
        r xadd k $max-5 f v
        assert_equal $max-6 [r xadd k * f v]
        assert_equal $max-$max [r xadd k $max-$max f v]
        assert_error "ERR The stream has exhausted the last possible ID*" {r xadd k * f v}
        assert_error "ERR The stream has exhausted the last possible ID*" {r xadd k 1-1 f v}
        assert_equal 4 [r xlen k]
    }

    test {XADD increments the time when the sequence number is at its maximum} {
        r del k
        r xadd k 99999999999999-$max f v
        assert_equal 100000000000000-0 [r xadd k * f v]
        assert_error "ERR The ID specified in XADD is equal or smaller*" {r xadd k 99999999999999-* f v}
        r del k
        r xadd k 5-$max f v
        assert_error "ERR The ID specified in XADD is equal or smaller*" {r xadd k 5-* f v}
    }

    test {XADD refuses ids that do not ascend, and changes nothing} {
        r del k
        r xadd k 5-5 f v
        foreach id {5-5 5-4 4-9 1 0-1 4-*} {
            assert_error "ERR The ID specified in XADD is equal or smaller*" {r xadd k $id f v}
        }
        assert_error "ERR The ID specified in XADD must be greater than 0-0" {r xadd k 0-0 f v}
        assert_error "ERR The ID specified in XADD must be greater than 0-0" {r xadd new 0 f v}
        assert_equal {1 0} [list [r xlen k] [r exists new]]
    }

    test {malformed ids are refused} {
        r del k
        foreach id [list x 1-x x-1 -1 1- - + $ 1-1-1 "1 " "1 -1" " " "1- " 1-+ 1--1 ++1 0x1 "" \
                        18446744073709551616 1-18446744073709551616 1--18446744073709551616 \0 1-\0 [string repeat 0 127]1 (1 **] {
            assert_error $invalid_id {r xadd k $id f v}
            if {$id ni {$ +}} {assert_error $invalid_id {r xread streams k1 k $id 0}}
        }
        assert_equal 7-3 [r xadd k 007-003 f v]
        assert_error $invalid_id {r xdel k 7-3 x}
        assert_equal 1 [r xlen k]
    } {}

    test {words in the place of an id end at a zero byte, too} {
        r del s
        set z "\x00"
        r xadd s 1-1 a 1
        assert_equal 1-1 [lindex [r xrange s -$z +${z}x] 0 0]
        assert_equal 2-0 [r xadd s 2-*$z a 2]
        assert_error "ERR Invalid stream ID*" {r xadd s 2-*x a 2}
        assert_equal OK [r xgroup create s g 0]
        assert_equal OK [r xgroup create s last $$z]
        assert_equal {} [r xreadgroup group last c streams s >$z]
        assert_equal {1-1 2-0} [ids [dict get [streams_read [r xreadgroup group g c streams s >$z]] s]]
        assert_error "ERR The + ID is meaningless*" {r xreadgroup group g c streams s +$z}
        assert_equal {2-0} [ids [dict get [streams_read [r xread streams s +$z]] s]]
        assert_equal {} [r xread streams s $$z]
        assert_match *-0 [r xadd s *$z a 3]
    }

    test {ids may have blanks and signs before their numbers, and end at a zero byte} {
        foreach {id number} [list " 1" 1-0 +1 1-0 "\t\n\v\f\r 1-2" 1-2 1-+2 1-2 "1- 2" 1-2 " 1-*" 1-0 1\0x 1-0 1-2\0 1-2 \
                "1- -2" 1-18446744073709551614 1--18446744073709551615 1-1 "[string repeat { } 126]1" 1-0] {
            r del k
            if {$number eq {}} {
                assert_error $invalid_id {r xadd k $id f v}
            } else {
                assert_equal $number [r xadd k $id f v]
            }
        }
        r del k
        foreach id {1-0 1-1 2-0 3-0} {r xadd k $id f v}
        r xgroup create k g " 0"
        assert_equal {1-1 2-0} [ids [r xrange k "( 1" +2]]
        assert_equal {2-0} [ids [r xrevrange k " 2" 1-+2]]
        r xreadgroup group g c streams k >
        assert_equal {1-1} [r xclaim k g c 0 " 1-1" justid]
        assert_equal 1 [r xack k g +1-1]
        assert_equal 2 [r xdel k +1 "1- 1"]
        assert_equal 1 [r xtrim k minid = +3]
        assert_equal 3-0 [ids [r xrange k - +]]
    }

    test {XADD: odd fields, unknown options, NOMKSTREAM} {
        r del k
        assert_error "ERR wrong number of arguments for 'xadd' command" {r xadd k 1-1 f v g}
        assert_error "ERR wrong number of arguments for 'xadd' command" {r xadd k maxlen 10 1-1 f}
        assert_error $invalid_id {r xadd k nosuch 1-1 f v}
        assert_equal [null] [typed xadd k nomkstream 1-1 f v]
        assert_equal 0 [r exists k]
        r xadd k 1-1 f v
        assert_equal 2-1 [r xadd k nomkstream 2-1 f v]
    }

    test {contradictory trimming options are refused} {
        r del k
        r xadd k 1-1 f v
        foreach {options text} {
            {maxlen 1 minid 1} "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            {maxlen 1 maxlen 2} "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            {maxlen x} "ERR value is not an integer or out of range"
            {maxlen -1} "ERR The MAXLEN argument must be >= 0."
            {minid x} "ERR Invalid stream ID specified as stream command argument"
            {maxlen ~ 1 limit x} "ERR value is not an integer or out of range"
            {maxlen ~ 1 limit -1} "ERR The LIMIT argument must be >= 0."
            {limit 5} "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            {maxlen 1 limit 5} "ERR syntax error, LIMIT cannot be used without the special ~ option"
            {maxlen = 1 limit 0} "ERR syntax error, LIMIT cannot be used without the special ~ option"
        } {
            assert_error $text {r xadd k {*}$options 2-1 f v}
            assert_error $text {r xtrim k {*}$options}
        }
        assert_error "ERR syntax error, XTRIM must be called with a trimming strategy" {r xtrim k limit 0 limit 0}
        assert_error "ERR syntax error" {r xtrim k nomkstream maxlen 1}
        assert_equal 1 [r xlen k]
    }

    test {trimming by length and id, exact and by whole nodes} {
        r config set stream-node-max-entries 10
        r del k
        fill k 1 35
        assert_equal 0 [r xtrim k maxlen ~ 30]
        assert_equal 10 [r xtrim k maxlen ~ 25]
        assert_equal 3 [r xtrim k maxlen 22]
        assert_equal 14-1 [lindex [r xrange k - + count 1] 0 0]
        assert_equal 7 [r xtrim k minid ~ 25]
        assert_equal 2 [r xtrim k minid 23]
        assert_equal 0 [r xtrim k maxlen ~ 0 limit 5]
        assert_equal 8 [r xtrim k maxlen ~ 0 limit 9]
        assert_equal 5 [r xtrim k maxlen 0]
        assert_equal {0 1} [list [r xlen k] [r exists k]]
        assert_equal 0 [r xtrim none maxlen 0]
        assert_equal 36-1 [r xadd k maxlen 0 36-1 f v]
        assert_equal 0 [r xlen k]
        usual
    }

    test {nodes are limited in entries and in bytes} {
        r del k
        r config set stream-node-max-entries 3
        fill k 1 7
        assert_equal 3 [dict get [info_of stream k] radix-tree-keys]
        r config set stream-node-max-entries 0 stream-node-max-bytes 100
        r del k
        for {set i 1} {$i <= 5} {incr i} {r xadd k $i-1 f [string repeat x 90]}
        assert_equal 5 [dict get [info_of stream k] radix-tree-keys]
        r config set stream-node-max-bytes 0
        r del k
        for {set i 1} {$i <= 300} {incr i} {r xadd k $i-1 f [string repeat x 90]}
        assert_equal 1 [dict get [info_of stream k] radix-tree-keys]
        usual
    }

    test {XDEL: counts, repeated ids, missing keys} {
        r del k
        fill k 1 5
        assert_equal 2 [r xdel k 2-1 2-1 4-1 9-9]
        assert_equal {1-1 3-1 5-1} [ids [r xrange k - +]]
        assert_equal 0 [r xdel none x]
        assert_equal {4-1 1-1 5} [list {*}[dict get [info_of stream k] max-deleted-entry-id] \
                                      {*}[dict get [info_of stream k] recorded-first-entry-id] \
                                      [dict get [info_of stream k] entries-added]]
        assert_equal 3 [r xdel k 1-1 3-1 5-1]
        assert_equal {stream 0 0-0} [list [r type k] [r xlen k] [dict get [info_of stream k] recorded-first-entry-id]]
    }

    test {XRANGE and XREVRANGE: ends, exclusive ids, COUNT} {
        r del k
        fill k 1 5
        r xadd k 5-2 a 1 b two
        assert_equal {1-1 2-1 3-1 4-1 5-1 5-2} [ids [r xrange k - +]]
        assert_equal {5-2 5-1 4-1 3-1 2-1 1-1} [ids [r xrevrange k + -]]
        assert_equal {2-1 3-1} [ids [r xrange k 2 3]]
        assert_equal {5-1 5-2} [ids [r xrange k 5 5]]
        assert_equal {3-1 4-1} [ids [r xrange k (2-1 (5-1]]
        assert_equal {4-1 3-1} [ids [r xrevrange k (5-1 (2-1]]
        assert_equal {} [r xrange k 3 2]
        assert_equal {5-2} [ids [r xrevrange k + - count 5 count 1]]
        assert_equal {5-2 {a 1 b two}} [lindex [r xrange k 5-2 5-2] 0]
        assert_equal {array {{array {{bulk 1-1} {array {{bulk item} {bulk 1}}}}}}} [typed xrange k 1 1]
        assert_equal [null_array] [typed xrange k - + count 0]
        assert_equal [null_array] [typed xrevrange k + - count -1]
        assert_equal {array {}} [typed xrange none - + count 0]
        assert_error "ERR invalid start ID for the interval" {r xrange k ($max-$max +}
        assert_error "ERR invalid end ID for the interval" {r xrange k - (0-0}
        foreach end {(- (+ ( x} {assert_error $invalid_id {r xrange k $end +}}
        assert_error "ERR value is not an integer or out of range" {r xrange k - + count 9223372036854775808}
        assert_equal 6 [llength [r xrange k - + count 9223372036854775807]]
        assert_error "ERR syntax error" {r xrange k - + limit 1}
        assert_error "ERR syntax error" {r xrange k - + count}
    }

    test {XREAD: several streams, COUNT, $ and +} {
        r del k j
        fill k 1 3
        fill j 1 2
        assert_equal {k {{2-1 {item 2}} {3-1 {item 3}}}} [streams_read [r xread streams k j 1-1 2-1]]
        assert_equal {k {{1-1 {item 1}}} j {{1-1 {item 1}}}} [streams_read [r xread count 1 streams k j 0 0]]
        assert_equal {k {{3-1 {item 3}}}} [streams_read [r xread streams k none + +]]
        assert_equal {k k} [dict_keys_in_order [typed xread streams k k 2 2-1]]
        assert_equal [null_array] [typed xread streams k $]
        assert_equal [null_array] [typed xread streams none 0]
        assert_equal 3 [llength [lindex [streams_read [r xread count -5 streams k 0]] 1]]
        if {[resp3]} {
            assert_equal map [lindex [typed xread streams k 2] 0]
        } else {
            assert_equal array [lindex [typed xread streams k 2] 0]
        }
    }

    test {XREAD: refusals} {
        assert_error "ERR Unbalanced 'xread' list of streams:*" {r xread streams k j 0}
        assert_error "ERR The GROUP option is only supported by XREADGROUP.*" {r xread group g c streams k 0}
        assert_error "ERR The NOACK option is only supported by XREADGROUP.*" {r xread noack streams k 0}
        assert_error "ERR The > ID can be specified only when calling XREADGROUP*" {r xread streams k >}
        assert_error "ERR syntax error" {r xread count 1 k 0}
        assert_error "ERR value is not an integer or out of range" {r xread count 9223372036854775808 streams k 0}
        assert_error "ERR timeout is not an integer or out of range" {r xread block 1.5 streams k 0}
        assert_error "ERR timeout is negative" {r xread block -1 streams k 0}
        assert_error "ERR timeout is out of range" {r xread block 9223372036854775807 streams k 0}
    }

    test {XSETID: options, bounds, refusals} {
        r del k
        assert_error "ERR no such key" {r xsetid k 1-1}
        fill k 1 3
        assert_equal OK [r xsetid k 10-1]
        assert_error "ERR The ID specified in XADD is equal or smaller*" {r xadd k 9-1 f v}
        assert_equal OK [r xsetid k 10-1 entriesadded 100 maxdeletedid 2-2]
        assert_equal {10-1 2-2 100} [list [dict get [info_of stream k] last-generated-id] \
                                         [dict get [info_of stream k] max-deleted-entry-id] \
                                         [dict get [info_of stream k] entries-added]]
        foreach {arguments text} {
            {2-1} "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
            {3-0} "ERR The ID specified in XSETID is smaller than the target stream top item"
            {9-9 entriesadded 2} "ERR The entries_added specified in XSETID is smaller than the target stream length"
            {9-9 entriesadded -1} "ERR entries_added must be positive"
            {9-9 entriesadded x} "ERR value is not an integer or out of range"
            {9-9 maxdeletedid 10-0} "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            {9-9 maxdeletedid x} "ERR Invalid stream ID specified as stream command argument"
            {9-9 nosuch 1} "ERR syntax error"
            {9-9 entriesadded} "ERR syntax error"
        } {
            assert_error $text {r xsetid k {*}$arguments}
        }
        assert_equal 10-1 [dict get [info_of stream k] last-generated-id]
    }

    test {XINFO STREAM} {
        r del k
        assert_error "ERR no such key" {r xinfo stream k}
        fill k 1 12
        r xdel k 1-1
        set all [info_of stream k]
        assert_equal [list length radix-tree-keys radix-tree-nodes last-generated-id max-deleted-entry-id entries-added \
                          recorded-first-entry-id groups first-entry last-entry] [dict keys $all]
        assert_equal {11 1 2 12-1 1-1 12 2-1 0} [lrange [dict values $all] 0 7]
        assert_equal {{2-1 {item 2}} {12-1 {item 12}}} [lrange [dict values $all] 8 9]
        assert_equal 10 [llength [dict get [info_of stream k full] entries]]
        assert_equal 3 [llength [dict get [info_of stream k full count 3] entries]]
        assert_equal 11 [llength [dict get [info_of stream k full count 0] entries]]
        assert_equal 10 [llength [dict get [info_of stream k full count -7] entries]]
        assert_error "ERR unknown subcommand*" {r xinfo stream k nosuch}
        assert_error "ERR unknown subcommand*" {r xinfo stream k full count}
        assert_error "ERR value is not an integer or out of range" {r xinfo stream k full count x}
        r xtrim k maxlen 0
        assert_equal {{} {}} [lrange [dict values [info_of stream k]] 8 9]
    }

    test {TYPE, OBJECT ENCODING, SCAN TYPE, COPY, RENAME, MEMORY USAGE, INFO keysizes} {
        r flushall
        fill k 1 300
        assert_equal {stream stream} [list [r type k] [r object encoding k]]
        assert_equal k [lindex [r scan 0 type stream count 100] 1]
        set digest [r debug digest-value k]
        assert_equal 1 [r copy k j]
        assert_equal $digest [r debug digest-value j]
        r xadd j 999-1 f v
        assert_equal 300 [r xlen k]
        r rename k l
        assert_equal $digest [r debug digest-value l]
        assert {[r memory usage l] > 300 * 4}
        assert_match *db0_distrib_streams_items:256=2* [r info keysizes]
        assert_error "WRONGTYPE *" {r sort l}
    }

    test {a digest depends on live entries, not on counters, groups or nodes} {
        r flushall
        fill k 1 5
        set digest [r debug digest-value k]
        r xadd k 6-1 f v
        assert_not_equal $digest [r debug digest-value k]
        r xdel k 6-1
        r xsetid k 99-1
        r xgroup create k g 0
        assert_equal $digest [r debug digest-value k]
        r config set stream-node-max-entries 2
        fill j 1 5
        assert_equal $digest [r debug digest-value j]
        usual
    }

    test {values of all kinds are returned unchanged} {
        r del k
        set values [list "" 0 -1 007 9223372036854775807 9223372036854775808 -9223372036854775808 [string repeat x 63] \
                        [string repeat y 64] [string repeat z 5000] "a\r\nb" \0\1]
        set i 0
        foreach value $values {r xadd k [incr i]-1 f $value $value v}
        foreach value $values entry [r xrange k - +] {assert_equal [list f $value $value v] [lindex $entry 1]}
    }

    test {random sequences of commands agree with a model} {
        r del k
        r config set stream-node-max-entries 7
        set model {}
        set next 1
        for {set step 0} {$step < [scaled 1500]} {incr step} {
            switch [random_below 10] {
                0 - 1 {
                    set id [lindex $model [random_below [expr {[llength $model] + 1}]]]
                    if {$id eq ""} continue
                    assert_equal 1 [r xdel k $id]
                    set model [lsearch -all -inline -not -exact $model $id]
                }
                2 {
                    set keep [random_below 60]
                    r xtrim k maxlen $keep
                    set model [lrange $model end-[expr {$keep - 1}] end]
                }
                default {
                    set id [incr next [random_below 3]]-[incr next]
                    r xadd k $id field[random_below 2] $id
                    lappend model $id
                }
            }
            if {$step % 50 == 0} {
                assert_equal $model [ids [r xrange k - +]]
                assert_equal [lreverse $model] [ids [r xrevrange k + -]]
                assert_equal [llength $model] [r xlen k]
            }
        }
        usual
    }
}
