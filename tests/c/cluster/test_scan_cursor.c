/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster/scan_cursor.h. */
#include "../bus/bus_test.h"

#include "base/hash.h"
#include "cluster/scan_cursor.h"

static scanPrint own, other;

static int setup(void **state) {
    own = scanPrintOf(SLICE("a shard"));
    other = scanPrintOf(SLICE("another shard"));
    return 0;
}

static void every_slot_has_a_short_tag(void **state) {
    assert_string_equal(scanTag(0).ptr, "06S");
    assert_string_equal(scanTag(1).ptr, "Qi");
    assert_string_equal(scanTag(8192).ptr, "8YG");
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        slice tag = scanTag(slot);
        assert_in_range(tag.len, 1, SCAN_TAG_MAX - 1);
        assert_int_equal(hashSlot(tag), slot);
    }
}

static void the_fingerprint_is_of_printable_characters(void **state) {
    for (int i = 0; i < SCAN_PRINT_LEN; i++) {
        assert_in_range(own.text[i], '0', 'o');
        assert_in_range(other.text[i], '0', 'o');
    }
    assert_memory_not_equal(own.text, other.text, SCAN_PRINT_LEN);
}

/* What is printed is parsed again; by another shard only the slot and the stage. */
static void cursors_are_read_as_they_were_written(void **state) {
    static const scanStage stages[] = {SCAN_OWNED, SCAN_IMPORTING, SCAN_DONE};
    for (size_t i = 0; i < 3 * 4; i++) {
        int slot = (int)(i / 3) * 5461;
        const scanCursor c = {.slot = slot,
                              .stage = stages[i % 3],
                              .is_own = true,
                              .position = (UINT64_MAX >> 14 << 14) + (uint64_t)slot};
        str text = STR_EMPTY;
        scanCursor read;
        scanCursorPrint(&c, &own, &text);
        assert_true(scanCursorParse(strSlice(&text), &own, &read));
        assert_int_equal(read.slot, slot);
        assert_int_equal(read.stage, c.stage);
        assert_true(read.is_own);
        assert_int_equal(read.position, c.position);
        assert_true(scanCursorParse(strSlice(&text), &other, &read));
        assert_int_equal(read.stage, c.stage);
        assert_false(read.is_own);
        assert_int_equal(read.position, (uint64_t)slot);
        assert_int_equal(hashSlot(strSlice(&text)), slot);
        strFree(&text);
    }
}

static void the_start_of_a_slot(void **state) {
    const scanCursor c = {.slot = 1, .stage = SCAN_BEGIN};
    str text = STR_EMPTY;
    scanCursor read;
    scanCursorPrint(&c, &own, &text);
    assert_string_equal(strText(&text), "0-{Qi}-0");
    assert_true(scanCursorParse(strSlice(&text), &own, &read));
    assert_int_equal(read.stage, SCAN_BEGIN);
    assert_int_equal(read.position, 1);
    strFree(&text);
}

/* A number of another slot, and what other servers write, is the start of the slot. */
static void other_cursors_restart_the_slot(void **state) {
    str text = STR_EMPTY;
    scanCursor read;
    strAppend(&text, own.text, SCAN_PRINT_LEN);
    strAppendText(&text, "-{06S}-16385");
    assert_true(scanCursorParse(strSlice(&text), &own, &read));
    assert_false(read.is_own);
    assert_int_equal(read.position, 0);
    strFree(&text);
    static const char *const texts[] = {"-{06S}-0",          "abcdef-{06S}-16384",
                                        "abcde-{06S}-16384", "abcdefgh-{06S}-0",
                                        "0-{06S}}-0",        "abcdefx-{06S}-0"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_true(scanCursorParse(sliceOf(texts[i]), &own, &read));
        assert_int_equal(read.slot, 0);
        assert_int_equal(read.position, 0);
        assert_false(read.is_own);
    }
}

static void what_is_no_cursor(void **state) {
    static const char *const texts[] = {
        "",           "x",  "0-{06S}", "0-{06S}-",   "0-{06S}-x", "0-{06S}-0-0",
        "0-{06S}-0 ", "--", "-",       "0-{06S}--1", "0-06S",     "0-{06S}-18446744073709551616"};
    scanCursor read;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(scanCursorParse(sliceOf(texts[i]), &own, &read));
}

/* As a released server reads it: the number like a cursor of SCAN, the tag like a key. */
static void numbers_and_tags_in_other_forms(void **state) {
    static const char *const texts[] = {"0-06S-0",     "0-{06S}-+5", "0-{06S}- 5",
                                        "0-{06S}-005", "0-{06S}x-5", "0--0"};
    scanCursor read;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_true(scanCursorParse(sliceOf(texts[i]), &own, &read));
        assert_int_equal(read.slot, 0);
    }
    assert_true(scanCursorParse(SLICE("0-{06S-0"), &own, &read));
    assert_int_equal(read.slot, hashSlot(SLICE("{06S")));
    str text = STR_EMPTY;
    strAppend(&text, own.text, SCAN_PRINT_LEN);
    strAppendText(&text, "-06S-+016384");
    assert_true(scanCursorParse(strSlice(&text), &own, &read));
    assert_true(read.is_own);
    assert_int_equal(read.position, 16384);
    strFree(&text);
}

int test_scan_cursor(void);
int test_scan_cursor(void) {
#define T(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        T(every_slot_has_a_short_tag),
        T(the_fingerprint_is_of_printable_characters),
        T(cursors_are_read_as_they_were_written),
        T(the_start_of_a_slot),
        T(other_cursors_restart_the_slot),
        T(what_is_no_cursor),
        T(numbers_and_tags_in_other_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
