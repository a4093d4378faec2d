# SPDX-License-Identifier: BSD-3-Clause
#
# The commands of docs/migration.md and docs/from-redis.md work as they are written. Both servers are this one here;
# helpers/migration_guide.py runs them beside a peer: a Valkey, or a Redis.
set guides {
    migration {Before Live "With files" "A cluster, node by node" "With Sentinel"}
    from-redis {Check Live "With a file" "With an append only file" "Single keys"}
}
tags {resp:2 needs:local} {
    foreach {guide sections} $guides {
        foreach section $sections {
            test "the commands of the guide $guide work as written: $section" {
                set folder [file dirname [file normalize $::binary]]
                foreach program {valkey-cli valkey-check-aof} {
                    if {![file exists $folder/$program]} {fail "$folder/$program is missing"}
                }
                if {[catch {exec $::tests_dir/helpers/migration_guide.py $folder --guide $guide --ours $folder --only $section 2>@1} output]} {
                    fail $output
                }
                assert_match "*1 passed, 0 failed" $output
            }
        }
    }
}
