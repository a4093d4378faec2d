/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous client: commands with callbacks on the event loop of the program (see adapters/). A
 * context and its callbacks belong to one thread. */
#ifndef VALKEY_ASYNC_H
#define VALKEY_ASYNC_H

#include <valkey/valkey.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VALKEY_TIMEOUT_INACTIVE -1

struct valkeyAsyncContext;
/* Subscriptions by name. */
struct dict;

/* Receives a reply (the context, the reply, privdata of the command), which the library frees
 * afterwards. The reply is NULL if the connection ended before it came. Messages of a subscription
 * are given to its callback, again and again. */
typedef void(valkeyCallbackFn)(struct valkeyAsyncContext *, void *, void *);
typedef struct valkeyCallback {
    struct valkeyCallback *next;
    valkeyCallbackFn *fn;
    int pending_subs; /* confirmations still expected */
    int unsubscribe_sent;
    void *privdata;
    int subscribed;
} valkeyCallback;

typedef struct valkeyCallbackList {
    valkeyCallback *head, *tail;
} valkeyCallbackList;

/* `status` VALKEY_ERR: the cause is in the context, which will be freed when the callback returns,
 * unless VALKEY_OPT_NOAUTOFREE was given. */
typedef void(valkeyDisconnectCallback)(const struct valkeyAsyncContext *, int status);
typedef void(valkeyConnectCallback)(struct valkeyAsyncContext *, int status);
typedef void(valkeyTimerCallback)(void *timer, void *privdata);

typedef struct valkeyAsyncContext {
    valkeyContext c;

    /* Copies of c.err and c.errstr. */
    int err;
    char *errstr;

    /* The caller's. */
    void *data;
    void (*dataCleanup)(void *privdata);

    /* Of the adapter; each may be called in any state. */
    struct {
        void *data;
        void (*addRead)(void *privdata);
        void (*delRead)(void *privdata);
        void (*addWrite)(void *privdata);
        void (*delWrite)(void *privdata);
        void (*cleanup)(void *privdata);
        void (*scheduleTimer)(void *privdata, struct timeval tv);
    } ev;

    valkeyDisconnectCallback *onDisconnect;
    valkeyConnectCallback *onConnect;

    /* Commands whose replies are expected, in their order. */
    valkeyCallbackList replies;

    struct sockaddr *saddr;
    size_t addrlen;

    struct {
        valkeyCallbackList replies; /* not used */
        struct dict *channels;
        struct dict *patterns;
        struct dict *schannels;
        int pending_unsubs; /* not used */
    } sub;

    /* Receives push messages that belong to no subscription. */
    valkeyAsyncPushFn *push_cb;

    /* Replies received when the running timer was started, or VALKEY_TIMEOUT_INACTIVE. */
    int timeout_reply_count;
} valkeyAsyncContext;

/* Begin to connect. NULL if memory is exhausted, else a context to be checked for `err`; it
 * connects when the event loop runs. */
LIBVALKEY_API valkeyAsyncContext *valkeyAsyncConnectWithOptions(const valkeyOptions *options);
LIBVALKEY_API valkeyAsyncContext *valkeyAsyncConnect(const char *ip, int port);
LIBVALKEY_API valkeyAsyncContext *valkeyAsyncConnectBind(const char *ip, int port,
                                                         const char *source_addr);
LIBVALKEY_API valkeyAsyncContext *valkeyAsyncConnectBindWithReuse(const char *ip, int port,
                                                                  const char *source_addr);
LIBVALKEY_API valkeyAsyncContext *valkeyAsyncConnectUnix(const char *path);
/* Each may be set once; VALKEY_ERR if it was set before. */
LIBVALKEY_API int valkeyAsyncSetConnectCallback(valkeyAsyncContext *ac, valkeyConnectCallback *fn);
LIBVALKEY_API int valkeyAsyncSetDisconnectCallback(valkeyAsyncContext *ac,
                                                   valkeyDisconnectCallback *fn);
/* Returns the previous callback. */
LIBVALKEY_API valkeyAsyncPushFn *valkeyAsyncSetPushCallback(valkeyAsyncContext *ac,
                                                            valkeyAsyncPushFn *fn);
/* Limit for connecting, and for the time without a reply while some are expected; needs an adapter
 * with timers. */
LIBVALKEY_API int valkeyAsyncSetTimeout(valkeyAsyncContext *ac, struct timeval tv);
/* Disconnects when all replies have been received, and frees the context. */
LIBVALKEY_API void valkeyAsyncDisconnect(valkeyAsyncContext *ac);
/* Frees the context after calling all callbacks with NULL; from a callback: when that returns. */
LIBVALKEY_API void valkeyAsyncFree(valkeyAsyncContext *ac);

/* For adapters: the socket is readable, is writable, the timer has expired. The context may have
 * been freed afterwards. */
LIBVALKEY_API void valkeyAsyncHandleRead(valkeyAsyncContext *ac);
LIBVALKEY_API void valkeyAsyncHandleWrite(valkeyAsyncContext *ac);
LIBVALKEY_API void valkeyAsyncHandleTimeout(valkeyAsyncContext *ac);
/* For transports: the part of the above that transfers data. */
LIBVALKEY_API void valkeyAsyncRead(valkeyAsyncContext *ac);
LIBVALKEY_API void valkeyAsyncWrite(valkeyAsyncContext *ac);

/* Queue a command. `fn` may be NULL. VALKEY_OK; VALKEY_ERR if memory is exhausted, the format is
 * not valid, `cmd` is not exactly one command, or the context is disconnecting: the callback is not
 * called then. */
LIBVALKEY_API int valkeyvAsyncCommand(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata,
                                      const char *format, va_list ap);
LIBVALKEY_API int valkeyAsyncCommand(valkeyAsyncContext *ac, valkeyCallbackFn *fn, void *privdata,
                                     const char *format, ...);
LIBVALKEY_API int valkeyAsyncCommandArgv(valkeyAsyncContext *ac, valkeyCallbackFn *fn,
                                         void *privdata, int argc, const char **argv,
                                         const size_t *argvlen);
LIBVALKEY_API int valkeyAsyncFormattedCommand(valkeyAsyncContext *ac, valkeyCallbackFn *fn,
                                              void *privdata, const char *cmd, size_t len);

#ifdef __cplusplus
}
#endif

#endif
