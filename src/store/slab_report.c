/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of a slab store, and a check of all invariants. */
#include "base/map.h"
#include "store/slab_priv.h"

void slabGetStats(const slabStore *s, slabStats *out) {
    *out = (slabStats){.slabs_in_use = s->slabs_in_use,
                       .empty_bytes = s->slabs_dirty * SLAB_BYTES,
                       .open_bytes = s->meta_open,
                       .metadata_bytes = sizeRoundUp(sizeof(*s), MAP_PAGE) + s->meta_open +
                                         s->bits_bytes + memSizeOf(s->chunks)};
    for (const slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++) {
        if (c->slabs == 0) continue;
        uint64_t live = slabClassLive(c);
        out->live_blocks += live;
        out->live_bytes += live * c->size;
        out->hole_bytes += (c->free + c->hot_count) * c->size;
        out->tail_bytes += c->slabs * (SLAB_BYTES - (size_t)c->slots * c->size);
        out->recoverable_bytes += slabClassExcess(c) * SLAB_BYTES;
    }
    out->resident_bytes = out->live_bytes + out->hole_bytes + out->tail_bytes + out->empty_bytes +
                          out->metadata_bytes;
}

/* Counts of one class, determined by walking all slabs. */
typedef struct classCount {
    uint64_t free;
    uint32_t slabs, listed;
} classCount;

static void verifySlab(const slabStore *s, uint32_t id, classCount *counts) {
    const slabMeta *m = &s->meta[id];
    const slabClass *c = &s->classes[m->class];
    uint32_t set = 0;
    for (uint32_t i = 0; i < c->words; i++) {
        if (i < m->first) check(m->bits[i] == 0);
        set += (uint32_t)__builtin_popcountll(m->bits[i]);
    }
    check(set == m->free);
    check(m->slots == c->slots);
    check(m->where != SLAB_UNFILED);
    check((m->where == SLAB_VICTIM) == (s->victim == id));
    if (m->where == SLAB_FULL) check(m->free == 0);
    if (m->where < SLAB_BINS) {
        check(m->free > 0);
        check(m->free < m->file_at);
        check(m->free < m->slots);
        if (m->where == SLAB_SCARCE) check(m->free < c->scarce);
        if (m->where >= SLAB_EIGHTH && m->where < SLAB_YOUNG)
            check(m->free * 8u / m->slots == m->where - (unsigned)SLAB_EIGHTH);
        counts[m->class].listed++;
    }
    counts[m->class].free += set;
    counts[m->class].slabs++;
}

static void verifyBins(const slabStore *s, const slabClass *c, uint32_t listed) {
    for (unsigned bin = 0; bin < SLAB_BINS; bin++) {
        check((c->bins[bin] != SLAB_NONE) == (c->bin_mask >> bin & 1));
        uint32_t prev = SLAB_NONE;
        for (uint32_t id = c->bins[bin]; id != SLAB_NONE; id = s->meta[id].next) {
            check(s->meta[id].where == bin);
            check(s->meta[id].prev == prev);
            check(&s->classes[s->meta[id].class] == c);
            check(listed > 0);
            listed--;
            prev = id;
        }
    }
    check(listed == 0);
    if (!s->forked) check(c->bins[SLAB_YOUNG] == SLAB_NONE);
    if (!s->cycle_active) check(c->bins[SLAB_PINNED] == SLAB_NONE);
}

/* Hot slots must be slots of the class that are marked used, each one only once. */
static void verifyHot(const slabStore *s, const slabClass *c) {
    check(c->hot_count <= SLAB_HOT_MAX);
    for (uint32_t i = 0; i < c->hot_count; i++) {
        check(slabHas(s, c->hot[i]));
        uint32_t id = slabIdOf(s, c->hot[i]);
        const slabMeta *m = &s->meta[id];
        size_t offset = (size_t)((const char *)c->hot[i] - slabStart(s, id));
        check(&s->classes[m->class] == c);
        check(offset % c->size == 0);
        size_t slot = offset / c->size;
        check(slot < m->slots);
        check(!(m->bits[slot / 64] >> slot % 64 & 1));
        if (s->forked) check(m->epoch == s->epoch);
        for (uint32_t k = 0; k < i; k++) check(c->hot[k] != c->hot[i]);
    }
}

void slabVerify(const slabStore *s) {
    classCount counts[SLAB_CLASSES] = {0};
    uint32_t in_use = 0, dirty = 0;
    for (uint32_t id = 0; id < s->chunk_count * SLAB_CHUNK_SLABS; id++) {
        uint32_t at = id / SLAB_CHUNK_SLABS;
        bool is_unused = s->chunks[at].unused >> id % SLAB_CHUNK_SLABS & 1;
        bool is_dirty = s->chunks[at].dirty >> id % SLAB_CHUNK_SLABS & 1;
        check(is_unused == (s->meta[id].where == SLAB_UNUSED));
        if (is_dirty) check(is_unused);
        if (is_dirty) check(at < s->dirty_hint);
        if (is_unused && !s->forked) check(at >= s->unused_hint);
        dirty += is_dirty;
        if (is_unused) continue;
        in_use++;
        verifySlab(s, id, counts);
    }
    check(in_use == s->slabs_in_use);
    check(dirty == s->slabs_dirty);
    for (const slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++) {
        const classCount *count = &counts[c - s->classes];
        check(count->slabs == c->slabs);
        check(count->free == c->free);
        check(c->free + c->hot_count <= (uint64_t)c->slabs * c->slots);
        verifyHot(s, c);
        verifyBins(s, c, count->listed);
    }
}
