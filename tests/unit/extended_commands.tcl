# SPDX-License-Identifier: BSD-3-Clause
#
# Commands and arguments that Valkey does not have: as others by default, unknown with `extended-commands no`.

# All of them, as the page for users lists them: names of commands with their subcommands, and of commands with arguments.
proc extended_names {} {
    set file [open [file join $::tests_dir .. docs extended-commands.md]]
    set page [read $file]
    close $file
    set names {}
    foreach {all text} [regexp -all -inline -line {^\| `([^`]+)`} $page] {
        if {[string match "* ... *" $text]} continue
        regexp {^[A-Z0-9._-]+( [A-Z]+(?= |$))?} $text name
        # A subcommand has a block of its own; a token of the syntax has not.
        lappend names [string map {" " |} [string tolower $name]]
    }
    return $names
}

start_server {tags {extended}} {
    test {extensions are in the table of commands, its documentation and its categories} {
        assert {[llength [extended_names]] >= 4}
        foreach name [extended_names] {
            if {[lindex [r command info $name] 0] eq ""} {set name [lindex [split $name |] 0]}
            assert_equal $name [lindex [r command info $name] 0 0]
            assert {[dict exists [r command docs $name] $name]}
            assert {$name in [r command list]}
            assert_equal OK [r acl setuser somebody reset +$name]
        }
        assert {"hotkeys|get" in [r acl cat admin]}
        assert_match "*EXPLAIN*" [r memory help]
    }

    test {COMMAND HELP begins with what COMMAND does without a subcommand} {
        assert_equal {(no subcommand)} [lindex [r command help] 1]
    }

    test {extended-commands is read at start alone} {
        assert_equal {extended-commands yes} [r config get extended-commands]
        assert_error "*can't set immutable config*" {r config set extended-commands no}
    }
}

start_server {tags {extended} overrides {extended-commands no enable-debug-command yes}} {
    test {hidden commands are unknown to clients, transactions and scripts} {
        foreach name [extended_names] {
            lassign [set words [split $name |]] first second
            if {[lindex [r command info $first] 0] eq ""} {
                assert_error "ERR unknown command '$first', with args beginning with:*" {r {*}$words a b c}
            } else {
                assert_error "ERR unknown subcommand '$second'. Try [string toupper $first] HELP." {r {*}$words a b c}
            }
        }
        assert_error "ERR unknown command 'GETPXT', with args beginning with: 'k' " {r GETPXT k}
        assert_error "ERR unknown subcommand 'explain'. Try MEMORY HELP." {r memory explain}
        r multi
        assert_error "ERR unknown command 'getpxt'*" {r getpxt k}
        assert_error "EXECABORT*" {r exec}
        assert_error "ERR Unknown command called from script*" {r eval {return redis.call('getpxt', 'k')} 0}
    }

    test {hidden commands are in no list, count or category} {
        set listed [r command list]
        assert_equal [r command count] [llength [r command]]
        foreach name [extended_names] {
            assert {$name ni $listed}
            assert_equal {{}} [r command info $name]
            assert_equal {} [r command docs $name]
            assert_error "ERR Error in ACL SETUSER modifier '+$name': Unknown command or category name in ACL" {
                r acl setuser somebody +$name
            }
            foreach category [r acl cat] {assert {$name ni [r acl cat $category]}}
            assert_error "ERR Command '*' not found" {r acl dryrun default {*}[split $name |]}
        }
        assert {"memory|usage" in $listed}
        assert_equal 0 [regexp EXPLAIN [r memory help]]
        assert_equal 6 [llength [lindex [r command info memory] 0 9]]
    }
}

start_server {tags {extended} overrides {extended-commands no rename-command {getpxt other}}} {
    test {a hidden command is hidden under its new name, too} {
        assert_error "ERR unknown command 'other'*" {r other k}
        assert_error "ERR unknown command 'getpxt'*" {r getpxt k}
    }
}
