/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets as values of keyspace objects: a small one is an intset or a listpack in the object, a large
 * one a table behind the pointer, in which integers are stored in the table words.
 *
 * Members are items of a listpack: text that is an integer in canonical form is always an integer
 * (listpackItemOf()). A change may replace the object, as for hashes (type_hash.h): functions
 * return the resulting object for dbPlace(). A set is never stored empty. Returned text is borrowed
 * until the object changes. Main thread only. */
#ifndef STORE_TYPE_SET_H
#define STORE_TYPE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "ds/hashtable.h"
#include "ds/listpack.h"
#include "store/object.h"
#include "store/type.h"

typedef struct setLimits {
    packLimits packed;
    size_t ints; /* maximum entries of an intset */
} setLimits;

/* An empty set for a missing key, suitable for `count` members of which `first` is the first. */
robj *setNew(slice key, const listpackItem *first, size_t count, const setLimits *limits) MUST_USE;
/* An empty set with the encoding of `like`; for members of it. */
robj *setNewLike(slice key, const robj *like) MUST_USE;
/* An empty set that is not packed, with space for `count` members; for more than may be packed. */
robj *setNewLarge(slice key, size_t count) MUST_USE;
size_t setLength(const robj *o);
bool setHas(const robj *o, const listpackItem *member);
/* Bit i of the result is set if members[i] is in the set. At most 32; faster than separate
 * calls. */
uint32_t setHasMany(const robj *o, const listpackItem *members, unsigned count);
/* Prepares the set for `count` more members. */
robj *setPrepare(robj *o, size_t count, const setLimits *limits) MUST_USE;
/* `member` must not point into the object. */
robj *setAdd(robj *o, const listpackItem *member, const setLimits *limits, bool *added) MUST_USE;
/* Removes a member; false if it is missing. The caller deletes the key if the set is empty then. */
bool setRemove(robj **o, const listpackItem *member);
/* Converts a set of integers to an intset if they are few enough. */
robj *setTryIntset(robj *o, const setLimits *limits) MUST_USE;

/* Iterates over all members in storage order. The set must not change meanwhile. Must not be
 * copied. */
typedef struct setIterator {
    const robj *o; /* private */
    const uint8_t *at;
    size_t index;
    hashtable table;
    hashtableIterator walk;
    bool unordered;
    uint64_t position;
} setIterator;
void setIteratorInit(setIterator *it, const robj *o);
/* For setNextMany() only, which may then return fewer members than requested before the end. Do not
 * add the members to another set (see hashtableNextEntries()). */
void setIteratorInitUnordered(setIterator *it, const robj *o);
/* False at the end. */
bool setNext(setIterator *it, listpackItem *out);
/* The next members, at most `max` <= 32; returns their number, less than `max` only at the end.
 * Their cache misses overlap. */
unsigned setNextMany(setIterator *it, listpackItem *out, unsigned max);
void setIteratorClear(setIterator *it);

typedef void setVisitProc(void *arg, const listpackItem *member);
/* Visits members from `cursor` on and returns the next cursor, 0 at the end; see hashtableScan(). A
 * packed set is visited completely. */
uint64_t setScan(const robj *o, uint64_t cursor, setVisitProc *visit, void *arg);
/* Visits `count` random members; `unique`: distinct ones, as many as there are. */
void setRandom(const robj *o, size_t count, bool unique, setVisitProc *visit, void *arg);
/* Removes `count` random members, or as many as there are, visiting each before it is removed. */
void setPop(robj **o, size_t count, setVisitProc *visit, void *arg);

#endif
