# SPDX-License-Identifier: BSD-3-Clause
#
# Path hashes in files, append only files, replicas of other versions, and the tools. Their commands: unit/type/pathhash;
# snapshots without a fork: integration/snapshot_inline; slot migration: cluster/atomic_move.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl

proc tool {name args} {
    set failed [catch {exec [file dirname $::binary]/$name {*}$args 2>@1} output]
    return [list $failed $output]
}

# Maps of all sizes: with many paths, with a path that is a table, without a path.
proc fill {} {
    r flushall
    r phmset small "" fields 1 f root /a fields 2 f v n 12 /a/b fields 1 \x00 \xff
    for {set i 0} {$i < 1000} {incr i} {r phmset large /p/$i fields 1 f $i table fields 1 f$i v}
    r config set pathhash-keep-empty yes
    r phset empty p fields 1 f v
    r phdel empty p
    r config set pathhash-keep-empty no
    r phset timed p fields 1 f v
    r pexpireat timed 9999999999999
}

start_server {tags {pathhash external:skip} overrides {save {} appendonly yes auto-aof-rewrite-percentage 0}} {
    foreach {preamble mode} {yes fork no fork yes inline no inline} {
        test "A rewritten append only file has the same maps (preamble $preamble, $mode)" {
            r config set aof-use-rdb-preamble $preamble snapshot-mode $mode
            fill
            set digest [r debug digest]
            r bgrewriteaof
            wait_for_condition 400 25 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
            assert_equal ok [info_field aof_last_bgrewrite_status]
            r phset small later fields 1 f v
            r phdel small later
            r debug loadaof
            assert_equal $digest [r debug digest]
            assert_equal {1 0 1001 9999999999999} \
                [list [r exists empty] [r phcard empty] [r phcard large] [r pexpiretime timed]]
        }
    }
}

start_server {tags {pathhash external:skip} overrides {save {}}} {
    test {Files have version 81 only while there is a path hash} {
        r set plain x
        foreach {command version} {{ping} 080 {phset k p fields 1 f v} 081 {del k} 080} {
            r {*}$command
            wait_for_condition 200 10 {[r save] eq "OK" && [string match "VALKEY$version*" [read_bytes [srv dir]/dump.rdb]]}
        }
        # As one in the middle of other databases.
        r select 5
        r phset k p fields 1 f v
        r select 0
        r save
        assert_match "VALKEY081*" [read_bytes [srv dir]/dump.rdb]
        restart_server
        r select 5
        assert_equal v [r phget k p f]
        r select 0
    }

    test {valkey-check-rdb reads path hashes, and counts them} {
        fill
        r save
        lassign [tool valkey-check-rdb [srv dir]/dump.rdb] failed output
        assert_equal 0 $failed
        assert_match "*RDB looks OK! *" $output
        lassign [tool valkey-check-rdb [srv dir]/dump.rdb --stats --format csv] failed output
        assert_match "*db.0.type.name,*,pathhash\n*" $output
        assert_match "*db.0.keys.total,0,0,0,0,0,0,0,4\n*db.0.elements.total,0,0,0,0,0,0,0,1005\n*" $output
    }

    test {valkey-cli --bigkeys finds the largest map} {
        fill
        lassign [tool valkey-cli -h [srv host] -p [srv port] --bigkeys] failed output
        assert_match "*Biggest*pathhash*found*large*1001 paths*" $output
    } {tls:skip}

    test {Damage at any byte of a file is an error or another dataset, no crash} {
        r flushall
        r phmset k "" fields 1 f root /a fields 2 f v n 12 /a/b fields 1 long [string repeat x 50]
        r save
        set bytes [read_bytes [srv dir]/dump.rdb]
        set from [string first \x17\x01k $bytes]
        assert {$from > 0}
        for {set i $from} {$i < [string length $bytes] - 9} {incr i} {
            foreach mask {1 0x40 0xff} {
                scan [string index $bytes $i] %c byte
                write_bytes [srv dir]/other.rdb [string replace $bytes $i $i [format %c [expr {$byte ^ $mask}]]]
                assert_match "1 *" [tool valkey-check-rdb [srv dir]/other.rdb] "$i $mask"
            }
        }
    }
}

start_server {tags {repl pathhash tls:skip external:skip} overrides {repl-diskless-sync-delay 0 save {} hide-user-data-from-log no}} {
    foreach mode {fork inline} {
        test "A replica gets what its version has a type for ($mode)" {
            r config set snapshot-mode $mode
            r flushall
            r set plain x
            # Without path hashes all get what Valkey 9.1 reads.
            foreach words {{capa eof capa psync2 version 9.1.2} {capa eof capa psync2 capa path-hashes version 9.1.2}} {
                set answer [replica_sync $words]
                assert_match "VALKEY080*" [dict get $answer dataset]
                raw_close [dict get $answer socket]
            }
            r phset "a map" p fields 1 f v
            foreach words {{capa eof capa psync2 version 9.2.0} {capa eof capa psync2 capa path-hashes version 9.1.2}} {
                set answer [replica_sync $words]
                assert_match "VALKEY081*\x17\x05a map*" [dict get $answer dataset]
                raw_close [dict get $answer socket]
            }
            foreach {version rdb} {9.1.2 80 8.1.0 11} {
                set s [replica_connect [list capa eof capa psync2 version $version]]
                replica_psync $s
                wait_for_condition 400 20 {[string match "*Can't store key 'a map' (db 0) in RDB version $rdb*" [server_log]]}
                raw_close $s
            }
        }
    }

    start_server {tags {repl pathhash tls:skip} overrides {save {}}} {
        test {A replica has the same maps after a full synchronisation and after each command} {
            r -1 flushall
            for {set i 0} {$i < 500} {incr i} {r -1 phmset large /p/$i fields 1 f $i table fields 1 f$i v}
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            foreach words {
                {phset k p fields 2 f v g w} {phset k p fnx fields 1 f no} {phset k p fxx fields 1 f yes}
                {phmset k p fields 1 f 1 q fields 1 f 2} {phdel k p f} {phdel k q} {phdelprefix large /p/1} {phdel k p}
                {copy large other} {rename other k}
            } {
                r -1 {*}$words
                same_offset -1 -0
                assert_equal [r -1 debug digest] [r debug digest] $words
            }
            assert_equal {500 1} [list [expr {[r phcard k] + 110}] [r exists k]]
        }
    }
}
