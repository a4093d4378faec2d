/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/server_role.h"

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/redirect.h"
#include "cluster/server_map.h"
#include "cluster/server_slots.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/propagate.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "repl/role.h"
#include "store/store.h"

static struct { bool role, slots; } pending;

void serverRoleChanged(void) { pending.role = true; }
void serverRoleSlotsLost(void) { pending.slots = true; }

bool serverRoleServes(int slot) {
    const clusterNode *primary = clusterNodePrimary(serverMap.myself);
    return primary && clusterMapOwner(&serverMap, slot) == primary;
}

static void applyRole(void) {
    check(!engineHot.current);
    check(serverMap.myself);
    const clusterNode *myself = serverMap.myself, *primary = myself->primary;
    int port = primary ? clusterNodePort(primary, netTlsForReplication()) : 0;
    pending.role = false;
    if (myself->flags & NODE_PRIMARY) {
        if (!replIsReplica()) return;
        replPromote();
        serverSlotsVerify();
    } else if (primary && primary->ip.len && port > 0) { /* else its address follows */
        redirectBlocked(); /* the others are told that the role has changed */
        (void)replFollow(strSlice(&primary->ip), port); /* false: it does already */
    }
}

bool serverRoleIsLinked(void) {
    replLinkInfo link;
    replLinkRead(&link);
    return !pending.role && link.phase == REPL_LINK_UP;
}

void serverRoleApply(void) {
    if (likely(!pending.role && !pending.slots)) return;
    if (engineHot.current || engineHot.loading) return;
    if (pending.role) applyRole();
    if (!pending.slots) return;
    pending.slots = false;
    serverSlotsDeleteLost();
    pubsubSlotsChanged(serverRoleServes);
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
