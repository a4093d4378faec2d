# SPDX-License-Identifier: BSD-3-Clause
#
# Blocked clients of modules, their threads, and calls that wait (tests/modules/blocked.c).

source $::tests_dir/support/raw_replica.tcl

start_server {overrides {enable-module-command yes enable-debug-command yes latency-tracking yes}} {
    r module load [file normalize build/modules/blocked.so]

    proc blocked {n} { wait_for_condition 500 10 {[info_field blocked_clients] == $n} }

    test {a blocked client gets the reply of the reply callback, and what it has sent is run after it} {
        set c [connect]
        $c -send blocked.wait 0
        $c -send ping
        blocked 1
        assert_equal 1 [r blocked.release hello]
        assert_equal hello [$c -read]
        assert_equal PONG [$c -read]
    }

    test {a timeout calls its callback, and the handle lives until the module unblocks it} {
        assert_equal late [r blocked.wait 1]
        assert_error {ERR Error unloading module: the module has blocked clients. Please wait for them to be unblocked and try again} \
            {r module unload blocked}
        set seen [r blocked.seen]
        r blocked.release x
        wait_for_condition 500 10 {[r blocked.seen] eq [list [expr {[lindex $seen 0] + 1}] [expr {[lindex $seen 1] + 1}] [lindex $seen 2]]}
    }

    test {a timer that unblocks the client comes before the timeout, if both are due} {
        for {set i 0} {$i < 20} {incr i} {assert_equal text [r blocked.timer [expr {1 + $i % 4}] text]}
        set c [connect]
        set d [connect]
        for {set i 0} {$i < 5} {incr i} {
            $c -send blocked.timer 3 text
            $d debug sleep 0.01
            assert_equal text [$c -read]
        }
    }

    test {a client is never left without a reply} {
        assert_error {ERR the command of the module has timed out} {r blocked.bare 1}
        r blocked.release x
        set c [connect]
        $c -send blocked.bare 0
        blocked 1
        r blocked.release x
        assert_error {ERR the module has unblocked the client without a reply} {$c -read}
        $c -send blocked.wait 0
        blocked 1
        r blocked.abort
        assert_error {ERR the module has unblocked the client without a reply} {$c -read}
    }

    test {CLIENT UNBLOCK ends only waits that have a callback for timeouts} {
        set c [connect]
        set id [$c client id]
        set before [lindex [r blocked.seen] 2]
        $c -send blocked.bare 0
        blocked 1
        assert_equal 0 [r client unblock $id]
        assert_equal 0 [r client unblock $id error]
        r blocked.release x
        catch {$c -read}
        $c -send blocked.wait 0
        blocked 1
        assert_equal 1 [r client unblock $id timeout]
        assert_equal late [$c -read]
        r blocked.release x
        $c -send blocked.wait 0
        blocked 1
        assert_equal 1 [r client unblock $id error]
        assert_error {UNBLOCKED client unblocked via CLIENT UNBLOCK} {$c -read}
        r blocked.release x
        assert_equal [expr {$before + 1}] [lindex [r blocked.seen] 2]
    }

    test {the module is told of a client that goes away} {
        set c [connect]
        set seen [r blocked.seen]
        $c -send blocked.wait 0
        blocked 1
        r client kill id [lindex [regexp -inline {id=(\d+)[^\n]*cmd=blocked.wait} [r client list]] 1]
        wait_for_condition 500 10 {[lindex [r blocked.seen] 2] == [lindex $seen 2] + 1}
        r blocked.release x
        wait_for_condition 500 10 {[lindex [r blocked.seen] 1] == [lindex $seen 1] + 1}
    }

    test {a transaction and a script cannot be blocked, and a timeout has a limit} {
        r multi
        r blocked.wait 0
        assert_equal {ERR Blocking module command called from transaction} [lindex [r exec] 0]
        assert_error {*ERR Blocking module command called from Lua script*} {r eval {return redis.call('blocked.wait', 0)} 0}
        assert_error {ERR timeout is out of range} {r blocked.wait 9223372036854775807}
        foreach i {1 2 3} {r blocked.release x}
        assert_equal 0 [r blocked.release x]
    }

    test {a client that waits for keys is served when one becomes ready} {
        set c [connect]
        $c -send blocked.key key 0
        blocked 1
        r set key string
        assert_equal 1 [info_field blocked_clients]
        r del key
        r rpush key a b
        assert_equal 2 [$c -read]
        assert_equal late [r blocked.key other 1]
    }

    test {a thread runs commands with the lock, and its errors count} {
        r del list
        assert_equal OK [r blocked.thread set key value]
        assert_equal value [r get key]
        r config resetstat
        assert_error {WRONGTYPE *} {r blocked.thread lpush key x}
        assert_match {*errorstat_WRONGTYPE:count=1*} [r info errorstats]
        assert_match {*cmdstat_blocked.thread:calls=1,*failed_calls=1*} [r info commandstats]
    }

    test {threads and clients change the same key, and nothing is lost} {
        set rounds [scaled 500]
        set c [connect]
        r del storm
        $c -send blocked.storm $rounds
        for {set i 0} {$i < $rounds} {incr i} {r incr storm}
        assert_equal [expr {$rounds * 4}] [$c -read]
        assert_equal [expr {$rounds * 5}] [r get storm]
    }

    test {a call that waits: its reply comes when its command is unblocked} {
        r del list arrived
        set c [connect]
        $c -send blocked.call blpop list 0
        blocked 1
        r rpush list x
        assert_equal {list x} [$c -read]
        assert_equal 1 [r get arrived]
        assert_equal PONG [r blocked.call ping]
        assert_equal 1 [r get arrived]
    }

    test {a client whose login was blocked goes on} {
        set c [connect]
        assert_equal OK [$c auth later yes]
        assert_equal PONG [$c ping]
        assert_error {WRONGPASS*} {$c auth later no}
        assert_equal PONG [$c ping]
    }

    test {the module can be unloaded when no handle is left} {
        assert_equal OK [r module unload blocked]
    }
}

# The example of a module whose commands wait (utils/hello_module/hello_blocked.c).
start_server {overrides {enable-module-command yes repl-diskless-sync-delay 0}} {
    set path [file normalize build/modules/hello_blocked.so]
    r module load $path

    test {a thread computes while the server goes on} {
        assert_equal 7 [r hello.factor 91]
        assert_equal 1000003 [r hello.factor 1000003]
        assert_error {ERR not an integer above 1} {r hello.factor 1}
        set c [connect]
        $c -send hello.factor 100000980001501
        assert_equal PONG [r ping]
        assert_equal 10000019 [$c -read]
    }

    test {a client waits for a string, which one client gets} {
        set first [connect]
        set second [connect]
        $first -send hello.take key 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 1}
        $second -send hello.take key 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 2}
        r rpush key element
        r del key
        assert_equal 2 [info_field blocked_clients]
        r set key one
        assert_equal one [$first -read]
        assert_equal 0 [r exists key]
        r set key two
        assert_equal two [$second -read]
        r set key there
        assert_equal there [r hello.take key 0]
        assert_equal {} [r hello.take key 1]
        assert_error {ERR not a time in milliseconds} {r hello.take key x}
    }

    test {what was taken is deleted on replicas} {
        set replica [dict get [replica_sync] socket]
        set c [connect]
        $c -send hello.take key 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 1}
        r set key value
        assert_equal value [$c -read]
        r set last 1
        replica_expect $replica SELECT 0
        replica_expect $replica set key value
        replica_expect $replica DEL key
        replica_expect $replica set last 1
        close $replica
    }

    test {in a transaction and in a script neither command waits} {
        r multi
        r hello.take key 0
        r hello.factor 9
        assert_equal {{} {ERR this client cannot wait}} [r exec]
        assert_equal {} [r eval {return redis.call('hello.take', 'key', 0)} 0]
    }

    test {a client that disconnects ends its wait} {
        set c [connect]
        $c -send hello.take key 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 1}
        $c -close
        wait_for_condition 500 10 {[info_field blocked_clients] == 0}
        r set key value
        assert_equal value [r get key]
        assert_equal OK [r module unload helloblocked]
    }
}
