# SPDX-License-Identifier: BSD-3-Clause
#
# Atomic slot migration to a node that takes less than is written: writers wait rather than the job fails.

start_cluster {2 0 {tags {cluster} overrides {cluster-allow-replica-migration no cluster-node-timeout 30000 save ""
        client-output-buffer-limit {replica 3mb 3mb 0} slot-migration-pause-ms 100}}} {
    test {writers wait for a target that takes nothing, INFO says why, and each write goes on after a bounded time} {
        r config set repl-timeout 60
        hold_pause 0 1
        set name [move 0 1 0 0]
        wait_job 0 waiting-to-pause $name
        set value [string repeat x 100000]
        set writer [connect_to [srv host] [srv port] $::resp_version [srv password]]
        lappend ::test_clients $writer
        send_signal STOP [srv -1 pid]
        try {
            set waited 0
            # The sockets take some MB; then each write but the first one waits, and goes on.
            for {set i 0} {$i < 500 && $waited < 10} {incr i} {
                assert_equal OK [$writer set "{06S}k" $value]
                if {$waited || [info_field paused_reason] eq "slot_migration_in_progress"} {incr waited}
            }
            assert_equal 10 $waited
            assert {[dict get [job_of 0 $name] remaining_repl_size] < 3000000}
        } finally {
            send_signal CONT [srv -1 pid]
        }
        # It completes with all that was written meanwhile.
        assert_equal waiting-to-pause [job_state 0 $name]
        r set "{06S}last" 1
        hold_pause 0 0
        wait_job 0 success $name
        assert_equal {100000 1} [list [r -1 strlen "{06S}k"] [r -1 get "{06S}last"]]
        assert_equal none [info_field paused_reason]
        assert_equal 0 [info_field client_output_buffer_limit_disconnections]
    }
}
