/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keyspace: databases of objects, found by key. Knows when a key dies, never who asks.
 *
 * Every function takes the key's hash (storeHash()), which the reader of requests has computed already.
 * Object pointers are borrowed: valid until the next call that may change the same database. Keys given
 * to these functions must not lie inside an object of the store. Main thread only. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/hash.h"
#include "base/slice.h"
#include "ds/hashtable.h"
#include "store/digest.h"
#include "store/look.h"
#include "store/object.h"
#include "store/type.h"

typedef struct db db;

/* ------------------------------------------------------------------ the store as a whole */

/* What the store tells upwards of keys no command named. */
typedef struct storeListener {
    /* An expired key was met and removed. */
    void (*expired)(db *d, slice key);
    /* Fields of a hash have expired and are about to be removed; `emptied`: with the key. */
    void (*fields_expired)(db *d, slice key, const slice *fields, unsigned count, bool emptied);
    /* storeEvictOne() has removed a key. */
    void (*evicted)(db *d, slice key);
    /* An object whose time had come, or (`eviction`) a victim, was given up within so long. Only while
     * storeTimeDeaths(). */
    void (*buried)(bool eviction, int64_t us);
} storeListener;
void storeTimeDeaths(bool on);

/* The hash by which the store knows a key. In a slotted store its low bits are the key's slot, so that who has the
 * hash has the slot too; tables look at the high bits only. ANY_THREAD. */
uint64_t storeHash(slice key);
/* The slot in a storeHash() of a slotted store. */
static inline int storeHashSlot(uint64_t hash) { return (int)(hash & (SLOT_COUNT - 1)); }
/* Makes `count` databases; `slotted`: each with one table for each of SLOT_COUNT slots. Once, at start. */
void storeInit(int count, bool slotted);
/* Frees everything (tests, leak checkers). */
void storeShutdown(void);
void storeSetListener(const storeListener *listener);
bool storeIsSlotted(void);
int storeDbCount(void);
db *storeDb(int id);
/* The array behind storeDb(), for the hot line. */
db **storeDbs(void);
/* dbFlush() of all databases. */
uint64_t storeFlush(bool later);
/* Exchanges what two databases hold. */
void storeSwap(db *a, db *b);
/* Off: tables neither grow nor shrink before they are nearly full. For tests. */
void storeSetResizing(bool on);
/* Continues resizes of tables for about `budget_us`. */
void storeWork(int64_t budget_us);

/* What compaction of the keyspace's memory would win. */
typedef struct storeWaste {
    size_t live;        /* bytes in use */
    size_t recoverable; /* of those below: what compaction would win */
    size_t holes;       /* free places between what lives */
    size_t empty;       /* kept for reuse, soon given back */
    size_t metadata;    /* counted as used */
} storeWaste;
void storeGetWaste(storeWaste *out);
/* How to compact. */
typedef struct storeCompaction {
    int64_t budget_us;  /* about so long */
    size_t fields_max;  /* elements of one collection looked at between two looks at the clock */
    bool only_if_worth; /* nothing is begun for less than a sixteenth of what lives */
    bool heap; /* values' blocks outside the slabs move too, where the allocator can tell which */
} storeCompaction;
typedef struct storeCompactReport { /* calls add to it */
    uint64_t moved, kept;           /* blocks of any kind */
    uint64_t keys_moved, keys_kept; /* key objects */
} storeCompactReport;
/* Moves objects, elements and blocks together. False when nothing more can be won. Does nothing while a child lives.
 * No pointer to an object or value outlives it. */
bool storeCompact(const storeCompaction *plan, storeCompactReport *report);

/* What happens to expired keys. A lookup with lookAtAll() finds them as long as they are there. */
typedef enum storeExpiry {
    EXPIRY_DELETE, /* they are removed when met */
    EXPIRY_HIDE,   /* reads do not see them; dbFind() removes them */
} storeExpiry;
void storeSetExpiry(storeExpiry mode);
/* True when a lookup like this one would not find the object. */
static inline bool storeIsDead(const robj *o, storeLook look) {
    return unlikely(objectHasExpire(o)) && lookIsPast(look, objectExpire(o));
}

/* What lookups note in an object, for eviction: the time of the last one, or how often. */
typedef enum storeAccess { ACCESS_LRU, ACCESS_LFU } storeAccess;
/* `log_factor`, `decay_minutes`: of ACCESS_LFU, as lfu-log-factor and lfu-decay-time say. */
void storeSetAccess(storeAccess mode, int log_factor, int decay_minutes);
/* Around the life of a forked child, which shares our pages until one of us writes on them: between the two
 * calls objects are replaced instead of changed where they stand, tables do not resize, accesses are not noted. */
void storeForkBegin(void);
void storeForkEnd(void);
/* The clock behind it runs by this call: at least once a second. */
void storeSetClock(int64_t now_ms);
/* Seconds since the last access (ACCESS_LRU). */
int64_t storeIdleSeconds(const robj *o);
/* The access counter, 0..255, as it stands now (ACCESS_LFU). */
uint8_t storeFrequency(const robj *o);

/* Whom storeEvictOne() removes. */
typedef enum evictOrder { EVICT_LRU, EVICT_LFU, EVICT_TTL, EVICT_RANDOM } evictOrder;
typedef struct evictRule {
    evictOrder order;
    bool only_volatile; /* must be set for EVICT_TTL */
    int samples;        /* keys looked at in each database: 1..64 */
    bool later;         /* a large value is freed in the background */
} evictRule;
/* Removes one key, of any database; false when there is none that may go. */
bool storeEvictOne(const evictRule *rule);

typedef struct storeStatistics {
    uint64_t hits, misses;
    uint64_t expired, evicted, expired_fields;
    double expired_stale_percent; /* estimate: keys that are dead and still there */
    double stale_items_percent; /* estimate: keys with dead fields among those with volatile ones */
    uint64_t expire_time_caps;  /* turns of active expiry that ended for want of time */
    uint64_t expire_us;         /* time spent in them */
} storeStatistics;
const storeStatistics *storeStats(void);
void storeResetStats(void);

/* ------------------------------------------------------------------ one database */

int dbId(const db *d);
/* Keys, expired ones not yet removed included. */
uint64_t dbSize(const db *d);
/* Keys with an expire time. */
uint64_t dbVolatileCount(const db *d);
/* Keys with volatile items: fields that have a time. Some that are gone may be counted where there are thousands. */
uint64_t dbItemKeys(db *d);
/* Mean time to live of those, estimated by active expiry; ms, 0 when unknown. */
int64_t dbMeanTtl(const db *d);

/* The object, or NULL; for a command that may change it. An expired one is removed (and told) as
 * storeSetExpiry() says, and not returned. Counts as an access. Writes *at, where a change goes. */
robj *dbFind(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at);
/* The same for a command that reads: counts hits and misses too. */
robj *dbFindRead(db *d, slice key, uint64_t hash, storeLook look);
/* dbFind() for a command that replies what it overwrites: counts hits and misses too. */
robj *dbFindReadAt(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at);
/* The same for a command that asks about the key: counts hits and misses, but is no access. */
robj *dbFindQuiet(db *d, slice key, uint64_t hash, storeLook look);
/* The same, but nothing is counted or noted. */
robj *dbFindUncounted(db *d, slice key, uint64_t hash, storeLook look);
/* What stands there, its time passed or not: nothing is removed, told or counted. */
const robj *dbPeek(const db *d, slice key, uint64_t hash);

/* Sets a string. `take` is a blob with the value's bytes, whose reference moves to the store (NULL: the
 * bytes are copied from `value`). `expire_ms` OBJECT_NO_EXPIRE for none; `old` is the object that dbFind()
 * returned for the key, NULL for none, and `at` the position it wrote. */
void dbSetString(db *d, slice key, const dbPosition *at, robj *old, slice value, blob *take,
                 int64_t expire_ms);
/* Puts `o` at the position of a lookup since which the database has not changed: replaces the object found, which
 * by now is `o` in another form or is freed, or adds a new key when none was found. */
void dbPlace(db *d, const dbPosition *at, robj *o);
/* Removes a key; false when there was none. Expired ones count as none. */
bool dbDelete(db *d, slice key, uint64_t hash, storeLook look);
/* The same; a large collection is freed in the background, or at once, whatever storeSetLazyFree() says. */
bool dbUnlink(db *d, slice key, uint64_t hash, storeLook look);
bool dbDeleteNow(db *d, slice key, uint64_t hash, storeLook look);
/* Which values the store frees in the background where nobody says: those of dead keys; those that
 * dbDelete() removes. */
void storeSetLazyFree(bool expired, bool deleted);
/* Removes a key, which must be there, because a command gave it a time that has passed: counts as expired,
 * but the listener is not told. */
void dbExpire(db *d, slice key, uint64_t hash);

/* A key and where it stands. */
typedef struct dbKey {
    db *db;
    slice key;
    uint64_t hash;
} dbKey;
/* The object of `from`, which must be there, becomes that of `to`, where nothing may stand; its time goes
 * along. */
void dbMove(const dbKey *from, const dbKey *to);
/* The same, but the object of `from` stays. Large values are shared, not copied. */
void dbCopy(const dbKey *from, const dbKey *to);

/* Removes all keys; returns how many there were. `later`: the memory is freed in the background, if there
 * is one. */
uint64_t dbFlush(db *d, bool later);

/* ------------------------------------------------------------------ many keys */

/* May not change the database. */
typedef void dbVisitProc(void *arg, const robj *o);
/* Visits every object, of one slot or (-1) of all, expired ones too. */
void dbEach(const db *d, int slot, dbVisitProc *visit, void *arg);
/* Visits every object where there are at most `most`, else so many taken by chance, some perhaps twice. Returns how
 * many it visited. */
uint64_t dbSample(const db *d, uint64_t most, dbVisitProc *visit, void *arg);
/* Visits some objects and returns the cursor for the next call; begin with 0, 0 is the end. Any number is
 * a cursor. An object that is there from the first call to the last is visited once; see ds/hashtable.h.
 * `slot` -1: all. */
uint64_t dbScan(const db *d, uint64_t cursor, int slot, dbVisitProc *visit, void *arg);
/* A random live key's object, or NULL; removes expired ones it meets. */
robj *dbRandom(db *d, storeLook look);

/* One turn of active expiry over all databases: removes keys whose time has come, for at most `budget_us`,
 * much less when few are found; none unless EXPIRY_DELETE. `effort` 1..10 as active-expire-effort says. */
void storeExpireTurn(int64_t now_ms, int64_t budget_us, int effort);
/* True when the last turn ended for want of time. */
bool storeExpireIsBehind(void);

/* Slots of a slotted store. */
uint64_t dbSlotCount(const db *d, int slot);
uint64_t dbSlotVolatileCount(const db *d, int slot);
/* Removes the keys of a slot; returns how many. Costs what the slot costs. */
uint64_t dbFlushSlot(db *d, int slot, bool later);

/* ------------------------------------------------------------------ memory */

/* Hands work to a background thread, which calls free(garbage); one piece after the other. Set once by the
 * engine; without it everything is freed at once. */
typedef void storeFreeProc(void *garbage);
typedef void storeFreeLaterProc(storeFreeProc *free, void *garbage);
void storeSetFreeLater(storeFreeLaterProc *later);
/* Takes back what the background thread could not free, and returns unused memory to the system. */
void storeReclaim(void);
/* The care that is always taken: storeCompact() where it is worth while, and storeReclaim(). */
void storeTidy(int64_t budget_us);
/* Objects that wait to be freed in the background, and those that were. */
uint64_t storeFreePending(void);
uint64_t storeFreedLater(void);

/* Bytes the tables of a database take, objects left out. */
size_t dbTableMemory(const db *d);
/* For DEBUG HTSTATS: walks all tables. */
void dbTableStats(const db *d, hashtableStats *out);
/* Digest of everything in the store: equal contents have equal digests, on any server. Expired keys that are not
 * removed count, fields that `look` does not see do not. */
void storeDigest(storeLook look, digest *out);
/* Checks every table; NULL when sound, else what is broken. For tests. */
const char *dbVerify(const db *d);

/* A key that will be looked up soon. */
typedef struct storeWant {
    const db *db;
    uint64_t hash;
} storeWant;
/* Brings what the lookups of `count` keys will read into the cache, step by step for all of them, so that
 * their misses overlap. A hint: finds nothing, keeps nothing. */
void storePrefetch(const storeWant *wants, int count);

#endif
