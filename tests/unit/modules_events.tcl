# SPDX-License-Identifier: BSD-3-Clause
#
# Keyspace events for modules (utils/hello_module/hello_events.c).

source $::tests_dir/support/raw_replica.tcl

start_server {overrides {enable-module-command yes save {} appendonly no repl-diskless-sync-delay 0}} {
    r module load [file normalize build/modules/hello_events.so]

    test {events of commands, with the database of the key} {
        r select 3
        r set a 1
        r expire a 100
        r del a
        assert_equal {{new 3 a} {set 3 a} {new 3 changes:a} {incrby 3 changes:a} {expire 3 a} {del 3 a}} \
            [r hello.log clear]
        r lpush l 1
        r lpop l
        assert_equal {{new 3 l} {lpush 3 l} {lpop 3 l} {del 3 l}} [r hello.log clear]
        assert_match {* db=3 *} [r client info]
        r select 0
    }

    test {an event of its own reaches subscribers of messages and of modules} {
        r config set notify-keyspace-events Ed
        set reader [respConnect [srv host] [srv port] 2]
        $reader psubscribe __keyevent*
        r hello.publish mine k
        assert_equal {pmessage __keyevent* __keyevent@0__:mine k} [$reader -read]
        $reader -close
        assert_equal {{mine 0 k}} [r hello.log clear]
        r config set notify-keyspace-events {}
    }

    test {a job is propagated after the command that caused it, as one transaction} {
        set s [dict get [replica_sync] socket]
        set expect {commands {
            upvar s s
            foreach words $commands {replica_expect $s {*}$words}
        }}
        r set b 1
        apply $expect {MULTI {SELECT 0} {set b 1} {INCR changes:b} EXEC}
        r multi
        r set c 1
        r set d 1
        r exec
        apply $expect {MULTI {set c 1} {set d 1} {INCR changes:c} {INCR changes:d} EXEC}
        r eval {redis.call('set', 'e', 1) return redis.call('get', 'changes:e')} 0
        apply $expect {MULTI {set e 1} {INCR changes:e} EXEC}
        r lpush l 1
        apply $expect {{lpush l 1}}
        close $s
        assert_equal 1 [r get changes:e]
        r hello.log clear
    }

    test {in a pipeline without replicas each command has its jobs before the next one} {
        set c [respConnect [srv host] [srv port] 2]
        for {set i 0} {$i < 3} {incr i} {
            $c -send set p $i
            $c -send get changes:p
        }
        set got {}
        for {set i 0} {$i < 6} {incr i} {lappend got [$c -read]}
        assert_equal {OK 1 OK 2 OK 3} $got
        $c -close
    }

    test {keys that are loaded are told, and have no jobs} {
        r flushall
        r set x 1
        r hello.log clear
        r debug reload
        assert_equal {{loaded 0 changes:x} {loaded 0 x}} [lsort [r hello.log clear]]
        assert_equal 1 [r get changes:x]
    }

    test {an expired key is told} {
        r psetex t 1 v
        wait_for_condition 100 20 {[r exists t] == 0} else {fail "the key lives on"}
        assert {[lsearch [r hello.log clear] {expired 0 t}] >= 0}
    }

    test {after it was unloaded nothing is told} {
        r module unload helloevents
        r set a 1
        assert_equal 0 [r exists changes:a]
    }
}
