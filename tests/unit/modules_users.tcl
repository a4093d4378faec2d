# SPDX-License-Identifier: BSD-3-Clause
#
# Rights, users and authentication of modules (tests/modules/users.c).

start_server {overrides {enable-module-command yes}} {
    r module load [file normalize build/modules/users.so]
    r acl setuser reader on nopass ~data:* &news:* -@all +get +select
    r acl setuser guarded on >secret ~* &* +@all

    test {Call as a user: what the user may not do is refused and logged} {
        r set data:1 x
        assert_equal x [r users.call reader get data:1]
        assert_error {NOPERM User reader has no permissions to run the 'set' command} {r users.call reader set data:1 y}
        assert_error {NOPERM No permissions to access a key} {r users.call reader get other}
        set entry [lindex [r acl log] 0]
        assert_equal {key module other reader} \
            [list [dict get $entry reason] [dict get $entry context] [dict get $entry object] [dict get $entry username]]
        assert_error {ERR unknown command 'nothing'*} {r users.call reader nothing}
        assert_equal x [r users.call guarded get data:1]
        r acl log reset
    }

    test {questions about commands, keys, prefixes and channels} {
        foreach {question answer} {
            {reader command get data:1} 0 {reader command get x} EACCES {reader command set data:1 1} EACCES
            {reader command nothing} ENOENT {reader command get} EINVAL {nobody command get data:1} EINVAL
            {reader key data:1} 0 {reader key x} EACCES {guarded key x} 0 {nobody key x} EINVAL
            {reader prefix data:} 0 {reader prefix data:1} 0 {reader prefix dat} EACCES {guarded prefix {}} 0
            {reader channel news:1} 0 {reader channel old} EACCES {reader pattern news:*} 0 {reader pattern news:1*} EACCES
        } {
            assert_equal $answer [r users.may {*}$question] $question
        }
        r acl setuser some on nopass %R~in:* %W~out:* +@all
        assert_equal {0 EACCES EACCES 0} [list [r users.may some key in:1] [r users.may some write in:1] \
            [r users.may some key out:1] [r users.may some write out:1]]
    }

    test {getchannels-api: the channels that a command reports are those it needs rights for} {
        r acl setuser listener on nopass ~* +@all resetchannels &news &log*
        r acl setuser both on nopass ~k* +@all resetchannels &news (+@all ~* resetchannels &other)
        set c [connect]
        $c auth listener x
        set refused {NOPERM No permissions to access a channel}
        foreach {flags channel allowed} {
            publish news 1 subscribe log1 1 publish other 0 subscribe other 0 leave other 1 {} other 1
            subscribe,pattern log* 1 subscribe,pattern log1 0 leave,pattern other 1 leave,publish other 0
        } {
            if {$allowed} {
                assert_equal OK [$c users.channels $flags $channel] "$flags $channel"
            } else {
                assert_error $refused {$c users.channels $flags $channel}
            }
        }
        set many [lrepeat 100 news]
        assert_equal OK [$c users.channels publish {*}$many]
        assert_error $refused {$c users.channels publish {*}$many other}
        assert_equal "User listener has no permissions to access the 'other' channel" \
            [r acl dryrun listener users.channels publish news other]
        r acl log reset
        $c multi
        assert_error $refused {$c users.channels publish other}
        $c discard
        assert_error {ERR ACL failure in script: No permissions to access a channel*} \
            {$c eval {return server.call('users.channels', 'publish', 'other')} 0}
        assert_error $refused {r users.call listener users.channels publish other}
        assert_equal {EACCES 0} [list [r users.may listener command users.channels publish other] \
            [r users.may listener command users.channels publish news]]
        foreach context {module lua multi} entry [r acl log] {
            assert_equal [list channel $context other] \
                [list [dict get $entry reason] [dict get $entry context] [dict get $entry object]]
        }
    }

    test {a command with reported keys and channels needs rights for both} {
        set c [connect]
        $c auth listener x
        assert_equal OK [$c users.keyed k news]
        assert_error {NOPERM No permissions to access a channel} {$c users.keyed k other}
        $c auth both x
        assert_equal OK [$c users.keyed k news]
        assert_equal OK [$c users.keyed z other]
        assert_error {NOPERM No permissions to access a channel} {$c users.keyed k news other}
        assert_error {NOPERM No permissions to access a channel} {$c users.keyed z news}
        r acl setuser both clearselectors
        assert_error {NOPERM No permissions to access a key} {$c users.keyed z news}
        assert_equal k [r command getkeys users.keyed k news]
    }

    test {users of the module: rules apply all or none, and no command lists them} {
        assert_match {0 EINVAL ENOENT {on *~k* resetchannels -@all +get +set*}} [r users.own {on ~k* +get} +set %X~k +nothing]
        assert_error {Error in ACL SETUSER modifier '+nothing': *} {r users.own {on +nothing}}
        assert_equal -1 [lsearch [r acl users] own]
    }

    test {AUTH and HELLO ask the module before passwords} {
        foreach {password error} {no WRONGPASS* text {ERR not today} code {CLOSED not today} other WRONGPASS*} {
            assert_error $error {r auth guarded $password}
            assert_equal default [r acl whoami]
        }
        assert_equal OK [r auth guarded yes]
        assert_equal guarded [r acl whoami]
        r auth default x
        assert_equal OK [r auth guarded secret]
        assert_equal guarded [r acl whoami]
        assert_error {CLOSED not today} {r hello 3 auth guarded code}
        r hello [r -resp] auth default x
        assert_equal default [r acl whoami]
    }

    test {a client that a module made another user: the callback is called once, whatever changes it} {
        set c [respConnect [srv host] [srv port] 2]
        assert_error {ERR refused} {r users.become nobody}
        set id [$c users.become guarded]
        assert_equal guarded [$c acl whoami]
        assert_equal 0 [r users.changes]
        $c auth reader x
        assert_equal 1 [r users.changes]
        $c auth default x
        assert_equal 1 [r users.changes]
        $c users.become guarded
        $c -close
        wait_for_condition 100 20 {[r users.changes] == 2}
        assert_equal 1 [r users.close $id]
    }

    test {a client is logged out and closed} {
        set c [respConnect [srv host] [srv port] 2]
        set id [$c client id]
        assert_equal 0 [r users.close $id]
        assert_error * {$c ping}
        catch {$c -close}
    }

    test {ACL LOG has the entries of modules} {
        r acl log reset
        r users.log reader thing 0
        set entry [lindex [r acl log] 0]
        assert_equal {auth module thing reader} \
            [list [dict get $entry reason] [dict get $entry context] [dict get $entry object] [dict get $entry username]]
        r users.log reader thing 99
        assert_equal 1 [llength [r acl log]]
    }

    test {the module can be unloaded: its clients are closed, passwords decide again} {
        set c [respConnect [srv host] [srv port] 2]
        $c users.become guarded
        assert_equal OK [r module unload users]
        assert_error * {$c ping}
        catch {$c -close}
        assert_error WRONGPASS* {r auth guarded yes}
        assert_equal OK [r auth guarded secret]
        r auth default x
    }
}

# Rules that name commands of a module, with the module in the same configuration.
set named_rules "on nopass ~* &* -@all +users.call"
foreach kind {file lines} {
    set port [free_port]
    set settings [list port $port loadmodule [file normalize build/modules/users.so]]
    if {$kind eq "file"} {
        write_bytes $::job_dir/named.acl "user default on nopass ~* &* +@all\nuser named $named_rules\n"
        lappend settings aclfile $::job_dir/named.acl
    } else {
        lappend settings user "named $named_rules"
    }
    start_server [list tags tls:skip overrides $settings] {
        test "users may name commands of modules that the configuration loads: $kind" {
            assert_equal OK [r acl dryrun named users.call default ping]
            assert_match "*no permissions to run the 'get' command*" [r acl dryrun named get x]
            # CONFIG REWRITE and ACL SAVE write a file with which the server starts again.
            for {set i 0} {$i < 2} {incr i} {
                r config rewrite
                if {$kind eq "file"} {r acl save}
                restart_with_file
                assert_match "*+users.call*" [lsearch -inline [r acl list] "user named *"]
                assert_equal OK [r acl dryrun named users.call default ping]
            }
        }
    }
}

start_server [list tags tls:skip overrides [list port [free_port]] args [list --loadmodule [file normalize build/modules/users.so]]] {
    test {a module of the command line does not stop the start after CONFIG REWRITE} {
        r config rewrite
        assert_match "*\nloadmodule */users.so*" [file_text [srv config]]
        restart_with_file
        assert_equal PONG [r ping]
        assert_equal 1 [llength [lsearch -all [r module list] "*users*"]]
    }
}

test {a rule for a command of no module stops the start, and is named} {
    write_bytes $::job_dir/named.acl "user named $named_rules\n"
    assert_equal 1 [catch {exec timeout 20 $::binary --port [free_port] --bind 127.0.0.1 --save {} --aclfile $::job_dir/named.acl </dev/null 2>@1} said]
    assert_match "*Error in applying operation '+users.call'*" $said
} {needs:config}
