# SPDX-License-Identifier: BSD-3-Clause
#
# What operators see of a Sentinel: the metrics port, and valkey-cli --sentinel-view.

source $::tests_dir/support/metrics.tcl

proc watched_page {port path} {
    set s [raw_connect 127.0.0.1 $port]
    raw_send $s "GET $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    set text [raw_rest $s]
    raw_close $s
    if {![string match "HTTP/1.1 200 *" $text]} {fail $text}
    return $text
}

start_watched {1 2 {set {refused-after-milliseconds 200}}} {
    set first [sentinel_first]
    set old [srv port]
    set new [srv -1 port]

    test {the metrics port of a Sentinel tells what it watches} {
        for {set try 0} {$try < 10} {incr try} {
            set ::http [free_port]
            # A Sentinel has no CONFIG: the port is in its file.
            set f [open [srv -$first config] a]
            puts $f "metrics-port $::http"
            close $f
            with_node $first {stop_server; continue_server}
            if {[string match "*Metrics and status page available*" [server_log -$first]]} break
        }
        sentinel_wait_known
        set text [watched_page $::http /metrics]
        set labels "master_name=\"mym\",master_address=\"127.0.0.1:$old\""
        foreach line [list "master_status{$labels,status=\"ok\"} 1" "master_slaves{$labels} 1" "master_ok_slaves{$labels} 1" \
            "master_sentinels{$labels} 2" "master_ok_sentinels{$labels} 2" "master_ckquorum_status{$labels} 1" \
            "master_last_failover_timestamp_seconds{$labels,why=\"\"} 0" "masters 1" \
            "instance_up{master_name=\"mym\",kind=\"slave\",address=\"127.0.0.1:$new\"} 1"] {
            if {[string first "\nredis_sentinel_$line\n" $text] < 0} {fail "no $line in $text"}
        }
        assert_match "*\"name\":\"mym\",\"address\":\"127.0.0.1:$old\",\"status\":\"ok\",*" [watched_page $::http /status.json]
    }

    if {[browser] ne ""} {
        test {the status page of a Sentinel in a browser shows what it watches, and nothing about data} {
            assert_json [page_shown ""] [list d\["console"\] {[]} {d["text"]["alarm"]} "" {d["tables"]["primaries"][1][0]} mym \
                {len(d["tables"]["instances"])} 3 {"Memory" in d["text"]["tiles"] or "Keys" in d["text"]["tiles"]} False]
        }
    }

    test {valkey-cli --sentinel-view prints a table once on a pipe} {
        set table [exec [file dirname $::binary]/valkey-cli -h [srv -$first host] -p [srv -$first port] --sentinel-view]
        set lines [split $table \n]
        assert_equal 4 [llength $lines]
        assert_match "NAME *ADDRESS *STATE *" [lindex $lines 0]
        assert_match "mym *127.0.0.1:$old * ok *quorum 2 of 2, epoch 0, last failover -" [lindex $lines 1]
        assert_match "  replica *127.0.0.1:$new * ok *link ok, offset *, priority 100" [lindex $lines 2]
        assert_match "  sentinel *127.0.0.1:[srv -[expr {$first + 1}] port] * ok *" [lindex $lines 3]
    }

    test {both tell when the last failover was, and why} {
        sentinel_kill 0
        sentinel_wait_primary $new
        set text [watched_page $::http /metrics]
        if {![regexp "last_failover_timestamp_seconds\\S*127.0.0.1:$new\",why=\"(\[^\"\]+)\"\\S* 1\\d+" $text all why]} {fail $text}
        assert {$why in {"connections are refused" "no valid reply to PING" "another Sentinel"}}
        set table [exec [file dirname $::binary]/valkey-cli -h [srv -$first host] -p [srv -$first port] --sentinel-view]
        assert_match "*last failover 20*, *" $table
        assert_match "*:$old *disconnected*" $table
    }
}
