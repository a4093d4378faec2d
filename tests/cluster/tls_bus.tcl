# The bus over TLS, with tls-cluster.

set certs [make_certificates [file join $::job_dir certs]]
set other [make_certificates [file join $::job_dir other]]
set settings [list tls-port free tls-cluster yes tls-replication yes tls-cert-file $certs/server.crt tls-key-file $certs/server.key \
    tls-ca-cert-file $certs/ca.crt]

start_cluster [list 3 1 [list tags {cluster tls:skip} overrides $settings]] {
    test {clients with and without TLS are redirected to ports with and without it} {
        assert_error "MOVED 15495 127.0.0.1:[srv -2 port]" {r get a}
        set client [respConnect 127.0.0.1 [lindex [r config get tls-port] 1] $::resp_version \
            [list -cafile $certs/ca.crt -certfile $certs/client.crt -keyfile $certs/client.key]]
        assert_error "MOVED 15495 127.0.0.1:[lindex [r -2 config get tls-port] 1]" {$client get a}
        $client -close
    }

    test {the gateway's links use TLS, and so does cluster-gateway-tls-port, whose certificates are users} {
        set plain [free_port]
        set encrypted [free_port]
        r config set cluster-gateway-port $plain cluster-gateway-tls-port $encrypted
        assert_match "*listener5:name=gateway-tls,*port=$encrypted*" [r info server]
        set tls [list -cafile $certs/ca.crt -certfile $certs/client.crt -keyfile $certs/client.key]
        foreach client [list [respConnect 127.0.0.1 $plain $::resp_version] [respConnect 127.0.0.1 $encrypted $::resp_version $tls]] {
            foreach key {a b c} {assert_equal OK [$client set $key 1]}
            assert_equal {1 1 1} [$client mget a b c]
            assert_equal 3 [$client del a b c]
            $client -close
        }
        set name [regsub {^.*CN ?= ?} [exec openssl x509 -noout -subject -in $certs/client.crt] {}]
        for {set i 0} {$i < 3} {incr i} {r -$i acl setuser $name on resetkeys ~theirs:* +@all}
        r config set tls-auth-clients-user CN
        set client [respConnect 127.0.0.1 $encrypted $::resp_version $tls]
        assert_equal $name [$client acl whoami]
        foreach key {theirs:a theirs:b theirs:c} {
            assert_equal OK [$client set $key 1]
            assert_error "NOPERM *" {$client get x$key}
        }
        assert_match "*user=$name *" [r client list]
        $client -close
        r config set tls-auth-clients-user off cluster-gateway-port 0 cluster-gateway-tls-port 0
        for {set i 0} {$i < 3} {incr i} {r -$i acl deluser $name}
        foreach port [list $plain $encrypted] {assert {[catch {respConnect 127.0.0.1 $port 2}]}}
    }

    test {messages of pub/sub travel over TLS} {
        set s [raw_connect [srv -2 host] [srv -2 port]]
        raw_send $s "SUBSCRIBE news\r\n"
        assert_match *subscribe*news*:1* [raw_reply $s]
        r publish news hello
        assert_match *message*news*hello* [raw_reply $s]
        raw_close $s
    }

    test {slots move over TLS to another node and back} {
        r set "{06S}1" a
        r hset "{06S}2" f v
        foreach {from to} {0 1 1 0} {
            set name [move $from $to 0 0]
            wait_job $from success $name
            wait_job $to success $name
            assert_equal {a v} [list [r -$to get "{06S}1"] [r -$to hget "{06S}2" f]]
            wait_for_condition 500 20 {[r -$from cluster countkeysinslot 0] == 0}
            set port [lindex [r -$to config get tls-port] 1]
            assert_match "*Connecting slot migration *$name*(ip: 127.0.0.1, port $port)*" [server_log -$from]
        }
    }

    test {a job whose target does not trust this node fails with the reason} {
        r config set tls-cert-file $other/server.crt tls-key-file $other/server.key tls-ca-cert-file $other/ca.crt
        set name [move 0 1 0 0]
        wait_job 0 failed $name
        assert_match "Unable to connect to target node: *" [job_message 0 $name]
        r config set tls-cert-file $certs/server.crt tls-key-file $certs/server.key tls-ca-cert-file $certs/ca.crt
        wait_job 0 success [move 0 1 0 0]
        wait_job 1 success [move 1 0 0 0]
        cluster_wait_ok
    }

    test {a replica takes over, and the old primary follows it} {
        assert_equal OK [r -3 cluster failover]
        cluster_wait_role 3 master
        cluster_wait_role 0 slave
        cluster_wait_agree
    }

    test {a connection without TLS to the bus port is closed} {
        set s [raw_connect 127.0.0.1 [lindex [r config get cluster-port] 1]]
        raw_send $s "RCmb[string repeat x 3000]"
        assert_equal "" [raw_rest $s]
        raw_close $s
        cluster_wait_ok
    }
}

start_server [list tags {cluster tls:skip needs:config} overrides [dict merge [list cluster-enabled yes tls-port [set port [free_port]]] [dict remove $settings tls-port]]] {
    test {without cluster-port the bus port follows from that of TLS} {
        wait_for_condition 200 20 {[string match "*@[expr {$port + 10000}]*" [r cluster nodes]]}
        raw_close [raw_connect 127.0.0.1 [expr {$port + 10000}]]
    }
}

# The other end of a connection has no certificate, or one of another authority.
start_server [list tags {cluster tls:skip needs:config} overrides [dict merge $::cluster_defaults $settings [list tls-port [free_port] cluster-port [free_port] cluster-node-timeout 1000 cluster-require-full-coverage no]]] {
start_server [list tags {cluster tls:skip needs:config} overrides [dict merge $::cluster_defaults [list cluster-port [free_port] cluster-node-timeout 1000]]] {
    test {a node without TLS stays out} {
        foreach {from to} {0 1 1 0} {r -$from cluster meet 127.0.0.1 1 [lindex [r -$to config get cluster-port] 1]}
        foreach i {0 1} {wait_for_condition 400 50 {[string match "*# Clusterbus handshake timeout *" [server_log -$i]]}}
        foreach i {0 1} {wait_for_condition 400 50 {[cluster_field -$i cluster_known_nodes] == 1}}
    }
}
}
