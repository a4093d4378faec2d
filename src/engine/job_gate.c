/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that wait for jobs (job_gate.h). Invariant: a session in the list has SESSION_PAUSED;
 * its request stays with its carrier, unparsed, and is admitted again from its start, in the turn
 * in which it is released. If it is held again then, its wait goes on; else the wait is over,
 * whether another gate has refused it, holds it, or it has run. Main thread only. */
#include "engine/job_gate.h"

#include "base/base.h"
#include "engine/ctx.h"
#include "engine/expiry_gate.h"
#include "engine/job.h"
#include "engine/job_priv.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "store/store.h"

/* A session that is held, or that was released in this turn. */
typedef struct jobWaiter {
    listNode node; /* in `waits.held` or `waits.again` */
    session *who;
    const db *db;  /* NULL: any */
    uint64_t hash; /* of a key that a job reads */
    bool is_held;
    int64_t since_us;
} jobWaiter;

static struct {
    list held, again;
    size_t released; /* so many of the first ones may be admitted again */
    uint64_t count;
    int64_t longest_us;
} waits;

static list *heldList(void) {
    if (!waits.held.head.next) {
        listInit(&waits.held);
        listInit(&waits.again);
    }
    return &waits.held;
}

static void unlist(jobWaiter *w) {
    check(listHas(&w->node));
    listRemove(w->is_held ? heldList() : &waits.again, &w->node);
    if (w->is_held) w->who->flags &= ~SESSION_PAUSED;
    w->is_held = false;
}

static void freeWaiter(session *s, void *state) {
    (void)s; /* it ends */
    unlist(state);
    memFree(state);
}

static int slotIndex(void) {
    static const sessionSlot slot = {.name = "waits for jobs", .free = freeWaiter};
    return sessionSlotRegister(&slot);
}

/* The wait is over. */
static void forget(jobWaiter *w) {
    check(!w->is_held);
    unlist(w);
    sessionSlotSet(w->who, slotIndex(), NULL);
    memFree(w);
}

/* ------------------------------------------------------------------ the gate */

static bool selects(const commandSpec *spec) {
    return spec->flags & (CMD_WRITE | CMD_MAY_REPLICATE | CMD_RUNS_QUEUE);
}

typedef struct search {
    const db *db;  /* NULL: any */
    uint64_t hash; /* of the key that was found */
} search;

/* Goes on while the command changes no key that a job reads. A command that names a database may
 * change the key in that one or, as SELECT, make the following ones do so: then jobs count that
 * read a key of this name in any database. */
static bool isFree(void *arg, const command *cmd, const slice *argv, int argc) {
    enum { FEW = 16 };
    search *s = arg;
    keyPosition few[FEW];
    int count;
    bool found = false;
    if (cmd->flags & CMD_OTHER_DB) s->db = NULL;
    if (!(cmd->flags & (CMD_WRITE | CMD_MAY_REPLICATE))) return true;
    keyPosition *keys = commandAllKeys(cmd, argv, argc, few, FEW, &count);
    for (int i = 0; i < count && !found; i++) {
        if (keys[i].flags & KEY_RO) continue;
        s->hash = storeHash(argv[keys[i].arg_index]);
        found = jobReads(s->db, s->hash);
    }
    if (keys != few) memFree(keys);
    return !found;
}

static gateVerdict admit(ctx *c) {
    session *s = c->who;
    if (s->flags & (SESSION_INTERNAL | SESSION_REPLICA)) return GATE_PASS;
    search found = {.db = c->db};
    bool is_free = c->cmd->flags & CMD_RUNS_QUEUE ? transactionEach(s, isFree, &found)
                                                  : isFree(&found, c->cmd, c->argv, c->argc);
    jobWaiter *w = sessionSlotGet(s, slotIndex());
    if (is_free) {
        if (w) forget(w);
        return GATE_PASS;
    }
    if (w) {
        check(!w->is_held);
        unlist(w);
    } else {
        w = memNew(jobWaiter);
        *w = (jobWaiter){.who = s, .since_us = clockMonoUs()};
        sessionSlotSet(s, slotIndex(), w);
        waits.count++;
    }
    w->is_held = true;
    w->db = found.db;
    w->hash = found.hash;
    s->flags |= SESSION_PAUSED;
    listAppend(heldList(), &w->node);
    return GATE_HELD;
}

const gate jobGate = {
    .name = "jobs", .selects = selects, .admit = admit, .origins = GATE_FOR_CLIENTS};

/* ------------------------------------------------------------------ the end of waits */

void jobGateRelease(void) {
    waits.released = heldList()->count;
    if (!gateIsArmed(&jobGate)) jobGateEndWaits();
}

void jobGateEndWaits(void) {
    hotCheck(threadIsMain());
    if (!waits.again.count) return;
    for (listNode *n; (n = listFirst(&waits.again)) != NULL;)
        forget(LIST_OWNER(n, jobWaiter, node));
}

session *jobNextReleased(void) {
    if (likely(!(waits.released | expiryReleased)) || engineHot.current) return NULL;
    if (!waits.released) return expiryNextReleased();
    waits.released--; /* who is held again is after the last of them */
    listNode *first = listFirst(heldList());
    if (!first) {
        waits.released = 0;
        return NULL;
    }
    jobWaiter *w = LIST_OWNER(first, jobWaiter, node);
    unlist(w);
    int64_t us = clockMonoUs() - w->since_us;
    if (us > waits.longest_us) waits.longest_us = us;
    session *s = w->who;
    listAppend(&waits.again, &w->node);
    if (!gateIsArmed(&jobGate)) forget(w); /* nobody asks again */
    return s;
}

bool jobGateOverdue(const db **d, uint64_t *hash) {
    if (likely(!waits.held.count)) return false;
    int64_t begun_us = clockMonoUs() - (int64_t)JOB_WAIT_MS * 1000;
    for (listNode *n = listFirst(&waits.held); n; n = listNext(&waits.held, n)) {
        const jobWaiter *w = LIST_OWNER(n, jobWaiter, node);
        if (w->since_us > begun_us) continue;
        *d = w->db;
        *hash = w->hash;
        return true;
    }
    return false;
}

int64_t jobGateLongestUs(void) { return waits.longest_us; }
uint64_t jobGateCount(void) { return waits.count; }

void jobGateResetStats(void) {
    waits.longest_us = 0;
    waits.count = 0;
}
