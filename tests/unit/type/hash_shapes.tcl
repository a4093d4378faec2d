# Hashes that share their field names: they get a shape, and nothing but memory tells them from others.

source $::tests_dir/support/replication.tcl

# As many hashes with these fields as are enough for a shape in every build, and one more: $prefix:0 and so on.
proc make_hashes {prefix count args} {
    for {set i 0} {$i < $count} {incr i} {
        set words {}
        foreach field $args {lappend words $field "$field value $i"}
        r hset $prefix:$i {*}$words
    }
}

proc shape {key} {r debug hash-shapes $key}
proc counts_agree {{level -0}} {assert_equal OK [r $level debug hash-shapes]}

# Runs the command on a key of database 0, where hashes get shapes, and of database 9, where they do not; the
# replies must be equal.
proc both {args} {
    r config set hash-max-shapes 0
    r select 9
    set want [catch {r {*}$args} plain]
    r config set hash-max-shapes 4096
    r select 0
    set got [catch {r {*}$args} shaped]
    assert_equal [list $want $plain] [list $got $shaped] $args
    return $shaped
}

start_server {tags {hash} overrides {enable-debug-command yes save {}}} {
    test {hashes with the same fields get a shape, and look as before} {
        make_hashes user 40 id name email
        assert {[shape user:39] > 0}
        assert_equal [shape user:38] [shape user:39]
        assert_equal listpack [r object encoding user:39]
        assert_equal {id {id value 39} name {name value 39} email {email value 39}} [r hgetall user:39]
        assert_equal {{email value 39} {} {id value 39}} [r hmget user:39 email nope id]
        assert_equal 13 [r hstrlen user:39 name]
        assert {[r memory usage user:39] < [r memory usage user:0]}
        counts_agree
    }

    test {a shape is found field by field} {
        for {set i 0} {$i < 100} {incr i} {
            foreach field {first second third} {r hset step:$i $field $i}
        }
        assert {[shape step:99] > 0}
        assert_equal {first 99 second 99 third 99} [r hgetall step:99]
        counts_agree
    }

    test {names that nobody shares make no shape} {
        set before [info_field hash_shapes]
        for {set i 0} {$i < 300} {incr i} {r hset rare:$i a$i 1 b$i 2}
        assert_equal 0 [shape rare:299]
        assert_equal $before [info_field hash_shapes]
    }

    test {hashes leave their shape and find another one} {
        make_hashes leave 40 a b c
        assert_equal 1 [r hdel leave:39 b]
        assert_equal {a {a value 39} c {c value 39}} [r hgetall leave:39]
        for {set i 0} {$i < 39} {incr i} {r hdel leave:$i b}
        assert {[shape leave:38] > 0}
        assert_not_equal [shape leave:38] [shape user:39]
        assert_equal 1 [r hset leave:38 b again]
        assert_equal {a {a value 38} c {c value 38} b again} [r hgetall leave:38]
        assert_equal 2 [r hdel leave:38 a c]
        assert_equal 1 [r hdel leave:38 b]
        assert_equal 0 [r exists leave:38]
        counts_agree
    }

    test {what a record cannot hold makes it a listpack or a table} {
        make_hashes big 40 a b c
        r hset big:39 b [string repeat x 65]
        assert_equal {hashtable 0} [list [r object encoding big:39] [shape big:39]]
        assert_equal [list {a value 39} [string repeat x 65] {c value 39}] [r hmget big:39 a b c]
        counts_agree
    }

    test {a field with an expiry time makes it a table} {
        make_hashes timed 40 a b c
        assert_equal 1 [r hexpire timed:39 1000 fields 1 b]
        assert_equal {hashtable 0} [list [r object encoding timed:39] [shape timed:39]]
        assert_equal {{a value 39} {b value 39} {c value 39}} [r hmget timed:39 a b c]
        r hsetex timed:38 ex 1000 fields 1 a new
        assert_equal {new {b value 38} {c value 38}} [r hmget timed:38 a b c]
        r hsetex timed:37 fields 2 a new d newer
        assert_equal {a new b {b value 37} c {c value 37} d newer} [r hgetall timed:37]
        counts_agree
    }

    test {numbers grow and shrink in place} {
        make_hashes count 40 n m
        r hset count:39 n 1
        foreach {by sum} {1 2 125 127 1 128 4000 4128 30000 34128 10000000 10034128 9000000000 9010034128 -9010034129 -1} {
            assert_equal $sum [r hincrby count:39 n $by]
            assert_equal [list n $sum m {m value 39}] [r hgetall count:39]
        }
        assert_equal 10.5 [r hincrbyfloat count:39 other 10.5]
        assert_equal 0.5 [r hincrbyfloat count:38 n2 0.5]
        assert_error "*not an integer*" {r hincrby count:39 m 1}
        counts_agree
    }

    test {COPY, RENAME, MOVE, RESTORE and expiry keep the counts right} {
        make_hashes keep 40 a b
        assert_equal 1 [r copy keep:39 copy]
        assert_equal [r hgetall keep:39] [r hgetall copy]
        assert_equal [shape keep:39] [shape copy]
        r rename copy renamed
        r move renamed 3
        r restore restored 0 [r dump keep:39]
        assert_equal [shape keep:39] [shape restored]
        assert_equal [r dump keep:39] [r dump restored]
        r set keep:38 text
        r pexpire keep:37 1
        wait_for_condition 500 10 {[r exists keep:37] == 0}
        r rename keep:36 keep:35
        r copy keep:34 keep:33 replace
        r unlink keep:32
        counts_agree
        r select 3
        assert_equal {a {a value 39} b {b value 39}} [r hgetall renamed]
        r select 0
        r swapdb 0 3
        counts_agree
        r swapdb 0 3
        counts_agree
    }

    test {HRANDFIELD gives each field of a record} {
        make_hashes random 40 a b c d
        foreach count {1 -1 2 3 -3 4 -20 9} {
            for {set i 0} {$i < 50} {incr i} {
                set fields [r hrandfield random:39 $count]
                assert_equal [expr {$count < 0 ? -$count : min($count, 4)}] [llength $fields]
                if {$count > 0} {assert_equal [llength $fields] [llength [lsort -unique $fields]]}
                foreach field $fields {incr seen($field)}
            }
        }
        assert_equal {a b c d} [lsort [array names seen]]
        for {set i 0} {$i < 100} {incr i} {incr one([r hrandfield random:39])}
        assert_equal {a b c d} [lsort [array names one]]
        set pairs [r hrandfield random:39 9 withvalues]
        assert_equal {{a value 39} {b value 39} {c value 39} {d value 39}} \
            [lsort [expr {[resp3] ? [lmap pair $pairs {lindex $pair 1}] : [dict values $pairs]}]]
    }

    test {the same commands have the same replies with and without shapes} {
        r flushall
        set names [list id name 17 -5 007 "" state [string repeat x 60]]
        set keys 40
        for {set i 0} {$i < $keys} {incr i} {
            both hset k$i id 1 name 2 17 3
            both hset k$i state on -5 x
            if {$i % 2} {both hdel k$i 17} else {both hdel k$i state -5}
        }
        assert {[info_field hash_shapes_hashes] > 10}
        for {set round 0} {$round < [scaled 3000]} {incr round} {
            set key k[random_below $keys]
            set field [lindex $names [expr {[random_below 8] ? [random_below 4] : [random_below 8]}]]
            set value [lindex [list x 1 127 128 4096 70000 -1 "" [string repeat v [random_below 64]]] [random_below 9]]
            if {[random_below 8] == 0} {
                both del $key
                both hset $key id 1 name 2 17 3
            }
            switch [random_below 12] {
                0 - 1 - 2 {both hset $key id 1 name $value 17 [random_below 1000]}
                3 - 4 {both hset $key $field $value}
                5 {both hset $key $field $value name other $field last state on}
                6 {both hdel $key $field}
                7 {both hdel $key id $field name}
                8 {both hsetnx $key $field $value}
                9 {both hincrby $key $field 3}
                10 {both hmget $key $field id nope}
                11 {
                    set to k[random_below $keys]
                    if {$to ne $key} {both copy $key $to replace}
                }
            }
            if {$round % 20 == 0} {
                foreach command {hgetall hkeys hvals hlen dump type {object encoding} {debug digest-value}} {
                    both {*}$command $key
                }
                both hscan $key 0
            }
            if {$round % 500 == 0} counts_agree
        }
        assert {[info_field hash_shapes_hashes] > 2}
    }

    foreach how {{debug reload} {debug loadaof}} {
        test "records survive $how" {
            r flushall
            r config set appendonly [expr {$how eq "debug loadaof" ? "yes" : "no"}]
            wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0}
            make_hashes user 60 id name email
            make_hashes 12345 60 1 2 -3
            r hset user:59 extra 1
            r hset user:58 name 5
            set digest [r debug digest]
            r {*}$how
            assert_equal $digest [r debug digest]
            assert {[shape user:57] > 0}
            assert {[shape 12345:59] > 0}
            assert_equal {1 {1 value 59} 2 {2 value 59} -3 {-3 value 59}} [r hgetall 12345:59]
            counts_agree
            r config set appendonly no
        }
    }

    test {the payload of a record is that of a listpack} {
        r flushall
        r config set hash-max-shapes 0
        make_hashes user 50 id name 3
        assert_equal 0 [shape user:49]
        foreach i {0 20 49} {lappend plain [r dump user:$i]}
        r config set hash-max-shapes 4096
        r flushall
        make_hashes user 50 id name 3
        assert {[shape user:49] > 0}
        foreach i {0 20 49} {lappend with [r dump user:$i]}
        assert_equal $plain $with
    }

    test {hashes are written as they were while a snapshot without a fork is made} {
        r config set snapshot-mode inline
        r config set rdb-key-save-delay 1000
        for {set i 0} {$i < 300} {incr i} {r hset user:$i id $i name n$i email e$i}
        set digest [r debug digest]
        r bgsave
        for {set i 0} {$i < 300} {incr i 3} {
            r hset user:$i name changed
            r hdel user:[expr {$i + 1}] name
            r del user:[expr {$i + 2}]
        }
        counts_agree
        r config set rdb-key-save-delay 0
        wait_for_condition 500 20 {[info_field rdb_bgsave_in_progress] == 0}
        assert_equal ok [info_field rdb_last_bgsave_status]
        r debug reload nosave
        assert_equal $digest [r debug digest]
        counts_agree
        r config set snapshot-mode auto
    }

    foreach {how command} {
        flushall {flushall sync}   {flushall async} {flushall async}   flushdb {flushdb sync}   {flushdb async} {flushdb async}
    } {
        foreach {many count} {few 50 many 3000} {
            test "$how of $many records leaves no user of a shape" {
                r flushall
                make_hashes user $count id name email
                r select 4
                make_hashes other [expr {$count / 2}] id name email
                assert {[info_field hash_shapes_hashes] > 0}
                r {*}$command
                r select 0
                wait_for_condition 500 10 {[info_field lazyfree_pending_objects] == 0}
                counts_agree
                r flushdb
                make_hashes user 20 id name email
                counts_agree
                r {*}$command
                wait_for_condition 500 10 {[info_field lazyfree_pending_objects] == 0 &&
                    [info_field hash_shapes_hashes] == 0}
                counts_agree
            }
        }
    }

    test {the directives limit new shapes, and are checked} {
        r flushall
        foreach {name values} {
            hash-max-shapes {-1 65536 x}   hash-max-shape-fields {-1 256 x}   hash-max-shape-names {-1 65536 x}
        } {
            foreach value $values {assert_error "ERR CONFIG SET failed*$name*" {r config set $name $value}}
        }
        r config set hash-max-shape-fields 2
        make_hashes wide 40 w1 w2 w3
        assert_equal 0 [shape wide:39]
        make_hashes narrow 40 w1 w2
        assert {[shape narrow:39] > 0}
        r hset narrow:39 w3 1
        assert_equal 0 [shape narrow:39]
        r config set hash-max-shape-fields 128
        r config set hash-max-shape-names 10
        make_hashes long 40 [string repeat l 11]
        assert_equal 0 [shape long:39]
        r config set hash-max-shape-names 4096
        r config set hash-max-shapes 1
        set refused [info_field hash_shapes_refused]
        make_hashes more 40 m1 m2
        assert_equal 0 [shape more:39]
        assert {[info_field hash_shapes_refused] > $refused}
        r config set hash-max-shapes 0
        make_hashes narrow 40 w1 w2
        assert {[shape narrow:38] > 0}
        r del narrow:38
        make_hashes narrow 40 w1 w2
        assert_equal 0 [shape narrow:38]
        r config set hash-max-shapes 4096
        counts_agree
    }

    test {INFO, MEMORY USAGE and MEMORY EXPLAIN count shapes} {
        r flushall
        # What the background thread frees is subtracted when it comes back.
        wait_for_condition 500 20 {[info_field hash_shapes_hashes] == 0}
        make_hashes user 1000 id name email
        assert_range [info_field hash_shapes_hashes] 900 1000
        assert {[info_field hash_shapes_saved_bytes] > 10000}
        assert {[info_field hash_shapes_bytes] > 0}
        assert_match "*Field names shared by hashes: * shapes, * saved*id, name, email * saved, 3 fields, * hashes*" \
            [r memory explain]
        r hset rare xd {id value 999} nbme {name value 999} emoil {email value 999}
        assert_equal 0 [shape rare]
        assert {[r memory usage user:999] < [r memory usage rare]}
        assert_error "ERR no such key" {r debug hash-shapes nope}
    }
}

start_server {tags {hash repl tls:skip} overrides {enable-debug-command yes save {} repl-diskless-sync-delay 0}} {
    start_server {tags {hash repl} overrides {enable-debug-command yes save {} repl-diskless-sync-delay 0}} {
        foreach load {disabled flush-before-load swapdb} {
            test "a replica has shapes of its own after a full synchronisation and from the stream ($load)" {
                r replicaof no one
                r config set repl-diskless-load $load
                r flushall
                r -1 flushall
                make_hashes mine 50 x y z
                for {set i 0} {$i < 200} {incr i} {r -1 hset user:$i id $i name n$i}
                r replicaof [srv -1 host] [srv -1 port]
                link_is up
                for {set i 100} {$i < 300} {incr i} {r -1 hset user:$i id $i name m$i}
                r -1 hdel user:299 name
                same_data -1 -0
                assert_equal {id 250 name m250} [r hgetall user:250]
                assert {[info_field hash_shapes_hashes] > 250}
                counts_agree
                counts_agree -1
                r -1 flushall async
                r -1 set last v
                same_data -1 -0
                wait_for_condition 500 10 {[info_field lazyfree_pending_objects] == 0 &&
                    [info_field hash_shapes_hashes] == 0}
                counts_agree
            }
        }
    }
}
