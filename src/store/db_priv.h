/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of the database: its fields, the state of the store, removal of
 * expired keys.
 *
 * Invariant: a table word has HASHTABLE_VOLATILE if and only if its object has an expiry time, and
 * HASHTABLE_MARK if and only if its value is behind a pointer or compressed. Main thread only. */
#ifndef STORE_DB_PRIV_H
#define STORE_DB_PRIV_H

#include "base/bytes.h"
#include "base/slots.h"
#include "ds/kvstore.h"
#include "store/compact.h"
#include "store/shape_priv.h"
#include "store/slab.h"
#include "store/store.h"

struct db {
    const hashtable *table; /* the only table; NULL if there is one per slot */
    kvstore *keys;
    int id;
    keyspace *in;
    uint64_t hits, misses;
    uint64_t expire_cursor;           /* where active expiry goes on */
    uint64_t expire_size;             /* keys when that walk began */
    double mean_ttl_ms;               /* see dbMeanTtl() */
    hashtable items;                  /* names of keys with volatile items, see items.c */
    uint64_t items_cursor;            /* position of the scan over `items` */
    uint64_t field_key, field_cursor; /* position within the key with that hash, if not 0 */
    int saved_as;                     /* see saving.c */
};

/* A place in a walk that moves elements together: compact.c. */
typedef struct compactWalk compactWalk;
/* Candidates of eviction: evict.c. */
typedef struct evictPool evictPool;

struct keyspace {
    db **dbs;
    int count;
    slotMask *hidden; /* storeHideSlot(); NULL: none ever was */
    storeExpiry expiry;
    slabPair slabs; /* while it is not in use, as the next one */
    shapeCounts *shape_counts;
    const storeListener *listener;
    storeStatistics stats;                   /* hits and misses are counted by each database */
    evictPool *pool;                         /* NULL until something is evicted */
    compactWalk *compact;                    /* NULL until something is compacted */
    int expire_next, items_next, evict_next; /* databases: another one is first each time */
    bool timed_out;                          /* see storeExpireTimedOut() */
    keyspace *next;
};

/* The main keyspace, and what all keyspaces share. */
typedef struct storeState {
    keyspace main;
    keyspace *keyspaces; /* list of all */
    keyspace *used;      /* whose memory new objects get */
    bool slotted;
    bool touch_lru;        /* lookups note the time; the hot path's one test */
    bool watches;          /* somebody hears of changes before: the next one, or reading.h */
    bool saving;           /* objects are passed on before they change: saving.h */
    bool saving_values;    /* elements of some values, too: saving_value.h */
    bool tells_removals;   /* one of the next two: removal.c */
    bool listens_removals; /* storeTellRemovals() */
    bool unlinks_values;   /* there are types with unlink_value() */
    bool time_removals;    /* storeTimeRemovals() */
    bool expects_changes;  /* storeExpectChanges() */
    bool unchanging;       /* keyspaceForbidChanges() */
    bool resizes_off;      /* storeSetResizing() */
    bool forked;           /* between storeForkBegin() and storeForkEnd() */
    storeAccess access;
    uint32_t clock; /* seconds, for LFU minutes << 8: the value stored by an access */
    int64_t now_ms; /* time of the last storeSetClock() */
    int lfu_log_factor, lfu_decay_minutes;
    int64_t plain_idle_s;            /* see storeSetPlainIdle() */
    bool lazy_expired, lazy_deleted; /* see storeSetLazyFree() */
    bool notes_added, notes_misses;  /* see storeSetNotes() */
    storeFreeLaterProc *free_later;
} storeState;

extern storeState storeNow;

/* The slot of a key with this storeHash(). */
static inline int slotOf(uint64_t hash) { return storeNow.slotted ? storeHashSlot(hash) : 0; }
/* True if the keys of this slot are hidden. */
static inline bool isHidden(const db *d, uint64_t hash) {
    return unlikely(d->in->hidden != NULL) && slotMaskHas(d->in->hidden, slotOf(hash));
}
/* True if an expired key goes when it is found: nobody else decides when. */
static inline bool removesExpired(const db *d, uint64_t hash) {
    return d->in->expiry == EXPIRY_DELETE && !isHidden(d, hash);
}

/* ---- free.c ---- */

/* Starts the count of storeFreedLater() anew. */
void storeResetFreedLater(void);

/* ---- saving.c ---- */

/* While storeNow.saving is set: called before an object of a table is changed or removed; before a
 * new one is added. */
void savingBefore(const db *d, uint64_t hash, robj *o);
void savingAdded(const db *d, uint64_t hash, robj *o);
/* False if `o` replaces an object that was not passed on, or has lost its mark. */
bool savingIsConsistent(const db *d, uint64_t hash, const robj *o);
/* The database gets other tables. true: its present ones are freed by the walk, not by the
 * caller. */
bool savingDetach(db *d);
/* `t`, the table of a slot, has been or is going to be taken from the database. What the walk has
 * not visited of it is passed on by the walk, in slices; until then, true, the table must stay as
 * it is. */
bool savingTakeSlot(const db *d, int slot, const hashtable *t);
/* True while objects of that taken table are still to be passed on. */
bool savingHolds(const hashtable *t);
/* Passes them on at once. */
void savingLetGo(const hashtable *t);
/* Objects in tables that belong to no database any more; frees them. */
uint64_t savingDetachedKeys(void);
void savingFreeDetached(void);
/* Ends the walk: all objects are going to be freed. */
void savingStop(void);

/* ---- reading.c ---- */

/* Sets storeNow.watches. */
void storeUpdateWatches(void);
/* While storeNow.watches is set: before an object of a table is changed; before a new one is added,
 * or one is removed. */
void watchedBefore(const db *d, uint64_t hash, robj *o);
void watchedAdded(const db *d, uint64_t hash, robj *o);
void watchedRemoving(const db *d, uint64_t hash, const robj *o);
/* Before tables of the database (NULL: of any of the main keyspace) are removed or exchanged. */
void readingBeforeWhole(const db *d);
/* Before members are shown that were hidden. */
void readingBeforeShown(const db *d, uint64_t hash);
/* True if the object is being read, so that it is not to be removed now if that can be helped. */
bool readingHolds(const db *d, uint64_t hash);
/* False while objects and elements must not be moved. */
bool readingMoves(void);
/* False in a nested turn, in which a command runs that must not see changes of others. */
static inline bool mayChange(const db *d) {
    return !storeNow.unchanging || d->in != &storeNow.main;
}
/* True if the bytes of a value may be replaced by others that mean the same: no fork shares them,
 * and nobody reads them. */
static inline bool mayRewrite(const db *d, const robj *o) {
    if (storeNow.forked || !mayChange(d)) return false;
    return likely(!storeNow.watches) || !readingHolds(d, storeHash(objectKey(o)));
}
ALWAYS_INLINE void beforeChange(const db *d, uint64_t hash, robj *o) {
    hotCheck(mayChange(d));
    if (unlikely(storeNow.watches)) watchedBefore(d, hash, o);
}

/* ---- removal.c ---- */

/* While storeNow.watches or storeNow.tells_removals is set: before a key is removed or given
 * another value. */
void removalBefore(db *d, uint64_t hash, robj *o, storeRemoval why);
/* True while the listener is told that this object is about to be removed. */
bool removalIsTold(const robj *o);
/* Whether types want to hear of removals. */
void removalSetUnlinks(bool on);
/* While storeNow.tells_removals is set, where beforeChange() was called already. */
void removalTell(db *d, const robj *o, storeRemoval why);
ALWAYS_INLINE void beforeRemoval(db *d, uint64_t hash, robj *o, storeRemoval why) {
    hotCheck(mayChange(d));
    if (unlikely(storeNow.watches | storeNow.tells_removals)) removalBefore(d, hash, o, why);
}

/* ---- keyspace.c ---- */

/* Makes `count` databases in a keyspace that is all zero. */
void keyspaceInit(keyspace *k, int count);
/* Frees its databases, which hold nothing any more, but not its memory. */
void keyspaceClear(keyspace *k);
/* Its memory, made if need be. */
slabPair keyspaceSlabs(keyspace *k);

/* ---- db.c ---- */

/* How the tables of databases find objects. */
extern const hashtableType dbKeysType;
/* Gives a database empty tables, which are its first, or which replace those given away. */
void dbMakeTables(db *d);
/* Exchanges what two databases hold. */
void dbExchange(db *a, db *b);
/* HASHTABLE_VOLATILE and HASHTABLE_MARK as `o` needs them. */
unsigned dbWordFlags(const robj *o);
/* Puts another object with the same key, value and access in place of one that is in its table. */
void dbReplace(db *d, uint64_t hash, const robj *old, robj *with);
/* Removes an expired object, counts it and notifies the listener. */
void dbRemoveExpired(db *d, robj *o);
/* Frees an object that was removed from its table, and passes its name to `tell`, if not NULL. */
void dbTellRemoved(db *d, robj *o, void (*tell)(db *d, slice key), bool later, bool eviction);
/* Before expired fields or members are removed: the listener is told. itemsExpired() must
 * follow. */
void itemsExpiring(db *d, slice key, const robj *o, const slice *items, unsigned count);
/* They have been removed: tells the listener, and removes the value and its key if it is empty. The
 * value may be another one afterwards, or missing. Returns true if it was removed here. `key` may
 * be a part of what the listener frees. */
bool itemsExpired(db *d, slice key, uint64_t hash);
/* Called after an object was stored: records its name if it has volatile items. */
void itemsNote(db *d, uint64_t hash, const robj *o);
/* Forgets all names; called when the database is emptied. */
void itemsForget(db *d);
/* The databases are going to exchange their tables. */
void itemsExchanged(const db *a, const db *b);
/* One turn of active expiry of fields; false if it ended at its time limit. See
 * storeExpireTurn(). */
bool itemsExpireTurn(keyspace *k, int64_t now_ms, int64_t floor_us, int64_t deadline_us,
                     int stale_max);
/* Updates an estimate in percent, a moving average over walks: this one found `expired` of
 * `visited` (not 0). */
void expireUpdateStale(double *percent, uint64_t expired, uint64_t visited);
/* The access field of a new object. */
uint32_t accessFresh(void);
/* Seconds since the last access; for LFU whole minutes since the counter was updated. */
int64_t accessIdleSeconds(const robj *o);
/* Records an access if storeNow.touch_lru is false. */
void accessTouchSlow(robj *o);
/* No database is what it was: candidates of eviction are dropped. */
void evictForget(keyspace *k);
/* Frees `count` stores of tables with all that is in them. `all`: no object is left elsewhere;
 * `later`: in the background, if there is one and it is worth while. The array is copied. */
void freeStores(kvstore *const *stores, int count, bool all, bool later);
/* Frees all that a keyspace holds, with its memory; its databases have no tables then. */
void freeKeyspace(keyspace *k, bool later);
/* Frees an object of `d` that is in no table any more; `later`: its value in the background, if it
 * is a large collection. */
void freeObject(const db *d, robj *o, bool later);
/* Frees a value that belongs to no object any more. */
void freeKeptValue(const typeOps *ops, void *value);
/* The same for one that goes by itself; the listener may want to know how long it took. */
void freeRemoved(const db *d, robj *o, bool later, bool eviction);
/* Goes on moving elements of collections together. False: the walk over all of them is at its end,
 * or none was worth while. */
bool compactElements(keyspace *k, const storeCompaction *plan, storeCompactReport *report);
/* Gives up what it remembers of the keyspace. */
void compactForget(keyspace *k);
/* Keys of taken.h, which are in slabs of the keyspace but in none of its tables. */
uint64_t takenKeysLeft(void);
/* Frees one table of the keyspace likewise. */
void freeTable(const db *d, hashtable table, bool later);

#endif
