/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the store tells its user: changes that no command has made, and removals before they
 * happen. */
#ifndef STORE_LISTENER_H
#define STORE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "store/keyspace.h"
#include "store/value_type.h"

/* Notifications of changes that were not made by a command. */
typedef struct storeListener {
    /* An expired key was found and removed. */
    void (*expired)(db *d, slice key);
    /* Fields of a hash, or members of a set or sorted set, have expired and are about to be
     * removed. Must not change the store. */
    void (*items_expiring)(db *d, slice key, valueType type, const slice *items, unsigned count);
    /* They have been removed. A value that is empty now is still in its place, and is removed next,
     * unless this call has changed it. */
    void (*items_expired)(db *d, slice key, valueType type);
    /* The end of that; `key_removed`: the empty value was removed, and its key with it. */
    void (*items_ended)(db *d, slice key, bool key_removed);
    /* The first member of a set or sorted set in the life of the process gets a TTL. */
    void (*member_timed)(void);
    /* A set or sorted set has many of them, the first one in the life of the process. */
    void (*members_many)(void);
    /* storeEvictOne() has removed a key. */
    void (*evicted)(db *d, slice key);
    /* A key was added; a lookup of a reading command found none. Only if storeSetNotes() has
     * enabled them. */
    void (*added)(db *d, slice key);
    void (*missed)(db *d, slice key);
    /* A key is about to be removed. Only if storeTellRemovals() is on. Must not change the
     * store. */
    void (*removing)(db *d, const robj *o, storeRemoval why);
    /* How long the removal of an expired or (`eviction`) evicted object took. Only if
     * storeTimeRemovals() is on. */
    void (*removal_timed)(bool eviction, int64_t us);
} storeListener;
void storeTimeRemovals(bool on);
/* Whether the listener hears of added keys and of misses. */
void storeSetNotes(bool added, bool missed);
/* Whether it hears of removals, before each of them; not of those by dbFlush(). */
void storeTellRemovals(bool on);
/* From now on what the listener is told of without a command may change any key (a callback of a
 * module): removals by expiry keep no pointer to an object over that. */
void storeExpectChanges(void);
bool storeExpectsChanges(void);
void storeSetListener(keyspace *k, const storeListener *listener);

#endif
