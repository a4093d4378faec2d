# SPDX-License-Identifier: BSD-3-Clause
#
# Every write command in every way: what a replica, the append only file, keyspace events, WATCH and client tracking
# learn of it. The rows, and what is expected, are in tests/assets/write_matrix.

source $::tests_dir/support/raw_replica.tcl
source $::tests_dir/support/replication.tcl
source $::tests_dir/support/write_matrix.tcl

set families {strings keys hashes lists sets sorted_sets streams server blocked}
if {![info exists ::env(WRITE_MATRIX_RECORD)] && ![info exists ::env(WRITE_MATRIX_VALKEY)]} {lappend families extended newer_redis valkey_92 expired_members}

start_server [list tags {repl tls:skip} overrides $::matrix_settings] {
    start_server [list tags {repl tls:skip} overrides $::matrix_settings] {
        test "every write command has a row" {
            # Slots are emptied in cluster mode only.
            set missing {}
            set covered [matrix_commands_covered]
            foreach name [matrix_commands_writing [r command]] {
                if {$name ni $covered && $name ne "cluster|flushslot"} {lappend missing $name}
            }
            assert_equal {} $missing
        }

        if {"expired_members" in $families} {
            test "every command that reads one key and writes another has a row with an expired part of the source" {
                # Elements of lists do not expire; MIGRATE has rows of its own.
                set covered [concat [matrix_commands_with_expired expired_members] \
                    lmove rpoplpush blmove brpoplpush lmovem blmovem migrate]
                set missing {}
                foreach name [matrix_commands_between_keys [r command]] {
                    if {$name ni $covered} {lappend missing $name}
                }
                assert_equal {} $missing
                assert {[llength $covered] > 20}
            }
        }

        r -1 debug set-active-expire 0
        r -1 replicaof [srv host] [srv port]
        link_is up -1

        foreach family $families {
            if {[info exists ::env(WRITE_MATRIX_RECORD)]} {
                test "the outcomes of $family are recorded" {matrix_record $family -1}
                continue
            }
            test "$family: stream, events, dirty counter, WATCH and tracking are Valkey's, copies have the same data" {
                matrix_check $family -1
            }
        }
    }
}
