# SPDX-License-Identifier: BSD-3-Clause
#
# Replicas and slot migrations connect although clients have all places, or more connect than the rate allows.

# A connection without AUTH, as a storm makes them.
proc open_silent {} {
    return [raw_connect [srv -1 host] [srv -1 port]]
}

proc primary_field {name} {
    if {![regexp "(?n)^$name:(.*)\r$" [r -1 info everything] -> value]} {fail "no field $name"}
    return $value
}

proc first_line {channel} {
    return [raw_line $channel]
}

proc link_is_up {} {
    return [string match *master_link_status:up* [r info replication]]
}

proc follow {} {
    r replicaof [srv -1 host] [srv -1 port]
    wait_for_condition 1500 20 {[link_is_up]} else {fail "the replica does not get in"}
}

start_server {tags {repl tls:skip external:skip} overrides {maxclients 20}} {
    start_server {overrides {repl-diskless-sync-delay 0}} {
        test {a replica connects when clients have all places} {
            set ::clients {}
            while {[primary_field connected_clients] < 20} {
                lappend ::clients [respConnect [srv -1 host] [srv -1 port]]
            }
            follow
            assert_equal 1 [primary_field connected_slaves]
            r -1 set key value
            assert_equal 1 [r -1 wait 1 10000]
            assert_equal value [r get key]
        }

        test {other connections get the error with their first command, or after some time without one} {
            set rejected [primary_field rejected_connections]
            set channel [open_silent]
            raw_send $channel "PING\r\nGET key\r\nGET key\r\n"
            assert_equal "+PONG" [first_line $channel]
            assert_equal "-ERR max number of clients reached" [first_line $channel]
            assert_equal "" [raw_rest $channel]
            set channel [open_silent]
            assert_equal "-ERR max number of clients reached" [first_line $channel]
            assert_equal "" [raw_rest $channel]
            set channel [open_silent]
            raw_send $channel "RESET\r\nGET key\r\n"
            assert_equal "-ERR max number of clients reached" [first_line $channel]
            assert_equal "" [raw_rest $channel]
            assert_equal 3 [expr {[primary_field rejected_connections] - $rejected}]
        }

        test {no more than eight connections are on trial} {
            set trials {}
            for {set i 0} {$i < 20} {incr i} {lappend trials [open_silent]}
            foreach channel $trials {
                assert_equal "-ERR max number of clients reached" [first_line $channel]
                close $channel
            }
            wait_for_condition 500 20 {[primary_field connected_clients] == 20}
        }

        test {a replica connects again, while others try all the time} {
            r replicaof no one
            wait_for_condition 500 20 {[primary_field connected_slaves] == 0}
            r replicaof [srv -1 host] [srv -1 port]
            set tried 0
            while {![link_is_up] && $tried < 3000} {
                set channel [open_silent]
                catch {raw_send $channel "GET key\r\n"}
                incr tried
                catch {first_line $channel}
                close $channel
            }
            assert {[link_is_up]}
            r -1 set key again
            assert_equal 1 [r -1 wait 1 10000]
            foreach c $::clients {$c -close}
        }

        test {a replica connects while the rate of connections is exhausted} {
            r replicaof no one
            r -1 config set maxclients-per-second 20
            set waiting {}
            for {set i 0} {$i < 40} {incr i} {lappend waiting [open_silent]}
            follow
            foreach channel $waiting {close $channel}
            r -1 config set maxclients-per-second 0
        }
    }
}
