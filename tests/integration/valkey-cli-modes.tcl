# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-cli: the modes that sample keys, measure, transfer a snapshot or act as a replica; TLS.

source $::tests_dir/support/tools.tcl
source $::tests_dir/support/all_types.tcl

proc cli {args} {run_tool valkey-cli "" -h [srv host] -p [srv port] {*}$args}

# Runs valkey-cli in the background; returns a channel with its output and errors.
proc cli_open {args} {
    return [open "|[file dirname $::binary]/valkey-cli -h [srv host] -p [srv port] $args 2>@1"]
}
proc cli_stop {pipe} {
    exec kill [pid $pipe]
    catch {close $pipe}
}
# Reads lines until one matches.
proc read_until {pipe pattern} {
    while {[gets $pipe line] >= 0} {
        if {[string match $pattern $line]} {return $line}
    }
    fail "the output ended before $pattern"
}

start_server {tags {cli tools tls:skip} overrides {repl-diskless-sync-delay 0}} {
    r mset s hello t hi
    r rpush l a b c
    r hset h f v g w
    r sadd set 1 2 3 4
    r zadd z 1 a
    r xadd x * f v

    test {cli: --bigkeys finds the biggest key of each type} {
        lassign [cli --bigkeys] status output
        assert_equal 0 $status
        foreach line {
            {# Scanning the entire keyspace to find biggest keys as well as}
            {Sampled 7 keys in the keyspace!}
            {Total key length in bytes is 9 (avg len 1.29)}
            {Biggest   list found '"l"' has 3 items} {Biggest   hash found '"h"' has 2 fields}
            {Biggest stream found '"x"' has 1 entries} {Biggest string found '"s"' has 5 bytes}
            {Biggest    set found '"set"' has 4 members} {Biggest   zset found '"z"' has 1 members}
            {2 strings with 7 bytes (28.57% of keys, avg size 3.50)}
        } {assert {[string first "$line\n" "$output\n"] >= 0} "$line in $output"}
    }

    test {cli: --bigkeys with a pattern counts the keys that match} {
        set output [lindex [cli --bigkeys --pattern ?] 1]
        assert_match "*Sampled 6 keys in the keyspace!*\n0 sets with 0 members (00.00% of keys, avg size 0.00)*" $output
    }

    test {cli: --memkeys reports bytes} {
        set usage [r memory usage l]
        assert_match "*\nBiggest   list found '\"l\"' has $usage bytes\n*" [lindex [cli --memkeys] 1]
        assert_match "*\nBiggest   list found '\"l\"' has * bytes\n*" [lindex [cli --memkeys-samples 1] 1]
    }

    test {cli: --hotkeys needs an LFU policy, and lists the most used keys first} {
        lassign [cli --hotkeys] status output
        assert_equal 1 $status
        assert_match "*Error: ERR An LFU maxmemory policy is not selected*" $output
        r config set maxmemory-policy allkeys-lfu
        for {set i 0} {$i < 200} {incr i} {r get s}
        assert_match "*Sampled 7 keys*hot key found with counter: *\tkeyname: \"s\"*" [lindex [cli --hotkeys-count 2] 1]
        r config set maxmemory-policy noeviction
    }

    test {cli: --latency without a terminal prints one line} {
        foreach {pattern arguments} {
            {^\d+ \d+ \d+\.\d\d \d+$} {}
            {^\d+,\d+,\d+\.\d\d,\d+$} --csv
            {^\{"min": \d+, "max": \d+, "avg": \d+\.\d\d, "count": \d+\}$} --json
        } {
            lassign [cli --latency -i 0.05 {*}$arguments] status output
            assert_equal 0 $status
            assert {[regexp $pattern $output]} $output
        }
        set pipe [cli_open --latency-history -i 0.05 --csv]
        read_until $pipe "*,*,*,*"
        read_until $pipe "*,*,*,*"
        cli_stop $pipe
    }

    test {cli: --latency-dist prints a legend and spectra} {
        set pipe [cli_open --latency-dist -i 0.05]
        read_until $pipe "From 0 to 100%: *"
        read_until $pipe "*m.*m-*m?*"
        cli_stop $pipe
    }

    test {cli: --intrinsic-latency needs no server} {
        lassign [run_tool valkey-cli "" -p 1 --intrinsic-latency 1] status output
        assert_equal 0 $status
        assert_match "*Max latency so far: * microseconds.\n*total runs (avg latency: *Worst run took *x longer*" $output
    }

    test {cli: --stat and --top show keys and requests} {
        set pipe [cli_open --stat -i 0.05]
        assert_match "------- data ------*" [gets $pipe]
        assert_match "keys       mem      clients blocked requests            connections*" [gets $pipe]
        assert_match "7 * (+0) *" [gets $pipe]
        assert_match "7 * (+1) *" [gets $pipe]
        cli_stop $pipe
        set pipe [cli_open --top -i 0.05]
        assert_match "keys 7   clients * memory *" [gets $pipe]
        read_until $pipe "*command *calls/s*"
        read_until $pipe "info *"
        cli_stop $pipe
    }

    test {cli: --top shows hot keys, as far as the server knows them} {
        set pipe [cli_open --top -i 0.05]
        read_until $pipe "hot key (of the last half minute) *"
        cli_stop $pipe
        start_server {overrides {rename-command {HOTKEYS ""} maxmemory-policy allkeys-lfu}} {
            r set "not hot" 1
            r set hot 1
            for {set i 0} {$i < 300} {incr i} {r get hot}
            set pipe [cli_open --top -i 0.05]
            read_until $pipe "hot key * OBJECT FREQ"
            assert_match {"hot" * 0 *} [gets $pipe]
            assert_match {"not hot" * 0 *} [gets $pipe]
            read_until $pipe "(* keys examined, some hundred per refresh)"
            r config set maxmemory-policy noeviction
            read_until $pipe "not known: the server has no HOTKEYS, and OBJECT FREQ needs a maxmemory-policy with lfu"
            cli_stop $pipe
        }
    }

    test {cli: --lru-test fills a cache} {
        r config set maxmemory-policy allkeys-lru
        set pipe [cli_open -n 3 --lru-test 100]
        assert_match "* Gets/sec | Hits: * | Misses: *" [gets $pipe]
        cli_stop $pipe
        r select 3
        assert_range [r dbsize] 10 101
        r flushdb
        r select 0
    }

    test {cli: --rdb writes a valid snapshot, to a file or standard output} {
        set path [srv dir]/cli.rdb
        lassign [cli --rdb $path] status output
        assert_equal 0 $status
        assert_match "*SYNC sent to primary*Transfer finished with success*" $output
        lassign [run_tool valkey-check-rdb "" $path] status output
        assert_equal 0 $status
        assert_match "*7 keys read*" $output
        exec [file dirname $::binary]/valkey-cli -h [srv host] -p [srv port] --rdb - > $path.stdout 2> /dev/null
        assert_match "*7 keys read*" [lindex [run_tool valkey-check-rdb "" $path.stdout] 1]
        lassign [cli --rdb /nonexistent/x] status output
        assert_equal 1 $status
        assert_match "*Error opening '/nonexistent/x': No such file or directory" $output
    }

    test {cli: --rdb has path hashes, which no older version has, and members without their TTLs} {
        set path [srv dir]/cli.rdb
        r phset path /a fields 1 f v
        r saddex timed_set pxat 9999999999999 members 1 m
        assert_equal 0 [lindex [cli --rdb $path] 0]
        assert_match "*9 keys read*" [lindex [run_tool valkey-check-rdb "" $path] 1]
        r del path
        assert_equal 0 [lindex [cli --rdb $path] 0]
        assert_match "*8 keys read*" [lindex [run_tool valkey-check-rdb "" $path] 1]
        set channel [open $path rb]
        assert_equal VALKEY080 [read $channel 9]
        close $channel
        r del timed_set
    }

    test {cli: --rdb --progress json reports the end} {
        lassign [cli --rdb [srv dir]/cli.rdb --progress json] status output
        assert_match {*{"task":"rdb","unit":"bytes","done":*,"finished":true}*} $output
    }

    test {cli: --replica prints the commands of the primary} {
        set pipe [cli_open --replica]
        read_until $pipe "Full resync done after * bytes. Logging commands from primary."
        r set replicated 1
        assert_equal {"set","replicated","1"} [read_until $pipe {"set",*}]
        cli_stop $pipe
    }

    test {cli: SYNC and PSYNC as commands print the stream of the primary} {
        foreach {arguments announcement} {
            sync {Full resync done. Logging commands from primary.}
            {PSYNC ? -1} {Full resync done. Logging commands from primary.}
        } {
            set pipe [cli_open {*}$arguments]
            read_until $pipe "Entering replica output mode...  (press Ctrl-C to quit)"
            read_until $pipe $announcement
            r set streamed $arguments
            assert_equal "\"set\",\"streamed\",\"$arguments\"" [read_until $pipe {"set",*}]
            cli_stop $pipe
        }
        set id [info_field master_replid]
        set pipe [cli_open psync $id [expr {[info_field master_repl_offset] + 1}]]
        read_until $pipe "PSYNC replied +CONTINUE*"
        read_until $pipe "Partial resync done. Logging commands from primary."
        r set streamed again
        assert_equal {"set","streamed","again"} [read_until $pipe {"set",*}]
        cli_stop $pipe
    }

    test {cli: SYNC that is refused ends the program} {
        set head "Entering replica output mode...  (press Ctrl-C to quit)\n"
        set refusal "SYNC with primary failed: -ERR wrong number of arguments for 'psync' command"
        assert_equal [list 1 $head$refusal] [cli psync]
        assert_equal [list 1 $head$refusal] [run_tool valkey-cli "psync\nset never 1\n" -h [srv host] -p [srv port]]
        assert_equal 0 [r exists never]
    }
}

set certs [file join $::job_dir certs-cli]
file mkdir $certs
exec $::tests_dir/support/make_certs.sh $certs
set ::tls_port [free_port]

start_server [list tags {cli tools tls tls:skip} overrides [list tls-port $::tls_port tls-cert-file $certs/server.crt \
    tls-key-file $certs/server.key tls-ca-cert-file $certs/ca.crt]] {
    proc tls_cli {args} {run_tool valkey-cli "" -h [srv host] -p $::tls_port {*}$args}

    test {cli: TLS with certificates, by options and by URI} {
        set trusted [list --cacert $certs/ca.crt --cert $certs/client.crt --key $certs/client.key]
        assert_equal {0 PONG} [tls_cli --tls {*}$trusted ping]
        assert_equal {0 PONG} [run_tool valkey-cli "" {*}$trusted -u valkeys://[srv host]:$::tls_port ping]
        assert_match {0 *Transfer*success*} [tls_cli --tls {*}$trusted --rdb [srv dir]/tls.rdb]
        assert_match "*errors: 0, replies: 1" \
            [lindex [run_tool valkey-cli "set a b\r\n" -h [srv host] -p $::tls_port --tls {*}$trusted --pipe] 1]
    }

    test {cli: --cluster backup over TLS} {
        # SYNC was once sent unencrypted.
        start_server [list overrides [list cluster-enabled yes tls-port [set port [free_port]] tls-cluster yes \
            tls-cert-file $certs/server.crt tls-key-file $certs/server.key tls-ca-cert-file $certs/ca.crt]] {
            set folder [srv dir]/backup
            file mkdir $folder
            r cluster addslotsrange 0 16383
            wait_for_condition 100 50 {[string match *cluster_state:ok* [r cluster info]]} else {fail [r cluster info]}
            set keys [llength [fill_all_types]]
            set digest [r debug digest]
            lassign [run_tool valkey-cli "" --tls --cacert $certs/ca.crt --cert $certs/client.crt --key $certs/client.key \
                --cluster backup [srv host]:$port $folder] status output
            assert_match {0 *Transfer finished with success*} [list $status $output]
            set file [glob $folder/*.rdb]
            assert_match "*$keys keys read*" [lindex [run_tool valkey-check-rdb "" $file] 1]
            # TTLs of fields and members were once left out, and path hashes made it fail.
            file copy $file [srv dir]/dump.rdb
            r debug reload nosave
            assert_equal $digest [r debug digest]
        }
    }

    test {cli: the wrong kind of port, and a missing certificate, are said in words} {
        set hint "Does the port speak TLS? Without it: no --tls, and valkey:// in URIs."
        assert_match "1 {Could not negotiate a TLS connection: *\n$hint}" \
            [run_tool valkey-cli "" -h [srv host] -p [srv port] --tls --insecure ping]
        assert_match "1 {Error: *\nThe server closed the connection at once. Does the port need --tls?}" \
            [run_tool valkey-cli "" -h [srv host] -p $::tls_port ping]
        assert_match "1 {Error: *\nThe server closed the connection at once. Does it demand a client certificate (--cert and --key)?}" \
            [tls_cli --tls --cacert $certs/ca.crt ping]
    }

    test {cli: TLS to a port that says nothing ends} {
        set silent [socket -server {apply {{channel args} {}}} -myaddr 127.0.0.1 0]
        assert_match "1 {Could not negotiate a TLS connection: *\nDoes the port speak TLS? *}" \
            [run_tool valkey-cli "" -p [lindex [fconfigure $silent -sockname] 2] --tls --insecure -t 0.2 ping]
        close $silent
    }

    test {cli: TLS failures are reported} {
        assert_equal {1 {Could not negotiate a TLS connection: Invalid CA Certificate File/Directory}} \
            [tls_cli --tls --cacert /nonexistent ping]
        assert_match {1 {Could not negotiate a TLS connection: *certificate verify failed*}} \
            [tls_cli --tls --cert $certs/client.crt --key $certs/client.key ping]
        assert_equal {0 PONG} [tls_cli --tls --insecure --cert $certs/client.crt --key $certs/client.key ping]
    }
}

start_server {tags {cli tools tls:skip with:zstd}} {
    test {cli: --compression-estimate tells what a dictionary would save for each class of keys, and writes nothing} {
        for {set i 0} {$i < 1500} {incr i} {
            r set sess:$i "{\"session\":\"[expr {$i * 7919}]\",\"language\":\"en\",\"device\":\"phone\",\"roles\":\[\"customer\"\],\"cart\":\[\]}"
            r set few:[expr {$i % 20}] [string repeat x 70]
        }
        r lpush few:list a
        r set short:1 a
        set digest [r debug digest]
        lassign [cli --compression-estimate --count 1000] status output
        assert_equal 0 $status
        assert_match "Sampled 1522 of 1522 keys: 1520 strings of 64 bytes or more\n*" $output
        assert {[regexp {\nsess:\* +1500 +\d+ +[01]\.\d\d +[01]\.\d\d +0\.(\d\d) } $output - share]}
        assert {[scan $share %d] < 60}
        assert_match "*\n(other keys) * too few values (20 of 128 needed)\n*" $output
        assert_equal $digest [r debug digest]
        assert_equal "Nothing to compress." [lindex [split [lindex [cli --compression-estimate --pattern short:*] 1] \n] 1]
    }
}
