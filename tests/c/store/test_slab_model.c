/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random histories of a slab store against a model that knows address, size and contents of every
 * block: allocations, frees, steps of compaction between them, refusals, fork windows, purges,
 * threads. */
#include "store_test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/random.h"
#include "store/slab_priv.h"

#define RECORDS_MAX 30000u
#ifdef TESTS_SANITIZED
#define OPERATIONS 1000000u
#else
#define OPERATIONS 8000000u
#endif

/* A block holds its record's number in its first four bytes; all others are alike. */
typedef struct record {
    uint8_t *ptr;
    uint32_t size;
    uint32_t pos; /* in live[] */
    bool pinned;
} record;

static record records[RECORDS_MAX];
static uint32_t live[RECORDS_MAX],
    live_count; /* numbers of records; from live_count on: free ones */
static slabStore *store;
static size_t used_before;
static struct { uint64_t operations, moves, refusals, forks, remote; } seen;

static uint8_t fillOf(uint32_t number) { return (uint8_t)(number * 31 + 7); }

static void inspect(uint32_t number) {
    const record *r = &records[number];
    assert_int_equal(loadU32(r->ptr), number);
    if (r->size == 4) return;
    assert_int_equal(r->ptr[4], fillOf(number));
    assert_int_equal(memcmp(r->ptr + 4, r->ptr + 5, r->size - 5), 0);
}

static uint32_t anySize(unsigned mood) {
    uint64_t share = randomUniform(100);
    if (mood == 0) return 4 + (uint32_t)randomUniform(60);
    if (mood == 1) return 90;
    if (share < 60) return 4 + (uint32_t)randomUniform(300);
    if (share < 90) return 4 + (uint32_t)randomUniform(1100);
    if (share < 98) return 4 + (uint32_t)randomUniform(4100);
    return 4000 + (uint32_t)randomUniform(6000);
}

static void blockNew(unsigned mood) {
    if (live_count == RECORDS_MAX) return;
    uint32_t number = live[live_count];
    record *r = &records[number];
    r->size = anySize(mood);
    r->pos = live_count++;
    r->pinned = randomUniform(200) == 0;
    r->ptr = slabAllocFrom(store, r->size);
    assert_int_equal((uintptr_t)r->ptr % 8, 0);
    memset(r->ptr, fillOf(number), r->size);
    storeU32(r->ptr, number);
}

/* Takes a random block out of the model. */
static record blockForget(void) {
    uint32_t pos = (uint32_t)randomUniform(live_count);
    uint32_t number = live[pos];
    inspect(number);
    live_count--;
    live[pos] = live[live_count];
    records[live[pos]].pos = pos;
    live[live_count] = number;
    return records[number];
}

static void blockFree(void) {
    record r = blockForget();
    /* Any size of the class will do. */
    size_t size = r.size;
    while (size > 1 && randomUniform(2) && slabSameClass(size - 1, r.size)) size--;
    slabFreeTo(store, r.ptr, size);
}

static uint32_t relocate(void *arg, void *const *old, void *const *moved, unsigned count) {
    assert_ptr_equal(arg, records);
    uint32_t taken = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t number = loadU32(moved[i]);
        assert_true(number < RECORDS_MAX);
        record *r = &records[number];
        assert_true(r->pos < live_count);
        assert_int_equal(live[r->pos], number);
        assert_ptr_equal(r->ptr, old[i]);
        if (r->pinned) {
            seen.refusals++;
            if (randomUniform(3) == 0) r->pinned = false;
            continue;
        }
        r->ptr = moved[i];
        inspect(number);
        taken |= 1u << i;
        seen.moves++;
    }
    return taken;
}

static void operate(uint32_t count, unsigned mood, unsigned grow, bool compacting) {
    for (uint32_t i = 0; i < count; i++) {
        if (compacting && randomUniform(16) == 0) slabCompact(store, relocate, records, 0, NULL);
        if (live_count == 0 || randomUniform(100) < grow) {
            blockNew(mood);
        } else {
            blockFree();
        }
    }
    seen.operations += count;
}

/* ---- frees from other threads ---- */

typedef struct job {
    record *freed;
    uint32_t count;
} job;

static void *freeRemotely(void *arg) {
    const job *j = arg;
    slabRemote remote = {.store = store};
    for (uint32_t i = 0; i < j->count; i++) {
        slabRemoteFree(&remote, j->freed[i].ptr);
        if (i % 700 == 0) slabRemoteFlush(&remote);
    }
    slabRemoteFlush(&remote);
    return NULL;
}

static void remoteRound(void) {
    enum { PRODUCERS = 2, EACH = 4000 };
    static record freed[PRODUCERS][EACH];
    job jobs[PRODUCERS];
    pthread_t threads[PRODUCERS];
    size_t expected = 0, drained = 0;
    for (int t = 0; t < PRODUCERS; t++) {
        uint32_t count = live_count / 4 < EACH ? live_count / 4 : EACH;
        for (uint32_t i = 0; i < count; i++) {
            freed[t][i] = blockForget();
            expected += slabOwns(store, freed[t][i].ptr);
        }
        jobs[t] = (job){freed[t], count};
    }
    for (int t = 0; t < PRODUCERS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, freeRemotely, &jobs[t]), 0);
    while (drained < expected) {
        drained += slabDrain(store, 1 + randomUniform(300));
        operate(1, 2, 50, false);
    }
    for (int t = 0; t < PRODUCERS; t++) pthread_join(threads[t], NULL);
    assert_int_equal(drained, expected);
    seen.remote += drained;
}

/* ---- the history ---- */

/* Finishes a running cycle, if any, then runs a complete one. */
static void compactWhole(bool forked) {
    slabCompactReport report = {0};
    while (slabCompact(store, relocate, records, 500, NULL)) {}
    while (slabCompact(store, relocate, records, 500, &report)) {}
    slabStats st;
    slabGetStats(store, &st);
    if (!forked && report.refused_blocks == 0) assert_int_equal(st.recoverable_bytes, 0);
}

static void verifyAll(void) {
    slabVerify(store);
    slabStats st;
    slabGetStats(store, &st);
    size_t own_count = 0, own_bytes = 0, other_bytes = 0;
    for (uint32_t i = 0; i < live_count; i++) {
        const record *r = &records[live[i]];
        bool own = slabOwns(store, r->ptr);
        own_count += own;
        own_bytes += own ? slabClassSize(r->size) : 0;
        other_bytes += own ? 0 : memSizeOf(r->ptr);
    }
    assert_int_equal(st.live_blocks, own_count);
    assert_int_equal(st.live_bytes, own_bytes);
    assert_int_equal(memUsed() - used_before, own_bytes + other_bytes + st.metadata_bytes);
}

static void history(size_t reserve, uint64_t operations) {
    used_before = memUsed();
    store = slabStoreNew(reserve);
    live_count = 0;
    for (uint32_t i = 0; i < RECORDS_MAX; i++) live[i] = i;
    bool forked = false;
    uint64_t end = seen.operations + operations;
    while (seen.operations < end) {
        operate((uint32_t)randomUniform(8000), (unsigned)randomUniform(4),
                (unsigned)randomUniform(100), randomUniform(2));
        switch (randomUniform(8)) {
        case 0: slabCompact(store, relocate, records, (int64_t)randomUniform(50), NULL); break;
        case 1: compactWhole(forked); break;
        case 2: slabPurge(store, randomUniform(64) * SLAB_BYTES); break;
        case 3:
            if (forked) slabForkEnd(store);
            if (!forked) slabForkBegin(store);
            forked = !forked;
            seen.forks++;
            break;
        case 4:
            if (randomUniform(4) == 0) remoteRound();
            break;
        case 5:
            for (uint32_t i = 0; i < live_count; i++) inspect(live[i]);
            break;
        default: break;
        }
        verifyAll();
    }
    while (live_count) blockFree();
    if (forked) slabForkEnd(store);
    while (slabCompact(store, relocate, records, 500, NULL)) {} /* a cycle under way */
    slabPurge(store, SIZE_MAX);
    slabVerify(store);
    slabStats st;
    slabGetStats(store, &st);
    assert_int_equal(st.slabs_in_use, 0);
    assert_int_equal(st.resident_bytes, st.metadata_bytes);
    slabStoreFree(store);
    assert_int_equal(memUsed(), used_before);
}

static void test_random_histories_match_the_model(void **state) {
    testSeed("slab model");
    memset(&seen, 0, sizeof(seen));
    history(0, OPERATIONS * testScale());
    assert_true(seen.moves > 1000);
    assert_true(seen.refusals > 10);
    assert_true(seen.remote > 1000);
    assert_true(seen.forks > 4);
    printf("slab model: %llu operations, %llu moves, %llu refusals, %llu fork changes\n",
           (unsigned long long)seen.operations, (unsigned long long)seen.moves,
           (unsigned long long)seen.refusals, (unsigned long long)seen.forks);
}

static void test_random_histories_in_a_range_that_is_too_small(void **state) {
    testSeed("slab model, small range");
    history(2 * SLAB_CHUNK_BYTES, OPERATIONS * testScale() / 5);
}

int test_slab_model(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories_match_the_model),
        cmocka_unit_test(test_random_histories_in_a_range_that_is_too_small),
    };
    return cmocka_run_group_tests_name("slab model", tests, NULL, NULL);
}
