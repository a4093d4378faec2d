# SPDX-License-Identifier: BSD-3-Clause
#
# A cluster of simulated nodes in the process of the test, for tests of the cluster manager. Nodes share one table of slot
# owners, so a change is known to all at once. What was requested is recorded.
#
#   fake_cluster 3 1                  three primaries with equal ranges of slots, a replica of each
#   fake_nodes 4                      nodes that know nobody
#   fake_port 0                       the port of node 0;  fake_id 0: its id
#   fake_set 0 slot name value        a key of node 0; fake_keys 0 slot: names of its keys in the slot; fake_value
#   fake_slot 5                       the node that owns a slot, "" if none does; fake_own 5 0, fake_disown 5
#   fake_open 0 migrating 5 1         opens slot 5 in node 0, towards node 1; fake_state 0 5: "", "migrating 1", "importing 1"
#   fake_plain 3                      node 3 is not in cluster mode
#   fake_fail 0 {CLUSTER SETSLOT *} "ERR no" ?count?   node 0 replies with this error to requests that match
#   fake_looks 10                     atomic moves end after so many looks at them
#   fake_requests ?pattern?           recorded requests, each "node word word ..."
#   fake_run input word ...           runs valkey-cli --cluster with these words: {status output}
#   fake_end

# The table of owners is one list, so that a reply of CLUSTER NODES is built in one pass; keys are a dict per node and slot.
namespace eval fake {
    variable nodes 0 owners {} ranges {}
    variable state
    variable keys
    ::array set state {}
    ::array set keys {}
}

proc fake_nodes {count} {
    fake_end
    set fake::nodes $count
    array set fake::state {requests {} failures {} jobs {} looks 1}
    set fake::owners [lrepeat 16384 ""]
    set fake::ranges {}
    for {set i 0} {$i < $count} {incr i} {
        set channel [socket -server [list fake::accept $i] -myaddr 127.0.0.1 0]
        set fake::state(listen,$i) $channel
        set fake::state(port,$i) [lindex [fconfigure $channel -sockname] 2]
        set fake::state(id,$i) [string repeat [format %x [expr {$i + 1}]] 40]
        set fake::state(primary,$i) -
        set fake::state(known,$i) $i
        set fake::state(alone,$i) 1
    }
}

proc fake_cluster {primaries replicas} {
    fake_nodes [expr {$primaries * (1 + $replicas)}]
    for {set i 0} {$i < $primaries} {incr i} {
        set first [expr {16384 * $i / $primaries}]
        set last [expr {16384 * ($i + 1) / $primaries - 1}]
        for {set slot $first} {$slot <= $last} {incr slot} {fake_own $slot $i}
    }
    for {set i 0} {$i < $fake::nodes} {incr i} {
        set fake::state(alone,$i) 0
        if {$i >= $primaries} {set fake::state(primary,$i) [expr {$i % $primaries}]}
    }
}

proc fake_end {} {
    foreach {name channel} [concat [array get fake::state listen,*] [array get fake::state client,*]] {catch {close $channel}}
    array unset fake::state
    array unset fake::keys
    set fake::nodes 0
}

proc fake_port {node} {return $fake::state(port,$node)}
proc fake_address {node} {return 127.0.0.1:$fake::state(port,$node)}
proc fake_id {node} {return $fake::state(id,$node)}
proc fake_slot {slot} {return [lindex $fake::owners $slot]}
proc fake_own {slot node} {
    lset fake::owners $slot $node
    set fake::ranges {}
}
proc fake_disown {slot} {fake_own $slot ""}
proc fake_set {node slot name value} {dict set fake::keys($node,$slot) $name $value}
proc fake_keys {node slot} {
    if {![info exists fake::keys($node,$slot)]} {return {}}
    return [lsort [dict keys $fake::keys($node,$slot)]]
}
proc fake_value {node slot name} {return [dict get $fake::keys($node,$slot) $name]}
proc fake_state {node slot} {expr {[info exists fake::state(open,$node,$slot)] ? $fake::state(open,$node,$slot) : ""}}
proc fake_open {node direction slot peer} {set fake::state(open,$node,$slot) [list $direction $peer]}
proc fake_fail {node pattern error {count -1}} {lappend fake::state(failures) [list $node $pattern $error $count]}
proc fake_requests {{pattern *}} {lsearch -all -inline $fake::state(requests) $pattern}
proc fake_index {id} {
    for {set i 0} {$i < $fake::nodes} {incr i} {if {$fake::state(id,$i) eq $id} {return $i}}
    return ""
}
proc fake_plain {node} {
    set fake::state(plain,$node) 1
    set fake::state(alone,$node) 1
}
# The node does not accept connections any more.
proc fake_kill {node} {close $fake::state(listen,$node); unset fake::state(listen,$node)}

proc fake_run {input args} {
    set tool [file join [file dirname $::binary] valkey-cli]
    set ::env(TERM) dumb
    set channel [open |[list $tool --cluster {*}$args 2>@1] r+]
    fconfigure $channel -blocking 0 -translation binary
    puts -nonewline $channel $input
    flush $channel
    chan close $channel write
    set fake::state(output) ""
    set fake::state(ended) 0
    set timer [after 20000 {set fake::state(ended) late}]
    fileevent $channel readable [list fake::collect $channel]
    vwait fake::state(ended)
    after cancel $timer
    if {$fake::state(ended) eq "late"} {fail "valkey-cli did not end: $fake::state(output)"}
    fconfigure $channel -blocking 1
    set status 0
    if {[catch {close $channel} message options]} {
        set code [dict get $options -errorcode]
        if {[lindex $code 0] ne "CHILDSTATUS"} {fail "valkey-cli ended by $code: $fake::state(output)"}
        set status [lindex $code 2]
    }
    return [list $status $fake::state(output)]
}

proc fake::collect {channel} {
    variable state
    append state(output) [read $channel]
    if {[eof $channel]} {
        fileevent $channel readable {}
        set state(ended) 1
    }
}

# ---- requests

proc fake::accept {node channel host port} {
    variable state
    fconfigure $channel -translation binary -blocking 0 -buffering full
    set state(client,$channel) $channel
    set state(buffer,$channel) ""
    fileevent $channel readable [list fake::readable $node $channel]
}

proc fake::readable {node channel} {
    variable state
    if {[catch {read $channel} bytes] || ($bytes eq "" && [eof $channel])} {
        close $channel
        unset -nocomplain state(client,$channel) state(buffer,$channel)
        return
    }
    append state(buffer,$channel) $bytes
    while {[set words [fake::take $channel]] ne ""} {
        puts -nonewline $channel [fake::answer $node $words]
    }
    flush $channel
}

# Takes a whole request from the buffer; "" if there is none.
proc fake::take {channel} {
    variable state
    upvar 0 state(buffer,$channel) buffer
    if {[string match "SYNC\r\n*" $buffer]} {
        set buffer [string range $buffer 6 end]
        return SYNC
    }
    if {![regexp {^\*(\d+)\r\n} $buffer head count]} {return ""}
    set at [string length $head]
    set words {}
    for {set i 0} {$i < $count} {incr i} {
        if {![regexp -start $at {\A\$(\d+)\r\n} $buffer head len]} {return ""}
        incr at [string length $head]
        if {[string length $buffer] < $at + $len + 2} {return ""}
        lappend words [string range $buffer $at [expr {$at + $len - 1}]]
        incr at [expr {$len + 2}]
    }
    set buffer [string range $buffer $at end]
    return $words
}

proc fake::bulk {text} {return "\$[string length $text]\r\n$text\r\n"}
proc fake::array {items} {
    set out "*[llength $items]\r\n"
    foreach item $items {append out [bulk $item]}
    return $out
}

proc fake::answer {node words} {
    variable state
    lappend state(requests) "$node $words"
    for {set i 0} {$i < [llength $state(failures)]} {incr i} {
        lassign [lindex $state(failures) $i] failing pattern error count
        if {$failing ne $node || ![string match -nocase $pattern $words] || $count == 0} continue
        lset state(failures) $i 3 [expr {$count - 1}]
        return "-$error\r\n"
    }
    set name [string tolower [lindex $words 0]]
    if {$name eq "cluster"} {
        set name cluster_[string tolower [lindex $words 1]]
        set words [lrange $words 1 end]
    }
    if {[info commands ::fake::do_$name] eq ""} {return "-ERR unknown command '$name', with args beginning with: \r\n"}
    if {[catch {do_$name $node {*}[lrange $words 1 end]} reply]} {return "-ERR error of the simulation: [string map {\r { } \n { }} $reply]\r\n"}
    return $reply
}

proc fake::do_info {node args} {
    variable state
    return [bulk "# Cluster\r\ncluster_enabled:[expr {![info exists state(plain,$node)]}]\r\n"]
}
# COMMAND INFO name: all nodes after fake_whole know the commands of atomic slot migration.
proc fake::do_command {node word name} {
    variable state
    return [expr {[info exists state(whole)] ? "*1\r\n*1\r\n[bulk $name]" : "*1\r\n*-1\r\n"}]
}
proc fake::do_auth {node args} {return "+OK\r\n"}
# All keys at the second call, so that there are two.
proc fake::do_scan {node cursor args} {
    variable keys
    if {$cursor == 0} {return "*2\r\n[bulk 7]*0\r\n"}
    set names {}
    foreach {name values} [::array get keys $node,*] {lappend names {*}[dict keys $values]}
    return "*2\r\n[bulk 0][fake::array [lsort $names]]"
}
proc fake::do_ping {node args} {return "+PONG\r\n"}
proc fake::do_dbsize {node} {
    variable keys
    set count 0
    foreach {name values} [::array get keys $node,*] {incr count [dict size $values]}
    return ":$count\r\n"
}
proc fake::do_config {node verb {name ""} args} {
    if {$verb eq "GET"} {return [fake::array [list $name 1]]}
    return "+OK\r\n"
}
proc fake::do_replconf {node args} {return "+OK\r\n"}
proc fake::do_sync {node} {return [string range [bulk "RDB of node $node"] 0 end-2]}
proc fake::do_function {node verb args} {
    if {$verb eq "DUMP"} {return [bulk payload]}
    if {$verb eq "LIST"} {return "*0\r\n"}
    return "+OK\r\n"
}

# The ranges of a node as CLUSTER NODES writes them.
proc fake::ranges_of {node} {
    variable owners
    variable ranges
    if {$ranges eq ""} {
        set first 0
        set last 0
        foreach owner [concat $owners {{}}] {
            if {$last > 0 && $owner ne $previous} {
                set range [expr {$last - 1 > $first ? "$first-[expr {$last - 1}]" : $first}]
                if {$previous ne ""} {dict lappend ranges $previous $range}
                set first $last
            }
            set previous $owner
            incr last
        }
        # The last slot ends a range, too.
        if {$previous ne ""} {error "the list of owners is too long"}
        dict set ranges none {}
    }
    return [expr {[dict exists $ranges $node] ? [dict get $ranges $node] : {}}]
}

proc fake::line {asked node} {
    variable state
    variable nodes
    set replica [expr {$state(primary,$node) ne "-"}]
    set flags [expr {$replica ? "slave" : "master"}]
    if {$asked == $node} {set flags myself,$flags}
    set primary [expr {$replica ? $state(id,$state(primary,$node)) : "-"}]
    set out "$state(id,$node) 127.0.0.1:$state(port,$node)@$state(port,$node) $flags $primary 0 0 $node connected"
    foreach range [ranges_of $node] {append out " $range"}
    if {$asked == $node} {
        foreach entry [lsort [::array names state open,$node,*]] {
            set slot [lindex [split $entry ,] 2]
            lassign $state($entry) direction peer
            append out " \[$slot-[expr {$direction eq "migrating" ? ">" : "<"}]-$state(id,$peer)\]"
        }
    }
    return $out\n
}

proc fake::do_cluster_nodes {node} {
    variable state
    variable nodes
    set out ""
    for {set i 0} {$i < $nodes} {incr i} {
        if {$i != $node && ($state(alone,$node) || $state(alone,$i))} continue
        append out [line $node $i]
    }
    return [bulk $out]
}

proc fake::do_cluster_countkeysinslot {node slot} {return ":[llength [fake_keys $node $slot]]\r\n"}
proc fake::do_cluster_getkeysinslot {node slot count} {return [fake::array [lrange [fake_keys $node $slot] 0 $count-1]]}
proc fake::do_cluster_addslots {node args} {
    foreach slot $args {
        if {[fake_slot $slot] ne ""} {return "-ERR Slot $slot is already busy\r\n"}
        fake_own $slot $node
    }
    return "+OK\r\n"
}
proc fake::do_cluster_addslotsrange {node first last} {
    for {set slot $first} {$slot <= $last} {incr slot} {lappend slots $slot}
    return [do_cluster_addslots $node {*}$slots]
}
proc fake::do_cluster_delslots {node slot} {
    variable state
    set owner [fake_slot $slot]
    if {$owner eq "" || ($owner ne $node && [info exists state(listen,$owner)])} {return "-ERR Slot $slot is already unassigned\r\n"}
    fake_disown $slot
    return "+OK\r\n"
}
proc fake::do_cluster_set-config-epoch {node epoch} {return "+OK\r\n"}
proc fake::do_cluster_bumpepoch {node} {return "+BUMPED 9\r\n"}
proc fake::do_cluster_meet {node host port args} {
    variable state
    variable nodes
    set state(alone,$node) 0
    for {set i 0} {$i < $nodes} {incr i} {if {$state(port,$i) == $port} {set state(alone,$i) 0}}
    return "+OK\r\n"
}
proc fake::do_cluster_replicate {node id} {
    variable state
    set state(primary,$node) [fake_index $id]
    return "+OK\r\n"
}
proc fake::do_cluster_forget {node id} {return "+OK\r\n"}
proc fake::do_cluster_reset {node mode} {
    variable state
    set state(alone,$node) 1
    set state(primary,$node) -
    return "+OK\r\n"
}

proc fake::do_cluster_setslot {node slot verb {id ""}} {
    variable state
    variable keys
    set peer [fake_index $id]
    switch -nocase $verb {
        STABLE {unset -nocomplain state(open,$node,$slot)}
        IMPORTING {
            if {[fake_slot $slot] eq $node} {return "-ERR I'm already the owner of hash slot $slot\r\n"}
            set state(open,$node,$slot) [list importing $peer]
        }
        MIGRATING {
            if {[fake_slot $slot] ne $node} {return "-ERR I'm not the owner of hash slot $slot\r\n"}
            set state(open,$node,$slot) [list migrating $peer]
        }
        NODE {
            if {[fake_slot $slot] eq $node && $peer ne $node && [llength [fake_keys $node $slot]]} {
                return "-ERR Can't assign hashslot $slot to a different node while I still hold keys for this hash slot.\r\n"
            }
            # A node that loses a slot deletes its keys.
            set old [fake_slot $slot]
            if {$old ne "" && $old ne $peer} {unset -nocomplain keys($old,$slot)}
            fake_own $slot $peer
            unset -nocomplain state(open,$node,$slot)
        }
    }
    return "+OK\r\n"
}

proc fake::do_migrate {node host port key db timeout args} {
    variable state
    variable keys
    for {set target 0} {$state(port,$target) != $port} {incr target} {}
    set replace [expr {"REPLACE" in $args}]
    set found 0
    foreach name [expr {$key ne "" ? [list $key] : [lrange $args [lsearch -exact $args KEYS]+1 end]}] {
        foreach entry [::array names keys $node,*] {
            if {![dict exists $keys($entry) $name]} continue
            set slot [lindex [split $entry ,] 1]
            if {!$replace && $name in [fake_keys $target $slot]} {
                return "-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n"
            }
            fake_set $target $slot $name [dict get $keys($entry) $name]
            if {"COPY" ni $args} {dict unset keys($entry) $name}
            incr found
        }
    }
    return [expr {$found ? "+OK\r\n" : "+NOKEY\r\n"}]
}

proc fake::do_debug {node verb args} {
    variable keys
    set digests {}
    foreach name $args {
        set digest [string repeat 0 40]
        foreach {entry values} [::array get keys $node,*] {
            if {[dict exists $values $name]} {set digest d[dict get $values $name]}
        }
        lappend digests $digest
    }
    return [fake::array $digests]
}

# All nodes have the commands of atomic slot migration.
proc fake_whole {} {set fake::state(whole) 1}
# Jobs end after fake_looks looks, 1 at first; meanwhile they tell how far they are.
proc fake_looks {count} {set fake::state(looks) $count}
proc fake::do_cluster_migrateslots {node verb args} {
    variable state
    set at [lsearch -exact $args NODE]
    set state(jobs) [linsert $state(jobs) 0 [list $node [lrange $args 0 $at-1] [lindex $args $at+1] 0]]
    return "+OK\r\n"
}
proc fake::do_cluster_getslotmigrations {node} {
    variable state
    set out ""
    set count 0
    for {set i 0} {$i < [llength $state(jobs)]} {incr i} {
        lassign [lindex $state(jobs) $i] source slots id looks
        if {$source != $node} continue
        set ranges {}
        foreach {first last} $slots {lappend ranges $first-$last}
        if {$looks == $state(looks)} {
            foreach {first last} $slots {
                for {set slot $first} {$slot <= $last} {incr slot} {fake_own $slot [fake_index $id]}
            }
        }
        set done [expr {$looks >= $state(looks)}]
        set job [fake::array [list slot_ranges [join $ranges] target_node $id message "" state [expr {$done ? "success" : "snapshotting"}]]]
        if {!$done} {
            regsub {^\*8} $job *12 job
            append job "[bulk keys_total]:$state(looks)\r\n[bulk keys_sent]:$looks\r\n"
        }
        append out $job
        lset state(jobs) $i 3 [expr {$looks + 1}]
        incr count
    }
    return "*$count\r\n$out"
}
