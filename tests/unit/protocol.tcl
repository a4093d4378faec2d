# The protocol: requests as bytes, refused requests, and the bytes of each reply. Tests independent
# of the suite's protocol run once, under resp:2.

# The bytes must be refused with this protocol error, and the connection closed.
proc assert_refused {bytes message} {
    set s [raw_connect]
    catch {raw_send $s $bytes} ;# the server may close before it has read all
    assert_equal "-ERR Protocol error: $message\r\n" [raw_rest $s] "for [shown $bytes]"
    raw_close $s
}

# The bytes must be ignored without a reply.
proc assert_ignored {bytes} {
    set s [raw_connect]
    raw_send $s "${bytes}PING\r\n"
    assert_equal "PONG" [string range [raw_line $s] 1 end] "after [shown $bytes]"
    raw_close $s
}

# The bytes must be accepted as the beginning of a request.
proc assert_waits {bytes} {
    set s [raw_connect]
    raw_send $s $bytes
    assert {[raw_silent $s]} [shown $bytes]
    raw_close $s
}

# The bytes must get this reply.
proc assert_answer {bytes reply} {
    set s [raw_connect]
    raw_send $s $bytes
    assert_equal $reply [raw_read $s [string length $reply]] "for [shown $bytes]"
    assert {[raw_silent $s]}
    raw_close $s
}

start_server {tags {protocol resp:2}} {
    test {empty requests are ignored} {
        foreach bytes {"*0\r\n" "*-1\r\n" "*-2147483649\r\n" "\r\n" "\n" "\r\n\n\r\n" "   \r\n"} {
            assert_ignored $bytes
        }
    }

    test {a multibulk count must be a plain number within limits} {
        foreach count {01 +1 " 1" 1x {} 2147483648 9223372036854775807 99999999999999999999999 -} {
            assert_refused "*$count\r\n" "invalid multibulk length"
        }
        assert_waits "*2147483647\r\n"
    }

    test {a bulk length must be a plain number within limits} {
        foreach size {04 +4 " 4" 4x {} -1 -10 536870913 9223372036854775807 99999999999999999999999} {
            assert_refused "*1\r\n\$$size\r\n" "invalid bulk length"
        }
        assert_waits "*1\r\n\$536870912\r\n"
    }

    test {a multibulk request must consist of bulks} {
        assert_refused "*1\r\n:4\r\n" {expected '$', got ':'}
        assert_refused "*1\r\nPING\r\n" {expected '$', got 'P'}
        assert_refused "*2\r\n\$4\r\nECHO\r\n+a\r\n" {expected '$', got '+'}
    }

    test {lines and payloads end with CRLF} {
        assert_refused "*1\r\n\$4\r\nPINGxy" "invalid CRLF in request"
        assert_refused "*1\r\n\$4\r\nPING\n\n" "invalid CRLF in request"
        assert_refused "*1\r\n\$4\rPING\r\n" "invalid CRLF in request"
        assert_refused "*1\r\$4\r\nPING\r\n" "invalid CRLF in request"
        assert_waits "*1\n\$4\nPING\n"
    }

    test {a length line has an end within 64 KiB} {
        assert_refused "*[string repeat 1 70000]" "too big mbulk count string"
        assert_refused "*1\r\n\$[string repeat 1 70000]" "too big bulk count string"
    }

    test {an inline request ends within 64 KiB} {
        assert_refused [string repeat a 70000] "too big inline request"
        assert_waits [string repeat a 65536]
        set text [string repeat a 65000]
        assert_answer "ECHO $text\r\n" "\$65000\r\n$text\r\n"
    }

    test {inline requests: words, blanks, both line ends} {
        assert_answer "PING\r\n" "+PONG\r\n"
        assert_answer "PING\n" "+PONG\r\n"
        assert_answer "  PING  \r\n" "+PONG\r\n"
        assert_answer "ECHO\thello\r\n" "\$5\r\nhello\r\n"
        assert_answer "PING\r\nPING\nPING\r\n" "+PONG\r\n+PONG\r\n+PONG\r\n"
        assert_answer " *1\r\nPING\r\n" "-ERR unknown command '*1', with args beginning with: \r\n+PONG\r\n"
    }

    test {inline requests: quotes and escapes} {
        foreach {word value} {
            {"a b"} "a b"
            {'a b'} "a b"
            {""} ""
            {''} ""
            {"\n\r\t\b\a\\\""} "\n\r\t\b\a\\\""
            {"\x41\x00\xff"} "A\0\xff"
            {"\xZZ"} "xZZ"
            {"\q"} "q"
            {'it\'s'} "it's"
            {'\n'} "\\n"
            {"it's"} "it's"
            {say"x"} "sayx"
        } {
            assert_answer "ECHO $word\r\n" "\$[string length $value]\r\n$value\r\n"
        }
    }

    test {inline requests: text after a closing quote is part of the same argument} {
        assert_answer "ECHO \"a\"b\r\n" "\$2\r\nab\r\n"
        assert_answer "ECHO 'a'b\r\n" "\$2\r\nab\r\n"
    }

    test {inline requests: an open quote is refused} {
        foreach line [list {ECHO "a} {ECHO 'a} {"} {ECHO "a\" b} {ECHO 'a\' b} "ECHO \"a\\" {ECHO a"b}] {
            assert_refused "$line\r\n" "unbalanced quotes in request"
        }
    }

    test {the first bytes of TLS are refused at once, and named in the log} {
        set hello "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        set s [raw_connect]
        raw_send $s [string range $hello 0 1]
        assert {[raw_silent $s]}
        raw_send $s [string range $hello 2 end]
        assert_equal "-ERR Protocol error: TLS client on a port without TLS\r\n" [raw_rest $s]
        raw_close $s
        wait_for_condition 100 50 {[string match "*TLS client on a port without TLS (addr=*" [server_log]]} else {
            fail "nothing in the log"
        }
        assert_waits "\x16\x02\x01hello"
    }

    test {an empty command name is an unknown command} {
        assert_answer "*1\r\n\$0\r\n\r\n*1\r\n\$4\r\nPING\r\n" \
            "-ERR unknown command '', with args beginning with: \r\n+PONG\r\n"
    }

    test {line breaks in an unknown name do not break the error line} {
        set s [raw_connect]
        raw_send $s "*1\r\n\$6\r\nab\r\ncd\r\nPING\r\n"
        assert_equal "-ERR unknown command 'ab  cd', with args beginning with: " [raw_line $s]
        assert_equal "+PONG" [raw_line $s]
        raw_close $s
    }

    test {valid requests before an invalid one are executed} {
        set s [raw_connect]
        raw_send $s "*1\r\n\$4\r\nPING\r\n*2\r\n\$4\r\nECHO\r\n\$2\r\nhi\r\n*x\r\nPING\r\n"
        assert_equal "+PONG\r\n\$2\r\nhi\r\n-ERR Protocol error: invalid multibulk length\r\n" [raw_rest $s]
        raw_close $s
    }

    test {a request may arrive split at every byte} {
        set request "*3\r\n\$3\r\nSET\r\n\$3\r\nk\r\n\r\n\$5\r\nva\rue\r\n"
        set s [raw_connect]
        for {set i 1} {$i < [string length $request]} {incr i} {
            raw_send $s [string range $request 0 $i-1]
            assert {[raw_silent $s]} "split at $i"
            raw_send $s [string range $request $i end]
            assert_equal "+OK" [raw_line $s] "split at $i"
        }
        assert_equal "va\rue" [r get "k\r\n"]
        raw_close $s
    }

    test {an inline request may arrive split at every byte} {
        set request "ECHO \"a \\x41\"\r\n"
        set s [raw_connect]
        for {set i 1} {$i < [string length $request]} {incr i} {
            raw_send $s [string range $request 0 $i-1]
            assert {[raw_silent $s]} "split at $i"
            raw_send $s [string range $request $i end]
            assert_equal "\$3\r\na A\r\n" [raw_reply $s] "split at $i"
        }
        raw_close $s
    }

    test {a pipeline may arrive split at every byte} {
        set pipeline "*1\r\n\$4\r\nPING\r\nECHO one\r\n*2\r\n\$4\r\nECHO\r\n\$3\r\ntwo\r\n"
        set replies "+PONG\r\n\$3\r\none\r\n\$3\r\ntwo\r\n"
        for {set i 1} {$i < [string length $pipeline]} {incr i} {
            set s [raw_connect]
            raw_send $s [string range $pipeline 0 $i-1]
            # After a round trip of a second connection the first part has been read.
            r ping
            raw_send $s [string range $pipeline $i end]
            assert_equal $replies [raw_read $s [string length $replies]] "split at $i"
            raw_close $s
        }
    }

    test {a request may arrive byte by byte} {
        set s [raw_connect]
        foreach request {"*2\r\n\$4\r\nECHO\r\n\$3\r\nabc\r\n" "ECHO abc\r\n"} {
            raw_send $s {*}[split $request {}]
            assert_equal "\$3\r\nabc\r\n" [raw_reply $s]
        }
        raw_close $s
    }

    test {a long pipeline is replied in order} {
        set count [scaled 20000]
        set s [raw_connect]
        set requests {}
        set replies {}
        for {set i 0} {$i < $count} {incr i} {
            append requests [resp::encode [list echo $i]]
            append replies "\$[string length $i]\r\n$i\r\n"
        }
        raw_send $s $requests
        assert {[raw_read $s [string length $replies]] eq $replies}
        raw_close $s
    }

    test {a pipeline that ends amid a request waits for the rest} {
        set s [raw_connect]
        set request [resp::encode {set split value}]
        raw_send $s [string repeat $request 100][string range $request 0 20]
        assert_equal [string repeat "+OK\r\n" 100] [raw_read $s 500]
        assert {[raw_silent $s]}
        raw_send $s [string range $request 21 end]
        assert_equal "+OK" [raw_line $s]
        raw_close $s
    }

    test {a large argument may arrive in pieces, followed by requests} {
        foreach size {16383 16384 16385 32768 100000 1048576} {
            set value [string repeat "0123456789abcdef" [expr {$size / 16 + 1}]]
            set value [string range $value 0 $size-1]
            set request [resp::encode [list set large $value]]
            set s [raw_connect]
            raw_send $s [string range $request 0 9999]
            assert {[raw_silent $s]}
            raw_send $s "[string range $request 10000 end][resp::encode {get large}]PING\r\n"
            assert_equal "+OK" [raw_line $s]
            assert {[raw_reply $s] eq "\$$size\r\n$value\r\n"} "$size bytes"
            assert_equal "+PONG" [raw_line $s]
            raw_close $s
        }
    }

    test {a request may have very many arguments} {
        set count [scaled 100000]
        set s [raw_connect]
        raw_send $s [resp::encode [concat exists [lrepeat $count nokey]]]
        assert_equal ":0" [raw_line $s]
        raw_close $s
    }

    test {a large reply that is read slowly is complete} {
        set value [string repeat "0123456789abcdef" 65536]
        r set large $value
        set s [raw_connect]
        raw_send $s [string repeat [resp::encode {get large}] 8]
        r ping
        for {set i 0} {$i < 8} {incr i} {
            assert {[raw_reply $s] eq "\$1048576\r\n$value\r\n"} "reply $i"
        }
        raw_close $s
    }

    test {long replies of a pipeline are sent while the rest runs} {
        r set long [string repeat v 4096]
        set before [info_field total_writes_processed]
        set s [raw_connect]
        raw_send $s [string repeat "GET long\r\n" 512]
        for {set i 0} {$i < 512} {incr i} {
            assert_equal \$4096 [raw_line $s]
            assert_equal 4096 [string length [raw_line $s]]
        }
        # 2 MB in one to three writes would otherwise be kept until the end of the turn. (Batches of I/O threads are larger.)
        if {$::io_threads == 1} {assert {[info_field total_writes_processed] - $before >= 6}}
        raw_close $s
    }

    test {a large value that is being sent may be changed, replaced and deleted} {
        set value [string repeat "0123456789abcdef" 65536]
        foreach change {
            {setrange large 500000 changed} {append large more} {setbit large 7 1} {bitfield large set u8 800 255}
            {set large other} {getdel large} {del large} {unlink large} {flushall} {rename large elsewhere}
        } {
            r set large $value
            set s [raw_connect]
            raw_send $s [string repeat [resp::encode {get large}] 4]
            raw_send $s [resp::encode {getrange large 100 900000}][resp::encode {set asked yes}]
            wait_for_condition 500 10 {[r del asked]}
            r {*}$change
            r set filler [string repeat Y 1048576]
            for {set i 0} {$i < 4} {incr i} {
                assert {[raw_reply $s] eq "\$1048576\r\n$value\r\n"} "$change, reply $i"
            }
            assert {[raw_reply $s] eq "\$899901\r\n[string range $value 100 900000]\r\n"} "$change, the range"
            assert_equal +OK [raw_line $s]
            raw_close $s
        }
    }

    test {a client that disconnects in the middle of a request leaves no state} {
        for {set i 0} {$i < 20} {incr i} {
            set s [raw_connect]
            raw_send $s "*3\r\n\$3\r\nSET\r\n\$5\r\nghost\r\n\$1000\r\nabc"
            raw_close $s
        }
        wait_for_condition 200 10 {[llength [split [string trim [r client list]] "\n"]] == 1}
        assert_equal 0 [r exists ghost]
    }

    test {QUIT replies OK and closes; following requests do not run} {
        set s [raw_connect]
        raw_send $s "SET quit 1\r\nQUIT\r\nSET quit 2\r\n"
        assert_equal "+OK\r\n+OK\r\n" [raw_rest $s]
        raw_close $s
        assert_equal 1 [r get quit]
    }

    test {proto-max-bulk-len bounds a bulk} {
        set before [lindex [r config get proto-max-bulk-len] 1]
        r config set proto-max-bulk-len 2000000
        assert_refused "*1\r\n\$2000001\r\n" "invalid bulk length"
        assert_waits "*1\r\n\$2000000\r\n"
        r config set proto-max-bulk-len $before
    } {needs:config}

    test {a request beyond client-query-buffer-limit closes without a reply} {
        set before [lindex [r config get client-query-buffer-limit] 1]
        r config set client-query-buffer-limit 1048576
        set s [raw_connect]
        catch {raw_send $s "*2\r\n\$4\r\nECHO\r\n\$3000000\r\n[string repeat x 3000000]\r\n"}
        assert_equal {} [raw_rest $s]
        raw_close $s
        r config set client-query-buffer-limit $before
    } {needs:config}
}

start_server {tags {protocol resp:2} overrides {requirepass secret}} {
    test {before AUTH a request has 10 items of 16,384 bytes at most} {
        assert_refused "*11\r\n" "unauthenticated multibulk length"
        assert_refused "*1\r\n\$16385\r\n" "unauthenticated bulk length"
        assert_waits "*10\r\n\$4\r\nPING\r\n"
        assert_waits "*1\r\n\$16384\r\n"
    }

    test {before AUTH commands are refused and the connection stays} {
        assert_answer "PING\r\n*2\r\n\$3\r\nGET\r\n\$1\r\na\r\n" \
            "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n"
    }

    test {AUTH lifts the limits for requests after it in the same packet} {
        set s [raw_connect]
        set words [concat exists [lrepeat 20 [string repeat k 20000]]]
        raw_send $s "[resp::encode {auth secret}][resp::encode $words]"
        assert_equal "+OK" [raw_line $s]
        assert_equal ":0" [raw_line $s]
        raw_close $s
    }

    test {HELLO with AUTH switches and lets in} {
        set s [raw_connect]
        raw_send $s "HELLO 3 AUTH default wrong\r\n"
        assert_match "-WRONGPASS *" [raw_line $s]
        raw_send $s "HELLO 3\r\n"
        assert_match "-NOAUTH HELLO must be called with the client already authenticated*" [raw_line $s]
        raw_send $s "HELLO 3 AUTH default secret\r\n"
        assert_match "%7\r\n*" [raw_reply $s]
        raw_send $s "GET nokey\r\n"
        assert_equal "_" [raw_line $s]
        raw_close $s
    }
}

start_server {tags {protocol}} {
    test {HELLO replies in the protocol it switches to} {
        set c [connect 2]
        set fields {server version proto id mode role modules}
        foreach proto {2 3 2} {
            set reply [$c -typed hello $proto]
            assert_equal [expr {$proto == 3 ? "map" : "array"}] [lindex $reply 0]
            set hello [resp::strip $reply]
            assert_equal $fields [dict keys $hello]
            assert_equal $proto [dict get $hello proto]
            assert_equal standalone [dict get $hello mode]
            assert_equal master [dict get $hello role]
            assert_equal [expr {$proto == 3 ? {null null} : {null bulk}}] [$c -typed get nokey]
        }
        $c -close
    }

    test {HELLO without a version keeps the protocol} {
        assert_equal $::resp_version [dict get [r hello] proto]
    }

    test {HELLO refuses unknown options and changes nothing} {
        set c [connect 2]
        foreach version {0 1 4 -1 100} {
            assert_error "NOPROTO unsupported protocol version" {$c hello $version}
        }
        foreach version {a 2.5 {}} {
            assert_error "ERR Protocol version is not an integer or out of range" {$c hello $version}
        }
        assert_error "ERR Syntax error in HELLO option 'nosuch'" {$c hello 3 nosuch}
        assert_error "ERR Syntax error in HELLO option 'setname'" {$c hello 3 setname}
        assert_error "ERR Syntax error in HELLO option 'auth'" {$c hello 3 auth default}
        assert_error "ERR Client names cannot contain spaces, newlines or special characters." {$c hello 3 setname "a b"}
        assert_error "WRONGPASS invalid username-password pair or user is disabled." {$c hello 3 auth nobody x}
        assert_equal {null bulk} [$c -typed get nokey]
        $c -close
    }

    test {HELLO SETNAME names the connection} {
        set c [connect 2]
        $c hello 3 setname me
        assert_equal {bulk me} [$c -typed client getname]
        $c -close
    }

    test {RESET restores RESP2, database 0 and an empty name} {
        set c [connect]
        $c client setname me
        $c select 5
        $c -send reset
        assert_equal {status RESET} [$c -readtyped]
        assert_equal {null bulk} [$c -typed client getname]
        $c set reset 1
        assert_equal 1 [r exists reset]
        $c -close
    }

    test {QUIT closes} {
        set c [connect]
        assert_equal OK [$c quit]
        $c -closed
        $c -close
    }

    test {CLIENT REPLY OFF silences until ON, errors too} {
        set c [connect]
        $c -send client reply off
        $c -send ping
        $c -send set silent 1
        $c -send nosuch
        $c -send get
        $c -send client reply on
        $c -send ping
        assert_equal {status OK} [$c -readtyped]
        assert_equal PONG [$c -read]
        assert_equal 1 [r get silent]
        $c -close
    }

    test {CLIENT REPLY SKIP silences itself and the next} {
        set c [connect]
        $c -send client reply skip
        $c -send echo unheard
        $c -send echo heard
        assert_equal heard [$c -read]
        $c -close
    }

    test {CLIENT REPLY SKIP after SKIP is the one skipped, and skips again} {
        set c [connect]
        $c -send client reply skip
        $c -send client reply skip
        $c -send echo unheard
        $c -send echo heard
        assert_equal heard [$c -read]
        $c -close
    }

    test {CLIENT REPLY SKIP while OFF has no effect} {
        set c [connect]
        $c -send client reply off
        $c -send client reply skip
        $c -send echo unheard
        $c -send echo unheard
        $c -send client reply on
        $c -send echo heard
        assert_equal OK [$c -read]
        assert_equal heard [$c -read]
        $c -close
    }

    test {CLIENT REPLY refuses unknown modes} {
        assert_error "ERR syntax error" {r client reply maybe}
        assert_error "ERR wrong number of arguments for 'client|reply' command" {r client reply}
    }

    test {a pipeline of the test client is replied in order} {
        set count [scaled 1000]
        set c [connect]
        for {set i 0} {$i < $count} {incr i} {$c -send set key:$i $i}
        for {set i 0} {$i < $count} {incr i} {$c -send get key:$i}
        for {set i 0} {$i < $count} {incr i} {assert_equal OK [$c -read]}
        for {set i 0} {$i < $count} {incr i} {assert_equal $i [$c -read]}
        $c -close
    }

    test {DEBUG PROTOCOL shows every type} {
        assert_equal {bulk {Hello World}} [r -typed debug protocol string]
        assert_equal {integer 12345} [r -typed debug protocol integer]
        assert_equal {array {{integer 0} {integer 1} {integer 2}}} [r -typed debug protocol array]
        if {[resp3]} {
            assert_equal {double 3.141} [r -typed debug protocol double]
            assert_equal {null null} [r -typed debug protocol null]
            assert_equal {set {{integer 0} {integer 1} {integer 2}}} [r -typed debug protocol set]
            assert_equal {map {{integer 0} {bool 0} {integer 1} {bool 1} {integer 2} {bool 0}}} [r -typed debug protocol map]
            assert_equal {bool 1} [r -typed debug protocol true]
            assert_equal {bool 0} [r -typed debug protocol false]
            assert_equal {bignumber 1234567999999999999999999999999999999} [r -typed debug protocol bignum]
            assert_equal "verbatim {txt:This is a verbatim\nstring}" [r -typed debug protocol verbatim]
        } else {
            assert_equal {bulk 3.141} [r -typed debug protocol double]
            assert_equal {null bulk} [r -typed debug protocol null]
            assert_equal {array {{integer 0} {integer 1} {integer 2}}} [r -typed debug protocol set]
            assert_equal {integer 1} [r -typed debug protocol true]
            assert_equal {integer 0} [r -typed debug protocol false]
            assert_equal {bulk 1234567999999999999999999999999999999} [r -typed debug protocol bignum]
            assert_equal "bulk {This is a verbatim\nstring}" [r -typed debug protocol verbatim]
        }
    } {needs:debug}
}
