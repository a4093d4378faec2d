#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test-long`: what is too slow for each change: the suite under ThreadSanitizer, the C tests as in a release, the
# tests on arm64 in an emulator, every fuzzer for minutes, thousands of killed servers and 200,000 snapshots without a
# fork. The last line is "N passed, N failed".
#
#   FUZZ_SECONDS=300    per fuzzer
#   SIM_SEEDS=1000000   runs of the simulated cluster
#   CLAIM_SEEDS=100000  the same with two claims of the same slots
#   QUORUM_SEEDS=100000 the same with replication-quorum
#   QUORUM_RUNS=100     minutes of real clusters with replication-quorum, two at a time
#   QUORUM_KIND_RUNS=10 the same of each of: TLS, the disk, Sentinels, ...
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh

fuzz() { $make --no-print-directory fuzz FUZZ_SECONDS="${FUZZ_SECONDS:-300}"; }
durability() { made release build durability-programs && tests/durability/run.py build/release --long; }
snapshots() { made "$1" build && tests/durability/snapshots.py --server "build/$1/valkey-server" --rounds 100000; }
soak() { made "$1" build && tests/soak/io_threads.py --server "build/$1/valkey-server" --seconds "$2"; }
sim() {
    sim=build/release/tests/sim/sim
    made release $sim && $sim --scenario "$1" --seeds "$2" --jobs "$(nproc)"
}
quorum_proof() {
    made release build build/release/tests/proofs/clock.so &&
        tests/proofs/quorum.py --runs "${QUORUM_RUNS:-100}" --seconds 60 --jobs 2
}
quorum_kinds() {
    for kind in "--tls" "--tls --disk --fsync always" "--disk --fsync everysec" "--sentinels 3" "--sentinels 3 --disk --fsync always"; do
        # shellcheck disable=SC2086 # the options are words
        tests/proofs/quorum.py --runs "${QUORUM_KIND_RUNS:-10}" --seconds 60 --jobs 2 $kind || return 1
    done
}
arm64() { MAKE=$make tests/arm64.sh; }

suite tsan --scale 0.1 --timeout 1800
phase "C tests tsan" c_tests tsan
phase "C tests release" c_tests release
phase "suite tsan with I/O threads" tests/runtest --binary build/tsan/valkey-server --io-threads 4 --resp 3 --scale 0.1 --timeout 1800
phase "clients of changing I/O threads, asan" soak asan 1800
phase "clients of changing I/O threads, tsan" soak tsan 600
phase arm64 arm64
phase "simulation of a cluster" sim cluster "${SIM_SEEDS:-1000000}"
phase "simulation of slot migration" sim slots "${SIM_SEEDS:-1000000}"
phase "simulation of claims" sim claims "${CLAIM_SEEDS:-100000}"
phase "simulation of replication-quorum" sim quorum "${QUORUM_SEEDS:-100000}"
phase "replication-quorum in real clusters" quorum_proof
phase "replication-quorum over TLS, on disk, with Sentinels" quorum_kinds
phase fuzz fuzz
phase "durability, long" durability
phase "snapshots, hostile" snapshots hostile
phase "snapshots, asan" snapshots asan
summary
