# Values compressed in memory and their plain twins. Database 0 has dictionaries, so its values can be compressed; database
# 9 has none: the plain twins.

# Makes the value compressed, or nodes of it.
proc compress {key} {assert {[r debug compress $key] > 0} $key}
proc is_compressed {key} {expr {[r debug compressed $key] > 0}}

proc save_in_background {} {
    r bgsave
    info_is rdb_bgsave_in_progress 0
    assert_equal ok [info_field rdb_last_bgsave_status]
}

proc rewritten {} {
    info_is aof_rewrite_in_progress 0
    info_is aof_rewrite_scheduled 0
    assert_equal ok [info_field aof_last_bgrewrite_status]
}

# Everything that can be seen of the value of a key. Reading it leaves a compressed value as it is.
proc seen {key} {
    set seen [list $key [r debug digest-value $key] [r object encoding $key] [r pexpiretime $key] [r type $key]]
    if {[r type $key] ne "stream"} {lappend seen [r dump $key]} ;# which has the times of consumers
    switch [r type $key] {
        stream {lappend seen [r xlen $key] [r xrange $key - +] [r xrevrange $key + - count 3]}
        string {lappend seen [r strlen $key] [r get $key]}
        list {lappend seen [r llen $key] [r lrange $key 0 -1]}
        set {lappend seen [r scard $key] [r smembers $key]}
        zset {lappend seen [r zcard $key] [r zrange $key 0 -1 withscores]}
        hash {lappend seen [r hlen $key] [r hgetall $key]}
    }
    return $seen
}

# The words of a line of a script: `[member 3]` is the result of a command, `{*}[members 1 5]` the elements of a list.
proc words_of {line} {
    set line [regsub -all {\{\*\}\[([a-z_]+(?: \d+)*)\]} $line {{*(\1)}}]
    set line [regsub -all {\[([a-z_]+(?: \d+)*)\]} $line {{=(\1)}}]
    set words {}
    foreach word $line {
        if {[regexp {^([*=])\((.*)\)$} $word -> how call]} {
            lappend words {*}[expr {$how eq "*" ? [{*}$call] : [list [{*}$call]]}]
        } else {
            lappend words [uplevel 2 [list subst -nobackslashes -nocommands $word]]
        }
    }
    return $words
}

# Runs the script in both databases. `Z key` in it compresses the value of a key, where it can be. Replies, values,
# encodings and expiry times must be the same. `T key from to` calls add_entries, a procedure of the caller. Variables of the script are those of the caller.
proc both {name script} {
    foreach db {9 0} {
        r select $db
        r flushall
        set log {}
        foreach line [split [string trim $script] \n] {
            set words [words_of [string trim $line]]
            if {[lindex $words 0] eq "T"} {
                add_entries {*}[lrange $words 1 end]
                continue
            }
            if {[lindex $words 0] eq "Z"} {
                if {$db == 0} {compress [lindex $words 1]}
                continue
            }
            lappend log $words [catch {r {*}$words} reply] $reply
        }
        foreach key [lsort [r keys *]] {lappend log {*}[seen $key]}
        set logs($db) $log
    }
    foreach plain $logs(9) packed $logs(0) {assert_equal $plain $packed $name}
}
