#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test`: builds what is needed and runs everything that belongs to a change; the last line is
# "N passed, N failed". tests/long.sh has what takes longer.
#
#   FUZZ_SMOKE=10    seconds per fuzzer
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh

gate() { made release gate benches && tests/bench/gate.py budgets; }
durability() { made release build durability-programs && tests/durability/run.py build/release; }
snapshots() { tests/durability/snapshots.py --server build/hostile/valkey-server --rounds 1300; }
sim() { made debug build/debug/tests/sim/sim && build/debug/tests/sim/sim --seeds 1000; }
fuzz() { $make --no-print-directory fuzz FUZZ_SECONDS="${FUZZ_SMOKE:-10}"; }

phase "programs in src/" made release all
phase check utils/check.sh
phase "tests of scripts" tests/utils/run.py
phase "budgets of a request" gate
profile release
phase "suite over TLS" tests/runtest --tls --resp 3
phase "suite with I/O threads" tests/runtest --io-threads 4 --resp 3 --scale 0.2
phase "durability" durability
phase "simulation of replication" sim
profile hostile --scale 0.1 --timeout 900
phase "snapshots without a fork" snapshots
profile asan --scale 0.2 --timeout 900
phase "fuzz smoke" fuzz
summary
