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
#include "store/object.h"

/* Why a key is removed. A value that is changed in place is not removed. */
typedef enum storeRemoval {
    REMOVAL_DELETED, /* by a command; a collection that became empty; the key of a flushed slot */
    REMOVAL_EXPIRED, /* found expired, or given a time in the past */
    REMOVAL_EVICTED, /* to stay below the memory limit */
    REMOVAL_OVERWRITTEN, /* another value takes its place */
    REMOVAL_MOVED,       /* renamed, or moved to another database: the value lives on */
} storeRemoval;

/* Notifications of changes that were not made by a command. */
typedef struct storeListener {
    /* An expired key was found and removed. */
    void (*expired)(db *d, slice key);
    /* Fields of a hash, or members of a set or sorted set, have expired and are about to be
     * removed; `emptied`: together with the key. */
    void (*items_expired)(db *d, slice key, valueType type, const slice *items, unsigned count,
                          bool emptied);
    /* The first member of a set or sorted set in the life of the process gets a TTL. */
    void (*member_timed)(void);
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
void storeSetListener(keyspace *k, const storeListener *listener);

#endif
