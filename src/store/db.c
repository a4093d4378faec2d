/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Databases: tables of objects, found by key, with lazy expiry on the way.
 *
 * A lookup leaves its position in the database, so that the SET which follows it places the object without
 * looking again. Main thread only. */
#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable_inline.h"
#include "store/db_priv.h"
#include "store/slab.h"
#include "store/type_stream.h"

storeState storeNow;

/* ------------------------------------------------------------------ the store */

uint64_t storeHash(slice key) {
    uint64_t hash = hashBytes(key.ptr, key.len);
    if (likely(!storeNow.slotted)) return hash;
    return (hash & ~(uint64_t)(SLOT_COUNT - 1)) | (uint64_t)hashSlot(key);
}

static uint64_t hashOfObject(const void *entry) { return storeHash(objectKey(entry)); }

static inline bool objectHasKey(const void *entry, const void *key, size_t len) {
    slice own = objectKey(entry);
    return own.len == len && memcmp(own.ptr, key, len) == 0;
}

static const hashtableType keys_type = {.hash_of = hashOfObject, .match = objectHasKey};

/* Gives a database empty tables. */
static void newTables(db *d) {
    d->keys = kvstoreNew(&keys_type, storeNow.slotted ? KVSTORE_SLOT_BITS_MAX : 0);
    d->table = storeNow.slotted ? NULL : kvstoreTable(d->keys, 0);
    itemsForget(d);
    d->expire_cursor = 0;
    d->mean_ttl_ms = 0;
}

void storeInit(int count, bool slotted) {
    _Static_assert(1 << KVSTORE_SLOT_BITS_MAX == SLOT_COUNT, "one table for each slot");
    check(!storeNow.dbs);
    check(count > 0);
    storeNow.dbs = memNewArray(db *, (size_t)count);
    storeNow.count = count;
    storeNow.slotted = slotted;
    storeNow.touch_lru = storeNow.touching = true;
    (void)slabKeyspace(); /* used memory shall not rise by the stores later */
    (void)slabElements();
    streamTypeInit();
    for (int i = 0; i < count; i++) {
        storeNow.dbs[i] = memNew(db);
        storeNow.dbs[i]->id = i;
        newTables(storeNow.dbs[i]);
    }
}

void storeShutdown(void) {
    (void)storeFlush(false); /* how many does not matter now */
    storeTidy(0);
    evictForget();
    for (int i = 0; i < storeNow.count; i++) {
        kvstoreFree(storeNow.dbs[i]->keys, NULL, NULL);
        memFree(storeNow.dbs[i]);
    }
    memFree(storeNow.dbs);
    compactForget();
    slabStoreFree(slabKeyspaceTake());
    slabStoreFree(slabElementsTake());
    memset(&storeNow, 0, sizeof(storeNow));
}

void storeSetListener(const storeListener *listener) { storeNow.listener = listener; }

bool storeIsSlotted(void) { return storeNow.slotted; }

int storeDbCount(void) { return storeNow.count; }

db *storeDb(int id) {
    check(id >= 0);
    check(id < storeNow.count);
    return storeNow.dbs[id];
}

db **storeDbs(void) { return storeNow.dbs; }

void storeSwap(db *a, db *b) {
    db kept = *a;
    *a = *b;
    *b = kept;
    b->id = a->id;
    a->id = kept.id;
}

void storeWork(int64_t budget_us) {
    enum { BUCKETS_A_STEP = 256 };
    int64_t deadline_us = clockMonoUs() + budget_us;
    for (int i = 0; i < storeNow.count; i++) {
        while (kvstoreWork(storeNow.dbs[i]->keys, BUCKETS_A_STEP)) {
            if (clockMonoUs() >= deadline_us) return;
        }
    }
}

const storeStatistics *storeStats(void) { return &storeNow.stats; }

void storeResetStats(void) { memset(&storeNow.stats, 0, sizeof(storeNow.stats)); }

int dbId(const db *d) { return d->id; }

uint64_t dbSize(const db *d) { return kvstoreCount(d->keys); }

uint64_t dbVolatileCount(const db *d) { return kvstoreVolatileCount(d->keys); }

/* ------------------------------------------------------------------ lookups */

static inline const hashtable *tableOf(const db *d, uint64_t hash) {
    return likely(d->table != NULL) ? d->table : kvstoreTable(d->keys, slotOf(hash));
}

ALWAYS_INLINE robj *findPosition(db *d, slice key, uint64_t hash) {
    const hashtable *t = d->table;
    hotCheck(hash == storeHash(key));
    if (unlikely(!t)) {
        d->last_slot = slotOf(hash);
        t = kvstoreTable(d->keys, d->last_slot);
    }
    return hashtableInlineFindPosition(t, hash, objectHasKey, key.ptr, key.len, &d->last);
}

unsigned dbWordFlags(const robj *o) {
    return (objectHasExpire(o) ? HASHTABLE_VOLATILE : 0) |
           (objectForm(o) == FORM_POINTER ? HASHTABLE_MARK : 0);
}

/* An object that is in no table any more. */
static void bury(db *d, robj *o) {
    storeNow.stats.expired++;
    if (storeNow.listener) storeNow.listener->expired(d, objectKey(o));
    freeDead(o, storeNow.lazy_expired, false);
}

void dbRemoveExpired(db *d, robj *o) {
    uint64_t hash = hashOfObject(o);
    check(kvstoreDeleteEntry(d->keys, slotOf(hash), hash, o));
    bury(d, o);
}

/* The last lookup found an object whose time has come: what the caller is to see of it. */
static NO_INLINE robj *foundExpired(db *d, slice key, uint64_t hash, robj *o, bool hide) {
    if (storeNow.expiry == EXPIRY_IGNORE) return o;
    if (storeNow.expiry == EXPIRY_HIDE && hide) return NULL;
    (void)kvstoreDeleteAt(d->keys, d->last_slot, &d->last); /* it is `o` */
    bury(d, o);
    return findPosition(d, key, hash);
}

ALWAYS_INLINE void touch(robj *o) {
    if (likely(storeNow.touch_lru)) {
        /* Reading first keeps the lines of hot objects clean. */
        if (objectLru(o) != storeNow.clock) objectSetLru(o, storeNow.clock);
    } else {
        accessTouchSlow(o);
    }
}

ALWAYS_INLINE robj *find(db *d, slice key, uint64_t hash, int64_t now_ms, bool hide) {
    robj *o = findPosition(d, key, hash);
    if (o && objectIsExpired(o, now_ms)) o = foundExpired(d, key, hash, o, hide);
    return o;
}

robj *dbFind(db *d, slice key, uint64_t hash, int64_t now_ms) {
    robj *o = find(d, key, hash, now_ms, false);
    if (o) touch(o);
    return o;
}

robj *dbFindUncounted(db *d, slice key, uint64_t hash, int64_t now_ms) {
    return find(d, key, hash, now_ms, true);
}

robj *dbFindQuiet(db *d, slice key, uint64_t hash, int64_t now_ms) {
    robj *o = find(d, key, hash, now_ms, true);
    if (o) {
        storeNow.stats.hits++;
    } else {
        storeNow.stats.misses++;
    }
    return o;
}

robj *dbFindRead(db *d, slice key, uint64_t hash, int64_t now_ms) {
    robj *o = dbFindQuiet(d, key, hash, now_ms);
    if (o) touch(o);
    return o;
}

const robj *dbPeek(const db *d, slice key, uint64_t hash) {
    return hashtableInlineFind(tableOf(d, hash), hash, objectHasKey, key.ptr, key.len);
}

void storePrefetch(const storeWant *wants, int count) {
    /* The one table of a database that is not slotted has a warm head. */
    for (int i = 0; storeNow.slotted && i < count; i++)
        hashtableInlinePrefetchHead(tableOf(wants[i].db, wants[i].hash));
    for (int i = 0; i < count; i++)
        hashtableInlinePrefetch(tableOf(wants[i].db, wants[i].hash), wants[i].hash);
    for (int i = 0; i < count; i++)
        hashtableInlinePrefetchEntry(tableOf(wants[i].db, wants[i].hash), wants[i].hash);
}

/* ------------------------------------------------------------------ changes of one key */

void dbSetString(db *d, slice key, uint64_t hash, robj *old, slice value, blob *take,
                 int64_t expire_ms) {
    check(d->last.hash == hash);
    bool expires = expire_ms != OBJECT_NO_EXPIRE, had_time = old && objectHasExpire(old);
    if (old && !take && had_time == expires && objectOverwrite(old, value)) {
        if (!expires) return;
        objectSettleBesideTime(old);
        dbPlace(d, hash, objectSetExpire(old, expire_ms));
        return;
    }
    uint32_t lru = old ? objectLru(old) : accessFresh();
    robj *o = take ? objectNewStringTake(key, take, expire_ms, lru)
                   : objectNewString(key, value, expire_ms, lru, KEEP_BEST);
    if (had_time) objectSettleBesideTime(o);
    dbPlace(d, hash, o);
    if (old) freeObject(old, storeNow.lazy_deleted);
}

void dbPlace(db *d, uint64_t hash, robj *o) {
    check(d->last.hash == hash);
    unsigned flags = dbWordFlags(o);
    if (flags & HASHTABLE_MARK) itemsNote(d, hash, o);
    if (!d->last.word) {
        if (objectLru(o) == 0) objectSetLru(o, accessFresh());
        kvstoreInsertAt(d->keys, d->last_slot, &d->last, o, flags);
        return;
    }
    hashtableReplaceAt(&d->last, o);
    if (unlikely(hashtableFlagsAt(&d->last) != flags))
        kvstoreSetFlagsAt(d->keys, d->last_slot, &d->last, flags);
}

static bool removeKey(db *d, slice key, uint64_t hash, int64_t now_ms, bool later) {
    /* Where the dead must stay until somebody removes them, this is how. */
    bool removable = storeNow.expiry != EXPIRY_DELETE;
    robj *o = removable ? findPosition(d, key, hash) : find(d, key, hash, now_ms, false);
    if (!o) return false;
    (void)kvstoreDeleteAt(d->keys, d->last_slot, &d->last); /* it is `o` */
    freeObject(o, later);
    return true;
}

bool dbDelete(db *d, slice key, uint64_t hash, int64_t now_ms) {
    return removeKey(d, key, hash, now_ms, storeNow.lazy_deleted);
}

bool dbUnlink(db *d, slice key, uint64_t hash, int64_t now_ms) {
    return removeKey(d, key, hash, now_ms, true);
}

bool dbDeleteNow(db *d, slice key, uint64_t hash, int64_t now_ms) {
    return removeKey(d, key, hash, now_ms, false);
}

void storeSetLazyFree(bool expired, bool deleted) {
    storeNow.lazy_expired = expired;
    storeNow.lazy_deleted = deleted;
}

void dbExpire(db *d, slice key, uint64_t hash) {
    robj *o = findPosition(d, key, hash);
    check(o != NULL);
    (void)kvstoreDeleteAt(d->keys, d->last_slot, &d->last); /* it is `o` */
    freeObject(o, storeNow.lazy_expired);
    storeNow.stats.expired++;
}

void dbRemoveEmptied(db *d, slice key, uint64_t hash) {
    robj *o = findPosition(d, key, hash);
    check(o != NULL);
    (void)kvstoreDeleteAt(d->keys, d->last_slot, &d->last); /* it is `o` */
    freeObject(o, false);
}

/* Puts `o` where nothing stands. */
static void add(const dbKey *to, robj *o) {
    check(findPosition(to->db, to->key, to->hash) == NULL);
    itemsNote(to->db, to->hash, o);
    kvstoreInsertAt(to->db->keys, to->db->last_slot, &to->db->last, o, dbWordFlags(o));
}

void dbMove(const dbKey *from, const dbKey *to) {
    robj *o = findPosition(from->db, from->key, from->hash);
    check(o != NULL);
    (void)kvstoreDeleteAt(from->db->keys, from->db->last_slot, &from->db->last); /* it is `o` */
    add(to, sliceEqual(from->key, to->key) ? o : objectRename(o, to->key));
}

void dbCopy(const dbKey *from, const dbKey *to) {
    const robj *o = dbPeek(from->db, from->key, from->hash);
    check(o != NULL);
    add(to, objectCopy(o, to->key, accessFresh()));
}

uint64_t dbFlush(db *d, bool later) {
    uint64_t count = dbSize(d), others = 0;
    for (int i = 0; i < storeNow.count; i++) {
        if (storeNow.dbs[i] != d) others += dbSize(storeNow.dbs[i]);
    }
    freeStores(&d->keys, 1, others == 0, later);
    newTables(d);
    return count;
}

uint64_t storeFlush(bool later) {
    uint64_t count = 0;
    kvstore **stores = memNewArray(kvstore *, (size_t)storeNow.count);
    for (int i = 0; i < storeNow.count; i++) {
        count += dbSize(storeNow.dbs[i]);
        stores[i] = storeNow.dbs[i]->keys;
        newTables(storeNow.dbs[i]);
    }
    freeStores(stores, storeNow.count, true, later);
    memFree(stores);
    return count;
}

/* ------------------------------------------------------------------ many keys */

void dbEach(const db *d, int slot, dbVisitProc *visit, void *arg) {
    kvstoreIterator it;
    kvstoreIteratorInit(&it, d->keys, slot, false);
    const robj *o;
    while ((o = kvstoreIteratorNext(&it, NULL))) visit(arg, o);
    kvstoreIteratorClear(&it);
}

typedef struct visitor {
    dbVisitProc *visit;
    void *arg;
} visitor;

static void visitEntry(void *context, void *entry, unsigned flags) {
    (void)flags; /* any */
    const visitor *v = context;
    v->visit(v->arg, entry);
}

uint64_t dbScan(const db *d, uint64_t cursor, int slot, dbVisitProc *visit, void *arg) {
    unsigned bits = HASHTABLE_CURSOR_BITS + (storeNow.slotted ? KVSTORE_SLOT_BITS_MAX : 0);
    cursor &= (UINT64_C(1) << bits) - 1;
    visitor v = {visit, arg};
    return kvstoreScan(d->keys, cursor, slot, visitEntry, &v);
}

robj *dbRandom(db *d, int64_t now_ms) {
    enum { TRIES_MAX = 100 }; /* where the dead must stay, and there may be nobody else */
    for (int tries = 0;; tries++) {
        robj *o = kvstoreRandom(d->keys, NULL);
        if (!o || !storeIsDead(o, now_ms)) return o;
        if (storeNow.expiry == EXPIRY_DELETE) {
            dbRemoveExpired(d, o);
        } else if (tries >= TRIES_MAX) {
            return NULL;
        }
    }
}

uint64_t dbSlotCount(const db *d, int slot) { return kvstoreCountOf(d->keys, slot); }

uint64_t dbSlotVolatileCount(const db *d, int slot) {
    return kvstoreVolatileCountOf(d->keys, slot);
}

uint64_t dbFlushSlot(db *d, int slot, bool later) {
    uint64_t count = dbSlotCount(d, slot);
    freeTable(kvstoreTakeSlot(d->keys, slot), later);
    return count;
}

/* ------------------------------------------------------------------ memory */

size_t dbTableMemory(const db *d) { return kvstoreBytes(d->keys); }

void dbTableStats(const db *d, hashtableStats *out) { kvstoreStatsRead(d->keys, out); }

static void addToDigest(void *arg, const robj *o) {
    digest *sum = arg, key = sum[1], value = {{0}};
    objectDigest(o, &value);
    digestMix(&key, objectKey(o));
    digestMix(&key, sliceMake(value.word, sizeof(value.word)));
    digestXor(sum, &key);
}

void storeDigest(digest *out) {
    digest sum[2] = {0}; /* of all keys, and of the database whose keys are being added */
    for (int i = 0; i < storeNow.count; i++) {
        sum[1] = (digest){{0}};
        digestMix(&sum[1], sliceMake(&storeNow.dbs[i]->id, sizeof(int)));
        dbEach(storeNow.dbs[i], -1, addToDigest, sum);
    }
    *out = sum[0];
}

const char *dbVerify(const db *d) { return kvstoreVerify(d->keys); }
