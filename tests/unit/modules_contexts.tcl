# SPDX-License-Identifier: BSD-3-Clause
#
# What outlives the context of a module that it came from, and the state of contexts
# (tests/modules/contexts.c).

start_server {overrides {enable-module-command yes enable-debug-command yes}} {
    r module load [file normalize build/modules/contexts.so]

    proc blocked {n} { wait_for_condition 500 10 {[info_field blocked_clients] == $n} }

    test {a promise and a reply outlive the context of their command} {
        set c [connect]
        for {set i 0} {$i < 5} {incr i} {
            $c -send contexts.promise blpop list 0
            blocked 1
            r lpush list a
            assert_equal {list a} [$c -read]
            r set key value$i
            r contexts.keep get key
            assert_equal value$i [r contexts.kept]
        }
        assert_equal {5 0} [r contexts.counts]
    }

    test {AbortBlock() calls nothing: the private data is the module's} {
        catch {r contexts.abort}
        assert_equal {5 0} [r contexts.counts]
        set c [connect]
        set id [$c client id]
        $c -send contexts.promise blpop list 0
        blocked 1
        r client kill id $id
        wait_for_condition 500 10 {[r contexts.counts] eq {5 1}}
        set c [connect]
        $c -send contexts.promise blpop list 0
        blocked 1
        r replicaof 127.0.0.1 1
        assert_error {UNBLOCKED *} {$c -read}
        r replicaof no one
        wait_for_condition 500 10 {[r contexts.counts] eq {5 2}}
        r lpush list a
        assert_equal a [r lpop list]
    }

    test {a thread may read the arguments of a blocked command, and of a login} {
        set c [connect]
        set long [string repeat x 60]
        for {set i 0} {$i < 5} {incr i} {
            $c -send contexts.later first$i $long 12345
            $c -send ping [string repeat y 100]
            blocked 1
            for {set k 0} {$k < 10} {incr k} {r set key [string repeat z 90]}
            r contexts.go
            assert_equal [list contexts.later first$i $long 12345] [$c -read]
            $c -read
        }
        $c -send auth thread secret
        blocked 1
        r set key [string repeat z 60]
        r contexts.go
        assert_equal OK [$c -read]
    }

    test {the arguments remain after a timeout, a disconnect and a refusal} {
        set c [connect]
        set id [$c client id]
        $c -send contexts.later first second
        blocked 1
        r client kill id $id
        blocked 0
        r contexts.go
        r multi
        r contexts.later in a transaction
        assert_match {ERR Blocking module command called from transaction} [lindex [r exec] 0]
        r set key [string repeat z 60]
        r contexts.go
        assert_equal PONG [r ping]
    }

    test {CallArgv() without handlers runs the command, without a reply it tells so} {
        assert_equal {0 0 0 0} [r contexts.argv 1 0 set key argv]
        assert_equal argv [r get key]
        assert_equal {0 1 5 0} [r contexts.argv 0 1 set key handled]
        assert_equal {1 1 0 1} [r contexts.argv 0 1 get]
        assert_equal {1 1 0 1} [r contexts.argv 0 1 no-such-command]
        assert_equal {1 0 0 0} [r contexts.argv 0 0 get]
    }

    test {only calls without K, transactions and scripts cannot block} {
        r flushall
        r set key value
        assert_equal {0 1} [list [r contexts.denied] [r contexts.call E contexts.denied]]
        assert_equal 0 [r contexts.call EK contexts.denied]
        assert_equal 1 [r contexts.call EK contexts.call E contexts.denied]
        assert_equal 0 [r contexts.call E contexts.call EK contexts.denied]
        assert_equal {1 0} [r contexts.timer]
        assert_equal {} [r contexts.denials]
        r multi
        r contexts.denied
        r set key value
        assert_equal {1 OK} [r exec]
        assert_equal 1 [r eval {return redis.call('contexts.denied')} 0]
        assert_equal {key-event } [r contexts.denials]
        set c [connect]
        $c -send contexts.promise contexts.promise contexts.promise blpop list 0
        blocked 1
        r lpush list a
        assert_equal {list a} [$c -read]
    }

    test {CLIENT INFO of a call, and what else knows no connection} {
        foreach format {E EK} {
            set info [r contexts.call $format client info]
            assert_match {id=[1-9]* addr= laddr= fd=-1 name= * flags=N * cmd=client|info user=(superuser) *} $info
        }
        assert_error {ERR can only reset normal client connections} {r contexts.call E reset}
        assert_error {ERR SYNC and PSYNC are only for clients with a connection} {r contexts.call E sync}
        assert_error {ERR SYNC and PSYNC are only for clients with a connection} {r contexts.call EK psync ? -1}
        assert_error {ERR MONITOR isn't allowed for DENY BLOCKING client} {r contexts.call EK monitor}
        assert_equal {subscribe channel 1} [r contexts.call EK subscribe channel]
        assert_equal 0 [r publish channel message]
        assert_equal OK [r contexts.call EK client tracking on]
        assert_equal 0 [info_field tracking_clients]
    }

    test {a call leaves nothing for the next one} {
        r contexts.call E client setname somebody
        assert_equal {} [r contexts.call E client getname]
        r contexts.call E multi
        assert_equal value [r contexts.call E get key]
        assert_error {ERR EXEC without MULTI} {r contexts.call E exec}
        r contexts.call E client tracking on
        assert_equal {flags off redirect -1 prefixes {}} [r contexts.call E client trackinginfo]
        r contexts.call E quit
        assert_equal {0 0 0 0} [r contexts.argv 0 0 client reply off]
        assert_equal PONG [r contexts.call E ping]
        r contexts.call E client setinfo lib-name name
        assert_match {* capa= * lib-name= lib-ver= *} [r contexts.call E client info]
        assert_equal 1 [r contexts.call E contexts.denied]
    }

    test {a reply of RESP3 is passed on to a client of RESP2 unless it has a type of RESP3} {
        r hset hash field value
        assert_equal PONG [r contexts.call E3 ping]
        assert_equal value [r contexts.call E3 hget hash field]
        assert_equal {hash} [r contexts.call E3 keys hash]
        assert_equal [expr {[resp3] ? {field value} : {not passed on}}] [r contexts.call E3 hgetall hash]
        assert_equal [expr {[resp3] ? {} : {not passed on}}] [r contexts.call E3 get missing]
    }

    test {the time that a module measures counts, also if it ends in a callback or is that of a login} {
        proc counted {name} {
            regexp "cmdstat_$name:calls=(\\d+),usec=(\\d+)," [r info commandstats] -> calls usec
            return [list $calls [expr {$usec >= 40000}]]
        }
        r config set slowlog-log-slower-than 40000
        r config resetstat
        r slowlog reset
        assert_equal OK [r contexts.measure timeout]
        assert_equal {1 1} [counted contexts.measure]
        assert_equal 1 [r slowlog len]
        set c [connect]
        $c -send contexts.measure key-of-measure
        blocked 1
        r debug sleep 0.04
        r lpush key-of-measure a
        assert_equal OK [$c -read]
        assert_equal {3 1} [counted contexts.measure]
        $c -send auth thread secret
        blocked 1
        r debug sleep 0.04
        r contexts.go
        assert_equal OK [$c -read]
        assert_equal {1 1} [counted auth]
    }
}
