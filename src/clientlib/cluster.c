/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The synchronous cluster client.
 *
 * A pipeline is one text of encoded commands with an entry for each: offset, length, slot.
 * valkeyClusterGetReply() sends the commands to their nodes, reads all replies, and then sends
 * again, from the same bytes, only those commands that were redirected. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "clientlib/cluster_priv.h"

enum { RETRY_MS = 10 };

static void failMemory(valkeyClusterContext *cc) {
    vkClusterError(cc, VALKEY_ERR_OOM, "Out of memory");
}

static void failRetries(valkeyClusterContext *cc) {
    vkClusterError(cc, VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES, "too many cluster retries");
}

static void failUnserved(valkeyClusterContext *cc) {
    vkClusterError(cc, VALKEY_ERR_OTHER, "slot not served by any node");
}

static void clearError(valkeyClusterContext *cc) {
    cc->err = 0;
    cc->errstr[0] = '\0';
}

/* ------------------------------------------------------------------ connections */

/* Sends AUTH or SELECT; false with c->err or an error reply. */
static bool prepare(valkeyClusterContext *cc, valkeyReply *r, const valkeyContext *c) {
    if (!r) {
        vkClusterError(cc, c->err, c->errstr);
        return false;
    }
    bool ok = r->type != VALKEY_REPLY_ERROR;
    if (!ok) vkClusterError(cc, VALKEY_ERR_OTHER, r->str);
    freeReplyObject(r);
    return ok;
}

static bool authenticate(valkeyClusterContext *cc, valkeyContext *c) {
    if (cc->password) {
        valkeyReply *r = cc->username ? valkeyCommand(c, "AUTH %s %s", cc->username, cc->password)
                                      : valkeyCommand(c, "AUTH %s", cc->password);
        if (!prepare(cc, r, c)) return false;
    }
    return cc->select_db == 0 || prepare(cc, valkeyCommand(c, "SELECT %d", cc->select_db), c);
}

/* The map may be outdated, whatever the node was to do. */
static void nodeFailed(valkeyClusterContext *cc, valkeyClusterNode *node) {
    node->failure_count++;
    cc->need_update_route = 1;
}

valkeyContext *valkeyClusterGetValkeyContext(valkeyClusterContext *cc, valkeyClusterNode *node) {
    if (node->con && node->con->err == 0) return node->con;
    valkeyFree(node->con);
    node->con = NULL;
    node->in_transaction = 0;
    node->lastConnectionAttempt = vkNowUs();
    valkeyOptions o = vkClusterNodeOptions(cc, node);
    valkeyContext *c = valkeyConnectWithOptions(&o);
    if (!c) {
        failMemory(cc);
        return NULL;
    }
    bool ok = c->err == 0;
    if (!ok) vkClusterError(cc, c->err, c->errstr);
    if (ok && cc->tls && cc->tls_init_fn(c, cc->tls) != VALKEY_OK) {
        vkClusterError(cc, c->err, c->errstr);
        ok = false;
    }
    if (cc->on_connect) cc->on_connect(c, ok ? VALKEY_OK : VALKEY_ERR);
    ok = ok && authenticate(cc, c);
    if (!ok) {
        valkeyFree(c);
        nodeFailed(cc, node);
        return NULL;
    }
    node->con = c;
    return c;
}

/* The connection to a node has failed. */
static void dropConnection(valkeyClusterContext *cc, valkeyClusterNode *node) {
    vkClusterError(cc, node->con->err, node->con->errstr);
    valkeyFree(node->con);
    node->con = NULL;
    nodeFailed(cc, node);
}

/* ------------------------------------------------------------------ the map */

/* Uses the reply to a query of the map that was sent to `node`, which may be freed by the new
 * map. */
static bool readMap(valkeyClusterContext *cc, valkeyClusterNode *node) {
    void *reply;
    if (valkeyGetReply(node->con, &reply) != VALKEY_OK) {
        dropConnection(cc, node);
        return false;
    }
    char host[VK_HOST_MAX];
    snprintf(host, sizeof(host), "%s", node->host);
    int failures = node->failure_count;
    node->failure_count = 0;
    bool ok = vkClusterApplyMap(cc, reply, host);
    freeReplyObject(reply);
    if (!ok) node->failure_count = failures + 1;
    return ok;
}

static bool updateFrom(valkeyClusterContext *cc, valkeyClusterNode *node) {
    valkeyContext *c = valkeyClusterGetValkeyContext(cc, node);
    if (!c) return false;
    if (valkeyAppendCommand(c, vkClusterMapQuery(cc)) == VALKEY_OK) return readMap(cc, node);
    dropConnection(cc, node);
    return false;
}

int valkeyClusterUpdateSlotmap(valkeyClusterContext *cc) {
    clearError(cc);
    cc->map_round++;
    for (int pass = 0; pass < 2; pass++) {
        /* The initial nodes may know when none of the map does. */
        if (pass == 1 && !vkClusterAddSeeds(cc)) return VALKEY_ERR;
        for (valkeyClusterNode *n; (n = vkClusterNextToAsk(cc));) {
            if (!updateFrom(cc, n)) continue;
            clearError(cc);
            return VALKEY_OK;
        }
    }
    return VALKEY_ERR;
}

valkeyClusterContext *valkeyClusterConnectWithOptions(const valkeyClusterOptions *options) {
    valkeyClusterContext *cc = vk_calloc(1, sizeof(*cc));
    if (!cc) return NULL;
    if (!vkClusterInit(cc, options)) {
        valkeyClusterFree(cc);
        return NULL;
    }
    if (vkClusterCheckOptions(cc)) valkeyClusterUpdateSlotmap(cc);
    return cc;
}

valkeyClusterContext *valkeyClusterConnect(const char *addrs) {
    valkeyClusterOptions o = {.initial_nodes = addrs};
    return valkeyClusterConnectWithOptions(&o);
}

valkeyClusterContext *valkeyClusterConnectWithTimeout(const char *addrs, const struct timeval tv) {
    valkeyClusterOptions o = {.initial_nodes = addrs, .connect_timeout = &tv};
    return valkeyClusterConnectWithOptions(&o);
}

void valkeyClusterFree(valkeyClusterContext *cc) {
    if (!cc) return;
    vkClusterEvent(cc, VALKEYCLUSTER_EVENT_FREE_CONTEXT);
    vkClusterClear(cc);
    vk_free(cc);
}

int valkeyClusterSetOptionTimeout(valkeyClusterContext *cc, const struct timeval tv) {
    if (!vkCopyTimeout(&cc->command_timeout, &tv)) {
        failMemory(cc);
        return VALKEY_ERR;
    }
    for (valkeyClusterNode *n = cc->nodes; n; n = n->next) {
        if (n->con && n->con->err == 0 && valkeySetTimeout(n->con, tv) != VALKEY_OK) {
            vkClusterError(cc, n->con->err, n->con->errstr);
            return VALKEY_ERR;
        }
    }
    return VALKEY_OK;
}

/* ------------------------------------------------------------------ one command */

/* Notes whether the connection to a node is within MULTI, where queries of the library would be
 * queued, too. */
static void noteTransaction(valkeyClusterNode *node, const char *cmd, size_t len) {
    vkCommandCursor cursor;
    vkArg name;
    if (!vkCommandOpen(&cursor, cmd, len) || !vkCommandNext(&cursor, &name)) return;
    if (vkArgIs(name, "multi")) node->in_transaction = 1;
    if (vkArgIs(name, "exec") || vkArgIs(name, "discard") || vkArgIs(name, "reset"))
        node->in_transaction = 0;
}

/* Sends a command to a node and reads its reply; NULL with cc->err. If the map may be outdated, it
 * is read from the node with the same round trip, which may free the node. `*sent` is false if
 * there is no connection. */
static valkeyReply *call(valkeyClusterContext *cc, valkeyClusterNode *node, const char *cmd,
                         size_t len, bool asking, bool *sent) {
    void *reply = NULL;
    valkeyContext *c = valkeyClusterGetValkeyContext(cc, node);
    *sent = c != NULL;
    if (!c) return NULL;
    noteTransaction(node, cmd, len);
    bool ok = !asking || valkeyAppendCommand(c, "ASKING") == VALKEY_OK;
    ok = ok && valkeyAppendFormattedCommand(c, cmd, len) == VALKEY_OK;
    bool with_map = cc->need_update_route && !node->in_transaction;
    if (ok && with_map) ok = valkeyAppendCommand(c, vkClusterMapQuery(cc)) == VALKEY_OK;
    if (ok && asking) ok = valkeyGetReply(c, NULL) == VALKEY_OK;
    if (!ok || valkeyGetReply(c, &reply) != VALKEY_OK) {
        dropConnection(cc, node);
        return NULL;
    }
    node->failure_count = 0;
    /* If this fails, the map is still in doubt: the next command tries again. */
    if (with_map) (void)readMap(cc, node);
    return reply;
}

/* The node that a redirect names. */
static valkeyClusterNode *redirected(valkeyClusterContext *cc, const redirect *d,
                                     const char *from_host) {
    return vkClusterNodeAt(cc, d->host[0] ? d->host : from_host, d->port);
}

/* Follows MOVED: reads the map from the node that said it (NULL: the map was read since), as the
 * target, if it is new, may not know the whole map. If no map can be had, the redirect is followed
 * nevertheless. */
static valkeyClusterNode *moved(valkeyClusterContext *cc, const redirect *d, const char *from_host,
                                valkeyClusterNode *from) {
    valkeyClusterNode *to = redirected(cc, d, from_host);
    if (!to || cc->table[d->slot] == to) return to;
    if (from && !updateFrom(cc, from)) {
        valkeyClusterUpdateSlotmap(cc);
        clearError(cc);
    }
    to = redirected(cc, d, from_host);
    if (to) cc->table[d->slot] = to;
    return to;
}

/* The node of a slot; with `update`, if it is not known, or if it has failed, the map is read
 * first. NULL with cc->err. */
static valkeyClusterNode *nodeOfSlot(valkeyClusterContext *cc, int slot, bool update) {
    const valkeyClusterNode *node = cc->table[slot];
    bool in_doubt = node && cc->need_update_route && node->failure_count > 0 && cc->nodes->next;
    if ((!node || in_doubt || update) && valkeyClusterUpdateSlotmap(cc) != VALKEY_OK) return NULL;
    if (!cc->table[slot]) failUnserved(cc);
    return cc->table[slot];
}

/* What execute() knows after a step. */
typedef struct execution {
    int slot;
    valkeyClusterNode *node; /* that replied last; NULL if the map was replaced since */
    char host[VK_HOST_MAX];  /* its host */
    bool asking;             /* the next node is to be asked with ASKING */
    bool unreachable;        /* no connection to the last node */
} execution;

/* The node to send the command to, after the reply `r` (freed) of the last one, if any. NULL with
 * cc->err. */
static valkeyClusterNode *nextNode(valkeyClusterContext *cc, execution *e, valkeyReply *r) {
    redirect d = r ? vkRedirectOf(r) : (redirect){.kind = REDIRECT_NONE};
    freeReplyObject(r);
    if (r && cc->retry_count > cc->max_retry_count) {
        failRetries(cc);
        return NULL;
    }
    e->asking = d.kind == REDIRECT_ASK;
    if (d.kind == REDIRECT_MOVED) return moved(cc, &d, e->host, e->node);
    if (d.kind == REDIRECT_ASK) return redirected(cc, &d, e->host);
    if (d.kind == REDIRECT_RETRY) {
        vkSleepMs(RETRY_MS * cc->retry_count);
        cc->need_update_route = 1;
    }
    return nodeOfSlot(cc, e->slot, e->unreachable);
}

/* Executes a command at the node of its slot, which `first` may have refused already (taken),
 * following redirects; `from` is the node that sent it, with this host, or NULL. */
static valkeyReply *execute(valkeyClusterContext *cc, const char *cmd, size_t len, int slot,
                            valkeyReply *take_first, valkeyClusterNode *from, const char *host) {
    execution e = {.slot = slot, .node = from};
    snprintf(e.host, sizeof(e.host), "%s", host);
    valkeyReply *r = take_first;
    for (cc->retry_count = 0;; cc->retry_count++) {
        if (r && vkRedirectOf(r).kind == REDIRECT_NONE) return r;
        valkeyClusterNode *node = nextNode(cc, &e, r);
        if (!node) return NULL;
        snprintf(e.host, sizeof(e.host), "%s", node->host);
        uint64_t version = cc->route_version;
        bool sent;
        r = call(cc, node, cmd, len, e.asking, &sent);
        e.node = cc->route_version == version ? node : NULL;
        /* A node that cannot be reached may have been replaced; a command that was sent is not
         * repeated. */
        e.unreachable = !sent && cc->err != VALKEY_ERR_OOM;
        if (!r && (!e.unreachable || cc->retry_count >= cc->max_retry_count)) return NULL;
    }
}

static int slotOrError(valkeyClusterContext *cc, const char *cmd, size_t len) {
    int slot = vkSlotOfCommand(cmd, len);
    if (slot < 0)
        vkClusterError(cc, VALKEY_ERR_OTHER,
                       "No keys in command(must have keys for valkey cluster mode)");
    return slot;
}

void *valkeyClusterFormattedCommand(valkeyClusterContext *cc, char *cmd, int len) {
    clearError(cc);
    if (!vkClusterCheckCommand(cc, cmd, len)) return NULL;
    int slot = slotOrError(cc, cmd, (size_t)len);
    if (slot < 0) return NULL;
    valkeyReply *r = execute(cc, cmd, (size_t)len, slot, NULL, NULL, "");
    if (r) clearError(cc);
    return r;
}

/* Encodes a command; NULL with cc->err. */
static char *format(valkeyClusterContext *cc, const char *text, va_list ap, int *len) {
    char *cmd = NULL;
    clearError(cc);
    *len = valkeyvFormatCommand(&cmd, text, ap);
    if (*len == -1) failMemory(cc);
    if (*len == -2) vkClusterError(cc, VALKEY_ERR_OTHER, "Invalid format string");
    return *len < 0 ? NULL : cmd;
}

static char *formatArgv(valkeyClusterContext *cc, int argc, const char **argv,
                        const size_t *argvlen, int *len) {
    char *cmd = NULL;
    clearError(cc);
    long long size = valkeyFormatCommandArgv(&cmd, argc, argv, argvlen);
    if (size < 0) failMemory(cc);
    if (size <= INT_MAX) {
        *len = (int)size;
        return cmd;
    }
    vk_free(cmd);
    vkClusterError(cc, VALKEY_ERR_OTHER, "The command is too long");
    return NULL;
}

void *valkeyClustervCommand(valkeyClusterContext *cc, const char *text, va_list ap) {
    int len;
    char *cmd = format(cc, text, ap, &len);
    if (!cmd) return NULL;
    void *reply = valkeyClusterFormattedCommand(cc, cmd, len);
    vk_free(cmd);
    return reply;
}

void *valkeyClusterCommand(valkeyClusterContext *cc, const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    void *reply = valkeyClustervCommand(cc, text, ap);
    va_end(ap);
    return reply;
}

void *valkeyClusterCommandArgv(valkeyClusterContext *cc, int argc, const char **argv,
                               const size_t *argvlen) {
    int len;
    char *cmd = formatArgv(cc, argc, argv, argvlen, &len);
    if (!cmd) return NULL;
    void *reply = valkeyClusterFormattedCommand(cc, cmd, len);
    vk_free(cmd);
    return reply;
}

void *valkeyClustervCommandToNode(valkeyClusterContext *cc, valkeyClusterNode *node,
                                  const char *text, va_list ap) {
    int len;
    char *cmd = format(cc, text, ap, &len);
    if (!cmd) return NULL;
    /* A node that fails again may have left: others are asked, and its successor is in the map
     * afterwards. */
    if (cc->need_update_route && node->failure_count > 0) valkeyClusterUpdateSlotmap(cc);
    clearError(cc);
    bool sent;
    valkeyReply *r = call(cc, node, cmd, (size_t)len, false, &sent);
    vk_free(cmd);
    if (r) clearError(cc);
    return r;
}

void *valkeyClusterCommandToNode(valkeyClusterContext *cc, valkeyClusterNode *node,
                                 const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    void *reply = valkeyClustervCommandToNode(cc, node, text, ap);
    va_end(ap);
    return reply;
}

/* ------------------------------------------------------------------ pipelines */

void valkeyClusterReset(valkeyClusterContext *cc) {
    clearError(cc);
    vkClusterFreePipeline(cc);
}

static struct valkeyClusterPipeline *pipelineOf(valkeyClusterContext *cc) {
    if (cc->requests) return cc->requests;
    struct valkeyClusterPipeline *p = vk_calloc(1, sizeof(*p));
    if (!p) return NULL;
    p->text = vkTextNew();
    if (!p->text) {
        vk_free(p);
        return NULL;
    }
    cc->requests = p;
    return p;
}

/* Space for another entry. */
static bool reserveEntry(struct valkeyClusterPipeline *p) {
    if (p->count < p->capacity) return true;
    size_t capacity = p->capacity ? p->capacity * 2 : 16;
    queuedCommand *more = vk_realloc(p->commands, capacity * sizeof(*more));
    if (!more) return false;
    p->commands = more;
    p->capacity = capacity;
    return true;
}

/* Enters the command that was appended to the text at `from`, or takes it back. */
static int entered(valkeyClusterContext *cc, long long len, size_t from, valkeyClusterNode *node) {
    struct valkeyClusterPipeline *p = cc->requests;
    if (len == -2) vkClusterError(cc, VALKEY_ERR_OTHER, "Invalid format string");
    if (len == -1) failMemory(cc);
    if (len < 0) return VALKEY_ERR;
    int slot = node ? -1 : slotOrError(cc, p->text + from, (size_t)len);
    if (!node && slot < 0) {
        vkTextSetLen(p->text, from);
        return VALKEY_ERR;
    }
    p->commands[p->count++] =
        (queuedCommand){.offset = from, .len = (size_t)len, .slot = slot, .node = node};
    return VALKEY_OK;
}

/* The pipeline with space for an entry; NULL with cc->err. */
static struct valkeyClusterPipeline *pipelineFor(valkeyClusterContext *cc) {
    clearError(cc);
    struct valkeyClusterPipeline *p = pipelineOf(cc);
    if (p && reserveEntry(p)) return p;
    failMemory(cc);
    return NULL;
}

int valkeyClusterAppendFormattedCommand(valkeyClusterContext *cc, char *cmd, int len) {
    struct valkeyClusterPipeline *p = pipelineFor(cc);
    if (!p || !vkClusterCheckCommand(cc, cmd, len)) return VALKEY_ERR;
    size_t from = vkTextLen(p->text);
    return entered(cc, vkTextAppend(&p->text, cmd, (size_t)len) ? len : -1, from, NULL);
}

int valkeyClustervAppendCommandToNode(valkeyClusterContext *cc, valkeyClusterNode *node,
                                      const char *text, va_list ap) {
    struct valkeyClusterPipeline *p = pipelineFor(cc);
    if (!p) return VALKEY_ERR;
    size_t from = vkTextLen(p->text);
    return entered(cc, vkAppendFormat(&p->text, text, ap), from, node);
}

int valkeyClusterAppendCommandToNode(valkeyClusterContext *cc, valkeyClusterNode *node,
                                     const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    int result = valkeyClustervAppendCommandToNode(cc, node, text, ap);
    va_end(ap);
    return result;
}

int valkeyClustervAppendCommand(valkeyClusterContext *cc, const char *text, va_list ap) {
    return valkeyClustervAppendCommandToNode(cc, NULL, text, ap);
}

int valkeyClusterAppendCommand(valkeyClusterContext *cc, const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    int result = valkeyClustervAppendCommand(cc, text, ap);
    va_end(ap);
    return result;
}

int valkeyClusterAppendCommandArgv(valkeyClusterContext *cc, int argc, const char **argv,
                                   const size_t *argvlen) {
    struct valkeyClusterPipeline *p = pipelineFor(cc);
    if (!p) return VALKEY_ERR;
    size_t from = vkTextLen(p->text);
    return entered(cc, vkAppendArgv(&p->text, argc, argv, argvlen), from, NULL);
}

static bool isInMap(const valkeyClusterContext *cc, const valkeyClusterNode *node) {
    const valkeyClusterNode *n = cc->nodes;
    while (n && n != node) n = n->next;
    return n != NULL;
}

/* Reads the map if it may be outdated or a slot of the pipeline is not in it. False with
 * cc->err. */
static bool prepareMap(valkeyClusterContext *cc) {
    const struct valkeyClusterPipeline *p = cc->requests;
    bool update = cc->need_update_route;
    for (size_t i = p->sent; i < p->count && !update; i++)
        update = p->commands[i].slot >= 0 && !cc->table[p->commands[i].slot];
    return !update || valkeyClusterUpdateSlotmap(cc) == VALKEY_OK;
}

/* True if a command was not sent because the map has no node for its slot. */
static bool isUnserved(const queuedCommand *q) {
    return q->state == QUEUED_UNSENT && q->slot >= 0 && !q->node && q->err == VALKEY_ERR_OTHER;
}

/* Queues a command at its node. */
static void sendOne(valkeyClusterContext *cc, queuedCommand *q) {
    const struct valkeyClusterPipeline *p = cc->requests;
    valkeyClusterNode *node = q->slot >= 0 ? cc->table[q->slot] : q->node;
    q->err = VALKEY_ERR_OTHER;
    if (!node || (q->slot < 0 && !isInMap(cc, node))) {
        q->node = NULL;
        return;
    }
    q->node = node;
    /* One attempt to connect is enough: each may take as long as the limit for it. */
    q->err = node->unreachable;
    if (q->err) return;
    q->state = QUEUED_DONE;
    /* Not over a new connection, whose first reply would be taken for that of an earlier
     * command. */
    q->err = node->con ? node->con->err : 0;
    if (q->err) return;
    valkeyContext *c = valkeyClusterGetValkeyContext(cc, node);
    if (!c) {
        q->state = QUEUED_UNSENT;
        q->err = node->unreachable = cc->err;
    } else if (valkeyAppendFormattedCommand(c, p->text + q->offset, q->len) != VALKEY_OK) {
        q->err = c->err;
    } else {
        q->state = QUEUED_SENT;
    }
}

/* Queues all unsent commands at their nodes and sends them. False if there is no map (cc->err). */
static bool sendAll(valkeyClusterContext *cc) {
    struct valkeyClusterPipeline *p = cc->requests;
    /* The map may be read now, but not between here and reading the replies. */
    if (!prepareMap(cc)) return false;
    for (valkeyClusterNode *n = cc->nodes; n; n = n->next) {
        n->unreachable = 0;
        if (!n->con || !n->con->err) continue;
        valkeyFree(n->con);
        n->con = NULL;
    }
    for (size_t i = p->sent; i < p->count; i++) {
        if (p->commands[i].state == QUEUED_UNSENT) sendOne(cc, &p->commands[i]);
    }
    for (valkeyClusterNode *n = cc->nodes; n; n = n->next) {
        int done = 0;
        while (n->con && n->con->err == 0 && !done) valkeyBufferWrite(n->con, &done);
    }
    return true;
}

/* Reads the replies of all commands that were sent. */
static void readAll(valkeyClusterContext *cc) {
    struct valkeyClusterPipeline *p = cc->requests;
    for (size_t i = p->sent; i < p->count; i++) {
        queuedCommand *q = &p->commands[i];
        void *reply = NULL;
        if (q->state != QUEUED_SENT) continue;
        q->state = QUEUED_DONE;
        bool failed_before = q->node->con->err != 0;
        if (!failed_before && valkeyGetReply(q->node->con, &reply) == VALKEY_OK) {
            q->reply = reply;
            q->node->failure_count = 0;
        } else {
            vkClusterError(cc, q->node->con->err, q->node->con->errstr);
            q->err = cc->err;
            if (!failed_before) nodeFailed(cc, q->node);
        }
    }
}

/* Sends what could not be sent to the successors of nodes that are unreachable. */
static void sendRest(valkeyClusterContext *cc) {
    struct valkeyClusterPipeline *p = cc->requests;
    bool unsent = false;
    for (size_t i = p->sent; i < p->count; i++) {
        queuedCommand *q = &p->commands[i];
        unsent = unsent || (q->state == QUEUED_UNSENT && q->slot >= 0 && q->node);
    }
    if (!unsent || !cc->need_update_route) return;
    /* The map will be another one. */
    for (size_t i = p->sent; i < p->count; i++) {
        if (p->commands[i].slot >= 0) p->commands[i].node = NULL;
    }
    if (sendAll(cc)) readAll(cc);
}

/* Sends again what was redirected. */
static void followAll(valkeyClusterContext *cc) {
    struct valkeyClusterPipeline *p = cc->requests;
    bool exhausted = false; /* a command was tried so often that the others need not be */
    for (size_t i = p->sent; i < p->count; i++) {
        queuedCommand *q = &p->commands[i];
        char host[VK_HOST_MAX] = "";
        if (!q->reply || q->slot < 0) continue;
        redirectKind kind = vkRedirectOf(q->reply).kind;
        if (kind == REDIRECT_NONE) continue;
        if (kind == REDIRECT_RETRY && exhausted) {
            freeReplyObject(q->reply);
            q->reply = NULL;
            q->err = VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES;
            continue;
        }
        valkeyClusterNode *from = q->node;
        const valkeyClusterNode *named = from ? from : cc->table[q->slot];
        if (named) snprintf(host, sizeof(host), "%s", named->host);
        /* Later nodes must not be used: the map may be replaced. */
        for (size_t k = i; k < p->count; k++) p->commands[k].node = NULL;
        q->reply = execute(cc, p->text + q->offset, q->len, q->slot, q->reply, from, host);
        if (!q->reply) q->err = cc->err;
        exhausted = exhausted || q->err == VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES;
    }
}

int valkeyClusterGetReply(valkeyClusterContext *cc, void **reply) {
    struct valkeyClusterPipeline *p = cc->requests;
    *reply = NULL;
    clearError(cc);
    if (!p || p->taken == p->count) {
        vkClusterError(cc, VALKEY_ERR_OTHER, "No queued command");
        return VALKEY_ERR;
    }
    if (p->taken >= p->sent) {
        if (sendAll(cc)) {
            readAll(cc);
            sendRest(cc);
            followAll(cc);
        } else {
            /* Each of them has failed, so that later replies belong to later commands. */
            for (size_t i = p->sent; i < p->count; i++) p->commands[i].err = cc->err;
        }
        p->sent = p->count;
    }
    queuedCommand *q = &p->commands[p->taken++];
    *reply = q->reply;
    q->reply = NULL;
    if (*reply) clearError(cc);
    /* cc->err is that of the last failure, perhaps of another command. */
    if (!*reply && q->err == VALKEY_ERR_OOM) {
        failMemory(cc);
    } else if (!*reply && q->err == VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES) {
        failRetries(cc);
    } else if (!*reply && isUnserved(q)) {
        failUnserved(cc);
    } else if (!*reply && (!cc->err || (q->err && cc->err != q->err))) {
        vkClusterError(cc, q->err ? q->err : VALKEY_ERR_IO,
                       "The connection to the node has failed");
    }
    int result = *reply ? VALKEY_OK : VALKEY_ERR;
    /* An empty pipeline holds nothing. */
    if (p->taken == p->count) vkClusterFreePipeline(cc);
    return result;
}
