# PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST: answers, bytes of both forms, refusals, broken bytes. What they
# propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}

proc hll {runs {head "\x00\x00\x00\x00\x00\x00\x00\x80"}} {return "HYLL\x01\x00\x00\x00$head$runs"}

start_server {tags {hyperloglog}} {
    test {HyperLogLog commands refuse too few and too many arguments} {
        foreach {command words} {pfadd {} pfcount {} pfmerge {} pfdebug {getreg} pfdebug {getreg k x} pfselftest {x}} {
            assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$words}
        }
    }

    test {HyperLogLog commands refuse other types and other strings, and leave them alone} {
        r hset h f v
        r set text value
        r set number 12345
        r set head HYLL
        r set other "HYLL\x02[string repeat \x00 11]"
        r set dense "HYLL\x00[string repeat \x00 12300]"
        foreach command {
            {pfadd KEY} {pfadd KEY a} {pfcount KEY} {pfcount none KEY} {pfmerge d KEY} {pfmerge KEY none}
            {pfdebug getreg KEY} {pfdebug foo KEY}
        } {
            assert_error "WRONGTYPE Operation against a key holding the wrong kind of value" {r {*}[string map {KEY h} $command]}
            foreach key {text number head other dense} {
                assert_error "WRONGTYPE Key is not a valid HyperLogLog string value." {r {*}[string map [list KEY $key] $command]}
            }
        }
        assert_equal {value 12345 0} [list [r get text] [r get number] [r exists d]]
    }

    test {PFADD creates a key, replies whether the estimate changed, and keeps the TTL} {
        assert_equal {integer 1} [typed pfadd k]
        assert_equal [hll "\x7f\xff"] [r get k]
        assert_equal {0 1 0} [list [r pfadd k] [r pfadd k a b c] [r pfadd k c a]]
        assert_equal [hll "\x60\xf3\x80\x50\xb1\x84\x4b\xfb\x80\x42\x5a"] [r get k]
        assert_equal raw [r object encoding k]
        assert_equal {integer 3} [typed pfcount k]
        assert_equal [hll "\x60\xf3\x80\x50\xb1\x84\x4b\xfb\x80\x42\x5a" "\x03[string repeat \x00 7]"] [r get k]
        assert_equal {Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603} [r pfdebug decode k]
        r expire k 100
        r pfadd k d
        assert_range [r ttl k] 1 100
        assert_equal 4 [r pfcount k]
        assert_equal {0 0} [list [r pfcount none] [r pfcount none none]]
    }

    test {a HyperLogLog written by a client is accepted, and becomes raw} {
        r set k [hll "\x7f\xff" "\x05[string repeat \x00 7]"]
        assert_equal embstr [r object encoding k]
        assert_equal 5 [r pfcount k]
        assert_equal raw [r object encoding k]
        assert_equal 0 [r pfcount k none]
        assert_equal 1 [r pfdebug todense k]
        assert_equal 5 [r pfcount k]
        assert_equal OK [r pfmerge k]
        assert_equal 0 [r pfcount k]
    }

    test {sparse becomes dense beyond hll-sparse-max-bytes, with the same registers} {
        r config set hll-sparse-max-bytes 300
        r del k sparse
        set elements {}
        r pfadd k first
        for {set i 0} {[r pfdebug encoding k] eq "sparse"} {incr i} {
            assert_range [r strlen k] 18 300
            r pfadd k e$i
            lappend elements e$i
        }
        assert_range $i 50 200
        assert_equal 12304 [r strlen k]
        assert_error "ERR HLL encoding is not sparse" {r pfdebug decode k}
        r config set hll-sparse-max-bytes 3000
        r pfadd sparse first {*}$elements
        assert_equal sparse [r pfdebug encoding sparse]
        assert_equal [r pfcount k] [r pfcount sparse]
        assert_equal 1 [r pfdebug todense sparse]
        assert_equal 0 [r pfdebug todense sparse]
        r pfcount k
        r pfcount sparse
        assert_equal [r get k] [r get sparse]
        set registers [r pfdebug getreg k]
        assert_equal 16384 [llength $registers]
        assert_range [llength [lsearch -all -not $registers 0]] 50 200
        r config set hll-sparse-max-bytes 0
        r del k
        r pfadd k
        assert_equal sparse [r pfdebug encoding k]
        r pfadd k a
        assert_equal dense [r pfdebug encoding k]
        r config set hll-sparse-max-bytes 3000
    }

    test {a sparse value that is longer than hll-sparse-max-bytes is added to} {
        set elements {}
        for {set i 0} {$i < 400} {incr i} {lappend elements e$i}
        r del h
        r config set hll-sparse-max-bytes 3000
        r pfadd h {*}$elements
        assert_equal sparse [r pfdebug encoding h]
        r config set hll-sparse-max-bytes 100
        assert_equal 0 [r pfadd h e1]
        assert_equal sparse [r pfdebug encoding h]
        assert_equal 1 [r pfadd h another]
        assert_equal dense [r pfdebug encoding h]
        r config set hll-sparse-max-bytes 3000
        # What stands after the last register is not looked at.
        r pfadd long {*}[lrange $elements 0 200]
        r append long [string repeat a 5000]
        assert_equal 0 [r pfadd long e1]
        assert_error "INVALIDOBJ Corrupted HLL object detected*" {r pfcount long}
    }

    test {estimates are near the truth, in both forms and merged} {
        r del a b c
        set count 0
        for {set i 0} {$i < 40} {incr i} {
            set some {}
            for {set j 0} {$j < [expr {$i < 20 ? 5 : 250}]} {incr j} {lappend some "element $count"; incr count}
            r pfadd [lindex {a b} [expr {$i % 2}]] {*}$some
            # The elements are always the same: luck has no part in it.
            set off [expr {abs([r pfcount a b] - $count)}]
            assert_range $off 0 [expr {$count * 0.03 + 1}]
        }
        assert_equal {dense dense} [list [r pfdebug encoding a] [r pfdebug encoding b]]
        assert_equal OK [r pfmerge c a none b]
        assert_equal [r pfcount a b] [r pfcount c]
        r del d
        r pfmerge d a
        r pfmerge d b
        r pfcount d
        assert_equal [r get c] [r get d]
    }

    test {PFMERGE is sparse as long as all sources are, and makes its destination} {
        r del d
        assert_equal OK [r pfmerge d none]
        assert_equal [hll "\x7f\xff"] [r get d]
        r del a b
        r pfadd a x y
        r pfadd b y z
        assert_equal OK [r pfmerge d a b]
        assert_equal {sparse 3} [list [r pfdebug encoding d] [r pfcount d]]
        r pfdebug todense a
        r del d
        r pfmerge d b a
        assert_equal {dense 3} [list [r pfdebug encoding d] [r pfcount d]]
        r pfmerge b a
        assert_equal {dense 3} [list [r pfdebug encoding b] [r pfcount b]]
    }

    test {broken bytes are refused} {
        r del d
        foreach runs [list "" "\x7f\xfe" "\x7f\xff\x00" "\x7f\xff\xff" "\x00" "\xff" "\x3f\x3f"] {
            r set k [hll $runs]
            foreach command {{pfcount k} {pfcount k none} {pfmerge d k} {pfmerge k none} {pfdebug getreg k} {pfdebug todense k}} {
                assert_error "INVALIDOBJ Corrupted HLL object detected" {r {*}$command}
            }
            assert_equal [list [hll $runs] 0] [list [r get k] [r exists d]]
        }
        foreach runs [list "" "\x00" "\xff" "\x3f\x3f"] {
            r set k [hll $runs]
            assert_error "INVALIDOBJ Corrupted HLL object detected" {r pfadd k a b c}
            assert_equal [hll $runs] [r get k]
        }
        r set k "HYLL[string repeat \x00 11]\x80[string repeat \xff 12288]"
        assert_equal -9223372036854775808 [r pfcount k]
        assert_equal 0 [r pfadd k a b c]
    }

    test {random bytes after the header do no harm} {
        for {set i 0} {$i < [scaled 300]} {incr i} {
            set runs ""
            for {set j [random_below 40]} {$j > 0} {incr j -1} {append runs [format %c [random_below 256]]}
            r set k [hll $runs]
            foreach command {{pfadd k a b c d e} {pfcount k} {pfdebug decode k} {pfmerge d k} {pfdebug todense k}} {
                if {[catch {r {*}$command} error]} {assert_match "INVALIDOBJ *" $error}
            }
            r del d
        }
        assert_equal PONG [r ping]
    }

    test {PFDEBUG refuses unknown subcommands; PFSELFTEST succeeds} {
        r del k
        foreach subcommand {getreg decode encoding todense foo} {
            assert_error "ERR The specified key does not exist" {r pfdebug $subcommand k}
        }
        r pfadd k a
        assert_error "ERR Unknown PFDEBUG subcommand 'foo'" {r pfdebug foo k}
        assert_equal {enabled disabled} [list [r pfdebug simd on] [r pfdebug SIMD OFF]]
        assert_equal OK [r pfselftest]
    }
}
