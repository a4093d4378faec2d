/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets as values of keyspace objects: an intset or a listpack in the object while they are small, else a table
 * behind the pointer, in which integers stand in the words themselves.
 *
 * Members are listpackItems: text that is an integer in canonical form is the integer, always
 * (listpackItemOf()). Changes work as those of hashes (type_hash.h): they take the object that dbFind() or
 * setNew() returned and hand back what it has become, for dbPlace(). A set is never stored empty. Text handed
 * out is borrowed until the object changes. Main thread only. */
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
    size_t ints; /* entries of an intset */
} setLimits;

/* An empty set for a key that is not there, fit for `count` members of which this is the first. */
robj *setNew(slice key, const listpackItem *first, size_t count, const setLimits *limits) MUST_USE;
/* An empty set that begins as this one is kept; for members of it. */
robj *setNewLike(slice key, const robj *like) MUST_USE;
/* An empty set that is not packed and has room for `count` members; for more than may be packed. */
robj *setNewLarge(slice key, size_t count) MUST_USE;
size_t setLength(const robj *o);
bool setHas(const robj *o, const listpackItem *member);
/* Bit i of the result: members[i] is in the set. At most 32; faster than asking for each. */
uint32_t setHasMany(const robj *o, const listpackItem *members, unsigned count);
/* Makes the set ready for `count` members more. */
robj *setPrepare(robj *o, size_t count, const setLimits *limits) MUST_USE;
/* `member` may not lie in the object. */
robj *setAdd(robj *o, const listpackItem *member, const setLimits *limits, bool *added) MUST_USE;
/* Takes a member out; false when there is none. The caller removes a key whose set is empty then. */
bool setRemove(robj **o, const listpackItem *member);
/* A set of nothing but integers, if they are few enough, becomes an intset. */
robj *setSettle(robj *o, const setLimits *limits) MUST_USE;

/* All members, in the order they stand in. The set may not change meanwhile. Not to be copied. */
typedef struct setIterator {
    const robj *o; /* private */
    const uint8_t *at;
    size_t index;
    hashtable table;
    hashtableIterator walk;
    bool as_they_lie;
    uint64_t place;
} setIterator;
void setIteratorInit(setIterator *it, const robj *o);
/* For setNextMany() alone, which may return fewer than asked for before the end, too; only for those who put the members
 * in no set (hashtableNextEntries()). */
void setIteratorInitCheap(setIterator *it, const robj *o);
/* False at the end. */
bool setNext(setIterator *it, listpackItem *out);
/* The next members, at most `max` <= 32; returns how many, less than `max` only at the end. Their cache misses
 * overlap. */
unsigned setNextMany(setIterator *it, listpackItem *out, unsigned max);
void setIteratorClear(setIterator *it);

typedef void setVisitProc(void *arg, const listpackItem *member);
/* Visits members from `cursor` on and returns the next cursor, 0 at the end; see hashtableScan(). A packed set is
 * visited whole. */
uint64_t setScan(const robj *o, uint64_t cursor, setVisitProc *visit, void *arg);
/* Visits `count` random members; `unique`: different ones, as many as there are. */
void setRandom(const robj *o, size_t count, bool unique, setVisitProc *visit, void *arg);
/* Takes `count` random members out, as many as there are, and visits each before it goes. */
void setPop(robj **o, size_t count, setVisitProc *visit, void *arg);

#endif
