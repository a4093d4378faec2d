# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli in a terminal: prompt, hints, completion, history, messages, Ctrl-C, explanations, the Lua debugger.

source $::tests_dir/support/tools.tcl

proc talk_environment {} {
    set ::env(VALKEYCLI_HISTFILE) [srv dir]/history
    set ::env(VALKEYCLI_RCFILE) [srv dir]/rc
}

# The command that runs valkey-cli in a terminal, with a dialogue from its standard input (tests/helpers/terminal.py).
proc terminal_command {args} {
    set program [file join [file dirname $::binary] valkey-cli]
    return [list python3 $::tests_dir/helpers/terminal.py $program -h [srv host] -p [srv port] {*}$args]
}

# Runs valkey-cli in a terminal with a dialogue of "send" and "expect" lines.
proc talk {dialogue args} {
    talk_environment
    if {[catch {exec {*}[terminal_command {*}$args] << $dialogue} output]} {
        fail $output
    }
    return $output
}

start_server {tags {cli tools tls:skip} overrides {repl-diskless-sync-delay 0}} {
    set at "[srv host]:[srv port]"
    write_bytes [srv dir]/rc ":set hints\n"

    test {cli: the prompt shows database and transaction} {
        talk "expect $at> \nsend select 3\\r\nexpect $at\[3\]> \nsend multi\\r\nexpect $at\[3\](TX)> \nsend get k\\r\nexpect QUEUED\nsend exec\\r\nexpect (nil)\nexpect $at\[3\]> "
    }

    test {cli: hints follow the arguments that were typed} {
        talk "expect > \nsend set k \nexpect value \[NX|XX|IFEQ\nsend v \nexpect \[NX|XX|IFEQ\n"
        foreach {line hint} {
            {get } {key} {set k v ex } {seconds [NX|XX|IFEQ comparison-value|IFNE ifne-value] [GET]}
            {set k v ex 3 } {[NX|XX|IFEQ comparison-value|IFNE ifne-value] [GET]} {set k v ex three } {}
            {nosuch } {} {get k } {} {del a } {[key ...]} {mset a 1 b } {value [key value ...]} {zadd k 0 } {member [score member ...]}
            {sort k get a get } {pattern [GET pattern ...]] [BY pattern] [LIMIT offset count] [ASC|DESC] [ALPHA] [STORE destination]}
            {xadd s maxlen = 10 } {[LIMIT count] [NOMKSTREAM] *|id field value [field value ...]} {set} {} {set k} {key value [NX|XX|IFEQ comparison-value|IFNE ifne-value] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]}
        } {
            assert_equal [list 0 $hint] [run_tool valkey-cli "" --test_hint $line]
        }
    }

    test {cli: :set nohints, also from the file of preferences} {
        write_bytes [srv dir]/rc ":set nohints\n"
        set output [talk "expect > \nsend get k\\r\nexpect (nil)\nexpect > \nsend :set hints\\r\nexpect > \nsend get \nexpect key\n"]
        assert_equal 1 [regexp -all "key\x1b" $output]
        write_bytes [srv dir]/rc ""
    }

    test {cli: TAB completes the names of commands} {
        talk "expect > \nsend zrangeby\\t\nexpect ZRANGEBY\nsend \\t\nexpect ZRANGEBYLEX\nexpect ZRANGEBYSCORE\nsend s\\t\nexpect CORE \n"
    }

    test {cli: TAB offers what the server has, in columns} {
        talk "expect > \nsend config \\t\nexpect CONFIG GET        CONFIG HELP\nexpect CONFIG RESETSTAT\n"
        start_server {overrides {rename-command {HGETALL ""}}} {
            talk "expect > \nsend hget\\t\nexpect HGET\nsend \\t\nexpect HGETDEL\n"
            set output [talk "expect > \nsend hget\\t\\t\nexpect HGETEX\nsend x\\x03\nexpect > \n"]
            assert {![regexp {HGETALL\M} $output]} $output
        }
    }

    test {cli: an open quote continues on the next line, and Ctrl-C discards both} {
        talk "expect $at> \nsend set quoted \"a\\r\nexpect ... \nsend b\"\\r\nexpect OK\nexpect $at> \nsend get quoted\\r\nexpect \"a\\\\nb\"\n"
        talk "expect $at> \nsend set quoted 'a\\r\nexpect ... \nsend \\x03\nexpect $at> \nsend get quoted\\r\nexpect \"a\\\\nb\"\n"
        assert {{"set" "quoted" "a\nb"} in [split [read_bytes [srv dir]/history] "\n"]}
    }

    test {cli: pasted lines are run one after another} {
        talk "expect > \nsend set pasted 1\\rincr pasted\\rget pasted\\r\nexpect OK\nexpect (integer) 2\nexpect \"2\"\nexpect $at> \n"
    }

    test {cli: --careful asks before commands that do damage} {
        r set precious 1
        talk "expect > \nsend flushall\\r\nexpect FLUSHALL deletes all \nexpect Run it? \[y/N\] \nsend \\r\nexpect Not run.\nexpect $at> \nsend shutdown\\r\nexpect SHUTDOWN ends the server. Run it?\nsend no\\r\nexpect Not run.\nexpect > \nsend :set nocareful\\r\nexpect > \nsend config resetstat\\r\nexpect OK\n" --careful
        assert_equal 1 [r get precious]
        r eval {for i = 1, 10001 do redis.call('hset', 'wide', i, i) end} 0
        r set long [string repeat x 11000000]
        # Reads that run in slices do no damage.
        talk "expect > \nsend :set careful\\r\nexpect > \nsend hgetall wide\\r\nexpect \"10001\"\nexpect > \n"
        r config set command-slice-us 0
        talk "expect > \nsend :set careful\\r\nexpect > \nsend hgetall wide\\r\nexpect HGETALL reads 10001 fields at once (HSCAN does not). Run it?\nsend n\\r\nexpect Not run.\nexpect > \nsend keys none\\r\nexpect (empty array)\nexpect > \nsend del long\\r\nexpect DEL deletes 1\nexpect bytes. Run it?\nsend y\\r\nexpect (integer) 1\nexpect > \nsend del wide\\r\nexpect (integer) 1\n"
        assert_equal {1 {FLUSHALL deletes all * keys of all databases: not run without a terminal and with --careful}} \
            [string map [list [r dbsize] *] [run_tool valkey-cli "" -h [srv host] -p [srv port] --careful flushall]]
        assert_equal {0 PONG} [run_tool valkey-cli "" -h [srv host] -p [srv port] --careful ping]
        r config set command-slice-us 500
    }

    test {cli: history keeps commands, but no secrets} {
        talk "expect > \nsend set secretless 1\\r\nexpect OK\nsend auth hunter2\\r\nexpect error\nsend config set requirepass hunter3\\r\nexpect OK\nsend config set requirepass ''\\r\nexpect OK\nsend acl setuser u >hunter4\\r\nexpect OK\nsend ping\\r\nexpect PONG\n"
        set kept [read_bytes [srv dir]/history]
        assert_match "*\nset secretless 1\nping\n" $kept
        assert {![string match *hunter* $kept]}
        assert_equal 600 [format %o [expr {[file attributes [srv dir]/history -permissions] & 0777}]]
        talk "expect > \nsend \\x12secretl\nexpect set secretless 1\n"
    }

    test {cli: messages are printed while the prompt waits} {
        talk "expect > \nsend hello 3\\r\nexpect proto\nexpect > \nsend client tracking on\\r\nexpect OK\nexpect > \nsend get tracked\\r\nexpect (nil)\nsend set tracked 1\\r\nexpect -> invalidate: 'tracked'\n"
        talk "expect > \nsend subscribe ch\\r\nexpect subscribe\nexpect (subscribed mode)> \nsend unsubscribe ch\\r\nexpect (integer) 0\nexpect $at> \n"
    }

    test {cli: Ctrl-C ends a blocked command, then a line, then the program} {
        write_bytes [srv dir]/rc ":set nohints\n"
        talk "expect > \nsend blpop none 0\\r\nexpect blpop none 0\nsend \\x03\nexpect > \nsend ping\\r\nexpect PONG\nexpect > \nsend half a line\nexpect line\nsend \\x03\nexpect > \nsend ping\\r\nexpect PONG\n"
    }

    test {cli: Ctrl-C ends the stream of a primary, not the program} {
        talk "expect > \nsend sync\\r\nexpect Logging commands from primary.\nsend \\x03\nexpect > \nsend ping\\r\nexpect PONG\nexpect $at> \n"
    }

    test {cli: LATENCY HISTOGRAM is drawn, unless the output is no terminal or --no-raw is given} {
        set ::env(NO_COLOR) 1
        r get drawn
        talk "expect > \nsend latency histogram get\\r\nexpect get  \nexpect p50 <= \nexpect   <= \nexpect $at> \n"
        talk "expect > \nsend latency histogram get\\r\nexpect histogram_usec\nexpect $at> \n" --no-raw
        unset ::env(NO_COLOR)
        assert_match {0 {get?calls?*?histogram_usec?*}} [run_tool valkey-cli "" -h [srv host] -p [srv port] latency histogram get]
    }

    test {cli: the line is drawn again when the terminal changes its size} {
        talk "expect $at> \nsend get half\nexpect get half\nresize 60 20\nexpect $at> get half\nsend way\\r\nexpect (nil)\nexpect $at> \n"
    }

    test {cli: Ctrl-C in a line of several rows leaves nothing below} {
        talk "expect $at> \nresize 40 20\nexpect $at> \nsend [string repeat x 60]\nexpect x\nsend \\x01\\x03\nexpect ^C\\r\\n\\x1b\[J\nexpect $at> \n"
    }

    test {cli: MEMORY EXPLAIN is printed as it is} {
        talk "expect > \nsend memory explain\\r\nexpect \\r\\nUsed memory (\nexpect \\r\\n  keys and values\n"
    }

    test {cli: errors are explained} {
        set ::env(NO_COLOR) 1
        talk "expect > \nsend gte k\\r\nexpect (error) ERR unknown command\nexpect Did you mean GET?\nsend get\\r\nexpect wrong number\nexpect Syntax: GET key\n"
        talk "expect > \nsend set k v ex three\\r\nexpect not an integer\nexpect Argument 4 does not fit: \"three\"\nexpect Syntax: SET key\nsend set k v foo\\r\nexpect syntax error\nexpect Argument 3 does not fit: \"foo\"\n"
        unset ::env(NO_COLOR)
    }

    test {cli: colours by type, unless NO_COLOR is set} {
        r set s x
        talk "expect > \nsend get s\\r\nexpect \\x1b\[33m\"x\"\\x1b\[0m\n"
        set ::env(NO_COLOR) 1
        assert {![string match "*\x1b\\\[33m*" [talk "expect > \nsend get s\\r\nexpect \"x\"\n"]]}
        unset ::env(NO_COLOR)
    }

    test {cli: a closed connection is opened again, with its database} {
        talk_environment
        set terminal [open "|[terminal_command] 2>@1" r+]
        puts $terminal "expect > \nsend select 3\\r\nexpect OK\nexpect > \nsend client setname victim\\r\nexpect OK\nexpect > "
        flush $terminal
        wait_for_condition 500 20 {[string match {*name=victim *} [r client list]]}
        r client kill name victim
        wait_for_condition 500 20 {![string match {*name=victim *} [r client list]]}
        r ping ;# the turn that closed it has ended
        puts $terminal "send ping\\r\nexpect PONG\nexpect $at\[3\]> "
        chan close $terminal write
        set output [read $terminal]
        if {[catch {close $terminal}]} {fail $output}
    }

    test {cli: the front end of the Lua debugger} {
        write_bytes [srv dir]/debug.lua "local a = KEYS\[1\]\nredis.call('set', a, 'x')\nreturn {1, 'two'}\n"
        talk "expect Lua debugging session started\nexpect -> 1   local a\nexpect lua debugger> \nsend s\\r\nexpect -> 2 \nsend p\\r\nexpect <value>\nsend restart\\r\nexpect -> 1 \nsend c\\r\nexpect (integer) 1\nexpect \"two\"\nexpect (Lua debugging session ended -- dataset changes rolled back)\nexpect $at> \nsend get key1\\r\nexpect (nil)\n" \
            --ldb --eval [srv dir]/debug.lua key1
        assert_equal 0 [r exists key1]
    }
}
