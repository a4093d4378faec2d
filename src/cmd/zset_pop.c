/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted set commands that pop members from an end. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/zset_priv.h"

bool zsetArgPositive(ctx *c, int place, int64_t *out) {
    return ctxArgIntIn(c, place, 0, INT64_MAX, out, "ERR value is out of range, must be positive");
}

/* Pops `count` > 0 members, or all, from an end of the value of argument `place`, and replies with them;
 * the reply's head is written. `arrays`: each member and its score are an array. */
static void popMembers(ctx *c, int place, robj *o, bool max, uint64_t count, bool arrays) {
    uint64_t length = zsetLength(o);
    zsetRange range = {max ? length - count : 0, count};
    zsetCursor cursor;
    zsetPair pair;
    zsetSeek(&cursor, o, max ? length - 1 : 0, max);
    for (uint64_t i = 0; i < count && zsetNext(&cursor, &pair); i++) {
        if (arrays) replyArray(c, 2);
        zsetReplyPair(c, &pair, true, false);
    }
    zsetDropRange(c, place, o, &range, max ? "zpopmax" : "zpopmin");
}

static void pop(ctx *c, bool max) {
    int64_t count = 1;
    bool many = c->argc > 2;
    if (c->argc > 3) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (many && !zsetArgPositive(c, 2, &count)) return;
    robj *o;
    if (!collectionFindWrite(c, 1, TYPE_ZSET, &o)) return;
    uint64_t wanted = o ? sizeMin((uint64_t)count, zsetLength(o)) : 0;
    zsetReplyHead(c, wanted, true, many);
    if (wanted > 0) popMembers(c, 1, o, max, wanted, many && c->who->proto > 2);
}

/* ZPOPMIN key [count]. Reply: the members with the lowest scores, which are gone. */
void zpopminCommand(ctx *c) { pop(c, false); }

/* ZPOPMAX key [count]. Reply: the members with the highest scores, which are gone. */
void zpopmaxCommand(ctx *c) { pop(c, true); }

typedef struct manyPop {
    int first, end; /* arguments with keys */
    bool max;
    int64_t count;
} manyPop;

/* Reads numkeys at argument `place`, keys, MIN or MAX, and [COUNT count]. False: the error was replied. */
static bool parseManyPop(ctx *c, int place, manyPop *out) {
    int64_t keys;
    *out = (manyPop){.first = place + 1, .count = 1};
    if (!ctxArgIntIn(c, place, 1, INT64_MAX, &keys, "ERR numkeys should be greater than 0"))
        return false;
    int left = c->argc - out->first; /* words from the first key on */
    bool counted = false;
    if (keys < left) {
        out->end = out->first + (int)keys;
        out->max = ctxArgIs(c, out->end, "max");
        counted = left - keys == 3 && ctxArgIs(c, out->end + 1, "count");
    }
    if (keys >= left || (!out->max && !ctxArgIs(c, out->end, "min")) ||
        (!counted && left - keys != 1)) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    return !counted || ctxArgIntIn(c, out->end + 2, 1, INT64_MAX, &out->count,
                                   "ERR count should be greater than 0");
}

/* Goes out as the pop of one key. */
static void propagatePop(ctx *c, slice key, bool max, uint64_t count) {
    char digits[NUMBER_TEXT_MAX];
    slice words[3] = {max ? SLICE("ZPOPMAX") : SLICE("ZPOPMIN"), key,
                      sliceMake(digits, numberPrintUint(digits, count))};
    ctxPropagateAs(c, 3, words);
}

/* ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]. Reply: the first key that has members and those popped, or
 * null. */
void zmpopCommand(ctx *c) {
    manyPop p;
    if (!parseManyPop(c, 1, &p)) return;
    for (int i = p.first; i < p.end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_ZSET, &o)) return;
        if (!o) continue;
        uint64_t count = sizeMin((uint64_t)p.count, zsetLength(o));
        replyArray(c, 2);
        replyBulk(c, c->argv[i]);
        replyArray(c, (int64_t)count);
        popMembers(c, i, o, p.max, count, true);
        propagatePop(c, c->argv[i], p.max, count);
        return;
    }
    replyNullArray(c);
}
