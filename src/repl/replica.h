/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This server as a replica: the link of link.h with connections, transfers and the stream of the
 * server. Main thread only. */
#ifndef REPL_REPLICA_H
#define REPL_REPLICA_H

#include <stdbool.h>

#include "engine/hooks.h"
#include "psync/link.h"

/* True if this server is a replica. */
bool replicaIsOn(void);
/* The link; its state is LINK_NONE for a primary. */
const replLink *replicaLink(void);
/* True while the stream of the primary is applied. */
bool replicaIsConnected(void);
/* The dataset is that of the stream's id at its offset. */
bool replicaHasPosition(void);

/* Follows a primary from now on. `related`: the dataset here may be an earlier one of it. */
void replicaFollow(slice host, int port, bool related);
void replicaFollowAtStart(slice host, int port);
/* Becomes a primary. */
void replicaPromote(void);
/* Follows a replica of this server, which is asked to take over; `ended` is called with its
 * reply. `force`: also if it knows that its data differ. */
void replicaFollowSuccessor(slice host, int port, bool force, void (*ended)(bool accepted));

/* Asks a primary that is refused (followed.h) again, at once. */
void replicaRetryRefused(void);
/* True if this replica refuses its primary, which has lost the data that are here. */
bool replicaRefusesPrimary(void);
/* The stream cannot be used any more: closes the link; the whole dataset is synchronised again. */
void replicaGiveUpStream(void);
/* Called when a user has ordered to continue after a command of the stream has failed. No effect
 * unless the link was stopped for this reason. */
void replicaGoOn(void);
/* The primary uses a database that this server does not have: the link ends, and is not tried again
 * until the server is told to follow, or started, again. */
void replicaHalt(void);
/* Executes REPLCONF GETACK `value`: replicaAcknowledgeOwed() will acknowledge. No effect unless the
 * command comes from the primary. */
void replicaAcknowledge(const ctx *c, slice value);
/* In STAGE_REPLICATE: acknowledges all that was applied, the request to do so included, if that was
 * asked for in this turn. */
void replicaAcknowledgeOwed(void);
/* More is known to be on disk: acknowledges again, if that was asked for before. */
void replicaNoteFlushed(void);
/* REPLCONF GETACK TURN and TICK: from now on this replica acknowledges at the end of each turn in
 * which its offset changed, or only each second. No effect unless it is the primary's. */
void replicaAcknowledgeTurns(const ctx *c, bool on);
/* See role.h. */
bool replicaHasCaughtUp(void);
void replicaHoldAcks(bool on);
/* True if this is the session of the primary's stream. */
bool replicaIsStream(const session *s);
/* The database selected in the stream; -1: unknown. */
int replicaStreamDb(void);

/* The process ends: closes the link. */
void replicaStop(void);
/* Memory in bytes of what is collected of the stream during a dual-channel synchronisation. */
size_t replicaCollectedBytes(void);
/* After the start: the file that was loaded may allow a partial resynchronisation. */
void replicaAfterStart(void);
/* The fields of INFO replication for a replica; ROLE's reply. */
void replicaPrintInfo(str *out);
void replicaResetStats(void);
void replicaReplyRole(ctx *c);

void replicaTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool replicaIsBusy(void);
void replicaSessionEvent(session *s, sessionEvent e);
status replicaInit(reason *why);

#endif
