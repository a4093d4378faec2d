# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration: MIGRATESLOTS between nodes of this server.

start_cluster {2 2 {tags {cluster}}} {
    test {MIGRATESLOTS moves keys of all types, their TTLs and fields with TTLs} {
        r set "{06S}s" hello
        r set "{06S}i" 42 px 10000000
        r rpush "{06S}l" a b 3
        r sadd "{06S}ints" 1 2 3
        r sadd "{06S}set" a b
        r zadd "{06S}z" 1.5 a -inf b
        r hset "{06S}h" f v g w
        r hpexpire "{06S}h" 10000000 fields 1 g
        r xadd "{06S}x" 5-1 a b c d
        r xgroup create "{06S}x" g 0
        r xreadgroup group g c count 1 streams "{06S}x" >
        set keys [lsort [r keys "{06S}*"]]
        set digest [lmap k $keys {r debug digest-value $k}]
        set name [move 0 1 0 0]
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal $keys [lsort [r -1 keys "{06S}*"]]
        assert_equal $digest [lmap k $keys {r -1 debug digest-value $k}]
        assert_equal 0 [r cluster countkeysinslot 0]
        assert_error "MOVED 0 *" {r get "{06S}s"}
        assert {[r -1 pttl "{06S}i"] > 9000000}
    }
    test {the replicas of both sides have the same keys as their primaries} {
        foreach {primary replica} {0 2 1 3} {
            wait_for_condition 600 20 {[r -$primary debug digest] eq [r -$replica debug digest] && [r -$primary dbsize] == [r -$replica dbsize]} else {
                fail "replica $replica: [r -$replica dbsize] of [r -$primary dbsize]"
            }
        }
    }
}
