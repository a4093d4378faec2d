# Long values of the fields of large hashes, compressed in memory: nothing but their memory tells them from plain ones.
# Database 0 has dictionaries, so its values can be compressed; database 9 has none: the plain twins.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/compressed.tcl

# The value of a field: a session.
proc session {i} {
    return "{\"user\":$i,\"name\":\"customer [expr {$i * 7919}]\",\"roles\":\[\"reader\",\"auditor\"\],\"branch\":\"the European branch office\",\"open\":true}"
}
proc sessions {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all field-$i [session $i]}
    return $all
}
proc field_names {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all field-$i}
    return $all
}
proc long_session {i} {string repeat [session $i] 150}
# Fields of each kind: long, short, a number, long without gain, very long.
proc mixed {i} {
    set noise {}
    set random [expr {$i + 1}]
    for {set n 0} {$n < 120} {incr n} {
        set random [expr {($random * 1103515245 + 12345) & 0x7fffffff}]
        append noise [format %c [expr {33 + ($random >> 16) % 90}]]
    }
    list {*}[sessions $i [expr {$i + 9}]] short x number $i noise $noise huge [long_session $i] empty {}
}
proc sorted_pairs {pairs} {
    set all [dict create {*}$pairs]
    concat {*}[lmap field [lsort -dictionary [dict keys $all]] {list $field [dict get $all $field]}]
}
proc make_dictionaries {} {
    foreach prefix {big: other:} {r debug value-dictionary $prefix [string cat [session 3] [session 17000] [session 4711]]}
}
proc compressed_now {} {info_field compressed_values}
# A key that was not used for a long time.
proc make_idle {key} {r restore $key 0 [r dump $key] replace idletime 100000}
proc no_values_left {} {
    wait_for_condition 600 50 {[compressed_now] == 0} else {fail "[compressed_now] values left"}
    assert_equal 0 [info_field compressed_values_packed_bytes]
}

start_server {tags {hash with:zstd} overrides {enable-debug-command yes enable-module-command yes save {} hash-max-listpack-entries 4}} {
    r config set value-compression always value-compression-min-bytes 131072
    r select 0
    make_dictionaries
    set future [expr {[clock milliseconds] + 1000000}]
    set later [expr {$future + 5}]

    set scripts {}
    lappend scripts read {
        HSET big:1 {*}[mixed 1]
        Z big:1
        HGET big:1 field-3
        HGET big:1 huge
        HGET big:1 noise
        HGET big:1 empty
        HGET big:1 none
        HMGET big:1 field-1 none field-2 field-1 number
        HGETALL big:1
        HKEYS big:1
        HVALS big:1
        HLEN big:1
        HEXISTS big:1 field-4
        HEXISTS big:1 none
        HSTRLEN big:1 field-4
        HSTRLEN big:1 huge
        HSTRLEN big:1 none
        HRANDFIELD none 100 WITHVALUES
        HSCAN big:1 0 COUNT 1000
        HSCAN big:1 0 MATCH *5* COUNT 1000
        HSCAN big:1 0 NOVALUES COUNT 1000
        HTTL big:1 FIELDS 2 field-1 none
        HPTTL big:1 FIELDS 1 field-1
        HEXPIRETIME big:1 FIELDS 1 field-1
        HPEXPIRETIME big:1 FIELDS 1 field-1
        HGETALLEX big:1
        HGETEX big:1 FIELDS 2 field-1 number
        TYPE big:1
        OBJECT ENCODING big:1
        EXISTS big:1
        TOUCH big:1
        TTL big:1
        DUMP big:1
        SCAN 0 TYPE hash
        Z big:1
        HGETALL big:1
    }
    lappend scripts change {
        HSET big:1 {*}[mixed 1]
        Z big:1
        HSET big:1 field-1 [session 1]
        Z big:1
        HSET big:1 field-1 short field-2 [session 5] new [session 6]
        Z big:1
        HSETNX big:1 field-3 again
        HSETNX big:1 another [session 7]
        Z big:1
        HMSET big:1 field-4 [session 8] number [session 9]
        Z big:1
        HINCRBY big:1 number 5
        HINCRBY big:1 field-5 5
        HINCRBYFLOAT big:1 field-5 1.5
        HSET big:1 number 5
        HINCRBY big:1 number 5
        HINCRBYFLOAT big:1 number 1.5
        HDEL big:1 none
        HDEL big:1 field-5 new
        Z big:1
        HGETDEL big:1 FIELDS 2 field-6 none
        HSETEX big:1 FIELDS 1 field-7 [session 70]
        Z big:1
        HSETEX big:1 FNX FIELDS 1 field-7 x
        HSETEX big:1 FXX FIELDS 1 field-7 [session 71]
        HGETEX big:1 PERSIST FIELDS 1 field-8
        HPERSIST big:1 FIELDS 1 field-8
        HSET big:1 huge small
        Z big:1
        HSET big:1 huge [long_session 5]
        Z big:1
        HDEL big:1 {*}[field_names 1 10] new another number short noise huge
        HDEL big:1 empty
        EXISTS big:1
    }
    lappend scripts "field times" {
        HSET big:1 {*}[mixed 1]
        Z big:1
        HPEXPIREAT big:1 $future FIELDS 3 field-1 short huge
        HPEXPIRETIME big:1 FIELDS 4 field-1 short huge field-2
        Z big:1
        HGET big:1 field-1
        HGETALLEX big:1
        HPEXPIREAT big:1 $future NX FIELDS 2 field-1 field-3
        HPEXPIREAT big:1 $later GT FIELDS 1 field-1
        Z big:1
        HPERSIST big:1 FIELDS 1 field-1
        HGET big:1 field-1
        HGETEX big:1 PXAT $future FIELDS 2 field-4 field-1
        Z big:1
        HSETEX big:1 KEEPTTL FIELDS 1 field-4 [session 11]
        Z big:1
        HSETEX big:1 PXAT $future FIELDS 1 field-4 [session 12]
        HSETEX big:1 FIELDS 1 field-4 [session 13]
        Z big:1
        HINCRBY big:1 field-4 1
        HEXPIREAT big:1 100000000000 FIELDS 2 field-5 field-6
        HPEXPIRE big:1 -1 FIELDS 2 field-7 none
        HEXPIRE big:1 0 FIELDS 1 huge
        HLEN big:1
        COPY big:1 big:2
        RENAME big:2 big:3
        HGETALLEX big:3
        HDEL big:1 field-5
        HGETDEL big:1 FIELDS 1 field-6
        HGETALL big:1
    }
    lappend scripts names {
        HSET big:1 {*}[mixed 1]
        Z big:1
        PEXPIREAT big:1 $future
        PEXPIRETIME big:1
        PERSIST big:1
        RENAME big:1 big:2
        RENAMENX big:2 big:1
        COPY big:1 big:3
        COPY big:1 big:3
        HSET big:3 field-1 other
        HDEL big:1 field-2
        COPY big:1 big:3 REPLACE
        COPY big:1 other:3
        COPY big:1 without
        COPY big:1 big:1 DB 8 REPLACE
        MOVE big:3 8
        Z other:3
        HGETALL other:3
        SET big:1 string
        GET big:1
        DEL big:1
        HSET big:1 {*}[mixed 1]
        Z big:1
        SETNX big:1 string
        UNLINK big:1
        HSET big:1 {*}[mixed 1]
        Z big:1
        EXPIRE big:1 -1
        EXISTS big:1
    }
    lappend scripts scripts {
        HSET big:1 {*}[mixed 1]
        HSET big:2 {*}[mixed 2]
        Z big:1
        Z big:2
        RPUSH numbers 2 1
        SORT numbers BY big:*->number GET big:*->field-5 GET #
        SORT numbers BY big:*->field-7 ALPHA GET big:*->field-7
        SORT numbers BY nosort GET big:*->huge STORE sorted
        EVAL "return {redis.call('hgetall', KEYS[1]), redis.call('hget', KEYS[2], 'field-4'), redis.call('hvals', KEYS[2])}" 2 big:1 big:2
        EVAL "local a = redis.call('hget', KEYS[1], 'field-1'); redis.call('hset', KEYS[1], 'field-1', 'x'); return a .. redis.call('hget', KEYS[1], 'field-1')" 1 big:1
        EVAL "for i = 1, 50 do redis.call('hgetall', KEYS[1]) end return redis.call('hlen', KEYS[1])" 1 big:2
        EVAL "local d = redis.call('dump', KEYS[1]) return redis.call('restore', KEYS[2], 0, d)" 2 big:2 big:3
        MULTI
        HGET big:2 field-4
        HSET big:2 field-4 y
        HGETALL big:2
        EXEC
    }
    lappend scripts import {
        HIMPORT PREPARE fields a b c d e
        HIMPORT SET big:1 fields [session 1] [session 2] [session 3] [session 4] [session 5]
        Z big:1
        HIMPORT SET big:1 fields [session 1] [session 2] [session 3] [session 4] x
        Z big:1
        HGETALL big:1
        HIMPORT DISCARDALL
    }

    foreach {name script} $scripts {
        test "a hash with compressed values is as its plain twin: $name" {
            both $name $script
            r flushall sync
            foreach db {8 9} {
                r select $db
                r flushall sync
            }
            r select 0
            no_values_left
        }
    }

    test {the table has every command of hashes} {
        foreach command [r command list filterby aclcat hash] {
            if {$command in {sort sort_ro himport}} continue
            assert {[regexp -nocase "\\n *$command " $scripts]} "$command is missing"
        }
    }

    test {what only reads leaves all values compressed; what writes makes that value plain} {
        set reads {
            {hget big:1 field-3} {hgetall big:1} {hlen big:1} {hstrlen big:1 huge} {hexists big:1 huge} {hsetnx big:1 huge x} {hscan big:1 0} {type big:1}
            {hpexpire big:1 100000 fields 1 field-2} {hpersist big:1 fields 1 field-2} {hpexpiretime big:1 fields 1 field-2} {expire big:1 1000}
            {persist big:1} {memory usage big:1} {dump big:1} {debug digest} {debug digest-value big:1} {touch big:1} {info keysizes}
            {rename big:1 big:2} {rename big:2 big:1} {memory explain} {debug object big:1} {hset big:1 short y}
        }
        foreach read $reads {
            r del big:1 big:2
            r hset [expr {[lindex $read 1] eq "big:2" ? "big:2" : "big:1"}] {*}[mixed 1]
            compress [lindex [r keys *] 0]
            assert_equal 11 [compressed_now]
            r {*}$read
            assert_equal 11 [compressed_now] $read
        }
        set count 11
        foreach {write less} {
            {hset big:1 field-1 x} 1 {hset big:1 field-2 value field-3 value} 2 {hdel big:1 field-4 field-1} 1 {hsetex big:1 fields 1 field-5 v} 1
            {hgetdel big:1 fields 1 field-6} 1 {hpexpireat big:1 1 fields 1 field-7} 1
        } {
            r {*}$write
            assert_equal [incr count -$less] [compressed_now] $write
        }
        r copy big:1 big:2
        assert_equal [expr {2 * $count}] [compressed_now]
        r del big:1
        assert_equal $count [compressed_now]
        r flushall sync
        no_values_left
    }

    test {random fields come with their values} {
        foreach timed {no yes} {
            r flushall sync
            r hset big:1 {*}[mixed 1]
            if {$timed} {r hexpire big:1 1000 fields 2 field-1 short}
            compress big:1
            set all [dict create {*}[r hgetall big:1]]
            foreach count {1 3 15 100 -3 -50} {
                # A script has the pairs in one list, whatever the protocol.
                set pairs [r eval {return redis.call('hrandfield', KEYS[1], ARGV[1], 'withvalues')} 1 big:1 $count]
                assert_equal [expr {$count < 0 ? -2 * $count : 2 * min($count, 15)}] [llength $pairs]
                foreach {field value} $pairs {assert_equal [dict get $all $field] $value}
            }
        }
        r flushall sync
    }

    test {lengths are known without the value} {
        r hset big:1 {*}[mixed 1]
        compress big:1
        set before [info_field values_expanded_to_read]
        assert_equal [string length [session 3]] [r hstrlen big:1 field-3]
        assert_equal [string length [long_session 1]] [r hstrlen big:1 huge]
        assert_equal 1 [r hexists big:1 huge]
        assert_equal 0 [r hsetnx big:1 huge x]
        assert_equal 15 [r hlen big:1]
        assert_equal 15 [llength [r hkeys big:1]]
        assert_equal $before [info_field values_expanded_to_read]
    }

    test {memory is what the compressed values take, and the dictionary counts them} {
        r flushall sync
        r hset big:1 {*}[sessions 1 300]
        set plain [r memory usage big:1 samples 0]
        compress big:1
        assert {[r memory usage big:1 samples 0] < 0.6 * $plain}
        assert_equal 300 [compressed_now]
        assert_match "*keys=big:\\**values=300,*" [r info memory]
    }

    test {compressing is no change: WATCH, events and counts of changes} {
        r config set notify-keyspace-events KEA
        r flushall sync
        r hset big:1 {*}[mixed 1]
        set before [info_field rdb_changes_since_last_save]
        set follower [connect 3]
        $follower -send subscribe __keyspace@0__:big:1
        $follower -push
        r watch big:1
        compress big:1
        r multi
        r hget big:1 field-2
        assert_equal [list [session 2]] [r exec]
        assert_equal $before [info_field rdb_changes_since_last_save]
        r hset big:1 short y
        assert_equal {message __keyspace@0__:big:1 hset} [$follower -push]
        $follower -close
        r config set notify-keyspace-events {}
    }

    test {fields with compressed values expire} {
        r flushall sync
        r hset big:1 {*}[mixed 1]
        r hpexpire big:1 100000 fields 5 {*}[field_names 1 5]
        compress big:1
        assert_equal 11 [compressed_now]
        r hpexpire big:1 1 fields 5 {*}[field_names 1 5]
        wait_for_condition 600 50 {[r hlen big:1] == 10} else {fail "they do not expire"}
        assert_equal 6 [compressed_now]
        r pexpire big:1 1
        no_values_left
    }

    test {FLUSHALL, FLUSHDB, SWAPDB, UNLINK and expiry forget no value, in this thread and another one} {
        # Databases of more than a thousand keys are freed as a whole.
        foreach {way hashes fields strings} {
            {flushall sync} 10 50 2000 {flushall async} 10 50 2000 {flushdb sync} 10 50 0 {flushdb async} 80 20 0 {unlink big:1} 1 300 10 {del big:1} 1 300 0
            {pexpire big:1 1} 1 300 0 {set big:1 x} 1 300 0 {flushall async} 1 300 1
        } {
            r flushall sync
            for {set i 1} {$i <= $hashes} {incr i} {
                r hset big:$i {*}[sessions 1 $fields]
                compress big:$i
            }
            for {set i 0} {$i < $strings} {incr i} {r set plain:$i x}
            assert_equal [expr {$hashes * $fields}] [compressed_now]
            r swapdb 0 3
            r select 3
            r {*}$way
            wait_for_condition 600 50 {[compressed_now] == 0} else {fail "$way: [compressed_now] values left"}
            assert_equal 0 [info_field compressed_values_packed_bytes] $way
            r swapdb 0 3
            r select 0
        }
        r flushall sync
    }

    test {eviction removes hashes with compressed values} {
        for {set i 0} {$i < 60} {incr i} {
            r hset big:$i {*}[sessions $i [expr {$i + 30}]]
            compress big:$i
        }
        r config set maxmemory-policy allkeys-random
        # What was freed before may come back later than the limit is set: it is set again then.
        wait_for_condition 600 50 {
            [r config set maxmemory [expr {[info_field used_memory] - 20000}]] eq "OK" && [info_field evicted_keys] > 0
        } else {
            fail "nothing is evicted"
        }
        r config set maxmemory 0 maxmemory-policy noeviction
        wait_for_condition 600 50 {[compressed_now] == 31 * [r dbsize]} else {fail "[compressed_now] values"}
        r flushall sync
        no_values_left
    }

    test {defragmentation moves elements with compressed values} {
        for {set i 0} {$i < 20} {incr i} {
            r hset big:$i {*}[sessions 1 100]
            compress big:$i
            r hdel big:$i {*}[lmap n {1 2 4 5 7 8 10 11 13 14} {string cat field-$n}]
        }
        set digest [r debug digest]
        set before [compressed_now]
        catch {r config set activedefrag yes active-defrag-ignore-bytes 1 active-defrag-threshold-lower 0}
        r memory purge
        for {set i 0} {$i < 20} {incr i} {r hget big:$i field-3}
        assert_equal $digest [r debug digest]
        assert_equal $before [compressed_now]
        catch {r config set activedefrag no}
        r flushall sync
        no_values_left
    }

    proc fill_many {count} {
        for {set i 0} {$i < $count} {incr i} {
            r hset big:$i {*}[mixed $i]
            if {$i % 3} {r expire big:$i 100000}
            if {$i % 2} {r hexpire big:$i 100000 fields 2 field-[expr {$i + 1}] short}
        }
    }
    proc compress_many {count} {
        for {set i 0} {$i < $count} {incr i} {if {$i % 4} {compress big:$i}}
    }

    test {files have plain values, whatever makes them} {
        r flushall sync
        fill_many 20
        set digest [r debug digest]
        foreach mode {fork inline} {
            r config set snapshot-mode $mode
            foreach rdbcompression {yes no} {
                r config set rdbcompression $rdbcompression
                compress_many 20
                save_in_background
                r debug reload nosave
                assert_equal $digest [r debug digest] "$mode $rdbcompression"
                assert_equal 0 [compressed_now]
            }
        }
        r config set rdbcompression yes
        compress_many 20
        r save
        r debug reload
        assert_equal $digest [r debug digest]
        foreach preamble {yes no} {
            foreach mode {fork inline} {
                r config set snapshot-mode $mode aof-use-rdb-preamble $preamble appendonly yes
                rewritten
                compress_many 20
                r bgrewriteaof
                rewritten
                r debug loadaof
                assert_equal $digest [r debug digest] "AOF $preamble $mode"
                r config set appendonly no
            }
        }
    }

    test {a snapshot in slices has the hashes of its start while they are compressed, written and removed} {
        foreach delay {0 200} {
            r flushall sync
            fill_many 40
            # One that is passed on by elements.
            r hset big:large {*}[sessions 1 5000]
            compress_many 40
            compress big:large
            set digest [r debug digest]
            r config set snapshot-mode inline rdb-key-save-delay $delay
            r bgsave
            for {set i 0} {$i < 40} {incr i} {
                switch [expr {$i % 6}] {
                    0 {r debug compress big:$i}
                    1 {r hset big:$i field-$i x new y}
                    2 {r del big:$i}
                    3 {r hget big:$i field-$i; r expire big:$i 1000; r debug value-dictionary big: [session $i]; r debug compress big:$i}
                    4 {r rename big:$i new:$i}
                    5 {r hdel big:$i huge field-[expr {$i + 3}]}
                }
                r hset big:large field-[expr {$i * 100 + 1}] x
                r hdel big:large field-[expr {$i * 100 + 2}]
                r hpexpire big:large 100000 fields 1 field-[expr {$i * 100 + 3}]
                r debug compress big:large
            }
            r del big:large
            r config set rdb-key-save-delay 0
            info_is rdb_bgsave_in_progress 0
            r debug reload nosave
            assert_equal $digest [r debug digest]
        }
    }

    test {a replica gets plain values, and compresses its own} {
        r flushall sync
        fill_many 20
        compress_many 20
        start_server {overrides {enable-debug-command yes save {} hash-max-listpack-entries 4}} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            same_data -1 -0
            assert_equal 0 [compressed_now]
            make_dictionaries
            compress_many 20
            r -1 hset big:1 field-3 x huge y
            r -1 hincrby big:2 number 3
            r -1 hdel big:3 field-4
            r -1 hgetdel big:5 fields 1 huge
            r -1 hpexpire big:6 100000 fields 1 field-8
            r -1 unlink big:7 big:8
            same_data -1 -0
        }
    }

    test {MIGRATE sends plain values} {
        start_server {overrides {enable-debug-command yes save {}}} {
            r -1 migrate [srv host] [srv port] {} 0 5000 copy keys big:1 big:2
            foreach key {big:1 big:2} {assert_equal [r -1 debug digest-value $key] [r debug digest-value $key] $key}
        }
    }

    test {commands that run in slices read compressed values} {
        r flushall sync
        r hset big:1 {*}[sessions 1 400]
        r hset big:2 {*}[sessions 1 400]
        r hpexpire big:2 10000000 fields 3 field-1 field-2 field-3
        r rpush numbers {*}[lmap i [lrepeat 300 x] {expr {[incr n] % 2 + 1}}]
        set commands {
            {hgetall big:1} {hkeys big:1} {hvals big:2} {hgetallex big:2} {hrandfield big:1 400 withvalues} {hrandfield big:2 400 withvalues}
            {sort numbers by nosort get big:*->field-7} {copy big:1 big:3 replace}
        }
        set plain [lmap command $commands {lsort [r {*}$command]}]
        compress big:1
        compress big:2
        r config set command-slice-us 1
        set begun [info_field jobs_done]
        r debug pause-jobs 1
        set readers [lmap command $commands {connect}]
        foreach command $commands client $readers {$client -send {*}$command}
        wait_for_condition 600 50 {[info_field jobs_running] > 0} else {fail "no job has begun"}
        # Others read and compress meanwhile.
        r debug value-dictionary big: [session 17]
        for {set i 0} {$i < 3} {incr i} {
            foreach key {big:1 big:2} {
                assert_equal [session 9] [r hget $key field-9]
                r debug compress $key
            }
        }
        # Writers wait for them.
        set writer [connect]
        $writer -send hset big:1 field-5 x
        r debug pause-jobs 0
        foreach command $commands client $readers expected $plain {
            assert_equal $expected [lsort [$client -read]] $command
        }
        assert_equal 0 [$writer -read]
        r config set command-slice-us 1000
        assert {[info_field jobs_done] > $begun}
        foreach client [list {*}$readers $writer] {$client -close}
        r flushall sync
        no_values_left
    }

    test {modules read and change compressed values as plain ones} {
        r module load [file normalize build/modules/elements.so]
        foreach command {
            {hash.get big:1 field-3} {hash.get big:1 none} {hash.get big:1 huge} {hash.set big:1 0 new v} {hash.set big:1 0 field-4 v}
            {hash.set big:1 0 field-4 delete} {elements.scan big:1} {hash.copy big:1 big:2}
        } {
            set results {}
            foreach packed {no yes} {
                r del big:1 big:2
                r hset big:1 {*}[mixed 1]
                if {$packed} {compress big:1}
                lappend results [list [catch {r {*}$command} reply] $reply [seen big:1] [r hgetall big:2]]
            }
            assert_equal {*}$results $command
        }
        r module unload elements
        r flushall sync
        no_values_left
    }

    test {the second read since the hash was idle stores a value plain, and only that one} {
        r flushall sync
        r config set value-compression idle value-compression-min-bytes 64
        r hset big:1 {*}[sessions 1 20]
        make_idle big:1
        compress big:1
        assert_equal 20 [compressed_now]
        assert_equal [session 5] [r hget big:1 field-5]
        assert_equal [session 6] [r hget big:1 field-6]
        assert_equal 20 [compressed_now]
        assert_equal [session 5] [r hget big:1 field-5]
        wait_for_condition 600 50 {[compressed_now] == 19} else {fail "[compressed_now] values"}
        assert_equal [session 5] [r hget big:1 field-5]
        # Nor do those that read all for other reasons.
        foreach i {1 2 3} {
            r dump big:1
            r debug digest
            r hscan big:1 0 count 100
            r hkeys big:1
        }
        assert_equal 19 [compressed_now]
        r hset big:2 {*}[sessions 1 20]
        make_idle big:2
        compress big:2
        r hgetall big:2
        assert_equal 39 [compressed_now]
        assert_equal [sessions 1 20] [sorted_pairs [r hgetall big:2]]
        wait_for_condition 600 50 {[compressed_now] == 19} else {fail "[compressed_now] values"}
        r del big:2
        # With `no` the first read does.
        r config set value-compression no
        assert_equal [session 7] [r hget big:1 field-7]
        wait_for_condition 600 50 {[compressed_now] == 18} else {fail "[compressed_now] values"}
        # With `always` none.
        r config set value-compression always
        foreach i {1 2 3} {assert_equal [session 9] [r hget big:1 field-9]}
        wait_for_condition 600 50 {[compressed_now] == 20} else {fail "[compressed_now] values"}
        r config set value-compression no
    }

    test {values of hashes that are not used are compressed, others are not, and move to newer dictionaries} {
        r flushall sync
        r config set value-compression idle value-compression-min-bytes 64
        r hset big:1 {*}[mixed 1]
        r hset big:2 {*}[mixed 2]
        r hset big:3 a b c d e f g h i j
        foreach key {big:1 big:3} {make_idle $key}
        r debug value-dictionary big: [session 12]
        wait_for_condition 600 50 {[compressed_now] == 11} else {fail "[compressed_now] values"}
        assert {![is_compressed big:2]}
        set new [r debug value-dictionary big: [session 13][session 14]]
        wait_for_condition 600 50 {[r debug compressed big:1] == $new && [string match "*current=yes,values=11,*" [r info memory]]} else {
            fail "it is still the old one"
        }
        assert_equal 11 [compressed_now]
        assert_equal [session 5] [r hget big:1 field-5]
        r config set value-compression no
    }

    test {with `always` values are compressed after they were written, whatever is read} {
        r flushall sync
        r config set value-compression always
        r hset big:1 {*}[sessions 1 30]
        wait_for_condition 1200 50 {[r hlen big:1] == 30 && [compressed_now] == 30} else {fail "[compressed_now] values"}
        r config set value-compression no
        r flushall sync
        no_values_left
    }
}

# A dictionary is trained from the fields of one hash.
start_server {tags {hash with:zstd} overrides {save {} value-compression idle value-compression-idle-seconds 1 value-compression-cpu 50}} {
    test {a dictionary is trained for the values of a single hash} {
        for {set i 0} {$i < 10000} {incr i 500} {r hset sessions {*}[sessions $i [expr {$i + 499}]]}
        wait_for_condition 1200 100 {[compressed_now] == 10000} else {
            fail "[compressed_now] values, [info_field value_dictionaries] dictionaries"
        }
        assert {[info_field compressed_values_ratio] < 0.5}
        assert_equal [session 4711] [r hget sessions field-4711]
    }
}
