# SPDX-License-Identifier: BSD-3-Clause
#
# cluster-gateway-port with I/O threads: messages that come while a thread writes do not overtake replies of other nodes;
# nor does what is written when the process ends.

start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef io-threads 4 io-threads-always-active yes}}} {
    open_gateway 0

    # The next replies, so many; the texts of messages in between are appended to those of the client.
    proc replies_between {channel count} {
        set replies {}
        while {[llength $replies] < $count} {
            set reply [raw_reply $channel]
            if {[string index $reply 0] eq ">"} {
                lappend ::messages($channel) [lindex [split $reply "\n"] end-1]
            } else {
                lappend replies [string trim $reply]
            }
        }
        return $replies
    }

    proc subscribers {count} {
        set clients {}
        for {set i 0} {$i < $count} {incr i} {
            set s [raw_gateway]
            raw_send $s "hello 3\r\n"
            raw_reply $s
            raw_send $s "subscribe news\r\n"
            raw_reply $s
            set ::messages($s) {}
            lappend clients $s
        }
        return $clients
    }

    # Publishes numbers, each in a request of its own, up to one.
    proc publish_up_to {publisher last} {
        set requests {}
        while {$::published < $last} {append requests "publish news [incr ::published]\r\n"}
        raw_send $publisher $requests
    }

    # Each client has got all messages, in their order.
    proc assert_messages {clients publisher} {
        set all {}
        for {set i 1} {$i <= $::published} {incr i} {
            raw_reply $publisher
            lappend all "$i\r"
        }
        foreach s $clients {
            raw_send $s "ping\r\n"
            assert_equal +PONG [replies_between $s 1]
            assert_equal $all $::messages($s)
            raw_close $s
        }
        raw_close $publisher
    }

    test {replies of a pipeline keep their order, and messages theirs, while both are written} {
        set publisher [raw_connect]
        set clients [subscribers 4]
        set ::published 0
        for {set round 1} {$round <= 50} {incr round} {
            foreach s $clients {raw_send $s [string repeat "incr [key_of 1 $s]\r\nping\r\nincr [key_of 2 $s]\r\n" 20]}
            while {$::published < 40 * $round} {publish_up_to $publisher [expr {$::published + 1}]}
            foreach s $clients {
                set expected {}
                for {set i 19} {$i >= 0} {incr i -1} {
                    set n [expr {20 * $round - $i}]
                    lappend expected :$n +PONG :$n
                }
                assert_equal $expected [replies_between $s 60]
            }
        }
        assert_messages $clients $publisher
    }

    test {a client that is blocked at another node gets messages at once, and its reply, while both are written} {
        set publisher [raw_connect]
        set clients [subscribers 4]
        set ::published 0
        for {set round 1} {$round <= 40} {incr round} {
            foreach s $clients {raw_send $s "blpop [key_of 1 list$s] 0\r\nping\r\n"}
            publish_up_to $publisher [expr {50 * $round - 49}]
            # All are blocked, as all have got the first one.
            foreach s $clients {
                while {[lindex $::messages($s) end] ne "$::published\r"} {
                    lappend ::messages($s) [lindex [split [raw_reply $s] "\n"] end-1]
                }
            }
            publish_up_to $publisher [expr {50 * $round - 10}]
            foreach s $clients {r -1 rpush [key_of 1 list$s] value}
            publish_up_to $publisher [expr {50 * $round}]
            foreach s $clients {
                assert_match "*value +PONG" [string map {\r\n " "} [join [replies_between $s 2]]]
            }
        }
        assert_messages $clients $publisher
    }
}

# One thread: the server reads all requests in the same turn.
start_cluster {3 0 {tags {cluster needs:config tls:skip} overrides {cluster-bus-secret 0123456789abcdef}}} {
    open_gateway 0

    test {SHUTDOWN: what was replied in the same turn does not take the place of a reply of another node} {
        foreach name {client sleeper stopper} {set $name [expr {$name eq "client" ? [raw_gateway] : [raw_connect]}]}
        # A first request, so all are accepted when the server sleeps.
        foreach s [list $client $sleeper $stopper] {
            raw_send $s "ping\r\n"
            assert_equal +PONG [raw_line $s]
        }
        set pid [srv pid]
        set key [key_of 1]
        raw_send $sleeper "debug sleep 0.3\r\n"
        raw_send $client "set $key 1\r\nping\r\n"
        raw_send $stopper "shutdown nosave\r\n"
        set replied [raw_rest $client]
        assert {![string match "+PONG*" $replied]} $replied
        assert {[wait_process_end $pid 10000]}
        foreach s [list $client $sleeper $stopper] {raw_close $s}
    }
}
