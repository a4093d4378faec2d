# SPDX-License-Identifier: BSD-3-Clause
#
# Lists, hashes and sorted sets of open keys (tests/modules/elements.c).

source $::tests_dir/support/raw_replica.tcl

start_server {overrides {enable-module-command yes enable-debug-command yes repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    r module load [file normalize build/modules/elements.so]

    test {lists: both ends, indexes, and the end of the last element} {
        assert_equal ENOTSUP [r list.pop l 0]
        assert_equal ENOTSUP [r list.get l 0]
        assert_equal OK [r list.push l 1 b]
        assert_equal OK [r list.push l 0 a]
        assert_equal OK [r list.insert l 2 d]
        assert_equal OK [r list.insert l 2 c]
        assert_equal OK [r list.insert l -3 x]
        assert_equal {a b x c d} [r lrange l 0 -1]
        assert_equal OK [r list.insert l -1 e]
        assert_equal OK [r list.insert l -7 0]
        assert_equal {0 a b x c d e} [r lrange l 0 -1]
        assert_equal {0 e EDOM EDOM} [list [r list.get l 0] [r list.get l -1] [r list.get l 7] [r list.get l -8]]
        assert_equal EDOM [r list.insert l 8 y]
        assert_equal EDOM [r list.insert l -9 y]
        assert_equal OK [r list.set l -2 D]
        assert_equal EDOM [r list.set l 7 D]
        assert_equal OK [r list.delete l 3]
        assert_equal {0 a b c D e} [r lrange l 0 -1]
        assert_equal {0 e} [list [r list.pop l 0] [r list.pop l 1]]
        foreach left {3 2 1 0} {
            assert_equal OK [r list.delete l 0]
            assert_equal $left [r llen l]
        }
        assert_equal 0 [r exists l]
        assert_equal EINVAL [r list.push l 0]
        assert_equal EINVAL [r list.set l 0]
        assert_equal EINVAL [r list.insert l 0]
        assert_equal EDOM [r list.insert l 1 x]
        assert_equal 0 [r exists l]
    }

    test {lists: as the model, small and large} {
        set model {}
        for {set i 0} {$i < 400} {incr i} {
            set at [random_below [expr {[llength $model] + 1}]]
            set value $i[string repeat v [random_below 100]]
            assert_equal OK [r list.insert l $at $value]
            set model [linsert $model $at $value]
        }
        assert_equal $model [r lrange l 0 -1]
        while {[llength $model]} {
            set at [random_below [llength $model]]
            assert_equal OK [r list.delete l $at]
            set model [lreplace $model $at $at]
        }
        assert_equal 0 [r exists l]
    }

    test {a push wakes a client that is blocked for the key} {
        set waiting [connect]
        $waiting -send blpop l 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 1}
        r list.push l 0 a
        assert_equal {l a} [$waiting -read]
        $waiting -close
    }

    test {hashes: conditions, counts, deletions} {
        assert_equal ENOENT [r hash.set h 0 f v]
        assert_equal {1 v} [r hash.get h f]
        assert_equal {0 {}} [r hash.get h g]
        assert_equal 1 [r hash.set h 0 f w]
        assert_equal ENOENT [r hash.set h 1 f x]
        assert_equal ENOENT [r hash.set h 2 g x]
        assert_equal 1 [r hash.set h 16 g x]
        assert_equal 1 [r hash.set h 4 f y]
        assert_equal {f y g x} [r hgetall h]
        assert_equal EINVAL [r hash.set h 3 f y]
        assert_equal EINVAL [r hash.set h 32 f y]
        assert_equal ENOENT [r hash.set h 0 none delete]
        assert_equal 1 [r hash.set h 0 f delete]
        assert_equal 1 [r hash.set h 0 g delete]
        assert_equal 0 [r exists h]
        assert_equal {0 {}} [r hash.get h f]
    }

    test {sorted sets: flags in and out} {
        assert_equal {0 4 1} [r zset.add z 0 1 a]
        assert_equal {0 16 1} [r zset.add z 0 1 a]
        assert_equal {0 8 2} [r zset.add z 0 2 a]
        assert_equal {0 16 5} [r zset.add z 2 5 a]
        assert_equal {0 16 1} [r zset.add z 32 1 a]
        assert_equal {0 8 1} [r zset.add z 64 1 a]
        assert_equal {0 16 1} [r zset.add z 1 1 b]
        assert_equal {0 8 4} [r zset.incrby z 0 3 a]
        assert_equal {1 3 1} [r zset.add z 3 1 a]
        assert_equal 1 [lindex [r zset.add z 0 nan a] 0]
        r zset.add z 0 inf i
        assert_equal 1 [lindex [r zset.incrby z 0 -inf i] 0]
        assert_equal {4 inf} [list [r zset.score z a] [r zset.score z i]]
        assert_equal {1 0} [list [r zset.rem z i] [r zset.rem z i]]
        assert_equal {4 {}} [list [r zset.score z a] [r zset.score z b]]
        assert_equal 1 [r zset.rem z a]
        assert_equal 0 [r exists z]
        assert_equal {0 16 1} [r zset.add z 1 1 a]
        assert_equal 0 [r exists z]
    }

    test {sorted sets: ranges both ways, and with removals} {
        foreach {score member} {1 a 2 b 3 c 4 d} {r zadd z $score $member}
        assert_equal {b c} [r zset.walk z first score 2 4]
        assert_equal {c b} [r zset.walk z last score 2 4]
        assert_equal {} [r zset.walk z first score 7 9]
        assert_equal {no range} [r zset.walk none first score 7 9]
        assert_equal {b c} [r zset.walk z first score 2 4 rem]
        assert_equal {a d} [r zrange z 0 -1]
        r del z
        foreach member {a b c d} {r zadd z 0 $member}
        assert_equal {b c} [r zset.walk z first lex {[b} (d]
        assert_equal {d c b a} [r zset.walk z last lex - +]
        assert_equal {no range} [r zset.walk z last lex b +]
        assert_equal {a b c d} [r zset.walk z first lex - + rem]
        assert_equal 0 [r exists z]
    }

    test {keys of another type are refused} {
        r set s v
        foreach command {{list.push s 0 a} {list.pop s 0} {list.get s 0} {list.set s 0 a} {list.insert s 0 a}
                         {list.delete s 0} {hash.set s 0 f v}} {
            assert_equal ENOTSUP [r {*}$command] $command
        }
        assert_equal {wrong type} [r hash.get s f]
        assert_equal 1 [lindex [r zset.add s 0 1 a] 0]
        assert_equal -1 [r zset.rem s a]
        assert_equal {} [r zset.score s a]
        assert_equal {no range} [r zset.walk s first score 1 2]
        assert_equal v [r get s]
    }

    test {scans of elements see all of them, small and large} {
        r flushall
        foreach count {5 3000} {
            foreach key {h s z i} {r del $key}
            set fields {}
            for {set i 0} {$i < $count} {incr i} {
                r hset h f$i v$i
                r sadd s m$i
                r sadd i $i
                r zadd z $i.5 m$i
            }
            assert_equal [expr {$count * 2 + 1}] [llength [set all [r elements.scan h]]]
            assert_equal ENOENT [lindex $all end]
            assert_equal v3 [dict get [lrange $all 0 end-1] f3]
            assert_equal $count [llength [lsort -unique [lrange [r elements.scan s] 0 end-1]]]
            assert_equal $count [llength [lsort -unique [lrange [r elements.scan i] 0 end-1]]]
            assert_equal 3.5 [dict get [lrange [r elements.scan z] 0 end-1] m3]
        }
        r rpush l a
        assert_equal EINVAL [r elements.scan l]
        assert_equal EINVAL [r elements.scan missing]
    }

    test {a scan of the database sees all keys, although the module deletes them} {
        r flushall
        for {set i 0} {$i < 500} {incr i} {r set key:$i v}
        r lpush l a
        set all [r elements.scan]
        assert_equal ENOENT [lindex $all end]
        assert_equal 501 [dict size [lrange $all 0 end-1]]
        assert_equal {1 2} [list [dict get [lrange $all 0 end-1] key:77] [dict get [lrange $all 0 end-1] l]]
        assert_equal 0 [r dbsize]
    }

    # Where fields do not expire by themselves, the command would copy the value.
    test {a command that is replicated as it is reads no field that copies still have} {
        r flushall
        r debug set-active-expire 0
        set s [dict get [replica_sync] socket]
        r hset h f v g w
        r hpexpire h 1 fields 1 f
        wait_for_condition 250 20 {[r hget h f] eq {}}
        replica_expect $s SELECT 0
        replica_expect $s hset h f v g w
        assert_match {HPEXPIREAT h * FIELDS 1 f} [replica_next $s]
        assert_equal 0 [r hash.copy h f text]
        replica_expect $s MULTI
        replica_expect $s HDEL h f
        replica_expect $s hash.copy h f text
        replica_expect $s EXEC
        assert_equal 1 [r hash.copy h g text]
        replica_expect $s hash.copy h g text
        assert_equal {w 1} [list [r get text] [r hlen h]]
        r debug set-active-expire 1
    }
}
