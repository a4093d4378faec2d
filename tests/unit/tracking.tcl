# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT TRACKING: options, what is remembered, invalidations and their order, broadcast mode, redirection, limits.

# A RESP3 client that tracks, with options.
proc tracking {args} {
    set c [connect 3]
    assert_equal OK [$c client tracking on {*}$args]
    return $c
}

# The keys of the invalidations that a client has received so far: a list with one element per message.
proc invalidated {client} {
    $client ping
    return [lmap push [$client -pushes] {
        assert_equal invalidate [lindex $push 0]
        lindex $push 1
    }]
}

start_server {tags {tracking}} {
    test {a read key is invalidated once, by the next change of another session} {
        set c [tracking]
        r set key 1
        assert_equal {} [invalidated $c]
        $c get key
        r set key 2
        assert_equal key [invalidated $c]
        r set key 3
        assert_equal {} [invalidated $c]
        $c mget key other missing
        r mset key 1 missing 2
        assert_equal {key missing} [invalidated $c]
    }

    test {reading commands are tracked, also of missing keys; writing ones, SCAN and WATCH are not} {
        set c [tracking]
        foreach command {{get k} {exists k} {ttl k} {type k} {strlen k} {object encoding k} {memory usage k} {hgetall k} {lrange k 0 -1} {xread STREAMS k 0} {sort_ro k} {touch k} {dump k}} {
            catch {$c {*}$command}
            r set k [incr n]
            assert_equal k [invalidated $c]
        }
        foreach command {{getset k 1} {getex k} {incr k} {watch k} {scan 0} {keys *} {sort k} {setnx k 1}} {
            r set k 1
            catch {$c {*}$command}
            invalidated $c
            r set k [incr n]
            assert_equal {} [invalidated $c]
        }
    }

    test {changes of every kind invalidate: DEL, EXPIRE, RENAME, COPY, MOVE, fields, a change in another database} {
        set c [tracking]
        foreach {prepare change} {
            {set k v} {del k}
            {set k v} {expire k 100}
            {set k v} {rename k l}
            {set l v} {rename l k}
            {set l v} {copy l k}
            {hset k f v} {hset k f w}
            {hset k f v} {hexpire k 100 FIELDS 1 f}
            {rpush k a} {lpop k}
        } {
            r flushall
            r {*}$prepare
            invalidated $c
            $c exists k
            r {*}$change
            assert_equal k [invalidated $c]
        }
        $c get k
        r select 5
        r set k v
        assert_equal k [invalidated $c]
        r flushall
        r select 0
    }

    test {own changes are sent after the reply, and after EXEC's whole reply} {
        set s [raw_connect]
        raw_send $s "HELLO 3\r\n"
        raw_reply $s
        set push ">2\r\n\$10\r\ninvalidate\r\n*1\r\n\$1\r\nk\r\n"
        raw_send $s "CLIENT TRACKING on\r\nGET k\r\nSET k v\r\n"
        assert_equal "+OK\r\n_\r\n+OK\r\n$push" [raw_read $s [expr {13 + [string length $push]}]]
        raw_send $s "MULTI\r\nGET k\r\nSET k w\r\nGET k\r\nEXEC\r\n"
        set expected "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n\$1\r\nv\r\n+OK\r\n\$1\r\nw\r\n$push"
        assert_equal $expected [raw_read $s [string length $expected]]
        r set k x
        assert_equal $push [raw_read $s [string length $push]]
    }

    test {a session that waits gets invalidations, and reads again when it is woken} {
        set c [tracking]
        $c -send xread BLOCK 0 STREAMS s $
        wait_for_condition 100 20 {[info_field blocked_clients] == 1}
        r xadd s 1-1 a b
        assert_equal {invalidate s} [$c -push]
        assert_equal {s {{1-1 {a b}}}} [$c -read]
        r xadd s 1-2 a b
        assert_equal s [invalidated $c]
    }

    test {OPTIN tracks the command after CLIENT CACHING yes, OPTOUT all but the one after CACHING no} {
        set c [tracking OPTIN]
        $c get k
        r set k 1
        assert_equal {} [invalidated $c]
        $c client caching yes
        $c client id
        $c get k
        r set k 2
        assert_equal k [invalidated $c]
        $c client caching yes
        catch {$c nosuchcommand}
        $c get k
        r set k 3
        assert_equal {} [invalidated $c]
        $c client caching yes
        $c multi
        $c get a
        $c get b
        $c exec
        r mset a 1 b 2
        assert_equal {a b} [invalidated $c]
        $c client tracking off
        $c client tracking on OPTOUT
        $c client caching no
        $c get k
        r set k 4
        assert_equal {} [invalidated $c]
        $c get k
        r set k 5
        assert_equal k [invalidated $c]
    }

    test {NOLOOP suppresses own changes, and those of others that follow are still sent} {
        set c [tracking NOLOOP]
        $c get k
        $c set k 1
        assert_equal {} [invalidated $c]
        r set k 2
        assert_equal k [invalidated $c]
    }

    test {FLUSHALL, FLUSHDB, SWAPDB and a reload invalidate everything with a null} {
        r flushall
        set c [tracking]
        set b [tracking BCAST PREFIX x]
        foreach command {flushall flushdb {swapdb 0 1} {debug reload}} {
            $c get k
            assert_equal 1 [info_field tracking_total_keys]
            r {*}$command
            assert_equal {{}} [invalidated $c]
            assert_equal {{}} [invalidated $b]
            assert_equal {0 0} [list [info_field tracking_total_keys] [info_field tracking_total_items]]
        }
        $c -send flushall
        assert_equal OK [$c -read]
        assert_equal {invalidate {}} [$c -push]
    } {needs:debug}

    test {expiry invalidates, found by a reader or by active expiry} {
        r flushall
        set c [tracking]
        r debug set-active-expire 0
        r set k v PX 100
        assert_equal 1 [$c exists k]
        wait_for_condition 100 5 {[r exists k] == 0}
        assert_equal k [lindex [invalidated $c] 0]
        r debug set-active-expire 1
        r set k v PX 50
        $c get k
        wait_for_condition 200 20 {[r dbsize] == 0}
        assert_equal k [lindex [invalidated $c] end]
    } {needs:debug}

    test {broadcast mode sends the changed keys with a prefix, sorted, each once, in one message a turn} {
        set c [tracking BCAST PREFIX foo PREFIX bar]
        r mset foo2 1 bar1 1 foo1 2 other 3 fo 4
        assert_equal {bar1 {foo1 foo2}} [invalidated $c]
        $c mset foo9 1 baz 2
        assert_equal foo9 [invalidated $c]
        $c client tracking off
        r set foo1 1
        assert_equal {} [invalidated $c]
        assert_equal 0 [info_field tracking_total_prefixes]
        set all [tracking BCAST]
        r set anything 1
        assert_equal anything [invalidated $all]
    }

    test {broadcast mode with NOLOOP leaves out keys whose last change was one's own} {
        set c [tracking BCAST NOLOOP]
        set d [tracking BCAST]
        $c mset a 1 b 2
        assert_equal {} [invalidated $c]
        assert_equal {{a b}} [invalidated $d]
        r set a 3
        assert_equal a [invalidated $c]
    }

    test {prefixes of any length and number} {
        set c [connect 3]
        set prefixes {}
        for {set i 0} {$i < 2000} {incr i} {lappend prefixes PREFIX "[string repeat p [expr {$i % 100}]]:$i:"}
        assert_equal OK [$c client tracking on BCAST {*}$prefixes]
        assert_equal 2000 [info_field tracking_total_prefixes]
        foreach i {0 1 61 62 63 64 99 1999} {
            set key "[string repeat p [expr {$i % 100}]]:$i:key"
            r set $key v
            assert_equal $key [invalidated $c]
        }
        r set ":2000:key" v
        assert_equal {} [invalidated $c]
        assert_error "ERR Prefix ':0:x' overlaps with an existing prefix ':0:'. Prefixes for a single client must not overlap." {$c client tracking on BCAST PREFIX new PREFIX :0:x}
        assert_equal 2000 [llength [lindex [$c client trackinginfo] 5]]
    }

    test {a RESP2 session hears through a redirection, in the protocol of the target} {
        set target [connect 2]
        set id [$target client id]
        set c [connect 2]
        assert_equal OK [$c client tracking on REDIRECT $id]
        assert_equal $id [$c client getredir]
        $target -send subscribe __redis__:invalidate
        $target -read
        $c get k
        r set k 1
        assert_equal {message __redis__:invalidate k} [$target -read]
        r flushall
        assert_equal {array {{bulk message} {bulk __redis__:invalidate} {null bulk}}} [$target -readtyped]
        set t3 [connect 3]
        $c client tracking on REDIRECT [$t3 client id]
        $c get k
        r set k 2
        assert_equal {invalidate k} [$t3 -push]
        r flushall
        assert_equal {invalidate {}} [$t3 -push]
        $target ping
    }

    test {a redirection whose target has ended is reported} {
        set target [connect 3]
        set id [$target client id]
        set c [tracking REDIRECT $id]
        $c get k
        $target -close
        wait_for_condition 100 20 {![string match "*id=$id *" [r client list]]}
        assert_equal {on} [lindex [$c client trackinginfo] 1]
        r set k 1
        assert_equal [list tracking-redir-broken $id] [$c -push]
        assert_equal {on broken_redirect} [lindex [$c client trackinginfo] 1]
        assert_equal $id [$c client getredir]
        assert_equal OK [$c client tracking on]
        assert_equal {on} [lindex [$c client trackinginfo] 1]
    }

    test {CLIENT TRACKING refuses options that do not fit} {
        set c [connect 3]
        set switch "before disabling tracking for this client, and then re-enabling it with a different mode."
        foreach {options error} [list \
            {on REDIRECT} {ERR syntax error} {on REDIRECT x} {ERR value is not an integer or out of range} \
            {on REDIRECT 0} {ERR The client ID you want redirect to does not exist} \
            {off REDIRECT 9999999} {ERR The client ID you want redirect to does not exist} \
            maybe {ERR syntax error} {on FOO} {ERR syntax error} {on PREFIX x} {ERR PREFIX option requires BCAST mode to be enabled} \
            {on BCAST OPTIN} {ERR OPTIN and OPTOUT are not compatible with BCAST} \
            {on OPTIN OPTOUT} {ERR You can't specify both OPTIN mode and OPTOUT mode} \
            {on BCAST PREFIX a PREFIX ab} {ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.}] {
            assert_error $error {$c client tracking {*}$options}
        }
        assert_equal off [lindex [$c client trackinginfo] 1]
        $c client tracking on OPTIN
        assert_error "ERR You can't switch BCAST mode on/off $switch" {$c client tracking on BCAST}
        assert_error "ERR You can't switch OPTIN/OPTOUT mode $switch" {$c client tracking on OPTOUT}
        assert_error "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode." {$c client caching no}
        $c client tracking off
        assert_error "ERR CLIENT CACHING can be called only when*" {$c client caching yes}
        $c client tracking on BCAST PREFIX a
        assert_error "ERR Prefix 'aa' overlaps with an existing prefix 'a'*" {$c client tracking on BCAST PREFIX aa}
        assert_equal {flags {on bcast} redirect 0 prefixes a} [$c client trackinginfo]
    }

    test {TRACKINGINFO, CLIENT LIST and INFO show the state of tracking} {
        info_is tracking_clients 0 ;# the clients of other tests are closed
        set c [tracking OPTIN NOLOOP]
        $c client setname tracker
        $c client caching yes
        assert_equal {flags {on optin caching-yes noloop} redirect 0 prefixes {}} [$c client trackinginfo]
        assert_match {*name=tracker*flags=t *redir=0 *} [r client list]
        assert_equal 1 [info_field tracking_clients]
        $c get k
        set d [tracking]
        $d get k
        $d get l
        assert_equal {2 3} [list [info_field tracking_total_keys] [info_field tracking_total_items]]
        set b [tracking BCAST]
        $b client setname caster
        assert_match {*name=caster*flags=tB *} [r client list]
        $b reset
        assert_equal off [lindex [$b client trackinginfo] 1]
        assert_equal 2 [info_field tracking_clients]
        r flushall
    }

    test {a key read by many sessions is invalidated for all of them} {
        set clients {}
        for {set i 0} {$i < 30} {incr i} {
            set c [tracking]
            $c get shared
            $c get shared
            lappend clients $c
        }
        assert_equal {1 30} [list [info_field tracking_total_keys] [info_field tracking_total_items]]
        foreach c [lrange $clients 0 9] {$c -close}
        wait_for_condition 100 20 {[info_field tracking_clients] == 20}
        r set shared 1
        foreach c [lrange $clients 10 end] {assert_equal shared [invalidated $c]}
        assert_equal {0 0} [list [info_field tracking_total_keys] [info_field tracking_total_items]]
    }

    test {a session that ends and others that come do not fill an entry without bound} {
        for {set i 0} {$i < 60} {incr i} {
            set c [tracking]
            $c get leaky
            $c -close
        }
        assert_range [info_field tracking_total_items] 1 30
        r del leaky
        r set leaky 1
        assert_equal 0 [info_field tracking_total_items]
    }

    test {interests survive off and on, and a session in broadcast mode does not hear of them} {
        set c [tracking]
        $c get k
        $c client tracking off
        $c client tracking on
        r set k 1
        assert_equal k [invalidated $c]
        $c get k
        $c client tracking off
        r set k 2
        assert_equal {} [invalidated $c]
    }
}

start_server {tags {tracking} overrides {tracking-table-max-keys 10}} {
    test {keys beyond tracking-table-max-keys are invalidated by name, at once after CONFIG SET too} {
        set c [tracking]
        for {set i 0} {$i < 30} {incr i} {
            if {$i % 2} {r set key$i v}
            $c get key$i
        }
        assert_equal 10 [info_field tracking_total_keys]
        set dropped [invalidated $c]
        assert_equal 20 [llength $dropped]
        assert_equal 20 [llength [lsort -unique $dropped]]
        foreach key $dropped {assert_match key* $key}
        r config set tracking-table-max-keys 3
        wait_for_condition 100 20 {[info_field tracking_total_keys] == 3} else {
            fail "CONFIG SET alone removes nothing: [info_field tracking_total_keys]"
        }
        assert_equal 7 [llength [invalidated $c]]
        $c get another
        assert_equal {3 1} [list [info_field tracking_total_keys] [llength [invalidated $c]]]
        r config set tracking-table-max-keys 0
        for {set i 0} {$i < 50} {incr i} {$c get many$i}
        assert_equal 53 [info_field tracking_total_keys]
    }
}

start_server {tags {tracking} overrides {maxmemory-policy allkeys-lru}} {
    test {eviction invalidates} {
        set c [tracking]
        for {set i 0} {$i < 50} {incr i} {
            r set key$i [string repeat x 1000]
            $c get key$i
        }
        r config set maxmemory-eviction-tenacity 100 maxmemory 1 ;# without a limit of time
        catch {r set more v}
        r config set maxmemory 0
        assert_equal 50 [llength [invalidated $c]]
    }
}

start_server {tags {tracking cluster} overrides {cluster-enabled yes}} {
    test {the loss of a slot invalidates its keys} {
        r cluster addslotsrange 0 16383
        wait_for_condition 500 20 {[string match *cluster_state:ok* [r cluster info]]}
        set c [tracking]
        r set "{t}a" v
        $c get "{t}a"
        $c get "{t}missing"
        $c get "{u}a"
        r cluster delslots [r cluster keyslot t]
        assert_equal [lsort [list [list "{t}a"] [list "{t}missing"]]] [lsort [invalidated $c]]
        assert_equal 1 [info_field tracking_total_keys]
    }
}

start_server {tags {tracking}} {
    test {CLIENT TRACKING BCAST tells a user only the keys that it may read} {
        r acl setuser limited on nopass +@all resetkeys ~low:* %W~written:* alldbs \
            "(%R~db1:* +@all resetdbs db=1)" (~*) "(~* +ping +publish)"
        set all [connect 3]
        $all client tracking on bcast
        set limited [respConnect [srv host] [srv port] 3]
        $limited auth limited x
        $limited client tracking on bcast
        set noloop [respConnect [srv host] [srv port] 3]
        $noloop auth limited x
        $noloop client tracking on bcast noloop
        r multi
        foreach key {high:1 low:1 low:2 written:1 db1:1} {r set $key v}
        r exec
        r select 1
        r multi
        r set db1:2 v
        r set low:1 v
        r exec
        r select 0
        r set high:2 v
        r set low:3 v
        assert_equal {invalidate {db1:1 high:1 low:1 low:2 written:1}} [$all -push]
        foreach c [list $limited $noloop] {
            assert_equal {invalidate {low:1 low:2}} [$c -push]
            assert_equal {invalidate {db1:2 low:1}} [$c -push]
            assert_equal {invalidate low:3} [$c -push]
        }
    }
}

start_server {tags {tracking}} {
    test {the target of a redirection hears of the end of the session that reads: all it has cached is invalid} {
        foreach mode {{} BCAST {BCAST NOLOOP} OPTIN} {
            foreach end {-close kill reset quit} {
                foreach proto {2 3} {
                    set target [connect $proto]
                    set id [$target client id]
                    if {$proto == 2} {
                        $target -send subscribe __redis__:invalidate
                        $target -read
                    }
                    set other [connect 3]
                    set c [respConnect [srv host] [srv port] 2]
                    $c client tracking on REDIRECT $id {*}$mode
                    $other client tracking on REDIRECT $id
                    if {$mode eq "OPTIN"} {$c client caching yes}
                    $c get cached
                    switch $end {
                        -close {$c -close}
                        kill {
                            r client kill id [$c client id]
                            $c -close
                        }
                        default {$c $end}
                    }
                    set expected [expr {$proto == 2 ? {message __redis__:invalidate {}} : {invalidate {}}}]
                    assert_equal $expected [if {$proto == 2} {$target -read} else {$target -push}]
                    # One message for one session; off says that the program knows.
                    $other get k
                    $other client tracking off
                    $other client tracking on REDIRECT $id
                    $other get k
                    r set k 1
                    assert_equal [lreplace $expected end end k] [if {$proto == 2} {$target -read} else {$target -push}]
                    $target -close
                    $other -close
                    if {$end in {reset quit}} {$c -close}
                }
            }
        }
    }
}
