# SPDX-License-Identifier: BSD-3-Clause
#
# cluster-gateway-port: clients that know nothing of clusters see one server with all keys.

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef cluster-databases 4}}} {
    foreach i {0 1} {open_gateway $i}

    test {the gateway looks like a standalone server} {
        set c [gateway]
        set hello [$c hello]
        assert_equal standalone [dict get $hello mode]
        assert_match "*server_mode:standalone\r\n*" [$c info server]
        assert_match "*cluster_enabled:0\r\n*" [$c info]
        assert_match "*server_mode:cluster\r\n*" [r info server]
        foreach command {{cluster slots} {cluster info} readonly readwrite asking {clusterscan 0}} {
            assert_error "ERR This instance has cluster support disabled" {$c {*}$command}
        }
        assert_equal PONG [$c ping]
        assert_error "ERR unknown command 'nothing'*" {$c nothing}
        assert_error "ERR wrong number of arguments for 'get' command" {$c get}
    }

    test {a command on one key is executed by the node that has it} {
        set c [gateway]
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i]
            assert_equal OK [$c set $key value$i]
            assert_equal value$i [r -$i get $key]
            assert_equal value$i [$c get $key]
            assert_error "WRONGTYPE *" {$c lpush $key x}
            $c hset h$key a 1 b 2
            assert_equal {a 1 b 2} [$c hgetall h$key]
        }
        assert_equal {} [$c get missing]
        assert_equal 1 [gateway_field links_in 1]
    }

    test {replies have the protocol of the client, whatever others use} {
        set two [gateway 0 2]
        set three [gateway 0 3]
        set key [key_of 1 h]
        $two del $key
        $two hset $key field value
        for {set i 0} {$i < 3} {incr i} {
            assert_equal {array {{bulk field} {bulk value}}} [$two -typed hgetall $key]
            assert_equal {map {{bulk field} {bulk value}}} [$three -typed hgetall $key]
        }
    }

    test {databases are those of the client} {
        set one [gateway]
        set other [gateway]
        set key [key_of 1 db]
        $other select 3
        $one set $key 0
        $other set $key 3
        assert_equal {0 3} [list [$one get $key] [$other get $key]]
        $other flushdb
        assert_equal {0 {}} [list [$one get $key] [$other get $key]]
        assert_error "ERR DB index is out of range" {$other select 4}
    }

    test {replies of a pipeline come in its order, wherever they are from} {
        set c [gateway]
        set expected {}
        set count [scaled 2000]
        for {set i 0} {$i < $count} {incr i} {
            switch [random_below 7] {
                0 {$c -send ping m$i; lappend expected m$i}
                1 {$c -send nothing; lappend expected error}
                2 {$c -send set key$i; lappend expected error}
                3 {$c -send echo [string repeat x 3000]; lappend expected [string repeat x 3000]}
                4 {$c -send mget key$i key[expr {$i + 1}] none; lappend expected {{} {} {}}}
                default {$c -send setrange p$i 0 v$i; lappend expected [string length v$i]}
            }
        }
        foreach wanted $expected {
            if {[catch {$c -read} reply]} {set reply error}
            assert_equal $wanted $reply
        }
        assert_equal [$c get p[expr {$count - 1}]] [expr {[lindex $expected end] in {2 3 4 5 6} ? "v[expr {$count - 1}]" : ""}]
    }

    test {later requests of a client see what earlier ones did, on each node} {
        set c [gateway]
        $c del a b c d e f
        for {set i 0} {$i < [scaled 500]} {incr i} {
            foreach key {a b c d e f} {$c -send incr $key}
        }
        for {set i 1} {$i <= [scaled 500]} {incr i} {
            foreach key {a b c d e f} {assert_equal $i [$c -read]}
        }
    }

    test {CLIENT REPLY holds for replies of other nodes, too} {
        set s [raw_gateway]
        set key [key_of 1]
        raw_send $s "client reply skip\r\nset $key 1\r\nincr $key\r\nclient reply off\r\nincr $key\r\nclient reply on\r\nincr $key\r\nping\r\n"
        assert_equal {:2 +OK :4 +PONG} [list [raw_line $s] [raw_line $s] [raw_line $s] [raw_line $s]]
        raw_close $s
    }

    test {commands on several keys are split, and their replies merged} {
        set c [gateway]
        $c flushall
        assert_equal OK [$c mset a 1 b 2 c 3 d 4 e 5 f 6]
        assert_equal {1 {} 2 3 {} 4 5 6 1} [$c mget a none b c nope d e f a]
        assert_equal 7 [$c exists a b c d e f a none]
        assert_equal 2 [$c touch a b none]
        assert_equal 2 [$c del a b none]
        assert_equal 4 [$c unlink c d e f]
        assert_error "ERR wrong number of arguments for 'mset' command" {$c mset a 1 b 2 c}
        assert_equal {} [$c keys *]
        # A value of another type is null, as in a standalone server.
        $c lpush [key_of 2 l] x
        assert_equal {{} {}} [$c mget [key_of 2 l] [key_of 0 l]]
        foreach command {{msetnx a 1 b 2} {rename a b} {sunion a b} {copy a b}} {
            assert_error "CROSSSLOT *hash tag*" {$c {*}$command}
        }
        assert_equal 1 [$c msetnx "{t}a" 1 "{t}b" 2]
    }

    test {commands on all keys are executed by all primaries} {
        set c [gateway]
        $c flushall
        assert_equal {} [$c randomkey]
        for {set i 0} {$i < 30} {incr i} {$c set key$i $i}
        assert_equal 30 [$c dbsize]
        for {set i 0} {$i < 3} {incr i} {assert {[r -$i dbsize] < 30}}
        assert_equal [lsort [lmap n {0 1 2 3 4 5 6 7 8 9} {string cat key $n}]] [lsort [$c keys {key?}]]
        assert_match key* [$c randomkey]
        set sha [$c script load {return redis.call('get', KEYS[1])}]
        assert_equal {1 0} [$c script exists $sha [string repeat 0 40]]
        for {set i 0} {$i < 3} {incr i} {
            assert_equal {1} [r -$i script exists $sha]
            assert_equal {} [$c evalsha $sha 1 [key_of $i none]]
        }
        r -2 script flush
        assert_equal {0} [$c script exists $sha]
        $c function load "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('incr', keys\[1\]) end)"
        for {set i 0} {$i < 3} {incr i} {assert_equal 1 [$c fcall f 1 [key_of $i counter]]}
        assert_equal OK [$c function flush]
        assert_equal OK [$c flushall]
        for {set i 0} {$i < 3} {incr i} {assert_equal 0 [r -$i dbsize]}
    }

    test {SCAN returns the keys of all nodes, also while slots move and with changing entries} {
        proc scan_all {options} {
            set cursor 0
            set found {}
            for {set n 0} {$n < 20000} {incr n} {
                lassign [[expr {$n % 50 == 49 ? "::scan_b" : "::scan_a"}] scan $cursor {*}$options] cursor keys
                lappend found {*}$keys
                if {[info exists ::scan_step]} {uplevel #0 $::scan_step}
                if {$cursor eq "0"} {return [lsort -unique $found]}
            }
            fail "the scan does not end"
        }
        interp alias {} ::scan_a {} [gateway 0]
        interp alias {} ::scan_b {} [gateway 1]
        set c [gateway]
        $c flushall
        assert_equal {0 {}} [list {*}[scan_all {}] 0 {}]
        set expected {}
        for {set i 0} {$i < 300} {incr i} {$c set key$i $i; lappend expected key$i}
        for {set i 0} {$i < 200} {incr i} {$c set "{big}$i" $i; lappend expected "{big}$i"}
        set expected [lsort $expected]
        foreach options {{} {count 3} {count 1000} {match * type string}} {assert_equal $expected [scan_all $options]}
        assert_equal [lsort [lsearch -all -inline $expected key?]] [scan_all {match key?}]
        assert_equal {} [scan_all {type list}]
        # {big} goes around while it is scanned.
        set slot [r cluster keyslot "{big}"]
        set ::scan_owner [cluster_owner_of $slot]
        set ::scan_count 0
        set ::scan_step "
            if {\[incr ::scan_count\] % 40 == 0 && \$::scan_count < 400} {
                set next \[expr {(\$::scan_owner + 1) % 3}\]
                move_slot $slot \$::scan_owner \$next
                set ::scan_owner \$next
            }"
        assert_equal $expected [scan_all {count 5}]
        unset ::scan_step
        cluster_wait_agree
        assert_error "ERR invalid cursor" {$c scan x}
        assert_error "ERR syntax error" {$c scan 0 nothing}
        $c multi
        assert_error "*not possible in a transaction*" {$c scan 0}
        $c discard
    }

    test {messages reach subscribers at any node} {
        set subscriber [gateway 1]
        $subscriber -send subscribe news
        assert_equal {subscribe news 1} [expr {[resp3] ? [$subscriber -push] : [$subscriber -read]}]
        set c [gateway 0]
        $c publish news text
        assert_equal {message news text} [lrange [$subscriber -message] 0 2]
    }

    test {a transaction on keys of one slot is executed by their node} {
        set c [gateway]
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i tx]
            $c del $key
            assert_equal OK [$c multi]
            assert_equal QUEUED [$c set $key 5]
            assert_equal QUEUED [$c ping]
            assert_equal QUEUED [$c incrby $key 2]
            assert_equal {OK PONG 7} [$c exec]
            $c multi
            $c lpush $key x
            assert_match "WRONGTYPE *" [lindex [$c exec] 0]
            $c multi
            $c get $key
            assert_equal OK [$c discard]
            assert_equal 7 [$c get $key]
            $c multi
            assert_error "ERR wrong number*" {$c get}
            $c get $key
            assert_error "EXECABORT *" {$c exec}
            assert_equal 7 [$c get $key]
        }
        assert_error "ERR EXEC without MULTI" {$c exec}
    }

    test {a transaction on several slots, or with what only this node can do, is refused} {
        set c [gateway]
        $c multi
        $c set [key_of 1 a] 1
        assert_error "CROSSSLOT *hash tag*" {$c set [key_of 2 a] 1}
        assert_error "EXECABORT *" {$c exec}
        $c multi
        assert_error "*not possible in a transaction*" {$c dbsize}
        assert_error "EXECABORT *" {$c exec}
        $c multi
        $c set [key_of 1 a] 1
        $c config get port
        assert_error "EXECABORT *'get'*" {$c exec}
        assert_equal {} [$c get [key_of 1 a]]
        assert_equal PONG [$c ping]
    }

    test {what the gateway does not support is refused with the reason} {
        set c [gateway]
        foreach command {{psync ? -1} {migrate h 1 k 0 1} {himport discardall} {replicaof no one}} {
            assert_error "ERR '*' is not supported by the gateway: *" {$c {*}$command}
        }
    }

    test {a command that blocks does so at the node that has the key, on a link of its own} {
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i list]
            set c [gateway]
            set other [gateway]
            assert_equal {} [$c blpop $key 0.01]
            $c -send blpop $key 0
            $c -send ping
            wait_for_condition 600 50 {[string match "*cmd=blpop*" [r -$i client list]]}
            # Others use the slot meanwhile.
            assert_equal 0 [$other exists $key]
            $other rpush $key x y
            assert_equal [list $key x] [$c -read]
            assert_equal PONG [$c -read]
            assert_equal {} [$c xread block 1 streams [key_of $i stream] 0]
            assert_equal {} [$c xread streams [key_of $i stream] 0]
            assert_equal 1 [$c llen $key]
        }
    }

    test {what a client waits for ends with the client} {
        set key [key_of 1 list]
        r -1 del $key
        foreach command {{blpop 0} {xread block 0 streams}} {
            set c [gateway]
            if {$command eq "blpop 0"} {$c -send blpop $key 0} else {$c -send xread block 0 streams [key_of 1 stream] 0}
            wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -1 info clients]]}
            $c -close
            wait_for_condition 600 50 {[regexp {blocked_clients:0} [r -1 info clients]]}
        }
        wait_for_condition 600 50 {[gateway_field calls_memory] == 0}
        set c [gateway]
        $c rpush $key kept
        assert_equal kept [$c lpop $key]
    }

    test {a wait goes on at the node that gets the slot} {
        set key [key_of 1 waits]
        set slot [r cluster keyslot $key]
        set c [gateway]
        $c -send blpop $key 0
        wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -1 info clients]]}
        move_slot $slot 1 2
        wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -2 info clients]]}
        r -2 rpush $key here
        assert_equal [list $key here] [$c -read]
        move_slot $slot 2 1
        cluster_wait_agree
    }

    test {WATCH holds for keys of one slot, at any node} {
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i watched]
            set c [gateway]
            set other [gateway]
            $c set $key 1
            assert_equal OK [$c watch $key]
            $c multi
            $c incr $key
            assert_equal {2} [$c exec]
            foreach last {exec discard unwatch} {
                assert_equal OK [$c watch $key "{$key}2"]
                assert_equal OK [$c watch $key]
                $other incr $key
                if {$last eq "unwatch"} {
                    $c unwatch
                    $c multi
                    $c incr $key
                    assert {[lindex [$c exec] 0] > 2}
                } elseif {$last eq "discard"} {
                    $c multi
                    $c discard
                    $c multi
                    $c incr $key
                    assert {[lindex [$c exec] 0] > 2}
                } else {
                    $c multi
                    $c incr $key
                    assert_equal {} [$c exec]
                }
            }
            # A change by the client itself counts, too, and a transaction without keys depends on it.
            $c watch $key
            $c incr $key
            $c multi
            $c ping
            assert_equal {} [$c exec]
            $c watch $key
            $c multi
            $c ping
            assert_equal PONG [$c exec]
            $c multi
            assert_error "ERR Command 'watch' not allowed inside a transaction" {$c watch $key}
            $c discard
        }
        assert_error "CROSSSLOT *" {$c watch [key_of 1] [key_of 2]}
        $c watch [key_of 1]
        assert_error "CROSSSLOT *" {$c watch [key_of 2]}
        $c multi
        $c set [key_of 2] 1
        assert_error "CROSSSLOT *" {$c exec}
        $c unwatch
        assert_equal PONG [$c ping]
    }

    test {watched keys of a slot that moves count as changed} {
        set key [key_of 1 watched]
        set slot [r cluster keyslot $key]
        set c [gateway]
        $c set $key 1
        $c watch $key
        move_slot $slot 1 2
        $c multi
        $c set $key 2
        assert_equal {} [$c exec]
        assert_equal 1 [$c get $key]
        $c watch $key
        $c multi
        $c set $key 3
        assert_equal OK [$c exec]
        move_slot $slot 2 1
        cluster_wait_agree
    }

    test {a protocol error is replied after what precedes it} {
        set s [raw_gateway]
        raw_send $s "set [key_of 1] 1\r\nincr [key_of 1]\r\n*x\r\n"
        assert_match "+OK\r\n:2\r\n-ERR Protocol error*" [raw_rest $s]
    }

    test {redirects are followed, also while a slot is being moved} {
        set c [gateway]
        set key [key_of 1 moving]
        set slot [r cluster keyslot $key]
        $c set $key here
        # The gateway's node does not know of the move: MOVED.
        r debug set-active-expire 1
        r -2 cluster setslot $slot importing [cluster_id 1]
        r -1 cluster setslot $slot migrating [cluster_id 2]
        assert_equal here [$c get $key]
        assert_equal OK [$c set "{$key}new" asked]
        assert_equal asked [$c get "{$key}new"]
        assert_equal 1 [r -2 cluster countkeysinslot $slot]
        r -1 migrate 127.0.0.1 [srv -2 port] $key 0 5000
        assert_equal here [$c get $key]
        r -2 cluster setslot $slot node [cluster_id 2]
        assert_equal here [$c get $key]
        r -1 cluster setslot $slot node [cluster_id 2]
        assert_equal here [$c get $key]
        $c multi
        $c append $key !
        $c get "{$key}new"
        assert_equal {5 asked} [$c exec]
        assert {[gateway_field calls_redirected] > 0}
        cluster_wait_agree
    }

    test {a pipeline on one key keeps its order while the slot goes around} {
        set c [gateway]
        set key [key_of 1 around]
        set slot [r cluster keyslot $key]
        $c del $key
        set sent 0
        set read 0
        foreach {from to} {1 2 2 0 0 1} {
            for {set i 0} {$i < 50} {incr i; incr sent} {$c -send incr $key}
            move_slot $slot $from $to
            for {set i 0} {$i < 50} {incr i; incr sent} {$c -send incr $key}
        }
        for {set i 1} {$i <= $sent} {incr i} {assert_equal $i [$c -read]}
        cluster_wait_agree
    }

    test {rights are those of the user, at the entry and at the node that has the key} {
        for {set i 0} {$i < 3} {incr i} {
            r -$i acl setuser alice on >pw ~alice:* +@all
        }
        set c [gateway]
        $c auth alice pw
        for {set i 0} {$i < 3} {incr i} {
            set key [key_of $i alice:]
            assert_equal OK [$c set $key 1]
            assert_error "NOPERM *" {$c set [key_of $i bob:] 1}
            # The script is known only where the key is.
            assert_error "*permission*" {$c eval "return redis.call('set', KEYS\[1\], 1) and redis.call('get', 'bob:' .. KEYS\[1\])" 1 $key}
        }
        # Rights that were taken at the owner alone.
        r -1 acl setuser alice -set
        assert_error "NOPERM *" {$c set [key_of 1 alice:] 2}
        assert_equal 1 [$c get [key_of 1 alice:]]
        r -1 acl setuser alice off
        # Another user's requests on the same link go on.
        set other [gateway]
        $other -send set [key_of 1] before
        $c -send get [key_of 1 alice:]
        $other -send get [key_of 1]
        assert_error "NOPERM The node that owns the key does not have this user" {$c -read}
        assert_equal {OK before} [list [$other -read] [$other -read]]
        for {set i 0} {$i < 3} {incr i} {r -$i acl deluser alice}
    }

    test {a user that is made at the owner after a first request is known there} {
        r acl setuser late on >pw ~* +@all
        set c [gateway]
        $c auth late pw
        foreach round {1 2} {assert_error "NOPERM The node that owns the key does not have this user" {$c get [key_of 1]}}
        r -1 acl setuser late on >other ~* +@all
        assert_equal OK [$c set [key_of 1] of_late]
        assert_equal of_late [$c get [key_of 1]]
        for {set i 0} {$i < 2} {incr i} {r -$i acl deluser late}
    }

    test {a read whose reply ends the link each time fails, other requests go on} {
        set c [gateway]
        $c set [key_of 1 big] [string repeat x 3000000]
        r -1 config set client-output-buffer-limit {normal 1000000 0 0}
        assert_error "ERR The connection to the node that has the keys has ended each time*" {$c get [key_of 1 big]}
        assert_equal 3000000 [$c strlen [key_of 1 big]]
        r -1 config set client-output-buffer-limit {normal 0 0 0}
        assert_equal 3000000 [string length [$c get [key_of 1 big]]]
        $c del [key_of 1 big]
    }

    test {nothing is read from a client while its owner takes no more} {
        set c [raw_gateway]
        set key [key_of 1]
        exec kill -STOP [srv -1 pid]
        try {
            raw_send $c [string repeat "GET $key\r\n" 4200]
            # More than the places of a client, and a command that waits for all before it.
            wait_for_condition 600 50 {[gateway_field held_clients] == 1}
            set other [raw_gateway]
            raw_send $other "GET $key\r\nDBSIZE\r\n"
            wait_for_condition 600 50 {[gateway_field held_clients] == 2}
            foreach s [list $c $other] {
                set pattern " addr=\[^ ]*:[lindex [chan configure $s -sockname] 2] \[^\n]* events= "
                wait_for_condition 600 50 {[regexp $pattern [r client list]]}
            }
        } finally {exec kill -CONT [srv -1 pid]}
        foreach s [list $c $other] {raw_send $s "QUIT\r\n"; assert_match "*+OK\r\n" [raw_rest $s]}
    }

    test {nobody can name a user without the secret} {
        set c [connect]
        assert_error "NOPERM *" {$c gateway as default 0 2}
        assert_error "NOPERM *" {$c gateway link garbage}
        set hello "RCsc\0\0\0\1[string repeat x 32]"
        assert_match "RCsc*" [$c gateway link $hello]
        assert_error "NOPERM *" {$c gateway link [string repeat y 32]}
        assert_error "NOPERM *" {$c gateway as default 0 2}
        assert_equal PONG [$c ping]
        # Its own bytes sent back prove nothing.
        set answer [$c gateway link $hello]
        assert_error "NOPERM *" {$c gateway link [string range $answer end-31 end]}
        assert_error "NOPERM *" {$c gateway as default 0 2}
    }

    test {a client that goes away leaves nothing behind} {
        for {set i 0} {$i < 20} {incr i} {
            set s [raw_gateway]
            raw_send $s [string repeat "debug sleep 0\r\nget [key_of 1]\r\nmget a b c d e f\r\n" 50]
            raw_close $s
        }
        wait_for_condition 500 20 {[gateway_field clients] == 0 && [gateway_field calls_memory] == 0}
        assert_equal 0 [gateway_field held_clients]
    }

    test {QUIT is replied after what precedes it} {
        set s [raw_gateway]
        raw_send $s "set [key_of 1] 1\r\nincr [key_of 1]\r\nquit\r\n"
        assert_equal "+OK\r\n:2\r\n+OK\r\n" [raw_rest $s]
    }

    test {the port can be closed while clients use it} {
        set c [gateway 1]
        r -1 config set cluster-gateway-port 0
        assert_equal OK [$c set [key_of 2] 1]
        assert {[catch {respConnect 127.0.0.1 $::gateway_port(1) 2}]}
    }
}

start_cluster {3 3 {tags {cluster needs:config tls:skip} overrides {cluster-gateway-retry-ms 60000 repl-diskless-sync-delay 0}}} {
    open_gateway 0

    test {without cluster-bus-secret scripts go to no other node} {
        set c [gateway]
        assert_equal OK [$c set [key_of 1] 1]
        assert_equal 1 [$c get [key_of 1]]
        assert_equal 1 [$c eval {return 1} 1 [key_of 0]]
        assert_error "ERR *cluster-bus-secret*" {$c eval {return 1} 1 [key_of 1]}
        set list [key_of 1 list]
        $c rpush $list 2 1
        assert_equal {1 2} [$c sort $list asc]
        foreach options {{by nosort} {get #}} {assert_error "ERR *cluster-bus-secret*" {$c sort $list {*}$options}}
        $c multi
        $c sort $list by nosort
        assert_error "ERR *cluster-bus-secret*" {$c exec}
        $c del $list
        assert_match {*proven=0*} [r info gateway]
    }

    test {the gateway of a replica sends everything to primaries} {
        open_gateway 3
        set c [gateway 3]
        for {set i 0} {$i < 3} {incr i} {
            assert_equal OK [$c set [key_of $i replica] $i]
            assert_equal $i [r -$i get [key_of $i replica]]
        }
        assert_equal {0 1 2} [$c mget [key_of 0 replica] [key_of 1 replica] [key_of 2 replica]]
        assert_equal 3 [$c del [key_of 0 replica] [key_of 1 replica] [key_of 2 replica]]
    }

    test {a node that ends with a write under way: the client is told, reads are repeated} {
        set c [gateway]
        set reader [gateway]
        set other [gateway]
        set key [key_of 1]
        $c set $key 1
        wait_for_condition 600 50 {[r -4 dbsize] > 0}
        send_signal STOP [srv -1 pid]
        $c -send set $key 2
        $reader -send get $key
        # They are on their way, and others do not wait.
        wait_for_condition 600 50 {[regexp {calls=2,output=0} [r info gateway]]}
        assert_equal OK [$other set [key_of 0] x]
        assert_equal OK [$other set [key_of 2] x]
        with_node 1 {kill_server}
        assert_error "UNKNOWN The command may have been executed*" {$c -read}
        # A replica takes over meanwhile.
        assert_equal 1 [$reader -read]
        assert_equal OK [$c set $key 3]
        assert_equal 3 [r -4 get $key]
    }

    test {a slot without a node: its commands wait, then fail} {
        r config set cluster-gateway-retry-ms 50
        r config set cluster-require-full-coverage no
        set c [gateway]
        set slot [r cluster keyslot [key_of 2]]
        foreach i {2 0} {r -$i cluster delslots $slot}
        assert_error "CLUSTERDOWN Hash slot not served" {$c get [key_of 2]}
        assert_equal OK [$c set [key_of 0] 1]
    }
}
