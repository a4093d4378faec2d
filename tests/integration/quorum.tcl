# SPDX-License-Identifier: BSD-3-Clause
#
# replication-quorum: output that waits for replicas. Most tests have raw sockets as replicas, which acknowledge when the
# test wants it; the timeout is so long that it never ends a test.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl

set long {save {} repl-diskless-sync-delay 0 repl-ping-replica-period 3600 repl-timeout 3600 replication-quorum-timeout 3600000}
set capable {capa eof capa psync2 capa turn-acks version 9.1.2}

proc offset_now {} {info_field master_repl_offset}
proc ack_all {s} {replica_ack $s [offset_now]}
# Waits until so many clients have output that waits.
proc held_is {count} {
    wait_for_condition 400 20 {[info_field replication_quorum_held_clients] == $count} else {
        fail "[info_field replication_quorum_held_clients] clients are held, not $count: [r client list]"
    }
}
# Nothing was received by a client whose output is held: after what it waits for has come, its first reply is `reply`.
proc confirmed {s c reply} {
    ack_all $s
    assert_equal $reply [$c -read]
}

start_server [list tags {repl quorum tls:skip} overrides [concat $long {replication-quorum 1 notify-keyspace-events KEA enable-debug-command yes}]] {
    test {a reply to a write waits until a replica has acknowledged it} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        $c -send set key value
        held_is 1
        assert_match "*flags=q *cmd=set*" [r client list]
        assert_match "*replication_quorum:1\r*replication_quorum_status:ok*" [r info replication]
        # An offset below its end is not enough.
        replica_ack $s [expr {[offset_now] - 1}]
        assert_equal PONG [r ping]
        held_is 1
        confirmed $s $c OK
        held_is 0
        assert_equal 0 [info_field replication_quorum_unconfirmed_bytes]
    }

    test {replies that tell nothing of keys do not wait: PUBLISH, QUEUED, EXEC without commands about keys} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        $c -send set key value
        held_is 1
        assert_equal 0 [r publish channel text]
        assert_equal PONG [r ping]
        assert_equal OK [r multi]
        assert_equal QUEUED [r client id]
        assert_equal 1 [llength [r exec]]
        held_is 1
        set other [connect]
        assert_equal OK [$other multi]
        assert_equal QUEUED [$other get key]
        $other -send exec
        held_is 2
        confirmed $s $c OK
        assert_equal value [$other -read]
    }

    test {replies to requests that are refused for their name, arguments or user do not wait} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        r acl setuser limited on nopass ~a* +get +set +ping
        set c [connect]
        $c -send set key value
        held_is 1
        assert_error "ERR unknown command*" {r nonsense}
        assert_error "ERR wrong number of arguments*" {r set key}
        set other [connect]
        assert_error "ERR unknown command*" {$other nonsense key}
        assert_equal OK [$other auth limited any]
        assert_error "NOPERM*" {$other del key}
        assert_error "NOPERM*" {$other get key}
        held_is 1
        # What is sent with them waits.
        $other -send set a:refused 1
        $other -send nonsense
        held_is 2
        confirmed $s $c OK
        assert_equal OK [$other -read]
        assert_error "ERR unknown command*" {$other -read}
        r acl deluser limited
    }

    test {requests about the server do not wait when the mode is on again on their connection} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        assert_equal PONG [$c ping]
        set other [connect]
        assert_equal OK [$c config set replication-quorum 0]
        # Not noted.
        foreach i {1 2 3} {assert_equal PONG [$c ping]}
        assert_equal OK [$other config set replication-quorum 1]
        assert_equal PONG [$c ping]
        assert_equal master [lindex [$c role] 0]
        ack_all $s
    }

    test {the stream tells replicas to acknowledge each turn, once} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        foreach i {1 2} {
            $c -send set key $i
            held_is 1
            confirmed $s $c OK
        }
        replica_expect $s REPLCONF GETACK TURN
        replica_expect $s SELECT 0
        replica_expect $s set key 1
        replica_expect $s set key 2
    }

    test {replicas of other kinds do not count} {
        set other [dict get [replica_sync] socket]
        set s [dict get [replica_sync $capable] socket]
        set c [connect]
        $c -send set key value
        held_is 1
        ack_all $other
        wait_for_condition 400 20 {[string match "*offset=[offset_now],*" [r info replication]]}
        held_is 1
        confirmed $s $c OK
        # It is named, in INFO as well.
        assert_equal 127.0.0.1:7777 [info_field replication_quorum_outsiders]
        assert_equal 1 [regexp -all {Replica 127.0.0.1:7777 is of a kind that knows no replication-quorum} [server_log]]
        raw_close $other
        wait_for_condition 100 20 {[info_field replication_quorum_outsiders] eq ""}
    }

    test {a read of a changed slot waits, one of another slot and requests about the server do not} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        set d [connect]
        $c -send set key new
        held_is 1
        assert_equal {} [r get other]
        assert_equal 0 [r strlen another]
        assert_equal PONG [r ping]
        assert_match "*role:master*" [r info replication]
        $d -send get key
        held_is 2
        ack_all $s
        assert_equal OK [$c -read]
        assert_equal new [$d -read]
    }

    test {reads of several keys, transactions and scripts wait for all changes} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        foreach {request reply} {
            {mget a b} {{} {}}
            {dbsize} *
            {eval "return redis.call('get', KEYS[1])" 1 a} {}
            {eval "return 1" 0} 1
        } {
            set c [connect]
            set d [connect]
            $c -send set key value
            held_is 1
            $d -send {*}$request
            held_is 2
            ack_all $s
            assert_equal OK [$c -read]
            assert_match $reply [$d -read]
        }
        set c [connect]
        $c multi
        $c set key value
        $c get key
        $c -send exec
        held_is 1
        confirmed $s $c {OK value}
        $c -send eval {redis.call('set', KEYS[1], 'by script') return redis.call('get', KEYS[1])} 1 key
        held_is 1
        confirmed $s $c {by script}
    }

    test {what is not known to tell nothing waits: functions, DEBUG, the slow log, memory, commands without flags} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        r config set slowlog-log-slower-than 0
        set c [connect]
        $c -send set key value
        held_is 1
        confirmed $s $c OK
        foreach {request reply} {
            {function list} *library_name*lib*
            {function dump} *server.register_function*
            {function stats} *libraries_count*1*
            {debug object key} *encoding*
            {debug digest} ????????????????????????????????????????
            {slowlog get 1} *
            {commandlog get -1 slow} *lib*
            {memory stats} *
            {object encoding key} embstr
            {watch other} OK
        } {
            set c [connect]
            set d [connect]
            $c -send function load replace "#!lua name=lib\nserver.register_function('f', function() end)"
            held_is 1
            $d -send {*}$request
            held_is 2
            confirmed $s $c lib
            assert_match $reply [$d -read]
        }
        r config set slowlog-log-slower-than -1
        r slowlog reset
    }

    test {EXEC after WATCH waits: null tells that the key has changed, and a reply that it has not} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        foreach {key reply} {watched {} unchanged 1} {
            set c [connect]
            set d [connect]
            assert_equal OK [$d watch $key]
            $c -send set watched [incr value]
            held_is 1
            assert_equal OK [$d multi]
            assert_equal QUEUED [$d client id]
            $d -send exec
            held_is 2
            confirmed $s $c OK
            assert_equal [expr {$reply ne ""}] [llength [$d -read]]
        }
        # Without WATCH, and after UNWATCH, this transaction tells nothing.
        assert_equal OK [$d watch watched]
        assert_equal OK [$d unwatch]
        $c -send set watched 0
        held_is 1
        assert_equal OK [$d multi]
        assert_equal QUEUED [$d client id]
        assert_equal 1 [llength [$d exec]]
        confirmed $s $c OK
    }

    test {what Sentinel and clients ask of a server without its replicas does not wait} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        set d [connect 2] ;# replies to SUBSCRIBE would be pushes
        $c -send set key value
        held_is 1
        foreach request {
            ping info {client setname one} {client list} {config get port} role {acl whoami} {hello} {select 0} {echo text}
            {command count} {latency latest} {pubsub channels} {script exists a} {function kill} {slowlog reset} {module list} time
            lastsave {subscribe channel} {unsubscribe channel} unwatch {client kill type pubsub} {config resetstat}
        } {
            catch {$d {*}$request} text
            assert {![string match "I/O error*" $text]}
        }
        assert_equal PONG [$d ping]
        $d multi
        foreach request {{replicaof no one} {client kill type pubsub} {config resetstat}} {assert_equal QUEUED [$d {*}$request]}
        assert_equal 3 [llength [$d exec]]
        held_is 1
        confirmed $s $c OK
    }

    test {the order of a connection is kept: what needs no replica waits behind what does} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        $c -send set key value
        held_is 1
        $c -send ping
        $c -send get other
        set first [offset_now]
        wait_for_condition 400 20 {[string match "*cmd=get *" [r client list]]}
        $c -send set key again
        wait_for_condition 400 20 {[offset_now] > $first}
        $c -send ping
        replica_ack $s $first
        assert_equal OK [$c -read]
        assert_equal PONG [$c -read]
        assert_equal {} [$c -read]
        held_is 1
        confirmed $s $c OK
        assert_equal PONG [$c -read]
    }

    test {one acknowledgement covers all that many connections have done} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set clients {}
        r config resetstat
        for {set i 0} {$i < 20} {incr i} {
            lappend clients [set c [connect]]
            for {set k 0} {$k < 50} {incr k} {$c -send incr counter:$i}
        }
        wait_for_condition 400 20 {[string match "*cmdstat_incr:calls=1000,*" [r info commandstats]]}
        held_is 20
        ack_all $s
        foreach c $clients {
            for {set k 1} {$k <= 50} {incr k} {assert_equal $k [$c -read]}
        }
    }

    test {messages, keyspace events, invalidations and woken clients wait} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set subscriber [connect 3]
        $subscriber -send subscribe channel
        assert_equal {subscribe channel 1} [$subscriber -push]
        set events [connect 3]
        $events -send psubscribe __keyspace@0__:key
        assert_equal {psubscribe __keyspace@0__:key 1} [$events -push]
        set tracking [connect 3]
        $tracking client tracking on bcast
        set blocked [connect]
        $blocked -send blpop list 0
        wait_for_condition 400 20 {[info_field blocked_clients] == 1}
        set c [connect]
        $c -send set key value
        held_is 3
        $c -send publish channel text
        held_is 4
        $c -send rpush list element
        held_is 5
        ack_all $s
        foreach reply {OK 1 1} {assert_equal $reply [$c -read]}
        assert_equal {message channel text} [$subscriber -push]
        assert_equal {pmessage __keyspace@0__:key __keyspace@0__:key set} [$events -push]
        assert_equal {invalidate key} [$tracking -push]
        assert_equal {list element} [$blocked -read]
    } {resp:3}

    test {a read that finds an expired key waits for its deletion} {
        set s [dict get [replica_sync $capable] socket]
        r debug set-active-expire 0
        set c [connect]
        $c -send set expiring value px 1
        held_is 1
        confirmed $s $c OK
        wait_for_condition 400 20 {[r debug set-active-expire 0] eq "OK" && [info_field replication_quorum_held_clients] == 0}
        $c -send get expiring
        wait_for_condition 400 20 {[string match "*cmd=get *" [r client list]]}
        # Either it was not expired yet, or its reply waits.
        if {[info_field replication_quorum_held_clients]} {confirmed $s $c {}} else {$c -read}
        r debug set-active-expire 1
    } {needs:debug}

    test {CONFIG SET replication-quorum 0 releases everything, and another number is asked for at once} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        $c -send set key value
        held_is 1
        r config set replication-quorum 0
        assert_equal OK [$c -read]
        assert_equal "" [info_field replication_quorum]
        assert_equal OK [r set key value]
        r config set replication-quorum 2
        set t [dict get [replica_sync [concat $capable {listening-port 7778}]] socket]
        $c -send set key two
        held_is 1
        ack_all $s
        wait_for_condition 400 20 {[string match "*offset=[offset_now],*" [r info replication]]}
        held_is 1
        ack_all $t
        assert_equal OK [$c -read]
        r config set replication-quorum 1
        ack_all $s
    }

    test {with replication-quorum-durability disk replicas have to have it on disk, and this server} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        r config set appendonly yes
        wait_for_condition 400 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        r config set appendfsync always
        r config set replication-quorum-durability disk
        set c [connect]
        $c -send set key value
        held_is 1
        ack_all $s
        wait_for_condition 400 20 {[string match "*offset=[offset_now],*" [r info replication]]}
        held_is 1
        replica_ack $s [offset_now] [offset_now]
        assert_equal OK [$c -read]
        # Without a file here nothing is durable.
        r config set appendonly no
        $c -send set key value
        held_is 1
        replica_ack $s [offset_now] [offset_now]
        wait_for_condition 400 20 {[string match "*offset=[offset_now],*" [r info replication]]}
        held_is 1
        r config set replication-quorum-durability memory
        ack_all $s
        assert_equal OK [$c -read]
    }

    test {what waits is bounded: replication-quorum-output-limit} {
        set s [dict get [replica_sync $capable] socket]
        set c [connect]
        $c -send set large [string repeat x 100000]
        held_is 1
        confirmed $s $c OK
        r config set replication-quorum-output-limit 50kb
        $c -send append large y
        held_is 1
        $c -send get large
        wait_for_condition 400 20 {[info_field replication_quorum_held_bytes] > 100000}
        assert_error "NOQUORUM Too much output waits for replicas.*" {r get other}
        assert_equal PONG [r ping]
        ack_all $s
        assert_equal 100001 [$c -read]
        assert_equal 100001 [string length [$c -read]]
        assert_equal {} [r get other]
        r config set replication-quorum-output-limit 256mb
    }

    test {WAIT and min-replicas-to-write keep their meaning} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        set c [connect]
        $c -send set key value
        held_is 1
        $c -send wait 1 0
        ack_all $s
        assert_equal OK [$c -read]
        assert_equal 1 [$c -read]
        r config set min-replicas-to-write 5
        assert_error "NOREPLICAS*" {r set key value}
        r config set min-replicas-to-write 0
    }
}

start_server [list tags {repl quorum tls:skip} overrides [concat $long {replication-quorum 1 replication-quorum-timeout 100}]] {
    test {NOQUORUM: what was not confirmed in time ends with an error and the connection, then writes are refused} {
        set s [dict get [replica_sync $capable] socket]
        ack_all $s
        info_is replication_quorum_status ok
        set c [connect]
        $c -send set key value
        $c -send get key
        assert_error "NOQUORUM Not confirmed by enough replicas in time.*" {$c -read}
        assert_error "*closed*" {$c -read}
        info_is replication_quorum_status refusing
        assert_error "NOQUORUM Not enough replicas to confirm writes. Nothing was done." {r set key other}
        assert_error "NOQUORUM Not enough replicas to confirm what would be read." {r get key}
        assert_error "NOQUORUM*" {r eval {return redis.call('set', KEYS[1], 1)} 1 key}
        r multi
        assert_error "NOQUORUM*" {r set key other}
        assert_error "EXECABORT*" {r exec}
        assert_equal {} [r get never_written]
        assert_match "*Disconnecting 1 clients whose requests were not confirmed*" [server_log]
        assert_match "*Writes are refused: replication-quorum asks for 1 replicas*" [server_log]
        assert {[info_field replication_quorum_expired_clients] == 1}
        assert {[info_field replication_quorum_refused_requests] == 4}
        # It was executed, and takes effect later.
        ack_all $s
        info_is replication_quorum_status ok
        assert_equal value [r get key]
        assert_match "*Writes are accepted: 1 replicas confirm them.*" [server_log]
        r config resetstat
        assert {[info_field replication_quorum_expired_clients] == 0}
    }

    test {without replicas writes are refused after the timeout, and the server can be asked about itself} {
        info_is replication_quorum_status refusing
        assert_error "NOQUORUM*" {r set key other}
        assert_match "*replication_quorum_reachable:0*" [r info replication]
        assert_equal {replication-quorum 1} [r config get replication-quorum]
    }

    test {replication-read-lease: without news from replicas nothing of the keyspace is told} {
        set s [dict get [replica_sync $capable] socket]
        r config set replication-quorum-timeout 3600000
        r config set replication-read-lease 100
        # The lease begins with what is acknowledged after it was asked for.
        wait_for_condition 400 20 {[ack_all $s] eq "" && ![catch {r get key}]}
        wait_for_condition 400 20 {[catch {r get key} text]}
        assert_match "NOQUORUM Not enough replicas were heard of within replication-read-lease*" $text
        assert_equal PONG [r ping]
        r config set replication-read-lease 0
        ack_all $s
        assert_match value [r get key]
    }
}

start_server [list tags {repl quorum tls:skip} overrides {save {} repl-diskless-sync-delay 0 replication-quorum 1 replication-quorum-timeout 60000}] {
    start_server [list tags {repl quorum tls:skip} overrides {save {} repl-diskless-sync-delay 0}] {
        test {a replica of this kind confirms at the end of its turn} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            for {set i 0} {$i < 200} {incr i} {assert_equal OK [r -1 set key:$i $i]}
            # What was answered is here.
            for {set i 0} {$i < 200} {incr i} {assert_equal $i [r get key:$i]}
        }

        test {turns that are longer than a read of the replica are confirmed, with and without a rest} {
            # 64 KB are read at once. Changes of 64 bytes: some of these turns end with a read.
            set change "*3\r\n\$3\r\nset\r\n\$3\r\nkey\r\n\$35\r\n[string repeat v 35]\r\n"
            assert_equal 64 [string length $change]
            foreach count {1023 1024 1025 2048 3072 4096 4097 8192 10000} {
                r -1 -write [string repeat $change $count]
                for {set i 0} {$i < $count} {incr i} {assert_equal OK [r -1 -read]}
            }
        }

        test {REPLCONF HOLD-ACKS: a replica acknowledges nothing more until the order ends} {
            r config set replication-quorum 1
            assert_match "*replication_quorum_caught_up:1*replication_quorum_acks_held_ms:0*" [r info replication]
            assert_equal OK [r replconf hold-acks 600000]
            set c [connect_to [srv -1 host] [srv -1 port] $::resp_version {}]
            lappend ::test_clients $c
            $c -send set key held
            wait_for_condition 400 20 {[r get key] eq "held"}
            wait_for_condition 400 20 {[string match "*replication_quorum_held_clients:1*" [r -1 info replication]]}
            set other [connect]
            assert_equal OK [$other replconf hold-acks 0] ;# it has ordered nothing
            assert {![string match "*acks_held_ms:0*" [r info replication]]}
            assert_match "*replication_quorum_held_clients:1*" [r -1 info replication]
            assert_equal OK [r replconf hold-acks 0]
            assert_equal OK [$c -read]
            assert_match "*acks_held_ms:0*" [r info replication]
        }

        test {REPLCONF HOLD-ACKS: who has ordered it may promote the replica only in time, others at any} {
            set first [connect]
            set second [connect]
            assert_equal OK [$first replconf hold-acks 600000]
            assert_equal OK [$second replconf hold-acks 1]
            assert_error "ERR This connection may not change the role of this replica any more*" {$first replicaof no one}
            assert_error "ERR This connection may not change the role of this replica any more*" {$second replicaof no one}
            assert_equal slave [lindex [r role] 0]
            assert_error "ERR This connection may not change the role*" {$first replicaof 127.0.0.1 1}
            # The order of the first one lasts.
            assert {![string match "*acks_held_ms:0*" [r info replication]]}
            assert_error "ERR value is not an integer or out of range" {r replconf hold-acks -1}
            assert_error "ERR HOLD-ACKS is for replicas*" {r -1 replconf hold-acks 1}
            assert_equal OK [$first replconf hold-acks 600000]
            assert_equal OK [$first replicaof no one]
            assert_equal master [lindex [r role] 0]
        }
    }
}

set settings {save {} repl-diskless-sync-delay 0 replication-quorum 1 replication-quorum-timeout 60000 enable-debug-command yes}
start_server [list tags {repl quorum tls:skip} overrides $settings] {
    start_server [list tags {repl quorum tls:skip} overrides $settings] {
        # As after kill -9: nothing is told to anybody.
        proc restart_replica {} {
            catch {r debug crash-and-recover}
            drop_clients
            wait_for_condition 800 25 {![catch {r info replication} info] && [string match "*role:slave*master_link_status:up*" $info]}
        }
        # The replica has the write, and the primary does not answer it.
        proc write_is_held {value} {
            set c [connect_to [srv -1 host] [srv -1 port] $::resp_version {}]
            lappend ::test_clients $c
            $c -send set key $value
            wait_for_condition 400 20 {[r get key] eq $value}
            wait_for_condition 400 20 {[string match "*replication_quorum_held_clients:1*" [r -1 info replication]]}
        }
        set file [file join [lindex [r config get dir] 1] replica-hold-[srv port].conf]
        r replicaof [srv -1 host] [srv -1 port]
        link_is up
        r config rewrite

        test {REPLCONF HOLD-ACKS: the order lasts over a restart of the replica} {
            assert_equal OK [r replconf hold-acks 600000]
            assert_equal "hold-acks 600000\n" [file_text $file]
            restart_replica
            assert_range [info_field replication_quorum_acks_held_ms] 1 600000
            log_has "a client that may promote a replica has ordered it before this server was restarted"
            write_is_held first
            restart_replica
            assert {[info_field replication_quorum_acks_held_ms] > 0}
            write_is_held second
            # It was ordered by another connection.
            assert_equal OK [r replconf hold-acks 0]
            assert {[info_field replication_quorum_acks_held_ms] > 0}
        }

        test {REPLCONF HOLD-ACKS: a replica that was told to follow another primary holds nothing for that one after a restart} {
            r replicaof 127.0.0.1 1
            assert_equal 0 [info_field replication_quorum_acks_held_ms]
            assert_equal "hold-acks 600000 except 127.0.0.1 1\n" [file_text $file]
            # The configuration names the former primary still.
            restart_replica
            assert {[info_field replication_quorum_acks_held_ms] > 0}
            write_is_held third
            r replicaof no one
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            restart_replica
            assert_equal 0 [info_field replication_quorum_acks_held_ms]
            assert_equal OK [r -1 set key confirmed]
        }

        test {REPLCONF HOLD-ACKS: the file goes with the order, and one that cannot be read is an order} {
            assert {[file exists $file]}
            assert_equal OK [r replconf hold-acks 600000]
            assert_equal "hold-acks 600000\n" [file_text $file]
            assert_equal OK [r replconf hold-acks 0]
            assert {![file exists $file]}
            assert_equal OK [r replconf hold-acks 1]
            wait_for_condition 400 20 {![file exists $file]}
            write_bytes $file "hold-"
            restart_replica
            assert_range [info_field replication_quorum_acks_held_ms] 1 60000
            log_has "cannot be read: it counts as an order of 60000 ms"
        }

        test {REPLCONF HOLD-ACKS: an order that cannot be kept is refused} {
            r replicaof no one
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            file delete $file
            file mkdir $file
            assert_error "ERR The order cannot be kept for a restart*" {r replconf hold-acks 3600000}
            assert_equal 0 [info_field replication_quorum_acks_held_ms]
            file delete $file
        }
    }
}

start_server [list tags {repl quorum tls:skip} overrides $settings] {
    start_server [list tags {repl quorum tls:skip} overrides $settings] {
        r replicaof [srv -1 host] [srv -1 port]
        link_is up

        test {a primary that restarts without its data does not empty its replicas, and refuses requests} {
            assert_equal OK [r -1 set key confirmed]
            catch {r -1 debug restart}
            drop_clients
            wait_for_condition 800 25 {![catch {r -1 info replication} info] && [string match "*replication_quorum_status:behind*" $info]}
            log_has "A replica has data that was confirmed before this server was started" -1
            foreach command {{get key} {set key new} {eval {return 1} 0} {flushall}} {
                assert_error "NOQUORUM This server was started without data*" {r -1 {*}$command}
            }
            assert_equal PONG [r -1 ping]
            log_has "NOMASTERLINK Can't SYNC: data that replicas have would be lost"
            assert_equal {slave confirmed} [list [lindex [r role] 0] [r get key]]
        }

        test {when its replica is promoted it follows that one} {
            assert_equal OK [r replicaof no one]
            r -1 replicaof [srv host] [srv port]
            link_is up -1
            assert_equal confirmed [r get key]
            assert_match "*replication_quorum_status:inactive*" [r -1 info replication]
            assert_equal confirmed [r -1 get key]
            assert_equal OK [r set key again]
        }

        test {replication-quorum 0 on a primary that lacks data: what it has is kept} {
            catch {r debug restart}
            drop_clients
            wait_for_condition 800 25 {![catch {r info replication} info] && [string match "*replication_quorum_status:behind*" $info]}
            r config set replication-quorum 0
            link_is up -1
            assert_equal {{} {}} [list [r get key] [r -1 get key]]
            r config set replication-quorum 1
            assert_equal OK [r set key third]
        }

        test {a primary that restarts with everything goes on: saved, or with an append only file} {
            r save
            r config rewrite
            catch {r debug restart}
            drop_clients
            wait_for_condition 800 25 {![catch {r get key} reply] && $reply eq "third"}
            r config set appendonly yes
            r config rewrite
            wait_for_condition 800 25 {[string match "*aof_enabled:1*aof_rewrite_in_progress:0*aof_rewrite_scheduled:0*" [r info persistence]]}
            assert_equal OK [r set key fourth]
            catch {r debug restart}
            drop_clients
            wait_for_condition 800 25 {![catch {r get key} reply] && $reply eq "fourth"}
            link_is up -1
            assert_equal fourth [r -1 get key]
        }

        test {what precedes the restart counts, not what was saved before it} {
            r config set appendonly no
            r save
            r config rewrite
            assert_equal OK [r set key fifth]
            catch {r debug restart}
            drop_clients
            wait_for_condition 800 25 {![catch {r info replication} info] && [string match "*replication_quorum_status:behind*" $info]}
            assert_equal fifth [r -1 get key]
        }
    }
}
