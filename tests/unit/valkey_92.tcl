# SPDX-License-Identifier: BSD-3-Clause
#
# Commands and options of Valkey 9.2 (docs/compatibility.md). They are Valkey's: `extended-commands no` does not hide
# them. What they propagate: write_matrix (valkey_92.txt).

foreach shown {yes no} {
start_server [list tags {valkey92} overrides [list extended-commands $shown enable-debug-command yes]] {
    test "SISMEMBER XX tells a missing key from a missing member (extended-commands $shown)" {
        r flushall
        assert_equal {-1 0} [list [r sismember s m xx] [r sismember s m]]
        r sadd s m
        assert_equal {1 0} [list [r sismember s m XX] [r sismember s other xx]]
        foreach words {{s m nx} {s m xx xx}} {assert_error "ERR syntax error" {r sismember {*}$words}}
        r set string x
        assert_error "WRONGTYPE*" {r sismember string m xx}
        assert_equal [lindex [r command info sismember] 0 1] -3
    }

    test "ZRANGE and its variants with XX reply null for a missing key (extended-commands $shown)" {
        r flushall
        r zadd z 1 a 2 b
        set null [expr {[resp3] ? "null null" : "null array"}]
        foreach {words members} {
            {zrange KEY 0 -1} {a b}
            {zrange KEY 0 -1 rev} {b a}
            {zrange KEY (1 +inf byscore limit 0 1} b
            {zrange KEY - + bylex} {a b}
            {zrevrange KEY 0 -1} {b a}
            {zrangebyscore KEY 1 1} a
            {zrevrangebyscore KEY +inf -inf limit 1 1} a
            {zrangebylex KEY (a +} b
            {zrevrangebylex KEY + - limit 0 1} b
        } {
            set missing [string map {KEY none} $words]
            set present [string map {KEY z} $words]
            assert_equal {} [r {*}$missing]
            assert_equal $members [r {*}$present xx]
            assert_equal [r -typed {*}$present] [r -typed {*}$present XX]
            assert_equal $null [r -typed {*}$missing XX]
            assert_equal array [lindex [r -typed {*}$missing] 0]
        }
        assert_equal {} [r zrange z 5 6 xx]
        assert_equal [r -typed zrange z 0 -1 withscores] [r -typed zrange z 0 -1 xx withscores]
        assert_error "ERR syntax error" {r zrangestore dest z 0 -1 xx}
        r set string x
        assert_error "WRONGTYPE*" {r zrange string 0 -1 xx}
    }

    test "MOVE REPLACE removes the key that is there (extended-commands $shown)" {
        r flushall
        r set key new ex 1000
        r select 1
        r lpush key old
        r select 0
        assert_equal 0 [r move key 1]
        foreach words {{key 1 xx} {key 1 replace replace}} {assert_error "ERR syntax error" {r move {*}$words}}
        assert_equal 1 [r move key 1 REPLACE]
        assert_equal {0 0} [list [r exists key] [r move key 1 replace]]
        r select 1
        assert_equal new [r get key]
        assert_range [r ttl key] 1 1000
        r select 0
        assert_error "ERR DB index is out of range" {r move key 1000 replace}
        assert_error "ERR source and destination objects are the same" {r move key 0 replace}
    }

    # EXEC with these conditions, after MULTI and SET done 1.
    proc exec_if {args} {
        r multi
        r set done 1
        r -typed exec {*}$args
    }

    test "EXEC runs if all conditions hold, else it replies null (extended-commands $shown)" {
        r flushall
        set null [expr {[resp3] ? "null null" : "null array"}]
        set ran {array {{status OK}}}
        r set s value
        r set number 12
        r lpush list a
        foreach {words expected} [list \
            {ifeq s value} $ran  {IFEQ s other} $null  {ifeq none {}} $null  {ifeq number 12} $ran \
            {ifne s value} $null {ifne s other} $ran   {IFNE none x} $ran \
            {nx none} $ran       {nx s} $null          {NX list} $null \
            {xx none} $null      {XX list} $ran        {xx s} $ran \
            {ifeq s value ifne number 13 nx none xx list} $ran \
            {ifeq s value ifne number 12 nx none xx list} $null \
            {xx none ifeq list a} $null  {nx nx xx s} $ran
        ] {
            r del done
            assert_equal [list $words $expected [expr {$expected eq $ran}]] [list $words [exec_if {*}$words] [r exists done]]
            assert_error "ERR EXEC without MULTI" {r exec {*}$words}
        }
        r del done
        foreach words {{s} {ifeq s} {ifeq} {nx} {eq s value} {xx s extra} {nx s nx}} {
            r multi
            r set done 1
            assert_error "EXECABORT Transaction discarded because of: invalid check condition syntax" {r exec {*}$words}
            assert_error "ERR DISCARD without MULTI" {r discard}
        }
        foreach words {{ifeq list a} {ifne list a} {xx s ifne list x}} {
            r multi
            r set done 1
            assert_error "EXECABORT Transaction discarded because of: WRONGTYPE *" {r exec {*}$words}
        }
        assert_equal 0 [r exists done]
    }

    test "conditions of EXEC come after errors of the queue and WATCH (extended-commands $shown)" {
        r flushall
        r multi
        assert_error "ERR wrong number*" {r get}
        assert_error "EXECABORT Transaction discarded because of previous errors." {r exec nonsense}
        r watch key
        r set key x
        r multi
        assert_equal {} [r exec nonsense]
        # A condition that does not hold drops the watched keys.
        r watch key
        r multi
        assert_equal {} [r exec nx key]
        r set key y
        r multi
        r ping
        assert_equal PONG [r exec]
        # The condition is about the database of EXEC, the queue may select another one.
        r multi
        r select 3
        r exists key
        r select 0
        assert_equal {OK 0 OK} [r exec xx key]
    }

    test "conditions of EXEC leave no trace (extended-commands $shown)" {
        r flushall
        r config set maxmemory-policy allkeys-lfu
        r set key value
        r debug set-active-expire 0
        r set gone x px 1
        wait_for_condition 100 10 {[r pttl gone] < 0} else {fail "not expired"}
        set frequency [r object freq key]
        r config resetstat
        for {set i 0} {$i < 200} {incr i} {
            r multi
            assert_equal {} [r exec ifne key value xx none]
        }
        r multi
        assert_equal {} [r exec nx gone ifeq key value nx none xx none]
        assert_equal {0 0 0} [list [info_field keyspace_hits] [info_field keyspace_misses] [info_field expired_keys]]
        assert_equal $frequency [r object freq key]
        r config set maxmemory-policy noeviction
        r debug set-active-expire 1
    }

    test "conditions of EXEC need the right to read their keys (extended-commands $shown)" {
        r flushall
        r set mine 1
        r set others 1
        r acl setuser somebody reset on nopass ~mine %W~others %R~read +@all
        set c [connect]
        $c auth somebody x
        foreach {words allowed} {{xx mine} 1 {nx read} 1 {xx others} 0 {xx mine ifne others x} 0 {nx foreign} 0} {
            $c multi
            $c set mine 2
            if {$allowed} {
                assert_equal OK [$c exec {*}$words]
            } else {
                assert_error "EXECABORT Transaction discarded because of: NOPERM No permissions to access a key" {
                    $c exec {*}$words
                }
            }
        }
        # Users of other databases: EXEC alone does not use the selected one.
        r acl setuser somebody reset on nopass allkeys +@all db=1
        $c multi
        $c select 1
        $c set k v
        assert_equal {OK OK} [$c exec]
        $c multi
        $c set k w
        assert_equal OK [$c exec ifeq k v]
        r acl deluser somebody
    }

    test "COMMAND knows the keys of conditions of EXEC (extended-commands $shown)" {
        assert_equal {a b c} [r command getkeys exec ifeq a x nx b xx c]
        assert_equal {{a {RO access}}} [r command getkeysandflags exec ifne a x]
        set info [lindex [r command info exec] 0]
        assert_equal -1 [lindex $info 1]
        assert {"movablekeys" in [lindex $info 2]}
        set docs [dict get [r command docs exec] exec]
        assert_equal {9.2.0 {Added the `IFEQ`, `IFNE`, `NX` and `XX` conditions.}} [lindex [dict get $docs history] 0]
    }

    proc config_info {args} {
        set all {}
        foreach entry [r config info {*}$args] {dict set all [dict get $entry name] $entry}
        return $all
    }

    test "CONFIG INFO describes directives (extended-commands $shown)" {
        assert_equal {} [r config info nosuch none*]
        assert_equal {name appendonly type bool flags deny-loading} [lindex [r config info appendonly] 0]
        assert_equal {name databases type numeric flags immutable range {1 2147483647}} [lindex [r config info databases] 0]
        assert_equal {name maxmemory type numeric flags {} range {0 18446744073709551615}} [lindex [r config info maxmemory] 0]
        assert_equal {name unixsocketperm type numeric flags immutable range {0 777}} [lindex [r config info unixsocketperm] 0]
        assert_equal {name appendfsync type enum flags {} values {everysec always no}} [lindex [r config info appendfsync] 0]
        assert_equal {name save type special flags multi-arg} [lindex [r config info save] 0]
        set all [config_info requirepass dir]
        assert_equal {dir requirepass} [dict keys $all]
        assert_equal {string sensitive} [list [dict get $all requirepass type] [dict get $all requirepass flags]]
        assert {"protected" in [dict get $all dir flags]}
        # By one of two names, and by both.
        foreach {name other flags} {replicaof slaveof {} slaveof replicaof alias} {
            set entry [lindex [r config info $name] 0]
            assert_equal [list $name $other] [list [dict get $entry name] [dict get $entry alias]]
            assert_equal [expr {$flags ne ""}] [expr {"alias" in [dict get $entry flags]}]
        }
        # Each directive once, sorted, as CONFIG GET has them.
        set names [lmap entry [r config info * databases maxm*] {dict get $entry name}]
        assert_equal [lsort [dict keys [r config get *]]] [lsort $names]
        assert_equal [lsort $names] $names
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed config info save] 1 0 0]
        assert_error "ERR wrong number of arguments for 'config|info' command" {r config info}
        assert_match "*INFO <pattern>*" [r config help]
        assert_equal -3 [lindex [r command info config|info] 0 1]
    }

    test "DELEX and SET IFNE compare values (extended-commands $shown)" {
        r flushall
        r set key a ex 1000
        assert_equal {0 0 0} [list [r delex key IFEQ b] [r delex key ifne a] [r delex none ifne a]]
        assert_equal {{} {} a} [list [r set key b ifne a] [r set none x ifeq y] [r set key b IFNE a get]]
        assert_range [r ttl key] 1 1000
        assert_equal {OK a OK} [list [r set new a ifne a] [r set new b get ifne x] [r set key b ifne a2 keepttl]]
        assert_range [r ttl key] 1 1000
        assert_equal {1 1 0} [list [r delex key ifne a] [r delex new ifeq b] [r exists key new]]
        foreach words {{ifne a nx} {xx ifne a} {ifne a ifeq a} {ifne}} {
            assert_error "ERR syntax error" {r set key x {*}$words}
        }
        r lpush list a
        foreach words {{delex list ifeq a} {delex list ifne a} {set list x ifne a}} {
            assert_error "WRONGTYPE *" {r {*}$words}
        }
        assert_equal 9.2.0 [dict get [r command docs delex] delex since]
        assert_equal {9.2.0 {Added the `IFNE` option.}} [lindex [dict get [r command docs set] set history] end]
    }

    test "XDELEX and XACKDEL (extended-commands $shown)" {
        r flushall
        foreach id {1-1 2-1 3-1 4-1} {r xadd s $id f v}
        r xgroup create s g 0
        r xreadgroup group g c count 2 streams s >
        assert_equal {2 2} [r xdelex s ACKED ids 2 2-1 3-1]
        assert_equal {1 -1} [r xackdel s g IDS 2 1-1 1-1]
        assert_equal {1 -1} [r xdelex s IDS 2 2-1 8-1]
        assert_equal 1 [lindex [r xpending s g] 0]
        assert_equal {-1} [r xdelex s DELREF IDS 1 2-1]
        assert_equal {1 0} [list [r xdelex s keepref ids 1 3-1] [lindex [r xpending s g] 0]]
        assert_equal {-1 -1 -1} [list {*}[r xdelex none ids 1 1-1] {*}[r xackdel none g ids 1 1-1] {*}[r xackdel s no ids 1 1-1]]
        assert_error "ERR Number of IDs must be a positive integer" {r xdelex s ids 0 1-1}
        assert_error "ERR The `numids` parameter must match the number of arguments" {r xdelex s ids 3 1-1 2-1}
        assert_error "ERR syntax error" {r xdelex s acked 1 4-1}
        assert_error "ERR Invalid stream ID*" {r xackdel s g ids 2 4-1 nope}
        assert_equal 1 [r xlen s]
        foreach name {xdelex xackdel} {assert_equal 9.2.0 [dict get [r command docs $name] $name since]}
    }

    test "SCRIPT LOAD is refused over maxmemory (extended-commands $shown)" {
        assert {"denyoom" in [lindex [r command info script|load] 0 2]}
        r config set maxmemory 1
        assert_error "OOM *" {r script load "return 1"}
        r config set maxmemory 0
        assert_equal 40 [string length [r script load "return 1"]]
    }

    test "SORT needs rights for the key that it stores to, whatever its other words are (extended-commands $shown)" {
        r flushall
        r rpush list 2 1
        r acl setuser u reset on nopass +sort ~list ~by ~get ~limit ~store
        set c [connect]
        $c auth u x
        foreach words {{store by store secret} {store get store secret} {store limit store secret} {store store store secret}
            {store secret} {store by desc store secret}} {
            assert_error "NOPERM No permissions to access a key" {$c sort list {*}$words}
        }
        assert_equal 2 [$c sort list store by]
        assert_equal {1 2} [r lrange by 0 -1]
        assert_equal {list store} [r command getkeys sort list store by store store]
        assert_equal {list by} [r command getkeys sort list get # store by desc]
        r acl deluser u
    }

    test "XTRIM MAXLEN = 0 and MAXLEN 0 drop everything (extended-commands $shown)" {
        foreach words {{MAXLEN = 0} {MAXLEN 0}} {
            for {set i 0} {$i < 1000} {incr i} {r xadd s * f v}
            set last [dict get [r xinfo stream s] last-generated-id]
            assert_equal 1000 [r xtrim s {*}$words]
            assert_equal {0 1} [list [r xlen s] [r exists s]]
            assert_equal $last [dict get [r xinfo stream s] last-generated-id]
            assert_equal 0 [r xtrim s {*}$words]
        }
    }

    test "zset-encoding-name: large sorted sets show btree (extended-commands $shown)" {
        r flushall
        r config set zset-max-listpack-entries 2
        r zadd small 1 a
        r zadd large 1 a 2 b 3 c
        assert_equal {listpack skiplist} [list [r object encoding small] [r object encoding large]]
        set digest [r debug digest-value large]
        r config set zset-encoding-name btree
        assert_equal {listpack btree} [list [r object encoding small] [r object encoding large]]
        assert_match "*encoding:btree*" [r debug object large]
        assert_equal $digest [r debug digest-value large]
        r config set zset-encoding-name skiplist zset-max-listpack-entries 128
    }

    test "zset-refuse-empty-bounds: an empty bound is an error instead of 0 (extended-commands $shown)" {
        r flushall
        r zadd z -1 a 0 b 1 c
        assert_equal {c {b c} 1} [list [r zrangebyscore z ( 1] [r zrangebyscore z "" 1] [r zcount z ( 1]]
        r config set zset-refuse-empty-bounds yes
        foreach words {{zrangebyscore z ( 1} {zrangebyscore z "" 1} {zcount z 0 (} {zremrangebyscore z "" ""} {zrange z ( 1 byscore}
            {zrevrangebyscore z 1 (} {zrangestore to z ( 1 byscore}} {
            assert_error "ERR min or max is not a float" {r {*}$words}
        }
        assert_equal 3 [r zcard z]
        assert_equal {c} [r zrangebyscore z (0 +inf]
        r config set zset-refuse-empty-bounds no
    }

    test "active expiry counts as changes for save points (extended-commands $shown)" {
        r flushall
        r config set save "" hz 100
        r debug set-active-expire 0
        r set keep 1
        for {set i 0} {$i < 20} {incr i} {r set key:$i v px 1}
        r hset hash a 1 b 2 c 3
        r hpexpire hash 1 FIELDS 2 a b
        r bgsave
        info_is rdb_bgsave_in_progress 0
        assert_equal 0 [info_field rdb_changes_since_last_save]
        r debug set-active-expire 1
        wait_for_condition 500 20 {[r dbsize] == 2 && [r hlen hash] == 1}
        assert_equal 22 [info_field rdb_changes_since_last_save]
        r config set hz 10
        # Keys that a command finds expired do not count, as before.
        r debug set-active-expire 0
        r set k v px 1
        r bgsave
        info_is rdb_bgsave_in_progress 0
        wait_for_condition 500 10 {[r get k] eq ""}
        assert_equal 0 [info_field rdb_changes_since_last_save]
        r debug set-active-expire 1
    } {needs:debug}

    test "DEBUG BIO-DRAIN waits for background jobs (extended-commands $shown)" {
        r config set lazyfree-lazy-user-del yes
        r debug populate 1000 key 100
        r rpush list {*}[lrepeat 10000 abc]
        r flushall async
        assert_equal OK [r debug bio-drain]
        assert_equal 0 [info_field lazyfree_pending_objects]
        assert {"BIO-DRAIN" in [r debug help]}
    } {needs:debug}

    test "COMMAND DOCS say since when options of 9.2 are known (extended-commands $shown)" {
        foreach {command word} {move REPLACE sismember XX zrange XX zrevrangebylex XX} {
            set docs [dict get [r command docs $command] $command]
            assert_equal "9.2.0 {Added the `$word` option.}" [lindex [dict get $docs history] end]
            assert_equal 9.2.0 [dict get [lindex [dict get $docs arguments] end] since]
        }
    }
}
}
