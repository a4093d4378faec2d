#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Generated files are checked in, so that a build needs no Python: are they what their source says?
cd "$(dirname "$0")/.." || exit 1
if [ ! -e utils/gen_commands.py ]; then
    echo "generated: none"
    exit 0
fi
exec python3 utils/gen_commands.py --check
