/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of databases: random changes against a model that keeps every key in an array, on a plain
 * and on a slotted store, with time going on; and what single functions promise. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/random.h"
#include "store/store.h"

enum { DBS = 3, KEYS = 300, VALUE_MAX = 3000 };

/* The expected state of a key: a text made from a number, and an expiry time. */
typedef struct modelKey {
    bool there;
    uint64_t value;
    int64_t expire_ms;
} modelKey;
static dbPosition found; /* of the last dbFind() */

static struct {
    modelKey keys[DBS][KEYS];
    int64_t now_ms;
    uint64_t told; /* by the listener */
    uint64_t next_value;
} model;

/* ------------------------------------------------------------------ keys and values */

/* Long and short keys, some of one slot. */
static slice keyOf(int index) {
    static char text[8][2048];
    static int at;
    char *t = text[at++ % 8];
    int len = snprintf(t, 64, index % 3 ? "key:%d" : "{tag}:%d", index);
    if (index % 50 == 7) {
        memset(t + len, 'x', 1500);
        len += 1500;
    }
    return sliceMake(t, (size_t)len);
}

static dbKey placeOf(int d, int index) {
    slice key = keyOf(index);
    return (dbKey){storeDb(d), key, storeHash(key)};
}

/* An integer, a short text, or one too long to be embedded. */
static slice valueOf(uint64_t number) {
    static char text[VALUE_MAX];
    size_t len = (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    if (number % 4 == 0) return sliceMake(text, len);
    size_t end = number % 4 == 3 ? 1100 + number % 1800 : len + number % 100;
    while (len < end) text[len++] = (char)('a' + number % 26);
    return sliceMake(text, len);
}

static bool hasExpired(const modelKey *k) {
    return k->there && k->expire_ms != OBJECT_NO_EXPIRE && k->expire_ms < model.now_ms;
}

static void assertValue(const robj *o, const modelKey *k) {
    char digits[NUMBER_TEXT_MAX];
    assert_non_null(o);
    assert_true(sliceEqual(objectText(o, digits), valueOf(k->value)));
    assert_true(objectExpire(o) == k->expire_ms);
}

/* ------------------------------------------------------------------ one random change */

static void setKey(int d, int index) {
    modelKey *k = &model.keys[d][index];
    dbKey at = placeOf(d, index);
    robj *old = dbFind(at.db, at.key, at.hash, lookAt(model.now_ms), &found);
    assert_int_equal(old != NULL, k->there && !hasExpired(k));
    k->there = true;
    k->value = model.next_value++;
    k->expire_ms =
        randomUniform(2) ? OBJECT_NO_EXPIRE : model.now_ms + 1 + (int64_t)randomUniform(3000);
    dbSetString(at.db, at.key, &found, old, valueOf(k->value), NULL, k->expire_ms);
}

static void getKey(int d, int index) {
    modelKey *k = &model.keys[d][index];
    dbKey at = placeOf(d, index);
    bool expired = hasExpired(k);
    assert_int_equal(dbPeek(at.db, at.key, at.hash) != NULL, k->there);
    uint64_t told = model.told;
    robj *o = randomUniform(2) ? dbFindRead(at.db, at.key, at.hash, lookAt(model.now_ms))
                               : dbFindQuiet(at.db, at.key, at.hash, lookAt(model.now_ms));
    assert_int_equal(model.told - told, expired);
    if (expired) k->there = false;
    if (k->there) {
        assertValue(o, k);
    } else {
        assert_null(o);
    }
}

static void deleteKey(int d, int index) {
    modelKey *k = &model.keys[d][index];
    dbKey at = placeOf(d, index);
    bool alive = k->there && !hasExpired(k);
    assert_int_equal(dbDelete(at.db, at.key, at.hash, lookAt(model.now_ms)), alive);
    k->there = false;
    assert_null(dbPeek(at.db, at.key, at.hash));
}

static void expireKey(int d, int index) {
    modelKey *k = &model.keys[d][index];
    dbKey at = placeOf(d, index);
    robj *o = dbFind(at.db, at.key, at.hash, lookAt(model.now_ms), &found);
    if (!o) {
        k->there = false;
        return;
    }
    static const int64_t wide[] = {INT64_MAX, INT64_C(1) << 48};
    k->expire_ms = randomUniform(3) == 0   ? OBJECT_NO_EXPIRE
                   : randomUniform(8) == 0 ? wide[randomUniform(2)]
                                           : model.now_ms + 1 + (int64_t)randomUniform(3000);
    dbPlace(at.db, &found, objectSetExpire(o, k->expire_ms));
}

/* Another key or database gets the object, or a copy. */
static void passOn(int d, int index, bool copy) {
    int to_db = (int)randomUniform(DBS), to_index = (int)randomUniform(KEYS);
    if (d == to_db && index == to_index) return;
    modelKey *from_model = &model.keys[d][index], *to_model = &model.keys[to_db][to_index];
    dbKey from = placeOf(d, index), to = placeOf(to_db, to_index);
    if (!dbFind(from.db, from.key, from.hash, lookAt(model.now_ms), &found)) {
        from_model->there = false;
        return;
    }
    (void)dbDelete(to.db, to.key, to.hash, lookAt(model.now_ms));
    *to_model = *from_model;
    if (copy) {
        assert_int_equal(copyKey(&from, &to), OK);
    } else {
        dbMove(&from, &to);
        from_model->there = false;
    }
    assertValue(dbPeek(to.db, to.key, to.hash), to_model);
}

static void flushSomething(int d, int index) {
    uint64_t want = 0;
    if (storeIsSlotted() && randomUniform(2)) {
        int slot = hashSlot(keyOf(index));
        for (int i = 0; i < KEYS; i++) {
            if (hashSlot(keyOf(i)) != slot) continue;
            want += model.keys[d][i].there;
            model.keys[d][i].there = false;
        }
        assert_int_equal(dbSlotCount(storeDb(d), slot), want);
        assert_int_equal(dbFlushSlot(storeDb(d), slot, true), want);
        return;
    }
    for (int i = 0; i < KEYS; i++) {
        want += model.keys[d][i].there;
        model.keys[d][i].there = false;
    }
    assert_int_equal(dbFlush(storeDb(d), true), want);
}

static void swapDbs(int d) {
    int other = (int)randomUniform(DBS);
    storeSwap(storeDb(d), storeDb(other));
    assert_int_equal(dbId(storeDb(d)), d);
    for (int i = 0; i < KEYS; i++) {
        modelKey kept = model.keys[d][i];
        model.keys[d][i] = model.keys[other][i];
        model.keys[other][i] = kept;
    }
}

/* ------------------------------------------------------------------ walks */

typedef struct visited {
    int d;
    int times[KEYS];
} visited;

static void visit(void *arg, const robj *o) {
    visited *v = arg;
    slice key = objectKey(o);
    for (int i = 0; i < KEYS; i++) {
        if (!sliceEqual(key, keyOf(i))) continue;
        v->times[i]++;
        assertValue(o, &model.keys[v->d][i]);
        return;
    }
    fail_msg("a key that was never set");
}

static void oneChange(void);

/* What is there from the first call to the last is visited once, whatever happens in between. */
static void scanAll(int d) {
    modelKey before[KEYS];
    memcpy(before, model.keys[d], sizeof(before));
    visited v = {.d = d};
    uint64_t cursor = 0;
    do {
        cursor = dbScan(storeDb(d), cursor, -1, visit, &v);
        dbKey extra = placeOf(d, (int)randomUniform(KEYS));
        if (randomUniform(8) == 0)
            (void)dbFindRead(extra.db, extra.key, extra.hash, lookAt(model.now_ms));
    } while (cursor);
    for (int i = 0; i < KEYS; i++) {
        dbKey at = placeOf(d, i);
        bool still = dbPeek(at.db, at.key, at.hash) != NULL;
        if (before[i].there && still) assert_int_equal(v.times[i], 1);
        assert_in_range(v.times[i], 0, 1);
        model.keys[d][i].there = still;
    }
}

static void countVisit(void *arg, const robj *o) {
    (void)o; /* counted, whatever it is */
    ++*(uint64_t *)arg;
}

static void checkDb(int d) {
    const db *at = storeDb(d);
    assert_null(dbVerify(at));
    uint64_t count = 0, volatiles = 0, walked = 0;
    visited v = {.d = d};
    for (int i = 0; i < KEYS; i++) {
        const modelKey *k = &model.keys[d][i];
        count += k->there;
        volatiles += k->there && k->expire_ms != OBJECT_NO_EXPIRE;
    }
    assert_int_equal(dbSize(at), count);
    assert_int_equal(dbVolatileCount(at), volatiles);
    dbEach(at, -1, visit, &v);
    for (int i = 0; i < KEYS; i++) assert_int_equal(v.times[i], model.keys[d][i].there);
    if (!storeIsSlotted()) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) dbEach(at, slot, countVisit, &walked);
    assert_int_equal(walked, count);
}

static void drawOne(int d) {
    robj *o = dbRandom(storeDb(d), lookAt(model.now_ms));
    bool any = false;
    for (int i = 0; i < KEYS; i++) {
        dbKey at = placeOf(d, i);
        modelKey *k = &model.keys[d][i];
        if (hasExpired(k)) k->there = dbPeek(at.db, at.key, at.hash) != NULL;
        any = any || (k->there && !hasExpired(k));
    }
    assert_int_equal(o != NULL, any);
    if (o) assert_false(objectIsExpired(o, model.now_ms));
}

/* With enough time no expired keys are left. */
static void expireAll(void) {
    storeExpireTurn(keyspaceMain(), model.now_ms, 60000000, 10);
    for (int d = 0; d < DBS; d++) {
        for (int i = 0; i < KEYS; i++) {
            if (hasExpired(&model.keys[d][i])) model.keys[d][i].there = false;
        }
        checkDb(d);
    }
}

/* ------------------------------------------------------------------ the runs */

static void oneChange(void) {
    int d = (int)randomUniform(DBS), index = (int)randomUniform(KEYS);
    uint64_t dice = randomUniform(1000);
    if (dice < 400) {
        setKey(d, index);
    } else if (dice < 600) {
        getKey(d, index);
    } else if (dice < 700) {
        deleteKey(d, index);
    } else if (dice < 800) {
        expireKey(d, index);
    } else if (dice < 940) {
        passOn(d, index, dice % 2);
    } else if (dice < 960) {
        drawOne(d);
    } else if (dice < 980) {
        model.now_ms += (int64_t)randomUniform(500);
    } else if (dice < 990) {
        scanAll(d);
    } else if (dice < 993) {
        storeTidy(1000);
    } else if (dice < 996) {
        swapDbs(d);
    } else if (dice < 998) {
        flushSomething(d, index);
    } else {
        expireAll();
    }
}

static void tellExpired(db *d, slice key) {
    model.told++;
    assert_null(dbPeek(d, key, storeHash(key)));
}

static const storeListener listener = {.expired = tellExpired};

/* Frees immediately what the store passes to a thread. */
static void freeLater(storeFreeProc *free, void *garbage) { free(garbage); }

static void runModel(bool slotted, bool later) {
    memset(&model, 0, sizeof(model));
    model.now_ms = 1000000;
    storeInit(DBS, slotted);
    storeSetListener(keyspaceMain(), &listener);
    if (later) storeSetFreeLater(freeLater);
#ifdef TESTS_SANITIZED
    uint64_t changes = 20000;
#else
    uint64_t changes = 100000;
#endif
    for (uint64_t i = 0; i < changes * testScale(); i++) {
        oneChange();
        if (i % 500 == 0) checkDb((int)randomUniform(DBS));
    }
    expireAll();
    storeShutdown();
}

static void plainStoreAgreesWithTheModel(void **state) {
    (void)state; /* nothing is set up */
    testSeed("plain store");
    runModel(false, false);
    runModel(false, true);
}

static void slottedStoreAgreesWithTheModel(void **state) {
    (void)state; /* nothing is set up */
    testSeed("slotted store");
    runModel(true, true);
}

/* ------------------------------------------------------------------ single promises */

static void fill(db *d, int count, int64_t expire_ms) {
    for (int i = 0; i < count; i++) {
        char text[32];
        slice key = sliceMake(text, (size_t)snprintf(text, sizeof(text), "k%d", i));
        robj *old = dbFind(d, key, storeHash(key), lookAt(0), &found);
        dbSetString(d, key, &found, old, SLICE("some value"), NULL, expire_ms);
    }
}

static void whatExpiryModesPromise(void **state) {
    (void)state; /* nothing is set up */
    storeInit(1, false);
    db *d = storeDb(0);
    slice key = SLICE("k0");
    uint64_t hash = storeHash(key);
    fill(d, 1, 100);
    storeSetExpiry(keyspaceMain(), EXPIRY_HIDE);
    assert_non_null(dbFindRead(d, key, hash, lookAtAll()));
    assert_non_null(dbFind(d, key, hash, lookAtAll(), &found));
    assert_non_null(dbRandom(d, lookAtAll()));
    assert_null(dbFindRead(d, key, hash, lookAt(101)));
    assert_non_null(dbRandom(d, lookAt(101))); /* there is no other */
    storeExpireTurn(keyspaceMain(), 101, 1000000, 1);
    assert_int_equal(dbSize(d), 1);
    assert_null(dbFind(d, key, hash, lookAt(101), &found));
    assert_int_equal(dbSize(d), 0);
    fill(d, 1, 100);
    storeSetExpiry(keyspaceMain(), EXPIRY_DELETE);
    storeExpireTurn(keyspaceMain(), 100, 1000000, 1);
    assert_non_null(dbFindRead(d, key, hash, lookAt(100))); /* it exists at its expiry time */
    assert_null(dbFindRead(d, key, hash, lookAt(101)));
    assert_int_equal(dbSize(d), 0);
    storeShutdown();
}

static void aCopyOfALargeValueSharesIt(void **state) {
    (void)state; /* nothing is set up */
    storeInit(1, false);
    dbKey a = {storeDb(0), SLICE("a"), storeHash(SLICE("a"))};
    dbKey b = {storeDb(0), SLICE("b"), storeHash(SLICE("b"))};
    blob *bytes = blobNew(5000);
    memset(bytes->bytes, 'x', bytes->len = 5000);
    robj *old = dbFind(a.db, a.key, a.hash, lookAt(0), &found);
    dbSetString(a.db, a.key, &found, old, SLICE(""), blobRetain(bytes), OBJECT_NO_EXPIRE);
    assert_int_equal(copyKey(&a, &b), OK);
    assert_int_equal(bytes->refs, 3);
    assert_ptr_equal(objectPointer(dbPeek(b.db, b.key, b.hash)), bytes);
    assert_int_equal(storeFlush(keyspaceMain(), false), 2);
    assert_int_equal(bytes->refs, 1);
    blobRelease(bytes);
    storeShutdown();
}

/* A value that a reply still holds survives the background thread. */
static void sharedValuesComeBackFromTheBackground(void **state) {
    (void)state; /* nothing is set up */
    storeInit(2, false);
    storeSetFreeLater(freeLater);
    dbKey a = {storeDb(0), SLICE("a"), storeHash(SLICE("a"))};
    for (int all = 0; all < 2; all++) {
        blob *bytes = blobNew(5000);
        memset(bytes->bytes, 'x', bytes->len = 5000);
        fill(storeDb(0), 2000, OBJECT_NO_EXPIRE);
        fill(storeDb(1), all ? 0 : 10, OBJECT_NO_EXPIRE);
        robj *old = dbFind(a.db, a.key, a.hash, lookAt(0), &found);
        dbSetString(a.db, a.key, &found, old, SLICE(""), blobRetain(bytes), OBJECT_NO_EXPIRE);
        assert_int_equal(dbFlush(storeDb(0), true), 2001);
        assert_int_equal(storeFreePending(), 0);
        assert_int_equal(bytes->refs, 2);
        storeTidy(0);
        assert_int_equal(bytes->refs, 1);
        blobRelease(bytes);
        (void)storeFlush(keyspaceMain(), true); /* ten or none */
    }
    storeShutdown();
}

static void whatComesBackIsFreedInPieces(void **state) {
    (void)state; /* nothing is set up */
    enum { KEYS_FREED = 2000, PIECE = 300 };
    storeInit(2, false);
    storeSetFreeLater(freeLater);
    fill(storeDb(0), KEYS_FREED, OBJECT_NO_EXPIRE);
    fill(storeDb(1), 10, OBJECT_NO_EXPIRE);
    assert_true(storeTakeBack(PIECE));
    assert_int_equal(dbFlush(storeDb(0), true), KEYS_FREED);
    int pieces = 1;
    for (size_t used = memUsed(); !storeTakeBack(PIECE); pieces++) {
        assert_true(memUsed() < used); /* each piece frees something */
        used = memUsed();
    }
    assert_int_equal(pieces, KEYS_FREED / PIECE + 1);
    assert_int_equal(dbSize(storeDb(1)), 10);
    storeShutdown();
}

static void fewVolatileKeysAreFoundAmongMany(void **state) {
    (void)state; /* nothing is set up */
    storeInit(1, false);
    db *d = storeDb(0);
    fill(d, 200000, OBJECT_NO_EXPIRE);
    fill(d, 100, 50);
    assert_int_equal(dbVolatileCount(d), 100);
    storeExpireTurn(keyspaceMain(), 49, 25000, 1);
    assert_int_equal(dbSize(d), 200000);
    assert_int_equal(dbMeanTtl(d), 1);
    storeExpireTurn(keyspaceMain(), 51, 25000, 1); /* one turn is enough */
    assert_int_equal(dbSize(d), 199900);
    assert_int_equal(storeStats(keyspaceMain()).expired, 100);
    storeShutdown();
}

static void digestsStandForContent(void **state) {
    (void)state; /* nothing is set up */
    storeInit(2, false);
    dbKey a = {storeDb(0), SLICE("k0"), storeHash(SLICE("k0"))};
    digest empty = {{0}}, one, moved, back, timed;
    storeDigest(keyspaceMain(), lookAtAll(), &one);
    assert_memory_equal(&one, &empty, sizeof(digest));
    fill(storeDb(0), 50, OBJECT_NO_EXPIRE);
    storeDigest(keyspaceMain(), lookAtAll(), &one);
    assert_memory_not_equal(&one, &empty, sizeof(digest));
    dbKey other = {storeDb(1), a.key, a.hash};
    dbMove(&a, &other);
    storeDigest(keyspaceMain(), lookAtAll(), &moved);
    assert_memory_not_equal(&moved, &one, sizeof(digest));
    dbMove(&other, &a);
    robj *o = dbFind(a.db, a.key, a.hash, lookAt(0), &found);
    dbPlace(a.db, &found, objectSetExpire(o, 1000));
    storeDigest(keyspaceMain(), lookAtAll(), &timed);
    assert_memory_not_equal(&timed, &one, sizeof(digest));
    digest early, late;
    storeDigestWithTimes(keyspaceMain(), &early);
    o = dbFind(a.db, a.key, a.hash, lookAt(0), &found);
    dbPlace(a.db, &found, objectSetExpire(o, 2000));
    storeDigest(keyspaceMain(), lookAtAll(), &back);
    assert_memory_equal(&back, &timed, sizeof(digest));
    storeDigestWithTimes(keyspaceMain(), &late);
    assert_memory_not_equal(&late, &early, sizeof(digest));
    o = dbFind(a.db, a.key, a.hash, lookAt(0), &found);
    dbPlace(a.db, &found, objectSetExpire(o, OBJECT_NO_EXPIRE));
    storeDigest(keyspaceMain(), lookAtAll(), &back);
    assert_memory_equal(&back, &one, sizeof(digest));
    storeShutdown();
}

static void accessesAreNoted(void **state) {
    (void)state; /* nothing is set up */
    storeInit(1, false);
    db *d = storeDb(0);
    slice key = SLICE("k0");
    uint64_t hash = storeHash(key);
    storeSetAccess(ACCESS_LRU, 10, 1);
    storeSetClock(5000000);
    fill(d, 1, OBJECT_NO_EXPIRE);
    storeSetClock(5060000);
    assert_int_equal(storeIdleSeconds(dbPeek(d, key, hash)), 60);
    (void)dbFindQuiet(d, key, hash, lookAt(0)); /* it is there */
    assert_int_equal(storeIdleSeconds(dbPeek(d, key, hash)), 60);
    storeLook without_touch = lookWithoutTouch(lookAt(0));
    assert_non_null(dbFindRead(d, key, hash, without_touch));
    assert_non_null(dbFind(d, key, hash, without_touch, &found));
    assert_int_equal(storeIdleSeconds(dbPeek(d, key, hash)), 60);
    assert_true(lookTouches(lookWithTouch(without_touch)));
    (void)dbFindRead(d, key, hash, lookAt(0)); /* it is there */
    assert_int_equal(storeIdleSeconds(dbPeek(d, key, hash)), 0);
    (void)storeFlush(keyspaceMain(), false); /* one key */

    storeForkBegin();
    fill(d, 1, OBJECT_NO_EXPIRE);
    storeSetClock(5070000);
    (void)dbFindRead(d, key, hash, lookAt(0)); /* it is there */
    assert_int_equal(storeIdleSeconds(dbPeek(d, key, hash)), 10);
    storeForkEnd();
    (void)dbFindRead(d, key, hash, lookAt(0)); /* it is there */
    assert_int_equal(storeIdleSeconds(dbPeek(d, key, hash)), 0);
    (void)storeFlush(keyspaceMain(), false); /* one key */

    storeSetClock(5060000);
    storeSetAccess(ACCESS_LFU, 0, 1); /* factor 0: each access counts */
    fill(d, 1, OBJECT_NO_EXPIRE);
    assert_int_equal(storeFrequency(dbPeek(d, key, hash)), 5);
    for (int i = 0; i < 20; i++) assert_non_null(dbFindRead(d, key, hash, lookAt(0)));
    assert_int_equal(storeFrequency(dbPeek(d, key, hash)), 25);
    storeSetClock(5060000 + 7 * 60000);
    assert_int_equal(storeFrequency(dbPeek(d, key, hash)), 18);
    storeSetClock(5060000 + 90 * 60000);
    assert_int_equal(storeFrequency(dbPeek(d, key, hash)), 0);
    storeShutdown();
}

int test_db(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plainStoreAgreesWithTheModel),
        cmocka_unit_test(slottedStoreAgreesWithTheModel),
        cmocka_unit_test(whatExpiryModesPromise),
        cmocka_unit_test(aCopyOfALargeValueSharesIt),
        cmocka_unit_test(whatComesBackIsFreedInPieces),
        cmocka_unit_test(sharedValuesComeBackFromTheBackground),
        cmocka_unit_test(fewVolatileKeysAreFoundAmongMany),
        cmocka_unit_test(digestsStandForContent),
        cmocka_unit_test(accessesAreNoted),
    };
    return cmocka_run_group_tests_name("store/db", tests, NULL, NULL);
}
