/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pauses (pause.h). Invariant: a session in the list of held sessions has SESSION_PAUSED, which
 * account/share.c sets for others, too; the gate is armed if and only if there is a pause. Held
 * requests remain unparsed with their carrier: nothing is counted, and admission is repeated later.
 * No cost without a pause. */
#include "engine/pause.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/timer.h"
#include "engine/transaction.h"

static struct {
    struct {
        pauseScope scope;
        int64_t end_ms;
        engineTimer timer;
        uint64_t number;
    } pauses[PAUSE_REASONS];
    uint64_t begun;   /* how many have */
    pauseScope scope; /* the strongest scope */
    pauseSelectProc *selects;
    list held;
    size_t released; /* so many of the first held sessions may continue */
} pause;

static list *heldList(void) {
    if (!pause.held.head.next) listInit(&pause.held);
    return &pause.held;
}

/* Applies a change of the pauses. */
static void refresh(void) {
    pauseScope before = pause.scope;
    pause.scope = PAUSE_NONE;
    for (int i = 0; i < PAUSE_REASONS; i++) {
        if (pause.pauses[i].scope > pause.scope) pause.scope = pause.pauses[i].scope;
    }
    if (pause.scope == before) return;
    gateArm(&pauseGate, pause.scope != PAUSE_NONE);
    keyspaceSetFrozen(pause.scope != PAUSE_NONE);
    /* With a weaker scope, held requests are admitted again, which may hold them again. One of them
     * may also begin the next pause: then the others stay. */
    pause.released = pause.scope < before ? heldList()->count : 0;
}

static void isOver(engineTimer *t) {
    hotCheck(pause.scope != PAUSE_NONE);
    for (int i = 0; i < PAUSE_REASONS; i++) {
        if (&pause.pauses[i].timer == t) pauseEnd((pauseReason)i);
    }
}

void pauseBegin(pauseReason reason, pauseScope scope, int64_t end_ms) {
    hotCheck(threadIsMain());
    if (pause.pauses[reason].scope == PAUSE_NONE) pause.pauses[reason].number = ++pause.begun;
    if (pause.pauses[reason].scope < scope) pause.pauses[reason].scope = scope;
    if (pause.pauses[reason].end_ms < end_ms) pause.pauses[reason].end_ms = end_ms;
    pause.pauses[reason].timer.due = isOver;
    timerSet(&pause.pauses[reason].timer, pause.pauses[reason].end_ms);
    refresh();
}

void pauseSelect(pauseSelectProc *selects) {
    check(selects);
    pause.selects = selects;
    pause.released = heldList()->count;
}

void pauseEnd(pauseReason reason) {
    hotCheck(threadIsMain());
    pause.pauses[reason].scope = PAUSE_NONE;
    pause.pauses[reason].end_ms = 0;
    timerStop(&pause.pauses[reason].timer);
    refresh();
    pause.released = heldList()->count; /* also those that waited for this reason alone */
}

pauseScope pauseNow(void) { return pause.scope; }

bool pauseIsFor(pauseReason reason) { return pause.pauses[reason].scope != PAUSE_NONE; }

uint64_t pauseNumber(pauseReason reason) {
    return pauseIsFor(reason) ? pause.pauses[reason].number : 0;
}

/* The reason of the pause that ends last; -1 if there is none. */
static int longest(void) {
    int found = -1;
    for (int i = 0; i < PAUSE_REASONS; i++) {
        if (pause.pauses[i].scope == PAUSE_NONE) continue;
        if (found < 0 || pause.pauses[i].end_ms > pause.pauses[found].end_ms) found = i;
    }
    return found;
}

int64_t pauseEndMs(void) {
    hotCheck(longest() < PAUSE_REASONS);
    int reason = longest();
    return reason < 0 ? 0 : pause.pauses[reason].end_ms;
}

const char *pauseReasonName(void) {
    static const char *const names[PAUSE_REASONS] = {"client_pause",
                                                     "shutdown_in_progress",
                                                     "failover_in_progress",
                                                     "slot_migration_in_progress",
                                                     "slot_migration_in_progress",
                                                     "cluster_config_save",
                                                     "snapshot_in_progress",
                                                     "append_only_file_stalled",
                                                     "replica_lag"};
    int reason = longest();
    return reason < 0 ? "none" : names[reason];
}

/* True if the remaining pauses hold the request, too. To admit it again would ask the other gates
 * before this one, and the role may have changed: a held write would be refused. */
static bool staysHeld(const session *s) {
    return (s->flags & SESSION_HELD_WRITE && pause.scope >= PAUSE_WRITES) ||
           (s->flags & SESSION_HELD_READ && pause.scope == PAUSE_ALL);
}

session *pauseNextReleased(void) {
    if (likely(!pause.released)) return NULL;
    /* In a nested turn a script is being executed, which would refuse what was accepted before
     * it. */
    if (engineHot.current) return NULL;
    listNode *first;
    while (pause.released && (first = listFirst(heldList()))) {
        pause.released--; /* those that are held again are after the last of them */
        session *s = LIST_OWNER(first, session, held);
        if (staysHeld(s)) {
            listRemove(heldList(), first);
            listAppend(heldList(), first);
            continue;
        }
        pauseForget(s);
        return s;
    }
    pause.released = 0;
    return NULL;
}

int pauseHeldCount(void) { return (int)heldList()->count; }

void pauseForget(session *s) {
    if (!listHas(&s->held)) return;
    listRemove(heldList(), &s->held);
    s->flags &= ~(SESSION_PAUSED | SESSION_HELD_WRITE | SESSION_HELD_READ);
}

/* ------------------------------------------------------------------ the gate */

static bool mayWrite(const ctx *c) {
    const uint64_t writes = CMD_WRITE | CMD_MAY_REPLICATE;
    if (c->cmd->flags & writes) return transactionFlagsOf(c) & writes;
    return c->cmd->flags & CMD_RUNS_QUEUE && transactionHas(c->who, writes);
}

gateVerdict pauseHold(session *s) {
    check(pause.scope != PAUSE_NONE);
    s->flags |= SESSION_PAUSED;
    listAppend(heldList(), &s->held);
    return GATE_HELD;
}

gateVerdict pauseHoldWrite(session *s) {
    s->flags |= SESSION_HELD_WRITE;
    return pauseHold(s);
}

bool pauseHoldsWrite(ctx *c) {
    hotCheck(c->cmd);
    return pause.scope >= PAUSE_WRITES || (pause.scope == PAUSE_SOME && pause.selects(c));
}

/* The stream of the primary waits as a whole, for CLIENT PAUSE, for the disk, and for a shutdown,
 * until the replicas of this server have what was applied. */
bool pauseHoldsStream(void) {
    return pauseIsFor(PAUSE_BY_COMMAND) || pauseIsFor(PAUSE_FOR_AOF) ||
           pauseIsFor(PAUSE_FOR_SHUTDOWN);
}

static gateVerdict hold(ctx *c) {
    hotCheck(c->who);
    session *s = c->who;
    if (c->origin == ORIGIN_PRIMARY) return pauseHoldsStream() ? pauseHold(s) : GATE_PASS;
    /* Imported commands are propagated to the replicas, and these must catch up during some
     * pauses. */
    if (c->origin == ORIGIN_IMPORT) {
        bool waits = pauseIsFor(PAUSE_BY_COMMAND) || pauseIsFor(PAUSE_FOR_SHUTDOWN) ||
                     pauseIsFor(PAUSE_FOR_FAILOVER) || pauseIsFor(PAUSE_FOR_AOF);
        return waits ? pauseHold(s) : GATE_PASS;
    }
    if (s->flags & (SESSION_INTERNAL | SESSION_REPLICA)) return GATE_PASS;
    bool writes = mayWrite(c);
    if (pause.scope != PAUSE_ALL && !writes) return GATE_PASS;
    if (pause.scope == PAUSE_SOME && !pause.selects(c)) return GATE_PASS;
    if (writes) return pauseHoldWrite(s);
    s->flags |= SESSION_HELD_READ;
    return pauseHold(s);
}

const gate pauseGate = {.name = "pause",
                        .admit = hold,
                        .origins = GATE_FOR_CLIENTS | 1u << ORIGIN_PRIMARY | 1u << ORIGIN_IMPORT};
