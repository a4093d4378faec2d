# SPDX-License-Identifier: BSD-3-Clause
#
# Server events for modules (tests/modules/server_events.c).

start_server {overrides {enable-module-command yes enable-debug-command yes save {} appendonly no repl-diskless-sync-delay 0}} {
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
        # The last number is the database of the context.
        assert_equal {{2 0 1 -1 0} {2 1 1 -1 0} {2 0 0 3 3} {2 1 0 3 3}} \
            [apply $told 2 {r select 3; r flushall sync; r flushdb async; r select 0}]
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

    test {a load beside the dataset of another history is told, and the exchange is no flush} {
        r set key old
        start_server {tags {tls:skip} overrides {enable-module-command yes save {} repl-diskless-load swapdb}} {
            r module load [file normalize build/modules/server_events.so] handles
            r set own 1
            set log [apply $told {2 3 14} {
                r replicaof [srv -1 host] [srv -1 port]
                wait_for_condition 500 20 {![catch {r get key} value] && $value eq {old}} ;# it may load
                wait_for_condition 500 20 {[info_field master_link_status] eq {up}}
            }]
            assert_equal {{14 0 } {3 2 } {14 2 } {3 3 }} $log
            r replicaof no one
        }
    }

    test {the loop: each listener is told that it sleeps, then that it has woken, and neither within a command} {
        set log [apply $told 15 {foreach i {1 2 3} {r ping}}]
        assert {[llength $log] >= 6}
        set expected 0
        foreach event $log {
            assert_equal "15 $expected " $event
            set expected [expr {1 - $expected}]
        }
        assert_equal 0 $expected ;# the last one: it has woken for this command
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

    test {keys that are removed: why, and as they were, while they are still there} {
        assert_equal {{17 3 a 1 1 1} {17 0 a 1 4 1}} [apply $told 17 {
            r set a 1
            r set a 22
            r append a 33
            r del a
        }]
        # What is renamed or moved goes from its place; what is in the way of RENAME goes before.
        assert_equal {{17 0 a 1 2 1} {17 0 b 1 2 1} {17 0 y 1 1 1} {17 0 x 1 1 1}} [apply $told 17 {
            r set a 10 ex 100
            r rename a b
            r move b 3
            r set x 1
            r set y 2
            r rename x y
        }]
        # A collection is empty when it is removed.
        assert_equal {{17 0 l 2 0 1} {17 0 h 3 0 1} {17 3 s 4 1 1} {17 0 y 1 1 1}} [apply $told 17 {
            r lpush l 1
            r lpop l
            r hset h f v
            r hdel h f
            r sadd s a
            r sunionstore s s
            r unlink y
        }]
        assert_equal {{17 1 k 1 1 1} {17 3 k 1 1 1} {17 0 c 1 1 1}} [apply $told 17 {
            r set k 1
            r expire k -1
            r set k 1
            r mset k 2 c 3
            r copy k c replace
            r flushall
        }]
        assert_equal {{17 1 e 1 5 1}} [apply $told 17 {
            r debug set-active-expire 0
            r set e value px 1
            wait_for_condition 500 1 {[r get e] eq {}}
            r debug set-active-expire 1
        }]
        set log [apply $told 17 {
            r debug populate 100 evicted 1000
            r config set maxmemory-policy allkeys-random maxmemory 1
            wait_for_condition 500 20 {[r dbsize] == 0}
            r config set maxmemory 0
        }]
        assert_equal 100 [llength [lsearch -all -glob $log {17 2 evicted:* 1 1000 1}]]
    }

    test {logins: with a user, whatever its password} {
        r acl setuser bob on >pw ~* +@all
        r acl setuser off off >pw
        set log [apply $told 18 {
            catch {r auth nothing}
            catch {r auth off pw}
            catch {r auth bob wrong}
            catch {r auth nobody x}
            catch {r auth a b c d}
            r hello 2 auth bob pw
            r auth default {}
        }]
        assert_equal {{18 0 off NULL 1} {18 0 bob NULL 1} {18 0 nobody NULL 1} {18 0 bob NULL 0} {18 0 default NULL 0}} $log
    }

    test {refused requests, with the error} {
        set log [apply $told {22 23} {
            foreach request {{nosuch a b} get {client nosuch} config} {catch {r {*}$request}}
            r multi
            catch {r get}
            catch {r exec}
            catch {r eval {return redis.call('get')} 0}
            catch {r lpush str x}
            r config set maxmemory 1 maxmemory-policy noeviction
            catch {r set a b}
            r config set maxmemory 0
            r replicaof 127.0.0.1 1
            catch {r set a b}
            r replicaof no one
        }]
        assert_equal [list {22 0 (null) 0 3 0 0 [unknown command 'nosuch', with args beginning with: 'a' 'b' ]} \
            {22 0 get 0 1 0 0 [wrong number of arguments for 'get' command]} \
            {22 0 (null) 0 2 0 0 [unknown subcommand 'nosuch'. Try CLIENT HELP.]} \
            {22 0 config 0 1 0 0 [wrong number of arguments for 'config' command]} \
            {22 0 get 0 1 0 0 [wrong number of arguments for 'get' command]} \
            "22 0 set 0 3 0 0 \[-OOM command not allowed when used memory > 'maxmemory'.\r\n\]" \
            "22 0 set 0 3 0 0 \[-READONLY You can't write against a read only replica.\r\n\]"] $log
    }

    test {a request of a client that has not logged in lacks a right, too} {
        r config set requirepass pw
        set c [respConnect [srv host] [srv port] 2]
        set log [apply $told {22 23} {
            catch {$c get k} error
            assert_match {NOAUTH *} $error
        }]
        assert_equal {{23 0 get 0 2 0 0 [NULL]}} $log
        r config set requirepass {}
    }

    test {the command that subscribes is told its own result} {
        r events.listen 20
        assert_match {{20 0 events.listen 0 2 *}*} [r events.log]
        r events.stop 20
    }

    test {requests without the right to them, with the key or channel} {
        r acl setuser bob reset on >pw ~a* &ch* +@connection +get +mget +multi +exec +publish +eval +events.log +events.stop +events.listen
        set log [apply $told {22 23} {
            r auth bob pw
            foreach request {{get zz} {mget ab zz} {publish nope x} {keys *} {config get x}} {catch {r {*}$request}}
            catch {r eval {return redis.call('get', 'zz')} 0}
            r multi
            catch {r get zz}
            catch {r exec}
        }]
        r auth default {}
        assert_equal {{23 2 get 0 2 0 0 [zz]} {23 2 mget 0 3 0 0 [zz]} {23 3 publish 0 3 0 0 [nope]} {23 1 keys 0 2 0 0 [NULL]} {23 1 config|get 0 3 0 0 [NULL]} {23 2 get 0 2 0 0 [zz]}} $log
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
        foreach id {0 2 4 8 15 16 17 18 19 20 22 23} {r events.listen $id}
        r acl deluser bob ;# whose rules name commands of the module
        r module unload events
        r flushall
        r config set hz 10
        assert_equal PONG [r ping]
    }
}

start_server {tags {tls:skip} overrides {save {} appendonly no}} {
    start_server {overrides {enable-module-command yes save {} appendonly no}} {
        test {the link of a replica: told at once when it is up again, also by a part of the stream} {
            r module load [file normalize build/modules/server_events.so]
            r events.listen 7
            r replicaof 127.0.0.1 [srv -1 port]
            wait_for_condition 500 20 {[info_field master_link_status] eq {up}}
            assert_equal {{7 0 }} [r events.log]
            foreach time {1 2 3} {
                r client kill type primary
                set seen [r events.log]
                wait_for_condition 500 1 {[info_field master_link_status] eq {up}}
                assert_equal {{7 1 } {7 0 }} [concat $seen [r events.log]]
            }
            r replicaof no one
        }
    }
}
