# SPDX-License-Identifier: BSD-3-Clause
#
# Snapshots: SAVE, BGSAVE, save points, loading at start, errors of disk and file.

source $::tests_dir/support/all_types.tcl

start_server {tags {rdb}} {
    test {SAVE and a restart keep every type, every database and every TTL} {
        fill_all_types
        r set volatile v px 100000000
        r select 9
        r set other 1
        r select 0
        set digest [r debug digest]
        assert_equal OK [r save]
        restart_server
        assert_equal $digest [r debug digest]
        assert_match "*Done loading RDB, keys loaded: [expr {[r dbsize] + 1}], keys expired: 0*" [server_log]
    }

    test {temporary files of saves, rewrites and downloads of a killed process are removed at the start} {
        stop_server
        # The highest number of a process is 4194304; process 1 exists.
        foreach name {temp-4194303.rdb temp-4194303.2.rdb temp-1700000000.4194303.rdb temp-rewriteaof-4194303.aof
            temp-rewriteaof-bg-4194303.aof temp-1.rdb temp-1700000000.1.rdb temp-x.rdb temp-4194303.rdb.old} {
            write_bytes [srv dir]/$name x
        }
        continue_server
        set left [lsort [lmap path [glob -nocomplain [srv dir]/temp-*] {file tail $path}]]
        assert_equal {temp-1.rdb temp-1700000000.1.rdb temp-4194303.rdb.old temp-x.rdb} $left
        assert_match "*Removing the temporary file temp-4194303.rdb of a process that has ended*" [server_log]
        foreach name $left {file delete [srv dir]/$name}
    }

    test {BGSAVE saves the dataset as of its start} {
        r flushall
        r set a 1
        r config set rdb-key-save-delay 200000
        r set b 1
        assert_equal "Background saving started" [r bgsave]
        assert_error "ERR Background save already in progress" {r bgsave}
        assert_error "ERR Background save already in progress" {r save}
        r set c 1
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert_equal 1 [info_field rdb_changes_since_last_save]
        r config set rdb-key-save-delay 0
        restart_server
        assert_equal {a b} [lsort [r keys *]]
    }

    test {BGSAVE CANCEL ends a running save or cancels a scheduled one} {
        r config set rdb-key-save-delay 1000000
        assert_error "ERR Background saving is currently not in progress or scheduled" {r bgsave cancel}
        r bgsave
        assert_equal "Background saving cancelled" [r bgsave cancel]
        info_is rdb_bgsave_in_progress 0
        assert_equal ok [info_field rdb_last_bgsave_status]
        set saves [info_field rdb_saves]
        r multi
        r bgsave
        assert_equal {{Background saving scheduled}} [r exec]
        r config set rdb-key-save-delay 0
        info_is rdb_saves [expr {$saves + 1}] ;# the scheduled one begins later
        info_is rdb_bgsave_in_progress 0
        foreach words {{x} {schedule x} {cancel x}} {assert_error "ERR syntax error" {r bgsave {*}$words}}
        assert_equal {} [glob -nocomplain [srv dir]/temp-*.rdb]
    }

    test {a child that saves ends with a killed server, and replaces no newer file} {
        r flushall
        r config set rdb-key-save-delay 1000000
        foreach i {1 2 3 4 5 6 7 8 9} {r set key$i old}
        r bgsave
        regexp {.*Background saving started by pid (\d+)} [server_log] -> child
        set server [srv pid]
        send_signal KILL $server
        assert {[wait_process_end $server 5000]}
        assert {[wait_process_end $child 5000]}
        catch {stop_server} ;# it ended badly, as was ordered
        continue_server
        r set new 1
        assert_equal OK [r save]
        restart_server
        assert_equal 1 [r get new]
        r flushall
    }

    test {expired keys are not loaded} {
        r flushall
        r set gone v px 1
        r set kept v
        r debug set-active-expire 0
        r save
        restart_server
        assert_equal kept [r keys *]
    }

    test {DEBUG RELOAD with each option} {
        r flushall
        r set a 1
        assert_equal OK [r debug reload]
        r set a 2
        r set b 2
        assert_equal OK [r debug reload nosave]
        assert_equal {1 {}} [r mget a b]
        r set a 2
        r set b 2
        assert_equal OK [r debug reload nosave noflush merge]
        assert_equal {1 2} [r mget a b]
        assert_error "ERR DEBUG RELOAD only supports *" {r debug reload x}
    }
}

start_server {tags {rdb} overrides {save "1 1" enable-protected-configs yes}} {
    test {the dataset is saved by a save point and at shutdown} {
        r set a 1
        set saves [info_field rdb_saves]
        wait_for_condition 300 50 {[info_field rdb_changes_since_last_save] == 0} else {fail "no save point fired"}
        assert_match "*1 changes in 1 seconds. Saving...*Background saving started by pid *" [server_log]
        r config set save "10000 1"
        r set b 1
        restart_server
        assert_equal {a b} [lsort [r keys *]]
        assert_match "*Saving the final RDB snapshot before exiting.*DB saved on disk*" [server_log]
    }

    test {a failed save refuses writes until one succeeds} {
        r config set save "10000 1"
        file mkdir [srv dir]/dump.rdb.dir/x
        r config set dbfilename dump.rdb.dir
        foreach {name request} [list writer {set x 0} script [list eval "#!lua\nreturn 1" 0] reader {get missing}] {
            set $name [connect]
            [set $name] multi
            [set $name] {*}$request
        }
        assert_error "ERR *dump.rdb.dir*" {r save}
        assert_equal "Background saving started" [r bgsave]
        info_is rdb_last_bgsave_status err
        assert_error "MISCONF Valkey is configured to save RDB snapshots, *" {r set x 1}
        assert_error "MISCONF *" {r ping}
        # What was queued before the failure is refused by EXEC, unless it only reads.
        assert_error "EXECABORT Transaction discarded because of: MISCONF *" {$writer exec}
        assert_error "EXECABORT Transaction discarded because of: MISCONF *" {$script exec}
        assert_equal {{}} [$reader exec]
        r multi
        assert_error "MISCONF *" {r eval "#!lua\nreturn 1" 0}
        r discard
        assert_equal 1 [r get a]
        r config set stop-writes-on-bgsave-error no
        assert_equal OK [r set x 1]
        r config set stop-writes-on-bgsave-error yes
        r config set dbfilename dump.rdb
        assert_equal OK [r save]
        assert_equal {OK PONG} [list [r set x 2] [r ping]]
        assert_equal {} [glob -nocomplain [srv dir]/temp-*.rdb]
    }

    test {SHUTDOWN is refused when the dataset cannot be saved, and SAVE and NOSAVE decide} {
        r config set dbfilename dump.rdb.dir
        assert_error "ERR Errors trying to SHUTDOWN. Check logs." {r shutdown}
        assert_equal PONG [r ping]
        r config set dbfilename dump.rdb
        r set lost 1
        catch {r shutdown nosave}
        stop_server
        continue_server
        assert_equal 0 [r exists lost]
    }
}

start_server {tags {rdb} overrides {save "10000 1"}} {
    test {FLUSHALL kills a running save, and saves the empty dataset} {
        r debug populate 100
        r save
        r config set rdb-key-save-delay 1000000
        r bgsave
        r flushall
        assert_equal {0 ok 0} [list [info_field rdb_bgsave_in_progress] [info_field rdb_last_bgsave_status] \
            [info_field rdb_changes_since_last_save]]
        assert_match "*Killing running RDB child: *DB saved on disk*" [server_log]
        r config set rdb-key-save-delay 0
        assert_equal OK [r debug reload nosave]
        assert_equal 0 [r dbsize]
    }

    test {DEBUG RELOAD NOSAVE of a file with another version keeps the dataset} {
        r set key value
        set file [open [srv dir]/dump.rdb r+b]
        puts -nonewline $file VALKEY987
        close $file
        assert_error "ERR Error trying to load the RDB dump, check server logs." {r debug reload nosave}
        assert_equal value [r get key]
    }
}

start_server {tags {rdb} overrides {loading-process-events-interval-bytes 1024}} {
    test {clients are served while the dataset is loaded, DEBUG changes nothing} {
        r config set rdbcompression no
        r debug populate 2000 key 1100 ;# clients are served after every key
        r save
        set digest [r debug digest]
        set loader [connect]
        set other [connect]
        r config set key-load-delay 10000
        set loads [regexp -all {Loading RDB} [server_log]]
        $loader -send debug reload nosave
        wait_for_condition 300 50 {[regexp -all {Loading RDB} [server_log]] > $loads} else {fail "the server does not load"}
        assert_equal 1 [info_field loading $other]
        assert_error "LOADING Valkey is loading the dataset in memory" {$other get key:1}
        assert_error "LOADING *" {$other ping}
        foreach command {{populate 3000} {populate 1 other} {reload nosave} loadaof} {
            assert_error "LOADING Valkey is loading the dataset in memory" {$other debug {*}$command}
        }
        assert {[info_field loading_total_bytes $other] > [info_field loading_loaded_bytes $other]}
        assert_equal OK [$other config set key-load-delay 0]
        assert_equal OK [$loader -read]
        assert_equal {PONG 0} [list [$other ping] [info_field loading $other]]
        assert_equal $digest [r debug digest]
    }
}

start_server {tags {rdb}} {
    test {the server refuses to start with a damaged file and logs the reason} {
        r set key value
        r save
        stop_server
        set path [srv dir]/dump.rdb
        set file [open $path r+b]
        set bytes [read $file]
        close $file
        foreach {at change words} {
            0 X "Wrong signature trying to load DB from file: XALKEY080"
            8 9 "Can't handle RDB format version 89 ('rdb-version-check relaxed' allows to try it)"
            end-10 \xfe "*Internal error in RDB reading offset *"
            end-3 \x00 "*RDB CRC error*"
        } {
            set bad [string replace $bytes $at $at $change]
            set file [open $path wb]
            puts -nonewline $file $bad
            close $file
            catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
            assert_match "*$words*" "$said[file_text [srv stdout]]"
            assert_match "*Fatal error loading the DB, check server logs. Exiting.*" "$said[file_text [srv stdout]]"
        }
        # A value: its key, type and the place.
        set at [string first "key\x05value" $bytes]
        write_bytes $path [string replace $bytes [expr {$at + 3}] [expr {$at + 3}] \xc3]
        catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
        foreach words {
            "--- RDB ERROR DETECTED ---" "\\[offset [0-9]*\\] *" "\\[additional info\\] While doing: read-object-value"
            "\\[additional info\\] Reading key 'key'" "\\[additional info\\] Reading type 0 (string)" "\\[info\\] 1 keys read"
            "Terminating server after rdb file reading failure."
        } {assert_match "*# $words*" $said}
        # With rdb-version-check relaxed, tests and tools look for this line before the last one.
        write_bytes $path [regsub {\x00\x03key\x05value} [string replace $bytes 0 8 VALKEY987] "\x96\x03key\x05value"]
        catch {exec timeout 20 $::binary [srv config] --rdb-version-check relaxed </dev/null 2>@1} said
        set lines [split [string trim $said] "\n"]
        assert_match "*Unknown type or opcode when loading DB. Unrecoverable error, aborting now.*Fatal error loading the DB, check server logs. Exiting.*" \
            [join [lrange [lsearch -all -inline $lines "* # *"] end-1 end]]
        write_bytes $path [regsub {\x00\x03key\x05value} [string replace $bytes 0 8 REDIS0075] "\x96\x03key\x05value"]
        catch {exec timeout 20 $::binary [srv config] --rdb-version-check relaxed </dev/null 2>@1} said
        assert_match "*# *Can't handle foreign type or opcode 150 in RDB with version 75*" $said
        assert {![string match "*Terminating server*" $said]} $said
        set file [open $path wb]
        puts -nonewline $file $bytes
        close $file
        continue_server
        assert_equal value [r get key]
    }
}
