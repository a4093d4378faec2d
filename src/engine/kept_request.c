/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that are kept beyond their batch (kept_request.h). `owner` is the block. Main thread
 * only. */
#include "engine/kept_request.h"

#include "base/base.h"

/* Lets argument `i` of a kept request point to its large block; false if it has none. */
static bool placeLarge(request *r, int i) {
    hotCheck(i < r->argc);
    for (int k = 0; k < r->large_count; k++) {
        if (r->large[k].arg != i) continue;
        r->argv[i] = sliceMake(r->large[k].bytes->bytes, r->large[k].bytes->len);
        return true;
    }
    return false;
}

/* An inline request has no raw bytes. */
size_t keptRequestInit(request *kept, const request *from) {
    hotCheck(from->argc > 0);
    size_t bytes = from->raw.len;
    for (int i = 0; !from->raw.len && i < from->argc; i++) bytes += from->argv[i].len;
    size_t slices_size = (size_t)from->argc * sizeof(slice);
    size_t large_size = (size_t)from->large_count * sizeof(requestLarge);
    char *block = memAlloc(slices_size + large_size + bytes);
    char *copy = block + slices_size + large_size;
    *kept = *from;
    kept->owner = block;
    kept->argv = (slice *)block;
    kept->large = from->large_count ? (requestLarge *)(block + slices_size) : NULL;
    if (from->large_count) memcpy(kept->large, from->large, large_size);
    for (int k = 0; k < kept->large_count; k++) blobRetain(kept->large[k].bytes);
    if (from->raw.len) {
        memcpy(copy, from->raw.ptr, bytes);
        kept->raw.ptr = copy;
    }
    for (int i = 0; i < from->argc; i++) {
        slice arg = from->argv[i];
        if (placeLarge(kept, i)) continue;
        if (from->raw.len) {
            kept->argv[i] = sliceMake(copy + (arg.ptr - from->raw.ptr), arg.len);
        } else {
            if (arg.len) memcpy(copy, arg.ptr, arg.len);
            kept->argv[i] = sliceMake(copy, arg.len);
            copy += arg.len;
        }
    }
    size_t memory = memSizeOf(block);
    for (int k = 0; k < kept->large_count; k++) memory += blobMemory(kept->large[k].bytes);
    return memory;
}

void keptRequestClear(request *kept) {
    hotCheck(kept->owner || kept->argc == 0);
    for (int k = 0; k < kept->large_count; k++) blobRelease(kept->large[k].bytes);
    memFree(kept->owner);
}
