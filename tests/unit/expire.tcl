# TTLs of keys: setting and reading them, and expiry.

proc null_bulk {} {return [expr {[resp3] ? {null null} : {null bulk}}]}
proc now_ms {} {
    lassign [r time] seconds microseconds
    return [expr {$seconds * 1000 + $microseconds / 1000}]
}

# Runs with active expiry off.
proc without_active_expire {code} {
    r debug set-active-expire 0
    try {uplevel 1 $code} finally {r debug set-active-expire 1}
}

start_server {tags {expire} overrides {enable-debug-command yes}} {
    r select 9

    test {EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT are equivalent} {
        r set a 1
        assert_equal {integer 1} [r -typed expire a 1000]
        assert_range [r ttl a] 999 1000
        assert_equal 1 [r pexpire a 2000000]
        assert_range [r pttl a] 1990000 2000000
        assert_equal 1 [r expireat a 33177117420]
        assert_equal {integer 33177117420} [r -typed expiretime a]
        assert_equal 1 [r pexpireat a 33177117420123]
        assert_equal {integer 33177117420123} [r -typed pexpiretime a]
        assert_equal 33177117420 [r expiretime a]
        assert_equal 0 [r expire nokey 10]
        assert_equal 0 [r pexpireat nokey 33177117420123]
    }

    test {TTL rounds to the nearest second} {
        r set a 1
        r pexpireat a [expr {[now_ms] + 100400}]
        assert_range [r ttl a] 99 100
        r pexpireat a 33177117420499
        assert_equal 33177117420 [r expiretime a]
        r pexpireat a 33177117420500
        assert_equal 33177117421 [r expiretime a]
    }

    test {TTL replies -1 without a TTL and -2 without a key} {
        r set a 1
        foreach command {ttl pttl expiretime pexpiretime} {
            assert_equal {integer -1} [r -typed $command a]
            assert_equal {integer -2} [r -typed $command nokey]
            assert_error "ERR wrong number of arguments for '$command' command" {r $command}
            assert_error "ERR wrong number of arguments for '$command' command" {r $command a b}
        }
    }

    test {PERSIST removes the TTL} {
        r set a 1 ex 1000
        assert_equal {integer 1} [r -typed persist a]
        assert_equal -1 [r ttl a]
        assert_equal 0 [r persist a]
        assert_equal 0 [r persist nokey]
    }

    test {an expiry time in the past deletes the key} {
        foreach {command time} {expire 0 expire -1 pexpire -100 expireat 1 pexpireat 1 pexpireat 0 expireat -5
                pexpireat -9223372036854775808 expire -9223372036854775} {
            r set a 1
            assert_equal 1 [r $command a $time] "$command $time"
            assert_equal 0 [r exists a]
        }
    }

    test {times out of range are refused and change nothing} {
        r set a 1 ex 1000
        foreach {command time} {expire 9223372036854775807 expire 9223372036854775 expire -9223372036854775808
                pexpire 9223372036854775807 expireat 9223372036854775807 expireat 9223372036854776} {
            assert_error "ERR invalid expire time in '$command' command" {r $command a $time}
            assert_error "ERR invalid expire time in '$command' command" {r $command nokey $time}
        }
        foreach time {x {} 1.5 " 1" 010 +5 9223372036854775808} {
            assert_error "ERR value is not an integer or out of range" {r expire a $time}
        }
        assert_range [r ttl a] 990 1000
    }

    test {the maximum expiry time is stored exactly} {
        r set a 1
        assert_equal 1 [r pexpireat a 9223372036854775807]
        assert_equal 9223372036854775807 [r pexpiretime a]
        assert_equal 9223372036854776 [r expiretime a]
        assert_equal 1 [r exists a]
        assert_equal 1 [r expireat a 9223372036854775]
        assert_equal 9223372036854775000 [r pexpiretime a]
        r rename a b
        assert_equal 9223372036854775000 [r pexpiretime b]
        assert_equal 1 [r pexpireat b [expr {(1 << 48) - 1}]]
        assert_equal [expr {(1 << 48) - 1}] [r pexpiretime b]
        assert_equal 1 [r pexpireat b [expr {1 << 48}]]
        assert_equal [expr {1 << 48}] [r pexpiretime b]
        assert_equal 1 [r get b]
    }

    test {NX: only without a TTL} {
        r set a 1
        assert_equal 1 [r expire a 1000 NX]
        assert_equal 0 [r expire a 2000 nx]
        assert_range [r ttl a] 990 1000
        assert_equal 0 [r expire nokey 10 nx]
    }

    test {XX: only with a TTL} {
        r set a 1
        assert_equal 0 [r expire a 1000 XX]
        assert_equal -1 [r ttl a]
        r expire a 1000
        assert_equal 1 [r expire a 2000 xx]
        assert_range [r ttl a] 1990 2000
    }

    test {GT: only later; no TTL counts as infinite} {
        r set a 1
        assert_equal 0 [r expire a 1000 GT]
        r expire a 1000
        assert_equal 0 [r expire a 500 gt]
        assert_equal 1 [r expire a 2000 gt]
        assert_range [r ttl a] 1990 2000
        assert_equal 0 [r expire a -1 gt]
        set same [r pexpiretime a]
        assert_equal 0 [r pexpireat a $same gt]
    }

    test {LT: only sooner} {
        r set a 1
        assert_equal 1 [r expire a 1000 LT]
        assert_equal 0 [r expire a 2000 lt]
        assert_equal 1 [r expire a 500 lt]
        assert_range [r ttl a] 490 500
        set same [r pexpiretime a]
        assert_equal 0 [r pexpireat a $same lt]
        assert_equal 1 [r expire a -1 lt]
        assert_equal 0 [r exists a]
    }

    test {combined and contradictory conditions} {
        r set a 1 ex 1000
        assert_equal 1 [r expire a 2000 xx gt]
        assert_equal 1 [r expire a 1000 xx lt XX]
        foreach words {{nx xx} {nx gt} {lt nx} {nx lt gt}} {
            assert_error "ERR NX and XX, GT or LT options at the same time are not compatible" \
                {r expire a 10 {*}$words}
        }
        assert_error "ERR GT and LT options at the same time are not compatible" {r expire a 10 gt lt}
        assert_error "ERR Unsupported option foo" {r expire a 10 foo}
        assert_error "ERR Unsupported option foo" {r expire a x nx foo}
        # Line breaks at the end of a message are dropped, others become spaces.
        foreach {word told} {foo\r\n foo foo\r\nbar\n\n {foo  bar}} {
            assert_equal [list error "ERR Unsupported option $told"] [r -typed expire a 10 $word]
        }
        assert_error "ERR NX and XX, GT or LT*" {r expire a x nx xx}
        foreach command {expire pexpire expireat pexpireat} {
            assert_error "ERR wrong number of arguments for '$command' command" {r $command a}
        }
    }

    test {an expired key is missing for every command} {
        without_active_expire {
            foreach command {{get a} {exists a} {ttl a} {type a} {object encoding a} {persist a} {del a}
                    {unlink a} {touch a} {expire a 100} {copy a b} {renamenx b a} {strlen a}} {
                r del b
                r set a 1 px 1
                after 3
                set dbsize [r dbsize]
                set error [catch {r {*}$command} reply]
                assert {$reply in {{} 0 -2 none "ERR no such key"}} "$command: $reply"
                assert_equal 0 [r exists a]
                assert_equal [expr {$dbsize - 1}] [r dbsize] $command
            }
            assert_error "ERR no such key" {r rename a b}
        }
    }

    test {a write to an expired key creates a new one} {
        without_active_expire {
            r set a old px 1
            after 3
            assert_equal 3 [r append a new]
            assert_equal {new -1} [list [r get a] [r ttl a]]
            r set a old px 1
            after 3
            assert_equal OK [r set a new nx]
            r set a 5 px 1
            after 3
            assert_equal 1 [r incr a]
        }
    }

    test {RENAMENX and COPY can replace an expired key} {
        without_active_expire {
            foreach command {{renamenx a b} {copy a b} {move a 10}} {
                r select 10
                r set a dead px 1
                r select 9
                r mset a value
                r set b dead px 1
                after 3
                assert_equal 1 [r {*}$command] $command
            }
            r select 10
            assert_equal value [r get a]
            r select 9
        }
    }

    test {expired keys are counted by DBSIZE until they are removed} {
        without_active_expire {
            r flushdb
            r set a 1 px 1
            r set b 1
            after 3
            assert_equal 2 [r dbsize]
            assert_equal b [r keys *]
            assert_equal 2 [r dbsize]
            set expired [info_field expired_keys]
            assert_equal {} [r get a]
            assert_equal 1 [r dbsize]
            assert_equal [expr {$expired + 1}] [info_field expired_keys]
        }
    }

    test {RANDOMKEY never returns an expired key} {
        without_active_expire {
            r flushdb
            for {set i 0} {$i < 20} {incr i} {r set key:$i 1 px 1}
            after 3
            assert_equal [null_bulk] [r -typed randomkey]
            assert_equal 0 [r dbsize]
        }
    }

    test {expired keys are removed by active expiry in every database} {
        r flushall
        foreach id {0 9 15} {
            r select $id
            for {set i 0} {$i < 300} {incr i} {r -send set key:$i 1 px 20}
            for {set i 0} {$i < 300} {incr i} {r -read}
            r set stays 1
            r set later 1 ex 1000
        }
        foreach id {0 9 15} {
            r select $id
            wait_for_condition 100 20 {[r dbsize] == 2}
        }
        r select 9
    }

    test {few keys with a TTL are found among many without} {
        r flushall
        r debug populate [scaled 200000]
        for {set i 0} {$i < 50} {incr i} {r set key:[expr {$i * 7}] 1 px 30}
        set want [expr {[scaled 200000] - 50}]
        wait_for_condition 500 20 {[r dbsize] == $want}
        r flushall
    }

    test {many keys that expire at once are removed soon} {
        set count [scaled 20000]
        for {set i 0} {$i < $count} {incr i} {r -send set key:$i 1 px 50}
        for {set i 0} {$i < $count} {incr i} {r -read}
        wait_for_condition 200 50 {[r dbsize] == 0}
    }

    test {INFO shows the number of keys with a TTL and the mean TTL} {
        r flushall
        r set a 1
        wait_for_condition 100 50 {[string match {keys=1,expires=0,avg_ttl=0,*} [info_field db9]]}
        r set b 1 ex 100
        r set c 1 ex 100
        assert_match {keys=3,expires=2,*} [info_field db9]
        wait_for_condition 100 50 {[regexp {avg_ttl=(\d+)} [info_field db9] all mean] && $mean > 0}
        assert_range $mean 90000 100000
        r persist b
        assert_match {keys=3,expires=1,*} [info_field db9]
        r set c 1
        assert_match {keys=3,expires=0,*} [info_field db9]
        wait_for_condition 100 50 {[string match *avg_ttl=0,* [info_field db9]]}
        r del a b c
        assert_equal {} [info_field db9]
    }

    test {keys keep their TTLs when other keys are added and removed} {
        r flushdb
        for {set i 0} {$i < [scaled 3000]} {incr i} {
            set key key:[random_below 100]
            switch [random_below 5] {
                0 {r set $key 1; set time($key) -1}
                1 {
                    set at [expr {33177117420000 + [random_below 1000000]}]
                    if {[r pexpireat $key $at]} {set time($key) $at}
                }
                2 {r persist $key; if {[info exists time($key)]} {set time($key) -1}}
                3 {r del $key; unset -nocomplain time($key)}
                4 {
                    set want [expr {[info exists time($key)] ? $time($key) : -2}]
                    assert_equal $want [r pexpiretime $key]
                }
            }
        }
        set with 0
        foreach key [array names time] {
            assert_equal $time($key) [r pexpiretime $key]
            incr with [expr {$time($key) > 0}]
        }
        assert_match "keys=[array size time],expires=$with,*" [info_field db9]
    }

    test {a key exists during its last millisecond, with PTTL 0} {
        for {set lives 0; set left -2} {$lives < 500 && $left != 0} {incr lives} {
            r set k v px 2
            while {[set left [r pttl k]] > 0} {}
        }
        assert_equal 0 $left
    }

    test {a command that sets the present time deletes the key} {
        r mset a 1 b 1 c 1
        assert_equal {1 1} [list [r pexpire a 0] [r expire b 0]]
        assert_equal 0 [r eval {local t = redis.call('time')
            redis.call('pexpireat', 'c', t[1] * 1000 + math.floor(t[2] / 1000)) return redis.call('exists', 'c')} 0]
        assert_equal 0 [r exists a b c]
    }

    test {the time does not change within a transaction} {
        r multi
        r set a 1 px 30
        r debug sleep 0.05
        r exists a
        assert_equal {OK OK 1} [r exec]
        assert_equal 0 [r exists a]
    }

    test {a watched key that expires or is deleted counts as changed} {
        without_active_expire {
            foreach {ttl_ms end} {500 {after 510} 100000 {r expire a -1} 100000 {r expire a 1000}} {
                r set a 1 px $ttl_ms
                r watch a
                eval $end
                r multi
                r ping
                assert_equal {} [r exec] $end
            }
        }
    }

    test {import mode: expired keys are kept and visible only to import sources} {
        r flushdb
        set source [connect]
        $source select 9
        assert_error "ERR Server is not in import mode" {$source client import-source on}
        r config set import-mode yes
        assert_equal OK [$source client import-source on]
        r set a 1 px 1
        r set b 1
        after 150
        assert_equal 2 [r dbsize]
        assert_equal [null_bulk] [r -typed get a]
        assert_equal {0 b b} [list [r exists a] [r keys *] [r randomkey]]
        assert_equal {0 b} [r scan 0]
        assert_equal {1 1 0 0} [list [$source get a] [$source exists a] [$source ttl a] [$source pttl a]]
        assert_equal {a b} [lsort [$source keys *]]
        assert_equal {a b} [lsort [lindex [$source scan 0] 1]]
        assert_equal 2 [$source incr a]
        assert_equal OK [$source set c 1 pxat 1]
        assert_equal 1 [$source expire b -1]
        assert_equal {1 1} [list [$source get b] [$source get c]]
        assert_equal 1 [$source pexpireat b -5]
        assert_equal 0 [$source pexpiretime b]
        assert_equal [null_bulk] [r -typed get b]
        assert_equal 3 [r dbsize]
        assert_equal OK [$source client import-source off]
        assert_equal [null_bulk] [$source -typed get b]
        r config set import-mode no
        wait_for_condition 100 20 {[r dbsize] == 0}
    }
}
