#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make quick`: the checks of the source and the tests of what a change touches, in the debug build and one
# protocol; under two minutes on two processors. `make test` is the whole.
#
#   BASE=<git ref>    what the change is compared with; by default where this branch left origin/main. Files that are
#                     not committed always count.
#
# C tests: all folders, as make links anew only what depends on the change. Tcl: the files that support/quick_files.txt
# has for the changed ones; of a tree without a change a part of each kind.
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh

base=${BASE:-$(git merge-base HEAD origin/main 2>/dev/null)}
changed=$({ git diff --name-only "${base:-HEAD}"; git ls-files --others --exclude-standard; } | sort -u)
# shellcheck disable=SC2086 # the names are words
selected=$(tests/quick_files.py $changed)

suite_of_change() {
    # shellcheck disable=SC2046 # the options are words
    tests/runtest --binary build/debug/valkey-server --resp 3 $(for file in $selected; do echo "--single $file"; done)
}
suite_debug() { if [ -n "$selected" ]; then phase "suite debug" suite_of_change; fi; }
others() {
    phase check utils/check.sh
    phase "C tests debug" c_tests debug
}
phase "build debug" made debug build && lanes suite_debug others
summary
