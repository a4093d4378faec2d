# SPDX-License-Identifier: BSD-3-Clause
#
# Jobs of slot migration, for tests of clusters (cluster.tcl).
#
#   move from to first last ...      begins to move the slots from node `from` to node `to`; its name
#   job_of i ?name?                  a job of node i as a dict, the newest one without a name; {} if there is none
#   wait_job i state ?name?          until the job has the state
#   wait_no_job i name               until the job is in no active state
#   hold_pause i on, hold_takeover i on   DEBUG SLOTMIGRATION
#   job_message i name

proc job_of {index {name {}}} {
    foreach job [r -$index cluster getslotmigrations] {
        if {$name eq {} || [dict get $job name] eq $name} {return $job}
    }
    return {}
}

proc job_state {index {name {}}} {
    set job [job_of $index $name]
    return [expr {$job eq {} ? "" : [dict get $job state]}]
}

proc wait_job {index state {name {}}} {
    wait_for_condition 1000 20 {[job_state $index $name] eq $state} else {
        fail "node $index is not in state $state: [job_of $index $name]"
    }
}

proc job_message {index name} {return [dict get [job_of $index $name] message]}

proc move {from to args} {
    assert_equal OK [r -$from cluster migrateslots slotsrange {*}$args node [cluster_id $to]]
    return [dict get [job_of $from] name]
}

proc hold_pause {index on} {assert_equal OK [r -$index debug slotmigration prevent-pause $on]}
proc hold_takeover {index on} {assert_equal OK [r -$index debug slotmigration prevent-failover $on]}
