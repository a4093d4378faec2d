/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of sorted set commands share. */
#ifndef CMD_ZSET_PRIV_H
#define CMD_ZSET_PRIV_H

#include "engine/ctx.h"
#include "store/type_zset.h"

/* Up to where a sorted set is kept packed, as the directives say now. */
packLimits zsetLimitsNow(void);

/* Members to add to the sorted set of argument 1, their scores read and everything else refused already. */
typedef struct zsetAdding {
    unsigned flags;     /* of enum zsetAddFlag */
    bool count_changed; /* the reply counts members whose score changed, too */
    int first, step;    /* arguments of the first member, and from one to the next */
    int count;
    double few[8];
    double *scores; /* one a member: `few`, or a block */
} zsetAdding;
/* Room for the scores of a->count members. */
void zsetAddingInit(zsetAdding *a);
void zsetAddingClear(zsetAdding *a);
/* Adds them, tells it and replies, as ZADD does. */
void zsetAddAll(ctx *c, const zsetAdding *a);

/* Replies with a pair, or the member only. RESP3 has pairs as arrays of their own when `nested`. */
void zsetReplyPair(ctx *c, const zsetPair *pair, bool scores, bool nested);
/* The head of an array of `count` such pairs. */
void zsetReplyHead(ctx *c, uint64_t count, bool scores, bool nested);
/* Arguments `min_place` and `max_place` as ends of a range. False: the error was replied. */
bool zsetArgScores(ctx *c, int min_place, int max_place, zsetBound *min, zsetBound *max);
bool zsetArgTexts(ctx *c, int min_place, int max_place, zsetBound *min, zsetBound *max);
/* Argument `place` as how many to pop. False: the error was replied. */
bool zsetArgPositive(ctx *c, int place, int64_t *out);
/* Takes a range out of the value `o` of argument `place`, which was looked up last. */
void zsetDropRange(ctx *c, int place, robj *o, const zsetRange *range, const char *event);

#endif
