# SPDX-License-Identifier: BSD-3-Clause
#
# cluster-gateway-port: users that change, logs, limits, other kinds of nodes.

set secret 0123456789abcdef0123456789abcdef
proc link_lines {i} {return [lsearch -all -inline -regexp [split [r -$i client list] \n] { flags=[a-zA-Z]*l}]}

start_cluster [list 3 0 [list tags {cluster needs:config tls:skip} overrides [list cluster-bus-secret $secret cluster-databases 4]]] {
    open_gateway 0

    test {a user that is switched off at the owner is refused on the link that has named it, others are not} {
        for {set i 0} {$i < 2} {incr i} {r -$i acl setuser alice on >pw ~* &* +@all}
        set c [gateway]
        set other [gateway]
        $c auth alice pw
        set key [key_of 1]
        foreach round {1 2} {
            assert_equal OK [$c set $key $round]
            r -1 acl setuser alice off
            foreach again {1 2} {assert_error "NOPERM The node that owns the key does not have this user" {$c get $key}}
            assert_equal $round [$other get $key]
            assert_error "NOPERM The node*" {$c get $key}
            r -1 acl setuser alice on
            assert_equal $round [$c get $key]
            # Without a request meanwhile.
            r -1 acl setuser alice off
            r -1 acl setuser alice on
            assert_equal $round [$c get $key]
        }
        r -1 acl setuser alice -get
        assert_error "NOPERM User alice has no permissions to run the 'get' command" {$c get $key}
        r -1 acl setuser alice +get
        assert_equal 2 [$c get $key]
    }

    test {a user that is removed at the owner leaves the link, which goes on; it may come back} {
        set c [gateway]
        set other [gateway]
        $c auth alice pw
        set key [key_of 1]
        assert_equal OK [$c set $key 1]
        assert_equal 1 [llength [link_lines 1]]
        set link [lindex [link_lines 1] 0]
        assert_equal 1 [r -1 acl deluser alice]
        assert_error "NOPERM The node*" {$c set $key 2}
        assert_equal OK [$other set $key 3]
        assert_error "NOPERM The node*" {$c get $key}
        assert_equal [lindex $link 0] [lindex [lindex [link_lines 1] 0] 0]
        r -1 acl setuser alice on >pw ~* &* +@all
        assert_equal 3 [$c get $key]
        r -1 acl deluser alice
        r acl deluser alice
    }

    test {a change in slices whose user is removed is completed, and the client is not told that it was refused} {
        foreach i {0 1} {r -$i acl setuser carol on >pw ~* &* +@all}
        set c [gateway]
        $c auth carol pw
        set key [key_of 1 sliced]
        set members {}
        for {set i 0} {$i < 600} {incr i} {lappend members m:$i}
        assert_equal 601 [$c sadd $key more {*}$members]
        r -1 config set command-slice-us 10
        r -1 debug pause-jobs 1
        $c -send srem $key {*}$members
        wait_for_condition 600 50 {[string match "*\njobs_running:1\r*" [r -1 info stats]]}
        r -1 acl deluser carol
        assert_error "UNKNOWN The command may have been executed: its user was removed" {$c -read}
        assert_equal more [r -1 smembers $key]
        assert_error "NOPERM The node*" {$c get $key}
        # Another kind of job has changed nothing.
        foreach i {0 1} {r -$i acl setuser carol on >pw ~* &* +@all}
        r -1 debug pause-jobs 0
        assert_equal 600 [$c sadd $key {*}$members]
        r -1 debug pause-jobs 1
        $c -send sunionstore $key $key
        wait_for_condition 600 50 {[string match "*\njobs_running:1\r*" [r -1 info stats]]}
        r -1 acl deluser carol
        assert_error "NOPERM *" {$c -read}
        r -1 debug pause-jobs 0
        r -1 config set command-slice-us 500
        r acl deluser carol
    }

    test {of a long name of a client the owner is told the beginning} {
        set c [gateway]
        set name begin[string repeat x 100000]
        $c client setname $name
        assert_equal OK [$c set [key_of 1] 1]
        assert_equal 1 [$c get [key_of 1]]
        assert_equal $name [$c client getname]
        # A request whose client is logged, with the time that it takes.
        set before [lindex [r -1 config get slowlog-log-slower-than] 1]
        r -1 config set slowlog-log-slower-than 0
        r -1 slowlog reset
        $c get [key_of 1]
        r -1 config set slowlog-log-slower-than $before
        set names [lsearch -all -inline [lmap entry [r -1 slowlog get -1] {lindex $entry 5}] begin*]
        assert_equal 1024 [string length [lindex $names 0]]
        $c client setname {}
    }

    test {logs and CLIENT LIST of the owner name the client, its address and user} {
        for {set i 0} {$i < 2} {incr i} {r -$i acl setuser bob on >pw ~* &* +@all}
        set key [key_of 1 logged]
        set c [gateway]
        set other [gateway]
        $c auth bob pw
        $c client setname first
        set address [lindex [regexp -inline { addr=([^ ]+)} [$c client info]] 1]
        set other_address [lindex [regexp -inline { addr=([^ ]+)} [$other client info]] 1]
        assert_match "* flags=g *" [$c client info]
        r -1 config set slowlog-log-slower-than 0
        r -1 slowlog reset
        $c set $key 1
        $other set $key 2
        $c client setname second
        $c append $key 3
        $c multi
        $c strlen $key
        $c exec
        r -1 config set slowlog-log-slower-than -1
        foreach entry [r -1 slowlog get 100] {
            set words [lindex $entry 3]
            if {[lindex $words 1] eq $key} {dict set found [lindex $words 0],[lindex $words 2] [lrange $entry 4 5]}
        }
        assert_equal [list $address first] [dict get $found set,1]
        assert_equal [list $other_address {}] [dict get $found set,2]
        assert_equal [list $address second] [dict get $found append,3]
        assert_equal [list $address second] [dict get $found strlen,]
        assert_equal 1 [llength [link_lines 1]]
        assert_match "* user=bob * gateway-addr=$address gateway-name=second" [lindex [link_lines 1] 0]
        # The script fails there alone.
        r -1 acl log reset
        r -1 acl setuser bob resetkeys ~logged*
        assert_error * {$c eval {return redis.call('get', 'secret')} 1 $key}
        assert_match "*username bob*gateway-addr=$address gateway-name=second*" [r -1 acl log]
        # MONITOR.
        set s [raw_connect [srv -1 host] [srv -1 port]]
        raw_send $s "MONITOR\r\n"
        assert_equal +OK [raw_line $s]
        $c get $key
        $other get $key
        set lines {}
        while {[llength $lines] < 2} {
            set line [raw_line $s]
            if {[string match "*$key*" $line]} {lappend lines [lindex $line 2]}
        }
        assert_equal [list "$address\]" "$other_address\]"] $lines
        raw_close $s
        for {set i 0} {$i < 2} {incr i} {r -$i acl deluser bob}
    }

    test {nobody can name a client without the secret, or one that is no text} {
        set c [connect]
        assert_error "NOPERM *" {$c gateway for "127.0.0.1:1 name"}
        assert_equal PONG [$c ping]
    }

    test {a link that its node kills: reads are sent again, other requests go on over a new one} {
        set c [gateway]
        set key [key_of 1]
        $c set $key 1
        for {set round 0} {$round < 5} {incr round} {
            assert_equal 1 [r -1 client kill id [lindex [regexp -inline {id=(\d+)} [lindex [link_lines 1] 0]] 1]]
            assert_equal 1 [$c get $key]
        }
    }

    test {CLIENT PAUSE of the owner holds what is sent to it, CLIENT NO-EVICT is about this node} {
        set c [gateway]
        set other [gateway]
        assert_equal OK [$c client no-evict on]
        assert_match "* flags=eg *" [$c client info]
        $c set [key_of 1] 1
        r -1 client pause 100000 write
        $c -send set [key_of 1] 2
        wait_for_condition 600 50 {[regexp {paused_actions:write} [r -1 info clients]] && [regexp {calls=1,} [r info gateway]]}
        assert_equal OK [$other set [key_of 2] 1]
        assert_equal OK [$other set [key_of 0] 1]
        r -1 client unpause
        assert_equal OK [$c -read]
        assert_equal 2 [$c get [key_of 1]]
    }

    test {CLIENT PAUSE of the node of the connection holds commands that several nodes execute} {
        set c [gateway]
        lassign [list [key_of 0] [key_of 1]] a b
        set writes [list {flushdb OK} [list del $a $b 2] [list mset $a 1 $b 1 OK] {publish ch x 0}]
        set reads [list {dbsize 2} [list mget $a $b {1 1}] {randomkey *} {pubsub numpat 0} {info *} {script flush OK}]
        foreach line [concat $writes $reads] {
            $c flushdb
            $c mset $a 1 $b 1
            r client pause 100000 write
            $c -send {*}[lrange $line 0 end-1]
            if {$line in $writes} {
                wait_for_condition 600 50 {[regexp {blocked_clients:1} [r info clients]]}
                r client unpause
            }
            assert_match [lindex $line end] [$c -read]
            r client unpause
        }
        # CLIENT UNPAUSE would wait, too.
        foreach line [concat $writes $reads] {
            $c flushdb
            $c mset $a 1 $b 1
            r client pause 50 all
            assert_match [lindex $line end] [$c {*}[lrange $line 0 end-1]]
        }
    }

    test {a node without places for clients accepts the links of a gateway} {
        set c [gateway]
        # Its link is made anew when there is no place.
        $c set [key_of 1] 1
        set id [lindex [regexp -inline {id=(\d+)} [lindex [link_lines 1] 0]] 1]
        set most [lindex [r -1 config get maxclients] 1]
        r -1 config set maxclients 1
        r -1 client kill id $id
        # More requests than the trial of a connection admits to others, one of them after its time.
        for {set n 0} {$n < 50} {incr n} {assert_equal OK [$c set [key_of 1] $n]}
        assert_equal 49 [$c get [key_of 1]]
        assert_error *clients* {[respConnect [srv -1 host] [srv -1 port] 2] dbsize}
        r -1 config set maxclients $most
        assert_equal 49 [$c get [key_of 1]]
    }

    test {the time of a hop is an event of the latency monitor} {
        r config set latency-monitor-threshold 1
        r latency reset
        set c [gateway]
        send_signal STOP [srv -1 pid]
        try {
            $c -send get [key_of 1]
            wait_for_condition 600 50 {[regexp {calls=1,output=0} [r info gateway]]}
            set since [clock milliseconds]
            wait_for_condition 600 5 {[clock milliseconds] > $since + 5}
        } finally {send_signal CONT [srv -1 pid]}
        $c -read
        assert_match "*gateway-hop*" [r latency latest]
        r config set latency-monitor-threshold 0
    }

    test {one owner that stands still: requests of others, and of its own clients for other nodes, go on} {
        set stuck [gateway]
        send_signal STOP [srv -1 pid]
        try {
            $stuck -send get [key_of 1]
            wait_for_condition 600 50 {[regexp {calls=1,output=0} [r info gateway]]}
            set c [gateway]
            for {set n 0} {$n < [scaled 200]} {incr n} {
                assert_equal OK [$c set [key_of 2 still] $n]
                assert_equal $n [$c get [key_of 2 still]]
                assert_equal OK [$c mset [key_of 0 still] $n [key_of 2 still] $n]
            }
        } finally {send_signal CONT [srv -1 pid]}
        assert_equal 49 [$stuck -read]
    }
}

start_cluster [list 3 0 [list tags {cluster needs:config tls:skip} overrides [list cluster-bus-secret $secret enable-debug-command yes]]] {
    open_gateway 0

    test {a user that is removed at the owner while it runs something there: that ends, the link does not} {
        for {set i 0} {$i < 2} {incr i} {r -$i acl setuser alice on >pw ~* &* +@all}
        set c [gateway]
        set other [gateway]
        $c auth alice pw
        # The link may know that the user was removed, while the gateway does not.
        proc again {client} {catch {$client get [key_of 1]}}
        again $c
        set key [key_of 1]
        set big [key_of 1 big]
        for {set at 0} {$at < 5000} {incr at 500} {
            set members {}
            for {set i $at} {$i < $at + 500} {incr i} {lappend members member:$i}
            $c sadd $big {*}$members
        }
        proc ids {} {return [lsort [lmap line [link_lines 1] {lindex $line 0}]]}
        # A wait of a link of its own, and a job of the link that all share.
        $c -send blpop [key_of 1 list] 0
        wait_for_condition 600 50 {[regexp {blocked_clients:1} [r -1 info clients]]}
        set before [ids]
        set removed "NOPERM The user was removed while the command was executed"
        r -1 acl deluser alice
        assert_error $removed {$c -read}
        r -1 acl setuser alice on >pw ~* &* +@all
        again $c
        set slice [lindex [r -1 config get command-slice-us] 1]
        r -1 config set command-slice-us 1
        r -1 debug pause-jobs 1
        $c -send smembers $big
        with_node 1 {info_is jobs_running 1}
        $other -send set $key 1
        $c -send get $key
        r -1 acl deluser alice
        assert_error $removed {$c -read}
        assert_error "NOPERM The node*" {$c -read}
        assert_equal OK [$other -read]
        r -1 debug pause-jobs 0
        r -1 config set command-slice-us $slice
        # The queue of a transaction.
        r -1 acl setuser alice on >pw ~* &* +@all
        again $c
        assert_equal 1 [$c get $key]
        $c multi
        $c incr $key
        r -1 acl deluser alice
        assert_error "EXECABORT *does not have this user*" {$c exec}
        assert_equal 1 [$other get $key]
        r -1 acl setuser alice on >pw ~* &* +@all
        again $c
        assert_equal 2 [$c incr $key]
        assert_equal 5000 [llength [$c smembers $big]]
        assert_equal $before [ids]
        for {set i 0} {$i < 2} {incr i} {r -$i acl deluser alice}
    }

    test {what a node asks for itself needs no user at the other node} {
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser carol on >pw ~* &* +@all}
        for {set i 1} {$i < 3} {incr i} {r -$i acl setuser default off resetkeys resetchannels -@all +debug +config +acl +client +spublish &x}
        set c [gateway 0 3]
        set s [gateway 0 3]
        foreach one [list $c $s] {$one auth carol pw}
        set channel [key_of 1 ch]
        $s -send ssubscribe $channel
        assert_equal [list ssubscribe $channel 1] [$s -push]
        $c spublish $channel text
        assert_equal [list smessage $channel text] [$s -message]
        assert_equal OK [$c client tracking on bcast prefix [key_of 2 p]]
        $s set [key_of 2 p] 1
        assert_equal [list invalidate [list [key_of 2 p]]] [$c -push]
        # The channels of the default user are not those of the link.
        set before [lsort [lmap line [link_lines 1] {lindex $line 0}]]
        r -1 acl setuser default &y resetchannels
        $c spublish $channel again
        assert_equal [list smessage $channel again] [$s -message]
        assert_equal $before [lsort [lmap line [link_lines 1] {lindex $line 0}]]
        for {set i 1} {$i < 3} {incr i} {r -$i acl setuser default on ~* &* +@all}
        for {set i 0} {$i < 3} {incr i} {r -$i acl deluser carol}
    }

    test {a link can name no user for its own requests, and runs nothing of others so} {
        set c [gateway]
        assert_error "NOPERM *" {r -1 gateway as {} 0 3}
        # A user whose name is empty is not the node itself.
        assert_equal OK [$c set [key_of 1] 1]
        if {![catch {r acl setuser {} on >pw ~* &* +@all}]} {
            $c auth {} pw
            assert_error "NOPERM *" {$c get [key_of 1]}
            r acl deluser {}
        }
    }
}

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-databases 4}}} {
    open_gateway 0

    test {over a link that is not proven a refused SELECT fails its command, and no other} {
        r -1 acl setuser default -select
        set c [gateway]
        set other [gateway]
        $c select 3
        set key [key_of 1]
        foreach round {1 2} {
            foreach client [list $c $other $c $other] {$client -send set $key $client}
            foreach ignored {1 2} {
                assert_error "NOPERM *" {$c -read}
                assert_equal OK [$other -read]
            }
        }
        r -1 acl setuser default +select
        assert_equal {} [$c get $key]
        assert_equal $other [$other get $key]
        foreach round {1 2 3} {
            foreach client [list $c $other $c] {$client -send append $key $round}
            foreach client [list $c $other $c] {$client -read}
        }
        assert_equal [list 112233 ${other}123] [list [$c get $key] [$other get $key]]
        $other get $key
        r -1 acl setuser default -select
        $c multi
        $c set $key 1
        assert_error "NOPERM *" {$c exec}
        r -1 acl setuser default +select
        assert_equal 112233 [$c get $key]
    }

    test {over a link that is not proven a refused command disturbs no other, also if the user may not SELECT} {
        set c [gateway]
        set key [key_of 1 refused]
        assert_equal OK [$c set $key 1]
        r -1 acl setuser default -select -hello -incr
        assert_error "NOPERM *" {$c incr $key}
        assert_equal OK [$c set $key 2]
        $c multi
        $c incr $key
        assert_error "*NOPERM *" {$c exec}
        assert_equal 2 [$c get $key]
        r -1 acl setuser default +select +hello +incr
    }

    test {protocols of clients alternate over a link that is not proven} {
        set two [gateway 0 2]
        set three [gateway 0 3]
        set key [key_of 1 h]
        $two hset $key field value
        for {set i 0} {$i < 3} {incr i} {
            $two -send hgetall $key
            $three -send hgetall $key
            assert_equal {array {{bulk field} {bulk value}}} [$two -readtyped]
            assert_equal {map {{bulk field} {bulk value}}} [$three -readtyped]
        }
    }

    test {a node without places for clients: writes wait, and are not UNKNOWN} {
        set c [gateway]
        $c set [key_of 1] 1
        set most [lindex [r -1 config get maxclients] 1]
        r -1 config set maxclients 1
        r -1 client kill type normal skipme yes
        $c -send set [key_of 1] 2
        wait_for_condition 600 50 {[regexp {gateway_calls_memory:[1-9]} [r info gateway]]}
        r -1 config set maxclients $most
        assert_equal OK [$c -read]
    }

    test {nodes know of each other's keys while a node is of Valkey} {
        # The commands by which a link proves itself are unknown there.
        r -2 acl setuser default -gateway
        set c [gateway]
        foreach i {0 1 2} {assert_equal OK [$c set [key_of $i mixed] $i]}
        assert_equal {0 1 2} [$c mget [key_of 0 mixed] [key_of 1 mixed] [key_of 2 mixed]]
        r -2 acl setuser default +gateway
    }
}

start_server {tags {needs:config tls:skip}} {
    test {the port needs a node of a cluster} {
        foreach name {cluster-gateway-port cluster-gateway-tls-port} {
            assert_error "ERR CONFIG SET failed*the gateway needs cluster-enabled yes" {r config set $name [free_port]}
            assert_equal "$name 0" [r config get $name]
        }
        assert_equal PONG [r ping]
    }
}

# Nodes of another version: PEER_OLDER names its server. Before cluster-gateway-fetch a gateway knew neither tracking nor shard
# channels.
if {[info exists ::env(PEER_OLDER)]} {
    foreach older {0 1} {
        start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef}}} {
            test "a cluster in which node $older is of an older version" {
                set own $::binary
                set ::binary $::env(PEER_OLDER)
                with_node $older {restart_server}
                set ::binary $own
                cluster_wait_ok
                cluster_wait_agree
                open_gateway 0
                set c [gateway 0 3]
                set keys [list [key_of 0] [key_of 1] [key_of 2]]
                foreach key $keys {
                    assert_equal OK [$c set $key 1]
                    assert_equal 1 [$c eval {return redis.call('get', KEYS[1])} 1 $key]
                    $c multi
                    $c incr $key
                    assert_equal 2 [$c exec]
                    assert_equal {} [$c blpop "{$key}:list" 0.01]
                }
                assert_equal {2 2 2} [$c mget {*}$keys]
                assert_equal 3 [$c dbsize]
                assert_equal 0 [$c publish channel text]
                if {$older == 0} {
                    assert_error "ERR 'ssubscribe' is not supported*" {$c ssubscribe [key_of 1]}
                } else {
                    # What it does not track is forgotten at once; nothing is assumed of what it does not know.
                    assert_error "ERR *" {$c wait 0 10}
                    assert_error "ERR *" {$c client tracking on bcast}
                    assert_equal OK [$c client tracking on]
                    assert_equal 2 [$c get [key_of 1]]
                    assert_equal [list invalidate [list [key_of 1]]] [$c -push]
                    assert_equal 2 [$c get [key_of 2]]
                    r -2 set [key_of 2] 3
                    assert_equal [list invalidate [list [key_of 2]]] [$c -push]
                    r config set cluster-gateway-retry-ms 200
                    assert_error "CLUSTERDOWN *" {$c ssubscribe [key_of 1]}
                }
                # It is upgraded: everything works.
                with_node $older {restart_server}
                cluster_wait_ok
                cluster_wait_agree
                open_gateway 0
                set c [gateway 0 3]
                assert_equal OK [$c client tracking on bcast prefix [key_of 1]]
                wait_for_condition 600 50 {[regexp {tracking_total_prefixes:1} [r -1 info stats]]}
                $c set [key_of 1] 4
                while {[set told [$c -push]] eq {invalidate {}}} {}
                assert_equal [list invalidate [list [key_of 1]]] $told
            }
        }
    }
}
