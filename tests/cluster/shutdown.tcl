# SHUTDOWN of nodes of a cluster: refused, or after a failover.

source $::tests_dir/support/replication.tcl

start_cluster {3 3 {tags {cluster} overrides {repl-diskless-sync-delay 0 cluster-node-timeout 15000}}} {
    test {SHUTDOWN SAFE is refused by a primary with slots, and not by a replica} {
        assert_error "ERR Errors trying to SHUTDOWN. Check logs." {r shutdown nosave safe}
        assert_match "*This is a voting primary. Shutting down may cause the cluster to go down. Can't exit.*" [server_log]
        assert_equal PONG [r ping]
        catch {r -5 shutdown nosave safe}
        assert {[wait_process_end [srv -5 pid] 10000]}
        assert_match "*Saving the cluster configuration file before exiting.*" [server_log -5]
    }

    test {SHUTDOWN FAILOVER: a replica has replaced the primary long before the node timeout} {
        r -0 set b 1
        set id [cluster_id 3]
        # An order of an administrator.
        r -3 config set cluster-replica-no-failover yes
        catch {r shutdown nosave failover} error
        assert {![string match *UNBLOCKED* $error]} $error
        assert {[wait_process_end [srv pid] 10000]}
        assert_match "*Perform auto failover to replica $id on shutdown.*" [server_log]
        wait_for_condition 100 50 {[lindex [r -3 role] 0] eq "master"}
        assert_match "*Forced failover primary request accepted (primary request from '*" [server_log -3]
        assert_equal 1 [r -3 get b]
        wait_for_condition 100 50 {[string match master* [lindex [cluster_line -1 $id] 2]]}
    }

    test {shutdown-on-sigterm failover} {
        set id [cluster_id 4]
        # The order is sent without a wait for replicas, too.
        wait_for_condition 200 20 {[string match "*slave0:*offset=[dict get [stream_of -1] offset],*" [r -1 info replication]]}
        r -1 config set shutdown-on-sigterm "nosave now failover"
        send_signal TERM [srv -1 pid]
        assert {[wait_process_end [srv -1 pid] 10000]}
        wait_for_condition 100 50 {[lindex [r -4 role] 0] eq "master"}
        assert_match "*Perform auto failover to replica $id on shutdown.*" [server_log -1]
    }

    test {without a replica SHUTDOWN FAILOVER only shuts down} {
        catch {r -2 shutdown nosave failover}
        assert {[wait_process_end [srv -2 pid] 10000]}
        assert_match "*Unable to find a replica to perform the auto failover on shutdown.*" [server_log -2]
    }
}
