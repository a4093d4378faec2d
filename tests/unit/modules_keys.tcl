# SPDX-License-Identifier: BSD-3-Clause
#
# Open keys of modules (tests/modules/keys.c): modes, strings, expiry, access, wrong use.

start_server {overrides {enable-module-command yes}} {
    r module load [file normalize build/modules/keys.so]

    test {a string is read in place, whatever its form} {
        foreach value {{} text 17 -9223372036854775808} {
            r set k $value
            assert_equal [list $value 1 [string length $value]] [r keys.get k 1]
            assert_equal $value [r keys.fastget k]
        }
        set large [string repeat x 100000]
        r set k $large
        assert_equal $large [r keys.fastget k]
        r del k
        assert_equal {} [r keys.get k 1]
        assert_equal {{} 0 0} [r keys.get k 2]
        assert_equal 0 [r exists k]
        r lpush l a b
        assert_equal {{wrong type} 2 2} [r keys.get l 1]
        assert_equal {{wrong type} 2 2} [r keys.get l 3]
    }

    test {a path hash has a type of its own, the number of its paths, and no access to its values} {
        r module load [file normalize build/modules/elements.so]
        foreach mode {1 3} {
            r del p
            r phmset p /a fields 2 f 1 g 2 /b fields 1 f 1 "" fields 1 f 1
            # VALKEYMODULE_KEYTYPE_PATHHASH
            assert_equal {{wrong type} 8 3} [r keys.get p $mode]
            foreach command {{hash.get p f} {hash.set p 0 f v}} {lappend replies [r {*}$command]}
            assert_equal {1 {{}} 2} [list [r phexists p ""] [r phget p /none f] [r phget p /a g]]
        }
        foreach command {keys.del keys.unlink} {
            assert_equal {0 0 0} [r $command p]
            assert_equal 0 [r exists p]
            r phset p /a fields 1 f 1
        }
        assert_equal 0 [r keys.set p text]
        assert_equal {string text} [list [r type p] [r get p]]
        r del p
        r module unload elements
        assert_equal {{wrong type} ENOTSUP {wrong type} ENOTSUP} $replies
    }

    test {StringSet replaces any value and its expiry time} {
        assert_equal 0 [r keys.set l text]
        assert_equal text [r get l]
        r set k old ex 100
        assert_equal 0 [r keys.set k new]
        assert_equal {new -1} [list [r get k] [r ttl k]]
    }

    test {StringDMA for writing makes any string writable in place} {
        foreach value [list abc 1234 [string repeat y 100000]] {
            r set k $value
            assert_equal [string replace $value 1 1 z] [r keys.poke k 1 z]
            assert_equal [string replace $value 1 1 z] [r get k]
        }
        assert_error {ERR no such byte} {r keys.poke missing 0 z}
        assert_equal 0 [r exists missing]
    }

    test {StringTruncate cuts, extends with zeros, creates; and refuses} {
        r set k abcdef ex 100
        assert_equal 0 [r keys.truncate k 3]
        assert_equal abc [r get k]
        assert_equal 0 [r keys.truncate k 5]
        assert_equal "abc\0\0" [r get k]
        assert_range [r ttl k] 1 100
        assert_equal 0 [r keys.truncate k 0]
        assert_equal {} [r get k]
        r del k
        assert_equal 0 [r keys.truncate k 0]
        assert_equal 0 [r exists k]
        assert_equal 0 [r keys.truncate k 4]
        assert_equal "\0\0\0\0" [r get k]
        assert_equal 1 [r keys.truncate k [expr {513 * 1024 * 1024}]]
        assert_equal 1 [r keys.truncate k -1]
        r del l
        r lpush l a
        assert_equal 1 [r keys.truncate l 1]
        assert_equal 1 [r llen l]
    }

    test {a handle stays usable after the deletion of its key} {
        foreach command {keys.del keys.unlink} {
            r set k v
            assert_equal {0 0 0} [r $command k]
            assert_equal 0 [r exists k]
        }
    }

    test {a handle sees what Call() does to its key} {
        r set k first
        assert_equal {short {} 12 {a longer text than the one before it}} [r keys.twice k]
    }

    test {expiry times are set, read and removed} {
        r set k v
        lassign [r keys.expire k 100000] result rest at
        assert_equal 0 $result
        assert_range $rest 1 100000
        assert_range [r pttl k] 1 100000
        assert_equal $at [r pexpiretime k]
        assert_equal {0 -1 -1} [r keys.expire k -1]
        assert_equal -1 [r ttl k]
        assert_equal 1 [lindex [r keys.expire k -2] 0]
        assert_equal 1 [lindex [r keys.expire missing 100] 0]
        assert_equal {0 33000000000000} [lreplace [r keys.expire k 33000000000000 abs] 1 1]
        assert_equal 1 [lindex [r keys.expire k 9223372036854775807] 0]
    }

    test {an expiry time that has passed can be set} {
        foreach words {{0} {1 abs}} {
            r set k v
            assert_equal 0 [lindex [r keys.expire k {*}$words] 0]
            wait_for_condition 100 10 {[r exists k] == 0} else {fail {the key does not expire}}
        }
    }

    test {NOEXPIRE opens a key that has expired; others do not} {
        r debug set-active-expire 0
        r set k v px 1
        wait_for_condition 50 10 {[r keys.get k [expr {1 | 1 << 20}]] eq {}} else {
            fail {the key does not expire}
        }
        assert_equal {v 1 1} [r keys.get k [expr {1 | 1 << 19}]]
        assert_equal 2 [r dbsize] {the mode without effects removes nothing}
        assert_equal {} [r keys.get k 1]
        r debug set-active-expire 1
    }

    test {hits and misses are counted unless the mode says otherwise} {
        r flushall
        r set k v
        r config resetstat
        r keys.get k 1
        r keys.get missing 1
        assert_equal {1 1} [list [info_field keyspace_hits] [info_field keyspace_misses]]
        foreach mode [list [expr {1 | 1 << 18}] [expr {1 | 1 << 20}] 2] {
            r keys.get k $mode
            r keys.get missing $mode
        }
        assert_equal {1 1} [list [info_field keyspace_hits] [info_field keyspace_misses]]
    }

    test {idle time and frequency are set and read as the policy permits} {
        assert_equal {0 0} [r keys.lru k 0]
        assert_equal {0 100000} [r keys.lru k 100000]
        assert_equal 100 [r object idletime k]
        assert_equal {0 -1} [r keys.lfu k]
        assert_equal {1 -1} [r keys.lfu k 5]
        assert_equal {3 -1} [r keys.lru missing 5]
        r config set maxmemory-policy allkeys-lfu
        assert_equal {0 50} [r keys.lfu k 50]
        assert_equal {1 -1} [r keys.lru k 50]
        r config set maxmemory-policy noeviction
    }

    test {a handle for writing tells those who watch the key, when it is closed} {
        r watch k
        r keys.touch k
        r multi
        r ping
        assert_equal {} [r exec]
        r watch k
        r keys.get k 1
        r multi
        r ping
        assert_equal PONG [r exec]
    }

    test {a string has room for more appends, which it can give back} {
        lassign [r keys.append foo [string repeat x 1024]] saved len
        assert {$saved > 500}
        assert_equal 1027 $len
    }

    test {wrong use of handles is refused} {
        r set k v
        assert_equal 9 [r select 9; r keys.wrong k; r set k v; r keys.wrong k]
        assert_equal v [r get k]
        r select 0
    }

    test {random keys, sizes, existence, and an empty dataset} {
        r flushall
        assert_equal {{} 0 0} [list [r keys.random] [r keys.size] [r keys.exists k]]
        r set k v
        assert_equal {k 1 1} [list [r keys.random] [r keys.size] [r keys.exists k]]
        foreach async {0 1} {
            r set k v
            assert_equal OK [r keys.reset $async]
            assert_equal 0 [r dbsize]
        }
    }
}

start_server {tags {jobs} overrides {enable-module-command yes enable-debug-command yes}} {
    r module load [file normalize build/modules/elements.so]
    r module load [file normalize build/modules/calls.so]
    r config set command-slice-us 10

    test {a key that a job changes in place is opened, or read by a call, when the change is complete} {
        set pairs {}
        for {set i 0} {$i < 500} {incr i} {lappend pairs $i m:$i}
        foreach {command expected} {{zset.score z m:450} 7 {calls.run - zscore z m:450} 7 {zset.rem z m:450} 1 {calls.run - zcard z} 500} {
            r del z
            r zadd z {*}$pairs
            r debug pause-jobs 1
            set c [connect]
            $c -send zadd z ch {*}[concat {*}[lmap {score member} $pairs {list 7 $member}]]
            info_is jobs_running 1
            assert_equal $expected [r {*}$command] $command
            r debug pause-jobs 0
            assert_equal 499 [$c -read] ;# one has had this score
            assert_equal [expr {[lindex $command 0] eq "zset.rem" ? 499 : 500}] [r zcount z 7 7]
            $c -close
        }
    }
}
