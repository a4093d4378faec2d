/* SPDX-License-Identifier: BSD-3-Clause
 *
 * intset: integers, sorted, each once, in as many bytes as the widest needs. The bytes are those of the disk
 * format:
 *
 *   [bytes of an integer, 2, 4 or 8: 4] [how many: 4] [integer]...        little end first
 *
 * Finding takes O(log n) steps, changes O(n) bytes. ANY_THREAD that owns the bytes. */
#ifndef DS_INTSET_H
#define DS_INTSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "ds/packroom.h"

enum { INTSET_HEADER = 8 };

/* Writes an empty set, INTSET_HEADER bytes. */
void intsetInit(uint8_t *at);

static inline size_t intsetWidth(const uint8_t *set) { return loadU32(set); }
static inline size_t intsetCount(const uint8_t *set) { return loadU32(set + 4); }
/* All its bytes. */
static inline size_t intsetSize(const uint8_t *set) {
    return INTSET_HEADER + intsetWidth(set) * intsetCount(set);
}
/* The integer at `index` < intsetCount(), in rising order. */
int64_t intsetGet(const uint8_t *set, size_t index);
/* Whether it is in the set. `index` (may be NULL): where it is, or would be. */
bool intsetFind(const uint8_t *set, int64_t value, size_t *index);

/* Change the set that stands in `room`. False: it was there already, or was not; nothing was done. */
bool intsetAdd(packRoom *room, int64_t value);
bool intsetRemove(packRoom *room, int64_t value);
/* Takes out the integer at `index`. */
void intsetRemoveAt(packRoom *room, size_t index);

/* Whether `size` bytes of a stranger are an intset. Deep: in rising order too. */
bool intsetIsSound(const void *bytes, size_t size, bool deep);

#endif
