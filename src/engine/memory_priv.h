/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files about memory limits share. Main thread only. */
#ifndef ENGINE_MEMORY_PRIV_H
#define ENGINE_MEMORY_PRIV_H

#include "store/store.h"

/* Sets engineHot.memory_limited: a limit or an account has come or gone. */
void memoryUpdateLimited(void);
/* How keys are chosen by maxmemory-policy; false: none may be evicted now. */
bool memoryEvictRule(evictRule *out);

#endif
