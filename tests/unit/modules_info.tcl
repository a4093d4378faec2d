# SPDX-License-Identifier: BSD-3-Clause
#
# INFO of modules (tests/modules/info.c).

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    r module load [file normalize build/modules/info.so]
    set numbers "# infos\r\ninfos_signed:-5\r\ninfos_unsigned:18446744073709551615\r\ninfos_double:0.5\r\n"
    set texts "# infos_Texts\r\ninfos_text:some words\r\ninfos_a_b:one=1,two=2\r\n"

    test {sections by the name of the module and their own} {
        assert_equal "$numbers\r\n$texts" [r info INFOS]
        assert_equal $texts [r info infos_texts]
        assert_equal {} [r info infos_other]
        assert_match "# Modules*$numbers\r\n$texts" [r info modules]
        assert_match "*$numbers\r\n$texts" [r info everything]
        assert_match "# CPU*\r\n\r\n$texts" [r info cpu infos_texts]
        assert {![string match *infos_* [r info all]]}
        assert {![string match *infos_* [r info]]}
    }

    test {fields of INFO are read by modules} {
        r config set maxmemory-policy noeviction
        assert_equal {0 0 0 0} [r infos.read memory maxmemory]
        assert_equal {-5 -5 error -5} [r infos.read infos infos_signed]
        assert_equal {18446744073709551615 error 18446744073709551615 1.84467e+19} \
            [r infos.read infos infos_unsigned]
        assert_equal {0.5 error error 0.5} [r infos.read infos infos_double]
        assert_equal {{} error error error} [r infos.read memory nosuch]
        assert_equal {{} error error error} [r infos.read memory maxmem]
    }

    test {fields are read without a context, also by a thread that has not locked the server} {
        r config set maxmemory 123456789
        assert_equal {123456789 123456789} [r infos.apart memory maxmemory]
        r config set maxmemory 0
        assert_equal {-5 -5} [r infos.apart infos infos_signed]
        assert_equal {nothing nothing} [r infos.apart memory nosuch]
        foreach i {1 2 3 4} {lappend clients [connect]}
        for {set i 0} {$i < 20} {incr i} {
            foreach c $clients {$c -send infos.apart memory maxmemory}
            foreach c $clients {assert_equal {0 0} [$c -read]}
        }
    }

    test {a module is not asked if only sections of the server are wanted} {
        set before [r infos.calls]
        r info
        r info all
        r info memory
        r info server default
        r infos.read clients connected_clients
        assert_equal $before [r infos.calls]
        r info memory infos_texts
        assert_equal [expr {$before + 1}] [r infos.calls]
    }

    test {after it was unloaded it has no sections} {
        r module unload infos
        assert_equal {} [r info infos]
    }
}

foreach {how second} {
    nothing {}
    assert {*=== RECURSIVE ASSERTION FAILED ===*}
    fault {*Crashed running signal handler. Providing reduced version of recursive crash report.*}
} {
    start_server {tags {crash needs:config} overrides {enable-module-command yes crash-memcheck-enabled no} crash ok} {
        test "the crash report asks modules, which may crash again: $how" {
            r module load [file normalize build/modules/info.so]
            catch {r infos.crash $how}
            wait_for_condition 1500 10 {[process_ended [srv pid]]}
            set log [server_log]
            assert_match "*=== ASSERTION FAILED ===*------ MODULES INFO OUTPUT ------\n*$second" $log
            if {$how eq "nothing"} {assert_match "*infos_how:nothing*CONFIG DEBUG OUTPUT*" $log}
            assert_equal 1 [regexp -all {BUG REPORT END} $log]
        }
    }
}
