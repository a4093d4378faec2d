# SPDX-License-Identifier: BSD-3-Clause
#
# Files that Valkey 9.2 has compressed as a whole: snapshots, bases of the append only file and full synchronisations.
# tests/c/format/test_rdb_envelope.c reads them cut and changed at every byte.

source $::tests_dir/support/primary.tcl
source $::tests_dir/support/frames.tcl

set ::id [string repeat c 40]

# The keys plain and long, by the programs lz4 and zstd.
array set frames {
    lz4 5643530101000104224d187440bd3f000000ff2156414c4b4559303831fa0a76616c6b65792d76657205392e322e30fe000005706c61696e017800046c6f6e6740c861620200b390ff111111111111111166b55bd600000000cdfe8212
    zstd 5643530102000128b52ffd24ff0d0200940356414c4b4559303831fa0a76616c6b65792d76657205392e322e30fe000005706c61696e017800046c6f6e6740c86162ff11111111111111110100308c725011282299
}

proc refuses {file} {
    write_bytes [srv dir]/dump.rdb $file
    catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
    return "$said[file_text [srv stdout]]"
}

proc tool {name args} {
    set status [catch {exec [file dirname $::binary]/$name {*}$args 2>@1} output]
    return [list $status $output]
}

proc has_the_keys {} {expr {[r get plain] eq "x" && [r get long] eq [string repeat ab 100]}}

foreach {codec library} {lz4 LZ4 zstd Zstandard} {
    if {$codec in [built_codecs]} continue
    start_server {tags {compressed-files external:skip} overrides {save {} repl-diskless-load swapdb}} {
        test "A build without $library refuses what is compressed by it, with the reason" {
            set why "$library compression is not available in this build"
            set bytes [binary format H* $frames($codec)]
            foreach directive {rdbcompression repl-compression} {
                assert_error "*$why*" {r config set $directive $codec}
                catch {exec timeout 20 $::binary --port 0 --$directive $codec </dev/null 2>@1} said
                assert_match "*$why*" $said
            }
            primary_listen
            r set old data
            set c [primary_asked]
            primary_full_sync $c $::id 50 $bytes
            wait_for_condition 400 25 {[string match "*this build has no $codec*" [server_log]]}
            primary_close
            r replicaof no one
            stop_server
            assert_match "*this build has no $codec*" [refuses $bytes]
            write_bytes [srv dir]/dump.rdb $bytes
            assert_match "*this build has no $codec*" [lindex [tool valkey-check-rdb [srv dir]/dump.rdb] 1]
            file delete [srv dir]/dump.rdb
            restart_server
        }
    }
}

foreach codec [built_codecs] {
    set bytes [binary format H* $frames($codec)]
    set wrong [string replace $bytes end end X] ;# a checksum

    start_server {tags {compressed-files external:skip} overrides {save {} rdbcompression no}} {
        test "A snapshot compressed by $codec is loaded" {
            assert_match "*$codec*" [info_field compression_codecs]
            stop_server
            write_bytes [srv dir]/dump.rdb $bytes
            restart_server
            assert {[has_the_keys]}
            assert_match "*Loading compressed RDB (algo=$codec) from dump.rdb*Logical RDB CRC64 skipped for streaming-compressed input*Done loading RDB, keys loaded: 2*" [server_log]
            write_bytes [srv dir]/dump.rdb "${bytes}what follows is ignored"
            r debug reload nosave
            assert {[has_the_keys]}
        }

        test "A damaged snapshot compressed by $codec is refused" {
            write_bytes [srv dir]/dump.rdb $wrong
            assert_error "ERR Error trying to load the RDB dump*" {r debug reload nosave}
            r debug set-skip-checksum-validation 1
            r debug reload nosave
            assert {[has_the_keys]}
            # A cut frame is refused nevertheless.
            write_bytes [srv dir]/dump.rdb [string range $bytes 0 end-1]
            assert_error "ERR Error trying to load the RDB dump*" {r debug reload nosave}
            r debug set-skip-checksum-validation 0
            write_bytes [srv dir]/dump.rdb $bytes
            stop_server
            assert_match "*Corrupt streaming-compressed RDB input*Terminating server after rdb file reading failure.*Fatal error loading the DB*" [refuses $wrong]
            assert_match "*Short read or OOM loading DB*" [refuses [string range $bytes 0 end-1]]
            foreach {at byte} {3 2 4 9 5 1 6 2} {
                assert_match "*Invalid or unsupported RDB stream envelope*Fatal error loading the DB*" \
                    [refuses [string replace $bytes $at $at [binary format c $byte]]]
            }
            write_bytes [srv dir]/dump.rdb $bytes
            restart_server
        }

        test "check-rdb: a file compressed by $codec" {
            set path [srv dir]/other.rdb
            write_bytes $path $bytes
            lassign [tool valkey-check-rdb $path] status output
            assert_equal 0 $status
            assert_match "*RDB looks OK! *compressed file (algo=$codec): logical offset 255, physical offset [string length $bytes]\n*2 keys read*" $output
            write_bytes $path $wrong
            lassign [tool valkey-check-rdb $path] status output
            assert_equal 1 $status
            assert_match "*Corrupt streaming-compressed RDB input*logical offset *, physical offset *" $output
        }
    }

    start_server {tags {compressed-files external:skip} overrides {save {} appendonly yes}} {
        test "The base of an append only file may be compressed by $codec" {
            r set later 1
            stop_server
            set base [lindex [glob [srv dir]/appendonlydir/*.base.rdb] 0]
            write_bytes $base $bytes
            lassign [tool valkey-check-aof [glob [srv dir]/appendonlydir/*.manifest]] status output
            assert_equal 0 $status
            assert_match "*RDB preamble is OK, proceeding with AOF tail*All AOF files and manifest are valid*" $output
            restart_server
            assert {[has_the_keys] && [r get later] == 1}
            assert_match "*Loading compressed RDB (algo=$codec) from the AOF base file*" [server_log]
        }

        test "A single append only file of a preamble compressed by $codec and commands" {
            stop_server
            file delete -force [srv dir]/appendonlydir
            set path [srv dir]/appendonly.aof
            write_bytes $path "$bytes*3\r\n\$3\r\nset\r\n\$5\r\nlater\r\n\$1\r\n2\r\n"
            lassign [tool valkey-check-aof $path] status output
            assert_equal 0 $status
            assert_match "*RDB preamble is OK, proceeding with AOF tail*is valid" $output
            write_bytes $path.cut "$bytes*3\r\n\$3\r\nset\r\n\$5\r\nlat"
            assert_match "*ok_up_to=[string length $bytes],*is not valid*" [lindex [tool valkey-check-aof $path.cut] 1]
            restart_server
            assert {[has_the_keys] && [r get later] == 2}
        }
    }

    primary_listen

    start_server {tags {repl compressed-files tls:skip external:skip} overrides {save {}}} {
        foreach mode {disabled swapdb} {
            test "A full synchronisation compressed by $codec ($mode)" {
                # A file is kept as rdbcompression says, here as it came.
                r config set repl-diskless-load $mode rdbcompression $codec
                primary_detach
                set c [primary_asked]
                primary_full_sync $c $::id 50 $bytes
                primary_wait_ack $c 50
                assert {[has_the_keys]}
                assert_match "*Loading compressed RDB (algo=$codec) from primary*" [server_log]
                primary_send $c set after 1
                wait_for_condition 400 25 {[r get after] eq 1}
                # With a size before it.
                primary_detach
                set c [primary_asked]
                raw_send $c "+FULLRESYNC $::id 50\r\n\$[string length $bytes]\r\n$bytes"
                primary_wait_ack $c 50
                assert {[has_the_keys]}
                # A damaged one. Beside the old data it is found before they are replaced.
                primary_detach
                r set old data
                set failures [regexp -all {Corrupt streaming-compressed RDB input} [server_log]]
                set c [primary_asked]
                primary_full_sync $c $::id 50 $wrong
                wait_for_condition 400 25 {[regexp -all {Corrupt streaming-compressed RDB input} [server_log]] > $failures}
                if {$mode eq "swapdb"} {assert_equal data [r get old]}
            }
        }
    }

    primary_close
}
