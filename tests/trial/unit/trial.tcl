# SPDX-License-Identifier: BSD-3-Clause
#
# A subsystem that a running server gets (tests/trial/trial.c): its type of values is saved, loaded, copied, expired and
# replicated like any other; commands, filter, listener, observer and waits work without a line in the rest of the server.

source $::tests_dir/support/replication.tcl

proc trial_ready {level} {
    wait_for_condition 400 25 {[r $level command info trial.wait] ne {{}}} else {
        fail "the subsystem was not added"
    }
}

proc events {args} {
    return [lsort [split [string trimright [r trial.events] \n] \n]]
}

start_server {tags {trial} overrides {save {} appendonly no repl-diskless-sync-delay 0}} {
    trial_ready -0

    test {values of the type are written and read by its commands, and named by others} {
        assert_equal OK [r trial.set a 7 seven]
        assert_equal {7 seven} [r trial.get a]
        assert_equal tally-try [r type a]
        assert_equal {} [r trial.get missing]
        r set text x
        assert_error "WRONGTYPE*" {r trial.get text}
        assert_error "WRONGTYPE*" {r lpush a x}
        assert_equal a [lindex [r scan 0 type tally-try] 1]
        assert {[r memory usage a] > 0}
        assert_match "*tallies:1*" [r info trial]
    }

    test {an observer hears of changes and, before, of each removal with its reason} {
        r flushall
        r trial.events
        r trial.set a 1 x
        r trial.set a 2 x
        r rename a b
        r del b
        r trial.set c 3 x
        r pexpire c 1
        wait_for_condition 400 10 {[r exists c] == 0} else {fail "c did not expire"}
        set seen [events]
        foreach line {"tally 0 a" "tally 0 c" "deleted 0 2" "expired 0 3" "unlink 0 b" "unlink 0 c"} {
            assert {$line in $seen} $seen
        }
    }

    test {a copy has an own value, and one that fails changes nothing} {
        r flushall
        r trial.set a 5 five
        r trial.set bad -1 x
        assert_equal 1 [r copy a b]
        r trial.set a 6 six
        assert_equal {5 five} [r trial.get b]
        r set other x
        assert_error * {r copy bad other replace}
        assert_equal x [r get other]
        assert_error * {r copy bad missing}
        assert_equal 0 [r exists missing]
    }

    test {DUMP and RESTORE carry it} {
        r flushall
        r trial.set a 9 nine
        set payload [r dump a]
        r restore b 0 $payload
        assert_equal {9 nine} [r trial.get b]
        assert_equal [lindex [r debug digest-value a] 0] [lindex [r debug digest-value b] 0]
    }

    test {what was saved is loaded again: snapshot and append only file, both with and without a fork} {
        foreach mode {fork auto} preamble {yes no} {
            r config set snapshot-mode $mode aof-use-rdb-preamble $preamble
            r flushall
            foreach i {1 2 3} {r trial.set key:$i $i label$i}
            r pexpire key:3 1000000
            set digest [r debug digest]
            r save
            r debug reload
            assert_equal $digest [r debug digest]
            r config set appendonly yes
            info_is aof_rewrite_in_progress 0
            info_is aof_rewrite_scheduled 0
            r trial.set key:4 4 label4
            set digest [r debug digest]
            r debug loadaof
            assert_equal $digest [r debug digest]
            assert_equal {4 label4} [r trial.get key:4]
            r config set appendonly no
        }
    }

    test {while a type of a module exists, mode auto forks even for a large dataset} {
        r flushall
        r config set snapshot-mode auto
        r debug populate 70 large 1000000
        assert {[info_field used_memory] > 64 * 1024 * 1024}
        r bgsave
        info_is rdb_bgsave_in_progress 0
        assert_match "*Background saving started by pid*" [server_log]
        r flushall
    }

    test {users with rights to a category may call a command that is loaded later, until it is unloaded} {
        r acl setuser reader on nopass ~* +@read
        set c [connect]
        $c auth reader x
        assert_error "NOPERM*" {$c set a x}
        assert_error "ERR unknown command*" {$c trial.answer}
        r trial.load
        assert_error "ERR it is there" {r trial.load}
        assert_equal 42 [$c trial.answer]
        assert_equal 42 [r eval {return redis.call('trial.answer')} 0]
        r trial.unload
        assert_error "ERR unknown command*" {$c trial.answer}
    }

    test {a filter makes another request of one, armed only} {
        r flushall
        assert_error "ERR unknown command*" {r trial.add a label}
        r trial.filter on
        assert_equal OK [r trial.add a label]
        assert_equal {1 label} [r trial.get a]
        assert_equal OK [r eval {return redis.call('trial.add', KEYS[1], 'by script')} 1 b]
        r multi
        assert_equal QUEUED [r trial.add c {in multi}]
        assert_equal OK [lindex [r exec] 0]
        assert_equal {1 {in multi}} [r trial.get c]
        assert_equal {1 {by script}} [r trial.get b]
        r trial.filter off
        assert_error "ERR unknown command*" {r trial.add a label}
    }

    test {a command waits for something outside of the keyspace} {
        set c [connect]
        $c -send trial.wait 0
        info_is blocked_clients 1
        assert_error "ERR cannot wait" {r trial.wait 0}
        r trial.deliver 77
        assert_equal 77 [$c -read]
        assert_equal {} [r trial.wait 0.01]
        $c -send trial.wait 0
        info_is blocked_clients 1
        $c -close
        info_is blocked_clients 0
        assert_equal {} [r trial.wait 0.01]
    }

    start_server {overrides {save {} appendonly no}} {
        trial_ready -0

        test {a replica gets values of the type in the full synchronisation and in the stream, and listeners hear of it} {
            r -1 flushall
            r -1 trial.set before 1 b
            r trial.events
            r replicaof [srv -1 host] [srv -1 port]
            info_is master_link_status up
            r -1 trial.set after 2 a
            r -1 trial.filter on
            r -1 trial.add filtered f
            r -1 trial.filter off
            wait_for_condition 400 25 {[r exists filtered]} else {fail "the stream did not arrive"}
            assert_equal {{1 b} {2 a} {1 f}} [list [r trial.get before] [r trial.get after] [r trial.get filtered]]
            assert {"role replica" in [events]}
            r replicaof no one
            assert {"role primary" in [events]}
        }
    }
}
