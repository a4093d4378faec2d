/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/seeds.h: words and pauses; and which address of a lost node gossip may tell
 * (bus/gossip.h). */
#include "bus_test.h"

#include "bus/gossip.h"
#include "bus/seeds.h"

static void words_are_read_and_printed(void **state) {
    const slice words[] = {SLICE("a:1"), SLICE("::1:7000@7001"), SLICE("[fe80::1]:6379"),
                           SLICE("10.0.0.1:55535@1")};
    clusterSeeds seeds = {.items = NULL};
    str text = STR_EMPTY;
    assert_int_equal(seedsAdd(&seeds, words, 4, NULL), OK);
    seedsPrint(&seeds, &text);
    assert_string_equal(strText(&text), "a:1 [::1]:7000@7001 [fe80::1]:6379 10.0.0.1:55535@1");
    assert_int_equal(seeds.items[0].bus_port, 10001);
    assert_int_equal(seeds.items[1].bus_port, 7001);
    strFree(&text);
    seedsClear(&seeds);
    assert_int_equal(seeds.count, 0);
}

static void a_wrong_word_adds_nothing(void **state) {
    static const char *const wrong[] = {"",      "a",    "a:",      ":1",      "a:0",  "a:65536",
                                        "a:1x",  "a:1@", "a:1@0",   "a:55536", "@1:1", "a:1@x",
                                        "a b:1", "[a:1", "\"a\":1", "a:-1"};
    clusterSeeds seeds = {.items = NULL};
    const slice good = SLICE("a:1");
    assert_int_equal(seedsAdd(&seeds, &good, 1, NULL), OK);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const slice words[] = {SLICE("b:2"), sliceOf(wrong[i])};
        reason why;
        assert_int_equal(seedsAdd(&seeds, words, 2, &why), ERR_SYNTAX);
        assert_int_equal(seeds.count, 1);
    }
    seedsClear(&seeds);
}

static void there_is_a_most_number_of_seeds(void **state) {
    slice words[SEEDS_MAX + 1];
    clusterSeeds seeds = {.items = NULL};
    reason why;
    for (int i = 0; i <= SEEDS_MAX; i++) words[i] = SLICE("a:1");
    assert_int_equal(seedsAdd(&seeds, words, SEEDS_MAX + 1, &why), ERR_LIMIT);
    assert_int_equal(seedsAdd(&seeds, words, SEEDS_MAX, &why), OK);
    assert_int_equal(seedsAdd(&seeds, words, 1, &why), ERR_LIMIT);
    seedsClear(&seeds);
}

static void pauses_double_up_to_a_maximum(void **state) {
    seekTimer t = {0};
    int64_t now_ms = 5000;
    const int64_t pauses[] = {250, 500, 1000, 1500, 1500};
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_true(seekIsDue(&t, now_ms));
        seekBegun(&t, 1500, now_ms);
        assert_false(seekIsDue(&t, now_ms + pauses[i] - 1));
        now_ms += pauses[i];
    }
}

/* ------------------------------------------------------------------ gossip */

static bool allowed;
static int moves;

static bool mayMove(void *arg, const clusterNode *n, bool is_lost) { return is_lost || allowed; }
static void moved(void *arg, clusterNode *n) { moves++; }

static const busRules directives = {.timeout_ms = 1000};
static const failureRules failure = {.directives = &directives};
static const gossipRules rules = {.percent = 100, .mayMove = mayMove, .moved = moved};

/* What `from` tells about `about`, at the address 10.0.0.2:7001. */
static void tell(clusterMap *m, clusterNode *from, clusterNode *about, uint32_t ping_s,
                 uint32_t flags) {
    str bytes = STR_EMPTY;
    message msg;
    const messageHeader h = {.sender = from->id, .slots = (const uint8_t *)clusterNodeSlots(from)};
    const gossipEntry entry = {.id = about->id,
                               .ping_sent_s = ping_s,
                               .pong_s = 5,
                               .ip = SLICE("10.0.0.2"),
                               .port = 7001,
                               .bus_port = 17001,
                               .node_flags = (uint16_t)flags};
    messageWriter w = messageBegin(&bytes, MESSAGE_PING, &h);
    messageAddGossip(&w, &entry);
    messageEnd(&w);
    assert_int_equal(messageRead(strSlice(&bytes), &msg, NULL), OK);
    gossipRead(m, from, &msg, &failure, &rules, 5000);
    strFree(&bytes);
}

static void an_address_is_taken_for_a_lost_node_from_one_that_reaches_it(void **state) {
    clusterMap map;
    clusterMapInit(&map, 0);
    clusterNode *from = addNode(&map, 1), *about = addNode(&map, 2);
    clusterMapSetText(&map, &about->ip, SLICE("10.0.0.1"));
    clusterMapSetPort(&map, &about->bus_port, 17001);
    moves = 0;
    allowed = false;
    tell(&map, from, about, 0, 0); /* it is not lost */
    allowed = true;
    tell(&map, from, about, 4, 0); /* the sender does not reach it, either */
    tell(&map, from, about, 0, NODE_MAYBE_FAILED);
    assert_int_equal(moves, 0);
    tell(&map, from, about, 0, 0);
    assert_int_equal(moves, 1);
    assert_string_equal(strText(&about->ip), "10.0.0.2");
    assert_int_equal(about->tcp_port, 7001);
    tell(&map, from, about, 0, 0); /* known already */
    assert_int_equal(moves, 1);
    clusterMapSetText(&map, &about->ip, SLICE("10.0.0.3"));
    clusterMapSetFlags(&map, about, NODE_FAILED, 0);
    allowed = false;
    tell(&map, from, about, 0, 0);
    assert_int_equal(moves, 2);
    assert_map_valid(&map);
    clusterMapClear(&map);
}

int test_seeds(void);
int test_seeds(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_and_printed),
        cmocka_unit_test(a_wrong_word_adds_nothing),
        cmocka_unit_test(there_is_a_most_number_of_seeds),
        cmocka_unit_test(pauses_double_up_to_a_maximum),
        cmocka_unit_test(an_address_is_taken_for_a_lost_node_from_one_that_reaches_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
