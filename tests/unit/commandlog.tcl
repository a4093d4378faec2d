# SPDX-License-Identifier: BSD-3-Clause
#
# COMMANDLOG and SLOWLOG: which commands are logged, truncation, redaction, and the limit of entries.

# The arguments of the newest entry of a log.
proc newest {kind} {return [lindex [r commandlog get 1 $kind] 0 3]}

start_server {tags {commandlog}} {
    test {with a limit of 0 every command that runs is logged, refused ones are not} {
        r config set slowlog-log-slower-than 0
        r slowlog reset
        r set k v
        catch {r get}
        catch {r nosuch}
        catch {r incr k}
        assert_equal {{incr k} {set k v} {slowlog reset}} [lmap e [r slowlog get 3] {lindex $e 3}]
        r config set slowlog-log-slower-than 10000
    }

    test {an entry has id, time, duration, arguments, address and client name} {
        r client setname me
        r slowlog reset
        r config set slowlog-log-slower-than 1000
        r debug sleep 0.002
        r config set slowlog-log-slower-than 100000
        set entry [lindex [r slowlog get] 0]
        assert_equal 6 [llength $entry]
        lassign $entry id time us argv peer name
        assert {$us >= 2000}
        assert_equal {debug sleep 0.002} $argv
        assert_match "*:*" $peer
        assert_equal me $name
        assert_match "* addr=$peer *" [r client info]
        r client setname {}
    }

    test {a slow command is found with the limit of a default configuration} {
        r slowlog reset
        r config set slowlog-log-slower-than 10000
        r debug sleep 0.02
        assert_equal {{debug sleep 0.02}} [lmap e [r slowlog get] {lindex $e 3}]
    }

    test {arguments are truncated to 32 arguments of 128 bytes} {
        r config set slowlog-log-slower-than 0
        r mset {*}[lrepeat 18 key value]
        set argv [newest slow]
        assert_equal 32 [llength $argv]
        assert_equal "... (6 more arguments)" [lindex $argv end]
        r set k [string repeat x 200]
        assert_equal "[string repeat x 128]... (72 more bytes)" [lindex [newest slow] 2]
        r set k [string repeat x 128]
        assert_equal [string repeat x 128] [lindex [newest slow] 2]
    }

    test {secrets are redacted} {
        r config set slowlog-log-slower-than 0
        catch {r auth secret}
        assert_equal {auth (redacted)} [newest slow]
        catch {r auth user secret}
        assert_equal {auth (redacted) (redacted)} [newest slow]
        r hello [expr {2 + [resp3]}] auth default secret setname x
        assert_equal [list hello [expr {2 + [resp3]}] auth (redacted) (redacted) setname x] [newest slow]
        r config set primaryauth secret maxmemory 0
        assert_equal {config set primaryauth (redacted) maxmemory 0} [newest slow]
        r config set primaryauth {}
        r client setname {}
    }

    test {secrets are redacted in requests with errors, too} {
        r config set slowlog-log-slower-than 0
        foreach {request shown} {
            {auth user my secret} {auth (redacted) (redacted) (redacted)}
            {hello auth user secret} {hello auth (redacted) (redacted)}
            {hello 9 auth user secret} {hello 9 auth (redacted) (redacted)}
            {hello 3 bad auth user secret} {hello 3 bad auth (redacted) (redacted)}
            {hello 3 auth secret} {hello 3 auth (redacted)}
            {hello 3 setname {a b} auth user secret} {hello 3 setname {a b} auth (redacted) (redacted)}
            {config set maxmemory requirepass secret} {config set maxmemory requirepass (redacted)}
            {config set bad 1 requirepass secret} {config set bad 1 requirepass (redacted)}
            {config set requirepass my secret} {config set requirepass (redacted) secret}
            {acl setuser u bad >secret} {acl setuser (redacted) (redacted) (redacted)}
        } {
            assert_error * {r {*}$request}
            assert_equal $shown [newest slow]
        }
    }

    test {of a transaction the commands are logged, EXEC is not} {
        r config set slowlog-log-slower-than 0
        r multi
        r set k v
        r get k
        r exec
        assert_equal {{get k} {set k v} multi} [lmap e [r slowlog get 3] {lindex $e 3}]
    }

    test {the log keeps the newest, their ids grow, and -1 gets all} {
        r config set slowlog-log-slower-than 0
        r config set slowlog-max-len 3
        foreach i {1 2 3 4 5} {r set k $i}
        assert_equal 3 [r slowlog len]
        set ids [lmap e [r slowlog get -1] {lindex $e 0}]
        assert_equal 3 [llength $ids]
        assert_equal [lsort -integer -decreasing $ids] $ids
        assert_equal 1 [llength [r slowlog get 1]]
        assert_equal 0 [llength [r slowlog get 0]]
        r config set slowlog-max-len 128 slowlog-log-slower-than 10000
    }

    test {large requests and replies are logged by their bytes on the wire} {
        r config set slowlog-log-slower-than -1
        r set k [string repeat v 100]
        r config set commandlog-request-larger-than 100 commandlog-reply-larger-than 100
        r commandlog reset large-request
        r commandlog reset large-reply
        r get k
        r set k [string repeat v 90]
        r get k
        set requests [r commandlog get -1 large-request]
        assert_equal 1 [llength $requests]
        assert_equal 117 [lindex $requests 0 2]
        assert_equal set [lindex $requests 0 3 0]
        set replies [r commandlog get -1 large-reply]
        assert_equal {{commandlog get -1 large-request} {get k}} [lmap e $replies {lindex $e 3}]
        assert_equal 108 [lindex $replies end 2]
        r commandlog reset large-request
        set s [raw_connect]
        raw_send $s "SET k [string repeat v 150]\r\n"
        assert_equal +OK [raw_line $s]
        assert_equal set [string tolower [lindex [newest large-request] 0]]
        r config set commandlog-request-larger-than 1048576 commandlog-reply-larger-than 1048576
    }

    test {a request with a large argument is logged by default} {
        r commandlog reset large-request
        r commandlog reset large-reply
        r set k [string repeat v 1100000]
        assert_equal 1 [r commandlog len large-request]
        r get k
        assert_equal 1 [r commandlog len large-reply]
        r del k
    }

    test {errors of COMMANDLOG and SLOWLOG} {
        set type "ERR type should be one of the following: slow, large-request, large-reply"
        set count "ERR count should be greater than or equal to -1"
        assert_error $type {r commandlog get 1 x}
        assert_error $type {r commandlog len x}
        assert_error $type {r commandlog reset x}
        assert_error $count {r commandlog get -2 slow}
        assert_error $count {r slowlog get x}
        assert_error "ERR unknown subcommand or wrong number*SLOWLOG HELP." {r slowlog get 1 2}
        assert_error "ERR wrong number of arguments for 'commandlog|len' command" {r commandlog len}
        assert_match "SLOWLOG <subcommand>*" [lindex [r slowlog help] 0]
        assert_match "COMMANDLOG <subcommand>*" [lindex [r commandlog help] 0]
    }
}

start_server {tags {commandlog} overrides {slowlog-log-slower-than 0 commandlog-request-larger-than 0 commandlog-reply-larger-than 0}} {
    test {a command that blocks is logged once, when it is served or times out} {
        foreach kind {slow large-request large-reply} {r commandlog reset $kind}
        set c [connect]
        $c -send blpop q 0
        wait_for_condition 500 5 {[info_field blocked_clients] == 1}
        r rpush q x
        assert_equal {q x} [$c -read]
        assert_equal {} [$c blpop q 0.01]
        assert_equal 0 [$c wait 1 10]
        foreach kind {slow large-request large-reply} {
            set logged [lmap e [r commandlog get 50 $kind] {lindex $e 3}]
            assert_equal {{wait 1 10} {blpop q 0.01} {blpop q 0} {rpush q x}} \
                [lsearch -all -inline -regexp $logged {^(wait|blpop|rpush)}] $kind
        }
    }
}
