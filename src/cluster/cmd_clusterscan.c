/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTERSCAN: a scan of all nodes, slot by slot, with one cursor (scan_cursor.h). Expired keys are
 * skipped. Main thread only. */
#include "base/base.h"
#include "base/glob.h"
#include "base/hash.h"
#include "base/number.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/redirect.h"
#include "cluster/scan_cursor.h"
#include "cluster/server_map.h"
#include "engine/reply.h"
#include "store/store.h"
#include "store/type.h"

enum { COUNT_DEFAULT = 10, STEPS_PER_KEY = 10 /* many buckets may be empty */ };

typedef struct clusterScan {
    ctx *c;
    scanPrint print;
    slice pattern; /* `ptr` NULL: none */
    int64_t count;
    bool has_type;
    typeFilter type;
    int slot;         /* the only one to be scanned; -1: all */
    int pattern_slot; /* of all keys that the pattern matches; -1: several */
    int64_t steps, visited, found;
} clusterScan;

/* ------------------------------------------------------------------ arguments */

/* The slot of all keys that a pattern can match; -1: there may be several. */
static int slotOfPattern(slice pattern) {
    size_t plain = globLiteralPrefix(pattern);
    if (plain == pattern.len) return hashSlot(pattern);
    const char *open = memchr(pattern.ptr, '{', plain);
    const char *close = open ? memchr(open, '}', (size_t)(pattern.ptr + plain - open)) : NULL;
    return close && close > open + 1 ? hashSlot(sliceMake(pattern.ptr, plain)) : -1;
}

static bool parseType(ctx *c, slice name, clusterScan *out) {
    out->has_type = typeFind(name, &out->type);
    if (!out->has_type)
        replyErrorFormat(c, "ERR unknown type name '%.*s'", (int)name.len, name.ptr);
    return out->has_type;
}

static bool parseSlot(ctx *c, int arg_index, clusterScan *out) {
    if (out->slot < 0) return clusterSlotArg(c, arg_index, &out->slot);
    replyError(c, SLICE("ERR SLOT option can only be specified once"));
    return false;
}

/* The option at `i`, which has a value. */
static bool parseOption(ctx *c, int i, clusterScan *out) {
    if (ctxArgIs(c, i, "count")) {
        if (!ctxArgInt(c, i + 1, &out->count)) return false;
        if (out->count >= 1) return true;
    } else if (ctxArgIs(c, i, "match")) {
        out->pattern = c->argv[i + 1];
        out->pattern_slot = slotOfPattern(out->pattern);
        return true;
    } else if (ctxArgIs(c, i, "type")) {
        return parseType(c, c->argv[i + 1], out);
    } else if (ctxArgIs(c, i, "slot")) {
        return parseSlot(c, i + 1, out);
    }
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static bool parseOptions(ctx *c, clusterScan *out) {
    for (int i = 2; i < c->argc; i += 2) {
        if (i + 1 == c->argc) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        if (!parseOption(c, i, out)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ replies */

/* NULL: the scan has ended. */
static void replyCursor(const clusterScan *s, const scanCursor *cursor) {
    str text = STR_EMPTY;
    replyArray(s->c, 2);
    if (cursor) {
        scanCursorPrint(cursor, &s->print, &text);
        replyBulk(s->c, strSlice(&text));
    } else {
        replyBulkText(s->c, "0");
    }
    strFree(&text);
}

/* No keys: the scan goes on at the start of a slot, or (-1) ends. */
static void replyJump(const clusterScan *s, int slot) {
    const scanCursor to = {.slot = slot, .stage = SCAN_BEGIN};
    replyCursor(s, slot >= 0 ? &to : NULL);
    replyArray(s->c, 0);
}

/* ------------------------------------------------------------------ keys */

static void visit(void *arg, const robj *o) {
    clusterScan *s = arg;
    slice key = objectKey(o);
    s->visited++;
    if (s->pattern.ptr && !globMatch(s->pattern, key)) return;
    if (s->has_type && !typeMatches(&s->type, o)) return;
    if (objectHasExpire(o) && lookIsPast(s->c->look, objectExpire(o))) return;
    replyBulk(s->c, key);
    s->found++;
}

static bool isFull(const clusterScan *s) { return s->steps <= 0 || s->visited >= s->count; }

/* Scans a slot; false: it is not at its end, and *position is where to go on. */
static bool scanSlot(clusterScan *s, int slot, uint64_t *position) {
    check(slot >= 0);
    do {
        *position = dbScan(s->c->db, *position, slot, visit, s);
        s->steps--;
    } while (*position && !isFull(s));
    return *position == 0;
}

/* True if this node, or the primary of this replica, owns the slot, and nobody moves it. */
static bool isSettled(int slot) {
    const clusterNode *own = clusterNodePrimary(serverMap.myself);
    return own && clusterMapOwner(&serverMap, slot) == own &&
           !clusterMapOpenSlot(&serverMap, SLOT_MIGRATING, slot);
}

/* Scans from a slot on through those that follow, as long as they are of this node. *cursor is
 * where to go on; false: the scan has ended. */
static bool scanRange(clusterScan *s, scanCursor *cursor) {
    bool only_one = s->slot >= 0 || s->pattern_slot >= 0;
    uint64_t position = cursor->position;
    int slot = cursor->slot;
    while (scanSlot(s, slot, &position)) {
        if (only_one) return false;
        slot++;
        while (slot < SLOT_COUNT && isSettled(slot) && !dbSlotCount(s->c->db, slot)) slot++;
        if (slot == SLOT_COUNT) return false;
        position = (uint64_t)slot;
        if (isSettled(slot) && !isFull(s)) continue;
        *cursor = (scanCursor){.slot = slot, .stage = SCAN_BEGIN};
        return true;
    }
    *cursor = (scanCursor){.slot = slot, .stage = SCAN_OWNED, .is_own = true, .position = position};
    return true;
}

/* Scans what is here of a slot that is being moved. */
static bool scanOpen(clusterScan *s, scanCursor *cursor, bool imports) {
    bool goes_on = cursor->is_own && cursor->stage != SCAN_DONE &&
                   (!imports || cursor->stage == SCAN_IMPORTING);
    uint64_t position = goes_on ? cursor->position : (uint64_t)cursor->slot;
    bool at_end = scanSlot(s, cursor->slot, &position);
    if (at_end && imports) {
        bool is_last = s->slot >= 0 || s->pattern_slot >= 0 || cursor->slot + 1 == SLOT_COUNT;
        *cursor = (scanCursor){.slot = cursor->slot + 1, .stage = SCAN_BEGIN};
        return !is_last;
    }
    cursor->is_own = true;
    cursor->stage = at_end ? SCAN_DONE : imports ? SCAN_IMPORTING : SCAN_OWNED;
    cursor->position = at_end ? (uint64_t)cursor->slot : position;
    return true;
}

static bool scanKeys(clusterScan *s, scanCursor *cursor) {
    const clusterNode *own = clusterNodePrimary(serverMap.myself);
    if (isSettled(cursor->slot)) {
        bool goes_on = cursor->is_own && cursor->stage != SCAN_DONE;
        if (!goes_on) cursor->position = (uint64_t)cursor->slot;
        return scanRange(s, cursor);
    }
    return scanOpen(s, cursor, clusterMapOwner(&serverMap, cursor->slot) != own);
}

/* True if this node has scanned what it has of a slot that it gives away: the rest is at the
 * target. */
static bool isElsewhere(const scanCursor *cursor) {
    const clusterNode *own = clusterNodePrimary(serverMap.myself);
    if (clusterMapOwner(&serverMap, cursor->slot) != own || isSettled(cursor->slot)) return false;
    return cursor->is_own ? cursor->stage == SCAN_DONE : cursor->stage == SCAN_IMPORTING;
}

/* ------------------------------------------------------------------ the command */

static void scanFrom(clusterScan *s, scanCursor *cursor) {
    ctx *c = s->c;
    outbuf keys, *out = c->out;
    s->steps = s->count > INT64_MAX / STEPS_PER_KEY ? INT64_MAX : s->count * STEPS_PER_KEY;
    outbufInit(&keys);
    c->out = &keys;
    bool more = scanKeys(s, cursor);
    c->out = out;
    replyCursor(s, more ? cursor : NULL);
    replyArray(c, s->found);
    outbufMoveAll(out, &keys);
}

/* CLUSTERSCAN cursor [MATCH pattern] [COUNT count] [TYPE type] [SLOT slot]. Reply: the next cursor
 * and an array of keys. */
void clusterscanCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    clusterScan s = {.c = c, .count = COUNT_DEFAULT, .slot = -1, .pattern_slot = -1};
    scanCursor cursor = {.slot = -1};
    if (!clusterIsNode(c)) return;
    s.print = scanPrintOf(sliceMake(serverMap.myself->shard_id, NODE_ID_LEN));
    bool begins = sliceEqual(c->argv[1], SLICE("0"));
    if (!begins && !scanCursorParse(c->argv[1], &s.print, &cursor)) {
        replyError(c, SLICE("ERR Invalid cursor"));
        return;
    }
    if (!parseOptions(c, &s)) return;
    if (!begins && s.slot >= 0 && cursor.slot != s.slot) {
        replyError(c, SLICE("ERR Cursor slot mismatch with SLOT argument"));
        return;
    }
    int from = begins ? (s.slot >= 0 ? s.slot : 0) : cursor.slot, wanted = s.pattern_slot;
    if (wanted >= 0 && (wanted < from || (s.slot >= 0 && wanted != from))) {
        replyJump(&s, -1);
    } else if (begins || (wanted >= 0 && wanted != from)) {
        replyJump(&s, wanted >= 0 ? wanted : from);
    } else if (isElsewhere(&cursor)) {
        redirectAsk(c, cursor.slot);
    } else {
        scanFrom(&s, &cursor);
    }
}
