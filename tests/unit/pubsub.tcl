# SPDX-License-Identifier: BSD-3-Clause
#
# Channels, patterns and shard channels: confirmations, messages, the RESP2 context, transactions, counts.

# Sends a command that is answered by `count` confirmations or messages, and returns them.
proc confirmed {client count args} {
    $client -send {*}$args
    set got {}
    for {set i 0} {$i < $count} {incr i} {lappend got [$client -message]}
    return $got
}

proc client_field {name field} {
    regexp "name=$name \[^\n\]* $field=(\\S*)" [r client list] all value
    return $value
}

set refused "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

start_server {tags {pubsub}} {
    test {SUBSCRIBE and UNSUBSCRIBE confirm each channel with the number of channels and patterns} {
        set c [connect]
        assert_equal {{subscribe a 1} {subscribe b 2} {subscribe a 2}} [confirmed $c 3 subscribe a b a]
        assert_equal {{psubscribe c* 3}} [confirmed $c 1 psubscribe c*]
        assert_equal {{ssubscribe s 1}} [confirmed $c 1 ssubscribe s]
        assert_equal {{unsubscribe none 3}} [confirmed $c 1 unsubscribe none]
        assert_equal {{unsubscribe a 2}} [confirmed $c 1 unsubscribe a]
        assert_equal {{punsubscribe c* 1}} [confirmed $c 1 punsubscribe]
        assert_equal {{punsubscribe {} 1}} [confirmed $c 1 punsubscribe]
        assert_equal {{unsubscribe b 0}} [confirmed $c 1 unsubscribe]
        assert_equal {{sunsubscribe s 0}} [confirmed $c 1 sunsubscribe]
        assert_equal {{sunsubscribe {} 0}} [confirmed $c 1 sunsubscribe]
        assert_equal PONG [$c ping]
    }

    test {confirmations and messages are arrays in RESP2 and pushes in RESP3} {
        set c [connect]
        $c -send subscribe a
        set type [expr {[resp3] ? "push" : "array"}]
        if {[resp3]} {
            assert_equal {subscribe a 1} [$c -push]
        } else {
            assert_equal {array {{bulk subscribe} {bulk a} {integer 1}}} [$c -readtyped]
        }
        r publish a text
        if {[resp3]} {
            assert_equal {message a text} [$c -push]
        } else {
            assert_equal {array {{bulk message} {bulk a} {bulk text}}} [$c -readtyped]
        }
    }

    test {PUBLISH counts a client once for its channel and once for each matching pattern} {
        set c [connect]
        confirmed $c 1 subscribe news.art
        confirmed $c 3 psubscribe news.* *.art n?ws.sport
        assert_equal 3 [r publish news.art x]
        assert_equal {{message news.art x}} [list [$c -message]]
        assert_equal {{pmessage *.art news.art x} {pmessage news.* news.art x}} [lsort [list [$c -message] [$c -message]]]
        assert_equal 2 [r publish news.sport y]
        assert_equal 0 [r publish other z]
    }

    test {names and messages are binary, and may be empty} {
        set c [connect]
        confirmed $c 2 subscribe "" "\x00\r\n\xff"
        assert_equal 1 [r publish "" ""]
        assert_equal {message {} {}} [$c -message]
        assert_equal 1 [r publish "\x00\r\n\xff" "\xff\x00"]
        assert_equal [list message "\x00\r\n\xff" "\xff\x00"] [$c -message]
    }

    test {a database does not limit a message} {
        set c [connect]
        $c select 3
        confirmed $c 1 subscribe a
        r select 5
        assert_equal 1 [r publish a x]
        r select 9
        assert_equal {message a x} [$c -message]
    }

    test {a shard channel gets messages of SPUBLISH only, and patterns do not match it} {
        set c [connect]
        confirmed $c 1 ssubscribe a
        confirmed $c 1 psubscribe *
        assert_equal 1 [r spublish a shard]
        assert_equal {smessage a shard} [$c -message]
        assert_equal 1 [r publish a plain]
        assert_equal {pmessage * a plain} [$c -message]
    }

    test {a RESP2 session with subscriptions may use few commands only, until it has none} {
        set c [connect 2]
        confirmed $c 1 ssubscribe s
        assert_error "ERR Can't execute 'get': $refused" {$c get key}
        assert_error "ERR Can't execute 'client|id': $refused" {$c client id}
        assert_error "ERR Can't execute 'hello': $refused" {$c hello 3}
        assert_error "EXECABORT Transaction discarded because of: Can't execute 'exec': $refused" {$c exec}
        assert_equal {pong {}} [$c ping]
        assert_equal {pong text} [$c ping text]
        confirmed $c 1 sunsubscribe s
        assert_equal PONG [$c ping]
        assert_equal {} [$c get key]
    }

    test {a RESP3 session with subscriptions may use every command, until HELLO 2} {
        set c [connect 3]
        confirmed $c 1 subscribe a
        assert_equal OK [$c set key value]
        assert_equal PONG [$c ping]
        assert_equal text [$c ping text]
        $c hello 2
        assert_error "ERR Can't execute 'get': $refused" {$c get key}
    }

    test {a publisher that subscribed itself gets the reply first, then the message} {
        wait_for_condition 100 20 {[r pubsub numsub a] eq {a 0}} ;# the clients of other tests are closed
        set s [raw_connect]
        raw_send $s "HELLO 3\r\n"
        raw_reply $s
        raw_send $s "SUBSCRIBE a\r\n"
        assert_equal ">3\r\n\$9\r\nsubscribe\r\n\$1\r\na\r\n:1\r\n" [raw_read $s 30]
        raw_send $s "PUBLISH a x\r\n"
        assert_equal ":1\r\n>3\r\n\$7\r\nmessage\r\n\$1\r\na\r\n\$1\r\nx\r\n" [raw_read $s 35]
        raw_send $s "MULTI\r\nPUBLISH a y\r\nPUBLISH a z\r\nEXEC\r\n"
        set replies "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n"
        append replies ">3\r\n\$7\r\nmessage\r\n\$1\r\na\r\n\$1\r\ny\r\n>3\r\n\$7\r\nmessage\r\n\$1\r\na\r\n\$1\r\nz\r\n"
        assert_equal $replies [raw_read $s [string length $replies]]
    }

    test {in a transaction the first confirmation is the element of EXEC's array, others follow it} {
        set s [raw_connect]
        raw_send $s "MULTI\r\nSUBSCRIBE a b\r\nECHO e\r\nEXEC\r\n"
        set expected "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*3\r\n\$9\r\nsubscribe\r\n\$1\r\na\r\n:1\r\n\$1\r\ne\r\n"
        append expected "*3\r\n\$9\r\nsubscribe\r\n\$1\r\nb\r\n:2\r\n"
        assert_equal $expected [raw_read $s [string length $expected]]
    }

    test {SSUBSCRIBE is refused in a transaction} {
        set c [connect]
        $c multi
        $c ssubscribe s
        assert_equal [list {error {ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client}}] [lindex [$c -typed exec] 1]
        assert_equal PONG [$c ping]
    }

    test {CLIENT REPLY OFF and SKIP suppress neither confirmations nor messages} {
        set c [connect]
        $c -send client reply off
        assert_equal {{subscribe a 1}} [confirmed $c 1 subscribe a]
        r publish a x
        assert_equal {message a x} [$c -message]
        assert_equal {{unsubscribe a 0}} [confirmed $c 1 unsubscribe a]
        $c client reply on
        $c -send client reply skip
        assert_equal {{subscribe b 1}} [confirmed $c 1 subscribe b]
    }

    test {RESET and the end of the connection drop all subscriptions} {
        wait_for_condition 100 20 {[r pubsub channels] eq {}} ;# connections of the tests before have ended
        set c [connect]
        confirmed $c 2 subscribe a b
        confirmed $c 1 psubscribe p*
        confirmed $c 1 ssubscribe s
        assert_equal {a 1 b 1} [r pubsub numsub a b]
        assert_equal RESET [$c reset]
        assert_equal {a 0 b 0} [r pubsub numsub a b]
        assert_equal {} [r pubsub channels]
        assert_equal 0 [r pubsub numpat]
        assert_equal {} [r pubsub shardchannels]
        assert_equal PONG [$c ping]
        set c [connect]
        confirmed $c 1 subscribe a
        $c -close
        wait_for_condition 100 20 {[r pubsub channels] eq {}}
        assert_equal 0 [info_field pubsub_clients]
    }

    test {PUBSUB lists and counts channels, patterns and shard channels} {
        set c [connect]
        set d [connect]
        confirmed $c 3 subscribe a1 a2 b
        confirmed $d 1 subscribe a1
        confirmed $c 2 psubscribe p* q*
        confirmed $d 1 psubscribe p*
        confirmed $c 1 ssubscribe s
        assert_equal {a1 a2} [lsort [r pubsub channels a*]]
        assert_equal {a1 a2 b} [lsort [r pubsub channels]]
        assert_equal {a1 2 none 0 a1 2} [r pubsub numsub a1 none a1]
        assert_equal {} [r pubsub numsub]
        assert_equal 2 [r pubsub numpat]
        assert_equal s [r pubsub shardchannels]
        assert_equal {s 1 a1 0} [r pubsub shardnumsub s a1]
        assert_equal {3 2 1 2} [list [info_field pubsub_channels] [info_field pubsub_patterns] \
            [info_field pubsubshard_channels] [info_field pubsub_clients]]
    }

    test {the channel with the empty name matches only the empty pattern} {
        set c [connect]
        set d [connect]
        confirmed $c 1 subscribe {}
        confirmed $c 1 ssubscribe {}
        confirmed $d 2 psubscribe * **
        foreach subcommand {channels shardchannels} {
            assert_equal {{}} [r pubsub $subcommand]
            assert_equal {{}} [r pubsub $subcommand {}]
            assert_equal {} [r pubsub $subcommand *]
            assert_equal {} [r pubsub $subcommand **]
        }
        assert_equal 1 [r publish {} message]
    }

    test {PUBSUB refuses unknown and malformed subcommands} {
        assert_error "ERR wrong number of arguments for 'pubsub' command" {r pubsub}
        assert_error "ERR unknown subcommand 'FOO'. Try PUBSUB HELP." {r pubsub FOO}
        assert_error "ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP." {r pubsub CHANNELS a b}
        assert_error "ERR wrong number of arguments for 'pubsub|numpat' command" {r pubsub numpat x}
        assert_error "ERR wrong number of arguments for 'subscribe' command" {r subscribe}
        assert_match {PUBSUB <subcommand>*} [lindex [r pubsub help] 0]
    }

    test {CLIENT LIST shows the subscriptions, and CLIENT KILL TYPE pubsub closes those who have some} {
        set c [connect]
        $c client setname listener
        confirmed $c 2 subscribe a b
        confirmed $c 1 psubscribe p*
        confirmed $c 3 ssubscribe s t u
        assert_equal {2 1 3 P} [list [client_field listener sub] [client_field listener psub] [client_field listener ssub] [client_field listener flags]]
        assert_equal 1 [r client kill type pubsub]
        $c -closed
        wait_for_condition 100 20 {[r pubsub channels] eq {}}
    }

    test {a message to many subscribers, some of which leave and join meanwhile, reaches those of its time once} {
        set clients {}
        for {set i 0} {$i < 40} {incr i} {
            set c [connect]
            confirmed $c 1 subscribe many
            lappend clients $c
        }
        for {set round 0} {$round < 5} {incr round} {
            assert_equal 40 [r publish many $round]
            set leaver [lindex $clients [random_below 40]]
            $leaver -send unsubscribe many
            $leaver -send subscribe many
            while {[set message [$leaver -message]] ne {subscribe many 1}} {
                if {[lindex $message 0] eq "message"} {lappend got($leaver) [lindex $message 2]}
            }
        }
        assert_equal 40 [r publish many end]
        foreach c $clients {
            while {[set message [$c -message]] ne {message many end}} {lappend got($c) [lindex $message 2]}
            assert_equal {0 1 2 3 4} $got($c)
        }
    }

    test {a message that follows UNSUBSCRIBE's confirmation does not arrive, one that precedes it does} {
        set clients {}
        for {set i 0} {$i < 10} {incr i} {
            set c [connect]
            confirmed $c 1 subscribe many
            lappend clients $c
        }
        r publish many before
        set c [lindex $clients end]
        assert_equal {{message many before} {unsubscribe many 0}} [confirmed $c 2 unsubscribe many]
        assert_equal 9 [r publish many after]
        assert_equal PONG [$c ping]
        foreach c [lrange $clients 0 end-1] {
            assert_equal {{message many before} {message many after}} [list [$c -message] [$c -message]]
        }
    }

    test {thousands of subscriptions of one client do not count from the moment it leaves} {
        set c [connect]
        set names {}
        for {set i 0} {$i < 5000} {incr i} {lappend names chan$i}
        confirmed $c 5000 subscribe {*}$names
        confirmed $c 1 psubscribe chan*
        assert_equal 2 [r publish chan7 x]
        assert_equal 5000 [info_field pubsub_channels]
        $c -send reset
        assert_equal {message chan7 x} [$c -message]
        assert_equal {pmessage chan* chan7 x} [$c -message]
        assert_equal RESET [$c -read]
        assert_equal 0 [r publish chan7 x]
        assert_equal {chan7 0} [r pubsub numsub chan7]
        assert_equal {} [r pubsub channels]
        wait_for_condition 100 20 {[info_field pubsub_channels] == 0}
        set c [connect]
        assert_equal {{subscribe chan7 1}} [confirmed $c 1 subscribe chan7]
        assert_equal 1 [r publish chan7 y]
        assert_equal {message chan7 y} [$c -message]
    }

    test {patterns are found by their literal prefix, with escapes, classes and none} {
        set c [connect]
        set patterns {* a* ab* abc {a\*b} {a[bc]c} ?bc {[a]bc} {\abc} x* abcd* *c}
        confirmed $c [llength $patterns] psubscribe {*}$patterns
        foreach channel {abc ab a* a*b acc xyz "" abcd} {
            set expected {}
            foreach pattern $patterns {
                if {$channel ne "" && [string match $pattern $channel]} {lappend expected [list pmessage $pattern $channel m]}
            }
            assert_equal [llength $expected] [r publish $channel m]
            set got {}
            foreach message $expected {lappend got [$c -message]}
            assert_equal [lsort $expected] [lsort $got]
        }
        foreach pattern $patterns {confirmed $c 1 punsubscribe $pattern}
        assert_equal 0 [r publish abc m]
    }

    test {long literal prefixes match by the whole pattern} {
        set c [connect]
        set long [string repeat p 70]
        confirmed $c 3 psubscribe ${long}a* ${long}b* ${long}
        assert_equal 1 [r publish ${long}ax m]
        assert_equal "${long}a*" [lindex [$c -message] 1]
        assert_equal 0 [r publish ${long}c m]
        assert_equal 1 [r publish $long m]
        assert_equal $long [lindex [$c -message] 1]
    }

    test {a pattern with many stars is compared in bounded time} {
        set c [connect]
        confirmed $c 1 psubscribe [string repeat *a 500]b
        assert_equal 0 [r publish [string repeat a 5000] m]
        assert_equal 1 [r publish [string repeat a 5000]b m]
    }

    test {PUBLISH in a transaction sends at execution, and not if it is discarded} {
        set c [connect]
        confirmed $c 1 subscribe a
        r multi
        r publish a dropped
        r discard
        r multi
        r publish a sent
        assert_equal 1 [r exec]
        assert_equal {message a sent} [$c -message]
    }

    test {a blocked RESP3 session receives messages} {
        set c [connect 3]
        confirmed $c 1 subscribe a
        r select 9
        $c select 9
        $c -send blpop list 0
        wait_for_condition 100 20 {[info_field blocked_clients] == 1}
        r publish a x
        assert_equal {message a x} [$c -push]
        r rpush list e
        assert_equal {list e} [$c -read]
    }
}

start_server {tags {pubsub} overrides {client-output-buffer-limit {pubsub 1000000 0 0}}} {
    foreach {size what} {1000 short 50000 long} {
        test "a subscriber that does not read is closed at its limit, also with $what messages" {
            set s [raw_connect]
            raw_send $s "SUBSCRIBE slow\r\n"
            raw_read $s 33
            set before [info_field client_output_buffer_limit_disconnections]
            set message [string repeat x $size]
            # The socket buffers of the kernel are filled first.
            wait_for_condition 200000 0 {[r publish slow $message] == 0}
            assert_equal [expr {$before + 1}] [info_field client_output_buffer_limit_disconnections]
            assert_match {*scheduled to be closed ASAP for overcoming of output buffer limits*} [server_log]
        }
    }
}

start_server {tags {pubsub cluster} overrides {cluster-enabled yes}} {
    test {shard channels obey the slot rules of a cluster} {
        r cluster addslotsrange 0 16383
        wait_for_condition 500 20 {[string match *cluster_state:ok* [r cluster info]]}
        set c [connect]
        assert_error "CROSSSLOT Keys in request don't hash to the same slot" {$c ssubscribe a b}
        assert_equal {{ssubscribe {{t}a} 1} {ssubscribe {{t}b} 2}} [confirmed $c 2 ssubscribe "{t}a" "{t}b"]
        confirmed $c 1 ssubscribe other
        confirmed $c 1 subscribe plain
        assert_equal 1 [r spublish "{t}a" m]
        assert_equal {smessage {{t}a} m} [$c -message]
        assert_equal 1 [r publish plain m]
        assert_equal {message plain m} [$c -message]
    }

    test {the loss of a slot ends the subscriptions of its shard channels} {
        set c [connect 2]
        confirmed $c 2 ssubscribe "{t}a" "{t}b"
        set slot [r cluster keyslot t]
        r cluster delslots $slot
        lassign [list [$c -message] [$c -message]] first second
        assert_equal {1 0} [list [lindex $first 2] [lindex $second 2]]
        assert_equal {{sunsubscribe {{t}a}} {sunsubscribe {{t}b}}} [lsort [list [lrange $first 0 1] [lrange $second 0 1]]]
        assert_equal PONG [$c ping]
        assert_equal {} [r pubsub shardchannels]
        assert_error "CLUSTERDOWN Hash slot not served" {$c ssubscribe "{t}a"}
        assert_error "CLUSTERDOWN Hash slot not served" {$c spublish "{t}a" m}
        assert_equal 0 [r publish "{t}a" m]
        r cluster addslots $slot
        wait_for_condition 500 20 {[string match *cluster_state:ok* [r cluster info]]}
    }
}
