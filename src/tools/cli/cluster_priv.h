/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the cluster manager share. One thread. */
#ifndef TOOLS_CLI_CLUSTER_PRIV_H
#define TOOLS_CLI_CLUSTER_PRIV_H

#include <valkey/valkey.h>

#include "tools/cli/cluster_manager.h"
#include "tools/cli/cluster_nodes.h"
#include "tools/cli/cluster_plan.h"
#include "tools/cli/job_progress.h"

typedef struct clusterManager {
    const clusterOptions *options;
    const clusterEnvironment *env;
    clusterNodes nodes; /* reachable, the one given on the command line first */
    clusterNodes lost;  /* unreachable */
    int lost_primaries;
    int errors; /* found by managerCheck() */
    bool colors;
    bool keeps_lost; /* unreachable nodes count as known */
} clusterManager;

/* ------------------------------------------------------------------ output and questions */

enum managerLevel { LEVEL_PLAIN, LEVEL_INFO, LEVEL_OK, LEVEL_WARNING, LEVEL_ERROR };

/* Prints to standard output, in the colour of the level if the terminal has colours. */
void managerPrint(const clusterManager *m, enum managerLevel level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints a question and reads a line of standard input, without its end. False at the end of the
 * input. */
bool managerAsk(const char *question, str *out);
/* True if the reply to the question is "yes". */
bool managerAskYes(const char *question);
/* The same, without asking if --cluster-yes was given. */
bool managerConfirm(const clusterManager *m, const char *question);

/* ------------------------------------------------------------------ commands */

/* Connects and logs in, unless the node is connected. Prints the reason after a failure. */
bool managerConnect(const clusterManager *m, clusterNode *node);
/* Sends a command to a connected node. Returns the reply, which the caller frees; NULL after a
 * failure, which is printed and closes the connection. Errors of the server are replies. */
valkeyReply *managerCommand(clusterNode *node, const char *format, ...);
valkeyReply *managerCommandArgv(clusterNode *node, int argc, const char **argv, const size_t *len);
/* Sends a command whose reply only matters if it is an error: this is printed, and false
 * returned. */
bool managerRun(const clusterManager *m, clusterNode *node, const char *format, ...);
/* True if the reply is not an error. Else prints it; `reply` may be NULL. */
bool managerAccept(const clusterManager *m, const clusterNode *node, const valkeyReply *reply);
/* Queues a command; its reply is fetched by managerNext(), which is to be called once per queued
 * command. */
void managerQueue(clusterNode *node, const char *format, ...);
valkeyReply *managerNext(clusterNode *node);
bool replyIsError(const valkeyReply *reply, const char *prefix);
/* COUNTKEYSINSLOT; -1 after an error, which is printed. */
int64_t managerCountKeys(const clusterManager *m, clusterNode *node, int slot);

/* ------------------------------------------------------------------ view and checks */

/* Loads all nodes of the cluster that the node at this address belongs to. Prints the reason after
 * a failure. */
bool managerLoad(clusterManager *m, const char *host, int port, int bus_port);
/* The same for an address in one word, "host:port", or two, "host" and "port". */
bool managerLoadFrom(clusterManager *m, int argc, char **argv);
/* Splits the address of a node: one word, or host and port as two. Prints an error and returns
 * false if it is not valid. The caller frees `host`. */
bool managerParseAddress(int argc, char **argv, str *host, int *port, int *bus_port);
/* Waits until each node reports that the cluster is ok, and each replica that it has the data of
 * its primary. False after a minute, with a warning. */
bool managerWaitReady(clusterManager *m);
/* Connects to a node that is not part of the view and fills it from its own CLUSTER NODES. `others`
 * receives the nodes that it knows. False after a failure, which is printed. */
bool managerLoadNode(const clusterManager *m, clusterNode *node, clusterNodes *others);
void managerClear(clusterManager *m);
/* The primaries with keys, slots and replicas. */
void managerInfo(clusterManager *m);
void managerShowNodes(const clusterManager *m);
/* True if all nodes report the same slots. */
bool managerAgrees(clusterManager *m);
enum { CHECK_QUIET = 1, CHECK_FIX = 2 };
/* Checks configuration, open slots and coverage, and repairs with CHECK_FIX. */
bool managerCheck(clusterManager *m, int flags);
/* Repairs; false if it was not possible. */
bool managerFixOpenSlot(clusterManager *m, int slot);
bool managerFixCoverage(clusterManager *m, const slotSet *uncovered);
bool managerFixOwners(clusterManager *m, int slot, const slotHolder *owners, int count);
/* The primary with fewest replicas. NULL if there is none. */
clusterNode *managerPrimaryForReplica(const clusterManager *m);

/* ------------------------------------------------------------------ moving slots */

enum {
    MOVE_KEEP_OWNER = 1, /* moves keys only */
    MOVE_OPENED = 2,     /* the slot is in the required states already */
    MOVE_QUIET = 4,
};

/* How many slots of a task have been moved, for its progress. */
typedef struct moveProgress {
    jobProgress *shown;
    uint64_t done;
} moveProgress;

/* Moves a slot with its keys. After a failure false, with the reason in `error`.
 * `progress` is shown meanwhile, unless it is NULL; the caller counts the slots. */
bool managerMoveSlot(clusterManager *m, clusterNode *source, clusterNode *target, int slot,
                     int flags, const moveProgress *progress, str *error);
/* The error of a move that an operator has ended. */
#define MOVE_CANCELLED "Slot migration was cancelled"
/* The same for several slots, by CLUSTER MIGRATESLOTS. */
bool managerMoveAtomic(clusterManager *m, clusterNode *source, clusterNode *target,
                       const slotSet *slots, int flags, const moveProgress *progress, str *error);
/* True if slots are to be moved by managerMoveAtomic(): that was asked for, or no option is against
 * it and both nodes have the commands. */
bool managerMovesWhole(const clusterManager *m, clusterNode *source, clusterNode *target);
/* CLUSTER SETSLOT slot NODE owner, on the owner first, then `previous` (may be NULL) and the other
 * primaries. */
bool managerAssign(clusterManager *m, clusterNode *owner, clusterNode *previous, int slot,
                   str *error);

/* ------------------------------------------------------------------ subcommands: exit status */

int clusterCreate(clusterManager *m, int argc, char **argv);
int clusterAddNode(clusterManager *m, int argc, char **argv);
int clusterDelNode(clusterManager *m, int argc, char **argv);
int clusterReshard(clusterManager *m, int argc, char **argv);
int clusterRebalance(clusterManager *m, int argc, char **argv);
int clusterCall(clusterManager *m, int argc, char **argv);
int clusterSetTimeout(clusterManager *m, int argc, char **argv);
int clusterImport(clusterManager *m, int argc, char **argv);
int clusterBackup(clusterManager *m, int argc, char **argv);

/* Waits until all nodes know each other and report the same slots. */
void managerWaitJoin(clusterManager *m);
/* Loads a node that is to join a cluster. It must know no other nodes and have no keys; prints why
 * not. */
bool managerLoadEmpty(const clusterManager *m, clusterNode *node);
/* Makes `node` know `other`. */
bool managerMeet(const clusterManager *m, clusterNode *node, const clusterNode *other);
/* Makes `node` a replica, as soon as it knows the primary. */
bool managerReplicate(const clusterManager *m, clusterNode *node, const clusterNode *primary);

#endif
