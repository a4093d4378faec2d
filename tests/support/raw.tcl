# SPDX-License-Identifier: BSD-3-Clause
#
# Sockets that send and expect bytes, for tests of the protocol itself. Every read is bounded.
#
#   set s [raw_connect ?host? ?port?]    to the current server, or elsewhere
#   raw_send $s bytes ?bytes ...?        each run goes out by itself, so it can arrive by itself
#   raw_read $s count                    exactly so many bytes
#   raw_line $s                          up to CRLF, which is taken away
#   raw_reply $s                         one whole reply, as bytes
#   raw_rest $s                          everything up to the server's closing
#   raw_silent $s                        true when nothing came: asks with PING on another connection,
#                                        so the server has had its turn; it does not sleep
#   raw_close $s                         the end of a test closes those it forgot

proc raw_connect {{host {}} {port {}}} {
    if {$host eq ""} {set host [srv host]}
    if {$port eq ""} {set port [srv port]}
    set channel [resp::open $host $port]
    chan configure $channel -translation binary -buffering none -blocking 0
    set ::raw_buffer($channel) {}
    return $channel
}

proc raw_send {channel args} {
    chan configure $channel -blocking 1
    foreach bytes $args {puts -nonewline $channel $bytes}
    chan configure $channel -blocking 0
}

proc raw_close {channel} {
    unset ::raw_buffer($channel)
    unset -nocomplain ::raw_accepted($channel)
    close $channel
}

# Waits for more bytes; returns 0 when the server has closed.
proc raw_more {channel} {
    resp::waitReadable $channel $resp::timeout
    # A reset is an end as well: the server closed while our bytes were still on their way.
    if {[catch {read $channel} bytes]} {return 0}
    append ::raw_buffer($channel) $bytes
    return [expr {$bytes ne "" || ![eof $channel]}]
}

proc raw_take {channel count} {
    set taken [string range $::raw_buffer($channel) 0 $count-1]
    set ::raw_buffer($channel) [string range $::raw_buffer($channel) $count end]
    return $taken
}

proc raw_read {channel count} {
    while {[string length $::raw_buffer($channel)] < $count} {
        if {![raw_more $channel]} {fail "connection closed, has only: $::raw_buffer($channel)"}
    }
    return [raw_take $channel $count]
}

proc raw_line {channel} {
    while {[set end [string first "\r\n" $::raw_buffer($channel)]] < 0} {
        if {![raw_more $channel]} {fail "connection closed, has only: $::raw_buffer($channel)"}
    }
    return [string range [raw_take $channel [expr {$end + 2}]] 0 end-2]
}

proc raw_reply {channel} {
    set line [raw_line $channel]
    set out "$line\r\n"
    set count [string range $line 1 end]
    switch -- [string index $line 0] {
        $ - = - ! {if {$count >= 0} {append out [raw_read $channel [expr {$count + 2}]]}}
        * - ~ - > {for {set i 0} {$i < $count} {incr i} {append out [raw_reply $channel]}}
        % {for {set i 0} {$i < 2 * $count} {incr i} {append out [raw_reply $channel]}}
        | {for {set i 0} {$i <= 2 * $count} {incr i} {append out [raw_reply $channel]}}
    }
    return $out
}

proc raw_rest {channel} {
    while {[raw_more $channel]} {}
    return [raw_take $channel [string length $::raw_buffer($channel)]]
}

proc raw_silent {channel} {
    set other [raw_connect {*}[lrange [chan configure $channel -peername] 0 0] [lindex [chan configure $channel -peername] 2]]
    # Two round trips: the first may share a loop turn with the bytes before it.
    foreach turn {1 2} {
        raw_send $other "*1\r\n\$4\r\nPING\r\n"
        raw_line $other
    }
    raw_close $other
    catch {append ::raw_buffer($channel) [read $channel]}
    return [expr {$::raw_buffer($channel) eq "" && ![eof $channel]}]
}
