/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that several nodes execute, whose replies become one: by all primaries, by all nodes,
 * PUBLISH and INFO. Main thread only. */
#define _GNU_SOURCE /* memmem() */
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/reply.h"
#include "format/aof_reader.h"
#include "gateway/client_priv.h"
#include "gateway/info.h"

enum { NODES_MAX = 1024 };

typedef struct nodeList {
    const clusterNode *of[NODES_MAX];
    int count;
    bool has_myself;
} nodeList;

/* The primaries with slots. False: an error was replied. */
static bool findOwners(ctx *c, nodeList *out) {
    out->count = clusterOwners(out->of, NODES_MAX);
    out->has_myself = false;
    if (out->count == 0 || out->count > NODES_MAX) {
        replyError(c, SLICE("CLUSTERDOWN The cluster is down"));
        return false;
    }
    for (int i = 0; i < out->count; i++)
        out->has_myself = out->has_myself || clusterIsMyself(out->of[i]);
    return true;
}

/* Sends `request` to a node as a part of the client's. */
static void sendTo(ctx *c, gatewayPlace *p, int part, const clusterNode *to, slice request,
                   uint32_t flags) {
    check(part < p->count);
    callRequest r = gatewayRequestOf(c, p, part);
    r.node_id = clusterNodeId(to);
    r.flags |= CALL_ALL_NODES | flags;
    r.request = request;
    callStart(&r);
}

static void appendWords(str *out, slice a, slice b, slice c) {
    slice words[] = {a, b, c};
    aofPrintCommand(out, c.ptr ? 3 : 2, words);
}

/* ------------------------------------------------------------------ all primaries */

static bool isAboutFunctions(const command *cmd) {
    return cmd->parent && sliceEqual(cmd->parent->name, SLICE("function"));
}

/* True if they tell each other of changes of functions. */
static bool shareFunctions(const nodeList *owners) {
    bool share = clusterSharesFunctions();
    for (int i = 0; i < owners->count; i++)
        share = share && (clusterIsMyself(owners->of[i]) || owners->of[i]->shares_functions);
    return share;
}

gateVerdict gatewayCallAll(gatewayClient *gc, ctx *c, const route *way) {
    nodeList owners;
    if (!findOwners(c, &owners)) return GATE_REFUSED;
    /* Calls of this client that are on their way precede it at each node only if they have ended:
     * a slot may be with another node than it was. */
    if (!replyOrderIsEmpty(&gc->order)) return gatewayHold(gc, true);
    if (owners.has_myself && gatewayIsPaused(c)) return GATE_HELD;
    gatewayPlace *p = gatewayKeepPlace(gc, c, owners.count, way->merge);
    str bytes = STR_EMPTY;
    aofPrintCommand(&bytes, c->argc, c->argv);
    /* A node may have the change of another one before the request: the library exists already. */
    p->is_shared = isAboutFunctions(c->cmd) && shareFunctions(&owners);
    for (int i = 0; i < owners.count; i++) {
        if (clusterIsMyself(owners.of[i])) {
            gatewayEndPart(p, c, i, c->argc, c->argv);
        } else {
            sendTo(c, p, i, owners.of[i], strSlice(&bytes), 0);
        }
    }
    strFree(&bytes);
    gatewayCountMerged(c, owners.has_myself);
    return GATE_DONE;
}

/* This node gets its part over a link, too: its command may block, and the client's has ended. */
gateVerdict gatewayCallEach(gatewayClient *gc, ctx *c, const route *way) {
    nodeList owners;
    bool waits = c->cmd->flags & CMD_BLOCKING && !(c->cmd->flags & (CMD_WRITE | CMD_READONLY));
    const uint32_t waiting = CALL_PROVEN | CALL_READS | CALL_HISTORY;
    bool has_options = c->argc > 2 && way->merge == MERGE_SUM;
    if (has_options) {
        replyErrorFormat(c,
                         "ERR the options of '%s' need a prefix with a hash tag here, as in "
                         "{user1}:",
                         c->cmd->spec->name);
        return GATE_REFUSED;
    }
    if (!findOwners(c, &owners)) return GATE_REFUSED;
    if (!replyOrderIsEmpty(&gc->order)) return gatewayHold(gc, true);
    gatewayPlace *p = gatewayKeepPlace(gc, c, owners.count, way->merge);
    str bytes = STR_EMPTY;
    /* The changes of the client came over other connections. */
    if (waits) appendWords(&bytes, SLICE("GATEWAY"), SLICE("CHANGED"), sliceMake(NULL, 0));
    aofPrintCommand(&bytes, c->argc, c->argv);
    p->is_alone = gc->is_exclusive = true;
    for (int i = 0; i < owners.count; i++) {
        callRequest r = gatewayRequestOf(c, p, i);
        r.node_id = clusterNodeId(owners.of[i]);
        r.flags |= CALL_ALL_NODES | CALL_OWN_LINK | (waits ? waiting : 0);
        r.extra = waits;
        r.request = strSlice(&bytes);
        callStart(&r);
    }
    strFree(&bytes);
    gatewayCountMerged(c, false);
    return GATE_DONE;
}

/* ------------------------------------------------------------------ all nodes */

/* Sends `request` to all other nodes that can be reached, after the part of this one. */
static gatewayPlace *beginNodes(gatewayClient *gc, ctx *c, mergeKind merge, slice request,
                                uint32_t flags) {
    const clusterNode *others[NODES_MAX];
    int count = clusterOthers(others, NODES_MAX);
    check(request.len > 0);
    if (count > NODES_MAX) count = NODES_MAX;
    gatewayPlace *p = gatewayKeepPlace(gc, c, 1 + count, merge);
    p->is_lenient = true;
    for (int i = 0; i < count; i++)
        sendTo(c, p, 1 + i, others[i], request, CALL_ONCE | CALL_READS | flags);
    return p;
}

gateVerdict gatewayCallNodes(gatewayClient *gc, ctx *c, const route *way) {
    str bytes = STR_EMPTY;
    if (!replyOrderIsEmpty(&gc->order)) return gatewayHold(gc, true);
    aofPrintCommand(&bytes, c->argc, c->argv);
    gatewayPlace *p = beginNodes(gc, c, way->merge, strSlice(&bytes), 0);
    gatewayEndPart(p, c, 0, c->argc, c->argv);
    strFree(&bytes);
    gatewayCountMerged(c, true);
    return GATE_DONE;
}

/* The bus of the cluster carries the message; the others only tell how many get it. */
gateVerdict gatewayPublish(gatewayClient *gc, ctx *c) {
    str bytes = STR_EMPTY;
    if (gatewayIsPaused(c)) return GATE_HELD;
    appendWords(&bytes, SLICE("GATEWAY"), SLICE("RECEIVERS"), c->argv[1]);
    gatewayPlace *p = beginNodes(gc, c, MERGE_SUM, strSlice(&bytes), CALL_PROVEN);
    gatewayEndPart(p, c, 0, c->argc, c->argv);
    strFree(&bytes);
    gatewayCountMerged(c, true);
    return GATE_DONE;
}

/* ------------------------------------------------------------------ INFO */

static void replaceText(str *in, const char *from, const char *to) {
    const char *at = in->len ? memmem(in->ptr, in->len, from, strlen(from)) : NULL;
    if (!at) return;
    str out = strNew(sliceMake(in->ptr, (size_t)(at - in->ptr)));
    strAppendText(&out, to);
    const char *rest = at + strlen(from);
    strAppend(&out, rest, in->len - (size_t)(rest - in->ptr));
    strFree(in);
    *in = out;
}

/* INFO of this node, with the mode of what the client sees. */
static void runInfo(ctx *c, str *reply) {
    str raw = STR_EMPTY;
    gatewayRunHere(c, c->argc, c->argv, &raw);
    slice found = infoText(strSlice(&raw));
    if (!found.len) {
        strAppendSlice(reply, strSlice(&raw));
    } else {
        str text = strNew(found);
        replaceText(&text, "redis_mode:cluster\r\n", "redis_mode:standalone\r\n");
        replaceText(&text, "server_mode:cluster\r\n", "server_mode:standalone\r\n");
        replaceText(&text, "cluster_enabled:1\r\n", "cluster_enabled:0\r\n");
        bool is_verbatim = raw.ptr[0] == '=';
        strAppendFormat(reply, is_verbatim ? "=%zu\r\ntxt:" : "$%zu\r\n",
                        text.len + (is_verbatim ? 4 : 0));
        strAppendSlice(reply, strSlice(&text));
        strAppendText(reply, "\r\n");
        strFree(&text);
    }
    strFree(&raw);
}

gateVerdict gatewayInfo(gatewayClient *gc, ctx *c) {
    str own = STR_EMPTY, bytes = STR_EMPTY;
    const clusterNode *owners[NODES_MAX];
    int count = clusterOwners(owners, NODES_MAX), others = 0;
    if (gatewayIsPaused(c)) return GATE_HELD;
    bool counts_here = false;
    runInfo(c, &own);
    for (int i = 0; i < count && i < NODES_MAX; i++) {
        if (clusterIsMyself(owners[i])) {
            counts_here = true;
        } else {
            owners[others++] = owners[i];
        }
    }
    if (!infoHasKeyspace(strSlice(&own))) others = 0;
    gatewayPlace *p = gatewayKeepPlace(gc, c, 1 + others, MERGE_FIRST);
    p->is_lenient = true;
    p->is_info = others > 0;
    p->counts_here = counts_here;
    appendWords(&bytes, SLICE("INFO"), SLICE("keyspace"), sliceMake(NULL, 0));
    for (int i = 0; i < others; i++)
        sendTo(c, p, 1 + i, owners[i], strSlice(&bytes), CALL_ONCE | CALL_READS);
    gatewayPartEnded(p, 0, &own, true);
    strFree(&bytes);
    gatewayCountMerged(c, true);
    return GATE_DONE;
}
