# SET IFNE, IFDEQ and IFDNE, DELEX, DIGEST: conditions on the value of a string, by its bytes and by their digest.

proc null {} {expr {[resp3] ? {null null} : {null bulk}}}
proc pattern {len} {string range [string repeat 0123456789abcdef [expr {$len / 16 + 1}]] 0 [expr {$len - 1}]}
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
set wrong_digest "ERR must be exactly 16 hexadecimal characters"

start_server {tags {string}} {
    test {DIGEST is XXH3 of the bytes, as in Redis 8.6, for every way that the hash has} {
        foreach {len digest} {
            0 2d06800538d394c2      1 1982e3a7bb241055      3 8ed2b2f360965d90      4 8aa92da18edb594b
            8 1808e40d6723f646      9 3b5293ce9b5bd7d7      16 64439946d8fa212d     17 c92e2385daf36034
            64 1e841dae933ea302     128 2a34ce5f2f590a81    129 f2d92824ceccb3bb    240 29b2c4184ec07ca9
            241 6796b9cafbbb535e    512 895b7fa3d5fb0fef    1023 bb1d2fa65ba55464   1024 540ffccbf24ea528
            1025 f629d2fe59397eea   4096 bd70a7148505c064   100000 68f003e3af65787f
        } {
            r set key [pattern $len]
            assert_equal [list bulk $digest] [r -typed digest key]
        }
    }

    test {DIGEST of numbers is that of their digits; of a missing key null} {
        r set key 12345
        assert_equal {int f34099ede96b5581} [list [r object encoding key] [r digest key]]
        r del key
        assert_equal [null] [r -typed digest key]
        r rpush key a
        assert_error $wrong_type {r digest key}
        foreach words {{} {a b}} {assert_error "ERR wrong number of arguments for 'digest' command" {r digest {*}$words}}
    }

    test {SET with IFNE, IFDEQ and IFDNE sets only if the condition holds} {
        foreach value {v 12345 {} x0 long} {
            if {$value eq "long"} {set value [string repeat x 1000]}
            r set key $value
            set digest [r digest key]
            foreach {option operand} [list ifeq other ifne $value ifdeq 0123456789abcdef ifdne $digest] {
                assert_equal [null] [r -typed set key new $option $operand]
                assert_equal $value [r get key]
            }
            foreach {option operand} [list ifeq $value ifne other ifdeq $digest ifdne 0123456789abcdef \
                                           IFDEQ [string toupper $digest]] {
                r set key $value
                assert_equal {status OK} [r -typed set key new $option $operand]
                assert_equal new [r get key]
            }
        }
    }

    test {a missing key differs from every value and digest} {
        foreach {option operand sets} {ifeq a 0 ifne a 1 ifdeq 0123456789abcdef 0 ifdne 0123456789abcdef 1} {
            r del key
            assert_equal [expr {$sets ? {status OK} : [null]}] [r -typed set key v $option $operand]
            assert_equal $sets [r exists key]
        }
    }

    test {SET with a condition takes GET, times and KEEPTTL} {
        r set key a
        assert_equal {bulk a} [r -typed set key b ifne x get ex 100]
        assert_range [r ttl key] 99 100
        assert_equal {bulk b} [r -typed set key c get ifne b]
        assert_equal b [r get key]
        assert_equal OK [r set key c keepttl ifdeq [r digest key]]
        assert_range [r ttl key] 99 100
        assert_equal OK [r set key d ifne x]
        assert_equal -1 [r ttl key]
        assert_equal OK [r set key e ifne x pxat 1]
        assert_equal 0 [r exists key]
        assert_equal [null] [r -typed set key e ifne x get]
        assert_equal e [r get key]
    }

    test {SET refuses two conditions, and other types than strings, and changes nothing} {
        r set key a
        foreach words {
            {ifne} {ifdeq} {ifne a ifne b} {ifne a ifeq a} {ifeq a ifne a} {ifne a nx} {nx ifne a} {xx ifdne a} {ifdne a xx}
            {ifdeq 0123456789abcdef ifdne 0123456789abcdef}
        } {
            assert_error "ERR syntax error" {r set key b {*}$words}
        }
        foreach option {ifdeq ifdne} {
            foreach digest {{} 0123456789abcde 0123456789abcdef0} {
                assert_error $wrong_digest {r set key b $option $digest}
                assert_error $wrong_digest {r set key b get $option $digest}
                assert_error $wrong_digest {r delex key $option $digest}
            }
        }
        assert_equal a [r get key]
        r del list
        r rpush list a
        foreach {option operand} {ifne x ifdeq 0123456789abcdef ifdne 0123456789abcdef} {
            assert_error $wrong_type {r set list b $option $operand}
        }
        foreach option {ifne ifdeq ifdne} {assert_error "ERR syntax error" {r getex key $option a}}
        foreach option {ifne ifdeq ifdne} {assert_error "ERR syntax error" {r msetex 1 key b $option a}}
        assert_equal {a a} [list [r get key] [r lindex list 0]]
    }

    test {DELEX deletes a string only if the condition holds} {
        foreach value {v 12345 long} {
            if {$value eq "long"} {set value [string repeat x 1000]}
            r set key $value
            set digest [r digest key]
            foreach {option operand} [list ifeq other ifne $value ifdeq 0123456789abcdef ifdne $digest] {
                assert_equal {integer 0} [r -typed delex key $option $operand]
                assert_equal $value [r get key]
            }
            foreach {option operand} [list ifeq $value ifne other ifdeq $digest ifdne 0123456789abcdef \
                                           IFDEQ [string toupper $digest]] {
                r set key $value
                assert_equal {integer 1} [r -typed delex key $option $operand]
                assert_equal 0 [r exists key]
                assert_equal 0 [r delex key $option $operand]
            }
        }
    }

    test {DELEX without a condition deletes any key} {
        r set key a
        r rpush list a
        assert_equal {1 1 0} [list [r delex key] [r delex list] [r delex list]]
        assert_equal 0 [r exists key list]
    }

    test {DELEX refuses unknown conditions and other types, and changes nothing} {
        r set key a
        r rpush list a
        assert_error "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE" {r delex key nx a}
        foreach option {ifeq ifne} {assert_error "WRONGTYPE *" {r delex list $option a}}
        assert_error "ERR Key should be of string type if conditions are specified" {r delex list ifdeq a}
        foreach words {{} {key ifeq} {key ifeq a ifeq}} {
            assert_error "ERR wrong number of arguments for 'delex' command" {r delex {*}$words}
        }
        assert_equal 2 [r exists key list]
        assert_equal 0 [r delex none nx a]
    }

    test {the key of DELEX is read only if there is a condition} {
        assert_equal {{key {RM delete}}} [r command getkeysandflags delex key]
        assert_equal {{key {RW delete}}} [r command getkeysandflags delex key ifeq a]
    }
}

start_server {tags {string extended} overrides {extended-commands no}} {
    test {without extended commands, arguments of newer Redis are refused as Valkey refuses them} {
        r set key a
        r set digest 0123456789abcdef
        r xadd stream 1-1 f v
        r xgroup create stream g 0
        foreach words {
            {delex key ifdeq 0123456789abcdef} {delex key nx a} {set key b ifdeq 0123456789abcdef} {set key b ifdne 0123456789abcdef get}
            {bitop diff key key digest} {bitop diff1 key key digest} {bitop andor key key digest} {bitop one key key}
            {xtrim stream maxlen 0 delref} {xtrim stream keepref maxlen 0}
            {xreadgroup group g c claim 0 streams stream >} {xread claim 0 streams stream 0}
        } {
            assert_error "ERR syntax error" {r {*}$words}
        }
        foreach word {keepref delref acked} {
            assert_error "ERR Invalid stream ID specified as stream command argument" {r xadd stream $word 2-1 f v}
        }
        assert_error "ERR unknown command 'digest'*" {r digest key}
        assert_error "ERR wrong number of arguments for 'delex' command" {r delex key}
        assert_equal {a 1} [list [r get key] [r xlen stream]]
        assert_equal OK [r set key b ifeq a]
        foreach {command word} {set IFDEQ bitop ANDOR xadd KEEPREF xtrim ACKED xreadgroup CLAIM} {
            assert_equal 0 [regexp $word [r command docs $command]]
        }
    }
}
