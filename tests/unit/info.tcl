# INFO: the sections and their order, and the fields of Clients and Stats about connections.

# The titles of the sections in a text.
proc titles {text} {
    return [regexp -all -inline -line {^# [A-Za-z ]+(?=\r)} $text]
}

start_server {tags {info} overrides {enable-debug-command yes}} {
    test {INFO is a text: verbatim in RESP3} {
        lassign [r -typed info] type text
        assert_equal [expr {[resp3] ? {verbatim} : {bulk}}] $type
        assert_match [expr {[resp3] ? "txt:# Server\r\n*" : "# Server\r\n*"}] $text
        assert_equal "\r\n" [string range $text end-1 end]
    }

    test {eventloop_duration_cmd_sum counts commands of a batch that is full before the turn ends} {
        set before [info_field eventloop_duration_cmd_sum]
        # More requests than fit in a batch: the first ones run while the rest is being parsed.
        r -write "[resp::encode {debug sleep 0.03}][string repeat [resp::encode ping] 4000]"
        assert_equal OK [r -read]
        for {set i 0} {$i < 4000} {incr i} {assert_equal PONG [r -read]}
        # The clocks of some virtual machines differ by more than 5 %.
        assert_range [expr {[info_field eventloop_duration_cmd_sum] - $before}] 20000 100000000
    }

    test {every line of INFO is a title, a field or empty} {
        foreach line [split [r info everything] "\n"] {
            assert {[regexp {^(# [A-Z][A-Za-z ]*|[a-z0-9_.|A-Z-]+:.*|)\r?$} $line]} "line '$line'"
        }
    }

    test {sections come in their fixed order, a blank line between them} {
        assert_match "# Clients\r\n*\r\n\r\n# Stats\r\n*\r\n\r\n# CPU\r\n*" [r info cpu stats clients]
        assert_equal {{# Clients} {# Stats} {# CPU}} [titles [r info cpu stats clients]]
        assert_equal {{# Clients}} [titles [r info CLIENTS clients nosuch Clients]]
        assert_match "# Clients\r\n*\[0-9\]\r\n" [r info clients]
        assert {![string match "*\r\n\r\n*" [r info clients]]}
    }

    test {INFO of unknown sections is empty} {
        foreach names {nosuch {nosuch other} {{}} {"# Server"}} {
            assert_equal [expr {[resp3] ? {verbatim txt:} : {bulk {}}}] [r -typed info {*}$names]
        }
    }

    test {default, all and everything are sets of sections} {
        set default [titles [r info]]
        set all [titles [r info all]]
        assert_equal $default [titles [r info default]]
        assert_equal $default [titles [r info DEFAULT nosuch]]
        foreach title {"# Server" "# Clients" "# Memory" "# Stats" "# CPU" "# Errorstats" "# Keyspace"} {
            assert {$title in $default} $title
        }
        foreach title {"# Commandstats" "# Latencystats"} {
            assert {$title ni $default} $title
            assert {$title in $all} $title
            assert {$title in [titles [r info everything]]} $title
        }
        assert_equal {{# Commandstats}} [titles [r info commandstats]]
        set with [titles [r info default commandstats]]
        assert_equal [lsort [concat $default {{# Commandstats}}]] [lsort $with]
        assert_equal [lsearch $with "# Errorstats"] [expr {[lsearch $with "# Commandstats"] + 1}]
        foreach title $default {assert {$title in $all} $title}
    }

    test {Scripting Engines and the title Cluster Info belong to all and everything, not to the default} {
        foreach {request expected} {{} 0 default 0 all 1 everything 1} {
            set found [titles [r info {*}$request]]
            foreach title {"# Scripting Engines" "# Cluster Info"} {
                assert_equal $expected [expr {[lsearch -exact $found $title] >= 0}]
            }
        }
    }

    test {dump_payload_sanitizations counts packed values of payloads} {
        r config resetstat
        r hset sanitized f v
        r set plain v
        set payloads [list [r dump sanitized] [r dump plain]]
        assert_equal 0 [info_field dump_payload_sanitizations]
        foreach payload $payloads { r restore copy 0 $payload replace }
        assert_equal 1 [info_field dump_payload_sanitizations]
        r config resetstat
        assert_equal 0 [info_field dump_payload_sanitizations]
        r del sanitized plain copy
    }

    test {no section is repeated} {
        foreach words {{} all everything {all default everything clients}} {
            set titles [titles [r info {*}$words]]
            assert_equal [llength [lsort -unique $titles]] [llength $titles]
        }
    }

    test {the section Clients has the fields that tools expect} {
        set names [lmap line [lrange [split [r info clients] "\n"] 1 end-1] {lindex [split $line :] 0}]
        assert_equal [list connected_clients cluster_connections connected_priority_clients maxclients client_recent_max_input_buffer \
            client_recent_max_output_buffer blocked_clients tracking_clients pubsub_clients watching_clients \
            clients_in_timeout_table total_watched_keys total_blocking_keys total_blocking_keys_on_nokey \
            paused_reason paused_actions paused_timeout_milliseconds] $names
        assert_equal none [info_field paused_reason]
        assert_equal 0 [info_field blocked_clients]
    }

    test {the section Memory shows the limit and the policy} {
        assert_match "*\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\n*" [r info memory]
        r config set maxmemory 3gb maxmemory-policy allkeys-lfu
        assert_match "*\r\nmaxmemory:3221225472\r\nmaxmemory_human:3.00G\r\nmaxmemory_policy:allkeys-lfu\r\n*" \
            [r info memory]
        r config set maxmemory 0 maxmemory-policy noeviction
    }

    test {connected_clients counts connections as they open and close} {
        set before [info_field connected_clients]
        set a [connect]
        set b [connect]
        assert_equal [expr {$before + 2}] [info_field connected_clients]
        $a -close
        $b -close
        wait_for_condition 100 10 {[info_field connected_clients] == $before}
    }

    test {connections, bytes, reads and writes are counted} {
        foreach name {total_connections_received total_net_input_bytes total_net_output_bytes
            total_reads_processed total_writes_processed
        } {
            set count($name) [info_field $name]
        }
        set c [connect 2]
        $c echo [string repeat x 5000]
        assert_equal [expr {$count(total_connections_received) + 1}] [info_field total_connections_received]
        foreach name {total_net_input_bytes total_net_output_bytes} {
            assert {[info_field $name] >= $count($name) + 5000} $name
        }
        foreach name {total_reads_processed total_writes_processed} {
            assert {[info_field $name] > $count($name)} $name
        }
    }

    test {rates rise with the traffic and fall with it} {
        set value [string repeat x 1000000]
        # A sample may lie between the arrival of a part of the request and the reply: both from one report.
        wait_for_condition 200 20 {[r echo $value] ne "" &&
            [regexp {instantaneous_input_kbps:([\d.]+).*instantaneous_output_kbps:([\d.]+)} [r info stats] all in out] &&
            $in > 100 && $out > 0}
        wait_for_condition 100 100 {[info_field instantaneous_input_kbps] < 100}
    }

    test {the largest buffers of the last seconds are shown for a while} {
        set s [raw_connect]
        raw_send $s "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$500000\r\n[string repeat x 400000]"
        wait_for_condition 200 20 {[info_field client_recent_max_input_buffer] >= 400000}
    }

    test {CONFIG RESETSTAT resets the counters} {
        wait_for_condition 200 20 {[info_field connected_clients] == 1} ;# no other client is connected
        r echo [string repeat x 5000]
        r config resetstat
        assert_equal 0 [info_field total_connections_received]
        foreach name {total_net_input_bytes total_net_output_bytes} {
            assert_range [info_field $name] 0 60000 $name
        }
        assert_range [info_field total_reads_processed] 0 20
        assert_range [info_field instantaneous_input_kbps] 0 10000
    }
}

start_server {tags {info} overrides {maxclients 3}} {
    test {connections beyond maxclients are refused and counted} {
        assert_equal 3 [info_field maxclients]
        assert_equal 0 [info_field rejected_connections]
        set a [connect 2]
        set b [connect 2]
        $a ping
        $b ping
        set s [raw_connect]
        assert_equal "-ERR max number of clients reached\r\n" [raw_rest $s]
        assert_equal 1 [info_field rejected_connections]
        assert_equal 3 [info_field connected_clients]
        $a -close
        wait_for_condition 100 10 {[info_field connected_clients] == 2}
        set c [connect 2]
        assert_equal PONG [$c ping]
    } tls:skip
}

start_server {tags {info} overrides {client-query-buffer-limit 1mb client-output-buffer-limit {normal 2mb 0 0}}} {
    test {clients closed for their buffers are counted} {
        set s [raw_connect]
        raw_send $s "*2\r\n\$4\r\nECHO\r\n\$10000000\r\n"
        catch {raw_send $s [string repeat x 5000000]}
        raw_rest $s
        wait_for_condition 100 10 {[info_field client_query_buffer_limit_disconnections] == 1}
        r set big [string repeat x 500000]
        set s [raw_connect]
        catch {raw_send $s [string repeat "GET big\r\n" 200]}
        wait_for_condition 100 20 {[info_field client_output_buffer_limit_disconnections] == 1}
        assert_equal 1 [info_field client_query_buffer_limit_disconnections]
    }
}

start_server {tags {info} overrides {save "" enable-debug-command yes}} {
    test {INFO keysizes shows the sizes of values, only on request} {
        r set "" ""
        r set one 1
        r set many [string repeat x 1500]
        r hset h a 1 b 2 c 3
        r sadd s 1 2 3 4
        r select 3
        r set other [string repeat x 100]
        r select 0
        set text [r info keysizes]
        foreach line {
            "# Keysizes" "db0_distrib_strings_sizes:0=1,1=1,1K=1" "db0_distrib_hashes_items:2=1" "db0_distrib_sets_items:4=1"
            "db3_distrib_strings_sizes:64=1"
        } {
            assert_match "*$line\r\n*" $text
        }
        assert_equal -1 [string first keysizes [string tolower [r info everything]]]
        r flushall
        r debug populate 50000 key 20
        assert_match "*db0_distrib_strings_sizes:16=50000\r\n*" [r info keysizes]
    }

    test {MEMORY EXPLAIN shows types, prefixes and recommendations} {
        r flushall
        r debug populate 3000 user: 50
        r debug populate 30 big: 20000
        r hset hash a 1
        set text [r memory explain]
        assert_match "*Used memory (3031 keys, 3031 sampled)*keys and values*total: used_memory*100.0 %*" $text
        assert_match "*Keys by type and encoding*string (raw)*30 keys*hash (listpack)*1 keys*" $text
        assert_match "*Keys by prefix*big:* 30 keys*user:* 3000 keys*(none)* 1 keys*Recommendations*maxmemory is not set*" $text
        assert_match "*(3031 keys, 1?? sampled)*" [r memory explain samples 100]
        foreach bad {0 -1 1000001} {
            assert_error "ERR SAMPLES must be between 1 and 1000000" {r memory explain samples $bad}
        }
        assert_error "ERR value is not an integer or out of range" {r memory explain samples x}
        assert_error "ERR syntax error" {r memory explain foo 1}
        assert_error "ERR syntax error" {r memory explain samples}
        r flushall
        assert_match "*0 keys*Recommendations*" [r memory explain]
    }

    test {MEMORY EXPLAIN recommends compression where it gains, and not when it is used} {
        r flushall
        r eval {
            for i = 1, 6000 do
                redis.call('set', 'sess:' .. i, '{"session":"' .. redis.sha1hex(i) .. '","language":"en","device":"phone",' ..
                    '"roles":["customer","editor"],"seen":"front page of the shop","cart":[],"tracking":false,' ..
                    '"country":"none","currency":"none","referrer":"https://shop.example.org/campaign/autumn"}')
            end
            for i = 1, 20000 do redis.call('set', 'n:' .. i, i) end
        } 0
        set text [r memory explain]
        if {![string match "*value-compression idle would save*" $text]} {
            assert_error "*Zstandard*" {r config set value-compression idle}
        } else {
            assert {[regexp {\n      sess:\*: \d\.\d\dM, (\d\d) %; a read of one costs \d+\.\d us more\n} $text - percent]}
            assert {$percent > 50}
            assert {![string match "*n:\\*: *" $text]}
            r config set value-compression idle
            assert {![string match "*value-compression*" [r memory explain]]}
            r config set value-compression no
        }
        r flushall
    }
}

start_server {tags {info}} {
    test {only error codes of scripts are not listed once there are 128} {
        for {set i 0} {$i < 140} {incr i} {catch {r eval "return redis.error_reply('E$i text')" 0}}
        r set k v
        catch {r lpush k x}
        catch {r nosuch}
        set listed [r info errorstats]
        assert_match "*errorstat_WRONGTYPE:count=1*" $listed
        assert_match "*errorstat_ERR:count=1*" $listed
        assert_match "*errorstat_ERRORSTATS_OVERFLOW:count=12*" $listed
    }

    test {CONFIG RESETSTAT resets lazyfreed_objects} {
        r eval {for i = 1, 1000 do redis.call('sadd', KEYS[1], i) end} 1 k2
        r unlink k2
        wait_for_condition 500 5 {[info_field lazyfreed_objects] == 1}
        r config resetstat
        assert_equal 0 [info_field lazyfreed_objects]
    }

    test {rdb_changes_since_last_save counts as in Valkey} {
        r flushall
        r rpush l b a c
        r xadd s 1-1 f v
        r xgroup create s g 0
        r geoadd g 1 1 a 2 2 b
        foreach {request changes} {
            {sort l alpha store l2} 3
            {geosearchstore g2 g fromlonlat 1 1 byradius 1000 km} 2
            {xreadgroup group g new streams s 0} 2
            {xclaim s g other 0 1-1} 1
            {xadd s maxlen 1 2-1 f v} 1
            {ltrim l 0 -1} 0
        } {
            set before [info_field rdb_changes_since_last_save]
            r {*}$request
            assert_equal $changes [expr {[info_field rdb_changes_since_last_save] - $before}] $request
        }
    }
}

foreach enabled {no yes} {
    start_server [list tags {info} overrides [list cluster-enabled $enabled save ""]] {
        test "used_memory_overhead is below used_memory, cluster-enabled $enabled" {
            set memory [r info memory]
            foreach name {used_memory used_memory_overhead used_memory_dataset} {
                assert {[regexp "\n$name:(\\d+)" $memory all $name]}
            }
            assert {$used_memory_overhead < $used_memory && $used_memory_dataset > 0} "$used_memory_overhead of $used_memory"
            assert_equal $used_memory [expr {$used_memory_overhead + $used_memory_dataset}]
        }
    }
}
