# The first commands anyone types, in both protocols.

start_server {tags {basic}} {
    test {PING replies, with and without a message} {
        assert_equal {status PONG} [r -typed ping]
        assert_equal {bulk hello} [r -typed ping hello]
        assert_equal {bulk {}} [r -typed ping {}]
        assert_error "ERR wrong number of arguments for 'ping' command" {r ping a b}
    }

    test {ECHO returns any bytes} {
        set bytes ""
        for {set i 0} {$i < 256} {incr i} {append bytes [format %c $i]}
        assert_equal $bytes [r echo $bytes]
        assert_equal {} [r echo {}]
        assert_error "ERR wrong number of arguments for 'echo' command" {r echo}
        assert_error "ERR wrong number of arguments for 'echo' command" {r echo a b}
    }

    test {command names are found in any case} {
        assert_equal PONG [r PiNg]
        assert_equal x [r EcHO x]
    }

    test {an unknown command is named with its first arguments} {
        assert_error "ERR unknown command 'nosuch', with args beginning with: " {r nosuch}
        assert_error "ERR unknown command 'NoSuch', with args beginning with: 'a' 'b' " {r NoSuch a b}
        assert_error "ERR unknown command '', with args beginning with: " {r {}}
    }

    test {long names and arguments of an unknown command are cut at 128 bytes} {
        set long [string repeat x 200]
        set cut [string repeat x 128]
        assert_error "ERR unknown command '$cut', with args beginning with: " {r $long}
        assert_error "ERR unknown command 'nosuch', with args beginning with: '$cut' " {r nosuch $long b}
    }

    test {SET and GET} {
        assert_equal {status OK} [r -typed set key value]
        assert_equal {bulk value} [r -typed get key]
        assert_equal OK [r set key other]
        assert_equal other [r get key]
        assert_error "ERR wrong number of arguments for 'set' command" {r set key}
        assert_error "ERR wrong number of arguments for 'get' command" {r get}
        assert_error "ERR wrong number of arguments for 'get' command" {r get a b}
    }

    test {GET of a missing key is null} {
        r del missing
        assert_equal [expr {[resp3] ? {null null} : {null bulk}}] [r -typed get missing]
    }

    test {keys and values may be empty or hold any bytes} {
        foreach bytes [list {} "\0" "\r\n" "a\0b\r\nc" "\xff\xfe" "*1\r\n\$4\r\nPING\r\n"] {
            assert_equal OK [r set k$bytes $bytes]
            assert_equal $bytes [r get k$bytes]
            assert_equal OK [r set $bytes v]
            assert_equal v [r get $bytes]
            assert_equal 2 [r del $bytes k$bytes]
        }
    }

    test {values of every size around the limits of small encodings are returned unchanged} {
        foreach size {1 2 15 16 31 32 43 44 45 63 64 127 128 129 255 256 1023 1024 4095 4096 16383 16384 16385 65536} {
            set value [string repeat [format %c [expr {65 + $size % 26}]] $size]
            assert_equal OK [r set size:$size $value]
            assert_equal $value [r get size:$size]
        }
    }

    test {integers are returned unchanged} {
        foreach number {0 -1 1 9999 10000 9223372036854775807 -9223372036854775808 9223372036854775808 007 -0 +1 1e3} {
            r set number $number
            assert_equal $number [r get number]
        }
    }

    test {SET NX and XX} {
        r del key
        assert_equal {} [r set key a xx]
        assert_equal 0 [r exists key]
        assert_equal OK [r set key a nx]
        assert_equal {} [r set key b nx]
        assert_equal a [r get key]
        assert_equal OK [r set key c xx]
        assert_equal c [r get key]
        assert_equal [expr {[resp3] ? {null null} : {null bulk}}] [r -typed set key d nx]
    }

    test {SET GET returns the old value} {
        r del key
        assert_equal {} [r set key a get]
        assert_equal a [r set key b get]
        assert_equal b [r set key c nx get]
        assert_equal b [r get key]
        assert_equal b [r set key c xx get]
        assert_equal c [r get key]
    }

    test {SET IFEQ changes only a key that holds the value} {
        r del key
        assert_equal {} [r set key new ifeq old]
        assert_equal 0 [r exists key]
        r set key old
        assert_equal {} [r set key new ifeq other]
        assert_equal OK [r set key new ifeq old]
        assert_equal new [r get key]
    }

    test {SET refuses contradictory options and changes nothing} {
        r set key a
        foreach options {
            {nx xx} {xx nx} {ex 10 px 10} {ex 10 keepttl} {exat 1 ex 1} {nosuch} {ex} {px} {nx ifeq a} {xx ifeq a} {ifeq}
        } {
            assert_error "ERR syntax error" {r set key b {*}$options}
        }
        assert_error "ERR value is not an integer or out of range" {r set key b ex abc}
        assert_error "ERR value is not an integer or out of range" {r set key b px 1.5}
        foreach time {0 -1 -9223372036854775808 9223372036854775807} {
            assert_error "ERR invalid expire time in 'set' command" {r set key b ex $time}
        }
        assert_equal a [r get key]
    }

    test {SET with a TTL, with KEEPTTL, and without, which removes the TTL} {
        r set key a ex 100
        assert_range [r ttl key] 99 100
        r set key b keepttl
        assert_range [r ttl key] 99 100
        r set key c
        assert_equal -1 [r ttl key]
        r set key d px 100000
        assert_range [r pttl key] 90000 100000
        r set key e exat 33177117420
        assert_equal 33177117420 [r expiretime key]
        r set key f pxat 33177117420000
        assert_equal 33177117420000 [r pexpiretime key]
    }

    test {an expired key is missing} {
        r set key a px 1
        wait_for_condition 100 5 {[r get key] eq ""}
        assert_equal 0 [r exists key]
        r set key a
        assert_equal OK [r set key b pxat 1]
        assert_equal 0 [r exists key]
    }

    test {GET and SET GET refuse other types} {
        needs_command rpush
        r del list
        r rpush list a
        assert_error "WRONGTYPE Operation against a key holding the wrong kind of value" {r get list}
        assert_error "WRONGTYPE Operation against a key holding the wrong kind of value" {r set list a get}
        assert_equal OK [r set list a]
        assert_equal a [r get list]
    }

    test {DEL counts existing keys} {
        r set a 1
        r set b 2
        assert_equal {integer 2} [r -typed del a b c a]
        assert_equal 0 [r del a b c]
        assert_equal {} [r get a]
        assert_error "ERR wrong number of arguments for 'del' command" {r del}
    }

    test {EXISTS counts every mention} {
        r del a b
        r set a 1
        assert_equal {integer 1} [r -typed exists a]
        assert_equal 3 [r exists a b a a]
        assert_equal 0 [r exists b]
        assert_error "ERR wrong number of arguments for 'exists' command" {r exists}
    }

    test {DBSIZE and FLUSHALL} {
        r flushall
        assert_equal {integer 0} [r -typed dbsize]
        for {set i 0} {$i < 1000} {incr i} {r set key:$i $i}
        assert_equal 1000 [r dbsize]
        r del key:7
        assert_equal 999 [r dbsize]
        assert_equal {status OK} [r -typed flushall]
        assert_equal 0 [r dbsize]
        assert_equal {} [r get key:8]
        assert_equal OK [r flushall sync]
        assert_equal OK [r flushall ASYNC]
        assert_error "ERR syntax error" {r flushall soon}
        assert_error "ERR syntax error" {r flushall sync async}
        assert_error "ERR wrong number of arguments for 'dbsize' command" {r dbsize a}
    }

    test {SELECT keeps databases apart} {
        r flushall
        r set key zero
        assert_equal {status OK} [r -typed select 9]
        assert_equal {} [r get key]
        r set key nine
        r select 0
        assert_equal zero [r get key]
        assert_equal 1 [r dbsize]
        r select 9
        assert_equal nine [r get key]
        r flushdb
        assert_equal 0 [r dbsize]
        r select 0
        assert_equal 1 [r dbsize]
        r select 9
        r set key nine
        r flushall
        assert_equal 0 [r dbsize]
        r select 0
        assert_equal 0 [r dbsize]
    }

    test {SELECT refuses invalid databases and keeps the current one} {
        r set key here
        foreach index {16 -1 100000} {
            assert_error "ERR DB index is out of range" {r select $index}
        }
        foreach index {a 1.5 {} 99999999999999999999 " 1"} {
            assert_error "ERR value is not an integer or out of range" {r select $index}
        }
        assert_equal here [r get key]
        assert_error "ERR wrong number of arguments for 'select' command" {r select}
    }

    test {each connection has a database of its own} {
        set other [connect]
        $other select 3
        $other set mine 1
        assert_equal 0 [r exists mine]
        assert_equal 1 [$other exists mine]
        $other flushdb
        $other -close
    }

    test {large values are returned unchanged} {
        foreach size {100000 1048576 16777216} {
            set size [scaled $size]
            set value [string repeat "0123456789abcdef" [expr {$size / 16}]]
            assert_equal OK [r set big $value]
            assert {[r get big] eq $value} "$size bytes"
        }
        assert_equal 1 [r del big]
    }

    test {a random mix of SET, GET, DEL agrees with a dict} {
        r flushall
        set model [dict create]
        for {set i 0} {$i < [scaled 5000]} {incr i} {
            set key key:[random_below 300]
            switch [random_below 3] {
                0 {
                    set value [string repeat v [random_below 300]]$i
                    r set $key $value
                    dict set model $key $value
                }
                1 {assert_equal [dict exists $model $key] [r del $key]; dict unset model $key}
                2 {assert_equal [expr {[dict exists $model $key] ? [dict get $model $key] : {}}] [r get $key]}
            }
        }
        assert_equal [dict size $model] [r dbsize]
        dict for {key value} $model {assert_equal $value [r get $key]}
    }
}
