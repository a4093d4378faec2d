/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that wait for expiry (expiry_gate.h). Invariant: a session in the list has
 * SESSION_PAUSED; its request stays with its carrier, unparsed, and is admitted again from its
 * start. While there are such sessions, expireSome() is called. Main thread only. */
#include "engine/expiry_gate.h"

#include "base/base.h"
#include "base/str.h"
#include "engine/ctx.h"
#include "engine/engine_priv.h"
#include "engine/job_priv.h"
#include "engine/later.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "store/member_expiry.h"
#include "store/store.h"

enum {
    FEW = 1000,         /* members that expire within the command, in less than a millisecond */
    WAIT_MS_MAX = 5000, /* after that long all do: clients of different looks take turns */
};

/* A session that is held, or that is being admitted again. */
typedef struct waiter {
    listNode node;
    session *who;
    int db_id;
    str key; /* has expired members */
    uint64_t hash;
    storeLook look;
    bool removes;
    int64_t since_us;
} waiter;

static struct {
    list held;
    uint64_t waiters; /* sessions that have one */
    uint64_t count;
    bool works; /* expireSome() is called */
} waits;

size_t expiryReleased; /* the first ones of the list */

static list *heldList(void) {
    if (!waits.held.head.next) listInit(&waits.held);
    return &waits.held;
}

static void unlist(waiter *w) {
    if (!listHas(&w->node)) return;
    listRemove(heldList(), &w->node);
    w->who->flags &= ~SESSION_PAUSED;
}

static void freeWaiter(session *s, void *state) {
    waiter *w = state;
    hotCheck(w->who == s);
    check(waits.waiters > 0);
    waits.waiters--;
    unlist(w);
    strFree(&w->key);
    memFree(w);
}

static int slotIndex(void) {
    static const sessionSlot slot = {.name = "waits for expiry", .free = freeWaiter};
    return sessionSlotRegister(&slot);
}

/* ------------------------------------------------------------------ the gate */

static bool selectsAll(const commandSpec *spec) {
    (void)spec; /* what has no keys is admitted */
    return true;
}

typedef struct search {
    db *db;
    storeLook look;
    slice key; /* what was found */
    uint64_t hash;
    bool removes;
} search;

static bool isDue(search *s, slice key) {
    s->key = key;
    s->hash = storeHash(key);
    /* Members of a value that a job reads do not expire meanwhile; the lookup ends that job. */
    if (jobReads(s->db, s->hash)) return false;
    return membersDue(s->db, key, s->hash, s->look, s->removes) >= FEW;
}

/* True for a command whose only key is its first argument, as of most. */
static bool hasOneKey(const command *cmd) {
    return cmd->first_key == 1 && cmd->last_key == 1 && cmd->spec->key_spec_count == 1 &&
           !cmd->spec->find_keys;
}

/* Goes on while the command has no key with many expired members. */
static bool isReady(void *arg, const command *cmd, const slice *argv, int argc) {
    enum { KEYS_FEW = 16 };
    search *s = arg;
    hotCheck(argc > 0);
    s->removes = cmd->flags & CMD_WRITE;
    if (hasOneKey(cmd)) return !isDue(s, argv[1]);
    keyPosition few[KEYS_FEW];
    int count;
    bool found = false;
    keyPosition *keys = commandAllKeys(cmd, argv, argc, few, KEYS_FEW, &count);
    for (int i = 0; i < count && !found; i++) found = isDue(s, argv[keys[i].arg_index]);
    if (keys != few) memFree(keys);
    return !found;
}

/* ------------------------------------------------------------------ waiting */

/* A part for the session that has waited longest. When its key is ready all are asked again. */
static laterRest expireSome(void *arg) {
    (void)arg; /* there is one list */
    listNode *first = listFirst(heldList());
    waits.works = first != NULL;
    if (!first) return LATER_NOTHING;
    if (expiryReleased) return LATER_NEXT_TURN;
    const waiter *w = LIST_OWNER(first, waiter, node);
    bool more =
        engineConf.command_slice_us &&
        membersExpireSome(storeDb(w->db_id), strSlice(&w->key), w->hash, w->look, w->removes);
    if (more) return LATER_MORE;
    expiryReleased = heldList()->count;
    return LATER_NEXT_TURN;
}

/* `s` has to wait. */
static void hold(session *s, waiter *w, const search *found) {
    check(!listHas(&w->node));
    w->db_id = dbId(found->db);
    strClear(&w->key);
    strAppendSlice(&w->key, found->key);
    w->hash = found->hash;
    w->look = found->look;
    w->removes = found->removes;
    s->flags |= SESSION_PAUSED;
    listAppend(heldList(), &w->node);
    if (!waits.works) laterRun(expireSome, NULL);
    waits.works = true;
}

static gateVerdict admit(ctx *c) {
    session *s = c->who;
    if (s->flags & (SESSION_INTERNAL | SESSION_REPLICA) || !engineConf.command_slice_us)
        return GATE_PASS;
    if (likely(!waits.waiters) && hasOneKey(c->cmd) && !membersMayBeDue(c->key_hash, c->look))
        return GATE_PASS;
    search found = {.db = c->db, .look = c->look};
    bool is_ready = c->cmd->flags & CMD_RUNS_QUEUE ? transactionEach(s, isReady, &found)
                                                   : isReady(&found, c->cmd, c->argv, c->argc);
    waiter *w = sessionSlotGet(s, slotIndex());
    bool is_over = w && clockMonoUs() - w->since_us > (int64_t)WAIT_MS_MAX * 1000;
    if (is_ready || is_over) {
        if (!w) return GATE_PASS;
        sessionSlotSet(s, slotIndex(), NULL);
        freeWaiter(s, w);
        return GATE_PASS;
    }
    if (!w) {
        w = memNew(waiter);
        *w = (waiter){.who = s, .since_us = clockMonoUs()};
        sessionSlotSet(s, slotIndex(), w);
        waits.count++;
        waits.waiters++;
    }
    hold(s, w, &found);
    return GATE_HELD;
}

const gate expiryGate = {
    .name = "expiry", .selects = selectsAll, .admit = admit, .origins = GATE_FOR_CLIENTS};

void expiryGateArm(void) { gateArm(&expiryGate, true); }

session *expiryNextReleased(void) {
    check(expiryReleased > 0);
    if (engineHot.current) return NULL;
    expiryReleased--; /* who is held again is after the last of them */
    listNode *first = listFirst(heldList());
    if (!first) {
        expiryReleased = 0;
        return NULL;
    }
    waiter *w = LIST_OWNER(first, waiter, node);
    check(w->who->flags & SESSION_PAUSED);
    unlist(w);
    return w->who;
}

uint64_t expiryGateCount(void) { return waits.count; }

void expiryGateResetStats(void) {
    hotCheck(threadIsMain());
    waits.count = 0;
}
