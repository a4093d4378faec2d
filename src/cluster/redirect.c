/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The gate that redirects requests to the node that serves their slot. All keys of a request, or of
 * a whole transaction at EXEC, must be in one slot. Main thread only. */
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/endpoint.h"
#include "cluster/open_requests.h"
#include "cluster/procs.h"
#include "cluster/redirect.h"
#include "cluster/server_map.h"
#include "engine/block.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "store/store.h"

/* True if the first argument is the only key. */
static bool hasOneKey(const command *cmd, int argc) {
    return cmd->first_key == 1 && cmd->last_key == 1 && argc > 1 && !(cmd->flags & CMD_MOVABLEKEYS);
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

static bool isOfChannels(void *arg, const command *cmd, const slice *argv, int argc) {
    (void)arg;
    return commandUsesShardChannels(cmd) ||
           commandSlots(COMMAND_NO_SLOT, cmd, argv, argc) == COMMAND_NO_SLOT;
}

typedef struct demand {
    int slot;
    bool writes, reads_replica; /* reads_replica: of a client that sent READONLY */
    bool uses_channels;         /* of shards */
    bool asks;                  /* of a client that sent ASKING */
} demand;

static demand demandOf(const ctx *c, int slot) {
    const ctx *outermost = c; /* the client of a script decides for its commands */
    while (outermost->outer) outermost = outermost->outer;
    demand d = {.slot = slot,
                .reads_replica = outermost->who->flags & SESSION_READONLY,
                .asks = outermost->who->flags & SESSION_ASKING};
    /* It was admitted: after ASKING if the slot is not here. */
    if (jobStores(outermost->who)) d.asks = true;
    /* A module that calls outside of a command has none. */
    if (outermost->cmd && outermost->cmd->flags & CMD_ASKING) d.asks = true;
    if (c->cmd->flags & CMD_RUNS_QUEUE) {
        d.writes = transactionHas(c->who, CMD_WRITE);
        d.uses_channels = c->argc == 1 && transactionEach(c->who, isOfChannels, NULL);
    } else {
        d.writes = transactionFlagsOf(c) & CMD_WRITE; /* a script declares it in its header */
        d.uses_channels = commandUsesShardChannels(c->cmd);
    }
    return d;
}

typedef enum verdict {
    SERVED,
    GIVEN_AWAY, /* the slot is being moved to another node: served if the keys are here */
    TAKEN_OVER, /* the slot is being moved to this node */
    ASK,
    TRY_AGAIN,
    SEVERAL_SLOTS,
    NOT_ASSIGNED,
    DOWN,
    DOWN_FOR_WRITES,
    ELSEWHERE
} verdict;

static verdict judgeState(const demand *d) {
    if (serverClusterState.ok) return SERVED;
    if (d->uses_channels) return clusterConf.cluster_allow_pubsubshard_when_down ? SERVED : DOWN;
    if (!clusterConf.cluster_allow_reads_when_down) return DOWN;
    return d->writes ? DOWN_FOR_WRITES : SERVED;
}

static verdict judgeOwner(const demand *d) {
    const clusterNode *owner = clusterMapOwner(&serverMap, d->slot);
    const clusterNode *myself = serverMap.myself;
    if (!owner) return NOT_ASSIGNED;
    bool is_primary = myself->flags & NODE_PRIMARY;
    /* A replica serves shard channels, and reads of clients that want that. */
    bool serves = is_primary || d->uses_channels || (d->reads_replica && !d->writes);
    if (owner == (is_primary ? myself : myself->primary)) {
        bool is_given = clusterMapOpenSlot(&serverMap, SLOT_MIGRATING, d->slot);
        if (is_given && !d->uses_channels && (is_primary || d->reads_replica)) return GIVEN_AWAY;
        return serves ? SERVED : ELSEWHERE;
    }
    if (!serves || !d->asks || !clusterMapOpenSlot(&serverMap, SLOT_IMPORTING, d->slot))
        return ELSEWHERE;
    return d->uses_channels ? SERVED : TAKEN_OVER;
}

static verdict judge(const demand *d) {
    if (d->slot == COMMAND_SEVERAL_SLOTS) return SEVERAL_SLOTS;
    if (!clusterMapOwner(&serverMap, d->slot)) return NOT_ASSIGNED;
    verdict state = judgeState(d);
    return state == SERVED ? judgeOwner(d) : state;
}

/* True if the slot is being moved, also without ASKING. */
static bool isOpen(const demand *d, verdict found) {
    if (found == GIVEN_AWAY || found == TAKEN_OVER) return true;
    bool is_primary = serverMap.myself->flags & NODE_PRIMARY;
    return found == ELSEWHERE && (is_primary || d->reads_replica) &&
           clusterMapOpenSlot(&serverMap, SLOT_IMPORTING, d->slot);
}

/* A request on a slot that is being moved: by where its keys are. MIGRATE runs in any case, and
 * queued commands are judged at EXEC. */
static verdict judgeKeys(const ctx *c, const demand *d, verdict found) {
    bool queued = c->who->flags & SESSION_IN_MULTI && c->origin == ORIGIN_CLIENT &&
                  !(c->cmd->flags & (CMD_RUNS_QUEUE | CMD_AT_ONCE));
    check(found == GIVEN_AWAY || found == TAKEN_OVER);
    if (queued || c->cmd->proc == migrateCommand) return SERVED;
    openPresence presence = openRequestPresence(c);
    check(c->origin != ORIGIN_PRIMARY);
    if (presence == OPEN_SOME_HERE) return TRY_AGAIN;
    if (found == TAKEN_OVER) return presence == OPEN_NONE_HERE ? TRY_AGAIN : SERVED;
    if (presence != OPEN_ALL_HERE) return ASK;
    bool is_replica = serverMap.myself->flags & NODE_REPLICA;
    return is_replica && d->writes ? ELSEWHERE : SERVED;
}

/* ------------------------------------------------------------------ errors */

/* Appends the error for a client. */
static void explain(str *out, verdict why, int slot, const session *who) {
    check(why != SERVED);
    switch (why) {
    case SEVERAL_SLOTS:
        strAppendText(out, "CROSSSLOT Keys in request don't hash to the same slot");
        return;
    case NOT_ASSIGNED: strAppendText(out, "CLUSTERDOWN Hash slot not served"); return;
    case DOWN: strAppendText(out, "CLUSTERDOWN The cluster is down"); return;
    case DOWN_FOR_WRITES:
        strAppendText(out, "CLUSTERDOWN The cluster is down and only accepts read commands");
        return;
    case TRY_AGAIN:
        strAppendText(out, "TRYAGAIN Multiple keys request during rehashing of slot");
        return;
    default: break;
    }
    const clusterNode *to = why == ASK ? clusterMapOpenSlot(&serverMap, SLOT_MIGRATING, slot)
                                       : clusterMapOwner(&serverMap, slot);
    const nodeViewer viewer = endpointViewer(who);
    slice host = endpointHost(to, &viewer);
    strAppendFormat(out, "%s %d %.*s:%d", why == ASK ? "ASK" : "MOVED", slot, (int)host.len,
                    host.ptr ? host.ptr : "", clusterNodePortFor(to, &viewer));
}

/* The same for scripts. */
static void explainInScript(str *out, verdict why, slice name) {
    if (why == DOWN) {
        strAppendFormat(out, "ERR Can not execute a command '%.*s' while the cluster is down",
                        (int)name.len, name.ptr);
    } else if (why == DOWN_FOR_WRITES) {
        strAppendFormat(out,
                        "ERR Can not execute a write command '%.*s' while the cluster is down and "
                        "readonly",
                        (int)name.len, name.ptr);
    } else {
        strAppendText(out, "ERR Attempted to access a non local key in a cluster node");
    }
}

/* ------------------------------------------------------------------ waits */

/* Ends the wait of a client if its command would be redirected or refused now. */
static void endIfMoved(session *s, void *arg) {
    (void)arg;
    const command *cmd = blockCommand(s);
    demand d = {.slot = blockSlot(s),
                .writes = cmd->flags & CMD_WRITE,
                .reads_replica = s->flags & SESSION_READONLY,
                .asks = true}; /* else it would not wait here */
    if (d.slot < 0 || s->flags & SESSION_INTERNAL) return;
    /* That the cluster is down comes first here: when a slot is lost, it often is. */
    verdict found = judgeState(&d);
    if (found == SERVED) found = judgeOwner(&d);
    if (found == SERVED || found == GIVEN_AWAY || found == TAKEN_OVER) return;
    str text = STR_EMPTY;
    explain(&text, found, d.slot, s);
    (void)blockEnd(s, strSlice(&text)); /* it is blocked */
    strFree(&text);
}

void redirectBlocked(void) {
    check(clusterIsEnabled());
    check(!engineHot.current);
    if (!blockedKeyCount()) return;
    const blockFilter keys = {.kind = BLOCK_KEYS, .db_id = -1, .slot = -1};
    blockEach(&keys, endIfMoved, NULL);
}

/* ------------------------------------------------------------------ commands */

void redirectAsk(ctx *c, int slot) {
    str text = STR_EMPTY;
    check(clusterMapOpenSlot(&serverMap, SLOT_MIGRATING, slot));
    explain(&text, ASK, slot, c->who);
    replyError(c, strSlice(&text));
    strFree(&text);
}

/* ------------------------------------------------------------------ the gate */

/* SUNSUBSCRIBE is about this connection alone. When the slot has left, the subscriptions have ended
 * here, and nobody else could confirm it to a client that asks nevertheless. */
static bool endsSubscription(const ctx *c, int slot) {
    return slot != COMMAND_SEVERAL_SLOTS && commandUsesShardChannels(c->cmd) &&
           sliceIs(c->cmd->name, "sunsubscribe");
}

/* Handles all requests but the simple case: one key, in a slot of this node, in a cluster that is
 * up. */
static NO_INLINE gateVerdict redirectOther(ctx *c, int slot) {
    if (slot == COMMAND_NO_SLOT || endsSubscription(c, slot)) return GATE_PASS;
    demand d = demandOf(c, slot);
    if (c->cmd->proc == migrateCommand) d.asks = true;
    verdict found = judge(&d);
    if (isOpen(&d, found) && openRequestUsesDatabases(c)) found = TRY_AGAIN;
    if (found == GIVEN_AWAY || found == TAKEN_OVER) found = judgeKeys(c, &d, found);
    if (found == SERVED) return GATE_PASS;
    str text = STR_EMPTY;
    if (c->origin == ORIGIN_SCRIPT || c->origin == ORIGIN_MODULE) {
        explainInScript(&text, found, c->origin == ORIGIN_MODULE ? c->cmd->name : c->argv[0]);
    } else {
        explain(&text, found, slot, c->who);
    }
    gateVerdict refused = refuse(c, strSlice(&text));
    strFree(&text);
    return refused;
}

/* The slot of the keys of a request; for EXEC, of the queued requests and of its conditions. */
static int slotOfKeys(ctx *c) {
    int slot = COMMAND_NO_SLOT;
    if (c->cmd->flags & CMD_RUNS_QUEUE) {
        if (!(c->who->flags & SESSION_IN_MULTI)) return slot; /* EXEC will reply an error */
        slot = transactionSlot(c->who);
    }
    return commandSlots(slot, c->cmd, c->argv, c->argc);
}

static inline bool isServed(int slot) {
    return likely(clusterMapIsSettled(&serverMap, slot)) && likely(serverClusterState.ok);
}

static NO_INLINE gateVerdict redirectKeys(ctx *c) {
    int slot = slotOfKeys(c);
    return slot >= 0 && isServed(slot) ? GATE_PASS : redirectOther(c, slot);
}

/* The usual case calls nothing, so that it needs no registers to be saved. */
static gateVerdict redirectRequest(ctx *c) {
    if (unlikely(!hasOneKey(c->cmd, c->argc))) return redirectKeys(c);
    int slot = storeHashSlot(c->key_hash);
    return isServed(slot) ? GATE_PASS : redirectOther(c, slot);
}

/* Commands with keys, and those that run queued commands. */
static bool selects(const commandSpec *spec) {
    return spec->key_spec_count > 0 || spec->find_keys || spec->flags & CMD_RUNS_QUEUE;
}

const gate clusterRedirectGate = {
    .name = "cluster-redirect", .selects = selects, .admit = redirectRequest, .of_effects = true};
