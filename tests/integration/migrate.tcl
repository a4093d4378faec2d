# SPDX-License-Identifier: BSD-3-Clause
#
# MIGRATE: keys of every type to another server, its options and errors, changes during the transfer.

source $::tests_dir/support/all_types.tcl

# Sends MIGRATE from a client of the outer server without waiting for the reply.
proc migrate_later {args} {
    set c [respConnect [srv -1 host] [srv -1 port] $::resp_version]
    $c -send migrate [srv host] [srv port] {*}$args
    return $c
}

proc blocked_on_source {count} {
    wait_for_condition 200 25 {[regexp {blocked_clients:(\d+)} [r -1 info clients] -> n] && $n == $count} else {
        fail "not $count clients are blocked"
    }
}

start_server {tags {migrate tls:skip}} {
    start_server {tags {migrate tls:skip}} {
        set host [srv host]
        set port [srv port]

        test {MIGRATE moves keys of every type, with their TTLs} {
            # The helper fills the default client's server, which is the target: copy from there first.
            fill_all_types
            set keys [r keys *]
            foreach k $keys {set before($k) [r debug digest-value $k]}
            assert_equal OK [r migrate [srv -1 host] [srv -1 port] "" 0 5000 keys {*}$keys]
            assert_equal 0 [r dbsize]
            assert_equal [llength $keys] [r -1 dbsize]
            foreach k $keys {assert_equal $before($k) [r -1 debug digest-value $k] $k}
            r -1 flushall
            r -1 set v 1 px 100000
            assert_equal OK [r -1 migrate $host $port v 3 5000]
            r select 3
            assert_range [r pttl v] 90000 100000
            r select 0
            assert_equal 0 [r -1 exists v]
        }

        test {MIGRATE: NOKEY, COPY, REPLACE, several keys, missing ones are skipped} {
            r -1 flushall
            r flushall
            assert_equal NOKEY [r -1 migrate $host $port k 0 1000]
            assert_equal NOKEY [r -1 migrate $host $port "" 0 1000 keys]
            r -1 mset a 1 b 2 c 3
            assert_equal OK [r -1 migrate $host $port a 0 1000 copy]
            assert_equal {1 1} [list [r get a] [r -1 get a]]
            assert_error "ERR Target instance replied with error: BUSYKEY Target key name already exists." {r -1 migrate $host $port a 0 1000}
            r -1 set a new
            assert_equal OK [r -1 migrate $host $port a 0 1000 replace]
            assert_equal new [r get a]
            assert_equal OK [r -1 migrate $host $port "" 0 1000 keys b none c]
            assert_equal {0 3} [list [r -1 dbsize] [r dbsize]]
        }

        test {MIGRATE: keys acknowledged before an error are moved} {
            r -1 flushall
            r flushall
            r -1 mset a 1 b 2 c 3
            r set b other
            assert_error "*BUSYKEY*" {r -1 migrate $host $port "" 0 1000 keys a b c}
            assert_equal b [r -1 keys *]
            assert_equal {1 other 3} [r mget a b c]
        }

        test {MIGRATE: errors of the request} {
            r -1 set k 1
            foreach words {{k 0 1000 bogus} {k 0 1000 auth} {k 0 1000 auth2 x}} {
                assert_error "ERR syntax error" {r -1 migrate $host $port {*}$words}
            }
            assert_error "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string" {r -1 migrate $host $port k 0 10 keys a}
            assert_error "ERR value is not an integer or out of range" {r -1 migrate $host $port k x 10}
            assert_error "ERR value is not an integer or out of range" {r -1 migrate $host $port k 0 x}
            assert_error "ERR Target instance replied with error: ERR DB index is out of range" {r -1 migrate $host $port k 9999 1000}
            assert_error "IOERR error or timeout writing to target instance" {r -1 migrate $host [free_port] k 0 1000}
            assert_error "IOERR error or timeout writing to target instance" {r -1 migrate $host notaport k 0 1000}
            assert_error "IOERR error or timeout connecting to the client" {r -1 migrate no.such.host.invalid 1 k 0 10000}
            assert_equal 1 [r -1 get k]
        }

        test {MIGRATE waits for a target that does not answer only until its timeout, and serves others meanwhile} {
            r -1 set k 1
            send_signal STOP [srv pid]
            set c [migrate_later k 0 100000]
            blocked_on_source 1
            assert_equal PONG [r -1 ping]
            set short [migrate_later k 0 50 copy]
            assert_error "IOERR error or timeout reading to target instance" {$short -read}
            assert_equal 1 [r -1 get k]
            send_signal CONT [srv pid]
            assert_equal OK [$c -read]
            assert_equal 0 [r -1 exists k]
            $c -close
            $short -close
        }

        test {MIGRATE: a key changed during the transfer is sent again, and a deleted one is deleted there} {
            r -1 flushall
            r flushall
            r -1 mset a old b old c old d old
            send_signal STOP [srv pid]
            set c [migrate_later "" 0 100000 keys a b c d]
            blocked_on_source 1
            # The keys are serialised when the connection is open; further rounds find the rest.
            r -1 append a new
            r -1 del b
            r -1 pexpire c 1000000
            send_signal CONT [srv pid]
            assert_equal OK [$c -read]
            assert_equal 0 [r -1 dbsize]
            assert_equal {oldnew {} old old} [r mget a b c d]
            assert_range [r pttl c] 900000 1000000
            $c -close
        }

        test {MIGRATE under writes: no write is lost} {
            r -1 flushall
            r flushall
            set writer [respConnect [srv -1 host] [srv -1 port] 2]
            for {set round 0} {$round < [scaled 10]} {incr round} {
                for {set i 0} {$i < 200} {incr i} {r -1 set k:$i 0}
                set keys [lsort [r -1 keys *]]
                set c [migrate_later "" 0 100000 replace keys {*}$keys]
                set total 0
                while {[r -1 exists k:100] == 1 && $total < 1000} {
                    $writer incr k:100
                    incr total
                }
                assert_equal OK [$c -read]
                $c -close
                # Increments before the move are there, those after it began a new key here.
                set there [r get k:100]
                set here [r -1 get k:100]
                if {$here eq ""} {set here 0}
                assert_equal $total [expr {$there + $here}]
                assert_equal 200 [r dbsize]
                r -1 flushall
                r flushall
            }
            $writer -close
        }

        test {MIGRATE in a transaction waits for the target} {
            r -1 flushall
            r flushall
            r -1 mset a 1 b 2
            r -1 multi
            r -1 migrate $host $port "" 0 1000 keys a b
            r -1 dbsize
            assert_equal {OK 0} [r -1 exec]
            assert_equal 2 [r dbsize]
        }

        test {MIGRATE: the client disconnects or is killed during the transfer} {
            r -1 set k 1
            send_signal STOP [srv pid]
            set c [migrate_later k 0 100000]
            blocked_on_source 1
            $c -close
            blocked_on_source 0
            send_signal CONT [srv pid]
            assert_equal 1 [r -1 get k]
            assert_equal OK [r -1 migrate $host $port k 0 1000 replace]
        }

        test {MIGRATE keeps connections, and replaces one that the target has closed} {
            r -1 set k 1
            assert_equal OK [r -1 migrate $host $port k 0 1000 replace]
            assert_match "*migrate_cached_sockets:\[1-9\]*" [r -1 info stats]
            r client kill type normal skipme yes
            r -1 set k 2
            assert_equal OK [r -1 migrate $host $port k 0 1000 replace]
            assert_equal 2 [r get k]
        }

        test {MIGRATE: large values arrive complete} {
            r -1 flushall
            r flushall
            set big [string repeat 0123456789 500000]
            r -1 set big $big
            for {set i 0} {$i < 300} {incr i} {r -1 set k:$i [string repeat x 5000]}
            assert_equal OK [r -1 migrate $host $port "" 0 10000 keys big {*}[lsort [r -1 keys k:*]]]
            assert_equal 301 [r dbsize]
            assert_equal $big [r get big]
            assert_equal 0 [r -1 dbsize]
        }

        test {COMMAND GETKEYS of MIGRATE} {
            assert_equal k [r command getkeys migrate h 1 k 0 1]
            assert_equal {a b} [r command getkeys migrate h 1 "" 0 1 copy keys a b]
            assert_equal {a b} [r command getkeys migrate h 1 "" 0 1 auth keys keys a b]
        }
    }

    start_server {tags {migrate tls:skip} overrides {requirepass secret}} {
        test {MIGRATE: the command log shows no password} {
            r -1 config set slowlog-log-slower-than 0
            r -1 slowlog reset
            r -1 set k v
            assert_equal OK [r -1 migrate [srv host] [srv port] k 0 5000 auth secret]
            assert_equal OK [r -1 eval {return redis.call('set', 'k', 'v')} 0]
            assert_error "*" {r -1 migrate [srv host] [srv port] k 0 5000 auth2 default wrong}
            assert_error "ERR syntax error*" {r -1 migrate [srv host] [srv port] k 0 5000 bad auth secret}
            assert_error "ERR syntax error*" {r -1 migrate [srv host] [srv port] k 0 5000 auth2 wrong}
            set logged [lsearch -all -inline [lmap e [r -1 slowlog get 20] {lindex $e 3}] migrate*]
            assert_equal 4 [llength $logged]
            foreach argv $logged {
                assert {[lsearch -regexp $argv {secret|wrong}] < 0} $argv
                assert_equal (redacted) [lindex $argv end]
            }
            r -1 config set slowlog-log-slower-than 10000
            r -1 del k
            r flushall
        }

        test {MIGRATE: AUTH and AUTH2; nothing is sent to a target that refuses} {
            set host [srv host]
            set port [srv port]
            r -1 set k 1
            assert_error "ERR Target instance replied with error: NOAUTH*" {r -1 migrate $host $port k 0 1000}
            assert_error "ERR Target instance replied with error: WRONGPASS*" {r -1 migrate $host $port k 0 1000 auth wrong}
            assert_equal 0 [r dbsize]
            assert_equal 1 [r -1 get k]
            assert_equal OK [r -1 migrate $host $port k 0 1000 copy auth secret]
            assert_equal OK [r -1 migrate $host $port k 0 1000 replace auth2 default secret]
            assert_equal 1 [r get k]
            assert_equal 0 [r -1 exists k]
        }
    }
}
