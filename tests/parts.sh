# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced after phases.sh by all.sh, long.sh and ci.sh: what the phases do, and the lists of phases.
#
#   belongs_*   `make test`: what belongs to a change
#   rest_*      what left `make test` to keep it short: it repeats most of it in other builds and protocols
#   long_*      what is too slow for each change
#
# `make test-long` runs rest_* and long_*; .ci/run runs belongs_*, rest_*, and as much of long_* as its time allows.
# Lists of a name run side by side: most tests of *_suites and *_waits wait, most phases of *_work use one processor.
# `fits SECONDS` before a phase is what it takes on two processors beside the other lists; only .ci/run has a limit.
#
# What runs in which build, and what each finds that the others do not:
#
#   Tcl suite  release   RESP3              belongs  the programs as they are installed: -O3, LTO, jemalloc, all rounds
#              hostile   RESP2              belongs  boundaries of buffers, rings and tables, with sanitizers
#              release   RESP3, threads     belongs  reading and writing by I/O threads; without the files of $data, as
#                                                    threads carry what commands compute as they carry anything else
#              release   RESP2              rest     replies of the older protocol with all rounds and jemalloc
#              hostile   RESP3              rest     replies of the newer protocol at the boundaries of buffers
#              release   RESP3, TLS         rest     a transport that delivers and accepts other pieces; without $data
#              asan      RESP3              rest     wrong accesses at the sizes of buffers that are in use
#              tsan      RESP2 and RESP3    long     races; with four I/O threads, too
#   C tests    debug                        belongs  debug has the allocator of release, and the checks
#              hostile, asan                rest     the same at small limits; with sanitizers
#              release, tsan                long
#
#   FUZZ_SMOKE=10       seconds per fuzzer in rest_*
#   FUZZ_SECONDS=300    the same in long_*
#   SOAK_SECONDS=600    clients of changing I/O threads
#   STRING_STEPS=1000000 commands about compressed strings
#   TSAN_TIMEOUT=1800   seconds that a file of the suite may take with ThreadSanitizer
#   SIM_SEEDS=1000000   runs of the simulated cluster
#   CLAIM_SEEDS=100000  the same with two claims of the same slots
#   QUORUM_SEEDS=100000 the same with replication-quorum
#   QUORUM_RUNS=100     minutes of real clusters with replication-quorum, two at a time
#   QUORUM_KIND_RUNS=10 the same of each of: TLS, the disk, Sentinels, ...

# Files about data, scripts and programs.
data="unit/type/* unit/write_matrix unit/sort unit/scan unit/defrag unit/script_* unit/acl_verdicts
    integration/write_matrix_later integration/check_* integration/valkey-cli-interactive"
without_data() {
    set -f # the patterns are the suite's
    # shellcheck disable=SC2046 # the options are words
    tests/runtest --resp 3 --scale 0.2 $(for file in $data; do printf -- '--skip %s ' "$file"; done) "$@"
}

# The micro benchmarks are built only, without link-time optimisation: it takes most of the time of a release build.
gate() { made debug benches && made release gate && tests/bench/gate.py budgets; }
durability() { made release build durability-programs && tests/durability/run.py build/release "$@"; }
snapshots() { made "$1" build && tests/durability/snapshots.py --server "build/$1/valkey-server" --rounds "$2"; }
# soak BUILD OPTION COUNT: for so many --operations or --seconds.
soak() { made "$1" build && tests/soak/io_threads.py --server "build/$1/valkey-server" "$2" "$3"; }
bus() { made hostile build && tests/fuzz/bus_nodes.py --server build/hostile/valkey-server; }
peers() { made hostile build && tests/fuzz/hostile_peers.py --server build/hostile/valkey-server --seconds 4; }
held_memory() { made release build && tests/fuzz/held_memory.py; }
trial() {
    made debug trial && tests/runtest --root tests/trial --binary build/debug/tests/trial/valkey-server
}
sim() {
    made release build/release/tests/sim/sim && build/release/tests/sim/sim --scenario "$1" --seeds "$2" --jobs "$(nproc)"
}
sims() {
    sim replication 1000 && sim quorum 700 && sim voters 1000 && sim slots 2000 && sim claims 500 && sim sentinel 2000 && sim cluster 2000
}
sim_faults() {
    faulty=build/release/tests/sim/faulty
    made release $faulty && tests/sim/faults.py $faulty
}
cluster_smoke() { made release build && tests/proofs/cluster.py smoke; }
fuzz() { $make --no-print-directory fuzz FUZZ_SECONDS="$1"; }
quorum_proof() {
    made release build build/release/tests/proofs/clock.so &&
        tests/proofs/quorum.py --runs "$quorum_runs" --seconds 60 --jobs 2
}
quorum_kinds() {
    for kind in "--tls" "--tls --disk --fsync always" "--disk --fsync everysec" "--sentinels 3" "--sentinels 3 --disk --fsync always"; do
        # shellcheck disable=SC2086 # the options are words
        tests/proofs/quorum.py --runs "$quorum_kind_runs" --seconds 60 --jobs 2 $kind || return 1
    done
}
nodes() { made "$1" build && tests/differential/compressed_nodes.py "build/$1/valkey-server" --steps "$2" --cuts 20; }
strings() { made "$1" build && tests/differential/compressed_strings.py "build/$1/valkey-server" --steps "$2" --cuts 30; }
arm64() { MAKE=$make tests/arm64.sh; }

# ---- what belongs to a change

belongs_suites() {
    phase "suite release RESP3" tests/runtest --resp 3
    phase "suite with I/O threads" without_data --io-threads 4
    suite hostile RESP2 --resp 2 --scale 0.1 --timeout 900
}
belongs_work() {
    phase check utils/check.sh
    phase "tests of scripts" tests/utils/run.py
    phase "budgets of a request" gate
    phase "C tests debug" c_tests debug
    phase "simulation" sims
    phase "snapshots without a fork" snapshots hostile 1300
}
belongs_waits() {
    phase "durability" durability
    phase "cluster under load" cluster_smoke
    phase "subsystem added at run time" trial
    phase "clients of changing I/O threads" soak hostile --operations 1500
    phase "hostile messages of the bus" bus
    phase "hostile peers" peers
    phase "memory that peers hold" held_memory
}
belongs() {
    phase "programs in src/" made release all
    lanes belongs_suites belongs_work belongs_waits
}

# ---- what left `make test`; seconds as fits() takes them

rest_suites() {
    fits 240 phase "suite release RESP2" tests/runtest --resp 2
    fits 150 phase "suite over TLS" without_data --tls --timeout 600 --skip 'cluster/*' # raw connections without TLS
    fits 300 suite hostile RESP3 --resp 3 --scale 0.1 --timeout 900
    fits 300 suite asan RESP3 --resp 3 --scale 0.2 --timeout 900
}
rest_work() {
    fits 180 phase "C tests hostile" c_tests hostile
    fits 300 phase fuzz fuzz "${FUZZ_SMOKE:-10}"
    fits 190 phase "simulation of faults" sim_faults
    fits 200 phase "C tests asan" c_tests asan
}
rest() { lanes rest_suites rest_work; }

# ---- what is too slow for each change, the most valuable first

# possible TEST fits ...: within a limit of time, what this machine may not allow is left out; `make test-long` needs it.
possible() {
    if [ -z "$deadline" ] || "$1" >/dev/null 2>&1; then
        shift
        "$@"
    elif [ "$4" = suite ]; then
        echo "suite $5 $6 (not $1 here)" >>"$phases/left_out"
    else
        echo "$5 (not $1 here)" >>"$phases/left_out"
    fi
}
isolated() { [ "$(id -u)" = 0 ] && ip netns list && unshare --net true; }
threads_checked() {
    program=build/tsan_works
    [ -e $program ] || echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c -o $program -
    $program && $program && $program
}

sim_seeds=${SIM_SEEDS:-1000000}
claim_seeds=${CLAIM_SEEDS:-100000}
quorum_seeds=${QUORUM_SEEDS:-100000}
quorum_runs=${QUORUM_RUNS:-100}
quorum_kind_runs=${QUORUM_KIND_RUNS:-10}
fuzz_seconds=${FUZZ_SECONDS:-300}
soak_seconds=${SOAK_SECONDS:-600}
string_steps=${STRING_STEPS:-1000000}
tsan_timeout=${TSAN_TIMEOUT:-1800}
# ThreadSanitizer never forgets the calls that an error in Lua leaves; after 65,536 of them it ends the process.
tsan_options="--scale 0.1 --timeout $tsan_timeout --skip unit/script_bounds --skip unit/script_sandbox"
# shellcheck disable=SC2086 # the options are words
long_suites() {
    possible threads_checked fits 1200 suite tsan RESP3 --resp 3 $tsan_options
    possible threads_checked fits 1200 phase "suite tsan with I/O threads" tests/runtest --binary build/tsan/valkey-server --io-threads 4 --resp 3 $tsan_options
    possible threads_checked fits 1200 suite tsan RESP2 --resp 2 $tsan_options
}
long_work() {
    fits $((sim_seeds / 50 + 60)) phase "simulation of a cluster, long" sim cluster "$sim_seeds"
    fits $((quorum_seeds / 25 + 60)) phase "simulation of replication-quorum, long" sim quorum "$quorum_seeds"
    fits $((sim_seeds / 50 + 60)) phase "simulation of slot migration, long" sim slots "$sim_seeds"
    fits $((claim_seeds / 25 + 60)) phase "simulation of claims, long" sim claims "$claim_seeds"
    possible threads_checked fits $((soak_seconds + 120)) phase "clients of changing I/O threads, tsan" soak tsan --seconds "$soak_seconds"
    possible isolated fits $((quorum_runs * 35 + 60)) phase "replication-quorum in real clusters" quorum_proof
    fits 300 phase "C tests release" c_tests release
    fits 400 phase "compressed strings, asan" strings asan "$string_steps"
    fits 200 phase "compressed nodes, asan" nodes asan "$((string_steps / 10))"
    fits $((fuzz_seconds * 10 + 30)) phase "fuzz, long" fuzz "$fuzz_seconds"
    possible isolated fits $((quorum_kind_runs * 175 + 60)) phase "replication-quorum over TLS, on disk, with Sentinels" quorum_kinds
    fits $((soak_seconds * 3 + 120)) phase "clients of changing I/O threads, asan" soak asan --seconds "$((soak_seconds * 3))"
    possible threads_checked fits 400 phase "C tests tsan" c_tests tsan
    fits 3600 phase "durability, long" durability --long
    fits 3600 phase "snapshots, hostile" snapshots hostile 100000
    fits 3600 phase "snapshots, asan" snapshots asan 100000
    fits 3600 phase arm64 arm64
}
