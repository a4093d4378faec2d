# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli --downgrade-check: what keeps Valkey 9.1.2 from starting on the data of a server, and the exports that it names.

source $::tests_dir/support/tools.tcl
source $::tests_dir/support/frames.tcl

proc check {args} {run_tool valkey-cli "" --downgrade-check {*}$args}

start_server {tags {cli tls:skip external:skip} overrides {save {} appendonly yes}} {
    set uri valkey://[srv host]:[srv port]
    set dump [srv dir]/dump.rdb

    test {cli: --downgrade-check of a server and files that 9.1.2 loads} {
        r set key value
        r hset hash a 1
        r hpexpireat hash 9999999999999 fields 1 a
        r save
        set manifest [glob [srv dir]/appendonlydir/*.manifest]
        write_bytes [srv dir]/users.acl "user default on nopass ~* &* +@all\nuser role on >x ~role=* +get\n"
        lassign [check $uri $dump $manifest [srv dir]/users.acl] status output
        assert_match "*Valkey 9.1.2 starts with these." $output
        assert_equal 4 [regexp -all {nothing was found} $output]
        assert_equal 0 $status
    }

    foreach codec [frame_codecs] {
        test "cli: --downgrade-check names files compressed by $codec, and the export that it names is plain" {
            r config set rdbcompression $codec
            r save
            r bgrewriteaof
            wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
            set manifest [glob [srv dir]/appendonlydir/*.manifest]
            foreach file [list $dump $manifest] {
                lassign [check $file] status output
                assert_equal 1 $status
                assert_match "*is compressed as a whole ($codec)*way: CONFIG SET rdbcompression yes, then SAVE, and BGREWRITEAOF*does not start with these." $output
            }
            lassign [check $uri] status output
            assert_equal 1 $status
            assert_match "*rdbcompression is $codec*" $output
            r config set rdbcompression yes
            r save
            r bgrewriteaof
            wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
            foreach file [list $dump $manifest] {assert_equal 0 [lindex [check $file] 0]}
        }
    }

    test {cli: --downgrade-check finds members with TTLs, and the export that it names has none} {
        needs_command saddex
        r saddex timed px 10000000 members 2 a b
        r save
        set manifest [glob [srv dir]/appendonlydir/*.manifest]
        lassign [check $dump] status output
        assert_equal 1 $status
        assert_match "*1 sets or sorted sets whose members have TTLs*way: valkey-cli --rdb FILE*" $output
        lassign [check $manifest] status output
        assert_equal 1 $status
        assert_match "*commands that they do not know, such as *" $output
        r config set repl-diskless-sync-delay 0
        lassign [run_tool valkey-cli "" -p [srv port] --rdb [srv dir]/export.rdb] status output
        assert_match "*Transfer finished with success*" $output
        lassign [check [srv dir]/export.rdb] status output
        assert_match "*starts with these." $output
    }

    test {cli: --downgrade-check counts members with TTLs on a server, also of large values and in several databases} {
        needs_command saddex
        r flushall
        r sadd plain a b
        r zadd zplain 1 a
        r hset timed_hash f v
        r hpexpireat timed_hash 9999999999999 fields 1 f
        assert_equal 0 [lindex [check $uri] 0]
        # The member with a TTL is one of many.
        r eval {for i = 1, 3000 do redis.call('sadd', KEYS[1], 'm' .. i) redis.call('zadd', KEYS[2], i, 'm' .. i) end} 2 large zlarge
        assert_equal 0 [lindex [check $uri] 0]
        r sexpireat large 9999999999 members 1 m1
        r zexpireat zlarge 9999999999 members 1 m2000
        r select 3
        r saddex small pxat 9999999999999 members 2 a b
        r sadd plain a
        r select 0
        lassign [check $uri] status output
        assert_equal 1 $status
        assert_match "*3 sets or sorted sets whose members have TTLs*way: valkey-cli --rdb FILE*" $output
        r spersist large members 1 m1
        r zpersist zlarge members 1 m2000
        assert_match "*1 sets or sorted sets whose members have TTLs*" [lindex [check $uri] 1]
        r flushall
    }

    test {cli: --downgrade-check knows all commands that write and that Valkey 9.1 does not have} {
        foreach {name written} {
            {saddex k ex 10 members 1 a} 1 {sexpire k 1 members 1 a} 1 {zpersist k members 1 a} 1 {xnack k g fail} 1 {himport set k} 1
            {delprefix k} 1 {cl.throttle k 1 1 1} 1 {lmovem a b left left count 1} 1 {increx k} 1 {xdelex k ids 1 1-1} 1 {delex k ifeq v} 1
            {spop k} 0 {xackdel k g ids 1 1-1} 1 {set k v} 0 {hgetdel k fields 1 f} 0 {delifeq k v} 0 {msetex 1 k v} 0 {sdiffcard 1 k} 0
        } {
            set bytes "*[llength $name]\r\n"
            foreach word $name {append bytes "\$[string length $word]\r\n$word\r\n"}
            write_bytes [srv dir]/one.aof $bytes
            lassign [check [srv dir]/one.aof] status output
            assert_equal $written $status $name
            if {$written} {assert_match "*1 commands that they do not know, such as [lindex $name 0]*" $output}
        }
    }

    test {cli: --downgrade-check finds path hashes and version 81} {
        # A path hash k with one path p: f -> v.
        write_bytes [srv dir]/paths.rdb "VALKEY081\xfe\x00\x17\x01k\x01\x01p\x01\x01f\x01v\xff[string repeat \x00 8]"
        lassign [check [srv dir]/paths.rdb] status output
        assert_equal 1 $status
        assert_match "*RDB version 81; they read up to 80*1 path hashes (type 23)*" $output
        write_bytes [srv dir]/paths.aof "*6\r\n\$5\r\nphset\r\n\$1\r\nk\r\n\$1\r\np\r\n\$6\r\nfields\r\n\$1\r\n1\r\n\$1\r\nf\r\n"
        lassign [check [srv dir]/paths.aof] status output
        assert_equal 1 $status
        assert_match "*1 commands of path hashes*" $output
    }

    test {cli: --downgrade-check finds roles and limits of users} {
        write_bytes [srv dir]/users.acl "role reader +@read ~*\nuser default on nopass ~* &* +@all\nuser joe on >x role=reader cpu=25%\nuser ann on >x +get maxmemory=1mb\n"
        lassign [check [srv dir]/users.acl] status output
        assert_equal 1 $status
        assert_match "*role reader*user joe has the rule role=reader*user joe has the rule cpu=25%*user ann has the rule maxmemory=1mb*" $output
        assert_equal 4 [regexp -all {way: ACL EXPORT} $output]
    }

    test {cli: --downgrade-check of what cannot be read} {
        write_bytes [srv dir]/broken.rdb "VALKEY080broken"
        lassign [check [srv dir]/broken.rdb $dump] status output
        assert_equal 1 $status
        assert_match "*broken.rdb*" $output
        assert_match {1 {*Could not connect to Valkey at *}} [check valkey://127.0.0.1:1]
        # A file that was compressed by gzip was once taken for one with no users.
        write_bytes [srv dir]/dump.rdb.gz "\x1f\x8b\x08\x00\x00\x00\x00\x00"
        assert_match "1 {*dump.rdb.gz: neither a snapshot*does not start with these.}" [check [srv dir]/dump.rdb.gz]
        assert_match "1 {absent.rdb: no such file, and no URI of a server*}" [check absent.rdb]
    }
}
