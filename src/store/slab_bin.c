/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Allocation of slots within slabs, and the bins that order a class's slabs by their number of free
 * slots.
 *
 * Invariants: a slab is in exactly one list or state, given by `where`; `free` is the number of its
 * set bits; a slab in a bin has between 1 and file_at - 1 free slots. New blocks are placed in the
 * fullest slab, so that sparse ones become empty. Slabs with very few free slots are skipped,
 * because visiting them costs more than it yields.
 *
 * Cost: a slot is one bit; lists change only when the fill of a slab crosses a multiple of 1/8.
 * Owner thread only. */
#include "base/random.h"
#include "store/slab_poison.h"
#include "store/slab_priv.h"

/* ---- bins ---- */

void slabBinRemove(slabStore *s, slabClass *c, uint32_t id) {
    slabMeta *m = &s->meta[id];
    check(m->where < SLAB_BINS);
    if (m->next != SLAB_NONE) s->meta[m->next].prev = m->prev;
    if (m->prev != SLAB_NONE) {
        s->meta[m->prev].next = m->next;
    } else {
        c->bins[m->where] = m->next;
        if (m->next == SLAB_NONE) c->bin_mask &= (uint16_t) ~(1u << m->where);
    }
    m->where = SLAB_UNFILED;
}

void slabBinInsert(slabStore *s, slabClass *c, uint32_t id, unsigned bin) {
    slabMeta *m = &s->meta[id];
    check(m->where >= SLAB_BINS);
    m->where = (uint8_t)bin;
    m->prev = SLAB_NONE;
    m->next = c->bins[bin];
    if (m->next != SLAB_NONE) s->meta[m->next].prev = id;
    c->bins[bin] = id;
    c->bin_mask |= (uint16_t)(1u << bin);
}

/* The bin for a slab that is not empty; sets the number of free slots at which it is to be moved
 * next. */
static unsigned binFor(const slabStore *s, const slabClass *c, slabMeta *m) {
    hotCheck(m->free <= m->slots);
    uint32_t slots = m->slots;
    m->file_at = (uint16_t)slots;
    if (m->free == 0) {
        m->file_at = 1;
        return SLAB_FULL;
    }
    if (s->forked && m->epoch == s->epoch) return SLAB_YOUNG;
    if (s->cycle_active && m->pinned_in == s->cycle) return SLAB_PINNED;
    if (m->free < c->scarce) {
        m->file_at = c->scarce;
        return SLAB_SCARCE;
    }
    uint32_t eighth = m->free * 8u / slots;
    uint32_t border = (slots * (eighth + 1) + 7) / 8;
    if (border < slots) m->file_at = (uint16_t)border;
    return SLAB_EIGHTH + eighth;
}

static void slabRetire(slabStore *s, slabClass *c, uint32_t id) {
    hotCheck(s->meta[id].free == s->meta[id].slots);
    hotCheck(c->slabs > 0);
    hotCheck(c->free >= s->meta[id].slots);
    slabMeta *m = &s->meta[id];
    s->bits_bytes -= memSizeOf(m->bits);
    memFree(m->bits);
    c->free -= m->slots;
    c->slabs--;
    slabSpaceGive(s, id);
}

void slabFile(slabStore *s, slabClass *c, uint32_t id) {
    hotCheck(s->meta[id].free <= s->meta[id].slots);
    slabMeta *m = &s->meta[id];
    if (m->free == m->slots) {
        if (m->where < SLAB_BINS) slabBinRemove(s, c, id);
        slabRetire(s, c, id);
        return;
    }
    unsigned place = binFor(s, c, m);
    if (place == m->where) return;
    if (m->where < SLAB_BINS) slabBinRemove(s, c, id);
    if (place < SLAB_BINS) {
        slabBinInsert(s, c, id, place);
    } else {
        m->where = (uint8_t)place;
    }
}

void slabBinDissolve(slabStore *s, slabClass *c, unsigned bin) {
    hotCheck(bin < SLAB_BINS);
    while (c->bins[bin] != SLAB_NONE) {
        uint32_t id = c->bins[bin];
        slabBinRemove(s, c, id);
        slabFile(s, c, id);
    }
    hotCheck(c->bins[bin] == SLAB_NONE);
}

/* ---- allocating slots ---- */

/* Number of slabs of a class from which on a new one gets all its pages at once: the unused ones
 * are few compared with the memory of the class. */
#define SLAB_FILL_MIN 16

/* Takes a new slab for the class, which is in no bin yet. */
static uint32_t slabCut(slabStore *s, slabClass *c) {
    uint32_t id = slabSpaceTake(s, c->slabs >= SLAB_FILL_MIN);
    if (id == SLAB_NONE) return SLAB_NONE;
    slabMeta *m = &s->meta[id];
    m->bits = memAlloc(c->words * sizeof(uint64_t));
    s->bits_bytes += memSizeOf(m->bits);
    memset(m->bits, 0xFF, c->words * sizeof(uint64_t));
    if (c->slots % 64) m->bits[c->words - 1] = (1ull << c->slots % 64) - 1;
    m->recip = c->recip;
    m->slots = c->slots;
    m->free = c->slots;
    m->class = (uint8_t)(c - s->classes);
    c->free += c->slots;
    c->slabs++;
    slabPoison(slabStart(s, id), SLAB_BYTES);
    return id;
}

/* The slab that provides the next slots. */
static uint32_t slabPick(slabStore *s, slabClass *c) {
    unsigned mask = c->bin_mask;
    if (s->forked) mask &= 1u << SLAB_YOUNG;
    unsigned rich = mask & ~(1u << SLAB_SCARCE);
    if (rich || !s->compacting) mask = rich;
    return mask ? c->bins[__builtin_ctz(mask)] : slabCut(s, c);
}

#ifdef HOSTILE_BUILD
/* In random order, so that tests detect code that relies on reuse of the block freed last. */
static void bitsTake(slabMeta *m, char *start, size_t size, void **slots, uint32_t count) {
    uint32_t words = (m->slots + 63u) / 64;
    while (count) {
        uint32_t i = (uint32_t)randomUniform(words);
        while (!m->bits[i]) i = (i + 1) % words;
        uint64_t word = m->bits[i];
        for (uint64_t skip = randomUniform((uint64_t)__builtin_popcountll(word)); skip; skip--)
            word &= word - 1;
        unsigned bit = (unsigned)__builtin_ctzll(word);
        m->bits[i] &= ~(1ull << bit);
        slots[--count] = start + (i * 64 + bit) * size;
    }
}
#else
/* By address; the lowest one is the last of `slots`, which is used first. */
static void bitsTake(slabMeta *m, char *start, size_t size, void **slots, uint32_t count) {
    uint32_t i = m->first;
    for (;; i++) {
        uint64_t word = m->bits[i];
        char *word_start = start + i * 64 * size;
        while (word && count) {
            slots[--count] = word_start + (size_t)__builtin_ctzll(word) * size;
            word &= word - 1;
        }
        m->bits[i] = word;
        if (!count) break;
    }
    m->first = (uint8_t)i;
}
#endif

uint32_t slabSlotsTake(slabStore *s, slabClass *c, void **slots, uint32_t want) {
    hotCheck(want > 0);
    hotCheck(want <= SLAB_HOT_MAX);
    uint32_t id = slabPick(s, c);
    if (id == SLAB_NONE) return 0;
    slabMeta *m = &s->meta[id];
    uint32_t count = m->free < want ? m->free : want;
    bitsTake(m, slabStart(s, id), c->size, slots, count);
    m->free = (uint16_t)(m->free - count);
    c->free -= count;
    slabFile(s, c, id);
    return count;
}

/* ---- freeing slots ---- */

typedef struct slotPlace {
    uint32_t id, slot;
} slotPlace;

static slotPlace placeOf(const slabStore *s, const void *ptr) {
    hotCheck(slabHas(s, ptr));
    uint32_t id = slabIdOf(s, ptr);
    size_t offset = (size_t)((const char *)ptr - s->base) & (SLAB_BYTES - 1);
    return (slotPlace){id, slabSlotOf(&s->meta[id], offset)};
}

/* These checks detect double frees and wrong pointers or sizes. */
static void slotRelease(slabStore *s, slabClass *c, const void *ptr) {
    slotPlace place = placeOf(s, ptr);
    slabMeta *m = &s->meta[place.id];
    uint32_t i = place.slot / 64;
    uint64_t bit = 1ull << place.slot % 64;
    check(c == &s->classes[m->class]);
    check(place.slot < m->slots);
    check(slabStart(s, place.id) + (size_t)place.slot * c->size == ptr);
    check(!(m->bits[i] & bit));
    m->bits[i] |= bit;
    if (i < m->first) m->first = (uint8_t)i;
    m->free++;
    c->free++;
    if (unlikely(m->free >= m->file_at)) slabFile(s, c, place.id);
}

void slabSlotsRelease(slabStore *s, slabClass *c, void *const *slots, uint32_t count) {
    hotCheck(count > 0);
    /* Two prefetch passes, so that the cache misses of all slots overlap. */
    for (uint32_t i = 0; i < count; i++) prefetchWrite(&s->meta[slabIdOf(s, slots[i])]);
    for (uint32_t i = 0; i < count; i++) {
        slotPlace place = placeOf(s, slots[i]);
        prefetchWrite(&s->meta[place.id].bits[place.slot / 64]);
    }
    for (uint32_t i = 0; i < count; i++) slotRelease(s, c, slots[i]);
}
