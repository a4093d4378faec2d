/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hashes as values of keyspace objects: a small one is a listpack of fields and values in the
 * object, or, if many others have the same fields, its values and the number of a shape
 * (hash_record.h); a large one is a table behind the pointer, with field and value in one element.
 *
 * A change may replace the object: functions take the object returned by dbFind() (or hashNew())
 * and return the resulting one, which the caller must pass to dbPlace() immediately. A hash is
 * never stored empty. Returned text is borrowed until the object changes. Main thread only. */
#ifndef STORE_TYPE_HASH_H
#define STORE_TYPE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/slice.h"
#include "base/str.h"
#include "ds/hashtable.h"
#include "store/object.h"
#include "store/type.h"

typedef struct db db;

/* Special values of a field's expiry time, which is Unix time in ms. */
#define HASH_NO_TIME INT64_C(-1)
#define HASH_NO_FIELD INT64_C(-2)  /* returned by hashTime() only */
#define HASH_KEEP_TIME INT64_C(-3) /* argument of hashSetTimed() only */

/* Functions with a storeLook treat fields that are expired according to it as missing. Expired
 * fields are still counted by hashLength() until they are removed. */

/* An empty hash for a missing key; fields must be added immediately. */
robj *hashNew(slice key) MUST_USE;
/* An empty hash that is not packed and has room for `count` fields. */
robj *hashNewLarge(slice key, size_t count) MUST_USE;
/* The hash of a valid listpack of names and their values, in which no text is that of an integer,
 * if the names have a shape. They are distinct then. NULL if they have none. */
robj *hashNewShaped(slice key, const uint8_t *lp) MUST_USE;
/* Gives a new hash that was filled field by field a shape, if it is packed and there is one with
 * its names. */
robj *hashFindShape(robj *o) MUST_USE;
/* The listpack of a packed hash; valid until the next call, or until the object changes. */
slice hashListpack(const robj *o);
/* The number of its shape, 0: it has none. */
unsigned hashShapeNumber(const robj *o);
/* Number of fields. */
size_t hashLength(const robj *o);
/* False if the field is missing. `digits` (NUMBER_TEXT_MAX) may be used as a buffer. */
bool hashGet(const robj *o, slice field, storeLook look, char *digits, slice *value);
/* The length of its value, which is not expanded; false if the field is missing. */
bool hashValueLength(const robj *o, slice field, storeLook look, size_t *len);
/* Prepares the hash for hashSet() with `count` words, alternating field and value: if they would
 * make a listpack too large, converts it to a table first. */
robj *hashPrepare(robj *o, const slice *words, size_t count, const packLimits *limits) MUST_USE;
/* Sets a field; *created is true if it is new. `value` must not point into the object. */
robj *hashSet(robj *o, slice field, slice value, const packLimits *limits, bool *created) MUST_USE;
/* Result of hashSetPairs(). */
typedef struct hashSetCounts {
    uint64_t created;          /* new fields, and ... */
    uint64_t replaced_expired; /* ... those of them that replace expired ones */
} hashSetCounts;
/* Sets `count` words, alternating field and value, without expiry times; `o` NULL: of a new hash
 * with this key. */
robj *hashSetPairs(robj *o, slice key, const slice *words, size_t count, storeLook look,
                   const packLimits *limits, hashSetCounts *counts) MUST_USE;
/* Removes a field; false if it is missing. The caller deletes the key if the hash is empty then. */
bool hashDelete(robj **o, slice field, storeLook look);

/* Result of hashSetTimed(). */
typedef enum hashOutcome {
    HASH_CREATED,
    HASH_UPDATED,
    HASH_REPLACED_EXPIRED, /* an expired field was replaced */
} hashOutcome;
/* Like hashSet(), also setting the expiry time: HASH_NO_TIME for none, HASH_KEEP_TIME to keep the
 * current one. */
robj *hashSetTimed(robj *o, slice field, slice value, int64_t time_ms, storeLook look,
                   const packLimits *limits, hashOutcome *outcome) MUST_USE;
/* Sets or removes the expiry time of a field; false if the field is missing. */
bool hashSetTime(robj **o, slice field, int64_t time_ms, storeLook look);
/* The expiry time of a field, HASH_NO_TIME or HASH_NO_FIELD. */
int64_t hashTime(const robj *o, slice field, storeLook look);
/* Makes the value of a field these bytes without copying them; they must stay valid and unchanged
 * until the value is replaced or removed. False if the field is missing. */
bool hashRefer(robj **o, slice field, slice value, storeLook look);
/* True if the value of the field is such bytes. */
bool hashRefers(const robj *o, slice field, storeLook look);
/* True if hashRefer() was ever called. */
bool hashReferencesExist(void);
/* Number of fields with a TTL, including expired ones. O(1). */
uint64_t hashTimedCount(const robj *o);
/* Number of visible fields. O(1) if no field has a TTL, else O(fields). */
uint64_t hashVisibleCount(const robj *o, storeLook look);

/* Counts fields that a command has removed because they had expired, or got a time in the past. */
void dbCountExpiredFields(db *d, uint64_t count);

/* Removes an expired field, and the key with the last one, before a command reads it; the listener
 * is told. */
void dbExpireField(db *d, slice key, uint64_t hash, robj *o, slice field);
/* Removes all expired fields of a hash, and tells the listener. True: there were some, so that its
 * object may be another one, or missing. Nothing where others decide what expires. */
bool dbExpireFields(db *d, slice key, uint64_t hash, storeLook look);

/* A batch of expired fields of a table. */
enum { HASH_EXPIRED_MAX = 64 };
typedef struct hashExpired {
    unsigned count, visited; /* `visited`: number of fields with a TTL that were visited */
    slice fields[HASH_EXPIRED_MAX];
    void *elements[HASH_EXPIRED_MAX]; /* private */
} hashExpired;
/* Searches expired fields from `cursor` on; returns the next cursor, 0 at the end. */
uint64_t hashFindExpired(const robj *o, uint64_t cursor, int64_t now_ms, hashExpired *out);
/* Removes the fields found by the preceding hashFindExpired(). The caller deletes the key if the
 * hash is empty then. */
void hashRemoveExpired(robj *o, const hashExpired *expired);

/* A field and its value. */
typedef struct hashPair {
    slice field, value;
} hashPair;
typedef void hashVisitProc(void *arg, const hashPair *pair);
/* Iterates over all pairs in storage order. The hash must not change meanwhile. Must not be
 * copied. */
typedef struct hashIterator {
    const robj *o; /* private */
    storeLook look;
    const uint8_t *at;         /* in a listpack; NULL: at its end, or there is none */
    const struct shape *shape; /* of a record; NULL: it is a listpack */
    const uint8_t *value;      /* of a record; NULL: it is a table */
    unsigned position;
    hashtable table;
    hashtableIterator walk;
    str expanded; /* the value of a table, if it is compressed */
    char digits[2][NUMBER_TEXT_MAX];
} hashIterator;
void hashIteratorInit(hashIterator *it, const robj *o, storeLook look);
/* False at the end. The pair is valid until the next call. */
bool hashNext(hashIterator *it, hashPair *out);
/* The same without the value, which need not be expanded then. */
bool hashNextField(hashIterator *it, slice *field);
/* hashNext() with the field's expiry time, HASH_NO_TIME for none. */
bool hashNextTimed(hashIterator *it, hashPair *out, int64_t *time_ms);
void hashIteratorClear(hashIterator *it);
/* The choice of values that hashSampleValues() passes on. */
typedef struct hashSampling {
    size_t min, max; /* those of `min` to `max` bytes, */
    size_t most;     /* of so many elements (64), */
    size_t bytes;    /* or of fewer, if their values have more in total */
    size_t looked;   /* elements that were looked at: set before the first value is passed on */
} hashSampling;
/* Visits adjacent pairs from a random start of a hash that is a table. Cheap: what is not passed on
 * is not expanded. */
void hashSampleValues(const robj *o, hashSampling *how, hashVisitProc *sample, void *arg);

/* Visits pairs from `cursor` on and returns the next cursor, 0 at the end; see hashtableScan(). A
 * packed hash is visited completely. */
uint64_t hashScan(const robj *o, storeLook look, uint64_t cursor, hashVisitProc *visit, void *arg);
/* Visits `count` random pairs; `unique`: distinct ones, as many as there are. */
void hashRandom(const robj *o, storeLook look, size_t count, bool unique, hashVisitProc *visit,
                void *arg);

#endif
