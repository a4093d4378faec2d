# SPDX-License-Identifier: BSD-3-Clause
#
# A scripted primary: the test plays the other end of a replica's link, byte by byte. Every wait is bounded.
#
#   primary_listen                      listens on a free port, in ::primary_port
#   set c [primary_accept]              the next connection, a channel of raw.tcl
#   primary_request $c                  the words of the next request
#   primary_handshake $c                answers up to PSYNC; returns the words of PSYNC. The others are in ::primary_seen
#   primary_full_sync $c id offset rdb  sends the dataset with an end mark
#   primary_detach                      the current server becomes a primary without data
#   set c [primary_asked]               it becomes a replica, which has asked for a synchronisation
#   set c [primary_attach id offset pairs]   the three together: it has loaded these strings
#   primary_send $c word word ...       one command of the stream
#   primary_close                       ends listening and all connections
#   rdb_of {key value ...}              a file with these strings

# The open connections. raw_close removes them: the name of a closed channel may be given to another one.
array set ::raw_accepted {}

proc primary_accepted {channel host port} {
    chan configure $channel -translation binary -buffering none -blocking 0
    set ::raw_buffer($channel) {}
    set ::raw_accepted($channel) {}
    lappend ::primary_waiting $channel
}

proc primary_listen {} {
    set ::primary_waiting {}
    set ::primary_socket [socket -server primary_accepted -myaddr 127.0.0.1 0]
    set ::primary_port [lindex [chan configure $::primary_socket -sockname] 2]
}

proc primary_close {} {
    close $::primary_socket
    primary_drop
}

# Ends the connections made so far.
proc primary_drop {} {
    foreach channel [array names ::raw_accepted] {raw_close $channel}
    set ::primary_waiting {}
}

proc primary_accept {} {
    set bound [after 20000 {set ::primary_waiting none}]
    while {$::primary_waiting eq ""} {vwait ::primary_waiting}
    after cancel $bound
    if {$::primary_waiting eq "none"} {
        set ::primary_waiting {}
        fail "the replica does not connect"
    }
    set ::primary_waiting [lassign $::primary_waiting channel]
    return $channel
}

# The next request, without the blank lines before it; an inline one is a list of its words.
proc primary_request {c} {
    while 1 {
        set line [primary_line $c]
        if {$line ne ""} break
    }
    if {[string index $line 0] ne "*"} {return [split $line]}
    set words {}
    for {set i 0} {$i < [string range $line 1 end]} {incr i} {
        set len [string range [raw_line $c] 1 end]
        lappend words [raw_read $c $len]
        raw_read $c 2
    }
    return $words
}

# Up to a line feed, with or without CR.
proc primary_line {c} {
    while {[set end [string first "\n" $::raw_buffer($c)]] < 0} {
        if {![raw_more $c]} {fail "connection closed, has only: $::raw_buffer($c)"}
    }
    return [string trimright [raw_take $c [expr {$end + 1}]] "\r\n"]
}

proc primary_handshake {c} {
    set ::primary_seen {}
    while 1 {
        set words [primary_request $c]
        lappend ::primary_seen $words
        switch -- [lindex $words 0] {
            PSYNC {return $words}
            PING {raw_send $c "+PONG\r\n"}
            default {raw_send $c "+OK\r\n"}
        }
    }
}

proc primary_full_sync {c id offset rdb} {
    set mark [string repeat m 40]
    raw_send $c "+FULLRESYNC $id $offset\r\n\$EOF:$mark\r\n$rdb$mark"
}

proc primary_detach {} {
    catch {r replicaof no-one force} ;# also if the data are known to differ; a real server has only the other form
    r replicaof no one
    primary_drop
    r flushall
}

proc primary_asked {} {
    r replicaof 127.0.0.1 $::primary_port
    set c [primary_accept]
    primary_handshake $c
    return $c
}

proc primary_attach {id offset pairs} {
    primary_detach
    set c [primary_asked]
    primary_full_sync $c $id $offset [rdb_of $pairs]
    primary_wait_ack $c $offset
    return $c
}

proc primary_encode {words} {
    set out "*[llength $words]\r\n"
    foreach word $words {append out "\$[string length $word]\r\n$word\r\n"}
    return $out
}

proc primary_send {c args} {raw_send $c [primary_encode $args]}

# Reads acknowledgements until one is at this offset: it comes when the stream is silent, at the latest within a second or
# two.
proc primary_wait_ack {c offset} {
    for {set i 0} {$i < 20} {incr i} {
        set words [primary_request $c]
        if {[lrange $words 0 1] ne {REPLCONF ACK}} {fail "unexpected: $words"}
        if {[lindex $words 2] == $offset} {return $words}
    }
    fail "acknowledged $words, not $offset"
}

# Length of a command in the stream.
proc primary_length {args} {string length [primary_encode $args]}

# Without a checksum.
proc rdb_of {pairs} {
    set out "REDIS0011\xfe\x00"
    foreach {key value} $pairs {
        append out "\x00" [binary format c [string length $key]] $key
        append out [binary format c [string length $value]] $value
    }
    return "$out\xff[string repeat \x00 8]"
}
