# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli --backup and --restore of a cluster: shards, moving slots, another number of shards.

source $::tests_dir/support/tools.tcl
source $::tests_dir/support/backup.tcl

# Keys of all shards, one per number.
proc fill {from to} {
    for {set n $from} {$n < $to} {incr n} {
        set key key:$n
        set node [cluster_owner_of [r cluster keyslot $key]]
        r -$node set $key value:$n
    }
}

# The sorted keys in the restored folders of all shards. Each has only those of its slots at that time.
proc restored_keys {folder} {
    set keys {}
    foreach shard [glob -directory $folder shard-*] {lappend keys {*}[with_restored $shard {$c keys *}]}
    return [lsort $keys]
}
proc expected_keys {count} {
    set keys {}
    for {set n 0} {$n < $count} {incr n} {lappend keys key:$n}
    return [lsort $keys]
}

set options {tags {cli tools cluster tls:skip needs:local} overrides {repl-diskless-sync-delay 0 enable-debug-command yes}}

start_server $options {
    start_cluster {3 3 {overrides {repl-diskless-sync-delay 0 enable-debug-command yes} tags {cli tools tls:skip needs:local}}} {
        test {backup: each shard of a cluster is copied from a replica} {
            fill 0 200
            for {set i 0} {$i < 3} {incr i} {assert_equal 1 [r -$i wait 1 5000]}
            set folder [backup_folder shards]
            cli_ok --backup $folder
            set sources {}
            set slots {}
            foreach path [glob $folder/shard-*/full-*/full.json] {
                set text [read_bytes $path]
                regexp {"source": "[^"]*:(\d+)"} $text -> port
                regexp {"slots": "([^"]*)"} $text -> range
                lappend sources $port
                lappend slots $range
            }
            assert_equal [lsort [list [srv -3 port] [srv -4 port] [srv -5 port]]] [lsort $sources]
            assert_equal {0-5460 10922-16383 5461-10921} [lsort $slots]
            assert_match {*Each shard is consistent for itself*} [cli_ok --restore $folder $folder.out]
            assert_equal [expected_keys 200] [restored_keys $folder.out]
            assert_match {1 *a cluster needs a folder*} [cli --backup -]
        }

        test {backup: a cluster is brought into a server, and into another cluster's shards by slot} {
            set folder [backup_folder shards]
            file delete -force $folder
            cli_ok --backup $folder {*}[compress_words]
            cli_ok --restore $folder --into [srv -6 host]:[srv -6 port]
            assert_equal 200 [r -6 dbsize]
            for {set i 0} {$i < 3} {incr i} {r -$i flushall}
            cli_ok --restore $folder --into [srv host]:[srv port]
            assert_equal 200 [expr {[r -0 dbsize] + [r -1 dbsize] + [r -2 dbsize]}]
            assert_equal value:7 [r -[cluster_owner_of [r cluster keyslot key:7]] get key:7]
        }

        test {backup: a cluster that lacks a slot is no target} {
            set folder [backup_folder shards]
            r cluster delslots 0
            assert_match {3 {*the cluster does not serve all slots*}} [cli --restore $folder --into [srv host]:[srv port] --keys x]
            r cluster addslots 0
            cluster_wait_ok
            cluster_wait_agree
        }

        test {backup: no full copy while slots move, unless it may wait} {
            set folder [backup_folder moving]
            r cluster setslot 1 migrating [cluster_id 1]
            lassign [cli --backup $folder] status output
            assert_equal 2 $status
            assert_match {*slot 1 of *is being moved: no backup is made meanwhile*} $output
            set tool [file join [file dirname $::binary] valkey-cli]
            set pid [exec $tool -p [srv port] --backup $folder --wait 60 >$folder.log 2>@1 &]
            wait_follow_says $folder {*waits: slot 1 of *}
            r cluster setslot 1 stable
            wait_for_condition 400 50 {[llength [glob -nocomplain $folder/*/*/full.json]] == 3} else {
                fail [read_bytes $folder.log]
            }
            wait_for_condition 400 50 {![process_lives $pid]}
        }

        test {backup: slots that are moved during --follow keep their keys} {
            set folder [backup_folder follow]
            set pid [follow_start $folder]
            wait_for_condition 400 50 {[regexp -all {full copy of} [read_bytes $folder.log]] == 3} else {
                fail [read_bytes $folder.log]
            }
            fill 200 300
            set slots [lrange [cluster_owned 0] 0 99]
            r cluster migrateslots slotsrange [lindex $slots 0] [lindex $slots end] node [cluster_id 1]
            wait_for_condition 400 50 {[cluster_owner_of [lindex $slots 0]] == 1}
            cluster_wait_agree
            fill 300 400
            wait_follow_says $folder {*slots have moved: shard-*}
            for {set i 0} {$i < 3} {incr i} {
                regexp {master_repl_offset:(\d+)} [r -$i info replication] -> offset
                set shard [glob $folder/shard-[r -$i cluster myshardid]]
                wait_for_condition 400 50 {[listed $shard to_offset] >= $offset} else {fail [read_bytes $folder.log]}
            }
            follow_end $pid
            cli_ok --restore $folder $folder.out
            assert_equal [expected_keys 400] [restored_keys $folder.out]
            assert_match {*: intact*: intact*: intact} [cli_ok --restore $folder --verify]
        }
    }
}
