/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SCAN and KEYS: names written to the reply as they are met, never held. Keys that turn out to be dead are
 * kept aside, so that nothing is removed while the table is being walked. Main thread only. */
#include "cmd/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/glob.h"
#include "base/hash.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "store/store.h"

/* ------------------------------------------------------------------ options */

/* Clients have sent cursors in every form strtoull() takes, so it decides about all but plain numbers. */
static bool parseCursor(slice text, uint64_t *out) {
    int64_t number;
    if (numberParseInt(text, &number)) {
        *out = (uint64_t)number;
        return number >= 0;
    }
    str copy = strNew(text);
    char *end;
    errno = 0;
    *out = strtoull(strText(&copy), &end, 10);
    bool good = errno == 0 && end != strText(&copy) && *end == 0;
    strFree(&copy);
    return good;
}

bool scanParseCursor(ctx *c, int place, uint64_t *out) {
    if (parseCursor(c->argv[place], out)) return true;
    replyError(c, SLICE("ERR invalid cursor"));
    return false;
}

static bool parseCount(ctx *c, int place, int64_t *out) {
    if (!ctxArgInt(c, place, out)) return false;
    if (*out >= 1) return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static bool parseType(ctx *c, int place, scanOptions *o) {
    slice name = c->argv[place];
    o->has_type = typeFind(name, &o->type);
    if (!o->has_type) replyErrorFormat(c, "ERR unknown type name '%.*s'", (int)name.len, name.ptr);
    return o->has_type;
}

/* NOVALUES and NOSCORES, each for one kind only. */
static bool parseNamesOnly(ctx *c, scanKind kind, bool values, scanOptions *o) {
    o->names_only = kind == (values ? SCAN_HASH : SCAN_ZSET);
    if (!o->names_only) {
        replyError(c, values ? SLICE("ERR NOVALUES option can only be used in HSCAN")
                             : SLICE("ERR NOSCORES option can only be used in ZSCAN"));
    }
    return o->names_only;
}

/* One option at *place, which is moved behind it. */
static bool parseOption(ctx *c, int *place, scanKind kind, scanOptions *o) {
    int i = *place;
    bool has_next = i + 1 < c->argc;
    *place += 2;
    if (ctxArgIs(c, i, "count") && has_next) return parseCount(c, i + 1, &o->count);
    if (ctxArgIs(c, i, "match") && has_next) {
        slice pattern = c->argv[i + 1];
        o->pattern = sliceEqual(pattern, SLICE("*")) ? (slice){NULL, 0} : pattern;
        return true;
    }
    if (ctxArgIs(c, i, "type") && has_next && kind == SCAN_KEYS) return parseType(c, i + 1, o);
    *place -= 1;
    if (ctxArgIs(c, i, "novalues")) return parseNamesOnly(c, kind, true, o);
    if (ctxArgIs(c, i, "noscores")) return parseNamesOnly(c, kind, false, o);
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

bool scanParseOptions(ctx *c, int place, scanKind kind, scanOptions *out) {
    *out = (scanOptions){.count = 10};
    while (place < c->argc) {
        if (!parseOption(c, &place, kind, out)) return false;
    }
    return true;
}

bool scanMatches(const scanOptions *o, slice name) {
    return !o->pattern.ptr || globMatch(o->pattern, name);
}

/* ------------------------------------------------------------------ the walk over keys */

/* The slot of all keys a pattern can match, or -1 when they may lie anywhere: they begin with its bytes up
 * to the first one with a meaning. */
static int patternSlot(slice pattern) {
    if (!pattern.ptr || !storeIsSlotted()) return -1;
    size_t plain = 0;
    while (plain < pattern.len && !memchr("*?[\\", pattern.ptr[plain], 4)) plain++;
    if (plain == pattern.len) return hashSlot(pattern);
    const char *open = memchr(pattern.ptr, '{', plain);
    const char *end = pattern.ptr + plain;
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    /* An empty tag counts for nothing: then the whole name gives the slot. */
    if (!close || close == open + 1) return -1;
    return hashSlot(sliceMake(pattern.ptr, plain));
}

typedef struct keyScan {
    ctx *c;
    scanOptions options;
    int64_t found;
    str dead; /* keys with their lengths before them */
} keyScan;

static bool wanted(const keyScan *s, const robj *o) {
    return scanMatches(&s->options, objectKey(o)) &&
           (!s->options.has_type || objectType(o) == s->options.type);
}

static void visitScan(void *arg, const robj *o) {
    keyScan *s = arg;
    if (!wanted(s, o)) return;
    slice key = objectKey(o);
    if (storeIsDead(o, s->c->now_ms)) {
        strAppend(&s->dead, &key.len, sizeof(key.len));
        strAppendSlice(&s->dead, key);
        return;
    }
    replyBulk(s->c, key);
    s->found++;
}

/* Meets the dead ones again, this time for good. */
static void bury(keyScan *s) {
    for (size_t at = 0; at < s->dead.len;) {
        size_t len;
        memcpy(&len, s->dead.ptr + at, sizeof(len));
        slice key = sliceMake(s->dead.ptr + at + sizeof(len), len);
        at += sizeof(len) + len;
        /* Whether it is there matters to nobody now. */
        (void)dbFindUncounted(s->c->db, key, storeHash(key), s->c->now_ms);
    }
    strFree(&s->dead);
}

/* The cursor stands before the names and is known after them. */
static void replyScan(keyScan *s, uint64_t cursor, int slot) {
    /* Buckets looked at, so that a pattern that matches nothing does not hold up everybody. */
    int64_t left = s->options.count > INT64_MAX / 10 ? INT64_MAX : s->options.count * 10;
    outbuf names, *out = s->c->out;
    outbufInit(&names);
    s->c->out = &names;
    do {
        cursor = dbScan(s->c->db, cursor, slot, visitScan, s);
    } while (cursor && --left > 0 && s->found < s->options.count);
    s->c->out = out;
    char digits[NUMBER_TEXT_MAX];
    replyArray(s->c, 2);
    replyBulk(s->c, sliceMake(digits, numberPrintUint(digits, cursor)));
    replyArray(s->c, s->found);
    outbufMoveAll(out, &names);
}

/* SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]. Reply: the next cursor and some keys. */
void scanCommand(ctx *c) {
    keyScan s = {.c = c};
    uint64_t cursor;
    if (!scanParseCursor(c, 1, &cursor) || !scanParseOptions(c, 2, SCAN_KEYS, &s.options)) return;
    replyScan(&s, cursor, patternSlot(s.options.pattern));
    propagateUnwrapped();
    bury(&s);
}

static void visitKeys(void *arg, const robj *o) {
    keyScan *s = arg;
    if (storeIsDead(o, s->c->now_ms) || !wanted(s, o)) return;
    replyBulk(s->c, objectKey(o));
    s->found++;
}

/* KEYS pattern. Reply: all keys that match. Dead ones are passed over and stay. */
void keysCommand(ctx *c) {
    keyScan s = {.c = c};
    if (!sliceEqual(c->argv[1], SLICE("*"))) s.options.pattern = c->argv[1];
    respDeferred head = respDeferBegin(c->out);
    dbEach(c->db, patternSlot(s.options.pattern), visitKeys, &s);
    respDeferEnd(c->out, head, '*', c->proto, s.found);
}
