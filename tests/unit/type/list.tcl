# List commands but for those that wait: success, refusals, every form a list is kept in, random histories against
# a model. What they propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
proc null_array {} {expr {[resp3] ? {null null} : {null array}}}

# A list of these elements, kept in small nodes (quicklist) or not.
proc make_list {form key args} {
    r config set list-max-listpack-size [expr {$form eq {quicklist} ? 2 : -2}]
    r del $key
    r rpush $key {*}$args
}

# The same as the server, in plain Tcl.
namespace eval model {
    proc range {list first last} {
        set len [llength $list]
        if {$first < 0} {set first [expr {max(0, $first + $len)}]}
        if {$last < 0} {incr last $len}
        if {$first > $last} {return {}}
        lrange $list $first $last
    }
    proc rem {list count element} {
        set removed 0
        set order {}
        for {set i 0} {$i < [llength $list]} {incr i} {lappend order $i}
        if {$count < 0} {set order [lreverse $order]}
        set gone {}
        foreach i $order {
            if {[lindex $list $i] ne $element} continue
            if {$count && $removed == abs($count)} break
            lappend gone $i
            incr removed
        }
        foreach i [lsort -integer -decreasing $gone] {set list [lreplace $list $i $i]}
        return $list
    }
}

proc random_text {} {
    switch [random_below 5] {
        0 {return [expr {[random_below 7] - 3}]}
        1 {return [expr {[random_below 2] ? 9223372036854775807 : -100000}]}
        2 {return [string repeat [format %c [expr {97 + [random_below 3]}]] [random_below 300]]}
        default {return [format %c [expr {97 + [random_below 4]}]]}
    }
}

start_server {tags {list} overrides {enable-debug-command yes}} {
    test {list commands refuse too few and too many arguments} {
        foreach {command few many} {
            lpush {k} {}           rpush {k} {}              lpushx {k} {}                  rpushx {k} {}
            lpop {} {k 1 2}        rpop {} {k 1 2}           llen {} {k x}                  lindex {k} {k 1 2}
            lset {k 0} {k 0 a b}   lrange {k 0} {k 0 1 2}    ltrim {k 0} {k 0 1 2}          lrem {k 0} {k 0 a b}
            lpos {k} {}            linsert {k before a} {k before a b c}
            lmove {a b left} {a b left left x}               rpoplpush {a} {a b c}          lmpop {1 k} {}
        } {
            foreach arguments [list $few $many] {
                if {$arguments eq "" && $command ni {lpop rpop llen}} continue
                assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$arguments}
            }
        }
        assert_equal 0 [r exists k]
    }

    test {list commands refuse other types and leave the key alone} {
        r set s value
        r rpush l a
        foreach command {
            {lpush s a} {rpush s a} {lpushx s a} {rpushx s a} {lpop s} {rpop s} {lpop s 0} {rpop s 2} {llen s}
            {lindex s 0} {lset s 0 a} {lrange s 0 1} {ltrim s 0 1} {lrem s 0 a} {lpos s a} {lpos s a count 2}
            {linsert s before a b} {lmove s l left left} {lmove l s left right} {rpoplpush s l} {rpoplpush l s}
            {lmpop 1 s left} {lmpop 2 nope s left}
        } {assert_error "WRONGTYPE *" {r {*}$command}}
        assert_equal value [r get s]
        assert_equal a [r lrange l 0 -1]
        r del l
    }

    test {invalid numbers and options are refused in Valkey's order} {
        make_list listpack l a b
        foreach {command text} {
            {lindex l x} {ERR value is not an integer or out of range}
            {lset l x a} {ERR value is not an integer or out of range}
            {lset l 2 a} {ERR index out of range}
            {lset l -3 a} {ERR index out of range}
            {lset nope x a} {ERR no such key}
            {lrange nope x 1} {ERR value is not an integer or out of range}
            {ltrim nope 0 x} {ERR value is not an integer or out of range}
            {lrem nope x a} {ERR value is not an integer or out of range}
            {lpop nope -1} {ERR value is out of range, must be positive}
            {rpop l x} {ERR value is out of range, must be positive}
            {linsert nope beside a b} {ERR syntax error}
            {lmove nope l left up} {ERR syntax error}
            {lmpop 0 l left} {ERR numkeys should be greater than 0}
            {lmpop 2 l left} {ERR syntax error}
            {lmpop 1 l up} {ERR syntax error}
            {lmpop 1 l left count 0} {ERR count should be greater than 0}
            {lmpop 1 l left count 1 count 1} {ERR syntax error}
            {lmpop 1 l left count 0 more} {ERR count should be greater than 0}
            {lpos l a rank} {ERR syntax error}
            {lpos l a rank 0} {ERR RANK can't be zero*}
            {lpos l a rank -9223372036854775808} {ERR value is out of range, value must between*}
            {lpos l a count -1} {ERR COUNT can't be negative}
            {lpos l a maxlen -1} {ERR MAXLEN can't be negative}
        } {assert_error $text {r {*}$command}}
        assert_equal {a b} [r lrange l 0 -1]
    }

    foreach form {listpack quicklist} {
        test "a list is pushed to and popped from at both ends ($form)" {
            assert_equal 3 [make_list $form l a b c]
            assert_equal $form [r object encoding l]
            assert_equal 5 [r lpush l x y]
            assert_equal {y x a b c} [r lrange l 0 -1]
            assert_equal {bulk y} [typed lpop l]
            assert_equal {bulk c} [typed rpop l]
            assert_equal {array {{bulk b} {bulk a}}} [typed rpop l 2]
            assert_equal {array {}} [typed lpop l 0]
            assert_equal {array {{bulk x}}} [typed lpop l 9]
            assert_equal 0 [r exists l]
            assert_equal [null] [typed rpop l]
            assert_equal [null_array] [typed rpop l 0]
            assert_equal {0 0} [list [r lpushx l a] [r rpushx l a]]
            r rpush l m
            assert_equal {2 3} [list [r lpushx l a] [r rpushx l z]]
            assert_equal {a m z} [r lrange l 0 -1]
        }

        test "a list is read by index and range ($form)" {
            make_list $form l 0 1 two 3 -4 {}
            assert_equal {6 0 two {} -4} [list [r llen l] [r lindex l 0] [r lindex l 2] [r lindex l -1] [r lindex l 4]]
            assert_equal [list [null] [null]] [list [typed lindex l 6] [typed lindex l -7]]
            foreach {first last elements} {
                0 -1 {0 1 two 3 -4 {}}  1 2 {1 two}  -3 -2 {3 -4}  -100 1 {0 1}  4 100 {-4 {}}  3 2 {}  6 9 {}  0 -100 {}
            } {assert_equal $elements [r lrange l $first $last]}
            assert_equal {array {}} [typed lrange nope 0 -1]
        }

        test "elements are set, inserted, removed and trimmed ($form)" {
            make_list $form l a b c a b c a
            assert_equal OK [r lset l 1 B]
            assert_equal OK [r lset l 4294967295 [string repeat z 100]]
            assert_equal 8 [r linsert l before c new]
            assert_equal 9 [r linsert l after [string repeat z 100] last]
            assert_equal -1 [r linsert l after nope x]
            assert_equal 0 [r linsert nope before a x]
            assert_equal [list a B new c a b c [string repeat z 100] last] [r lrange l 0 -1]
            assert_equal 1 [r lrem l -1 c]
            assert_equal 2 [r lrem l 0 a]
            assert_equal 0 [r lrem l 0 nope]
            assert_equal [list B new c b [string repeat z 100] last] [r lrange l 0 -1]
            assert_equal OK [r ltrim l 1 -3]
            assert_equal {new c b} [r lrange l 0 -1]
            assert_equal OK [r ltrim l 0 -1]
            assert_equal OK [r ltrim l 5 9]
            assert_equal 0 [r exists l]
        }

        test "LPOS finds by rank, count and length ($form)" {
            make_list $form l a b c 1 2 3 c c
            foreach {command reply} {
                {c} {integer 2}              {c rank 2} {integer 6}                 {c rank -1} {integer 7}
                {3} {integer 5}              {c rank -2 count 0} {array {{integer 6} {integer 2}}}
                {c count 2} {array {{integer 2} {integer 6}}}                       {c count 0 maxlen 3} {array {{integer 2}}}
                {c rank 1 count 0 rank 2} {array {{integer 6} {integer 7}}}         {x count 0} {array {}}
                {c rank -1 maxlen 1} {integer 7}                                    {b rank -1 count 1 maxlen 6} {array {}}
            } {assert_equal $reply [typed lpos l {*}$command]}
            assert_equal [null] [typed lpos l x]
            assert_equal [null] [typed lpos l c rank 4]
            assert_equal {array {}} [typed lpos nope x count 1]
            assert_equal [null] [typed lpos nope x]
        }

        test "elements move between lists and within one ($form)" {
            make_list $form l a b c
            r del m
            assert_equal a [r lmove l m left right]
            assert_equal c [r lmove l m right left]
            assert_equal {{c a} b} [list [r lrange m 0 -1] [r lrange l 0 -1]]
            assert_equal b [r rpoplpush l m]
            assert_equal {0 {b c a}} [list [r exists l] [r lrange m 0 -1]]
            assert_equal [null] [typed lmove l m left left]
            assert_equal a [r rpoplpush m m]
            assert_equal a [r lmove m m left right]
            assert_equal {b c a} [r lrange m 0 -1]
            r ltrim m 0 0
            assert_equal b [r rpoplpush m m]
            assert_equal b [r lrange m 0 -1]
        }

        test "LMPOP takes from the first list that is there ($form)" {
            make_list $form l a b c d
            r del m
            assert_equal {array {{bulk l} {array {{bulk a}}}}} [typed lmpop 2 m l left]
            assert_equal {array {{bulk l} {array {{bulk d} {bulk c} {bulk b}}}}} [typed lmpop 2 m l right count 10]
            assert_equal [null_array] [typed lmpop 2 m l left]
            assert_equal 0 [r exists l]
        }
    }

    test {a list is converted to a quicklist at the limit of one node, and back at half of it} {
        r config set list-max-listpack-size 4
        r del l
        r rpush l 1 2 3 4
        assert_equal listpack [r object encoding l]
        r rpush l 5
        assert_equal quicklist [r object encoding l]
        r lpop l 2
        assert_equal quicklist [r object encoding l]
        r rpop l
        assert_equal {listpack {3 4}} [list [r object encoding l] [r lrange l 0 -1]]
        r linsert l before nope x
        r linsert l before 3 [string repeat x 8200]
        assert_equal quicklist [r object encoding l]
        r lset l 0 small
        assert_equal quicklist [r object encoding l]
        r lrem l 1 small
        assert_equal {listpack {3 4}} [list [r object encoding l] [r lrange l 0 -1]]
        r config set list-max-listpack-size -2
        foreach {len form} {8185 listpack 8186 quicklist} {
            r del l
            r rpush l [string repeat x $len]
            assert_equal $form [r object encoding l]
        }
        r del l
        for {set i 0} {$i < 818} {incr i} {r rpush l [format v%07d $i]}
        assert_equal listpack [r object encoding l]
        r rpush l v0000818
        assert_equal quicklist [r object encoding l]
        while {[r llen l] > 409} {r rpop l}
        assert_equal quicklist [r object encoding l]
        r rpop l
        assert_equal listpack [r object encoding l]
    }

    test {a large element is a node of its own, and DEBUG shows the nodes} {
        r debug quicklist-packed-threshold 100b
        r config set list-max-listpack-size 4
        r del l
        r rpush l a b [string repeat x 200] c d e f
        assert_match "*encoding:quicklist * ql_nodes:3 ql_avg_node:2.33 ql_listpack_max:4 ql_compressed:0 ql_uncompressed_size:*" \
            [r debug object l]
        assert_equal {Quicklist structure printed on stdout} [r debug quicklist l 1]
        assert_equal [string repeat x 200] [r lindex l 2]
        assert_equal 1 [r lrem l 1 [string repeat x 200]]
        assert_match "*ql_nodes:2 *" [r debug object l]
        r debug quicklist-packed-threshold 0
        assert_error {ERR argument must be a memory value bigger than 1 and smaller than 4gb} {r debug quicklist-packed-threshold 4gb}
        r set s x
        assert_error {ERR Not a quicklist encoded object.} {r debug quicklist s}
    }

    test {a list is copied, renamed, expired and deleted in each encoding} {
        foreach form {listpack quicklist} {
            make_list $form l a b [string repeat c 70] 1 2 3
            r copy l m
            assert_equal [r debug digest-value l] [r debug digest-value m]
            r rpush m x
            r expire l 1000
            r rename l n
            assert_equal 7 [r llen m]
            assert_equal [list a b [string repeat c 70] 1 2 3] [r lrange n 0 -1]
            assert_range [r ttl n] 1 1000
            assert {[r memory usage n] > 70}
            r unlink n
            r del m
        }
        assert_equal 0 [r exists l m n]
    }

    test {random histories agree with a model at every size of nodes} {
        for {set history 0} {$history < [scaled 12]} {incr history} {
            r config set list-max-listpack-size [lindex {-1 -2 1 2 3 5 20} [random_below 7]]
            r config set list-compress-depth [random_below 3]
            r debug quicklist-packed-threshold [lindex {0 0 10b 200b} [random_below 4]]
            r del l
            set want {}
            for {set i 0} {$i < 120} {incr i} {
                set element [random_text]
                set at [expr {[random_below 40] - 20}]
                set len [llength $want]
                set from_front [expr {$at < 0 ? $at + $len : $at}]
                switch [random_below 10] {
                    0 - 1 {r rpush l $element a; lappend want $element a}
                    2 {r lpush l $element; set want [linsert $want 0 $element]}
                    3 {
                        assert_equal [lindex $want 0] [r lpop l]
                        set want [lrange $want 1 end]
                    }
                    4 {
                        assert_equal [lreverse [lrange $want end-2 end]] [r rpop l 3]
                        set want [lrange $want 0 end-3]
                    }
                    5 {
                        if {$from_front < 0 || $from_front >= $len} {
                            assert_error ERR* {r lset l $at $element}
                        } else {
                            r lset l $at $element
                            lset want $from_front $element
                        }
                    }
                    6 - 7 {
                        set where [lsearch -exact $want a]
                        set after [random_below 2]
                        r linsert l [lindex {before after} $after] a $element
                        if {$where >= 0} {set want [linsert $want [expr {$where + $after}] $element]}
                    }
                    8 {
                        set count [expr {[random_below 5] - 2}]
                        r lrem l $count $element
                        set want [model::rem $want $count $element]
                    }
                    9 {
                        set first [expr {[random_below 6] - 2}]
                        set last [expr {[random_below 60] - 20}]
                        if {[random_below 2]} {
                            assert_equal [model::range $want $first $last] [r lrange l $first $last]
                        } else {
                            r ltrim l $first $last
                            set want [model::range $want $first $last]
                        }
                    }
                }
                assert_equal [llength $want] [r llen l]
            }
            assert_equal $want [r lrange l 0 -1]
        }
        r config set list-compress-depth 0
        r debug quicklist-packed-threshold 0
    }
}
