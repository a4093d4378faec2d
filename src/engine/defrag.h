/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compaction of the keyspace's memory: who does it, and when. Main thread only. */
#ifndef ENGINE_DEFRAG_H
#define ENGINE_DEFRAG_H

#include <stdint.h>

/* Ms until the next piece of work wants to begin, so that the loop does not sleep longer; -1: none is under way. */
int64_t defragNextMs(void);

#endif
