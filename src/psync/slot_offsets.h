/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For each slot the end of the last change of one of its keys, as an offset of the stream, as far
 * as it is not confirmed (replication-quorum).
 *
 * A table of all slots takes 128 KB, and each write would change another cache line of it, which
 * costs a cache miss. So a change is only appended to a ring of notes. Notes are moved to the table
 * when an offset is requested, or when the ring is full; most of them are confirmed before that,
 * and are dropped. Notes are kept in groups that have one offset, that of their last change.
 *
 * Invariants: first <= next, and next - first <= SLOT_NOTES; what precedes `first` is in the table
 * or was confirmed; noted offsets ascend. One thread at a time. */
#ifndef PSYNC_SLOT_OFFSETS_H
#define PSYNC_SLOT_OFFSETS_H

#include <stdint.h>

#include "base/assert.h"
#include "base/bytes.h"

enum {
    SLOT_NOTE_GROUP = 64,
    SLOT_NOTE_GROUPS = 128,
    SLOT_NOTES = SLOT_NOTE_GROUP * SLOT_NOTE_GROUPS,
};

typedef struct slotOffsets {
    uint64_t first, next;           /* numbers of notes: from the first one kept to the end */
    uint16_t notes[SLOT_NOTES];     /* slots; a ring */
    int64_t ends[SLOT_NOTE_GROUPS]; /* offset of each full group */
    int64_t *table;                 /* SLOT_COUNT */
} slotOffsets;

void slotOffsetsInit(slotOffsets *o);
void slotOffsetsClear(slotOffsets *o);
/* A group is full: its last change ends at `end`. */
void slotOffsetsEndGroup(slotOffsets *o, int64_t end, int64_t confirmed);
void slotOffsetsApply(slotOffsets *o, int64_t written, int64_t confirmed);

/* A key of the slot was changed by what ends at `end`. `confirmed`: what precedes it need not be
 * known any more. */
static inline void slotOffsetsNote(slotOffsets *o, int slot, int64_t end, int64_t confirmed) {
    o->notes[o->next++ % SLOT_NOTES] = (uint16_t)slot;
    if (unlikely(o->next % SLOT_NOTE_GROUP == 0)) slotOffsetsEndGroup(o, end, confirmed);
}
/* Drops all notes: something else covers them. */
static inline void slotOffsetsDrop(slotOffsets *o) { o->first = o->next; }
/* If there is a change of the slot that is not confirmed: its end, or that of one of those that
 * followed. Else an offset that is confirmed. `written`: the end of the last change. */
static inline int64_t slotOffsetsOf(slotOffsets *o, int slot, int64_t written, int64_t confirmed) {
    if (o->first != o->next) slotOffsetsApply(o, written, confirmed);
    return o->table[slot];
}

#endif
