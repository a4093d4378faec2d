# SPDX-License-Identifier: BSD-3-Clause
#
# Scripts on replicas: flags of the header, and what a primary sends for scripts and functions. Texts are those of
# Valkey 9.1.2.

proc header {flags} {return [expr {$flags eq {none} ? {} : $flags eq {} ? "#!lua\n" : "#!lua flags=$flags\n"}]}
proc ev {flags script args} {return [r eval [header $flags]$script [llength $args] {*}$args]}
proc on_line {flags} {return " script: on @user_script:[expr {$flags eq {none} ? 1 : 2}]."}
proc read_only {} {return "READONLY You can't write against a read only replica."}
proc master_down {} {return "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."}

start_server {tags {scripting repl tls:skip}} {
    r set k v
    r function load {#!lua name=l
        server.register_function('f_write', function() return 1 end)
        server.register_function{function_name = 'f_read', callback = function() return redis.call('get', 'k') end, flags = {'no-writes'}}
        server.register_function{function_name = 'f_stale', callback = function() return redis.call('echo', 'x') end,
                                 flags = {'no-writes', 'allow-stale'}}}
    r replicaof 127.0.0.1 1

    test {a read-only replica refuses scripts that may write, when they are queued as well} {
        foreach flags {{} allow-oom allow-stale} {
            assert_error [read_only] {ev $flags {return 1}}
            assert_error [read_only] {r eval_ro "[header $flags]return 1" 0}
            r multi
            assert_error [read_only] {ev $flags {return 1}}
            assert_error "EXECABORT Transaction discarded because of previous errors." {r exec}
        }
        assert_error [read_only] {r fcall f_write 0}
        assert_equal {v v v} [list [ev none {return redis.call('get', 'k')}] [ev no-writes {return redis.call('get', 'k')}] [r fcall f_read 0]]
        assert_error "[read_only][on_line none]" {ev none {return redis.call('set', 'k', 1)}}
    }

    test {a replica without its primary runs scripts with allow-stale only} {
        r config set replica-serve-stale-data no
        foreach flags {none no-writes} {
            assert_error [master_down] {ev $flags {return 1}}
            assert_error [master_down] {r eval_ro "[header $flags]return 1" 0}
        }
        assert_error [master_down] {r fcall f_read 0}
        # A script with a header is refused when it is queued, others when they run.
        r multi
        assert_error [master_down] {ev no-writes {return 1}}
        r discard
        r multi
        ev none {return 1}
        assert_equal [list [master_down]] [r exec]
        assert_error [read_only] {ev allow-stale {return 1}}
        assert_equal 1 [ev allow-stale,no-writes {return 1}]
        assert_equal x [r fcall f_stale 0]
        foreach script {{return redis.call('get', 'k')} {return redis.call('ping')}} {
            assert_error "ERR Can not execute the command on a stale replica[on_line x]" {ev allow-stale,no-writes $script}
        }
    }

    test {a writable replica without its primary} {
        r config set replica-read-only no
        assert_error [master_down] {ev {} {return 1}}
        assert_error [master_down] {r eval_ro "#!lua\nreturn 1" 0}
        assert_error "ERR Can not execute a script with write flag using *_ro command." {
            r eval_ro "#!lua flags=allow-stale\nreturn 1" 0
        }
        assert_error "ERR Can not execute the command on a stale replica[on_line x]" {
            ev allow-stale {return redis.call('set', 'k', 1)}
        }
        r config set replica-serve-stale-data yes
        assert_equal OK [ev {} {return redis.call('set', 'k', 1)}]
    }

    test {a primary with too few replicas refuses scripts that may write} {
        r replicaof no one
        r config set min-replicas-to-write 1
        set none "NOREPLICAS Not enough good replicas to write."
        assert_error $none {ev {} {return 1}}
        assert_error $none {r fcall f_write 0}
        assert_error "$none[on_line none]" {ev none {return redis.call('set', 'k', 1)}}
        assert_equal 1 [ev no-writes {return 1}]
        r multi
        assert_error $none {ev {} {return 1}}
        r discard
        r config set min-replicas-to-write 0
    }
}

start_server {tags {scripting repl tls:skip} overrides {save {} enable-debug-command yes}} {
    start_server {overrides {save {} enable-debug-command yes}} {
        r replicaof [srv -1 host] [srv -1 port]
        info_is master_link_status up

        proc same {} {
            wait_for_condition 200 50 {[r debug digest] eq [r -1 debug digest] && [r function list] eq [r -1 function list]} else {
                fail "the replica differs"
            }
        }

        test {effects of scripts and functions reach the replica} {
            r -1 eval {redis.call('select', 3) for i = 1, 3 do redis.call('rpush', KEYS[1], i) end
                       redis.call('select', 0) redis.call('set', 'r', math.random(), 'px', 100000)
                       redis.call('spop', KEYS[2])} 2 list set
            r -1 function load replace {#!lua name=l
                server.register_function('f', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)}
            r -1 fcall f 1 counter 5
            catch {r -1 eval {redis.call('set', 'before', 1) error('x')} 0}
            same
            assert_equal {5 1} [list [r get counter] [r get before]]
        }

        test {server.set_repl chooses who gets a change} {
            r -1 eval {redis.set_repl(redis.REPL_NONE) redis.call('set', 'nobody', 1)
                       redis.set_repl(redis.REPL_AOF) redis.call('set', 'aof', 1)
                       redis.set_repl(redis.REPL_REPLICA) redis.call('set', 'replica', 1)
                       redis.set_repl(redis.REPL_ALL) redis.call('set', 'all', 1)} 0
            wait_for_condition 200 50 {[r get all] eq 1} else {fail "nothing arrived"}
            assert_equal {0 0 1} [list [r exists nobody] [r exists aof] [r exists replica]]
            r -1 del nobody aof
        }

        test {FUNCTION RESTORE, DELETE and FLUSH reach the replica} {
            set dump [r -1 function dump]
            r -1 function delete l
            same
            assert_equal {} [r function list]
            r -1 function restore $dump
            same
            assert_equal 1 [llength [r function list]]
            r -1 function flush async
            same
        }
    }
}
