# Commands on keys of any type: DEL to SWAPDB, OBJECT, MEMORY USAGE, and the attributes kept when a
# key is moved.

proc null_bulk {} {return [expr {[resp3] ? {null null} : {null bulk}}]}
proc no_key {} {return "ERR no such key"}
proc no_integer {} {return "ERR value is not an integer or out of range"}

start_server {tags {keyspace}} {
    r select 9
    r flushall

    test {DEL and UNLINK count existing keys, each name once} {
        foreach command {del unlink} {
            r mset a 1 b 2 c 3
            assert_equal {integer 2} [r -typed $command a b nokey a]
            assert_equal {integer 0} [r -typed $command a b]
            assert_equal 1 [r exists c]
            assert_error "ERR wrong number of arguments for '$command' command" {r $command}
        }
    }

    test {DEL of many keys at once} {
        set count [scaled 5000]
        set names {}
        for {set i 0} {$i < $count} {incr i} {lappend names key:$i; r -send set key:$i $i}
        for {set i 0} {$i < $count} {incr i} {r -read}
        assert_equal $count [r exists {*}$names]
        assert_equal $count [r del {*}$names nokey]
        assert_equal 0 [r exists {*}$names]
    }

    test {EXISTS counts every mention} {
        r set a 1
        r set b 2
        assert_equal {integer 3} [r -typed exists a nokey a b]
        assert_equal 0 [r exists nokey]
        assert_error "ERR wrong number of arguments for 'exists' command" {r exists}
    }

    test {TYPE replies the type, none for a missing key} {
        r set a 1
        assert_equal {status string} [r -typed type a]
        assert_equal {status none} [r -typed type nokey]
        assert_error "ERR wrong number of arguments for 'type' command" {r type}
        assert_error "ERR wrong number of arguments for 'type' command" {r type a b}
    }

    test {TYPE of collections} {
        needs_command rpush sadd hset zadd xadd
        r del list set hash zset stream
        r rpush list a
        r sadd set a
        r hset hash f v
        r zadd zset 1 a
        r xadd stream * f v
        foreach type {list set hash zset stream} {assert_equal $type [r type $type]}
        assert_equal 5 [r del list set hash zset stream]
    }

    test {TOUCH counts existing keys} {
        r set a 1
        r set b 2
        assert_equal {integer 3} [r -typed touch a b nokey a]
        assert_error "ERR wrong number of arguments for 'touch' command" {r touch}
    }

    test {RANDOMKEY returns every key eventually, null if there is none} {
        r flushdb
        assert_equal [null_bulk] [r -typed randomkey]
        for {set i 0} {$i < 5} {incr i} {r set key:$i 1}
        for {set i 0} {$i < 500 && [array size seen] < 5} {incr i} {set seen([r randomkey]) 1}
        assert_equal {key:0 key:1 key:2 key:3 key:4} [lsort [array names seen]]
        assert_error "ERR wrong number of arguments for 'randomkey' command" {r randomkey a}
    }

    test {RENAME moves the value with its TTL and replaces an existing key} {
        r flushdb
        r set a value ex 1000
        assert_equal {status OK} [r -typed rename a b]
        assert_equal 0 [r exists a]
        assert_equal value [r get b]
        assert_range [r ttl b] 990 1000
        r set c other
        assert_equal OK [r rename c b]
        assert_equal other [r get b]
        assert_equal -1 [r ttl b]
        assert_equal 1 [r dbsize]
    }

    test {RENAME to itself is fine, of a missing key it is not} {
        r set a 1
        assert_equal OK [r rename a a]
        assert_equal 1 [r get a]
        assert_error [no_key] {r rename nokey b}
        assert_error [no_key] {r rename nokey nokey}
        assert_error "ERR wrong number of arguments for 'rename' command" {r rename a}
    }

    test {RENAMENX refuses an existing name, including its own} {
        r mset a 1 b 2
        assert_equal {integer 0} [r -typed renamenx a b]
        assert_equal 0 [r renamenx a a]
        assert_equal 2 [r get b]
        r del b
        assert_equal 1 [r renamenx a b]
        assert_equal {0 1} [list [r exists a] [r get b]]
        assert_error [no_key] {r renamenx nokey b}
        assert_error [no_key] {r renamenx nokey nokey}
    }

    test {names and values of any length survive RENAME and COPY} {
        foreach key_len {1 31 32 127 128 1000 5000} {
            foreach value_len {0 1 12 112 113 900 1100 20000} {
                set value [string repeat v $value_len]
                set other [string repeat k $key_len]
                r set a $value px 100000
                assert_equal OK [r rename a $other]
                assert_equal 1 [r copy $other a]
                assert {[r get $other] eq $value && [r get a] eq $value} "$key_len, $value_len"
                assert_range [r pttl a] 90000 100000
                assert_equal 2 [r del a $other]
            }
        }
    }

    test {MOVE moves key and TTL to another database} {
        r flushall
        r set a value ex 1000
        assert_equal {integer 1} [r -typed move a 10]
        assert_equal 0 [r exists a]
        r select 10
        assert_equal value [r get a]
        assert_range [r ttl a] 990 1000
        r select 9
    }

    test {MOVE refuses a missing source or an existing destination} {
        r select 10
        r set a there
        r select 9
        assert_equal 0 [r move nokey 10]
        r set a here
        assert_equal 0 [r move a 10]
        assert_equal here [r get a]
    }

    test {MOVE validates the database} {
        assert_error "ERR source and destination objects are the same" {r move a 9}
        assert_error "ERR source and destination objects are the same" {r move nokey 9}
        foreach id {16 -1 2147483647} {assert_error "ERR DB index is out of range" {r move a $id}}
        foreach id {x 1.5 {} 9999999999999999999} {assert_error [no_integer] {r move a $id}}
        assert_error "ERR value is out of range, value must between -2147483648 and 2147483647" \
            {r move a 2147483648}
    }

    test {COPY keeps the source and copies the TTL} {
        r flushall
        r set a value ex 1000
        assert_equal {integer 1} [r -typed copy a b]
        assert_equal {value value} [r mget a b]
        assert_range [r ttl b] 990 1000
        r append b more
        assert_equal {value valuemore} [r mget a b]
        assert_equal 0 [r copy nokey b]
    }

    test {COPY replaces only with REPLACE} {
        r mset a 1 b 2
        assert_equal 0 [r copy a b]
        assert_equal 2 [r get b]
        assert_equal 1 [r copy a b replace]
        assert_equal 1 [r get b]
    }

    test {COPY into another database} {
        assert_equal 1 [r copy a a db 10]
        assert_equal 0 [r copy a a DB 10]
        assert_equal 1 [r copy a a replace DB 10]
        r select 10
        assert_equal 1 [r get a]
        r select 9
    }

    test {COPY refuses invalid options} {
        assert_error "ERR source and destination objects are the same" {r copy a a}
        assert_error "ERR source and destination objects are the same" {r copy nokey nokey db 9}
        assert_error "ERR syntax error" {r copy a b foo}
        assert_error "ERR syntax error" {r copy a b replace db}
        assert_error "ERR DB index is out of range" {r copy a b db 16}
        assert_error [no_integer] {r copy a b db x}
        assert_error "ERR syntax error" {r copy a a db 9 foo}
    }

    test {a large value that was copied changes in one place only} {
        set value [string repeat x 100000]
        r set a $value
        r copy a b replace
        r setrange a 0 changed
        assert {[r get b] eq $value}
        r del a
        assert {[r get b] eq $value}
        r del b
    }

    test {SWAPDB exchanges databases for all clients} {
        r flushall
        r set here nine
        r select 10
        r set there ten
        set other [connect]
        $other select 9
        assert_equal {status OK} [r -typed swapdb 9 10]
        assert_equal nine [r get here]
        assert_equal ten [$other get there]
        assert_equal {1 1} [list [r dbsize] [$other dbsize]]
        assert_equal OK [r swapdb 9 9]
        r select 9
        assert_equal ten [r get there]
    }

    test {SWAPDB validates the databases} {
        foreach id {x {} 1.5 4294967296 9999999999999999999} {
            assert_error "ERR invalid first DB index" {r swapdb $id 0}
            assert_error "ERR invalid second DB index" {r swapdb 0 $id}
        }
        foreach id {-1 16} {
            assert_error "ERR DB index is out of range" {r swapdb $id 0}
            assert_error "ERR DB index is out of range" {r swapdb 0 $id}
        }
        assert_error "ERR invalid first DB index" {r swapdb x y}
    }

    test {FLUSHDB empties one database, FLUSHALL all} {
        r flushall
        foreach how {{} sync ASYNC} {
            foreach id {9 10 11} {
                r select $id
                for {set i 0} {$i < 200} {incr i} {r -send set key:$i $i}
                for {set i 0} {$i < 200} {incr i} {r -read}
            }
            r select 10
            assert_equal {status OK} [r -typed flushdb {*}$how]
            assert_equal 0 [r dbsize]
            r select 9
            assert_equal 200 [r dbsize]
            assert_equal OK [r flushall {*}$how]
            assert_equal 0 [r dbsize]
            r select 11
            assert_equal 0 [r dbsize]
            r select 9
        }
        foreach command {flushdb flushall} {
            assert_error "ERR syntax error" {r $command foo}
            assert_error "ERR syntax error" {r $command sync async}
        }
    }

    test {keys flushed in the background are counted, and large values are freed} {
        r config resetstat
        r set big [string repeat x 1000000]
        for {set i 0} {$i < 2000} {incr i} {r -send set key:$i [string repeat v 2000]}
        for {set i 0} {$i < 2000} {incr i} {r -read}
        set full [info_field used_memory]
        r flushall async
        wait_for_condition 100 50 {[info_field lazyfree_pending_objects] == 0}
        wait_for_condition 100 50 {[info_field used_memory] < $full - 4000000}
    } {needs:own}

    test {a value that is being sent survives its key} {
        set value [string repeat 0123456789 100000]
        set other [connect]
        $other select 9
        for {set i 0} {$i < 10} {incr i} {
            r set big $value
            r -send get big
            $other [lindex {del unlink flushall} [expr {$i % 3}]] {*}[expr {$i % 3 < 2 ? {big} : {async}}]
            set reply [r -read]
            assert {$reply eq $value || $reply eq ""}
        }
        for {set i 0} {$i < 10} {incr i} {
            r set big $value
            r multi
            r get big
            r [lindex {del unlink flushall} [expr {$i % 3}]] {*}[expr {$i % 3 < 2 ? {big} : {async}}]
            assert {[lindex [r exec] 0] eq $value}
        }
    }

    test {a random mix over two databases agrees with two dicts} {
        r flushall
        array set model {0 {} 1 {}}
        for {set i 0} {$i < [scaled 4000]} {incr i} {
            set here [random_below 2]
            set there [expr {1 - $here}]
            r select [expr {9 + $here}]
            set a key:[random_below 40]
            set b key:[random_below 40]
            set has [dict exists $model($here) $a]
            switch [random_below 7] {
                0 - 1 {
                    set value [string repeat v [random_below 200]]$i
                    r set $a $value
                    dict set model($here) $a $value
                }
                2 {assert_equal $has [r del $a]; dict unset model($here) $a}
                3 {
                    if {!$has} {assert_error [no_key] {r rename $a $b}; continue}
                    assert_equal OK [r rename $a $b]
                    set value [dict get $model($here) $a]
                    dict unset model($here) $a
                    dict set model($here) $b $value
                }
                4 {
                    set free [expr {$has && ![dict exists $model($there) $a]}]
                    assert_equal $free [r move $a [expr {9 + $there}]]
                    if {!$free} continue
                    dict set model($there) $a [dict get $model($here) $a]
                    dict unset model($here) $a
                }
                5 {
                    assert_equal $has [r copy $a $b DB [expr {9 + $there}] REPLACE]
                    if {$has} {dict set model($there) $b [dict get $model($here) $a]}
                }
                6 {
                    if {[random_below 20]} {assert_equal $has [r exists $a]; continue}
                    r swapdb 9 10
                    lassign [list $model(0) $model(1)] model(1) model(0)
                }
            }
        }
        foreach id {0 1} {
            r select [expr {9 + $id}]
            assert_equal [dict size $model($id)] [r dbsize]
            assert_equal [lsort [dict keys $model($id)]] [lsort [r keys *]]
            dict for {key value} $model($id) {assert_equal $value [r get $key]}
        }
        r select 9
    }
}

start_server {tags {keyspace object}} {
    test {OBJECT ENCODING of strings} {
        r set a 12345
        assert_equal {bulk int} [r -typed object encoding a]
        r set a text
        assert_equal embstr [r object encoding a]
        r set a [string repeat x 200]
        assert_equal raw [r object encoding a]
        assert_equal [null_bulk] [r -typed object encoding nokey]
    }

    test {an encoding changes with the length of the name} {
        r set a [string repeat x 112]
        assert_equal embstr [r object encoding a]
        r rename a ab
        assert_equal raw [r object encoding ab]
        r rename ab a
        assert_equal raw [r object encoding a]
        r set a [string repeat x 111]
        r copy a ab replace
        assert_equal {embstr embstr} [list [r object encoding a] [r object encoding ab]]
        r copy a abc replace
        assert_equal raw [r object encoding abc]
        r copy abc a replace
        assert_equal raw [r object encoding a]
        r set a 10
        r rename a [string repeat k 200]
        assert_equal int [r object encoding [string repeat k 200]]
    }

    test {a TTL counts for the size of an object} {
        r set a [string repeat x 105]
        assert_equal embstr [r object encoding a]
        r expire a 1000
        assert_equal raw [r object encoding a]
        r persist a
        assert_equal raw [r object encoding a]
        r set a [string repeat x 104]
        r expire a 1000
        r persist a
        assert_equal embstr [r object encoding a]
    }

    test {OBJECT REFCOUNT is one} {
        r set a 1
        assert_equal {integer 1} [r -typed object refcount a]
        assert_equal [null_bulk] [r -typed object refcount nokey]
    }

    test {OBJECT FREQ needs an LFU policy, IDLETIME another} {
        r config set maxmemory-policy allkeys-lru
        r set a 1
        assert_match {ERR An LFU maxmemory policy is not selected, access frequency not tracked.*} \
            [catch {r object freq a} message; set message]
        assert_equal [null_bulk] [r -typed object freq nokey]
        assert_range [r object idletime a] 0 1
        r config set maxmemory-policy allkeys-lfu
        r set b 1
        assert_equal 5 [r object freq b]
        assert_match {ERR An LFU maxmemory policy is selected, idle time not tracked.*} \
            [catch {r object idletime b} message; set message]
        assert_equal [null_bulk] [r -typed object idletime nokey]
        r config set lfu-log-factor 0
        for {set i 0} {$i < 10} {incr i} {r get b}
        assert_equal 15 [r object freq b]
        r config set lfu-log-factor 10
        r config set maxmemory-policy noeviction
    } {needs:own}

    test {OBJECT IDLETIME: reading is an access, OBJECT is not} {
        r set a 1
        wait_for_condition 100 50 {[r object idletime a] >= 2}
        r exists a
        r type a
        r ttl a
        r object encoding a
        assert {[r object idletime a] >= 2}
        r get a
        assert_range [r object idletime a] 0 1
    }

    test {CLIENT NO-TOUCH leaves idle times alone, but TOUCH is a touch} {
        r set a 1
        wait_for_condition 100 50 {[r object idletime a] >= 2}
        r client no-touch on
        r get a
        assert {[r object idletime a] >= 2}
        r touch a
        assert_range [r object idletime a] 0 1
        r client no-touch off
    }

    test {OBJECT refuses unknown subcommands} {
        assert_error "ERR wrong number of arguments for 'object' command" {r object}
        assert_error "ERR wrong number of arguments for 'object|encoding' command" {r object encoding}
        assert_error "ERR wrong number of arguments for 'object|freq' command" {r object freq a b}
        assert_error "ERR unknown subcommand 'foo'. Try OBJECT HELP." {r object foo a}
        assert_match "OBJECT <subcommand>*" [lindex [r object help] 0]
        assert_equal 15 [llength [r object help]]
    }

    test {MEMORY USAGE grows with the value} {
        r set a x
        set small [r memory usage a]
        assert_range $small 5 128
        r set a [string repeat x 100000]
        assert_range [r memory usage a] 100000 140000
        assert_equal [null_bulk] [r -typed memory usage nokey]
        assert_equal [r memory usage a] [r memory usage a samples 0]
        assert_error "ERR syntax error" {r memory usage a samples}
        assert_error "ERR syntax error" {r memory usage a samples -1}
        assert_error "ERR syntax error" {r memory usage a foo 1}
        assert_error [no_integer] {r memory usage a samples x}
        assert_equal 17 [llength [r memory help]]
    }
}
