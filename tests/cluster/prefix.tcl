# SPDX-License-Identifier: BSD-3-Clause
#
# DELPREFIX and COUNTPREFIX in a cluster: slots, redirects, slots that move.

start_cluster {2 0 {tags {cluster}}} {
    test {in a cluster a prefix with a hash tag is of one slot, and redirected like a key} {
        set owner [expr {[catch {r -0 set {{tag}1} 1}] ? 1 : 0}]
        set other [expr {1 - $owner}]
        for {set i 0} {$i < 100} {incr i} {r -$owner set "{tag}$i" $i}
        assert_error "MOVED *" {r -$other delprefix {{tag}}}
        assert_error "MOVED *" {r -$other countprefix {{tag}}}
        assert_equal 100 [r -$owner countprefix {{tag}}]
        assert_equal 11 [r -$owner countprefix {{tag}1}]
        assert_equal 11 [r -$owner delprefix {{tag}1}]
        assert_equal 89 [r -$owner delprefix {{tag}}]
    }

    test {in a cluster a prefix without one is of the keys of the node} {
        for {set i 0} {$i < 200} {incr i} {
            if {[catch {r -0 set k:$i $i}]} {r -1 set k:$i $i}
        }
        set counts [list [r -0 countprefix k:] [r -1 countprefix k:]]
        assert_equal 200 [tcl::mathop::+ {*}$counts]
        assert {0 ni $counts}
        assert_equal [lindex $counts 0] [r -0 delprefix k:]
        assert_equal [lindex $counts 1] [r -1 countprefix k:]
        assert_equal [lindex $counts 1] [lindex [r -1 delprefix k: count 1000000] 1]
        assert_equal {0 0} [list [r -0 dbsize] [r -1 dbsize]]
    }

    test {keys that are deleted while their slot moves are deleted on the target, too} {
        # Keys of slot 0 and of others that node 0 keeps.
        for {set i 0} {$i < 500} {incr i} {r -0 set "{06S}$i" $i}
        set kept 0
        for {set i 0} {$i < 500} {incr i} {if {![catch {r -0 set "\{06$i\}" $i}]} {incr kept}}
        assert {$kept > 0}
        hold_pause 0 1
        set name [move 0 1 0 0]
        wait_job 0 waiting-to-pause $name
        # This prefix is of several slots: others are in between.
        assert_equal [expr {500 + $kept}] [r -0 delprefix "\{06"]
        r -0 set "{06S}last" 1
        hold_pause 0 0
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal 1 [r -1 cluster countkeysinslot 0]
        assert_equal 1 [r -1 delprefix "{06S}"]
    }

    test {a prefix in a slot that moves key by key is tried again later} {
        set name [move 1 0 0 0]
        foreach node {0 1} {wait_job $node success $name}
        r -0 set "{06S}here" 1
        r -0 cluster setslot 0 migrating [cluster_id 1]
        r -1 cluster setslot 0 importing [cluster_id 0]
        assert_error "ASK 0 *" {r -0 delprefix "{06S}"}
        r -1 asking
        assert_error "TRYAGAIN *" {r -1 delprefix "{06S}"}
        r -1 asking
        assert_error "TRYAGAIN *" {r -1 countprefix "{06S}" count 10}
        r -0 cluster setslot 0 stable
        r -1 cluster setslot 0 stable
        assert_equal 1 [r -0 delprefix "{06S}"]
    }
}
