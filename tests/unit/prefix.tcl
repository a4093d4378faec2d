# SPDX-License-Identifier: BSD-3-Clause
#
# DELPREFIX and COUNTPREFIX: whole and in steps, what they tell others, and users. Clusters: cluster/prefix.tcl.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl

# Sets keys by commands, which are propagated.
proc fill {level prefix count} {
    for {set i 0} {$i < $count} {incr i} {lappend pairs $prefix:$i value$i}
    r $level mset {*}$pairs
}

# Runs steps of a command until the cursor is 0; the sum of what they found.
proc steps {command prefix count} {
    set cursor 0
    set sum 0
    while 1 {
        lassign [r $command $prefix count $count cursor $cursor] cursor found
        assert_range $found 0 [expr {$count + 100}]
        incr sum $found
        if {$cursor == 0} {return $sum}
    }
}

start_server {tags {keyspace extended} overrides {enable-debug-command yes save {} repl-diskless-sync-delay 0}} {
    test {DELPREFIX deletes the keys that begin with the prefix and no others} {
        foreach key {user user: user:1 user:2 user:2:a users User:1 xuser:1 {}} {r set $key value}
        r rpush user:list {*}[lrepeat 1000 element]
        assert_equal {integer 5} [r -typed delprefix user:]
        assert_equal [lsort {user users User:1 xuser:1 {}}] [lsort [r keys *]]
        assert_equal 0 [r delprefix user:]
        assert_equal 2 [r delprefix user]
        assert_equal 3 [r dbsize]
    }

    test {a prefix is bytes and no pattern} {
        r flushall
        r mset a* 1 ab 2 a*b 3 "\x00\xff1" 4 "\x00\xfe" 5 {[x]1} 6 x1 7
        assert_equal 2 [r countprefix a*]
        assert_equal 2 [r delprefix a*]
        assert_equal 1 [r delprefix "\x00\xff"]
        assert_equal 1 [r delprefix {[x]}]
        assert_equal [lsort [list ab x1 "\x00\xfe"]] [lsort [r keys *]]
    }

    test {COUNTPREFIX counts without changing anything, and without expired keys} {
        r flushall
        r debug populate 3000 a
        r debug populate 2000 ab
        assert_equal {integer 5000} [r -typed countprefix a]
        assert_equal 2000 [r countprefix ab:]
        assert_equal 5000 [r countprefix {}]
        assert_equal 0 [r countprefix c]
        r debug set-active-expire 0
        r set a:short value px 1
        wait_for_condition 100 10 {[r exists a:short] == 0}
        assert_equal 5000 [r countprefix a]
        r debug set-active-expire 1
        assert_equal 5000 [r dbsize]
    }

    test {steps look at COUNT keys each, and together at all} {
        assert_equal 3000 [steps countprefix a: 10]
        assert_equal 3000 [steps countprefix a: 100000]
        assert_equal {array bulk integer} [list [lindex [set typed [r -typed countprefix a: count 1]] 0] \
            [lindex $typed 1 0 0] [lindex $typed 1 1 0]]
        assert_equal 3000 [steps delprefix a: 100]
        assert_equal 2000 [r dbsize]
        assert_equal 2000 [lindex [r delprefix ab: count 1000000] 1]
        assert_equal 0 [r dbsize]
    }

    test {keys that are there throughout are deleted, whatever else changes} {
        r debug populate 2000 keep
        r debug populate 2000 gone
        set cursor 0
        set i 0
        while 1 {
            lassign [r delprefix gone: count 50 cursor $cursor] cursor found
            r set new:[incr i] value
            r del keep:$i
            if {$cursor == 0} break
        }
        assert_equal 0 [r countprefix gone:]
        assert_equal [expr {2000 - [r countprefix keep:]}] [expr {min($i, 1999)}]
    }

    test {what is wrong is refused and changes nothing} {
        r flushall
        r set a:1 value
        foreach {words error} {
            {} "ERR wrong number of arguments for '%' command"
            {a: count} "ERR syntax error" {a: count 10 cursor} "ERR syntax error" {a: match x} "ERR syntax error"
            {a: count 0} "ERR value is not an integer or out of range" {a: count x} "ERR value is not an integer or out of range"
            {a: cursor x} "ERR invalid cursor"
        } {
            foreach command {delprefix countprefix} {assert_error [string map [list % $command] $error] {r $command {*}$words}}
        }
        assert_error "ERR the prefix is empty, use FLUSHDB to delete all keys" {r delprefix {}}
        assert_error "ERR the prefix is empty, use FLUSHDB to delete all keys" {r delprefix {} count 10}
        assert_equal 1 [r dbsize]
    }

    test {in transactions and scripts there are steps alone} {
        assert_error "ERR delprefix needs COUNT in transactions and scripts*" {r eval {return redis.call('delprefix', 'a:')} 0}
        assert_equal 1 [r dbsize]
        r multi
        r countprefix a:
        r countprefix a: count 1000
        r delprefix a: count 1000
        set replies [lindex [r -typed exec] 1]
        assert_equal {error {ERR countprefix needs COUNT in transactions and scripts}} [lindex $replies 0]
        set step {array {{bulk 0} {integer 1}}}
        assert_equal [list $step $step] [lrange $replies 1 end]
        r set a:1 value
        assert_equal {0 1} [r eval {return redis.call('delprefix', 'a:', 'count', 1000)} 0]
    }

    test {keyspace events, WATCH and client caches see each deleted key} {
        r mset a:1 1 a:2 2 b:1 3
        r config set notify-keyspace-events KEA
        set c [connect 3]
        $c -send psubscribe __keyspace@*__:a:*
        $c -push
        set other [connect]
        $other watch a:1
        assert_equal 2 [r delprefix a:]
        set seen {}
        foreach i {1 2} {
            set push [$c -push]
            lappend seen [lrange $push 2 3]
        }
        assert_equal {{__keyspace@0__:a:1 del} {__keyspace@0__:a:2 del}} [lsort $seen]
        $other multi
        $other ping
        assert_equal {} [$other exec]
        r config set notify-keyspace-events {}
    }

    test {replicas get UNLINK of the keys that were deleted} {
        r flushall
        r mset a:1 1 b:1 1 a:2 2
        set s [dict get [replica_sync] socket]
        assert_equal 2 [r delprefix a:]
        replica_expect $s SELECT 0
        while {[set words [replica_next $s]] eq "ping"} {}
        assert_equal {UNLINK a:1 a:2} [list [lindex $words 0] {*}[lsort [lrange $words 1 end]]]
        r delprefix none
        r countprefix b
        r delprefix b count 100
        replica_expect $s UNLINK b:1
        raw_close $s
    }

    test {a replica and the append only file have what is left} {
        r flushall
        r config set appendonly yes
        foreach {field value} {aof_enabled 1 aof_rewrite_scheduled 0 aof_rewrite_in_progress 0} {info_is $field $value}
        start_server {tags {tls:skip} overrides {save {}}} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            fill -1 keep 3000
            fill -1 gone 3000
            assert_equal 3000 [r -1 delprefix gone:]
            same_offset -1 -0
            assert_equal 3000 [r dbsize]
            assert_error "READONLY *" {r delprefix keep:}
            assert_equal 3000 [r countprefix keep:]
        }
        set digest [r debug digest]
        r debug loadaof
        assert_equal $digest [r debug digest]
        r config set appendonly no
    }

    # A client whose DELPREFIX of all keys is held in the middle by a pause; its id and the number of keys are in the two
    # variables. The command may end before the pause comes, or come after it: then again, later with more keys.
    proc delprefix_held {id_name total_name} {
        upvar $id_name id $total_name total
        for {set try 0} {$try < 50} {incr try} {
            r flushall
            r debug populate [set total [scaled [expr {200000 * (1 + $try / 10)}]]] gone
            set c [connect]
            set id [$c client id]
            $c -send delprefix gone:
            r client pause 600000 write
            if {[r dbsize] > 0 && [r dbsize] < $total} {return $c}
            r client unpause
            # With I/O threads its request may still come: it must not work on the next keys.
            $c -close
            wait_for_condition 300 10 {[r client list id $id] eq ""}
        }
        fail "DELPREFIX was never held between its first and its last key"
    }

    test {others are served while all keys are looked at, and a pause holds it} {
        set c [delprefix_held id total]
        set left [r dbsize]
        for {set i 0} {$i < 20} {incr i} {assert_equal PONG [r ping]}
        assert_equal $left [r dbsize]
        assert_equal 1 [r client unblock $id]
        assert_equal [expr {$total - $left}] [$c -read]
        r client unpause
        assert_equal $left [r delprefix gone:]
    }

    test {it ends with its client} {
        set c [delprefix_held id total]
        $c -close
        info_is blocked_clients 0
        r client unpause
        set left [r dbsize]
        assert_range $left 1 [expr {$total - 1}]
        foreach i {1 2 3} {r ping}
        assert_equal $left [r dbsize]
        r flushall
    }

    test {a user needs a pattern that has all keys with the prefix} {
        r mset user:1 1 users 2
        foreach {rules command prefix allowed} {
            ~user:* delprefix user: 1  ~user:* delprefix user:1 1  ~user:* delprefix user 0  ~user:* delprefix x 0
            ~user: delprefix user: 0   ~user:? delprefix user: 0   ~*:* delprefix user: 1    ~*:x delprefix user: 0
            ~u*:* delprefix us:er: 1   ~u*: delprefix us:er: 0     {~a* ~user:*} delprefix user: 1
            %R~user:* countprefix user: 1   %R~user:* delprefix user: 0   %W~user:* countprefix user: 0   %W~user:* delprefix user: 1
            allkeys delprefix user: 1  ~user\\\\* delprefix user* 0  ~* countprefix x 1
            {(~user:* +delprefix)} delprefix user: 1  {~user:* (~a* +delprefix)} delprefix a:b 1
        } {
            r acl setuser somebody reset on nopass +@all {*}$rules
            if {[string match (* $rules]} {r acl setuser somebody -delprefix}
            set verdict [r acl dryrun somebody $command $prefix]
            assert_equal $allowed [expr {$verdict eq "OK"}] "$rules $command $prefix: $verdict"
        }
        r acl setuser somebody reset on nopass +@all ~user:*
        set c [connect]
        $c auth somebody x
        assert_error "NOPERM No permissions to access a key" {$c delprefix use}
        assert_equal 2 [r dbsize]
        assert_equal 1 [$c delprefix user:]
        assert_equal "User somebody has no permissions to access the 'x' key" [r acl dryrun somebody delprefix x count 10]
    }
}
