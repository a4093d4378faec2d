/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hashes as values of keyspace objects: a listpack of fields and values in the object while it is small, else a
 * table behind the pointer, with field and value in one element.
 *
 * A change may turn the object into another one: functions take the object that dbFind() returned (or that of
 * hashNew()) and hand back what it has become, which the caller gives to dbPlace() at once. A hash is never
 * stored empty. Text handed out is borrowed until the object changes. Main thread only. */
#ifndef STORE_TYPE_HASH_H
#define STORE_TYPE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/slice.h"
#include "ds/hashtable.h"
#include "store/object.h"
#include "store/type.h"

/* What stands for the time of a field; times are Unix ms. */
#define HASH_NO_TIME INT64_C(-1)
#define HASH_NO_FIELD INT64_C(-2)  /* hashTime() only */
#define HASH_KEEP_TIME INT64_C(-3) /* hashSetTimed() only */

/* Functions with a storeLook treat fields that have expired by it as missing; such fields stay, and are counted by
 * hashLength(), until somebody removes them. */

/* An empty hash for a key that is not there: for the fields that follow at once. */
robj *hashNew(slice key) MUST_USE;
/* Number of fields. */
size_t hashLength(const robj *o);
/* False when there is no such field. `digits` (NUMBER_TEXT_MAX) may be written to. */
bool hashGet(const robj *o, slice field, storeLook look, char *digits, slice *value);
/* Makes the hash ready for `count` words, a field and a value in turn, which hashSet() will get: one that they
 * would make too large for a listpack becomes a table first. */
robj *hashPrepare(robj *o, const slice *words, size_t count, const packLimits *limits) MUST_USE;
/* Sets a field; *created tells whether it is new. `value` may not lie in the object. */
robj *hashSet(robj *o, slice field, slice value, const packLimits *limits, bool *created) MUST_USE;
/* Takes a field out; false when there is none. The caller removes a key whose hash is empty then. */
bool hashDelete(robj **o, slice field, storeLook look);

/* What hashSetTimed() found. */
typedef enum hashOutcome {
    HASH_CREATED,
    HASH_UPDATED,
    HASH_REPLACED_DEAD, /* it was there, unseen */
} hashOutcome;
/* hashSet(), and the field gets this time: HASH_NO_TIME for none, HASH_KEEP_TIME for the one it has. */
robj *hashSetTimed(robj *o, slice field, slice value, int64_t time_ms, storeLook look,
                   const packLimits *limits, hashOutcome *outcome) MUST_USE;
/* Sets the time of a field, or takes it away; false when there is no such field. */
bool hashSetTime(robj **o, slice field, int64_t time_ms, storeLook look);
/* The time of a field, HASH_NO_TIME or HASH_NO_FIELD. */
int64_t hashTime(const robj *o, slice field, storeLook look);
/* Fields with a time, dead ones included. O(1). */
uint64_t hashTimedCount(const robj *o);
/* Fields that are seen. O(1) where none has a time, else O(fields). */
uint64_t hashSeenCount(const robj *o, storeLook look);

/* Dead fields of a table. */
enum { HASH_DEAD_MAX = 64 };
typedef struct hashDead {
    unsigned count, met; /* `met`: fields with a time that were looked at */
    slice fields[HASH_DEAD_MAX];
    void *elements[HASH_DEAD_MAX]; /* private */
} hashDead;
/* Looks on from `cursor` for fields that are dead by `now_ms`; returns the next cursor, 0 at the end. */
uint64_t hashFindDead(const robj *o, uint64_t cursor, int64_t now_ms, hashDead *out);
/* Removes what hashFindDead() found just now. The caller removes a key whose hash is empty then. */
void hashRemoveDead(robj *o, const hashDead *dead);

/* A field and its value. */
typedef struct hashPair {
    slice field, value;
} hashPair;
/* All pairs, in the order they stand in. The hash may not change meanwhile. Not to be copied. */
typedef struct hashIterator {
    const robj *o; /* private */
    storeLook look;
    const uint8_t *at;
    hashtable table;
    hashtableIterator walk;
    char digits[2][NUMBER_TEXT_MAX];
} hashIterator;
void hashIteratorInit(hashIterator *it, const robj *o, storeLook look);
/* False at the end. The pair is good until the next call. */
bool hashNext(hashIterator *it, hashPair *out);
void hashIteratorClear(hashIterator *it);

typedef void hashVisitProc(void *arg, const hashPair *pair);
/* Visits pairs from `cursor` on and returns the next cursor, 0 at the end; see hashtableScan(). A packed hash is
 * visited whole. */
uint64_t hashScan(const robj *o, storeLook look, uint64_t cursor, hashVisitProc *visit, void *arg);
/* Visits `count` random pairs; `unique`: different ones, as many as there are. */
void hashRandom(const robj *o, storeLook look, size_t count, bool unique, hashVisitProc *visit,
                void *arg);

#endif
