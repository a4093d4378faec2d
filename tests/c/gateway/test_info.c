/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info.c: INFO with the keys of several nodes, and texts that do not fit. */
#include "gateway/info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

#define DB(number, keys, expires, ttl) \
    "db" #number ":keys=" #keys ",expires=" #expires ",avg_ttl=" #ttl \
    ",keys_with_volatile_items=0\r\n"
#define TITLE "# Keyspace\r\n"

/* The text as a reply. */
static str replyWith(const char *text, char kind) {
    str s = STR_EMPTY;
    slice bytes = sliceOf(text);
    strAppendFormat(&s, kind == '=' ? "=%zu\r\ntxt:%s\r\n" : "$%zu\r\n%s\r\n",
                    bytes.len + (kind == '=' ? 4 : 0), text);
    return s;
}

static void summed(const char *expected, int proto, const char *own, bool counts,
                   const char *other) {
    char kind = proto == 3 ? '=' : '$';
    str wanted = replyWith(expected, kind), a = replyWith(own, kind), b = replyWith(other, kind);
    str out = STR_EMPTY;
    slice others[] = {strSlice(&b)};
    infoSumKeyspaces(proto, strSlice(&a), counts, others, 1, &out);
    assert_string_equal(strText(&wanted), strText(&out));
    strFree(&wanted);
    strFree(&a);
    strFree(&b);
    strFree(&out);
}

static void test_sums(void **state) {
    (void)state;
    for (int proto = 2; proto <= 3; proto++) {
        summed(TITLE DB(0, 3, 2, 75), proto, TITLE DB(0, 1, 1, 100), true, TITLE DB(0, 2, 1, 50));
        summed(TITLE DB(0, 2, 1, 50), proto, TITLE DB(0, 1, 1, 100), false, TITLE DB(0, 2, 1, 50));
        summed(TITLE DB(0, 1, 0, 0) DB(3, 4, 0, 0), proto, TITLE DB(3, 4, 0, 0), true,
               TITLE DB(0, 1, 0, 0));
        summed("# A\r\nx:1\r\n\r\n" TITLE DB(0, 2, 0, 0) "\r\n# B\r\ny:1\r\n", proto,
               "# A\r\nx:1\r\n\r\n" TITLE DB(0, 1, 0, 0) "\r\n# B\r\ny:1\r\n", true,
               TITLE DB(0, 1, 0, 0));
        summed("# A\r\nx:1\r\n", proto, "# A\r\nx:1\r\n", true, TITLE DB(0, 1, 0, 0));
        summed(TITLE, proto, TITLE, true, TITLE);
    }
}

static void test_malformed(void **state) {
    (void)state;
    summed(TITLE DB(0, 1, 0, 0), 2, TITLE DB(0, 1, 0, 0), true, "");
    summed(TITLE DB(0, 1, 0, 0), 2, TITLE DB(0, 1, 0, 0), true, TITLE "dbx:keys=1\r\n");
    summed(TITLE DB(0, 1, 0, 0), 2, TITLE DB(0, 1, 0, 0), true, TITLE "db99999:keys=1\r\n");
    summed(TITLE DB(0, 3, 0, 0), 2, TITLE DB(0, 1, 0, 0), true, TITLE "db0:keys=2,expires");
    assert_int_equal(0, infoText(SLICE("-ERR x\r\n")).len);
    assert_int_equal(0, infoText(SLICE("$-1\r\n")).len);
    assert_true(infoHasKeyspace(SLICE("# A\r\n" TITLE)));
    assert_false(infoHasKeyspace(SLICE("")));
}

int test_info(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_malformed),
    };
    return cmocka_run_group_tests_name("info", tests, NULL, NULL);
}
