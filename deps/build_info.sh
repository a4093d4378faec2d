#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Prints the C file behind src/base/build_info.h: which commit was built and whether src/ had changes.
# The same source gives the same text anywhere: no date, no host, no path. Without git: zeros.
cd "$(dirname "$0")/.." || exit 1
sha=$(git rev-parse --short=8 HEAD 2>/dev/null) || sha=00000000
dirty=0
[ "$sha" = 00000000 ] || git diff --quiet HEAD -- src 2>/dev/null || dirty=1
cat <<END
#include "base/build_info.h"
const char buildGitSha[] = "$sha";
const char buildGitDirty[] = "$dirty";
END
