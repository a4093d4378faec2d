# SPDX-License-Identifier: BSD-3-Clause
#
# The worst request of each command, from the specs: as a job and in one piece it has the same reply and effect, and it is a job if
# docs/long-commands.md says so.

start_server {tags {jobs} overrides {enable-debug-command yes save {} unixsocket worst.sock}} {
    test {worst requests do the same in slices and in one piece, and those that are said to be in slices are} {
        set program $::tests_dir/helpers/worst_cases.py
        set protocol [expr {[resp3] ? 3 : 2}]
        set failed [catch {exec python3 $program [srv dir]/worst.sock --protocol $protocol} text]
        if {$failed} {fail $text}
        assert_match {*commands, 0 faults} $text
    }
}
