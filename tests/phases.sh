# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by all.sh, quick.sh, long.sh and ci.sh: phases of tests, their counts and the summary. A phase's program ends with
# a line "N passed, N failed", perhaps after a line "N flaky". A phase that fails without one counts as a failure.
# Needs $make. Ends with summary(): a row per phase, then what failed in each phase that failed, in few enough lines to
# be within the last 40 of all output, which is all that some CI keeps. The last line is "N passed, N failed".
#
# lanes() runs sequences of phases side by side. A phase in a lane is printed whole, when it has ended.
# Invariant: a phase that has ended is a line of $phases/ended, name|passed|failed|flaky|seconds|log|exit code|seconds of
# CPU, and only publish() writes it.
phases=build/phases
lane=
phase_number=0
deadline=  # seconds since 1970, by which fits() begins nothing that takes longer; empty: no limit
pace=100 # how long phases take here, in percent of what fits() is told
rm -rf "$phases"
mkdir -p "$phases"
: >"$phases/ended"
: >"$phases/left_out"
# What is tested, for utils/test_counts.py --run: the commit, and whether the tree has changes beside it.
if git rev-parse --short=8 HEAD >"$phases/commit" 2>/dev/null; then git diff --quiet HEAD || echo changed >>"$phases/commit"; fi

# phase NAME COMMAND...: runs it, shows its output, adds its counts and its time to the summary.
phase() {
    name=$1
    shift
    phase_number=$((phase_number + 1))
    log=$phases/$lane$phase_number.log
    begun=$(date +%s)
    if [ -n "$lane" ]; then
        echo "=== $name begins"
        (timed "$@") >"$log" 2>&1 </dev/null
        code=$?
    else
        echo "=== $name"
        { (timed "$@") 2>&1 </dev/null; echo $? >"$log.code"; } | tee "$log"
        code=$(cat "$log.code")
    fi
    seconds=$(($(date +%s) - begun))
    (flock 9 && publish) 9>"$phases/lock"
    [ "$code" = 0 ]
}

# Runs a command, and keeps what it and its processes have used of the processors.
timed() {
    trap 'times >"$log.times"' EXIT
    "$@"
}

# Adds the phase to those that have ended.
publish() {
    if [ -n "$lane" ]; then
        echo "=== $name: $seconds s"
        cat "$log"
    fi
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -1)
    good=$(echo "${counts:-0}" | cut -d' ' -f1)
    bad=$(echo "${counts:-0 passed, 0}" | cut -d' ' -f3)
    unsteady=$(sed -nE 's/^([0-9]+) flaky$/\1/p' "$log" | tail -1)
    if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    cpu=$(awk -F'[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$log.times")
    echo "$name|$good|$bad|${unsteady:-0}|$seconds|$log|$code|$cpu" >>"$phases/ended"
}

# lanes FUNCTION...: runs the functions side by side, each a sequence of phases, and waits for all of them.
lanes() {
    # A shell's background commands ignore Ctrl-C, so what else it interrupts is told.
    trap 'trap "" TERM; kill -TERM 0; exit 130' INT
    for lane in "$@"; do "$lane" & done
    wait
    trap - INT
    lane=
}

# fits SECONDS phase NAME COMMAND... or fits SECONDS suite BUILD NAME OPTIONS...: runs it, if it is over before $deadline.
fits() {
    seconds_needed=$(($1 * pace / 100))
    shift
    if [ -n "$deadline" ] && [ $(($(date +%s) + seconds_needed)) -gt "$deadline" ]; then
        if [ "$1" = suite ]; then echo "suite $2 $3 (no time)"; else echo "$2 (no time)"; fi >>"$phases/left_out"
        return
    fi
    "$@"
}

# made PROFILE GOALS...: makes them, quietly unless something is wrong. Lanes take turns at a profile.
made() {
    record=build/make-$1.log
    (
        flock 8
        $make --no-print-directory BUILD="$@" >"$record" 2>&1 8>&- && exit
        grep -E 'error|warning|undefined|\*\*\*' "$record" | head -40
        exit 1
    ) 8>"build/make-$1.lock"
}
c_tests() { made "$1" c-tests && $make --no-print-directory BUILD="$1" c-test; }

# suite BUILD NAME OPTIONS...: the build and the Tcl suite on its server.
suite() {
    profile=$1
    title="suite $1 $2"
    shift 2
    phase "build $profile" made "$profile" build || return
    phase "$title" tests/runtest --binary "build/$profile/valkey-server" "$@"
}

# reasons LOG LINES: what the phase printed about its failures, or its last lines; not more than LINES lines.
reasons() {
    found=$(grep -a -A 2 -E 'FAILED|\[FLAKY\]|^FLAKY' "$1" | grep -av -e '^--$' -e 'FAILED AGAIN' | head -n "$2")
    if [ -n "$found" ]; then echo "$found"; else tail -n "$2" "$1"; fi | cut -c 1-200
}

summary() {
    echo "=== summary"
    awk -F'|' '{ printf "%-32s %6d passed %4d failed %5d s %5d s of CPU%s\n", $1, $2, $3, $5, $8, $4 ? " " $4 " flaky" : "" }' "$phases/ended"
    awk -F'|' '$7 || $4 { print $6 "|" $1 }' "$phases/ended" >"$phases/notable"
    notable=$(wc -l <"$phases/notable")
    while IFS='|' read -r log name; do
        echo "--- $name"
        reasons "$log" $((36 / notable > 2 ? 36 / notable - 1 : 1))
    done <"$phases/notable"
    if [ -s "$phases/left_out" ]; then echo "left out: $(paste -s -d';' "$phases/left_out" | sed 's/;/; /g')"; fi
    awk -F'|' '{ passed += $2; failed += $3; flaky += $4 }
        END { if (flaky) print flaky " flaky: failed, then passed alone; see FLAKY above"
              print passed + 0 " passed, " failed + 0 " failed"
              exit failed > 0 }' "$phases/ended"
}
