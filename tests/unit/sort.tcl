# SORT and SORT_RO: order of refusals, every option, random inputs compared with Tcl's lsort.
# Propagation is compared in helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
set no_number "ERR One or more scores can't be converted into double"

start_server {tags {sort}} {
    test {SORT refuses invalid options first, then other types, then non-numeric values} {
        r set s text
        r hset h f v
        r rpush words b a
        foreach {arguments error} [list {} "ERR wrong number of arguments for 'sort' command" \
            {s foo} "ERR syntax error" {none foo} "ERR syntax error" {none by} "ERR syntax error" \
            {none get} "ERR syntax error" {none limit 1} "ERR syntax error" {none store} "ERR syntax error" \
            {s limit x 1} "ERR value is not an integer or out of range" \
            {s limit 1 x foo} "ERR value is not an integer or out of range" \
            {s} "WRONGTYPE *" {h alpha} "WRONGTYPE *" {s store words} "WRONGTYPE *" \
            words $no_number {words store s} $no_number \
        ] {assert_error $error {r sort {*}$arguments}}
        assert_error "ERR syntax error" {r sort_ro words alpha store s}
        assert_equal text [r get s]
        assert_equal {b a} [r lrange words 0 -1]
    }

    test {SORT orders numbers of lists, sets and sorted sets} {
        r del l st z
        r rpush l 3 -1 2.5 1e2 +7 inf -inf 0
        r sadd st 10 9 8 1000000 -5
        r zadd z 3 100 2 20 1 3
        assert_equal {-inf -1 0 2.5 3 +7 1e2 inf} [r sort l]
        assert_equal {inf 1e2 +7 3 2.5 0 -1 -inf} [r sort l desc]
        assert_equal {inf 1e2 +7 3 2.5 0 -1 -inf} [r sort_ro l asc desc]
        assert_equal {-5 8 9 10 1000000} [r sort st]
        assert_equal {3 20 100} [r sort z]
        assert_equal {} [r sort none]
        assert_equal {} [r sort none get #]
        foreach bad {nan 0x10 "" " 1" "1 " 1e400 1d3 x} {
            r rpush l2 1 $bad
            assert_error $no_number {r sort l2}
            r del l2
        }
        r rpush l2 2 1\x00x
        assert_equal [list 1\x00x 2] [r sort l2]
        r del l2
        # Equal numbers are ordered by their text.
        r rpush l2 1 1.0 01 1 +1
        assert_equal {+1 01 1 1 1.0} [r sort l2]
        assert_equal {1.0 1 1 01 +1} [r sort l2 desc]
        r del l2
    }

    test {SORT ALPHA orders texts by their bytes} {
        r del l
        r rpush l B a 10 9 ab aB "" " " \xff
        r config set locale-collate C
        assert_equal [list "" " " 10 9 B a aB ab \xff] [r sort l alpha]
        assert_equal [list \xff ab aB a B 9 10 " " ""] [r sort l alpha desc]
        assert_equal {b a} [r sort words by nosort]
        assert_equal {a b} [r sort words alpha alpha]
    }

    test {SORT ALPHA in a locale compares up to the first NUL and keeps the order of equal texts} {
        # A locale that every glibc has, in which the order of characters is that of their bytes.
        if {[catch {r config set locale-collate C.UTF-8}]} return
        r del l
        r rpush l b\x00z b\x00a a \xc3\xa4 z "" abcdefgh1 abcdefgh 9 10
        set ascending [list "" 10 9 a abcdefgh abcdefgh1 b\x00z b\x00a z \xc3\xa4]
        assert_equal $ascending [r sort l alpha]
        assert_equal [lrange $ascending 3 6] [r sort l alpha limit 3 4]
        assert_equal [list \xc3\xa4 z b\x00z b\x00a abcdefgh1 abcdefgh a 9 10 ""] [r sort l alpha desc]
        # A stored result is the same on every server: whole texts are compared, by their bytes.
        r sort l alpha store sorted
        assert_equal [list b\x00a b\x00z] [r lrange sorted 6 7]
        r config set locale-collate C
    }

    test {SORT LIMIT takes any numbers} {
        r del l
        r rpush l 5 3 1 2 4
        foreach {offset count expected} {
            0 2 {1 2}  1 1 2  -1 2 {1 2}  1 -1 {2 3 4 5}  5 2 {}  0 0 {}  -5 -5 {1 2 3 4 5}  4 100 5
            2 9223372036854775807 {3 4 5}  9223372036854775807 9223372036854775807 {}
            -9223372036854775808 -9223372036854775808 {1 2 3 4 5}
        } {
            assert_equal $expected [r sort l limit $offset $count]
            assert_equal $expected [r sort l limit 7 7 limit $offset $count alpha]
        }
    }

    test {SORT BY other keys and fields, missing ones first or 0} {
        r del l
        r rpush l 1 2 3
        r mset w_1 30 w_2 20 w_3 10 t_1 b t_2 a t_3 c
        foreach i {1 2 3} {r hset h$i f [expr {($i * 2) % 3}] t [string index cab $i-1]}
        assert_equal {3 2 1} [r sort l by w_*]
        assert_equal {1 2 3} [r sort l by w_* desc]
        assert_equal {2 1 3} [r sort l by t_* alpha]
        assert_equal {3 2 1} [r sort l by h*->f]
        assert_equal {2 3 1} [r sort l by h*->t alpha]
        assert_equal {1 2 3} [r sort l by none_*]
        assert_equal {1 2 3} [r sort l by h*->none]
        assert_equal {1 2 3} [r sort l by h*]
        assert_error $no_number {r sort l by t_*}
        r del t_3
        assert_equal {3 2 1} [r sort l by t_* alpha]
        assert_equal {1 2 3} [r sort l by t_* alpha desc]
        # With a pattern without a star there is no sorting, and elements are not read.
        r rpush l x
        assert_equal {1 2 3 x} [r sort l by nosort]
        assert_equal {x 3 2 1} [r sort l by nosort desc]
        assert_equal {3 2} [r sort l by nosort desc limit 1 2]
        assert_equal {2 3} [r sort l by w_* by nosort limit 1 2]
        r del z
        r zadd z 1 a 2 b 3 c 0 d
        assert_equal {d a b c} [r sort z by nosort]
        assert_equal {b a} [r sort z by nosort desc limit 1 2]
        assert_equal {d a b c} [r sort z by # limit -2 -1]
        assert_equal {} [r sort z by nosort limit 4 1]
        assert_equal skiplist [r object encoding z]
    }

    test {SORT GET gives keys, fields and elements, and null for missing ones} {
        r del l
        r rpush l 2 1
        r mset d_1 one d_2 22
        r hset hd1 f->g text g 7
        assert_equal {one 1 22 2} [r sort l get d_* get #]
        assert_equal [list {bulk one} [null]] [lindex [typed sort l limit 0 1 get d_* get none*] 1]
        assert_equal {text {} 7 {}} [list {*}[r sort l get hd*->f->g] {*}[r sort l get hd*->g]]
        # None of these is a key or a field of a hash.
        assert_equal {{} {}} [r sort l get d_1]
        assert_equal {{} {}} [r sort l get hd*]
        assert_equal {{} {}} [r sort l get d_*->f]
        assert_equal {{} {}} [r sort l get hd*->]
        assert_equal {{} {}} [r sort l get hd->*]
        assert_equal {{} {}} [r sort l get ##]
        # Only the first star is replaced by the element.
        r set x1x* star
        assert_equal {star {}} [r sort l get x*x*]
        assert_equal {one 22} [r sort_ro l get d_*]
    }

    test {SORT STORE creates a list, or deletes the key} {
        r del l d
        r rpush l 2 3 1
        r set d text ex 1000
        assert_equal 3 [r sort l store d]
        assert_equal {1 2 3} [r lrange d 0 -1]
        assert_equal -1 [r ttl d]
        assert_equal listpack [r object encoding d]
        assert_equal 6 [r sort l get d_* get # store d]
        assert_equal {one 1 22 2 {} 3} [r lrange d 0 -1]
        assert_equal 3 [r sort l desc store l]
        assert_equal {3 2 1} [r lrange l 0 -1]
        assert_equal 3 [r sort l store e store d]
        assert_equal 0 [r exists e]
        assert_equal 0 [r sort l limit 5 1 store d]
        assert_equal 0 [r exists d]
        r set d text
        assert_equal 0 [r sort none store d]
        assert_equal 0 [r exists d]
        # STORE of a set is always sorted, even with BY a constant.
        r del st
        r sadd st b a c 10 9
        assert_equal 5 [r sort st by nosort store d]
        assert_equal {10 9 a b c} [r lrange d 0 -1]
        assert_equal 2 [r sort st by nosort desc limit 1 2 store d]
        assert_equal {b a} [r lrange d 0 -1]
        assert_equal {l y} [r command getkeys sort l limit store x get store store x store y]
    }

    test {SORT stores a list of any size} {
        r del st d
        for {set i 0} {$i < 2000} {incr i} {r sadd st [format %05d $i][string repeat x 40]}
        assert_equal 2000 [r sort st alpha store d]
        assert_equal quicklist [r object encoding d]
        assert_equal [r sort st alpha] [r lrange d 0 -1]
    }

    test {SORT with expired keys and fields} {
        r del l
        r debug set-active-expire 0
        r rpush l 1 2 3
        r mset e_2 5
        r set e_1 9 px 1
        r set e_3 4 px 1
        r hset eh1 f 2
        r hset eh2 f 1
        r hpexpire eh1 1 fields 1 f
        set then [lindex [r time] 0]
        wait_for_condition 300 10 {[lindex [r time] 0] > $then}
        set size [r dbsize]
        assert_equal {1 {} 3 {} 2 5} [r sort l by e_* get # get e_*]
        assert_equal {{} 1 {}} [r sort l get eh*->f]
        assert_equal [expr {$size - 3}] [r dbsize] ;# the hash without fields, too
        r debug set-active-expire 1
    } needs:debug

    test {SORT agrees with a model on random elements} {
        for {set round 0} {$round < [scaled 60]} {incr round} {
            r del l l2
            set elements {}
            set pairs {}
            set count [expr {1 + [random_below 200]}]
            for {set i 0} {$i < $count} {incr i} {
                set element [expr {[random_below 3] ? [random_below 1000] : [random_below 100000] / 8.0}]
                set weight [expr {[random_below 50] - 25}]
                lappend elements $element
                lappend pairs [list [format %04d $i] $weight]
                r set weight_[format %04d $i] $weight
            }
            r rpush l {*}$elements
            r rpush l2 {*}[lmap pair $pairs {lindex $pair 0}]
            set offset [random_below $count]
            set some [random_below 20]
            set last [expr {$offset + $some - 1}]
            set numbers [lsort -real [lsort $elements]]
            set texts [lsort $elements]
            set by [lmap pair [lsort -integer -index 1 $pairs] {lindex $pair 0}]
            assert_equal $numbers [r sort l]
            assert_equal [lreverse $numbers] [r sort l desc]
            assert_equal [lrange $numbers $offset $last] [r sort l limit $offset $some]
            assert_equal $texts [r sort l alpha]
            assert_equal [lrange [lreverse $texts] $offset $last] [r sort l alpha desc limit $offset $some]
            assert_equal $by [r sort l2 by weight_*]
            assert_equal [lrange $by $offset $last] [r sort l2 by weight_* limit $offset $some]
        }
    }
}

start_server {tags {sort cluster} overrides {cluster-enabled yes}} {
    test {BY and GET reach only keys of the slot in a cluster} {
        r cluster addslotsrange 0 16383
        wait_for_condition 100 100 {[string match *cluster_state:ok* [r cluster info]]}
        r rpush l 2 1
        r mset {{l}_1} 10 {{l}_2} 5
        assert_equal {2 1} [r sort l by {{l}_*}]
        assert_equal {10 1 5 2} [r sort l get {{l}_*} get #]
        assert_equal {2 1} [r sort l by nosort]
        assert_equal {{} {}} [r sort l get l]
        # ( and ) represent braces.
        foreach pattern {x_* (x)_* (*) ()* (l_* a*(l) (*l) l*} {
            set pattern [string map [list ( \x7b ) \x7d] $pattern]
            foreach option {BY GET} {
                assert_error "ERR $option option of SORT denied in Cluster mode when keys formed by the pattern may be\
                    in different slots." {r sort l $option $pattern foo}
            }
        }
        assert_error "CROSSSLOT *" {r sort l store other}
        assert_equal 2 [r sort l store {{l}other}]
    }
}
