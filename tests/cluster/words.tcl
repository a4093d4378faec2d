# What CLUSTER replies about other nodes, and what it refuses: a node that knows others only from its
# configuration file.

proc id_of {letter} {return [string repeat $letter 40]}
proc unknown {} {return "ERR Unknown node"}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-node-timeout 60000}} {
    restart_as [list [node_line [id_of a] [srv port] myself,master - 1 0-5460] [node_line [id_of b] 7001 master - 2 5461-10922] \
        [node_line [id_of c] 7002 slave [id_of b] 2] [node_line [id_of d] 7003 master - 3 10923-16383]]
    cluster_wait_ok 0

    test {CLUSTER FORGET refuses what it cannot forget} {
        foreach words {{} {a b}} {
            assert_error "ERR wrong number of arguments for 'cluster|forget' command" {r cluster forget {*}$words}
        }
        foreach id [list x "" [id_of e] [id_of a]0 [string toupper [id_of a]]] {
            assert_error "[unknown] $id" {r cluster forget $id}
        }
        assert_error "ERR I tried hard but I can't forget myself..." {r cluster forget [id_of a]}
        assert_equal 4 [cluster_field cluster_known_nodes]
    }

    test {CLUSTER FORGET unassigns the slots of the node, its replicas have no known primary} {
        r config set cluster-require-full-coverage no
        assert_equal OK [r cluster forget [id_of b]]
        assert_equal {3 10922} [list [cluster_field cluster_known_nodes] [cluster_field cluster_slots_assigned]]
        assert_equal {} [cluster_line [id_of b]]
        assert_equal - [lindex [cluster_line [id_of c]] 3]
        assert_error "CLUSTERDOWN Hash slot not served" {r get key1}
        assert_equal 0 [string match "*[id_of b] 127.0.0.1*" [file_text [srv dir]/nodes.conf]]
        assert_error "[unknown] [id_of b]" {r cluster replicas [id_of b]}
    }

    test {CLUSTER FORGET of a node that was just forgotten is OK, until the time is over} {
        assert_equal OK [r cluster forget [id_of b]]
        r config set cluster-blacklist-ttl 0
        assert_equal OK [r cluster forget [id_of c]]
        assert_error "[unknown] [id_of c]" {r cluster forget [id_of c]}
        foreach ttl {-9223372036854775808 9223372036854775807} {r config set cluster-blacklist-ttl $ttl}
        assert_equal OK [r cluster forget [id_of d]]
        assert_equal OK [r cluster forget [id_of d]]
        assert_equal 1 [cluster_field cluster_known_nodes]
    }

    test {CLUSTER RESET forgets which nodes were forgotten} {
        assert_equal OK [r cluster reset]
        assert_error "[unknown] [id_of d]" {r cluster forget [id_of d]}
    }

    test {CLUSTER COUNT-FAILURE-REPORTS} {
        foreach words {{} {a b}} {
            assert_error "ERR wrong number of arguments for 'cluster|count-failure-reports' command" \
                {r cluster count-failure-reports {*}$words}
        }
        assert_error "[unknown] x" {r cluster count-failure-reports x}
        assert_equal 0 [r cluster count-failure-reports [r cluster myid]]
    }
}

start_server {tags {cluster} overrides {cluster-enabled yes cluster-node-timeout 60000 cluster-replica-no-failover yes}} {
    restart_as [list [node_line [id_of a] [srv port] myself,slave [id_of b] 1] [node_line [id_of b] 7001 master - 2 0-16383] \
        [node_line [id_of c] 7002 master - 3]]

    test {replicas neither assign slots nor have an epoch of their own} {
        foreach words {{addslots 1} {delslots 1} {addslotsrange 1 2} {delslotsrange 1 2} {addslots x}} {
            assert_error "ERR This node is a replica: slots are assigned on primaries" {r cluster {*}$words}
        }
        assert_error "ERR wrong number of arguments for 'cluster|addslots' command" {r cluster addslots}
        assert_error "ERR This node is a replica: its epoch is that of its primary" {r cluster bumpepoch}
        assert_equal 16384 [cluster_field cluster_slots_assigned]
        assert_equal OK [r cluster flushslots]
        assert_equal 16384 [cluster_field cluster_slots_assigned]
        assert_equal 2 [cluster_field cluster_my_epoch]
    }

    test {a replica does not forget its primary} {
        assert_error "ERR Can't forget my master!" {r cluster forget [id_of b]}
        assert_equal OK [r cluster forget [id_of c]]
    }
}

start_server {tags {cluster} overrides {cluster-enabled yes}} {
    test {a node that no other has told its address shows the one that the client has used} {
        r cluster addslots 0
        assert_match "* 127.0.0.1:[srv port]@* myself,*" [r cluster nodes]
        assert_equal 127.0.0.1 [lindex [r cluster slots] 0 2 0]
        assert_match "*ip 127.0.0.1 endpoint 127.0.0.1*" [r cluster shards]
        r cluster delslots 0
    }

    test {INFO counts two connections to each known node, also while they are in the making} {
        assert_equal 0 [info_field cluster_connections]
        r cluster meet 127.0.0.1 1 2
        assert_equal 2 [info_field cluster_connections]
    }

    test {CONFIG SET of what a node tells about itself counts at once} {
        r config set cluster-replica-no-failover yes
        assert_match "* myself,master,nofailover *" [r cluster nodes]
        assert_match "* myself,master,nofailover *" [file_text [srv dir]/nodes.conf]
        r config set cluster-replica-no-failover no
        assert_match "* myself,master - *" [r cluster nodes]
        set port [free_port]
        r config set port $port
        set c [respConnect [srv host] $port $::resp_version]
        lappend ::test_clients $c
        assert_match "* 127.0.0.1:$port@[expr {[srv port] + 10000}] myself,*" [$c cluster nodes]
        $c config set port [srv port]
    }

    test {names that are announced are refused with a NUL byte} {
        foreach {name why} {
            cluster-announce-human-nodename {Announced human node name contained invalid character}
            cluster-announce-ip {cluster-announce-ip contains invalid character}
        } {
            assert_error "ERR CONFIG SET failed (possibly related to argument '$name') - $why" {r config set $name "a\0b"}
        }
        foreach name {proc-title-template replica-announce-ip availability-zone tls-cert-file} {
            assert_error "ERR CONFIG SET failed (possibly related to argument '$name') - $name contains invalid character" {r config set $name "a\0b"}
        }
        assert_error "*Invalid IPv4 address" {r config set cluster-announce-client-ipv4 "127.0.0.1\0x"}
        assert_error "*Invalid IPv6 address" {r config set cluster-announce-client-ipv6 "::1\0x"}
    }

    test {CLUSTER HELP has the words of a released server} {
        set words {}
        foreach line [lrange [r cluster help] 1 end-2] {
            if {![string match " *" $line]} {lappend words [lindex $line 0]}
        }
        assert_equal [list {*}{COUNTKEYSINSLOT GETKEYSINSLOT INFO KEYSLOT MYID MYSHARDID NODES REPLICAS SLOTS SLOT-STATS SHARDS ADDSLOTS
            ADDSLOTSRANGE BUMPEPOCH COUNT-FAILURE-REPORTS DELSLOTS DELSLOTSRANGE FAILOVER FORGET FLUSHSLOTS MEET REPLICATE RESET
            SET-CONFIG-EPOCH SETSLOT SAVECONFIG LINKS MIGRATESLOTS CANCELSLOTMIGRATIONS GETSLOTMIGRATIONS}] $words
    }
}

start_server {tags {cluster}} {
    test {without cluster-enabled the words on nodes are refused after their arity} {
        foreach words {{forget x} {count-failure-reports x} bumpepoch {addslots x} help} {
            assert_error "ERR This instance has cluster support disabled" {r cluster {*}$words}
        }
        assert_error "ERR wrong number of arguments for 'cluster|forget' command" {r cluster forget}
    }
}
