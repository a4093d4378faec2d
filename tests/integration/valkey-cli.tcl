# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli without a terminal: options, formats of replies, exit status, input, --pipe, --eval, --scan.

source $::tests_dir/support/tools.tcl

proc cli_with_input {input args} {run_tool valkey-cli $input -h [srv host] -p [srv port] {*}$args}
proc cli {args} {cli_with_input "" {*}$args}
# Checks exit status and output.
proc cli_prints {status output args} {assert_equal [list $status $output] [cli {*}$args]}

start_server {tags {cli tools tls:skip}} {
    r set s hello
    r set n 42
    r set bin "a\x00\xff\"\n"
    r rpush l a "b c" ""
    r hset h f v
    r zadd z 2.5 m

    test {cli: every format of simple replies} {
        foreach {arguments raw standard csv json} {
            {get s}       hello  {"hello"}      {"hello"} {"hello"}
            {get none}    {}     (nil)          NULL      null
            {incrby n 0}  42     {(integer) 42} 42        42
            {set t x}     OK     OK             {"OK"}    {"OK"}
        } {
            cli_prints 0 $raw {*}$arguments
            cli_prints 0 $standard --no-raw {*}$arguments
            cli_prints 0 $csv --csv {*}$arguments
            cli_prints 0 $json --json {*}$arguments
        }
    }

    test {cli: aggregates and their delimiters} {
        cli_prints 0 "a\nb c\n" lrange l 0 -1
        cli_prints 0 {a;b c;} -d {;} lrange l 0 -1
        cli_prints 0 "a\nb c\n#" -D # lrange l 0 -1
        cli_prints 0 "1) \"a\"\n2) \"b c\"\n3) \"\"" --no-raw lrange l 0 -1
        cli_prints 0 {"a","b c",""} --csv lrange l 0 -1
        cli_prints 0 {["a","b c",""]} --json lrange l 0 -1
        cli_prints 0 {(empty array)} --no-raw lrange none 0 -1
        cli_prints 0 "1) \"f\"\n2) \"v\"" --no-raw hgetall h
    }

    test {cli: types of RESP3} {
        cli_prints 0 {1# "f" => "v"} -3 --no-raw hgetall h
        cli_prints 0 {f v} -3 hgetall h
        cli_prints 0 {{"f":"v"}} --json hgetall h
        cli_prints 0 {["f","v"]} -2 --json hgetall h
        cli_prints 0 {(double) 2.5} -3 --no-raw zscore z m
        cli_prints 0 {(empty hash)} -3 --no-raw hgetall none
        cli_prints 0 {(true)} -3 debug protocol true
        cli_prints 0 {1234567999999999999999999999999999999} -3 debug protocol bignum
    }

    test {cli: indexes of nested replies are aligned} {
        r del big
        r eval {for i = 1, 10 do redis.call('rpush', 'big', i) end} 0
        assert_match " 1) \"1\"\n 2) \"2\"\n*\n10) \"10\"" [lindex [cli --no-raw lrange big 0 -1] 1]
        cli_prints 0 "1) 1) (integer) 1\n   2) 1) (integer) 2\n2) (nil)" --no-raw eval {return {{1, {2}}, false}} 0
        cli_prints 0 "1# \"m\" => \n   1) (integer) 1\n   2) (integer) 2" -3 --no-raw eval \
            {redis.setresp(3); return {map = {m = {1, 2}}}} 0
    }

    test {cli: binary values are escaped outside the raw format} {
        cli_prints 0 {"a\x00\xff\"\n"} --no-raw get bin
        cli_prints 0 {"a\x00\xff\"\n"} --csv get bin
        cli_prints 0 {"a\\x00\\xff\\\"\\n"} --quoted-json get bin
        set path [srv dir]/raw
        exec [file dirname $::binary]/valkey-cli -p [srv port] -h [srv host] -D "" --raw get bin > $path
        assert_equal "a\x00\xff\"\n" [read_bytes $path]
    }

    test {cli: errors, with and without -e} {
        cli_prints 0 "ERR unknown command 'nosuch', with args beginning with: \n" nosuch
        cli_prints 1 "ERR unknown command 'nosuch', with args beginning with: " -e nosuch
        cli_prints 0 {(error) ERR wrong number of arguments for 'get' command} --no-raw get
        cli_prints 0 {ERROR,"ERR wrong number of arguments for 'get' command"} --csv get
        cli_prints 0 {error:"ERR wrong number of arguments for 'get' command"} --json get
    }

    test {cli: options that are not valid} {
        foreach {message arguments} {
            "Unrecognized option or bad number of args for: '--bogus'" --bogus
            "Unrecognized option or bad number of args for: '-p'" -p
            "Invalid server port." {-p 0 ping}
            "Invalid connection timeout for -t." {-t x ping}
            "Invalid interval for -i." {-i x ping}
            "-n: 'x' is not a number" {-n x ping}
            "-r: '2x' is not a number" {-r 2x ping}
            "--count: '' is not a number" {--count "" --scan}
            "--lru-test: '99999999999999999999' is not a number" {--lru-test 99999999999999999999}
            "Options -x and -X are mutually exclusive." {-x -X tag set k}
            "Options -4 and -6 are mutually exclusive." {-4 -6 ping}
            "Invalid URI scheme" {-u http://a ping}
            "Incomplete URI encoding" {-u valkey://p%@h ping}
            "Illegal character in URI encoding" {-u valkey://p%4@h ping}
            "Illegal character in URI encoding" {-u valkey://p%zz@h ping}
            "Invalid quoted string specified for --quoted-pattern." {--scan --quoted-pattern "\"a"}
            "Invalid quoted string" {--quoted-input get "\"a"}
            "Options --ldb and --ldb-sync-mode require --eval.\nTry valkey-cli --help for more information." --ldb
        } {
            assert_equal [list 1 $message] [run_tool valkey-cli "" {*}$arguments]
        }
        assert_match {0 {valkey-cli *}} [run_tool valkey-cli "" --version]
        assert_match "0 {valkey-cli *\n\nUsage: valkey-cli *}" [run_tool valkey-cli "" --help]
    }

    test {cli: a server that cannot be reached} {
        set port [free_port]
        set refused "Could not connect to Valkey at [srv host]:$port: Connection refused"
        assert_equal [list 1 $refused] [run_tool valkey-cli "" -h [srv host] -p $port ping]
        assert_equal {1 {Could not connect to Valkey at /nonexistent: No such file or directory}} \
            [run_tool valkey-cli "" -s /nonexistent ping]
    }

    test {cli: database, repetition, URI} {
        cli_prints 0 OK -n 5 set five 5
        cli_prints 0 5 -u valkey://[srv host]:[srv port]/5 get five
        cli_prints 0 "43\n44" -r 2 incr n
        assert_match {SELECT 99 failed: ERR DB index is out of range*} [lindex [cli -n 99 ping] 1]
    }

    test {cli: passwords from options, URIs and the environment} {
        r acl setuser u on >p@ss ~* +@all
        set warning "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe."
        cli_prints 0 "$warning\nu" --user u -a p@ss acl whoami
        cli_prints 0 u --user u --pass p@ss --no-auth-warning acl whoami
        cli_prints 0 "$warning\nu" -u valkey://u:p%40ss@[srv host]:[srv port] acl whoami
        set ::env(VALKEYCLI_AUTH) p@ss
        cli_prints 0 u --user u acl whoami
        unset ::env(VALKEYCLI_AUTH)
        assert_equal {0 u} [cli_with_input p@ss\n --user u --askpass acl whoami]
        assert_match {AUTH failed: WRONGPASS *} [lindex [cli --user u -a bad --no-auth-warning ping] 1]
    }

    test {--ldb without a terminal: Lua in quotes is sent as it is; lines, breakpoints and the reply are formatted} {
        set path [srv dir]/debug.lua
        write_bytes $path "local a = KEYS\[1\]\nlocal b = redis.call('get', a)\nreturn a\n"
        lassign [cli_with_input "e 'a  b' .. \"c\"\neval   'x y'\nnext\nbreak 3\nbreak\nnext\nrestart\ncontinue\nget none\n" --ldb --eval $path key] status output
        assert_equal 0 $status
        foreach line [list "\033\[0;35;49m<retval> a  bc\033\[0m" "\033\[0;35;49m<retval> x y\033\[0m" \
            "\033\[1;37;49m  #3   return a\033\[0m" "\033\[0;32;49m<command> get key\033\[0m" "\n\nLua debugging session started" \
            "\"key\"\n\n(Lua debugging session ended -- dataset changes rolled back)\n\n(nil)"] {
            assert {[string first $line $output] >= 0} $output
        }
    }

    test {cli: arguments from standard input and in quotes} {
        assert_equal {0 OK} [cli_with_input "from\nstdin" -x set k]
        assert_equal "from\nstdin" [r get k]
        assert_equal {0 OK} [cli_with_input name -X TAG set TAG value]
        assert_equal value [r get name]
        assert_equal {1 {Using -X option but stdin tag not match.}} [cli_with_input name -X TAG set k v]
        cli_prints 0 OK --quoted-input set {"q\x00"} 'v'
        assert_equal v [r get "q\x00"]
    }

    test {cli: commands of standard input, one per line} {
        set input "get s\n\n2 incr n\nnosuch\nset a \"b\n-1 ping\nselect 3\nset in3 x\nget in3\n:bogus\nrestart\nquit\nget s\n"
        assert_equal [list 0 [join {hello 45 46 {ERR unknown command 'nosuch', with args beginning with: } {}
            {Invalid argument(s)} {Invalid valkey-cli repeat command option value.} OK OK x
            {unknown valkey-cli internal command ':bogus'} {Use 'restart' only in Lua debugging mode.}} \n]] \
            [cli_with_input $input]
    }

    test {cli: subscriptions in standard input} {
        assert_equal "0 {[join {subscribe a 1 subscribe b 2 unsubscribe a 1 unsubscribe b 0 hello} \n]}" \
            [cli_with_input "subscribe a b\nunsubscribe a b\nget s\n"]
        assert_equal "0 {[join {subscribe a 1 unsubscribe a 0 hello} \n]}" \
            [cli_with_input "subscribe a\nunsubscribe\nget s\n"]
        assert_equal "0 {[join {subscribe a 1 hello} \n]}" [cli_with_input "subscribe a\nget s\n" -3 --show-pushes yes]
    }

    test {cli: messages are printed as they arrive} {
        set pipe [open "|[file dirname $::binary]/valkey-cli -h [srv host] -p [srv port] subscribe ch"]
        foreach line {subscribe ch 1} {assert_equal $line [gets $pipe]}
        r publish ch first
        foreach line {message ch first} {assert_equal $line [gets $pipe]}
        exec kill [pid $pipe]
        catch {close $pipe}
    }

    test {cli: a connection that the server closed is opened again, in the same database} {
        set pipe [open "|[file dirname $::binary]/valkey-cli -h [srv host] -p [srv port] 2>@1" r+]
        fconfigure $pipe -buffering line
        foreach {command reply} {{select 3} OK {set here 1} OK {client setname victim} OK} {
            puts $pipe $command
            assert_equal $reply [gets $pipe]
        }
        assert_equal 1 [r client kill name victim]
        wait_for_condition 200 25 {![string match *victim* [r client list]]} else {fail "not closed"}
        foreach {command reply} {{get here} {Error: Server closed the connection} {get here} 1} {
            puts $pipe $command
            assert_equal $reply [gets $pipe]
        }
        close $pipe
    }

    test {cli: messages are printed while standard input is idle, and the state can be asked} {
        set pipe [open "|[file dirname $::binary]/valkey-cli -h [srv host] -p [srv port] 2>@1" r+]
        fconfigure $pipe -buffering line
        foreach {command replies} {
            {subscribe a} {subscribe a 1} {psubscribe p*} {psubscribe p* 2} {:get pubsub} 1
        } {
            puts $pipe $command
            foreach reply $replies {assert_equal $reply [gets $pipe]}
        }
        r publish a idle
        foreach reply {message a idle} {assert_equal $reply [gets $pipe]}
        foreach {command replies} {unsubscribe {unsubscribe a 1} punsubscribe {punsubscribe p* 0} {:get pubsub} 0 {get s} hello} {
            puts $pipe $command
            foreach reply $replies {assert_equal $reply [gets $pipe]}
        }
        close $pipe
    }

    test {cli: FAKETTY formats replies as on a terminal} {
        set ::env(FAKETTY) 1
        set ::env(TERM) dumb
        set reading "Reading messages... (press Ctrl-C to quit or any key to type command)\n\x1b\[K" ;# exec turns CR into LF
        assert_equal [list 0 "\"hello\"\n1) \"subscribe\"\n2) \"a\"\n3) (integer) 1\n$reading"] \
            [cli_with_input "get s\nsubscribe a\n"]
        unset ::env(FAKETTY)
    }

    test {cli: the program ends when nobody reads its output} {
        set program [file join [file dirname $::binary] valkey-cli]
        set pipeline "timeout 20 $program -h [srv host] -p [srv port] -r -1 ping | head -n 1; echo \${PIPESTATUS\[0\]}"
        assert_equal "PONG\n141" [exec bash -c $pipeline] ;# 141: SIGPIPE; 124 would be the limit of time
    }

    test {cli: --eval with keys and arguments} {
        set path [srv dir]/script.lua
        write_bytes $path {return {KEYS, ARGV}}
        cli_prints 0 "1) 1) \"k\"\n2) 1) \"a\"\n   2) \"b\"" --no-raw --eval $path k , a b
        cli_prints 1 "Can't open file '/nonexistent': No such file or directory" --eval /nonexistent
        write_bytes $path {return redis.error_reply('X y')}
        cli_prints 1 {X y} -e --eval $path
    }

    test {cli: --pipe} {
        set waiting "All data transferred. Waiting for the last reply...\nLast reply received from server.\n"
        assert_equal [list 0 "${waiting}errors: 0, replies: 2"] [cli_with_input "set p 1\r\nget p\r\n" --pipe]
        lassign [cli_with_input [string repeat "*2\r\n\$4\r\nINCR\r\n\$1\r\nc\r\n" 20000] --pipe] status output
        assert_equal "${waiting}errors: 0, replies: 20000" $output
        assert_equal 20000 [r get c]
        lassign [cli_with_input "lpush s x\r\nget s\r\n" --pipe] status output
        assert_equal 1 $status
        assert_match "*errors: 1, replies: 2*" $output
        assert_match {1 *} [cli_with_input "quit\r\n" --pipe]
    }

    test {cli: --pipe --progress json} {
        lassign [cli_with_input "set p 1\r\n" --pipe --progress json] status output
        assert_match {*{"task":"pipe","unit":"bytes","done":*,"finished":true}*} $output
    }

    test {cli: --scan with patterns} {
        r flushall
        r mset key:1 a key:2 b other c
        assert_equal {key:1 key:2} [lsort [lindex [cli --scan --pattern key:*] 1]]
        assert_equal {0 {"other"}} [cli --no-raw --scan --quoted-pattern {"\x6fther"}]
        assert_equal 3 [llength [lindex [cli --scan --count 1000] 1]]
    }

    test {cli: help} {
        assert_match "*GET*key*summary:*Returns the string value of a key.*group:*string*" [lindex [cli help get] 1]
        assert_match "*APPEND*SETRANGE*" [lindex [cli help @string] 1]
        assert_match "valkey-cli *\nTo get help about Valkey commands type:*" [lindex [cli help] 1]
    }
}

# A server that gives the same replies to whatever it receives: one of `replies` for each chunk, the last one again.
proc start_fake {replies} {
    set script $::job_dir/fake.tcl
    write_bytes $script {
        set replies [lindex $argv 0]
        proc serve {channel} {
            global replies
            if {[catch {read $channel} got] || [eof $channel]} {close $channel; return}
            if {$got eq ""} return
            puts -nonewline $channel [lindex $replies 0]
            flush $channel
            if {[llength $replies] > 1} {set replies [lrange $replies 1 end]}
        }
        proc accept {channel args} {
            fconfigure $channel -translation binary -blocking 0
            fileevent $channel readable [list serve $channel]
        }
        set port [lindex [fconfigure [socket -server accept -myaddr 127.0.0.1 0] -sockname] 2]
        puts $port
        flush stdout
        vwait forever
    }
    set pipe [open "|[list [info nameofexecutable] $script $replies]"]
    return [list $pipe [gets $pipe]]
}
proc stop_fake {pipe} {
    exec kill [pid $pipe]
    catch {close $pipe}
}

start_server {tags {cli tools tls:skip}} {
    test {cli: QUEUED has a line of its own, also for commands that reply texts} {
        foreach format {{} --raw --no-raw -3} {
            lassign [cli_with_input "multi\ninfo server\nmemory doctor\nclient list\nlatency doctor\nset a 1\nexec\nping\n" {*}$format] status output
            assert_equal 5 [llength [lsearch -all [split $output \n] QUEUED]] $format
            assert_equal PONG [lindex [split $output \n] end] $format
        }
        foreach command {{info server} lolwut {memory doctor} {client info}} {
            set output [exec [file dirname $::binary]/valkey-cli -h [srv host] -p [srv port] {*}$command | od -An -c]
            assert_equal {\n} [string range [string trimright $output] end-1 end] $command
        }
    }

    test {cli: a database that does not exist is an error, and nothing runs in another one} {
        assert_equal {1 {SELECT 999 failed: ERR DB index is out of range}} [cli -n 999 set other 1]
        assert_match {1 *SELECT 999 failed*} [cli_with_input "set other 1\n" -n 999 -e]
        assert_match {1 *SELECT 999 failed*} [cli -u valkey://[srv host]:[srv port]/999 set other 1]
        assert_equal 0 [r exists other]
    }

    test {cli: -n counts after a login by a command, too} {
        r config set requirepass x
        assert_equal {0 {OK
OK}} [cli_with_input "auth x\nset mine 1\n" -n 3]
        r auth x
        r config set requirepass ""
        assert_equal {0 0} [list [r exists mine] [r exists other]]
        assert_equal {0 1} [cli -n 3 exists mine]
    }

    test {cli: an URI with a password and no user} {
        r config set requirepass x
        assert_match {0 *PONG*} [cli -u valkey://:x@[srv host]:[srv port] ping]
        r auth x
        r config set requirepass ""
    }

    test {cli: -e with commands of standard input} {
        assert_match {1 *PONG*} [cli_with_input "set a\nping\n" -e]
        assert_equal {0 PONG} [cli_with_input "ping\n" -e]
        assert_match {0 *PONG*} [cli_with_input "set a\nping\n"]
        assert_match {1 *} [cli_with_input "set \"a\n" -e]
    }

    test {cli, benchmark: addresses in brackets} {
        assert_equal {0 PONG} [run_tool valkey-cli "" -h "\[[srv host]\]" -p [srv port] ping]
        assert_match "*not configured as a cluster*" [run_tool valkey-cli "" --cluster info "\[[srv host]\]:[srv port]"]
        assert_match "0 *PING*" [run_tool valkey-benchmark "" -h "\[[srv host]\]" -p [srv port] -n 10 -t ping -q]
    }

    test {cli: --cluster without a known subcommand lists them} {
        assert_match "1 {Unknown --cluster subcommand\nCluster Manager Commands:*create *}" [cli --cluster nothing]
        assert_match "1 {--cluster needs a subcommand.\nCluster Manager Commands:*create *}" [cli --cluster]
    }

    test {cli: MOVED to ?:port is the same host} {
        lassign [start_fake [list "-MOVED 1 ?:[srv port]\r\n"]] pipe port
        assert_equal {0 OK} [run_tool valkey-cli "" -h 127.0.0.1 -p $port -c set moved 1]
        assert_equal 1 [r get moved]
        stop_fake $pipe
    }

    test {cli: nulls and missing fields do not end --stat and --sentinel-view by a signal} {
        lassign [start_fake [list "\$-1\r\n"]] pipe port
        foreach mode {--stat --top} {
            assert_equal {1 {ERROR: INFO error: unexpected reply}} [run_tool valkey-cli "" -h 127.0.0.1 -p $port $mode]
        }
        stop_fake $pipe
        lassign [start_fake [list "*1\r\n*4\r\n\$4\r\nname\r\n\$1\r\nm\r\n\$5\r\nflags\r\n\$-1\r\n" "\$-1\r\n" "*2\r\n\$-1\r\n*0\r\n"]] pipe port
        assert_match {0 *NAME*m*ok*} [run_tool valkey-cli "" -h 127.0.0.1 -p $port --sentinel-view]
        stop_fake $pipe
    }
}
