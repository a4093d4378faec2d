/* SPDX-License-Identifier: BSD-3-Clause
 *
 * packRoom: where a packed value (listpack, intset) stands and how it grows. The value does not know whether
 * it lies in a block of its own or inside a larger one; its owner hangs up how a place of another size is got. */
#ifndef DS_PACKROOM_H
#define DS_PACKROOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct packRoom packRoom;
struct packRoom {
    uint8_t *bytes; /* the value; after each change of it another place, perhaps */
    /* Makes the place `size` bytes large, sets `bytes` and returns it; what it held stays, as far as there is
     * room. Called once for every change: before one that grows the value, after any other. */
    uint8_t *(*resize)(packRoom *room, size_t size);
};

/* For a value in a block of memAlloc(), which the caller takes back out of `bytes`. */
packRoom packRoomHeap(void *bytes);

#endif
