# SPDX-License-Identifier: BSD-3-Clause
#
# Commands that run in slices (src/engine/job.h): replies, who waits for whom, what ends them. DEBUG PAUSE-JOBS keeps them in the
# middle.

set ::elements 5000

# Makes a collection of each type, and keys.
proc fill {} {
    r flushall
    for {set at 0} {$at < $::elements} {incr at 500} {
        set names {}
        set pairs {}
        set numbers {}
        for {set i $at} {$i < $at + 500} {incr i} {
            lappend names name:$i
            lappend pairs name:$i $i
            lappend numbers [expr {$i * 7919 % $::elements}]
        }
        r sadd s {*}$names
        r sadd t {*}[lrange $names 0 249]
        r hset h {*}$pairs
        r rpush l {*}$numbers
        r zadd z {*}[lreverse $pairs]
        r mset {*}$pairs
    }
}

# Streams with pending entries and consumers, places, long texts, small collections.
proc fill_others {} {
    for {set i 1} {$i <= $::elements} {incr i} {
        lappend entries xadd x $i-1 field $i other value$i
        lappend places [expr {$i * 7 % 180}].$i [expr {$i * 3 % 80}].$i place:$i
    }
    foreach {cmd key id f v g w} $entries {r $cmd $key $id $f $v $g $w}
    r xadd x2 1-1 f v
    r xgroup create x g 0
    for {set i 0} {$i < 50} {incr i} {
        r xgroup create x2 group$i 0
        r xreadgroup group g consumer$i count 100 streams x >
    }
    r geoadd geo {*}$places
    r set text [string repeat "abcdefgh\x00" 250000]
    r setrange zeros 2000000 x
    r set a [string repeat abcdefghij 100]
    r set b [string repeat axcyefzhij 100]
    r sadd few a b c
    r sadd numbers 1 2 3
    r zadd rank 1 a 2 b 3 c
    r hset record a 1 b 2 c 3
}

# A client with a job that is held in the middle; `words` is its command.
proc held {words {first {}}} {
    r debug pause-jobs 1
    set running [info_field jobs_running]
    set c [connect]
    foreach command $first {$c {*}$command}
    $c -send {*}$words
    info_is jobs_running [expr {$running + 1}]
    return $c
}

# Lets it go on; its reply: the number of its items, all of them, or sorted.
proc finish {c {what count}} {
    r debug pause-jobs 0
    set reply [$c -read]
    switch $what {
        count {return [llength $reply]}
        sorted {return [lsort $reply]}
        default {return $reply}
    }
}

start_server {tags {jobs} overrides {enable-debug-command yes save {}}} {
    r config set command-slice-us 10
    fill

    test {a read in slices has the reply of one in one piece} {
        foreach words {
            {smembers s} {hgetall h} {hkeys h} {hvals h} {hgetallex h} {lrange l 0 -1} {lrange l 10 -10} {zrange z 0 -1 withscores}
            {zrange z 0 -1 rev} {zrangebyscore z 100 4000} {zrevrangebylex z + -} {sort l} {sort l desc limit 5 2000}
            {sort s alpha} {sort_ro l by nosort} {sinter s t} {sunion s t} {sdiff s t} {sintercard 2 s t} {sunioncard 2 s t}
            {sdiffcard 2 s t} {zinter 2 z s} {zunion 2 z s withscores} {zdiff 2 z t withscores} {zintercard 2 z s}
            {lpos l 1 count 0} {lpos l none} {keys *} {keys name:1*} {scan 0 count 100000} {hscan h 0 count 100000}
            {sscan s 0 count 100000 match *1} {zscan z 0 count 100000}
        } {
            foreach us {0 10} {
                r config set command-slice-us $us
                set done [info_field jobs_done]
                set replies($us) [r -typed {*}$words]
                assert_equal [expr {$us > 0}] [expr {[info_field jobs_done] > $done}] $words
            }
            # Sets and tables have no order.
            lassign $replies(0) type plain
            lassign $replies(10) sliced_type sliced
            assert_equal $type $sliced_type $words
            if {[string match {*s*[cd]*} [lindex $words 0]] || [lindex $words 0] in {keys smembers sunion sinter}} {
                assert_equal [lsort $plain] [lsort $sliced] $words
            } else {
                assert_equal $plain $sliced $words
            }
        }
    }

    test {reads of other types in slices have the reply of one in one piece} {
        fill_others
        foreach words {
            {xrange x - +} {xrevrange x + - count 4000} {xread streams x 0} {xread count 3000 streams x x2 0 0}
            {xread maxcount 3000 streams x 0} {xpending x g - + 5000} {xpending x g} {xinfo stream x full count 0}
            {xinfo consumers x g} {xinfo groups x2} {geosearch geo fromlonlat 10 10 byradius 20000 km}
            {geosearch geo fromlonlat 10 10 byradius 20000 km asc withdist withhash}
            {georadius_ro geo 10 10 20000 km desc withcoord} {geosearch geo fromlonlat 10 10 bybox 9000 9000 km count 500}
            {geosearch geo fromlonlat 10 10 bybox 9000 9000 km any count 500} {memory usage s samples 0} {memory usage h samples 4000}
            {memory usage z samples 0} {dump s} {dump h} {dump z} {dump l} {dump x} {dump text} {bitcount text} {bitcount text 100 -7}
            {bitcount text 13 1500000 bit} {bitpos text 1 100000} {bitpos zeros 1} {bitpos zeros 0 1 -1 bit} {lcs a b} {lcs a b len}
            {lcs a b idx withmatchlen}
        } {
            foreach us {0 10} {
                r config set command-slice-us $us
                set done [info_field jobs_done]
                set replies($us) [r -typed {*}$words]
                assert_equal [expr {$us > 0}] [expr {[info_field jobs_done] > $done}] $words
            }
            # How long an entry or a consumer has been idle.
            if {[lindex $words 0] in {xpending xinfo}} {
                foreach us {0 10} {regsub -all {integer \d{3,}\}} $replies($us) {} replies($us)}
            }
            assert_equal $replies(0) $replies(10) $words
        }
        set names {}
        for {set i 0} {$i < 100} {incr i} {
            r pfadd p$i {*}[lrange [r smembers s] 0 [expr {$i * 20}]]
            r pfdebug todense p$i
            lappend names p$i none$i
        }
        foreach us {0 10} {
            r config set command-slice-us $us
            r config resetstat
            set replies($us) [list [r pfcount {*}$names] [info_field keyspace_hits] [info_field keyspace_misses]]
        }
        assert_equal $replies(0) $replies(10)
        assert_equal 1 [info_field jobs_done]
        r set p0 none
        assert_error "WRONGTYPE *" {r pfcount {*}$names}
    }

    test {random elements in slices are elements} {
        set members [lsort [r smembers s]]
        foreach {words count} {{srandmember s 4000} 4000 {srandmember s 600} 600 {srandmember s -9000} 9000 {hrandfield h 4000} 4000
            {hrandfield h -9000} 9000 {zrandmember z 4000} 4000 {zrandmember z -9000} 9000 {srandmember few -9000} 9000
            {srandmember numbers -9000} 9000 {hrandfield record -9000} 9000 {zrandmember rank -9000} 9000} {
            set done [info_field jobs_done]
            set chosen [r {*}$words]
            assert_equal $count [llength $chosen] $words
            assert_equal [expr {$done + 1}] [info_field jobs_done] $words
            set unique [lsort -unique $chosen]
            if {$count <= 4000} {assert_equal $count [llength $unique] $words}
            if {[lindex $words 1] in {s h z}} {
                foreach name $unique {assert {[lsearch -sorted -exact $members $name] >= 0}}
            } else {
                assert_equal {a b c} [string map {1 a 2 b 3 c} $unique] $words
            }
        }
        r hpexpire h 1 fields 2 name:1 name:2
        wait_for_condition 600 5 {[llength [r hmget h name:1 name:2]] == 2 && [r hget h name:1] eq "" && [r hget h name:2] eq ""}
        set done [info_field jobs_done]
        r hexpire h 1000 fields 1 name:3
        assert {[r hrandfield h] ni {name:1 name:2}}
        assert_equal [expr {$::elements - 2}] [llength [r hrandfield h 10000]]
        assert_equal [expr {$done + 2}] [info_field jobs_done]
        fill
    }

    test {the end of the client ends reads of other types} {
        fill_others
        foreach words {
            {xrange x - +} {xinfo stream x full count 0} {xpending x g - + 5000} {geosearch geo fromlonlat 10 10 byradius 20000 km asc}
            {srandmember s 4000} {hrandfield h -9000} {memory usage s samples 0} {dump s} {dump text} {bitcount text} {bitpos zeros 1}
            {lcs a b} {lcs a b idx}
        } {
            set aborted [info_field jobs_aborted]
            set c [held $words]
            $c -close
            info_is jobs_running 0
            info_is jobs_aborted [incr aborted]
        }
        r debug pause-jobs 0
        fill
    }

    test {hits, calls and failures are counted once} {
        r config resetstat
        r smembers s
        assert_error "WRONGTYPE *" {r sinter s l}
        assert_equal {3 1 0} [list [info_field keyspace_hits] [info_field jobs_done] [info_field jobs_running]]
        assert_match {calls=1,*failed_calls=0} [info_field cmdstat_smembers]
        assert_match {calls=1,*failed_calls=1} [info_field cmdstat_sinter]
    }

    test {writes to keys of another database wait for jobs that read them there} {
        fill
        r set x value
        foreach {words reply} {
            {copy x d db 9 replace} 1 {move d 9} 0 {move d 9 replace} 1 {{multi} {select 9} {scard d} {srem d name:1} {exec}} {OK 5000 1}
            {{multi} {get x} {select 9} {del d} {exec}} {value OK 1}
        } {
            r copy s d db 9 replace
            r sadd d other
            set c [held {smembers d} {{select 9}}]
            r config resetstat
            set writer [connect]
            set last $words
            if {[llength [lindex $words 0]] > 1 || [lindex $words 0] eq "multi"} {
                set last [lindex $words end]
                foreach command [lrange $words 0 end-1] {$writer {*}$command}
            }
            $writer -send {*}$last
            info_is job_writes_held 1
            assert_equal {0 1} [list [info_field jobs_in_one_piece] [info_field jobs_running]] $words
            assert_equal $::elements [finish $c] $words
            assert_equal $reply [$writer -read] $words
            assert_equal 0 [info_field jobs_in_one_piece] $words
        }
        fill
    }

    test {a wait that another gate has ended is over: the next one begins anew} {
        r acl setuser bob reset on nopass ~* &* +@all
        set writer [connect]
        $writer auth bob any
        r config resetstat
        set a [held {smembers s}]
        set b [held {smembers t}]
        $writer -send sadd s more
        info_is job_writes_held 1
        r acl setuser bob -sadd
        $a -close
        assert_error "NOPERM *" {$writer -read}
        r acl setuser bob +sadd
        r config resetstat
        set begun [clock microseconds]
        $writer -send sadd t name:1
        info_is job_writes_held 1
        r debug pause-jobs 0
        assert_equal 0 [$writer -read]
        assert_range [info_field job_longest_wait_usec] 1 [expr {[clock microseconds] - $begun}]
        assert_equal [r scard t] [llength [$b -read]]
        r acl deluser bob
    }

    test {a snapshot of a value with hidden members ends the jobs that read it, and no others} {
        r config set snapshot-mode inline
        r debug set-active-expire 0
        foreach key {s y} in_one_piece {0 1} {
            r copy z y replace
            r config resetstat
            r zpexpire y 1 members 1 name:7
            wait_for_condition 600 5 {[r zscore y name:7] eq ""}
            set c [held [expr {$key eq "s" ? {smembers s} : {zrange y 0 -1}}]]
            r bgsave
            info_is rdb_bgsave_in_progress 0
            assert_equal $in_one_piece [info_field jobs_in_one_piece] $key
            assert_equal [expr {$::elements - $in_one_piece}] [finish $c]
        }
        r debug set-active-expire 1
        r config set snapshot-mode auto
        r del y
    }

    test {small reads, transactions and scripts run in one piece} {
        set done [info_field jobs_done]
        r sadd small a b c
        assert_equal {a b c} [lsort [r smembers small]]
        r multi
        r smembers s
        r keys *
        assert_equal $::elements [llength [lindex [r exec] 0]]
        assert_equal $::elements [r eval {return #redis.call('smembers', KEYS[1])} 1 s]
        assert_equal $done [info_field jobs_done]
        r del small
    }

    test {others are served meanwhile, and readers of the same key, too} {
        set c [held {smembers s}]
        assert_equal PONG [r ping]
        assert_equal $::elements [r scard s]
        assert_equal OK [r set other value]
        assert_match {*flags=bj *} [lindex [lsearch -inline [split [r client list] "\n"] {*cmd=smembers *}]]
        assert_equal $::elements [finish $c]
        assert_equal 1 [r del other]
    }

    test {its client's line tells how far it is, as other lines do not} {
        r config set command-slice-us 10
        set c [held {smembers s}]
        set lines [split [string trim [r client list]] "\n"]
        set line [lsearch -inline $lines {*cmd=smembers *}]
        assert {[regexp { tot-cmds=\d+ job-visited=(\d+) job-elements=(\d+) job-usec=\d+$} $line all visited elements]}
        assert_equal $::elements $elements
        assert {$visited > 0 && $visited < $elements}
        assert_equal 1 [llength [lsearch -all $lines *job-*]]
        assert_equal $::elements [finish $c]
        assert_equal -1 [lsearch [split [r client list] "\n"] *job-*]
    }

    test {the command log has the time of execution, and COMMANDLOG USERS that from begin to end, too} {
        r config set commandlog-execution-slower-than 0
        r commandlog reset slow
        set c [held {smembers s}]
        set waited [clock milliseconds]
        wait_for_condition 1000 20 {[clock milliseconds] > $waited + 200}
        assert_equal $::elements [finish $c]
        r config set commandlog-execution-slower-than -1
        set entry [lsearch -inline -index 3 [r commandlog users -1 slow] {smembers s}]
        assert_equal 8 [llength $entry]
        assert {[lindex $entry 7] > 200000 && [lindex $entry 2] <= [lindex $entry 7]}
        assert_equal 6 [llength [lsearch -inline -index 3 [r slowlog get -1] {smembers s}]]
    }

    test {users have the same share of the slices, whatever the number of their clients} {
        r acl setuser many on nopass ~* +@all
        r debug pause-jobs 1
        set clients {}
        for {set i 0} {$i < 15} {incr i} {
            set c [connect]
            if {$i} {$c auth many x}
            lappend clients $c
        }
        foreach c [lreverse $clients] {$c -send sort s alpha}
        [lindex $clients 0] -send info stats
        info_is jobs_running 15
        r debug pause-jobs 0
        assert_equal $::elements [llength [[lindex $clients 0] -read]]
        # Without shares by user, those that have begun before it would have ended before it.
        regexp {jobs_running:(\d+)} [[lindex $clients 0] -read] all running
        assert {$running > 0}
        foreach c [lrange $clients 1 end] {assert_equal $::elements [llength [$c -read]]}
        r acl deluser many
    }

    test {writes to its keys wait until it ends, in their order, and it does not see them} {
        set c [held {smembers s}]
        set writer [connect]
        $writer -send srem s name:1
        $writer -send scard s
        wait_for_condition 600 50 {[info_field job_writes_held] > 0}
        assert_equal $::elements [r scard s]
        assert_equal 1 [r sadd t more] ;# another key
        assert_equal $::elements [finish $c]
        assert_equal 1 [$writer -read]
        assert_equal [expr {$::elements - 1}] [$writer -read]
        assert {[info_field job_longest_wait_usec] > 0}
        r sadd s name:1
        r srem t more
    }

    test {transactions and scripts that name its keys wait, too} {
        set c [held {hgetall h}]
        set other [connect]
        $other multi
        $other hset h name:1 new
        $other -send exec
        set third [connect]
        $third -send eval {return redis.call('hset', KEYS[1], 'name:2', 'new')} 1 h
        $third -send get name:3
        wait_for_condition 600 50 {[info_field blocked_clients] == 3}
        assert_equal 1 [r hget h name:1]
        set all [finish $c all]
        assert_equal {1 2} [list [dict get $all name:1] [dict get $all name:2]]
        assert_equal {0 0 3} [list [$other -read] [$third -read] [$third -read]]
        assert_equal {new new} [r hmget h name:1 name:2]
    }

    test {what cannot wait ends it in one piece, before the change} {
        foreach change {
            {eval {return redis.call('del', 's')} 0} {eval {return redis.call('rename', 's', 's3')} 0} {flushall} {flushdb async}
            {swapdb 0 1} {debug reload}
        } {
            fill
            set c [held {smembers s}]
            set pieces [info_field jobs_in_one_piece]
            r {*}$change
            assert_equal $::elements [llength [$c -read]] $change
            assert_equal [expr {$pieces + 1}] [info_field jobs_in_one_piece] $change
            r debug pause-jobs 0
            if {[lindex $change 0] eq "swapdb"} {r swapdb 0 1}
        }
        fill
    }

    test {KEYS replies the keys of one moment, whatever changes meanwhile} {
        r debug pause-jobs 0
        set expected [lsort [r keys *]]
        set c [held {keys *}]
        for {set i 0} {$i < $::elements} {incr i 2} {r del name:$i}
        for {set i 0} {$i < $::elements} {incr i} {r set new:$i value}
        for {set i 0} {$i < $::elements} {incr i 4} {r set name:$i again}
        for {set i 1} {$i < $::elements} {incr i 4} {r rename name:$i name:x$i}
        r del s
        assert_equal $expected [finish $c sorted]
        fill
    }

    test {the end of the client ends it} {
        foreach how {close kill} {
            set aborted [info_field jobs_aborted]
            foreach words {{smembers s} {keys *} {zunion 2 z s} {sort s alpha} {hscan h 0 count 10000} {sdiff s t} {lpos l none}} {
                set c [held $words]
                if {$how eq "close"} {
                    $c -close
                } else {
                    regexp {id=(\d+)} [lsearch -inline [split [r client list] "\n"] *cmd=[lindex $words 0]*] all id
                    assert_equal 0 [r client unblock $id]
                    assert_equal 1 [r client kill id $id]
                }
                info_is jobs_running 0
                info_is jobs_aborted [incr aborted]
            }
        }
        r debug pause-jobs 0
        assert_equal $::elements [llength [r smembers s]]
    }

    test {long replies of many jobs that end together are spread over turns} {
        r set long [string repeat x 300000]
        r copy s longs
        r sadd longs [r get long]
        set clients {}
        for {set i 0} {$i < 16} {incr i} {lappend clients [held {smembers longs}]}
        r config set command-slice-us 1000000
        r config resetstat
        set turns [info_field eventloop_cycles]
        r debug pause-jobs 0
        foreach c $clients {assert_equal [expr {$::elements + 1}] [llength [$c -read]]}
        assert {[info_field eventloop_cycles] - $turns >= 16}
        assert_equal {16 0} [list [info_field jobs_done] [info_field jobs_in_one_piece]]
        r config set command-slice-us 10
        r del long longs
    }

    test {many at a time end, each with its own reply, and later requests of a client after them} {
        set clients {}
        foreach i {1 2 3 4} {
            foreach words {{smembers s} {hkeys h} {lrange l 0 -1} {zrange z 0 -1} {sort l} {zunion 2 s z}} {
                lappend clients [held $words]
                [lindex $clients end] -send echo [lindex $words 0]
            }
        }
        assert_equal 24 [info_field jobs_running]
        r debug pause-jobs 0
        foreach c $clients {
            set sizes([llength [$c -read]]) [$c -read]
        }
        assert_equal $::elements [array names sizes]
        info_is jobs_running 0
    }

    test {messages arrive between requests, not within the reply} {
        set c [connect 3]
        $c -send subscribe channel
        $c -push
        r debug pause-jobs 1
        $c -send smembers s
        info_is jobs_running 1
        r publish channel message
        assert_equal {message channel message} [$c -message]
        assert_equal $::elements [finish $c]
    }

    test {replies that are switched off are not sent} {
        set c [connect]
        $c -send client reply off
        $c -send smembers s
        $c -send client reply on
        assert_equal OK [$c -read]
    }

    test {a cached key is invalidated by a write that has waited} {
        set c [connect 3]
        $c client tracking on
        r debug pause-jobs 1
        $c -send smembers s
        info_is jobs_running 1
        set writer [connect]
        $writer -send sadd s another
        wait_for_condition 600 50 {[info_field blocked_clients] == 2}
        assert_equal $::elements [finish $c]
        assert_equal {invalidate s} [$c -push]
        assert_equal 1 [$writer -read]
        r srem s another
    }

    test {a cached key is invalidated after the reply, also by a write that does not wait} {
        foreach {change mode push} {
            {eval {return redis.call('srem', 's', 'name:1')} 0} {} s
            {eval {return redis.call('sadd', 's', 'name:1')} 0} bcast s
            {flushall} {} {}
        } {
            set c [connect 3]
            $c client tracking on {*}$mode
            set other [held {smembers t}]
            $c -send smembers s
            info_is jobs_running 2
            set size [r scard s]
            r {*}$change
            assert_equal $size [llength [$c -read]]
            assert_equal {} [$c -pushes] $change
            assert_equal [list invalidate $push] [$c -push] $change
            $other -close
            r debug pause-jobs 0
        }
        fill
    }

    test {the limit of the output applies to the whole reply} {
        r config set client-output-buffer-limit {normal 30000 0 0}
        set c [connect]
        catch {$c smembers s} message
        assert_match {*clos*} [string tolower $message]
        r config set client-output-buffer-limit {normal 0 0 0}
    }

    test {more than 1,000 arguments are no job} {
        set done [info_field jobs_done]
        assert_equal $::elements [llength [r sunion {*}[lrepeat 1000 s]]]
        assert_equal $done [info_field jobs_done]
        r config set command-slice-us 10000 ;# slices of 10 us of five million elements take long on a busy machine
        assert_equal $::elements [llength [r sunion {*}[lrepeat 999 s]]]
        assert_equal [expr {$done + 1}] [info_field jobs_done]
        r config set command-slice-us 10
    }

    test {LATENCY has an event for long slices} {
        r config set latency-monitor-threshold 1
        r debug populate 200000 many 10
        set c [held {keys *}]
        r flushall
        $c -read
        assert_match {*slice*} [r latency latest]
        assert_match {*. slice: *Commands that run in slices (command-slice-us 10) had slices of more than twice that.*} [r latency doctor]
        r config set latency-monitor-threshold 0
        r latency reset
        r debug pause-jobs 0
        fill
    }

    test {a snapshot and a fork beside it do not change its reply} {
        set expected [lsort [r zrange z 0 -1]]
        set digest [r debug digest]
        set c [held {zrange z 0 -1}]
        foreach method {forkless fork} {
            r config set bgsave-default-method $method
            r bgsave
            info_is rdb_bgsave_in_progress 0
            assert_equal ok [info_field rdb_last_bgsave_status]
        }
        assert_equal $digest [r debug digest]
        assert_equal $expected [finish $c sorted]
    }

    test {keys and fields that are being read do not expire} {
        r config resetstat
        r hpexpire h 2500 fields 2 name:1 name:2
        r set short value px 1
        r pexpire s 2500
        set over [expr {[clock milliseconds] + 2600}]
        set clients [list [held {smembers s}] [held {hkeys h}]]
        wait_for_condition 600 50 {[info_field expired_keys] > 0}
        wait_for_condition 3000 10 {[clock milliseconds] > $over}
        r set short value px 1
        wait_for_condition 600 50 {[info_field expired_keys] > 1}
        assert_equal {2 0} [list [info_field jobs_running] [info_field jobs_in_one_piece]]
        foreach c $clients {assert_equal $::elements [finish $c]}
        wait_for_condition 600 50 {[info_field expired_keys] == 3 && [r hlen h] == $::elements - 2}
        fill
    }

    test {its client's reply is right when the server becomes a replica} {
        set c [held {smembers s}]
        r replicaof 127.0.0.1 1
        r debug pause-jobs 0
        assert_equal $::elements [llength [$c -read]]
        r replicaof no one
    }
}
