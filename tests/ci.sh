#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What .ci/run runs: `make test`, then what left it, then what is long, in short versions, as long as the time allows.
# One summary; the last line is "N passed, N failed".
#
#   CI_SECONDS=3300    no phase begins that would end later, after the start of this script
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
export SIM_SEEDS="${SIM_SEEDS:-10000}" QUORUM_SEEDS="${QUORUM_SEEDS:-3000}" QUORUM_RUNS="${QUORUM_RUNS:-4}"
export QUORUM_KIND_RUNS="${QUORUM_KIND_RUNS:-1}" FUZZ_SECONDS="${FUZZ_SECONDS:-30}" SOAK_SECONDS="${SOAK_SECONDS:-60}" TSAN_TIMEOUT="${TSAN_TIMEOUT:-400}"
. tests/phases.sh
. tests/parts.sh

belongs_seconds=900 # on two processors
begun_all=$(date +%s)
deadline=$((begun_all + ${CI_SECONDS:-3300}))
belongs
taken=$(($(date +%s) - begun_all))
if [ $taken -gt $belongs_seconds ]; then pace=$((100 * taken / belongs_seconds)); fi
rest
lanes long_suites long_work
summary
