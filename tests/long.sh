#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test-long`: what `make test` leaves out: the suite in further builds and protocols, under ThreadSanitizer, the
# tests on arm64 in an emulator, every fuzzer for minutes, thousands of killed servers and 200,000 snapshots without a
# fork. parts.sh has the lists of phases and the variables that change their length. The last line is
# "N passed, N failed".
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh
. tests/parts.sh

rest
lanes long_suites long_work
summary
