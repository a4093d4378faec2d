# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by all.sh, quick.sh and long.sh: phases of tests, their counts and the summary. A phase's program ends with
# a line "N passed, N failed", perhaps after a line "N flaky". A phase that fails without one counts as a failure.
# Needs $make. Ends with summary(), which repeats what was printed about failures: of a long output often only the end
# is kept. Its last line is "N passed, N failed".
passed=0
failed=0
flaky=0
lines=
failures=
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
    unsteady=$(sed -nE 's/^([0-9]+) flaky$/\1/p' build/phase.log | tail -1)
    if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
    flaky=$((flaky + ${unsteady:-0}))
    lines="$lines$(printf '%-32s %6d passed %4d failed %5d s' "$name" "$good" "$bad" $(($(date +%s) - begun)))${unsteady:+ $unsteady flaky}
"
    if [ "$code" != 0 ] || [ "${unsteady:-0}" != 0 ]; then note_failures; fi
    [ "$code" = 0 ]
}

# Keeps for the summary what the phase printed about its failures, or its last lines.
note_failures() {
    found=$(grep -a -A 2 -E 'FAILED|\[FLAKY\]' build/phase.log | head -60)
    failures="$failures--- $name
${found:-$(tail -10 build/phase.log)}
"
}

# made PROFILE GOALS...: makes them, quietly unless something is wrong.
made() {
    log=build/make-$1.log
    $make --no-print-directory BUILD="$@" >"$log" 2>&1 && return
    grep -E 'error|warning|undefined|\*\*\*' "$log" | head -40
    return 1
}
c_tests() { made "$1" c-tests && $make --no-print-directory BUILD="$1" c-test; }

# profile NAME SUITE-OPTIONS...: its build, its C tests, and the Tcl suite on its server.
profile() {
    profile=$1
    shift
    if phase "build $profile" made "$profile" build; then
        phase "suite $profile" tests/runtest --binary "build/$profile/valkey-server" "$@"
    fi
    phase "C tests $profile" c_tests "$profile"
}

summary() {
    [ -z "$failures" ] || printf '=== failures\n%s' "$failures"
    echo "=== summary"
    printf '%s' "$lines"
    [ "$flaky" = 0 ] || echo "$flaky flaky: failed, then passed alone; see FLAKY above"
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
