/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sizes of blocks of slabAllocExact(). Private to store. Main thread only. */
#ifndef STORE_SLAB_EXACT_H
#define STORE_SLAB_EXACT_H

#include "store/slab_priv.h"

/* Where the blocks of a store are, and how its slabs are described. */
typedef struct slabView {
    const char *base; /* NULL: no store */
    size_t bytes;
    const slabMeta *meta;
} slabView;

/* The store of elements in use. */
extern slabView slab_view;

static inline unsigned slabViewClass(const slabView *view, const void *block) {
    return view->meta[(size_t)((const char *)block - view->base) >> SLAB_SHIFT].class;
}
static inline bool slabViewHas(const slabView *view, const void *block) {
    return (uintptr_t)block - (uintptr_t)view->base < view->bytes;
}
/* The class of a block of any other store, 0 if it has none. */
unsigned slabClassElsewhere(const void *block);

/* The size of a block of slabAllocExact(); 0 for all other blocks. */
static inline size_t slabExactSize(const void *block) {
    unsigned class = likely(slabViewHas(&slab_view, block)) ? slabViewClass(&slab_view, block)
                                                            : slabClassElsewhere(block);
    return likely(class >= SLAB_PLAIN_CLASSES) ? class - SLAB_PLAIN_CLASSES + 1 : 0;
}

#endif
