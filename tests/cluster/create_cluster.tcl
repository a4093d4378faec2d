# SPDX-License-Identifier: BSD-3-Clause
#
# utils/create-cluster, which a newcomer runs first.

# The first of three free ports in a row.
proc three_ports {} {
    for {set try 0} {$try < 100} {incr try} {
        set first [free_port]
        if {[free_port] == $first + 1 && [free_port] == $first + 2} {return $first}
    }
    fail "no three free ports in a row"
}

start_server {tags {cluster tools tls:skip}} {
    test {create-cluster starts, creates, stops, starts again and cleans} {
        set first [three_ports]
        set folder [file join [srv dir] trial]
        file mkdir $folder
        set script [file join $::tests_dir .. utils create-cluster create-cluster]
        set environment [list NODES=3 REPLICAS=0 PORT=$first BIN=[file dirname [file normalize $::binary]] \
            "OPTIONS=--bind 127.0.0.1"]
        try {
            foreach {word expected} {start *starting* create "*All 16384 slots covered*" stop * start *starting*} {
                set output [exec env -C $folder {*}$environment $script $word 2>@1]
                if {![string match $expected $output]} {fail "$word: $output"}
                if {$word eq "create"} {
                    foreach i {0 1 2} {
                        assert_match *cluster_state:ok* [exec [file dirname $::binary]/valkey-cli -p [expr {$first + $i}] cluster info]
                    }
                }
                if {$word eq "start"} {
                    foreach i {0 1 2} {
                        set port [expr {$first + $i}]
                        wait_for_condition 500 20 {![catch {exec [file dirname $::binary]/valkey-cli -p $port ping} pong] && $pong eq "PONG"}
                    }
                }
            }
            assert {[catch {exec env -C $folder {*}$environment $script clean 2>@1} refusal]}
            assert_match "*is running: stop first*" $refusal
        } finally {
            exec env -C $folder {*}$environment $script stop 2>@1
        }
        exec env -C $folder {*}$environment $script clean 2>@1
        assert_equal {} [glob -nocomplain -directory $folder *]
        assert {[catch {exec $script 2>@1} usage]}
        assert_match "*create-cluster start|create|stop|watch|clean*" $usage
    }
}
