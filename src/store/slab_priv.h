/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Internals of the slab store, shared by the slab*.c files:
 *
 *   slab.c          interface: blocks, stores, fork window
 *   slab_exact.c    blocks whose size the store knows
 *   slab_compact.c  moving blocks from sparse slabs
 *   slab_remote.c   frees from other threads
 *   slab_report.c   statistics, checking of invariants
 *   slab_hot.c      per-class stacks of free slots
 *   slab_bin.c      slots within slabs, bins of slabs by number of free slots
 *   slab_space.c    slabs within the reserved range, memory of the system
 *
 * Each file calls only those listed below it. */
#ifndef STORE_SLAB_PRIV_H
#define STORE_SLAB_PRIV_H

#include "base/assert.h"
#include "base/bytes.h"
#include "store/slab.h"

/* ---- sizes ---- */

/* 64 KiB. With 32 KiB the minimum memory of half a slab per used class is halved (5 MB with all
 * classes) at the same speed, but size classes from 504 bytes on are coarser. */
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
_Static_assert(SLAB_UNITS / (SLAB_UNITS / SLAB_UNITS_MAX) == SLAB_UNITS_MAX,
               "the last size is a class");
#define SLAB_CHUNK_SLABS 64u
#define SLAB_CHUNK_BYTES (SLAB_CHUNK_SLABS * SLAB_BYTES)
#define SLAB_NONE UINT32_MAX
#define SLAB_MOVE_MAX 32u

/* A number of units is a size class if more slots of it fit in a slab than of the next number. Up
 * to SLAB_LINEAR this is true for all, and the class index is the number of units; above it there
 * is one class for each number of slots. */
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
#define SLAB_PLAIN_CLASSES (SLAB_LINEAR + 2 + SLAB_LINEAR_SLOTS - SLAB_UNITS / SLAB_UNITS_MAX)
/* They are followed by one class for each size of slabAllocExact(), whose slots are multiples of
 * 4. */
#define SLAB_CLASSES (SLAB_PLAIN_CLASSES + SLAB_EXACT_MAX)
#define SLAB_SLOT_MIN 8u
_Static_assert(SLAB_CLASSES <= 256, "slabMeta.class is a byte");

/* Bytes after each block guarded by ASAN; none in other builds. */
#ifdef LEAK_CHECKED
#define SLAB_RED_ZONE 8u
#else
#define SLAB_RED_ZONE 0u
#endif

/* Maximum number of hot slots of a class, and how many are fetched if there are none. */
#define SLAB_HOT_MAX 16u
#ifdef HOSTILE_BUILD
/* Slots are returned immediately and allocated in random order. */
#define SLAB_HOT_LIMIT 0u
#define SLAB_HOT_REFILL 2u
#else
#define SLAB_HOT_LIMIT SLAB_HOT_MAX
#define SLAB_HOT_REFILL 12u
#endif

/* ---- structures ---- */

/* State of a slab. Bins 1 to 8 are ordered by eighths of free slots, so the lowest is the
 * fullest. */
enum {
    SLAB_SCARCE,    /* too few free slots to be visited: left to compaction */
    SLAB_EIGHTH,    /* to SLAB_EIGHTH + 7 */
    SLAB_YOUNG = 9, /* taken after the fork: the only ones used while a child exists */
    SLAB_PINNED,    /* compaction was refused a block in it during this cycle */
    SLAB_BINS,
    SLAB_FULL = 16, /* from here on in no list */
    SLAB_VICTIM,    /* being emptied by compaction */
    SLAB_UNFILED,   /* between two states */
    SLAB_UNUSED,    /* belongs to no class */
};

/* Metadata of one slab. Slot i is free if bit i is set in `bits`. */
typedef struct slabMeta {
    uint64_t *bits;
    uint32_t next, prev; /* in its bin */
    uint32_t recip;      /* maps offsets to slot numbers without a division: slabSlotOf() */
    uint16_t free;       /* number of set bits */
    uint16_t slots;
    uint16_t file_at; /* number of free slots at which a free moves the slab to another bin */
    uint16_t epoch;   /* number of forks when it was taken */
    uint8_t class;
    uint8_t where;
    uint8_t first;     /* words below this one have no set bits */
    uint8_t pinned_in; /* cycle in which a block of it was refused, or 0 */
} slabMeta;
_Static_assert(sizeof(slabMeta) == 32, "two slabs' bookkeeping share a cache line");
_Static_assert(SLAB_UNITS / 64 <= 256, "`first` reaches every word");

/* Fields used by every alloc and free come first: the count and the hot slots, the next one
 * last. */
typedef struct slabClass {
    uint32_t hot_count;
    uint32_t size;
    void *hot[SLAB_HOT_MAX]; /* free, although their bits are clear; last in, first out */
    uint64_t free;           /* set bits of all its slabs */
    uint32_t slabs;
    uint32_t recip;
    uint16_t slots, words, scarce;
    uint16_t bin_mask; /* bit b: bins[b] is not empty */
    uint32_t bins[SLAB_BINS];
} ALIGNED(CACHE_LINE) slabClass;

/* SLAB_CHUNK_SLABS adjacent slabs, committed together. */
typedef struct slabChunk {
    uint64_t unused; /* slabs that belong to no class */
    uint64_t dirty;  /* unused slabs that may still have memory */
} slabChunk;

struct slabStore {
    char *base; /* start of the slabs; the metadata precedes them in the same range */
    size_t bytes_max;
    slabMeta *meta;
    /* SLAB_HOT_LIMIT; 0 while a child exists, when reusing a slot costs a page copy. */
    uint32_t hot_limit;
    uint16_t epoch;
    bool forked;
    bool compacting;   /* also allocate from scarce slabs */
    bool cycle_active; /* from the first slabCompact() of a cycle to the last */
    bool is_listed;    /* slabExactSize() finds its blocks */
    uint8_t cycle;     /* number of the cycle, 1 to 255 */
    uint32_t victim, victim_pos;
    slabChunk *chunks;
    uint32_t chunk_count, chunk_cap;
    uint32_t unused_hint; /* no chunk below has unused slabs */
    uint32_t dirty_hint;  /* no chunk from here on has dirty ones */
    uint32_t slabs_in_use, slabs_dirty;
    size_t meta_open;  /* committed bytes of `meta` */
    size_t bits_bytes; /* total size of the bitmaps */
    void *range;       /* the reserved range; NULL if there is none */
    size_t range_bytes;
    struct slabStore *next_idle;                  /* of the stores that are not in use */
    struct slabBatch *arrived;                    /* remote frees already fetched */
    ALIGNED(CACHE_LINE) struct slabBatch *remote; /* pushed by other threads */
    slabClass classes[SLAB_CLASSES];
};

/* ---- queries ---- */

static inline uint32_t slabIdOf(const slabStore *s, const void *ptr) {
    return (uint32_t)((size_t)((const char *)ptr - s->base) >> SLAB_SHIFT);
}
static inline char *slabStart(const slabStore *s, uint32_t id) {
    return s->base + ((size_t)id << SLAB_SHIFT);
}
static inline bool slabHas(const slabStore *s, const void *ptr) {
    return (uintptr_t)ptr - (uintptr_t)s->base < s->bytes_max;
}

/* Number of the slot at an offset in a slab. */
static inline uint32_t slabSlotOf(const slabMeta *m, size_t offset) {
    return (uint32_t)((uint64_t)(offset / 4) * m->recip >> 31);
}
/* For slots of `size` bytes. */
static inline uint32_t slabReciprocal(uint32_t size) {
    return (uint32_t)(((1ull << 31) + size / 4 - 1) / (size / 4));
}

/* Index of the class for blocks of `size` <= SLAB_SIZE_MAX - SLAB_RED_ZONE. */
static inline uint32_t slabClassOf(size_t size) {
    uint32_t units = (uint32_t)(size + SLAB_RED_ZONE + 7) / 8;
    if (likely(units <= SLAB_LINEAR)) return units;
    return SLAB_LINEAR + 1 + SLAB_LINEAR_SLOTS - SLAB_UNITS / units;
}

/* The same for blocks of slabAllocExact(). */
static inline uint32_t slabExactClassOf(size_t size) {
    return SLAB_PLAIN_CLASSES - 1 + (uint32_t)size;
}
static inline uint32_t slabExactSlot(size_t size) {
    uint32_t slot = (uint32_t)(size + SLAB_RED_ZONE + 3) & ~3u;
    return slot < SLAB_SLOT_MIN ? SLAB_SLOT_MIN : slot;
}

static inline slabClass *slabClassAt(slabStore *s, uint32_t id) {
    return &s->classes[s->meta[id].class];
}
static inline uint64_t slabClassLive(const slabClass *c) {
    return (uint64_t)c->slabs * c->slots - c->free - c->hot_count;
}
/* Number of slabs the class would save if it were packed. */
static inline uint32_t slabClassExcess(const slabClass *c) {
    return c->slabs - (uint32_t)((slabClassLive(c) + c->slots - 1) / c->slots);
}

/* ---- slab_space.c ---- */

/* Reserves the range; without address space the store remains empty. */
void slabSpaceInit(slabStore *s, size_t reserve_max);
void slabSpaceClear(slabStore *s);
/* Takes a slab for a class, with zeroed metadata; SLAB_NONE if there is no memory. `fill`: make all
 * its pages resident, because the class will soon use them. */
uint32_t slabSpaceTake(slabStore *s, bool fill);
void slabSpaceGive(slabStore *s, uint32_t id);
size_t slabSpacePurge(slabStore *s, size_t bytes_max);

/* ---- slab_bin.c ---- */

void slabBinRemove(slabStore *s, slabClass *c, uint32_t id);
void slabBinInsert(slabStore *s, slabClass *c, uint32_t id, unsigned bin);
/* Moves a slab to the bin for its number of free slots; an empty one is returned to the range. */
void slabFile(slabStore *s, slabClass *c, uint32_t id);
/* Re-files all slabs of a bin. */
void slabBinDissolve(slabStore *s, slabClass *c, unsigned bin);
/* Takes up to `want` slots of one slab, the fullest that is not scarce; 0 if there is no memory. */
uint32_t slabSlotsTake(slabStore *s, slabClass *c, void **slots, uint32_t want);
/* Frees slots of one class in their bitmaps. */
void slabSlotsRelease(slabStore *s, slabClass *c, void *const *slots, uint32_t count);

/* ---- slab_hot.c ---- */

/* Fetches slots for a class whose stack is empty; false if there is no memory. */
bool slabHotRefill(slabStore *s, slabClass *c);
/* Frees a slot when the stack is full, or disabled. */
void slabHotOverflow(slabStore *s, slabClass *c, void *ptr);
/* Returns the `count` oldest hot slots to their slabs. */
void slabHotFlush(slabStore *s, slabClass *c, uint32_t count);

/* Takes a slot, not counted as used; NULL if there is no memory. */
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

/* ---- slab_exact.c ---- */

/* The store of elements in use is `s`, NULL if there is none. */
void slabExactUse(slabStore *s);
/* The store is about to be freed. ANY_THREAD that owns it. */
void slabExactForget(slabStore *s);

/* ---- slab_remote.c ---- */

/* Drops submitted batches. */
void slabRemoteClear(slabStore *s);

#endif
