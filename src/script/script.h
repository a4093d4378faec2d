/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scripts (EVAL) and functions. Main thread only. */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include "engine/hooks.h"

extern const feature scriptFeature;
/* Refuses commands while a slow script is executed. */
extern const gate scriptBusyGate;
/* Refuses commands of the running script that its flags rule out. */
extern const gate scriptRulesGate;

/* Bytes of the cache of EVAL scripts, and of libraries, without the interpreters. */
size_t scriptCacheBytes(void);
size_t scriptLibraryBytes(void);
/* Memory of the interpreters. */
size_t scriptVmBytes(void);

#endif
