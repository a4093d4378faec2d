# SPDX-License-Identifier: BSD-3-Clause
#
# Commands that change a key in place and run in slices (src/engine/job.h): nobody sees the key in the middle of the change, and all
# effects are at its end. DEBUG PAUSE-JOBS keeps them in the middle.

set ::members 600

proc names {from to} {
    set list {}
    for {set i $from} {$i < $to} {incr i} {lappend list name:$i}
    return $list
}

# Each name with something in front of it.
proc scored {list {i 0}} {
    return [concat {*}[lmap name $list {list [expr {[incr i] % 50}] $name}]]
}

proc paired {list} {return [concat {*}[lmap name $list {list $name [string repeat v 20]}]]}

proc placed {list {i 0}} {
    return [concat {*}[lmap name $list {list [expr {[incr i] % 170}] [expr {$i % 80}] $name}]]
}

proc fill {} {
    r flushall
    set all [names 0 $::members]
    r rpush l {*}$all
    r zadd y {*}[concat {*}[lmap name $all {list 0 $name}]]
    r geoadd g {*}[placed $all]
    r hset timed {*}[paired $all]
    r hpexpireat timed 4000000000000 fields 300 {*}[lrange $all 200 499]
    r sadd s {*}$all
    r sadd ints {*}[lmap name $all {string range $name 5 end}]
    r zadd z {*}[scored $all]
    r hset h {*}[paired $all]
}

# What the key k is a copy of, or "none", and the command.
proc changes {} {
    set some [names 100 500]
    set others [names 400 900]
    return [list \
        s [list srem k {*}$some] s [list srem k {*}[names 0 $::members]] ints [list srem k {*}[lmap i $some {string range $i 5 end}]] \
        s [list sadd k {*}$others] none [list sadd k {*}$others] ints [list sadd k {*}$others] \
        z [list zrem k {*}$some] z [list zrem k {*}[names 0 700]] z [list zadd k {*}[scored $others]] \
        none [list zadd k {*}[scored $others]] z [list zadd k xx gt ch {*}[scored $some 7]] z [list zadd k nx {*}[scored $others]] \
        h [list hdel k {*}$some] h [list hdel k {*}[names 0 $::members]] h [list hset k {*}[paired $others]] \
        none [list hset k {*}[paired $others]] none [list hset k {*}[lrepeat 600 same 1 other 2]] h [list hmset k {*}[paired $some]] \
        z {zremrangebyrank k 100 450} z {zremrangebyrank k 0 -2} z {zremrangebyscore k 3 40} y {zremrangebylex k [name:2 +} \
        z {zpopmin k 400} z {zpopmax k 300} z {zpopmin k 1000} l [list rpush k {*}$some] l [list lpush k {*}$others] \
        none [list rpush k {*}$some] none [list lpush k {*}$some] l [list lpushx k {*}$some] \
        l {lpop k 400} l {rpop k 500} l {rpop k 700} l {lpop k 600} none [list geoadd k {*}[placed $some]] \
        g [list geoadd k ch {*}[placed $others 9]] \
        h [list hpexpireat k 4000000000000 fields 400 {*}$some] h [list hexpireat k 1 fields 400 {*}$some] \
        h [list hexpireat k 1 fields 700 {*}[names 0 700]] timed [list hpexpireat k 4000000000001 gt fields 500 {*}$others] \
        timed [list hpersist k fields 400 {*}$some] timed [list hgetdel k fields 500 {*}$others] \
        h [list hgetdel k fields 600 {*}[names 0 600]] h [list hgetex k pxat 4000000000000 fields 400 {*}$some] \
        h [list hgetex k pxat 1 fields 400 {*}$some] timed [list hgetex k persist fields 400 {*}$some] \
        none [list hsetex k pxat 4000000000000 fields 400 {*}[paired $some]] timed [list hsetex k keepttl fields 500 {*}[paired $others]] \
        h [list hsetex k fnx fields 400 {*}[paired [names 600 1000]]] \
        timed [list hsetex k fxx pxat 4000000000000 fields 400 {*}[paired $some]] timed [list hsetex k pxat 1 fields 500 {*}[paired $others]] \
        h [list hsetex k fxx pxat 1 fields 600 {*}[paired [names 0 600]]]]
}

proc prepare {from} {
    r del k
    if {$from ne "none"} {assert_equal 1 [r copy $from k]}
}

# Reply and value when it runs in one piece. The key is as before then.
proc expected {from words} {
    r config set command-slice-us 0
    prepare $from
    set result [list [r {*}$words] [r debug digest-value k]]
    prepare $from
    r config set command-slice-us 10
    return $result
}

# A client with the command, held in the middle of the change.
proc held {words {before {}}} {
    set c [connect]
    foreach command $before {$c {*}$command}
    r debug pause-jobs 1
    $c -send {*}$words
    info_is jobs_running 1
    return $c
}

proc finish {c} {
    r debug pause-jobs 0
    set reply [$c -read]
    info_is jobs_running 0
    return $reply
}

proc about {words} {return "[lrange $words 0 3] ... with [llength $words] words"}

# A read of the key, and whether it exists.
proc read_of {words} {
    return [dict get {s {smembers k} z {zrange k 0 -1 withscores} h {hgetall k} g {zrange k 0 -1} l {lrange k 0 -1} r {lrange k 0 -1}} \
        [string index [lindex $words 0] 0]]
}

start_server {tags {jobs} overrides {enable-debug-command yes save {}}} {
    r config set command-slice-us 10
    fill

    test {a change in slices is that of one piece} {
        foreach {from words} [changes] {
            foreach us {0 10 1} {
                r config set command-slice-us $us
                prepare $from
                r pexpire k 10000000
                r config resetstat
                set dirty [info_field rdb_changes_since_last_save]
                set results($us) [list [r -typed {*}$words] [r exists k]]
                set jobs [info_field jobs_done]
                lappend results($us) [expr {[info_field rdb_changes_since_last_save] - $dirty}] [info_field keyspace_hits] \
                    [info_field keyspace_misses] [r debug digest-value k] [expr {[r pttl k] > 0}]
                regexp {calls=\d+} [info_field cmdstat_[lindex $words 0]] calls
                assert_equal calls=1 $calls
                if {[r exists k]} {lappend results($us) [r object encoding k]}
                assert_equal [expr {$us > 0}] $jobs [about $words]
            }
            assert_equal $results(0) $results(10) [about $words]
            assert_equal $results(0) $results(1) [about $words]
        }
        r config set command-slice-us 10
    }

    test {a condition that the last field does not meet} {
        foreach {condition fields} [list fnx [names 1000 1400] fxx [names 0 400]] last {name:599 name:1000} {
            prepare h
            set digest [r debug digest-value k]
            set c [held [list hsetex k $condition fields 401 {*}[paired $fields] $last v]]
            assert_equal 0 [finish $c]
            assert_equal $digest [r debug digest-value k]
            $c -close
        }
    }

    test {elements that are replied and removed count once} {
        foreach {from words} [list l {lpop k 400} l {rpop k 500} z {zpopmin k 400} l [list rpush k {*}[names 0 400]]] {
            prepare $from
            set c [held $words]
            assert {[regexp {job-visited=(\d+)} [r client list] all visited]}
            # The next part is a look at the clock later.
            assert_equal 64 $visited [about $words]
            finish $c
            $c -close
        }
    }

    test {readers and writers of the key wait, and see the whole change} {
        foreach {from words} [changes] {
            lassign [expected $from $words] reply digest
            set c [held $words]
            set clients [list [connect] [connect] [connect] [connect]]
            [lindex $clients 0] -send {*}[read_of $words]
            [lindex $clients 1] -send exists k none
            [lindex $clients 2] -send pexpire k 10000000
            foreach command {multi {exists k} {touch k} exec} {[lindex $clients 3] -send {*}$command}
            wait_for_condition 600 50 {[info_field blocked_clients] == 5}
            # Of others only what has no such key goes on.
            assert_equal $::members [r scard s]
            assert_equal [lsort [expr {$from eq "none" ? "s ints z y h l g timed" : "s ints z y h l g timed k"}]] [lsort [r keys *]]
            assert_equal [expr {$from eq "none" ? 8 : 9}] [r dbsize]
            assert_equal $reply [finish $c] [about $words]
            set read [llength [[lindex $clients 0] -read]]
            set exists [[lindex $clients 1] -read]
            assert_equal $exists [expr {$read > 0}] [about $words]
            assert_equal $exists [[lindex $clients 2] -read]
            assert_equal "OK QUEUED QUEUED {$exists $exists}" [lmap i {1 2 3 4} {[lindex $clients 3] -read}]
            foreach client [concat $c $clients] {$client -close}
        }
    }

    test {what cannot wait finds the change completed} {
        r function load {#!lua name=lib
            server.register_function('look', function() return server.call('exists', 'k') end)}
        foreach {from words} [changes] {
            lassign [expected $from $words] reply digest
            set exists [string match {*[1-9a-f]*} $digest]
            foreach {change result after} {
                {eval {return redis.call('exists', 'k')} 0} exists same
                {fcall look 0} exists same
                {eval {return redis.call('del', 'k')} 0} exists gone
                {eval {return redis.call('rename', 'k', 'moved').ok} 0} OK gone
                {eval {redis.call('get', 'k')} 0} any same
                {debug object k} any same
                {debug reload} OK same
                {save} OK same
                {flushall} OK gone
                {flushdb async} OK gone
                {swapdb 0 9} OK swapped
                {client pause 1 write} OK same
                {sort few by nosort get k} any same
            } {
                if {!$exists && ([lindex $change 0] eq "debug" || [string match *rename* $change])} continue
                prepare $from
                if {[lindex $change 0] eq "sort"} {r rpush few 1}
                set before [info_field jobs_in_one_piece]
                set c [held $words]
                if {$result eq "any"} {
                    catch {r {*}$change}
                } else {
                    assert_equal [expr {$result eq "exists" ? $exists : $result}] [r {*}$change] "$change and [about $words]"
                }
                assert_equal [expr {$before + 1}] [info_field jobs_in_one_piece] "$change and [about $words]"
                assert_equal $reply [finish $c] "$change and [about $words]"
                r client unpause
                if {$after eq "swapped"} {r swapdb 0 9}
                if {$after eq "gone"} {
                    assert_equal 0 [r exists k]
                } else {
                    assert_equal $digest [r debug digest-value k] "$change and [about $words]"
                }
                $c -close
                if {[lindex $change 0] in {flushall flushdb}} fill
            }
        }
        r del few moved
    }

    test {no snapshot has a part of it} {
        foreach method {forkless fork} {
            r config set bgsave-default-method $method
            foreach {from words} [changes] {
                lassign [expected $from $words] reply digest
                set c [held $words]
                r bgsave
                assert_equal $reply [finish $c]
                info_is rdb_bgsave_in_progress 0
                assert_equal ok [info_field rdb_last_bgsave_status]
                r del k
                r debug reload nosave
                assert_equal $digest [r debug digest-value k] [about $words]
                $c -close
            }
        }
    }

    test {a client that is gone does not take its command along} {
        foreach {from words} [changes] {
            lassign [expected $from $words] reply digest
            foreach how {close kill deluser} {
                prepare $from
                r acl setuser bob reset on nopass ~* &* +@all
                set clients [info_field connected_clients]
                set c [held $words {{auth bob any}}]
                if {$how eq "close"} {
                    $c -close
                } else {
                    r {*}[expr {$how eq "kill" ? {client kill user bob} : {acl deluser bob}}]
                    catch {$c -read}
                    $c -close
                }
                info_is connected_clients $clients
                r debug pause-jobs 0
                info_is jobs_running 0
                assert_equal $digest [r debug digest-value k] "$how and [about $words]"
            }
        }
    }

    test {it has its effect before a demotion} {
        foreach {from words} [changes] {
            lassign [expected $from $words] reply digest
            set c [held $words]
            r replicaof 127.0.0.1 1
            assert_equal 0 [info_field blocked_clients]
            assert_equal $reply [finish $c]
            assert_equal $digest [r debug digest-value k] [about $words]
            r replicaof no one
            $c -close
        }
    }

    test {WATCH, tracking and keyspace events see one moment} {
        r config set notify-keyspace-events KEA
        foreach {from words} [changes] {
            lassign [expected $from $words] reply digest
            r config set command-slice-us 0
            prepare $from
            set listener [connect 3]
            $listener -send psubscribe __keyspace*:k
            $listener -push
            r {*}$words
            set events [lmap event [$listener -pushes] {lindex $event end}]
            prepare $from
            $listener -pushes
            r config set command-slice-us 10
            set watcher [connect]
            $watcher watch k
            set cache [connect 3]
            $cache client tracking on
            $cache exists k
            set c [held $words]
            assert_equal {} [$listener -pushes]
            assert_equal {} [$cache -pushes]
            # It has not changed yet, for a transaction on other keys.
            set early [connect]
            $early multi
            $early scard s
            assert_equal $::members [$early exec]
            assert_equal $reply [finish $c]
            assert_equal $events [lmap event [$listener -pushes] {lindex $event end}] [about $words]
            assert_equal {invalidate k} [$cache -push]
            $watcher multi
            $watcher ping
            assert_equal {} [$watcher exec]
            foreach client [list $c $early $watcher $cache $listener] {$client -close}
        }
        r config set notify-keyspace-events {}
    }

    # One command for each type: each waits until a second is over.
    set of_types [list s [concat srem k [names 100 500]] z [concat zadd k [scored [names 400 900]]] h [concat hset k [paired [names 400 900]]]]

    test {neither expiry nor eviction takes the key away in the middle} {
        foreach {from words} $of_types {
            lassign [expected $from $words] reply digest
            r set other x px 1000
            r pexpire k 1000
            set c [held $words]
            wait_for_condition 600 50 {![r exists other]}
            r config set maxmemory-policy allkeys-lru
            r config set maxmemory 1
            wait_for_condition 600 50 {[catch {r set x y}] && [r dbsize] == 1}
            r config set maxmemory 0
            assert_equal $reply [finish $c] [about $words]
            assert_equal 0 [r exists k]
            $c -close
            fill
        }
    }

    test {if the key is removed all the same, the command runs afterwards} {
        foreach {from words} $of_types {
            lassign [expected none $words] reply digest
            prepare $from
            r set other x px 1000
            r pexpire k 1000
            set c [held $words]
            wait_for_condition 600 50 {![r exists other]}
            r config set maxmemory-policy allkeys-random ;# evicts also what is in use, if there is nothing else
            r config set maxmemory 1
            wait_for_condition 600 50 {[catch {r set x y}] && [r dbsize] == 0}
            r config set maxmemory 0
            assert_equal $reply [finish $c] [about $words]
            assert_equal $digest [r debug digest-value k] [about $words]
            $c -close
            fill
        }
    }

    test {who waits for the key is served by the effect} {
        prepare none
        set waiter [connect]
        $waiter -send bzpopmin k other 0
        wait_for_condition 600 50 {[info_field blocked_clients] == 1}
        set words [concat zadd k [scored [names 0 400]]]
        set c [held $words]
        r zadd other 1 m ;# its second run looks at k first
        assert_equal {k name:149 0} [$waiter -read]
        assert_equal 400 [finish $c]
        assert_equal 399 [r zcard k]
        assert_equal m [r zrange other 0 -1]
        r del other
    }

    test {a request that waits for it for long makes it end} {
        prepare s
        r config resetstat
        set c [held [concat srem k [names 0 400]]]
        set reader [connect]
        $reader -send scard k
        wait_for_condition 600 50 {[info_field job_writes_held] == 1}
        r debug pause-jobs 0
        assert_equal 400 [$c -read]
        assert_equal [expr {$::members - 400}] [$reader -read]
    }

    test {SPOP of a part takes members away that are in its reply} {
        foreach {what from} {wait s eval ints gone s} {
            prepare $from
            set c [held {spop k 400}]
            if {$what eq "eval"} {assert_equal 200 [r eval {return redis.call('scard', 'k')} 0]}
            if {$what eq "gone"} {
                $c -close
                r debug pause-jobs 0
                info_is jobs_running 0
            } else {
                set popped [finish $c]
                assert_equal 400 [llength [lsort -unique $popped]]
                assert_equal [lrepeat 400 0] [r smismember k {*}$popped]
                $c -close
            }
            assert_equal 200 [r scard k]
            assert_equal 200 [llength [r sinter k $from]]
        }
    }

    test {refused requests change nothing} {
        foreach {words error} [list \
            [concat srem z [names 0 400]] "WRONGTYPE *" [concat sadd h [names 0 400]] "WRONGTYPE *" \
            [concat zadd z [scored [names 0 400]] x name] "ERR value is not a valid float" \
            [concat zadd s [scored [names 0 400]]] "WRONGTYPE *" [concat hdel z [names 0 400]] "WRONGTYPE *" \
            [concat hset h [names 0 401]] "ERR wrong number of arguments *" [concat hset s [names 0 400]] "WRONGTYPE *"] {
            set digest [r debug digest]
            assert_error $error {r {*}$words}
            assert_equal $digest [r debug digest]
        }
    }
}
