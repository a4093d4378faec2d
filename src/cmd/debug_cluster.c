/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG: the bus of a cluster. Words that only change how it behaves are accepted by servers that
 * are no nodes, without effect. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/debug_priv.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"

/* An argument that is true if it is a number other than 0. */
static bool flagAt(const ctx *c, int i) {
    int64_t number;
    return numberParseInt(c->argv[i], &number) && number != 0;
}

static bool flagArg(const ctx *c) { return flagAt(c, 2); }

void debugDropClusterPackets(ctx *c) {
    hotCheck(c->argc == 3);
    int64_t type;
    if (!ctxArgInt(c, 2, &type)) return;
    if (engineCluster()) engineCluster()->drop_messages(type);
    replyOk(c);
}

void debugCloseClusterLink(ctx *c) {
    hotCheck(c->argc == 3);
    if (engineCluster()) engineCluster()->close_at_drop(flagArg(c));
    replyOk(c);
}

void debugDisableClusterReconnection(ctx *c) {
    hotCheck(c->argc == 3);
    if (engineCluster()) engineCluster()->set_reconnects(!flagArg(c));
    replyOk(c);
}

void debugDisableClusterPing(ctx *c) {
    hotCheck(c->argc == 3);
    if (engineCluster()) engineCluster()->set_random_pings(!flagArg(c));
    replyOk(c);
}

void debugClusterLink(ctx *c) {
    hotCheck(c->argc == 5);
    bool all = ctxArgIs(c, 3, "all"), to = all || ctxArgIs(c, 3, "to");
    bool from = all || ctxArgIs(c, 3, "from");
    if (!ctxArgIs(c, 2, "kill")) {
        replyErrorSubcommand(c);
        return;
    }
    if (!engineCluster()) {
        replyError(c, SLICE("ERR Debug option only available for cluster mode enabled setup!"));
        return;
    }
    status st = engineCluster()->kill_links(c->argv[4], to, from);
    if (st == ERR_NOT_FOUND) {
        replyErrorFormat(c, "ERR Unknown node %.*s", (int)c->argv[4].len, c->argv[4].ptr);
    } else if (st != OK) {
        replyError(c, SLICE("ERR Cannot free cluster link(s) to myself"));
    } else if (!to && !from) {
        replyErrorFormat(c, "ERR Unknown direction %.*s", (int)c->argv[3].len, c->argv[3].ptr);
    } else {
        replyOk(c);
    }
}

void debugClusterReplicaPriority(ctx *c) {
    int priority;
    hotCheck(c->argc == 3);
    if (!engineCluster()) {
        replyError(c, SLICE("ERR Debug option only available for cluster mode enabled setup!"));
    } else if (!engineCluster()->replica_priority(c->argv[2], &priority)) {
        replyErrorFormat(c, "ERR Unknown node %.*s", (int)c->argv[2].len, c->argv[2].ptr);
    } else {
        replyInteger(c, priority);
    }
}

void debugHoldClusterConfigSaves(ctx *c) {
    hotCheck(c->argc == 3);
    if (engineCluster()) engineCluster()->hold_saves(flagArg(c));
    replyOk(c);
}

void debugSlotMigration(ctx *c) {
    hotCheck(c->argc == 4);
    bool pause = ctxArgIs(c, 2, "prevent-pause");
    if (!pause && !ctxArgIs(c, 2, "prevent-failover")) {
        replyErrorSubcommand(c);
        return;
    }
    if (engineCluster()) engineCluster()->hold_slots(pause, flagAt(c, 3));
    replyOk(c);
}
