/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Synchronous client: contexts (connections), commands, pipelines, replies. A context belongs to
 * one thread at a time.
 *
 * After an error (c->err != 0) a context can only be freed or reconnected. */
#ifndef VALKEY_VALKEY_H
#define VALKEY_VALKEY_H

#include <stdarg.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#include <valkey/alloc.h>
#include <valkey/read.h>
#include <valkey/visibility.h>

#define LIBVALKEY_VERSION_MAJOR 0
#define LIBVALKEY_VERSION_MINOR 5
#define LIBVALKEY_VERSION_PATCH 0

/* Flags of a context (c->flags). */
#define VALKEY_BLOCK 0x1
#define VALKEY_CONNECTED 0x2
#define VALKEY_DISCONNECTING 0x4 /* async: disconnects when all replies have been received */
#define VALKEY_FREEING 0x8       /* async: will be freed when the running callback returns */
#define VALKEY_IN_CALLBACK 0x10
#define VALKEY_SUBSCRIBED 0x20
#define VALKEY_MONITORING 0x40
#define VALKEY_REUSEADDR 0x80 /* SO_REUSEADDR before binding a source address */
#define VALKEY_SUPPORTS_PUSH \
    0x100 /* async: a push message was received, so the protocol is RESP3 */
#define VALKEY_NO_AUTO_FREE 0x200
#define VALKEY_NO_AUTO_FREE_REPLIES 0x400
#define VALKEY_PREFER_IPV4 0x800
#define VALKEY_PREFER_IPV6 0x1000
#define VALKEY_MPTCP 0x2000

#define VALKEY_KEEPALIVE_INTERVAL 15 /* seconds */
/* How often binding to a source address is tried again if its ports are in use. */
#define VALKEY_CONNECT_RETRIES 10

#ifdef __cplusplus
extern "C" {
#endif

/* A reply. `str`, `element` and `vtype` belong to it; an element that is set to NULL is the
 * caller's to free. */
typedef struct valkeyReply {
    int type;          /* VALKEY_REPLY_* */
    long long integer; /* of INTEGER and BOOL */
    double dval;       /* of DOUBLE */
    size_t len;        /* bytes of `str` */
    char *str;         /* of STRING, STATUS, ERROR, VERB, BIGNUM, DOUBLE; followed by a NUL */
    char vtype[4];     /* of VERB: three characters and a NUL, e.g. "txt" */
    size_t elements;   /* of ARRAY, SET, PUSH, MAP and ATTR; twice the pairs for the last two */
    struct valkeyReply **element;
} valkeyReply;

/* True for a message that no command has asked for. */
#define valkeyIsPushReply(r) (((valkeyReply *)(r))->type == VALKEY_REPLY_PUSH)

/* A reader that builds valkeyReply. */
LIBVALKEY_API valkeyReader *valkeyReaderCreate(void);
LIBVALKEY_API void freeReplyObject(void *reply);

/* Format a command as bytes of the protocol. Arguments are separated by blanks; %s a C string, %b
 * bytes with their size_t length, %% a percent sign, and the numeric conversions of printf().
 * Return the length, or a negative number if memory is exhausted, the format is not valid, or an
 * argument is NULL (%b with NULL and 0 is empty); for the first function -1 in the first case and
 * -2 in the others. The caller frees `*target` with valkeyFreeCommand(). */
LIBVALKEY_API int valkeyvFormatCommand(char **target, const char *format, va_list ap);
LIBVALKEY_API int valkeyFormatCommand(char **target, const char *format, ...);
/* `argvlen` NULL: the arguments are C strings. -1 if memory is exhausted or an argument is NULL. */
LIBVALKEY_API long long valkeyFormatCommandArgv(char **target, int argc, const char **argv,
                                                const size_t *argvlen);
LIBVALKEY_API void valkeyFreeCommand(char *cmd);

enum valkeyConnectionType {
    VALKEY_CONN_TCP,
    VALKEY_CONN_UNIX,
    VALKEY_CONN_USERFD,
    VALKEY_CONN_RDMA, /* reserved; connecting fails */
    VALKEY_CONN_MAX
};

#define VALKEY_OPT_NONBLOCK 0x01
#define VALKEY_OPT_REUSEADDR 0x02
#define VALKEY_OPT_NOAUTOFREE 0x04        /* async: not freed when disconnected or failed */
#define VALKEY_OPT_NO_PUSH_AUTOFREE 0x08  /* no push callback: pushes are returned like replies */
#define VALKEY_OPT_NOAUTOFREEREPLIES 0x10 /* async: callbacks free their replies */
#define VALKEY_OPT_PREFER_IPV4 0x20
#define VALKEY_OPT_PREFER_IPV6 0x40
#define VALKEY_OPT_PREFER_IP_UNSPEC (VALKEY_OPT_PREFER_IPV4 | VALKEY_OPT_PREFER_IPV6)
#define VALKEY_OPT_MPTCP 0x80
/* The highest bit in use. */
#define VALKEY_OPT_LAST_SA_OPTION 0x80

typedef int valkeyFD;
#define VALKEY_INVALID_FD -1 /* also for #if */

struct valkeyContext;
struct valkeyAsyncContext;

/* Receives push messages of RESP3, which it frees: privdata of the context, the reply. */
typedef void(valkeyPushFn)(void *, void *);
typedef void(valkeyAsyncPushFn)(struct valkeyAsyncContext *, void *);

/* How to connect. To be zeroed first; texts are borrowed during the call. */
typedef struct {
    int type;                              /* enum valkeyConnectionType */
    int options;                           /* VALKEY_OPT_* */
    const struct timeval *connect_timeout; /* NULL: the system's */
    const struct timeval *command_timeout; /* NULL: none */
    union {
        struct {
            const char *source_addr; /* NULL: any */
            const char *ip;          /* address or host name */
            int port;
        } tcp;
        const char *unix_socket;
        valkeyFD fd;
    } endpoint;
    void *privdata; /* for the push callback */
    void (*free_privdata)(void *);
    valkeyPushFn *push_cb;
    valkeyAsyncPushFn *async_push_cb;
    /* Async: the adapter, and the callbacks of valkeyAsyncSetConnectCallback() and
     * ...DisconnectCallback(). */
    int (*attach_fn)(struct valkeyAsyncContext *, void *attach_data);
    void *attach_data;
    void (*async_connect_callback)(struct valkeyAsyncContext *, int status);
    void (*async_disconnect_callback)(const struct valkeyAsyncContext *, int status);
} valkeyOptions;

#define VALKEY_OPTIONS_SET_TCP(opts, ip_, port_) \
    do { \
        (opts)->type = VALKEY_CONN_TCP; \
        (opts)->endpoint.tcp.ip = ip_; \
        (opts)->endpoint.tcp.port = port_; \
    } while (0)

#define VALKEY_OPTIONS_SET_MPTCP(opts, ip_, port_) \
    do { \
        VALKEY_OPTIONS_SET_TCP(opts, ip_, port_); \
        (opts)->options |= VALKEY_OPT_MPTCP; \
    } while (0)

#define VALKEY_OPTIONS_SET_UNIX(opts, path) \
    do { \
        (opts)->type = VALKEY_CONN_UNIX; \
        (opts)->endpoint.unix_socket = path; \
    } while (0)

#define VALKEY_OPTIONS_SET_PRIVDATA(opts, data, dtor) \
    do { \
        (opts)->privdata = data; \
        (opts)->free_privdata = dtor; \
    } while (0)

/* A transport. read() and write() return the bytes transferred, 0 to try again later, -1 after an
 * error, with c->err set. Tables are read-only; members that a transport does not need are NULL. */
typedef struct valkeyContextFuncs {
    int (*connect)(struct valkeyContext *, const valkeyOptions *);
    void (*close)(struct valkeyContext *);
    void (*free_privctx)(void *); /* frees c->privctx */
    void (*async_read)(struct valkeyAsyncContext *);
    void (*async_write)(struct valkeyAsyncContext *);
    ssize_t (*read)(struct valkeyContext *, char *, size_t);
    /* Instead of read() if not NULL: lends bytes of the transport's memory, until
     * read_zc_done(). */
    ssize_t (*read_zc)(struct valkeyContext *, char **);
    ssize_t (*read_zc_done)(struct valkeyContext *);
    ssize_t (*write)(struct valkeyContext *); /* from c->obuf, which it does not change */
    int (*set_timeout)(struct valkeyContext *, const struct timeval);
    /* Writes bytes that are not in c->obuf; see valkeyWriteBytes(). */
    ssize_t (*write_bytes)(struct valkeyContext *, const char *, size_t);
    /* True if decoded bytes wait to be read, for which the socket will not become readable. */
    int (*has_pending)(struct valkeyContext *);
    /* True if writing can only continue after a read, as during a handshake. */
    int (*write_waits)(struct valkeyContext *);
} valkeyContextFuncs;

/* A connection. */
typedef struct valkeyContext {
    const valkeyContextFuncs *funcs;

    int err; /* 0 or VALKEY_ERR_* */
    char errstr[128];
    valkeyFD fd;
    int flags; /* VALKEY_BLOCK ... */
    /* Bytes to send. The 17 bytes before them are length (8), capacity (8) and the number 4 (1), in
     * the byte order of the machine; a NUL follows them. */
    char *obuf;
    valkeyReader *reader;

    enum valkeyConnectionType connection_type;
    struct timeval *connect_timeout;
    struct timeval *command_timeout;

    struct {
        char *host;
        char *source_addr;
        int port;
    } tcp;

    struct {
        char *path;
    } unix_sock;

    /* Address of the peer, for TCP. */
    struct sockaddr *saddr;
    size_t addrlen;

    void *privdata; /* the caller's; given to push_cb */
    void (*free_privdata)(void *);

    void *privctx; /* the transport's */

    valkeyPushFn *push_cb;
} valkeyContext;

/* These return a context, which is to be checked for c->err, or NULL if memory is exhausted or an
 * option is not valid. */
LIBVALKEY_API valkeyContext *valkeyConnectWithOptions(const valkeyOptions *options);
LIBVALKEY_API valkeyContext *valkeyConnect(const char *ip, int port);
LIBVALKEY_API valkeyContext *valkeyConnectWithTimeout(const char *ip, int port,
                                                      const struct timeval tv);
LIBVALKEY_API valkeyContext *valkeyConnectNonBlock(const char *ip, int port);
LIBVALKEY_API valkeyContext *valkeyConnectBindNonBlock(const char *ip, int port,
                                                       const char *source_addr);
LIBVALKEY_API valkeyContext *valkeyConnectBindNonBlockWithReuse(const char *ip, int port,
                                                                const char *source_addr);
LIBVALKEY_API valkeyContext *valkeyConnectUnix(const char *path);
LIBVALKEY_API valkeyContext *valkeyConnectUnixWithTimeout(const char *path,
                                                          const struct timeval tv);
LIBVALKEY_API valkeyContext *valkeyConnectUnixNonBlock(const char *path);
/* A connection over a descriptor that is connected already; the context closes it. */
LIBVALKEY_API valkeyContext *valkeyConnectFd(valkeyFD fd);
/* Connects again to the same endpoint with the same options; what was queued or received is
 * dropped. TLS must be initiated again. VALKEY_OK, or VALKEY_ERR with c->err. */
LIBVALKEY_API int valkeyReconnect(valkeyContext *c);

/* Returns the previous callback. With NULL, pushes are returned like replies. */
LIBVALKEY_API valkeyPushFn *valkeySetPushCallback(valkeyContext *c, valkeyPushFn *fn);
/* Limit for each read and write of a blocking context. */
LIBVALKEY_API int valkeySetTimeout(valkeyContext *c, const struct timeval tv);
LIBVALKEY_API int valkeyEnableKeepAlive(valkeyContext *c);
LIBVALKEY_API int valkeyEnableKeepAliveWithInterval(valkeyContext *c, int interval_s);
LIBVALKEY_API int valkeySetTcpUserTimeout(valkeyContext *c, unsigned int timeout_ms);
LIBVALKEY_API void valkeyFree(valkeyContext *c);
/* Like valkeyFree(), but leaves the descriptor open and returns it. */
LIBVALKEY_API valkeyFD valkeyFreeKeepFd(valkeyContext *c);

/* One read into the reader; one write from obuf, `*done` set if it is empty. */
LIBVALKEY_API int valkeyBufferRead(valkeyContext *c);
LIBVALKEY_API int valkeyBufferWrite(valkeyContext *c, int *done);
/* Sends bytes of the protocol from the caller's memory: returns how many were written (0: try
 * later), or -1 with c->err. obuf must be empty. For programs that send the same bytes again and
 * again. */
LIBVALKEY_API ssize_t valkeyWriteBytes(valkeyContext *c, const char *buf, size_t len);

/* The next reply; a blocking context sends what is queued and waits, another one gives NULL if
 * there is none yet. `reply` NULL: it is freed. */
LIBVALKEY_API int valkeyGetReply(valkeyContext *c, void **reply);
/* The next reply that was received already, push messages included; NULL if there is none. */
LIBVALKEY_API int valkeyGetReplyFromReader(valkeyContext *c, void **reply);

/* Queue a command. VALKEY_OK, or VALKEY_ERR with c->err. */
LIBVALKEY_API int valkeyAppendFormattedCommand(valkeyContext *c, const char *cmd, size_t len);
LIBVALKEY_API int valkeyvAppendCommand(valkeyContext *c, const char *format, va_list ap);
LIBVALKEY_API int valkeyAppendCommand(valkeyContext *c, const char *format, ...);
LIBVALKEY_API int valkeyAppendCommandArgv(valkeyContext *c, int argc, const char **argv,
                                          const size_t *argvlen);

/* Queue a command and, if the context is blocking, return its reply; NULL with c->err on
 * failure. */
LIBVALKEY_API void *valkeyvCommand(valkeyContext *c, const char *format, va_list ap);
LIBVALKEY_API void *valkeyCommand(valkeyContext *c, const char *format, ...);
LIBVALKEY_API void *valkeyCommandArgv(valkeyContext *c, int argc, const char **argv,
                                      const size_t *argvlen);

#ifdef __cplusplus
}
#endif

#endif
