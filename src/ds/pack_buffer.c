/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packed values in blocks of their own. ANY_THREAD that owns the block. */
#include "ds/pack_buffer.h"

#include "base/alloc.h"

static uint8_t *resizeBlock(packBuffer *buffer, size_t size) {
#ifdef HOSTILE_BUILD
    /* Always move, so that tests find stale pointers. */
    size_t kept = memSizeOf(buffer->bytes);
    uint8_t *moved = memAlloc(size);
    __builtin_memcpy(moved, buffer->bytes, kept < size ? kept : size);
    memFree(buffer->bytes);
    buffer->bytes = moved;
#else
    buffer->bytes = memRealloc(buffer->bytes, size);
#endif
    return buffer->bytes;
}

packBuffer packBufferHeap(void *bytes) {
    return (packBuffer){.bytes = bytes, .resize = resizeBlock};
}
