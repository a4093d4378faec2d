/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compiled scripts, by digest and by text. Scripts of EVAL are evicted, the one used longest ago
 * first, when there are more than SCRIPT_EVAL_MAX or they take more than maxmemory-scripts, except
 * the one that was added last; those of SCRIPT LOAD stay until SCRIPT FLUSH.
 * Main thread only. */
#ifndef SCRIPT_CACHE_H
#define SCRIPT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "script/engine.h"

enum { SCRIPT_EVAL_MAX = 500, SCRIPT_DIGEST_LEN = 40 };

/* One script; valid until the next call of a function here that is not a lookup. */
typedef struct script {
    const scriptEngine *engine;
    int handle;
    unsigned flags; /* enum scriptFlag */
    slice body;     /* with its header */
    char digest[SCRIPT_DIGEST_LEN + 1];
} script;

/* Writes the SHA-1 of `text` as hex digits and a NUL. */
void scriptDigest(slice text, char digest[SCRIPT_DIGEST_LEN + 1]);
/* The script with that text, NULL if it is not cached; counts as a use. */
const script *scriptCacheFindText(slice body);
/* The script with that digest, in any case; counts as a use. */
const script *scriptCacheFindDigest(slice digest);
/* Compiles a script and adds it. NULL: the error text is in `error`. */
const script *scriptCacheAdd(slice body, str *error);
/* The script is not evicted any more. */
void scriptCachePin(const script *s);
/* Drops all scripts and the interpreters. `later`: their memory is freed in the background if
 * possible. */
void scriptCacheFlush(bool later);
/* Drops the scripts of one engine. */
void scriptCacheRemoveOf(const scriptEngine *engine);

typedef struct scriptCacheUse {
    size_t scripts, bytes; /* number; memory of their texts and the tables */
    uint64_t evicted;      /* since the start */
} scriptCacheUse;
scriptCacheUse scriptCacheUseNow(void);
void scriptCacheResetStats(void);

#endif
