#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make quick`: the checks of the source and the tests of what a change touches, in the debug build and one
# protocol; under two minutes on two processors. `make test` is the whole.
#
#   BASE=<git ref>    what the change is compared with; by default where this branch left origin/main or, on it,
#                     the last commit. Files that are not committed always count.
#
# C tests: all folders, as make links anew only what depends on the change. Tcl: the files of the touched command
# families; every file when something that all commands use has changed.
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh

base=${BASE:-$(git merge-base HEAD origin/main 2>/dev/null)}
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=HEAD; fi
if [ "$base" = HEAD ] && [ -z "$(git status --porcelain)" ]; then base=HEAD~1; fi
changed=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)

# Prints the --single options for the Tcl files that the change touches; nothing stands for all files.
selected() {
    chosen=
    for path in $changed; do
        case $path in
            tests/unit/*.tcl | tests/cluster/*.tcl | tests/integration/*.tcl)
                name=${path#tests/}
                chosen="$chosen ${name%.tcl}" ;;
            src/cmd/procs.h | src/cmd/spec/README.md | *.md | tests/c/* | tests/fuzz/* | tests/utils/* | tests/bench/* | docs/*) ;;
            src/cmd/*.c | src/cmd/*.h | src/cmd/spec/*.json | src/store/type_*.c | src/metrics/*)
                case $path in src/metrics/*) family=metrics ;; *) family=$(basename "$path" | sed 's/^type_//; s/[._].*//') ;; esac
                files=$(cd tests && find unit cluster -name "*$family*.tcl")
                [ -n "$files" ] || return 0
                for name in $files; do chosen="$chosen ${name%.tcl}"; done ;;
            src/* | tests/support/* | tests/test_helper.tcl | Makefile) return 0 ;;
        esac
    done
    for name in $chosen; do echo "--single $name"; done | sort -u
}

phase check utils/check.sh
if phase "build debug" made debug build; then
    options=$(selected)
    if [ -n "$options" ] || echo "$changed" | grep -qE '^(src|tests/support|tests/test_helper|Makefile)'; then
        # shellcheck disable=SC2086 # the options are words
        phase "suite debug" tests/runtest --binary build/debug/valkey-server --resp 3 $options
    fi
fi
phase "C tests debug" c_tests debug
summary
