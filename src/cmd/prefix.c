/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DELPREFIX and COUNTPREFIX: all keys that begin with a prefix, in steps of bounded work.
 *
 * With COUNT or CURSOR a request is one step, as one of SCAN. Without them the client is blocked,
 * and there is a slice in each turn of the loop until all keys were looked at. All clients that
 * wait share SLICE_US of a turn; others are served in between. A key that is there throughout is
 * found; others may be.
 *
 * In cluster mode a prefix with a hash tag has the slot of the tag, and is redirected like a key.
 * Main thread only. */
#include "base/base.h"
#include "base/clock.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/scan.h"
#include "engine/block.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "store/store.h"

enum {
    COUNT_DEFAULT = 1000,
    SLICE_US = 1000,
    STEP_KEYS = 128,   /* looked at before what was found is deleted, and the clock read */
    UNLINK_KEYS = 256, /* in one propagated command */
};

/* What a whole walk knows from one slice to the next. */
typedef struct sweep {
    uint64_t cursor;
    int64_t found;
} sweep;

/* One slice. */
typedef struct prefixWalk {
    ctx *c;
    slice prefix;
    int slot; /* -1: any */
    bool deletes;
    int64_t visited;
    str names; /* of keys to be deleted, each preceded by its length */
    sweep at;
} prefixWalk;

static struct {
    int waiting; /* clients */
    bool runs;   /* the stage is registered */
} sweeps;

/* ------------------------------------------------------------------ the slot of a prefix */

/* True if all keys with the prefix have the same hash tag. */
static bool hasTag(slice prefix) {
    const char *end = prefix.ptr + prefix.len;
    const char *open = memchr(prefix.ptr, '{', prefix.len);
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    return close && close > open + 1; /* an empty tag is none */
}

/* The prefix, if keys with it are in one slot. */
static int findPrefix(const slice *argv, int argc, keyPosition *out, int max, uint32_t flags) {
    hotCheck(argc > 1);
    if (!storeIsSlotted() || !hasTag(argv[1])) return 0;
    if (max > 0) out[0] = (keyPosition){1, flags};
    return 1;
}

int delprefixFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    return findPrefix(argv, argc, out, max, KEY_RM | KEY_DELETE);
}

int countprefixFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    return findPrefix(argv, argc, out, max, KEY_RO | KEY_ACCESS);
}

/* ------------------------------------------------------------------ deleting */

/* A command of deleted keys, which is propagated. */
typedef struct unlinked {
    slice words[1 + UNLINK_KEYS];
    int count; /* of words */
    int slot;
} unlinked;

static void unlinkedFlush(ctx *c, unlinked *u) {
    hotCheck(u->count > 0);
    if (u->count > 1) {
        propagateTo to = propagateToOf(c);
        to.slot = u->slot; /* who follows one slot gets what belongs to it */
        propagateCopy(to, u->count, u->words);
    }
    u->count = 1;
}

static void unlinkedAdd(ctx *c, unlinked *u, slice key, uint64_t hash) {
    int slot = storeIsSlotted() ? storeHashSlot(hash) : -1;
    if (slot != u->slot || u->count == (int)COUNT_OF(u->words)) unlinkedFlush(c, u);
    hotCheck(u->count < (int)COUNT_OF(u->words));
    u->slot = slot;
    u->words[u->count++] = key;
}

static void deleteNamed(prefixWalk *w) {
    hotCheck(w->deletes);
    ctx *c = w->c;
    unlinked u = {.words = {SLICE("UNLINK")}, .count = 1, .slot = -1};
    size_t at = 0;
    while (at < w->names.len) {
        size_t len;
        memcpy(&len, w->names.ptr + at, sizeof(len));
        slice key = sliceMake(w->names.ptr + at + sizeof(len), len);
        at += sizeof(len) + len;
        uint64_t hash = storeHash(key);
        if (!dbUnlink(c->db, key, hash, c->look)) continue; /* had expired */
        w->at.found++;
        ctxKeyChanged(c, key, &eventDel);
        if (engineHot.sinks) unlinkedAdd(c, &u, key, hash);
    }
    check(at == w->names.len);
    unlinkedFlush(c, &u);
    strClear(&w->names);
}

/* ------------------------------------------------------------------ walking */

static void visit(void *arg, const robj *o) {
    prefixWalk *w = arg;
    w->visited++;
    slice key = objectKey(o);
    if (!sliceHasPrefix(key, w->prefix)) return;
    if (w->deletes) {
        strAppend(&w->names, &key.len, sizeof(key.len));
        strAppendSlice(&w->names, key);
    } else if (!storeIsExpired(o, w->c->look)) {
        w->at.found++;
    }
}

static void walkInit(prefixWalk *w, ctx *c, bool deletes) {
    hotCheck(c->argc > 1);
    bool one_slot = storeIsSlotted() && hasTag(c->argv[1]);
    *w = (prefixWalk){.c = c,
                      .prefix = c->argv[1],
                      .slot = one_slot ? hashSlot(c->argv[1]) : -1,
                      .deletes = deletes,
                      .names = STR_EMPTY};
    propagateUnwrapped();
}

/* Looks at some STEP_KEYS keys; as many buckets may be empty. */
static void walkStep(prefixWalk *w, int64_t most) {
    hotCheck(most > 0);
    int64_t end = w->visited + (most < STEP_KEYS ? most : STEP_KEYS);
    int buckets = 10 * STEP_KEYS;
    do {
        w->at.cursor = dbScan(w->c->db, w->at.cursor, w->slot, visit, w);
    } while (w->at.cursor && w->visited < end && --buckets > 0);
    if (w->names.len) deleteNamed(w);
}

static void walkClear(prefixWalk *w) {
    if (w->deletes) ctxPropagateNothing(w->c); /* it was, as UNLINK */
    strFree(&w->names);
}

/* ------------------------------------------------------------------ one step */

/* Parses [COUNT n] [CURSOR c]. False: the error was replied. */
static bool parseStep(ctx *c, int64_t *count, uint64_t *cursor) {
    *count = COUNT_DEFAULT;
    *cursor = 0;
    for (int i = 2; i < c->argc; i += 2) {
        if (ctxArgIs(c, i, "count") && i + 1 < c->argc) {
            if (!ctxArgIntIn(c, i + 1, 1, INT64_MAX, count, NULL)) return false;
        } else if (ctxArgIs(c, i, "cursor") && i + 1 < c->argc) {
            if (!scanParseCursor(c, i + 1, cursor)) return false;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* Reply: the next cursor, and how many keys were found. */
static void runStep(ctx *c, bool deletes) {
    hotCheck(c->argc > 2);
    prefixWalk w;
    int64_t count;
    uint64_t cursor;
    char digits[NUMBER_TEXT_MAX];
    if (!parseStep(c, &count, &cursor)) return;
    walkInit(&w, c, deletes);
    w.at.cursor = cursor;
    /* Steps without a key count as one, so that empty tables end, too. */
    for (int64_t left = count; left > 0;) {
        int64_t before = w.visited;
        walkStep(&w, left);
        if (!w.at.cursor) break;
        left -= w.visited > before ? w.visited - before : 1;
    }
    replyArray(c, 2);
    replyBulk(c, sliceMake(digits, numberPrintUint(digits, w.at.cursor)));
    replyInteger(c, w.at.found);
    walkClear(&w);
}

/* ------------------------------------------------------------------ the whole */

/* The requests that wait run again in stage WAKE. */
static void continueSweeps(void);

static const stageJob stages[] = {{STAGE_EXPIRE, continueSweeps}, {0, NULL}};
static const feature sweeping = {.name = "prefixes", .stages = stages};

static void continueSweeps(void) {
    hotCheck(sweeps.waiting >= 0);
    if (!sweeps.waiting) {
        sweeps.runs = false;
        hooksRemoveFeature(&sweeping);
    } else if (!engineHot.current && pauseNow() == PAUSE_NONE) {
        blockNotify(BLOCK_CUSTOM);
        engineStayAwake();
    }
}

static bool mayContinue(const blockQuery *q) {
    (void)q;
    return pauseNow() == PAUSE_NONE;
}

static void freeSweep(void *state) {
    check(sweeps.waiting > 0);
    sweeps.waiting--;
    memFree(state);
}

static void replyFoundSoFar(ctx *c) {
    const sweep *s = blockState(c);
    replyInteger(c, s->found);
}

static void waitForNextSlice(ctx *c, const sweep *at) {
    hotCheck(at->cursor != 0);
    sweep *kept = memNew(sweep);
    *kept = *at;
    if (!sweeps.runs) hooksAddFeature(&sweeping);
    sweeps.runs = true;
    sweeps.waiting++;
    engineStayAwake(); /* the stage runs from the next turn on */
    blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM,
                                 .ready = mayContinue,
                                 .timed_out = replyFoundSoFar,
                                 .state = kept,
                                 .free_state = freeSweep});
}

static void runWhole(ctx *c, bool deletes) {
    hotCheck(c->argc == 2);
    if (blockIsDenied(c)) {
        replyErrorFormat(c, "ERR %.*s needs COUNT in transactions and scripts",
                         (int)c->cmd->name.len, c->cmd->name.ptr);
        return;
    }
    sweep *kept = c->flags & CTX_WOKEN ? blockState(c) : NULL;
    prefixWalk w;
    walkInit(&w, c, deletes);
    if (kept) w.at = *kept;
    int64_t end_us = clockMonoUs() + SLICE_US / (sweeps.waiting + 1);
    do { walkStep(&w, STEP_KEYS); } while (w.at.cursor && clockMonoUs() < end_us);
    if (!w.at.cursor) {
        replyInteger(c, w.at.found);
    } else if (kept) {
        *kept = w.at;
        blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM}); /* goes on waiting */
    } else {
        waitForNextSlice(c, &w.at);
    }
    walkClear(&w);
}

/* ------------------------------------------------------------------ commands */

static void run(ctx *c, bool deletes) {
    if (c->who->flags & SESSION_ASKING) {
        /* The keys of the slot are on two nodes now. */
        replyError(c, SLICE("TRYAGAIN Multiple keys request during rehashing of slot"));
    } else if (c->argc > 2) {
        runStep(c, deletes);
    } else {
        runWhole(c, deletes);
    }
}

/* DELPREFIX prefix [COUNT count] [CURSOR cursor]. Reply: how many keys were deleted; with options
 * the next cursor and that. */
void delprefixCommand(ctx *c) {
    if (c->argv[1].len) {
        run(c, true);
    } else {
        replyError(c, SLICE("ERR the prefix is empty, use FLUSHDB to delete all keys"));
    }
}

/* COUNTPREFIX prefix [COUNT count] [CURSOR cursor]. Reply: how many keys there are; with options
 * the next cursor and how many were found. */
void countprefixCommand(ctx *c) { run(c, false); }
