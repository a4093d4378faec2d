/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A request that outlives the batch it came in: its slices and bytes in one block, large arguments by reference.
 * Main thread only. */
#ifndef ENGINE_KEPT_REQUEST_H
#define ENGINE_KEPT_REQUEST_H

#include <stddef.h>

#include "resp/resp.h"

/* Copies `from`. Returns bytes of memory, large arguments among them. */
size_t keptRequestInit(request *kept, const request *from);
void keptRequestClear(request *kept);

#endif
