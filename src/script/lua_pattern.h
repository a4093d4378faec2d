/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lua patterns with a bound on depth, and steps that are counted so that a script can be ended
 * inside a match. */
#ifndef SCRIPT_LUA_PATTERN_H
#define SCRIPT_LUA_PATTERN_H

#include "script/lua_priv.h"

enum { PATTERN_CAPTURES_MAX = 32, PATTERN_DEPTH_MAX = 15000 };
enum { CAPTURE_OPEN = -1, CAPTURE_POSITION = -2 };

typedef struct patternMatch {
    lua_State *L;
    luaVm *vm;
    const char *text, *text_end;
    const char *pattern_end;
    int depth;
    int captures;
    struct {
        const char *from;
        ptrdiff_t len; /* or CAPTURE_OPEN, CAPTURE_POSITION */
    } capture[PATTERN_CAPTURES_MAX];
} patternMatch;

/* Matches the pattern at `at`, exactly there. Returns the end of the match, NULL if there is none.
 * Raises an error for a malformed pattern. */
const char *patternMatchAt(patternMatch *m, const char *at, const char *pattern);
/* Pushes capture `i`; the whole match [from, to) if the pattern has none and i is 0. */
void patternPushCapture(patternMatch *m, int i, const char *from, const char *to);
/* Pushes all captures, or the whole match; returns their number. `from` NULL: nothing for a pattern
 * without captures. */
int patternPushCaptures(patternMatch *m, const char *from, const char *to);

#endif
