/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of psync/slot_offsets.c: beside a plain table of all changes an offset is never too small,
 * and only as much too great as a group is long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/hash.h"
#include "psync/slot_offsets.h"

static slotOffsets offsets;
static int64_t written, confirmed;
/* The plain table. */
static int64_t last[SLOT_COUNT];

static int setUp(void **state) {
    (void)state;
    slotOffsetsInit(&offsets);
    written = confirmed = 0;
    memset(last, 0, sizeof(last));
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    slotOffsetsClear(&offsets);
    return 0;
}

static void change(int slot) {
    written += 10;
    last[slot] = written;
    slotOffsetsNote(&offsets, slot, written, confirmed);
}

/* As it is asked: what it tells of the slot is confirmed or not, like its last change. */
static void assert_covers(int slot) {
    int64_t offset = slotOffsetsOf(&offsets, slot, written, confirmed);
    assert_true(offset <= written);
    if (last[slot] > confirmed) {
        assert_true(offset >= last[slot]);
        assert_true(offset < last[slot] + SLOT_NOTE_GROUP * 10);
    }
}

static void a_slot_without_changes_waits_for_nothing(void **state) {
    (void)state;
    assert_int_equal(slotOffsetsOf(&offsets, 7, 0, 0), 0);
    change(6);
    assert_int_equal(slotOffsetsOf(&offsets, 7, written, 0), 0);
    assert_int_equal(slotOffsetsOf(&offsets, 6, written, 0), 10);
}

static void what_is_asked_at_once_is_exact(void **state) {
    (void)state;
    for (int i = 0; i < 3 * SLOT_NOTE_GROUP; i++) {
        change(i);
        assert_int_equal(slotOffsetsOf(&offsets, i, written, confirmed), written);
        if (i) assert_int_equal(slotOffsetsOf(&offsets, i - 1, written, confirmed), written - 10);
    }
}

static void more_changes_than_notes_are_kept(void **state) {
    (void)state;
    for (int i = 0; i < SLOT_COUNT; i++) change(i * 7 % SLOT_COUNT);
    for (int i = 0; i < SLOT_COUNT; i++) assert_covers(i);
}

static void confirmed_changes_are_dropped(void **state) {
    (void)state;
    for (int i = 0; i < SLOT_NOTES; i++) {
        change(i);
        confirmed = written;
    }
    assert_true(offsets.next - offsets.first <= SLOT_NOTE_GROUP);
    for (int i = 0; i < SLOT_COUNT; i++) assert_int_equal(offsets.table[i], 0);
}

static void what_another_offset_covers_is_dropped(void **state) {
    (void)state;
    for (int i = 0; i < SLOT_NOTE_GROUP + 5; i++) change(i);
    slotOffsetsDrop(&offsets);
    assert_int_equal(slotOffsetsOf(&offsets, 3, written, confirmed), 0);
    change(3);
    assert_int_equal(slotOffsetsOf(&offsets, 3, written, confirmed), written);
}

static void any_order_of_changes_confirmations_and_reads(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 200; round++) {
        random = random * 1664525 + 1013904223;
        int changes = (int)(random >> 8) % (round % 10 ? 300 : 2 * SLOT_NOTES);
        for (int i = 0; i < changes; i++) {
            random = random * 1664525 + 1013904223;
            change((int)(random >> 10) % (round % 3 ? SLOT_COUNT : 50));
        }
        if (round % 2) {
            for (int i = 0; i < SLOT_COUNT; i++) assert_covers(i);
        }
        int64_t step = (int64_t)((random >> 4) % 400) * 10;
        confirmed = confirmed + step < written ? confirmed + step : written;
    }
}

int test_slot_offsets(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slot_without_changes_waits_for_nothing, setUp, tearDown),
        cmocka_unit_test_setup_teardown(what_is_asked_at_once_is_exact, setUp, tearDown),
        cmocka_unit_test_setup_teardown(more_changes_than_notes_are_kept, setUp, tearDown),
        cmocka_unit_test_setup_teardown(confirmed_changes_are_dropped, setUp, tearDown),
        cmocka_unit_test_setup_teardown(what_another_offset_covers_is_dropped, setUp, tearDown),
        cmocka_unit_test_setup_teardown(any_order_of_changes_confirmations_and_reads, setUp,
                                        tearDown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
