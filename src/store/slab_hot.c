/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot slots: each class has a short stack of free slots, freed recently or taken from a slab
 * together, so that most allocations and frees access neither bitmaps nor lists (the inline part is
 * in slab_priv.h).
 *
 * Invariant: the bit of a hot slot is clear (used), so it cannot be allocated twice; code that
 * reads bitmaps to find live blocks flushes the hot slots first. While a child exists all hot slots
 * are in slabs taken after the fork. Owner thread only. */
#include "store/slab_priv.h"

NO_INLINE bool slabHotRefill(slabStore *s, slabClass *c) {
    hotCheck(c->hot_count == 0);
    c->hot_count = slabSlotsTake(s, c, c->hot, SLAB_HOT_REFILL);
    return c->hot_count > 0;
}

NO_INLINE void slabHotOverflow(slabStore *s, slabClass *c, void *ptr) {
    hotCheck(c->hot_count >= s->hot_limit);
    if (s->hot_limit == 0) {
        slabSlotsRelease(s, c, &ptr, 1);
        return;
    }
    slabHotFlush(s, c, SLAB_HOT_MAX / 2);
    c->hot[c->hot_count++] = ptr;
    hotCheck(c->hot_count <= SLAB_HOT_MAX);
}

void slabHotFlush(slabStore *s, slabClass *c, uint32_t count) {
    hotCheck(c->hot_count <= SLAB_HOT_MAX);
    if (count > c->hot_count) count = c->hot_count;
    if (count == 0) return;
    slabSlotsRelease(s, c, c->hot, count);
    c->hot_count -= count;
    memmove(c->hot, c->hot + count, c->hot_count * sizeof(void *));
}
