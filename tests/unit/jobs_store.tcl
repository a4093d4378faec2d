# SPDX-License-Identifier: BSD-3-Clause
#
# Commands that store a result and run in slices (src/engine/job.h): the effect is at one moment, at the end. DEBUG PAUSE-JOBS
# keeps them in the middle, CLIENT PAUSE before their effect.

set ::elements 5000

# Makes a collection of each type.
proc fill {{c r}} {
    $c flushall
    for {set at 0} {$at < $::elements} {incr at 500} {
        set names {}
        set pairs {}
        set numbers {}
        set fields {}
        for {set i $at} {$i < $at + 500} {incr i} {
            lappend names name:$i
            lappend pairs [expr {$i % 100}] name:$i
            lappend numbers [expr {$i * 7919 % $::elements}]
            lappend fields name:$i $i
        }
        $c sadd s {*}$names
        $c sadd t {*}[lrange $names 0 249]
        $c sadd ints {*}$numbers
        $c rpush l {*}$numbers
        $c zadd z {*}$pairs
        $c zadd y {*}[lrange $pairs 0 499]
        $c hset h {*}$fields
    }
    for {set i 0} {$i < $::elements} {incr i} {$c -send xadd st * field $i}
    for {set i 0} {$i < $::elements} {incr i} {$c -read}
    $c setrange b1 1000000 one
    $c setrange b2 900000 two
    $c set d old
    for {set at 0} {$at < $::elements} {incr at 500} {
        set places {}
        for {set i $at} {$i < $at + 500} {incr i} {lappend places [expr {$i * 7 % 180}].$i [expr {$i * 3 % 80}].$i place:$i}
        $c geoadd geo {*}$places
    }
    set ::hlls {}
    for {set i 0} {$i < 40} {incr i} {
        $c pfadd p$i {*}[lrange $names 0 [expr {$i * 10}]]
        if {$i % 2} {$c pfdebug todense p$i}
        lappend ::hlls p$i none$i
    }
    $c pfadd hll a b c
}

# The commands, which store at d.
set ::commands {
    {sunionstore d s t} {sunionstore d s ints none} {sinterstore d s t} {sdiffstore d s t} {sdiffstore d t s} {sunionstore d s d2}
    {zunionstore d 2 z s weights 2 3} {zunionstore d 2 z y aggregate max} {zinterstore d 2 z y} {zinterstore d 2 z t aggregate min}
    {zdiffstore d 2 z y} {zdiffstore d 2 y z} {zrangestore d z 0 -1} {zrangestore d z 90 10 byscore rev limit 5 4000}
    {copy s d replace} {copy h d replace} {copy l d replace} {copy z d replace} {copy st d replace} {bitop xor d b1 b2 none}
    {bitop and d b1 b2} {sort l store d} {sort l desc limit 5 2000 store d} {sort s alpha store d} {sort z by nosort store d} {sinterstore d s none}
    {geosearchstore d geo fromlonlat 10 10 byradius 20000 km} {geosearchstore d geo fromlonlat 10 10 bybox 9000 9000 km asc count 700 storedist}
    {geosearchstore d geo frommember place:7 bybox 30000 30000 km desc} {georadius geo 10 10 20000 km store d}
    {georadius geo 10 10 20000 km desc storedist d} {georadiusbymember geo place:9 20000 km count 900 store d}
}

# A client with a job that is held in the middle; `words` is its command.
proc held {words {before {}}} {
    set running [info_field jobs_running]
    set c [connect]
    foreach command $before {$c {*}$command}
    r debug pause-jobs 1
    $c -send {*}$words
    info_is jobs_running [expr {$running + 1}]
    return $c
}

# Lets it go on; its reply.
proc finish {c} {
    r debug pause-jobs 0
    return [$c -read]
}

# A client with a job whose result is complete: a pause keeps it from its effect.
proc complete {words} {
    set c [held $words]
    r client pause 100000 write
    r debug pause-jobs 0
    # Its effect would come before the next job has ended.
    assert_equal $::elements [llength [r smembers s]]
    return $c
}

# Ends a connection, and waits until the server has noticed it.
proc gone {c} {
    set before [info_field connected_clients]
    $c -close
    info_is connected_clients [expr {$before - 1}]
}

proc client_id {words} {
    foreach line [split [r client list] "\n"] {
        if {[string match "* cmd=[lindex $words 0] *" $line] && [regexp {^id=(\d+) } $line all id]} {return $id}
    }
    fail "no client runs $words"
}

start_server {tags {jobs} overrides {enable-debug-command yes save {}}} {
    r config set command-slice-us 10
    fill

    test {a result stored in slices is the one of one piece} {
        foreach words $::commands {
            foreach us {0 10 1} {
                r config set command-slice-us $us
                r set d old
                set done [info_field jobs_done]
                set results($us) [list [r -typed {*}$words] [r type d] [r exists d] [r debug digest-value d]]
                if {[r exists d]} {lappend results($us) [r object encoding d]}
                set is_job [expr {[info_field jobs_done] > $done}]
                if {$us == 0} {assert_equal 0 $is_job $words}
                if {$us == 10 && [lindex $words end] ne "none"} {assert_equal 1 $is_job $words}
            }
            assert_equal $results(0) $results(10) $words
            assert_equal $results(0) $results(1) $words
        }
        r config set command-slice-us 10
    }

    test {PFMERGE in slices stores what it stores in one piece} {
        foreach sources [list $::hlls [concat hll hll $::hlls]] target {hll none} {
            foreach us {0 10 1} {
                r config set command-slice-us $us
                r copy $target k replace
                r config resetstat
                set results($us) [list [r pfmerge k {*}$sources] [r debug digest-value k] [r pfcount k] [info_field keyspace_hits] \
                    [info_field keyspace_misses]]
                if {$us != 1} {assert_equal [expr {$us == 10}] [info_field jobs_done]}
                r del k
            }
            assert_equal $results(0) $results(10)
            assert_equal $results(0) $results(1)
        }
        r config set command-slice-us 10
        r set p3 none
        assert_error "WRONGTYPE *" {r pfmerge k {*}$::hlls}
        r set p3 "HYLL\x01[string repeat \0 11]\xff"
        assert_error "INVALIDOBJ *" {r pfmerge k {*}$::hlls}
        assert_equal {0 0} [list [r exists k] [info_field jobs_running]]
        r del p3
    }

    test {PFMERGE reads its destination: writes to it wait} {
        r copy hll k replace
        set c [held [list pfmerge k {*}$::hlls]]
        set writer [connect]
        $writer -send pfadd k another
        wait_for_condition 600 50 {[info_field blocked_clients] == 2}
        assert_equal 3 [r pfcount hll]
        assert_equal OK [finish $c]
        assert_equal 1 [$writer -read]
        r del k
    }

    test {a key that is changed after a search in slices is as in one piece} {
        r del many
        r rpush many {*}[lrepeat 1000 same other same]
        foreach {from words} {
            l {lrem k 0 777} l {lrem k -1 777} l {lrem k 0 missing} many {lrem k 0 same} many {lrem k -200 same} many {lrem k 200 same}
            many {lrem k 300 other} l {linsert k before 777 new} l {linsert k after 4999 new} l {linsert k before missing new}
            s {spop k 5000} ints {spop k 6000} many {lrem k -256 other} many {lrem k 257 other}
        } {
            foreach us {0 10 1} {
                r config set command-slice-us $us
                r copy $from k replace
                r pexpire k 1000000
                set done [info_field jobs_done]
                set results($us) [list [lsort [r {*}$words]] [r type k] [r debug digest-value k] [expr {[r pttl k] > 0}]]
                if {$us != 1} {assert_equal [expr {$us == 10}] [expr {[info_field jobs_done] > $done}] $words}
            }
            assert_equal $results(0) $results(10) $words
            assert_equal $results(0) $results(1) $words
        }
        r config set command-slice-us 10
        r del many k
    }

    test {its key cannot change meanwhile, and readers see it as before} {
        r rpush k {*}[r lrange l 0 -1]
        set c [held {linsert k before 4999 new}]
        set writer [connect]
        $writer -send lpop k
        wait_for_condition 600 50 {[info_field blocked_clients] == 2}
        assert_equal $::elements [r llen k]
        assert_equal 0 [r lindex k 0]
        assert_equal [expr {$::elements + 1}] [finish $c]
        assert_equal 0 [$writer -read]
        assert_equal $::elements [r llen k]
        set c [held {lrem k 0 new}]
        r eval {return redis.call('rpush', 'k', 'new')} 0
        assert_equal 2 [finish $c]
        set c [held {lrem k 0 777}]
        r eval {return redis.call('del', 'k')} 0
        assert_equal 0 [finish $c]
        assert_equal 0 [r exists k]
    }

    test {hits, calls, changes and failures are counted once} {
        r config resetstat
        set dirty [info_field rdb_changes_since_last_save]
        assert_equal $::elements [r sunionstore d s t]
        assert_error "WRONGTYPE *" {r sunionstore d s l}
        assert_error "ERR One or more scores can't be converted into double" {r sort s store d}
        assert_equal {5 2 0} [list [info_field keyspace_hits] [info_field jobs_done] [info_field jobs_running]]
        assert_match {calls=2,*failed_calls=1} [info_field cmdstat_sunionstore]
        assert_match {calls=1,*failed_calls=1} [info_field cmdstat_sort]
        assert_equal 1 [expr {[info_field rdb_changes_since_last_save] - $dirty}]
        assert_equal $::elements [r sort l store d]
        assert_equal [expr {1 + $::elements}] [expr {[info_field rdb_changes_since_last_save] - $dirty}]
    }

    test {nobody sees the result before its effect, and the destination may change} {
        r set d old
        set c [held {sunionstore d s t}]
        assert_equal old [r get d]
        assert_equal 3 [r append d ""]
        assert_equal OK [r set d new]
        assert_equal 0 [info_field job_writes_held]
        assert_equal $::elements [r scard s]
        assert_equal $::elements [finish $c]
        assert_equal $::elements [r scard d]
    }

    test {writes to its sources wait until its effect} {
        r config resetstat
        set c [held {sunionstore d s t}]
        set writer [connect]
        $writer -send srem s name:1
        $writer -send sismember d name:1
        wait_for_condition 600 50 {[info_field job_writes_held] == 1}
        assert_equal 1 [r sismember s name:1]
        assert_equal $::elements [finish $c]
        assert_equal {1 1} [list [$writer -read] [$writer -read]]
        assert_equal 1 [r sadd s name:1]
    }

    test {a destination that is a source, too, is read before} {
        r del d
        r sadd d only here
        set c [held {sunionstore d d s}]
        set writer [connect]
        $writer -send sadd d another
        $writer -send scard d
        wait_for_condition 600 50 {[info_field blocked_clients] == 2}
        assert_equal [expr {$::elements + 2}] [finish $c]
        assert_equal [list 1 [expr {$::elements + 3}]] [list [$writer -read] [$writer -read]]
    }

    test {what cannot wait is executed before it, as if the command had been sent later} {
        foreach {change expected} {
            {eval {return redis.call('srem', 's', 'name:1000')} 0} 4999
            {eval {redis.call('scard', 'd'); return redis.call('del', 's')} 0} 500
            {eval {return redis.call('smove', 's', 'd', 'name:1000')} 0} 4999
            {eval {return redis.call('rename', 's', 'd')} 0} 500
            {flushall} 0 {flushdb async} 0 {swapdb 0 1} 0 {debug reload} 5000
        } {
            fill
            r sadd t {*}[lmap i [r zrange y 0 499] {set i}]
            set t [r scard t]
            r del d
            r sadd d old
            r config resetstat
            set c [held {sunionstore d s t}]
            r {*}$change
            set reply [finish $c]
            if {$expected == 500} {set expected $t}
            if {$expected == 4999 && $t > 0} {set expected [expr {5000 - ![r sismember t name:1000]}]}
            assert_equal $expected $reply $change
            assert_equal $expected [r scard d] $change
            assert_equal {1 0} [list [info_field jobs_in_one_piece] [info_field jobs_running]] $change
            if {[lindex $change 0] eq "swapdb"} {r swapdb 0 1}
        }
        fill
    }

    test {a source that was missing and is made meanwhile is read} {
        foreach {words make expected} {
            {sunionstore d s none} {eval {return redis.call('sadd', 'none', 'new')} 0} 5001
            {zunionstore d 2 z none} {eval {return redis.call('zadd', 'none', 1, 'new')} 0} 5001
            {sdiffstore d s none} {eval {return redis.call('rename', 't', 'none')} 0} 2500
            {sunionstore d s none} {eval {return redis.call('copy', 't', 'none')} 0} 5000
        } {
            r del none
            r sadd t {*}[lrange [r smembers s] 0 2499]
            set t [r scard t]
            set c [held $words]
            r config resetstat
            r {*}$make
            if {$expected == 2500} {set expected [expr {5000 - $t}]}
            assert_equal $expected [finish $c] $words
            assert_equal 1 [info_field jobs_in_one_piece] $words
        }
        # By another job, which had begun before it.
        r del none
        set c [held {copy t none}]
        set after [held {sunionstore d s none}]
        r config resetstat
        r debug pause-jobs 0
        assert_equal 1 [$c -read]
        assert_equal 5000 [$after -read]
        fill
    }

    test {a client that is gone does not take its command along} {
        foreach how {close kill} {
            foreach words {{sunionstore d s t} {zunionstore d 2 z s} {sort l store d} {zrangestore d z 0 -1}} {
                r set d old
                set c [held $words]
                if {$how eq "close"} {
                    gone $c
                } else {
                    set id [client_id $words]
                    assert_equal 0 [r client unblock $id]
                    assert_equal 1 [r client kill id $id]
                }
                assert_equal old [r get d]
                r debug pause-jobs 0
                info_is jobs_running 0
                assert_not_equal string [r type d]
            }
        }
    }

    test {of a client that is gone the rights are asked for at the effect, as of others} {
        foreach change {{setuser bob resetkeys} {setuser bob -@write} {deluser bob} {setuser bob +@all}} {
            r set d old
            r acl setuser bob reset on nopass ~* &* +@all
            set c [held {sunionstore d s t} {{auth bob any}}]
            set clients [info_field connected_clients]
            r acl {*}$change
            if {[lindex $change 0] eq "deluser"} {
                info_is connected_clients [expr {$clients - 1}]
                $c -close
            } else {
                gone $c
            }
            r debug pause-jobs 0
            info_is jobs_running 0
            assert_equal [expr {[lindex $change end] eq "+@all" ? "set" : "string"}] [r type d] $change
        }
        r acl deluser bob
    }

    test {sixteen results at a time are computed in slices, further ones in one piece} {
        set clients {}
        for {set i 0} {$i < 16} {incr i} {lappend clients [held "sunionstore d$i s t"]}
        set c [connect]
        assert_equal $::elements [$c sunionstore d16 s t]
        $c -close
        r debug pause-jobs 0
        foreach c $clients {
            assert_equal $::elements [$c -read]
            $c -close
        }
        info_is jobs_running 0
        for {set i 0} {$i <= 16} {incr i} {r del d$i}
    }

    test {a pause holds its effect, also that of a client that is gone} {
        foreach gone {0 1} {
            r set d old
            set c [complete {sunionstore d s t}]
            if {$gone} {gone $c}
            assert_equal {old 1} [list [r get d] [info_field jobs_running]]
            r client unpause
            if {!$gone} {assert_equal $::elements [$c -read]}
            info_is jobs_running 0
            assert_equal $::elements [r scard d]
        }
    }

    test {a demotion ends it without an effect} {
        foreach gone {0 1} {
            r set d old
            set digest [r debug digest]
            set c [held {sunionstore d s t}]
            set other [complete {zunionstore d 1 z}]
            if {$gone} {
                gone $c
                gone $other
            }
            r replicaof 127.0.0.1 1
            if {!$gone} {
                assert_error "UNBLOCKED *" {$c -read}
                assert_error "UNBLOCKED *" {$other -read}
            }
            r client unpause
            info_is jobs_running 0
            assert_equal $digest [r debug digest]
            r replicaof no one
        }
    }

    test {the rights that its user has lost meanwhile are missing} {
        r acl setuser writer on nopass ~* &* +@all
        foreach start {held complete} {
            r set d old
            set c [connect]
            $c auth writer any
            r debug pause-jobs 1
            $c -send sunionstore d s t
            info_is jobs_running 1
            if {$start eq "complete"} {r client pause 100000 write}
            r acl setuser writer -sunionstore
            r client unpause
            r debug pause-jobs 0
            assert_error "NOPERM *" {$c -read}
            assert_equal {old 0} [list [r get d] [info_field jobs_running]]
            r acl setuser writer +@all
        }
        r acl deluser writer
    }

    test {WATCH, tracking and keyspace events see the moment of the effect} {
        r config set notify-keyspace-events KEA
        r set d old
        set watcher [connect]
        $watcher watch d
        set cache [connect 3]
        $cache client tracking on
        $cache get d
        set listener [connect 3]
        $listener -send psubscribe __keyspace*:d
        $listener -push
        set c [held {sunionstore d s t}]
        set early [connect]
        $early watch d
        $early multi
        $early get d
        assert_equal old [$early exec]
        assert_equal {} [$listener -pushes]
        assert_equal $::elements [finish $c]
        assert_equal {invalidate d} [$cache -push]
        assert_equal sunionstore [lindex [$listener -message] end]
        $watcher multi
        $watcher ping
        assert_equal {} [$watcher exec]
        r config set notify-keyspace-events {}
    }

    test {COPY without REPLACE finds a destination that was made meanwhile} {
        r del d
        set c [held {copy s d}]
        r set d new
        assert_equal 0 [finish $c]
        assert_equal new [r get d]
        set c [held {copy s d replace}]
        assert_equal 1 [finish $c]
        assert_equal [r debug digest-value s] [r debug digest-value d]
        r del d
        r pexpire s 100000
        set c [held {copy s d}]
        assert_equal 1 [finish $c]
        assert_range [r pttl d] 1 100000
        r persist s
    }

    test {COPY to another database} {
        foreach replace {{} replace} {
            set c [held [list copy s d db 9 {*}$replace]]
            r select 9
            r set d new
            assert_equal [expr {$replace ne ""}] [finish $c]
            assert_equal [expr {$replace ne "" ? "set" : "string"}] [r type d]
            r del d
            r select 0
        }
    }

    test {COPY to another database waits for readers of the key there} {
        # A complete result waits 100 ms at most: a slow machine may need more tries.
        for {set tries 0} {$tries < 100} {incr tries} {
            set one [connect]
            $one select 9
            $one sadd d {*}[r smembers s]
            set c [complete {copy s d db 9 replace}]
            r config resetstat
            set reader [held {zunion 4 d d d d} {{select 9}}]
            r client unpause
            assert_equal [list $::elements 1] [list [llength [finish $reader]] [$c -read]]
            foreach client [list $one $c $reader] {$client -close}
            if {[info_field jobs_in_one_piece] == 0} break
        }
        assert_equal 0 [info_field jobs_in_one_piece]
        r select 9
        r del d
        r select 0
    }

    test {who waits for the destination is served by the effect} {
        r del d
        set waiter [connect]
        $waiter -send bzpopmin d 0
        wait_for_condition 600 50 {[info_field blocked_clients] == 1}
        set c [held {zunionstore d 1 z}]
        assert_equal $::elements [finish $c]
        assert_equal {d name:0 0} [$waiter -read]
        assert_equal [expr {$::elements - 1}] [r zcard d]
    }

    test {transactions, scripts and commands with more than 1,000 arguments are no jobs} {
        set done [info_field jobs_done]
        r multi
        r sunionstore d s t
        assert_equal $::elements [r exec]
        assert_equal $::elements [r eval {return redis.call('sunionstore', 'd', 's')} 0]
        assert_equal $::elements [r sunionstore d {*}[lrepeat 1000 s]]
        assert_equal $done [info_field jobs_done]
    }

    test {a source that expires meanwhile is missing} {
        r set d old
        r pexpire s 500
        set c [held {sunionstore d s t}]
        wait_for_condition 600 50 {[r exists s] == 0}
        set t [r scard t]
        assert_equal $t [finish $c]
        assert_equal $t [r scard d]
        fill
    }

    test {no snapshot has a result before its effect} {
        foreach mode {inline fork auto} {
            r config set snapshot-mode $mode
            r set d old
            set digest [r debug digest]
            set c [complete {sunionstore d s t}]
            r bgsave
            info_is rdb_bgsave_in_progress 0
            assert_equal ok [info_field rdb_last_bgsave_status]
            r client unpause
            assert_equal $::elements [$c -read]
            r debug reload nosave
            assert_equal $digest [r debug digest]
        }
    }

    test {commands that read the old value of the destination reply it} {
        fill
        r sunionstore d s t
        r sadd d gone
        set c [held {sunionstore d s}]
        set reader [held {zunion 4 d z s z}]
        r debug pause-jobs 0
        assert_equal $::elements [$c -read]
        assert_equal [expr {$::elements + 1}] [llength [$reader -read]]
        assert_equal 0 [r sismember d gone]
    }

    test {many at a time, whose destinations are sources of others, fit an order} {
        fill
        foreach key {a b} {r sunionstore $key s} ;# an empty set would be an intersection, too
        set clients {}
        foreach i {1 2 3 4 5} {
            foreach words {{sunionstore a s t} {sunionstore b a s} {sinterstore t b s} {zunionstore c 2 a z} {smembers a}} {
                lappend clients [connect]
                [lindex $clients end] -send {*}$words
            }
        }
        foreach c $clients {$c -read}
        info_is jobs_running 0
        assert_equal [lrepeat 4 $::elements] [list [r scard a] [r scard b] [r scard t] [r zcard c]]
    }

    test {invalid arguments are refused as in one piece} {
        foreach {words error} {
            {zunionstore d 3 z s} "ERR syntax error" {zunionstore d 2 z s weights 1 x} "ERR weight value is not a float"
            {zrangestore d z 0 x} "ERR value is not an integer or out of range" {sort s store} "ERR syntax error"
            {sinterstore d s l} "WRONGTYPE *" {zrangestore d s 0 -1} "WRONGTYPE *"
        } {
            r set d old
            assert_error $error {r {*}$words}
            assert_equal old [r get d]
        }
    }
}
