/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted sets as values of keyspace objects: a small one is a listpack of members and scores in the
 * object; a large one is a table of members and an ordered index behind the pointer, which share
 * the elements.
 *
 * Members are ordered by score and, if scores are equal, by their bytes. A change may replace the
 * object, as for hashes (type_hash.h): functions take the object returned by dbFind() or zsetNew()
 * and return the resulting one for dbPlace(). A sorted set is never stored empty. Scores are never
 * NaN. Returned text is borrowed until the object changes. Main thread only. */
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

/* An empty set for a missing key, suitable for `count` members of at most `longest` bytes. */
robj *zsetNew(slice key, size_t count, size_t longest, const packLimits *limits) MUST_USE;
size_t zsetLength(const robj *o);
/* False if the member is missing. */
bool zsetScore(const robj *o, slice member, double *score);
/* Looks up the members of `count` pairs, at most ZSET_MANY, so that the cache misses overlap. Bit i
 * of the result is set if pairs[i].member is in the set; its score is then in scores[i]. */
enum { ZSET_MANY = 32 };
uint32_t zsetScoreMany(const robj *o, const zsetPair *pairs, unsigned count, double *scores);
/* Prepares the object for `count` more members of at most `longest` bytes. */
robj *zsetPrepare(robj *o, size_t count, size_t longest, const packLimits *limits) MUST_USE;

/* The encoding of large sorted sets, as OBJECT ENCODING shows it: a constant text. */
void zsetNameLarge(const char *name);

/* Conditions of zsetAdd(). */
enum zsetAddFlag {
    ZSET_NX = 1 << 0,   /* do not change existing members */
    ZSET_XX = 1 << 1,   /* do not add new members */
    ZSET_GT = 1 << 2,   /* change scores only to greater ones */
    ZSET_LT = 1 << 3,   /* change scores only to lesser ones */
    ZSET_INCR = 1 << 4, /* add to the current score */
};
typedef enum zsetAdded {
    ZSET_ADDED,
    ZSET_UPDATED,
    ZSET_SAME,    /* it has that score already */
    ZSET_REFUSED, /* because of a flag */
    ZSET_NAN,     /* the sum is NaN: nothing was done */
} zsetAdded;
/* Sets the score of a member and `pair->score` to the result, except for ZSET_REFUSED and ZSET_NAN.
 * The member's text must not point into the object. */
robj *zsetAdd(robj *o, zsetPair *pair, unsigned flags, const packLimits *limits,
              zsetAdded *added) MUST_USE;
/* Removes a member; false if it is missing. The caller deletes the key if the set is empty then. */
bool zsetRemove(robj **o, slice member);

/* ------------------------------------------------------------------ ranks and ranges */

/* The number of members before a member. False if it is missing. */
bool zsetRank(const robj *o, slice member, uint64_t *rank, double *score);

/* One end of a range. */
typedef struct zsetBound {
    enum zsetBy { ZSET_BY_SCORE, ZSET_BY_LEX, ZSET_FIRST, ZSET_LAST } by;
    bool excluded; /* equal members are not in the range */
    double score;
    slice text;
} zsetBound;
typedef struct zsetRange {
    uint64_t index, count;
} zsetRange;
/* The members between two bounds. By text, all scores should be equal. */
zsetRange zsetFindRange(const robj *o, const zsetBound *min, const zsetBound *max);

/* Iterates over members. The set must not change meanwhile. Must not be copied. */
typedef struct zsetCursor {
    const robj *o; /* private */
    const uint8_t *at;
    const void *element;
    orderedCursor walk;
    bool reverse;
    char digits[NUMBER_TEXT_MAX];
} zsetCursor;
/* Starts at the member with number `index`, counted from the front, which must exist; `reverse`:
 * towards the front. */
void zsetSeek(zsetCursor *cursor, const robj *o, uint64_t index, bool reverse);
/* False at the end. The pair is valid until the next call. */
bool zsetNext(zsetCursor *cursor, zsetPair *out);
/* Stores some of the next pairs in `out`, at most `most` (1 to ZSET_MANY), and returns their
 * number, 0 at the end. Like zsetNext(), but the cache misses of members overlap. */
unsigned zsetNextMany(zsetCursor *cursor, zsetPair *out, unsigned most);
/* Removes `range->count` members from `range->index` on, which must exist. */
void zsetRemoveRange(robj **o, const zsetRange *range);

/* ------------------------------------------------------------------ visiting members */

typedef void zsetVisitProc(void *arg, const zsetPair *pair);
/* Visits members from `cursor` on and returns the next cursor, 0 at the end; see hashtableScan(). A
 * packed set is visited completely. */
uint64_t zsetScan(const robj *o, uint64_t cursor, zsetVisitProc *visit, void *arg);
/* Visits `count` random members; `unique`: distinct ones, as many as there are. */
void zsetRandom(const robj *o, size_t count, bool unique, zsetVisitProc *visit, void *arg);

/* ------------------------------------------------------------------ building */

/* Collects members in any order and creates a sorted set from them: for results of set operations.
 * A builder is filled either by zsetBuilderAt(), which finds members that were added before, or by
 * zsetBuilderAppend(), which is cheaper. */
typedef struct zsetBuilder {
    hashtable members; /* private: filled by zsetBuilderAt() */
    void **appended;   /* filled by zsetBuilderAppend() */
    size_t count, cap; /* of `appended` */
    size_t longest;
    void **sorted;
} zsetBuilder;

void zsetBuilderInit(zsetBuilder *b);
/* Reserves space for `count` members. */
void zsetBuilderReserve(zsetBuilder *b, size_t count);
/* The location of the member's score, for zsetBuilderRead() and -Write(); *created is true if the
 * member is new, with score 0. Valid until the next call. */
void *zsetBuilderAt(zsetBuilder *b, slice member, bool *created);
double zsetBuilderRead(const void *place);
void zsetBuilderWrite(void *place, double score);
/* Adds a member that the builder does not contain. */
void zsetBuilderAppend(zsetBuilder *b, const zsetPair *pair);
/* Removes a member added by zsetBuilderAt(), if present. */
void zsetBuilderRemove(zsetBuilder *b, slice member);
size_t zsetBuilderCount(const zsetBuilder *b);
/* Visits all members in order. */
void zsetBuilderVisit(zsetBuilder *b, zsetVisitProc *visit, void *arg);
/* The result as an object; NULL if there are no members. The builder is empty afterwards. */
robj *zsetBuilderTake(zsetBuilder *b, slice key, const packLimits *limits);
void zsetBuilderClear(zsetBuilder *b);

#endif
