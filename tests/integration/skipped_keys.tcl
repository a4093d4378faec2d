# SPDX-License-Identifier: BSD-3-Clause
#
# foreign-values skip in a replica, and in an append only file: the names of keys whose values were skipped stay known, so that
# later commands about them do what they do on the server that has them. The primary is scripted.

source $::tests_dir/support/replication.tcl
source $::tests_dir/support/primary.tcl

set ::id [string repeat f 40]

proc bytes {hex} {binary format H* $hex}
proc text {value} {return [format %c [string length $value]]$value}

# A file of Redis 8 with vector sets v and w (which expires), an array arr, and strings a and b.
set ::vector "\x07[bytes 81bde72da2bb1eb4000202020202500102010502653105010100]"
proc vector_set {name} {return "\x07[text $name][string range $::vector 1 end]"}
proc foreign_rdb {} {
    set file "REDIS0014\xfa[text redis-ver][text 8.8.0]\xfe\x00"
    append file [vector_set v]
    append file "\xfc[binary format w 4102444800000]" [vector_set w]
    append file "\x1c[text arr][bytes 0201010003017801030179]"
    foreach name {a b} {append file "\x00[text $name][text old]"}
    return "$file\xff[string repeat \x00 8]"
}

# The payload of DUMP of a vector set by a Redis 8.8.
proc foreign_payload {} {return "$::vector[bytes 0e00][string repeat \x00 8]"}

proc attached {} {
    primary_detach
    set ::sent 100
    set c [primary_asked]
    primary_full_sync $c $::id 100 [foreign_rdb]
    primary_wait_ack $c 100
    applies $c {SELECT 0}
    return $c
}

# Sends commands, each a list, and waits until the offset is acknowledged.
proc applies {c args} {
    foreach words $args {
        primary_send $c {*}$words
        incr ::sent [primary_length {*}$words]
    }
    primary_wait_ack $c $::sent
}

proc errors {} {
    regexp {master_stream_errors:(\d+)} [r info replication] -> count
    return $count
}

# Types of names, in this order.
proc types {args} {lmap name $args {r type $name}}

primary_listen

start_server {tags {repl tls:skip external:skip} overrides {save {} repl-diskless-load swapdb foreign-values skip appendonly no}} {
    test {skipped keys stay known: their type, their time, and that they are no other type} {
        set c [attached]
        assert_equal {vectorset vectorset array string} [types v w arr a]
        assert_equal {1 4102444800000 5} [list [r exists v] [r pexpiretime w] [r dbsize]]
        assert_error "WRONGTYPE*" {r get v}
        assert_error "ERR The value of this key was skipped*" {r dump v}
        assert_match "*foreign_keys_known:3\r*foreign_keys_skipped:3\r\nforeign_keys_skipped_types:vectorset=2,array=1\r*" [r info persistence]
        assert_match {*serializedlength:*} [r debug object v]
        assert {[r memory usage v] > 0}
        assert_equal {vectorset} [lsort -unique [types {*}[lindex [r scan 0 type vectorset] 1]]]
    }

    foreach {what commands expected} {
        "RENAME over a key"              {{RENAME v a}}                        {a vectorset v none}
        "RENAME of a key over it"        {{RENAME a v}}                        {a none v string}
        "RENAMENX of it"                 {{RENAMENX v new}}                    {v none new vectorset}
        "RENAMENX of a key, so the name was free" {{RENAMENX a v}}             {a none v string}
        "COPY with REPLACE over a key"   {{COPY v a REPLACE}}                  {v vectorset a vectorset}
        "COPY of a key, so the name was free" {{COPY a v}}                     {a string v string}
        "COPY to another database"       {{COPY v a DB 1 REPLACE}}             {v vectorset a string}
        "MOVE"                           {{MOVE v 1}}                          {v none}
        "DEL and UNLINK"                 {{DEL v} {UNLINK arr}}                {v none arr none a string}
        "SET over it"                    {{SET v x}}                           {v string}
        "SET NX, so the name was free"   {{SET v x NX}}                        {v string}
        "SETNX, so the name was free"    {{SETNX v x}}                         {v string}
        "MSETNX, so the names were free" {{MSETNX v x arr y}}                  {v string arr string}
        "a list, so the name was free"   {{RPUSH v x}}                         {v list}
        "a hash in a transaction"        {MULTI {HSET v f x} {RENAME arr b} EXEC} {v hash arr none b array}
        "FLUSHALL"                       {FLUSHALL}                            {v none a none}
        "SWAPDB"                         {{SWAPDB 0 1}}                        {v none a none}
        "EXPIRE and PERSIST"             {{PEXPIREAT v 4102444800000} {PERSIST w}} {v vectorset w vectorset}
        "expiry by the primary"          {{DEL w}}                             {w none}
        "ZUNIONSTORE from the free name" {{ZADD z 1 m} {ZUNIONSTORE arr 2 z v}} {v none arr zset}
        "a new one"                      {{VADD n VALUES 1 1 e} {RENAME n a}}  {n none a vectorset}
        "a document of a module"         {{JSON.SET j $ 1} {RENAME j a} {JSON.DEL a}} {j none a none}
        "a document that is deleted by its root" {{JSON.SET j $ {{"a":1}}} {JSON.DEL j $.a} {JSON.SET i $ 1} {JSON.DEL i $}} {j ReJSON-RL i none}
        "the last element of a new vector set" {{VADD n VALUES 2 1 2 e} {VSETATTR n e {}} {VREM n e}} {n none}
        "two elements, one of them set twice" {{VADD n REDUCE 1 FP32 12345678 e SETATTR {}} {VADD n FP32 12345678 e} {VADD n VALUES 1 1 f Q8} {VREM n e}} {n vectorset}
        "all elements, one of them set twice" {{VADD n FP32 12345678 e} {VADD n REDUCE 1 VALUES 1 1 e} {VADD n FP32 1234 f} {VREM n e} {VREM n f}} {n none}
        "a new vector set that is renamed" {{VADD n FP32 1234 e} {RENAME n a} {VADD a FP32 1234 f} {VREM a e} {VREM a f}} {n none a none}
        "a new vector set that is copied" {{VADD n FP32 1234 e} {COPY n a REPLACE} {VREM n e} {VADD a FP32 1234 f} {VREM a e}} {n none a vectorset}
        "a copy that loses all elements" {{VADD n FP32 1234 e} {COPY n a REPLACE} {VREM a e}} {n vectorset a none}
        "a new vector set in another database" {{VADD n FP32 1234 e} {SWAPDB 0 1} {SELECT 1} {VREM n e} {SWAPDB 0 1} {SELECT 0}} {n none}
        "a new vector set that is moved"  {{VADD n FP32 1234 e} {MOVE n 1} {SELECT 1} {VREM n e} {SWAPDB 0 1} {SELECT 0}} {n none}
        "a new vector set that expires"   {{VADD n FP32 1234 e} {PEXPIREAT n 4102444800000} {DEL n} {VADD n FP32 1234 f} {VREM n f}} {n none}
        "a new vector set after FLUSHALL" {FLUSHALL {VADD n FP32 1234 e} {VADD v FP32 1234 e} {VREM v e}} {n vectorset v none}
        "elements of a vector set that was loaded, which are not known" {{VADD v FP32 1234 e} {VREM v e}} {v vectorset}
        "VREM of a key that is not known" {{VREM none e}}              {none none}
        "elements that another type has"  {{VADD arr FP32 1234 e} {VREM arr e} {ARSET v 0 x} {ARDEL v 0}} {arr none v none}
        "a new array"                     {{ARSET n 7 x y} {ARMSET n 8 z 18446744073709551614 e} {ARDEL n 7 18446744073709551614}} {n array}
        "a new array that is emptied"     {{ARSET n 7 x y} {ARMSET n 9 z 18446744073709551614 e} {ARDEL n 7} {ARDELRANGE n 8 9 100 18446744073709551614}} {n none}
        "a range that leaves an element"  {{ARSET n 7 x y z} {ARDELRANGE n 8 9}} {n array}
        "elements at the cursor of an array, which are not known" {{ARSET n 0 x} {ARINSERT n y} {ARDEL n 0}} {n array}
        "elements in a transaction"       {MULTI {VADD n FP32 1234 e} {VREM n e} EXEC} {n none}
        "a vector set that a transaction replaces" {MULTI {DEL v} {VADD v FP32 1234 e} EXEC} {v vectorset}
        "a vector set that a transaction renames" {MULTI {RENAME v a} {VADD v FP32 1234 e} {VREM v e} EXEC} {v none a vectorset}
    } {
        test "skipped keys: $what" {
            set c [attached]
            applies $c {*}$commands
            foreach {name type} $expected {assert_equal "$name $type" "$name [r type $name]"}
            assert_equal 0 [errors]
        }
    }

    test {skipped keys: times, other databases} {
        set c [attached]
        applies $c {PEXPIREAT v 4102444800000} {COPY v a DB 1 REPLACE} {SWAPDB 0 1}
        assert_equal {none vectorset} [types v a]
        applies $c {SWAPDB 0 1}
        assert_equal 4102444800000 [r pexpiretime v]
    }

    test {RESTORE of a foreign payload over a key, and of a key over a foreign value} {
        set c [attached]
        applies $c [list RESTORE a 0 [foreign_payload] REPLACE]
        assert_equal vectorset [r type a]
        r select 0
        set payload [r dump b]
        applies $c [list RESTORE v 0 $payload REPLACE] [list RESTORE arr 0 $payload]
        assert_equal {string string} [types v arr]
        assert_equal 0 [errors]
    }

    test {clients of a writable replica: the names are taken} {
        set c [attached]
        r config set replica-read-only no
        set payload [r dump a]
        assert_error "BUSYKEY*" {r restore v 0 $payload}
        assert_equal 0 [r setnx v x]
        assert_equal 0 [r msetnx v x other y]
        assert_equal 0 [r renamenx a v]
        assert_equal 0 [r copy a v]
        assert_error "WRONGTYPE*" {r rpush v x}
        r config set replica-read-only yes
    }

    test {promotion removes the names, and says how many} {
        set c [attached]
        mark_logs
        r replicaof no one
        assert_equal {2 none none} [list [r dbsize] {*}[types v arr]]
        assert_match "*The names of 3 keys whose values were skipped*" [said_since_mark]
        assert_match "*foreign_keys_known:0\r*foreign_keys_dropped:*" [r info persistence]
    }

    test {files and digests have no skipped keys} {
        set c [attached]
        r save
        r config set appendonly yes
        wait_for_condition 400 25 {[string match "*aof_rewrite_in_progress:0*aof_last_bgrewrite_status:ok*" [r info persistence]]}
        assert_equal vectorset [r type v]
        set digest [r debug digest]
        r replicaof no one
        assert_equal $digest [r debug digest]
        r debug reload
        assert_equal {a b} [lsort [r keys *]]
        r config set appendonly no
    }
}

start_server {tags {repl tls:skip external:skip} overrides {save {} repl-diskless-load swapdb foreign-values skip appendonly yes auto-aof-rewrite-percentage 0}} {
    test {the append only file of a replica has what the commands about skipped keys did} {
        set c [attached]
        wait_for_condition 400 25 {[string match "*aof_rewrite_in_progress:0*aof_last_bgrewrite_status:ok*" [r info persistence]]}
        wait_for_condition 400 25 {[string match "*aof_rewrite_scheduled:0*" [r info persistence]]}
        applies $c {SET s 1} {RENAME v a} {COPY arr b REPLACE} {RENAMENX w s2} {SET kept 1}
        assert_equal {vectorset array} [types a b]
        applies $c {SELECT 1} {SET a 1} {SET kept 1} {SELECT 0} {COPY arr a DB 1 REPLACE}
        r replicaof no one
        r debug loadaof
        assert_equal {kept s} [lsort [r keys *]]
        r select 1
        assert_equal kept [r keys *]
        r select 0
    }
}

start_server [list tags {repl tls:skip external:skip} overrides [list port [free_port] save {} foreign-values skip appendonly yes auto-aof-rewrite-percentage 0]] {
    test {an append only file of Redis whose base has values that are skipped} {
        stop_server
        set folder [srv dir]/appendonlydir
        foreach file [glob $folder/*] {file delete $file}
        write_bytes $folder/appendonly.aof.1.base.rdb [foreign_rdb]
        set increment {}
        foreach words {
            {SELECT 0} {RENAME v a} {VADD n VALUES 1 1 e} {COPY n b REPLACE} {SETNX w x}
            {SET p x} MULTI {DEL n} {VADD n VALUES 1 1 e} {RENAME n p} EXEC
            {SET q x} {VADD e FP32 1234 e} {VREM e e} {ARSET e 1 x} {RENAME e q}
        } {append increment [primary_encode $words]}
        write_bytes $folder/appendonly.aof.1.incr.aof $increment
        write_bytes $folder/appendonly.aof.manifest "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
        restart_server
        assert_equal {w x} [list [r keys *] [r get w]]
        assert {![string match "*aof_load_errors*" [r info persistence]]}
        assert_match "*foreign_keys_known:0\r*" [r info persistence]
    }
}

start_server {tags {repl tls:skip external:skip} overrides {save {} repl-diskless-load swapdb foreign-values skip appendonly no enable-module-command yes}} {
    test {a module that is loaded inside a transaction of the stream which has skipped commands} {
        set c [attached]
        foreach words {MULTI {DEL v} {VADD v FP32 1234 e} {SET b new}} {
            primary_send $c {*}$words
            incr ::sent [primary_length {*}$words]
        }
        wait_for_condition 400 25 {[string match "* multi=3 *" [r client list type primary]]}
        r module load [file normalize build/modules/dataset.so]
        applies $c EXEC {RENAME v a}
        assert_equal {none vectorset new 0} [list {*}[types v a] [r get b] [errors]]
    }
}

if {[info exists ::env(PEER_REDIS)]} {
    test {a replica of a Redis has the names of its vector sets after random commands} {
        if {[catch {exec $::tests_dir/differential/skipped_values.py $::binary $::env(PEER_REDIS) 2>@1} output]} {fail $output}
        assert_match "*1 passed, 0 failed" $output
    }
}

primary_close
