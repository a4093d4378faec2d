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
