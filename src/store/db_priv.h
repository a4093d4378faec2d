/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of a database share: its fields, the store's state, removal of the dead.
 *
 * Invariant: a word of a table carries HASHTABLE_VOLATILE exactly while its object has an expire time, and
 * HASHTABLE_MARK exactly while its value lies behind a pointer. Main thread only. */
#ifndef STORE_DB_PRIV_H
#define STORE_DB_PRIV_H

#include "ds/kvstore.h"
#include "store/store.h"

struct db {
    const hashtable *table; /* the only one; NULL when there is one for each slot */
    kvstore *keys;
    int id;
    uint64_t expire_cursor;           /* where active expiry goes on */
    uint64_t expire_size;             /* keys when that walk began */
    double mean_ttl_ms;               /* see dbMeanTtl() */
    hashtable items;                  /* names of keys with volatile items: items.c */
    uint64_t items_cursor;            /* where the walk over them goes on */
    uint64_t field_key, field_cursor; /* and within the key of that hash, if not 0 */
};

typedef struct storeState {
    db **dbs;
    int count;
    bool slotted;
    storeExpiry expiry;
    bool touch_lru;   /* lookups note the time; the hot path's one test */
    bool time_deaths; /* storeTimeDeaths() */
    bool resizes_off; /* storeSetResizing() */
    bool forked;      /* between storeForkBegin() and storeForkEnd() */
    storeAccess access;
    uint32_t clock; /* seconds, for LFU minutes << 8: the access field of what is touched now */
    int64_t now_ms; /* of the last storeSetClock() */
    int lfu_log_factor, lfu_decay_minutes;
    int expire_next; /* database */
    bool behind;     /* see storeExpireIsBehind() */
    const storeListener *listener;
    storeStatistics stats;
    bool lazy_expired, lazy_deleted; /* see storeSetLazyFree() */
    storeFreeLaterProc *free_later;
} storeState;

extern storeState storeNow;

/* The slot of a key with this hash (storeHash()). */
static inline int slotOf(uint64_t hash) { return storeNow.slotted ? storeHashSlot(hash) : 0; }
/* HASHTABLE_VOLATILE and HASHTABLE_MARK as `o` needs them. */
unsigned dbWordFlags(const robj *o);
/* Removes an object because its time has come, counts and tells it. */
void dbRemoveExpired(db *d, robj *o);
/* Removes a key whose value is empty; nobody is told. */
void dbRemoveEmptied(db *d, slice key, uint64_t hash);
/* The object was put in its place: notes its name if it has volatile items. */
void itemsNote(db *d, uint64_t hash, const robj *o);
/* The database is empty. */
void itemsForget(db *d);
/* One turn of active expiry of fields; false when it ended for want of time. See storeExpireTurn(). */
bool itemsExpireTurn(int64_t now_ms, int64_t floor_us, int64_t deadline_us, int stale_max);
/* A walk found `dead` among `met` (not 0): what that teaches an estimate in percent, a mean over the last walks. */
void expireLearnStale(double *percent, uint64_t dead, uint64_t met);
/* The access field of a new object. */
uint32_t accessFresh(void);
/* Notes an access where storeNow.touch_lru is false. */
void accessTouchSlow(robj *o);
/* No database is what it was: candidates of eviction are dropped. */
void evictForget(void);
/* Frees `count` stores of tables with all that is in them. `all`: no object is left elsewhere; `later`: in
 * the background, if there is one and it is worth while. The array is copied. */
void freeStores(kvstore *const *stores, int count, bool all, bool later);
/* Frees an object that is in no table any more; `later`: its value in the background, if it is a large
 * collection. */
void freeObject(robj *o, bool later);
/* The same for one that goes by itself; the listener may want to know how long it took. */
void freeDead(robj *o, bool later, bool eviction);
/* Goes on moving elements of collections together. False: the walk over all of them is at its end, or none was worth
 * while. */
bool compactElements(const storeCompaction *plan, storeCompactReport *report);
/* Gives up what it remembers of the keyspace. */
void compactForget(void);
/* Frees one table of the keyspace likewise. */
void freeTable(hashtable table, bool later);

#endif
