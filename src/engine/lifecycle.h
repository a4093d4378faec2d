/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations on the whole server requested by commands. They are implemented in `server`, which
 * registers a function for each before the loop starts. Main thread only. */
#ifndef ENGINE_LIFECYCLE_H
#define ENGINE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "io/loop.h"

typedef struct ctx ctx;

/* SHUTDOWN. `flags` are SHUTDOWN_... of hooks.h; `abort` cancels a waiting shutdown. OK: started
 * (or cancelled); ERR_AGAIN: has to wait; others: refused with the reason in `why`, nothing has
 * changed. */
typedef status engineShutdownProc(uint32_t flags, bool abort, reason *why);
void engineSetShutdownProc(engineShutdownProc *proc);
status engineShutdown(uint32_t flags, bool abort, reason *why) MUST_USE;

/* True while another dataset is loaded beside the one that is served. Set by the implementation. */
bool engineLoadsBeside(void);
void engineSetLoadsBeside(bool loads);

/* True while a shutdown that was started waits. Set by the implementation; its end without success
 * signals blocked sessions (BLOCK_CUSTOM). */
bool engineShutdownWaits(void);
void engineSetShutdownWaits(bool waits);

/* Restarts the process after `delay_ms`, with or without an orderly shutdown. Returns only if it
 * was refused: with the reason in `why`, nothing has changed. */
typedef status engineRestartProc(bool graceful, int64_t delay_ms, reason *why);
void engineSetRestartProc(engineRestartProc *proc);
status engineRestart(bool graceful, int64_t delay_ms, reason *why) MUST_USE;

/* DEBUG RELOAD: saves the dataset, empties the databases and loads it again, as far as the flags
 * say. DEBUG LOADAOF: the same with the append only file, RELOAD_AOF alone. */
enum { RELOAD_NO_SAVE = 1, RELOAD_NO_FLUSH = 2, RELOAD_MERGE = 4, RELOAD_AOF = 8 };
typedef status engineReloadProc(unsigned flags, reason *why);
void engineSetReloadProc(engineReloadProc *proc);
status engineReload(unsigned flags, reason *why) MUST_USE;

/* The main event loop, for connections of the server's own (MIGRATE, replication). Set before the
 * features start. */
void engineSetLoop(loop *l);
loop *engineLoop(void);
/* The loop does not sleep in this turn: there is more to do in the next one. */
void engineStayAwake(void);

/* DEBUG FORCE-TLS-WRITE-ERROR: TLS connections act as if their sockets were not writable. False in
 * a build without TLS. */
bool engineBlockTlsWrites(bool on);

/* DEBUG's subcommands about replication, which `repl` implements. */
typedef struct engineReplicationProcs {
    void (*change_id)(void); /* CHANGE-REPL-ID */
    void (*replicate)(int argc,
                      const slice *argv);   /* REPLICATE: into the stream, without running it */
    void (*set_dataset_grace)(int seconds); /* DELAY-RDB-CLIENT-FREE-SECONDS */
    void (*pause_after_fork)(bool on);      /* PAUSE-AFTER-FORK */
} engineReplicationProcs;
void engineSetReplicationProcs(const engineReplicationProcs *procs);
const engineReplicationProcs *engineReplication(void);

/* Functions of the cluster for lower folders, and for the subcommands of DEBUG. NULL: the server is
 * no node of a cluster. */
typedef struct engineClusterProcs {
    int (*links)(void);                  /* number of connections to other nodes */
    void (*describe)(str *out);          /* appends the lines of CLUSTER NODES */
    size_t (*links_memory)(void);        /* bytes */
    void (*drop_messages)(int64_t type); /* DROP-CLUSTER-PACKET-FILTER; -1: none, -2: all */
    void (*close_at_drop)(bool on);      /* CLOSE-CLUSTER-LINK-ON-PACKET-DROP */
    void (*set_reconnects)(bool on);     /* DISABLE-CLUSTER-RECONNECTION */
    void (*set_random_pings)(bool on);   /* DISABLE-CLUSTER-RANDOM-PING */
    /* CLUSTERLINK KILL: the links to a node and from it. ERR_NOT_FOUND: the node is not known;
     * ERR_DENIED: it is this one. */
    status (*kill_links)(slice node_id, bool to, bool from);
    /* CLUSTER-REPLICA-PRIORITY; false: the node is not known. */
    bool (*replica_priority)(slice node_id, int *out);
    /* Memory of the connections over which slots are moved: from this node, or to it. */
    size_t (*slot_links_memory)(bool exports);
    /* Takes what other nodes have sent, and replies to them. */
    void (*answer)(void);
    /* SLOTMIGRATION: jobs wait before the pause of writes, or before slots are taken. */
    void (*hold_slots)(bool before_pause, bool on);
    /* HOLD-CLUSTER-CONFIG-SAVES: saves of the configuration file that no client waits for. */
    void (*hold_saves)(bool on);
} engineClusterProcs;
void engineSetClusterProcs(const engineClusterProcs *procs);
const engineClusterProcs *engineCluster(void);

/* The list of modules in HELLO's reply, which `module` makes; an empty one without it. */
typedef void engineModulesProc(ctx *c);
void engineSetModulesProc(engineModulesProc *proc);
void engineReplyModules(ctx *c);

/* Abilities that modules may declare. */
typedef enum engineModuleAbility {
    MODULES_HANDLE_READ_ERRORS, /* those with types of values: a file may end anywhere */
    MODULES_HANDLE_ASYNC_LOAD,  /* another dataset is loaded beside the one that is served */
    MODULES_HANDLE_SLOT_MIGRATION,
    MODULES_HANDLE_FORKLESS, /* those with types of values: a save without a fork */
} engineModuleAbility;
/* The name of a module that is not; NULL: all are. Borrowed. `module` registers the function. */
typedef const char *engineModuleWithoutProc(engineModuleAbility what);
void engineSetModuleWithoutProc(engineModuleWithoutProc *proc);
const char *engineModuleWithout(engineModuleAbility what);

/* DEBUG BIO-DRAIN, for tests: waits until the jobs of other threads are done, but not for names
 * that are being resolved. */
void engineDrainJobs(void);
/* DEBUG AOF-FLUSH-SLEEP, for tests: microseconds to wait before changes are written to the append
 * only file. */
void engineSetFlushDelay(int64_t us);
int64_t engineFlushDelay(void);

/* Serves what is pending, without waiting, from inside a long operation such as loading: one nested
 * turn of the event loop, signals included. If a command is being executed, nothing in this turn
 * may change the main keyspace: jobs and callbacks that do so wait until no command is executed
 * (engineHot.current is NULL), waits by blockNotify() and blockFinish(). */
typedef void engineServeProc(void);
void engineSetServeProc(engineServeProc *proc);
void engineServe(void);
/* Less than that: only replies to other nodes of the cluster, so that they do not regard this one
 * as failed while a command takes long. The same holds for the main keyspace. */
void engineAnswerNodes(void);

/* How the server identifies itself. Texts are borrowed until the configuration changes. */
typedef struct engineIdentity {
    const char *version;
    const char *redis_version;     /* the version of Redis that it is compatible with */
    const char *mode;              /* "standalone", "cluster", "sentinel" */
    const char *role;              /* "master", "replica"; NULL for Sentinel */
    const char *availability_zone; /* "" if not configured */
} engineIdentity;
typedef void engineIdentityProc(engineIdentity *out);
void engineSetIdentityProc(engineIdentityProc *proc);
void engineIdentify(engineIdentity *out);

/* Number of databases, for folders that may not call the store. */
int engineDatabaseCount(void);

#endif
