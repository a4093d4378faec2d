# DEBUG functions for tests: digests, populating, tables, switches; and memory returned to the system.

proc zeros {} {return [string repeat 0 40]}

start_server {tags {other debug} overrides {enable-debug-command yes}} {
    r select 9

    test {DEBUG DIGEST of nothing is zeros, of something it is not} {
        r flushall
        assert_equal [list status [zeros]] [r -typed debug digest]
        r set a 1
        set digest [r debug digest]
        assert {[regexp {^[0-9a-f]{40}$} $digest] && $digest ne [zeros]}
        r del a
        assert_equal [zeros] [r debug digest]
    }

    # The digests were taken from Valkey 9.1.2.
    test {DEBUG DIGEST and DIGEST-VALUE are the same as on other servers of the family} {
        r flushall
        r select 0
        r mset s hello n 123
        r set e hello ex 100000
        r rpush l a 7 b
        r sadd t a 7
        r sadd i 3 1 2
        r zadd z 1.5 m -0.0 zero 0.1 tenth 1e300 large inf inf 17179869184.3 long
        r hset h f v g 1
        r hset he f v g 1
        r hexpire he 100000 fields 1 f
        r xadd x 5-1 f v
        r xadd x 6-0 a 1 b 2
        r xgroup create x group 0
        set expected {
            s 36b23a1456b2dce2c3ed252c456761301dba8060 n 89f7f51b707418f666d5b45e053bd5bbbf82ac2b
            e d037c4eb8a8b36b602fbced4000daeab0714c1e3 l d2150ee8aca1c9aad3fa868e3743208d360d7ddd
            t a4658e03258b1a73b87d6b2065a4905ec3800184 i 2a462a3f51a1db89738ebbeef0c47ce1bbc85246
            z e40f6d72f08deaa06dd96016120af02fc6deab7a h 6679ee22f89ed8001eeb5309d0900265ea56c03a
            he 6679ee22f89ed8001eeb5309d0900265ea56c03a x 2997646bfc9b61fb113ffafa1fea7a3a9463f361
        }
        foreach {key value} $expected { assert_equal $value [r debug digest-value $key] $key }
        r select 3
        r mset s other empty ""
        assert_equal b1f3cd8f2cc6e06e5856a6c3232650a04244e4fb [r debug digest]
        r flushall
        r select 9
    }

    test {DEBUG DIGEST depends on names, values, databases and TTLs} {
        r flushall
        r set a 1
        set digest [r debug digest]
        foreach change {{set a 2} {rename a b} {move a 10} {expire a 1000} {set b 1}} {
            r {*}$change
            assert_not_equal $digest [r debug digest] $change
            r flushall
            r set a 1
            assert_equal $digest [r debug digest]
        }
        r mset a 2 b 1
        set digest [r debug digest]
        r mset a 1 b 2
        assert_not_equal $digest [r debug digest]
    }

    test {DEBUG DIGEST of a hash with timed fields does not depend on the command that ran last} {
        r flushall
        r debug set-active-expire 0
        r hset h f v
        set without [r debug digest]
        r hset h g w
        set with [r debug digest]
        set at_ms [expr {[clock milliseconds] + 30}]
        r hpexpireat h $at_ms fields 1 g
        r set other v pxat $at_ms
        wait_for_condition 100 10 {[r exists other] == 0} else {fail "the key does not expire"}
        # No command has accessed the hash since the field expired.
        assert_equal $without [r debug digest]
        r hget h g
        assert_equal $without [r debug digest]
        assert_not_equal $with $without
        r debug set-active-expire 1
    }

    test {DEBUG DIGEST is independent of TTLs, the order of insertion and encodings} {
        r flushall
        r mset a 1 b 2 c text
        r expire a 1000
        set digest [r debug digest]
        r expire a 5000
        assert_equal $digest [r debug digest]
        r flushall
        r set c te
        r append c xt
        r set b 2
        r set a 12
        r setrange a 0 1
        r set a 1 px 100000
        assert_equal $digest [r debug digest]
    }

    test {DEBUG DIGEST is the same on another server} {
        r flushall
        r set a 1
        r set [string repeat k 300] [string repeat v 3000]
        r set c 1.5 ex 1000
        set digest [r debug digest]
        set value [r debug digest-value a]
        start_server {overrides {enable-debug-command yes}} {
            r select 9
            r set c 1.5 ex 500
            r set [string repeat k 300] [string repeat v 3000]
            r set a 1
            assert_equal $digest [r debug digest]
            assert_equal $value [r debug digest-value a]
        }
    }

    test {DEBUG DIGEST-VALUE looks at values, not at names} {
        r flushall
        r mset a 1 b 1 c 2
        lassign [r debug digest-value a b c nokey] a b c none
        assert_equal $a $b
        assert_not_equal $a $c
        assert_equal [zeros] $none
        assert_equal {array {}} [r -typed debug digest-value]
        r expire a 1000
        assert_not_equal $b [r debug digest-value a]
        r persist a
        assert_equal $b [lindex [r debug digest-value a] 0]
    }

    test {DEBUG POPULATE} {
        r flushall
        assert_equal {status OK} [r -typed debug populate 3]
        assert_equal {key:0 key:1 key:2} [lsort [r keys *]]
        assert_equal value:1 [r get key:1]
        r set key:1 mine
        r debug populate 5
        assert_equal {5 mine} [list [r dbsize] [r get key:1]]
        r debug populate 2 other 10
        assert_equal "value:1\0\0\0" [r get other:1]
        r debug populate 2 cut 3
        assert_equal val [r get cut:0]
        r debug populate 0
        foreach words {x -1 {1 a x} {1 a -1}} {
            assert_error "ERR value is out of range, must be positive" {r debug populate {*}$words}
        }
        assert_error "ERR unknown subcommand or wrong number*" {r debug populate}
        assert_error "ERR unknown subcommand or wrong number*" {r debug populate 1 2 3 4}
    }

    test {DEBUG HTSTATS counts entries} {
        r flushall
        assert_match "\\\[Dictionary HT\]\n\\\[Expires HT\]\n*" [r debug htstats 9]
        r debug populate 1000
        r expire key:1 1000
        foreach full {{} full} {
            set stats [r debug htstats 9 {*}$full]
            assert_match "\\\[Dictionary HT\]\nHash table 0 stats (main hash table):\n table size: *" $stats
            assert_match "*\n number of entries: 1000\n*" $stats
            assert_match "*\\\[Expires HT\]\n*number of entries: 1\n*" $stats
            assert_equal [expr {$full ne ""}] [string match "*chain length distribution*" $stats]
        }
        assert_error "ERR Out of range database" {r debug htstats 16}
        assert_error "ERR Out of range database" {r debug htstats -1}
        assert_error "ERR value is not an integer or out of range" {r debug htstats x}
    }

    test {DEBUG HTSTATS-KEY of a string} {
        r set a 1
        assert_error "ERR The value stored at the specified key is not represented using an hash table" \
            {r debug htstats-key a}
        assert_error "ERR no such key" {r debug htstats-key nokey}
    }

    test {DEBUG OBJECT} {
        # The second may change between the two commands; then it is asked again.
        set whole {Value at:0x* refcount:1 encoding:embstr serializedlength:6 lru:* lru_seconds_idle:0}
        wait_for_condition 50 10 {[r set a hello] eq "OK" && [string match $whole [r debug object a]]}
        assert_equal 0 [string match *serializedlength* [r debug object a fast]]
        foreach {value length} {12 2 1000 3 -100000 5 99999999999 12 010 4} {
            r set a $value
            assert_match "* serializedlength:$length *" [r debug object a]
        }
        assert_error "ERR no such key" {r debug object nokey}
        assert_error "ERR unknown subcommand or wrong number*" {r debug object}
        assert_error "ERR unknown subcommand or wrong number*" {r debug object a b c}
    }

    test {DEBUG SDSLEN} {
        r set a hello
        assert_match {key_sds_len:1 key_sds_avail:0 obj_alloc:* val_sds_len:5 val_sds_avail:* val_alloc:*} \
            [r debug sdslen a]
        r set a 1
        assert_error "ERR Not an sds encoded string." {r debug sdslen a}
        assert_error "ERR no such key" {r debug sdslen nokey}
    }

    test {DEBUG commands neither remove nor touch keys} {
        r debug set-active-expire 0
        r set a 1 px 1
        after 3
        assert_match {Value at:*} [r debug object a]
        r memory usage a
        r debug digest-value a
        assert_equal 1 [expr {[r dbsize] > 0}]
        assert_equal {} [r get a]
        r debug set-active-expire 1
    }

    test {DEBUG SET-ACTIVE-EXPIRE and PAUSE-CRON stop the removal of expired keys} {
        foreach {off on} {{set-active-expire 0} {set-active-expire 1} {pause-cron 1} {pause-cron 0}} {
            r flushall
            r debug {*}$off
            r set a 1 px 1
            after 250
            assert_equal 1 [r dbsize] $off
            r debug {*}$on
            wait_for_condition 100 20 {[r dbsize] == 0}
        }
    }

    test {DEBUG CLIENT-ENFORCE-REPLY-LIST is accepted} {
        assert_equal OK [r debug client-enforce-reply-list 1]
        assert_equal OK [r debug client-enforce-reply-list 0]
        assert_error "ERR unknown subcommand*" {r debug client-enforce-reply-list}
    }

    test {DEBUG DICT-RESIZING: tables work without growing} {
        r flushall
        r debug dict-resizing 0
        r debug populate [scaled 5000]
        assert_equal value:77 [r get key:77]
        r debug dict-resizing 1
        r debug populate [scaled 10000]
        assert_equal [scaled 10000] [r dbsize]
        assert_equal value:77 [r get key:77]
        assert_equal [scaled 10000] [llength [r keys *]]
    }

    test {DEBUG STRINGMATCH-TEST ends well} {
        assert_equal "Apparently the server did not crash: test passed" [r debug stringmatch-test]
    } {slow}

    test {DEBUG refuses unknown arguments} {
        assert_error "ERR unknown subcommand or wrong number of arguments for 'foo'. Try DEBUG HELP." {r debug foo}
        assert_error "ERR wrong number of arguments for 'debug' command" {r debug}
    }

    test {writes continue while a child exists, and tables grow again afterwards} {
        r flushall
        set count [scaled 20000]
        r debug populate $count key 20
        r debug child 100
        for {set i 0} {$i < $count} {incr i 10} {r set key:$i changed:$i}
        r debug populate [expr {2 * $count}] key 20
        for {set i 0} {$i < $count} {incr i 100} {assert_equal changed:$i [r get key:$i]}
        r debug child 0
        assert_equal [expr {2 * $count}] [r dbsize]
        for {set i 0} {$i < $count} {incr i 100} {assert_equal changed:$i [r get key:$i]}
        r flushall
    }

    test {memory is returned when most keys are deleted} {
        r flushall
        set count [scaled 200000]
        r debug populate $count key 100
        set names {}
        for {set i 0} {$i < $count} {incr i} {
            if {$i % 10} {lappend names key:$i}
        }
        for {set i 0} {$i < [llength $names]} {incr i 1000} {r del {*}[lrange $names $i $i+999]}
        for {set i 0} {$i < $count} {incr i 1000} {assert_match value:$i* [r get key:$i]}
        assert_equal [expr {($count + 9) / 10}] [r dbsize]
        set used [info_field used_memory]
        r flushall
        wait_for_condition 100 50 {[info_field used_memory] < $used}
    }
}

start_server {tags {other memory}} {
    test {MEMORY DOCTOR and EXPLAIN say that writes are refused, why, and what to do} {
        assert_match "Hi Sam*" [r memory doctor]
        assert_equal 0 [string match "*Writes are refused*" [r memory explain]]
        r config set maxmemory 1
        assert_error OOM* {r set k v}
        assert_match "Sam, I detected*\\* Writes are refused with OOM: * Raise the limit*" [r memory doctor]
        assert_match "*Writes are refused with OOM: * maxmemory-policy finds no key to evict*" [r memory explain]
        r config set maxmemory 0
        assert_equal OK [r set k v]
        assert_equal 0 [string match "*Writes are refused*" [r memory doctor]]
        r del k
    }

    test {MEMORY DOCTOR names the largest client} {
        set s [raw_connect]
        raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$20000000\r\n[string repeat x 9000000]"
        wait_for_condition 200 50 {[string match "*Large client buffers*The largest is id=* addr=*:* with * bytes.\n*" [r memory doctor]]} else {
            fail [r memory doctor]
        }
        regexp {The largest is id=(\d+) addr=(\S+) with (\d+) bytes} [r memory doctor] _ id address bytes
        assert_match "*id=$id addr=$address *" [r client list]
        wait_for_condition 200 50 {
            [regexp {The largest is id=\d+ addr=\S+ with (\d+) bytes} [r memory doctor] -> bytes] && $bytes > 5000000
        } else {fail [r memory doctor]}
        close $s
    }
}
