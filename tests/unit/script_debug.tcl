# SPDX-License-Identifier: BSD-3-Clause
#
# The debugger of scripts: SCRIPT DEBUG and the protocol of valkey-cli --ldb. Expected lines are those of Valkey 9.1.2.

# Begins a session; the first stop is read by the caller.
proc debug_script {script {mode yes} {keys {}} {values {}}} {
    set c [raw_connect]
    raw_send $c [resp_request script debug $mode]
    assert_equal "+OK\r\n" [raw_reply $c]
    raw_send $c [resp_request eval $script [llength $keys] {*}$keys {*}$values]
    return $c
}

proc resp_request {args} {
    set out "*[llength $args]\r\n"
    foreach word $args {
        set word [encoding convertto utf-8 $word]
        append out "\$[string length $word]\r\n$word\r\n"
    }
    return $out
}

# The lines of one answer of the debugger.
proc debug_lines {c} {
    set lines [split [string map {"\r\n" "\n"} [raw_reply $c]] "\n"]
    set out {}
    foreach line [lrange $lines 1 end-1] {
        assert_equal + [string index $line 0]
        lappend out [string range $line 1 end]
    }
    return $out
}

# Sends a command and returns the lines.
proc debug {c args} {
    raw_send $c [resp_request {*}$args]
    return [debug_lines $c]
}

# The end of a session: its mark, the reply, the end of the connection.
proc debug_ends {c reply args} {
    assert_equal [list {*}$args <endsession>] [debug_lines $c]
    assert_equal $reply [raw_rest $c]
}

start_server {tags {scripting} overrides {enable-debug-command yes}} {
    test {SCRIPT DEBUG checks its arguments} {
        assert_error "ERR Use SCRIPT DEBUG YES/SYNC/NO" {r script debug maybe}
        assert_error "ERR No scripting engine found with name 'js' to enable debug" {r script debug yes js}
        assert_error "ERR wrong number of arguments for 'script|debug' command" {r script debug}
        assert_error "ERR unknown subcommand or wrong number of arguments for 'debug'. Try SCRIPT HELP." {
            r script debug yes lua x
        }
        assert_equal OK [r script debug sync LUA]
        assert_error "ERR Please use EVAL instead of EVALSHA for debugging" {
            r evalsha [r script load {return 1}] 0
        }
        assert_equal OK [r script debug no]
        assert_equal 1 [r eval {return 1} 0]
    }

    test {SCRIPT DEBUG in a pipeline or a transaction is refused, a script in one as well} {
        r set big [string repeat x 16000000] ;# its reply waits until it is read
        set c [raw_connect]
        raw_send $c [resp_request client setname debugger][resp_request get big][resp_request script debug yes]
        wait_for_condition 500 20 {[string match {*name=debugger *cmd=script|debug *} [r client list]]}
        assert_equal "+OK\r\n" [raw_reply $c]
        assert_equal 16000000 [string range [raw_line $c] 1 end]
        raw_read $c 16000002
        assert_equal "-ERR SCRIPT DEBUG must be called outside a pipeline\r\n" [raw_reply $c]
        set other [connect]
        $other multi
        $other script debug yes
        assert_equal {{ERR SCRIPT DEBUG must be called outside a pipeline}} [$other exec]
        $other script debug yes
        $other multi
        $other eval {return 1} 0
        assert_equal {{ERR a script cannot be debugged inside of MULTI}} [$other exec]
    }

    test {RESET ends the debug mode} {
        set c [connect 2]
        $c script debug yes
        $c reset
        assert_equal 1 [$c eval {return 1} 0]
    }

    test {a forked session steps through the script and changes nothing in the server} {
        r del k
        set c [debug_script "local a = 1\nredis.call('set', KEYS\[1\], ARGV\[1\])\nreturn redis.call('get', KEYS\[1\])" \
            yes k [list "v w"]]
        assert_equal {{* Stopped at 1, stop reason = step over} {-> 1   local a = 1}} [debug_lines $c]
        assert_equal {{* Stopped at 2, stop reason = step over} {-> 2   redis.call('set', KEYS[1], ARGV[1])}} [debug $c s]
        assert_equal [list {<command> set k v w} {<reply> "+OK"} {* Stopped at 3, stop reason = step over} \
            {-> 3   return redis.call('get', KEYS[1])}] [debug $c next]
        assert_equal {{<command> get k} {<reply> "v w"}} [debug $c redis get k]
        assert_equal {} [r get k]
        raw_send $c [resp_request STEP]
        debug_ends $c "\$3\r\nv w\r\n" {<command> get k} {<reply> "v w"}
        assert_equal {} [r get k]
        assert_match "*Valkey forked for debugging eval*" [server_log]
    }

    test {a synchronous session keeps its changes} {
        set c [debug_script "redis.call('set', 'k', 1)\nreturn 2" sync]
        debug_lines $c
        raw_send $c [resp_request c]
        debug_ends $c ":2\r\n"
        assert_equal 1 [r get k]
    }

    test {breakpoints} {
        set source "local a = 1\nfor i = 1, 3 do\n a = a + i\nend\nredis.breakpoint()\nredis.debug('at', a, {1, {x = 2}})\nreturn a"
        set c [debug_script $source]
        debug_lines $c
        assert_equal {{No breakpoints set. Use 'b <line>' to add one.}} [debug $c b]
        assert_equal {{   2   for i = 1, 3 do} {  #3    a = a + i} {   4   end}} [debug $c b 3]
        assert_equal {{1 breakpoints set:} {  #3    a = a + i}} [debug $c break]
        assert_equal {{Wrong line number.}} [debug $c b 3]
        assert_equal {{Wrong line number.}} [debug $c b 8]
        assert_equal {{Invalid argument:'x'}} [debug $c b x]
        assert_equal {{No breakpoint in the specified line.}} [debug $c b -2]
        foreach i {1 2} {
            assert_equal {{* Stopped at 3, stop reason = break point} {->#3    a = a + i}} [debug $c c]
            assert_equal [list "<value> $i"] [debug $c p i]
        }
        assert_equal {{Breakpoint removed.}} [debug $c b -3]
        assert_equal {{All breakpoints removed.}} [debug $c b 0]
        assert_equal {{* Stopped at 6, stop reason = server.breakpoint() called} {-> 6   redis.debug('at', a, {1, {x = 2}})}} \
            [debug $c continue]
        raw_send $c [resp_request c]
        debug_ends $c ":7\r\n" {<debug> line 6: at, 7, {1; {[x]=2; }; }}
    }

    test {at most 64 breakpoints} {
        set c [debug_script [string repeat "redis.call('ping')\n" 70]]
        debug_lines $c
        for {set i 2} {$i <= 65} {incr i} {assert_equal 3 [llength [debug $c b $i]]}
        assert_equal {{Too many breakpoints set.}} [debug $c b 66]
    }

    test {variables, the stack and code} {
        set source "local n, s, t = nil, 'x\\ny', {}\nt.t = t\nlocal function f(arg)\n local inner = arg\n return inner\nend\nlocal y = f(1.5)\nreturn y"
        set c [debug_script $source yes k1 a1]
        debug_lines $c
        assert_equal {{No local variables in the current context.}} [debug $c p]
        debug $c b 5
        debug $c c
        assert_equal {{In f:} {->#5    return inner} {From top level:} {   7   local y = f(1.5)}} [debug $c t]
        assert_equal {{<value> arg = 1.5} {<value> inner = 1.5}} [debug $c p]
        assert_equal {{<value> x y}} [debug $c print s]
        assert_equal {{<value> nil}} [debug $c p n]
        assert_equal {{No such variable.}} [debug $c p y]
        assert_equal {{<value> {k1; }}} [debug $c p KEYS]
        assert_equal {{<value> {a1; }}} [debug $c p ARGV]
        assert_match "*<max recursion level reached! Nested table?>*" [debug $c p t]
        assert_equal {{<retval> 2}} [debug $c e 1+1]
        assert_equal {{<retval> {1; 2; }}} [debug $c eval {local t = {} for i = 1, 2 do t[i] = i end return t}]
        assert_equal {{<error> ldb_eval:1: boom}} [debug $c e {error("boom")}]
        assert_equal {{<error> ldb_eval:1: Attempt to modify a readonly table}} [debug $c e a=5]
        assert_equal {{Error compiling code: ldb_eval:1: unexpected symbol near '<eof>'}} [debug $c e x=]
        assert_equal {{<command> lpush k1 a b} {<reply> 2}} [debug $c v lpush k1 a b]
        assert_equal {{<command> lrange k1 0 -1} {<reply> ["b","a"]}} [debug $c server lrange k1 0 -1]
        assert_equal [list {<command> get k1} {<reply> "-WRONGTYPE Operation against a key holding the wrong kind of value"} \
            {<error> -WRONGTYPE Operation against a key holding the wrong kind of value}] [debug $c r get k1]
        assert_match {*{<error> Unknown command called from script}} [debug $c r nope]
        raw_send $c [resp_request abort]
        debug_ends $c "-ERR script aborted for user request script: on @user_script:5.\r\n"
    }

    test {replies in RESP3 are shown as such} {
        r del h s z
        r hset h a 1
        r sadd s x
        r zadd z 1.5 m
        set c [debug_script "redis.setresp(3)\nreturn 1"]
        debug_lines $c
        debug $c s
        foreach {command shown} {{hgetall h} {{"a" => "1"}} {smembers s} {~("x")} {zscore z m} {(double) 1.5}
                                 {get nokey} (null) {hgetall nokey} "{}" {mget nokey nokey} {[(null),(null)]}} {
            assert_equal [list "<command> $command" "<reply> $shown"] [debug $c r {*}$command]
        }
    }

    test {maxlen cuts replies and values} {
        set c [debug_script "return 1"]
        debug_lines $c
        assert_equal {{Current maxlen is 256}} [debug $c maxlen]
        set cut "<retval> [string repeat x 247] ..."
        assert_equal [list $cut {<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.}] \
            [debug $c e "('x'):rep(500)"]
        assert_equal [list $cut] [debug $c e "('x'):rep(500)"]
        assert_equal {{<value> replies are truncated at 60 bytes.}} [debug $c max 10]
        assert_equal [list "<retval> [string repeat x 51]"] [debug $c e "('x'):rep(51)"]
        assert_equal {{<value> replies are not truncated.}} [debug $c maxlen 0]
        assert_equal [list "<retval> [string repeat x 500]"] [debug $c e "('x'):rep(500)"]
        assert_equal {{<error> Invalid maxlen value.}} [debug $c maxlen -1]
    }

    test {list and whole, in a script with a header} {
        set c [debug_script "#!lua flags=no-writes\nlocal a\r\na = 1\nreturn a\n"]
        debug_lines $c
        set all [debug $c w]
        assert_equal 4 [llength $all]
        assert_equal {   1   #!lua flags=no-writes} [lindex $all 0]
        assert_equal {   4   return a} [lindex $all 3]
        assert_equal $all [debug $c list 1 100]
        assert_equal {{   4   return a}} [debug $c l 5 1]
        assert_equal {} [debug $c l 99]
        assert_equal {{<error> Unknown debugger command or wrong number of arguments.}} [debug $c l 1 2 3]
        assert_equal {LUA debugger help:} [lindex [debug $c h] 0]
    }

    test {errors before the script runs end the session} {
        debug_ends [debug_script {x =}] \
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'\r\n"
        set c [raw_connect]
        raw_send $c [resp_request script debug yes]
        raw_reply $c
        raw_send $c [resp_request eval {return 1} 2]
        debug_ends $c "-ERR Number of keys can't be greater than number of args\r\n"
    }

    test {commands that arrive byte by byte or together are understood} {
        foreach mode {yes sync} {
            set c [debug_script "return 1" $mode]
            debug_lines $c
            raw_send $c {*}[split [resp_request e return 1+1] {}]
            assert_equal {{<retval> 2}} [debug_lines $c]
            raw_send $c [resp_request e 1][resp_request e 2]
            assert_equal {{<retval> 1}} [debug_lines $c]
            assert_equal {{<retval> 2}} [debug_lines $c]
            raw_send $c [resp_request c]
            debug_ends $c ":1\r\n"
        }
        assert_equal PONG [r ping]
    }

    test {what is no command of the debugger ends the script, also in a synchronous session} {
        foreach mode {yes sync} {
            foreach bytes [list "ping\r\n" "*0\r\n" "*1\r\n\$0\r\n\r\n" "*1\r\n+s\r\n" "*1025\r\n" \
                "*1\r\n\$1025\r\n" "*1\r\n\$1\r\nsXX" "*1234567890123456"] {
                set c [debug_script "return 1" $mode]
                debug_lines $c
                raw_send $c $bytes
                debug_ends $c "-ERR protocol error script: on @user_script:1.\r\n"
            }
        }
    }

    test {an endless loop stops by itself} {
        r config set busy-reply-threshold 100
        foreach mode {yes sync} {
            set c [debug_script "local i = 0\nwhile true do\n i = i + 1\nend" $mode]
            debug_lines $c
            assert_match {* Stopped at *, stop reason = timeout reached, infinite loop?} [lindex [debug $c c] 0]
            raw_send $c [resp_request a]
            assert_equal <endsession> [debug_lines $c]
            # Within one call of a library there is no line to stop at.
            set c [debug_script "return string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')" $mode]
            debug_lines $c
            raw_send $c [resp_request c]
            debug_ends $c "-ERR Script killed by user with SCRIPT KILL. script: on @user_script:1.\r\n"
        }
        r config set busy-reply-threshold 5000
    }

    test {the client of a synchronous session leaves: the script goes on} {
        r del k
        set c [debug_script "local a\nredis.call('set', 'k', 3)" sync]
        debug_lines $c
        raw_close $c
        wait_for_condition 200 10 {[r get k] eq 3} else {fail "the script did not end"}
    }

    test {two sessions at the same time, and a snapshot beside them} {
        set one [debug_script "local a = 1\nreturn a"]
        set two [debug_script "local a = 2\nreturn a"]
        debug_lines $one
        debug_lines $two
        r bgsave
        info_is rdb_bgsave_in_progress 0
        debug $one s
        debug $two s
        assert_equal {{<value> 1}} [debug $one p a]
        assert_equal {{<value> 2}} [debug $two p a]
    }

    test {frames and the reply for a RESP3 client} {
        set c [raw_connect]
        raw_send $c [resp_request hello 3]
        raw_reply $c
        raw_send $c [resp_request script debug yes]
        raw_reply $c
        raw_send $c [resp_request eval {return {double = 1.5}} 0]
        assert_equal {* Stopped at 1, stop reason = step over} [lindex [debug_lines $c] 0]
        raw_send $c [resp_request c]
        debug_ends $c ",1.5\r\n"
    }

    test {outside of a session server.breakpoint() is false, and server.debug() shows nothing} {
        assert_equal false [r eval {server.debug('x') return tostring(server.breakpoint())} 0]
    }
}
