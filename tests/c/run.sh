#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs C test programs (cmocka), one after the other; ends with "N passed, N failed".
#
#   run.sh PROGRAM...
#
#   RUNNER="qemu-aarch64 ..."    what runs the programs, when the machine cannot
#
# A program with failures runs a second time. If all its tests pass then, those that failed are reported as
# FLAKY with the first run's log; they count as passed and in a line "N flaky" before the last one.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
passed=0
failed=0
flaky=0

# Runs one program; sets good, bad and code.
runOnce() {
    # shellcheck disable=SC2086 # the runner and its options are words
    timeout -k 5 "${C_TEST_SECONDS:-300}" $RUNNER "$1" >"$2" 2>&1 </dev/null
    code=$?
    good=$(awk '/^\[  PASSED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$2")
    bad=$(awk '/^\[  FAILED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$2")
    # A crash, a leak or a timeout counts, though cmocka could not report it.
    if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
}

showLog() { grep -vE '^\[( RUN      |       OK )\]' "$1" | tail -60 | sed 's/^/        /'; }

for program in "$@"; do
    log=$program.log
    runOnce "$program" "$log"
    if [ "$bad" != 0 ]; then
        first_bad=$bad
        first_code=$code
        runOnce "$program" "$program.again.log"
        if [ "$bad" = 0 ]; then
            flaky=$((flaky + first_bad))
            echo "FLAKY   $program: $first_bad failed with exit code $first_code, then passed"
            showLog "$log"
        fi
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" = 0 ]; then
        echo "ok      $program: $good passed"
    else
        echo "FAILED  $program: $good passed, $bad failed, exit code $code"
        showLog "$log"
    fi
done
[ "$flaky" = 0 ] || echo "$flaky flaky"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
