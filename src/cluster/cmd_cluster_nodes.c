/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of CLUSTER that change the map or its file: FORGET, RESET, SET-CONFIG-EPOCH,
 * BUMPEPOCH, SAVECONFIG; and COUNT-FAILURE-REPORTS. Main thread only. */
#include "base/base.h"
#include "bus/failure.h"
#include "bus/map_blacklist.h"
#include "cluster/cluster_priv.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "cluster/shared_state.h"
#include "engine/hot.h"
#include "engine/hotkeys.h"
#include "engine/reply.h"
#include "pubsub/pubsub.h"
#include "store/store.h"

/* ------------------------------------------------------------------ nodes */

clusterNode *clusterNodeArg(ctx *c) {
    clusterNode *n = clusterMapFind(&serverMap, c->argv[2]);
    if (!n) replyErrorFormat(c, "ERR Unknown node %.*s", (int)c->argv[2].len, c->argv[2].ptr);
    return n;
}

/* CLUSTER FORGET node-id: removes a node, which is not added again for some time although others
 * still tell of it. Reply: OK. */
void clusterForgetCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (!clusterIsNode(c)) return;
    slice id = c->argv[2];
    if (!clusterMapFind(&serverMap, id) &&
        clusterMapIsForbidden(&serverMap, id, serverBusNowMs())) {
        replyOk(c); /* told by another node before the client */
        return;
    }
    clusterNode *n = clusterNodeArg(c);
    if (!n) return;
    if (n == serverMap.myself) {
        replyError(c, SLICE("ERR I tried hard but I can't forget myself..."));
    } else if (n == serverMap.myself->primary) {
        replyError(c, SLICE("ERR Can't forget my master!"));
    } else {
        serverBusTakeRules();
        busForget(&serverBus, n, serverBusNowMs());
        pubsubSlotsChanged(serverRoleServes);
        replyOk(c);
    }
}

/* CLUSTER COUNT-FAILURE-REPORTS node-id. Reply: the number of reports about the node that count. */
void clusterCountFailureReportsCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (!clusterIsNode(c)) return;
    clusterNode *n = clusterNodeArg(c);
    if (!n) return;
    replyInteger(c, busCountReports(&serverBus, n, serverBusNowMs()));
}

static void logReset(bool hard, const char old_id[NODE_ID_LEN]) {
    const clusterNode *myself = serverMap.myself;
    if (memcmp(old_id, myself->id, NODE_ID_LEN) != 0)
        logNotice("Node %s reset, now I'm %.40s", hard ? "hard" : "soft", myself->id);
    logNotice("Moving myself to a new shard %.40s.", myself->shard_id);
}

/* CLUSTER RESET [HARD|SOFT]: the node leaves its cluster. Reply: OK. */
void clusterResetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (!clusterIsNode(c)) return;
    bool hard = c->argc == 3 && ctxArgIs(c, 2, "hard");
    if (c->argc > 3) {
        replyErrorSubcommand(c);
    } else if (c->argc == 3 && !hard && !ctxArgIs(c, 2, "soft")) {
        replyError(c, ERR_SYNTAX_TEXT);
    } else if (serverMap.myself->flags & NODE_PRIMARY && keyspaceKeyCount(keyspaceMain())) {
        replyError(c, SLICE("ERR CLUSTER RESET can't be called with master nodes containing keys"));
    } else {
        str client = clusterClientOf(c);
        logNotice("Cluster reset (user request from '%s').", strText(&client));
        strFree(&client);
        if (serverMap.myself->flags & NODE_REPLICA) serverRoleEmpty();
        char old_id[NODE_ID_LEN];
        memcpy(old_id, serverMap.myself->id, NODE_ID_LEN);
        busReset(&serverBus, hard);
        sharedReset();
        logReset(hard, old_id);
        serverRoleChanged();
        hotkeysWindowClear();
        pubsubSlotsChanged(serverRoleServes);
        replyOk(c);
    }
}

/* ------------------------------------------------------------------ epochs */

/* CLUSTER SET-CONFIG-EPOCH epoch: allowed only before the node joins a cluster. Reply: OK. */
void clusterSetConfigEpochCommand(ctx *c) {
    int64_t epoch;
    if (!clusterIsNode(c) || !ctxArgInt(c, 2, &epoch)) return;
    if (epoch < 0) {
        replyErrorFormat(c, "ERR Invalid config epoch specified: %lld", (long long)epoch);
    } else if (serverMap.node_count > 1) {
        replyError(c,
                   SLICE("ERR The user can assign a config epoch only when the node does not know "
                         "any other node."));
    } else if (serverMap.myself->epoch != 0) {
        replyError(c, SLICE("ERR Node config epoch is already non-zero"));
    } else {
        clusterMapSetNodeEpoch(&serverMap, serverMap.myself, (uint64_t)epoch);
        clusterMapSetEpochs(&serverMap, clusterMapGreatestEpoch(&serverMap), serverMap.vote_epoch);
        replyOk(c);
    }
}

/* CLUSTER BUMPEPOCH. Reply: BUMPED or STILL, and the epoch. */
void clusterBumpepochCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    if (serverMap.myself->flags & NODE_REPLICA) {
        replyError(c, SLICE("ERR This node is a replica: its epoch is that of its primary"));
        return;
    }
    bool bumped = clusterMapBumpEpoch(&serverMap);
    str text = STR_EMPTY;
    strAppendFormat(&text, "%s %llu", bumped ? "BUMPED" : "STILL",
                    (unsigned long long)serverMap.myself->epoch);
    replyStatus(c, strSlice(&text));
    strFree(&text);
}

/* CLUSTER SAVECONFIG. Reply: OK. */
void clusterSaveconfigCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    reason why;
    if (serverMapSave(&why) == OK) {
        replyOk(c);
    } else {
        replyErrorFormat(c, "ERR error saving the cluster node config: %s", why.text);
    }
}
