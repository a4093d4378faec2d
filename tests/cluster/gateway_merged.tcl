# SPDX-License-Identifier: BSD-3-Clause
#
# Commands of cluster-gateway-port that several nodes execute: sums, WAIT, prefixes, sets of several slots.

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef cluster-databases 2 enable-debug-command yes}}} {
    foreach i {0 1} {open_gateway $i}

    test {PUBLISH replies the number of receivers at all nodes} {
        set c [gateway]
        set all {}
        foreach {i command} {0 {subscribe news} 1 {subscribe news} 1 {psubscribe n*} 2 {psubscribe *s}} {
            set s [respConnect 127.0.0.1 [srv -$i port] $::resp_version]
            lappend ::test_clients $s
            lappend all $s
            $s -send {*}$command
            if {[resp3]} {$s -push} else {$s -read}
        }
        set count [scaled 100]
        for {set n 0} {$n < $count} {incr n} {$c -send publish news $n}
        for {set n 0} {$n < $count} {incr n} {assert_equal 4 [$c -read]}
        foreach s $all {
            for {set n 0} {$n < $count} {incr n} {assert_equal $n [lindex [$s -message] end]}
        }
        assert_equal 1 [$c publish no x]
        assert_equal x [lindex [[lindex $all 2] -message] end]
        $c multi
        $c set [key_of 1] 1
        $c publish news end
        assert_equal {OK 2} [$c exec]
        foreach s $all {assert_equal end [lindex [$s -message] end]}

        assert_equal {news 2 none 0} [$c pubsub numsub news none]
        assert_equal {} [$c pubsub numsub]
        assert_equal 2 [$c pubsub numpat]
        assert_equal news [$c pubsub channels]
        assert_equal {} [$c pubsub channels x*]
        assert_error "*" {$c pubsub channels a b}
        assert_equal {} [$c pubsub shardchannels]
        assert_equal {a 0} [$c pubsub shardnumsub a]
        # What a client has sent before is seen, in order.
        $c -send set [key_of 1] 1
        $c -send pubsub numpat
        $c -send get [key_of 1]
        assert_equal {OK 2 1} [list [$c -read] [$c -read] [$c -read]]
    }

    test {a node that does not answer does not count, and delays no other client} {
        set c [gateway]
        set other [gateway]
        set s [respConnect 127.0.0.1 [srv port] $::resp_version]
        lappend ::test_clients $s
        $s -send subscribe quiet
        if {[resp3]} {$s -push} else {$s -read}
        exec kill -STOP [srv -2 pid]
        try {
            $c -send publish quiet x
            assert_equal {quiet x} [lrange [$s -message] end-1 end]
            assert_equal OK [$other set [key_of 1] 1]
        } finally {exec kill -CONT [srv -2 pid]}
        assert_equal 1 [$c -read]
    }

    test {SSUBSCRIBE gets the messages of the nodes that have the slots, also after these have moved} {
        proc confirmed {client} {return [expr {[resp3] ? [$client -push] : [$client -read]}]}
        set c [gateway]
        set s [gateway]
        set t [gateway 1]
        lassign [list [key_of 0 ch] [key_of 1 ch] [key_of 2 ch]] a b d
        $s -send ssubscribe $a $b $d
        foreach channel [list $a $b $d] count {1 2 3} {assert_equal [list ssubscribe $channel $count] [confirmed $s]}
        $t -send ssubscribe $b
        assert_equal [list ssubscribe $b 1] [confirmed $t]
        foreach channel [list $a $b $d] i {0 1 2} {
            $c spublish $channel through
            r -$i spublish $channel direct
            assert_equal [list smessage $channel through] [$s -message]
            assert_equal [list smessage $channel direct] [$s -message]
        }
        assert_equal [list smessage $b through] [$t -message]
        assert_equal [list smessage $b direct] [$t -message]
        # To another node, to that of the connection, and back.
        set slot [r cluster keyslot $b]
        foreach {from to} {1 2 2 0 0 1} {
            move_slot $slot $from $to
            cluster_wait_agree
            # A client of this node or the link for those of the other one: two in any case.
            wait_for_condition 600 50 {[r -$to pubsub shardnumsub $b] eq [list $b 2]}
            $c spublish $b at$to
            foreach one [list $s $t] {assert_equal [list smessage $b at$to] [$one -message]}
        }
        $s -send sunsubscribe $b
        assert_equal [list sunsubscribe $b 2] [confirmed $s]
        $s -send sunsubscribe
        foreach n {1 0} {assert_equal $n [lindex [confirmed $s] 2]}
        $t -send sunsubscribe
        assert_equal [list sunsubscribe $b 0] [confirmed $t]
        assert_error "*not possible in a transaction*" {$c multi; $c ssubscribe x}
    }

    test {a subscription outlives the link to its node, and ends with its clients} {
        r config set cluster-gateway-retry-ms 100
        set s [gateway]
        set b [key_of 1 outlives]
        $s -send ssubscribe $b
        if {[resp3]} {$s -push} else {$s -read}
        wait_for_condition 600 50 {[r -1 pubsub shardnumsub $b] eq [list $b 1]}
        set old [lindex [regexp -inline {id=(\d+) } [r -1 client list type pubsub]] 1]
        r -1 client kill type pubsub
        wait_for_condition 600 50 {[regexp {id=(\d+) } [r -1 client list type pubsub] all new] && $new != $old && [r -1 pubsub shardnumsub $b] eq [list $b 1]}
        r -1 spublish $b again
        assert_equal [list smessage $b again] [$s -message]
        $s -close
        wait_for_condition 600 50 {[r -1 pubsub shardnumsub $b] eq [list $b 0]}
        r config set cluster-gateway-retry-ms 5000
    }

    test {channels that nobody needs any more are unsubscribed many at a time} {
        r config set cluster-gateway-retry-ms 100
        r -1 config resetstat
        set s [gateway]
        set channels {}
        for {set i 0} {$i < 300} {incr i} {lappend channels "[key_of 1 [string cat "{" [key_of 1 many] "}"]]:$i"}
        $s -send ssubscribe {*}$channels
        for {set i 0} {$i < 300} {incr i} {if {[resp3]} {$s -push} else {$s -read}}
        assert_equal 300 [llength [r -1 pubsub shardchannels *many*]]
        # Some are wanted again while the others end.
        $s -send sunsubscribe {*}$channels
        for {set i 0} {$i < 300} {incr i} {if {[resp3]} {$s -push} else {$s -read}}
        set few [lrange $channels 100 109]
        $s -send ssubscribe {*}$few
        for {set i 0} {$i < 10} {incr i} {if {[resp3]} {$s -push} else {$s -read}}
        wait_for_condition 600 50 {[llength [r -1 pubsub shardchannels *many*]] == 10}
        assert {[regexp {gateway\|unsubscribe:calls=(\d+)} [r -1 info commandstats] all calls]}
        assert_range $calls 5 60
        foreach channel $few {
            r -1 spublish $channel still
            assert_equal [list smessage $channel still] [$s -message]
        }
        $s -close
        wait_for_condition 600 50 {[r -1 pubsub shardchannels *many*] eq {}}
        r config set cluster-gateway-retry-ms 5000
    }

    test {SSUBSCRIBE that was refused while it waited does not shorten the wait of the next one} {
        r acl setuser alice on >pw ~* &* +@all
        set s [gateway]
        $s auth alice pw
        set channel [key_of 1 refused]
        r config set cluster-gateway-retry-ms 2000
        exec kill -STOP [srv -1 pid]
        try {
            set until [expr {[clock milliseconds] + 2100}]
            $s -send ssubscribe $channel
            wait_for_condition 600 5 {[gateway_field held_clients] == 1}
            r acl setuser alice -ssubscribe
            assert_error "NOPERM *" {$s -read}
            wait_for_condition 600 50 {[clock milliseconds] > $until}
            r config set cluster-gateway-retry-ms 60000
            r acl setuser alice +ssubscribe
            $s -send ssubscribe $channel
            wait_for_condition 600 5 {[gateway_field held_clients] == 1}
        } finally {exec kill -CONT [srv -1 pid]}
        assert_equal [list ssubscribe $channel 1] [if {[resp3]} {$s -push} else {$s -read}]
        $s -close
        r config set cluster-gateway-retry-ms 5000
        r acl deluser alice
    }

    test {a RESP2 client with subscriptions may only subscribe, also for keys of other nodes} {
        set s [gateway 0 2]
        $s -send subscribe news
        $s -read
        foreach command [list [list get [key_of 1]] [list set [key_of 0] 1] {dbsize} {info} {publish a b}] {
            assert_error "ERR Can't execute '[lindex $command 0]': only (P|S)SUBSCRIBE*" {$s {*}$command}
        }
        assert_equal {pong {}} [$s ping]
        $s -send ssubscribe [key_of 1]
        assert_equal [list ssubscribe [key_of 1] 1] [$s -read]
    }

    test {INFO has the sums of all primaries, and the section alone} {
        set c [gateway]
        $c flushall
        for {set i 0} {$i < 30} {incr i} {$c set key$i $i}
        for {set i 0} {$i < 6} {incr i} {$c set ttl$i $i ex 10000}
        $c select 1
        $c set [key_of 2] 1
        foreach sections {{} keyspace all {server keyspace}} {
            set text [$c info {*}$sections]
            assert_match "*\ndb0:keys=36,expires=6,*" $text
            assert_match "*\ndb1:keys=1,expires=0,*" $text
            assert_equal 1 [regexp -all {# Keyspace} $text]
        }
        assert_equal {} [$c info nothing]
        assert_equal 3 [regexp -all "gateway_shard\\d:id=\[0-9a-f\]{40},slots=\\d+,replicas=0,failed=0\r\n" [$c info gateway]]
        assert_equal 0 [regexp {# Keyspace} [$c info clients]]
        $c -send set [key_of 1] 1
        $c -send info keyspace
        $c -send ping
        assert_equal OK [$c -read]
        assert_match "*keys=*" [$c -read]
        assert_equal PONG [$c -read]
        $c flushall
        assert_equal "# Keyspace\r\n" [$c info keyspace]
    }

    test {DELPREFIX and COUNTPREFIX: on all primaries, with a hash tag at one} {
        set c [gateway]
        for {set i 0} {$i < 60} {incr i} {$c set pre:$i $i; $c set "{t}pre:$i" $i; $c set other:$i $i}
        assert_equal 60 [$c countprefix pre:]
        assert_equal 60 [$c countprefix "{t}pre:"]
        # 5 and 50 to 59.
        assert_equal 11 [$c countprefix "{t}pre:5"]
        assert_equal 11 [$c delprefix pre:5]
        assert_equal 49 [$c countprefix pre:]
        assert_equal 60 [$c delprefix "{t}pre:"]
        assert_equal 49 [$c delprefix pre:]
        assert_equal 60 [$c countprefix other:]
        assert_error "ERR the options of 'delprefix' need a prefix with a hash tag*" {$c delprefix other: count 10}
        assert_error "ERR the prefix is empty*" {$c delprefix ""}
        assert_equal 60 [$c dbsize]
        $c flushall
    }

    test {WAIT and WAITAOF reply the smallest number of any primary} {
        set c [gateway]
        $c set [key_of 1] 1
        assert_equal 0 [$c wait 0 0]
        assert_equal 0 [$c wait 1 10]
        assert_equal {0 0} [$c waitaof 0 0 0]
        assert_error "ERR*appendonly*" {$c waitaof 1 0 10}
        assert_error "ERR*" {$c wait x 0}
        assert_error "*not possible in a transaction*" {$c multi; $c wait 0 0}
        $c discard
        # It ends with the client.
        set s [raw_gateway]
        raw_send $s "WAIT 1 0\r\n"
        wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -1 info clients]] && [regexp {blocked_clients:1} [r info clients]]}
        raw_close $s
        wait_for_condition 600 50 {[regexp {blocked_clients:0} [r -1 info clients]] && [regexp {blocked_clients:0} [r info clients]]}
        wait_for_condition 600 50 {[gateway_field calls_memory] == 0}
    }

    test {a client that leaves is noticed also if requests follow the one that blocks} {
        set key [key_of 1 leaves]
        foreach text [list "BLPOP $key 0\r\nPING\r\n" "INFO\r\nWAIT 1 0\r\nPING\r\nPING\r\n" "GET $key\r\nBLPOP $key 0\r\nPING\r\n"] {
            for {set i 0} {$i < 5} {incr i} {
                set s [raw_gateway]
                raw_send $s $text
                wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -1 info clients]]}
                raw_close $s
                wait_for_condition 600 50 {[regexp {blocked_clients:0} [r -1 info clients]]}
            }
        }
    }

    test {scripts and functions: SHOW, KILL, LIST, DUMP and RESTORE} {
        set c [gateway]
        set script {return redis.call('get', KEYS[1])}
        $c eval $script 1 [key_of 1]
        set sha [r -1 script load $script]
        assert_equal $script [$c script show $sha]
        assert_error "NOSCRIPT *" {$c script show [string repeat 0 40]}
        assert_error "NOTBUSY *" {$c script kill}
        assert_error "NOTBUSY *" {$c function kill}
        set busy [gateway]
        r -1 config set busy-reply-threshold 1
        $busy -send eval {while true do end} 1 [key_of 1]
        set killer [gateway]
        wait_for_condition 600 50 {![catch {$killer script kill}]}
        assert_error "*kill*" {$busy -read}
        r -1 config set busy-reply-threshold 5000
        $c function load "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('incr', keys\[1\]) end)"
        assert_equal 1 [llength [$c function list]]
        set dump [$c function dump]
        $c function flush
        $c function restore $dump
        for {set i 0} {$i < 3} {incr i} {
            $c del [key_of $i n]
            assert_equal 1 [$c fcall f 1 [key_of $i n]]
        }
        $c function delete lib
        for {set i 0} {$i < 3} {incr i} {assert_equal {} [r -$i function list]}
    }

    test {MEMORY USAGE and OBJECT are asked at the owner} {
        set c [gateway]
        for {set i 0} {$i < 3} {incr i} {
            $c set [key_of $i] 12345
            assert_equal int [$c object encoding [key_of $i]]
            assert_range [$c memory usage [key_of $i]] 1 1000
            assert_range [$c object idletime [key_of $i]] 0 1000
        }
    }

    test {a part of a command that is executed here does not wait for jobs} {
        set big [key_of 0 big]
        for {set at 0} {$at < 5000} {incr at 500} {
            set members {}
            for {set i $at} {$i < $at + 500} {incr i} {lappend members member:$i}
            r sadd $big {*}$members
        }
        set slice [lindex [r config get command-slice-us] 1]
        r config set command-slice-us 10
        r debug pause-jobs 1
        set reader [respConnect 127.0.0.1 [srv port] $::resp_version]
        lappend ::test_clients $reader
        $reader -send smembers $big
        info_is jobs_running 1
        set c [gateway]
        $c set [key_of 1 other] 1
        assert_equal 2 [$c del $big [key_of 1 other]]
        assert_equal 5000 [llength [$reader -read]]
        r debug pause-jobs 0
        r config set command-slice-us $slice
    }

    test {without cluster-gateway-fetch commands on several slots name the hash tag} {
        set c [gateway]
        foreach command {{sunion a b} {zinter 2 a b} {pfcount a b} {lcs a b} {sintercard 2 a b}} {
            assert_error "CROSSSLOT *hash tag*" {$c {*}$command}
        }
    }

    test {with it, they run on the values of all nodes} {
        r config set cluster-gateway-fetch 1mb
        set c [gateway]
        lassign [list [key_of 0 s] [key_of 1 s] [key_of 2 s]] a b d
        $c sadd $a 1 2 3 4
        $c sadd $b 3 4 5
        $c sadd $d 4 6
        lassign [list [key_of 0 z] [key_of 1 z]] za zb
        $c zadd $za 1 x 2 y
        $c zadd $zb 10 y 20 z
        $c pfadd [key_of 0 p] 1 2 3
        $c pfadd [key_of 1 p] 3 4
        $c set [key_of 1 l] ohmytext
        $c set [key_of 2 l] mynewtext
        set size [$c dbsize]
        assert_equal {1 2 3 4 5 6} [lsort [$c sunion $a $b $d none]]
        assert_equal 4 [$c sinter $a $b $d]
        assert_equal {1 2} [lsort [$c sdiff $a $b $d]]
        assert_equal 1 [$c sintercard 3 $a $b $d]
        assert_equal {6 2} [list [$c sunioncard 3 $a $b $d] [$c sdiffcard 3 $a $b $d]]
        assert_equal {3 4 5} [lsort [$c sunion $b $b $b none]]
        assert_equal {} [$c sinter $a none]
        assert_equal {x y z} [$c zunion 2 $za $zb]
        assert_equal y [$c zinter 2 $za $zb]
        assert_equal x [$c zdiff 2 $za $zb]
        assert_equal 1 [$c zintercard 2 $za $zb]
        assert_equal {1 12 20} [lmap {n s} [concat {*}[$c zunion 2 $za $zb withscores]] {expr {int($s)}}]
        assert_equal 4 [$c pfcount [key_of 0 p] [key_of 1 p] [key_of 2 p]]
        assert_equal mytext [$c lcs [key_of 1 l] [key_of 2 l]]
        # Errors are those of the command.
        assert_error "WRONGTYPE *" {$c sunion $a $za}
        assert_error "ERR syntax error*" {$c zunion 2 $za $zb nothing}
        # Nothing of it has changed or copied the dataset.
        foreach key [list $a $b $d $za $zb] {assert_equal 1 [$c exists $key]}
        assert_equal $size [$c dbsize]
        # In its database.
        $c select 1
        assert_equal {} [$c sunion $a $b]
        $c sadd $b seven
        assert_equal seven [$c sunion $a $b]
        $c select 0
        # Of a pipeline, in its order.
        $c -send sadd $b 100
        $c -send sunion $b $d
        $c -send srem $b 100
        $c -send sunion $b $d
        assert_equal 1 [$c -read]
        assert_equal {100 3 4 5 6} [lsort [$c -read]]
        assert_equal 1 [$c -read]
        assert_equal {3 4 5 6} [lsort [$c -read]]
        # Writes are refused as before.
        assert_error "CROSSSLOT *" {$c sunionstore $a $a $b}
        $c multi
        assert_error "CROSSSLOT *" {$c sunion $a $b}
        assert_error "EXECABORT *" {$c exec}
    }

    test {values that are larger than the limit are not fetched; rights are those of the user} {
        set c [gateway]
        lassign [list [key_of 0 s] [key_of 1 big]] a b
        for {set i 0} {$i < 200} {incr i} {lappend members [string repeat $i 200]}
        $c sadd $b {*}$members
        r config set cluster-gateway-fetch 10000
        assert_error "CROSSSLOT *more than cluster-gateway-fetch*hash tag*" {$c sunion $a $b}
        r config set cluster-gateway-fetch 10mb
        assert_equal 204 [llength [$c sunion $a $b]]
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser alice on >pw ~* +sunion}
        $c auth alice pw
        assert_error "NOPERM *" {$c sunion $a $b}
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser alice +memory|usage +dump resetkeys ~s*}
        assert_error "NOPERM *" {$c sunion $a $b}
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser alice ~*}
        assert_equal 204 [llength [$c sunion $a $b]]
        for {set i 0} {$i < 3} {incr i} {r -$i acl deluser alice}
    }

    test {the keys of fetched values are tracked} {
        set c [gateway 0 3]
        $c client tracking on
        lassign [list [key_of 0 s] [key_of 1 s] [key_of 2 s]] a b d
        foreach {changed at} [list $a 0 $b 1 $d 2] {
            $c sunion $a $b $d
            r -$at sadd $changed new[incr n]
            set push [$c -push]
            assert {$changed in [lindex $push 1]}
        }
    }

    foreach options {{} BCAST} {
        test "a key that changes while the values of others are fetched is not cached: $options" {
            lassign [list [key_of 1 few] [key_of 2 large] [key_of 1 marker]] few large marker
            r -1 del $few
            for {set at 0} {$at < 20000} {incr at 500} {
                set members {}
                for {set i $at} {$i < $at + 500} {incr i} {lappend members $i}
                r -2 sadd $large x {*}$members
            }
            set s [raw_gateway]
            raw_send $s "HELLO 3\r\nCLIENT TRACKING ON $options\r\n"
            raw_reply $s
            assert_equal "+OK\r\n" [raw_reply $s]
            set next 0
            set writer [respConnect 127.0.0.1 [srv -1 port] $::resp_version]
            lappend ::test_clients $writer
            for {set round 0} {$round < [scaled 20]} {incr round} {
                raw_send $s "SINTERCARD 2 $few $large\r\n"
                for {set i 0} {$i < 50} {incr i} {$writer -send sadd $few [incr next]}
                for {set i 0} {$i < 50} {incr i} {$writer -read}
                while {[string index [set item [raw_reply $s]] 0] eq ">"} {}
                set cached [string trim $item ":\r\n"]
                # All that the node has sent.
                raw_send $s "GET $marker\r\n"
                while {[string index [set item [raw_reply $s]] 0] eq ">"} {if {[string match "*$few*" $item]} {set cached {}}}
                r -1 set $marker $round
                while {![string match "*$marker*" [set item [raw_reply $s]]]} {if {[string match "*$few*" $item]} {set cached {}}}
                if {[string match "*$few*" $item]} {set cached {}}
                assert {$cached in [list {} [r -1 scard $few]]}
            }
            raw_close $s
        }
    }

    test {values are fetched also while their slots move} {
        set c [gateway]
        lassign [list [key_of 0 m] [key_of 1 m] [key_of 2 m]] a b d
        $c sadd $a 1
        $c sadd $b 2
        $c sadd $d 3
        set slot [r cluster keyslot $b]
        foreach {from to} {1 2 2 0 0 1} {
            for {set i 0} {$i < 10} {incr i} {$c -send sunion $a $b $d}
            move_slot $slot $from $to
            for {set i 0} {$i < 10} {incr i} {assert_equal {1 2 3} [lsort [$c -read]]}
        }
        cluster_wait_agree
    }

    test {a request that is refused while its values are fetched leaves the next one alone} {
        lassign [list [key_of 0 m] [key_of 1 m] [key_of 1 plain]] a b plain
        [gateway] set $plain value
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser alice on >pw ~* +@all}
        set c [gateway]
        $c auth alice pw
        exec kill -STOP [srv -1 pid]
        try {
            $c -send sunion $a $b
            wait_for_condition 600 50 {[gateway_field held_clients] == 1}
            r acl setuser alice -sunion
            assert_error "NOPERM *" {$c -read}
            assert_equal PONG [$c ping]
            $c -send get $plain
        } finally {exec kill -CONT [srv -1 pid]}
        assert_equal value [$c -read]
        wait_for_condition 600 50 {[gateway_field calls_memory] == 0}
        for {set i 0} {$i < 3} {incr i} {r -$i acl deluser alice}
    }

    test {a client that leaves while values are fetched leaves nothing behind} {
        exec kill -STOP [srv -1 pid]
        try {
            set s [raw_gateway]
            raw_send $s "SUNION [key_of 0 m] [key_of 1 m]\r\n"
            wait_for_condition 600 50 {[gateway_field held_clients] == 1}
            r client kill addr 127.0.0.1:[lindex [chan configure $s -sockname] 2]
            wait_for_condition 600 50 {[gateway_field held_clients] == 0}
            raw_close $s
        } finally {exec kill -CONT [srv -1 pid]}
        wait_for_condition 600 50 {[gateway_field calls_memory] == 0}
        r config set cluster-gateway-fetch 0
    }
}

start_cluster {3 3 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef repl-diskless-sync-delay 0}}} {
    open_gateway 0

    test {WAIT waits for the replicas of all primaries} {
        set c [gateway]
        wait_for_condition 600 50 {[regexp {connected_slaves:1} [r info replication]] && [regexp {connected_slaves:1} [r -1 info replication]] && [regexp {connected_slaves:1} [r -2 info replication]]}
        for {set i 0} {$i < 3} {incr i} {$c set [key_of $i] 1}
        assert_equal 1 [$c wait 1 0]
        # A replica that stands still has not got the last change.
        exec kill -STOP [srv -4 pid]
        try {
            $c set [key_of 1] 2
            assert_equal 0 [$c wait 1 50]
            $c -send wait 1 0
            wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -1 info clients]]}
        } finally {exec kill -CONT [srv -4 pid]}
        assert_equal 1 [$c -read]
    }

    test {subscribers of replicas count, INFO counts keys of primaries once} {
        open_gateway 3
        set s [gateway 3]
        $s -send subscribe news
        if {[resp3]} {$s -push} else {$s -read}
        set c [gateway]
        assert_equal 1 [$c publish news x]
        assert_equal {news 1} [$c pubsub numsub news]
        set other [gateway 3]
        $c flushall
        for {set i 0} {$i < 30} {incr i} {$c set key$i $i}
        foreach one [list $c $other] {assert_match "*\ndb0:keys=30,*" [$one info keyspace]}
    }

    test {a change that replicas do not confirm in time ends the connection, though other replies are still to come} {
        set key [key_of 0 late]
        r config set replication-quorum-timeout 3600000
        r config set replication-quorum 1
        wait_for_condition 600 50 {![catch {r set $key [string repeat x 1000]}]}
        # The reply to GET is longer than the error, or shorter.
        foreach requests [list "append $key x\r\nget $key" "append $key x"] {
            set c [raw_gateway]
            foreach i {1 3} {send_signal STOP [srv -$i pid]}
            try {
                raw_send $c "$requests\r\nget [key_of 1]\r\n"
                wait_for_condition 600 50 {[regexp {calls=1,output=0} [r info gateway]]}
                r config set replication-quorum-timeout 100
                assert_match "-NOQUORUM Not confirmed by enough replicas in time.*\r\n" [raw_rest $c]
            } finally {foreach i {1 3} {send_signal CONT [srv -$i pid]}}
            wait_for_condition 600 50 {[r info gateway] ne "" && ![regexp {calls=[1-9]} [r info gateway]]}
            r config set replication-quorum-timeout 3600000
            wait_for_condition 600 50 {![catch {r append $key x}]}
            raw_close $c
        }
        r config set replication-quorum 0
    }

    test {commands for all primaries wait for the replica that takes over} {
        r config set cluster-gateway-retry-ms 60000
        set c [gateway]
        set keys [list [key_of 0] [key_of 1] [key_of 2]]
        foreach key $keys {$c set $key 1}
        wait_for_condition 600 50 {[r -4 dbsize] > 0}
        set before [$c dbsize]
        with_node 1 {kill_server}
        assert_equal $before [$c dbsize]
        assert_equal {} [lsort [$c keys none]]
        assert_equal OK [$c flushall]
        assert_equal 0 [$c dbsize]
        assert_equal 0 [r -4 dbsize]
        r config set cluster-gateway-retry-ms 5000
    }

    test {WAIT is not repeated at the replica that takes over, which cannot tell what was lost} {
        with_node 1 {continue_server}
        cluster_wait_role 1 slave
        wait_for_condition 600 50 {[regexp {connected_slaves:1.*state=online} [r -4 info replication]]}
        r config set cluster-gateway-retry-ms 60000
        set c [gateway]
        send_signal STOP [srv -1 pid]
        try {
            $c set [key_of 1] lost
            $c -send wait 1 0
            wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -4 info clients]]}
            with_node 4 {kill_server}
        } finally {send_signal CONT [srv -1 pid]}
        cluster_wait_role 1 master
        with_node 4 {continue_server}
        assert {[catch {$c -read} reply]}
        assert_match "*replica*" $reply
        r config set cluster-gateway-retry-ms 5000
    }
}

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef cluster-gateway-retry-ms 6000 repl-diskless-sync-delay 0}}} {
    open_gateway 0

    test {a primary that gives its last slot away and follows another: that one gets no command twice} {
        for {set i 0} {$i < 3} {incr i} {r -$i cluster delslotsrange 10922 16382}
        r -1 cluster addslotsrange 10922 16382
        cluster_wait_agree
        cluster_wait_ok
        set c [gateway]
        r -1 set [key_of 1] 1
        r -2 client pause 100000 write
        $c -send flushall
        wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -2 info clients]] && [r -1 dbsize] == 0}
        r -1 set [key_of 1] later
        # CLUSTER SETSLOT would wait for the end of the pause at the other one.
        r -1 cluster setslot 16383 importing [cluster_id 2]
        r -1 cluster setslot 16383 node [cluster_id 1]
        cluster_wait_role 2 slave
        wait_for_condition 600 50 {[regexp "[cluster_id 2] \[^\n\]* slave [cluster_id 1]" [r cluster nodes]]}
        r -2 client unpause
        assert_error "CLUSTERDOWN *" {$c -read}
        assert_equal later [r -1 get [key_of 1]]
    }
}

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef cluster-shared-functions yes}}} {
    open_gateway 0

    test {functions that the nodes share are loaded and deleted once, whatever comes first: the request or the change} {
        set c [gateway]
        set code "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('incr', keys\[1\]) end)"
        for {set round 1} {$round <= [scaled 40]} {incr round} {
            assert_equal lib [$c function load $code]
            for {set i 0} {$i < 3} {incr i} {assert_equal $round [$c fcall f 1 [key_of $i n]]}
            assert_error "ERR Library 'lib' already exists" {$c function load $code}
            assert_equal lib [$c function load replace $code]
            set dump [$c function dump]
            if {$round % 2} {
                assert_equal OK [$c function delete lib]
                assert_error "ERR Library not found" {$c function delete lib}
                assert_equal OK [$c function restore $dump]
            }
            assert_equal OK [$c function flush]
            for {set i 0} {$i < 3} {incr i} {assert_error "ERR Function not found" {$c fcall f 1 [key_of $i n]}}
        }
    }

    test {the error of a node that does not share functions is replied} {
        set c [gateway]
        set code "#!lua name=own\nredis.register_function('own', function() return 1 end)"
        r -2 config set cluster-shared-functions no
        r -2 function load $code
        wait_for_condition 600 50 {[catch {$c function load $code} reply] || [r function delete own] ne "OK"}
        assert_equal "ERR Library 'own' already exists" $reply
    }
}
