# Strings compressed in memory: nothing but their memory tells them from plain ones. Database 0 has a dictionary, so
# its values can be compressed; database 9 has none: the plain twins.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/frames.tcl
source $::tests_dir/support/compressed.tcl

proc record {i} {
    set form {{"name":"package-%d","version":"1.2.%d","license":"MIT","dependencies":{"left":"^1.0.0","right":"^2.0.0"}}}
    format $form $i $i
}

# A key that was not used for a long time.
proc set_idle {key value} {
    r set $key $value
    r restore $key 0 [r dump $key] replace idletime 100000
}

if {"zstd" ni [built_codecs]} {
    start_server {tags {string needs:config}} {
        test {without Zstandard value-compression is refused, with the reason, and changes nothing} {
            foreach mode {idle always} {
                assert_error "*Zstandard compression is not available in this build*" {r config set value-compression $mode}
            }
            assert_equal {value-compression no} [r config get value-compression]
            assert_equal OK [r config set value-compression no value-compression-idle-seconds 30]
            r set pkg:1 [record 1]
            assert_equal [record 1] [r get pkg:1]
        }
    }
}

start_server {tags {string with:zstd} overrides {enable-debug-command yes enable-module-command yes save {}}} {
    r config set value-compression always value-compression-min-bytes 131072
    r select 0
    foreach prefix {pkg: hll:} {r debug value-dictionary $prefix [record 7]}
    set v [record 1]
    set w [record 2]
    set future [expr {[clock milliseconds] + 1000000}]

    foreach {name script} {
        get {
            SET pkg:1 $v
            Z pkg:1
            GET pkg:1
            GETRANGE pkg:1 3 20
            GETRANGE pkg:1 -5 -1
            SUBSTR pkg:1 0 3
            STRLEN pkg:1
            MGET pkg:1 none pkg:1
            EXISTS pkg:1 pkg:1
            TOUCH pkg:1
            TYPE pkg:1
            OBJECT ENCODING pkg:1
            OBJECT REFCOUNT pkg:1
            TTL pkg:1
            GETBIT pkg:1 9
            BITCOUNT pkg:1
            BITCOUNT pkg:1 2 30 BIT
            BITPOS pkg:1 1
            BITPOS pkg:1 0 5
            BITFIELD_RO pkg:1 GET u8 0 GET i16 #3
            DIGEST pkg:1
            GETPXT pkg:1
            MGETPXT pkg:1 none
            LCS pkg:1 pkg:1
            DUMP pkg:1
            DBSIZE
            KEYS *
            SCAN 0 TYPE string
        }
        wrong_type {
            SET pkg:1 $v
            Z pkg:1
            LPUSH pkg:1 a
            HGET pkg:1 a
            INCR pkg:1
            INCRBYFLOAT pkg:1 1.5
            PFCOUNT pkg:1
            PFADD pkg:1 a
            SMEMBERS pkg:1
            XADD pkg:1 * a b
        }
        set {
            SET pkg:1 $v
            Z pkg:1
            SET pkg:1 $w
            Z pkg:1
            SET pkg:1 $v NX
            SET pkg:1 $v XX GET
            Z pkg:1
            SET pkg:1 short
            SET pkg:2 $v PXAT $future
            Z pkg:2
            SET pkg:2 $w KEEPTTL
            Z pkg:2
            SET pkg:2 17 KEEPTTL
            SET pkg:3 $v
            Z pkg:3
            SET pkg:3 $w IFEQ nothing
            SET pkg:3 $w IFEQ $v
            Z pkg:3
            SET pkg:3 $v PXAT $future
            Z pkg:3
            SETNX pkg:3 a
            GETSET pkg:3 $w
            MSET pkg:4 $v pkg:5 $w
            Z pkg:4
            Z pkg:5
            MSET pkg:4 $w pkg:5 $w
            Z pkg:4
            MSETNX pkg:4 a pkg:6 b
            SETEX pkg:4 10000000 $v
            PERSIST pkg:4
        }
        change {
            SET pkg:1 $v
            Z pkg:1
            APPEND pkg:1 more
            Z pkg:1
            SETRANGE pkg:1 5 XYZ
            Z pkg:1
            SETRANGE pkg:1 400 XYZ
            Z pkg:1
            SETBIT pkg:1 77 1
            Z pkg:1
            BITFIELD pkg:1 SET u8 #4 255 INCRBY u8 #5 3
            Z pkg:1
            BITFIELD pkg:1 GET u8 #4
            GETDEL pkg:1
            SET pkg:2 $v
            Z pkg:2
            DELIFEQ pkg:2 no
            DELIFEQ pkg:2 $v
            SET pkg:3 $v
            Z pkg:3
            INCREX pkg:3 BYINT 5
            BITOP AND pkg:5 pkg:3 pkg:3
            SET pkg:4 $w
            Z pkg:4
            BITOP XOR pkg:6 pkg:3 pkg:4 none
            Z pkg:3
            BITOP NOT pkg:3 pkg:3
            LCS pkg:3 pkg:4 LEN
            LCS pkg:4 pkg:6 IDX
        }
        times {
            SET pkg:1 $v
            Z pkg:1
            PEXPIREAT pkg:1 $future
            PEXPIREAT pkg:1 $future NX
            PERSIST pkg:1
            OBJECT ENCODING pkg:1
            GETEX pkg:1 PXAT $future
            GETEX pkg:1 PERSIST
            PEXPIREAT pkg:1 9223372036854
            PEXPIRETIME pkg:1
            PEXPIREAT pkg:1 300000000000000
            PEXPIRETIME pkg:1
            SET pkg:2 $v PXAT $future
            Z pkg:2
            PEXPIREAT pkg:2 $future GT
            PEXPIRETIME pkg:2
            EXPIRE pkg:2 -1
            GET pkg:2
            SET pkg:3 "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456"
            OBJECT ENCODING pkg:3
            Z pkg:3
            OBJECT ENCODING pkg:3
            PEXPIREAT pkg:3 $future
            OBJECT ENCODING pkg:3
            PERSIST pkg:3
            OBJECT ENCODING pkg:3
        }
        names {
            SET pkg:1 $v PXAT $future
            Z pkg:1
            RENAME pkg:1 pkg:2
            RENAMENX pkg:2 pkg:3
            COPY pkg:3 pkg:4
            SET pkg:5 $w
            Z pkg:5
            COPY pkg:3 pkg:5
            COPY pkg:3 pkg:5 REPLACE
            RENAME pkg:5 pkg:4
            UNLINK pkg:4
            SET pkg:7 $w
            Z pkg:7
            MOVE pkg:7 8
            EXISTS pkg:7
            SET pkg:8 $v
            Z pkg:8
            COPY pkg:8 pkg:8 DB 8 REPLACE
            DEL pkg:8
        }
        sort_scripts {
            RPUSH list 1 2 3
            MSET pkg:1 "$v c" pkg:2 "$v b" pkg:3 "$v a"
            Z pkg:1
            Z pkg:2
            Z pkg:3
            SORT list BY pkg:* ALPHA GET pkg:* GET #
            SORT list BY nosort GET pkg:* STORE sorted
            EVAL "return {redis.call('get', KEYS[1]), redis.call('getrange', KEYS[2], 0, 5), redis.call('strlen', KEYS[1])}" 2 pkg:1 pkg:2
            EVAL "local a = redis.call('get', KEYS[1]); redis.call('append', KEYS[1], 'x'); return a .. redis.call('get', KEYS[1])" 1 pkg:1
            EVAL "for i = 1, 100 do redis.call('get', KEYS[1]) end return redis.call('mget', KEYS[1], KEYS[2])" 2 pkg:2 pkg:3
            MULTI
            GET pkg:2
            APPEND pkg:2 x
            GET pkg:2
            EXEC
        }
        hyperloglog {
            CONFIG SET hll-sparse-max-bytes 1
            PFADD hll:1 a b c d e f g h i j k l m n o p
            Z hll:1
            PFCOUNT hll:1
            PFADD hll:2 x y z
            Z hll:1
            Z hll:2
            PFCOUNT hll:1 hll:2
            PFMERGE hll:3 hll:1 hll:2
            Z hll:1
            PFADD hll:1 more
            PFCOUNT hll:1
            CONFIG SET hll-sparse-max-bytes 3000
        }
        restore {
            SET pkg:1 $v
            Z pkg:1
            EVAL "local d = redis.call('dump', KEYS[1]) return redis.call('restore', KEYS[2], 0, d)" 2 pkg:1 pkg:2
            Z pkg:2
            EVAL "local d = redis.call('dump', KEYS[1]) return redis.call('restore', KEYS[2], 0, d, 'REPLACE')" 2 pkg:1 pkg:2
        }
    } {
        test "a compressed value is as its plain twin: $name" {
            both $name $script
        }
    }
    r select 0
    r flushall

    test {commands that only read leave a value compressed; those that write make it plain} {
        foreach {command after} {
            {get pkg:1} 1 {getrange pkg:1 0 5} 1 {strlen pkg:1} 1 {mget pkg:1} 1 {bitcount pkg:1} 1 {getbit pkg:1 3} 1
            {ttl pkg:1} 1 {expire pkg:1 1000} 1 {persist pkg:1} 1 {getex pkg:1 ex 1000} 1 {type pkg:1} 1
            {object encoding pkg:1} 1 {memory usage pkg:1} 1 {dump pkg:1} 1 {debug digest} 1 {touch pkg:1} 1
            {append pkg:1 x} 0 {setrange pkg:1 0 x} 0 {setbit pkg:1 3 1} 0
            {bitfield pkg:1 set u8 0 1} 0
        } {
            r set pkg:1 $v
            compress pkg:1
            r {*}$command
            assert_equal $after [is_compressed pkg:1] $command
        }
    }

    test {copies and new names of a compressed value are compressed} {
        r set pkg:1 $v
        compress pkg:1
        r copy pkg:1 pkg:2
        r rename pkg:2 pkg:3
        assert {[is_compressed pkg:3]}
        assert_equal 2 [info_field compressed_values]
        r flushall sync
    }

    test {compressing is no change: WATCH, events and counts of changes} {
        r config set notify-keyspace-events KEA
        r set pkg:1 $v
        set before [info_field rdb_changes_since_last_save]
        r watch pkg:1
        compress pkg:1
        r multi
        r get pkg:1
        assert_equal [list $v] [r exec]
        assert_equal $before [info_field rdb_changes_since_last_save]
        r config set notify-keyspace-events {}
    }

    test {a compressed value expires} {
        r flushall sync
        r set pkg:1 $v px 1000
        compress pkg:1
        r pexpire pkg:1 1
        wait_for_condition 600 50 {[r get pkg:1] eq "" && [r dbsize] == 0} else {fail "it does not expire"}
        assert_equal 0 [info_field compressed_values]
    }

    test {memory is what the compressed value takes} {
        r set pkg:1 [string repeat $v 10]
        set plain [r memory usage pkg:1]
        compress pkg:1
        assert {[r memory usage pkg:1] * 4 < $plain}
        assert_equal [string length $v]0 [r strlen pkg:1]
        assert_equal 1 [info_field compressed_values]
        assert_equal [r strlen pkg:1] [info_field compressed_values_bytes]
    }

    test {values that would gain nothing or are numbers, long or of other types are left alone} {
        r mset pkg:1 1234567890 pkg:2 short pkg:3 [string repeat $v 2000]
        r xadd pkg:4 * field $v
        foreach key {pkg:1 pkg:2 pkg:3 pkg:4} {assert_equal 0 [r debug compress $key] $key}
        set noise {}
        for {set i 0} {$i < 200} {incr i} {append noise [format %c [expr {int(rand() * 250)}]]}
        r set pkg:5 $noise
        assert_equal 0 [r debug compress pkg:5]
        r del pkg:1 pkg:2 pkg:3 pkg:4 pkg:5
    }

    test {FLUSHALL, FLUSHDB, SWAPDB and large DEL forget no user of a dictionary} {
        foreach way {{flushall sync} {flushall async} {flushdb sync} {flushdb async} del evicted} {
            for {set i 0} {$i < 1500} {incr i} {r set pkg:$i [record $i]}
            for {set i 0} {$i < 1500} {incr i} {compress pkg:$i}
            assert_equal 1500 [info_field compressed_values]
            r swapdb 0 3
            r select 3
            if {$way eq "del"} {
                for {set i 0} {$i < 1500} {incr i 50} {
                    set keys {}
                    for {set k $i} {$k < $i + 50} {incr k} {lappend keys pkg:$k}
                    r unlink {*}$keys
                }
            } elseif {$way eq "evicted"} {
                r eval {for _, key in ipairs(redis.call('keys', '*')) do redis.call('pexpire', key, 1) end} 0
                wait_for_condition 600 50 {[r dbsize] == 0} else {fail "keys do not expire"}
            } else {
                r {*}$way
            }
            wait_for_condition 600 50 {[info_field compressed_values] == 0} else {fail "$way: [info_field compressed_values] values left"}
            assert_equal 0 [info_field compressed_values_packed_bytes]
            r swapdb 0 3
            r select 0
        }
    }

    test {files have plain values, whatever makes them} {
        for {set i 0} {$i < 300} {incr i} {
            r set pkg:$i [string repeat [record $i] [expr {1 + $i % 7}]]
            if {$i % 3} {r expire pkg:$i 100000}
            if {$i % 4} {compress pkg:$i}
        }
        set digest [r debug digest]
        foreach mode {fork inline} {
            r config set snapshot-mode $mode
            foreach rdbcompression {yes no} {
                r config set rdbcompression $rdbcompression
                for {set i 0} {$i < 300} {incr i} {if {$i % 4} {compress pkg:$i}}
                save_in_background
                r debug reload nosave
                assert_equal $digest [r debug digest] "$mode $rdbcompression"
                assert_equal 0 [info_field compressed_values]
            }
        }
        r config set rdbcompression yes
        for {set i 0} {$i < 300} {incr i} {if {$i % 4} {compress pkg:$i}}
        r save
        r debug reload
        assert_equal $digest [r debug digest]
        foreach preamble {yes no} {
            foreach mode {fork inline} {
                r config set snapshot-mode $mode aof-use-rdb-preamble $preamble appendonly yes
                rewritten
                for {set i 0} {$i < 300} {incr i} {if {$i % 4} {compress pkg:$i}}
                r bgrewriteaof
                rewritten
                r debug loadaof
                assert_equal $digest [r debug digest] "AOF $preamble $mode"
                r config set appendonly no
            }
        }
    }

    test {a snapshot in slices has the values of its start while they are compressed and written} {
        r flushall
        r config set snapshot-mode inline rdb-key-save-delay 200
        for {set i 0} {$i < 500} {incr i} {
            r set pkg:$i [record $i]
            if {$i % 2} {compress pkg:$i}
        }
        set digest [r debug digest]
        r bgsave
        for {set i 0} {$i < 500} {incr i} {
            switch [expr {$i % 5}] {
                0 {compress pkg:$i}
                1 {r append pkg:$i x}
                2 {r del pkg:$i}
                3 {r get pkg:$i; r expire pkg:$i 1000}
                4 {r rename pkg:$i new:$i}
            }
        }
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {a replica gets plain values, and compresses its own} {
        r flushall
        for {set i 0} {$i < 200} {incr i} {
            r set pkg:$i [record $i]
            compress pkg:$i
        }
        start_server {overrides {enable-debug-command yes save {}}} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            same_data -1 -0
            assert_equal 0 [info_field compressed_values]
            r debug value-dictionary pkg: [record 7]
            compress pkg:7
            r -1 append pkg:7 more
            r -1 setrange pkg:8 0 more
            same_data -1 -0
        }
    }

    test {MIGRATE sends plain values} {
        start_server {overrides {save {}}} {
            r -1 migrate [srv host] [srv port] pkg:1 0 5000 copy
            assert_equal [record 1] [r get pkg:1]
        }
    }

    test {modules see plain strings: the length of a compressed one, its bytes, which are stored plain} {
        r module load [file normalize build/modules/keys.so]
        r set pkg:1 $v
        foreach command {{keys.get pkg:1 1} {keys.fastget pkg:1} {keys.get pkg:1 3}} {
            set plain [r {*}$command]
            compress pkg:1
            assert_equal $plain [r {*}$command] $command
            assert {![is_compressed pkg:1]}
        }
        # The memory of the object that the first handle has found is used again, for values of some of these lengths.
        set long [string repeat $v 5]
        for {set len 64} {$len <= 192} {incr len 4} {
            r mset pkg:1 $long pkg:2 [string range [string repeat $v 2] 0 $len-1]
            compress pkg:1
            compress pkg:2
            assert_equal [list [string length $long] $long] [r keys.both pkg:1 pkg:2] $len
        }
        r del pkg:2
        r module unload keys
    }

    test {a module that reads another value while a command runs does not disturb it} {
        r module load [file normalize build/modules/notices.so]
        r mset pkg:1 $v pkg:2 [string repeat [record 77] 20] pkg:3 $w
        foreach key {pkg:1 pkg:2 pkg:3} {compress $key}
        # It reads when it hears that a key has expired.
        r debug set-active-expire 0
        foreach key {reads:pkg:2 reads:pkg:3} {r psetex $key 1 value}
        set over [expr {[clock milliseconds] + 2}]
        wait_for_condition 3000 10 {[clock milliseconds] > $over}
        assert_equal [string length $v] [r bitop or to pkg:1 reads:pkg:3 reads:pkg:2]
        assert_equal $v [r get to]
        assert_equal 0 [r exists reads:pkg:2 reads:pkg:3]
        r debug set-active-expire 1
        r module unload notices
        r del to
    }

    test {the second read within the idle time stores a value plain} {
        r flushall
        r config set value-compression idle value-compression-min-bytes 64
        set_idle pkg:1 $v
        compress pkg:1
        assert_equal $v [r get pkg:1]
        assert {[is_compressed pkg:1]}
        assert_equal $v [r get pkg:1]
        assert {![is_compressed pkg:1]}
        r config set value-compression no
        compress pkg:1
        assert_equal $v [r get pkg:1]
        assert {![is_compressed pkg:1]}
    }

    test {a read stores no value plain when memory is scarce} {
        r config set value-compression idle
        r set pkg:1 $v
        r config set maxmemory [expr {[info_field used_memory] + 100000}] maxmemory-policy noeviction
        wait_for_condition 600 50 {
            [compress pkg:1; r get pkg:1; is_compressed pkg:1]
        } else {
            fail "a value is stored plain at maxmemory"
        }
        r config set maxmemory 0
    }

    test {a limit of memory that is reached ends it at once, so that reads have few keys evicted} {
        r flushall
        set hz [lindex [r config get hz] 1]
        r config set hz 1 value-compression idle value-compression-idle-seconds 1000 maxmemory-policy allkeys-lru
        r debug value-dictionary pkg: [record 13]
        for {set i 0} {$i < 300} {incr i} {
            r set pkg:$i [string repeat [record $i] 50]
            assert_equal 1 [r debug compress pkg:$i]
        }
        set evicted [info_field evicted_keys]
        r config set maxmemory [expr {[info_field used_memory] + 100000}]
        for {set i 0} {$i < 300} {incr i} {r get pkg:$i}
        assert {[info_field used_memory] < [lindex [r config get maxmemory] 1] + 100000}
        assert_range [expr {[info_field evicted_keys] - $evicted}] 0 100
        r config set maxmemory 0 maxmemory-policy noeviction hz $hz value-compression-idle-seconds 60
    }

    test {idle values are compressed before a key is evicted, which takes place if that is not enough} {
        r flushall
        r config set value-compression no maxmemory-policy allkeys-lru
        for {set i 0} {$i < 30} {incr i} {set_idle pkg:$i [string repeat [record $i] 900]}
        set evicted [info_field evicted_keys]
        # Each value takes 100 KB; a step compresses one at least. A new dictionary begins a pass.
        r debug value-dictionary pkg: [record 12]
        compress pkg:0
        r config set value-compression idle maxmemory [expr {[info_field used_memory] - 3000}]
        wait_for_condition 600 50 {[info_field compressed_values] > 1} else {fail "nothing is compressed"}
        assert_equal $evicted [info_field evicted_keys]
        r config set value-compression no maxmemory 0
        for {set i 0} {$i < 30} {incr i} {set_idle pkg:$i [string repeat [record $i] 900]}
        r config set maxmemory [expr {[info_field used_memory] - 300000}]
        wait_for_condition 600 50 {[info_field evicted_keys] > $evicted} else {fail "nothing is evicted"}
        r config set maxmemory 0 maxmemory-policy noeviction value-compression idle
        r flushall
    }

    test {values that are not used are compressed, others are not} {
        for {set i 0} {$i < 100} {incr i} {set_idle pkg:$i [record $i]}
        r set pkg:hot $v
        r debug value-dictionary pkg: [record 8]
        wait_for_condition 600 50 {[info_field compressed_values] == 100} else {fail "[info_field compressed_values] values"}
        assert {![is_compressed pkg:hot]}
        assert_equal [record 5] [r get pkg:5]
    }

    test {values of an older dictionary move to the new one} {
        set new [r debug value-dictionary pkg: [record 9][record 10]]
        wait_for_condition 600 50 {[r debug compressed pkg:77] == $new} else {fail "it is still the old one"}
        assert_equal [record 77] [r get pkg:77]
    }

    test {nothing is compressed while a forked child lives} {
        r flushall
        r debug child 1000
        set_idle pkg:1 $v
        assert_equal 0 [r debug compress pkg:1]
        r debug value-dictionary pkg: [record 11]
        r debug child 0
        wait_for_condition 600 50 {[info_field compressed_values] == 1} else {fail "not after the child has ended"}
    }

    test {with `always` a value is compressed when it is written} {
        r flushall
        r config set value-compression always
        r set pkg:1 $v
        wait_for_condition 600 50 {[is_compressed pkg:1]} else {fail "pkg:1 is plain"}
        r append pkg:1 $v
        wait_for_condition 600 50 {[is_compressed pkg:1]} else {fail "pkg:1 is plain"}
        assert_equal $v$v [r get pkg:1]
        assert_equal $v$v [r get pkg:1]
        assert {[is_compressed pkg:1]}
        r multi
        r set pkg:2 $v
        r del pkg:2
        r exec
        assert_equal 1 [info_field compressed_values]
    }

    test {with an LFU policy values are compressed, too} {
        r flushall
        r config set value-compression idle maxmemory-policy allkeys-lfu
        r set pkg:1 $v
        compress pkg:1
        assert_equal $v [r get pkg:1]
        assert {![is_compressed pkg:1]}
        r config set maxmemory-policy noeviction
    }

    test {directives are validated} {
        foreach {name bad} {
            value-compression maybe value-compression-min-bytes 3 value-compression-min-bytes 1000000
            value-compression-idle-seconds 0 value-compression-cpu 0 value-compression-cpu 51
        } {
            assert_error {ERR *} {r config set $name $bad}
        }
    }
}

start_server {tags {string with:zstd} overrides {enable-debug-command yes save {}}} {
    test {SORT by compressed values takes the memory of one of them} {
        r config set value-compression always value-compression-min-bytes 131072
        r debug value-dictionary pkg: [record 7]
        for {set i 0} {$i < 300} {incr i} {
            r set pkg:$i "[expr {1000 - $i}]\x00[string repeat [record $i] 400]"
            assert_equal 1 [r debug compress pkg:$i]
            r rpush list $i
        }
        set plain [expr {300 * [r strlen pkg:1]}]
        set peak [info_field used_memory_peak]
        assert_equal {299 298} [r sort list by pkg:* limit 0 2]
        assert_equal 300 [info_field compressed_values]
        assert {[info_field used_memory_peak] < $peak + $plain / 4}
    }

    test {SORT of a compressed list by compressed values, which it gets, too} {
        r flushall
        for {set i 0} {$i < 60} {incr i} {
            set name "version-dependencies-license-$i"
            r set pkg:$name "[expr {100 - $i}]\x00[record $i]"
            r rpush pkg:list $name
            r rpush plain $name
        }
        set calls {{by pkg:* limit 0 20} {by pkg:* get # get pkg:* desc} {by nosort get pkg:* get #} {alpha get pkg:*}}
        set expected [lmap call $calls {r sort plain {*}$call}]
        foreach key [r keys pkg:*] {compress $key}
        set packed [info_field compressed_values]
        assert_equal 61 $packed
        foreach call $calls reply $expected {assert_equal $reply [r sort pkg:list {*}$call] $call}
        assert_equal $packed [info_field compressed_values]
    }

    test {PFCOUNT and PFMERGE in slices read compressed values, one at a time} {
        r flushall
        r debug value-dictionary hll: [record 7]
        r config set hll-sparse-max-bytes 0
        set keys {}
        for {set i 0} {$i < 300} {incr i} {
            r pfadd hll:$i $i a$i [expr {$i / 2}]
            lappend keys hll:$i
        }
        r config set hll-sparse-max-bytes 3000
        set calls [list [list pfcount {*}$keys] [list pfmerge merged {*}$keys] {pfcount merged}]
        set expected [lmap call $calls {r {*}$call}]
        foreach key $keys {compress $key}
        set slice_us [lindex [r config get command-slice-us] 1]
        foreach us {0 1} {
            r config set command-slice-us $us
            r del merged
            foreach call $calls reply $expected {assert_equal $reply [r {*}$call] "$us: [lrange $call 0 1]"}
            assert_equal 300 [info_field compressed_values]
        }
        # Others read them, and want to change one, while a job reads them.
        set done [info_field jobs_done]
        r debug pause-jobs 1
        set reader [connect]
        $reader -send {*}[lindex $calls 0]
        wait_for_condition 600 50 {[info_field jobs_running] > 0} else {fail "no job has begun"}
        foreach key [lrange $keys 100 149] {
            r get $key
            r debug compress $key
        }
        set writer [connect]
        $writer -send pfadd hll:200 new
        r debug pause-jobs 0
        assert_equal [lindex $expected 0] [$reader -read]
        assert_equal 1 [$writer -read]
        assert {[info_field jobs_done] > $done}
        r config set command-slice-us $slice_us
    }
}
