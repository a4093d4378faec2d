# TIME, SHUTDOWN, DEBUG.

start_server {tags {admin}} {
    test {TIME replies seconds and microseconds} {
        lassign [r -typed time] type parts
        assert_equal array $type
        lassign $parts seconds micros
        assert_equal bulk [lindex $seconds 0]
        assert_range [lindex $seconds 1] [expr {[clock seconds] - 5}] [expr {[clock seconds] + 5}]
        assert_range [lindex $micros 1] 0 999999
        assert_error "ERR wrong number of arguments for 'time' command" {r time x}
    }

    test {DEBUG PROTOCOL shows every type} {
        set three {{integer 0} {integer 1} {integer 2}}
        foreach {type resp2 resp3} [list \
            string {bulk {Hello World}} {bulk {Hello World}} \
            integer {integer 12345} {integer 12345} \
            double {bulk 3.141} {double 3.141} \
            null {null bulk} {null null} \
            array [list array $three] [list array $three] \
            set [list array $three] [list set $three] \
            map {array {{integer 0} {integer 0} {integer 1} {integer 1} {integer 2} {integer 0}}} \
                {map {{integer 0} {bool 0} {integer 1} {bool 1} {integer 2} {bool 0}}} \
            bignum {bulk 1234567999999999999999999999999999999} {bignumber 1234567999999999999999999999999999999} \
            verbatim [list bulk "This is a verbatim\nstring"] [list verbatim "txt:This is a verbatim\nstring"] \
            true {integer 1} {bool 1} \
            FALSE {integer 0} {bool 0} \
            attrib {bulk {Some real reply following the attribute}} \
                {attribute {{bulk key-popularity} {array {{bulk key:123} {integer 90}}}} {bulk {Some real reply following the attribute}}} \
        ] {
            assert_equal [expr {[resp3] ? $resp3 : $resp2}] [r -typed debug protocol $type] $type
        }
        assert_error "ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false" {
            r debug protocol nosuch
        }
    }

    test {DEBUG PROTOCOL push needs RESP3} {
        if {[resp3]} {
            assert_equal "Some real reply following the push reply" [r debug protocol push]
            assert_equal {server-cpu-usage 42} [r -push]
        } else {
            assert_error "ERR RESP2 is not supported by this command" {r debug protocol push}
        }
    }

    test {DEBUG ERROR returns its text as the whole error} {
        assert_equal {error {MYERR a b}} [r -typed debug error "MYERR a b"]
        assert_equal {error {a  b}} [r -typed debug error "a\r\nb"]
        assert_equal {error {}} [r -typed debug error {}]
    }

    test {DEBUG LOG writes to the log} {
        assert_equal {status OK} [r -typed debug log "a word: %s \"quoted\""]
        wait_for_condition 100 10 {[string match {*DEBUG LOG: a word: %s "quoted"*} [server_log]]}
    } {needs:config}

    test {DEBUG SLEEP accepts a number or text that begins like one} {
        foreach seconds {0 0.001 -1 x {} 1e-3s nan} {
            assert_equal {status OK} [r -typed debug sleep $seconds]
        }
    }

    test {DEBUG refuses unknown subcommands} {
        assert_error "ERR wrong number of arguments for 'debug' command" {r debug}
        foreach words {nosuch {nosuch x} sleep {sleep 0 0} log {log a b} error {error a b} protocol {protocol string x} {help x}} {
            assert_error "ERR unknown subcommand or wrong number of arguments for '[lindex $words 0]'. Try DEBUG HELP." {
                r debug {*}$words
            }
        }
        set lines [r debug help]
        assert_equal {DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:} [lindex $lines 0]
        assert {"SLEEP <seconds>" in $lines}
        assert_equal {HELP {    Print this help.}} [lrange $lines end-1 end]
    }

    test {DEBUG subcommands about memory and buffers} {
        assert_match "bits:64 robj:*" [r debug structsize]
        assert_equal OK [r debug replybuffer resizing 0]
        assert_equal OK [r debug replybuffer peak-reset-time 100]
        assert_equal OK [r debug replybuffer PEAK-RESET-TIME never]
        assert_error "ERR value is not an integer or out of range" {r debug replybuffer peak-reset-time x}
        assert_error "ERR unknown subcommand or wrong number of arguments for 'replybuffer'. Try DEBUG HELP." {r debug replybuffer x 1}
        assert_equal OK [r debug force-free-primary-async 1]
        if {[string match "*mem_allocator:jemalloc*" [r info memory]]} {
            assert_equal 16 [r debug mallctl arenas.quantum]
            set threads [r debug mallctl max_background_threads]
            assert_equal $threads [r debug mallctl max_background_threads 2]
            assert_equal 2 [r debug mallctl max_background_threads $threads]
            assert_error "ERR Operation not permitted" {r debug mallctl arenas.quantum 8}
            assert_match {[0-9]*.*} [r debug mallctl-str version]
            # A number that would be taken for the address of a text.
            assert_error "ERR No such file or directory" {r debug mallctl-str stats.allocated}
        }
        assert_error "ERR * *" {r debug mallctl nosuch}
        assert_error "ERR value is not an integer or out of range" {r debug mallctl nosuch x}
    }

    test {DEBUG PROTECT-CLIENT takes the id of a client, HASHTABLE-CAN-ABORT-SHRINK a switch} {
        assert_equal OK [r debug protect-client [[connect] client id]]
        foreach id {x {} 1.5} {assert_error "ERR Invalid client id" {r debug protect-client $id}}
        foreach id {-1 0 999999} {assert_error "ERR No such client" {r debug protect-client $id}}
        assert_equal OK [r debug hashtable-can-abort-shrink 0]
        assert_equal OK [r debug hashtable-can-abort-shrink 1]
    }

    test {LOLWUT draws a picture of its own for versions 5, 6 and 9} {
        set text [r lolwut version 5 10 2 2]
        assert_match "*\n\nGeorg Nees - schotter, plotter on paper, 1968. Valkey ver. *\n" $text
        assert_equal [list 5 10] [list [regexp -all -line {^[\u2800-\u28ff]+$} [encoding convertfrom utf-8 $text]] \
            [string length [lindex [split [encoding convertfrom utf-8 $text] "\n"] 0]]]
        set text [r lolwut version 6 20 7]
        assert_match "*\nDedicated to the 8 bit game developers of past and present.\n*Valkey ver. *\n" $text
        assert_equal [expr {20 * 7}] [regexp -all {\033\[0;(97;107|37;47|90;100|30;40)m \033\[0m} $text]
        assert_match "*Julia set*Valkey ver. *\n" [r lolwut version 9]
        assert_match "Valkey ver.\[0-9]*\n" [r lolwut version 7]
        foreach arguments {{5 a} {5 1 a} {5 1 1 a} {6 a} {6 1 a}} {
            assert_error "ERR value is not an integer or out of range" {r lolwut version {*}$arguments}
        }
        foreach arguments {{5 0 0 0} {5 -1 -1 -1} {6 0 -5} {5 9223372036854775807 1 1} {6 9223372036854775807 2} {5 5 300 300}} {
            assert_match "*Valkey ver. *" [r lolwut version {*}$arguments]
        }
    }

    test {SHUTDOWN refuses unknown and contradictory options} {
        foreach words {
            foo {save nosave} {nosave now save} {abort now} {now abort} {save abort} {now now abort} {save save nosave}
        } {
            assert_error "ERR syntax error" {r shutdown {*}$words}
        }
        assert_error "ERR No shutdown in progress." {r shutdown abort}
        assert_error "ERR No shutdown in progress." {r shutdown ABORT abort}
        assert_error "ERR SHUTDOWN FAILOVER is only supported in cluster mode." {r shutdown now failover}
        assert_equal PONG [r ping]
    }
}

foreach words {{} {nosave} {NOW FORCE} {save now force safe}} {
    start_server {tags {admin needs:config} crash ok} {
        test "SHUTDOWN $words ends the server without a reply" {
            set s [raw_connect]
            raw_send $s "SHUTDOWN $words\r\nPING\r\n"
            assert_equal {} [raw_rest $s]
            wait_for_condition 500 10 {[process_ended [srv pid]]}
            assert_match "*ready to exit, bye bye*" [server_log]
        }
    }
}

foreach {value allowed} {no 0 local 1} {
    start_server [list tags {admin} overrides [list enable-debug-command $value]] {
        test "enable-debug-command $value and a caller from this machine" {
            if {$allowed} {
                assert_equal OK [r debug sleep 0]
            } else {
                set text {ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.}
                assert_error $text {r debug sleep 0}
                assert_error $text {r debug help}
                assert_error "ERR wrong number of arguments for 'debug' command" {r debug}
                assert_match "*cmdstat_debug:calls=0,*rejected_calls=3,failed_calls=0*" [r info commandstats]
            }
        }
    }
}
