/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slab store: allocating and freeing blocks, creating and freeing stores, fork window (interface:
 * slab.h; overview of files: slab_priv.h).
 *
 * Invariant: for each class, live blocks + free bits + hot slots = slabs x slots per slab. Nothing
 * else is counted per block, because every store instruction in alloc or free delays the owner's
 * stores that miss the cache. Cost: alloc pops the class's stack of hot slots, free pushes; about
 * one call in ten moves slots between stack and bitmaps. Owner thread only. */
#include "base/map.h"
#include "store/slab_poison.h"
#include "store/slab_priv.h"

static slabPair used;
static unsigned forked_stores; /* atomic: stores may be freed by any thread */
static slabStore *idle;        /* list of the stores of other keyspaces */

/* ---- blocks ---- */

ALWAYS_INLINE void *allocFrom(slabStore *s, size_t size) {
    if (unlikely(size > SLAB_SIZE_MAX - SLAB_RED_ZONE)) return memAlloc(memGoodSize(size));
    slabClass *c = &s->classes[slabClassOf(size)];
    void *ptr = slabSlotTake(s, c);
    if (unlikely(!ptr)) return memAlloc(c->size); /* the size that slabSameClass() assumes */
    memCount((ptrdiff_t)c->size);
    memNoteAllocation();
    slabUnpoison(ptr, c->size);
    return ptr;
}

/* The store of a keyspace not in use that owns a block, NULL when there is none. */
static NO_INLINE slabStore *idleStoreOf(const void *ptr) {
    slabStore *s = idle;
    while (s && !slabHas(s, ptr)) s = s->next_idle;
    return s;
}

ALWAYS_INLINE void freeIn(slabStore *s, slabClass *c, void *ptr) {
    hotCheck(c == slabClassAt(s, slabIdOf(s, ptr)));
    memCount(-(ptrdiff_t)c->size);
    slabPoison(ptr, c->size);
    slabSlotGive(s, c, ptr);
}

/* The store that a block is freed to, `s` or another one. NULL: the block is not in a slab, and is
 * freed. */
ALWAYS_INLINE slabStore *storeToFree(slabStore *s, void *ptr) {
    if (likely(slabHas(s, ptr))) return s;
    s = idle ? idleStoreOf(ptr) : NULL;
    if (!s) memFree(ptr);
    return s;
}

ALWAYS_INLINE void freeTo(slabStore *s, void *ptr, size_t size) {
    s = storeToFree(s, ptr);
    if (s) freeIn(s, &s->classes[slabClassOf(size)], ptr);
}

void *slabAllocFrom(slabStore *s, size_t size) { return allocFrom(s, size); }

void slabFreeTo(slabStore *s, void *ptr, size_t size) { freeTo(s, ptr, size); }

void slabFreeAny(slabStore *s, void *ptr) {
    s = storeToFree(s, ptr);
    if (s) freeIn(s, slabClassAt(s, slabIdOf(s, ptr)), ptr);
}

bool slabOwns(const slabStore *s, const void *ptr) { return slabHas(s, ptr); }

/* ---- classes ---- */

static uint32_t classUnits(uint32_t index) {
    hotCheck(index < SLAB_PLAIN_CLASSES);
    if (index <= SLAB_LINEAR) return index ? index : 1;
    return SLAB_UNITS / (SLAB_LINEAR + 1 + SLAB_LINEAR_SLOTS - index);
}

size_t slabClassSize(size_t size) {
    if (size > SLAB_SIZE_MAX - SLAB_RED_ZONE) return memGoodSize(size);
    return classUnits(slabClassOf(size)) * 8;
}

size_t slabUsableSize(size_t size) {
    if (size > SLAB_SIZE_MAX - SLAB_RED_ZONE) return memGoodSize(size);
    return classUnits(slabClassOf(size)) * 8 - SLAB_RED_ZONE;
}

bool slabSameClass(size_t a, size_t b) {
    const size_t max = SLAB_SIZE_MAX - SLAB_RED_ZONE;
    if (a > max || b > max) return a > max && b > max && memGoodSize(a) == memGoodSize(b);
    return slabClassOf(a) == slabClassOf(b);
}

static void classInit(slabClass *c, uint32_t index) {
    if (index < SLAB_PLAIN_CLASSES) {
        c->size = classUnits(index) * 8;
    } else {
        c->size = slabExactSlot(index - SLAB_PLAIN_CLASSES + 1);
    }
    c->slots = (uint16_t)(SLAB_BYTES / c->size);
    c->words = (uint16_t)((c->slots + 63) / 64);
    c->recip = slabReciprocal(c->size);
    c->scarce = (uint16_t)(c->slots / 64 + (c->slots < 64));
    for (unsigned bin = 0; bin < SLAB_BINS; bin++) c->bins[bin] = SLAB_NONE;
    hotCheck(c->size >= SLAB_SLOT_MIN);
    hotCheck(c->slots > 0);
}

/* ---- stores ---- */

#define STORE_BYTES sizeRoundUp(sizeof(slabStore), MAP_PAGE)

slabStore *slabStoreNew(size_t reserve_max) {
    slabStore *s = memMap(STORE_BYTES, MAP_PAGE);
    s->hot_limit = SLAB_HOT_LIMIT;
    s->victim = SLAB_NONE;
    s->cycle = 1;
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++)
        classInit(c, (uint32_t)(c - s->classes));
    slabSpaceInit(s, reserve_max);
    return s;
}

void slabStoreFree(slabStore *s) {
    if (!s) return;
    slabExactForget(s);
    /* Any thread may free a store that was given away while a child lived. */
    if (s->forked) __atomic_sub_fetch(&forked_stores, 1, __ATOMIC_RELAXED);
    slabRemoteClear(s);
    size_t live = 0;
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++)
        live += slabClassLive(c) * c->size;
    memCount(-(ptrdiff_t)live);
    for (uint32_t id = 0; id < s->chunk_count * SLAB_CHUNK_SLABS; id++) memFree(s->meta[id].bits);
    slabSpaceClear(s);
    memUnmap(s, STORE_BYTES);
}

slabStore *slabKeyspace(void) {
    if (unlikely(!used.objects)) used.objects = slabStoreNew(0);
    return used.objects;
}

slabStore *slabKeyspaceTake(void) {
    slabStore *taken = used.objects;
    used.objects = NULL;
    return taken;
}

slabStore *slabElements(void) {
    if (unlikely(!used.elements)) {
        used.elements = slabStoreNew(0);
        slabExactUse(used.elements);
    }
    return used.elements;
}

slabStore *slabElementsTake(void) {
    slabStore *taken = used.elements;
    used.elements = NULL;
    slabExactUse(NULL);
    return taken;
}

static void addIdle(slabStore *s) {
    if (!s) return;
    s->next_idle = idle;
    idle = s;
}

static void removeIdle(slabStore *s) {
    if (!s) return;
    slabStore **link = &idle;
    while (*link && *link != s) link = &(*link)->next_idle;
    if (*link) *link = s->next_idle; /* a new pair was in no list */
}

slabPair slabUse(slabPair pair) {
    slabPair before = used;
    addIdle(before.objects);
    addIdle(before.elements);
    slabDisown(pair);
    used = pair;
    slabExactUse(used.elements);
    return before;
}

void slabDisown(slabPair pair) {
    removeIdle(pair.objects);
    removeIdle(pair.elements);
}

void *slabAlloc(size_t size) { return allocFrom(slabKeyspace(), size); }

void slabFree(void *ptr, size_t size) { freeTo(slabKeyspace(), ptr, size); }

size_t slabPurge(slabStore *s, size_t bytes_max) {
    /* Hot slots keep their slabs from becoming empty. */
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++) {
        if (c->hot_count && slabClassLive(c) == 0) slabHotFlush(s, c, SLAB_HOT_MAX);
    }
    return slabSpacePurge(s, bytes_max);
}

/* ---- fork ---- */

void slabForkBegin(slabStore *s) {
    check(!s->forked);
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++)
        slabHotFlush(s, c, SLAB_HOT_MAX);
    s->epoch++;
    s->forked = true;
    __atomic_add_fetch(&forked_stores, 1, __ATOMIC_RELAXED);
    s->hot_limit = 0;
}

void slabForkEnd(slabStore *s) {
    if (!s->forked) return; /* created after the fork */
    s->forked = false;
    __atomic_sub_fetch(&forked_stores, 1, __ATOMIC_RELAXED);
    s->hot_limit = SLAB_HOT_LIMIT;
    s->unused_hint = 0;
    for (slabClass *c = s->classes; c < s->classes + SLAB_CLASSES; c++)
        slabBinDissolve(s, c, SLAB_YOUNG);
    hotCheck(!s->forked);
}

bool slabForkActive(const slabStore *s) { return s->forked; }

bool slabAnyForked(void) { return __atomic_load_n(&forked_stores, __ATOMIC_RELAXED) > 0; }
