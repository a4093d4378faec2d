/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of hash slots (cluster_slots.h). Invariant: `count` is the number of bits set. */
#include "tools/cli/cluster_slots.h"

#include "base/assert.h"
#include "base/hash.h"

static uint64_t bitOf(int slot) { return UINT64_C(1) << (slot % 64); }

bool slotSetHas(const slotSet *set, int slot) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    return set->words[slot / 64] & bitOf(slot);
}

void slotSetAdd(slotSet *set, int slot) {
    if (slotSetHas(set, slot)) return;
    set->words[slot / 64] |= bitOf(slot);
    set->count++;
}

void slotSetRemove(slotSet *set, int slot) {
    if (!slotSetHas(set, slot)) return;
    set->words[slot / 64] &= ~bitOf(slot);
    set->count--;
}

void slotSetAddAll(slotSet *set, const slotSet *from) {
    int count = 0;
    for (int i = 0; i < SLOT_COUNT / 64; i++) {
        set->words[i] |= from->words[i];
        count += __builtin_popcountll(set->words[i]);
    }
    set->count = count;
}

int slotSetNext(const slotSet *set, int from) {
    check(from >= 0);
    while (from < SLOT_COUNT) {
        uint64_t rest = set->words[from / 64] >> (from % 64);
        if (rest) return from + __builtin_ctzll(rest);
        from += 64 - from % 64;
    }
    return -1;
}

bool slotSetRange(const slotSet *set, int from, int *first, int *last) {
    int slot = from < SLOT_COUNT ? slotSetNext(set, from) : -1;
    if (slot < 0) return false;
    *first = slot;
    while (slot + 1 < SLOT_COUNT && slotSetHas(set, slot + 1)) slot++;
    *last = slot;
    return true;
}

void slotSetPrint(const slotSet *set, str *out) {
    int first, last;
    for (int from = 0; slotSetRange(set, from, &first, &last); from = last + 1) {
        strAppendFormat(out, from ? ",[%d" : "[%d", first);
        strAppendFormat(out, last > first ? "-%d]" : "]", last);
    }
}

void slotSetPrintPlain(const slotSet *set, str *out) {
    int first, last;
    for (int from = 0; slotSetRange(set, from, &first, &last); from = last + 1)
        strAppendFormat(out, "%s%d-%d", from ? " " : "", first, last);
}
