# SPDX-License-Identifier: BSD-3-Clause
#
# Keyspace events: notify-keyspace-events, classes, channels, and the order of events.

# A client that hears all keyspace events of database 0.
proc listen {} {
    set c [connect 3]
    $c -send psubscribe __key*@*__:*
    $c -push
    return $c
}

# The events heard so far as {event key ...}, from both kinds of channels, which must agree.
proc heard {client} {
    $client ping
    set of_keys {}
    set of_events {}
    foreach push [$client -pushes] {
        lassign $push kind pattern channel message
        regexp {^__(key[a-z]*)@([0-9]+)__:(.*)$} $channel all which db rest
        set suffix [expr {$db == 0 ? "" : "@$db"}]
        if {$which eq "keyspace"} {lappend of_keys $message $rest$suffix} else {lappend of_events $rest $message$suffix}
    }
    if {$of_keys ne {} && $of_events ne {}} {assert_equal $of_keys $of_events}
    return [expr {$of_keys ne {} ? $of_keys : $of_events}]
}

start_server {tags {pubsub}} {
    test {CONFIG GET shows the classes in a fixed order} {
        foreach {set get} {
            Ex xE  K\$lshzxetdgp AK  EKmn nKEm  KEA AKE  Elm lEm  g\$lshzxetdp A  g\$lshzxetd g\$lshzxetd  KK K  "" ""
        } {
            r config set notify-keyspace-events $set
            assert_equal $get [lindex [r config get notify-keyspace-events] 1]
        }
        assert_error {*Invalid event class character. Use 'Ag$lshzxeKEtmdnp'.} {r config set notify-keyspace-events Ky}
    }

    test {events are published to the channels of keys and of events that are enabled} {
        set c [listen]
        foreach {flags expected} {
            KA {pmessage __key*@*__:* __keyspace@0__:key set}
            EA {pmessage __key*@*__:* __keyevent@0__:set key}
        } {
            r config set notify-keyspace-events $flags
            r set key value
            assert_equal $expected [$c -push]
        }
        foreach flags {A K E KE ""} {
            r config set notify-keyspace-events $flags
            r set key value
        }
        assert_equal {} [heard $c]
    }

    test {fields that expire by themselves have the class of expired keys, those that a command removes that of hashes} {
        set c [listen]
        foreach {flags expected} {KEx {hexpired h} KEh {hset h hexpire h hset h2 hexpired h2}} {
            r config set notify-keyspace-events $flags
            r hset h f v
            r hpexpire h 1 fields 1 f
            wait_for_condition 500 10 {[r exists h] == 0}
            r hset h2 f v g w
            r hpexpireat h2 1 fields 1 f
            assert_equal $expected [heard $c]
            r config set notify-keyspace-events {}
            r del h2
        }
    }

    test {each class is published by itself} {
        set c [listen]
        foreach {class expected} {
            g {del k} $ {set k} l {rpush l} s {sadd s} h {hset h} z {zadd z} t {xadd x} x {expired e} n {new k new l new s new h new z new x new e new e2} m {keymiss k}
        } {
            r config set notify-keyspace-events KE$class
            r flushdb
            r set k v
            r rpush l a
            r sadd s a
            r hset h f v
            r zadd z 1 a
            r xadd x 1-1 f v
            r del k
            r get k
            r config set notify-keyspace-events ""
            r setex e 100 v
            r config set notify-keyspace-events KE$class
            if {$class in {x n}} {
                if {$class eq "n"} {r del e; r setex e 100 v; r set e2 v} else {r expireat e 1}
            }
            assert_equal $expected [heard $c]
        }
        r config set notify-keyspace-events ""
    }

    test {classes of all events: the name of the event decides} {
        r flushall
        set c [listen]
        r config set notify-keyspace-events AKEnm
        foreach {commands expected} {
            {{set s v EX 100}} {new s set s expire s}
            {{setrange s 0 x} {append s y} {setbit s 0 1} {persist s}} {setrange s append s setbit s persist s}
            {{rename s t} {copy t u} {move u 3}} {new t rename_from s rename_to t new u copy_to u new u@3 move_from u move_to u@3}
            {{rpush l a b c} {lset l 0 x} {ltrim l 0 1} {lpop l 5}} {new l rpush l lset l ltrim l lpop l del l}
            {{sadd a 1 2} {sunionstore b a} {sunionstore b a} {smove a b 1} {srem a 2}} {new a sadd a new b sunionstore b sunionstore b srem a srem a del a}
            {{zadd z 1 m} {zincrby z 1 m} {zrangestore y z 0 -1} {zpopmin z}} {new z zadd z zincr z new y zrangestore y zpopmin z del z}
            {{hset h f 1} {hincrby h f 1} {hexpire h 100 FIELDS 1 f} {hpersist h FIELDS 1 f} {hdel h f}} {new h hset h hincrby h hexpire h hpersist h hdel h del h}
            {{hsetex n EXAT 1 FIELDS 1 f v}} {new n hset n hexpire n hexpired n del n}
            {{xadd x 1-1 f v} {xgroup create x g 0} {xreadgroup GROUP g c STREAMS x >} {xgroup delconsumer x g c} {xtrim x MAXLEN 0}} {new x xadd x xgroup-create x xgroup-createconsumer x xgroup-delconsumer x xtrim x}
            {{get none} {mget none t} {object encoding none} {xread STREAMS none 0} {xack none g 1-1}} {keymiss none keymiss none keymiss none keymiss none keymiss none}
            {{sort none store b} {bitop and t none none}} {keymiss none del b keymiss none keymiss none del t}
        } {
            foreach command $commands {r {*}$command}
            assert_equal $expected [heard $c]
        }
        r select 3
        r del u
        r select 0
    }

    test {a key that expires is published when it is found, before the event of the command} {
        r flushall
        set c [listen]
        r config set notify-keyspace-events AKEnm
        r debug set-active-expire 0
        r psetex k 1 v
        heard $c
        wait_for_condition 100 5 {[r ttl k] == -2}
        set events [heard $c]
        assert_equal {expired k} [lrange $events 0 1]
        assert_equal {keymiss k} [lrange $events 2 3]
        r debug set-active-expire 1
        r psetex active 1 v
        wait_for_condition 100 20 {[r dbsize] == 0}
        assert_equal {expired active} [lrange [heard $c] end-1 end]
    } {needs:debug}

    test {a transaction publishes at once, command by command, and the publisher hears after EXEC's reply} {
        set c [listen]
        r config set notify-keyspace-events AE
        set p [connect 3]
        $p select 0
        $p -send subscribe __keyevent@0__:set
        $p -push
        $p multi
        $p set a 1
        $p set b 2
        assert_equal {} [$p -pushes]
        assert_equal {OK OK} [$p exec]
        assert_equal {} [$p -pushes]
        assert_equal {message __keyevent@0__:set a} [$p -push]
        assert_equal {message __keyevent@0__:set b} [$p -push]
        assert_equal {set a set b} [heard $c]
    }

    test {listeners of other channels do not get events, and those that come later hear from then on} {
        r config set notify-keyspace-events AKE
        set c [connect 3]
        foreach {command name} {subscribe __keyevent@0__:del psubscribe news* subscribe __key psubscribe __keyevent@0__:exp*} {
            $c -send $command $name
            $c -push
        }
        r set k v
        r expire k 100
        r del k
        $c ping
        assert_equal {{pmessage __keyevent@0__:exp* __keyevent@0__:expire k} {message __keyevent@0__:del k}} [$c -pushes]
        $c -send psubscribe *@0__:k
        $c -push
        r set k v
        $c ping
        assert_equal {{pmessage *@0__:k __keyspace@0__:k set}} [$c -pushes]
    }

    test {a load publishes nothing} {
        r config set notify-keyspace-events AKEn
        r set k v
        set c [listen]
        r debug reload
        assert_equal {} [heard $c]
    } {needs:debug}
}

start_server {tags {pubsub} overrides {maxmemory-policy allkeys-lru maxmemory-eviction-tenacity 100}} {
    test {an eviction is published} {
        r config set notify-keyspace-events Ee
        set c [connect 3]
        $c -send subscribe __keyevent@0__:evicted
        $c -push
        for {set i 0} {$i < 100} {incr i} {r set key$i [string repeat x 1000]}
        r config set maxmemory 1
        catch {r set more v}
        r config set maxmemory 0
        $c ping
        set pushes [$c -pushes]
        assert {[llength $pushes] >= 100}
        assert_match {message __keyevent@0__:evicted key*} [lindex $pushes 0]
    }
}
