/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random histories of sorted sets against a plain sorted array, at many limits; builders. */
#include "store_test.h"

#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/listpack.h"
#include "store/slab.h"
#include "store/type_zset.h"

#ifdef TESTS_SANITIZED
enum { HISTORIES = 40, STEPS = 200 };
#else
enum { HISTORIES = 200, STEPS = 500 };
#endif
enum { MEMBERS = 300, TEXT_MAX = 400 };

typedef struct wanted {
    bool there;
    double score;
} wanted;
static wanted want[MEMBERS];
static size_t want_count;

/* Member `i`: integers, short text, a few long ones. */
static slice memberText(size_t i, char *to) {
    if (i % 3 == 0) return sliceMake(to, numberPrintInt(to, (int64_t)i * (i % 2 ? 1 : -70000)));
    size_t len = i % 50 == 1 ? 60 + i : 3 + i % 20;
    memset(to, 'a' + (int)(i % 26), len);
    to[0] = (char)('0' + i / 26);
    return sliceMake(to, len);
}

static int compareMembers(size_t a, size_t b) {
    char text[2][TEXT_MAX];
    if (want[a].score != want[b].score) return want[a].score < want[b].score ? -1 : 1;
    return orderedCompareText(memberText(a, text[0]), memberText(b, text[1]));
}

/* The number of elements before member `i`. */
static uint64_t wantedRank(size_t i) {
    uint64_t before = 0;
    for (size_t k = 0; k < MEMBERS; k++) before += want[k].there && compareMembers(k, i) < 0;
    return before;
}

static double randomScore(void) {
    switch (randomUniform(12)) {
    case 0: return INFINITY;
    case 1: return -INFINITY;
    case 2: return (double)randomNext() / 3;
    case 3: return -1e-300 * (double)randomUniform(1000);
    case 4: return 0.1 * (double)randomUniform(100);
    default: return (double)randomUniform(10) - 5;
    }
}

static size_t indexOf(slice member) {
    char text[TEXT_MAX];
    for (size_t i = 0; i < MEMBERS; i++) {
        if (sliceEqual(memberText(i, text), member)) return i;
    }
    fail_msg("a member nobody added");
    return 0;
}

static void inspectWalk(const robj *o) {
    zsetCursor cursor;
    zsetPair pair;
    size_t from = (size_t)randomUniform(want_count), count = 0;
    bool reverse = randomUniform(2);
    zsetSeek(&cursor, o, from, reverse);
    while (zsetNext(&cursor, &pair)) {
        size_t i = indexOf(pair.member);
        assert_true(want[i].there);
        assert_true(pair.score == want[i].score);
        if (count % 7 == 0) assert_int_equal(wantedRank(i), reverse ? from - count : from + count);
        count++;
    }
    assert_int_equal(count, reverse ? from + 1 : want_count - from);
}

static void inspectRange(const robj *o) {
    zsetBound min = {.by = ZSET_BY_SCORE, .score = randomScore(), .excluded = randomUniform(2)};
    zsetBound max = {.by = ZSET_BY_SCORE, .score = randomScore(), .excluded = randomUniform(2)};
    size_t below = 0, inside = 0;
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!want[i].there) continue;
        bool above_min = min.excluded ? want[i].score > min.score : want[i].score >= min.score;
        bool below_max = max.excluded ? want[i].score < max.score : want[i].score <= max.score;
        below += !above_min;
        inside += above_min && below_max;
    }
    zsetRange range = zsetFindRange(o, &min, &max);
    assert_int_equal(range.count, inside);
    if (inside) assert_int_equal(range.index, below);
}

static void inspect(const robj *o) {
    assert_int_equal(zsetLength(o), want_count);
    if (!objectIsPacked(o)) {
        hashtableStats stats;
        typeOf(o)->table_stats(objectPointer(o), &stats);
        assert_int_equal(stats.count, want_count);
    }
    char text[TEXT_MAX];
    for (size_t i = 0; i < MEMBERS; i += 1 + (size_t)randomUniform(20)) {
        double score = 0, other = 0;
        uint64_t rank;
        assert_int_equal(zsetScore(o, memberText(i, text), &score), want[i].there);
        assert_int_equal(zsetRank(o, memberText(i, text), &rank, &other), want[i].there);
        if (!want[i].there) continue;
        assert_true(score == want[i].score);
        assert_true(other == want[i].score);
        assert_int_equal(rank, wantedRank(i));
    }
    if (want_count == 0) return;
    inspectWalk(o);
    inspectRange(o);
}

static robj *addOne(robj *o, const packLimits *limits) {
    char text[TEXT_MAX];
    size_t i = (size_t)randomUniform(MEMBERS);
    unsigned flags = (unsigned)randomUniform(2) ? (unsigned)randomUniform(1 << 5) : 0;
    zsetPair pair = {memberText(i, text), randomScore()};
    zsetAdded added, expected;
    double score = pair.score;
    if (!want[i].there) {
        expected = flags & ZSET_XX ? ZSET_REFUSED : ZSET_ADDED;
    } else {
        double old = want[i].score;
        if (flags & ZSET_INCR) score += old;
        expected = score == old ? ZSET_SAME : ZSET_UPDATED;
        if ((flags & ZSET_GT) && score <= old) expected = ZSET_REFUSED;
        if ((flags & ZSET_LT) && score >= old) expected = ZSET_REFUSED;
        if (isnan(score)) expected = ZSET_NAN;
        if (flags & ZSET_NX) expected = ZSET_REFUSED;
    }
    o = zsetAdd(o, &pair, flags, limits, &added);
    assert_int_equal(added, expected);
    if (added == ZSET_ADDED || added == ZSET_UPDATED) {
        assert_true(pair.score == score);
        want_count += added == ZSET_ADDED;
        want[i] = (wanted){true, score};
    }
    return o;
}

static void removeRange(robj **o) {
    zsetRange range = {.index = randomUniform(want_count)};
    range.count = randomUniform(sizeMin(5, want_count - range.index) + 1);
    bool gone[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++)
        gone[i] = want[i].there && wantedRank(i) - range.index < range.count;
    zsetRemoveRange(o, &range);
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!gone[i]) continue;
        want[i].there = false;
        want_count--;
    }
}

static robj *step(robj *o, const packLimits *limits) {
    char text[TEXT_MAX];
    size_t i = (size_t)randomUniform(MEMBERS);
    switch (randomUniform(24)) {
    case 0:
        if (want_count) removeRange(&o);
        break;
    case 1: o = testCopied(o); break;
    case 2: o = zsetPrepare(o, (size_t)randomUniform(limits->entries + 2), 1, limits); break;
    case 3:
    case 4:
    case 5:
        assert_int_equal(zsetRemove(&o, memberText(i, text)), want[i].there);
        want_count -= want[i].there;
        want[i].there = false;
        break;
    default: o = addOne(o, limits);
    }
    return o;
}

static void test_agrees_with_a_model(void **state) {
    testSeed(__func__);
    static const packLimits limits_of[] = {{128, 64}, {0, 64}, {1000, 1000}, {50, 20}};
    for (int history = 0; history < HISTORIES; history++) {
        const packLimits *limits = &limits_of[(size_t)history % COUNT_OF(limits_of)];
        memset(want, 0, sizeof(want));
        want_count = 0;
        robj *o = zsetNew(SLICE("key"), 1, 1, limits);
        for (int i = 0; i < STEPS; i++) {
            o = step(o, limits);
            if (i % 16 == 0) inspect(o);
        }
        bool packed = objectIsPacked(o);
        assert_string_equal(typeOf(o)->encoding(o), packed ? "listpack" : "skiplist");
        if (packed)
            assert_true(
                listpackIsValid(objectPacked(o), listpackSize(objectPacked(o)), true, NULL, NULL));
        objectFree(o);
    }
}

static void countVisited(void *arg, const zsetPair *pair) {
    unsigned *seen = arg;
    size_t i = indexOf(pair->member);
    assert_true(want[i].there);
    assert_true(pair->score == want[i].score);
    seen[i]++;
}

static void test_visits(void **state) {
    testSeed(__func__);
    for (size_t entries = 0; entries <= 1000; entries += 1000) {
        packLimits limits = {entries, 1000};
        memset(want, 0, sizeof(want));
        want_count = 0;
        robj *o = zsetNew(SLICE("key"), 1, 1, &limits);
        while (want_count < 100) o = addOne(o, &limits);
        unsigned scanned[MEMBERS] = {0}, drawn[MEMBERS] = {0}, unique[MEMBERS] = {0};
        uint64_t cursor = 0;
        do { cursor = zsetScan(o, cursor, countVisited, scanned); } while (cursor);
        zsetRandom(o, 5000, false, countVisited, drawn);
        zsetRandom(o, 60, true, countVisited, unique);
        size_t chosen = 0;
        for (size_t i = 0; i < MEMBERS; i++) {
            assert_int_equal(scanned[i], want[i].there);
            assert_true(!want[i].there || drawn[i] > 5);
            assert_true(unique[i] <= 1);
            chosen += unique[i];
        }
        assert_int_equal(chosen, 60);
        objectFree(o);
    }
}

static void checkOrder(void *arg, const zsetPair *pair) {
    uint64_t *place = arg;
    size_t i = indexOf(pair->member);
    assert_true(pair->score == want[i].score);
    assert_int_equal(wantedRank(i), (*place)++);
}

/* A builder without members, and what they are. */
static void beginBuilding(zsetBuilder *b) {
    memset(want, 0, sizeof(want));
    want_count = 0;
    zsetBuilderInit(b);
}

/* Takes the set, packed in odd rounds, and checks it; NULL if it is empty. */
static robj *takeBuilt(zsetBuilder *b, int round) {
    packLimits limits = {(size_t)(round % 2) * 1000, 1000};
    assert_int_equal(zsetBuilderCount(b), want_count);
    robj *o = zsetBuilderTake(b, SLICE("key"), &limits);
    assert_int_equal(o != NULL, want_count > 0);
    if (!o) return NULL;
    assert_int_equal(objectIsPacked(o), round % 2);
    inspect(o);
    return o;
}

static void test_builder(void **state) {
    testSeed(__func__);
    for (int round = 0; round < 20; round++) {
        zsetBuilder b;
        beginBuilding(&b);
        assert_null(takeBuilt(&b, round));
        for (int k = 0; k < round * 20; k++) {
            char text[TEXT_MAX];
            size_t i = (size_t)randomUniform(MEMBERS);
            bool created;
            if (randomUniform(10) == 0) {
                zsetBuilderRemove(&b, memberText(i, text));
                want_count -= want[i].there;
                want[i].there = false;
                continue;
            }
            void *place = zsetBuilderAt(&b, memberText(i, text), &created);
            assert_int_equal(created, !want[i].there);
            if (!created) assert_true(zsetBuilderRead(place) == want[i].score);
            want[i].score = randomScore();
            zsetBuilderWrite(place, want[i].score);
            want_count += created;
            want[i].there = true;
        }
        assert_int_equal(zsetBuilderCount(&b), want_count);
        uint64_t place = 0;
        zsetBuilderVisit(&b, checkOrder, &place);
        assert_int_equal(place, want_count);
        robj *o = takeBuilt(&b, round);
        if (o) objectFree(o);
    }
}

/* Appended members give the same set as members that were looked up; walks and lookups of many find
 * what those of single members find. */
static void test_appending_and_many(void **state) {
    testSeed(__func__);
    for (int round = 0; round < 20; round++) {
        zsetBuilder b;
        beginBuilding(&b);
        char text[TEXT_MAX];
        for (size_t i = 0; i < MEMBERS; i++) {
            if (randomUniform(20) >= (uint64_t)round + 1) continue;
            want[i].there = true;
            want[i].score = randomScore();
            want_count++;
            zsetPair pair = {memberText(i, text), want[i].score};
            zsetBuilderAppend(&b, &pair);
        }
        assert_int_equal(zsetBuilderCount(&b), want_count);
        if (round % 5 == 4) { /* unused */
            zsetBuilderClear(&b);
            continue;
        }
        robj *o = takeBuilt(&b, round);
        if (!o) continue;
        zsetCursor cursor;
        zsetPair pairs[ZSET_MANY];
        uint64_t place = 0;
        zsetSeek(&cursor, o, 0, false);
        for (unsigned n;
             (n = zsetNextMany(&cursor, pairs, 1 + (unsigned)randomUniform(ZSET_MANY)));) {
            assert_true(n <= ZSET_MANY);
            for (unsigned i = 0; i < n; i++) checkOrder(&place, &pairs[i]);
        }
        assert_int_equal(place, want_count);
        char texts[ZSET_MANY][TEXT_MAX];
        double scores[ZSET_MANY];
        size_t members[ZSET_MANY];
        for (unsigned i = 0; i < ZSET_MANY; i++) {
            members[i] = (size_t)randomUniform(MEMBERS);
            pairs[i].member = memberText(members[i], texts[i]);
        }
        uint32_t found = zsetScoreMany(o, pairs, ZSET_MANY, scores);
        for (unsigned i = 0; i < ZSET_MANY; i++) {
            assert_int_equal(found >> i & 1, want[members[i]].there);
            if (found >> i & 1) assert_true(scores[i] == want[members[i]].score);
        }
        objectFree(o);
    }
}

/* All that was taken is given back. */
static int leavesNothing(void **state) {
    slabStats stats;
    slabGetStats(slabElements(), &stats);
    return stats.live_blocks != 0;
}

int test_type_zset(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_agrees_with_a_model, leavesNothing),
        cmocka_unit_test_teardown(test_visits, leavesNothing),
        cmocka_unit_test_teardown(test_builder, leavesNothing),
        cmocka_unit_test_teardown(test_appending_and_many, leavesNothing),
    };
    return cmocka_run_group_tests_name("type_zset", tests, NULL, testNoObjects);
}
