# SPDX-License-Identifier: BSD-3-Clause
#
# Scripts in cluster mode: declared and undeclared keys, flags, slots that are not served. Texts are those of Valkey 9.1.2;
# one call over several slots, which makes all later calls of Valkey fail, concerns that call only.

proc header {flags} {return [expr {$flags eq {} ? {} : "#!lua flags=$flags\n"}]}
proc ev {flags script args} {return [r eval [header $flags]$script [llength $args] {*}$args]}
proc on_line {flags} {return " script: on @user_script:[expr {$flags eq {} ? 1 : 2}]."}
proc not_local {flags} {return "ERR Attempted to access a non local key in a cluster node[on_line $flags]"}
proc other_slot {flags} {
    return "ERR Script attempted to access keys that do not hash to the same slot[on_line $flags]"
}

start_server {tags {cluster scripting} overrides {cluster-enabled yes cluster-require-full-coverage no}} {
    test {without slots scripts run, and their commands are refused} {
        assert_equal 1 [ev {} {return 1}]
        assert_equal PONG [ev {} {return redis.call('ping')}]
        assert_error [not_local {}] {ev {} {return redis.call('get', 'foo')}}
        assert_error [not_local allow-oom] {ev allow-oom {return redis.call('get', 'foo')}}
        assert_error "CLUSTERDOWN Hash slot not served" {ev {} {return 1} foo}
    }

    test {CLUSTER ADDSLOTS makes the keys local} {
        r cluster addslotsrange 0 16383
        wait_for_condition 200 50 {[string match *cluster_state:ok* [r cluster info]]} else {fail "not ok"}
        assert_equal OK [ev {} {return redis.call('set', 'foo', 1)}]
    }

    test {without a header each command may use another slot} {
        assert_equal {1 {}} [ev {} {return {redis.call('get', 'foo'), redis.call('get', 'bar')}}]
        assert_equal {} [ev {} {return redis.call('get', 'bar')} foo]
    }

    test {with a header all keys are in the slot of the first ones} {
        assert_equal 1 [ev allow-oom {return redis.call('get', 'foo')}]
        assert_equal {} [ev allow-oom {return redis.call('get', '{foo}x')} foo]
        assert_error [other_slot allow-oom] {ev allow-oom {return redis.call('get', 'bar')} foo}
        assert_error [other_slot allow-oom] {ev allow-oom {redis.call('get', 'foo') return redis.call('get', 'bar')}}
        assert_error [other_slot allow-oom] {ev allow-oom {return redis.call('spublish', 'foo', 'x')} bar}
        assert_error "CROSSSLOT Keys in request don't hash to the same slot" {ev allow-oom {return 1} foo bar}
    }

    test {in a transaction the slot is that of its commands} {
        r multi
        r get foo
        ev allow-oom {return redis.call('get', 'bar')}
        assert_equal [list 1 [other_slot allow-oom]] [r exec]
    }

    test {allow-cross-slot-keys} {
        assert_equal {1 {}} [ev allow-cross-slot-keys {return {redis.call('get', 'foo'), redis.call('get', 'bar')}}]
        assert_error "CROSSSLOT *" {ev allow-cross-slot-keys {return 1} foo bar}
    }

    test {no-cluster} {
        assert_error "ERR Can not run script on cluster, 'no-cluster' flag is set." {ev no-cluster {return 1}}
        r function load {#!lua name=l
            server.register_function{function_name = 'f', callback = function() return 1 end, flags = {'no-cluster'}}}
        assert_error "ERR Can not run script on cluster, 'no-cluster' flag is set." {r fcall f 0}
    }

    test {one command with keys of several slots is refused and has no consequences} {
        foreach flags {{} allow-oom allow-cross-slot-keys no-writes} {
            assert_error [not_local $flags] {ev $flags {return redis.call('mget', 'foo', 'bar')}}
            assert_error [not_local $flags] {ev $flags {return redis.call('mset', 'foo', 1, 'bar', 2)}}
            assert_equal 1 [ev $flags {return redis.call('get', 'foo')}]
            assert_equal 1 [[connect] eval {return redis.call('get', 'foo')} 0]
        }
    }

    test {a slot that is not served is named before the flag no-writes} {
        assert_error "ERR Write commands are not allowed from read-only scripts.[on_line no-writes]" {
            ev no-writes {return redis.call('set', 'foo', 1)}
        }
        r cluster delslots 12182
        assert_error [not_local no-writes] {ev no-writes {return redis.call('set', 'foo', 1)}}
        assert_error [not_local {}] {ev {} {return redis.call('get', 'foo')}}
        assert_equal {} [ev {} {return redis.call('get', 'bar')}]
    }
}
