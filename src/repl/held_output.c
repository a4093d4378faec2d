/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Held output (held_output.h). A session has at most two marks: the first says up to which byte its
 * output may leave once an offset is confirmed, the second the same for all output after that. So
 * output waits for two round trips at most, however fast more of it is added, and a mark costs no
 * allocation.
 *
 * Invariants: a session is in the list if and only if it has a mark; in the list the offsets of
 * first marks ascend. Bytes are numbered by session.bytes_out. */
#include "repl/held_output.h"

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "engine/watch.h"
#include "net/net.h"
#include "repl/replicas.h"
#include "repl/server_state.h"
#include "repl/slot_offsets.h"
#include "store/store.h"

typedef struct outputMark {
    uint64_t end;   /* output before this byte */
    int64_t offset; /* leaves when this one is confirmed */
    int64_t since_ms;
    bool delivered; /* some of it is no reply: it leaves before replies */
} outputMark;

typedef struct heldOutput {
    session *who;
    uint64_t period; /* when output.period was that */
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

static struct {
    replQuorum *quorum; /* NULL: the mode is off */
    uint64_t period;    /* how many times it was switched on */
    list held;
    int64_t all; /* the last change of unknown keys ends here */
    slotOffsets slots;
    heldOutputStats statistics;
} output;

heldOutputStats *heldOutputStatistics(void) { return &output.statistics; }

/* ------------------------------------------------------------------ sessions */

static void countBytes(heldOutput *h, size_t bytes) {
    hotCheck(output.statistics.bytes >= h->bytes);
    output.statistics.bytes += bytes - h->bytes;
    h->bytes = bytes;
}

static void removeMarks(heldOutput *h) {
    if (!h->mark_count) return;
    h->mark_count = 0;
    listRemove(&output.held, &h->node);
    output.statistics.clients--;
    countBytes(h, 0);
}

static void freeHeld(session *s, void *state) {
    (void)s; /* the session ends */
    removeMarks(state);
    memFree(state);
}

static size_t heldMemory(const void *state) {
    (void)state; /* all have the same size */
    return sizeof(heldOutput);
}

static int heldSlot(void) {
    static const sessionSlot slot = {"held output", freeHeld, heldMemory};
    static int index = -1;
    if (unlikely(index < 0)) {
        index = sessionSlotRegister(&slot);
        listInit(&output.held);
    }
    return index;
}

/* A session that has no state yet, or that of another period. */
static NO_INLINE heldOutput *beginHeld(session *s, heldOutput *h) {
    if (!h) {
        h = memNew(heldOutput);
        sessionSlotSet(s, heldSlot(), h);
    }
    /* Commands that have run already were not noted; that matters while their replies are here. */
    bool is_empty = !sessionOutputPending(s);
    if (is_empty) s->flags &= ~SESSION_REFUSED;
    *h = (heldOutput){.who = s,
                      .period = output.period,
                      .end = s->bytes_out,
                      .commands = is_empty ? s->commands : 0};
    return h;
}

static inline heldOutput *heldOf(session *s) {
    heldOutput *h = sessionSlotGet(s, heldSlot());
    return likely(h != NULL) && likely(h->period == output.period) ? h : beginHeld(s, h);
}

bool heldOutputIsHeld(const session *s) {
    const heldOutput *h = sessionSlotGet(s, heldSlot());
    return h && h->mark_count;
}

/* ------------------------------------------------------------------ what output depends on */

/* Commands that read one key, which is their first argument, and nothing else. */
static inline bool readsOneKey(const command *cmd) {
    return cmd->first_key == 1 && cmd->last_key == 1 && cmd->flags & CMD_READONLY &&
           !(cmd->flags & (CMD_MOVABLEKEYS | CMD_BLOCKING | CMD_MODULE));
}

static inline bool tellsNothing(const command *cmd) { return cmd->flags & CMD_TELLS_NOTHING; }

/* EXEC tells what its commands tell, and whether watched keys have changed. The orders of Sentinel
 * are transactions that tell nothing. */
bool heldOutputTellsNothing(const ctx *c) {
    if (likely(!(c->cmd->flags & CMD_RUNS_QUEUE))) return tellsNothing(c->cmd);
    if (c->who->flags & SESSION_WATCH_DIRTY || watchCount(c->who)) return false;
    return !transactionLacks(c->who, CMD_TELLS_NOTHING);
}

static inline int64_t lastChange(uint64_t key_hash) {
    const replQuorum *q = output.quorum;
    int64_t offset =
        slotOffsetsOf(&output.slots, storeHashSlot(key_hash), q->written, q->confirmed);
    return offset > output.all ? offset : output.all;
}

int64_t heldOutputNeed(const ctx *c) {
    if (readsOneKey(c->cmd)) return lastChange(c->key_hash);
    return heldOutputTellsNothing(c) ? 0 : output.quorum->written;
}

/* Its reply, a number of receivers, tells nothing of keys; what receivers get waits. Sentinels send
 * it to a primary that has no replicas yet, and must get the replies that follow. */
static bool isPublish(slice name) { return sliceEqualFold(name, SLICE("publish")); }

/* A command that is not selected tells of the dataset: its reply waits. */
static bool selectsNoted(const commandSpec *spec) {
    if (isPublish(sliceOf(spec->name))) return true;
    if (spec->flags & (CMD_MODULE | CMD_BLOCKING | CMD_MOVABLEKEYS)) return false;
    return spec->flags & (CMD_READONLY | CMD_TELLS_NOTHING | CMD_RUNS_QUEUE);
}

static gateVerdict note(ctx *c) {
    bool reads_one = readsOneKey(c->cmd);
    bool tells = !reads_one && !heldOutputTellsNothing(c);
    if (tells && !(c->cmd->flags & CMD_MAY_REPLICATE && isPublish(c->cmd->name))) return GATE_PASS;
    heldOutput *h = heldOf(c->who);
    h->noted++;
    /* What EXEC runs is counted, but not asked for here. */
    if (c->cmd->flags & CMD_RUNS_QUEUE && !(c->who->flags & SESSION_MULTI_POISONED))
        h->noted += (uint64_t)transactionCount(c->who);
    if (!reads_one) return GATE_PASS;
    int64_t offset = lastChange(c->key_hash);
    if (offset > h->need) h->need = offset;
    return GATE_PASS;
}

void heldOutputNoteRefusal(session *s) { heldOf(s)->refused = true; }

const gate heldOutputGate = {
    .name = "held output", .selects = selectsNoted, .admit = note, .origins = GATE_FOR_CLIENTS};

#define NEVER_HELD (SESSION_INTERNAL | SESSION_REPLICA | SESSION_REPLAY | SESSION_SLOT_EXPORT)

static void noteDelivery(session *s) {
    if (!(s->flags & NEVER_HELD)) heldOf(s)->all = true;
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

static void noteAll(int64_t end) {
    output.all = end;
    slotOffsetsDrop(&output.slots);
}

void heldOutputNoteAll(void) { noteAll(output.quorum->written); }

static inline void noteKey(const ctx *c, int64_t end) {
    slotOffsetsNote(&output.slots, storeHashSlot(c->key_hash), end, output.quorum->confirmed);
}

static NO_INLINE void noteUnusual(const ctx *c, const propagated *p, int64_t offset) {
    if (c && c->cmd->flags & CMD_MAY_REPLICATE && isPublish(c->cmd->name)) return;
    quorumWrote(output.quorum, offset);
    if (c && changesKeyOf(c, p)) {
        noteKey(c, offset);
    } else {
        noteAll(offset);
    }
    /* A read has removed an expired key: its reply tells of that. */
    if (c && !(c->cmd->flags & CMD_WRITE) && !(c->who->flags & SESSION_INTERNAL))
        heldOf(c->who)->all = true;
}

static void take(const propagated *p) {
    int64_t offset = replicasTake(p);
    const ctx *c = engineHot.current;
    if (unlikely(!c) || unlikely(!(c->cmd->flags & CMD_WRITE)) || unlikely(!changesKeyOf(c, p))) {
        noteUnusual(c, p, offset);
        return;
    }
    quorumWrote(output.quorum, offset);
    noteKey(c, offset);
}

const sink heldOutputSink = {.name = "held output", .take = take, .targets = PROPAGATE_REPLICAS};

/* ------------------------------------------------------------------ waiting */

static int64_t lastOffset(void) {
    if (listIsEmpty(&output.held)) return 0;
    return LIST_OWNER(output.held.head.prev, heldOutput, node)->marks[0].offset;
}

/* Adds a session with one mark to the list. */
static void enlist(heldOutput *h) {
    hotCheck(h->mark_count == 1);
    int64_t last = lastOffset();
    if (h->marks[0].offset < last) h->marks[0].offset = last;
    listAppend(&output.held, &h->node);
}

/* Output up to `end` was added, which depends on `offset`. */
static void addOutput(heldOutput *h, uint64_t end, int64_t offset, bool delivered) {
    hotCheck(end > h->end);
    /* More was sent if the mode was off meanwhile. */
    uint64_t before = h->end > h->who->bytes_out ? h->end : h->who->bytes_out;
    h->end = end;
    if (!h->mark_count) {
        if (offset <= output.quorum->confirmed) return;
        h->released = before;
        h->marks[0] = (outputMark){end, offset, clockMonoMs(), delivered};
        h->mark_count = 1;
        output.statistics.clients++;
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

/* Implements netSetHold(). */
static size_t mayLeave(session *s) {
    if (s->flags & NEVER_HELD) return SIZE_MAX;
    heldOutput *h = heldOf(s);
    size_t pending = sessionOutputPending(s);
    uint64_t end = s->bytes_out + pending;
    if (end > h->end) {
        /* Only if all that has run was noted. If nothing has, the output is of another origin. */
        uint64_t telling_nothing = s->flags & (SESSION_REFUSED | SESSION_IN_MULTI); /* or QUEUED */
        bool known = (h->noted || h->refused || telling_nothing) &&
                     h->noted == s->commands - h->commands && !h->all;
        addOutput(h, end, known ? h->need : output.quorum->written, h->all);
        s->flags &= ~SESSION_REFUSED;
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

static void releaseMark(heldOutput *h, int64_t now_ms) {
    hotCheck(h->mark_count > 0);
    listRemove(&output.held, &h->node);
    latencyNote("replication-quorum", now_ms - h->marks[0].since_ms);
    h->released = h->marks[0].end;
    bool delivered = h->marks[0].delivered;
    h->mark_count--;
    if (h->mark_count) {
        h->marks[0] = h->marks[1];
        enlist(h);
    } else {
        output.statistics.clients--;
        countBytes(h, 0);
    }
    sessionWantWrite(h->who);
    if (delivered) sessionWantPush(h->who);
}

static heldOutput *firstHeld(void) {
    return listIsEmpty(&output.held) ? NULL : LIST_OWNER(listFirst(&output.held), heldOutput, node);
}

void heldOutputRelease(void) {
    int64_t now_ms = clockMonoMs(), confirmed = output.quorum->confirmed;
    heldOutput *h;
    while ((h = firstHeld()) && h->marks[0].offset <= confirmed) releaseMark(h, now_ms);
}

/* The connection ends with the error: which replies it replaces the client cannot know. */
static void expire(heldOutput *h) {
    session *s = h->who;
    const slice error = SLICE("NOQUORUM Not confirmed by enough replicas in time. Requests without "
                              "a reply may have been executed, and may take effect later.");
    sessionReplaceOutput(s, (size_t)(h->released - s->bytes_out), error);
    removeMarks(h);
    h->end = s->bytes_out + sessionOutputPending(s);
    output.statistics.expired++;
    sessionCloseSoon(s);
}

void heldOutputExpire(int64_t now_ms) {
    heldOutput *h;
    uint64_t before = output.statistics.expired;
    while ((h = firstHeld()) &&
           now_ms - h->marks[0].since_ms >= output.quorum->settings.timeout_ms) {
        if (h->who->flags & SESSION_LENT) break; /* the next time */
        if (sessionIsExecuting(h->who)) break;
        expire(h);
    }
    uint64_t count = output.statistics.expired - before;
    if (count)
        logWarning(
            "Disconnecting %llu clients whose requests were not confirmed by enough replicas "
            "in time.",
            (unsigned long long)count);
}

/* ------------------------------------------------------------------ the mode */

/* The running command and those around it, which are not counted yet, and the rest of a transaction
 * that tells nothing. */
static void noteOrder(const ctx *current) {
    heldOutput *h = heldOf(current->who);
    bool tells = transactionLacks(current->who, CMD_TELLS_NOTHING);
    h->noted = tells ? 0 : (uint64_t)transactionRest(current);
    for (const ctx *c = current; c && c->who == h->who; c = c->below) h->noted++;
    h->commands = h->who->commands;
    h->all = false;
}

void heldOutputBegin(replQuorum *q) {
    hotCheck(threadIsMain());
    (void)heldSlot(); /* initialises the list */
    output.quorum = q;
    output.period++;
    if (!output.slots.table) slotOffsetsInit(&output.slots);
    heldOutputNoteAll();
    /* The order that has switched the mode on tells nothing of the keyspace. */
    if (engineHot.current && !(engineHot.current->who->flags & NEVER_HELD))
        noteOrder(engineHot.current);
    netSetHold(mayLeave);
    deliverSetObserver(noteDelivery);
}

static void end(void) {
    output.quorum = NULL;
    slotOffsetsClear(&output.slots);
    netSetHold(NULL);
    deliverSetObserver(NULL);
}

void heldOutputEnd(void) {
    hotCheck(threadIsMain());
    heldOutput *h;
    while ((h = firstHeld())) {
        removeMarks(h);
        sessionWantWrite(h->who);
    }
    end();
}

void heldOutputAbandon(void) {
    hotCheck(threadIsMain());
    heldOutput *h;
    size_t count = output.statistics.clients;
    while ((h = firstHeld())) {
        removeMarks(h);
        sessionCloseNow(h->who);
    }
    end();
    if (count)
        logWarning("Disconnecting %zu clients whose requests were not confirmed before this server "
                   "became a replica.",
                   count);
}
