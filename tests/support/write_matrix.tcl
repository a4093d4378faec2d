# SPDX-License-Identifier: BSD-3-Clause
#
# What a write tells others: every row of tests/assets/write_matrix/*.txt is run in every way and compared with what
# Valkey does. A row is
#
#   COMMAND word ... <- SETUP word ... ; SETUP word ...
#   WAITING word ... <= SERVING word ... <- SETUP word ... ; ...
#
# The second form runs WAITING on a client of its own, which blocks; the request that serves it is run in each way.
# Words are those of Tcl lists. Keys have names k1, k2, ...; %db and %other are two databases of the cell, %s+100 and
# %ms+100 times a hundred seconds from now, %dump:k2 the DUMP of a key, %functions that of the functions, %port that of the
# server at level -2, which is emptied before each cell. In a setup `DIE k1`, `HDIE k1 f`, `SDIE k1 m` and `ZDIE k1 m`
# let a key, a field, or a member of a set or sorted set expire;
# nothing meets it before the request.
#
# Lines below a row are expectations, "STATE ?/WAY? field value ...":
#
#   states  live      after the setup
#           expired   all keys of the setup have expired, and are still there
#           fields    the same for those fields of hashes whose names begin with f
#   ways    plain, multi, script, function (each with another write behind it, but function), paused (it waits for the
#           end of CLIENT PAUSE). The line without a way holds for all ways that have none of their own.
#   fields  dirty     rdb_changes_since_last_save
#           events    keyspace events, with "new" and "keymiss"
#           touched   the keys for which a WATCH fails
#           tracked   the keys for which a tracking client receives an invalidation; left out: as touched
#           stream    what a replica receives; [9] before a command: its database; SELECT is left out
#           error     the reply, if it is an error; waiting_error that to the waiting client
#           waits     yes: the waiting client has not been served
#
# In streams, %idmp is the name of the group whose XACKs have ids of producers. EVAL and FUNCTION are not allowed in scripts and functions. A field that is not there is empty or 0. A line that
# begins with "ours/" is a documented difference (docs/compatibility.md). The others are recorded from Valkey 9.1.2, and
# verified, with
#   WRITE_MATRIX_RECORD=1 tests/runtest --single unit/write_matrix --resp 2 --binary VALKEY
#   WRITE_MATRIX_VALKEY=1 tests/runtest --single unit/write_matrix --binary VALKEY

set ::matrix_settings {databases 2000 appendonly yes appendfsync no auto-aof-rewrite-percentage 0
    repl-timeout 3600 repl-ping-replica-period 3600 repl-diskless-sync-delay 0}
set ::matrix_folder $::tests_dir/assets/write_matrix
# In slow builds two are enough for what those find.
set ::matrix_ways [expr {$::scale < 1 ? {plain script} : {plain multi script function paused}}]
# Numbers of databases that are no numbers of the data.
set ::matrix_first_db 1000

# ---- the table ----

proc matrix_path {family} {return $::matrix_folder/$family.txt}

proc matrix_commands {text} {
    return [lmap part [split [string map [list " ; " \x01] $text] \x01] {list {*}[string trim $part]}]
}

# Rows of a family: dicts with title, command, waiting, setup, expected.
proc matrix_rows {family} {
    set rows {}
    foreach line [split [string trim [encoding convertfrom utf-8 [read_bytes [matrix_path $family]]]] \n] {
        if {[string index $line 0] in {{} #}} continue
        if {[string index $line 0] eq " "} {
            set row [lindex $rows end]
            dict set row expected [lindex $line 0] [lrange $line 1 end]
            lset rows end $row
            continue
        }
        lassign [split [string map [list " <- " \x01] $line] \x01] request setup
        set parts [split [string map [list " <= " \x01] $request] \x01]
        set waiting [expr {[llength $parts] == 2 ? [lindex $parts 0] : {}}]
        lappend rows [dict create title $line command [list {*}[lindex $parts end]] waiting [list {*}$waiting] \
            setup [matrix_commands $setup] expected {}]
    }
    return $rows
}

proc matrix_keys {row} {
    return [lsort -unique [regexp -all -inline {\mk\d\M} [dict get $row title]]]
}

# The states a row is run in.
proc matrix_states {row} {
    set setup [dict get $row setup]
    set states live
    if {[lsearch -glob $setup {*DIE *}] >= 0 || [matrix_keys [dict create title $setup]] eq ""} {return $states}
    lappend states expired
    if {[matrix_fields $setup] ne ""} {lappend states fields}
    return $states
}

# Key and fields, for each hash of the setup, of the fields that expire in the state "fields".
proc matrix_fields {setup} {
    set fields {}
    foreach command $setup {
        if {[lindex $command 0] ne "HSET"} continue
        foreach {field value} [lrange $command 2 end] {
            if {[string match f* $field]} {dict lappend fields [lindex $command 1] $field}
        }
    }
    return $fields
}

# ---- clients of the current server, and of a replica made of a socket ----

# Clients end with a test, so each begins with this.
proc matrix_begin {} {
    array unset ::matrix
    array set ::matrix {number 0 cells {}}
    r flushall
    foreach name {control runner waiter mark} {set ::matrix($name) [connect]}
    foreach name {watch1 watch2 watch3} {set ::matrix($name) [connect 2]}
    foreach name {tracker events} {set ::matrix($name) [connect 3]}
    set ::matrix(waiter_id) [$::matrix(waiter) client id]
    $::matrix(tracker) client tracking on
    catch {$::matrix(runner) himport prepare fieldset a b} ;# Valkey does not have it
    r config set notify-keyspace-events EAmn
    $::matrix(events) -send psubscribe __keyevent@*
    $::matrix(events) -push
    set link [replica_sync]
    set ::matrix(stream) [dict get $link socket]
    # Valkey sends the stream after an acknowledgement that follows the end of its child.
    wait_for_condition 500 10 {[regexp -all {state=online} [r info replication]] == 2}
    replica_ack $::matrix(stream) [dict get $link offset]
}

proc matrix_dirty {} {
    regexp {rdb_changes_since_last_save:(\d+)} [$::matrix(control) info persistence] -> dirty
    return $dirty
}

# Sends all in one write, then reads all; the replies, typed.
proc matrix_pipeline {client commands} {
    $client -write [join [lmap command $commands {resp::encode $command}] {}]
    return [lmap command $commands {$client -readtyped}]
}

proc matrix_word {word} {
    switch -glob -- $word {
        %db {return $::matrix(db)}
        %other {return $::matrix(other)}
        %s+* {return [expr {$::matrix(now) / 1000 + [string range $word 3 end]}]}
        %ms+* {return [expr {$::matrix(now) + 1000 * [string range $word 4 end]}]}
        %port {return [srv -2 port]}
        %dump:* {return [set ::matrix(payload) [$::matrix(control) dump [string range $word 6 end]]]}
        %functions {return [set ::matrix(payload) [$::matrix(control) function dump]]}
    }
    return $word
}

proc matrix_request {command} {return [lmap word $command {matrix_word $word}]}

# ---- one cell ----

# Returns the request to run.
proc matrix_setup {row state} {
    set db $::matrix(db)
    set commands [list [list select $db]]
    set ending {}
    foreach command [dict get $row setup] {
        switch [lindex $command 0] {
            DIE {lappend ending [list pexpire [lindex $command 1] 1]}
            SDIE {lappend ending [list spexpire [lindex $command 1] 1 members 1 [lindex $command 2]]}
            ZDIE {lappend ending [list zpexpire [lindex $command 1] 1 members 1 [lindex $command 2]]}
            HDIE {lappend ending [list hpexpire [lindex $command 1] 1 fields 1 [lindex $command 2]]}
            default {lappend commands [matrix_request $command]}
        }
    }
    foreach reply [matrix_pipeline $::matrix(control) $commands] {
        if {[lindex $reply 0] eq "error"} {fail "setup of [dict get $row title]: $reply"}
    }
    # Before the keys that it dumps expire.
    set request [matrix_request [dict get $row command]]
    set keys [matrix_keys $row]
    if {$state eq "expired"} {
        foreach key $keys {lappend ending [list pexpire $key 1]}
    } elseif {$state eq "fields"} {
        dict for {key fields} [matrix_fields [dict get $row setup]] {
            lappend ending [list hpexpire $key 1 fields [llength $fields] {*}$fields]
        }
    }
    # Time does not pass within a transaction: the keys are tracked before they expire.
    set ending [list [list select $db] multi {*}$ending [list exists tracked {*}$keys] exec]
    matrix_pipeline $::matrix(tracker) $ending ;# with its replies, earlier pushes have come
    if {[llength $ending] > 4} matrix_wait_expired
    foreach key $keys client {watch1 watch2 watch3} {
        if {$key ne ""} {matrix_pipeline $::matrix($client) [list [list select $db] [list watch $key]]}
    }
    return $request
}

# Until the server's clock is two milliseconds further.
proc matrix_wait_expired {} {
    set start [join [lmap part [$::matrix(control) time] {format %06d $part}] {}]
    for {set i 0} {$i < 100000} {incr i} {
        if {[join [lmap part [$::matrix(control) time] {format %06d $part}] {}] - $start >= 2000} return
    }
    fail "the server's clock does not advance"
}

proc matrix_blocked_count {} {
    regexp {blocked_clients:(\d+)} [$::matrix(control) info clients] -> count
    return $count
}

# Until so many clients are blocked, or this one has its reply: not every request waits.
proc matrix_wait_blocked {client count} {
    wait_for_condition 5000 1 {[matrix_blocked_count] == $count || ![catch {resp::waitReadable [$client -channel] 1}]}
}

# Runs a request; returns its reply, typed.
proc matrix_run {way command} {
    set runner $::matrix(runner)
    switch $way {
        plain {return [$runner -typed {*}$command]}
        multi {
            set replies [matrix_pipeline $runner [list multi $command {incr neighbour} exec]]
            if {[lindex $replies 1 0] eq "error"} {return [lindex $replies 1]}
            return [lindex $replies 3 1 0]
        }
        script {
            set script {local r = redis.pcall(unpack(ARGV)); redis.call('incr', 'neighbour'); return r}
            return [$runner -typed eval $script 0 {*}$command]
        }
        function {return [$runner -typed fcall run 0 {*}$command]}
        paused {
            set blocked [matrix_blocked_count]
            $::matrix(mark) client pause 100000 write
            $runner -send {*}$command
            matrix_wait_blocked $runner [expr {$blocked + 1}]
            $::matrix(mark) client unpause
            return [$runner -readtyped]
        }
    }
}

proc matrix_cell {row state way} {
    incr ::matrix(number)
    set ::matrix(db) [expr {$::matrix_first_db + 2 * [llength $::matrix(cells)]}]
    set ::matrix(other) [expr {$::matrix(db) + 1}]
    lappend ::matrix(cells) "[dict get $row title] ($state)"
    set ::matrix(now) [clock milliseconds]
    set ::matrix(payload) {}
    if {[llength $::servers] > 2} {r -2 flushall}
    set request [matrix_setup $row $state]
    matrix_pipeline $::matrix(runner) [list [list select $::matrix(db)]]
    if {[set waiting [dict get $row waiting]] ne ""} {
        matrix_pipeline $::matrix(waiter) [list [list select $::matrix(db)]]
        $::matrix(waiter) -send {*}[matrix_request $waiting]
        matrix_wait_blocked $::matrix(waiter) 1
        $::matrix(tracker) ping ;# the waiting command may have removed keys that had expired
    }
    matrix_observe_begin
    set reply [matrix_run $way $request]
    set outcome [matrix_observe_end $row [expr {$way in {multi script}}]]
    if {$waiting ne "" && [matrix_blocked_count]} {
        $::matrix(control) client unblock $::matrix(waiter_id)
        $::matrix(waiter) -read
        dict set outcome waits yes
    } elseif {$waiting ne "" && [lindex [set woken [$::matrix(waiter) -readtyped]] 0] eq "error"} {
        dict set outcome waiting_error [lindex $woken 1]
    }
    if {[lindex $reply 0] eq "error"} {dict set outcome error [matrix_text [lindex $reply 1]]}
    return $outcome
}

# ---- observation ----

proc matrix_observe_begin {} {
    $::matrix(tracker) -pushes
    $::matrix(events) ping
    $::matrix(events) -pushes
    $::matrix(mark) set mark begin$::matrix(number)
    set ::matrix(dirty) [matrix_dirty]
    while {[replica_next $::matrix(stream)] ne [list set mark begin$::matrix(number)]} {}
}

proc matrix_observe_end {row neighbour} {
    set outcome {}
    set dirty [expr {[matrix_dirty] - $::matrix(dirty) - $neighbour}]
    if {$dirty} {dict set outcome dirty $dirty}
    $::matrix(mark) set mark end$::matrix(number)
    $::matrix(events) ping
    foreach {field value} [list events [matrix_events] touched [matrix_touched $row] tracked [matrix_tracked] \
                               stream [matrix_stream $neighbour]] {
        if {$value ne "" || $field eq "tracked"} {dict set outcome $field $value}
    }
    set touched [expr {[dict exists $outcome touched] ? [dict get $outcome touched] : {}}]
    if {[dict get $outcome tracked] eq $touched} {dict unset outcome tracked}
    return $outcome
}

proc matrix_events {} {
    set events {}
    foreach push [$::matrix(events) -pushes] {
        lassign $push kind pattern channel key
        if {![regexp {__keyevent@(\d+)__:(.*)} $channel -> db event] || $key in {mark neighbour}} continue
        lappend events $event:$key[expr {$db == $::matrix(db) ? {} : "@[matrix_text $db]"}]
    }
    return $events
}

proc matrix_touched {row} {
    set touched {}
    foreach key [matrix_keys $row] client {watch1 watch2 watch3} {
        if {$key eq ""} continue
        if {[lindex [matrix_pipeline $::matrix($client) {multi ping exec}] 2 0] eq "null"} {lappend touched $key}
    }
    return $touched
}

proc matrix_tracked {} {
    $::matrix(tracker) ping
    set keys {}
    foreach push [$::matrix(tracker) -pushes] {
        foreach key [lindex $push 1] {
            if {$key ni {neighbour mark}} {lappend keys $key}
        }
        if {[lindex $push 1] eq ""} {lappend keys all}
    }
    return [lsort -unique $keys]
}

# The commands up to the mark, without SELECT, the neighbour, and what its presence makes of a transaction.
proc matrix_stream {neighbour} {
    set commands {}
    set db -1
    while 1 {
        set words [replica_next $::matrix(stream)]
        set name [string tolower [lindex $words 0]]
        if {$words eq [list set mark end$::matrix(number)]} break
        if {$name eq "select"} {
            set db [lindex $words 1]
            continue
        }
        if {$name in {ping replconf}} continue
        set place [expr {$db == $::matrix(db) || $name in {multi exec} ? {} : "\[[matrix_text $db]\] "}]
        lappend commands $place[matrix_text $words]
    }
    if {$neighbour} {set commands [matrix_without_neighbour $commands]}
    return $commands
}

proc matrix_without_neighbour {commands} {
    set at [lsearch -exact -nocase $commands "incr neighbour"]
    set commands [lreplace $commands $at $at]
    set first [lsearch -exact -nocase $commands multi]
    set last [lsearch -exact -nocase $commands exec]
    if {$first < 0 && [llength $commands] == 0} {return {}}
    # It must have been in a transaction with the row's commands, which one command alone does not have.
    if {$first < 0 || $at <= $first || $last < $at} {return [list "neighbour outside of the transaction" {*}$commands]}
    if {$last - $first == 2} {set commands [lreplace [lreplace $commands $last $last] $first $first]}
    return $commands
}

# Text without what differs from run to run: databases, times, payloads.
proc matrix_text {text} {
    if {$::matrix(payload) ne ""} {
        set text [string map [list [list $::matrix(payload)] %payload $::matrix(payload) %payload] $text]
    }
    set out {}
    set at 0
    foreach range [regexp -all -inline -indices {\d+} $text] {
        lassign $range first last
        set number [string range $text $first $last]
        append out [string range $text $at $first-1]
        set at [expr {$last + 1}]
        append out [matrix_number $number]
    }
    return [string map [list \n \\n \r \\r "\0idmp" %idmp] $out[string range $text $at end]]
}

# Times are rounded to ten seconds.
proc matrix_number {number} {
    if {$number eq $::matrix(db)} {return %db}
    if {$number eq $::matrix(other)} {return %other}
    foreach {digits unit scale} {13 %ms 1000.0 10 %s 1.0} {
        if {[string length $number] != $digits} continue
        set distance [expr {10 * round(($number - $::matrix(now) / (1000 / $scale)) / $scale / 10)}]
        if {abs($distance) < 100000} {return $unit+$distance}
    }
    return $number
}

# ---- a family ----

# Every row and state in every way; `replica` is the level of a replica.
proc matrix_check {family replica} {
    matrix_begin
    set differences {}
    foreach way $::matrix_ways {
        matrix_way $family $way {
            set expected [matrix_expected $row $state $way]
            if {$outcome ne $expected} {
                lappend differences "$way: [lindex $::matrix(cells) end]\n  expected $expected\n  got      $outcome"
            }
        }
        if {[catch {matrix_verify $replica} message]} {lappend differences "$way: $message"}
    }
    if {$differences ne ""} {fail "[llength $differences] differ:\n[join $differences \n]"}
}

# The same, and writes the outcomes below the rows.
proc matrix_record {family replica} {
    matrix_begin
    set recorded {}
    foreach way $::matrix_ways {
        matrix_way $family $way {dict set recorded [dict get $row title] $state $way $outcome}
        if {[catch {matrix_verify $replica} message]} {puts "$family, $way: $message"}
    }
    matrix_write $family $recorded
}

# Runs the cells of one way; `code` sees row, state and outcome.
proc matrix_way {family way code} {
    upvar 1 row row state state outcome outcome
    r flushall
    r debug set-active-expire 0
    r function load replace {#!lua name=matrix
        server.register_function('run', function(keys, args) return redis.pcall(unpack(args)) end)}
    set ::matrix(cells) {}
    foreach row [matrix_rows $family] {
        if {$way in {script function} && [lindex [dict get $row command] 0] in {EVAL FUNCTION}} continue
        foreach state [matrix_states $row] {
            set outcome [matrix_cell $row $state $way]
            uplevel 1 $code
        }
    }
}

proc matrix_expected {row state way} {
    set expected [dict get $row expected]
    set labels [list $state/$way $state]
    if {![info exists ::env(WRITE_MATRIX_VALKEY)]} {set labels [linsert $labels 0 ours/$state/$way ours/$state]}
    foreach label $labels {
        if {[dict exists $expected $label]} {return [dict get $expected $label]}
    }
    return "nothing: not recorded"
}

# A replica and the append only file have the dataset of the server, with all times.
proc matrix_verify {replica} {
    r wait 1 20000
    same_offset -0 $replica
    # A command that ignores an expired field leaves it here, and removes it in a replica, until it is removed here.
    if {[r debug digest] ne [r $replica debug digest]} {
        r config set hz 500
        r debug set-active-expire 1
        wait_for_condition 200 10 {[r debug digest] eq [r $replica debug digest]} else {
            fail "the replica differs: [matrix_different $replica]"
        }
        r debug set-active-expire 0
        r config set hz 10
        same_offset -0 $replica
    }
    set digest [r debug digest]
    if {$digest ne [r $replica debug digest]} {fail "the replica differs: [matrix_different $replica]"}
    set times [matrix_times -0]
    matrix_same_times "the replica" $times [matrix_times $replica]
    r debug loadaof
    if {$digest ne [r debug digest]} {fail "the append only file differs: [matrix_different $replica]"}
    matrix_same_times "the append only file" $times [matrix_times -0]
}

# One item for each key that has not expired: database, name, type, expiry times of it and of its fields, and of a
# stream its groups with consumers and pending entries (not how often they were read again, which is not propagated).
# Valkey does not propagate consumers that get no entry.
proc matrix_times {level} {
    set last [expr {$::matrix_first_db + 2 * [llength $::matrix(cells)] - 1}]
    return [r $level eval_ro {
        local out = {}
        for db = ARGV[1], ARGV[2] do
            redis.call('select', db)
            local keys = redis.call('keys', '*')
            table.sort(keys)
            for _, key in ipairs(keys) do
                local kind = redis.call('type', key).ok
                local item = {db, key, kind, redis.call('pexpiretime', key)}
                if kind == 'hash' then
                    local fields = redis.call('hkeys', key)
                    table.sort(fields)
                    for _, field in ipairs(fields) do
                        item[#item + 1] = field
                        item[#item + 1] = redis.call('hpexpiretime', key, 'fields', 1, field)[1]
                    end
                end
                if kind == 'stream' and ARGV[3] == 'groups' then
                    for _, group in ipairs(redis.call('xinfo', 'groups', key)) do
                        item[#item + 1] = cjson.encode(group)
                        for _, consumer in ipairs(redis.call('xinfo', 'consumers', key, group[2])) do
                            item[#item + 1] = consumer[2] .. '=' .. consumer[4]
                        end
                        for _, pending in ipairs(redis.call('xpending', key, group[2], '-', '+', 100)) do
                            item[#item + 1] = pending[1] .. '=' .. pending[2]
                        end
                    end
                end
                out[#out + 1] = table.concat(item, ' ')
            end
        end
        return out
    } 0 $::matrix_first_db $last [expr {[info exists ::env(WRITE_MATRIX_VALKEY)] ? {} : {groups}}]]
}

proc matrix_cell_of {db} {return [lindex $::matrix(cells) [expr {($db - $::matrix_first_db) / 2}]]}

proc matrix_same_times {who expected got} {
    if {$expected eq $got} return
    set lines {}
    foreach {kind from with} [list "not in $who" $expected $got "only in $who" $got $expected] {
        foreach item $from {
            if {$item ni $with} {lappend lines "$kind: $item: [matrix_cell_of [lindex $item 0]]"}
        }
    }
    fail "$who differs in times or groups:\n[join [lrange $lines 0 19] \n]"
}

# The cells whose values differ between the server and the replica.
proc matrix_different {replica} {
    set cells {}
    for {set db $::matrix_first_db} {$db < $::matrix_first_db + 2 * [llength $::matrix(cells)]} {incr db} {
        foreach level [list -0 $replica] {
            r $level select $db
            set values($level) [r $level debug digest-value k1 k2 k3]
        }
        if {$values(-0) ne $values($replica)} {lappend cells [matrix_cell_of $db]}
    }
    foreach level [list -0 $replica] {r $level select 0}
    return \n[join [lrange $cells 0 19] \n]
}

# Writes the outcomes below the rows; lines of documented differences stay.
proc matrix_write {family recorded} {
    set lines {}
    foreach line [split [string trim [encoding convertfrom utf-8 [read_bytes [matrix_path $family]]]] \n] {
        if {[string index $line 0] eq " " && ![string match "    ours/*" $line]} continue
        lappend lines [string trimright $line]
        if {![dict exists $recorded $line]} continue
        dict for {state outcomes} [dict get $recorded $line] {
            set common [dict get $outcomes plain]
            lappend lines [string trimright "    $state $common"]
            dict for {way outcome} $outcomes {
                if {$outcome ne $common} {lappend lines [string trimright "    $state/$way $outcome"]}
            }
        }
    }
    write_bytes [matrix_path $family] [encoding convertto utf-8 [join $lines \n]\n]
}

# ---- the set of commands ----

# Names of the commands of all rows, "container|subcommand" where there are subcommands.
proc matrix_commands_covered {} {
    set names {}
    foreach path [glob $::matrix_folder/*.txt] {
        foreach row [matrix_rows [file rootname [file tail $path]]] {
            foreach command [list [dict get $row command] [dict get $row waiting]] {
                set words [string tolower [lrange $command 0 1]]
                dict set names [lindex $words 0] 1
                dict set names [join $words |] 1
            }
        }
    }
    return [dict keys $names]
}

# Names of the commands of a reply of COMMAND that read a key and write to another one.
proc matrix_commands_between_keys {table} {
    set names {}
    foreach entry $table {
        set specs [lindex $entry 8]
        if {"write" ni [lindex $entry 2] || [llength $specs] < 2} continue
        foreach spec $specs {
            set flags [dict get $spec flags]
            if {"RO" ni $flags && "access" ni $flags} continue
            lappend names [lindex $entry 0]
            break
        }
    }
    return $names
}

# Those of them that the family has a row for, in which something of a source has expired.
proc matrix_commands_with_expired {family} {
    set names {}
    foreach row [matrix_rows $family] {
        if {[lsearch -glob [dict get $row setup] {*DIE *}] >= 0}             {lappend names [string tolower [lindex [dict get $row command] 0]]}
    }
    return [lsort -unique $names]
}

# Names of the commands of a reply of COMMAND that write, with subcommands.
proc matrix_commands_writing {table} {
    set names {}
    foreach entry $table {
        if {"write" in [lindex $entry 2]} {lappend names [lindex $entry 0]}
        lappend names {*}[matrix_commands_writing [lindex $entry 9]]
    }
    return $names
}
