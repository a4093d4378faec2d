/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of slots. */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"

/* One bit for each slot. */
typedef struct slotMask {
    uint64_t words[SLOT_COUNT / 64];
} slotMask;

static inline bool slotMaskHas(const slotMask *m, int slot) {
    return m->words[slot / 64] >> (slot % 64) & 1;
}
static inline void slotMaskAdd(slotMask *m, int slot) {
    m->words[slot / 64] |= UINT64_C(1) << (slot % 64);
}
static inline void slotMaskRemove(slotMask *m, int slot) {
    m->words[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

typedef struct slotRange {
    int first, last;
} slotRange;

/* Slots whose import has begun and not ended. Borrowed. */
typedef struct slotImport {
    slice job; /* its name: SLOT_IMPORT_NAME_LEN characters */
    const slotRange *ranges;
    size_t count;
} slotImport;
enum { SLOT_IMPORT_NAME_LEN = 40 };

#endif
