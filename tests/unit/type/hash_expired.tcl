# SPDX-License-Identifier: BSD-3-Clause
#
# Hash fields that have expired but are still stored: what commands on them propagate and count.

source $::tests_dir/support/raw_replica.tcl

start_server {tags {hash} overrides {repl-diskless-sync-delay 0}} {
    r debug set-active-expire 0

    # A hash of fields `stays` and those given, which have expired.
    proc expired_fields {args} {
        r del h
        r hset h stays 1
        foreach field $args {r hset h $field old}
        r hpexpire h 1 fields [llength $args] {*}$args
        wait_for_condition 200 5 {![r hexists h [lindex $args end]]}
    }

    # The requests that `code` propagates, without PING and SELECT.
    proc propagated {code} {
        set s [dict get [replica_sync] socket]
        uplevel 1 $code
        r set end 1
        set requests {}
        while {[set words [replica_next $s]] ne "set end 1"} {
            if {[string tolower [lindex $words 0]] ni {select ping}} {lappend requests $words}
        }
        raw_close $s
        return $requests
    }

    test {HSETNX on an expired field is propagated as HSET} {
        expired_fields f
        assert_equal {{HSET h f new}} [propagated {r hsetnx h f new}]
        assert_equal {{hsetnx h other new}} [propagated {r hsetnx h other new}]
    }

    test {HSETEX KEEPTTL on expired fields propagates HDEL of them before, in one unit} {
        expired_fields a b
        assert_equal {MULTI {HDEL h a b} {HSETEX h KEEPTTL FIELDS 3 a 1 c 2 b 3} EXEC} \
            [propagated {r hsetex h KEEPTTL FIELDS 3 a 1 c 2 b 3}]
        assert_equal {-1 -1} [r httl h fields 2 a b]
        expired_fields a
        assert_equal {MULTI {HDEL h a} {HSETEX h KEEPTTL FIELDS 1 a 1} EXEC} \
            [propagated {r hsetex h FNX KEEPTTL FIELDS 1 a 1}]
    }

    test {HSETEX with a time that has passed also deletes expired fields} {
        expired_fields a b
        assert_equal {{HDEL h a b}} [propagated {r hsetex h EXAT 1 FIELDS 3 a 1 c 2 b 3}]
        assert_equal 1 [r hlen h]
    }

    test {expired_fields counts fields that a command removes because of their time} {
        expired_fields a b c d
        r config resetstat
        foreach {request count} {
            {hset h a 1} 1
            {hsetnx h b 1} 2
            {hsetex h keepttl fields 1 c 1} 3
            {hincrby h d 1} 4
            {hexpireat h 1 fields 2 a none} 5
            {hgetex h exat 1 fields 2 b none} 6
            {hsetex h exat 1 fields 2 c 1 new 1} 8
            {hsetex missing exat 1 fields 2 c 1 new 1} 10
            {hdel h d} 10
        } {
            r {*}$request
            assert_equal $count [info_field expired_fields] $request
        }
    }

    test {HSETEX with a time that has passed on a missing key does not touch it} {
        r del h
        set c [connect]
        $c watch h
        r hsetex h exat 1 fields 1 f v
        $c multi
        assert_equal {} [$c exec]
        r hset h f v
        $c watch h
        r ltrim none 0 -1
        r rpush l a
        $c watch l
        r ltrim l 0 -1
        $c multi
        $c ping
        assert_equal PONG [$c exec]
    }

    test {HSETEX with a time that has passed counts as a change what it removes} {
        expired_fields a
        r hset h b 1
        set before [info_field rdb_changes_since_last_save]
        r hsetex missing exat 1 fields 1 x 1
        assert_equal $before [info_field rdb_changes_since_last_save]
        r hsetex h exat 1 fields 3 a 1 b 1 c 1
        assert_equal 2 [expr {[info_field rdb_changes_since_last_save] - $before}]
    }
}
