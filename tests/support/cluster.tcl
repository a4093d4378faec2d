# SPDX-License-Identifier: BSD-3-Clause
#
# Clusters of servers for the tests of one file, and nodes that only a configuration file knows.
#
#   start_cluster {3 3 {overrides {..} tags {..}}} {..}   three primaries with a replica each; node i is `r -i`, `srv -i`,
#                                                     the first ones are the primaries
#   cluster_field ?-i? name     a field of CLUSTER INFO
#   cluster_id i                the id of node i
#   cluster_line ?-i? id        the line of a node in CLUSTER NODES, as a list; cluster_flags ?-i? id: its flags
#   cluster_wait_ok ?nodes?     until these nodes (default: all) report the state ok
#   cluster_wait_flag ?-i? id flag   until node i shows the flag for the node with that id
#   cluster_wait_role i role    until node i is a master or slave, with its link up
#   with_node i {code}         calls a proc about the innermost server, as stop_server, for node i
#   cluster_wait_agree ?nodes?  until these nodes have the same owners of all slots
#   cluster_owner_of slot       the index of the node that owns a slot; cluster_owned i: the slots of node i
#   restart_as {lines}          restarts the server with a configuration file of these lines
#   node_line id port flags ?primary? ?epoch? ?slots? ?extra?   a line of a configuration file

set cluster_size 0

# ---- nodes that only a file knows

proc node_line {id port flags {primary -} {epoch 0} {slots {}} {extra {}}} {
    set shard [expr {$primary eq "-" ? $id : $primary}]
    # No port is as far above another one as the bus port of a node that is known only by name.
    set line "$id 127.0.0.1:$port@[expr {$port + 1}],,tls-port=0$extra,shard-id=$shard $flags $primary 0 1700000000000 $epoch connected"
    return [string trim "$line $slots"]
}

proc restart_as {lines} {
    stop_server
    set channel [open [srv dir]/nodes.conf w]
    puts $channel [join [concat $lines {{vars currentEpoch 9 lastVoteEpoch 0}}] \n]
    close $channel
    continue_server
}

# ---- what a node says

proc cluster_field {args} {
    set level [level_of args]
    if {![regexp "(?:^|\n)[lindex $args 0]:(\[^\r\]*)" [r -$level cluster info] all value]} {fail "no field [lindex $args 0]"}
    return $value
}

proc cluster_id {index} {return [r -$index cluster myid]}

proc cluster_line {args} {
    set level [level_of args]
    foreach line [split [r -$level cluster nodes] \n] {
        if {[lindex $line 0] eq [lindex $args 0]} {return $line}
    }
    return {}
}

proc cluster_flags {args} {
    set level [level_of args]
    return [split [lindex [cluster_line -$level {*}$args] 2] ,]
}

# ---- waiting

proc cluster_indexes {nodes} {
    if {$nodes ne ""} {return $nodes}
    for {set i 0} {$i < $::cluster_size} {incr i} {lappend nodes $i}
    return $nodes
}

proc cluster_wait_ok {{nodes {}}} {
    foreach i [cluster_indexes $nodes] {
        wait_for_condition 600 50 {[cluster_field -$i cluster_state] eq "ok"} else {
            fail "node $i is not ok: [r -$i cluster info]\n[r -$i cluster nodes]"
        }
    }
}

proc cluster_wait_flag {args} {
    set level [level_of args]
    lassign $args id flag
    wait_for_condition 600 50 {$flag in [cluster_flags -$level $id]} else {
        fail "node $level does not show $flag: [cluster_line -$level $id]"
    }
}

proc cluster_wait_role {index role} {
    wait_for_condition 600 50 {[lindex [r -$index role] 0] eq $role && ($role ne "slave" || [lindex [r -$index role] 3] eq "connected")} else {
        fail "node $index: [r -$index role]"
    }
}

# The owners of slots as a node sees them, sorted.
proc cluster_owners {index} {
    set owners {}
    foreach range [r -$index cluster slots] {lappend owners [list [lindex $range 0] [lindex $range 1] [lindex $range 2 2]]}
    return [lsort -integer -index 0 $owners]
}

# The node that owns a slot, as it says itself; the slots of a node.
proc cluster_owner_of {slot} {
    for {set i 0} {$i < $::cluster_size} {incr i} {if {$slot in [cluster_owned $i]} {return $i}}
    fail "nobody owns slot $slot"
}

proc cluster_owned {i} {
    set slots {}
    foreach range [lrange [cluster_line -$i [cluster_id $i]] 8 end] {
        if {![regexp {^(\d+)(?:-(\d+))?$} $range all first last]} continue
        if {$last eq ""} {set last $first}
        for {set slot $first} {$slot <= $last} {incr slot} {lappend slots $slot}
    }
    return $slots
}

proc cluster_wait_agree {{nodes {}}} {
    set nodes [cluster_indexes $nodes]
    wait_for_condition 600 50 {[llength [lsort -unique [lmap i $nodes {cluster_owners $i}]]] == 1} else {
        fail "the nodes do not agree: [lmap i $nodes {cluster_owners $i}]"
    }
}

# ---- starting

# What every node of a test's cluster has; the test's own overrides come after. tls-port may be "free".
set cluster_defaults {cluster-enabled yes cluster-node-timeout 2000 enable-debug-command yes}

proc start_cluster {arguments code} {
    lassign $arguments primaries replicas options
    set options [dict merge {tags {} overrides {}} $options]
    set count [expr {$primaries + $replicas}]
    set body [list cluster_run $primaries $replicas $code [uplevel 1 {info level}]]
    for {set i 0} {$i < $count} {incr i} {
        set own [dict merge $::cluster_defaults [dict get $options overrides]]
        if {![dict exists $own cluster-port]} {dict set own cluster-port [free_port]}
        if {[dict exists $own tls-port] && [dict get $own tls-port] eq "free"} {dict set own tls-port [free_port]}
        set body [list start_server [dict replace $options overrides $own] $body]
    }
    uplevel 1 $body
}

proc cluster_run {primaries replicas code level} {
    set outer $::cluster_size
    set ::cluster_size [expr {$primaries + $replicas}]
    try {
        cluster_join $primaries $replicas
        uplevel #$level $code
    } finally {
        set ::cluster_size $outer
    }
}

# Epochs and slots first: then nobody has to give anything up.
proc cluster_join {primaries replicas} {
    set count [expr {$primaries + $replicas}]
    for {set i 0} {$i < $primaries} {incr i} {
        r -$i cluster set-config-epoch [expr {$i + 1}]
        r -$i cluster addslotsrange [expr {16384 * $i / $primaries}] [expr {16384 * ($i + 1) / $primaries - 1}]
    }
    for {set i 1} {$i < $count} {incr i} {cluster_meet 0 $i}
    for {set i 0} {$i < $count} {incr i} {
        wait_for_condition 600 50 {[cluster_field -$i cluster_known_nodes] == $count && ![string match *handshake* [r -$i cluster nodes]]} else {
            fail "node $i does not know all nodes: [r -$i cluster nodes]"
        }
    }
    for {set i $primaries} {$i < $count} {incr i} {
        set primary [expr {($i - $primaries) % $primaries}]
        r -$i cluster replicate [cluster_id $primary]
    }
    for {set i $primaries} {$i < $count} {incr i} {
        cluster_wait_role $i slave
        for {set k 0} {$k < $count} {incr k} {cluster_wait_flag -$k [cluster_id $i] slave}
    }
    cluster_wait_ok
    cluster_wait_agree
}

proc with_node {i code} {
    set all $::servers
    set ::servers [list [lindex $all $i]]
    try {uplevel 1 $code} finally {set ::servers $all}
}

# Node `from` meets node `to`, at the address `host` if it is not that of the tests.
proc cluster_meet {from to {host {}}} {
    set port [srv -$to port]
    if {[lindex [r -$to config get tls-cluster] 1] eq "yes"} {set port [lindex [r -$to config get tls-port] 1]}
    r -$from cluster meet [expr {$host eq "" ? [srv -$to host] : $host}] $port [lindex [r -$to config get cluster-port] 1]
}
