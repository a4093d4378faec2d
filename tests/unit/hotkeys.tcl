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
        assert_equal 256 [dict get [r hotkeys get] requests-per-sample]
    }

    test {the hottest keys come first, with their share} {
        r hotkeys reset
        ask 40000
        set answer [r hotkeys get]
        assert_range [dict get $answer samples] 60 800
        assert_equal {hottest hot} [lrange [hot_keys] 0 1]
        set first [lindex [dict get $answer keys] 0]
        assert_range [dict get $first percentage] 20.0 60.0
        assert_equal {0 0} [list [dict get $first db] [dict get $first samples-error]]
        assert {[llength [hot_keys]] <= 64}
        assert_equal {hottest} [hot_keys count 1]
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
