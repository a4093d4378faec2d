/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine_test for the tests of the engine. */
#include "engine_test.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "engine/timer.h"
#include "engine/transaction.h"
#include "engine/watch.h"
#include "store/store.h"

static struct {
    str notes, shown_notes, shown_replies, bytes, shown_bytes;
    int64_t now_ms;
} engine_test;
gateVerdict verdict;
const char *verdict_for;
innerParams inner_params;
session *deliver_to;
bool with_slots;

void note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    strAppendFormatV(&engine_test.notes, format, args);
    va_end(args);
}

static const char *show(str *from, str *shown) {
    strFree(shown);
    *shown = *from;
    *from = STR_EMPTY;
    return strText(shown);
}

/* The same with the lines joined by blanks. */
static const char *showOnOneLine(str *from, str *shown) {
    size_t kept = 0;
    for (size_t i = 0; i < from->len; i++) {
        if (from->ptr[i] == '\n') continue;
        from->ptr[kept++] = from->ptr[i] == '\r' ? ' ' : from->ptr[i];
    }
    strCut(from, kept ? kept - 1 : 0);
    return show(from, shown);
}

const char *noted(void) { return show(&engine_test.notes, &engine_test.shown_notes); }

/* ------------------------------------------------------------------ commands */

static uint64_t hashOf(const ctx *c) { return storeHash(c->argv[1]); }

static void putCommand(ctx *c) {
    int64_t until = OBJECT_NO_EXPIRE;
    if (c->argc > 3 && !ctxArgInt(c, 3, &until)) return;
    assert_int_equal(c->key_hash, hashOf(c));
    robj *old = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    dbSetString(c->db, c->argv[1], &c->at, old, c->argv[2], ctxTakeArg(c, 2), until);
    static const keyEvent put = {"put", NOTIFY_STRING};
    ctxKeyChanged(c, c->argv[1], &put);
    replyOk(c);
}

static void takeCommand(ctx *c) {
    robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    char digits[NUMBER_TEXT_MAX];
    if (o) {
        replyBulk(c, objectText(o, digits));
    } else {
        replyNull(c);
    }
}

static void dropCommand(ctx *c) {
    if (dbDelete(c->db, c->argv[1], c->key_hash, c->look)) {
        static const keyEvent drop = {"drop", NOTIFY_GENERIC};
        ctxKeyChanged(c, c->argv[1], &drop);
        replyInteger(c, 1);
    } else {
        replyInteger(c, 0);
    }
}

static void sayCommand(ctx *c) { replyBulk(c, c->argv[1]); }
static void failCommand(ctx *c) { replyError(c, SLICE("FAILED as told")); }
static void okCommand(ctx *c) { replyOk(c); }

static void stopCommand(ctx *c) {
    int64_t flag;
    if (!ctxArgInt(c, 1, &flag)) return;
    c->who->flags |= (uint64_t)flag;
    replyOk(c);
}

static void enterCommand(ctx *c) {
    sessionSetAuthenticated(c->who, NULL, true);
    replyOk(c);
}

static void twiceCommand(ctx *c) {
    slice words[2] = {SLICE("FIRST"), c->argv[1]};
    ctxPropagateAs(c, 2, words);
    words[0] = SLICE("SECOND");
    ctxPropagateAs(c, 2, words);
    replyOk(c);
}

static void laterCommand(ctx *c) {
    int64_t ms;
    if (!ctxArgInt(c, 1, &ms)) return;
    setTestTime(engine_test.now_ms + ms);
    replyOk(c);
}

static void publishCommand(ctx *c) {
    ctxPropagateTo(c, PROPAGATE_REPLICAS);
    replyOk(c);
}

static void quietCommand(ctx *c) {
    ctxPropagateNothing(c);
    ctxKeyChanged(c, c->argv[1], NULL);
    replyOk(c);
}

static void replyLate(ctx *c) { replyStatus(c, SLICE("late")); }

static void awaitCommand(ctx *c) {
    int64_t deadline_ms;
    if (!blockArgDeadline(c, c->argc - 1, &deadline_ms)) return;
    for (int i = 1; i < c->argc - 1; i++) {
        slice key = c->argv[i];
        uint64_t hash = storeHash(key);
        const robj *o = dbFind(c->db, key, hash, c->look, &c->at);
        if (!o) continue;
        char digits[NUMBER_TEXT_MAX];
        replyBulk(c, objectText(o, digits));
        (void)dbDelete(c->db, key, hash, c->look); /* it was found */
        ctxKeyChanged(c, key, &eventDel);
        return;
    }
    if (blockIsDenied(c)) {
        replyStatus(c, SLICE("denied"));
        return;
    }
    blockParams params = {.keys = c->argv + 1,
                          .key_count = c->argc - 2,
                          .type = TYPE_STRING,
                          .deadline_ms = deadline_ms,
                          .timed_out = replyLate};
    blockStart(c, &params);
}

/* The number stored at argv[1]; 0 if there is none. False: the error was replied. */
static bool numberAt(ctx *c, int64_t *out) {
    uint64_t hash = storeHash(c->argv[1]);
    const robj *o = dbFindRead(c->db, c->argv[1], hash, c->look);
    char digits[NUMBER_TEXT_MAX];
    *out = 0;
    if (!o) replyError(c, SLICE("GONE it is"));
    return o && numberParseInt(objectText(o, digits), out);
}

static bool isGreater(const blockQuery *q) {
    char digits[NUMBER_TEXT_MAX];
    int64_t now, than;
    return numberParseInt(objectText(q->value, digits), &now) &&
           numberParseInt(q->argv[2], &than) && now > than;
}

static void freeNoted(void *state) { note("freed %s;", (const char *)state); }

static void newerCommand(ctx *c) {
    static char name[] = "newer";
    int64_t now, than, deadline_ms;
    if (!blockArgDeadline(c, 3, &deadline_ms) || !numberAt(c, &now)) return;
    slice words[4] = {c->argv[0], c->argv[1], c->argv[2], c->argv[3]};
    char digits[NUMBER_TEXT_MAX];
    if (sliceEqual(c->argv[2], SLICE("$"))) {
        words[2] = sliceMake(digits, numberPrintInt(digits, now));
    } else if (numberParseInt(c->argv[2], &than) && now > than) {
        if (blockState(c)) assert_ptr_equal(blockState(c), name);
        replyInteger(c, now);
        return;
    }
    blockParams params = {.keys = c->argv + 1,
                          .key_count = 1,
                          .type = TYPE_STRING,
                          .when_gone = true,
                          .ready = isGreater,
                          .deadline_ms = deadline_ms,
                          .timed_out = replyLate,
                          .argv = words,
                          .argc = 4,
                          .state = c->who->blocked ? NULL : name,
                          .free_state = c->who->blocked ? NULL : freeNoted};
    blockStart(c, &params);
}

static int64_t acknowledged;

static bool isAcknowledged(const blockQuery *q) {
    int64_t wanted;
    return numberParseInt(q->argv[1], &wanted) && acknowledged >= wanted;
}

void (*when_acknowledged)(void);

static void replyAcknowledged(ctx *c) {
    if (when_acknowledged) when_acknowledged();
    replyInteger(c, acknowledged);
}

static void offsetCommand(ctx *c) {
    int64_t deadline_ms;
    if (!blockArgDeadline(c, 2, &deadline_ms)) return;
    blockParams params = {.kind = BLOCK_OFFSET,
                          .ready = isAcknowledged,
                          .deadline_ms = deadline_ms,
                          .timed_out = replyAcknowledged,
                          .finish = replyAcknowledged};
    blockStart(c, &params);
}

static void ackCommand(ctx *c) {
    if (!ctxArgInt(c, 1, &acknowledged)) return;
    blockNotify(BLOCK_OFFSET);
    replyOk(c);
}

bool module_is_done;

static void moduleCommand(ctx *c) {
    if (module_is_done) {
        assert_ptr_equal(blockState(c), &module_is_done);
        replyStatus(c, SLICE("done"));
        return;
    }
    blockParams params = {.kind = BLOCK_MODULE,
                          .timed_out = replyLate,
                          .state = blockState(c) ? NULL : &module_is_done};
    blockStart(c, &params);
}

static void flushCommand(ctx *c) {
    hooksDbEvent(&(dbEvent){.kind = DB_FLUSHING, .db_id = -1});
    uint64_t count = storeFlush(keyspaceMain(), false);
    hooksDbEvent(&(dbEvent){.kind = DB_FLUSHED, .db_id = -1});
    ctxDatasetChanged(c, count);
    replyOk(c);
}

static void swapCommand(ctx *c) {
    hooksDbEvent(&(dbEvent){.kind = DB_SWAPPING, .db_id = 0, .other_id = 1});
    storeSwap(storeDb(0), storeDb(1));
    hooksDbEvent(&(dbEvent){.kind = DB_SWAPPED, .db_id = 0, .other_id = 1});
    ctxDatasetChanged(c, 1);
    replyOk(c);
}

static void innerCommand(ctx *c) {
    ctx inner;
    ctxInitInner(&inner, c);
    inner.argv = c->argv + 1;
    inner.argc = c->argc - 1;
    inner.origin = (uint8_t)inner_params.origin;
    inner.gates_exempt = inner_params.gates_exempt;
    if (inner_params.proto) inner.proto = (uint8_t)inner_params.proto;
    if (inner_params.out) inner.out = inner_params.out;
    if (inner_params.who) {
        inner.who = inner_params.who;
        inner.db = inner.who->db;
        inner.out = &inner.who->out;
        inner.flags |= CTX_MAY_BLOCK;
    }
    executeInner(&inner);
    if (inner_params.out || inner_params.who) replyOk(c);
}

static void kindsCommand(ctx *c) {
    replyArray(c, 3);
    replyNull(c);
    replyBool(c, true);
    replyMap(c, 1);
    replyStatus(c, SLICE("pi"));
    replyDouble(c, 3.25);
}

static void deliverCommand(ctx *c) {
    str item = STR_EMPTY;
    strAppendFormat(&item, "+%.*s\r\n", (int)c->argv[1].len, c->argv[1].ptr);
    sessionDeliver(deliver_to, DELIVER_PUSH, strSlice(&item));
    strFree(&item);
    replyOk(c);
}

static void selectCommand(ctx *c) {
    int64_t id;
    if (!ctxArgInt(c, 1, &id)) return;
    if (sessionSelect(c->who, id) == OK) {
        replyOk(c);
    } else {
        replyError(c, ERR_DB_RANGE_TEXT);
    }
}

static void multiCommand(ctx *c) {
    transactionBegin(c->who);
    replyOk(c);
}

static void execCommand(ctx *c) { transactionRun(c); }

static void discardCommand(ctx *c) {
    transactionDiscard(c->who);
    replyOk(c);
}

static void watchCommand(ctx *c) {
    for (int i = 1; i < c->argc; i++) {
        watchKey(c->who, c->argv[i], storeHash(c->argv[i]), c->now_ms);
    }
    replyOk(c);
}

static void unwatchCommand(ctx *c) {
    watchForget(c->who);
    replyOk(c);
}

#define ONE_KEY .first_key = 1, .last_key = 1, .key_step = 1
static const commandSpec box_subs[] = {
    {.name = "open", .proc = okCommand, .arity = 3},
    {.name = "shut", .proc = okCommand, .arity = 2},
};
static const commandSpec specs[] = {
    {.name = "ack", .proc = ackCommand, .arity = 2},
    {.name = "again", .proc = okCommand, .arity = 1, .flags = CMD_STOPS_BATCH},
    {.name = "await", .proc = awaitCommand, .arity = -3, .flags = CMD_WRITE | CMD_BLOCKING},
    {.name = "box", .arity = -2, .subs = box_subs, .sub_count = COUNT_OF(box_subs)},
    {.name = "deliver", .proc = deliverCommand, .arity = 2},
    {.name = "discard", .proc = discardCommand, .arity = 1, .flags = CMD_AT_ONCE},
    {.name = "drop", .proc = dropCommand, .arity = 2, .flags = CMD_WRITE | CMD_QUICK, ONE_KEY},
    {.name = "enter", .proc = enterCommand, .arity = 1, .flags = CMD_NO_AUTH},
    {.name = "exec", .proc = execCommand, .arity = 1, .flags = CMD_AT_ONCE | CMD_RUNS_QUEUE},
    {.name = "fail", .proc = failCommand, .arity = 1, .flags = CMD_QUICK},
    {.name = "flush", .proc = flushCommand, .arity = 1, .flags = CMD_WRITE},
    {.name = "inner", .proc = innerCommand, .arity = -2},
    {.name = "kinds", .proc = kindsCommand, .arity = 1},
    {.name = "later", .proc = laterCommand, .arity = 2},
    {.name = "module", .proc = moduleCommand, .arity = 1, .flags = CMD_BLOCKING},
    {.name = "multi", .proc = multiCommand, .arity = 1, .flags = CMD_AT_ONCE | CMD_NO_MULTI},
    {.name = "newer", .proc = newerCommand, .arity = 4, .flags = CMD_BLOCKING, ONE_KEY},
    {.name = "offset", .proc = offsetCommand, .arity = 3, .flags = CMD_BLOCKING},
    {.name = "put",
     .proc = putCommand,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_QUICK,
     ONE_KEY},
    {.name = "publish", .proc = publishCommand, .arity = 2},
    {.name = "quiet", .proc = quietCommand, .arity = 2, .flags = CMD_WRITE, ONE_KEY},
    {.name = "say", .proc = sayCommand, .arity = -2},
    {.name = "select", .proc = selectCommand, .arity = 2, .flags = CMD_QUICK},
    {.name = "stop", .proc = stopCommand, .arity = 2, .flags = CMD_QUICK},
    {.name = "swap", .proc = swapCommand, .arity = 1, .flags = CMD_WRITE},
    {.name = "take", .proc = takeCommand, .arity = 2, .flags = CMD_READONLY | CMD_QUICK, ONE_KEY},
    {.name = "twice", .proc = twiceCommand, .arity = 2, .flags = CMD_WRITE, ONE_KEY},
    {.name = "unwatch", .proc = unwatchCommand, .arity = 1},
    {.name = "watch", .proc = watchCommand, .arity = -2, .flags = CMD_AT_ONCE | CMD_NO_MULTI},
};

/* ------------------------------------------------------------------ gates and hooks */

static bool isWrite(const commandSpec *spec) { return spec->flags & CMD_WRITE; }

static gateVerdict answer(ctx *c, const char *name) {
    note("%s asked of %.*s;", name, (int)c->cmd->name.len, c->cmd->name.ptr);
    if (verdict_for && !sliceIs(c->argv[0], verdict_for)) return GATE_PASS;
    if (verdict == GATE_REFUSED) replyErrorFormat(c, "REFUSED by %s", name);
    return verdict;
}

static gateVerdict askWrites(ctx *c) { return answer(c, "writes"); }
static gateVerdict askAll(ctx *c) { return answer(c, "all"); }
static gateVerdict askAgain(ctx *c) { return answer(c, "again"); }

const gate writesGate = {.name = "writes", .selects = isWrite, .admit = askWrites};
const gate allGate = {.name = "all", .admit = askAll};
const gate againGate = {.name = "again", .admit = askAgain, .again = true};
/* Between the first two and the others, so that bits beyond the first word are in use. */
static const gate other_gates[OTHER_GATES];
enum { GATES = OTHER_GATES + 6 };

static void listGates(const gate *order[GATES]) {
    int count = 0;
    order[count++] = &noMultiGate;
    order[count++] = &writesGate;
    for (int i = 0; i < OTHER_GATES; i++) order[count++] = &other_gates[i];
    order[count++] = &allGate;
    order[count++] = &againGate;
    order[count++] = &pauseGate;
    order[count++] = &queueGate;
}

static void sinkTake(const propagated *p) {
    note("db%d", p->db_id);
    if (p->slot >= 0) note(" slot%d", p->slot);
    for (int i = 0; i < p->argc; i++) note(" %.*s", (int)p->argv[i].len, p->argv[i].ptr);
    note(";");
    for (int i = 0; i < p->span_count; i++) strAppendSlice(&engine_test.bytes, p->spans[i]);
}

const char *propagatedBytes(void) {
    return showOnOneLine(&engine_test.bytes, &engine_test.shown_bytes);
}

static void keyChanged(db *d, slice key, const keyEvent *event) {
    note("%s of %.*s in %d;", event ? event->name : "change", (int)key.len, key.ptr, dbId(d));
}

static void keyRemoving(db *d, const robj *o, storeRemoval why) {
    slice key = objectKey(o);
    (void)d; /* there is one */
    note("%s %.*s;", why == REMOVAL_DELETED ? "deleting" : "removing", (int)key.len, key.ptr);
}

const keyObserver removalObserver = {
    .name = "removals", .changed = keyChanged, .removing = keyRemoving};

static void seenBefore(ctx *c) { note("before %.*s;", (int)c->cmd->name.len, c->cmd->name.ptr); }

static void seenAfter(ctx *c, int64_t duration_ns) {
    assert_true(duration_ns >= 0);
    note("after %.*s;", (int)c->cmd->name.len, c->cmd->name.ptr);
}

static void takeForAof(const propagated *p) {
    note("aof:");
    sinkTake(p);
}

static void takeForReplicas(const propagated *p) {
    note("replicas:");
    sinkTake(p);
}

const sink noteSink = {.name = "note", .take = sinkTake};
const sink aofSink = {.name = "aof", .take = takeForAof, .targets = PROPAGATE_AOF};
const sink replicaSink = {
    .name = "replicas", .take = takeForReplicas, .targets = PROPAGATE_REPLICAS};
const keyObserver noteObserver = {.name = "note", .changed = keyChanged};
const commandObserver noteCommandObserver = {
    .name = "note", .before = seenBefore, .after = seenAfter};

static const feature *const features[] = {&engineFeature, &keyspaceFeature};

/* ------------------------------------------------------------------ the engine_test */

static int64_t wallUs(void) { return engine_test.now_ms * 1000; }

void setTestTime(int64_t now_ms) {
    engine_test.now_ms = now_ms;
    executeNewTurn();
    timersNewTurn();
}

int engineTestSetUp(void **state) {
    static const clockSource source = {NULL, wallUs};
    clockInit();
    clockSetSource(&source);
    storeInit(2, with_slots);
    const gate *order[GATES];
    listGates(order);
    hooksInstall(features, COUNT_OF(features), order, GATES);
    commandInstall(specs, COUNT_OF(specs), false);
    reason why;
    assert_int_equal(keyspaceFeature.init(&why), OK);
    verdict = GATE_PASS;
    verdict_for = NULL;
    when_acknowledged = NULL;
    module_is_done = false;
    inner_params = (innerParams){.origin = ORIGIN_SCRIPT};
    setTestTime(START_MS);
    logSetLevel(LOG_NOTHING);
    return 0;
}

int engineTestTearDown(void **state) {
    commandUninstall();
    hooksUninstall();
    storeShutdown();
    storeSetListener(keyspaceMain(), NULL);
    clockSetSource(NULL);
    strFree(&engine_test.notes);
    strFree(&engine_test.shown_notes);
    strFree(&engine_test.shown_replies);
    strFree(&engine_test.bytes);
    strFree(&engine_test.shown_bytes);
    return 0;
}

static void carrierPause(session *s, bool paused) { note("paused %d;", paused); }
static void carrierCloseSoon(session *s) { note("closes soon;"); }
static void carrierOutputGrew(session *s) { note("grew %d;", s->out.first != NULL); }
static void carrierCloseNow(session *s) { note("closes now;"); }

static void carrierPeer(const session *s, str *out) {
    (void)s;
    strAppendText(out, "1.2.3.4:5");
}

void sessionOpen(session *s) {
    static const sessionCarrier carrier = {.pause_reading = carrierPause,
                                           .close_soon = carrierCloseSoon,
                                           .close_now = carrierCloseNow,
                                           .peer = carrierPeer,
                                           .output_grew = carrierOutputGrew};
    sessionInit(s, &carrier, 0);
}

/* ------------------------------------------------------------------ the reader */

/* Runs what the batch holds; returns how many ran. */
static int runBatch(session *s, requestParser *parser, requestBatch *batch) {
    for (int i = 0; i < batch->count; i++) executeResolve(&batch->items[i]);
    if (!batch->count) return 0;
    executePrefetch(&(executePart){s, batch->items, batch->count}, 1);
    int ran = executeRun(s, batch->items, batch->count);
    if (ran < batch->count) requestPutBack(parser, &batch->items[ran]);
    return ran;
}

/* Parses and runs the buffer until it has no complete request or the session stops; destroys it. */
static int runBuffer(session *s, requestParser *parser, char *buf, size_t *len, size_t *pos) {
    static requestBatch batch;
    const requestLimits limits = {512 * 1024 * 1024, INT32_MAX, true, false};
    requestError error;
    int ran = 0;
    requestStatus st;
    do {
        requestBatchInit(&batch);
        st = requestParse(parser, buf, len, pos, &limits, &batch, REQUEST_BATCH_MAX, &error);
        assert_int_not_equal(st, REQUEST_BAD);
        int count = batch.count, now = runBatch(s, parser, &batch);
        ran += now;
        requestBatchClear(&batch);
        if (now < count) return ran;
    } while (st == REQUEST_BATCH_FULL);
    return ran;
}

int askBytes(session *s, const char *const *pieces, int count) {
    requestParser parser = {NULL};
    size_t len = 0, pos = 0;
    char *buf = NULL;
    int ran = 0;
    for (int i = 0; i < count; i++) {
        const char *piece = pieces[i];
        size_t left = strlen(piece);
        while (left) {
            size_t cap;
            char *tail = requestParserTail(&parser, &cap);
            size_t n = tail ? sizeMin(cap, left) : left;
            if (tail) {
                memcpy(tail, piece, n);
                requestParserCommit(&parser, n);
            } else {
                char *moved = memAlloc(len - pos + n + REQUEST_READ_SLACK);
                if (len > pos) memcpy(moved, buf + pos, len - pos);
                memcpy(moved + len - pos, piece, n);
                memset(moved + len - pos + n, '!', REQUEST_READ_SLACK);
                memFree(buf);
                buf = moved;
                len = len - pos + n;
                pos = 0;
            }
            piece += n;
            left -= n;
            ran += runBuffer(s, &parser, buf, &len, &pos);
            /* Once more: only then may a rest open a block for a large argument. */
            if (pos < len) ran += runBuffer(s, &parser, buf, &len, &pos);
        }
    }
    requestParserClear(&parser);
    memFree(buf);
    return ran;
}

int ask(session *s, const char *requests) {
    str bytes = STR_EMPTY;
    str text = strNew(sliceOf(requests));
    char *rest_of_line, *rest_of_words;
    for (char *line = text.ptr ? strtok_r(text.ptr, "|", &rest_of_line) : NULL; line;
         line = strtok_r(NULL, "|", &rest_of_line)) {
        slice words[16];
        int count = 0;
        for (char *word = strtok_r(line, " ", &rest_of_words); word;
             word = strtok_r(NULL, " ", &rest_of_words)) {
            assert_in_range(count, 0, COUNT_OF(words) - 1);
            words[count++] = sliceOf(word);
        }
        strAppendFormat(&bytes, "*%d\r\n", count);
        for (int i = 0; i < count; i++) {
            strAppendFormat(&bytes, "$%zu\r\n%.*s\r\n", words[i].len, (int)words[i].len,
                            words[i].ptr);
        }
    }
    const char *piece = strText(&bytes);
    int ran = askBytes(s, &piece, 1);
    strFree(&text);
    strFree(&bytes);
    return ran;
}

const char *replies(session *s) {
    size_t len;
    char *copy = outbufCopy(&s->out, &len);
    outbufConsume(&s->out, outbufPending(&s->out));
    outbufReap(&s->out);
    str text = strNew(sliceMake(copy, len));
    memFree(copy);
    return showOnOneLine(&text, &engine_test.shown_replies);
}
