# SPDX-License-Identifier: BSD-3-Clause
#
# Limits on the resources of a client, and when it is disconnected: announced lengths, unread
# output, connections, idle time. The tests wait for counters of INFO, not for time.

proc used_memory {} { return [info_field used_memory] }

start_server {tags {limits}} {
    test {50 clients that announce 512 MB and send nothing cost kilobytes} {
        set before [used_memory]
        set socks {}
        for {set i 0} {$i < 50} {incr i} {
            set s [raw_connect]
            raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$536870912\r\n"
            lappend socks $s
        }
        wait_for_condition 200 20 {[info_field connected_clients] == 51}
        r ping
        assert {[used_memory] - $before < 1000000} "grew by [expr {[used_memory] - $before}] bytes"
    }

    test {50 clients that announce two thousand million arguments cost kilobytes} {
        set before [used_memory]
        for {set i 0} {$i < 50} {incr i} {
            raw_send [raw_connect] "*2147483647\r\n"
        }
        wait_for_condition 200 20 {[info_field connected_clients] >= 51}
        r ping
        assert {[used_memory] - $before < 1000000} "grew by [expr {[used_memory] - $before}] bytes"
    }

    test {memory of a large argument follows what has arrived} {
        set before [used_memory]
        set s [raw_connect]
        raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$100000000\r\n" [string repeat x 1000000]
        wait_for_condition 200 20 {[used_memory] - $before > 1000000}
        assert {[used_memory] - $before < 4000000} "grew by [expr {[used_memory] - $before}] bytes"
    }

    test {empty requests before others do not disturb them (CVE-2026-27623)} {
        set s [raw_connect]
        raw_send $s "*0\r\n\r\n*-1\r\n*1\r\n\$4\r\nPI"
        r ping
        raw_send $s "NG\r\n*0\r\n*2\r\n\$4\r\nECHO\r\n\$1\r\nx\r\n"
        assert_equal "+PONG" [raw_line $s]
        assert_equal "\$1" [raw_line $s]
        assert_equal "x" [raw_line $s]
    }

    test {values of lengths around 16, 32 and 64 KiB are returned unchanged (CVE-2023-41056)} {
        foreach base {16384 32768 65536 131072} {
            foreach off {-33 -2 -1 0 1 2 31 32 33} {
                set n [expr {$base + $off}]
                r set big [string repeat y $n]
                assert_equal $n [string length [r get big]]
                assert_equal [string repeat z $n] [r echo [string repeat z $n]]
            }
        }
    }

    test {a socket closed in the middle of requests does not affect others} {
        for {set i 0} {$i < 200} {incr i} {
            set s [raw_connect]
            raw_send $s "*2\r\n\$3\r\nGET\r\n\$[expr {1 + $i % 40}]\r\nabc"
            close $s
        }
        assert_equal PONG [r ping]
        wait_for_condition 200 20 {[info_field connected_clients] < 160}
    }

    test {the first words of a web request close the connection without a reply} {
        foreach line {"POST / HTTP/1.1" "Host: example.com"} {
            set s [raw_connect]
            raw_send $s "$line\r\n*1\r\n\$4\r\nPING\r\n"
            assert_equal "" [raw_rest $s]
        }
    }
}

start_server {tags {limits} overrides {client-output-buffer-limit {normal 8388608 0 0}}} {
    test {a client that never reads is closed at its output limit} {
        r set big [string repeat x 500000]
        set s [raw_connect]
        for {set i 0} {$i < 400} {incr i} { catch {raw_send $s "*2\r\n\$3\r\nGET\r\n\$3\r\nbig\r\n"} }
        wait_for_condition 400 20 {[info_field client_output_buffer_limit_disconnections] == 1}
        assert_match "*scheduled to be closed ASAP for overcoming of output buffer limits*" [server_log]
        assert_equal PONG [r ping]
    }
}

start_server {tags {limits} overrides {client-output-buffer-limit {normal 0 100000 1}}} {
    test {a soft output limit closes after its seconds} {
        r set big [string repeat x 4000000]
        set s [raw_connect]
        for {set i 0} {$i < 4} {incr i} { raw_send $s "*2\r\n\$3\r\nGET\r\n\$3\r\nbig\r\n" }
        wait_for_condition 400 50 {[info_field client_output_buffer_limit_disconnections] == 1}
        assert_equal PONG [r ping]
    }
}

start_server {tags {limits} overrides {requirepass secret}} {
    test {a client that has not logged in and never reads is closed at a small limit (CVE-2025-21605)} {
        set before [used_memory]
        set s [raw_connect]
        fconfigure $s -blocking 0
        set chunk [string repeat "*1\r\n\$4\r\nPING\r\n" 1000]
        for {set i 0} {$i < 400 && [info_field client_output_buffer_limit_disconnections] == 0} {incr i} {
            if {[catch {raw_send $s $chunk}]} break
        }
        wait_for_condition 200 20 {[info_field client_output_buffer_limit_disconnections] == 1}
        assert {[used_memory] - $before < 4000000}
    }

    test {a client that has not logged in gets 16 KB of replies at once} {
        set s [raw_connect]
        raw_send $s [string repeat "PING\r\n" 480]
        set refusal "-NOAUTH Authentication required.\r\n"
        assert_equal [string repeat $refusal 480] [raw_read $s [expr {480 * [string length $refusal]}]]
        raw_close $s
    }

    test {1,500 connections that break before logging in do not keep a good one waiting} {
        for {set i 0} {$i < 1500} {incr i} {
            set s [raw_connect]
            raw_send $s "*1\r\n\$4\r\nPI"
            close $s
        }
        assert_equal PONG [r ping]
        wait_for_condition 400 20 {[info_field connected_clients] == 1}
    } tls:skip
}

start_server {tags {limits} overrides {maxclients 5}} {
    test {connections beyond maxclients get an error and are closed} {
        set socks {}
        for {set i 0} {$i < 4} {incr i} { lappend socks [raw_connect] }
        wait_for_condition 200 20 {[info_field connected_clients] == 5}
        set s [raw_connect]
        assert_equal "-ERR max number of clients reached" [raw_line $s]
        assert_equal "" [raw_rest $s]
        close [lindex $socks 0]
        wait_for_condition 200 20 {[info_field connected_clients] == 4}
        set s [raw_connect]
        raw_send $s "PING\r\n"
        assert_equal "+PONG" [raw_line $s]
    } tls:skip
}

start_server {tags {limits} overrides {timeout 1}} {
    test {an idle client is closed after timeout seconds} {
        set s [raw_connect]
        raw_send $s "PING\r\n"
        assert_equal "+PONG" [raw_line $s]
        wait_for_condition 200 50 {[info_field connected_clients] == 1}
        assert_equal "" [raw_rest $s]
    }
}

start_server {tags {limits} overrides {maxclients 2000}} {
    test {clients killed at random points leave the server consistent} {
        # The hostile build kills clients of this name at random; in other builds CLIENT KILL does.
        for {set round 0} {$round < [scaled 40]} {incr round} {
            set socks {}
            for {set i 0} {$i < 20} {incr i} {
                set s [raw_connect]
                catch {raw_send $s "*3\r\n\$6\r\nCLIENT\r\n\$7\r\nSETNAME\r\n\$14\r\nhostile-victim\r\n"}
                catch {raw_send $s [string repeat "*3\r\n\$3\r\nSET\r\n\$1\r\nv\r\n\$3\r\nabc\r\n" 20] "*2\r\n\$3\r\nGE"}
                lappend socks $s
            }
            r client kill name hostile-victim
            foreach s $socks { catch {close $s} }
        }
        wait_for_condition 400 20 {[info_field connected_clients] == 1}
        assert_equal PONG [r ping]
    }
}

start_server {tags {limits}} {
    # Released servers start to build such replies until they run out of memory.
    test {excessive random draws are refused before they start} {
        r sadd s a b
        r zadd z 1 a 2 b
        r hset h f v
        r sadd ints 1 2 3
        foreach count {-9223372036854775807 -1000000000000000} {
            foreach command {{srandmember s} {srandmember ints} {zrandmember z} {hrandfield h}} {
                assert_error "ERR value is out of range" {r {*}$command $count}
                assert_equal {} [r [lindex $command 0] none $count]
            }
        }
        assert_error "ERR value is out of range" {r zrandmember z -4000000000000000000 withscores}
        assert_error "ERR value is out of range" {r hrandfield h -4000000000000000000 withvalues}
        assert_equal PONG [r ping]
        assert_equal 1000 [llength [r srandmember ints -1000]]  ;# many for the hostile build
    }
}

# 10 arguments of 16 KB, which is as much as is accepted before the login, without the last one.
proc half_request {} {
    return "*10\r\n[string repeat "\$16384\r\n[string repeat x 16384]\r\n" 9]"
}

start_server {tags {limits tls:skip} overrides {requirepass secret maxmemory 60mb maxmemory-policy allkeys-lru maxclients 1000}} {
    test {half requests of clients that have not logged in evict no key, and have a budget together} {
        for {set i 0} {$i < 100} {incr i} { r set key:$i [string repeat v 1000] }
        set before [used_memory]
        set half [half_request]
        for {set i 0} {$i < 500} {incr i} {
            set s [raw_connect]
            catch {raw_send $s $half}
        }
        wait_for_condition 500 20 {[info_field client_query_buffer_limit_disconnections] > 300}
        assert_equal {100 0} [list [r dbsize] [info_field evicted_keys]]
        assert {[used_memory] - $before < 32000000} "grew by [expr {[used_memory] - $before}] bytes"
        assert_match "*Closed * clients that have not logged in: * client-memory-before-auth *" [server_log]
    }

    test {a client that logs in is not limited with those that have not} {
        set c [respConnect [srv host] [srv port] 2]
        $c auth secret
        r config set client-memory-before-auth 1
        $c -send set large [string repeat x 2000000]
        assert_equal OK [$c -read]
        assert_equal 2000000 [string length [$c get large]]
        r config set client-memory-before-auth 0
        set s [raw_connect]
        raw_send $s [half_request]
        wait_for_condition 500 20 {[regexp {qbuf=1[0-9]{5}} [r client list]]}
        r config set client-memory-before-auth 16mb
        assert_equal OK [$c set large x]
    }
}

start_server {tags {limits tls:skip} overrides {requirepass secret maxclients 2000}} {
    test {connections that have not logged in cost at most 4 KB each and the budget} {
        set before [used_memory]
        set count 1000
        for {set i 0} {$i < $count} {incr i} {
            set s [raw_connect]
            catch {raw_send $s "*10\r\n\$16384\r\n[string repeat x 8000]"}
        }
        r ping
        wait_for_condition 500 20 {[info_field connected_clients] > 1 && [info_field total_connections_received] >= $count}
        set grown [expr {[used_memory] - $before}]
        assert {$grown < 16000000 + $count * 4800} "grew by $grown bytes"
    }
}

