/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creates contexts of both kinds and connects them, by plain sockets first; other transports
 * replace the table of functions of a context that exists.
 *
 * Invariant: a context is returned whether or not it is connected, and its `err` tells why it is
 * not. NULL is returned for an unknown type of connection, or if memory is exhausted; the caller's
 * data is not freed then. */
#include <valkey/net.h>

#include "clientlib/async_priv.h"

const valkeyContextFuncs vkSocketFuncs = {
    .connect = vkSocketConnect,
    .close = valkeyNetClose,
    .async_read = valkeyAsyncRead,
    .async_write = valkeyAsyncWrite,
    .read = vkSocketRead,
    .write = vkSocketWrite,
    .set_timeout = valkeyTcpSetTimeout,
    .write_bytes = vkSocketWriteBytes,
};

/* ------------------------------------------------------------------ synchronous contexts */

static void pushFree(void *privdata, void *reply) {
    (void)privdata;
    freeReplyObject(reply);
}

static int flagsOf(const valkeyOptions *options) {
    static const struct {
        int option, flag;
    } pairs[] = {
        {VALKEY_OPT_REUSEADDR, VALKEY_REUSEADDR},
        {VALKEY_OPT_NOAUTOFREE, VALKEY_NO_AUTO_FREE},
        {VALKEY_OPT_NOAUTOFREEREPLIES, VALKEY_NO_AUTO_FREE_REPLIES},
        {VALKEY_OPT_PREFER_IPV4, VALKEY_PREFER_IPV4},
        {VALKEY_OPT_PREFER_IPV6, VALKEY_PREFER_IPV6},
        {VALKEY_OPT_MPTCP, VALKEY_MPTCP},
    };
    int flags = options->options & VALKEY_OPT_NONBLOCK ? 0 : VALKEY_BLOCK;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (options->options & pairs[i].option) flags |= pairs[i].flag;
    }
    return flags;
}

/* A context without a connection in a zeroed block of `size` bytes, or NULL. */
static valkeyContext *newContext(const valkeyOptions *options, size_t size) {
    valkeyContext *c = vk_calloc(1, size);
    if (!c) return NULL;
    c->funcs = &vkSocketFuncs;
    c->fd = VALKEY_INVALID_FD;
    c->flags = flagsOf(options);
    c->connection_type = (enum valkeyConnectionType)options->type;
    c->reader = valkeyReaderCreate();
    c->obuf = vkTextNew();
    if (!c->reader || !c->obuf || !vkCopyTimeout(&c->connect_timeout, options->connect_timeout) ||
        !vkCopyTimeout(&c->command_timeout, options->command_timeout)) {
        valkeyFree(c);
        return NULL;
    }
    if (options->push_cb) {
        c->push_cb = options->push_cb;
    } else if (!(options->options & VALKEY_OPT_NO_PUSH_AUTOFREE)) {
        c->push_cb = pushFree;
    }
    return c;
}

valkeyContext *valkeyConnectWithOptions(const valkeyOptions *options) {
    if (options->type < 0 || options->type >= VALKEY_CONN_MAX) return NULL;
    valkeyContext *c = newContext(options, sizeof(valkeyContext));
    if (!c) return NULL;
    /* Not before: a context that could not be created must not free the caller's data. */
    c->privdata = options->privdata;
    c->free_privdata = options->free_privdata;
    c->funcs->connect(c, options);
    if (c->err == 0 && c->fd != VALKEY_INVALID_FD && c->command_timeout &&
        (c->flags & VALKEY_BLOCK))
        valkeySetTimeout(c, *c->command_timeout);
    return c;
}

static valkeyContext *connectTcp(const char *ip, int port, int options, const struct timeval *tv,
                                 const char *source_addr) {
    valkeyOptions o = {.options = options, .connect_timeout = tv};
    VALKEY_OPTIONS_SET_TCP(&o, ip, port);
    o.endpoint.tcp.source_addr = source_addr;
    return valkeyConnectWithOptions(&o);
}

static valkeyContext *connectUnix(const char *path, int options, const struct timeval *tv) {
    valkeyOptions o = {.options = options, .connect_timeout = tv};
    VALKEY_OPTIONS_SET_UNIX(&o, path);
    return valkeyConnectWithOptions(&o);
}

valkeyContext *valkeyConnect(const char *ip, int port) {
    return connectTcp(ip, port, 0, NULL, NULL);
}
valkeyContext *valkeyConnectWithTimeout(const char *ip, int port, const struct timeval tv) {
    return connectTcp(ip, port, 0, &tv, NULL);
}
valkeyContext *valkeyConnectNonBlock(const char *ip, int port) {
    return connectTcp(ip, port, VALKEY_OPT_NONBLOCK, NULL, NULL);
}
valkeyContext *valkeyConnectBindNonBlock(const char *ip, int port, const char *source_addr) {
    return connectTcp(ip, port, VALKEY_OPT_NONBLOCK, NULL, source_addr);
}
valkeyContext *valkeyConnectBindNonBlockWithReuse(const char *ip, int port,
                                                  const char *source_addr) {
    return connectTcp(ip, port, VALKEY_OPT_NONBLOCK | VALKEY_OPT_REUSEADDR, NULL, source_addr);
}
valkeyContext *valkeyConnectUnix(const char *path) { return connectUnix(path, 0, NULL); }
valkeyContext *valkeyConnectUnixWithTimeout(const char *path, const struct timeval tv) {
    return connectUnix(path, 0, &tv);
}
valkeyContext *valkeyConnectUnixNonBlock(const char *path) {
    return connectUnix(path, VALKEY_OPT_NONBLOCK, NULL);
}

valkeyContext *valkeyConnectFd(valkeyFD fd) {
    valkeyOptions o = {.type = VALKEY_CONN_USERFD, .endpoint.fd = fd};
    return valkeyConnectWithOptions(&o);
}

int valkeyReconnect(valkeyContext *c) {
    c->err = 0;
    c->errstr[0] = '\0';
    vkCloseTransport(c, &vkSocketFuncs);
    char *obuf = vkTextNew();
    valkeyReader *reader = valkeyReaderCreate();
    if (!obuf || !reader) {
        vkTextFree(obuf);
        valkeyReaderFree(reader);
        vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
        return VALKEY_ERR;
    }
    vkTextFree(c->obuf);
    valkeyReaderFree(c->reader);
    c->obuf = obuf;
    c->reader = reader;

    valkeyOptions o = {.type = c->connection_type,
                       .connect_timeout = c->connect_timeout,
                       .command_timeout = c->command_timeout};
    if (c->connection_type == VALKEY_CONN_TCP) {
        o.endpoint.tcp.ip = c->tcp.host;
        o.endpoint.tcp.port = c->tcp.port;
        o.endpoint.tcp.source_addr = c->tcp.source_addr;
    } else if (c->connection_type == VALKEY_CONN_UNIX) {
        o.endpoint.unix_socket = c->unix_sock.path;
    } else {
        vkSetError(c, VALKEY_ERR_OTHER, "Not enough information to reconnect");
        return VALKEY_ERR;
    }
    if (c->funcs->connect(c, &o) != VALKEY_OK) return VALKEY_ERR;
    if (c->command_timeout && (c->flags & VALKEY_BLOCK))
        return valkeySetTimeout(c, *c->command_timeout);
    return VALKEY_OK;
}

/* ------------------------------------------------------------------ asynchronous contexts */

valkeyAsyncContext *valkeyAsyncConnectWithOptions(const valkeyOptions *options) {
    valkeyOptions own = *options;
    if (own.type < 0 || own.type >= VALKEY_CONN_MAX) return NULL;
    own.options |= VALKEY_OPT_NONBLOCK | VALKEY_OPT_NO_PUSH_AUTOFREE;
    own.push_cb = NULL;
    asyncState *s = (asyncState *)newContext(&own, sizeof(*s));
    if (!s) return NULL;
    valkeyAsyncContext *ac = &s->pub;
    ac->errstr = ac->c.errstr;
    ac->timeout_reply_count = VALKEY_TIMEOUT_INACTIVE;
    ac->push_cb = own.async_push_cb;
    ac->sub.channels = vkDictNew();
    ac->sub.patterns = vkDictNew();
    ac->sub.schannels = vkDictNew();
    if (!ac->sub.channels || !ac->sub.patterns || !ac->sub.schannels) {
        for (int kind = 0; kind < SUB_KINDS; kind++) vkDictFree(vkSubs(ac, (subKind)kind));
        valkeyFree(&ac->c);
        return NULL;
    }
    ac->c.privdata = own.privdata;
    ac->c.free_privdata = own.free_privdata;
    s->waiting_since_us = vkNowUs();
    ac->c.funcs->connect(&ac->c, &own);
    /* The context counts as connected only when the socket reports it. */
    ac->c.flags &= ~VALKEY_CONNECTED;
    if (!ac->c.err && own.attach_fn && own.attach_fn(ac, own.attach_data) != VALKEY_OK)
        vkSetError(&ac->c, VALKEY_ERR_OTHER, "Failed to attach event adapter");
    vkAsyncCopyError(ac);
    if (ac->err) return ac;
    if (own.async_connect_callback) valkeyAsyncSetConnectCallback(ac, own.async_connect_callback);
    ac->onDisconnect = own.async_disconnect_callback;
    return ac;
}

static valkeyAsyncContext *asyncConnectTcp(const char *ip, int port, int options,
                                           const char *source) {
    valkeyOptions o = {.options = options};
    VALKEY_OPTIONS_SET_TCP(&o, ip, port);
    o.endpoint.tcp.source_addr = source;
    return valkeyAsyncConnectWithOptions(&o);
}

valkeyAsyncContext *valkeyAsyncConnect(const char *ip, int port) {
    return asyncConnectTcp(ip, port, 0, NULL);
}
valkeyAsyncContext *valkeyAsyncConnectBind(const char *ip, int port, const char *source_addr) {
    return asyncConnectTcp(ip, port, 0, source_addr);
}
valkeyAsyncContext *valkeyAsyncConnectBindWithReuse(const char *ip, int port,
                                                    const char *source_addr) {
    return asyncConnectTcp(ip, port, VALKEY_OPT_REUSEADDR, source_addr);
}

valkeyAsyncContext *valkeyAsyncConnectUnix(const char *path) {
    valkeyOptions o = {0};
    VALKEY_OPTIONS_SET_UNIX(&o, path);
    return valkeyAsyncConnectWithOptions(&o);
}
