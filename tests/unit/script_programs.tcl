# SPDX-License-Identifier: BSD-3-Clause
#
# Generated Lua programs with the replies of the released server, which tests/differential/lua_programs.py has recorded.

# The preamble and the programs of the recorded file: dicts.
proc programs_read {path} {
    set file [open $path]
    set lines [split [read -nonewline $file] "\n"]
    close $file
    set at 0
    while {[string index [lindex $lines $at] 0] eq "#"} {incr at}
    set preamble "[lindex $lines $at]\n"
    incr at
    set programs {}
    while {$at < [llength $lines]} {
        lassign [lindex $lines $at] seed area proto needs_empty keys arguments count
        set body [join [lrange $lines $at+1 $at+$count] "\n"]
        set text [expr {$area in {replies headers} ? $body : "$preamble$body\nreturn R"}]
        set reply [subst -nocommands -novariables [lindex $lines [expr {$at + $count + 1}]]]
        lappend programs [dict create seed $seed area $area proto $proto needs_empty $needs_empty text $text reply $reply \
                              arguments [concat [llength $keys] $keys $arguments]]
        incr at [expr {$count + 2}]
    }
    return $programs
}

proc programs_request {args} {
    set request "*[llength $args]\r\n"
    foreach arg $args {append request "\$[string length $arg]\r\n$arg\r\n"}
    return $request
}

# The recorded form of a reply: without the end of its last line.
proc programs_reply {channel} {
    return [string range [raw_reply $channel] 0 end-2]
}

start_server {tags {script resp:2} overrides {enable-debug-command yes}} {
    test {Generated programs give the replies of the released server} {
        set programs [programs_read [file join [file dirname [info script]] ../assets/script_programs.txt]]
        assert {[llength $programs] > 400}
        foreach proto {2 3} {
            set link($proto) [raw_connect]
            raw_send $link($proto) [programs_request HELLO $proto]
            raw_reply $link($proto)
        }
        set wrong {}
        foreach program $programs {
            dict with program {
                if {$needs_empty} {
                    raw_send $link($proto) [programs_request FLUSHALL]
                    raw_reply $link($proto)
                }
                raw_send $link($proto) [programs_request EVAL $text {*}$arguments]
                set got [programs_reply $link($proto)]
                if {$got ne $reply} {lappend wrong "seed $seed, area $area\n$text\nexpected: $reply\ngot: $got"}
            }
        }
        if {[llength $wrong]} {fail "[llength $wrong] programs; the first: [lindex $wrong 0]"}
    }
}
