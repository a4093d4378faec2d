# Nodes of long lists and streams compressed in memory: nothing but their memory tells such values from plain ones.
# Database 0 has dictionaries, so its nodes can be compressed; database 9 has none: the plain twins.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/compressed.tcl
source $::tests_dir/support/metrics.tcl

proc member {i} {format "customer:%05d of the European branch office" $i}
proc members {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all [member $i]}
    return $all
}
# Entries of a stream, as commands.
proc add_entries {key from to} {
    for {set i $from} {$i <= $to} {incr i} {
        r xadd $key $i-1 device "sensor [expr {$i % 7}] of the European branch office" state "the battery is low" count $i
    }
}
proc fill {i} {
    r rpush list:$i {*}[members $i [expr {$i + 199}]]
    add_entries stream:$i [expr {$i + 1}] [expr {$i + 200}]
}
proc names {i} {list list:$i stream:$i}
proc make_dictionaries {} {
    foreach prefix {list: stream:} {
        r debug value-dictionary $prefix "[member 1]sensor 3 of the European branch office the battery is low device state count"
    }
}
proc nodes {key} {r debug compressed $key}
proc all_nodes {} {expr {[info_field compressed_nodes]}}
# No node is compressed any more, and no dictionary has a user.
proc none_left {what} {
    wait_for_condition 600 50 {[info_field compressed_nodes] == 0} else {fail "$what: [info_field compressed_nodes] nodes left"}
    assert_equal 0 [info_field compressed_nodes_bytes] $what
    assert_equal 0 [info_field compressed_nodes_packed_bytes] $what
    if {[info_field compressed_values] == 0} {
        foreach line [regexp -all -inline {values=\d+} [r info memory]] {assert_equal values=0 $line $what}
    }
}

set settings {enable-debug-command yes enable-module-command yes save {} list-max-listpack-size 10 stream-node-max-entries 10}

start_server [list tags {list stream with:zstd} overrides $settings] {
    r config set value-compression always value-compression-min-bytes 131072
    r select 0
    make_dictionaries
    set long [string repeat "[member 1], " 800]

    foreach {name script} {
        {reads of a list} {
            RPUSH list:1 {*}[members 1 200]
            Z list:1
            LLEN list:1
            LRANGE list:1 0 -1
            LRANGE list:1 55 77
            LRANGE list:1 -120 -61
            LINDEX list:1 0
            LINDEX list:1 100
            LINDEX list:1 -33
            LPOS list:1 [member 111]
            LPOS list:1 [member 111] RANK -1
            LPOS list:1 [member 3] COUNT 0 MAXLEN 50
            LPOS list:1 none
            SORT list:1 ALPHA LIMIT 50 20
            SORT_RO list:1 ALPHA DESC
            TYPE list:1
            OBJECT ENCODING list:1
            DUMP list:1
            EVAL "return {redis.call('lrange', KEYS[1], 20, 90), redis.call('lindex', KEYS[1], 150)}" 1 list:1
        }
        {changes of a list} {
            RPUSH list:1 {*}[members 1 200]
            Z list:1
            LPUSH list:1 {*}[members 1 15]
            RPUSH list:1 {*}[members 1 15]
            LPUSHX list:1 x
            RPUSHX list:1 y
            Z list:1
            LPOP list:1
            RPOP list:1
            LPOP list:1 25
            RPOP list:1 25
            Z list:1
            LSET list:1 100 "[member 5] and more"
            LSET list:1 60 $long
            LSET list:1 60 short
            LSET list:1 -50 x
            Z list:1
            LINSERT list:1 BEFORE [member 111] before
            LINSERT list:1 AFTER [member 112] after
            LINSERT list:1 AFTER [member 113] $long
            LINSERT list:1 AFTER none x
            Z list:1
            LREM list:1 0 [member 77]
            LREM list:1 1 [member 60]
            LREM list:1 -1 [member 90]
            LREM list:1 0 none
            LREM list:1 0 $long
            Z list:1
            LTRIM list:1 30 -30
            LTRIM list:1 5 40
            Z list:1
            LTRIM list:1 1 0
        }
        {moves between lists} {
            RPUSH list:1 {*}[members 1 100]
            RPUSH list:2 {*}[members 201 300]
            Z list:1
            Z list:2
            LMOVE list:1 list:2 LEFT RIGHT
            LMOVE list:1 list:1 LEFT RIGHT
            RPOPLPUSH list:1 list:2
            BLMOVE list:1 list:2 RIGHT LEFT 0
            BRPOPLPUSH list:1 list:2 0
            LMPOP 2 none list:1 LEFT COUNT 30
            BLMPOP 0 1 list:1 RIGHT COUNT 30
            BLPOP list:2 0
            BRPOP list:2 0
            LMOVEM list:1 list:2 LEFT RIGHT COUNT 15
            BLMOVEM list:1 list:2 LEFT RIGHT 0 COUNT 15
            Z list:2
            LMPOP 1 list:2 RIGHT COUNT 1000
        }
        {large elements} {
            RPUSH list:1 {*}[members 1 30] $long {*}[members 31 60] $long {*}[members 61 90]
            Z list:1
            LRANGE list:1 0 -1
            LINDEX list:1 30
            LPOS list:1 $long COUNT 0
            LREM list:1 1 $long
            Z list:1
            LSET list:1 60 x
            LRANGE list:1 0 -1
        }
        {reads of a stream} {
            T stream:1 1 200
            Z stream:1
            XLEN stream:1
            XRANGE stream:1 - +
            XRANGE stream:1 50 77
            XRANGE stream:1 (50-1 + COUNT 3
            XREVRANGE stream:1 + -
            XREVRANGE stream:1 150 99 COUNT 33
            XREAD STREAMS stream:1 0
            XREAD COUNT 15 STREAMS stream:1 85
            XREAD STREAMS stream:1 +
            XINFO STREAM stream:1
            XINFO STREAM stream:1 FULL COUNT 3
            TYPE stream:1
            DUMP stream:1
            EVAL "return redis.call('xrange', KEYS[1], 20, 60)" 1 stream:1
        }
        {changes of a stream} {
            T stream:1 1 200
            Z stream:1
            XADD stream:1 1000-1 a b
            XADD stream:1 1000-* a b c d
            XADD stream:1 MAXLEN = 150 1001-1 a b
            XADD stream:1 MAXLEN ~ 130 1002-1 a b
            XADD stream:1 MINID 100 1003-1 a b
            XADD stream:1 NOMKSTREAM MINID ~ 112 1004-1 a b
            Z stream:1
            XDEL stream:1 120-1 130-1 131-1 132-1 133-1 5-5
            XDEL stream:1 150-1 151-1 152-1 153-1 154-1 155-1 156-1 157-1 158-1 159-1 160-1 161-1 162-1 163-1 164-1
            XRANGE stream:1 - +
            Z stream:1
            XDELEX stream:1 KEEPREF IDS 2 140-1 141-1
            XTRIM stream:1 MAXLEN 60
            XTRIM stream:1 MINID 170
            XTRIM stream:1 MAXLEN ~ 35
            XTRIM stream:1 MINID 1
            XSETID stream:1 2000-1
            XSETID stream:1 2001-1 ENTRIESADDED 500 MAXDELETEDID 164-1
            Z stream:1
            XDEL stream:1 1004-1 1003-1 1002-1 1001-1 1000-1 1000-0
            XREVRANGE stream:1 + - COUNT 1
            XINFO STREAM stream:1
            XTRIM stream:1 MAXLEN 0
            XADD stream:1 2001-2 a b
        }
        {consumer groups} {
            T stream:1 1 100
            Z stream:1
            XGROUP CREATE stream:1 g 0
            XGROUP CREATE stream:1 h 50
            XGROUP CREATECONSUMER stream:1 g c
            XREADGROUP GROUP g c COUNT 45 STREAMS stream:1 >
            Z stream:1
            XREADGROUP GROUP g c COUNT 45 STREAMS stream:1 0
            XREADGROUP GROUP g c COUNT 5 NOACK STREAMS stream:1 >
            XPENDING stream:1 g
            XACK stream:1 g 3-1 4-1
            XACKDEL stream:1 g KEEPREF IDS 2 7-1 8-1
            XCLAIM stream:1 g d 0 9-1 10-1 33-1
            XCLAIM stream:1 g d 0 11-1 JUSTID
            XAUTOCLAIM stream:1 g d 0 0 COUNT 10
            XAUTOCLAIM stream:1 g d 0 30 JUSTID
            XNACK stream:1 g FAIL IDS 1 9-1
            XDEL stream:1 12-1 13-1
            XREADGROUP GROUP g d COUNT 45 STREAMS stream:1 0
            Z stream:1
            XAUTOCLAIM stream:1 g c 0 0
            XINFO GROUPS stream:1
            XGROUP SETID stream:1 h 20 ENTRIESREAD 20
            XINFO GROUPS stream:1
            XGROUP DELCONSUMER stream:1 g d
            XTRIM stream:1 MAXLEN 30
            XREADGROUP GROUP h c STREAMS stream:1 >
            XGROUP DESTROY stream:1 g
        }
        {names, copies, times} {
            RPUSH list:1 {*}[members 1 100]
            T stream:1 1 100
            Z list:1
            Z stream:1
            RENAME list:1 list:2
            RENAME stream:1 stream:2
            COPY list:2 list:3
            COPY stream:2 stream:3
            COPY stream:2 stream:3 REPLACE
            COPY list:2 list:2 DB 8 REPLACE
            COPY stream:2 stream:2 DB 8 REPLACE
            PEXPIREAT list:2 $future
            PERSIST list:2
            PEXPIREAT stream:2 300000000000000
            LSET list:3 50 x
            XDEL stream:3 50-1
            MOVE list:3 8
            DEL stream:3
            MULTI
            LRANGE list:2 30 60
            LSET list:2 40 y
            LRANGE list:2 30 60
            EXEC
            EVAL "local d = redis.call('dump', KEYS[1]) return redis.call('restore', KEYS[2], 0, d)" 2 list:2 list:4
            EVAL "local d = redis.call('dump', KEYS[1]) return redis.call('restore', KEYS[2], 0, d)" 2 stream:2 stream:4
            SET list:2 string
            UNLINK stream:2
        }
    } {
        lappend scripts $script
        test "a value with compressed nodes is as its plain twin: $name" {
            set future [expr {[clock milliseconds] + 1000000}]
            both $name $script
        }
    }

    test {the table has every command of these types} {
        foreach category {list stream} {
            foreach command [r command list filterby aclcat $category] {
                set words [string map {| { }} $command]
                if {$words in {{xgroup help} {xinfo help} {xinfo consumers} xcfgset xidmprecord}} continue ;# which read no entries
                assert {[regexp -nocase "\\n *$words " $scripts]} "$words is missing"
            }
        }
    }
    r select 0
    r flushall

    test {reads leave nodes compressed, changes make those plain that they change} {
        foreach {key command plain} {
            list:1 {lrange list:1 0 -1} 0 list:1 {lindex list:1 100} 0 list:1 {lpos list:1 none} 0 list:1 {llen list:1} 0
            list:1 {lrem list:1 0 none} 0 list:1 {lpush list:1 x} 0 list:1 {rpop list:1} 0 list:1 {lset list:1 100 x} 1
            list:1 {lset list:1 0 x} 0 list:1 {linsert list:1 before none x} 0 list:1 {expire list:1 1000} 0
            list:1 {sort list:1 alpha} 0 stream:1 {xrange stream:1 - +} 0 stream:1 {xrevrange stream:1 + -} 0
            stream:1 {xread streams stream:1 0} 0 stream:1 {xdel stream:1 100-1} 1 stream:1 {xdel stream:1 100-7} 0
            stream:1 {xadd stream:1 * a b} 0 stream:1 {xlen stream:1} 0 stream:1 {xinfo stream stream:1} 0
            stream:1 {xtrim stream:1 maxlen 195} 1 stream:1 {xtrim stream:1 minid 1} 0 stream:1 {xtrim stream:1 minid ~ 9} 0
        } {
            r flushall
            fill 1
            compress $key
            set before [nodes $key]
            r {*}$command
            assert_equal [expr {$before - $plain}] [nodes $key] $command
            foreach all {{memory usage list:1 samples 0} {memory usage stream:1 samples 0} {dump list:1} {dump stream:1} {debug digest} {info keysizes}
                {debug object list:1} {memory explain} {debug quicklist list:1} {type list:1} {object encoding stream:1}} {
                catch {r {*}$all}
                assert_equal [expr {$before - $plain}] [nodes $key] $all
            }
        }
    }

    test {the ends of a list stay plain, more of them as list-compress-depth says; so does the last node of a stream} {
        r flushall
        foreach {depth kept} {0 2 1 2 2 4 4 8} {
            r config set list-compress-depth $depth
            r del list:1
            r rpush list:1 {*}[members 1 200]
            compress list:1
            assert_equal [expr {20 - $kept}] [nodes list:1] "depth $depth"
            for {set i 1} {$i < 150} {incr i} {assert_equal [member $i] [r lpop list:1]}
            for {set i 200} {$i > 160} {incr i -1} {assert_equal [member $i] [r rpop list:1]}
            assert_equal [members 150 160] [r lrange list:1 0 -1]
            assert_equal 0 [nodes list:1]
        }
        r config set list-compress-depth 0
        add_entries stream:1 1 100
        compress stream:1
        assert_equal 9 [nodes stream:1]
        for {set i 100} {$i > 12} {incr i -1} {
            assert_equal 1 [r xdel stream:1 $i-1]
            assert_equal [expr {$i - 1}]-1 [lindex [r xrevrange stream:1 + - count 1] 0 0]
        }
        assert_equal 1 [nodes stream:1]
        r xtrim stream:1 maxlen 1
        assert_equal 0 [all_nodes]
    }

    test {memory is what compressed nodes take} {
        r flushall
        fill 1
        foreach key [names 1] {
            set plain [r memory usage $key samples 0]
            compress $key
            assert {[r memory usage $key samples 0] < $plain * 2 / 3} $key
        }
        assert {[info_field compressed_nodes_packed_bytes] < [info_field compressed_nodes_bytes] / 2}
        assert_equal [expr {[nodes list:1] + [nodes stream:1]}] [all_nodes]
    }

    test {compressing nodes is no change: WATCH, events and counts of changes} {
        r config set notify-keyspace-events KEA
        r flushall
        fill 1
        set before [info_field rdb_changes_since_last_save]
        r watch {*}[names 1]
        foreach key [names 1] {compress $key}
        r multi
        r lrange list:1 50 60
        r xrange stream:1 50 60
        assert_equal 2 [llength [r exec]]
        assert_equal $before [info_field rdb_changes_since_last_save]
        r config set notify-keyspace-events {}
    }

    test {FLUSHALL, FLUSHDB, SWAPDB, DEL, overwriting, expiry and eviction forget no user of a dictionary} {
        foreach {way count} {{flushall sync} 5 {flushall async} 80 {flushdb sync} 5 {flushdb async} 80 del 20 unlink 20 set 20 expired 20 evicted 20} {
            r flushall sync
            none_left "before $way"
            for {set i 0} {$i < $count} {incr i} {
                fill $i
                foreach key [names $i] {compress $key}
            }
            assert {[all_nodes] > 30 * $count}
            r swapdb 0 3
            r select 3
            switch -glob $way {
                del - unlink {for {set i 0} {$i < $count} {incr i} {r $way {*}[names $i]}}
                set {foreach key [r keys *] {r set $key x}}
                expired {
                    foreach key [r keys *] {r pexpire $key 1}
                    wait_for_condition 600 50 {[r dbsize] == 0} else {fail "keys do not expire"}
                }
                evicted {
                    r config set maxmemory-policy allkeys-random maxmemory 1000000
                    catch {r set x y}
                    wait_for_condition 600 50 {[r dbsize] == 0} else {fail "keys are not evicted"}
                    r config set maxmemory 0 maxmemory-policy noeviction
                }
                default {r {*}$way}
            }
            none_left $way
            r swapdb 0 3
            r select 0
        }
    }

    proc fill_many {count} {for {set i 0} {$i < $count} {incr i} {fill $i}}
    proc compress_many {count} {for {set i 0} {$i < $count} {incr i} {if {$i % 4} {foreach key [names $i] {compress $key}}}}

    test {files have plain values, whatever makes them} {
        r flushall
        fill_many 12
        r xgroup create stream:1 g 0
        r xreadgroup group g c count 50 streams stream:1 >
        set digest [r debug digest]
        foreach mode {fork inline} {
            r config set snapshot-mode $mode
            foreach rdbcompression {yes no} {
                r config set rdbcompression $rdbcompression
                compress_many 12
                save_in_background
                r debug reload nosave
                assert_equal $digest [r debug digest] "$mode $rdbcompression"
                assert_equal 0 [all_nodes]
            }
        }
        r config set rdbcompression yes
        compress_many 12
        r save
        r debug reload
        assert_equal $digest [r debug digest]
        foreach preamble {yes no} {
            foreach mode {fork inline} {
                r config set snapshot-mode $mode aof-use-rdb-preamble $preamble appendonly yes
                rewritten
                compress_many 12
                r bgrewriteaof
                rewritten
                r debug loadaof
                assert_equal $digest [r debug digest] "AOF $preamble $mode"
                assert_equal 50 [lindex [r xpending stream:1 g] 0]
                r config set appendonly no
            }
        }
    }

    test {a snapshot in slices has the nodes of its start while they are compressed, read, changed and removed} {
        r flushall
        fill_many 40
        compress_many 40
        set digest [r debug digest]
        r config set snapshot-mode inline rdb-key-save-delay 300 value-compression always
        r bgsave
        for {set i 0} {$i < 40} {incr i} {
            switch [expr {$i % 6}] {
                0 {foreach key [names $i] {r debug compress $key}}
                1 {
                    r lset list:$i 100 x
                    r lrem list:$i 0 [member [expr {$i + 30}]]
                    r xdel stream:$i [expr {$i + 90}]-1 [expr {$i + 20}]-1
                }
                2 {r unlink {*}[names $i]}
                3 {
                    r lrange list:$i 0 -1
                    r xrange stream:$i - +
                    r lrange list:$i 0 -1
                    r xrange stream:$i - +
                    foreach key [names $i] {r debug compress $key}
                }
                4 {foreach key [names $i] {r rename $key new:$key}}
                5 {
                    r ltrim list:$i 33 77
                    r xtrim stream:$i maxlen 22
                    foreach key [names $i] {r debug compress $key}
                }
            }
        }
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        r debug reload nosave
        assert_equal $digest [r debug digest]
        r flushall sync
        none_left "after the snapshot"
    }

    test {values that a snapshot passes on in parts may have compressed nodes} {
        r flushall
        for {set i 0} {$i < 40} {incr i} {r rpush list:1 {*}[members [expr {100 * $i}] [expr {100 * $i + 99}]]}
        add_entries stream:1 1 3000
        set digest [r debug digest]
        foreach key [names 1] {compress $key}
        r config set snapshot-mode inline rdb-key-save-delay 20
        r bgsave
        for {set i 0} {$i < 300} {incr i} {
            r lset list:1 [expr {$i * 13}] x$i
            r xdel stream:1 [expr {$i * 9 + 1}]-1
            if {$i % 30 == 0} {
                r lrange list:1 1000 1500
                r xrange stream:1 1000 1500
                foreach key [names 1] {r debug compress $key}
            }
        }
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {a replica gets plain values, and compresses its own} {
        r flushall
        fill_many 8
        compress_many 8
        start_server [list overrides $settings] {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            same_data -1 -0
            assert_equal 0 [all_nodes]
            make_dictionaries
            compress_many 8
            r -1 lset list:2 100 x
            r -1 xdel stream:2 100-1
            r -1 xtrim stream:3 maxlen 44
            r -1 unlink {*}[names 5]
            same_data -1 -0
        }
    }

    test {MIGRATE sends plain values} {
        start_server [list overrides $settings] {
            r -1 debug compress list:1
            r -1 debug compress stream:1
            r -1 migrate [srv host] [srv port] {} 0 5000 copy keys {*}[names 1]
            foreach key [names 1] {assert_equal [r -1 debug digest-value $key] [r debug digest-value $key] $key}
            assert_equal 0 [all_nodes]
        }
    }

    test {commands that run in slices read compressed nodes, which others read, store plain and compress meanwhile} {
        r flushall
        fill 1
        r config set value-compression idle command-slice-us 1
        set commands {
            {lrange list:1 0 -1} {lpos list:1 x} {sort list:1 alpha} {lrange list:1 150 20} {xrange stream:1 - +} {xrevrange stream:1 + -}
            {xread streams stream:1 0} {lrange list:1 -170 -20} {copy list:1 list:2} {copy stream:1 stream:2} {dump list:1}
        }
        set expected [lmap command $commands {r {*}$command}]
        r del list:2 stream:2
        foreach key [names 1] {compress $key}
        set begun [info_field jobs_done]
        r debug pause-jobs 1
        set readers [lmap command $commands {connect}]
        foreach command $commands client $readers {$client -send {*}$command}
        wait_for_condition 600 50 {[info_field jobs_running] > 0} else {fail "no job has begun"}
        for {set i 0} {$i < 3} {incr i} {
            # Scripts do not run in slices.
            r eval_ro {for _, at in ipairs({30, 130, 131}) do redis.call('lindex', KEYS[1], at) redis.call('xrange', KEYS[2], at, at) end} 2 {*}[names 1]
            foreach key [names 1] {r debug compress $key}
        }
        r debug pause-jobs 0
        foreach command $commands client $readers reply $expected {
            assert_equal $reply [$client -read] $command
            $client -close
        }
        foreach key [names 1] copy {list:2 stream:2} {assert_equal [r debug digest-value $key] [r debug digest-value $copy]}
        r config set command-slice-us 1000
        assert {[info_field jobs_done] > $begun}
    }

    test {modules read and change values with compressed nodes as plain ones} {
        r module load [file normalize build/modules/elements.so]
        r flushall
        foreach command {
            {list.get list:1 130} {list.get list:1 -70} {list.set list:1 -80 D} {list.insert list:1 77 c} {list.delete list:1 93}
            {list.pop list:1 0} {list.push list:1 1 b}
        } {
            set results {}
            foreach packed {no yes} {
                r del {*}[names 1]
                fill 1
                if {$packed} {compress list:1}
                lappend results [list [r {*}$command] [seen list:1]]
            }
            assert_equal {*}$results $command
        }
        r module unload elements
    }

    test {the second read within the idle time stores a node plain, and no other one} {
        r flushall
        fill 1
        r config set value-compression idle value-compression-min-bytes 64
        foreach {key command} {list:1 {lindex list:1 105} stream:1 {xrange stream:1 105 105}} {
            compress $key
            set before [nodes $key]
            r {*}$command
            assert_equal $before [nodes $key]
            # A pass of the walk between two reads forgets the first one.
            wait_for_condition 100 20 {[r {*}$command] ne "" && [nodes $key] == $before - 1}
            r config set value-compression always
            compress $key
            foreach n {1 2 3} {r {*}$command}
            assert_equal $before [nodes $key]
            r config set value-compression no
            r {*}$command
            assert_equal [expr {$before - 1}] [nodes $key]
            r config set value-compression idle
        }
        assert {[info_field nodes_stored_plain_again] >= 2}
    }

    test {nodes that are not used are compressed, though the ends of their values are used all the time} {
        r flushall
        r config set value-compression idle value-compression-min-bytes 64 value-compression-idle-seconds 1 value-compression-cpu 50
        fill 1
        # A new dictionary makes the walk begin a pass; the node in use is read before it can be visited twice.
        set at 200
        wait_for_condition 1200 50 {
            [incr at] && [r lpush list:1 x] && [r rpush list:1 y] && [r xadd stream:1 [expr {$at + 100}]-1 a b] ne "" &&
            [llength [r lrange list:1 0 5]] && [r xread count 1 streams stream:1 [expr {$at + 99}]] ne "" &&
            [nodes list:1] >= 15 && [nodes stream:1] >= 15
        } else {
            fail "[nodes list:1] and [nodes stream:1] nodes"
        }
        assert_equal [member 100] [r lindex list:1 [expr {[r lpos list:1 [member 1]] + 99}]]
    }

    test {nodes move to a newer dictionary} {
        r flushall
        r config set value-compression idle value-compression-min-bytes 64 value-compression-idle-seconds 1 value-compression-cpu 50
        fill 1
        foreach key [names 1] {r restore $key 0 [r dump $key] replace idletime 100000}
        make_dictionaries
        wait_for_condition 600 100 {[nodes list:1] == 18 && [nodes stream:1] == 19} else {fail "[nodes list:1] and [nodes stream:1] nodes"}
        make_dictionaries
        foreach prefix {list stream} count {18 19} {
            wait_for_condition 600 100 {
                [regexp "keys=$prefix:\\*,current=yes,values=$count," [r info memory]]
            } else {
                fail "[regexp -all -inline {value_dictionary_\d+[^\r]*} [r info memory]]"
            }
        }
        assert_equal [members 1 200] [r lrange list:1 0 -1]
        r config set value-compression no
    }

    test {nothing is compressed while a forked child lives} {
        r flushall
        fill 1
        r debug child 1000
        foreach key [names 1] {assert_equal 0 [r debug compress $key]}
        r debug child 0
        foreach key [names 1] {compress $key}
    }

    test {defragmentation moves compressed nodes} {
        set active [r config set activedefrag yes active-defrag-ignore-bytes 1 active-defrag-threshold-lower 0]
        r flushall
        fill_many 30
        compress_many 30
        for {set i 0} {$i < 30} {incr i 3} {r unlink {*}[names $i]}
        set digest [r debug digest]
        set cycles [expr {[info_field active_defrag_misses] + [info_field active_defrag_hits]}]
        wait_for_condition 600 50 {[info_field active_defrag_misses] + [info_field active_defrag_hits] > $cycles} else {fail "it does not run"}
        assert_equal $digest [r debug digest]
        r config set activedefrag no
    }
}

start_server {tags {list stream with:zstd} overrides {enable-debug-command yes save {} value-compression idle value-compression-idle-seconds 1
    value-compression-cpu 50}} {
    test {a dictionary is trained for the nodes of a single list and of a single stream} {
        for {set i 0} {$i < 120} {incr i} {r rpush queue:1 {*}[members [expr {$i * 100}] [expr {$i * 100 + 99}]]}
        for {set i 0} {$i < 60} {incr i} {
            r eval {for i = 1, 250 do
                redis.call('xadd', KEYS[1], ARGV[1] * 250 + i .. '-1', 'device', 'sensor ' .. (i * 7919 + ARGV[1] * 13) % 97, 'state',
                    'the battery is low', 'temperature', (i * 31 + ARGV[1] * 7) % 400 / 10)
            end} 1 readings:1 $i
        }
        set digest [r debug digest]
        wait_for_condition 1200 100 {[r debug compressed queue:1] > 50 && [r debug compressed readings:1] > 50} else {
            fail "[r debug compressed queue:1], [r debug compressed readings:1]: [r info memory]"
        }
        assert_equal $digest [r debug digest]
        assert {[info_field compressed_nodes_ratio] < 0.6}
    }
}
