# SPDX-License-Identifier: BSD-3-Clause
#
# Snapshots in the serving process (snapshot-mode inline): the dataset of the start under writes, in files and for
# replicas; a disk that stands still, a replica that does not read, limits, cancellation, shutdown.

source $::tests_dir/support/all_types.tcl
source $::tests_dir/support/raw_replica.tcl

# Changes, deletes and creates keys of all types until a field of INFO has this value.
proc write_until {field value} {
    set writer [connect]
    for {set round 0} {$round < 4000} {incr round} {
        if {[info_field $field] eq $value} {return $round}
        for {set i 0} {$i < 25} {incr i} {
            set n [expr {int(rand() * 4000)}]
            $writer set key:$n changed-$round
            $writer del key:[expr {int(rand() * 4000)}]
            $writer hset hashtable f[expr {$n % 300}] $round g$n 1
            $writer sadd table n$n
            $writer zadd skiplist $n m[expr {$n % 300}]
            $writer saddex timed_set pxat [expr {9999999990000 + $n}] members 2 new$n m[expr {$n % 300}]
            $writer srem timed_set [expr {$n % 200}]
            $writer zaddex timed_zset keepttl members 2 $n m[expr {$n % 300}] $n new$n
            $writer zpexpire timed_zset 1 members 1 [expr {$n % 200}]
            $writer zpersist timed_zset members 1 m[expr {$n % 299}]
            $writer rpush quicklist $n
            $writer phset paths /a/[expr {$n % 400}] fields 1 f $n
            $writer phdel paths /a/[expr {$n % 300}]/b
            $writer phset paths wide fields 1 f$n $round
            $writer append text x
            $writer setrange long $n yyy
            $writer set born:$round:$i [string repeat v $n]
        }
        if {$round % 50 == 7} {
            $writer multi
            $writer swapdb 0 3
            $writer swapdb 0 3
            $writer rename text text2
            $writer rename text2 text
            $writer exec
        }
        if {$round == 11} {$writer phdelprefix paths /a/1; $writer del stream timed zset; $writer flushdb async; $writer set late 1}
    }
    fail "$field has not become $value"
}

proc fill {} {
    fill_all_types
    r debug populate 3000 key 30
    r select 3
    r set other 3
    r select 0
}

proc free_of_temporary_files {} {
    wait_for_condition 500 20 {[glob -nocomplain [srv dir]/temp-*] eq ""} else {fail [glob [srv dir]/temp-*]}
}

set inline {save {} snapshot-mode inline repl-diskless-sync-delay 0}

start_server [list tags {rdb} overrides $inline] {
    test {a snapshot under writes of all types is the dataset of its start} {
        foreach compression {yes no} {
            fill
            r config set rdbcompression $compression rdb-key-save-delay 100
            set digest [r debug digest]
            set forks [info_field total_forks]
            assert_equal "Background saving started" [r bgsave]
            assert_equal 1 [info_field snapshot_inline_in_progress]
            write_until rdb_bgsave_in_progress 0
            assert_equal ok [info_field rdb_last_bgsave_status]
            assert_equal $forks [info_field total_forks]
            r config set rdb-key-save-delay 0
            assert_equal OK [r debug reload nosave]
            assert_equal $digest [r debug digest]
            free_of_temporary_files
        }
    }

    test {BGSAVE CANCEL stops a snapshot, and the next one is whole} {
        fill
        r config set rdb-key-save-delay 1000
        for {set i 0} {$i < 5} {incr i} {
            r bgsave
            for {set j 0} {$j < 200} {incr j} {r set key:[expr {int(rand() * 3000)}] $i}
            assert_equal "Background saving cancelled" [r bgsave cancel]
            assert_equal 0 [info_field rdb_bgsave_in_progress]
        }
        r config set rdb-key-save-delay 0
        set digest [r debug digest]
        r bgsave
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        r debug reload nosave
        assert_equal $digest [r debug digest]
        free_of_temporary_files
    }

    test {FLUSHALL and SHUTDOWN within a snapshot} {
        fill
        r config set rdb-key-save-delay 1000
        r bgsave
        r flushall
        assert_equal 0 [info_field rdb_bgsave_in_progress]
        fill
        r config set save "3600 1000000"
        r bgsave
        r set key:1 last
        set digest [r debug digest]
        restart_server
        assert_equal $digest [r debug digest]
        free_of_temporary_files
    }

    test {the disk stands still: writes wait beyond the limit, the server does not} {
        r flushall
        r config set snapshot-excess-limit 1mb snapshot-excess-action wait rdb-key-save-delay 0
        r debug populate 3000 key 10000
        # The worker waits in open() until somebody reads the pipe.
        set name [srv dir]/temp-[srv pid].1.rdb
        exec mkfifo $name
        r bgsave
        set writer [connect]
        for {set i 0} {$i < 3000} {incr i} {$writer -send set key:$i new}
        wait_for_condition 500 20 {[info_field paused_reason] eq "snapshot_in_progress"}
        assert_equal PONG [r ping]
        assert_range [info_field snapshot_inline_memory] 1000000 8000000
        exec cat $name > [srv dir]/drained &
        for {set i 0} {$i < 3000} {incr i} {assert_equal OK [$writer -read]}
        info_is rdb_bgsave_in_progress 0
        assert_equal none [info_field paused_reason]
        # A pipe cannot be flushed to disk.
        assert_equal err [info_field rdb_last_bgsave_status]
        free_of_temporary_files
    }

    test {the disk stands still: elements that a batch puts aside make the rest of it wait} {
        r flushall
        set value [string repeat x 10000]
        for {set i 0} {$i < 3000} {incr i 100} {
            set fields {}
            for {set j $i} {$j < $i + 100} {incr j} {lappend fields f$j $value}
            r hset hash {*}$fields
        }
        set name [srv dir]/temp-[srv pid].2.rdb
        exec mkfifo $name
        r bgsave
        set writer [connect]
        set batch ""
        for {set i 0} {$i < 3000} {incr i} {append batch [resp::encode [list hset hash f$i new]]}
        $writer -write $batch
        wait_for_condition 500 20 {[info_field paused_reason] eq "snapshot_in_progress"}
        assert_equal PONG [r ping]
        assert_range [info_field snapshot_inline_excess_peak] 1000000 1900000
        assert_equal 1 [info_field rdb_bgsave_in_progress]
        exec cat $name > [srv dir]/drained &
        for {set i 0} {$i < 3000} {incr i} {assert_equal 0 [$writer -read]}
        info_is rdb_bgsave_in_progress 0
        assert_equal none [info_field paused_reason]
        free_of_temporary_files
    }

    test {the disk stands still: the write that begins the pause does not end changes in slices (its lookup stays valid)} {
        r flushall
        r config set command-slice-us 10
        r debug populate 3000 key 10000
        set name [srv dir]/temp-[srv pid].3.rdb
        exec mkfifo $name
        r bgsave
        r debug pause-jobs 1
        set members {}
        for {set i 0} {$i < 600} {incr i} {lappend members m:$i}
        set job [connect]
        $job -send sadd new {*}$members
        info_is jobs_running 1
        set writer [connect]
        for {set i 0} {$i < 3000} {incr i} {$writer -send append key:$i new}
        wait_for_condition 500 20 {[info_field paused_reason] eq "snapshot_in_progress"}
        assert_equal 1 [info_field jobs_running]
        r debug pause-jobs 0
        assert_equal 600 [$job -read]
        assert_equal snapshot_in_progress [info_field paused_reason]
        exec cat $name > [srv dir]/drained &
        for {set i 0} {$i < 3000} {incr i} {assert_equal 10003 [$writer -read]}
        info_is rdb_bgsave_in_progress 0
        assert_equal {600 none} [list [r scard new] [info_field paused_reason]]
        free_of_temporary_files
        r config set command-slice-us 500
    }

    test {the disk stands still: a snapshot is given up beyond the limit, or by BGSAVE CANCEL} {
        r config set snapshot-excess-action cancel
        foreach way {limit command} number {4 5} {
            r flushall
            r debug populate 3000 key 10000
            set name [srv dir]/temp-[srv pid].$number.rdb
            exec mkfifo $name
            r bgsave
            if {$way eq "limit"} {
                for {set i 0} {$i < 3000} {incr i} {r set key:$i new}
                info_is rdb_bgsave_in_progress 0
                assert_equal err [info_field rdb_last_bgsave_status]
                assert_match "*exceed snapshot-excess-limit*" [server_log]
            } else {
                assert_equal "Background saving cancelled" [r bgsave cancel]
            }
            # Meanwhile a child saves.
            set forks [info_field total_forks]
            r bgsave
            assert_equal [expr {$forks + 1}] [info_field total_forks]
            info_is rdb_bgsave_in_progress 0
            assert_equal ok [info_field rdb_last_bgsave_status]
            exec cat $name > [srv dir]/drained &
            free_of_temporary_files
        }
    }
}

start_server [list tags {rdb} overrides [concat $inline {rdbchecksum no}]] {
    # Only builds with checks write the digest.
    test {a file with another dataset than that of its start is refused} {
        r debug populate 100
        r bgsave
        info_is rdb_bgsave_in_progress 0
        set path [file join [srv dir] [lindex [r config get dbfilename] 1]]
        set file [read_bytes $path]
        set at [string first [r debug digest] $file]
        if {$at >= 0} {
            set other [expr {[string index $file $at] eq "0" ? "1" : "0"}]
            write_bytes $path [string replace $file $at $at $other]
            assert_error "ERR *" {r debug reload nosave}
            assert_match "*but * was loaded*" [server_log]
        }
        write_bytes $path $file
        r flushall
        assert_equal OK [r debug reload nosave]
    }
}

start_server [list tags {aof} overrides [concat $inline {appendonly yes}]] {
    test {a rewrite under writes: base and increment together are the dataset} {
        foreach preamble {yes no} {
            r config set rdb-key-save-delay 0 aof-use-rdb-preamble $preamble
            fill
            r config set rdb-key-save-delay 100
            r bgrewriteaof
            write_until aof_rewrite_in_progress 0
            assert_equal ok [info_field aof_last_bgrewrite_status]
            r debug sleep 0.01 ;# the member that was to expire within a millisecond has expired
            set digest [r debug digest]
            restart_server
            assert_equal $digest [r debug digest]
            free_of_temporary_files
        }
    }
}

start_server [list tags {repl tls:skip} overrides $inline] {
    foreach diskless {yes no} {
        test "full synchronisation of two replicas under writes, diskless $diskless" {
            fill
            r config set rdb-key-save-delay 100 repl-diskless-sync $diskless repl-diskless-sync-delay 1 \
                repl-diskless-sync-max-replicas 2
            set forks [info_field total_forks]
            start_server {} {
                start_server {} {
                    r replicaof [srv -2 host] [srv -2 port]
                    r -1 replicaof [srv -2 host] [srv -2 port]
                    set writer [respConnect [srv -2 host] [srv -2 port]]
                    for {set i 0} {$i < 4000} {incr i} {
                        $writer set key:[expr {int(rand() * 4000)}] $i
                        $writer hset hashtable f[expr {$i % 300}] $i
                        if {$i % 50 == 0 && [regexp -all {state=online} [$writer info replication]] == 2} break
                    }
                    foreach replica {r {r -1}} {
                        wait_for_condition 800 25 {[string match *master_link_status:up* [{*}$replica info replication]]}
                        wait_for_condition 800 25 {[{*}$replica debug digest] eq [r -2 debug digest]} else {fail "not in sync"}
                    }
                    $writer -close
                }
            }
            assert_equal $forks [info_field total_forks]
            assert_equal 0 [info_field rdb_bgsave_in_progress]
        }
    }
}

start_server [list tags {repl tls:skip} overrides $inline] {
    test {a replica that does not read is disconnected at the limit, another one gets the dataset} {
        r config set snapshot-excess-limit 1mb rdbcompression no repl-diskless-sync-delay 1 \
            repl-diskless-sync-max-replicas 2 repl-timeout 3600
        r debug populate 3000 key 10000
        set slow [replica_connect]
        replica_psync $slow
        start_server {} {
            r replicaof [srv -1 host] [srv -1 port]
            wait_for_condition 500 20 {[string match *rdb_bgsave_in_progress:1* [r -1 info persistence]]}
            for {set i 0} {$i < 3000} {incr i} {r -1 set key:$i new}
            wait_for_condition 500 20 {[string match *master_link_status:up* [r info replication]]}
            wait_for_condition 500 20 {[r debug digest] eq [r -1 debug digest]} else {fail "not in sync"}
        }
        assert_match "*Replica 127.0.0.1:7777 receives the dataset slower than keys change*" [server_log]
        info_is rdb_bgsave_in_progress 0
        assert_equal PONG [r ping]
    }
}
