/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A copy of a request that outlives its batch: slices and bytes in one block, large arguments by
 * reference. Main thread only. */
#ifndef ENGINE_KEPT_REQUEST_H
#define ENGINE_KEPT_REQUEST_H

#include <stddef.h>

#include "resp/resp.h"

/* Copies `from`. Returns the memory in bytes, including large arguments. */
size_t keptRequestInit(request *kept, const request *from);
void keptRequestClear(request *kept);

#endif
