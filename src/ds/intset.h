/* SPDX-License-Identifier: BSD-3-Clause
 *
 * intset: a sorted array of distinct integers, all with the width of the widest one. This is also
 * the format on disk:
 *
 *   [width of an integer, 2, 4 or 8: 4 bytes] [count: 4 bytes] [integer]...        little-endian
 *
 * Finding takes O(log n) steps, changing O(n) bytes. ANY_THREAD that owns the bytes. */
#ifndef DS_INTSET_H
#define DS_INTSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "ds/pack_buffer.h"

enum { INTSET_HEADER = 8 };

/* Writes an empty set, INTSET_HEADER bytes. */
void intsetInit(uint8_t *at);

static inline size_t intsetWidth(const uint8_t *set) { return loadU32(set); }
static inline size_t intsetCount(const uint8_t *set) { return loadU32(set + 4); }
/* Size in bytes. */
static inline size_t intsetSize(const uint8_t *set) {
    return INTSET_HEADER + intsetWidth(set) * intsetCount(set);
}
/* The integer at `index` < intsetCount(), in ascending order. */
int64_t intsetGet(const uint8_t *set, size_t index);
/* True if the set contains the value. `index` (may be NULL) is set to its position, or where it
 * would be inserted. */
bool intsetFind(const uint8_t *set, int64_t value, size_t *index);

/* Change the set in the buffer. False if nothing was done because the value was already present, or
 * missing. */
bool intsetAdd(packBuffer *buffer, int64_t value);
bool intsetRemove(packBuffer *buffer, int64_t value);
/* Removes the integer at `index`. */
void intsetRemoveAt(packBuffer *buffer, size_t index);

/* True if `size` untrusted bytes are a valid intset. `deep` also checks the order. */
bool intsetIsValid(const void *bytes, size_t size, bool deep);

#endif
