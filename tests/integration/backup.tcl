# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli --backup and --restore: full copies, the stream, points in time, failures.

source $::tests_dir/support/tools.tcl
source $::tests_dir/support/all_types.tcl
source $::tests_dir/support/backup.tcl

set options {tags {cli tools repl tls:skip needs:local} overrides {repl-diskless-sync-delay 0 enable-debug-command yes}}

start_server $options {
    test {backup: a full copy has a description, and a server starts on it} {
        r set s hello
        r select 3
        r rpush l a b c
        r hset h f v
        r select 0
        r function load replace {#!lua name=lib
            redis.register_function('f', function() return 1 end)}
        set folder [backup_folder full]
        assert_match {*: full copy of *, offset *} [cli_ok --backup $folder]
        set text [read_bytes [the_file $folder full.json]]
        foreach pattern {{*"server": "valkey"*} {*"replication_id": "????????????????????????????????????????"*}
            {*"offset": [0-9]*} {*"sha256": "????????????????????????????????????????????????????????????????"*}} {
            assert_match $pattern $text
        }
        cli_ok --restore $folder $folder/out
        assert_equal [r debug digest] [restored_digest $folder/out]
        assert_equal lib [with_restored $folder/out {lindex [$c function list] 0 1}]
        assert_match {*: intact} [cli_ok --restore $folder --verify]
    }

    test {backup: the description as JSON} {
        set folder [backup_folder json]
        assert_match "{*\"kind\": \"full\"*\"bytes\": *}" [cli_ok --backup $folder --json]
        assert_match {\[*"from_ms": *"gap": false*\]} [cli_ok --restore $folder --list --json]
    }

    test {backup: - writes the copy to standard output} {
        set folder [backup_folder pipe]
        file mkdir $folder
        set tool [file join [file dirname $::binary] valkey-cli]
        exec $tool -h 127.0.0.1 -p [srv port] --backup - >$folder/dump.rdb 2>$folder/description
        assert_match "{*\"plain_bytes\": [file size $folder/dump.rdb]*}*" [read_bytes $folder/description]
        assert_equal [r debug digest] [restored_digest $folder]
    }

    test {backup: a full target is exit code 3, and leaves nothing that looks complete} {
        set tool [file join [file dirname $::binary] valkey-cli]
        r eval {for i = 1, 20000 do redis.call('set', 'large' .. i, i * 7919) end} 0
        assert_equal 1 [catch {exec $tool -h 127.0.0.1 -p [srv port] --backup - >/dev/full 2>@1} output result]
        assert_equal 3 [lindex [dict get $result -errorcode] 2]
        set folder [backup_folder limited]
        assert_equal 1 [catch {exec sh -c "ulimit -f 100; exec $tool -h 127.0.0.1 -p [srv port] --backup $folder 2>&1"} \
            output result]
        assert_equal 3 [lindex [dict get $result -errorcode] 2]
        assert_match {*cannot write *: File too large*} $output
        assert_equal {} [glob -nocomplain $folder/*/dump.rdb* $folder/*/full.json]
        assert_match {4 {The folder has no complete full copy.}} [cli --restore $folder --list]
        r flushall
    }

    test {backup: --compress zstd, --users and --upload} {
        set folder [backup_folder packed]
        for {set i 0} {$i < 200} {incr i} {r set packed:$i [string repeat abc 100]}
        r acl setuser backup-reader on >secret ~x:* +get
        file mkdir $folder.up
        set compress [compress_words]
        set end [expr {[llength $compress] ? ".zst" : ""}]
        cli_ok --backup $folder {*}$compress --users --upload "cp {} $folder.up/"
        if {$end ne ""} {assert {[file size [the_file $folder dump.rdb$end]] < 20000}}
        assert_equal [list dump.rdb$end full.json users.acl$end users.json] [lsort [glob -tails -directory $folder.up *]]
        cli_ok --restore $folder $folder/out
        assert_equal [r debug digest] [restored_digest $folder/out]
        set folder [backup_folder refused]
        lassign [cli --backup $folder --upload false] status output
        assert_equal 3 $status
        assert_match {*--upload failed for *} $output
        # It is owed, and --follow makes up for it.
        set pid [follow_start $folder --upload "cp {} $folder.up/"]
        file mkdir $folder.up
        wait_for_condition 200 50 {[llength [glob -nocomplain $folder.up/*]] == 2} else {fail [read_bytes $folder.log]}
        follow_end $pid
        assert_equal {} [glob -nocomplain $folder/*/upload-owed]
        r acl deluser backup-reader
    }

    test {backup: --encrypt-to passes parts through age, --decrypt-with back} {
        # A stand-in with age's interface: it changes all bytes.
        set folder [backup_folder sealed]
        file mkdir $folder.bin
        write_bytes $folder.bin/age "#!/bin/sh\n\[ \"\$1\" = -d ] && exec tr n-za-m a-z\nexec tr a-z n-za-m\n"
        file attributes $folder.bin/age -permissions 0755
        set path $::env(PATH)
        set ::env(PATH) $folder.bin:$path
        try {
            cli_ok --backup $folder --encrypt-to age1recipient
            assert_equal 0 [string match *hello* [read_bytes [the_file $folder dump.rdb.age]]]
            cli_ok --restore $folder $folder/out
            assert_equal [r debug digest] [restored_digest $folder/out]
            cli_ok --restore $folder --decrypt-with {age -d} $folder/out2
            set answer [cli --restore $folder --decrypt-with {exit 9} $folder/out3]
            assert_match {4 {*the program for decryption failed with exit code 9*}} $answer
        } finally {set ::env(PATH) $path}
        assert_match {3 {*cannot be started*}} [cli --backup [backup_folder unsealed] --encrypt-to ssh-none-such]
    }

    test {backup: wrong options are exit code 1, an absent server is 2} {
        set folder [backup_folder wrong]
        foreach wrong {
            {--compress gzip} {--metrics x} {--keep 5w} {--follow --keep x} {--follow --full-every 0} {--follow --segment-bytes 0}
        } {assert_equal 1 [lindex [cli --backup $folder {*}$wrong] 0]}
        foreach wrong {
            {} {--keys x} {--ttl x out} {--to-time yesterday out} {--to-time 1 --to-offset 1 out} {--list out}
        } {assert_equal 1 [lindex [cli --restore $folder {*}$wrong] 0]}
        assert_equal 2 [lindex [run_tool valkey-cli "" -p [free_port] --backup $folder] 0]
        assert_equal 4 [lindex [cli --restore $folder $folder/out] 0]
    }

    test {backup: a flipped bit is found in each file, with its name} {
        set folder [backup_folder flipped]
        set pid [follow_start $folder --segment-bytes 1]
        wait_follow_says $folder {*full copy of *}
        r set k v
        wait_follow_has $folder
        follow_end $pid
        foreach pattern {dump.rdb full.json segment-*.aof segment-*.json} {
            set path [lindex [lsort [glob $folder/*/$pattern]] 0]
            set bytes [read_bytes $path]
            set at [expr {[string length $bytes] / 2}]
            scan [string index $bytes $at] %c code
            write_bytes $path [string replace $bytes $at $at [format %c [expr {$code ^ 1}]]]
            lassign [cli --restore $folder --verify] status output
            assert_equal 4 $status
            assert_match "*[file tail $path]*" $output
            lassign [cli --restore $folder $folder/out] status output
            if {$pattern ne "segment-*.json"} {assert_equal 4 $status}
            assert_match "*[file tail $path]*" $output
            file delete -force $folder/out
            write_bytes $path $bytes
        }
        assert_equal 0 [lindex [cli --restore $folder --verify] 0]
        exec truncate -s -1 [the_file $folder dump.rdb]
        assert_match {4 {*has * bytes, * were written*}} [cli --restore $folder --verify]
    }
}

start_server $options {
    test {backup: --follow restores each mark exactly, transactions whole, after kills of the tool} {
        set folder [backup_folder marks]
        set pid [follow_start $folder --segment-bytes 2000 {*}[compress_words]]
        wait_follow_says $folder {*full copy of *}
        set units {}
        set times {}
        for {set round 0} {$round < 3} {incr round} {
            set until [expr {[listed $folder to_ms] + 2000}]
            wait_for_condition 4000 5 {[lappend units [write_unit]] ne {} &&
                [llength $units] % 20 == 0 && [listed $folder to_ms] >= $until} else {fail "no marks"}
            lappend times [expr {$until - 500}]
            follow_end $pid KILL
            for {set i 0} {$i < 20} {incr i} {lappend units [write_unit]}
            set pid [follow_start $folder --segment-bytes 2000 {*}[compress_words]]
            wait_for_condition 400 50 {
                [regexp -all {continues at offset} [read_bytes $folder.log]] == $round + 1
            } else {fail [read_bytes $folder.log]}
        }
        wait_follow_has $folder
        follow_end $pid
        assert_match {*: intact} [cli_ok --restore $folder --verify]
        foreach time_ms $times {
            set json [cli_ok --restore $folder --to-time [expr {$time_ms / 1000}].[format %03d [expr {$time_ms % 1000}]] \
                --json $folder/out]
            regexp {"time_ms": (\d+)} $json -> restored_ms
            assert {$restored_ms <= $time_ms && $restored_ms > $time_ms - 60000}
            assert_state_of $folder/out $restored_ms $units
            file delete -force $folder/out
        }
        cli_ok --restore $folder $folder/out
        assert_equal [r debug digest] [restored_digest $folder/out]
    }

    test {backup: an offset within a transaction restores what precedes it} {
        set folder [backup_folder offsets]
        set pid [follow_start $folder]
        wait_follow_says $folder {*full copy of *}
        set before [info_field master_repl_offset]
        set number [r get unit:a]
        write_unit
        set after [info_field master_repl_offset]
        wait_follow_has $folder
        follow_end $pid
        for {set offset $before} {$offset <= $after} {incr offset [expr {($after - $before) / 3}]} {
            cli_ok --restore $folder --to-offset $offset $folder/out
            lassign [with_restored $folder/out {$c mget unit:a unit:b unit:c}] a b c
            assert_equal [list $a $a] [list $b $c]
            assert_equal [expr {$offset < $after ? $number : $number + 1}] $a
            file delete -force $folder/out
        }
        assert_match {4 {*does not have offset*}} [cli --restore $folder --to-offset 999999999 $folder/out]
        assert_match {4 {*begins later*}} [cli --restore $folder --to-time {2001-01-01 00:00:00} $folder/out]
    }

    test {backup: a reader of a backup counts as no replica} {
        set folder [backup_folder uncounted]
        r config set min-replicas-to-write 1 min-replicas-max-lag 10
        set pid [follow_start $folder]
        wait_follow_says $folder {*full copy of *}
        assert_error {NOREPLICAS*} {r set k v}
        r config set min-replicas-to-write 0
        assert_equal 0 [info_field connected_slaves]
        assert_equal {} [lindex [r role] 2]
        r set k v
        assert_equal 0 [r wait 1 100]
        assert_error {*requires connected replicas*} {r failover}
        wait_for_condition 200 50 {[string match *name=valkey-backup:lag=* [r client list]]}
        wait_follow_has $folder
        follow_end $pid
        assert_equal 0 [follow_says $folder {*counts the backup as a replica*}]
    }

    test {backup: --metrics tells the lag} {
        set folder [backup_folder metrics]
        set pid [follow_start $folder --metrics $folder.prom]
        wait_for_condition 200 50 {
            [file exists $folder.prom] && [regexp {valkey_backup_up{shard=""} 1} [read_bytes $folder.prom]] &&
            [regexp {valkey_backup_last_time_seconds{shard=""} [1-9]} [read_bytes $folder.prom]]
        } else {fail "no metrics"}
        follow_end $pid
        assert_match {*valkey_backup_up{shard=""} 0*} [read_bytes $folder.prom]
    }

    test {backup: --full-every begins a new chain while the stream goes on, --keep removes the old one} {
        set folder [backup_folder chains]
        set pid [follow_start $folder --full-every 1s --keep 1s --segment-bytes 1]
        set units {}
        wait_for_condition 4000 5 {[lappend units [write_unit]] ne {} &&
            [llength $units] % 20 == 0 && [follow_says $folder {*removed the full copy*removed the full copy*}]} else {
            fail [read_bytes $folder.log]
        }
        wait_follow_has $folder
        follow_end $pid
        assert_match {*: intact} [cli_ok --restore $folder --verify]
        # Also at the times of the full copies: writes between the copy and the question for the time belong to them.
        set times [expr {[listed $folder to_ms] - 1000}]
        foreach {- from} [regexp -all -inline {"from_ms": (\d+)} [cli_ok --restore $folder --list --json]] {lappend times $from}
        foreach time_ms $times {
            set text [expr {$time_ms / 1000}].[format %03d [expr {$time_ms % 1000}]]
            regexp {"time_ms": (\d+)} [cli_ok --restore $folder --to-time $text --json $folder/out] -> time_ms
            assert_state_of $folder/out $time_ms $units
            file delete -force $folder/out
        }
    }

    test {backup: --keep without --follow removes older full copies}  {
        set folder [backup_folder kept]
        cli_ok --backup $folder --keep 1h
        cli_ok --backup $folder --keep 1h
        assert_equal 2 [llength [glob $folder/full-*]]
        cli_ok --backup $folder --keep 0
        assert_equal 1 [llength [glob $folder/full-*]]
    }

    test {backup: the copy of a tool that was killed is not used, and removed by the next one} {
        set folder [backup_folder cut]
        set pid [follow_start $folder]
        wait_for_condition 200 50 {[llength [glob -nocomplain $folder/*/full.json]] == 1}
        set full [file dirname [the_file $folder full.json]]
        follow_end $pid KILL
        # As if it had been killed a moment earlier.
        file rename $full/full.json $full/full.json.tmp
        assert_match "4 *[file tail $full]: an incomplete full copy*no complete full copy*" [cli --restore $folder --list]
        assert_match "4 *no complete full copy*" [cli --restore $folder $folder/out]
        assert_match "*removed an incomplete full copy: [file tail $full]*" [cli_ok --backup $folder]
        assert_equal 0 [file exists $full]
        cli_ok --restore $folder $folder/out
    }

    test {backup: two of them do not write into one folder} {
        set folder [backup_folder locked]
        set pid [follow_start $folder]
        wait_follow_says $folder {*full copy of *}
        assert_match {3 {*another valkey-cli --backup writes into *}} [cli --backup $folder]
        follow_end $pid
        cli_ok --backup $folder
    }

    test {backup: a full disk is told, and the stream continues when there is space} {
        set folder [backup_folder space]
        set tool [file join [file dirname $::binary] valkey-cli]
        set pid [exec sh -c "ulimit -S -f 200; exec $tool -h 127.0.0.1 -p [srv port] --backup $folder --follow" \
            >>$folder.log 2>@1 &]
        note_pids $pid
        wait_follow_says $folder {*full copy of *}
        for {set i 0} {$i < 10} {incr i} {r set large:$i [string repeat x 50000]}
        wait_follow_says $folder {*cannot write a segment: File too large; tries again*}
        exec prlimit --pid $pid --fsize=unlimited:
        wait_follow_has $folder
        follow_end $pid
        cli_ok --restore $folder $folder/out
        assert_equal [r debug digest] [restored_digest $folder/out]
    }
}

start_server [list tags {cli tools repl tls:skip needs:local} overrides [list port [free_port] repl-diskless-sync-delay 0 \
    enable-debug-command yes]] {
    test {backup: after a restart of the server it continues, or makes a new full copy} {
        set folder [backup_folder restart]
        set pid [follow_start $folder]
        wait_follow_says $folder {*full copy of *}
        r set before restart
        wait_follow_has $folder
        restart_with_file
        wait_follow_says $folder {*full copy of *full copy of *}
        r set after restart
        wait_follow_has $folder
        follow_end $pid
        cli_ok --restore $folder $folder/out
        assert_equal [r debug digest] [restored_digest $folder/out]
    }
}

start_server $options {
    test {backup: expiry times in each mode} {
        set folder [backup_folder ttl]
        set pid [follow_start $folder]
        wait_follow_says $folder {*full copy of *}
        r set long x ex 100000
        r set none x
        r set gone x px 1500
        wait_follow_has $folder
        follow_end $pid
        set at [listed $folder to_offset]
        set ends [r pexpiretime long]
        wait_for_condition 100 50 {[r exists gone] == 0}
        foreach mode {keep shift drop} {
            cli_ok --restore $folder --ttl $mode --to-offset $at $folder/$mode
            set times [with_restored $folder/$mode {list [$c pttl gone] [$c pexpiretime long] [$c pttl none]}]
            lassign $times gone long none
            switch $mode {
                keep {assert_equal [list -2 $ends] [list $gone $long]}
                shift {
                    # It may have expired again before the server was asked.
                    if {$gone != -2} {assert_range $gone 0 1500}
                    assert {$long > $ends}
                }
                drop {assert_equal {-1 -1} [list $gone $long]}
            }
            assert_equal -1 $none
        }
    }

    start_server $options {
        test {backup: --into an empty server, and --keys into one with data} {
            set folder [backup_folder into]
            set target [srv -1 host]:[srv -1 port]
            r select 0
            for {set i 0} {$i < 700} {incr i} {r set shop:$i value$i}
            r select 2
            r set other 1
            r select 0
            r function load replace {#!lua name=lib
                redis.register_function('f', function() return 1 end)}
            cli_ok --backup $folder
            r -1 flushall
            assert_match {*701 keys brought into *} [cli_ok --restore $folder --into $target]
            assert_equal [r debug digest] [r -1 debug digest]
            assert_equal lib [lindex [r -1 function list] 0 1]
            assert_match {3 {*is not empty*}} [cli --restore $folder --into $target]
            r -1 del shop:1 shop:11
            r -1 set shop:12 changed
            assert_match {*2 keys brought into *, 109 existed*} [cli_ok --restore $folder --into $target --keys shop:1*]
            assert_equal {value1 value11 changed} [r -1 mget shop:1 shop:11 shop:12]
            assert_match {*11 keys brought into *} [cli_ok --restore $folder --into $target --keys shop:12* --replace]
            assert_equal value12 [r -1 get shop:12]
            cli_ok --restore $folder --into $target --keys shop:3 --prefix old:
            assert_equal value3 [r -1 get old:shop:3]
        }

        test {backup: every type is in the full copy, the stream, what is restored, and single keys} {
            # Path hashes, and TTLs of members, were once not asked for.
            set target [srv -1 host]:[srv -1 port]
            foreach in {copy stream} {
                set folder [backup_folder types_$in]
                r flushall
                r -1 flushall
                if {$in eq "copy"} {fill_all_types}
                set pid [follow_start $folder]
                wait_follow_says $folder "*full copy of *"
                if {$in eq "stream"} {fill_all_types}
                wait_follow_has $folder
                follow_end $pid
                set digest [r debug digest]
                cli_ok --restore $folder $folder/out
                assert_equal $digest [restored_digest $folder/out]
                cli_ok --restore $folder --into $target
                assert_equal $digest [r -1 debug digest]
                r -1 del path paths timed_set
                assert_match {*2 keys brought into *} [cli_ok --restore $folder --into $target --keys path*]
                assert_match {*1 keys brought into *} [cli_ok --restore $folder --into $target --keys timed_set]
                assert_equal $digest [r -1 debug digest]
            }
            r flushall
        }
    }
}

start_server $options {
    start_server $options {
        test {backup: a replica is copied by preference, and a failover is followed} {
            set folder [backup_folder failover]
            r -1 replicaof [srv host] [srv port]
            wait_for_condition 200 50 {[string match *master_link_status:up* [r -1 info replication]]}
            # The stream is in this database when the copy is made, and says so no more.
            r select 3
            r set in:3 1
            wait_for_condition 100 50 {[string match *db3:keys=1* [r -1 info keyspace]]}
            # The tool is told of the primary, and finds the replica.
            set pid [follow_start $folder]
            wait_follow_says $folder "*full copy of *:[srv -1 port] at *"
            r set k 1
            r -1 select 3
            wait_for_condition 100 50 {[r -1 get k] eq 1}
            kill_server
            r -1 replicaof no one
            r -1 set k 2
            regexp {master_repl_offset:(\d+)} [r -1 info replication] -> offset
            wait_for_condition 400 50 {[listed $folder to_offset] >= $offset} else {fail [read_bytes $folder.log]}
            follow_end $pid
            cli_ok --restore $folder $folder/out
            assert_equal {OK {2 1} {}} [with_restored $folder/out {list [$c select 3] [$c mget k in:3] [$c info keyspace0]}]
            continue_server
        }
    }
}
