/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels, subscriptions, the index of patterns and publishing, against simple models. */
#include "base/glob.h"
#include "pubsub/pattern_index.h"
#include "pubsub/publish.h"
#include "pubsub/channels.h"
#include "pubsub_test.h"

enum { SESSIONS = 40, NAMES = 12 };

static slice nameOf(char dst[16], uint32_t i) {
    int len = snprintf(dst, 16, "channel%u", i);
    return sliceMake(dst, (size_t)len);
}

static void checkCounts(const bool has[SESSIONS][NAMES]) {
    uint64_t channels = 0;
    for (uint32_t n = 0; n < NAMES; n++) {
        char text[16];
        uint64_t expected = 0;
        for (int s = 0; s < SESSIONS; s++) expected += has[s][n];
        const pubsubChannel *t = channelFind(CHANNEL_PLAIN, nameOf(text, n));
        assert_int_equal(t ? channelCount(t) : 0, expected);
        channels += expected > 0;
    }
    assert_int_equal(channelsOfKind(CHANNEL_PLAIN), channels);
}

static void random_changes_keep_subscriptions_and_channels_in_step(void **state) {
    (void)state;
    static session s[SESSIONS];
    static bool has[SESSIONS][NAMES];
    memset(has, 0, sizeof(has));
    for (int i = 0; i < SESSIONS; i++) sessionInit(&s[i], NULL, 0);
    pubsubChannel *walked = NULL;
    for (int round = 0; round < 20000; round++) {
        uint32_t who = randomBelow(SESSIONS), which = randomBelow(NAMES);
        char text[16];
        slice name = nameOf(text, which);
        bool *mine = &has[who][which];
        if (randomBelow(200) == 0 && !walked && channelFind(CHANNEL_PLAIN, name)) {
            walked = channelFind(CHANNEL_PLAIN, name);
            channelWalkBegin(walked);
        } else if (walked && randomBelow(20) == 0) {
            channelWalkEnd(walked);
            walked = NULL;
        } else if (randomBelow(2)) {
            assert_int_equal(subscriptionAdd(&s[who], CHANNEL_PLAIN, name), !*mine);
            *mine = true;
        } else {
            assert_int_equal(subscriptionRemove(&s[who], CHANNEL_PLAIN, name), *mine);
            *mine = false;
        }
        assert_int_equal((s[who].flags & SESSION_PUBSUB) != 0,
                         subscriptionCount(&s[who], CHANNEL_PLAIN) > 0);
        if (round % 100 == 0 && !walked) checkCounts(has);
    }
    if (walked) channelWalkEnd(walked);
    for (int i = 0; i < SESSIONS; i++) sessionClear(&s[i]);
    assert_int_equal(channelsOfKind(CHANNEL_PLAIN), 0);
}

typedef struct matches {
    const pubsubChannel *found[64];
    size_t count;
} matches;

static void collect(void *arg, pubsubChannel *t) {
    matches *m = arg;
    m->found[m->count++] = t;
}

static slice randomText(char dst[8], const char *letters) {
    size_t len = randomBelow(7);
    for (size_t i = 0; i < len; i++) dst[i] = letters[randomBelow((uint32_t)strlen(letters))];
    return sliceMake(dst, len);
}

static void the_index_finds_the_patterns_that_match(void **state) {
    (void)state;
    session s;
    sessionInit(&s, NULL, 0);
    char text[8];
    for (int i = 0; i < 60; i++)
        (void)subscriptionAdd(&s, CHANNEL_PATTERN, randomText(text, "aab*?[]\\"));
    for (int round = 0; round < 5000; round++) {
        slice channel = randomText(text, "aab*");
        matches m = {.count = 0};
        patternIndexMatch(channel, collect, &m);
        for (size_t i = 0; i < m.count; i++)
            assert_true(globMatch(channelName(m.found[i]), channel));
        matches all = {.count = 0};
        channelsEach(CHANNEL_PATTERN, collect, &all);
        size_t expected = 0;
        for (size_t i = 0; i < all.count; i++)
            expected += globMatch(channelName(all.found[i]), channel);
        assert_int_equal(m.count, expected);
        if (round % 100 == 0 && all.count > 1) {
            const pubsubChannel *t = subscriptionAny(&s, CHANNEL_PATTERN);
            char copy[8];
            memcpy(copy, t->name, t->len);
            assert_true(subscriptionRemove(&s, CHANNEL_PATTERN, sliceMake(copy, t->len)));
        }
    }
    sessionClear(&s);
    assert_int_equal(channelsOfKind(CHANNEL_PATTERN), 0);
}

/* Subscribers of one channel in both protocols; thousands of them, so that deliveries are cut into
 * steps. */
static void a_message_to_thousands_reaches_those_of_its_time_in_order(void **state) {
    (void)state;
    enum { MANY = 5000 };
    session *s = memNewArray(session, MANY + 1);
    for (int i = 0; i <= MANY; i++) {
        sessionInit(&s[i], NULL, 0);
        s[i].proto = i % 2 ? 2 : 3;
        if (i < MANY) assert_true(subscriptionAdd(&s[i], CHANNEL_PLAIN, SLICE("c")));
    }
    assert_true(subscriptionAdd(&s[10], CHANNEL_PATTERN, SLICE("c*")));
    assert_int_equal(publishToChannel(SLICE("c"), SLICE("1")), MANY + 1);
    (void)publishWork();
    assert_true(subscriptionAdd(&s[MANY], CHANNEL_PLAIN, SLICE("c"))); /* too late for the first */
    assert_int_equal(publishToChannel(SLICE("c"), SLICE("2")), MANY + 2);
    assert_true(subscriptionRemove(&s[MANY - 1], CHANNEL_PLAIN, SLICE("c")));
    while (publishWork()) continue;
    for (int i = 0; i <= MANY; i++) {
        char *sent = sentTo(&s[i]);
        char type = i % 2 ? '*' : '>', expected[200];
        const char *form = "%c3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n%s\r\n";
        size_t len = 0;
        /* The one that left got the first message if its turn had come. */
        if (i < MANY - 1 || (i == MANY - 1 && sent[0]))
            len += (size_t)snprintf(expected, sizeof(expected), form, type, "1");
        if (i == 10)
            len += (size_t)snprintf(expected + len, sizeof(expected) - len,
                                    ">4\r\n$8\r\npmessage\r\n$2\r\nc*\r\n$1\r\nc\r\n$1\r\n1\r\n");
        if (i != MANY - 1)
            len += (size_t)snprintf(expected + len, sizeof(expected) - len, form, type, "2");
        if (i == 10)
            len += (size_t)snprintf(expected + len, sizeof(expected) - len,
                                    ">4\r\n$8\r\npmessage\r\n$2\r\nc*\r\n$1\r\nc\r\n$1\r\n2\r\n");
        expected[len] = 0;
        assert_string_equal(sent, expected);
        memFree(sent);
    }
    for (int i = 0; i <= MANY; i++) sessionClear(&s[i]);
    memFree(s);
    assert_int_equal(channelsOfKind(CHANNEL_PLAIN), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pubsubTestSetUp, pubsubTestTearDown)

int test_channels(void);
int test_channels(void) {
    const struct CMUnitTest tests[] = {
        TEST(random_changes_keep_subscriptions_and_channels_in_step),
        TEST(the_index_finds_the_patterns_that_match),
        TEST(a_message_to_thousands_reaches_those_of_its_time_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
