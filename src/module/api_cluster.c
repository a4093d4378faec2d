/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: messages to other nodes of the cluster, and what is known of the nodes. A
 * message is delivered to the module with the id of the sender's module. As in Valkey, the id is
 * made of a module's name if that has nine characters, and is 0 otherwise.
 *
 * Main thread, or a thread that has the lock. */
#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "cluster/cluster.h"
#include "cluster/peers.h"
#include "format/rdb_module.h"
#include "module/cluster_messages.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "net/net.h"

enum {
    ID_LEN = VALKEYMODULE_NODE_ID_LEN,
    IP_SIZE = 46, /* what GetClusterNodeInfo() writes at most */
};

/* ------------------------------------------------------------------ messages */

typedef struct messageReceiver {
    struct messageReceiver *next;
    module *owner;
    uint64_t module_id;
    uint8_t type;
    ValkeyModuleClusterMessageReceiver func;
} messageReceiver;

static messageReceiver *receivers;

static uint64_t messageId(const module *m) { return rdbModuleId(sliceOf(m->name), 0); }

typedef struct receivedMessage {
    const messageReceiver *by;
    slice sender, payload;
} receivedMessage;

static void deliver(ValkeyModuleCtx *x, void *arg) {
    const receivedMessage *m = arg;
    hotCheck(m->sender.len == ID_LEN);
    hotCheck(m->by->func);
    char sender[ID_LEN + 1] = "";
    memcpy(sender, m->sender.ptr, sizeMin(m->sender.len, ID_LEN));
    m->by->func(x, sender, m->by->type, (const unsigned char *)m->payload.ptr,
                (uint32_t)m->payload.len);
}

static void receive(slice sender_id, uint64_t module_id, uint8_t type, slice payload) {
    for (messageReceiver *r = receivers; r; r = r->next) {
        if (r->module_id != module_id || r->type != type) continue;
        receivedMessage m = {r, sender_id, payload};
        contextRun(r->owner, 0, deliver, &m);
        return; /* it may have changed the list */
    }
}

/* Removes the receivers of a module: of one type, or (-1) all. */
static void removeReceivers(const module *m, int type) {
    hotCheck(type <= UINT8_MAX);
    for (messageReceiver **at = &receivers; *at;) {
        messageReceiver *r = *at;
        if (r->owner != m || (type >= 0 && r->type != type)) {
            at = &r->next;
            continue;
        }
        hotCheck(r->owner == m);
        *at = r->next;
        memFree(r);
    }
    if (!receivers) clusterPeerSetReceiver(NULL);
}

void clusterMessagesRemove(module *m) { removeReceivers(m, -1); }

void apiRegisterClusterMessageReceiver(ValkeyModuleCtx *ctx, uint8_t type,
                                       ValkeyModuleClusterMessageReceiver callback) {
    if (!clusterIsEnabled() || !ctx->module) return;
    removeReceivers(ctx->module, type);
    if (!callback) return;
    messageReceiver *r = memNew(messageReceiver);
    *r = (messageReceiver){receivers, ctx->module, messageId(ctx->module), type, callback};
    receivers = r;
    clusterPeerSetReceiver(receive);
}

int apiSendClusterMessage(ValkeyModuleCtx *ctx, const char *target_id, uint8_t type,
                          const char *msg, uint32_t len) {
    if (!ctx->module) return VALKEYMODULE_ERR;
    slice id = target_id ? sliceMake(target_id, strnlen(target_id, ID_LEN)) : SLICE("");
    bool sent = clusterPeerSend(id, messageId(ctx->module), type, sliceMake(msg, len));
    return sent ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

/* ------------------------------------------------------------------ nodes */

typedef struct idList {
    char **ids;
    size_t count;
} idList;

static void addId(slice id, void *arg) {
    idList *l = arg;
    hotCheck(id.len == ID_LEN);
    l->ids = memRealloc(l->ids, (l->count + 2) * sizeof(*l->ids));
    l->ids[l->count++] = memDup(id.ptr, id.len);
    l->ids[l->count] = NULL;
}

char **apiGetClusterNodesList(ValkeyModuleCtx *ctx, size_t *numnodes) {
    (void)ctx; /* there is one cluster */
    if (!clusterIsEnabled()) return NULL;
    idList l = {NULL, 0};
    clusterPeersEach(addId, &l);
    *numnodes = l.count;
    return l.ids;
}

void apiFreeClusterNodesList(char **ids) {
    for (char **id = ids; id && *id; id++) memFree(*id);
    memFree(ids);
}

const char *apiGetMyClusterID(void) { return clusterPeerMyself().ptr; }
size_t apiGetClusterSize(void) { return (size_t)clusterPeerCount(); }

static int nodeFlags(const clusterPeer *p) {
    return (p->myself ? VALKEYMODULE_NODE_MYSELF : 0) |
           (p->primary ? VALKEYMODULE_NODE_PRIMARY : 0) |
           (p->replica ? VALKEYMODULE_NODE_REPLICA : 0) |
           (p->maybe_failed ? VALKEYMODULE_NODE_PFAIL : 0) |
           (p->failed ? VALKEYMODULE_NODE_FAIL : 0) |
           (p->no_failover ? VALKEYMODULE_NODE_NOFAILOVER : 0);
}

static int nodeInfo(const session *viewer, const char *id, char *ip, char *primary_id, int *port,
                    int *flags) {
    clusterPeer peer;
    if (!id || !clusterPeerRead(sliceMake(id, strnlen(id, ID_LEN)), viewer, &peer))
        return VALKEYMODULE_ERR;
    hotCheck(peer.primary != peer.replica);
    if (ip) snprintf(ip, IP_SIZE, "%s", strText(&peer.ip));
    if (primary_id) { /* not terminated, as in Valkey; zeros for a primary */
        memset(primary_id, 0, ID_LEN);
        memcpy(primary_id, peer.primary_id.ptr, sizeMin(peer.primary_id.len, ID_LEN));
    }
    if (port) *port = peer.port;
    if (flags) *flags = nodeFlags(&peer);
    strFree(&peer.ip);
    return VALKEYMODULE_OK;
}

int apiGetClusterNodeInfo(ValkeyModuleCtx *ctx, const char *id, char *ip, char *primary_id,
                          int *port, int *flags) {
    (void)ctx;
    return nodeInfo(NULL, id, ip, primary_id, port, flags);
}

int apiGetClusterNodeInfoForClient(ValkeyModuleCtx *ctx, uint64_t client_id, const char *node_id,
                                   char *ip, char *primary_id, int *port, int *flags) {
    (void)ctx;
    const session *viewer = netFindClient(client_id);
    if (!viewer) return VALKEYMODULE_ERR;
    return nodeInfo(viewer, node_id, ip, primary_id, port, flags);
}

void apiSetClusterFlags(ValkeyModuleCtx *ctx, uint64_t flags) {
    (void)ctx; /* for the whole node */
    clusterPeersForbid(flags & VALKEYMODULE_CLUSTER_FLAG_NO_FAILOVER,
                       flags & VALKEYMODULE_CLUSTER_FLAG_NO_REDIRECTION);
}

/* ------------------------------------------------------------------ slots */

unsigned int apiClusterKeySlotC(const char *key, size_t keylen) {
    return (unsigned)hashSlot(sliceMake(key, keylen));
}

unsigned int apiClusterKeySlot(ValkeyModuleString *key) {
    return (unsigned)hashSlot(moduleStringSlice(key));
}

enum { SLOTS = 16384, NAME_SIZE = 5 };

/* The first text of letters and digits of each slot, of up to four characters. */
static char (*slotNames(void))[NAME_SIZE] {
    static char(*names)[NAME_SIZE];
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (names) return names;
    names = memCalloc(SLOTS, NAME_SIZE);
    int missing = SLOTS;
    for (unsigned number = 0; missing; number++) {
        char text[NAME_SIZE] = "";
        size_t len = 0;
        for (unsigned rest = number; len == 0 || rest; rest /= sizeof(alphabet) - 1)
            text[len++] = alphabet[rest % (sizeof(alphabet) - 1)];
        check(len < NAME_SIZE);
        char *name = names[hashSlot(sliceMake(text, len))];
        if (*name) continue;
        memcpy(name, text, len);
        missing--;
    }
    return names;
}

const char *apiClusterCanonicalKeyNameInSlot(unsigned int slot) {
    return slot < SLOTS ? slotNames()[slot] : NULL;
}
