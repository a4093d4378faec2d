# Small collections compressed in memory: nothing but their memory tells them from plain ones. Database 0 has
# dictionaries, so its values can be compressed; database 9 has none: the plain twins.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/compressed.tcl

# Member number i of a list, set or sorted set.
proc member {i} {format "customer:%05d of the European branch office" $i}
proc members {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all [member $i]}
    return $all
}
proc scored {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all [expr {$i * 10}] [member $i]}
    return $all
}
proc integers {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all [expr {10000000000 + $i * 3}]}
    return $all
}
# Fields of a hash and their values.
proc record {i} {
    list name "package-$i" version 1.2.$i license "Apache-2.0 or BSD-3-Clause" homepage "https://packages.example.org/package-$i" \
        author "the maintainers of package $i" downloads $i
}
proc all_fields {} {lmap {field value} [concat [record 1] [pairs 1]] {set field}}
proc pairs {i} {
    set all {}
    for {set n 0} {$n < 8} {incr n} {lappend all "field-$i-$n" [member $n]}
    return $all
}
# So many points that a sorted set of them can be compressed.
proc points {from to} {
    set all {}
    for {set i $from} {$i <= $to} {incr i} {lappend all [expr {13 + $i * 0.001}] 38.1 [member $i]}
    return $all
}

# One value of each type and form that can be compressed: a record, a hash without shape, a list, sets, sorted sets.
proc fill {i} {
    r hset rec:$i {*}[record $i]
    r hset hash:$i {*}[pairs $i]
    r rpush list:$i {*}[members $i [expr {$i + 9}]]
    r sadd set:$i {*}[members $i [expr {$i + 9}]]
    r sadd ints:$i {*}[integers $i [expr {$i + 40}]]
    r zadd zset:$i {*}[scored $i [expr {$i + 9}]]
    r geoadd geo:$i {*}[points $i [expr {$i + 9}]]
}
proc names {i} {lmap prefix $::prefixes {string cat $prefix $i}}
set ::prefixes {rec: hash: list: set: ints: zset: geo:}

proc make_dictionaries {} {
    set sample [join [concat [members 1 3] [record 7] [pairs 3]] "\x82\x2a"]
    foreach prefix $::prefixes {r debug value-dictionary $prefix $sample}
}
# A number of hashes with these fields, so that they have a shape.
proc make_shape {} {
    for {set i 1} {$i <= 20} {incr i} {r hset rec:shape:$i {*}[record $i]}
}

# A key that was not used for a long time.
proc make_idle {key} {r restore $key 0 [r dump $key] replace idletime 100000}

start_server {tags {hash set zset list with:zstd} overrides {enable-debug-command yes enable-module-command yes save {}}} {
    r config set value-compression always value-compression-min-bytes 131072
    r select 0
    make_dictionaries
    set future [expr {[clock milliseconds] + 1000000}]

    set scripts {}
    # Reading commands of hashes, in both forms.
    foreach {key content} {rec:1 {{*}[record 1]} hash:1 {{*}[pairs 1]}} {
        lappend scripts "read $key" [string map [list @K $key @C $content] {
            HSET @K @C
            Z @K
            HGET @K name
            HGET @K field-1-3
            HGET @K none
            HMGET @K name none version field-1-0
            HGETALL @K
            HKEYS @K
            HVALS @K
            HLEN @K
            HEXISTS @K name
            HEXISTS @K none
            HSTRLEN @K license
            HRANDFIELD @K 100 WITHVALUES
            HSCAN @K 0 COUNT 100
            HSCAN @K 0 NOVALUES
            HTTL @K FIELDS 2 name none
            HPTTL @K FIELDS 1 name
            HEXPIRETIME @K FIELDS 1 name
            HPEXPIRETIME @K FIELDS 1 name
            HGETALLEX @K
            HGETEX @K FIELDS 1 name
            TYPE @K
            OBJECT ENCODING @K
            EXISTS @K
            TOUCH @K
            TTL @K
            DUMP @K
            SCAN 0 TYPE hash
            DBSIZE
            Z @K
            HGETALL @K
        }]
        lappend scripts "change $key" [string map [list @K $key @C $content] {
            HSET @K @C
            Z @K
            HSET @K name other
            Z @K
            HSET @K new value another "a longer value of the European branch office"
            Z @K
            HSETNX @K name again
            Z @K
            HSETNX @K more again
            Z @K
            HMSET @K name a version b
            Z @K
            HDEL @K none
            Z @K
            HDEL @K name new
            Z @K
            HINCRBY @K downloads 5
            Z @K
            HINCRBY @K license 5
            Z @K
            HINCRBYFLOAT @K downloads 1.5
            Z @K
            HGETDEL @K FIELDS 1 version
            Z @K
            HSETEX @K FIELDS 1 version 7
            Z @K
            HGETEX @K PERSIST FIELDS 1 version
            Z @K
            HPERSIST @K FIELDS 1 version
            Z @K
            HPEXPIREAT @K $future FIELDS 1 version
            HPTTL @K FIELDS 1 none
            HPEXPIRETIME @K FIELDS 2 version license
            HGETALL @K
            HPERSIST @K FIELDS 1 version
            HEXPIRE @K -1 FIELDS 1 version
            HDEL @K {*}[all_fields]
            HDEL @K another more downloads
        }]
        lappend scripts "field times $key" [string map [list @K $key @C $content] {
            HSET @K @C
            Z @K
            HPEXPIREAT @K $future FIELDS 2 name field-1-1
            HSET @K @C
            DEL @K
            HSET @K @C
            Z @K
            HEXPIREAT @K 100000000000 FIELDS 2 name field-1-2
            DEL @K
            HSET @K @C
            Z @K
            HPEXPIRE @K -1 FIELDS 2 name field-1-2
            HSETEX @K PXAT $future FIELDS 1 name x
            HGETEX @K PXAT $future FIELDS 1 version
            HLEN @K
        }]
    }
    lappend scripts import {
        HIMPORT PREPARE fields name version license
        HIMPORT SET rec:1 fields "package with a long name" "1.2.3" "Apache-2.0 or BSD-3-Clause, the maintainers of package"
        Z rec:1
        HIMPORT SET rec:1 fields "package with a long name" "1.2.4" "Apache-2.0 or BSD-3-Clause, the maintainers of package"
        Z rec:1
        HGETALL rec:1
        HIMPORT DISCARDALL
    }
    # Sets in both forms.
    foreach {key content other} {set:1 {{*}[members 1 12]} {[member 3]} ints:1 {{*}[integers 1 50]} {10000000009}} {
        lappend scripts "read $key" [string map [list @K $key @C $content @O $other] {
            SADD @K @C
            Z @K
            SCARD @K
            SISMEMBER @K @O
            SISMEMBER @K none
            SMISMEMBER @K @O none 3
            SMEMBERS @K
            SRANDMEMBER @K 100
            SSCAN @K 0 COUNT 100
            SSCAN @K 0 MATCH *5*
            SINTER @K @K
            SINTER @K none
            SINTERCARD 2 @K @K LIMIT 5
            SUNION @K none @K
            SUNIONCARD 2 @K @K
            SDIFF @K none
            SDIFFCARD 2 @K none
            SDIFF none @K
            SORT @K ALPHA DESC LIMIT 1 5
            STTL @K MEMBERS 1 @O
            SPTTL @K MEMBERS 1 none
            SEXPIRETIME @K MEMBERS 1 @O
            SPEXPIRETIME @K MEMBERS 1 @O
            OBJECT ENCODING @K
            SCAN 0 TYPE set
            Z @K
        }]
        lappend scripts "change $key" [string map [list @K $key @C $content @O $other] {
            SADD @K @C
            Z @K
            SADD @K @O
            Z @K
            SADD @K 5 "new member of the European branch office"
            Z @K
            SREM @K none
            Z @K
            SREM @K @O none
            Z @K
            SMOVE @K set:2 5
            Z @K
            SADD set:3 {*}[members 5 20]
            Z set:3
            SINTERSTORE set:4 @K set:3
            SUNIONSTORE set:5 @K set:3 set:4
            Z set:5
            SDIFFSTORE set:5 set:5 set:3
            SUNIONSTORE @K @K set:3
            Z @K
            SMOVE @K set:3 @O
            Z @K
            SPERSIST @K MEMBERS 1 @O
            Z @K
            SPOP @K 1000
            SADD @K @C
            Z @K
            SPEXPIREAT @K $future MEMBERS 1 @O
            SPEXPIRETIME @K MEMBERS 1 @O
            SMEMBERS @K
            DEL @K
            SADD @K @C
            Z @K
            SADDEX @K PXAT $future MEMBERS 1 more
            DEL @K
            SADD @K @C
            Z @K
            SEXPIRE @K -1 MEMBERS 1 @O
            SPEXPIRE @K -1 MEMBERS 1 @O
            SEXPIREAT @K 1 MEMBERS 1 @O
            SCARD @K
        }]
    }
    lappend scripts "read zset" {
        ZADD zset:1 {*}[scored 1 12]
        Z zset:1
        ZCARD zset:1
        ZSCORE zset:1 [member 3]
        ZSCORE zset:1 none
        ZMSCORE zset:1 [member 3] none
        ZCOUNT zset:1 20 (50
        ZLEXCOUNT zset:1 - +
        ZRANK zset:1 [member 3] WITHSCORE
        ZREVRANK zset:1 [member 3]
        ZRANGE zset:1 0 -1 WITHSCORES
        ZRANGE zset:1 20 80 BYSCORE LIMIT 1 3
        ZRANGEBYSCORE zset:1 20 50 WITHSCORES
        ZREVRANGEBYSCORE zset:1 50 20
        ZRANGEBYLEX zset:1 - + LIMIT 0 3
        ZREVRANGEBYLEX zset:1 + - LIMIT 0 3
        ZREVRANGE zset:1 0 3
        ZRANDMEMBER zset:1 100 WITHSCORES
        ZSCAN zset:1 0 COUNT 100
        ZINTER 2 zset:1 zset:1 WITHSCORES
        ZINTERCARD 2 zset:1 zset:1
        ZUNION 2 zset:1 zset:1 WEIGHTS 2 3 WITHSCORES
        ZDIFF 2 zset:1 none
        ZTTL zset:1 MEMBERS 1 [member 3]
        ZPTTL zset:1 MEMBERS 1 none
        ZEXPIRETIME zset:1 MEMBERS 1 [member 3]
        ZPEXPIRETIME zset:1 MEMBERS 1 [member 3]
        SINTER zset:1
        ZSCORE zset:1 [member 4]
        OBJECT ENCODING zset:1
        SCAN 0 TYPE zset
        Z zset:1
        SORT zset:1 ALPHA LIMIT 0 4
        OBJECT ENCODING zset:1
    }
    lappend scripts "change zset" {
        ZADD zset:1 {*}[scored 1 12]
        Z zset:1
        ZADD zset:1 5 [member 3]
        Z zset:1
        ZADD zset:1 XX CH GT 1 [member 3] 7 none
        Z zset:1
        ZADD zset:1 INCR 3 [member 4]
        Z zset:1
        ZINCRBY zset:1 2.5 [member 4]
        Z zset:1
        ZREM zset:1 none [member 5]
        Z zset:1
        ZREMRANGEBYRANK zset:1 0 0
        Z zset:1
        ZREMRANGEBYSCORE zset:1 100 110
        Z zset:1
        ZREMRANGEBYLEX zset:1 [ [
        Z zset:1
        ZPOPMIN zset:1
        Z zset:1
        ZPOPMAX zset:1 2
        ZADD zset:2 {*}[scored 5 20]
        Z zset:2
        BZPOPMIN zset:2 0
        Z zset:2
        BZPOPMAX zset:2 0
        Z zset:2
        ZMPOP 1 zset:2 MIN COUNT 2
        Z zset:2
        BZMPOP 0 1 zset:2 MAX
        Z zset:2
        ZUNIONSTORE zset:3 2 zset:1 zset:2
        Z zset:3
        ZINTERSTORE zset:4 2 zset:3 zset:2 WEIGHTS 1 2 AGGREGATE MAX
        ZDIFFSTORE zset:5 2 zset:3 zset:1
        ZRANGESTORE zset:6 zset:3 0 5
        ZUNIONSTORE zset:3 1 zset:3
        Z zset:3
        ZRANGESTORE zset:3 zset:3 0 7
        ZPERSIST zset:3 MEMBERS 1 [member 9]
        ZADD zset:7 {*}[scored 1 12]
        Z zset:7
        ZPEXPIREAT zset:7 $future MEMBERS 1 [member 3]
        ZPEXPIRETIME zset:7 MEMBERS 1 [member 3]
        DEL zset:7
        ZADD zset:7 {*}[scored 1 12]
        Z zset:7
        ZADDEX zset:7 PXAT $future MEMBERS 1 1 more
        DEL zset:7
        ZADD zset:7 {*}[scored 1 12]
        Z zset:7
        ZEXPIRE zset:7 -1 MEMBERS 1 [member 1]
        ZPEXPIRE zset:7 -1 MEMBERS 1 [member 2]
        ZEXPIREAT zset:7 1 MEMBERS 1 [member 3]
        ZCARD zset:7
    }
    lappend scripts geo {
        GEOADD geo:1 {*}[points 1 10]
        Z geo:1
        GEOPOS geo:1 [member 1] none
        GEOHASH geo:1 [member 1]
        GEODIST geo:1 [member 1] [member 2]
        GEOSEARCH geo:1 FROMLONLAT 13 38 BYRADIUS 200 km ASC
        GEORADIUS geo:1 13 38 200 km ASC
        GEORADIUS_RO geo:1 13 38 200 km ASC
        GEORADIUSBYMEMBER geo:1 [member 1] 200 km ASC
        GEORADIUSBYMEMBER_RO geo:1 [member 1] 200 km ASC
        Z geo:1
        GEOSEARCHSTORE geo:2 geo:1 FROMLONLAT 13 38 BYRADIUS 200 km
        Z geo:2
        GEOSEARCHSTORE geo:2 geo:2 FROMLONLAT 13 38 BYRADIUS 200 km
        Z geo:1
        GEORADIUS geo:1 13 38 200 km STORE geo:1
        GEOADD geo:1 XX 14 38 [member 1]
    }
    lappend scripts "read list" {
        RPUSH list:1 {*}[members 1 12]
        Z list:1
        LLEN list:1
        LINDEX list:1 3
        LINDEX list:1 -1
        LINDEX list:1 100
        LRANGE list:1 2 5
        LPOS list:1 [member 3]
        LPOS list:1 none COUNT 0
        SORT list:1 ALPHA DESC
        SORT_RO list:1 ALPHA LIMIT 0 3
        OBJECT ENCODING list:1
        SCAN 0 TYPE list
        Z list:1
    }
    lappend scripts "change list" {
        RPUSH list:1 {*}[members 1 20]
        Z list:1
        RPUSH list:1 a b
        Z list:1
        LPUSH list:1 c
        Z list:1
        LPUSHX list:1 d
        Z list:1
        RPUSHX list:1 e
        Z list:1
        LSET list:1 3 value
        Z list:1
        LSET list:1 100 value
        Z list:1
        LINSERT list:1 BEFORE [member 5] x
        Z list:1
        LINSERT list:1 AFTER none x
        Z list:1
        LREM list:1 0 [member 6]
        Z list:1
        LTRIM list:1 1 -2
        Z list:1
        LPOP list:1
        Z list:1
        RPOP list:1 2
        Z list:1
        BLPOP list:1 0
        Z list:1
        BRPOP list:1 0
        Z list:1
        LMPOP 1 list:1 LEFT COUNT 2
        Z list:1
        BLMPOP 0 1 list:1 RIGHT
        Z list:1
        LMOVE list:1 list:2 LEFT RIGHT
        Z list:1
        BLMOVE list:1 list:2 0 LEFT RIGHT
        Z list:1
        LMOVEM list:1 list:3 LEFT RIGHT COUNT 2
        BLMOVEM list:1 list:3 LEFT RIGHT 0 COUNT 1
        RPUSH list:4 {*}[members 1 12]
        Z list:4
        RPOPLPUSH list:4 list:4
        Z list:4
        BRPOPLPUSH list:4 list:2 0
        Z list:4
        SORT list:4 ALPHA STORE list:4
        Z list:4
        RPUSH list:4 [string repeat x 9000]
        LLEN list:4
    }
    lappend scripts "wrong type" {
        HSET hash:1 {*}[pairs 1]
        Z hash:1
        RPUSH list:1 {*}[members 1 12]
        Z list:1
        GET hash:1
        INCR hash:1
        APPEND list:1 x
        SADD hash:1 a
        HGET list:1 a
        LPUSH hash:1 a
        ZADD list:1 1 a
        HLEN list:1
        SCARD hash:1
        ZCARD hash:1
        LLEN hash:1
        SINTER hash:1 list:1
        SETRANGE list:1 3 x
        PFCOUNT hash:1
        XADD list:1 * a b
        BITOP AND x hash:1 list:1
    }
    foreach key {rec:1 hash:1 list:1 set:1 ints:1 zset:1} make {
        {HSET @K {*}[record 1]} {HSET @K {*}[pairs 1]} {RPUSH @K {*}[members 1 12]} {SADD @K {*}[members 1 12]}
        {SADD @K {*}[integers 1 50]} {ZADD @K {*}[scored 1 12]}
    } {
        set prefix [lindex [split $key :] 0]
        lappend scripts "names and times $key" [string map [list @M [string map [list @K $key] $make] @K $key @P $prefix] {
            @M
            Z @K
            PEXPIREAT @K $future
            PEXPIRETIME @K
            PEXPIREAT @K $future NX
            PERSIST @K
            PEXPIREAT @K $future
            RENAME @K @P:2
            RENAMENX @P:2 @K
            COPY @K @P:3
            COPY @K @P:3
            COPY @K @P:3 REPLACE
            COPY @K @K DB 8 REPLACE
            MOVE @P:3 8
            PEXPIREAT @K 9223372036854
            PEXPIRETIME @K
            Z @K
            PEXPIREAT @K 300000000000000
            PEXPIRETIME @K
            PERSIST @K
            Z @K
            SET @K string
            GET @K
            DEL @K
            @M
            Z @K
            SETNX @K string
            GETSET @K string
            UNLINK @K
            @M
            Z @K
            EXPIRE @K -1
            EXISTS @K
            @M
            Z @K
            MULTI
            COPY @K @P:4
            TYPE @P:4
            EXEC
            EVAL "local d = redis.call('dump', KEYS[1]) return redis.call('restore', KEYS[2], 0, d)" 2 @K @P:5
            EVAL "return {redis.call('type', KEYS[1]), redis.call('object', 'encoding', KEYS[1])}" 1 @K
        }]
    }
    lappend scripts scripts {
        HSET rec:1 {*}[record 1]
        HSET rec:2 {*}[record 2]
        Z rec:1
        Z rec:2
        RPUSH list:1 {*}[members 1 12]
        Z list:1
        EVAL "return {redis.call('hgetall', KEYS[1]), redis.call('hget', KEYS[2], 'name'), redis.call('lrange', KEYS[3], 0, -1)}" 3 rec:1 rec:2 list:1
        EVAL "local a = redis.call('hget', KEYS[1], 'name'); redis.call('hset', KEYS[1], 'name', 'x'); return a .. redis.call('hget', KEYS[1], 'name')" 1 rec:1
        EVAL "for i = 1, 100 do redis.call('hgetall', KEYS[1]) end return redis.call('hlen', KEYS[1])" 1 rec:2
        RPUSH numbers 2 1
        SORT numbers BY rec:*->downloads GET rec:*->name GET #
        MULTI
        HGET rec:2 name
        HSET rec:2 name y
        HGETALL rec:2
        EXEC
    }

    foreach {name script} $scripts {
        test "a compressed collection is as its plain twin: $name" {
            make_shape
            both $name $script
        }
    }

    test {the table has every command of these types} {
        foreach category {hash list set sortedset geo} {
            foreach command [r command list filterby aclcat $category] {
                if {$command in {sort sort_ro himport}} continue
                assert {[regexp -nocase "\\n *$command " $scripts]} "$command is missing"
            }
        }
    }

    r select 0
    r flushall
    make_shape
    set types {}
    foreach prefix $::prefixes read {{hget @ name} {hgetall @} {lrange @ 0 -1} {smembers @} {sismember @ 7} {zrange @ 0 -1} {geopos @ a}} \
        write {{hset @ name x} {hset @ new x} {rpush @ x} {sadd @ x} {sadd @ 10000000001} {zadd @ 1 x} {geoadd @ 1 1 x}} {
        lappend types ${prefix}1 [string map [list @ ${prefix}1] $read] [string map [list @ ${prefix}1] $write]
    }

    test {commands that only read leave a collection compressed; those that write make it plain} {
        foreach {key read write} $types {
            set reads [list $read "type $key" "ttl $key" "expire $key 1000" "persist $key" "object encoding $key" "memory usage $key" \
                "dump $key" "debug digest" "debug digest-value $key" "touch $key" "exists $key" "debug object $key" "info keysizes" \
                "scan 0 count 1000" "memory explain" "debug hash-shapes $key"]
            foreach command [linsert $reads end $write] {
                r del $key
                fill 1
                compress $key
                r {*}$command
                assert_equal [expr {$command ne $write}] [is_compressed $key] $command
            }
            assert_equal OK [r debug hash-shapes]
        }
    }

    test {lengths are known without the value: they are the same, and in INFO keysizes, too} {
        r flushall sync
        fill 1
        set sizes [r info keysizes]
        set counts {}
        foreach key [names 1] command {hlen hlen llen scard scard zcard zcard} {lappend counts $command $key [r $command $key]}
        foreach key [names 1] {compress $key}
        set before [info_field values_expanded_to_read]
        foreach {command key count} $counts {assert_equal $count [r $command $key] "$command $key"}
        assert_equal $sizes [r info keysizes]
        assert_equal $before [info_field values_expanded_to_read]
    }

    test {a record stays one: it uses its shape while it is compressed, copied and plain again} {
        r flushall sync
        r hset rec:1 {*}[record 1]
        set shape [r debug hash-shapes rec:1]
        assert {$shape > 0}
        compress rec:1
        assert_equal $shape [r debug hash-shapes rec:1]
        r copy rec:1 rec:2
        r copy rec:1 rec:3 db 5
        r rename rec:2 rec:4
        r pexpire rec:4 1000000
        assert_equal OK [r debug hash-shapes]
        r hset rec:1 name x
        assert_equal $shape [r debug hash-shapes rec:1]
        r del rec:4
        assert_equal OK [r debug hash-shapes]
        compress rec:1
        r flushall sync
        assert_equal OK [r debug hash-shapes]
    }

    test {DEBUG LISTPACK shows the entries of a compressed collection} {
        fill 1
        compress list:1
        assert_equal {Listpack structure printed on stdout} [r debug listpack list:1]
        assert {[is_compressed list:1]}
    }

    test {compressing a collection is no change: WATCH, events and counts of changes} {
        r config set notify-keyspace-events KEA
        fill 1
        set before [info_field rdb_changes_since_last_save]
        foreach {key read write} $types {
            r watch $key
            compress $key
        }
        r multi
        foreach {key read write} $types {r {*}$read}
        assert_equal [expr {[llength $types] / 3}] [llength [r exec]]
        assert_equal $before [info_field rdb_changes_since_last_save]
        r config set notify-keyspace-events {}
    }

    test {compressed collections expire} {
        r flushall sync
        fill 1
        foreach {key read write} $types {
            r pexpire $key 100000
            compress $key
        }
        foreach {key read write} $types {r pexpire $key 1}
        wait_for_condition 600 50 {[r dbsize] == 0} else {fail "they do not expire"}
        assert_equal 0 [info_field compressed_values]
        assert_equal OK [r debug hash-shapes]
    }

    test {memory is what a compressed collection takes} {
        r flushall sync
        fill 1
        foreach {key read write} $types {
            set plain [r memory usage $key]
            compress $key
            assert {[r memory usage $key] < $plain} $key
        }
        assert_equal [expr {[llength $types] / 3}] [info_field compressed_values]
    }

    test {a stream of one node, values with TTLs of members, and what gains nothing, are left alone} {
        r flushall
        r sadd set:1 {*}[members 1 10]
        r sexpire set:1 10000 members 1 [member 1]
        r zadd zset:1 {*}[scored 1 10]
        r zexpire zset:1 10000 members 1 [member 1]
        r sadd ints:1 1 2 3 4
        r xadd list:2 * {*}[record 1]
        r hset rec:2 a b
        set noise {}
        for {set i 0} {$i < 200} {incr i} {append noise [format %c [expr {int(rand() * 250)}]]}
        r rpush list:3 $noise
        foreach key [r keys *] {assert_equal 0 [r debug compress $key] $key}
    }

    test {FLUSHALL, FLUSHDB, SWAPDB, large DEL and expiry forget no user of a dictionary or a shape} {
        # Databases of more than a thousand keys are freed as a whole.
        foreach {way count} {{flushall sync} 150 {flushall async} 150 {flushdb sync} 20 {flushdb async} 20 del 20 expired 20} {
            r flushall sync
            for {set i 0} {$i < $count} {incr i} {
                fill $i
                foreach key [names $i] {compress $key}
            }
            assert_equal [expr {$count * [llength $::prefixes]}] [info_field compressed_values]
            r swapdb 0 3
            r select 3
            if {$way eq "del"} {
                for {set i 0} {$i < $count} {incr i} {r unlink {*}[names $i]}
            } elseif {$way eq "expired"} {
                r eval {for _, key in ipairs(redis.call('keys', '*')) do redis.call('pexpire', key, 1) end} 0
                wait_for_condition 600 50 {[r dbsize] == 0} else {fail "keys do not expire"}
            } else {
                r {*}$way
            }
            wait_for_condition 600 50 {[info_field compressed_values] == 0} else {fail "$way: [info_field compressed_values] values left"}
            assert_equal 0 [info_field compressed_values_packed_bytes]
            assert_equal OK [r debug hash-shapes] $way
            r swapdb 0 3
            r select 0
        }
    }

    test {eviction removes compressed collections} {
        r flushall sync
        for {set i 0} {$i < 100} {incr i} {
            fill $i
            foreach key [names $i] {compress $key}
        }
        r config set maxmemory-policy allkeys-random
        # What was freed before may come back later than the limit is set: it is set again then.
        wait_for_condition 600 50 {
            [r config set maxmemory [expr {[info_field used_memory] - 20000}]] eq "OK" && [info_field evicted_keys] > 0
        } else {
            fail "nothing is evicted"
        }
        r config set maxmemory 0 maxmemory-policy noeviction
        assert {[info_field compressed_values] <= [r dbsize]}
        assert_equal OK [r debug hash-shapes]
        r flushall sync
        assert_equal 0 [info_field compressed_values]
    }

    proc fill_many {count} {
        for {set i 0} {$i < $count} {incr i} {
            fill $i
            if {$i % 3} {foreach key [names $i] {r expire $key 100000}}
        }
    }
    proc compress_many {count} {
        for {set i 0} {$i < $count} {incr i} {if {$i % 4} {foreach key [names $i] {compress $key}}}
    }

    test {files have plain collections, whatever makes them} {
        r flushall
        fill_many 30
        set digest [r debug digest]
        foreach mode {fork inline} {
            r config set snapshot-mode $mode
            foreach rdbcompression {yes no} {
                r config set rdbcompression $rdbcompression
                compress_many 30
                save_in_background
                r debug reload nosave
                assert_equal $digest [r debug digest] "$mode $rdbcompression"
                assert_equal 0 [info_field compressed_values]
            }
        }
        r config set rdbcompression yes
        compress_many 30
        r save
        r debug reload
        assert_equal $digest [r debug digest]
        foreach preamble {yes no} {
            foreach mode {fork inline} {
                r config set snapshot-mode $mode aof-use-rdb-preamble $preamble appendonly yes
                rewritten
                compress_many 30
                r bgrewriteaof
                rewritten
                r debug loadaof
                assert_equal $digest [r debug digest] "AOF $preamble $mode"
                r config set appendonly no
            }
        }
        assert_equal OK [r debug hash-shapes]
    }

    test {a snapshot in slices has the collections of its start while they are compressed and written} {
        r flushall
        fill_many 60
        compress_many 60
        set digest [r debug digest]
        r config set snapshot-mode inline rdb-key-save-delay 200
        r bgsave
        for {set i 0} {$i < 60} {incr i} {
            foreach {type read write} $types {
                set key [lindex [split $type :] 0]:$i
                switch [expr {$i % 5}] {
                    0 {r debug compress $key}
                    1 {r {*}[string map [list $type $key] $write]}
                    2 {r del $key}
                    3 {r {*}[string map [list $type $key] $read]; r expire $key 1000}
                    4 {r rename $key new:$key}
                }
            }
        }
        r config set rdb-key-save-delay 0
        info_is rdb_bgsave_in_progress 0
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test {a replica gets plain collections, and compresses its own} {
        r flushall
        fill_many 20
        compress_many 20
        start_server {overrides {enable-debug-command yes save {}}} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            same_data -1 -0
            assert_equal 0 [info_field compressed_values]
            make_dictionaries
            compress_many 20
            foreach {key read write} $types {r -1 {*}$write}
            for {set i 5} {$i < 10} {incr i} {r -1 unlink {*}[names $i]}
            same_data -1 -0
            assert_equal OK [r debug hash-shapes]
        }
    }

    test {MIGRATE sends plain collections} {
        start_server {overrides {enable-debug-command yes save {}}} {
            r -1 migrate [srv host] [srv port] {} 0 5000 copy keys {*}[names 1]
            foreach key [names 1] {assert_equal [r -1 debug digest-value $key] [r debug digest-value $key] $key}
        }
    }

    test {commands that run in slices read compressed collections} {
        r flushall
        for {set i 0} {$i < 15} {incr i} {r hset hash:1 {*}[pairs $i]}
        r rpush list:1 {*}[members 1 100]
        r sadd set:1 {*}[members 1 100]
        r sadd set:2 {*}[members 50 140]
        r sadd ints:1 {*}[integers 1 300]
        r zadd zset:1 {*}[scored 1 100]
        r zadd zset:2 {*}[scored 50 140]
        set commands {
            {hgetall hash:1} {hkeys hash:1} {hvals hash:1} {lrange list:1 0 -1} {lpos list:1 x} {smembers set:1} {sinter set:1 set:2}
            {sunion ints:1 set:2} {sdiff set:1 set:2} {zrange zset:1 0 -1} {zunion 2 zset:1 zset:2} {zinter 2 zset:1 zset:2}
            {sort list:1 alpha} {zrangebyscore zset:1 0 5000} {smembers ints:1}
        }
        set plain [lmap command $commands {lsort [r {*}$command]}]
        r config set command-slice-us 1
        set begun [info_field jobs_done]
        foreach key {hash:1 list:1 set:1 set:2 ints:1 zset:1 zset:2} {compress $key}
        r debug pause-jobs 1
        set readers [lmap command $commands {connect}]
        foreach command $commands client $readers {$client -send {*}$command}
        wait_for_condition 600 50 {[info_field jobs_running] > 0} else {fail "no job has begun"}
        # Others read, store plain and compress meanwhile.
        for {set i 0} {$i < 3} {incr i} {
            foreach command {{hget hash:1 x} {lindex list:1 3} {sismember set:1 x} {sismember set:2 x} {zscore zset:1 x} {sismember ints:1 1}} {
                r {*}$command
                r debug compress [lindex $command 1]
            }
        }
        # Writers wait for them.
        set writer [connect]
        $writer -send rpush list:1 x
        r debug pause-jobs 0
        foreach command $commands client $readers expected $plain {
            assert_equal $expected [lsort [$client -read]] $command
        }
        assert_equal 101 [$writer -read]
        r config set command-slice-us 1000
        assert {[info_field jobs_done] > $begun}
    }

    test {modules read and change compressed collections as plain ones} {
        r module load [file normalize build/modules/elements.so]
        r flushall
        foreach command {
            {list.get list:1 3} {list.set list:1 -2 D} {list.insert list:1 2 c} {list.delete list:1 3} {list.pop list:1 0} {list.push list:1 1 b}
            {hash.get rec:1 name} {hash.get hash:1 field-1-3} {hash.set rec:1 0 name v} {hash.set hash:1 0 new v} {hash.set rec:1 0 name delete}
            {elements.scan rec:1} {elements.scan hash:1} {elements.scan set:1} {elements.scan ints:1} {elements.scan zset:1}
            {zset.score zset:1 none} {zset.add zset:1 0 1 a} {zset.incrby zset:1 0 3 a} {zset.rem zset:1 a}
            {zset.walk zset:1 first score 20 60} {zset.walk zset:1 last lex - +} {zset.walk zset:1 first score 20 60 rem}
        } {
            set results {}
            foreach packed {no yes} {
                r del {*}[names 1]
                fill 1
                if {$packed} {compress [lindex $command 1]}
                lappend results [list [r {*}$command] [seen [lindex $command 1]]]
            }
            assert_equal {*}$results $command
        }
        assert_equal OK [r debug hash-shapes]
        r module unload elements
    }

    test {a module that is told of a removal can read the compressed value} {
        r module load [file normalize build/modules/server_events.so]
        r flushall
        r debug value-dictionary read: [join [record 5]]
        r events.listen 17
        set text [string repeat [record 3] 3]
        foreach remove {{del read:1 read:2} {unlink read:1 read:2} {mset read:1 a read:2 b}} {
            r del read:1 read:2
            r hset read:1 {*}[record 1]
            r set read:2 $text
            compress read:1
            compress read:2
            r events.log
            r {*}$remove
            set told [lmap line [r events.log] {lindex [split $line] 2}]
            assert_equal [list package-1 [lindex $text 0]] $told $remove
        }
        r events.stop 17
        r flushall sync
        assert_equal 0 [info_field compressed_values]
        assert_equal OK [r debug hash-shapes]
        r module unload events
    }

    test {the second read within the idle time stores a collection plain} {
        r flushall
        fill 1
        r config set value-compression idle value-compression-min-bytes 64
        foreach {key read write} $types {
            make_idle $key
            compress $key
            r {*}$read
            assert {[is_compressed $key]} $key
            r {*}$read
            assert {![is_compressed $key]} $key
        }
        r config set value-compression no
        compress hash:1
        r hlen hash:1
        assert {[is_compressed hash:1]}
        r hget hash:1 name
        assert {![is_compressed hash:1]}
    }

    test {collections that are not used are compressed, others are not, and move to newer dictionaries} {
        r flushall
        r config set value-compression idle value-compression-min-bytes 64
        fill 1
        fill 2
        foreach key [names 1] {make_idle $key}
        make_dictionaries
        wait_for_condition 600 50 {[info_field compressed_values] == [llength $::prefixes]} else {
            fail "[info_field compressed_values] values"
        }
        foreach key [names 2] {assert {![is_compressed $key]} $key}
        set new [r debug value-dictionary rec: [join [record 8]][join [record 9]]]
        wait_for_condition 600 50 {[r debug compressed rec:1] == $new} else {fail "it is still the old one"}
        assert_equal [record 1] [r hgetall rec:1]
        assert_equal OK [r debug hash-shapes]
    }

    test {a client that waits for the elements of a list gets those of one that was renamed compressed} {
        r flushall
        set before [lindex [r config get list-max-listpack-size] 1]
        r config set list-max-listpack-size -3
        r rpush list:1 {*}[lmap i [lrepeat 60 x] {incr n; set i "[string repeat {the same words in each element } 5]$n"}]
        r config set value-compression always
        compress list:1
        set c [connect]
        $c -send blmovem waited moved left left 0 exactly 60 bulk
        wait_for_condition 600 50 {[info_field blocked_clients] == 1}
        r rename list:1 waited
        assert_equal 60 [llength [$c -read]]
        $c -close
        r config set list-max-listpack-size $before value-compression no
    }

    test {with `always` a collection is compressed when it is written} {
        r flushall
        r config set value-compression always
        fill 1
        foreach {key read write} $types {
            wait_for_condition 600 50 {[is_compressed $key]} else {fail "$key is plain"}
            set before [r debug digest-value $key]
            r {*}$read
            assert {[is_compressed $key]} $key
            r {*}$write
            wait_for_condition 600 50 {[is_compressed $key]} else {fail "$key is plain"}
            assert_not_equal $before [r debug digest-value $key]
        }
        r config set value-compression no
    }

    test {a user may read a compressed collection as a plain one, if the rules say so} {
        r flushall
        r config set value-compression always value-compression-min-bytes 131072
        fill 1
        foreach {key read write} $types {compress $key}
        r acl setuser reader on nopass ~list:* +@read
        r auth reader any
        assert_equal [members 1 10] [r lrange list:1 0 -1]
        assert_error {NOPERM*} {r rpush list:1 x}
        assert_error {NOPERM*} {r hgetall rec:1}
        r auth default any
        r acl deluser reader
        assert_equal [llength $::prefixes] [info_field compressed_values]
    }
}
