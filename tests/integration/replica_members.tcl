# SPDX-License-Identifier: BSD-3-Clause
#
# TTLs of members of sets and sorted sets on replicas: hidden there, removed by the primary; a replica that does not know
# them gets plain members.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl

set settings {repl-diskless-sync-delay 0 enable-debug-command yes}

start_server [list tags {repl tls:skip} overrides $settings] {
    start_server [list tags {repl tls:skip} overrides $settings] {
        r -1 debug set-active-expire 0
        r -1 saddex s pxat 9999999999999 members 2 early 17
        r -1 zaddex z pxat 9999999999999 members 2 1 early 2 17
        r replicaof [srv -1 host] [srv -1 port]
        link_is up
        same_data -1 -0

        test {a replica gets the TTLs of members with the dataset and with the stream} {
            r -1 sadd s plain
            r -1 spexpireat s 9999999999998 members 1 17
            r -1 zaddex z pxat 9999999999997 members 1 3 late
            same_data -1 -0
            assert_equal {9999999999999 9999999999998 -1} [r spexpiretime s members 3 early 17 plain]
            assert_equal {9999999999999 9999999999997} [r zpexpiretime z members 2 early late]
        }

        test {a replica hides expired members, and keeps them for its primary} {
            r -1 del s z
            r -1 sadd s a b c
            r -1 zadd z 1 a 2 b 3 c
            r -1 spexpire s 1 members 2 a b
            r -1 zpexpire z 1 members 2 a b
            same_offset -1 -0
            wait_for_condition 500 5 {[r smembers s] eq "c" && [r zrange z 0 -1] eq "c"}
            assert_equal {1 0 1} [list [r scard s] [r sismember s a] [r zcard z]]
            assert_equal {0 {}} [list [r zrank z c] [r zrank z a]]
            r -1 debug set-active-expire 1
            wait_for_condition 500 20 {[string match "*expired_members:4\r*" [r -1 info stats]]}
            same_data -1 -0
            assert_equal {{c c} {c c}} [list [list [r smembers s] [r -1 smembers s]] [list [r zrange z 0 -1] [r -1 zrange z 0 -1]]]
        }

        test {a key of a replica is removed with its last member} {
            r -1 saddex s px 1 members 1 c
            r -1 zpexpire z 1 members 1 c
            wait_for_condition 500 20 {[r exists s z] == 0}
            same_data -1 -0
        }

        test {a replica that is promoted removes what has expired} {
            r -1 debug set-active-expire 0
            r -1 sadd s a b
            r -1 spexpire s 1 members 1 a
            same_offset -1 -0
            wait_for_condition 500 5 {[r smembers s] eq "b"}
            r replicaof no one
            wait_for_condition 500 20 {[info_field expired_members] == 1}
            assert_equal b [r smembers s]
        }

        test {the replica's file has the TTLs of hidden members} {
            r -1 flushall
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            r -1 sadd s a b
            r -1 zadd z 1 a 2 b
            r -1 spexpire s 1 members 1 a
            r -1 zpexpire z 1 members 1 a
            same_offset -1 -0
            wait_for_condition 500 5 {[r smembers s] eq "b" && [r zcard z] == 1}
            r debug reload
            assert_equal {b b} [list [r smembers s] [r zrange z 0 -1]]
            assert_equal [r -1 debug digest] [r debug digest]
        }
    }
}

start_server [list tags {repl tls:skip} overrides $settings] {
    test {a replica that does not know TTLs of members gets plain types} {
        r saddex s ex 10000 members 2 a b
        r zaddex z ex 10000 members 2 1 a 2 b
        foreach mode {fork inline} {
            r config set snapshot-mode $mode
            foreach {words known} {{capa eof capa psync2 version 9.1.2} 0 {capa eof capa psync2 capa member-ttls version 9.1.2} 1} {
                set answer [replica_sync $words]
                assert_equal $known [string match "*\xe0\x01s*" [dict get $answer dataset]]
                assert_equal $known [string match "*\xe1\x01z*" [dict get $answer dataset]]
                raw_close [dict get $answer socket]
            }
        }
    }
}

# Without an access or active expiry, all that expires below is still there when the server saves and stops.
proc write_expiring {level} {
    r $level debug set-active-expire 0
    r $level hset some a 1 b 2
    r $level sadd set a b
    r $level zadd zset 1 a 2 b
    for {set i 0} {$i < 150} {incr i} {lappend fields f$i $i}
    r $level hset whole {*}$fields
    r $level sadd wholeset a
    r $level zadd wholezset 1 a
    r $level set key v
    r $level hset hashkey a 1 b 1
    r $level select 3
    r $level sadd set a b
    r $level spexpire set 1 members 1 a
    r $level select 0
    r $level hpexpire some 1 fields 1 a
    r $level hpexpire hashkey 1 fields 1 a
    r $level spexpire set 1 members 1 a
    r $level zpexpire zset 1 members 1 a
    r $level hpexpire whole 1 fields 150 {*}[dict keys $fields]
    r $level spexpire wholeset 1 members 1 a
    r $level zpexpire wholezset 1 members 1 a
    r $level pexpire hashkey 1
    r $level pexpire key 1
}

set saving [dict merge $settings {save {3600 1} repl-ping-replica-period 3600}]

start_server [list tags {repl tls:skip} overrides $settings] {
    start_server [list tags {repl tls:skip} overrides $saving] {
        test {a load of a primary removes expired fields, members and keys from its replicas, too} {
            r -1 replicaof [srv host] [srv port]
            link_is up -1
            write_expiring -0
            r debug sleep 0.01 ;# all has expired
            same_offset -0 -1
            stop_server
            mark_logs
            continue_server
            r debug set-active-expire 0
            r -1 replicaof [srv host] [srv port] ;# it has another port now
            link_is up -1
            assert_match "*Successful partial resynchronization*" [said_since_mark]
            # Types, times and elements: what was dropped here is gone there.
            foreach {command reply} {{rpush whole new} 1 {rpush wholeset new} 1 {set wholezset new} OK {sadd set a} 1
                {zadd zset 5 a} 1 {hset some a new} 1 {exists hashkey key} 0} {assert_equal $reply [r {*}$command]}
            same_data -0 -1
            assert_equal {new {-1 -1} {-1 -1}} [list [r -1 lindex whole 0] [r -1 spexpiretime set members 2 a b] \
                [r -1 zpexpiretime zset members 2 a b]]
            r -1 select 3
            assert_equal b [r -1 smembers set]
            r -1 select 0
        }

        test {DEBUG RELOAD removes them as well, also from the append only file} {
            r config set appendonly yes
            wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
            r flushall
            write_expiring -0
            r debug sleep 0.01 ;# all has expired
            r debug reload
            same_data -0 -1
            set digest [r debug digest]
            r debug loadaof
            assert_equal $digest [r debug digest]
            r config set appendonly no
        }
    }
}

start_server [list tags {repl tls:skip} overrides $saving] {
    start_server [list tags {repl tls:skip} overrides [dict merge $saving [list replicaof "127.0.0.1 [srv port]"]]] {
        test {a load of a replica keeps what has expired until its primary removes it} {
            link_is up
            write_expiring -1
            r -1 debug sleep 0.01 ;# all has expired
            same_data -1 -0
            set before [offset_of -0]
            r debug reload
            assert_equal [r -1 debug digest] [r debug digest]
            restart_server
            link_is up
            same_offset -1 -0
            assert_equal $before [offset_of -0]
            assert_equal [list [r -1 debug digest] [r -1 hlen whole]] [list [r debug digest] [r hlen whole]]
            r -1 debug set-active-expire 1
            wait_for_condition 500 20 {[r dbsize] == 3}
            same_data -1 -0
        }
    }
}
