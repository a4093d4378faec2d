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
    const gate *by;
    const db *db;  /* NULL: any */
    uint64_t hash; /* of a key that a job reads or changes */
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

/* Goes on while the command changes no key that a job reads, and touches none that one changes. A
 * command that names a database may change the key in that one or, as SELECT, make the following
 * ones do so: then jobs count that have a key of this name in any database. */
static bool isFree(void *arg, const command *cmd, const slice *argv, int argc) {
    enum { FEW = 16 };
    search *s = arg;
    keyPosition few[FEW];
    int count;
    bool found = false, writes = cmd->flags & (CMD_WRITE | CMD_MAY_REPLICATE);
    if (cmd->flags & CMD_OTHER_DB) s->db = NULL;
    if (!writes && !jobsChanging) return true;
    keyPosition *keys = commandAllKeys(cmd, argv, argc, few, FEW, &count);
    for (int i = 0; i < count && !found; i++) {
        bool reads = !writes || keys[i].flags & KEY_RO;
        if (reads && !jobsChanging) continue;
        s->hash = storeHash(argv[keys[i].arg_index]);
        found = (reads ? jobChanges : jobReads)(s->db, s->hash);
    }
    if (keys != few) memFree(keys);
    return !found;
}

/* For a client's request, by itself. */
static gateVerdict admitOrHold(ctx *c, const gate *by) {
    session *s = c->who;
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
    w->by = by;
    w->is_held = true;
    w->db = found.db;
    w->hash = found.hash;
    s->flags |= SESSION_PAUSED;
    listAppend(heldList(), &w->node);
    return GATE_HELD;
}

static gateVerdict admit(ctx *c) {
    if (c->who->flags & (SESSION_INTERNAL | SESSION_REPLICA)) return GATE_PASS;
    return admitOrHold(c, &jobGate);
}

const gate jobGate = {
    .name = "jobs", .selects = selects, .admit = admit, .origins = GATE_FOR_CLIENTS};

/* ------------------------------------------------------------------ keys that change in place
 *
 * Nobody sees a key that a job changes in place:
 *
 * | a client's request, EXEC or script names it          | held back, at most 100 ms             |
 * | commands of EXEC, scripts and modules, a request that | this gate runs the job to its end     |
 * | was woken, a stream, a file; SORT with BY, FLUSHALL   |                                       |
 * | a module opens it; a fork, a snapshot, a save, a      | jobEndChanges(), jobEndChangesOf()    |
 * | pause after which nothing may be written, a demotion, |                                       |
 * | DEBUG                                                 |                                       |
 * | tables are removed or exchanged                       | the same, as the store tells          |
 * | expiry and eviction                                   | leave it alone                        |
 * | something removes it nevertheless                     | the command runs again afterwards     |
 * | its client is gone or killed, the user removed        | it goes on, or ends at once           |
 *
 * A job that is run to its end precedes what could not wait, which has not looked anything up then,
 * or has called a module, which could have done the same there. So other code that reads values
 * whose keys are no arguments of a command calls jobEndChanges() before. */

static bool selectsAll(const commandSpec *spec) {
    (void)spec; /* which keys it has is known when it runs */
    return true;
}

/* Goes on unless the command may look at values of keys that are no arguments: SORT with BY and
 * GET, FLUSHALL, SWAPDB. Names alone do not change in the middle of a job, so KEYS needs no care;
 * the commands of scripts and modules are asked about one by one. */
static bool namesItsKeys(void *arg, const command *cmd, const slice *argv, int argc) {
    (void)arg, (void)argv;
    bool sorts = argc > 2 && (sliceIs(cmd->name, "sort") || sliceIs(cmd->name, "sort_ro"));
    return !sorts && (!(cmd->flags & CMD_WRITE) || commandSpecHasKeys(cmd->spec));
}

/* Ends the jobs that change keys of the command. */
static void endChangesOf(const ctx *c) {
    enum { FEW = 16 };
    keyPosition few[FEW];
    int count;
    keyPosition *keys = commandAllKeys(c->cmd, c->argv, c->argc, few, FEW, &count);
    for (int i = 0; i < count; i++) jobEndChangesOf(c->db, storeHash(c->argv[keys[i].arg_index]));
    if (keys != few) memFree(keys);
}

static gateVerdict admitToChanged(ctx *c) {
    const session *s = c->who;
    hotCheck(jobsChanging);
    bool runs_queue = c->cmd->flags & CMD_RUNS_QUEUE;
    bool is_named = runs_queue ? transactionEach(s, namesItsKeys, NULL)
                               : namesItsKeys(NULL, c->cmd, c->argv, c->argc);
    bool may_wait = c->flags & CTX_ADMISSION && c->origin == ORIGIN_CLIENT &&
                    !(s->flags & (SESSION_INTERNAL | SESSION_REPLICA));
    if (!is_named) {
        (void)jobEndChanges();
    } else if (may_wait) {
        return admitOrHold(c, &claimGate);
    } else if (!runs_queue) { /* else the commands of the queue are asked about */
        endChangesOf(c);
    }
    return GATE_PASS;
}

const gate claimGate = {.name = "changing keys",
                        .selects = selectsAll,
                        .admit = admitToChanged,
                        .again = true,
                        .origins = GATE_FOR_USERS | GATE_FOR_REPLAYS};

/* ------------------------------------------------------------------ the end of waits */

void jobGateRelease(void) {
    waits.released = heldList()->count;
    if (!gateIsArmed(&jobGate) && !gateIsArmed(&claimGate)) jobGateEndWaits();
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
    if (!gateIsArmed(w->by)) forget(w); /* nobody asks again */
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
