/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/execute.c and engine/gate.c: resolving, admission and its order, running batches,
 * counting. */
#include "engine_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/histogram.h"
#include "engine/execute.h"
#include "engine/gate_priv.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "engine/stats.h"
#include "engine/stats_priv.h"

static const command *named(const char *name) { return commandFindByFullName(sliceOf(name)); }

/* ------------------------------------------------------------------ running */

static void requests_run_in_order(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(ask(&s, "put a 1|take a|put a 2|TAKE a|drop a|take a"), 6);
    assert_replies(&s, "+OK $1 1 +OK $1 2 :1 $-1");
    assert_ptr_equal(s.last_command, named("take"));
    sessionClear(&s);
}

static void output_makes_the_session_want_to_write(void **state) {
    session s;
    sessionOpen(&s);
    assert_null(sessionNextPending());
    ask(&s, "say a");
    assert_ptr_equal(sessionNextPending(), &s);
    assert_null(sessionNextPending());
    sessionClear(&s);
}

static void a_batch_stops_when_the_session_stops(void **state) {
    static const uint64_t flags[] = {SESSION_CLOSE_SOON, SESSION_CLOSE_NOW, SESSION_BLOCKED,
                                     SESSION_REPARSE, SESSION_PAUSED};
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        session s;
        sessionOpen(&s);
        char requests[64];
        snprintf(requests, sizeof(requests), "say a|stop %d|stop 0|say b", (int)flags[i]);
        assert_int_equal(ask(&s, requests), 2);
        assert_replies(&s, "$1 a +OK");
        assert_int_equal(ask(&s, "say c"), 0);
        s.flags &= ~flags[i];
        assert_int_equal(ask(&s, "say c"), 1);
        sessionClear(&s);
    }
}

static void requests_after_a_command_that_stops_batches_are_parsed_again(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(ask(&s, "say a|again|say b"), 2);
    assert_true(s.flags & SESSION_REPARSE);
    s.flags &= ~SESSION_REPARSE;
    assert_int_equal(ask(&s, "again x|say b"), 2); /* refused: it did nothing */
    sessionClear(&s);
}

static const ctx *seen_ctx;
static void seeCtx(ctx *c) {
    assert_ptr_equal(engineHot.current, c);
    seen_ctx = c;
}

static void a_command_sees_its_session_and_time(void **state) {
    static const commandObserver see = {.name = "ctx", .before = seeCtx};
    session s;
    sessionOpen(&s);
    commandObserverArm(&see, true);
    seen_ctx = NULL;
    ask(&s, "say a|put a 1");
    assert_non_null(seen_ctx);
    assert_null(engineHot.current);
    commandObserverArm(&see, false);
    ask(&s, "put a 1 1000100|select 1|take a|select 0|take a");
    assert_replies(&s, "$1 a +OK +OK +OK $-1 +OK $1 1");
    setTestTime(START_MS + 100);
    ask(&s, "take a");
    assert_replies(&s, "$1 1"); /* at its expiry time it still exists */
    setTestTime(START_MS + 101);
    ask(&s, "take a");
    assert_replies(&s, "$-1");
    sessionClear(&s);
}

static void a_renamed_command_is_found_again(void **state) {
    session s;
    sessionOpen(&s);
    slice words[] = {SLICE("say"), SLICE("a")};
    request r = {.argv = words, .argc = 2};
    executeResolve(&r);
    assert_ptr_equal(r.command, named("say"));
    assert_int_equal(commandRename(SLICE("say"), SLICE("utter")), OK);
    assert_int_equal(executeRun(&s, &r, 1), 1);
    assert_replies(&s, "-ERR unknown command 'say', with args beginning with: 'a' ");
    words[0] = SLICE("utter");
    executeResolve(&r);
    assert_int_equal(executeRun(&s, &r, 1), 1);
    assert_replies(&s, "$1 a");
    sessionClear(&s);
}

static void the_first_key_is_hashed_and_others_are_not(void **state) {
    slice words[] = {SLICE("put"), SLICE("key"), SLICE("v")};
    request r = {.argv = words, .argc = 3};
    executeResolve(&r);
    uint64_t hash = r.key_hash;
    words[0] = SLICE("take");
    r.key_hash = 0;
    r.argc = 2;
    executeResolve(&r);
    assert_int_equal(r.key_hash, hash);
    assert_int_not_equal(hash, 0);
    r.key_hash = 0;
    words[0] = SLICE("say");
    executeResolve(&r);
    assert_int_equal(r.key_hash, 0);
    words[0] = SLICE("box");
    words[1] = SLICE("SHUT");
    executeResolve(&r);
    assert_ptr_equal(r.command, named("box|shut"));
    r.argc = 1;
    executeResolve(&r);
    assert_ptr_equal(r.command, named("box"));
}

/* Writes a request of two words; `inlined`: as a line. */
static size_t writeRequest(char *to, slice name, slice word, bool inlined) {
    const char *form = inlined ? "%.*s %.*s\r\n" : "*2\r\n$%d\r\n%.*s\r\n$%d\r\n%.*s\r\n";
    int n = (int)name.len, w = (int)word.len;
    return (size_t)(inlined ? sprintf(to, form, n, name.ptr, w, word.ptr)
                            : sprintf(to, form, n, n, name.ptr, w, w, word.ptr));
}

/* The requests of a batch are resolved as each one alone would be, whatever comes before it. */
static void a_name_is_not_taken_for_the_one_before(void **state) {
    static const struct {
        slice name, word;
        bool inlined;
    } all[] = {{SLICE("say"), SLICE("a"), false},       {SLICE("SAY"), SLICE("a"), false},
               {SLICE("say"), SLICE("a"), true},        {SLICE("sa"), SLICE("y"), false},
               {SLICE("says"), SLICE("a"), false},      {SLICE("put"), SLICE("a"), false},
               {SLICE("take"), SLICE("a"), false},      {SLICE("box"), SLICE("shut"), false},
               {SLICE("box"), SLICE("open"), false},    {SLICE("box"), SLICE("none"), false},
               {SLICE("12345678"), SLICE("a"), false},  {SLICE("123456789"), SLICE("a"), false},
               {SLICE("123456780"), SLICE("a"), false}, {SLICE(""), SLICE("a"), false}};
    static requestBatch batch;
    const requestLimits limits = {512 * 1024 * 1024, INT32_MAX, true, false};
    for (size_t i = 0; i < COUNT_OF(all) * COUNT_OF(all); i++) {
        size_t first = i / COUNT_OF(all), second = i % COUNT_OF(all), pos = 0;
        char text[512];
        size_t len = writeRequest(text, all[first].name, all[first].word, all[first].inlined);
        len += writeRequest(text + len, all[second].name, all[second].word, all[second].inlined);
        memset(text + len, '?', REQUEST_READ_SLACK);
        requestParser parser = {NULL};
        requestError error;
        requestBatchInit(&batch);
        requestStatus st =
            requestParse(&parser, text, &len, &pos, &limits, &batch, REQUEST_BATCH_MAX, &error);
        assert_int_equal(st, REQUEST_NEED_MORE);
        assert_int_equal(batch.count, 2);
        executeResolveAll(batch.items, 2);
        for (int k = 0; k < 2; k++) {
            const request *r = &batch.items[k];
            bool unknown_sub;
            const command *cmd = commandResolve(r->argv, r->argc, &unknown_sub),
                          *found = r->command;
            if (unknown_sub) cmd = NULL;
            assert_int_equal(found->name.len > 0, cmd != NULL); /* unknown ones have no name */
            if (cmd) assert_ptr_equal(found, cmd);
        }
        requestBatchClear(&batch);
    }
}

/* ------------------------------------------------------------------ admission */

/* What was found for a name is not used after a change of the names. */
static void a_renamed_command_is_not_found_by_its_old_name(void **state) {
    char text[64] = "*2\r\n$3\r\nsay\r\n$1\r\na\r\n";
    slice argv[] = {{text + 8, 3}, {text + 17, 1}};
    request r = {.argv = argv, .argc = 2, .raw = {text, strlen(text)}};
    executeResolve(&r);
    const command *say = r.command;
    assert_true(sliceIs(say->name, "say"));
    assert_int_equal(commandRename(SLICE("say"), SLICE("tell")), OK);
    executeResolve(&r);
    assert_int_equal(((const command *)r.command)->name.len, 0);
    assert_int_equal(commandRename(SLICE("tell"), SLICE("say")), OK);
    executeResolve(&r);
    assert_ptr_equal(r.command, say);
}

static void unknown_names_are_replied_with_their_arguments(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "nosuch|nosuch a bc d");
    assert_replies(&s, "-ERR unknown command 'nosuch', with args beginning with:  "
                       "-ERR unknown command 'nosuch', with args beginning with: 'a' 'bc' 'd' ");
    ask(&s, "box what|box what x");
    assert_replies(&s, "-ERR unknown subcommand 'what'. Try BOX HELP. "
                       "-ERR unknown subcommand 'what'. Try BOX HELP.");
    const char *const bytes[] = {"*2\r\n$4\r\na\r\nb\r\n$2\r\n\r\n\r\n"};
    askBytes(&s, bytes, 1);
    assert_replies(&s, "-ERR unknown command 'a  b', with args beginning with: '  ' ");
    sessionClear(&s);
}

static void long_unknown_names_are_cut(void **state) {
    session s;
    sessionOpen(&s);
    char name[301];
    memset(name, 'n', 300);
    name[300] = 0;
    str requests = STR_EMPTY, want = STR_EMPTY;
    strAppendFormat(&requests, "%s %.100s %.100s %.100s", name, name, name, name);
    ask(&s, strText(&requests));
    strAppendFormat(&want,
                    "-ERR unknown command '%.128s', with args beginning with: '%.100s' '%.25s' ",
                    name, name, name);
    assert_replies(&s, strText(&want));
    strFree(&requests);
    strFree(&want);
    sessionClear(&s);
}

static void arity_is_checked_before_the_command(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "take|take a b|put a|box|box open|box shut x|say");
    assert_replies(&s, "-ERR wrong number of arguments for 'take' command "
                       "-ERR wrong number of arguments for 'take' command "
                       "-ERR wrong number of arguments for 'put' command "
                       "-ERR wrong number of arguments for 'box' command "
                       "-ERR wrong number of arguments for 'box|open' command "
                       "-ERR wrong number of arguments for 'box|shut' command "
                       "-ERR wrong number of arguments for 'say' command");
    sessionClear(&s);
}

static void unauthenticated_sessions_get_only_the_auth_error(void **state) {
    session s;
    sessionOpen(&s);
    sessionSetAuthenticated(&s, NULL, false);
    gateArm(&allGate, true);
    ask(&s, "say a|nosuch|take|box what|enter x");
    assert_replies(&s, "-NOAUTH Authentication required. -NOAUTH Authentication required. "
                       "-NOAUTH Authentication required. -NOAUTH Authentication required. "
                       "-ERR wrong number of arguments for 'enter' command");
    assert_noted("");
    ask(&s, "enter|say a");
    assert_replies(&s, "+OK $1 a");
    assert_noted("all asked of enter;all asked of say;");
    gateArm(&allGate, false);
    sessionClear(&s);
}

static void http_requests_close_the_connection(void **state) {
    static const char *const requests[] = {"POST / HTTP/1.1", "host: a", "hOsT:"};
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        session s;
        sessionOpen(&s);
        sessionSetAuthenticated(&s, NULL, i % 2);
        ask(&s, requests[i]);
        assert_replies(&s, "");
        assert_noted("closes now;");
        sessionClear(&s);
    }
}

static void a_protocol_error_is_replied_before_the_close(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "say a");
    executeProtocolError(&s, SLICE("ERR Protocol error: invalid bulk length"));
    assert_replies(&s, "$1 a -ERR Protocol error: invalid bulk length");
    assert_noted("closes soon;");
    assert_int_equal(ask(&s, "say b"), 0);
    sessionClear(&s);
}

/* ------------------------------------------------------------------ gates */

static void gates_are_evaluated_in_order(void **state) {
    session s;
    sessionOpen(&s);
    gateArm(&againGate, true);
    gateArm(&allGate, true);
    gateArm(&writesGate, true);
    ask(&s, "put a 1|take a");
    assert_noted("writes asked of put;all asked of put;again asked of put;"
                 "all asked of take;again asked of take;");
    assert_replies(&s, "+OK $1 1");
    verdict = GATE_REFUSED;
    ask(&s, "put a 2|take a");
    assert_noted("writes asked of put;all asked of take;");
    assert_replies(&s, "-REFUSED by writes -REFUSED by all");
    gateArm(&allGate, false);
    gateArm(&againGate, false);
    ask(&s, "put a 2|take a|take");
    assert_noted("writes asked of put;");
    assert_replies(&s, "-REFUSED by writes $1 1 -ERR wrong number of arguments for 'take' command");
    gateArm(&writesGate, false);
    ask(&s, "put a 3");
    assert_noted("");
    assert_replies(&s, "+OK");
    sessionClear(&s);
}

static void a_gate_can_be_armed_for_one_session(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    gateArmSession(&s, &allGate, true);
    assert_false(gateIsArmed(&allGate));
    ask(&s, "say a");
    ask(&other, "say b");
    assert_noted("all asked of say;");
    gateArmSession(&s, &allGate, false);
    ask(&s, "say a");
    assert_noted("");
    gateArm(&allGate, true);
    assert_true(gateIsArmed(&allGate));
    gateArm(&allGate, false);
    sessionClear(&s);
    sessionClear(&other);
}

static void a_request_held_by_a_gate_is_neither_run_nor_rejected(void **state) {
    session s;
    sessionOpen(&s);
    gateArmSession(&s, &writesGate, true);
    verdict = GATE_DONE;
    ask(&s, "put a 1|take a");
    assert_replies(&s, "$-1");
    assert_int_equal(named("put")->calls, 0);
    assert_int_equal(named("put")->rejected, 0);
    assert_int_equal(s.commands, 1);
    gateArmSession(&s, &writesGate, false);
    sessionClear(&s);
}

/* ------------------------------------------------------------------ reply modes */

static void replies_can_be_switched_off(void **state) {
    session s;
    sessionOpen(&s);
    sessionSetReplyMode(&s, SESSION_REPLY_OFF);
    ask(&s, "put a 1|take a|nosuch|fail|take");
    assert_replies(&s, "");
    sessionSetReplyMode(&s, 0);
    ask(&s, "take a");
    assert_replies(&s, "$1 1");
    sessionClear(&s);
}

static void one_reply_may_be_skipped(void **state) {
    session s;
    sessionOpen(&s);
    /* Set by a command, whose own reply is silent; so is the next one's. */
    sessionSetReplyMode(&s, SESSION_REPLY_SKIP_NEXT);
    ask(&s, "say a|say b");
    assert_replies(&s, "$1 b");
    sessionSetReplyMode(&s, SESSION_REPLY_SKIP_NEXT);
    ask(&s, "nosuch|say b");
    assert_replies(&s, "$1 b");
    assert_int_equal(s.armed, 0);
    sessionClear(&s);
}

/* ------------------------------------------------------------------ counting */

static void equal_commands_share_stamps_but_counts_are_exact(void **state) {
    session s;
    sessionOpen(&s);
    engineHot.latency_tracking = true;
    str requests = STR_EMPTY;
    enum { TIMES = 30 }; /* one batch in any build */
    for (int i = 0; i < TIMES; i++) strAppendText(&requests, i ? "|take a" : "take a");
    uint64_t before = engineHot.commands;
    ask(&s, strText(&requests));
    const command *take = named("take");
    assert_int_equal(take->calls, TIMES);
    assert_int_equal(engineHot.commands - before, TIMES);
    assert_int_equal(s.commands, TIMES);
    assert_int_equal(take->latency->total, TIMES);
    engineHot.latency_tracking = false;
    strFree(&requests);
    sessionClear(&s);
}

static void a_run_of_quick_commands_has_one_duration(void **state) {
    session s;
    sessionOpen(&s);
    engineHot.latency_tracking = true;
    slice words[] = {SLICE("take"), SLICE("a")};
    request r[20];
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        r[i] = (request){.argv = words, .argc = 2};
        executeResolve(&r[i]);
    }
    assert_int_equal(executeRun(&s, r, COUNT_OF(r)), COUNT_OF(r));
    const histogram *h = named("take")->latency;
    assert_int_equal(histogramPercentile(h, 100), histogramPercentile(h, 1));
    assert_int_equal(h->total, COUNT_OF(r));
    engineHot.latency_tracking = false;
    sessionClear(&s);
}

static void only_executed_commands_count_as_calls(void **state) {
    session s;
    sessionOpen(&s);
    uint64_t before = engineHot.commands;
    ask(&s, "take a|take|take a b|take a|nosuch|fail|fail x|put a 1 x");
    assert_int_equal(named("take")->calls, 2);
    assert_int_equal(named("take")->rejected, 2);
    assert_int_equal(named("take")->failed, 0);
    assert_int_equal(named("fail")->calls, 1);
    assert_int_equal(named("fail")->failed, 1);
    assert_int_equal(named("fail")->rejected, 1);
    assert_int_equal(named("put")->calls, 1);
    assert_int_equal(named("put")->failed, 1);
    assert_int_equal(s.commands, 4);
    assert_int_equal(engineHot.commands - before, 4);
    statsReset();
    assert_int_equal(named("take")->calls, 0);
    assert_int_equal(named("take")->rejected, 0);
    sessionClear(&s);
}

/* A command sees what ran before it, not itself. */
static uint64_t commands_before;
static void seeCommands(ctx *c) { commands_before = c->who->commands; }

static void the_running_command_is_not_counted_yet(void **state) {
    static const commandObserver see = {.name = "commands", .before = seeCommands};
    session s;
    sessionOpen(&s);
    commandObserverArm(&see, true);
    ask(&s, "take a|take a|nosuch|say a");
    assert_int_equal(commands_before, 2);
    commandObserverArm(&see, false);
    sessionClear(&s);
}

/* ------------------------------------------------------------------ inner commands */

static void an_inner_command_counts_like_any_other(void **state) {
    session s;
    sessionOpen(&s);
    sinkArm(&noteSink, true);
    ask(&s, "inner put a 1|inner fail|inner take a");
    assert_replies(&s, "+OK -FAILED as told $1 1");
    assert_int_equal(named("put")->calls, 1);
    assert_int_equal(named("fail")->failed, 1);
    assert_int_equal(named("inner")->calls, 3);
    assert_int_equal(named("inner")->failed, 0);
    assert_int_equal(s.commands, 6);
    assert_noted("db0 put a 1;");
    ask(&s, "inner again|say b");
    assert_replies(&s, "+OK");
    sinkArm(&noteSink, false);
    sessionClear(&s);
}

static unsigned long long statsField(const char *name) {
    str text = STR_EMPTY;
    for (const infoSection *section = statsSections; section->name; section++)
        section->print(&text);
    const char *at = strstr(strText(&text), name);
    assert_non_null(at);
    unsigned long long value = strtoull(at + strlen(name) + 1, NULL, 10);
    strFree(&text);
    return value;
}

static void an_error_from_the_primary_is_unexpected(void **state) {
    session client, primary;
    sessionOpen(&client);
    sessionOpen(&primary);
    sessionSetOrigin(&primary, ORIGIN_PRIMARY);
    statsReset();
    ask(&client, "fail|nosuch");
    assert_int_equal(statsField("unexpected_error_replies"), 0);
    ask(&primary, "fail|put a 1");
    assert_int_equal(statsField("unexpected_error_replies"), 1);
    assert_int_equal(statsField("total_error_replies"), 3);
    statsReset();
    assert_int_equal(statsField("unexpected_error_replies"), 0);
    sessionClear(&client);
    sessionClear(&primary);
}

static void gates_beyond_the_32nd_are_asked(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    (void)noted();
    uint64_t mask = gateMask(&againGate);
    assert_true(mask > UINT32_MAX);
    gateArm(&againGate, true);
    assert_true(gateIsArmed(&againGate));
    ask(&s, "take a|inner take a");
    assert_noted("again asked of take;again asked of inner;again asked of take;");
    inner_params.gates_exempt = mask;
    ask(&s, "inner take a");
    assert_noted("again asked of inner;");
    gateArm(&againGate, false);
    gateArmSession(&other, &againGate, true);
    ask(&s, "take a");
    ask(&other, "take a");
    assert_noted("again asked of take;");
    sessionClear(&s);
    sessionClear(&other);
}

/* Observers that disarm: themselves, the one after them, or both of another session. */
static session *disarms_for;
static void seeFirst(ctx *c);
static void seeFirstAfter(ctx *c, int64_t duration_ns);
static void seeSecond(ctx *c) { note("second;"); }
static void seeSecondAfter(ctx *c, int64_t duration_ns) { note("second after;"); }
static void seeThird(ctx *c) { note("third;"); }
static void seeThirdAfter(ctx *c, int64_t duration_ns) { note("third after;"); }
static const commandObserver first = {.name = "first", .before = seeFirst, .after = seeFirstAfter};
static const commandObserver second = {
    .name = "second", .before = seeSecond, .after = seeSecondAfter};
static const commandObserver third = {.name = "third", .before = seeThird, .after = seeThirdAfter};
static bool in_before;

static void armOne(const commandObserver *o, bool on) {
    if (disarms_for) {
        commandObserverArmSession(disarms_for, o, on);
    } else {
        commandObserverArm(o, on);
    }
}

static void disarmBoth(void) {
    armOne(&first, false);
    armOne(&second, false);
}

static void seeFirst(ctx *c) {
    note("first;");
    if (in_before) disarmBoth();
}

static void seeFirstAfter(ctx *c, int64_t duration_ns) {
    note("first after;");
    if (!in_before) disarmBoth();
}

static void observersDisarm(session *only_for) {
    session s;
    sessionOpen(&s);
    disarms_for = only_for ? &s : NULL;
    (void)noted();
    for (int i = 0; i < 2; i++) {
        in_before = i == 0;
        armOne(&first, true);
        armOne(&second, true);
        armOne(&third, true);
        ask(&s, "say a|say b");
        if (in_before) {
            assert_noted("first;third;third after;third;third after;");
        } else {
            assert_noted("first;second;third;first after;third after;third;third after;");
        }
        armOne(&third, false);
        assert_int_equal((engineHot.armed | s.armed) & GATE_BIT_SPECIAL, 0);
    }
    sessionClear(&s);
}

static void observers_may_disarm_themselves_and_others(void **state) {
    session any;
    observersDisarm(NULL);
    observersDisarm(&any); /* those of one session */
}

int test_execute(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)
    const struct CMUnitTest tests[] = {
        TEST(observers_may_disarm_themselves_and_others),
        TEST(gates_beyond_the_32nd_are_asked),
        TEST(requests_run_in_order),
        TEST(output_makes_the_session_want_to_write),
        TEST(a_batch_stops_when_the_session_stops),
        TEST(requests_after_a_command_that_stops_batches_are_parsed_again),
        TEST(a_command_sees_its_session_and_time),
        TEST(a_renamed_command_is_found_again),
        TEST(the_first_key_is_hashed_and_others_are_not),
        TEST(a_name_is_not_taken_for_the_one_before),
        TEST(a_renamed_command_is_not_found_by_its_old_name),
        TEST(unknown_names_are_replied_with_their_arguments),
        TEST(long_unknown_names_are_cut),
        TEST(arity_is_checked_before_the_command),
        TEST(unauthenticated_sessions_get_only_the_auth_error),
        TEST(http_requests_close_the_connection),
        TEST(a_protocol_error_is_replied_before_the_close),
        TEST(gates_are_evaluated_in_order),
        TEST(a_gate_can_be_armed_for_one_session),
        TEST(a_request_held_by_a_gate_is_neither_run_nor_rejected),
        TEST(replies_can_be_switched_off),
        TEST(one_reply_may_be_skipped),
        TEST(equal_commands_share_stamps_but_counts_are_exact),
        TEST(a_run_of_quick_commands_has_one_duration),
        TEST(an_error_from_the_primary_is_unexpected),
        TEST(only_executed_commands_count_as_calls),
        TEST(the_running_command_is_not_counted_yet),
        TEST(an_inner_command_counts_like_any_other),
    };
    return cmocka_run_group_tests_name("engine/execute", tests, NULL, NULL);
}
