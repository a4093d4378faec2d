# SPDX-License-Identifier: BSD-3-Clause
#
# Every command x what its user lacks, as recorded from a real server by tests/helpers/compare_acl.py, which describes
# the format of the file.

# Commands that need more than in the real server, because their reply contains data: the right to read.
array set ::stricter {
    "xclaim k1 g c 1 0-1" read "xautoclaim k1 g c 1 0" read "zadd k1 incr 1 a" read
}

# The letter of a reply of ACL DRYRUN.
proc verdict_of {words} {
    if {[catch {r acl dryrun tested {*}$words} said]} {return e}
    if {$said eq "OK"} {return .}
    if {[regexp { to access the '(.*)' (key|channel)$} $said all name kind]} {return [expr {$kind eq "key" ? "k" : "h"}]:$name}
    if {[regexp { to access database (.*)$} $said all name]} {return d:$name}
    if {[string match "* has no permissions to run the '*' command" $said]} {return c}
    return ?$said
}

# The error that a refused request receives for a verdict.
proc error_of {verdict} {
    switch [string index $verdict 0] {
        c {return "*NOPERM User tested has no permissions to run the '*' command"}
        k {return "NOPERM No permissions to access a key"}
        h {return "NOPERM No permissions to access a channel"}
        d {return "NOPERM No permissions to access database"}
    }
}

proc command_name {words} {
    set full [join [lrange $words 0 1] |]
    return [expr {[lindex [r command info $full] 0] ne "" ? $full : [lindex $words 0]}]
}

# The rules of the cases, in the order of the file.
proc cases {words} {
    set cases [list command "+@all ~* &* -[command_name $words]" keys "+@all &*" read "+@all &* %W~*" write "+@all &* %R~*" \
        channels "+@all ~*" database "+@all ~* &* db=9"]
    set keys [lsearch -all -inline -regexp $words {^k\d+$}]
    foreach key $keys {
        lappend cases $key "+@all &* [lmap other $keys {if {$other eq $key} continue; string cat ~ $other}]"
    }
    return $cases
}

start_server {tags {acl} overrides {enable-module-command yes}} {
    set file [open $::tests_dir/assets/acl_verdicts.txt]
    set lines [lrange [split [string trim [read $file]] \n] 1 end]
    close $file

    test {every command gives the recorded verdict for every user that lacks something} {
        set compared 0
        foreach line $lines {
            lassign [split $line \t] request expected
            set words [split $request " "]
            if {[catch {r acl dryrun default {*}$words} said] && [string match "*not found" $said]} continue
            foreach {name rules} [cases $words] want [split $expected " "] {
                r acl setuser tested reset on nopass {*}$rules
                if {[info exists ::stricter($request)] && $name eq $::stricter($request)} {set want k:k1}
                assert_equal $want [verdict_of $words] "$request with $rules"
                incr compared
            }
        }
        assert {$compared > 2000}
    }

    test {a request that is not allowed is refused with the error of its verdict} {
        set ran 0
        foreach line $lines {
            lassign [split $line \t] request expected
            set words [split $request " "]
            if {[catch {r acl dryrun default {*}$words} said] && [string match "*not found" $said]} continue
            foreach {name rules} [lrange [cases $words] 0 11] want [lrange [split $expected " "] 0 5] {
                if {$want in {. e}} continue
                r acl setuser tested reset on nopass {*}$rules
                set c [respConnect [srv host] [srv port] 2]
                $c auth tested x
                assert_equal 1 [catch {$c {*}$words} said] $request
                assert_match [error_of $want] $said "$request with $rules"
                $c -close
                incr ran
            }
        }
        assert {$ran > 900}
    }
}
