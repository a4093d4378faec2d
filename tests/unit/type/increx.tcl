# SPDX-License-Identifier: BSD-3-Clause
#
# INCREX of Valkey 9.2 and Redis 8.8: bounds, saturation, conditions, expiry, both forms of the reply, what is propagated.

proc double {text} {return [list [expr {[resp3] ? "double" : "bulk"}] $text]}

start_server {tags {string increx}} {
    test {INCREX replies the value and what was added} {
        r del n
        assert_equal {1 1} [r increx n]
        assert_equal {6 5} [r increx n byint 5]
        assert_equal {-1 -7} [r increx n BYINT -7]
        assert_equal {-1 0} [r increx n byint 0]
        assert_equal {array {{integer 1} {integer 2}}} [r -typed increx n byint 2]
        assert_equal [list array [list [double 3.5] [double 2.5]]] [r -typed increx n byfloat 2.5]
        assert_equal {3.5 0} [r increx n BYFLOAT 0]
        assert_error "ERR value is not an integer or out of range" {r increx n}
        assert_equal 3.5 [r get n]
        assert_equal {100000000000000000000 100000000000000000000} [r increx large byfloat 1e20]
    }

    test {INCREX outside of its bounds changes neither value nor expiry time} {
        r set n 8 ex 1000
        assert_equal {8 0} [r increx n byint 3 ubound 10 ex 5]
        assert_equal {8 0} [r increx n byint -3 lbound 6 persist]
        assert_equal {8 0} [r increx n byfloat 2.5 ubound 10.4 px 5]
        assert_range [r ttl n] 900 1000
        assert_equal {10 2} [r increx n byint 2 ubound 10]
        assert_equal {5 -5} [r increx n byint -5 lbound 5 ubound 10]
        assert_equal {0 0} [r increx none ubound 0]
        assert_equal {0 0} [r increx none byint -1 lbound 0]
        assert_equal 0 [r exists none]
        # The bounds of the type.
        r set n 9223372036854775807
        assert_equal {9223372036854775807 0} [r increx n]
        r set n -9223372036854775808
        assert_equal {-9223372036854775808 0} [r increx n byint -1]
        r set n 1.7e308
        assert_equal 0 [lindex [r increx n byfloat 1.7e308] 1]
    }

    test {INCREX SATURATE stops at the bound} {
        r set n 8
        assert_equal {10 2} [r increx n byint 5 ubound 10 saturate]
        assert_equal {10 0} [r increx n saturate byint 5 ubound 10 ex 100]
        assert_range [r ttl n] 90 100
        assert_equal {3 -7} [r increx n byint -50 lbound 3 saturate]
        assert_equal {20 17} [r increx n lbound 20 saturate]
        assert_equal {5 -15} [r increx n ubound 5 saturate]
        assert_equal {2.5 -2.5} [r increx n byfloat 1 ubound 2.5 saturate]
        assert_equal {7 7} [r increx created byint 9 ubound 7 saturate]
        assert_equal 7 [r getdel created]
        r set n 9223372036854775800
        assert_equal {9223372036854775807 7} [r increx n byint 100 saturate]
        r set n -9223372036854775800
        assert_equal {-9223372036854775808 -8} [r increx n byint -100 saturate]
        assert_error "ERR applied increment would overflow" {r increx n lbound 9223372036854775807 saturate}
        assert_equal -9223372036854775808 [r get n]
        r set n -1.7e308
        assert_error "ERR applied increment would be Infinity" {r increx n byfloat 1 lbound 1.7e308 saturate}
        r set n 1.7e308
        assert_match {1.7976931348623157*} [format %.17e [lindex [r increx n byfloat 1.7e308 saturate] 0]]
        assert_equal {0 0} [r increx new byint -5 lbound 0 saturate]
        assert_equal 0 [r get new]
    }

    test {INCREX NX and XX} {
        r del n
        assert_equal {0 0} [r increx n xx]
        assert_equal 0 [r exists n]
        assert_equal {1 1} [r increx n nx]
        assert_equal {1 0} [r increx n nx ex 100]
        assert_equal -1 [r ttl n]
        assert_equal {2 1} [r increx n xx ex 100]
        assert_range [r ttl n] 90 100
        assert_equal {0 0} [r increx none xx byfloat 1]
    }

    test {INCREX keeps, sets and removes the expiry time} {
        r set n 1 ex 1000
        r increx n
        assert_range [r ttl n] 900 1000
        r increx n ex 100 enx
        assert_range [r ttl n] 900 1000
        r increx n px 100000
        assert_range [r ttl n] 90 100
        r increx n persist
        assert_equal -1 [r ttl n]
        r increx n enx ex 50
        assert_range [r ttl n] 40 50
        r increx n exat [expr {[clock seconds] + 3000}]
        assert_range [r ttl n] 2900 3000
        r increx n byfloat 1 pxat [expr {[clock milliseconds] + 5000000}]
        assert_range [r ttl n] 4900 5000
        r del n
        r increx n ex 100 enx
        assert_range [r ttl n] 90 100
    }

    test {INCREX with a time in the past deletes the key, and replies} {
        r set n 5
        assert_equal {6 1} [r increx n exat 1]
        assert_equal 0 [r exists n]
        assert_equal {1 1} [r increx n pxat 1]
        assert_equal 0 [r exists n]
        r set n 5 ex 100
        assert_equal {6 1} [r increx n exat 1 enx]
        assert_equal 6 [r get n]
    }

    test {INCREX refuses bad arguments and changes nothing} {
        r set n 5
        foreach {words error} {
            {nx xx} "ERR syntax error" {foo} "ERR syntax error" {byint} "ERR syntax error" {byint 1 byint 1} "ERR syntax error"
            {byint 1 byfloat 1} "ERR syntax error" {ubound} "ERR syntax error" {ubound 1 ubound 2} "ERR syntax error"
            {saturate saturate} "ERR syntax error" {ex 1 px 1} "ERR syntax error" {ex 1 ex 1} "ERR syntax error" {ex} "ERR syntax error"
            {persist ex 1} "ERR syntax error" {persist enx} "ERR syntax error" {persist persist} "ERR syntax error" {nx nx} "ERR syntax error"
            {keepttl} "ERR syntax error"
            {enx} "ERR ENX flag requires an expiration"
            {byint x} "ERR Increment is not an integer or out of range" {byint 1.5} "ERR Increment is not an integer or out of range"
            {byint 9223372036854775808} "ERR Increment is not an integer or out of range"
            {byfloat x} "ERR Increment is not a valid float" {byfloat nan} "ERR Increment is not a valid float"
            {byfloat inf} "ERR BYFLOAT increment cannot be Infinity" {byfloat -1e400} "ERR BYFLOAT increment cannot be Infinity"
            {lbound 5 ubound 4} "ERR LBOUND can't be greater than UBOUND"
            {byfloat 1 lbound 5.5 ubound 5.4} "ERR LBOUND can't be greater than UBOUND"
            {ubound x} "ERR UBOUND is not an integer or out of range" {lbound 1.5} "ERR LBOUND is not an integer or out of range"
            {byfloat 1 lbound x} "ERR LBOUND is not a valid float" {ubound nan byfloat 1} "ERR UBOUND is not a valid float"
            {ex 0} "ERR invalid expire time in 'increx' command" {px -1} "ERR invalid expire time in 'increx' command"
            {ex 9223372036854775807} "ERR invalid expire time in 'increx' command" {ex x} "ERR value is not an integer or out of range"
        } {
            assert_error $error {r increx n {*}$words}
        }
        assert_error "ERR wrong number of arguments*" {r increx}
        assert_equal {5 -1} [list [r get n] [r ttl n]]
        r lpush list a
        assert_error "WRONGTYPE *" {r increx list}
        assert_error "WRONGTYPE *" {r increx list nx}
        r set n abc
        assert_error "ERR value is not an integer or out of range" {r increx n}
        assert_error "ERR value is not a valid float" {r increx n byfloat 1}
        r set n inf
        assert_error "ERR value cannot be Infinity" {r increx n byfloat 1}
        assert_equal {1.5 1.5} [r increx new byfloat 1.5 lbound -inf ubound inf]
    }

    test {increx-reply single: the new value, null or an error} {
        r config set increx-reply single
        r set n 9
        assert_equal {integer 10} [r -typed increx n ubound 10]
        assert_equal [double 12.5] [r -typed increx n byfloat 2.5]
        r set n 10
        assert_error "ERR increment or decrement would overflow" {r increx n ubound 10}
        assert_equal {} [r increx n nx]
        assert_equal 10 [r increx n byint 5 ubound 10 saturate]
        assert_equal 10 [r get n]
        r config set increx-reply pair
    }

    test {INCREX: events} {
        r config set notify-keyspace-events KEA
        set c [connect]
        $c -send psubscribe __keyevent@*
        $c -message
        r set n 1
        foreach words {{} {byfloat 1} {byint 1 ubound 1} {ex 100} {ex 100 enx} {persist} {persist} {nx} {exat 1} {exat 1}} {
            catch {r increx n {*}$words}
        }
        r lpush end x
        set seen {}
        while {[lindex $seen end] ne "lpush"} {lappend seen [regsub {.*:} [lindex [$c -message] 2] {}]}
        assert_equal {set incrby incrbyfloat incrby expire incrby incrby persist incrby incrby del lpush} $seen
        r config set notify-keyspace-events {}
        r del end
    }

    test {INCREX needs write permission for its key, and memory} {
        r acl setuser u reset on nopass +increx %W~w %RW~rw %R~r
        set c [connect]
        $c auth u x
        assert_equal {1 1} [$c increx rw]
        foreach key {w r other} {assert_error "NOPERM*key" {$c increx $key}}
        r config set maxmemory 1
        assert_error "OOM *" {r increx n}
        r config set maxmemory 0
        assert_equal {9.2.0 string} [list [dict get [r command docs increx] increx since] [dict get [r command docs increx] increx group]]
        assert_equal {denyoom fast write} [lsort [lindex [r command info increx] 0 2]]
        assert_equal {@fast @string @write} [lsort [lindex [r command info increx] 0 6]]
    }

    test {10,000 random steps agree with a model, also after the append only file is loaded} {
        r flushall
        r config set appendonly yes
        wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        array set model {}
        for {set i 0} {$i < [scaled 10000]} {incr i} {
            set key k[random_below 20]
            set by [expr {[random_below 41] - 20}]
            set low [expr {[random_below 60] - 50}]
            set high [expr {$low + [random_below 80]}]
            set saturates [random_below 2]
            set words [list byint $by lbound $low ubound $high]
            if {$saturates} {lappend words saturate}
            if {[random_below 3] == 0} {lappend words ex 10000}
            set before [expr {[info exists model($key)] ? $model($key) : 0}]
            set after [expr {$before + $by}]
            set taken 1
            if {$after < $low || $after > $high} {
                set taken $saturates
                set after [expr {!$saturates ? $before : $after < $low ? $low : $high}]
            }
            if {$taken} {set model($key) $after}
            assert_equal [list $after [expr {$after - $before}]] [r increx $key {*}$words]
        }
        foreach round {1 2} {
            foreach key [array names model] {assert_equal $model($key) [r get $key]}
            assert_equal [array size model] [r dbsize]
            set digest [r debug digest]
            if {$round == 1} {r debug loadaof}
            assert_equal $digest [r debug digest]
        }
        r config set appendonly no
    } {needs:debug}
}
