# SPDX-License-Identifier: BSD-3-Clause
#
# Modules in a cluster (tests/modules/cluster_nodes.c): nodes, messages, calls on keys of other nodes.

start_cluster [list 2 1 [list overrides [list loadmodule [list [file normalize build/modules/cluster_nodes.so]] \
    enable-module-command yes]]] {
    test {the nodes of the cluster: ids, addresses, flags, primaries} {
        set flags {}
        foreach node [r nodes.list] {
            lassign $node id ip port bits primary
            dict lappend flags $bits [list $id $primary]
            assert_equal 127.0.0.1 $ip
            assert_match "*$id 127.0.0.1:$port@*" [r cluster nodes]
        }
        assert_equal {2 3 4} [lsort [dict keys $flags]]
        assert_equal [r cluster myid] [lindex [dict get $flags 3] 0 0]
        assert_equal [r cluster myid] [lindex [dict get $flags 4] 0 1]
    }

    test {messages reach one node or all, by type, with the id of the sender} {
        set other [r -1 cluster myid]
        wait_for_condition 100 50 {[r nodes.send $other 1 hello] == 0}
        wait_for_condition 100 50 {[r -1 nodes.got] eq [list [r cluster myid] 1 hello]}
        assert_equal 0 [r -1 nodes.send all 2 all]
        wait_for_condition 100 50 {[r nodes.got] eq [list $other 2 all]}
        wait_for_condition 100 50 {[r -2 nodes.got] eq [list $other 2 all]}
        assert_equal 1 [r nodes.send 0000000000000000000000000000000000000000 1 x]
        assert_equal 0 [r nodes.send $other 3 {nobody receives it}]
        assert_equal 0 [r nodes.send $other 1 last]
        wait_for_condition 100 50 {[lindex [r -1 nodes.got] end] eq {last}}
        assert_equal 6 [llength [r -1 nodes.got]]
        assert_match {*cluster_stats_messages_module_sent:3*} [r cluster info]
    }

    test {slots of keys, and a name for each slot} {
        foreach key {foo {{tag}x} 06S} {
            lassign [r nodes.slot $key] number again none
            assert_equal [list [r cluster keyslot $key] $number 1] [list $number $again [expr {$none}]]
        }
    }

    test {a call on a key of another node is refused, one on a key of this node is not} {
        set here {}
        foreach key {a b c d e f g h} {
            if {[catch {r get $key}]} {set ::there $key} else {set here $key}
        }
        assert_equal OK [r nodes.call set $here 1]
        assert_error {ERR Attempted to access a non local key in a cluster node} {r nodes.call set $::there 1}
        assert_error {ERR Attempted to access a non local key in a cluster node} {r nodes.dry set $::there 1}
        assert_equal OK [r nodes.dry set $here 2]
        assert_equal 1 [r get $here]
    }

    test {a module may end redirects} {
        assert_error MOVED* {r get $::there}
        r nodes.forbid 4
        assert_equal {} [r get $::there]
    }

    test {the module can be unloaded: messages for it are dropped} {
        assert_equal OK [r module unload cluster_nodes]
        assert_equal 0 [r -1 nodes.send all 1 x]
        assert_equal PONG [r ping]
    }
}
