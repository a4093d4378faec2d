# Clients that wait for keys when slots, roles or the state of the cluster change.

proc waiting {index command {readonly 0}} {
    set client [respConnect [srv -$index host] [srv -$index port] $::resp_version]
    lappend ::test_clients $client
    if {$readonly} {$client readonly}
    set id [$client client id]
    $client -send {*}$command
    wait_for_condition 200 10 {[string match "* flags=*b* *" [r -$index client list id $id]]}
    return $client
}

proc next_push {client} {return [expr {[resp3] ? [$client -push] : [$client -read]}]}

proc is_down {} {return "CLUSTERDOWN The cluster is down"}

start_cluster {3 3 {tags {cluster} overrides {repl-diskless-sync-delay 0 cluster-require-full-coverage no}}} {
    test {waits for keys of a slot that is unassigned end} {
        set list [waiting 0 {blpop b 0}]
        set stream [waiting 0 {xread block 0 streams b $}]
        set other [waiting 0 {blpop 06S 0}]
        set shard [connect]
        $shard -send ssubscribe b
        assert_equal {ssubscribe b 1} [next_push $shard]
        assert_equal OK [r cluster delslots 3300]
        foreach client [list $list $stream] {assert_error "CLUSTERDOWN Hash slot not served" {$client -read}}
        assert_equal {sunsubscribe b 0} [next_push $shard]
        # A client that unsubscribes nevertheless gets the confirmation that it waits for.
        $shard -send sunsubscribe b
        assert_equal {sunsubscribe b 0} [next_push $shard]
        $shard -send sunsubscribe
        assert_equal {sunsubscribe {} 0} [next_push $shard]
        assert_error "MOVED 13907 *" {r get 0}
        assert_equal OK [r cluster addslots 3300]
        assert_equal PONG [$list ping]
        r lpush 06S 1
        assert_equal {06S 1} [$other -read]
    }

    test {a request behind a wait that ends runs} {
        set client [waiting 0 {blpop b 0}]
        $client -send ping
        assert_equal OK [r cluster delslots 3300]
        assert_error "CLUSTERDOWN Hash slot not served" {$client -read}
        assert_equal PONG [$client -read]
        r cluster addslots 3300
        cluster_wait_agree
    }

    test {at a failover waits are redirected, reads of READONLY clients go on} {
        set port [srv -3 port]
        set clients [list [waiting 0 {blpop b 0}] [waiting 0 {xread block 0 streams b $}] [waiting 0 {blpop b 0} 1]]
        set reader [waiting 0 {xread block 0 streams b $} 1]
        set on_replica [waiting 3 {xread block 0 streams b $} 1]
        assert_equal OK [r -3 cluster failover]
        foreach client $clients {assert_error "MOVED 3300 127.0.0.1:$port" {$client -read}}
        cluster_wait_role 0 slave
        wait_for_condition 200 20 {[lindex [r -3 role] 0] eq "master"}
        set id [r -3 xadd b * f v]
        foreach client [list $reader $on_replica] {assert_match "b *$id*" [join [$client -read]]}
        r -3 del b
    }

    test {while a majority of the primaries is away waits end, and requests and scripts are refused} {
        set list [waiting 3 {blpop b 0}]
        set reader [waiting 0 {xread block 0 streams b $} 1]
        foreach i {1 2} {send_signal STOP [srv -$i pid]}
        assert_error [is_down] {$list -read}
        assert_error [is_down] {$reader -read}
        foreach command {{get b} {set b 1} {eval {return 1} 1 b}} {assert_error [is_down] {r -3 {*}$command}}
        foreach name {get incr} {
            assert_error "ERR Can not execute a command '$name' while the cluster is down script: *" \
                {r -3 eval "return redis.call('$name', 'b')" 0}
        }
        assert_equal PONG [r -3 ping]
        assert_equal 0 [r -3 spublish b x]
        r -3 config set cluster-allow-pubsubshard-when-down no
        assert_error [is_down] {r -3 spublish b x}
        r -3 config set cluster-allow-pubsubshard-when-down yes
    }

    test {cluster-allow-reads-when-down allows reads} {
        set writes "CLUSTERDOWN The cluster is down and only accepts read commands"
        r -3 config set cluster-allow-reads-when-down yes
        assert_equal {} [r -3 get b]
        foreach command {{set b 1} {blpop b 0.1} {eval "#!lua\nreturn 1" 1 b}} {assert_error $writes {r -3 {*}$command}}
        assert_equal 1 [r -3 eval {return 1} 1 b]
        assert_equal {} [r -3 eval {return redis.call('get', 'b')} 0]
        assert_error "ERR Can not execute a write command 'set' while the cluster is down and readonly script: *" \
            {r -3 eval {return redis.call('set', 'b', 1)} 0}
        assert_error "ERR Attempted to access a non local key in a cluster node script: *" {r -3 eval {return redis.call('get', 'a')} 0}
        assert_equal {} [r -3 xread block 10 streams b $]
        r -3 multi
        r -3 get b
        assert_error $writes {r -3 set b 1}
        assert_error "EXECABORT *" {r -3 exec}
        r -3 config set cluster-allow-reads-when-down no
        foreach i {1 2} {send_signal CONT [srv -$i pid]}
        cluster_wait_ok {0 3}
    }
}
