/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of scripts, named after their fields, which only the configuration registry writes;
 * functions shared by the commands. */
#ifndef SCRIPT_SCRIPT_PRIV_H
#define SCRIPT_SCRIPT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "engine/ctx.h"
#include "script/cache.h"

typedef struct scriptConfig {
    int64_t busy_reply_threshold; /* ms until other clients get BUSY; 0: never */
    int64_t maxmemory_scripts;    /* bytes of cached scripts of EVAL; 0: no limit */
    int64_t script_memory_limit;  /* bytes of an interpreter; 0: derived from maxmemory */
    bool lua_enable_insecure_api;
} scriptConfig;

extern scriptConfig scriptConf;
extern const configOption scriptOptions[];

/* Parses the number of keys, argv[2]. False: the error was replied; `not_a_number` is its text,
 * NULL: the usual one. */
bool scriptArgKeys(ctx *c, int *count, const char *not_a_number);
/* The flags of a request to run a script: those of its command, and what the script of an EVAL or
 * EVALSHA, or the function of an FCALL, declares. Unchanged for a script without a header, and if
 * there is none. */
uint64_t scriptEvalFlags(const ctx *c);
uint64_t scriptCallFlags(const ctx *c);
uint64_t scriptFlagsOfCommand(const ctx *c, unsigned flags);
/* Registers the engine that is a part of the program. */
void scriptEnginesStart(void);
/* Registers the libraries as a part of files. */
status functionsInit(reason *why);
/* A script was run: there may be garbage. */
void scriptNoteWork(void);

#endif
