# Requests on slots that are being moved key by key: ASK, ASKING, TRYAGAIN, for single commands, transactions, scripts, waits,
# shard channels and replicas. @x is key x of slot 0, which node 0 gives to node 1.

# Runs requests on one new connection to node i; their replies, with errors as they are.
proc session_of {i args} {
    set client [respConnect [srv -$i host] [srv -$i port] $::resp]
    set replies {}
    foreach request $args {
        $client -send {*}[lmap word $request {string map $::tag $word}]
        if {[catch {$client -read} reply]} {set reply [string map [list [srv -0 port] A [srv -1 port] B] $reply]}
        lappend replies $reply
    }
    $client -close
    return $replies
}

proc expect {i requests replies} {assert_equal $replies [session_of $i {*}$requests] "node $i: $requests"}

set ::tag {@ {{06S}}}
set ::ask {ASK 0 127.0.0.1:B}
set ::again {TRYAGAIN Multiple keys request during rehashing of slot}
set ::moved {MOVED 0 127.0.0.1:A}
set ::not_local {ERR Attempted to access a non local key in a cluster node script: on @user_script:1.}

start_cluster {2 2 {tags {cluster} overrides {repl-diskless-sync-delay 0 cluster-databases 4}}} {
    test {the slot is opened} {
        set ::resp [r -resp]
        foreach key {h h2} {r set "{06S}$key" $key}
        r rpush "{06S}l" 1
        assert_equal OK [r cluster setslot 0 migrating [cluster_id 1] timeout 60000]
        assert_equal OK [r -1 cluster setslot 0 importing [cluster_id 0] timeout 60000]
        assert_equal 1 [r wait 1 0]
    }

    test {MIGRATING: what is here is served, what is missing is elsewhere} {
        foreach {request reply} [list {GET @h} h {GET @m} $::ask {MGET @h @h2} {h h2} {MGET @h @m} $::again {MGET @m @n} $::ask \
            {SET @m 1} $::ask {SETNX @m 1} $::ask {DEL @h @m} $::again {TOUCH @h @m} $::again {BLPOP @m 1} $::ask {WATCH @m} $::ask \
            {WATCH @h} OK {EXISTS @h @h} 2 {RENAME @h @h3} $::again {COPY @h @c} $::again {SORT @l STORE @m} $::again \
            {SORT @l} 1 {MSET @h 1 @m 2} $::again {BITOP AND @m @h @h} $::again {XREAD STREAMS @m 0} $::ask {DUMP @m} $::ask \
            {RESTORE-ASKING @m 0 x} $::ask {FCALL f 1 @m} $::ask {MOVE @h 1} $::again {MOVE @m 1} $::again {COPY @h @c DB 1} $::again {COPY @m @c DB 1} $::again \
            {COPY @h @h DB} {ERR syntax error} {COPY @h @h DB 0} {ERR source and destination objects are the same} {COPY @m @m DB} $::ask {COPY @h @h2 DB 0 DB 1} $::again \
            {SPUBLISH @ch x} 0 {DBSIZE} 3 {OBJECT ENCODING @m} $::ask {MIGRATE 127.0.0.1 1 @m 0 100} NOKEY] {
            expect 0 [list $request] [list $reply]
        }
        expect 0 {{SELECT 1} {GET @h}} [list OK $::ask]
        expect 0 {{ASKING} {GET @m}} [list OK $::ask]
    }

    test {MIGRATING: a transaction is judged at EXEC, in the databases that it selects} {
        expect 0 {MULTI {GET @h} {GET @m} EXEC PING} [list OK QUEUED QUEUED $::again PONG]
        expect 0 {MULTI {GET @m} EXEC PING} [list OK QUEUED $::ask PONG]
        expect 0 {MULTI {SET @m 1} EXEC} [list OK QUEUED $::ask]
        expect 0 {MULTI {GET @h} {GET @h2} EXEC} {OK QUEUED QUEUED {h h2}}
        expect 0 {MULTI {SELECT 1} {GET @h} EXEC} [list OK QUEUED QUEUED $::ask]
        expect 0 {MULTI {SELECT 1} PING {SELECT 0} {GET @h} EXEC} {OK QUEUED QUEUED QUEUED QUEUED {OK PONG OK h}}
        assert_match {OK ?MOVED 16287 * QUEUED ?EXECABORT*} [session_of 0 MULTI {GET {{x}1}} {GET @h} EXEC]
    }

    test {MIGRATING: scripts} {
        expect 0 {{EVAL {return redis.call('get',KEYS[1])} 1 @h}} h
        expect 0 {{EVAL {return redis.call('get',KEYS[1])} 1 @m}} [list $::ask]
        expect 0 {{EVAL {return redis.call('set',ARGV[1],1)} 1 @h @m}} [list $::not_local]
        expect 0 {{EVAL {return redis.call('get','@m')} 0}} [list $::not_local]
        expect 0 {{EVAL {return redis.call('get','@h')} 0}} h
        # Of a declared key that it has deleted a script may go on to use the name.
        expect 0 {{EVAL {redis.call('del',KEYS[1]) redis.call('incr',KEYS[1]) return redis.call('del',KEYS[1])} 1 @h2}} 1
        expect 0 {{EXISTS @h2}} [list $::ask]
    }

    test {MIGRATING: whether a key exists is found out without any trace} {
        r config resetstat
        r debug set-active-expire 0
        expect 0 {{GET @m} {GET @h}} [list $::ask h]
        assert_equal {1 0} [list [info_field keyspace_hits] [info_field keyspace_misses]]
        set before [r dbsize]
        expect 0 {{PEXPIRE @h 1}} 1
        wait_for_condition 100 10 {[session_of 0 {GET @h}] eq [list $::ask]}
        assert_equal $before [r dbsize] "the expired key is still there"
        r debug set-active-expire 1
    }
}

start_cluster {2 2 {tags {cluster} overrides {repl-diskless-sync-delay 0 cluster-databases 4}}} {
    test {the slot is opened, and has a key on each side} {
        set ::resp [r -resp]
        r set "{06S}h" h
        assert_equal OK [r cluster setslot 0 migrating [cluster_id 1] timeout 60000]
        assert_equal OK [r -1 cluster setslot 0 importing [cluster_id 0] timeout 60000]
        expect 1 {ASKING {SET @i v}} {OK OK}
        assert_equal 1 [r -1 wait 1 0]
        assert_equal 1 [r wait 1 0]
    }

    test {IMPORTING: only after ASKING, which is good for one command} {
        expect 1 {{GET @i}} [list $::moved]
        expect 1 {{MOVE @i 1} {COPY @i @j DB 1}} [list $::again $::again]
        expect 1 {ASKING {GET @i} {GET @i}} [list OK v $::moved]
        expect 1 {ASKING ASKING {GET @i}} {OK OK v}
        foreach other {PING {CLUSTER KEYSLOT x} {GET {{x}1}} NOSUCH GET RESET {CLIENT NO-TOUCH ON}} {
            assert_equal $::moved [lindex [session_of 1 ASKING $other {GET @i}] 2] $other
        }
    }

    test {ASKING does not make a client one that exports slots, which has no limits} {
        assert_match {*flags=N *} [lindex [session_of 1 ASKING {CLIENT INFO}] 1]
    }

    test {IMPORTING after ASKING: one key is served, several only if all are here} {
        foreach {request reply} [list {GET @m} {} {MGET @m @m} {{} {}} {MGET @i @i} {v v} {MGET @i @m} $::again {DEL @i @m} $::again \
            {MOVE @i 1} $::again {COPY @i @x} $::again {COPY @i @x DB 1} $::again {BLPOP @l 0.01} {} {SPUBLISH @c x} 0 \
            {INCR @n} 1 {DEL @n} 1] {
            expect 1 [list ASKING $request] [list OK $reply]
        }
    }

    test {IMPORTING: a command that changes something after it has run in slices was admitted after ASKING} {
        r -1 config set command-slice-us 1
        set many [lmap i [lrepeat 40 m] {incr n; set i m$n}]
        foreach {make request reply} [list "RPUSH @q $many" {LREM @q 1 m39} 1 "DEL @q" {LREM @q 1 m39} 0 \
            "RPUSH @q $many" {LINSERT @q BEFORE m39 new} 41 "SADD @s $many" {SUNIONSTORE @s @s @s} 40 \
            {GET @i} {SPOP @s 40} [lsort $many] {DEL @q} {GET @i} v] {
            lassign [session_of 1 ASKING $make ASKING $request] asked made again got
            assert_equal $reply [lsort $got] $request
        }
        r -1 config set command-slice-us 500
    }

    test {IMPORTING: ASKING before MULTI lasts until its end} {
        expect 1 {ASKING MULTI {GET @i} {GET @i} EXEC {GET @i}} [list OK OK QUEUED QUEUED {v v} $::moved]
        expect 1 {ASKING MULTI {GET @m} EXEC} {OK OK QUEUED {{}}}
        expect 1 {ASKING MULTI {GET @i} {SET @k 1} EXEC} [list OK OK QUEUED QUEUED $::again]
        expect 1 {ASKING MULTI PING PING {GET @i} EXEC} {OK OK QUEUED QUEUED QUEUED {PONG PONG v}}
        expect 1 {ASKING MULTI DISCARD {GET @i}} [list OK OK OK $::moved]
        assert_match {OK QUEUED ?MOVED 0 * ?EXECABORT*} [session_of 1 MULTI ASKING {GET @i} EXEC]
    }

    test {IMPORTING: scripts after ASKING} {
        expect 1 {ASKING {EVAL {return redis.call('set',ARGV[1],1)} 1 @i @n}} {OK OK}
        expect 1 {ASKING {EVAL {return redis.call('del',ARGV[1])} 1 @i @n}} {OK 1}
        expect 1 {ASKING {EVAL {return {redis.call('mget','@q','@r')}} 1 @i}} [list OK $::not_local]
        expect 1 {{EVAL {return redis.call('get','@i')} 0}} [list $::not_local]
    }

    test {shard channels: as before on the source, after ASKING on the target} {
        expect 0 {{SPUBLISH @c x}} 0
        expect 1 {{SPUBLISH @c x}} [list $::moved]
        foreach {i requests} {0 {{SSUBSCRIBE @c}} 1 {ASKING {SSUBSCRIBE @c}}} {
            set client [respConnect [srv -$i host] [srv -$i port] 2]
            foreach request $requests {set reply [$client {*}[lmap word $request {string map $::tag $word}]]}
            assert_equal [list ssubscribe "{06S}c" 1] $reply
            $client -close
        }
    }

    test {replicas after READONLY} {
        expect 2 {READONLY {GET @h}} {OK h}
        expect 2 {{GET @h}} [list $::moved]
        expect 2 {READONLY {GET @m}} [list OK $::ask]
        expect 2 {READONLY {MGET @h @m}} [list OK $::again]
        expect 2 {READONLY {SET @m 1}} [list OK $::ask]
        expect 2 {READONLY {SET @h 1}} [list OK $::moved]
        expect 2 {READONLY MULTI {GET @m} EXEC} [list OK OK QUEUED $::ask]
        expect 3 {ASKING {GET @i}} [list OK $::moved]
        expect 3 {READONLY ASKING {GET @i}} {OK OK v}
        expect 3 {READONLY ASKING {GET @m}} {OK OK {}}
        expect 3 {READONLY {GET @i}} [list OK $::moved]
        expect 3 {READONLY ASKING {SET @m 1}} [list OK OK $::moved]
        expect 3 {ASKING READONLY {GET @i}} [list OK OK $::moved]
    }

    test {waits: on the source until the slot has gone, on the target while it comes} {
        set there [respConnect [srv -1 host] [srv -1 port] $::resp]
        $there asking
        $there -send blpop "{06S}l" 0
        wait_for_condition 200 20 {[regexp {blocked_clients:1\r} [r -1 info clients]]}
        expect 1 {ASKING {RPUSH @l x}} {OK 1}
        assert_equal [list "{06S}l" x] [$there -read]
        $there -close
    }

    test {MIGRATE moves what is here, in an open slot} {
        assert_equal OK [r migrate [srv -1 host] [srv -1 port] {} 0 5000 keys "{06S}h" "{06S}m"]
        expect 0 {{GET @h}} [list $::ask]
        expect 1 {ASKING {GET @h}} {OK h}
        expect 0 {{DBSIZE}} 0
    }
}

start_server {tags {cluster}} {
    test {ASKING needs a cluster} {
        assert_error {ERR This instance has cluster support disabled} {r asking}
    }
}
