# SPDX-License-Identifier: BSD-3-Clause
#
# Roles of Valkey 9.2: SETROLE, GETROLE, DELROLE, ROLES, the rules role= and resetroles, their lines in files, ACL DIGEST.

proc roles_file {} {return [file join $::job_dir roles.acl]}

proc client_of {user} {
    set c [connect]
    $c auth $user x
    return $c
}

# Removes all users but the default one, and all roles.
proc no_roles {} {
    foreach user [r acl users] {if {$user ne "default"} {r acl deluser $user}}
    foreach role [r acl roles] {r acl delrole $role}
}

# Starts a server that must refuse its configuration; returns its output.
proc refused_start {config} {
    write_bytes $::job_dir/refused_roles.conf "$config\n"
    assert_equal 1 [catch {exec timeout 20 $::binary $::job_dir/refused_roles.conf --port [free_port] --bind 127.0.0.1 --save {} --dir $::job_dir </dev/null 2>@1} said]
    return $said
}

start_server {tags {acl}} {
    test {a new role has no commands, keys and channels, and all databases} {
        assert_equal {} [r acl roles]
        assert_equal OK [r acl setrole empty]
        assert_equal {commands -@all keys {} channels {} databases alldbs selectors {} users {}} [r acl getrole empty]
        assert_equal {empty} [r acl roles]
        assert_equal {} [r acl getrole none]
        assert_equal {} [r acl getrole EMPTY]
    }

    test {ACL SETROLE extends a role; a bad rule changes nothing} {
        no_roles
        assert_equal OK [r acl setrole reader ~app:* &news +@read db=0,2 "(~tmp:* +@write)"]
        assert_equal OK [r acl setrole reader +ping]
        set role [r acl getrole reader]
        assert_equal "-@all +@read +ping" [dict get $role commands]
        assert_equal ~app:* [dict get $role keys]
        assert_equal &news [dict get $role channels]
        assert_equal db=0,2 [dict get $role databases]
        assert_equal {commands {-@all +@write} keys ~tmp:* channels {} databases alldbs} [lindex [dict get $role selectors] 0]
        assert_error "ERR Error in ACL SETROLE modifier '+nope': Unknown command or category name in ACL" {r acl setrole reader ~x +nope}
        assert_error "ERR Unmatched parenthesis in acl selector starting at '(+get'." {r acl setrole reader (+get}
        assert_error "ERR Error in ACL SETROLE modifier '~y': Adding a pattern after*" {r acl setrole reader allkeys ~y}
        assert_equal $role [r acl getrole reader]
    }

    test {rules of users are refused in a role} {
        no_roles
        r acl setrole other
        foreach rule {on off nopass resetpass reset resetroles >pw <pw role=other ROLE=other
            #0123456789012345678901234567890123456789012345678901234567890123 !0123456789012345678901234567890123456789012345678901234567890123} {
            assert_error "ERR Error in ACL SETROLE modifier '*': This rule can't be used in a role" {r acl setrole x $rule}
        }
        assert_equal other [r acl roles]
    }

    test {names of roles: printable ASCII, case-sensitive, a namespace of their own} {
        no_roles
        assert_error "ERR Role names can't be empty" {r acl setrole ""}
        foreach name [list "a b" "a\tb" "a\x00" "\xe9" "a\x7f"] {
            assert_error "ERR Role names *printable ASCII*" {r acl setrole $name}
        }
        assert_error "ERR Role names can't contain commas" {r acl setrole a,b}
        foreach name {a"b a'b a\\b} {assert_error "ERR Role names can't contain quotes or backslashes" {r acl setrole $name}}
        foreach name {default get @read Get +x (y)} {r acl setrole $name}
        assert_equal {(y) +x @read Get default get} [r acl roles]
        r acl setuser u role=get,(y),@read
        assert_equal {(y) @read get} [dict get [r acl getuser u] roles]
    }

    test {role= replaces the roles of a user, resetroles and reset remove them} {
        no_roles
        foreach role {a b c} {r acl setrole $role}
        r acl setuser u on nopass role=b,a,b
        assert_equal {a b} [dict get [r acl getuser u] roles]
        assert_equal {u} [dict get [r acl getrole a] users]
        r acl setuser u role=c
        assert_equal {c} [dict get [r acl getuser u] roles]
        assert_match "user u on nopass * role=c" [lindex [r acl list] end]
        assert_equal {} [dict get [r acl getrole a] users]
        r acl setuser u resetroles
        assert_equal {} [dict get [r acl getuser u] roles]
        r acl setuser u role=a,b reset
        assert_equal {} [dict get [r acl getuser u] roles]
        assert_error "ERR Error in ACL SETUSER modifier 'role=a,x': *role does not exist" {r acl setuser u role=c role=a,x}
        foreach list {"" , a, ,a a,,b a\\} {
            assert_error "ERR Error in ACL SETUSER modifier 'role=*': Syntax error" {r acl setuser u role=$list}
        }
        assert_error "ERR Error in ACL SETUSER modifier '(role=a)': Syntax error" {r acl setuser u (role=a)}
        assert_equal {} [dict get [r acl getuser u] roles]
        r acl setuser default role=a
        assert_equal default [dict get [r acl getrole a] users]
        r acl setuser default resetroles
    }

    test {without roles ACL GETUSER replies as Valkey 9.1} {
        no_roles
        assert_equal {flags passwords commands keys channels databases selectors} [dict keys [r acl getuser default]]
    }

    test {a role that is held is not removed, nor another one with it} {
        no_roles
        foreach role {a b} {r acl setrole $role}
        r acl setuser u role=b
        assert_error "ERR Role 'b' is assigned to one or more users. Remove it from them first." {r acl delrole a b none}
        assert_equal {a b} [r acl roles]
        assert_equal 1 [r acl delrole a none]
        assert_equal 0 [r acl delrole a]
        r acl deluser u
        assert_equal 1 [r acl delrole b b]
        assert_equal {} [r acl roles]
    }

    test {a command is allowed if a selector of the user or of a role allows all of it} {
        no_roles
        r acl setrole reader +@read ~shared:* "(+set ~out:*)"
        r acl setrole subscriber &news +subscribe
        r acl setuser u on nopass +get +set +copy ~own:* -strlen role=reader,subscriber
        set c [client_of u]
        assert_equal OK [$c set own:1 v]
        assert_equal v [$c get own:1]
        assert_error "NOPERM*key" {$c set shared:1 v}
        assert_equal {} [$c get shared:1]
        assert_equal OK [$c set out:1 v]
        assert_error "NOPERM*key" {$c get out:1}
        # The user's -strlen does not restrict the role, but the role does not have the user's keys.
        assert_equal 0 [$c strlen shared:1]
        assert_error "NOPERM*" {$c strlen own:1}
        # One selector must have all keys.
        assert_error "NOPERM*" {$c copy own:1 shared:2}
        assert_error "NOPERM User u has no permissions to run the 'del' command" {$c del own:1}
        assert_error "NOPERM No permissions to access a channel" {$c subscribe other}
        $c -send subscribe news
        assert_equal {subscribe news 1} [$c -message]
    }

    test {a user may have all rights from its role} {
        no_roles
        r acl setrole all +@all ~* &*
        r acl setrole strings +@string ~s:* db=1
        r acl setuser u on nopass role=all
        set c [client_of u]
        assert_equal OK [$c set anything v]
        assert_equal 0 [$c publish any message]
        r acl setuser u role=strings
        assert_error NOPERM* {$c set s:1 v}
        assert_error "NOPERM*" {$c select 1}
        r acl setrole strings +select
        $c select 1
        assert_equal OK [$c set s:1 v]
        assert_error "NOPERM No permissions to access a key" {$c set t:1 v}
        assert_error "NOPERM User u*'ping'*" {$c ping}
    }

    test {a changed role changes connected clients at once} {
        no_roles
        r acl setrole role +get ~a
        r acl setuser u on nopass role=role
        r acl setuser v on nopass role=role +ping
        set u [client_of u]
        set v [client_of v]
        assert_equal {} [$u get a]
        r acl setrole role ~b +set
        foreach c [list $u $v] {assert_equal OK [$c set b 1]}
        r acl setrole role nocommands +@all
        assert_equal PONG [$u ping]
        r acl setrole role resetkeys -@all
        assert_error NOPERM* {$u get a}
        assert_error NOPERM* {$v get a}
        assert_equal PONG [$v ping]
        r acl setrole role +@all ~* &*
        assert_equal 1 [$u del b]
    }

    test {a change of a role reaches queued commands, blocked clients and scripts} {
        no_roles
        r acl setrole role +@all ~*
        r acl setuser u on nopass role=role
        set c [client_of u]
        $c multi
        $c set k v
        r acl setrole role -set
        assert_error "EXECABORT*" {$c exec}
        $c -send blpop q 0
        wait_for_condition 500 10 {[info_field blocked_clients] == 1}
        r acl setrole role resetkeys
        r rpush q x
        assert_error "NOPERM No permissions to access a key" {$c -read}
        assert_equal 1 [r del q]
        assert_error "*ACL failure in script*" {$c eval {return redis.call('set', 'k', 'v')} 0}
        r acl setrole role +set ~*
        assert_equal OK [$c eval {return redis.call('set', 'k', 'v')} 0]
    }

    # Clients that were closed may be subscribed for a while.
    proc no_subscribers {} {
        wait_for_condition 500 10 {[lindex [r pubsub numsub news] 1] + [lindex [r pubsub shardnumsub news] 1] + [r pubsub numpat] == 0}
    }

    test {subscribers that lose a channel of a role are closed, others are not} {
        no_roles
        r acl setrole news &news &n* +subscribe +psubscribe +ssubscribe
        foreach {subscription rules stays} {
            {subscribe news} {resetchannels &n*} 1
            {subscribe news} {resetchannels &m} 0
            {psubscribe n*} {resetchannels &news} 0
            {ssubscribe news} {resetchannels} 0
            {subscribe news} {-subscribe} 1
        } {
            no_subscribers
            r acl setrole news resetchannels &news &n* +subscribe
            r acl setuser u on nopass role=news
            set c [client_of u]
            $c -send {*}$subscription
            $c -message
            r acl setrole news {*}$rules
            if {$stays} {
                assert_equal 1 [r publish news hello]
                assert_match "*hello" [$c -message]
            } else {
                $c -closed
            }
            $c -close
        }
        # The user has the channel itself.
        no_subscribers
        r acl setrole news resetchannels &news +subscribe
        r acl setuser u role=news &news
        set c [client_of u]
        $c -send subscribe news
        $c -message
        r acl setrole news resetchannels
        assert_equal 1 [r publish news hello]
        assert_match "*hello" [$c -message]
        r acl setuser u resetchannels
        $c -closed
    }

    test {SORT BY and GET: full key access through a role counts} {
        no_roles
        r acl setrole part +sort ~list ~w:*
        r acl setuser u on nopass role=part
        set c [client_of u]
        r rpush list 1 2
        assert_error "*BY option of SORT denied due to insufficient ACL permissions*" {$c sort list by w:*}
        r acl setrole part %R~*
        assert_equal {1 2} [$c sort list by w:*]
        r del list
    }

    test {ACL DRYRUN and ACL LOG include roles} {
        no_roles
        r acl log reset
        r acl setrole role +get ~a
        r acl setuser u on nopass role=role
        assert_equal OK [r acl dryrun u get a]
        assert_equal "User u has no permissions to access the 'b' key" [r acl dryrun u get b]
        assert_equal "User u has no permissions to run the 'set' command" [r acl dryrun u set a b]
        set c [client_of u]
        catch {$c get b}
        set entry [lindex [r acl log] 0]
        assert_equal {key b u} [list [dict get $entry reason] [dict get $entry object] [dict get $entry username]]
    }

    test {limits of a role are those of each user that has none of its own} {
        no_roles
        r acl setrole small maxmemory=1mb cpu=20% +@all ~*
        r acl setrole large maxmemory=4mb cpu=40%
        assert_equal {1048576 20} [list [dict get [r acl getrole small] maxmemory] [dict get [r acl getrole small] cpu]]
        assert_match "role small maxmemory=1048576 cpu=20% ~\\* *" [lindex [r acl list] 1]
        r acl setuser u on nopass role=small
        r acl setuser v on nopass role=small cpu=5 maxmemory=2mb
        r acl setuser w on nopass role=small,large
        set limits {}
        foreach user {u v w} {
            set shown [r acl getuser $user]
            lappend limits [dict get $shown maxmemory] [dict get $shown cpu]
        }
        assert_equal {1048576 20 2097152 5 4194304 40} $limits
        assert_match "user v on nopass maxmemory=2097152 cpu=5% *" [lindex [r acl list] end-1]
        assert_match "user u on nopass resetchannels*" [lindex [r acl list] end-2]
        r acl setrole small maxmemory=0 cpu=0
        assert {![dict exists [r acl getuser u] maxmemory]}
        assert {![dict exists [r acl getuser u] cpu]}
        assert_equal 2097152 [dict get [r acl getuser v] maxmemory]
    }

    test {what a role lets its users write counts for their limit of memory} {
        no_roles
        r flushall
        r acl setrole role +@all
        r acl setuser u on nopass maxmemory=10mb role=role
        r set k:1 [string repeat x 10000]
        assert_equal 0 [dict get [r acl getuser u] used-memory]
        r acl setrole role ~k:*
        wait_for_condition 500 10 {[dict get [r acl getuser u] used-memory] > 10000}
        r acl setrole role resetkeys
        wait_for_condition 500 10 {[dict get [r acl getuser u] used-memory] == 0}
    }

    test {ACL EXPORT writes roles as selectors with the same rights} {
        no_roles
        r acl setrole role +get +increx ~a &c "(+set ~b)"
        r acl setuser u on nopass +ping role=role
        assert_equal "user u on nopass resetchannels -@all +ping (~a resetchannels &c -@all +get) (~b resetchannels -@all +set)" \
            [lindex [r acl export] end]
        r acl setuser copy {*}[lrange [lindex [r acl export] end] 2 4] -@all +ping "(~a resetchannels &c -@all +get)" "(~b resetchannels -@all +set)"
        foreach command {{get a} {set b 1} {get b} {ping} {publish c m}} {
            assert_equal [string map {u {}} [r acl dryrun u {*}$command]] [string map {u {} copy {}} [r acl dryrun copy {*}$command]]
        }
    }

    test {ACL DIGEST does not depend on orders, but on all that matters} {
        no_roles
        assert_match {[0-9a-f]*} [r acl digest]
        assert_equal 64 [string length [r acl digest]]
        r acl setrole a ~x ~y +get
        r acl setrole b &c
        r acl setuser u on >one >two ~k ~l role=a,b "(+get ~1)" "(+set ~2)"
        set first [r acl digest]
        no_roles
        r acl setrole b &c
        r acl setrole a ~y ~x +get
        r acl setuser u on >two >one ~l ~k "(+set ~2)" "(+get ~1)" role=b,a
        assert_equal $first [r acl digest]
        foreach {change back} {
            {setuser u off} {setuser u on}
            {setuser u >three} {setuser u <three}
            {setuser u role=a} {setuser u role=b,a}
            {setrole b &d} {setrole b resetchannels &c}
            {setuser v} {deluser v}
            {setrole c} {delrole c}
            {setuser u db=1} {setuser u alldbs}
            {setuser u cpu=3} {setuser u cpu=0}
        } {
            r acl {*}$change
            assert_not_equal $first [r acl digest]
            r acl {*}$back
            assert_equal $first [r acl digest]
        }
    }

    test {commands of roles are administrative, of 9.2.0, and listed by HELP} {
        foreach {name arity} {setrole -3 getrole 3 delrole -3 roles 2 digest 2} {
            set info [lindex [r command info acl|$name] 0]
            assert_equal $arity [lindex $info 1]
            assert_equal {admin loading noscript stale} [lsort [lindex $info 2]]
            assert_equal {@admin @dangerous @slow} [lsort [lindex $info 6]]
            assert_equal 9.2.0 [dict get [dict get [r command docs acl|$name] acl|$name] since]
            assert {[lsearch -glob [r acl help] "[string toupper $name]*"] >= 0}
        }
        r acl setuser u on nopass +acl|roles
        set c [client_of u]
        $c acl roles
        assert_error NOPERM* {$c acl getrole x}
    }
}

write_bytes [roles_file] "role reader +@read ~*\nuser alice on nopass role=reader\n"
start_server [list tags {acl needs:binary} overrides [list aclfile [roles_file]]] {
    test {the ACL file has lines of roles} {
        assert_equal reader [r acl roles]
        assert_equal reader [dict get [r acl getuser alice] roles]
        assert_equal "role reader ~* resetchannels -@all +@read" [lindex [r acl list] 0]
    }

    test {ACL SAVE writes roles first, ACL LOAD reads the same} {
        r acl setrole zz &c "(+get \"~\\\"q\")" cpu=10%
        r acl setuser alice role=reader,zz
        set before [r acl list]
        set digest [r acl digest]
        r acl save
        assert_equal "[join $before \n]\n" [read_bytes [roles_file]]
        r acl setuser alice resetroles
        r acl delrole zz reader
        assert_not_equal $digest [r acl digest]
        assert_equal OK [r acl load]
        assert_equal $before [r acl list]
        assert_equal $digest [r acl digest]
        restart_server
        assert_equal $before [r acl list]
    }

    test {ACL LOAD replaces roles and the rights of connected clients} {
        write_bytes [roles_file] "role r +get ~a\nrole gone +ping\nuser alice on nopass role=r,gone\n"
        r acl load
        set c [client_of alice]
        assert_equal {} [$c get a]
        assert_equal PONG [$c ping]
        write_bytes [roles_file] "role r +get ~b\nuser alice on nopass role=r\n"
        r acl load
        assert_equal {} [$c get b]
        assert_error NOPERM* {$c get a}
        assert_error NOPERM* {$c ping}
        assert_equal r [r acl roles]
    }

    test {errors of role lines are reported, and nothing changes} {
        set before [r acl list]
        write_bytes [roles_file] "role\nrole a +get\nrole a +set\nrole b on\nrole c,d +get\nuser u on role=later\nrole later +get\nuser v role=\nrole e +nope (+get\n"
        set failed [catch {r acl load} error]
        assert_equal 1 $failed
        foreach text {
            "FILE:1: role declaration requires a role name. "
            "Duplicate role 'a' found on line 3. "
            "Error in role declaration 'b': FILE:4: This rule can't be used in a role. "
            "FILE:5: invalid role name 'c,d': Role names can't contain commas. "
            "FILE:6: The specified role does not exist. "
            "FILE:8: Syntax error. "
            "Error in role declaration 'e': FILE:9: Unmatched parenthesis in selector definition."
        } {
            assert {[string first [string map [list FILE [roles_file]] $text] $error] >= 0}
        }
        assert_equal $before [r acl list]
    }
}

# The roles of the command line follow the users of the file.
set role_lines [list user {alice on nopass role=reader,late} role {reader +@read ~*}]
start_server [list tags {acl needs:binary} overrides $role_lines args {--role late +ping}] {
    test {role lines of the configuration may follow those of users; CONFIG REWRITE writes them} {
        assert_equal {late reader} [dict get [r acl getuser alice] roles]
        r acl setrole "we(ird" "(+get \"~\\\"q\")"
        r acl setrole reader +ping
        r acl delrole none
        set before [r acl list]
        r config rewrite
        set lines [lsearch -all -inline -regexp [split [read_bytes [srv config]] "\n"] {^(user|role) }]
        assert_equal 5 [llength $lines]
        write_bytes $::job_dir/roles.conf [join $lines "\n"]\n
        start_server [list overrides [list include $::job_dir/roles.conf]] {
            assert_equal $before [r acl list]
            # What is removed does not come back from the included file.
            r acl setuser alice resetroles
            r acl delrole late
            r config rewrite
            assert_match "*\nrole late resetchannels -@all*" [read_bytes [srv config]]
        }
        r acl setuser alice resetroles
        r acl delrole late reader
        r config rewrite
        assert {![string match "*role late*" [read_bytes [srv config]]]}
    }

    test {a role on the command line} {
        start_server {args {--role cli +get ~x --user bob on nopass role=cli}} {
            assert_equal "role cli ~x resetchannels -@all +get" [lindex [r acl list] 0]
            assert_equal cli [dict get [r acl getuser bob] roles]
        }
    }

    test {the start is refused if roles cannot be understood} {
        foreach {config words} {
            "role b on" "*Error in role declaration 'b': This rule can't be used in a role*"
            "role b (+get" "*Error in role declaration 'b': Wrong format*"
            "role b,c +get" "*invalid role name 'b,c': Role names can't contain commas*"
            "role \"\" +get" "*invalid role name '': Role names can't be empty*"
            "role b +get\nrole b +set" "*Error in role declaration 'b': Duplicate role found.*"
            "role b +nope" "*Error loading ACL rule '+nope' for the role named 'b': Unknown command*"
            "user u on role=none" "*Error loading ACL rule 'role=none' for the user named 'u': *role does not exist*"
            "role b +get\naclfile x.acl" "*Configuring Valkey with users defined in valkey.conf and at the same setting an ACL file path is invalid.*"
        } {
            assert_match $words [refused_start $config]
        }
    }
}
