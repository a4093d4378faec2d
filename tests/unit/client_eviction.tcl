# SPDX-License-Identifier: BSD-3-Clause
#
# maxmemory-clients: when the clients use more memory in total, the largest are disconnected first,
# except those with NO-EVICT. The tests wait for INFO's evicted_clients.

# A client with about `bytes` of an incomplete request. It may be closed while it sends.
proc holder {bytes} {
    set s [raw_connect]
    catch {raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$10000000\r\n" [string repeat x $bytes]}
    return $s
}

# Waits until the clients use `bytes` in total.
proc wait_input {bytes} {
    wait_for_condition 500 10 {[info_field mem_clients_normal] >= $bytes}
}

# The fields of the client that does not ask; "" if there is none.
proc other_client {} {
    set line [lsearch -inline -not [split [string trim [r client list]] \n] *cmd=client|list*]
    return [expr {$line eq "" ? "" : [regsub -all {([^ =]+)=([^ ]*)} $line {\1 {\2}}]}]
}

# Closes the clients of the previous test, resets the counters and excludes the observing client
# from eviction.
proc begin {} {
    r config set maxmemory-clients 0 maxmemory 0
    r client no-evict on
    wait_for_condition 500 10 {[info_field connected_clients] == 1}
    r config resetstat
}

# The hostile build keeps what it has read in further buffers for a while, so there a client may be above a limit that
# its request is below.
set exact [expr {![string match *hostile* $::binary]}]

start_server {tags {client-eviction} overrides {maxmemory-clients 0}} {
    test {without a limit no client is evicted} {
        begin
        holder 2000000
        wait_input 2000000
        assert_equal 0 [info_field evicted_clients]
        assert_equal 2 [info_field connected_clients]
    }

    test {a client that exceeds the limit by itself is closed} {
        begin
        r config set maxmemory-clients 1mb
        set s [holder 2000000]
        wait_for_condition 500 10 {[info_field evicted_clients] == 1}
        wait_for_condition 500 10 {[info_field connected_clients] == 1}
        assert_match "*Evicting client: id=*" [server_log]
    }

    test {a request that is larger than the limit does not run} {
        begin
        foreach {limit bytes runs} {
            100kb 90000 1 100kb 102400 0 100kb 110000 0 1mb 1000000 1 1mb 1048576 0 10mb 10000000 1 10mb 10485760 0 10mb 10905190 0
        } {
            if {$runs && !$exact} continue
            r config set maxmemory-clients $limit
            r del k
            set s [raw_connect]
            catch {raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$$bytes\r\n" [string repeat x $bytes] "\r\n"}
            if {$runs} {assert_equal +OK [raw_line $s]} else {assert_equal "" [raw_rest $s]}
            raw_close $s
            assert_equal $runs [r exists k] "$limit $bytes"
        }
    } tls:skip

    test {no client is listed with a tot-mem above the limit, and none below it is closed} {
        begin
        set limit 440401
        r config set maxmemory-clients $limit
        # By a single argument, whose block the allocator rounds up, and by many small ones.
        foreach kind {large large large large large large small small small small} share {
            0.9 0.95 0.99 1.0 1.2 2.0 0.3 0.6 0.9 1.1
        } {
            set bytes [expr {int($limit * $share)}]
            set s [raw_connect]
            set head "*1\r\n\$$bytes\r\n"
            set payload [string repeat v [expr {$bytes - 1}]]
            if {$kind eq "small"} {
                set head "*1000000\r\n"
                set payload [string repeat "\$1\r\nx\r\n" [expr {$bytes / 7}]]
            }
            catch {raw_send $s $head $payload}
            wait_for_condition 500 10 {
                [set line [other_client]] eq "" || [dict get $line qbuf] >= [string length $payload]
            } else {
                fail "$kind $share: $line"
            }
            # A list that is made in the turn in which the last bytes have come still has the client.
            if {$exact && $line ne "" && [dict get $line tot-mem] > $limit} {
                set line [other_client]
                assert {$line eq "" || [dict get $line tot-mem] <= $limit} "$kind $share: $line"
            }
            if {$exact && $kind eq "large" && $share < 1} {assert {$line ne ""} $share}
            if {$share >= 1} {assert_equal "" $line $share}
            raw_close $s
            wait_for_condition 500 10 {[info_field connected_clients] == 1}
        }
    } tls:skip

    test {DEBUG CLIENT-EVICTION counts clients by powers of two of their memory} {
        begin
        assert_error "ERR maxmemory-clients is disabled." {r debug client-eviction}
        r client no-evict off
        r config set maxmemory-clients 10mb
        holder 1600000
        wait_input 1600000 ;# of all clients, so the holder may have somewhat less
        set lines [split [string trimright [r debug client-eviction] "\n"] "\n"]
        assert_equal 19 [llength $lines]
        assert_match "bucket          0 -      32767: tot-mem: *, clients: 1" [lindex $lines 0]
        set big [lsearch -all -inline [lrange $lines 1 end] "*clients: 1"]
        assert_equal 1 [llength $big]
        scan [lindex $big 0] "bucket %d - %d: tot-mem: %d, clients: 1" from to bytes
        assert {$bytes >= 1500000 && $from <= $bytes && $bytes <= $to && $to + 1 == 2 * $from}
        assert_equal "bucket 2147483648 - 4294967295: tot-mem:          0, clients: 0" [lindex $lines 17]
        assert_equal "bucket 4294967296+            : tot-mem:          0, clients: 0" [lindex $lines 18]
        r client no-evict on
    }

    test {a lower limit closes the largest, and no more than needed} {
        begin
        r config set maxmemory-clients 0
        set small [connect]
        set small_id [$small client id]
        set big [holder 3000000]
        wait_input 3000000
        set medium [holder 1000000]
        wait_input 4000000
        r config set maxmemory-clients 3mb
        wait_for_condition 500 10 {[info_field evicted_clients] == 1}
        assert_equal 3 [info_field connected_clients]
        assert_equal PONG [$small ping]
        r config set maxmemory-clients 500kb
        wait_for_condition 500 10 {[info_field evicted_clients] == 2}
        assert_equal PONG [$small ping]
        assert_equal $small_id [$small client id]
    }

    test {CLIENT NO-EVICT protects a client while others are evicted} {
        begin
        r config set maxmemory-clients 0
        set spared [connect]
        assert_equal OK [$spared client no-evict on]
        set id [$spared client id]
        $spared -write "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$10000000\r\n[string repeat x 2000000]"
        wait_input 2000000
        set other [connect]
        $other ping
        r config set maxmemory-clients 1mb
        wait_for_condition 500 10 {[info_field evicted_clients] == 1}
        assert_match "*id=$id *" [r client list]
        r config set maxmemory-clients 0
    }

    test {the limit may be a share of maxmemory} {
        begin
        r config set maxmemory 20mb maxmemory-clients 5%
        assert_equal {maxmemory-clients 5%} [r config get maxmemory-clients]
        holder 2000000
        wait_for_condition 500 10 {[info_field evicted_clients] == 1}
        r config set maxmemory 0
        holder 2000000
        wait_input 2000000
        assert_equal 1 [info_field evicted_clients]
        r config set maxmemory-clients 0
    }

    test {a queue of MULTI and unread replies count as well} {
        begin
        r set big [string repeat v 100000]
        r config set maxmemory-clients 1mb
        set c [connect]
        $c multi
        set killed 0
        for {set i 0} {$i < 50 && !$killed} {incr i} {
            set killed [catch {$c set k [string repeat q 100000]}]
        }
        assert_equal 1 $killed
        assert_equal 1 [info_field evicted_clients]
        set s [raw_connect]
        raw_send $s [string repeat "GET big\r\n" 400]
        wait_for_condition 500 10 {[info_field evicted_clients] == 2}
        r config set maxmemory-clients 0
    }
}
