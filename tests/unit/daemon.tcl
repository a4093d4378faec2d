# The process: options that print and exit, supervisors, pid files, process titles, OOM scores, logs.

# Runs the server with arguments that make it print and exit: {exit code, stdout, stderr}. Time-limited.
proc run_server {args} {
    set errors $::job_dir/stderr
    set code [catch {exec timeout 60 $::binary {*}$args </dev/null 2>$errors} out options]
    if {$code} {
        set why [dict get $options -errorcode]
        if {[lindex $why 0] ne "CHILDSTATUS"} {fail "it ended by $why"}
        set code [lindex $why 2]
        regsub {\n?child process exited abnormally$} $out {} out
    }
    return [list $code $out [file_text $errors]]
}

proc config_file {text} {
    set path $::job_dir/asked.conf
    set file [open $path w]
    puts $file $text
    close $file
    return $path
}

proc title_of {pid} {
    return [string trimright [string map {\0 { }} [file_text /proc/$pid/cmdline]]]
}

tags {daemon tls:skip needs:config} {
    test {--check-config reports all errors with file, line and a suggestion, and does not start the server} {
        set path [config_file "prot 0\nhz 20\nhz x\nrename-command nosuch y\nrename-command get set\nmaxmemroy 1mb\nsave 1\n\"open"]
        lassign [run_server --check-config $path] code out errors
        assert_equal {2 {}} [list $code $out]
        foreach {line text words} {
            1 {prot 0} {Bad directive or wrong number of arguments}
            3 {hz x} {argument couldn't be parsed into an integer}
            4 {rename-command nosuch y} {No such command in rename-command}
            5 {rename-command get set} {Target command name already exists}
            6 {maxmemroy 1mb} {Bad directive or wrong number of arguments}
            7 {save 1} {Invalid save parameters}
            8 {"open} {Unbalanced quotes in configuration line}
        } {
            assert_match "*Reading the configuration file, at line $line\n>>> '$text'\n$words\n    in $path*" $errors
        }
        assert_match "*did you mean 'port'?*did you mean 'maxmemory'?*7 errors in the configuration\n" $errors
    }

    test {a start with errors reports the same and ends with exit code 1} {
        lassign [run_server [config_file "prot 0\nhz x"] --maxmemory-polic x] code out errors
        assert_equal 1 $code
        assert_match "\n\\*\\*\\* FATAL CONFIG FILE ERROR (Version 9.1.2) \\*\\*\\*\nReading the configuration file, at line 1\n>>> 'prot 0'\n*>>> 'hz x'\n**maxmemory-polic*on the command line; unknown directive; did you mean 'maxmemory-policy'?\n3 errors*" $errors
    }

    test {errors do not show secrets} {
        lassign [run_server --check-config [config_file "requirepass open sesame\nuser x >sesame \"\nprimaryauth \"sesame"]] code out errors
        assert_equal 2 $code
        assert_match "*>>> 'requirepass (hidden)'*>>> 'primaryauth (hidden)'*" $errors
        assert_equal -1 [string first sesame $errors]
    }

    test {--check-config finds what the start refuses: users, files, modules, folders, cluster with replicaof} {
        set missing $::job_dir/no_such_folder/file
        lassign [list $::job_dir/plain_file $::job_dir/script_file] plain script
        write_bytes $plain "of somebody"
        write_bytes $script "#!/bin/sh\n"
        file attributes $script -permissions 0755
        set long [string repeat x 120]
        set port [free_port]
        foreach {lines words start_words} [subst {
            {user u +nosuch} {*'+nosuch'*Unknown command or category name in ACL*} {}
            {aclfile $missing} {*$missing*No such file or directory*} {}
            {loadmodule $missing} {*Can't load module from $missing: No such file or directory*} {*Module $missing failed to load*}
            {loadmodule $plain} {*Can't load module from $plain: It does not have execute permissions.*} {*Module $plain failed to load*}
            {loadmodule $script} {*Can't load module from $script: it is no shared object*} {*Module $script failed to load*}
            {unixsocket $missing} {*unixsocket '$missing': No such file or directory (*:4)*} {*Failed opening Unix socket: $missing*}
            {unixsocket $plain} {*unixsocket '$plain': a file that is no socket is there (*:4)*} {*Failed opening Unix socket: $plain*}
            {unixsocket /$long} {*: the path of a Unix socket has at most 107 bytes (*:4)*} {*Failed opening Unix socket: /$long*}
            {cluster-enabled yes\ncluster-config-file $missing} {*cluster-config-file '$missing': No such file or directory (*:5)*} {*$missing*}
            {admin-port $port} {*admin-port '$port': it is also the port of the directive port (*:4)*} {*Failed listening on port $port*}
            {metrics-port $port} {*metrics-port '$port': it is also the port of the directive port (*:4)*} {*metrics-port $port*}
            {cluster-enabled yes\nport 60000} {*port '60000': the bus of the cluster needs a port that is 10000 higher (*:5)*} {*port number too high*}
            {cluster-enabled yes\nreplicaof 127.0.0.1 1} {*replicaof directive not allowed in cluster mode*} {}
        }] {
            set path [config_file "port $port\nbind 127.0.0.1\ndir $::job_dir\n$lines"]
            lassign [run_server --check-config $path] code out errors
            assert_equal 2 $code $lines
            assert_match $words $out$errors
            lassign [run_server $path] code out errors
            assert_equal 1 $code $lines
            assert_match [expr {$start_words eq "" ? $words : $start_words}] $out$errors
        }
        set path [config_file "dir $::job_dir\nuser u on >x +get ~a\nunixsocket $::job_dir/x.sock"]
        assert_equal 0 [lindex [run_server --check-config $path] 0]
        assert {![file exists $::job_dir/x.sock]}
    }

    test {--check-config names the certificates of TLS that cannot be read, with file and line} {
        set path [config_file "tls-port [free_port]\ntls-cert-file /no_such.crt\ntls-key-file /no_such.key"]
        lassign [run_server --check-config $path] code out errors
        assert_equal 2 $code
        assert_match "*tls-cert-file '/no_such.crt': No such file or directory ($path:2)\ntls-key-file '/no_such.key': *($path:3)*" $errors
        assert_equal 1 [lindex [run_server $path] 0]
        # Files that TLS cannot use, although they can be read: the log says why, the report where they come from.
        write_bytes $::job_dir/plain_file "of somebody"
        set path [config_file "tls-port [free_port]\ntls-cert-file $::job_dir/plain_file\ntls-key-file $::job_dir/plain_file"]
        lassign [run_server --check-config $path] code out errors
        assert_equal 2 $code
        assert_match "*tls-cert-file '$::job_dir/plain_file': readable, see the reason above ($path:2)\ntls-key-file '*': readable, see the reason above ($path:3)*" $errors
    }

    test {--check-config of a valid file, without a file, of the command line} {
        foreach args [list [list [config_file "port 1\nrename-command get \"\""]] {} {--port 7} [list [config_file "port 1"] --hz 5]] {
            lassign [run_server --check-config {*}$args] code out errors
            assert_equal {0 {The configuration is valid.} {}} [list $code $out $errors]
        }
    }

    test {directives without effect are named by --check-config, are errors with --strict, and are logged at start} {
        set text "rdma-port 6380\nprefetch-batch-max-size 64\ndynamic-hz yes\nenable-debug-assert no\nhz 20"
        set path [config_file $text]
        set expected {}
        foreach {name line why} {
            dynamic-hz 3 {it is obsolete, and ignored as in Valkey} prefetch-batch-max-size 2 {the size of batches is fixed here}
            rdma-port 1 {RDMA is not supported}
        } {
            lappend expected "Directive '$name' ($path:$line) has no effect: $why"
        }
        set expected [join $expected \n]
        assert_equal [list 0 "$expected\nThe configuration is valid." {}] [run_server --check-config $path]
        assert_equal [list 2 {} $expected\n] [run_server --check-config --strict $path]
        assert_equal {0 {The configuration is valid.} {}} [run_server --check-config --strict [config_file "hz 20\nrdma-port 0"]]
        assert_match "*Directive 'rdma-port' (command line) has no effect*" \
            [lindex [run_server --check-config --rdma-port 1] 1]
        start_server [list overrides [list dynamic-hz yes rdma-rx-size 65536]] {
            assert_match "*# Directive 'dynamic-hz' (*:*) has no effect: it is obsolete*# Directive 'rdma-rx-size' (*:*) has no effect*" \
                [server_log]
        }
    }

    test {a file that cannot be opened is reported once, with its directive} {
        lassign [run_server [config_file "hz 20\ninclude /nonexistent/x.conf"]] code out errors
        assert_equal 1 $code
        assert_equal 1 [regexp -all {can't open config file} $out$errors]
        assert_match "*at line 2\n>>> 'include /nonexistent/x.conf'\nFatal error, can't open config file '/nonexistent/x.conf': No such*" $errors
        lassign [run_server /nonexistent/x.conf] code out errors
        assert_equal 1 [regexp -all {can't open config file} $out$errors]
    }

    test {a log file that cannot be opened is reported with line, directive and path} {
        set path [config_file "hz 20\nlogfile /nonexistent/x.log"]
        lassign [run_server $path] code out errors
        assert_match "*at line 2\n>>> 'logfile /nonexistent/x.log'\nCan't open the log file: No such file or directory\n    in $path\n" $errors
        lassign [run_server --logfile /nonexistent/x.log] code out errors
        assert_match "*>>> 'logfile /nonexistent/x.log'\n*    on the command line\n" $errors
    }

    test {a blank before the unit of a size is explained} {
        foreach {line words} {
            {maxmemory 2 gb} "; did you mean 'maxmemory 2gb'?" {maxmemory 60 %} "; did you mean 'maxmemory 60%'?"
            {repl-backlog-size 1 MB} "; did you mean 'repl-backlog-size 1mb'?" {maxmemory 2 bananas} "asked.conf" {hz 1 k} "asked.conf"
        } {
            lassign [run_server --check-config [config_file $line]] code out errors
            assert_match "*>>> '$line'\nwrong number of arguments\n*$words\n" $errors
        }
    }

    test {what is in the wrong place is named: options of valkey-cli, directives of Sentinel} {
        foreach {option words} {-p --port -a --requirepass} {
            lassign [run_server $option 7000] code out errors
            assert_match "*Bad directive or wrong number of arguments\n    on the command line; unknown directive; did you mean '$words'?\n" $errors
        }
        lassign [run_server [config_file "sentinel monitor m 127.0.0.1 1 2"]] code out errors
        assert_match "*sentinel directive while not in sentinel mode: start it as valkey-sentinel, or with --sentinel\n*" $errors
    }

    test {an ACL file and a Unix socket that cannot be opened are named} {
        assert_match "*opening file '/nonexistent/users.acl'*Correct the ACL file /nonexistent/users.acl, or remove*" \
            [lindex [run_server --port [free_port] --bind 127.0.0.1 --aclfile /nonexistent/users.acl] 1]
        assert_match "*Failed opening Unix socket: /nonexistent/socket: bind: No such file or directory*" \
            [lindex [run_server --port 0 --unixsocket /nonexistent/socket] 1]
    }

    test {a plain file in the place of the Unix socket stays, and the start fails} {
        set path [file normalize $::job_dir/plain]
        write_bytes $path "of somebody"
        assert_match "*Failed opening Unix socket: $path: bind: Address already in use*" [lindex [run_server --port 0 --unixsocket $path] 1]
        assert_equal "of somebody" [read_bytes $path]
    }

    test {why a dump.rdb cannot be opened is said} {
        set path [file normalize $::job_dir/loop]
        file mkdir $path
        exec ln -s dump.rdb $path/dump.rdb
        assert_match "*Fatal error: can't open the RDB file dump.rdb for reading: Too many levels of symbolic links*" \
            [lindex [run_server --port [free_port] --bind 127.0.0.1 --dir $path] 1]
    }

    test {a SIGTERM that is refused, because the folder is gone, says how to end the server} {
        start_server {overrides {save {3600 1000} enable-protected-configs yes}} {
            set folder $::job_dir/gone
            file mkdir $folder
            r config set dir $folder
            file delete -force $folder
            exec kill -TERM [srv pid]
            wait_for_condition 100 100 {[string match "*The server keeps running*write in the folder of the directive dir*SHUTDOWN NOSAVE*" [server_log]]} else {
                fail [server_log]
            }
            assert_equal PONG [r ping]
            r config set dir $::job_dir
        }
    }

    test {INFO and the log have the version of this project beside that of Valkey} {
        start_server {} {
            assert_equal {9.1.2 Fenwick 0.9.0} [lmap f {valkey_version server_product server_release} {info_field $f}]
            assert_match "* Fenwick 0.9.0, compatible with Valkey 9.1.2\n*Valkey is starting*Valkey version=9.1.2, *" [server_log]
        }
    }

    test {configurations in the documentation are valid} {
        set count 0
        foreach page [concat [glob $::tests_dir/../docs/*.md] $::tests_dir/../README.md] {
            foreach {_ block} [regexp -all -inline {```conf\n(.*?)```} [file_text $page]] {
                if {[string match *tls-cert-file* $block]} continue; # needs the files
                assert_equal {0 {The configuration is valid.} {}} [run_server --check-config --strict [config_file $block]]
                incr count
            }
        }
        assert {$count > 0}
    }

    test {valkey.conf is valid} {
        assert_equal 0 [lindex [run_server --check-config $::tests_dir/../valkey.conf] 0]
    }

    test {--print-config shows values and their origin, and no secrets} {
        set path [config_file "hz 20\nrequirepass sesame\ndir /\nsave 60 10"]
        lassign [run_server --print-config $path --timeout 3 --logfile ""] code out errors
        assert_equal {0 {}} [list $code $errors]
        foreach {line origin} {
            {hz 20} :1 {requirepass (hidden)} :2 {save 60 10} :4 {timeout 3} {command line} {maxclients 10000} default
            {logfile ""} {command line} {primaryauth ""} default
        } {
            set origin [expr {[string match :* $origin] ? "$path$origin" : $origin}]
            assert {[regexp -line -- "^[string map {( \\( ) \\)} $line] +# $origin\$" $out]} $line
        }
        assert_equal -1 [string first sesame $out]
        assert_equal 2 [lindex [run_server --print-config [config_file "hz x"]] 0]
    }

    test {--version, --help, --check-system and --test-memory} {
        foreach word {-v --version} {
            assert {[regexp {^Valkey server v=9\.1\.2 sha=[0-9a-f]{8}:[01] malloc=\S+ bits=64 build=\S+ release=0\.9\.0 compression=\S+\nFenwick 0\.9\.0, compatible with Valkey 9\.1\.2$} [lindex [run_server $word] 1]]}
        }
        foreach word {-h --help} {
            lassign [run_server $word] code out
            assert_match "0 Usage: $::binary \\\[/path/to/valkey.conf\\\] \\\[options\\\] \\\[-\\\]*--check-config*--check-system*Examples:*" "$code $out"
        }
        lassign [run_server --check-system] code out
        assert_match "\\\[slow-clocksource\\\]...*\\\[xen-clocksource\\\]...*\\\[overcommit\\\]...*\\\[THP\\\]...*" $out
        assert_equal [expr {[string match *WARNING:* $out] ? 1 : 0}] $code
        assert_match "0 Pass 1 of 50 over 1 megabytes: 0 errors*Pass 50 of 50*Your memory passed this test.*" \
            [join [lrange [run_server --test-memory 1] 0 1]]
        foreach args {{} x 0 -1} {
            lassign [run_server --test-memory {*}$args] code out errors
            assert_match "1 Please specify the amount of memory to test in megabytes.*" "$code $errors"
        }
    }
}

foreach snapshots {auto fork} {
    start_server [list tags {daemon tls:skip} overrides [list snapshot-mode $snapshots]] {
        test "the log warns about memory overcommit only where snapshots are forked: $snapshots" {
            set allowed [string trim [file_text /proc/sys/vm/overcommit_memory]]
            assert_equal [expr {$snapshots eq "fork" && $allowed != 1}] [string match "*Memory overcommit must be enabled*" [server_log]]
        }
    }
}

start_server {tags {daemon tls:skip} overrides {proc-title-template "<{title}>{port}"}} {
    test {the process title follows proc-title-template, also at run time} {
        assert_equal "<$::binary>[srv port]" [title_of [srv pid]]
        r config set proc-title-template "\{\{ \{port\} \{server-mode\}\{unixsocket\} \}"
        assert_equal "\{ [srv port]  \}" [title_of [srv pid]]
        r config set proc-title-template "{listen-addr} {config-file}"
        assert_equal "127.0.0.1:[srv port] [srv config]" [title_of [srv pid]]
        foreach bad {{} {   } {{title}} {{nosuch} x} "x\{"} {
            assert_error "*proc-title-template*template format is invalid or contains unknown variables" {
                r config set proc-title-template $bad
            }
        }
        assert_equal "127.0.0.1:[srv port] [srv config]" [title_of [srv pid]]
    }
}

start_server {tags {daemon tls:skip} overrides {oom-score-adj relative oom-score-adj-values "11 200 800"}} {
    proc oom_score {} {
        return [string trim [file_text /proc/[srv pid]/oom_score_adj]]
    }
    test {oom-score-adj and its values are applied, and "no" restores the original score} {
        set found [string trim [file_text /proc/self/oom_score_adj]]
        if {$found > 0} {set found 0} ;# so that the steps below are within the limits
        assert_equal {oom-score-adj yes} [r config get oom-score-adj]
        set base [expr {[oom_score] - 11}]
        r config set oom-score-adj-values "12 200 800"
        assert_equal [expr {$base + 12}] [oom_score]
        r config set oom-score-adj absolute oom-score-adj-values "1500 1600 1700"
        assert_equal 1000 [oom_score]
        r config set oom-score-adj-values "1 2 345"
        r replicaof 127.0.0.1 [free_port]
        assert_equal 2 [oom_score]
        r replicaof no one
        assert_equal 1 [oom_score]
        r debug child 60
        wait_for_condition 500 10 {![catch {exec pgrep -P [srv pid]} child]}
        wait_for_condition 500 10 {[string trim [file_text /proc/$child/oom_score_adj]] == 345}
        r debug child 0
        assert_equal 1 [oom_score]
        r config set oom-score-adj no
        assert_equal $base [oom_score]
        assert_error "*Invalid oom-score-adj-values, elements must be between -2000 and 2000." {
            r config set oom-score-adj absolute oom-score-adj-values "a b c"
        }
        assert_equal {oom-score-adj no oom-score-adj-values {1 2 345}} [r config get oom-score-adj*]
    }
}

start_server {tags {daemon tls:skip} overrides {server-cpulist 0 bio-cpulist 0}} {
    test {server-cpulist binds the server to those processors} {
        assert {[regexp -line {^Cpus_allowed_list:\s+0$} [file_text /proc/[srv pid]/status]]}
    }
}
start_server {tags {daemon tls:skip} overrides {server-cpulist nonsense}} {
    test {an invalid list of processors is logged, and the server runs} {
        assert_equal PONG [r ping]
        assert_match "*Can't bind the main thread to the processors of server-cpulist 'nonsense'*" [server_log]
    }
}

# ---- supervisors ----

tags {daemon tls:skip needs:config} {
    # A supervisor's socket; a helper writes each datagram as a line.
    proc listen_for_datagrams {path out} {
        set program {
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(120)
print("listening", flush=True)
while True:
    print(s.recv(4096).decode().replace("\n", "|"), flush=True)
}
        set pid [exec python3 -c $program $path >$out 2>$out.err &]
        note_pids $pid
        wait_for_condition 1000 10 {[file exists $out] && [string match listening* [file_text $out]]}
        return $pid
    }

    foreach value {systemd auto} {
        test "supervised $value: READY, STATUS, WATCHDOG and STOPPING arrive as datagrams" {
            # Not in the job's folder, because the path of a socket must be short.
            set folder [exec mktemp -d]
            set helper [listen_for_datagrams $folder/socket $folder/out]
            set log $folder/log
            set server [exec env NOTIFY_SOCKET=$folder/socket WATCHDOG_USEC=20000 $::binary --port 0 --unixsocket $folder/door \
                --supervised $value --daemonize yes --dir $folder >$log 2>@1 &]
            note_pids $server
            try {
                foreach words {"STATUS=Ready to accept connections|READY=1|" WATCHDOG=1 WATCHDOG=1|*WATCHDOG=1} {
                    wait_for_condition 1500 10 {[string match "*$words*" [file_text $folder/out]]} else {
                        fail "no $words: [file_text $folder/out] [file_text $log]"
                    }
                }
                send_signal TERM $server
                wait_for_condition 1500 10 {[string match "*STOPPING=1*" [file_text $folder/out]]}
                wait_for_condition 1500 10 {[process_ended $server]}
                assert_match "*Supervised by systemd*bye bye*" [file_text $log]
            } finally {
                send_signal KILL $helper
                send_signal KILL $server
                forget_pid $helper
                forget_pid $server
                file delete -force $folder
            }
        }
    }
}

start_server {tags {daemon tls:skip} overrides {supervised systemd}} {
    test {supervised without a supervisor is logged} {
        assert_match "*NOTIFY_SOCKET not found*" [server_log]
        assert_equal no [info_field process_supervised]
    }
}

tags {daemon tls:skip needs:config} {
    test {daemonize: the process runs in the background, with a pid file that is removed at its end; the log can be rotated} {
        set dir $::job_dir/daemonized
        file mkdir $dir
        set port [free_port]
        exec $::binary --port $port --bind 127.0.0.1 --daemonize yes --dir $dir --pidfile $dir/pid --logfile log --enable-debug-command yes </dev/null >/dev/null 2>@1
        wait_for_condition 1500 10 {[file exists $dir/log] && [string match "*Ready to accept*" [file_text $dir/log]]}
        set pid [string trim [file_text $dir/pid]]
        note_pids $pid
        set c [respConnect 127.0.0.1 $port 2]
        assert_match "*process_id:$pid\r\n*" [$c info server]
        # fork() has ended the allocator's thread.
        if {[string match "*mem_allocator:jemalloc*" [$c info memory]]} {
            assert_equal 1 [$c debug mallctl background_thread]
        }
        file rename $dir/log $dir/log.old
        $c config set loglevel verbose
        catch {$c shutdown nosave}
        $c -close
        wait_for_condition 1500 10 {[process_ended $pid]}
        forget_pid $pid
        assert {![file exists $dir/pid]}
        assert_match "*Removing the pid file.*" [file_text $dir/log]
    }

    foreach {how kept} {restart 77 crash-and-recover 10000} {
        test "DEBUG $how starts again with relative paths of program, configuration, include and dir" {
            set dir $::job_dir/$how
            file mkdir $dir/data $dir/bin
            file link $dir/bin/server [file normalize $::binary]
            set port [free_port]
            foreach {name lines} {more.conf {} main.conf {include more.conf dir ./data logfile log}} {
                set file [open $dir/$name w]
                foreach {word value} $lines {puts $file "$word $value"}
                puts $file "timeout 0"
                close $file
            }
            set pid [exec env -C $dir ./bin/server ./main.conf --port $port --bind 127.0.0.1 --save "" \
                --enable-debug-command yes </dev/null >$dir/out 2>@1 &]
            note_pids $pid
            wait_for_condition 1500 10 {![catch {set c [respConnect 127.0.0.1 $port 2]}]} else {fail [file_text $dir/out]}
            $c config set maxclients 77
            assert {[regexp {run_id:(\w+)} [$c info server] all run]}
            catch {$c debug {*}$how}
            $c -close
            wait_for_condition 1500 10 {
                ![catch {set c [respConnect 127.0.0.1 $port 2]}] && ![catch {$c info server} now] && [string first $run $now] < 0
            } else {
                fail [file_text $dir/out]
            }
            assert_equal "$dir/data $kept" [list [lindex [$c config get dir] 1] [lindex [$c config get maxclients] 1]]
            catch {$c shutdown nosave}
            $c -close
            wait_for_condition 1500 10 {[process_ended $pid]}
            forget_pid $pid
        }
    }
}

# ---- logs ----

foreach {hides shown} {yes {name=\*redacted\* * user=\*redacted\*} no {name=bobby * user=default}} {
    start_server [list tags {daemon tls:skip} overrides [list hide-user-data-from-log $hides client-query-buffer-limit 1mb] crash ok] {
        test "hide-user-data-from-log $hides: names of clients in the log" {
            set s [raw_connect]
            raw_send $s "CLIENT SETNAME bobby\r\n"
            assert_equal +OK [raw_line $s]
            # A transaction that exceeds the limit of a client's memory.
            raw_send $s "MULTI\r\n"
            assert_equal +OK [raw_line $s]
            for {set i 0} {$i < 200} {incr i} {
                if {[catch {raw_send $s "SET k [string repeat x 10000]\r\n"}]} break
            }
            wait_for_condition 1000 10 {[string match "*Closing client that reached max query buffer length: id=* $shown *" [server_log]]}
            r client setname bobby
            catch {r shutdown nosave}
            wait_for_condition 1000 10 {[process_ended [srv pid]]}
            assert_match "*User requested shutdown... (user request from 'id=* [string map {{ * user} { user}} $shown] lib-name= lib-ver=')*" [server_log]
        }
    }
}

foreach {format pattern} {
    legacy {\d+:M \d+ \w\w\w \d{4} \d\d:\d\d:\d\d\.\d{3} # DEBUG LOG: a "b" \\ c}
    logfmt {pid=\d+ role=primary timestamp="[^"]+" level=warning message="DEBUG LOG: a 'b' \\ c"}
    json {\{"pid":\d+,"role":"primary","timestamp":"[^"]+","level":"warning","message":"DEBUG LOG: a \\"b\\" \\\\ c"\}}
} {
    start_server [list tags {daemon tls:skip} overrides [list log-format $format]] {
        test "log-format $format, and time stamps changed at run time" {
            r debug log "a \"b\" \\ c"
            assert {[regexp -line -- "^$pattern\$" [server_log]]}
            foreach {time stamp} {iso8601 {\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d} milliseconds {\d{13}}} {
                r config set log-timestamp-format $time
                r debug log "now $time"
                assert {[regexp -line -- "$stamp.*now $time" [server_log]]}
            }
            r config set loglevel nothing
            r debug log hidden
            r config set loglevel notice
            assert_equal -1 [string first hidden [server_log]]
        }
    }
}
