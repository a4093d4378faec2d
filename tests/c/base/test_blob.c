/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/blob: counting, room, sizes that cannot be. */
#include "base_test.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/blob.h"

static void test_the_last_release_frees(void **state) {
    (void)state;
    size_t before = memUsed();
    blob *b = blobNew(100);
    assert_int_equal(b->refs, 1);
    assert_int_equal(b->len, 0);
    assert_int_equal(b->cap, 100);
    assert_true(blobMemory(b) >= sizeof(blob) + 101);
    memset(b->bytes, 'x', 101); /* space for a NUL that is not counted */
    assert_ptr_equal(blobRetain(b), b);
    assert_int_equal(b->refs, 2);
    blobRelease(b);
    assert_true(memUsed() > before);
    assert_int_equal(b->refs, 1);
    blobRelease(b);
    assert_int_equal(memUsed(), before);
    blobRelease(NULL);
}

/* Not NULL, and the compiler believes it. */
static blob *given(blob *b) {
    if (!b) abort();
    return b;
}

static void test_reserve_keeps_the_content(void **state) {
    (void)state;
    blob *b = blobNew(0);
    assert_int_equal(b->cap, 0);
    b = given(blobTryReserve(b, 10));
    memcpy(b->bytes, "0123456789", 10);
    b->len = 10;
    b = given(blobTryReserve(b, 100000));
    assert_int_equal(b->cap, 100000);
    assert_int_equal(b->len, 10);
    assert_int_equal(b->refs, 1);
    assert_memory_equal(b->bytes, "0123456789", 10);
    blob *same = blobTryReserve(b, 50);
    assert_ptr_equal(same, b);
    assert_int_equal(b->cap, 100000);
    blobRelease(b);
}

static void test_sizes_that_cannot_be_are_refused(void **state) {
    (void)state;
    assert_null(blobTryNew(SIZE_MAX));
    assert_null(blobTryNew(SIZE_MAX - sizeof(blob)));
    assert_null(blobTryNew(PTRDIFF_MAX));
    blob *b = given(blobTryNew(5));
    memcpy(b->bytes, "12345", 5);
    b->len = 5;
    assert_null(blobTryReserve(b, SIZE_MAX));
    assert_null(blobTryReserve(b, (size_t)PTRDIFF_MAX - 4096));
    assert_int_equal(b->cap, 5);
    assert_memory_equal(b->bytes, "12345", 5);
    blobRelease(b);
}

int test_blob(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_release_frees),
        cmocka_unit_test(test_reserve_keeps_the_content),
        cmocka_unit_test(test_sizes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("blob", tests, NULL, NULL);
}
