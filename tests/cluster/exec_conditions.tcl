# SPDX-License-Identifier: BSD-3-Clause
#
# Conditions of EXEC in a cluster: their keys count for the slot of the transaction.

start_cluster {2 0 {tags {cluster}}} {
    test {EXEC is redirected by the keys of its conditions} {
        set owner [expr {[catch {r -0 set {{tag}1} 1}] ? 1 : 0}]
        set other [expr {1 - $owner}]
        r -$owner set {{tag}1} 1
        r -$other multi
        assert_error "MOVED *" {r -$other exec xx {{tag}1}}
        assert_error "ERR EXEC without MULTI" {r -$other exec xx {{tag}1}}
        r -$owner multi
        r -$owner set {{tag}2} 2
        assert_equal OK [r -$owner exec ifeq {{tag}1} 1 nx {{tag}2}]
        assert_equal 2 [r -$owner get {{tag}2}]
    }

    test {keys of conditions and of the queue must be of one slot} {
        set owner [expr {[catch {r -0 set {{tag}1} 1}] ? 1 : 0}]
        r -$owner multi
        r -$owner set {{tag}2} 3
        assert_error "CROSSSLOT *" {r -$owner exec nx elsewhere}
        r -$owner multi
        assert_error "CROSSSLOT *" {r -$owner exec nx a nx b}
        assert_error "ERR DISCARD without MULTI" {r -$owner discard}
        assert_equal 2 [r -$owner get {{tag}2}]
    }

    test {while its slot moves key by key, a condition is decided where its key is} {
        # Slot 0 is of node 0.
        r -0 set {{06S}here} 1
        r -0 cluster setslot 0 migrating [cluster_id 1]
        r -1 cluster setslot 0 importing [cluster_id 0]
        r -0 multi
        assert_equal {} [r -0 exec xx {{06S}here}]
        r -0 multi
        assert_error "ASK *" {r -0 exec xx {{06S}gone}}
        r -0 multi
        r -0 get {{06S}here}
        assert_error "TRYAGAIN *" {r -0 exec xx {{06S}gone}}
        r -0 cluster setslot 0 stable
        r -1 cluster setslot 0 stable
    }
}
