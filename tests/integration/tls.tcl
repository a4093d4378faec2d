# SPDX-License-Identifier: BSD-3-Clause
#
# TLS: handshakes and their errors, certificates as users, directives, reload, pending data.

set certs [file join $::job_dir certs]
file mkdir $certs
exec $::tests_dir/support/make_certs.sh $certs

# Options of a client with this certificate ("": none).
proc client_options {certs name} {
    set options [list -cafile $certs/ca.crt]
    if {$name ne ""} {lappend options -certfile $certs/$name.crt -keyfile $certs/$name.key}
    return $options
}

# A connection of the test with this certificate.
proc connect_as {name {resp 2}} {
    upvar 1 certs certs
    set client [respConnect [srv host] $::tls_port $resp [client_options $certs $name]]
    lappend ::test_clients $client
    return $client
}

# True if a client with this certificate is served.
proc is_served {name} {
    upvar 1 certs certs
    return [expr {![catch {connect_as $name} client] && ![catch {$client ping} reply] && $reply eq "PONG"}]
}

proc log_has {pattern} {
    wait_for_condition 200 25 {[string match "*$pattern*" [server_log]]} else {fail "the log has no \"$pattern\""}
}

proc serial {role} {
    regexp "tls_${role}_cert_serial:(\\S+)" [r info tls] -> value
    return $value
}

proc copy_pair {certs from to} {
    foreach type {crt key} {file copy -force $certs/$from.$type $certs/$to.$type}
}

# The start must fail with this line in the log.
proc start_fails {certs pattern args} {
    set config $::job_dir/failing.conf
    set f [open $config w]
    puts $f "port 0\ntls-port [free_port]\ndir $::job_dir\nsave \"\""
    foreach {name value} $args {puts $f "$name [expr {$value eq "" ? {""} : $value}]"}
    close $f
    set status [catch {exec $::binary $config 2>@1} output options]
    assert_equal {CHILDSTATUS 1} [lreplace [dict get $options -errorcode] 1 1]
    assert_match "*$pattern*" $output
}

# How often the text is in the memory of the server.
proc times_in_memory {text} {
    set count 0
    set maps [open /proc/[srv pid]/maps]
    set memory [open /proc/[srv pid]/mem rb]
    while {[gets $maps line] >= 0} {
        if {![regexp {^([0-9a-f]+)-([0-9a-f]+) rw-p} $line -> from to] || [string match "*\\\[v*" $line]} continue
        if {[expr "0x$to - 0x$from"] > 64 * 1024 * 1024} continue ;# reserved, for slabs
        seek $memory [expr "0x$from"]
        set bytes [read $memory [expr "0x$to - 0x$from"]]
        for {set at 0} {[set at [string first $text $bytes $at]] >= 0} {incr at} {incr count}
    }
    close $maps
    close $memory
    return $count
}

set ::tls_port [free_port]
set settings [list tls-port $::tls_port tls-cert-file $certs/server.crt tls-key-file $certs/server.key \
    tls-ca-cert-file $certs/ca.crt loglevel debug enable-debug-command yes]

start_server [list tags {tls tls:skip} overrides $settings] {
    test {TLS clients and plain clients are served on their ports} {
        set c [connect_as client]
        assert_equal OK [$c set k v]
        assert_equal v [r get k]
        assert_match "*listener0:name=tcp,*listener2:name=tls,*port=$::tls_port*" [r info server]
        assert_match "*Ready to accept connections tcp*Ready to accept connections tls*" [server_log]
        assert_match "*# TLS*" [r info all]
        assert {[string first "# TLS" [r info]] == -1}
    }

    test {a client needs a certificate of the CA that has not expired} {
        foreach name {"" stranger expired} {assert {![is_served $name]} $name}
        log_has "Error accepting a client connection: *peer did not return a certificate* (addr=*"
        log_has "Error accepting a client connection: *certificate verify failed* (addr=*"
        assert {[is_served client]}
        r config set tls-auth-clients optional
        assert {[is_served ""]}
        assert {![is_served stranger]}
        r config set tls-auth-clients no
        assert {[is_served stranger]}
        r config set tls-auth-clients yes
        assert_error "*must be one of the following: no, yes, optional*" {r config set tls-auth-clients maybe}
    }

    test {only completed handshakes count as connections} {
        set before [info_field total_connections_received]
        assert {![is_served ""]}
        assert {[is_served client]}
        assert_equal [expr {$before + 1}] [info_field total_connections_received]
    }

    test {plain text and garbage on the TLS port close the connection} {
        foreach bytes {"PING\r\nPING\r\n" "GET / HTTP/1.1\r\nHost: x\r\n\r\n" "\x16\x03\x01\x00\x05hello world"} {
            set s [raw_connect [srv host] $::tls_port]
            raw_send $s $bytes
            raw_rest $s
            raw_close $s
        }
        log_has "wrong version number"
        log_has "http request"
        assert {[is_served client]}
    }

    test {a pipeline in one write and commands cut into records are answered completely} {
        set c [connect_as client]
        $c -write [string repeat "PING\r\n" 3000]
        for {set i 0} {$i < 3000} {incr i} {assert_equal PONG [$c -read]}
        foreach byte [split "*2\r\n\$4\r\nECHO\r\n\$3\r\nabc\r\n" {}] {$c -write $byte}
        assert_equal abc [$c -read]
    }

    test {large values go both ways, also when the socket accepts nothing for a while} {
        set c [connect_as client]
        set big [string repeat 0123456789abcdef 400000]
        assert_equal OK [$c set big $big]
        assert_equal $big [$c get big]
        r debug force-tls-write-error 1
        $c -send get big
        $c -send ping
        wait_for_condition 200 25 {[regexp {omem=[1-9]} [r client list]]} else {fail "the reply was written"}
        r debug force-tls-write-error 0
        assert_equal $big [$c -read]
        assert_equal PONG [$c -read]
        assert_error "ERR Value must be 0 or 1" {r debug force-tls-write-error 2}
        r del big
    }

    test {certificate and key change together or not at all} {
        set before [serial server]
        assert_error "*Unable to update TLS configuration. Check server logs.*" {r config set tls-cert-file $certs/second.crt}
        assert_error "*Unable to update TLS*" {r config set tls-cert-file $certs/missing.crt tls-key-file $certs/second.key}
        log_has "Failed to load certificate: $certs/missing.crt: "
        log_has "Failed to load private key: $certs/server.key: *key values mismatch (the key does not belong to the certificate $certs/second.crt)"
        assert_equal $certs/server.crt [lindex [r config get tls-cert-file] 1]
        assert_equal $before [serial server]
        set old [connect_as client]
        r config set tls-key-file $certs/second.key tls-cert-file $certs/second.crt
        assert {[serial server] ne $before}
        assert_equal PONG [$old ping]
        assert {[is_served client]}
        r config set tls-cert-file $certs/server.crt tls-key-file $certs/pass.key tls-key-file-pass secret
        assert {[is_served client]}
        assert_error "*Unable to update TLS*" {r config set tls-key-file-pass wrong}
        r config set tls-key-file $certs/server.key tls-key-file-pass ""
    }

    test {invalid protocols and ciphers are refused} {
        assert_error "*Unable to update TLS*" {r config set tls-protocols TLSv9}
        log_has "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'."
        assert_error "*Unable to update TLS*" {r config set tls-ciphers bogus}
        log_has "Failed to configure ciphers: bogus"
        assert_error "*Unable to update TLS*" {r config set tls-ciphersuites bogus}
        r config set tls-protocols "tlsv1.2  TLSv1.3"
        assert {[is_served client]}
        r config set tls-protocols TLSv1.2 tls-ciphers AES128-SHA256
        assert {[is_served client]}
        r config set tls-protocols "" tls-ciphers DEFAULT
    }

    test {tls-auth-clients cannot be switched on without a CA} {
        r config set tls-auth-clients no
        r config set tls-ca-cert-file ""
        assert_error "*Unable to update TLS*" {r config set tls-auth-clients yes}
        assert_equal no [lindex [r config get tls-auth-clients] 1]
        assert {[is_served ""]}
        r config set tls-ca-cert-file $certs/ca.crt
        r config set tls-auth-clients yes
    }

    test {tls-port can be closed and opened; connections stay} {
        set c [connect_as client]
        r config set tls-port 0
        assert {![is_served client]}
        assert_equal PONG [$c ping]
        assert_equal none [serial server]
        r config set tls-port $::tls_port
        assert {[is_served client]}
        assert_error "*Unable to listen on this port. Check server logs.*" {r config set tls-port [srv port]}
        assert {[is_served client]}
    }

    test {the common name or a URI of the certificate names the user} {
        r acl setuser first on nopass +@all ~*
        r acl setuser urn:user:first on nopass +@all ~*
        r config set tls-auth-clients-user CN
        assert_equal first [[connect_as client] acl whoami]
        r config set tls-auth-clients-user URI
        assert_equal urn:user:first [[connect_as client] acl whoami]
        r acl setuser urn:user:first off
        r acl log reset
        set c [connect_as client]
        assert_equal default [$c acl whoami]
        set entry [lindex [r acl log] 0]
        assert_match "*tls-cert*urn:user:first*" $entry
        assert_equal 1 [info_field acl_access_denied_tls_cert]
        r config set tls-auth-clients-user off
        r acl deluser first urn:user:first
        assert_error "*must be one of the following: CN, URI, off*" {r config set tls-auth-clients-user x}
    }

    test {changed files are reloaded in the background, and a broken one is reported once} {
        copy_pair $certs server live
        r config set tls-cert-file $certs/live.crt tls-key-file $certs/live.key
        set before [serial server]
        r config set tls-auto-reload-interval 1
        log_has "TLS reload skipped: materials unchanged"
        set old [connect_as client]
        copy_pair $certs second live
        wait_for_condition 200 50 {[serial server] ne $before} else {fail "not reloaded"}
        log_has "TLS materials reloaded successfully"
        assert_equal PONG [$old ping]
        assert {[is_served client]}
        set now [serial server]
        file delete $certs/live.crt
        log_has "Background TLS reload failed"
        assert_equal $now [serial server]
        assert {[is_served client]}
        r config set tls-auto-reload-interval 0 tls-cert-file $certs/server.crt tls-key-file $certs/server.key
    }

    # The type of the key with which the server signs, for a client that verifies only these signatures.
    proc signed_with {signatures} {
        upvar 1 certs certs
        catch {exec timeout 20 openssl s_client -connect 127.0.0.1:$::tls_port -CAfile $certs/ca.crt -cert $certs/client.crt \
            -key $certs/client.key -sigalgs $signatures << "" 2>@1} said
        if {![regexp {Peer signature type: (\S+)} $said -> type]} {return ""}
        return $type
    }

    test {tls-alt-cert-file: clients get the certificate whose signatures they verify} {
        assert_equal "" [signed_with ECDSA+SHA256]
        assert_equal {none 0} [list [serial server_alt] [info_field tls_server_alt_cert_expires_in_seconds]]
        set first [serial server]
        r config set tls-alt-cert-file $certs/curve.crt tls-alt-key-file $certs/curve.key
        assert_equal ECDSA [signed_with ECDSA+SHA256]
        assert_equal RSA-PSS [signed_with RSA-PSS+SHA256]
        assert_equal $first [serial server]
        assert {[serial server_alt] ni [list none $first]}
        assert {[info_field tls_server_alt_cert_expires_in_seconds] > 3600}
        assert {[is_served client]}
        r config set tls-alt-cert-file "" tls-alt-key-file ""
        assert_equal "" [signed_with ECDSA+SHA256]
        assert_equal none [serial server_alt]
    }

    test {tls-alt-cert-file: a pair that is not complete, not a pair or of the same type is refused} {
        foreach {cert key words} [list curve "" "tls-alt-cert-file needs tls-alt-key-file" "" curve "tls-alt-key-file needs tls-alt-cert-file" \
            second second "has a key of the same type (RSA) as tls-cert-file" curve server "the key does not belong to the certificate $certs/curve.crt" \
            curve second "the key does not belong to the certificate" none curve "Failed to load certificate"] {
            set files {}
            foreach {name type} [list $cert crt $key key] {lappend files [expr {$name eq "" ? "" : "$certs/$name.$type"}]}
            assert_error "*Unable to update TLS configuration. Check server logs." {
                r config set tls-alt-cert-file [lindex $files 0] tls-alt-key-file [lindex $files 1]
            }
            log_has $words
            assert_equal {none RSA-PSS} [list [serial server_alt] [signed_with RSA-PSS+SHA256]]
        }
    }

    test {tls-auto-reload-interval watches the second pair, too} {
        copy_pair $certs curve alive
        r config set tls-alt-cert-file $certs/alive.crt tls-alt-key-file $certs/alive.key tls-auto-reload-interval 1
        set before [serial server_alt]
        exec openssl x509 -req -in $certs/curve.csr -CA $certs/ca.crt -CAkey $certs/ca.key -set_serial 4242 -days 365 -out $certs/alive.crt 2>@1
        wait_for_condition 200 50 {[serial server_alt] ne $before} else {fail "not reloaded"}
        assert_equal ECDSA [signed_with ECDSA+SHA256]
        r config set tls-auto-reload-interval 0 tls-alt-cert-file "" tls-alt-key-file ""
    }

    test {a reload leaves no copy of a passphrase in memory} {
        set before [string length [server_log]]
        # It is found as it was sent, too: in another text it is turned round.
        set secret [string reverse "ecnetnes-terces-gnol-rehtar-a"]
        r config set tls-client-key-file-pass $secret tls-auto-reload-interval 1
        wait_for_condition 200 50 {[string match "*materials unchanged*" [string range [server_log] $before end]]}
        r config set tls-auto-reload-interval 0
        for {set i 0} {$i < 50} {incr i} {r echo [string repeat x 20000]} ;# over what the request has left
        set once [times_in_memory $secret]
        assert {$once > 0}
        assert {$once < 5}
        set before [string length [server_log]]
        r config set tls-auto-reload-interval 1
        wait_for_condition 400 50 {[regexp -all "materials unchanged" [string range [server_log] $before end]] >= 2}
        r config set tls-auto-reload-interval 0
        assert {[times_in_memory $secret] <= 2} "[times_in_memory $secret] copies, $once before"
        r config set tls-client-key-file-pass ""
    }

    test {clients that stall, cut or abort their handshakes do not disturb others} {
        set stalled {}
        for {set i 0} {$i < 50} {incr i} {lappend stalled [raw_connect [srv host] $::tls_port]}
        foreach s $stalled {raw_send $s "\x16\x03"}
        assert {[is_served client]}
        foreach s $stalled {raw_close $s}
        assert {[is_served client]}
    }

    test {reloads under load lose no reply} {
        set c [connect_as client]
        for {set i 0} {$i < [scaled 200]} {incr i} {
            r config set tls-cert-file $certs/server.crt
            assert_equal $i [$c echo $i]
            if {$i % 20 == 0} {assert {[is_served client]}}
        }
    }

    test {the metrics port speaks TLS with metrics-tls} {
        set port [free_port]
        r config set metrics-port $port metrics-tls yes
        set channel [resp::open [srv host] $port [client_options $certs client]]
        chan configure $channel -translation binary -buffering none
        puts -nonewline $channel "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        flush $channel
        set page [read $channel]
        close $channel
        assert_match "HTTP/1.1 200 OK*redis_tls_server_cert_expires_in_seconds *redis_tls_ca_cert_expires_in_seconds *" $page
        assert_equal -1 [string first redis_tls_client_cert_expires_in_seconds $page]; # there is none
        assert {[catch {resp::open [srv host] $port [client_options $certs stranger]} c] || [catch {puts $c "GET / HTTP/1.1\n"; flush $c; read $c} text] || $text eq ""}
        r config set metrics-port 0 metrics-tls no
    }

    test {MIGRATE uses TLS with tls-cluster, and verifies the target} {
        r set k v
        assert_error "IOERR *" {r migrate [srv host] $::tls_port k 9 1000}
        r config set tls-cluster yes
        assert_equal OK [r migrate [srv host] $::tls_port k 9 1000]
        r select 9
        assert_equal v [r get k]
        r select 0
        r set k v
        r config set tls-ca-cert-file $certs/other-ca.crt
        assert_error "IOERR *" {r migrate localhost $::tls_port k 8 1000}
        r config set tls-ca-cert-file $certs/ca.crt tls-cluster no
        assert_equal v [r get k]
    }

    test {with tls-check-hostname the certificate must be issued for the target's host} {
        set port [free_port] ;# MIGRATE keeps its connections to the other port
        r config set tls-port $port tls-cluster yes tls-check-hostname yes
        r config set tls-cert-file $certs/elsewhere.crt tls-key-file $certs/elsewhere.key
        r set k v
        foreach host {localhost 127.0.0.1} {assert_error "IOERR *" {r migrate $host $port k 9 1000 replace}}
        r config set tls-cert-file $certs/server.crt tls-key-file $certs/server.key
        foreach host {localhost 127.0.0.1} {
            r set k v
            assert_equal OK [r migrate $host $port k 9 1000 replace]
        }
        r config set tls-port $::tls_port tls-cluster no tls-check-hostname no
    }

    test {a replica follows over TLS with tls-replication, if the primary's certificate is good} {
        r set k v
        set primary_port $::tls_port
        set settings [list tls-port [free_port] tls-cert-file $certs/client.crt tls-key-file $certs/client.key \
            tls-ca-cert-file $certs/other-ca.crt tls-replication yes save {}]
        start_server [list tags {tls tls:skip} overrides $settings] {
            r replicaof localhost $primary_port
            log_has "certificate verify failed"
            assert_equal down [info_field master_link_status]
            r config set tls-ca-cert-file $certs/ca.crt tls-check-hostname yes
            wait_for_condition 400 25 {[info_field master_link_status] eq "up"} else {fail "the link is down"}
            assert_equal v [r get k]
            r -1 set k [string repeat x 1000000]
            wait_for_condition 400 25 {[r strlen k] == 1000000} else {fail "the write does not arrive"}
        }
    }

    test {without session caching clients connect again} {
        r config set tls-session-caching no
        assert {[is_served client]}
        assert {[is_served client]}
        r config set tls-session-caching yes
    }
}

tags {tls tls:skip} {
    test {the start fails with a clear reason} {
        set pair [list tls-cert-file $certs/server.crt tls-key-file $certs/server.key]
        start_fails $certs "No tls-cert-file configured!*Failed to configure TLS. Check logs for more info."
        start_fails $certs "No tls-key-file configured!" tls-cert-file $certs/server.crt
        start_fails $certs "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, tls-replication or tls-auth-clients are enabled!" {*}$pair
        start_fails $certs "Failed to load private key: $certs/pass.key: *interrupted or cancelled (the key has a pass phrase, and none is set)" tls-cert-file $certs/server.crt tls-key-file $certs/pass.key tls-ca-cert-file $certs/ca.crt
        start_fails $certs "Failed to configure CA certificate(s) file/directory: *" {*}$pair tls-ca-cert-file $certs/none
        start_fails $certs "$certs/ca.crt: failed to read DH params." {*}$pair tls-ca-cert-file $certs/ca.crt tls-dh-params-file $certs/ca.crt
    }
}

set certs [file join $::job_dir new-certs]
file mkdir $certs
exec $::tests_dir/support/make_certs.sh $certs
set ::tls_port [free_port]
start_server [list tags {tls tls:skip} overrides [list tls-port $::tls_port tls-cert-file $certs/server.crt \
    tls-key-file $certs/server.key tls-ca-cert-file $certs/ca.crt io-threads 3 io-threads-always-active yes]] {
    test {I/O threads read all that has arrived, though an event tells of it only once} {
        set clients {}
        for {set i 0} {$i < 4} {incr i} {lappend clients [connect_as client]}
        set value [string repeat x 20000]
        for {set round 0} {$round < [scaled 30]} {incr round} {
            foreach c $clients {
                for {set i 0} {$i < 20} {incr i} {
                    $c -send set key$i $value
                    $c -send strlen key$i
                }
            }
            foreach c $clients {
                for {set i 0} {$i < 20} {incr i} {assert_equal {OK 20000} [list [$c -read] [$c -read]]}
            }
        }
        foreach c $clients {
            for {set i 0} {$i < 50} {incr i} {$c -send get key1}
            for {set i 0} {$i < 50} {incr i} {assert_equal $value [$c -read]}
        }
        assert {[info_field io_threaded_reads_processed] > 0}
    }
}
