# The configuration file of a node, nodes.conf: its lock, its copy, what is done when it cannot be written or read.

proc conf_path {{suffix {}}} {return [srv dir]/nodes.conf$suffix}

# Starts the server of the block without waiting, and returns what it says until it ends.
proc start_and_end {args} {
    set before [file size [srv stdout]]
    catch {exec timeout 20 $::binary [srv config] {*}$args </dev/null 2>@1} said options
    return [list [lindex [dict get $options -errorcode] 2] $said[string range [file_text [srv stdout]] $before end]]
}

# After the end of the server of the block: how it ended.
proc reap_server {} {
    upvar #0 [lindex $::servers 0] server
    catch {$server(client) -close}
    set server(client) {}
    return [server_reap [lindex $::servers 0]]
}

# A text with the checksum of the file removed from its last line, as an editor or Valkey leave it.
# A folder in place of a file, so that it cannot be written. The server may write it between the two steps.
proc block_file {path} {
    wait_for_condition 100 10 {![catch {file delete $path; file mkdir $path}]} else {fail "$path stays a file"}
}

proc unsealed {text} {return [regsub { crc64 [0-9a-f]{16}\n$} $text \n]}

start_server {tags {cluster needs:config} overrides {cluster-enabled yes}} {
    test {a second server with the same configuration file is refused, also after the file was renamed over} {
        r cluster addslots 1
        wait_for_condition 50 20 {[string match "* connected 1\n*" [file_text [conf_path]]]}
        lassign [start_and_end --port [free_port]] code said
        assert_equal 1 $code
        assert_match "*# Sorry, the cluster configuration file nodes.conf is already used by a different Cluster node. Please make sure that different nodes use different cluster configuration files.*" $said
        assert_equal PONG [r ping]
    }

    test {the file names the links as they are, and ends with a checksum} {
        r cluster saveconfig
        set text [file_text [conf_path]]
        assert_match "[r cluster myid] *@* myself,master - 0 0 0 connected 1*\nvars currentEpoch 0 lastVoteEpoch 0 crc64 ????????????????\n" $text
        assert_equal $text [file_text [conf_path .bak]]
    }
}

start_server {tags {cluster needs:config} overrides {cluster-enabled yes snapshot-mode fork save {""}} crash ok} {
    test {a server that was killed while a child saved starts again: the child ends with it, and nobody keeps the lock} {
        r cluster addslots [r cluster keyslot a]
        r config set cluster-require-full-coverage no
        wait_for_condition 300 20 {[string match *cluster_state:ok* [r cluster info]]}
        r set a 1
        r config set rdb-key-save-delay 30000000
        r bgsave
        assert_equal 1 [info_field rdb_bgsave_in_progress]
        regexp {Background saving started by pid ([0-9]+)} [server_log] all child
        send_signal KILL [srv pid]
        wait_process_end [srv pid] 5000
        reap_server
        wait_process_end $child 5000
        continue_server
        assert_equal PONG [r ping]
    }
}

start_server {tags {cluster needs:config} overrides {cluster-enabled yes cluster-config-save-behavior best-effort} crash ok} {
    test {best-effort: the node goes on without its file, and says so once in a while} {
        block_file [conf_path]
        assert_error "ERR error saving the cluster node config: Is a directory" {r cluster saveconfig}
        foreach slot {1 2 3} {assert_equal OK [r cluster addslots $slot]}
        set lines [split [server_log] \n]
        assert_range [llength [lsearch -all $lines "*# Could not rename tmp cluster config file: Is a directory"]] 4 6
        assert_equal 1 [llength [lsearch -all $lines "*# Cluster config updated even though writing the cluster config file to disk failed."]]
        assert_equal {} [glob -nocomplain [conf_path .*.tmp]]
        # What could not be written is written as soon as it can.
        file delete [conf_path]
        r cluster addslots 4
        assert_match "* connected 1-4\n*" [file_text [conf_path]]
        assert_equal [file_text [conf_path]] [file_text [conf_path .bak]]
    }

    test {the copy alone is not missed} {
        block_file [conf_path .bak]
        foreach slot {5 6} {assert_equal OK [r cluster addslots $slot]}
        assert_equal 1 [llength [lsearch -all [split [server_log] \n] "*# The copy of the cluster configuration file could not be written to nodes.conf.bak: Is a directory"]]
        assert_match "* connected 1-6\n*" [file_text [conf_path]]
        file delete [conf_path .bak]
    }

    test {sync: a node that cannot write its file ends} {
        r config set cluster-config-save-behavior sync
        block_file [conf_path]
        assert_error "ERR error saving the cluster node config: Is a directory" {r cluster saveconfig}
        assert_equal PONG [r ping]
        assert {[catch {r cluster addslots 7}]}
        wait_process_end [srv pid] 5000
        assert_equal "exit code 1" [reap_server]
        assert_match "*# Could not rename tmp cluster config file: Is a directory\n*# Fatal: can't update cluster config file." [string trim [server_log]]
        file delete [conf_path]
        continue_server
    }
}

start_server {tags {cluster needs:config} overrides {cluster-enabled yes}} {
    test {a node says that it saves its file before it exits} {
        r cluster addslots 1 2 3
        set id [r cluster myid]
        stop_server
        assert_match "*\n* \\* Saving the cluster configuration file before exiting.\n*" [server_log]
        set ::intact [file_text [conf_path]]
        assert_match "$id * connected 1-3\n*" $::intact
        continue_server
    }

    # Every offset and every kind of damage: tests/c/bus/test_file_choice.c.
    test {a file that is cut or damaged is replaced by its copy, and kept} {
        set id [r cluster myid]
        foreach {what damaged words} [list \
            cut [string range $::intact 0 [expr {[string length $::intact] / 2}]] "has no complete last line" \
            byte [string replace $::intact 5 5 x] "does not match its checksum in one byte" \
            invalid [string map {master king} $::intact] "does not match its checksum" \
            empty {} "is empty"] {
            stop_server
            set before [string length [server_log]]
            write_bytes [conf_path] $damaged
            continue_server
            assert_equal $id [r cluster myid]
            assert_match "* connected 1-3\n" [r cluster nodes]
            set said [string range [server_log] $before end]
            assert_match "*# Cluster configuration file nodes.conf $words: using its copy nodes.conf.bak.\n*" $said
            assert_match "*Node configuration loaded, I'm $id\n*" $said
            if {$damaged ne ""} {assert_equal $damaged [file_text [conf_path .old]]}
            assert_match "$id * connected 1-3\nvars currentEpoch 0 *" [file_text [conf_path]]
        }
    }

    test {without an intact copy a damaged file is an error that names what is wrong} {
        set id [r cluster myid]
        foreach {damaged words} [list \
            [string map {master king} $::intact] "*(line 1)." \
            [string map {{ 1-3} { 1-4}} $::intact] "it does not match its checksum in one byte (line 1), and there is no intact copy.*remove the word crc64*"] {
            stop_server
            write_bytes [conf_path] $damaged
            write_bytes [conf_path .bak] $damaged
            lassign [start_and_end] code said
            assert_equal 1 $code
            assert_match "*# Unrecoverable error: corrupted cluster config file \"nodes.conf\": $words*" $said
            assert_equal $damaged [file_text [conf_path]]
            write_bytes [conf_path] $::intact
            continue_server
            assert_equal $id [r cluster myid]
        }
    }

    test {a file that a script has edited is used as it is} {
        stop_server
        set before [string length [server_log]]
        write_bytes [conf_path] [string map {{ 1-3} { 1-33}} $::intact]
        continue_server
        assert_match "* connected 1-33\n" [r cluster nodes]
        assert_match "*# Cluster configuration file nodes.conf does not match its checksum: it is used as it is.\n*" [string range [server_log] $before end]
        wait_for_condition 50 20 {[file_text [conf_path]] eq [file_text [conf_path .bak]]}
        assert_match "* connected 1-33\n*" [file_text [conf_path]]
    }

    test {a file without a checksum, of a person or of Valkey, is used as it is} {
        stop_server
        write_bytes [conf_path] [string map {{ connected 1-3} { connected 1-4}} [unsealed $::intact]]
        continue_server
        assert_match "* connected 1-4\n" [r cluster nodes]
        wait_for_condition 50 20 {[file_text [conf_path]] eq [file_text [conf_path .bak]]}
        stop_server
        write_bytes [conf_path] [string map {master king} [unsealed $::intact]]
        lassign [start_and_end] code said
        assert_match "*corrupted cluster config file \"nodes.conf\": *king*(line 1)*" $said
        write_bytes [conf_path] [lindex [split $::intact \n] 0]\n
        file delete [conf_path .bak]
        set before [string length [server_log]]
        continue_server
        assert_match "* connected 1-3\n" [r cluster nodes]
        assert_match "*# Cluster configuration file nodes.conf has no complete last line: it is used as it is.\n*" [string range [server_log] $before end]
    }

    test {without the file the node is a new one, and its old copy is kept} {
        set id [r cluster myid]
        stop_server
        set copy [file_text [conf_path .bak]]
        set before [string length [server_log]]
        file delete [conf_path]
        continue_server
        assert_not_equal $id [r cluster myid]
        assert_match "*The cluster configuration file nodes.conf is missing, so this node is a new one.\n*No cluster configuration found*" [string range [server_log] $before end]
        assert_equal $copy [file_text [conf_path .old]]
        assert_match "[r cluster myid] *" [file_text [conf_path .bak]]
    }

    test {what the bus needs is checked at the start} {
        stop_server
        lassign [start_and_end --port 60000] code said
        assert_equal 1 $code
        assert_match "*# Valkey port number too high. Cluster communication port is 10,000 port numbers higher than your Valkey port. Your Valkey port number must be 55535 or less.*" $said
        lassign [start_and_end --bind {}] code said
        assert_equal 1 $code
        assert_match "*# No bind address is configured, but it is required for the Cluster bus.*" $said
        lassign [start_and_end --cluster-config-file none/nodes.conf] code said
        assert_equal 1 $code
        assert_match "*# Can't open none/nodes.conf.lock in order to acquire a lock: No such file or directory*" $said
        continue_server
    }
}
