/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scheduling of memory compaction. Main thread only. */
#ifndef ENGINE_DEFRAG_H
#define ENGINE_DEFRAG_H

#include <stdint.h>

/* Ms until the next step, to limit the sleep of the loop; -1: not running. */
int64_t defragNextMs(void);

#endif
