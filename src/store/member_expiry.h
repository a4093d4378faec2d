/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TTLs of members of sets and sorted sets.
 *
 * A value with such members has their times beside it (member_times.h); its functions know nothing
 * of expiry. Instead, a command that looks up the value first hides the members that have expired
 * (membersHide()), or removes them (membersExpire()), so that all functions, including those that
 * count, see exactly the rest. Hidden members are shown again by a lookup for which they have not
 * expired, as those of the primary on a replica. Main thread only. */
#ifndef STORE_MEMBER_EXPIRY_H
#define STORE_MEMBER_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "store/look.h"
#include "store/member_times.h"
#include "store/object.h"

typedef struct db db;

#define MEMBER_MISSING INT64_C(-2) /* returned by memberTime() only */

/* The times of the members of a set or sorted set, NULL: there are none, or it is another type. */
memberTimes *membersTimes(const robj *o);
/* Members that are hidden now. O(1). */
uint64_t membersHidden(const robj *o);
/* The expiry time of a visible member (Unix time in ms), MEMBER_NO_TIME or MEMBER_MISSING. */
int64_t memberTime(const robj *o, slice member);
/* Sets or removes (MEMBER_NO_TIME) the time of a member; false if it is missing. None may be
 * hidden. *o may be another object then, for dbPlace() and dbNoteItems(). `member` must not point
 * into the object. */
bool memberSetTime(robj **o, slice member, int64_t time_ms);

/* Before a command reads the value found under this storeHash(): exactly the members that have
 * expired by `look` are hidden. O(members that change). */
void membersHide(const db *d, uint64_t hash, robj *o, storeLook look);
/* Before a command changes the value: removes the members that have expired by `look`, and shows
 * the rest. Returns false if it found none to remove; else the listener was told, `key` may be
 * removed as a whole, and the caller must look it up again. */
bool membersExpire(db *d, slice key, uint64_t hash, robj *o, storeLook look);

/* ---- many at a time: a value of which a lookup would hide or remove too many at once ---- */

/* How many members membersHide() would hide, or membersExpire() remove; 0 unless the value has many
 * members with TTLs. O(log n). */
uint64_t membersDue(const db *d, slice key, uint64_t hash, storeLook look, bool removes);
/* Does a part of that, of some 100 us. False: nothing remains to be done, or it cannot be done
 * now. */
bool membersExpireSome(db *d, slice key, uint64_t hash, storeLook look, bool removes);

/* The value that a command sees, for one that was looked up (NULL: nothing was found). For reading:
 * hides expired members; NULL if all are hidden. For writing: removes them by membersExpire(), then
 * looks the key up again, which sets `at` anew. */
robj *membersToRead(const db *d, uint64_t hash, robj *o, storeLook look);
robj *membersToWrite(db *d, slice key, uint64_t hash, robj *o, storeLook look, dbPosition *at);

/* Called after the object of a key with this storeHash() was stored in place of itself, and members
 * may have got their first TTL: active expiry visits the key. */
void dbNoteItems(db *d, uint64_t hash, const robj *o);
/* Counts members that a command has removed because they got a time in the past. */
void dbCountExpiredMembers(db *d, uint64_t count);

#endif
