/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keyspace: databases of objects found by key, including expiry and eviction. It knows nothing
 * of clients and commands.
 *
 * Every function takes the key's hash (storeHash()), which was computed when the request was
 * parsed. Object pointers are borrowed: valid until the next call that may change the same
 * database. Keys passed to these functions must not point into an object of the store. Main thread
 * only. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/blob.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/slice.h"
#include "ds/hashtable.h"
#include "store/digest.h"
#include "store/keyspace.h"
#include "store/listener.h"
#include "store/look.h"
#include "store/object.h"
#include "store/type.h"

/* ------------------------------------------------------------------ the store as a whole */

/* The hash of a key. In a slotted store its low bits are the key's slot; tables use only the high
 * bits. ANY_THREAD. */
uint64_t storeHash(slice key);
/* The slot in a storeHash() of a slotted store. */
static inline int storeHashSlot(uint64_t hash) { return (int)(hash & (SLOT_COUNT - 1)); }
/* Creates `count` databases; `slotted`: each with one table per slot (SLOT_COUNT). Called once, at
 * startup. */
void storeInit(int count, bool slotted);
/* ERR_RANGE when this machine's memory has addresses that tables cannot keep. Before
 * storeInit(). */
status storeCheckAddresses(reason *why) MUST_USE;
/* Frees everything (tests, leak checkers). */
void storeShutdown(void);
bool storeIsSlotted(void);
/* Number of databases of the main keyspace, and one of them. */
int storeDbCount(void);
db *storeDb(int id);
/* The array that storeDb() reads, for the hot line; constant until the store is freed. */
db **storeDbs(void);
/* dbFlush() of all databases of a keyspace. */
uint64_t storeFlush(keyspace *k, bool later);
/* Exchanges the contents of two databases of a keyspace. */
void storeSwap(db *a, db *b);
/* Off: tables are not resized until they are nearly full. For tests. */
void storeSetResizing(bool on);
/* Continues resizes of tables for about `budget_us`. True if there is more to do. */
bool storeWork(keyspace *k, int64_t budget_us);

/* Treatment of expired keys. Lookups with lookAtAll() find them until they are removed. */
typedef enum storeExpiry {
    EXPIRY_DELETE, /* removed when found by a lookup */
    EXPIRY_HIDE,   /* invisible to reads; dbFind() removes them */
} storeExpiry;
void storeSetExpiry(keyspace *k, storeExpiry mode);
/* True when a lookup like this one would not find the object. */
static inline bool storeIsExpired(const robj *o, storeLook look) {
    return unlikely(objectIsUnusual(o)) && objectHasExpire(o) && lookIsPast(look, objectExpire(o));
}

/* What lookups record in an object for eviction: time of the last access, or frequency. */
typedef enum storeAccess { ACCESS_LRU, ACCESS_LFU } storeAccess;
/* `log_factor` and `decay_minutes` are lfu-log-factor and lfu-decay-time, for ACCESS_LFU. */
void storeSetAccess(storeAccess mode, int log_factor, int decay_minutes);
/* Enclose the lifetime of a forked child, which shares our pages until they are written to: in
 * between, objects are replaced instead of modified, tables are not resized, accesses are not
 * recorded. */
void storeForkBegin(void);
void storeForkEnd(void);
/* Sets the clock for access times; must be called at least once per second. */
void storeSetClock(int64_t now_ms);
/* Seconds since the last access (ACCESS_LRU). */
int64_t storeIdleSeconds(const robj *o);
/* The current access counter, 0..255 (ACCESS_LFU). */
uint8_t storeFrequency(const robj *o);
/* The object's last access was `idle_s` seconds ago (ACCESS_LRU), or its counter is `frequency`
 * (ACCESS_LFU); -1: now, and that of a new object. What does not belong to the mode in use is
 * ignored. */
void storeSetObjectAccess(robj *o, int64_t idle_s, int frequency);

/* How storeEvictOne() chooses a key. */
typedef enum evictOrder { EVICT_LRU, EVICT_LFU, EVICT_TTL, EVICT_RANDOM } evictOrder;
typedef struct evictRule {
    evictOrder order;
    bool only_volatile; /* must be set for EVICT_TTL */
    int samples;        /* keys sampled per database: 1..64 */
    bool later;         /* free large values in the background */
    db *only;           /* of this database; NULL: of any */
} evictRule;
/* Removes one key; false when there is none that may go. */
bool storeEvictOne(keyspace *k, const evictRule *rule);

typedef struct storeStatistics {
    uint64_t hits, misses;
    uint64_t expired, evicted, expired_fields, expired_members;
    double expired_stale_percent; /* estimate: share of expired keys that were not removed yet */
    /* Estimate: share of keys with expired fields among those with volatile items. */
    double stale_items_percent;
    uint64_t expire_time_caps; /* number of expiry turns that ended for lack of time */
    uint64_t expire_us;        /* time used by them */
} storeStatistics;
storeStatistics storeStats(const keyspace *k);
void storeResetStats(keyspace *k);

/* ------------------------------------------------------------------ one database */

int dbId(const db *d);
/* Number of keys, including expired ones not removed yet. */
uint64_t dbSize(const db *d);
/* Number of keys with a TTL. */
uint64_t dbVolatileCount(const db *d);
/* Number of keys with volatile items (field TTLs). With thousands of such keys, removed ones may
 * still be counted. */
uint64_t dbItemKeys(db *d);
/* Mean TTL of volatile keys in ms, estimated by active expiry; 0 if unknown. */
int64_t dbMeanTtl(const db *d);

/* The object, or NULL; for commands that may change it. An expired one is removed (with
 * notification) as set by storeSetExpiry(), and not returned. Counts as an access. Sets *at for a
 * following change. */
robj *dbFind(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at);
/* Like dbFind() for commands that read: counts hits and misses. */
robj *dbFindRead(db *d, slice key, uint64_t hash, storeLook look);
/* Both for commands that use only type, key, expiry time and access of the object, or replace or
 * remove it: its value may be compressed (compressed.h). That of the others never is; a plain one
 * that dbFindRead() returns is valid until the end of the command, and must not be changed. */
robj *dbFindHead(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at);
robj *dbFindReadHead(db *d, slice key, uint64_t hash, storeLook look);
/* dbFind() for commands that reply the value they overwrite: counts hits and misses. */
robj *dbFindReadAt(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at);
/* Like dbFindReadHead(), but does not count as an access. */
robj *dbFindQuiet(db *d, slice key, uint64_t hash, storeLook look);
/* Like dbFindQuiet(), without telling the listener of a miss. */
robj *dbFindSilent(db *d, slice key, uint64_t hash, storeLook look);
/* Like dbFindQuiet(), but counts no hits and misses. */
robj *dbFindUncounted(db *d, slice key, uint64_t hash, storeLook look);
/* The object, expired or not, which may be compressed. Nothing is removed, notified or counted. */
const robj *dbPeek(const db *d, slice key, uint64_t hash);

/* An object whose key has this storeHash(), expired or not; NULL if there is none. */
const robj *dbPeekHash(const db *d, uint64_t hash);

/* Sets a string. `take` is a blob with the value, whose reference moves to the store (NULL: `value`
 * is copied). `expire_ms` may be OBJECT_NO_EXPIRE; `old` is the result of dbFind() for the key
 * (NULL if missing), and `at` the position set by it. */
void dbSetString(db *d, slice key, const dbPosition *at, robj *old, slice value, blob *take,
                 int64_t expire_ms);
/* Stores `o` at the position of a lookup, after which the database must not have changed: replaces
 * the object that was found, which has become `o` or was freed, or inserts a new key. */
void dbPlace(db *d, const dbPosition *at, robj *o);
/* The same for a key that the caller has deleted to replace its value: it is not a new key for the
 * listener. */
void dbPlaceReplacing(db *d, const dbPosition *at, robj *o);
/* Deletes a key; false if it is missing or expired. */
bool dbDelete(db *d, slice key, uint64_t hash, storeLook look);
/* Like dbDelete() for a collection whose last elements a command has taken. They may still be in
 * the value; a listener for removals sees an empty one. */
bool dbDeleteEmptied(db *d, slice key, uint64_t hash, storeLook look);
/* Like dbDelete() for a key that dbPlaceReplacing() gives another value next. */
bool dbDeleteReplaced(db *d, slice key, uint64_t hash, storeLook look);
/* Like dbDelete(), freeing a large collection in the background, or immediately, regardless of
 * storeSetLazyFree(). */
bool dbUnlink(db *d, slice key, uint64_t hash, storeLook look);
bool dbDeleteNow(db *d, slice key, uint64_t hash, storeLook look);
/* Which values are freed in the background by default: those of expired keys; those deleted by
 * dbDelete(). */
void storeSetLazyFree(bool expired, bool deleted);
/* Removes an existing key because a command set an expiry time in the past: counts as expired,
 * without notification. */
void dbExpire(db *d, slice key, uint64_t hash);

/* A key and its database. */
typedef struct dbKey {
    db *db;
    slice key;
    uint64_t hash;
} dbKey;
/* Moves the object of `from`, which must exist, to `to`, which must not exist; the TTL is kept. */
void dbMove(const dbKey *from, const dbKey *to);
/* Copies the value and TTL of `from`, which must exist, to a new object for dbPut(). Large values
 * are shared if possible. ERR_DENIED: none of this type are copied; ERR_NO_MEMORY: it failed. */
status dbCopy(const dbKey *from, const dbKey *to, robj **copy) MUST_USE;
void dbPut(const dbKey *to, robj *o); /* in place of what is there */

/* Prepares the tables for `keys` keys; nothing in a slotted store, whose slots differ. */
void dbReserve(db *d, uint64_t keys);
/* Removes all keys; returns their number. `later`: the memory is freed in the background, if
 * available. */
uint64_t dbFlush(db *d, bool later);

/* ------------------------------------------------------------------ many keys */

/* Must not change the database. */
typedef void dbVisitProc(void *arg, const robj *o);
/* Visits every object of one slot or (-1) of all, including expired ones. */
void dbEach(const db *d, int slot, dbVisitProc *visit, void *arg);
/* The same for a visitor that may fail: stops at the first one that is not OK, and returns it. */
typedef status dbWalkProc(void *arg, const robj *o);
status dbWalk(const db *d, int slot, dbWalkProc *visit, void *arg) MUST_USE;
/* Visits every object if there are at most `most`, else a random sample of that size, in which
 * objects may be repeated. Returns the number of visits. */
uint64_t dbSample(const db *d, uint64_t most, dbVisitProc *visit, void *arg);
/* Visits some objects and returns the cursor for the next call; 0 at the start and at the end. Any
 * number is a valid cursor. An object present from the first call to the last is visited exactly
 * once; see ds/hashtable.h. `slot` -1: all. */
uint64_t dbScan(const db *d, uint64_t cursor, int slot, dbVisitProc *visit, void *arg);
/* The object of a random key, or NULL; removes expired ones that it finds, and returns hidden ones
 * only if all are. */
robj *dbRandom(db *d, storeLook look);

/* One turn of active expiry over all databases of a keyspace: removes expired keys, for at most
 * `budget_us`, much less when few are found; none unless EXPIRY_DELETE. `effort` 1..10 as
 * active-expire-effort says. */
void storeExpireTurn(keyspace *k, int64_t now_ms, int64_t budget_us, int effort);
/* True if the last turn ended at its time limit. */
bool storeExpireTimedOut(const keyspace *k);
/* True if keys, or fields of hashes, have an expiry time. */
bool storeHasVolatile(const keyspace *k);

/* Slots of a slotted store. The keys of a hidden slot, which is being imported, are not counted,
 * scanned, sampled or chosen at random; they do not expire and are not evicted, and no fields of
 * theirs expire. Lookups and functions of the slot find them; their memory counts. Slots stay
 * hidden when databases are flushed or exchanged. */
void storeHideSlot(keyspace *k, int slot, bool hide);
/* True if there are keys in hidden slots. */
bool dbHasHidden(const db *d);
bool storeSlotIsHidden(const keyspace *k, int slot);
uint64_t dbSlotCount(const db *d, int slot);
uint64_t dbSlotVolatileCount(const db *d, int slot);
/* Removes the keys of a slot; returns their number. The cost is proportional to the slot. */
uint64_t dbFlushSlot(db *d, int slot, bool later);

/* ------------------------------------------------------------------ memory */

/* Submits work to a background thread, which calls free(garbage); jobs run one after the other. Set
 * once by the engine; without it everything is freed immediately. */
typedef void storeFreeProc(void *garbage);
typedef void storeFreeLaterProc(storeFreeProc *free, void *garbage);
void storeSetFreeLater(storeFreeLaterProc *later);
/* Frees up to `most` blocks of each kind that the background thread has returned. True if all have
 * arrived and are freed. */
bool storeTakeBack(size_t most);
/* The same for some, and returns unused memory to the system. True: there is more to do. */
bool storeReclaim(void);
/* storeCompact() if worthwhile, and storeReclaim(). True: there is more to do. */
bool storeTidy(int64_t budget_us);
/* Number of objects waiting to be freed in the background, and of those freed. */
uint64_t storeFreePending(void);
uint64_t storeFreedLater(void);
/* Bytes of single large values among them, about, until all is taken back. */
size_t storeFreePendingBytes(void);

/* Memory of the tables of a database, without the objects. */
size_t dbTableMemory(const db *d);
/* For DEBUG HTSTATS: walks all tables. */
void dbTableStats(const db *d, hashtableStats *out);
/* Digest of everything in a keyspace: equal contents have equal digests, on any server. Expired
 * keys that are not removed count, fields that `look` does not see do not. */
void storeDigest(const keyspace *k, storeLook look, digest *out);
/* The same for everything, and the expiry times of keys and fields count, too. */
void storeDigestWithTimes(const keyspace *k, digest *out);
/* Checks every table; NULL if all are valid, else the first violation. For tests. */
const char *dbVerify(const db *d);
/* Checks that every shape counts the hashes of the keyspace that have it; NULL if so, else the
 * first violation. For tests. */
const char *storeVerifyShapes(keyspace *k);

/* A key that is going to be looked up. */
typedef struct storeWant {
    const db *db;
    uint64_t hash;
    const robj *likely; /* set by storePrefetch(): the key's object, rarely another's; or NULL */
} storeWant;
enum { STORE_WANTS_MAX = 64 };
/* Prefetches what the lookups of `count` keys, at most STORE_WANTS_MAX, will read, step by step for
 * all of them, so that their cache misses overlap. Only a hint. */
void storePrefetch(storeWant *wants, int count);
/* An item (field, member) that is going to be looked up in the value of an object of
 * FORM_POINTER. */
typedef struct storeItemWant {
    const robj *object;
    slice item;
    uint64_t hash; /* set by storePrefetchItems(): for storeKnowItem(), or 0 */
} storeItemWant;
enum { STORE_ITEMS_MAX = 64 };
/* The same for items of large collections, at most STORE_ITEMS_MAX. The objects should be in the
 * cache. */
void storePrefetchItems(storeItemWant *wants, int count);

#endif
