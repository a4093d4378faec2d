/* SPDX-License-Identifier: BSD-3-Clause
 *
 * REPLICAOF and SLAVEOF, which change the role of this server. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "engine/reply.h"
#include "net/net.h"
#include "repl/ack_hold.h"
#include "repl/procs.h"
#include "repl/repl_priv.h"
#include "repl/role.h"
#include "store/store.h"

static const char hold_has_passed[] =
    "ERR This connection may not change the role of this replica any more: its REPLCONF HOLD-ACKS "
    "has passed, or another one was ordered";

static void logRequest(const ctx *c, const char *what) {
    str client = STR_EMPTY;
    if (!netDescribeOrderer(c->who, &client)) strAppendText(&client, "internal");
    logNotice("%s enabled (user request from '%s')", what, strText(&client));
    strFree(&client);
}

static void follow(ctx *c, slice host, int port) {
    if (!replFollow(host, port)) {
        logNotice("REPLICAOF would result into synchronization with the primary we are already "
                  "connected with. No operation performed.");
        replyStatus(c, SLICE("OK Already connected to specified master"));
        return;
    }
    str what = STR_EMPTY;
    strAppendFormat(&what, "REPLICAOF %s:%d", strText(&replConf.primary_host), port);
    logRequest(c, strText(&what));
    strFree(&what);
    replyOk(c);
}

/* Checks whether this replica may become a primary by REPLICAOF NO ONE. False: the error was
 * replied. A Sentinel that was elected sends the command in a transaction, which is not checked. */
static bool mayPromote(ctx *c) {
    bool by_sentinel = c->flags & CTX_IN_MULTI, forced = ctxArgIs(c, 2, "force");
    str why = STR_EMPTY;
    if (by_sentinel || forced || !replRefusesPromotion(&why)) return true;
    replyErrorFormat(c, "DIVERGED %s. %s promotes this replica nevertheless", strText(&why),
                     ctxHasExtensions(c) ? "REPLICAOF NO-ONE FORCE"
                                         : "REPLICAOF NO ONE in a transaction");
    strFree(&why);
    return false;
}

static bool isPromotion(const ctx *c) {
    if (ctxArgIs(c, 1, "no") && ctxArgIs(c, 2, "one")) return true;
    return ctxHasExtensions(c) && ctxArgIs(c, 1, "no-one") && ctxArgIs(c, 2, "force");
}

/* REPLICAOF (NO ONE | NO-ONE FORCE | host port). Reply: OK. */
void replicaofCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (storeIsSlotted()) {
        replyError(c, SLICE("ERR REPLICAOF not allowed in cluster mode."));
        return;
    }
    if (isPromotion(c)) {
        if (replIsReplica() && !ackHoldAllowsPromotion(c->who)) {
            replyError(c, sliceOf(hold_has_passed));
            return;
        }
        if (replIsReplica() && !mayPromote(c)) return;
        if (replIsReplica()) {
            replPromote();
            logRequest(c, "PRIMARY MODE");
        }
        replyOk(c);
        return;
    }
    if (!ackHoldAllowsFollowing(c->who)) {
        replyError(c, sliceOf(hold_has_passed));
        return;
    }
    int64_t port;
    if (!ctxArgIntIn(c, 2, 0, CONFIG_PORT_MAX, &port, "ERR Invalid master port")) return;
    follow(c, c->argv[1], (int)port);
}

/* SLAVEOF: the same. */
void slaveofCommand(ctx *c) { replicaofCommand(c); }
