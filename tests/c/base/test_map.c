/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/map: alignment, zeros, contents that survive a resize, the count. */
#include "base_test.h"

#include "base/alloc.h"
#include "base/map.h"

#define HUGE_PAGE ((size_t)2 * 1024 * 1024)

/* Writes a mark into every page, or checks it. */
static void markPages(char *map, size_t from, size_t to) {
    for (size_t at = from; at < to; at += MAP_PAGE) map[at] = (char)(at / MAP_PAGE + 1);
}

static void assertMarks(const char *map, size_t from, size_t to) {
    for (size_t at = from; at < to; at += MAP_PAGE)
        assert_int_equal(map[at], (char)(at / MAP_PAGE + 1));
}

static void assertZeros(const char *map, size_t from, size_t to) {
    for (size_t at = from; at < to; at++) {
        if (map[at]) fail_msg("byte %zu is %d", at, map[at]);
    }
}

static void test_maps_are_aligned_zeroed_and_counted(void **state) {
    (void)state;
    size_t before = memUsed();
    static const size_t aligns[] = {MAP_PAGE, 65536, HUGE_PAGE};
    for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++) {
        size_t size = 3 * MAP_PAGE;
        char *map = memMap(size, aligns[i]);
        assert_int_equal((uintptr_t)map % aligns[i], 0);
        assert_int_equal(memUsed() - before, size);
        assertZeros(map, 0, size);
        markPages(map, 0, size);
        memUnmap(map, size);
        assert_int_equal(memUsed(), before);
    }
}

static void test_resizing_keeps_contents_and_alignment(void **state) {
    (void)state;
    size_t before = memUsed();
    size_t size = HUGE_PAGE;
    char *map = memMap(size, HUGE_PAGE);
    /* A neighbour right behind keeps some of the growing from happening in place. */
    char *neighbour = memMap(MAP_PAGE, MAP_PAGE);
    markPages(map, 0, size);
    for (int step = 0; step < 8; step++) {
        size_t grown = size + HUGE_PAGE / 2;
        map = memRemap(map, size, grown, HUGE_PAGE);
        assert_int_equal((uintptr_t)map % HUGE_PAGE, 0);
        assert_int_equal(memUsed() - before, grown + MAP_PAGE);
        assertMarks(map, 0, size);
        assertZeros(map, size, grown);
        markPages(map, size, grown);
        size = grown;
    }
    char *same = memRemap(map, size, size, HUGE_PAGE);
    assert_ptr_equal(same, map);
    map = memRemap(map, size, MAP_PAGE, HUGE_PAGE);
    assertMarks(map, 0, MAP_PAGE);
    assert_int_equal(memUsed() - before, 2 * MAP_PAGE);
    /* What was cut off does not come back. */
    map = memRemap(map, MAP_PAGE, 2 * MAP_PAGE, HUGE_PAGE);
    assertZeros(map, MAP_PAGE, 2 * MAP_PAGE);
    memUnmap(map, 2 * MAP_PAGE);
    memUnmap(neighbour, MAP_PAGE);
    assert_int_equal(memUsed(), before);
}

int test_map(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_are_aligned_zeroed_and_counted),
        cmocka_unit_test(test_resizing_keeps_contents_and_alignment),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
