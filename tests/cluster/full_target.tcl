# SPDX-License-Identifier: BSD-3-Clause
#
# Slots and keys are moved to a node although clients have all of its places.

start_cluster {2 0 {tags {cluster tls:skip} overrides {maxclients 24}}} {
    test {MIGRATESLOTS and MIGRATE reach a node whose clients have all places} {
        r set "{06S}a" 1
        r set "{06S}b" 2
        set refused 0
        set ::clients {}
        while {!$refused && [llength $::clients] < 40} {
            set c [respConnect [srv -1 host] [srv -1 port] 2]
            lappend ::clients $c
            set refused [catch {$c cluster myid} error]
        }
        assert_equal "ERR max number of clients + cluster connections reached" $error
        assert_equal 0 [r cluster keyslot "{06S}a"]
        assert_equal OK [r cluster migrateslots slotsrange 0 0 node [cluster_id 1]]
        wait_for_condition 1000 20 {[string match *success* [r cluster getslotmigrations]]} else {
            fail [r cluster getslotmigrations]
        }
        assert_equal 2 [r -1 cluster countkeysinslot 0]
        # The next slot, key by key.
        r set "{d9C}c" 3
        assert_equal 1 [r cluster keyslot "{d9C}c"]
        r -1 cluster setslot 1 importing [cluster_id 0]
        r cluster setslot 1 migrating [cluster_id 1]
        assert_equal OK [r migrate [srv -1 host] [srv -1 port] "{d9C}c" 0 5000]
        assert_equal 1 [r -1 cluster countkeysinslot 1]
        foreach c $::clients {$c -close}
    }
}
