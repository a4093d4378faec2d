# CLUSTER SLOT-STATS: keys, processor time and bytes of slots. The numbers are those of a released server.

# key-count, whether there is processor time, bytes in and out of slot 3300.
proc usage {{index 0}} {
    set stats [lindex [r -$index cluster slot-stats slotsrange 3300 3300] 0 1]
    return [list [dict get $stats key-count] [expr {[dict get $stats cpu-usec] > 0}] [dict get $stats network-bytes-in] \
        [dict get $stats network-bytes-out]]
}

proc reset {} {
    for {set i 0} {$i < [llength $::servers]} {incr i} {r -$i config resetstat}
}

# The bytes of the commands, and then of what is counted for slot 3300.
proc bytes_of {args} {
    reset
    foreach command $args {catch {r {*}$command}}
    return [lrange [usage] 2 3]
}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-slot-stats-enabled yes cluster-databases 2}} {
    r cluster addslotsrange 0 5460
    r cluster addslotsrange 6000 6010
    r config set cluster-require-full-coverage no
    cluster_wait_ok 0

    test {CLUSTER SLOT-STATS refuses wrong arguments} {
        foreach {words error} {
            {slotsrange 5 1} {ERR Start slot number 5 is greater than end slot number 1}
            {slotsrange x 1} {ERR Invalid or out of range slot}
            {slotsrange 0 16384} {ERR Invalid or out of range slot}
            {slotsrange 0} {ERR unknown subcommand or wrong number of arguments for 'slot-stats'. Try CLUSTER HELP.}
            {slotsrange 0 1 2} {ERR unknown subcommand or wrong number of arguments for 'slot-stats'. Try CLUSTER HELP.}
            {foo 1} {ERR unknown subcommand or wrong number of arguments for 'slot-stats'. Try CLUSTER HELP.}
            {orderby} {ERR wrong number of arguments for 'cluster|slot-stats' command}
            {orderby foo} {ERR Unrecognized sort metric for ORDERBY.}
            {orderby key-count limit 0} {ERR Limit has to lie in between 1 and 16384 (maximum number of slots).}
            {orderby key-count limit 16385} {ERR Limit has to lie in between 1 and 16384 (maximum number of slots).}
            {orderby key-count limit x} {ERR Limit has to lie in between 1 and 16384 (maximum number of slots).}
            {orderby key-count limit} {ERR syntax error}
            {orderby key-count asc x} {ERR syntax error}
            {orderby key-count asc desc} {ERR Multiple filters of the same type are disallowed.}
            {orderby key-count limit 1 limit 2} {ERR Multiple filters of the same type are disallowed.}
        } {
            assert_error $error {r cluster slot-stats {*}$words}
        }
    }

    test {slots of this node, in the order of a counter, ties by slot} {
        assert_equal {5459 5460 6000} [lmap entry [r cluster slot-stats slotsrange 5459 6000] {lindex $entry 0}]
        r mset b 1 x{b} 2
        r select 1
        r set b 1
        r select 0
        r set 06S 1
        assert_equal {3300 0 1} [lmap entry [r cluster slot-stats orderby key-count limit 3] {lindex $entry 0}]
        assert_equal {1 2} [lmap entry [r cluster slot-stats orderby KEY-COUNT LIMIT 2 ASC] {lindex $entry 0}]
        assert_equal {3 1} [lmap entry [r cluster slot-stats orderby key-count limit 2 desc] {dict get [lindex $entry 1] key-count}]
        assert_equal 3300 [lindex [r cluster slot-stats orderby network-bytes-in limit 1] 0 0]
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed cluster slot-stats slotsrange 0 0] 1 0 1 1 0]
        r flushall
    }

    test {bytes of requests and replies, in and out} {
        assert_equal {27 5} [bytes_of {set b 1}]
        assert_equal {20 7} [bytes_of {get b}]
        assert_equal {29 68} [bytes_of {lpush b 1}]
        assert_equal {0 0} [bytes_of {get b c} {get a} ping {publish b x} {cluster keyslot b}]
        assert_equal {36 19} [bytes_of {set b 1 foo}]
        assert_equal {36 4} [bytes_of {spublish b hello}]
        assert_equal {76 41} [bytes_of multi {set b 2} {get b} exec]
        assert_equal {27 0} [bytes_of multi {set b 2} discard]
        assert_equal {0 0} [bytes_of multi ping exec]
        assert_equal {0 7} [bytes_of {eval {return redis.call("get",KEYS[1])} 1 b}]
        assert_equal {45 4} [bytes_of {eval_ro {return 1} 1 b}]
    }

    test {a script that is bound to one slot by its header counts for the slot that it uses} {
        set busy "for i = 1, 1e5 do end server.call('set', 'b', 1)"
        foreach {script counts} [list "#!lua\n$busy" 1 "#!lua flags=allow-cross-slot-keys\n$busy" 0 $busy 0 "#!lua\nreturn 1" 0] {
            reset
            r eval $script 0
            assert_equal $counts [lindex [usage] 1] $script
        }
        r function load "#!lua name=one\nserver.register_function('one', function() $busy end)"
        reset
        r fcall one 0
        assert_equal 1 [lindex [usage] 1]
        r function flush
    }

    test {inline requests, and those that wait} {
        reset
        set raw [raw_connect]
        raw_send $raw "GET b\r\n"
        raw_line $raw
        assert_equal 7 [lindex [usage] 2]
        reset
        set client [connect]
        $client -send blpop l{b} 0
        wait_for_condition 100 10 {[info_field blocked_clients] == 1}
        assert_equal {0 0 0} [lrange [usage] 1 end]
        r rpush l{b} 1
        $client -read
        assert_equal {64 25} [lrange [usage] 2 3]
        reset
        $client blpop l{b} 0.01
        assert_equal {0 0} [lrange [usage] 2 3]
    }

    test {messages count for each subscriber} {
        set clients [list [connect 2] [connect 2]]
        foreach client $clients {$client ssubscribe b}
        assert_equal {36 76} [bytes_of {spublish b hello}]
    }

    test {counters are cleared with the owner of the slot, and when they are switched off} {
        r eval_ro {for i = 1, 1e5 do end} 1 b
        assert {[lindex [usage] 1]}
        r cluster delslots 3300
        assert_equal {} [r cluster slot-stats slotsrange 3300 3300]
        r cluster addslots 3300
        assert_equal {0 0 0} [lrange [usage] 1 end]
        r get b
        assert_equal 20 [lindex [usage] 2]
        r config set cluster-slot-stats-enabled no
        assert_equal key-count [dict keys [lindex [r cluster slot-stats slotsrange 3300 3300] 0 1]]
        assert_error "ERR Unrecognized sort metric for ORDERBY." {r cluster slot-stats orderby cpu-usec}
        r get b
        r config set cluster-slot-stats-enabled yes
        r get b
        assert_range [lindex [usage] 2] 20 40
    }
}

start_cluster {1 1 {tags {cluster} overrides {cluster-slot-stats-enabled yes repl-diskless-sync-delay 0}}} {
    test {what replicas receive counts for both} {
        reset
        r set b 1
        assert_equal 1 [r wait 1 0]
        wait_for_condition 100 10 {[lindex [usage 1] 2] == 27}
        assert_equal {27 32} [lrange [usage] 2 3]
        assert_equal {27 0} [lrange [usage 1] 2 3]
        assert_equal 1 [lindex [usage 1] 0]
        reset
        foreach command {multi {set b 2} {get b} exec} {r {*}$command}
        assert_equal {76 68} [lrange [usage] 2 3]
        wait_for_condition 100 10 {[lindex [usage 1] 2] == 27}
    }
}
