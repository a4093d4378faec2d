# SPDX-License-Identifier: BSD-3-Clause
#
# The Tcl suite's program: reads the options, then runs the files as jobs (coordinator), or, when called
# with --job, is such a job. README.md tells how to write tests.

package require Tcl 8.6
set tests_dir [file normalize [file dirname [info script]]]
foreach part {assert resp raw server cluster gateway slot_jobs sentinel job coordinator} {source $tests_dir/support/$part.tcl}

# A build with sanitizers finds leaks as well, and a refused huge allocation is no fault. The authorities of the system,
# which Tcl loads for each TLS connection, took 90 % of the time of connecting; tests have one of their own.
foreach {name value} {
    ASAN_OPTIONS detect_leaks=1:allocator_may_return_null=1 TSAN_OPTIONS allocator_may_return_null=1
    UBSAN_OPTIONS print_stacktrace=1 SSL_CERT_FILE /dev/null SSL_CERT_DIR /dev/null
} {
    if {![info exists env($name)]} {set env($name) $value}
}

set usage {usage: runtest [options]
  --single FILE       only this file (unit/basic); may be repeated; a glob is fine
  --skip FILE         not these files; may be repeated; a glob is fine
  --only PATTERN      only tests whose name contains it (glob, any case); may be given once
  --tags "a -b"       only tests tagged a, none tagged b
  --list              print the files and end
  --binary PATH       the server to test (default src/valkey-server)
  --host H --port P   test a running server; what needs one of its own is skipped
  --resp 2|3|both     protocol of the clients (default both: every file runs twice)
  --tls               servers and clients speak TLS; tests tagged tls:skip are left out
  --io-threads N      servers use so many I/O threads all the time (default 1)
  --clients N         files at a time (default: 5 per processor, as most tests wait for something)
  --timeout S         seconds a file may take (default 300)
  --scale F           factor on counts of rounds, for slow builds (default 1)
  --seed N            of the random tests
  --root DIR          where unit/, integration/ ... with the test files are (default tests)
  --tmp DIR           where servers live (default tests/tmp/<process>)
  --keep              keep the servers' files
  --verbose           print every test}

array set options [list single {} skip {} only {} tags {} list 0 binary $tests_dir/../src/valkey-server host {} port {} \
    resp both clients 0 timeout 300 scale 1 seed [expr {[clock milliseconds] % 1000000}] root $tests_dir tmp $tests_dir/tmp/[pid] \
    keep 0 verbose 0 tls 0 io-threads 1]

proc read_options {arguments} {
    while {[llength $arguments]} {
        set arguments [lassign $arguments word]
        set name [string range $word 2 end]
        if {$word in {--list --keep --verbose --tls}} {
            set ::options($name) 1
        } elseif {[string match --?* $word] && [info exists ::options($name)] && [llength $arguments]} {
            set arguments [lassign $arguments value]
            if {$name in {single skip}} {lappend ::options($name) $value} else {set ::options($name) $value}
        } else {
            puts stderr $::usage
            exit 2
        }
    }
}

# Seconds that files take, where support/long_files.txt has them.
proc known_seconds {} {
    set seconds {}
    foreach line [split [string trim [file_text $::tests_dir/support/long_files.txt]] "\n"] {
        if {[string index $line 0] ne "#"} {dict set seconds [lindex $line 1] [lindex $line 0]}
    }
    return $seconds
}

# All test files, those that take longest first: they should not be what is waited for at the end. Among files that are
# not known to be long, the largest come first.
proc test_files {} {
    set root [file normalize $::options(root)]
    set seconds [known_seconds]
    set found {}
    foreach group {unit integration cluster sentinel moduleapi} {
        foreach depth {*.tcl */*.tcl */*/*.tcl} {
            foreach path [glob -nocomplain -directory $root/$group $depth] {
                set name [string range $path [string length $root/] end-4]
                set known [expr {[dict exists $seconds $name] ? [dict get $seconds $name] : 0}]
                lappend found [list $known [file size $path] $name]
            }
        }
    }
    set found [lsort -real -decreasing -index 0 [lsort -integer -decreasing -index 1 [lsort -index 2 $found]]]
    set names [lmap row $found {lindex $row 2}]
    return [lmap name $names {
        if {($::options(single) ne "" && ![matches_any $name $::options(single)]) || [matches_any $name $::options(skip)]} continue
        set name
    }]
}

proc matches_any {name patterns} {
    foreach pattern $patterns {
        if {[string match [regsub {\.tcl$} $pattern {}] $name]} {return 1}
    }
    return 0
}

proc processors {} {
    if {[catch {exec nproc} count]} {return 2}
    return $count
}

# Keys and certificates for --tls and for tests of TLS (see support/make_certs.sh); returns the folder.
proc make_certificates {folder} {
    file mkdir $folder
    exec $::tests_dir/support/make_certs.sh $folder
    return $folder
}

# False for a server that was built without libzstd, and says so.
proc has_zstd {binary} {
    if {[catch {exec $binary --version} text] || ![regexp { compression=(\S+)} $text - codecs]} {return 1}
    return [expr {"zstd" in [split $codecs ,]}]
}

proc make_jobs {} {
    upvar #0 options o
    set wanted {}
    set denied {}
    foreach tag $o(tags) {
        if {[string index $tag 0] eq "-"} {lappend denied [string range $tag 1 end]} else {lappend wanted $tag}
    }
    set certificates {}
    if {$o(tls)} {
        lappend denied tls:skip
        set certificates [make_certificates [file normalize $o(tmp)]/certificates]
    }
    if {![has_zstd $o(binary)]} {lappend denied with:zstd}
    set jobs {}
    foreach name [test_files] {
        foreach resp [expr {$o(resp) eq "both" ? {2 3} : $o(resp)}] {
            lappend jobs [dict create job_name $name \
                job_path [file normalize $o(root)]/$name.tcl resp_version $resp seed $o(seed) only $o(only) scale $o(scale) \
                tags_wanted $wanted tags_denied $denied binary [file normalize $o(binary)] \
                tls_folder $certificates io_threads $o(io-threads) start_seconds 30 external [expr {$o(host) ne "" || $o(port) ne ""}] \
                external_host [expr {$o(host) eq "" ? "127.0.0.1" : $o(host)}] external_port $o(port) \
                job_dir [file normalize $o(tmp)]/[string map {/ .} $name].resp$resp]
        }
    }
    return $jobs
}

proc main {arguments} {
    if {[lindex $arguments 0] eq "--job"} {
        run_job [lindex $arguments 1]
        exit 0
    }
    read_options $arguments
    if {$::options(list)} {
        puts [join [lsort [test_files]] "\n"]
        exit 0
    }
    set external [expr {$::options(host) ne "" || $::options(port) ne ""}]
    if {!$external && ![file executable $::options(binary)]} {
        puts "no server at $::options(binary): run make first, or say --binary PATH"
        puts "0 passed, 1 failed"
        exit 1
    }
    if {$external} {
        set ::options(clients) 1 ;# the files would flush each other's data
        if {$::options(port) eq ""} {set ::options(port) 6379}
    }
    coordinator::run [make_jobs] [expr {$::options(clients) > 0 ? $::options(clients) : 5 * [processors]}]
    if {!$::options(keep) && !$coordinator::failed} {file delete -force $::options(tmp)/certificates}
    catch {file delete $::options(tmp)} ;# succeeds when it is empty: nothing failed, nothing was kept
    exit [expr {$coordinator::failed > 0}]
}

main $argv
