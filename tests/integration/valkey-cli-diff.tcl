# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli --diff and --migrate-check.

source $::tests_dir/support/tools.tcl

proc diff {args} {run_tool valkey-cli "" --diff valkey://[srv -1 host]:[srv -1 port] valkey://[srv host]:[srv port] {*}$args}

# The same data in both servers. Values of more than 256 elements are compared in parts.
proc fill_both {} {
    foreach level {-0 -1} {
        r $level select 0
        r $level flushall
        r $level mset s hello n 12 empty {}
        r $level set t x exat 4000000000
        r $level setrange large 150000 x
        r $level rpush l a b c
        r $level sadd set 1 2 3
        r $level hset h f v g w
        r $level zadd z 1 a 2.5 b
        r $level hset ttl a 1 b 2
        r $level hexpireat ttl 4000000000 fields 1 a
        r $level saddex ts exat 4000000000 members 2 a b
        r $level zaddex tz exat 4000000000 members 2 1 a 2 b
        r $level eval {for i = 0, 1499 do
            redis.call('rpush', 'll', i)
            redis.call('sadd', 'ls', 'm' .. i)
            redis.call('hset', 'lh', 'f' .. i, i)
            redis.call('zadd', 'lz', i, 'm' .. i)
            redis.call('xadd', 'x', i .. '-1', 'f', i)
            redis.call('phset', 'lp', '/path/' .. i, 'fields', 2, 'f', i, 'g', 1)
        end} 0
        r $level phmset paths /a fields 2 f v g w /b/c fields 1 f v "" fields 1 root 1
        # In another order, and of different encodings.
        if {$level eq "-0"} {
            r phset paths /a fields 1 f v
            r phdel paths /a f
            r phset paths /a fields 1 f v
        }
        r $level xgroup create x g 0
        r $level xreadgroup group g c count 1100 streams x >
        r $level select 3
        r $level set other 1
        r $level select 0
        r $level function load replace {#!lua name=lib
            redis.register_function('f', function() return 1 end)}
    }
}

# Keeps the lines between the first of a kind and those of the summary.
proc differences {output} {lsearch -inline -all -not -regexp [split $output "\n"] {^  |compared}}

start_server {tags {cli tools tls:skip needs:local}} {
    start_server {tags {cli tools tls:skip needs:local}} {
        test {cli: --diff of equal servers} {
            fill_both
            assert_equal {0 {20 keys compared, 0 differ}} [diff]
            assert_equal {0 {1 keys compared, 0 differ}} \
                [run_tool valkey-cli "" --diff valkey://[srv host]:[srv port]/3 valkey://[srv -1 host]:[srv -1 port]/3]
            assert_match {0 {* keys compared, 0 differ}} [diff --diff-sample 30]
        }

        foreach {what command expected} {
            {a string} {set s hallo} {db 0 "s": value: "hello", "hallo"}
            {a longer string} {append s !} {db 0 "s": value: "hello", "hello!"}
            {a part of a large string} {setrange large 100000 yes} {db 0 "large": value: from byte 100000: "\\x00*"..., "yes*"...}
            {an empty string} {set empty x} {db 0 "empty": value: "", "x"}
            {a type} {rpush u 1} {db 0 "u": only in the second}
            {an element of a list} {lset l 1 x} {db 0 "l": value: at index 1: "b", "x"}
            {the length of a list} {rpush l d} {db 0 "l": value: number of elements: 3, 4}
            {an element of a long list} {lset ll 1200 x} {db 0 "ll": value: at index 1200: "1200", "x"}
            {a member of a large set} {eval {redis.call('srem','ls','m7') redis.call('sadd','ls','m')} 0} {db 0 "ls": value: "m7" only in the first}
            {a field} {hset h g x} {db 0 "h": value: field "g": "w", "x"}
            {a field of a large hash} {hset lh f777 x} {db 0 "lh": value: field "f777": "777", "x"}
            {a score} {zadd z 3 b} {db 0 "z": value: score of "b": "2.5", "3"}
            {a score of a large sorted set} {zadd lz 1400.5 m1400} {db 0 "lz": value: score of "m1400": "1400", "1400.5"}
            {a TTL} {persist t} {db 0 "t": TTL: * s, none}
            {the TTL of a field} {hpersist ttl fields 1 a} {db 0 "ttl": TTL of a field: field "a" expires at 4000000000000, -1 ms}
            {the TTL of a member of a set} {spersist ts members 1 a} {db 0 "ts": TTL of a member: member "a" expires at 4000000000000, -1 ms}
            {the TTL of a member of a sorted set} {zpersist tz members 1 b} {db 0 "tz": TTL of a member: member "b" expires at 4000000000000, -1 ms}
            {the TTL of a member of a large set} {sexpireat ls 4000000000 members 1 m900} {db 0 "ls": TTL of a member: member "m900" expires at -1, 4000000000000 ms}
            {the TTL of a member of a large sorted set} {zexpireat lz 4000000000 members 1 m1400} {db 0 "lz": TTL of a member: member "m1400" expires at -1, 4000000000000 ms}
            {an entry} {eval {redis.call('xdel','x','1400-1') redis.call('xadd','x','2000-1','f',1)} 0} {db 0 "x": value: last-generated-id: "1499-1", "2000-1"}
            {a group} {xgroup setid x g 2-1} {db 0 "x": value: group: last-delivered-id: "1099-1", "2-1"}
            {a pending entry} {xclaim x g other 0 1050-1} {db 0 "x": value: pending entry of group g: "1050-1", "1050-1"}
            {a field of a path} {phset paths /a fields 1 g x} {db 0 "paths": value: path "/a", field "g": "w", "x"}
            {a field of a path only} {phset paths /a fields 1 h x} {db 0 "paths": value: path "/a": 4 items, 6 items}
            {a path} {eval {redis.call('phdel','paths','') redis.call('phset','paths','/','fields',1,'root',1)} 0} {db 0 "paths": value: path "": 2 items, 0 items}
            {the number of paths} {phdel paths /b/c} {db 0 "paths": value: number of elements: 3, 2}
            {a field of a path of many} {phset lp /path/1400 fields 1 f x} {db 0 "lp": value: path "/path/1400", field "f": "1400", "x"}
            {a function} {function delete lib} {function library lib: only in the first}
        } {
            test "cli: --diff finds $what" {
                fill_both
                r {*}$command
                lassign [diff] status output
                assert_equal 1 $status
                assert_equal 1 [llength [set lines [differences $output]]] $output
                assert_match $expected [lindex $lines 0]
            }
        }

        test {cli: --diff with another type, another database, a key on one side} {
            fill_both
            r del s
            r -1 set mine 1
            r select 3
            r del other
            r select 0
            lassign [diff] status output
            assert_equal 1 $status
            assert_equal [lsort [differences $output]] [lsort {{db 0 "s": only in the first} {db 0 "mine": only in the first}
                {db 3 "other": only in the first}}] $output
            r del n
            r sadd n 1
            assert_match {*db 0 "n": type: string, set*
* differ*
  only in the first: 3*
  type: 1*} [lindex [diff] 1]
        }

        test {cli: --diff prints a hundred differences, all with --verbose} {
            r -1 flushall
            r flushall
            for {set i 0} {$i < 150} {incr i} {r set k$i 1}
            set output [lindex [diff] 1]
            assert_equal 101 [llength [differences $output]]
            assert_match "*... and 50 more (--verbose prints all)\n150 keys compared, 150 differ*" $output
            assert_equal 150 [llength [differences [lindex [diff --verbose] 1]]]
        }

        test {cli: --diff forgives a copy that is a moment behind} {
            r -1 flushall
            r flushall
            r -1 set k 1
            set pipe [open "|[file dirname $::binary]/valkey-cli --diff valkey://[srv -1 host]:[srv -1 port] valkey://[srv host]:[srv port]"]
            wait_for_condition 500 10 {[string match *cmdstat_type:* [r info commandstats]]} else {fail "never asked"}
            r set k 1
            assert_equal {1 keys compared, 0 differ} [gets $pipe]
            close $pipe
        }

        test {cli: --diff with wrong arguments} {
            assert_match {1 {--diff needs two URIs*}} [run_tool valkey-cli "" --diff valkey://127.0.0.1]
            assert_match {1 {Invalid URI scheme}} [run_tool valkey-cli "" --diff valkey://[srv host]:[srv port] b]
        }
    }
}

# A server of another kind answers as told: one request after another, by the first words of each.
proc check_fake {answers} {
    set script {
        import re, socket, sys
        answers = dict(zip(sys.argv[1::2], sys.argv[2::2]))
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        client = listener.accept()[0]
        stream = client.makefile("rb")
        while header := stream.readline():
            words = [stream.read(int(stream.readline()[1:]) + 2)[:-2].decode() for _ in range(int(header[1:]))]
            line = " ".join(words)
            reply = next((r for a, r in answers.items() if line.startswith(a)), "-ERR unknown command")
            client.sendall(reply.replace("\n", "\r\n").encode() + b"\r\n")
    }
    regsub -all -line {^        } $script {} script
    set fake [open [list | python3 -c $script {*}$answers]]
    try {
        return [run_tool valkey-cli "" --migrate-check redis://127.0.0.1:[gets $fake]]
    } finally {
        catch {exec kill [pid $fake]}
        catch {close $fake}
    }
}
proc bulk {text} {return "\$[string length [string map {\n \r\n} $text]]\n$text"}
proc array_of {args} {
    set reply *[llength $args]
    foreach item $args {append reply \n$item}
    return $reply
}

start_server {tags {cli tools tls:skip needs:local}} {
    test {cli: --migrate-check of a server of this kind} {
        r set s hello
        r rpush l a b c
        lassign [run_tool valkey-cli "" --migrate-check valkey://[srv host]:[srv port]] status output
        assert_equal 0 $status
        assert_match "Valkey * at valkey://*: standalone, primary, 2 keys\nIt is a server of this kind already.\n*
Would not work
  - nothing was found
*
Gained
  - memory of the data: about * instead of * (from 2 keys)\n*" $output
    }

    test {cli: --migrate-check names what differs} {
        r config set prefetch-batch-max-size 8
        r acl setuser somebody on nopass
        set output [lindex [run_tool valkey-cli "" --migrate-check valkey://[srv host]:[srv port]] 1]
        assert_match "*Differs, or needs something*prefetch-batch-max-size 8 has no effect: *" $output
        assert_match {*2 users: copy the lines "user" of the configuration file*} $output
        r config set prefetch-batch-max-size 16
        r acl deluser somebody
    }

    test {cli: --migrate-check says what it may not ask} {
        r acl setuser checker on >secret +@all -config -acl ~*
        set output [lindex [run_tool valkey-cli "" --migrate-check valkey://checker:secret@[srv host]:[srv port]] 1]
        assert_match "*CONFIG GET \\* could not be asked: NOPERM *" $output
        r acl deluser checker
    }

    test {cli: --migrate-check of another server} {
        set info "# Server\nredis_version:8.0.1\nredis_mode:standalone\nrole:master\nused_memory_dataset:1000\nconnected_slaves:2\nlatest_fork_usec:2500
rdb_last_cow_size:1048576
cmdstat_get:calls=5,usec=1\ncmdstat_client|list:calls=1,usec=1\ncmdstat_vadd:calls=7,usec=3\ndb0_distrib_strings_sizes:1=1\ndb0:keys=2,expires=0,avg_ttl=0,subexpiry=0\ndb3:keys=1,expires=0,avg_ttl=0,subexpiry=1"
        set module [array_of [bulk name] [bulk vectorset] [bulk ver] :1 [bulk path] [bulk ""] [bulk args] *0]
        set own [array_of [bulk name] [bulk mine] [bulk ver] :1 [bulk path] [bulk /lib/mine.so] [bulk args] *0]
        lassign [check_fake [list "INFO everything" [bulk $info] "MODULE LIST" [array_of $module $own] \
            "FUNCTION LIST" [array_of [array_of [bulk library_name] [bulk lib] [bulk engine] [bulk JS]]] \
            "CONFIG GET" [array_of [bulk strange-directive] [bulk 1] [bulk rdma-port] [bulk 0] [bulk maxmemory] [bulk 5]] \
            "ACL USERS" [array_of [bulk default]] "SCAN 0" [array_of [bulk 7] [array_of [bulk v1]]] \
            "SCAN 7" [array_of [bulk 0] [array_of [bulk v2]]] SELECT +OK RANDOMKEY [bulk k] \
            "TYPE v" +vectorset TYPE +string "ACL LIST" [array_of [bulk "user default on ~* +@all"] [bulk "user x on ~a -@all +@json +get (-ft.search)"]] "MEMORY USAGE" :90 STRLEN :20]] status output
        assert_equal 1 $status
        foreach pattern {
            "Redis 8.0.1 at redis://127.0.0.1:*: standalone, primary, 3 keys\n*"
            "*Would not work\n*command vadd: 7 calls*Differs*"
            "*Would not work\n*4 keys of type vectorset (first: v1, v2, v1): there is no such type here*Differs*"
            "*Would not work\n*rules of users that name commands or categories which are unknown here: +@json -ft.search\n*Differs*"
            "*Differs*these users have 7 rules in all\n*"
            "*Would not work\n*function library lib needs the module of engine JS*Differs*"
            "*Comes along\n*hashes with expiring fields: 1; *Gained*"
            "*module mine: load the same file here (loadmodule /lib/mine.so)\n*"
            "*2 replicas: replace them first*"
            "*--migrate-config FILE writes a file without them: strange-directive\n*"
            "*Gained\n*memory of the data: about 390B instead of 1000B (from 2 keys)\n*"
            "*the last one stopped the server for 2.5 ms and copied 1.00M\n*"
        } {assert_match $pattern $output}
        assert {![regexp {rdma-port|command get|client} [lindex [split $output Gained] 0]]} $output
    }

    test {cli: --migrate-check of a file counts what it holds} {
        r flushall
        r hset h a 1 b 2
        r hexpire h 1000 fields 1 a
        r xadd s idmp p i * f v
        r xadd plain 1-1 f v
        r function load "#!lua name=l\nserver.register_function('f', function() return 1 end)"
        r save
        set path [srv dir]/dump.rdb
        lassign [run_tool valkey-cli "" --migrate-check $path] status output
        assert_equal 0 $status
        assert_match "$path: 3 keys\n\nWould not work\n  - nothing was found\n*Comes along
  - hashes with expiring fields: 1; *\n  - streams with ids of producers (XADD IDMP): 1\n  - libraries of functions: 1\n*" $output
        r function flush
        # REDIS 14: two arrays with a number at index 5, and a string.
        set body "REDIS0014\xfe\x00\x1c\x05arr:1\x01\x00\x05\x01[binary format w 7]\x1c\x05arr:2\x01\x00\x05\x01[binary format w 7]\x00\x01s\x01v\xff[binary format w 0]"
        write_bytes $path $body
        lassign [run_tool valkey-cli "" --migrate-check $path] status output
        assert_equal 1 $status
        assert_match "*: 3 keys\n\nWould not work\n  - 2 keys of type array (first: arr:1, arr:2; * bytes): there is no such type here*" $output
        write_bytes $path [string range $body 0 25]
        lassign [run_tool valkey-cli "" --migrate-check $path] status output
        assert_equal 1 $status
        assert_equal 0 [string match "*Would not work*" $output]
    }

    test {cli: --migrate-check of a server that is not there} {
        assert_match {1 {Could not connect to Valkey at *}} [run_tool valkey-cli "" --migrate-check valkey://127.0.0.1:1]
        assert_match {1 {Invalid URI scheme}} [run_tool valkey-cli "" --migrate-check 127.0.0.1]
    }
}

start_server {tags {cli tools tls:skip needs:local}} {
    start_server {tags {cli tools tls:skip needs:local} overrides {extended-commands no}} {
        test {cli: --diff names TTLs of members that only one of the servers can have} {
            foreach level {-0 -1} {
                r $level flushall
                r $level sadd plain a b
                r $level sadd lost a b
                r $level zadd zlost 1 a 2 b
            }
            assert_equal {0 {3 keys compared, 0 differ}} [diff]
            r -1 sexpireat lost 4000000000 members 1 a
            r -1 zexpireat zlost 4000000000 members 1 b
            lassign [diff] status output
            assert_equal 1 $status
            assert_match {*db 0 "lost": TTL of a member: member "a" expires at 4000000000000, -1 ms*} $output
            assert_match {*db 0 "zlost": TTL of a member: member "b" expires at 4000000000000, -1 ms*} $output
            assert_match {*3 keys compared, 2 differ*TTL of a member: 2*only one of the servers has TTLs of members*} $output
        }
    }
}
