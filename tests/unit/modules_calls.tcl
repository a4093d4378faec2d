# SPDX-License-Identifier: BSD-3-Clause
#
# Commands that modules run (tests/modules/calls.c).

source $::tests_dir/support/raw_replica.tcl

proc makeUnwritableDisk {} {
    set dir [lindex [r config get dir] 1]
    file mkdir $dir/taken/x
    r config set dbfilename taken save {3600 1}
    r bgsave
    info_is rdb_last_bgsave_status err
}

# The next requests that a replica receives match these patterns, in lower case.
proc next_match {s patterns} {
    foreach pattern $patterns {
        while {[set words [string tolower [replica_next $s]]] eq "ping"} {}
        assert_match $pattern $words
    }
}

start_server {overrides {enable-module-command yes enable-protected-configs yes}} {
    r module load [file normalize build/modules/calls.so]
    r acl setuser bob on nopass ~x* &ch +@all -set

    test {a script that a module runs keeps to its flags} {
        r function load "#!lua name=lib\nserver.register_function{function_name='ro', callback=function() return server.call('set', 'x', 1) end, flags={'no-writes'}}"
        set refused {ERR Write commands are not allowed from read-only scripts.*}
        assert_error $refused {r calls.run E eval "#!lua flags=no-writes\nserver.call('set', 'x', 1)" 1 x}
        assert_error $refused {r calls.run E eval_ro "server.call('set', 'x', 1)" 1 x}
        assert_error $refused {r calls.run E fcall ro 0}
        assert_equal 0 [r exists x]
        assert_equal 1 [r calls.run E eval "server.call('set', 'x', 1) return 1" 1 x]
    }

    test {Call(C): a script is limited by the rights of the user, and ACL LOG has the client} {
        set c [connect]
        $c auth bob x
        $c client setname somebody
        r acl log reset
        assert_error "ERR ACL failure in script: User bob has no permissions to run the 'set' command*" \
            {$c calls.run EC eval "server.call('set', 'x', 1)" 1 x}
        assert_error {ERR ACL failure in script: No permissions to access a key*} \
            {$c calls.run EC eval "return server.call('get', 'y')" 0}
        assert_error {ERR ACL failure in script: No permissions to access a channel*} \
            {$c calls.run EC eval "return server.call('publish', 'other', 'm')" 0}
        assert_equal 3 [llength [r acl log]]
        assert_match {*name=somebody*cmd=calls.run user=bob*} [dict get [lindex [r acl log] 0] client-info]
        assert_equal 2 [$c calls.run E eval "server.call('set', 'x', 1) return 2" 1 x]
        assert_equal 3 [$c calls.run EC eval "server.call('del', 'x') return 3" 1 x]
        assert_equal {bob {}} [list [$c calls.run EC acl whoami] [$c calls.run E acl whoami]]
    }

    # The keys that a client that tracks was told of, when others have changed both.
    proc toldOf {c} {
        r mset k1 2 k2 2
        $c ping
        return [lsort [lmap push [$c -pushes] {lindex $push 1}]]
    }

    test {client tracking remembers what calls read for the client, also in scripts and in calls of calls} {
        set c [connect 3]
        $c client tracking on
        foreach call {{get k1} {eval {return server.call('get', 'k1')} 0} {calls.run E get k1} {eval {return server.call('calls.run', 'E', 'get', 'k1')} 0}} {
            $c calls.run E {*}$call
            assert_equal k1 [toldOf $c]
        }
        $c calls.run E set k1 1
        $c ping
        $c -pushes
        assert_equal {} [toldOf $c]
        $c multi
        $c calls.run E get k2
        $c exec
        assert_equal k2 [toldOf $c]
        $c client tracking off
        $c calls.run E get k1
        assert_equal {} [toldOf $c]
        assert_equal {} [toldOf [connect 3]]
    }

    test {CLIENT CACHING applies to the calls of the next command} {
        set c [connect 3]
        $c client tracking on optin
        $c client caching yes
        $c calls.run E eval {server.call('get', 'k1')} 0
        $c calls.run E get k2
        assert_equal k1 [toldOf $c]
        $c client tracking off
        $c client tracking on optout
        $c client caching no
        $c calls.run E eval {server.call('get', 'k1')} 0
        $c calls.run E get k2
        assert_equal k2 [toldOf $c]
    }

    test {with NOLOOP, what calls change for a client is its own change, in default and broadcast mode} {
        foreach mode {{} bcast} {
            set c [connect 3]
            $c client tracking on noloop {*}$mode
            foreach call {{set k1 1} {eval {return server.call('set', 'k1', 1)} 0} {calls.run E set k1 1}} {
                $c get k1
                $c calls.run E {*}$call
                $c ping
                assert_equal {} [$c -pushes]
            }
            $c get k1
            r calls.run E set k1 2
            $c ping
            assert_equal 1 [llength [$c -pushes]]
        }
    }

    test {names in fields of INFO have no character that ends the name of a field} {
        r config resetstat
        r calls:odd#name 0
        catch {r eval {return server.error_reply("A#B:C text")} 0}
        assert_match {calls=1,*} [info_field cmdstat_calls_odd_name]
        assert_match {p50=*} [info_field latency_percentiles_usec_calls_odd_name]
        assert_equal count=1 [info_field errorstat_A_B_C]
    }

    test {a script that a script runs by a module is refused} {
        set nested {return server.pcall('calls.run', 'E', 'eval', 'return 1', 0).err}
        assert_equal {ERR This Valkey command is not allowed from script} [r eval $nested 0]
        assert_equal {ERR This Valkey command is not allowed from script} [r calls.run E eval $nested 0]
    }

    test {maxmemory stops scripts of a module only if it asks for that} {
        set plain "server.call('set', 'x', 1) return 6"
        r config set maxmemory 1
        assert_equal 6 [r calls.run E eval $plain 1 x]
        assert_equal 6 [r calls.run E eval "#!lua\n$plain" 1 x]
        assert_error {OOM command not allowed when used memory > 'maxmemory'*} {r calls.run EM eval $plain 1 x}
        assert_error {OOM command not allowed when used memory > 'maxmemory'*} {r calls.run EM eval "#!lua\n$plain" 1 x}
        assert_error {ERRNO 28} {r calls.run M eval "#!lua\n$plain" 1 x}
        assert_equal 6 [r calls.run EM eval "#!lua flags=allow-oom\n$plain" 1 x]
        assert_equal 6 [r calls.run EM eval "#!lua flags=no-writes\nreturn 6" 0]
        r config set maxmemory 0
    }

    test {Call(W): the flags of a script say whether it writes} {
        assert_error {ERR Write command 'eval' was called while write is not allowed.} \
            {r calls.run EW eval "#!lua\nreturn 1" 0}
        assert_equal 1 [r calls.run EW eval "#!lua flags=no-writes\nreturn 1" 0]
        assert_equal 1 [r calls.run EW eval {return 1} 0]
    }

    test {too few replicas, a failing disk, a replica, stale data: scripts of a module are refused as scripts} {
        set plain "server.call('set', 'x', 1) return 1"
        set header "#!lua\nreturn 1"
        r config set min-replicas-to-write 1
        assert_error {NOREPLICAS Not enough good replicas to write.*} {r calls.run E eval $plain 1 x}
        assert_error {NOREPLICAS Not enough good replicas to write.} {r calls.run E eval $header 0}
        assert_equal OK [r calls.run E set x 1]
        r config set min-replicas-to-write 0

        makeUnwritableDisk
        assert_error {MISCONF *Writable scripts are blocked. Use 'no-writes' flag for read only scripts.} \
            {r calls.run E eval $header 0}
        assert_error {MISCONF *stop-writes-on-bgsave-error option*} {r calls.run E eval $plain 1 x}
        assert_error {MISCONF *stop-writes-on-bgsave-error option*} {r eval $header 0}
        r config set save {}

        assert_error {ERR Can not execute a script with write flag*} {r calls.run E eval_ro $header 0}
        r replicaof 127.0.0.1 1
        set read_only {READONLY Can not run script with write flag on readonly replica}
        assert_error $read_only {r calls.run E eval $header 0}
        assert_error $read_only {r calls.run E eval_ro $header 0}
        assert_error {READONLY You can't write against a read only replica.*} {r calls.run E eval $plain 1 x}
        r config set replica-serve-stale-data no
        set stale {MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not set on the script.}
        assert_error $stale {r calls.run E eval $header 0}
        assert_error $stale {r calls.run E eval "#!lua flags=no-writes\nreturn 1" 0}
        assert_error $read_only {r calls.run E eval "#!lua flags=allow-stale\nreturn 1" 0}
        assert_error {MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.} \
            {r calls.run E eval {return 1} 0}
        assert_error {ERR Can not execute the command on a stale replica*} \
            {r calls.run E eval "#!lua flags=allow-stale,no-writes\nreturn server.call('get', 'x')" 0}
        r config set replica-serve-stale-data yes
        r replicaof no one
    }
}

start_server {overrides {enable-module-command yes enable-debug-command yes save {} repl-diskless-sync-delay 0}} {
    r module load [file normalize build/modules/calls.so]

    test {jobs of a key that expires or is evicted follow its removal, in one unit} {
        set s [dict get [replica_sync] socket]
        r set quiet 1
        next_match $s {{select 0} {set quiet 1}}
        r del quiet
        next_match $s {{del quiet}}
        r calls.jobs 1
        r set x 1 px 1
        wait_for_condition 250 20 {[r lrange jobs 0 -1] eq {removed:x expired:x}}
        next_match $s {{set x 1 *} multi {unlink x} {rpush jobs removed:x} {rpush jobs expired:x} exec}
        r debug set-active-expire 0
        r set y 1 px 1
        wait_for_condition 250 20 {![r exists y]}
        next_match $s {{set y 1 *} multi {unlink y} {rpush jobs removed:y} {rpush jobs expired:y} exec}
        r calls.jobs 0
        r del jobs
        r set z 1
        r calls.jobs 1
        r config set maxmemory-policy allkeys-random maxmemory 1
        next_match $s {{del jobs} {set z 1} multi {unlink z} {rpush jobs removed:z} {rpush jobs evicted:z} exec}
        r config set maxmemory 0
    }

    test {jobs of a hash whose last field expires are in one unit with the field and the key} {
        r calls.jobs 0
        r flushall
        r debug set-active-expire 1
        set s [dict get [replica_sync] socket]
        r calls.jobs 1
        r hset h f 1
        r hpexpire h 1 fields 1 f
        wait_for_condition 250 20 {[r lrange jobs 0 -1] eq {hexpired:h removed:h del:h}}
        next_match $s {{select 0} {hset h f 1} {hpexpireat h *}}
        next_match $s {multi {hdel h f} {unlink h} {rpush jobs hexpired:h} {rpush jobs removed:h} {rpush jobs del:h} exec}
    }

    test {SREM, ZREM, HDEL and others: the key is gone before their event, as in Valkey} {
        foreach {create remove event} {
            {sadd k m} {srem k m} srem    {zadd k 1 m} {zrem k m} zrem    {hset k f v} {hdel k f} hdel
            {zadd k 1 m} {zremrangebyrank k 0 -1} zremrangebyrank    {hset k f v} {hgetdel k fields 1 f} hdel
        } {
            r calls.jobs 0
            r del jobs
            r {*}$create
            r calls.jobs 1
            r {*}$remove
            assert_equal [list removed:k $event:k del:k] [r lrange jobs 0 -1]
        }
        r calls.jobs 0
    }

    test {what a listener replicates about a removed key precedes the command, in whatever form} {
        r calls.jobs 0
        r flushall
        set s [dict get [replica_sync] socket]
        r sadd s m
        r calls.jobs 2
        r spop s 2
        next_match $s {{select 0} {sadd s m} multi {rpush direct removed:s} {rpush direct del:s} {unlink s} exec}
        r calls.jobs 0
    }

    # Several in each step of the walk: what it is going to visit is deleted meanwhile.
    foreach {kind set expire} {
        keys {set $key v} {pexpire $key 1}
        hashes {hset $key f v g v} {hpexpire $key 1 fields 1 f}
        members {sadd $key f g} {spexpire $key 1 members 1 f}
    } {
        test "a job may delete all keys while $kind expire" {
            set kept [r config get lazyfree-lazy-expire]
            foreach lazy {yes no} {
                r config set lazyfree-lazy-expire $lazy
                r debug set-active-expire 0
                for {set i 0} {$i < 300} {incr i} {
                    set key $kind:$i
                    r {*}[subst $set]
                    r {*}[subst $expire]
                }
                r set stays v
                r debug sleep 0.002
                r calls.deletes 1
                r debug set-active-expire 1
                wait_for_condition 250 20 {[r dbsize] == 0}
                r calls.deletes 0
            }
            r config set {*}$kept
        }
    }
}

start_server {overrides {enable-module-command yes cluster-enabled yes cluster-allow-replica-migration no}} {
    r module load [file normalize build/modules/calls.so]
    r cluster addslotsrange 0 16383
    wait_for_condition 250 20 {[string match *cluster_state:ok* [r cluster info]]}

    test {the keys of a script that a module runs must be in one slot} {
        set script "server.call('set', 'a', 1) server.call('set', 'b', 1) return 1"
        assert_error {ERR Script attempted to access keys that do not hash to the same slot*} \
            {r calls.run E eval "#!lua\n$script" 1 a}
        assert_equal 1 [r calls.run E eval "#!lua flags=allow-cross-slot-keys\n$script" 1 a]
    }
}

start_cluster {2 0 {tags {cluster} overrides {enable-module-command yes}}} {
    r module load [file normalize build/modules/calls.so]

    test {calls outside of commands on a key of another node get the error, as Valkey gives it} {
        for {set i 0} {[cluster_owner_of [r cluster keyslot key$i]] != 1} {incr i} {}
        for {set k 0} {[cluster_owner_of [r cluster keyslot key$k]] != 0} {incr k} {}
        foreach {key result} [list key$i {none 1} key$k {reply 0}] {
            r calls.later $key
            wait_for_condition 250 20 {[llength [r calls.seen]] == 9}
            foreach {where reply error} [r calls.seen] {assert_equal $result [list $reply $error]}
        }
        assert_error {ERR Attempted to access a non local key in a cluster node} {r calls.run E incr key$i}
    }
}
