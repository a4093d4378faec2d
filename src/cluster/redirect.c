/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The gate that redirects requests to the node that serves their slot. All keys of a request, or of
 * a whole transaction at EXEC, must be in one slot. Main thread only. */
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/endpoint.h"
#include "cluster/server_map.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "store/store.h"

/* True if the first argument is the only key. */
static bool hasOneKey(const command *cmd, int argc) {
    return cmd->first_key == 1 && cmd->last_key == 1 && argc > 1 && !(cmd->flags & CMD_MOVABLEKEYS);
}

static bool addQueued(void *arg, const command *cmd, const slice *argv, int argc) {
    int *slot = arg;
    *slot = commandSlots(*slot, cmd, argv, argc);
    return *slot != COMMAND_SEVERAL_SLOTS;
}

/* Refuses the request. At EXEC the transaction is discarded, too. */
static gateVerdict refuse(ctx *c, slice error) {
    if (c->cmd->flags & CMD_RUNS_QUEUE) {
        transactionDiscard(c->who);
        c->flags &= ~(uint32_t)CTX_ADMISSION;
    }
    c->flags |= CTX_REDIRECTED;
    replyError(c, error);
    return GATE_REFUSED;
}

static bool writes(const ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE) return transactionHas(c->who, CMD_WRITE);
    return c->cmd->flags & (CMD_WRITE | CMD_MAY_REPLICATE);
}

/* A replica serves reads of clients that sent READONLY. */
static bool readsFromReplica(const ctx *c, const clusterNode *owner) {
    const clusterNode *myself = serverMap.myself;
    return c->who->flags & SESSION_READONLY && myself->flags & NODE_REPLICA &&
           myself->primary == owner && !writes(c);
}

static gateVerdict redirect(ctx *c, int slot, const clusterNode *owner) {
    const nodeViewer viewer = endpointViewer(c);
    slice endpoint = endpointHost(owner, &viewer);
    str text = STR_EMPTY;
    strAppendFormat(&text, "MOVED %d %.*s:%d", slot, (int)endpoint.len,
                    endpoint.ptr ? endpoint.ptr : "", clusterNodePortFor(owner, &viewer));
    gateVerdict verdict = refuse(c, strSlice(&text));
    strFree(&text);
    return verdict;
}

/* The texts that scripts receive. */
static slice errorInScript(const ctx *c, int slot, str *text) {
    if (slot != COMMAND_SEVERAL_SLOTS && clusterMapOwner(&serverMap, slot) &&
        !serverClusterState.ok) {
        if (!clusterConf.cluster_allow_reads_when_down) {
            strAppendFormat(text, "ERR Can not execute a command '%.*s' while the cluster is down",
                            (int)c->argv[0].len, c->argv[0].ptr);
            return strSlice(text);
        }
        if (writes(c)) {
            strAppendFormat(text,
                            "ERR Can not execute a write command '%.*s' while the cluster is down "
                            "and readonly",
                            (int)c->argv[0].len, c->argv[0].ptr);
            return strSlice(text);
        }
    }
    return SLICE("ERR Attempted to access a non local key in a cluster node");
}

static gateVerdict refuseInScript(ctx *c, int slot) {
    str text = STR_EMPTY;
    gateVerdict verdict = refuse(c, errorInScript(c, slot, &text));
    strFree(&text);
    return verdict;
}

static gateVerdict redirectRequest(ctx *c) {
    int slot = COMMAND_NO_SLOT;
    if (c->cmd->flags & CMD_RUNS_QUEUE) {
        (void)transactionEach(c->who, addQueued, &slot); /* the result is in `slot` */
    } else if (likely(hasOneKey(c->cmd, c->argc))) {
        slot = storeHashSlot(c->key_hash);
    } else {
        slot = commandSlots(slot, c->cmd, c->argv, c->argc);
    }
    if (slot == COMMAND_NO_SLOT) return GATE_PASS;
    if (unlikely(c->origin == ORIGIN_SCRIPT) &&
        (slot == COMMAND_SEVERAL_SLOTS || !clusterMapIsMine(&serverMap, slot) ||
         !serverClusterState.ok))
        return refuseInScript(c, slot);
    if (slot == COMMAND_SEVERAL_SLOTS)
        return refuse(c, SLICE("CROSSSLOT Keys in request don't hash to the same slot"));
    if (likely(clusterMapIsMine(&serverMap, slot)) && likely(serverClusterState.ok))
        return GATE_PASS;
    const clusterNode *owner = clusterMapOwner(&serverMap, slot);
    if (!owner) return refuse(c, SLICE("CLUSTERDOWN Hash slot not served"));
    if (!serverClusterState.ok && commandUsesShardChannels(c->cmd)) {
        if (!clusterConf.cluster_allow_pubsubshard_when_down)
            return refuse(c, SLICE("CLUSTERDOWN The cluster is down"));
    } else if (!serverClusterState.ok) {
        if (!clusterConf.cluster_allow_reads_when_down)
            return refuse(c, SLICE("CLUSTERDOWN The cluster is down"));
        if (writes(c))
            return refuse(c,
                          SLICE("CLUSTERDOWN The cluster is down and only accepts read commands"));
    }
    if (owner == serverMap.myself || readsFromReplica(c, owner)) return GATE_PASS;
    return redirect(c, slot, owner);
}

/* Commands with keys, and those that run queued commands. */
static bool selects(const commandSpec *spec) {
    return spec->key_spec_count > 0 || spec->find_keys || spec->flags & CMD_RUNS_QUEUE;
}

const gate clusterRedirectGate = {
    .name = "cluster-redirect", .selects = selects, .admit = redirectRequest};
