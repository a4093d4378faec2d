# SPDX-License-Identifier: BSD-3-Clause
#
# Files that this server compresses as a whole (rdbcompression lz4 and zstd): each way of saving, every type, files that
# are cut or damaged. integration/compressed_files.tcl reads those of others.

source $::tests_dir/support/all_types.tcl

proc built {} {split [info_field compression_codecs] ,}

proc tool {name args} {
    set status [catch {exec [file dirname $::binary]/$name {*}$args 2>@1} output]
    return [list $status $output]
}

# What the first bytes of a file tell.
proc codec_of {path} {
    set head [string range [read_bytes $path] 0 6]
    foreach {codec bytes} {lz4 56435301010001 zstd 56435301020001} {
        if {$head eq [binary format H* $bytes]} {return $codec}
    }
    if {[string range $head 0 5] eq "VALKEY"} {return none}
    fail "no file begins like this: [binary encode hex $head]"
}

proc background_save {} {
    r bgsave
    wait_for_condition 500 20 {[info_field rdb_bgsave_in_progress] == 0}
    assert_equal ok [info_field rdb_last_bgsave_status]
}

start_server {tags {rdb compressed-files external:skip} overrides {save {}}} {
    set dump [srv dir]/dump.rdb

    test {rdbcompression takes the words of Valkey 9.2, and files are not compressed as a whole by default} {
        assert_equal {rdbcompression yes} [r config get rdbcompression]
        foreach word {no yes lzf} {
            r config set rdbcompression $word
            assert_equal "rdbcompression $word" [r config get rdbcompression]
            r save
            assert_equal none [codec_of $dump]
        }
        assert_error "*argument(s) must be one of the following: no, yes, lzf, lz4, zstd*" {r config set rdbcompression gzip}
        foreach {word name} {lz4 LZ4 zstd Zstandard} {
            if {$word in [built]} {
                r config set rdbcompression $word
            } else {
                assert_error "*$name compression is not available in this build*" {r config set rdbcompression $word}
            }
        }
        r config set rdbcompression yes
    }

    foreach codec {lz4 zstd} {
        if {$codec ni [built]} continue

        foreach mode {fork inline} {
            test "Every type is written by $codec and read back ($mode)" {
                fill_all_types
                r debug populate 3000 key 100
                r config set rdbcompression $codec snapshot-mode $mode
                set digest [r debug digest]
                set frames {}
                foreach way {save background_save {r debug reload}} {
                    file delete $dump
                    if {$way eq "save"} {r save} else {eval $way}
                    assert_equal $codec [codec_of $dump]
                    lappend frames [file size $dump]
                    if {$way ne "r debug reload"} {r debug reload nosave}
                    assert_equal $digest [r debug digest]
                }
                r config set rdbcompression no
                r save
                assert_equal none [codec_of $dump]
                foreach bytes $frames {assert {$bytes < [file size $dump] / 2}}
                lassign [tool valkey-check-rdb $dump] status output
                assert_equal 0 $status
            }
        }

        test "SHUTDOWN saves by $codec, and the server starts with it" {
            r config set rdbcompression $codec
            set digest [r debug digest]
            set keys [r dbsize]
            file delete $dump
            r config set save {3600 1000000}
            stop_server
            assert_equal $codec [codec_of $dump]
            lassign [tool valkey-check-rdb $dump] status output
            assert_match "*RDB looks OK! *compressed file (algo=$codec)*$keys keys read*" $output
            restart_server
            assert_equal $digest [r debug digest]
        }

        test "A running save keeps the codec that it began with ($codec)" {
            r config set rdbcompression $codec rdb-key-save-delay 1000
            r bgsave
            r config set rdbcompression yes rdb-key-save-delay 0
            wait_for_condition 1000 20 {[info_field rdb_bgsave_in_progress] == 0}
            assert_equal $codec [codec_of $dump]
        }

        test "A small file by $codec that is cut or changed at each byte is refused or harmless" {
            r flushall
            r function flush
            r set text [string repeat "some text " 20]
            r hset hash a 1 b [string repeat x 70]
            r config set rdbcompression $codec
            r save
            set digest [r debug digest]
            set good [read_bytes $dump]
            for {set at 0} {$at < [string length $good]} {incr at} {
                write_bytes $dump [string range $good 0 $at-1]
                assert_error "ERR Error trying to load the RDB dump*" {r debug reload nosave}
                scan [string index $good $at] %c byte
                write_bytes $dump [string replace $good $at $at [binary format c [expr {$byte ^ 1 << $at % 8}]]]
                if {![catch {r debug reload nosave}]} {assert_equal $digest [r debug digest]}
            }
            write_bytes $dump $good
            r debug reload nosave
            assert_equal $digest [r debug digest]
        }
    }

    test {DUMP is never compressed as a whole} {
        set codec [lindex [built] 0]
        if {$codec ne "none"} {
            r set long [string repeat ab 1000]
            r config set rdbcompression yes
            set payload [r dump long]
            r config set rdbcompression $codec
            assert_equal $payload [r dump long]
        }
    }
}

foreach mode {fork inline} {
    start_server [list tags {aof compressed-files external:skip} overrides [list save {} appendonly yes snapshot-mode $mode]] {
        foreach codec {lz4 zstd} {
            if {$codec ni [built]} continue

            test "BGREWRITEAOF writes a base by $codec ($mode)" {
                fill_all_types
                r config set rdbcompression $codec
                r bgrewriteaof
                wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
                assert_equal ok [info_field aof_last_bgrewrite_status]
                set base [lindex [glob [srv dir]/appendonlydir/*.base.rdb] 0]
                assert_equal $codec [codec_of $base]
                r set later [string repeat l 100]
                set digest [r debug digest]
                r debug loadaof
                assert_equal $digest [r debug digest]
                set manifest [glob [srv dir]/appendonlydir/*.manifest]
                lassign [tool valkey-check-aof $manifest] status output
                assert_equal 0 $status
                assert_match "*RDB preamble is OK, proceeding with AOF tail*All AOF files and manifest are valid*" $output
                # A base that is cut is no file whose end may be missing.
                set good [read_bytes $base]
                write_bytes $base [string range $good 0 end-5]
                assert_equal 1 [lindex [tool valkey-check-aof $manifest] 0]
                write_bytes $base $good
            }

            test "A rewrite as commands is plain ($mode, $codec)" {
                r config set aof-use-rdb-preamble no
                r bgrewriteaof
                wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
                set base [lindex [glob [srv dir]/appendonlydir/*.base.aof] 0]
                assert_equal * [string index [read_bytes $base] 0]
                r config set aof-use-rdb-preamble yes
            }
        }
    }
}
