/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed collections: random histories of two databases that get the same changes, of which one
 * has a dictionary and the other one none; now and then a snapshot of the former is passed on in
 * slices. Contents, encodings, lengths and expiry times are always the same, a snapshot has those
 * of its start, and the counts of dictionaries and shapes are those of the objects. TEST_SCALE
 * makes it longer. */
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/dictionary.h"
#include "store/hash_record.h"
#include "store/saving.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_set.h"
#include "store/type_zset.h"
#include "store_test.h"

#ifdef TESTS_SANITIZED
enum { STEPS = 6000 };
#else
enum { STEPS = 60000 };
#endif
enum { KEYS = 120, NAME = 32, WORDS = 24, WORD = 96 };

static const packLimits limits = {.entries = 40, .bytes = WORD};
static const setLimits set_limits = {.packed = {.entries = 40, .bytes = WORD}, .ints = 60};
static const listLimits list_limits = {.fill = 40, .depth = 0};
static const char *const fields[] = {"name", "version", "licence", "homepage", "author", "mirror"};

static uint64_t serial; /* of commands */
static db *both[2];     /* the compressed one, its twin */
static slice key;       /* of this step */
static uint64_t hash;
static valueType key_type;

/* What a step adds or removes: the same in both databases. */
static char text[WORDS][WORD];
static slice words[WORDS];
static int64_t numbers[WORDS];
static unsigned count;

static bool missing(void) { return valueCodecRequire(NULL) != OK; }

static void randomWords(void) {
    count = 1 + (unsigned)randomUniform(randomUniform(3) ? 3 : WORDS);
    for (unsigned i = 0; i < count; i++) {
        unsigned n = (unsigned)randomUniform(50);
        numbers[i] = 10000000000 + 7 * (int64_t)n;
        words[i] = sliceMake(
            text[i], (size_t)snprintf(text[i], WORD,
                                      randomUniform(8) ? "customer:%04u of the branch in %s" : "%u",
                                      n, n & 1 ? "Hamburg" : "Marseille"));
    }
}

static void addDictionary(void) {
    char sample[1024];
    size_t len = 0;
    for (unsigned i = 0; i < 8; i++)
        len += (size_t)snprintf(sample + len, 128, "\xa2%s\x0a customer:%04u of the branch in %s",
                                fields[i % COUNT_OF(fields)], (unsigned)randomUniform(500),
                                i & 1 ? "Hamburg" : "Marseille");
    uint32_t id;
    reason why = {""};
    status st = dictionaryAdd(0, SLICE("t:"), sliceMake(sample, len), &id, &why);
    assert_true(st == OK || st == ERR_LIMIT); /* all numbers may be in use */
}

/* ------------------------------------------------------------------ changes */

/* Sets have numbers or texts. */
static listpackItem memberAt(unsigned i) {
    return hash & 2 ? listpackItemInt(numbers[i]) : listpackItemOf(words[i]);
}

static robj *addToList(robj *o) {
    if (!o) o = listNew(key);
    o = listPrepare(o, words, count, &list_limits);
    return listPush(o, words, count, count & 1);
}

static robj *addToSet(robj *o) {
    listpackItem first = memberAt(0);
    if (!o) o = setNew(key, &first, count, &set_limits);
    for (unsigned i = 0; i < count; i++) {
        listpackItem member = memberAt(i);
        bool added;
        o = setAdd(o, &member, &set_limits, &added);
    }
    return o;
}

static robj *addToZset(robj *o) {
    o = o ? zsetPrepare(o, count, WORD, &limits) : zsetNew(key, count, WORD, &limits);
    for (unsigned i = 0; i < count; i++) {
        zsetPair pair = {words[i], (double)numbers[i] / 8};
        zsetAdded added;
        o = zsetAdd(o, &pair, 0, &limits, &added);
    }
    return o;
}

/* Fields of one of a few shapes, or others. */
static robj *addToHash(robj *o) {
    slice pairs[2 * WORDS];
    char names[WORDS][NAME];
    bool shaped = hash & 4;
    for (unsigned i = 0; i < count; i++) {
        size_t len =
            shaped ? (size_t)snprintf(names[i], NAME, "%s", fields[i % COUNT_OF(fields)])
                   : (size_t)snprintf(names[i], NAME, "field-%lld", (long long)(numbers[i] % 1000));
        pairs[2 * i] = sliceMake(names[i], len);
        pairs[2 * i + 1] = words[i];
    }
    hashSetCounts counts;
    return hashSetPairs(o, key, pairs, 2 * (size_t)count, lookAtAll(), &limits, &counts);
}

static void add(db *d) {
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAtAll(), &at);
    if (o) assert_false(objectIsCompressed(o));
    switch (key_type) {
    case TYPE_LIST: o = addToList(o); break;
    case TYPE_SET: o = addToSet(o); break;
    case TYPE_ZSET: o = addToZset(o); break;
    default: o = addToHash(o); break;
    }
    dbPlace(d, &at, o);
}

static void removeField(robj **o) {
    hashIterator it;
    hashPair pair;
    char name[NAME];
    size_t len = 0;
    hashIteratorInit(&it, *o, lookAtAll());
    for (unsigned i = 0; i < count && hashNext(&it, &pair); i++) {
        len = pair.field.len;
        memcpy(name, pair.field.ptr, len);
    }
    hashIteratorClear(&it);
    assert_true(hashDelete(o, sliceMake(name, len), lookAtAll()));
}

static void removeSome(db *d) {
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAtAll(), &at);
    if (!o) return;
    switch (key_type) {
    case TYPE_LIST: o = listTryPack(listDelete(o, 0, count), &list_limits); break;
    case TYPE_SET:
        for (unsigned i = 0; i < count && setLength(o); i++) {
            listpackItem member = memberAt(i);
            (void)setRemove(&o, &member); /* or it is missing */
        }
        break;
    case TYPE_ZSET:
        for (unsigned i = 0; i < count && zsetLength(o); i++)
            (void)zsetRemove(&o, words[i]); /* or it is missing */
        break;
    default: removeField(&o);
    }
    dbPlace(d, &at, o);
    if (objectLength(o) == 0) (void)dbDelete(d, key, hash, lookAtAll()); /* it exists */
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
    assert_false(storeCompressKey(both[1], dbPeek(both[1], key, hash), 1)); /* no dictionary */
}

static void change(void) {
    static const int64_t times[] = {OBJECT_NO_EXPIRE, 1000000000000, 1 << 20, INT64_C(1) << 50};
    char other[NAME];
    /* Of the same type: its number differs by a multiple of four. */
    unsigned number = (unsigned)randomUniform(KEYS / 4) * 4 + (unsigned)(key_type - TYPE_LIST);
    slice name = sliceMake(other, (size_t)snprintf(other, NAME, "t:%u", number));
    int64_t time_ms = times[randomUniform(COUNT_OF(times))];
    unsigned what = (unsigned)randomUniform(18);
    randomWords();
    for (int i = 0; i < 2; i++) {
        switch (what) {
        case 0:
        case 1:
        case 2: add(both[i]); break;
        case 3: removeSome(both[i]); break;
        case 4:
        case 5: setTime(both[i], time_ms); break;
        case 6: testGiveName(&(dbKey){both[i], key, hash}, name, false); break;
        case 7: testGiveName(&(dbKey){both[i], key, hash}, name, true); break;
        case 8: (void)dbDelete(both[i], key, hash, lookAtAll()); break; /* or it is missing */
        default: break;
        }
    }
    if (what >= 9) compressSome();
    if (what == 17 && randomUniform(20) == 0) addDictionary();
}

/* ------------------------------------------------------------------ comparing */

static void inspectDigests(const robj *o, const robj *twin) {
    digest a = {{0}}, b = {{0}};
    objectDigestAt(o, 0, lookAtAll(), &a);
    objectDigestAt(twin, 1, lookAtAll(), &b);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(objectType(o), objectType(twin));
    assert_int_equal(objectLength(o), objectLength(twin));
    assert_int_equal(objectExpire(o), objectExpire(twin));
    assert_int_equal(objectHasExpire(o), objectHasExpire(twin));
    assert_string_equal(objectEncoding(o), objectEncoding(twin));
}

static void inspect(void) {
    const robj *o = dbPeek(both[0], key, hash), *twin = dbPeek(both[1], key, hash);
    assert_int_equal(o != NULL, twin != NULL);
    if (!o) return;
    inspectDigests(o, twin);
    bool was_compressed = objectIsCompressed(o);
    storeSetPlainIdle(randomUniform(8) ? -1 : INT64_MAX);
    const robj *shown = dbFindRead(both[0], key, hash, lookAtAll());
    twin = dbFindRead(both[1], key, hash, lookAtAll());
    assert_false(objectIsCompressed(shown));
    assert_true(was_compressed || shown == o);
    inspectDigests(shown, twin);
    assert_true(sliceEqual(objectKey(shown), key));
    if (objectType(shown) != TYPE_HASH || !objectIsPacked(shown)) return;
    /* The bytes of files, which are those of the last call. */
    slice lp = hashListpack(shown);
    str kept = strNew(lp);
    assert_true(sliceEqual(strSlice(&kept), hashListpack(twin)));
    strFree(&kept);
}

typedef struct valueCount {
    uint64_t values, text_bytes, records, users[DICTIONARY_ID_MAX + 1];
} valueCount;

static void countValue(void *arg, const robj *o) {
    valueCount *c = arg;
    if (!objectIsCompressed(o)) return;
    compressedValue v = compressedRead(o);
    c->values++;
    c->text_bytes += v.len;
    c->records += compressedShape(o) != 0;
    c->users[v.dictionary]++;
}

static uint64_t records_seen;

static void inspectCounts(void) {
    valueCount c = {0};
    compressedReport r;
    dictionaryReport d;
    dbEach(both[0], -1, countValue, &c);
    compressedGetReport(&r);
    assert_int_equal(r.values, c.values);
    assert_int_equal(r.text_bytes, c.text_bytes);
    records_seen += c.records;
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        if (dictionaryRead(id, &d)) assert_int_equal(d.users, c.users[id]);
        if (c.users[id]) assert_non_null(dictionaryById(id));
    }
    assert_null(dbVerify(both[0]));
    assert_null(storeVerifyShapes(keyspaceMain()));
    dictionariesSweep((int64_t)serial);
    shapesSweep((int64_t)serial * 1000);
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

static bool divides(void *arg, const robj *o) {
    (void)arg, (void)o; /* all are passed on in one piece */
    return false;
}

static void limit(void *arg) { (void)arg; /* nothing is put aside */ }

static void addDue(void *arg, const robj *o) {
    (void)arg; /* there is one snapshot */
    addTo(&due, o);
    due_count++;
}

static const storeSaver saver = {.offer = offer, .take = take, .limit = limit, .divides = divides};

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
    shapeSetLimits(&(shapeLimits){.shapes = 100, .fields = 20, .names_bytes = 1000});
    both[0] = storeDb(0);
    both[1] = storeDb(1);
    compressedSetSerial(&serial);
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    storeSetPlainIdle(-1);
    storeShutdown();
    shapeSetLimits(&(shapeLimits){.shapes = 0});
    return 0;
}

static void useKey(unsigned number) {
    static char name[NAME];
    key = sliceMake(name, (size_t)snprintf(name, NAME, "t:%u", number));
    hash = storeHash(key);
    key_type = (valueType)(TYPE_LIST + number % 4);
}

static void test_a_compressed_collection_is_like_its_twin(void **state) {
    if (missing()) skip();
    testSeed("store/compressed_packed");
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
    assert_true(records_seen > 0);
    while (storeSavingRuns()) (void)storeSavingStep(100); /* until its end */
}

/* A record of which nothing else is left keeps its shape. */
static void test_a_compressed_record_uses_its_shape(void **state) {
    if (missing()) skip();
    addDictionary();
    count = COUNT_OF(fields);
    for (unsigned i = 0; i < count; i++)
        words[i] = SLICE("customer:0001 of the branch in Marseille");
    unsigned number = 0, made = 0;
    for (unsigned i = 0; i < 4 * SHAPE_HASHES_MIN; i++) {
        useKey(4 * i + 3);
        dbPosition at;
        assert_null(dbFind(both[0], key, hash, lookAtAll(), &at));
        slice pairs[2 * COUNT_OF(fields)];
        for (unsigned f = 0; f < count; f++) {
            pairs[2 * f] = sliceMake(fields[f], strlen(fields[f]));
            pairs[2 * f + 1] = words[f];
        }
        hashSetCounts counts;
        dbPlace(both[0], &at,
                hashSetPairs(NULL, key, pairs, 2 * (size_t)count, lookAtAll(), &limits, &counts));
        const robj *o = dbPeek(both[0], key, hash);
        if (!recordShapeNumber(o)) continue;
        number = recordShapeNumber(o);
        assert_true(storeCompressKey(both[0], o, 1));
        made++;
    }
    assert_true(made > 0);
    const shape *s = shapeOfId(number);
    assert_int_equal(shapeUsers(s), made);
    for (unsigned i = 0; i < 100; i++) shapesSweep(1000000000000 + i * 100000);
    assert_ptr_equal(shapeOfId(number), s);
    const robj *o = dbPeek(both[0], key, hash);
    assert_int_equal(compressedShape(o), number);
    assert_int_equal(objectLength(o), count);
    robj *open = compressedOpen(o);
    char digits[NUMBER_TEXT_MAX];
    slice value;
    assert_true(hashGet(open, SLICE("author"), lookAtAll(), digits, &value));
    assert_true(sliceEqual(value, words[0]));
    compressedClose(open);
    (void)dbFlush(both[0], false); /* how many does not matter */
    assert_int_equal(shapeUsers(s), 0);
}

/* Shown objects of a reader that lasts stay until it gives them up. */
static void test_parts_outlast_their_command(void **state) {
    if (missing()) skip();
    addDictionary();
    useKey(0);
    count = 20;
    for (unsigned i = 0; i < count; i++)
        words[i] = SLICE("customer:0001 of the branch in Marseille");
    add(both[0]);
    assert_true(storeCompressKey(both[0], dbPeek(both[0], key, hash), 1));
    storeSetPlainIdle(-1);
    /* The first reader makes what decompression keeps. */
    assert_non_null(dbFindRead(both[0], key, hash, lookAtAll()));
    serial++;
    compressedReclaim();
    size_t used = memUsed();
    compressedParts *own = NULL;
    compressedUseParts(&own);
    const robj *shown = dbFindRead(both[0], key, hash, lookAtAll());
    compressedUseParts(NULL);
    assert_non_null(own);
    for (int i = 0; i < 10; i++) {
        serial++;
        compressedReclaim();
        assert_int_equal(listLength(dbFindRead(both[0], key, hash, lookAtAll())), count);
    }
    assert_int_equal(listLength(shown), count);
    compressedFreeParts(own);
    compressedReclaim();
    assert_true(memUsed() <= used);
}

int test_compressed_packed(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_compressed_collection_is_like_its_twin, setUp,
                                        tearDown),
        cmocka_unit_test_setup_teardown(test_a_compressed_record_uses_its_shape, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_parts_outlast_their_command, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("compressed collections", tests, NULL, NULL);
}
