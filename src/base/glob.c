/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Glob matching with one position in the pattern, one in the text, and the position of the last
 * '*'.
 *
 * Invariant: everything before the last '*' has matched with as little text as possible. If the
 * rest fails, only that star has to match one more character. Worst case O(pattern x text).
 *
 * Corner cases follow Valkey: an unterminated class ends with the pattern, [z-a] means [a-z], a ']'
 * directly after '[' closes an empty class, a trailing backslash matches itself, and an empty text
 * matches only the empty pattern, not even "*". ANY_THREAD. */
#include "base/glob.h"

#include <string.h>

#include "base/bytes.h"

/* Valkey stops after this many nested stars; clients see that as "no match". */
enum { STARS_MAX = 1000 };

static inline uint8_t charOf(char c, bool fold) { return fold ? byteFold(c) : (uint8_t)c; }

/* Returns whether `c` matches the class whose '[' is at `*pos`. Moves `*pos` past the class. */
static bool classMatch(slice pattern, size_t *pos, uint8_t c, bool fold) {
    const char *p = pattern.ptr;
    size_t i = *pos + 1, end = pattern.len;
    bool negate = i < end && p[i] == '^';
    if (negate) i++;
    bool found = false;
    while (i < end && p[i] != ']') {
        if (p[i] == '\\' && end - i >= 2) {
            found |= charOf(p[i + 1], fold) == c;
            i += 2;
        } else if (end - i >= 3 && p[i + 1] == '-') {
            uint8_t low = charOf(p[i], fold), high = charOf(p[i + 2], fold);
            if (low > high) {
                uint8_t swap = low;
                low = high;
                high = swap;
            }
            found |= c >= low && c <= high;
            i += 3;
        } else {
            found |= charOf(p[i], fold) == c;
            i++;
        }
    }
    *pos = i < end ? i + 1 : end;
    return found != negate;
}

/* Matches one character against the pattern element at `*pos`, which is not a '*'. Moves `*pos`
 * past the element. */
static inline bool oneMatch(slice pattern, size_t *pos, uint8_t c, bool fold) {
    const char *p = pattern.ptr + *pos;
    switch (*p) {
    case '?': (*pos)++; return true;
    case '[': return classMatch(pattern, pos, c, fold);
    case '\\':
        if (pattern.len - *pos >= 2) {
            *pos += 2;
            return charOf(p[1], fold) == c;
        }
        /* fall through */
    default: (*pos)++; return charOf(*p, fold) == c;
    }
}

ALWAYS_INLINE bool match(slice pattern, slice text, bool fold) {
    if (text.len == 0) return pattern.len == 0;
    size_t p = 0, t = 0;
    size_t star = SIZE_MAX; /* position after the last '*' seen */
    int stars = 0;          /* number of star groups seen */
    size_t star_text = 0;   /* start of the text not matched by that star */
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            while (p < pattern.len && pattern.ptr[p] == '*') p++;
            if (p == pattern.len) return true;
            if (++stars > STARS_MAX) return false;
            star = p;
            star_text = t;
        } else if (p < pattern.len && oneMatch(pattern, &p, charOf(text.ptr[t], fold), fold)) {
            t++;
        } else {
            if (star == SIZE_MAX) return false;
            p = star;
            t = ++star_text;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') p++;
    return p == pattern.len;
}

bool globMatch(slice pattern, slice text) { return match(pattern, text, false); }

bool globMatchFold(slice pattern, slice text) { return match(pattern, text, true); }

size_t globLiteralPrefix(slice pattern) {
    size_t len = 0;
    while (len < pattern.len && !memchr("*?[\\", pattern.ptr[len], 4)) len++;
    return len;
}
