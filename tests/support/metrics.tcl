# SPDX-License-Identifier: BSD-3-Clause
#
# The metrics port, for tests: HTTP requests, and expressions on JSON.

# Opens the server's metrics port on a free port, stored in ::http. Retries, because another job may
# take the port first.
proc open_metrics {{level -0}} {
    for {set try 0} {$try < 10} {incr try} {
        set ::http [free_port]
        if {![catch {r $level config set metrics-port $::http} message]} return
    }
    fail $message
}

proc http_connect {} {
    return [raw_connect 127.0.0.1 $::http]
}

# Reads one response from the socket: {code headers body}. `has_body` is 0 for HEAD.
proc http_read {s {has_body 1}} {
    if {![regexp {^HTTP/1\.1 (\d+) } [raw_line $s] all code]} {fail "no status line"}
    set headers {}
    while {[set line [raw_line $s]] ne ""} {
        regexp {^([^:]+): (.*)$} $line all name value
        dict set headers [string tolower $name] $value
    }
    set body {}
    if {$has_body} {set body [raw_read $s [dict get $headers content-length]]}
    return [list $code $headers $body]
}

proc http_get {path {accept */*}} {
    set s [http_connect]
    raw_send $s "GET $path HTTP/1.1\r\nHost: x\r\nAccept: $accept\r\nConnection: close\r\n\r\n"
    set answer [http_read $s]
    assert_equal "" [raw_rest $s]
    raw_close $s
    return $answer
}

# Evaluates Python expressions on the parsed JSON text, named d; returns a list.
proc json {text expressions} {
    set program "import json,sys\nd=json.loads(sys.argv\[1\])\nfor e in sys.argv\[2:\]: print(eval(e))"
    return [split [exec python3 -c $program $text {*}$expressions] \n]
}

# Number of samples in /history.json.
proc history_samples {} {
    return [lindex [json [lindex [http_get /history.json] 2] {{len(d["time_ms"])}}] 0]
}

# Checks the values of Python expressions on a JSON text.
proc assert_json {text wanted} {
    foreach {expression value} $wanted got [json $text [dict keys $wanted]] {
        assert_equal $value $got $expression
    }
}

# The browser, if there is one; it is too large to be installed for this.
proc browser {} {
    foreach name {chromium chromium-browser google-chrome} {
        if {[auto_execok $name] ne ""} {return $name}
    }
    return ""
}

# What the page shows, as JSON (see the helper).
proc page_shown {fragment} {
    return [exec python3 $::tests_dir/helpers/status_page.py [browser] http://127.0.0.1:$::http/$fragment $::job_dir/browser]
}
