# SPDX-License-Identifier: BSD-3-Clause
#
# Users and what they may do: ACL commands, AUTH, and the check of every request. Files are tested in acl_file.tcl,
# ACL LOG in acl_log.tcl.

# Another client, logged in as a user who needs no password.
proc client_of {name} {
    set c [connect]
    $c auth $name x
    return $c
}

# Subscribes and waits for `count` confirmations.
proc subscribed {client count args} {
    $client -send {*}$args
    for {set i 0} {$i < $count} {incr i} {$client -message}
}

# The part of ACL LIST after "user NAME ".
proc rules_of {name} {
    foreach line [r acl list] {
        if {[string match "user $name *" $line]} {return [string range $line [string length "user $name "] end]}
    }
}

start_server {tags {acl}} {
    test {a fresh server has an open default user} {
        assert_equal {{user default on nopass ~* &* +@all}} [r acl list]
        assert_equal default [r acl users]
        assert_equal default [r acl whoami]
        assert_equal {nopass on} [lsort [dict get [r acl getuser default] flags]]
        assert_equal {} [r acl getuser nope]
    }

    test {ACL SETUSER applies rules from left to right, and nothing if one is invalid} {
        r acl setuser u on >secret ~a %R~b &c +get +@hash -hset
        assert_match "on #* ~a %R~b resetchannels &c -@all +get +@hash -hset" [rules_of u]
        set before [rules_of u]
        assert_error "ERR Error in ACL SETUSER modifier '+nope': Unknown command or category name in ACL" {
            r acl setuser u off ~z +nope
        }
        assert_equal $before [rules_of u]
        assert_error "ERR Error in ACL SETUSER modifier 'foo': Syntax error" {r acl setuser new foo}
        assert_equal {} [r acl getuser new]
        assert_error "ERR Unmatched parenthesis in acl selector starting at '(+get'." {r acl setuser u (+get ~a}
        assert_error "ERR Usernames can't contain spaces or null characters" {r acl setuser "a b"}
        assert_error "ERR Usernames can't contain spaces or null characters" {r acl setuser "a\0b"}
        r acl deluser u
    }

    test {ACL GETUSER shows flags, hashes, rules and selectors} {
        r acl setuser u reset on >abc db=2,1 ~a &b +get (+set %W~x db=1)
        set u [r acl getuser u]
        assert_equal {flags passwords commands keys channels databases selectors} [dict keys $u]
        assert_equal ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad [dict get $u passwords]
        assert_equal {-@all +get} [dict get $u commands]
        assert_equal ~a [dict get $u keys]
        assert_equal &b [dict get $u channels]
        assert_equal db=1,2 [dict get $u databases]
        assert_equal {commands {-@all +set} keys %W~x channels {} databases db=1} [lindex [dict get $u selectors] 0]
        r acl deluser u
    }

    test {for each category, adding and removing it reads back the same} {
        foreach category [r acl cat] {
            r acl setuser u reset +@all -@$category
            assert_equal "+@all -@$category" [dict get [r acl getuser u] commands]
            r acl setuser u reset -@all +@$category
            assert_equal "-@all +@$category" [dict get [r acl getuser u] commands]
        }
        assert {"config|get" in [r acl cat ADMIN]}
        assert_equal 22 [llength [r acl cat]]
        assert_error "ERR Unknown category 'all'" {r acl cat all}
        r acl deluser u
    }

    test {ACL GENPASS returns the requested number of bits} {
        assert_equal 64 [string length [r acl genpass]]
        assert_equal 2 [string length [r acl genpass 5]]
        assert_not_equal [r acl genpass] [r acl genpass]
        assert_error "ERR ACL GENPASS argument must be*" {r acl genpass 0}
        assert_error "ERR ACL GENPASS argument must be*" {r acl genpass 4097}
        assert_error "ERR value is not an integer*" {r acl genpass x}
    }

    test {ACL DRYRUN tells what is missing and runs nothing} {
        r acl setuser u reset +get +set ~a db=0
        assert_equal OK [r acl dryrun u set a 1]
        assert_equal {} [r get a]
        assert_equal "User u has no permissions to run the 'config|set' command" [r acl dryrun u config set a b]
        assert_equal "User u has no permissions to access the 'b' key" [r acl dryrun u get b]
        assert_equal "User u has no permissions to access database 3" [r acl dryrun u select 3]
        assert_error "ERR User 'nope' not found" {r acl dryrun nope get a}
        assert_error "ERR Command 'nope' not found" {r acl dryrun u nope}
        assert_error "ERR Command 'config' not found" {r acl dryrun u config nope}
        assert_error "ERR wrong number of arguments for 'get' command" {r acl dryrun u get}
        r acl setuser u %R~* ~**
        assert_equal "User u has no permissions to access the '' key" [r acl dryrun u get {}]
        r acl setuser u allkeys
        assert_equal OK [r acl dryrun u get {}]
        r acl deluser u
    }

    test {rules with blanks, control characters and open quotes are errors (case 34)} {
        foreach rule {% %~ ( (%~) "(+get \"~a)" "+select|a b" "+select|\"" "+select|a\nb" "~a b" "~a\nb" "&\t" "#x" ")"} {
            assert_error "ERR *" {r acl setuser u $rule}
        }
        assert_equal {} [r acl getuser u]
        assert_equal 1 [llength [r acl list]]
    }

    test {patterns of 50,000 stars and question marks are matched in bounded time (case 14)} {
        r acl setuser u reset on nopass +@all "~[string repeat *? 50000]"
        set c [client_of u]
        assert_error "NOPERM No permissions to access a key" {$c get [string repeat a 1000]}
        r acl setuser u resetkeys "~[string repeat a* 15]b"
        assert_error "NOPERM*" {$c get [string repeat a 5000]}
        r acl deluser u
    }
}

start_server {tags {acl}} {
    test {AUTH accepts any password of an enabled user, by name} {
        r acl setuser u on >one >two +@all
        set c [connect]
        foreach password {one two} {
            assert_equal OK [$c auth u $password]
            assert_equal u [$c acl whoami]
        }
        assert_error "WRONGPASS*" {$c auth u three}
        assert_error "WRONGPASS*" {$c auth nope one}
        assert_equal u [$c acl whoami]
        r acl setuser u "<two"
        assert_error "WRONGPASS*" {$c auth u two}
        r acl setuser u off
        assert_error "WRONGPASS*" {$c auth u one}
        assert_equal u [$c acl whoami]
        assert_error "ERR AUTH <password> called without any password*" {$c auth one}
        assert_equal OK [$c auth default anything]
    }

    test {HELLO AUTH: the last AUTH counts, and nothing changes on failure} {
        r acl setuser u on >one +@all
        set c [respConnect [srv host] [srv port] 2]
        set hello [$c hello 3 auth default x auth u one setname me]
        assert_equal u [$c acl whoami]
        assert_error "WRONGPASS*" {$c hello 2 auth u wrong setname other}
        assert_equal me [$c client getname]
        $c -close
    }

    test {requirepass is the password of the default user, and replaces all others} {
        r config set requirepass foo
        assert_match "on #* ~\\* &\\* +@all" [rules_of default]
        r acl setuser default >bar
        set c [respConnect [srv host] [srv port] 2]
        assert_error "NOAUTH*" {$c ping}
        assert_equal OK [$c auth bar]
        r config set requirepass baz
        assert_error "WRONGPASS*" {$c auth bar}
        assert_equal OK [$c auth baz]
        assert_equal OK [$c auth default baz]
        r config set requirepass {}
        assert_equal "on nopass ~* &* +@all" [rules_of default]
        $c -close
    }

    test {a default user that is off: new connections must log in, others continue} {
        r acl setuser default off
        r acl setuser u on nopass +@all
        set c [respConnect [srv host] [srv port] 2]
        assert_error "NOAUTH*" {$c ping}
        assert_equal OK [$c auth u x]
        assert_equal PONG [$c ping]
        assert_equal RESET [$c reset]
        assert_error "NOAUTH*" {$c ping}
        assert_equal PONG [r ping]
        r acl setuser default on
        $c -close
    }

    test {passwords are in no log, not in MONITOR, not in the slow log} {
        r config set slowlog-log-slower-than 0
        set m [connect]
        $m monitor
        r acl setuser u on >hidden1 "#[string repeat a 64]"
        set c [connect]
        $c auth u hidden1
        catch {$c auth u hidden2}
        r config set requirepass hidden3
        r config set requirepass {}
        r echo end
        set seen {}
        while {![string match *end* $seen]} {append seen [$m -read] \n}
        assert {![string match *hidden* $seen]}
        assert {![string match *hidden* [r slowlog get 50]]}
        assert {![string match *hidden* [server_log]]}
        assert_match {*acl setuser (redacted)*} [r slowlog get 50]
        r config set slowlog-log-slower-than 10000
    }
}

start_server {tags {acl}} {
    test {commands: single ones, subcommands, categories, a first argument} {
        r acl setuser u reset on nopass ~* +ping +config|get +@string -append +select|0
        set c [client_of u]
        assert_equal PONG [$c ping]
        $c config get maxmemory
        $c set k v
        $c select 0
        assert_error "NOPERM User u has no permissions to run the 'config|set' command" {$c config set maxmemory 1}
        assert_error "NOPERM User u has no permissions to run the 'append' command" {$c append k v}
        assert_error "NOPERM*'select' command" {$c select 1}
        assert_error "NOPERM*'del' command" {$c del k}
        assert_error "ERR unknown command*" {$c nope}
        assert_error "ERR wrong number*" {$c append k}
        # AUTH, HELLO, RESET and QUIT are always allowed
        r acl setuser u -@all
        $c hello 2
        $c auth u x
        assert_equal RESET [$c reset]
    }

    test {a rule that takes effect concerns sessions that are logged in already} {
        r acl setuser u reset on nopass ~* +@all
        set c [client_of u]
        assert_equal OK [$c set k v]
        r acl setuser u -set
        assert_error "NOPERM*'set' command" {$c set k v}
        r acl setuser u +@all resetkeys ~x
        assert_error "NOPERM No permissions to access a key" {$c set k v}
        assert_equal OK [$c set x v]
        r acl setuser u allkeys
        assert_equal OK [$c set k v]
    }

    test {a restricted default user} {
        r acl setuser boss on nopass ~* &* +@all
        set boss [client_of boss]
        set c [connect]
        r acl setuser default -set
        assert_error "NOPERM User default*" {r set k v}
        assert_error "NOPERM User default*" {$c set k v}
        assert_error "NOPERM User default*" {[connect] set k v}
        $boss acl setuser default +@all
        assert_equal OK [$c set k v]
    }

    test {keys: reading and writing need their rights} {
        r flushall
        r mset read 1 write 2 both 3
        r acl setuser u reset on nopass +@all %R~read %W~write ~both
        set c [client_of u]
        assert_equal 1 [$c get read]
        assert_equal OK [$c set write x]
        assert_equal 3 [$c set both x get]
        foreach request {
            {get write} {set read x} {set write x get} {incr write} {getdel read} {getex read ex 10}
            {mget read write} {mset write 1 read 2} {copy write read} {rename read write} {get other}
            {bitfield read set u8 0 1} {lmove write read left left} {sort read store other}
        } {
            assert_error "NOPERM No permissions to access a key" {$c {*}$request}
        }
        assert_equal 1 [$c copy read write replace]
        assert_equal 1 [$c exists read]
        assert_equal 1 [$c exists write]
        assert_equal 3 [lindex [$c bitfield read get u4 0] 0]
    }

    test {a read-only user cannot change through commands that also return data (case 37)} {
        r flushall
        r hset h f v
        r set s v
        r rpush l 1
        r acl setuser u reset on nopass +@all %R~*
        set c [client_of u]
        foreach request {{hgetex h ex 10 fields 1 f} {getex s ex 10} {hpersist h fields 1 f} {hgetdel h fields 1 f} {sort l store other}} {
            assert_error "NOPERM No permissions to access a key" {$c {*}$request}
        }
        assert_equal {0 v v} [list [r exists other] [r hget h f] [r get s]]
    }

    test {GEORADIUS with STORE twice is checked for the last destination (case 36)} {
        r flushall
        r geoadd mine 0 0 a
        r set theirs kept
        r acl setuser u reset on nopass +@all ~mine
        set c [client_of u]
        foreach option {store storedist} {
            assert_error "NOPERM*" {$c georadius mine 0 0 1 km store mine $option theirs}
            assert_error "NOPERM*" {$c georadiusbymember mine a 1 km store mine $option theirs}
        }
        assert_equal kept [r get theirs]
    }

    test {BY and GET of SORT need the right to read every key (case 35)} {
        r flushall
        r rpush l 1 2
        r mset w1 2 w2 1
        r acl setuser u reset on nopass +@all ~l
        set c [client_of u]
        foreach command {sort sort_ro} {
            assert_error "ERR BY option of SORT denied due to insufficient ACL permissions." {$c $command l by w*}
            assert_error "ERR GET option of SORT denied due to insufficient ACL permissions." {$c $command l get w*}
            assert_equal {1 2} [$c $command l by nosort get #]
        }
        r acl setuser u %R~*
        assert_equal {2 1} [$c sort l by w*]
    }

    test {every one of 3,000 keys is checked (case 19)} {
        r acl setuser u reset on nopass +@all ~k*
        set c [client_of u]
        set keys [lrepeat 3000 k]
        assert_equal 0 [$c exists {*}$keys]
        assert_error "NOPERM*" {$c exists {*}$keys other}
        assert_equal 3000 [llength [r command getkeys exists {*}$keys]]
    }

    test {selectors: one must allow everything by itself} {
        r flushall
        r acl setuser u reset on nopass (+get ~a) (+set ~b)
        set c [client_of u]
        assert_equal OK [$c set b 1]
        assert_equal {} [$c get a]
        assert_error "NOPERM No permissions to access a key" {$c get b}
        assert_error "NOPERM*'del' command" {$c del b}
        r acl setuser u clearselectors
        assert_error "NOPERM*'get' command" {$c get a}
    }

    test {databases: of the session, of SELECT, MOVE, COPY, SWAPDB and FLUSHALL (case 55)} {
        r flushall
        r acl setuser u reset on nopass +@all ~* db=0,2
        set c [client_of u]
        $c set k v
        assert_equal OK [$c select 2]
        assert_equal OK [$c select 0]
        foreach request {{select 1} {move k 1} {copy k j db 1} {copy k j db 2 replace db 1} {swapdb 0 1} {swapdb 1 0} {flushall}} {
            assert_error "NOPERM No permissions to access database" {$c {*}$request}
        }
        assert_error "ERR DB index is out of range" {$c select 99}
        assert_equal 1 [$c copy k j db 2]
        r acl setuser u db=2
        assert_error "NOPERM No permissions to access database" {$c get k}
        assert_error "NOPERM No permissions to access database" {$c dbsize}
        assert_equal PONG [$c ping]
        r acl setuser u db=[join [lmap i [lrepeat 16 0] {incr n; expr {$n - 1}}] ,]
        assert_equal OK [$c flushall]
    }
}

start_server {tags {acl}} {
    test {SORT: one selector must allow the request together with reading all keys of this database} {
        r flushall
        r rpush dlist 1 2
        r mset w_1 2 w_2 1
        foreach {rules allowed} {
            {~d* {(+sort %R~*)}} 0
            {~d* {(+sort %R~* %W~dest)}} 1
            {~d* {(+sort ~* resetdbs db=1)}} 0
            {~d* {(+sort ~* resetdbs db=0)}} 1
            {~d* {(~* +get)}} 0
            {~*} 1
        } {
            r acl setuser u reset on nopass +sort {*}$rules
            set c [client_of u]
            set said [catch {$c sort dlist by w_* store dest} reply]
            assert_equal [list $rules [expr {$allowed ? {0 2} : {1 {ERR BY option of SORT denied due to insufficient ACL permissions.}}}]] \
                [list $rules [list $said $reply]]
            $c -close
        }
    }

    test {MULTI: a request is checked when it is queued} {
        r acl setuser u reset on nopass +@all -del ~a
        set c [client_of u]
        $c multi
        assert_equal QUEUED [$c set a 1]
        assert_error "NOPERM*key" {$c set b 1}
        assert_error "EXECABORT*previous errors." {$c exec}
        assert_equal {} [r get a]
        $c multi
        assert_error "NOPERM*'del' command" {$c del a}
        $c discard
    }

    test {EXEC: all queued requests are checked again if rights have changed, and either all run or none} {
        r acl setuser u reset on nopass +@all ~* &*
        set c [client_of u]
        set texts {
            -set b "no permission to execute the command or subcommand" set
            {resetkeys ~a ~c} b "no permission to touch the specified keys" b
            resetchannels "" "no permission to access one of the channels used as arguments" news
            db=0 "" "no permission" 1
            {-@all +multi +exec +publish +select +incr (+set db=0 ~a ~c)} b "no permission to touch the specified keys" b
        }
        foreach {rules key reason object} $texts {
            r flushall
            r acl log reset
            $c multi
            $c incr a
            $c set b 1
            $c publish news x
            $c select 1
            $c incr c
            $c select 0
            r acl setuser u {*}$rules
            r incr by_others
            assert_error "EXECABORT Transaction discarded because of: NOPERM ACLs rules changed between the moment the transaction was\
                accumulated and the EXEC call. This command is no longer allowed for the following reason: $reason" {$c exec}
            set entry [lindex [r acl log] 0]
            assert_equal [list multi $object] [list [dict get $entry context] [dict get $entry object]]
            assert_equal by_others [r keys *]
            assert_equal 0 [string match *db1:* [r info keyspace]]
            assert_error "ERR EXEC without MULTI" {$c exec}
            r acl setuser u reset on nopass +@all ~* &*
        }
        # Rights that were taken and given back, and other rights, do not matter.
        $c multi
        $c incr a
        r acl setuser u -incr
        r acl setuser u +incr -lpush resetkeys ~a
        assert_equal 1 [$c exec]
        r acl setuser u +@all allkeys
        $c multi
        $c ping
        r acl setuser u -exec
        assert_error "EXECABORT Transaction discarded because of: NOPERM User u*'exec' command" {$c exec}
        r acl setuser u +@all
        assert_error "ERR EXEC without MULTI" {$c exec}
    }

    test {EXEC: rights that a queued command takes are missing after it, as in Valkey} {
        r flushall
        r acl setuser u reset on nopass +@all ~*
        set c [client_of u]
        $c multi
        $c set a 1
        $c acl setuser u -incr
        $c incr n
        $c -send exec
        assert_match "*OK*OK*NOPERM ACLs rules changed between the moment*reason: no permission to execute the command*" [$c -readtyped]
        assert_equal a [r keys *]
    }

    test {in MULTI the database is the one that the queue has selected} {
        r flushall
        r acl setuser u reset on nopass +@all ~* db=1
        set c [client_of u]
        $c multi
        assert_error "NOPERM*database" {$c set k v}
        $c discard
        $c multi
        assert_equal QUEUED [$c select 1]
        assert_equal QUEUED [$c set k v]
        assert_equal {OK OK} [$c exec]
        $c multi
        assert_equal QUEUED [$c get k]
        assert_equal v [$c exec]
        r acl setuser u db=0,1
        $c multi
        $c select 0
        r acl setuser u db=1
        assert_error "NOPERM*database" {$c get k}
        assert_error "EXECABORT*" {$c exec}
    }

    test {a blocked request is checked again when its data arrives; the data stays} {
        r flushall
        r config resetstat
        r acl setuser u reset on nopass +@all ~q
        set c [client_of u]
        $c -send blpop q 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 1}
        r acl setuser u resetkeys
        r rpush q x
        assert_error "NOPERM No permissions to access a key" {$c -read}
        assert_equal 1 [r llen q]
        assert_match "calls=0,usec=0,*rejected_calls=1,failed_calls=0" [info_field cmdstat_blpop]
        assert_equal PONG [$c ping]
    }

    test {a user deleted while its clients are blocked, in MULTI, idle: all are closed (case 38)} {
        for {set round 0} {$round < [scaled 30]} {incr round} {
            r acl setuser u reset on nopass +@all ~* &*
            set before [info_field connected_clients]
            set blocked [client_of u]
            $blocked -send blpop q$round 0
            set in_multi [client_of u]
            $in_multi multi
            $in_multi set k v
            set idle [client_of u]
            wait_for_condition 500 10 {[info_field blocked_clients] == 1}
            assert_equal 1 [r acl deluser u]
            assert_equal 1 [r rpush q$round x]
            wait_for_condition 500 10 {[info_field connected_clients] <= $before}
        }
        assert_equal 0 [info_field blocked_clients]
    }

    test {a user can delete itself: the reply is sent first} {
        r acl setuser u reset on nopass +@all
        set c [client_of u]
        assert_equal 1 [$c acl deluser u]
        assert_error "*" {$c ping}
        assert_error "ERR The 'default' user cannot be removed" {r acl deluser u default}
        r acl setuser u reset on nopass +@all
        set c [client_of u]
        $c multi
        $c acl deluser u
        $c ping
        assert_equal {1 PONG} [$c exec]
        assert_error "*" {$c ping}
    }

    test {CLIENT LIST and CLIENT KILL know the users} {
        r acl setuser u reset on nopass +@all
        set c [client_of u]
        assert_match "* user=u *" [$c client info]
        assert_match "* user=u *" [r client list user u]
        assert_error "ERR No such user 'nope'" {r client kill user nope}
        assert_equal 1 [r client kill user u]
        assert_error "*" {$c ping}
    }

    test {rename-command: rules and errors use the original names} {
        start_server {overrides {rename-command {ping pong}}} {
            r acl setuser u reset on nopass +@all -ping
            set c [client_of u]
            assert_error "NOPERM User u has no permissions to run the 'ping' command" {$c pong}
            assert_error "ERR*Unknown command or category name in ACL" {r acl setuser u +pong}
            r acl setuser u +ping
            assert_equal PONG [$c pong]
        }
    }

    test {COMMAND GETKEYS agrees with the check for every command with keys} {
        # Each key that GETKEYS reports is necessary and sufficient: the check allows exactly these keys.
        set samples {
            {get k} {mget a b c} {mset a 1 b 2} {set a b get} {copy a b} {rename a b} {bitop and d a b}
            {sort l store d} {sort_ro l} {georadius g 0 0 1 km store d} {lmpop 2 a b left} {zunionstore d 2 a b}
            {sintercard 2 a b} {xread streams a b 0 0} {xreadgroup group g c streams a b > >} {blmpop 0 2 a b left}
            {object encoding k} {memory usage k} {pfmerge d a b} {smove a b m} {lmove a b left left} {zrangestore d a 0 1}
        }
        foreach request $samples {
            set keys [r command getkeys {*}$request]
            assert {[llength $keys] > 0}
            foreach missing $keys {
                r acl setuser u reset +@all
                foreach key $keys {if {$key ne $missing} {r acl setuser u ~$key}}
                assert_equal "User u has no permissions to access the '$missing' key" [r acl dryrun u {*}$request]
            }
            r acl setuser u reset +@all
            foreach key $keys {r acl setuser u ~$key}
            assert_equal OK [r acl dryrun u {*}$request]
        }
    }
}

start_server {tags {acl}} {
    test {channels: publishing and subscribing need a pattern, PSUBSCRIBE the same pattern} {
        r acl setuser u reset on nopass +@all &ch* &exact
        set c [client_of u]
        assert_equal 0 [$c publish ch1 m]
        assert_error "NOPERM No permissions to access a channel" {$c publish other m}
        assert_error "NOPERM No permissions to access a channel" {$c spublish other m}
        assert_error "NOPERM No permissions to access a channel" {$c subscribe ch1 other}
        assert_error "NOPERM No permissions to access a channel" {$c ssubscribe other}
        assert_error "NOPERM No permissions to access a channel" {$c psubscribe ch1*}
        assert_match "* sub=0 psub=0 *" [r client list user u]
        subscribed $c 2 subscribe ch1 exact
        subscribed $c 1 psubscribe ch*
        assert_equal 2 [r publish ch1 m]
    }

    test {sessions that subscribe to a channel their user has lost are closed, others are not} {
        foreach {start subscription change survives} {
            {&a &b*} {subscribe a} {resetchannels &b*} 0
            {&a &b*} {subscribe bc} {resetchannels &b*} 1
            {&a &b*} {psubscribe b*} {resetchannels &bc &a} 0
            {&a &b*} {ssubscribe a} {resetchannels &b*} 0
            {&a &b*} {ssubscribe a} {-ssubscribe off resetpass} 1
            {&*} {subscribe a} {resetchannels &a} 1
            {&*} {psubscribe a*} {resetchannels &a} 0
            {&a} {subscribe a} {allchannels} 1
            {&a} {subscribe a} {resetchannels (&a +get)} 1
            {&a (&b +@all)} {subscribe b} {clearselectors} 0
            {&a} {subscribe a} {reset} 0
        } {
            r acl setuser u reset on nopass +@all {*}$start
            set c [client_of u]
            subscribed $c 1 {*}$subscription
            r acl setuser u {*}$change
            assert_equal $survives [llength [regexp -all -inline { user=u } [r client list]]] "$subscription after $change"
            r acl deluser u
            wait_for_condition 500 10 {![string match "*user=u *" [r client list]]}
        }
    }

    test {the default user's subscribers are closed, too} {
        r acl setuser boss on nopass +@all ~* &*
        set boss [client_of boss]
        set c [connect]
        subscribed $c 1 subscribe a
        $boss acl setuser default resetchannels
        wait_for_condition 500 10 {![string match "*sub=1 *" [$boss client list]]}
        $boss acl setuser default allchannels
    }

    test {a session that takes its own channels gets the reply first} {
        r acl setuser u reset on nopass +@all &a
        set c [connect 3]
        $c auth u x
        subscribed $c 1 subscribe a
        assert_equal OK [$c acl setuser u resetchannels]
        assert_error "*" {$c ping}
    }
}

start_server {tags {acl}} {
    test {commands whose reply contains data need the right to read: XCLAIM, XAUTOCLAIM, ZADD INCR} {
        r xadd s * f v
        r xgroup create s g 0
        r xreadgroup group g one streams s >
        r zadd z 1 m
        r acl setuser u reset on nopass +@all %W~*
        set c [client_of u]
        set id [lindex [r xpending s g - + 1] 0 0]
        assert_error "NOPERM No permissions to access a key" {$c xclaim s g two 0 $id}
        assert_error "NOPERM No permissions to access a key" {$c xautoclaim s g two 0 0}
        assert_error "NOPERM No permissions to access a key" {$c zadd z incr 1 m}
        assert_error "NOPERM No permissions to access a key" {$c zadd z xx ch incr 1 m}
        assert_equal $id [$c xclaim s g two 0 $id justid]
        assert_equal 0 [$c zadd z 2 m]
        assert_equal 1 [$c zadd z 2 incr]
        r acl setuser u allkeys
        assert_equal 1 [llength [$c xclaim s g one 0 $id]]
        assert_equal 3 [$c zadd z incr 1 m]
    }
}

start_server {tags {acl}} {
    test {scripts: declared keys are checked when the script is called, each inner command by itself} {
        r acl setuser u reset on nopass +@all -set ~a*
        set c [client_of u]
        assert_error "NOPERM No permissions to access a key" {$c eval {return 1} 1 b}
        assert_equal 1 [$c eval {return 1} 1 a]
        assert_error "ERR ACL failure in script: No permissions to access a key*" {$c eval {return server.call('get', 'b')} 0}
        assert_error "ERR ACL failure in script: User u has no permissions to run the 'set' command*" {
            $c eval {return server.call('set', 'a', 1)} 0
        }
        assert_equal {set lua} [lmap f {object context} {dict get [lindex [r acl log 1] 0] $f}]
        assert_equal {1 {} {}} [lmap request {{get a} {get b} {set a 1}} {
            $c eval {return server.acl_check_cmd(unpack(ARGV))} 0 {*}$request
        }]
    }
}

start_server {tags {acl}} {
    test {in MULTI, selectors see the database that a queued SELECT chose} {
        r acl setuser u reset on nopass +@all ~a* alldbs "(~x* +@all resetdbs db=1)"
        set c [client_of u]
        assert_error "NOPERM*" {$c get x}
        $c multi
        $c select 1
        assert_equal QUEUED [$c get x]
        assert_equal QUEUED [$c get a]
        assert_equal {OK {} {}} [$c exec]
        $c select 0
        $c multi
        $c select 2
        assert_error "NOPERM*" {$c get x}
        assert_error "EXECABORT*" {$c exec}
    }
}

# Clients of a user; what they send next is a write.
proc clients_of {user count} {
    set channels {}
    for {set i 0} {$i < $count} {incr i} {
        set channel [socket [srv host] [srv port]]
        chan configure $channel -translation binary
        puts -nonewline $channel "AUTH $user any\r\n"
        flush $channel
        lappend channels $channel
    }
    foreach channel $channels {assert_equal "+OK\r" [gets $channel]}
    return $channels
}

write_bytes [file join $::job_dir many.acl] "user default on nopass ~* &* +@all\n"
start_server [list tags {acl tls:skip external:skip needs:config} overrides [list aclfile [file join $::job_dir many.acl] maxclients 5000]] {
    test {clients of a removed user run nothing any more, however many there are} {
        foreach {words count} {{acl deluser bob} 2000 {acl load} 300 {client kill user bob} 300} {
            r acl setuser bob on nopass ~* &* +@all
            set clients [clients_of bob $count]
            set others [clients_of default 100]
            # Requests that arrive before, in the middle of and after the command.
            foreach channel [lrange $clients 0 99] {puts -nonewline $channel "GET early\r\n"}
            foreach channel $clients {catch {flush $channel}}
            r {*}$words
            foreach channel $clients {
                catch {puts -nonewline $channel "INCR late\r\n"}
                catch {flush $channel}
            }
            foreach line [split [r client list] \n] {assert {![string match "* user=bob *" $line]}}
            foreach channel $clients {
                set rest ""
                catch {set rest [read $channel]} ;# a reset connection has ended, too
                catch {close $channel}
                assert {[string length $rest] <= 5}
            }
            assert_equal 0 [r exists late]
            foreach channel $others {
                puts -nonewline $channel "PING\r\n"
                flush $channel
                assert_equal "+PONG\r" [gets $channel]
                close $channel
            }
            info_is connected_clients 1
        }
    }
}
