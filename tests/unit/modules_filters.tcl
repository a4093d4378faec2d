# SPDX-License-Identifier: BSD-3-Clause
#
# Command filters of modules (utils/hello_module/hello_filter.c).

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    r module load [file normalize build/modules/hello_filter.so]
    set filters {{} { regexp {module:name=hellofilter,.*?filters=(\d+)} [r info modules] -> n; set n }}

    test {a request is rewritten before its command is looked up} {
        assert_equal 0 [apply $filters]
        r hello.filter on
        assert_equal 1 [apply $filters]
        r set @joe 1
        assert_equal {user:joe} [r keys *]
        assert_equal 1 [r get @joe -]
        r hello.swap user:joe user:ann
        assert_equal 1 [r get @ann]
    }

    test {filters see what scripts, transactions and calls of others run} {
        r multi
        r set @multi 2
        r exec
        assert_equal 2 [r eval {redis.call('set', '@script', 3) return redis.call('get', '@multi')} 0]
        assert_equal 3 [r get user:script]
    }

    test {with NOSELF calls of the module itself are not filtered} {
        set before [r hello.seen]
        assert_equal [expr {$before + 1}] [r hello.seen]
    }

    test {a request that lacks arguments after the filter gets the error of its new form} {
        assert_error {ERR wrong number of arguments for 'rename' command} {r hello.swap a}
    }

    test {a filter ends with the module, also in the middle of requests} {
        r hello.filter off
        assert_equal 0 [apply $filters]
        assert_equal {} [r get @ann]
        r hello.filter on
        assert_equal OK [r module unload hellofilter]
        assert_equal {} [r get @ann]
        assert_equal OK [r module load [file normalize build/modules/hello_filter.so]]
    }
}
