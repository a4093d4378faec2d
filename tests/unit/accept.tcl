# SPDX-License-Identifier: BSD-3-Clause
#
# How connections are accepted: without descriptors, at a limited rate, with reserved places.

proc open_from {address} {
    set channel [socket -myaddr $address [srv host] [srv port]]
    chan configure $channel -translation crlf -buffering line -blocking 1
    return $channel
}

proc says {channel word} {
    puts $channel $word
    return [gets $channel]
}

# What a connection that is refused reads.
proc refusal {channel} {
    set line [gets $channel]
    close $channel
    return $line
}

proc descriptors {} {llength [glob -nocomplain /proc/[srv pid]/fd/*]}

proc limit_descriptors {count} {exec prlimit --pid [srv pid] --nofile=$count:}

if {[auto_execok prlimit] ne "" && [file isdirectory /proc/self/fd]} {
    start_server {tags {tls:skip external:skip} overrides {io-threads 1}} {
        test {without descriptors connections wait, and the log says so once} {
            r ping
            limit_descriptors [descriptors]
            set waiting {}
            for {set i 0} {$i < 3} {incr i} {lappend waiting [open_from 127.0.0.1]}
            set text "Accepting client connection: Too many open files. No connections are accepted for 100 ms."
            wait_for_condition 400 25 {[string match "*$text*" [server_log]]} else {fail "no line in the log"}
            # A server that tries again in each turn has said so hundreds of times.
            for {set i 0} {$i < 300} {incr i} {assert_equal PONG [r ping]}
            assert_equal 1 [regexp -all "Too many open files" [server_log]]
            limit_descriptors 1024
            foreach channel $waiting {
                assert_equal +PONG [says $channel ping]
                close $channel
            }
        }
    }
}

start_server {tags {tls:skip external:skip} overrides {maxclients 6 maxclients-reserved 3}} {
    test {fields of priority connections are there without subnets} {
        assert_equal {0 0} [list [info_field connected_priority_clients] [info_field rejected_priority_connections]]
        assert_equal {maxclients-reserved 3} [r config get maxclients-reserved]
        assert_error "*argument must be between 0 and 2147483647 inclusive*" {r config set maxclients-reserved -1}
        assert_equal {OK {maxclients-reserved 100} OK} [list [r config set maxclients-reserved 100] [r config get maxclients-reserved] \
            [r config set maxclients-reserved 3]] ;# more than maxclients
    }

    test {reserved places are for the subnets with priority} {
        r config set priority-subnets "127.0.0.2/32,::1 10.0.0.0/8"
        assert_equal {priority-subnets {127.0.0.2/32,::1 10.0.0.0/8}} [r config get priority-subnets]
        assert_equal 0 [info_field connected_priority_clients]
        set ::second [open_from 127.0.0.1]
        set ::third [open_from 127.0.0.1]
        assert_equal {+PONG +PONG} [list [says $::second ping] [says $::third ping]]
        assert_equal "-ERR max number of clients reached" [refusal [open_from 127.0.0.1]]
        set own {}
        for {set i 0} {$i < 3} {incr i} {
            lappend own [open_from 127.0.0.2]
            assert_equal +PONG [says [lindex $own end] ping]
        }
        assert_equal 3 [info_field connected_priority_clients]
        assert_equal "-ERR max number of clients reached" [refusal [open_from 127.0.0.2]]
        assert_equal 1 [info_field rejected_priority_connections]
        foreach channel $own {close $channel}
        wait_for_condition 200 25 {[info_field connected_priority_clients] == 0} else {fail "they are counted"}
        assert_equal "-ERR max number of clients reached" [refusal [open_from 127.0.0.1]]
    }

    test {without subnets nothing is reserved} {
        r config set priority-subnets ""
        set more [open_from 127.0.0.1]
        assert_equal +PONG [says $more ping]
        close $more
        close $::second
        close $::third
    }

    test {a subnet that is none is refused} {
        foreach text {10.0.0.0/33 10.0.0 ::1/129 name 10.0.0.0/ /8 10.0.0.0/-1 "1.2.3.4, x"} {
            assert_error "*Invalid IP address or CIDR subnet*" {r config set priority-subnets $text}
        }
        assert_equal {priority-subnets {}} [r config get priority-subnets]
    }
}

start_server [list tags {tls:skip external:skip} overrides [list admin-port [free_port]]] {
    test {a rate of connections makes others wait, and refuses none} {
        r config set maxclients-per-second 20
        set rejected [info_field rejected_connections]
        set channels {}
        for {set i 0} {$i < 30} {incr i} {lappend channels [open_from 127.0.0.1]}
        foreach channel $channels {assert_equal +PONG [says $channel ping]}
        foreach channel $channels {close $channel}
        assert_equal $rejected [info_field rejected_connections]
        r config set maxclients-per-second 0
    }
}
