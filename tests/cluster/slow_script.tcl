# SPDX-License-Identifier: BSD-3-Clause
#
# A node that is busy is not a node that has failed.

start_cluster {2 0 {tags {cluster needs:config} overrides {cluster-node-timeout 60000 cluster-ping-interval 100 busy-reply-threshold 600000}}} {
    test {a node answers other nodes while it runs a slow script} {
        set id [cluster_id 0]
        set runner [connect]
        # It lasts for three seconds at least; no client is served meanwhile. ThreadSanitizer delivers the alarm that
        # interrupts the script only in functions that it knows, which the command calls.
        $runner -send eval {
            local start = os.clock()
            while os.clock() - start < 3 do redis.call('ping') end
            return 1
        } 0
        set begin [clock milliseconds]
        set pongs {}
        while {[clock milliseconds] < $begin + 2500} {
            dict set pongs [lindex [cluster_line -1 $id] 5] 1
            after 20
        }
        assert_equal 1 [$runner -read]
        assert_range [expr {[clock milliseconds] - $begin}] 2900 600000
        set during 0
        foreach at [dict keys $pongs] {incr during [expr {$at > $begin + 200 && $at < $begin + 2500}]}
        if {$during < 2} {fail "$during answers in the middle of the script: [dict keys $pongs], begin $begin"}
    }
}
