/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/saving: whatever happens to the keyspace during the walk, the saver gets each object of the start exactly once, as
 * it was then, in the database in which it was then; afterwards no object has a mark. TEST_SCALE makes it longer. */
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/db_priv.h"
#include "store/saving.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store_test.h"

#ifdef TESTS_SANITIZED
enum { ROUNDS = 60 };
#else
enum { ROUNDS = 250 };
#endif
enum { DBS = 4, KEYS = 1200 };
static const packLimits limits = {.entries = 6, .bytes = 64};

/* What is known of a key of the start. */
typedef struct record {
    bool present, written;
    digest value;
} record;
static record model[DBS][KEYS];
static uint64_t due, written;
static int64_t now_ms;
static bool refuses, may_refuse;

static slice keyText(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "key %d", i));
}

static int keyNumber(const robj *o) {
    slice key = objectKey(o);
    int number = 0;
    for (size_t i = 4; i < key.len; i++) number = number * 10 + (key.ptr[i] - '0');
    return number;
}

static digest digestOf(const robj *o) {
    digest sum = {{0}};
    int64_t expire_ms = objectExpire(o);
    objectDigest(o, lookAtAll(), &sum);
    digestMix(&sum, sliceMake((const char *)&expire_ms, sizeof(expire_ms)));
    return sum;
}

/* ------------------------------------------------------------------ the saver */

static void take(void *arg, int db_id, const robj *o) {
    (void)arg; /* everything is static */
    record *r = &model[db_id][keyNumber(o)];
    digest now = digestOf(o);
    assert_true(r->present);
    assert_false(r->written);
    assert_memory_equal(&r->value, &now, sizeof(now));
    r->written = true;
    written++;
}

static bool offer(void *arg, int db_id, const robj *o) {
    if (may_refuse && randomUniform(60) == 0) refuses = true;
    if (refuses) return false;
    take(arg, db_id, o);
    return true;
}

static const storeSaver saver = {.offer = offer, .take = take};

static void noteKey(void *arg, const robj *o) {
    record *of_db = arg;
    of_db[keyNumber(o)] = (record){.present = true, .value = digestOf(o)};
    due++;
}

static void countMark(void *arg, const robj *o) { *(uint64_t *)arg += objectIsMarked(o); }

static uint64_t marks(void) {
    uint64_t count = 0;
    for (int i = 0; i < DBS; i++) dbEach(storeDb(i), -1, countMark, &count);
    return count;
}

/* ------------------------------------------------------------------ changes */

static char text_bytes[3000];

static slice anyText(void) {
    size_t len = randomUniform(randomUniform(20) ? 40 : sizeof(text_bytes));
    for (size_t i = 0; i < len; i++) text_bytes[i] = (char)('a' + randomUniform(26));
    return sliceMake(text_bytes, len);
}

static int64_t anyTime(void) {
    if (randomUniform(3)) return OBJECT_NO_EXPIRE;
    return now_ms + 1 + (int64_t)randomUniform(2000);
}

static void changeHash(db *d, slice key, uint64_t hash) {
    char field[32], digits[32];
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_HASH) return;
    if (!o) o = hashNew(key);
    bool created;
    hashOutcome outcome;
    for (unsigned n = 1 + (unsigned)randomUniform(10); n > 0; n--) {
        slice value =
            sliceMake(digits, (size_t)snprintf(digits, 32, "%d", (int)randomUniform(1000)));
        slice name = keyText((int)randomUniform(30), field);
        if (randomUniform(4) == 0) {
            o = hashSetTimed(o, name, value, now_ms + 1 + (int64_t)randomUniform(1000),
                             lookAt(now_ms), &limits, &outcome);
        } else {
            o = hashSet(o, name, value, &limits, &created);
        }
    }
    dbPlace(d, &at, o);
}

static void setString(db *d, slice key, uint64_t hash) {
    dbPosition at;
    robj *old = dbFind(d, key, hash, lookAt(now_ms), &at);
    slice value = randomUniform(3) ? anyText() : SLICE("12345");
    dbSetString(d, key, &at, old, value, NULL, anyTime());
}

static void setTime(db *d, slice key, uint64_t hash) {
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o) dbPlace(d, &at, objectSetExpire(o, anyTime()));
}

static void moveOrCopy(db *d, slice key, uint64_t hash, bool copies) {
    char text[32];
    dbKey from = {d, key, hash}, to = {.db = storeDb((int)randomUniform(DBS))};
    to.key = keyText((int)randomUniform(KEYS), text);
    to.hash = storeHash(to.key);
    if (!dbPeek(d, key, hash) || dbPeek(to.db, to.key, to.hash)) return;
    (copies ? dbCopy : dbMove)(&from, &to);
}

static void passTime(void) {
    now_ms += (int64_t)randomUniform(40);
    storeSetClock(now_ms);
    if (randomUniform(2)) storeExpireTurn(keyspaceMain(), now_ms, 1000000, 10);
}

static void changeTables(db *d, uint64_t hash) {
    switch (randomUniform(6)) {
    case 0: (void)dbFlush(d, randomUniform(2)); break; /* how many does not matter */
    case 1:
        if (randomUniform(10) == 0) (void)storeFlush(keyspaceMain(), false); /* likewise */
        break;
    case 2:
        if (storeIsSlotted()) (void)dbFlushSlot(d, storeHashSlot(hash), false); /* likewise */
        break;
    default: storeSwap(d, storeDb((int)randomUniform(DBS)));
    }
}

static void operate(void) {
    char text[32];
    db *d = storeDb((int)randomUniform(randomUniform(2) ? 1 : DBS));
    slice key = keyText((int)randomUniform(KEYS), text);
    uint64_t hash = storeHash(key);
    evictRule rule = {.order = (evictOrder)randomUniform(4), .samples = 5};
    rule.only_volatile = rule.order == EVICT_TTL;
    switch (randomUniform(16)) {
    case 0:
    case 1: changeHash(d, key, hash); break;
    case 2: (void)dbDelete(d, key, hash, lookAt(now_ms)); break; /* if it exists */
    case 3: (void)dbUnlink(d, key, hash, lookAt(now_ms)); break; /* likewise */
    case 4: setTime(d, key, hash); break;
    case 5: moveOrCopy(d, key, hash, false); break;
    case 6: moveOrCopy(d, key, hash, true); break;
    case 7:
        if (randomUniform(10) == 0) passTime();
        break;
    case 8:
        if (randomUniform(4) == 0) (void)storeEvictOne(keyspaceMain(), &rule); /* if any may go */
        break;
    case 9:
        if (randomUniform(storeIsSlotted() ? 10 : 100) == 0) changeTables(d, hash);
        break;
    case 10: (void)dbFindRead(d, key, hash, lookAt(now_ms)); break; /* may remove it */
    case 11:
        if (randomUniform(50) == 0) storeTidy(100);
        break;
    default: setString(d, key, hash);
    }
}

/* ------------------------------------------------------------------ rounds */

static void noteStart(void) {
    memset(model, 0, sizeof(model));
    due = written = 0;
    for (int i = 0; i < DBS; i++) dbEach(storeDb(i), -1, noteKey, model[i]);
}

static void oneWalk(bool abandons) {
    for (int i = (int)randomUniform(3000); i > 0; i--) operate();
    noteStart();
    storeSavingBegin(&saver);
    unsigned pace = 1 + (unsigned)randomUniform(60);
    may_refuse = randomUniform(2);
    do {
        refuses = false;
        for (unsigned i = (unsigned)randomUniform(pace); i > 0; i--) operate();
        if (abandons && randomUniform(20) == 0) storeSavingAbandon();
    } while (storeSavingStep(1 + randomUniform(8)));
    if (!abandons) assert_int_equal(written, due);
    assert_false(storeSavingRuns());
    assert_int_equal(marks(), 0);
    for (int i = 0; i < DBS; i++) assert_null(dbVerify(storeDb(i)));
}

static void manyWalks(bool slotted, uint64_t rounds) {
    now_ms = 1700000000000;
    storeInit(DBS, slotted);
    storeSetClock(now_ms);
    for (uint64_t i = 0; i < rounds; i++) oneWalk(i % 5 == 4);
    noteStart();
    storeSavingBegin(&saver); /* a shutdown during a walk */
    (void)storeSavingStep(1);
    (void)dbFlush(storeDb(0), true);
    storeShutdown();
}

static void test_each_object_of_the_start_is_passed_on_once_as_it_was(void **state) {
    (void)state;
    testSeed(__func__);
    manyWalks(false, ROUNDS * testScale());
}

static void test_the_same_with_a_table_per_slot(void **state) {
    (void)state;
    testSeed(__func__);
    manyWalks(true, ROUNDS / 10 * testScale());
}

static void test_swapping_keyspaces_abandons_the_walk(void **state) {
    (void)state;
    testSeed(__func__);
    storeInit(DBS, false);
    for (int i = 0; i < 500; i++) operate();
    noteStart();
    storeSavingBegin(&saver);
    (void)storeSavingStep(1);
    for (int i = 0; i < 100; i++) operate();
    keyspace *other = keyspaceNew();
    keyspaceSwap(keyspaceMain(), other);
    assert_true(storeSavingIsAbandoned());
    keyspaceFree(other, false);
    while (storeSavingStep(64)) {}
    storeShutdown();
}

int test_saving(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_object_of_the_start_is_passed_on_once_as_it_was),
        cmocka_unit_test(test_the_same_with_a_table_per_slot),
        cmocka_unit_test(test_swapping_keyspaces_abandons_the_walk),
    };
    return cmocka_run_group_tests_name("saving", tests, NULL, testNoObjects);
}
