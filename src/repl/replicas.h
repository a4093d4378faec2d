/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connections of the replicas: what the state machine of primary.h acts upon in the server.
 * Main thread only. */
#ifndef REPL_REPLICAS_H
#define REPL_REPLICAS_H

#include "base/progress_meter.h"
#include "engine/ctx.h"
#include "engine/hooks.h"
#include "engine/session.h"
#include "io/file_stream.h"
#include "psync/primary.h"
#include "repl/server_state.h"

/* A connection that has used REPLCONF, SYNC or PSYNC; in a slot of its session. */
typedef struct replicaConn {
    replPeer peer;
    session *who;
    str ip;            /* of the connection */
    fileReader file;   /* PEER_SENDING_FILE */
    int64_t file_left; /* bytes of it */
    progressMeter sending;
    uint64_t bytes_out;    /* of the session at the last tick */
    size_t reply_from;     /* pending output before the command being run */
    struct packer *packed; /* NULL: nothing was compressed for it */
} replicaConn;

/* The state machine of this server. */
replPrimary *replicasThis(void);
void replicasInit(void);
/* NULL if the session has not used these commands. */
replPeer *replicasFind(const session *s);
/* Creates it. */
replPeer *replicasPeer(session *s);
static inline replicaConn *replicasConn(const replPeer *peer) { return peer->owner; }
/* The session becomes a replica's: before primaryPsync() and primarySync(). If it stays an ordinary
 * one (it is the main channel of a dual-channel synchronisation), replicasSettle() undoes it. */
void replicasEnlist(session *s);
void replicasSettle(session *s);
/* The replica's IP address: announced, or that of the connection. */
slice replicasIp(const replPeer *peer);
void replicasAppendIp(const replPeer *peer, str *out);
/* The role of this server or the state of its link has changed. */
void replicasSetRole(bool is_replica, bool link_is_up);
/* Offset after the last change of a session's commands, 0: none while the stream was kept. */
int64_t replicasOffsetOf(const session *s);
/* In STAGE_REPLICATE, while there is a backlog; as a tick, each second. */
void replicasFeed(void);
/* STAGE_FREE, likewise: the loop does not sleep while a replica could be given more. */
void replicasAfterWrite(void);
void replicasTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool replicasAreBusy(void);
/* Applies changes of directives. */
status replicasApplySettings(reason *why);

/* The stream. While replication-quorum is on heldOutputSink is armed in place of it. */
extern const sink replicasSink, replicasRedisSink;
/* Adds a change to the stream; returns its new end. */
int64_t replicasTake(const propagated *p);
/* There is a stream now or no more, or the mode has changed. */
void replicasArmSink(void);
extern const gate replicaKeyspaceGate;
extern const commandObserver replicaReplyObserver;

/* ------------------------------------------------------------------ full_sync.c */

/* The environment's functions for full synchronisations. */
status fullSyncStart(replPrimary *p, const primarySave *save, reason *why);
void fullSyncStop(replPrimary *p);
status fullSyncSendFile(replPeer *to, reason *why);
/* Continues transfers; handles the end of a child. In STAGE_REPLICATE. */
void fullSyncContinue(replPrimary *p);
/* Reads the pipe again once all replicas of the transfer can take more. */
void fullSyncWatchPipe(replPrimary *p);
/* Implements on_child. */
void fullSyncChildEvent(childEvent e, int kind, int exit_code, int signal_number);
/* Appends a line of INFO about the synchronisation of this replica; nothing if there is none. */
void fullSyncPrintInfo(const replPeer *peer, int number, str *out);
/* Once per second: logs progress; removes a file that was only made for replicas. */
void fullSyncTick(replPrimary *p);
/* DEBUG PAUSE-AFTER-FORK: stops the process after the fork for replicas, and as a replica before it
 * asks for the stream of a dual-channel synchronisation. */
void fullSyncPauseAfterFork(bool on);
bool fullSyncPausesAfterFork(void);

#endif
