/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lookups in a hashtable with the match function inlined, for the hot path, where an indirect call
 * per lookup is measurable. Other code uses ds/hashtable.h.
 *
 * Lookups of a batch run in steps, so that their cache misses overlap: hashtableInlinePrefetch()
 * for each, then hashtableInlinePrefetchEntry() for each, then hashtableInlineFind() for each. */
#ifndef DS_HASHTABLE_INLINE_H
#define DS_HASHTABLE_INLINE_H

#include "base/bytes.h"
#include "ds/hashtable.h"
#include "ds/hashtable_layout.h"

typedef bool hashtableMatchProc(const void *entry, const void *key, size_t len);

/* Start of the search for a hash, and what it compares. */
typedef struct tableProbe {
    tableBucket *home;
    uint64_t tag;
    uint64_t base;  /* see tagsBeyond() */
    bool unordered; /* tags of this scale do not reflect the order of units */
} tableProbe;

/* The table must not be empty. */
ALWAYS_INLINE tableProbe tableProbeAt(const hashtable *t, uint64_t hash) {
    tableProbe p;
    if (likely(tableIsBig(t))) {
        const tableBig *g = tableAsBig(t);
        const tableScale *sc = &g->scales[hash >= g->bound];
        uint64_t unit = scaleUnit(sc, hash);
        p.home = g->buckets + scaleUnitHome(sc, unit);
        p.tag = unit & TAG_MASK;
        /* Units met in one search differ by less than 2^15, so the difference of their tags has the
         * correct sign; tags that are whole units are compared as unsigned numbers. */
        p.base = sc->shift == TAG_SHIFT ? 0x8000 : p.tag;
        p.unordered = sc->inexact;
    } else {
        tableSmall *s = tableAsSmall(t);
        p.tag = hash >> TAG_SHIFT;
        p.home = s->buckets + (p.tag * s->bucket_count >> 16);
        p.base = 0x8000;
        p.unordered = false;
    }
    return p;
}

/* True if the searched entry cannot be after bucket `b`. */
ALWAYS_INLINE bool tableProbeEnds(const tableProbe *p, const tableBucket *b, tagVector tags) {
    if (likely(!bucketOverflows(b))) return true;
    return likely(!p->unordered) && tagsBeyond(tags, p->tag, p->base);
}

/* The word of the entry with this key, or NULL. */
ALWAYS_INLINE uint64_t *tableProbeFind(const tableProbe *p, const hashtableType *type,
                                       hashtableMatchProc *match, const void *key, size_t len) {
    for (tableBucket *b = p->home;; b++) {
        tagVector tags = bucketTags(b);
        for (unsigned hits = tagsEqual(tags, p->tag); hits; hits &= hits - 1) {
            uint64_t *word = &b->word[__builtin_ctz(hits)];
            /* A free word looks like tag 0. */
            if (likely(*word != 0) && likely(match(wordEntryOfType(*word, type), key, len)))
                return word;
        }
        if (likely(tableProbeEnds(p, b, tags))) return NULL;
    }
}

/* Half of tableProbeFind(), for batches that prefetch entries between the halves: the first word
 * with the tag, whose entry need not have the key. NULL: the key is not in the table. */
ALWAYS_INLINE uint64_t *tableProbeCandidate(const tableProbe *p) {
    for (tableBucket *b = p->home;; b++) {
        tagVector tags = bucketTags(b);
        for (unsigned hits = tagsEqual(tags, p->tag); hits; hits &= hits - 1) {
            uint64_t *word = &b->word[__builtin_ctz(hits)];
            if (likely(*word != 0)) return word;
        }
        if (likely(tableProbeEnds(p, b, tags))) return NULL;
    }
}

/* The other half: the word of the entry with this key, or NULL. */
ALWAYS_INLINE uint64_t *tableProbeConfirm(const tableProbe *p, uint64_t *candidate,
                                          const hashtableType *type, hashtableMatchProc *match,
                                          const void *key, size_t len) {
    if (!candidate) return NULL;
    if (likely(match(wordEntryOfType(*candidate, type), key, len))) return candidate;
    return tableProbeFind(p, type, match, key, len);
}

/* Prefetches the buckets after the home bucket. */
ALWAYS_INLINE void tableProbePrefetchRun(const tableProbe *p) {
    prefetchRead(p->home + 1);
    prefetchRead(p->home + 2);
    prefetchRead(p->home + 3);
}

/* Result of a short search: what position->word says is certain, or a whole search must find
 * out. */
typedef enum tableNear { NEAR_FOUND, NEAR_MISSING, NEAR_UNKNOWN } tableNear;

/* Looks where most keys are: in the first two buckets of a search in a big table. Needs fewer
 * registers than a whole search. */
ALWAYS_INLINE tableNear hashtableInlineFindNear(const tableBig *g, const hashtableType *type,
                                                uint64_t hash, hashtableMatchProc *match,
                                                const void *key, size_t len,
                                                hashtablePosition *position) {
    const tableScale *sc = &g->scales[hash >= g->bound];
    uint64_t unit = scaleUnit(sc, hash), tag = unit & TAG_MASK;
    tableBucket *home = g->buckets + scaleUnitHome(sc, unit);
    *position = (hashtablePosition){.hash = hash, .home = home, .tag = (uint32_t)tag};
    for (tableBucket *b = home; b < home + 2; b++) {
        for (unsigned hits = tagsEqual(bucketTags(b), tag); hits; hits &= hits - 1) {
            uint64_t *word = &b->word[__builtin_ctz(hits)];
            if (likely(*word != 0) && likely(match(wordEntryOfType(*word, type), key, len))) {
                position->word = word;
                return NEAR_FOUND;
            }
        }
        if (!bucketOverflows(b)) return b == home ? NEAR_MISSING : NEAR_UNKNOWN;
    }
    return NEAR_UNKNOWN;
}

/* hashtableFind() with `match`, a static inline function, inlined. */
ALWAYS_INLINE void *hashtableInlineFind(const hashtable *t, const hashtableType *type,
                                        uint64_t hash, hashtableMatchProc *match, const void *key,
                                        size_t len) {
    if (unlikely(!t->body)) return NULL;
    tableProbe p = tableProbeAt(t, hash);
    uint64_t *word = tableProbeFind(&p, type, match, key, len);
    return word ? wordEntryOfType(*word, type) : NULL;
}

/* hashtableFindPosition() with `match` inlined. */
ALWAYS_INLINE void *hashtableInlineFindPosition(const hashtable *t, const hashtableType *type,
                                                uint64_t hash, hashtableMatchProc *match,
                                                const void *key, size_t len,
                                                hashtablePosition *position) {
    if (unlikely(!t->body)) {
        *position = (hashtablePosition){.hash = hash};
        return NULL;
    }
    tableProbe p = tableProbeAt(t, hash);
    position->hash = hash;
    position->home = p.home;
    position->tag = (uint32_t)p.tag;
    position->word = tableProbeFind(&p, type, match, key, len);
    /* A change would walk the overflowing buckets. */
    if (bucketOverflows(p.home)) tableProbePrefetchRun(&p);
    return position->word ? wordEntryOfType(*position->word, type) : NULL;
}

/* Step 0, useful with many tables: prefetches the header of the table. */
ALWAYS_INLINE void hashtableInlinePrefetchHead(const hashtable *t) { prefetchRead(t->body); }

/* Where the search for a hash begins, as step 2 of a batch needs it; `home` is NULL if the table is
 * empty. */
typedef struct tableHint {
    const tableBucket *home;
    uint64_t tag;
} tableHint;

/* Step 1 of a batch: prefetches the home bucket, and the next one: at a fill of 95 % many entries
 * are displaced. */
ALWAYS_INLINE tableHint hashtableInlinePrefetch(const hashtable *t, uint64_t hash) {
    if (unlikely(!t->body)) return (tableHint){NULL, 0};
    tableProbe p = tableProbeAt(t, hash);
    prefetchRead(p.home);
    prefetchRead(p.home + 1);
    return (tableHint){p.home, p.tag};
}

/* Step 2 of a batch: prefetches the entry and returns its word, or that of another one: only a
 * hint. 0 if there is none near the home bucket. */
ALWAYS_INLINE uint64_t hashtableInlinePrefetchWord(tableHint hint) {
    enum { BUCKETS = 3 }; /* the third was perhaps fetched by the processor */
    const tableBucket *b = hint.home;
    if (unlikely(!b)) return 0;
    for (int i = 0;; i++, b++) {
        unsigned hits = tagsEqual(bucketTags(b), hint.tag);
        if (likely(hits)) {
            uint64_t word = b->word[__builtin_ctz(hits)];
            prefetchRead(wordEntry(word));
            /* Entries of about 40 bytes often cross a cache line. */
            prefetchRead((char *)wordEntry(word) + 40);
            return word;
        }
        if (!bucketOverflows(b) || i == BUCKETS - 1) return 0;
    }
}

/* The same, for the entry. */
ALWAYS_INLINE void *hashtableInlinePrefetchEntry(tableHint hint) {
    return wordEntry(hashtableInlinePrefetchWord(hint));
}

#endif
