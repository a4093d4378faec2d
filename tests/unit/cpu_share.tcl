# SPDX-License-Identifier: BSD-3-Clause
#
# The rule cpu= of ACL SETUSER and client-cpu-share: who is held back, what nobody notices, what is reported.

source $::tests_dir/support/metrics.tcl

proc cpu_field {user field} {
    foreach line [split [r info users] \n] {
        if {![regexp {^user_cpu_\d+:(.*),name=(.*)\r$} $line -> fields name] || $name ne $user} continue
        foreach part [split $fields ,] {
            if {[regexp {^(.*)=(.*)$} $part -> key value] && $key eq $field} {return $value}
        }
    }
    fail "user $user has no field $field"
}

# A client of a user.
proc as {user {port {}}} {
    set c [expr {$port eq {} ? [connect] : [respConnect [srv host] $port 2]}]
    if {$user ne {}} {$c auth $user x}
    return $c
}

proc calls_of {command} {
    if {![regexp "cmdstat_$command:calls=(\\d+)" [r info commandstats] -> calls]} {return 0}
    return $calls
}

# Adds keys until KEYS takes long beside GET in this build. Its time is compared with nothing.
proc populate_for_long {} {
    for {set keys 20000} {$keys <= 1280000} {set keys [expr {2 * $keys}]} {
        r debug populate $keys
        r config resetstat
        r keys nothing
        if {[regexp {cmdstat_keys:calls=1,usec=(\d+)} [r info commandstats] -> usec] && $usec > 2000} return
    }
}

# Sends 700 commands that take long, serves some requests of another client, and returns how many of the long ones were
# executed until then: all of them if nobody is held back. While the test itself waits for a processor the other client
# wants nothing, and the long ones may run: the least of several tries counts.
proc long_beside {flood {db 0}} {
    set light [as {}]
    $light select $db
    set least 700
    for {set try 0} {$try < 10 && $least >= 350} {incr try} {
        set before [calls_of keys]
        for {set i 0} {$i < 700} {incr i} {$flood -send keys nothing}
        wait_for_condition 1000 10 {[calls_of keys] > $before}
        for {set i 0} {$i < 150} {incr i} {$light get key:1}
        set least [expr {min($least, [calls_of keys] - $before)}]
    }
    $light -close
    return $least
}

start_server {tags {acl} overrides {enable-debug-command yes latency-tracking no}} {
    r debug populate 20000

    test {the rule cpu= is listed if it is set} {
        r acl setuser u on nopass ~* +@all cpu=25%
        assert_match "*user u on nopass cpu=25% ~\\* resetchannels*" [r acl list]
        assert_equal 25 [dict get [r acl getuser u] cpu]
        assert_equal 0 [dict get [r acl getuser u] used-cpu-usec]
        assert_equal {25 0 0 0} [lmap f {share used_usec commands held} {cpu_field u $f}]
        foreach bad {cpu= cpu=x cpu=-1 cpu=101% cpu=5%% (cpu=5)} {
            assert_error "ERR Error in ACL SETUSER modifier '$bad': Syntax error" [list r acl setuser u $bad]
        }
        r acl setuser u cpu=7
        assert_equal 7 [cpu_field u share]
        r acl setuser u cpu=0
        assert {![string match *cpu=* [r acl list]]}
        assert {![dict exists [r acl getuser u] cpu]}
        assert_equal "# Users\r\n" [r info users]
        r acl setuser u cpu=100% reset
        assert {![string match *cpu=* [r acl list]]}
        r acl deluser u
        assert {![string match *Users* [r info everything]]}
    }

    test {ACL EXPORT omits what Valkey does not know} {
        r acl setuser u on nopass ~a:* +@all -getpxt cpu=25% maxmemory=5mb -memory|explain -get (~b:* +get +getpxt)
        assert_match "*maxmemory=5242880 cpu=25% ~a:\\* resetchannels +@all -getpxt*" [r acl list]
        assert {{user u on nopass ~a:* resetchannels +@all -get (~b:* resetchannels -@all +get)} in [r acl export]}
        assert_equal [llength [r acl list]] [llength [r acl export]]
        assert_error "ERR wrong number of arguments*" {r acl export x}
        r acl deluser u
    }

    test {a user within a share of 25 % leaves the server to others} {
        populate_for_long
        r acl setuser heavy on nopass ~* +@all cpu=25%
        set flood [as heavy]
        assert {[long_beside $flood] < 350}
        assert {[cpu_field heavy held] > 0}
        assert {[cpu_field heavy commands] > 0}
        assert {[cpu_field heavy used_usec] > 0}
        assert_match "*flags=b*" [lsearch -inline -glob [split [r client list] \n] *user=heavy*]
        r client kill user heavy
        wait_for_condition 500 10 {![string match *user=heavy* [r client list]]}
        $flood -close
        r acl deluser heavy
    }

    test {db-cpu-share: refused values, what is listed, what is kept} {
        foreach {bad error} {
            3 "*Invalid db-cpu-share parameters: a database and percent, in pairs"
            {x 5} "*Invalid database in db-cpu-share" {-1 5} "*Invalid database in db-cpu-share"
            {16 5} "*Invalid database in db-cpu-share"
            {3 x} "*Invalid percent in db-cpu-share" {3 101%} "*Invalid percent in db-cpu-share" {3 5 4} "*in pairs"
        } {
            assert_error $error [list r config set db-cpu-share $bad]
            assert_equal {db-cpu-share {}} [r config get db-cpu-share]
        }
        r config set db-cpu-share "5 10 3 25%"
        assert_equal {db-cpu-share {3 25% 5 10%}} [r config get db-cpu-share]
        assert_match "# Users\r\ncpu_db3:share=25,used_usec=0,commands=0,held=0\r\ncpu_db5:share=10,*" [r info users]
        r select 3
        r ping
        r select 0
        assert_match "*cpu_db3:share=25,used_usec=*,commands=2,held=0\r\n*" [r info users]
        # A database that keeps its share keeps its statistics.
        r config set db-cpu-share "3 30 5 0%"
        assert_equal {db-cpu-share {3 30%}} [r config get db-cpu-share]
        assert_match "*cpu_db3:share=30,used_usec=*,commands=2,held=0\r\n" [r info users]
        r config resetstat
        assert_match "*cpu_db3:share=30,used_usec=0,commands=0,held=0\r\n" [r info users]
        r config set db-cpu-share ""
        assert_equal "# Users\r\n" [r info users]
    }

    test {a database within a share of 25 % leaves the server to others, and a user with a share adds to it} {
        foreach share {{} cpu=90%} {
            r acl setuser other on nopass ~* +@all {*}$share
            r config set db-cpu-share "0 25%"
            set flood [as other]
            # KEYS takes long in database 0, where the keys are; the light client uses another one.
            r select 5
            set count [long_beside $flood 5]
            assert {$count < 350}
            assert {[regexp {cpu_db0:share=25,used_usec=(\d+),commands=\d+,held=(\d+)} [r info users] -> usec held]}
            assert {$usec > 0 && $held > 0}
            r client kill user other
            wait_for_condition 500 10 {![string match *user=other* [r client list]]}
            $flood -close
            r config set db-cpu-share ""
            r acl deluser other
            r select 0
        }
    }

    test {a client within client-cpu-share leaves the server to others of the same user} {
        r config set client-cpu-share 25
        set flood [as {}]
        assert {[long_beside $flood] < 350}
        r config set client-cpu-share 0
        for {set i 0} {$i < 100} {incr i} {assert_equal {} [$flood -read]}
        $flood -close
    }

    test {nothing is lost or reordered: pipelines, transactions, scripts, blocked clients, changes of the user} {
        r acl setuser slow on nopass ~* &* +@all cpu=1%
        set c [as slow]
        set light [as {}]
        set wanted {}
        for {set i 1} {$i <= 40} {incr i} {
            $c -send incr n
            $c -send multi
            $c -send incr n
            $c -send keys nothing
            $c -send exec
            $c -send eval {for i = 1, 3 do redis.call('incr', KEYS[1]) end return redis.call('get', KEYS[1])} 1 n
            $c -send rpush list $i
            $c -send blpop list 0
            set n [expr {5 * $i}]
            lappend wanted [expr {$n - 4}] OK QUEUED QUEUED [list [expr {$n - 3}] {}] $n 1 [list list $i]
        }
        $c -send blpop later 0
        $c -send reset
        $c -send auth slow x
        $c -send get n
        set got {}
        for {set i 0} {$i < 320} {incr i} {
            $light get key:1
            lappend got [$c -read]
        }
        assert_equal $wanted $got
        wait_for_condition 1000 10 {[info_field blocked_clients] >= 1 && [r rpush later x] == 1}
        assert_equal {{later x} RESET OK 200} [list [$c -read] [$c -read] [$c -read] [$c -read]]
        assert {[cpu_field slow held] > 0}
        assert_equal 200 [r get n]
        foreach x [list $c $light] {$x -close}
        r acl deluser slow
        r del n
    }

    test {held clients go on without the share, end with their user, and may disconnect} {
        foreach how {cpu=0 cpu=100 deluser close kill} {
            r acl setuser slow on nopass ~* +@all cpu=1%
            set c [as slow]
            set light [as {}]
            for {set i 0} {$i < 200} {incr i} {$c -send keys nothing}
            wait_for_condition 1000 1 {[$light get key:1] ne {} && [cpu_field slow held] > 2}
            switch $how {
                deluser {
                    r acl deluser slow
                    assert {[catch {for {set i 0} {$i < 201} {incr i} {$c -read}}]}
                }
                close {}
                kill {assert_equal 1 [r client kill user slow]}
                default {
                    r acl setuser slow $how
                    for {set i 0} {$i < 200} {incr i} {assert_equal {} [$c -read]}
                }
            }
            $c -close
            $light -close
            wait_for_condition 1000 10 {![string match *user=slow* [r client list]]}
            catch {r acl deluser slow}
        }
    }

    test {what is refused counts, too} {
        r acl setuser slow on nopass ~* -@all +auth cpu=1%
        set c [as slow]
        # Others may be idle for a while, in which nothing is held.
        for {set round 0} {$round < 50 && [cpu_field slow held] == 0} {incr round} {
            for {set i 0} {$i < 3000} {incr i} {$c -send keys nothing}
            for {set i 0} {$i < 3000} {incr i} {
                if {$i % 100 == 0} {r get key:1}
                assert_error "NOPERM*" {$c -read}
            }
        }
        assert {[cpu_field slow held] > 0}
        $c -close
        r acl deluser slow
    }

    test {CONFIG RESETSTAT sets the counters to 0} {
        r acl setuser u on nopass ~* +@all cpu=100%
        set c [as u]
        r config resetstat ;# AUTH of the client may count
        $c keys nothing
        assert_equal {1 0} [list [cpu_field u commands] [cpu_field u held]]
        assert {[cpu_field u used_usec] > 0}
        r config resetstat
        assert_equal {0 0} [list [cpu_field u commands] [cpu_field u used_usec]]
        $c -close
        r acl deluser u
    }

    test {COMMANDLOG USERS names the user of a slow command} {
        r acl setuser bob on nopass ~* +@all
        r commandlog reset slow
        r config set commandlog-execution-slower-than 0
        set c [as bob]
        $c keys nothing
        $c eval {return #redis.call('keys', 'nothing')} 0
        r config set commandlog-execution-slower-than -1
        set seen {}
        foreach e [r commandlog users -1 slow] {
            assert_equal 8 [llength $e]
            assert {[lindex $e 7] >= [lindex $e 2]}
            if {[string match *nothing* [lindex $e 3]]} {lappend seen [lindex $e 6]}
        }
        assert_equal 3 [llength $seen] {KEYS, EVAL, and its KEYS}
        assert_equal bob [lsort -unique $seen]
        foreach e [r commandlog get -1 slow] {assert_equal 6 [llength $e]}
        foreach e [r slowlog get -1] {assert_equal 6 [llength $e]}
        $c -close
        r acl deluser bob
    }
}

set admin_port [free_port]
start_server [list tags {acl} overrides [list enable-debug-command yes admin-port $admin_port]] {
    test {the admin port has no share} {
        r debug populate 20000
        r acl setuser slow on nopass ~* +@all cpu=1%
        r config set client-cpu-share 1
        set c [as slow $admin_port]
        for {set i 0} {$i < 100} {incr i} {$c -send keys nothing}
        for {set i 0} {$i < 100} {incr i} {
            r ping
            assert_equal {} [$c -read]
        }
        assert_equal 0 [cpu_field slow held]
        assert_equal 101 [cpu_field slow commands] {with AUTH}
        r config set client-cpu-share 0
        $c -close
    }

    test {metrics have the time of each user and database with a share} {
        open_metrics
        r config set db-cpu-share "0 20%"
        r keys nothing
        set body [lindex [http_get /metrics] 2]
        assert_match {*redis_user_cpu_share_ratio{user="slow"} 0.01
*} $body
        assert_match {*redis_user_held_requests_total{user="slow"} 0
*} $body
        assert {[regexp {redis_user_cpu_seconds_total\{user="slow"\} ([0-9.e-]+)} $body -> seconds]}
        assert {$seconds > 0}
        assert_match "*redis_db_cpu_share_ratio{db=\"db0\"} 0.2\n*" $body
        assert_match "*redis_db_held_requests_total{db=\"db0\"} 0\n*" $body
        assert {[regexp {redis_db_cpu_seconds_total\{db="db0"\} ([0-9.e-]+)} $body -> seconds]}
        assert {$seconds > 0}
        r config set db-cpu-share ""
    } tls:skip

    start_server {tags {repl tls:skip}} {
        test {a replica is not held back by the share of its user} {
            r -1 config set client-cpu-share 1
            r config set primaryuser slow
            r config set primaryauth x
            set flood [connect_to [srv -1 host] [srv -1 port] 2 {}]
            $flood auth slow x
            for {set i 0} {$i < 100} {incr i} {
                $flood -send set k$i v
                $flood -send keys nothing
            }
            r replicaof [srv -1 host] [srv -1 port]
            wait_for_condition 1000 20 {[string match *master_link_status:up* [r info replication]]}
            r -1 set last 1
            wait_for_condition 1000 20 {[r get last] eq 1}
            r -1 config set client-cpu-share 0
            r -1 acl setuser slow cpu=0
            for {set i 0} {$i < 200} {incr i} {$flood -read}
            assert_equal 1 [r -1 wait 1 5000]
            assert_equal [r -1 dbsize] [r dbsize]
            $flood -close
        }
    }
}
