/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading and unloading modules. A module whose OnLoad fails leaves nothing: what it has registered
 * is removed again. Main thread only. */
#ifndef MODULE_LOAD_H
#define MODULE_LOAD_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "module/context.h"

/* Arguments for loading a module. */
typedef struct moduleLoadArgs {
    const slice *args; /* of OnLoad */
    int count;
    const slice *settings; /* names, each followed by its value */
    int setting_count;
} moduleLoadArgs;
/* Loads the shared object at `path` and calls its OnLoad. Failures are logged, and the reason is in
 * `why`, too. */
status moduleLoad(const char *path, const moduleLoadArgs *given, reason *why) MUST_USE;
/* Calls its OnUnload, removes all that it has registered and closes the shared object.
 * ERR_NOT_FOUND: there is no such module; others: it is in use, as `why` says. */
status moduleUnload(slice name, reason *why) MUST_USE;

#endif
