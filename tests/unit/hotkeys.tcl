# SPDX-License-Identifier: BSD-3-Clause
#
# HOTKEYS: the most frequently requested keys, estimated from a sample.

start_server {tags {hotkeys} overrides {save ""}} {
    proc hot_keys {args} {
        set keys {}
        foreach entry [dict get [r hotkeys get {*}$args] keys] {lappend keys [dict get $entry key]}
        return $keys
    }

    # 40 % of the requests access one key, 20 % another, each of the rest a key of its own.
    proc ask {requests} {
        set batch {}
        for {set i 0} {$i < $requests} {incr i} {
            set key [expr {$i % 5 < 2 ? "hottest" : $i % 5 == 2 ? "hot" : "cold:$i"}]
            append batch "GET $key\r\n"
        }
        set s [raw_connect]
        raw_send $s $batch
        for {set i 0} {$i < $requests} {incr i} {raw_reply $s}
        raw_close $s
    }

    test {HOTKEYS without any request} {
        r hotkeys reset
        assert_equal {} [dict get [r hotkeys get] keys]
        assert_equal {256 10} [list [dict get [r hotkeys get] requests-per-sample] [dict get [r hotkeys get] half-life-seconds]]
    }

    test {the hottest keys come first, with their share} {
        r hotkeys reset
        ask 40000
        set answer [r hotkeys get]
        assert_range [dict get $answer samples] 60 800
        assert_equal {hottest hot} [lrange [hot_keys] 0 1]
        set first [lindex [dict get $answer keys] 0]
        assert_range [dict get $first percentage] 20.0 60.0
        assert_equal {0 0} [list [dict get $first db] [expr {int([dict get $first requests-per-second-error])}]]
        # One meaning everywhere: the keys' rates add up to at most that of all requests.
        set sum 0
        foreach entry [dict get $answer keys] {
            set sum [expr {$sum + [dict get $entry requests-per-second] - [dict get $entry requests-per-second-error]}]
        }
        assert {$sum <= 1.0001 * [dict get $answer requests-per-second]} $answer
        assert {[llength [hot_keys]] <= 64}
        assert_equal {hottest} [hot_keys count 1]
    }

    test {HOTKEYS: the rate is that of the requests, also in large batches} {
        r hotkeys reset
        set started [clock milliseconds]
        ask 100000
        # Samples that lie before the first or after the last request of a second make a difference.
        set rate [dict get [r hotkeys get] requests-per-second]
        set seconds [expr {max(1.0, ([clock milliseconds] - $started) / 1000.0)}]
        assert_range $rate [expr {80000 / $seconds * 0.5}] [expr {120000 / $seconds * 2}]
    }

    test {HOTKEYS: requests count half after ten seconds, and are forgotten} {
        r hotkeys reset
        ask 20000
        assert {"hottest" in [hot_keys]}
        set before [dict get [lindex [dict get [r hotkeys get] keys] 0] requests-per-second]
        wait_for_condition 300 100 {[llength [hot_keys]] == 0 ||
            [dict get [lindex [dict get [r hotkeys get] keys] 0] requests-per-second] < $before / 2} else {fail [r hotkeys get]}
    }

    test {HOTKEYS RESET clears the counters} {
        assert_equal OK [r hotkeys reset]
        assert_equal {} [hot_keys]
    }

    test {HOTKEYS refuses unknown arguments} {
        assert_error "ERR syntax error" {r hotkeys get 1}
        assert_error "ERR syntax error" {r hotkeys get cnt 1}
        assert_error "ERR COUNT must be positive" {r hotkeys get count 0}
        assert_error "ERR value is not an integer or out of range" {r hotkeys get count x}
        assert_error "ERR unknown subcommand 'foo'. Try HOTKEYS HELP." {r hotkeys foo}
    }
}

# What HOTKEYS GET says of a session.
proc session {} {
    set reply [r hotkeys get]
    assert_equal 1 [llength $reply]
    return [lindex $reply 0]
}

start_server {tags {hotkeys} overrides {save ""}} {
    test {HOTKEYS START measures commands, STOP ends that, RESET forgets it} {
        assert_equal {} [r hotkeys stop]
        assert_equal OK [r hotkeys start metrics 2 cpu net]
        assert_error "ERR hotkey tracking session already in progress" {r hotkeys start metrics 1 cpu}
        assert_error "ERR hotkey tracking session in progress, stop tracking first" {r hotkeys reset}
        for {set i 0} {$i < 20} {incr i} {r set large [string repeat x 10000]}
        r set small x
        r ping
        set got [session]
        assert_equal {1 1 {{0 16383}}} [list [dict get $got tracking-active] [dict get $got sample-ratio] [dict get $got selected-slots]]
        assert_equal large [lindex [dict get $got by-net-bytes] 0]
        # *3 $3 set $5 large $5 10000 +OK
        assert_equal [expr {20 * (4 + 9 + 11 + 8 + 10002 + 5)}] [lindex [dict get $got by-net-bytes] 1]
        assert_equal {small 36} [lrange [dict get $got by-net-bytes] 2 3]
        assert_equal [expr {20 * 10039 + 36}] [dict get $got total-net-bytes]
        assert {[dict get $got net-bytes-all-commands-all-slots] >= 20 * 10039 + 36 + 14 + 7}
        assert {[dict get $got all-commands-all-slots-us] >= [dict get $got by-cpu-time-us large]}
        assert_equal OK [r hotkeys stop]
        r set small x
        set stopped [session]
        assert_equal 0 [dict get $stopped tracking-active]
        assert_equal [dict get $got by-net-bytes] [dict get $stopped by-net-bytes]
        assert_equal $stopped [session]
        assert {[dict exists [r hotkeys get count 1] keys]}
        assert_equal OK [r hotkeys reset]
        assert {[dict exists [r hotkeys get] keys]}
    }

    test {HOTKEYS START: a session has the metrics and the number of keys that were asked for} {
        assert_equal OK [r hotkeys start metrics 1 net count 2]
        for {set i 1} {$i <= 400} {incr i} {r set key:$i [string repeat x $i]}
        set got [session]
        assert_equal {0 0 1 1} [list [dict exists $got by-cpu-time-us] [dict exists $got total-cpu-time-user-ms] \
            [dict exists $got by-net-bytes] [dict exists $got total-net-bytes]]
        assert_equal 4 [llength [dict get $got by-net-bytes]]
        assert_equal OK [r hotkeys stop]
        assert_equal OK [r hotkeys start metrics 1 cpu]
        set got [session]
        assert_equal {1 1 0 {}} [list [dict exists $got by-cpu-time-us] [dict exists $got total-cpu-time-sys-ms] \
            [dict exists $got total-net-bytes] [dict get $got by-cpu-time-us]]
        r hotkeys stop
        r hotkeys reset
    }

    test {HOTKEYS START: commands of a transaction count one by one, those of scripts as the script} {
        r hotkeys start metrics 1 net
        r multi
        r set a xx
        r mset b 1 c 2
        r exec
        set costs [dict get [session] by-net-bytes]
        assert_equal {a b c} [lsort [dict keys $costs]]
        assert_equal [dict get $costs b] [dict get $costs c]
        r hotkeys stop
        r hotkeys start metrics 1 net
        r eval {redis.call('set', KEYS[1], 1); redis.call('set', KEYS[2], 2)} 2 s t
        assert_equal {s t} [lsort [dict keys [dict get [session] by-net-bytes]]]
        r hotkeys stop
        r hotkeys reset
    }

    test {HOTKEYS START: a session ends after its duration} {
        r hotkeys start metrics 1 net duration 1
        r set a x
        wait_for_condition 500 10 {[dict get [session] tracking-active] == 0}
        assert_equal 1000 [dict get [session] collection-duration-ms]
        r set later x
        assert_equal a [dict keys [dict get [session] by-net-bytes]]
        assert_equal {} [r hotkeys stop]
        assert_equal OK [r hotkeys start metrics 1 net]
        r hotkeys stop
        assert_equal OK [r hotkeys reset]
    }

    test {HOTKEYS START: SAMPLE measures the keys of some commands} {
        r hotkeys start metrics 1 net sample 1000000
        for {set i 0} {$i < 10} {incr i} {r set a x}
        assert_equal {{} 0} [list [dict get [session] by-net-bytes] [dict get [session] total-net-bytes]]
        r hotkeys stop
        r hotkeys reset
    }

    test {HOTKEYS START refuses malformed requests} {
        foreach {words error} {
            {} "ERR METRICS parameter is required"
            {count 5 metrics 1 cpu} "ERR METRICS parameter is required"
            {metrics} "ERR METRICS parameter is required"
            {metrics 0 cpu} "ERR METRICS count must be > 0 and <= 2"
            {metrics x cpu} "ERR METRICS count must be > 0 and <= 2"
            {metrics 3 cpu net} "ERR METRICS count must be > 0 and <= 2"
            {metrics 1 foo} "ERR METRICS no valid metrics passed. Supported: CPU|NET"
            {metrics 2 net NET} "ERR METRICS NET defined more than once!"
            {metrics 2 cpu} "ERR METRICS count does not match number of metric types provided"
            {metrics 1 cpu net} "ERR syntax error"
            {metrics 1 cpu count} "ERR syntax error"
            {metrics 1 cpu count 0} "ERR COUNT must be between 1 and 64"
            {metrics 1 cpu count 65} "ERR COUNT must be between 1 and 64"
            {metrics 1 cpu duration 0} "ERR DURATION must be between 1 and 1000000"
            {metrics 1 cpu duration 1000001} "ERR DURATION must be between 1 and 1000000"
            {metrics 1 cpu sample 0} "ERR SAMPLE ratio must be positive"
            {metrics 1 cpu slots 1 5} "ERR SLOTS parameter cannot be used in non-cluster mode"
        } {
            assert_error $error {r hotkeys start {*}$words}
        }
        assert {[dict exists [r hotkeys get] keys]}
    }
}

start_server {tags {hotkeys cluster} overrides {save "" cluster-enabled yes}} {
    test {HOTKEYS START: SLOTS restricts a session} {
        r cluster addslotsrange 0 16383
        wait_for_condition 500 10 {[string match "*cluster_state:ok*" [r cluster info]]}
        # foo is in slot 12182, bar in 5061, zap in another one
        assert_equal OK [r hotkeys start metrics 2 net cpu slots 3 12182 5061 5062]
        foreach key {foo bar zap} {r set $key x}
        set got [session]
        assert_equal {{5061 5062} 12182} [dict get $got selected-slots]
        assert_equal {bar foo} [lsort [dict keys [dict get $got by-net-bytes]]]
        assert_equal 68 [dict get $got net-bytes-all-commands-selected-slots]
        assert {[dict get $got net-bytes-all-commands-all-slots] >= 102}
        assert {[dict get $got all-commands-selected-slots-us] <= [dict get $got all-commands-all-slots-us]}
        assert {![dict exists $got sampled-commands-selected-slots-us]}
        r hotkeys stop
        assert_equal OK [r hotkeys start metrics 1 net sample 2 slots 1 5061]
        assert {[dict exists [session] net-bytes-sampled-commands-selected-slots]}
        r hotkeys stop
        r hotkeys reset
        foreach {words error} {
            {slots 0} "ERR SLOTS count must be between 1 and 16384"
            {slots 1 16384} "ERR Invalid or out of range slot"
            {slots 1 x} "ERR Invalid or out of range slot"
            {slots 2 5} "ERR not enough slot numbers provided"
            {slots 2 5 5} "ERR duplicate slot number"
        } {
            assert_error $error {r hotkeys start metrics 1 cpu {*}$words}
        }
    }
}
