# SPDX-License-Identifier: BSD-3-Clause
#
# db-maxmemory and the rule maxmemory= of ACL SETUSER: how much is used, what is evicted, what is refused.

source $::tests_dir/support/metrics.tcl

set db_full "OOM command not allowed when the database > 'db-maxmemory'."
set user_full "OOM command not allowed when the keys of the user > 'maxmemory' of ACL SETUSER."

# A part of the INFO field of a limit.
proc quota {field part {level 0}} {
    regexp "\[:,\]$part=(\[^,\]*)" :[info_field $field] all value
    return $value
}
proc db_used {db {level 0}} {return [quota maxmemory_db$db used]}

# Waits until all keys were measured.
proc wait_measured {} {wait_for_condition 1000 20 {[quota maxmemory_db3 measured_perc] == 100}}

proc fill_db {db count {size 1000} {prefix key:}} {
    r select $db
    for {set i 0} {$i < $count} {incr i} {r set $prefix$i [string repeat x $size]}
}

# The sum over all keys of the selected database of what the account should have.
proc sum_of_keys {} {
    set sum 0
    foreach key [r keys *] {incr sum [expr {[r memory usage $key] + 10}]}
    return $sum
}

proc fresh {policy {limits {}}} {
    r config set db-maxmemory "" maxmemory-policy $policy
    r flushall
    r config resetstat
    r config set db-maxmemory $limits
    r select 3
}

start_server {tags {maxmemory tls:skip needs:config} overrides {save "" db-maxmemory {1 1mb}}} {
    test {db-maxmemory has pairs of a database and a limit} {
        assert_equal {db-maxmemory {1 1048576}} [r config get db-maxmemory]
        r config set db-maxmemory "5 10kb 3 2mb 4 1mb 4 0"
        assert_equal {db-maxmemory {3 2097152 5 10240}} [r config get db-maxmemory]
        assert_error "*Invalid db-maxmemory parameters: a database and bytes, in pairs*" {r config set db-maxmemory "3"}
        assert_error "*Invalid database in db-maxmemory*" {r config set db-maxmemory "3 1mb 16 1mb"}
        assert_error "*Invalid database in db-maxmemory*" {r config set db-maxmemory "-1 1mb"}
        assert_error "*Invalid number of bytes in db-maxmemory*" {r config set db-maxmemory "3 many"}
        assert_equal {db-maxmemory {3 2097152 5 10240}} [r config get db-maxmemory]
        # What a failed CONFIG SET has changed is undone.
        assert_error "*maxmemory-policy*" {r config set db-maxmemory "7 1mb" maxmemory-policy nope}
        assert_equal {db-maxmemory {3 2097152 5 10240}} [r config get db-maxmemory]
        r config rewrite
        r config set db-maxmemory ""
        assert_equal {db-maxmemory {}} [r config get db-maxmemory]
        assert {![string match *maxmemory_db* [r info memory]]}
        assert_match "*\ndb-maxmemory 3 2097152 5 10240\n*" [file_text [srv config]]
    }
}

start_server {tags {maxmemory} overrides {save "" enable-debug-command yes db-maxmemory {1 1mb}}} {

    test {what a database uses is the sum of its keys, whatever changes them} {
        fresh noeviction {3 1gb 4 1gb}
        assert_equal 0 [db_used 3]
        for {set i 0} {$i < 200} {incr i} {r set s:$i [string repeat x [expr {$i * 20}]]}
        for {set i 0} {$i < 50} {incr i} {
            r rpush list:$i {*}[lrepeat 10 item]
            r hset hash:$i f1-$i v1 f2 v2
            r zadd zset:$i 1 a 2 b
            r xadd stream:$i * f v
        }
        assert_equal [sum_of_keys] [db_used 3]
        r append s:1 [string repeat y 3000]
        r set s:2 short
        r del s:3
        r unlink list:1
        r rename s:4 renamed
        r rename s:5 s:6
        r hset hash:1 f3 [string repeat z 500]
        r hdel hash:2 f1-2 f2
        r lpop list:2 10
        r setrange s:7 10000 x
        r move s:8 4
        r copy s:9 s:9 db 4
        r restore dumped 0 [r dump s:10]
        r eval {redis.call('set', 'by script', string.rep('x', 700)); redis.call('del', 's:11')} 0
        r multi
        r set "by exec" [string repeat x 800]
        r incr counter
        r exec
        r sort list:3 alpha store sorted
        r xgroup create stream:1 group 0
        r xreadgroup group group consumer streams stream:1 >
        assert_equal [sum_of_keys] [db_used 3]
        r select 4
        assert_equal [sum_of_keys] [db_used 4]
        assert_equal 2 [r dbsize]
    }

    test {keys that expire, fields that expire, flushes and swaps change what is used} {
        fresh noeviction {3 1gb 4 1gb}
        fill_db 3 50
        fill_db 4 20
        r select 3
        for {set i 0} {$i < 25} {incr i} {r pexpire key:$i 1}
        r hset fields a [string repeat x 2000] b [string repeat x 2000]
        r hpexpire fields 1 fields 1 a
        wait_for_condition 500 20 {[r dbsize] == 26 && [r hlen fields] == 1}
        wait_for_condition 500 20 {[db_used 3] == [sum_of_keys]}
        r flushdb
        assert_equal 0 [db_used 3]
        set used [db_used 4]
        assert {$used > 20000}
        r swapdb 3 4
        wait_measured
        assert_equal "$used 0" [list [db_used 3] [db_used 4]]
        r flushall
        assert_equal {0 0} [list [db_used 3] [db_used 4]]
    } {cluster:skip}

    test {keys that exist before the limit, or are loaded, are measured} {
        fresh noeviction
        fill_db 3 5000 100
        set sum [sum_of_keys]
        r config set db-maxmemory "3 100mb"
        wait_measured
        assert_equal $sum [db_used 3]
        r debug reload
        wait_measured
        assert_equal $sum [db_used 3]
    }

    test {many keys are estimated} {
        fresh noeviction {3 1gb}
        r debug populate 100000 key 100
        r config set db-maxmemory "3 1gb 4 1gb"
        wait_measured
        set exact [expr {100000 * ([r memory usage key:1000] + 10)}]
        assert_range [db_used 3] [expr {$exact * 95 / 100}] [expr {$exact * 105 / 100}]
        r flushdb
        assert_equal 0 [db_used 3]
    }

    test {with noeviction, writes to a database over its limit are refused, and to no other} {
        fresh noeviction {3 100kb}
        set refused 0
        for {set i 0} {$i < 200} {incr i} {incr refused [catch {r set key:$i [string repeat x 1000]} error]}
        assert_equal $db_full $error
        assert_range [r dbsize] 80 110
        assert_equal $refused [quota maxmemory_db3 refused]
        assert_equal 0 [quota maxmemory_db3 evicted]
        assert_equal 1 [r del key:0]
        assert_equal [string repeat x 1000] [r get key:1]
        r select 4
        assert_equal OK [r set a [string repeat x 1000]]
        r set small 1
        r select 3
        while {![catch {r append key:1 [string repeat x 5000]}]} {}
        r select 4
        assert_error $db_full {r copy a a db 3}
        assert_error $db_full {r move a 3}
        assert_equal 1 [r copy a b]
        r select 3
        assert_error "$db_full*" {r eval {return redis.call('set', 'a', 1)} 0}
        assert_error "*$db_full*" {r eval "#!lua\nreturn redis.call('get', 'a')" 0}
        assert_equal {} [r eval "#!lua flags=no-writes\nreturn redis.call('get', 'a')" 0]
        assert_error "$db_full*" {r eval "#!lua flags=allow-oom\nreturn redis.call('set', 'oom', 1)" 0}
        assert_equal 1 [r eval "#!lua flags=allow-oom\nreturn redis.call('del', 'key:1')" 0]
        r config set db-maxmemory "3 1mb"
        assert_equal OK [r set a 1]
    }

    test {EXEC is refused as a whole if it would write to a database over its limit} {
        fresh noeviction {3 50kb}
        fill_db 4 1
        r select 3
        while {![catch {r append key [string repeat x 5000]}]} {}
        r multi
        r get key
        assert_equal QUEUED [r set a 1]
        assert_error "EXECABORT Transaction discarded because of: $db_full" {r exec}
        r multi
        r get key
        r del nokey
        assert_equal 2 [llength [r exec]]
        r multi
        r select 4
        r set a 1
        assert_equal {OK OK} [r exec]
        r multi
        r set b 1
        r select 3
        r set b 1
        assert_error "EXECABORT*$db_full" {r exec}
        r select 4
        assert_equal 0 [r exists b]
        r multi
        r eval {return redis.call('incr', 'by script')} 0
        assert_equal 1 [r exec]
    } {cluster:skip}

    test {each policy evicts keys of the database over its limit, and of no other} {
        foreach policy {allkeys-lru allkeys-lfu allkeys-random volatile-lru volatile-lfu volatile-random volatile-ttl} {
            fresh $policy {3 100kb}
            fill_db 4 100
            foreach key [r keys *] {r expire $key 1000}
            r select 3
            for {set i 0} {$i < 300} {incr i} {r set key:$i [string repeat x 1000] ex 1000}
            r ping
            assert {[db_used 3] <= 102400} $policy
            assert_range [r dbsize] 75 105 $policy
            assert_equal [quota maxmemory_db3 evicted] [info_field evicted_keys] $policy
            assert_equal [expr {300 - [r dbsize]}] [info_field evicted_keys] $policy
            r select 4
            assert_equal 100 [r dbsize] $policy
        }
    }

    test {when no key of the database may be evicted, writes are refused} {
        fresh volatile-lru {3 50kb}
        fill_db 4 10
        foreach key [r keys *] {r expire $key 1000}
        r select 3
        while {![catch {r append key [string repeat x 5000]} error]} {}
        assert_equal $db_full $error
        assert_equal 1 [r dbsize]
        r select 4
        assert_equal 10 [r dbsize]
    }

    test {a lower limit evicts without further requests} {
        fresh allkeys-lru
        fill_db 3 1000 1000
        r config set db-maxmemory "3 100kb"
        r select 4
        wait_measured
        wait_for_condition 500 20 {[db_used 3] <= 102400}
        r select 3
        assert_range [r dbsize] 75 105
    }

    test {a limit of a database and maxmemory hold together} {
        fresh noeviction {3 100kb}
        fill_db 3 10
        r config set maxmemory 1
        assert_error "OOM command not allowed when used memory > 'maxmemory'." {r set a 1}
        r config set maxmemory 0
        assert_equal OK [r set a 1]
    }

    test {MEMORY EXPLAIN names the limits} {
        fresh noeviction {3 100kb}
        fill_db 3 10
        r acl setuser tenant on nopass ~t:* +@all maxmemory=1mb
        assert_match "*Limits of databases and users\n  database 3 * of 100.00K (*\n  user tenant * of 1.00M (*" [r memory explain]
        r acl deluser tenant
        r config set db-maxmemory ""
        assert {![string match "*Limits of databases*" [r memory explain]]}
    }

    test {the rule maxmemory= is listed if it is set} {
        r acl setuser limited on nopass ~a:* +@all maxmemory=1mb
        assert_match "*user limited on nopass maxmemory=1048576 ~a:* resetchannels +@all*" [r acl list]
        assert_equal 1048576 [dict get [r acl getuser limited] maxmemory]
        assert_equal 0 [dict get [r acl getuser limited] used-memory]
        assert_equal 0 [quota user_maxmemory_0 used]
        assert_equal limited [quota user_maxmemory_0 name]
        foreach bad {maxmemory= maxmemory=x maxmemory=-1 (maxmemory=1)} {
            assert_error "ERR Error in ACL SETUSER modifier '$bad': Syntax error" [list r acl setuser limited $bad]
        }
        r acl setuser limited maxmemory=0
        assert {![string match *maxmemory* [r acl list]]}
        assert {![dict exists [r acl getuser limited] maxmemory]}
        r acl setuser limited maxmemory=5 reset
        assert {![string match *maxmemory* [r acl list]]}
        r acl deluser limited
    }

    test {writes of a user are refused while the keys that she may write exceed her limit} {
        fresh allkeys-lru
        r acl setuser alice on nopass ~alice:* %R~shared:* +@all maxmemory=100kb "(~* +@read -@write)"
        r acl setuser bob on nopass ~bob:* +@all maxmemory=100kb
        set alice [connect]
        $alice auth alice x
        $alice select 3
        set bob [connect]
        $bob auth bob x
        $bob select 3
        r set shared:1 [string repeat x 200000]
        r set alice:0 [string repeat x 50000]
        for {set i 1} {![catch {$alice set alice:$i [string repeat x 1000]} error]} {incr i} {}
        assert_equal $user_full $error
        assert_range $i 40 60
        assert_equal "[expr {$i + 1}] 0" [list [r dbsize] [info_field evicted_keys]] {shared:1 and alice:0 are there}
        assert_equal 1 [quota user_maxmemory_0 refused]
        assert_equal OK [$bob set bob:1 [string repeat x 1000]]
        assert_equal OK [r set alice:$i 1] {the limit is of the user's commands}
        assert_error "$user_full*" {$alice eval {return redis.call('set', KEYS[1], 1)} 1 alice:x}
        $alice multi
        assert_error $user_full {$alice set alice:x 1}
        assert_error EXECABORT* {$alice exec}
        assert_equal 1 [$alice del alice:0]
        assert_equal OK [$alice set alice:x 1]
        # Other rights are other keys.
        r acl setuser alice resetkeys ~bob:*
        wait_for_condition 500 20 {[quota user_maxmemory_0 used] == [quota user_maxmemory_1 used]}
        assert {[quota user_maxmemory_0 used] > 1000}
        r acl deluser alice bob
        $alice -close
        $bob -close
        wait_for_condition 400 20 {![string match *user_maxmemory* [r info memory]]}
    }

    # Requests that are refused when the keys of the user are full, and those that are not because they only free.
    proc requests_that_grow {} {
        return {
            append {append t:s x} bitfield {bitfield t:s set u8 0 1} bitop {bitop not t:d t:s} blmove {blmove t:l t:m left left 1}
            brpoplpush {brpoplpush t:l t:m 1} copy {copy t:s t:n} decr {decr t:n} decrby {decrby t:n 1} geoadd {geoadd t:g 1 1 a}
            georadius {georadius t:g 1 1 1 m store t:d} georadiusbymember {georadiusbymember t:g a 1 m store t:d}
            geosearchstore {geosearchstore t:d t:g fromlonlat 1 1 byradius 1 m} getset {getset t:s x} hincrby {hincrby t:h n 1}
            hincrbyfloat {hincrbyfloat t:h n 1} hmset {hmset t:h n 1} hset {hset t:h n 1} hsetex {hsetex t:h ex 10 fields 1 n 1}
            hsetnx {hsetnx t:h n 1} incr {incr t:n} incrby {incrby t:n 1} incrbyfloat {incrbyfloat t:n 1} linsert {linsert t:l before a x}
            lmove {lmove t:l t:m left left} lpush {lpush t:l x} lpushx {lpushx t:l x} lset {lset t:l 0 x} mset {mset t:n 1}
            msetex {msetex 1 t:n 1} msetnx {msetnx t:n 1} pfadd {pfadd t:p x} pfdebug {pfdebug todense t:p} pfmerge {pfmerge t:p t:p}
            psetex {psetex t:n 1000 x} restore {restore t:n 0 x} restore-asking {restore-asking t:n 0 x} rpoplpush {rpoplpush t:l t:m}
            rpush {rpush t:l x} rpushx {rpushx t:l x} sadd {sadd t:e x} saddex {saddex t:e ex 10 members 1 x} sdiffstore {sdiffstore t:d t:e}
            set {set t:n x} setbit {setbit t:s 1 1} setex {setex t:n 10 x} setnx {setnx t:n x} setrange {setrange t:s 10 x}
            sexpire {sexpire t:e 10 members 1 a} sexpireat {sexpireat t:e 9999999999 members 1 a} sinterstore {sinterstore t:d t:e}
            sort {sort t:l alpha store t:d} spexpire {spexpire t:e 10000 members 1 a} spexpireat {spexpireat t:e 9999999999999 members 1 a}
            sunionstore {sunionstore t:d t:e} xadd {xadd t:x * a b} xgroup|create {xgroup create t:x new 0}
            xgroup|createconsumer {xgroup createconsumer t:x g new} xsetid {xsetid t:x 99-0} zadd {zadd t:z 1 x} zaddex {zaddex t:z ex 10 members 1 1 x}
            zdiffstore {zdiffstore t:d 1 t:z} zexpire {zexpire t:z 10 members 1 a} zexpireat {zexpireat t:z 9999999999 members 1 a}
            zincrby {zincrby t:z 1 x} zinterstore {zinterstore t:d 1 t:z} zpexpire {zpexpire t:z 10000 members 1 a}
            zpexpireat {zpexpireat t:z 9999999999999 members 1 a} zrangestore {zrangestore t:d t:z 0 -1} zunionstore {zunionstore t:d 1 t:z}
            cl.throttle {cl.throttle t:n 1 1 1} function|load {function load x} function|restore {function restore x}
            hexpire {hexpire t:h 10 fields 1 a} hexpireat {hexpireat t:h 9999999999 fields 1 a} hpexpire {hpexpire t:h 10000 fields 1 a}
            hpexpireat {hpexpireat t:h 9999999999999 fields 1 a} hgetex {hgetex t:h ex 10 fields 1 a} rename {rename t:s t:n}
            renamenx {renamenx t:s t:n} smove {smove t:e t:f a} xautoclaim {xautoclaim t:x g new 0 0} xclaim {xclaim t:x g new 0 1-1 force}
            xreadgroup {xreadgroup group g new streams t:x >} lmovem {lmovem t:l t:m left left count 2 obo}
            blmovem {blmovem t:l t:m left left 1} himport|set {himport set t:h f 1}
            increx {increx t:n} phset {phset t:r p fields 1 f 1} phmset {phmset t:r p fields 1 f 1}
            xcfgset {xcfgset t:x idmp-duration 5} xidmprecord {xidmprecord t:x p i 1-1} xnack {xnack t:x g fail ids 1 1-1}
        }
    }
    proc commands_that_free {} {
        return {
            blmpop blpop brpop bzmpop bzpopmax bzpopmin cluster|flushslot del delex delifeq delprefix expire expireat flushall flushdb
            function|delete function|flush getdel getex hdel hgetdel hpersist lmpop lpop lrem ltrim migrate move persist pexpire pexpireat
            phdel phdelprefix rpop spersist spop srem swapdb unlink xack xackdel xdel xdelex xgroup|delconsumer xgroup|destroy xgroup|setid xtrim zmpop
            zpersist zpopmax zpopmin zrem zremrangebylex zremrangebyrank zremrangebyscore
        }
    }
    proc names_of_writers {commands} {
        set names {}
        foreach c $commands {
            if {[llength [lindex $c 9]]} {
                lappend names {*}[names_of_writers [lindex $c 9]]
            } elseif {"write" in [lindex $c 2]} {
                lappend names [lindex $c 0]
            }
        }
        return $names
    }
    # A user without a selected database of her own, whose keys are full, and her client.
    proc full_tenant {limit} {
        fresh noeviction
        r select 0
        r acl setuser tenant reset on nopass ~t:* +@all maxmemory=$limit
        r set t:s x
        r rpush t:l a b
        r hset t:h a 1 b 2
        r sadd t:e a b
        r zadd t:z 1 a 2 b
        r geoadd t:g 1 1 a
        r pfadd t:p a
        r xgroup create t:x g 0 mkstream
        r xadd t:x 1-1 a b
        set tenant [connect]
        $tenant auth tenant x
        return $tenant
    }

    test {every write command is refused if the keys of its user are full, or only frees} {
        set tenant [full_tenant 100kb]
        set growing [requests_that_grow]
        assert_equal [lsort [list {*}[dict keys $growing] {*}[commands_that_free]]] [lsort [names_of_writers [r command]]]
        $tenant himport prepare f field
        r set t:big [string repeat x 150000]
        dict for {name request} $growing {
            set ways [list $request]
            if {[lindex $request 0] ni {function pfdebug restore-asking himport}} {
                foreach text {"" "#!lua flags=allow-oom\n" "redis.call('del', 't:none') "} {
                    lappend ways [list eval "${text}return redis.call(unpack(ARGV))" 0 {*}$request]
                }
            }
            foreach way $ways {
                if {![catch {$tenant {*}$way} error] || ![string match "OOM *" $error]} {fail "$way: $error"}
            }
            $tenant multi
            catch {$tenant {*}$request}
            catch {$tenant exec} error
            if {![string match "*OOM *" $error] && ![string match EXECABORT* $error]} {fail "MULTI, $request: $error"}
        }
        assert_equal 0 [r exists t:n t:d t:m t:f]
        foreach request {
            {getex t:s ex 100} {expire t:s 100} {persist t:s} {hdel t:h b} {srem t:e b} {zrem t:z b} {lpop t:l} {xdel t:x 1-1} {xack t:x g 1-1}
            {xtrim t:x maxlen 0} {xgroup destroy t:x g} {spop t:e} {unlink t:z} {getdel t:s} {del t:big}
        } {$tenant {*}$request}
        assert_equal OK [$tenant set t:n x]
        r acl deluser tenant
    }

    test {what frees only later may go on a little, and what has begun within the limit to twice of it} {
        set tenant [full_tenant 100kb]
        # A full queue can be read and emptied.
        for {set i 2} {![catch {$tenant xadd t:x $i-1 a [string repeat x 1000]}]} {incr i} {}
        assert_error OOM* {$tenant xadd t:x * a b}
        while {[set entries [$tenant xreadgroup group g c count 5 streams t:x >]] ne ""} {
            foreach entry [lindex [expr {[resp3] ? $entries : [concat {*}$entries]}] 1] {
                $tenant xack t:x g [lindex $entry 0]
                $tenant xdel t:x [lindex $entry 0]
            }
        }
        # Names of consumers need memory.
        $tenant set t:fill [string repeat x 90000]
        for {set i 0} {![catch {$tenant xreadgroup group g [string repeat c 2000]$i streams t:x >} error]} {incr i} {}
        assert_match "OOM *" $error
        assert_range $i 2 30
        assert {[quota user_maxmemory_0 used] < 130000}
        # One request with many writes.
        foreach text {"" "#!lua flags=allow-oom\n" "redis.call('del', 't:fill') "} {
            r del none {*}[r keys t:m*]
            r set t:fill x
            $tenant set t:few x
            assert_error OOM* {$tenant eval "${text}for i = 1, 1000 do redis.call('set', 't:many' .. i, ARGV\[1\]) end" 0 [string repeat x 1000]}
            assert_range [quota user_maxmemory_0 used] 150000 230000
            assert_error OOM* {$tenant eval "${text}redis.call('set', 't:more', 1)" 0}
        }
        r del none {*}[r keys t:m*]
        $tenant multi
        for {set i 0} {$i < 1000} {incr i} {$tenant set t:many$i [string repeat x 1000]}
        $tenant -send exec
        assert_match "*OK*OOM *" [$tenant -readtyped]
        assert_range [quota user_maxmemory_0 used] 150000 230000
        # Pipelined copies of one value, in one batch.
        r del none {*}[r keys t:m*]
        r set t:fill [string repeat x 20000]
        set copies {}
        for {set i 0} {$i < 100} {incr i} {append copies "COPY t:fill t:many$i\r\n"}
        set raw [raw_connect]
        raw_send $raw "AUTH tenant x\r\n${copies}PING\r\n"
        set oom 0
        while {[set line [raw_line $raw]] ne "+PONG"} {incr oom [string match -OOM* $line]}
        assert_range $oom 90 100
        assert_range [quota user_maxmemory_0 used] 80000 130000
        close $raw
        r acl deluser tenant
    }

    test {a user limited to a database has its keys} {
        fresh noeviction
        r acl setuser alice on nopass ~* +@all db=3 maxmemory=1mb
        fill_db 4 100
        fill_db 3 10
        assert_equal [sum_of_keys] [dict get [r acl getuser alice] used-memory]
        r acl deluser alice
    }
}

start_server {tags {maxmemory metrics tls:skip needs:config} overrides {save "" db-maxmemory {3 100kb}}} {
    test {metrics have the limits of databases and users, and what is used} {
        open_metrics
        r acl setuser "a,b" on nopass ~t:* +@all maxmemory=1mb
        r select 3
        r set t:1 x
        set used [db_used 3]
        set text [lindex [http_get /metrics] 2]
        foreach line [list "db_memory_used_bytes{db=\"db3\"} $used" {db_memory_max_bytes{db="db3"} 102400}  {db_evicted_keys_total{db="db3"} 0} \
            {db_refused_requests_total{db="db3"} 0} "user_memory_used_bytes{user=\"a,b\"} $used" {user_memory_max_bytes{user="a,b"} 1048576} \
            {user_refused_requests_total{user="a,b"} 0}] {
            assert {[string match "*\nredis_[string map {\[ \\\[} $line]\n*" $text]} $line
        }
    }
}

start_server {tags {maxmemory repl tls:skip} overrides {save "" repl-diskless-sync-delay 0 db-maxmemory {3 100kb}}} {
    start_server {overrides {save "" db-maxmemory {3 10kb}}} {
        test {a replica evicts nothing for db-maxmemory, and follows its primary's evictions} {
            r -1 config set maxmemory-policy allkeys-lru
            r replicaof [srv -1 host] [srv -1 port]
            wait_for_condition 500 20 {[info_field master_link_status] eq "up"}
            r -1 select 3
            for {set i 0} {$i < 300} {incr i} {r -1 set key:$i [string repeat x 1000]}
            r -1 ping
            assert_range [r -1 dbsize] 75 105
            r select 3
            wait_for_condition 500 20 {[r dbsize] == [r -1 dbsize] && [lsort [r keys *]] eq [lsort [r -1 keys *]]}
            assert_equal 0 [quota maxmemory_db3 evicted]
            r replicaof no one
            wait_for_condition 500 20 {[catch {r set key x} error]}
            assert_equal $db_full $error
        }
    }
}
