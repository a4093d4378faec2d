# One node of a cluster: its slots, their keys, and what it refuses.

proc no_slot {} {return "CLUSTERDOWN Hash slot not served"}
proc is_down {} {return "CLUSTERDOWN The cluster is down"}
proc several {} {return "CROSSSLOT Keys in request don't hash to the same slot"}
proc null_bulk {} {return [expr {[resp3] ? {null null} : {null bulk}}]}

proc wait_ok {} {wait_for_condition 200 50 {[cluster_field cluster_state] eq "ok"}}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-node-timeout 500 enable-debug-command yes}} {
    test {a new node knows itself and serves nothing} {
        assert_equal fail [cluster_field cluster_state]
        foreach {name value} {slots_assigned 0 known_nodes 1 size 0 current_epoch 0 my_epoch 0} {
            assert_equal $value [cluster_field cluster_$name]
        }
        set id [r cluster myid]
        assert {[regexp {^[0-9a-f]{40}$} $id]}
        assert_equal "$id 127.0.0.1:[srv port]@[expr {[srv port] + 10000}] myself,master - 0 0 0 connected\n" [r cluster nodes]
        assert_equal {} [r cluster slots]
        assert_equal 40 [string length [r cluster myshardid]]
        assert_equal 1 [info_field cluster_enabled]
    }

    test {a replica may tell the id of a node that is known, and only that} {
        assert_equal OK [r replconf set-cluster-node-id [r cluster myid]]
        assert_error "ERR Unknown node abc" {r replconf set-cluster-node-id abc}
    }

    test {commands with keys are refused, those without work} {
        foreach command {{get a} {set a 1} {exists x{t}a y{t}b} {object encoding a} {memory usage a} {watch a}} {
            assert_error [no_slot] {r {*}$command}
        }
        foreach command {{mget a b} {rename a b} {del a b} {watch a b} {copy a b}} {
            assert_error [several] {r {*}$command}
        }
        foreach command {ping dbsize {keys *} {scan 0} randomkey flushall {select 0} info multi discard} {r {*}$command}
        assert_error "ERR wrong number of arguments for 'get' command" {r get}
        assert_error "ERR DB index is out of range" {r select 1}
        assert_error "ERR SWAPDB is not allowed in cluster mode" {r swapdb 0 0}
    }

    test {CLUSTER KEYSLOT looks at the first non-empty tag} {
        assert_equal 15495 [r cluster keyslot a]
        assert_equal [r cluster keyslot user1000] [r cluster keyslot "\{user1000\}.following"]
        assert_equal [r cluster keyslot bar] [r cluster keyslot "foo\{bar\}\{zap\}"]
        assert_equal [r cluster keyslot "\{bar"] [r cluster keyslot "foo\{\{bar\}\}zap"]
        assert_not_equal [r cluster keyslot bar] [r cluster keyslot "foo\{\}\{bar\}"]
        assert_equal 0 [r cluster keyslot {}]
    }

    test {CLUSTER ADDSLOTS does all or nothing} {
        assert_error "ERR Slot 1 specified multiple times" {r cluster addslots 1 2 1}
        foreach slot {x -1 16384 1.5 {}} {
            assert_error "ERR Invalid or out of range slot" {r cluster addslots 1 $slot}
        }
        assert_equal 0 [cluster_field cluster_slots_assigned]
        assert_equal OK [r cluster addslots 1 2 7]
        assert_error "ERR Slot 7 is already busy" {r cluster addslots 6 7 8}
        assert_equal 3 [cluster_field cluster_slots_assigned]
        assert_match "* connected 1-2 7\n" [r cluster nodes]
    }

    test {CLUSTER ADDSLOTSRANGE} {
        assert_error "ERR wrong number of arguments for 'cluster|addslotsrange' command" {r cluster addslotsrange 1}
        assert_error "ERR wrong number of arguments for 'cluster|addslotsrange' command" {r cluster addslotsrange 1 2 3}
        assert_error "ERR start slot number 5 is greater than end slot number 4" {r cluster addslotsrange 5 4}
        assert_error "ERR Invalid or out of range slot" {r cluster addslotsrange 5 16384}
        assert_error "ERR Slot 7 is already busy" {r cluster addslotsrange 5 9}
        assert_error "ERR Slot 12 specified multiple times" {r cluster addslotsrange 10 12 12 14}
        assert_equal OK [r cluster addslotsrange 10 12 14 14]
        assert_match "* connected 1-2 7 10-12 14\n" [r cluster nodes]
    }

    test {CLUSTER DELSLOTS and DELSLOTSRANGE} {
        assert_error "ERR Slot 3 is already unassigned" {r cluster delslots 2 3}
        assert_error "ERR Slot 2 specified multiple times" {r cluster delslots 2 2}
        assert_error "ERR Slot 13 is already unassigned" {r cluster delslotsrange 10 14}
        assert_error "ERR wrong number of arguments for 'cluster|delslotsrange' command" {r cluster delslotsrange 1}
        assert_equal OK [r cluster delslots 2 7]
        assert_equal OK [r cluster delslotsrange 10 12]
        assert_match "* connected 1 14\n" [r cluster nodes]
    }

    test {CLUSTER SLOTS and SHARDS show the ranges} {
        set node [list 127.0.0.1 [srv port] [r cluster myid] {}]
        assert_equal [list [list 1 1 $node] [list 14 14 $node]] [r cluster slots]
        assert_equal OK [r cluster flushslots]
        assert_equal {} [r cluster slots]
        r cluster addslotsrange 0 16383
        assert_equal [list [list 0 16383 $node]] [r cluster slots]
        set shard [lindex [r cluster shards] 0]
        assert_equal {0 16383} [dict get $shard slots]
        assert_equal [r cluster myshardid] [dict get $shard id]
        set member [lindex [dict get $shard nodes] 0]
        foreach {name value} [list id [r cluster myid] port [srv port] ip 127.0.0.1 endpoint 127.0.0.1 role master health online] {
            assert_equal $value [dict get $member $name]
        }
    }

    test {the cluster is down until all slots are covered and the delay has passed} {
        if {[cluster_field cluster_state] eq "fail"} {
            assert_error [is_down] {r get a}
            assert_error [several] {r mget a b}
        }
        wait_ok
        assert_equal OK [r set a 1]
        assert_equal 1 [r get a]
    }

    test {keys of one request must be of one slot} {
        assert_error [several] {r mget a b}
        assert_error [several] {r del a b}
        assert_error [several] {r mset a 1 b 2}
        assert_error [several] {r rename a b}
        assert_equal 2 [r exists a a]
        r mset {{t}1} a {{t}2} b
        assert_equal {a b} [r mget {{t}1} {{t}2}]
        assert_equal OK [r rename {{t}1} {x{t}}]
        assert_equal 2 [r del {x{t}} {{t}2}]
    }

    test {all keys of a transaction must be of one slot} {
        r multi
        r set a 1
        r set b 1
        assert_error [several] {r exec}
        assert_error "ERR EXEC without MULTI" {r exec}
        r multi
        r set {{a}1} 1
        r get a
        assert_equal {OK 1} [r exec]
        r multi
        assert_error [several] {r mget a b}
        assert_error "EXECABORT Transaction discarded because of previous errors." {r exec}
        r multi
        r ping
        assert_equal PONG [r exec]
    }

    test {an unassigned slot is not served, but its keys are kept} {
        r set a 1
        r cluster delslots 15495
        assert_error [no_slot] {r get a}
        assert_error [no_slot] {r set a 2}
        assert_error [is_down] {r get b}
        assert_equal fail [cluster_field cluster_state]
        assert_range [r cluster countkeysinslot 15495] 1 2
        r multi
        assert_error [no_slot] {r get a}
        assert_error "EXECABORT*" {r exec}
        r cluster addslots 15495
        wait_ok
        assert_equal 1 [r get a]
    }

    test {a transaction whose slot is unassigned before EXEC} {
        r multi
        r set a 2
        set other [connect]
        $other cluster delslots 15495
        assert_error [no_slot] {r exec}
        $other cluster addslots 15495
        wait_ok
        assert_equal 1 [r get a]
    }

    test {without full coverage the other slots are served} {
        r config set cluster-require-full-coverage no
        r cluster delslots 15495
        wait_ok
        assert_error [no_slot] {r get a}
        assert_equal [null_bulk] [r -typed get b]
        r cluster addslots 15495
        r config set cluster-require-full-coverage yes
        wait_ok
    }

    test {reads may be allowed when the cluster is down} {
        r cluster delslots 15495
        wait_for_condition 100 20 {[cluster_field cluster_state] eq "fail"}
        r config set cluster-allow-reads-when-down yes
        assert_equal [null_bulk] [r -typed get b]
        assert_error "CLUSTERDOWN The cluster is down and only accepts read commands" {r set b 1}
        assert_error [no_slot] {r get a}
        r config set cluster-allow-reads-when-down no
        assert_error [is_down] {r get b}
        r cluster addslots 15495
        wait_ok
    }

    test {keys are counted, listed and flushed by slot} {
        r flushall
        set slot [r cluster keyslot {{t}}]
        for {set i 0} {$i < 200} {incr i} {
            r set "{t}:$i" $i
            r set other:$i $i
        }
        assert_equal 200 [r cluster countkeysinslot $slot]
        set keys [r cluster getkeysinslot $slot 1000]
        assert_equal 200 [llength [lsort -unique $keys]]
        foreach key $keys {assert_match "{t}:*" $key}
        assert_equal 10 [llength [r cluster getkeysinslot $slot 10]]
        assert_equal {} [r cluster getkeysinslot $slot 0]
        assert_equal {array {}} [r -typed cluster getkeysinslot 16383 10]
        assert_equal 400 [r dbsize]
        assert_equal 200 [llength [r keys "{t}*"]]
        assert_equal 200 [llength [r keys other:*]]
        r watch "{t}:1"
        set other [connect]
        assert_equal OK [$other cluster flushslot $slot]
        r multi
        r ping
        assert_equal {} [r exec]
        assert_equal 0 [r cluster countkeysinslot $slot]
        assert_equal 200 [r dbsize]
        assert_equal OK [r cluster flushslot $slot sync]
        assert_error "ERR syntax error" {r cluster flushslot $slot foo}
        assert_error "ERR Invalid or out of range slot" {r cluster flushslot x}
        foreach bad {-1 16384} {
            assert_error "ERR Invalid slot" {r cluster countkeysinslot $bad}
            assert_error "ERR Invalid slot or number of keys" {r cluster getkeysinslot $bad 1}
        }
        assert_error "ERR Invalid slot or number of keys" {r cluster getkeysinslot 1 -1}
        assert_error "ERR value is not an integer or out of range" {r cluster countkeysinslot x}
        assert_error "ERR value is not an integer or out of range" {r cluster getkeysinslot 1 x}
    }

    test {SCAN sees each key once, over all slots and within one} {
        r flushall
        for {set i 0} {$i < 500} {incr i} {r set key:$i $i}
        for {set i 0} {$i < 100} {incr i} {r set "{t}:$i" $i}
        foreach {words count} {{} 600 {match key:*} 500 {match {{t}:*}} 100 {match {{t}:1*}} 11 {match {*t*}} 100
                {match {{no}*}} 0 {match key:7} 1} {
            set names {}
            set cursor 0
            while 1 {
                lassign [r scan $cursor count 7 {*}$words] cursor some
                assert {$cursor < 2 ** 53}
                lappend names {*}$some
                if {$cursor == 0} break
            }
            assert_equal $count [llength $names] $words
            assert_equal $count [llength [lsort -unique $names]] $words
        }
    }

    test {expired keys are removed from every slot} {
        r flushall
        for {set i 0} {$i < 300} {incr i} {r set key:$i $i px 20}
        r set stays 1 ex 1000
        assert_match {keys=*,expires=*} [info_field db0]
        wait_for_condition 100 20 {[r dbsize] == 1}
        assert_match {keys=1,expires=1,*} [info_field db0]
        assert_equal stays [r randomkey]
    }

    test {a random mix over many slots agrees with a dict} {
        r flushall
        set model [dict create]
        for {set i 0} {$i < [scaled 3000]} {incr i} {
            set tag [random_below 5]
            set a "{$tag}:[random_below 20]"
            set b "{$tag}:[random_below 20]"
            set has [dict exists $model $a]
            switch [random_below 6] {
                0 - 1 {r set $a $i; dict set model $a $i}
                2 {assert_equal $has [r del $a]; dict unset model $a}
                3 {
                    if {!$has} continue
                    r rename $a $b
                    set value [dict get $model $a]
                    dict unset model $a
                    dict set model $b $value
                }
                4 {
                    if {$a eq $b} continue
                    assert_equal $has [r copy $a $b replace]
                    if {$has} {dict set model $b [dict get $model $a]}
                }
                5 {
                    set slot [r cluster keyslot $a]
                    set want [dict size [dict filter $model key "{$tag}:*"]]
                    assert_equal $want [r cluster countkeysinslot $slot]
                }
            }
        }
        assert_equal [dict size $model] [r dbsize]
        assert_equal [lsort [dict keys $model]] [lsort [r keys *]]
        dict for {key value} $model {assert_equal $value [r get $key]}
    }

    test {epochs} {
        assert_error "ERR value is not an integer or out of range" {r cluster set-config-epoch x}
        assert_error "ERR Invalid config epoch specified: -1" {r cluster set-config-epoch -1}
        assert_equal OK [r cluster set-config-epoch 5]
        assert_equal {5 5} [list [cluster_field cluster_my_epoch] [cluster_field cluster_current_epoch]]
        assert_error "ERR Node config epoch is already non-zero" {r cluster set-config-epoch 6}
        assert_equal "STILL 5" [r cluster bumpepoch]
    }

    test {what the directives announce} {
        r config set cluster-announce-hostname host.example
        r config set cluster-announce-port 4000
        r config set cluster-announce-bus-port 4001
        assert_match "* 127.0.0.1:4000@4001,host.example myself,master *" [r cluster nodes]
        set id [r cluster myid]
        assert_equal [list 127.0.0.1 4000 $id {hostname host.example}] [lindex [r cluster slots] 0 2]
        r config set cluster-preferred-endpoint-type hostname
        assert_equal [list host.example 4000 $id {ip 127.0.0.1}] [lindex [r cluster slots] 0 2]
        r config set cluster-announce-hostname ""
        assert_equal [list ? 4000 $id {ip 127.0.0.1}] [lindex [r cluster slots] 0 2]
        r config set cluster-preferred-endpoint-type unknown-endpoint
        assert_equal [list {} 4000 $id {ip 127.0.0.1}] [lindex [r cluster slots] 0 2]
        r config set cluster-preferred-endpoint-type ip
        r config set cluster-announce-port 0
        r config set cluster-announce-bus-port 0
        r config set cluster-announce-ip 10.0.0.1
        assert_match "* 10.0.0.1:[srv port]@* myself,master *" [r cluster nodes]
        r config set cluster-announce-ip ""
        assert_match "* 127.0.0.1:[srv port]@* myself,master *" [r cluster nodes]
    }

    test {what is announced is in the configuration file} {
        r config set cluster-announce-client-ipv4 10.1.2.3
        r config set cluster-announce-human-nodename node-a
        r config set cluster-announce-client-tls-port 7002
        assert_match "* :*@*,,client-tls-port=7002,client-ipv4=10.1.2.3,tls-port=*,nodename=node-a,shard-id=* myself,master *" \
            [file_text [srv dir]/nodes.conf]
        foreach name {client-ipv4 human-nodename} {r config set cluster-announce-$name ""}
        r config set cluster-announce-client-tls-port 0
    }

    test {CLUSTER refuses unknown subcommands} {
        assert_error "ERR wrong number of arguments for 'cluster' command" {r cluster}
        assert_error "ERR unknown subcommand 'foo'. Try CLUSTER HELP." {r cluster foo}
        assert_error "ERR Unknown node foo" {r cluster replicas foo}
        assert_equal {} [r cluster replicas [r cluster myid]]
        assert_match "CLUSTER <subcommand>*" [lindex [r cluster help] 0]
        assert_equal {OK OK} [list [r readonly] [r readwrite]]
    }

    test {a restarted node is the same node} {
        set id [r cluster myid]
        set shard [r cluster myshardid]
        r cluster delslots 1 3
        assert_equal OK [r cluster saveconfig]
        set nodes [r cluster nodes]
        restart_server
        assert_equal [list $id $shard] [list [r cluster myid] [r cluster myshardid]]
        assert_equal [regsub {:\d+@\d+} $nodes {}] [regsub {:\d+@\d+} [r cluster nodes] {}]
        assert_equal 16382 [cluster_field cluster_slots_assigned]
        assert_equal 5 [cluster_field cluster_my_epoch]
    }
}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-node-timeout 60000 cluster-require-full-coverage no
        cluster-databases 4}} {
    test {several databases of a node} {
        r cluster addslotsrange 0 16383
        wait_for_condition 400 50 {[cluster_field cluster_state] eq "ok"}
        r set a zero
        r select 3
        r set a three
        r set {{a}b} three
        assert_equal 2 [r cluster countkeysinslot 15495]
        assert_equal {a {{a}b}} [lsort [r cluster getkeysinslot 15495 10]]
        assert_equal 1 [r copy a a db 2]
        assert_equal 1 [r move {{a}b} 2]
        assert_error "ERR DB index is out of range" {r select 4}
        assert_error "ERR SWAPDB is not allowed in cluster mode" {r swapdb 0 1}
        assert_equal OK [r cluster flushslot 15495]
        assert_equal 0 [r dbsize]
        r select 0
        assert_equal 0 [r dbsize]
    }

    test {slots of other nodes: MOVED} {
        r flushall
        set id [string repeat a 40]
        set file [srv dir]/nodes.conf
        stop_server
        set text [file_text $file]
        regsub {connected 0-16383} $text {connected 0-8191} text
        set other "$id 127.0.0.1:7999@17999,other.example,tls-port=0,shard-id=[string repeat b 40] master - 0 1700000000000 6 connected 8192-16382"
        set channel [open $file w]
        puts -nonewline $channel [string map [list "vars current" "$other\nvars current"] $text]
        close $channel
        restart_server
        wait_for_condition 400 50 {[cluster_field cluster_state] eq "ok"}
        assert_equal 2 [cluster_field cluster_known_nodes]
        assert_equal 2 [cluster_field cluster_size]
        assert_error "MOVED 15495 127.0.0.1:7999" {r get a}
        assert_error "MOVED 15495 127.0.0.1:7999" {r set a 1}
        assert_error [several] {r mget a b}
        assert_equal OK [r set b 1]
        r multi
        r get b
        assert_error "MOVED 15495 127.0.0.1:7999" {r get a}
        assert_error "EXECABORT*" {r exec}
        r config set cluster-preferred-endpoint-type hostname
        assert_error "MOVED 15495 other.example:7999" {r get a}
        r config set cluster-preferred-endpoint-type unknown-endpoint
        assert_error "MOVED 15495 :7999" {r get a}
        r config set cluster-preferred-endpoint-type ip
        assert_equal [list 8192 16382 [list 127.0.0.1 7999 $id {hostname other.example}]] [lindex [r cluster slots] 1]
        assert_error "ERR The user can assign a config epoch only when the node does not know any other node." \
            {r cluster set-config-epoch 9}
        assert_equal "BUMPED 7" [r cluster bumpepoch]
    }

    test {CLUSTER RESET is refused while there are keys, and with other arguments} {
        assert_equal 1 [r dbsize]
        foreach words {{} hard SOFT} {
            assert_error "ERR CLUSTER RESET can't be called with master nodes containing keys" {r cluster reset {*}$words}
        }
        assert_error "ERR syntax error" {r cluster reset x}
        assert_error "ERR unknown subcommand or wrong number of arguments for 'reset'. Try CLUSTER HELP." \
            {r cluster reset hard x}
        assert_equal {2 16383} [list [cluster_field cluster_known_nodes] [cluster_field cluster_slots_assigned]]
        r flushall
    }

    test {CLUSTER RESET forgets nodes and slots, HARD id and epochs as well, and the file has it} {
        set id [r cluster myid]
        set shard [r cluster myshardid]
        assert_equal OK [r cluster reset]
        assert_equal "$id 127.0.0.1:[srv port]@[expr {[srv port] + 10000}] myself,master - 0 0 7 connected\n" [r cluster nodes]
        assert_not_equal $shard [set second [r cluster myshardid]]
        assert_equal {fail 0 7} [list [cluster_field cluster_state] [cluster_field cluster_slots_assigned] \
            [cluster_field cluster_current_epoch]]
        assert_error "CLUSTERDOWN Hash slot not served" {r get a}
        r cluster addslots 1
        r multi
        r cluster reset HARD
        assert_equal OK [r exec]
        assert_not_equal $id [set new [r cluster myid]]
        assert_not_equal $second [r cluster myshardid]
        foreach {name value} {slots_assigned 0 known_nodes 1 size 0 current_epoch 0 my_epoch 0} {
            assert_equal $value [cluster_field cluster_$name]
        }
        restart_server
        assert_equal $new [r cluster myid]
        assert_equal 1 [cluster_field cluster_known_nodes]
        r cluster addslotsrange 0 16383
        wait_ok
        assert_equal OK [r set a 1]
    }
}

start_server {tags {cluster} overrides {cluster-enabled yes}} {
    test {a damaged configuration file is an error that names the line} {
        set file [srv dir]/nodes.conf
        stop_server
        file delete $file.bak
        set text [file_text $file]
        foreach {from to words} {
            master king {(line 1)}
            connected {connected 16384} {(line 1)}
            {vars currentEpoch} {vars currentEpoch x} {(line 2)}
            myself, {} {no line with the flag 'myself'}
        } {
            write_bytes $file [string map [list $from $to] $text]
            catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
            assert_match "*Unrecoverable error: corrupted cluster config file \"nodes.conf\": *$words*" "$said[file_text [srv stdout]]"
        }
        write_bytes $file $text
        restart_server
        assert_equal PONG [r ping]
    }
}

start_server {tags {cluster}} {
    test {without cluster-enabled there are only slots of keys} {
        assert_equal 15495 [r cluster keyslot a]
        foreach command {info nodes slots shards myid {addslots 1} {countkeysinslot 1} reset help} {
            assert_error "ERR This instance has cluster support disabled" {r cluster {*}$command}
        }
        assert_equal {OK OK} [list [r readonly] [r readwrite]]
        assert_equal OK [r mset a 1 b 2]
    }
}
