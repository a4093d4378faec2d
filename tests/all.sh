#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test`: builds what is needed and runs everything. Each phase ends with a line "N passed, N failed",
# from which the sum, the last line of all, is made. A phase that ends badly without one counts as a failure.
#
#   FUZZ_SMOKE=10    seconds per fuzzer
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
passed=0
failed=0
summary=
mkdir -p build

# phase NAME COMMAND...: runs it, shows its output, adds its counts and its time to the summary.
phase() {
    name=$1
    shift
    echo "=== $name"
    begun=$(date +%s)
    { "$@" 2>&1 </dev/null; echo $? >build/phase.code; } | tee build/phase.log
    code=$(cat build/phase.code)
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' build/phase.log | tail -1)
    good=$(echo "${counts:-0}" | cut -d' ' -f1)
    bad=$(echo "${counts:-0 passed, 0}" | cut -d' ' -f3)
    if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
    summary="$summary$(printf '%-32s %6d passed %4d failed %5d s' "$name" "$good" "$bad" $(($(date +%s) - begun)))
"
    [ "$code" = 0 ]
}

# made PROFILE GOALS...: makes them, quietly unless something is wrong.
made() {
    log=build/make-$1.log
    $make --no-print-directory BUILD="$@" >"$log" 2>&1 && return
    grep -E 'error|warning|undefined|\*\*\*' "$log" | head -40
    return 1
}
c_tests() { made "$1" c-tests && $make --no-print-directory BUILD="$1" c-test; }
gate() { made release gate && tests/bench/gate.py budgets; }
fuzz() { $make --no-print-directory fuzz FUZZ_SECONDS="${FUZZ_SMOKE:-10}"; }

# profile NAME SUITE-OPTIONS...: its build, its C tests, and the Tcl suite on its server.
profile() {
    profile=$1
    shift
    if phase "build $profile" made "$profile" build && [ -f src/server/main.c ]; then
        phase "suite $profile" tests/runtest --binary "build/$profile/valkey-server" "$@"
    fi
    phase "C tests $profile" c_tests "$profile"
}

phase "programs in src/" made release all
phase check utils/check.sh
phase "tests of scripts" tests/utils/run.py
phase "budgets of a request" gate
profile release
profile hostile --scale 0.1 --timeout 900
profile asan --scale 0.2 --timeout 900
phase "fuzz smoke" fuzz

echo "=== summary"
printf '%s' "$summary"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
