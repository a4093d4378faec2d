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

# What INFO commandstats has for these commands, and the times of all slots that have one, after `script`: {sum {slot us ...}}.
proc times_of {commands script} {
    r flushall
    r config resetstat
    uplevel 1 $script
    set sum 0
    set info [r info commandstats]
    foreach command $commands {
        if {![regexp "cmdstat_$command:calls=\\d+,usec=(\\d+)," $info - us]} {fail "no statistics of $command: $info"}
        incr sum $us
    }
    set slots {}
    foreach entry [r cluster slot-stats slotsrange 0 16383] {
        set us [dict get [lindex $entry 1] cpu-usec]
        if {$us} {lappend slots [lindex $entry 0] $us}
    }
    return [list $sum $slots]
}

# Runs a command that waits, and `script` meanwhile.
proc waiting {words script} {
    set client [connect]
    set ::waiting_id [$client client id]
    $client -send {*}$words
    wait_for_condition 100 10 {[info_field blocked_clients] == 1}
    uplevel 1 $script
    catch {$client -read}
}

start_server [list tags {cluster} overrides [list cluster-enabled yes cluster-slot-stats-enabled yes \
    enable-module-command yes loadmodule [list [file normalize build/modules/hello_type.so]]]] {
    r module load [file normalize build/modules/hello_blocked.so]
    r module load [file normalize build/modules/calls.so]
    r cluster addslots 3300 [r cluster keyslot c]
    r config set cluster-require-full-coverage no
    cluster_wait_ok 0
    set busy "for i = 1, 1e5 do end"
    set sets "$busy server.call('set', 'b', 1)"
    r function load "#!lua name=one\nserver.register_function('one', function() $sets end)"
    r function load "#!lua name=any\nserver.register_function{function_name='any', flags={'allow-cross-slot-keys'}, callback=function() $sets end}"

    # The commands whose time is that of slot 3300; {}: no slot gets any.
    foreach {name commands script} {
        {plain commands} {set get} {for {set i 0} {$i < 50} {incr i} {r set b 1; r get b}}
        {commands in a pipeline} set {
            set raw [raw_connect]
            raw_send $raw [string repeat "SET b 1\r\n" 200]
            for {set i 0} {$i < 200} {incr i} {assert_equal +OK [raw_line $raw]}
        }
        {a command that fails} {set lpush} {r set b 1; catch {r lpush b 1}}
        {a command whose reply is skipped} set {
            set client [connect]
            $client -send client reply skip
            $client -send set b 1
            $client ping
        }
        EXEC exec {r multi; r set b 1; r get b; r exec}
        {EXEC, and another command} {exec set} {r multi; r get b; r exec; r set b 1}
        {EXEC with a script of the slot} exec {r multi; r eval "#!lua\n$sets" 0; r exec}
        {EXEC with a script of any slot} {} {r multi; r set b 1; r eval $sets 0; r exec}
        {a script with a header} eval {r eval "#!lua\n$sets" 0}
        {a script with a header and keys} eval {r eval "#!lua\n$sets" 1 b}
        {a script whose last command has no key} {} {r eval "#!lua\n$sets server.call('ping')" 1 b}
        {a script whose last command has a key} eval {r eval "#!lua\nserver.call('ping') $sets" 1 b}
        {a script with allow-cross-slot-keys} {} {r eval "#!lua flags=allow-cross-slot-keys\n$sets" 1 b}
        {a script without a header} {} {r eval $sets 1 b}
        {a script without a header that runs nothing} eval {r eval $busy 1 b}
        {a script that is known by its digest} evalsha {r evalsha [r script load "#!lua\n$sets"] 0}
        {a function} fcall {r fcall one 0}
        {a function with allow-cross-slot-keys} {} {r fcall any 1 b}
        {a command that has waited} {blpop lpush} {waiting {blpop b 0} {r lpush b 1}}
        {a wait that has timed out} blpop {for {set i 0} {$i < 3} {incr i} {r blpop b 0.01}}
        {waits that others end} {blpop xread} {
            waiting {blpop b 0} {r client unblock $::waiting_id error}
            waiting {xread block 0 streams b $} {r client unblock $::waiting_id timeout}
        }
        {commands of a module} {hello.row.add hello.row.get} {r hello.row.add b 1 2 3; r hello.row.get b}
        {a command of a module that has waited} {set hello.take} {waiting {hello.take b 0} {r set b 1}}
        {what a module without keys runs} {} {r calls.run E set b 1}
        {what a module runs for a script} {} {r eval "#!lua\nreturn server.call('calls.run', 'E', 'set', 'b', 1)" 1 b}
    } {
        test "cpu-usec is the usec of commandstats: $name" {
            lassign [times_of $commands $script] sum slots
            if {[llength $commands] && $sum} {
                assert_equal [list 3300 $sum] $slots
            } else {
                assert_equal {} $slots
            }
        }
    }

    test {cpu-usec of two slots adds up to the usec of commandstats} {
        lassign [times_of {set get} {for {set i 0} {$i < 200} {incr i} {r set b 1; r get c; r set c 1; r get b}}] sum slots
        assert_equal 2 [dict size $slots]
        assert_equal $sum [tcl::mathop::+ {*}[dict values $slots]]
    }

    test {cpu-usec is the usec of commandstats while clients track and monitor} {
        set monitor [connect 2]
        $monitor monitor
        r client tracking on bcast
        lassign [times_of {set get} {r set b 1; r get b}] sum slots
        assert_equal [list 3300 $sum] $slots
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
