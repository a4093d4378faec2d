# SPDX-License-Identifier: BSD-3-Clause
#
# activedefrag: it begins when there is something to win, counts what it moves, and loses nothing.

start_server {tags {defrag} overrides {save "" enable-debug-command yes}} {
    proc churn {count} {
        r flushall sync
        r debug populate $count key 100
        set names {}
        for {set i 0} {$i < $count} {incr i} {
            if {$i % 10} {lappend names key:$i}
        }
        for {set i 0} {$i < [llength $names]} {incr i 1000} {r del {*}[lrange $names $i $i+999]}
    }

    test {off, it does nothing} {
        r config resetstat
        churn 20000
        assert_equal {0 0 0} [list [info_field active_defrag_running] [info_field active_defrag_hits] \
            [info_field total_active_defrag_time]]
    }

    test {on, it moves keys out of sparse slabs and comes to an end} {
        r config set active-defrag-ignore-bytes 1 active-defrag-threshold-lower 1 active-defrag-cycle-max 75
        assert_equal OK [r config set activedefrag yes]
        # (the care that is always taken may win the race for one fill)
        set count [scaled 60000]
        set fills [expr {$count == 60000 ? 60 : 2}]
        for {set fill 0} {$fill < $fills && [info_field active_defrag_hits] == 0} {incr fill} {
            r debug pause-cron 1
            churn $count
            r debug pause-cron 0
            catch {wait_for_condition 20 20 {[info_field active_defrag_hits] > 0}}
        }
        # (slow builds have so few keys that the other may do it all)
        if {$count == 60000} {assert {[info_field active_defrag_key_hits] > 0}}
        wait_for_condition 500 20 {[info_field active_defrag_running] == 0}
        for {set i 0} {$i < $count} {incr i 10} {assert_match value:$i* [r get key:$i]}
        assert_equal [expr {$count / 10}] [r dbsize]
    }

    test {the threshold keeps it quiet} {
        r config set active-defrag-ignore-bytes 1gb
        wait_for_condition 500 20 {[info_field active_defrag_running] == 0}
        r config resetstat
        churn 20000
        assert_equal {0 0} [list [info_field active_defrag_running] [info_field active_defrag_hits]]
        r config set activedefrag no
    }
}
