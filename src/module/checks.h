/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `module-checks yes`: what modules pass to the functions of the interface is checked before the
 * function runs. A wrong call does nothing but write a line to the log, which names the module, the
 * function and the place of the call, and returns what the function returns when it fails. Modules
 * get the functions of generated/api_checked.c instead of those of generated/api_table.c, so
 * without the directive nothing of it runs. */
#ifndef MODULE_CHECKS_H
#define MODULE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "module/context.h"
#include "module/handles.h"
#include "module/registry.h"

/* The directive, see options.c. */
extern const configOption moduleOptions[];

/* A call of a function of the interface by a module; those that it leads to are nested. */
typedef struct checkedCall {
    const char *function; /* without prefix */
    const void *caller;   /* the return address */
    bool any_thread;      /* may run without the lock of the server */
    struct checkedCall *outer;
} checkedCall;

/* Begins and ends the calling thread's call. False: this thread must not call it now. */
bool checksEnter(checkedCall *call);
void checksLeave(checkedCall *call);
static inline void checksLeaveIfOn(checkedCall *call) {
    if (unlikely(handlesChecked)) checksLeave(call);
}
/* What generated/api_checked.c does for others, at the beginning of a function with variadic
 * arguments, whose first one is `handle`. */
#define CHECK_VARIADIC(name, any, kind, handle, may_be_null, failure) \
    checkedCall checked __attribute__((cleanup(checksLeaveIfOn))) = { \
        .function = (name), .caller = __builtin_return_address(0), .any_thread = (any)}; \
    if (unlikely(handlesChecked) && \
        (!checksEnter(&checked) || !checkHandle(kind, handle, may_be_null))) \
    return failure
/* The function and the caller of the innermost call of this thread; NULL if there is none. */
void checksCurrentCall(const char **function, const void **caller);

/* False, and a line in the log, unless it is a handle of this kind. NULL is one if `may_be_null`.
 * Called within a checkedCall. */
bool checkHandle(handleKind kind, const void *handle, bool may_be_null);
/* False, and a line in the log, unless the argument of that name is given. */
bool checkGiven(const char *name, bool is_given);
/* checkHandle() for each string of an array. */
bool checkStrings(ValkeyModuleString **strings, long count);
/* checkHandle() for a string among variadic arguments; true without checks. */
static inline bool checkVariadic(const ValkeyModuleString *s) {
    return likely(!handlesChecked) || checkHandle(HANDLE_STRING, s, false);
}

/* A context ends: keys that it has opened and that are still open are told. */
void checksContextEnds(const ValkeyModuleCtx *x);
/* A module is about to be unloaded: what it has made and not freed is told. */
void checksUnload(const module *m);

#endif
