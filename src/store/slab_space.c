/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reserved range of a slab store: chunks are committed at its end, slabs are taken from them
 * and returned, and the memory of empty slabs is returned to the kernel.
 *
 * Invariant: a slab's bit in its chunk's `unused` is set if and only if `where` is SLAB_UNUSED;
 * `dirty` is a subset. Cost: a bit scan per slab, a system call per chunk or contiguous run of
 * purged slabs. Owner thread only. */
#include "base/map.h"
#include "store/slab_poison.h"
#include "store/slab_priv.h"

#define RESERVE_USUAL ((size_t)1 << 40)
/* Share of a limited address space, leaving the rest to other stores and the allocator. */
#define RESERVE_SHARE 4
#define CHUNK_METAS (SLAB_CHUNK_SLABS * sizeof(slabMeta))

void slabSpaceInit(slabStore *s, size_t reserve_max) {
    size_t reserve = reserve_max ? reserve_max : RESERVE_USUAL;
    reserve = sizeMin(reserve, memReserveLimit() / RESERVE_SHARE);
    for (; reserve >= SLAB_CHUNK_BYTES; reserve /= 2) {
        size_t slab_bytes = reserve / SLAB_CHUNK_BYTES * SLAB_CHUNK_BYTES;
        size_t metas = slab_bytes / SLAB_BYTES;
        size_t meta_bytes = sizeRoundUp(metas * sizeof(slabMeta), SLAB_CHUNK_BYTES);
        s->range = memReserve(meta_bytes + slab_bytes, SLAB_CHUNK_BYTES);
        if (!s->range) continue;
        s->range_bytes = meta_bytes + slab_bytes;
        s->meta = s->range;
        s->base = (char *)s->range + meta_bytes;
        s->bytes_max = slab_bytes;
        slabRootAdd(s->base, slab_bytes);
        return;
    }
}

void slabSpaceClear(slabStore *s) {
    if (!s->range) return;
    size_t chunks_bytes = s->chunk_count * SLAB_CHUNK_BYTES;
    memCount(-(ptrdiff_t)s->meta_open);
    slabRootRemove(s->base, s->bytes_max);
    slabUnpoisonPages(s->base, chunks_bytes);
    memReserveFree(s->range, s->range_bytes);
    memFree(s->chunks);
}

/* Commits the metadata of one more chunk. */
static bool metaOpen(slabStore *s) {
    hotCheck(s->chunk_count * SLAB_CHUNK_BYTES <= s->bytes_max);
    size_t needed = (s->chunk_count + 1) * CHUNK_METAS;
    if (needed <= s->meta_open) return true;
    size_t open = sizeRoundUp(needed, MAP_PAGE);
    if (!memReserveOpen((char *)s->meta + s->meta_open, open - s->meta_open)) return false;
    memCount((ptrdiff_t)(open - s->meta_open));
    s->meta_open = open;
    return true;
}

static bool chunkOpen(slabStore *s) {
    hotCheck(s->chunk_count * SLAB_CHUNK_BYTES <= s->bytes_max);
    size_t end = s->chunk_count * SLAB_CHUNK_BYTES;
    if (end == s->bytes_max) return false;
    if (!metaOpen(s)) return false;
    if (!memReserveOpen(s->base + end, SLAB_CHUNK_BYTES)) return false;
    if (s->chunk_count == s->chunk_cap) {
        s->chunk_cap = s->chunk_cap ? s->chunk_cap * 2 : 8;
        s->chunks = memRealloc(s->chunks, s->chunk_cap * sizeof(slabChunk));
    }
    slabMeta *metas = &s->meta[s->chunk_count * SLAB_CHUNK_SLABS];
    for (unsigned i = 0; i < SLAB_CHUNK_SLABS; i++) metas[i].where = SLAB_UNUSED;
    s->chunks[s->chunk_count++] = (slabChunk){.unused = ~0ull};
    return true;
}

/* Slabs of a chunk that may be taken. While a child exists, dirty ones would copy pages shared with
 * it. */
static uint64_t chunkOffers(const slabStore *s, const slabChunk *k) {
    return s->forked ? k->unused & ~k->dirty : k->unused;
}

uint32_t slabSpaceTake(slabStore *s, bool fill) {
    hotCheck(s->unused_hint <= s->chunk_count);
    while (s->unused_hint < s->chunk_count && !chunkOffers(s, &s->chunks[s->unused_hint]))
        s->unused_hint++;
    if (s->unused_hint == s->chunk_count && !chunkOpen(s)) return SLAB_NONE;
    slabChunk *k = &s->chunks[s->unused_hint];
    uint64_t offers = chunkOffers(s, k);
    if (offers & k->dirty) offers &= k->dirty; /* without page faults */
    unsigned at = (unsigned)__builtin_ctzll(offers);
    uint64_t bit = 1ull << at;
    uint32_t id = s->unused_hint * SLAB_CHUNK_SLABS + at;
    if (k->dirty & bit) {
        s->slabs_dirty--;
    } else if (fill) {
        memReserveFill(slabStart(s, id), SLAB_BYTES);
    }
    k->unused &= ~bit;
    k->dirty &= ~bit;
    s->slabs_in_use++;
    s->meta[id] = (slabMeta){.where = SLAB_UNFILED, .epoch = s->epoch};
    return id;
}

void slabSpaceGive(slabStore *s, uint32_t id) {
    uint32_t at = id / SLAB_CHUNK_SLABS;
    slabChunk *k = &s->chunks[at];
    uint64_t bit = 1ull << id % SLAB_CHUNK_SLABS;
    check(!(k->unused & bit));
    s->meta[id] = (slabMeta){.where = SLAB_UNUSED};
    k->unused |= bit;
    k->dirty |= bit;
    s->slabs_in_use--;
    s->slabs_dirty++;
    if (at >= s->dirty_hint) s->dirty_hint = at + 1;
    if (at < s->unused_hint && !s->forked) s->unused_hint = at;
}

/* Purges up to `max` dirty slabs of a chunk, adjacent ones with one call. */
static uint32_t chunkPurge(slabStore *s, uint32_t at, uint32_t max) {
    hotCheck(at < s->chunk_count);
    hotCheck(max > 0);
    slabChunk *k = &s->chunks[at];
    uint32_t done = 0;
    while (k->dirty && done < max) {
        unsigned first = (unsigned)__builtin_ctzll(k->dirty);
        uint64_t rest = ~(k->dirty >> first);
        unsigned run = rest ? (unsigned)__builtin_ctzll(rest) : 64;
        if (run > max - done) run = max - done;
        memReserveDiscard(slabStart(s, at * SLAB_CHUNK_SLABS + first), run * SLAB_BYTES);
        k->dirty &= ~((run == 64 ? ~0ull : (1ull << run) - 1) << first);
        done += run;
    }
    s->slabs_dirty -= done;
    if (done && at < s->unused_hint) s->unused_hint = at;
    return done;
}

size_t slabSpacePurge(slabStore *s, size_t bytes_max) {
    uint32_t max = (uint32_t)sizeMin(bytes_max / SLAB_BYTES, s->slabs_dirty);
    uint32_t done = 0;
    while (done < max) {
        check(s->dirty_hint > 0);
        done += chunkPurge(s, s->dirty_hint - 1, max - done);
        if (!s->chunks[s->dirty_hint - 1].dirty) s->dirty_hint--;
    }
    return done * SLAB_BYTES;
}
