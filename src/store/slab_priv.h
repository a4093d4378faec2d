/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of the slab store, shared by the slab*.c files:
 *
 *   slab.c          the face: blocks in and out, life of a store, fork window
 *   slab_compact.c  moving blocks together
 *   slab_remote.c   frees from other threads
 *   slab_report.c   statistics, invariants
 *   slab_hot.c      dead slots at hand, for each class
 *   slab_bin.c      slots in and out of slabs, and where a slab is filed by how full it is
 *   slab_space.c    slabs in and out of the reserved range, and of the system's memory
 *
 * Each file calls only those below it. */
#ifndef STORE_SLAB_PRIV_H
#define STORE_SLAB_PRIV_H

#include "base/assert.h"
#include "base/bytes.h"
#include "store/slab.h"

/* ---- sizes ---- */

/* 64 KiB. With 32, the floor of half a slab per class in use is half as high (5 MB with all classes)
 * and speed the same, but sizes from 504 bytes on have coarser classes. */
#ifndef SLAB_SHIFT
#ifdef HOSTILE_BUILD
#define SLAB_SHIFT 13
#else
#define SLAB_SHIFT 16
#endif
#endif
#define SLAB_BYTES ((size_t)1 << SLAB_SHIFT)
/* Sizes are counted in units of 8 bytes. */
#define SLAB_UNITS ((uint32_t)(SLAB_BYTES / 8))
#define SLAB_UNITS_MAX ((uint32_t)(SLAB_SIZE_MAX / 8))
#define SLAB_CHUNK_SLABS 64u
#define SLAB_CHUNK_BYTES (SLAB_CHUNK_SLABS * SLAB_BYTES)
#define SLAB_NONE UINT32_MAX
#define SLAB_MOVE_MAX 32u

/* A number of units is a size class if one more slot of it fits into a slab than of the next. All are
 * up to SLAB_LINEAR, where the class's index is the number of units; above it there is one class for
 * each number of slots. */
#if SLAB_SHIFT == 16
#define SLAB_LINEAR 90u
#elif SLAB_SHIFT == 15
#define SLAB_LINEAR 63u
#elif SLAB_SHIFT == 14
#define SLAB_LINEAR 44u
#elif SLAB_SHIFT == 13
#define SLAB_LINEAR 31u
#endif
_Static_assert(SLAB_LINEAR *(SLAB_LINEAR + 1) <= SLAB_UNITS, "neighbours differ by a slot");
_Static_assert((SLAB_LINEAR + 1) * (SLAB_LINEAR + 2) > SLAB_UNITS, "no multiple is left out");
#define SLAB_LINEAR_SLOTS (SLAB_UNITS / (SLAB_LINEAR + 1))
#define SLAB_CLASSES (SLAB_LINEAR + 2 + SLAB_LINEAR_SLOTS - SLAB_UNITS / SLAB_UNITS_MAX)

/* Bytes behind each block that ASAN shall guard; none in other builds. */
#ifdef LEAK_CHECKED
#define SLAB_RED_ZONE 8u
#else
#define SLAB_RED_ZONE 0u
#endif

/* Most dead slots a class keeps at hand, and how many it fetches when it has none. */
#define SLAB_HOT_MAX 16u
#ifdef HOSTILE_BUILD
/* Slots go back at once, and are dealt out in another order. */
#define SLAB_HOT_LIMIT 0u
#define SLAB_HOT_REFILL 2u
#else
#define SLAB_HOT_LIMIT SLAB_HOT_MAX
#define SLAB_HOT_REFILL 12u
#endif

/* ---- structures ---- */

/* Where a slab is. Bins 1 to 8 are ordered by free eighths, so the lowest is the fullest. */
enum {
    SLAB_SCARCE,    /* too few holes to be worth a visit: left to compaction */
    SLAB_EIGHTH,    /* to SLAB_EIGHTH + 7 */
    SLAB_YOUNG = 9, /* taken after the fork: the only ones given out while a child lives */
    SLAB_PINNED,    /* compaction was refused a block here in this cycle */
    SLAB_BINS,
    SLAB_FULL = 16, /* from here on in no list */
    SLAB_VICTIM,    /* being emptied by compaction */
    SLAB_UNFILED,   /* between two places */
    SLAB_UNUSED,    /* belongs to no class */
};

/* One slab. Slot i is free when bit i is set in `bits`. */
typedef struct slabMeta {
    uint64_t *bits;
    uint32_t next, prev; /* of its bin */
    uint32_t recip;      /* ceil(2^31 / units): offset to slot number without a division */
    uint16_t free;       /* set bits */
    uint16_t slots;
    uint16_t file_at; /* a free that reaches this many free slots files the slab anew */
    uint16_t epoch;   /* number of forks when it was taken */
    uint8_t class;
    uint8_t where;
    uint8_t first;     /* no word below this one has set bits */
    uint8_t pinned_in; /* cycle that was refused a block in it, or 0 */
} slabMeta;
_Static_assert(sizeof(slabMeta) == 32, "two slabs' bookkeeping share a cache line");
_Static_assert(SLAB_UNITS / 64 <= 256, "`first` reaches every word");

/* What alloc and free touch lies at the front: the count and the hot slots, next in line last. */
typedef struct slabClass {
    uint32_t hot_count;
    uint32_t size;
    void *hot[SLAB_HOT_MAX]; /* dead, though their bits say taken; freed last, given out first */
    uint64_t free;           /* set bits of all its slabs */
    uint32_t slabs;
    uint32_t recip;
    uint16_t slots, words, scarce;
    uint16_t bin_mask; /* bit b: bins[b] is not empty */
    uint32_t bins[SLAB_BINS];
} ALIGNED(CACHE_LINE) slabClass;

/* SLAB_CHUNK_SLABS neighbours, opened together. */
typedef struct slabChunk {
    uint64_t unused; /* slabs no class owns */
    uint64_t dirty;  /* unused ones that may still hold pages */
} slabChunk;

struct slabStore {
    char *base; /* of the slabs; the bookkeeping lies before it, in the same range */
    size_t bytes_max;
    slabMeta *meta;
    uint32_t hot_limit; /* SLAB_HOT_LIMIT; 0 while a child lives: a hole costs a page */
    uint16_t epoch;
    bool forked;
    bool compacting;   /* scarce slabs take blocks too */
    bool cycle_active; /* from a cycle's first slabCompact() to its last */
    uint8_t cycle;     /* its number, 1 to 255 */
    uint32_t victim, victim_pos;
    slabChunk *chunks;
    uint32_t chunk_count, chunk_cap;
    uint32_t unused_hint; /* no chunk below has unused slabs */
    uint32_t dirty_hint;  /* no chunk from here on has dirty ones */
    uint32_t slabs_in_use, slabs_dirty;
    size_t meta_open;  /* bytes of `meta` */
    size_t bits_bytes; /* of all bitmaps */
    void *range;       /* as reserved; NULL when the system had none */
    size_t range_bytes;
    struct slabStore *next_idle;                  /* of the stores that are not in use */
    struct slabBatch *arrived;                    /* remote frees already fetched */
    ALIGNED(CACHE_LINE) struct slabBatch *remote; /* pushed by other threads */
    slabClass classes[SLAB_CLASSES];
};

/* ---- small questions ---- */

static inline uint32_t slabIdOf(const slabStore *s, const void *ptr) {
    return (uint32_t)((size_t)((const char *)ptr - s->base) >> SLAB_SHIFT);
}
static inline char *slabStart(const slabStore *s, uint32_t id) {
    return s->base + ((size_t)id << SLAB_SHIFT);
}
static inline bool slabHas(const slabStore *s, const void *ptr) {
    return (uintptr_t)ptr - (uintptr_t)s->base < s->bytes_max;
}

/* Index of the class that blocks of `size` <= SLAB_SIZE_MAX - SLAB_RED_ZONE belong to. */
static inline uint32_t slabClassOf(size_t size) {
    uint32_t units = (uint32_t)(size + SLAB_RED_ZONE + 7) / 8;
    if (likely(units <= SLAB_LINEAR)) return units;
    return SLAB_LINEAR + 1 + SLAB_LINEAR_SLOTS - SLAB_UNITS / units;
}

static inline slabClass *slabClassAt(slabStore *s, uint32_t id) {
    return &s->classes[s->meta[id].class];
}
static inline uint64_t slabClassLive(const slabClass *c) {
    return (uint64_t)c->slabs * c->slots - c->free - c->hot_count;
}
/* Slabs the class could do without if it were packed. */
static inline uint32_t slabClassExcess(const slabClass *c) {
    return c->slabs - (uint32_t)((slabClassLive(c) + c->slots - 1) / c->slots);
}

/* ---- slab_space.c ---- */

/* Sets up the range; without address space the store stays empty. */
void slabSpaceInit(slabStore *s, size_t reserve_max);
void slabSpaceClear(slabStore *s);
/* A slab for the caller's class, its bookkeeping zeroed; SLAB_NONE when there is no memory. */
uint32_t slabSpaceTake(slabStore *s);
void slabSpaceGive(slabStore *s, uint32_t id);
size_t slabSpacePurge(slabStore *s, size_t bytes_max);

/* ---- slab_bin.c ---- */

void slabBinRemove(slabStore *s, slabClass *c, uint32_t id);
void slabBinInsert(slabStore *s, slabClass *c, uint32_t id, unsigned bin);
/* Puts a slab where its free count says, an empty one back into the range. */
void slabFile(slabStore *s, slabClass *c, uint32_t id);
/* Files all slabs of a bin anew. */
void slabBinDissolve(slabStore *s, slabClass *c, unsigned bin);
/* Takes up to `want` slots of one slab, the fullest that is not scarce; 0 when there is no memory. */
uint32_t slabSlotsTake(slabStore *s, slabClass *c, void **slots, uint32_t want);
/* Frees slots of one class in their bitmaps. */
void slabSlotsRelease(slabStore *s, slabClass *c, void *const *slots, uint32_t count);

/* ---- slab_hot.c ---- */

/* Fetches slots for a class whose stack is empty; false when there is no memory. */
bool slabHotRefill(slabStore *s, slabClass *c);
/* Takes a slot that finds the stack full, or closed. */
void slabHotOverflow(slabStore *s, slabClass *c, void *ptr);
/* Puts the `count` coldest of the hot slots back into their slabs. */
void slabHotFlush(slabStore *s, slabClass *c, uint32_t count);

/* One slot, not counted as used; NULL when there is no memory. */
ALWAYS_INLINE void *slabSlotTake(slabStore *s, slabClass *c) {
    if (unlikely(c->hot_count == 0) && !slabHotRefill(s, c)) return NULL;
    return c->hot[--c->hot_count];
}

ALWAYS_INLINE void slabSlotGive(slabStore *s, slabClass *c, void *ptr) {
    for (uint32_t i = 0; i < c->hot_count; i++) hotCheck(c->hot[i] != ptr);
    if (unlikely(c->hot_count >= s->hot_limit)) {
        slabHotOverflow(s, c, ptr);
        return;
    }
    c->hot[c->hot_count++] = ptr;
}

/* ---- slab_remote.c ---- */

/* Drops what has arrived. */
void slabRemoteClear(slabStore *s);

#endif
