/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts of threads. */
#ifndef MODULE_THREAD_CONTEXT_H
#define MODULE_THREAD_CONTEXT_H

#include <stdbool.h>

#include "module/context.h"

/* Prepares the context of a thread for a call that needs the lock: its time is that of now. False:
 * the calling thread has not got the lock, which is logged. */
bool threadContextUse(ValkeyModuleCtx *x);
/* The same for any context that runs something. */
static inline bool contextUse(ValkeyModuleCtx *x) {
    return !(x->flags & CONTEXT_THREAD) || threadContextUse(x);
}

#endif
