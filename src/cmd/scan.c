/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SCAN and KEYS. Names are written to the reply as they are visited. Expired keys are collected and
 * deleted afterwards, so that nothing is removed during the scan. Main thread only. */
#include "cmd/scan.h"

#include "base/base.h"
#include "base/glob.h"
#include "base/hash.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "engine/job.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "store/reading.h"
#include "store/store.h"

/* ------------------------------------------------------------------ options */

bool scanParseCursor(ctx *c, int arg_index, uint64_t *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (numberParseCursor(c->argv[arg_index], out)) return true;
    replyError(c, SLICE("ERR invalid cursor"));
    return false;
}

static bool parseCount(ctx *c, int arg_index, int64_t *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (!ctxArgInt(c, arg_index, out)) return false;
    if (*out >= 1) return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static bool parseType(ctx *c, int arg_index, scanOptions *o) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    slice name = c->argv[arg_index];
    o->has_type = typeFind(name, &o->type);
    if (!o->has_type) replyErrorFormat(c, "ERR unknown type name '%.*s'", (int)name.len, name.ptr);
    return o->has_type;
}

/* NOVALUES and NOSCORES are each allowed for one type only. */
static bool parseNamesOnly(ctx *c, scanKind kind, bool values, scanOptions *o) {
    o->names_only = kind == (values ? SCAN_HASH : SCAN_ZSET);
    if (!o->names_only) {
        replyError(c, values ? SLICE("ERR NOVALUES option can only be used in HSCAN")
                             : SLICE("ERR NOSCORES option can only be used in ZSCAN"));
    }
    return o->names_only;
}

static void setPattern(scanOptions *o, slice pattern) {
    o->pattern = sliceEqual(pattern, SLICE("*")) ? (slice){NULL, 0} : pattern;
    o->literal = o->pattern.ptr ? globLiteralPrefix(pattern) : 0;
}

/* Parses the option at *place and moves *place past it. */
static bool parseOption(ctx *c, int *arg_index, scanKind kind, scanOptions *o) {
    hotCheck(*arg_index > 0);
    hotCheck(*arg_index < c->argc);
    int i = *arg_index;
    bool has_next = i + 1 < c->argc;
    *arg_index += 2;
    if (ctxArgIs(c, i, "count") && has_next) return parseCount(c, i + 1, &o->count);
    if (ctxArgIs(c, i, "match") && has_next) {
        setPattern(o, c->argv[i + 1]);
        return true;
    }
    if (ctxArgIs(c, i, "type") && has_next && kind == SCAN_KEYS) return parseType(c, i + 1, o);
    *arg_index -= 1;
    if (ctxArgIs(c, i, "novalues")) return parseNamesOnly(c, kind, true, o);
    if (ctxArgIs(c, i, "noscores")) return parseNamesOnly(c, kind, false, o);
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

bool scanParseOptions(ctx *c, int arg_index, scanKind kind, scanOptions *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *out = (scanOptions){.count = 10};
    while (arg_index < c->argc) {
        if (!parseOption(c, &arg_index, kind, out)) return false;
    }
    return true;
}

bool scanMatches(const scanOptions *o, slice name) {
    if (!o->pattern.ptr) return true;
    if (name.len < o->literal || memcmp(name.ptr, o->pattern.ptr, o->literal) != 0) return false;
    return globMatch(o->pattern, name);
}

/* ------------------------------------------------------------------ scanning keys */

/* The slot of all keys that a pattern can match, -1 if there may be several: known if the literal
 * prefix of the pattern contains a hash tag. */
static int patternSlot(slice pattern) {
    if (!pattern.ptr || !storeIsSlotted()) return -1;
    size_t plain = globLiteralPrefix(pattern);
    if (plain == pattern.len) return hashSlot(pattern);
    const char *open = memchr(pattern.ptr, '{', plain);
    const char *end = pattern.ptr + plain;
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    /* With an empty tag the whole key determines the slot. */
    if (!close || close == open + 1) return -1;
    return hashSlot(sliceMake(pattern.ptr, plain));
}

enum { SCANNED = 8 }; /* keys that one step of a scan visits, about */

typedef struct keyScan {
    ctx *c;
    scanOptions options;
    int64_t visited, found;
    str expired; /* expired keys, each preceded by its length */
} keyScan;

static bool wanted(const keyScan *s, const robj *o) {
    return scanMatches(&s->options, objectKey(o)) &&
           (!s->options.has_type || typeMatches(&s->options.type, o));
}

static void visitScan(void *arg, const robj *o) {
    keyScan *s = arg;
    s->visited++;
    if (!wanted(s, o)) return;
    slice key = objectKey(o);
    if (storeIsExpired(o, s->c->look)) {
        strAppend(&s->expired, &key.len, sizeof(key.len));
        strAppendSlice(&s->expired, key);
        return;
    }
    replyBulk(s->c, key);
    s->found++;
}

/* Looks up the collected keys again, which deletes them. */
static void deleteExpired(keyScan *s) {
    for (size_t at = 0; at < s->expired.len;) {
        size_t len;
        memcpy(&len, s->expired.ptr + at, sizeof(len));
        slice key = sliceMake(s->expired.ptr + at + sizeof(len), len);
        at += sizeof(len) + len;
        /* It does not matter whether the key still exists. */
        (void)dbFindUncounted(s->c->db, key, storeHash(key), s->c->look);
    }
    strFree(&s->expired);
}

/* The cursor is sent before the names but is known only after them. */
static void replyScan(keyScan *s, uint64_t cursor, int slot) {
    hotCheck(slot < SLOT_COUNT);
    /* Limit of buckets to visit, as many may be empty. COUNT limits the keys visited, not those
     * found: so a pattern without matches does not block other clients. */
    int64_t remaining = s->options.count > INT64_MAX / 10 ? INT64_MAX : s->options.count * 10;
    outbuf names, *out = s->c->out;
    outbufInit(&names);
    s->c->out = &names;
    do {
        cursor = dbScan(s->c->db, cursor, slot, visitScan, s);
    } while (cursor && --remaining > 0 && s->visited < s->options.count &&
             !jobPoint(s->c, SCANNED));
    s->c->out = out;
    char digits[NUMBER_TEXT_MAX];
    replyArray(s->c, 2);
    replyBulk(s->c, sliceMake(digits, numberPrintUint(digits, cursor)));
    replyArray(s->c, s->found);
    outbufMoveAll(out, &names);
}

/* SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]. Reply: the next cursor and an array of
 * keys. */
void scanCommand(ctx *c) {
    keyScan s = {.c = c};
    uint64_t cursor;
    if (!scanParseCursor(c, 1, &cursor) || !scanParseOptions(c, 2, SCAN_KEYS, &s.options)) return;
    if (jobStart(c, sizeMin((uint64_t)s.options.count, dbSize(c->db)))) return;
    replyScan(&s, cursor, patternSlot(s.options.pattern));
    bool may_delete = jobGoOn(c);
    propagateUnwrapped();
    if (may_delete) {
        deleteExpired(&s);
    } else {
        strFree(&s.expired);
    }
}

static void visitKeys(void *arg, const robj *o) {
    keyScan *s = arg;
    if (storeIsExpired(o, s->c->look) || !wanted(s, o)) return;
    replyBulk(s->c, objectKey(o));
    s->found++;
}

/* Visits the keys of now in slices. */
static void listKeys(keyScan *s, int slot) {
    enum { BUCKETS = 8, BUCKET_KEYS = 7 };
    dbListing *l = dbListingNew(s->c->db, slot, visitKeys, s);
    while (dbListingStep(l, BUCKETS) && !jobPoint(s->c, BUCKETS * BUCKET_KEYS)) continue;
    dbListingFree(l);
}

/* KEYS pattern. Reply: all matching keys. Expired keys are skipped but not deleted. */
void keysCommand(ctx *c) {
    hotCheck(c->argc == 2);
    keyScan s = {.c = c};
    setPattern(&s.options, c->argv[1]);
    int slot = patternSlot(s.options.pattern);
    if (jobStart(c, slot < 0 ? dbSize(c->db) : dbSlotCount(c->db, slot))) return;
    respDeferred head = respDeferBegin(c->out);
    /* A visit of all slots leaves out hidden ones, a visit of one slot does not. */
    bool is_hidden = slot >= 0 && storeSlotIsHidden(dbKeyspace(c->db), slot);
    if (!is_hidden && c->flags & CTX_SLICED) {
        listKeys(&s, slot);
    } else if (!is_hidden) {
        dbEach(c->db, slot, visitKeys, &s);
    }
    respDeferEnd(c->out, head, '*', c->proto, s.found);
}
