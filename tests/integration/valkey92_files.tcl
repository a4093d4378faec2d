# SPDX-License-Identifier: BSD-3-Clause
#
# Files, payloads and full synchronisations of Valkey 9.2: version 81, path hashes, and commands in a dataset. And listpacks of servers that write the lengths of certain entries with one byte more.

source $::tests_dir/support/primary.tcl

set ::id [string repeat c 40]

proc text {value} {return [binary format c [string length $value]]$value}

# A path hash: the type byte, the key, and {path {field value ...} ...}.
proc path_hash {key paths} {
    set out "\x17[text $key][binary format c [expr {[llength $paths] / 2}]]"
    foreach {path fields} $paths {
        append out [text $path][binary format c [expr {[llength $fields] / 2}]]
        foreach word $fields {append out [text $word]}
    }
    return $out
}

proc file_of {version args} {
    set out "VALKEY[format %03d $version]\xfa[text valkey-ver][text 9.2.0]\xfe\x00"
    foreach record $args {append out $record}
    return "$out\xff[string repeat \x00 8]"
}

proc payload {bytes version} {return $bytes[binary format s $version][string repeat \x00 8]}

proc refuses {file} {
    write_bytes [srv dir]/dump.rdb $file
    catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
    return "$said[file_text [srv stdout]]"
}

proc check_rdb {bytes} {
    write_bytes [srv dir]/other.rdb $bytes
    set status [catch {exec [file dirname $::binary]/valkey-check-rdb [srv dir]/other.rdb 2>@1} output]
    return [list $status $output]
}

# A listpack of two texts, the first of which ends with these bytes of length.
proc listpack_of {len back} {
    set entries "\xf0[binary format i $len][string repeat x $len]$back\x81y\x02"
    return [binary format is [expr {7 + [string length $entries]}] 2]$entries\xff
}

proc string_of {bytes} {return "\x80[binary format I [string length $bytes]]$bytes"}

set string "\x00[text plain][text x]"
set map [path_hash map {"" {f v} /a/b {f x g y}}]
set empty [path_hash empty {}]
set update "\xf2*3\r\n\$3\r\nset\r\n\$1\r\na\r\n\$1\r\nb\r\n"

start_server {tags {valkey92-files external:skip} overrides {save {} hide-user-data-from-log no}} {
    test {A file of version 81 is loaded, with fields that expire} {
        stop_server
        set timed "\x16[text h]\x01[text f][text v][string repeat \xff 8]"
        write_bytes [srv dir]/dump.rdb [file_of 81 $string $timed]
        restart_server
        assert_equal {x v -1} [list [r get plain] [r hget h f] [r hpexpiretime h fields 1 f]]
        assert_match "*Loading RDB produced by Valkey version 9.2.0*" [server_log]
    }

    test {Path hashes of a file are loaded, damaged ones are refused} {
        stop_server
        assert_match "*Unknown RDB encoding type 23*" [refuses [file_of 80 $map]]
        assert_match "*A path of a path hash without fields*" [refuses [file_of 81 [path_hash map {/a {}}]]]
        assert_match "*Duplicate paths in a path hash*" [refuses [file_of 81 [path_hash map {/a {f v} /a {g v}}]]]
        assert_match "*Duplicate fields in a path of a path hash*" [refuses [file_of 81 [path_hash map {/a {f v f w}}]]]
        assert_match "*Short read or OOM loading DB*" [refuses [string range [file_of 81 $map] 0 end-15]]
        write_bytes [srv dir]/dump.rdb [file_of 81 $map $string $empty]
        restart_server
        assert_equal {empty map plain} [lsort [r keys *]]
        assert_equal {v {x y} 2 0} [list [r phget map "" f] [r phget map /a/b f g] [r phcard map] [r phcard empty]]
        # Written as it was read; without path hashes files have the version that Valkey 9.1 reads.
        r save
        set bytes [read_bytes [srv dir]/dump.rdb]
        assert_match "VALKEY081*" $bytes
        foreach record [list $map $empty] {assert {[string first $record $bytes] > 0}}
        r del map empty
        r save
        assert_match "VALKEY080*" [read_bytes [srv dir]/dump.rdb]
    }

    test {A command in a file is refused; in older files there is no such opcode} {
        stop_server
        assert_match "*Can't handle opcode 242*Fatal error loading the DB*" [refuses [file_of 81 $string $update]]
        assert_match "*Unknown RDB encoding type 242*" [refuses [file_of 80 $string "\xf2\x00"]]
        write_bytes [srv dir]/dump.rdb [file_of 81 $string]
        restart_server
    }

    test {check-rdb: files of version 81} {
        lassign [check_rdb [file_of 81 $string $map $empty]] status output
        assert_equal 0 $status
        assert_match "*RDB looks OK! *3 keys read*" $output
        assert_match "*Can't handle opcode 242*" [lindex [check_rdb [file_of 81 $update]] 1]
        assert_match "*without fields*Reading type 23 (pathhash)*" [lindex [check_rdb [file_of 81 [path_hash map {/a {}}]]] 1]
        # No crash, and an error, at any length.
        set bytes [file_of 81 $string $map $empty]
        for {set len 0} {$len < [string length $bytes]} {incr len} {
            assert_equal 1 [lindex [check_rdb [string range $bytes 0 $len-1]] 0] $len
        }
    }

    test {RESTORE takes payloads of version 81} {
        r debug set-skip-checksum-validation 1
        r restore s 0 [payload "\x00[text hello]" 81] replace
        assert_equal hello [r get s]
        set value [string replace $map 1 4]
        assert_error "ERR Bad data format" {r restore p 0 [payload $value 80]}
        r restore p 0 [payload $value 81]
        assert_equal {x y} [r phget p /a/b f g]
        assert_equal $value [string range [r dump p] 0 end-10]
        r del p
        assert_error "ERR DUMP payload version or checksum are wrong" {r restore p 0 [payload "\x00[text a]" 82]}
        assert_equal 0 [r exists p]
    }

    test {Both widths of the length of certain entries are read, and one is written} {
        r config set hash-max-listpack-value 3000000
        r config set rdbcompression no
        foreach {len narrow wide} {16378 \x7f\xff \x00\xff\xff 2097146 \x7f\xff\xff \x00\xff\xff\xff} {
            foreach back [list $narrow $wide] {
                set lp [listpack_of $len $back]
                foreach {key head} {h \x10 set \x14 l \x12\x01\x02} {
                    r restore $key 0 [payload "$head[string_of $lp]" 81] replace
                    assert_match "*[string_of [listpack_of $len $narrow]]*" [r dump $key] "$key $len"
                }
                assert_equal y [r hget h [string repeat x $len]]
                assert_equal y [r lindex l -1]
                assert_equal 1 [r sismember set y]
            }
            # One byte more than that is damage.
            assert_error "ERR Bad data format" {r restore h 0 [payload "\x10[string_of [listpack_of $len \x00\x80$narrow]]" 81] replace}
            assert_error "ERR Bad data format" {r restore h 0 [payload "\x10[string_of [listpack_of $len \x00$narrow]]" 81] replace}
        }
        r debug set-skip-checksum-validation 0
    }
}

start_server {tags {valkey92-files external:skip} overrides {save {} appendonly yes}} {
    test {The base of an append only file may be of version 81} {
        r set later 1
        stop_server
        write_bytes [lindex [glob [srv dir]/appendonlydir/*.base.rdb] 0] [file_of 81 $string]
        catch {exec [file dirname $::binary]/valkey-check-aof [glob [srv dir]/appendonlydir/*.manifest] 2>@1} said
        assert_match "*RDB preamble is OK, proceeding with AOF tail*All AOF files and manifest are valid*" $said
        restart_server
        assert_equal {later plain} [lsort [r keys *]]
    }
}

primary_listen

start_server {tags {repl valkey92-files tls:skip external:skip} overrides {save {}}} {
    foreach mode {disabled swapdb} {
        test "A full synchronisation of version 81 ($mode)" {
            r config set repl-diskless-load $mode
            primary_detach
            r set old data
            set c [primary_asked]
            primary_full_sync $c $::id 50 [file_of 81 $string $update]
            wait_for_condition 400 25 {[string match "*Can't handle opcode 242*" [server_log]]}
            primary_detach
            set c [primary_asked]
            primary_full_sync $c $::id 50 [file_of 81 $string $map]
            primary_wait_ack $c 50
            assert_equal {{} x} [r mget old plain]
            assert_equal {v} [r phget map "" f]
        }
    }
}
