# Modules: loading and unloading, their commands, replies and calls.

source $::tests_dir/support/raw_replica.tcl

# The shared object of utils/hello_module/NAME.c, which `make build` makes.
proc hello_module {name} {return [file normalize build/modules/$name.so]}

set load_error {ERR Error loading the extension. Please check the server logs.}

start_server {overrides {enable-module-command yes repl-diskless-sync-delay 0}} {
    set path [hello_module hello_command]

    test {MODULE LOAD: the module is listed with its path and arguments, and can be unloaded} {
        assert_equal OK [r module load $path a {b c}]
        set row [lindex [r module list] 1]
        assert_equal [list name hellocommand ver 1 path $path args [list a {b c}]] $row
        assert_match "*module:name=hellocommand,ver=1,api=1,filters=0,usedby=*" [r info modules]
        assert_match "*<hellocommand> argument 1: b c*" [server_log]
        assert_equal OK [r module unload HelloCommand]
        assert_equal 1 [llength [r module list]]
        assert_error {ERR unknown command 'hello.greet'*} {r hello.greet x}
    }

    test {MODULE LOAD: what cannot be loaded leaves nothing} {
        assert_error $load_error {r module load /nonexistent.so}
        assert_error $load_error {r module load [file normalize tests/unit/modules.tcl]}
        r module load $path
        assert_error $load_error {r module load $path}
        assert_equal 2 [llength [r module list]]
        r module unload hellocommand
    }

    test {MODULE UNLOAD is refused while the rule of a user names one of its commands} {
        foreach {refused rules} {
            1 +hello.greet 1 {+@all -hello.greet} 1 {(+HELLO.Greet ~x)} 0 {+hello.greet -@all} 1 {+hello.greet -hello.greet}
            1 {+hello.greet|x} 0 +@all 0 reset 0 +get
        } {
            r module load $path
            r acl setuser u reset {*}$rules
            if {$refused} {
                assert_error {ERR Error unloading module: one or more ACL users reference commands from this module. Remove those ACL rules before unloading} \
                    {r module unload hellocommand}
                assert_match "*Module hellocommand unload blocked: An ACL user has reference to rule '?hello.greet*" [server_log]
                r acl deluser u
            }
            assert_equal OK [r module unload hellocommand] $rules
        }
        r acl deluser u
    }

    test {MODULE UNLOAD of a module that is not there} {
        assert_error {ERR Error unloading module: no such module with that name} {r module unload nothing}
    }

    test {loaded and unloaded 50 times, the commands work each time} {
        for {set i 0} {$i < 50} {incr i} {
            r module load $path
            assert_equal {1 a} [r hello.echo 1 a]
            r module unload hellocommand
        }
    }

    test {a command of a module: arity, replies of a postponed length, documentation} {
        r module load $path
        assert_error {ERR wrong number of arguments for 'hello.greet' command} {r hello.greet}
        assert_equal {} [r hello.echo]
        assert_equal {1 x -5 {}} [r HELLO.ECHO 1 x -5 {}]
        assert_equal {hello.echo hello.greet} [lsort [r command list filterby module hellocommand]]
        assert_equal module [dict get [dict get [r command docs hello.echo] hello.echo] group]
        assert_equal hellocommand [dict get [dict get [r command docs hello.echo] hello.echo] module]
    }

    test {a command that a module calls changes keys, also within MULTI and from a script} {
        r del hello:me
        assert_equal 1 [r hello.greet me]
        r multi
        r hello.greet me
        assert_equal 2 [r exec]
        assert_equal 3 [r eval {return redis.call('hello.greet', 'me')} 0]
        assert_equal 3 [r get hello:me]
        r lpush hello:list x
        assert_error {WRONGTYPE*} {r hello.greet list}
    }

    test {EXEC runs nothing if a command of its queue was unloaded, and the new one if it was loaded again} {
        set c [connect]
        foreach again {no yes} {
            r del other
            $c multi
            $c set other 1
            $c hello.echo x
            r module unload hellocommand
            if {$again} {r module load $path}
            if {$again} {
                assert_equal {OK x} [$c exec]
            } else {
                assert_error "EXECABORT Transaction discarded because of: unknown command 'hello.echo', with args beginning with: 'x' " {$c exec}
                assert_equal 0 [r exists other]
                assert_error "ERR EXEC without MULTI" {$c exec}
                r module load $path
            }
        }
    }

    test {only the calls that a module wants propagated are} {
        set replica [dict get [replica_sync] socket]
        r hello.greet me
        r hello.echo 1
        r set last 1
        replica_expect $replica SELECT 0
        replica_expect $replica INCR hello:me
        replica_expect $replica set last 1
        close $replica
    }
}

start_server {overrides {enable-module-command yes}} {
    r module load [hello_module symbols]

    test {a module frees what the C library has allocated for it} {
        assert_equal {copied {1 printed} written grown /} [r symbols.free]
    }

    test {functions of a module with names of the server's functions are the module's own} {
        assert_equal {1 2 3} [r symbols.own]
    }
}

start_server [list overrides [list enable-module-command no loadmodule [list [hello_module hello_command] one]]] {
    test {loadmodule loads a module at start, MODULE LOAD needs enable-module-command} {
        assert_equal {1} [r hello.greet start]
        assert_equal one [dict get [lindex [r module list] 1] args]
        assert_error {ERR MODULE command not allowed*} {r module load x}
        assert_error {ERR MODULE command not allowed*} {r module unload hellocommand}
    }
}
