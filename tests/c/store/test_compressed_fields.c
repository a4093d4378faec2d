/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed values of the fields of large hashes: random histories of two databases that get the
 * same changes, of which one has dictionaries and the other one none; now and then a snapshot of
 * the former is passed on by elements. Contents, lengths and times are always the same, a snapshot
 * has those of its start, and dictionaries count as many users as elements have compressed values.
 * TEST_SCALE makes it longer. */
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/hash_element.h"
#include "store/saving.h"
#include "store/store.h"
#include "store/value_survey.h"
#include "store_test.h"

#ifdef TESTS_SANITIZED
enum { STEPS = 3000 };
#else
enum { STEPS = 12000 };
#endif
enum { KEYS = 12, NAME = 32, FIELDS = 200, TEXT = 40000 };

static const packLimits limits = {.entries = 0, .bytes = 0};
static const int64_t now_ms = 1000000000000;

static uint64_t serial; /* of commands */
static db *both[2];     /* the compressed one, its twin */
static char key_name[NAME], field_name[NAME], text[TEXT];
static slice key, field, value;
static uint64_t hash;

static bool missing(void) { return valueCodecRequire(NULL) != OK; }

static void useKey(unsigned number) {
    key = sliceMake(key_name, (size_t)snprintf(key_name, NAME, "t:%u", number));
    hash = storeHash(key);
}

static void useField(unsigned number) {
    field = sliceMake(field_name, (size_t)snprintf(field_name, NAME, "field-%u", number));
}

/* A record, seldom something short, long or incompressible. */
static void useValue(void) {
    size_t len = 0;
    uint64_t kind = randomUniform(20);
    size_t records = kind == 0 ? randomUniform(400) : 1 + randomUniform(3);
    for (size_t i = 0; i < records; i++)
        len += (size_t)snprintf(text + len, TEXT - len,
                                "{\"customer\":%u,\"branch\":\"%s\",\"open\":true}",
                                (unsigned)randomUniform(100000), i & 1 ? "Hamburg" : "Marseille");
    if (kind == 1) len = randomUniform(len);
    if (kind == 2) {
        len = 200;
        for (size_t i = 0; i < len; i++) text[i] = (char)randomUniform(256);
    }
    value = sliceMake(text, len);
}

static void addDictionary(void) {
    char sample[512];
    size_t len = 0;
    for (unsigned i = 0; i < 4; i++)
        len +=
            (size_t)snprintf(sample + len, 128, "{\"customer\":%u,\"branch\":\"%s\",\"open\":true}",
                             (unsigned)randomUniform(100000), i & 1 ? "Hamburg" : "Marseille");
    uint32_t id;
    reason why = {""};
    status st = dictionaryAdd(0, SLICE("t:"), sliceMake(sample, len), &id, &why);
    assert_true(st == OK || st == ERR_LIMIT); /* all numbers may be in use */
}

/* ------------------------------------------------------------------ changes */

static robj *find(db *d, dbPosition *at) { return dbFind(d, key, hash, lookAtAll(), at); }

static void place(db *d, const dbPosition *at, robj *o) {
    dbPlace(d, at, o);
    if (hashLength(o) == 0) (void)dbDelete(d, key, hash, lookAtAll()); /* it exists */
}

static void setField(db *d, int64_t time_ms) {
    dbPosition at;
    hashOutcome outcome;
    robj *o = find(d, &at);
    if (!o) o = hashNewLarge(key, 1);
    dbPlace(d, &at, hashSetTimed(o, field, value, time_ms, lookAtAll(), &limits, &outcome));
}

static void setTime(db *d, int64_t time_ms) {
    dbPosition at;
    robj *o = find(d, &at);
    if (!o) return;
    (void)hashSetTime(&o, field, time_ms, lookAtAll()); /* or the field is missing */
    dbPlace(d, &at, o);
}

static void removeField(db *d) {
    dbPosition at;
    robj *o = find(d, &at);
    if (!o) return;
    (void)hashDelete(&o, field, lookAtAll()); /* or the field is missing */
    place(d, &at, o);
}

static void refer(db *d) {
    static const char others[] = "bytes of somebody else, which outlive all hashes";
    dbPosition at;
    robj *o = find(d, &at);
    if (!o) return;
    (void)hashRefer(&o, field, sliceOf(others), lookAtAll()); /* or the field is missing */
    dbPlace(d, &at, o);
}

/* Removes fields whose time has passed. */
static void removeExpired(db *d) {
    dbPosition at;
    hashExpired expired;
    robj *o = find(d, &at);
    if (!o) return;
    (void)hashFindExpired(o, 0, now_ms * 2, &expired); /* those that the first buckets have */
    if (!expired.count) return;
    hashRemoveExpired(o, &expired);
    place(d, &at, o);
}

/* A slice, or all. */
static void compressSome(void) {
    static uint64_t cursor;
    robj *o = (robj *)(uintptr_t)dbPeek(both[0], key, hash);
    if (!o) return;
    hashCompression plan = {.min = 1 + randomUniform(100)};
    plan.dictionary = dictionaryOfKey(0, key);
    if (randomUniform(8) == 0) {
        bool is_compressed = storeCompressFields(both[0], o, plan.min);
        assert_int_equal(is_compressed, hashDictionary(o) != 0);
    } else {
        cursor = hashCompressSome(o, &plan, cursor);
    }
    assert_ptr_equal(dbPeek(both[0], key, hash), o);
    o = (robj *)(uintptr_t)dbPeek(both[1], key, hash);
    assert_false(storeCompressFields(both[1], o, 1)); /* no dictionary */
}

static void compactSome(void) {
    storeCompaction plan = {.budget_us = 1, .fields_max = 100, .heap = randomUniform(2)};
    storeCompactReport report = {0};
    (void)storeCompact(&plan, &report); /* whether there is more does not matter */
}

static void change(void) {
    char other[NAME];
    slice name =
        sliceMake(other, (size_t)snprintf(other, NAME, "t:%u", (unsigned)randomUniform(KEYS)));
    int64_t times[] = {HASH_NO_TIME, HASH_KEEP_TIME, now_ms * 3, now_ms + 5};
    int64_t time_ms = times[randomUniform(COUNT_OF(times))];
    unsigned what = (unsigned)randomUniform(1000);
    useField((unsigned)randomUniform(FIELDS));
    useValue();
    for (int i = 0; i < 2; i++) {
        if (what < 500) {
            setField(both[i], time_ms);
        } else if (what < 600) {
            setTime(both[i], time_ms == HASH_KEEP_TIME ? HASH_NO_TIME : time_ms);
        } else if (what < 700) {
            removeField(both[i]);
        } else if (what < 705) {
            refer(both[i]);
        } else if (what < 707) {
            removeExpired(both[i]);
        } else if (what < 715) {
            testGiveName(&(dbKey){both[i], key, hash}, name, what & 1);
        } else if (what < 716) {
            (void)dbDelete(both[i], key, hash, lookAtAll()); /* or it is missing */
        }
    }
    if (what >= 720 && what < 990) compressSome();
    if (what >= 990 && what < 998) compactSome();
    if (what == 999) addDictionary();
}

/* ------------------------------------------------------------------ comparing */

static void inspectField(void) {
    slice a, b;
    char digits[2][NUMBER_TEXT_MAX];
    size_t len = 0;
    robj *o = dbFindRead(both[0], key, hash, lookAtAll());
    robj *twin = dbFindRead(both[1], key, hash, lookAtAll());
    assert_int_equal(o != NULL, twin != NULL);
    if (!o) return;
    assert_int_equal(hashLength(o), hashLength(twin));
    assert_int_equal(hashTimedCount(o), hashTimedCount(twin));
    assert_int_equal(hashTime(o, field, lookAtAll()), hashTime(twin, field, lookAtAll()));
    bool found = hashGet(o, field, lookAtAll(), digits[0], &a);
    assert_int_equal(hashGet(twin, field, lookAtAll(), digits[1], &b), found);
    assert_int_equal(hashValueLength(o, field, lookAtAll(), &len), found);
    if (!found) return;
    assert_true(sliceEqual(a, b));
    assert_int_equal(len, a.len);
}

static void addPair(void *arg, const hashPair *pair) {
    digest own = {{0}};
    digestMix(&own, pair->field);
    digestMix(&own, pair->value);
    digestAddDigest(arg, &own);
}

static void inspectWhole(void) {
    digest sums[4] = {{{0}}};
    for (int i = 0; i < 2; i++) {
        const robj *o = dbPeek(both[i], key, hash);
        if (!o) return;
        uint64_t cursor = 0;
        do { cursor = hashScan(o, lookAtAll(), cursor, addPair, &sums[i]); } while (cursor);
        hashRandom(o, lookAtAll(), SIZE_MAX, true, addPair, &sums[2 + i]);
    }
    assert_memory_equal(&sums[0], &sums[1], sizeof(digest));
    assert_memory_equal(&sums[0], &sums[2], sizeof(digest));
    assert_memory_equal(&sums[2], &sums[3], sizeof(digest));
}

typedef struct valueCount {
    uint64_t values, text_bytes, packed_bytes, users[DICTIONARY_ID_MAX + 1];
} valueCount;

static void countElement(void *context, void *element, unsigned flags) {
    valueCount *c = context;
    const char *at = elementValuePlace(element);
    assert_int_equal(isCompressedPart(at), (flags & HASHTABLE_MARK) != 0);
    assert_int_equal(elementHasTime(element), (flags & HASHTABLE_VOLATILE) != 0);
    if (!isCompressedPart(at)) return;
    compressedPart part = partAt(at);
    c->values++;
    c->text_bytes += part.len;
    c->packed_bytes += part.packed.len;
    c->users[part.dictionary]++;
}

static void countValues(void *arg, const robj *o) {
    hashtable t = hashTableOf(o);
    uint64_t cursor = 0;
    do { cursor = hashtableScan(&t, &hashFieldsType, cursor, countElement, arg); } while (cursor);
    assert_null(hashtableVerify(&t, &hashFieldsType));
}

static void inspectCounts(void) {
    if (storeSavingRuns()) return; /* it may keep values that were removed */
    valueCount c = {0};
    compressedReport r;
    dictionaryReport d;
    digest sums[2];
    dbEach(both[0], -1, countValues, &c);
    compressedGetReport(&r);
    assert_int_equal(r.values, c.values);
    assert_int_equal(r.text_bytes, c.text_bytes);
    assert_int_equal(r.packed_bytes, c.packed_bytes);
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        if (dictionaryRead(id, &d)) assert_int_equal(d.users, c.users[id]);
        if (c.users[id]) assert_non_null(dictionaryById(id));
    }
    assert_null(dbVerify(both[0]));
    for (unsigned i = 0; i < KEYS; i++) {
        useKey(i);
        const robj *o = dbPeek(both[0], key, hash), *twin = dbPeek(both[1], key, hash);
        assert_int_equal(o != NULL, twin != NULL);
        if (!o) continue;
        memset(sums, 0, sizeof(sums));
        objectDigestAt(o, 0, lookAtAll(), &sums[0]);
        objectDigestAt(twin, 1, lookAtAll(), &sums[1]);
        assert_memory_equal(&sums[0], &sums[1], sizeof(digest));
    }
    dictionariesSweep((int64_t)serial);
}

/* ------------------------------------------------------------------ snapshots */

static digest due, passed, element_sum;
static slice head_key;
static char head_name[NAME];
static uint64_t snapshots, parted;

static void addObject(digest *to, slice name, const digest *of_value) {
    digest own = {{0}};
    digestMix(&own, name);
    digestAddDigest(&own, of_value);
    digestAddDigest(to, &own);
}

static void addDue(void *arg, const robj *o) {
    digest sum = {{0}};
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNext(&it, &pair)) addPair(&sum, &pair);
    hashIteratorClear(&it);
    addObject(arg, objectKey(o), &sum);
}

static void take(void *arg, int db_id, const robj *o) {
    (void)arg; /* there is one snapshot */
    if (db_id == 0) addDue(&passed, o);
}

static bool offer(void *arg, int db_id, const robj *o) {
    take(arg, db_id, o);
    return true;
}

static bool divides(void *arg, const robj *o) {
    (void)arg;
    return hashLength(o) > 20;
}

static int head_db;

static void beginParts(void *arg, const savedValue *v) {
    (void)arg; /* there is one snapshot */
    slice name = objectKey(v->head);
    memcpy(head_name, name.ptr, name.len);
    head_key = sliceMake(head_name, name.len);
    head_db = v->db_id;
    memset(&element_sum, 0, sizeof(element_sum));
}

static void addPart(void *arg, const valueElement *e) {
    (void)arg; /* there is one snapshot */
    addPair(&element_sum, &(hashPair){e->name, e->value});
}

static void endParts(void *arg) {
    (void)arg; /* there is one snapshot */
    if (head_db == 0) addObject(&passed, head_key, &element_sum);
    parted++;
}

static void limit(void *arg) { (void)arg; /* nothing is put aside */ }

static const storeSaver saver = {.offer = offer,
                                 .take = take,
                                 .limit = limit,
                                 .divides = divides,
                                 .begin = beginParts,
                                 .element = addPart,
                                 .end = endParts};

static void snapshotStep(void) {
    static bool runs;
    if (runs) {
        runs = storeSavingStep(1);
        if (runs) return;
        assert_memory_equal(&passed, &due, sizeof(due));
        snapshots++;
    } else if (randomUniform(200) == 0) {
        memset(&due, 0, sizeof(due));
        memset(&passed, 0, sizeof(passed));
        dbEach(both[0], -1, addDue, &due);
        storeSavingBegin(&saver, NULL);
        runs = true;
    }
}

/* ------------------------------------------------------------------ tests */

static storeFreeProc *later_free;
static void *later_garbage;

/* One value at a time is freed later, as another thread does. */
static void runLater(void) {
    if (later_free) later_free(later_garbage);
    later_free = NULL;
}

static void freeLater(storeFreeProc *free, void *garbage) {
    runLater();
    later_free = free;
    later_garbage = garbage;
}

static int setUp(void **state) {
    (void)state;
    storeInit(2, false);
    storeSetClock(now_ms);
    both[0] = storeDb(0);
    both[1] = storeDb(1);
    compressedSetSerial(&serial);
    storeSetFreeLater(freeLater);
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    runLater();
    (void)storeTakeBack(SIZE_MAX); /* all has arrived */
    storeSetFreeLater(NULL);
    storeSetPlainIdle(-1);
    storeShutdown();
    return 0;
}

static void settle(void) {
    runLater();
    assert_true(storeTakeBack(SIZE_MAX));
}

static void test_hashes_with_compressed_values_are_like_their_twins(void **state) {
    if (missing()) skip();
    testSeed("store/compressed_fields");
    addDictionary();
    uint64_t steps = STEPS * testScale();
    for (uint64_t i = 0; i < steps; i++) {
        serial++;
        storeSetPlainIdle(randomUniform(2) ? -1 : randomUniform(2) ? 100 : INT64_MAX);
        useKey((unsigned)randomUniform(KEYS));
        change();
        useKey((unsigned)randomUniform(KEYS));
        useField((unsigned)randomUniform(FIELDS));
        inspectField();
        if (i % 8 == 0) inspectWhole();
        snapshotStep();
        if (randomUniform(4) == 0) storePlainFields();
        if (randomUniform(1000) == 0) {
            settle();
            inspectCounts();
        }
        if (randomUniform(3000) == 0 && !storeSavingRuns()) {
            bool later = randomUniform(2);
            (void)dbFlush(both[0], later); /* how many does not matter */
            (void)dbFlush(both[1], later);
            settle();
            inspectCounts();
        }
    }
    compressedReport r;
    compressedGetReport(&r);
    assert_true(r.made > steps / 50);
    assert_true(r.futile > 0);
    assert_true(r.shown > steps / 50);
    assert_true(r.restored > 0);
    assert_true(snapshots > 0);
    assert_true(parted > 0);
    while (storeSavingRuns()) (void)storeSavingStep(100); /* until its end */
    settle();
    inspectCounts();
}

static void fill(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        useField(i);
        useValue();
        value = sliceMake(text, (size_t)snprintf(text, TEXT,
                                                 "{\"customer\":%u,\"branch\":\"Hamburg\",\"open\":"
                                                 "true},{\"customer\":1,\"branch\":\"Hamburg\"}",
                                                 i));
        for (int d = 0; d < 2; d++) setField(both[d], HASH_NO_TIME);
    }
}

static uint64_t compressedNow(void) {
    compressedReport r;
    compressedGetReport(&r);
    return r.values;
}

/* The walk goes through a hash in slices, also when its object is replaced in between, and stops
 * when the hash is used. */
static void test_the_walk_compresses_idle_hashes_in_slices(void **state) {
    if (missing()) skip();
    testSeed("store/compressed_fields_walk");
    addDictionary();
    useKey(1);
    fill(FIELDS);
    storeSetClock(now_ms + 50000);
    compressPlan plan = {.min = 64, .idle_s = 100, .pause_s = 0};
    while (storeCompressTurn(&plan)) {}
    assert_int_equal(compressedNow(), 0); /* it is not idle */
    storeSetClock(now_ms + 500000);
    unsigned turns = 1;
    for (; storeCompressTurn(&plan); turns++) {
        dbPosition at;
        for (int d = 0; d < 2; d++) {
            robj *o = dbFind(both[d], key, hash, lookWithoutTouch(lookAtAll()), &at);
            int64_t time_ms = turns % 2 ? now_ms * 2 : OBJECT_NO_EXPIRE;
            dbPlace(both[d], &at, objectSetExpire(o, time_ms));
        }
    }
    assert_int_equal(compressedNow(), FIELDS);
    assert_true(turns > 10);
    inspectCounts();
    /* A new dictionary: all move, as far as the hash is idle. */
    addDictionary();
    useKey(1);
    (void)storeCompressTurn(&plan); /* one slice */
    assert_non_null(dbFindRead(both[0], key, hash, lookAt(now_ms + 500000)));
    while (storeCompressTurn(&plan)) {}
    dictionaryReport d;
    assert_true(dictionaryRead(1, &d));
    assert_true(d.users > 0);
    storeSetClock(now_ms + 900000);
    while (storeCompressTurn(&plan)) {}
    assert_true(dictionaryRead(1, &d));
    assert_int_equal(d.users, 0);
    inspectCounts();
}

/* A value is stored plain when it is read for the second time, not before, and again compressed
 * when the hash has been idle. */
static void test_a_second_read_stores_a_value_plain(void **state) {
    if (missing()) skip();
    addDictionary();
    useKey(1);
    fill(FIELDS);
    robj *o = (robj *)(uintptr_t)dbPeek(both[0], key, hash);
    assert_true(storeCompressFields(both[0], o, 64));
    assert_int_equal(compressedNow(), FIELDS);
    char digits[NUMBER_TEXT_MAX];
    static const struct {
        int64_t idle_s;
        bool no_touch;
        unsigned reads, plain;
    } cases[] = {{-1, false, 9, 0}, {60, true, 9, 0},  {60, false, 1, 0},
                 {60, false, 1, 1}, {60, false, 2, 1}, {INT64_MAX, false, 1, 1}};
    uint64_t expected = FIELDS;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        useField(i < 4 ? 0 : (unsigned)i);
        storeSetPlainIdle(cases[i].idle_s);
        storeLook look = lookAt(now_ms);
        if (cases[i].no_touch) look = lookWithoutTouch(look);
        for (unsigned n = 0; n < cases[i].reads; n++) {
            serial++;
            assert_true(hashGet(o, field, look, digits, &value));
        }
        storePlainFields();
        expected -= cases[i].plain;
        assert_int_equal(compressedNow(), expected);
        serial++;
        assert_true(hashGet(o, field, lookWithoutTouch(look), digits, &value));
        assert_true(sliceHasPrefix(value, SLICE("{\"customer\":")));
    }
    /* What was noted may be gone, or another one. */
    storeSetPlainIdle(INT64_MAX);
    useField(20);
    assert_true(hashGet(o, field, lookAt(now_ms), digits, &value));
    for (int d = 0; d < 2; d++) removeField(both[d]);
    useField(21);
    assert_true(hashGet(o, field, lookAt(now_ms), digits, &value));
    for (int d = 0; d < 2; d++) (void)dbDelete(both[d], key, hash, lookAtAll()); /* it exists */
    settle();
    storePlainFields();
    assert_int_equal(compressedNow(), 0);
}

static void countSample(void *arg, slice sample) {
    assert_true(sample.len > 40);
    ++*(unsigned *)arg;
}

/* Fields are sampled, each for as many as the hash has per look; whether compressed or not. */
static void test_fields_are_samples_of_their_key(void **state) {
    if (missing()) skip();
    addDictionary();
    useKey(1);
    fill(FIELDS);
    valueSurvey *s = valueSurveyNew(1 << 20);
    const robj *o = dbPeek(both[0], key, hash);
    unsigned added = 0, kept = 0, looks = 10;
    for (unsigned i = 0; i < looks; i++) {
        if (i == looks / 2) assert_true(storeCompressFields(both[0], (robj *)(uintptr_t)o, 64));
        added += valueSurveyAddObject(s, 0, o, 64);
        assert_int_equal(valueSurveyAddObject(s, 0, o, 5000), 0); /* all are shorter */
    }
    surveyClass c;
    assert_int_equal(valueSurveyEnd(s), 1);
    valueSurveyClass(s, 0, &c);
    assert_true(sliceEqual(c.prefix, SLICE("t:")));
    assert_true(added > looks * 8);
    assert_int_equal(c.samples, added);
    assert_true(c.values > FIELDS * looks / 2);
    assert_true(c.values < FIELDS * looks * 2);
    valueSurveyEach(s, 0, countSample, &kept);
    assert_int_equal(kept, added);
    valueSurveyFree(s);
}

/* A look at long values expands few of them, and none that is not wanted. */
static void test_a_look_at_long_values_expands_few(void **state) {
    enum { LONG = 40, BYTES = 30000, FEW = 4 };
    if (missing()) skip();
    addDictionary();
    useKey(1);
    static char text[BYTES];
    memset(text, 'x', BYTES);
    for (unsigned i = 0; i < LONG; i++) {
        useField(i);
        value = sliceMake(text, BYTES);
        setField(both[0], HASH_NO_TIME);
    }
    const robj *o = dbPeek(both[0], key, hash);
    assert_true(storeCompressFields(both[0], (robj *)(uintptr_t)o, 64));
    valueSurvey *s = valueSurveyNew(1 << 20);
    compressedReport before, after;
    compressedGetReport(&before);
    assert_int_equal(valueSurveyAddObject(s, 0, o, BYTES + 1), 0);
    compressedGetReport(&after);
    assert_int_equal(after.shown, before.shown);
    unsigned added = valueSurveyAddObject(s, 0, o, 64);
    compressedGetReport(&after);
    assert_in_range(added, 1, FEW);
    assert_in_range(after.shown - before.shown, 1, FEW);
    surveyClass c;
    assert_int_equal(valueSurveyEnd(s), 1);
    valueSurveyClass(s, 0, &c);
    assert_in_range(c.values, LONG, LONG + FEW); /* those that it stands for */
    valueSurveyFree(s);
}

int test_compressed_fields(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hashes_with_compressed_values_are_like_their_twins,
                                        setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_the_walk_compresses_idle_hashes_in_slices, setUp,
                                        tearDown),
        cmocka_unit_test_setup_teardown(test_a_second_read_stores_a_value_plain, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_fields_are_samples_of_their_key, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_a_look_at_long_values_expands_few, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("compressed fields", tests, NULL, NULL);
}
