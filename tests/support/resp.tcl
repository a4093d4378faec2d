# SPDX-License-Identifier: BSD-3-Clause
#
# A client that speaks RESP2 and RESP3.
#
#   set c [respConnect host port ?resp? ?tls?]    $c is a command; resp 3 sends HELLO 3 first; tls: options of tls::socket
#   $c set key value         sends, waits, returns the reply; an error reply is a Tcl error
#   $c -typed lrange l 0 -1  the same, with types: {array {{bulk a} {bulk b}}}; errors do not throw
#   $c -send blpop l 0       sends only;  $c -read, $c -readtyped take the next reply
#   $c -message              the next published message: a push in RESP3, a reply in RESP2
#   $c -push                 the next push;  $c -pushes: those that came so far, without waiting
#   $c -write bytes          sends bytes as they are
#   $c -timeout ms           how long a read waits (default 30,000)
#   $c -closed               waits until the server closes the connection
#   $c -close
#
# Plain replies: aggregates are lists, a map is a dict, null is {}, a boolean is 1 or 0.
# Strings are bytes, on both ways: give and expect text beyond ASCII with [encoding convertto utf-8].
# Invariant: pushes never take a reply's place; they queue up in $conn(pushes).

namespace eval resp {
    variable count 0
    variable timeout 30000
}

# A socket to a server; with --tls, or if `tls` is given, a TLS channel: `tls` has the options of tls::socket.
proc resp::open {host port {tls {}}} {
    if {$tls eq "" && $::tls_folder ne ""} {
        set tls [list -cafile $::tls_folder/ca.crt -certfile $::tls_folder/client.crt -keyfile $::tls_folder/client.key]
    }
    if {$tls eq ""} {return [socket $host $port]}
    package require tls
    set channel [tls::socket -ssl2 0 -ssl3 0 -tls1 0 -tls1.1 0 -request 1 -require 1 {*}$tls $host $port]
    if {[catch {tls::handshake $channel} message]} {
        catch {close $channel}
        error "handshake: $message"
    }
    return $channel
}

proc respConnect {host port {resp 2} {tls {}}} {
    set channel [resp::open $host $port $tls]
    # A raw channel that was closed by hand may have had the same name: it must not be closed once more.
    unset -nocomplain ::raw_buffer($channel)
    chan configure $channel -translation binary -buffering full -buffersize 65536
    set handle ::resp::client[incr resp::count]
    upvar #0 ${handle}_state conn
    array set conn [list channel $channel resp 2 timeout $resp::timeout pushes {}]
    interp alias {} $handle {} resp::dispatch $handle
    if {$resp == 3} {$handle hello 3}
    return $handle
}

proc resp::dispatch {handle args} {
    upvar #0 ${handle}_state conn
    if {![info exists conn(channel)]} {error "client is closed"}
    set word [lindex $args 0]
    if {[string index $word 0] ne "-"} {
        send conn $args
        set reply [reply conn]
        # -message must know which protocol is spoken; HELLO with a version that is refused changes nothing.
        if {$word eq "hello" && [lindex $reply 0] in {map array}} {
            set conn(resp) [expr {[lindex $reply 0] eq "map" ? 3 : 2}]
        }
        return [plain $reply]
    }
    set rest [lrange $args 1 end]
    switch -- $word {
        -send {send conn $rest}
        -typed {send conn $rest; return [reply conn]}
        -read {return [plain [reply conn]]}
        -readtyped {return [reply conn]}
        -push {return [plain [nextPush conn]]}
        -pushes {return [takePushes conn]}
        -message {return [plain [expr {$conn(resp) == 3 ? [nextPush conn] : [reply conn]}]]}
        -write {puts -nonewline $conn(channel) [lindex $rest 0]; flush $conn(channel)}
        -timeout {set conn(timeout) [lindex $rest 0]}
        -channel {return $conn(channel)}
        -resp {return $conn(resp)}
        -closed {return [waitClosed conn]}
        -close {
            close $conn(channel)
            unset conn
            interp alias {} $handle {}
        }
        default {error "client: unknown word $word"}
    }
    return
}

# The bytes of a request.
proc resp::encode {words} {
    set out "*[llength $words]\r\n"
    foreach word $words {append out "\$[string length $word]\r\n$word\r\n"}
    return $out
}

proc resp::send {connName words} {
    upvar 1 $connName conn
    puts -nonewline $conn(channel) [encode $words]
    flush $conn(channel)
}

# Waits until the channel has bytes, or has ended.
proc resp::waitReadable {channel timeout} {
    if {[chan pending input $channel] > 0} return
    set ::resp::ready($channel) 0
    set timer [after $timeout [list set ::resp::ready($channel) timeout]]
    chan event $channel readable [list set ::resp::ready($channel) 1]
    vwait ::resp::ready($channel)
    after cancel $timer
    chan event $channel readable {}
    set result $::resp::ready($channel)
    unset ::resp::ready($channel)
    if {$result eq "timeout"} {
        return -code error -errorcode {RESP TIMEOUT} "no reply within $timeout ms"
    }
}

# The next reply, typed. Pushes that come first are queued.
proc resp::reply {connName} {
    upvar 1 $connName conn
    while 1 {
        waitReadable $conn(channel) $conn(timeout)
        set item [item $conn(channel)]
        if {[lindex $item 0] ne "push"} {return $item}
        lappend conn(pushes) $item
    }
}

proc resp::nextPush {connName} {
    upvar 1 $connName conn
    if {[llength $conn(pushes)] == 0} {
        waitReadable $conn(channel) $conn(timeout)
        set item [item $conn(channel)]
        if {[lindex $item 0] ne "push"} {error "expected a push, got: $item"}
        return $item
    }
    set conn(pushes) [lassign $conn(pushes) first]
    return $first
}

proc resp::takePushes {connName} {
    upvar 1 $connName conn
    set taken [lmap push $conn(pushes) {plain $push}]
    set conn(pushes) {}
    return $taken
}

proc resp::waitClosed {connName} {
    upvar 1 $connName conn
    waitReadable $conn(channel) $conn(timeout)
    set rest [read $conn(channel) 1]
    if {$rest ne "" || ![eof $conn(channel)]} {error "expected the end of the connection, got bytes"}
}

proc resp::line {channel} {
    if {[gets $channel line] < 0} {
        return -code error -errorcode {RESP EOF} "I/O error: the server closed the connection"
    }
    if {[string index $line end] ne "\r"} {error "protocol: line without CR: $line"}
    return [string range $line 0 end-1]
}

proc resp::bytes {channel count} {
    set data [read $channel [expr {$count + 2}]]
    if {[string length $data] != $count + 2} {
        return -code error -errorcode {RESP EOF} "I/O error: the server closed the connection"
    }
    if {[string range $data end-1 end] ne "\r\n"} {error "protocol: string without CRLF"}
    return [string range $data 0 end-2]
}

proc resp::items {channel count} {
    set list {}
    for {set i 0} {$i < $count} {incr i} {lappend list [item $channel]}
    return $list
}

# Reads one item as {type value}. Types: status error integer bulk null array map set push double bool
# bignumber verbatim. An attribute is read and put before its item as {attribute value item}.
proc resp::item {channel} {
    set line [line $channel]
    set rest [string range $line 1 end]
    switch -- [string index $line 0] {
        + {return [list status $rest]}
        - {return [list error $rest]}
        : {return [list integer $rest]}
        $ {
            if {$rest == -1} {return {null bulk}}
            return [list bulk [bytes $channel $rest]]
        }
        * {
            if {$rest == -1} {return {null array}}
            return [list array [items $channel $rest]]
        }
        _ {return {null null}}
        % {return [list map [items $channel [expr {2 * $rest}]]]}
        ~ {return [list set [items $channel $rest]]}
        > {return [list push [items $channel $rest]]}
        , {return [list double $rest]}
        # {return [list bool [string equal $rest t]]}
        ( {return [list bignumber $rest]}
        = {return [list verbatim [bytes $channel $rest]]}
        ! {return [list error [bytes $channel $rest]]}
        | {
            set attribute [items $channel [expr {2 * $rest}]]
            return [list attribute $attribute [item $channel]]
        }
    }
    error "protocol: unknown reply type: $line"
}

# The plain form of a typed item; an error at the outermost level is thrown.
proc resp::plain {item} {
    if {[lindex $item 0] eq "error"} {
        return -code error -errorcode [list RESP ERROR] [lindex $item 1]
    }
    return [strip $item]
}

proc resp::strip {item} {
    lassign $item type value
    switch -- $type {
        array - map - set - push {return [lmap part $value {strip $part}]}
        null {return {}}
        verbatim {return [string range $value 4 end]}
        attribute {return [strip [lindex $item 2]]}
        default {return $value}
    }
}
