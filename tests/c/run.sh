#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs C test programs (cmocka), one per processor at a time; ends with "N passed, N failed".
#
#   run.sh PROGRAM...
#
#   RUNNER="qemu-aarch64 ..."    what runs the programs, when the machine cannot
#
# A program with failures runs a second time, after all others. If all its tests pass then, those that failed are reported as
# FLAKY with the first run's log; they count as passed and in a line "N flaky" before the last one.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
here=$(dirname "$0")

# Runs a program: its output is in $1.$2log, its exit code, passed and failed tests in $1.$2counts.
run_once() {
    log=$1.$2log
    # shellcheck disable=SC2086 # the runner and its options are words
    timeout -k 5 "${C_TEST_SECONDS:-900}" $RUNNER "$1" >"$log" 2>&1 </dev/null
    code=$?
    good=$(awk '/^\[  PASSED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$log")
    bad=$(awk '/^\[  FAILED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$log")
    # A crash, a leak or a timeout counts, though cmocka could not report it.
    if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    echo "$code $good $bad" >"$1.$2counts"
}

show_log() { grep -vE '^\[( RUN      |       OK )\]' "$1" | tail -60 | sed 's/^/        /'; }

if [ "$1" = --one ]; then
    run_once "$2" ""
    read -r code good bad <"$2.counts"
    if [ "$bad" = 0 ]; then echo "ok      $2: $good passed"; fi
    exit 0
fi

for program in "$@"; do rm -f "$program.counts"; done
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 "$here/run.sh" --one

passed=0
failed=0
flaky=0
for program in "$@"; do
    # A program of which nothing is known counts as failed.
    [ -f "$program.counts" ] || echo "- 0 1" >"$program.counts"
    read -r code good bad <"$program.counts"
    log=$program.log
    if [ "$bad" != 0 ]; then
        first_bad=$bad
        first_code=$code
        run_once "$program" again.
        if [ "$bad" = 0 ]; then
            flaky=$((flaky + first_bad))
            echo "FLAKY   $program: $first_bad failed with exit code $first_code, then passed"
            show_log "$program.log"
        else
            echo "FAILED  $program: $good passed, $bad failed, exit code $code"
            show_log "$log"
        fi
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
done
[ "$flaky" = 0 ] || echo "$flaky flaky"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
