/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records for each slot the offset of its last change that is not confirmed (slot_offsets.h). */
#include "psync/slot_offsets.h"

#include "base/base.h"
#include "base/hash.h"

_Static_assert(SLOT_COUNT <= UINT16_MAX + 1, "slots fit into notes");

void slotOffsetsInit(slotOffsets *o) {
    o->first = o->next = 0;
    o->table = memNewArray(int64_t, SLOT_COUNT);
}

void slotOffsetsClear(slotOffsets *o) {
    memFree(o->table);
    o->table = NULL;
}

/* The end of the notes of the group of note `number`, or of all notes. */
static uint64_t groupEnd(const slotOffsets *o, uint64_t number) {
    hotCheck(number < o->next);
    uint64_t end = (number / SLOT_NOTE_GROUP + 1) * SLOT_NOTE_GROUP;
    return end < o->next ? end : o->next;
}

/* The first group leaves, for the table unless it is confirmed. */
static void applyGroup(slotOffsets *o, int64_t written, int64_t confirmed) {
    uint64_t end = groupEnd(o, o->first);
    bool is_full = end % SLOT_NOTE_GROUP == 0;
    int64_t offset = is_full ? o->ends[o->first / SLOT_NOTE_GROUP % SLOT_NOTE_GROUPS] : written;
    hotCheck(offset <= written);
    while (o->first < end) {
        uint16_t slot = o->notes[o->first++ % SLOT_NOTES];
        if (offset > confirmed) o->table[slot] = offset;
    }
}

void slotOffsetsApply(slotOffsets *o, int64_t written, int64_t confirmed) {
    while (o->first != o->next) applyGroup(o, written, confirmed);
}

void slotOffsetsEndGroup(slotOffsets *o, int64_t end, int64_t confirmed) {
    hotCheck(o->next % SLOT_NOTE_GROUP == 0);
    hotCheck(o->next - o->first <= SLOT_NOTES);
    o->ends[(o->next - 1) / SLOT_NOTE_GROUP % SLOT_NOTE_GROUPS] = end;
    while (o->first != o->next &&
           o->ends[o->first / SLOT_NOTE_GROUP % SLOT_NOTE_GROUPS] <= confirmed)
        o->first = groupEnd(o, o->first);
    /* The next group needs the place of the first one. */
    if (o->next - o->first > SLOT_NOTES - SLOT_NOTE_GROUP) applyGroup(o, end, confirmed);
}
