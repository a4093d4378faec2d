/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Index of patterns (pattern_index.h). Invariant: every pattern is in the group of its prefix; a
 * group exists while it has patterns, except the one of the empty prefix, which always does.
 * `lengths` has the bit n if and only if there is a group with a prefix of n bytes. */
#include "pubsub/pattern_index.h"

#include "base/base.h"
#include "base/glob.h"
#include "base/hash.h"

/* The patterns with the same prefix. */
typedef struct prefixGroup {
    pubsubChannel **patterns;
    uint32_t count, cap;
    uint32_t len;
    char prefix[];
} prefixGroup;

static prefixGroup unprefixed;
static struct {
    hashtable groups;
    uint64_t lengths;
    uint32_t groups_of[PATTERN_PREFIX_MAX + 1]; /* number of groups by the length of their prefix */
} prefixes;

static uint64_t hashOfGroup(const void *entry) {
    const prefixGroup *g = entry;
    return hashBytes(g->prefix, g->len);
}

static bool groupMatches(const void *entry, const void *prefix, size_t len) {
    const prefixGroup *g = entry;
    return g->len == len && memcmp(g->prefix, prefix, len) == 0;
}

static const hashtableType groups_type = {.hash_of = hashOfGroup, .match = groupMatches};

static prefixGroup *findGroup(const char *prefix, size_t len) {
    hotCheck(len <= PATTERN_PREFIX_MAX);
    if (!len) return &unprefixed;
    return hashtableFind(&prefixes.groups, &groups_type, hashBytes(prefix, len), prefix, len);
}

size_t patternPrefix(slice pattern, char prefix[PATTERN_PREFIX_MAX]) {
    size_t len = 0;
    for (size_t i = 0; i < pattern.len && len < PATTERN_PREFIX_MAX; i++) {
        char c = pattern.ptr[i];
        if (c == '*' || c == '?' || c == '[') break;
        if (c == '\\' && i + 1 < pattern.len) c = pattern.ptr[++i];
        prefix[len++] = c;
    }
    return len;
}

static prefixGroup *newGroup(const char *prefix, size_t len) {
    hotCheck(len > 0);
    hotCheck(len <= PATTERN_PREFIX_MAX);
    prefixGroup *g = memCalloc(1, sizeof(*g) + len);
    g->len = (uint32_t)len;
    memcpy(g->prefix, prefix, len);
    hashtableInsert(&prefixes.groups, &groups_type, hashOfGroup(g), g, 0);
    prefixes.groups_of[len]++;
    prefixes.lengths |= UINT64_C(1) << len;
    return g;
}

static void freeGroup(prefixGroup *g) {
    check(hashtableDeleteEntry(&prefixes.groups, &groups_type, hashOfGroup(g), g));
    if (!--prefixes.groups_of[g->len]) prefixes.lengths &= ~(UINT64_C(1) << g->len);
    memFree(g->patterns);
    memFree(g);
}

void patternIndexAdd(pubsubChannel *pattern) {
    hotCheck(threadIsMain());
    char prefix[PATTERN_PREFIX_MAX];
    size_t len = patternPrefix(channelName(pattern), prefix);
    prefixGroup *g = findGroup(prefix, len);
    if (!g) g = newGroup(prefix, len);
    if (g->count == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 1;
        g->patterns = memRealloc(g->patterns, g->cap * sizeof(*g->patterns));
    }
    pattern->index_at = g->count;
    g->patterns[g->count++] = pattern;
}

void patternIndexRemove(pubsubChannel *pattern) {
    hotCheck(threadIsMain());
    char prefix[PATTERN_PREFIX_MAX];
    size_t len = patternPrefix(channelName(pattern), prefix);
    prefixGroup *g = findGroup(prefix, len);
    uint32_t at = pattern->index_at;
    check(g->patterns[at] == pattern);
    g->patterns[at] = g->patterns[--g->count];
    g->patterns[at]->index_at = at;
    if (g->count) return;
    if (g != &unprefixed) {
        freeGroup(g);
        return;
    }
    memFree(g->patterns);
    g->patterns = NULL;
    g->cap = 0;
}

static void matchGroup(const prefixGroup *g, slice channel, channelVisitProc *visit, void *arg) {
    hotCheck(g->len <= channel.len);
    for (uint32_t i = 0; i < g->count; i++) {
        if (globMatch(channelName(g->patterns[i]), channel)) visit(arg, g->patterns[i]);
    }
}

void patternIndexMatch(slice channel, channelVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    matchGroup(&unprefixed, channel, visit, arg);
    for (uint64_t left = prefixes.lengths; left; left &= left - 1) {
        size_t len = (size_t)__builtin_ctzll(left);
        if (len > channel.len) return;
        const prefixGroup *g = findGroup(channel.ptr, len);
        if (g) matchGroup(g, channel, visit, arg);
    }
}
