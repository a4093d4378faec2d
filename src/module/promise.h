/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Promises: commands that modules run, and that wait. The wait is that of a session of the
 * promise's own; when it ends the module gets the reply, in one unit with what the command did.
 * Main thread, or a thread that has the lock. */
#ifndef MODULE_PROMISE_H
#define MODULE_PROMISE_H

#include <stdbool.h>

#include "engine/session.h"
#include "module/context.h"

typedef struct ValkeyModuleAsyncRMCallPromise promise;

struct ValkeyModuleAsyncRMCallPromise {
    listNode node; /* in the list of those that wait */
    int refs;      /* one while it waits, and those of others */
    module *owner;
    session who;
    bool exact;                   /* how the reply is read: callReplyNew() */
    ValkeyModuleOnUnblocked done; /* NULL: the reply is not wanted, or `handlers` get it */
    void *private;
    bool has_handlers;
    ValkeyModuleReplyHandlers handlers;
    void *reply_context;
};

/* A promise with one reference, whose session runs the command. */
promise *promiseNew(module *owner);
promise *promiseKeep(promise *p);
void promiseRelease(promise *p);
/* Its command waits. */
void promiseBegin(promise *p);
/* Ends the wait without a reply. False: it does not wait, or there is no such promise. */
bool promiseAbort(promise *p);
/* The module ends: its promises wait no more. */
void promisesRemove(module *m);

/* The reply handlers of CallArgv(): calls them for the reply `bytes`. Without a reply, `bytes` is
 * empty: onRespAvailable() is called all the same, then replyParsingError(). */
void replyHandlersCall(const ValkeyModuleReplyHandlers *handlers, void *reply_context,
                       ValkeyModuleCtx *x, slice bytes);

#endif
