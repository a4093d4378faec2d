/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of sorted set commands. */
#ifndef CMD_ZSET_PRIV_H
#define CMD_ZSET_PRIV_H

#include "engine/ctx.h"
#include "store/type_zset.h"

/* Current limits of the packed encoding. */
packLimits zsetLimitsNow(void);

/* Members to add to the sorted set at argument 1; their scores are parsed and all checks done. */
typedef struct zsetAdding {
    unsigned flags;     /* of enum zsetAddFlag */
    bool count_changed; /* the reply also counts members whose score changed */
    int first, step;    /* index of the first member; distance to the next one */
    int count;
    double few[8];
    double *scores; /* one per member: `few`, or a heap block */
} zsetAdding;
/* Provides space for the scores of a->count members. */
void zsetAddingInit(zsetAdding *a);
void zsetAddingClear(zsetAdding *a);
/* Adds the members, notifies and replies, as ZADD does. */
void zsetAddAll(ctx *c, const zsetAdding *a);

/* Replies a member with or without its score. With `nested`, RESP3 has an array per pair. */
void zsetReplyPair(ctx *c, const zsetPair *pair, bool scores, bool nested);
/* Header of an array of `count` such pairs. */
void zsetReplyHead(ctx *c, uint64_t count, bool scores, bool nested);
/* Parse arguments `min_index` and `max_index` as bounds of a range. False: the error was
 * replied. */
bool zsetArgScoreBounds(ctx *c, int min_index, int max_index, zsetBound *min, zsetBound *max);
bool zsetArgLexBounds(ctx *c, int min_index, int max_index, zsetBound *min, zsetBound *max);
/* Parses argument `arg_index` as a number of members to pop. False: the error was replied. */
bool zsetArgPositive(ctx *c, int arg_index, int64_t *out);
/* Removes a range from the value `o` at argument `arg_index`, which must be the most recent
 * lookup. */
void zsetDeleteRange(ctx *c, int arg_index, robj *o, const zsetRange *range, const keyEvent *event);

#endif
