/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Held output (held_output.h). A session has at most two marks per hold. The first mark says up to
 * which byte the output may be sent when a position is confirmed; the second says the same for all
 * later output. So output waits for at most two round trips, however fast more of it is added, and
 * a mark costs no allocation.
 *
 * Invariants: a session is in the list of a hold if and only if it has a mark of that hold; in the
 * list the positions of first marks ascend. Bytes are numbered by session.bytes_out. */
#include "repl/held_output.h"

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "engine/watch.h"
#include "net/net.h"
#include "store/store.h"

typedef struct outputMark {
    uint64_t end;   /* output before this byte */
    int64_t offset; /* a position: leaves when this one is confirmed */
    int64_t since_ms;
    bool delivered; /* some of it is no reply: it leaves before replies */
} outputMark;

typedef struct heldOutput {
    outputHold *hold;
    session *who;
    uint64_t period; /* when hold->period was that */
    /* Since the last evaluation: how many commands were noted, and the greatest offset on which
     * their replies depend; whether requests were refused for lack of replicas, whose replies
     * depend on nothing; whether other output depends on the end of the stream. */
    uint64_t noted;
    int64_t need;
    bool refused, all;
    int mark_count;
    uint64_t commands; /* session.commands at the last evaluation */
    uint64_t released; /* if there are marks: the end of what precedes them */
    uint64_t end;      /* of the output that was evaluated */
    outputMark marks[2];
    size_t bytes; /* counted in statistics.bytes */
    listNode node;
} heldOutput;

/* Those that are on: stage WRITE asks each of them. */
static struct {
    outputHold *list[OUTPUT_HOLDS_MAX];
    int count;
} active;

/* ------------------------------------------------------------------ sessions */

static void countBytes(heldOutput *h, size_t bytes) {
    hotCheck(h->hold->statistics.bytes >= h->bytes);
    h->hold->statistics.bytes += bytes - h->bytes;
    h->bytes = bytes;
}

static void removeMarks(heldOutput *h) {
    if (!h->mark_count) return;
    h->mark_count = 0;
    listRemove(&h->hold->held, &h->node);
    h->hold->statistics.clients--;
    countBytes(h, 0);
}

void heldOutputFree(session *s, void *state) {
    (void)s; /* the session ends */
    removeMarks(state);
    memFree(state);
}

size_t heldOutputMemory(const void *state) {
    (void)state; /* all have the same size */
    return sizeof(heldOutput);
}

/* A session that has no state yet, or that of another period. */
static NO_INLINE heldOutput *beginHeld(outputHold *o, session *s, heldOutput *h) {
    if (!h) {
        h = memNew(heldOutput);
        sessionSlotSet(s, o->index, h);
    }
    /* Commands that have run already were not noted; that matters while their replies are here. */
    bool is_empty = !sessionOutputPending(s);
    if (is_empty) s->flags &= ~SESSION_REFUSED;
    *h = (heldOutput){.hold = o,
                      .who = s,
                      .period = o->period,
                      .end = s->bytes_out,
                      .commands = is_empty ? s->commands : 0};
    return h;
}

static inline heldOutput *heldOf(outputHold *o, session *s) {
    heldOutput *h = sessionSlotGet(s, o->index);
    return likely(h != NULL) && likely(h->period == o->period) ? h : beginHeld(o, s, h);
}

bool heldOutputIsHeld(const outputHold *o, const session *s) {
    const heldOutput *h = sessionSlotGet(s, o->index);
    return h && h->mark_count;
}

/* ------------------------------------------------------------------ what output depends on */

/* Commands that read one key, which is their first argument, and nothing else. */
static inline bool readsOneKey(const command *cmd) {
    return cmd->first_key == 1 && cmd->last_key == 1 && cmd->flags & CMD_READONLY &&
           !(cmd->flags & (CMD_MOVABLEKEYS | CMD_BLOCKING | CMD_MODULE));
}

/* True if the reply contains no information about the data. The reply of EXEC contains what the
 * replies of its commands contain, and whether watched keys have changed or its conditions hold.
 * The orders of Sentinel are transactions whose replies contain nothing about the data. */
bool heldOutputTellsNothing(const ctx *c) {
    if (likely(!(c->cmd->flags & CMD_RUNS_QUEUE))) return c->cmd->flags & CMD_TELLS_NOTHING;
    if (c->who->flags & SESSION_WATCH_DIRTY || watchCount(c->who) || c->argc > 1) return false;
    return !transactionLacks(c->who, CMD_TELLS_NOTHING);
}

static inline int64_t lastChange(outputHold *o, uint64_t key_hash) {
    int64_t offset = slotOffsetsOf(&o->slots, storeHashSlot(key_hash), *o->written, *o->confirmed);
    return offset > o->all ? offset : o->all;
}

int64_t heldOutputNeed(outputHold *o, const ctx *c) {
    if (readsOneKey(c->cmd)) return lastChange(o, c->key_hash);
    return heldOutputTellsNothing(c) ? 0 : *o->written;
}

/* Its reply, a number of receivers, tells nothing of keys; what receivers get waits. Sentinels send
 * it to a primary that has no replicas yet, and must get the replies that follow. */
static bool isPublish(slice name) { return sliceEqualFold(name, SLICE("publish")); }

bool heldOutputSelects(const commandSpec *spec) {
    if (isPublish(sliceOf(spec->name))) return true;
    if (spec->flags & CMD_RUNS_QUEUE) return true;
    if (spec->flags & (CMD_MODULE | CMD_BLOCKING | CMD_MOVABLEKEYS)) return false;
    return spec->flags & (CMD_READONLY | CMD_TELLS_NOTHING);
}

gateVerdict heldOutputNote(outputHold *o, ctx *c) {
    bool reads_one = readsOneKey(c->cmd);
    bool tells = !reads_one && !heldOutputTellsNothing(c);
    if (tells && !(c->cmd->flags & CMD_MAY_REPLICATE && isPublish(c->cmd->name))) return GATE_PASS;
    heldOutput *h = heldOf(o, c->who);
    h->noted++;
    /* This function is not called for the commands that EXEC runs, so they are counted here. */
    if (c->cmd->flags & CMD_RUNS_QUEUE && !(c->who->flags & SESSION_MULTI_POISONED))
        h->noted += (uint64_t)transactionCount(c->who);
    if (!reads_one) return GATE_PASS;
    int64_t offset = lastChange(o, c->key_hash);
    if (offset > h->need) h->need = offset;
    return GATE_PASS;
}

void heldOutputNoteRefusal(outputHold *o, session *s) { heldOf(o, s)->refused = true; }

#define NEVER_HELD (SESSION_INTERNAL | SESSION_REPLICA | SESSION_REPLAY | SESSION_SLOT_EXPORT)

static void noteDelivery(session *s) {
    if (s->flags & NEVER_HELD) return;
    for (int i = 0; i < active.count; i++) heldOf(active.list[i], s)->all = true;
}

/* True if what is propagated has only changed the key of the running command: it is the command
 * itself, or another one whose first argument is that key. */
static inline bool changesKeyOf(const ctx *c, const propagated *p) {
    if (c->cmd->first_key != 1 || c->cmd->last_key != 1 || p->argc < 2) return false;
    if (c->cmd->flags & (CMD_MOVABLEKEYS | CMD_MODULE)) return false;
    if (likely(p->argv == c->argv)) return true;
    slice key = p->argv[1];
    if (c->argc > 1 && key.ptr == c->argv[1].ptr && key.len == c->argv[1].len) return true;
    return storeHash(key) == c->key_hash;
}

static void noteAll(outputHold *o, int64_t end) {
    o->all = end;
    slotOffsetsDrop(&o->slots);
}

void heldOutputNoteAll(outputHold *o) { noteAll(o, *o->written); }

static inline void noteKey(outputHold *o, uint64_t key_hash, int64_t end) {
    slotOffsetsNote(&o->slots, storeHashSlot(key_hash), end, *o->confirmed);
}

/* A key has expired or was evicted, without a command. */
static bool removesOneKey(const propagated *p) {
    if (p->argc != 2) return false;
    return sliceEqualFold(p->argv[0], SLICE("unlink")) || sliceEqualFold(p->argv[0], SLICE("del"));
}

static NO_INLINE bool noteUnusual(outputHold *o, const ctx *c, const propagated *p, int64_t end) {
    if (c && c->cmd->flags & CMD_MAY_REPLICATE && isPublish(c->cmd->name)) return false;
    if (c && changesKeyOf(c, p)) {
        noteKey(o, c->key_hash, end);
    } else if (!c && removesOneKey(p)) {
        noteKey(o, storeHash(p->argv[1]), end);
    } else {
        noteAll(o, end);
    }
    /* A read has removed an expired key: its reply tells of that. */
    if (c && !(c->cmd->flags & CMD_WRITE) && !(c->who->flags & SESSION_INTERNAL))
        heldOf(o, c->who)->all = true;
    return true;
}

bool heldOutputWrote(outputHold *o, const propagated *p, int64_t end) {
    const ctx *c = engineHot.current;
    if (unlikely(!c) || unlikely(!(c->cmd->flags & CMD_WRITE)) || unlikely(!changesKeyOf(c, p)))
        return noteUnusual(o, c, p, end);
    noteKey(o, c->key_hash, end);
    return true;
}

/* ------------------------------------------------------------------ waiting */

static int64_t lastOffset(const outputHold *o) {
    if (listIsEmpty(&o->held)) return 0;
    return LIST_OWNER(o->held.head.prev, heldOutput, node)->marks[0].offset;
}

/* Adds a session with one mark to the list. */
static void enlist(heldOutput *h) {
    hotCheck(h->mark_count == 1);
    int64_t last = lastOffset(h->hold);
    if (h->marks[0].offset < last) h->marks[0].offset = last;
    listAppend(&h->hold->held, &h->node);
}

/* Output up to `end` was added, which depends on `offset`. */
static void addOutput(heldOutput *h, uint64_t end, int64_t offset, bool delivered) {
    hotCheck(end > h->end);
    /* More was sent if the mode was off meanwhile. */
    uint64_t before = h->end > h->who->bytes_out ? h->end : h->who->bytes_out;
    h->end = end;
    if (!h->mark_count) {
        if (offset <= *h->hold->confirmed) return;
        h->released = before;
        h->marks[0] = (outputMark){end, offset, clockMonoMs(), delivered};
        h->mark_count = 1;
        h->hold->statistics.clients++;
        enlist(h);
    } else if (h->mark_count == 1 && offset <= h->marks[0].offset) {
        h->marks[0].end = end;
        h->marks[0].delivered |= delivered;
    } else if (h->mark_count == 1) {
        h->marks[1] = (outputMark){end, offset, clockMonoMs(), delivered};
        h->mark_count = 2;
    } else {
        h->marks[1].end = end;
        h->marks[1].delivered |= delivered;
        if (offset > h->marks[1].offset) h->marks[1].offset = offset;
    }
}

static size_t mayLeave(outputHold *o, session *s, bool refused) {
    heldOutput *h = heldOf(o, s);
    size_t pending = sessionOutputPending(s);
    uint64_t end = s->bytes_out + pending;
    if (end > h->end) {
        /* Only if all that has run was noted. If nothing has, the output is of another origin. */
        bool known =
            (h->noted || h->refused || refused) && h->noted == s->commands - h->commands && !h->all;
        addOutput(h, end, known ? h->need : *o->written, h->all);
        h->refused = h->all = false;
        h->noted = 0;
        h->need = 0;
        h->commands = s->commands;
    }
    if (!h->mark_count) return SIZE_MAX;
    hotCheck(h->released >= s->bytes_out);
    size_t may = (size_t)(h->released - s->bytes_out);
    countBytes(h, pending - may);
    return may;
}

/* Implements netSetHold(). */
static size_t mayLeaveAll(session *s) {
    if (s->flags & NEVER_HELD) return SIZE_MAX;
    bool refused = s->flags & (SESSION_REFUSED | SESSION_IN_MULTI); /* or QUEUED */
    size_t most = SIZE_MAX;
    for (int i = 0; i < active.count; i++)
        most = sizeMin(most, mayLeave(active.list[i], s, refused));
    s->flags &= ~SESSION_REFUSED;
    return most;
}

static void releaseMark(heldOutput *h, int64_t now_ms) {
    hotCheck(h->mark_count > 0);
    listRemove(&h->hold->held, &h->node);
    latencyNote(h->hold->latency_event, now_ms - h->marks[0].since_ms);
    h->released = h->marks[0].end;
    bool delivered = h->marks[0].delivered;
    h->mark_count--;
    if (h->mark_count) {
        h->marks[0] = h->marks[1];
        enlist(h);
    } else {
        h->hold->statistics.clients--;
        countBytes(h, 0);
    }
    sessionWantWrite(h->who);
    if (delivered) sessionWantPush(h->who);
}

static heldOutput *firstHeld(const outputHold *o) {
    return listIsEmpty(&o->held) ? NULL : LIST_OWNER(listFirst(&o->held), heldOutput, node);
}

void heldOutputRelease(outputHold *o) {
    int64_t now_ms = clockMonoMs(), confirmed = *o->confirmed;
    heldOutput *h;
    while ((h = firstHeld(o)) && h->marks[0].offset <= confirmed) releaseMark(h, now_ms);
}

/* The connection ends with the error: which replies it replaces the client cannot know. */
static void expire(heldOutput *h) {
    session *s = h->who;
    const slice error = SLICE("NOQUORUM Not confirmed by enough replicas in time. Requests without "
                              "a reply may have been executed, and may take effect later.");
    sessionReplaceOutput(s, (size_t)(h->released - s->bytes_out), error);
    removeMarks(h);
    h->end = s->bytes_out + sessionOutputPending(s);
    h->hold->statistics.expired++;
    sessionCloseSoon(s);
}

void heldOutputExpire(outputHold *o, int64_t now_ms, int64_t timeout_ms) {
    heldOutput *h;
    uint64_t before = o->statistics.expired;
    while ((h = firstHeld(o)) && now_ms - h->marks[0].since_ms >= timeout_ms) {
        if (h->who->flags & SESSION_LENT) break; /* the next time */
        if (sessionIsExecuting(h->who)) break;
        expire(h);
    }
    uint64_t count = o->statistics.expired - before;
    if (count)
        logWarning(
            "Disconnecting %llu clients whose requests were not confirmed by enough replicas "
            "in time.",
            (unsigned long long)count);
}

/* ------------------------------------------------------------------ the mode */

/* The running command and those around it, which are not counted yet, and the rest of a transaction
 * that tells nothing. */
static void noteOrder(outputHold *o, const ctx *current) {
    heldOutput *h = heldOf(o, current->who);
    bool tells = transactionLacks(current->who, CMD_TELLS_NOTHING);
    h->noted = tells ? 0 : (uint64_t)transactionRest(current);
    for (const ctx *c = current; c && c->who == h->who; c = c->below) h->noted++;
    h->commands = h->who->commands;
    h->all = false;
}

static bool isActive(const outputHold *o) {
    for (int i = 0; i < active.count; i++) {
        if (active.list[i] == o) return true;
    }
    return false;
}

void heldOutputInit(outputHold *o, const sessionSlot *slot) {
    hotCheck(slot->free == heldOutputFree);
    hotCheck(o->written && o->confirmed);
    o->index = sessionSlotRegister(slot);
    listInit(&o->held);
}

void heldOutputBegin(outputHold *o) {
    hotCheck(threadIsMain());
    check(active.count < OUTPUT_HOLDS_MAX);
    hotCheck(!isActive(o));
    o->period++;
    if (!o->slots.table) slotOffsetsInit(&o->slots);
    heldOutputNoteAll(o);
    /* The order that has switched the mode on tells nothing of the keyspace. */
    if (engineHot.current && !(engineHot.current->who->flags & NEVER_HELD))
        noteOrder(o, engineHot.current);
    active.list[active.count++] = o;
    netSetHold(mayLeaveAll);
    deliverSetObserver(noteDelivery);
}

static void end(outputHold *o) {
    int i = 0;
    while (active.list[i] != o) i++;
    active.list[i] = active.list[--active.count];
    if (active.count) return;
    netSetHold(NULL);
    deliverSetObserver(NULL);
}

void heldOutputEnd(outputHold *o) {
    hotCheck(threadIsMain());
    heldOutput *h;
    if (!isActive(o)) return;
    while ((h = firstHeld(o))) {
        removeMarks(h);
        sessionWantWrite(h->who);
    }
    end(o);
}

void heldOutputAbandon(outputHold *o) {
    hotCheck(threadIsMain());
    heldOutput *h;
    size_t count = o->statistics.clients;
    if (!isActive(o)) return;
    while ((h = firstHeld(o))) {
        removeMarks(h);
        sessionCloseNow(h->who);
    }
    end(o);
    if (count)
        logWarning("Disconnecting %zu clients whose requests were not confirmed before this server "
                   "became a replica.",
                   count);
}
