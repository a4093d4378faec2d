#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test`: builds what is needed and runs everything that belongs to a change, in a quarter of an hour on two
# processors; the last line is "N passed, N failed". parts.sh has the lists of phases, and what runs elsewhere.
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
. tests/phases.sh
. tests/parts.sh

belongs
summary
