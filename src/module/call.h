/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that modules run, and arguments as a format describes them:
 *
 *     c  a C string          b  bytes and a size_t     l  a long long
 *     s  a string            v  an array of strings and a size_t
 *
 * Other characters are modifiers (VALKEYMODULE_CALL_ARGV_). Main thread, or a thread that has the
 * lock. */
#ifndef MODULE_CALL_H
#define MODULE_CALL_H

#include <stdarg.h>
#include <stdbool.h>

#include "module/context.h"

enum { CALL_ARGS_FEW = 16 };
typedef struct callArgs {
    slice *argv; /* `few`, or a block of its own */
    int argc, max;
    unsigned flags; /* VALKEYMODULE_CALL_ARGV_ */
    pool digits;    /* of numbers */
    slice few[CALL_ARGS_FEW];
} callArgs;

/* The command and the arguments of a format; they are borrowed. False: the format has a character
 * without a meaning. To be cleared in any case. */
bool callArgsTake(callArgs *a, const char *cmd, const char *format, va_list values);
void callArgsClear(callArgs *a);
/* The targets of propagation that the modifiers leave of `targets`. */
uint32_t callTargets(unsigned flags, uint32_t targets);

/* What became of a call. */
typedef struct callResult {
    char *bytes; /* of memAlloc(), for its owner; NULL: none */
    size_t len;
    int proto; /* of the bytes */
    bool has_reply;
    int error;                                      /* of errno; an error can also be a reply */
    struct ValkeyModuleAsyncRMCallPromise *promise; /* it waits; for its owner. NULL: it does not */
} callResult;
/* Runs a command for the module of the context. */
void callRun(ValkeyModuleCtx *x, const callArgs *args, callResult *out);

#endif
