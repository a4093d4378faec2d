/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of tracked keys against a model: which sessions must be told of a change. */
#include "pubsub/cmd_tracking.h"
#include "pubsub/tracking.h"
#include "pubsub_test.h"
#include "store/store.h"

enum { SESSIONS = 30, KEYS = 50 };

static slice keyOf(char dst[16], uint32_t i) {
    int len = snprintf(dst, 16, "key%u", i);
    return sliceMake(dst, (size_t)len);
}

static void random_reads_and_changes_tell_the_right_sessions(void **state) {
    (void)state;
    static session s[SESSIONS];
    static bool reads[SESSIONS][KEYS];
    memset(reads, 0, sizeof(reads));
    for (int i = 0; i < SESSIONS; i++) {
        sessionInit(&s[i], NULL, 0);
        s[i].proto = 3;
        trackingOn(trackerFor(&s[i]), 0, NULL);
    }
    uint64_t items = 0;
    for (int round = 0; round < 20000; round++) {
        uint32_t who = randomBelow(SESSIONS), which = randomBelow(KEYS);
        char text[16], expected[64];
        slice key = keyOf(text, which);
        if (randomBelow(10)) {
            tableRemember(trackerOf(&s[who]), key, storeHash(key), randomBelow(2));
            items += !reads[who][which];
            reads[who][which] = true;
            assert_int_equal(tableItems(), items);
            continue;
        }
        tableChanged(key, storeHash(key), NULL);
        snprintf(expected, sizeof(expected), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$%zu\r\n%s\r\n",
                 key.len, text);
        for (int i = 0; i < SESSIONS; i++) {
            char *sent = sentTo(&s[i]);
            assert_string_equal(sent, reads[i][which] ? expected : "");
            memFree(sent);
            items -= reads[i][which];
            reads[i][which] = false;
        }
        assert_int_equal(tableItems(), items);
    }
    tableForgetAll();
    assert_int_equal(tableKeys(), 0);
    assert_int_equal(tableItems(), 0);
    while (tableWork()) continue;
    for (int i = 0; i < SESSIONS; i++) sessionClear(&s[i]);
}

static void a_key_read_by_one_session_takes_16_bytes_and_its_place_in_the_table(void **state) {
    (void)state;
    enum { MANY = 100000 };
    session s;
    sessionInit(&s, NULL, 0);
    trackingOn(trackerFor(&s), 0, NULL);
    size_t before = memUsed();
    for (uint32_t i = 0; i < MANY; i++) {
        char text[16];
        slice key = keyOf(text, i);
        tableRemember(trackerOf(&s), key, storeHash(key), true);
    }
    assert_true(memUsed() - before < 30 * (size_t)MANY);
    tableForgetAll();
    while (tableWork()) continue;
    sessionClear(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pubsubTestSetUp, pubsubTestTearDown)

int test_tracking_table(void);
int test_tracking_table(void) {
    const struct CMUnitTest tests[] = {
        TEST(random_reads_and_changes_tell_the_right_sessions),
        TEST(a_key_read_by_one_session_takes_16_bytes_and_its_place_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
