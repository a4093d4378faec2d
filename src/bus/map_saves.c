/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of saves of the map (map_saves.h).
 *
 * Invariants: safe <= wanted; one save runs at a time; a slot that this node owns is in `unsaved`
 * if and only if it is not in `saved_slots`, until it is given up. A slot that this node has lost
 * is removed from `saved_slots` at once, as it may come back with another epoch. */
#include "bus/map_saves.h"

#include "base/base.h"

static void findUnsaved(mapSaves *s, const clusterMap *m) {
    uint64_t any = 0;
    for (int word = 0; word < SLOT_WORDS; word++) {
        s->unsaved[word] = m->mine[word] & ~s->saved_slots[word];
        any |= s->unsaved[word];
    }
    s->has_unsaved = any != 0;
}

void mapSavesInit(mapSaves *s, const clusterMap *m) {
    *s = (mapSaves){.wanted = 0};
    memcpy(s->saved_slots, m->mine, sizeof(s->saved_slots));
    check(!mapSavesIsPending(s));
}

void mapSavesTake(mapSaves *s, clusterMap *m, bool ordered) {
    uint32_t changed = m->changed & (CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC);
    if (!changed) return;
    m->changed &= ~changed;
    s->is_due = true;
    s->has_orders |= ordered;
    if (!(changed & CLUSTER_MAP_SYNC)) return;
    s->wanted++;
    s->owes_flush = true;
    for (int word = 0; word < SLOT_WORDS; word++) {
        s->saved_slots[word] &= m->mine[word];
        s->writing_slots[word] &= m->mine[word];
    }
    findUnsaved(s, m);
    check(mapSavesIsPending(s));
}

bool mapSavesBegin(mapSaves *s, const clusterMap *m, int64_t now_ms, bool *flush) {
    if (!s->is_due || s->runs) return false;
    check(!(m->changed & CLUSTER_MAP_SYNC));
    *flush = s->flushes = s->owes_flush;
    s->is_due = s->owes_flush = false;
    s->runs = true;
    s->written = s->wanted;
    s->began_ms = now_ms;
    memcpy(s->writing_slots, m->mine, sizeof(s->writing_slots));
    return true;
}

void mapSavesEnd(mapSaves *s, const clusterMap *m, bool is_written) {
    check(s->runs);
    check(s->written <= s->wanted);
    s->runs = false;
    if (!s->is_due) s->has_orders = false; /* else in the save that follows */
    if (!is_written && s->flushes) s->owes_flush = true;
    if (s->written > s->safe) s->safe = s->written;
    if (!s->flushes) return;
    memcpy(s->saved_slots, s->writing_slots, sizeof(s->saved_slots));
    findUnsaved(s, m);
}

void mapSavesGiveUp(mapSaves *s, const clusterMap *m) {
    check(s->runs);
    s->safe = s->wanted;
    memcpy(s->saved_slots, m->mine, sizeof(s->saved_slots));
    findUnsaved(s, m);
    check(!s->has_unsaved);
}

bool mapSavesIsSafe(const mapSaves *s, uint64_t number) {
    check(number <= s->wanted);
    return number <= s->safe;
}

/* ------------------------------------------------------------------ output that waits */

static size_t markedEnd(const saveMarks *k) {
    return k->count ? k->marks[k->count - 1].end : k->free;
}

void saveMarksAdd(saveMarks *k, const mapSaves *s, size_t end) {
    check(end >= markedEnd(k));
    if (end == markedEnd(k)) return;
    if (!k->count && !mapSavesIsPending(s)) {
        k->free = end;
        return;
    }
    bool joins = k->count && k->marks[k->count - 1].number == s->wanted;
    if (!joins && k->count < (int)COUNT_OF(k->marks)) k->count++;
    k->marks[k->count - 1].end = end;
    k->marks[k->count - 1].number = s->wanted;
}

size_t saveMarksFree(saveMarks *k, const mapSaves *s) {
    while (k->count && mapSavesIsSafe(s, k->marks[0].number)) {
        check(k->marks[0].end > k->free);
        k->free = k->marks[0].end;
        k->marks[0] = k->marks[1];
        k->count--;
    }
    return k->free;
}

void saveMarksSent(saveMarks *k, size_t count) {
    check(count <= k->free);
    k->free -= count;
    for (int i = 0; i < k->count; i++) k->marks[i].end -= count;
}
