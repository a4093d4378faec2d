# SPDX-License-Identifier: BSD-3-Clause
#
# What modules are told of slots that move, and what they must be prepared for
# (tests/modules/server_events.c, calls.c).

source $::tests_dir/support/raw_replica.tcl

set path [file normalize build/modules/server_events.so]

start_cluster [list 2 2 [list tags cluster overrides [list enable-module-command yes]]] {
    test {slots do not move while a module of either side is not prepared for it} {
        foreach {with without} {0 1 1 0} {
            r -$with module load $path prepared
            r -$without module load $path
            set refused "The module events does not support atomic slot migrations. Please ensure all modules have declared support for atomic slot migration and try again"
            if {$without == 0} {
                assert_error "ERR $refused" {r cluster migrateslots slotsrange 0 0 node [cluster_id 1]}
            } else {
                set name [move 0 1 0 0]
                wait_job 0 failed $name
                assert_match "*$refused*" [job_message 0 $name]
            }
            r -$with module unload events
            r -$without module unload events
        }
    }

    test {both sides and their replicas are told of the begin and the end, by the same name} {
        foreach i {0 1 2 3} {
            r -$i module load $path prepared
            r -$i events.listen 19
        }
        r set "{06S}k" v
        set name [move 0 1 0 0 5 6]
        wait_job 0 success $name
        wait_job 1 success $name
        assert_equal [list "19 1 $name 2 0-0" "19 5 $name 2 0-0"] [r -0 events.log]
        assert_equal [list "19 0 $name 2 0-0" "19 4 $name 2 0-0"] [r -1 events.log]
        set seen {}
        wait_for_condition 500 20 {[llength [lappend seen {*}[r -3 events.log]]] == 2}
        assert_equal [list "19 0 $name 2 0-0" "19 4 $name 2 0-0"] $seen
        assert_equal {} [r -2 events.log]
    }

    test {a job that ends without success} {
        hold_pause 1 1
        set name [move 1 0 0 0]
        wait_job 1 waiting-to-pause $name
        r -1 cluster cancelslotmigrations
        wait_job 1 cancelled $name
        wait_job 0 failed $name
        hold_pause 1 0
        assert_equal [list "19 1 $name 1 0-0" "19 3 $name 1 0-0"] [r -1 events.log]
        assert_equal [list "19 0 $name 1 0-0" "19 2 $name 1 0-0"] [r -0 events.log]
    }
}

# Lost slots are deleted key by key for modules, and clients are told nothing of them.
start_cluster {2 0 {tags {cluster} overrides {enable-module-command yes repl-diskless-sync-delay 0 notify-keyspace-events KEA}}} {
    # Node 1 has the slot of `jobs`.
    test {keys of a lost slot: Key event, del and their jobs, each key in one unit; no messages} {
        r -1 module load [file normalize build/modules/calls.so]
        for {set i 0} {[cluster_owner_of [r -1 cluster keyslot key$i]] != 1} {incr i} {}
        set tag "{key$i}"
        set slot [r -1 cluster keyslot key$i]
        r -1 mset ${tag}a 1 ${tag}b 2
        with_node 1 {set listener [connect 3]}
        $listener -send psubscribe __key*; assert_match {psubscribe __key* 1} [$listener -push]
        with_node 1 {set s [dict get [replica_sync] socket]}
        r -1 calls.jobs 1
        r cluster setslot $slot importing [cluster_id 1]
        r cluster setslot $slot node [cluster_id 0]
        wait_for_condition 250 20 {[r -1 llen jobs] == 4}
        replica_expect $s MULTI
        replica_expect $s SELECT 0
        set keys {}
        foreach begin {1 0} {
            set request [replica_next $s]
            lappend keys [set key [lindex $request 1]]
            assert_equal [list UNLINK $key] $request
            replica_expect $s RPUSH jobs removed:$key
            replica_expect $s RPUSH jobs del:$key
            replica_expect $s EXEC
            if {$begin} {replica_expect $s MULTI}
        }
        assert_equal [list ${tag}a ${tag}b] [lsort $keys]
        # The first message is of the jobs.
        assert_equal {pmessage __key* __keyspace@0__:jobs rpush} [$listener -push]
    }

    test {CLUSTER FLUSHSLOT tells modules of each key in turn} {
        r -1 calls.jobs 0
        r -1 del jobs
        for {set i 0} {[cluster_owner_of [r -1 cluster keyslot key$i]] != 1} {incr i} {}
        r -1 mset "{key$i}a" 1 "{key$i}b" 2
        with_node 1 {set s [dict get [replica_sync] socket]}
        r -1 calls.jobs 1
        assert_equal OK [r -1 cluster flushslot [r -1 cluster keyslot key$i]]
        set jobs [r -1 lrange jobs 0 -1]
        replica_expect $s MULTI
        replica_expect $s SELECT 0
        assert_match {cluster flushslot*} [replica_next $s]
        foreach job $jobs {replica_expect $s RPUSH jobs $job}
        foreach {removed del} $jobs {assert_equal [string map {removed del} $removed] $del}
        assert_equal 4 [llength $jobs]
    }
}
