# CLUSTER SETSLOT: its errors, what replicas and files know of it, failovers meanwhile, and that a refused one changes nothing.

# The open slots that node i shows for itself, with n0, n1, ... instead of ids.
proc marks {i} {
    set text [lsearch -all -inline [cluster_line -$i [cluster_id $i]] {\[*\]}]
    for {set k 0} {$k < $::cluster_size} {incr k} {set text [string map [list [cluster_id $k] n$k] $text]}
    return $text
}

proc wait_marks {i expected} {
    wait_for_condition 200 50 {[marks $i] eq $expected} else {fail "node $i: [marks $i]"}
}

proc setslot {i args} {r -$i cluster setslot {*}$args}
# One that succeeds, however long the disk of a replica takes.
proc order {i args} {assert_equal OK [r -$i cluster setslot {*}$args timeout 60000]}

start_cluster {2 2 {tags {cluster} overrides {repl-diskless-sync-delay 0}}} {
    test {SETSLOT refuses wrong arguments, in order} {
        set a [cluster_id 0]
        set b [cluster_id 1]
        foreach {words error} [list \
            {} {ERR wrong number of arguments for 'cluster|setslot' command} \
            {0} {ERR wrong number of arguments for 'cluster|setslot' command} \
            {x foo} {ERR Invalid or out of range slot} \
            {16384 migrating y timeout z} {ERR Invalid or out of range slot} \
            {0 foo timeout x} {ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP} \
            {0 migrating} {ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP} \
            {0 node} {ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP} \
            {0 migrating timeout 100} {ERR I don't know about node timeout} \
            {16000 migrating x} {ERR I'm not the owner of hash slot 16000} \
            [list 0 migrating [string toupper $b]x] "ERR I don't know about node [string toupper $b]x" \
            "0 migrating $a" {ERR Target node is myself} \
            "0 migrating [cluster_id 2]" {ERR Target node is not a master} \
            "0 importing $b" {ERR I'm already the owner of hash slot 0} \
            "16000 importing [cluster_id 3]" {ERR Target node is not a master} \
            {0 node zz} {ERR Unknown node zz} \
            "0 node [cluster_id 2]" {ERR Target node is not a master} \
            {0 stable foo timeout} {ERR Missing timeout value} \
            {0 stable timeout x} {ERR timeout is not an integer or out of range} \
            {0 stable timeout 1 timeout -1} {ERR timeout is negative} \
            "0 migrating $b timeout 9223372036854775807" {ERR timeout is out of range}] {
            assert_error $error {setslot 0 {*}$words}
        }
        assert_error {ERR Please use SETSLOT only with masters.} {setslot 2 x migrating y}
        assert_equal {} [marks 0]
        order 0 0 stable foo bar
    }

    test {a slot with keys is not given away} {
        r set {{06S}k} v
        assert_error {ERR Can't assign hashslot 0 to a different node while I still hold keys for this hash slot.} {
            setslot 0 0 node [cluster_id 1]
        }
        r del {{06S}k}
    }

    test {marks are in CLUSTER NODES of the primary and of its replica, and SETSLOT in no append only file} {
        order 0 0 migrating [cluster_id 1]
        assert_equal OK [setslot 0 5 MIGRATING [cluster_id 1] timeout 0]
        order 0 16001 importing [cluster_id 1]
        order 1 0 importing [cluster_id 0]
        set expected {{[0->-n1]} {[5->-n1]} {[16001-<-n1]}}
        assert_equal $expected [marks 0]
        assert_equal $expected [marks 2] "replicas are first"
        assert_equal {{[0-<-n0]}} [marks 3]
        order 0 5 stable
        order 0 16001 stable
        assert_equal {{[0->-n1]}} [marks 2]
    }

    test {a full synchronisation replaces the marks of a replica} {
        assert_equal OK [r -2 cluster replicate no one]
        wait_for_condition 200 50 {[lindex [r -2 role] 0] eq "master"}
        assert_equal {} [marks 2]
        assert_equal OK [r -2 cluster replicate [cluster_id 0]]
        cluster_wait_role 2 slave
        wait_marks 2 {{[0->-n1]}}
        # Until then it does not count for SETSLOT.
        wait_for_condition 200 50 {[string match *state=online* [info_field slave0]]}
    }

    test {without acknowledgement SETSLOT is refused, and neither side is changed} {
        set before [list [marks 0] [cluster_owners 0]]
        foreach words [list "6 migrating [cluster_id 1]" "0 stable" "0 node [cluster_id 1]" "16002 importing [cluster_id 1]" "16000 node [cluster_id 0]"] {
            send_signal STOP [srv -2 pid]
            try {
                assert_error {NOREPLICAS Not enough good replicas to write.} {setslot 0 {*}$words timeout 50}
            } finally {
                send_signal CONT [srv -2 pid]
            }
            assert_equal $before [list [marks 0] [cluster_owners 0]]
            assert_equal 1 [r wait 1 0]
            wait_for_condition 200 50 {[list [marks 2] [cluster_owners 2]] eq $before} else {
                fail "$words: [marks 2] [cluster_owners 2]"
            }
        }
        assert_match {*SETSLOT about slot 6 was not executed*} [server_log]
    }

    test {a client that disconnects leaves nothing changed, and the slot free for the next order} {
        send_signal STOP [srv -2 pid]
        try {
            set client [connect]
            $client -send cluster setslot 7 migrating [cluster_id 1] timeout 0
            wait_for_condition 200 20 {[info_field blocked_clients] == 1}
            assert_error {ERR Another CLUSTER SETSLOT about slot 7 waits for replicas} {setslot 0 7 stable}
            $client -close
            wait_for_condition 200 20 {[info_field blocked_clients] == 0}
        } finally {
            send_signal CONT [srv -2 pid]
        }
        order 0 7 stable
        assert_equal {{[0->-n1]}} [marks 0]
        wait_marks 2 {{[0->-n1]}}
    }

    test {NODE: the target first, with a new epoch; the source loses the slot and its keys} {
        order 1 0 node [cluster_id 1]
        assert_equal {} [marks 1]
        assert_equal {} [marks 3]
        assert_equal [cluster_field -1 cluster_current_epoch] [cluster_field -1 cluster_my_epoch]
        assert_match {*ConfigEpoch updated after importing slot 0*} [server_log -1]
        foreach i {0 2} {wait_marks $i {}}
        order 0 0 node [cluster_id 1]
        cluster_wait_agree
    }

    test {NODE on the source alone: it gives the slot up, and the target takes it} {
        order 1 1 importing [cluster_id 0]
        order 0 1 migrating [cluster_id 1]
        order 0 1 node [cluster_id 1]
        assert_equal {} [marks 0]
        foreach i {1 3} {wait_marks $i {}}
        cluster_wait_agree
        assert_equal 1 [cluster_owner_of 1]
    }

    test {marks are in the configuration file} {
        order 0 2 migrating [cluster_id 1]
        restart_server
        assert_equal {{[2->-n1]}} [marks 0]
        cluster_wait_ok
        cluster_wait_role 2 slave
    }

    test {a failover of the source: the new primary goes on, and so does the target} {
        order 1 2 importing [cluster_id 0]
        cluster_wait_role 2 slave
        assert_equal OK [r -2 cluster failover]
        cluster_wait_role 2 master
        assert_equal {{[2->-n1]}} [marks 2]
        wait_marks 1 {{[2-<-n2]}}
        wait_marks 3 {{[2-<-n2]}}
        cluster_wait_role 0 slave
    }

    test {a failover of the target} {
        assert_equal OK [r -3 cluster failover]
        cluster_wait_role 3 master
        cluster_wait_role 1 slave
        assert_equal {{[2-<-n2]}} [marks 3]
        wait_marks 2 {{[2->-n3]}}
        wait_marks 0 {{[2->-n3]}}
        order 3 2 node [cluster_id 3]
        foreach i {0 1 2 3} {wait_marks $i {}}
        cluster_wait_agree
    }
}

proc keep_slot_0 {} {
    for {set slot 1} {$slot < 8192} {incr slot} {lappend others $slot}
    r cluster delslots {*}$others
}

start_cluster {2 1 {tags {cluster} overrides {cluster-require-full-coverage no repl-diskless-sync-delay 0}}} {
    test {who gives its last slot away becomes a replica, and its replica follows} {
        keep_slot_0
        order 0 0 node [cluster_id 1]
        assert_equal {} [lrange [cluster_line [cluster_id 0]] 8 end]
        assert_match {*Lost my last slot during slot migration. Reconfiguring myself as a replica of*} [server_log]
        foreach i {0 2} {
            cluster_wait_role $i slave
            wait_for_condition 200 50 {[lindex [cluster_line -$i [cluster_id $i]] 3] eq [cluster_id 1]}
        }
    }
}

start_cluster {2 1 {tags {cluster} overrides {cluster-allow-replica-migration no cluster-require-full-coverage no repl-diskless-sync-delay 0}}} {
    test {without cluster-allow-replica-migration it is an empty primary, and goes on; its replica follows if it may} {
        r -2 config set cluster-allow-replica-migration yes
        keep_slot_0
        r -1 cluster delslotsrange 1 8191
        r -1 cluster addslotsrange 1 8191
        cluster_wait_agree
        order 0 0 node [cluster_id 1]
        assert_equal master [lindex [r role] 0]
        assert_match {*My last slot was migrated to node *. I am now an empty primary.*} [server_log]
        cluster_wait_role 2 slave
        wait_for_condition 200 50 {[lindex [cluster_line -2 [cluster_id 2]] 3] eq [cluster_id 1]} else {fail [r -2 cluster nodes]}
        assert_equal master [lindex [r role] 0]
    }
}

start_cluster {2 0 {tags {cluster tls:skip} overrides {cluster-require-full-coverage no}}} {
    test {CONFIG SET of a cluster directive counts for the next command, also in the same turn} {
        keep_slot_0
        set s [raw_connect]
        raw_send $s "CONFIG SET cluster-allow-replica-migration no\r\nCLUSTER SETSLOT 0 NODE [cluster_id 1]\r\n"
        assert_equal {+OK +OK} [list [raw_line $s] [raw_line $s]]
        assert_match {*My last slot was migrated to node *. I am now an empty primary.*} [server_log]
        assert_equal master [lindex [r role] 0]
    }
}
