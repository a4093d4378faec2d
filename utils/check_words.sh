#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# No unfinished words: what stands in the tree is done, or it does not stand there.
cd "$(dirname "$0")/.." || exit 1
words='TO''DO|FIX''ME|TB''D|XX''X|HA''CK|not (yet )?impl''emented|unimpl''emented|(^|[^A-Za-z])st''ub'
if grep -rnIE "$words" Makefile .ci deps src tests utils --include='*.[ch]' --include='*.py' --include='*.sh' \
    --include='*.tcl' --include='*.txt' --include='*.json' --include=Makefile --include=run --include=runtest \
    --exclude-dir=tmp --exclude-dir=assets; then
    echo "words: the lines above speak of unfinished work"
    exit 1
fi
echo "words: none unfinished"
