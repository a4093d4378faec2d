/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER, READONLY, READWRITE. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/cluster_report.h"
#include "cluster/server_map.h"
#include "cluster/procs.h"
#include "engine/reply.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "store/store.h"

/* True if the server is a cluster node. False: the error was replied. */
static bool isNode(ctx *c) {
    if (clusterIsEnabled()) return true;
    replyError(c, SLICE("ERR This instance has cluster support disabled"));
    return false;
}

/* ------------------------------------------------------------------ keys of a slot */

/* CLUSTER KEYSLOT key. Reply: its slot. */
void clusterKeyslotCommand(ctx *c) { replyInteger(c, hashSlot(c->argv[2])); }

/* CLUSTER COUNTKEYSINSLOT slot. Reply: number of keys of the slot in this database. */
void clusterCountkeysinslotCommand(ctx *c) {
    int64_t slot;
    if (!isNode(c) || !ctxArgInt(c, 2, &slot)) return;
    if (slot < 0 || slot >= SLOT_COUNT) {
        replyError(c, SLICE("ERR Invalid slot"));
        return;
    }
    replyInteger(c, (int64_t)dbSlotCount(c->db, (int)slot));
}

typedef struct slotKeys {
    ctx *c;
    int64_t found, want;
} slotKeys;

static void visitKey(void *arg, const robj *o) {
    slotKeys *k = arg;
    if (k->found == k->want) return;
    replyBulk(k->c, objectKey(o));
    k->found++;
}

/* CLUSTER GETKEYSINSLOT slot count. Reply: up to `count` keys of the slot in this database. */
void clusterGetkeysinslotCommand(ctx *c) {
    int64_t slot, count;
    if (!isNode(c) || !ctxArgInt(c, 2, &slot) || !ctxArgInt(c, 3, &count)) return;
    if (slot < 0 || slot >= SLOT_COUNT || count < 0) {
        replyError(c, SLICE("ERR Invalid slot or number of keys"));
        return;
    }
    slotKeys k = {.c = c, .want = count};
    uint64_t cursor = 0;
    respDeferred head = respDeferBegin(c->out);
    do {
        cursor = dbScan(c->db, cursor, (int)slot, visitKey, &k);
    } while (cursor && k.found < k.want);
    respDeferEnd(c->out, head, '*', c->proto, k.found);
}

static bool slotArg(ctx *c, int arg_index, int *out) {
    int64_t slot;
    if (numberParseInt(c->argv[arg_index], &slot) && slot >= 0 && slot < SLOT_COUNT) {
        *out = (int)slot;
        return true;
    }
    replyError(c, SLICE("ERR Invalid or out of range slot"));
    return false;
}

static void notifyDeleted(void *arg, const robj *o) {
    ctxTellObservers(arg, objectKey(o), &eventDel);
}

/* CLUSTER FLUSHSLOT slot [ASYNC|SYNC]: deletes the keys of a slot in all databases. Reply: OK. */
void clusterFlushslotCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    int slot;
    if (!isNode(c) || !slotArg(c, 2, &slot)) return;
    bool now = c->argc == 4 && ctxArgIs(c, 3, "sync");
    if (c->argc > 4 || (c->argc == 4 && !now && !ctxArgIs(c, 3, "async"))) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    uint64_t removed = 0;
    db *own = c->db;
    for (int i = 0; i < storeDbCount(); i++) {
        c->db = storeDb(i);
        if (engineHot.observers) dbEach(c->db, slot, notifyDeleted, c);
        removed += dbFlushSlot(c->db, slot, !now);
    }
    c->db = own;
    if (removed) ctxDatasetChanged(c, removed);
    replyOk(c);
}

/* ------------------------------------------------------------------ slot assignment */

typedef struct slotSet {
    uint64_t bits[SLOT_WORDS];
} slotSet;

/* Adds a slot that is to be assigned (`assign`) or unassigned. False: the error was replied. */
static bool addToSet(ctx *c, slotSet *set, int slot, bool assign) {
    const char *error = NULL;
    if (assign && clusterMapOwner(&serverMap, slot)) error = "ERR Slot %d is already busy";
    if (!assign && !clusterMapOwner(&serverMap, slot)) error = "ERR Slot %d is already unassigned";
    if (!error && set->bits[slot / 64] >> slot % 64 & 1)
        error = "ERR Slot %d specified multiple times";
    if (error) {
        str text = STR_EMPTY;
        strAppendFormat(&text, error, slot);
        replyError(c, strSlice(&text));
        strFree(&text);
        return false;
    }
    set->bits[slot / 64] |= UINT64_C(1) << slot % 64;
    return true;
}

static bool parseSlots(ctx *c, slotSet *set, bool assign) {
    int slot;
    for (int i = 2; i < c->argc; i++) {
        if (!slotArg(c, i, &slot)) return false;
    }
    for (int i = 2; i < c->argc; i++) {
        if (!slotArg(c, i, &slot) || !addToSet(c, set, slot, assign)) return false;
    }
    return true;
}

static bool parseRanges(ctx *c, slotSet *set, bool assign) {
    if (c->argc % 2) {
        replyErrorArity(c);
        return false;
    }
    for (int i = 2; i < c->argc; i += 2) {
        int first, last;
        if (!slotArg(c, i, &first) || !slotArg(c, i + 1, &last)) return false;
        if (first > last) {
            replyErrorFormat(c, "ERR start slot number %d is greater than end slot number %d",
                             first, last);
            return false;
        }
        for (int slot = first; slot <= last; slot++) {
            if (!addToSet(c, set, slot, assign)) return false;
        }
    }
    return true;
}

/* Assigns slots to this node, or unassigns them. Nothing is changed unless all of them are
 * valid. */
static void changeSlots(ctx *c, bool ranges, bool assign) {
    slotSet set = {{0}};
    if (!isNode(c)) return;
    if (!(ranges ? parseRanges : parseSlots)(c, &set, assign)) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (set.bits[slot / 64] >> slot % 64 & 1)
            clusterMapSetOwner(&serverMap, slot, assign ? serverMap.myself : NULL);
    }
    if (!assign) pubsubSlotsChanged(serverMapIsMine);
    replyOk(c);
}

/* CLUSTER ADDSLOTS slot [slot ...]. Reply: OK, as for all commands in this section. */
void clusterAddslotsCommand(ctx *c) { changeSlots(c, false, true); }
/* CLUSTER ADDSLOTSRANGE start end [start end ...]. */
void clusterAddslotsrangeCommand(ctx *c) { changeSlots(c, true, true); }
/* CLUSTER DELSLOTS slot [slot ...]. */
void clusterDelslotsCommand(ctx *c) { changeSlots(c, false, false); }
/* CLUSTER DELSLOTSRANGE start end [start end ...]. */
void clusterDelslotsrangeCommand(ctx *c) { changeSlots(c, true, false); }

/* CLUSTER FLUSHSLOTS: unassigns all slots of this node. Reply: OK. */
void clusterFlushslotsCommand(ctx *c) {
    if (!isNode(c)) return;
    if (keyspaceKeyCount(keyspaceMain())) {
        replyError(c, SLICE("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
        return;
    }
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (clusterMapOwner(&serverMap, slot) == serverMap.myself)
            clusterMapSetOwner(&serverMap, slot, NULL);
    }
    pubsubSlotsChanged(serverMapIsMine);
    replyOk(c);
}

static void logReset(bool hard) {
    const clusterNode *myself = serverMap.myself;
    if (hard) logNotice("Node hard reset, now I'm %.40s", myself->id);
    logNotice("Moving myself to a new shard %.40s.", myself->shard_id);
}

/* CLUSTER RESET [HARD|SOFT]: the node leaves its cluster. Reply: OK. */
void clusterResetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (!isNode(c)) return;
    bool hard = c->argc == 3 && ctxArgIs(c, 2, "hard");
    if (c->argc > 3) {
        replyErrorSubcommand(c);
    } else if (c->argc == 3 && !hard && !ctxArgIs(c, 2, "soft")) {
        replyError(c, ERR_SYNTAX_TEXT);
    } else if (serverMap.myself->flags & NODE_PRIMARY && keyspaceKeyCount(keyspaceMain())) {
        replyError(c, SLICE("ERR CLUSTER RESET can't be called with master nodes containing keys"));
    } else {
        logNotice("Cluster reset (requested by client %llu)", (unsigned long long)c->who->id);
        clusterMapReset(&serverMap, hard);
        logReset(hard);
        pubsubSlotsChanged(serverMapIsMine);
        replyOk(c);
    }
}

/* ------------------------------------------------------------------ epochs */

/* CLUSTER SET-CONFIG-EPOCH epoch: allowed only before the node joins a cluster. Reply: OK. */
void clusterSetConfigEpochCommand(ctx *c) {
    int64_t epoch;
    if (!isNode(c) || !ctxArgInt(c, 2, &epoch)) return;
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
    if (!isNode(c)) return;
    bool bumped = clusterMapBumpEpoch(&serverMap);
    str text = STR_EMPTY;
    strAppendFormat(&text, "%s %llu", bumped ? "BUMPED" : "STILL",
                    (unsigned long long)serverMap.myself->epoch);
    replyStatus(c, strSlice(&text));
    strFree(&text);
}

/* CLUSTER SAVECONFIG. Reply: OK. */
void clusterSaveconfigCommand(ctx *c) {
    if (!isNode(c)) return;
    reason why;
    if (serverMapSave(&why) == OK) {
        replyOk(c);
    } else {
        replyErrorFormat(c, "ERR error saving the cluster node config: %s", why.text);
    }
}

/* ------------------------------------------------------------------ reports */

/* CLUSTER MYID. */
void clusterMyidCommand(ctx *c) {
    if (isNode(c)) replyBulk(c, clusterNodeId(serverMap.myself));
}

/* CLUSTER MYSHARDID. */
void clusterMyshardidCommand(ctx *c) {
    if (isNode(c)) replyBulk(c, sliceMake(serverMap.myself->shard_id, NODE_ID_LEN));
}

static void describe(str *out, const clusterNode *n) {
    clusterNodeDescribe(out, &serverMap, n, NODE_TEXT_REPORT, netTlsForCluster());
}

/* CLUSTER NODES. Reply: one line per node. */
void clusterNodesCommand(ctx *c) {
    if (!isNode(c)) return;
    str text = STR_EMPTY;
    for (int i = 0; i < serverMap.node_count; i++) {
        describe(&text, serverMap.nodes[i]);
        strAppendByte(&text, '\n');
    }
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* CLUSTER REPLICAS node-id (and SLAVES). Reply: the lines of the replicas as in CLUSTER NODES. */
void clusterReplicasCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (!isNode(c)) return;
    const clusterNode *primary = clusterMapFind(&serverMap, c->argv[2]);
    if (!primary) {
        replyErrorFormat(c, "ERR Unknown node %.*s", (int)c->argv[2].len, c->argv[2].ptr);
        return;
    }
    if (primary->flags & NODE_REPLICA) {
        replyError(c, SLICE("ERR The specified node is not a master"));
        return;
    }
    replyArray(c, primary->replica_count);
    for (int i = 0; i < primary->replica_count; i++) {
        str text = STR_EMPTY;
        describe(&text, primary->replicas[i]);
        replyBulk(c, strSlice(&text));
        strFree(&text);
    }
}

void clusterSlavesCommand(ctx *c) { clusterReplicasCommand(c); }

/* CLUSTER INFO. Reply: lines of text. */
void clusterInfoCommand(ctx *c) {
    if (!isNode(c)) return;
    str text = STR_EMPTY;
    clusterPrintInfo(&text);
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* CLUSTER SLOTS. Reply: slot ranges, each with the nodes that serve it. */
void clusterSlotsCommand(ctx *c) {
    if (isNode(c)) clusterReplySlots(c);
}

/* CLUSTER SHARDS. Reply: shards, each with its slot ranges and nodes. */
void clusterShardsCommand(ctx *c) {
    if (isNode(c)) clusterReplyShards(c);
}

/* CLUSTER HELP. */
void clusterHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "COUNTKEYSINSLOT <slot>",
        "    Return the number of keys in <slot>.",
        "GETKEYSINSLOT <slot> <count>",
        "    Return key names stored by current node in a slot.",
        "INFO",
        "    Return information about the cluster.",
        "KEYSLOT <key>",
        "    Return the hash slot for <key>.",
        "MYID",
        "    Return the node id.",
        "MYSHARDID",
        "    Return the node's shard id.",
        "NODES",
        "    Return cluster configuration seen by node. Output format:",
        "    <id> <ip:port@bus-port[,hostname]> <flags> <primary> <pings> <pongs> <epoch> <link> "
        "<slot> ...",
        "REPLICAS <node-id>",
        "    Return <node-id> replicas.",
        "SLOTS",
        "    Return information about slots range mappings. Each range is made of:",
        "    start, end, primary and replicas IP addresses, ports and ids",
        "SHARDS",
        "    Return information about slot range mappings and the nodes associated with them.",
        "ADDSLOTS <slot> [<slot> ...]",
        "    Assign slots to current node.",
        "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
        "    Assign slots which are between <start-slot> and <end-slot> to current node.",
        "BUMPEPOCH",
        "    Advance the cluster config epoch.",
        "DELSLOTS <slot> [<slot> ...]",
        "    Delete slots information from current node.",
        "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
        "    Delete slots information which are between <start-slot> and <end-slot> from current "
        "node.",
        "FLUSHSLOTS",
        "    Delete current node own slots information.",
        "RESET [HARD|SOFT]",
        "    Reset current node (default: soft).",
        "SET-CONFIG-EPOCH <epoch>",
        "    Set config epoch of current node.",
        "SAVECONFIG",
        "    Force saving cluster configuration on disk.",
        NULL,
    };
    if (isNode(c)) replyHelp(c, lines);
}

/* ------------------------------------------------------------------ READONLY, READWRITE */

/* READONLY: permits reads from a replica on this connection. Reply: OK. */
void readonlyCommand(ctx *c) {
    c->who->flags |= SESSION_READONLY;
    replyOk(c);
}

/* READWRITE. Reply: OK. */
void readwriteCommand(ctx *c) {
    c->who->flags &= ~SESSION_READONLY;
    replyOk(c);
}
