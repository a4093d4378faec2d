#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs C test programs (cmocka), one after the other; ends with "N passed, N failed".
#
#   run.sh PROGRAM...
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
passed=0
failed=0
for program in "$@"; do
    log=$program.log
    timeout -k 5 "${C_TEST_SECONDS:-300}" "$program" >"$log" 2>&1 </dev/null
    code=$?
    good=$(awk '/^\[  PASSED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$log")
    bad=$(awk '/^\[  FAILED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$log")
    # A crash, a leak or a stop by time counts, though cmocka could not say so.
    if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" = 0 ]; then
        echo "ok      $program: $good passed"
    else
        echo "FAILED  $program: $good passed, $bad failed, exit code $code"
        grep -vE '^\[( RUN      |       OK )\]' "$log" | tail -60 | sed 's/^/        /'
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
