/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed strings: random histories of two databases that get the same changes, of which one has
 * a dictionary and the other one none; now and then a snapshot of the former is passed on in
 * slices. Values, encodings, lengths and expiry times are always the same, a snapshot has those of
 * its start, and the counts are those of the objects. TEST_SCALE makes it longer. */
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/dictionary.h"
#include "store/saving.h"
#include "store/store.h"
#include "store/type_string.h"
#include "store_test.h"

#ifdef TESTS_SANITIZED
enum { STEPS = 6000 };
#else
enum { STEPS = 60000 };
#endif
enum { KEYS = 200, NAME = 32, TEXT_MAX = 6000 };

static const char unit[] =
    "{\"user\":%u,\"name\":\"user %x\",\"roles\":[\"reader\",\"%s\"],\"created\":\"2026-11-%02u\"}";
static uint64_t serial; /* of commands */
static db *both[2];     /* the compressed one, its twin */
static slice key;       /* of this step */
static uint64_t hash;

static bool missing(void) { return valueCodecRequire(NULL) != OK; }

/* Some records, or a few bytes, or many. */
static slice randomText(void) {
    static char text[TEXT_MAX + 256];
    size_t len = 0, want = randomUniform(10) ? randomUniform(600) : randomUniform(TEXT_MAX);
    while (len < want) {
        unsigned n = (unsigned)randomUniform(100000);
        len += (size_t)snprintf(text + len, 256, unit, n, n * 7919, n & 1 ? "writer" : "auditor",
                                n % 30 + 1);
    }
    return sliceMake(text, randomUniform(4) ? len : sizeMin(len, randomUniform(140)));
}

static void addDictionary(void) {
    char text[8 * 256];
    size_t len = 0;
    for (unsigned i = 0; i < 8; i++)
        len += (size_t)snprintf(text + len, 256, unit, i, (unsigned)randomUniform(65536), "writer",
                                i + 1);
    uint32_t id;
    reason why = {""};
    status st = dictionaryAdd(0, SLICE("t:"), sliceMake(text, len), &id, &why);
    assert_true(st == OK || st == ERR_LIMIT); /* all numbers may be in use */
}

/* ------------------------------------------------------------------ changes */

static int64_t randomTime(void) {
    static const int64_t times[] = {OBJECT_NO_EXPIRE, 1000000000000, 1 << 20, INT64_C(1) << 50};
    return times[randomUniform(COUNT_OF(times))];
}

static void set(db *d, slice text, int64_t time_ms) {
    dbPosition at;
    robj *old = dbFindHead(d, key, hash, lookAtAll(), &at);
    dbSetString(d, key, &at, old, text, NULL, time_ms);
}

static void append(db *d, slice text) {
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAtAll(), &at);
    if (!o) return;
    assert_false(objectIsCompressed(o));
    size_t len = stringLen(o);
    char *bytes;
    assert_int_equal(stringStretch(&o, len + text.len, &bytes), OK);
    memcpy(bytes + len, text.ptr, text.len);
    dbPlace(d, &at, o);
}

static void setTime(db *d, int64_t time_ms) {
    dbPosition at;
    robj *o = dbFindHead(d, key, hash, lookAtAll(), &at);
    if (o) dbPlace(d, &at, objectSetExpire(o, time_ms));
}

static void compressSome(void) {
    const robj *o = dbPeek(both[0], key, hash);
    if (!o) return;
    uint32_t access = objectAccess(o);
    if (!storeCompressKey(both[0], o, 1)) return;
    o = dbPeek(both[0], key, hash);
    assert_true(objectIsCompressed(o));
    assert_int_equal(objectAccess(o), access);
    o = dbPeek(both[1], key, hash);
    assert_false(storeCompressKey(both[1], o, 1)); /* has no dictionary */
}

static void change(void) {
    char other[NAME];
    slice name =
        sliceMake(other, (size_t)snprintf(other, NAME, "t:%u", (unsigned)randomUniform(KEYS)));
    slice text = randomText();
    int64_t time_ms = randomTime();
    unsigned what = (unsigned)randomUniform(16);
    for (int i = 0; i < 2; i++) {
        switch (what) {
        case 0:
        case 1: set(both[i], text, time_ms); break;
        case 2: append(both[i], sliceMake(text.ptr, sizeMin(text.len, 40))); break;
        case 3:
        case 4: setTime(both[i], time_ms); break;
        case 5: testGiveName(&(dbKey){both[i], key, hash}, name, false); break;
        case 6: testGiveName(&(dbKey){both[i], key, hash}, name, true); break;
        case 7: (void)dbDelete(both[i], key, hash, lookAtAll()); break; /* or it is missing */
        default: break;
        }
    }
    if (what >= 8) compressSome();
    if (what == 15 && randomUniform(20) == 0) addDictionary();
}

/* ------------------------------------------------------------------ comparing */

static void inspect(void) {
    const robj *o = dbPeek(both[0], key, hash), *twin = dbPeek(both[1], key, hash);
    assert_int_equal(o != NULL, twin != NULL);
    if (!o) return;
    digest a = {{0}}, b = {{0}};
    objectDigestAt(o, 0, lookAtAll(), &a);
    objectDigestAt(twin, 1, lookAtAll(), &b);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(stringLen(o), stringLen(twin));
    assert_int_equal(objectExpire(o), objectExpire(twin));
    assert_int_equal(objectHasExpire(o), objectHasExpire(twin));
    assert_string_equal(objectStringEncoding(o), objectStringEncoding(twin));
    bool was_compressed = objectIsCompressed(o);
    storeSetPlainIdle(randomUniform(8) ? -1 : INT64_MAX);
    const robj *shown = dbFindRead(both[0], key, hash, lookAtAll());
    twin = dbFindRead(both[1], key, hash, lookAtAll());
    assert_false(objectIsCompressed(shown));
    assert_true(was_compressed || shown == o);
    char digits[2][NUMBER_TEXT_MAX];
    assert_true(sliceEqual(objectText(shown, digits[0]), objectText(twin, digits[1])));
    assert_true(sliceEqual(objectKey(shown), key));
    assert_int_equal(objectExpire(shown), objectExpire(twin));
    assert_string_equal(objectStringEncoding(shown), objectStringEncoding(twin));
}

typedef struct valueCount {
    uint64_t values, text_bytes, users[DICTIONARY_ID_MAX + 1];
} valueCount;

static void count(void *arg, const robj *o) {
    valueCount *c = arg;
    if (!objectIsCompressed(o)) return;
    compressedValue v = compressedRead(o);
    c->values++;
    c->text_bytes += v.len;
    c->users[v.dictionary]++;
}

static void inspectCounts(void) {
    valueCount c = {0};
    compressedReport r;
    dictionaryReport d;
    dbEach(both[0], -1, count, &c);
    compressedGetReport(&r);
    assert_int_equal(r.values, c.values);
    assert_int_equal(r.text_bytes, c.text_bytes);
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        if (dictionaryRead(id, &d)) assert_int_equal(d.users, c.users[id]);
        if (c.users[id]) assert_non_null(dictionaryById(id));
    }
    assert_null(dbVerify(both[0]));
    dictionariesSweep((int64_t)serial);
}

/* ------------------------------------------------------------------ snapshots */

static digest due, passed;
static uint64_t due_count, passed_count;

static void addTo(digest *to, const robj *o) {
    digest own = {{0}};
    digestMix(&own, objectKey(o));
    objectDigestAt(o, 0, lookAtAll(), &own);
    digestAddDigest(to, &own);
}

static void take(void *arg, int db_id, const robj *o) {
    (void)arg; /* there is one snapshot */
    if (db_id) return;
    addTo(&passed, o);
    passed_count++;
}

static bool offer(void *arg, int db_id, const robj *o) {
    take(arg, db_id, o);
    return true;
}

static void addDue(void *arg, const robj *o) {
    (void)arg; /* there is one snapshot */
    addTo(&due, o);
    due_count++;
}

static const storeSaver saver = {.offer = offer, .take = take};

static void snapshotStep(void) {
    static bool runs;
    if (runs) {
        runs = storeSavingStep(1);
        if (runs) return;
        assert_int_equal(passed_count, due_count);
        assert_memory_equal(&passed, &due, sizeof(due));
    } else if (randomUniform(200) == 0) {
        memset(&due, 0, sizeof(due));
        memset(&passed, 0, sizeof(passed));
        due_count = passed_count = 0;
        dbEach(both[0], -1, addDue, NULL);
        storeSavingBegin(&saver, NULL);
        runs = true;
    }
}

/* ------------------------------------------------------------------ tests */

static int setUp(void **state) {
    (void)state;
    storeInit(2, false);
    storeSetClock(1000000000000);
    both[0] = storeDb(0);
    both[1] = storeDb(1);
    compressedSetSerial(&serial);
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    storeSetPlainIdle(-1);
    storeShutdown();
    return 0;
}

static void useKey(unsigned number) {
    static char name[NAME];
    key = sliceMake(name, (size_t)snprintf(name, NAME, "t:%u", number));
    hash = storeHash(key);
}

static void test_a_compressed_value_is_like_its_twin(void **state) {
    if (missing()) skip();
    testSeed("store/compressed");
    addDictionary();
    uint64_t steps = STEPS * testScale();
    for (uint64_t i = 0; i < steps; i++) {
        serial++;
        useKey((unsigned)randomUniform(KEYS));
        change();
        inspect();
        snapshotStep();
        if (i % 500 == 0) inspectCounts();
        if (randomUniform(10000) == 0 && !storeSavingRuns()) {
            (void)dbFlush(both[0], false); /* how many does not matter */
            (void)dbFlush(both[1], false);
            inspectCounts();
        }
    }
    compressedReport r;
    compressedGetReport(&r);
    assert_true(r.made > steps / 50);
    assert_true(r.futile > 0);
    assert_true(r.shown > steps / 50);
    assert_true(r.restored > 0);
    while (storeSavingRuns()) (void)storeSavingStep(100); /* until its end */
}

static void test_the_walk_compresses_what_is_idle(void **state) {
    if (missing()) skip();
    addDictionary();
    enum { IDLE_S = 100 };
    compressPlan plan = {.min = 64, .idle_s = IDLE_S, .pause_s = 10, .budget_us = 1};
    char text[256];
    size_t len = (size_t)snprintf(text, sizeof(text), unit, 1u, 2u, "writer", 3u);
    for (unsigned i = 0; i < KEYS; i++) {
        useKey(i);
        set(both[0], sliceMake(text, len), OBJECT_NO_EXPIRE);
        if (i % 2) continue;
        dbPosition at;
        storeSetObjectAccess(dbFind(both[0], key, hash, lookAtAll(), &at), 2 * IDLE_S, -1);
    }
    compressedReport r;
    unsigned turns = 0;
    while (storeCompressTurn(&plan)) turns++;
    assert_true(turns > 10); /* each has time for one value */
    compressedGetReport(&r);
    assert_int_equal(r.values, KEYS / 2);
    /* The next pass waits for its time, and then finds what has become idle. */
    storeSetClock(storeNow.now_ms + 9000);
    assert_false(storeCompressTurn(&plan));
    storeSetClock(storeNow.now_ms + IDLE_S * 1000);
    while (storeCompressTurn(&plan)) {}
    compressedGetReport(&r);
    assert_int_equal(r.values, KEYS);
    /* With a child that shares pages nothing is done. */
    useKey(1);
    set(both[0], sliceMake(text, len), OBJECT_NO_EXPIRE);
    storeForkBegin();
    assert_false(storeCompressKey(both[0], dbPeek(both[0], key, hash), 1));
    storeForkEnd();
    assert_true(storeCompressKey(both[0], dbPeek(both[0], key, hash), 1));
}

/* Random digits have no parts in common, but each takes half of its byte. */
static void test_digits_take_less_memory(void **state) {
    if (missing()) skip();
    enum { DIGITS = 64, SAMPLES = 2000, SIZE = 8192 };
    testSeed("store/compressed");
    char *samples = memAlloc((size_t)SAMPLES * DIGITS), *bytes = memAlloc(SIZE), text[DIGITS];
    size_t lengths[SAMPLES];
    for (size_t i = 0; i < (size_t)SAMPLES * DIGITS; i++)
        samples[i] = "0123456789abcdef"[randomUniform(16)];
    for (size_t i = 0; i < SAMPLES; i++) lengths[i] = DIGITS;
    size_t size = valueCodecTrain(samples, lengths, SAMPLES, bytes, SIZE);
    uint32_t id;
    reason why = {""};
    assert_true(size > 0);
    assert_int_equal(dictionaryAdd(0, SLICE("t:"), sliceMake(bytes, size), &id, &why), OK);
    unsigned compressed = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        useKey(i);
        for (size_t j = 0; j < DIGITS; j++) text[j] = "0123456789abcdef"[randomUniform(16)];
        set(both[0], sliceMake(text, DIGITS), OBJECT_NO_EXPIRE);
        const robj *o = dbPeek(both[0], key, hash);
        size_t plain = slabClassSize(objectSize(o));
        if (!storeCompressKey(both[0], o, 1)) continue;
        compressed++;
        size_t taken = slabClassSize(objectSize(dbPeek(both[0], key, hash)));
        assert_true(taken + 16 <= plain);
    }
    assert_true(compressed > KEYS * 9 / 10);
    memFree(samples);
    memFree(bytes);
}

static void test_the_memory_of_a_command_ends_with_it(void **state) {
    if (missing()) skip();
    addDictionary();
    useKey(1);
    static char text[40000];
    for (size_t i = 0; i < sizeof(text); i++) text[i] = unit[i % 60];
    set(both[0], sliceMake(text, sizeof(text)), OBJECT_NO_EXPIRE);
    assert_true(storeCompressKey(both[0], dbPeek(both[0], key, hash), 1));
    storeSetPlainIdle(-1);
    serial++;
    const robj *first = dbFindRead(both[0], key, hash, lookAtAll());
    const robj *second = dbFindRead(both[0], key, hash, lookAtAll());
    assert_ptr_not_equal(first, second);
    assert_memory_equal(objectEmbedded(first).ptr, text, sizeof(text));
    assert_memory_equal(objectEmbedded(second).ptr, text, sizeof(text));
    size_t used = memUsed();
    for (int i = 0; i < 100; i++) {
        serial++;
        (void)dbFindRead(both[0], key, hash, lookAtAll()); /* only its memory matters */
    }
    assert_true(memUsed() <= used);
    compressedReclaim();
    assert_true(memUsed() < used);
}

int test_compressed(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_compressed_value_is_like_its_twin, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_the_walk_compresses_what_is_idle, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_digits_take_less_memory, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_the_memory_of_a_command_ends_with_it, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("compressed strings", tests, NULL, NULL);
}
