# SPDX-License-Identifier: BSD-3-Clause
#
# repl-compression: which codec primary and replica agree on, full synchronisations and the stream by it, offsets, changes
# of the directive, damaged streams.

source $::tests_dir/support/all_types.tcl
source $::tests_dir/support/primary.tcl
source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl
source $::tests_dir/support/frames.tcl

set ::id [string repeat c 40]
set quick {save {} repl-diskless-sync-delay 0}

# A field of the line about the first replica; empty: it has none.
proc replica_field {field {level -0}} {
    if {![regexp "\nslave0:\[^\r\]*\[,:\]$field=(\[^,\r\]*)" [r $level info replication] -> value]} {return {}}
    return $value
}

proc codec_becomes {codec {level -0}} {
    wait_for_condition 800 25 {[replica_field state $level] eq "online" && [replica_field compression $level] eq $codec} else {
        fail [r $level info replication]
    }
}

proc primary_count {field} {
    regexp "\n$field:(\\d+)" [r -1 info stats] -> count
    return $count
}

# Writes of all kinds that compress well, and some that do not.
proc write_some {count {level -0}} {
    for {set i 0} {$i < $count} {incr i} {
        r $level set key:$i "{\"id\":$i,\"name\":\"record number $i\",\"text\":\"[string repeat lorem 20]\"}"
        if {$i % 10 == 0} {r $level hset hash:$i field $i other [expr {rand()}]}
        if {$i % 50 == 0} {r $level set random:$i [binary format d100 [lmap n [lrepeat 100 0] {expr {rand()}}]]}
    }
}

start_server [list tags {repl tls:skip external:skip} overrides $quick] {
    test {repl-compression is off by default and has the words of Valkey 9.2} {
        assert_equal {repl-compression no} [r config get repl-compression]
        foreach word [concat no [expr {"lz4" in [frame_codecs] ? "yes" : ""}] [frame_codecs]] {
            r config set repl-compression $word
            assert_equal "repl-compression $word" [r config get repl-compression]
        }
        assert_error "*argument(s) must be one of the following: no, yes, lz4, zstd*" {r config set repl-compression lzf}
        foreach {word name} {lz4 LZ4 zstd Zstandard} {
            if {$word in [frame_codecs]} continue
            assert_error "*$name compression is not available in this build*" {r config set repl-compression $word}
        }
        r config set repl-compression no
    }

    test {the codec is the strongest one that both sides have} {
        r set key value
        foreach {primary capabilities codec} {
            no {} {}  no lz4 {}  no {zstd lz4} {}
            lz4 {} {}  lz4 lz4 lz4  lz4 {zstd lz4} lz4  yes lz4 lz4
            zstd {} {}  zstd lz4 lz4  zstd {zstd lz4} zstd  zstd {lz4 zstd future} zstd
        } {
            if {"lz4" ni [frame_codecs] || "zstd" ni [frame_codecs]} break
            r config set repl-compression $primary
            set words {capa eof capa psync2}
            foreach word $capabilities {lappend words capa $word}
            set s [replica_connect [concat $words version 9.2.0]]
            replica_psync $s
            regexp {FULLRESYNC \S+ (\d+)} [replica_answer $s] -> offset
            set dataset [replica_dataset $s]
            set head [dict get {{} VALKEY0 lz4 5643530101000104 zstd 5643530102000128} $codec]
            if {$codec ne ""} {set dataset [binary encode hex $dataset]}
            assert_equal $head [string range $dataset 0 [string length $head]-1]
            replica_ack $s $offset
            wait_for_condition 400 25 {[replica_field state] eq "online"}
            assert_equal $codec [replica_field compression]
            r set key other
            if {$codec eq ""} {
                assert_match "\\**" [raw_read $s 10]
            } else {
                set expected [dict get {lz4 5643530101000204224d18 zstd 5643530102000228b52ffd} $codec]
                assert_equal $expected [binary encode hex [raw_read $s 11]]
            }
            raw_close $s
            wait_for_condition 400 25 {[info_field connected_slaves] == 0}
        }
        r config set repl-compression no
    }

    test {a replica without capa eof gets a plain file, also if rdbcompression is lz4} {
        if {"lz4" in [frame_codecs]} {
            r config set repl-diskless-sync no rdbcompression lz4 repl-compression lz4
            set s [raw_connect]
            raw_send $s "SYNC\r\n"
            assert_match VALKEY0* [replica_dataset $s]
            raw_close $s
            r config set repl-diskless-sync yes rdbcompression yes repl-compression no
        }
    }
}

foreach {name options replica_options} {
    "with a fork" {snapshot-mode fork} {}
    "without a fork" {snapshot-mode inline} {repl-diskless-load swapdb}
    "by two channels" {snapshot-mode fork dual-channel-replication-enabled yes} {dual-channel-replication-enabled yes}
    "by two channels without a fork" {snapshot-mode inline dual-channel-replication-enabled yes} {dual-channel-replication-enabled yes repl-diskless-load swapdb}
    "by a file" {repl-diskless-sync no} {}
    "by a compressed file" {repl-diskless-sync no rdbcompression zstd} {rdbcompression lz4}
} {
    if {"rdbcompression" in $options && [llength [built_codecs]] < 2} continue
    start_server [list tags {repl tls:skip external:skip} overrides [concat $quick $options]] {
        fill_all_types
        foreach codec {lz4 zstd} {
            if {$codec ni [frame_codecs]} continue
            start_server [list overrides [concat $quick $replica_options]] {
                test "Dataset and stream by $codec $name" {
                    r -1 config set repl-compression $codec
                    r config set repl-compression $codec
                    r -1 multi
                    r -1 set a 1
                    r -1 exec
                    r replicaof [srv -1 host] [srv -1 port]
                    link_is up
                    codec_becomes $codec -1
                    write_some 1000 -1
                    same_data -1 -0
                    assert_equal 1 [r -1 wait 1 20000]
                    assert_match "*full sync with compression: $codec*" [server_log -1]
                    set plain [replica_field uncompressed_bytes -1]
                    assert {$plain > 100000 && [replica_field compressed_bytes -1] < $plain / 2}
                    assert_equal $plain [info_field total_repl_decompressed_bytes]
                    # What arrives is counted, not what it becomes.
                    assert {[info_field total_net_repl_input_bytes] < $plain}
                }

                test "A link by $codec that was lost continues $name" {
                    set partial [primary_count sync_partial_ok]
                    set full [primary_count sync_full]
                    r client kill type master
                    write_some 100 -1
                    codec_becomes $codec -1
                    same_data -1 -0
                    assert_equal $full [primary_count sync_full]
                    assert {[primary_count sync_partial_ok] > $partial}
                }

                test "The file of a replica is as its own rdbcompression says ($codec, $name)" {
                    if {[r config get repl-diskless-load] eq "repl-diskless-load disabled"} {
                        set head [string range [read_bytes [srv dir]/dump.rdb] 0 5]
                        set expected [expr {[lindex [r config get rdbcompression] 1] eq "lz4" ? "VCS\x01\x01\x00" : "VALKEY"}]
                        assert_equal $expected $head
                        assert {![catch {exec [file dirname $::binary]/valkey-check-rdb [srv dir]/dump.rdb 2>@1} output]}
                        assert_match "*RDB looks OK!*" $output
                        if {$expected eq "VALKEY"} {assert_match "*Checksum OK*" $output}
                    }
                }
            }
        }
    }
}

start_server [list tags {repl tls:skip external:skip} overrides $quick] {
    start_server [list overrides $quick] {
        start_server [list overrides $quick] {
            test {a chain: each link by its own codec, and beside a link that is plain} {
                if {"lz4" in [frame_codecs] && "zstd" in [frame_codecs]} {
                    r -2 config set repl-compression lz4
                    r -1 config set repl-compression zstd
                    r -1 replicaof [srv -2 host] [srv -2 port]
                    link_is up -1
                    r replicaof [srv -1 host] [srv -1 port]
                    link_is up
                    codec_becomes lz4 -2
                    codec_becomes {} -1
                    write_some 200 -2
                    same_data -2 -1 -0
                    r config set repl-compression zstd
                    codec_becomes zstd -1
                    codec_becomes lz4 -2
                    write_some 200 -2
                    same_data -2 -1 -0
                    # Both replicas of the first server now: one of them plain.
                    r config set repl-compression no
                    r replicaof [srv -2 host] [srv -2 port]
                    link_is up
                    wait_for_condition 800 25 {[regexp -all {state=online} [r -2 info replication]] == 2}
                    write_some 200 -2
                    same_data -2 -1 -0
                    assert_equal 2 [r -2 wait 2 20000]
                    assert_equal 1 [regexp -all {compression=lz4} [r -2 info replication]]
                }
            }
        }
    }
}

start_server [list tags {repl tls:skip external:skip} overrides $quick] {
    start_server [list overrides $quick] {
        test {a change of repl-compression makes only those links anew that it concerns} {
            if {"lz4" in [frame_codecs] && "zstd" in [frame_codecs]} {
                r replicaof [srv -1 host] [srv -1 port]
                link_is up
                set full [primary_count sync_full]
                # primary, replica, codec, whether the link is made anew
                foreach {primary replica codec anew} {
                    no zstd {} 1  no no {} 0  lz4 no {} 1  lz4 lz4 lz4 1  yes lz4 lz4 0  zstd lz4 lz4 0  zstd zstd zstd 1
                    zstd lz4 lz4 1  zstd zstd zstd 1  lz4 zstd lz4 1  lz4 lz4 lz4 0  no lz4 {} 1
                } {
                    set before [primary_count sync_partial_ok]
                    r -1 config set repl-compression $primary
                    r config set repl-compression $replica
                    if {$anew} {wait_for_condition 800 25 {[primary_count sync_partial_ok] > $before}}
                    r -1 set key $primary:$replica
                    codec_becomes $codec -1
                    link_is up
                    same_data -1 -0
                    if {!$anew} {
                        wait_for_condition 800 25 {[info_field uptime_in_seconds] > 0}
                        r -1 set key again
                        same_data -1 -0
                        assert_equal $before [primary_count sync_partial_ok]
                    }
                }
                assert_equal $full [primary_count sync_full]
            }
        }

        test {much more than fits the buffers goes through a compressed link, in whole and in pieces} {
            set codec [lindex [frame_codecs] 0]
            if {$codec ne ""} {
                r -1 config set repl-compression $codec
                r config set repl-compression $codec
                r replicaof [srv -1 host] [srv -1 port]; # nothing to do if both codecs are built
                codec_becomes $codec -1
                r -1 set big [string repeat "0123456789" 500000]
                for {set i 0} {$i < 20} {incr i} {
                    r -1 eval {for i = 1, 2000 do redis.call('set', KEYS[1] .. i, string.rep(ARGV[1] .. i, 50)) end} 1 key:$i: v
                }
                assert_equal 1 [r -1 wait 1 60000]
                same_data -1 -0
            }
        }

        test {a replica that does not read is closed at its output limit, with a compressed stream too} {
            set codec [lindex [frame_codecs] 0]
            if {$codec ne ""} {
                r replicaof no one
                r config set client-output-buffer-limit "replica 20mb 0 0" repl-backlog-size 1mb repl-compression $codec
                set channel [open /dev/urandom rb]
                set noise [read $channel 1000000]
                close $channel
                set s [replica_connect "capa eof capa psync2 capa $codec version 9.2.0"]
                replica_psync $s
                regexp {FULLRESYNC \S+ (\d+)} [replica_answer $s] -> offset
                replica_dataset $s
                replica_ack $s $offset
                codec_becomes $codec
                for {set i 0} {$i < 100 && [info_field connected_slaves] == 1} {incr i} {r set noise $noise}
                assert {$i < 100}
                assert_match "*scheduled to be closed ASAP for overcoming of output buffer limits*" [server_log]
                raw_close $s
            }
        }
    }
}

start_server [list tags {repl tls:skip external:skip} overrides $quick] {
    test {replicas with different codecs that wait together get a save each} {
        if {"lz4" in [frame_codecs] && "zstd" in [frame_codecs]} {
            r config set repl-compression zstd repl-diskless-sync-delay 1
            r set key value
            set sockets {}
            foreach capabilities {{} {capa lz4} {capa lz4 capa zstd} {capa lz4}} {
                set s [replica_connect [concat {capa eof capa psync2 version 9.2.0} $capabilities]]
                replica_psync $s
                lappend sockets $s
            }
            foreach s $sockets head {VALKEY0 VCS\x01\x01\x00\x01 VCS\x01\x02\x00\x01 VCS\x01\x01\x00\x01} {
                regexp {FULLRESYNC \S+ (\d+)} [replica_answer $s] -> offset
                assert_equal [subst $head] [string range [replica_dataset $s] 0 6]
                raw_close $s
            }
            assert_equal 1 [regexp -all {full sync with compression: zstd} [server_log]]
            assert_equal 1 [regexp -all {full sync with compression: lz4} [server_log]]
        }
    }
}

primary_listen

start_server [list tags {repl tls:skip external:skip} overrides $quick] {
    foreach codec [frame_codecs] {
        r config set repl-compression $codec

        test "A replica reads a stream by $codec in any pieces, and a plain one" {
            r config resetstat
            set c [primary_attach $::id 50 {key 1}]
            set words [join $::primary_seen]
            assert {"lz4" in $words && ("zstd" in $words) == ($codec eq "zstd")}
            set set [primary_encode {set key 2}]
            set bytes [frame_begin $codec]
            set length 0
            foreach value {2 3 4} {
                set command [primary_encode [list set key $value]]
                append bytes [frame_block $codec [string range $command 0 9]] [frame_block $codec [string range $command 10 end]]
                incr length [string length $command]
            }
            foreach byte [split $bytes {}] {raw_send $c $byte}
            primary_wait_ack $c [expr {50 + $length}]
            assert_equal 4 [r get key]
            assert_equal $length [info_field total_repl_decompressed_bytes]
            r config resetstat
            assert_equal 0 [info_field total_repl_decompressed_bytes]
            # Directly after the dataset, in the same packet; and the stream that continues.
            primary_detach
            set c [primary_asked]
            set one [primary_encode {set key 1}]
            set rdb [rdb_of {key 0}]
            raw_send $c "+FULLRESYNC $::id 50\r\n\$[string length $rdb]\r\n$rdb[frame_begin $codec][frame_block $codec $one]"
            primary_wait_ack $c [expr {50 + [string length $one]}]
            assert_equal 1 [r get key]
            raw_close $c
            set c [primary_accept]
            assert_equal [list PSYNC $::id [expr {51 + [string length $one]}]] [primary_handshake $c]
            raw_send $c "+CONTINUE\r\n[frame_begin $codec][frame_block $codec $one]"
            primary_wait_ack $c [expr {50 + 2 * [string length $one]}]
            # Plain, although it may be compressed.
            raw_close $c
            set c [primary_accept]
            primary_handshake $c
            raw_send $c "+CONTINUE\r\n$one"
            primary_wait_ack $c [expr {50 + 3 * [string length $one]}]
        }

        test "A stream by $codec that is damaged ends the link, and continues after what was applied" {
            set c [primary_attach $::id 50 {key 1}]
            set one [primary_encode {set key 2}]
            set offset [expr {51 + [string length $one]}]
            raw_send $c "[frame_begin $codec][frame_block $codec $one]"
            primary_wait_ack $c [expr {$offset - 1}]
            set begin [frame_begin $codec]
            foreach {damage line} [list \
                "[frame_block $codec xx]\xff\xff\xff\x7f[string repeat \xff 100]" "Corrupt compressed replication stream: $codec" \
                [string replace $begin 3 3 \x02] "Invalid or unsupported replication stream envelope" \
                [string replace $begin 4 4 \x09] "Invalid or unsupported replication stream envelope" \
                [string replace $begin 5 5 \x01] "Invalid or unsupported replication stream envelope" \
                [string replace $begin 6 6 \x01] "Invalid or unsupported replication stream envelope" \
                [string replace $begin 7 10 abcd] "Corrupt compressed replication stream: $codec" \
                "$begin[dict get {lz4 \0\0\0\0 zstd \1\0\0} $codec]" "The compressed replication stream has ended" \
            ] {
                set found [regexp -all "The stream of the primary cannot be read: $line" [server_log]]
                raw_send $c [subst $damage]
                wait_for_condition 400 25 {[regexp -all "The stream of the primary cannot be read: $line" [server_log]] > $found}
                raw_close $c
                set c [primary_accept]
                assert_equal [list PSYNC $::id $offset] [primary_handshake $c]
                raw_send $c "+CONTINUE\r\n"
            }
            raw_send $c "[frame_begin $codec][frame_block $codec $one]"
            primary_wait_ack $c [expr {50 + 2 * [string length $one]}]
            assert_equal 2 [r get key]
        }

        test "A dataset by $codec that is damaged is not taken, and the old data stay" {
            r config set repl-diskless-load disabled rdbcompression yes
            primary_detach
            r set old data
            set c [primary_asked]
            set found [regexp -all {The dataset received from the primary is corrupt} [server_log]]
            primary_full_sync $c $::id 50 "VCS\x01[dict get {lz4 \x01 zstd \x02} $codec]\x00\x01[string repeat x 100]"
            wait_for_condition 400 25 {[regexp -all {The dataset received from the primary is corrupt} [server_log]] > $found}
            assert_equal data [r get old]
        }
    }
}

primary_close
