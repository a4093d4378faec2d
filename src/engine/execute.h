/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One command, start to end: resolve, admit, run, count, propagate. The heart of the house. */
#ifndef ENGINE_EXECUTE_H
#define ENGINE_EXECUTE_H

#include "base/alloc.h"
#include "engine/ctx.h"

/* Finds the command a parsed request names and the hash of its first key. An unknown name gets a command
 * that refuses itself. ANY_THREAD. */
void executeResolve(request *r);
/* Resolved requests of one session that will run soon. */
typedef struct executePart {
    const session *who;
    const request *requests;
    int count;
} executePart;
/* Brings what the requests of `count` parts will touch into the cache, all misses side by side. Hints only:
 * nothing found here is used later. */
void executePrefetch(const executePart *parts, int count);
/* Runs up to `count` resolved requests in order, until one stops the session. Returns how many ran: the
 * caller keeps the bytes of the rest and parses them again when the session goes on. */
int executeRun(session *s, request *requests, int count);
/* Finds the command of a ctx made with ctxInitInner() and the hash of its first key. False for an unknown name:
 * executeInner() then refuses it. */
bool executeResolveInner(ctx *c);
/* Runs a command inside another one (EXEC, a script, a module, the loader's): the one way to do that. Resolves it when
 * `cmd` is NULL, judges name, arity and the gates that its origin is asked by, runs it, counts and propagates it. The
 * reply goes to c->out; a sink has got all of it on return. CTX_REJECTED, CTX_FAILED in c->flags say how it ended. */
void executeInner(ctx *c);
/* A new turn of the loop: commands see this wall time from now on. */
void executeNewTurn(void);
/* Takes what the caller's session shall not do now, with no error but the close: a protocol error's text
 * goes out after the replies before it. */
void executeProtocolError(session *s, slice text);

#endif
