/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engines of scripts that exist: Lua, and those of modules, each with one interpreter for EVAL
 * and one for functions, opened on first use. Main thread only. */
#ifndef SCRIPT_ENGINES_H
#define SCRIPT_ENGINES_H

#include "base/alloc.h"
#include "base/error.h"
#include "script/engine.h"

/* Registers an engine. `module`: the name of its module; `abi_version`: that of its table, for
 * INFO. ERR_EXISTS: the name is in use. */
status scriptEngineAdd(const scriptEngine *e, const char *module, int abi_version) MUST_USE;
/* Removes an engine with its libraries, scripts and interpreters. */
void scriptEngineRemove(const scriptEngine *e);

/* Calls `proc` for each engine in the order of their registration. */
typedef struct scriptEngineRow {
    const scriptEngine *engine;
    const char *module;
    int abi_version;
} scriptEngineRow;
void scriptEnginesEach(void (*proc)(const scriptEngineRow *row, void *arg), void *arg);
int scriptEngineCount(void);

/* The interpreter; NULL if it is not open and `open` is false. */
void *scriptEngineVm(const scriptEngine *e, scriptUse use, bool open);
/* Bytes of all engines for one use; of one engine for all uses. */
size_t scriptEnginesMemory(scriptUse use);
scriptMemory scriptEngineMemory(const scriptEngine *e);
/* Frees unreachable memory of all interpreters for about `budget_us` each. True: there is more. */
bool scriptEnginesCollect(int64_t budget_us);

/* Takes the interpreters of one use, to be closed; the next use opens new ones. */
typedef struct takenVms takenVms;
takenVms *scriptEnginesTake(scriptUse use);
/* True if another thread may close them. */
bool takenVmsCloseAnywhere(const takenVms *t);
void takenVmsFree(takenVms *t);
/* Tells the engines that all scripts of one use have been flushed. */
void scriptEnginesReset(scriptUse use, bool later);

#endif
