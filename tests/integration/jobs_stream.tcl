# SPDX-License-Identifier: BSD-3-Clause
#
# Commands of the primary's stream that store a result run in slices at a replica (src/engine/job.h): the stream waits, clients of
# the replica do not. Until the effect the command does not count as applied. DEBUG PAUSE-JOBS keeps it in the middle.
#
# Levels: 0 is the primary, -1 its replica with an append only file, -2 a replica of that one.

source $::tests_dir/support/replication.tcl

set settings {enable-debug-command yes save {} repl-diskless-sync-delay 0 command-slice-us 10 repl-ping-replica-period 1}

proc field {level name} {
    regexp "\n$name:(\[^\r\n\]*)" [r $level info everything] all value
    return $value
}

proc field_is {level name value} {
    wait_for_condition 600 50 {[field $level $name] eq $value} else {fail "$name is [field $level $name], not $value"}
}

proc fill {} {
    r flushall
    for {set at 0} {$at < 5000} {incr at 500} {
        set members {}
        set pairs {}
        for {set i $at} {$i < $at + 500} {incr i} {
            lappend members m:$i
            lappend pairs [expr {$i % 50}] m:$i
        }
        r sadd s {*}$members
        r rpush l {*}$members
        r zadd z {*}$pairs
    }
    r set d old
    same_data -0 -1 -2
}

# The replica has begun the command and is held in the middle; writes follow it.
proc held {words} {
    r -1 debug pause-jobs 1
    r {*}$words
    field_is -1 jobs_running 1
    r set after $words
}

proc all_have {} {
    r -1 debug pause-jobs 0
    same_data -0 -1 -2
    set offsets [lmap level {-0 -1 -2} {dict get [stream_of $level] offset}]
    assert_equal 1 [llength [lsort -unique $offsets]]
    set digest [r -1 debug digest]
    assert_equal OK [r -1 debug loadaof]
    assert_equal $digest [r -1 debug digest]
}

start_server [list tags {jobs repl needs:servers tls:skip} overrides $settings] {
start_server [list overrides [concat $settings {appendonly yes auto-aof-rewrite-percentage 0}]] {
start_server [list overrides $settings] {
    r -1 replicaof [srv host] [srv port]
    link_is up -1
    r -2 replicaof [srv -1 host] [srv -1 port]
    link_is up -2
    fill

    test {clients of a replica are served while it applies a long command of its primary} {
        foreach words {{sunionstore d s} {zunionstore d 2 z s} {sort l alpha store d} {copy s d replace} {zrangestore d z 0 -1}
            {linsert l before m:4999 x} {lrem l 0 x}} {
            r set d old
            same_data -0 -1 -2
            set done [field -1 jobs_done]
            held $words
            assert_equal {old 5000 0} [list [r -1 get d] [r -1 scard s] [r -1 exists after]] $words
            assert_equal old [r -2 get d]
            all_have
            assert_equal [expr {$done + 1}] [field -1 jobs_done] $words
            assert_equal $words [r -2 get after]
            r del after
        }
    }

    test {it is not acknowledged before its effect} {
        held {sunionstore d s}
        set before [field -1 master_repl_offset]
        assert_range $before 1 [expr {[field -0 master_repl_offset] - 1}]
        assert_equal 0 [r wait 1 50]
        assert_equal $before [field -1 master_repl_offset]
        assert_equal $before [field -2 master_repl_offset]
        r -1 debug pause-jobs 0
        assert_equal 1 [r wait 1 0]
        all_have
    }

    test {the link stays up for longer than repl-timeout} {
        foreach level {-0 -1} {r $level config set repl-timeout 5}
        set syncs [list [field -0 sync_full] [field -0 sync_partial_ok]]
        held {sunionstore d s}
        # Ten bytes or more for each PING of one second.
        set begun [field -0 master_repl_offset]
        wait_for_condition 600 50 {[field -0 master_repl_offset] - $begun > 7 * 14}
        assert_equal {up 1} [list [field -1 master_link_status] [field -1 jobs_running]]
        all_have
        assert_equal $syncs [list [field -0 sync_full] [field -0 sync_partial_ok]]
        foreach level {-0 -1} {r $level config set repl-timeout 60}
    }

    test {if the link ends in the middle, the command is sent again} {
        foreach how {kill replicaof} {
            r set d old
            same_data -0 -1 -2
            set partial [field -0 sync_partial_ok]
            set full [field -0 sync_full]
            held {sunionstore d s}
            if {$how eq "kill"} {
                r -1 client kill type primary
            } else {
                r -1 replicaof no one
                field_is -1 jobs_running 0
                assert_equal {old 0} [list [r -1 get d] [r -1 exists after]]
                r -1 replicaof [srv host] [srv port]
            }
            r -1 debug pause-jobs 0
            link_is up -1
            link_is up -2
            all_have
            assert_equal 5000 [r -2 scard d]
            if {$how eq "kill"} {
                assert_equal [list $full [expr {$partial + 1}]] [list [field -0 sync_full] [field -0 sync_partial_ok]]
            }
            r del after
        }
    }

    test {a replica that is promoted in the middle has not begun the command} {
        r set d old
        same_data -0 -1 -2
        set digest [r -1 debug digest]
        held {sunionstore d s}
        r -1 replicaof no one
        r -1 debug pause-jobs 0
        field_is -1 jobs_running 0
        assert_equal $digest [r -1 debug digest]
        r -1 set mine 1
        same_data -1 -2
        r -1 replicaof [srv host] [srv port]
        link_is up -1
        link_is up -2
        all_have
        assert_equal {set 0} [list [r -2 type d] [r -2 exists mine]]
    }

    test {a pause of the replica holds the effect} {
        r set d old
        same_data -0 -1 -2
        held {sunionstore d s}
        r -1 client pause 100000 write
        r -1 debug pause-jobs 0
        # Its result is complete before those of later jobs.
        assert_equal 5000 [llength [r -1 smembers s]]
        assert_equal {old 1} [list [r -1 get d] [field -1 jobs_running]]
        r -1 client unpause
        all_have
        assert_equal 5000 [r -1 scard d]
    }

    test {transactions of the stream are no jobs, nor is what takes no time} {
        foreach commands {
            {{multi} {sunionstore d s} {sort l alpha store e} {exec}} {{sadd s more} {srem s more}}
            {{eval {redis.call('sunionstore', 'd', 's'); return redis.call('sunionstore', 'e', 's')} 0}} {{spop s2 5000}}
        } {
            r copy s s2 replace
            r del d e
            same_data -0 -1 -2
            set done [field -1 jobs_done]
            foreach command $commands {r {*}$command}
            all_have
            assert_equal $done [field -1 jobs_done] $commands
        }
    }

    test {a source that has expired in the middle} {
        r set d old
        r pexpire s 300
        held {sunionstore d s}
        wait_for_condition 600 20 {[r exists s] == 0}
        all_have
        fill
    }

    test {sources that are changed by a writable replica in the middle} {
        r set d old
        same_data -0 -1 -2
        r -1 config set replica-read-only no
        held {sunionstore d s}
        r -1 eval {return redis.call('srem', 's', 'm:1')} 0
        assert_equal old [r -1 get d]
        r -1 debug pause-jobs 0
        same_offset -0 -1
        assert_equal 4999 [r -1 scard d]
        r -1 config set replica-read-only yes
        fill
    }

    test {a replica that is killed in the middle} {
        r set d old
        same_data -0 -1 -2
        held {sunionstore d s}
        r -1 config set appendfsync always
        set link [connect_to [srv -1 host] [srv -1 port] 2 [srv -1 password]]
        $link -send debug restart
        catch {$link -read}
        drop_clients
        wait_for_condition 600 50 {![catch {r -1 ping}]}
        r -1 config set command-slice-us 10
        if {[field -1 role] eq "master"} {r -1 replicaof [srv host] [srv port]}
        link_is up -1
        link_is up -2
        same_data -0 -1 -2
        assert_equal 5000 [r -1 scard d]
    }

    test {a command of the stream that fails at the replica, in its first slice or later} {
        foreach {behaviour count at} {ignore 50 0 ignore 5000 4999 stop 50 0 stop 5000 4999} {
            set what "$behaviour, $count"
            r -1 config set propagation-error-behavior $behaviour
            r del l d before after
            set numbers {}
            for {set i 0} {$i < $count} {incr i} {lappend numbers $i}
            r rpush l {*}$numbers
            same_data -0 -1 -2
            set errors [field -1 master_stream_errors]
            r -1 config set replica-read-only no
            r -1 lset l $at abc
            r -1 config set replica-read-only yes
            r -write [resp::encode {set before 1}][resp::encode {sort l store d}][resp::encode {set after 1}]
            assert_equal [list OK $count OK] [list [r -read] [r -read] [r -read]] $what
            field_is -1 master_stream_errors [expr {$errors + 1}]
            if {$behaviour eq "ignore"} {
                same_offset -0 -1
                assert_equal {1 0 1} [list [r -1 exists before] [r -1 exists d] [r -1 exists after]] $what
                assert_equal abc [r -1 lindex l $at]
                r del l d
            } else {
                wait_for_condition 600 50 {[string match "*\nmaster_link_stopped:a command failed*" [r -1 info replication]]}
                assert_equal {1 0 0} [list [r -1 exists before] [r -1 exists d] [r -1 exists after]] $what
                r -1 replicaof [srv host] [srv port]
                link_is up -1
                link_is up -2
            }
            same_data -0 -1 -2
        }
    }
}
}
}
