# SPDX-License-Identifier: BSD-3-Clause
#
# Acts of one client that are spread over turns of the loop, so that others are served in between: large values that are freed,
# members that expire together, long reports, many clients. Here: what they do is what they do in one piece. How long others
# wait is measured by tests/bench/stalls.py.

source $::tests_dir/support/raw_replica.tcl

set ::members 3000
set ::many {}
for {set i 0} {$i < 20000} {incr i} {lappend ::many member:$i}

# A set and a sorted set whose members but three have expired together; nothing has looked at them since.
proc fill_expired {{wait 200}} {
    r flushall
    r debug set-active-expire 0
    set names {}
    set pairs {}
    for {set i 0} {$i < $::members} {incr i} {
        lappend names m:$i
        lappend pairs $i m:$i
    }
    set due [expr {[clock milliseconds] + $wait}]
    r sadd s a b c
    r zadd z 1 a 2 b 3 c
    r saddex s PXAT $due MEMBERS $::members {*}$names
    r zaddex z PXAT $due MEMBERS $::members {*}$pairs
    if {[clock milliseconds] >= $due} {
        fill_expired [expr {2 * $wait}] ;# those with a time in the past are not added
        return
    }
    wait_for_condition 3000 10 {[clock milliseconds] > $due + 5}
}

start_server {tags {stalls} overrides {enable-debug-command yes save {}}} {
    test {requests wait until many expired members are hidden or removed, and see none of them} {
        foreach {words reply} {
            {scard s} 3 {zcard z} 3 {smembers s} {a b c} {zrange z 0 -1} {a b c} {zcount z -inf +inf} 3 {sismember s m:7} 0
            {zscore z m:7} {} {sunion s} {a b c} {zunion 2 s z} {a b c} {srandmember s 100} {a b c} {sort s alpha} {a b c}
            {sadd s d} 1 {srem s m:1} 0 {zadd z 4 d} 1 {zremrangebyscore z -inf +inf} 3 {sunionstore t s} 3 {zpopmin z 1} {a 1}
            {spop s 10} {a b c} {copy s t} 1 {object encoding s} hashtable
        } {
            foreach us {0 1 500} {
                r config set command-slice-us $us
                fill_expired
                set held [info_field expiry_requests_held]
                set replied [r {*}$words]
                if {[lindex $words 0] eq "zpopmin"} {set replied [concat {*}$replied]}
                if {[lindex $words 0] ni {zrange zpopmin zunion}} {set replied [lsort $replied]}
                assert_equal $reply $replied "$words, $us"
                # What reads or writes one of them waits; EXISTS and OBJECT do, too.
                assert_equal [expr {$us > 0}] [expr {[info_field expiry_requests_held] > $held}] "$words, $us"
            }
        }
        r config set command-slice-us 500
    }

    test {a request of a value with few expired members does not wait} {
        r flushall
        r debug set-active-expire 1
        set held [info_field expiry_requests_held]
        r saddex s PX 1 MEMBERS 3 a b c
        r sadd s d
        wait_for_condition 600 5 {[r scard s] == 1}
        assert_equal $held [info_field expiry_requests_held]
    }

    test {transactions wait as a whole, scripts that name the key, and requests after them in order} {
        fill_expired
        set held [info_field expiry_requests_held]
        set c [connect]
        $c multi
        $c scard s
        $c sadd s d
        $c -send exec
        $c -send scard s
        set other [connect]
        $other -send eval {return redis.call('zcard', KEYS[1])} 1 z
        assert_equal {3 1} [$c -read]
        assert_equal 4 [$c -read]
        assert_equal 3 [$other -read]
        assert_equal [expr {$held + 2}] [info_field expiry_requests_held]
    }

    test {who is killed while it waits leaves the others alone} {
        fill_expired
        set clients {}
        for {set i 0} {$i < 5} {incr i} {
            set c [connect]
            $c -send scard s
            lappend clients $c
        }
        [lindex $clients 0] -close
        [lindex $clients 3] -close
        foreach i {1 2 4} {assert_equal 3 [[lindex $clients $i] -read]}
    }

    test {removals before a write are propagated before it} {
        fill_expired
        set stream [dict get [replica_sync] socket]
        r sadd s d
        r zadd z 5 e
        set removed {}
        while {[set words [replica_next $stream]] ne "zadd z 5 e"} {
            if {[lindex $words 0] in {SREM ZREM}} {dict incr removed [lindex $words 0] [expr {[llength $words] - 2}]}
        }
        raw_close $stream
        assert_equal [list SREM $::members ZREM $::members] $removed
    }

    test {a replica hides them in the same way} {
        fill_expired
        set tls [expr {$::tls_folder eq "" ? "" : "tls-replication yes"}]
        start_server [list overrides "enable-debug-command yes save {} $tls"] {
            r replicaof [srv -1 host] [srv -1 port]
            wait_for_condition 1200 50 {[info_field master_link_status] eq "up"}
            set held [info_field expiry_requests_held]
            assert_equal {3 3} [list [r scard s] [r zcard z]]
            assert_equal {a b c} [lsort [r smembers s]]
            assert_equal [expr {$held + 2}] [info_field expiry_requests_held]
        }
    }
}

start_server {tags {stalls} overrides {enable-debug-command yes save {}}} {
    test {large values are freed by the other thread whatever the directives say} {
        foreach directive {lazyfree-lazy-user-del lazyfree-lazy-server-del lazyfree-lazy-expire lazyfree-lazy-eviction} {
            r config set $directive no
        }
        foreach {how count} {
            {del large} 1 {set large v} 1 {rename small large} 1 {restore large 0 PAYLOAD replace} 1 {pexpire large -1} 1
            {sunionstore large small} 1 {flushdb sync} 1 {spop large 20000} 1
        } {
            r flushall
            r sadd small a b c
            set payload [r dump small]
            r sadd large {*}$::many
            r config resetstat
            r {*}[lmap word $how {expr {$word eq "PAYLOAD" ? $payload : $word}}]
            wait_for_condition 600 5 {[info_field lazyfreed_objects] == $count && [info_field lazyfree_pending_objects] == 0} else {
                fail "$how: [info_field lazyfreed_objects]"
            }
        }
    }

    test {FLUSHALL SYNC of many keys replies when their memory is free; its client's requests wait, others do not} {
        foreach words {{flushall sync} {flushdb sync}} {
            r flushall
            set empty [info_field used_memory]
            r debug populate 50000 key 100
            set c [connect]
            $c -send {*}$words
            $c -send dbsize
            assert_equal OK [$c -read]
            assert_equal 0 [$c -read]
            assert {[info_field used_memory] < $empty + 2000000}
            $c -close
        }
        r debug populate 50000 key 100
        r multi
        r flushall sync
        r dbsize
        assert_equal {OK 0} [r exec]
    }

    test {one large value that is evicted is enough} {
        r flushall
        r config set maxmemory-policy allkeys-lru
        r config set maxmemory-samples 64
        r debug populate 20 key 100
        set names {}
        for {set i 0} {$i < 100000} {incr i} {lappend names member:$i}
        r sadd large {*}$names
        foreach key [r keys key:*] {r get $key}
        r config resetstat
        r debug sleep 1.1
        foreach key [r keys key:*] {r get $key}
        # What was freed before may come back later than the limit is set: it is set again then.
        wait_for_condition 600 10 {
            [r config set maxmemory [expr {[info_field used_memory] - 100000}]] eq "OK" &&
            [r set other value] eq "OK" && [info_field evicted_keys] > 0
        }
        wait_for_condition 600 10 {[info_field lazyfree_pending_objects] == 0}
        r set other value
        assert_equal {0 21} [list [r exists large] [r dbsize]]
        r config set maxmemory 0
    }
}

# So many clients with names.
proc named_clients {count} {
    for {set i 0} {$i < $count} {incr i} {
        lappend clients [connect]
        [lindex $clients end] client setname name:$i
    }
    return $clients
}

start_server {tags {stalls} overrides {enable-debug-command yes save {} maxclients 1000}} {
    test {CLIENT LIST of many clients in slices has a line for each} {
        set clients [named_clients 200]
        foreach us {0 10 500} {
            r config set command-slice-us $us
            set done [info_field jobs_done]
            set lines [split [string trim [r client list]] "\n"]
            assert_equal 201 [llength $lines] $us
            assert_equal 200 [llength [lsearch -all $lines *name=name:*]] $us
            assert_equal [expr {$us > 0}] [expr {[info_field jobs_done] > $done}] $us
        }
        assert_equal 1 [llength [split [string trim [r client list name name:7]] "\n"]]
    }

    test {clients may come and go while they are listed} {
        r config set command-slice-us 10
        set clients [named_clients 200]
        r debug pause-jobs 1
        set c [connect]
        $c -send client list type normal
        info_is jobs_running 1
        for {set i 0} {$i < 200} {incr i 2} {[lindex $clients $i] -close}
        wait_for_condition 600 50 {[info_field connected_clients] == 102}
        lappend clients [connect]
        r debug pause-jobs 0
        set lines [split [string trim [$c -read]] "\n"]
        set present [lsearch -all -inline $lines *name=name:*]
        for {set i 1} {$i < 200} {incr i 2} {assert_equal 1 [llength [lsearch -all $present "*name=name:$i *"]]}
        # And one that goes while it lists.
        r debug pause-jobs 1
        $c -send client list
        info_is jobs_running 1
        $c -close
        info_is jobs_running 0
        r debug pause-jobs 0
    }

    test {the end of a pause serves all who have waited} {
        set waiting [named_clients 100]
        r client pause 100000 write
        foreach c $waiting {$c -send incr counter}
        wait_for_condition 600 50 {[info_field blocked_clients] == 100}
        r client unpause
        foreach c $waiting {lappend counts [$c -read]}
        assert_equal 100 [llength [lsort -unique $counts]]
        assert_equal 100 [r get counter]
    }

    test {PUBSUB CHANNELS and UNSUBSCRIBE of many channels in slices} {
        set c [connect 3]
        set names {}
        for {set i 0} {$i < 3000} {incr i} {lappend names channel:$i}
        foreach us {0 10 500} {
            r config set command-slice-us $us
            set done [info_field jobs_done]
            $c -send subscribe {*}$names
            for {set i 0} {$i < 3000} {incr i} {$c -push}
            assert_equal [lsort $names] [lsort [r pubsub channels]]
            assert_equal [llength [lsearch -all $names *:1*]] [llength [r pubsub channels *:1*]]
            $c -send unsubscribe
            set left {}
            for {set i 0} {$i < 3000} {incr i} {
                lassign [$c -push] word name count
                lappend left $name
                assert_equal [list unsubscribe [expr {2999 - $i}]] [list $word $count]
            }
            assert_equal [lsort $names] [lsort $left]
            assert_equal {} [r pubsub channels]
            assert_equal [expr {$us > 0}] [expr {[info_field jobs_done] > $done}] $us
        }
        # Channels come and go while they are listed; messages arrive while they are left.
        r config set command-slice-us 10
        $c -send subscribe {*}$names
        for {set i 0} {$i < 3000} {incr i} {$c -push}
        r debug pause-jobs 1
        set other [connect]
        $other -send pubsub channels
        info_is jobs_running 1
        set third [connect 3]
        for {set i 0} {$i < 3000} {incr i} {$third -send subscribe new:$i}
        for {set i 0} {$i < 3000} {incr i} {$third -push}
        r debug pause-jobs 0
        set listed [lsearch -all -inline [$other -read] channel:*]
        assert_equal [lsort $names] [lsort $listed]
        r debug pause-jobs 1
        $c -send unsubscribe
        info_is jobs_running 1
        foreach name $names {incr delivered [r publish $name message]}
        r debug pause-jobs 0
        set messages 0
        set unsubscribed 0
        while {$unsubscribed < 3000} {
            switch [lindex [$c -push] 0] message {incr messages} unsubscribe {incr unsubscribed}
        }
        assert_equal $delivered $messages
    }

    test {SLOWLOG GET of many entries in slices} {
        r config set slowlog-max-len 3000 slowlog-log-slower-than 0
        for {set i 0} {$i < 2000} {incr i} {r echo $i}
        r config set slowlog-log-slower-than -1
        foreach us {0 10 500} {
            r config set command-slice-us $us
            set done [info_field jobs_done]
            set entries [r slowlog get -1]
            set replies($us) $entries
            assert {[llength $entries] >= 2000}
            assert_equal [expr {$us > 0}] [expr {[info_field jobs_done] > $done}] $us
        }
        assert_equal $replies(0) $replies(10)
        assert_equal $replies(0) $replies(500)
        # Entries that are dropped meanwhile end the reply.
        r config set command-slice-us 10
        r debug pause-jobs 1
        set c [connect]
        $c -send slowlog get -1
        info_is jobs_running 1
        r slowlog reset
        r debug pause-jobs 0
        set entries [$c -read]
        assert {[llength $entries] < 2000}
        assert_equal $entries [lrange $replies(0) 0 [expr {[llength $entries] - 1}]]
    }
}
