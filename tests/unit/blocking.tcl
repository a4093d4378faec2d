# Blocking commands: order of service, values, ends of waits, what INFO and CLIENT report meanwhile.
# Propagation is compared in helpers/compare_propagation.py.

proc wait_blocked {count} {
    wait_for_condition 500 10 {[info_field blocked_clients] == $count}
}

# Opens another client blocked in this command; returns when `count` clients are blocked.
proc waiter {count args} {
    set client [connect]
    $client -send {*}$args
    wait_blocked $count
    return $client
}

proc null_array {} {expr {[resp3] ? {null null} : {null array}}}
proc null_bulk {} {expr {[resp3] ? {null null} : {null bulk}}}

proc calls {command} {
    if {![regexp "cmdstat_$command:calls=(\\d+),\[^\n]*rejected_calls=(\\d+),failed_calls=(\\d+)" \
            [r info commandstats] all calls rejected failed]} {return {0 0 0}}
    return [list $calls $rejected $failed]
}

start_server {tags {blocking} overrides {enable-debug-command yes}} {
    test {a blocked client is served as soon as the key exists, whichever command creates it} {
        foreach {command reply rest} {
            {blpop k 0} {k 1} {2 3}              {brpop nope k 0} {k 3} {1 2}
            {blmove k d left right 0} 1 {2 3}    {brpoplpush k d 0} 3 {1 2}
            {blmpop 0 2 nope k left count 2} {k {1 2}} 3
        } {
            r del k d
            set client [waiter 1 {*}$command]
            assert_equal 3 [r rpush k 1 2 3]
            assert_equal $reply [$client -read]
            assert_equal $rest [r lrange k 0 -1]
        }
        wait_blocked 0
        assert_equal 0 [info_field total_blocking_keys]
    }

    test {a blocking command takes existing elements immediately} {
        r del k d
        r rpush k 1 2 3 4 5 6
        assert_equal {k 1} [r blpop nope k 0]
        assert_equal {k 6} [r brpop k 0]
        assert_equal 2 [r blmove k d left left 0]
        assert_equal 5 [r brpoplpush k d 0]
        assert_equal {k {4 3}} [r blmpop 0 1 k right count 5]
        assert_equal 0 [r exists k]
    }

    test {the client that has waited longest is served first} {
        r del k
        set first [waiter 1 blpop k 0]
        set second [waiter 2 brpop k 0]
        set third [waiter 3 blmpop 0 1 k left count 10]
        set fourth [waiter 4 blpop k 0]
        assert_equal 5 [r rpush k 1 2 3 4 5]
        assert_equal {{k 1} {k 5} {k {2 3 4}}} [list [$first -read] [$second -read] [$third -read]]
        wait_blocked 1
        r rpush k x
        assert_equal {k x} [$fourth -read]
    }

    test {it is served after the command that created the key and before the next one} {
        r del k
        set client [waiter 1 blpop k 0]
        r -send rpush k 1
        r -send llen k
        r -send rpush k 2
        r -send lrange k 0 -1
        assert_equal {1 0 1 2} [list [r -read] [r -read] [r -read] [r -read]]
        assert_equal {k 1} [$client -read]
    }

    test {blocked clients see the result of a whole transaction} {
        r del k j
        set client [waiter 1 blpop j k 0]
        r multi
        r rpush k 1
        r del k
        r exec
        assert_equal 1 [info_field blocked_clients]
        r multi
        r rpush k a
        r rpush j b
        r exec
        assert_equal {j b} [$client -read]
        assert_equal a [r lpop k]
    }

    test {keys created in other ways unblock clients, too} {
        r select 9
        foreach steps {
            {{rename src k}} {{copy src k} {del src}} {{multi} {rename src k} {exec}}
            {{copy src k db 8} {del src} {swapdb 8 9}}
            {{move src 8} {select 8} {rename src k} {move k 9} {select 9}}
        } {
            r del k src
            set client [connect]
            $client select 9
            $client -send blpop k 0
            wait_blocked 1
            r rpush src v
            foreach step $steps {r {*}$step}
            assert_equal {k v} [$client -read]
        }
        r select 0
    }

    test {a key that SWAPDB brings after its time wakes nobody and stays until it is met} {
        r flushall
        r debug set-active-expire 0
        r select 8
        r set late v px 1
        r select 9
        set client [connect]
        $client select 9
        $client -send blpop late 0
        wait_blocked 1
        r debug sleep 0.005 ;# later than its time
        r swapdb 8 9
        assert_equal 1 [r dbsize]
        assert_equal 0 [r exists late]
        assert_equal 0 [r dbsize]
        $client -close
        r debug set-active-expire 1
        r select 0
    }

    test {a chain of moves is followed to its end} {
        r del a b c
        set one [waiter 1 blmove a b left right 0]
        set two [waiter 2 blmove b c left right 0]
        set three [waiter 3 blpop c 0]
        r rpush a v
        assert_equal {v v {c v}} [list [$one -read] [$two -read] [$three -read]]
        assert_equal 0 [r exists a b c]
        set self [waiter 1 blmove a a left right 0]
        r rpush a 1 2
        assert_equal {1 {2 1}} [list [$self -read] [r lrange a 0 -1]]
    }

    test {a key of another type does not unblock, and among the first keys it is an error} {
        r del k j
        set client [waiter 1 blpop j k 0]
        r set k v
        assert_equal 1 [info_field blocked_clients]
        r del k
        r set j v
        r rpush k x
        assert_error "WRONGTYPE *" {$client -read}
        assert_equal x [r lpop k]
        r del j
        set client [waiter 1 blmove k j left left 0]
        r set j v
        r rpush k x
        assert_error "WRONGTYPE *" {$client -read}
        assert_equal x [r lpop k]
        r del j
    }

    test {keys that are flushed or expire do not unblock, and the wait continues} {
        r flushall
        set client [waiter 1 blpop k 0]
        r multi
        r rpush k a
        r flushall
        r exec
        r multi
        r rpush k b
        r pexpire k -1
        r exec
        r multi
        r rpush k c
        r set k c
        r exec
        assert_equal 1 [info_field blocked_clients]
        r del k
        r rpush k d
        assert_equal {k d} [$client -read]
    }

    test {a key that expires before its command ends does not unblock} {
        r del k
        set client [waiter 1 blpop k 0]
        r multi
        r rpush k a
        r pexpire k 1
        r debug sleep 0.05
        r exec
        assert_equal {1 0} [list [info_field blocked_clients] [r exists k]]
        r rpush k b
        assert_equal {k b} [$client -read]
    }

    test {a wait times out with a null array} {
        r del k
        foreach command {
            {blpop k 0.01} {brpop k j 0.001} {blmove k j left left 0.01} {brpoplpush k j 1e-5} {blmpop 0.02 1 k left}
            {blpop k 0x1p-10} {blpop k 1e-320}
        } {assert_equal [null_array] [r -typed {*}$command]}
        assert_equal 0 [info_field total_blocking_keys]
        # Each has its own timeout, independent of their order.
        set long [waiter 1 blpop k 1000]
        set short [connect]
        $short -send blpop k 0.3
        set middle [connect]
        $middle -send blpop k 500
        assert_equal {} [$short -read]
        wait_blocked 2
        r rpush k 1 2
        assert_equal {{k 1} {k 2}} [list [$long -read] [$middle -read]]
    }

    test {times and arguments are refused in Valkey's order} {
        r del k
        r set s v
        foreach {command text} {
            {blpop k x} {ERR timeout is not a float or out of range}
            {blpop k nan} {ERR timeout is not a float or out of range}
            {blpop k {}} {ERR timeout is not a float or out of range}
            {blpop k -1} {ERR timeout is negative}
            {blpop k -inf} {ERR timeout is negative}
            {blpop k inf} {ERR timeout is out of range}
            {blpop k 1e400} {ERR timeout is out of range}
            {blpop k 9223372036854775} {ERR timeout is out of range}
            {blpop s -1} {ERR timeout is negative}
            {blpop s 1} {WRONGTYPE *}
            {brpop s 1} {WRONGTYPE *}
            {blmove s k left left 1} {WRONGTYPE *}
            {brpoplpush s k 1} {WRONGTYPE *}
            {blmpop 1 1 s left} {WRONGTYPE *}
            {blmove k k up left -1} {ERR syntax error}
            {blmove k k left left -1} {ERR timeout is negative}
            {brpoplpush k k x} {ERR timeout is not a float or out of range}
            {blmpop x 0 k left} {ERR numkeys should be greater than 0}
            {blmpop x 1 k left count} {ERR syntax error}
            {blmpop -1 1 k left count 0} {ERR count should be greater than 0}
            {blmpop -1 1 k left} {ERR timeout is negative}
            {blpop k} {ERR wrong number of arguments for 'blpop' command}
            {brpop k} {ERR wrong number of arguments for 'brpop' command}
            {blmove k k left left} {ERR wrong number of arguments for 'blmove' command}
            {brpoplpush k k} {ERR wrong number of arguments for 'brpoplpush' command}
            {blmpop 0 1 k} {ERR wrong number of arguments for 'blmpop' command}
        } {assert_error $text {r {*}$command}}
        assert_equal 0 [info_field blocked_clients]
    }

    test {commands inside EXEC do not block} {
        r del k
        r multi
        foreach command {{blpop k 0} {brpop k 0} {blmpop 0 1 k left} {blmove k k left left 0} {brpoplpush k k 0}} {
            r {*}$command
        }
        r rpush k v
        r blpop k 0
        assert_equal [list array [list [null_array] [null_array] [null_array] [null_bulk] [null_bulk] {integer 1} \
            {array {{bulk k} {bulk v}}}]] [r -typed exec]
    }

    test {CLIENT UNBLOCK ends a wait, as a timeout or with an error} {
        r del k
        set client [connect]
        set id [$client client id]
        assert_equal 0 [r client unblock $id]
        foreach {words ending} {{} time timeout time error error} {
            $client -send blmove k k left left 0
            wait_blocked 1
            assert_equal 1 [r client unblock $id {*}$words]
            if {$ending eq "time"} {
                assert_equal [null_array] [$client -readtyped]
            } else {
                assert_error "UNBLOCKED client unblocked via CLIENT UNBLOCK" {$client -read}
            }
        }
        assert_equal {0 0} [list [r client unblock $id] [info_field blocked_clients]]
        assert_error "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR" {r client unblock $id now}
    }

    test {commands sent after a blocked one run after it, in order} {
        r del k
        set client [connect]
        set id [$client client id]
        $client -send blpop k 0
        $client -send incr counter
        $client -send blpop k 0
        $client -send incr counter
        wait_blocked 1
        assert_equal 0 [r exists counter]
        r rpush k 1
        assert_equal {{k 1} 1} [list [$client -read] [$client -read]]
        wait_blocked 1
        assert_equal 1 [r get counter]
        r client unblock $id
        assert_equal {{} 2} [list [$client -read] [$client -read]]
        r del counter
    }

    test {half a request after a blocked command is kept} {
        r del k
        set raw [raw_connect]
        raw_send $raw "BLPOP k 0\r\n*2\r\n\$4\r\nECHO\r\n\$5\r\nhe"
        wait_blocked 1
        raw_send $raw "ll"
        r rpush k 1
        assert_equal "*2\r\n\$1\r\nk\r\n\$1\r\n1\r\n" [raw_read $raw 18]
        raw_send $raw "o\r\n"
        assert_equal "\$5\r\nhello\r\n" [raw_read $raw 11]
        close $raw
    } resp:2

    test {a client that disconnects while blocked takes no element} {
        r del k
        set client [connect]
        set id [$client client id]
        $client -send blpop k 0
        wait_blocked 1
        r multi
        r client kill id $id
        r rpush k 1
        r exec
        assert_equal 1 [r llen k]
        wait_blocked 0
        r del k
        set raw [raw_connect]
        raw_send $raw "BLPOP k 0\r\n"
        wait_blocked 1
        close $raw
        wait_blocked 0
        r rpush k 2
        assert_equal 2 [r lpop k]
        assert_equal 0 [info_field total_blocking_keys]
    }

    test {a pause holds back a blocking command before it blocks, and does not count as blocked} {
        r del k
        set client [connect]
        set id [$client client id]
        r client pause 100000 write
        $client -send blpop k 0
        wait_blocked 1
        assert_equal {0 0} [list [info_field total_blocking_keys] [r client unblock $id]]
        r client unpause
        wait_for_condition 500 10 {[info_field total_blocking_keys] == 1}
        # A pause does not affect clients that are already blocked: their timeouts continue.
        r client pause 100000 write
        assert_equal 1 [r client unblock $id]
        assert_equal {} [$client -read]
        r client unpause
    }

    test {a blocked client is shown in CLIENT LIST, and its command is counted when it is served} {
        r del k
        r config resetstat
        set client [connect]
        set id [$client client id]
        $client -send blpop k j k 0
        wait_blocked 1
        assert_match "* flags=b * cmd=blpop *" [r client list id $id]
        assert_equal {2 {0 0 0}} [list [info_field total_blocking_keys] [calls blpop]]
        r rpush k 1
        $client -read
        assert_equal {0 {1 0 0}} [list [info_field total_blocking_keys] [calls blpop]]
        assert_match "* flags=N * cmd=blpop *" [r client list id $id]
        $client -send blpop k 0
        wait_blocked 1
        r client unblock $id error
        assert_error UNBLOCKED* {$client -read}
        assert_equal {2 1 0} [calls blpop]
        assert_match *errorstat_UNBLOCKED:count=1* [r info errorstats]
    }

    test {a reply suppressed by CLIENT REPLY is not sent} {
        r del k
        set client [connect]
        $client -send client reply skip
        $client -send blpop k 0
        wait_blocked 1
        r rpush k 1
        assert_equal 0 [r llen k]
        assert_equal PONG [$client ping]
    }

    test {if a client watches a key and blocks on it, its own pop counts as a change} {
        r del k
        set client [connect]
        $client watch k
        $client -send blpop k 0
        wait_blocked 1
        r rpush k 1
        assert_equal {k 1} [$client -read]
        $client multi
        $client ping
        assert_equal [null_array] [$client -typed exec]
    }

    test {many blocked clients are all served once} {
        r del k
        set count [scaled 60]
        set clients {}
        for {set i 0} {$i < $count} {incr i} {
            set client [connect]
            $client -send [lindex {blpop brpop} [random_below 2]] k j [lindex {0 1000} [random_below 2]]
            lappend clients $client
        }
        wait_blocked $count
        set sent {}
        for {set i 0} {$i < $count} {incr i} {
            lappend sent v$i
            if {$i % 3 == 2} {
                r rpush [lindex {k j} [random_below 2]] {*}[lrange $sent end-2 end]
            } elseif {$i >= $count - $count % 3} {
                r rpush k v$i
            }
        }
        set got {}
        foreach client $clients {lappend got [lindex [$client -read] 1]}
        assert_equal [lsort $sent] [lsort $got]
        assert_equal {0 0} [list [r exists k j] [info_field blocked_clients]]
    }
}
