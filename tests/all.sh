#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test`: builds what is needed and runs everything that belongs to a change; the last line is
# "N passed, N failed". tests/long.sh has what takes longer.
#
#   FUZZ_SMOKE=10    seconds per fuzzer
#
# What runs in which build, and what each finds that the others do not:
#
#   Tcl suite  release   RESP2 and RESP3   the programs as they are installed: -O3, LTO, jemalloc, all rounds
#              hostile   RESP2 and RESP3   boundaries of buffers, rings and tables, with sanitizers
#              asan      RESP3             wrong accesses at the sizes of buffers that are in use
#              release   RESP3, TLS        a transport that delivers and accepts other pieces; without the files of $data,
#                                          as it carries what commands compute as it carries anything else
#              release   RESP3, threads    reading and writing by I/O threads; without the same files
#   C tests    debug, hostile, asan        debug has the allocator of release, and the checks; make test-long has release
#
# Two lanes keep two processors busy: most tests of the first wait, most phases of the second use one processor.
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh

# The micro benchmarks are built only, without link-time optimisation: it takes most of the time of a release build.
gate() { made debug benches && made release gate && tests/bench/gate.py budgets; }
durability() { made release build durability-programs && tests/durability/run.py build/release; }
snapshots() { made hostile build && tests/durability/snapshots.py --server build/hostile/valkey-server --rounds 1300; }
soak() { made hostile build && tests/soak/io_threads.py --server build/hostile/valkey-server --operations 1500; }
bus() { made hostile build && tests/fuzz/bus_nodes.py --server build/hostile/valkey-server; }
peers() { made hostile build && tests/fuzz/hostile_peers.py --server build/hostile/valkey-server --seconds 4; }
trial() {
    made debug trial && tests/runtest --root tests/trial --binary build/debug/tests/trial/valkey-server
}
sim() {
    sim=build/release/tests/sim/sim
    made release $sim && $sim --scenario replication --seeds 1000 && $sim --scenario quorum --seeds 700 --jobs 2 &&
        $sim --scenario voters --seeds 1000 --jobs 2 &&
        $sim --scenario slots --seeds 2000 --jobs 2 && $sim --scenario claims --seeds 500 --jobs 2 &&
        $sim --scenario sentinel --seeds 2000 --jobs 2 && $sim --scenario cluster --seeds 2000 --jobs 2
}
sim_faults() {
    faulty=build/release/tests/sim/faulty
    made release $faulty && tests/sim/faults.py $faulty
}
cluster_smoke() { made release build && tests/proofs/cluster.py smoke; }
fuzz() { $make --no-print-directory fuzz FUZZ_SECONDS="${FUZZ_SMOKE:-10}"; }

# Files about data, scripts and programs.
data="unit/type/* unit/write_matrix unit/sort unit/scan unit/defrag unit/script_* unit/acl_verdicts
    integration/write_matrix_later integration/check_* integration/valkey-cli-interactive"

suites() {
    set -f # the patterns are the suite's
    skipped=$(for file in $data; do printf -- '--skip %s ' "$file"; done)
    phase "suite release" tests/runtest
    # shellcheck disable=SC2086 # the options are words
    phase "suite over TLS" tests/runtest --tls --resp 3 --scale 0.2 --timeout 600 $skipped \
        --skip 'cluster/*' # their nodes and raw connections are without TLS
    # shellcheck disable=SC2086 # the options are words
    phase "suite with I/O threads" tests/runtest --io-threads 4 --resp 3 --scale 0.2 $skipped
    suite hostile --scale 0.1 --timeout 900
    suite asan --resp 3 --scale 0.2 --timeout 900
}
others() {
    phase check utils/check.sh
    phase "tests of scripts" tests/utils/run.py
    phase "budgets of a request" gate
    phase "durability" durability
    phase "simulation" sim
    phase "simulation of faults" sim_faults
    phase "clients of changing I/O threads" soak
    phase "cluster under load" cluster_smoke
    phase "subsystem added at run time" trial
    phase "C tests debug" c_tests debug
    phase "fuzz smoke" fuzz
    phase "C tests hostile" c_tests hostile
    phase "snapshots without a fork" snapshots
    phase "hostile messages of the bus" bus
    phase "hostile peers" peers
    phase "C tests asan" c_tests asan
}
phase "programs in src/" made release all
lanes suites others
summary
