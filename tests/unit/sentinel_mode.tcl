# SPDX-License-Identifier: BSD-3-Clause
#
# Sentinel as a mode of the program: its start, its commands, what it refuses. What it does: sentinel/.

start_server {tags {sentinel needs:binary} overrides {}} {
    test {a Sentinel without a file it can write, or with a wrong line, does not start} {
        set name [file normalize [srv dir]/valkey-sentinel]
        file link -symbolic $name [file normalize $::binary]
        foreach {command message} [list \
            [list $name --port 0] "*Sentinel needs config file on disk to save state. Exiting...*" \
            [list $::binary --port 0 --sentinel] "*Sentinel needs config file on disk to save state. Exiting...*"] {
            assert_equal 1 [catch {exec {*}$command 2>@1} output]
            assert_match $message $output
        }
        set path [srv dir]/wrong.conf
        foreach {line message} {
            {sentinel monitor mym 127.0.0.1 6379 0} {Quorum must be 1 or greater.}
            {sentinel monitor mym 127.0.0.1 70000 2} {Invalid port number.}
            {sentinel monitor mym no.such.host. 6379 2} {Can't resolve instance hostname.}
            {sentinel down-after-milliseconds mym 5000} {No such master with specified name.}
            {sentinel parallel-syncs mym} {Unrecognized sentinel configuration statement.}
            {sentinel nonsense 1} {Unrecognized sentinel configuration statement.}
            {sentinel myid 123} {Malformed Sentinel id in myid option.}
        } {
            write_bytes $path "port 0\n$line\n"
            assert_equal 1 [catch {exec $::binary $path --sentinel 2>@1} output]
            assert_match "*at line 2\n>>> '$line'\n$message*" $output
        }
    }

    test {lines of Sentinel's are an error in a server's file} {
        set path [srv dir]/mixed.conf
        write_bytes $path "port 0\nsentinel monitor mym 127.0.0.1 6379 2\n"
        assert_equal 1 [catch {exec $::binary $path 2>@1} output]
        assert_match "*at line 2\n>>> 'sentinel monitor mym 127.0.0.1 6379 2'\nsentinel directive while not in sentinel mode*" \
            $output
    }
}

# The program in the mode of Sentinel on a free port; the body finds a client in `c`.
# `text`: further lines of its file.
proc with_sentinel {arguments body {text {}}} {
    upvar 1 c c log log
    set port [free_port]
    set log [srv dir]/sentinel.log
    file delete $log
    write_bytes [srv dir]/sentinel.conf "port $port\n$text"
    set pid [exec $::binary [srv dir]/sentinel.conf --sentinel --dir [srv dir] --logfile sentinel.log {*}$arguments &]
    set failed [catch {
        wait_for_condition 400 25 {![catch {set c [respConnect 127.0.0.1 $port 2]}]} else {fail "no connection"}
        uplevel 1 $body
    } message options]
    catch {$c shutdown}
    wait_for_condition 400 25 {[catch {exec kill -0 $pid}]} else {fail "it does not end"}
    if {$failed} {return -options $options $message}
}

start_server {tags {sentinel needs:binary tls:skip}} {
    test {the program can use the example file as it is} {
        set text [regsub -all -line {^(port|dir|logfile) .*$} [read_bytes [file dirname $::tests_dir]/sentinel.conf] {}]
        with_sentinel {} {} $text
        assert_match "*+monitor master mymaster 127.0.0.1 6379 quorum 2*" [read_bytes $log]
        set written [read_bytes [srv dir]/sentinel.conf]
        assert_match "*# How many replicas are told*sentinel myid *" $written
    }

    test {the mode has its commands, sections and features, and no dataset} {
        r set key value
        r save
        with_sentinel {} {
            foreach command {{get key} {config get port} {multi} {select 0} {eval "return 1" 0} {replicaof no one}} {
                assert_error "ERR unknown command*" {$c {*}$command}
            }
            assert_equal PONG [$c ping]
            assert_equal sentinel [dict get [$c hello] mode]
            assert {![dict exists [$c hello] role]}
            set titles {}
            foreach line [split [$c info everything] \r\n] {
                if {[string match "# *" $line]} {lappend titles [string range $line 2 end]}
            }
            assert_equal {Server Clients Stats CPU Sentinel} $titles
            assert_match "*server_mode:sentinel*" [$c info server]
            # Exporters read them from a Sentinel as well.
            foreach name {sync_full sync_partial_ok sync_partial_err evicted_scripts migrate_cached_sockets slave_expires_tracked_keys
                active_defrag_hits active_defrag_key_misses total_active_defrag_time current_active_defrag_time} {
                assert_match "*\r\n$name:0\r\n*" [$c info stats]
            }
            assert_equal {} [$c info memory]
        }
        set text [read_bytes $log]
        assert_match "*:X * \\* Running mode=sentinel, port=*" $text
        foreach absent {"Server initialized" "Ready to accept" "DB loaded"} {assert {[string first $absent $text] < 0}}
        assert_match "*User requested shutdown*Sentinel is now ready to exit, bye bye..." [string trim $text]
    }

    test {a Sentinel has users with roles, from its file, too} {
        with_sentinel {} {
            assert_equal {reader} [$c acl roles]
            assert_equal reader [dict get [$c acl getuser watcher] roles]
            assert_equal OK [$c acl setrole reader +info]
            assert_equal OK [$c acl dryrun watcher info]
            assert_equal OK [$c acl dryrun watcher ping]
            assert_match "*has no permissions*" [$c acl dryrun watcher sentinel masters]
            assert_error "ERR Role 'reader' is assigned*" {$c acl delrole reader}
            assert_equal OK [$c acl setrole writer +sentinel]
            assert_equal 1 [$c acl delrole writer]
            assert_equal {} [$c acl getrole writer]
            assert_equal 64 [string length [$c acl digest]]
            assert_equal OK [$c sentinel flushconfig]
        } "user watcher on nopass resetchannels -@all role=reader\nrole reader resetchannels -@all +ping\n"
        assert_match "*role reader resetchannels -@all +ping +info*" [read_bytes [srv dir]/sentinel.conf]
        assert_match "*user watcher on nopass resetchannels -@all role=reader*" [read_bytes [srv dir]/sentinel.conf]
    }

    test {directives of features that the mode has not are accepted} {
        with_sentinel {--save {1 1} --appendonly yes --cluster-enabled yes --replicaof {127.0.0.1 1}} {
            assert_match "*server_mode:sentinel*" [$c info server]
        }
        assert_equal {} [glob -nocomplain [srv dir]/appendonlydir]
    }
}
