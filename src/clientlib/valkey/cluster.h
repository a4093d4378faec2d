/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients of a cluster: commands are sent to the node that serves the slot of their first key, and
 * redirected as the nodes say (MOVED, ASK), or tried again (TRYAGAIN, CLUSTERDOWN). */
#ifndef VALKEY_CLUSTER_H
#define VALKEY_CLUSTER_H

#include <valkey/async.h>
#include <valkey/valkey.h>

#define VALKEYCLUSTER_SLOTS 16384

/* Further values of `err`. */
#define VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES 100

#define VALKEY_ROLE_UNKNOWN 0
#define VALKEY_ROLE_PRIMARY 1
#define VALKEY_ROLE_REPLICA 2

/* Options besides VALKEY_OPT_PREFER_*, VALKEY_OPT_MPTCP. */
#define VALKEY_OPT_USE_CLUSTER_NODES \
    0x1000                             /* the map from CLUSTER NODES instead of CLUSTER SLOTS */
#define VALKEY_OPT_USE_REPLICAS 0x2000 /* replicas are listed, too */
#define VALKEY_OPT_BLOCKING_INITIAL_UPDATE 0x4000 /* async: connecting waits for the map */

#define VALKEYCLUSTER_EVENT_SLOTMAP_UPDATED 1
#define VALKEYCLUSTER_EVENT_READY 2 /* the first map */
#define VALKEYCLUSTER_EVENT_FREE_CONTEXT 3

#ifdef __cplusplus
extern "C" {
#endif

struct valkeyClusterContext;
struct valkeyClusterAsyncContext;
struct valkeyTLSContext;
struct valkeyClusterPipeline;
struct cluster_slot;

/* As valkeyCallbackFn; the reply NULL: acc->err has the cause. */
typedef void(valkeyClusterCallbackFn)(struct valkeyClusterAsyncContext *, void *, void *);

/* A node; valid as long as it is in the map, and until the second update of the map without it. */
typedef struct valkeyClusterNode {
    char *name; /* its id, or NULL */
    char *addr; /* "host:port" */
    char *host;
    uint16_t port;
    uint8_t role; /* VALKEY_ROLE_* */
    uint8_t pad;
    int failure_count;             /* since its last reply */
    valkeyContext *con;            /* or NULL */
    valkeyAsyncContext *acon;      /* or NULL */
    int64_t lastConnectionAttempt; /* monotonic time in microseconds; 0: none */
    struct cluster_slot *slots;    /* `slot_ranges` of them, or NULL */
    int slot_ranges;
    struct valkeyClusterNode *replicas; /* the first one, the others by `next_replica` */
    struct valkeyClusterNode *next_replica;
    struct valkeyClusterNode *primary; /* of a replica */
    struct valkeyClusterNode *next;
    /* The library's. */
    struct valkeyClusterNode *known; /* during an update */
    unsigned asked_round;
    int in_map; /* 0: an initial node, or the target of a redirect */
    int in_transaction;
    int unreachable; /* during the sending of a pipeline */
} valkeyClusterNode;

typedef struct valkeyClusterContext {
    int err; /* of the last call: 0 or VALKEY_ERR_* */
    char errstr[128];

    int options;
    int flags; /* async: VALKEY_DISCONNECTING, VALKEY_FREEING */
    struct timeval *connect_timeout;
    struct timeval *command_timeout;
    int max_retry_count;
    char *username;
    char *password;
    int select_db;

    valkeyClusterNode *nodes;
    valkeyClusterNode **table; /* by slot */
    uint64_t route_version;    /* number of updates of the map */
    uint64_t nodes_version;    /* number of changes of the list of nodes */
    int retry_count;           /* of the last command */
    int need_update_route;     /* the map may be outdated */
    unsigned map_round;        /* counts searches for a node that sends the map */
    valkeyClusterNode *left;   /* nodes that the last update removed; freed by the next one */

    char *seeds;                            /* the initial nodes */
    struct valkeyClusterPipeline *requests; /* commands of a pipeline, or NULL */

    void *tls;
    int (*tls_init_fn)(struct valkeyContext *, struct valkeyTLSContext *);
    void (*on_connect)(const struct valkeyContext *c, int status);
    void (*event_callback)(const struct valkeyClusterContext *cc, int event, void *privdata);
    void *event_privdata;
} valkeyClusterContext;

typedef struct valkeyClusterAsyncContext {
    valkeyClusterContext cc;
    int err;
    char *errstr;
    int (*attach_fn)(struct valkeyAsyncContext *ac, void *attach_data);
    void *attach_data;
    valkeyConnectCallback *onConnect;
    valkeyDisconnectCallback *onDisconnect;
    int64_t lastSlotmapUpdateAttempt;  /* monotonic time in microseconds; 0: none */
    struct vkClusterRequest *requests; /* all that are not finished */
    struct vkClusterLink *links;       /* connections to nodes */
    int updating;                      /* the map is being read */
    int busy;                          /* a function walks over the connections */
    struct valkeyAsyncContext *wake;   /* begins the next search for a map, or NULL */
    int wake_ms;                       /* its delay */
} valkeyClusterAsyncContext;

/* To be zeroed first; texts are borrowed during the call. */
typedef struct valkeyClusterOptions {
    const char *initial_nodes; /* "host:port,host:port" */
    int options;
    const struct timeval *connect_timeout;
    const struct timeval *command_timeout;
    const char *username;
    const char *password;
    int max_retry; /* 0: 5 */
    int select_db;

    void (*event_callback)(const struct valkeyClusterContext *cc, int event, void *privdata);
    void *event_privdata;

    void (*connect_callback)(const struct valkeyContext *c, int status);

    void (*async_connect_callback)(struct valkeyAsyncContext *, int status);
    void (*async_disconnect_callback)(const struct valkeyAsyncContext *, int status);

    int (*attach_fn)(struct valkeyAsyncContext *ac, void *attach_data);
    void *attach_data;

    /* valkeyInitiateTLSWithContext(), and its context. */
    void *tls;
    int (*tls_init_fn)(struct valkeyContext *, struct valkeyTLSContext *);
} valkeyClusterOptions;

/* A range of slots, both ends included, and the primary that serves it. */
typedef struct cluster_slot {
    uint32_t start;
    uint32_t end;
    valkeyClusterNode *node;
} cluster_slot;

/* Walks over all nodes; begins again, once, if there are other nodes meanwhile. */
typedef uint64_t valkeyClusterNodeIterator[9];

/* ------------------------------------------------------------------ synchronous */

/* NULL if memory is exhausted, else a context to be checked for `err`. */
LIBVALKEY_API valkeyClusterContext *valkeyClusterConnectWithOptions(
    const valkeyClusterOptions *options);
LIBVALKEY_API valkeyClusterContext *valkeyClusterConnect(const char *addrs);
LIBVALKEY_API valkeyClusterContext *valkeyClusterConnectWithTimeout(const char *addrs,
                                                                    const struct timeval tv);
LIBVALKEY_API void valkeyClusterFree(valkeyClusterContext *cc);
/* Limit for commands on all connections. */
LIBVALKEY_API int valkeyClusterSetOptionTimeout(valkeyClusterContext *cc, const struct timeval tv);
/* Reads the map of slots now. */
LIBVALKEY_API int valkeyClusterUpdateSlotmap(valkeyClusterContext *cc);

/* The reply, which may be an error, or NULL with cc->err. */
LIBVALKEY_API void *valkeyClusterFormattedCommand(valkeyClusterContext *cc, char *cmd, int len);
LIBVALKEY_API void *valkeyClustervCommand(valkeyClusterContext *cc, const char *format, va_list ap);
LIBVALKEY_API void *valkeyClusterCommand(valkeyClusterContext *cc, const char *format, ...);
LIBVALKEY_API void *valkeyClusterCommandArgv(valkeyClusterContext *cc, int argc, const char **argv,
                                             const size_t *argvlen);
/* To this node, without redirection. */
LIBVALKEY_API void *valkeyClustervCommandToNode(valkeyClusterContext *cc, valkeyClusterNode *node,
                                                const char *format, va_list ap);
LIBVALKEY_API void *valkeyClusterCommandToNode(valkeyClusterContext *cc, valkeyClusterNode *node,
                                               const char *format, ...);

/* Pipelines: commands are queued, sent to their nodes by the first valkeyClusterGetReply(), and
 * replied in order. */
LIBVALKEY_API int valkeyClusterAppendFormattedCommand(valkeyClusterContext *cc, char *cmd, int len);
LIBVALKEY_API int valkeyClustervAppendCommand(valkeyClusterContext *cc, const char *format,
                                              va_list ap);
LIBVALKEY_API int valkeyClusterAppendCommand(valkeyClusterContext *cc, const char *format, ...);
LIBVALKEY_API int valkeyClusterAppendCommandArgv(valkeyClusterContext *cc, int argc,
                                                 const char **argv, const size_t *argvlen);
LIBVALKEY_API int valkeyClustervAppendCommandToNode(valkeyClusterContext *cc,
                                                    valkeyClusterNode *node, const char *format,
                                                    va_list ap);
LIBVALKEY_API int valkeyClusterAppendCommandToNode(valkeyClusterContext *cc,
                                                   valkeyClusterNode *node, const char *format,
                                                   ...);
/* The reply to the first queued command. */
LIBVALKEY_API int valkeyClusterGetReply(valkeyClusterContext *cc, void **reply);
/* Drops what is queued and its replies. */
LIBVALKEY_API void valkeyClusterReset(valkeyClusterContext *cc);

/* The connection to a node; NULL with cc->err. */
LIBVALKEY_API valkeyContext *valkeyClusterGetValkeyContext(valkeyClusterContext *cc,
                                                           valkeyClusterNode *node);
LIBVALKEY_API void valkeyClusterInitNodeIterator(valkeyClusterNodeIterator *iter,
                                                 valkeyClusterContext *cc);
LIBVALKEY_API valkeyClusterNode *valkeyClusterNodeNext(valkeyClusterNodeIterator *iter);
LIBVALKEY_API unsigned int valkeyClusterGetSlotByKey(char *key);
LIBVALKEY_API valkeyClusterNode *valkeyClusterGetNodeByKey(valkeyClusterContext *cc, char *key);

/* ------------------------------------------------------------------ asynchronous */

LIBVALKEY_API valkeyClusterAsyncContext *valkeyClusterAsyncConnectWithOptions(
    const valkeyClusterOptions *options);
/* Disconnects from all nodes when all replies have been received. */
LIBVALKEY_API void valkeyClusterAsyncDisconnect(valkeyClusterAsyncContext *acc);
/* Calls all callbacks with NULL. May be called from a callback. */
LIBVALKEY_API void valkeyClusterAsyncFree(valkeyClusterAsyncContext *acc);

/* VALKEY_OK, or VALKEY_ERR with acc->err; the callback is not called then. Sharded subscriptions go
 * to the node of their slot; other subscriptions are sent with
 * valkeyClusterAsyncCommandToNode(). */
LIBVALKEY_API int valkeyClusterAsyncFormattedCommand(valkeyClusterAsyncContext *acc,
                                                     valkeyClusterCallbackFn *fn, void *privdata,
                                                     char *cmd, int len);
LIBVALKEY_API int valkeyClustervAsyncCommand(valkeyClusterAsyncContext *acc,
                                             valkeyClusterCallbackFn *fn, void *privdata,
                                             const char *format, va_list ap);
LIBVALKEY_API int valkeyClusterAsyncCommand(valkeyClusterAsyncContext *acc,
                                            valkeyClusterCallbackFn *fn, void *privdata,
                                            const char *format, ...);
LIBVALKEY_API int valkeyClusterAsyncCommandArgv(valkeyClusterAsyncContext *acc,
                                                valkeyClusterCallbackFn *fn, void *privdata,
                                                int argc, const char **argv, const size_t *argvlen);
LIBVALKEY_API int valkeyClusterAsyncFormattedCommandToNode(valkeyClusterAsyncContext *acc,
                                                           valkeyClusterNode *node,
                                                           valkeyClusterCallbackFn *fn,
                                                           void *privdata, char *cmd, int len);
LIBVALKEY_API int valkeyClustervAsyncCommandToNode(valkeyClusterAsyncContext *acc,
                                                   valkeyClusterNode *node,
                                                   valkeyClusterCallbackFn *fn, void *privdata,
                                                   const char *format, va_list ap);
LIBVALKEY_API int valkeyClusterAsyncCommandToNode(valkeyClusterAsyncContext *acc,
                                                  valkeyClusterNode *node,
                                                  valkeyClusterCallbackFn *fn, void *privdata,
                                                  const char *format, ...);
LIBVALKEY_API int valkeyClusterAsyncCommandArgvToNode(valkeyClusterAsyncContext *acc,
                                                      valkeyClusterNode *node,
                                                      valkeyClusterCallbackFn *fn, void *privdata,
                                                      int argc, const char **argv,
                                                      const size_t *argvlen);
LIBVALKEY_API valkeyAsyncContext *valkeyClusterGetValkeyAsyncContext(valkeyClusterAsyncContext *acc,
                                                                     valkeyClusterNode *node);

#ifdef __cplusplus
}
#endif

#endif
