# CONFIG, the configuration file, the command line.

set set_failed "ERR CONFIG SET failed (possibly related to argument "

# Value of one directive.
proc config_value {name} {
    return [lindex [r config get $name] 1]
}

# Starts a server that must refuse to start: returns its output. Time-limited in case it does start.
proc start_refused {config args} {
    set path $::job_dir/refused.conf
    set file [open $path w]
    puts $file "port 0\n$config"
    close $file
    if {![catch {exec timeout 20 $::binary $path {*}$args </dev/null 2>@1} message options]} {
        fail "the server started"
    }
    assert_equal {CHILDSTATUS 1} [lreplace [dict get $options -errorcode] 1 1]
    return $message
}

start_server {tags {config tls:skip}} {
    test {CONFIG GET finds names and patterns in any case} {
        assert_equal {hz 10} [r config get hz]
        assert_equal {HZ 10} [r config get HZ]
        assert_equal {} [r config get nosuch]
        assert_equal {maxmemory-policy noeviction maxmemory-samples 5} [r config get MAXMEMORY-?o* maxmemory-sam*]
        assert_equal {HZ 10 hash-seed {} port} [lrange [r config get hash-s* HZ port] 0 4]
        assert_equal {slave-priority 100} [r config get slave-priority]
        assert_error "ERR wrong number of arguments for 'config|get' command" {r config get}
    }

    test {a directive that a pattern finds takes its own value, unless Valkey refuses that, too} {
        # Tools and Valkey's own tests set what CONFIG GET * has returned.
        set refused {}
        foreach {name value} [r config get *] {
            if {[catch {r config set $name $value}]} {lappend refused $name}
        }
        assert_equal {} [lmap name $refused {
            if {$name in {
                aclfile always-show-logo aof-rewrite-cpulist aof_rewrite_cpulist appenddirname appendfilename bgsave-cpulist
                bgsave_cpulist bio-cpulist bio_cpulist cluster-config-file cluster-databases cluster-enabled cluster-port daemonize
                databases dbfilename dir disable-thp enable-debug-command enable-module-command enable-protected-configs hash-seed
                logfile mptcp pidfile rdbchecksum rdma-bind rdma-completion-vector rdma-rx-size repl-mptcp replicaof server-cpulist
                server_cpulist set-proc-title slaveof socket-mark-id supervised syslog-enabled syslog-facility syslog-ident
                tcp-backlog unixsocket unixsocketgroup unixsocketperm unknown-directives
            }} continue
            set name
        }]
    }

    test {CONFIG GET is a map, sorted, each directive once} {
        assert_equal [expr {[resp3] ? "map" : "array"}] [lindex [r -typed config get *] 0]
        set names [dict keys [r config get * *a* port]]
        assert_equal [lsort -unique $names] $names
        assert {[llength $names] > 230}
    }

    test {CONFIG GET shows hidden directives by name only} {
        assert_equal {} [r config get key-load-del*]
        assert_equal {key-load-delay 0} [r config get key-load-delay]
        assert {![dict exists [r config get *] debug-context]}
    }

    test {file-only directives are unknown to CONFIG} {
        foreach name {user role include rename-command dynamic-hz} {
            assert_equal {} [r config get $name]
            assert_error "ERR Unknown option or number of arguments for CONFIG SET - '$name'" {r config set $name x}
        }
    }

    test {CONFIG SET explains why a value is invalid} {
        foreach {name value words} {
            hz x {argument couldn't be parsed into an integer}
            hz -1 {argument must be between 0 and 2147483647 inclusive}
            maxclients 0 {argument must be between 1 and 4294967295 inclusive}
            latency-tracking 1 {argument must be 'yes' or 'no'}
            loglevel loud {argument(s) must be one of the following: debug, verbose, notice, warning, nothing}
            maxmemory 1tb {argument must be a memory value}
            maxmemory-clients 101% {percentage argument must be less or equal to 100}
            maxmemory-clients x {argument must be a memory or percent value}
            databases 4 {can't set immutable config}
            dbfilename x {can't set protected config}
            save {1 2 3} {Invalid save parameters}
            save {0 2} {Invalid save parameters}
            client-output-buffer-limit {normal 1 2} {Wrong number of arguments in buffer limit configuration.}
            client-output-buffer-limit {master 1 2 3} {Invalid client class specified in buffer limit configuration.}
            client-output-buffer-limit {pubsub 1 2 x} {Error in hard, soft or soft_seconds setting in buffer limit configuration.}
            notify-keyspace-events Kq {Invalid event class character. Use 'Ag$lshzxeKEtmdnp'.}
            oom-score-adj-values {1 2} {wrong number of arguments}
            oom-score-adj-values {1 2 2001} {Invalid oom-score-adj-values, elements must be between -2000 and 2000.}
            latency-tracking-info-percentiles {50 x} {Invalid latency-tracking-info-percentiles parameters}
            latency-tracking-info-percentiles 101 {latency-tracking-info-percentiles parameters should sit between [0.0,100.0]}
            shutdown-on-sigterm {save nosave} {shutdown options SAVE and NOSAVE can't be used simultaneously}
            proc-title-template {{nosuch}} {template format is invalid or contains unknown variables}
            cluster-announce-hostname a_b {Hostnames may only contain alphanumeric characters, hyphens or dots}
            cluster-announce-client-ipv4 ::1 {Invalid IPv4 address}
            locale-collate nosuch {Invalid locale name}
        } {
            set before [config_value $name]
            set code [catch {r config set $name $value} message]
            assert_equal "1 $set_failed'$name') - $words" "$code $message"
            assert_equal $before [config_value $name]
        }
    }

    test {CONFIG SET takes several directives or none} {
        r config set timeout 7 loglevel verbose slowlog-max-len 5
        assert_equal {commandlog-slow-execution-max-len 5 loglevel verbose timeout 7} \
            [r config get timeout loglevel commandlog-slow-execution-max-len]
        assert_error "$set_failed'hz') - argument couldn't be*" {r config set timeout 8 hz x}
        assert_error "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'" {r config set timeout 8 nosuch 1}
        assert_error "$set_failed'databases') - can't set immutable config" {r config set timeout 8 databases 1}
        assert_error "$set_failed'TIMEOUT') - duplicate parameter" {r config set timeout 8 TIMEOUT 9}
        assert_error "$set_failed'tls-port') - Unable to update TLS configuration.*" {r config set timeout 8 tls-port 1}
        assert_equal 7 [config_value timeout]
        assert_error "ERR syntax error" {r config set timeout 8 hz}
        assert_error "ERR wrong number of arguments for 'config|set' command" {r config set timeout}
        r config set timeout 0 loglevel notice
    }

    test {values are shown in their one form} {
        foreach {name value shown} {
            maxmemory 1Kb 1024
            maxmemory 2m 2000000
            maxmemory {} 0
            maxmemory-clients 5% 5%
            appendfsync ALWAYS always
            save {60 1 30 2} {60 1 30 2}
            save {} {}
            client-output-buffer-limit {replica 1mb 2kb 3} {normal 0 0 0 slave 1048576 2048 3 pubsub 33554432 8388608 60}
            notify-keyspace-events KEA AKE
            notify-keyspace-events mKg gKm
            latency-tracking-info-percentiles {99.9 50.0} {99.9 50}
            shutdown-on-sigint {force now} {now force}
            hz 1000 500
            list-compress-depth 0 0
            repl-backlog-size 1 16384
        } {
            set before [config_value $name]
            r config set $name $value
            assert_equal $shown [config_value $name] $name
            r config set $name $before
            assert_equal $before [config_value $name] $name
        }
    }

    test {CONFIG HELP, and unknown subcommands of CONFIG} {
        assert_equal "CONFIG <subcommand> \[<arg> \[value\] \[opt\] ...\]. Subcommands are:" [lindex [r config help] 0]
        assert_equal 13 [llength [r config help]]
        assert_error "ERR unknown subcommand 'nosuch'. Try CONFIG HELP." {r config nosuch}
        assert_error "ERR wrong number of arguments for 'config' command" {r config}
        assert_error "ERR wrong number of arguments for 'config|rewrite' command" {r config rewrite x}
    }

    test {CONFIG RESETSTAT starts the counters again} {
        catch {r nosuch}
        assert {[info_field total_error_replies] > 0}
        assert_equal {status OK} [r -typed config resetstat]
        assert_equal 0 [info_field total_error_replies]
    }
}

start_server {tags {config tls:skip needs:config}} {
    # Lines of valkey.conf after a line with only '#' are directives; the test framework's own
    # settings are kept.
    set in_force $::job_dir/in_force.conf
    set ::in_force_count 0
    test {valkey.conf is all defaults: expected values are recorded} {
        set file [open $in_force w]
        set directives 0
        foreach line [split [file_text $::tests_dir/../valkey.conf] \n] {
            if {$line eq "#"} {
                set directives 1
            } elseif {$directives && [regexp {^# ([a-z][a-z0-9_-]+) (.*)$} $line -> name value]} {
                if {$name in {include user role rename-command replicaof dir} || [dict exists $::server_defaults $name]} continue
                puts $file "$name $value"
                incr ::in_force_count
            } else {
                set directives 0
            }
        }
        close $file
        # What the harness sets for each server.
        set ::config_varies {port dir}
        if {$::io_threads > 1} {lappend ::config_varies io-threads io-threads-always-active}
        set ::config_expected [dict remove [r config get *] {*}$::config_varies]
        assert {$::in_force_count > 180} $::in_force_count
    }
    start_server [list args [list --include $in_force]] {
        test {valkey.conf is all defaults: with every directive in force nothing differs} {
            dict for {name value} [dict remove [r config get *] {*}$::config_varies] {
                assert_equal [dict get $::config_expected $name] $value $name
            }
        }
    }
}

start_server {tags {config tls:skip} overrides {enable-protected-configs yes maxmemory 1mb}} {
    test {CONFIG REWRITE changes lines in place and appends what is new} {
        r config set maxmemory 3gb timeout 5 availability-zone "a \"b\"\r\nhz 99"
        assert_equal {status OK} [r -typed config rewrite]
        set text [file_text [srv config]]
        assert_match "*\nmaxmemory 3gb\n*# Generated by CONFIG REWRITE\n*" $text
        assert_match "*# Generated by CONFIG REWRITE*\navailability-zone \"a \\\\\"b\\\\\"\\\\r\\\\nhz 99\"\n*" $text
        assert_match "*\ntimeout 5\n*" $text
        r config rewrite
        assert_equal $text [file_text [srv config]]
    }

    # Another server reads the file written by this one, without the settings that both cannot share.
    set rewritten $::job_dir/rewritten.conf
    test {CONFIG REWRITE keeps comments and lines with other directives} {
        set file [open [srv config] a]
        puts $file "# a last word\ndynamic-hz yes\n"
        close $file
        r config set save "60 1000" client-output-buffer-limit "pubsub 1mb 2mb 3" requirepass "a b"
        r config set latency-tracking-info-percentiles "1 2.5" notify-keyspace-events K oom-score-adj-values "1 2 3"
        r config rewrite
        set text [file_text [srv config]]
        assert_match "*\n# a last word\ndynamic-hz yes\n*" $text
        set file [open $rewritten w]
        puts $file [regsub -all -line {^(port|dir|requirepass|user) .*$} $text {}]
        close $file
        set ::config_before [dict remove [r config get *] port dir requirepass]
        r config set requirepass ""
    }
    start_server [list args [list --include $rewritten]] {
        test {a server started with the rewritten file has the same configuration} {
            assert_equal $::config_before [dict remove [r config get *] port dir requirepass]
        }
    }

    test {CONFIG SET dir changes the directory, and restores it if another value is refused} {
        set here [config_value dir]
        file mkdir $here/sub
        r config set dir $here/sub
        assert_equal $here/sub [config_value dir]
        assert_error "$set_failed'hz') - *" {r config set dir $here hz x}
        assert_equal $here/sub [config_value dir]
        assert_error "$set_failed'dir') - No such file or directory" {r config set dir /nonexistent}
        r config set dir $here
    }
}

test {an invalid configuration aborts the start with all errors} {
    set said [start_refused "hz x\nprot 1\nmaxmemory 1tb" --timeout y]
    assert_match "*\n\\*\\*\\* FATAL CONFIG FILE ERROR *\nReading the configuration file, at line 2\n>>> 'hz x'\nargument couldn't be parsed into an integer\n*" $said
    assert_match "*at line 3\n>>> 'prot 1'\nBad directive or wrong number of arguments\n*did you mean 'port'?*" $said
    assert_match "*at line 4\n>>> 'maxmemory 1tb'\nargument must be a memory value\n*" $said
    assert_match "*>>> 'timeout \"y\"'\nargument couldn't be parsed into an integer\n    on the command line*" $said
} {needs:config}

test {quotes, includes and words are checked} {
    set here $::job_dir
    foreach {config words} {
        "hz \"10" "Unbalanced quotes in configuration line"
        "hz 10 11" "wrong number of arguments"
        "hz" "wrong number of arguments"
        "include" "Bad directive or wrong number of arguments"
        "include /nonexistent.conf" "*can't open config file '/nonexistent.conf': No such file or directory"
        "replicaof a" "wrong number of arguments"
        "replicaof a b" "Invalid primary port"
        "appendfilename a/b" "appendfilename can't be a path, just a filename"
        "logfile /nonexistent/x" "*Can't open the log file: No such file or directory"
        "dir /nonexistent" "No such file or directory"
        "user a\nuser a" "*Duplicate user found*"
    } {
        assert_match "*$words\n*" [start_refused $config]\n
    }
    assert_match "*FATAL CONFIG FILE ERROR*\nreplicaof directive not allowed in cluster mode\n*" \
        [start_refused "replicaof localhost 1\ncluster-enabled yes"]\n
    assert_match "*includes itself*" [start_refused "include $here/refused.conf"]
} {needs:config}

start_server {tags {config tls:skip} overrides {hz 20} args {--hz 30 {--maxmemory 5mb} --availability-zone {a "b} --save {} --bind 127.0.0.1}} {
    test {the command line comes after the file} {
        assert_equal {availability-zone {a "b} bind 127.0.0.1 hz 30 maxmemory 5242880 save {}} \
            [r config get hz maxmemory save bind availability-zone]
    }
}

start_server {tags {config tls:skip} overrides {save "\"60 1000\"\nsave 30 1\ndynamic-hz yes\nclient-output-buffer-limit normal 1mb 2mb 3\nSLAVE-PRIORITY 7\n# comment"}} {
    test {several save lines accumulate, old names are accepted} {
        assert_equal {60 1000 30 1} [config_value save]
        assert_equal 7 [config_value replica-priority]
        assert_equal "normal 1048576 2097152 3 slave 268435456 67108864 60 pubsub 33554432 8388608 60" \
            [config_value client-output-buffer-limit]
    }
}

start_server {tags {config tls:skip} overrides {enable-protected-configs yes}} {
    test {line breaks in values inject nothing into the rewritten file (Redis 8.6.3 class)} {
        set evil "x\r\nrequirepass owned\nhz 99\n"
        r client setname harmless
        assert_error "*" {r client setname $evil}
        foreach name {availability-zone requirepass primaryauth syslog-ident dbfilename} {catch {r config set $name $evil}}
        catch {r config set requirepass ""}
        r config rewrite
        foreach line [split [file_text [srv config]] \n] {
            assert {![regexp {^\s*(requirepass|hz)\s+(owned|99)} $line]} $line
        }
        set read [exec timeout 60 $::binary --print-config [srv config] 2>@1]
        assert {[regexp -line {^hz 10 +# default$} $read]}
        assert {[regexp -line {^requirepass "" +# } $read]}
        assert {[regexp -line {^availability-zone "x\\r\\nrequirepass owned\\nhz 99\\n" +# /} $read]}
    }

    test {DEBUG CONFIG-REWRITE-FORCE-ALL writes every value, and the file is valid} {
        assert_equal OK [r debug config-rewrite-force-all]
        set text [file_text [srv config]]
        foreach name {maxclients hz timeout save loglevel metrics-port} {
            assert {[regexp -line "^$name " $text]} $name
        }
        assert_match "The configuration is valid.*" [exec timeout 60 $::binary --check-config [srv config]]
        # An empty name means no file.
        assert_match "The configuration is valid.*" [exec timeout 60 $::binary --check-config {} --hz 30]
        assert_error "ERR unknown subcommand or wrong number*" {r debug config-rewrite-force-all x}
    }

    test {a word after an option is its value even if it looks like an option; only save may have no value} {
        foreach {args words} {
            {--replicaof --127.0.0.1 abc} {>>> 'replicaof "--127.0.0.1" "abc"'*Invalid primary port}
            {--oom-score-adj-values --port 6390} {>>> 'oom-score-adj-values "--port" "6390"'*wrong number of arguments}
            {--save --hz x} {>>> 'hz "x"'}
            {--hz} {>>> 'hz'*wrong number of arguments}
        } {
            assert_equal 1 [catch {exec timeout 60 $::binary --check-config {*}$args 2>@1} message]
            assert_match "*$words*" $message
        }
    }

    test {patterns of 50,000 stars cost CONFIG GET no deep recursion (CVE-2024-31228)} {
        assert_equal {} [r config get [string repeat *? 50000]x]
        r config get [string repeat * 50000]
        assert_equal PONG [r ping]
    }
}

# What a restart must not change.
proc config_state {} {
    set acl [lsort [r acl list]]
    return [list [dict remove [r config get *] port] $acl [catch {r keys *}]]
}

# The settings that differ, each with both values.
proc settings_that_differ {before after} {
    set differ {}
    dict for {name value} $before {
        if {[dict get $after $name] ne $value} {lappend differ $name $value [dict get $after $name]}
    }
    return $differ
}

# Starts with the file, rewrites it twice, starts again with it, changes something, and once more.
proc rewrite_and_start_again {main} {
    set before [config_state]
    r config rewrite
    set once [file_text $main]
    r config rewrite
    assert_equal $once [file_text $main]
    restart_with_file
    set after [config_state]
    assert_equal {} [settings_that_differ [lindex $before 0] [lindex $after 0]]
    assert_equal [lrange $before 1 end] [lrange $after 1 end]
    r config set maxmemory 77mb save "" hz 10 notify-keyspace-events K maxmemory-clients 0 client-output-buffer-limit "pubsub 7mb 7mb 7"
    catch {r acl setuser bob -get +set}
    catch {r acl deluser carol}
    catch {r acl setuser eve on >x ~* +@read}
    r replicaof no one
    set before [config_state]
    r config rewrite
    set once [file_text $main]
    r config rewrite
    assert_equal $once [file_text $main]
    restart_with_file
    lassign $before settings users
    lassign [config_state] settings_now users_now
    assert_equal {} [settings_that_differ $settings $settings_now]
    # A user of an included file cannot be removed: it is left without rights.
    assert_equal $users [lsearch -all -inline -not $users_now "user carol off *"]
    assert_equal {} [lsearch -all -inline $users_now "user carol on *"]
    return $once
}

set rewritten_lines {
    {# my settings} {save 900 1} {save 300 10} {user default on nopass sanitize-payload ~* &* +@all} {user bob on >pw ~k:* +get} {user carol on nopass +@all ~*}
    {rename-command KEYS ""} {client-output-buffer-limit pubsub 64mb 16mb 30} {maxmemory 104857600} {maxmemory-policy allkeys-lfu} {hz 12}
    {slave-priority 50} {lua-time-limit 4000} {slowlog-max-len 99} {hash-max-ziplist-entries 77} {masterauth x} {maxmemory-clients 5%}
    {latency-tracking-info-percentiles 50 99} {notify-keyspace-events KEA} {bind 127.0.0.1 -::1} {appenddirname 'my dir'} {replicaof 127.0.0.1 1}
}

foreach {kind words} {plain {} crlf {} link {} first include last include glob include twice include} {
    start_server [list tags {config tls:skip} overrides [list port [free_port]]] {
        test "CONFIG REWRITE: a file of kind $kind is written the same twice, and starts the same server" {
            set main [srv config]
            set part [file dirname $main]/part
            file mkdir $part
            write_bytes $part/a.conf [join $rewritten_lines \n]\n
            write_bytes $part/b.conf "maxmemory 200mb\nsave 60 10000\n"
            set own [file_text $main]
            set text [join $rewritten_lines \n]
            switch $kind {
                plain {append own \n$text\n}
                crlf {set own [string map {\n \r\n} $own\n$text\n]}
                link {append own \n$text\n}
                first {set own "include $part/a.conf\n$own\n"}
                last {append own "\nmaxmemory 1gb\ninclude $part/a.conf\n"}
                glob {append own "\ninclude $part/*.conf\n"}
                twice {append own "\ninclude $part/a.conf\ninclude $part/b.conf\nhz 20\n"}
            }
            write_bytes $main $own
            if {$kind eq "link"} {
                file rename $main $part/real
                file link -symbolic $main $part/real
            }
            restart_with_file
            set text [rewrite_and_start_again $main]
            assert {![string match *\r* $text]}
            assert_equal [expr {$kind eq "link"}] [expr {[file type $main] eq "link"}]
            if {$words eq "include"} {
                assert_equal [join $rewritten_lines \n]\n [file_text $part/a.conf]
                assert {![regexp -line {^rename-command} $text]}
            } else {
                assert_match "*# my settings\n*\nreplica-priority 50\nbusy-reply-threshold 4000\ncommandlog-slow-execution-max-len 99\n*" $text
                assert_match "*\nhash-max-listpack-entries 77\nprimaryauth \"x\"\n*" $text
            }
        }
    }
}

test {settings of modules are refused with their lines where no module is loaded, but not by Sentinel} {
    set said [start_refused "hz 10\nsearch.timeout secret\njson.x 1"]
    assert_match "*at line 3\n>>> 'search.timeout'\nModule Configuration detected without loadmodule directive\n    in */refused.conf*" $said
    assert_match "*at line 4\n>>> 'json.x'\n*" $said
    assert_equal 1 [catch {exec timeout 60 $::binary --check-config $::job_dir/refused.conf 2>@1} said]
    assert_match "*'search.timeout'*" $said
    assert_match "The configuration is valid.*" [exec timeout 60 $::binary --check-config $::job_dir/refused.conf --sentinel]
} {needs:config}

test {lines that depend on a refused one are no errors of their own} {
    write_bytes $::job_dir/refused.conf "sentinel monitor m 127.0.0.1 99999 2\nsentinel auth-pass m x\nsentinel auth-pass n x\n"
    assert_equal 1 [catch {exec timeout 60 $::binary --check-config $::job_dir/refused.conf --sentinel 2>@1} said]
    assert_match "*Invalid port number.*>>> 'sentinel auth-pass n x'*2 errors in the configuration*" $said
    assert {![string match "*auth-pass m*" $said]}
} {needs:config}

start_server [list tags {config tls:skip} overrides [list port [free_port]] args [list --user bob on nopass +get --hz 13]] {
    test {users of the command line do not stop the start after CONFIG REWRITE} {
        r acl setuser bob +set
        r config rewrite
        assert_match "*\nuser bob on *" [file_text [srv config]]
        restart_with_file
        assert_match "*+get*" [lsearch -inline [r acl list] "user bob *"]
    }
}
