# The metrics port: read-only HTTP in the server's event loop, without authentication and without user data.

source $::tests_dir/support/metrics.tcl

# Values of a metrics text: a dict of "name{labels}".
proc samples {text} {
    set out {}
    foreach line [split $text \n] {
        if {$line eq "" || [string index $line 0] eq "#"} continue
        if {![regexp {^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^\}]*\})?) (\S+)$} $line all name value]} {fail "no sample: $line"}
        if {[dict exists $out $name]} {fail "twice: $name"}
        dict set out $name $value
    }
    return $out
}

start_server {tags {metrics tls:skip needs:config}} {
    test {metrics-port is off, and may be opened at run time} {
        assert_equal {metrics-port 0} [r config get metrics-port]
        open_metrics
        assert_equal 200 [lindex [http_get /livez] 0]
    }

    test {/livez and /readyz respond, other paths do not exist} {
        foreach path {/livez /readyz /livez?verbose=1} {
            lassign [http_get $path] code headers body
            assert_equal "200 {ok\n}" [list $code $body]
        }
        assert_equal 404 [lindex [http_get /nosuch] 0]
        assert_equal 404 [lindex [http_get /livez/] 0]
    }

    test {/metrics has Prometheus text under the names of redis_exporter} {
        r set k v
        r set k2 v EX 100
        r get k
        catch {r nosuch}
        lassign [http_get /metrics] code headers body
        assert_equal 200 $code
        assert_equal "text/plain; version=0.0.4; charset=utf-8" [dict get $headers content-type]
        set s [samples $body]
        foreach {name value} {
            redis_up 1 redis_connected_clients 1 redis_blocked_clients 0 {redis_db_keys{db="db0"}} 2
            {redis_db_keys_expiring{db="db0"}} 1 {redis_commands_total{cmd="get"}} 1 {redis_commands_total{cmd="set"}} 2
            redis_keyspace_hits_total 1 {redis_errors_total{err="ERR"}} 1 redis_config_maxclients 10000
            redis_loading_dump_file 0 {redis_commands_failed_calls_total{cmd="get"}} 0
        } {
            assert_equal $value [dict get $s $name] $name
        }
        foreach name {redis_memory_used_bytes redis_uptime_in_seconds redis_start_time_seconds
            {redis_commands_duration_seconds_total{cmd="get"}} redis_cpu_user_seconds_total
            {redis_latency_percentiles_usec{cmd="get",quantile="0.5"}} redis_connections_received_total} {
            assert {[string is double -strict [dict get $s $name]]} $name
        }
        assert_match "*redis_instance_info{role=\"master\",redis_version=\"7.2.4\",*} 1\n*" $body
        # Each metric has one TYPE line, after a HELP line.
        foreach name [lsort -unique [lmap n [dict keys $s] {regsub {\{.*} $n {}}]] {
            assert_equal 1 [regexp -all -line "^# TYPE $name (counter|gauge)\$" $body] $name
            assert_equal 1 [regexp -all "\n# HELP $name \[^\n\]+\\.\n# TYPE $name " \n$body] $name
        }
    }

    test {/metrics replies OpenMetrics if the client accepts it} {
        lassign [http_get /metrics "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"] code headers body
        assert_equal "application/openmetrics-text; version=1.0.0; charset=utf-8" [dict get $headers content-type]
        assert_match "*\n# EOF\n" $body
        assert_match "*\n# TYPE redis_commands counter\n*redis_commands_total\{*" $body
        assert_equal 0 [regexp -line {^# TYPE \S+_total counter$} $body]
        samples $body
    }

    test {pages cannot be embedded in frames of other sites} {
        foreach path {/ /metrics /nosuch} {
            set headers [lindex [http_get $path] 1]
            assert_equal "frame-ancestors 'none'" [dict get $headers content-security-policy] $path
        }
    }

    test {/status.json is what the status page shows} {
        r client setname "bob"
        r config set slowlog-log-slower-than 0
        r set slow "\"\\\x00\xff\n"
        r config set slowlog-log-slower-than 10000
        lassign [http_get /status.json] code headers body
        assert_equal "200 application/json" "$code [dict get $headers content-type]"
        set wanted {
            d["server"]["version"] 9.1.2 d["server"]["mode"] standalone d["clients"]["connected"] 1
            d["clients"]["list"][0]["name"] bob len(d["clients"]["list"]) 1 d["keyspace"][0]["keys"] 3
            d["keyspace"][0]["db"] 0 d["memory"]["max"] 0 d["clients"]["max"] 10000 d["ops"]["total_commands"]>3 True
            d["slowlog"][0]["micros"]>=0 True {d["slowlog"][0]["command"] == 'set slow "\\\x00\xff\n'} True
        }
        lappend wanted {d["server"]["pid"]} [srv pid] {d["server"]["port"]} [srv port]
        foreach {expression value} $wanted got [json $body [dict keys $wanted]] {
            assert_equal $value $got $expression
        }
    }

    test {/history.json has the past, also for those who did not ask before} {
        # The first sample has no rates.
        wait_for_condition 600 100 {[history_samples] >= 1}
        for {set i 0} {$i < 500} {incr i} {r set k v; r get k; r get nosuch}
        set ::samples_before [history_samples]
        wait_for_condition 600 100 {[history_samples] >= $::samples_before + 2}
        lassign [http_get /history.json] code headers body
        assert_equal "200 application/json" "$code [dict get $headers content-type]"
        set wanted {
            {len(set(map(len,[c for c in d.values() if isinstance(c,list)])))} 1
            {d["time_ms"]==sorted(d["time_ms"])} True
            {max(c or 0 for c in d["commands"])>=10} True {max(c or 0 for c in d["misses"])>=5} True
            {max(c or 0 for c in d["hits"])>=5} True {min(d["used_memory"])>100000} True {min(d["rss_memory"])>100000} True
            {max(c or 0 for c in d["input_bytes"])>1000} True {max(c or 0 for c in d["output_bytes"])>500} True
            {d["clients"][-1]} 1 {max(c or 0 for c in d["p50_us"])>0} True
            {all((a or 0)<=(b or 0) for a,b in zip(d["p50_us"],d["p99_us"]))} True {d["interval_seconds"]} 5
        }
        foreach {expression value} $wanted got [json $body [dict keys $wanted]] {
            assert_equal $value $got $expression
        }
    }

    test {/ is one page that loads nothing from elsewhere} {
        lassign [http_get /] code headers body
        assert_equal "200 {text/html; charset=utf-8}" [list $code [dict get $headers content-type]]
        assert_equal [file_text $::tests_dir/../src/metrics/page.html] $body
        assert_equal 0 [regexp {(src|href)="(https?:)?//} $body]
    }

    test {a connection serves several requests, in pieces and in a row} {
        set s [http_connect]
        foreach byte [split "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" {}] {raw_send $s $byte}
        assert_equal 200 [lindex [http_read $s] 0]
        raw_send $s "HEAD / HTTP/1.1\r\n\r\nGET /readyz HTTP/1.1\nHost: y\n\n\r\nGET /nosuch HTTP/1.0\r\n\r\n"
        lassign [http_read $s 0] code headers
        assert_equal 200 $code
        assert_equal [file size $::tests_dir/../src/metrics/page.html] [dict get $headers content-length]
        assert_equal 200 [lindex [http_read $s] 0]
        lassign [http_read $s] code headers
        assert_equal {404 close} [list $code [dict get $headers connection]]
        assert_equal "" [raw_rest $s]
        assert_equal 1 [info_field connected_clients] ;# HTTP connections are not clients
    }

    test {methods other than GET and HEAD are refused and the connection closed} {
        foreach {request code} {
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" 405
            "DELETE /metrics HTTP/1.1\r\n\r\n" 405
            "CONFIG SET HTTP/1.1\r\n\r\n" 400
            "PING\r\n\r\n" 400
            "*1\r\n\$4\r\nPING\r\n" 400
            "GET / HTTP/2.0\r\n\r\n" 400
            "GET http://x/ HTTP/1.1\r\n\r\n" 400
            "GET /\x01 HTTP/1.1\r\n\r\n" 400
            "GET / HTTP/1.1\r\nno header\r\n\r\n" 400
        } {
            set s [http_connect]
            raw_send $s [subst -nocommands -novariables $request]
            lassign [http_read $s] got headers
            assert_equal "$code close" "$got [dict get $headers connection]" $request
            if {$code == 405} {assert_equal "GET, HEAD" [dict get $headers allow]}
            raw_close $s
        }
        assert_equal PONG [r ping]
    }

    test {a request header of more than 4 KB is refused} {
        set s [http_connect]
        catch {raw_send $s "GET / HTTP/1.1\r\nx: [string repeat y 6000]"}
        assert_equal 431 [lindex [http_read $s] 0]
    }

    test {many slow connections: the oldest are closed, and others are served (slowloris)} {
        set before [info_field used_memory]
        set socks {}
        for {set i 0} {$i < 200} {incr i} {
            set s [http_connect]
            raw_send $s "GET /livez HTT"
            lappend socks $s
        }
        assert_equal 200 [lindex [http_get /livez] 0]
        assert {[info_field used_memory] - $before < 1000000}
        assert_equal "" [raw_rest [lindex $socks 0]]
        # A late request is still accepted.
        set last [lindex $socks end]
        raw_send $last "P/1.1\r\n\r\n"
        assert_equal 200 [lindex [http_read $last] 0]
    }

    test {a client that does not read its response does not delay others} {
        set s [http_connect]
        chan configure $s -blocking 0
        for {set i 0} {$i < 400} {incr i} {
            puts -nonewline $s [string repeat "GET / HTTP/1.1\r\n\r\n" 100]
            if {[catch {flush $s}]} break
        }
        assert_equal 200 [lindex [http_get /livez] 0]
        assert_equal PONG [r ping]
        # Closing must not wait for the peer.
        chan configure $s -blocking 0
        catch {raw_close $s}
    }

    test {metrics-port changes at run time; a taken port is refused and changes nothing} {
        set old $::http
        set s [socket -server {} -myaddr 127.0.0.1 0]
        set taken [lindex [chan configure $s -sockname] 2]
        assert_error "ERR CONFIG SET failed (possibly related to argument 'metrics-port') - Failed listening on metrics-port $taken*" {
            r config set metrics-port $taken
        }
        close $s
        assert_equal $old [lindex [r config get metrics-port] 1]
        assert_equal 200 [lindex [http_get /livez] 0]
        open_metrics
        assert_equal 200 [lindex [http_get /livez] 0]
        assert_error "*refused*" {raw_connect 127.0.0.1 $old}
        r config set metrics-port 0
        assert_error "*refused*" {raw_connect 127.0.0.1 $::http}
    }

    test {without metrics-port no history is kept} {
        open_metrics
        assert {[history_samples] <= 1}
        r config set metrics-port 0
    }

    test {the port follows bind} {
        open_metrics
        r config set bind "127.0.0.1 127.0.0.2"
        wait_for_condition 500 10 {![catch {raw_connect 127.0.0.2 $::http}]}
        assert_equal 200 [lindex [http_get /livez] 0]
        r config set bind 127.0.0.1
        wait_for_condition 500 10 {[catch {raw_close [raw_connect 127.0.0.2 $::http]}]}
        assert_equal 200 [lindex [http_get /livez] 0]
    }
}

start_server {tags {metrics tls:skip} overrides {requirepass sesame}} {
    test {with a password set, the metrics port shows no keys, arguments or client names} {
        open_metrics
        r client setname bobby
        r config set slowlog-log-slower-than 0
        r set the-key the-value
        r get the-key
        r config set slowlog-log-slower-than 10000
        set all ""
        foreach path {/ /metrics /status.json /history.json /livez /readyz} {append all [lindex [http_get $path] 2]}
        foreach text {bobby the-key the-value sesame} {
            assert_equal -1 [string first $text $all] $text
        }
        assert_match "*\"command\":\"get ...\"*" [lindex [http_get /status.json] 2]
        assert_match "*redis_db_keys{db=\"db0\"} 1\n*" [lindex [http_get /metrics] 2]
    }
}

# A non-loopback address of this machine, if it has one.
proc outer_address {} {
    if {[catch {exec hostname -I} text]} {return ""}
    foreach address $text {
        if {[regexp {^\d+\.\d+\.\d+\.\d+$} $address] && ![string match 127.* $address]} {return $address}
    }
    return ""
}

set ::http [free_port]
start_server [list tags {metrics tls:skip} overrides [list metrics-port $::http bind 0.0.0.0]] {
    test {protected-mode: without a password other machines get 403} {
        set address [outer_address]
        if {$address ne ""} {
            foreach {mode password code} {yes "" 403 no "" 200 yes sesame 200 yes "" 403} {
                r config set protected-mode $mode requirepass $password
                set s [raw_connect $address $::http]
                raw_send $s "GET /livez HTTP/1.1\r\n\r\n"
                assert_equal $code [lindex [http_read $s] 0] "$mode $password"
                raw_close $s
            }
        }
        assert_equal 200 [lindex [http_get /livez] 0]
    }
}

# The code of a response to a request with these credentials; "" sends none.
proc authorized_get {path credentials} {
    set s [http_connect]
    set header [expr {$credentials eq "" ? "" : "Authorization: Basic [binary encode base64 $credentials]\r\n"}]
    raw_send $s "GET $path HTTP/1.1\r\n${header}Connection: close\r\n\r\n"
    set answer [http_read $s]
    raw_close $s
    return $answer
}

start_server {tags {metrics tls:skip}} {
    test {metrics-auth: pages need a user that may run INFO, probes do not} {
        open_metrics
        r acl setuser monitor on >pass:word +info
        r acl setuser other on >secret +ping
        assert_equal 200 [lindex [authorized_get /metrics ""] 0]
        r config set metrics-auth yes
        foreach path {/metrics / /status.json} {
            assert_equal 200 [lindex [authorized_get $path monitor:pass:word] 0] $path
            foreach credentials {"" monitor:wrong monitor other:secret nobody:x :} {
                lassign [authorized_get $path $credentials] code headers
                assert_equal 401 $code "$path $credentials"
                assert_equal {Basic realm="valkey"} [dict get $headers www-authenticate]
            }
        }
        assert_equal 200 [lindex [authorized_get /livez ""] 0]
        assert_equal 200 [lindex [authorized_get /readyz ""] 0]
        assert {[info_field acl_access_denied_auth] > 0}
        r acl setuser monitor off
        assert_equal 401 [lindex [authorized_get /metrics monitor:pass:word] 0]
        r config set metrics-auth no
    }
}
