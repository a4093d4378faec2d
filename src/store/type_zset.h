/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted sets as values of keyspace objects: a listpack of members and scores in the object while they are small,
 * else a table of members and an ordered index behind the pointer, which share the elements.
 *
 * Members are ordered by score and, among equals, by their bytes. Changes work as those of hashes (type_hash.h):
 * they take the object that dbFind() or zsetNew() returned and hand back what it has become, for dbPlace(). A
 * sorted set is never stored empty. Scores are never NaN. Text handed out is borrowed until the object changes.
 * Main thread only. */
#ifndef STORE_TYPE_ZSET_H
#define STORE_TYPE_ZSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/slice.h"
#include "ds/hashtable.h"
#include "ds/ordered.h"
#include "store/object.h"
#include "store/type.h"

/* A member and its score. */
typedef struct zsetPair {
    slice member;
    double score;
} zsetPair;

/* An empty one for a key that is not there, fit for `count` members none of which is longer than `longest`. */
robj *zsetNew(slice key, size_t count, size_t longest, const packLimits *limits) MUST_USE;
size_t zsetLength(const robj *o);
/* False when there is no such member. */
bool zsetScore(const robj *o, slice member, double *score);
/* Makes the object ready for `count` members more, none of which is longer than `longest`. */
robj *zsetPrepare(robj *o, size_t count, size_t longest, const packLimits *limits) MUST_USE;

/* What becomes of a member that is there already, and of one that is not. */
enum zsetAddFlag {
    ZSET_NX = 1 << 0,   /* it stays as it is */
    ZSET_XX = 1 << 1,   /* a new one is not added */
    ZSET_GT = 1 << 2,   /* the score changes only to a greater one */
    ZSET_LT = 1 << 3,   /* ... a lesser one */
    ZSET_INCR = 1 << 4, /* the score is added to the old one */
};
typedef enum zsetAdded {
    ZSET_ADDED,
    ZSET_UPDATED,
    ZSET_SAME,    /* it has that score already */
    ZSET_REFUSED, /* by a flag */
    ZSET_NAN,     /* the sum is no number: nothing was done */
} zsetAdded;
/* Sets the score of a member; `pair->score` is what it has then, but for ZSET_REFUSED and ZSET_NAN. The member's
 * text may not lie in the object. */
robj *zsetAdd(robj *o, zsetPair *pair, unsigned flags, const packLimits *limits,
              zsetAdded *added) MUST_USE;
/* Takes a member out; false when there is none. The caller removes a key whose set is empty then. */
bool zsetRemove(robj **o, slice member);

/* ------------------------------------------------------------------ places */

/* How many stand before a member. False when there is none. */
bool zsetRank(const robj *o, slice member, uint64_t *rank, double *score);

/* One end of a range. */
typedef struct zsetBound {
    enum zsetBy { ZSET_BY_SCORE, ZSET_BY_LEX, ZSET_FIRST, ZSET_LAST } by;
    bool excluded; /* what is equal to it does not belong to the range */
    double score;
    slice text;
} zsetBound;
typedef struct zsetRange {
    uint64_t index, count;
} zsetRange;
/* The members between two ends, in order. By text: all scores should be equal. */
zsetRange zsetFindRange(const robj *o, const zsetBound *min, const zsetBound *max);

/* Members from a place on. The set may not change meanwhile. Not to be copied. */
typedef struct zsetCursor {
    const robj *o; /* private */
    const uint8_t *at;
    const void *element;
    orderedCursor walk;
    bool reverse;
    char digits[NUMBER_TEXT_MAX];
} zsetCursor;
/* Begins with number `index`, counted from the front, which must be there; `reverse`: goes towards the front. */
void zsetSeek(zsetCursor *cursor, const robj *o, uint64_t index, bool reverse);
/* False at the end. The pair is good until the next call. */
bool zsetNext(zsetCursor *cursor, zsetPair *out);
/* Takes out `range->count` members from `range->index` on, all of which must be there. */
void zsetRemoveRange(robj **o, const zsetRange *range);

/* ------------------------------------------------------------------ other ways to go over members */

typedef void zsetVisitProc(void *arg, const zsetPair *pair);
/* Visits members from `cursor` on and returns the next cursor, 0 at the end; see hashtableScan(). A packed set is
 * visited whole. */
uint64_t zsetScan(const robj *o, uint64_t cursor, zsetVisitProc *visit, void *arg);
/* Visits `count` random members; `unique`: different ones, as many as there are. */
void zsetRandom(const robj *o, size_t count, bool unique, zsetVisitProc *visit, void *arg);

/* ------------------------------------------------------------------ building */

/* Members in no order, that become a sorted set at once: results of many sets. */
typedef struct zsetBuilder {
    hashtable members; /* private */
    size_t longest;
    void **sorted;
} zsetBuilder;

void zsetBuilderInit(zsetBuilder *b);
/* There will be so many members, or more. */
void zsetBuilderReserve(zsetBuilder *b, size_t count);
/* The place of the member's score, which may be read and changed with zsetBuilderRead() and -Write(); *created
 * tells that it is new, with score 0. Good until the next call. */
void *zsetBuilderAt(zsetBuilder *b, slice member, bool *created);
double zsetBuilderRead(const void *place);
void zsetBuilderWrite(void *place, double score);
/* Takes a member out, if there is one. */
void zsetBuilderRemove(zsetBuilder *b, slice member);
size_t zsetBuilderCount(const zsetBuilder *b);
/* Visits all in order. */
void zsetBuilderVisit(zsetBuilder *b, zsetVisitProc *visit, void *arg);
/* What was built, as an object; NULL when there is nothing. The builder is empty afterwards. */
robj *zsetBuilderTake(zsetBuilder *b, slice key, const packLimits *limits);
void zsetBuilderClear(zsetBuilder *b);

#endif
