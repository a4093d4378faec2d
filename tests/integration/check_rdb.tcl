# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-check-rdb: valid files of every type, damaged files, statistics, options.

source $::tests_dir/support/all_types.tcl
source $::tests_dir/support/tools.tcl

proc check_rdb {args} {run_tool valkey-check-rdb "" {*}$args}

start_server {tags {rdb tools}} {
    set dir [srv dir]
    set path $dir/dump.rdb
    set other $dir/other.rdb

    test {check-rdb: a file with every type is valid} {
        fill_all_types
        r set later v px 100000000
        r select 3
        r set q 1
        r select 0
        r save
        lassign [check_rdb $path] status output
        assert_equal 0 $status
        assert_match "\\\[offset 0\\\] Checking RDB file $path\n*" $output
        assert_match "*AUX FIELD valkey-ver = '*'\n*Selecting DB ID 0\n*Selecting DB ID 3\n*Checksum OK\n*" $output
        assert_match "*Check RDB returned error code 0 (0 means success)\n*\\\\o/ RDB looks OK! \\\\o/\n*" $output
        assert_match "*\\\[info\\\] [expr {[r dbsize] + 1}] keys read\n*\\\[info\\\] 0 already expired\n*" $output
    }

    test {check-rdb: a truncated file is not valid, at any length} {
        set bytes [read_bytes $path]
        for {set len 0} {$len < [string length $bytes]} {incr len [expr {max(1, [string length $bytes] / 60)}]} {
            write_bytes $other [string range $bytes 0 $len-1]
            lassign [check_rdb $other] status output
            assert_equal 1 $status
            assert_match "*--- RDB ERROR DETECTED ---\n*Unexpected EOF reading RDB file\n*" $output
        }
    }

    test {check-rdb: a changed byte is found} {
        set bytes [read_bytes $path]
        set at [expr {[string length $bytes] / 2}]
        binary scan [string index $bytes $at] cu byte
        write_bytes $other [string replace $bytes $at $at [binary format c [expr {$byte ^ 1}]]]
        lassign [check_rdb $other] status output
        assert_equal 1 $status
        assert_match "*--- RDB ERROR DETECTED ---\n*Check RDB returned error code 1 (0 means success)" $output
    }

    test {check-rdb: what was being read is named} {
        write_bytes $other "VALKEY080\xfe\x00\x0b\x01k\x01b\xff"
        lassign [check_rdb $other] status output
        assert_equal 1 $status
        assert_match "*While doing: read-object-value\n*Reading key 'k'\n*Reading type 11 (set-intset)\n*1 keys read*" $output
        write_bytes $other "VALKEY080\xfe\x00\x17\x01k\x01b\xff"
        assert_match "*Invalid object type: 23\n*While doing: read-type\n*" [lindex [check_rdb $other] 1]
        write_bytes $other "VALKEY080\xfe\x00\xe0\x01k\x01\x01b\xfe[string repeat \xff 7]\xff"
        assert_match "*Reading type 224 (set-volatile-items)\n*" [lindex [check_rdb $other] 1]
        write_bytes $other "NOTANRDBFILE"
        assert_match "*Wrong signature trying to load DB from file*" [lindex [check_rdb $other] 1]
    }

    test {check-rdb: files of other servers and later versions} {
        write_bytes $other "REDIS0012\xfe\x00\x00\x01a\x01b\xff[string repeat \x00 8]"
        lassign [check_rdb $other] status output
        assert_equal 0 $status
        assert_match "*Foreign RDB version 12 detected\n*checksum disabled*RDB looks OK! *" $output
        write_bytes $other "REDIS0017\xfe\x00\x00\x01a\x01b\xff[string repeat \x00 8]"
        lassign [check_rdb $other] status output
        assert_equal 0 $status
        assert_match "*Foreign RDB version 17 detected\n*checksum disabled*requires config 'rdb-version-check relaxed'*" $output
        write_bytes $other "VALKEY081\xfe\x00\x18\x01a\x01b\xff"
        lassign [check_rdb $other] status output
        assert_equal 1 $status
        assert_match "*Invalid object type: 24*" $output
        write_bytes $other "VALKEY082\xfe\x00\x18\x01a\x01b\xff"
        lassign [check_rdb $other] status output
        assert_equal 1 $status
        assert_match "*Future RDB version 82 detected\n*Unknown object type 24 in RDB file with future version 82*" $output
    }

    test {check-rdb: data of modules is skipped} {
        set id "\x81\x12\x34\x56\x78\x90\xab\xc4\x00"
        write_bytes $other "VALKEY080\xf7$id\x02\x02\x05\x03abc\x00\xfe\x00\x07\x01a$id\x01\x07\x03\0\0\0\0\x00\xff[string repeat \x00 8]"
        lassign [check_rdb $other] status output
        assert_equal 0 $status
        assert_match "*MODULE AUX for: EjRWeJCrx\n*1 keys read*" $output
    }

    test {check-rdb: bytes of a file cannot control the terminal} {
        write_bytes $other "VALKEY080\xfa\x01a\x04\x1b\[2J\xfe\x00\x0b\x02\x1bk\x01b\xff"
        set output [lindex [check_rdb $other] 1]
        assert_equal -1 [string first \x1b $output]
        assert_match "*Reading key '\\\\x1bk'*" $output
    }

    test {check-rdb: statistics} {
        r flushall
        r mset a 1 b hello
        r hset h f v g w
        r zadd z 1 a 2 b
        r select 3
        r rpush l {*}[lrepeat 300 xyz]
        r select 0
        r save
        set output [lindex [check_rdb $path --stats --format csv] 1]
        assert_match "*\ndb.0.type.name,string,list,set,zset,hash,module,stream,pathhash\ndb.0.keys.total,2,0,0,1,1,0,0,0\n*" $output
        assert_match "*\ndb.0.elements.total,2,0,0,2,2,0,0,0\n*\ndb.3.elements.size,0,900,0,0,0,0,0,0\n*" $output
        assert_match "*\ndb.3.elements.num.p99,0.00,300.00,0.00,0.00,0.00,0.00,0.00,0.00\n*" $output
        assert_match "*\\\[info\\\] db.0.type.hash.elements.size.avg:2.00\n*" [lindex [check_rdb $path --stats --format info] 1]
        assert_match "*db.0.keys.total               \t2    \t0    \t*" [lindex [check_rdb $path --stats] 1]
        check_rdb $path --stats --output $dir/stats
        assert_match "*db.0.keys.total*" [read_bytes $dir/stats]
    }

    test {check-rdb: usage, version, missing files, long paths} {
        foreach arguments {{} {x --format} {x --format y} {x --bogus} {x y}} {
            lassign [check_rdb {*}$arguments] status output
            assert_equal 1 $status
            assert_match "Usage: *valkey-check-rdb <rdb-file-name> *" $output
        }
        assert_match {0 {valkey-check-rdb v=*}} [check_rdb -v]
        assert_match {0 {Usage: *}} [check_rdb --help]
        lassign [check_rdb $dir/missing] status output
        assert_equal 1 $status
        assert_match "*No such file or directory*error code 1*" $output
        assert_equal {1 {The path is longer than 4095 bytes.}} [check_rdb [string repeat x 8000]]
    }
}
