# SPDX-License-Identifier: BSD-3-Clause
#
# Many requests in one write: a change of state by one of them applies to the next, and replies stay
# off with CLIENT REPLY.

# Sends the requests at once on a new connection and returns all bytes received until it is closed.
proc answers {args} {
    set s [raw_connect]
    set bytes ""
    foreach request $args {append bytes [resp::encode $request]}
    raw_send $s "${bytes}[resp::encode quit]"
    set all [raw_rest $s]
    raw_close $s
    assert_equal "+OK\r\n" [string range $all end-4 end] "QUIT is the last to answer"
    return [string range $all 0 end-5]
}

start_server {tags {pipeline resp:2} overrides {client-query-buffer-limit 1mb}} {
    test {CONFIG SET maxmemory applies to the next request} {
        set oom "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
        assert_equal "+OK\r\n${oom}+OK\r\n+OK\r\n" \
            [answers {config set maxmemory 1} {set k v} {config set maxmemory 0} {set k v}]
        assert_equal "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n${oom}+OK\r\n" \
            [answers multi {config set maxmemory 1} exec {set k v} {config set maxmemory 0}]
    } {needs:config}

    test {CONFIG SET proto-max-bulk-len applies to the next request} {
        set s [raw_connect]
        raw_send $s [resp::encode {config set proto-max-bulk-len 1mb}] "*2\r\n\$4\r\necho\r\n\$1048577\r\n"
        assert_equal "+OK\r\n-ERR Protocol error: invalid bulk length\r\n" [raw_rest $s]
        raw_close $s
        r config set proto-max-bulk-len 512mb
    } {needs:config}

    test {a pipeline of slow commands lets others be served in between, and its order is kept} {
        set s [raw_connect]
        set requests [resp::encode {set started 1}]
        for {set i 0} {$i < 40} {incr i} {
            append requests [resp::encode {debug sleep 0.02}] [resp::encode "append order <$i>"]
        }
        raw_send $s "$requests[resp::encode {set done 1}][resp::encode quit]"
        set between 0
        while {[set seen [r mget started done]] ne {1 1}} {
            if {[lindex $seen 0] eq 1} {incr between}
        }
        assert {$between > 0}
        raw_rest $s
        raw_close $s
        for {set i 0} {$i < 40} {incr i} {append order <$i>}
        assert_equal $order [r get order]
        assert_equal 3 [r del started done order]
    } {needs:debug}

    test {RESET after CLIENT REPLY SKIP sends no reply, after CLIENT REPLY OFF it does} {
        assert_equal "+PONG\r\n" [answers {client reply skip} reset ping]
        assert_equal "+RESET\r\n+PONG\r\n" [answers {client reply off} ping reset ping]
    }

    test {a protocol error is not sent if replies are off, and closes the connection} {
        foreach mode {off skip} {
            set s [raw_connect]
            raw_send $s [resp::encode ping] [resp::encode "client reply $mode"] "*x\r\n"
            assert_equal "+PONG\r\n" [raw_rest $s]
            raw_close $s
        }
    }

    test {a monitor with replies switched off receives nothing} {
        set s [raw_connect]
        raw_send $s [resp::encode monitor] [resp::encode {client reply off}]
        assert_equal "+OK" [raw_line $s]
        wait_for_condition 100 50 {[regexp {flags=O [^\n]*cmd=client\|reply } [r client list]]} else {fail "no monitor"}
        r echo unheard
        raw_send $s [resp::encode {client reply on}]
        assert_equal "+OK" [raw_line $s]
        r echo heard
        while {![regexp {"echo" "(.*)"} [raw_line $s] all word]} {}
        assert_equal heard $word
        raw_close $s
    }

    test {a request as long as the query buffer limit runs, a longer one does not} {
        assert_equal OK [r set k [string repeat x 1040000]]
        assert_equal 1040000 [r strlen k]
        set s [raw_connect]
        catch {raw_send $s [resp::encode [list set k [string repeat y 1200000]]]}
        raw_rest $s
        raw_close $s
        assert_equal x [r getrange k 0 0]
        assert_equal 1 [info_field client_query_buffer_limit_disconnections]
        r del k
    }

    test {the query buffer limit counts the bytes of queued arguments, not their memory} {
        set count [scaled 20000]
        r multi
        for {set i 0} {$i < $count} {incr i} {r -send set k v}
        for {set i 0} {$i < $count} {incr i} {r -read}
        assert_equal $count [llength [r exec]]
    }

    test {the arguments of a request that waits are shown as its memory} {
        set s [raw_connect]
        raw_send $s [resp::encode {blpop nolist1 nolist2 0}]
        wait_for_condition 100 50 {[regexp {cmd=blpop} [r client list]]} else {fail "no client is blocked"}
        assert_match "* argv-mem=20 *cmd=blpop *" [r client list]
        raw_close $s
    }

    test {CONFIG RESETSTAT keeps the count of failed authentications} {
        set before [info_field acl_access_denied_auth]
        catch {r auth default wrong}
        r config set requirepass secret
        catch {r auth default wrong}
        r config set requirepass {}
        r config resetstat
        assert_equal [expr {$before + 1}] [info_field acl_access_denied_auth]
    }
}

start_server {tags {pipeline resp:2} overrides {loglevel verbose hide-user-data-from-log no}} {
    test {a protocol error is logged with the client and its input} {
        set s [raw_connect]
        raw_send $s [resp::encode {client setname culprit}] "*x\"\r\n"
        assert_equal "+OK\r\n-ERR Protocol error: invalid multibulk length\r\n" [raw_rest $s]
        raw_close $s
        assert_match {*Protocol error (invalid multibulk length) from client: id=* name=culprit *. Query buffer: "\*x\\"*} [server_log]
    }
}

start_server {tags {pipeline}} {
    test {items of large collections are found in a pipeline, between keys of other kinds} {
        r set text [string repeat x 100000]
        r set number 5
        r rpush list {*}[lrepeat 2000 item]
        r hset small f v
        for {set from 0} {$from < 4000} {incr from 500} {
            set pairs {}
            set members {}
            set integers {}
            for {set i $from} {$i < $from + 500} {incr i} {
                lappend pairs f:$i v:$i
                lappend members m:$i
                lappend integers $i
            }
            r hset hash {*}$pairs
            r sadd set {*}$members
            r sadd integers {*}$integers
            r zadd zset {*}[concat {*}[lmap i $integers {list $i m:$i}]]
        }
        set wrong "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
        set requests {}
        set expected {}
        for {set i 0} {$i < 40} {incr i} {
            set n [expr {$i * 97}]
            foreach {words reply} [list \
                [list HGET hash f:$n] "\$[string length v:$n]\r\nv:$n\r\n" \
                [list HSET hash f:$n v:$n] ":0\r\n" \
                [list HGET hash none] "\$-1\r\n" \
                [list HGET small f] "\$1\r\nv\r\n" \
                [list SISMEMBER set m:$n] ":1\r\n" \
                [list SADD integers $n] ":0\r\n" \
                [list SADD integers 01] ":[expr {$i == 0}]\r\n" \
                [list ZADD zset $n m:$n] ":0\r\n" \
                [list ZREM zset none] ":0\r\n" \
                [list HGET text f] $wrong \
                [list SADD number 5] $wrong \
                [list ZADD list 1 m] $wrong \
                [list HSET set f v] $wrong \
                [list HEXISTS nokey f] ":0\r\n" \
                [list HGET hash] "-ERR wrong number of arguments for 'hget' command\r\n"] {
                append requests [resp::encode $words]
                append expected $reply
            }
        }
        set s [raw_connect]
        raw_send $s $requests
        assert_equal $expected [raw_read $s [string length $expected]]
        raw_close $s
    }

    # Requests and their integer replies, sent at once: items are prefetched as those of the key's first value.
    proc pipeline_integers {requests} {
        set bytes ""
        set expected ""
        foreach {words reply} $requests {
            append bytes [resp::encode $words]
            append expected ":$reply\r\n"
        }
        set s [raw_connect]
        raw_send $s $bytes
        assert_equal $expected [raw_read $s [string length $expected]]
        raw_close $s
    }

    test {an item is found if its key gets another type or encoding after the item was prefetched} {
        set numbers {}
        set pairs {}
        for {set i 0} {$i < 1000} {incr i} {
            lappend numbers $i
            lappend pairs $i $i
        }
        r del k
        r hset k {*}$pairs
        pipeline_integers [list {hexists k 5} 1 {hexists k 7} 1 {del k} 1 [list sadd k {*}$numbers] 1000 \
            {sismember k 5} 1 {sadd k 7} 0 {srem k 9} 1 {sismember k 9} 0 {sadd k text} 1 {srem k text} 1]
        assert_equal {0 1 0 999} [list [r sadd k 5] [r sadd k 9] [r sismember k text] [expr {[r scard k] - 1}]]
        pipeline_integers [list {sismember k 5} 1 {del k} 1 [list hset k {*}$pairs] 1000 {hset k 5 x} 0 \
            {hexists k 7} 1 {hset k 5 x 6 y new z} 1 {hdel k 8 9} 2 {hsetnx k 8 x} 1]
        assert_equal {x y z 1 0} [list {*}[r hmget k 5 6 new] [r hdel k 8] [r hdel k 9]]
        pipeline_integers [list {hexists k 5} 1 {del k} 1 {zadd k 1 5 2 6} 2 [list zadd k {*}$pairs] 998 \
            {zadd k 5 5} 0 {zrem k 5} 1 {zadd k 5 5} 1 {zrank k 7} 7]
        assert_equal {5 0 1000} [list [r zscore k 5] [r zadd k 7 7] [r zcard k]]
        r del k
        r hset k 5 v 6 w
        pipeline_integers [list {hset k 5 x} 0 [list hset k long [string repeat x 1000]] 1 {hset k 5 y} 0 {hdel k 6} 1 \
            {hset k 6 z} 1]
        assert_equal {hashtable y z 3} [list [r object encoding k] [r hget k 5] [r hget k 6] [r hlen k]]
    }

    test {items of queued commands are found by EXEC, also in another type of the key} {
        set numbers {}
        for {set i 0} {$i < 1000} {incr i} {lappend numbers $i}
        r del k other
        r sadd k {*}$numbers m
        r hset other {*}[concat {*}[lmap i $numbers {list $i v:$i}]]
        r multi
        foreach words {{sismember k 5} {sadd k m} {srem k m} {sadd k n} {rename other k} {hset k 5 x} {hget k 6} {hdel k 7}
            {hset k m y} {eval {return redis.call('hget', KEYS[1], ARGV[1])} 1 k m}} {r {*}$words}
        assert_equal {1 0 1 1 OK 0 v:6 1 1 y} [r exec]
        assert_equal {x 0 y 1000} [list [r hget k 5] [r hexists k 7] [r hget k m] [r hlen k]]
    }
}
