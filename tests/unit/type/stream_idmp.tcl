# SPDX-License-Identifier: BSD-3-Clause
#
# Entries that producers send twice: XADD with IDMP and IDMPAUTO, XCFGSET, XIDMPRECORD; and XNACK. assets/idmp_programs.txt
# has programs with the replies of Redis 8.6; a model follows random commands, and replicas and files are compared with it.

source $::tests_dir/support/replication.tcl

proc idmp_fields {} {return {idmp-duration idmp-maxsize pids-tracked iids-tracked iids-added iids-duplicates}}
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"

# The six fields of a stream; those of a stream without a table are the defaults.
proc table_info {level key} {
    set info [r $level xinfo stream $key]
    return [lmap field [idmp_fields] default {100 100 0 0 0 0} {
        expr {[dict exists $info $field] ? [dict get $info $field] : $default}
    }]
}

# All ids of producers of a stream, as bytes.
proc table_bytes {level key} {
    set payload [r $level dump $key]
    set at [string first stream-idmp $payload]
    return [expr {$at < 0 ? "" : [string range $payload $at end-10]}]
}

# ---- programs with recorded replies ----

proc run_program {commands} {
    r flushall
    set ids {}
    foreach command $commands {
        lassign $command words expected
        set words [lmap word $words {
            set n [string range $word 1 end]
            expr {![string match "#*" $word] ? $word : $n < [llength $ids] ? [lindex $ids $n] : "99-$n"}
        }]
        lassign $words name key
        set code [catch {
            switch $name {
                INFO {set reply "info [table_info -0 $key]"}
                MOVED {
                    set payload [r dump $key]
                    set reply [expr {$payload eq "" ? "none" : [r restore $key 0 $payload replace]}]
                }
                default {
                    set reply [r {*}$words]
                    if {$name eq "XADD" && $reply eq ""} {set reply null}
                }
            }
        } message]
        if {$code} {set reply "error $message"}
        if {[regexp {^\d{10,}-\d+$} $reply]} {
            if {$reply ni $ids} {lappend ids $reply}
            set reply "#[lsearch -exact $ids $reply]"
        }
        if {$reply ne $expected} {fail "$words: $reply, not $expected"}
    }
}

start_server {tags {stream idmp}} {
    test {programs of XADD IDMP, XCFGSET and XIDMPRECORD have the replies of Redis 8.6} {
        set file [read_bytes [file join $::tests_dir assets idmp_programs.txt]]
        set programs {}
        foreach line [split [string trim $file] \n] {
            if {[string match "program *" $line]} {
                lappend programs {}
            } elseif {[string match "  *" $line]} {
                set program [lindex $programs end]
                lset programs end [lappend program [list {*}$line]]
            }
        }
        assert {[llength $programs] >= 50}
        foreach program [lrange $programs 0 [scaled 59]] {run_program $program}
    }

    test {a stream without ids of producers has no field of them, and an error makes none} {
        r del k
        r xadd k 1-1 a b
        assert_equal OK [r xcfgset k idmp-maxsize 100]
        catch {r xadd k idmp p i 5-5 a b}
        catch {r xcfgset k idmp-maxsize 0}
        assert {![dict exists [r xinfo stream k] iids-added]}
        assert_equal "" [table_bytes -0 k]
        set before [r memory usage k]
        r xadd k idmp p i * a b
        assert {[r memory usage k] > $before + 200}
        assert_equal {100 100 1 1 1 0} [table_info -0 k]
    }

    test {ids expire when their entries are older than the duration, also those that nobody asks for} {
        r del k
        r xadd k 1-1 a b
        r xcfgset k idmp-duration 1
        set first [r xadd k idmp p i * a b]
        assert_equal $first [r xadd k idmp p i * a b]
        set size [r memory usage k]
        wait_for_condition 200 50 {[r memory usage k] < $size}
        assert_equal {1 100 0 0 1 1} [table_info -0 k]
        assert_not_equal $first [r xadd k idmp p i * a b]
        # an id of an old entry is not there at all
        assert_equal OK [r xidmprecord k p old 1-1]
        assert_not_equal 1-1 [r xadd k idmp p old * a b]
    }

    test {IDMPAUTO compares fields and values in any order, and nothing else} {
        r del k
        set id [r xadd k idmpauto p * f v g w]
        assert_equal $id [r xadd k idmpauto p * g w f v]
        foreach other {{f v} {f v g x} {fv g w {}} {f vg w {}} {f v g w f v} {v f w g} {f w g v}} {
            assert_not_equal $id [r xadd k idmpauto p * {*}$other]
        }
        assert_not_equal $id [r xadd k idmpauto q * f v g w]
        set big [string repeat x 100000]
        assert_equal [r xadd k idmpauto p * $big $big] [r xadd k idmpauto p * $big $big]
    }

    test {WATCH, keyspace events and the dirty counter see entries, and no duplicates} {
        r del k
        r xadd k idmp p i * a b
        set other [connect]
        foreach {words dirty fails} {{xadd k idmp p i * a b} 1 0 {xcfgset k idmp-maxsize 7} 1 0 {xcfgset k idmp-maxsize 7} 0 0
            {xadd k idmp p j * a b} 1 1} {
            $other watch k
            set before [info_field rdb_changes_since_last_save]
            r {*}$words
            assert_equal $dirty [expr {[info_field rdb_changes_since_last_save] - $before}]
            $other multi
            $other ping
            assert_equal [expr {$fails ? "" : "PONG"}] [$other exec]
        }
    }

    test {the category of ACL and the database limits are those of other stream commands} {
        set at -1
        foreach name {xcfgset xidmprecord xnack} {
            assert {$name in [r acl cat stream]}
            assert {$name in [r acl cat write]}
            assert_equal k [r command getkeys $name k {*}[lindex {{} {p i 1-1} {g fail ids 1 1-1}} [incr at]]]
        }
        r set s v
        assert_error $wrong_type {r xadd s idmp p i * a b}
        assert_error $wrong_type {r xcfgset s}
        assert_error $wrong_type {r xidmprecord s p i 1-1}
        assert_error $wrong_type {r xnack s g fail ids 1 1-1}
    }

    test {XACK of a client with words of a record changes nothing} {
        r del k
        r xadd k 1-1 a b
        assert_equal 0 [r xack k "\x00idmp" limits 5 5]
        assert_equal {100 100 0 0 0 0} [table_info -0 k]
    }

    # ---- XNACK ----

    test {XNACK releases entries with the deliveries that its word says} {
        r del k
        for {set i 1} {$i <= 6} {incr i} {r xadd k $i-1 a b}
        r xgroup create k g 0
        r xreadgroup group g c count 5 streams k >
        assert_equal 1 [r xnack k g silent ids 1 1-1]
        assert_equal 2 [r xnack k g FAIL IDS 3 2-1 9-9 3-1]
        assert_equal 1 [r xnack k g fatal ids 1 4-1]
        assert_equal 1 [r xnack k g fail retrycount 7 ids 1 5-1]
        assert_equal 0 [r xnack k g fail ids 1 6-1]
        assert_equal 1 [r xnack k g fail ids 1 6-1 retrycount 2 force]
        assert_equal {{1-1 0} {2-1 1} {3-1 1} {4-1 9223372036854775807} {5-1 7} {6-1 2}} \
            [lmap row [r xpending k g - + 10] {list [lindex $row 0] [lindex $row 3]}]
        assert_equal {6 1-1 6-1 {{{} 6}}} [r xpending k g]
        assert_equal 6 [dict get [lindex [dict get [r xinfo stream k full] groups] 0] nacked-count]
        assert_equal {2-1 3-1} [lindex [r xautoclaim k g d 1000 2 count 2 justid] 1]
        assert_match "*{1-1 {a b} * 0}*" [r xreadgroup group g e count 1 claim 1000 streams k >]
        r xdel k 5-1
        assert_equal 0 [r xnack k g fail ids 1 5-1]
        assert_equal 5 [lindex [r xpending k g] 0]
    }

    test {XNACK refuses malformed requests, and changes nothing} {
        r del k
        r xadd k 1-1 a b
        r xgroup create k g 0
        r xreadgroup group g c streams k >
        foreach {words error} {
            {fail ids 0 1-1} "ERR Number of IDs must be a positive integer"
            {fail ids 2 1-1} "ERR The `numids` parameter must match the number of arguments"
            {fail ids 1 1-1 ids 1 1-1} "ERR syntax error"
            {other ids 1 1-1} "ERR syntax error"
            {fail force retrycount 1} "ERR syntax error"
            {fail ids 1 x} "ERR Invalid stream ID specified as stream command argument"
            {fail ids 1 1-1 retrycount -1} "ERR Invalid RETRYCOUNT option argument for XNACK"
        } {assert_error $error {r xnack k g {*}$words}}
        assert_error "NOGROUP*" {r xnack k none fail ids 1 1-1}
        assert_error "NOGROUP*" {r xnack none g fail ids 1 1-1}
        assert_equal {1 1-1 1-1 {{c 1}}} [r xpending k g]
    }
}

start_server {tags {stream idmp} overrides {extended-commands no}} {
    test {with extended-commands no there is no IDMP, but files and payloads keep it} {
        assert_error "ERR Invalid stream ID*" {r xadd k idmp p i * a b}
        assert_error "ERR unknown command*" {r xcfgset k idmp-maxsize 5}
        assert_error "ERR unknown command*" {r xidmprecord k p i 1-1}
        assert_error "ERR unknown command*" {r xnack k g fail ids 1 1-1}
    }
}

# ---- the model: replicas and files ----

# model(key) is a dict: limits, ids {producer {iid id ...}}, added, duplicates, len.
proc model_new {} {return {duration 100 max 100 ids {} added 0 duplicates 0 len 0}}

# Runs one command in a way; the reply.
proc run_way {way words} {
    switch $way {
        plain {return [r {*}$words]}
        multi {
            r multi
            r incr other
            r {*}$words
            return [lindex [r exec] 1]
        }
        script {return [r eval {return redis.call(unpack(ARGV))} 1 [lindex $words 1] {*}$words]}
        function {return [r fcall run 1 [lindex $words 1] {*}$words]}
    }
}

proc model_add {key producer iid way} {
    upvar #0 model model
    set state $model($key)
    set known [dict exists $state ids $producer $iid]
    set id [run_way $way [list XADD $key IDMP $producer $iid * f v]]
    if {$known} {
        assert_equal [dict get $state ids $producer $iid] $id
        dict incr state duplicates
    } else {
        set ids [expr {[dict exists $state ids $producer] ? [dict get $state ids $producer] : {}}]
        if {[dict size $ids] == [dict get $state max]} {set ids [lrange $ids 2 end]}
        dict set state ids $producer [list {*}$ids $iid $id]
        dict incr state added
        dict incr state len
    }
    set model($key) $state
}

proc model_limits {key duration max way} {
    upvar #0 model model
    set state $model($key)
    run_way $way [list XCFGSET $key IDMP-DURATION $duration IDMP-MAXSIZE $max]
    if {$duration != [dict get $state duration] || $max != [dict get $state max]} {dict set state ids {}}
    dict set state duration $duration
    dict set state max $max
    set model($key) $state
}

proc model_step {} {
    upvar #0 model model
    set way [lindex {plain multi script function} [random_below 4]]
    set key k[random_below 3]
    if {![info exists model($key)]} {
        r del $key
        r xadd $key 1-1 a b
        set model($key) [dict replace [model_new] len 1]
    }
    set producer [lindex [list p q "r\0 x"] [random_below 3]]
    switch [random_below 14] {
        0 {model_limits $key [expr {1000 + [random_below 3]}] [expr {2 + [random_below 5]}] $way}
        1 {
            run_way $way [list XTRIM $key MAXLEN 1]
            dict set model($key) len [expr {min([dict get $model($key) len], 1)}]
        }
        2 {
            set to k[random_below 3]
            if {$to ne $key} {
                run_way $way [list COPY $key $to REPLACE]
                set model($to) $model($key)
            }
        }
        3 {
            set to k[random_below 3]
            if {$to ne $key} {
                run_way $way [list RENAME $key $to]
                set model($to) $model($key)
                unset model($key)
            }
        }
        4 {run_way $way [list RESTORE $key 0 [r dump $key] REPLACE]}
        5 {
            r del $key
            unset model($key)
        }
        default {model_add $key $producer i[random_below 9] $way}
    }
}

proc model_compare {level} {
    upvar #0 model model
    foreach key [array names model] {
        set state $model($key)
        set counts 0
        dict for {producer ids} [dict get $state ids] {incr counts [dict size $ids]}
        assert_equal [list [dict get $state duration] [dict get $state max] [dict size [dict get $state ids]] $counts \
            [dict get $state added] [dict get $state duplicates]] [table_info $level $key]
        assert_equal [dict get $state len] [r $level xlen $key]
    }
}

# Each id of the model is found in the server at this level, which is no replica.
proc model_probe {level} {
    upvar #0 model model
    foreach key [array names model] {
        dict for {producer ids} [dict get $model($key) ids] {
            dict for {iid id} $ids {assert_equal $id [r $level xadd $key idmp $producer $iid * f v]}
        }
    }
}

foreach {preamble snapshots} {yes auto no auto yes inline} {
    set settings [list appendonly yes aof-use-rdb-preamble $preamble snapshot-mode $snapshots auto-aof-rewrite-percentage 0 \
        repl-diskless-sync-delay 0 enable-debug-command yes save ""]
    start_server [list tags {stream idmp repl tls:skip} overrides $settings] {
        start_server [list tags {stream idmp repl tls:skip} overrides $settings] {
            test "ids of producers reach replicas and files (preamble $preamble, snapshots $snapshots)" {
                upvar #0 model model
                array unset model
                r function load "#!lua name=lib\nredis.register_function('run', function(k, a) return redis.call(unpack(a)) end)"
                for {set i 0} {$i < [scaled 120]} {incr i} model_step
                r -1 replicaof [srv -0 host] [srv -0 port]
                wait_for_condition 400 25 {[string match "*master_link_status:up*" [r -1 info replication]]}
                for {set i 0} {$i < [scaled 120]} {incr i} model_step
                model_compare -0
                same_offset -0 -1
                model_compare -1
                foreach key [array names model] {assert_equal [table_bytes -0 $key] [table_bytes -1 $key]}
                set tables [lmap key [lsort [array names model]] {table_bytes -0 $key}]
                # the increments
                r debug loadaof
                assert_equal $tables [lmap key [lsort [array names model]] {table_bytes -0 $key}]
                r debug reload
                assert_equal $tables [lmap key [lsort [array names model]] {table_bytes -0 $key}]
                # a base
                r bgrewriteaof
                wait_for_condition 400 25 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
                assert_equal ok [info_field aof_last_bgrewrite_status]
                r debug loadaof
                assert_equal $tables [lmap key [lsort [array names model]] {table_bytes -0 $key}]
                # the replica refuses duplicates after its promotion, and so does its file
                r -1 replicaof no one
                model_probe -1
                r -1 debug loadaof
                model_probe -1
            }
        }
    }
}

start_server {tags {stream idmp} overrides {snapshot-mode inline enable-debug-command yes}} {
    test {a large stream that changes while it is saved without a fork has the ids of the start} {
        r del big
        set payload [string repeat x 1000]
        for {set i 0} {$i < 3000} {incr i} {r xadd big idmp p$i i * f $payload$i}
        set before [table_bytes -0 big]
        r bgsave
        for {set i 0} {$i < 100} {incr i} {r xadd big idmp p$i j * f v}
        wait_for_condition 400 25 {[info_field rdb_bgsave_in_progress] == 0}
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert {[info_field snapshot_inline_divided_values] > 0} ;# it was written in parts
        set after [table_bytes -0 big]
        r debug reload nosave
        assert_equal $before [table_bytes -0 big]
        assert_not_equal $before $after
        assert_match "*1 streams with ids of producers (XADD IDMP)*" \
            [exec [file join [file dirname $::binary] valkey-check-rdb] [srv dir]/dump.rdb]
    }
}
