# SPDX-License-Identifier: BSD-3-Clause
#
# With `module-checks yes` wrong handles are refused and named in the log (tests/modules/handles.c).

# The lines of the log about misuse.
proc misuses {} {
    return [lsearch -all -inline [split [server_log] "\n"] "*API misuse detected*"]
}

# Runs the command, whose reply is a refusal, and returns the lines that it has added to the log.
proc refused {args} {
    set before [llength [misuses]]
    foreach reply [r {*}$args] { assert_equal refused $reply }
    return [lrange [misuses] $before end]
}

start_server {overrides {enable-module-command yes enable-debug-command yes module-checks yes save {} appendonly no}} {
    set module [file normalize build/modules/handles.so]
    assert_equal OK [r module load $module]

    test {what a module may do is not reported} {
        assert_equal v [r handles.good key]
        assert_equal {} [misuses]
    }

    test {information that a thread reads without the lock is not reported} {
        r module load [file normalize build/modules/info.so]
        assert_equal {-5 -5} [r infos.apart infos infos_signed]
        r module unload infos
        assert_equal {} [misuses]
    }

    foreach {kind words} {
        string {StringToLongLong: the string was freed, or never was one}
        dictionary {DictSetC: the dictionary was freed, or never was one}
        iterator {DictNextC: the iterator of a dictionary was freed, or never was one}
        cursor {Scan: the cursor was freed, or never was one}
        user {SetModuleUserACL: the user was freed, or never was one}
        reply {CallReplyStringPtr: the reply was freed, or never was one}
        part {CallReplyStringPtr: the reply was freed, or never was one}
        argument {StringCompare: the string was freed, or never was one}
        filter {CommandFilterArgGet: *}
    } {
        test "a $kind that was freed is refused" {
            set lines [refused handles.freed $kind]
            assert_match "*module handles: ValkeyModule_$words, called at handles.so+0x*" [lindex $lines 0]
        }
    }

    test {a handle of another kind, and NULL, are refused} {
        assert_match "*ValkeyModule_KeyType: a string is given where a key is expected*" [refused handles.kind]
        assert_match "*ValkeyModule_StringAppendBuffer: the string is NULL*" [refused handles.null]
    }

    test {strings among variadic arguments are checked} {
        set lines [refused handles.invariadic hash]
        assert_equal 3 [llength $lines]
        assert_match "*ValkeyModule_Call: the string was freed*" [lindex $lines 0]
        assert_match "*ValkeyModule_Replicate: the string was freed*" [lindex $lines 1]
        assert_match "*ValkeyModule_HashSet: the string was freed*" [lindex $lines 2]
        assert_equal 0 [r exists hash]
    }

    test {a key that is closed twice, and one that is left open, are reported} {
        assert_match "*ValkeyModule_CloseKey: the key was freed*" [refused handles.twice key]
        set before [llength [misuses]]
        assert_equal 1 [r handles.open key]
        assert_match "*a call ended, 1 of kind key made by ValkeyModule_OpenKey at handles.so+0x* not freed*" \
            [lrange [misuses] $before end]
    }

    test {a thread that has not locked the server is refused} {
        assert_match "*ValkeyModule_DbSize: this thread has not locked the server*" [refused handles.thread]
    }

    test {what is left at unload is reported} {
        r handles.leak
        set before [llength [misuses]]
        assert_equal OK [r module unload handles]
        set lines [join [lrange [misuses] $before end] "\n"]
        assert_match "*it is unloaded, 2 of kind string made by ValkeyModule_CreateStringPrintf at *" $lines
        assert_match "*it is unloaded, 1 of kind dictionary made by ValkeyModule_CreateDict at *" $lines
    }

    test {values of modules in files, payloads and digests are not reported, what callbacks keep of them is} {
        r module load [file normalize build/modules/dataset.so]
        set before [llength [misuses]]
        r dataset.add k 5
        r debug digest
        r debug reload
        r restore copy 0 [r dump k]
        assert_equal {15 15} [list [r dataset.length k] [r dataset.length copy]]
        r config set aof-use-rdb-preamble no appendonly yes
        wait_for_condition 500 20 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        r debug loadaof
        r config set appendonly no
        r debug digest
        assert_equal $before [llength [misuses]]
        assert_equal 0 [r dataset.stale]
        set lines [lrange [misuses] $before end]
        assert_equal 3 [llength $lines]
        assert_match "*ValkeyModule_DigestAddLongLong: *" [lindex $lines 0]
        assert_match "*ValkeyModule_LogIOError: *" [lindex $lines 1]
        assert_match "*ValkeyModule_LoadUnsigned: *" [lindex $lines 2]
        r flushall
    }

    test {the directive is fixed at start} {
        assert_error {*can't set immutable config*} {r config set module-checks no}
    }

    # Contexts of threads would not be freed, a client that is blocked gets no reply, and others get two.
    set no_context {Get*ThreadSafeContext BlockClient* Reply* WrongArity}

    test {each function that takes handles refuses those that were freed, and survives NULL} {
        assert_equal OK [r module load [file normalize build/modules/every_function.so]]
        set names [r every.names]
        assert {[llength $names] > 200}
        foreach name $names {
            set before [llength [misuses]]
            r every.freed $name
            assert_match "*ValkeyModule_$name: *" [lrange [misuses] $before end]
            r every.null $name
            set skipped 0
            foreach pattern $no_context { incr skipped [string match $pattern $name] }
            if {!$skipped} { r every.context $name }
        }
        assert_equal PONG [r ping]
    }
}
