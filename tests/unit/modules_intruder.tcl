# SPDX-License-Identifier: BSD-3-Clause
#
# Modules that change the keyspace in their callbacks for keyspace events (tests/modules/intruder.c): every write command
# of the matrix meets one that deletes, renames, overwrites or flushes what it works on. The server must not use memory
# that is freed then; it is the builds with checks and sanitizers that find it.

source $::tests_dir/support/write_matrix.tcl

start_server {tags {tls:skip} overrides {enable-module-command yes enable-debug-command yes databases 16 save {}}} {
    r module load [file normalize build/modules/intruder.so]
    r debug set-active-expire 0
    array set ::matrix [list db 0 other 1 payload {}]

    # Runs the row with the intruder, and what waits for it.
    proc intrude {row mode state} {
        set ::matrix(now) [clock milliseconds]
        set commands [list flushall]
        set ending {}
        foreach command [dict get $row setup] {
            switch [lindex $command 0] {
                DIE {lappend ending [list pexpire [lindex $command 1] 1]}
                HDIE {lappend ending [list hpexpire [lindex $command 1] 1 fields 1 [lindex $command 2]]}
                default {lappend commands [matrix_request $command]}
            }
        }
        matrix_pipeline $::matrix(control) $commands
        set request [matrix_request [dict get $row command]]
        if {$state eq "expired"} {foreach key [matrix_keys $row] {lappend ending [list pexpire $key 1]}}
        if {$state eq "fields"} {
            dict for {key fields} [matrix_fields [dict get $row setup]] {
                lappend ending [list hpexpire $key 1 fields [llength $fields] {*}$fields]
            }
        }
        matrix_pipeline $::matrix(control) $ending
        if {$ending ne ""} {r debug sleep 0.002}
        if {[set waiting [dict get $row waiting]] ne ""} {
            $::matrix(waiter) -send {*}[matrix_request $waiting]
            matrix_wait_blocked $::matrix(waiter) 1
        }
        matrix_pipeline $::matrix(control) [list [list intruder.mode $mode] $request [list intruder.mode none]]
        if {$waiting ne ""} {
            $::matrix(control) client unblock $::matrix(waiter_id)
            $::matrix(waiter) -readtyped
        }
    }

    # What rename, unlink and swap do is much the same.
    set modes {del overwrite flush fill}
    if {[resp3]} {set modes {rename}} ;# the protocol does not matter
    set families {strings keys hashes lists sets sorted_sets streams blocked extended newer_redis valkey_92}
    foreach mode $modes {
        test "commands go on whose keys a module changes in its callback: $mode" {
            set ::matrix(control) [connect]
            set ::matrix(waiter) [connect]
            set ::matrix(waiter_id) [$::matrix(waiter) client id]
            set before [r intruder.count]
            foreach family $families {
                foreach row [matrix_rows $family] {
                    if {[string match {*%port*} [dict get $row title]]} continue
                    foreach state [matrix_states $row] {
                        if {[catch {intrude $row $mode $state} error]} {fail "[dict get $row title] ($state): $error"}
                    }
                }
            }
            assert {[r intruder.count] > $before + 100}
            assert_equal PONG [r ping]
        }
    }

    # Without a command: the walk over what expires, and eviction, go on with other keys.
    foreach mode {del overwrite rename flush swap fill} {
        test "active expiry and eviction go on whose keys a module changes in its callback: $mode" {
            r intruder.mode none
            r debug set-active-expire 0
            r flushall
            for {set i 0} {$i < 100} {incr i} {
                r set string:$i v px 1
                r hset hash:$i f v g v
                r hpexpire hash:$i 1 fields 1 f
                r sadd set:$i f g
                r spexpire set:$i 1 members 1 f
            }
            r debug sleep 0.002
            set before [r intruder.count]
            r intruder.mode $mode
            r debug set-active-expire 1
            wait_for_condition 250 20 {[r intruder.count] > $before}
            # All that has expired is removed in the end, by whomever.
            wait_for_condition 250 20 {![string match "*expires=\[1-9\]*" [r info keyspace]]}
            r config set maxmemory-policy allkeys-random
            r config set maxmemory 1
            catch {r set evicts x}
            r config set maxmemory 0
            r intruder.mode none
            assert_equal PONG [r ping]
        }
    }
}
