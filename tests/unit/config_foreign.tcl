# SPDX-License-Identifier: BSD-3-Clause
#
# Configuration files of other servers: what is said about their directives, `unknown-directives`, --migrate-config, and
# placeholders of templates.

source $::tests_dir/support/tools.tcl

proc config_file {text {name foreign.conf}} {
    set path [file join $::job_dir $name]
    write_bytes $path $text
    return $path
}
proc check_config {text} {run_tool valkey-server "" --check-config [config_file $text]}
# Runs --migrate-config: exit status, the new file, what was said.
proc migrate {text} {
    set out [file join $::job_dir migrated.conf]
    file delete $out
    lassign [run_tool valkey-server "" --migrate-config [config_file $text] -o $out] status said
    return [list $status [read_bytes $out] $said]
}

# Names of the table, with a rest in place of a star: name, harmless.
proc foreign_rows {} {
    set source [read_bytes [file join $::tests_dir .. src config config_foreign.c]]
    set rows {}
    foreach {all name rest} [regexp -all -inline {\n    \{"([^"]+)", ([^\}]*)\},} $source] {
        lappend rows [string map {* x} $name] [regexp {true\s*$} $rest]
    }
    return $rows
}

test {an unknown directive, wrong arguments and placeholders are told apart} {
    foreach {line said} {
        {prot 7} "unknown directive; did you mean 'port'?" {nonsense-of-mine 7} "unknown directive"
        {loadmodule} "wrong number of arguments" {include} "wrong number of arguments" {rename-command a} "wrong number of arguments"
        {hash-max-zipmap-entries 64} "unknown directive of Redis before 3.2, its name here is 'hash-max-listpack-entries'"
        {server-threads 4} "unknown directive of KeyDB, its name here is 'io-threads'"
        {active-replica yes} "unknown directive of KeyDB: there is one primary: *" {vm-enabled no} "unknown directive of Redis before 3.2: remove it: *"
        {LOOKAHEAD 16} "unknown directive of Redis 8: remove it: *" {search-timeout 5} "unknown directive of Redis 8: remove it: *"
        {port ${PORT}} "'\${PORT}' is a placeholder that nothing has replaced"
        {port ${REDIS_PORT:-6379}} "'\${REDIS_PORT:-6379}' is a placeholder that nothing has replaced"
        {port "{{ redis.port }}"} "'{{ redis.port }}' is a placeholder that nothing has replaced"
        {port %PORT%} "'%PORT%' is a placeholder that nothing has replaced"
        {port @PORT@} "'@PORT@' is a placeholder that nothing has replaced"
        {${DIRECTIVE} 7} "unknown directive; '\${DIRECTIVE}' is a placeholder that nothing has replaced"
    } {
        lassign [check_config $line] status out
        assert {$status != 0}
        assert_match "*\n    in *; [string map {\\ \\\\ \[ \\[} $said]*" $out
        lassign [run_tool valkey-server "" [config_file "port 0\n$line"]] status out
        assert_equal 1 $status
        assert_match "*FATAL CONFIG FILE ERROR*at line 2\n*; [string map {\\ \\\\ \[ \\[} $said]*" $out
    }
    foreach {line} {{port 5%} {hz 20%30} {maxmemory 50% %} {port $PORT}} {
        assert_equal 0 [string match *placeholder* [check_config $line]]
    }
    # Secrets are not shown.
    assert_equal 0 [string match *SECRET* [check_config {requirepass ${SECRET} x}]]
    assert_equal 0 [string match *SECRET* [check_config {requirepass ${SECRET}}]]
}

test {a value that is a placeholder as a whole is accepted, and named} {
    lassign [check_config "port 0\ndbfilename \${NAME}.rdb\nproc-title-template x\nlogfile \${LOG}"] status out
    assert_equal 0 $status
    assert_match "*Directive 'logfile' (*:4) has the value '\${LOG}', a placeholder that nothing has replaced*" $out
    assert_equal 0 [string match *NAME* $out]
    lassign [run_tool valkey-server "" --check-config --strict [config_file {logfile "{{ log }}"}]] status
    assert {$status != 0}
}

test {each row of the table is refused with what to do, and harmless ones are ignored with unknown-directives warn} {
    set rows [foreign_rows]
    assert {[llength $rows] > 80}
    # All errors of a file are reported at once.
    set lines {}
    foreach {name harmless} $rows {lappend lines "$name 1"}
    set errors [lindex [check_config [join $lines \n]\n] 1]
    set warned [lindex [check_config "[join $lines \n]\nunknown-directives warn\n"] 1]
    set refused 0
    set ignored {}
    foreach {name harmless} $rows {
        set error ">>> '$name 1'\nBad directive or wrong number of arguments\n    in *; unknown directive of *"
        if {![string match "*$error\n*" $errors\n]} {
            assert_equal 0 [string match "*>>> '$name 1'\nBad directive*" $errors] ;# it has become a directive here
            continue
        }
        incr refused
        assert_equal [expr {!$harmless}] [string match "*$error\n*" $warned\n]
        if {$harmless} {lappend ignored "$name 1"}
    }
    lassign [check_config "[join $ignored \n]\nunknown-directives warn\n"] status out
    assert_equal 0 $status
    foreach line $ignored {assert_match "*Directive '[lindex $line 0]' (*) is unknown and ignored; it is of *" $out}
    assert {$refused > 30}
    lassign [run_tool valkey-server "" --check-config [config_file "unknown-directives warn\nprot 1\nlookahead 1"]] status out
    assert {$status != 0}
    assert_match "*did you mean 'port'*" $out
}

test {--migrate-config writes a file that loads, and says what it has changed} {
    lassign [migrate "# of Redis 8\nport 0\n\nlookahead 16\nhash-max-zipmap-entries 99\nserver-threads 2\nsearch.timeout 5\nsave 60 1\nmaxmemory 100mb\n"] \
        status file said
    assert_equal 0 $status
    assert_equal "# of Redis 8\nport 0\n\n# --migrate-config: of Redis 8: remove it: requests are prefetched without a setting\n# lookahead 16\nhash-max-listpack-entries 99\nio-threads 2\n# --migrate-config: it belongs to a module, and none is loaded\n# search.timeout 5\nsave 60 1\nmaxmemory 100mb\n" $file
    assert_equal "line 4: lookahead is left out, of Redis 8: remove it: requests are prefetched without a setting
line 5: hash-max-zipmap-entries is of Redis before 3.2, its name here is 'hash-max-listpack-entries'
line 6: server-threads is of KeyDB, its name here is 'io-threads'
line 7: search.timeout is left out, it belongs to a module, and none is loaded" $said
    assert_match "The configuration is valid.*" [lindex [check_config $file] 1]
}

test {--migrate-config leaves out what nobody can decide for the user, and its exit status says so} {
    lassign [migrate "port 0\nactive-replica yes\nport \${PORT}\nnonsense 1\nhz\nmaxmemory 2 gb\ninclude other.conf\nrequirepass x\r\n"] status file said
    assert {$status != 0}
    assert_match "port 0\n# --migrate-config: of KeyDB: *\n# active-replica yes\n# --migrate-config: *placeholder*\n# port \${PORT}\n*# nonsense 1\n*# hz\n*did you mean 'maxmemory 2gb'?\n# maxmemory 2 gb\ninclude other.conf\nrequirepass x\n" $file
    assert_match "*line 7: include is kept*\n5 lines to look at" $said
    assert_match "*line 4: nonsense is left out, look at it: Bad directive or wrong number of arguments; unknown directive\n*" $said
    config_file "" other.conf
    assert_match "The configuration is valid.*" [lindex [run_tool valkey-server "" --check-config [config_file [string map [list include\ other "include [file normalize $::job_dir]/other"] $file]]] 1]
    # Without -o to standard output.
    lassign [run_tool valkey-server "" --migrate-config [config_file "hz 10\n"]] status out
    assert_equal {0 {hz 10}} [list $status [string trim $out]]
    assert_match "can't read *" [lindex [run_tool valkey-server "" --migrate-config /nonexistent] 1]
    assert_match "Usage: *" [lindex [run_tool valkey-server "" --migrate-config] 1]
}

test {the file that CONFIG GET of this server describes is left as it is} {
    start_server {} {
        set lines {}
        foreach {name value} [r config get *] {
            if {$value ne "" && $name ni {save bind client-output-buffer-limit oom-score-adj-values latency-tracking-info-percentiles slaveof replicaof}} {
                lappend lines "$name \"[string map {\\ \\\\ \" \\\"} $value]\""
            }
        }
        lassign [migrate [join $lines \n]\n] status file said
        assert_equal [list 0 {}] [list $status $said]
        assert_equal [join $lines \n]\n $file
    }
}

start_server [list overrides [list port [free_port] unknown-directives warn lookahead 16]] {
    test {a server with an ignored directive says so at the start, and CONFIG REWRITE keeps its line} {
        assert_match "*Directive 'lookahead' (*) is unknown and ignored*" [server_log]
        assert_equal {unknown-directives warn} [r config get unknown-directives]
        assert_error "*can't set immutable config*" {r config set unknown-directives refuse}
        r config set hz 17
        r config rewrite
        assert_match "*lookahead 16*" [read_bytes [srv config]]
        restart_with_file
        assert_equal {hz 17} [r config get hz]
    }
}
