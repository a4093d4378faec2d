/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Execution of a command: resolve, admit, run, count, propagate. */
#ifndef ENGINE_EXECUTE_H
#define ENGINE_EXECUTE_H

#include "base/alloc.h"
#include "engine/ctx.h"

/* Finds the command of a parsed request and the hash of its first key. For an unknown name it is a
 * command that refuses itself. ANY_THREAD. */
void executeResolve(request *r);
/* The same for a request of a file or stream, which may name extensions that are hidden. */
void executeResolveReplay(request *r);
/* Unknown commands of files and of a primary's stream that `has` returns true for succeed: `run` is
 * called for them, in the order of the stream and also in transactions. */
void executeSetSkipped(bool (*has)(slice name), commandProc *run);
/* The same for requests of one session, of which most have the name of the one before.
 * ANY_THREAD. */
void executeResolveAll(request *requests, int count);
/* Resolved requests of one session that are going to run. */
typedef struct executePart {
    const session *who;
    request *requests;
    int count;
} executePart;
/* Maximum number of requests that are prefetched together: what they access must fit into the
 * first-level cache. */
enum { EXECUTE_PREFETCH_MAX = 64 };
/* Prefetches what the first EXECUTE_PREFETCH_MAX requests of `count` parts will access, so that all
 * cache misses overlap, and keeps hashes computed for that in the requests. Only a hint. */
void executePrefetch(const executePart *parts, int count);
/* Runs up to `count` resolved requests in order, until one stops the session. Returns the number
 * that ran: the caller keeps the bytes of the rest and parses them again when the session
 * continues. */
int executeRun(session *s, request *requests, int count);
/* From now on executeIsDue() tells, once each time, when a quarter of a millisecond has passed in
 * commands: others may be served before the next executeRun(), which ends early for that, after a
 * command that is not quick; the session is not stopped then. Not within nested turns. */
void executeYield(void);
bool executeIsDue(void);
/* Runs one resolved request of an internal session, as a loader does. The items of its reply go to
 * `sink`, which stays the same for a session. */
void executeReplay(session *s, request *r, struct replySink *sink);
/* Finds the command of a ctx made with ctxInitInner() and the hash of its first key. False for an
 * unknown name: executeInner() refuses it. */
bool executeResolveInner(ctx *c);
/* Runs a command inside another one (EXEC, a script, a module, a loader); there is no other way to
 * do so. Resolves it if `cmd` is NULL, checks name, arity and the gates for its origin, runs,
 * counts and propagates it. The reply goes to c->out; a sink has received all of it on return.
 * CTX_REJECTED and CTX_FAILED in c->flags report failures. */
void executeInner(ctx *c);
/* True if executeInner() would run the command. False: the error was replied, and nothing was
 * counted. */
bool executeMayRun(ctx *c);
/* Runs `part`, which is no command, for an internal session: as a unit of its own, or a part of the
 * one that is open. It may run commands with executeInner(); the ctx has none itself. */
typedef void executePartProc(ctx *c, void *arg);
void executeUnit(session *s, executePartProc *part, void *arg);
/* Counts a command as rejected that its caller has refused instead of calling executeInner(). */
void executeCountRejected(ctx *c);
/* Counts a command that a gate has replied without running it. */
void executeCountCall(const ctx *c);
/* Counts time that others have worked for the command: as one more call of it, also for the command
 * log, or only in the time of its calls. */
void executeCountWork(ctx *c, bool as_call, uint64_t ticks);
/* Time spent in commands since the start, wherever they were run (us). */
uint64_t executeCommandUs(void);
/* Starts a turn of the loop: updates the wall time seen by commands. */
void executeNewTurn(void);
/* Closes the session after a protocol error; the error text is sent after the replies before it. */
void executeProtocolError(session *s, slice text);
/* Registers the function that is called after commands that have CTX_LATE_EVENTS, before they are
 * propagated; a sink is armed then. Called once, by module. */
void executeSetLateProc(void (*tell)(void));

#endif
