/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replication-quorum in this server: when the mode is on, what is refused while there are not
 * enough replicas, INFO. Main thread only. */
#ifndef REPL_QUORUM_SERVER_H
#define REPL_QUORUM_SERVER_H

#include "base/str.h"
#include "engine/hooks.h"
#include "psync/quorum.h"

/* Armed while requests to the keyspace may be refused. */
extern const gate quorumGate;
/* After all other gates, armed while the mode is on: what the output of a read depends on. */
extern const gate heldOutputGate;
/* In place of replicasSink while the mode is on: adds to the stream, and notes what has changed. */
extern const sink heldOutputSink;

/* Applies the directives and the role of this server. */
status quorumApply(reason *why);
/* The start is over: the dataset was loaded. */
void quorumBegin(void);
/* The role has changed: what is here was not confirmed. */
void quorumNoteRole(void);
/* Nothing more is confirmed until it is off again, whatever the role and the directives become. */
void quorumServerHold(bool on);
/* Acknowledgements have come, or replicas have come or gone. */
void quorumNoteReplicas(const replPrimary *p);
/* What was propagated without the sinks has changed unknown keys. */
void quorumNoteForwarded(void);
/* True: a replica must not synchronise, as this server has started without data that its replicas
 * have confirmed. `id`, `from`: what its PSYNC asks for. From then on requests to the keyspace are
 * refused, until another server is promoted or the mode is off. */
bool quorumRefusesSync(const replPeer *peer, slice id, int64_t from);
/* True after that. */
bool quorumIsBehind(void);

/* True if the stream up to `offset` is confirmed, or the mode is off. */
bool quorumHas(int64_t offset);
/* The end of the last change; 0: the mode is off. */
int64_t quorumLastChange(void);

/* Fields of INFO; nothing without the directive. */
void quorumPrintInfo(str *out);
void quorumPrintStats(str *out);
void quorumResetStats(void);
/* Periodic job. */
void quorumServerTick(int64_t budget_us);
bool quorumIsBusy(void);
void quorumInit(void);

#endif
