#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Only its own command (through its ctx) and sessionDeliver() write to the output of a session: outside of
# engine/ and net/ no code names a session's `out`.
cd "$(dirname "$0")/.." || exit 1
folders=$(ls -d src/*/ | grep -v -e src/engine/ -e src/net/)
# shellcheck disable=SC2086
if grep -nE '(session\.|session->|who->|\bs->|\]->)out\b' $(find $folders -name '*.[ch]'); then
    echo "output: the lines above touch a session's output; use the ctx's, or sessionDeliver() of engine/deliver.h"
    exit 1
fi
echo "output: no session's output is touched from outside"
