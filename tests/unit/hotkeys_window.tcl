# SPDX-License-Identifier: BSD-3-Clause
#
# HOTKEYS in the form of Valkey 9.2: windows, what is counted, what clears them, directives, INFO.

# The keys of the last window, hottest first, as "key" or "key@db".
proc window_keys {} {
    set keys {}
    foreach entry [r hotkeys get] {
        lappend keys [dict get $entry key][expr {[dict get $entry db] ? "@[dict get $entry db]" : ""}]
    }
    return $keys
}

# Runs the body until a window that has counted something was finished.
proc in_window {body} {
    r hotkeys reset
    wait_for_condition 500 10 {[uplevel 1 $body; llength [r hotkeys get]] > 0}
}

set settings {hotkeys-top-k 5 hotkeys-sampling-percentage 100 save ""}
start_server [list tags {hotkeys} overrides $settings] {
    test {HOTKEYS GET: maps of key, db and qps, hottest first} {
        assert_equal {} [r hotkeys get]
        in_window {
            for {set i 0} {$i < 8} {incr i} {r get hot}
            for {set i 0} {$i < 4} {incr i} {r incr warm}
            r get cold
        }
        assert_equal {hot warm cold} [window_keys]
        set first [lindex [r hotkeys get] 0]
        assert_equal {key db qps} [dict keys $first]
        assert {[dict get $first qps] > 0}
        set kind [expr {[resp3] ? "map" : "array"}]
        assert_equal $kind [lindex [r -typed hotkeys get] 1 0 0]
        assert {[info_field hotkeys_last_window_samples] > 0}
        assert {[info_field hotkeys_last_window_duration_ms] >= 1000}
    }

    test {HOTKEYS: the rate is the number of accesses by the length of the window} {
        in_window {for {set i 0} {$i < 20} {incr i} {r get only}}
        set rate [dict get [lindex [r hotkeys get] 0] qps]
        set samples [info_field hotkeys_last_window_samples]
        set ms [info_field hotkeys_last_window_duration_ms]
        assert_equal [expr {round(1000.0 * $samples / $ms)}] $rate
    }

    test {HOTKEYS counts reads, writes, misses and deletions, each key of a command} {
        r select 9
        in_window {
            r mset a 1 b 2
            r del a b
            r unlink a
            r eval {return redis.call('get', KEYS[1])} 1 a
            r multi
            r get a
            r exec ifeq z z
        }
        r select 0
        set keys [window_keys]
        assert_equal {a@9 b@9} [lrange $keys 0 1]
        assert_equal {a@9 b@9} $keys
    } {needs:select}

    test {HOTKEYS does not count OBJECT and DEBUG} {
        r set seen 1
        in_window {
            r object encoding seen
            r debug object seen
            r get other
        }
        assert_equal {other} [window_keys]
    } {needs:debug}

    test {HOTKEYS reports at most hotkeys-top-k keys} {
        in_window {for {set i 0} {$i < 20} {incr i} {r get key:$i}}
        assert_equal 5 [llength [r hotkeys get]]
        in_window {
            for {set i 0} {$i < 20} {incr i} {
                r get often
                r get key:$i
            }
        }
        assert_equal often [lindex [window_keys] 0]
        # Those that the last window has found remain.
        r config set hotkeys-top-k 2
        assert_equal 2 [llength [r hotkeys get]]
        assert_equal often [lindex [window_keys] 0]
        r config set hotkeys-top-k 5
    }

    test {HOTKEYS: RESET, FLUSHDB and FLUSHALL clear the last window} {
        foreach command {{hotkeys reset} flushdb flushall {debug reload}} {
            in_window {r get a}
            r {*}$command
            assert_equal {} [r hotkeys get]
            assert_equal {0 0} [list [info_field hotkeys_last_window_samples] [info_field hotkeys_last_window_duration_ms]]
        }
    } {needs:debug}

    test {hotkeys-top-k 0 is off; HOTKEYS GET COUNT has its own form in either case} {
        assert {[dict exists [r hotkeys get count 3] half-life-seconds]}
        r config set hotkeys-top-k 0
        assert {[dict exists [r hotkeys get] half-life-seconds]}
        r config set hotkeys-top-k 5
        start_server {overrides {extended-commands no}} {
            assert_equal {} [r hotkeys get]
            assert_equal OK [r hotkeys reset]
            assert_error "ERR syntax error" {r hotkeys get count 3}
            assert_error "ERR unknown subcommand 'start'*" {r hotkeys start metrics 1 cpu}
            assert_match "*HOTKEYS*" [r hotkeys help]
        }
    }

    test {hotkeys directives: ranges, and INFO shows the section by name only} {
        foreach {name value} {hotkeys-top-k -1 hotkeys-top-k 1001 hotkeys-sampling-percentage 0 hotkeys-sampling-percentage 101
            hotkeys-window-seconds 0 hotkeys-window-seconds 301} {
            assert_error "ERR CONFIG SET failed*between*" {r config set $name $value}
        }
        assert {![string match "*# Hotkeys*" [r info]]}
        assert_match "*# Hotkeys*" [r info all]
        assert_match "# Hotkeys*" [r info hotkeys]
    }

    test {HOTKEYS: what a replica applies is not counted, but what its clients read} {
        start_server {overrides {hotkeys-top-k 5 hotkeys-sampling-percentage 100}} {
            r replicaof [srv -1 host] [srv -1 port]
            info_is master_link_status up
            in_window {
                r -1 set written 1
                r get read
            }
            assert_equal {read} [window_keys]
        }
    } {tls:skip}

    test {HOTKEYS: a sample of one percent finds the hottest key} {
        r config set hotkeys-sampling-percentage 1
        set s [raw_connect]
        in_window {
            raw_send $s [string repeat "GET hottest\r\n" 2000]
            for {set i 0} {$i < 2000} {incr i} {raw_reply $s}
        }
        raw_close $s
        assert_equal hottest [lindex [window_keys] 0]
        r config set hotkeys-sampling-percentage 100
    }
}
