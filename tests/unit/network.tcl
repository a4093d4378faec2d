# SPDX-License-Identifier: BSD-3-Clause
#
# Listening addresses, protected mode, and their changes at runtime.

# True if a TCP connection to that address gets a reply.
proc answers {host port} {
    if {[catch {socket $host $port} channel]} {return 0}
    fconfigure $channel -translation binary
    set said [expr {![catch {puts $channel "PING\r"; flush $channel; gets $channel} count]}]
    catch {close $channel}
    return $said
}

# The first non-loopback address of this machine; empty if it has none.
proc outer_address {} {
    if {[catch {exec hostname -I} list]} {return {}}
    foreach address $list {if {![string match *:* $address]} {return $address}}
    return {}
}

proc has_ip6 {} {return [file exists /proc/net/if_inet6]}

start_server {tags {network tls:skip}} {
    test {CONFIG SET bind changes the listeners and keeps connections} {
        if {[has_ip6]} {
            r config set bind "127.0.0.1 ::1"
            assert {[answers ::1 [srv port]]}
            assert_match "*bind=127.0.0.1,bind=::1,port=[srv port]*" [r info server]
        }
        r config set bind "127.0.0.1 -192.0.2.77"
        assert {[answers 127.0.0.1 [srv port]]}
        if {[has_ip6]} {assert {![answers ::1 [srv port]]}}
        assert_equal PONG [r ping]
    }

    test {an address that cannot be bound does not change the listeners} {
        r config set bind 127.0.0.1
        assert_error "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses." {
            r config set bind "127.0.0.1 192.0.2.77"
        }
        assert_equal {bind 127.0.0.1} [r config get bind]
        assert {[answers 127.0.0.1 [srv port]]}
    }

    test {CONFIG SET port opens the new one and closes the old one; 0 closes all} {
        set old [srv port]
        set new [free_port]
        r config set port $new
        assert {[answers 127.0.0.1 $new]}
        assert {![answers 127.0.0.1 $old]}
        r config set port 0
        assert {![answers 127.0.0.1 $new]}
        assert_equal PONG [r ping]
        r config set port $old
        assert {[answers 127.0.0.1 $old]}
    }

    test {a port in use is refused, and the old one is kept} {
        set taken [socket -server {} -myaddr 127.0.0.1 0]
        set port [lindex [fconfigure $taken -sockname] 2]
        assert_error "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port*" {
            r config set port $port
        }
        close $taken
        assert_equal [list port [srv port]] [r config get port]
        assert {[answers 127.0.0.1 [srv port]]}
    }

    test {protected mode accepts only local connections unless there is a password} {
        set outer [outer_address]
        if {$outer ne ""} {
            r config set bind "*"
            set s [raw_connect $outer [srv port]]
            assert_match "-DENIED Running in protected mode*" [raw_line $s]
            assert_equal "" [raw_rest $s]
            r config set protected-mode no
            assert {[answers $outer [srv port]]}
            r config set protected-mode yes requirepass secret
            set s [raw_connect $outer [srv port]]
            raw_send $s "PING\r\n"
            assert_equal "-NOAUTH Authentication required." [raw_line $s]
            r config set requirepass {} bind 127.0.0.1
        }
    }

    test {one new connection a turn is enough for everybody} {
        r config set max-new-connections-per-cycle 1
        set sockets {}
        for {set i 0} {$i < 50} {incr i} {lappend sockets [raw_connect]}
        foreach s $sockets {raw_send $s "PING\r\n"}
        foreach s $sockets {assert_equal +PONG [raw_line $s]}
        r config set max-new-connections-per-cycle 10
    }

    test {maxclients may be set below the number of clients: they stay connected, new ones are refused} {
        set other [connect]
        $other ping
        r config set maxclients 1
        set s [raw_connect]
        assert_equal "-ERR max number of clients reached" [raw_line $s]
        assert_equal PONG [$other ping]
        r config set maxclients 10000
        assert_equal PONG [[connect] ping]
    }

    test {more clients than the system has descriptors for are refused} {
        set before [r config get maxclients]
        assert_error "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able*" {
            r config set maxclients 1000000000
        }
        assert_equal $before [r config get maxclients]
    }
}

set unix_path /tmp/valkey-test-[pid].sock
start_server [list tags {network tls:skip} overrides [list unixsocket $unix_path unixsocketperm 700]] {
    test {the Unix socket has the configured mode and is removed with the server} {
        assert_equal 0o700 [format 0o%o [expr {[file attributes [srv unixsocket] -permissions] & 0o777}]]
        assert_match "*listener1:name=unix,bind=[srv unixsocket]*" [r info server]
        assert_equal socket [file type [srv unixsocket]]
    }
}

if {[file exists /proc/sys/net/mptcp/enabled]} {
    start_server {tags {network tls:skip} overrides {mptcp yes}} {
        test {a server with MPTCP serves TCP clients} {
            assert_equal PONG [[connect] ping]
        }
    }
}
