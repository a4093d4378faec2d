/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transactions: the commands a session has queued since MULTI, until EXEC runs or DISCARD drops
 * them. No cost for sessions outside MULTI; inside, two gates are armed. Main thread only. */
#ifndef ENGINE_TRANSACTION_H
#define ENGINE_TRANSACTION_H

#include "engine/ctx.h"
#include "engine/hooks.h"

/* Refuses commands that can neither be queued nor run inside MULTI. */
extern const gate noMultiGate;
/* Queues the commands that have passed all other gates, and replies QUEUED. */
extern const gate queueGate;

/* MULTI: queues the session's following commands. */
void transactionBegin(session *s);
/* Ends MULTI and drops the queue and the watched keys. */
void transactionDiscard(session *s);
/* EXEC: runs the queue and replies an array with the replies; null if a watched key has changed or
 * a condition in its arguments does not hold, an error if a command was refused while queueing.
 * Always ends MULTI. */
void transactionRun(ctx *c);

/* A condition of EXEC, as indexes of its arguments. */
typedef struct execCondition {
    bool wants_equal; /* IFEQ and XX, not IFNE and NX */
    int key, value;   /* value: 0 for NX and XX */
} execCondition;
/* Parses the condition at argument `i`. Returns the index of the argument after it, 0 if it is
 * malformed. ANY_THREAD. */
int execConditionParse(const slice *argv, int argc, int i, execCondition *out);

/* Number of queued commands; -1 for a session that never used MULTI or WATCH. */
int transactionCount(const session *s);
/* In a command that EXEC runs the number of those that it runs after that; else 0. */
int transactionRest(const ctx *c);
/* Memory of the queue in bytes. */
size_t transactionMemory(const session *s);
/* Size of the queued arguments in bytes; at least a quarter of the memory of the queue, so that
 * commands without arguments are limited, too. */
size_t transactionArgumentBytes(const session *s);
/* For gates, which check EXEC by the commands it would run: true if some queued command has, or
 * lacks, one of `flags`. */
bool transactionHas(const session *s, uint64_t flags);
bool transactionLacks(const session *s, uint64_t flags);
/* The flags of a request that differ from those of its command (CMD_WRITE, CMD_DENYOOM, CMD_STALE):
 * a script declares them in its header. Asked for requests of the category scripting when they are
 * queued, so that gates see them like other commands. */
typedef uint64_t transactionFlagsProc(const ctx *c);
void transactionSetFlagsProc(transactionFlagsProc *proc);
uint64_t transactionFlagsOf(const ctx *c);
/* Visits the queued commands in order until `visit` returns false; returns its last result, true
 * for an empty queue. */
typedef bool transactionVisitProc(void *arg, const command *cmd, const slice *argv, int argc);
bool transactionEach(const session *s, transactionVisitProc *visit, void *arg);
/* The slot of all keys and shard channels of the queued commands, as by commandSlots(). */
int transactionSlot(const session *s);

#endif
