# SPDX-License-Identifier: BSD-3-Clause
#
# Transfers of a dataset that fail, in every load mode; persistence of a replica. The primary is scripted.

source $::tests_dir/support/primary.tcl

set ::id [string repeat c 40]
set ::mark [string repeat m 40]

# The replica asks for a full synchronisation; returns the connection.
proc asked {} {
    primary_detach
    r set old data
    r save
    return [primary_asked]
}

# After a failure: the replica is alive, has what it should have, and the next try succeeds.
proc recovers {mode keeps} {
    set c [primary_accept]
    set psync [primary_handshake $c]
    if {$keeps} {
        assert_equal data [r get old] $mode
    } else {
        assert_equal {PSYNC ? -1} $psync
        assert_equal 0 [r dbsize] $mode
    }
    primary_full_sync $c $::id 50 [rdb_of {new data}]
    primary_wait_ack $c 50
    assert_equal {{} data} [list [r get old] [r get new]] $mode
}

proc truncated {bytes} {string range $bytes 0 end-12}
proc damaged {bytes} {string replace $bytes end-1 end-1 \x01}

set ::many {}
for {set i 0} {$i < 100} {incr i} {lappend ::many key:$i $i}

# Bytes for the announcement and what follows; which modes keep the old data; the log line.
set ::failures {
    {error reply} {-ERR not today\n} {disabled flush-before-load swapdb} "PRIMARY aborted replication with an error: ERR not today"
    {other protocol} {hello\n} {disabled flush-before-load swapdb} "the first byte is not '.' .we received 'hello'"
    {refused version} {"\$EOF:$::mark\nREDIS9999[string repeat x 40]$::mark"} {disabled flush-before-load swapdb} "Can't handle RDB format version 9999|is corrupt"
    {no file} {"\$EOF:$::mark\nNothing[string repeat x 40]$::mark"} {disabled flush-before-load swapdb} "Failed to load RDB|is corrupt"
    {checksum} {"\$EOF:$::mark\n[damaged [rdb_of {k v}]]$::mark"} {disabled swapdb} "checksum"
    {lost} {"\$EOF:$::mark\n[truncated [rdb_of {k v}]]"} {disabled swapdb} "connection lost|Unexpected EOF reading RDB file"
    {lost, with size} {"\$1000\n[truncated [rdb_of {k v}]]"} {disabled swapdb} "connection lost|Unexpected EOF reading RDB file"
    {wrong mark} {"\$EOF:$::mark\n[rdb_of {k v}][string repeat z 40]"} {disabled swapdb} "EOF marker is broken|connection lost"
    {wrong size} {"\$[expr {[string length [rdb_of {k v}]] + 3}]\n[rdb_of {k v}]abc"} {disabled swapdb} "checksum|instead of"
    {a key twice} {"\$EOF:$::mark\n[rdb_of {k v other w k x}]$::mark"} swapdb "RDB has duplicated key in DB 0"
    {a key twice, far apart} {"\$EOF:$::mark\n[rdb_of [concat {k v} $::many {k x}]]$::mark"} swapdb "RDB has duplicated key in DB 0"
    {content} {"\$EOF:$::mark\n[string map {\x00\x01k \x63\x01k} [rdb_of {k v}]]$::mark"} {swapdb} "Internal error in RDB reading"
}

primary_listen

start_server {tags {repl tls:skip} overrides {save {3600 1}}} {
    foreach mode {disabled flush-before-load swapdb} {
        foreach {name bytes kept line} $::failures {
            test "A transfer that fails ($mode, $name) ends neither the replica nor its last good file" {
                r config set repl-diskless-load $mode
                set c [asked]
                mark_logs
                set rdb [read_bytes [srv dir]/dump.rdb]
                raw_send $c "+FULLRESYNC $::id 50\r\n"
                raw_send $c [expr {[string index $bytes 0] eq "\"" ? [subst [string range $bytes 1 end-1]] : [subst -nocommands -novariables $bytes]}]
                if {[string match {lost*} $name] || $name eq "wrong mark"} {
                    raw_close $c
                }
                recovers $mode [expr {$mode in $kept}]
                assert {[regexp $line [server_log]]} $line
                if {$mode ne "disabled"} {assert_equal $rdb [read_bytes [srv dir]/dump.rdb]}
            }
        }
    }

    test {A failing full synchronisation is tried again at growing intervals} {
        r config set repl-diskless-load flush-before-load
        set c [asked]
        foreach expected {"Reconnecting to PRIMARY*after failure" "failed 2 times in a row: next try in 1 seconds"} {
            raw_send $c "+FULLRESYNC $::id 50\r\n-ERR no\n"
            wait_for_condition 400 25 {[string match "*$expected*" [server_log]]} else {fail $expected}
            set c [primary_accept]
            primary_handshake $c
        }
        primary_full_sync $c $::id 50 [rdb_of {new data}]
        primary_wait_ack $c 50
    }

    test {After a cut link a full synchronisation is tried again within a second, however often} {
        foreach mode {disabled flush-before-load swapdb} {
            r config set repl-diskless-load $mode
            set c [asked]
            mark_logs
            for {set i 0} {$i < 4} {incr i} {
                raw_send $c "+FULLRESYNC $::id 50\r\n\$EOF:$::mark\n[truncated [rdb_of {k v}]]"
                if {$i % 2} {wait_for_condition 400 25 {[info_field master_sync_read_bytes] > 0}}
                primary_drop
                set c [primary_accept]
                primary_handshake $c
            }
            assert {![string match "*times in a row: next try*" [said_since_mark]]} [said_since_mark]
            primary_full_sync $c $::id 50 [rdb_of {k v}]
            primary_wait_ack $c 50
        }
    }

    test {REPLICAOF NO ONE during a transfer keeps the old data} {
        foreach mode {disabled swapdb flush-before-load} {
            r config set repl-diskless-load $mode
            set c [asked]
            raw_send $c "+FULLRESYNC $::id 50\r\n\$EOF:$::mark\r\n"
            wait_for_condition 400 25 {[info_field master_sync_total_bytes] == 0} else {fail "no transfer"}
            if {$mode eq "disabled"} {
                r replicaof no one
            } else {
                assert_error "LOADING *" {r replicaof no one}
                primary_drop
                wait_for_condition 400 25 {![catch {r replicaof no one}]} else {fail "still loading"}
            }
            assert_equal data [r get old]
            assert_equal {} [glob -nocomplain [srv dir]/temp-*]
        }
    }

    test {A dataset of the same history is loaded while the old one is served} {
        r config set repl-diskless-load disabled
        set c [asked]
        primary_full_sync $c $::id 50 [rdb_of {k old}]
        primary_wait_ack $c 50
        r config set repl-diskless-load swapdb
        primary_drop
        set c [primary_accept]
        primary_handshake $c
        set rdb [rdb_of {k new}]
        raw_send $c "+FULLRESYNC $::id 70\r\n\$[string length $rdb]\r\n[string range $rdb 0 12]"
        wait_for_condition 400 25 {[info_field async_loading] == 1} else {fail "not loading"}
        assert_equal old [r get k]
        assert_error "LOADING *" {r replicaof no one}
        assert_error "LOADING *" {r save}
        foreach {name value} {appendonly yes repl-diskless-load disabled} {
            assert_error "LOADING *" {r config set $name $value}
        }
        assert_equal OK [r config set maxmemory-policy noeviction]
        raw_send $c [string range $rdb 13 end]
        primary_wait_ack $c 70
        assert_equal new [r get k]
        assert_equal 0 [info_field async_loading]
        r config set repl-diskless-load disabled
    }

    test {A server can end while it loads a dataset beside that which it serves} {
        r config set repl-diskless-load disabled
        set c [asked]
        primary_full_sync $c $::id 50 [rdb_of {k old}]
        primary_wait_ack $c 50
        r config set repl-diskless-load swapdb
        primary_drop
        set c [primary_accept]
        primary_handshake $c
        set rdb [rdb_of $::many]
        raw_send $c "+FULLRESYNC $::id 70\r\n\$[string length $rdb]\r\n[string range $rdb 0 end-20]"
        wait_for_condition 400 25 {[info_field async_loading] == 1} else {fail "not loading"}
        restart_server
        assert_equal PONG [r ping]
        assert_equal 0 [info_field async_loading]
    }

    test {A received file that cannot take the place of the snapshot is not loaded, and received again} {
        r config set repl-diskless-load disabled
        set c [asked]
        file delete [srv dir]/dump.rdb
        file mkdir [srv dir]/dump.rdb/x
        mark_logs
        primary_full_sync $c $::id 50 [rdb_of {k v}]
        set c [primary_accept]
        primary_handshake $c
        assert_match "*Failed trying to rename the temp DB into dump.rdb in PRIMARY <-> REPLICA synchronization: *" [server_log]
        assert_equal {data {}} [list [r get old] [r get k]]
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
        file delete -force [srv dir]/dump.rdb
        primary_full_sync $c $::id 50 [rdb_of {k v}]
        primary_wait_ack $c 50
        assert_equal {{} v} [list [r get old] [r get k]]
    }

    test {The file that was received is the snapshot of the replica} {
        set c [asked]
        set rdb [rdb_of {k v}]
        primary_full_sync $c $::id 50 $rdb
        primary_wait_ack $c 50
        assert_equal $rdb [read_bytes [srv dir]/dump.rdb]
        assert_equal 0 [info_field rdb_changes_since_last_save]
    }
}

start_server {tags {repl tls:skip} overrides {appendonly yes}} {
    foreach mode {disabled flush-before-load} {
        test "The append only file of a replica begins again with the dataset ($mode)" {
            r config set repl-diskless-load $mode
            set c [asked]
            primary_full_sync $c $::id 50 [rdb_of {k v}]
            primary_wait_ack $c 50
            wait_for_condition 400 25 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0} else {fail "no rewrite"}
            primary_send $c SET after it
            primary_wait_ack $c [expr {50 + [primary_length SET after it]}]
            assert_match "*Reused RDB file from primary sync as AOF base file: appendonly.aof.*.base.rdb*" [server_log]
            r replicaof no one
            r debug loadaof
            assert_equal {v it {}} [list [r get k] [r get after] [r get old]]
        }
    }

    test {FACK is the offset that is on disk} {
        r config set repl-diskless-load disabled appendfsync no
        set c [asked]
        primary_full_sync $c $::id 50 [rdb_of {k v}]
        primary_wait_ack $c 50
        primary_send $c SET a 1
        set offset [expr {50 + [primary_length SET a 1]}]
        primary_wait_ack $c $offset
        foreach i {1 2} {assert_equal [list REPLCONF ACK $offset FACK 50] [primary_request $c]}
        r config set appendfsync everysec
        while {[set words [primary_request $c]] eq [list REPLCONF ACK $offset FACK 50]} {}
        assert_equal [list REPLCONF ACK $offset FACK $offset] $words
    }
}

primary_close
