/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unsolicited output (deliver.h).
 *
 * Invariant: a session is in the list of sessions with waiting output if and only if its slot has
 * some; while it has, all output delivered to it is appended there, so the order is kept. For a
 * session that neither executes a command nor is lent, delivery costs one flag test and a walk over
 * the commands being executed, usually one. */
#include "engine/deliver.h"

#include "base/base.h"
#include "engine/block.h"
#include "engine/ctx.h"
#include "engine/deliver_priv.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/session_slot.h"
#include "resp/resp.h"

/* Contents of a session's slot while output waits. */
typedef struct waitingOutput {
    session *to;
    outbuf bytes;
    listNode all;
} waitingOutput;

static list waiting;

static void dropWaiting(session *s, void *state) {
    (void)s; /* the session ends */
    waitingOutput *w = state;
    outbufClear(&w->bytes);
    listRemove(&waiting, &w->all);
    memFree(w);
}

static size_t waitingMemory(const void *state) {
    return sizeof(waitingOutput) + outbufMemory(&((const waitingOutput *)state)->bytes);
}

static const sessionSlot waiting_slot = {"waiting output", dropWaiting, waitingMemory};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) {
        index = sessionSlotRegister(&waiting_slot);
        listInit(&waiting);
    }
    return index;
}

static waitingOutput *waitingOf(const session *s) {
    hotCheck(waiting.count == 0 || waiting.head.next);
    if (likely(!waiting.count)) return NULL;
    return sessionSlotGet(s, slotIndex());
}

/* The outermost command of the session that is being executed; NULL if none. */
static ctx *executing(const session *s) {
    hotCheck(!engineHot.current || engineHot.current->who);
    ctx *found = NULL;
    for (ctx *c = engineHot.current; c; c = c->below) {
        if (c->who == s) found = c;
    }
    return found;
}

bool sessionIsExecuting(const session *s) { return executing(s) != NULL; }

/* Shared blocks are not counted as memory of an output, so a slow reader is judged by its pending
 * bytes, too. */
static size_t heldBy(const outbuf *o) { return sizeMax(outbufMemory(o), outbufPending(o)); }

size_t sessionOutputMemory(const session *s) {
    const waitingOutput *w = waitingOf(s);
    return heldBy(&s->out) + (w ? heldBy(&w->bytes) : 0);
}

size_t sessionOutputPending(const session *s) {
    const waitingOutput *w = waitingOf(s);
    return outbufPending(&s->out) + (w ? outbufPending(&w->bytes) : 0);
}

static waitingOutput *addWaiting(session *s) {
    int slot = slotIndex(); /* initializes the list */
    waitingOutput *w = memNew(waitingOutput);
    w->to = s;
    outbufInit(&w->bytes);
    listAppend(&waiting, &w->all);
    sessionSlotSet(s, slot, w);
    return w;
}

/* The destination of the bytes; NULL if they are to be discarded. */
static inline outbuf *outputOf(session *s, deliverKind kind) {
    const uint64_t closing = SESSION_CLOSE_SOON | SESSION_CLOSE_NOW | SESSION_INTERNAL;
    const uint64_t silent = SESSION_REPLY_OFF | SESSION_REPLY_SKIP;
    if (s->flags & closing || (kind == DELIVER_LINE && s->flags & silent)) return NULL;
    waitingOutput *w = waitingOf(s);
    if (w) return &w->bytes;
    ctx *running = executing(s);
    if (likely(!running) && likely(!(s->flags & SESSION_LENT))) return &s->out;
    if (running) running->flags |= CTX_DELIVERS;
    return &addWaiting(s)->bytes;
}

void deliverAfterWait(session *s) {
    hotCheck(s->blocked);
    if (!waitingOf(s)) (void)addWaiting(s); /* outputOf() finds it */
}

/* True if what waits for the session has to wait longer. */
static bool replyComesFirst(const session *s) { return sessionIsExecuting(s) || blockIsOver(s); }

/* ---- receivers that are noted ---- */

/* Contents of a session's slot while it is noted. */
typedef struct receiver {
    session *who;
    listNode all;
} receiver;

static struct {
    list all;
    bool notes; /* sessions that receive output are added */
    deliverObserverProc *observer;
    bool watched; /* one of both is wanted */
} receivers;

static void dropReceiver(session *s, void *state) {
    (void)s; /* `state` has it */
    receiver *r = state;
    listRemove(&receivers.all, &r->all);
    memFree(r);
}

static int receiverIndex(void) {
    static const sessionSlot slot = {"receiver", dropReceiver, NULL};
    static int index = -1;
    if (index < 0) {
        index = sessionSlotRegister(&slot);
        listInit(&receivers.all);
    }
    return index;
}

static void noteReceiver(session *s) {
    int slot = receiverIndex();
    if (sessionSlotGet(s, slot)) return;
    receiver *r = memNew(receiver);
    r->who = s;
    listAppend(&receivers.all, &r->all);
    sessionSlotSet(s, slot, r);
}

static NO_INLINE void watchReceiver(session *s) {
    if (receivers.notes) noteReceiver(s);
    if (receivers.observer) receivers.observer(s);
}

void deliverNoteReceivers(bool on) {
    receivers.notes = on;
    receivers.watched = on || receivers.observer;
}

void deliverSetObserver(deliverObserverProc *proc) {
    receivers.observer = proc;
    receivers.watched = proc || receivers.notes;
}

size_t deliverOnItsWay(void) {
    hotCheck(receivers.all.count == 0 || receivers.all.head.next);
    const uint64_t moving = SESSION_LENT | SESSION_PENDING;
    size_t bytes = 0;
    if (!receivers.all.count) return 0;
    for (listNode *n = listFirst(&receivers.all); n;) {
        session *s = LIST_OWNER(n, receiver, all)->who;
        n = listNext(&receivers.all, n);
        if (sessionOutputPending(s) && (s->flags & moving || waitingOf(s))) {
            bytes += sessionOutputMemory(s);
        } else {
            dropReceiver(s, sessionSlotGet(s, receiverIndex()));
            sessionSlotSet(s, receiverIndex(), NULL);
        }
    }
    return bytes;
}

static inline void delivered(session *s, deliverKind kind, const outbuf *to) {
    if (unlikely(receivers.watched)) watchReceiver(s);
    if (to != &s->out) {
        /* It follows the command, or the return of the session. */
    } else if (kind == DELIVER_MANY) {
        sessionWantLater(s);
    } else {
        sessionWantPush(s);
    }
    if (unlikely(heldBy(to) > OUTBLOCK_SIZE) && s->carrier && s->carrier->output_grew)
        s->carrier->output_grew(s);
}

void sessionCheckOutput(session *s) {
    if (heldBy(&s->out) > OUTBLOCK_SIZE && s->carrier && s->carrier->output_grew)
        s->carrier->output_grew(s);
}

char *sessionTakeReply(session *s, size_t *len) {
    hotCheck(s->flags & SESSION_INTERNAL);
    char *bytes = outbufCopy(&s->out, len);
    outbufClear(&s->out);
    return bytes;
}

void sessionReplaceOutput(session *s, size_t keep, slice error) {
    hotCheck(!(s->flags & SESSION_LENT));
    hotCheck(!sessionIsExecuting(s));
    outbufCutTo(&s->out, (outmark){keep});
    respError(&s->out, error);
    sessionWantWrite(s);
    hooksSessionEvent(s, SESSION_OUTPUT_REPLACED);
}

uint64_t sessionOutputEnd(const session *s) { return s->bytes_out + outbufPending(&s->out); }

void sessionCutOutput(session *s, uint64_t position, str *out) {
    uint64_t end = sessionOutputEnd(s);
    size_t len;
    check(position >= s->bytes_out);
    check(position <= end);
    check(!(s->flags & SESSION_LENT));
    if (position == end) return;
    char *all = outbufCopy(&s->out, &len);
    size_t kept = (size_t)(position - s->bytes_out);
    strAppend(out, all + kept, len - kept);
    outbufCutTo(&s->out, (outmark){kept});
    memFree(all);
}

void sessionAddReply(session *s, slice bytes) {
    hotCheck(!(s->flags & SESSION_LENT));
    hotCheck(!sessionIsExecuting(s));
    if (s->flags & SESSION_CLOSE_NOW) return;
    outbufAppend(&s->out, bytes.ptr, bytes.len);
    sessionWantWrite(s);
    sessionCheckOutput(s);
}

void sessionDeliver(session *s, deliverKind kind, slice bytes) {
    hotCheck(threadIsMain());
    outbuf *to = outputOf(s, kind);
    if (!to) return;
    outbufAppend(to, bytes.ptr, bytes.len);
    delivered(s, kind, to);
}

void sessionDeliverShared(session *s, deliverKind kind, blob *bytes, size_t offset, size_t len) {
    hotCheck(threadIsMain());
    outbuf *to = outputOf(s, kind);
    if (!to) return;
    outbufAppendShared(to, bytes, offset, len);
    delivered(s, kind, to);
}

void deliverWaiting(session *s) {
    hotCheck(threadIsMain());
    waitingOutput *w = waitingOf(s);
    if (!w || s->flags & SESSION_LENT) return;
    outbufMoveAll(&s->out, &w->bytes);
    dropWaiting(s, w);
    sessionSlotSet(s, slotIndex(), NULL);
    sessionWantWrite(s);
    sessionWantPush(s); /* a part of it is no reply */
}

void sessionDeliverBeforeReply(const ctx *c) {
    if (c->out == &c->who->out && !(c->flags & CTX_IN_MULTI)) deliverWaiting(c->who);
}

void deliverAll(void) {
    hotCheck(threadIsMain());
    if (likely(!waiting.count)) return;
    for (listNode *n = listFirst(&waiting); n;) {
        session *s = LIST_OWNER(n, waitingOutput, all)->to;
        n = listNext(&waiting, n);
        if (!replyComesFirst(s)) deliverWaiting(s);
    }
}

bool deliverHasWaiting(void) { return waiting.count > 0; }

void sessionLend(session *s) { s->flags |= SESSION_LENT; }

void sessionReturn(session *s) {
    hotCheck(s->flags & SESSION_LENT);
    s->flags &= ~SESSION_LENT;
    if (!replyComesFirst(s)) deliverWaiting(s);
    hotCheck(!(s->flags & SESSION_LENT));
}
