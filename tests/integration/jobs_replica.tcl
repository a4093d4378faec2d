# SPDX-License-Identifier: BSD-3-Clause
#
# What commands in slices store (src/engine/job.h) at replicas and in the append only file: these execute each command at its
# place in the stream, so their data are the same only if its sources were then as the job has read them.

source $::tests_dir/support/replication.tcl

set settings {enable-debug-command yes save {} repl-diskless-sync-delay 0}

proc random_of {list} {return [lindex $list [random_below [llength $list]]]}

# Numbered members, some thousands.
proc members {} {
    set at [random_below 3000]
    set names {}
    for {set i $at} {$i < $at + 600} {incr i} {lappend names m:$i}
    return $names
}

# A command on a few keys: sets, sorted sets, lists and strings, each of which the others may store at or read.
proc random_command {} {
    set set [random_of {s1 s2 s3 s4}]
    set zset [random_of {z1 z2 z3 z4}]
    set list [random_of {l1 l2}]
    set from [random_of {s1 s2 s3 s4}]
    set zfrom [random_of {z1 z2 z3 z4}]
    switch [random_below 33] {
        0 - 1 - 2 {return [list sadd $set {*}[members]]}
        3 {return [list zadd $zset {*}[concat {*}[lmap m [members] {list [random_below 50] $m}]]]}
        4 {return [list srem $set {*}[members]]}
        5 {return [list zremrangebyrank $zset 0 [random_below 400]]}
        6 {return [list sunionstore $set $from [random_of {s1 s2 s3 s4}]]}
        7 {return [list sinterstore $set $from [random_of {s1 s2 s3 s4}]]}
        8 {return [list sdiffstore $set $from [random_of {s1 s2 s3 s4}]]}
        9 - 10 {return [list zunionstore $zset 2 $zfrom $from aggregate max]}
        11 {return [list zinterstore $zset 2 $zfrom [random_of {z1 z2 z3 z4}]]}
        12 {return [list zdiffstore $zset 2 $zfrom $from]}
        13 {return [list zrangestore $zset $zfrom 10 [random_below 3000]]}
        14 {return [list sort $from alpha store $list]}
        15 {return [list copy $from $set replace]}
        16 {return [list copy $list [random_of {l1 l2}]]}
        17 {return [list eval "redis.call('sadd', '$set', 'x', redis.call('scard', '$from')); return redis.call('zadd', '$zset', redis.call('zcard', '$zfrom'), 'y')" 0]}
        18 {return [list eval "return redis.call('smove', '$from', '$set', 'm:[random_below 3000]')" 0]}
        19 {return [list lrem $list [random_of {0 -1 300}] m:[random_below 3000]]}
        20 {return [list linsert $list before m:[random_below 3000] x]}
        21 {return [list spop $set [random_of {10000 100 300}]]}
        22 {return [list hset h {*}[concat {*}[lmap m [members] {list $m [random_below 50]}]]]}
        23 {return [list hdel h {*}[members]]}
        24 {return [list zrem $zset {*}[members]]}
        25 {return [list [random_of {zpopmin zpopmax}] $zset [random_below 500]]}
        26 {return [list [random_of {lpop rpop}] $list [random_below 500]]}
        27 {return [list eval "redis.call('hset', 'h', 'f', redis.call('scard', '$from')); return redis.call('sadd', '$from', 'm:1', 'y')" 0]}
        28 {return [list geosearchstore $zset $zfrom fromlonlat 0 0 byradius [random_of {20020 10000}] km desc storedist]}
        29 {return [list georadius $zfrom 0 0 20020 km store $zset]}
        30 {return [list pfadd [random_of {p1 p2 p3}] {*}[members]]}
        31 {return [list pfmerge [random_of {p1 p2 p3}] [random_of {p1 p2 p3}] [random_of {p1 p2 p3}]]}
        default {return [list rpush $list {*}[lrange [members] 0 300]]}
    }
}

# Sends so many commands, by three clients at a time, of which some go away; the command that they have sent may be running.
proc load_by_clients {count} {
    set clients [list [connect] [connect] [connect]]
    set pending {0 0 0}
    for {set i 0} {$i < $count} {incr i} {
        set k [random_below 3]
        set c [lindex $clients $k]
        $c -send {*}[random_command]
        lset pending $k [expr {[lindex $pending $k] + 1}]
        if {[random_below 40] == 0} {
            $c -close
            lset clients $k [connect]
            lset pending $k 0
        } elseif {[lindex $pending $k] == 4} {
            for {set n 0} {$n < 4} {incr n} {catch {$c -read}} ;# an error of a command is its reply
            lset pending $k 0
        }
    }
    foreach c $clients n $pending {
        for {} {$n > 0} {incr n -1} {catch {$c -read}}
        $c -close
    }
    wait_for_condition 600 50 {[info_field jobs_running] == 0 && [info_field blocked_clients] == 0}
}

start_server [list tags {jobs repl needs:servers tls:skip} overrides $settings] {
start_server [list overrides [concat $settings {appendonly yes auto-aof-rewrite-percentage 0}]] {
    r -1 replicaof [srv host] [srv port]
    link_is up -1

    foreach us {10 1 500} {
        test "a replica and the file have what jobs of $us us have stored, in their order" {
            r config set command-slice-us $us
            r flushall
            load_by_clients [expr {max(200, [scaled 600])}]
            same_data -0 -1
            set digest [r debug digest]
            assert_equal OK [r debug loadaof]
            assert_equal $digest [r debug digest]
            if {$us == 10} {
                # A job begins with 40 elements: one for each of these, at any speed.
                set done [info_field jobs_done]
                for {set i 0} {$i < 10} {incr i} {r sadd s1 {*}[members]}
                assert_equal 10 [expr {[info_field jobs_done] - $done}]
                same_data -0 -1
            }
        }
    }

    test {a full synchronization and a rewrite in the middle of a job have no part of its result} {
        r config set command-slice-us 10
        r flushall
        for {set i 0} {$i < 10} {incr i} {r sadd s1 {*}[lmap n [members] {string cat $i $n}]}
        r set s2 old
        foreach held {0 1} {
            r debug pause-jobs 1
            set done [info_field sync_full]
            set c [connect]
            $c -send sunionstore s2 s1
            info_is jobs_running 1
            if {$held} {
                r client pause 100000 write
                r debug pause-jobs 0
                assert_equal 6000 [llength [r smembers s1]]
            }
            r -1 replicaof no one
            r -1 flushall
            r -1 replicaof [srv host] [srv port]
            link_is up -1
            assert_equal [expr {$done + 1}] [info_field sync_full]
            assert_equal string [r -1 type s2]
            r bgrewriteaof
            info_is aof_rewrite_in_progress 0
            assert_equal ok [info_field aof_last_bgrewrite_status]
            r client unpause
            r debug pause-jobs 0
            assert_equal 6000 [$c -read]
            same_data -0 -1
            set digest [r debug digest]
            assert_equal OK [r debug loadaof]
            assert_equal $digest [r debug digest]
            r set s2 old
        }
    }

    test {a full synchronization, a rewrite and a failover in the middle of a change in place find it completed} {
        r config set command-slice-us 10
        set some [lrange [members] 0 399]
        foreach words [list [concat srem s1 $some] [concat sadd s9 $some] [concat hset h9 $some] [concat rpush l1 $some] \
            {zpopmin z9 300} {zremrangebyrank z9 100 450}] {
            foreach what {sync rewrite save failover} {
                r config set command-slice-us 0
                r del s9 h9 s1 l1
                r sadd s1 {*}$some more members
                r zadd z9 {*}[concat {*}[lmap i $some {list 1 $i}]] {*}[concat {*}[lmap i $some {list 2 x$i}]]
                set expected [r {*}$words]
                set digest [r debug digest]
                r del s9 h9 s1 l1
                r sadd s1 {*}$some more members
                r zadd z9 {*}[concat {*}[lmap i $some {list 1 $i}]] {*}[concat {*}[lmap i $some {list 2 x$i}]]
                r config set command-slice-us 10
                r debug pause-jobs 1
                set c [connect]
                $c -send {*}$words
                info_is jobs_running 1
                if {$what eq "sync"} {
                    set done [info_field sync_full]
                    r -1 replicaof no one
                    r -1 flushall
                    r -1 replicaof [srv host] [srv port]
                    link_is up -1
                    assert_equal [expr {$done + 1}] [info_field sync_full]
                } elseif {$what eq "rewrite"} {
                    r bgrewriteaof
                    info_is aof_rewrite_in_progress 0
                } elseif {$what eq "save"} {
                    r save
                } else {
                    link_is up -1
                    r failover
                    wait_for_condition 600 50 {[lindex [r -1 role] 0] eq "master"}
                }
                r debug pause-jobs 0
                assert_equal $expected [$c -read] "[lrange $words 0 1] and $what"
                info_is jobs_running 0
                same_data -0 -1
                assert_equal $digest [r debug digest] "[lrange $words 0 1] and $what"
                if {$what eq "rewrite"} {
                    assert_equal OK [r debug loadaof]
                    assert_equal $digest [r debug digest] "[lrange $words 0 1] and $what"
                }
                if {$what eq "failover"} {
                    r -1 failover
                    wait_for_condition 600 50 {[lindex [r role] 0] eq "master"}
                    link_is up -1
                }
                $c -close
            }
        }
    }

    test {WAIT waits for a change that another client's script had to complete} {
        r config set command-slice-us 10
        r del s9
        set some [lrange [members] 0 399]
        r sadd s9 {*}$some more
        same_data -0 -1
        r debug pause-jobs 1
        set c [connect]
        $c -send srem s9 {*}$some
        info_is jobs_running 1
        # From here on the replica has nothing new.
        exec kill -STOP [srv -1 pid]
        try {
            assert_equal 1 [r eval {redis.call('set', 'x', 1) return redis.call('scard', 's9')} 0]
            assert_equal 400 [$c -read]
            assert_equal 0 [$c wait 1 50]
        } finally {exec kill -CONT [srv -1 pid]}
        assert_equal 1 [$c wait 1 0]
        r debug pause-jobs 0
        $c -close
    }

    test {a failover holds the effect, and ends the job} {
        r debug pause-jobs 1
        set c [connect]
        $c -send sunionstore s2 s1
        info_is jobs_running 1
        link_is up -1
        r failover
        wait_for_condition 600 50 {[r -1 role] ne "" && [lindex [r -1 role] 0] eq "master"}
        assert_error "UNBLOCKED *" {$c -read}
        r debug pause-jobs 0
        info_is jobs_running 0
        link_is up
        same_data -0 -1
        assert_equal string [r -1 type s2]
    }
}
}

start_server {tags {jobs cluster needs:servers tls:skip} overrides {enable-debug-command yes save {} cluster-enabled yes}} {
    test {a slot that was lost meanwhile is not written to} {
        r cluster addslotsrange 0 16383
        wait_for_condition 600 50 {[string match "*cluster_state:ok*" [r cluster info]]}
        r config set command-slice-us 10
        for {set i 0} {$i < 10} {incr i} {r sadd "{a}s" {*}[lmap n [members] {string cat $i $n}]}
        r set "{a}d" old
        r debug pause-jobs 1
        set c [connect]
        $c -send sunionstore "{a}d" "{a}s"
        info_is jobs_running 1
        r cluster delslots [r cluster keyslot a]
        r debug pause-jobs 0
        assert_error "CLUSTERDOWN *" {$c -read}
        r cluster addslots [r cluster keyslot a]
        wait_for_condition 600 50 {[string match "*cluster_state:ok*" [r cluster info]]}
        assert_equal old [r get "{a}d"]
        assert_equal 6000 [r sunionstore "{a}d" "{a}s"]
    }

    test {a change in place has its effect before its slot is lost} {
        set some [lrange [members] 0 399]
        r del "{a}s"
        r sadd "{a}s" {*}$some
        r debug pause-jobs 1
        set c [connect]
        $c -send srem "{a}s" {*}[lrange $some 0 398]
        info_is jobs_running 1
        r cluster delslots [r cluster keyslot a]
        r debug pause-jobs 0
        assert_equal 399 [$c -read]
    }
}
