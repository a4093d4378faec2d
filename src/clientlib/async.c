/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous contexts: commands with callbacks.
 *
 * ac->replies has an entry for each command in the order of sending. A reply belongs to the first
 * entry, except for pushes, messages and lines of MONITOR. With RESP2 messages are arrays like
 * other replies. There an array is a message or a confirmation if subscriptions are in effect (the
 * server then accepts few other commands), or if the first entry is a SUBSCRIBE. An entry of
 * (UN)SUBSCRIBE remains until all its confirmations, or an error, have been received.
 *
 * If a callback frees the context, the context is freed after the callback returns. */
#include <limits.h>

#include <valkey/net.h>

#include "clientlib/async_priv.h"

/* ------------------------------------------------------------------ event loop */

static void addRead(valkeyAsyncContext *ac) {
    if (ac->ev.addRead) ac->ev.addRead(ac->ev.data);
}
static void addWrite(valkeyAsyncContext *ac) {
    if (ac->ev.addWrite) ac->ev.addWrite(ac->ev.data);
}
static void delWrite(valkeyAsyncContext *ac) {
    if (ac->ev.delWrite) ac->ev.delWrite(ac->ev.data);
}

static void cleanupEvents(valkeyAsyncContext *ac) {
    if (ac->ev.cleanup) ac->ev.cleanup(ac->ev.data);
    ac->ev.cleanup = NULL;
    ac->ev.data = NULL;
    ac->ev.addRead = ac->ev.delRead = ac->ev.addWrite = ac->ev.delWrite = NULL;
    ac->ev.scheduleTimer = NULL;
}

/* ------------------------------------------------------------------ time limits
 *
 * The limit applies while the server is expected to do something: to accept the connection, or to
 * reply. The time counts from the last bytes that were received. Sending restarts it, too, but only
 * while the first command without a reply is being sent, because a long command takes time. The
 * adapter has one timer, which cannot be stopped: it may expire too early, and is then restarted
 * for the remaining time. */

/* Microseconds of the limit that applies now; 0: none. */
static long long limitOf(const valkeyAsyncContext *ac) {
    const struct timeval *tv =
        ac->c.flags & VALKEY_CONNECTED ? ac->c.command_timeout : ac->c.connect_timeout;
    if (!ac->ev.scheduleTimer || !tv) return 0;
    return (long long)tv->tv_sec * 1000000 + tv->tv_usec;
}

static bool isWaiting(const valkeyAsyncContext *ac) {
    return !(ac->c.flags & VALKEY_CONNECTED) || ac->replies.head;
}

/* The time begins now. */
static void restartTime(valkeyAsyncContext *ac) {
    if (limitOf(ac)) ((asyncState *)ac)->waiting_since_us = vkNowUs();
}

/* Starts the timer if something is expected, unless it runs and expires in time. */
static void watchTime(valkeyAsyncContext *ac) {
    asyncState *s = (asyncState *)ac;
    long long limit = limitOf(ac), due = s->waiting_since_us + limit;
    if (!limit || !isWaiting(ac)) return;
    if (ac->timeout_reply_count != VALKEY_TIMEOUT_INACTIVE && s->timer_due_us <= due) return;
    long long now = vkNowUs(), rest = due > now ? due - now : 1;
    s->timer_due_us = now + rest;
    ac->timeout_reply_count = (int)(s->received & INT_MAX);
    ac->ev.scheduleTimer(ac->ev.data, (struct timeval){.tv_sec = (time_t)(rest / 1000000),
                                                       .tv_usec = (suseconds_t)(rest % 1000000)});
}

/* The timer has expired. True if the limit is exceeded; otherwise the timer was started again if
 * that is needed. */
static bool timeIsUp(valkeyAsyncContext *ac) {
    ac->timeout_reply_count = VALKEY_TIMEOUT_INACTIVE;
    if (!isWaiting(ac)) return false;
    /* Without a timer of the adapter the program calls this function when the time is over. */
    if (!ac->ev.scheduleTimer) return true;
    long long limit = limitOf(ac);
    if (limit && vkNowUs() >= ((asyncState *)ac)->waiting_since_us + limit) return true;
    watchTime(ac);
    return false;
}

/* ------------------------------------------------------------------ life */

void vkAsyncCopyError(valkeyAsyncContext *ac) {
    ac->err = ac->c.err;
    ac->errstr = ac->c.errstr;
}

int valkeyAsyncSetConnectCallback(valkeyAsyncContext *ac, valkeyConnectCallback *fn) {
    if (ac->onConnect) return VALKEY_ERR;
    ac->onConnect = fn;
    /* The socket becomes writable when it is connected. */
    addWrite(ac);
    watchTime(ac);
    return VALKEY_OK;
}

int valkeyAsyncSetDisconnectCallback(valkeyAsyncContext *ac, valkeyDisconnectCallback *fn) {
    if (ac->onDisconnect) return VALKEY_ERR;
    ac->onDisconnect = fn;
    return VALKEY_OK;
}

valkeyAsyncPushFn *valkeyAsyncSetPushCallback(valkeyAsyncContext *ac, valkeyAsyncPushFn *fn) {
    valkeyAsyncPushFn *previous = ac->push_cb;
    ac->push_cb = fn;
    return previous;
}

int valkeyAsyncSetTimeout(valkeyAsyncContext *ac, struct timeval tv) {
    if (vkCopyTimeout(&ac->c.command_timeout, &tv)) {
        watchTime(ac);
        return VALKEY_OK;
    }
    vkSetError(&ac->c, VALKEY_ERR_OOM, "Out of memory");
    vkAsyncCopyError(ac);
    return VALKEY_ERR;
}

/* ------------------------------------------------------------------ callbacks */

static void runCallback(valkeyAsyncContext *ac, const valkeyCallback *callback, void *reply) {
    if (!callback->fn) return;
    /* A callback may free or disconnect the context, which is then done later. */
    bool nested = ac->c.flags & VALKEY_IN_CALLBACK;
    ac->c.flags |= VALKEY_IN_CALLBACK;
    callback->fn(ac, reply, callback->privdata);
    if (!nested) ac->c.flags &= ~VALKEY_IN_CALLBACK;
}

static void runConnectCallback(valkeyAsyncContext *ac, int status) {
    valkeyConnectCallback *fn = ac->onConnect;
    ac->onConnect = NULL; /* once */
    if (!fn) return;
    bool nested = ac->c.flags & VALKEY_IN_CALLBACK;
    ac->c.flags |= VALKEY_IN_CALLBACK;
    fn(ac, status);
    if (!nested) ac->c.flags &= ~VALKEY_IN_CALLBACK;
}

static void pushPending(valkeyAsyncContext *ac, pendingCommand *p) {
    p->callback.next = NULL;
    if (ac->replies.tail) {
        ac->replies.tail->next = &p->callback;
    } else {
        ac->replies.head = &p->callback;
    }
    ac->replies.tail = &p->callback;
}

static void removeFirst(valkeyAsyncContext *ac) {
    pendingCommand *p = (pendingCommand *)ac->replies.head;
    ac->replies.head = p->callback.next;
    if (!ac->replies.head) ac->replies.tail = NULL;
    vk_free(p);
}

static void cancelSubscription(void *arg, subscription *s) { runCallback(arg, &s->callback, NULL); }

/* Calls the callbacks of commands without a reply with NULL. */
static void cancelReplies(valkeyAsyncContext *ac) {
    while (ac->replies.head) {
        pendingCommand *p = (pendingCommand *)ac->replies.head;
        valkeyCallback callback = p->callback;
        bool own = p->kind == PENDING_REPLY || p->kind == PENDING_MONITOR;
        removeFirst(ac);
        if (own) runCallback(ac, &callback, NULL);
    }
}

/* Calls every callback with NULL. */
static void cancelAll(valkeyAsyncContext *ac) {
    cancelReplies(ac);
    asyncState *s = (asyncState *)ac;
    if (ac->c.flags & VALKEY_MONITORING) runCallback(ac, &s->monitor, NULL);
    ac->c.flags &= ~VALKEY_MONITORING;
    for (int kind = 0; kind < SUB_KINDS; kind++) {
        struct dict *d = vkSubs(ac, (subKind)kind);
        vkDictVisit(d, cancelSubscription, ac);
    }
}

static void freeNow(valkeyAsyncContext *ac) {
    ac->c.flags |= VALKEY_FREEING;
    cancelAll(ac);
    for (int kind = 0; kind < SUB_KINDS; kind++) vkDictFree(vkSubs(ac, (subKind)kind));
    cleanupEvents(ac);
    if (ac->onDisconnect && (ac->c.flags & VALKEY_CONNECTED)) {
        ac->c.flags |= VALKEY_IN_CALLBACK;
        ac->onDisconnect(ac, ac->err ? VALKEY_ERR : VALKEY_OK);
    }
    if (ac->dataCleanup) ac->dataCleanup(ac->data);
    valkeyFree(&ac->c);
}

void valkeyAsyncFree(valkeyAsyncContext *ac) {
    if (!ac) return;
    ac->c.flags |= VALKEY_FREEING;
    if (!(ac->c.flags & VALKEY_IN_CALLBACK)) freeNow(ac);
}

/* Ends the connection after an error, or when the program has requested it. */
static void disconnect(valkeyAsyncContext *ac) {
    vkAsyncCopyError(ac);
    ac->c.flags |= VALKEY_DISCONNECTING; /* no more commands */
    cleanupEvents(ac);
    if (ac->c.flags & VALKEY_IN_CALLBACK) {
        ac->c.flags |= ac->c.flags & VALKEY_NO_AUTO_FREE ? 0 : VALKEY_FREEING;
        return;
    }
    if (!(ac->c.flags & VALKEY_NO_AUTO_FREE) || (ac->c.flags & VALKEY_FREEING)) freeNow(ac);
}

void valkeyAsyncDisconnect(valkeyAsyncContext *ac) {
    ac->c.flags |= VALKEY_DISCONNECTING;
    /* With pending replies the connection ends when the last one has been received. */
    if (!(ac->c.flags & VALKEY_IN_CALLBACK) && !ac->replies.head) disconnect(ac);
}

/* ------------------------------------------------------------------ replies */

static void freeReply(valkeyAsyncContext *ac, void *reply) { ac->c.reader->fn->freeObject(reply); }

/* Runs a callback and frees the reply, unless that is the callback's duty. */
static void deliver(valkeyAsyncContext *ac, const valkeyCallback *callback, valkeyReply *r) {
    runCallback(ac, callback, r);
    if (!callback->fn || !(ac->c.flags & VALKEY_NO_AUTO_FREE_REPLIES)) freeReply(ac, r);
}

static void refuseSubscription(valkeyAsyncContext *ac, const valkeyCallback *callback, void *arg) {
    valkeyReply *r = arg;
    /* Several callbacks may get the reply, so the library frees it. */
    runCallback(ac, callback, r);
}

/* A confirmation belongs to the first entry. */
static void countConfirmation(valkeyAsyncContext *ac) {
    pendingCommand *p = (pendingCommand *)ac->replies.head;
    if (!p || p->kind < PENDING_SUBSCRIBE) return;
    if (--p->callback.pending_subs <= 0) removeFirst(ac);
}

static void subscriptionReply(valkeyAsyncContext *ac, subKind kind, const char *word,
                              valkeyReply *r) {
    valkeyCallback callback = {0};
    bool spontaneous, known = vkSubsReceived(ac, kind, word, r, &callback, &spontaneous);
    if (strcmp(word, "message") != 0 && !spontaneous) countConfirmation(ac);
    if (vkSubsCount(ac) == 0) ac->c.flags &= ~VALKEY_SUBSCRIBED;
    if (!known) callback.fn = NULL;
    deliver(ac, &callback, r);
}

/* "1700000000.123456 [0 127.0.0.1:1234] ..." */
static bool isMonitorLine(const valkeyReply *r) {
    return r->type == VALKEY_REPLY_STATUS && r->str[0] >= '0' && r->str[0] <= '9' &&
           strstr(r->str, " [") != NULL;
}

static void firstReply(valkeyAsyncContext *ac, valkeyReply *r) {
    pendingCommand *p = (pendingCommand *)ac->replies.head;
    if (p->kind >= PENDING_SUBSCRIBE) {
        /* (UN)SUBSCRIBE was refused. */
        ac->replies.head = p->callback.next;
        if (!ac->replies.head) ac->replies.tail = NULL;
        vkCommandCursor cursor;
        vkArg name;
        if (p->kind == PENDING_SUBSCRIBE && vkCommandOpen(&cursor, p->command, p->len) &&
            vkCommandNext(&cursor, &name))
            vkSubsRefused(ac, p->sub, cursor, refuseSubscription, r);
        if (vkSubsCount(ac) == 0) ac->c.flags &= ~VALKEY_SUBSCRIBED;
        vk_free(p);
        freeReply(ac, r);
        return;
    }
    valkeyCallback callback = p->callback;
    if (p->kind == PENDING_MONITOR && r->type == VALKEY_REPLY_STATUS) {
        ((asyncState *)ac)->monitor = callback;
        ac->c.flags |= VALKEY_MONITORING;
    }
    removeFirst(ac);
    deliver(ac, &callback, r);
}

/* Delivers a reply. False: no command, subscription or MONITOR expects it. */
static bool dispatch(valkeyAsyncContext *ac, valkeyReply *r) {
    ((asyncState *)ac)->received++;
    subKind kind;
    const char *word;
    bool recognised = vkSubsRecognise(r, &kind, &word);
    if (r->type == VALKEY_REPLY_PUSH) {
        ac->c.flags |= VALKEY_SUPPORTS_PUSH;
        if (recognised) {
            subscriptionReply(ac, kind, word, r);
        } else if (ac->push_cb) {
            valkeyAsyncPushFn *fn = ac->push_cb;
            bool nested = ac->c.flags & VALKEY_IN_CALLBACK;
            ac->c.flags |= VALKEY_IN_CALLBACK;
            fn(ac, r);
            if (!nested) ac->c.flags &= ~VALKEY_IN_CALLBACK;
            freeReply(ac, r);
        } else {
            freeReply(ac, r);
        }
        return true;
    }
    pendingCommand *p = (pendingCommand *)ac->replies.head;
    bool expected = p && p->kind >= PENDING_SUBSCRIBE;
    bool resp2 = !(ac->c.flags & VALKEY_SUPPORTS_PUSH);
    if (recognised && resp2 && (expected || ((asyncState *)ac)->active > 0)) {
        subscriptionReply(ac, kind, word, r);
        return true;
    }
    if ((ac->c.flags & VALKEY_MONITORING) && isMonitorLine(r)) {
        valkeyCallback callback = ((asyncState *)ac)->monitor;
        deliver(ac, &callback, r);
        return true;
    }
    if (!p) return false;
    firstReply(ac, r);
    return true;
}

/* A reply that nothing waits for: an error that the server sends before it closes the
 * connection. */
static void unexpectedReply(valkeyAsyncContext *ac, valkeyReply *r) {
    vkSetError(&ac->c, VALKEY_ERR_OTHER,
               r->type == VALKEY_REPLY_ERROR ? r->str : "Reply without a command");
    freeReply(ac, r);
    disconnect(ac);
}

static void processReplies(valkeyAsyncContext *ac) {
    for (;;) {
        void *reply = NULL;
        if (valkeyGetReplyFromReader(&ac->c, &reply) != VALKEY_OK) {
            disconnect(ac);
            return;
        }
        if (!reply) {
            bool idle = !ac->replies.head && vkTextLen(ac->c.obuf) == 0;
            if ((ac->c.flags & VALKEY_DISCONNECTING) && idle) disconnect(ac);
            return;
        }
        if (!dispatch(ac, reply)) {
            unexpectedReply(ac, reply);
            return;
        }
        if (ac->c.flags & VALKEY_FREEING) {
            if (!(ac->c.flags & VALKEY_IN_CALLBACK)) freeNow(ac);
            return;
        }
    }
}

/* ------------------------------------------------------------------ events */

/* True if the connection is established and the context still exists. */
static bool establish(valkeyAsyncContext *ac) {
    int done;
    int status = valkeyCheckConnectDone(&ac->c, &done);
    if (status == VALKEY_OK && !done) return false;
    if (status != VALKEY_OK) {
        vkAsyncCopyError(ac);
        runConnectCallback(ac, VALKEY_ERR);
        disconnect(ac);
        return false;
    }
    ac->c.flags |= VALKEY_CONNECTED;
    restartTime(ac);
    watchTime(ac);
    runConnectCallback(ac, VALKEY_OK);
    if (ac->c.flags & VALKEY_FREEING) {
        if (!(ac->c.flags & VALKEY_IN_CALLBACK)) freeNow(ac);
        return false;
    }
    if ((ac->c.flags & VALKEY_DISCONNECTING) && !ac->replies.head) {
        disconnect(ac);
        return false;
    }
    if (ac->c.err) {
        disconnect(ac);
        return false;
    }
    return true;
}

/* Bytes that were received and not parsed. */
static size_t unparsed(const valkeyAsyncContext *ac) {
    return ac->c.reader->len - ac->c.reader->pos;
}

void valkeyAsyncRead(valkeyAsyncContext *ac) {
    const valkeyContextFuncs *funcs = ac->c.funcs;
    size_t before = unparsed(ac);
    do {
        if (valkeyBufferRead(&ac->c) != VALKEY_OK) {
            disconnect(ac);
            return;
        }
    } while (funcs->has_pending && funcs->has_pending(&ac->c));
    if (unparsed(ac) != before) restartTime(ac);
    addRead(ac);
    processReplies(ac);
}

void valkeyAsyncWrite(valkeyAsyncContext *ac) {
    asyncState *s = (asyncState *)ac;
    int done = 0;
    size_t before = vkTextLen(ac->c.obuf);
    if (valkeyBufferWrite(&ac->c, &done) != VALKEY_OK) {
        disconnect(ac);
        return;
    }
    const pendingCommand *first = (pendingCommand *)ac->replies.head;
    size_t sent = before - vkTextLen(ac->c.obuf);
    if (sent > 0 && first && s->sent < first->end) restartTime(ac);
    s->sent += sent;
    const valkeyContextFuncs *funcs = ac->c.funcs;
    if (done || (funcs->write_waits && funcs->write_waits(&ac->c))) {
        delWrite(ac);
    } else {
        addWrite(ac);
    }
    addRead(ac);
}

void valkeyAsyncHandleRead(valkeyAsyncContext *ac) {
    if (!(ac->c.flags & VALKEY_CONNECTED) && !establish(ac)) return;
    ac->c.funcs->async_read(ac);
}

void valkeyAsyncHandleWrite(valkeyAsyncContext *ac) {
    if (!(ac->c.flags & VALKEY_CONNECTED) && !establish(ac)) return;
    ac->c.funcs->async_write(ac);
}

void valkeyAsyncHandleTimeout(valkeyAsyncContext *ac) {
    bool connected = ac->c.flags & VALKEY_CONNECTED;
    if (!timeIsUp(ac)) return;
    if (!ac->c.err) {
        vkSetError(&ac->c, VALKEY_ERR_TIMEOUT, "Timeout");
        vkAsyncCopyError(ac);
    }
    ac->c.flags |= VALKEY_DISCONNECTING; /* callbacks cannot queue more */
    if (!connected) runConnectCallback(ac, VALKEY_ERR);
    if (!(ac->c.flags & VALKEY_FREEING)) cancelReplies(ac);
    disconnect(ac);
}

/* ------------------------------------------------------------------ commands */

/* Returns the kind of a command by its name. */
static pendingKind kindOf(vkArg name, subKind *sub) {
    static const struct {
        const char *name;
        pendingKind kind;
        subKind sub;
    } names[] = {
        {"subscribe", PENDING_SUBSCRIBE, SUB_CHANNEL},
        {"psubscribe", PENDING_SUBSCRIBE, SUB_PATTERN},
        {"ssubscribe", PENDING_SUBSCRIBE, SUB_SHARD},
        {"unsubscribe", PENDING_UNSUBSCRIBE, SUB_CHANNEL},
        {"punsubscribe", PENDING_UNSUBSCRIBE, SUB_PATTERN},
        {"sunsubscribe", PENDING_UNSUBSCRIBE, SUB_SHARD},
        {"monitor", PENDING_MONITOR, SUB_CHANNEL},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (!vkArgIs(name, names[i].name)) continue;
        *sub = names[i].sub;
        return names[i].kind;
    }
    return PENDING_REPLY;
}

/* Registers the command that was appended to obuf at `from`; takes it back on failure. */
static int commandQueued(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata,
                         size_t from) {
    asyncState *s = (asyncState *)ac;
    const char *cmd = ac->c.obuf + from;
    size_t len = vkTextLen(ac->c.obuf) - from;
    vkCommandCursor cursor;
    vkArg name;
    subKind sub = SUB_CHANNEL;
    pendingKind kind = PENDING_REPLY;
    /* A server does not reply to a command without arguments. */
    if (!vkCommandOpen(&cursor, cmd, len) || !vkCommandNext(&cursor, &name)) goto fail;
    kind = kindOf(name, &sub);
    if (kind == PENDING_SUBSCRIBE && cursor.left == 0) kind = PENDING_REPLY; /* an error */
    size_t kept = kind == PENDING_SUBSCRIBE ? len : 0;
    pendingCommand *p = vk_malloc(sizeof(*p) + kept);
    if (!p) goto fail;
    *p = (pendingCommand){
        .callback = {.fn = fn, .privdata = privdata}, .kind = kind, .sub = sub, .len = kept};
    memcpy(p->command, cmd, kept);
    if (kind >= PENDING_SUBSCRIBE && !vkSubsSent(ac, sub, kind == PENDING_SUBSCRIBE, cursor, fn,
                                                 privdata, &p->callback.pending_subs)) {
        vk_free(p);
        goto fail;
    }
    if (kind == PENDING_SUBSCRIBE) ac->c.flags |= VALKEY_SUBSCRIBED;
    if (!ac->replies.head && (ac->c.flags & VALKEY_CONNECTED)) restartTime(ac);
    s->queued += len;
    p->end = s->queued;
    pushPending(ac, p);
    addWrite(ac);
    watchTime(ac);
    return VALKEY_OK;
fail:
    vkTextSetLen(ac->c.obuf, from);
    return VALKEY_ERR;
}

static bool mayQueue(const valkeyAsyncContext *ac) {
    return !(ac->c.flags & (VALKEY_DISCONNECTING | VALKEY_FREEING));
}

int valkeyvAsyncCommand(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata,
                        const char *format, va_list ap) {
    if (!mayQueue(ac)) return VALKEY_ERR;
    size_t from = vkTextLen(ac->c.obuf);
    if (vkAppendFormat(&ac->c.obuf, format, ap) < 0) return VALKEY_ERR;
    return commandQueued(ac, fn, privdata, from);
}

int valkeyAsyncCommand(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata,
                       const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int status = valkeyvAsyncCommand(ac, fn, privdata, format, ap);
    va_end(ap);
    return status;
}

int valkeyAsyncCommandArgv(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata, int argc,
                           const char **argv, const size_t *argvlen) {
    if (!mayQueue(ac)) return VALKEY_ERR;
    size_t from = vkTextLen(ac->c.obuf);
    if (vkAppendArgv(&ac->c.obuf, argc, argv, argvlen) < 0) return VALKEY_ERR;
    return commandQueued(ac, fn, privdata, from);
}

int valkeyAsyncFormattedCommand(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata,
                                const char *cmd, size_t len) {
    /* With more or less than one command in the text, replies would reach the wrong callbacks. */
    if (!mayQueue(ac) || !vkIsOneCommand(cmd, len)) return VALKEY_ERR;
    size_t from = vkTextLen(ac->c.obuf);
    if (!vkTextAppend(&ac->c.obuf, cmd, len)) return VALKEY_ERR;
    return commandQueued(ac, fn, privdata, from);
}
