/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/map: alignment, zeros, contents that survive a resize, the count; random mappings
 * against an oracle that knows the bytes of each; reserved ranges. */
#include "base_test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/random.h"

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
    /* An adjacent mapping prevents some of the growth in place. */
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

/* ---------------------------------------------------------------- random mappings and an oracle */

enum { LIVE_MAX = 12, PAGES_MAX = 700, STEPS = 1500 };

/* A mapping and what its pages must hold: the first and the last word of each, 0 where nothing was
 * written. */
typedef struct mapping {
    char *at;
    size_t pages, align;
    uint64_t words[PAGES_MAX];
} mapping;

static mapping live[LIVE_MAX];

static uint64_t *firstWord(const mapping *m, size_t page) {
    return (uint64_t *)(void *)(m->at + page * MAP_PAGE);
}
static uint64_t *lastWord(const mapping *m, size_t page) {
    return (uint64_t *)(void *)(m->at + (page + 1) * MAP_PAGE - sizeof(uint64_t));
}

static void assertContents(const mapping *m) {
    for (size_t i = 0; i < m->pages; i++) {
        if (*firstWord(m, i) == m->words[i] && *lastWord(m, i) == ~m->words[i] * (m->words[i] != 0))
            continue;
        fail_msg("page %zu of %zu holds other words than were written", i, m->pages);
    }
}

/* Writes some pages and leaves others untouched, so that zeros are seen too. */
static void writeSome(mapping *m) {
    for (size_t i = 0; i < m->pages; i++) {
        if (randomUniform(3)) continue;
        m->words[i] = randomNext() | 1;
        *firstWord(m, i) = m->words[i];
        *lastWord(m, i) = ~m->words[i];
    }
}

static size_t somePages(void) { return 1 + randomUniform(randomUniform(4) ? 40 : PAGES_MAX); }

static void changeOne(mapping *m) {
    static const size_t aligns[] = {MAP_PAGE, 4 * MAP_PAGE, 65536, HUGE_PAGE};
    if (!m->at) {
        m->pages = somePages();
        m->align = aligns[randomUniform(4)];
        m->at = memMap(m->pages * MAP_PAGE, m->align);
        memset(m->words, 0, sizeof(m->words));
    } else if (randomUniform(4)) {
        size_t pages = somePages();
        m->at = memRemap(m->at, m->pages * MAP_PAGE, pages * MAP_PAGE, m->align);
        /* What is cut off is forgotten; what is added reads as zeros. */
        if (pages < m->pages) memset(m->words + pages, 0, (m->pages - pages) * sizeof(uint64_t));
        m->pages = pages;
    } else {
        assertContents(m);
        memUnmap(m->at, m->pages * MAP_PAGE);
        m->at = NULL;
        return;
    }
    assert_int_equal((uintptr_t)m->at % m->align, 0);
    assertContents(m);
    writeSome(m);
}

/* Address space of this process in bytes, 0 where the system does not report it. */
static size_t addressSpace(void) {
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%llu", &pages) != 1) pages = 0;
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_random_mappings_hold_what_was_written(void **state) {
    (void)state;
    testSeed("map");
    size_t before = memUsed(), space = addressSpace();
    for (int step = 0; step < STEPS; step++) {
        changeOne(&live[randomUniform(LIVE_MAX)]);
        size_t bytes = 0;
        for (int i = 0; i < LIVE_MAX; i++) bytes += live[i].at ? live[i].pages * MAP_PAGE : 0;
        assert_int_equal(memUsed() - before, bytes);
        /* A mapping that overlapped another would have overwritten it. */
        if (step % 50 && step != STEPS - 1) continue;
        for (int i = 0; i < LIVE_MAX; i++) {
            if (live[i].at) assertContents(&live[i]);
        }
    }
    for (int i = 0; i < LIVE_MAX; i++) {
        if (live[i].at) memUnmap(live[i].at, live[i].pages * MAP_PAGE);
        live[i].at = NULL;
    }
    assert_int_equal(memUsed(), before);
    /* The excess requested for alignment was unmapped: it would be gigabytes. */
    assert_true(addressSpace() <= space + 64 * HUGE_PAGE);
}

/* ------------------------------------------------------------------ reserved ranges */

/* Asks the kernel, which answers with an error where an access of ours would be a crash. */
static bool isReadable(int fd, const char *at) {
    if (write(fd, at, 1) == 1) return true;
    assert_int_equal(errno, EFAULT);
    return false;
}

static void test_reserved_ranges_open_in_parts(void **state) {
    (void)state;
    testSeed("reserve");
    enum { PARTS = 64, PART = 4 };
    size_t before = memUsed();
    size_t size = (size_t)PARTS * PART * MAP_PAGE;
    char *range = memReserve(size, HUGE_PAGE);
    assert_non_null(range);
    assert_int_equal((uintptr_t)range % HUGE_PAGE, 0);
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = fileno(file);
    bool open[PARTS] = {false};
    char written[PARTS] = {0};
    for (int step = 0; step < 2000; step++) {
        size_t part = randomUniform(PARTS);
        char *at = range + part * PART * MAP_PAGE;
        char *place = at + randomUniform(PART * MAP_PAGE);
        assert_int_equal(isReadable(fd, place), open[part]);
        if (!open[part]) {
            assert_true(memReserveOpen(at, PART * MAP_PAGE));
            open[part] = true;
        } else if (randomUniform(2)) {
            written[part] = (char)(1 + randomUniform(100));
            memset(at, written[part], PART * MAP_PAGE);
        } else {
            memReserveDiscard(at, PART * MAP_PAGE);
            written[part] = 0;
        }
        assert_int_equal(*place, written[part]);
        /* Reserved memory is not counted. */
        assert_int_equal(memUsed(), before);
    }
    memReserveFree(range, size);
    fclose(file);
}

static void test_unsupported_options_are_refused(void **state) {
    (void)state;
    assert_null(memReserve((size_t)1 << 62, MAP_PAGE));
    struct rlimit limit, lower;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    size_t expected = limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
    assert_int_equal(memReserveLimit(), expected);
    lower = limit;
    lower.rlim_cur = (rlim_t)1 << 46;
    if (limit.rlim_cur != RLIM_INFINITY) return; /* the user's own limit is not ours to move */
    assert_int_equal(setrlimit(RLIMIT_AS, &lower), 0);
    /* qemu-user accepts a lower limit and ignores it. */
    struct rlimit effective;
    assert_int_equal(getrlimit(RLIMIT_AS, &effective), 0);
    assert_int_equal(memReserveLimit(),
                     effective.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)1 << 46);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

int test_map(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_are_aligned_zeroed_and_counted),
        cmocka_unit_test(test_resizing_keeps_contents_and_alignment),
        cmocka_unit_test(test_random_mappings_hold_what_was_written),
        cmocka_unit_test(test_reserved_ranges_open_in_parts),
        cmocka_unit_test(test_unsupported_options_are_refused),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
