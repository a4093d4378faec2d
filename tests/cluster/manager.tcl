# valkey-cli --cluster against simulated nodes.

source $::tests_dir/support/fake_cluster.tcl
source $::tests_dir/support/tools.tcl

# Runs it and checks status and, with globs, the output.
proc cluster_run {status pattern args} {
    lassign [fake_run "" {*}$args] got output
    if {$got != $status || ![string match $pattern $output]} {fail "status $got, output: $output"}
    return $output
}
proc has_line {line output} {assert {$line in [split $output \n]}}
proc lacks {pattern output} {if {[string match $pattern $output]} {fail "found $pattern in: $output"}}
# Requests that change something, in order.
proc changes {} {
    set out {}
    foreach request [fake_requests] {
        if {[regexp -nocase {^\d+ (CLUSTER (NODES|COUNT|GETKEYS|INFO|GETSLOT)|INFO|DBSIZE|CONFIG GET|DEBUG|COMMAND INFO)} $request]} continue
        lappend out $request
    }
    return $out
}
proc request_index {pattern} {
    set index [lsearch [fake_requests] $pattern]
    if {$index < 0} {fail "no request matches $pattern"}
    return $index
}

start_server {tags {cluster tools tls:skip}} {
    test {cluster manager: wrong use} {
        fake_cluster 3 0
        foreach {arguments text} {
            check {[ERR] Wrong number of arguments for specified --cluster sub command}
            {call h:1} {[ERR] Wrong number of arguments for specified --cluster sub command}
            {check 127.0.0.1} {[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)}
            {check h:0} {[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)}
            {add-node h:1 h:x} {[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)}
            {add-node h:1 h:2 x} {[ERR] Wrong number of arguments for specified --cluster sub command}
            {del-node h:0 x} {[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)}
            {set-timeout h:1 99} {Setting a node timeout of less than 100 milliseconds is a bad idea.}
            {set-timeout h 99} {[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)}
            {import h:1} {[ERR] Option '--cluster-from' is required for subcommand 'import'.}
            {import h} {[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)}
            {import h 1} {[ERR] Wrong number of arguments for specified --cluster sub command}
            {import h:1 --cluster-from h:0} {[ERR] Invalid --cluster-from host. You need to pass a valid address (ie. 120.0.0.1:7000).}
            {create x} {Invalid address format: x}
            {check :1} {Could not connect to Valkey at :1: Name or service not known}
            {check 127.0.0.1:1@} {Could not connect to Valkey at 127.0.0.1:1: Connection refused}
        } {
            assert_equal [list 1 $text\n] [fake_run "" {*}$arguments]
        }
        assert_equal {} [fake_requests]
    }

    test {cluster manager: --cluster without a subcommand that it knows lists them} {
        foreach {arguments text} {nosuch "Unknown --cluster subcommand" "" "--cluster needs a subcommand."} {
            lassign [run_tool valkey-cli "" --cluster {*}$arguments] status output
            assert_equal 1 $status
            assert_match "$text\nCluster Manager Commands:\n  create *" $output
        }
    }

    test {cluster manager: check of a healthy cluster} {
        fake_cluster 3 1
        fake_set 0 0 a 1
        fake_set 1 6000 b 1
        set output [cluster_run 0 * check [fake_address 0]]
        has_line "[fake_address 0] (11111111...) -> 1 keys | 5461 slots | 1 replicas." $output
        has_line {[OK] 2 keys in 3 primaries.} $output
        has_line "M: [fake_id 1] [fake_address 1]" $output
        has_line {   slots:[5461-10921] (5461 slots) master} $output
        has_line "   replicates [fake_id 0]" $output
        has_line {[OK] All nodes agree about slots configuration.} $output
        has_line {[OK] All 16384 slots covered.} $output
        assert_equal $output [cluster_run 0 * check 127.0.0.1 [fake_port 0]]
        assert_equal {} [changes]
    }

    test {cluster manager: check finds open slots, missing slots and several owners} {
        fake_cluster 3 0
        fake_open 0 migrating 5 1
        fake_open 1 importing 5 0
        fake_disown 7
        fake_set 2 9 k 1
        set output [cluster_run 1 * check [fake_address 0] --cluster-search-multiple-owners]
        has_line "\[WARNING\] Node [fake_address 0] has slots in migrating state 5." $output
        has_line "\[WARNING\] Node [fake_address 1] has slots in importing state 5." $output
        has_line {[WARNING] The following slots are open: 5.} $output
        has_line {[ERR] Not all 16384 slots are covered by nodes.} $output
        has_line {[WARNING] Slot 9 has 2 owners:} $output
        assert_equal {} [changes]
    }

    test {cluster manager: an unreachable primary is counted, its slots are not covered} {
        fake_cluster 3 0
        fake_kill 1
        set output [cluster_run 1 * check [fake_address 0]]
        has_line "Could not connect to Valkey at [fake_address 1]: Connection refused" $output
        has_line {[OK] 0 keys in 2 primaries.} $output
        cluster_run 1 "*Fixing slots coverage with 1 unreachable primaries is dangerous*" fix [fake_address 0]
        assert_equal {} [changes]
        lassign [fake_run "yes\n" fix [fake_address 0] --cluster-fix-with-unreachable-primaries] status output
        assert_equal 0 $status
        has_line ">>> Covering slot 10921 with [fake_address 2]" $output
        assert_equal 0 [fake_slot 5461]
        assert_equal 2 [fake_slot 10921]
    }

    test {cluster manager: call} {
        fake_cluster 2 1
        fake_fail 1 {PING x} {ERR no}
        assert_equal [list 0 ">>> Calling PING x\n[fake_address 0]: PONG\n[fake_address 1]: ERR no\n\n"] \
            [fake_run "" call [fake_address 0] PING x --cluster-only-primaries]
        assert_equal [list 0 ">>> Calling CONFIG GET port\n[fake_address 2]: port\n1\n[fake_address 3]: port\n1\n"] \
            [fake_run "" call [fake_address 0] CONFIG GET port --cluster-only-replicas]
    }

    test {cluster manager: set-timeout counts failures} {
        fake_cluster 2 0
        fake_fail 1 {CONFIG REWRITE} {ERR The server is running without a config file}
        set output [cluster_run 0 * set-timeout [fake_address 0] 2500]
        has_line "*** New timeout set for [fake_address 0]" $output
        has_line "ERR setting node-timeout for [fake_address 1]: ERR The server is running without a config file" $output
        has_line {>>> New node timeout set. 1 OK, 1 ERR.} $output
        assert_equal 2 [llength [fake_requests {? CONFIG SET cluster-node-timeout 2500}]]
    }

    test {cluster manager: create} {
        fake_nodes 6
        set addresses [lmap i {0 1 2 3 4 5} {fake_address $i}]
        # Nothing is changed before the plan is accepted.
        lassign [fake_run "no\n" create {*}$addresses --cluster-replicas 1] status output
        assert_equal 0 $status
        assert_match "*Primary\\\[2\\\] -> Slots 10923 - 16383\nAdding replica [fake_address 4] to [fake_address 0]\n*Can I set the above configuration? (type 'yes' to accept): " $output
        assert_equal {} [changes]
        lassign [fake_run "yes\n" create {*}$addresses --cluster-replicas 1] status output
        assert_equal 0 $status
        has_line {[OK] All 16384 slots covered.} $output
        assert_equal {0 1 2} [lmap slot {5460 5461 10923} {fake_slot $slot}]
        assert_equal 3 [llength [fake_requests {? CLUSTER REPLICATE *}]]
        cluster_run 1 "*is not empty. Either the node already knows other nodes*" create {*}$addresses
    }

    test {cluster manager: create with fewer than three primaries asks} {
        fake_nodes 2
        lassign [fake_run "" create [fake_address 0] [fake_address 1]] status output
        assert_equal 1 $status
        assert_match "Requested to create a cluster with 2 primaries and 0 replicas per primary.\nValkey cluster requires*(type 'yes' to accept): " $output
        cluster_run 1 "*nodes are not enough*" create [fake_address 0] [fake_address 1] --cluster-replicas 2 --cluster-yes
        fake_set 1 5 k 1
        cluster_run 1 "*Node [fake_address 1] is not empty*" create [fake_address 0] [fake_address 1] --cluster-yes
        assert_equal {} [changes]
    }

    test {cluster manager: add-node as primary copies functions, as replica follows a primary} {
        fake_cluster 4 0
        set fake::state(alone,3) 1
        for {set slot 0} {$slot < 16384} {incr slot} {if {[fake_slot $slot] == 3} {fake_own $slot 2}}
        cluster_run 0 "*\\\[OK\\\] New node added correctly.\n" add-node [fake_address 3] [fake_address 0]
        assert_equal {{3 FUNCTION LIST} {3 FUNCTION RESTORE payload}} [fake_requests {3 FUNCTION *}]
        assert_equal 1 [llength [fake_requests "3 CLUSTER MEET 127.0.0.1 [fake_port 0]*"]]
        cluster_run 0 "*>>> Sending CLUSTER RESET SOFT to the deleted node.\n\\\[OK\\\] Node [fake_id 3] removed*" del-node [fake_address 0] [fake_id 3]
        assert_equal 3 [llength [fake_requests "? CLUSTER FORGET [fake_id 3]"]]
        cluster_run 0 "*Configure node as replica of [fake_address 1]*" add-node [fake_address 3] [fake_address 0] --cluster-replica --cluster-primary-id [fake_id 1]
        assert_equal 1 [llength [fake_requests "3 CLUSTER REPLICATE [fake_id 1]"]]
        cluster_run 1 "*Node [fake_address 0] is not empty! Reshard data away and try again.\n" del-node [fake_address 0] [fake_id 0]
        cluster_run 1 "*No such node ID nosuch\n" del-node [fake_address 0] nosuch
    }

    test {cluster manager: reshard moves keys before the owner changes} {
        fake_cluster 3 0
        for {set i 0} {$i < 25} {incr i} {fake_set 0 0 k$i $i}
        fake_set 0 1 other 1
        set output [cluster_run 0 * reshard [fake_address 0] --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 2 --cluster-yes]
        has_line "    Moving slot range 0-1 from [fake_id 0]" $output
        has_line "Moving slot 0 from [fake_address 0] to [fake_address 1][string repeat . 25]" $output
        assert_equal {1 1} [list [fake_slot 0] [fake_slot 1]]
        assert_equal 25 [llength [fake_keys 1 0]]
        set importing [request_index "1 CLUSTER SETSLOT 0 IMPORTING *"]
        set migrating [request_index "0 CLUSTER SETSLOT 0 MIGRATING *"]
        set migrate [request_index "0 MIGRATE *"]
        set target [request_index "1 CLUSTER SETSLOT 0 NODE *"]
        set source [request_index "0 CLUSTER SETSLOT 0 NODE *"]
        set other [request_index "2 CLUSTER SETSLOT 0 NODE *"]
        assert {$importing < $migrating && $migrating < $migrate && $migrate < $target && $target < $source && $source < $other}
    }

    test {cluster manager: reshard asks for what is missing} {
        fake_cluster 3 0
        set input "x\n2\n[fake_id 1]\n[fake_id 0]\ndone\nyes\n"
        lassign [fake_run $input reshard [fake_address 0]] status output
        assert_equal 0 $status
        assert_match "*How many slots do you want to move (from 1 to 16384)? How many*What is the receiving node ID? Please enter*Source node #1: Source node #2: \nReady to move 2 slots.*" $output
        assert_equal {1 1 0} [lmap slot {0 1 2} {fake_slot $slot}]
        # The end of the input is a refusal.
        foreach input {{} "1\n" "1\nnosuch\n" "1\n[fake_id 1]\n" "1\n[fake_id 1]\ndone\n" "1\n[fake_id 1]\nall\n" "1\n[fake_id 1]\nall\nno\n"} {
            assert_equal 1 [lindex [fake_run [subst $input] reshard [fake_address 0]] 0]
        }
        assert_equal {1 1 0} [lmap slot {0 1 2} {fake_slot $slot}]
    }

    test {cluster manager: a failed move names the reason and leaves the rest alone} {
        fake_cluster 3 0
        fake_set 0 1 k 1
        fake_fail 0 {MIGRATE *} {ERR Target instance replied with error: OOM}
        set output [cluster_run 0 * reshard [fake_address 0] --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 3 --cluster-yes]
        has_line "ERR Target instance replied with error: OOM" $output
        has_line "clusterManagerMoveSlot failed: ERR Target instance replied with error: OOM" $output
        assert_equal {1 0 0} [lmap slot {0 1 2} {fake_slot $slot}]
        cluster_run 1 "*following slots are open: 1.*Please fix your cluster problems before resharding\n" reshard [fake_address 0]
    }

    test {cluster manager: keys on both sides are replaced only if equal} {
        fake_cluster 3 0
        fake_set 0 0 same v
        fake_set 1 0 same v
        cluster_run 0 "*Target key exists\n\\*\\*\\* Checking key values on both nodes...\n\\*\\*\\* Replacing target keys...\n*" reshard [fake_address 0] \
            --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 1 --cluster-yes
        assert_equal 1 [fake_slot 0]
        fake_set 0 1 differs old
        fake_set 1 1 differs new
        cluster_run 0 "*Found 1 key(s) in both source node and target node having different values.*    - differs\n*" reshard [fake_address 0] \
            --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 1 --cluster-yes
        assert_equal 0 [fake_slot 1]
        assert_equal {old new} [list [fake_value 0 1 differs] [fake_value 1 1 differs]]
        cluster_run 0 * fix [fake_address 0] --cluster-replace
        assert_equal 1 [llength [concat [fake_keys 0 1] [fake_keys 1 1]]]
    }

    test {cluster manager: NOREPLICAS is tried again} {
        fake_cluster 3 0
        fake_fail 0 {CLUSTER SETSLOT 0 NODE *} {NOREPLICAS Not enough good replicas to write.} 2
        cluster_run 0 * reshard [fake_address 0] --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 1 --cluster-yes
        assert_equal 1 [fake_slot 0]
        assert_equal 3 [llength [fake_requests {0 CLUSTER SETSLOT 0 NODE *}]]
    }

    test {cluster manager: a refused move is told in Valkey's words, once; only the target has to confirm the new owner} {
        set error {NOREPLICAS Not enough good replicas to write.}
        foreach {node pattern} {1 {CLUSTER SETSLOT 0 IMPORTING *} 0 {CLUSTER SETSLOT 0 MIGRATING *} 1 {CLUSTER SETSLOT 0 NODE *}} {
            fake_cluster 3 0
            fake_fail $node $pattern $error
            set end [expr {[string match *NODE* $pattern] ? "\n" : ""}]
            cluster_run 0 "*\nMoving slot 0 from [fake_address 0] to [fake_address 1]${end}clusterManagerMoveSlot failed: $error\n" reshard [fake_address 0] \
                --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 2 --cluster-yes
            assert_equal 0 [fake_slot 0]
        }
        fake_cluster 3 0
        fake_fail 0 {CLUSTER SETSLOT * NODE *} $error
        lacks *failed* [cluster_run 0 * reshard [fake_address 0] --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 2 --cluster-yes]
        assert_equal {1 1} [list [fake_slot 0] [fake_slot 1]]
    }

    test {cluster manager: atomic slot migration} {
        fake_cluster 3 0
        cluster_run 0 "*Moving slot range 0-2 from [fake_address 0] to [fake_address 1] via atomic slot migration.###" reshard [fake_address 0] \
            --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 3 --cluster-yes --cluster-use-atomic-slot-migration
        assert_equal [list "0 CLUSTER MIGRATESLOTS SLOTSRANGE 0 2 NODE [fake_id 1]"] [changes]
        fake_fail 0 {CLUSTER MIGRATESLOTS *} {ERR Slots are being manually imported}
        cluster_run 0 "* via atomic slot migrationAtomic slot migration failed: ERR Slots are being manually imported\n" reshard [fake_address 0] \
            --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 3 --cluster-yes --cluster-use-atomic-slot-migration
    }

    test {cluster manager: slots move whole without an option if both nodes can, unless an option is against it} {
        foreach {option moved} {
            {} "CLUSTER MIGRATESLOTS SLOTSRANGE 0 1 NODE *"
            {--cluster-key-by-key} "CLUSTER SETSLOT 0 IMPORTING *"
            {--cluster-pipeline 7} "CLUSTER SETSLOT 0 IMPORTING *"
            {--cluster-replace} "CLUSTER SETSLOT 0 IMPORTING *"
        } {
            fake_cluster 3 0
            fake_whole
            cluster_run 0 * reshard [fake_address 0] --cluster-from [fake_id 0] --cluster-to [fake_id 1] \
                --cluster-slots 2 --cluster-yes {*}$option
            assert_match "? $moved" [lindex [changes] 0]
            assert_equal {1 1} [list [fake_slot 0] [fake_slot 1]]
        }
    }

    test {cluster manager: slots that cannot be moved whole are moved key by key} {
        fake_cluster 3 0
        fake_whole
        fake_fail 0 {CLUSTER MIGRATESLOTS *} {ERR Slots are being manually imported}
        cluster_run 0 "*Atomic slot migration failed: ERR *\nMoving the slots key by key instead.\n*" reshard [fake_address 0] \
            --cluster-from [fake_id 0] --cluster-to [fake_id 1] --cluster-slots 2 --cluster-yes
        assert_equal {1 1} [list [fake_slot 0] [fake_slot 1]]
    }

    test {cluster manager: the progress of an atomic move counts the keys that were sent} {
        fake_cluster 3 0
        fake_looks 25
        set output [cluster_run 0 "*via atomic slot migration.*###*" reshard [fake_address 0] --cluster-from [fake_id 0] --cluster-to [fake_id 1] \
            --cluster-slots 3 --cluster-yes --cluster-use-atomic-slot-migration --progress json]
        set seen [regexp -all -inline {\{"task":"reshard","unit":"slots","done":(\d),"total":3,"rate":([\d.]+),"eta_seconds":([\d.]+),"finished":(true|false)\}} $output]
        # Nothing in the first second, then once a second: how often depends on the machine.
        foreach {line done rate left ended} [lrange $seen 0 end-5] {
            assert {$done in {0 1 2 3} && ($done == 0 || $rate > 0)}
            assert_equal false $ended
        }
        assert_equal {3 true} [list [lindex $seen end-3] [lindex $seen end]]
    }

    test {cluster manager: rebalance accepts a weight of a replica, without an effect} {
        fake_cluster 3 1
        cluster_run 0 "*No rebalancing needed! All nodes are within the 2.00% threshold.\n" rebalance [fake_address 0] \
            --cluster-weight [fake_id 0]=1 [fake_id 3]=5
        assert_equal {} [changes]
    }

    test {cluster manager: rebalance} {
        fake_cluster 3 0
        cluster_run 0 "*No rebalancing needed! All nodes are within the 2.00% threshold.\n" rebalance [fake_address 0]
        cluster_run 0 "*Rebalancing across 3 nodes. Total weight = 4.00\nMoving 13?? slots*" rebalance [fake_address 0] --cluster-simulate --cluster-weight [fake_id 0]=2
        foreach weight {x x= =1 1111=x 1111=-1 1111=nan} {cluster_run 1 "\\*\\*\\* invalid input $weight\n" rebalance [fake_address 0] --cluster-weight $weight}
        cluster_run 1 "\\*\\*\\* No such primary node f\n" rebalance [fake_address 0] --cluster-weight f=1
        assert_equal {} [changes]
        for {set slot 0} {$slot < 16384} {incr slot} {fake_own $slot [expr {$slot < 5600 ? 0 : $slot < 10900 ? 1 : 2}]}
        cluster_run 0 "*Moving 139 slots from [fake_address 0] to *" rebalance [fake_address 0]
        set counts {0 0 0}
        for {set slot 0} {$slot < 16384} {incr slot} {lset counts [fake_slot $slot] [expr {[lindex $counts [fake_slot $slot]] + 1}]}
        assert {[tcl::mathfunc::max {*}$counts] - [tcl::mathfunc::min {*}$counts] <= 1}
    }

    test {cluster manager: fix finishes or closes half-open slots} {
        fake_cluster 3 0
        foreach {case setup owner} {
            "Case 1: Moving slot 5"  {fake_open 0 migrating 5 1; fake_open 1 importing 5 0; fake_set 0 5 k v} 1
            "Case 4: Closing slot 5" {fake_open 0 migrating 5 1; fake_set 0 5 k v} 0
            "Case 2: Moving all the 5 slot keys" {fake_open 1 importing 5 0} 0
            "Case 3: Moving slot 5" {fake_open 0 migrating 5 2; fake_open 1 importing 5 0; fake_open 2 importing 5 0; fake_set 0 5 k v} 2
        } {
            fake_cluster 3 0
            eval $setup
            cluster_run 0 "*>>> Fixing open slot 5\n*>>> $case *All 16384 slots covered.\n" fix [fake_address 0]
            assert_equal $owner [fake_slot 5]
            assert_equal {{} {} {}} [lmap node {0 1 2} {fake_state $node 5}]
            assert_equal [llength [regexp -all -inline fake_set $setup]] [llength [fake_keys $owner 5]]
            cluster_run 0 * check [fake_address 0]
        }
    }

    test {cluster manager: fix of an open slot with keys in two nodes loses none} {
        # Most keys are in the importing node, which becomes the owner: the old one must not delete its keys first.
        fake_cluster 3 0
        fake_open 0 migrating 5 1
        fake_open 1 importing 5 0
        fake_set 0 5 a 1
        fake_set 1 5 b 1
        fake_set 1 5 c 1
        cluster_run 0 "*Found keys about slot 5 in non-owner node [fake_address 1]!*Configuring [fake_address 1] as the slot owner\n*" fix [fake_address 0]
        assert_equal {1 {a b c}} [list [fake_slot 5] [fake_keys 1 5]]
        assert_equal {{} {} {}} [lmap node {0 1 2} {fake_state $node 5}]
        # Keys outside of owner and open nodes.
        fake_open 0 importing 5 1
        fake_set 2 5 d 1
        cluster_run 0 "*Found keys about slot 5 in node [fake_address 2]!*" fix [fake_address 0]
        assert_equal {1 {a b c d}} [list [fake_slot 5] [fake_keys 1 5]]
        assert_equal {{} {} {}} [lmap node {0 1 2} {fake_state $node 5}]
    }

    test {cluster manager: fix covers slots without, with one and with several holders} {
        fake_cluster 3 0
        foreach slot {10 11 12 13} {fake_disown $slot}
        fake_set 1 11 k v
        fake_set 0 12 a v
        fake_set 2 12 b v
        fake_set 2 12 c v
        assert_equal 1 [lindex [fake_run "" fix [fake_address 0]] 0]
        assert_equal {} [fake_slot 10]
        lassign [fake_run "yes\nyes\nyes\n" fix [fake_address 0]] status output
        assert_equal 0 $status
        has_line {[10],[13]} $output
        assert_match "*>>> Covering slot 11 with [fake_address 1]\n*>>> Covering slot 12 moving keys to [fake_address 2]\n*" $output
        assert_equal {1 2} [lmap slot {11 12} {fake_slot $slot}]
        assert_equal {a b c} [fake_keys 2 12]
        cluster_run 0 * check [fake_address 0]
    }

    test {cluster manager: fix of several owners moves their keys} {
        fake_cluster 3 0
        fake_set 0 5 a v
        fake_set 1 5 b v
        fake_set 1 5 c v
        cluster_run 0 "*Setting slot 5 owner: [fake_address 1]\n*" fix [fake_address 0] --cluster-search-multiple-owners
        assert_equal {1 {a b c}} [list [fake_slot 5] [fake_keys 1 5]]
        cluster_run 0 * check [fake_address 0] --cluster-search-multiple-owners
    }

    test {cluster manager: import} {
        fake_nodes 4
        for {set slot 0} {$slot < 16384} {incr slot} {fake_own $slot [expr {$slot % 3}]}
        foreach node {0 1 2} {set fake::state(alone,$node) 0}
        fake_plain 3
        foreach {slot name} {12182 foo 5061 bar 866 hello} {fake_set 3 $slot $name v}
        cluster_run 1 "*The source node should not be a cluster node.\n" import [fake_address 0] --cluster-from [fake_address 1]
        set output [cluster_run 0 * import [fake_address 0] --cluster-from [fake_address 3] --cluster-copy --cluster-from-user u --cluster-from-pass p]
        has_line {*** Importing 3 keys from DB 0} $output
        has_line "Migrating foo to [fake_address 2]: OK" $output
        assert_equal {{3 AUTH u p}} [fake_requests {* AUTH *}]
        foreach {slot name} {12182 foo 5061 bar 866 hello} {assert_equal $name [fake_keys [expr {$slot % 3}] $slot]}
        cluster_run 1 "*Source [fake_address 3] replied with error:\nERR Target instance replied with error: BUSYKEY*" import [fake_address 0] --cluster-from [fake_address 3]
        assert_equal 3 [llength [concat [fake_keys 3 12182] [fake_keys 3 5061] [fake_keys 3 866]]]
        cluster_run 0 * import [fake_address 0] --cluster-from [fake_address 3] --cluster-replace
        assert_equal {} [concat [fake_keys 3 12182] [fake_keys 3 5061] [fake_keys 3 866]]
    }

    test {cluster manager: backup} {
        fake_cluster 2 1
        set folder [file join [srv dir] backup]
        cluster_run 1 "*/nosuch is not a valid directory\n" backup [fake_address 0] /nosuch
        file mkdir $folder
        cluster_run 0 "*\\\[OK\\\] Backup created into: $folder\n" backup [fake_address 0] $folder
        foreach node {0 1} {
            assert_equal "RDB of node $node" [read_bytes [file join $folder valkey-node-127.0.0.1-[fake_port $node]-[fake_id $node].rdb]]
        }
        assert_match "*\"name\": \"[fake_id 0]\",\n*\"slots\": \\\[\\\[0,8191\\\]\\\],\n*\"replicate\": \"[fake_id 0]\"*" [read_bytes [file join $folder nodes.json]]
    }
    fake_end
}

start_server {tags {cluster tools tls:skip external:skip} overrides {cluster-enabled yes}} {
    test {cluster manager: a stopped node is named after the time limit of -t} {
        set pid [srv pid]
        exec kill -STOP $pid
        lassign [run_tool valkey-cli "" -t 1 --cluster check 127.0.0.1:[srv port]] status output
        exec kill -CONT $pid
        assert_equal 1 $status
        assert_match "*Node 127.0.0.1:[srv port]: does not reply*" $output
        assert_equal PONG [r ping]
    }
}
