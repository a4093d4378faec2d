/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/transaction.c and engine/watch.c: queueing, EXEC, what spoils a transaction, and
 * watches. */
#include "engine_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "engine/hot.h"
#include "engine/transaction.h"
#include "engine/watch.h"
#include "store/store.h"

enum {
    IN_MULTI = SESSION_IN_MULTI,
    DIRTY = SESSION_WATCH_DIRTY,
    POISONED = SESSION_MULTI_POISONED
};

static bool isIn(const session *s, uint64_t flag) { return s->flags & flag; }

/* ------------------------------------------------------------------ the queue */

static void queued_commands_run_with_exec(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(ask(&s, "multi|put a 1|take a|say hello"), 4);
    assert_replies(&s, "+OK +QUEUED +QUEUED +QUEUED");
    assert_null(dbPeek(storeDb(0), SLICE("a"), storeHash(SLICE("a"))));
    assert_int_equal(transactionCount(&s), 3);
    ask(&s, "exec");
    assert_replies(&s, "*3 +OK $1 1 $5 hello");
    assert_int_equal(transactionCount(&s), 0);
    assert_false(isIn(&s, IN_MULTI));
    ask(&s, "take a");
    assert_replies(&s, "$1 1");
    sessionClear(&s);
}

static void a_transaction_of_any_length_keeps_its_order(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi");
    for (int i = 0; i < 300; i++) {
        char request[64];
        snprintf(request, sizeof(request), "put k%d %d|take k%d", i, i, i / 2);
        ask(&s, request);
    }
    (void)replies(&s);
    assert_int_equal(transactionCount(&s), 600);
    ask(&s, "exec");
    str want = STR_EMPTY;
    strAppendText(&want, "*600");
    for (int i = 0; i < 300; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", i / 2);
        strAppendFormat(&want, " +OK $%zu %s", strlen(number), number);
    }
    assert_replies(&s, strText(&want));
    strFree(&want);
    sessionClear(&s);
}

static void inline_requests_and_empty_arguments_are_kept(void **state) {
    session s;
    sessionOpen(&s);
    const char *const pieces[] = {"multi\r\nput  'a b' \"x\\x00y\"\r\nsay ''\r\n",
                                  "*3\r\n$3\r\nput\r\n$0\r\n\r\n$0\r\n\r\n", "exec\r\n"};
    assert_int_equal(askBytes(&s, pieces, COUNT_OF(pieces)), 5);
    assert_replies(&s, "+OK +QUEUED +QUEUED +QUEUED *3 +OK $0  +OK");
    const robj *o = dbPeek(storeDb(0), SLICE("a b"), storeHash(SLICE("a b")));
    assert_non_null(o);
    char digits[32];
    assert_true(sliceEqual(objectText(o, digits), SLICE("x\0y")));
    assert_non_null(dbPeek(storeDb(0), SLICE(""), storeHash(SLICE(""))));
    sessionClear(&s);
}

static void a_large_argument_is_kept_by_reference(void **state) {
    enum { SIZE = 300000 };
    session s;
    sessionOpen(&s);
    str value = STR_EMPTY;
    memset(strReserve(&value, SIZE), 'v', SIZE);
    strGrow(&value, SIZE);
    /* The head comes alone: only an incomplete argument gets a block of its own. */
    const char *const pieces[] = {"multi\r\n*3\r\n$3\r\nput\r\n$1\r\na\r\n$300000\r\n",
                                  strText(&value), "\r\n"};
    askBytes(&s, pieces, COUNT_OF(pieces));
    assert_replies(&s, "+OK +QUEUED");
    assert_in_range(transactionMemory(&s), SIZE, SIZE + SIZE / 4);
    sinkArm(&noteSink, true);
    ask(&s, "exec");
    assert_replies(&s, "*1 +OK");
    const robj *o = dbPeek(storeDb(0), SLICE("a"), storeHash(SLICE("a")));
    assert_int_equal(objectForm(o), FORM_POINTER);
    blob *bytes = objectPointer(o);
    assert_int_equal(bytes->len, SIZE);
    assert_int_equal(bytes->refs, 1); /* the queue's reference is released, nothing was copied */
    assert_int_equal(bytes->bytes[SIZE - 1], 'v');
    const char head[] = "*3 $3 put $1 a $300000 ", *propagated = propagatedBytes();
    assert_memory_equal(propagated, head, sizeof(head) - 1);
    assert_string_equal(propagated + sizeof(head) - 1, strText(&value));
    strFree(&value);
    sessionClear(&s);
}

static void memory_follows_the_queue(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(transactionCount(&s), -1);
    assert_int_equal(transactionMemory(&s), 0);
    ask(&s, "multi");
    assert_int_equal(transactionCount(&s), 0);
    size_t before = transactionMemory(&s);
    for (int i = 0; i < 20; i++) {
        ask(&s, "put key value");
        assert_true(transactionMemory(&s) >= before + 11);
        before = transactionMemory(&s);
    }
    ask(&s, "discard");
    assert_int_equal(transactionMemory(&s), 0);
    assert_int_equal(transactionCount(&s), 0);
    sessionClear(&s);
}

static void the_flags_of_queued_commands_are_known_at_exec(void **state) {
    session s;
    sessionOpen(&s);
    assert_false(transactionHas(&s, CMD_WRITE));
    assert_false(transactionLacks(&s, CMD_QUICK));
    ask(&s, "multi");
    assert_false(transactionHas(&s, CMD_WRITE));
    assert_false(transactionLacks(&s, CMD_QUICK));
    ask(&s, "take a|take b");
    assert_false(transactionHas(&s, CMD_WRITE));
    assert_true(transactionHas(&s, CMD_WRITE | CMD_READONLY));
    assert_false(transactionLacks(&s, CMD_QUICK));
    assert_true(transactionLacks(&s, CMD_WRITE));
    ask(&s, "quiet a");
    assert_true(transactionHas(&s, CMD_WRITE));
    assert_false(transactionHas(&s, CMD_DENYOOM));
    assert_true(transactionLacks(&s, CMD_QUICK));
    ask(&s, "discard");
    assert_false(transactionHas(&s, CMD_WRITE));
    sessionClear(&s);
}

/* ------------------------------------------------------------------ EXEC and DISCARD */

static void discard_drops_the_queue(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|put a 1|discard|take a");
    assert_replies(&s, "+OK +QUEUED +OK $-1");
    sessionClear(&s);
}

static void an_error_inside_exec_stops_nothing(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|put a 1|fail|put b 2|exec");
    assert_replies(&s, "+OK +QUEUED +QUEUED +QUEUED *3 +OK -FAILED as told +OK");
    assert_int_equal(commandFind(SLICE("fail"))->failed, 1);
    assert_int_equal(commandFind(SLICE("exec"))->failed, 0);
    sessionClear(&s);
}

static void an_empty_transaction_replies_an_empty_array(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|exec");
    assert_replies(&s, "+OK *0");
    sessionClear(&s);
}

static void select_inside_exec_lasts(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|select 1|put a 1|select 7|exec|take a|select 0|take a");
    assert_replies(&s, "+OK +QUEUED +QUEUED +QUEUED *3 +OK +OK -ERR DB index is out of range "
                       "$1 1 +OK $-1");
    sessionClear(&s);
}

static void only_executions_are_counted(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|put a 1|put b 2|exec");
    assert_int_equal(commandFind(SLICE("put"))->calls, 2);
    assert_int_equal(commandFind(SLICE("put"))->rejected, 0);
    assert_int_equal(commandFind(SLICE("exec"))->calls, 1);
    assert_int_equal(s.commands, 4);
    ask(&s, "multi|put a 1|discard");
    assert_int_equal(commandFind(SLICE("put"))->calls, 2);
    assert_int_equal(s.commands, 6);
    sessionClear(&s);
}

/* The parts of one EXEC see one time. */
static void time_is_constant_during_exec(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|put a 1 1000100|later 200|take a");
    (void)replies(&s);
    ask(&s, "exec");
    assert_replies(&s, "*3 +OK +OK $1 1");
    ask(&s, "take a");
    assert_replies(&s, "$-1");
    sessionClear(&s);
}

static uint64_t flags_inside;
static void seeFlags(ctx *c) {
    if (sliceIs(c->argv[0], "say")) {
        flags_inside = c->who->flags;
        note("%s %d;", c->flags & CTX_IN_MULTI ? "in multi" : "plain", transactionCount(c->who));
    }
}

static void commands_inside_exec_know_it(void **state) {
    static const commandObserver see = {.name = "flags", .before = seeFlags};
    session s;
    sessionOpen(&s);
    ask(&s, "multi|say a|say b");
    commandObserverArm(&see, true);
    ask(&s, "exec");
    assert_noted("in multi 2;in multi 2;");
    assert_true(flags_inside & SESSION_DENY_BLOCKING);
    assert_true(flags_inside & SESSION_IN_MULTI);
    assert_false(isIn(&s, SESSION_DENY_BLOCKING));
    s.flags |= SESSION_DENY_BLOCKING; /* as a script's session has it */
    ask(&s, "multi|say a|exec");
    assert_true(isIn(&s, SESSION_DENY_BLOCKING));
    commandObserverArm(&see, false);
    sessionClear(&s);
}

static void a_stop_inside_exec_takes_effect_after_it(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(ask(&s, "multi|again|put a 1|exec|put b 1"), 4);
    assert_true(isIn(&s, SESSION_REPARSE));
    assert_replies(&s, "+OK +QUEUED +QUEUED *2 +OK +OK");
    sessionClear(&s);
}

/* ------------------------------------------------------------------ what spoils a transaction */

static const char PREVIOUS[] = "-EXECABORT Transaction discarded because of previous errors.";

static void every_refusal_poisons_the_transaction(void **state) {
    static const struct {
        const char *request, *reply;
    } cases[] = {
        {"nosuch", "-ERR unknown command 'nosuch', with args beginning with: "},
        {"box what", "-ERR unknown subcommand 'what'. Try BOX HELP."},
        {"put a", "-ERR wrong number of arguments for 'put' command"},
        {"box open", "-ERR wrong number of arguments for 'box|open' command"},
        {"multi", "-ERR Command 'multi' not allowed inside a transaction"},
        {"watch a", "-ERR Command 'watch' not allowed inside a transaction"},
        {"multi x", "-ERR wrong number of arguments for 'multi' command"},
        {"discard x", "-ERR wrong number of arguments for 'discard' command"},
    };
    session s;
    sessionOpen(&s);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ask(&s, "multi|put a 1");
        (void)replies(&s);
        ask(&s, cases[i].request);
        assert_replies(&s, cases[i].reply);
        assert_true(isIn(&s, POISONED));
        assert_int_equal(transactionCount(&s), 0);
        assert_int_equal(transactionMemory(&s), 0);
        ask(&s, "put a 2");
        assert_replies(&s, "+QUEUED");
        assert_int_equal(transactionCount(&s), 0);
        ask(&s, "exec");
        assert_replies(&s, PREVIOUS);
        assert_false(isIn(&s, IN_MULTI | POISONED));
        ask(&s, "take a");
        assert_replies(&s, "$-1");
    }
    sessionClear(&s);
}

static void a_gate_that_refuses_poisons_the_transaction(void **state) {
    session s;
    sessionOpen(&s);
    gateArm(&writesGate, true);
    verdict = GATE_REFUSED;
    ask(&s, "multi|take a|put a 1|take a|exec");
    assert_noted("writes asked of put;");
    assert_string_equal(replies(&s),
                        "+OK +QUEUED -REFUSED by writes +QUEUED -EXECABORT Transaction "
                        "discarded because of previous errors.");
    gateArm(&writesGate, false);
    sessionClear(&s);
}

static void a_refused_exec_discards_the_transaction(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|put a 1|exec x");
    assert_replies(&s, "+OK +QUEUED -EXECABORT Transaction discarded because of: wrong number of "
                       "arguments for 'exec' command");
    assert_false(isIn(&s, IN_MULTI));
    ask(&s, "multi|put a 1");
    gateArm(&allGate, true);
    verdict = GATE_REFUSED;
    (void)replies(&s);
    ask(&s, "exec");
    assert_replies(&s, "-EXECABORT Transaction discarded because of: REFUSED by all");
    assert_false(isIn(&s, IN_MULTI));
    verdict = GATE_PASS;
    ask(&s, "exec x|take a");
    assert_replies(&s, "-EXECABORT Transaction discarded because of: wrong number of arguments for "
                       "'exec' command $-1");
    assert_int_equal(commandFind(SLICE("exec"))->rejected, 3);
    gateArm(&allGate, false);
    sessionClear(&s);
}

/* Errors of commands that do run are no refusals. */
static void an_error_of_a_running_command_does_not_poison(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    ask(&s, "multi|say a");
    ask(&other, "fail");
    ask(&s, "exec");
    assert_replies(&s, "+OK +QUEUED *1 $1 a");
    sessionClear(&s);
    sessionClear(&other);
}

static void exec_evaluates_gates_with_again_once_more(void **state) {
    session s;
    sessionOpen(&s);
    gateArm(&writesGate, true);
    gateArm(&againGate, true);
    ask(&s, "multi|put a 1|say b");
    assert_noted("again asked of multi;writes asked of put;again asked of put;again asked of say;");
    ask(&s, "exec");
    assert_noted("again asked of exec;again asked of put;again asked of say;");
    assert_replies(&s, "+OK +QUEUED +QUEUED *2 +OK $1 b");
    gateArm(&writesGate, false);
    gateArm(&againGate, false);
    sessionClear(&s);
}

static void a_command_refused_at_exec_fails_alone(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|put a 1|say b|put c 1");
    (void)replies(&s);
    gateArm(&againGate, true);
    verdict = GATE_REFUSED;
    verdict_for = "say";
    ask(&s, "exec");
    assert_replies(&s, "*3 +OK -REFUSED by again +OK");
    assert_int_equal(commandFind(SLICE("say"))->rejected, 1);
    assert_int_equal(commandFind(SLICE("say"))->calls, 0);
    gateArm(&againGate, false);
    sessionClear(&s);
}

static void exec_runs_nothing_if_a_command_was_removed(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "multi|say a|put b 1|box shut|take b");
    (void)replies(&s);
    assert_int_equal(commandRename(SLICE("say"), SLICE("")), OK);
    assert_int_equal(commandRename(SLICE("take"), SLICE("")), OK);
    assert_int_equal(commandRename(SLICE("drop"), SLICE("take")), OK);
    ask(&s, "exec");
    assert_replies(&s, "-EXECABORT Transaction discarded because of: unknown command 'say', with "
                       "args beginning with: 'a' ");
    ask(&s, "multi|put b 1|box shut|take b|exec"); /* as renamed */
    assert_replies(&s, "+OK +QUEUED +QUEUED +QUEUED *3 +OK +OK :1");
    ask(&s, "multi|put b 1|take b");
    (void)replies(&s);
    assert_int_equal(commandRename(SLICE("take"), SLICE("drop")), OK);
    ask(&s, "exec|drop b");
    assert_replies(&s, "-EXECABORT Transaction discarded because of: unknown command 'take', with "
                       "args beginning with: 'b'  :0");
    sessionClear(&s);
}

/* ------------------------------------------------------------------ watches */

/* What MULTI, a command and EXEC reply now. */
static const char GOES[] = "+OK +QUEUED *1 $1 x", FAILS[] = "+OK +QUEUED *-1";
static const char *outcome(session *s) {
    (void)replies(s);
    ask(s, "multi|say x|exec");
    return replies(s);
}

static void a_changed_key_makes_exec_fail_once(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    ask(&s, "watch a b");
    ask(&other, "put b 1");
    assert_true(isIn(&s, DIRTY));
    assert_string_equal(outcome(&s), FAILS);
    assert_string_equal(outcome(&s), GOES);
    s.proto = 3;
    ask(&s, "watch a|put a 1");
    assert_string_equal(outcome(&s), "+OK +QUEUED _");
    sessionClear(&s);
    sessionClear(&other);
}

static void other_keys_and_other_databases_do_not_matter(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    ask(&s, "watch a");
    ask(&other, "put b 1|select 1|put a 1|take a|drop none");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "select 1|watch a|select 0");
    ask(&other, "put a 2");
    assert_string_equal(outcome(&s), FAILS);
    sessionClear(&s);
    sessionClear(&other);
}

static void exec_discard_unwatch_and_reset_remove_watches(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "watch a|multi|put a 1|exec|put a 2");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch a|multi|discard|put a 1");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch a|put a 1|unwatch");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch a|put a 1|multi|discard");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch a|put a 1");
    sessionReset(&s);
    assert_null(s.multi);
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "unwatch");
    assert_replies(&s, "+OK");
    sessionClear(&s);
}

static void a_refused_exec_forgets_watches_too(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "watch a|put a 1|exec x");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch a|exec x|put a 1");
    assert_string_equal(outcome(&s), GOES);
    sessionClear(&s);
}

static void writes_in_its_own_exec_do_not_affect_watches(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "watch a|multi|put a 1|put a 2|exec");
    assert_replies(&s, "+OK +OK +QUEUED +QUEUED *2 +OK +OK");
    sessionClear(&s);
}

/* The observer is armed only while a session watches a key. */
static void without_watches_the_observer_is_not_armed(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    assert_int_equal(engineHot.observers, 0);
    ask(&s, "watch a b");
    ask(&other, "watch b");
    assert_int_equal(engineHot.observers, 1);
    ask(&s, "unwatch");
    assert_int_equal(engineHot.observers, 1);
    ask(&other, "put b 1");
    assert_int_equal(engineHot.observers, 0);
    ask(&s, "watch a");
    sessionClear(&s); /* as a disconnected client's */
    assert_int_equal(engineHot.observers, 0);
    assert_int_equal(watchedKeyCount(), 0);
    sessionClear(&other);
}

static void watches_are_counted(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    assert_int_equal(watchCount(&s), 0);
    ask(&s, "watch a b a|watch b c");
    ask(&other, "watch a|select 1|watch a");
    assert_int_equal(watchCount(&s), 3);
    assert_int_equal(watchCount(&other), 2);
    assert_int_equal(watchedKeyCount(), 4);
    assert_int_equal(watchingSessionCount(), 2);
    assert_true(watchMemory(&s) > 3);
    ask(&other, "put a 1");
    assert_int_equal(watchCount(&other), 0);
    assert_int_equal(watchMemory(&other), 0);
    assert_int_equal(watchedKeyCount(), 3);
    assert_int_equal(watchingSessionCount(), 1);
    ask(&other, "watch d"); /* it has failed already */
    assert_int_equal(watchCount(&other), 0);
    ask(&s, "unwatch");
    assert_int_equal(watchedKeyCount(), 0);
    assert_int_equal(watchingSessionCount(), 0);
    sessionClear(&s);
    sessionClear(&other);
}

static void a_failed_transaction_keeps_no_queue(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    ask(&s, "watch a|multi|put a 1|put b 1");
    ask(&other, "put a 1");
    assert_int_equal(transactionCount(&s), 0);
    assert_int_equal(transactionMemory(&s), 0);
    ask(&s, "put a 2");
    assert_int_equal(transactionCount(&s), 0);
    ask(&s, "exec");
    assert_replies(&s, "+OK +OK +QUEUED +QUEUED +QUEUED *-1");
    sessionClear(&s);
    sessionClear(&other);
}

static void a_refused_command_takes_precedence_over_a_changed_key(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "watch a|put a 1|multi|nosuch");
    (void)replies(&s);
    ask(&s, "exec");
    assert_replies(&s, PREVIOUS);
    sessionClear(&s);
}

static void many_watchers_of_one_key_all_fail(void **state) {
    enum { SESSIONS = 50 };
    static session s[SESSIONS];
    session other;
    sessionOpen(&other);
    for (int i = 0; i < SESSIONS; i++) {
        sessionOpen(&s[i]);
        ask(&s[i], i % 2 ? "watch x a y" : "watch z y x");
    }
    ask(&other, "put a 1");
    for (int i = 0; i < SESSIONS; i++) assert_int_equal(isIn(&s[i], DIRTY), i % 2);
    ask(&other, "put y 1");
    for (int i = 0; i < SESSIONS; i++) {
        assert_true(isIn(&s[i], DIRTY));
        sessionClear(&s[i]);
    }
    assert_int_equal(watchedKeyCount(), 0);
    sessionClear(&other);
}

/* ------------------------------------------------------------------ watched keys that expire */

static void a_key_that_expires_after_watch_makes_exec_fail(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    ask(&s, "put a 1 1000100|put b 1 1000200|watch b a");
    setTestTime(START_MS + 100);
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch b a");
    setTestTime(START_MS + 101);
    assert_string_equal(outcome(&s), FAILS);
    assert_non_null(dbPeek(storeDb(0), SLICE("a"), storeHash(SLICE("a")))); /* it only looked */
    ask(&s, "watch b");
    setTestTime(START_MS + 201);
    ask(&other, "take b"); /* removes it */
    assert_string_equal(outcome(&s), FAILS);
    ask(&s, "watch b a");
    assert_string_equal(outcome(&s), GOES);
    sessionClear(&s);
    sessionClear(&other);
}

static void a_key_expired_when_watched_may_be_removed_but_not_created(void **state) {
    static const struct {
        const char *then, *outcome;
    } cases[] = {
        {"say x", GOES},         {"take a", GOES},         {"drop a", GOES},
        {"flush", GOES},         {"swap", GOES},           {"take a|put a 1", FAILS},
        {"put a 1", FAILS},      {"flush|put a 1", FAILS}, {"swap|swap", GOES},
        {"swap|put a 1", FAILS},
    };
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        setTestTime(START_MS);
        ask(&other, "put a 1 1000100");
        setTestTime(START_MS + 101);
        ask(&s, "watch a");
        ask(&other, cases[i].then);
        assert_string_equal(outcome(&s), cases[i].outcome);
        ask(&other, "flush");
    }
    sessionClear(&s);
    sessionClear(&other);
}

/* ------------------------------------------------------------------ whole databases */

static void a_flush_affects_watches_of_existing_keys(void **state) {
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    ask(&s, "watch a b");
    ask(&other, "flush");
    assert_string_equal(outcome(&s), GOES);
    ask(&s, "watch a b c");
    ask(&other, "put d 1|flush");
    assert_string_equal(outcome(&s), GOES);
    ask(&other, "put b 1");
    ask(&s, "watch a b c");
    ask(&other, "flush");
    assert_string_equal(outcome(&s), FAILS);
    ask(&s, "put b 1 1000100|watch b");
    setTestTime(START_MS + 101); /* expired now, but not when watched */
    ask(&other, "flush");
    assert_string_equal(outcome(&s), FAILS);
    sessionClear(&s);
    sessionClear(&other);
}

static void a_swap_affects_watches_of_keys_in_one_database(void **state) {
    static const struct {
        const char *in_0, *in_1, *outcome;
    } cases[] = {
        {"", "", GOES},
        {"put a 1", "", FAILS},
        {"", "put a 1", FAILS},
        {"put a 1", "put a 1", FAILS},
        {"put b 1", "put b 1", GOES},
        {"put a 1", "put a 1 999999", FAILS},
        {"", "put a 1 999999", GOES},
        {"put a 1 999999", "", GOES},
        {"put a 1 999999", "put a 1 999999", GOES},
        {"put a 1 999999", "put a 1", FAILS},
    };
    session s, other;
    sessionOpen(&s);
    sessionOpen(&other);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        setTestTime(START_MS - 10);
        ask(&other, cases[i].in_0);
        ask(&other, "select 1");
        ask(&other, cases[i].in_1);
        ask(&other, "select 0");
        setTestTime(START_MS);
        ask(&s, "watch a");
        ask(&other, "swap");
        assert_string_equal(outcome(&s), cases[i].outcome);
        /* The watch may as well be in the other of the two. */
        ask(&s, "select 1|watch a|select 0");
        ask(&other, "swap");
        assert_string_equal(outcome(&s), cases[i].outcome);
        ask(&other, "flush");
    }
    sessionClear(&s);
    sessionClear(&other);
}

int test_transaction(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)
    const struct CMUnitTest tests[] = {
        TEST(queued_commands_run_with_exec),
        TEST(a_transaction_of_any_length_keeps_its_order),
        TEST(inline_requests_and_empty_arguments_are_kept),
        TEST(a_large_argument_is_kept_by_reference),
        TEST(memory_follows_the_queue),
        TEST(the_flags_of_queued_commands_are_known_at_exec),
        TEST(discard_drops_the_queue),
        TEST(an_error_inside_exec_stops_nothing),
        TEST(an_empty_transaction_replies_an_empty_array),
        TEST(select_inside_exec_lasts),
        TEST(only_executions_are_counted),
        TEST(time_is_constant_during_exec),
        TEST(commands_inside_exec_know_it),
        TEST(a_stop_inside_exec_takes_effect_after_it),
        TEST(every_refusal_poisons_the_transaction),
        TEST(a_gate_that_refuses_poisons_the_transaction),
        TEST(a_refused_exec_discards_the_transaction),
        TEST(an_error_of_a_running_command_does_not_poison),
        TEST(exec_evaluates_gates_with_again_once_more),
        TEST(a_command_refused_at_exec_fails_alone),
        TEST(exec_runs_nothing_if_a_command_was_removed),
        TEST(a_changed_key_makes_exec_fail_once),
        TEST(other_keys_and_other_databases_do_not_matter),
        TEST(exec_discard_unwatch_and_reset_remove_watches),
        TEST(a_refused_exec_forgets_watches_too),
        TEST(writes_in_its_own_exec_do_not_affect_watches),
        TEST(without_watches_the_observer_is_not_armed),
        TEST(watches_are_counted),
        TEST(a_failed_transaction_keeps_no_queue),
        TEST(a_refused_command_takes_precedence_over_a_changed_key),
        TEST(many_watchers_of_one_key_all_fail),
        TEST(a_key_that_expires_after_watch_makes_exec_fail),
        TEST(a_key_expired_when_watched_may_be_removed_but_not_created),
        TEST(a_flush_affects_watches_of_existing_keys),
        TEST(a_swap_affects_watches_of_keys_in_one_database),
    };
    return cmocka_run_group_tests_name("engine/transaction", tests, NULL, NULL);
}
