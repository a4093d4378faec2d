/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER as a state machine (failover_state.h).
 *
 * Invariant: each state but FAILOVER_NONE has a deadline, so writes are never paused for good. */
#include "psync/failover_state.h"

#include "base/base.h"

/* "H:P" or "any replica", for the log; the caller frees it. */
static str targetName(const replFailover *f) {
    str name = STR_EMPTY;
    if (f->host.len) {
        strAppendFormat(&name, "%s:%lld", strText(&f->host), (long long)f->port);
    } else {
        strAppendFormat(&name, "any replica");
    }
    return name;
}

static void enter(replFailover *f, failoverState state) {
    hotCheck(state <= FAILOVER_IN_PROGRESS);
    hotCheck(state != f->state);
    f->state = state;
    f->env->changed(f->arg, state);
}

void failoverInit(replFailover *f, const failoverEnv *env, void *arg) {
    *f = (replFailover){.env = env, .arg = arg};
}

void failoverClear(replFailover *f) { strFree(&f->host); }

void failoverBegin(replFailover *f, const failoverRequest *r, int64_t now_ms) {
    check(f->state == FAILOVER_NONE);
    check(r->limit_ms > 0);
    strFree(&f->host);
    f->host = strNew(r->host);
    f->port = r->port;
    f->force = r->force;
    f->limit_ms = r->limit_ms;
    f->deadline_ms = r->deadline_ms ? r->deadline_ms : now_ms + r->limit_ms;
    str name = targetName(f);
    logNotice("FAILOVER requested to %s.", strText(&name));
    strFree(&name);
    enter(f, FAILOVER_WAITING_FOR_SYNC);
}

void failoverAbort(replFailover *f, const char *why) {
    check(f->state != FAILOVER_NONE);
    str name = targetName(f);
    logNotice("FAILOVER to %s aborted: %s", strText(&name), why);
    strFree(&name);
    if (f->state == FAILOVER_IN_PROGRESS) f->env->promote(f->arg);
    enter(f, FAILOVER_NONE);
}

void failoverAnswered(replFailover *f, bool accepted) {
    if (f->state != FAILOVER_IN_PROGRESS) return;
    if (accepted) {
        enter(f, FAILOVER_NONE);
    } else {
        failoverAbort(f, "Failover target rejected psync request");
    }
    hotCheck(f->state == FAILOVER_NONE);
}

static void proceed(replFailover *f, int64_t now_ms) {
    hotCheck(f->state != FAILOVER_IN_PROGRESS);
    hotCheck(f->host.len > 0);
    hotCheck(f->limit_ms > 0);
    f->deadline_ms = now_ms + f->limit_ms;
    enter(f, FAILOVER_IN_PROGRESS);
    f->env->follow(f->arg, strSlice(&f->host), f->port);
}

static void waitForSync(replFailover *f, int64_t now_ms) {
    hotCheck(f->state == FAILOVER_WAITING_FOR_SYNC);
    failoverTarget target = f->env->find(f->arg, &f->host, &f->port);
    bool is_late = now_ms >= f->deadline_ms;
    if (target == FAILOVER_TARGET_SYNCED) {
        str name = targetName(f);
        logNotice("Failover target %s is synced, failing over.", strText(&name));
        strFree(&name);
        proceed(f, now_ms);
    } else if (f->force && is_late) {
        str name = targetName(f);
        logNotice("FAILOVER to %s time out exceeded, failing over.", strText(&name));
        strFree(&name);
        proceed(f, now_ms);
    } else if (!f->force && target == FAILOVER_TARGET_GONE) {
        failoverAbort(f, "The link of the replica was lost");
    } else if (is_late) {
        failoverAbort(f, "Replica never caught up before timeout");
    }
}

void failoverAdvance(replFailover *f, int64_t now_ms) {
    if (f->state == FAILOVER_WAITING_FOR_SYNC) {
        waitForSync(f, now_ms);
    } else if (f->state == FAILOVER_IN_PROGRESS && now_ms >= f->deadline_ms) {
        failoverAbort(f, "The target has not answered in time");
    }
}
