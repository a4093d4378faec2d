# SPDX-License-Identifier: BSD-3-Clause
#
# The configuration file: the state after a restart is the one before, whatever was set; comments and the order of
# lines are kept.

# What a restart must not change.
proc lasting_state {} {
    set state {}
    foreach map [r sentinel primaries] {
        set name [dict get $map name]
        foreach field {ip port quorum down-after-milliseconds failover-timeout parallel-syncs config-epoch} {
            dict set state $name $field [dict get $map $field]
        }
    }
    # Values of passwords, users and renamed commands are not shown: the lines of the file are.
    set lines {}
    foreach line [split [file_text [srv config]] \n] {
        if {[regexp {^sentinel (auth-|rename-command|refused-|primary-reboot|announce|resolve|sentinel-)} $line]} {lappend lines $line}
    }
    return [list [lsort -stride 2 $state] [r sentinel config get *] [lsort $lines] [r sentinel myid]]
}

proc random_text {letters} {
    set text [string index $letters [random_below [string length $letters]]]
    for {set n [random_below 12]} {$n > 0} {incr n -1} {append text [string index $letters [random_below [string length $letters]]]}
    return $text
}

proc random_order {names} {
    set name [lindex $names [random_below [llength $names]]]
    set odd "ab \"'\\#\u00e9"
    switch [random_below 8] {
        0 - 1 {return [list monitor [random_text "ab \"'\\#:-x"] [lindex {127.0.0.1 ::1 no.such.host.} [random_below 3]] \
            [random_below 65536] [expr {1 + [random_below 5]}]]}
        2 {return [list remove $name]}
        3 {return [list set $name auth-pass [random_text $odd] auth-user [random_text $odd]]}
        4 {return [list set $name rename-command [random_text "PINGx \"'"] [random_text $odd]]}
        5 {return [list set $name down-after-milliseconds [expr {1 + [random_below 5000000000]}] \
            failover-timeout [expr {1 + [random_below 5000000000]}] quorum [expr {1 + [random_below 9]}] \
            parallel-syncs [expr {1 + [random_below 9]}] refused-after-milliseconds [random_below 5000] \
            primary-reboot-down-after-period [random_below 5000]]}
        6 {return [list config set announce-ip [random_text "ab."] announce-port [random_below 65536] \
            sentinel-user [random_text $odd] sentinel-pass [random_text $odd]]}
        7 {return [list config set announce-hostnames [lindex {yes no} [random_below 2]] \
            resolve-hostnames [lindex {yes no} [random_below 2]]]}
    }
}

start_server [list tags {sentinel tls:skip} overrides [list port [free_port]] args --sentinel] {
    test {random SET, MONITOR, REMOVE and CONFIG SET are the same after a restart, and comments stay} {
        set f [open [srv config] a]
        puts $f "# a comment at the end\nloglevel notice\n# the last line"
        close $f
        r sentinel debug info-period 600000 ping-period 600000
        restart_server
        set own {^#(?! Generated)}
        set comments [lsearch -all -inline -regexp [split [file_text [srv config]] \n] $own]
        assert {[llength $comments] >= 2}
        set accepted 0
        for {set round 0} {$round < 8} {incr round} {
            for {set i 0} {$i < 25} {incr i} {
                set names [lmap map [r sentinel primaries] {dict get $map name}]
                if {[llength $names] == 0} {set names {{}}}
                incr accepted [expr {![catch {r sentinel {*}[random_order $names]}]}]
            }
            r sentinel flushconfig
            set before [lasting_state]
            restart_server
            foreach part $before now [lasting_state] {
                foreach a $part b $now {assert_equal $a $b}
            }
        }
        assert {$accepted > 20}
        assert_equal $comments [lsearch -all -inline -regexp [split [file_text [srv config]] \n] $own]
    }
}

start_server [list tags {sentinel tls:skip} overrides [list port [free_port]] args --sentinel] {
    test {CKQUORUM says it if the file cannot be saved, as there is no vote then} {
        r sentinel monitor n 127.0.0.1 1 1
        assert_match "OK 1 usable*" [r sentinel ckquorum n]
        set file [srv config]
        file rename $file $file.away
        file mkdir $file
        assert_error "ERR Failed to save config file*" {r sentinel flushconfig}
        assert_error "NOQUORUM This Sentinel cannot save*" {r sentinel ckquorum n}
        file delete $file
        file rename $file.away $file
        assert_match "OK 1 usable*" [r sentinel ckquorum n]
        r sentinel remove n
    }

    test {what an included file says is not repeated, and what is changed overrides it, also to a default} {
        set file [srv config]
        set part [file dirname $file]/part.conf
        set own [file_text $file]
        write_bytes $part "sentinel monitor inc 127.0.0.1 1 1\nsentinel down-after-milliseconds inc 5000\nsentinel failover-timeout inc 9000\n"
        write_bytes $file "$own\ninclude $part\n"
        restart_server
        assert_equal OK [r sentinel flushconfig]
        assert {![regexp {down-after|monitor inc} [file_text $file]]}
        r sentinel set inc quorum 2 down-after-milliseconds 30000
        foreach round {1 2} {
            restart_server
            assert_equal {2 30000 9000} [list [dict get [r sentinel primary inc] quorum] \
                [dict get [r sentinel primary inc] down-after-milliseconds] [dict get [r sentinel primary inc] failover-timeout]]
        }
        write_bytes $file $own
        restart_server
    }

    test {a link to the file stays one, and what it refers to keeps its mode} {
        set file [srv config]
        file rename $file $file.real
        file attributes $file.real -permissions 0600
        file link -symbolic $file $file.real
        r sentinel monitor n 127.0.0.1 1 1
        assert_equal link [file type $file]
        assert_match "*sentinel monitor n 127.0.0.1 1 1*" [file_text $file.real]
        assert_match "*600" [file attributes $file.real -permissions]
        r sentinel remove n
        file delete $file
        file rename $file.real $file
    }

    test {names of hosts are for those that allow them, and RESET is saved} {
        assert_error "ERR Invalid IP address or hostname specified" {r sentinel monitor n localhost 1 1}
        r sentinel config set resolve-hostnames yes announce-hostnames yes
        r sentinel monitor n localhost 1 1
        assert_equal {localhost 1} [r sentinel get-primary-addr-by-name n]
        r sentinel monitor gone no.such.host. 1 1
        assert_error "ERR Invalid value 'no' to SENTINEL CONFIG SET 'resolve-hostnames'" {r sentinel config set resolve-hostnames no}
        r sentinel remove gone
        set lines "sentinel known-replica n 127.0.0.1 2"
        set f [open [srv config] a]
        puts $f $lines
        close $f
        restart_server
        assert_equal {localhost 1} [r sentinel get-primary-addr-by-name n]
        assert_equal 1 [dict get [r sentinel primary n] num-slaves]
        assert_equal 1 [r sentinel reset *]
        restart_server
        assert_equal 0 [dict get [r sentinel primary n] num-slaves]
    }
}

start_server [list tags {sentinel tls:skip} overrides [list port [free_port]] args --sentinel] {
    # Of a Sentinel whose id ends with the number, at an address where none listens.
    proc hello_of {number host {port 1}} {
        return [list publish __sentinel__:hello [format {%s,%d,%040x,0,mym,127.0.0.1,1,0} $host $port $number]]
    }

    test {many hello messages at once are saved once per turn, and add so many Sentinels at most} {
        r sentinel monitor mym 127.0.0.1 [free_port] 2
        r sentinel debug ping-period 600000
        set port [free_port]
        set saved [regexp -all {new configuration saved} [server_log]]
        set bytes {}
        for {set i 1} {$i <= 1100} {incr i} {
            set words [hello_of $i 127.1.[expr {$i / 250}].[expr {1 + $i % 250}] $port]
            append bytes "*3\r\n" {*}[lmap word $words {set bulk "\$[string length $word]\r\n$word\r\n"}]
        }
        set s [raw_connect]
        raw_send $s $bytes
        for {set i 1} {$i <= 1100} {incr i} {assert_equal :1 [raw_line $s]}
        assert_equal 1000 [dict get [r sentinel primary mym] num-other-sentinels]
        set count [expr {[regexp -all {new configuration saved} [server_log]] - $saved}]
        assert {$count > 0 && $count < 200} "saved $count times"
        r sentinel remove mym
        restart_server
    }

    test {names that are not in use make room for others, and those in use for none} {
        r sentinel config set resolve-hostnames yes
        # Numbers that the system's resolver takes for names.
        for {set i 1} {$i <= 100} {incr i} {
            r sentinel monitor gone 127.2.$i 1 1
            r sentinel remove gone
        }
        r sentinel monitor mym localhost 1 2
        for {set i 1} {$i <= 100} {incr i} {r {*}[hello_of $i 127.3.$i]}
        assert_equal 100 [dict get [r sentinel primary mym] num-other-sentinels]
        r sentinel monitor last 127.4.1 1 1
        foreach {name ip} {mym 127.0.0.1 last 127.4.0.1} {
            wait_for_condition 400 25 {[lindex [r sentinel get-primary-addr-by-name $name] 0] eq $ip} else {
                fail "$name: [r sentinel get-primary-addr-by-name $name]"
            }
        }
    }
}

start_watched {1 2 {overrides {bind "127.0.0.1 -::1"} sentinel {bind "127.0.0.1 -::1"}}} {
    set first [sentinel_first]

    test {announced addresses are what other Sentinels get to know} {
        set second [expr {$first + 1}]
        r -$first sentinel config set announce-ip 127.0.0.2 announce-port [srv -$first port]
        r -$first sentinel debug publish-period 100
        wait_for_condition 400 25 {[string match "*ip 127.0.0.2 *" [r -$second sentinel sentinels mym]]} else {fail "it is not known"}
        assert_match "*+sentinel-address-switch*" [server_log -$second]
        r -$first sentinel config set announce-ip "" announce-port 0
        wait_for_condition 400 25 {[string match "*ip 127.0.0.1 *" [r -$second sentinel sentinels mym]]} else {fail "it is not known"}
    }

    test {a primary at an IPv6 address is watched} {
        if {[catch {close [socket ::1 [srv port]]}]} return
        foreach i [sentinels] {
            r -$i sentinel monitor six ::1 [srv port] 2
            r -$i sentinel set six down-after-milliseconds 5000
        }
        foreach i [sentinels] {
            wait_for_condition 600 50 {
                [sentinel_field $i flags six] eq "master" && [sentinel_field $i num-other-sentinels six] == 1
            } else {
                fail "not known: [r -$i sentinel primary six]"
            }
            assert_equal [list ::1 [srv port]] [r -$i sentinel get-primary-addr-by-name six]
        }
        with_node $first {restart_server}
        assert_equal [list ::1 [srv port]] [r -$first sentinel get-primary-addr-by-name six]
    }
}
