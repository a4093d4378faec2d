/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Searches in path hashes: the paths that a text begins with, and iteration in byte order. Main
 * thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/pathhash_priv.h"
#include "cmd/procs.h"

/* ------------------------------------------------------------------ options */

typedef struct searchOptions {
    bool lengths, with_values, has_count, has_max;
    const slice *fields; /* FIELDS; NULL: not given */
    int64_t field_count, count, path_max;
} searchOptions;

/* Parses FIELDS numfields field [field ...] at argument *i, which becomes the last one. */
static bool parseFields(ctx *c, int *i, searchOptions *out) {
    hotCheck(*i < c->argc);
    if (*i + 1 >= c->argc) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (!pathHashArgFields(c, *i + 1, &out->field_count)) return false;
    if (out->field_count > c->argc - *i - 2) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    out->fields = c->argv + *i + 2;
    *i += 1 + (int)out->field_count;
    return true;
}

/* Parses an option with a number at argument *i, which becomes the last one. */
static bool parseNumber(ctx *c, int *i, int64_t min, bool *given, int64_t *out) {
    *given = true;
    return ctxArgIntIn(c, ++*i, min, INT64_MAX, out, NULL);
}

/* Parses the options from argument 3 on; those of PHPREFIXES if `many`. False: the error was
 * replied. */
static bool parseSearch(ctx *c, bool many, searchOptions *out) {
    hotCheck(c->argc >= 3);
    *out = (searchOptions){.count = INT64_MAX, .path_max = INT64_MAX};
    for (int i = 3; i < c->argc; i++) {
        bool values = out->with_values || out->fields, more = i + 1 < c->argc;
        if (!out->lengths && ctxArgIs(c, i, many ? "LENGTHS" : "LENGTH")) {
            out->lengths = true;
        } else if (!values && ctxArgIs(c, i, "WITHVALUES")) {
            out->with_values = true;
        } else if (!values && ctxArgIs(c, i, "FIELDS")) {
            if (!parseFields(c, &i, out)) return false;
        } else if (many && more && !out->has_count && ctxArgIs(c, i, "COUNT")) {
            if (!parseNumber(c, &i, 1, &out->has_count, &out->count)) return false;
        } else if (many && more && !out->has_max && ctxArgIs(c, i, "MAXPATHLEN")) {
            if (!parseNumber(c, &i, 0, &out->has_max, &out->path_max)) return false;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* Replies one path, which the query begins with. */
static void replyFound(ctx *c, const searchOptions *o, size_t len, const pathFields *fields) {
    hotCheck(len <= c->argv[2].len);
    if (o->with_values || o->fields) replyArray(c, 2);
    if (o->lengths) {
        replyInteger(c, (int64_t)len);
    } else {
        replyBulk(c, sliceMake(c->argv[2].ptr, len));
    }
    if (o->with_values) pathHashReplyAll(c, fields);
    if (o->fields) pathHashReplyValues(c, fields, o->fields, o->field_count);
}

/* ------------------------------------------------------------------ prefixes of a text */

/* PHLONGEST key query [LENGTH] [WITHVALUES | FIELDS numfields field ...]. Reply: the longest path
 * that the query begins with, or null. */
void phlongestCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    searchOptions options;
    const pathHash *map;
    if (!parseSearch(c, false, &options) || !pathHashFindRead(c, &map)) return;
    size_t len = 0;
    const pathFields *fields = map ? pathHashLongest(map, c->argv[2], &len) : NULL;
    if (fields) {
        replyFound(c, &options, len, fields);
    } else {
        replyNull(c);
    }
}

typedef struct foundPath {
    size_t len;
    const pathFields *fields;
} foundPath;

typedef struct foundPaths {
    str all; /* of foundPath */
    size_t path_max;
} foundPaths;

static void addFound(void *arg, size_t len, void *fields) {
    foundPaths *found = arg;
    foundPath one = {len, fields};
    if (len <= found->path_max) strAppend(&found->all, &one, sizeof(one));
}

/* PHPREFIXES key query [LENGTHS] [WITHVALUES | FIELDS numfields field ...] [COUNT count]
 * [MAXPATHLEN maxpathlen]. Reply: the paths that the query begins with, shortest first; with COUNT
 * the longest ones. */
void phprefixesCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    searchOptions options;
    const pathHash *map;
    if (!parseSearch(c, true, &options) || !pathHashFindRead(c, &map)) return;
    foundPaths found = {.all = STR_EMPTY, .path_max = (size_t)options.path_max};
    if (map) pathHashPrefixes(map, c->argv[2], addFound, &found);
    size_t count = found.all.len / sizeof(foundPath), first = 0;
    if ((uint64_t)options.count < count) first = count - (size_t)options.count;
    replyArray(c, (int64_t)(count - first));
    for (size_t i = first; i < count; i++) {
        foundPath one;
        memcpy(&one, found.all.ptr + i * sizeof(one), sizeof(one));
        replyFound(c, &options, one.len, one.fields);
    }
    strFree(&found.all);
}

/* ------------------------------------------------------------------ PHSCAN */

typedef struct scanRequest {
    str from; /* the last path of the previous call */
    bool continues, with_values, has_prefix, has_count;
    slice prefix;
    int64_t count;
} scanRequest;

/* Reads 0, or 1: and the path in lower-case hex. False: it is neither. */
static bool readCursor(slice cursor, scanRequest *out) {
    if (sliceEqual(cursor, SLICE("0"))) return true;
    if (!sliceHasPrefix(cursor, SLICE("1:")) || cursor.len % 2) return false;
    slice digits = sliceMake(cursor.ptr + 2, cursor.len - 2);
    if (!sliceIsHex(digits, digits.len)) return false;
    out->continues = true;
    for (size_t i = 0; i < digits.len; i += 2)
        strAppendByte(&out->from,
                      (char)(hexDigit(digits.ptr[i]) << 4 | hexDigit(digits.ptr[i + 1])));
    return true;
}

static void replyCursor(ctx *c, slice last) {
    str text = STR_EMPTY;
    strAppendText(&text, "1:");
    hexPrint(strReserve(&text, 2 * last.len), last.ptr, last.len);
    strGrow(&text, 2 * last.len);
    replyBulk(c, strSlice(&text));
    strFree(&text);
}

/* False: the error was replied. */
static bool parseScan(ctx *c, scanRequest *out) {
    hotCheck(c->argc >= 3);
    for (int i = 3; i < c->argc; i++) {
        bool more = i + 1 < c->argc;
        if (!out->with_values && ctxArgIs(c, i, "WITHVALUES")) {
            out->with_values = true;
        } else if (more && !out->has_prefix && ctxArgIs(c, i, "PREFIX")) {
            out->has_prefix = true;
            out->prefix = c->argv[++i];
        } else if (more && !out->has_count && ctxArgIs(c, i, "COUNT")) {
            if (!parseNumber(c, &i, 1, &out->has_count, &out->count)) return false;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    if (!readCursor(c->argv[2], out)) {
        replyError(c, SLICE("ERR invalid cursor"));
        return false;
    }
    if (out->continues && !sliceHasPrefix(strSlice(&out->from), out->prefix)) {
        replyError(c, SLICE("ERR cursor does not belong to the requested prefix"));
        return false;
    }
    return true;
}

/* Replies up to `count` paths after the cursor; `last` is the last one. Returns false if no more
 * follow. */
static bool replyPaths(ctx *c, const pathHash *map, const scanRequest *r, str *last,
                       int64_t *replied) {
    pathHashCursor walk;
    slice path;
    const pathFields *fields;
    bool more;
    pathHashCursorInit(&walk, map);
    pathHashCursorSeek(&walk, r->continues ? strSlice(&r->from) : r->prefix, r->continues);
    while ((more = pathHashNext(&walk, &path, &fields) && sliceHasPrefix(path, r->prefix))) {
        if (*replied == r->count) break;
        ++*replied;
        if (r->with_values) replyArray(c, 2);
        replyBulk(c, path);
        if (r->with_values) pathHashReplyAll(c, fields);
        strClear(last);
        strAppendSlice(last, path);
    }
    pathHashCursorClear(&walk);
    return more;
}

static void replyScan(ctx *c, const pathHash *map, const scanRequest *r) {
    int64_t replied = 0;
    str last = STR_EMPTY;
    outbuf items, *out = c->out;
    outbufInit(&items);
    c->out = &items;
    bool more = map && replyPaths(c, map, r, &last, &replied);
    c->out = out;
    replyArray(c, 2);
    if (more) {
        replyCursor(c, strSlice(&last));
    } else {
        replyBulk(c, SLICE("0"));
    }
    replyArray(c, replied);
    outbufMoveAll(out, &items);
    strFree(&last);
}

/* PHSCAN key cursor [PREFIX prefix] [COUNT count] [WITHVALUES]. Reply: the next cursor, and the
 * paths, or pairs of a path and a map. */
void phscanCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    const pathHash *map;
    scanRequest r = {.from = STR_EMPTY, .prefix = SLICE(""), .count = 10};
    if (parseScan(c, &r) && pathHashFindRead(c, &map)) replyScan(c, map, &r);
    strFree(&r.from);
}
