/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The asynchronous cluster client: a connection per node, made when it is needed.
 *
 * A request keeps its encoded command until its reply is final, so that it can be sent again to
 * another node. Requests of subscriptions are kept until their connection ends, because their
 * messages may come at any time. */
#include <stdio.h>

#include "clientlib/cluster_priv.h"

enum {
    /* Without success, the map is asked for at most once in this time: every failed command asks
     * for it. */
    UPDATE_INTERVAL_US = 1000000,
    /* Delays between searches for the first map; each is twice the one before. */
    WAKE_FIRST_MS = 50,
    WAKE_MAX_MS = 1000,
};

typedef struct vkClusterRequest {
    struct vkClusterRequest *next, *previous;
    valkeyClusterAsyncContext *acc;
    valkeyClusterCallbackFn *fn;
    void *privdata;
    vkClusterLink *link; /* the connection that it was sent on last */
    int slot;            /* -1: to a node, without redirection */
    int tries;
    int channels; /* of a subscription; 0: one reply */
    int ignored;  /* further callbacks with the error that is being followed */
    size_t len;
    char command[];
} vkClusterRequest;

static void requestMap(valkeyClusterAsyncContext *acc, valkeyAsyncContext *from);
static void freeRequest(vkClusterRequest *q);

static void copyError(valkeyClusterAsyncContext *acc) {
    acc->err = acc->cc.err;
    acc->errstr = acc->cc.errstr;
}

static void setError(valkeyClusterAsyncContext *acc, int type, const char *text) {
    vkClusterError(&acc->cc, type, text);
    copyError(acc);
}

static void clearError(valkeyClusterAsyncContext *acc) {
    acc->cc.err = acc->err = 0;
    acc->cc.errstr[0] = '\0';
}

/* ------------------------------------------------------------------ connections */

static bool isEnding(const valkeyClusterAsyncContext *acc) {
    return acc->cc.flags & (VALKEY_DISCONNECTING | VALKEY_FREEING);
}

/* Frees the context if that was asked for, and nothing uses it. */
static void destroyIfUnused(valkeyClusterAsyncContext *acc) {
    if (!(acc->cc.flags & VALKEY_FREEING) || acc->links || acc->busy > 0) return;
    while (acc->requests) freeRequest(acc->requests);
    vkClusterClear(&acc->cc);
    vk_free(acc);
}

/* The connection does not give what it should; counted once. */
static void countFailure(vkClusterLink *link) {
    if (link->node && !link->failed) link->node->failure_count++;
    link->failed = true;
}

/* No more messages will come. */
static void freeSubscriptions(valkeyClusterAsyncContext *acc, const vkClusterLink *link) {
    for (vkClusterRequest *q = acc->requests, *next; q; q = next) {
        next = q->next;
        if (q->channels > 0 && q->link == link) freeRequest(q);
    }
}

/* A connection has been freed. */
static void connectionGone(void *data) {
    vkClusterLink *link = data;
    valkeyClusterAsyncContext *acc = link->acc;
    if (link->ac->err) countFailure(link);
    freeSubscriptions(acc, link);
    if (link->node) link->node->acon = NULL;
    if (link->next) link->next->previous = link->previous;
    if (link->previous) {
        link->previous->next = link->next;
    } else {
        acc->links = link->next;
    }
    vk_free(link);
    destroyIfUnused(acc);
}

static bool addLink(valkeyClusterAsyncContext *acc, valkeyAsyncContext *ac,
                    valkeyClusterNode *node) {
    vkClusterLink *link = vk_malloc(sizeof(*link));
    if (!link) return false;
    *link = (vkClusterLink){.next = acc->links, .acc = acc, .ac = ac, .node = node};
    if (link->next) link->next->previous = link;
    acc->links = link;
    ac->data = link;
    ac->dataCleanup = connectionGone;
    node->acon = ac;
    return true;
}

/* Replies to AUTH and SELECT: an error will be the reply of the commands, too. */
static bool queueLogin(const valkeyClusterContext *cc, valkeyAsyncContext *ac) {
    int status = VALKEY_OK;
    if (cc->password && cc->username)
        status = valkeyAsyncCommand(ac, NULL, NULL, "AUTH %s %s", cc->username, cc->password);
    if (cc->password && !cc->username)
        status = valkeyAsyncCommand(ac, NULL, NULL, "AUTH %s", cc->password);
    if (status == VALKEY_OK && cc->select_db)
        status = valkeyAsyncCommand(ac, NULL, NULL, "SELECT %d", cc->select_db);
    return status == VALKEY_OK;
}

valkeyAsyncContext *valkeyClusterGetValkeyAsyncContext(valkeyClusterAsyncContext *acc,
                                                       valkeyClusterNode *node) {
    valkeyClusterContext *cc = &acc->cc;
    if (node->acon && !(node->acon->c.flags & (VALKEY_DISCONNECTING | VALKEY_FREEING)))
        return node->acon;
    if (node->acon) {
        /* It is about to end. */
        ((vkClusterLink *)node->acon->data)->node = NULL;
        node->acon = NULL;
    }
    node->lastConnectionAttempt = vkNowUs();
    valkeyOptions o = vkClusterNodeOptions(cc, node);
    valkeyAsyncContext *ac = valkeyAsyncConnectWithOptions(&o);
    if (!ac) {
        setError(acc, VALKEY_ERR_OOM, "Out of memory");
        return NULL;
    }
    if (ac->err) {
        setError(acc, ac->err, ac->errstr);
    } else if (cc->tls && cc->tls_init_fn(&ac->c, cc->tls) != VALKEY_OK) {
        setError(acc, ac->c.err, ac->c.errstr);
    } else if (acc->attach_fn && acc->attach_fn(ac, acc->attach_data) != VALKEY_OK) {
        setError(acc, VALKEY_ERR_OTHER, "Failed to attach event adapter");
    } else if (!queueLogin(cc, ac) || !addLink(acc, ac, node)) {
        setError(acc, VALKEY_ERR_OOM, "Out of memory");
    } else {
        if (acc->onConnect) valkeyAsyncSetConnectCallback(ac, acc->onConnect);
        if (acc->onDisconnect) valkeyAsyncSetDisconnectCallback(ac, acc->onDisconnect);
        return ac;
    }
    if (acc->err != VALKEY_ERR_OOM) node->failure_count++;
    valkeyAsyncFree(ac);
    return NULL;
}

/* ------------------------------------------------------------------ requests */

static void linkRequest(vkClusterRequest *q) {
    q->next = q->acc->requests;
    if (q->next) q->next->previous = q;
    q->acc->requests = q;
}

static void freeRequest(vkClusterRequest *q) {
    if (q->next) q->next->previous = q->previous;
    if (q->previous) {
        q->previous->next = q->next;
    } else {
        q->acc->requests = q->next;
    }
    vk_free(q);
}

/* Gives the final reply to the caller. */
static void finish(vkClusterRequest *q, valkeyReply *r) {
    valkeyClusterAsyncContext *acc = q->acc;
    valkeyClusterCallbackFn *fn = q->fn;
    void *privdata = q->privdata;
    if (q->channels == 0) freeRequest(q);
    if (r) clearError(acc);
    if (fn) fn(acc, r, privdata);
}

static void onReply(valkeyAsyncContext *ac, void *reply, void *privdata);

/* Renews the map because a node cannot be reached; acc->err remains the reason. */
static void nodeUnreachable(valkeyClusterAsyncContext *acc) {
    char text[sizeof(acc->cc.errstr)];
    int type = acc->cc.err;
    memcpy(text, acc->cc.errstr, sizeof(text));
    requestMap(acc, NULL);
    setError(acc, type, text);
}

/* Sends the request to a node; false with acc->err. */
static bool sendTo(vkClusterRequest *q, valkeyClusterNode *node, bool asking) {
    if (!node) return false;
    valkeyAsyncContext *ac = valkeyClusterGetValkeyAsyncContext(q->acc, node);
    if (!ac) {
        nodeUnreachable(q->acc);
        return false;
    }
    q->link = ac->data;
    if ((!asking || valkeyAsyncCommand(ac, NULL, NULL, "ASKING") == VALKEY_OK) &&
        valkeyAsyncFormattedCommand(ac, onReply, q, q->command, q->len) == VALKEY_OK)
        return true;
    setError(q->acc, VALKEY_ERR_OOM, "Out of memory");
    return false;
}

/* What became of an error reply: it is the final one, the command was sent again, or that failed
 * (acc->err). */
typedef enum followed { FOLLOW_FINAL, FOLLOW_SENT, FOLLOW_FAILED } followed;

static followed follow(vkClusterRequest *q, valkeyAsyncContext *from, const valkeyReply *r) {
    valkeyClusterAsyncContext *acc = q->acc;
    redirect d = vkRedirectOf(r);
    if (d.kind == REDIRECT_NONE || q->slot < 0 || isEnding(acc)) return FOLLOW_FINAL;
    acc->cc.retry_count = q->tries;
    if (q->tries++ >= acc->cc.max_retry_count) {
        setError(acc, VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES, "too many cluster retries");
        return FOLLOW_FAILED;
    }
    valkeyClusterNode *to;
    if (d.kind == REDIRECT_RETRY) {
        to = ((vkClusterLink *)from->data)->node;
        if (!to) to = acc->cc.table[q->slot];
        if (!to) setError(acc, VALKEY_ERR_OTHER, "slot not served by any node");
    } else {
        to = vkClusterNodeAt(&acc->cc, d.host[0] ? d.host : from->c.tcp.host, d.port);
        if (!to) copyError(acc);
    }
    if (d.kind == REDIRECT_MOVED && to) acc->cc.table[d.slot] = to;
    bool sent = sendTo(q, to, d.kind == REDIRECT_ASK);
    /* The node that said so knows; the target, if it is new, may not know the whole map. */
    if (d.kind == REDIRECT_MOVED) requestMap(acc, from);
    return sent ? FOLLOW_SENT : FOLLOW_FAILED;
}

/* The connection ended before the reply. */
static void noReply(vkClusterRequest *q, valkeyAsyncContext *ac) {
    valkeyClusterAsyncContext *acc = q->acc;
    vkClusterLink *link = ac->data;
    if (ac->err) countFailure(link);
    requestMap(acc, NULL);
    if (ac->err) {
        setError(acc, ac->err, ac->errstr);
    } else {
        setError(acc, VALKEY_ERR_EOF, "Disconnected");
    }
    finish(q, NULL);
}

static void onReply(valkeyAsyncContext *ac, void *reply, void *privdata) {
    vkClusterRequest *q = privdata;
    vkClusterLink *link = ac->data;
    valkeyReply *r = reply;
    if (q->ignored > 0) {
        q->ignored--;
        return;
    }
    if (!r) {
        noReply(q, ac);
        return;
    }
    if (link->node) link->node->failure_count = 0;
    followed result = r->type == VALKEY_REPLY_ERROR ? follow(q, ac, r) : FOLLOW_FINAL;
    /* The error of a subscription is given to the callback of each channel. */
    if (result == FOLLOW_SENT && q->channels > 1) q->ignored = q->channels - 1;
    if (result != FOLLOW_SENT) finish(q, result == FOLLOW_FINAL ? r : NULL);
}

/* Number of channels if the command is a subscription. */
static int channelsOf(const char *cmd, size_t len) {
    vkCommandCursor cursor;
    vkArg name;
    if (!vkCommandOpen(&cursor, cmd, len) || !vkCommandNext(&cursor, &name)) return 0;
    bool subscribes =
        vkArgIs(name, "subscribe") || vkArgIs(name, "psubscribe") || vkArgIs(name, "ssubscribe");
    /* MONITOR also has many replies. */
    if (vkArgIs(name, "monitor")) return 1;
    return subscribes ? (int)cursor.left : 0;
}

static int queue(valkeyClusterAsyncContext *acc, valkeyClusterNode *node, int slot,
                 valkeyClusterCallbackFn *fn, void *privdata, const char *cmd, size_t len) {
    vkClusterRequest *q = vk_malloc(sizeof(*q) + len);
    if (!q) {
        setError(acc, VALKEY_ERR_OOM, "Out of memory");
        return VALKEY_ERR;
    }
    *q = (vkClusterRequest){.acc = acc, .fn = fn, .privdata = privdata, .slot = slot, .len = len};
    memcpy(q->command, cmd, len);
    q->channels = channelsOf(cmd, len);
    linkRequest(q);
    if (sendTo(q, node, false)) return VALKEY_OK;
    freeRequest(q);
    return VALKEY_ERR;
}

/* ------------------------------------------------------------------ the map */

static void askNext(valkeyClusterAsyncContext *acc);

static void onMap(valkeyAsyncContext *ac, void *reply, void *privdata) {
    valkeyClusterAsyncContext *acc = privdata;
    vkClusterLink *link = ac->data;
    acc->updating = 0;
    if (isEnding(acc)) return;
    if (reply && link->node) link->node->failure_count = 0;
    if (reply && vkClusterApplyMap(&acc->cc, reply, ac->c.tcp.host)) {
        acc->wake_ms = 0;
        clearError(acc);
        return;
    }
    if (!reply)
        setError(acc, ac->err ? ac->err : VALKEY_ERR_EOF, ac->err ? ac->errstr : "Disconnected");
    copyError(acc);
    /* Another node may know. */
    if (!reply) countFailure(link);
    if (reply && link->node) link->node->failure_count++;
    askNext(acc);
}

/* False if the connection cannot be asked. */
static bool ask(valkeyClusterAsyncContext *acc, valkeyAsyncContext *ac) {
    if (!ac || valkeyAsyncCommand(ac, onMap, acc, vkClusterMapQuery(&acc->cc)) != VALKEY_OK)
        return false;
    acc->updating = 1;
    return true;
}

/* Begins a search for the map: `from` is asked first, if it is not NULL, then every node until one
 * sends it. */
static void search(valkeyClusterAsyncContext *acc, valkeyAsyncContext *from) {
    valkeyClusterNode *node = from ? ((vkClusterLink *)from->data)->node : NULL;
    acc->lastSlotmapUpdateAttempt = vkNowUs();
    acc->cc.map_round++;
    if (node && ask(acc, from)) {
        node->asked_round = acc->cc.map_round;
    } else {
        askNext(acc);
    }
}

static void searchAgain(valkeyClusterAsyncContext *acc) {
    acc->wake = NULL;
    search(acc, NULL);
}

/* Asks the next node of the round for the map. */
static void askNext(valkeyClusterAsyncContext *acc) {
    for (int pass = 0; pass < 2; pass++) {
        /* The initial nodes may know when none of the map does. */
        if (pass == 1 && !vkClusterAddSeeds(&acc->cc)) copyError(acc);
        for (valkeyClusterNode *n; (n = vkClusterNextToAsk(&acc->cc));) {
            if (ask(acc, valkeyClusterGetValkeyAsyncContext(acc, n))) return;
        }
    }
    /* Before the first map commands are refused, so only a timer leads to the next attempt. */
    if (acc->cc.route_version > 0 || acc->wake || isEnding(acc)) return;
    acc->wake_ms = acc->wake_ms ? acc->wake_ms * 2 : WAKE_FIRST_MS;
    if (acc->wake_ms > WAKE_MAX_MS) acc->wake_ms = WAKE_MAX_MS;
    acc->wake = vkWakeStart(acc, acc->wake_ms, searchAgain);
}

/* The map may be outdated: begins a search, unless one is under way, will begin, or began a short
 * while ago. */
static void requestMap(valkeyClusterAsyncContext *acc, valkeyAsyncContext *from) {
    if (acc->updating || isEnding(acc)) return;
    int64_t last = acc->lastSlotmapUpdateAttempt, age = vkNowUs() - last;
    if (last != 0 && age < UPDATE_INTERVAL_US) return;
    /* A program that polls the connections of nodes only does not watch the timer. */
    if (acc->wake && age < 2 * UPDATE_INTERVAL_US) return;
    valkeyAsyncFree(acc->wake);
    acc->wake = NULL;
    search(acc, from);
}

/* ------------------------------------------------------------------ life */

valkeyClusterAsyncContext *valkeyClusterAsyncConnectWithOptions(
    const valkeyClusterOptions *options) {
    valkeyClusterAsyncContext *acc = vk_calloc(1, sizeof(*acc));
    if (!acc) return NULL;
    acc->errstr = acc->cc.errstr;
    acc->attach_fn = options->attach_fn;
    acc->attach_data = options->attach_data;
    acc->onConnect = options->async_connect_callback;
    acc->onDisconnect = options->async_disconnect_callback;
    if (!vkClusterInit(&acc->cc, options)) {
        vkClusterClear(&acc->cc);
        vk_free(acc);
        return NULL;
    }
    if (!vkClusterCheckOptions(&acc->cc)) {
        copyError(acc);
        return acc;
    }
    if (options->options & VALKEY_OPT_BLOCKING_INITIAL_UPDATE) {
        valkeyClusterUpdateSlotmap(&acc->cc);
        /* The connection that was used for it has no further purpose. */
        for (valkeyClusterNode *n = acc->cc.nodes; n; n = n->next) {
            valkeyFree(n->con);
            n->con = NULL;
        }
    } else if (vkClusterAddSeeds(&acc->cc)) {
        search(acc, NULL);
    }
    copyError(acc);
    return acc;
}

/* Ends all connections with `end`, which may run callbacks that free the context. */
static void endConnections(valkeyClusterAsyncContext *acc, void (*end)(valkeyAsyncContext *ac)) {
    valkeyAsyncFree(acc->wake);
    acc->wake = NULL;
    acc->busy++;
    for (bool found = true; found;) {
        found = false;
        /* Others may have been freed meanwhile, so it begins anew after each. */
        for (vkClusterLink *link = acc->links; link && !found; link = link->next) {
            if (link->ending) continue;
            link->ending = true;
            found = true;
            end(link->ac);
        }
    }
    acc->busy--;
    destroyIfUnused(acc);
}

void valkeyClusterAsyncDisconnect(valkeyClusterAsyncContext *acc) {
    if (isEnding(acc)) return;
    acc->cc.flags |= VALKEY_DISCONNECTING;
    endConnections(acc, valkeyAsyncDisconnect);
}

void valkeyClusterAsyncFree(valkeyClusterAsyncContext *acc) {
    if (!acc || (acc->cc.flags & VALKEY_FREEING)) return;
    vkClusterEvent(&acc->cc, VALKEYCLUSTER_EVENT_FREE_CONTEXT);
    /* A connection whose callback is running is freed when that returns, and `acc` with the last
     * one. */
    acc->cc.flags |= VALKEY_FREEING;
    for (vkClusterLink *link = acc->links; link; link = link->next) link->ending = false;
    endConnections(acc, valkeyAsyncFree);
}

/* ------------------------------------------------------------------ commands */

int valkeyClusterAsyncFormattedCommand(valkeyClusterAsyncContext *acc, valkeyClusterCallbackFn *fn,
                                       void *privdata, char *cmd, int len) {
    clearError(acc);
    if (isEnding(acc)) {
        setError(acc, VALKEY_ERR_OTHER, "disconnecting");
        return VALKEY_ERR;
    }
    if (!vkClusterCheckCommand(&acc->cc, cmd, len)) {
        copyError(acc);
        return VALKEY_ERR;
    }
    int slot = vkSlotOfCommand(cmd, (size_t)len);
    if (slot < 0) {
        setError(acc, VALKEY_ERR_OTHER,
                 "No keys in command(must have keys for valkey cluster mode)");
        return VALKEY_ERR;
    }
    valkeyClusterNode *node = acc->cc.table[slot];
    if (node) return queue(acc, node, slot, fn, privdata, cmd, (size_t)len);
    requestMap(acc, NULL);
    setError(acc, VALKEY_ERR_OTHER,
             acc->cc.route_version ? "slot not served by any node" : "slotmap not available");
    return VALKEY_ERR;
}

int valkeyClusterAsyncFormattedCommandToNode(valkeyClusterAsyncContext *acc,
                                             valkeyClusterNode *node, valkeyClusterCallbackFn *fn,
                                             void *privdata, char *cmd, int len) {
    clearError(acc);
    if (isEnding(acc)) {
        setError(acc, VALKEY_ERR_OTHER, "disconnecting");
        return VALKEY_ERR;
    }
    if (!vkClusterCheckCommand(&acc->cc, cmd, len)) {
        copyError(acc);
        return VALKEY_ERR;
    }
    return queue(acc, node, -1, fn, privdata, cmd, (size_t)len);
}

/* Reports why a command was not encoded. */
static int formatFailed(valkeyClusterAsyncContext *acc, long long len) {
    clearError(acc);
    if (len == -2) {
        setError(acc, VALKEY_ERR_OTHER, "Invalid format string");
    } else {
        setError(acc, VALKEY_ERR_OOM, "Out of memory");
    }
    return VALKEY_ERR;
}

int valkeyClustervAsyncCommandToNode(valkeyClusterAsyncContext *acc, valkeyClusterNode *node,
                                     valkeyClusterCallbackFn *fn, void *privdata,
                                     const char *format, va_list ap) {
    char *cmd;
    int len = valkeyvFormatCommand(&cmd, format, ap);
    if (len < 0) return formatFailed(acc, len);
    int status = node ? valkeyClusterAsyncFormattedCommandToNode(acc, node, fn, privdata, cmd, len)
                      : valkeyClusterAsyncFormattedCommand(acc, fn, privdata, cmd, len);
    vk_free(cmd);
    return status;
}

int valkeyClusterAsyncCommandToNode(valkeyClusterAsyncContext *acc, valkeyClusterNode *node,
                                    valkeyClusterCallbackFn *fn, void *privdata, const char *format,
                                    ...) {
    va_list ap;
    va_start(ap, format);
    int status = valkeyClustervAsyncCommandToNode(acc, node, fn, privdata, format, ap);
    va_end(ap);
    return status;
}

int valkeyClustervAsyncCommand(valkeyClusterAsyncContext *acc, valkeyClusterCallbackFn *fn,
                               void *privdata, const char *format, va_list ap) {
    return valkeyClustervAsyncCommandToNode(acc, NULL, fn, privdata, format, ap);
}

int valkeyClusterAsyncCommand(valkeyClusterAsyncContext *acc, valkeyClusterCallbackFn *fn,
                              void *privdata, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int status = valkeyClustervAsyncCommand(acc, fn, privdata, format, ap);
    va_end(ap);
    return status;
}

int valkeyClusterAsyncCommandArgv(valkeyClusterAsyncContext *acc, valkeyClusterCallbackFn *fn,
                                  void *privdata, int argc, const char **argv,
                                  const size_t *argvlen) {
    return valkeyClusterAsyncCommandArgvToNode(acc, NULL, fn, privdata, argc, argv, argvlen);
}

int valkeyClusterAsyncCommandArgvToNode(valkeyClusterAsyncContext *acc, valkeyClusterNode *node,
                                        valkeyClusterCallbackFn *fn, void *privdata, int argc,
                                        const char **argv, const size_t *argvlen) {
    char *cmd;
    long long len = valkeyFormatCommandArgv(&cmd, argc, argv, argvlen);
    if (len < 0) return formatFailed(acc, len);
    int status =
        node ? valkeyClusterAsyncFormattedCommandToNode(acc, node, fn, privdata, cmd, (int)len)
             : valkeyClusterAsyncFormattedCommand(acc, fn, privdata, cmd, (int)len);
    vk_free(cmd);
    return status;
}
