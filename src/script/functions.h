/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries and their functions. Names of functions are unique among all libraries, ignoring case.
 * Main thread only. */
#ifndef SCRIPT_FUNCTIONS_H
#define SCRIPT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"
#include "script/engine.h"

typedef struct library library;

typedef struct function {
    str name, description; /* description.ptr NULL: none */
    unsigned flags;        /* enum scriptFlag */
    int handle;
    library *of;
    struct function *next; /* in its bucket */
} function;

struct library {
    str name, code;
    const scriptEngine *engine;
    function *functions; /* function_count of them */
    int function_count;
    bool replaced; /* used while others are loaded */
    listNode node;
};

/* How long a library may take to load for a client, and all libraries of a payload together. */
enum { FUNCTION_LOAD_MS = 500, FUNCTION_RESTORE_MS = 2000 };

/* NULL if there is none. */
const function *functionFind(slice name);
library *libraryFind(slice name);
/* All libraries, by their field `node`. */
list *librariesAll(void);
size_t functionCount(void);
/* Bytes of code, names and tables. */
size_t functionMemory(void);

/* Loads a library for at most `limit_ms`. On failure nothing has changed, the reply is in
 * `error`. */
const library *libraryLoad(slice code, bool replace, int64_t limit_ms, str *error);
void libraryDelete(library *l);
/* Removes those of one engine. */
void librariesRemoveOf(const scriptEngine *engine);
/* Removes all libraries and the interpreters. `later`: their memory is freed in the background if
 * possible. */
void librariesFlush(bool later);

typedef enum restorePolicy { RESTORE_APPEND, RESTORE_REPLACE, RESTORE_FLUSH } restorePolicy;
/* Loads several libraries, all or none: each for at most `limit_ms`, all of them for at most
 * `total_ms`. On failure the reply is in `error`. */
bool librariesRestore(const slice *codes, int count, restorePolicy policy, int64_t limit_ms,
                      int64_t total_ms, str *error);

#endif
