/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies of the commands that modules run: their RESP bytes, which become a tree when a module
 * looks into them. A reply that is only passed on, or only freed, is never read.
 *
 * Used by one thread at a time. */
#ifndef MODULE_CALL_REPLY_H
#define MODULE_CALL_REPLY_H

#include <stdbool.h>

#include "base/slice.h"
#include "module/context.h"

typedef struct ValkeyModuleAsyncRMCallPromise promise; /* defined in promise.h */

/* Before the first one is made. */
void callRepliesStart(void);
/* A new reply, which takes over the block `bytes` of memAlloc(). `proto` is that of the bytes.
 * `exact`: simple strings and null arrays are types of their own. The context's auto memory frees
 * it. */
ValkeyModuleCallReply *callReplyNew(ValkeyModuleCtx *x, char *bytes, size_t len, int proto,
                                    bool exact);
/* The reply that is to come; takes over a reference. */
ValkeyModuleCallReply *callReplyNewPromise(ValkeyModuleCtx *x, promise *p);
/* The promise of such a reply; else NULL. */
promise *callReplyPromise(const ValkeyModuleCallReply *r);
/* Its type; VALKEYMODULE_REPLY_UNKNOWN for NULL. */
int callReplyType(ValkeyModuleCallReply *r);
slice callReplyBytes(const ValkeyModuleCallReply *r);
/* Frees a whole reply; parts of one are freed with it. */
void callReplyFree(ValkeyModuleCallReply *r);

#endif
