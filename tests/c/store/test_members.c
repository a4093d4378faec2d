/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Members with TTLs: histories of a set and a sorted set against a model, seen by writers, by
 * readers that may not remove anything, and by a replayed stream, for which nothing expires.
 * TEST_SCALE makes it longer. */
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/member_expiry.h"
#include "store/member_priv.h"
#include "store/store.h"
#include "store/type_set.h"
#include "store/type_zset.h"
#include "store_test.h"

enum { MEMBERS = 60, STEPS = 10000, HISTORY = 400, TIME_RANGE = 200 };

static const packLimits limits = {.entries = 6, .bytes = 20};
static const setLimits set_limits = {.packed = {.entries = 6, .bytes = 20}, .ints = 6};

/* The model: times of members, MEMBER_MISSING if there is none. */
typedef struct modelMember {
    int64_t time_ms;
    double score;
} modelMember;
static modelMember model[MEMBERS];
static int64_t now_ms;
static bool scored;
static uint64_t removed_by_store;

static slice keyOf(void) { return scored ? SLICE("zset") : SLICE("set"); }

/* Integers that fit a word of a table, integers that do not, and texts. */
static slice memberText(uint64_t i, char *to) {
    const char *format = i % 3 == 0   ? "%llu"
                         : i % 3 == 1 ? "4000000000000000%03llu"
                                      : "member %llu";
    return sliceMake(to, (size_t)snprintf(to, 32, format, (unsigned long long)i));
}

static bool isThere(uint64_t i) { return model[i].time_ms != MEMBER_MISSING; }
static bool isPast(uint64_t i) { return model[i].time_ms >= 0 && model[i].time_ms < now_ms; }

static uint64_t countOf(bool with_expired) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < MEMBERS; i++) count += isThere(i) && (with_expired || !isPast(i));
    return count;
}

static void tellItems(db *d, slice key, valueType type, const slice *items, unsigned count) {
    assert_int_equal(type, scored ? TYPE_ZSET : TYPE_SET);
    assert_true(sliceEqual(key, keyOf()));
    assert_non_null(dbPeek(d, key, storeHash(key)));
    for (unsigned n = 0; n < count; n++) {
        uint64_t i = 0;
        char text[32];
        while (!sliceEqual(memberText(i, text), items[n])) i++;
        assert_true(isPast(i));
        model[i].time_ms = MEMBER_MISSING;
    }
    removed_by_store += count;
}

static void tellGone(db *d, slice key, valueType type) {
    assert_int_equal(type, scored ? TYPE_ZSET : TYPE_SET);
    assert_non_null(dbPeek(d, key, storeHash(key)));
}

static void tellEnd(db *d, slice key, bool key_removed) {
    assert_int_equal(key_removed, countOf(true) == 0);
    assert_true(!dbPeek(d, key, storeHash(key)) == key_removed);
}

static const storeListener listener = {
    .items_expiring = tellItems, .items_expired = tellGone, .items_ended = tellEnd};

/* ------------------------------------------------------------------ inspection */

static void countMember(void *arg, const listpackItem *member) {
    (void)member;
    ++*(uint64_t *)arg;
}

static void countPair(void *arg, const zsetPair *pair) {
    (void)pair;
    ++*(uint64_t *)arg;
}

static uint64_t scan(const robj *o) {
    uint64_t seen = 0, cursor = 0;
    do {
        cursor =
            scored ? zsetScan(o, cursor, countPair, &seen) : setScan(o, cursor, countMember, &seen);
    } while (cursor);
    return seen;
}

static void inspectOrder(const robj *o) {
    zsetCursor cursor;
    zsetPair pair;
    uint64_t index = 0, rank = 0;
    double score, last = -1;
    if (zsetLength(o)) zsetSeek(&cursor, o, 0, false);
    while (index < zsetLength(o) && zsetNext(&cursor, &pair)) {
        assert_true(pair.score >= last);
        last = pair.score;
        assert_true(zsetRank(o, pair.member, &rank, &score));
        assert_int_equal(rank, index++);
    }
}

/* What a value shows is what the model has. `all`: also what has expired. */
static void inspect(const robj *o, bool all) {
    uint64_t count = countOf(all);
    assert_int_equal(typeOf(o)->length(o), count);
    for (uint64_t i = 0; i < MEMBERS; i++) {
        char text[32];
        slice member = memberText(i, text);
        bool visible = isThere(i) && (all || !isPast(i));
        assert_int_equal(memberTime(o, member), visible ? model[i].time_ms : MEMBER_MISSING);
        double score;
        if (scored && visible) {
            assert_true(zsetScore(o, member, &score));
            assert_true(score == model[i].score);
        }
    }
    assert_int_equal(scan(o), count);
    uint64_t drawn = 0;
    if (scored) {
        zsetRandom(o, MEMBERS, true, countPair, &drawn);
        inspectOrder(o);
    } else {
        setRandom(o, MEMBERS, true, countMember, &drawn);
    }
    assert_int_equal(drawn, count);
}

/* The digest of what is visible by the look, whatever is hidden now. */
static void inspectDigest(const robj *o) {
    digest own = {{0}}, visible = {{0}};
    objectDigest(o, lookAt(now_ms), &own);
    robj *copy = objectCopy(o, SLICE("copy"), 0);
    assert_int_equal(membersHidden(copy), membersHidden(o));
    objectDigest(copy, lookAt(now_ms), &visible);
    assert_memory_equal(&own, &visible, sizeof(own));
    assert_int_equal(memberTimesCount(membersTimes(copy)), memberTimesCount(membersTimes(o)));
    objectFree(copy);
}

/* ------------------------------------------------------------------ steps */

static robj *addMember(robj *o, uint64_t i) {
    char text[32];
    slice member = memberText(i, text);
    if (scored) {
        zsetPair pair = {member, (double)randomUniform(10)};
        zsetAdded what;
        model[i].score = pair.score;
        if (!o) o = zsetNew(keyOf(), 1, member.len, &limits);
        o = zsetAdd(o, &pair, 0, &limits, &what);
    } else {
        listpackItem item = listpackItemOf(member);
        bool added;
        if (!o) o = setNew(keyOf(), &item, 1, &set_limits);
        o = setAdd(o, &item, &set_limits, &added);
        assert_int_equal(added, !isThere(i));
    }
    if (!isThere(i)) model[i].time_ms = MEMBER_NO_TIME;
    return o;
}

static robj *removeMember(robj *o, uint64_t i) {
    char text[32];
    slice member = memberText(i, text);
    listpackItem item = listpackItemOf(member);
    bool removed = scored ? zsetRemove(&o, member) : setRemove(&o, &item);
    assert_int_equal(removed, isThere(i));
    model[i].time_ms = MEMBER_MISSING;
    return o;
}

static void popped(void *arg, const listpackItem *member) {
    (void)arg;
    char digits[NUMBER_TEXT_MAX], text[32];
    slice name = listpackText(member, digits);
    uint64_t i = 0;
    while (!sliceEqual(memberText(i, text), name)) i++;
    assert_true(isThere(i));
    model[i].time_ms = MEMBER_MISSING;
}

static void forgetPair(void *arg, const zsetPair *pair) {
    listpackItem item = listpackItemOf(pair->member);
    popped(arg, &item);
}

/* Removes some members at once. */
static robj *popSome(robj *o) {
    uint64_t length = typeOf(o)->length(o), count = randomUniform(4);
    if (count > length) count = length;
    if (!scored) {
        setPop(&o, count, popped, NULL);
        return o;
    }
    zsetRange range = {randomUniform(length - count + 1), count};
    zsetCursor cursor;
    zsetPair pair;
    if (count) zsetSeek(&cursor, o, range.index, false);
    for (uint64_t n = 0; n < count && zsetNext(&cursor, &pair); n++) forgetPair(NULL, &pair);
    if (count) zsetRemoveRange(&o, &range);
    return o;
}

static robj *setTime(robj *o, uint64_t i, int64_t time_ms) {
    char text[32];
    assert_int_equal(memberSetTime(&o, memberText(i, text), time_ms), isThere(i));
    if (isThere(i)) model[i].time_ms = time_ms;
    return o;
}

/* A command that writes: `replays` sees all members, else those that have expired are removed
 * before. */
static void write(db *d, bool replays) {
    slice key = keyOf();
    uint64_t hash = storeHash(key), i = randomUniform(MEMBERS);
    storeLook look = replays ? lookAtAll() : lookAt(now_ms);
    dbPosition at;
    robj *o = dbFind(d, key, hash, look, &at);
    if (o && membersExpire(d, key, hash, o, look)) o = dbFind(d, key, hash, look, &at);
    assert_int_equal(o ? typeOf(o)->length(o) : 0, countOf(replays));
    if (o) inspect(o, replays);
    uint64_t what = o ? randomUniform(16) : 15;
    int64_t time_ms = now_ms + 1 + (int64_t)randomUniform(TIME_RANGE);
    switch (what) {
    case 0: o = removeMember(o, i); break;
    case 1: o = popSome(o); break;
    case 2: o = setTime(o, i, MEMBER_NO_TIME); break;
    case 3:
    case 4:
    case 5: o = setTime(o, i, time_ms); break;
    default: o = addMember(o, i);
    }
    dbPlace(d, &at, o);
    dbNoteItems(d, hash, o);
    if (typeOf(o)->length(o) == 0 && membersHidden(o) == 0)
        (void)dbDeleteEmptied(d, key, hash, look);
}

/* A command that reads. */
static void readKey(db *d) {
    slice key = keyOf();
    uint64_t hash = storeHash(key);
    bool replays = randomUniform(4) == 0;
    storeLook look = replays ? lookAtAll() : lookAt(now_ms);
    robj *o = dbFindRead(d, key, hash, look);
    if (!o) {
        assert_int_equal(countOf(true), 0);
        return;
    }
    membersHide(d, hash, o, look);
    inspect(o, replays);
    inspectDigest(o);
}

static void historiesMatchTheModel(bool of_scores) {
    storeInit(1, false);
    storeSetListener(keyspaceMain(), &listener);
    scored = of_scores;
    now_ms = 1000;
    removed_by_store = 0;
    db *d = storeDb(0);
    for (uint64_t i = 0; i < MEMBERS; i++) model[i].time_ms = MEMBER_MISSING;
    for (uint64_t n = 0; n < STEPS * testScale(); n++) {
        if (n % HISTORY == 0)
            storeSetExpiry(keyspaceMain(), n % (2 * HISTORY) ? EXPIRY_HIDE : EXPIRY_DELETE);
        bool replica = n % (2 * HISTORY) >= HISTORY;
        now_ms += (int64_t)randomUniform(4);
        switch (randomUniform(8)) {
        case 0: readKey(d); break;
        case 1:
            if (!replica) storeExpireTurn(keyspaceMain(), now_ms, 1000000, 1);
            break;
        default: write(d, replica);
        }
        assert_null(dbVerify(d));
    }
    assert_true(removed_by_store > 100);
    storeShutdown();
}

static void setsMatchTheModel(void **state) {
    (void)state;
    testSeed("store/members");
    historiesMatchTheModel(false);
}

static void sortedSetsMatchTheModel(void **state) {
    (void)state;
    testSeed("store/members");
    historiesMatchTheModel(true);
}

/* A value without TTLs is what it was before it had some. */
static void theLastTimeLeavesAPlainValue(void **state) {
    (void)state;
    scored = false;
    for (int round = 0; round < 2; round++, scored = true) {
        for (uint64_t i = 0; i < MEMBERS; i++) model[i].time_ms = MEMBER_MISSING;
        robj *o = NULL;
        for (uint64_t i = 0; i < MEMBERS; i++) o = addMember(o, i);
        size_t plain = objectMemory(o, 0);
        for (uint64_t i = 0; i < MEMBERS; i++) o = setTime(o, i, 5000 + (int64_t)i);
        assert_int_equal(memberTimesCount(membersTimes(o)), MEMBERS);
        assert_true(objectMemory(o, 0) > plain);
        for (uint64_t i = 0; i < MEMBERS; i++) o = setTime(o, i, MEMBER_NO_TIME);
        assert_null(membersTimes(o));
        assert_int_equal(objectMemory(o, 0), plain);
        objectFree(o);
    }
}

int test_members(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setsMatchTheModel),
        cmocka_unit_test(sortedSetsMatchTheModel),
        cmocka_unit_test(theLastTimeLeavesAPlainValue),
    };
    return cmocka_run_group_tests_name("members", tests, NULL, testNoObjects);
}
