/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot slots: each class keeps a short stack of dead slots, freed last or fetched in a bunch, so that most
 * allocations and frees touch neither bitmaps nor lists (slab_priv.h has the inline part).
 *
 * Invariant: a hot slot's bit says taken, so nobody else can give it out; whoever reads bitmaps to
 * learn what lives flushes first. While a child lives all hot slots are of young slabs. Owner thread
 * only. */
#include "store/slab_priv.h"

NO_INLINE bool slabHotRefill(slabStore *s, slabClass *c) {
    c->hot_count = slabSlotsTake(s, c, c->hot, SLAB_HOT_REFILL);
    return c->hot_count > 0;
}

NO_INLINE void slabHotOverflow(slabStore *s, slabClass *c, void *ptr) {
    if (s->hot_limit == 0) {
        slabSlotsRelease(s, c, &ptr, 1);
        return;
    }
    slabHotFlush(s, c, SLAB_HOT_MAX / 2);
    c->hot[c->hot_count++] = ptr;
}

void slabHotFlush(slabStore *s, slabClass *c, uint32_t count) {
    if (count > c->hot_count) count = c->hot_count;
    if (count == 0) return;
    slabSlotsRelease(s, c, c->hot, count);
    c->hot_count -= count;
    memmove(c->hot, c->hot + count, c->hot_count * sizeof(void *));
}
