# SPDX-License-Identifier: BSD-3-Clause
#
# Known attacks on servers of this family, as named cases. Others are tested with their subsystem:
# unread replies and connections broken before authentication, announced lengths, buffer sizes and
# output limits in limits.tcl; malformed requests in protocol.tcl.

start_server {tags {security}} {
    test {case 7, slowloris: 200 half requests byte by byte do not delay other clients} {
        set request "*1\r\n\$4\r\nPING\r\n"
        set slow {}
        for {set i 0} {$i < 200} {incr i} {lappend slow [raw_connect]}
        for {set at 0} {$at < [string length $request] - 1} {incr at} {
            foreach s $slow {raw_send $s [string index $request $at]}
            assert_equal PONG [r ping]
        }
        assert_equal 201 [info_field connected_clients]
        foreach s $slow {raw_send $s "\n"}
        foreach s $slow {assert_equal +PONG [raw_line $s]}
    }

    test {case 14 (CVE-2024-31228): patterns of 50,000 stars and question marks end at once} {
        set pattern [string repeat *? 50000]
        r set key value
        assert_equal {} [r keys $pattern]
        assert_equal {} [r config get $pattern]
        assert_equal {} [r command list filterby pattern $pattern]
        assert_equal {} [r keys "[string repeat a* 20000]b"]
        assert_equal {0 {}} [r scan 0 match $pattern]
    }

    test {case 39: nothing said to CONFIG SET or CLIENT SETNAME opens a new line anywhere} {
        assert_error "ERR Client names cannot contain*" {r client setname "a\nb id=99"}
        assert_error "ERR lib-name cannot contain*" {r client setinfo lib-name "a\nb"}
        set evil "x\nmaxclients 77\nport 1"
        r config set requirepass $evil
        r config set proc-title-template "{title} \{listen-addr\}"
        r config rewrite
        assert_equal $evil [lindex [r config get requirepass] 1]
        set channel [open [srv config] rb]
        set lines [split [read $channel] "\n"]
        close $channel
        foreach line $lines {
            assert {![string match "maxclients 77*" $line]}
            assert {![string match "port 1" $line]}
        }
        r config set requirepass {}
        r config rewrite
    }
}

# Sends and ignores the error if the server has closed the connection.
proc try_send {s args} {catch {raw_send $s {*}$args}}

start_server {tags {security}} {
    test {case 44: CLIENT KILL of clients in every state leaves the server consistent} {
        for {set round 0} {$round < [scaled 5]} {incr round} {
            # In MULTI, in MONITOR, with an incomplete request, delayed by a pause, with unread
            # replies, with WATCH.
            set in_multi [connect]
            $in_multi multi
            $in_multi set k v
            set watching [connect]
            $watching watch k
            set monitoring [connect]
            $monitoring monitor
            set half [raw_connect]
            try_send $half "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$100000\r\n" [string repeat x 50000]
            set deaf [raw_connect]
            try_send $deaf [string repeat "CLIENT LIST\r\n" 500]
            set paused [connect]
            r client pause 100000 write
            $paused -send set k held
            wait_for_condition 500 10 {[info_field blocked_clients] == 1}
            assert {[r client kill type normal] >= 6}
            wait_for_condition 500 10 {[info_field connected_clients] == 1}
            r client unpause
            assert_equal 0 [info_field blocked_clients]
            assert_equal {} [r get k]
        }
    }

    test {case 44: a client that kills itself gets the reply first, inside EXEC as well} {
        set c [connect]
        set id [$c client id]
        assert_equal 1 [$c client kill id $id skipme no]
        $c -closed
        set c [connect]
        set id [$c client id]
        $c multi
        $c set before 1
        $c client kill id $id skipme no
        $c set after 1
        assert_equal {OK 1 OK} [$c exec]
        $c -closed
        assert_equal {1 1} [list [r get before] [r get after]]
    }

    test {case 44: a client kills others with requests in the same batch} {
        set victims {}
        for {set i 0} {$i < 20} {incr i} {lappend victims [raw_connect]}
        set killer [connect]
        for {set i 0} {$i < 20} {incr i} {
            foreach s $victims {try_send $s "INCR n\r\nINCR n\r\n"}
            $killer client kill type normal skipme yes
            set victims [lmap s $victims {raw_connect}]
        }
        set killer [connect]
        assert_equal PONG [$killer ping]
    }
}
