/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ds/hashtable_walk: with a cut, pre-images and marks, every entry present at the start of a walk
 * is written exactly once, as it was then, and nothing else is, whatever is inserted, deleted,
 * replaced, grown or shrunk between slices. TEST_SCALE=50 runs 20,000 walks. */
#include "ds_test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "ds/hashtable_private.h"
#include "ds/hashtable_walk.h"

#ifdef TESTS_SANITIZED
enum { WALKS = 100, SIZE_BITS = 13 };
#else
enum { WALKS = 400, SIZE_BITS = 17 };
#endif
enum { IDS = 1 << 21, SKEWED_BITS = 12, VISITED_MAX = 1 << 16 };

typedef struct entity {
    uint64_t hash;
    uint32_t id, version;
    uint32_t at; /* in live[] */
    bool marked; /* beyond the cut, and not to be written */
} entity;

static struct {
    hashtable table;
    entity **live;
    uint32_t live_count, next_id;
    uint32_t *start_version; /* by id; 0: not present at the start */
    uint32_t *written;       /* by id: how often */
    hashtableCut cut;
    bool walking;
    unsigned skew; /* leading bits of the hash that most entries share */
    uint64_t written_count;
    uint64_t in_resize, overflowing, inside_unit, inexact, stopped; /* slices that began so */
} m;

static uint64_t hashOf(const void *e) { return ((const entity *)e)->hash; }
static bool match(const void *e, const void *key, size_t len) {
    (void)len; /* always an id */
    return ((const entity *)e)->id == *(const uint32_t *)key;
}
static const hashtableType type = {.hash_of = hashOf, .match = match};

/* The first hash that is not passed. */
static uint64_t hashAtCut(void) {
    unsigned bits = m.cut.block_bits;
    if (bits == 0) return m.cut.place;
    return mirrorBits(m.cut.place >> (64 - bits), bits) << (64 - bits) |
           (m.cut.place & (~0ull >> bits));
}

static uint64_t newHash(void) {
    uint64_t h = randomNext();
    if (m.skew && randomUniform(4)) h = h >> m.skew | 0x5ull << 61;
    /* Neighbours of each other and of the cut, some with the same unit. */
    if (m.live_count && randomUniform(8) == 0) {
        unsigned bits = 38 + (unsigned)randomUniform(12);
        uint64_t near_to =
            m.walking && randomUniform(2) ? hashAtCut() : m.live[randomUniform(m.live_count)]->hash;
        h = ((near_to & ~0ull << bits) | h >> (64 - bits)) +
            (randomUniform(3) - 1) * (1ull << (bits - 1));
    }
    return h;
}

static void writeOut(const entity *e) {
    assert_int_equal(m.start_version[e->id], e->version);
    assert_int_equal(m.written[e->id], 0);
    m.written[e->id]++;
    m.written_count++;
}

/* An entry is about to change or be deleted. */
static void before(entity *e) {
    if (!m.walking || hashtableCutPassed(&m.cut, e->hash) || e->marked) return;
    writeOut(e);
    e->marked = true;
}

static void insertOne(void) {
    if (m.next_id == IDS) return;
    entity *e = memNew(entity);
    *e = (entity){.hash = newHash(), .id = m.next_id++, .version = 1, .at = m.live_count};
    e->marked = m.walking && !hashtableCutPassed(&m.cut, e->hash);
    m.live[m.live_count++] = e;
    hashtableInsert(&m.table, &type, e->hash, e, randomUniform(8) == 0 ? HASHTABLE_VOLATILE : 0);
}

static void find(entity *e, hashtablePosition *p) {
    assert_ptr_equal(hashtableFindPosition(&m.table, &type, e->hash, &e->id, sizeof(e->id), p), e);
}

static void drop(uint32_t index) {
    hashtablePosition p;
    entity *e = m.live[index];
    find(e, &p);
    before(e);
    (void)hashtableDeleteAt(&m.table, &type, &p);
    m.live[index] = m.live[--m.live_count];
    m.live[index]->at = index;
    memFree(e);
}

static void change(uint32_t index) {
    hashtablePosition p;
    entity *e = m.live[index];
    find(e, &p);
    before(e);
    e->version++;
    if (randomUniform(2)) return;
    entity *moved = memNew(entity);
    *moved = *e;
    hashtableReplaceAt(&p, &type, moved);
    m.live[index] = moved;
    memFree(e);
}

static void dropDownTo(uint32_t count) {
    while (m.live_count > count) drop(m.live_count - 1);
}

static void operate(unsigned insert_percent) {
    unsigned what = (unsigned)randomUniform(100);
    if (m.live_count == 0 || what < insert_percent) {
        insertOne();
    } else if (what % 3 == 0) {
        change((uint32_t)randomUniform(m.live_count));
    } else {
        drop((uint32_t)randomUniform(m.live_count));
    }
    if (randomUniform(16) == 0)
        (void)hashtableWork(&m.table, &type, (unsigned)randomUniform(40)); /* or nothing */
}

/* ---- slices ---- */

typedef struct slice {
    bool clear_only;
    uint64_t stop_after; /* entries */
    entity *visited[VISITED_MAX];
    uint32_t count;
} slice;

static bool visit(void *context, void *entry, unsigned flags) {
    (void)flags; /* the table's own */
    slice *s = context;
    entity *e = entry;
    if (s->count == s->stop_after) return false;
    assert_in_range(s->count, 0, VISITED_MAX - 1);
    s->visited[s->count++] = e;
    if (e->marked) {
        e->marked = false;
    } else if (!s->clear_only) {
        writeOut(e);
    }
    return true;
}

/* Counts the conditions under which a slice begins, to show that the test meets them. */
static void noteState(void) {
    uint64_t low = hashAtCut();
    if (!m.table.body) return;
    if (!tableIsBig(&m.table)) {
        m.inside_unit += (low & ~(~0ull << TAG_SHIFT)) != 0;
        return;
    }
    const tableBig *g = tableAsBig(&m.table);
    const tableScale *sc = &g->scales[low >= g->bound];
    m.in_resize += g->state != RESIZE_NONE;
    m.inexact += sc->inexact;
    m.inside_unit += (low & ~(~0ull << sc->shift)) != 0;
    m.overflowing += bucketOverflows(&g->buckets[scaleHome(sc, low)]);
}

static bool oneSlice(bool clear_only, uint64_t buckets) {
    static slice s;
    s.clear_only = clear_only;
    s.count = 0;
    s.stop_after = randomUniform(50) == 0 ? randomUniform(30) : UINT64_MAX;
    noteState();
    uint64_t place = m.cut.place;
    bool more = hashtableWalk(&m.table, &type, &m.cut, buckets, visit, &s);
    if (s.count == s.stop_after && more && m.cut.place == place) {
        for (uint32_t i = 0; i < s.count; i++) s.visited[i]->marked = true;
        m.stopped++;
    }
    return more;
}

static void checkMarks(void) {
    for (uint32_t i = 0; i < m.live_count; i++) {
        if (!m.live[i]->marked) continue;
        assert_true(m.walking && !hashtableCutPassed(&m.cut, m.live[i]->hash));
    }
}

/* Deletes nearly everything except what is near the cut, so that its position is finer than the
 * units of the table. */
static void drain(void) {
    uint64_t unit = hashAtCut() >> 46;
    for (uint32_t i = m.live_count; i-- > 0 && m.live_count > 40;) {
        if (m.live[i]->hash >> 46 != unit) drop(i);
    }
}

static void oneWalk(bool may_give_up) {
    for (uint32_t i = 0; i < m.live_count; i++) m.start_version[m.live[i]->id] = m.live[i]->version;
    uint64_t due = m.live_count;
    uint32_t first_new = m.next_id;
    m.written_count = 0;
    hashtableCutBegin(&m.cut, &m.table);
    m.walking = true;
    unsigned percent = 20 + (unsigned)randomUniform(78); /* from shrinking fast to growing fast */
    unsigned pace = 1 + (unsigned)randomUniform(randomUniform(4) ? 8 : 40);
    bool drains = randomUniform(4) == 0, clear_only = false, more = true;
    for (uint64_t n = 0; more; n++) {
        for (unsigned i = (unsigned)randomUniform(pace); i > 0; i--) operate(percent);
        if (drains && randomUniform(20) == 0) drain();
        if (randomUniform(50) == 0) percent = 20 + (unsigned)randomUniform(78);
        if (may_give_up && randomUniform(30) == 0) clear_only = true;
        more = oneSlice(clear_only, 1 + randomUniform(8));
        if (n % 257 == 0) checkMarks();
    }
    m.walking = false;
    checkMarks();
    assert_null(hashtableVerify(&m.table, &type));
    if (!clear_only) assert_int_equal(m.written_count, due);
    memset(m.start_version, 0, first_new * sizeof(*m.start_version));
    memset(m.written, 0, first_new * sizeof(*m.written));
}

static void begin(void) {
    m.live = memNewArray(entity *, IDS);
    m.start_version = memNewArray(uint32_t, IDS);
    m.written = memNewArray(uint32_t, IDS);
}

static void end(void) {
    dropDownTo(0);
    memFree(m.live);
    memFree(m.start_version);
    memFree(m.written);
    memset(&m, 0, sizeof(m));
}

static void test_each_entry_of_the_start_is_written_once_as_it_was(void **state) {
    (void)state;
    testSeed(__func__);
    begin();
    for (uint64_t i = 0; i < WALKS * testScale(); i++) {
        m.skew = randomUniform(3) == 0 ? 1 + (unsigned)randomUniform(3) : 0;
        uint32_t want = 1u << randomUniform(m.skew ? SKEWED_BITS : SIZE_BITS);
        while (m.live_count < want) insertOne();
        oneWalk(i % 7 == 3);
        if (randomUniform(3) == 0 && m.live_count > want / 64) dropDownTo(want / 64);
        if (i % 5 == 4 || m.next_id > IDS / 2) dropDownTo(0);
        if (m.live_count == 0) m.next_id = 0;
    }
    /* The conditions that the proof is about have occurred. */
    assert_true(m.in_resize > 0 && m.overflowing > 0 && m.stopped > 0);
    assert_true(m.inside_unit > 0);
#ifndef TESTS_SANITIZED
    assert_true(m.inexact > 0);
#endif
    end();
}

/* Each insert pays for `buckets` of the walk: the table grows by a bounded share until the end. */
static void growWhileWalking(uint64_t buckets, double most_percent) {
    enum { KEYS = 50000 };
    static slice s;
    m.next_id = 0;
    while (m.live_count < KEYS) insertOne();
    for (uint32_t i = 0; i < m.live_count; i++) m.start_version[m.live[i]->id] = 1;
    m.walking = true;
    m.written_count = 0;
    s.stop_after = UINT64_MAX;
    hashtableCutBegin(&m.cut, &m.table);
    bool more = true;
    while (more) {
        insertOne();
        s.count = 0;
        more = hashtableWalk(&m.table, &type, &m.cut, buckets, visit, &s);
    }
    m.walking = false;
    assert_int_equal(m.written_count, KEYS);
    assert_true(100.0 * (m.live_count - KEYS) / KEYS < most_percent);
    dropDownTo(0);
    memset(m.start_version, 0, IDS * sizeof(*m.start_version));
    memset(m.written, 0, IDS * sizeof(*m.written));
}

static void test_a_walk_ends_if_each_insert_pays_for_a_bucket(void **state) {
    (void)state;
    testSeed(__func__);
    begin();
    growWhileWalking(1, 20);
    growWhileWalking(4, 6);
    end();
}

static void test_an_empty_table_is_passed_at_once(void **state) {
    (void)state;
    hashtable t = {NULL};
    hashtableCut cut;
    hashtableCutBegin(&cut, &t);
    assert_false(hashtableCutPassed(&cut, 0));
    assert_false(hashtableWalk(&t, &type, &cut, 1, visit, NULL));
    assert_true(hashtableCutPassed(&cut, UINT64_MAX));
}

int test_hashtable_walk(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_entry_of_the_start_is_written_once_as_it_was),
        cmocka_unit_test(test_a_walk_ends_if_each_insert_pays_for_a_bucket),
        cmocka_unit_test(test_an_empty_table_is_passed_at_once),
    };
    return cmocka_run_group_tests_name("hashtable_walk", tests, NULL, NULL);
}
