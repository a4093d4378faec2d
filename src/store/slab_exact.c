/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks whose size the store knows: each size has a class of its own, so the class of the slab
 * tells it. Elements are read without knowing their store; most are in the one in use.
 *
 * Invariant: a store with such blocks is in `stores` until it is freed. Owner thread only, except
 * for slabExactForget(). */
#include "store/slab_exact.h"
#include "store/slab_poison.h"

/* More than are in use at any time: those of two keyspaces, and those that are being freed. */
enum { STORES_MAX = 16 };

/* An entry is free if its base (atomic) is NULL; only the main thread uses a free one. */
static slabView stores[STORES_MAX];
slabView slab_view;

NO_INLINE unsigned slabClassElsewhere(const void *block) {
    for (slabView *v = stores; v < stores + STORES_MAX; v++) {
        if (__atomic_load_n(&v->base, __ATOMIC_ACQUIRE) && slabViewHas(v, block))
            return slabViewClass(v, block);
    }
    return 0;
}

/* Adds a store to the list, unless that is full or the store has no range. */
static void listStore(slabStore *s) {
    hotCheck(!s->is_listed);
    slabView *v = stores;
    while (v < stores + STORES_MAX && __atomic_load_n(&v->base, __ATOMIC_ACQUIRE)) v++;
    if (v == stores + STORES_MAX || !s->range) return;
    v->bytes = s->bytes_max;
    v->meta = s->meta;
    __atomic_store_n(&v->base, s->base, __ATOMIC_RELEASE);
    s->is_listed = true;
}

void slabExactUse(slabStore *s) {
    if (s && !s->is_listed) listStore(s);
    slab_view = (slabView){NULL, 0, NULL};
    if (s && s->is_listed) slab_view = (slabView){s->base, s->bytes_max, s->meta};
}

void slabExactForget(slabStore *s) {
    if (!s->is_listed) return;
    slabView *v = stores;
    while (__atomic_load_n(&v->base, __ATOMIC_ACQUIRE) != s->base) v++;
    check(v < stores + STORES_MAX);
    __atomic_store_n(&v->base, NULL, __ATOMIC_RELEASE);
    s->is_listed = false;
}

void *slabAllocExact(slabStore *s, size_t size) {
    hotCheck(size > 0);
    if (size > SLAB_EXACT_MAX) return NULL;
    /* Else the block with a length takes as much, and needs no class of its own. */
    if (((size + 3) & ~(size_t)3) >= ((size + 8) & ~(size_t)7)) return NULL;
    if (unlikely(!s->is_listed)) return NULL;
    slabClass *c = &s->classes[slabExactClassOf(size)];
    void *ptr = slabSlotTake(s, c);
    if (unlikely(!ptr)) return NULL;
    memCount((ptrdiff_t)c->size);
    memNoteAllocation();
    slabUnpoison(ptr, c->size);
    return ptr;
}
