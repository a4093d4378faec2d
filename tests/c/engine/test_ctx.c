/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of the context of a command: applicable gates, protocol of replies and targets of
 * propagation, independent of the session's. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "resp/reply_sink.h"

static session s;

static int build(void **state) {
    int failed = engineTestSetUp(state);
    sessionOpen(&s);
    return failed;
}

static int raze(void **state) {
    sessionClear(&s);
    return engineTestTearDown(state);
}

/* ------------------------------------------------------------------ gates */

static void gates_apply_to_commands_of_scripts(void **state) {
    gateArm(&allGate, true);
    verdict = GATE_REFUSED;
    verdict_for = "put";
    ask(&s, "inner put a 1|inner take a");
    assert_replies(&s, "-REFUSED by all $-1");
    assert_noted("all asked of inner;all asked of put;all asked of inner;all asked of take;");
    gateArm(&allGate, false);
}

static void a_caller_may_exempt_its_command_from_gates(void **state) {
    gateArm(&allGate, true);
    verdict = GATE_REFUSED;
    verdict_for = "put";
    inner_params.gates_exempt = UINT64_MAX;
    ask(&s, "inner put a 1");
    assert_replies(&s, "+OK");
    gateArm(&allGate, false);
}

static void gates_for_users_do_not_apply_to_replayed_commands(void **state) {
    gateArm(&allGate, true);
    verdict = GATE_REFUSED;
    sessionSetOrigin(&s, ORIGIN_PRIMARY);
    ask(&s, "put a 1|multi|put b 2|exec");
    assert_replies(&s, "+OK +OK +QUEUED *1 +OK");
    sessionSetOrigin(&s, ORIGIN_AOF);
    ask(&s, "take a");
    assert_replies(&s, "$1 1");
    sessionSetOrigin(&s, ORIGIN_CLIENT);
    ask(&s, "take a");
    assert_replies(&s, "-REFUSED by all");
    gateArm(&allGate, false);
}

static void commands_of_a_script_in_a_transaction_are_not_queued(void **state) {
    ask(&s, "multi|inner put a 1|inner take a|exec|take a");
    assert_replies(&s, "+OK +QUEUED +QUEUED *2 +OK $1 1 $1 1");
}

static void unknown_names_and_wrong_arity_are_refused_inside(void **state) {
    ask(&s, "inner nosuch x|inner take|inner box nosuch");
    assert_replies(&s, "-ERR unknown command 'nosuch', with args beginning with: 'x'  "
                       "-ERR wrong number of arguments for 'take' command "
                       "-ERR unknown subcommand 'nosuch'. Try BOX HELP.");
    assert_int_equal(commandFind(SLICE("take"))->rejected, 1);
}

/* ------------------------------------------------------------------ protocol */

static void a_reply_is_in_the_protocol_of_its_context(void **state) {
    ask(&s, "kinds");
    assert_replies(&s, "*3 $-1 :1 *2 +pi $4 3.25");
    inner_params.proto = 3;
    ask(&s, "inner kinds|kinds");
    assert_replies(&s, "*3 _ #t %1 +pi ,3.25 *3 $-1 :1 *2 +pi $4 3.25");
    s.proto = 3;
    inner_params.proto = 2;
    ask(&s, "inner kinds|kinds");
    assert_replies(&s, "*3 $-1 :1 *2 +pi $4 3.25 *3 _ #t %1 +pi ,3.25");
}

/* ------------------------------------------------------------------ replies that are no text */

static void takeItem(void *state, const replyEvent *event) {
    strAppendFormat(state, "%d:%lld:%.*s ", event->kind, (long long)event->integer,
                    (int)event->text.len, event->text.len ? event->text.ptr : "");
}

static void a_sink_gets_the_items_of_an_inner_command(void **state) {
    str items = STR_EMPTY;
    replySink sink = {.take = takeItem, .state = &items};
    outbuf out;
    outbufInitSink(&out, &sink);
    inner_params.out = &out;
    inner_params.proto = 3;
    ask(&s, "inner kinds|inner say hello|inner fail|inner nosuch|inner put a 1");
    assert_replies(&s, "+OK +OK +OK +OK +OK");
    str want = STR_EMPTY;
    strAppendFormat(&want,
                    "%d:3: %d:0: %d:1: %d:1: %d:0:pi %d:0:3.25 %d:5:hello %d:0:FAILED as told ",
                    REPLY_ARRAY, REPLY_NULL, REPLY_BOOL, REPLY_MAP, REPLY_STATUS, REPLY_DOUBLE,
                    REPLY_BULK, REPLY_ERROR);
    strAppendFormat(&want, "%d:0:ERR unknown command 'nosuch', with args beginning with:  %d:0:OK ",
                    REPLY_ERROR, REPLY_STATUS);
    assert_string_equal(strText(&items), strText(&want));
    assert_int_equal(outbufMemory(&out), 0);
    outbufClear(&out);
    strFree(&items);
    strFree(&want);
}

int test_ctx(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, build, raze)
    const struct CMUnitTest tests[] = {
        TEST(gates_apply_to_commands_of_scripts),
        TEST(a_caller_may_exempt_its_command_from_gates),
        TEST(gates_for_users_do_not_apply_to_replayed_commands),
        TEST(commands_of_a_script_in_a_transaction_are_not_queued),
        TEST(unknown_names_and_wrong_arity_are_refused_inside),
        TEST(a_reply_is_in_the_protocol_of_its_context),
        TEST(a_sink_gets_the_items_of_an_inner_command),
    };
    return cmocka_run_group_tests_name("engine/ctx", tests, NULL, NULL);
#undef TEST
}
