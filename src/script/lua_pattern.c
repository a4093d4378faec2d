/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Matching of Lua patterns by backtracking. Items that a pattern repeats are tried in a loop; what
 * follows them is matched by recursion, at most PATTERN_DEPTH_MAX deep. Time is exponential in the
 * worst case, so each step is counted. */
#include "script/lua_pattern.h"

#include <ctype.h>
#include <string.h>

#include "base/base.h"

/* The end of the single-character item at `p`: a character, %x or a set. */
static const char *itemEnd(patternMatch *m, const char *p) {
    char c = *p++;
    if (c == '%') {
        if (p == m->pattern_end) (void)luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (c != '[') return p;
    if (p < m->pattern_end && *p == '^') p++;
    do {
        if (p >= m->pattern_end) (void)luaL_error(m->L, "malformed pattern (missing ']')");
        char in_set = *p++;
        if (in_set == '%' && p < m->pattern_end) p++;
    } while (p >= m->pattern_end || *p != ']');
    return p + 1;
}

static bool isInClass(unsigned char c, unsigned char class) {
    bool yes;
    switch (tolower(class)) {
    case 'a': yes = isalpha(c); break;
    case 'c': yes = iscntrl(c); break;
    case 'd': yes = isdigit(c); break;
    case 'l': yes = islower(c); break;
    case 'p': yes = ispunct(c); break;
    case 's': yes = isspace(c); break;
    case 'u': yes = isupper(c); break;
    case 'w': yes = isalnum(c); break;
    case 'x': yes = isxdigit(c); break;
    case 'z': yes = c == 0; break;
    default: return class == c;
    }
    return isupper(class) ? !yes : yes;
}

/* `p` is the "[", `last` the "]" of a set. */
static bool isInSet(unsigned char c, const char *p, const char *last) {
    bool found = true;
    if (p[1] == '^') {
        found = false;
        p++;
    }
    while (++p < last) {
        if (*p == '%') {
            p++;
            if (isInClass(c, (unsigned char)*p)) return found;
        } else if (p + 2 < last && p[1] == '-') {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) return found;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return found;
        }
    }
    return !found;
}

static bool itemMatches(const char *at, const char *p, const char *end) {
    unsigned char c = (unsigned char)*at;
    switch (*p) {
    case '.': return true;
    case '%': return isInClass(c, (unsigned char)p[1]);
    case '[': return isInSet(c, p, end - 1);
    default: return (unsigned char)*p == c;
    }
}

static const char *match(patternMatch *m, const char *at, const char *p);

static const char *matchRest(patternMatch *m, const char *at, const char *p) {
    if (luaStackIsLow(m->vm, LUA_STACK_RECURSION)) (void)luaRaiseStackOverflow(m->L);
    if (++m->depth > PATTERN_DEPTH_MAX) (void)luaL_error(m->L, "pattern too complex");
    const char *end = match(m, at, p);
    m->depth--;
    return end;
}

/* item* or item+ (min 1): as many as possible. */
static const char *matchMost(patternMatch *m, const char *at, const char *p, const char *end,
                             ptrdiff_t min) {
    ptrdiff_t count = 0;
    while (at + count < m->text_end && itemMatches(at + count, p, end)) count++;
    luaVmStep(m->L, m->vm, (uint32_t)sizeMin((size_t)count, UINT32_MAX));
    for (; count >= min; count--) {
        const char *rest = matchRest(m, at + count, end + 1);
        if (rest) return rest;
    }
    return NULL;
}

/* item-: as few as possible. */
static const char *matchLeast(patternMatch *m, const char *at, const char *p, const char *end) {
    for (;;) {
        const char *rest = matchRest(m, at, end + 1);
        if (rest) return rest;
        if (at >= m->text_end || !itemMatches(at, p, end)) return NULL;
        at++;
    }
}

/* %bxy, `p` is at x. */
static const char *matchBalanced(patternMatch *m, const char *at, const char *p) {
    if (m->pattern_end - p < 2) (void)luaL_error(m->L, "unbalanced pattern");
    if (at >= m->text_end || *at != p[0]) return NULL;
    size_t open = 1;
    for (const char *s = at + 1; s < m->text_end; s++) {
        luaVmStep(m->L, m->vm, 1);
        if (*s == p[1]) {
            if (--open == 0) return s + 1;
        } else if (*s == p[0]) {
            open++;
        }
    }
    return NULL;
}

/* %f[set], `p` is at "[". *after is the rest of the pattern. */
static bool matchFrontier(patternMatch *m, const char *at, const char *p, const char **after) {
    if (p >= m->pattern_end || *p != '[')
        (void)luaL_error(m->L, "missing '[' after '%%f' in pattern");
    *after = itemEnd(m, p);
    unsigned char before = at == m->text ? 0 : (unsigned char)at[-1];
    unsigned char here = at < m->text_end ? (unsigned char)*at : 0;
    return !isInSet(before, p, *after - 1) && isInSet(here, p, *after - 1);
}

/* %1 to %9. */
static const char *matchBack(patternMatch *m, const char *at, char digit) {
    int i = digit - '1';
    if (i < 0 || i >= m->captures || m->capture[i].len == CAPTURE_OPEN)
        (void)luaL_error(m->L, "invalid capture index");
    if (m->capture[i].len < 0) return NULL; /* a position matches nothing, as in Lua */
    size_t len = (size_t)m->capture[i].len;
    luaVmStep(m->L, m->vm, (uint32_t)(len / 64));
    if ((size_t)(m->text_end - at) < len || memcmp(m->capture[i].from, at, len) != 0) return NULL;
    return at + len;
}

static const char *startCapture(patternMatch *m, const char *at, const char *p, ptrdiff_t kind) {
    if (m->captures >= PATTERN_CAPTURES_MAX) (void)luaL_error(m->L, "too many captures");
    m->capture[m->captures].from = at;
    m->capture[m->captures].len = kind;
    m->captures++;
    const char *end = matchRest(m, at, p);
    if (!end) m->captures--;
    return end;
}

static const char *endCapture(patternMatch *m, const char *at, const char *p) {
    int i = m->captures - 1;
    while (i >= 0 && m->capture[i].len != CAPTURE_OPEN) i--;
    if (i < 0) (void)luaL_error(m->L, "invalid pattern capture");
    m->capture[i].len = at - m->capture[i].from;
    const char *end = matchRest(m, at, p);
    if (!end) m->capture[i].len = CAPTURE_OPEN;
    return end;
}

/* A single-character item with its suffix. Returns true if the match ends with *result, false to go
 * on at *at, *p. */
static bool matchItem(patternMatch *m, const char **at, const char **p, const char **result) {
    const char *end = itemEnd(m, *p);
    bool fits = *at < m->text_end && itemMatches(*at, *p, end);
    char suffix = end < m->pattern_end ? *end : 0;
    switch (suffix) {
    case '?':
        if (fits && (*result = matchRest(m, *at + 1, end + 1))) return true;
        *p = end + 1;
        return false;
    case '*': *result = matchMost(m, *at, *p, end, 0); return true;
    case '+': *result = fits ? matchMost(m, *at, *p, end, 1) : NULL; return true;
    case '-': *result = matchLeast(m, *at, *p, end); return true;
    default:
        *result = NULL;
        if (!fits) return true;
        (*at)++;
        *p = end;
        return false;
    }
}

static const char *match(patternMatch *m, const char *at, const char *p) {
    const char *result;
    while (p < m->pattern_end) {
        luaVmStep(m->L, m->vm, 1);
        bool escaped = *p == '%' && p + 1 < m->pattern_end;
        if (*p == '(') {
            if (p + 1 < m->pattern_end && p[1] == ')')
                return startCapture(m, at, p + 2, CAPTURE_POSITION);
            return startCapture(m, at, p + 1, CAPTURE_OPEN);
        }
        if (*p == ')') return endCapture(m, at, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end) return at == m->text_end ? at : NULL;
        if (escaped && p[1] == 'b') {
            at = matchBalanced(m, at, p + 2);
            if (!at) return NULL;
            p += 4;
        } else if (escaped && p[1] == 'f') {
            if (!matchFrontier(m, at, p + 2, &p)) return NULL;
        } else if (escaped && isdigit((unsigned char)p[1])) {
            at = matchBack(m, at, p[1]);
            if (!at) return NULL;
            p += 2;
        } else if (matchItem(m, &at, &p, &result)) {
            return result;
        }
    }
    return at;
}

const char *patternMatchAt(patternMatch *m, const char *at, const char *pattern) {
    m->captures = m->depth = 0;
    return match(m, at, pattern);
}

void patternPushCapture(patternMatch *m, int i, const char *from, const char *to) {
    if (i >= m->captures) {
        if (i != 0) (void)luaL_error(m->L, "invalid capture index");
        lua_pushlstring(m->L, from, (size_t)(to - from));
        return;
    }
    ptrdiff_t len = m->capture[i].len;
    if (len == CAPTURE_OPEN) (void)luaL_error(m->L, "unfinished capture");
    if (len == CAPTURE_POSITION) {
        lua_pushinteger(m->L, m->capture[i].from - m->text + 1);
    } else {
        lua_pushlstring(m->L, m->capture[i].from, (size_t)len);
    }
}

int patternPushCaptures(patternMatch *m, const char *from, const char *to) {
    int count = m->captures == 0 && from ? 1 : m->captures;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++) patternPushCapture(m, i, from, to);
    return count;
}
