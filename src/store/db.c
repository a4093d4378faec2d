/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Databases: tables of objects found by key, with lazy expiry.
 *
 * A lookup stores its position in a variable of the caller, so that a following SET stores the
 * object without another lookup. Main thread only. */
#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable_inline.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/dictionary.h"
#include "store/hash_record.h"
#include "store/keyspace.h"
#include "store/slab.h"
#include "store/type_stream.h"

storeState storeNow;

/* ------------------------------------------------------------------ the store */

static NO_INLINE uint64_t hashWithSlot(slice key) {
    hotCheck(storeNow.slotted);
    uint64_t hash = hashBytes(key.ptr, key.len);
    return (hash & ~(uint64_t)(SLOT_COUNT - 1)) | (uint64_t)hashSlot(key);
}

uint64_t storeHash(slice key) {
    if (unlikely(storeNow.slotted)) return hashWithSlot(key);
    return hashBytes(key.ptr, key.len);
}

static uint64_t hashOfObject(const void *entry) { return storeHash(objectKey(entry)); }

ALWAYS_INLINE bool objectHasKey(const void *entry, const void *key, size_t len) {
    slice own = objectKey(entry);
    return own.len == len && bytesEqual(own.ptr, key, len);
}

/* For keys of bytesAreWords(). */
ALWAYS_INLINE bool objectHasWords(const void *entry, const void *key, size_t len) {
    slice own = objectKey(entry);
    return own.len == len && bytesEqualWords(own.ptr, key, len);
}

/* Long texts as far as the processor does not fetch them by itself when they are copied. */
static void prefetchRest(const void *entry) {
    enum { LINES = 4 };
    const robj *o = entry;
    const char *at = entry, *end = at + sizeMin(objectSize(o), LINES * CACHE_LINE);
    for (at += CACHE_LINE; at < end; at += CACHE_LINE) prefetchRead(at);
    prefetchRead(end - 1);
    if (objectForm(o) == FORM_POINTER) prefetchRead(objectPointer(o));
}

const hashtableType dbKeysType = {
    .hash_of = hashOfObject, .match = objectHasKey, .prefetch_rest = prefetchRest};

void dbMakeTables(db *d) {
    hotCheck(threadIsMain());
    d->keys = kvstoreNew(&dbKeysType, storeNow.slotted ? KVSTORE_SLOT_BITS_MAX : 0);
    d->table = storeNow.slotted ? NULL : kvstoreTable(d->keys, 0);
    itemsForget(d);
    d->expire_cursor = 0;
    d->mean_ttl_ms = 0;
    for (int slot = 0; unlikely(d->in->hidden != NULL) && slot < SLOT_COUNT; slot++) {
        if (slotMaskHas(d->in->hidden, slot)) kvstoreSetVisible(d->keys, slot, false);
    }
}

void storeHideSlot(keyspace *k, int slot, bool hide) {
    check(storeNow.slotted);
    if (k == &storeNow.main) readingBeforeWhole(NULL);
    if (!k->hidden) k->hidden = memNew(slotMask);
    if (hide) {
        slotMaskAdd(k->hidden, slot);
    } else {
        slotMaskRemove(k->hidden, slot);
    }
    for (int i = 0; i < k->count; i++) kvstoreSetVisible(k->dbs[i]->keys, slot, !hide);
}

void storeInit(int count, bool slotted) {
    hotCheck(threadIsMain());
    _Static_assert(1 << KVSTORE_SLOT_BITS_MAX == SLOT_COUNT, "one table for each slot");
    check(!storeNow.main.dbs);
    storeNow.slotted = slotted;
    storeNow.touch_lru = true;
    storeNow.used = &storeNow.main;
    (void)slabKeyspace(); /* used memory shall not rise by the stores later */
    (void)slabElements();
    streamTypeInit();
    compressedNodesInit();
    keyspaceInit(&storeNow.main, count);
}

static status checkAddress(const void *address, const char *of, reason *why) {
    if (hashtableCanHold(address)) return OK;
    return reasonSet(
        why, ERR_RANGE,
        "The address %p of %s is not a multiple of 8 below 2^48: this server cannot keep "
        "such addresses. Does the system hand out addresses of more than 48 bits?",
        address, of);
}

status storeCheckAddresses(reason *why) {
    hotCheck(threadIsMain());
    enum { SMALL = 64, LARGE = 8 << 20 }; /* from the heap, and mapped by itself */
    void *blocks[] = {memAlloc(SMALL), memAlloc(LARGE), slabAlloc(SMALL),
                      slabAllocFrom(slabElements(), SMALL)};
    static const char *const names[] = {"a small block", "a large block", "an object",
                                        "an element"};
    status st = OK;
    for (size_t i = 0; i < COUNT_OF(blocks) && st == OK; i++)
        st = checkAddress(blocks[i], names[i], why);
    memFree(blocks[0]);
    memFree(blocks[1]);
    slabFree(blocks[2], SMALL);
    slabFreeTo(slabElements(), blocks[3], SMALL);
    return st;
}

void storeShutdown(void) {
    hotCheck(threadIsMain());
    keyspace *k = &storeNow.main;
    check(storeNow.used == k);
    savingStop();
    while (storeNow.keyspaces != k) keyspaceFree(storeNow.keyspaces, false); /* is being loaded */
    check(!k->next);
    keyspaceFreeHugeLater(false); /* no thread may be at work when the slabs are freed */
    (void)storeFlush(k, false);   /* how many does not matter now */
    (void)storeTidy(0);           /* nothing can be left */
    keyspaceClear(k);
    slabStoreFree(slabKeyspaceTake());
    slabStoreFree(slabElementsTake());
    shapesFree();
    dictionariesFree();
    recordFreeBuffer();
    memset(&storeNow, 0, sizeof(storeNow));
}

void storeSetListener(keyspace *k, const storeListener *listener) { k->listener = listener; }

bool storeIsSlotted(void) { return storeNow.slotted; }

int storeDbCount(void) { return storeNow.main.count; }

db *storeDb(int id) { return keyspaceDb(&storeNow.main, id); }

db **storeDbs(void) { return storeNow.main.dbs; }

void dbExchange(db *a, db *b) {
    hotCheck(threadIsMain());
    hotCheck(mayChange(a));
    hotCheck(mayChange(b));
    itemsExchanged(a, b);
    db old_a = *a, old_b = *b;
    *a = old_b;
    *b = old_a;
    a->id = old_a.id;
    a->in = old_a.in;
    a->hits = old_a.hits;
    a->misses = old_a.misses;
    b->id = old_b.id;
    b->in = old_b.in;
    b->hits = old_b.hits;
    b->misses = old_b.misses;
}

void storeSwap(db *a, db *b) {
    check(a->in == b->in);
    readingBeforeWhole(a);
    readingBeforeWhole(b);
    dbExchange(a, b);
    if (a->in == keyspaceMain()) dictionariesSwap(a->id, b->id);
}

bool storeWork(keyspace *k, int64_t budget_us) {
    hotCheck(budget_us >= 0);
    enum { BUCKETS_A_STEP = 256 };
    int64_t deadline_us = clockMonoUs() + budget_us;
    for (int i = 0; i < k->count; i++) {
        while (kvstoreWork(k->dbs[i]->keys, BUCKETS_A_STEP)) {
            if (clockMonoUs() >= deadline_us) return true;
        }
    }
    return false;
}

storeStatistics storeStats(const keyspace *k) {
    storeStatistics all = k->stats;
    for (int i = 0; i < k->count; i++) {
        all.hits += k->dbs[i]->hits;
        all.misses += k->dbs[i]->misses;
    }
    return all;
}

void storeResetStats(keyspace *k) {
    memset(&k->stats, 0, sizeof(k->stats));
    for (int i = 0; i < k->count; i++) k->dbs[i]->hits = k->dbs[i]->misses = 0;
    storeResetFreedLater();
}

int dbId(const db *d) { return d->id; }

void dbReserve(db *d, uint64_t keys) {
    if (!storeNow.slotted) kvstoreReserve(d->keys, 0, keys);
}

uint64_t dbSize(const db *d) { return kvstoreCount(d->keys); }

uint64_t dbVolatileCount(const db *d) { return kvstoreVolatileCount(d->keys); }

/* ------------------------------------------------------------------ lookups */

static inline const hashtable *tableOf(const db *d, uint64_t hash) {
    return likely(d->table != NULL) ? d->table : kvstoreTable(d->keys, slotOf(hash));
}

ALWAYS_INLINE robj *findPosition(const db *d, slice key, uint64_t hash, dbPosition *at) {
    hotCheck(hash == storeHash(key));
    return hashtableInlineFindPosition(tableOf(d, hash), &dbKeysType, hash, objectHasKey, key.ptr,
                                       key.len, &at->at);
}

/* Removes the entry at a position from its table. */
static void removeAt(db *d, const dbPosition *at) {
    (void)kvstoreDeleteAt(d->keys, slotOf(at->at.hash), &at->at); /* the caller has the object */
}

unsigned dbWordFlags(const robj *o) {
    /* By the forms of expiry time and value. */
    enum { BOTH = HASHTABLE_VOLATILE | HASHTABLE_MARK };
    static const uint8_t flags[32] = {
        [EXPIRE_SHORT] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE] = HASHTABLE_VOLATILE,
        [EXPIRE_COMPRESSED] = BOTH,
        [EXPIRE_SHORT | FORM_EMBED_RAW << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE | FORM_EMBED_RAW << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_COMPRESSED | FORM_EMBED_RAW << 2] = HASHTABLE_MARK,
        [FORM_POINTER << 2] = HASHTABLE_MARK,
        [EXPIRE_SHORT | FORM_POINTER << 2] = BOTH,
        [EXPIRE_WIDE | FORM_POINTER << 2] = BOTH,
        [EXPIRE_SHORT | FORM_INT1 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE | FORM_INT1 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_SHORT | FORM_INT2 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE | FORM_INT2 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_SHORT | FORM_INT3 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE | FORM_INT3 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_SHORT | FORM_INT4 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE | FORM_INT4 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_SHORT | FORM_INT8 << 2] = HASHTABLE_VOLATILE,
        [EXPIRE_WIDE | FORM_INT8 << 2] = HASHTABLE_VOLATILE,
    };
    hotCheck(objectType(o) < TYPE_COUNT);
    return flags[objectHead(o) >> 3 & 31];
}

/* Calls `tell`, whose callbacks may flush the keyspace that the object was in. */
static NO_INLINE void freeThenTell(db *d, robj *o, void (*tell)(db *d, slice key), bool later,
                                   bool eviction) {
    str key = strNew(objectKey(o));
    freeRemoved(d, o, later, eviction);
    tell(d, strSlice(&key));
    strFree(&key);
}

void dbTellRemoved(db *d, robj *o, void (*tell)(db *d, slice key), bool later, bool eviction) {
    hotCheck(threadIsMain());
    if (unlikely(storeNow.expects_changes) && tell) {
        freeThenTell(d, o, tell, later, eviction);
        return;
    }
    if (tell) tell(d, objectKey(o));
    freeRemoved(d, o, later, eviction);
}

/* Frees an object that was removed from its table. */
static void freeExpired(db *d, robj *o) {
    d->in->stats.expired++;
    dbTellRemoved(d, o, d->in->listener ? d->in->listener->expired : NULL, storeNow.lazy_expired,
                  false);
}

void dbRemoveExpired(db *d, robj *o) {
    hotCheck(threadIsMain());
    uint64_t hash = hashOfObject(o);
    beforeRemoval(d, hash, o, REMOVAL_EXPIRED);
    check(kvstoreDeleteEntry(d->keys, slotOf(hash), hash, o));
    freeExpired(d, o);
}

/* A read found an expired object. */
static NO_INLINE void readExpired(db *d, robj *o) {
    if (removesExpired(d, hashOfObject(o))) dbRemoveExpired(d, o);
}

/* A write found an expired object: removes it, and makes the position that of a missing key, or of
 * the value that the listener has given it. Returns that value; NULL: there is none. */
static NO_INLINE robj *removeFound(db *d, robj *o, slice key, dbPosition *at) {
    uint64_t hash = at->at.hash;
    beforeRemoval(d, hash, o, REMOVAL_EXPIRED);
    removeAt(d, at);
    freeExpired(d, o);
    return findPosition(d, key, hash, at);
}

ALWAYS_INLINE void touchLru(robj *o, storeLook look) {
    if (unlikely(!lookTouches(look))) return;
    /* Testing first keeps the cache lines of hot objects clean. */
    if (objectLru(o) != storeNow.clock) objectSetLru(o, storeNow.clock);
}

ALWAYS_INLINE void touch(robj *o, storeLook look) {
    if (likely(storeNow.touch_lru)) {
        touchLru(o, look);
    } else if (lookTouches(look)) {
        accessTouchSlow(o);
    }
}

/* dbFind() and dbFindRead() have a path for usual keys that calls nothing, so that it saves no
 * registers, and another one for the rest. */
ALWAYS_INLINE bool isUsual(const db *d, slice key) {
    return likely(bytesAreWords(key.len)) && likely(storeNow.touch_lru) && likely(d->table) &&
           likely(tableIsBig(d->table));
}

/* For isUsual(). */
ALWAYS_INLINE tableNear findNear(const db *d, slice key, uint64_t hash, hashtablePosition *at) {
    hotCheck(hash == storeHash(key));
    return hashtableInlineFindNear(tableAsBig(d->table), &dbKeysType, hash, objectHasWords, key.ptr,
                                   key.len, at);
}

/* Puts an object with the same key, value and access in place of another one. That is no change: a
 * snapshot sees the same, whether or not it has seen the other one. */
static void placeSame(db *d, const dbPosition *at, robj *o) {
    hotCheck(storeNow.used == d->in);
    hashtableReplaceAt(&at->at, &dbKeysType, o);
    kvstoreSetFlagsAt(d->keys, slotOf(at->at.hash), &at->at, dbWordFlags(o));
}

void dbReplace(db *d, uint64_t hash, const robj *old, robj *with) {
    dbPosition at;
    check(findPosition(d, objectKey(old), hash, &at) == old);
    hotCheck(objectAccess(old) == objectAccess(with));
    placeSame(d, &at, with);
}

static robj *restoreAt(db *d, const dbPosition *at, robj *o) {
    hotCheck(objectIsCompressed(o));
    /* What is about to be removed stays where it is while somebody is told of that. */
    if (unlikely(removalIsTold(o))) return compressedShow(o);
    keyspace *before = keyspaceUse(d->in);
    robj *plain = compressedPlain(o);
    placeSame(d, at, plain);
    (void)keyspaceUse(before); /* it was the one of `d` */
    return plain;
}

robj *storePlainKey(db *d, slice key, uint64_t hash) {
    dbPosition at;
    robj *o = findPosition(d, key, hash, &at);
    check(o != NULL);
    if (!objectIsCompressed(o)) return o;
    return mayChange(d) ? restoreAt(d, &at, o) : compressedShow(o);
}

/* dbFind() and dbFindHead() have found an object that expires, or is compressed. */
static NO_INLINE robj *findUnusual(db *d, slice key, storeLook look, dbPosition *at, robj *o,
                                   bool plain) {
    if (storeIsExpired(o, look)) o = removeFound(d, o, key, at);
    if (!o) return NULL;
    beforeChange(d, at->at.hash, o);
    if (plain && objectIsCompressed(o)) o = restoreAt(d, at, o);
    touch(o, look);
    return o;
}

typedef robj *findAnyProc(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at);

ALWAYS_INLINE robj *find(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at,
                         bool plain) {
    robj *o = findPosition(d, key, hash, at);
    if (!o) return NULL;
    if (unlikely(objectIsUnusual(o))) return findUnusual(d, key, look, at, o, plain);
    beforeChange(d, hash, o);
    touch(o, look);
    return o;
}

static NO_INLINE robj *findAny(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at) {
    return find(d, key, hash, look, at, true);
}

static NO_INLINE robj *findAnyHead(db *d, slice key, uint64_t hash, storeLook look,
                                   dbPosition *at) {
    return find(d, key, hash, look, at, false);
}

/* `any` is one of the two above. */
ALWAYS_INLINE robj *findUsual(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at,
                              findAnyProc *any) {
    if (unlikely(!isUsual(d, key)) || unlikely(storeNow.watches))
        return any(d, key, hash, look, at);
    tableNear near = findNear(d, key, hash, &at->at);
    if (near == NEAR_MISSING) return NULL;
    if (unlikely(near == NEAR_UNKNOWN)) return any(d, key, hash, look, at);
    robj *o = wordEntryOfType(*at->at.word, &dbKeysType);
    if (unlikely(objectIsUnusual(o))) return any(d, key, hash, look, at);
    touchLru(o, look);
    return o;
}

robj *dbFind(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at) {
    return findUsual(d, key, hash, look, at, findAny);
}

robj *dbFindHead(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at) {
    return findUsual(d, key, hash, look, at, findAnyHead);
}

ALWAYS_INLINE robj *peek(const db *d, slice key, uint64_t hash) {
    return hashtableInlineFind(tableOf(d, hash), &dbKeysType, hash, objectHasKey, key.ptr, key.len);
}

const robj *dbPeek(const db *d, slice key, uint64_t hash) { return peek(d, key, hash); }

ALWAYS_INLINE robj *findUncounted(db *d, slice key, uint64_t hash, storeLook look) {
    robj *o = peek(d, key, hash);
    if (o && unlikely(storeIsExpired(o, look))) {
        readExpired(d, o);
        return NULL;
    }
    return o;
}

robj *dbFindUncounted(db *d, slice key, uint64_t hash, storeLook look) {
    return findUncounted(d, key, hash, look);
}

static NO_INLINE void tellMiss(db *d, slice key) {
    if (d->in->listener) d->in->listener->missed(d, key);
}

ALWAYS_INLINE void noteMiss(db *d, slice key) {
    d->misses++;
    if (unlikely(storeNow.notes_misses)) tellMiss(d, key);
}

ALWAYS_INLINE robj *findQuiet(db *d, slice key, uint64_t hash, storeLook look) {
    robj *o = findUncounted(d, key, hash, look);
    if (o) {
        d->hits++;
    } else {
        noteMiss(d, key);
    }
    return o;
}

robj *dbFindQuiet(db *d, slice key, uint64_t hash, storeLook look) {
    return findQuiet(d, key, hash, look);
}

robj *dbFindSilent(db *d, slice key, uint64_t hash, storeLook look) {
    bool notes = storeNow.notes_misses;
    storeNow.notes_misses = false;
    robj *o = dbFindQuiet(d, key, hash, look);
    storeNow.notes_misses = notes;
    return o;
}

/* True if a read of this compressed object stores the value plain: it is the second one within the
 * idle time. */
static bool isReadAgain(const db *d, uint64_t hash, const robj *o, storeLook look) {
    if (storeNow.plain_idle_s < 0 || !lookTouches(look)) return false;
    if (storeNow.forked || !mayChange(d) || readingHolds(d, hash)) return false;
    return accessIdleSeconds(o) <= storeNow.plain_idle_s;
}

/* A plain object for a compressed one that is read. */
static robj *readCompressed(db *d, slice key, uint64_t hash, robj *o, storeLook look) {
    dbPosition at;
    if (!isReadAgain(d, hash, o, look)) {
        touch(o, look);
        return compressedShow(o);
    }
    check(findPosition(d, key, hash, &at) == o);
    o = restoreAt(d, &at, o);
    touch(o, look);
    return o;
}

/* A read has found an object that expires, or is compressed. */
static NO_INLINE robj *readUnusual(db *d, slice key, uint64_t hash, storeLook look, robj *o,
                                   bool plain) {
    if (storeIsExpired(o, look)) {
        readExpired(d, o);
        noteMiss(d, key);
        return NULL;
    }
    d->hits++;
    if (plain && objectIsCompressed(o)) return readCompressed(d, key, hash, o, look);
    touch(o, look);
    return o;
}

ALWAYS_INLINE robj *findToRead(db *d, slice key, uint64_t hash, storeLook look, bool plain) {
    robj *o = peek(d, key, hash);
    if (!o) {
        noteMiss(d, key);
        return NULL;
    }
    if (unlikely(objectIsUnusual(o))) return readUnusual(d, key, hash, look, o, plain);
    d->hits++;
    touch(o, look);
    return o;
}

static NO_INLINE robj *findReadAny(db *d, slice key, uint64_t hash, storeLook look) {
    return findToRead(d, key, hash, look, true);
}

static NO_INLINE robj *findReadAnyHead(db *d, slice key, uint64_t hash, storeLook look) {
    return findToRead(d, key, hash, look, false);
}

typedef robj *findReadProc(db *d, slice key, uint64_t hash, storeLook look);

/* `any` is one of the two above. */
ALWAYS_INLINE robj *findReadUsual(db *d, slice key, uint64_t hash, storeLook look,
                                  findReadProc *any) {
    hashtablePosition at;
    if (unlikely(!isUsual(d, key))) return any(d, key, hash, look);
    tableNear near = findNear(d, key, hash, &at);
    if (near == NEAR_MISSING && likely(!storeNow.notes_misses)) {
        d->misses++;
        return NULL;
    }
    if (unlikely(near != NEAR_FOUND)) return any(d, key, hash, look);
    robj *o = wordEntryOfType(*at.word, &dbKeysType);
    if (unlikely(objectIsUnusual(o))) return any(d, key, hash, look);
    d->hits++;
    touchLru(o, look);
    return o;
}

robj *dbFindRead(db *d, slice key, uint64_t hash, storeLook look) {
    return findReadUsual(d, key, hash, look, findReadAny);
}

robj *dbFindReadHead(db *d, slice key, uint64_t hash, storeLook look) {
    return findReadUsual(d, key, hash, look, findReadAnyHead);
}

robj *dbFindReadAt(db *d, slice key, uint64_t hash, storeLook look, dbPosition *at) {
    robj *o = dbFind(d, key, hash, look, at);
    if (o) {
        d->hits++;
    } else {
        noteMiss(d, key);
    }
    return o;
}

static inline bool objectHasHash(const void *entry, const void *hash, size_t len) {
    (void)len; /* a hash */
    return hashOfObject(entry) == *(const uint64_t *)hash;
}

const robj *dbPeekHash(const db *d, uint64_t hash) {
    return hashtableInlineFind(tableOf(d, hash), &dbKeysType, hash, objectHasHash, &hash,
                               sizeof(hash));
}

/* The next step for keys whose value is behind a pointer: the head of long texts, and as much as
 * the processor does not fetch by itself when they are copied. */
static NO_INLINE void prefetchTexts(const storeWant *wants, int count) {
    enum { LINES = 4 };
    for (int i = 0; i < count; i++) {
        const robj *o = wants[i].likely;
        if (!o || objectForm(o) != FORM_POINTER || objectType(o) != TYPE_STRING) continue;
        const char *text = objectPointer(o);
        for (int line = 0; line < LINES; line++) prefetchRead(text + line * CACHE_LINE);
    }
}

void storePrefetch(storeWant *wants, int count) {
    hotCheck(threadIsMain());
    tableHint hints[STORE_WANTS_MAX];
    uint64_t flags = 0; /* of all words */
    hotCheck(count <= STORE_WANTS_MAX);
    /* Without slots the single table's header is in the cache anyway. */
    for (int i = 0; unlikely(storeNow.slotted) && i < count; i++)
        hashtableInlinePrefetchHead(tableOf(wants[i].db, wants[i].hash));
    for (int i = 0; i < count; i++)
        hints[i] = hashtableInlinePrefetch(tableOf(wants[i].db, wants[i].hash), wants[i].hash);
    for (int i = 0; i < count; i++) {
        uint64_t word = hashtableInlinePrefetchWord(hints[i]);
        wants[i].likely = wordEntry(word);
        flags |= word;
    }
    if (unlikely(flags & HASHTABLE_MARK) && count > 1) prefetchTexts(wants, count);
}

void storePrefetchItems(storeItemWant *wants, int count) {
    hotCheck(threadIsMain());
    struct {
        const valueElements *elements;
        const void *value;
        hashtable table;
        tableHint hint;
        storeItemWant *want;
    } at[STORE_ITEMS_MAX];
    int n = 0;
    hotCheck(count <= STORE_ITEMS_MAX);
    for (int i = 0; i < count; i++) {
        const valueElements *elements = typeOf(wants[i].object)->elements;
        wants[i].hash = 0;
        if (!elements) continue;
        at[n].elements = elements;
        at[n].value = objectPointer(wants[i].object);
        at[n].want = &wants[i];
        prefetchRead(at[n++].value);
    }
    for (int i = 0; i < n; i++) {
        at[i].table = at[i].elements->table_of(at[i].value);
        hashtableInlinePrefetchHead(&at[i].table);
    }
    for (int i = 0; i < n; i++) {
        bool is_text;
        uint64_t hash = at[i].elements->hash_of(at[i].want->item, &is_text);
        if (is_text) at[i].want->hash = hash;
        at[i].hint = hashtableInlinePrefetch(&at[i].table, hash);
    }
    for (int i = 0; i < n; i++) (void)hashtableInlinePrefetchEntry(at[i].hint);
}

/* ------------------------------------------------------------------ changes of one key */

static NO_INLINE void setString(db *d, slice key, const dbPosition *at, robj *old, slice value,
                                blob *take, int64_t expire_ms) {
    bool expires = expire_ms != OBJECT_NO_EXPIRE, had_time = old && objectHasExpire(old);
    if (unlikely(storeNow.tells_removals) && old) removalTell(d, old, REMOVAL_OVERWRITTEN);
    bool stays = old && !take && had_time == expires && !objectIsCompressed(old);
    if (stays && objectOverwrite(old, value)) {
        if (!expires) return;
        objectMarkRawWithTtl(old);
        dbPlace(d, at, objectSetExpire(old, expire_ms));
        return;
    }
    uint32_t access = old ? objectAccess(old) : objectAccessOf(accessFresh());
    robj *o = take ? objectNewStringTake(key, take, expire_ms, access)
                   : objectNewString(key, value, expire_ms, access, KEEP_BEST);
    if (had_time) objectMarkRawWithTtl(o);
    dbPlace(d, at, o);
    if (old) freeObject(d, old, storeNow.lazy_deleted);
}

void dbSetString(db *d, slice key, const dbPosition *at, robj *old, slice value, blob *take,
                 int64_t expire_ms) {
    hotCheck(threadIsMain());
    hotCheck(at->at.hash == storeHash(key));
    bool plain = old && !take && expire_ms == OBJECT_NO_EXPIRE &&
                 !(objectIsUnusual(old) | storeNow.tells_removals);
    if (plain && likely(objectOverwrite(old, value))) return;
    setString(d, key, at, old, value, take, expire_ms);
}

static void noteAdded(db *d, slice key) {
    if (unlikely(storeNow.notes_added) && d->in->listener) d->in->listener->added(d, key);
}

void storeSetNotes(bool added, bool missed) {
    storeNow.notes_added = added;
    storeNow.notes_misses = missed;
}

/* Rare cases of dbPlace(), in functions of their own so that the common case saves no registers. */
static NO_INLINE void insertAt(db *d, const dbPosition *at, robj *o, unsigned flags) {
    hotCheck(mayChange(d));
    if (flags & HASHTABLE_MARK) itemsNote(d, at->at.hash, o);
    if (objectLru(o) == 0) objectSetLru(o, accessFresh());
    if (unlikely(storeNow.watches)) watchedAdded(d, at->at.hash, o);
    kvstoreInsertAt(d->keys, slotOf(at->at.hash), &at->at, o, flags);
    noteAdded(d, objectKey(o));
}

static NO_INLINE void setFlagsAt(db *d, const dbPosition *at, const robj *o, unsigned flags) {
    hotCheck(at->at.word);
    kvstoreSetFlagsAt(d->keys, slotOf(at->at.hash), &at->at, flags);
    if (flags & HASHTABLE_MARK) itemsNote(d, at->at.hash, o);
}

void dbPlace(db *d, const dbPosition *at, robj *o) {
    hotCheck(threadIsMain());
    hotCheck(at->at.hash == hashOfObject(o));
    hotCheck(storeNow.used == d->in);
    unsigned flags = dbWordFlags(o);
    if (!at->at.word) {
        insertAt(d, at, o, flags);
        return;
    }
    hashtableReplaceAt(&at->at, &dbKeysType, o);
    hotCheck(savingIsConsistent(d, at->at.hash, o));
    if (unlikely(hashtableFlagsAt(&at->at) != flags)) {
        setFlagsAt(d, at, o, flags);
    } else if (flags & HASHTABLE_MARK && objectType(o) == TYPE_HASH) {
        itemsNote(d, at->at.hash, o);
    }
}

void dbPlaceReplacing(db *d, const dbPosition *at, robj *o) {
    hotCheck(threadIsMain());
    bool notes = storeNow.notes_added;
    storeNow.notes_added = false;
    dbPlace(d, at, o);
    storeNow.notes_added = notes;
}

static bool removeKey(db *d, slice key, uint64_t hash, storeLook look, bool later,
                      storeRemoval why) {
    dbPosition at;
    robj *o = findPosition(d, key, hash, &at);
    if (!o) return false;
    /* Where expired keys stay until somebody removes them, this is how. */
    if (unlikely(storeIsExpired(o, look)) && removesExpired(d, hash)) {
        o = removeFound(d, o, key, &at);
        if (!o) return false;
    }
    beforeRemoval(d, hash, o, why);
    removeAt(d, &at);
    freeObject(d, o, later);
    return true;
}

bool dbDelete(db *d, slice key, uint64_t hash, storeLook look) {
    return removeKey(d, key, hash, look, storeNow.lazy_deleted, REMOVAL_DELETED);
}

/* An empty value takes the place of this one, which is freed. */
static NO_INLINE void emptyFound(db *d, robj *o, const dbPosition *at) {
    hotCheck(objectType(o) != TYPE_STREAM);
    uint8_t empty[LISTPACK_EMPTY_SIZE];
    listpackInit(empty);
    beforeChange(d, at->at.hash, o);
    dbPlace(d, at,
            objectNewPacked(objectKey(o), objectType(o), FORM_PACKED,
                            sliceMake((const char *)empty, sizeof(empty)), OBJECT_NO_EXPIRE,
                            objectAccess(o)));
    freeObject(d, o, storeNow.lazy_deleted);
}

bool dbDeleteEmptied(db *d, slice key, uint64_t hash, storeLook look) {
    if (unlikely(storeNow.listens_removals)) {
        dbPosition at;
        robj *o = findPosition(d, key, hash, &at);
        if (o && !storeIsExpired(o, look) && objectLength(o)) emptyFound(d, o, &at);
    }
    return dbDelete(d, key, hash, look);
}

bool dbDeleteReplaced(db *d, slice key, uint64_t hash, storeLook look) {
    return removeKey(d, key, hash, look, storeNow.lazy_deleted, REMOVAL_OVERWRITTEN);
}

bool dbUnlink(db *d, slice key, uint64_t hash, storeLook look) {
    return removeKey(d, key, hash, look, true, REMOVAL_DELETED);
}

bool dbDeleteNow(db *d, slice key, uint64_t hash, storeLook look) {
    return removeKey(d, key, hash, look, false, REMOVAL_DELETED);
}

void storeSetLazyFree(bool expired, bool deleted) {
    storeNow.lazy_expired = expired;
    storeNow.lazy_deleted = deleted;
}

/* Removes an existing key from its table. */
static robj *takeKey(db *d, slice key, uint64_t hash, storeRemoval why) {
    dbPosition at;
    robj *o = findPosition(d, key, hash, &at);
    check(o != NULL);
    beforeRemoval(d, hash, o, why);
    removeAt(d, &at);
    return o;
}

void dbExpire(db *d, slice key, uint64_t hash) {
    robj *o = takeKey(d, key, hash, REMOVAL_EXPIRED);
    freeObject(d, o, storeNow.lazy_expired);
    d->in->stats.expired++;
}

/* Inserts `o` where no key exists. */
static void add(const dbKey *to, robj *o) {
    dbPosition at;
    hotCheck(mayChange(to->db));
    check(findPosition(to->db, to->key, to->hash, &at) == NULL);
    itemsNote(to->db, to->hash, o);
    objectSetMarked(o, false); /* another one's, if it was moved */
    if (unlikely(storeNow.watches)) watchedAdded(to->db, to->hash, o);
    kvstoreInsertAt(to->db->keys, slotOf(to->hash), &at.at, o, dbWordFlags(o));
    noteAdded(to->db, to->key);
}

void dbMove(const dbKey *from, const dbKey *to) {
    hotCheck(from->db != to->db || !sliceEqual(from->key, to->key));
    robj *o = takeKey(from->db, from->key, from->hash, REMOVAL_MOVED);
    add(to, sliceEqual(from->key, to->key) ? o : objectRename(o, to->key));
}

status dbCopy(const dbKey *from, const dbKey *to, robj **copy) {
    const robj *o = dbPeek(from->db, from->key, from->hash);
    check(o != NULL);
    if (!objectCanCopy(o)) return ERR_DENIED;
    *copy = objectTryCopy(o, from->db->id, to->key, to->db->id, objectAccessOf(accessFresh()));
    return *copy ? OK : ERR_NO_MEMORY;
}

void dbPut(const dbKey *to, robj *o) {
    hotCheck(to->hash == hashOfObject(o));
    (void)removeKey(to->db, to->key, to->hash, lookAtAll(), storeNow.lazy_deleted,
                    REMOVAL_DELETED); /* it may be missing */
    add(to, o);
}

uint64_t dbFlush(db *d, bool later) {
    hotCheck(mayChange(d));
    readingBeforeWhole(d);
    const keyspace *k = d->in;
    keyspace *before = keyspaceUse(d->in);
    uint64_t count = dbSize(d), others = 0;
    for (int i = 0; i < k->count; i++) {
        if (k->dbs[i] != d) others += kvstoreCountAll(k->dbs[i]->keys);
    }
    if (!savingDetach(d)) {
        others += savingDetachedKeys() + takenKeysLeft();
        freeStores(&d->keys, 1, others == 0, later);
    }
    dbMakeTables(d);
    (void)keyspaceUse(before); /* it was this one */
    return count;
}

uint64_t storeFlush(keyspace *k, bool later) {
    hotCheck(mayChange(k->dbs[0]));
    if (k == &storeNow.main) readingBeforeWhole(NULL);
    keyspace *before = keyspaceUse(k);
    uint64_t count = 0;
    int freed = 0;
    kvstore **stores = memNewArray(kvstore *, (size_t)k->count);
    for (int i = 0; i < k->count; i++) {
        count += dbSize(k->dbs[i]);
        if (!savingDetach(k->dbs[i])) stores[freed++] = k->dbs[i]->keys;
        dbMakeTables(k->dbs[i]);
    }
    freeStores(stores, freed, savingDetachedKeys() + takenKeysLeft() == 0, later);
    memFree(stores);
    (void)keyspaceUse(before); /* it was this one */
    return count;
}

/* ------------------------------------------------------------------ many keys */

void dbEach(const db *d, int slot, dbVisitProc *visit, void *arg) {
    hotCheck(slot < SLOT_COUNT);
    hotCheck(threadIsMain());
    kvstoreIterator it;
    kvstoreIteratorInit(&it, d->keys, slot, false);
    const robj *o;
    while ((o = kvstoreIteratorNext(&it, NULL))) visit(arg, o);
    kvstoreIteratorClear(&it);
}

status dbWalk(const db *d, int slot, dbWalkProc *visit, void *arg) {
    hotCheck(slot < SLOT_COUNT);
    hotCheck(threadIsMain());
    kvstoreIterator it;
    kvstoreIteratorInit(&it, d->keys, slot, false);
    const robj *o;
    status st = OK;
    while (st == OK && (o = kvstoreIteratorNext(&it, NULL))) st = visit(arg, o);
    kvstoreIteratorClear(&it);
    return st;
}

typedef struct visitor {
    dbVisitProc *visit;
    void *arg;
} visitor;

static void visitEntry(void *context, void *entry, unsigned flags) {
    (void)flags; /* all entries */
    const visitor *v = context;
    v->visit(v->arg, entry);
}

uint64_t dbScan(const db *d, uint64_t cursor, int slot, dbVisitProc *visit, void *arg) {
    hotCheck(slot < SLOT_COUNT);
    unsigned bits = HASHTABLE_CURSOR_BITS + (storeNow.slotted ? KVSTORE_SLOT_BITS_MAX : 0);
    cursor &= (UINT64_C(1) << bits) - 1;
    visitor v = {visit, arg};
    return kvstoreScan(d->keys, cursor, slot, visitEntry, &v);
}

robj *dbRandom(db *d, storeLook look) {
    enum { TRIES_MAX = 100 }; /* with EXPIRY_HIDE all keys may be expired */
    for (int tries = 0;; tries++) {
        robj *o = kvstoreRandom(d->keys, NULL);
        if (!o || !storeIsExpired(o, look)) return o;
        if (d->in->expiry == EXPIRY_DELETE) {
            dbRemoveExpired(d, o);
        } else if (tries >= TRIES_MAX) {
            return o;
        }
    }
}

bool dbHasHidden(const db *d) {
    return d->in->hidden && kvstoreCountAll(d->keys) > kvstoreCount(d->keys);
}

bool storeSlotIsHidden(const keyspace *k, int slot) {
    return k->hidden && slotMaskHas(k->hidden, slot);
}

uint64_t dbSlotCount(const db *d, int slot) { return kvstoreCountOf(d->keys, slot); }

uint64_t dbSlotVolatileCount(const db *d, int slot) {
    return kvstoreVolatileCountOf(d->keys, slot);
}

static void tellFlushed(void *arg, const robj *o) { removalTell(arg, o, REMOVAL_DELETED); }

uint64_t dbFlushSlot(db *d, int slot, bool later) {
    hotCheck(slot >= 0);
    hotCheck(slot < SLOT_COUNT);
    readingBeforeWhole(d);
    uint64_t count = dbSlotCount(d, slot);
    const hashtable *table = kvstoreTable(d->keys, slot);
    if (savingTakeSlot(d, slot, table)) savingLetGo(table);
    if (unlikely(storeNow.tells_removals)) dbEach(d, slot, tellFlushed, d);
    /* Values that are open are taken over by the walk. */
    freeTable(d, kvstoreTakeSlot(d->keys, slot), later && !storeNow.saving_values);
    return count;
}

/* ------------------------------------------------------------------ memory */

size_t dbTableMemory(const db *d) { return kvstoreBytes(d->keys); }

void dbTableStats(const db *d, hashtableStats *out) { kvstoreStatsRead(d->keys, out); }

const char *dbVerify(const db *d) { return kvstoreVerify(d->keys); }
