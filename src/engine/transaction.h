/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transactions: what a session has queued since MULTI, until EXEC runs it or something discards it.
 * A session outside MULTI pays nothing; one inside has two gates armed. Main thread only. */
#ifndef ENGINE_TRANSACTION_H
#define ENGINE_TRANSACTION_H

#include "engine/ctx.h"
#include "engine/hooks.h"

/* Refuses inside MULTI what can neither be queued nor run there. */
extern const gate noMultiGate;
/* Keeps for EXEC what the gates before it let pass, and replies QUEUED. */
extern const gate queueGate;

/* MULTI: from now on the session's commands are queued. */
void transactionBegin(session *s);
/* Ends MULTI and forgets everything: the queue, the watched keys and whether one of them has changed. */
void transactionDiscard(session *s);
/* EXEC in MULTI: runs the queue and replies an array of what its commands reply; null when a watched key
 * has changed, an error when a command was refused while it was to be queued. Ends MULTI in any case. */
void transactionRun(ctx *c);

/* Queued commands; -1 for a session that never used MULTI or WATCH. */
int transactionCount(const session *s);
/* Bytes of memory the queue takes; bytes of the arguments that stand in it. */
size_t transactionMemory(const session *s);
size_t transactionArgumentBytes(const session *s);
/* For gates, which judge EXEC by what it would run: some queued command has, or lacks, one of `flags`. */
bool transactionHas(const session *s, uint32_t flags);
bool transactionLacks(const session *s, uint32_t flags);
/* Visits what is queued, in order, until `visit` says false; the last answer, true for an empty queue. */
typedef bool transactionVisitProc(void *arg, const command *cmd, const slice *argv, int argc);
bool transactionEach(const session *s, transactionVisitProc *visit, void *arg);

#endif
