/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of the database: its fields, the state of the store, removal of expired keys.
 *
 * Invariant: a table word has HASHTABLE_VOLATILE if and only if its object has an expiry time, and HASHTABLE_MARK if
 * and only if its value is behind a pointer. Main thread only. */
#ifndef STORE_DB_PRIV_H
#define STORE_DB_PRIV_H

#include "ds/kvstore.h"
#include "store/store.h"

struct db {
    const hashtable *table; /* the only table; NULL if there is one per slot */
    kvstore *keys;
    int id;
    uint64_t expire_cursor;           /* position of active expiry */
    uint64_t expire_size;             /* number of keys at the start of that scan */
    double mean_ttl_ms;               /* see dbMeanTtl() */
    hashtable items;                  /* names of keys with volatile items, see items.c */
    uint64_t items_cursor;            /* position of the scan over `items` */
    uint64_t field_key, field_cursor; /* position within the key with that hash, if not 0 */
};

typedef struct storeState {
    db **dbs;
    int count;
    bool slotted;
    storeExpiry expiry;
    bool touch_lru;     /* lookups record the time; the only test on the hot path */
    bool time_removals; /* see storeTimeRemovals() */
    bool resizes_off;   /* see storeSetResizing() */
    bool forked;        /* between storeForkBegin() and storeForkEnd() */
    storeAccess access;
    uint32_t clock; /* seconds, for LFU minutes << 8: the value stored by an access */
    int64_t now_ms; /* time of the last storeSetClock() */
    int lfu_log_factor, lfu_decay_minutes;
    int expire_next; /* database to start with */
    bool timed_out;  /* see storeExpireTimedOut() */
    const storeListener *listener;
    storeStatistics stats;
    bool lazy_expired, lazy_deleted; /* see storeSetLazyFree() */
    storeFreeLaterProc *free_later;
} storeState;

extern storeState storeNow;

/* The slot of a key with this storeHash(). */
static inline int slotOf(uint64_t hash) { return storeNow.slotted ? storeHashSlot(hash) : 0; }
/* The flags HASHTABLE_VOLATILE and HASHTABLE_MARK for `o`. */
unsigned dbWordFlags(const robj *o);
/* Removes an expired object, counts it and notifies the listener. */
void dbRemoveExpired(db *d, robj *o);
/* Removes a key whose value is empty, without notification. */
void dbRemoveEmptied(db *d, slice key, uint64_t hash);
/* Called after an object was stored: records its name if it has volatile items. */
void itemsNote(db *d, uint64_t hash, const robj *o);
/* Forgets all names; called when the database is emptied. */
void itemsForget(db *d);
/* Performs one turn of active expiry of fields; false if it ended for lack of time. See storeExpireTurn(). */
bool itemsExpireTurn(int64_t now_ms, int64_t floor_us, int64_t deadline_us, int stale_max);
/* Updates `percent`, a moving average of the share of expired keys: the last scan found `expired` of `visited` (> 0). */
void expireUpdateStale(double *percent, uint64_t expired, uint64_t visited);
/* The access field of a new object. */
uint32_t accessFresh(void);
/* Records an access if storeNow.touch_lru is false. */
void accessTouchSlow(robj *o);
/* Drops all eviction candidates, because databases were emptied or exchanged. */
void evictForget(void);
/* Frees `count` arrays of tables with their contents. `all`: no objects remain elsewhere; `later`: in the background,
 * if available and worthwhile. The array is copied. */
void freeStores(kvstore *const *stores, int count, bool all, bool later);
/* Frees an object that is not in a table any more; with `later` its value in the background if it is a large
 * collection. */
void freeObject(robj *o, bool later);
/* Like freeObject(), for expired and evicted objects: the listener may want to know how long it took. */
void freeRemoved(robj *o, bool later, bool eviction);
/* Continues the compaction of collections. False if the walk is complete, or if nothing was worth moving. */
bool compactElements(const storeCompaction *plan, storeCompactReport *report);
/* Drops the position in the keyspace. */
void compactForget(void);
/* Like freeStores(), for one table. */
void freeTable(hashtable table, bool later);

#endif
