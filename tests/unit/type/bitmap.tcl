# BITCOUNT, BITPOS, BITOP, BITFIELD and BITFIELD_RO: success, refusals, random histories against a model. (SETBIT and
# GETBIT: unit/type/string.) What they propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}

# A text as its bits, "0" and "1"; and back.
proc bits_of {text} {
    binary scan $text B* bits
    return $bits
}
proc text_of {bits} {binary format B* $bits}

proc random_text {len} {
    set text ""
    set only [random_below 3]
    for {set i 0} {$i < $len} {incr i} {
        append text [format %c [expr {$only == 0 ? 0 : $only == 1 ? 255 : [random_below 256]}]]
    }
    return $text
}

# The first bit of a number of `count` bits is the highest.
proc number_at {bits offset count signed} {
    append bits [string repeat 0 [expr {max(0, $offset + $count - [string length $bits])}]]
    set field [string range $bits $offset [expr {$offset + $count - 1}]]
    set value [expr 0b$field]
    if {$signed && [string index $field 0]} {incr value [expr {-(1 << $count)}]}
    return $value
}

proc number_put {bits offset count value} {
    append bits [string repeat 0 [expr {max(0, ($offset + $count + 7) / 8 * 8 - [string length $bits])}]]
    set field [format %0${count}llb [expr {$value & ((1 << $count) - 1)}]]
    string replace $bits $offset [expr {$offset + $count - 1}] $field
}

start_server {tags {bitmap}} {
    test {bit commands refuse too few and too many arguments} {
        foreach {command few} {bitcount {} bitpos {k} bitop {and d} bitfield {} bitfield_ro {}} {
            assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$few}
        }
        assert_error "ERR syntax error" {r bitcount k 0 1 byte x}
        assert_error "ERR syntax error" {r bitpos k 0 0 1 byte x}
        assert_equal 0 [r dbsize]
    }

    test {bit commands refuse other types and leave the key alone} {
        r hset h f v
        r set s value
        foreach command {
            {bitcount h} {bitcount h 0 1} {bitpos h 1} {bitop and d s h} {bitop not d h} {bitfield h get u8 0}
            {bitfield h set u8 0 1} {bitfield_ro h get u8 0} {bitfield h}
        } {
            assert_error "WRONGTYPE *" {r {*}$command}
        }
        assert_equal {hash 0} [list [r type h] [r exists d]]
        assert_equal 5 [r bitop or h s s]
        assert_equal value [r get h]
        r del h s
    }

    test {BITCOUNT counts in ranges of bytes and of bits} {
        r set s foobar
        foreach {range count} {
            {} 26 1 22 {0 0} 4 {1 1} 6 {1 1 byte} 6 {1 1 bit} 1 {5 30 BIT} 17 {0 -1} 26 {-2 -1} 7 {-5 -1 bit} 2 {-100 -200} 0
            {-50 -49 bit} 0 {3 2} 0 {6 9} 0 {-9223372036854775808 9223372036854775807 bit} 26
            {9223372036854775807 9223372036854775807} 0
        } {assert_equal $count [r bitcount s {*}$range] $range}
        assert_equal {integer 0} [typed bitcount nope]
        assert_equal 0 [r bitcount nope 0 -1 bit]
        r set n 12345
        assert_equal 17 [r bitcount n]
    }

    test {BITCOUNT and BITPOS refuse invalid ranges} {
        foreach {range error} {
            {a} "ERR value is not an integer or out of range" {0 b} "ERR value is not an integer or out of range"
            {0 1 bits} "ERR syntax error" {0 b bits} "ERR syntax error" {a 0 bits} "ERR value is not an integer or out of range"
        } {
            foreach key {s nope} {
                assert_error $error {r bitcount $key {*}$range}
                assert_error $error {r bitpos $key 1 {*}$range}
            }
        }
        assert_error "ERR The bit argument must be 1 or 0." {r bitpos s 2 a}
        assert_error "ERR value is not an integer or out of range" {r bitpos s x}
    }

    test {BITPOS finds the first bit, and zeros after the end of a string only without an end argument} {
        r set s foobar
        r set ones "\xff\xff\xff"
        r set empty ""
        foreach {words place} {
            {s 1} 1 {s 0} 0 {s 0 1} 8 {s 0 -2} 32 {s 1 2 3 bit} 2 {s 0 2 -1 bit} 3 {s 1 47 100 bit} -1 {s 0 47 100 bit} 47
            {s 1 -50 -49 bit} -1 {s 1 -50 3 bit} 1 {ones 0} 24 {ones 0 0} 24 {ones 0 0 -1} -1 {ones 0 0 -1 bit} -1
            {ones 0 3} -1 {ones 1 3} -1 {ones 0 2 1} -1 {ones 1 -1} 16 {nope 0} 0 {nope 1} -1 {nope 0 5 9 bit} 0 {empty 0} -1
            {empty 1} -1
        } {assert_equal $place [r bitpos {*}$words] $words}
    }

    test {BITCOUNT and BITPOS of random strings match a model} {
        for {set round 0} {$round < [scaled 200]} {incr round} {
            set text [random_text [expr {1 + [random_below 400]}]]
            r set s $text
            set bits [bits_of $text]
            set last [expr {[string length $bits] - 1}]
            set from [random_below [expr {$last + 1}]]
            set to [expr {$from + [random_below [expr {$last + 1 - $from}]]}]
            set part [string range $bits $from $to]
            assert_equal [regexp -all 1 $part] [r bitcount s $from $to bit]
            foreach bit {0 1} {
                set at [string first $bit $part]
                assert_equal [expr {$at < 0 ? -1 : $at + $from}] [r bitpos s $bit $from $to bit]
            }
            assert_equal [regexp -all 1 $bits] [r bitcount s]
        }
    }

    test {BITOP refuses unknown operations and a second key for NOT} {
        r set a x
        foreach operation {nand foo {}} {assert_error "ERR syntax error" {r bitop $operation d a}}
        assert_error "ERR BITOP NOT must be called with a single source key." {r bitop not d a a}
        assert_equal 0 [r exists d]
    }

    test {BITOP stores raw strings, accepts its destination as a source, and deletes it if the result is empty} {
        r set n 12
        r set d old ex 100
        assert_equal {integer 2} [typed bitop and d n]
        assert_equal {12 raw -1} [list [r get d] [r object encoding d] [r ttl d]]
        assert_equal 2 [r bitop not n n]
        assert_equal "\xce\xcd" [r get n]
        r hset h f v
        assert_equal 2 [r bitop or h n nope]
        assert_equal string [r type h]
        assert_equal 0 [r bitop xor h nope nope]
        assert_equal 0 [r exists h]
        assert_equal 0 [r bitop not h nope]
        r set empty ""
        r set d x
        assert_equal 0 [r bitop or d empty nope]
        assert_equal 0 [r exists d]
    }

    test {BITOP of random strings matches a model} {
        for {set round 0} {$round < [scaled 100]} {incr round} {
            set count [expr {1 + [random_below 5]}]
            set keys {}
            set texts {}
            set len 0
            for {set i 0} {$i < $count} {incr i} {
                set text [random_text [expr {$round % 10 ? [random_below 70] : 8000 + [random_below 1000]}]]
                r set s$i $text
                lappend keys s$i
                binary scan $text cu* bytes
                lappend texts $bytes
                set len [expr {max($len, [string length $text])}]
            }
            set op [lindex {and or xor not} [random_below 4]]
            if {$op eq "not"} {
                set keys [lrange $keys 0 0]
                set texts [lrange $texts 0 0]
                set len [llength [lindex $texts 0]]
            }
            set want {}
            for {set i 0} {$i < $len} {incr i} {
                set value [lindex $texts 0 $i]
                if {$value eq ""} {set value 0}
                foreach text [lrange $texts 1 end] {
                    set other [lindex $text $i]
                    if {$other eq ""} {set other 0}
                    set value [switch $op and {expr {$value & $other}} or {expr {$value | $other}} xor {expr {$value ^ $other}}]
                }
                lappend want [expr {$op eq "not" ? ~$value & 255 : $value}]
            }
            assert_equal $len [r bitop $op d {*}$keys]
            assert_equal [binary format c* $want] [r get d]
        }
    }

    test {BITOP DIFF, DIFF1, ANDOR and ONE, as Redis 8.6 computes them} {
        r mset a "\x0f\x3c" b "\xaa" c "\xff\x01\x80"
        foreach {operation keys want} {
            diff {a b} 053c         diff {b a} a000         diff {a b c} 003c00     diff {a none} 0f3c
            diff1 {a b} a000        diff1 {a b c} f00180    diff1 {none a} 0f3c
            andor {a b} 0a00        andor {a b c} 0f0000    andor {a none} 0000
            one {a} 0f3c            one {a b} a53c          one {a b c} 503d80      one {a b c a} 500180
        } {
            assert_equal [string length $want] [expr {2 * [r bitop $operation d {*}$keys]}]
            binary scan [r get d] H* got
            assert_equal $want $got "$operation $keys"
        }
        assert_equal 0 [r bitop diff d none none]
        assert_equal 0 [r exists d]
    }

    test {BITOP DIFF, DIFF1 and ANDOR need two sources, and refuse other types} {
        r del d list
        r set a x
        r rpush list a
        foreach operation {DIFF DIFF1 ANDOR} {
            assert_error "ERR BITOP $operation must be called with at least two source keys." {r bitop $operation d a}
            assert_error "WRONGTYPE *" {r bitop $operation d a list}
        }
        assert_error "WRONGTYPE *" {r bitop one d list}
        assert_equal 0 [r exists d]
    }

    test {BITOP DIFF, DIFF1, ANDOR and ONE of random strings match a model} {
        for {set round 0} {$round < [scaled 100]} {incr round} {
            set count [expr {2 + [random_below 4]}]
            set keys {}
            set texts {}
            set len 0
            for {set i 0} {$i < $count} {incr i} {
                set text [random_text [expr {$round % 10 ? [random_below 70] : 8000 + [random_below 1000]}]]
                r set s$i $text
                lappend keys s$i
                binary scan $text cu* bytes
                lappend texts $bytes
                set len [expr {max($len, [string length $text])}]
            }
            set op [lindex {diff diff1 andor one} [random_below 4]]
            set want {}
            for {set i 0} {$i < $len} {incr i} {
                set values [lmap text $texts {expr {[llength $text] > $i ? [lindex $text $i] : 0}}]
                set own [lindex $values 0]
                set others 0
                foreach value [lrange $values 1 end] {set others [expr {$others | $value}]}
                set once 0
                set again 0
                foreach value $values {
                    set again [expr {$again | $once & $value}]
                    set once [expr {$once | $value}]
                }
                lappend want [switch $op diff {expr {$own & ~$others}} diff1 {expr {$others & ~$own}} \
                    andor {expr {$own & $others}} one {expr {$once & ~$again}}]
            }
            assert_equal $len [r bitop $op d {*}$keys]
            assert_equal [binary format c* $want] [r get d] "$op $count"
        }
    }

    test {BITFIELD reads, sets and increments numbers of any width} {
        r del b
        assert_equal {array {}} [typed bitfield b]
        assert_equal {array {}} [typed bitfield b overflow sat]
        assert_equal {array {{integer 0}}} [typed bitfield b get u8 0]
        assert_equal 0 [r exists b]
        assert_equal {0 255 -1 15} [r bitfield b set u8 0 255 get u8 0 get i8 0 get u4 4]
        assert_equal raw [r object encoding b]
        assert_equal {0 300} [r bitfield b set u16 #1 300 get u16 16]
        assert_equal "\xff\x00\x01\x2c" [r get b]
        assert_equal {299 -212} [r bitfield b incrby u16 #1 -1 incrby i9 23 1]
        assert_equal {0} [r bitfield b get i64 4294967288]
        assert_equal {0} [r bitfield_ro b get u63 1000]
        r set number 12
        assert_equal {49 50} [r bitfield number get u8 0 get u8 8]
        assert_equal int [r object encoding number]
        assert_equal 49 [r bitfield number set u8 0 49]
        assert_equal raw [r object encoding number]
    }

    test {BITFIELD wraps, saturates or fails on overflow as set by OVERFLOW} {
        foreach {words expected} {
            {set u8 0 300 get u8 0} {0 44} {overflow sat set u8 0 300 get u8 0} {0 255} {overflow sat incrby i8 0 200} 127
            {overflow wrap incrby i8 0 200} -56 {overflow sat incrby i8 0 -200} -128 {overflow sat incrby u8 0 -1} 0
            {incrby u8 0 -1} 255 {set i8 0 128 set i8 0 -129 get i8 0} {0 -128 127}
            {overflow sat set u8 0 -1 get u8 0} {0 255}
            {set i64 0 9223372036854775807 incrby i64 0 1} {0 -9223372036854775808}
            {set i64 0 9223372036854775807 overflow sat incrby i64 0 1 incrby i64 0 1} {0 9223372036854775807 9223372036854775807}
            {set u63 0 9223372036854775807 incrby u63 0 1} {0 0}
            {overflow sat set i63 2 -9223372036854775808 get i63 2} {0 4611686018427387903}
        } {
            r del b
            assert_equal $expected [r bitfield b {*}$words] $words
        }
        r del b
        assert_equal [list array [list [null] {integer 0} [null] {integer 7}]] \
            [typed bitfield b overflow fail incrby u2 0 4 set u8 8 7 incrby u8 8 250 get u8 8]
        r del b
        assert_equal [list array [list [null]]] [typed bitfield b overflow fail set u2 100 9]
        assert_equal 13 [r strlen b]
    }

    test {BITFIELD refuses invalid operations before anything is written} {
        r set b abc
        set type "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
        set offset "ERR bit offset is not an integer or out of range"
        foreach {words error} [list \
            {get u64 0} $type {get i65 0} $type {get u0 0} $type {get x8 0} $type {get u 0} $type {get {} 0} $type {get U8 0} $type \
            {get u08 0} $type {get u8 -1} $offset {get u8 #a} $offset {get u8 #} $offset {get u8 4294967296} $offset \
            {get u8 #536870912} $offset {get u8 #9223372036854775807} $offset {set u8 0} "ERR syntax error" \
            {set u8 0 a} "ERR value is not an integer or out of range" {foo u8 0} "ERR syntax error" {get u8} "ERR syntax error" \
            {overflow} "ERR syntax error" {overflow foo} "ERR Invalid OVERFLOW type specified"] {
            assert_error $error {r bitfield b set u8 0 1 {*}$words}
            assert_error $error {r bitfield_ro b {*}$words}
        }
        foreach words {{set u8 0 1} {get u8 0 incrby u8 0 1}} {
            assert_error "ERR BITFIELD_RO only supports the GET subcommand" {r bitfield_ro b {*}$words}
        }
        assert_equal abc [r get b]
    }

    test {BITFIELD reports its key flags depending on the operations} {
        foreach {words flags} {
            {get u8 0} {RO access} {} {RO access} {overflow sat get u8 0} {RO access} {get set 0} {RO access}
            {set u8 0 1} {RW access update} {get u8 0 incrby u8 0 1} {RW access update} {get u8} {RW access update}
        } {assert_equal [list [list b $flags]] [r command getkeysandflags bitfield b {*}$words] $words}
    }

    test {BITFIELD at random offsets matches a model} {
        r del b
        set bits ""
        for {set round 0} {$round < [scaled 500]} {incr round} {
            set signed [random_below 2]
            set count [expr {1 + [random_below [expr {$signed ? 64 : 63}]]}]
            set offset [random_below 500]
            set by [expr {[random_below 100000] - 50000}]
            set type [lindex {u i} $signed]$count
            set old [number_at $bits $offset $count $signed]
            assert_equal $old [r bitfield b get $type $offset]
            set bits [number_put $bits $offset $count [expr {$old + $by}]]
            assert_equal [number_at $bits $offset $count $signed] [r bitfield b incrby $type $offset $by]
        }
        assert_equal [text_of $bits] [r get b]
    }
}
