/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: statistics for DEBUG HTSTATS, and a check of all invariants for tests. Both walk the
 * whole table. Not thread-safe. */
#include "ds/hashtable.h"

#include "ds/hashtable_private.h"

/* One side of a table as a region from `start` on; returns false if there is no such side. */
static bool regionOfSide(const hashtable *t, const hashtableType *type, unsigned side,
                         tableScale *small_scale, tableRegion *r, uint64_t *start) {
    *start = 0;
    if (!t->body) return false;
    if (!tableIsBig(t)) {
        if (side == 0) return false;
        *r = smallRegion(tableAsSmall(t), type, small_scale);
        return true;
    }
    tableBig *g = tableAsBig(t);
    if (side == 0 && g->bound == 0) return false;
    *r = bigRegion(g, type, side ? UINT64_MAX : 0);
    if (side == 1 && g->bound != 0) *start = g->limit;
    return true;
}

void hashtableStatsRead(const hashtable *t, const hashtableType *type, hashtableStats *out) {
    *out = (hashtableStats){.resize_position = -1};
    out->count = hashtableCount(t);
    out->volatile_count = hashtableVolatileCount(t);
    out->bytes = hashtableBytes(t);
    out->buckets = tableBuckets(t).count;
    out->slots = out->buckets * BUCKET_WORDS;
    if (tableIsBig(t)) {
        const tableBig *g = tableAsBig(t);
        unsigned now = g->state != RESIZE_GROW;
        out->slots = g->scales[now].bucket_count * BUCKET_WORDS;
        if (g->state != RESIZE_NONE) {
            out->resize_position = (int64_t)g->resize_at;
            out->resize_slots = g->scales[!now].bucket_count * BUCKET_WORDS;
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        tableScale small_scale;
        tableRegion r;
        uint64_t at;
        if (!regionOfSide(t, type, side, &small_scale, &r, &at)) continue;
        for (; at < r.limit; at++) {
            const tableBucket *b = &r.buckets[at];
            uint64_t last = scaleLastUnit(r.sc, at);
            for (unsigned used = bucketUsed(b); used; used &= used - 1) {
                uint64_t word = b->word[__builtin_ctz(used)];
                uint64_t home = scaleUnitHome(r.sc, last - regionDistance(&r, last, word));
                uint64_t probe = at - home;
                out->probes[probe < HASHTABLE_PROBES_MAX ? probe : HASHTABLE_PROBES_MAX - 1]++;
            }
        }
    }
}

/* State of a verification. */
typedef struct verifyState {
    const hashtable *table;
    tableRegion region;
    unsigned side;
    uint64_t start;    /* of the region */
    uint64_t unit_max; /* greatest unit in the buckets before this one */
    uint64_t count;
    fenwick volatiles; /* counted again, by the blocks of the table's own index */
    uint64_t volatile_count, volatile_next_count;
} verifyState;

static const char *verifyWord(verifyState *v, uint64_t at, unsigned index, uint64_t *greatest,
                              unsigned *displaced) {
    const tableRegion *r = &v->region;
    uint64_t word = r->buckets[at].word[index], last = scaleLastUnit(r->sc, at);
    uint64_t hash = r->type->hash_of(wordEntryOfType(word, r->type)), unit = scaleUnit(r->sc, hash);
    uint64_t home = scaleHome(r->sc, hash);
    if (tableIsBig(v->table)) {
        const tableBig *g = tableAsBig(v->table);
        if ((hash >= g->bound) != v->side) return "an entry on the wrong side of the resize";
        if (word & HASHTABLE_VOLATILE) {
            if (!g->volatiles) return "a volatile entry without an index";
            fenwickAdd(&v->volatiles, volatileBlock(g->volatiles, hash), 1);
            v->volatile_next_count += v->side == (g->state == RESIZE_GROW);
        }
    }
    v->count++;
    v->volatile_count += word & HASHTABLE_VOLATILE;
    if ((word & WORD_ENTRY) == 0) return "a word without an entry";
    if (index < BUCKET_WORDS - 1 && (word & WORD_OVERFLOW)) return "a stray overflow bit";
    if (home > at) return "an entry before its home";
    if (wordTag(word) != scaleTag(r->sc, hash)) return "a wrong tag";
    if (last - regionDistance(r, last, word) != unit) return "a unit that cannot be recovered";
    if (unit < v->unit_max) return "entries out of order";
    if (unit > *greatest) *greatest = unit;
    *displaced += home < at;
    return NULL;
}

static const char *verifyBucket(verifyState *v, uint64_t at) {
    const tableRegion *r = &v->region;
    const tableBucket *b = &r->buckets[at];
    uint64_t greatest = v->unit_max, last = scaleLastUnit(r->sc, at);
    unsigned displaced = 0;
    if (at + 1 < r->sc->bucket_count) {
        if (scaleUnitHome(r->sc, last) > at) return "a last unit beyond its bucket";
        if (scaleUnitHome(r->sc, last + 1) <= at) return "a last unit that is not the last";
    }
    for (unsigned used = bucketUsed(b); used; used &= used - 1) {
        const char *wrong = verifyWord(v, at, (unsigned)__builtin_ctz(used), &greatest, &displaced);
        if (wrong) return wrong;
    }
    bool before_overflows = at > v->start && bucketOverflows(b - 1);
    if (before_overflows != (displaced > 0)) return "an overflow bit that does not tell the truth";
    if (displaced && bucketFree(b - 1)) return "a gap before a displaced entry";
    v->unit_max = greatest;
    return NULL;
}

static const char *verifySide(verifyState *v) {
    tableScale small_scale;
    if (!regionOfSide(v->table, v->region.type, v->side, &small_scale, &v->region, &v->start)) {
        return NULL;
    }
    v->unit_max = 0;
    for (uint64_t at = v->start; at < v->region.limit; at++) {
        const char *wrong = verifyBucket(v, at);
        if (wrong) return wrong;
    }
    if (v->region.limit > v->start && bucketOverflows(&v->region.buckets[v->region.limit - 1])) {
        return "an overflow out of its region";
    }
    return NULL;
}

static const char *verifyCounts(const verifyState *v) {
    if (v->count != hashtableCount(v->table)) return "a wrong count";
    if (v->volatile_count != hashtableVolatileCount(v->table)) return "a wrong volatile count";
    if (!tableIsBig(v->table)) return NULL;
    const tableBig *g = tableAsBig(v->table);
    if (!resizeMoves(g) && g->bound != 0) return "a bound without a resize";
    if (!resizeMoves(g) && g->volatiles_next) return "a second index without a resize";
    if (g->volatiles_next && g->volatiles_next->counts.total != v->volatile_next_count) {
        return "a second index that does not count what was moved";
    }
    for (size_t i = 0; g->volatiles && i < v->volatiles.count; i++) {
        if (fenwickGet(&v->volatiles, i) != fenwickGet(&g->volatiles->counts, i)) {
            return "a wrong count of a block";
        }
    }
    return NULL;
}

const char *hashtableVerify(const hashtable *t, const hashtableType *type) {
    verifyState v = {.table = t, .region.type = type};
    const volatileIndex *index = tableIsBig(t) ? tableAsBig(t)->volatiles : NULL;
    if (index) fenwickInit(&v.volatiles, (size_t)1 << index->bits);
    const char *wrong = NULL;
    for (v.side = 0; v.side < 2 && !wrong; v.side++) wrong = verifySide(&v);
    if (!wrong) wrong = verifyCounts(&v);
    if (index) fenwickClear(&v.volatiles);
    return wrong;
}
