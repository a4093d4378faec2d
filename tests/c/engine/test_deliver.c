/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unsolicited output, the slots of a session and observers of one session alone. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"

static session s, other;

static int build(void **state) {
    int failed = engineTestSetUp(state);
    sessionOpen(&s);
    sessionOpen(&other);
    return failed;
}

static int raze(void **state) {
    sessionClear(&s);
    sessionClear(&other);
    return engineTestTearDown(state);
}

/* ------------------------------------------------------------------ delivery */

static void another_session_receives_output_immediately(void **state) {
    deliver_to = &other;
    ask(&s, "multi|deliver a|deliver b");
    assert_replies(&other, "");
    ask(&s, "exec");
    assert_replies(&s, "+OK +QUEUED +QUEUED *2 +OK +OK");
    assert_replies(&other, "+a +b");
    assert_noted("");
    char *large = memCalloc(1, OUTBLOCK_SIZE);
    sessionDeliver(&other, DELIVER_PUSH, sliceMake(large, OUTBLOCK_SIZE));
    assert_noted("grew 1;"); /* limits are looked at from one block on */
    memFree(large);
}

static void its_own_session_receives_output_after_the_reply(void **state) {
    deliver_to = &s;
    ask(&s, "deliver a|say b|deliver c");
    assert_replies(&s, "+OK +a $1 b +OK +c");
    assert_true(s.flags & SESSION_PENDING_OUT);
}

static void deliveries_of_a_transaction_to_itself_follow_its_reply(void **state) {
    deliver_to = &s;
    ask(&s, "multi|deliver a|say b|inner deliver c|exec|say d");
    assert_replies(&s, "+OK +QUEUED +QUEUED +QUEUED *3 +OK $1 b +OK +a +c $1 d");
}

static void deliveries_during_a_woken_command_follow_its_reply(void **state) {
    deliver_to = &other;
    ask(&other, "await a 0");
    ask(&s, "put a 1|deliver x");
    assert_replies(&other, "$1 1 +x");
}

static void a_lent_session_receives_output_when_it_returns(void **state) {
    deliver_to = &other;
    sessionLend(&other);
    ask(&s, "deliver a|deliver b");
    assert_replies(&other, "");
    assert_true(sessionOutputMemory(&other) > outbufMemory(&other.out));
    sessionReturn(&other);
    assert_replies(&other, "+a +b");
    assert_int_equal(sessionOutputMemory(&other), 0);
}

static void a_session_may_end_while_output_waits(void **state) {
    deliver_to = &other;
    sessionLend(&other);
    ask(&s, "deliver a");
    sessionClear(&other);
    sessionOpen(&other);
    stagesRun(STAGE_LOG, STAGE_LOG);
    assert_replies(&other, "");
}

static void lines_respect_client_reply_and_pushes_do_not(void **state) {
    sessionSetReplyMode(&other, SESSION_REPLY_OFF);
    sessionDeliver(&other, DELIVER_LINE, SLICE("+line\r\n"));
    sessionDeliver(&other, DELIVER_PUSH, SLICE("+push\r\n"));
    assert_replies(&other, "+push");
}

static void a_closing_session_receives_nothing(void **state) {
    sessionCloseSoon(&other);
    sessionDeliver(&other, DELIVER_PUSH, SLICE("+push\r\n"));
    assert_replies(&other, "");
}

static void a_long_block_is_shared(void **state) {
    blob *b = blobNew(100000);
    b->len = 100000;
    memset(b->bytes, 'x', b->len);
    sessionDeliverShared(&s, DELIVER_PUSH, b, 0, 50000);
    sessionDeliverShared(&other, DELIVER_PUSH, b, 0, 50000);
    sessionDeliverShared(&s, DELIVER_PUSH, b, 50000, 50000);
    assert_int_equal(outbufPending(&s.out), 100000);
    assert_true(outbufMemory(&s.out) < 1000);
    assert_true(sessionOutputMemory(&s) >= 100000); /* output limits judge by what is pending */
    struct iovec iov;
    assert_int_equal(outbufIovecs(&other.out, &iov, 1), 1);
    assert_ptr_equal(iov.iov_base, b->bytes);
    blobRelease(b);
}

/* ------------------------------------------------------------------ slots */

static void freeState(session *owner, void *state) {
    note("free %s of %d;", (const char *)state, owner == &s ? 1 : 2);
}

static size_t stateMemory(const void *state) { return strlen(state); }

static const sessionSlot first_slot = {"first", freeState, stateMemory};
static const sessionSlot second_slot = {"second", freeState, NULL};
static const sessionSlot late_slot = {"late", freeState, NULL};

static void a_subsystem_keeps_its_own_state_in_a_session(void **state) {
    static char one[] = "one", two[] = "two";
    int first = sessionSlotRegister(&first_slot), second = sessionSlotRegister(&second_slot);
    assert_int_not_equal(first, second);
    assert_int_equal(sessionSlotRegister(&first_slot), first);
    assert_null(sessionSlotGet(&s, first));
    assert_null(s.slots);
    sessionSlotSet(&s, first, one);
    assert_ptr_equal(sessionSlotGet(&s, first), one);
    assert_null(sessionSlotGet(&s, second));
    assert_null(sessionSlotGet(&other, first));
    assert_true(sessionSlotMemory(&s) > 3);
    int late = sessionSlotRegister(&late_slot); /* by a module, when the array is made already */
    assert_null(sessionSlotGet(&s, late));
    sessionSlotSet(&s, late, two);
    assert_ptr_equal(sessionSlotGet(&s, first), one);
    sessionClear(&s);
    assert_noted("free one of 1;free two of 1;");
}

/* ------------------------------------------------------------------ observers of one session */

static void observing_one_session_does_not_affect_others(void **state) {
    uint64_t armed = engineHot.armed;
    commandObserverArmSession(&s, &noteCommandObserver, true);
    assert_int_equal(engineHot.armed, armed);
    assert_int_equal(other.armed, 0);
    ask(&other, "put a 1");
    assert_noted("");
    ask(&s, "take a|multi|put b 1|exec");
    assert_noted(
        "before take;after take;before multi;after multi;before exec;before put;after put;after exec;");
    commandObserverArmSession(&s, &noteCommandObserver, false);
    assert_int_equal(s.armed, 0);
    ask(&s, "take a");
    assert_noted("");
}

static void reset_ends_the_observation(void **state) {
    commandObserverArmSession(&s, &noteCommandObserver, true);
    sessionReset(&s);
    ask(&s, "take a");
    assert_noted("");
    commandObserverArmSession(&s, &noteCommandObserver, true);
    ask(&s, "take a");
    assert_noted("before take;after take;");
}

static void one_session_can_have_several_observers(void **state) {
    static commandObserver many[12];
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        many[i] = noteCommandObserver;
        commandObserverArmSession(&s, &many[i], true);
        commandObserverArmSession(&s, &many[i], true);
    }
    for (size_t i = 1; i < COUNT_OF(many); i++) commandObserverArmSession(&s, &many[i], false);
    ask(&s, "take a");
    assert_noted("before take;after take;");
}

int test_deliver(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, build, raze)
    const struct CMUnitTest tests[] = {
        TEST(another_session_receives_output_immediately),
        TEST(its_own_session_receives_output_after_the_reply),
        TEST(deliveries_of_a_transaction_to_itself_follow_its_reply),
        TEST(deliveries_during_a_woken_command_follow_its_reply),
        TEST(a_lent_session_receives_output_when_it_returns),
        TEST(a_session_may_end_while_output_waits),
        TEST(lines_respect_client_reply_and_pushes_do_not),
        TEST(a_closing_session_receives_nothing),
        TEST(a_long_block_is_shared),
        TEST(a_subsystem_keeps_its_own_state_in_a_session),
        TEST(observing_one_session_does_not_affect_others),
        TEST(reset_ends_the_observation),
        TEST(one_session_can_have_several_observers),
    };
    return cmocka_run_group_tests_name("engine/deliver", tests, NULL, NULL);
#undef TEST
}
