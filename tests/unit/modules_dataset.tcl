# SPDX-License-Identifier: BSD-3-Clause
#
# What modules do with the dataset as a whole (tests/modules/dataset.c): files, children, values of
# hashes that are their own memory, defragmentation, categories of commands.

set module [file normalize build/modules/dataset.so]

start_server {overrides {enable-module-command yes enable-debug-command yes save {} appendonly no}} {
    r module load $module mine other commands

    test {categories: those that a module adds are used like others} {
        assert_equal {mine other} [lrange [r acl cat] end-1 end]
        assert_equal {} [r acl cat mine]
        assert {{dataset.save} in [r acl cat other]}
        assert_equal @other [lindex [r command info dataset.save] 0 6]
        assert {{dataset.save} in [r command list filterby aclcat Other]}
        r acl setuser joe on nopass +@other -@mine -dataset.save ~*
        assert_equal OK [r acl dryrun joe dataset.load x]
        assert_match {*no permissions*} [r acl dryrun joe dataset.save x]
        assert_match {*no permissions*} [r acl dryrun joe get x]
        assert_error {ERR Unknown category 'third'} {r acl cat third}
        assert_equal EINVAL [r dataset.category later]
        r acl deluser joe
    }

    test {RdbSave and RdbLoad: the dataset goes to a file and comes back} {
        r set a 1
        r select 3
        r hset h f v
        r select 0
        assert_equal OK [r dataset.save modules.rdb]
        r set a 2
        r set b 1
        assert_equal OK [r dataset.load modules.rdb]
        assert_equal {1 0} [list [r get a] [r exists b]]
        r select 3
        assert_equal v [r hget h f]
        r select 0
    }

    test {RdbSave and RdbLoad: what is wrong changes nothing} {
        assert_equal EINVAL [r dataset.save modules.rdb 1]
        assert_equal EINVAL [r dataset.load modules.rdb 1]
        assert_equal ENOENT [r dataset.load missing.rdb]
        assert_equal ENOENT [r dataset.save missing-folder/x.rdb]
        set f [open [file join [srv dir] bad.rdb] w]
        puts -nonewline $f "this is no dataset at all"
        close $f
        assert_equal EIO [r dataset.load bad.rdb]
        assert_equal 1 [r get a]
    }

    test {RdbLoad while the append only file is on: it begins anew} {
        r config set appendonly yes
        wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0}
        r set b 1
        assert_equal OK [r dataset.load modules.rdb]
        wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_enabled] == 1}
        r set c 1
        r debug loadaof
        assert_equal {1 0 1} [list [r get a] [r exists b] [r get c]]
        r config set appendonly no
    }

    test {a child ends by itself, and the module is told its exit code} {
        set pid [r dataset.fork 5]
        assert {$pid > 0}
        wait_for_condition 500 20 {[r dataset.forked] eq {1 5 0}}
    }

    test {there is one child at a time; a child that is killed tells nothing} {
        set pid [r dataset.fork -1]
        assert_equal 1 [info_field module_fork_in_progress]
        wait_for_condition 500 20 {[info_field current_fork_perc] eq {50.00}}
        assert_error {ERR no child} {r dataset.fork 1}
        assert_error {ERR *} {r bgsave}
        assert_equal 1 [r dataset.kill [expr {$pid + 1}]]
        assert_equal 0 [r dataset.kill $pid]
        assert_equal 0 [info_field module_fork_in_progress]
        assert_equal 1 [r dataset.kill $pid]
        assert_equal {1 5 0} [r dataset.forked]
        assert_match {*Can't fork for module: Operation already in progress*} [server_log]
        assert_match {*Received SIGUSR1 in child*} [server_log]
    }

    test {a value can be the memory of the module, and is read as any other} {
        r del h
        r hset h f v g w
        assert_equal listpack [r object encoding h]
        assert_equal 0 [r dataset.refer h f hello]
        assert_equal hashtable [r object encoding h]
        assert_equal {1 0} [list [r dataset.refers h f] [r dataset.refers h g]]
        assert_equal {-1 1 1} [list [r dataset.refer h none x] [r dataset.refer none f x] [r dataset.refer a f x]]
        assert_equal {0 1} [list [r exists none] [r dataset.refers a f]]
        assert_equal {hello w} [r hmget h f g]
        assert_equal {f g hello w} [lsort [r hgetall h]]
        assert_equal 5 [r hstrlen h f]
        assert_match {0 {*hello*}} [r hscan h 0]
        r restore copy 0 [r dump h]
        assert_equal {hello 0} [list [r hget copy f] [r dataset.refers copy f]]
        assert_equal 1 [r copy h copy2]
        assert_equal {hello 0} [list [r hget copy2 f] [r dataset.refers copy2 f]]
        assert_equal [r debug digest-value h] [r debug digest-value copy]
    }

    test {an expiry time leaves the reference, every change of the value ends it} {
        r dataset.refer h g 41
        assert_equal 1 [r hexpire h 100 fields 1 g]
        assert_equal {1 41} [list [r dataset.refers h g] [r hget h g]]
        assert_equal 1 [r hpersist h fields 1 g]
        assert_equal {1 41} [list [r dataset.refers h g] [r hget h g]]
        assert_equal 42 [r hincrby h g 1]
        assert_equal {0 42} [list [r dataset.refers h g] [r hget h g]]
        r hset h f new
        assert_equal 0 [r dataset.refers h f]
        r dataset.refer h f [string repeat z 100000]
        assert_equal 100000 [r hstrlen h f]
        r hset h f small
        r dataset.free
        assert_equal {small 42} [r hmget h f g]
    }

    test {many references: tables grow, fields go, the dataset is saved and loaded} {
        r del h
        for {set i 0} {$i < 200} {incr i} {
            r hset h f$i $i other$i [string repeat x $i]
            r dataset.refer h f$i value-$i
        }
        for {set i 0} {$i < 200} {incr i} {
            assert_equal [list value-$i [string repeat x $i]] [r hmget h f$i other$i]
        }
        for {set i 0} {$i < 200} {incr i 2} {r hdel h f$i}
        set digest [r debug digest-value h]
        assert_equal OK [r dataset.save modules.rdb]
        assert_equal OK [r dataset.load modules.rdb]
        assert_equal $digest [r debug digest-value h]
        assert_equal {0 value-199} [list [r dataset.refers h f199] [r hget h f199]]
        r dataset.free
        assert_equal value-199 [r hget h f199]
        r flushall
    }

    test {clients are served while a module reads a value, and what was read before is in place} {
        for {set i 0} {$i < 100} {incr i} {r set key$i $i}
        for {set i 0} {$i < 10} {incr i} {r dataset.add k$i 5}
        set digest [r debug digest]
        r dataset.slow 3
        set other [connect]
        $other -send debug reload
        for {set i 0} {$i < 3} {incr i} {
            wait_for_condition 1000 10 {[info_field loading] == 1}
            assert_error {LOADING*} {r get key1}
            wait_for_condition 1000 10 {[r dataset.continue] == 1}
        }
        assert_equal OK [$other -read]
        assert_equal 0 [info_field loading]
        assert_equal $digest [r debug digest]
        assert_equal 15 [r dataset.length k9]
        r flushall
    }

    test {a rewrite in which a module emits an unknown command fails} {
        r config set aof-use-rdb-preamble no
        r dataset.add good 5
        r config set appendonly yes
        wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        r debug loadaof
        assert_equal 15 [r dataset.length good]
        assert_equal ok [info_field aof_last_bgrewrite_status]
        r dataset.add bad 777
        r bgrewriteaof
        wait_for_condition 500 20 {[info_field aof_last_bgrewrite_status] eq {err}}
        assert_match {*Fatal: AOF method for module data type 'test-blks' tried to emit unknown command 'dataset.unknown'*} [server_log]
        r del bad
        r config set appendonly no aof-use-rdb-preamble yes
    }

    test {values of modules are defragmented: at once, or in steps with a cursor} {
        r debug populate 20000 key 100
        for {set i 0} {$i < 300} {incr i} {r dataset.add k$i 20}
        r dataset.add large 3000
        for {set i 0} {$i < 300} {incr i 3} {r del k$i}
        set names {}
        for {set i 0} {$i < 20000} {incr i} {
            if {$i % 10} {lappend names key:$i}
        }
        r del {*}$names
        r config set active-defrag-ignore-bytes 1 active-defrag-threshold-lower 0 active-defrag-cycle-min 50 active-defrag-cycle-max 75
        r config set activedefrag yes
        wait_for_condition 2500 20 {[lindex [r dataset.moves] 1] > 10 && [lindex [r dataset.moves] 3] > 0} else {fail "[r dataset.moves] [r info everything]"}
        r config set activedefrag no
        lassign [r dataset.moves] moved late wrong global strings
        assert {$moved > 0}
        if {[string match jemalloc* [info_field mem_allocator]]} {assert {$strings > 0}} ;# no other one moves blocks
        assert_equal 0 $wrong
        for {set i 1} {$i < 300} {incr i 3} {assert_equal 210 [r dataset.length k$i]}
        assert_equal [expr {3000 * 3001 / 2}] [r dataset.length large]
    }
}

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    test {a load that fails leaves none of its categories} {
        set before [r acl cat]
        assert_error {ERR Error loading*} {r module load $module mine fail}
        assert_error {ERR Error loading*} {r module load $module mine Read}
        assert_match {*category Read: errno EBUSY*} [server_log]
        assert_error {ERR Error loading*} {r module load $module mine with.dot}
        assert_match {*category with.dot: errno EINVAL*} [server_log]
        set many {}
        for {set i 0} {$i < 60} {incr i} {lappend many c$i}
        assert_error {ERR Error loading*} {r module load $module {*}$many}
        assert_match {*errno ENOMEM*} [server_log]
        assert_equal $before [r acl cat]
        r module load $module mine
        assert_equal mine [lindex [r acl cat] end]
    }
}

# Bits of options: 1 handles errors of reading, 4 another dataset beside.
start_server {tags {tls:skip} overrides {enable-module-command yes save {} repl-diskless-sync yes repl-diskless-sync-delay 0}} {
    r set k v
    foreach {options load skips} {0 flush-before-load {that don't handle read errors} 1 swapdb {that are not aware of async replication} 5 swapdb {}} {
        start_server [list overrides [list enable-module-command yes save {} repl-diskless-load $load]] {
            test "diskless load ($load) with a module of the options $options" {
                r module load $module options $options
                r replicaof 127.0.0.1 [srv -1 port]
                wait_for_condition 500 20 {![catch {r get k} value] && $value eq {v}} ;# it may load
                if {$skips eq {}} {
                    assert {![string match {*Skipping diskless-load*} [server_log]]}
                } else {
                    assert_match "*Skipping diskless-load because there are modules $skips.*" [server_log]
                }
            }
        }
    }
}
