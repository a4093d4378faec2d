# SPDX-License-Identifier: BSD-3-Clause
#
# The append only file: files and manifest, rewrites, loading, what is refused, WAITAOF.

source $::tests_dir/support/all_types.tcl

proc aof_dir {} {return [srv dir]/appendonlydir}
proc aof_names {} {lsort [lmap path [glob -nocomplain [aof_dir]/*] {file tail $path}]}
proc manifest {} {file_text [aof_dir]/appendonly.aof.manifest}

# The file that changes are appended to.
proc incr_path {} {
    regexp {.*file (\S+) seq \d+ type i} [manifest] - name
    return [aof_dir]/$name
}

proc records {args} {
    set bytes ""
    foreach words $args {
        append bytes "*[llength $words]\r\n"
        foreach word $words {append bytes "\$[string length $word]\r\n$word\r\n"}
    }
    return $bytes
}

proc rewrite_aof {} {
    r bgrewriteaof
    info_is aof_rewrite_in_progress 0
    info_is aof_rewrite_scheduled 0
    assert_equal ok [info_field aof_last_bgrewrite_status]
}

# Starts the stopped server and returns its output; fails if it does not exit by itself with code 1.
proc refused_start {} {
    set before [string length [server_log]]
    set code [catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said options]
    set status [lindex [dict get $options -errorcode] 2]
    assert_equal 1 $status $said
    return "$said[string range [server_log] $before end]"
}

# A stopped server with these contents: pairs of name and bytes.
proc set_files {files} {
    file delete -force [aof_dir]
    file mkdir [aof_dir]
    foreach {name bytes} $files {write_bytes [aof_dir]/$name $bytes}
}

start_server {tags {aof} overrides {appendonly yes}} {
    test {the first start creates base, incremental file and manifest} {
        assert_equal {appendonly.aof.1.base.rdb appendonly.aof.1.incr.aof appendonly.aof.manifest} [aof_names]
        assert_equal "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n" \
            [manifest]
        assert_equal {1 0 0} [list [info_field aof_enabled] [info_field aof_current_size] [info_field aof_base_size]]
    }

    test {every type, database and TTL survives a restart, with either kind of base} {
        fill_all_types
        r set volatile v px 100000000
        r select 9
        r set other 1
        r select 0
        set digest [r debug digest]
        restart_server
        assert_equal $digest [r debug digest]
        foreach preamble {yes no} {
            r config set aof-use-rdb-preamble $preamble
            r bgrewriteaof
            info_is aof_rewrite_in_progress 0
            assert_equal ok [info_field aof_last_bgrewrite_status]
            assert_match *.base.[string map {yes rdb no aof} $preamble]* [manifest]
            restart_server
            assert_equal $digest [r debug digest]
            assert_equal OK [r debug loadaof]
            assert_equal $digest [r debug digest]
        }
        r config set aof-use-rdb-preamble yes
    }

    test {a command with more than 1,048,576 arguments is loaded from the file} {
        set elements 1048600
        set client [raw_connect]
        raw_send $client "*[expr {$elements + 2}]\r\n\$5\r\nRPUSH\r\n\$4\r\nmany\r\n[string repeat "\$1\r\nx\r\n" $elements]"
        assert_equal ":$elements" [raw_line $client]
        restart_server
        assert_equal $elements [r llen many]
        r del many
    }

    test {records are the requests as sent, in the order of execution} {
        r flushall
        rewrite_aof
        r set a 1
        r multi
        r set b 2
        r incr b
        r exec
        r select 3
        r set c 3 ex 1000
        set expected [records {SELECT 0} {set a 1} MULTI {set b 2} {incr b} EXEC {SELECT 3}]
        set bytes [read_bytes [incr_path]]
        assert_equal $expected [string range $bytes 0 [string length $expected]-1]
        assert_match "*set\r\n*c\r\n*3\r\n*PXAT\r\n*" $bytes
        r select 0
    }

    test {BGREWRITEAOF replaces the files, and what it replaced is removed} {
        rewrite_aof
        # Replaced files are removed in the background.
        wait_for_condition 300 10 {[llength [aof_names]] == 3} else {fail "files remain: [aof_names]"}
        set names [aof_names]
        assert_equal 1 [regexp {base.rdb seq (\d+) type b\nfile appendonly.aof.(\d+).incr.aof} [manifest] - base incr]
        assert_equal [list appendonly.aof.$base.base.rdb appendonly.aof.$incr.incr.aof appendonly.aof.manifest] $names
        assert_equal [info_field aof_base_size] [info_field aof_current_size]
        r config set rdb-key-save-delay 1000000
        assert_equal "Background append only file rewriting started" [r bgrewriteaof]
        assert_error "ERR Background append only file rewriting already in progress" {r bgrewriteaof}
        assert_error "ERR Another child process is active (AOF?)*" {r bgsave}
        r config set rdb-key-save-delay 0
        info_is aof_rewrite_in_progress 0
        r multi
        r bgrewriteaof
        assert_equal {{Background append only file rewriting scheduled}} [r exec]
        info_is aof_rewrite_scheduled 0
        info_is aof_rewrite_in_progress 0
    }

    test {changes during a rewrite are kept, whether it succeeds or not} {
        r flushall
        r debug populate 200
        r config set rdb-key-save-delay 20000
        foreach ends {well killed} {
            r bgrewriteaof
            r set during-$ends 1
            if {$ends eq "killed"} {
                exec kill -9 [exec pgrep -P [srv pid]]
                info_is aof_last_bgrewrite_status err
            } else {
                r config set rdb-key-save-delay 0
                info_is aof_rewrite_in_progress 0
                r config set rdb-key-save-delay 20000
            }
            r set after-$ends 1
        }
        r config set rdb-key-save-delay 0
        set digest [r debug digest]
        assert_equal 2 [regexp -all {type i} [manifest]]
        restart_server
        assert_equal $digest [r debug digest]
        rewrite_aof
        assert_equal 1 [regexp -all {type i} [manifest]]
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
    }

    test {appendonly is switched off and on at run time} {
        r flushall
        r set a 1
        assert_equal OK [r config set appendonly no]
        assert_equal 0 [info_field aof_enabled]
        r set b 2
        assert_equal OK [r config set appendonly yes]
        r set c 3
        info_is aof_rewrite_in_progress 0
        info_is aof_rewrite_scheduled 0
        r set d 4
        assert_equal 1 [regexp -all {type i} [manifest]]
        assert_equal {} [glob -nocomplain [aof_dir]/temp-*]
        restart_server
        assert_equal {1 2 3 4} [r mget a b c d]
    }

    test {a rewrite that was postponed by BGSAVE starts when that has ended} {
        r config set rdb-key-save-delay 10000000
        r config set appendonly no
        r bgsave
        assert_equal OK [r config set appendonly yes]
        assert_equal 1 [info_field aof_rewrite_scheduled]
        r set postponed 1
        r config set rdb-key-save-delay 0
        r bgsave cancel
        assert_equal {1 0} [r waitaof 1 0 10000]
        assert_equal {0 0} [list [info_field aof_rewrite_scheduled] [info_field aof_rewrite_in_progress]]
        restart_server
        assert_equal 1 [r get postponed]
    }

    test {the file is rewritten when it has grown by auto-aof-rewrite-percentage} {
        r flushall
        rewrite_aof
        set rewrites [info_field aof_rewrites]
        r config set auto-aof-rewrite-min-size 10kb
        for {set i 0} {$i < 200} {incr i} {r set k [string repeat $i 50]}
        wait_for_condition 300 50 {[info_field aof_rewrites] > $rewrites} else {fail "no rewrite"}
        info_is aof_rewrite_in_progress 0
        assert_match "*Starting automatic rewriting of AOF on *% growth*" [server_log]
        r config set auto-aof-rewrite-min-size 64mb
    }

    test {libraries of functions are in the file, and reloaded without errors} {
        needs_command function
        r flushall
        r function load "#!lua name=lib\nserver.register_function('f', function() return 7 end)"
        assert_equal OK [r debug loadaof]
        foreach preamble {no yes} {
            r config set aof-use-rdb-preamble $preamble
            rewrite_aof
            assert_equal OK [r debug loadaof]
            restart_server
            assert_equal 7 [r fcall f 0]
        }
        assert {![string match *CRITICAL* [server_log]]}
        r function flush
    }

    test {aof-timestamp-enabled writes annotations, which are skipped on load} {
        r config set aof-timestamp-enabled yes
        r config set aof-use-rdb-preamble no
        rewrite_aof
        r set k v
        regexp {file (\S+) seq \d+ type b} [manifest] - base
        foreach path [list [aof_dir]/$base [incr_path]] {assert_match "#TS:1*\r\n\**" [read_bytes $path]}
        r config set aof-timestamp-enabled no
        restart_server
        assert_equal v [r get k]
        r config set aof-use-rdb-preamble yes
    }

    test {keys whose time is past come back on load until their deletion is loaded} {
        r flushall
        r debug set-active-expire 0
        r set gone v px 1
        r set counter 1
        r rename counter other
        wait_for_condition 100 10 {[r exists gone] == 0} else {fail "gone does not expire"}
        rewrite_aof
        restart_server
        assert_equal other [r keys *]
        info_is aof_last_write_status ok
    }
}

start_server {tags {aof} overrides {appendonly yes appendfsync always}} {
    test {WAITAOF: arguments, replies, and what ends it} {
        assert_error "ERR value is out of range, value must between 0 and 1" {r waitaof 2 0 0}
        assert_error "ERR value is out of range, must be positive" {r waitaof 1 -1 0}
        assert_error "ERR value is not an integer or out of range" {r waitaof x 0 0}
        assert_error "ERR timeout is not an integer or out of range" {r waitaof 1 0 x}
        assert_error "ERR timeout is negative" {r waitaof 1 0 -1}
        r set a 1
        assert_equal {1 0} [r waitaof 1 0 0]
        assert_equal {1 0} [r waitaof 0 0 0]
        assert_equal {1 0} [r waitaof 0 1 10]
        r config set appendfsync everysec
        r set a 2
        assert_equal {1 0} [r waitaof 1 0 0]
        r multi
        r set a 3
        r waitaof 1 0 0
        assert_equal OK [lindex [r exec] 0]
        r config set appendfsync no
        r set a 4
        assert_equal {0 0} [r waitaof 1 0 100]
        set waiter [connect]
        $waiter set a 5
        $waiter -send waitaof 1 0 0
        wait_for_condition 100 20 {[info_field blocked_clients] == 1} else {fail "WAITAOF does not wait"}
        r config set appendonly no
        assert_error "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled." {$waiter -read}
        assert_error "ERR WAITAOF cannot be used *" {r waitaof 1 0 0}
        assert_equal {0 0} [r waitaof 0 0 0]
    }
}

start_server {tags {aof} overrides {appendonly yes}} {
    test {a truncated end and an open transaction are cut off, and later changes are kept} {
        stop_server
        set whole [records {SELECT 0} {SET a 1} {SET b 2}]
        set list "file appendonly.aof.1.incr.aof seq 1 type i\n"
        foreach {tail words} [list \
            [string range [records {SET c 3}] 0 20] "*Truncating the AOF appendonly.aof.1.incr.aof at offset 77*" \
            [records MULTI {SET c 3}] "*Revert incomplete MULTI/EXEC transaction in AOF file *at offset 77*" \
            [string range [records MULTI {SET c 3} EXEC] 0 end-3] "*Revert incomplete *at offset 77*" \
            [string repeat \0 5000] "*at offset 77*"] {
            set_files [list appendonly.aof.manifest $list appendonly.aof.1.incr.aof $whole$tail]
            set from [string length [server_log]]
            continue_server
            assert_match $words [string range [server_log] $from end]
            assert_match "*short read while loading the AOF file*loaded anyway because aof-load-truncated is enabled*" \
                [string range [server_log] $from end]
            assert_equal 77 [file size [aof_dir]/appendonly.aof.1.incr.aof]
            assert_equal {1 2 {}} [r mget a b c]
            r set d 4
            restart_server
            assert_equal {1 2 {} 4} [r mget a b c d]
            stop_server
        }
        continue_server
    }

    test {what cannot be loaded is refused with exit code 1, and no file is changed} {
        stop_server
        set good [records {SELECT 0} {SET a 1}]
        set one "file appendonly.aof.1.incr.aof seq 1 type i\n"
        set two "${one}file appendonly.aof.2.incr.aof seq 2 type i\n"
        set m appendonly.aof.manifest
        set fatal "*FATAL AOF MANIFEST FILE ERROR*"
        foreach {files words} [list \
            [list $m $one appendonly.aof.1.incr.aof "${good}x"] "*Bad file format reading the append only file appendonly.aof.1.incr.aof: make a backup*" \
            [list $m $one appendonly.aof.1.incr.aof "$good[records {FOO x}]"] "*Error reading the append only file appendonly.aof.1.incr.aof, error: unknown command 'FOO', with args beginning with: 'x'*" \
            [list $m $one appendonly.aof.1.incr.aof "$good[records {CONFIG NOPE}]"] "*error: unknown subcommand 'NOPE'. Try CONFIG HELP.*" \
            [list $m $one appendonly.aof.1.incr.aof "$good[records GET]"] "*error: wrong number of arguments for 'get' command*" \
            [list $m $two appendonly.aof.1.incr.aof "${good}*1" appendonly.aof.2.incr.aof $good] "*the truncated file is not the last file*" \
            [list $m $two appendonly.aof.1.incr.aof $good] "*Unable to obtain the AOF file appendonly.aof.2.incr.aof length. stat: No such file or directory*" \
            [list $m "file b seq 1 type b\n$one" b VALKEY080garbage appendonly.aof.1.incr.aof $good] "*Error reading the RDB preamble of the AOF file b, AOF loading aborted*" \
            [list $m ""] "${fatal}Found an empty AOF manifest*" \
            [list $m "file x\n"] "${fatal}Reading the manifest file, at line 1*>>> 'file x'*Invalid AOF manifest file format*" \
            [list appendonly.aof.1.incr.aof $good] "*the AOF manifest appendonlydir/appendonly.aof.manifest is missing*" \
            [list appendonly.aof.7.base.rdb x] "*is missing*"] {
            set_files $files
            # Tools wait for the process to be initialised, also if its files are bad.
            assert_match "*Server initialized$words" [refused_start]
            foreach {name bytes} $files {assert_equal $bytes [read_bytes [aof_dir]/$name]}
        }
        write_bytes [srv dir]/more.conf "include [srv config]\naof-load-truncated no\n"
        set_files [list appendonly.aof.manifest $one appendonly.aof.1.incr.aof "${good}*1"]
        set from [string length [server_log]]
        catch {exec timeout 20 $::binary [srv dir]/more.conf </dev/null 2>@1} said
        assert_match "*Unexpected end of file reading the append only file appendonly.aof.1.incr.aof. You can: 1)*" \
            "$said[string range [server_log] $from end]"
        set_files {}
        continue_server
    }

    test {DEBUG LOADAOF reads the manifest again, and files are numbered on from there} {
        r set a 1
        rewrite_aof
        write_bytes [aof_dir]/appendonly.aof.77.incr.aof [records {SELECT 0} {SET from outside}]
        write_bytes [aof_dir]/appendonly.aof.manifest "[manifest]file appendonly.aof.77.incr.aof seq 77 type i\n"
        assert_equal OK [r debug loadaof]
        assert_equal {1 outside} [r mget a from]
        rewrite_aof
        assert_match "*file appendonly.aof.78.incr.aof seq 78 type i*" [manifest]
        restart_server
        assert_equal {1 outside} [r mget a from]
    }

    test {a command that fails on load is logged, and loading goes on} {
        stop_server
        set_files [list appendonly.aof.manifest "file a seq 1 type i\n" a \
            [records {SELECT 0} {SET s 1} {LPUSH s 1} MULTI {LPUSH s 2} {SET t 2} EXEC]]
        continue_server
        assert_match "*== CRITICAL == This server is sending an error to its AOF-loading-client: '-WRONGTYPE *' after processing the command 'LPUSH'*" [server_log]
        assert_equal {1 2} [r mget s t]
    }

    test {a start removes what killed rewrites have left and no manifest lists, and nothing else} {
        stop_server
        set good [records {SELECT 0} {SET a 1}]
        set kept {appendonly.aof.1.incr.aof mine.aof appendonly.aof.1.base.rdb.bak appendonly.aofs.1.incr.aof}
        set left {appendonly.aof.1.base.rdb appendonly.aof.2.base.aof appendonly.aof.9.incr.aof
            temp-appendonly.aof.incr temp-appendonly.aof.manifest}
        set files [list appendonly.aof.manifest "file appendonly.aof.3.base.rdb seq 3 type h\nfile appendonly.aof.1.incr.aof seq 1 type i\n"]
        foreach name [concat $kept $left appendonly.aof.3.base.rdb] {lappend files $name $good}
        set_files $files
        # The highest number of a process is 4194304.
        foreach name {temp-rewriteaof-9999999.aof temp-rewriteaof-bg-9999999.aof temp-sync-base-9999999.rdb
            temp-rewriteaof-1.aof temp-rewriteaof-x.aof} {write_bytes [srv dir]/$name x}
        continue_server
        assert_equal 1 [r get a]
        assert_equal [lsort [concat $kept appendonly.aof.manifest]] [aof_names]
        assert_equal "file appendonly.aof.1.incr.aof seq 1 type i\n" [manifest]
        assert_equal {temp-rewriteaof-1.aof temp-rewriteaof-x.aof} \
            [lsort [lmap path [glob -nocomplain [srv dir]/temp-*] {file tail $path}]]
        assert_match "*Removing the file appendonly.aof.9.incr.aof, which the AOF manifest does not list*" [server_log]
        stop_server
        set_files [list appendonly.aof.manifest "file appendonly.aof.1.incr.aof seq 1 type i\n" \
            appendonly.aof.1.incr.aof $good appendonly.aof.7.incr.aof $good]
        write_bytes [srv dir]/more.conf "include [srv config]\naof-disable-auto-gc yes\n"
        exec timeout 20 $::binary [srv dir]/more.conf --daemonize yes --pidfile [srv dir]/more.pid >/dev/null
        wait_for_condition 200 20 {![catch {set c [respConnect [srv host] [srv port] 2]}]}
        assert_equal 1 [file exists [aof_dir]/appendonly.aof.7.incr.aof]
        catch {$c shutdown nosave}
        wait_for_condition 200 20 {![file exists [srv dir]/more.pid]}
        set_files {}
        continue_server
    }

    test {CONFIG SET aof-disable-auto-gc no removes the history at once, from the manifest and the folder} {
        r config set aof-disable-auto-gc yes
        foreach round {1 2} {rewrite_aof}
        set manifest [aof_dir]/appendonly.aof.manifest
        assert_equal 4 [regexp -all {type h} [read_bytes $manifest]]
        set before [llength [glob [aof_dir]/*]]
        r config set aof-disable-auto-gc no
        assert_equal 0 [regexp -all {type h} [read_bytes $manifest]]
        assert_equal [expr {$before - 4}] [llength [glob [aof_dir]/*]]
    }

    test {the single file of an old version is migrated} {
        stop_server
        file delete -force [aof_dir]
        write_bytes [srv dir]/appendonly.aof [records {SELECT 0} {SET old 1}]
        continue_server
        assert_match "*Successfully migrated an old-style AOF file (appendonly.aof) into the AOF directory (appendonlydir).*" [server_log]
        assert_equal 1 [r get old]
        r set new 2
        restart_server
        assert_equal {1 2} [r mget old new]
        assert_equal 0 [file exists [srv dir]/appendonly.aof]
        rewrite_aof
        restart_server
        assert_equal {1 2} [r mget old new]
    }

    test {a default user without any rights does not stop the load} {
        r set kept 1
        stop_server
        write_bytes [srv dir]/limited.conf "include [srv config]\nuser default off -@all resetkeys resetpass\n"
        set from [string length [server_log]]
        catch {exec timeout 1 $::binary [srv dir]/limited.conf </dev/null 2>@1} said
        set said "$said[string range [server_log] $from end]"
        assert_match "*DB loaded from append only file*" $said
        assert {![string match *CRITICAL* $said]}
        continue_server
        assert_equal 1 [r get kept]
    }

    test {DEBUG AOF-FLUSH-SLEEP delays writes, and no reply overtakes one with appendfsync always} {
        r config set appendfsync always
        r debug aof-flush-sleep 200000
        set writer [connect]
        set before [file size [incr_path]]
        $writer -send set slow 1
        assert_equal OK [$writer -read]
        assert {[file size [incr_path]] > $before}
        r debug aof-flush-sleep 0
        r config set appendfsync everysec
        assert_error "ERR value is not an integer or out of range" {r debug aof-flush-sleep x}
    }

    test {clients are served while the append only file is loaded} {
        r flushall
        for {set i 0} {$i < 600} {incr i} {r set key:$i v}
        set digest [r debug digest]
        set loader [connect]
        set other [connect]
        r config set loading-process-events-interval-bytes 1024 key-load-delay 10000
        $loader -send debug loadaof
        wait_for_condition 300 50 {[info_field loading $other] == 1} else {fail "the server does not load"}
        assert_error "LOADING Valkey is loading the dataset in memory" {$other get key:1}
        assert_equal OK [$other config set key-load-delay 0]
        assert_equal OK [$loader -read]
        assert_equal $digest [r debug digest]
    }
}

start_server {tags {aof} overrides {appendonly no}} {
    test {DEBUG LOADAOF without an append only file is an error} {
        assert_error "ERR Error trying to load the AOF files, check server logs." {r debug loadaof}
    }

    test {with appendonly no nothing is created, and BGREWRITEAOF writes a base} {
        assert_equal {} [aof_names]
        r set a 1
        r bgrewriteaof
        info_is aof_rewrite_in_progress 0
        wait_for_condition 300 10 {[aof_names] eq {appendonly.aof.1.base.rdb appendonly.aof.manifest}} else {
            fail "files: [aof_names]"
        }
    }

    test {a start with appendonly yes beside a snapshot alone says that the snapshot is not loaded} {
        r save
        stop_server
        file delete -force [aof_dir]
        write_bytes [srv dir]/aof.conf "include [srv config]\nappendonly yes\n"
        set from [string length [server_log]]
        catch {exec timeout 1 $::binary [srv dir]/aof.conf </dev/null 2>@1} said
        assert_match "*There is no append only file yet: the server starts with an empty dataset*" \
            "$said[string range [server_log] $from end]"
        file delete -force [aof_dir]
        continue_server
        r bgrewriteaof
        info_is aof_rewrite_in_progress 0
    }

    test {files without a manifest are never replaced} {
        stop_server
        file delete [aof_dir]/appendonly.aof.manifest
        continue_server
        r config set appendonly yes
        info_is aof_rewrite_in_progress 0
        assert {{appendonly.aof.1.base.rdb} in [aof_names]}
        assert_match "file appendonly.aof.2.base.rdb seq 2 type b\n*" [manifest]
    }
}

# Kills the child process of the server.
proc kill_child {} {
    wait_for_condition 100 10 {![catch {exec pgrep -P [srv pid]} ::child]}
    exec kill -9 {*}$::child
}

start_server {tags {aof} overrides {appendonly no save {} snapshot-mode fork}} {
    for {set i 0} {$i < 50} {incr i} {r set key:$i value}

    test {there is no manifest before the first rewrite has succeeded} {
        r config set rdb-key-save-delay 100000
        r config set appendonly yes
        r set other value
        wait_for_condition 100 10 {[aof_names] eq "temp-appendonly.aof.incr"}
        assert_equal 1 [info_field aof_rewrite_in_progress]
        kill_child
        wait_for_condition 100 10 {[info_field aof_last_bgrewrite_status] eq "err"}
        assert_equal {} [glob -nocomplain [aof_dir]/*manifest]
        r config set appendonly no
        wait_for_condition 100 10 {[aof_names] eq ""}
        r config set rdb-key-save-delay 0 appendonly yes
        info_is aof_rewrite_in_progress 0
        info_is aof_rewrite_scheduled 0
        wait_for_condition 300 10 {[aof_names] eq {appendonly.aof.1.base.rdb appendonly.aof.1.incr.aof appendonly.aof.manifest}}
        assert_equal "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n" [manifest]
    }

    test {a server that is killed during its first rewrite starts with what it had} {
        r config set appendonly no
        stop_server
        file delete -force [aof_dir]
        continue_server
        r set kept value
        r save
        r config set rdb-key-save-delay 100000 appendonly yes
        wait_for_condition 100 10 {[aof_names] eq "temp-appendonly.aof.incr"}
        exec kill -9 [srv pid]
        wait_for_condition 1500 10 {[process_ended [srv pid]]}
        catch {stop_server} ended
        assert_equal "the server ended badly: ended by SIGKILL" $ended
        continue_server
        assert_equal value [r get kept]
        r config set appendonly yes
        info_is aof_rewrite_in_progress 0
        wait_for_condition 300 10 {[aof_names] eq {appendonly.aof.1.base.rdb appendonly.aof.1.incr.aof appendonly.aof.manifest}}
    }
}

start_server {tags {aof} overrides {appendonly yes}} {
    test {files that a killed server has created before their manifest do not stop a start, others do} {
        stop_server
        set base [read_bytes [aof_dir]/appendonly.aof.1.base.rdb]
        set files [list appendonly.aof.1.base.rdb $base appendonly.aof.1.incr.aof ""]
        set_files [concat $files [list temp-appendonly.aof.first "" temp-appendonly.aof.manifest file]]
        continue_server
        assert_equal 0 [r dbsize]
        assert_equal {appendonly.aof.2.base.rdb appendonly.aof.2.incr.aof appendonly.aof.manifest} [aof_names]
        stop_server
        set_files $files
        assert_match "*the AOF manifest appendonlydir/appendonly.aof.manifest is missing*" [refused_start]
        assert_equal {appendonly.aof.1.base.rdb appendonly.aof.1.incr.aof} [aof_names]
        set_files {}
        continue_server
    }
}

start_server {overrides {appendonly yes appendfsync always save {}}} {
    test {replay knows the commands and arguments that extended-commands no hides} {
        r saddex s ex 10000 members 1 m
        r zaddex z ex 10000 members 1 1 m
        r set a x
        r set b y
        r bitop one dest a b
        r multi
        r spersist s members 1 m
        r sadd s other
        r exec
        set digest [r debug digest]
        stop_server
        upvar #0 [lindex $::servers 0] server
        dict set server(settings) extended-commands no
        continue_server
        assert_equal $digest [r debug digest]
        assert_error "*unknown command*" {r spersist s members 1 m}
        assert_error "*syntax*" {r bitop one dest a b}
    }
}

start_server {overrides {appendonly yes appendfsync always save {} databases 16}} {
    test {a file with databases that the server does not have is refused} {
        r select 9
        r set nine 1
        set digest [r debug digest]
        stop_server
        upvar #0 [lindex $::servers 0] server
        dict set server(settings) databases 4
        catch continue_server message
        assert_match "*DB index is out of range: the file was written with more than 4 databases*" $message
        dict set server(settings) databases 16
        continue_server
        assert_equal $digest [r debug digest]
    }
}
