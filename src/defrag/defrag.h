/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scheduling of memory compaction. Main thread only. */
#ifndef DEFRAG_DEFRAG_H
#define DEFRAG_DEFRAG_H

#include <stdint.h>

#include "engine/hooks.h"

extern const feature defragFeature;

/* Sets a function that is called at the end of each pass with activedefrag, to move what is not a
 * part of keys. It adds the numbers of blocks that it has moved and kept. */
typedef void defragOthersProc(uint64_t *moved, uint64_t *kept);
void defragSetOthers(defragOthersProc *proc);
/* Ms until the next step, to limit the sleep of the loop; -1: not running. */
int64_t defragNextMs(void);

#endif
