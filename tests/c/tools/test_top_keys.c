/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot keys of --top. */
#include <stdio.h>

#include "tools/cli/top_keys.h"
#include "tools_test.h"

static bool take(topKeys *t, const char *bytes) {
    void *reply = NULL;
    valkeyReader *reader = valkeyReaderCreate();
    assert_int_equal(valkeyReaderFeed(reader, bytes, strlen(bytes)), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(reader, &reply), VALKEY_OK);
    assert_non_null(reply);
    bool taken = topKeysTake(t, reply);
    freeReplyObject(reply);
    valkeyReaderFree(reader);
    return taken;
}

#define KEY(name, rate) \
    "*6\r\n$3\r\nkey\r\n$1\r\n" name \
    "\r\n$2\r\ndb\r\n:2\r\n$19\r\nrequests-per-second\r\n$3\r\n" rate "\r\n"
#define HEAD "*4\r\n$17\r\nhalf-life-seconds\r\n:10\r\n$4\r\nkeys\r\n"

static void theServersKeysAreTakenInItsOrder(void **state) {
    topKeys t = {0};
    assert_true(take(&t, HEAD "*2\r\n" KEY("a", "100") KEY("b", "7.5")));
    assert_int_equal(t.count, 2);
    assert_string_equal(strText(&t.list[0].name), "\"a\"");
    assert_int_equal(t.list[0].db, 2);
    assert_true(t.list[0].rate == 100);
    assert_true(t.list[1].rate == 7.5);
    assert_true(take(&t, HEAD "*1\r\n" KEY("c", "500")));
    assert_int_equal(t.count, 1);
    assert_string_equal(strText(&t.list[0].name), "\"c\"");
    topKeysClear(&t);
}

static void mapsOfResp3HaveShares(void **state) {
    topKeys t = {0};
    assert_true(take(
        &t,
        "%2\r\n$17\r\nhalf-life-seconds\r\n:10\r\n$4\r\nkeys\r\n*1\r\n%2\r\n$3\r\nkey\r\n$1\r\nk\r\n$10\r\npercentage\r\n,12.5\r\n"));
    assert_true(t.list[0].percent == 12.5);
    topKeysClear(&t);
}

static void errorsAndOtherRepliesAreNotTaken(void **state) {
    topKeys t = {0};
    assert_false(take(&t, "-ERR unknown command\r\n"));
    assert_false(take(&t, "*2\r\n$4\r\nkeys\r\n:1\r\n"));
    assert_int_equal(t.count, 0);
    topKeysClear(&t);
}

static void theHottestKeysAreKept(void **state) {
    enum { KEYS = 200, KEPT = 32 };
    topKeys t = {0};
    char name[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof(name), "k%d", i * 37 % KEYS);
        topKeysNote(&t, sliceOf(name), 0, i * 37 % KEYS);
    }
    assert_int_equal(t.count, KEPT);
    for (int i = 0; i < KEPT; i++) assert_int_equal(t.list[i].count, KEYS - 1 - i);
    /* A counter that has decayed changes the place, and an equal name of another database is
     * another key. */
    topKeysNote(&t, SLICE("k199"), 0, 170);
    assert_int_equal(t.count, KEPT);
    assert_string_equal(strText(&t.list[0].name), "\"k198\"");
    topKeysNote(&t, SLICE("k198"), 1, 255);
    assert_int_equal(t.list[0].db, 1);
    assert_string_equal(strText(&t.list[1].name), "\"k198\"");
    topKeysClear(&t);
}

int test_top_keys(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(theServersKeysAreTakenInItsOrder),
        cmocka_unit_test(mapsOfResp3HaveShares),
        cmocka_unit_test(errorsAndOtherRepliesAreNotTaken),
        cmocka_unit_test(theHottestKeysAreKept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
