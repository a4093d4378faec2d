# SPDX-License-Identifier: BSD-3-Clause
#
# I/O threads: nothing that a client sees depends on them, whatever happens to the clients that they have.

# A request in RESP.
proc request {args} {
    set bytes "*[llength $args]\r\n"
    foreach word $args {append bytes "\$[string length $word]\r\n$word\r\n"}
    return $bytes
}

# Sends `count` requests INCR on each of the sockets, and checks later that the replies came in order.
proc begin_counting {socks count} {
    foreach s $socks {raw_send $s [string repeat [request incr counter:$s] $count]}
}
proc end_counting {socks from count} {
    foreach s $socks {
        for {set i 1} {$i <= $count} {incr i} {
            set line [raw_line $s]
            if {$line ne ":[expr {$from + $i}]"} {fail "$line instead of [expr {$from + $i}]"}
        }
    }
}

# So many new connections; the keyspace is empty.
proc open_sockets {count} {
    r flushall
    set socks {}
    for {set i 0} {$i < $count} {incr i} {lappend socks [raw_connect]}
    return $socks
}

# Sends a request on each of the sockets; returns how many of them a thread has read.
proc read_by_threads {socks} {
    set before [info_field io_threaded_reads_processed]
    foreach s $socks {
        raw_send $s [request ping]
        assert_equal "+PONG" [raw_line $s]
    }
    return [expr {[info_field io_threaded_reads_processed] - $before}]
}

# Every client is served without threads again.
proc end_with_one {socks} {wait_for_condition 500 10 {[read_by_threads $socks] == 0}}

set threads {io-threads 4 io-threads-always-active yes}

start_server [list tags {io-threads needs:config} overrides $threads] {
    test {INFO shows what the threads have done} {
        r config resetstat
        r set key value
        assert_equal value [r get key]
        assert_equal 1 [info_field io_threads_active]
        assert {[info_field io_threaded_reads_processed] >= 2}
        assert {[info_field io_threaded_writes_processed] >= 2}
        assert {[info_field io_threaded_total_prefetch_batches] >= 2}
        assert {[info_field io_threaded_total_prefetch_entries] >= 2}
        assert {[info_field used_active_time_io_thread_1] >= 0}
        assert {[info_field used_active_time_io_thread_3] >= 0}
        assert_equal {} [info_field used_active_time_io_thread_4]
    }

    test {a client that only receives is evicted} {
        r config resetstat
        r config set maxmemory-clients 2mb
        r client no-evict on
        set s [raw_connect]
        raw_send $s [request monitor]
        assert_equal +OK [raw_line $s]
        set writer [raw_connect]
        set writes [string repeat [request set key [string repeat x 9000]] 100]
        wait_for_condition 100 1 {
            [raw_send $writer $writes] ne "" || [string length [raw_read $writer 500]] != 500 ||
            [info_field evicted_clients] > 0
        }
        wait_for_condition 500 20 {![string match {*cmd=monitor*} [r client list]]}
        r config set maxmemory-clients 0
        r client no-evict off
    }

    test {the number of threads changes while requests and replies are under way} {
        set socks [open_sockets 20]
        set from 0
        foreach number {1 2 8 3 1 5 1 4} {
            begin_counting $socks 300
            r config set io-threads $number
            end_counting $socks $from 300
            incr from 300
            assert_equal [expr {$number > 1}] [info_field io_threads_active]
        }
    }

    test {large arguments and values in both directions at the same time} {
        set size 1000000
        set socks [open_sockets 8]
        for {set round 0} {$round < 5} {incr round} {
            foreach s $socks {
                set value [string repeat [string index abcde $round] [expr {$size + $round}]]
                raw_send $s [request set big $value] [request get big] [request getrange big 0 0]
            }
            foreach s $socks {
                assert_equal "+OK" [raw_line $s]
                assert_equal "\$[expr {$size + $round}]" [raw_line $s]
                assert_equal "$value\r\n" [raw_read $s [expr {$size + $round + 2}]]
                raw_read $s 7
            }
        }
    }

    test {a value that is changed while it is sent arrives as it was} {
        set size 3000000
        set socks [open_sockets 6]
        r set big [string repeat x $size]
        foreach s $socks {raw_send $s [request get big]}
        foreach s $socks {assert_equal "\$$size" [raw_line $s]}
        r setrange big 0 [string repeat y 100000]
        r append big z
        r del big
        foreach s $socks {assert_equal "[string repeat x $size]\r\n" [raw_read $s [expr {$size + 2}]]}
    }

    test {messages arrive complete and in order} {
        set subscribers {}
        for {set i 0} {$i < 10} {incr i} {
            set c [connect]
            $c -send subscribe news
            assert_equal {subscribe news 1} [$c -message]
            lappend subscribers $c
        }
        set s [raw_connect]
        set requests ""
        for {set i 0} {$i < 1000} {incr i} {append requests [request publish news $i]}
        raw_send $s $requests
        foreach c $subscribers {
            for {set i 0} {$i < 1000} {incr i} {assert_equal $i [lindex [$c -message] end]}
        }
    }

    test {MONITOR shows the commands of clients on all threads} {
        set socks [open_sockets 8]
        set m [connect]
        assert_equal OK [$m monitor]
        begin_counting $socks 50
        set seen 0
        for {set i 0} {$i < 400} {incr i} {
            if {[string match {*"incr" "counter:*} [$m -read]]} {incr seen}
        }
        assert_equal 400 $seen
        end_counting $socks 0 50
    }

    test {clients that block are woken, and their other requests follow} {
        set socks [open_sockets 10]
        foreach s $socks {raw_send $s [request set before 1] [request blpop jobs 0] [request echo after]}
        wait_for_condition 500 10 {[info_field blocked_clients] == 10}
        foreach s $socks {raw_send $s [request echo later]}
        for {set i 0} {$i < 10} {incr i} {r rpush jobs job}
        foreach s $socks {
            assert_equal "+OK" [raw_line $s]
            assert_equal "*2\r\n\$4\r\njobs\r\n\$3\r\njob\r\n" [raw_reply $s]
            assert_equal "\$5\r\nafter\r\n\$5\r\nlater\r\n" [raw_reply $s][raw_reply $s]
        }
    }

    test {a blocked client that leaves is noticed} {
        set socks [open_sockets 10]
        foreach s $socks {raw_send $s [request blpop nothing 0]}
        wait_for_condition 500 10 {[info_field blocked_clients] == 10}
        foreach s $socks {close $s}
        wait_for_condition 500 10 {[info_field blocked_clients] == 0 && [info_field connected_clients] == 1}
    }

    test {CLIENT KILL and CLIENT LIST while clients have requests under way} {
        for {set round 0} {$round < [scaled 20]} {incr round} {
            set socks [open_sockets 10]
            begin_counting $socks 200
            assert_range [llength [split [string trim [r client list]] \n]] 1 11
            r client kill type normal
            foreach s $socks {close $s}
            wait_for_condition 500 10 {[info_field connected_clients] == 1}
        }
    }

    test {CLIENT PAUSE holds requests, and releases all of them} {
        set socks [open_sockets 10]
        r client pause 100000 write
        begin_counting $socks 100
        wait_for_condition 500 10 {[info_field blocked_clients] == 10}
        assert_equal {} [r get counter:[lindex $socks 0]]
        r client unpause
        end_counting $socks 0 100
    }

    test {crowds that connect and leave, with requests and without} {
        for {set round 0} {$round < [scaled 10]} {incr round} {
            set socks [open_sockets 40]
            foreach s $socks {raw_send $s [request ping]}
            foreach s $socks {close $s}
            foreach s [open_sockets 20] {close $s}
        }
        wait_for_condition 1000 10 {[info_field connected_clients] == 1}
    }

    test {messages, invalidations and CLIENT KILL reach clients that are idle} {
        set socks [open_sockets 10]
        foreach s $socks {raw_send $s [request hello 3] [request subscribe news] [request client tracking on] [request get seen]}
        foreach s $socks {
            raw_reply $s
            raw_reply $s
            assert_equal "+OK\r\n_\r\n" [raw_reply $s][raw_reply $s]
        }
        r publish news one
        r set seen 1
        r publish news two
        foreach s $socks {
            # Messages to many receivers are delivered over several turns: the invalidation may come before them.
            set pushes {}
            foreach i {1 2 3} {lappend pushes [raw_reply $s]}
            assert_match "*one*two*" $pushes
            assert_match "*invalidate*seen*" $pushes
        }
        assert_equal 10 [r client kill type pubsub]
        foreach s $socks {assert_equal "" [raw_rest $s]}
        wait_for_condition 500 10 {[info_field connected_clients] == 1}
    }

    test {CONFIG SET proto-max-bulk-len applies to what any client sends after its reply} {
        set socks [open_sockets 6]
        foreach s $socks {
            raw_send $s [request ping]
            assert_equal "+PONG" [raw_line $s]
        }
        foreach s $socks {
            r config set proto-max-bulk-len 1mb
            raw_send $s "*2\r\n\$4\r\necho\r\n\$1048577\r\n"
            assert_equal "-ERR Protocol error: invalid bulk length\r\n" [raw_rest $s]
            r config set proto-max-bulk-len 512mb
        }
    }

    test {messages that cross with requests arrive, and the replies too} {
        set socks [open_sockets 6]
        foreach s $socks {
            raw_send $s [request hello 3] [request subscribe news]
            raw_reply $s
            raw_reply $s
        }
        set publisher [raw_connect]
        set count [scaled 2000]
        raw_send $publisher [string repeat [request publish news message] $count]
        foreach s $socks {raw_send $s [string repeat [request echo reply] 50]}
        foreach s $socks {
            set replies 0
            for {set i 0} {$i < $count + 50} {incr i} {incr replies [expr {[raw_reply $s] eq "\$5\r\nreply\r\n"}]}
            assert_equal 50 $replies
        }
    }

    test {clients move to the main thread and back as they block, are paused, and watch} {
        set socks [open_sockets 8]
        for {set round 0} {$round < [scaled 30]} {incr round} {
            foreach s $socks {raw_send $s [request blpop jobs:$s 0] [request ping]}
            foreach s $socks {r rpush jobs:$s job}
            foreach s $socks {
                assert_match "*job*" [raw_reply $s]
                assert_equal "+PONG" [raw_line $s]
                raw_send $s [request ping]
                assert_equal "+PONG" [raw_line $s]
            }
        }
        assert {[read_by_threads $socks] > 0}
    }

    test {TLS handshakes are made by the threads and by the main thread, and fail as they do without threads} {
        r config resetstat
        set socks [open_sockets 60]
        foreach s $socks {
            raw_send $s [request ping]
            assert_equal "+PONG" [raw_line $s]
        }
        if {$::tls_folder eq ""} {
            assert_equal 0 [info_field io_threaded_accept_processed]
        } else {
            assert {[info_field io_threaded_accept_processed] >= 1}
            set plain [socket 127.0.0.1 [srv port]]
            chan configure $plain -translation binary -buffering none
            puts -nonewline $plain "this is not a handshake\r\n"
            read $plain ;# until the server closes
            close $plain
            wait_for_condition 500 10 {[string match "*Error accepting a client connection*" [server_log]]}
        }
        foreach s $socks {close $s}
        wait_for_condition 1000 10 {[info_field connected_clients] == 1}
    }

    test {large requests that follow each other arrive whole, over TLS, too} {
        set text [string repeat x 20000]
        set socks [open_sockets 6]
        foreach s $socks {raw_send $s [string repeat [request echo $text] 10]}
        foreach s $socks {
            for {set i 0} {$i < 10} {incr i} {assert_equal "\$20000\r\n$text\r\n" [raw_reply $s]}
        }
    }

    test {the end of the stream that arrives with the last request is seen} {
        set s [raw_connect]
        raw_send $s [request echo bye]
        if {$::tls_folder eq ""} {chan close $s write} else {close $s}
        wait_for_condition 500 10 {[info_field connected_clients] == 1}
    }

    test {QUIT closes after its reply} {
        set s [raw_connect]
        raw_send $s [request quit]
        assert_equal "+OK\r\n" [raw_rest $s]
    }

    test {AUTH in the same write as requests that need it} {
        r acl setuser alice on >secret allkeys allcommands
        set s [raw_connect]
        raw_send $s [request auth alice secret] [request set big [string repeat x 100000]] [request acl whoami]
        assert_equal "+OK+OK" [raw_line $s][raw_line $s]
        assert_equal "\$5\r\nalice\r\n" [raw_read $s 11]
    }

    test {a protocol error follows the replies before it, and closes} {
        set s [raw_connect]
        raw_send $s [request ping] "*x\r\n"
        assert_equal "+PONG" [raw_line $s]
        assert_match "-ERR Protocol error*" [raw_rest $s]
    }

    test {a client that does not read is closed by the output limit} {
        r config resetstat
        r set big [string repeat x 1000000]
        r config set client-output-buffer-limit "normal 20mb 0 0"
        set s [raw_connect]
        raw_send $s [string repeat [request get big] 60]
        wait_for_condition 500 10 {[info_field client_output_buffer_limit_disconnections] == 1}
        wait_for_condition 500 10 {[info_field connected_clients] == 1}
        r config set client-output-buffer-limit "normal 0 0 0"
    }

    test {large replies to many clients that read late} {
        set socks [open_sockets 5]
        r set big [string repeat x 1000000]
        foreach s $socks {raw_send $s [string repeat [request get big] 10] [request echo end]}
        foreach s $socks {
            for {set i 0} {$i < 10} {incr i} {
                assert_equal "\$1000000" [raw_line $s]
                raw_read $s 1000002
            }
            assert_equal "\$3\r\nend\r\n" [raw_read $s 9]
        }
    }

    test {transactions, and clients that a script keeps waiting} {
        set socks [open_sockets 10]
        foreach s $socks {
            raw_send $s [request multi] [request incr sum] [request incr sum] [request exec] \
                [request eval "for i = 1, 1000 do redis.call('incr', KEYS\[1\]) end return 1" 1 loops]
        }
        foreach s $socks {
            foreach expected {+OK +QUEUED +QUEUED *2} {assert_equal $expected [raw_line $s]}
            raw_line $s
            raw_line $s
            assert_equal ":1" [raw_line $s]
        }
        assert_equal 20 [r get sum]
        assert_equal 10000 [r get loops]
    }
}

start_server {tags {io-threads needs:config} overrides {io-threads 3 io-threads-always-active no}} {
    test {threads sleep while one suffices, and are used under load} {
        assert_equal 0 [info_field io_threads_active]
        for {set i 0} {$i < 100} {incr i} {r set key $i}
        assert_equal 0 [info_field io_threaded_reads_processed]
        # Long commands with short replies: this process has little to do, the main thread of the server all the time.
        set commands [string repeat [request bitcount bits] 50]
        set socks [open_sockets 8]
        r setrange bits 4000000 x
        set rounds 0
        while {[info_field io_threads_active] == 0} {
            foreach s $socks {raw_send $s $commands}
            foreach s $socks {raw_read $s [string length [string repeat ":4\r\n" 50]]}
            if {[incr rounds] > 300} {fail "the threads are not used"}
        }
        wait_for_condition 1000 20 {[info_field io_threads_active] == 0}
        end_with_one $socks
    }
}

if {![is_sanitized]} {
    start_server {tags {io-threads needs:config} overrides {io-threads 1}} {
        test {a thread that cannot be started costs no memory} {
            assert {[regexp {VmSize:\s+(\d+) kB} [read_bytes /proc/[srv pid]/status] -> size]}
            # Enough for buffers of a thread, but not for its stack.
            exec prlimit --pid [srv pid] --as=[expr {($size + 6 * 1024) * 1024}]:
            assert_error "*" {r config set io-threads 2}
            set before [info_field used_memory]
            for {set i 0} {$i < 10} {incr i} {assert_error "*" {r config set io-threads 2}}
            assert {[info_field used_memory] < $before + 1024 * 1024} "[info_field used_memory] bytes, $before before"
            exec prlimit --pid [srv pid] --as=unlimited:
            r config set io-threads 2
            assert_equal PONG [r ping]
        } {needs:linux}
    }
}
