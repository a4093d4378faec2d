# cluster-shared-acl and cluster-shared-functions: what one node changes, all have.

set secret [string repeat 0123456789abcdef 4]
set options [list tags {cluster needs:config} overrides [list cluster-bus-secret $secret cluster-shared-acl yes cluster-shared-functions yes cluster-node-timeout 4000 repl-diskless-sync-delay 0 save {}]]

proc library {name {value 1} {function {}}} {
    if {$function eq ""} {set function f_$name}
    return "#!lua name=$name\nserver.register_function{function_name='$function', callback=function() return $value end, flags={'no-writes'}}"
}

# The rules of a user without its name; empty: there is none.
proc user_rules {i name} {
    foreach line [r -$i acl list] {
        if {[lindex $line 0] eq "user" && [lindex $line 1] eq $name} {return [lrange $line 2 end]}
    }
    return {}
}

proc library_names {i} {return [lsort [lmap l [r -$i function list] {dict get [dict merge $l] library_name}]]}

proc scan_length {header} {
    binary scan $header x4I length
    return $length
}

# Until `script` returns the same value, which is not empty, on these nodes.
proc all_equal {nodes expected script} {
    foreach i $nodes {
        wait_for_condition 600 50 {[apply [list i $script] $i] eq $expected} else {
            fail "node $i: [apply [list i $script] $i], expected $expected\n[r -$i cluster info]"
        }
    }
}

proc shared_equal {{nodes {}}} {
    set nodes [cluster_indexes $nodes]
    wait_for_condition 600 50 {[llength [lsort -unique [lmap i $nodes {cluster_field -$i cluster_shared_digest}]]] == 1
        && [lsort -unique [lmap i $nodes {cluster_field -$i cluster_shared_unapplied}]] eq "0"} else {
        fail "different: [lmap i $nodes {list [cluster_field -$i cluster_shared_digest] [cluster_field -$i cluster_shared_unapplied]}]"
    }
    assert_equal 1 [llength [lsort -unique [lmap i $nodes {r -$i acl digest}]]]
}

# Nodes hear nothing of each other while `code` runs. Nobody is marked as failed for that.
proc separated {nodes code} {
    foreach i $nodes {
        r -$i config set cluster-node-timeout 60000
        r -$i debug drop-cluster-packet-filter -2
    }
    try {uplevel 1 $code} finally {foreach i $nodes {r -$i debug drop-cluster-packet-filter -1}}
    shared_equal $nodes
    foreach i $nodes {r -$i config set cluster-node-timeout 4000}
    cluster_wait_ok
}

proc log_count {i pattern} {return [regexp -all -- $pattern [server_log -$i]]}

start_cluster [list 3 3 $options] {
    foreach i {1 3} {
        with_node $i stop_server
        upvar #0 [lindex $::servers $i] node
        write_bytes $node(dir)/users.acl "user default on nopass ~* &* +@all\n"
        set node(settings) [dict merge $node(settings) [list aclfile users.acl]]
        with_node $i continue_server
    }
    cluster_wait_ok

    test {a user that any node adds, changes or removes is the same on all nodes} {
        for {set i 0} {$i < 6} {incr i} {
            r -$i acl setuser u$i on >pw$i ~k$i* +get
            all_equal {0 1 2 3 4 5} [user_rules $i u$i] [format {user_rules $i u%d} $i]
        }
        for {set i 0} {$i < 6} {incr i} {
            set other [expr {($i + 1) % 6}]
            r -$other acl setuser u$i +set
            all_equal {0 1 2 3 4 5} [user_rules $other u$i] [format {user_rules $i u%d} $i]
            assert_match {*+set*} [user_rules 0 u$i]
        }
        r -4 acl deluser u0 u1 u2 u3 u4
        all_equal {0 1 2 3 4 5} {default u5} {r -$i acl users}
        shared_equal
        assert_equal 5 [cluster_field -3 cluster_shared_deleted]
        assert_equal {} [cluster_field -3 cluster_shared_not_covered]
        assert_equal ok [cluster_field -3 cluster_shared_state]
        assert_equal 0 [cluster_field -3 cluster_shared_conflicts]
    }

    test {a password that one node sets, and a session of a user that another one removes} {
        set c [respConnect [srv -2 host] [srv -2 port] 2]
        assert_equal OK [$c auth u5 pw5]
        r -0 acl setuser u5 >other
        all_equal {2} [user_rules 0 u5] {user_rules $i u5}
        set d [respConnect [srv -2 host] [srv -2 port] 2]
        assert_equal OK [$d auth u5 other]
        r -1 acl deluser u5
        all_equal {0 1 2 3 4 5} {default} {r -$i acl users}
        assert_error * {$c ping}
        assert_error "WRONGPASS*" {[respConnect [srv -2 host] [srv -2 port] 2] auth u5 other}
    }

    test {roles, and users that hold them, wherever they come from} {
        r -0 acl setrole reader ~* +@read
        all_equal {5} reader {r -$i acl roles}
        r -5 acl setuser anna on nopass role=reader
        all_equal {0 1 2 3 4 5} [user_rules 5 anna] {user_rules $i anna}
        r -1 acl setrole reader +ping
        all_equal {0 1 2 3 4 5} OK {r -$i acl dryrun anna ping}
        r -2 acl deluser anna
        all_equal {0 1 2 3 4 5} default {r -$i acl users}
        r -3 acl delrole reader
        all_equal {0 1 2 3 4 5} {} {r -$i acl roles}
        shared_equal
    }

    test {functions reach all primaries, and their replicas by the stream} {
        r -0 function load [library one]
        r -1 function load [library two]
        all_equal {0 1 2 3 4 5} {one two} {library_names $i}
        r -2 function load replace [library one 2]
        for {set i 0} {$i < 6} {incr i} {wait_for_condition 600 50 {[r -$i fcall_ro f_one 0] == 2} else {fail "node $i"}} 
        r -2 function delete one
        all_equal {0 1 2 3 4 5} two {library_names $i}
        set dump [r -0 function dump]
        r -1 function flush
        all_equal {0 1 2 3 4 5} {} {library_names $i}
        r -2 function restore $dump
        all_equal {0 1 2 3 4 5} two {library_names $i}
        shared_equal
    }

    test {ACL LOAD makes the cluster as the file is} {
        r -0 acl setuser kept on nopass +get
        r -0 acl setuser gone on nopass +get
        all_equal {3} {default gone kept} {r -$i acl users}
        write_bytes [srv -3 dir]/users.acl "user kept on nopass +set\nuser new on nopass +ping\n"
        assert_equal OK [r -3 acl load]
        all_equal {0 1 2 3 4 5} {default kept new} {r -$i acl users}
        all_equal {0 1 2 3 4 5} [user_rules 3 kept] {user_rules $i kept}
        assert_match {*+set*} [user_rules 0 kept]
        r -0 acl deluser kept new
        all_equal {0 1 2 3 4 5} default {r -$i acl users}
    }

    test {a deleted user stays deleted when a node restarts whose ACL file has it, and others return from its own file} {
        r -0 acl setuser ghost on nopass ~* +@all
        r -0 acl setuser lasting on nopass ~a* +get
        all_equal {1} {default ghost lasting} {r -$i acl users}
        r -1 acl save
        with_node 1 stop_server
        r -0 acl deluser ghost
        all_equal {0 2 3 4 5} {default lasting} {r -$i acl users}
        with_node 1 continue_server
        cluster_wait_ok
        all_equal {0 1 2 3 4 5} {default lasting} {r -$i acl users}
        shared_equal
        # It has what it wrote itself, also without the others.
        assert_equal 1 [file exists [srv -1 dir]/nodes.conf.shared]
        assert_equal 00600 [file attributes [srv -1 dir]/nodes.conf.shared -permissions]
        write_bytes [srv -1 dir]/users.acl "user default on nopass ~* &* +@all\nuser ghost on nopass +@all\n"
        for {set i 0} {$i < 6} {incr i} {with_node $i stop_server}
        with_node 1 continue_server
        assert_equal {default lasting} [r -1 acl users]
        foreach i {0 2 3 4 5} {with_node $i continue_server}
        cluster_wait_ok
        all_equal {0 1 2 3 4 5} {default lasting} {r -$i acl users}
        all_equal {0 1 2 3 4 5} two {library_names $i}
        assert_equal 0 [cluster_field -1 cluster_shared_conflicts]
    }

    test {a revocation wins over later grants of nodes that did not know of it, and is logged} {
        r -0 acl setuser bob on nopass ~* +get +set
        all_equal {0 1 2 3 4 5} [user_rules 0 bob] {user_rules $i bob}
        separated {0 1 2 3 4 5} {
            r -0 acl setuser bob -set
            for {set n 0} {$n < 3} {incr n} {r -1 acl setuser bob +del +strlen +ping}
            r -1 acl setuser bob +mget
        }
        for {set i 0} {$i < 6} {incr i} {
            all_equal $i [user_rules 0 bob] {user_rules $i bob}
            assert_match "User bob has no permissions*" [r -$i acl dryrun bob set k v]
            assert_match "User bob has no permissions*" [r -$i acl dryrun bob del k]
            assert_range [log_count $i "The shared user 'bob' was changed on nodes that did not know"] 1 3
        }
        # The next change has seen both.
        r -4 acl setuser bob +set
        all_equal {0 1 2 3 4 5} [user_rules 4 bob] {user_rules $i bob}
        assert_equal OK [r -0 acl dryrun bob set k v]
    }

    test {the other way round: the revocation is the later one, and one that is followed by a grant} {
        separated {0 1 2 3 4 5} {
            r -1 acl setuser bob +del
            r -0 acl setuser bob -set
            r -0 acl setuser bob +strlen
        }
        all_equal {0 1 2 3 4 5} [user_rules 0 bob] {user_rules $i bob}
        assert_match "User bob has no permissions*" [r -5 acl dryrun bob set k v]
        assert_equal OK [r -5 acl dryrun bob strlen k]
    }

    test {DELUSER and off win over a grant; DELUSER wins over off} {
        foreach name {carl dora emil} {
            r -0 acl setuser $name on nopass ~* +get
            all_equal {0 1 2 3 4 5} [user_rules 0 $name] [format {user_rules $i %s} $name]
        }
        separated {0 1 2 3 4 5} {
            r -2 acl deluser carl
            r -0 acl setuser carl +@all
            r -2 acl setuser dora off
            r -3 acl setuser dora +@all
            r -4 acl deluser emil
            r -5 acl setuser emil off
        }
        for {set i 0} {$i < 6} {incr i} {
            assert_equal {} [user_rules $i carl]
            assert_equal {} [user_rules $i emil]
            assert_match {off *} [user_rules $i dora]
        }
        r -0 acl deluser bob dora lasting
        all_equal {0 1 2 3 4 5} default {r -$i acl users}
    }

    test {of two grants, and of two versions of a library, the later one is chosen} {
        r -0 acl setuser fred on nopass ~* +get
        all_equal {0 1 2 3 4 5} [user_rules 0 fred] {user_rules $i fred}
        separated {0 1 2 3 4 5} {
            r -0 acl setuser fred +set
            r -0 function load replace [library two 20]
            # Clocks of nodes are those of one machine here, so only the order matters.
            set at [clock milliseconds]
            wait_for_condition 3000 10 {[clock milliseconds] > $at + 1}
            r -1 acl setuser fred +del
            r -1 function load replace [library two 30]
        }
        all_equal {0 1 2 3 4 5} [user_rules 1 fred] {user_rules $i fred}
        assert_match "User fred has no permissions*" [r -0 acl dryrun fred set k v]
        for {set i 0} {$i < 6} {incr i} {wait_for_condition 600 50 {[r -$i fcall_ro f_two 0] == 30} else {fail "node $i"}} 
        r -0 acl deluser fred
        all_equal {0 1 2 3 4 5} default {r -$i acl users}
    }

    test {two libraries with one function, made apart: each node keeps one until the other one is deleted} {
        foreach i {0 1 2 3 4 5} {
            r -$i config set cluster-node-timeout 60000
            r -$i debug drop-cluster-packet-filter -2
        }
        r -0 function load [library alpha 1 f_both]
        r -1 function load [library beta 2 f_both]
        foreach i {0 1 2 3 4 5} {r -$i debug drop-cluster-packet-filter -1}
        foreach i {0 1 2} {wait_for_condition 600 50 {[cluster_field -$i cluster_shared_unapplied] == 1} else {fail "node $i"}}
        all_equal 0 {alpha two} {library_names $i}
        all_equal 1 {beta two} {library_names $i}
        assert_match "*# The shared library 'beta' cannot be applied: *f_both already exists*" [server_log -0]
        r -0 function delete alpha
        all_equal {0 1 2 3 4 5} {beta two} {library_names $i}
        r -2 function delete beta
        shared_equal
        all_equal {0 1 2 3 4 5} two {library_names $i}
        foreach i {0 1 2 3 4 5} {r -$i config set cluster-node-timeout 4000}
        cluster_wait_ok
    }

    test {a node that switches it off and on takes what the others have} {
        assert_equal OK [r -0 config set cluster-shared-acl no]
        # What is changed while it is off is replaced by what the others have.
        r -0 acl setuser lone on nopass +@all
        r -1 acl setuser lone on nopass +get
        r -1 acl setuser other on nopass +get
        all_equal {1 2 3 4 5} {default lone other} {r -$i acl users}
        assert_equal {default lone} [r -0 acl users]
        wait_for_condition 600 50 {[cluster_field -1 cluster_shared_not_covered] eq [cluster_id 0]}
        assert_equal {} [cluster_field -0 cluster_shared_not_covered]
        assert_equal OK [r -0 config set cluster-shared-acl yes]
        all_equal {0 1 2 3 4 5} [user_rules 1 lone] {user_rules $i lone}
        all_equal {0 1 2 3 4 5} {default lone other} {r -$i acl users}
        wait_for_condition 600 50 {[cluster_field -1 cluster_shared_not_covered] eq ""}
        r -0 acl deluser lone other
        all_equal {0 1 2 3 4 5} default {r -$i acl users}
    }

    test {a replica that takes over has the libraries, also one that its primary never got} {
        set primary [cluster_owner_of 0]
        for {set i 0} {$i < 6} {incr i} {
            if {[lindex [r -$i role] 0] eq "slave" && [lindex [r -$i role] 2] == [srv -$primary port]} {set replica $i}
        }
        with_node $primary stop_server
        set other [expr {($primary + 1) % 3}]
        r -$other function load [library late]
        all_equal $other {late two} {library_names $i}
        # It would do so after the timeout, and has already if this machine is slow.
        catch {r -$replica cluster failover force}
        wait_for_condition 600 50 {[lindex [r -$replica role] 0] eq "master"} else {fail "no failover"}
        all_equal $replica {late two} {library_names $i}
        with_node $primary continue_server
        cluster_wait_ok
        all_equal {0 1 2 3 4 5} {late two} {library_names $i}
        shared_equal
    }

    test {1,000 users and roles of which one has 500 patterns} {
        for {set n 0} {$n < 1000} {incr n} {r -send acl setuser many$n on >password$n ~app:$n:* &ch$n +@read +@write -keys}
        for {set n 0} {$n < 1000} {incr n} {assert_equal OK [r -read]}
        set rules {}
        for {set n 0} {$n < 500} {incr n} {lappend rules ~pattern:$n:*}
        r -0 acl setuser wide on nopass {*}$rules +@all
        r -0 acl setrole narrow {*}$rules
        shared_equal
        for {set i 0} {$i < 6} {incr i} {assert_equal 1002 [llength [r -$i acl users]]}
        # All of them to one that has missed them, in pieces.
        with_node 4 stop_server
        file delete [srv -4 dir]/nodes.conf.shared
        with_node 4 continue_server
        cluster_wait_ok
        assert_equal 1002 [llength [r -4 acl users]]
        shared_equal
        for {set n 0} {$n < 1000} {incr n} {r -send acl deluser many$n}
        for {set n 0} {$n < 1000} {incr n} {assert_equal 1 [r -read]}
        r -0 acl deluser wide
        r -0 acl delrole narrow
        all_equal {0 1 2 3 4 5} default {r -$i acl users}
        shared_equal
    }

    test {a user whose rules have more than 4 MB is in effect on its node alone, which logs that; the next change is shared} {
        for {set i 0; set patterns {}} {$i < 20000} {incr i} {lappend patterns ~[string repeat x 230]$i}
        r -0 acl setuser large on +get {*}$patterns
        r -0 acl setuser after on
        all_equal {1 2 3 4 5} [user_rules 0 after] {user_rules $i after}
        foreach i {1 2 3 4 5} {assert_equal {} [user_rules $i large]}
        assert_match "*The user 'large' is too large to be shared with other nodes: 4*bytes*" [server_log -0]
        r -0 acl setuser large resetkeys ~x
        all_equal {1 2 3 4 5} [user_rules 0 large] {user_rules $i large}
        r -2 acl deluser large after
        all_equal {0 1 2 3 4 5} {} {user_rules $i large}
        shared_equal
    }

    test {a library of 300 KB is sent in pieces} {
        set code "#!lua name=large\nlocal text = '[string repeat x 300000]'\nserver.register_function('f_large', function() return #text end)"
        r -1 function load $code
        foreach i {0 1 2} {wait_for_condition 600 50 {[lsearch [library_names $i] large] >= 0} else {fail "node $i"}} 
        shared_equal
    }

    set newcomer [list tags {cluster needs:config} overrides [dict merge $::cluster_defaults [dict get $options overrides] [list cluster-port [free_port]]]]
    start_server $newcomer {
        test {a new node has all users and functions before it serves} {
            r -1 acl setuser early on >secret ~* +get
            shared_equal {1 2 3 4 5 6}
            set before [cluster_field -1 cluster_shared_digest]
            assert_equal default [r acl users]
            # It gets no messages about users, so it knows that it does not know.
            r debug drop-cluster-packet-filter 9
            cluster_meet 0 1
            foreach i {0 6} {
                wait_for_condition 600 50 {[cluster_field -$i cluster_known_nodes] == 7 && ![string match *handshake* [r -$i cluster nodes]]}
            }
            wait_for_condition 600 50 {[cluster_field cluster_slots_assigned] == 16384}
            assert_equal incomplete [cluster_field cluster_shared_state]
            assert_equal fail [cluster_field cluster_state]
            assert_error "CLUSTERDOWN*" {r get k}
            r debug drop-cluster-packet-filter -1
            wait_for_condition 600 50 {[cluster_field cluster_state] eq "ok"}
            assert_equal ok [cluster_field cluster_shared_state]
            assert_equal {default early} [r acl users]
            all_equal {0} {large late two} {library_names $i}
            assert_equal $before [cluster_field cluster_shared_digest]
            r acl setuser early +set
            all_equal {1 2 3 4 5 6} [user_rules 0 early] {user_rules $i early}
        }

        test {a node that was reset keeps its users, and changes of the cluster are not its own any more} {
            set id [r cluster myid]
            r cluster reset
            for {set i 1} {$i <= 6} {incr i} {r -$i cluster forget $id}
            assert_equal {default early} [r acl users]
            r acl setuser outside on
            r -1 acl deluser early
            all_equal {1 2 3 4 5 6} default {r -$i acl users}
            assert_equal {default early outside} [r acl users]
        }
    }
}

# ---- without the directives, without proof

set plain [list tags {cluster needs:config} overrides [dict merge $::cluster_defaults [list cluster-node-timeout 2000 cluster-require-full-coverage no]]]
proc with_port {options more} {dict merge $options [list overrides [dict merge [dict get $options overrides] [list cluster-port [free_port]] $more]]}

start_server [with_port $plain [list cluster-bus-secret $secret cluster-shared-acl yes]] {
start_server [with_port $plain [list cluster-bus-secret $secret]] {
    test {a node without the directive is named as not covered, and keeps its users to itself} {
        cluster_meet 0 1
        foreach i {0 1} {wait_for_condition 600 50 {[cluster_field -$i cluster_known_nodes] == 2 && ![string match *handshake* [r -$i cluster nodes]]}}
        wait_for_condition 600 50 {[cluster_field -1 cluster_shared_state] eq "ok"}
        assert_equal [cluster_id 0] [cluster_field -1 cluster_shared_not_covered]
        r -1 acl setuser u on
        r -0 acl setuser v on
        assert {![string match *cluster_shared* [r -0 cluster info]]}
        assert_equal 1 [cluster_field -1 cluster_shared_entries]
        r -0 config set cluster-shared-acl yes
        foreach i {0 1} {wait_for_condition 600 50 {[r -$i acl users] eq {default u v}}}
        wait_for_condition 600 50 {[cluster_field -1 cluster_shared_not_covered] eq ""}
    }
}
}

# ---- who may send

# A PING of the node with that id and port, which says that it shares; a message of that content. It names the bus port that the
# node has, as another one would make the reader of both take up its links anew.
proc forged_ping {id port} {
    set header "RCmb[binary format ISSSS 2256 1 $port 0 0][string repeat \0 24]$id"
    append header [string repeat \0 [expr {2248 - [string length $header]}]] [binary format SS [lindex [r config get cluster-port] 1] 1] "\0\0\0\1"
    assert_equal 2256 [string length $header]
    return $header
}

proc forged_content {content bytes} {
    set payload "FWshared[binary format Ic [string length $bytes] [expr {$content | 0xc0}]]$bytes"
    return "RCmb[binary format ISSSS [expr {16 + [string length $payload]}] 1 0 [expr {0x8009 - 0x10000}] 0]$payload"
}

# An entry of a user: version 5 of the node, which has seen itself.
proc forged_user {name rules id} {
    set by [binary format H* $id]
    return "\1[binary format S [string length $name]]$name\1\0$by[binary format W 5]\1$by[binary format WW 5 0][binary format I [string length $rules]]$rules"
}

proc hmac {secret text} {
    set channel [open "|openssl dgst -sha256 -mac HMAC -macopt key:$secret -binary" r+b]
    puts -nonewline $channel $text
    close $channel write
    set mac [read $channel]
    close $channel
    return $mac
}

# A stranger that knows the secret, or with an empty one sends messages at once.
proc bus_stranger {i secret} {
    set s [raw_connect [srv -$i host] [lindex [r -$i config get cluster-port] 1]]
    if {$secret eq ""} {return $s}
    set nonce [string repeat x 32]
    raw_send $s "RCsc\0\0\0\1$nonce"
    set other [string range [raw_read $s 72] 8 39]
    raw_send $s [hmac $secret "outbound$nonce$other"]
    return $s
}

start_server [with_port $plain [list cluster-shared-acl yes]] {
start_server [with_port $plain {}] {
    test {without a secret or certificates nothing is shared, and a forged message makes no user} {
        cluster_meet 0 1
        foreach i {0 1} {wait_for_condition 600 50 {[cluster_field -$i cluster_known_nodes] == 2 && ![string match *handshake* [r -$i cluster nodes]]}}
        assert_equal unproven [cluster_field -1 cluster_shared_state]
        assert_match "*# Users, functions and directives are not shared: that needs cluster-bus-secret or tls-cluster*" [server_log -1]
        set id [cluster_id 0]
        set s [bus_stranger 1 {}]
        raw_send $s [forged_ping $id [srv port]] [forged_content 2 [forged_user mallory {on nopass ~* +@all} $id]] [forged_ping $id [srv port]]
        # Both PINGs are answered, so what is between them was read.
        foreach ping {1 2} {raw_read $s [expr {[scan_length [raw_read $s 8]] - 8}]}
        assert_equal default [r -1 acl users]
    }

    test {a connection that was open before the secret was set proves nothing; one with the secret does} {
        set id [cluster_id 0]
        set s [bus_stranger 1 {}]
        raw_send $s [forged_ping $id [srv port]]
        raw_read $s [expr {[scan_length [raw_read $s 8]] - 8}]
        foreach i {0 1} {r -$i config set cluster-bus-secret $secret}
        set entry [forged_user mallory {on nopass ~* resetchannels +@all} $id]
        raw_send $s [forged_content 2 $entry] [forged_ping $id [srv port]]
        raw_read $s [expr {[scan_length [raw_read $s 8]] - 8}]
        assert_equal default [r -1 acl users]
        set s [bus_stranger 1 [string reverse $secret]]
        assert_equal {} [raw_rest $s]
        # The same bytes from one that knows it: it is a node as any other.
        set s [bus_stranger 1 $secret]
        raw_send $s [forged_ping $id [srv port]] [forged_content 2 $entry]
        wait_for_condition 600 50 {[r -1 acl users] eq {default mallory}}
    }

    test {malformed and endless contents of a node change nothing} {
        set id [cluster_id 0]
        set entry [forged_user eve {on nopass +@all} $id]
        set s [bus_stranger 1 $secret]
        raw_send $s [forged_ping $id [srv port]]
        raw_read $s [expr {[scan_length [raw_read $s 8]] - 8}]
        for {set n 0} {$n < [string length $entry]} {incr n} {raw_send $s [forged_content 2 [string range $entry 0 $n-1]]}
        foreach content {0 1 2 3 4 60} {raw_send $s [forged_content $content abc] [forged_content $content {}]}
        raw_send $s [forged_content 2 [forged_user "a b" {on} $id]] [forged_content 2 [forged_user {} {on (} $id]]
        raw_send $s [forged_content 2 [forged_user eve2 {on nonsense} $id]]
        raw_send $s [forged_ping $id [srv port]]
        raw_read $s [expr {[scan_length [raw_read $s 8]] - 8}]
        assert_equal {default mallory} [r -1 acl users]
        wait_for_condition 600 50 {[cluster_field -1 cluster_shared_unapplied] == 3}
    }
}
}

# One certificate, which is its own authority.
set cert [file join $::job_dir node]
exec openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $cert.key -out $cert.crt -subj /CN=node -addext subjectAltName=IP:127.0.0.1 2>@1
set tls [list tls-port free tls-cluster yes tls-cert-file $cert.crt tls-key-file $cert.key tls-ca-cert-file $cert.crt]
start_cluster [list 1 1 [list tags {cluster tls:skip needs:config} overrides [dict merge $tls {cluster-shared-acl yes repl-diskless-sync-delay 0}]]] {
    test {with tls-cluster certificates are the proof} {
        r -1 acl setuser u on +get
        all_equal {0 1} {default u} {r -$i acl users}
        foreach i {0 1} {assert_equal ok [cluster_field -$i cluster_shared_state]}
    }
}
