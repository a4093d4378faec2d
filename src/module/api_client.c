/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: clients, by the context or by id, and the state of the server.
 *
 * Main thread, or a thread that has the lock. */
#include <errno.h>

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "engine/child.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/pause.h"
#include "engine/session_name.h"
#include "engine/session_report.h"
#include "engine/user.h"
#include "module/client_info.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/generated/server_events.h"
#include "module/module.h"
#include "module/thread_context.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "repl/role.h"

/* ------------------------------------------------------------------ clients */

/* The session that a context acts for; NULL: none. */
static session *sessionOf(const ValkeyModuleCtx *x) { return x->run ? x->run->who : NULL; }

unsigned long long apiGetClientId(ValkeyModuleCtx *ctx) {
    if (!ctx->run) return 0;
    if (ctx->run->origin == ORIGIN_AOF) return UINT64_MAX;
    return ctx->run->who->id;
}

ValkeyModuleString *apiGetClientUserNameById(ValkeyModuleCtx *ctx, uint64_t id) {
    const session *s = netFindClient(id);
    if (!s || !s->user) {
        errno = s ? ENOTSUP : ENOENT;
        return NULL;
    }
    slice name = userNameOf(s);
    return apiCreateString(ctx, name.ptr, name.len);
}

ValkeyModuleString *apiGetClientNameById(ValkeyModuleCtx *ctx, uint64_t id) {
    const session *s = netFindClient(id);
    slice name = s ? sessionName(s) : SLICE("");
    if (!s || !name.len) {
        errno = s ? 0 : ENOENT;
        return NULL;
    }
    return apiCreateString(ctx, name.ptr, name.len);
}

int apiSetClientNameById(uint64_t id, ValkeyModuleString *name) {
    session *s = netFindClient(id);
    slice text = moduleStringSlice(name);
    if (!s || !sessionNameIsValid(text)) {
        errno = s ? EINVAL : ENOENT;
        return VALKEYMODULE_ERR;
    }
    sessionSetName(s, text);
    return VALKEYMODULE_OK;
}

static uint64_t clientFlags(const session *s) {
    hotCheck(s->id);
    sessionReport report;
    sessionReportRead(s, &report);
    const struct {
        bool set;
        uint64_t flag;
    } flags[] = {
        {netIsTls(s), VALKEYMODULE_CLIENTINFO_FLAG_SSL},
        {s->flags & SESSION_PUBSUB, VALKEYMODULE_CLIENTINFO_FLAG_PUBSUB},
        {s->flags & SESSION_BLOCKED, VALKEYMODULE_CLIENTINFO_FLAG_BLOCKED},
        {report.tracking, VALKEYMODULE_CLIENTINFO_FLAG_TRACKING},
        {s->flags & SESSION_UNIX_SOCKET, VALKEYMODULE_CLIENTINFO_FLAG_UNIXSOCKET},
        {s->flags & SESSION_IN_MULTI, VALKEYMODULE_CLIENTINFO_FLAG_MULTI},
        {s->flags & SESSION_READONLY, VALKEYMODULE_CLIENTINFO_FLAG_READONLY},
        {s->flags & SESSION_PRIMARY, VALKEYMODULE_CLIENTINFO_FLAG_PRIMARY},
        {s->flags & SESSION_REPLICA, VALKEYMODULE_CLIENTINFO_FLAG_REPLICA},
        {s->flags & SESSION_MONITOR, VALKEYMODULE_CLIENTINFO_FLAG_MONITOR},
        {s->flags & SESSION_AUTHENTICATED, VALKEYMODULE_CLIENTINFO_FLAG_AUTHENTICATED},
        {s->flags & SESSION_EVER_AUTHENTICATED, VALKEYMODULE_CLIENTINFO_FLAG_EVER_AUTHENTICATED},
    };
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i].set) all |= flags[i].flag;
    }
    return all;
}

/* Splits "address:port", where the address may have colons. */
static void splitPeer(const session *s, ValkeyModuleClientInfo *info) {
    str peer = STR_EMPTY;
    sessionPeer(s, &peer);
    const char *text = strText(&peer), *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : peer.len;
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    len = sizeMin(len, sizeof(info->addr) - 1);
    hotCheck(len < sizeof(info->addr));
    memcpy(info->addr, text, len);
    info->addr[len] = '\0';
    info->port = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
    strFree(&peer);
}

void clientInfoRead(const session *s, ValkeyModuleClientInfo *info) {
    *info = (ValkeyModuleClientInfo){.version = VALKEYMODULE_CLIENTINFO_VERSION,
                                     .flags = clientFlags(s),
                                     .id = s->id,
                                     .db = (uint16_t)s->db_id};
    splitPeer(s, info);
}

int apiGetClientInfoById(void *ci, uint64_t id) {
    const session *s = netFindClient(id);
    if (!s) return VALKEYMODULE_ERR;
    ValkeyModuleClientInfo *info = ci;
    if (!info) return VALKEYMODULE_OK;
    if (info->version != VALKEYMODULE_CLIENTINFO_VERSION) return VALKEYMODULE_ERR;
    clientInfoRead(s, info);
    return VALKEYMODULE_OK;
}

ValkeyModuleString *apiGetClientCertificate(ValkeyModuleCtx *ctx, uint64_t id) {
    const session *s = netFindClient(id);
    str pem = STR_EMPTY;
    if (!s || !netPeerPem(s, &pem)) return NULL;
    ValkeyModuleString *text = apiCreateString(ctx, pem.ptr, pem.len);
    strFree(&pem);
    return text;
}

int apiMustObeyClient(ValkeyModuleCtx *ctx) { return ctx->run && ctxIsReplay(ctx->run); }

int apiRedactClientCommandArgument(ValkeyModuleCtx *ctx, int pos) {
    struct ctx *c = ctx->run;
    if (!c || !c->cmd || pos <= 0 || pos >= c->argc) return VALKEYMODULE_ERR;
    ctxRedact(c, pos);
    return VALKEYMODULE_OK;
}

int apiGetSelectedDb(ValkeyModuleCtx *ctx) {
    const session *s = sessionOf(ctx);
    return s ? s->db_id : 0;
}

int apiSelectDb(ValkeyModuleCtx *ctx, int newid) {
    struct ctx *c = ctx->run; /* a thread may select before it locks the server */
    if (!c || sessionSelect(c->who, newid) != OK) return VALKEYMODULE_ERR;
    hotCheck(c->who->db_id == newid);
    c->db = c->who->db;
    return VALKEYMODULE_OK;
}

int apiPublishMessage(ValkeyModuleCtx *ctx, ValkeyModuleString *channel,
                      ValkeyModuleString *message) {
    (void)ctx; /* anybody may publish */
    return (int)pubsubPublish(false, moduleStringSlice(channel), moduleStringSlice(message));
}

int apiPublishMessageShard(ValkeyModuleCtx *ctx, ValkeyModuleString *channel,
                           ValkeyModuleString *message) {
    (void)ctx;
    return (int)pubsubPublish(true, moduleStringSlice(channel), moduleStringSlice(message));
}

/* ------------------------------------------------------------------ state of the server */

enum { ALL_CONTEXT_FLAGS = _VALKEYMODULE_CTX_FLAGS_NEXT - 1 };

int apiGetContextFlagsAll(void) { return ALL_CONTEXT_FLAGS; }

/* True if a directive has this value. */
static bool optionIs(const char *name, const char *value) {
    const configOption *o = configFind(sliceOf(name));
    check(o);
    str text = STR_EMPTY;
    configGet(o, &text);
    bool is = sliceIs(strSlice(&text), value);
    strFree(&text);
    return is;
}

static int memoryFlags(bool is_replica) {
    uint64_t limit = memoryLimit();
    if (!limit) return 0;
    int flags = 0;
    float ratio = apiGetUsedMemoryRatio();
    if (ratio > 1) flags |= VALKEYMODULE_CTX_FLAGS_OOM;
    if (ratio > 0.75f) flags |= VALKEYMODULE_CTX_FLAGS_OOM_WARNING;
    if (is_replica && optionIs("replica-ignore-maxmemory", "yes")) return flags;
    flags |= VALKEYMODULE_CTX_FLAGS_MAXMEMORY;
    if (!optionIs("maxmemory-policy", "noeviction")) flags |= VALKEYMODULE_CTX_FLAGS_EVICT;
    return flags;
}

static int roleFlags(void) {
    if (!replIsReplica()) return VALKEYMODULE_CTX_FLAGS_PRIMARY;
    replLinkInfo link;
    replLinkRead(&link);
    hotCheck(link.phase != REPL_LINK_NONE);
    int flags = VALKEYMODULE_CTX_FLAGS_REPLICA;
    if (optionIs("replica-read-only", "yes")) flags |= VALKEYMODULE_CTX_FLAGS_READONLY;
    if (link.phase != REPL_LINK_UP) flags |= VALKEYMODULE_CTX_FLAGS_REPLICA_IS_STALE;
    if (link.phase == REPL_LINK_CONNECTING) flags |= VALKEYMODULE_CTX_FLAGS_REPLICA_IS_CONNECTING;
    if (link.phase == REPL_LINK_SYNCING) flags |= VALKEYMODULE_CTX_FLAGS_REPLICA_IS_TRANSFERRING;
    if (link.phase == REPL_LINK_UP) flags |= VALKEYMODULE_CTX_FLAGS_REPLICA_IS_ONLINE;
    return flags;
}

static int serverFlags(void) {
    int flags = roleFlags();
    flags |= memoryFlags(flags & VALKEYMODULE_CTX_FLAGS_REPLICA);
    if (clusterIsEnabled()) flags |= VALKEYMODULE_CTX_FLAGS_CLUSTER;
    if (optionIs("appendonly", "yes")) flags |= VALKEYMODULE_CTX_FLAGS_AOF;
    if (!optionIs("save", "")) flags |= VALKEYMODULE_CTX_FLAGS_RDB;
    if (engineLoadsBeside()) {
        flags |= VALKEYMODULE_CTX_FLAGS_ASYNC_LOADING;
    } else if (engineHot.loading) {
        flags |= VALKEYMODULE_CTX_FLAGS_LOADING;
    }
    if (childAlive() != CHILD_NONE) flags |= VALKEYMODULE_CTX_FLAGS_ACTIVE_CHILD;
    if (modulesAreStarting()) flags |= VALKEYMODULE_CTX_FLAGS_SERVER_STARTUP;
    return flags;
}

/* Flags of the transactions and scripts that are being executed, also of those that a callback with
 * a unit of its own interrupts. */
static int unitFlags(void) {
    int flags = 0;
    for (const ctx *c = engineHot.current; c; c = c->below) {
        if (c->flags & CTX_IN_MULTI) flags |= VALKEYMODULE_CTX_FLAGS_MULTI;
        if (c->origin == ORIGIN_SCRIPT) flags |= VALKEYMODULE_CTX_FLAGS_LUA;
    }
    return flags;
}

static int sessionFlags(const ctx *c) {
    hotCheck(c->who);
    hotCheck(c->proto == 2 || c->proto == 3);
    const session *s = c->who;
    int flags = unitFlags();
    if (c->origin == ORIGIN_PRIMARY) flags |= VALKEYMODULE_CTX_FLAGS_REPLICATED;
    if (c->origin == ORIGIN_IMPORT) flags |= VALKEYMODULE_CTX_FLAGS_SLOT_IMPORT_CLIENT;
    if (s->flags & SESSION_SLOT_EXPORT) flags |= VALKEYMODULE_CTX_FLAGS_SLOT_EXPORT_CLIENT;
    if (s->flags & SESSION_WATCH_DIRTY) flags |= VALKEYMODULE_CTX_FLAGS_MULTI_DIRTY;
    const int atomic = VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA;
    if (s->flags & SESSION_DENY_BLOCKING || flags & atomic)
        flags |= VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING;
    if (c->proto == 3) flags |= VALKEYMODULE_CTX_FLAGS_RESP3;
    return flags;
}

int apiGetContextFlags(ValkeyModuleCtx *ctx) {
    int flags = serverFlags();
    if (ctx && ctx->run) {
        flags |= sessionFlags(ctx->run);
    } else {
        flags |= unitFlags();
    }
    return flags;
}

int apiAvoidReplicaTraffic(void) { return pauseNow() != PAUSE_NONE; }
