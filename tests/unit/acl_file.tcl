# SPDX-License-Identifier: BSD-3-Clause
#
# Users from the ACL file and from `user` lines of the configuration: start, LOAD, SAVE, REWRITE, and errors.

# All files of the tests are in the folder of the job.
proc acl_file {} {return [file join $::job_dir users.acl]}

write_bytes [acl_file] "user alice on nopass ~* &* +@all\nuser bob on >secret ~b* +get\n\n"
start_server [list tags {acl} overrides [list aclfile [acl_file]]] {
    test {the file is read at start; without a line for it the default user is open} {
        assert_equal {alice bob default} [r acl users]
        assert_match "user bob on #* ~b\\* resetchannels -@all +get" [lindex [r acl list] 1]
        assert_equal "user default on nopass ~* &* +@all" [lindex [r acl list] 2]
    }

    test {ACL SAVE writes all users, ACL LOAD reads the same} {
        r acl setuser carol on nopass "~k'\"" &x "(\"~q)\" +get)" db=1,2 +@hash -hset
        r acl setuser "we\"ird'" off
        set before [r acl list]
        assert_equal OK [r acl save]
        assert_equal "[join $before \n]\n" [read_bytes [acl_file]]
        r acl deluser carol
        assert_equal OK [r acl load]
        assert_equal $before [r acl list]
        assert_equal {users.acl} [glob -tails -directory $::job_dir users.acl*]
    }

    test {ACL LOAD with errors names every bad line and changes nothing} {
        set before [r acl list]
        write_bytes [acl_file] "user a on\nfoo\nuser b +nope ~x +@what\nuser a off\nuser c on foo bar\n# comment\nuser d on (+get\nuser\nuser e\ty on\n"
        set failed [catch {r acl load} error]
        assert_equal 1 $failed
        foreach text {
            "FILE:2 should start with user keyword followed by the username. "
            "FILE:3: Error in applying operation '+nope': Unknown command or category name in ACL. "
            "FILE:3: Error in applying operation '+@what': Unknown command or category name in ACL. "
            "WARNING: Duplicate user 'a' found on line 4. "
            "FILE:5: Syntax error. "
            "FILE:6 should start with user keyword followed by the username. "
            "FILE:7: Unmatched parenthesis in selector definition."
            "FILE:8 should start with user keyword followed by the username. "
            "'FILE:9: username 'e\ty' contains invalid characters. "
            "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
        } {
            assert {[string first [string map [list FILE [acl_file]] $text] $error] >= 0}
        }
        assert_equal $before [r acl list]
        file delete [acl_file]
        assert_error "ERR Error loading ACLs, opening file '[acl_file]': No such file or directory" {r acl load}
        assert_equal $before [r acl list]
    }

    test {ACL LOAD keeps sessions of users that stay, closes those of users that are gone} {
        write_bytes [acl_file] "user alice on nopass ~* &* +@all\nuser bob on nopass +@all\n"
        r acl load
        set alice [connect]
        $alice auth alice x
        set bob [connect]
        $bob auth bob x
        write_bytes [acl_file] "user alice on nopass ~a +@all\n"
        assert_equal OK [r acl load]
        assert_error "*" {$bob ping}
        assert_equal OK [$alice set a 1]
        assert_error "NOPERM*" {$alice set b 1}
        write_bytes [acl_file] "user bob on nopass +@all\n"
        assert_equal OK [$alice acl load]
        assert_error "*" {$alice ping}
    }

    test {without a default line a file does not remove the password of requirepass} {
        r config set requirepass secret
        write_bytes [acl_file] "user alice on nopass +@all\n"
        r acl load
        set c [respConnect [srv host] [srv port] 2]
        assert_error "NOAUTH*" {$c ping}
        assert_equal OK [$c auth secret]
        $c -close
        r config set requirepass {}
    }

    test {ACL SAVE to a path that cannot be written: an error, and no file remains} {
        file delete [acl_file]
        file mkdir [acl_file]
        write_bytes [file join [acl_file] x] x
        assert_error "ERR There was an error trying to save the ACLs*" {r acl save}
        assert_equal {users.acl} [glob -tails -directory $::job_dir users.acl*]
        assert_error "ERR *" {r acl load}
        file delete -force [acl_file]
    }
}

set user_line [list user {alice on nopass ~* &* +@all}]
start_server [list tags {acl} overrides $user_line] {
    test {user lines: users exist from the start; CONFIG REWRITE writes lines that give the same users} {
        assert_equal {alice default} [r acl users]
        assert_error "ERR This instance is not configured to use an ACL file*" {r acl load}
        assert_error "ERR This instance is not configured to use an ACL file*" {r acl save}
        r acl setuser bob on >pw "~q\"'" "(+get ~x\\y \"~z)\")"
        r acl setuser "we\"ird" off
        r acl setuser alice -del
        r acl setuser default resetchannels &a
        set before [r acl list]
        r config rewrite
        set lines [lsearch -all -inline [split [read_bytes [srv config]] "\n"] "user *"]
        assert_equal 4 [llength $lines]
        write_bytes $::job_dir/users.conf [join $lines "\n"]\n
        start_server [list overrides [list include $::job_dir/users.conf]] {
            assert_equal $before [r acl list]
        }
        r acl deluser bob
        r config rewrite
        assert {![string match *bob* [read_bytes [srv config]]]}
    }
}

test {the start is refused if users cannot be understood, without showing passwords} {
    foreach {config words} {
        "user b on >hidden foo" "*Error in user declaration 'b': Syntax error*"
        "user b on >hidden (+get" "*Error in user declaration 'b': Wrong format*"
        "user b on\nuser b off" "*Error in user declaration 'b': Duplicate user found.*"
        "user b on >hidden +nope" "*Error loading ACL rule '+nope' for the user named 'b': Unknown command or category name in ACL*Critical error while loading ACLs. Exiting.*"
        "user \"a b\" on" "*Spaces not allowed in ACL usernames*"
        "user b on\naclfile x.acl" "*Configuring Valkey with users defined in valkey.conf and at the same setting an ACL file path is invalid.*"
        "aclfile /nonexistent/x.acl" "*Aborting Valkey startup because of ACL errors: Error loading ACLs, opening file '/nonexistent/x.acl': No such file or directory*"
    } {
        write_bytes $::job_dir/refused.conf "$config\n"
        assert_equal 1 [catch {exec timeout 20 $::binary $::job_dir/refused.conf --port [free_port] --bind 127.0.0.1 --save {} --dir $::job_dir </dev/null 2>@1} said]
        assert_match $words $said
        assert {![string match *hidden* [string map {(hidden) {}} $said]]}
    }
}

test {a file with a rule before an open bracket is refused at start} {
    write_bytes [acl_file] "user a on (+get\n"
    assert_equal 1 [catch {exec timeout 20 $::binary --port [free_port] --bind 127.0.0.1 --save {} --aclfile [acl_file] </dev/null 2>@1} said]
    assert_match "*users.acl:1: Unmatched parenthesis in selector definition.*" $said
}

start_server {tags {acl} overrides {requirepass secret user {default on >secret >other -@all +config +acl +hello}}} {
    test {a line of the default user wins over requirepass} {
        assert_match "user default on #* #* resetchannels -@all +config +acl +hello" [lindex [r acl list] 0]
        assert_equal OK [r auth other]
        assert_equal {requirepass secret} [r config get requirepass]
    }
}
