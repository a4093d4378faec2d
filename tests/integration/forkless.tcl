# SPDX-License-Identifier: BSD-3-Clause
#
# The directives of Valkey 9.2 for saves without a fork, and their fields of INFO: forkless-infrastructure-enabled,
# bgsave-default-method. How such a save works: snapshot_inline.tcl.

set module [file normalize build/modules/dataset.so]

proc bgsave_and_wait {} {
    set forks [info_field total_forks]
    assert_match "Background saving started*" [r bgsave]
    info_is rdb_bgsave_in_progress 0
    assert_equal ok [info_field rdb_last_bgsave_status]
    return [list [info_field rdb_last_bgsave_type] [expr {[info_field total_forks] - $forks}]]
}

start_server {tags {rdb} overrides {save "" forkless-infrastructure-enabled yes enable-module-command yes}} {
    test {bgsave-default-method: fork leaves the choice to snapshot-mode, forkless does not fork} {
        r set k v
        assert_equal {none none} [list [info_field rdb_current_bgsave_type] [info_field rdb_last_bgsave_type]]
        assert_equal {fork 1} [bgsave_and_wait]
        r config set snapshot-mode inline
        assert_equal {forkless 0} [bgsave_and_wait]
        r config set snapshot-mode fork bgsave-default-method forkless
        assert_equal {forkless 0} [bgsave_and_wait]
        r config set snapshot-mode auto
        assert_equal {forkless 0} [bgsave_and_wait]
        assert_equal none [info_field rdb_current_bgsave_type]
        assert_error "*must be one of the following: fork, forkless*" {r config set bgsave-default-method thread}
        r config set forkless-infrastructure-enabled no
        assert_equal {fork 1} [bgsave_and_wait]
        r config set forkless-infrastructure-enabled yes
    }

    test {INFO shows the type of a running save, and how long a forkless one will take} {
        r debug populate 5000
        foreach {method type} {forkless forkless fork fork} {
            r config set bgsave-default-method $method rdb-key-save-delay 1000
            r bgsave
            assert_equal $type [info_field rdb_current_bgsave_type]
            assert_equal [expr {$type eq "forkless"}] [string match "*forkless_estimated_seconds_remaining:*" [r info persistence]]
            if {$type eq "forkless"} {
                wait_for_condition 500 20 {[info_field current_save_keys_processed] > 0}
                assert {[info_field forkless_estimated_seconds_remaining] > 0}
            }
            assert_match "Background saving*cancelled" [r bgsave cancel]
            info_is rdb_bgsave_in_progress 0
            assert_equal $type [info_field rdb_last_bgsave_type]
            r config set rdb-key-save-delay 0
        }
        assert_equal none [info_field rdb_current_bgsave_type]
        assert {![string match "*forkless_estimated_seconds_remaining*" [r info persistence]]}
    }

    test {save points use bgsave-default-method, and what was saved is whole} {
        r config set bgsave-default-method forkless
        set digest [r debug digest]
        set saves [info_field rdb_saves]
        r config set save "1 1"
        r set more 1
        r del more
        wait_for_condition 500 20 {[info_field rdb_saves] > $saves && [info_field rdb_bgsave_in_progress] == 0}
        assert_equal forkless [info_field rdb_last_bgsave_type]
        r config set save ""
        bgsave_and_wait
        assert_equal OK [r debug reload nosave]
        assert_equal $digest [r debug digest]
    } {needs:debug}

    test {a module with types of values and without HANDLE_FORKLESS makes saves fork} {
        r config set bgsave-default-method forkless
        r module load $module options 1
        assert_equal {fork 1} [bgsave_and_wait]
        assert {![string match "*handle-forkless*" [r info modules]]}
    }
}

start_server {tags {rdb} overrides {save "" forkless-infrastructure-enabled yes bgsave-default-method forkless enable-module-command yes}} {
    test {a module with the option HANDLE_FORKLESS does not} {
        r module load $module options 65
        r set k v
        assert_equal {forkless 0} [bgsave_and_wait]
        assert_match "*handle-forkless*" [r info modules]
    }
}

start_server {tags {rdb} overrides {save "" bgsave-default-method forkless}} {
    test {without forkless-infrastructure-enabled saves fork as snapshot-mode says} {
        r set k v
        assert_equal {fork 1} [bgsave_and_wait]
        r config set snapshot-mode inline
        assert_equal {forkless 0} [bgsave_and_wait]
    }
}
