/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Choice of keys to evict: approximated LRU, LFU or shortest TTL by sampling, or random keys.
 *
 * The best candidates of previous samples are kept in a small pool, so that the evicted key is the
 * best of many samples although each one is small (approximated LRU as described by Redis in 2016).
 * The pool contains addresses, not keys: an object that was freed or moved since is in no table any
 * more and is dropped; one that was accessed since has a different score. Cost: about 0.4 us per
 * evicted key in addition to its removal, with 5 samples. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"

enum { POOL_SIZE = 16, SAMPLES_MAX = 64 };

typedef struct candidate {
    robj *o; /* NULL: unused */
    uint64_t score, hash;
    db *d;
} candidate;

struct evictPool {
    candidate at[POOL_SIZE];
    evictOrder order;
    const db *only; /* as in the rule */
};

/* The object with the highest score is evicted first. */
static uint64_t scoreOf(const robj *o, evictOrder order) {
    hotCheck(order != EVICT_TTL || objectHasExpire(o));
    switch (order) {
    case EVICT_LFU: return 255u - storeFrequency(o);
    case EVICT_TTL: return UINT64_MAX - (uint64_t)objectExpire(o);
    case EVICT_LRU:
    case EVICT_RANDOM: break;
    }
    return (uint64_t)storeIdleSeconds(o);
}

/* ------------------------------------------------------------------ the pool */

/* The place an object of this score may take: its own, a free one, or that of the worst. NULL:
 * none. */
static candidate *poolEntryFor(evictPool *pool, const robj *o, uint64_t score) {
    candidate *worst = &pool->at[0];
    for (candidate *c = pool->at; c < pool->at + POOL_SIZE; c++) {
        if (c->o == o) return c;
        if (worst->o && (!c->o || c->score < worst->score)) worst = c;
    }
    return !worst->o || score > worst->score ? worst : NULL;
}

static void addSample(db *d, const evictRule *rule) {
    hotCheck(rule->samples > 0);
    void *found[SAMPLES_MAX];
    size_t want = sizeMin((size_t)rule->samples, SAMPLES_MAX);
    size_t count = rule->only_volatile ? kvstoreSampleVolatile(d->keys, found, want)
                                       : kvstoreSample(d->keys, found, want);
    for (size_t i = 0; i < count; i++) prefetchRead(found[i]);
    for (size_t i = 0; i < count; i++) {
        robj *o = found[i];
        uint64_t score = scoreOf(o, rule->order);
        candidate *place = poolEntryFor(d->in->pool, o, score);
        if (!place) continue;
        uint64_t hash = storeHash(objectKey(o));
        *place = (candidate){.o = o, .score = score, .hash = hash, .d = d};
    }
}

/* True if the object is being read over several turns. */
static bool isHeld(const candidate *c) {
    return unlikely(storeNow.watches) && readingHolds(c->d, c->hash);
}

/* True if the object is still in its table. */
static bool isStillStored(const candidate *c) {
    return !isHidden(c->d, c->hash) && kvstoreHasEntry(c->d->keys, slotOf(c->hash), c->hash, c->o);
}

static void addSamples(const keyspace *k, const evictRule *rule) {
    hotCheck(rule->samples > 0);
    if (rule->only) {
        if (dbSize(rule->only)) addSample(rule->only, rule);
        return;
    }
    for (int i = 0; i < k->count; i++) {
        if (dbSize(k->dbs[i])) addSample(k->dbs[i], rule);
    }
}

static candidate *bestOfPool(evictPool *pool) {
    candidate *best = NULL;
    for (candidate *c = pool->at; c < pool->at + POOL_SIZE; c++) {
        if (c->o && (!best || c->score > best->score)) best = c;
    }
    hotCheck(!best || best->d);
    return best;
}

/* Takes the best out of the pool; `.o` NULL when it is empty. Those used since they were seen get
 * the score of now; they had kept others out of the pool, so a sample is taken again before one of
 * the rest is the best. */
static candidate takeBest(const keyspace *k, const evictRule *rule) {
    hotCheck(k->pool);
    bool outdated = false, sampled = false;
    candidate *best;
    while ((best = bestOfPool(k->pool))) {
        candidate taken = *best;
        best->o = NULL;
        if (!isStillStored(&taken) || isHeld(&taken)) continue;
        if (rule->only_volatile && !objectHasExpire(taken.o)) continue;
        uint64_t score = scoreOf(taken.o, rule->order);
        if (score < taken.score) {
            *best = taken;
            best->score = score;
            outdated = true;
        } else if (outdated && !sampled) {
            *best = taken;
            addSamples(k, rule);
            sampled = true;
        } else {
            return taken;
        }
    }
    return (candidate){.o = NULL};
}

/* ------------------------------------------------------------------ choosing a key */

void evictForget(keyspace *k) {
    memFree(k->pool);
    k->pool = NULL;
}

static candidate bestVictim(keyspace *k, const evictRule *rule) {
    if (!k->pool || rule->order != k->pool->order || rule->only != k->pool->only) {
        evictForget(k);
        k->pool = memNew(evictPool);
        k->pool->order = rule->order;
        k->pool->only = rule->only;
    }
    addSamples(k, rule);
    return takeBest(k, rule);
}

static candidate randomKey(db *d, const evictRule *rule) {
    candidate c;
    int tries = 8; /* more than that: its reader has to finish */
    do {
        c = (candidate){.d = d};
        c.o = rule->only_volatile ? kvstoreRandomVolatile(d->keys, NULL)
                                  : kvstoreRandom(d->keys, NULL);
        if (c.o) c.hash = storeHash(objectKey(c.o));
    } while (c.o && isHeld(&c) && --tries);
    return c;
}

static candidate anyVictim(keyspace *k, const evictRule *rule) {
    if (rule->only) return randomKey(rule->only, rule);
    for (int i = 0; i < k->count; i++) {
        k->evict_next = (k->evict_next + 1) % k->count;
        candidate c = randomKey(k->dbs[k->evict_next], rule);
        if (c.o) return c;
    }
    return (candidate){.o = NULL};
}

bool storeEvictOne(keyspace *k, const evictRule *rule) {
    candidate c = rule->order == EVICT_RANDOM ? anyVictim(k, rule) : bestVictim(k, rule);
    if (!c.o) return false;
    beforeRemoval(c.d, c.hash, c.o, REMOVAL_EVICTED);
    check(kvstoreDeleteEntry(c.d->keys, slotOf(c.hash), c.hash, c.o));
    k->stats.evicted++;
    dbTellRemoved(c.d, c.o, k->listener ? k->listener->evicted : NULL, rule->later, true);
    return true;
}
