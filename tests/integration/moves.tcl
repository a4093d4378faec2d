# SPDX-License-Identifier: BSD-3-Clause
#
# A dataset that is written to moves to another server, by full and partial resynchronisations and FAILOVER, and all keys are
# the same (differential/moves.py). Both servers are this one, and, if PEER_REDIS is set, the program that it names.
proc moves {peer args} {
    if {[catch {exec $::tests_dir/differential/moves.py $::binary $peer --seconds 1 --rate 3000 --base 500 {*}$args 2>@1} output]} {
        fail $output
    }
    assert_match "*after the hand-over: * keys, 0 differ*1 passed, 0 failed" $output
}

tags {resp:2 needs:local} {
    test {a move under writes, with three cuts of the link and FAILOVER, loses and changes nothing} {moves $::binary}
    test {the same with outgoing-format redis} {moves $::binary --back}
    if {[info exists ::env(PEER_REDIS)]} {
        test {a move from Redis under writes, with three cuts of the link and FAILOVER, loses and changes nothing} {moves $::env(PEER_REDIS)}
        test {a move back to Redis} {moves $::env(PEER_REDIS) --back}
    }
}
