/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocked sessions (block.h).
 *
 * Invariant: a session has SESSION_BLOCKED if and only if it has a wait, except while its request
 * runs again. A wait is in the list of its kind and, in order of waiting time, in the list of each
 * of its keys in the index (key_index.h). A key is in the ready list if it has changed since it was
 * last processed. */
#include "engine/block.h"

#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/deliver_priv.h"
#include "engine/execute.h"
#include "engine/execute_priv.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/kept_request.h"
#include "engine/key_index.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/stream.h"
#include "engine/timer.h"
#include "store/store.h"

/* A wait's entry in the queue of one key. */
typedef struct keyWait {
    listNode of_key;
    indexedKey *key; /* NULL for a repeated key */
    struct blockWait *by;
} keyWait;

struct blockWait {
    session *who;
    listNode all; /* node in the list of its kind, longest waiting first */
    request kept;
    size_t memory;
    blockKind kind;
    valueType type;
    bool any_type;
    bool when_gone;
    bool not_by_user;
    bool is_run;
    bool silent;      /* its reply is suppressed by CLIENT REPLY */
    bool again;       /* it ran again and still found nothing */
    bool over;        /* blockFinish() was called */
    bool ends;        /* its end, or its second run, is being executed */
    bool holds_reply; /* the command has run */
    outbuf held;      /* its reply */
    slice error;      /* the reply, while it ends with an error */
    uint64_t secrets; /* arguments that the command log must not show */
    uint64_t work;    /* ticks that blockAddWork() was given */
    blockReadyProc *ready;
    engineTimer timer;
    int64_t deadline_ms, again_ms; /* what the timer is set for; 0: nothing */
    commandProc *timed_out, *finish;
    bool (*may_time_out)(const void *state);
    void *state;
    void (*free_state)(void *state);
    size_t (*state_memory)(const void *state);
    session *(*heir)(void *state);
    int key_count;
    keyWait keys[];
};

/* An iteration over a list of waits, whose steps may end any wait: `next` is corrected then. */
typedef struct waitCursor {
    listNode *next;
    list *of;
    struct waitCursor *outer;
} waitCursor;

static struct {
    waitCursor *cursors; /* of the iterations that run, innermost first */
    list waits[BLOCK_KINDS];
    bool notified[BLOCK_KINDS]; /* kinds whose `ready` functions have to be called */
    bool any_notified;
    list waited, ready; /* lists of keys */
    uint64_t when_gone_keys;
    bool ignores_changes;
    list released; /* list of sessions */
} blocked;

static void initLists(void) {
    if (blocked.waited.head.next) return;
    for (int i = 0; i < BLOCK_KINDS; i++) listInit(&blocked.waits[i]);
    listInit(&blocked.waited);
    listInit(&blocked.ready);
    listInit(&blocked.released);
}

static waitCursor cursorBegin(list *l) {
    return (waitCursor){.next = listFirst(l), .of = l, .outer = blocked.cursors};
}

/* The next node; NULL at the end. */
static listNode *cursorNext(waitCursor *at) {
    listNode *n = at->next;
    if (n) at->next = listNext(at->of, n);
    return n;
}

/* Removes a node from a list of waits. */
static void removeWait(list *l, listNode *n) {
    for (waitCursor *at = blocked.cursors; at; at = at->outer) {
        if (at->next == n) at->next = listNext(l, n);
    }
    listRemove(l, n);
}

uint64_t blockedKeyCount(void) { return blocked.waited.count; }

uint64_t blockedKeyWhenGoneCount(void) { return blocked.when_gone_keys; }

/* ------------------------------------------------------------------ start and end */

bool blockArgDeadline(ctx *c, int i, int64_t *deadline_ms) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    long double seconds;
    if (!numberParseLongDouble(c->argv[i], &seconds)) {
        replyError(c, SLICE("ERR timeout is not a float or out of range"));
        return false;
    }
    long double ms = ceill(seconds * 1000);
    if (ms < 0) {
        replyError(c, SLICE("ERR timeout is negative"));
        return false;
    }
    if (ms > (long double)(INT64_MAX - engineHot.now_ms)) {
        replyError(c, SLICE("ERR timeout is out of range"));
        return false;
    }
    *deadline_ms = ms > 0 ? engineHot.now_ms + (int64_t)ms : 0;
    return true;
}

bool blockArgDeadlineMs(ctx *c, int i, int64_t *deadline_ms) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    int64_t ms;
    *deadline_ms = 0;
    if (!numberParseInt(c->argv[i], &ms)) {
        replyError(c, SLICE("ERR timeout is not an integer or out of range"));
    } else if (ms < 0) {
        replyError(c, SLICE("ERR timeout is negative"));
    } else if (ms > 0 && !numberAdd(ms, engineHot.now_ms, deadline_ms)) {
        replyError(c, SLICE("ERR timeout is out of range"));
    } else {
        return true;
    }
    return false;
}

bool blockIsDenied(const ctx *c) {
    const uint64_t denied = SESSION_DENY_BLOCKING | SESSION_INTERNAL;
    if (c->flags & (CTX_MAY_BLOCK | CTX_WOKEN)) return false;
    return c->origin != ORIGIN_CLIENT || c->who->flags & denied || !c->request;
}

/* True if the key is among the first `count` keys of the wait. */
static bool waitsFor(const blockWait *w, int count, const indexedKey *k) {
    hotCheck(count <= w->key_count);
    for (int i = 0; i < count; i++) {
        if (w->keys[i].key == k) return true;
    }
    return false;
}

static void queueFor(blockWait *w, int i, slice key) {
    hotCheck(i < w->key_count);
    indexedKey *k = keyIndexGet(w->who->db_id, key);
    if (waitsFor(w, i, k)) return;
    w->keys[i] = (keyWait){.key = k, .by = w};
    if (listIsEmpty(&k->waits)) listAppend(&blocked.waited, &k->waited);
    if (w->when_gone && !k->when_gone++) blocked.when_gone_keys++;
    listAppend(&k->waits, &w->keys[i].of_key);
    w->memory += sizeof(*k) + k->len;
}

static void leaveQueue(blockWait *w, keyWait *place) {
    hotCheck(!place->key || place->by == w);
    indexedKey *k = place->key;
    if (!k) return;
    removeWait(&k->waits, &place->of_key);
    if (w->when_gone && !--k->when_gone) blocked.when_gone_keys--;
    if (listIsEmpty(&k->waits)) {
        listRemove(&blocked.waited, &k->waited);
        if (listHas(&k->ready)) listRemove(&blocked.ready, &k->ready);
    }
    keyIndexDrop(k);
}

static void timeIsUp(engineTimer *t);

/* True if the command is to run again before the wait times out. */
static bool runsAgainFirst(const blockWait *w) {
    return w->again_ms && (!w->deadline_ms || w->again_ms < w->deadline_ms);
}

static void setTimer(blockWait *w) {
    int64_t at_ms = runsAgainFirst(w) ? w->again_ms : w->deadline_ms;
    if (at_ms) {
        timerSet(&w->timer, at_ms);
    } else {
        timerStop(&w->timer);
    }
}

/* Stores what will run again: the request, or the arguments given instead. */
static size_t keepRequest(blockWait *w, const ctx *c, const blockParams *params) {
    if (!params->argv && c->request) return keptRequestInit(&w->kept, c->request);
    request changed = {.command = c->cmd, .key_hash = c->key_hash, .command_epoch = commandEpoch()};
    if (c->request) changed = *c->request;
    changed.argv = (slice *)(params->argv ? params->argv : c->argv); /* is only copied */
    changed.argc = params->argv ? params->argc : c->argc;
    changed.raw = SLICE("");
    changed.large = NULL;
    changed.large_count = 0;
    return keptRequestInit(&w->kept, &changed);
}

void blockStart(ctx *c, const blockParams *params) {
    hotCheck(threadIsMain());
    session *s = c->who;
    c->flags |= CTX_NOT_RUN;
    if (s->blocked) {
        s->blocked->again = true;
        if (unlikely(s->blocked->again_ms != params->again_ms)) {
            s->blocked->again_ms = params->again_ms;
            setTimer(s->blocked);
        }
        if (params->free_state) params->free_state(params->state);
        return;
    }
    if (params->kind != BLOCK_JOB) check(!blockIsDenied(c));
    if (params->deadline_ms) check(params->timed_out != NULL);
    initLists();
    size_t keys = (size_t)params->key_count;
    blockWait *w = memCalloc(1, sizeof(*w) + keys * sizeof(keyWait));
    *w = (blockWait){.who = s,
                     .kind = params->kind,
                     .type = params->type,
                     .any_type = params->any_type,
                     .not_by_user = params->not_by_user,
                     .when_gone = params->when_gone,
                     .is_run = params->is_run,
                     .holds_reply = params->holds_reply,
                     .silent = c->out != &s->out && !(c->flags & CTX_MAY_BLOCK),
                     .secrets = ctxSecrets(c),
                     .ready = params->ready,
                     .timer = {.due = timeIsUp},
                     .deadline_ms = params->deadline_ms,
                     .again_ms = params->again_ms,
                     .timed_out = params->timed_out,
                     .may_time_out = params->may_time_out,
                     .finish = params->finish,
                     .state = params->state,
                     .free_state = params->free_state,
                     .state_memory = params->memory,
                     .heir = params->heir,
                     .key_count = params->key_count};
    w->memory = memSizeOf(w) + keepRequest(w, c, params);
    listAppend(&blocked.waits[w->kind], &w->all);
    for (int i = 0; i < w->key_count; i++) queueFor(w, i, params->keys[i]);
    setTimer(w);
    outbufInit(&w->held);
    s->blocked = w;
    s->flags |= SESSION_BLOCKED;
    if (w->holds_reply) c->flags = (c->flags & ~(uint32_t)CTX_NOT_RUN) | CTX_HOLDS_REPLY;
}

void blockTakeReply(session *s, size_t start) {
    blockWait *w = s->blocked;
    check(w != NULL);
    check(w->holds_reply);
    size_t len;
    char *all = outbufCopy(&s->out, &len);
    hotCheck(len >= start);
    outbufCutTo(&s->out, (outmark){start});
    outbufAppend(&w->held, all + start, len - start);
    memFree(all);
    w->memory += outbufMemory(&w->held);
}

void *blockStateOf(const session *s) { return s->blocked ? s->blocked->state : NULL; }

void *blockState(const ctx *c) { return blockStateOf(c->who); }

void blockSetState(const ctx *c, void *state) {
    check(c->who->blocked);
    check(c->flags & CTX_WOKEN);
    c->who->blocked->state = state;
}

void blockAddWork(const ctx *c, uint64_t ticks) {
    hotCheck(c->who->blocked);
    hotCheck(c->who->blocked->ends);
    c->who->blocked->work += ticks;
}

static void freeWait(blockWait *w) {
    hotCheck(w->kind < BLOCK_KINDS);
    hotCheck(w->who->blocked == w);
    w->who->blocked = NULL;
    w->who->flags &= ~SESSION_BLOCKED;
    timerStop(&w->timer);
    removeWait(&blocked.waits[w->kind], &w->all);
    for (int i = 0; i < w->key_count; i++) leaveQueue(w, &w->keys[i]);
    if (w->free_state) w->free_state(w->state);
    outbufClear(&w->held);
    keptRequestClear(&w->kept);
    memFree(w);
}

/* The session has received its reply and continues. */
static void release(blockWait *w) {
    hotCheck(w->who->blocked == w);
    session *s = w->who;
    freeWait(w);
    if (s->flags & SESSION_INTERNAL) {
        if (s->carrier && s->carrier->resume) s->carrier->resume(s); /* may free the session */
        return;
    }
    if (!listHas(&s->released)) listAppend(&blocked.released, &s->released);
    if (s->out.first) sessionWantWrite(s);
}

session *blockNextReleased(void) {
    listNode *first = blocked.released.count ? listFirst(&blocked.released) : NULL;
    if (likely(!first)) return NULL;
    listRemove(&blocked.released, first);
    return LIST_OWNER(first, session, released);
}

/* The wait goes on for an internal session, which nobody reads the reply of. */
static void moveWait(blockWait *w, session *to) {
    check(to->flags & SESSION_INTERNAL);
    check(w->key_count == 0);
    w->who->blocked = NULL;
    w->who->flags &= ~SESSION_BLOCKED;
    w->who = to;
    w->silent = true;
    to->blocked = w;
    to->flags |= SESSION_BLOCKED;
}

void blockForget(session *s) {
    blockWait *w = s->blocked;
    session *heir = w && w->heir && !w->ends ? w->heir(w->state) : NULL;
    if (heir) moveWait(w, heir);
    if (s->blocked) freeWait(s->blocked);
    if (listHas(&s->released)) listRemove(&blocked.released, &s->released);
    hotCheck(!s->blocked);
}

size_t blockMemory(const session *s) {
    const blockWait *w = s->blocked;
    if (!w) return 0;
    return w->memory + (w->state_memory ? w->state_memory(w->state) : 0);
}

blockKind blockKindOf(const session *s) { return s->blocked ? s->blocked->kind : BLOCK_KINDS; }

request *blockRequest(const session *s) {
    check(s->blocked != NULL);
    return &s->blocked->kept;
}

const command *blockCommand(const session *s) {
    return s->blocked ? s->blocked->kept.command : NULL;
}

int blockSlot(const session *s) {
    const blockWait *w = s->blocked;
    for (int i = 0; w && i < w->key_count; i++) {
        if (w->keys[i].key) return storeHashSlot(storeHash(indexedKeyText(w->keys[i].key)));
    }
    return -1;
}

size_t blockArgumentBytes(const session *s) {
    size_t bytes = 0;
    for (int i = 0; s->blocked && i < s->blocked->kept.argc; i++)
        bytes += s->blocked->kept.argv[i].len;
    return bytes;
}

/* ------------------------------------------------------------------ replying */

/* Destination of a blocked session's reply: `silence` if replies are suppressed. */
static outbuf *outOf(const blockWait *w, outbuf *silence) {
    hotCheck(w->who->blocked == w);
    outbufInitNull(silence);
    bool is_silent = w->silent || w->who->flags & SESSION_REPLY_OFF;
    return is_silent ? silence : &w->who->out;
}

static void replyNothing(ctx *c) { (void)c; }

/* The end of a wait that holds the reply of a command, which was measured and counted when it
 * ran. */
static void endHeld(blockWait *w, ctx *c, commandProc *reply) {
    hotCheck(w->holds_reply);
    outbufMoveAll(c->out, &w->held);
    c->flags |= CTX_MEASURED;
    (void)executeLater(c, reply, &w->work);
}

static void replyGivenError(ctx *c) { replyError(c, c->who->blocked->error); }

/* Ends a wait without running the request, with an error if it has text, else with `reply`. */
static void end(blockWait *w, commandProc *reply, slice error) {
    hotCheck(w->who->blocked == w);
    session *s = w->who;
    outbuf silence;
    ctx c;
    w->ends = true;
    ctxInitLater(&c, s, &w->kept, outOf(w, &silence));
    ctxSetSecrets(&c, w->secrets);
    w->error = error;
    if (w->holds_reply) {
        endHeld(w, &c, error.len ? replyNothing : reply);
    } else {
        uint64_t ticks = executeLater(&c, error.len ? replyGivenError : reply, &w->work);
        bool rejected = error.len != 0;
        if (w->is_run && !rejected) {
            executeAccountRun(&c, ticks);
        } else {
            executeAccount(&c, rejected, !rejected && c.flags & CTX_FAILED, ticks);
        }
    }
    outbufClear(&silence);
    release(w);
}

bool blockEnd(session *s, slice error) {
    blockWait *w = s->blocked;
    if (!w || w->ends || (!error.len && !w->timed_out)) return false;
    end(w, w->timed_out, error);
    return true;
}

bool blockEndByUser(session *s, slice error) {
    return s->blocked && !s->blocked->not_by_user && blockEnd(s, error);
}

bool blockFinish(session *s) {
    blockWait *w = s->blocked;
    if (!w || w->ends || (!w->finish && w->kind != BLOCK_MODULE)) return false;
    w->over = true;
    blockNotify(w->kind);
    return true;
}

bool blockIsOver(const session *s) { return s->blocked && s->blocked->over; }

/* Runs the request of a wait again. */
static void runAgain(blockWait *w) {
    hotCheck(w->again || w->who->blocked == w);
    session *s = w->who;
    outbuf silence;
    ctx c;
    ctxInitLater(&c, s, &w->kept, outOf(w, &silence));
    w->again = false;
    w->ends = true;
    s->flags &= ~SESSION_BLOCKED;
    executeKept(&c, &w->kept, CTX_WOKEN);
    s->flags &= ~SESSION_REPARSE; /* what follows is parsed when the session continues */
    s->flags |= SESSION_BLOCKED;
    w->ends = false;
    outbufClear(&silence);
    if (!w->again) release(w);
}

static blockQuery queryOf(const blockWait *w) {
    return (blockQuery){
        .who = w->who, .argv = w->kept.argv, .argc = w->kept.argc, .state = w->state};
}

static bool isClosing(const blockWait *w) {
    return w->who->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON);
}

/* True if the current value of the key ends the wait. */
static bool isReady(const indexedKey *k, const blockWait *w) {
    hotCheck(k->held || !listIsEmpty(&k->waits));
    if (isClosing(w)) return false;
    slice key = indexedKeyText(k);
    const robj *o =
        dbFindUncounted(storeDb(k->db_id), key, storeHash(key), lookAt(engineHot.now_ms));
    if (!w->any_type && (!o || objectType(o) != w->type)) return w->when_gone;
    if (!w->ready) return true;
    blockQuery q = queryOf(w);
    q.key = key;
    q.value = o;
    return w->ready(&q);
}

static void continueWait(blockWait *w) {
    session *stream = w->who->flags & SESSION_REPLAY ? w->who : NULL;
    w->over = false;
    propagateUnitBegin(); /* what an internal session does with the reply is a part of it */
    if (w->finish) {
        end(w, w->finish, SLICE(""));
    } else {
        runAgain(w);
    }
    propagateUnitEnd();
    if (unlikely(stream)) streamWaited(stream);
}

/* Runs the command of a wait again: the time `again_ms` has come. */
static void runAtTime(blockWait *w) {
    enum { RETRY_MS = 50 };
    bool forbidden = engineHot.current || engineHot.loading || pauseNow() != PAUSE_NONE;
    w->again_ms = forbidden ? engineHot.now_ms + RETRY_MS : 0;
    setTimer(w);
    if (forbidden || isClosing(w)) return;
    engineHot.now_ms = clockWallMs();
    continueWait(w);
    blockWake(); /* runs requests that wait for keys it has changed */
}

static void timeIsUp(engineTimer *t) {
    hotCheck(CONTAINER_OF(t, blockWait, timer)->who->flags & SESSION_BLOCKED);
    blockWait *w = CONTAINER_OF(t, blockWait, timer);
    if (runsAgainFirst(w)) {
        runAtTime(w);
        return;
    }
    if (w->may_time_out && !w->may_time_out(w->state)) {
        timerSet(t, t->at_ms);
        return;
    }
    end(w, w->timed_out, SLICE(""));
}

bool blockFinishNow(session *s) {
    check(!engineHot.current);
    blockWait *w = s->blocked;
    if (!w || w->ends || isClosing(w) || (!w->finish && w->kind != BLOCK_MODULE)) return false;
    continueWait(w);
    blockWake(); /* runs requests that wait for keys it has changed */
    return true;
}

/* Processes the sessions waiting for a key, each once. A command that one session runs may end
 * other waits. */
static void serveKey(indexedKey *k) {
    k->held++;
    size_t left = k->waits.count;
    waitCursor at = cursorBegin(&k->waits);
    blocked.cursors = &at;
    for (listNode *n; left > 0 && (n = cursorNext(&at)); left--) {
        keyWait *wait = LIST_OWNER(n, keyWait, of_key);
        if (!wait->by->ends && isReady(k, wait->by)) continueWait(wait->by);
    }
    blocked.cursors = at.outer;
    k->held--;
    keyIndexDrop(k);
}

/* Checks the waits of kinds that were notified, each once. */
static void serveNotified(void) {
    hotCheck(blocked.any_notified);
    blocked.any_notified = false;
    for (int kind = 0; kind < BLOCK_KINDS; kind++) {
        if (!blocked.notified[kind]) continue;
        blocked.notified[kind] = false;
        waitCursor at = cursorBegin(&blocked.waits[kind]);
        blocked.cursors = &at;
        for (listNode *n; (n = cursorNext(&at));) {
            blockWait *w = LIST_OWNER(n, blockWait, all);
            blockQuery q = queryOf(w);
            if (isClosing(w) || w->ends) continue;
            if (w->over || (w->ready && w->ready(&q))) continueWait(w);
        }
        blocked.cursors = at.outer;
    }
}

void blockWake(void) {
    hotCheck(threadIsMain());
    if (!blocked.ready.count && !blocked.any_notified) return;
    /* The command may have taken longer than the TTL of a key it has set. */
    engineHot.now_ms = clockWallMs();
    while (blocked.ready.count || blocked.any_notified) {
        if (blocked.any_notified) serveNotified();
        listNode *first = blocked.ready.count ? listFirst(&blocked.ready) : NULL;
        if (!first) continue;
        listRemove(&blocked.ready, first);
        serveKey(LIST_OWNER(first, indexedKey, ready));
    }
}

/* ------------------------------------------------------------------ events */

/* The code that runs a command wakes blocked sessions after it; without a command, stage WAKE
 * does. */
static void requestWake(void) {
    if (engineHot.current) engineHot.current->flags |= CTX_WAKES;
}

void blockKeyChanged(indexedKey *k) {
    if (blocked.ignores_changes) return;
    if (!listHas(&k->ready)) listAppend(&blocked.ready, &k->ready);
    requestWake();
}

void blockNotifyKey(int db_id, slice key) {
    hotCheck(db_id >= 0);
    hotCheck(db_id < storeDbCount());
    if (!blocked.waited.count) return;
    indexedKey *k = keyIndexFind(db_id, key);
    if (k && !listIsEmpty(&k->waits)) blockKeyChanged(k);
}

bool blockIgnoreChanges(bool on) {
    bool before = blocked.ignores_changes;
    blocked.ignores_changes = on;
    return before;
}

void blockNotify(blockKind kind) {
    hotCheck(kind < BLOCK_KINDS);
    if (!blocked.waits[kind].count) return;
    blocked.notified[kind] = blocked.any_notified = true;
    requestWake();
}

/* True if the key has expired. An expired key that an exchange of databases has brought wakes no
 * session, and is removed when a command looks it up. */
static bool hasExpired(const indexedKey *k) {
    slice key = indexedKeyText(k);
    const robj *o = dbPeek(storeDb(k->db_id), key, storeHash(key));
    return o && objectIsExpired(o, engineHot.now_ms);
}

void blockDbEvent(const dbEvent *e) {
    hotCheck(threadIsMain());
    if ((e->kind != DB_SWAPPED && e->kind != DB_FLUSHED) || !blocked.waited.count) return;
    for (listNode *n = listFirst(&blocked.waited); n; n = listNext(&blocked.waited, n)) {
        indexedKey *k = LIST_OWNER(n, indexedKey, waited);
        bool swapped = k->db_id == e->other_id && e->kind == DB_SWAPPED;
        if (e->db_id >= 0 && k->db_id != e->db_id && !swapped) continue;
        if (e->kind == DB_SWAPPED && hasExpired(k)) continue;
        blockKeyChanged(k);
    }
}

/* ------------------------------------------------------------------ iteration */

static bool keyFits(const indexedKey *k, const blockFilter *f) {
    slice text = indexedKeyText(k);
    if (f->db_id >= 0 && (k->db_id != f->db_id || !sliceEqual(text, f->key))) return false;
    return f->slot < 0 || storeHashSlot(storeHash(text)) == f->slot;
}

static bool fits(const blockWait *w, const blockFilter *f) {
    if (f->db_id < 0 && f->slot < 0) return true;
    for (int i = 0; i < w->key_count; i++) {
        if (w->keys[i].key && keyFits(w->keys[i].key, f)) return true;
    }
    return false;
}

void blockEach(const blockFilter *filter, blockVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    initLists();
    for (int kind = 0; kind < BLOCK_KINDS; kind++) {
        if (filter->kind >= 0 && filter->kind != kind) continue;
        waitCursor at = cursorBegin(&blocked.waits[kind]);
        blocked.cursors = &at;
        for (listNode *n; (n = cursorNext(&at));) {
            blockWait *w = LIST_OWNER(n, blockWait, all);
            if (fits(w, filter)) visit(w->who, arg);
        }
        blocked.cursors = at.outer;
    }
}
