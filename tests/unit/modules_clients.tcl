# SPDX-License-Identifier: BSD-3-Clause
#
# What modules see of clients and of the server (tests/modules/clients.c).

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    r module load [file normalize build/modules/clients.so]

    set multi 2
    set primary 4
    set maxmemory 256
    set evict 512
    set resp3 4194304
    set deny_blocking 2097152

    test {flags of a context: role, memory limit, transaction, script, protocol} {
        set proto [expr {[r -resp] == 3 ? $resp3 : 0}]
        assert_equal [list $primary [expr {$primary | $proto}]] [r clients.flags]
        r config set maxmemory 1gb maxmemory-policy allkeys-lru
        assert_equal [expr {$primary | $maxmemory | $evict | $proto}] [lindex [r clients.flags] 1]
        r config set maxmemory 0 maxmemory-policy noeviction
        r multi
        r clients.flags
        assert_equal [expr {$primary | $multi | $deny_blocking | $proto}] [lindex [r exec] 0 1]
        assert_equal 1 [expr {[lindex [r eval {return redis.call('clients.flags')} 0] 1] & 1}]
        r config set appendonly yes save {3600 1}
        assert_equal [expr {64 | 128}] [expr {[lindex [r clients.flags] 0] & (64 | 128)}]
        r config set appendonly no save {}
    }

    test {a client by its id: name, user, address, database, flags} {
        r client setname me
        r select 3
        lassign [r clients.me] id name user address port db flags
        assert_equal [list [r client id] me default 127.0.0.1 3] [list $id $name $user $address $db]
        assert_match "*addr=127.0.0.1:$port *" [r client info]
        assert_equal 2048 [expr {$flags & 2048}]
        r select 0
    }

    test {a client that was logged in once is flagged so, also after RESET} {
        r acl setuser default resetpass >secret
        set c [respConnect [srv host] [srv port] 2]
        set logged_in {{c} {expr {[lindex [$c clients.me] 6] & (2048 | 4096)}}}
        assert_equal 0 [apply $logged_in $c]
        $c auth secret
        assert_equal [expr {2048 | 4096}] [apply $logged_in $c]
        $c reset
        assert_equal 4096 [apply $logged_in $c]
        r acl setuser default nopass
        $c -close
        set c [respConnect [srv host] [srv port] 2]
        assert_equal [expr {2048 | 4096}] [apply $logged_in $c]
        $c -close
    }

    test {a name is set by id} {
        assert_equal OK [r clients.name [r client id] other]
        assert_equal other [r client getname]
        assert_equal EINVAL [r clients.name [r client id] {two words}]
        assert_equal ENOENT [r clients.name 123456789 x]
    }

    test {SelectDb lasts after the command, and refuses what is not there} {
        assert_equal {0 5} [r clients.select 5]
        assert_match {* db=5 *} [r client info]
        assert_equal {1 5} [r clients.select 99]
        assert_equal {1 5} [r clients.select -1]
        r select 0
    }

    test {PublishMessage reaches subscribers} {
        set reader [respConnect [srv host] [srv port] 2]
        $reader subscribe news
        assert_equal 1 [r clients.publish news hello]
        assert_equal {message news hello} [$reader -read]
        $reader -close
    }

    test {a redacted argument is not in the command log} {
        r config set commandlog-execution-slower-than 0
        assert_equal {1 1 0} [r clients.redact secret open]
        assert_match {*clients.redact (redacted) open*} [r commandlog get 1 slow]
        r config set commandlog-execution-slower-than 10000
    }
}
