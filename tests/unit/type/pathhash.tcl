# SPDX-License-Identifier: BSD-3-Clause
#
# Path hashes, a type of Valkey 9.2: every command with its options and errors, keyspace events, ACL, and what deals with
# keys of any type. Files and replicas: integration/pathhash.

proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
set positive "ERR value is out of range, must be positive"

# A client that hears all keyspace events of database 0 as {event key ...}.
proc listen {} {
    set c [connect 3]
    $c -send psubscribe __keyevent@0__:*
    $c -push
    return $c
}
proc heard {client} {
    $client ping
    set events {}
    foreach push [$client -pushes] {lappend events [string range [lindex $push 2] 15 end] [lindex $push 3]}
    return $events
}

proc arity {name} {return "ERR wrong number of arguments for '$name' command"}

# Several paths, some of which are prefixes of others.
proc fill {key} {
    r del $key
    r phmset $key "" fields 1 f root /a fields 2 f a n 1 /a/b fields 1 f ab /a/b/c fields 1 f abc /ab fields 1 f other
}

start_server {tags {pathhash}} {
    test {PHSET sets fields of a path, PHGET always replies an array} {
        r del k
        assert_equal {status OK} [r -typed phset k /a fields 2 f v n 12]
        assert_equal {v 12} [r phget k /a f n]
        assert_equal {v} [r phget k /a f]
        assert_equal [list array [list {bulk v} [null] {bulk v}]] [r -typed phget k /a f none f]
        assert_equal [list array [list [null]]] [r -typed phget k /none f]
        assert_equal [list array [list [null]]] [r -typed phget none /a f]
        r phset k /a fields 3 f w f x g {}
        assert_equal {x 12 {}} [r phget k /a f n g]
        assert_equal {pathhash pathhash} [list [r type k] [r object encoding k]]
    }

    test {PHSET with FNX and FXX sets all fields or none} {
        r del k
        assert_equal [null] [r -typed phset k p fxx fields 1 f v]
        assert_equal 0 [r exists k]
        assert_equal OK [r phset k p FNX fields 2 f v g w]
        assert_equal [null] [r -typed phset k p fnx fields 2 h 1 g 2]
        assert_equal [null] [r -typed phset k p fxx fields 2 h 1 g 2]
        assert_equal {f v g w} [r phgetall k p]
        assert_equal OK [r phset k p fxx fields 2 f 1 g 2]
        assert_equal OK [r phset k other fnx fields 1 f 1]
        assert_equal {1 2} [r phget k p f g]
    }

    test {PHMSET sets fields of several paths, PHMGET replies one flat array} {
        r del k
        assert_equal {status OK} [r -typed phmset k a fields 1 f 1 b fields 2 f 2 g 3 a FIELDS 1 f 4]
        assert_equal 2 [r phcard k]
        assert_equal [list array [list {bulk 4} [null] {bulk 3} {bulk 2} [null]]] \
            [r -typed phmget k a fields 2 f g b fields 2 g f c FIELDS 1 f]
        assert_equal [list array [list [null]]] [r -typed phmget none a fields 1 f]
    }

    test {errors of PHSET, PHMSET and PHMGET; a refused command changes nothing} {
        r del k
        r set s x
        foreach {error words} [list \
            "ERR syntax error" {phset k p field 1 f v} \
            "ERR syntax error" {phset k p fields 2 f v} \
            "ERR syntax error" {phset k p fields 1 f v g w} \
            "ERR syntax error" {phset k p fields 1 f v g} \
            "ERR syntax error" {phset k p fnx fxx fields 1 f v} \
            "ERR syntax error" {phset k p fnx fnx fields 1 f v} \
            "ERR syntax error" {phset k p nx fields 1 f v} \
            $positive {phset k p fields 0 f v} \
            $positive {phset k p fields -1 f v} \
            $positive {phset k p fields x f v} \
            [arity phset] {phset k p fields 1 f} \
            [arity phmset] {phmset k p fields 1 f} \
            [arity phmset] {phmset k p fields 2 f v} \
            [arity phmset] {phmset k p fields 1 f v q fields 1 f} \
            [arity phmset] {phmset k p fields 9223372036854775807 f v} \
            "ERR syntax error" {phmset k p fields 1 f v q field 1 f v} \
            $positive {phmset k p fields 1 f v q fields 0 f v} \
            [arity phmget] {phmget k p fields 2 f} \
            [arity phmget] {phmget k p fields 1 f q} \
            "ERR syntax error" {phmget k p field 1 f} \
            $positive {phmget k p fields 0 f} \
            $wrong_type {phset s p fields 1 f v} \
            $wrong_type {phmset s p fields 1 f v} \
            $wrong_type {phmget s p fields 1 f}] {
            assert_error $error {r {*}$words}
        }
        assert_equal 0 [r exists k]
    }

    test {PHGETALL replies a map, PHEXISTS is exact, PHCARD counts paths} {
        fill k
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed phgetall k /a] 0]
        assert_equal {f a n 1} [r phgetall k /a]
        assert_equal {{} {}} [list [r phgetall k /none] [r phgetall none /a]]
        assert_equal {1 1 0 0} [list [r phexists k /a] [r phexists k ""] [r phexists k /] [r phexists none ""]]
        assert_equal {5 0} [list [r phcard k] [r phcard none]]
        foreach words {{phgetall s p} {phexists s p} {phcard s} {phget s p f}} {assert_error $wrong_type {r {*}$words}}
    }

    test {PHDEL removes fields or a path; descendants stay} {
        fill k
        assert_equal {1 1} [list [r phdel k /a f none] [r phexists k /a]]
        assert_equal {1 0} [list [r phdel k /a n f] [r phexists k /a]]
        assert_equal {1 0 0} [list [r phdel k /a/b] [r phdel k /a/b] [r phdel k /a/b f]]
        assert_equal {abc} [r phget k /a/b/c f]
        assert_equal {3 0} [list [r phcard k] [r phdel none p]]
        assert_error $wrong_type {r phdel s p}
        assert_error $wrong_type {r phdel s p f}
    }

    test {PHDELPREFIX removes all paths with a prefix} {
        fill k
        assert_equal {0 2} [list [r phdelprefix k /b] [r phdelprefix k /a/]]
        assert_equal {{} /a /ab} [lindex [r phscan k 0] 1]
        for {set i 0} {$i < 1000} {incr i} {r phset k /many/$i fields 1 f $i}
        assert_equal {1000 0} [list [r phdelprefix k /many/] [r phdelprefix none ""]]
        assert_equal {3 0} [list [r phdelprefix k ""] [r exists k]]
        assert_error $wrong_type {r phdelprefix s ""}
    }

    test {PHLONGEST finds the longest path that a text begins with} {
        fill k
        assert_equal {/a/b {} /ab /a} [lmap text {/a/bd x /abc /a} {r phlongest k $text}]
        assert_equal {integer 4} [r -typed phlongest k /a/bd length]
        assert_equal {integer 0} [r -typed phlongest k x LENGTH]
        assert_equal [list array [list {bulk /a/b} [list array [list {bulk ab} [null]]]]] \
            [r -typed phlongest k /a/b fields 2 f none]
        assert_equal {4 {f ab}} [r phlongest k /a/b withvalues length]
        assert_equal {4 ab} [r phlongest k /a/b fields 1 f length]
        r phdel k ""
        assert_equal [null] [r -typed phlongest k x]
        assert_equal [null] [r -typed phlongest none x withvalues]
    }

    test {PHPREFIXES replies all such paths, COUNT keeps the longest ones} {
        fill k
        assert_equal {{} /a /a/b} [r phprefixes k /a/bd]
        assert_equal {0 2 4} [r phprefixes k /a/bd lengths]
        assert_equal {/a /a/b} [r phprefixes k /a/bd count 2]
        assert_equal {{} /a} [r phprefixes k /a/bd maxpathlen 3 count 5]
        assert_equal {/a} [r phprefixes k /a/bd count 1 MAXPATHLEN 2]
        assert_equal {{}} [r phprefixes k /a/bd maxpathlen 0]
        assert_equal {{2 {f a n 1}} {4 {f ab}}} [r phprefixes k /a/b count 2 withvalues lengths]
        assert_equal [list array [list [list array [list {bulk /a/b} [list array [list {bulk ab} [null]]]]]]] \
            [r -typed phprefixes k /a/b fields 2 f n count 1]
        assert_equal {array {}} [r -typed phprefixes none x]
        r phdel k ""
        assert_equal {array {}} [r -typed phprefixes k x]
    }

    test {errors of PHLONGEST and PHPREFIXES} {
        fill k
        foreach {error words} [list \
            "ERR syntax error" {phlongest k x lengths} \
            "ERR syntax error" {phlongest k x length length} \
            "ERR syntax error" {phlongest k x withvalues fields 1 f} \
            "ERR syntax error" {phlongest k x fields 1 f withvalues} \
            "ERR syntax error" {phlongest k x fields 2 f} \
            "ERR syntax error" {phlongest k x fields 1 f g} \
            "ERR syntax error" {phlongest k x fields} \
            "ERR syntax error" {phlongest k x count 1} \
            $positive {phlongest k x fields 0 f} \
            "ERR syntax error" {phprefixes k x length} \
            "ERR syntax error" {phprefixes k x count} \
            "ERR syntax error" {phprefixes k x count 1 count 1} \
            "ERR syntax error" {phprefixes k x maxpathlen 1 maxpathlen 1} \
            "ERR syntax error" {phprefixes k x maxlen 1} \
            "ERR value is*out of range*" {phprefixes k x count 0} \
            "ERR value is*out of range*" {phprefixes k x maxpathlen -1} \
            "ERR value is*out of range*" {phprefixes k x count x} \
            $wrong_type {phlongest s x} \
            $wrong_type {phprefixes s x}] {
            assert_error $error {r {*}$words}
        }
    }

    test {PHSCAN iterates in byte order; the end comes with the last path} {
        r del k
        assert_equal {0 {}} [r phscan k 0]
        fill k
        assert_equal {0 {{} /a /a/b /a/b/c /ab}} [r phscan k 0]
        assert_equal {1:2f61 {{} /a}} [r phscan k 0 count 2]
        assert_equal {0 {/a/b /a/b/c /ab}} [r phscan k 1:2f61 count 3]
        assert_equal {1: {{}}} [r phscan k 0 count 1]
        assert_equal {1:2f61 /a} [r phscan k 1: count 1]
        assert_equal {0 {}} [r phscan k 1:2f6162]
        assert_equal {0 {/a/b /a/b/c}} [r phscan k 0 prefix /a/b]
        assert_equal {1:2f612f62 /a/b} [r phscan k 0 prefix /a/b count 1]
        assert_equal {0 /a/b/c} [r phscan k 1:2f612f62 COUNT 9 PREFIX /a/b]
        assert_equal {1:2f61 {{{} {f root}} {/a {f a n 1}}}} [r phscan k 0 withvalues count 2]
        if {[resp3]} {assert_equal map [lindex [r -typed phscan k 0 withvalues] 1 1 1 0 1 1 0]}
        # A path that has been removed is a valid cursor, and one with any bytes is.
        r phdel k /a
        assert_equal {0 {/a/b /a/b/c /ab}} [r phscan k 1:2f61]
        r phset k \x00\xff fields 1 f v
        assert_equal {1:00ff} [lindex [r phscan k 1: count 1] 0]
        assert_equal 10 [llength [lindex [r eval {for i = 1, 30 do redis.call('phset', KEYS[1], i, 'fields', 1, 'f', i) end return redis.call('phscan', KEYS[1], 0)} 1 k] 1]]
    }

    test {errors of PHSCAN} {
        fill k
        foreach {error words} [list \
            "ERR invalid cursor" {phscan k 1} \
            "ERR invalid cursor" {phscan k x} \
            "ERR invalid cursor" {phscan k 00} \
            "ERR invalid cursor" {phscan k 1:2} \
            "ERR invalid cursor" {phscan k 1:2F} \
            "ERR invalid cursor" {phscan none 2:} \
            "ERR cursor does not belong to the requested prefix" {phscan k 1:2f61 prefix /b} \
            "ERR syntax error" {phscan k 0 match x} \
            "ERR syntax error" {phscan k 0 count} \
            "ERR syntax error" {phscan k 0 prefix} \
            "ERR syntax error" {phscan k 0 prefix a prefix a} \
            "ERR syntax error" {phscan k 0 withvalues withvalues} \
            "ERR value is*out of range*" {phscan k 0 count 0} \
            $wrong_type {phscan s 0}] {
            assert_error $error {r {*}$words}
        }
    }

    test {A path may have so many or such long fields that they are a table} {
        r config set hash-max-listpack-entries 4
        r del k
        for {set i 0} {$i < 300} {incr i} {
            r phset k p$i fields 1 f [string repeat x $i]
            r phset k p fields 1 f$i v$i
        }
        assert_equal {v0 v299} [r phget k p f0 f299]
        assert_equal [string repeat x 299] [lindex [r phget k p299 f] 0]
        assert_equal 600 [llength [r phgetall k p]]
        set fields {}
        for {set i 1} {$i <= 100} {incr i} {lappend fields f$i}
        assert_equal 100 [r phdel k p {*}$fields]
        assert_equal {v0 {} v101} [r phget k p f0 f100 f101]
        r copy k k2 replace
        assert_equal [r debug digest-value k] [r debug digest-value k2]
        assert {[r memory usage k samples 0] > 40000}
        r config set hash-max-listpack-entries 512
        r del k k2
    }

    test {The order of fields and paths does not change the digest} {
        r del a b
        r phmset a x fields 2 f 1 g 2 y fields 1 f 1
        r phmset b y fields 1 f 1 x fields 1 g 2 x fields 1 f 1
        assert_equal [r debug digest-value a] [r debug digest-value b]
        r phset b x fields 1 f 2
        assert_not_equal [r debug digest-value a] [r debug digest-value b]
        r phmset b x fields 1 f 1 y fields 1 g 1
        r phdel b y f
        assert_not_equal [r debug digest-value a] [r debug digest-value b]
        r del a b
    } {needs:debug}

    test {COPY, RENAME, MOVE, DUMP and RESTORE, TTL, SCAN TYPE} {
        fill k
        set digest [r debug digest-value k]
        r copy k c
        r phset c new fields 1 f v
        assert_equal $digest [r debug digest-value k]
        r phdel c new
        r rename c d
        assert_equal [list $digest] [r debug digest-value d]
        r restore e 0 [r dump d]
        assert_equal $digest [r debug digest-value e]
        assert_equal "\x51\x00" [string range [r dump d] end-9 end-8]
        assert_equal {d e k} [lsort [lindex [r scan 0 type PATHHASH count 100] 1]]
        r pexpire e 100000
        r phset e p fields 1 f v
        assert {[r pttl e] > 1000}
        r move e 1
        r select 1
        assert_equal {v} [r phget e p f]
        r unlink e
        r select 0
        assert_match "*encoding:pathhash*" [r debug object d]
        r del d
    } {needs:debug}

    test {RESTORE of a path hash without paths; of damaged ones} {
        r del e
        r debug set-skip-checksum-validation 1
        foreach {bytes error} {
            "\x17\x01\x01p\x00" "ERR Bad data format"
            "\x17\x02\x01p\x01\x01f\x01v\x01p\x01\x01f\x01v" "ERR Bad data format"
            "\x17\x01\x01p\x02\x01f\x01v\x01f\x01v" "ERR Bad data format"
            "\x17\x01\x01p" "ERR Bad data format"
            "\x17\x00\x00" "ERR Bad data format"
        } {
            assert_error $error {r restore e 0 [subst $bytes]\x51\x00[string repeat \x00 8]}
        }
        assert_error "ERR Bad data format" {r restore e 0 \x17\x00\x50\x00[string repeat \x00 8]}
        r restore e 0 \x17\x00\x51\x00[string repeat \x00 8]
        r debug set-skip-checksum-validation 0
        assert_equal {1 0 {0 {}}} [list [r exists e] [r phcard e] [r phscan e 0]]
        r restore f 0 [r dump e]
        r debug reload
        assert_equal {1 1} [list [r exists e] [r exists f]]
        r phset e p fields 1 f v
        assert_equal {1 0} [list [r phdel e p] [r exists e]]
        r del f
    } {needs:debug}

    test {pathhash-keep-empty decides whether the key remains} {
        foreach {keeps exists} {no 0 yes 1} {
            r config set pathhash-keep-empty $keeps
            foreach words {{phdel k p} {phdel k p f} {phdelprefix k ""}} {
                r del k
                r phset k p fields 1 f v
                assert_equal 1 [r {*}$words]
                assert_equal [list $exists 0] [list [r exists k] [r phcard k]] "$keeps $words"
            }
        }
        r debug reload
        assert_equal {1 0} [list [r exists k] [r phcard k]]
        r config set pathhash-keep-empty no
        r del k
    } {needs:debug}

    test {Keyspace events have the class p} {
        r flushall
        set c [listen]
        r config set notify-keyspace-events pnE
        r phset k p fields 1 f v
        assert_equal {new k phset k} [heard $c]
        r phset k p fnx fields 1 f v
        r phmset k p fields 1 f v q fields 2 f v g v
        r phdel k p none
        r phdel k p f
        r phdelprefix k none
        r phdelprefix k q
        assert_equal {phmset k phdel k phdelprefix k} [heard $c]
        r config set notify-keyspace-events pgE
        r phset k p fields 1 f v
        r phdel k p
        assert_equal {phset k phdel k del k} [heard $c]
        foreach {set get} {pK pK Kgp gpK KA AK r {}} {
            if {$get eq {}} {
                assert_error "*Invalid event class character*" {r config set notify-keyspace-events $set}
            } else {
                r config set notify-keyspace-events $set
                assert_equal $get [lindex [r config get notify-keyspace-events] 1]
            }
        }
        r config set notify-keyspace-events {}
        $c -close
    }

    test {The dirty counter counts fields and paths} {
        r del k
        set before [info_field rdb_changes_since_last_save]
        r phset k p fields 2 f v g w
        r phmset k p fields 1 f v q fields 2 f 1 g 2
        r phset k p fnx fields 1 f v
        r phdel k p f g
        r phdelprefix k ""
        assert_equal 8 [expr {[info_field rdb_changes_since_last_save] - $before}]
    }

    test {ACL: the category pathhash, rights for reading and writing} {
        assert_equal 12 [llength [r acl cat pathhash]]
        assert {"pathhash" in [r acl cat]}
        foreach name {path-hash radix} {assert_error "ERR Unknown category*" {r acl cat $name}}
        fill k
        r acl setuser reader on nopass +@pathhash %R~*
        r acl setuser writer on nopass +@all %W~*
        foreach {user words allowed} {
            reader {phget k /a f} 1 reader {phlongest k /a} 1 reader {phscan k 0} 1 reader {phcard k} 1 reader {get k} 0
            reader {phset k p fields 1 f v} 0 reader {phdel k p} 0 reader {phdelprefix k p} 0
            writer {phset k p fields 1 f v} 1 writer {phdelprefix k p} 1 writer {phmset k p fields 1 f v} 1 writer {phget k /a f} 0
        } {
            assert_equal $allowed [expr {[r acl dryrun $user {*}$words] eq "OK"}] "$user $words"
        }
        r acl deluser reader writer
    }

    test {COMMAND INFO and COMMAND DOCS tell what Valkey 9.2 tells} {
        foreach {name arity flags} {
            phset -7 {write denyoom fast} phmset -7 {write denyoom fast} phget -4 {readonly fast} phmget -6 {readonly fast}
            phgetall 3 readonly phexists 3 {readonly fast} phcard 2 {readonly fast} phdel -3 write phdelprefix 3 write
            phlongest -3 readonly phprefixes -3 readonly phscan -3 readonly
        } {
            set info [lindex [r command info $name] 0]
            assert_equal [list $name $arity [lsort $flags]] [list [lindex $info 0] [lindex $info 1] [lsort [lindex $info 2]]]
            assert_equal {1 1 1} [lrange $info 3 5]
            set docs [lindex [r command docs $name] 1]
            assert_equal {9.2.0 pathhash} [list [dict get $docs since] [dict get $docs group]]
        }
    }

    test {A large map is freed in the background, measured, sampled and visited by keysizes} {
        r flushall
        r config resetstat
        r eval {for i = 1, 5000 do redis.call('phset', KEYS[1], '/path/' .. i, 'fields', 1, 'f', i) end} 1 k
        set usage [r memory usage k]
        assert_range $usage 5000 400000
        assert_match "*db0_distrib_pathhashes_items:4K=1*" [r info keysizes]
        r unlink k
        wait_for_condition 100 20 {[info_field lazyfreed_objects] >= 1}
        assert_equal 0 [r dbsize]
    }

    test {OBJECT FREQ, IDLETIME, WATCH and client tracking see changes of a map in place} {
        r phset k p fields 1 f v
        set other [connect 2]
        r watch k
        $other phset k p fields 1 f w
        r multi
        r ping
        assert_equal {} [r exec]
        r watch k
        $other phset k p fnx fields 1 f w
        r multi
        r ping
        assert_equal PONG [r exec]
        $other -close
        assert_range [r object idletime k] 0 100
        r del k
    }

    test {Random commands agree with a model} {
        r flushall
        set model {}
        set letters {a b c /}
        for {set i 0} {$i < [scaled 3000]} {incr i} {
            set path {}
            for {set n [random_below 5]} {$n > 0} {incr n -1} {append path [lindex $letters [random_below 4]]}
            switch [random_below 6] {
                0 {
                    assert_equal [dict exists $model $path] [r phdel k $path]
                    dict unset model $path
                }
                1 {
                    set longest {}
                    set found 0
                    foreach {known value} $model {
                        if {[string equal -length [string length $known] $known $path] &&
                            [string length $known] <= [string length $path]} {
                            set found 1
                            if {[string length $known] > [string length $longest]} {set longest $known}
                        }
                    }
                    set reply [r -typed phlongest k $path]
                    assert_equal [expr {$found ? [list bulk $longest] : [null]}] $reply
                }
                default {
                    dict set model $path $i
                    r phset k $path fields 1 f $i
                }
            }
            assert_equal [dict size $model] [r phcard k]
        }
        set paths {}
        set cursor 0
        while 1 {
            lassign [r phscan k $cursor count [expr {1 + [random_below 20]}]] cursor some
            lappend paths {*}$some
            if {$cursor eq "0"} break
        }
        assert_equal [lsort [dict keys $model]] $paths
        foreach path $paths {assert_equal [dict get $model $path] [lindex [r phget k $path f] 0]}
    }
}
