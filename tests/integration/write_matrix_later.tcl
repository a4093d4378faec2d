# SPDX-License-Identifier: BSD-3-Clause
#
# Writes that end later: MIGRATE in every way, and what must not happen in the middle of a script, while the loop of the
# server runs to answer other clients.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl
source $::tests_dir/support/write_matrix.tcl
source $::tests_dir/support/primary.tcl

start_server [list tags {repl tls:skip} overrides $::matrix_settings] {
    start_server [list tags {repl tls:skip} overrides $::matrix_settings] {
        start_server [list tags {repl tls:skip} overrides $::matrix_settings] {
            r -1 debug set-active-expire 0
            r -1 replicaof [srv host] [srv port]
            link_is up -1

            if {[info exists ::env(WRITE_MATRIX_RECORD)]} {
                test "the outcomes of MIGRATE are recorded" {matrix_record migrate -1}
            } else {
                test "MIGRATE: stream, events, dirty counter, WATCH and tracking are Valkey's, copies have the same data" {
                    matrix_check migrate -1
                }
            }

            # Starts a script on the server of a level, with a client of its own: `first`, then commands that read. It ends
            # when 9 more clients have come, and returns the number of keys before and after.
            proc script_start {level {first {}}} {
                set c [respConnect [srv $level host] [srv $level port]]
                $c -send [expr {$first eq "" ? "eval_ro" : "eval"}] "$first
                    local function clients()
                        return tonumber(string.match(redis.call('info', 'clients'), 'connected_clients:(%d+)'))
                    end
                    local size, before = redis.call('dbsize'), clients()
                    while clients() < before + 9 or not string.find(redis.call('info', 'clients'), 'paused_reason:none') do end
                    return {size, redis.call('dbsize')}" 0
                return $c
            }

            # Waits until the loop has run in the middle of the script, which answers other clients.
            proc script_interrupted {level} {
                set c [respConnect [srv $level host] [srv $level port]]
                wait_for_condition 2000 5 {[catch {$c ping} message] && [string match BUSY* $message]} else {
                    fail "the script does not run"
                }
                $c -close
            }

            proc script_end {level c} {
                set clients {}
                for {set i 0} {$i < 12} {incr i} {lappend clients [respConnect [srv $level host] [srv $level port]]}
                set sizes [$c -read]
                foreach client [list $c {*}$clients] {$client -close}
                return $sizes
            }

            r config set busy-reply-threshold 1
            r -1 config set busy-reply-threshold 1

            test "MIGRATE that ends in the middle of a script removes its keys after it" {
                matrix_begin
                primary_listen
                r mset k1 a k2 b k3 c
                set mover [connect]
                $mover -send migrate 127.0.0.1 $::primary_port "" 0 20000 keys k1 k2 k3
                set target [primary_accept]
                assert_equal {SELECT 0} [primary_request $target]
                raw_send $target "+OK\r\n"
                foreach key {k1 k2 k3} {
                    assert_match "RESTORE $key *" [primary_request $target]
                }
                set script [script_start -0]
                script_interrupted -0
                raw_send $target "+OK\r\n+OK\r\n+OK\r\n"
                script_interrupted -0
                script_interrupted -0
                assert_equal {3 3} [script_end -0 $script]
                assert_equal OK [$mover -read]
                assert_equal {} [r keys *]
                primary_close
                while {[replica_next $::matrix(stream)] ne {mset k1 a k2 b k3 c}} {}
                replica_expect $::matrix(stream) DEL k1 k2 k3
                matrix_verify -1
            }

            test "keys and fields that expire in the middle of a script are removed after it" {
                matrix_begin
                r debug set-active-expire 1
                set script [script_start -0 {
                    redis.call('set', 'k1', 'v', 'px', 1)
                    redis.call('hset', 'k2', 'f', 'v')
                    redis.call('hpexpire', 'k2', 1, 'fields', 1, 'f')
                    redis.call('hset', 'k3', 'f', 'v', 'g', 'w')
                    redis.call('hpexpire', 'k3', 1, 'fields', 1, 'f')
                }]
                script_interrupted -0
                script_interrupted -0
                assert_equal {3 3} [script_end -0 $script]
                wait_for_condition 1000 10 {[r dbsize] == 1 && [r hlen k3] == 1}
                matrix_verify -1
            }

            test "a request that waits for the end of CLIENT PAUSE does not run in the middle of a script" {
                matrix_begin
                set late [connect]
                r client pause 500 write
                $late -send set k1 v
                # I/O threads read the connections in any order.
                wait_for_condition 500 5 {[info_field blocked_clients] == 1 || [r exists k1]}
                set script [script_start -0]
                script_interrupted -0
                # 1 if the pause has ended before the script began.
                lassign [script_end -0 $script] before after
                assert_equal $before $after
                assert_equal OK [$late -read]
                matrix_verify -1
            }

            test "a replica applies nothing in the middle of a script" {
                matrix_begin
                r set k1 v
                same_offset -0 -1
                set script [script_start -1]
                script_interrupted -1
                r mset k2 v k3 v
                r del k1
                script_interrupted -1
                script_interrupted -1
                assert_equal {1 1} [script_end -1 $script]
                matrix_verify -1
                assert_equal 2 [r -1 dbsize]
            }
        }
    }
}
