/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/propagate.c: what sinks get of an execution unit, and with which bytes. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/engine_priv.h"
#include "engine/hot.h"
#include "engine/propagate.h"
#include "store/store.h"

static session s;

static int setUp(void **state) {
    engineTestSetUp(state);
    engineConf.lazyfree_lazy_expire = true;
    sessionOpen(&s);
    sinkArm(&noteSink, true);
    return 0;
}

static int tearDown(void **state) {
    sinkArm(&noteSink, false);
    sessionClear(&s);
    return engineTestTearDown(state);
}

/* ------------------------------------------------------------------ commands */

static void a_change_goes_out_as_it_came(void **state) {
    ask(&s, "PuT a 1|drop a");
    assert_noted("db0 PuT a 1;db0 drop a;");
    assert_string_equal(propagatedBytes(), "*3 $3 PuT $1 a $1 1 *2 $4 drop $1 a");
}

static void without_changes_nothing_is_propagated(void **state) {
    ask(&s, "take a|drop a|put a|nosuch|fail|say x|quiet a");
    assert_noted("");
}

static void inline_requests_are_encoded(void **state) {
    const char *const bytes[] = {"put  'a b'   \"\\x01\"\r\n"};
    askBytes(&s, bytes, 1);
    assert_noted("db0 put a b \x01;");
    assert_string_equal(propagatedBytes(), "*3 $3 put $3 a b $1 \x01");
}

static void a_large_argument_has_its_position_in_the_request(void **state) {
    enum { SIZE = 100000 };
    str value = STR_EMPTY, want = STR_EMPTY;
    memset(strReserve(&value, SIZE), 'v', SIZE);
    strGrow(&value, SIZE);
    const char *const pieces[] = {"*3\r\n$3\r\nput\r\n$1\r\na\r\n$100000\r\n", strText(&value),
                                  "\r\n*2\r\n$4\r\ndrop\r\n$1\r\na\r\n"};
    assert_int_equal(askBytes(&s, pieces, COUNT_OF(pieces)), 2);
    strAppendText(&want, "*3 $3 put $1 a $100000 ");
    strAppendSlice(&want, strSlice(&value));
    strAppendText(&want, " *2 $4 drop $1 a");
    assert_string_equal(propagatedBytes(), strText(&want));
    strFree(&value);
    strFree(&want);
}

static void a_command_may_propagate_other_commands_instead(void **state) {
    ask(&s, "twice k");
    assert_noted("db-1 MULTI;db0 FIRST k;db0 SECOND k;db-1 EXEC;");
    assert_string_equal(propagatedBytes(),
                        "*1 $5 MULTI *2 $5 FIRST $1 k *2 $6 SECOND $1 k *1 $4 EXEC");
}

static void database_events_are_reported(void **state) {
    ask(&s, "put a 1|select 1|put a 1|select 0|put b 1");
    assert_noted("db0 put a 1;db1 put a 1;db0 put b 1;");
}

static void expired_keys_are_evicted_first(void **state) {
    ask(&s, "put a 1 1000100|put b 1 1000100|put c 1 1000100");
    setTestTime(START_MS + 101);
    (void)noted();
    ask(&s, "take a|put b 2|drop c");
    assert_noted("db0 UNLINK a;db-1 MULTI;db0 UNLINK b;db0 put b 2;db-1 EXEC;db0 UNLINK c;");
    engineConf.lazyfree_lazy_expire = false;
    ask(&s, "put a 1 1000200");
    setTestTime(START_MS + 201);
    (void)noted();
    ask(&s, "take a");
    assert_noted("db0 DEL a;");
}

static void without_a_sink_nothing_is_kept(void **state) {
    sinkArm(&noteSink, false);
    ask(&s, "put a 1|twice a|multi|put b 1|put c 1|exec");
    sinkArm(&noteSink, true);
    ask(&s, "put d 1");
    assert_noted("db0 put d 1;");
}

/* ------------------------------------------------------------------ units */

static void a_single_write_of_a_transaction_is_not_wrapped(void **state) {
    ask(&s, "multi|take a|put a 1|take a|fail|exec");
    assert_noted("db0 put a 1;");
    assert_string_equal(propagatedBytes(), "*3 $3 put $1 a $1 1");
}

static void several_writes_of_a_transaction_are_wrapped(void **state) {
    ask(&s, "multi|put a 1|select 1|put b 2|select 0|twice c|exec|put d 1");
    assert_noted("db-1 MULTI;db0 put a 1;db1 put b 2;db0 FIRST c;db0 SECOND c;db-1 EXEC;"
                 "db0 put d 1;");
}

static void a_transaction_without_writes_is_nothing(void **state) {
    ask(&s, "multi|take a|quiet b|exec|multi|exec|multi|put a 1|discard|watch a|put a 1");
    assert_noted("db0 put a 1;");
    ask(&s, "multi|put a 2|exec");
    assert_noted("");
}

static void inner_commands_belong_to_the_outer_unit(void **state) {
    ask(&s, "inner put a 1|inner inner put b 1|multi|inner put c 1|put d 1|exec");
    assert_noted("db0 put a 1;db0 put b 1;db-1 MULTI;db0 put c 1;db0 put d 1;db-1 EXEC;");
}

static void nested_units_go_out_with_the_outermost(void **state) {
    slice words[] = {SLICE("A"), SLICE("")};
    propagateUnitBegin();
    propagateCopy(propagateToKey(0, words[0]), 1, words);
    propagateUnitBegin();
    propagateCopy(propagateToKey(1, words[1]), 2, words);
    words[0] = SLICE("changed since");
    propagateUnitEnd();
    assert_noted("");
    propagateUnitEnd();
    assert_noted("db-1 MULTI;db0 A;db1 A ;db-1 EXEC;");
    propagateUnitBegin();
    propagateUnitEnd();
    assert_noted("");
}

static void a_request_inside_a_nested_unit_is_copied(void **state) {
    char name[] = "SET", key[] = "k";
    slice words[] = {sliceMake(name, 3), sliceMake(key, 1)};
    request r = {.argv = words, .argc = 2, .raw = SLICE("*2\r\n$3\r\nSET\r\n$1\r\nk\r\n")};
    propagateUnitBegin();
    propagateUnitBegin();
    propagateRequest(&(ctx){.who = &s,
                            .cmd = commandFind(SLICE("put")),
                            .targets = PROPAGATE_ALL,
                            .request = &r,
                            .argc = 2,
                            .argv = words});
    propagateUnitEnd();
    memset(name, 'x', 3);
    memset(key, 'x', 1);
    propagateUnitEnd();
    assert_noted("db0 SET k;");
    assert_string_equal(propagatedBytes(), "*2 $3 SET $1 k");
}

static void a_long_unit_keeps_its_order(void **state) {
    enum { COMMANDS = 100 };
    str want = STR_EMPTY;
    strAppendText(&want, "db-1 MULTI;");
    propagateUnitBegin();
    for (int i = 0; i < COMMANDS; i++) {
        str number = STR_EMPTY;
        strAppendInt(&number, i);
        slice words[] = {SLICE("N"), strSlice(&number)};
        propagateCopy(propagateToKey(i % 2, words[1]), 2, words);
        strAppendFormat(&want, "db%d N %d;", i % 2, i);
        strFree(&number);
    }
    propagateUnitEnd();
    strAppendText(&want, "db-1 EXEC;");
    assert_noted(strText(&want));
    strFree(&want);
}

/* ------------------------------------------------------------------ targets and slots */

static void each_target_gets_what_is_for_it(void **state) {
    sinkArm(&noteSink, false);
    sinkArm(&aofSink, true);
    sinkArm(&replicaSink, true);
    ask(&s, "put a 1|publish x|put b 2");
    assert_noted(
        "aof:db0 put a 1;replicas:db0 put a 1;replicas:db0 publish x;aof:db0 put b 2;replicas:db0 put b 2;");
    /* One of the two entries is for the AOF: no transaction there. */
    ask(&s, "multi|publish x|put c 3|exec");
    assert_noted(
        "replicas:db-1 MULTI;replicas:db0 publish x;aof:db0 put c 3;replicas:db0 put c 3;replicas:db-1 EXEC;");
    sinkArm(&aofSink, false);
    sinkArm(&replicaSink, false);
}

static void a_replayed_stream_is_propagated_to_other_targets(void **state) {
    sinkArm(&noteSink, false);
    sinkArm(&aofSink, true);
    sinkArm(&replicaSink, true);
    sessionSetOrigin(&s, ORIGIN_PRIMARY);
    ask(&s, "put a 1|twice a");
    assert_noted("aof:db0 put a 1;aof:db-1 MULTI;aof:db0 FIRST a;aof:db0 SECOND a;aof:db-1 EXEC;");
    sessionSetOrigin(&s, ORIGIN_AOF);
    ask(&s, "put b 1");
    assert_noted("");
    sinkArm(&aofSink, false);
    sinkArm(&replicaSink, false);
}

static int setUpSlotted(void **state) {
    with_slots = true;
    int failed = setUp(state);
    with_slots = false;
    return failed;
}

static void entries_report_their_slot(void **state) {
    /* {a}: slot 15495, {b}: slot 3300, as CLUSTER KEYSLOT has them. */
    ask(&s, "put a 1|put b 1|twice a|publish x");
    assert_noted("db0 slot15495 put a 1;db0 slot3300 put b 1;db-1 slot15495 MULTI;"
                 "db0 slot15495 FIRST a;db0 slot15495 SECOND a;db-1 slot15495 EXEC;db0 publish x;");
    ask(&s, "multi|put a 1|put b 1|exec|put a 1 1000005|later 10|take a");
    assert_noted("db-1 MULTI;db0 slot15495 put a 1;db0 slot3300 put b 1;db-1 EXEC;"
                 "db0 slot15495 put a 1 1000005;db0 slot15495 UNLINK a;");
}

int test_propagate(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(a_change_goes_out_as_it_came),
        TEST(without_changes_nothing_is_propagated),
        TEST(inline_requests_are_encoded),
        TEST(a_large_argument_has_its_position_in_the_request),
        TEST(a_command_may_propagate_other_commands_instead),
        TEST(database_events_are_reported),
        TEST(expired_keys_are_evicted_first),
        TEST(without_a_sink_nothing_is_kept),
        TEST(a_single_write_of_a_transaction_is_not_wrapped),
        TEST(several_writes_of_a_transaction_are_wrapped),
        TEST(a_transaction_without_writes_is_nothing),
        TEST(inner_commands_belong_to_the_outer_unit),
        TEST(each_target_gets_what_is_for_it),
        TEST(a_replayed_stream_is_propagated_to_other_targets),
        cmocka_unit_test_setup_teardown(entries_report_their_slot, setUpSlotted, tearDown),
        TEST(nested_units_go_out_with_the_outermost),
        TEST(a_request_inside_a_nested_unit_is_copied),
        TEST(a_long_unit_keeps_its_order),
    };
    return cmocka_run_group_tests_name("engine/propagate", tests, NULL, NULL);
}
