/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields with times: histories of one hash against a model, and the walk of active expiry over many
 * keys. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/store.h"
#include "store/type_hash.h"

enum { FIELDS = 50, STEPS = 4000, KEYS = 300, LARGE = 5000 };

static const packLimits limits = {.entries = 20, .bytes = 40};

/* Times of the model; HASH_NO_FIELD: there is none. */
static int64_t times[FIELDS];
static int64_t now_ms = 1000;

static slice fieldText(uint64_t i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "field %llu", (unsigned long long)i));
}

static bool hasExpired(int64_t time_ms) { return time_ms >= 0 && time_ms < now_ms; }

static void inspect(const robj *o) {
    uint64_t seen = 0, kept = 0, timed = 0;
    for (uint64_t i = 0; i < FIELDS; i++) {
        char text[32], digits[NUMBER_TEXT_MAX];
        slice field = fieldText(i, text), value;
        bool is_seen = times[i] != HASH_NO_FIELD && !hasExpired(times[i]);
        assert_int_equal(hashTime(o, field, lookAt(now_ms)), is_seen ? times[i] : HASH_NO_FIELD);
        assert_int_equal(hashGet(o, field, lookAt(now_ms), digits, &value), is_seen);
        if (is_seen) assert_true(sliceEqual(value, field) || value.len == 0);
        seen += is_seen;
        kept += times[i] != HASH_NO_FIELD;
        timed += times[i] >= 0;
    }
    assert_int_equal(hashVisibleCount(o, lookAt(now_ms)), seen);
    assert_int_equal(hashLength(o), kept);
    assert_int_equal(hashTimedCount(o), timed);
}

static robj *removeExpired(robj *o) {
    uint64_t cursor = 0;
    hashExpired expired;
    do {
        cursor = hashFindExpired(o, cursor, now_ms, &expired);
        assert_true(expired.visited >= expired.count);
        hashRemoveExpired(o, &expired);
    } while (cursor);
    for (uint64_t i = 0; i < FIELDS; i++)
        if (hasExpired(times[i])) times[i] = HASH_NO_FIELD;
    return o;
}

static robj *step(robj *o) {
    uint64_t i = randomUniform(FIELDS);
    char text[32];
    slice field = fieldText(i, text);
    bool was_kept = times[i] != HASH_NO_FIELD, was_expired = hasExpired(times[i]);
    int64_t time_ms = now_ms + 1 + (int64_t)randomUniform(50);
    hashOutcome outcome;
    switch (randomUniform(8)) {
    case 0: now_ms += (int64_t)randomUniform(10); return o;
    case 1: return removeExpired(o);
    case 2:
        assert_int_equal(hashDelete(&o, field, lookAt(now_ms)), was_kept && !was_expired);
        if (!was_expired) times[i] = HASH_NO_FIELD;
        return o;
    case 3:
    case 4:
        if (randomUniform(2)) time_ms = HASH_NO_TIME;
        assert_int_equal(hashSetTime(&o, field, time_ms, lookAt(now_ms)), was_kept && !was_expired);
        if (was_kept && !was_expired) times[i] = time_ms;
        return o;
    default:
        if (randomUniform(3) == 0) time_ms = randomUniform(2) ? HASH_NO_TIME : HASH_KEEP_TIME;
        o = hashSetTimed(o, field, randomUniform(2) ? field : SLICE(""), time_ms, lookAt(now_ms),
                         &limits, &outcome);
        assert_int_equal(outcome, was_expired ? HASH_REPLACED_EXPIRED
                                  : was_kept  ? HASH_UPDATED
                                              : HASH_CREATED);
        if (time_ms == HASH_KEEP_TIME) time_ms = was_kept && !was_expired ? times[i] : HASH_NO_TIME;
        times[i] = time_ms;
        return o;
    }
}

static void countPair(void *arg, const hashPair *pair) {
    assert_true(pair->field.len > 0);
    ++*(uint64_t *)arg;
}

static void historiesMatchTheModel(void **state) {
    (void)state;
    testSeed("store/items");
    for (int history = 0; history < 4; history++) {
        robj *o = hashNew(SLICE("key"));
        for (int i = 0; i < FIELDS; i++) times[i] = HASH_NO_FIELD;
        for (int i = 0; i < STEPS; i++) {
            o = step(o);
            if (i % 10) continue;
            inspect(o);
            uint64_t picked = 0, scanned = 0, cursor = 0;
            hashRandom(o, lookAt(now_ms), FIELDS, true, countPair, &picked);
            assert_int_equal(picked, hashVisibleCount(o, lookAt(now_ms)));
            do {
                cursor = hashScan(o, lookAt(now_ms), cursor, countPair, &scanned);
            } while (cursor);
            assert_int_equal(scanned, hashVisibleCount(o, lookAt(now_ms)));
        }
        robj *copy = objectCopy(o, SLICE("copy"), 0);
        inspect(copy);
        objectFree(copy);
        objectFree(o);
    }
}

/* ------------------------------------------------------------------ active expiry */

static struct { uint64_t fields, emptied; } told;

static void tellFields(db *d, slice key, valueType type, const slice *fields, unsigned count) {
    assert_int_equal(type, TYPE_HASH);
    assert_non_null(dbPeek(d, key, storeHash(key)));
    for (unsigned i = 0; i < count; i++) assert_true(fields[i].len > 5);
    told.fields += count;
}

static void tellGone(db *d, slice key, valueType type) {
    assert_int_equal(type, TYPE_HASH);
    assert_non_null(dbPeek(d, key, storeHash(key)));
}

static void tellEnd(db *d, slice key, bool key_removed) {
    if (key_removed) assert_null(dbPeek(d, key, storeHash(key)));
    told.emptied += key_removed;
}

static const storeListener listener = {
    .items_expiring = tellFields, .items_expired = tellGone, .items_ended = tellEnd};

/* Fields 0 to before `count` get the time; one more has none if `stays`. */
static void put(db *d, slice key, uint64_t count, int64_t time_ms, bool stays) {
    uint64_t hash = storeHash(key);
    dbPosition at;
    assert_null(dbFind(d, key, hash, lookAt(0), &at));
    robj *o = hashNew(key);
    hashOutcome outcome;
    for (uint64_t i = 0; i < count + stays; i++) {
        char text[32];
        o = hashSetTimed(o, fieldText(i, text), SLICE("v"), i < count ? time_ms : HASH_NO_TIME,
                         lookAtAll(), &limits, &outcome);
    }
    dbPlace(d, &at, o);
}

static slice keyText(unsigned i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "key %u", i));
}

static void deadFieldsGoAndNoOthers(bool slotted) {
    storeInit(2, slotted);
    storeSetListener(keyspaceMain(), &listener);
    memset(&told, 0, sizeof(told));
    db *d = storeDb(1);
    char text[32];
    for (unsigned i = 0; i < KEYS; i++) put(d, keyText(i, text), 1, i % 2 ? 500 : 5000, i % 4 < 2);
    put(d, SLICE("large"), LARGE, 500, false);
    put(d, SLICE("plain"), 0, 0, true);
    for (unsigned i = 0; i < 20; i++) { /* names of deleted keys */
        slice key = keyText(i, text);
        assert_true(dbDelete(d, key, storeHash(key), lookAt(0)));
    }
    assert_int_equal(dbItemKeys(d), KEYS - 20 + 1);
    /* However small the pieces, all is done in the end. */
    for (int turn = 0; turn < 100000 && dbItemKeys(d) != KEYS / 2 - 10; turn++)
        storeExpireTurn(keyspaceMain(), 1000, turn % 2 ? 1 : 200, 1);
    assert_int_equal(dbItemKeys(d), KEYS / 2 - 10);
    assert_int_equal(told.fields, KEYS / 2 - 10 + LARGE);
    assert_int_equal(told.emptied, (KEYS - 20) / 4 + 1);
    assert_int_equal(storeStats(keyspaceMain()).expired_fields, told.fields);
    assert_int_equal(storeStats(keyspaceMain()).expired, 0);
    assert_int_equal(dbSize(d), KEYS - 20 + 2 - told.emptied);
    assert_null(dbVerify(d));
    storeExpireTurn(keyspaceMain(), 4999, 1000, 1);
    assert_int_equal(dbItemKeys(d), KEYS / 2 - 10);
    storeSetExpiry(keyspaceMain(), EXPIRY_HIDE);
    storeExpireTurn(keyspaceMain(), 6000, 1000, 1);
    assert_int_equal(dbItemKeys(d), KEYS / 2 - 10);
    storeSetExpiry(keyspaceMain(), EXPIRY_DELETE);
    storeSwap(storeDb(0), d);
    assert_int_equal(dbItemKeys(storeDb(0)) + dbItemKeys(storeDb(1)), KEYS / 2 - 10);
    assert_true(storeFlush(keyspaceMain(), false) > 0);
    assert_int_equal(dbItemKeys(storeDb(0)) + dbItemKeys(storeDb(1)), 0);
    storeShutdown();
}

/* The digest depends on the look alone, whatever was looked up before. */
static void digestsFollowTheirLook(void **state) {
    (void)state; /* nothing is set up */
    storeInit(1, false);
    db *d = storeDb(0);
    slice key = SLICE("hash"), value;
    char digits[NUMBER_TEXT_MAX];
    digest before, after, all;
    put(d, key, 1, 500, true); /* one more field, until 500 */
    robj *o = hashNew(SLICE("other"));
    const int64_t times_ms[] = {0, 500, 501, 10000};
    for (size_t i = 0; i < COUNT_OF(times_ms); i++) {
        assert_false(hashGet(o, SLICE("f"), lookAt(times_ms[i]), digits, &value));
        storeDigest(keyspaceMain(), lookAt(500), &before);
        storeDigest(keyspaceMain(), lookAt(501), &after);
        storeDigest(keyspaceMain(), lookAtAll(), &all);
        assert_memory_equal(&before, &all, sizeof(all));
        assert_memory_not_equal(&before, &after, sizeof(after));
    }
    objectFree(o);
    storeShutdown();
}

static void activeExpiryFindsDeadFields(void **state) {
    (void)state;
    deadFieldsGoAndNoOthers(false);
    deadFieldsGoAndNoOthers(true);
}

int test_items(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(historiesMatchTheModel),
        cmocka_unit_test(activeExpiryFindsDeadFields),
        cmocka_unit_test(digestsFollowTheirLook),
    };
    return cmocka_run_group_tests_name("items", tests, NULL, testNoObjects);
}
