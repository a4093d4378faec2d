# SPDX-License-Identifier: BSD-3-Clause
#
# Two and three clients that read, change and store the same keys while commands run in slices: what they see fits one order.

start_server {tags {jobs} overrides {enable-debug-command yes save {} unixsocket serial.sock}} {
    foreach clients {2 3} {
        test "the histories of $clients clients are serializable" {
            set program $::tests_dir/helpers/serializable.py
            set failed [catch {
                exec python3 $program [srv dir]/serial.sock --protocol [expr {[resp3] ? 3 : 2}] --clients $clients \
                    --rounds [scaled 15] --seed [random_below 1000000000]
            } text]
            if {$failed} {fail $text}
            assert_match {*operations, * jobs, 0 faults} $text
        }
    }
}
