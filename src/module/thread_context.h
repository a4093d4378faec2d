/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts of threads that modules start: one is prepared before each call that needs the lock, by
 * the thread that makes the call. */
#ifndef MODULE_THREAD_CONTEXT_H
#define MODULE_THREAD_CONTEXT_H

#include <stdbool.h>

#include "module/context.h"

/* Prepares the context of a thread for a call that needs the lock: its time is that of now. False:
 * the calling thread has not got the lock, which is logged. */
bool threadContextUse(ValkeyModuleCtx *x);
/* What runs the context, prepared for a call that uses the server; NULL: nothing does, or the
 * thread has not got the lock. */
static inline ctx *contextUse(ValkeyModuleCtx *x) {
    if (unlikely(x->flags & CONTEXT_THREAD) && !threadContextUse(x)) return NULL;
    return x->run;
}

#endif
