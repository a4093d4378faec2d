# SPDX-License-Identifier: BSD-3-Clause
#
# Replicas made of a raw socket (support/raw.tcl): they synchronise, then read the stream as bytes.
#
#   set s [replica_connect ?capa eof capa psync2 version 9.1.2 ...?]   after REPLCONF with these words
#   replica_psync $s ?id offset?      sends PSYNC
#   replica_answer $s                 the line that follows keep-alive newlines
#   replica_dataset $s                the dataset, in either form
#   replica_sync ?words?              all of it: a dict with socket, id, offset, dataset; acknowledges the offset
#   replica_ack $s offset ?fsynced?
#   replica_next $s                   the next request of the stream as a list; PING and SELECT are as any other
#   replica_expect $s word ...        the next request other than PING is this one

proc resp_request {args} {
    set out "*[llength $args]\r\n"
    foreach word $args {append out "\$[string length $word]\r\n$word\r\n"}
    return $out
}

proc replica_connect {{words {capa eof capa psync2 version 9.1.2}}} {
    set s [raw_connect]
    if {[llength $words]} {
        raw_send $s [resp_request replconf listening-port 7777 {*}$words]
        assert_equal +OK [raw_line $s]
    }
    return $s
}

proc replica_psync {s {id ?} {offset -1}} {
    raw_send $s [resp_request psync $id $offset]
}

proc replica_answer {s} {
    return [string trimleft [raw_line $s] "\n"]
}

proc replica_dataset {s} {
    set head [replica_answer $s]
    if {![regexp {^\$EOF:(.{40})$} $head -> mark]} {
        assert_match {$[0-9]*} $head
        return [raw_read $s [string range $head 1 end]]
    }
    while {[set end [string first $mark $::raw_buffer($s)]] < 0} {
        if {![raw_more $s]} {fail "connection closed within the dataset"}
    }
    set dataset [raw_read $s $end]
    raw_read $s 40
    return $dataset
}

proc replica_sync {{words {capa eof capa psync2 version 9.1.2}}} {
    set s [replica_connect $words]
    replica_psync $s
    assert_equal FULLRESYNC [string range [lindex [set answer [replica_answer $s]] 0] 1 end]
    set dataset [replica_dataset $s]
    replica_ack $s [lindex $answer 2]
    wait_for_condition 200 20 {![string match *state=wait_bgsave* [r info replication]]}
    return [dict create socket $s id [lindex $answer 1] offset [lindex $answer 2] dataset $dataset]
}

proc replica_ack {s offset {fsynced {}}} {
    if {$fsynced eq ""} {
        raw_send $s [resp_request replconf ack $offset]
    } else {
        raw_send $s [resp_request replconf ack $offset fack $fsynced]
    }
}

proc replica_next {s} {
    set count [string range [replica_answer $s] 1 end]
    set words {}
    for {set i 0} {$i < $count} {incr i} {
        set len [string range [raw_line $s] 1 end]
        lappend words [string range [raw_read $s [expr {$len + 2}]] 0 end-2]
    }
    return $words
}

proc replica_expect {s args} {
    while {[set words [replica_next $s]] eq "ping"} {}
    assert_equal $args $words
}
