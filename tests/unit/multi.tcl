# Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH; when they are aborted and what CLIENT LIST reports.

# One field of a client's line in CLIENT LIST, read by another client.
proc client_field {name client} {
    if {![info exists ::client_ids($client)]} {error "no id of $client is known"}
    set line [r client list id $::client_ids($client)]
    if {![regexp "(?:^| )$name=(\[^ \n\]*)" $line all value]} {fail "no field $name in $line"}
    return $value
}

# Opens another client and returns its id too.
proc connect_known {} {
    set client [connect]
    set ::client_ids($client) [$client client id]
    return $client
}

# The reply of an EXEC of PING, or its error.
proc outcome {{client r}} {
    $client multi
    $client ping
    return [$client -typed exec]
}

proc goes {} {return {array {{status PONG}}}}
proc fails {} {return [expr {[resp3] ? {null null} : {null array}}]}
proc null_bulk {} {return [expr {[resp3] ? {null null} : {null bulk}}]}

proc calls {command} {
    if {![regexp "cmdstat_$command:calls=(\\d+),\[^\n]*rejected_calls=(\\d+),failed_calls=(\\d+)" \
            [r info commandstats] all calls rejected failed]} {return {0 0 0}}
    return [list $calls $rejected $failed]
}

proc previous_errors {} {return "EXECABORT Transaction discarded because of previous errors."}

start_server {tags {multi}} {
    test {MULTI queues, EXEC runs and replies an array} {
        r del key
        assert_equal {status OK} [r -typed multi]
        assert_equal {status QUEUED} [r -typed set key value]
        assert_equal {status QUEUED} [r -typed get key]
        assert_equal {status QUEUED} [r -typed get nokey]
        assert_equal {status QUEUED} [r -typed del key]
        set other [connect]
        assert_equal [null_bulk] [$other -typed get key]
        assert_equal [list array [list {status OK} {bulk value} [null_bulk] {integer 1}]] [r -typed exec]
        assert_equal PONG [r ping]
    }

    test {EXEC of nothing replies an empty array} {
        r multi
        assert_equal {array {}} [r -typed exec]
    }

    test {DISCARD forgets the queue} {
        r set key before
        r multi
        r set key after
        assert_equal {status OK} [r -typed discard]
        assert_equal before [r get key]
    }

    test {EXEC and DISCARD without MULTI are errors} {
        assert_error "ERR EXEC without MULTI" {r exec}
        assert_error "ERR DISCARD without MULTI" {r discard}
        assert_equal {status OK} [r -typed unwatch]
    }

    test {a command that cannot be queued is refused and aborts the transaction} {
        foreach {command name} {
            multi multi {watch key} watch {client reply off} client|reply shutdown shutdown
        } {
            r multi
            assert_error "ERR Command '$name' not allowed inside a transaction" {r {*}$command}
            assert_equal {status QUEUED} [r -typed ping]
            assert_error [previous_errors] {r exec}
            assert_equal PONG [r ping]
        }
    }

    test {a command that is refused while queueing discards the transaction} {
        r set key before
        foreach {command error} {
            nosuch "ERR unknown command 'nosuch', with args beginning with: "
            {client nosuch} "ERR unknown subcommand 'nosuch'. Try CLIENT HELP."
            {set key} "ERR wrong number of arguments for 'set' command"
            {client} "ERR wrong number of arguments for 'client' command"
            {multi x} "ERR wrong number of arguments for 'multi' command"
            {watch} "ERR wrong number of arguments for 'watch' command"
            {discard x} "ERR wrong number of arguments for 'discard' command"
        } {
            r multi
            r set key after
            assert_error $error {r {*}$command}
            r set key later
            assert_error [previous_errors] {r exec}
            assert_error "ERR EXEC without MULTI" {r exec}
            assert_equal before [r get key]
        }
    }

    test {DISCARD ends a transaction with a refused command} {
        r multi
        catch {r nosuch}
        assert_equal OK [r discard]
        assert_equal [goes] [outcome]
    }

    test {EXEC that is refused itself discards the transaction} {
        r acl setuser refused reset on nopass allkeys +@all -exec
        r set key before
        r multi
        r set key after
        assert_error "EXECABORT Transaction discarded because of: invalid check condition syntax" {r exec x}
        assert_error "ERR EXEC without MULTI" {r exec}
        assert_equal before [r get key]
        set client [connect]
        $client auth refused x
        $client multi
        $client set key after
        foreach state {inside outside} {
            assert_error "EXECABORT Transaction discarded because of: NOPERM *" {$client exec}
        }
        assert_error "ERR DISCARD without MULTI" {$client discard}
        assert_equal before [r get key]
        r acl deluser refused
    }

    test {an error inside EXEC stops nothing} {
        r multi
        r set key value
        r select 100000
        r set key v nx xx
        r get key
        set want {{status OK} {error {ERR DB index is out of range}} {error {ERR syntax error}} {bulk value}}
        assert_equal [list array $want] [r -typed exec]
    }

    test {SELECT inside a transaction applies to the following commands} {
        r set key zero
        r multi
        r select 1
        r set key one
        r select 0
        r get key
        r select 1
        assert_equal {OK OK OK zero OK} [r exec]
        assert_equal one [r get key]
        r del key
        r select 0
        assert_equal zero [r get key]
    }

    test {HELLO inside a transaction changes the protocol amid the reply} {
        set s [raw_connect]
        raw_send $s "MULTI\r\nGET nokey\r\nHELLO 3\r\nGET nokey\r\nHELLO 2\r\nGET nokey\r\nHELLO 9\r\nEXEC\r\n"
        assert_equal "+OK" [raw_line $s]
        for {set i 0} {$i < 6} {incr i} {assert_equal "+QUEUED" [raw_line $s]}
        assert_equal "*6" [raw_line $s]
        assert_equal "\$-1" [raw_line $s]
        assert_match "%*" [raw_reply $s]
        assert_equal "_" [raw_line $s]
        assert_match "\\**" [raw_reply $s]
        assert_equal "\$-1" [raw_line $s]
        assert_equal "-NOPROTO unsupported protocol version" [raw_line $s]
        raw_close $s
    }

    test {RESET and QUIT are not queued} {
        set s [raw_connect]
        raw_send $s "MULTI\r\nSET key reset\r\nRESET\r\nEXEC\r\nMULTI\r\nSET key quit\r\nQUIT\r\nEXEC\r\n"
        assert_equal "+OK\r\n+QUEUED\r\n+RESET\r\n-ERR EXEC without MULTI\r\n+OK\r\n+QUEUED\r\n+OK\r\n" [raw_rest $s]
        raw_close $s
        assert_equal zero [r get key]
    }

    test {AUTH is queued and replies at its position} {
        r multi
        r auth default nothing
        r auth nothing
        r ping
        set replies [lindex [r -typed exec] 1]
        assert_equal {status OK} [lindex $replies 0]
        assert_match {error {ERR AUTH <password> called without any password configured*}} [lindex $replies 1]
        assert_equal {status PONG} [lindex $replies 2]
    }

    test {one packet may contain whole transactions and further commands} {
        set s [raw_connect]
        set one "MULTI\r\nSET key 1\r\nGET key\r\nEXEC\r\nGET key\r\n"
        raw_send $s [string repeat $one 50]
        set replies "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n\$1\r\n1\r\n\$1\r\n1\r\n"
        assert_equal [string repeat $replies 50] [raw_read $s [expr {50 * [string length $replies]}]]
        raw_close $s
    }

    test {a transaction may arrive byte by byte} {
        set s [raw_connect]
        raw_send $s {*}[split "[resp::encode multi][resp::encode {set key {a b}}]get key\r\n[resp::encode exec]" {}]
        set replies "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n\$3\r\na b\r\n"
        assert_equal $replies [raw_read $s [string length $replies]]
        raw_close $s
    }

    test {large arguments are kept in the queue} {
        set values {}
        foreach size {1 16384 100000 1000000} {lappend values [string repeat [expr {$size % 7}] $size]}
        r multi
        set i 0
        foreach value $values {r set large[incr i] $value}
        set other [connect]
        foreach value $values {$other echo $value}
        assert_equal [lrepeat 4 OK] [r exec]
        set i 0
        foreach value $values {assert {[r get large[incr i]] eq $value} "value $i"}
        r del large1 large2 large3 large4
    }

    test {a discarded transaction may contain a large argument} {
        r multi
        r set large [string repeat x 200000]
        catch {r nosuch}
        r set large [string repeat x 200000]
        assert_error [previous_errors] {r exec}
        assert_equal 0 [r exists large]
    }

    test {a transaction may be very long} {
        set count [scaled 20000]
        set s [raw_connect]
        set requests "MULTI\r\n"
        set queued "+OK\r\n"
        set replies "*$count\r\n"
        for {set i 0} {$i < $count} {incr i} {
            append requests [resp::encode [list echo $i]]
            append queued "+QUEUED\r\n"
            append replies "\$[string length $i]\r\n$i\r\n"
        }
        raw_send $s $requests "EXEC\r\n"
        assert {[raw_read $s [string length $queued]] eq $queued}
        assert {[raw_read $s [string length $replies]] eq $replies}
        raw_close $s
    }

    test {the time does not change inside EXEC} {
        r multi
        r set key value px 20
        r debug sleep 0.1
        r get key
        assert_equal {OK OK value} [r exec]
        assert_equal {} [r get key]
    }

    test {replies of a transaction are as silent as others} {
        set client [connect]
        $client -send client reply off
        $client -send multi
        $client -send set key silent
        $client -send exec
        $client -send client reply on
        assert_equal OK [$client -read]
        assert_equal silent [$client get key]
        $client -send client reply skip
        $client -send multi
        assert_equal QUEUED [$client get key]
        assert_equal silent [$client exec]
    }

    test {a client that kills itself inside EXEC completes the transaction} {
        set client [connect_known]
        $client multi
        $client set killed before
        $client client kill id $::client_ids($client) skipme no
        $client set killed after
        assert_error "*" {
            $client exec
            $client ping
        }
        assert_equal after [r get killed]
    }

    test {a killed client's transaction runs nothing} {
        set client [connect_known]
        $client watch key
        $client multi
        $client set killed never
        assert_equal 1 [r client kill id $::client_ids($client)]
        $client -closed
        assert_equal after [r get killed]
        wait_for_condition 100 10 {[info_field watching_clients] == 0}
    }
}

start_server {tags {multi watch}} {
    test {a watched key that changes makes EXEC reply null, once} {
        set other [connect]
        foreach {before change} {
            {} {set key 1}
            {set key 1} {set key 1}
            {set key 1} {del key}
            {} {set key 1 px 100000}
        } {
            r del key
            if {$before ne {}} {r {*}$before}
            r watch other key another
            $other {*}$change
            assert_equal [fails] [outcome] $change
            assert_equal [goes] [outcome] $change
        }
    }

    test {commands without effect do not count as changes} {
        set other [connect]
        r set key value
        r watch key nokey
        $other get key
        $other set key other nx
        $other set nokey other xx
        $other del nokey
        $other set another value
        assert_error "*" {$other set key}
        assert_equal [goes] [outcome]
    }

    test {a change by the watching client itself counts, inside EXEC it does not} {
        r watch key
        r set key mine
        assert_equal [fails] [outcome]
        r watch key
        r multi
        r set key 1
        r set key 2
        assert_equal {OK OK} [r exec]
        r set key 3
        assert_equal [goes] [outcome]
    }

    test {a reverted change counts} {
        set other [connect]
        r del key
        r watch key
        $other set key 1
        $other del key
        assert_equal [fails] [outcome]
    }

    test {EXEC, DISCARD, UNWATCH and RESET forget watches} {
        foreach forget {{{multi} {exec}} {{multi} {discard}} {{unwatch}} {{reset}}} {
            foreach when {before after} {
                set client [connect]
                $client watch key
                if {$when eq "after"} {$client set key 1}
                foreach command $forget {$client {*}$command}
                if {[resp3]} {$client hello 3}
                if {$when eq "before"} {r set key 2}
                assert_equal [goes] [outcome $client] "$forget $when the change"
            }
        }
    }

    test {an EXEC that is refused forgets watches, one without MULTI does not} {
        set client [connect]
        $client watch key
        r set key 1
        r acl setuser default -exec
        assert_error "EXECABORT *NOPERM*" {$client exec}
        r acl setuser default +exec
        assert_equal [goes] [outcome $client]
        $client watch key
        r set key 2
        assert_error "ERR EXEC without MULTI" {$client exec}
        assert_equal [fails] [outcome $client]
    }

    test {UNWATCH inside a transaction is queued and has no effect} {
        set other [connect]
        r watch key
        r multi
        assert_equal QUEUED [r unwatch]
        $other set key changed
        assert_equal [fails] [r -typed exec]
    }

    test {a watch belongs to the database it was made in} {
        set other [connect]
        $other select 1
        r watch key
        $other set key one
        assert_equal [goes] [outcome]
        r select 1
        r watch key
        r select 0
        r set key zero
        assert_equal [goes] [outcome]
        r select 1
        r watch key
        r select 0
        $other set key two
        assert_equal [fails] [outcome]
        r select 0
    }

    test {a refused command wins over a changed key} {
        r watch key
        r set key 1
        r multi
        catch {r nosuch}
        assert_error [previous_errors] {r exec}
    }

    test {a change between MULTI and EXEC counts} {
        set other [connect]
        r watch key
        r multi
        r set key mine
        $other set key theirs
        assert_equal QUEUED [r get key]
        assert_equal [fails] [r -typed exec]
        assert_equal theirs [r get key]
    }

    test {all watchers of a key fail} {
        set clients {}
        for {set i 0} {$i < 20} {incr i} {
            lappend clients [set client [connect]]
            $client watch key$i key [expr {$i % 2 ? "odd" : "even"}]
        }
        r set odd 1
        set i 0
        foreach client $clients {
            assert_equal [expr {$i % 2 ? [fails] : [goes]}] [outcome $client] "client $i"
            $client watch key
            incr i
        }
        r set key 1
        foreach client $clients {assert_equal [fails] [outcome $client]}
    }

    test {a key that expires after WATCH makes EXEC fail} {
        r set key value px 500
        r watch key
        # The key is not accessed: EXEC itself must notice that it has expired.
        set other [connect]
        $other set clock x px 510
        wait_for_condition 100 10 {[$other exists clock] == 0}
        assert_equal [fails] [outcome]
    }

    test {a key that expires after WATCH and is removed makes EXEC fail} {
        set other [connect]
        r set key value px 500
        r watch key
        wait_for_condition 100 10 {[$other exists key] == 0}
        assert_equal [fails] [outcome]
    }

    test {a key that expires only later does not make EXEC fail} {
        r set key value px 100000
        r watch key
        assert_equal [goes] [outcome]
    }

    test {FLUSHALL makes EXEC fail if a watched key exists} {
        set other [connect]
        r set key value
        r watch key
        $other flushall
        assert_equal [fails] [outcome]
        r watch key
        $other flushall
        assert_equal [goes] [outcome]
        r set another value
        r watch key
        $other flushall
        assert_equal [goes] [outcome]
        r select 1
        r set key value
        r watch key
        r select 0
        $other flushall
        assert_equal [fails] [outcome]
    }

    test {FLUSHDB breaks watches of its own database only} {
        set other [connect]
        r select 0
        r set key value
        r watch key
        $other select 1
        $other set key value
        $other flushdb
        assert_equal [goes] [outcome]
        r watch key
        $other select 0
        $other flushdb
        assert_equal [fails] [outcome]
        r watch key
        $other flushdb
        assert_equal [goes] [outcome]
    }

    test {SWAPDB counts as a change of keys that exist on either side} {
        set other [connect]
        foreach {in_zero in_one outcome} {
            {}          {}          goes
            {set key 1} {}          fails
            {}          {set key 1} fails
            {set key 1} {set key 1} fails
            {set k 1}   {set k 1}   goes
        } {
            foreach watched {0 1} {
                r flushall
                if {$in_zero ne {}} {r {*}$in_zero}
                r select 1
                if {$in_one ne {}} {r {*}$in_one}
                r select $watched
                r watch key
                $other swapdb 0 1
                assert_equal [$outcome] [outcome] "$in_zero, $in_one, watched in $watched"
                r select 0
            }
        }
        r set key value
        r watch key
        $other swapdb 1 2
        $other swapdb 0 0
        assert_equal [goes] [outcome]
        r flushall
    }

    test {a watch stays with the number of its database} {
        set other [connect]
        r watch key
        $other swapdb 0 1
        $other select 1
        $other set key value
        assert_equal [goes] [outcome]
        r watch key
        $other select 0
        $other set key value
        assert_equal [fails] [outcome]
        r flushall
    }

    test {a key already expired when watched may be removed, but not created} {
        set other [connect]
        r debug set-active-expire 0
        foreach {then outcome} {
            {ping}       goes
            {get key}    goes
            {del key}    goes
            {flushdb}    goes
            {swapdb 0 1} goes
            {set key 1}  fails
        } {
            r flushall
            r set key value px 1
            # A lookup would remove the key, so another key is used to see that the time has passed.
            r set clock x px 2
            wait_for_condition 100 2 {[r exists clock] == 0}
            r watch key
            $other {*}$then
            assert_equal [$outcome] [outcome] $then
        }
        r debug set-active-expire 1
        r flushall
    }

    test {other ways to change a key count as well} {
        set other [connect]
        foreach change {{expire key 100} {persist ttl} {rename key new} {rename ttl key} {copy ttl key replace}
                        {move key 1} {append key x} {incr key} {expire key -1}} {
            r flushall
            r set key 1
            r set ttl 1 ex 100
            r watch key ttl new
            $other {*}$change
            assert_equal [fails] [outcome] $change
        }
        foreach look {{persist key} {expire nokey 10} {touch key} {type key} {object encoding key} {copy ttl key}} {
            r watch key ttl nokey
            $other {*}$look
            assert_equal [goes] [outcome] $look
            r set key 1
        }
        r flushall
    }

    test {many keys may be watched} {
        set count [scaled 20000]
        set keys {}
        for {set i 0} {$i < $count} {incr i} {lappend keys key$i}
        r watch {*}$keys
        assert_equal $count [info_field total_watched_keys]
        r set key[random_below $count] 1
        assert_equal 0 [info_field total_watched_keys]
        assert_equal [fails] [outcome]
    }
}

start_server {tags {multi} overrides {client-query-buffer-limit 1mb}} {
    test {CLIENT LIST shows queue and watches} {
        set client [connect_known]
        set other [connect]
        foreach {field value} {multi -1 watch 0 multi-mem 0 flags N} {
            assert_equal $value [client_field $field $client] $field
        }
        $client watch a b a
        assert_equal 2 [client_field watch $client]
        assert_equal N [client_field flags $client]
        $client multi
        assert_equal {x 0 0} [list [client_field flags $client] [client_field multi $client] [client_field multi-mem $client]]
        set idle [client_field tot-mem $client]
        $client set key [string repeat x 1000]
        $client get key
        assert_equal 2 [client_field multi $client]
        assert_range [client_field multi-mem $client] 1000 3000
        assert {[client_field tot-mem $client] >= $idle + 1000}
        assert_equal get [client_field cmd $client]
        $other set b changed
        foreach {field value} {flags xd multi 0 watch 0 multi-mem 0} {
            assert_equal $value [client_field $field $client] $field
        }
        $client exec
        foreach {field value} {flags N multi 0 watch 0 multi-mem 0} {
            assert_equal $value [client_field $field $client] $field
        }
    }

    test {CLIENT LIST finds clients in MULTI by their flag} {
        set client [connect_known]
        $client multi
        set lines [split [string trim [r client list flags x]] "\n"]
        assert_equal 1 [llength $lines]
        assert_match "id=$::client_ids($client) *" [lindex $lines 0]
        $client discard
        assert_equal {} [string trim [r client list flags x]]
    }

    test {a refused command empties the queue at once} {
        set client [connect_known]
        $client multi
        $client set key [string repeat x 10000]
        catch {$client nosuch}
        assert_equal 0 [client_field multi $client]
        assert_equal 0 [client_field multi-mem $client]
        $client discard
    }

    test {INFO counts watching clients and watched keys} {
        set first [connect]
        set second [connect]
        assert_equal {0 0} [list [info_field watching_clients] [info_field total_watched_keys]]
        $first watch a b
        $second watch a
        $second select 1
        $second watch a c
        assert_equal {2 4} [list [info_field watching_clients] [info_field total_watched_keys]]
        $second set c 1
        assert_equal {1 2} [list [info_field watching_clients] [info_field total_watched_keys]]
        $first unwatch
        assert_equal {0 0} [list [info_field watching_clients] [info_field total_watched_keys]]
    }

    test {commands count when they run, not when they are queued} {
        set client [connect_known]
        r config resetstat
        set before [client_field tot-cmds $client]
        $client multi
        $client set key 1
        $client set key 2
        assert_equal {0 0 0} [calls set]
        assert_equal [expr {$before + 1}] [client_field tot-cmds $client]
        $client exec
        assert_equal {2 0 0} [calls set]
        assert_equal {1 0 0} [calls exec]
        assert_equal [expr {$before + 4}] [client_field tot-cmds $client]
        $client multi
        catch {$client set}
        catch {$client multi}
        catch {$client exec}
        assert_equal {2 1 0} [calls set]
        assert_equal {2 1 0} [calls multi]
        assert_equal {2 0 1} [calls exec]
        assert_equal [expr {$before + 6}] [client_field tot-cmds $client]
        catch {$client exec x}
        catch {$client exec}
        assert_equal {4 0 3} [calls exec]
        assert_match "*errorstat_ERR:count=4*errorstat_EXECABORT:count=1*" [join [lsort [split [r info errorstats] "\n"]]]
    }

    test {a queue beyond client-query-buffer-limit closes the client} {
        set client [connect]
        $client multi
        set sent 0
        assert_error "*" {
            while {$sent < 100} {
                $client set key [string repeat x 30000]
                incr sent
            }
        }
        assert_range $sent 20 40
        assert_equal 0 [r exists key:after]
        assert_equal PONG [r ping]
    }
}

start_server {tags {multi} overrides {requirepass secret}} {
    test {EXEC without login is an EXECABORT} {
        set client [respConnect [srv host] [srv port] 2]
        assert_error "EXECABORT Transaction discarded because of: NOAUTH Authentication required." {$client exec}
        assert_error "NOAUTH Authentication required." {$client multi}
        $client auth secret
        assert_equal {array {{status PONG}}} [outcome $client]
        $client -close
    }
}
