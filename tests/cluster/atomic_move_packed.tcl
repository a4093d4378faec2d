# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration over compressed links: which codec source and target agree on, moves under writes by each, damage.

source $::tests_dir/support/frames.tcl
source $::tests_dir/support/raw_replica.tcl

set lost_source {Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information.}

proc set_codecs {source target} {
    r config set repl-compression $source
    r -1 config set repl-compression $target
}

proc imported_bytes {node} {
    regexp {total_net_cluster_slot_import_bytes:(\d+)} [r -$node info stats] -> bytes
    return $bytes
}

proc slot_digest {node} {return [lmap key [lsort [r -$node keys "{06S}*"]] {list $key [r -$node debug digest-value $key]}]}

proc fill_slot {} {
    for {set i 0} {$i < 500} {incr i} {
        r set "{06S}json:$i" "{\"id\":$i,\"name\":\"record number $i\",\"text\":\"[string repeat lorem 20]\"}"
        r hset "{06S}hash" field:$i [string repeat v $i]
        r zadd "{06S}zset" $i member:$i
        r rpush "{06S}list" [string repeat $i 20]
    }
    r setrange "{06S}large" 1000000 x
    # What does not compress, longer than a turn compresses at once.
    set random [binary format d50000 [lmap n [lrepeat 50000 0] {expr {rand()}}]]
    r set "{06S}random" $random
    r phset "{06S}paths" /a fields 1 f v
}

# The connection of a source with a new job, and what the target replies.
proc establish {capa {name {}}} {
    if {$name eq ""} {set name [string repeat [format %x [expr {[incr ::jobs] % 16}]] 40]}
    set c [raw_connect [srv -1 host] [srv -1 port]]
    raw_send $c [resp_request cluster syncslots establish source [cluster_id 0] capa $capa name $name slotsrange 0 0]
    return [list $c $name [raw_line $c]]
}
set ::jobs 0

start_cluster {2 2 {tags {cluster} overrides {appendonly yes}}} {
    # An empty codec: the stream is plain.
    foreach {source target codec} {no no {} lz4 no {} no zstd {} lz4 lz4 lz4 yes zstd lz4 zstd lz4 lz4 zstd zstd zstd} {
        if {[llength [frame_codecs]] < 2} break
        test "a move under writes, repl-compression $source at the source and $target at the target" {
            set_codecs $source $target
            cluster_wait_agree
            fill_slot
            set before [imported_bytes 1]
            hold_pause 0 1
            set name [move 0 1 0 0]
            for {set i 0} {$i < 200} {incr i} {
                r set "{06S}json:$i" "changed [string repeat $i 30]"
                r del "{06S}json:[expr {$i + 200}]"
                r incr "{06S}counter"
                if {$i % 50 == 0} {r append "{06S}random" [string repeat abcdefgh 10000]}
                r multi
                r lpop "{06S}list"
                r hset "{06S}hash" field:$i changed
                r exec
            }
            wait_job 0 waiting-to-pause $name
            r set "{06S}late" [string repeat late 100000]
            set wanted [slot_digest 0]
            hold_pause 0 0
            wait_job 0 success $name
            wait_job 1 success $name
            assert_equal $wanted [slot_digest 1]
            assert_equal 200 [r -1 get "{06S}counter"]
            wait_for_condition 600 20 {[r -1 debug digest] eq [r -3 debug digest]}
            set bytes [expr {[imported_bytes 1] - $before}]
            if {$codec eq ""} {
                assert {$bytes > 2000000}
                assert {![string match "*$name*is sent compressed*" [server_log -0]]}
            } else {
                assert_match "*$name*is sent compressed: $codec*$name*was sent compressed by $codec: *" [server_log -0]
                assert {$bytes < 1200000}
            }
            # The way back is as the other node says.
            wait_job 3 success $name
            set back [move 1 0 0 0]
            wait_job 1 success $back
            wait_job 0 success $back
            assert_equal $wanted [slot_digest 0]
            r del {*}[r keys "{06S}*"]
        }
    }

    test {a job over a compressed link is cancelled} {
        foreach codec [frame_codecs] {
            set_codecs $codec $codec
            fill_slot
            hold_pause 0 1
            set name [move 0 1 0 0]
            wait_job 0 waiting-to-pause $name
            assert_equal OK [r cluster cancelslotmigrations]
            hold_pause 0 0
            wait_job 0 cancelled $name
            wait_job 1 failed $name
            assert_equal $lost_source [job_message 1 $name]
            assert_equal 0 [r -1 cluster countkeysinslot 0]
            assert_equal 506 [r cluster countkeysinslot 0]
            r del {*}[r keys "{06S}*"]
        }
    }

    test {the target names the strongest codec that both have, and none unless it is offered one} {
        foreach {own offered reply} {
            no lz4,zstd +OK  lz4 {} +OK  lz4 zstd +OK  lz4 future +OK  lz4 , +OK  lz4 lz4 {+OK CODEC lz4}  yes zstd,lz4 {+OK CODEC lz4}
            zstd lz4 {+OK CODEC lz4}  zstd zstd,lz4 {+OK CODEC zstd}  zstd lz4,,future,zstd {+OK CODEC zstd}
        } {
            if {"lz4" ni [frame_codecs] || "zstd" ni [frame_codecs]} break
            r -1 config set repl-compression $own
            lassign [establish $offered] c name got
            assert_equal $reply $got "$own, $offered"
            raw_close $c
            wait_job 1 failed $name
            assert_equal $lost_source [job_message 1 $name]
        }
        set name [string repeat b 40]
        foreach words {{capa lz4 capa lz4} {capa}} {
            assert_error "ERR syntax error" {r -1 cluster syncslots establish source [cluster_id 0] name $name slotsrange 0 0 {*}$words}
        }
    }

    foreach codec [frame_codecs] {
        test "a link by $codec that is damaged, cut or ended fails the job, with its reason" {
            r -1 config set repl-compression $codec
            set unread "The compressed stream of the source cannot be read:"
            set begin [frame_begin $codec]
            set ack [frame_block $codec [resp_request cluster syncslots ack]]
            set key [frame_block $codec [resp_request set "{06S}k" v]]
            # The first bytes of the block of Zstandard that follows have a type that does not exist.
            set bad [dict get [list lz4 "\x05\x00\x00\x00xxxxx" zstd "\x07\x00\x00xxxx"] $codec]
            foreach {bytes message} [list \
                "VCS\x02\x01\x00\x02" "$unread Invalid or unsupported replication stream envelope" \
                "VCS\x01\x07\x00\x02" "$unread Invalid or unsupported replication stream envelope" \
                "[string range $begin 0 5]\x01" "$unread Invalid or unsupported replication stream envelope" \
                $begin$ack$key$bad "$unread Corrupt compressed replication stream: *" \
                $begin[frame_block $codec [resp_request cluster syncslots paused]] "Unexpected state machine transition" \
            ] {
                lassign [establish $codec] c name got
                assert_equal "+OK CODEC $codec" $got
                raw_send $c $bytes
                wait_job 1 failed $name
                assert_match $message [job_message 1 $name]
                raw_close $c
                wait_job 3 failed $name
                assert_equal 0 [r -1 cluster countkeysinslot 0]
                if {[string match "$unread*" $message]} {assert_match "*$name*: $unread*" [server_log -1]}
            }
            # The connection ends inside of the head, or inside of a block, after a key has come.
            foreach {bytes keys} [list "VCS" 0 $begin$ack$key[string range $key 0 end-5] 1 $begin$key 1] {
                lassign [establish $codec] c name got
                raw_send $c $bytes
                wait_for_condition 500 20 {[r -1 cluster countkeysinslot 0] == $keys}
                raw_close $c
                wait_job 1 failed $name
                assert_equal $lost_source [job_message 1 $name]
                assert_equal 0 [r -1 cluster countkeysinslot 0]
            }
        }

        test "a source that was accepted by $codec may send a plain stream" {
            lassign [establish $codec] c name got
            raw_send $c [resp_request cluster syncslots ack] [resp_request set "{06S}k" v]
            wait_for_condition 500 20 {[r -1 cluster countkeysinslot 0] == 1}
            raw_close $c
            wait_job 1 failed $name
        }
    }

    test {replicas and the append only file of the target get the words of Valkey} {
        r -1 config set repl-compression [lindex [concat no [frame_codecs]] end]
        with_node 1 {set c [dict get [replica_sync] socket]}
        lassign [establish lz4,zstd] source name got
        wait_job 3 occurring-on-primary $name
        set found {}
        while {![string match "*SLOTSRANGE*" [string toupper $found]]} {append found [raw_read $c 1]}
        assert_match "*establish*source*name*$name*" [string tolower $found]
        assert {![string match -nocase *capa* $found]}
        raw_close $source
        raw_close $c
        wait_job 1 failed $name
        foreach file [glob [srv -1 dir]/appendonlydir/*.incr.aof] {assert {![string match -nocase *capa* [read_bytes $file]]}}
    }

    test {a target whose append only file has compressed moves starts again} {
        assert_equal OK [r -1 set "{key}restart" value]
        with_node 1 {stop_server}
        with_node 1 {continue_server}
        cluster_wait_ok
        assert_equal value [r -1 get "{key}restart"]
    }
}

# A thread has read ESTABLISH; the main thread reads what follows.
start_cluster {2 0 {tags {cluster} overrides {io-threads 2 io-threads-always-active yes}}} {
    test {a compressed move between nodes with I/O threads} {
        foreach codec [frame_codecs] {
            set_codecs $codec $codec
            fill_slot
            set wanted [slot_digest 0]
            set name [move 0 1 0 0]
            wait_job 0 success $name
            wait_job 1 success $name
            assert_equal $wanted [slot_digest 1]
            set back [move 1 0 0 0]
            wait_job 1 success $back
            wait_job 0 success $back
            assert_equal $wanted [slot_digest 0]
            assert_match "*$name*was sent compressed by $codec: *" [server_log -0]
        }
    }
}
