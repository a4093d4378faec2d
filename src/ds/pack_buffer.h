/* SPDX-License-Identifier: BSD-3-Clause
 *
 * packBuffer: the memory of a packed value (listpack, intset) and how to resize it. The value may
 * be in a block of its own or part of a larger block; its owner supplies the resize function. */
#ifndef DS_PACK_BUFFER_H
#define DS_PACK_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct packBuffer packBuffer;
struct packBuffer {
    uint8_t *bytes; /* the value; may change with each modification */
    /* Resizes the memory to `size` bytes, sets `bytes` and returns it; contents are kept as far as
     * they fit. Called once per change: before a change that grows the value, after any other. */
    uint8_t *(*resize)(packBuffer *buffer, size_t size);
};

/* For a value in a block of memAlloc(); afterwards the caller takes the block from `bytes`. */
packBuffer packBufferHeap(void *bytes);

#endif
