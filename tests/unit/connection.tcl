# The caller's own connection: HELLO, AUTH, RESET, QUIT, SELECT.

proc no_password {} {
    return {ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?}
}

start_server {tags {connection}} {
    test {PING counts its arguments} {
        assert_equal {bulk {}} [r -typed ping {}]
        assert_equal "a\r\nb" [r ping "a\r\nb"]
        assert_error "ERR wrong number of arguments for 'ping' command" {r ping a b}
    }

    test {SELECT has different errors for unknown databases and for numbers out of range} {
        assert_error "ERR DB index is out of range" {r select 2147483647}
        foreach index {2147483648 -2147483649 99999999999} {
            assert_error "ERR value is out of range, value must between -2147483648 and 2147483647" {
                r select $index
            }
        }
        foreach index {01 +1 -0} {
            assert_error "ERR value is not an integer or out of range" {r select $index}
        }
    }

    test {HELLO describes the server} {
        set facts [r hello]
        assert_equal {server version proto id mode role modules} [dict keys $facts]
        assert_equal valkey [dict get $facts server]
        assert_equal 9.1.2 [dict get $facts version]
        assert_equal [r client id] [dict get $facts id]
        assert_equal standalone [dict get $facts mode]
        assert_equal master [dict get $facts role]
        assert_equal [expr {[resp3] ? 3 : 2}] [dict get $facts proto]
    }

    test {HELLO, MODULE LIST and INFO show the built-in engine of scripts as the module lua} {
        set lua {{name lua ver 1 path lua args {}}}
        assert_equal $lua [dict get [r hello] modules]
        assert_equal $lua [r module list]
        assert_match "*module:name=lua,ver=1,api=1,*" [r info modules]
        assert_equal {LIST {LOAD <path> [<arg> ...]}} [lsearch -all -inline -regexp [r module help] {^(LIST|LOAD )}]
        assert_error "ERR wrong number of arguments for 'module|list' command" {r module list x}
    }

    test {MODULE LOAD, LOADEX and UNLOAD are refused unless enable-module-command permits them} {
        foreach words {{load /x.so} {loadex /x.so config a b args c} {unload x}} {
            assert_error "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a local connection, otherwise*" {r module {*}$words}
        }
        assert_error "ERR wrong number of arguments for 'module|load' command" {r module load}
        assert_error "ERR wrong number of arguments for 'module|unload' command" {r module unload a b}
    }

    test {HELLO switches the protocol immediately, in both directions} {
        set c [connect 2]
        assert_equal map [lindex [$c -typed hello 3] 0]
        assert_equal {null null} [$c -typed get nosuch]
        assert_equal map [lindex [$c -typed hello] 0]
        assert_equal array [lindex [$c -typed hello 2] 0]
        assert_equal {null bulk} [$c -typed get nosuch]
    }

    test {HELLO refuses unsupported protocol versions} {
        foreach version {4 1 0 -2} {
            assert_error "NOPROTO unsupported protocol version" {r hello $version}
        }
        foreach version {x 3.0 02 +2 {} 99999999999999999999 AUTH} {
            assert_error "ERR Protocol version is not an integer or out of range" {r hello $version}
        }
        assert_error "NOPROTO unsupported protocol version" {r hello 4 nosuch}
    }

    test {HELLO refuses unknown and incomplete options} {
        foreach {words option} {
            nosuch nosuch auth auth {AUTH a} AUTH setname setname {setname a b} b
            {auth default x setname} setname {setname a auth default} auth
        } {
            assert_error "ERR Syntax error in HELLO option '$option'" {r hello 3 {*}$words}
        }
        assert_error "ERR Syntax error in HELLO option 'a  b'" {r hello 3 "a\r\nb"}
    }

    test {HELLO SETNAME names the connection, a bad name changes nothing} {
        set c [connect 2]
        $c hello 3 setname first
        assert_equal first [$c client getname]
        $c hello 3 setname second setname third
        assert_equal third [$c client getname]
        assert_error "ERR Client names cannot contain spaces, newlines or special characters." {
            $c hello 2 setname "a b"
        }
        assert_error "ERR Syntax error in HELLO option 'nosuch'" {$c hello 2 setname fourth nosuch}
        assert_equal {bulk third} [$c -typed client getname]
        assert_equal {null null} [$c -typed get nosuch]
        $c hello 3 setname {}
        assert_equal {} [$c client getname]
    }

    test {AUTH without a configured password} {
        assert_error [string map {[ \\[ ] \\]} [no_password]] {r auth x}
        assert_equal {status OK} [r -typed auth default x]
        assert_error "WRONGPASS invalid username-password pair or user is disabled." {r auth nobody x}
        assert_error "ERR syntax error" {r auth a b c}
        assert_error "ERR wrong number of arguments for 'auth' command" {r auth}
        assert_equal 7 [dict size [r hello [expr {[resp3] ? 3 : 2}] auth default x]]
        assert_error "WRONGPASS *" {r hello 3 auth nobody x}
    }

    test {RESET restores the state of a new connection} {
        set c [connect 2]
        $c hello 3 setname me
        $c client setinfo lib-name lib
        $c client no-evict on
        $c client capa redirect
        $c select 4
        assert_equal {status RESET} [$c -typed reset]
        set line [$c client info]
        foreach part {name= db=0 flags=N resp=2 lib-name=lib capa=r} {
            assert_match "* $part *" $line
        }
        assert_equal {null bulk} [$c -typed get nosuch]
        assert_error "ERR wrong number of arguments for 'reset' command" {$c reset now}
    }

    test {a client is disconnected although a forked child has a copy of its descriptor} {
        set quits [raw_connect]
        set killed [raw_connect]
        raw_send $killed "CLIENT ID\r\n"
        set id [string range [raw_line $killed] 1 end]
        raw_send $quits "PING\r\n"
        raw_line $quits
        r debug child 100
        raw_send $quits "QUIT\r\n"
        assert_equal "+OK\r\n" [raw_rest $quits]
        assert_equal 1 [r client kill id $id]
        assert_equal {} [raw_rest $killed]
        r debug child 0
    }

    test {QUIT replies and disconnects, whatever follows it} {
        set s [raw_connect]
        raw_send $s "PING\r\nQUIT a b\r\nSET quit behind\r\nPING\r\n"
        assert_equal "+PONG\r\n+OK\r\n" [raw_rest $s]
        assert_equal 0 [r exists quit]
        set s [raw_connect]
        raw_send $s "CLIENT REPLY SKIP\r\nQUIT\r\n"
        raw_close $s
    }
}

start_server {tags {connection} overrides {requirepass sesame availability-zone zone1}} {
    set wrong "WRONGPASS invalid username-password pair or user is disabled."
    set needed "NOAUTH Authentication required."

    # A connection without authentication.
    proc stranger {} {return [respConnect [srv host] [srv port] 2]}

    test {without the password commands are refused} {
        set c [stranger]
        foreach words {ping nosuch get {get a} {client id} {config get port} {select 1} client} {
            assert_error $needed {$c {*}$words}
        }
        assert_equal RESET [$c reset]
        assert_error $needed {$c ping}
        assert_equal OK [$c quit]
        $c -closed
        $c -close
    }

    test {AUTH with the password, and with wrong ones} {
        set c [stranger]
        foreach words {{} {bad} {sesamE} {sesame1} {sesam} {default bad} {nobody sesame} {{} sesame}} {
            if {$words eq ""} {set words [list {}]}
            assert_error $wrong {$c auth {*}$words}
            assert_error $needed {$c ping}
        }
        assert_error "ERR syntax error" {$c auth default sesame x}
        assert_equal {status OK} [$c -typed auth sesame]
        assert_equal PONG [$c ping]
        assert_error $wrong {$c auth bad}
        assert_equal PONG [$c ping]
        assert_equal OK [$c auth default sesame]
        $c -close
    }

    test {HELLO requires authentication only after its options were parsed} {
        set c [stranger]
        set must "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
        foreach words {{} 2 3 {3 setname x}} {
            assert_error $must {$c hello {*}$words}
        }
        assert_error "NOPROTO unsupported protocol version" {$c hello 5}
        assert_error "ERR Protocol version is not an integer or out of range" {$c hello x}
        assert_error "ERR Syntax error in HELLO option 'nosuch'" {$c hello 3 auth default sesame nosuch}
        assert_error "ERR Client names cannot contain spaces, newlines or special characters." {
            $c hello 3 auth default sesame setname "a b"
        }
        assert_error $wrong {$c hello 3 setname x auth default bad}
        assert_error $needed {$c ping}
        assert_equal map [lindex [$c -typed hello 3 auth default sesame setname x] 0]
        assert_equal x [$c client getname]
        $c -close
    }

    test {a failed HELLO changes neither protocol, name nor authentication} {
        set c [connect 3]
        $c client setname me
        assert_error $wrong {$c hello 2 auth default bad setname other}
        assert_equal {bulk me} [$c -typed client getname]
        assert_equal {null null} [$c -typed get nosuch]
    }

    test {HELLO ends with the zone where one is configured} {
        set facts [r hello]
        assert_equal {modules availability_zone} [lrange [dict keys $facts] end-1 end]
        assert_equal zone1 [dict get $facts availability_zone]
    }

    test {RESET logs out} {
        set c [connect]
        assert_equal RESET [$c reset]
        assert_error $needed {$c ping}
    }

    test {requests after AUTH in the same buffer have no pre-authentication limits} {
        set s [raw_connect]
        set words [lrepeat 20 x]
        set long "*22\r\n\$3\r\nDEL\r\n\$20000\r\n[string repeat x 20000]\r\n[join [lmap w $words {string cat "\$1\r\n" $w}] \r\n]\r\n"
        raw_send $s "AUTH sesame\r\n$long"
        assert_equal "+OK" [raw_line $s]
        assert_equal ":0" [raw_line $s]
        raw_close $s
        set s [raw_connect]
        catch {raw_send $s "AUTH bad\r\n$long"} ;# may be closed before everything is sent
        assert_equal "-$wrong\r\n-ERR Protocol error: unauthenticated multibulk length\r\n" [raw_rest $s]
    }
}

start_server {tags {connection} overrides {enable-module-command local}} {
    test {MODULE LOAD and UNLOAD of what is not there fail with Valkey's errors} {
        assert_error "ERR Error loading the extension. Please check the server logs." {r module load /x.so a b}
        assert_error "ERR Error loading the extension. Please check the server logs." {r module loadex /x.so args a}
        assert_match "*Module /x.so failed to load*" [server_log]
        assert_error "ERR Error unloading module: no such module with that name" {r module unload x}
        assert_equal 1 [llength [r module list]]
    }
}

start_server {tags {connection}} {
    test {extended-redis-compatibility names the server Redis in HELLO, INFO and LOLWUT} {
        proc names {} {
            set facts [r hello]
            list [dict get $facts server] [dict get $facts version] [regexp -inline {[a-z]+_mode} [r info server]] \
                [regexp -inline {[A-Z][a-z]+ ver\. [0-9.]+} [r lolwut version 5 1 1 1]] [regexp -inline {[A-Z][a-z]+ ver\.[0-9.]+} [r lolwut version 4]]
        }
        set plain [names]
        assert_equal {valkey 9.1.2 server_mode {{Valkey ver. 9.1.2}} {{Valkey ver.9.1.2}}} $plain
        r config set extended-redis-compatibility yes
        assert_equal {redis 7.2.4 redis_mode {{Redis ver. 7.2.4}} {{Redis ver.7.2.4}}} [names]
        assert_match "*valkey_version:9.1.2*" [r info server]
        r config set extended-redis-compatibility no
        assert_equal $plain [names]
    }
}
