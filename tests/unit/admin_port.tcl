# SPDX-License-Identifier: BSD-3-Clause
#
# Connections that are served before others, also in the middle of a long turn: those to admin-port, replicas, Sentinels.

# A connection whose pipelined commands take a second, and one that asks meanwhile; true if that one was answered
# before the others had ended.
proc answered_between {link} {
    set slow [raw_connect]
    r config resetstat
    raw_send $slow [string repeat [resp::encode {debug sleep 0.05}] 20]
    wait_for_condition 100 10 {[$link ping] eq "PONG" && [slept $link] > 0} else {fail "the slow client was not served"}
    set calls [slept $link]
    raw_close $slow
    return [expr {$calls < 20}]
}

# Number of DEBUG SLEEPs that have ended.
proc slept {link} {
    set calls 0
    regexp {cmdstat_debug:calls=(\d+)} [$link info commandstats] -> calls
    return $calls
}

start_server {tags {admin-port needs:debug needs:config tls:skip} overrides {maxclients 10}} {
    set ::port [free_port]

    test {admin-port is served in the middle of a long turn} {
        r config set admin-port $::port
        assert_match "*listener3:name=admin,bind=*,port=$::port\r\n*" [r info server]
        set admin [respConnect 127.0.0.1 $::port 2]
        assert {[answered_between $admin]}
        $admin -close
    }

    test {connections to admin-port are accepted beyond maxclients} {
        set others {}
        while {[catch {set last [respConnect [srv host] [srv port] 2]; $last ping}] == 0} {lappend others $last}
        set admin [respConnect 127.0.0.1 $::port 2]
        assert_equal PONG [$admin ping]
        $admin -close
        foreach link $others {$link -close}
        wait_for_condition 500 10 {[info_field connected_clients] == 1}
    }

    test {a connection with a Sentinel's name is served like one to admin-port} {
        set sentinel [respConnect [srv host] [srv port] 2]
        $sentinel client setname sentinel-0123abcd-cmd
        assert {[answered_between $sentinel]}
        $sentinel -close
    }

    test {admin-port 0 closes the port} {
        r config set admin-port 0
        assert {[catch {socket 127.0.0.1 $::port}]}
        assert {![string match *listener3* [r info server]]}
    }
}
