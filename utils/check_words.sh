#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Words that must not occur: marks of unfinished work, and metaphors and made-up words in comments, names and test
# names, for which plain English has a standard term (docs/glossary.md lists the project's own terms). The patterns are
# narrow, so that Valkey's texts, test data and ordinary English pass. A line that needs such a word has the mark
# "words: ok".
cd "$(dirname "$0")/.." || exit 1
bad=0
words='TO''DO|FIX''ME|TB''D|XX''X|HA''CK|not (yet )?impl''emented|unimpl''emented|(^|[^A-Za-z])st''ub'
if grep -rnIE "$words" Makefile .ci deps src tests utils --include='*.[ch]' --include='*.py' --include='*.sh' \
    --include='*.tcl' --include='*.txt' --include='*.json' --include=Makefile --include=run --include=runtest \
    --exclude-dir=tmp --exclude-dir=assets; then
    echo "words: the lines above speak of unfinished work"
    bad=1
fi

# word or phrase                              instead
metaphors='\b(the|a|small|this) house\b'    # the server, the fixture
metaphors="$metaphors|\\b[Ss]eers?\\b|Seer\\b"                      # command observer
metaphors="$metaphors|\\b(the|a) roof\\b|\\b(a|the|new) wings?\\b"  # server, subsystem
metaphors="$metaphors|\\b([Hh]ung|[Hh]ang(s|ing)?) (it |them )?up (by|at|in|here|there)\\b|hangUp" # registered
metaphors="$metaphors|\\b([Bb]ury|[Bb]uries|[Bb]uried)\\b|slabBury"                             # free, poison
metaphors="$metaphors|\\bdead (keys?|fields?|entry|entries|members?|items?|blocks?)\\b|[a-z]IsDead\\b|\\bisDead\\b" # expired, freed
metaphors="$metaphors|\\b(keys?|fields?|entry|entries|members?) (dies?|died)\\b"                # expire
metaphors="$metaphors|\\b(stands?|stood) (in|at|on|behind|beside|before|there)\\b"              # is, is stored, follows
metaphors="$metaphors|\\b[Ww]hoever\\b|\\btells? nobody\\b"                                       # the caller, a client
metaphors="$metaphors|\\bwhose time has come\\b"                                                # that has expired
metaphors="$metaphors|\\b[a-z]+(Pack|Object)Room\\b|\\b(pack|object)Room\\b|IsSound\\b|[a-z]Wish\\b" # Buffer, IsValid, Params
metaphors="$metaphors|\\bpickers?\\b|\\bcensus\\b"                                               # random elements, sample
metaphors="$metaphors|\\b(no|another|every) sound (nodes?|entry|values?|listpacks?)\\b|\\bwhen sound\\b" # valid
metaphors="$metaphors|\\b(length|count|size)s? that lies?\\b|[a-z]_that_lies_"                     # wrong, untrusted
metaphors="$metaphors|\\bthere and back\\b|\\bbetter placed\\b"                                 # round trip, defragment
metaphors="$metaphors|\\btold by (INFO|what)\\b|\\bNULL: nobody\\b|\\bhear of the end\\b"       # shown by, called for
if grep -rnIE "$metaphors" src tests utils docs --include='*.[ch]' --include='*.py' --include='*.sh' --include='*.tcl' \
    --include='*.md' --include='*.txt' --exclude-dir=tmp --exclude-dir=assets --exclude=command_table.c \
    --exclude=check_words.sh | grep -v 'words: ok'; then
    echo "words: the lines above need plain English (see docs/glossary.md and $0)"
    bad=1
fi
[ $bad = 0 ] && echo "words: fine"
exit $bad
