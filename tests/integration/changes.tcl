# SPDX-License-Identifier: BSD-3-Clause
#
# CHANGES: positions and entries of the stream, waiting, filters, transactions, what is lost, roles.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl

# Reads all entries after a position, in requests with these options; the position is in ::position.
proc changes_after {from args} {
    set all {}
    while 1 {
        lassign [r changes read $from {*}$args] from entries
        lappend all {*}$entries
        if {$entries eq {} && [lindex [split $from :] 1] == [offset_of -0]} break
    }
    set ::position $from
    return $all
}

# Databases, keys and commands of entries.
proc parts {entries} {lmap entry $entries {lrange $entry 1 end}}

proc position_at {offset} {return [lindex [split [r changes position] :] 0]:$offset}

start_server {tags {repl extended} overrides {save {} enable-debug-command yes repl-diskless-sync-delay 0 repl-ping-replica-period 3600}} {
    test {the first reader gets a backlog, and the position of the stream} {
        assert_equal 0 [info_field repl_backlog_active]
        set before [info_field master_replid]
        assert_match {[0-9a-f]*:0:0} [set position [r changes position]]
        assert_equal 1 [info_field repl_backlog_active]
        assert_equal [info_field master_replid]:0:0 $position
        assert_not_equal $before [info_field master_replid]
        assert_equal $position [r changes position]
        assert_equal [list $position {}] [r changes read $position]
    }

    test {entries have the position after them, database, keys and command} {
        set from [r changes position]
        r set k value
        r set other value ex 100
        r mset a 1 b 2
        r select 3
        r rpush list x y
        r select 0
        set entries [changes_after $from]
        assert_equal {{0 k {set k value}} {0 {a b} {mset a 1 b 2}} {3 list {rpush list x y}}} [parts [lreplace $entries 1 1]]
        assert_match {* 0 other {set other value PXAT *}} [lindex $entries 1]
        assert_equal [offset_of -0] [lindex $entries end 0]
        set typed [lindex [r -typed changes read $from count 1] 1]
        assert_equal {bulk array} [list [lindex $typed 0 0] [lindex $typed 1 0]]
        assert_equal {integer integer {array {{bulk k}}} {array {{bulk set} {bulk k} {bulk value}}}} \
            [list {*}[lmap i {0 1} {lindex $typed 1 1 0 1 $i 0}] {*}[lrange [lindex $typed 1 1 0 1] 2 3]]
    }

    test {a reader goes on where it was, after any entry, and may read again} {
        set from [r changes position]
        for {set i 0} {$i < 100} {incr i} {r set k$i $i}
        set all [changes_after $from]
        assert_equal 100 [llength $all]
        assert_equal $all [changes_after $from]
        assert_equal $all [changes_after $from count 7]
        set entry [lindex $all 41]
        assert_equal [lrange $all 42 end] [changes_after [position_at [lindex $entry 0]]:[lindex $entry 1]]
        lassign [r changes read $from count 10] next ten
        assert_equal [lrange $all 0 9] $ten
        assert_equal [position_at [lindex $ten end 0]]:0 $next
    }

    test {a transaction is not divided, and its entries have the position after it} {
        set from [r changes position]
        r set before 1
        r multi
        for {set i 0} {$i < 20} {incr i} {r incr n}
        r get before
        r exec
        r eval {redis.call('set', 'x', 1); redis.call('set', 'y', 2)} 0
        lassign [r changes read $from count 1] from entries
        assert_equal {{0 before {set before 1}}} [parts $entries]
        lassign [r changes read $from count 1] from entries
        assert_equal 20 [llength $entries]
        assert_equal [lindex [split $from :] 1] [lindex $entries 0 0]
        assert_equal 1 [llength [lsort -unique [lmap entry $entries {lindex $entry 0}]]]
        lassign [r changes read $from] from entries
        assert_equal {{0 x {set x 1}} {0 y {set y 2}}} [parts $entries]
        assert_equal {} [lindex [r changes read $from] 1]
    }

    test {keys that expire, are evicted or deleted are entries, what changes nothing is none} {
        set from [r changes position]
        r set short value px 1
        wait_for_condition 200 10 {[r exists short] == 0}
        r get k1
        r publish channel message
        r del none
        r ping
        assert_match {{0 short {set short value PXAT *}} {0 short {UNLINK short}}} [parts [changes_after $from]]
    }

    test {filters choose by prefix, by slot, and always show what has no keys} {
        set from [r changes position]
        r mset user:1 a item:1 b user:2 c
        r set item:2 d
        r set user:3 e
        r copy item:1 user:4
        r copy user:1 item:5
        r swapdb 1 2
        r flushdb
        set user [changes_after $from prefix user:]
        assert_equal [list {0 {user:1 user:2} {mset user:1 a item:1 b user:2 c}} {0 user:3 {set user:3 e}} \
            {0 user:4 {copy item:1 user:4}} {0 {} {swapdb 1 2}} {0 {} flushdb}] [parts $user]
        assert_equal {{0 {} {swapdb 1 2}} {0 {} flushdb}} [parts [changes_after $from prefix none]]
        assert_equal 7 [llength [changes_after $from prefix user: prefix item:]]
        assert_equal {{0 user:3 {set user:3 e}}} [parts [lrange [changes_after $from slot 2648] 0 end-2]]
        assert_equal {{0 user:3 {set user:3 e}} {0 user:4 {copy item:1 user:4}}} \
            [parts [lrange [changes_after $from slot 2648 slot 15039] 0 end-2]]
        assert_equal {} [parts [lrange [changes_after $from slot 2648 prefix item:] 0 end-2]]
    }

    test {KEYS omits the arguments of commands with keys} {
        set from [r changes position]
        r mset user:1 a item:1 b
        r rpush list x y z
        r swapdb 1 2
        assert_equal {{0 {user:1 item:1} mset} {0 list rpush} {0 {} {swapdb 1 2}}} [parts [changes_after $from keys]]
        assert_equal {{0 item:1 mset} {0 {} {swapdb 1 2}}} [parts [changes_after $from keys prefix i]]
    }

    test {BLOCK waits for a change that is wanted, and keeps the place} {
        set from [r changes position]
        set c [connect]
        $c -send changes read $from prefix user: block 0
        info_is blocked_clients 1
        r set item:1 a
        r select 5
        r set user:1 a
        r select 0
        lassign [$c -read] next entries
        assert_equal {{5 user:1 {set user:1 a}}} [parts $entries]
        assert_equal [r changes position] $next
        assert_equal [list $next {}] [$c changes read $next prefix user: block 1]
        $c -close
    }

    test {BLOCK ends with CLIENT UNBLOCK, by which nothing is lost} {
        set from [r changes position]
        set c [connect]
        set id [$c client id]
        $c -send changes read $from prefix user: block 100000
        info_is blocked_clients 1
        r set item:2 a
        assert_equal 1 [r client unblock $id]
        lassign [$c -read] next entries
        assert_equal {} $entries
        assert_equal [r changes position] $next
        $c -close
    }

    test {in a transaction BLOCK does not wait, and a closed reader is forgotten} {
        set from [r changes position]
        r multi
        r changes read $from block 0
        assert_equal [list [list $from {}]] [r exec]
        set c [connect]
        $c -send changes read $from block 0
        info_is blocked_clients 1
        $c -close
        info_is blocked_clients 0
        r set k v
        assert_equal {{0 k {set k v}}} [parts [changes_after $from]]
    }

    test {values and transactions that are larger than what is read at once} {
        set from [r changes position]
        set large [string repeat x 1000000]
        r set small 1
        r set large $large
        r multi
        for {set i 0} {$i < 5} {incr i} {r set large$i [string repeat $i 200000]}
        r exec
        r set small 2
        set entries [changes_after $from]
        assert_equal {small large large0 large1 large2 large3 large4 small} [lmap entry $entries {lindex $entry 2}]
        assert_equal $large [lindex $entries 1 3 2]
        assert_equal [lindex $entries 2 0] [lindex $entries 6 0]
        assert_equal 8 [llength [changes_after $from count 1]]
    }

    test {a dataset made of the entries is the same} {
        r flushall
        set from [r changes position]
        set words {set incr append rpush lpop sadd spop hset hdel zadd expire del rename}
        for {set i 0} {$i < [scaled 2000]} {incr i} {
            set key k[random_below 20]
            r select [random_below 3]
            set number [random_below 100]
            catch {
                switch [lindex $words [random_below [llength $words]]] {
                    set {r set $key $number ex 1000} incr {r incr $key} append {r append $key $number}
                    rpush {r rpush $key $number} lpop {r lpop $key} sadd {r sadd $key $number} spop {r spop $key}
                    hset {r hset $key f$number $i} hdel {r hdel $key f$number} zadd {r zadd $key $number m$i}
                    expire {r expire $key 1000} del {r del $key} rename {r rename $key k[random_below 20]}
                }
            }
        }
        r select 0
        set entries [changes_after $from count 50]
        set digest [r debug digest]
        r flushall
        foreach entry $entries {
            r select [lindex $entry 1]
            r {*}[lindex $entry 3]
        }
        r select 0
        assert_equal $digest [r debug digest]
    }

    test {what is no position is refused} {
        lassign [split [r changes position] :] id offset
        foreach {position error} [list \
            $id "ERR the position is none*" $id: "ERR the position is none*" $id:x "ERR the position is none*" \
            $id:-1 "ERR the position is none*" $id:1:x "ERR the position is none*" $id:1:16 "ERR the position is none*" \
            [string range $id 1 end]:1 "ERR the position is none*" {} "ERR the position is none*" \
            [string repeat 0 40]:1 "POSITIONLOST the id is not that of the stream of this server" \
            $id:[expr {$offset + 1}] "POSITIONLOST the stream ends at $offset" \
            $id:9223372036854775806 "POSITIONLOST *" $id:9223372036854775807 "ERR the position is none*"] {
            assert_error $error {r changes read $position}
        }
        r set k first
        set before [r changes position]
        r set k value
        assert_error "ERR the position is not between two changes" {r changes read $id:[expr {[lindex [split $before :] 1] + 1}]:0}
        assert_error "ERR the position lacks its database*" {r changes read $id:[lindex [split $before :] 1]}
        r select 7
        set before [lindex [split [r changes position] :] 1]
        r set k value
        r select 0
        assert_equal {{7 k {set k value}}} [parts [lindex [r changes read $id:$before] 1]]
    }

    test {wrong options are refused} {
        set from [r changes position]
        foreach {words error} {
            {count 0} "ERR value is not an integer or out of range" {count x} "ERR value is not an integer or out of range"
            {block -1} "ERR timeout is negative" {block x} "ERR timeout is not an integer or out of range"
            {slot 16384} "ERR Invalid or out of range slot" {slot -1} "ERR Invalid or out of range slot"
            {slot} "ERR syntax error" {prefix} "ERR syntax error" {keys count} "ERR syntax error" {what 1} "ERR syntax error"
        } {assert_error $error {r changes read $from {*}$words}}
        assert_error "ERR wrong number of arguments for 'changes|read' command" {r changes read}
        assert_error "ERR wrong number of arguments for 'changes|position' command" {r changes position x}
        assert_error "ERR unknown subcommand 'what'. Try CHANGES HELP." {r changes what}
    }

    test {only users who may read all keys of all databases read changes} {
        set from [r changes position]
        foreach {rules allowed} {
            {allkeys} 1 {~*} 1 {~a*} 0 {%R~*} 1 {%R~a* %R~*} 1 {%W~*} 0 {allkeys db=0} 0 {allkeys resetchannels} 1
            {(~* +strlen)} 0 {{(~* +get resetdbs db=0 +changes)}} 0 {~a {(~* +changes)}} 1 {~a {(%R~* +changes|position +changes|read)}} 1
            {db=0 ~* {(alldbs ~a +changes)}} 0 {-changes {(~* +get)} {(+changes)}} 0
        } {
            r acl setuser reader reset on nopass +changes {*}$rules
            set c [connect]
            $c auth reader x
            foreach words [list {changes position} [list changes read $from]] {
                if {$allowed} {
                    $c {*}$words
                } else {
                    assert_error "NOPERM *" {$c {*}$words}
                }
            }
            $c -close
        }
        assert {"changes|read" in [r acl cat dangerous]}
    }

    test {a position that has left the backlog is lost, and said to be} {
        set from [r changes position]
        r config set repl-backlog-size 16kb
        for {set i 0} {$i < 300} {incr i} {r set k$i [string repeat x 1000]}
        assert_error "POSITIONLOST the backlog begins after *" {r changes read $from}
        assert_equal [expr {[info_field repl_backlog_first_byte_offset] - 1}] \
            [lindex [catch {r changes read $from} said; set said] end]
        r config set repl-backlog-size 1mb
    }

    test {without readers and replicas the backlog ends, and with it the positions} {
        set from [r changes position]
        r config set repl-backlog-ttl 1
        info_is repl_backlog_active 0
        r config set repl-backlog-ttl 3600
        assert_error "POSITIONLOST the id is not *" {r changes read $from}
        assert_equal 1 [info_field repl_backlog_active]
        assert_not_equal $from [r changes position]
    }

    test {a reader that waits keeps the backlog} {
        set from [r changes position]
        r config set repl-backlog-ttl 1
        set c [connect]
        $c -send changes read $from block 0
        # Another server's backlog, of the same age and without a reader, ends.
        start_server {overrides {repl-backlog-ttl 1}} {
            r changes position
            info_is repl_backlog_active 0
        }
        assert_equal 1 [info_field repl_backlog_active]
        r set k value
        assert_equal {{0 k {set k value}}} [parts [lindex [$c -read] 1]]
        r config set repl-backlog-ttl 3600
        $c -close
    }

    test {a replica has the same positions and entries, and keeps them when it is promoted} {
        set from [r changes position]
        set entries {}
        start_server {overrides {save {}}} {
            assert_match *:0:0 [r changes position]
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            r -1 set a 1
            r -1 select 2
            r -1 rpush list x
            r -1 select 0
            same_offset -1 -0
            set entries [lindex [r -1 changes read $from] 1]
            set at [lindex [r -1 changes position] 0]
            r -1 set b 1
            same_offset -1 -0
            assert_equal [r -1 changes read $at] [r changes read $at]
            set c [connect]
            $c -send changes read [r changes position] block 0
            r replicaof no one
            r set c 1
            lassign [$c -read] next new
            assert_equal {{0 c {set c 1}}} [parts $new]
            assert_equal {{0 b {set b 1}} {0 c {set c 1}}} [parts [lindex [r changes read $at] 1]]
            # What the old primary has after the promotion is not part of this stream.
            r -1 set d 1
            assert_error "POSITIONLOST *" {r changes read [r -1 changes position]}
        }
        assert_match {{0 a {set a 1}} {2 list {rpush list x}}*} [parts $entries]
    } {tls:skip}

    test {who has read everything goes on after a restart with a save} {
        r select 3
        r set k before
        set from [r changes position]
        r save
        restart_server
        assert_equal {} [lindex [r changes read $from] 1]
        r set k after
        assert_equal {{0 k {set k after}}} [parts [lindex [r changes read $from] 1]]
    }

    test {a replica without a dataset has no position} {
        start_server {overrides {replicaof {127.0.0.1 1}}} {
            assert_error "ERR this replica has no complete dataset yet" {r changes position}
        }
    }
}
