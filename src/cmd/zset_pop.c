/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted set commands that pop members from an end. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/zset_priv.h"
#include "engine/block.h"
#include "engine/job.h"

bool zsetArgPositive(ctx *c, int arg_index, int64_t *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    return ctxArgIntIn(c, arg_index, 0, INT64_MAX, out,
                       "ERR value is out of range, must be positive");
}

/* Replies the first or last `count` members. */
static void replyEnd(ctx *c, const robj *o, bool max, uint64_t count, bool arrays) {
    zsetCursor cursor;
    zsetPair pair;
    hotCheck(count <= zsetLength(o));
    zsetSeek(&cursor, o, max ? zsetLength(o) - 1 : 0, max);
    for (uint64_t i = 0; i < count && zsetNext(&cursor, &pair); i++) {
        if (arrays) replyArray(c, 2);
        zsetReplyPair(c, &pair, true, false);
    }
}

/* Pops `count` > 0 members, or all, from one end of the value at argument `arg_index` and replies
 * them; the reply header was already written. `arrays`: each member and its score form an array. */
static void popMembers(ctx *c, int arg_index, robj *o, bool max, uint64_t count, bool arrays) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    uint64_t length = zsetLength(o), popped = 0;
    for (uint64_t part = 0;; popped += part) {
        part = jobPart(c, count - popped);
        replyEnd(c, o, max, part, arrays);
        if (popped + part == count) break;
        zsetRemoveRange(&o, &(zsetRange){max ? length - popped - part : 0, part});
        if (jobIsDue(c, (unsigned)part) && !collectionSuspend(c, arg_index, &o, false)) return;
    }
    zsetRange range = {max ? length - count : 0, count - popped};
    zsetDeleteRange(c, arg_index, o, &range, max ? &eventZpopmax : &eventZpopmin);
    engineHot.dirty += popped;
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
    if (many && jobStartChangeFound(c, wanted)) return;
    zsetReplyHead(c, wanted, true, many);
    if (wanted > 0) popMembers(c, 1, o, max, wanted, many && c->proto > 2);
}

/* ZPOPMIN key [count]. Removes the members with the lowest scores. Reply: the members and their
 * scores. */
void zpopminCommand(ctx *c) { pop(c, false); }

/* ZPOPMAX key [count]. Removes the members with the highest scores. Reply: the members and their
 * scores. */
void zpopmaxCommand(ctx *c) { pop(c, true); }

/* Propagates ZPOPMIN or ZPOPMAX. */
static void propagatePop(ctx *c, int arg_index, bool max, uint64_t count) {
    collectionPropagatePop(c, arg_index, max ? SLICE("ZPOPMAX") : SLICE("ZPOPMIN"), count);
}

/* Parses the arguments; numkeys is argument `arg_index`. */
static bool parseManyPop(ctx *c, int arg_index, collectionPop *out) {
    return collectionParsePop(c, arg_index, "min", "max", out);
}

/* Pops from the first sorted set that exists. False if none does; nothing was replied. */
static bool popFirst(ctx *c, const collectionPop *p) {
    for (int i = p->first; i < p->end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_ZSET, &o)) return true;
        if (!o) continue;
        uint64_t count = sizeMin((uint64_t)p->count, zsetLength(o));
        replyArray(c, 2);
        replyBulk(c, c->argv[i]);
        replyArray(c, (int64_t)count);
        propagatePop(c, i, p->last, count);
        popMembers(c, i, o, p->last, count, true);
        return true;
    }
    return false;
}

/* ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]. Reply: the first key that exists and the
 * popped members, or null. */
void zmpopCommand(ctx *c) {
    collectionPop p;
    if (parseManyPop(c, 1, &p) && !popFirst(c, &p)) replyNullArray(c);
}

/* ------------------------------------------------------------------ blocking commands */

static void popOrBlock(ctx *c, bool max) {
    int64_t deadline_ms;
    int end = c->argc - 1;
    if (!blockArgDeadline(c, end, &deadline_ms)) return;
    for (int i = 1; i < end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_ZSET, &o)) return;
        if (!o) continue;
        replyArray(c, 3);
        replyBulk(c, c->argv[i]);
        propagatePop(c, i, max, 0);
        popMembers(c, i, o, max, 1, false);
        return;
    }
    collectionBlock(c, 1, end, TYPE_ZSET, deadline_ms);
}

/* BZPOPMIN key [key ...] timeout. Reply: the key, the member with the lowest score, and its score;
 * a null array on timeout. */
void bzpopminCommand(ctx *c) { popOrBlock(c, false); }

/* BZPOPMAX key [key ...] timeout. Reply: like BZPOPMIN, with the highest score. */
void bzpopmaxCommand(ctx *c) { popOrBlock(c, true); }

/* BZMPOP timeout numkeys key [key ...] MIN|MAX [COUNT count]. Reply: like ZMPOP. */
void bzmpopCommand(ctx *c) {
    collectionPop p;
    int64_t deadline_ms;
    if (!parseManyPop(c, 2, &p) || !blockArgDeadline(c, 1, &deadline_ms)) return;
    if (!popFirst(c, &p)) collectionBlock(c, p.first, p.end, TYPE_ZSET, deadline_ms);
}
