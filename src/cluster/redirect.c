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

/* ------------------------------------------------------------------ what is served */

static bool writes(const ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE) return transactionHas(c->who, CMD_WRITE);
    return transactionFlagsOf(c) & CMD_WRITE; /* a script declares it in its header */
}

static bool isOfChannels(void *arg, const command *cmd, const slice *argv, int argc) {
    (void)arg;
    return commandUsesShardChannels(cmd) ||
           commandSlots(COMMAND_NO_SLOT, cmd, argv, argc) == COMMAND_NO_SLOT;
}

static bool usesChannels(const ctx *c) {
    if (!(c->cmd->flags & CMD_RUNS_QUEUE)) return commandUsesShardChannels(c->cmd);
    return transactionEach(c->who, isOfChannels, NULL);
}

/* The client of a script decides for its commands. */
static bool isReadonly(const ctx *c) {
    while (c->outer) c = c->outer;
    return c->who->flags & SESSION_READONLY;
}

/* A replica serves shard channels, and reads of clients that sent READONLY. */
static bool servesAsReplica(const ctx *c, const clusterNode *owner) {
    const clusterNode *myself = serverMap.myself;
    if (!(myself->flags & NODE_REPLICA) || myself->primary != owner) return false;
    return usesChannels(c) || (isReadonly(c) && !writes(c));
}

typedef enum verdict {
    SERVED,
    SEVERAL_SLOTS,
    NOT_ASSIGNED,
    DOWN,
    DOWN_FOR_WRITES,
    ELSEWHERE
} verdict;

static verdict judge(const ctx *c, int slot) {
    if (slot == COMMAND_SEVERAL_SLOTS) return SEVERAL_SLOTS;
    const clusterNode *owner = clusterMapOwner(&serverMap, slot);
    if (!owner) return NOT_ASSIGNED;
    if (!serverClusterState.ok) {
        if (usesChannels(c)) {
            if (!clusterConf.cluster_allow_pubsubshard_when_down) return DOWN;
        } else if (!clusterConf.cluster_allow_reads_when_down) {
            return DOWN;
        } else if (writes(c)) {
            return DOWN_FOR_WRITES;
        }
    }
    return owner == serverMap.myself || servesAsReplica(c, owner) ? SERVED : ELSEWHERE;
}

/* ------------------------------------------------------------------ errors */

static gateVerdict redirect(ctx *c, int slot) {
    const clusterNode *owner = clusterMapOwner(&serverMap, slot);
    check(owner);
    const nodeViewer viewer = endpointViewer(c);
    slice endpoint = endpointHost(owner, &viewer);
    str text = STR_EMPTY;
    strAppendFormat(&text, "MOVED %d %.*s:%d", slot, (int)endpoint.len,
                    endpoint.ptr ? endpoint.ptr : "", clusterNodePortFor(owner, &viewer));
    gateVerdict refused = refuse(c, strSlice(&text));
    strFree(&text);
    return refused;
}

/* The texts that scripts receive. */
static gateVerdict refuseInScript(ctx *c, verdict why) {
    const int len = (int)c->argv[0].len;
    str text = STR_EMPTY;
    if (why == DOWN) {
        strAppendFormat(&text, "ERR Can not execute a command '%.*s' while the cluster is down",
                        len, c->argv[0].ptr);
    } else if (why == DOWN_FOR_WRITES) {
        strAppendFormat(&text,
                        "ERR Can not execute a write command '%.*s' while the cluster is down and "
                        "readonly",
                        len, c->argv[0].ptr);
    } else {
        strAppendText(&text, "ERR Attempted to access a non local key in a cluster node");
    }
    gateVerdict refused = refuse(c, strSlice(&text));
    strFree(&text);
    return refused;
}

static gateVerdict refuseFor(ctx *c, verdict why, int slot) {
    check(why != SERVED);
    if (c->origin == ORIGIN_SCRIPT) return refuseInScript(c, why);
    switch (why) {
    case SEVERAL_SLOTS:
        return refuse(c, SLICE("CROSSSLOT Keys in request don't hash to the same slot"));
    case NOT_ASSIGNED: return refuse(c, SLICE("CLUSTERDOWN Hash slot not served"));
    case DOWN: return refuse(c, SLICE("CLUSTERDOWN The cluster is down"));
    case DOWN_FOR_WRITES:
        return refuse(c, SLICE("CLUSTERDOWN The cluster is down and only accepts read commands"));
    default: return redirect(c, slot);
    }
}

/* ------------------------------------------------------------------ the gate */

/* What is not a request with one key, of a slot of this node, in a cluster that is up. */
static gateVerdict redirectOther(ctx *c, int slot) {
    if (slot == COMMAND_NO_SLOT) return GATE_PASS;
    verdict found = judge(c, slot);
    return found == SERVED ? GATE_PASS : refuseFor(c, found, slot);
}

static int slotOfKeys(ctx *c) {
    int slot = COMMAND_NO_SLOT;
    if (c->cmd->flags & CMD_RUNS_QUEUE) {
        (void)transactionEach(c->who, addQueued, &slot); /* the result is in `slot` */
        return slot;
    }
    return commandSlots(slot, c->cmd, c->argv, c->argc);
}

static gateVerdict redirectRequest(ctx *c) {
    int slot = likely(hasOneKey(c->cmd, c->argc)) ? storeHashSlot(c->key_hash) : slotOfKeys(c);
    if (likely(slot >= 0) && likely(clusterMapIsMine(&serverMap, slot)) &&
        likely(serverClusterState.ok))
        return GATE_PASS;
    return redirectOther(c, slot);
}

/* Commands with keys, and those that run queued commands. */
static bool selects(const commandSpec *spec) {
    return spec->key_spec_count > 0 || spec->find_keys || spec->flags & CMD_RUNS_QUEUE;
}

const gate clusterRedirectGate = {
    .name = "cluster-redirect", .selects = selects, .admit = redirectRequest};
