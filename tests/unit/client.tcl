# CLIENT: attributes of connections, lists with filters, KILL.

# The ids of the clients that match the filters, oldest first.
proc ids {args} {
    return [lsort -integer [lmap line [split [string trimright [r client list {*}$args] "\n"] "\n"] {
        regexp {^id=(\d+) } $line all id
        set id
    }]]
}

# The value of one field in a line of CLIENT LIST.
proc field {name line} {
    if {![regexp "(?:^| )$name=(\[^ \n\]*)" $line all value]} {fail "no field $name in $line"}
    return $value
}

# One field of a client's own line.
proc own_field {name {client r}} {
    return [field $name [$client client info]]
}

proc null_bulk {} {return [expr {[resp3] ? {null null} : {null bulk}}]}

start_server {tags {client}} {
    test {CLIENT ID grows with each connection} {
        set first [connect]
        set second [connect]
        assert_equal {integer} [lindex [r -typed client id] 0]
        assert {[$first client id] < [$second client id]}
        assert_equal [$first client id] [own_field id $first]
    }

    test {CLIENT SETNAME and GETNAME: null without a name} {
        assert_equal [null_bulk] [r -typed client getname]
        assert_equal {status OK} [r -typed client setname !me~]
        assert_equal {bulk !me~} [r -typed client getname]
        assert_equal !me~ [own_field name]
        assert_equal OK [r client setname {}]
        assert_equal [null_bulk] [r -typed client getname]
        assert_equal {} [own_field name]
    }

    test {an invalid name is refused, and the old one is kept} {
        r client setname before
        foreach name [list "a b" "a\nb" "a\r" "\x7f" "\x80" "\xc3\xa9" " "] {
            assert_error "ERR Client names cannot contain spaces, newlines or special characters." {
                r client setname $name
            }
        }
        assert_equal before [r client getname]
        r client setname {}
    }

    test {CLIENT SETINFO takes the library's name and version} {
        assert_equal {status OK} [r -typed client setinfo lib-name testlib]
        assert_equal OK [r client setinfo LIB-VER 1.2.3]
        assert_equal testlib [own_field lib-name]
        assert_equal 1.2.3 [own_field lib-ver]
        assert_error "ERR LIB-NAME cannot contain spaces, newlines or special characters." {
            r client setinfo LIB-NAME "a b"
        }
        assert_error "ERR lib-ver cannot contain spaces, newlines or special characters." {
            r client setinfo lib-ver "1\n"
        }
        assert_error "ERR Unrecognized option 'foo'" {r client setinfo foo "a b"}
        assert_error "ERR Unrecognized option 'f  o'" {r client setinfo "f\r\no" x}
        assert_equal testlib [own_field lib-name]
        assert_equal OK [r client setinfo lib-name {}]
        assert_equal {} [own_field lib-name]
        r client setinfo lib-ver {}
    }

    test {a line of CLIENT LIST has its fields in the order that tools parse} {
        set names [lmap pair [split [string trimright [r client info] "\n"] " "] {
            lindex [split $pair =] 0
        }]
        assert_equal [list id addr laddr fd name age idle flags capa db sub psub ssub multi watch qbuf \
            qbuf-free argv-mem multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp \
            lib-name lib-ver tot-net-in tot-net-out tot-cmds] $names
    }

    test {CLIENT INFO and CLIENT LIST are texts that end in a line feed} {
        foreach words {{client info} {client list}} {
            lassign [r -typed {*}$words] type text
            assert_equal [expr {[resp3] ? {verbatim} : {bulk}}] $type
            assert_equal "\n" [string index $text end]
        }
        if {[resp3]} {assert_match "txt:id=*" [lindex [r -typed client info] 1]}
        assert_equal [expr {[resp3] ? {verbatim txt:} : {bulk {}}}] [r -typed client list id 999999]
    }

    test {the line of a plain client has the right values} {
        set c [connect]
        set me [chan configure [$c -channel] -sockname]
        $c select 3
        set line [$c client info]
        assert_equal "[lindex $me 0]:[lindex $me 2]" [field addr $line]
        assert_equal "127.0.0.1:[srv port]" [field laddr $line]
        foreach {name value} {
            flags N capa {} db 3 sub 0 psub 0 ssub 0 multi -1 watch 0 multi-mem 0 events r cmd client|info
            user default redir -1 idle 0 argv-mem 10
        } {
            assert_equal $value [field $name $line] "field $name"
        }
        assert_equal [$c -resp] [field resp $line]
        assert_range [field age $line] 0 60
        assert {[field tot-mem $line] > 0}
    }

    test {traffic and commands are counted for each client} {
        set c [connect 2]
        set before [r client list id [$c client id]]
        $c echo [string repeat x 1000]
        set after [r client list id [$c client id]]
        assert_range [expr {[field tot-net-in $after] - [field tot-net-in $before]}] 1000 1200
        assert_range [expr {[field tot-net-out $after] - [field tot-net-out $before]}] 1000 1200
        assert_equal 2 [expr {[field tot-cmds $after] - [field tot-cmds $before]}]
        assert_equal client|id [field cmd $after]
    }

    test {a client that has sent no command shows none} {
        set s [raw_connect]
        wait_for_condition 100 10 {[llength [ids]] == 2}
        set line [r client list skipme yes]
        assert_equal NULL [field cmd $line]
        assert_equal 0 [field tot-cmds $line]
    }

    test {half a request waits in the query buffer} {
        set s [raw_connect]
        raw_send $s "*2\r\n\$4\r\nECHO\r\n\$1000\r\n[string repeat x 500]"
        wait_for_condition 100 10 {[set line [r client list skipme yes]] ne "" && [field qbuf $line] >= 500}
        # (a request that arrived in pieces may still be in the client's own buffer)
        wait_for_condition 100 10 {[own_field qbuf] == 0}
    }

    test {unread output is shown in the line} {
        r set big [string repeat x 100000]
        set s [raw_connect]
        raw_send $s [string repeat "GET big\r\n" 200]
        wait_for_condition 100 50 {
            [set line [r client list skipme yes]] ne "" && [field omem $line] > 1000000 &&
            [field events $line] eq "rw"
        }
        r del big
    }

    test {an idle client owns no buffer, whatever it has sent before} {
        set quiet [connect]
        set busy [connect]
        set quiet_id [$quiet client id]
        set busy_id [$busy client id]
        $busy set big [string repeat x 100000]
        for {set i 0} {$i < 50} {incr i} {$busy -send get big}
        for {set i 0} {$i < 50} {incr i} {assert_equal 100000 [string length [$busy -read]]}
        $busy del big
        wait_for_condition 100 10 {
            [field tot-mem [r client list id $busy_id]] == [field tot-mem [r client list id $quiet_id]]
        }
        set line [r client list id $busy_id]
        foreach name {qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll omem} {
            assert_equal 0 [field $name $line] $name
        }
    }

    test {CLIENT NO-EVICT, NO-TOUCH and CAPA show as letters} {
        set c [connect]
        assert_equal {status OK} [$c -typed client no-evict on]
        assert_equal OK [$c client no-touch ON]
        assert_equal eT [own_field flags $c]
        assert_equal OK [$c client no-evict off]
        assert_equal T [own_field flags $c]
        assert_equal OK [$c client no-touch off]
        assert_equal N [own_field flags $c]
        assert_error "ERR syntax error" {$c client no-evict maybe}
        assert_error "ERR syntax error" {$c client no-touch maybe}
        assert_equal OK [$c client capa nosuch]
        assert_equal {} [own_field capa $c]
        assert_equal {status OK} [$c -typed client capa nosuch REDIRECT other]
        assert_equal r [own_field capa $c]
        assert_error "ERR wrong number of arguments for 'client|capa' command" {$c client capa}
    }

    test {CLIENT IMPORT-SOURCE is refused outside of import mode} {
        assert_error "ERR Server is not in import mode" {r client import-source on}
        assert_error "ERR Server is not in import mode" {r client import-source maybe}
        assert_equal {status OK} [r -typed client import-source off]
    }
}

start_server {tags {client}} {
    test {filters by id, one or many, given once or more often} {
        set me [r client id]
        foreach name {a b c} {
            set $name [connect]
            set id_$name [[set $name] client id]
        }
        assert_equal [list $id_a $id_c] [ids id $id_c $id_a]
        assert_equal [list $id_a $id_b] [ids id $id_a id $id_b]
        assert_equal [list $id_b] [ids id $id_b $id_b 999999]
        assert_equal [list $id_a] [ids id $id_a $id_b not-id $id_b]
        assert_equal [list $me $id_b] [ids not-id $id_a not-id $id_c]
        foreach bad {a 01 +1 1.5 9223372036854775808 {}} {
            assert_error "ERR syntax error" {r client list id $bad}
            assert_error "ERR syntax error" {r client list not-id 1 $bad}
        }
        foreach bad {0 -1 {1 0} {5 -9223372036854775808}} {
            assert_error "ERR client-id should be greater than 0" {r client list id {*}$bad}
            assert_error "ERR client-id should be greater than 0" {r client list not-id {*}$bad}
        }
    }

    test {filters by type: the last one applies} {
        wait_for_condition 500 20 {[ids type NORMAL] eq [list [r client id]]} ;# those of the test before have ended
        assert_equal [list [r client id]] [ids type NORMAL]
        foreach type {pubsub replica slave primary master} {
            assert_equal {} [ids type $type]
            assert_equal [list [r client id]] [ids not-type $type]
        }
        assert_equal {} [ids type normal type replica]
        assert_equal [list [r client id]] [ids type replica type normal]
        assert_equal {} [ids not-type normal]
        assert_error "ERR Unknown client type 'foo'" {r client list type foo}
        assert_error "ERR Unknown client type 'a  b'" {r client list not-type "a\r\nb"}
    }

    test {filters by user} {
        assert_equal [list [r client id]] [ids user default]
        assert_equal {} [ids not-user default]
        assert_error "ERR No such user 'nobody'" {r client list user nobody}
        assert_error "ERR No such user 'DEFAULT'" {r client list not-user DEFAULT}
    }

    test {filters by address} {
        set me [own_field addr]
        assert_equal [list [r client id]] [ids addr $me]
        assert_equal {} [ids not-addr $me]
        assert_equal {} [ids addr nowhere]
        assert_equal [list [r client id]] [ids laddr 127.0.0.1:[srv port] ip 127.0.0.1]
        assert_equal {} [ids not-laddr 127.0.0.1:[srv port]]
        assert_equal {} [ids not-ip 127.0.0.1]
        assert_equal [list [r client id]] [ids not-ip 127.0.0.2]
        assert_equal {} [ids ip {}]
    }

    test {filters by name and library: an unset value equals the empty one} {
        set a [connect]
        set b [connect]
        $a client setname one
        $b client setname two
        $b client setinfo lib-name lib
        $b client setinfo lib-ver 2
        set all [list [r client id] [$a client id] [$b client id]]
        assert_equal [list [$a client id]] [ids name one]
        assert_equal {} [ids name ONE]
        assert_equal [list [$b client id]] [ids name one name two]
        assert_equal [list [r client id] [$b client id]] [ids not-name one]
        assert_equal {} [ids name one not-name one]
        assert_equal {} [ids name {}]
        assert_equal $all [ids not-name {}]
        assert_equal [list [$b client id]] [ids lib-name lib lib-ver 2]
        assert_equal [lrange $all 0 1] [ids not-lib-name lib]
        assert_equal [lrange $all 0 1] [ids not-lib-ver 2]
        assert_equal {} [ids lib-name {}]
    }

    test {filters by flags: all letters must match} {
        set c [connect]
        $c client no-evict on
        $c client no-touch on
        assert_equal [list [$c client id]] [ids flags eT]
        assert_equal [list [$c client id]] [ids flags TTe]
        # A connection of an earlier test may be closed by a thread only now.
        wait_for_condition 100 20 {[ids flags N] eq [list [r client id]]}
        assert_equal {} [ids flags eN]
        assert_equal [list [r client id]] [ids not-flags e]
        assert_equal [list [r client id] [$c client id]] [ids not-flags ex]
        assert_equal [list [r client id] [$c client id]] [ids flags {}]
        assert_equal {} [ids not-flags {}]
        foreach letter [split ABEIMNOPRSTUbcdeirtux {}] {r client list flags $letter}
        assert_error "ERR Unknown flags found in the provided filter: NZ" {r client list flags NZ}
        assert_error "ERR Unknown flags found in the NOT-FLAGS filter: z" {r client list not-flags z}
    }

    test {filters by capability} {
        set c [connect]
        $c client capa redirect
        assert_equal [list [$c client id]] [ids capa r]
        assert_equal [list [r client id]] [ids not-capa r]
        assert_error "ERR Unknown capa found in the provided filter: x" {r client list capa x}
        assert_error "ERR Unknown capa found in the NOT-CAPA filter: rx" {r client list not-capa rx}
    }

    test {filters by database} {
        set c [connect]
        $c select 5
        assert_equal [list [$c client id]] [ids db 5]
        assert_equal [list [r client id]] [ids not-db 5]
        foreach {word name} {db DB not-db NOT-DB} {
            foreach bad {x 1.0 {} 99999999999} {
                assert_error "ERR $name is not an integer or out of range" {r client list $word $bad}
            }
            foreach bad {-1 16 2147483647} {
                assert_error "ERR $name number should be between 0 and 15" {r client list $word $bad}
            }
        }
    }

    test {filters by age and idleness} {
        assert_equal {} [ids maxage 99999999999]
        assert_equal {} [ids idle 99999999999]
        wait_for_condition 100 50 {[ids maxage 1] eq [list [r client id]]}
        foreach word {maxage idle} {
            foreach bad {x 1.5 {} 99999999999999999999} {
                assert_error "ERR $word is not an integer or out of range" {r client list $word $bad}
            }
            foreach bad {0 -1} {
                assert_error "ERR $word should be greater than 0" {r client list $word $bad}
            }
            assert_error "ERR syntax error" {r client list not-$word 1}
        }
    }

    test {SKIPME leaves the caller out} {
        set c [connect]
        assert_equal [list [$c client id]] [ids skipme YES]
        assert_equal [list [r client id] [$c client id]] [ids skipme no]
        assert_error "ERR syntax error" {r client list skipme maybe}
        assert_error "ERR syntax error" {r client list not-skipme yes}
    }

    test {filters without a value or without a name are refused, the first error wins} {
        foreach words {foo {foo bar} id type {type normal type} user skipme idle maxage flags capa db not-name} {
            assert_error "ERR syntax error" {r client list {*}$words}
        }
        assert_error "ERR Unknown flags found in the provided filter: Z" {r client list flags Z idle 0}
        assert_error "ERR idle should be greater than 0" {r client list name x idle 0 flags Z}
    }
}

start_server {tags {client}} {
    test {CLIENT KILL address} {
        set c [connect]
        assert_equal {status OK} [r -typed client kill [own_field addr $c]]
        $c -closed
        assert_error "ERR No such client" {r client kill 127.0.0.1:1}
        assert_error "ERR No such client" {r client kill id}
        assert_error "ERR wrong number of arguments for 'client|kill' command" {r client kill}
    }

    test {CLIENT KILL replies the number of closed clients} {
        foreach name {a b c} {set $name [connect]}
        assert_equal {integer 2} [r -typed client kill id [$a client id] [$c client id]]
        $a -closed
        $c -closed
        assert_equal PONG [$b ping]
        assert_equal 0 [r client kill id 999999]
        assert_equal 0 [r client kill type replica]
        assert_equal 1 [r client kill type normal db 0 not-id [r client id]]
        $b -closed
    }

    test {the connection of a killed client has ended when the reply arrives, in a transaction, too} {
        foreach way {plain multi} {
            for {set i 0} {$i < 20} {incr i} {
                set c [connect]
                set id [$c client id]
                if {$way eq "multi"} {r multi}
                r client kill id $id
                if {$way eq "multi"} {assert_equal 1 [r exec]}
                fconfigure [$c -channel] -blocking 0
                read [$c -channel]
                assert {[eof [$c -channel]]}
            }
        }
    } {tls:skip}

    test {CLIENT KILL skips the caller without SKIPME no} {
        set c [connect]
        assert_equal 0 [r client kill id [r client id]]
        assert_equal 1 [r client kill skipme yes]
        $c -closed
        set c [connect]
        assert_equal 1 [$c client kill id [$c client id] skipme no]
        $c -closed
    }

    test {a client that kills itself gets the reply, and its following commands do not run} {
        set s [raw_connect]
        raw_send $s "SET killed no\r\nCLIENT KILL TYPE normal SKIPME no\r\nSET killed yes\r\nPING\r\n"
        assert_match "+OK\r\n:*\r\n" [raw_rest $s]
        drop_clients
        assert_equal no [r get killed]
        set s [raw_connect]
        set me [chan configure $s -sockname]
        raw_send $s "CLIENT KILL [lindex $me 0]:[lindex $me 2]\r\nPING\r\n"
        assert_equal "+OK\r\n" [raw_rest $s]
    }

    test {a client killed with pending requests does not run them} {
        set victims {}
        for {set i 0} {$i < 20} {incr i} {
            set s [raw_connect]
            raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$100000\r\n[string repeat x [random_below 1000]]"
            lappend victims $s
        }
        wait_for_condition 100 10 {[llength [ids skipme yes]] == 20}
        assert_equal 20 [r client kill type normal]
        foreach s $victims {assert_equal {} [raw_rest $s]}
        assert_equal [list [r client id]] [ids]
        assert_equal PONG [r ping]
    }

    test {CLIENT KILL refuses filters as CLIENT LIST does, and closes no client} {
        set c [connect]
        foreach {words message} {
            {type foo} "ERR Unknown client type 'foo'"
            {user nobody} "ERR No such user 'nobody'"
            {x y} "ERR syntax error"
            {id 1 skipme} "ERR syntax error"
            {skipme no type foo} "ERR Unknown client type 'foo'"
            {id 9223372036854775808} "ERR syntax error"
            {maxage 0} "ERR maxage should be greater than 0"
            {db 16} "ERR DB number should be between 0 and 15"
        } {
            assert_error $message {r client kill {*}$words}
        }
        assert_equal PONG [$c ping]
    }
}

start_server {tags {client}} {
    # Sends lines and QUIT on a new connection and returns the replies.
    proc replies_to {args} {
        set s [raw_connect]
        raw_send $s "[join $args "\r\n"]\r\nCLIENT REPLY ON\r\nQUIT\r\n"
        set rest [raw_rest $s]
        raw_close $s
        if {![string match "*+OK\r\n+OK\r\n" $rest]} {fail "no end in [shown $rest]"}
        return [string range $rest 0 end-10]
    }

    test {CLIENT REPLY OFF silences everything until ON} {
        assert_equal {} [replies_to "CLIENT REPLY OFF" "PING" "NOSUCH" "GET" "SET replied off"]
        assert_equal off [r get replied]
        assert_equal "+OK\r\n+PONG\r\n" [replies_to "CLIENT REPLY OFF" "PING" "CLIENT REPLY ON" "PING"]
        assert_equal "+OK\r\n" [replies_to "CLIENT REPLY on"]
        assert_equal {} [replies_to "CLIENT REPLY OFF" "CLIENT REPLY nosuch"]
    } {resp:2}

    test {CLIENT REPLY SKIP silences itself and the next command} {
        assert_equal "\$1\r\n2\r\n" [replies_to "CLIENT REPLY SKIP" "PING 1" "PING 2"]
        assert_equal "\$1\r\n2\r\n" [replies_to "CLIENT REPLY SKIP" "CLIENT REPLY SKIP" "PING 1" "PING 2"]
        assert_equal "\$1\r\n1\r\n" [replies_to "CLIENT REPLY SKIP" "NOSUCH" "PING 1"]
        assert_equal "\$1\r\n1\r\n" [replies_to "CLIENT REPLY SKIP" "CLIENT REPLY nosuch" "PING 1"]
        assert_equal "+OK\r\n+PONG\r\n" [replies_to "CLIENT REPLY SKIP" "CLIENT REPLY ON" "PING"]
        assert_equal "+OK\r\n\$1\r\n2\r\n" \
            [replies_to "CLIENT REPLY OFF" "CLIENT REPLY SKIP" "PING 1" "CLIENT REPLY ON" "PING 2"]
        assert_equal "+OK\r\n\$1\r\n2\r\n" \
            [replies_to "CLIENT REPLY SKIP" "CLIENT REPLY OFF" "PING 1" "CLIENT REPLY ON" "PING 2"]
    } {resp:2}

    test {RESET replies even if replies are off} {
        assert_equal "+RESET\r\n\$1\r\n1\r\n" [replies_to "CLIENT REPLY OFF" "RESET" "PING 1"]
    } {resp:2}

    test {HELLO changes the protocol even if its reply is suppressed} {
        assert_equal "+OK\r\n_\r\n" [replies_to "CLIENT REPLY OFF" "HELLO 3" "CLIENT REPLY ON" "GET nosuch"]
    } {resp:2}

    test {CLIENT REPLY refuses unknown modes} {
        assert_error "ERR syntax error" {r client reply maybe}
        assert_error "ERR wrong number of arguments for 'client|reply' command" {r client reply}
        assert_equal {status OK} [r -typed client reply on]
    }

    test {CLIENT HELP names the subcommands} {
        set lines [r client help]
        assert_equal {CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:} [lindex $lines 0]
        assert_equal {HELP {    Print this help.}} [lrange $lines end-1 end]
        foreach word {GETNAME ID INFO "KILL <ip:port>" "LIST \[options ...\]" "REPLY (ON|OFF|SKIP)"
            "SETNAME <name>" "SETINFO <option> <value>" "NO-EVICT (ON|OFF)" "CACHING (YES|NO)" GETREDIR TRACKINGINFO
            "TRACKING (ON|OFF) \[REDIRECT <id>\] \[BCAST\] \[PREFIX <prefix> \[...\]\]"
        } {
            assert {$word in $lines} $word
        }
        assert_equal {array} [lindex [r -typed client help] 0]
    }

    test {CLIENT without a valid subcommand} {
        assert_error "ERR wrong number of arguments for 'client' command" {r client}
        assert_error "ERR unknown subcommand 'nosuch'. Try CLIENT HELP." {r client nosuch}
        foreach words {{id x} {getname x} {info x} {help x} setname {setname a b} {setinfo lib-name} import-source} {
            assert_error "ERR wrong number of arguments for 'client|[lindex $words 0]' command" {
                r client {*}$words
            }
        }
    }
}
