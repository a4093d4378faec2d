# SPDX-License-Identifier: BSD-3-Clause
#
# Two and three servers of this project: all forms of synchronisation with and without TLS, under load, chains, promotion,
# restarts, a link that is lost again and again.

source $::tests_dir/support/all_types.tcl
source $::tests_dir/support/replication.tcl

set certs [file join $::job_dir certs]
file mkdir $certs
exec $::tests_dir/support/make_certs.sh $certs

# Writes to the server at this level through a client of its own, some hundred commands without waiting.
proc write_some {level from} {
    for {set i $from} {$i < $from + 200} {incr i} {
        r $level set key:[expr {$i % 97}] [string repeat $i 10]
        r $level rpush list:[expr {$i % 7}] $i
        r $level hset hash:[expr {$i % 11}] f$i $i
        if {$i % 20 == 0} {
            r $level multi
            r $level select [expr {$i / 20 % 3}]
            r $level incr counter
            r $level exec
        }
    }
}

foreach tls {no yes} {
    set port [free_port]
    set options [list repl-diskless-sync-delay 0 enable-debug-command yes]
    if {$tls} {
        lappend options tls-replication yes tls-cert-file $certs/server.crt tls-key-file $certs/server.key \
            tls-ca-cert-file $certs/ca.crt
    }
    start_server [list tags {repl tls:skip} overrides [concat $options [expr {$tls ? [list tls-port $port] : ""}]]] {
        if {!$tls} {set port [srv port]}
        set replica_options [concat $options [expr {$tls ? [list tls-port [free_port]] : ""}]]
        start_server [list tags {repl tls:skip} overrides $replica_options] {
            foreach {form settings} {
                disk {repl-diskless-sync no repl-diskless-load disabled}
                diskless {repl-diskless-sync yes repl-diskless-load disabled}
                direct {repl-diskless-sync yes repl-diskless-load flush-before-load}
                beside {repl-diskless-sync yes repl-diskless-load swapdb}
                {dual channel} {repl-diskless-sync yes repl-diskless-load disabled dual-channel-replication-enabled yes}
                {beside, compressed} {repl-diskless-sync yes repl-diskless-load swapdb repl-compression zstd}
                {dual channel, compressed} {repl-diskless-sync yes repl-diskless-load disabled
                    dual-channel-replication-enabled yes repl-compression lz4}
            } {
                if {![regexp {repl-compression (\S+)} $settings -> codec]} {set codec no}
                if {$codec ne "no" && $codec ni [split [info_field compression_codecs] ,]} continue
                test "A full synchronisation under load, and partial ones after losses ($form, TLS $tls)" {
                    r replicaof no one
                    foreach level {-0 -1} {
                        r $level config set dual-channel-replication-enabled no repl-compression no
                        r $level config set {*}$settings
                        r $level flushall
                    }
                    r set foreign 1
                    write_some -1 0
                    r replicaof 127.0.0.1 $port
                    write_some -1 200
                    link_is up
                    write_some -1 400
                    same_data -1 -0
                    r -1 config resetstat
                    for {set i 0} {$i < 5} {incr i} {
                        r -1 client kill type replica
                        write_some -1 [expr {600 + 200 * $i}]
                        link_is up
                    }
                    same_data -1 -0
                    assert_match "*sync_full:0*" [r -1 info stats]
                }
            }
        }
    }
}

start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0}} {
    start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0}} {
        start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0 save {3600 1}}} {
            test {A chain: the last one follows the first, with its ids and offsets} {
                r -1 replicaof [srv -2 host] [srv -2 port]
                link_is up -1
                r replicaof [srv -1 host] [srv -1 port]
                link_is up
                write_some -2 0
                same_data -2 -1 -0
                regexp {master_replid:(\S+)} [r -2 info replication] -> id
                assert_match "*master_replid:$id*" [r info replication]
            }

            test {Promotion of the middle one: the last one continues with a partial resynchronisation} {
                r -1 replicaof no one
                link_is up
                write_some -1 0
                same_data -1 -0
                assert {![string match "*Full resync from primary*Full resync from primary*" [server_log]]}
                r -2 replicaof [srv -1 host] [srv -1 port]
                link_is up -2
                write_some -1 200
                same_data -1 -0 -2
                assert_match "*Successful partial resynchronization with primary*" [server_log -2]
            }
        }
    }
}

start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0}} {
    start_server [list tags {repl tls:skip} overrides [list save {3600 1} replicaof "127.0.0.1 [srv port]"]] {
        test {A restarted replica continues from its snapshot, and keeps expired keys for the primary} {
            r -1 debug set-active-expire 0
            write_some -1 0
            r -1 set short lived px 1
            link_is up
            same_data -1 -0
            r -1 config resetstat
            stop_server
            write_some -1 200
            continue_server
            link_is up
            same_data -1 -0
            assert_match "*sync_full:0*" [r -1 info stats]
        }
    }
}


start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0 save {}}} {
    start_server {tags {repl tls:skip} overrides {repl-diskless-sync-delay 0 save {} dual-channel-replication-enabled yes}} {
        test {A link that is lost again and again, at either end, loses neither data nor memory nor descriptors} {
            r replicaof [srv -1 host] [srv -1 port]
            link_is up
            proc descriptors {level} {llength [glob /proc/[srv $level pid]/fd/*]}
            proc memory {level} {
                regexp {used_memory:(\d+)} [r $level info memory] -> used
                return $used
            }
            write_some -1 0
            same_data -1 -0
            foreach level {-1 -0} {lappend before [descriptors $level] [memory $level]}
            for {set i 0} {$i < 60} {incr i} {
                r -1 set key:[expr {$i % 97}] [string repeat $i 100]
                if {$i % 3 == 0} {
                    r client kill type primary
                } else {
                    r -1 client kill type replica
                }
                # Every tenth time the whole dataset is needed.
                if {$i % 10 == 9} {r -1 debug change-repl-id}
                # Half of the losses are within the handshake or a transfer.
                if {$i % 2} {link_is up}
            }
            write_some -1 0
            link_is up
            same_data -1 -0
            foreach level {-1 -0} {open_before used_before} $before {
                wait_for_condition 200 25 {[descriptors $level] == $open_before} else {fail "[descriptors $level] descriptors"}
                assert_range [memory $level] 1 [expr {$used_before + 1000000}]
            }
        }
    }
}
