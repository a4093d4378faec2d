/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Applies the map to the dataset at the end of a turn: follows the primary that the map names, and
 * deletes the keys of lost slots.
 *
 * Invariant: serverRoleApply() changes nothing while a command is executed or a dataset is loaded.
 * Main thread only. */
#include "cluster/server_role.h"

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/redirect.h"
#include "cluster/server_map.h"
#include "cluster/server_slots.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "repl/role.h"
#include "store/store.h"

enum { DROP_POLL_MS = 10 };

static struct {
    bool role, slots;
    bool ordered; /* CLUSTER REPLICATE: what is here may be replaced */
    bool keys;    /* keys of lost slots remain to be deleted */
} pending;

/* The shard and the node from which this node has got its data. */
static struct { char shard_id[NODE_ID_LEN], node_id[NODE_ID_LEN]; } dataset;

static void setDataset(const clusterNode *from) {
    memcpy(dataset.shard_id, from->shard_id, NODE_ID_LEN);
    memcpy(dataset.node_id, from->id, NODE_ID_LEN);
}

/* Within a shard all have the data of one stream. The offset in another one would count in an
 * election as if it were in this one. */
static bool hasDataOf(const clusterNode *primary) {
    return !dataset.shard_id[0] || !memcmp(dataset.shard_id, primary->shard_id, NODE_ID_LEN) ||
           !memcmp(dataset.node_id, primary->id, NODE_ID_LEN);
}

void serverRoleChanged(void) { pending.role = true; }
void serverRoleOrdered(void) { pending.role = pending.ordered = true; }
bool serverRoleIsPending(void) { return pending.role; }
bool serverRoleDeletes(void) { return pending.slots || pending.keys; }
void serverRoleSlotsLost(void) { pending.slots = true; }

void serverRoleVerify(void) {
    serverSlotsVerify();
    pending.keys = true;
}

bool serverRoleServes(int slot) {
    const clusterNode *primary = clusterNodePrimary(serverMap.myself);
    return primary && clusterMapOwner(&serverMap, slot) == primary;
}

/* False if the address of the primary is not known yet. */
static bool findPrimary(slice *host, int *port) {
    const clusterNode *primary = serverMap.myself->primary;
    if (!primary) return false;
    *host = strSlice(&primary->ip);
    *port = clusterNodePort(primary, netTlsForReplication());
    return host->len > 0 && *port > 0;
}

void serverRoleInit(void) {
    slice host;
    int port;
    check(serverMap.myself);
    if (!findPrimary(&host, &port)) {
        pending.role = true;
        return;
    }
    replFollowAtStart(host, port);
    setDataset(serverMap.myself->primary);
}

static void applyRole(void) {
    check(!engineHot.current);
    check(serverMap.myself);
    const clusterNode *myself = serverMap.myself, *primary = myself->primary;
    slice host;
    int port;
    pending.role = false;
    if (myself->flags & NODE_PRIMARY) {
        setDataset(myself);
        if (!replIsReplica()) return;
        replPromote();
        serverRoleVerify();
    } else if (findPrimary(&host, &port)) { /* else its address follows */
        keyspaceDropForget();
        redirectBlocked(); /* the others are told that the role has changed */
        if (!hasDataOf(primary)) {
            replFollowStranger(host, port);
        } else if (pending.ordered) {
            (void)replFollow(host, port); /* false: it does already */
        } else {
            replFollowMoved(host, port);
        }
        pending.ordered = false;
        setDataset(primary);
    }
}

bool serverRoleIsLinked(void) {
    replLinkInfo link;
    replLinkRead(&link);
    return !pending.role && link.phase == REPL_LINK_UP;
}

void serverRoleApply(void) {
    if (likely(!pending.role && !pending.slots && !pending.keys)) return;
    if (engineHot.current || engineHot.loading) return;
    if (pending.role) applyRole();
    if (pending.slots) {
        pending.slots = false;
        pending.keys = true;
        pubsubSlotsChanged(serverRoleServes);
    }
    /* A replica that takes over is waited for: the stream must not get longer. */
    if (pauseIsFor(PAUSE_FOR_FAILOVER)) return;
    if (!pending.keys) return;
    /* After a restart this node must not believe to own slots whose keys it has deleted. */
    if (mapSavesIsPending(&serverMapSaves)) return;
    pending.keys = serverSlotsDeleteLost();
    /* The rest follows in the next turns, and what callbacks of modules have caused. */
    loopLimitSleep(engineLoop(), keyspaceDropWaits() ? DROP_POLL_MS : 0);
}

void serverRoleEmpty(void) {
    dbEvent event = {.kind = DB_FLUSHING, .db_id = -1, .later = true};
    hooksDbEvent(&event);
    (void)storeFlush(keyspaceMain(), true); /* the number of keys does not matter */
    const slice words[] = {SLICE("FLUSHALL")};
    propagateCopy((propagateTo){.db_id = 0, .targets = PROPAGATE_AOF, .slot = -1}, 1, words);
    event.kind = DB_FLUSHED;
    hooksDbEvent(&event);
}
