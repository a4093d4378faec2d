#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Generated files are checked in, so that a build does not need Python: checks that they are up to date.
cd "$(dirname "$0")/.." || exit 1
python3 utils/gen_commands.py --check && exec python3 utils/gen_module_api.py --check
