/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections on trial (trial.h). Invariant: a place is taken if and only if its client exists, is
 * not being closed, and has the gate armed. A client on trial is closed if it sends nothing for
 * SILENT_MS after it was accepted (TRIAL_MS if it is in a TLS handshake), or if it has not become a
 * replication link TRIAL_MS after its last command. */
#include "net/trial.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "engine/timer.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_thread.h"

enum { SILENT_MS = 300, TRIAL_MS = 3000 };

typedef struct trial {
    client *cl; /* NULL: free */
    slice text;
    engineTimer timer;
} trial;

static trial places[TRIAL_PLACES];
static int taken;

static trial *trialOf(const client *cl) {
    for (int i = 0; i < TRIAL_PLACES; i++) {
        if (places[i].cl == cl) return &places[i];
    }
    return NULL;
}

bool trialHasPlace(void) { return taken < TRIAL_PLACES; }

void trialEnd(client *cl) {
    trial *t = taken ? trialOf(cl) : NULL;
    if (likely(!t)) return;
    hotCheck(taken > 0);
    timerStop(&t->timer);
    gateArmSession(&cl->session, &trialGate, false);
    t->cl = NULL;
    taken--;
}

static void refuse(trial *t) {
    client *cl = t->cl;
    netStats()->rejected++;
    if (clientIsAway(cl)) ioThreadsSettle(); /* the state of its connection may be read then */
    if (cl->session.flags & SESSION_LENT || cl->conn.state != CONN_OPEN) {
        sessionCloseNow(&cl->session);
    } else {
        outbufAppend(&cl->session.out, t->text.ptr, t->text.len);
        sessionCloseSoon(&cl->session);
    }
    trialEnd(cl);
}

static void due(engineTimer *timer) {
    trial *t = CONTAINER_OF(timer, trial, timer);
    session *s = &t->cl->session;
    if (s->flags & (SESSION_STREAMS | SESSION_REPLAY | SESSION_NODE_LINK)) {
        trialEnd(t->cl);
    } else if (s->bytes_in && engineHot.now_ms - s->active_ms < TRIAL_MS) {
        timerSet(timer, s->active_ms + TRIAL_MS);
    } else if (t->cl->conn.state != CONN_OPEN && engineHot.now_ms - s->created_ms < TRIAL_MS) {
        timerSet(timer, s->created_ms + TRIAL_MS); /* the handshake of TLS */
    } else {
        refuse(t);
    }
}

void trialBegin(client *cl, slice text) {
    check(taken < TRIAL_PLACES);
    trial *t = trialOf(NULL);
    check(t);
    *t = (trial){.cl = cl, .text = text, .timer.due = due};
    taken++;
    timerSet(&t->timer, engineHot.now_ms + SILENT_MS);
    gateArmSession(&cl->session, &trialGate, true);
    loopLimitSleep(netLoop(), SILENT_MS);
}

/* ------------------------------------------------------------------ the gate */

/* True for commands that replicas, slot migrations, MIGRATE and gateways (GATEWAY LINK) send first,
 * and for all of a gateway that has proven itself. PING passes only as the
 * first command, so that a client that sends nothing but PING is refused. RESET does not pass,
 * because it would disarm the gate. */
static bool isOfReplication(const ctx *c) {
    static const char *const names[] = {"auth",   "hello",     "replconf", "psync",
                                        "sync",   "syncslots", "quit",     "restore-asking",
                                        "select", "asking",    "link"};
    const char *name = c->cmd->spec->name;
    if (c->who->flags & SESSION_NODE_LINK) return true;
    if (!strcmp(name, "ping")) return c->who->commands == 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(name, names[i])) return true;
    }
    return false;
}

static gateVerdict admit(ctx *c) {
    session *s = c->who;
    if (isOfReplication(c)) return GATE_PASS;
    trial *t = trialOf(clientOf(s));
    check(t);
    /* The text without the minus sign at its beginning and the line end, which the reply adds. */
    replyError(c, sliceMake(t->text.ptr + 1, t->text.len - 3));
    netStats()->rejected++;
    sessionCloseSoon(s);
    trialEnd(clientOf(s));
    return GATE_REFUSED;
}

const gate trialGate = {.name = "trial", .admit = admit, .origins = GATE_FOR_CLIENTS};
