# SPDX-License-Identifier: BSD-3-Clause
#
# maxmemory: which keys each policy evicts, what is refused if none can be, and the effects.

start_server {tags {maxmemory} overrides {save "" enable-debug-command yes}} {
    # Sets maxmemory to the current use plus `bytes`.
    proc limit_to {bytes} {r config set maxmemory [expr {[info_field used_memory] + $bytes}]}

    proc fresh {policy} {
        r config set maxmemory 0
        r config set maxmemory-policy $policy
        r flushall sync
    }

    proc fill {count prefix args} {
        for {set i 0} {$i < $count} {incr i} {r set $prefix$i [string repeat x 2000] {*}$args}
    }

    test {in import mode no key is evicted, and commands that may need memory are refused} {
        fresh allkeys-lru
        r set here 1
        r config set import-mode yes maxmemory 1
        assert_error "OOM command not allowed when used memory > 'maxmemory'." {r set a 1}
        assert_equal 1 [r dbsize]
        r config set import-mode no
        wait_for_condition 500 20 {[r dbsize] == 0}
        r config set maxmemory 0
    }

    test {a string created by SETRANGE has no spare capacity} {
        fresh noeviction
        r setrange long 100000 x
        assert {[r memory usage long] < 120000}
        r append long y
        assert {[r memory usage long] > 150000}
    }

    test {used memory does not increase after a FLUSHALL} {
        fresh noeviction
        r debug populate 2000
        r flushall async
        wait_for_condition 500 20 {[info_field lazyfree_pending_objects] == 0}
        set used [info_field used_memory]
        set later [expr {[info_field server_time_usec] + 250000}]
        wait_for_condition 500 20 {[info_field server_time_usec] > $later}
        assert {[info_field used_memory] < $used + 30000}
    }

    # (spec/security-cases.md, second table: Valkey evicts all keys for 35 bytes)
    test {clients that announce 512 MB and send nothing cause no eviction} {
        fresh allkeys-lru
        for {set i 0} {$i < 500} {incr i} {r set key:$i [string repeat x 100]}
        limit_to 3000000
        r config resetstat
        for {set i 0} {$i < 50} {incr i} {raw_send [raw_connect [srv host] [srv port]] "*3\r\n\$3\r\nset\r\n\$1\r\nk\r\n\$536870912\r\n"}
        wait_for_condition 500 20 {[info_field connected_clients] > 50}
        assert_equal OK [r set one more]
        assert_equal {501 0} [list [r dbsize] [info_field evicted_keys]]
        r config set maxmemory 0
    }

    test {clients that never read are evicted at maxmemory-clients before any key} {
        fresh allkeys-lru
        for {set i 0} {$i < 100} {incr i} {r set key:$i [string repeat x 100]}
        r set long [string repeat x 100000]
        r config set maxmemory-clients 1mb
        limit_to 6000000
        r config resetstat
        for {set i 0} {$i < 10} {incr i} {
            set s [raw_connect [srv host] [srv port]]
            catch {for {set k 0} {$k < 20} {incr k} {raw_send $s [string repeat "*2\r\n\$3\r\nget\r\n\$4\r\nlong\r\n" 5]}}
            r ping
        }
        wait_for_condition 500 20 {[info_field evicted_clients] > 0 && [info_field connected_clients] < 10}
        assert_equal OK [r set one more]
        assert_equal {102 0} [list [r dbsize] [info_field evicted_keys]]
        r config set maxmemory 0 maxmemory-clients 0
    }

    test {subscribers that never read are evicted at maxmemory-clients before any key} {
        r flushall
        r config set maxmemory 0 maxmemory-policy allkeys-lru maxmemory-clients 3mb
        r config resetstat
        for {set i 0} {$i < 20} {incr i} {r setrange key:$i 100000 x}
        for {set i 0} {$i < 10} {incr i} {
            set subscriber [raw_connect]
            raw_send $subscriber "SUBSCRIBE channel\r\n"
            raw_reply $subscriber
        }
        r config set maxmemory [expr {[info_field used_memory] + 20000000}]
        set message [string repeat x 100000]
        wait_for_condition 2000 0 {[r publish channel $message] >= 0 && [info_field evicted_clients] > 0}
        assert_equal {0 20} [list [info_field evicted_keys] [r dbsize]]
        r config set maxmemory 0 maxmemory-clients 0
    }

    test {messages to clients that track evicted keys do not evict more} {
        r flushall
        r config set maxmemory 0 maxmemory-policy allkeys-lru maxmemory-eviction-tenacity 100
        set trackers {}
        for {set i 0} {$i < 10} {incr i} {
            set tracker [connect 3]
            $tracker client tracking on
            lappend trackers $tracker
        }
        for {set i 0} {$i < 200} {incr i} {
            r set $i[string repeat x 1000] value
            foreach tracker $trackers {$tracker get $i[string repeat x 1000]}
        }
        r config resetstat
        r config set maxmemory [expr {[info_field used_memory] - 20000}]
        wait_for_condition 500 10 {[info_field evicted_keys] > 0}
        for {set i 0} {$i < 5} {incr i} {r ping}
        set evicted [info_field evicted_keys]
        assert {$evicted < 150} "$evicted of 200"
        r config set maxmemory 0 maxmemory-eviction-tenacity 10
        foreach tracker $trackers {$tracker -close}
    }

    # What a transaction has queued is memory of the client.
    proc queue_megabytes {client count} {
        $client multi
        for {set i 0} {$i < 50 * $count} {incr i} {catch {$client set queued [string repeat x 20000]}}
    }

    # Waits until memory of the test before was freed, and returns the size of the dataset.
    proc dataset_of_keys {} {
        wait_for_condition 500 20 {[info_field connected_clients] == 1 && [info_field used_memory_dataset] < 4000000}
        return [info_field used_memory_dataset]
    }

    test {maxmemory-dataset: memory of clients evicts nothing, that of keys does} {
        fresh allkeys-random
        fill 1000 key:
        set limit [expr {[dataset_of_keys] + 500000}]
        r config set maxmemory-dataset $limit
        r config resetstat
        set client [connect]
        queue_megabytes $client 10
        for {set i 0} {$i < 20} {incr i} {r set key:$i [string repeat y 2000]}
        assert_equal {0 1000} [list [info_field evicted_keys] [r dbsize]]
        fill 2000 more:
        wait_for_condition 500 20 {[r ping] eq "PONG" && [info_field used_memory_dataset] <= $limit + 100000}
        assert {[info_field evicted_keys] > 500}
        assert {[r dbsize] > 700}
        $client discard
        wait_for_condition 500 20 {[r set one more] eq "OK" && [info_field used_memory_dataset] <= $limit + 100000}
        assert {[r dbsize] > 700}
        r config set maxmemory-dataset 0
    }

    test {maxmemory-dataset: messages that nobody reads and arguments of a running script evict nothing} {
        fresh allkeys-random
        fill 1000 key:
        r config set maxmemory-dataset [expr {[dataset_of_keys] + 500000}] client-output-buffer-limit "pubsub 0 0 0"
        r config resetstat
        set message [string repeat m 100000]
        foreach round {1 2 3} {
            set s [raw_connect]
            raw_send $s "SUBSCRIBE channel\r\n"
            wait_for_condition 100 20 {[lindex [r pubsub numsub channel] 1] == $round}
        }
        for {set i 0} {$i < 200} {incr i} {r publish channel $message}
        for {set i 0} {$i < 20} {incr i} {r set key:$i [string repeat y 2000]}
        assert {[info_field used_memory] > 10000000}
        assert_equal {0 1000} [list [info_field evicted_keys] [r dbsize]]
        for {set i 0} {$i < 3} {incr i} {
            assert_equal 5000000 [r eval {return #ARGV[1]} 0 [string repeat m 5000000]]
            r set key:$i [string repeat y 2000]
        }
        assert_equal {0 1000} [list [info_field evicted_keys] [r dbsize]]
        r config set maxmemory-dataset 0
    } {tls:skip}

    test {maxmemory: commands of which a part was received take an eighth of it from the keys} {
        fresh allkeys-random
        wait_for_condition 500 20 {[info_field connected_clients] == 1}
        fill 5000 key:
        limit_to 500000
        r config resetstat
        set limit [lindex [r config get maxmemory] 1]
        for {set i 0} {$i < 30} {incr i} {
            raw_send [set s($i) [raw_connect]] "*3\r\n\$3\r\nSET\r\n\$6\r\nlarge:\r\n\$2000000\r\n[string repeat q 900000]"
        }
        wait_for_condition 500 20 {[info_field mem_clients_normal] > 30 * 900000}
        for {set i 0} {$i < 300} {incr i} {r set new:$i [string repeat y 1000]}
        assert_range [info_field evicted_keys] 1 2500
        # When they are complete they count as any value.
        foreach i {0 1 2} {
            raw_send $s($i) [string repeat q 1100000] "\r\n"
            assert_equal +OK [raw_line $s($i)]
        }
        # Without them all memory counts again.
        foreach i [array names s] {raw_close $s($i)}
        wait_for_condition 500 20 {[r set last v] eq "OK" && [info_field used_memory] <= $limit + 100000}
        assert {[r dbsize] > 1000}
        r config set maxmemory 0
    } {tls:skip}

    test {maxmemory-dataset with noeviction refuses commands that may need memory, and maxmemory still holds} {
        fresh noeviction
        fill 1000 key:
        r config set maxmemory-dataset [expr {[dataset_of_keys] / 2}]
        assert_error "OOM command not allowed when the dataset > 'maxmemory-dataset'." {r set a 1}
        assert_equal {1000 1} [list [r dbsize] [r del key:0]]
        r config set maxmemory-dataset 1gb
        assert_equal OK [r set a 1]
        limit_to -50000
        assert_error "OOM command not allowed when used memory > 'maxmemory'." {r set b 1}
        r config set maxmemory 0 maxmemory-dataset 0
        assert_equal OK [r set b 1]
    }

    test {with noeviction, commands that may need memory are refused} {
        fresh noeviction
        r set here 1
        limit_to -50000
        assert_error "OOM command not allowed when used memory > 'maxmemory'." {r set a 1}
        assert_error "OOM command not allowed when used memory > 'maxmemory'." {r append here 1}
        assert_equal 1 [r get here]
        assert_equal 1 [r del here]
        r config set maxmemory 0
        assert_equal OK [r set a 1]
    }

    test {MULTI: a write is refused when it is queued, or makes EXEC fail} {
        fresh noeviction
        set other [connect]
        r multi
        r get a
        $other config set maxmemory 1
        assert_error "OOM command not allowed*" {r set a 1}
        assert_error "EXECABORT Transaction discarded because of previous errors." {r exec}
        $other config set maxmemory 0
        r multi
        r set a 1
        $other config set maxmemory 1
        assert_error "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'." {r exec}
        r multi
        r get a
        assert_equal {{}} [r exec]
        $other config set maxmemory 0
    }

    foreach policy {allkeys-lru allkeys-lfu allkeys-random volatile-lru volatile-lfu volatile-random volatile-ttl} {
        test "memory stays below the limit with $policy" {
            fresh $policy
            set limit [expr {[info_field used_memory] + 2000000}]
            r config set maxmemory $limit
            r config resetstat
            set expire [expr {[string match volatile* $policy] ? {ex 1000} : {}}]
            fill 2000 key: {*}$expire
            # Eviction that reaches its time limit goes on between commands, so both counts come from one transaction.
            wait_for_condition 500 10 {[info_field used_memory] <= $limit + 100000}
            r multi
            r info stats
            r dbsize
            lassign [r exec] stats keys
            regexp {evicted_keys:(\d+)} $stats -> evicted
            assert_equal [expr {2000 - $keys}] $evicted
            assert_range $keys 1 1999
        }
    }

    foreach policy {volatile-lru volatile-lfu volatile-random volatile-ttl} {
        test "only keys with a time go with $policy" {
            fresh $policy
            fill 100 forever:
            fill 100 timed: ex 1000
            limit_to -100000
            fill 1 more: ex 1000
            assert_equal 100 [llength [r keys forever:*]]
            assert {[llength [r keys timed:*]] < 100}
            r config set maxmemory 1
            # (if eviction reaches its time limit, the next command is allowed)
            wait_for_condition 500 10 {[catch {r set a 1 ex 1000} answer] && [string match OOM* $answer]}
            assert_equal 100 [r dbsize]
        }
    }

    test {volatile-ttl evicts the keys with the shortest TTL} {
        fresh volatile-ttl
        for {set i 1} {$i <= 200} {incr i} {r set key:$i [string repeat x 2000] ex [expr {1000 * $i}]}
        r config set maxmemory-samples 64
        limit_to -200000
        wait_for_condition 100 20 {[r dbsize] < 150}
        set gone 0
        for {set i 1} {$i <= 60} {incr i} {incr gone [expr {![r exists key:$i]}]}
        assert {$gone >= 50}
        for {set i 150} {$i <= 200} {incr i} {assert_equal 1 [r exists key:$i]}
        r config set maxmemory-samples 5
    }

    test {allkeys-lfu keeps frequently used keys} {
        fresh allkeys-lfu
        r config set lfu-log-factor 0
        fill 200 cold:
        fill 20 warm:
        for {set round 0} {$round < 20} {incr round} {
            for {set i 0} {$i < 20} {incr i} {r get warm:$i}
        }
        r config set maxmemory-samples 64
        limit_to -200000
        wait_for_condition 100 20 {[r dbsize] < 160}
        assert_equal 20 [llength [r keys warm:*]]
        r config set maxmemory-samples 5
        r config set lfu-log-factor 10
    }

    test {maxmemory as a percentage of the machine's memory} {
        r config set maxmemory 50%
        assert_equal 50% [dict get [r config get maxmemory] maxmemory]
        set half [info_field maxmemory]
        assert_range $half 1000000 [expr {[info_field total_system_memory] / 2}]
        r config set maxmemory 25%
        assert_range [info_field maxmemory] [expr {$half / 2 - 100}] [expr {$half / 2 + 100}]
        foreach bad {101% -1% % 1.5% abc} {
            catch {r config set maxmemory $bad} answer
            assert_match "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - *argument must be*" $answer
        }
        r config set maxmemory 0
    }

    test {a limit may be any unsigned number of bytes, and is rewritten as it is} {
        foreach bytes {9223372036854775808 18446744073709551516 18446744073709551615} {
            r config set maxmemory $bytes
            assert_equal $bytes [dict get [r config get maxmemory] maxmemory]
            assert_equal $bytes [info_field maxmemory]
            r set k v
        }
        r config rewrite
        set file [open [srv config]]
        set text [read $file]
        close $file
        assert_match "*\nmaxmemory 18446744073709551615\n*" $text
        r config set maxmemory 100%
        assert_equal 100% [dict get [r config get maxmemory] maxmemory]
        assert_equal 1 [expr {[info_field maxmemory] < 1 << 60}]
        r config set maxmemory 0
    }

    test {keys are evicted from several databases} {
        fresh allkeys-random
        fill 300 a:
        r select 3
        fill 300 b:
        r select 9
        limit_to -600000
        wait_for_condition 100 20 {[llength [r keys *]] < 300}
        r select 3
        assert {[r dbsize] < 300}
        r select 9
    }

    test {a lowered limit is enforced without further requests} {
        fresh allkeys-lru
        fill 1000 key:
        set other [connect]
        $other config set maxmemory-eviction-tenacity 1
        limit_to -1000000
        wait_for_condition 100 50 {[info_field used_memory] <= [dict get [$other config get maxmemory] maxmemory] + 100000}
        assert {[r dbsize] < 1000}
        assert_match "*the new maxmemory value set via CONFIG SET*" [server_log]
        $other config set maxmemory-eviction-tenacity 10
    }

    test {evicted keys are propagated and watched} {
        fresh allkeys-random
        r set watched 1
        r watch watched
        set other [connect]
        $other config set maxmemory 1
        wait_for_condition 100 20 {[$other dbsize] == 0}
        $other config set maxmemory 0
        r multi
        r ping
        assert_equal {} [r exec]
    }

    test {maxmemory in a transaction and a large batch} {
        fresh allkeys-lru
        limit_to 1000000
        set limit [dict get [r config get maxmemory] maxmemory]
        set s [raw_connect]
        set batch "SELECT 9\r\n"
        for {set i 0} {$i < 2000} {incr i} {append batch "SET batch:$i [string repeat y 2000]\r\n"}
        raw_send $s $batch
        for {set i 0} {$i <= 2000} {incr i} {assert_equal "+OK\r\n" [raw_reply $s]}
        raw_close $s
        wait_for_condition 100 20 {[info_field used_memory] <= $limit + 100000}
        assert_range [r dbsize] 1 1999
        r config set maxmemory 0
    }
}

start_server {tags {maxmemory} overrides {save ""}} {
    test {what is loaded at start counts as the dataset, not as memory of the start} {
        r config set maxmemory 0
        for {set i 0} {$i < 2000} {incr i} {r set key:$i [string repeat x 1000]}
        set before [info_field used_memory_dataset]
        r save
        restart_server
        assert_equal 2000 [r dbsize]
        assert_range [info_field used_memory_dataset] [expr {$before / 2}] [expr {$before * 2}]
        assert {[info_field used_memory_startup] < 10000000}
    }
}
