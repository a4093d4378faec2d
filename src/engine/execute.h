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
/* Runs one resolved command for an inner caller (EXEC, script, loader): no admission but what the caller
 * did; counted and propagated like any other. */
void executeInner(ctx *c);
/* Runs a request that was admitted and kept since (EXEC): what may have changed meanwhile is judged again,
 * the command behind the name and gates that ask for it. `flags` go to its ctx. Replies to `outer`. */
void executeKept(ctx *outer, request *r, uint32_t flags);
/* A new turn of the loop: commands see this wall time from now on. */
void executeNewTurn(void);
/* Takes what the caller's session shall not do now, with no error but the close: a protocol error's text
 * goes out after the replies before it. */
void executeProtocolError(session *s, slice text);

#endif
