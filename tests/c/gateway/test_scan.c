/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan.c: cursors as numbers, and back. */
#include "gateway/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static int slotOf(slice key) { return hashSlot(key); }

/* The number in the translated reply. */
static str numberOf(scanPrints *p, const char *text) {
    str reply = STR_EMPTY, out = STR_EMPTY;
    strAppendFormat(&reply, "*2\r\n$%zu\r\n%s\r\n*1\r\n$1\r\nk\r\n", strlen(text), text);
    scanReplyTranslate(p, strSlice(&reply), slotOf, &out);
    strFree(&reply);
    const char *tail = strstr(strText(&out), "\r\n*1\r\n$1\r\nk\r\n");
    if (!tail) return out; /* an error */
    const char *line = strchr(strText(&out) + 4, '\n') + 1;
    str number = strNew(sliceMake(line, (size_t)(tail - line)));
    strFree(&out);
    return number;
}

/* The text that is sent for a cursor, with the tag "a". */
static void same(const scanPrints *p, const str *number, const char *expected) {
    str before = STR_EMPTY, after = STR_EMPTY;
    int slot;
    assert_true(scanCursorRead(p, strSlice(number), &slot, &before, &after));
    assert_int_equal(15495, slot);
    strAppendText(&before, "{a}");
    strAppendSlice(&before, strSlice(&after));
    assert_string_equal(expected, strText(&before));
    strFree(&before);
    strFree(&after);
}

static void test_there_and_back(void **state) {
    (void)state;
    /* 15495 + 5 * 16384, and the greatest bucket. */
    const char *texts[] = {"ABCDEF-{a}-97415", "ABCDEFi-{a}-97415", "ABCDEFd-{a}-15495", "0-{a}-0",
                           "uvwxyz-{a}-9007199254740103"};
    static scanPrints p, fresh;
    for (int i = 0; i < 5; i++) {
        str number = numberOf(&p, texts[i]);
        same(&p, &number, texts[i]);
        same(&fresh, &number, "0-{a}-0");
        strFree(&number);
    }
}

static void test_end_and_errors(void **state) {
    (void)state;
    static scanPrints p;
    str number = numberOf(&p, "0");
    assert_string_equal("0", strText(&number));
    strFree(&number);
    const char *bad[] = {"x", "ABCDEF-{a}-1", "ABCDEFx-{a}-15495", "ABC-{a}-15495", "ABCDEF-{a}-x"};
    for (int i = 0; i < 5; i++) {
        number = numberOf(&p, bad[i]);
        assert_memory_equal("-ERR ", strText(&number), 5);
        strFree(&number);
    }
    str before = STR_EMPTY, after = STR_EMPTY;
    int slot;
    assert_false(scanCursorRead(&p, SLICE("x"), &slot, &before, &after));
    assert_true(scanCursorRead(&p, SLICE("0"), &slot, &before, &after));
    assert_int_equal(0, slot);
    /* The beginning of slot 0 is no end. */
    strFree(&before);
    strFree(&after);
    number = numberOf(&p, "0-{06S}-0");
    assert_string_not_equal("0", strText(&number));
    strFree(&number);
}

/* Another node answers for the slot: a cursor of the one before is not used for it. */
static void test_other_print(void **state) {
    (void)state;
    static scanPrints p;
    str first = numberOf(&p, "ABCDEF-{a}-97415"), import = numberOf(&p, "GHIJKLi-{a}-97415");
    same(&p, &first, "ABCDEF-{a}-97415");
    same(&p, &import, "GHIJKLi-{a}-97415");
    str second = numberOf(&p, "GHIJKL-{a}-97415");
    same(&p, &first, "0-{a}-0");
    same(&p, &second, "GHIJKL-{a}-97415");
    strFree(&first);
    strFree(&import);
    strFree(&second);
}

int test_scan(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_end_and_errors),
        cmocka_unit_test(test_other_print),
    };
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
