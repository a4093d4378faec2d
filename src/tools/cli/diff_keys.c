/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparison of keys of two servers by type, value and TTL (diff_priv.h). The values of a page of
 * keys are requested in few round trips. Large values are compared in parts, so that neither the
 * servers nor this program have to hold them whole. Works with every version since 6.2. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "tools/cli/diff_priv.h"

enum {
    STRING_PART = 64 * 1024, /* bytes of a string per request */
    WHOLE_MAX = 256,         /* elements of a value that is read by one request */
    /* TTLs may have been copied as what remains, and are read at two moments. */
    TTL_TOLERANCE_MS = 1000,
};

/* How values of a type are read. */
typedef struct typeForm {
    const char *name, *size_command, *whole_command;
    int width;                                /* items of a reply per element */
    bool ordered;                             /* the order of elements is part of the value */
    const char *expiry_command, *expiry_word; /* for the times when elements expire, or NULL */
} typeForm;

static const typeForm forms[] = {
    {"string", "STRLEN %b", NULL, 1, true, NULL, NULL},
    {"list", "LLEN %b", "LRANGE %b 0 -1", 1, true, NULL, NULL},
    {"set", "SCARD %b", "SMEMBERS %b", 1, false, "SPEXPIRETIME", "MEMBERS"},
    {"hash", "HLEN %b", "HGETALL %b", 2, false, "HPEXPIRETIME", "FIELDS"},
    {"zset", "ZCARD %b", "ZRANGE %b 0 -1 WITHSCORES", 2, true, "ZPEXPIRETIME", "MEMBERS"},
    {"stream", "XLEN %b", NULL, 1, true, NULL, NULL},
    {"pathhash", "PHCARD %b", NULL, 1, true, NULL, NULL},
};

static const typeForm *formOf(const diffKey *key) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (!strcmp(forms[i].name, key->type[0])) return &forms[i];
    }
    return NULL;
}

static bool is(const typeForm *form, const char *name) { return form && !strcmp(form->name, name); }

/* Compares texts that begin at byte `at` of the values; says where they differ. */
static void compareText(diffKey *key, slice a, slice b, size_t at) {
    size_t same = 0, shorter = a.len < b.len ? a.len : b.len;
    while (same < shorter && a.ptr[same] == b.ptr[same]) same++;
    if (same == shorter && a.len == b.len) return;
    key->verdict = DIFF_VALUE;
    if (at || shorter > DIFF_SHOWN_MAX) {
        strAppendFormat(&key->why, "from byte %zu: ", at + same);
    } else {
        same = 0; /* all of it is shown */
    }
    diffShow(&key->why, sliceMake(a.ptr + same, a.len - same));
    strAppendText(&key->why, ", ");
    diffShow(&key->why, sliceMake(b.ptr + same, b.len - same));
}

/* ------------------------------------------------------------------ comparing replies */

/* Scores are numbers: versions write them differently. */
static bool sameScore(const valkeyReply *a, const valkeyReply *b) {
    return diffIsText(a) && diffIsText(b) && strtod(a->str, NULL) == strtod(b->str, NULL);
}

static int compareElements(const void *first, const void *second) {
    const valkeyReply *a = **(valkeyReply *const *const *)first,
                      *b = **(valkeyReply *const *const *)second;
    return sliceCompare(diffTextOf(a), diffTextOf(b));
}

/* Pointers to the elements of a reply, sorted by their first item if their order does not count. */
static valkeyReply ***elementsOf(const valkeyReply *reply, const typeForm *form) {
    size_t count = reply->elements / (size_t)form->width;
    valkeyReply ***elements = memAlloc(sizeof(*elements) * (count + 1));
    for (size_t i = 0; i < count; i++) elements[i] = &reply->element[i * (size_t)form->width];
    if (!form->ordered) qsort(elements, count, sizeof(*elements), compareElements);
    return elements;
}

/* Compares the elements of two replies to the same request. `first_index` is that of the first
 * one. */
static void compareReplies(diffKey *key, const typeForm *form, const valkeyReply *a,
                           const valkeyReply *b, size_t first_index) {
    if (a->type != VALKEY_REPLY_ARRAY || b->type != VALKEY_REPLY_ARRAY ||
        a->elements != b->elements) {
        diffInValue(key, a, b);
        return;
    }
    valkeyReply ***left = elementsOf(a, form), ***right = elementsOf(b, form);
    size_t count = a->elements / (size_t)form->width;
    for (size_t i = 0; i < count && key->verdict == DIFF_EQUAL; i++) {
        valkeyReply **x = left[i], **y = right[i];
        if (!diffSameReply(x[0], y[0])) {
            if (form->ordered) strAppendFormat(&key->why, "at index %zu", first_index + i);
            diffInValue(key, x[0], y[0]);
        } else if (form->width == 2 && !(form->ordered ? sameScore : diffSameReply)(x[1], y[1])) {
            strAppendText(&key->why, form->ordered ? "score of " : "field ");
            diffShowReply(&key->why, x[0]);
            diffInValue(key, x[1], y[1]);
        }
    }
    memFree(left);
    memFree(right);
}

static void compareFields(diffKey *key, const valkeyReply *a, const valkeyReply *b) {
    static const typeForm fields = {.width = 2};
    compareReplies(key, &fields, a, b, 0);
}

/* ------------------------------------------------------------------ asking both servers */

static bool isRefused(const valkeyReply *reply) {
    return reply->type == VALKEY_REPLY_ERROR &&
           (!strncmp(reply->str, "MOVED", 5) || !strncmp(reply->str, "ASK", 3));
}

static void askTypes(diffSide *side, const diffKey *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        slice name = keys[i].name;
        connectionQueue(&side->link, "TYPE %b", name.ptr, name.len);
        connectionQueue(&side->link, side->has_expiretime ? "PEXPIRETIME %b" : "PTTL %b", name.ptr,
                        name.len);
    }
}

static void takeTypes(diffSide *side, int s, diffKey *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        diffKey *key = &keys[i];
        valkeyReply *type = connectionNext(&side->link), *expires = connectionNext(&side->link);
        if (isRefused(type)) key->verdict = DIFF_NOT_SERVED;
        snprintf(key->type[s], sizeof(key->type[s]), "%s", type->str ? type->str : "?");
        key->expires_ms[s] = expires->type == VALKEY_REPLY_INTEGER ? expires->integer : -1;
        if (!side->has_expiretime && key->expires_ms[s] >= 0) key->expires_ms[s] += clockWallMs();
        freeReplyObject(type);
        freeReplyObject(expires);
    }
}

static void compareTypes(diffKey *key) {
    bool first = strcmp(key->type[0], "none") != 0, second = strcmp(key->type[1], "none") != 0;
    if (!first || !second) {
        key->verdict = first ? DIFF_ONLY_FIRST : second ? DIFF_ONLY_SECOND : DIFF_GONE;
    } else if (strcmp(key->type[0], key->type[1]) != 0) {
        key->verdict = DIFF_TYPE;
        strAppendFormat(&key->why, "%s, %s", key->type[0], key->type[1]);
    } else if (!formOf(key)) {
        key->verdict = DIFF_NOT_COMPARED;
        strAppendText(&key->why, key->type[0]);
    }
}

/* Takes the sizes that were asked for, and for strings the first part. */
static void compareSizes(diffSide sides[DIFF_SIDES], diffKey *key, const typeForm *form) {
    valkeyReply *size[DIFF_SIDES], *part[DIFF_SIDES] = {NULL, NULL};
    for (int s = 0; s < DIFF_SIDES; s++) {
        size[s] = connectionNext(&sides[s].link);
        key->size[s] = size[s]->type == VALKEY_REPLY_INTEGER ? size[s]->integer : -1;
        if (is(form, "string")) part[s] = connectionNext(&sides[s].link);
    }
    if (part[0]) compareText(key, diffTextOf(part[0]), diffTextOf(part[1]), 0);
    if (diffIsOpen(key) && key->size[0] != key->size[1]) {
        strAppendText(&key->why, part[0] ? "length" : "number of elements");
        diffInValue(key, size[0], size[1]);
    }
    for (int s = 0; s < DIFF_SIDES; s++) {
        freeReplyObject(size[s]);
        if (part[s]) freeReplyObject(part[s]);
    }
}

static bool isReadWhole(const diffKey *key, const typeForm *form) {
    return diffIsOpen(key) && form->whole_command && key->size[0] <= WHOLE_MAX;
}

static void compareAllSizes(diffSide sides[DIFF_SIDES], diffKey *keys, size_t count) {
    for (int s = 0; s < DIFF_SIDES; s++) {
        for (size_t i = 0; i < count; i++) {
            const diffKey *key = &keys[i];
            const typeForm *form = formOf(key);
            if (!diffIsOpen(key)) continue;
            connectionQueue(&sides[s].link, form->size_command, key->name.ptr, key->name.len);
            if (is(form, "string"))
                connectionQueue(&sides[s].link, "GETRANGE %b 0 %d", key->name.ptr, key->name.len,
                                STRING_PART - 1);
        }
    }
    diffFlush(sides);
    for (size_t i = 0; i < count; i++) {
        if (diffIsOpen(&keys[i])) compareSizes(sides, &keys[i], formOf(&keys[i]));
    }
}

/* ------------------------------------------------------------------ TTLs of fields and members */

/* True if the server can tell the TTLs of items of this type. A server that cannot has no such
 * TTLs. */
static bool hasItemTtls(const diffSide *side, const typeForm *form) {
    return is(form, "hash") ? side->has_field_expiry : side->has_member_expiry;
}

static bool comparesItemTtls(const diffSide sides[DIFF_SIDES], const typeForm *form) {
    if (!form->expiry_command) return false;
    for (int s = 0; s < DIFF_SIDES; s++) {
        if (hasItemTtls(&sides[s], form) && sides[s].has_volatile_items) return true;
    }
    return false;
}

/* Sends a command of `words` and the elements of a page, of which each has `width` items. */
static valkeyReply *askAbout(diffSide *side, const slice *words, size_t word_count,
                             const valkeyReply *page, int width) {
    size_t count = word_count + page->elements / (size_t)width;
    const char **argv = memAlloc(sizeof(*argv) * count);
    size_t *lengths = memAlloc(sizeof(*lengths) * count);
    for (size_t i = 0; i < count; i++) {
        slice word =
            i < word_count ? words[i] : diffTextOf(page->element[(i - word_count) * (size_t)width]);
        argv[i] = word.ptr;
        lengths[i] = word.len;
    }
    connectionQueueArgv(&side->link, (int)count, argv, lengths);
    memFree(argv);
    memFree(lengths);
    return connectionNext(&side->link);
}

static valkeyReply *itemExpiry(diffSide *side, slice name, const typeForm *form,
                               const valkeyReply *read) {
    char number[NUMBER_TEXT_MAX];
    snprintf(number, sizeof(number), "%zu", read->elements / (size_t)form->width);
    const slice words[] = {sliceOf(form->expiry_command), name, sliceOf(form->expiry_word),
                           sliceOf(number)};
    return askAbout(side, words, 4, read, form->width);
}

/* -1: none. */
static int64_t timeAt(const valkeyReply *expires, size_t index) {
    return expires ? expires->element[index]->integer : -1;
}

/* `read` has elements that both values have. */
static void compareItemTtls(diffSide sides[DIFF_SIDES], diffKey *key, const typeForm *form,
                            const valkeyReply *read) {
    if (!diffIsOpen(key) || !read->elements || !comparesItemTtls(sides, form)) return;
    valkeyReply *expires[DIFF_SIDES];
    bool valid = true;
    size_t count = read->elements / (size_t)form->width;
    for (int s = 0; s < DIFF_SIDES; s++) {
        bool asks = hasItemTtls(&sides[s], form);
        expires[s] = asks ? itemExpiry(&sides[s], key->name, form, read) : NULL;
        valid &= !asks || (expires[s]->type == VALKEY_REPLY_ARRAY && expires[s]->elements == count);
    }
    for (size_t i = 0; valid && i < count; i++) {
        int64_t a = timeAt(expires[0], i), b = timeAt(expires[1], i);
        if (a == b || (a >= 0 && b >= 0 && llabs(a - b) <= TTL_TOLERANCE_MS)) continue;
        key->verdict = is(form, "hash") ? DIFF_FIELD_TTL : DIFF_MEMBER_TTL;
        strAppendText(&key->why, is(form, "hash") ? "field " : "member ");
        diffShowReply(&key->why, read->element[(size_t)form->width * i]);
        strAppendFormat(&key->why, " expires at %" PRId64 ", %" PRId64 " ms", a, b);
        break;
    }
    for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(expires[s]);
}

/* ------------------------------------------------------------------ values */

static void compareSmall(diffSide sides[DIFF_SIDES], diffKey *keys, size_t count) {
    for (int s = 0; s < DIFF_SIDES; s++) {
        for (size_t i = 0; i < count; i++) {
            const typeForm *form = formOf(&keys[i]);
            if (diffIsOpen(&keys[i]) && isReadWhole(&keys[i], form))
                connectionQueue(&sides[s].link, form->whole_command, keys[i].name.ptr,
                                keys[i].name.len);
        }
    }
    diffFlush(sides);
    valkeyReply **timed = memCalloc(count + 1, sizeof(*timed)); /* whose elements may have TTLs */
    for (size_t i = 0; i < count; i++) {
        const typeForm *form = formOf(&keys[i]);
        if (!diffIsOpen(&keys[i]) || !isReadWhole(&keys[i], form)) continue;
        valkeyReply *a = connectionNext(&sides[0].link), *b = connectionNext(&sides[1].link);
        compareReplies(&keys[i], form, a, b, 0);
        if (comparesItemTtls(sides, form)) timed[i] = a;
        if (!timed[i]) freeReplyObject(a);
        freeReplyObject(b);
    }
    for (size_t i = 0; i < count; i++) {
        if (!timed[i]) continue;
        compareItemTtls(sides, &keys[i], formOf(&keys[i]), timed[i]);
        freeReplyObject(timed[i]);
    }
    memFree(timed);
}

/* Lists, sorted sets and strings that are not read at once: by ranges of indexes. */
static void compareRanges(diffSide sides[DIFF_SIDES], diffKey *key, const typeForm *form) {
    bool string = is(form, "string");
    int64_t step = string ? STRING_PART : DIFF_PART;
    const char *command = string             ? "GETRANGE %b %" PRId64 " %" PRId64
                          : is(form, "list") ? "LRANGE %b %" PRId64 " %" PRId64
                                             : "ZRANGE %b %" PRId64 " %" PRId64 " WITHSCORES";
    for (int64_t at = string ? step : 0; diffIsOpen(key) && at < key->size[0]; at += step) {
        valkeyReply *part[DIFF_SIDES];
        for (int s = 0; s < DIFF_SIDES; s++)
            connectionQueue(&sides[s].link, command, key->name.ptr, key->name.len, at,
                            at + step - 1);
        diffFlush(sides);
        for (int s = 0; s < DIFF_SIDES; s++) part[s] = connectionNext(&sides[s].link);
        if (string) {
            compareText(key, diffTextOf(part[0]), diffTextOf(part[1]), (size_t)at);
        } else {
            compareReplies(key, form, part[0], part[1], (size_t)at);
            compareItemTtls(sides, key, form, part[0]);
        }
        for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(part[s]);
    }
}

static void comparePage(diffSide sides[DIFF_SIDES], diffKey *key, const typeForm *form,
                        const valkeyReply *page) {
    if (page->elements == 0) return;
    const slice words[] = {sliceOf(form->width == 2 ? "HMGET" : "SMISMEMBER"), key->name};
    valkeyReply *found = askAbout(&sides[1], words, 2, page, form->width);
    size_t count = page->elements / (size_t)form->width;
    if (found->type != VALKEY_REPLY_ARRAY || found->elements != count) {
        diffInValue(key, page, found);
    }
    for (size_t i = 0; diffIsOpen(key) && i < count; i++) {
        const valkeyReply *other = found->element[i];
        const valkeyReply *name = page->element[i * (size_t)form->width];
        if (form->width == 1 && other->type == VALKEY_REPLY_INTEGER && other->integer == 0) {
            key->verdict = DIFF_VALUE;
            diffShowReply(&key->why, name);
            strAppendText(&key->why, " only in the first");
        } else if (form->width == 2 && !diffSameReply(page->element[2 * i + 1], other)) {
            strAppendText(&key->why, "field ");
            diffShowReply(&key->why, name);
            diffInValue(key, page->element[2 * i + 1], other);
        }
    }
    freeReplyObject(found);
    compareItemTtls(sides, key, form, page);
}

/* Large sets and hashes: both have as many elements, so it is enough to find those of the first in
 * the second. */
static void compareScanned(diffSide sides[DIFF_SIDES], diffKey *key, const typeForm *form) {
    uint64_t cursor = 0;
    do {
        valkeyReply *reply = connectionCommand(&sides[0].link,
                                               form->width == 2 ? "HSCAN %b %" PRIu64 " COUNT %d"
                                                                : "SSCAN %b %" PRIu64 " COUNT %d",
                                               key->name.ptr, key->name.len, cursor, DIFF_PART);
        if (reply->type != VALKEY_REPLY_ARRAY || reply->elements != 2) {
            diffInValue(key, reply, reply); /* it has become another type */
        } else {
            cursor = strtoull(reply->element[0]->str, NULL, 10);
            comparePage(sides, key, form, reply->element[1]);
        }
        freeReplyObject(reply);
    } while (cursor && diffIsOpen(key));
}

/* ------------------------------------------------------------------ all of a key */

static void compareLarge(diffSide sides[DIFF_SIDES], diffKey *key) {
    const typeForm *form = formOf(key);
    if (is(form, "stream")) {
        diffCompareStream(sides, key);
    } else if (is(form, "pathhash")) {
        diffComparePaths(sides, key, compareFields);
    } else if (is(form, "string")) {
        compareRanges(sides, key, form);
    } else if (key->size[0] > WHOLE_MAX) {
        (form->ordered ? compareRanges : compareScanned)(sides, key, form);
    }
}

static void compareTtl(diffKey *key) {
    int64_t a = key->expires_ms[0], b = key->expires_ms[1];
    if (a == b || (a >= 0 && b >= 0 && llabs(a - b) <= TTL_TOLERANCE_MS)) return;
    key->verdict = DIFF_TTL;
    for (int s = 0; s < DIFF_SIDES; s++) {
        int64_t expires_ms = key->expires_ms[s];
        if (s) strAppendText(&key->why, ", ");
        if (expires_ms < 0) {
            strAppendText(&key->why, "none");
        } else {
            strAppendFormat(&key->why, "%.3f s", (double)(expires_ms - clockWallMs()) / 1000);
        }
    }
}

void diffCompareKeys(diffSide sides[DIFF_SIDES], diffKey *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        strFree(&keys[i].why);
        keys[i] = (diffKey){.name = keys[i].name};
    }
    for (int s = 0; s < DIFF_SIDES; s++) askTypes(&sides[s], keys, count);
    diffFlush(sides);
    for (int s = 0; s < DIFF_SIDES; s++) takeTypes(&sides[s], s, keys, count);
    for (size_t i = 0; i < count; i++) {
        if (diffIsOpen(&keys[i])) compareTypes(&keys[i]);
    }
    compareAllSizes(sides, keys, count);
    compareSmall(sides, keys, count);
    for (size_t i = 0; i < count; i++) {
        if (diffIsOpen(&keys[i])) compareLarge(sides, &keys[i]);
        if (diffIsOpen(&keys[i])) compareTtl(&keys[i]);
    }
}
