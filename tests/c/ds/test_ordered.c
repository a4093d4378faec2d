/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/ordered: random histories against a plain sorted array, with ranks of many kinds. */
#include "ds_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/ordered.h"

typedef struct entry {
    uint64_t rank;
    size_t len;
    char text[16];
} entry;

static uint64_t rankOf(const void *e) { return ((const entry *)e)->rank; }
static slice textOf(const void *e) {
    return sliceMake(((const entry *)e)->text, ((const entry *)e)->len);
}
static const orderedType type = {rankOf, textOf};

#define ENTRIES_MAX 6000
static entry *want[ENTRIES_MAX];
static size_t want_count;
static orderedIndex x;

/* Some entries are far from the others, so that the leaves with them are wide. */
enum { FAR_MAX = 512, FAR_SHARE = 100 };
static entry *far, *far_free[FAR_MAX];
static unsigned far_free_count;

static int mapFar(void **state) {
    void *wish = (void *)(UINT64_C(1) << 44);
    far = mmap(wish, FAR_MAX * sizeof(entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
               -1, 0);
    if (far == MAP_FAILED) return 1;
    while (far_free_count < FAR_MAX) {
        far_free[far_free_count] = far + far_free_count;
        far_free_count++;
    }
    return 0;
}

static entry *allocEntry(void) {
    if (far_free_count > 0 && randomUniform(FAR_SHARE) == 0) return far_free[--far_free_count];
    return memNew(entry);
}

static void freeEntry(entry *e) {
    if (e >= far && e < far + FAR_MAX) {
        far_free[far_free_count++] = e;
    } else {
        memFree(e);
    }
}

static int compare(const entry *a, const entry *b) {
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return orderedCompareText(textOf(a), textOf(b));
}

/* The place of the first that is not less. */
static size_t placeOf(const entry *e) {
    size_t low = 0, high = want_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(want[middle], e) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

typedef enum rankKind {
    RANKS_ANY,
    RANKS_FEW,
    RANKS_ONE,
    RANKS_RISING,
    RANKS_FALLING,
    RANKS_ENDS,
    RANKS_DOUBLES,
    RANK_KINDS
} rankKind;

static uint64_t makeRank(rankKind kind) {
    static uint64_t next = UINT64_C(1) << 40;
    double d;
    uint64_t bits;
    switch (kind) {
    case RANKS_ANY: return randomNext() >> randomUniform(64);
    case RANKS_FEW: return randomUniform(5);
    case RANKS_ONE: return 7;
    case RANKS_RISING: return next += randomUniform(3);
    case RANKS_FALLING: return (UINT64_C(1) << 41) - (next += randomUniform(3));
    case RANKS_ENDS: return randomUniform(2) ? UINT64_MAX - randomUniform(3) : randomUniform(3);
    default:
        d = (double)randomUniform(1000000);
        memcpy(&bits, &d, sizeof(bits));
        return bits;
    }
}

static entry *newEntry(rankKind kind) {
    entry *e = allocEntry();
    e->rank = makeRank(kind);
    e->len = (size_t)snprintf(e->text, sizeof(e->text), "%llu",
                              (unsigned long long)randomUniform(1000000));
    e->len -= (size_t)randomUniform(e->len + 1); /* the beginning of others, or nothing */
    return e;
}

static void addTo(size_t at, entry *e) {
    memmove(want + at + 1, want + at, (want_count - at) * sizeof(*want));
    want[at] = e;
    want_count++;
}

static void takeFrom(size_t at, size_t count) {
    want_count -= count;
    memmove(want + at, want + at + count, (want_count - at) * sizeof(*want));
}

static void add(rankKind kind) {
    entry *e = newEntry(kind);
    size_t at = placeOf(e);
    if (want_count == ENTRIES_MAX || (at < want_count && compare(want[at], e) == 0)) {
        freeEntry(e);
        return;
    }
    addTo(at, e);
    orderedInsert(&x, &type, e);
}

static void moveOne(rankKind kind) {
    size_t at = (size_t)randomUniform(want_count);
    entry *e = want[at], changed = *e;
    changed.rank =
        kind == RANKS_ONE || randomUniform(2) ? makeRank(kind) : e->rank + randomUniform(3) - 1;
    takeFrom(at, 1);
    size_t to = placeOf(&changed);
    if (to < want_count && compare(want[to], &changed) == 0) {
        addTo(at, e);
        return;
    }
    addTo(to, e);
    bool kept = orderedPrepareRank(&x, &type, e, changed.rank);
    e->rank = changed.rank;
    if (!kept) orderedInsert(&x, &type, e);
}

/* Moves an entry to another address; the old block is freed before the index is updated. */
static void replaceOne(void) {
    size_t at = (size_t)randomUniform(want_count);
    entry *moved = allocEntry(), *old = want[at];
    *moved = *old;
    want[at] = moved;
    memset(old, 0xff, sizeof(*old));
    freeEntry(old);
    orderedReplace(&x, &type, old, moved);
}

/* All nodes move, if that is better; every leaf is met once. */
static void compactAll(void) {
    uint64_t at = 0, moved = 0, kept = 0, next;
    while ((next = orderedCompact(&x, at, &moved, &kept))) {
        assert_true(next > at);
        at = next;
    }
    assert_true(moved + kept >= (want_count + 163) / 164);
}

static void freeVisited(void *context, void *e) {
    size_t *at = context;
    assert_ptr_equal(want[(*at)++], e);
    freeEntry(e);
}

static void deleteRange(size_t most) {
    size_t at = (size_t)randomUniform(want_count + 1);
    size_t count = (size_t)randomUniform(sizeMin(most, want_count - at) + 1), visited = at;
    orderedDeleteRange(&x, &type, at, count, freeVisited, &visited);
    assert_int_equal(visited, at + count);
    takeFrom(at, count);
}

static void inspectPoint(void) {
    orderedPoint p = {.by = ORDERED_BY_RANK, .after = randomUniform(2)};
    const entry *near = want_count ? want[randomUniform(want_count)] : NULL;
    p.rank = near ? near->rank + randomUniform(3) - 1 : 5;
    uint64_t before = 0;
    while (before < want_count &&
           (p.after ? want[before]->rank <= p.rank : want[before]->rank < p.rank))
        before++;
    assert_int_equal(orderedCountBefore(&x, &type, &p), before);
}

static void inspectTextPoint(void) {
    entry *e = newEntry(RANKS_ONE);
    orderedPoint p = {.by = ORDERED_BY_TEXT, .after = randomUniform(2), .text = textOf(e)};
    uint64_t before = 0;
    while (before < want_count &&
           orderedCompareText(textOf(want[before]), p.text) < (p.after ? 1 : 0))
        before++;
    assert_int_equal(orderedCountBefore(&x, &type, &p), before);
    freeEntry(e);
}

static void inspect(rankKind kind) {
    assert_string_equal(soundOr(orderedVerify(&x, &type)), "sound");
    assert_int_equal(x.count, want_count);
    for (int i = 0; i < 5; i++) inspectPoint();
    for (int i = 0; i < 5 && kind == RANKS_ONE; i++) inspectTextPoint();
    if (!want_count) return;
    size_t at = (size_t)randomUniform(want_count);
    assert_int_equal(orderedIndexOf(&x, &type, want[at]), at);
    orderedCursor forward, back;
    assert_ptr_equal(orderedSeek(&x, at, &forward), want[at]);
    assert_ptr_equal(orderedSeek(&x, at, &back), want[at]);
    for (size_t i = at + 1; i < want_count && i < at + 300; i++)
        assert_ptr_equal(orderedNext(&forward), want[i]);
    for (size_t i = at; i > 0 && i + 300 > at; i--)
        assert_ptr_equal(orderedPrev(&back), want[i - 1]);
    if (want_count - at <= 300) assert_null(orderedNext(&forward));
}

/* Many entries at once, in both directions. */
static void inspectMany(void) {
    enum { MOST = 40 };
    if (!want_count) return;
    bool reverse = randomUniform(2);
    size_t at = (size_t)randomUniform(want_count);
    orderedCursor cursor;
    (void)orderedSeek(&x, at, &cursor);
    for (int i = 0; i < 10; i++) {
        void *found[MOST];
        unsigned most = (unsigned)randomUniform(MOST + 1);
        unsigned count = orderedReadMany(&cursor, reverse, found, most);
        assert_int_equal(count, sizeMin(most, reverse ? at : want_count - 1 - at));
        for (unsigned k = 0; k < count; k++) {
            at = reverse ? at - 1 : at + 1;
            assert_ptr_equal(found[k], want[at]);
        }
    }
}

static void clear(void) {
    for (size_t i = 0; i < want_count; i++) freeEntry(want[i]);
    want_count = 0;
    orderedFree(&x);
}

static void test_agrees_with_an_array(void **state) {
    testSeed(__func__);
    for (int history = 0; history < (int)testScale() * 4 * RANK_KINDS; history++) {
        rankKind kind = (rankKind)(history % RANK_KINDS);
        size_t size = (size_t)randomUniform(2) ? 3000 : 60;
        bool growing = true;
        for (int i = 0; i < 6000; i++) {
            if (want_count > size) growing = false;
            if (want_count == 0) growing = true;
            uint64_t dice = randomUniform(10);
            if (want_count && dice == 0) {
                moveOne(kind);
                replaceOne();
            } else if (want_count && dice < (growing ? 3u : 7u)) {
                size_t at = (size_t)randomUniform(want_count);
                orderedDelete(&x, &type, want[at]);
                freeEntry(want[at]);
                takeFrom(at, 1);
            } else if (dice == 9 && !growing) {
                deleteRange(randomUniform(20) ? 5 : 400);
            } else {
                add(kind);
            }
            if (i % 200 == 0) compactAll();
            if (i % 50 == 0) inspect(kind);
            if (i % 50 == 0) inspectMany();
        }
        clear();
    }
}

static int compareEntries(const void *a, const void *b) {
    return compare(*(entry *const *)a, *(entry *const *)b);
}

static void test_filled_at_once(void **state) {
    testSeed(__func__);
    for (size_t count = 0; count < ENTRIES_MAX; count += 1 + count / 3) {
        for (size_t i = 0; i < count; i++) {
            entry *e = newEntry(RANKS_ANY);
            size_t at = placeOf(e);
            if (at < want_count && compare(want[at], e) == 0) {
                freeEntry(e);
            } else {
                addTo(at, e);
            }
        }
        qsort(want, want_count, sizeof(*want), compareEntries);
        orderedFill(&x, &type, (void *const *)want, want_count);
        inspect(RANKS_ANY);
        for (int i = 0; i < 100; i++) add(RANKS_ANY);
        inspect(RANKS_ANY);
        while (want_count) deleteRange(want_count);
        inspect(RANKS_ANY);
        assert_null(x.root);
    }
}

static void test_is_small(void **state) {
#ifndef HOSTILE_BUILD
    testSeed(__func__);
    far_free_count = 0; /* wide leaves are larger */
    /* Of the three ways to fill it the random one is the worst. */
    static const rankKind kinds[] = {RANKS_ANY, RANKS_RISING, RANKS_FALLING};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        while (want_count < ENTRIES_MAX - 10) add(kinds[k]);
        assert_true(x.bytes < want_count * 15 / 2);
        /* It also shrinks when most entries have been removed. */
        while (want_count > 200) {
            size_t at = (size_t)randomUniform(want_count);
            orderedDelete(&x, &type, want[at]);
            freeEntry(want[at]);
            takeFrom(at, 1);
        }
        assert_true(x.bytes < want_count * 24);
        clear();
    }
#endif
}

int test_ordered(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_an_array),
        cmocka_unit_test(test_filled_at_once),
        cmocka_unit_test(test_is_small),
    };
    return cmocka_run_group_tests_name("ordered", tests, mapFar, NULL);
}
