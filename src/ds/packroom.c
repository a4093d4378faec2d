/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packed values in blocks of their own. ANY_THREAD that owns the block. */
#include "ds/packroom.h"

#include "base/alloc.h"

static uint8_t *resizeBlock(packRoom *room, size_t size) {
#ifdef HOSTILE_BUILD
    /* Always move, so that tests find stale pointers. */
    size_t kept = memSizeOf(room->bytes);
    uint8_t *moved = memAlloc(size);
    __builtin_memcpy(moved, room->bytes, kept < size ? kept : size);
    memFree(room->bytes);
    room->bytes = moved;
#else
    room->bytes = memRealloc(room->bytes, size);
#endif
    return room->bytes;
}

packRoom packRoomHeap(void *bytes) { return (packRoom){.bytes = bytes, .resize = resizeBlock}; }
