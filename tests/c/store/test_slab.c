/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of store/slab, promise by promise; test_slab_model.c mixes them all at random. */
#include "store_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/map.h"
#include "base/random.h"
#include "store/slab_exact.h"

#define OWN_MAX (SLAB_SIZE_MAX - SLAB_RED_ZONE)

/* A block that knows its place in `blocks` and its size. */
typedef struct block {
    uint32_t place, size;
} block;

#define BLOCKS_MAX 40000
static block *blocks[BLOCKS_MAX];

/* A store for one test, and proof at its end that nothing was left counted. */
static slabStore *store;
static size_t used_before;

static int setUp(void **state) {
    (void)state;
    testSeed("slab");
    memset(blocks, 0, sizeof(blocks));
    used_before = memUsed();
    store = slabStoreNew((size_t)1 << 32);
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    slabVerify(store);
    slabStoreFree(store);
    assert_int_equal(memUsed(), used_before);
    return 0;
}

static void blockPut(uint32_t place, uint32_t size) {
    block *b = slabAllocFrom(store, size);
    memset(b, (int)place & 0xff, size);
    b->place = place;
    b->size = size;
    blocks[place] = b;
}

static void blockCheck(uint32_t place) {
    const block *b = blocks[place];
    const unsigned char *bytes = (const unsigned char *)b;
    assert_int_equal(b->place, place);
    for (uint32_t i = sizeof(block); i < b->size; i++) assert_int_equal(bytes[i], place & 0xff);
}

static void blockDrop(uint32_t place) {
    if (!blocks[place]) return;
    blockCheck(place);
    slabFreeTo(store, blocks[place], blocks[place]->size);
    blocks[place] = NULL;
}

static void blocksDrop(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) blockDrop(i);
}

static slabStats stats(void) {
    slabStats out;
    slabGetStats(store, &out);
    return out;
}

/* ---- sizes ---- */

static void test_classes_are_the_multiples_of_8_that_gain_a_slot(void **state) {
    for (size_t size = 1; size <= OWN_MAX; size++) {
        size_t class = slabClassSize(size);
        assert_true(class >= size + SLAB_RED_ZONE);
        assert_int_equal(class % 8, 0);
        assert_int_equal(slabClassSize(class - SLAB_RED_ZONE), class);
        if (class < SLAB_SIZE_MAX) assert_true(SLAB_BYTES / class > SLAB_BYTES / (class + 8));
        /* What was passed over would not have held more. */
        size_t least = sizeRoundUp(size + SLAB_RED_ZONE, 8);
        assert_int_equal(SLAB_BYTES / class, SLAB_BYTES / least);
    }
    assert_int_equal(slabClassSize(0), 8);
}

/* That of objects with 4,096 bytes of text: 0.02 % of a slab is unused. */
static void test_the_largest_class_leaves_16_bytes_of_a_slab(void **state) {
    const uint32_t slots = SLAB_BYTES / SLAB_SIZE_MAX, tail = SLAB_BYTES - slots * SLAB_SIZE_MAX;
    assert_int_equal(slabClassSize(OWN_MAX), SLAB_SIZE_MAX);
    for (uint32_t i = 0; i < 3 * slots; i++) blockPut(i, OWN_MAX);
    slabStats st = stats();
    assert_int_equal(st.slabs_in_use, 3);
    assert_int_equal(st.live_bytes, 3 * slots * SLAB_SIZE_MAX);
    assert_int_equal(st.tail_bytes, 3 * tail);
#ifndef HOSTILE_BUILD
    assert_int_equal(tail, 16);
    assert_int_equal(slabClassSize(4096 + 8), SLAB_SIZE_MAX);
#endif
    blocksDrop(3 * slots);
}

static void test_same_class_means_same_size(void **state) {
    for (int i = 0; i < 100000; i++) {
        size_t a = 1 + randomUniform(6000), b = a + randomUniform(40);
        bool same = slabClassSize(a) == slabClassSize(b) && (a <= OWN_MAX) == (b <= OWN_MAX);
        assert_int_equal(slabSameClass(a, b), same);
        assert_int_equal(slabSameClass(b, a), same);
    }
}

static void test_every_size_is_aligned_and_writable_to_the_class_s_end(void **state) {
    for (uint32_t size = sizeof(block); size < 5000; size++) {
        blockPut(size, size);
        assert_int_equal((uintptr_t)blocks[size] % 8, 0);
        assert_int_equal(slabOwns(store, blocks[size]), size <= OWN_MAX);
        if (size > OWN_MAX) continue;
        uint32_t buffer = (uint32_t)slabClassSize(size) - SLAB_RED_ZONE;
        memset((char *)blocks[size] + size, (int)size & 0xff, buffer - size);
        blocks[size]->size = buffer;
    }
    blocksDrop(5000);
    slabFreeTo(store, slabAllocFrom(store, 0), 0);
    slabFreeTo(store, NULL, 100);
}

/* ---- exact sizes ---- */

enum { EXACT_EACH = 300 };
static char *exact[SLAB_EXACT_MAX + 1][EXACT_EACH];

/* Sizes that slabAllocExact() refuses save nothing, or are too large. */
static void exactPut(void) {
    for (size_t size = 1; size <= SLAB_EXACT_MAX + 8; size++) {
        bool saves = sizeRoundUp(size, 4) < sizeRoundUp(size + 1, 8) && size <= SLAB_EXACT_MAX;
        for (int i = 0; i < EXACT_EACH; i++) {
            char *block = slabAllocExact(store, size);
            assert_int_equal(block != NULL, saves);
            if (!block) continue;
            assert_int_equal((uintptr_t)block % (size % 8 ? 4 : 8), 0);
            memset(block, (int)size, size);
            exact[size][i] = block;
        }
    }
}

static void exactCheck(void) {
    for (size_t size = 1; size <= SLAB_EXACT_MAX; size++) {
        for (int i = 0; i < EXACT_EACH && exact[size][i]; i++) {
            assert_int_equal(slabExactSize(exact[size][i]), size);
            assert_int_equal(exact[size][i][0], size);
            assert_int_equal(exact[size][i][size - 1], size);
        }
    }
}

static void test_the_store_knows_the_size_of_exact_blocks(void **state) {
    assert_null(slabAllocExact(store, 16)); /* not a store that is read */
    slabPair before = slabUse((slabPair){NULL, store});
    exactPut();
    slabVerify(store);
    exactCheck();
    blockPut(0, 40);
    blockPut(1, 2 * SLAB_SIZE_MAX);
    assert_int_equal(slabExactSize(blocks[0]), 0);
    assert_int_equal(slabExactSize(blocks[1]), 0);
    blocksDrop(2);
    /* Another keyspace is in use. */
    slabUse(before);
    exactCheck();
    slabDisown((slabPair){NULL, store});
    exactCheck();
    slabRemote remote = {.store = store};
    for (size_t size = 1; size <= SLAB_EXACT_MAX; size++) {
        for (int i = 0; i < EXACT_EACH && exact[size][i]; i++) {
            if (i % 2) {
                slabRemoteFree(&remote, exact[size][i]);
            } else {
                slabFreeAny(store, exact[size][i]);
            }
        }
    }
    slabRemoteFlush(&remote);
    while (slabDrain(store, 1000)) {}
    slabVerify(store);
    assert_int_equal(stats().live_blocks, 0);
}

/* ---- used_memory ---- */

static void test_used_memory_counts_slots_and_bookkeeping_exactly(void **state) {
    for (int round = 0; round < 20000; round++) {
        uint32_t place = (uint32_t)randomUniform(2000);
        blockDrop(place);
        size_t before = memUsed(), metadata = stats().metadata_bytes;
        uint32_t size = sizeof(block) + (uint32_t)randomUniform(6000);
        blockPut(place, size);
        size_t taken =
            slabOwns(store, blocks[place]) ? slabClassSize(size) : memSizeOf(blocks[place]);
        assert_int_equal(memUsed() - before, taken + stats().metadata_bytes - metadata);
        if (round % 64 == 0) slabPurge(store, SIZE_MAX);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        if (blocks[i] && !slabOwns(store, blocks[i])) blockDrop(i);
    }
    slabStats st = stats();
    assert_int_equal(memUsed() - used_before, st.live_bytes + st.metadata_bytes);
    blocksDrop(2000);
    assert_int_equal(stats().live_bytes, 0);
    assert_int_equal(stats().live_blocks, 0);
}

/* ---- where blocks go ---- */

static void test_new_blocks_fill_the_fullest_slab(void **state) {
    const uint32_t size = 96 - SLAB_RED_ZONE, slots = (uint32_t)SLAB_BYTES / 96;
    uint32_t count = slots * 4;
    uint32_t in_slab[4] = {0}; /* in order of first appearance */
    uint32_t ids[4], seen = 0;
    for (uint32_t i = 0; i < count; i++) blockPut(i, size);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = slabIdOf(store, blocks[i]), k = 0;
        while (k < seen && ids[k] != id) k++;
        if (k == seen) ids[seen++] = id;
        assert_true(seen <= 4);
        /* Slab 0 loses three quarters of its blocks, slab 1 one quarter. */
        in_slab[k]++;
        if (k == 0 && in_slab[k] % 4 != 0) blockDrop(i);
        if (k == 1 && in_slab[k] % 4 == 0) blockDrop(i);
    }
    slabForkBegin(store); /* puts hot slots back */
    slabForkEnd(store);
    uint32_t free_in_1 = store->meta[ids[1]].free;
    assert_int_equal(free_in_1, slots / 4);
    for (uint32_t i = 0; i + slots / 32 < free_in_1; i++) { /* the last few holes are scarce */
        blockPut(count + i, size);
        assert_int_equal(slabIdOf(store, blocks[count + i]), ids[1]);
    }
    blocksDrop(count + free_in_1);
}

static void test_free_slots_are_reused(void **state) {
    for (uint32_t i = 0; i < 20000; i++) blockPut(i, 100);
    size_t slabs = stats().slabs_in_use;
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 20000; i++) {
            if (randomUniform(3) == 0) blockDrop(i);
        }
        for (uint32_t i = 0; i < 20000; i++) {
            if (!blocks[i]) blockPut(i, 100);
        }
        slabVerify(store);
    }
    /* All but what scarce slabs keep. */
    assert_true(stats().slabs_in_use <= slabs + slabs / 20 + 2);
    blocksDrop(20000);
}

/* ---- purge ---- */

static bool isResident(const void *page) {
    unsigned char resident = 0;
    assert_int_equal(mincore((void *)(uintptr_t)page, MAP_PAGE, &resident), 0);
    return resident & 1;
}

static void test_purge_returns_empty_slabs_in_slices(void **state) {
    const uint32_t count = (uint32_t)(100 * SLAB_BYTES / 1024);
    for (uint32_t i = 0; i < count; i++) blockPut(i, 1000);
    const char *page = slabStart(store, slabIdOf(store, blocks[0]));
    assert_true(isResident(page));
    blocksDrop(count);
    size_t one = slabPurge(store, SLAB_BYTES);
    assert_int_equal(one, SLAB_BYTES);
    size_t left = stats().empty_bytes;
    assert_int_equal(stats().slabs_in_use, 0);
    assert_true(left >= 90 * SLAB_BYTES);
    assert_int_equal(slabPurge(store, 7 * SLAB_BYTES + 1), 7 * SLAB_BYTES);
    assert_int_equal(slabPurge(store, SLAB_BYTES - 1), 0);
    slabVerify(store);
    assert_int_equal(slabPurge(store, SIZE_MAX), left - 7 * SLAB_BYTES);
    assert_int_equal(stats().empty_bytes, 0);
    assert_int_equal(stats().resident_bytes, stats().metadata_bytes);
    assert_false(isResident(page));
    assert_int_equal(slabPurge(store, SIZE_MAX), 0);
}

static void test_empty_slabs_are_kept_for_the_next_class(void **state) {
    for (uint32_t i = 0; i < 20000; i++) blockPut(i, 64);
    blocksDrop(20000);
    slabPurge(store, 0); /* flushes only */
    size_t kept = stats().empty_bytes;
    uint32_t chunks = store->chunk_count;
    for (uint32_t i = 0; i < 10000; i++) blockPut(i, 120);
    assert_true(stats().empty_bytes < kept);
    assert_int_equal(store->chunk_count, chunks);
    blocksDrop(10000);
}

/* ---- compaction ---- */

static uint32_t pinned_modulo; /* blocks whose place divides are refused; 0: none */

static uint32_t relocate(void *arg, void *const *old, void *const *moved, unsigned count) {
    assert_ptr_equal(arg, blocks);
    assert_true(count > 0);
    assert_true(count <= SLAB_MOVE_MAX);
    uint32_t taken = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t place = ((const block *)moved[i])->place;
        assert_ptr_equal(blocks[place], old[i]);
        if (pinned_modulo && place % pinned_modulo == 0) continue;
        blocks[place] = moved[i];
        blockCheck(place);
        taken |= 1u << i;
    }
    return taken;
}

static slabCompactReport compactAll(void) {
    slabCompactReport report = {0};
    int64_t calls = 0;
    while (slabCompact(store, relocate, blocks, 100, &report)) {
        calls++;
        assert_true(calls < 1000000);
        if (calls % 16 == 0) slabVerify(store);
    }
    slabVerify(store);
    return report;
}

static void fillAndThin(uint32_t count, uint32_t kept_of_ten) {
    pinned_modulo = 0;
    for (uint32_t i = 0; i < count; i++) {
        blockPut(i, sizeof(block) + (uint32_t)randomUniform(randomUniform(10) ? 200 : 2000));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (randomUniform(10) >= kept_of_ten) blockDrop(i);
    }
}

static void test_compaction_packs_all_classes(void **state) {
    fillAndThin(BLOCKS_MAX, 1);
    slabStats before = stats();
    assert_true(before.recoverable_bytes > 0);
    assert_true(slabShouldCompact(store));
    size_t used = memUsed();
    slabCompactReport report = compactAll();
    slabStats after = stats();
    assert_int_equal(after.recoverable_bytes, 0);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(used - memUsed(), before.metadata_bytes - after.metadata_bytes);
    assert_int_equal(before.slabs_in_use - after.slabs_in_use,
                     before.recoverable_bytes / SLAB_BYTES);
    assert_true(report.freed_slabs > 0);
    assert_true(report.moved_blocks > 0);
    assert_int_equal(report.refused_blocks, 0);
    assert_false(slabShouldCompact(store));
    blocksDrop(BLOCKS_MAX);
}

static void test_compaction_fills_slots_that_allocation_skips(void **state) {
    const uint32_t slots = (uint32_t)SLAB_BYTES / 256, slabs = 21;
    uint32_t dropped[21] = {0};
    for (uint32_t i = 0; i < slabs * slots; i++) blockPut(i, 256 - SLAB_RED_ZONE);
    for (uint32_t i = 0; i < slabs * slots; i++) {
        uint32_t id = slabIdOf(store, blocks[i]);
        assert_true(id < slabs);
        /* 20 slabs with three holes; one with fewer blocks than those. */
        uint32_t holes = id < slabs - 1 ? 3 : slots > 55 ? slots - 55 : 2;
        if (dropped[id]++ < holes) blockDrop(i);
    }
    assert_int_equal(stats().recoverable_bytes, SLAB_BYTES);
    compactAll();
    assert_int_equal(stats().slabs_in_use, slabs - 1);
    blocksDrop(slabs * slots);
}

static void test_blocks_not_moved_stay_and_are_offered_again(void **state) {
    static const block *places[BLOCKS_MAX];
    fillAndThin(BLOCKS_MAX, 2);
    pinned_modulo = 50;
    memcpy(places, blocks, sizeof(places));
    slabCompactReport report = compactAll();
    assert_true(report.refused_blocks > 0);
    for (uint32_t i = 0; i < BLOCKS_MAX; i += pinned_modulo) assert_ptr_equal(blocks[i], places[i]);
    assert_true(stats().recoverable_bytes > 0);
    pinned_modulo = 0;
    compactAll();
    assert_int_equal(stats().recoverable_bytes, 0);
    blocksDrop(BLOCKS_MAX);
}

static void test_a_call_without_budget_makes_one_step(void **state) {
    fillAndThin(BLOCKS_MAX, 3);
    for (int i = 0; i < 100; i++) {
        slabCompactReport report = {0};
        assert_true(slabCompact(store, relocate, blocks, 0, &report));
        assert_true(report.moved_blocks <= SLAB_MOVE_MAX);
        slabVerify(store);
    }
    /* The owner may drop everything between two steps. */
    blocksDrop(BLOCKS_MAX);
    compactAll();
    slabPurge(store, SIZE_MAX);
    assert_int_equal(stats().slabs_in_use, 0);
}

static void test_hot_slots_do_not_prevent_freeing_a_slab(void **state) {
    const uint32_t size = 4096, count = 2 * (uint32_t)(SLAB_BYTES / size);
    for (uint32_t i = 0; i < count; i++) blockPut(i, size - SLAB_RED_ZONE);
    assert_int_equal(stats().slabs_in_use, 2);
    for (uint32_t i = 0; i < count; i += 2) blockDrop(i);
    assert_int_equal(stats().recoverable_bytes, SLAB_BYTES);
    compactAll();
    assert_int_equal(stats().recoverable_bytes, 0);
    blocksDrop(count);
}

/* ---- fork ---- */

/* Slabs whose pages the child shares. */
static void sharedFind(bool *shared, uint32_t count, bool first) {
    for (uint32_t id = 0; id < count; id++) {
        bool dirty = store->chunks[id / SLAB_CHUNK_SLABS].dirty >> id % SLAB_CHUNK_SLABS & 1;
        bool has_pages = dirty || store->meta[id].where != SLAB_UNUSED;
        shared[id] = has_pages && (first || shared[id]); /* purged ones are not any more */
    }
}

static void test_no_page_shared_with_a_child_is_written(void **state) {
    fillAndThin(20000, 5);
    for (uint32_t i = 0; i < 2000; i++) blockDrop(i); /* entire slabs, empty but resident */
    slabCompact(store, relocate, blocks, 0, NULL);    /* a victim in work */
    slabForkBegin(store);
    assert_true(slabForkActive(store));
    slabVerify(store);
    uint32_t slabs = store->chunk_count * SLAB_CHUNK_SLABS;
    bool *shared = calloc(slabs, sizeof(bool));
    sharedFind(shared, slabs, true);
    for (int i = 0; i < 30000; i++) {
        uint32_t place = (uint32_t)randomUniform(20000);
        blockDrop(place);
        blockPut(place, sizeof(block) + (uint32_t)randomUniform(300));
        uint32_t id = slabIdOf(store, blocks[place]);
        if (id < slabs) assert_false(shared[id]);
        if (i % 3000) continue;
        slabPurge(store, 4 * SLAB_BYTES);
        sharedFind(shared, slabs, false);
        slabVerify(store);
    }
    free(shared);
    assert_false(slabShouldCompact(store));
    assert_false(slabCompact(store, relocate, blocks, 1000, NULL));
    slabVerify(store);
    slabForkEnd(store);
    assert_false(slabForkActive(store));
    slabVerify(store);
    compactAll(); /* holes are in use again */
    assert_int_equal(stats().recoverable_bytes, 0);
    blocksDrop(20000);
}

static void test_a_store_made_in_a_fork_window_ends_it_too(void **state) {
    slabForkEnd(store);
    blockPut(0, 50);
    blockDrop(0);
}

/* ---- other threads ---- */

typedef struct job {
    slabStore *store;
    void **ptrs;
    uint32_t count;
} job;

static void *freeRemotely(void *arg) {
    const job *j = arg;
    slabRemote remote = {.store = j->store};
    for (uint32_t i = 0; i < j->count; i++) slabRemoteFree(&remote, j->ptrs[i]);
    slabRemoteFlush(&remote);
    slabRemoteFlush(&remote); /* nothing left: fine */
    return NULL;
}

static void test_other_threads_free_while_the_owner_works(void **state) {
    enum { PRODUCERS = 3, EACH = 3000 };
    static void *ptrs[PRODUCERS][EACH];
    job jobs[PRODUCERS];
    pthread_t threads[PRODUCERS];
    size_t expected = 0;
    for (int t = 0; t < PRODUCERS; t++) {
        for (int i = 0; i < EACH; i++) {
            size_t size = 8 + randomUniform(i % 50 ? 300 : 6000);
            ptrs[t][i] = slabAllocFrom(store, size);
            expected += slabOwns(store, ptrs[t][i]);
        }
        jobs[t] = (job){store, ptrs[t], EACH};
    }
    for (int t = 0; t < PRODUCERS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, freeRemotely, &jobs[t]), 0);
    size_t drained = 0;
    while (drained < expected) {
        drained += slabDrain(store, 1 + randomUniform(300));
        uint32_t place = (uint32_t)randomUniform(500);
        blockDrop(place);
        blockPut(place, sizeof(block) + (uint32_t)randomUniform(300));
    }
    for (int t = 0; t < PRODUCERS; t++) pthread_join(threads[t], NULL);
    assert_int_equal(drained, expected);
    assert_int_equal(slabDrain(store, 100), 0);
    blocksDrop(500);
    assert_int_equal(stats().live_blocks, 0);
}

static void *freeStore(void *arg) {
    slabStoreFree(arg);
    return NULL;
}

static void test_the_whole_keyspace_is_exchanged(void **state) {
    assert_null(slabKeyspaceTake());
    size_t before = memUsed();
    void *one = slabAlloc(100), *other = slabAlloc(100);
    for (int i = 0; i < 1000; i++) slabAlloc(300);
    slabRemote remote = {.store = slabKeyspace()};
    slabRemoteFree(&remote, other); /* arrived, but never drained */
    slabRemoteFlush(&remote);
    slabStore *taken = slabKeyspaceTake();
    void *fresh = slabAlloc(100);
    assert_true(slabOwns(taken, one));
    assert_false(slabOwns(slabKeyspace(), one));
    assert_false(slabOwns(taken, fresh));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, freeStore, taken), 0);
    slabFree(fresh, 100);
    pthread_join(thread, NULL);
    slabStoreFree(slabKeyspaceTake());
    slabStoreFree(NULL);
    assert_int_equal(memUsed(), before);
}

/* ---- limits ---- */

static void useWhatThereIs(slabStore *s, size_t count) {
    void **ptrs = memNewArray(void *, count);
    for (size_t i = 0; i < count; i++) {
        ptrs[i] = slabAllocFrom(s, 3000);
        memset(ptrs[i], 7, slabClassSize(3000) - SLAB_RED_ZONE);
    }
    slabVerify(s);
    for (size_t i = 0; i < count; i++) slabFreeTo(s, ptrs[i], 3000);
    memFree(ptrs);
}

static void test_a_full_range_falls_back_to_the_general_allocator(void **state) {
    slabStore *small = slabStoreNew(SLAB_CHUNK_BYTES);
    size_t count = 2 * SLAB_CHUNK_BYTES / 3000;
    useWhatThereIs(small, count);
    slabStats st;
    slabGetStats(small, &st);
    assert_int_equal(st.live_blocks, 0);
    assert_true(st.empty_bytes > SLAB_CHUNK_BYTES / 2); /* it was used as far as it went */
    useWhatThereIs(small, count);
    slabStoreFree(small);
    slabStore *none = slabStoreNew(1);
    useWhatThereIs(none, 100);
    assert_int_equal(slabPurge(none, SIZE_MAX), 0);
    slabStoreFree(none);
}

#ifndef TESTS_SANITIZED
/* Field `field` of /proc/self/statm: 0 addresses, 5 writable memory and stack. In bytes. */
static size_t statm(int field) {
    unsigned long pages[6] = {0};
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) abort();
    for (int i = 0; i <= field; i++) {
        if (fscanf(f, "%lu", &pages[i]) != 1) abort();
    }
    fclose(f);
    return pages[field] * MAP_PAGE;
}

/* Ends the process as survived where limits have no effect: qemu-user accepts and ignores them. */
static void limitTo(int resource, size_t bytes) {
    struct rlimit limit = {bytes, bytes};
    if (setrlimit(resource, &limit) != 0) abort();
    if (getrlimit(resource, &limit) != 0) abort();
    if (limit.rlim_cur != bytes) _exit(0);
}

static void liveUnderLimit(void) {
    limitTo(RLIMIT_AS, statm(0) + ((size_t)1 << 30));
    slabStore *first = slabStoreNew(0), *second = slabStoreNew(0);
    if (first->bytes_max < (size_t)64 << 20) abort();
    if (second->bytes_max < (size_t)32 << 20) abort();
    if (first->bytes_max + second->bytes_max > (size_t)1 << 30) abort();
    useWhatThereIs(first, 30000);
    useWhatThereIs(second, 30000);
    /* More than the ranges hold still finds the rest of the addresses. */
    useWhatThereIs(first, first->bytes_max / 3000 + 10000);
}

static void liveWithoutAddresses(void) {
    limitTo(RLIMIT_AS, statm(0) + ((size_t)3 << 20));
    slabStore *s = slabStoreNew(0);
    if (s->bytes_max > (size_t)1 << 20) abort();
    useWhatThereIs(s, 100);
}

/* As with strict overcommit: addresses there are, but they cannot be opened. */
static void liveWithoutMemory(void) {
    limitTo(RLIMIT_DATA, statm(5) + SLAB_CHUNK_BYTES / 2);
    slabStore *s = slabStoreNew(0);
    useWhatThereIs(s, 100);
    if (s->bytes_max == 0 || s->chunk_count != 0) abort();
}

static void test_a_limit_on_addresses_counts_other_mappings(void **state) {
    slabStoreFree(store); /* its range counts too */
    assert_true(testSurvives(liveUnderLimit));
    assert_true(testSurvives(liveWithoutAddresses));
    assert_true(testSurvives(liveWithoutMemory));
    store = slabStoreNew(0);
}
#endif

static void test_a_reserved_range_opens_in_parts(void **state) {
    size_t before = memUsed();
    char *range = memReserve((size_t)1 << 30, (size_t)1 << 21);
    assert_non_null(range);
    assert_int_equal((uintptr_t)range % ((size_t)1 << 21), 0);
    assert_true(memReserveOpen(range + MAP_PAGE, 2 * MAP_PAGE));
    assert_int_equal(range[MAP_PAGE], 0);
    range[2 * MAP_PAGE] = 1;
    memReserveFill(range + MAP_PAGE, 2 * MAP_PAGE);
    assert_int_equal(range[MAP_PAGE], 0);
    assert_int_equal(range[2 * MAP_PAGE], 1);
    memReserveDiscard(range + MAP_PAGE, 2 * MAP_PAGE);
    assert_int_equal(range[2 * MAP_PAGE], 0);
    assert_int_equal(memUsed(), before);
    memReserveFree(range, (size_t)1 << 30);
    assert_null(memReserve((size_t)1 << 60, MAP_PAGE));
}

#ifdef __linux__
static size_t residentPages(const void *start, size_t bytes) {
    unsigned char pages[SLAB_BYTES / MAP_PAGE];
    size_t resident = 0;
    assert_true(bytes <= SLAB_BYTES);
    assert_int_equal(mincore((void *)(uintptr_t)start, bytes, pages), 0);
    for (size_t i = 0; i < bytes / MAP_PAGE; i++) resident += pages[i] & 1;
    return resident;
}

/* False with old kernels. */
static bool canFill(void) {
    char *range = memReserve(SLAB_BYTES, MAP_PAGE);
    assert_non_null(range);
    assert_true(memReserveOpen(range, SLAB_BYTES));
    memReserveFill(range, SLAB_BYTES);
    bool can = residentPages(range, SLAB_BYTES) == SLAB_BYTES / MAP_PAGE;
    memReserveFree(range, SLAB_BYTES);
    return can;
}

/* The pages of a new slab come one by one in a small class, all at once in a large one. */
static void test_new_slabs_of_large_classes_are_resident_at_once(void **state) {
    enum { SIZE = SLAB_BYTES / 32 };
    uint32_t count = 0;
    if (!canFill()) skip();
    blockPut(count++, SIZE);
    char *slab = (char *)((uintptr_t)blocks[0] & ~(uintptr_t)(SLAB_BYTES - 1));
    /* A hostile build has slabs of two pages, which one block may span. */
    size_t pages = SLAB_BYTES / MAP_PAGE;
    if (pages > 2) assert_true(residentPages(slab, SLAB_BYTES) < pages);
    while (stats().slabs_in_use < 32) blockPut(count++, SIZE);
    slab = (char *)((uintptr_t)blocks[count - 1] & ~(uintptr_t)(SLAB_BYTES - 1));
    assert_int_equal(residentPages(slab, SLAB_BYTES), pages);
    blocksDrop(count);
}
#endif

/* ---- misuse ---- */

/* Brings hot slots back to their bitmaps, where every free is checked. */
static void settle(void) { slabForkBegin(store); }

static void behave(void) {
    char *p = slabAllocFrom(store, 40);
    slabFreeTo(store, p, 40);
    settle();
}
static void freeTwice(void) {
    char *p = slabAllocFrom(store, 40);
    slabFreeTo(store, p, 40);
    slabFreeTo(store, p, 40);
    settle();
}
static void freeTwiceLater(void) {
    char *p = slabAllocFrom(store, 40);
    slabFreeTo(store, p, 40);
    settle();
    slabFreeTo(store, p, 40);
}
static void freeTheMiddle(void) {
    char *p = slabAllocFrom(store, 40);
    slabFreeTo(store, p + 8, 40);
    settle();
}
static void freeAnotherSize(void) {
    char *p = slabAllocFrom(store, 40);
    slabFreeTo(store, p, 80);
    settle();
}

static void test_misuse_stops_the_process(void **state) {
    assert_true(testSurvives(behave));
    assert_false(testSurvives(freeTwice));
    assert_false(testSurvives(freeTwiceLater));
    assert_false(testSurvives(freeTheMiddle));
    assert_false(testSurvives(freeAnotherSize));
}

#ifdef LEAK_CHECKED
static volatile char sink;

static void readDead(void) {
    char *p = slabAllocFrom(store, 40);
    slabFreeTo(store, p, 40);
    sink = p[10];
}
static void readDeadOfAnotherThread(void) {
    slabRemote remote = {.store = store};
    char *p = slabAllocFrom(store, 40);
    slabRemoteFree(&remote, p);
    sink = p[10];
}
static void writeBehind(void) {
    char *p = slabAllocFrom(store, 40);
    p[40] = 1;
}
static void readUnborn(void) {
    char *p = slabAllocFrom(store, 2000);
    sink = *slabStart(store, slabIdOf(store, p) + 0);
    for (size_t slot = 0; slot < SLAB_BYTES / slabClassSize(2000); slot++)
        sink = slabStart(store, slabIdOf(store, p))[slot * slabClassSize(2000)];
}

static void test_sanitizers_detect_access_to_freed_blocks_and_borders(void **state) {
    assert_false(testSurvives(readDead));
    assert_false(testSurvives(readDeadOfAnotherThread));
    assert_false(testSurvives(writeBehind));
    assert_false(testSurvives(readUnborn));
}
#endif

#ifdef HOSTILE_BUILD
static void test_hostile_builds_fill_freed_blocks_and_vary_addresses(void **state) {
    unsigned same = 0;
    for (int i = 0; i < 1000; i++) {
        unsigned char *p = slabAllocFrom(store, 40);
        assert_int_equal(p[0], 0xDB);
        memset(p, 1, 40);
        slabFreeTo(store, p, 40);
        unsigned char *q = slabAllocFrom(store, 40);
        same += p == q;
        slabFreeTo(store, q, 40);
    }
    assert_true(same < 100);
}
#endif

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setUp, tearDown)

int test_slab(void) {
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_classes_are_the_multiples_of_8_that_gain_a_slot),
        WITH_STORE(test_the_largest_class_leaves_16_bytes_of_a_slab),
        WITH_STORE(test_same_class_means_same_size),
        WITH_STORE(test_every_size_is_aligned_and_writable_to_the_class_s_end),
        WITH_STORE(test_the_store_knows_the_size_of_exact_blocks),
        WITH_STORE(test_used_memory_counts_slots_and_bookkeeping_exactly),
        WITH_STORE(test_new_blocks_fill_the_fullest_slab),
        WITH_STORE(test_free_slots_are_reused),
        WITH_STORE(test_purge_returns_empty_slabs_in_slices),
        WITH_STORE(test_empty_slabs_are_kept_for_the_next_class),
        WITH_STORE(test_compaction_packs_all_classes),
        WITH_STORE(test_compaction_fills_slots_that_allocation_skips),
        WITH_STORE(test_blocks_not_moved_stay_and_are_offered_again),
        WITH_STORE(test_a_call_without_budget_makes_one_step),
        WITH_STORE(test_hot_slots_do_not_prevent_freeing_a_slab),
        WITH_STORE(test_no_page_shared_with_a_child_is_written),
        WITH_STORE(test_a_store_made_in_a_fork_window_ends_it_too),
        WITH_STORE(test_other_threads_free_while_the_owner_works),
        WITH_STORE(test_the_whole_keyspace_is_exchanged),
        WITH_STORE(test_a_full_range_falls_back_to_the_general_allocator),
#ifndef TESTS_SANITIZED
        WITH_STORE(test_a_limit_on_addresses_counts_other_mappings),
#endif
        cmocka_unit_test(test_a_reserved_range_opens_in_parts),
#ifdef __linux__
        WITH_STORE(test_new_slabs_of_large_classes_are_resident_at_once),
#endif
        WITH_STORE(test_misuse_stops_the_process),
#ifdef LEAK_CHECKED
        WITH_STORE(test_sanitizers_detect_access_to_freed_blocks_and_borders),
#endif
#ifdef HOSTILE_BUILD
        WITH_STORE(test_hostile_builds_fill_freed_blocks_and_vary_addresses),
#endif
    };
    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
