# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-benchmark: tests, commands with placeholders, output forms, errors, rates, comparison.

source $::tests_dir/support/tools.tcl

# Exit status and output of the benchmark on this server, without the progress line.
proc bench {args} {
    lassign [run_tool valkey-benchmark "" -h [srv host] -p [srv port] {*}$args] status output
    # Tcl reads carriage returns as ends of lines.
    regsub -all -line {^.*: rps=.*\n} $output "" output
    return [list $status [regsub -all -line {^ +\n} $output ""]]
}

# The output of a run that must succeed.
proc bench_ok {args} {
    lassign [bench {*}$args] status output
    assert_equal 0 $status $output
    return $output
}

proc calls {command} {
    set calls 0
    regexp "cmdstat_$command:calls=(\\d+)" [r info commandstats] -> calls
    return $calls
}

start_server {tags {tools tls:skip}} {
    test {benchmark: every built-in test runs with the commands of its name} {
        set output [bench_ok -n 100 -c 4 -P 3 -q -r 20]
        foreach title {
            PING_INLINE PING_MBULK SET GET INCR LPUSH RPUSH LPOP RPOP SADD HSET SPOP ZADD ZPOPMIN
            "LPUSH (needed to benchmark LRANGE)" "LRANGE_100 (first 100 elements)" "LRANGE_300 (first 300 elements)"
            "LRANGE_500 (first 500 elements)" "LRANGE_600 (first 600 elements)" "MSET (10 keys)" "MGET (10 keys)" XADD
            "FUNCTION LOAD" FCALL
        } {
            assert_match "*$title: * requests per second, p50=*.??? msec\n*" $output
        }
        # Batches of 3 until at least 100 are requested.
        foreach command {set get incr rpush lpop sadd hset zadd xadd fcall} {assert_equal 102 [calls $command] $command}
        assert_equal 204 [calls lpush]
        assert_equal 204 [calls ping]
        assert_equal 408 [calls lrange]
    }

    test {benchmark: -t chooses tests, and lrange brings its preparation} {
        r config resetstat
        set output [bench_ok -n 10 -c 1 -q -t lrange_100,MSET]
        assert_match "LPUSH (needed to benchmark LRANGE): *\nLRANGE_100 *\nMSET (10 keys): *" $output
        assert_equal {10 10 10 0} [list [calls lpush] [calls lrange] [calls mset] [calls get]]
    }

    test {benchmark: the full report has Valkey's form} {
        set output [bench_ok -n 1000 -c 5 -d 20 set k v]
        assert_match [join {
            {====== set k v ======} {  1000 requests completed in *.?? seconds} {  5 parallel clients} {  27 bytes payload}
            {  keep alive: 1} {  host configuration "save": *} {  host configuration "appendonly": no} {  multi-thread: no} {}
            {Latency by percentile distribution:} {0.000% <= *.??? milliseconds (cumulative count *)}
            {*100.000% <= *.??? milliseconds (cumulative count 1000)} {} {Cumulative distribution of latencies:}
            {*100.000% <= *.??? milliseconds (cumulative count 1000)} {} {Summary:}
            {  throughput summary: *.?? requests per second} {  latency summary (msec):}
            {          avg       min       p50       p95       p99       max} {*}
        } \n] $output
    }

    test {benchmark: CSV has a header and a line per test} {
        set lines [split [string trim [bench_ok -n 10 -c 1 --csv -t set,get]] \n]
        assert_equal {"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"} \
            [lindex $lines 0]
        assert_match {"SET","*","*","*","*","*","*","*"} [lindex $lines 1]
        assert_match {"GET","*"} [lindex $lines 2]
        assert_equal 3 [llength $lines]
    }

    test {benchmark: placeholders and data are replaced as in Valkey} {
        r flushall
        # Literal without -r; consecutive with --sequential; the same within a command from __rand_1st__ on.
        bench_ok -n 1 -c 1 -q set __rand_int__ __data__
        assert_equal VXK [r get __rand_int__]
        bench_ok -n 1 -c 1 -q -d 7 set plain x__data__
        assert_equal xVXKeHog [r get plain]
        bench_ok -n 3 -c 1 -q -r 1000 --sequential rpush l __rand_int__:__rand_int__:__rand_1st__:__rand_1st__
        assert_equal [list 000000000000:000000000001:000000000000:000000000000 \
            000000000002:000000000003:000000000001:000000000001 \
            000000000004:000000000005:000000000002:000000000002] [r lrange l 0 -1]
        bench_ok -n 2000 -c 3 -P 10 -q -r 7 sadd s __rand_int__
        assert_equal 7 [r scard s]
        bench_ok -n 20000 -c 3 -P 10 -q -r 1000000 --key-dist zipf:1.5 zincrby z 1 __rand_1st__
        assert_equal 000000000000 [lindex [r zrevrange z 0 0] 0]
        assert_range [r zscore z 000000000000] 6000 9000
        assert_range [r zcard z] 50 10000
    }

    test {benchmark: the same seed gives the same keys} {
        foreach list {a b c} seed {5 5 6} {bench_ok -n 50 -c 1 -q -r 100000 --seed $seed rpush $list __rand_int__}
        assert_equal [r lrange a 0 -1] [r lrange b 0 -1]
        assert_not_equal [r lrange a 0 -1] [r lrange c 0 -1]
    }

    test {benchmark: a sequence of commands with repetitions is sent as a whole} {
        r flushall
        r config resetstat
        bench_ok -n 12 -c 1 -P 2 -q -- multi ";" 2 incr n ";" set k __data__ ";" exec ";" get k
        assert_equal {2 4 2 2 2} [list [calls multi] [calls incr] [calls set] [calls exec] [calls get]]
        assert_equal 4 [r get n]
    }

    test {benchmark: the last argument may come from standard input} {
        lassign [run_tool valkey-benchmark "from stdin" -h [srv host] -p [srv port] -n 1 -c 1 -q -x set in] status
        assert_equal 0 $status
        assert_equal "from stdin" [r get in]
    }

    test {benchmark: connections authenticate, select the database and the protocol} {
        r acl setuser bencher on >secret +@all ~*
        bench_ok -n 5 -c 2 -q -3 --user bencher -a secret --dbnum 3 --enable-tracking set there 1
        bench_ok -n 5 -c 2 -q -k 0 -u valkey://bencher:secret@[srv host]:[srv port]/4 set there 1
        assert_equal 0 [r exists there]
        r select 3
        assert_equal 1 [r exists there]
        r select 4
        assert_equal 1 [r exists there]
        r select 0
    }

    test {benchmark: threads share the requests} {
        r config resetstat
        set output [bench_ok -n 1000 -c 10 --threads 3 -t get]
        assert_match "*multi-thread: yes\n  threads: 3\n*" $output
        assert_equal 1000 [calls get]
    }

    test {benchmark: a limited rate is kept, and latencies of an open loop count from when requests were due} {
        r config resetstat
        set output [bench_ok -n 100 -c 4 --rps 500 -t ping_mbulk]
        assert_match "*RPS Summary:\n  target RPS: 500.00\n  RPS distribution (reqs/sec):\n*" $output
        regexp {completed in ([0-9.]+) seconds} $output -> seconds
        assert {$seconds > 0} $output
        # All requests are due at once, so the last one has waited for the whole run.
        set output [bench_ok -n 2000 -c 1 --rate 1000000000 --percentiles -t get]
        assert_match "*latency percentiles (msec):\n          p50       p75       p90       p95       p99     p99.9    p99.99       max\n*" $output
        assert {[regexp {throughput summary: ([0-9.]+).*p99.99 +max\n(?: +[0-9.]+){7} +([0-9.]+)} $output -> rate longest]}
        assert_range $longest [expr {0.8 * 2000 / $rate * 1000}] [expr {1.2 * 2000 / $rate * 1000}]
    }

    test {benchmark: the duration counts from the end of the warm-up, also if that ends late} {
        set pipe [open [list |[file join [file dirname $::binary] valkey-benchmark] -h [srv host] -p [srv port] --warmup 1 --duration 1 -c 2 -t ping_mbulk 2>@1]]
        wait_for_condition 500 10 {[info_field connected_clients] >= 3}
        exec kill -STOP [pid $pipe]
        set end_ms [expr {[clock milliseconds] + 2100}]
        wait_for_condition 500 10 {[clock milliseconds] > $end_ms} ;# beyond the planned end
        exec kill -CONT [pid $pipe]
        set output [read $pipe]
        close $pipe
        assert {[regexp {completed in ([0-9.]+) seconds} $output -> seconds]} $output
        assert {$seconds >= 0.99} $output
    }

    test {benchmark: a mix sends its tests by weight} {
        r config resetstat
        set output [bench_ok -n 4000 -c 5 -P 4 -q --mix get:75,set:25 -r 100 --plot]
        assert_match "get:75,set:25: *requests per second*latency plot*#*" $output
        assert_equal 4000 [expr {[calls get] + [calls set]}]
        assert_range [calls set] 800 1200
    }

    test {benchmark: memory per key is reported} {
        r flushall
        set output [bench_ok -n 20000 -c 10 -P 20 -q -r 1000000 --sequential -d 100 --bytes-per-key -t set]
        regexp {20000 keys added, ([0-9.]+) bytes per key} $output -> bytes
        assert_range $bytes 116 260
    }

    test {benchmark: two servers are compared in rounds} {
        start_server {} {
            set output [bench_ok -n 500 -c 5 --rounds 3 --compare [srv -1 host]:[srv -1 port] -t get,fcall]
            assert_match "====== GET ======\n  3 rounds each, medians; A: *:*, B: *:*\n*requests/s *p50 (msec) *p99 (msec) *" $output
            assert_equal 1500 [calls get]
            assert {[regexp {\n  (A handles more requests: A/B is|B handles more requests: A/B is|no difference of more than|too noisy to judge: A/B is) } $output]} $output
            assert_match "*too few rounds to judge: at least 3 are needed (--rounds)*" \
                [bench_ok -n 50 -c 5 --rounds 2 --compare [srv -1 host]:[srv -1 port] -t get]
        }
    }

    test {benchmark: -q into a file writes results only} {
        lassign [run_tool valkey-benchmark "" -h [srv host] -p [srv port] -q -n 2000 -c 2 --duration 0 -t get,set] status output
        assert {[regexp {^SET: [0-9.]+ requests per second, p50=[0-9.]+ msec\nGET: [0-9.]+ requests per second, p50=[0-9.]+ msec\n*$} $output]} $output
    }

    test {benchmark: long latencies do not fill pages} {
        # All requests of a batch have its latency.
        set output [bench_ok -n 400 -c 4 -P 100 debug sleep 0.005]
        regexp {Cumulative distribution of latencies:\n(.*?)\n\nSummary} $output -> rows
        assert {[llength [split $rows "\n"]] < 100} $rows
    }

    test {benchmark: --html writes a page with tables and plots} {
        set page [srv dir]/page.html
        bench_ok -n 2000 -c 5 -q -t get,set --html $page
        set text [read_bytes $page]
        assert_match "<!doctype html>*<h2>SET</h2>*<table>*<svg *<polyline points=*</svg>*<h2>GET</h2>*</html>*" $text
        assert_equal 0 [regexp {nan|inf|https?://} $text]
        bench_ok -n 200 -c 5 --rounds 3 --compare [srv host]:[srv port] --html $page set "x<a>" "y&z"
        set text [read_bytes $page]
        assert_match "*<h2>set x&lt;a&gt; y&amp;z</h2>*Requests per second in each round*" $text
        assert_match {1 *Could not write /nonexistent/page: No such file or directory*} [bench -n 10 -q -t get --html /nonexistent/page]
    }

    test {benchmark: random commands do not stop the server} {
        set output [bench_ok --fuzz -n 2000 -c 4 --fuzz-mode malformed-commands --seed 7]
        assert_match "Running fuzzer with 4 clients, 500 commands per client (2000 total commands)\n*4 succeeded, 0 failed.\n*\
            Total commands sent: 2000\n*Malformed replies: 0\n*" $output
        assert_equal PONG [r ping]
    }

    test {benchmark: errors end it with Valkey's texts} {
        foreach {arguments expected} {
            {--bogus} {Invalid option "--bogus" or option argument missing*Usage: *}
            {-n} {Invalid option "-n" or option argument missing*}
            {-n 1 --duration 1} {Options -n and --duration are mutually exclusive.*}
            {-u http://x} {Invalid URI scheme*}
            {--rfr some} {Invalid option "some" or option argument missing*}
            {--fuzz-mode x} {Invalid fuzz mode: x*}
            {--fuzz-loglevel x} {Invalid fuzz loglevel: x*}
            {-t gett} {Unknown test "gett". Did you mean get?*Tests: ping_inline ping ping_mbulk set get *}
            {-t set,nothing,get} {Unknown test "nothing".?Tests: *}
            {-n x} {Invalid value "x" of option "-n": a number is expected*}
            {-P 10x} {Invalid value "10x" of option "-P": a number is expected*}
            {-c 99999999999} {Invalid value "99999999999" of option "-c": *}
            {--rate ""} {Invalid value "" of option "--rate": *}
            {-n 1 -q nosuch a} {*Error from server: ERR unknown command 'nosuch', with args beginning with: 'a' *}
            {-n 1 -q --dbnum 99 ping} {*Error from server: ERR DB index is out of range*}
            {-n 1 -q --user nobody -a x ping} {Node *:* replied with error:*WRONGPASS *}
            {-n 1 --cluster ping} {Failed to fetch cluster configuration*}
            {--mix get} {Invalid mix "get": *}
            {--compare nowhere} {Invalid option "nowhere" or option argument missing*}
            {-s /nonexistent/socket ping} {Could not connect to server at /nonexistent/socket: No such file or directory*}
        } {
            lassign [bench {*}$arguments] status output
            assert_equal 1 $status $arguments
            assert_match $expected $output
        }
    }

    test {benchmark: help and version} {
        # In the format of valkey-cli, not that of the tools for files.
        foreach option {-v --version} {assert_match {valkey-benchmark [0-9]*.[0-9]*.[0-9]} [string trim [bench_ok $option]]}
        assert_match "Usage: valkey-benchmark *" [bench_ok --help]
    }
}

start_server {tags {tools cluster tls:skip} overrides {cluster-enabled yes}} {
    test {benchmark: keys with a tag go to the nodes of their slots} {
        r cluster addslotsrange 0 16383
        wait_for_condition 200 25 {[string match "*cluster_state:ok*" [r cluster info]]} else {fail "cluster is not ok"}
        set output [bench_ok --cluster -n 100 -c 4 -r 50 -t set,mget,fcall]
        assert_match "Cluster has 1 primary nodes:\n\nNode 0(Primary): * *:*\n\n====== SET ======\n*cluster mode: yes (1 primary)\n\
            \ node \\\[0\\\] configuration:\n    save: *\n    appendonly: no\n*" $output
        assert_match "key:{???}:0000000000??" [r randomkey]
    }
}

if {![catch {package require tls}]} {
    set certs [file join $::job_dir benchmark_certs]
    file mkdir $certs
    exec $::tests_dir/support/make_certs.sh $certs
    set tls_port [free_port]
    start_server [list tags {tools tls tls:skip} overrides [list tls-port $tls_port tls-cert-file $certs/server.crt \
        tls-key-file $certs/server.key tls-ca-cert-file $certs/ca.crt]] {
        test {benchmark: TLS with certificates on both sides} {
            set pair [list --cert $certs/client.crt --key $certs/client.key]
            set ca [list --cacert $certs/ca.crt]
            foreach options [list [concat $pair $ca] [concat $pair --insecure] \
                [concat $pair $ca --tls-ciphersuites TLS_AES_128_GCM_SHA256 --sni localhost]] {
                lassign [run_tool valkey-benchmark "" -h [srv host] -p $tls_port --tls {*}$options -n 300 -c 3 -P 10 -d 20000 \
                    -q -t set,get] status output
                assert_equal 0 $status $output
            }
            assert_equal 20000 [r strlen key:__rand_int__]
            foreach {options pattern} [list $pair {*Error: SSL_connect failed: *certificate verify failed*} \
                [concat $ca --cert $certs/client.crt] {*Client cert and key must both be specified or skipped*} \
                [concat $pair --cacert /nonexistent] {Could not negotiate a TLS connection: Invalid CA Certificate File/Directory*}] {
                lassign [run_tool valkey-benchmark "" -h [srv host] -p $tls_port --tls {*}$options -n 1 ping] status output
                assert_equal 1 $status
                assert_match $pattern $output
            }
        }
    }
}
