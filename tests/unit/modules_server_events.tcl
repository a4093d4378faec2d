# SPDX-License-Identifier: BSD-3-Clause
#
# Server events for modules (tests/modules/server_events.c).

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    r module load [file normalize build/modules/server_events.so]

    # What is told of these events while `script` runs.
    set told {{ids script} {
        foreach id $ids {assert_equal 0 [r events.listen $id]}
        r events.log
        uplevel 1 $script
        set log [r events.log]
        foreach id $ids {assert_equal 0 [r events.stop $id]}
        return $log
    }}

    test {flushes, exchanged databases, settings} {
        assert_equal {{2 0 1 -1} {2 1 1 -1} {2 0 0 0} {2 1 0 0}} \
            [apply $told 2 {r flushall sync; r flushdb async}]
        assert_equal {{11 0 2 3}} [apply $told 11 {r swapdb 2 3}]
        assert_equal {{16 0 2 maxmemory}} [apply $told 16 {r config set maxmemory 0 hz 10}]
    }

    test {saving, loading, children} {
        assert_equal {{1 2 } {1 3 }} [apply $told 1 {r save}]
        assert_equal {{3 0 } {3 3 }} [apply $told 3 {r debug reload nosave}]
        set log [apply $told {1 13} {
            r bgsave
            wait_for_condition 500 20 {[string match *rdb_bgsave_in_progress:0* [r info persistence]]}
        }]
        foreach event {{1 0 } {1 3 }} {assert {$event in $log}}
    }

    test {clients} {
        set log [apply $told 4 {
            set c [respConnect [srv host] [srv port] 2]
            $c -send ping
            $c -read
            $c -close
            wait_for_condition 500 20 {[string match *connected_clients:1* [r info clients]]}
        }]
        # The system does not tell the address of a connection that was reset.
        assert_match {{4 0 127.0.0.1} {4 1 *}} $log
    }

    test {results of commands, with the number of changes} {
        set log [apply $told {20 21} {
            r mset a 1 b 2
            catch {r lpush a x}
            r eval {return redis.call('del', 'a', 'b')} 0
        }]
        foreach event {{20 0 mset 2 5 0} {21 0 lpush 0 3 0} {20 0 del 2 3 0} {20 0 eval 2 3 0}} {
            assert {$event in $log}
        }
    }

    test {other modules, not itself} {
        set log [apply $told 9 {
            r module load [file normalize build/modules/hello_command.so]
            r module unload hellocommand
        }]
        assert_equal {{9 0 hellocommand 1} {9 1 hellocommand 1}} $log
    }

    test {the cron and the loop} {
        set log [apply $told {8 15} {
            wait_for_condition 500 20 {[lsearch -glob [set all [r events.log]] {8 0 *}] >= 0}
            assert {{15 0 } in $all && {15 1 } in $all}
        }]
    }

    test {the role} {
        set log [apply $told 0 {r replicaof 127.0.0.1 1; r replicaof no one}]
        assert_equal {{0 1 0 127.0.0.1 1 40} {0 0 1  0 40}} $log
    }

    test {what is not supported} {
        assert_equal {1 1} [r events.bad]
        assert_equal 1 [r events.supported 1 5]
        assert_equal 0 [r events.supported 1 6]
        assert_equal 0 [r events.supported 5 0]
        assert_equal 0 [r events.supported 20 0]
        assert_equal 0 [r events.supported 99 0]
    }

    test {after it was unloaded nothing is told} {
        foreach id {0 2 4 8 15 16 20} {r events.listen $id}
        r module unload events
        r flushall
        r config set hz 10
        assert_equal PONG [r ping]
    }
}
