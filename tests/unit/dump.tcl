# SPDX-License-Identifier: BSD-3-Clause
#
# DUMP and RESTORE: round trips of every type, options, and damaged payloads.

source $::tests_dir/support/all_types.tcl

start_server {tags {dump} overrides {enable-debug-command yes}} {
    test {every type is restored unchanged} {
        foreach key [fill_all_types] {
            assert_equal OK [r restore copy-$key 0 [r dump $key]]
            assert_equal [r debug digest-value $key] [r debug digest-value copy-$key]
            assert_equal [r object encoding $key] [r object encoding copy-$key]
        }
        assert_equal [r xinfo stream stream full] [r xinfo stream copy-stream full]
        assert_equal [r hpexpiretime timed fields 2 a b] [r hpexpiretime copy-timed fields 2 a b]
    }

    test {DUMP compresses as rdbcompression says} {
        r set long [string repeat a 200]
        assert_equal 24 [string length [r dump long]]
        r config set rdbcompression no
        assert_equal 213 [string length [r dump long]]
        r config set rdbcompression yes
    }

    test {DUMP of a missing key is null, and DUMP does not count as an access} {
        r del missing
        assert_equal {} [r dump missing]
        assert_error "ERR wrong number of arguments for 'dump' command" {r dump}
    }

    test {RESTORE refuses an existing key, REPLACE replaces it} {
        r set from value
        r rpush to a b
        assert_error "BUSYKEY Target key name already exists." {r restore to 0 [r dump from]}
        assert_equal list [r type to]
        assert_equal OK [r restore to 0 [r dump from] REPLACE]
        assert_equal value [r get to]
    }

    test {RESTORE sets relative and absolute expiry times} {
        r set from value
        set payload [r dump from]
        r restore to 100000 $payload replace
        assert {90000 <= [r pttl to] && [r pttl to] <= 100000}
        r restore to 9999999999999 $payload absttl replace
        assert_equal 9999999999999 [r pexpiretime to]
        r restore to 0 $payload absttl replace
        assert_equal -1 [r pttl to]
        assert_equal {OK 0} [list [r restore to 1 $payload absttl replace] [r exists to]]
        assert_equal {OK 0} [list [r restore to 1 $payload absttl] [r exists to]]
        assert_error "ERR Invalid TTL value, must be >= 0" {r restore to -1 $payload}
        assert_error "ERR value is not an integer or out of range" {r restore to x $payload}
        assert_error "ERR invalid expire time in 'restore' command" {r restore to 9223372036854775807 $payload}
    }

    test {RESTORE sets the access time or frequency} {
        r set from value
        set payload [r dump from]
        r restore to 0 $payload replace idletime 1000
        assert {1000 <= [r object idletime to] && [r object idletime to] <= 1002}
        r config set maxmemory-policy allkeys-lfu
        r restore to 0 $payload replace freq 200
        assert_equal 200 [r object freq to]
        r config set maxmemory-policy noeviction
        assert_error "ERR syntax error" {r restore to 0 $payload idletime 1 freq 1}
        assert_error "ERR syntax error" {r restore to 0 $payload idletime}
        assert_error "ERR syntax error" {r restore to 0 $payload foo}
        assert_error "ERR Invalid IDLETIME value, must be >= 0" {r restore to 0 $payload idletime -1}
        assert_error "ERR Invalid FREQ value, must be >= 0 and <= 255" {r restore to 0 $payload freq 256}
    }

    test {a damaged payload is refused and changes nothing} {
        foreach key [fill_all_types] {
            set payload [r dump $key]
            set last [expr {[string length $payload] - 1}]
            for {set i 0} {$i < 20} {incr i} {
                set at [expr {int(rand() * $last)}]
                scan [string index $payload $at] %c byte
                set bad [string replace $payload $at $at [format %c [expr {$byte ^ (1 << ($i % 8))}]]]
                assert_error "ERR DUMP payload version or checksum are wrong" {r restore new 0 $bad}
            }
            assert_error "ERR DUMP payload version or checksum are wrong" {r restore new 0 [string range $payload 0 end-1]}
        }
        assert_equal 0 [r exists new]
        assert_error "ERR DUMP payload version or checksum are wrong" {r restore new 0 {}}
        # version 0 with a correct checksum, which is 0 for zero bytes
        assert_error "ERR DUMP payload version or checksum are wrong" {r restore new 0 [string repeat \0 12]}
    }
}

start_server {tags {dump}} {
    test {DUMP of a value for which memory does not suffice is an error} {
        # In one piece, or of small ones: no memory of this size is left over.
        r setrange string 200000000 x
        set text [string repeat x 1000000]
        for {set i 0} {$i < 200} {incr i} {
            r rpush list $text
            r hset hash $i $text
        }
        r config set rdbcompression no
        set status [read_bytes /proc/[srv pid]/status]
        regexp {VmSize:\s+(\d+) kB} $status -> size
        set limited [expr {![is_sanitized] && ![catch {exec prlimit --pid [srv pid] --as=[expr {($size + 50 * 1024) * 1024}]:}]}]
        if {$limited} {
            foreach key {list hash string} {
                assert_error "OOM not enough memory for the payload of this value" {r dump $key}
            }
            exec prlimit --pid [srv pid] --as=unlimited:
        }
        assert {[string length [r dump string]] > 200000000}
    }
}
