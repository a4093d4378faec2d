/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A subsystem that uses public headers only, to check that they are sufficient. It tracks one
 * session and pushes to it the keys it has read that others change. It stores copies of values in
 * its own keyspace, runs commands within its own commands, with replies as events and with chosen
 * gates, and blocks until enough changes were copied. */
#include "engine_test.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/command.h"
#include "engine/ctx.h"
#include "engine/deliver.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "resp/reply_sink.h"
#include "store/store.h"

/* ------------------------------------------------------------------ tracking */

/* The slot contents of a tracked session. */
typedef struct tracking {
    session *who;
    str keys; /* each followed by a blank */
} tracking;

static struct {
    tracking *tracked; /* only one at a time */
    keyspace *copies;
    int64_t copied;
} subsystem;

static void freeTracking(session *s, void *state) {
    (void)s;
    tracking *t = state;
    strFree(&t->keys);
    memFree(t);
    subsystem.tracked = NULL;
}

static const sessionSlot tracking_slot = {.name = "tracking", .free = freeTracking};

static void afterCommand(ctx *c, int64_t duration_ns) {
    (void)duration_ns;
    tracking *t = sessionSlotGet(c->who, sessionSlotRegister(&tracking_slot));
    if (!(c->cmd->flags & CMD_READONLY) || c->argc < 2) return;
    strAppendSlice(&t->keys, c->argv[1]);
    strAppendByte(&t->keys, ' ');
}

static const commandObserver reads = {.name = "reads", .after = afterCommand};

static bool hasRead(const tracking *t, slice key) {
    for (size_t from = 0, i = 0; i < t->keys.len; i++) {
        if (t->keys.ptr[i] != ' ') continue;
        if (sliceEqual(sliceMake(t->keys.ptr + from, i - from), key)) return true;
        from = i + 1;
    }
    return false;
}

static void keyChanged(db *d, slice key, const keyEvent *event) {
    (void)d, (void)event;
    const tracking *t = subsystem.tracked;
    if (!t || !hasRead(t, key)) return;
    str push = STR_EMPTY;
    strAppendFormat(&push, ">2\r\n$10\r\ninvalidate\r\n$%zu\r\n", key.len);
    strAppendSlice(&push, key);
    strAppendText(&push, "\r\n");
    sessionDeliver(t->who, DELIVER_PUSH, strSlice(&push));
    strFree(&push);
}

static const keyObserver changes = {.name = "changes", .changed = keyChanged};

static void trackCommand(ctx *c) {
    tracking *t = memNew(tracking);
    t->who = c->who;
    sessionSlotSet(c->who, sessionSlotRegister(&tracking_slot), t);
    subsystem.tracked = t;
    commandObserverArmSession(c->who, &reads, true);
    replyOk(c);
}

/* ------------------------------------------------------------- copies, made by a nested command */

static void takeItem(void *state, const replyEvent *event) {
    if (event->kind == REPLY_BULK) strAppendSlice(state, event->text);
}

/* backup key: reads the key by TAKE, without gates, and stores it in the other keyspace. */
static void backupCommand(ctx *c) {
    str value = STR_EMPTY;
    replySink sink = {.take = takeItem, .state = &value};
    outbuf out;
    outbufInitSink(&out, &sink);
    const slice words[2] = {SLICE("take"), c->argv[1]};
    ctx inner;
    ctxInitInner(&inner, c);
    inner.argv = words;
    inner.argc = 2;
    inner.origin = ORIGIN_MODULE;
    inner.gates_exempt = UINT64_MAX;
    inner.out = &out;
    executeInner(&inner);
    outbufClear(&out);
    db *to = keyspaceDb(subsystem.copies, 0);
    keyspace *before = keyspaceUse(subsystem.copies);
    dbPosition at;
    robj *old = dbFind(to, c->argv[1], storeHash(c->argv[1]), c->look, &at);
    dbSetString(to, c->argv[1], &at, old, strSlice(&value), NULL, OBJECT_NO_EXPIRE);
    (void)keyspaceUse(before);
    strFree(&value);
    subsystem.copied++;
    blockNotify(BLOCK_OFFSET);
    replyOk(c);
}

/* ------------------------------------------------------------------ waiting for copies */

static bool enoughCopied(const blockQuery *q) {
    int64_t wanted;
    return numberParseInt(q->argv[1], &wanted) && subsystem.copied >= wanted;
}

static void replyCopied(ctx *c) { replyInteger(c, subsystem.copied); }

static void copiedCommand(ctx *c) {
    blockParams params = {.kind = BLOCK_OFFSET, .ready = enoughCopied, .finish = replyCopied};
    blockStart(c, &params);
}

static const commandSpec subsystem_specs[] = {
    {.name = "track", .proc = trackCommand, .arity = 1},
    {.name = "backup", .proc = backupCommand, .arity = 2},
    {.name = "copied", .proc = copiedCommand, .arity = 2, .flags = CMD_BLOCKING},
};

/* ------------------------------------------------------------------ the test */

static void a_subsystem_that_uses_public_headers_only(void **state) {
    (void)state;
    session reader, writer, waiter;
    sessionOpen(&reader);
    sessionOpen(&writer);
    sessionOpen(&waiter);
    assert_int_equal(commandLoad(subsystem_specs, COUNT_OF(subsystem_specs)), OK);
    keyObserverArm(&changes, true);
    subsystem.copies = keyspaceNew();

    ask(&reader, "track|take a|take b");
    (void)replies(&reader);
    assert_int_equal(writer.armed, 0); /* only the tracked session left the fast path */
    ask(&writer, "multi|put a 1|put c 1");
    assert_replies(&reader, "");
    ask(&writer, "exec");
    assert_replies(&reader, ">2 $10 invalidate $1 a");
    ask(&reader, "multi|put b 2|take b|exec");
    assert_replies(&reader, "+OK +QUEUED +QUEUED *2 +OK $1 2 >2 $10 invalidate $1 b");

    gateArm(&allGate, true);
    verdict = GATE_REFUSED;
    verdict_for = "take";
    ask(&waiter, "copied 2");
    (void)replies(&writer);
    ask(&writer, "take a|backup a|backup b");
    assert_replies(&writer, "-REFUSED by all +OK +OK");
    assert_replies(&waiter, ":2");
    gateArm(&allGate, false);

    const db *copies = keyspaceDb(subsystem.copies, 0);
    ask(&writer, "flush");
    assert_int_equal(dbSize(storeDb(0)), 0);
    assert_int_equal(dbSize(copies), 2);
    char digits[NUMBER_TEXT_MAX];
    const robj *copy = dbPeek(copies, SLICE("a"), storeHash(SLICE("a")));
    assert_non_null(copy);
    assert_true(sliceEqual(objectText(copy, digits), SLICE("1")));
    ask(&writer, "put a 9");
    keyspaceFree(subsystem.copies, false);
    (void)replies(&writer);
    ask(&writer, "take a");
    assert_replies(&writer, "$1 9");

    keyObserverArm(&changes, false);
    sessionClear(&reader);
    sessionClear(&writer);
    sessionClear(&waiter);
    assert_null(subsystem.tracked);
}

int test_subsystem(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_subsystem_that_uses_public_headers_only, engineTestSetUp,
                                        engineTestTearDown),
    };
    return cmocka_run_group_tests_name("engine/subsystem", tests, NULL, NULL);
}
