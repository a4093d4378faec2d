/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compaction: empties the sparsest slabs of all classes that have spare slots, by moving their
 * blocks to fuller slabs.
 *
 * Invariant: a victim (the slab being emptied) is in no bin, so no block is allocated in it;
 * between two steps the owner may free and allocate. A cycle terminates: each finished victim
 * either reduces the number of slabs, or was refused a block and is not chosen again in this cycle.
 *
 * Cost: 32 blocks per step, about 100 ns per block including the owner's callback. Owner thread
 * only. */
#include "base/clock.h"
#include "store/slab_poison.h"
#include "store/slab_priv.h"

/* Minimum gain of a cycle: in bytes, and as a share of the live memory. */
#define WORTH_BYTES ((size_t)512 << 10)
#define WORTH_SHARE 16

bool slabShouldCompact(const slabStore *s) {
    if (s->forked) return false;
    if (s->cycle_active) return true;
    size_t recoverable = 0, live = 0;
    for (const slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++) {
        if (c->slabs == 0) continue;
        recoverable += slabClassExcess(c) * SLAB_BYTES;
        live += slabClassLive(c) * c->size;
    }
    return recoverable > sizeMax(WORTH_BYTES, live / WORTH_SHARE);
}

/* Moves pinned slabs back to the normal bins, so that the next cycle tries them again. */
static void cycleEnd(slabStore *s) {
    s->cycle_active = false;
    s->cycle = s->cycle == UINT8_MAX ? 1 : s->cycle + 1; /* 0 means never */
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++)
        slabBinDissolve(s, c, SLAB_PINNED);
    hotCheck(s->cycle > 0);
    hotCheck(!s->cycle_active);
}

/* Chooses the emptiest slab of all classes: most memory for fewest moves. */
static bool victimChoose(slabStore *s) {
    /* Hot slots may be the only free ones in a slab. */
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++) {
        if (c->hot_count && slabClassExcess(c)) slabHotFlush(s, c, SLAB_HOT_MAX);
    }
    for (int bin = SLAB_EIGHTH + 7; bin >= SLAB_SCARCE; bin--) {
        for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++) {
            if (c->bins[bin] == SLAB_NONE || slabClassExcess(c) == 0) continue;
            s->victim = c->bins[bin];
            s->victim_pos = 0;
            slabBinRemove(s, c, s->victim);
            s->meta[s->victim].where = SLAB_VICTIM;
            s->meta[s->victim].file_at = UINT16_MAX; /* frees do not move it to a bin */
            return true;
        }
    }
    return false;
}

static void victimDrop(slabStore *s, bool pinned) {
    hotCheck(s->victim != SLAB_NONE);
    uint32_t id = s->victim;
    s->victim = SLAB_NONE;
    if (pinned) s->meta[id].pinned_in = s->cycle;
    slabFile(s, slabClassAt(s, id), id);
    hotCheck(s->victim == SLAB_NONE);
}

/* Collects the next blocks of the victim. */
static unsigned victimGather(slabStore *s, void **blocks) {
    hotCheck(s->victim != SLAB_NONE);
    hotCheck(s->victim_pos <= s->meta[s->victim].slots);
    const slabMeta *m = &s->meta[s->victim];
    size_t size = slabClassAt(s, s->victim)->size;
    unsigned count = 0;
    for (; count < SLAB_MOVE_MAX && s->victim_pos < m->slots; s->victim_pos++) {
        uint32_t i = s->victim_pos / 64;
        uint64_t taken = ~m->bits[i] & ~0ull << s->victim_pos % 64;
        if (!taken) {
            s->victim_pos |= 63; /* last bit of the word */
            continue;
        }
        s->victim_pos = i * 64 + (uint32_t)__builtin_ctzll(taken);
        if (s->victim_pos >= m->slots) break;
        char *block = slabStart(s, s->victim) + s->victim_pos * size;
        for (size_t line = 0; line < size && line < 512; line += CACHE_LINE)
            prefetchRead(block + line);
        blocks[count++] = block;
    }
    return count;
}

/* Copies blocks to new slots, calls the owner, and frees the old or the new copy of each. */
static void blocksMove(slabStore *s, slabClass *c, void *const *old, unsigned count,
                       slabRelocateProc *proc, void *arg, slabCompactReport *report) {
    void *moved[SLAB_MOVE_MAX];
    s->compacting = true;
    for (unsigned i = 0; i < count; i++) {
        moved[i] = slabSlotTake(s, c);
        check(moved[i]); /* the class has spare slots for a whole slab */
        slabUnpoison(moved[i], c->size);
        memcpy(moved[i], old[i], c->size - SLAB_RED_ZONE);
    }
    s->compacting = false;
    uint32_t taken = proc(arg, old, moved, count);
    void *unused[SLAB_MOVE_MAX];
    for (unsigned i = 0; i < count; i++) {
        bool accepted = taken >> i & 1;
        unused[i] = accepted ? old[i] : moved[i];
        slabPoison(unused[i], c->size);
        report->moved_blocks += accepted;
        report->moved_bytes += accepted ? c->size : 0;
        report->refused_blocks += !accepted;
    }
    slabSlotsRelease(s, c, unused, count);
}

static void victimStep(slabStore *s, slabRelocateProc *proc, void *arg, slabCompactReport *report) {
    hotCheck(s->victim != SLAB_NONE);
    slabClass *c = slabClassAt(s, s->victim);
    slabHotFlush(s, c, SLAB_HOT_MAX); /* hot slots must not look live */
    if (slabClassExcess(c) == 0) {    /* the class has no spare slots any more */
        victimDrop(s, false);
        return;
    }
    void *blocks[SLAB_MOVE_MAX];
    unsigned count = victimGather(s, blocks);
    if (count) blocksMove(s, c, blocks, count, proc, arg, report);
    const slabMeta *m = &s->meta[s->victim];
    if (s->victim_pos < m->slots) return;
    bool empty = m->free == m->slots;
    report->freed_slabs += empty;
    victimDrop(s, !empty);
}

bool slabCompact(slabStore *s, slabRelocateProc *proc, void *arg, int64_t budget_us,
                 slabCompactReport *report) {
    hotCheck(budget_us >= 0);
    if (s->forked) return false;
    slabCompactReport unasked = {0};
    int64_t deadline_ns = clockMonoNs() + budget_us * 1000;
    s->cycle_active = true;
    do {
        if (s->victim == SLAB_NONE && !victimChoose(s)) {
            cycleEnd(s);
            return false;
        }
        victimStep(s, proc, arg, report ? report : &unasked);
    } while (clockMonoNs() < deadline_ns);
    return true;
}

void *slabMoveIfSparse(slabStore *s, void *block) {
    enum { EMPTY_SHARE = 8 }; /* minimum share of free slots in the slab: 1/8 */
    if (s->forked || !slabHas(s, block)) return NULL;
    uint32_t id = slabIdOf(s, block);
    slabClass *c = slabClassAt(s, id);
    const slabMeta *m = &s->meta[id];
    bool sparse = m->free >= m->slots / EMPTY_SHARE && (uint64_t)m->free * c->slabs > c->free;
    if (!sparse || slabClassExcess(c) == 0) return NULL;
    s->compacting = true;
    void *moved = slabSlotTake(s, c);
    s->compacting = false;
    if (!moved) return NULL;
    if (slabIdOf(s, moved) == id) {
        slabSlotsRelease(s, c, &moved, 1);
        return NULL;
    }
    slabUnpoison(moved, c->size);
    memcpy(moved, block, c->size - SLAB_RED_ZONE);
    slabPoison(block, c->size);
    /* Not to the hot slots: the slab should become empty. */
    slabSlotsRelease(s, c, &block, 1);
    return moved;
}
