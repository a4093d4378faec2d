/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/alloc: the count of bytes in use, what happens when memory is out. */
#include "base_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"

/* Larger than any allocator gives, and still a legal size. */
#define TOO_MUCH ((size_t)PTRDIFF_MAX - 4096)

static void test_count_follows_alloc_realloc_and_free(void **state) {
    (void)state;
    size_t before = memUsed();
    char *p = memAlloc(100);
    assert_int_equal(memUsed() - before, memSizeOf(p));
    assert_true(memSizeOf(p) >= 100);
    p = memRealloc(p, 5000);
    assert_int_equal(memUsed() - before, memSizeOf(p));
    p = memRealloc(p, 10);
    assert_int_equal(memUsed() - before, memSizeOf(p));
    char *q = memCalloc(7, 9);
    assert_int_equal(memUsed() - before, memSizeOf(p) + memSizeOf(q));
    memFree(p);
    memFree(q);
    assert_int_equal(memUsed(), before);
}

static void test_known_sizes_are_counted_like_others(void **state) {
    (void)state;
    size_t before = memUsed();
    for (size_t size = 0; size <= 5000; size += size < 1100 ? 1 : 97) {
        void *known = memTryAllocKnown(size);
        assert_non_null(known);
        memset(known, 1, size);
        assert_int_equal(memUsed() - before, memSizeOf(known));
        memFreeKnown(known, size);
        assert_int_equal(memUsed(), before);
        void *grown = memTryRealloc(memTryAllocKnown(size), size + 40);
        memFreeKnown(grown, size + 40);
        assert_int_equal(memUsed(), before);
    }
    memFreeKnown(NULL, 5);
    assert_null(memTryAllocKnown(SIZE_MAX));
}

static void test_count_is_exact_over_a_random_history(void **state) {
    (void)state;
    testSeed(__func__);
    void *blocks[64] = {NULL};
    size_t before = memUsed();
    for (int step = 0; step < 20000; step++) {
        size_t i = (size_t)randomUniform(COUNT_OF(blocks));
        size_t size = (size_t)randomUniform(step % 50 == 0 ? 100000 : 300);
        switch (randomUniform(3)) {
        case 0:
            memFree(blocks[i]);
            blocks[i] = memAlloc(size);
            break;
        case 1: blocks[i] = memRealloc(blocks[i], size); break;
        default: memFree(blocks[i]); blocks[i] = NULL;
        }
    }
    size_t live = 0;
    for (size_t i = 0; i < COUNT_OF(blocks); i++) live += memSizeOf(blocks[i]);
    assert_int_equal(memUsed() - before, live);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) memFree(blocks[i]);
    assert_int_equal(memUsed(), before);
}

static void test_zero_bytes_are_a_block_of_their_own(void **state) {
    (void)state;
    void *p = memAlloc(0), *q = memCalloc(0, 8);
    assert_non_null(p);
    assert_non_null(q);
    assert_ptr_not_equal(p, q);
    p = memRealloc(p, 0);
    assert_non_null(p);
    memFree(p);
    memFree(q);
    memFree(NULL);
    assert_int_equal(memSizeOf(NULL), 0);
}

static void test_calloc_is_zero_even_in_used_memory(void **state) {
    (void)state;
    for (int round = 0; round < 8; round++) {
        unsigned char *p = memAlloc(1000);
        memset(p, 0xee, 1000);
        memFree(p);
        p = memCalloc(10, 100);
        for (int i = 0; i < 1000; i++) assert_int_equal(p[i], 0);
        memFree(p);
    }
}

static void test_try_forms_refuse_and_keep_the_old_block(void **state) {
    (void)state;
    size_t before = memUsed();
    assert_null(memTryAlloc(TOO_MUCH));
    assert_null(memTryAlloc(SIZE_MAX));
    char *p = memTryAlloc(16);
    assert_non_null(p);
    memcpy(p, "fifteen letters", 16);
    assert_null(memTryRealloc(p, TOO_MUCH));
    assert_null(memTryRealloc(p, SIZE_MAX));
    assert_string_equal(p, "fifteen letters");
    p = memTryRealloc(p, 4000);
    assert_non_null(p);
    assert_string_equal(p, "fifteen letters");
    memFree(p);
    p = memTryRealloc(NULL, 20);
    assert_non_null(p);
    memFree(p);
    assert_int_equal(memUsed(), before);
}

static void sayOutOfMemory(size_t size) {
    printf("asked %zu\n", size);
    fflush(stdout);
}

static void allocTooMuch(void) {
    memSetOutOfMemoryProc(sayOutOfMemory);
    memAlloc(TOO_MUCH);
}

static void callocOverflows(void) {
    volatile size_t count = SIZE_MAX / 2;
    memCalloc(count, 3);
}

static void test_out_of_memory_calls_the_handler_and_aborts(void **state) {
    (void)state;
    char output[1024], expected[64];
    assert_int_equal(testInChild(allocTooMuch, output, sizeof(output)), SIGABRT);
    snprintf(expected, sizeof(expected), "asked %zu\n", TOO_MUCH);
    assert_non_null(strstr(output, expected));
    assert_int_equal(testInChild(callocOverflows, output, sizeof(output)), SIGABRT);
    assert_non_null(strstr(output, "Out of memory"));
}

static void test_good_size_is_at_least_the_size_and_stable(void **state) {
    (void)state;
    for (size_t size = 0; size < 5000; size++) {
        size_t good = memGoodSize(size);
        assert_true(good >= size);
        assert_int_equal(memGoodSize(good), good);
        void *p = memAlloc(good);
        assert_true(memSizeOf(p) >= good);
        memFree(p);
    }
    assert_int_equal(memGoodSize(SIZE_MAX), SIZE_MAX);
}

static void test_dup_copies_and_terminates(void **state) {
    (void)state;
    char *copy = memDup("a\0bc", 4);
    assert_memory_equal(copy, "a\0bc\0", 5);
    memFree(copy);
    copy = memDup(NULL, 0);
    assert_string_equal(copy, "");
    memFree(copy);
}

static void test_new_macros_zero(void **state) {
    (void)state;
    uint64_t *one = memNew(uint64_t);
    uint64_t *many = memNewArray(uint64_t, 5);
    assert_int_equal(*one, 0);
    for (int i = 0; i < 5; i++) assert_int_equal(many[i], 0);
    memFree(one);
    memFree(many);
}

static void test_bytes_outside_are_counted(void **state) {
    (void)state;
    size_t before = memUsed();
    memCount(12345);
    assert_int_equal(memUsed() - before, 12345);
    memCount(-12345);
    assert_int_equal(memUsed(), before);
}

enum { WORKERS = 4, BLOCKS = 500 };
static void *handed_over[WORKERS][BLOCKS];

static void *allocMany(void *arg) {
    void **blocks = arg;
    for (int i = 0; i < BLOCKS; i++) blocks[i] = memAlloc((size_t)i);
    return NULL;
}

static void *freeMany(void *arg) {
    void **blocks = arg;
    for (int i = 0; i < BLOCKS; i++) memFree(blocks[i]);
    return NULL;
}

static void runWorkers(void *(*proc)(void *)) {
    pthread_t ids[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, proc, handed_over[i]), 0);
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(ids[i], NULL), 0);
}

/* Threads come and go, and their counters are used again by the next ones. */
static void test_blocks_may_be_freed_by_another_thread(void **state) {
    (void)state;
    size_t before = memUsed();
    for (int round = 0; round < 3; round++) {
        runWorkers(allocMany);
        size_t live = 0;
        for (int i = 0; i < WORKERS; i++) {
            for (int j = 0; j < BLOCKS; j++) live += memSizeOf(handed_over[i][j]);
        }
        assert_int_equal(memUsed() - before, live);
        runWorkers(freeMany);
        assert_int_equal(memUsed(), before);
    }
}

static void test_report_and_texts(void **state) {
    (void)state;
    char *block = memAlloc(3000000);
    memset(block, 1, 3000000);
    memReport report;
    memReportRead(&report);
    assert_true(report.allocated >= 3000000);
    assert_true(report.active >= 3000000);
    assert_true(report.resident >= report.active);
    assert_true(report.rss >= 3000000);
    assert_true(report.muzzy < report.resident + 1);
    memFree(block);
    const char *name = memAllocatorName();
#ifdef USE_JEMALLOC
    assert_memory_equal(name, "jemalloc-5.", 11);
    const char *expected = "Begin jemalloc statistics";
#else
    assert_string_equal(name, "libc");
    const char *expected = "Stats not supported for the current allocator";
#endif
    char *text = memAllocatorStats();
    assert_non_null(strstr(text, expected));
    memFree(text);
    memSetBackgroundThread(1);
    memSetBackgroundThread(0);
    memPurge();
}

/* Of many blocks most are freed, and the rest moves until it lies close: contents stay, and nothing
 * is counted twice. */
static void test_blocks_move_together(void **state) {
    (void)state;
    enum { BLOCKS = 8000, SIZE = 200, KEPT_EACH = 16, WALKS = 8 };
    char **blocks = memNewArray(char *, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = memAlloc(SIZE), i & 0x7f, SIZE);
    for (int i = 0; i < BLOCKS; i++) {
        if (i % KEPT_EACH == 0) continue;
        memFree(blocks[i]);
        blocks[i] = NULL;
    }
    size_t used = memUsed(), moved = 0;
    for (int i = 0; i < BLOCKS * WALKS; i++) {
        char **block = &blocks[i % BLOCKS];
        char *place = *block ? memMoveIfSparse(*block) : NULL;
        moved += place != NULL;
        if (place) *block = place;
    }
#ifdef USE_JEMALLOC
    assert_true(moved > BLOCKS / KEPT_EACH / 2);
#endif
    (void)memSparseBytes(); /* of the whole process, so any value */
    assert_int_equal(memUsed(), used);
    for (int i = 0; i < BLOCKS; i += KEPT_EACH) {
        for (int k = 0; k < SIZE; k++) assert_int_equal(blocks[i][k], i & 0x7f);
        memFree(blocks[i]);
    }
    memFree(blocks);
}

int test_alloc(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_follows_alloc_realloc_and_free),
        cmocka_unit_test(test_known_sizes_are_counted_like_others),
        cmocka_unit_test(test_count_is_exact_over_a_random_history),
        cmocka_unit_test(test_zero_bytes_are_a_block_of_their_own),
        cmocka_unit_test(test_calloc_is_zero_even_in_used_memory),
        cmocka_unit_test(test_try_forms_refuse_and_keep_the_old_block),
        cmocka_unit_test(test_out_of_memory_calls_the_handler_and_aborts),
        cmocka_unit_test(test_good_size_is_at_least_the_size_and_stable),
        cmocka_unit_test(test_dup_copies_and_terminates),
        cmocka_unit_test(test_new_macros_zero),
        cmocka_unit_test(test_bytes_outside_are_counted),
        cmocka_unit_test(test_blocks_may_be_freed_by_another_thread),
        cmocka_unit_test(test_report_and_texts),
        cmocka_unit_test(test_blocks_move_together),
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
