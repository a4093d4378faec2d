/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the cluster client share. */
#ifndef CLIENTLIB_CLUSTER_PRIV_H
#define CLIENTLIB_CLUSTER_PRIV_H

#include <valkey/cluster.h>

#include "clientlib/client_priv.h"
#include "clientlib/command_keys.h"

enum { VK_RETRIES = 5, VK_HOST_MAX = 256 };

typedef enum redirectKind {
    REDIRECT_NONE,
    REDIRECT_MOVED,
    REDIRECT_ASK,
    REDIRECT_RETRY
} redirectKind;

/* `data` of an asynchronous connection to a node. */
typedef struct vkClusterLink {
    struct vkClusterLink *next, *previous;
    valkeyClusterAsyncContext *acc;
    valkeyAsyncContext *ac;
    valkeyClusterNode *node; /* NULL: it is no longer a node of the map */
    bool failed;             /* counted as a failure of the node */
    bool ending;             /* asked to end */
} vkClusterLink;

/* What an error reply asks for. */
typedef struct redirect {
    redirectKind kind;
    int slot;
    char host[VK_HOST_MAX]; /* "": the host of the node that replied */
    int port;
} redirect;

/* ------------------------------------------------------------------ cluster_map.c */

/* Copies the options. False if memory is exhausted. */
bool vkClusterInit(valkeyClusterContext *cc, const valkeyClusterOptions *options);
/* False with cc->err if an option is of no use for clusters. */
bool vkClusterCheckOptions(valkeyClusterContext *cc);
/* False with cc->err if the caller's bytes are not exactly one command. */
bool vkClusterCheckCommand(valkeyClusterContext *cc, const char *cmd, int len);
void vkClusterClear(valkeyClusterContext *cc);
void vkClusterError(valkeyClusterContext *cc, int type, const char *text);
/* Replaces nodes and table by those of a reply to the command of vkClusterMapQuery(); `from` is the
 * node that sent it. Connections to nodes that remain are kept. False with cc->err; nothing has
 * changed then. */
bool vkClusterApplyMap(valkeyClusterContext *cc, const valkeyReply *r, const char *from_host);
/* "CLUSTER SLOTS" or "CLUSTER NODES". */
const char *vkClusterMapQuery(const valkeyClusterContext *cc);
/* The node at an address; added if it is not known. NULL if memory is exhausted. */
valkeyClusterNode *vkClusterNodeAt(valkeyClusterContext *cc, const char *host, int port);
/* Adds the initial nodes. False with cc->err. */
bool vkClusterAddSeeds(valkeyClusterContext *cc);
/* The next node to be asked for the map in this round (cc->map_round): one that has failed least.
 * NULL if all were. */
valkeyClusterNode *vkClusterNextToAsk(valkeyClusterContext *cc);
/* Options of a connection to a node. */
valkeyOptions vkClusterNodeOptions(const valkeyClusterContext *cc, const valkeyClusterNode *node);
redirect vkRedirectOf(const valkeyReply *r);
void vkClusterEvent(valkeyClusterContext *cc, int event);

/* ------------------------------------------------------------------ cluster_queue.c */

typedef enum queuedState {
    QUEUED_UNSENT, /* also if there is no connection to its node */
    QUEUED_SENT,
    QUEUED_DONE, /* replied, or failed for good */
} queuedState;

typedef struct queuedCommand {
    size_t offset, len;
    int slot;                /* -1: to the node */
    valkeyClusterNode *node; /* until the replies have been read */
    valkeyReply *reply;      /* NULL: not received */
    queuedState state;
    int err; /* why: 0 or the `err` of the node's connection */
} queuedCommand;

struct valkeyClusterPipeline {
    char *text;
    queuedCommand *commands;
    size_t count, capacity;
    size_t sent;  /* commands before this one have been sent, and their replies read */
    size_t taken; /* replies returned to the caller */
};

/* Frees what is queued. */
void vkClusterFreePipeline(valkeyClusterContext *cc);

/* ------------------------------------------------------------------ cluster_wake.c */

/* Calls `proc` from the event loop after `ms`. Freed with valkeyAsyncFree() to cancel it; by itself
 * before the call. NULL if it cannot be watched. */
valkeyAsyncContext *vkWakeStart(valkeyClusterAsyncContext *acc, int ms,
                                void (*proc)(valkeyClusterAsyncContext *acc));

#endif
