# SPDX-License-Identifier: BSD-3-Clause
#
# LATENCY: history, GRAPH, DOCTOR and RESET of events; histograms count every call.

start_server {tags {latency}} {
    test {without a threshold nothing is recorded} {
        r debug sleep 0.005
        assert_equal {} [r latency latest]
        assert_match "I'm sorry, Dave*latency-monitor-threshold*" [r latency doctor]
    }

    test {a slow command is an event from the threshold on} {
        # On a busy machine any command may take some ms.
        r config set latency-monitor-threshold 400
        r debug sleep 0.001
        assert_match "No latency spike was observed*" [r latency doctor]
        r config set latency-monitor-threshold 20
        r debug sleep 0.03
        lassign [lindex [r latency latest] 0] name time last max sum count
        assert_equal command $name
        assert {$last >= 30}
        assert {$max >= $last}
        assert {$sum >= $max}
        assert {$count >= 1}
        assert_equal $last [lindex [r latency history command] 0 1]
        assert_equal {} [r latency history nosuch]
    }

    test {the graph has a column for the sample, the doctor a line for the event} {
        set lines [split [r latency graph command] "\n"]
        assert_match "command - high * ms, low * ms (all time high * ms)" [lindex $lines 0]
        assert_equal [string repeat - 80] [lindex $lines 1]
        assert_error "ERR No samples available for event 'nosuch'" {r latency graph nosuch}
        assert_match "*1. command: * latency spikes (average *ms, mean deviation *ms, period *" [r latency doctor]
        assert_match "*Slow Log*" [r latency doctor]
    }

    test {the doctor names the slowest command of the command log, its first words and its client} {
        r commandlog reset slow
        r client setname tired
        r debug sleep 0.03
        r config set commandlog-execution-slower-than -1
        set slowest {}
        foreach entry [r commandlog get -1 slow] {
            if {$slowest eq {} || [lindex $entry 2] > [lindex $slowest 2]} {set slowest $entry}
        }
        lassign $slowest id time us words address name
        set more [expr {[llength $words] > 4 ? " ..." : ""}]
        assert_match "*- The slowest command there took [expr {$us / 1000}] ms: [lrange $words 0 3]$more (client $address, name tired, COMMANDLOG entry $id).\n*" \
            [r latency doctor]
        r config set commandlog-execution-slower-than 10000
        r client setname {}
    }

    test {freeing an expired or evicted collection is a latency event} {
        # In slices large values are freed by another thread.
        r config set latency-monitor-threshold 1 lazyfree-lazy-expire no lazyfree-lazy-eviction no command-slice-us 0
        foreach {event death} {expire-del {r pexpire doomed 1} eviction-del {
            r config set maxmemory-policy allkeys-lru maxmemory 1
        }} {
            # Larger and larger sets, until freeing one takes a millisecond.
            for {set parts 1} {[r latency history $event] eq {} && $parts <= 64} {incr parts $parts} {
                for {set i 0} {$i < $parts} {incr i} {
                    set members {}
                    for {set j 0} {$j < 5000} {incr j} {lappend members $i:$j}
                    r sadd doomed {*}$members
                }
                eval $death
                wait_for_condition 500 20 {[r exists doomed] == 0}
                r config set maxmemory 0
            }
            assert {[llength [r latency history $event]] > 0} $event
        }
        r config set latency-monitor-threshold 20 lazyfree-lazy-expire yes lazyfree-lazy-eviction yes command-slice-us 500
        r latency reset
        r debug sleep 0.03
    }

    test {RESET resets the named events, or all} {
        assert_equal 0 [r latency reset nosuch]
        assert_equal 1 [r latency reset command nosuch]
        assert_equal {} [r latency latest]
        r config set latency-monitor-threshold 0
        assert_equal 0 [r latency reset]
    }

    test {HISTOGRAM counts calls, by command and by container} {
        r config resetstat
        r set k v
        r set k v
        r get k
        r client id
        catch {r incr k}
        set all [r latency histogram]
        assert_equal 2 [dict get $all set calls]
        assert_equal 1 [dict get $all incr calls]
        assert_equal 2 [lindex [dict get $all set histogram_usec] end]
        set some [r latency histogram get client nosuch]
        assert_equal {client|id get} [lsort [dict keys $some]]
        r config set latency-tracking no
        r config resetstat
        r set k v
        assert_equal {} [r latency histogram]
        r config set latency-tracking yes
    }

    test {percentiles of INFO latencystats follow the directive} {
        r config set latency-tracking-info-percentiles "0 50 100"
        r config resetstat
        r set k v
        assert_match *latency_percentiles_usec_set:p0=*,p50=*,p100=* [r info latencystats]
        r config set latency-tracking-info-percentiles ""
        r config set latency-tracking-info-percentiles "50 99 99.9"
        assert_match *latency_percentiles_usec_set:p50=*,p99=*,p99.9=* [r info latencystats]
    }

    test {LATENCY HELP and errors} {
        assert_match "LATENCY <subcommand>*" [lindex [r latency help] 0]
        assert_error "ERR wrong number of arguments for 'latency|history' command" {r latency history}
        assert_error "ERR unknown subcommand 'foo'. Try LATENCY HELP." {r latency foo}
    }
}
