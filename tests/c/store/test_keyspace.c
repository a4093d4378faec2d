/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of several keyspaces: none sees another's keys, counters, expiry mode or memory; one is
 * swapped in or dropped while the other is in use. */
#include <pthread.h>
#include <stdio.h>

#include "base/base.h"
#include "ds/kvstore.h"
#include "store/db_priv.h"
#include "store/shape_priv.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store_test.h"

enum { KEYS = 3000, FIELDS = 40 };
static const packLimits limits = {.entries = 4, .bytes = 64};

static slice keyText(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "key %d", i));
}

/* Keys first to before first + count of database 0: strings, and every fourth a hash with
 * elements. */
static void fill(keyspace *k, int first, int count, slice value) {
    keyspace *before = keyspaceUse(k);
    db *d = keyspaceDb(k, 0);
    for (int i = first; i < first + count; i++) {
        char text[32], field[32];
        slice key = keyText(i, text);
        dbPosition at;
        robj *old = dbFind(d, key, storeHash(key), lookAtAll(), &at);
        if (i % 4) {
            dbSetString(d, key, &at, old, value, NULL, OBJECT_NO_EXPIRE);
            continue;
        }
        robj *o = old ? old : hashNew(key);
        bool created;
        for (int n = 0; n < FIELDS; n++)
            o = hashSet(o, keyText(n, field), value, &limits, &created);
        dbPlace(d, &at, o);
    }
    keyspaceUse(before);
}

static void inspect(const keyspace *k, int first, int count, slice value) {
    db *d = keyspaceDb(k, 0);
    assert_int_equal(dbSize(d), count);
    assert_null(dbVerify(d));
    for (int i = first; i < first + count; i++) {
        char text[32], digits[NUMBER_TEXT_MAX];
        slice key = keyText(i, text), found;
        const robj *o = dbPeek(d, key, storeHash(key));
        assert_non_null(o);
        if (i % 4) {
            found = objectText(o, digits);
        } else {
            assert_int_equal(hashLength(o), FIELDS);
            assert_true(hashGet(o, SLICE("key 7"), lookAtAll(), digits, &found));
        }
        assert_true(sliceEqual(found, value));
    }
}

/* Jobs wait until runJobs() has another thread do them, in their order. */
enum { JOBS = 1000 };
static struct {
    storeFreeProc *free;
    void *garbage;
} jobs[JOBS];
static int job_count;

static void later(storeFreeProc *free, void *garbage) {
    assert_true(job_count < JOBS);
    jobs[job_count].free = free;
    jobs[job_count++].garbage = garbage;
}

static void *work(void *arg) {
    for (int i = 0; i < job_count; i++) jobs[i].free(jobs[i].garbage);
    return arg;
}

static void runJobs(void) {
    pthread_t worker;
    assert_int_equal(pthread_create(&worker, NULL, work, NULL), 0);
    assert_int_equal(pthread_join(worker, NULL), 0);
    job_count = 0;
}

/* The same with and without a background thread, in a plain and in a slotted store. */
static void sideBySide(bool slotted, bool background) {
    storeInit(2, slotted);
    if (background) storeSetFreeLater(later);
    keyspace *main = keyspaceMain();
    fill(main, 0, KEYS, SLICE("first"));
    uint64_t main_bytes = keyspaceLiveBytes(main);
    keyspace *other = keyspaceNew();
    assert_int_equal(keyspaceLiveBytes(other), 0);
    fill(other, 100, KEYS, SLICE("second value"));
    assert_int_equal(keyspaceLiveBytes(main), main_bytes);
    inspect(main, 0, KEYS, SLICE("first"));
    inspect(other, 100, KEYS, SLICE("second value"));

    /* A delete in one that is not in use gives the block back to where it came from. */
    char text[32];
    uint64_t other_bytes = keyspaceLiveBytes(other);
    slice key = keyText(100, text);
    assert_true(dbDelete(keyspaceDb(other, 0), key, storeHash(key), lookAtAll()));
    assert_true(keyspaceLiveBytes(other) < other_bytes);
    assert_int_equal(keyspaceLiveBytes(main), main_bytes);
    fill(other, 100, 1, SLICE("second value"));
    assert_int_equal(keyspaceLiveBytes(other), other_bytes);

    /* Flushing one, entirely or by database, does not affect the other. */
    assert_int_equal(storeFlush(main, background), KEYS);
    inspect(other, 100, KEYS, SLICE("second value"));
    fill(main, 0, KEYS, SLICE("again"));
    assert_int_equal(dbFlush(keyspaceDb(other, 0), background), KEYS);
    inspect(main, 0, KEYS, SLICE("again"));
    fill(other, 100, KEYS, SLICE("second value"));

    /* Values being freed in the background do not conflict with freeing the whole keyspace. */
    for (int i = 100; background && i < 200; i++) {
        key = keyText(i, text);
        assert_true(dbUnlink(keyspaceDb(other, 0), key, storeHash(key), lookAtAll()));
    }
    keyspaceFree(other, background);
    inspect(main, 0, KEYS, SLICE("again"));
    if (background) assert_true(job_count > 0);
    runJobs();
    inspect(main, 0, KEYS, SLICE("again"));
    storeReclaim();
    assert_int_equal(storeFreePending(), 0);
    storeShutdown();
}

static void keyspacesLiveSideBySide(void **state) {
    (void)state; /* nothing is set up */
    sideBySide(false, false);
    sideBySide(true, false);
    sideBySide(false, true);
    sideBySide(true, true);
}

static void aLoadedKeyspaceIsSwappedIn(void **state) {
    (void)state; /* nothing is set up */
    storeInit(2, false);
    keyspace *main = keyspaceMain();
    db *served = storeDb(0);
    fill(main, 0, KEYS, SLICE("old"));
    keyspace *loaded = keyspaceNew();
    fill(loaded, 50, KEYS, SLICE("new"));
    char text[32];
    slice key = keyText(1, text);
    assert_non_null(dbFindRead(served, key, storeHash(key), lookAtAll()));
    keyspaceSwap(main, loaded);
    assert_ptr_equal(served, storeDb(0));
    assert_int_equal(dbId(served), 0);
    assert_ptr_equal(dbKeyspace(served), main);
    assert_int_equal(storeStats(main).hits, 1);
    assert_int_equal(storeStats(loaded).hits, 0);
    inspect(main, 50, KEYS, SLICE("new"));
    inspect(loaded, 0, KEYS, SLICE("old"));
    keyspaceFree(loaded, false);
    inspect(main, 50, KEYS, SLICE("new"));
    fill(main, 50, KEYS, SLICE("newer"));
    inspect(main, 50, KEYS, SLICE("newer"));
    storeShutdown();
}

/* Entries of a hidden slot are in no count, and alive all the same. */
static void aFlushSparesHiddenSlotsOfOtherDatabases(void **state) {
    (void)state; /* nothing is set up */
    storeInit(2, true);
    keyspace *main = keyspaceMain();
    char text[32];
    slice key = keyText(1, text);
    db *hidden = storeDb(1);
    dbPosition at;
    assert_null(dbFind(hidden, key, storeHash(key), lookAtAll(), &at));
    dbSetString(hidden, key, &at, NULL, SLICE("still there"), NULL, OBJECT_NO_EXPIRE);
    kvstoreSetVisible(hidden->keys, storeHashSlot(storeHash(key)), false);
    assert_int_equal(dbSize(hidden), 0);
    fill(main, 0, KEYS, SLICE("flushed"));
    assert_int_equal(dbFlush(storeDb(0), false), KEYS);
    const robj *o = dbPeek(hidden, key, storeHash(key));
    char digits[NUMBER_TEXT_MAX];
    assert_true(sliceEqual(objectText(o, digits), SLICE("still there")));
    storeShutdown();
}

static unsigned told;
static void tellExpired(db *d, slice key) {
    assert_ptr_equal(dbKeyspace(d), keyspaceMain());
    assert_true(key.len > 0);
    told++;
}

static void expiryIsTheKeyspacesOwn(void **state) {
    (void)state; /* nothing is set up */
    static const storeListener listener = {.expired = tellExpired};
    storeInit(1, false);
    keyspace *main = keyspaceMain(), *other = keyspaceNew();
    storeSetListener(main, &listener);
    storeSetExpiry(other, EXPIRY_HIDE);
    slice key = SLICE("key");
    uint64_t hash = storeHash(key);
    keyspace *all[] = {main, other};
    for (int i = 0; i < 2; i++) {
        keyspace *before = keyspaceUse(all[i]);
        dbPosition at;
        assert_null(dbFind(keyspaceDb(all[i], 0), key, hash, lookAtAll(), &at));
        dbSetString(keyspaceDb(all[i], 0), key, &at, NULL, SLICE("v"), NULL, 100);
        keyspaceUse(before);
        assert_null(dbFindRead(keyspaceDb(all[i], 0), key, hash, lookAt(101)));
    }
    assert_int_equal(told, 1);
    assert_int_equal(dbSize(keyspaceDb(main, 0)), 0);
    assert_int_equal(dbSize(keyspaceDb(other, 0)), 1);
    assert_int_equal(storeStats(main).expired, 1);
    assert_int_equal(storeStats(other).expired, 0);
    storeSetExpiry(other, EXPIRY_DELETE);
    storeExpireTurn(other, 101, 100000, 10);
    assert_int_equal(storeStats(other).expired, 1);
    assert_int_equal(told, 1);
    keyspaceFree(other, false);
    storeShutdown();
}

/* While a child lives both copy what they change, also one made after the fork. */
static void aForkCoversAllKeyspaces(void **state) {
    (void)state; /* nothing is set up */
    storeInit(1, false);
    keyspace *main = keyspaceMain(), *other = keyspaceNew();
    fill(main, 0, KEYS, SLICE("main"));
    fill(other, 0, KEYS, SLICE("other"));
    storeForkBegin();
    keyspace *made_later = keyspaceNew();
    fill(main, 0, KEYS, SLICE("MAIN"));
    fill(other, 0, KEYS, SLICE("OTHER"));
    fill(made_later, 0, KEYS, SLICE("LATER"));
    storeForkEnd();
    inspect(main, 0, KEYS, SLICE("MAIN"));
    inspect(other, 0, KEYS, SLICE("OTHER"));
    inspect(made_later, 0, KEYS, SLICE("LATER"));
    keyspaceFree(other, false);
    keyspaceFree(made_later, false);
    storeShutdown();
}

/* Hashes with the same names, which get a shape. */
static void fillRecords(keyspace *k, int id, int first, int count) {
    keyspace *before = keyspaceUse(k);
    db *d = keyspaceDb(k, id);
    slice words[6] = {SLICE("a"), SLICE("1"), SLICE("b"), SLICE("two"), SLICE("c"), SLICE("3")};
    for (int i = first; i < first + count; i++) {
        char text[32];
        slice key = keyText(i, text);
        dbPosition at;
        hashSetCounts counts;
        robj *o = dbFind(d, key, storeHash(key), lookAtAll(), &at);
        words[5] = key;
        dbPlace(d, &at, hashSetPairs(o, key, words, 6, lookAtAll(), &limits, &counts));
    }
    keyspaceUse(before);
}

static void inspectShapes(keyspace *main, keyspace *other, uint64_t hashes) {
    assert_null(storeVerifyShapes(main));
    if (other) assert_null(storeVerifyShapes(other));
    shapesReport r;
    shapesGetReport(&r);
    assert_in_range(r.hashes, hashes - sizeMin(hashes, SHAPE_HASHES_MIN), hashes);
}

/* Users of shapes are right whatever frees the hashes. */
static void usersOfShapes(bool slotted, bool background) {
    const shapeLimits some = {100, 10, 100}, none = {0};
    storeInit(2, slotted);
    shapeSetLimits(&some);
    if (background) storeSetFreeLater(later);
    keyspace *main = keyspaceMain(), *other = keyspaceNew();
    fillRecords(main, 0, 0, KEYS);
    fillRecords(other, 0, 0, KEYS / 2);
    fillRecords(other, 1, 0, KEYS / 2);
    inspectShapes(main, other, 2 * KEYS);

    /* One of another keyspace than the one in use. */
    char text[32];
    slice key = keyText(KEYS / 2 - 1, text);
    assert_true(dbDelete(keyspaceDb(other, 0), key, storeHash(key), lookAtAll()));
    inspectShapes(main, other, 2 * KEYS - 1);
    fillRecords(other, 0, KEYS / 2 - 1, 1);

    /* By another thread one by one, as another database has hashes, too; then all. */
    (void)dbFlush(keyspaceDb(other, 1), background);
    inspectShapes(main, other, background ? 2 * KEYS : 2 * KEYS - KEYS / 2);
    keyspaceSwap(main, other);
    inspectShapes(main, other, background ? 2 * KEYS : 2 * KEYS - KEYS / 2);
    (void)storeFlush(other, background);
    inspectShapes(main, other, background ? KEYS : KEYS / 2);
    fillRecords(other, 0, 0, 10);
    runJobs();
    storeReclaim();
    assert_int_equal(storeFreePending(), 0);
    inspectShapes(main, other, KEYS / 2 + 10);
    (void)dbFlush(keyspaceDb(main, 0), background);
    keyspaceFree(other, background);
    runJobs();
    storeReclaim();
    inspectShapes(main, NULL, 0);
    if (slotted) {
        fillRecords(main, 0, 0, KEYS);
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            (void)dbFlushSlot(storeDb(0), slot, background);
        runJobs();
        storeReclaim();
        inspectShapes(main, NULL, 0);
    }
    storeShutdown();
    shapeSetLimits(&none);
}

static void eachKeyspaceCountsTheUsersOfShapes(void **state) {
    (void)state; /* nothing is set up */
    usersOfShapes(false, false);
    usersOfShapes(true, false);
    usersOfShapes(false, true);
    usersOfShapes(true, true);
}

int test_keyspace(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyspacesLiveSideBySide),
        cmocka_unit_test(aLoadedKeyspaceIsSwappedIn),
        cmocka_unit_test(aFlushSparesHiddenSlotsOfOtherDatabases),
        cmocka_unit_test(expiryIsTheKeyspacesOwn),
        cmocka_unit_test(aForkCoversAllKeyspaces),
        cmocka_unit_test(eachKeyspaceCountsTheUsersOfShapes),
    };
    return cmocka_run_group_tests_name("keyspace", tests, NULL, testNoObjects);
}
