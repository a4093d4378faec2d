# SPDX-License-Identifier: BSD-3-Clause
#
# A primary with replicas, and Sentinels that watch it under the name mym.
#
#   start_watched {2 3 {overrides {..} tags {..} sentinel {..} set {..} quorum 2}} {..}
#                           a primary, two replicas and three Sentinels. Server i is `r -i`, the primary first;
#                           `sentinel`: overrides of the Sentinels, `set`: options of SENTINEL SET
#   sentinels               the indexes of the Sentinels; sentinel_first: of the first
#   sentinel_primary i      the port of the primary as Sentinel i knows it
#   sentinel_field i name ?primary?   a field of SENTINEL PRIMARY
#   sentinel_wait_known     until all Sentinels know all replicas and each other
#   sentinel_wait_primary port   until all Sentinels know that primary
#   sentinel_events i       the names of the events that Sentinel i has logged, in order
#   sentinel_kill i         ends server i with SIGKILL
#   watched_role i          the first four fields of ROLE of server i, whose clients a failover may have disconnected

set watched_servers 0
set watched_sentinels 0

proc start_watched {arguments code} {
    lassign $arguments replicas sentinels options
    set options [dict merge {tags {} overrides {} sentinel {} set {} quorum 2} $options]
    set tags [concat {sentinel tls:skip} [dict get $options tags]]
    set body [list watched_run $replicas $sentinels $options $code [uplevel 1 {info level}]]
    for {set i 0} {$i <= $replicas + $sentinels} {incr i} {
        set server [list tags $tags overrides [dict get $options overrides] crash ok]
        if {$i > $replicas} {
            set own [dict merge [list port [free_port]] [dict get $options sentinel]]
            set server [list tags $tags overrides $own args --sentinel crash ok]
        }
        set body [list start_server $server $body]
    }
    uplevel 1 $body
}

proc watched_run {replicas sentinels options code level} {
    set outer [list $::watched_servers $::watched_sentinels]
    set ::watched_servers [expr {$replicas + 1}]
    set ::watched_sentinels $sentinels
    try {
        for {set i 1} {$i <= $replicas} {incr i} {r -$i replicaof [srv host] [srv port]}
        for {set i 1} {$i <= $replicas} {incr i} {
            wait_for_condition 400 25 {[string match "*master_link_status:up*" [r -$i info replication]]} else {
                fail "replica $i has no link"
            }
        }
        foreach i [sentinels] {
            r -$i sentinel monitor mym [srv host] [srv port] [dict get $options quorum]
            r -$i sentinel set mym down-after-milliseconds 2000 failover-timeout 10000 {*}[dict get $options set]
            r -$i sentinel debug publish-period 500 info-period 1000 tilt-trigger 30000
        }
        sentinel_wait_known
        uplevel #$level $code
    } finally {
        lassign $outer ::watched_servers ::watched_sentinels
    }
}

proc sentinel_first {} {return $::watched_servers}

proc sentinels {} {
    set indexes {}
    for {set i 0} {$i < $::watched_sentinels} {incr i} {lappend indexes [expr {$::watched_servers + $i}]}
    return $indexes
}

proc sentinel_primary {i} {return [lindex [r -$i sentinel get-primary-addr-by-name mym] 1]}

proc sentinel_field {i name {primary mym}} {return [dict get [r -$i sentinel primary $primary] $name]}

proc sentinel_wait_known {} {
    foreach i [sentinels] {
        wait_for_condition 600 50 {
            [sentinel_field $i num-slaves] == $::watched_servers - 1 && [sentinel_field $i flags] eq "master" &&
            [sentinel_field $i num-other-sentinels] == $::watched_sentinels - 1 &&
            ![string match "*master-link-status err*" [r -$i sentinel replicas mym]] &&
            ![string match *disconnected* [concat [r -$i sentinel replicas mym] [r -$i sentinel sentinels mym]]]
        } else {
            fail "Sentinel $i does not know all: [r -$i sentinel primary mym]"
        }
    }
}

proc sentinel_wait_primary {port} {
    foreach i [sentinels] {
        wait_for_condition 1200 50 {[sentinel_primary $i] == $port && [sentinel_field $i flags] eq "master"} else {
            fail "Sentinel $i has another primary: [r -$i sentinel primary mym]"
        }
    }
}

proc sentinel_events {i} {
    set events {}
    foreach line [split [server_log -$i] \n] {
        if {[regexp {^\S+:X .*? [#*.-] ([+-][a-z-]+) } $line all name]} {lappend events $name}
    }
    return $events
}

proc sentinel_kill {i} {
    set pid [srv -$i pid]
    send_signal KILL $pid
    wait_for_condition 200 10 {[process_ended $pid]} else {fail "the server does not end"}
}

proc watched_role {i} {
    if {![catch {r -$i role} role]} {return [lrange $role 0 3]}
    drop_clients
    return {}
}
