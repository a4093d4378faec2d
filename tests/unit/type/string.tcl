# String commands: every one's success, refusals, limits, extreme values, in both protocols. (SET and GET
# alone: unit/basic.) What they propagate: helpers/compare_propagation.py.

# What a null reads like with -typed.
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}

# The expected encoding of a text by Valkey's rule: key, value and time in one block of 128 bytes. A value
# that gets its time later stays where it is under a very long key.
proc expected_encoding {key_len len time {later 0}} {
    if {$later && $key_len > 107} {set time 0}
    expr {$key_len + $len <= ($key_len <= 31 ? 113 : 111) - ($time ? 8 : 0) ? "embstr" : "raw"}
}

proc random_bytes {max} {
    set bytes ""
    for {set n [random_below [expr {$max + 1}]]} {$n > 0} {incr n -1} {append bytes [format %c [random_below 256]]}
    return $bytes
}

start_server {tags {string}} {
    test {every string command refuses too few and too many arguments} {
        foreach {command few many} {
            append {k} {k v x}          decr {} {k x}               decrby {k} {k 1 x}
            delifeq {k} {k v x}         getdel {} {k x}             getrange {k 0} {k 0 1 x}
            getset {k} {k v x}          incr {} {k x}               incrby {k} {k 1 x}
            incrbyfloat {k} {k 1 x}     psetex {k 1} {k 1 v x}      setex {k 1} {k 1 v x}
            setnx {k} {k v x}           setrange {k 0} {k 0 v x}    strlen {} {k x}
            substr {k 0} {k 0 1 x}      getbit {k} {k 0 x}          setbit {k 0} {k 0 1 x}
            mset {} {k v k}             msetnx {k} {k v k}          mget {} {}
            getex {} {}                 lcs {k} {k}                 msetex {1 k} {1}
        } {
            assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$few}
            assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$many}
        }
        assert_equal 0 [r exists k]
    }

    test {string commands refuse other types and leave them alone} {
        needs_command rpush
        r del list
        r rpush list a
        foreach words {
            {append list x} {incr list} {decr list} {incrby list 1} {decrby list 1} {incrbyfloat list 1}
            {incrbyfloat list x} {getdel list} {getex list} {getex list persist} {getset list x} {delifeq list a}
            {strlen list} {getrange list 0 -1} {substr list 0 -1} {setrange list 0 x} {setrange list 0 {}}
            {setrange list 9223372036854775807 x} {getbit list 0} {setbit list 0 1} {set list x ifeq a}
            {set list x nx get}
        } {
            assert_error "WRONGTYPE Operation against a key holding the wrong kind of value" {r {*}$words}
        }
        assert_error "ERR The specified keys must contain string values" {r lcs list none}
        assert_error "ERR The specified keys must contain string values" {r lcs none list nosuchoption}
        r set text b
        assert_equal [list array [list [null] {bulk b}]] [r -typed mget list text]
        assert_equal {a} [r lrange list 0 -1]
        assert_equal 0 [r setnx list x]
        assert_equal 0 [r msetnx list x other y]
        assert_equal {} [r set list x nx]
        assert_equal OK [r mset list x]
        assert_equal x [r get list]
    }

    test {invalid arguments are refused before the type is checked} {
        needs_command rpush
        r del list
        r rpush list a
        assert_error "ERR value is not an integer or out of range" {r incrby list x}
        assert_error "ERR value is not an integer or out of range" {r getrange list x 1}
        assert_error "ERR decrement would overflow" {r decrby list -9223372036854775808}
        assert_error "ERR offset is out of range" {r setrange list -1 x}
        assert_error "ERR bit offset is not an integer or out of range" {r getbit list -1}
        assert_error "ERR bit is not an integer or out of range" {r setbit list 0 2}
        assert_error "ERR syntax error" {r getex list nosuch}
        assert_error "ERR invalid expire time in 'getex' command" {r getex list ex 0}
    }

    # ---- SET and its kin

    test {SET takes an option twice, but not IFEQ} {
        r del key
        assert_equal OK [r set key a nx nx]
        assert_equal a [r set key b get get xx xx]
        assert_equal OK [r set key c ex 10 ex 100]
        assert_range [r ttl key] 99 100
        assert_equal OK [r set key d keepttl KEEPTTL]
        assert_range [r ttl key] 99 100
        assert_error "ERR syntax error" {r set key e ifeq d ifeq d}
        assert_error "ERR syntax error" {r set key e ex 10 px 10}
        assert_error "ERR syntax error" {r set key e ex 0 nosuch}
        assert_equal d [r get key]
    }

    test {SET takes times up to the end of the range} {
        assert_equal OK [r set key a pxat 9223372036854775807]
        assert_equal 9223372036854775807 [r pexpiretime key]
        assert_equal OK [r set key a exat 9223372036854775]
        assert_error "ERR invalid expire time in 'set' command" {r set key b exat 9223372036854776}
        assert_error "ERR invalid expire time in 'set' command" {r set key b px 9223372036854775807}
        assert_error "ERR invalid expire time in 'set' command" {r set key b ex 9223372036854775}
        assert_equal a [r get key]
        assert_equal a [r set key b keepttl get]
        assert_equal 9223372036854775000 [r pexpiretime key]
    }

    test {SET with an expiry time in the past deletes the key and replies OK} {
        r set key a
        assert_equal a [r set key b pxat 1 get]
        assert_equal 0 [r exists key]
        assert_equal OK [r set key b exat 1]
        assert_equal [null] [r -typed set key b exat 1 xx]
        assert_equal [null] [r -typed set key b exat 1 get]
        assert_equal 0 [r exists key]
    }

    test {SETEX and PSETEX set value and TTL} {
        assert_equal {status OK} [r -typed setex key 100 a]
        assert_range [r ttl key] 99 100
        assert_equal {status OK} [r -typed psetex key 200000 b]
        assert_range [r pttl key] 190000 200000
        assert_equal b [r get key]
        foreach command {setex psetex} {
            foreach time {0 -1 9223372036854775807} {
                assert_error "ERR invalid expire time in '$command' command" {r $command key $time c}
            }
            foreach time {x 1.5 {} { 1} 9223372036854775808} {
                assert_error "ERR value is not an integer or out of range" {r $command key $time c}
            }
        }
        assert_equal b [r get key]
    }

    test {SETNX sets only missing keys} {
        r del key
        assert_equal {integer 1} [r -typed setnx key a]
        assert_equal {integer 0} [r -typed setnx key b]
        assert_equal a [r get key]
        r set key a px 1
        wait_for_condition 100 5 {[r setnx key c] == 1}
        assert_equal c [r get key]
        assert_equal -1 [r ttl key]
    }

    test {GETSET returns the old value and removes the TTL} {
        r del key
        assert_equal [null] [r -typed getset key a]
        r set key b ex 100
        assert_equal {bulk b} [r -typed getset key c]
        assert_equal -1 [r ttl key]
        assert_equal c [r get key]
    }

    test {GETDEL returns the value and removes the key} {
        r set key a
        assert_equal {bulk a} [r -typed getdel key]
        assert_equal [null] [r -typed getdel key]
        assert_equal 0 [r exists key]
        set large [string repeat x 100000]
        r set key $large
        assert_equal $large [r getdel key]
        assert_equal 0 [r exists key]
    }

    test {DELIFEQ removes a key with just this value} {
        r set key abc
        assert_equal {integer 0} [r -typed delifeq key ab]
        assert_equal 0 [r delifeq key ABC]
        assert_equal {integer 1} [r -typed delifeq key abc]
        assert_equal 0 [r delifeq key abc]
        r set key 12
        assert_equal 0 [r delifeq key 012]
        assert_equal 1 [r delifeq key 12]
        assert_equal 0 [r exists key]
    }

    test {GETEX sets, removes or keeps the TTL} {
        r set key a
        assert_equal {bulk a} [r -typed getex key]
        assert_equal -1 [r ttl key]
        assert_equal a [r getex key ex 100]
        assert_range [r ttl key] 99 100
        assert_equal a [r getex key]
        assert_range [r ttl key] 99 100
        assert_equal a [r getex key px 200000]
        assert_range [r pttl key] 190000 200000
        assert_equal a [r getex key exat 33177117420]
        assert_equal 33177117420 [r expiretime key]
        assert_equal a [r getex key pxat 9223372036854775807]
        assert_equal 9223372036854775807 [r pexpiretime key]
        assert_equal a [r getex key persist]
        assert_equal -1 [r ttl key]
        assert_equal a [r getex key pxat 1]
        assert_equal 0 [r exists key]
        assert_equal [null] [r -typed getex key ex 100]
        assert_equal 0 [r exists key]
    }

    test {GETEX refuses unknown options, with and without the key} {
        foreach key {key missing} {
            r set key a
            foreach options {{nosuch} {ex} {keepttl} {nx} {get} {persist ex 10} {ex 10 persist} {ex 10 px 10} {persist x}} {
                assert_error "ERR syntax error" {r getex $key {*}$options}
            }
            assert_error "ERR value is not an integer or out of range" {r getex $key ex x}
            foreach time {0 -1 9223372036854775807} {
                assert_error "ERR invalid expire time in 'getex' command" {r getex $key ex $time}
            }
            assert_equal -1 [r ttl key]
        }
    }

    # ---- many keys

    test {MSET and MGET with any number of keys} {
        foreach count {1 2 10 31 32 33 64 65 500} {
            r flushall
            set pairs {}
            set names {}
            set values {}
            for {set i 0} {$i < $count} {incr i} {
                lappend pairs key:$i value:$i
                lappend names key:$i none:$i
                lappend values value:$i {}
            }
            assert_equal {status OK} [r -typed mset {*}$pairs]
            assert_equal $count [r dbsize]
            assert_equal $values [r mget {*}$names]
        }
        assert_equal [list array [list {bulk value:0} [null]]] [r -typed mget key:0 none]
    }

    test {MSET with a repeated key: the last value is kept; TTLs are removed} {
        r set a x ex 100
        assert_equal OK [r mset a 1 b 2 a 3]
        assert_equal {3 2} [r mget a b]
        assert_equal -1 [r ttl a]
    }

    test {MSET takes large values} {
        set large [string repeat abc 20000]
        r mset a $large b small c $large
        assert_equal [list $large small $large] [r mget a b c]
        assert_equal 60000 [r strlen c]
    }

    test {MSETNX sets all or none} {
        r flushall
        assert_equal {integer 1} [r -typed msetnx a 1 b 2 a 3]
        assert_equal {3 2} [r mget a b]
        assert_equal {integer 0} [r -typed msetnx c 1 b 5]
        assert_equal {{} 2} [r mget c b]
        set pairs {}
        for {set i 0} {$i < 100} {incr i} {lappend pairs key:$i $i}
        assert_equal 0 [r msetnx {*}$pairs b 1]
        assert_equal 2 [r dbsize]
        assert_equal 1 [r msetnx {*}$pairs]
        assert_equal 102 [r dbsize]
    }

    test {MSETEX with conditions and TTLs} {
        r flushall
        assert_equal {integer 1} [r -typed msetex 2 a 1 b 2]
        assert_equal 0 [r msetex 2 a 5 c 5 nx]
        assert_equal 0 [r msetex 2 a 5 c 5 xx]
        assert_equal {1 2 {}} [r mget a b c]
        assert_equal 1 [r msetex 1 c 3 nx ex 100]
        assert_equal 1 [r msetex 2 a 4 b 5 px 100000 xx]
        assert_equal {4 5 3} [r mget a b c]
        foreach key {a b c} {assert_range [r ttl $key] 99 100}
        assert_equal 1 [r msetex 2 a 6 d 7 keepttl]
        assert_range [r ttl a] 99 100
        assert_equal -1 [r ttl d]
        assert_equal 1 [r msetex 1 a 8]
        assert_equal -1 [r ttl a]
        assert_equal 1 [r msetex 2 a nx b xx]
        assert_equal {nx xx} [r mget a b]
        assert_equal 1 [r msetex 2 a 1 b 2 exat 33177117420 exat 33177117421]
        assert_equal 33177117421 [r expiretime b]
        assert_equal 1 [r msetex 2 a 1 b 2 pxat 1]
        assert_equal {{} {}} [r mget a b]
    }

    test {MSETEX refuses wrong counts and options, and sets nothing} {
        r flushall
        foreach count {0 -1 x 1.5 2147483648 4611686018427387904 9223372036854775807} {
            assert_error "ERR invalid numkeys value or out of range" {r msetex $count a 1}
        }
        foreach words {
            {2 a 1} {1 a 1 b} {1 a 1 b 2} {2147483647 a 1} {1 a 1 nx xx} {1 a 1 ex} {1 a 1 ex 1 px 1} {1 a 1 keepttl ex 1}
            {1 a 1 get} {1 a 1 ifeq 1} {1 a 1 persist} {1 a 1 nosuch}
        } {
            assert_error "ERR syntax error" {r msetex {*}$words}
        }
        assert_error "ERR value is not an integer or out of range" {r msetex 1 a 1 ex x}
        assert_error "ERR invalid expire time in 'msetex' command" {r msetex 1 a 1 ex 0}
        assert_equal 0 [r dbsize]
    }

    # ---- parts

    test {STRLEN of texts, numbers and nothing} {
        r mset text hello number -12345 empty {}
        assert_equal {integer 5} [r -typed strlen text]
        assert_equal 6 [r strlen number]
        assert_equal 0 [r strlen empty]
        assert_equal {integer 0} [r -typed strlen missing]
        r set large [string repeat x 70000]
        assert_equal 70000 [r strlen large]
    }

    test {GETRANGE and SUBSTR return the requested range} {
        r set key 0123456789
        foreach {start end expected} {
            0 -1 0123456789     -3 -1 789           0 0 0               9 9 9           9 12 9
            10 12 {}            5 2 {}              -2 -5 {}            -5 -100 {}      -100 -50 0
            -100 3 0123         3 -100 {}           2 4 234
            0 9223372036854775807 0123456789        -9223372036854775808 9223372036854775807 0123456789
            9223372036854775807 9223372036854775807 {}                  -9223372036854775808 -9223372036854775808 0
        } {
            assert_equal $expected [r getrange key $start $end] "$start $end"
            assert_equal $expected [r substr key $start $end] "$start $end"
        }
        r mset number 12345 empty {}
        assert_equal {bulk 234} [r -typed getrange number 1 3]
        assert_equal {bulk {}} [r -typed getrange empty 0 -1]
        assert_equal {bulk {}} [r -typed getrange missing 0 -1]
        foreach {start end} {x 1 1 x 1.0 2 9223372036854775808 1 {} 1} {
            assert_error "ERR value is not an integer or out of range" {r getrange missing $start $end}
        }
    }

    test {GETRANGE of a large value} {
        set value ""
        for {set i 0} {$i < 20000} {incr i} {append value [format %05d $i]}
        r set key $value
        foreach {start end} {0 99999 1 99998 50000 70000 -16385 -1 0 16383 0 16384 99990 200000} {
            assert_equal [string range $value [expr {$start < 0 ? 100000 + $start : $start}] \
                [expr {$end < 0 ? 100000 + $end : $end}]] [r getrange key $start $end]
        }
    }

    test {SETRANGE overwrites, fills with zeros, creates} {
        r del key
        assert_equal {integer 0} [r -typed setrange key 10 {}]
        assert_equal 0 [r exists key]
        assert_equal {integer 5} [r -typed setrange key 3 ab]
        assert_equal "\0\0\0ab" [r get key]
        assert_equal 5 [r setrange key 0 xyz]
        assert_equal xyzab [r get key]
        assert_equal 7 [r setrange key 4 123]
        assert_equal xyza123 [r get key]
        assert_equal 7 [r setrange key 100 {}]
        assert_equal 1002 [r setrange key 1000 zz]
        assert_equal "xyza123[string repeat \0 993]zz" [r get key]
        r set number 1234
        assert_equal 4 [r setrange number 1 99]
        assert_equal 1994 [r get number]
        r set timed abc ex 100
        r setrange timed 1 x
        assert_equal axc [r get timed]
        assert_range [r ttl timed] 99 100
        assert_error "ERR offset is out of range" {r setrange key -1 x}
        assert_error "ERR offset is out of range" {r setrange key -1 {}}
        assert_error "ERR value is not an integer or out of range" {r setrange key x x}
        assert_equal 1002 [r strlen key]
    }

    test {APPEND creates and grows} {
        r del key
        assert_equal {integer 0} [r -typed append key {}]
        assert_equal 1 [r exists key]
        assert_equal {integer 3} [r -typed append key abc]
        assert_equal 3 [r append key {}]
        assert_equal 6 [r append key "\0\r\n"]
        assert_equal "abc\0\r\n" [r get key]
        r set number 12
        assert_equal 4 [r append number 34]
        assert_equal 1234 [r get number]
        r set timed a ex 100
        r append timed b
        assert_range [r ttl timed] 99 100
        set large [string repeat x 50000]
        r del key
        assert_equal 50000 [r append key $large]
        assert_equal 100000 [r append key $large]
        assert_equal 100001 [r append key y]
        assert_equal $large${large}y [r get key]
    }

    test {strings may not grow beyond proto-max-bulk-len} {
        set max 1048576
        r config set proto-max-bulk-len 2mb
        r set over [string repeat x [expr {$max + 10}]]
        r config set proto-max-bulk-len 1mb
        r del key
        set error "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
        assert_equal 0 [r setrange key $max {}]
        foreach offset [list $max 9223372036854775807] {
            assert_error $error {r setrange key $offset x}
            assert_equal 0 [r exists key]
        }
        assert_equal $max [r setrange key [expr {$max - 1}] x]
        assert_error $error {r append key x}
        assert_equal $max [r append key {}]
        assert_equal $max [r strlen key]
        assert_error $error {r append over {}}
        assert_error $error {r setrange over $max x}
        assert_equal [expr {$max + 10}] [r setrange over 0 y]
        foreach offset [list [expr {$max * 8}] 9223372036854775807] {
            assert_error "ERR bit offset is not an integer or out of range" {r setbit key $offset 1}
            assert_error "ERR bit offset is not an integer or out of range" {r getbit key $offset}
        }
        assert_equal 0 [r setbit key [expr {$max * 8 - 2}] 1]
        assert_equal $max [r strlen key]
        r config set proto-max-bulk-len 512mb
    } {needs:config}

    test {a pending reply is not affected by later changes of the value} {
        foreach size {100 16383 16384 20000 1000000} {
            set value [string repeat a $size]
            r set key $value
            set c [connect]
            $c -send get key
            $c -send append key b
            $c -send getrange key 1 -1
            $c -send setrange key 0 c
            $c -send setbit key 7 0
            $c -send get key
            $c -send getdel key
            assert_equal $value [$c -read]
            assert_equal [expr {$size + 1}] [$c -read]
            assert_equal [string range $value 1 end]b [$c -read]
            $c -read
            assert_equal 1 [$c -read]
            assert_equal "b[string range $value 1 end]b" [$c -read]
            assert_equal "b[string range $value 1 end]b" [$c -read]
        }
    }

    # ---- counters

    test {INCR, DECR, INCRBY, DECRBY count} {
        r del n
        assert_equal {integer 1} [r -typed incr n]
        assert_equal {integer 0} [r -typed decr n]
        assert_equal -1 [r decr n]
        assert_equal 99 [r incrby n 100]
        assert_equal -1 [r decrby n 100]
        assert_equal 9 [r decrby n -10]
        assert_equal 9 [r incrby n 0]
        assert_equal 9 [r get n]
        assert_equal -5 [r decrby new 5]
    }

    test {counters pass every width} {
        foreach border {127 -128 32767 -32768 8388607 -8388608 2147483647 -2147483648 4294967296 1000000000000} {
            foreach way {incr decr} {
                r set n [expr {$way eq "incr" ? $border - 2 : $border + 2}]
                for {set i 1} {$i <= 4} {incr i} {
                    set expected [expr {$way eq "incr" ? $border - 2 + $i : $border + 2 - $i}]
                    assert_equal $expected [r $way n]
                    assert_equal $expected [r get n]
                }
            }
        }
    }

    test {counters stop at the ends of the range} {
        r set n 9223372036854775807
        foreach words {{incr n} {incrby n 1} {decrby n -1} {incrby n 9223372036854775807}} {
            assert_error "ERR increment or decrement would overflow" {r {*}$words}
        }
        assert_equal 9223372036854775807 [r get n]
        assert_equal 9223372036854775806 [r decr n]
        r set n -9223372036854775808
        foreach words {{decr n} {decrby n 1} {incrby n -1} {incrby n -9223372036854775808}} {
            assert_error "ERR increment or decrement would overflow" {r {*}$words}
        }
        assert_error "ERR decrement would overflow" {r decrby n -9223372036854775808}
        assert_equal 0 [r incrby zero[r del zero] 0]
        assert_equal -9223372036854775808 [r incrby fresh[r del fresh] -9223372036854775808]
        assert_equal -1 [r incrby n 9223372036854775807]
    }

    test {counters count canonical numbers only} {
        foreach value {{} { 1} {1 } 01 +1 -0 00 1.0 1e3 0x10 abc 9223372036854775808 -9223372036854775809 -} {
            r set n $value
            foreach words {{incr n} {decr n} {incrby n 5} {decrby n 5}} {
                assert_error "ERR value is not an integer or out of range" {r {*}$words}
            }
            assert_equal $value [r get n]
            r set n 5
            assert_error "ERR value is not an integer or out of range" {r incrby n $value}
            assert_error "ERR value is not an integer or out of range" {r decrby n $value}
            assert_equal 5 [r get n]
        }
        r del n
        r append n 1
        r append n 2
        assert_equal 13 [r incr n]
        r setrange n 0 4
        assert_equal 44 [r incr n]
    }

    test {counters keep the TTL} {
        r set n 5 ex 100
        r incr n
        r incrby n 1000000
        r incrbyfloat n 1
        assert_range [r ttl n] 99 100
    }

    test {INCRBYFLOAT adds long doubles and prints 17 decimals at most} {
        foreach {value by expected} {
            0.1 0.2 0.3             3 1.5 4.5           1.5 1.5 3           10 -10 0        5e3 1 5001
            0 1e-17 0.00000000000000001                 0 1e-18 0           -0 -0 0         0x10 0x1p4 32
            .5 5. 5.5               0005 +1 6
            9223372036854775807 1 9223372036854775808
        } {
            r set n $value
            assert_equal [list bulk $expected] [r -typed incrbyfloat n $by] "$value $by"
            assert_equal $expected [r get n]
        }
        r del n
        assert_equal -2.5 [r incrbyfloat n -2.5]
    }

    test {INCRBYFLOAT has the precision of the machine's long double} {
        # 64 bits on x86-64, 113 on arm64.
        set is_quad [string match *aarch64* [info_field os]]
        r set n 123456789.123456789
        assert_equal [lindex {123456789.12345678899873747 123456789.123456789} $is_quad] [r incrbyfloat n 0]
        r set n 0
        assert_match [lindex {1000000000000000000008997324*4006144 1000000000000000000000000000000000*} $is_quad] \
            [r incrbyfloat n 1e300]
        assert_equal 301 [r strlen n]
    }

    test {INCRBYFLOAT refuses invalid numbers and infinity} {
        foreach value {{} { 1} {1 } abc 1e 1,5 nan 1e5000 1e-5000 --1 0x} {
            r set n $value
            assert_error "ERR value is not a valid float" {r incrbyfloat n 1}
            assert_equal $value [r get n]
            r set n 1
            assert_error "ERR value is not a valid float" {r incrbyfloat n $value}
        }
        foreach by {inf -inf +inf Infinity} {
            assert_error "ERR increment would produce NaN or Infinity" {r incrbyfloat n $by}
        }
        assert_equal 1 [r get n]
        r set n 1e4932
        assert_error "ERR increment would produce NaN or Infinity" {r incrbyfloat n 1e4932}
    }

    # ---- bits

    test {SETBIT and GETBIT} {
        r del bits
        assert_equal {integer 0} [r -typed getbit bits 4294967295]
        assert_equal {integer 0} [r -typed setbit bits 1 1]
        assert_equal {integer 1} [r -typed getbit bits 1]
        assert_equal 0 [r getbit bits 0]
        assert_equal 0 [r getbit bits 100]
        assert_equal 1 [r setbit bits 1 1]
        assert_equal "@" [r get bits]
        assert_equal 0 [r setbit bits 23 0]
        assert_equal "@\0\0" [r get bits]
        assert_equal 1 [r setbit bits 1 0]
        assert_equal "\0\0\0" [r get bits]
        r set number 12
        assert_equal {0 0 1 1 0 0 0 1} [lmap i {0 1 2 3 4 5 6 7} {r getbit number $i}]
        assert_equal 0 [r setbit number 6 1]
        assert_equal 32 [r get number]
        r set timed a ex 100
        r setbit timed 100 1
        assert_range [r ttl timed] 99 100
    }

    test {SETBIT and GETBIT refuse invalid bits and offsets} {
        r set key a
        foreach offset {-1 x {} { 1} 0x1 1.0 4294967296 9223372036854775807} {
            assert_error "ERR bit offset is not an integer or out of range" {r getbit key $offset}
            assert_error "ERR bit offset is not an integer or out of range" {r setbit key $offset 2}
        }
        foreach bit {2 -1 x {} 01 9223372036854775808} {
            assert_error "ERR bit is not an integer or out of range" {r setbit key 0 $bit}
        }
        assert_equal a [r get key]
    }

    test {SETBIT at random offsets matches a model} {
        r del bits
        set model {}
        for {set i 0} {$i < [scaled 2000]} {incr i} {
            set at [random_below 5000]
            set bit [random_below 2]
            assert_equal [expr {[dict exists $model $at] ? [dict get $model $at] : 0}] [r setbit bits $at $bit]
            dict set model $at $bit
        }
        binary scan [r get bits] B* digits
        dict for {at bit} $model {assert_equal $bit [string index $digits $at]}
        set ones 0
        dict for {at bit} $model {incr ones $bit}
        assert_equal $ones [regexp -all 1 $digits]
    }

    # ---- LCS

    test {LCS finds text, length and ranges} {
        r mset a ohmytext b mynewtext
        assert_equal {bulk mytext} [r -typed lcs a b]
        assert_equal {integer 6} [r -typed lcs a b len]
        set places {{{4 7} {5 8}} {{2 3} {0 1}}}
        assert_equal [dict create matches $places len 6] [r lcs a b idx]
        set places {{{4 7} {5 8} 4} {{2 3} {0 1} 2}}
        assert_equal [dict create matches $places len 6] [r lcs a b idx withmatchlen]
        assert_equal [dict create matches {{{4 7} {5 8} 4}} len 6] [r lcs a b IDX MINMATCHLEN 4 WITHMATCHLEN]
        assert_equal [dict create matches {} len 6] [r lcs a b idx minmatchlen 5]
        assert_equal [dict create matches $places len 6] [r lcs a b idx withmatchlen minmatchlen -5]
        assert_equal mytext [r lcs a b withmatchlen minmatchlen 3]
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed lcs a b idx] 0]
        r mset a 12345 b 234 empty {}
        assert_equal 234 [r lcs a b]
        assert_equal {bulk {}} [r -typed lcs a missing]
        assert_equal {integer 0} [r -typed lcs empty a len]
        assert_equal [dict create matches {} len 0] [r lcs missing missing idx]
        assert_equal [dict create matches {{{0 4} {0 4}}} len 5] [r lcs a a idx]
    }

    test {LCS prefers the same of several results as Valkey} {
        foreach {a b expected} {abab baba bab rnakjsbd rnabcdefa rnabd ab ba b abc cba c aab aba ab} {
            r mset a $a b $b
            assert_equal $expected [r lcs a b] "$a $b"
        }
    }

    test {LCS refuses options that make no sense} {
        assert_error "ERR syntax error" {r lcs a b nosuch}
        assert_error "ERR syntax error" {r lcs a b minmatchlen}
        assert_error "ERR value is not an integer or out of range" {r lcs a b minmatchlen x}
        assert_error "ERR If you want both the length and indexes, please just use IDX." {r lcs a b len idx}
    }

    test {LCS of random texts is as long as it should be, and a subsequence of both} {
        for {set round 0} {$round < [scaled 40]} {incr round} {
            set alphabet [expr {1 + [random_below 4]}]
            foreach key {a b} {
                set $key ""
                for {set n [random_below 150]} {$n > 0} {incr n -1} {append $key [format %c [expr {97 + [random_below $alphabet]}]]}
                r set $key [set $key]
            }
            set above [lrepeat [expr {[string length $b] + 1}] 0]
            foreach byte [split $a ""] {
                set row 0
                set j 0
                foreach other [split $b ""] {
                    if {$byte eq $other} {
                        lappend row [expr {[lindex $above $j] + 1}]
                    } else {
                        lappend row [expr {max([lindex $above $j+1], [lindex $row $j])}]
                    }
                    incr j
                }
                set above $row
            }
            set length [lindex $above end]
            assert_equal $length [r lcs a b len]
            set common [r lcs a b]
            assert_equal $length [string length $common]
            foreach whole [list $a $b] {assert_match "*[join [split $common ""] *]*" $whole}
            set sum 0
            set text ""
            foreach match [dict get [r lcs a b idx withmatchlen] matches] {
                lassign $match in_a in_b count
                assert_equal [string range $a {*}$in_a] [string range $b {*}$in_b]
                incr sum $count
                set text [string range $a {*}$in_a]$text
            }
            assert_equal $length $sum
            assert_equal $common $text
        }
    }

    test {LCS of texts whose table would not fit is refused, below it is not} {
        set error "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
        r set a [string repeat a 60000]
        r set b [string repeat b 60000]
        foreach options {{} len idx} {assert_error $error {r lcs a b {*}$options}}
        r config set proto-max-bulk-len 1mb
        r mset a [string repeat x 511] b [string repeat x 511]
        assert_equal 511 [r lcs a b len]
        r append b x
        assert_error $error {r lcs a b len}
        r config set proto-max-bulk-len 512mb
        assert_equal 511 [r lcs a b len]
    } {needs:config}

    # ---- how values are kept

    test {OBJECT ENCODING depends on the sizes of key, value and TTL} {
        foreach key_len {1 5 16 31 32 40 100 103 104 105 111 112 113 200} {
            foreach len {0 1 3 8 44 45 70 71 72 80 81 82 97 103 104 105 108 111 112 113 200} {
                set key [string repeat k $key_len]
                set value [string repeat v $len]
                r del $key
                set plain [expected_encoding $key_len $len 0]
                set timed [expected_encoding $key_len $len 1]
                foreach {words expected} [list \
                    [list set $key $value] $plain \
                    [list set $key $value ex 100] [expected_encoding $key_len $len 1 1] \
                    [list set $key $value ex 100] $timed \
                    [list getset $key $value] $timed \
                    [list mset $key $value] $plain \
                    [list psetex $key 100000 $value] [expected_encoding $key_len $len 1 1] \
                    [list set $key $value keepttl] $timed \
                    [list getex $key persist] $timed] {
                    r {*}$words
                    assert_equal $expected [r object encoding $key] "$key_len $len [lindex $words 0]"
                }
            }
        }
        foreach {command words} {setex {k 100 1} psetex {k 10000 1} getset {k 1} setnx {new 1} mset {k 1} append {n2 1}} {
            r del new n2
            r $command {*}$words
            assert_equal int [r object encoding [lindex $words 0]] $command
        }
    }

    test {a text that became raw with a TTL stays raw without it} {
        foreach {len after} {104 embstr 105 raw 112 raw 113 raw} {
            set before [expr {$len <= 112 ? "embstr" : "raw"}]
            r set k [string repeat v $len]
            assert_equal $before [r object encoding k]
            r getex k ex 100
            assert_equal $after [r object encoding k]
            r getex k persist
            assert_equal $after [r object encoding k]
            r set k [string repeat v $len] ex 100
            assert_equal $after [r object encoding k]
            r getex k persist
            assert_equal $after [r object encoding k]
        }
    }

    test {modified strings are raw, counters are int, floats are text} {
        foreach {value words expected} {
            12 {append k x} raw             12 {append k {}} raw        a {append k b} raw
            12 {setrange k 0 9} raw         12 {setrange k 0 {}} int    12 {setbit k 0 0} raw
            12 {setbit k 7 1} raw           12 {incr k} int             12 {incrbyfloat k 1} embstr
            12 {getex k ex 100} int         12 {incrbyfloat k 1e200} raw
        } {
            r set k $value
            r {*}$words
            assert_equal $expected [r object encoding k] $words
        }
        foreach {words expected} {{append k 12} int {setrange k 0 12} raw {setbit k 0 0} raw {incrbyfloat k 12} embstr {incr k} int} {
            r del k
            r {*}$words
            assert_equal $expected [r object encoding k] $words
        }
        r set k 1
        r append k 5
        assert_equal raw [r object encoding k]
        r incrbyfloat k 1
        assert_equal embstr [r object encoding k]
        r incr k
        assert_equal int [r object encoding k]
    }

    # ---- all together

    test {random changes of a string match a model} {
        for {set round 0} {$round < [scaled 20]} {incr round} {
            r del key
            set model ""
            set there 0
            for {set i 0} {$i < 200} {incr i} {
                set bytes [random_bytes [lindex {3 3 20 20 300} [random_below 5]]]
                switch [random_below 8] {
                    0 {
                        if {[random_below 2]} {set bytes [expr {[random_below 2000000] - 1000000}]}
                        r set key $bytes
                        set model $bytes
                        set there 1
                    }
                    1 {
                        if {[string is entier -strict $model] && [string equal $model [expr {$model + 0}]]} {
                            assert_equal [incr model 77] [r incrby key 77]
                        }
                    }
                    2 {
                        set at [random_below [expr {[string length $model] + 30}]]
                        if {$bytes ne ""} {
                            set there 1
                            if {$at > [string length $model]} {append model [string repeat \0 [expr {$at - [string length $model]}]]}
                            set tail [string range $model [expr {$at + [string length $bytes]}] end]
                            set model [string range $model 0 [expr {$at - 1}]]$bytes$tail
                        }
                        assert_equal [string length $model] [r setrange key $at $bytes]
                    }
                    3 {
                        set start [expr {[random_below 50] - 10}]
                        set end [expr {[random_below 50] - 10}]
                        set len [string length $model]
                        set from [expr {$start < 0 ? max(0, $len + $start) : $start}]
                        set to [expr {$end < 0 ? max(0, $len + $end) : $end}]
                        set expected [string range $model $from $to]
                        if {$start < 0 && $end < 0 && $start > $end} {set expected ""}
                        assert_equal $expected [r getrange key $start $end]
                    }
                    4 {
                        if {$there} {r getex key {*}[lindex {{ex 1000} persist {}} [random_below 3]]}
                    }
                    default {
                        append model $bytes
                        set there 1
                        assert_equal [string length $model] [r append key $bytes]
                    }
                }
                assert_equal $model [r get key]
                assert_equal $there [r exists key]
            }
        }
    }
}
