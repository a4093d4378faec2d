# SPDX-License-Identifier: BSD-3-Clause
#
# Types of values that modules add (utils/hello_module/hello_type.c).

start_server {overrides {enable-module-command yes enable-debug-command yes}} {
    r module load [file normalize build/modules/hello_type.so]

    test {values of a module's type are ordinary keys} {
        assert_equal 3 [r hello.row.add k 1 2 3]
        assert_equal {hello-row raw} [list [r type k] [r object encoding k]]
        assert_equal {1 2 3} [r hello.row.get k]
        assert_equal {} [r hello.row.get missing]
        assert_equal k [lindex [r scan 0 type Hello-Row] 1]
        r set s v
        assert_error {WRONGTYPE*} {r hello.row.add s 1}
        assert_error {WRONGTYPE*} {r get k}
        assert_range [r memory usage k] 48 500
    }

    test {they are copied, dumped, restored; through a string, too} {
        assert_equal 1 [r copy k copy]
        r hello.row.add copy 4
        assert_equal {{1 2 3} {1 2 3 4}} [list [r hello.row.get k] [r hello.row.get copy]]
        r restore restored 0 [r dump copy]
        assert_equal {1 2 3 4} [r hello.row.get restored]
        assert_equal {1 2 3 4} [r hello.row.copy restored]
        assert_equal [r debug digest-value copy] [r debug digest-value restored]
        assert {[r debug digest-value copy] ne [r debug digest-value k]}
    }

    test {signed numbers are written as Valkey writes them} {
        # Of Valkey 9.1.2 with the same module and the numbers 1 -5 300000.
        set payload [string cat "\x07\x81\x85\xe9e\xa3\xea\xe8\xc0\x00\x02\x03\x02\x01\x02\x81\xff\xff" \
            "\xff\xff\xff\xff\xff\xfb\x02\x80\x00\x04\x93\xe0\x00P\x00M>\x88\x8d\xfd\x8e\x99\t"]
        r restore theirs 0 $payload
        assert_equal {1 -5 300000} [r hello.row.get theirs]
        assert_equal $payload [r dump theirs]
        r del theirs
    }

    test {they are in files, RDB and AOF} {
        for {set i 1} {$i < 200} {incr i} {r hello.row.add large $i -$i}
        set digest [r debug digest]
        r debug reload
        assert_equal $digest [r debug digest]
        r config set aof-use-rdb-preamble no
        r config set appendonly yes
        wait_for_condition 500 10 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_enabled] == 1}
        r bgrewriteaof
        wait_for_condition 500 10 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        r hello.row.add large 7
        set digest [r debug digest]
        r debug loadaof
        assert_equal $digest [r debug digest]
    }

    test {they are deleted, also in the background, and flushed} {
        assert_equal 1 [r unlink large]
        assert_equal 1 [r del k]
        r flushall async
        assert_equal 0 [r dbsize]
    }

    test {a module with a type cannot be unloaded} {
        assert_error {ERR Error unloading module: the module exports one or more module-side data types, can't unload} {
            r module unload hellotype
        }
    }
}
