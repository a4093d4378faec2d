#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs fuzzers in parallel, one per processor; ends with "N passed, N failed".
#
#   run.sh SECONDS PROGRAM...     SECONDS each
#
# Seeds are in tests/assets/fuzz/<name>/; new inputs are added to build/fuzz/corpus/<name>/, a
# crashing input is stored in build/fuzz/found/. Add it to the seeds once the bug is fixed.
cd "$(dirname "$0")/../.." || exit 1

runOne() {
    program=$2
    name=${program##*/fuzz_}
    log=build/fuzz/$name.log
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus" build/fuzz/found
    seeds=
    if [ -d "tests/assets/fuzz/$name" ]; then seeds=tests/assets/fuzz/$name; fi
    words=
    if [ -f "tests/fuzz/$name.dict" ]; then words=-dict=tests/fuzz/$name.dict; fi
    # shellcheck disable=SC2086 # seeds and words are one word or none
    if "$program" -max_total_time="$1" -timeout=25 -rss_limit_mb=2048 -print_final_stats=1 $words \
        -artifact_prefix="build/fuzz/found/$name-" "$corpus" $seeds >"$log" 2>&1 </dev/null; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "ok      fuzz $name: $runs runs in $1 s"
    else
        echo "FAILED  fuzz $name"
        grep -v '^#' "$log" | tail -50 | sed 's/^/        /'
    fi
}

if [ "$1" = --one ]; then
    runOne "$2" "$3"
    exit 0
fi
seconds=$1
shift
[ $# = 0 ] && { echo "no fuzzers"; echo "0 passed, 0 failed"; exit 0; }
mkdir -p build/fuzz
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 tests/fuzz/run.sh --one "$seconds" | tee build/fuzz/summary
passed=$(grep -c '^ok ' build/fuzz/summary)
failed=$(grep -c '^FAILED' build/fuzz/summary)
# A fuzzer without a report counts as failed.
failed=$((failed + $# - passed - failed))
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
