/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What ds/hashtable costs: nanoseconds per operation, one by one and in batches of 16, and bytes
 * per key.
 *
 *     bench_hashtable                   everything below, 1 M keys
 *     bench_hashtable ops N             load, find, delete of N keys of 16 bytes
 *     bench_hashtable memory            bytes per key from 0.5 M to 2 M keys
 *     bench_hashtable tables T K        T tables of K keys each
 *     bench_hashtable walk N            scans, random entries, volatile entries
 *     bench_hashtable latency N         the slowest inserts of a bulk load */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "ds/hashtable_inline.h"

#define BATCH 16

/* As small strings are: a header, a length, a key of 16 bytes, a value of 16. */
typedef struct entry {
    uint8_t header[5];
    uint8_t key[16];
    uint8_t value[17];
    uint8_t unused[2];
} entry;

static entry **entries;
static uint64_t entry_count;

static uint64_t mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static void makeKey(uint8_t *key, uint64_t id) {
    storeU64(key, mix(id));
    storeU64(key + 8, id);
}

/* Any strong hash will do; this one is cheap, so that the table's own cost shows. */
static uint64_t keyHash(const uint8_t *key) {
    unsigned __int128 product = (unsigned __int128)(loadU64(key) ^ 0xD6E8FEB86659FD93ull) *
                                (loadU64(key + 8) ^ 0xA0761D6478BD642Full);
    return mix((uint64_t)product ^ (uint64_t)(product >> 64));
}

static uint64_t hashOf(const void *e) { return keyHash(((const entry *)e)->key); }

static inline bool matchEntry(const void *e, const void *key, size_t len) {
    (void)len;
    const uint8_t *own = ((const entry *)e)->key;
    return ((loadU64(own) ^ loadU64(key)) | (loadU64(own + 8) ^ loadU64((const char *)key + 8))) ==
           0;
}

static const hashtableType type = {.hash_of = hashOf, .match = matchEntry};

static void makeEntries(uint64_t count) {
    entries = memNewArray(entry *, count);
    for (uint64_t i = 0; i < count; i++) {
        entries[i] = memNew(entry);
        makeKey(entries[i]->key, i);
    }
    entry_count = count;
}

static void freeEntries(void) {
    for (uint64_t i = 0; i < entry_count; i++) memFree(entries[i]);
    memFree(entries);
}

static double perOperation(int64_t start_ns, uint64_t count) {
    return (double)(clockMonoNs() - start_ns) / (double)count;
}

/* The id at place `i` of a sequence that jumps about. */
static uint64_t jumble(uint64_t i, uint64_t count) {
    return (uint64_t)(((unsigned __int128)mix(i ^ 0x5555) * count) >> 64);
}

typedef struct batch {
    uint8_t keys[BATCH][16];
    uint64_t hashes[BATCH];
} batch;

static void batchPrefetch(const hashtable *t, batch *b) {
    tableHint hints[BATCH];
    for (int j = 0; j < BATCH; j++) {
        b->hashes[j] = keyHash(b->keys[j]);
        hints[j] = hashtableInlinePrefetch(t, b->hashes[j]);
    }
    for (int j = 0; j < BATCH; j++) (void)hashtableInlinePrefetchEntry(hints[j]);
}

static double load(hashtable *t, uint64_t n) {
    int64_t start = clockMonoNs();
    for (uint64_t i = 0; i < n; i++) {
        uint8_t key[16];
        hashtablePosition position;
        makeKey(key, i);
        uint64_t hash = keyHash(key);
        if (!hashtableInlineFindPosition(t, &type, hash, matchEntry, key, 16, &position)) {
            hashtableInsertAt(t, &type, &position, entries[i], 0);
        }
    }
    return perOperation(start, n);
}

static double loadBatch(hashtable *t, uint64_t n) {
    int64_t start = clockMonoNs();
    for (uint64_t i = 0; i + BATCH <= n; i += BATCH) {
        batch b;
        for (uint64_t j = 0; j < BATCH; j++) makeKey(b.keys[j], i + j);
        batchPrefetch(t, &b);
        for (uint64_t j = 0; j < BATCH; j++) {
            hashtablePosition p;
            if (!hashtableInlineFindPosition(t, &type, b.hashes[j], matchEntry, b.keys[j], 16,
                                             &p)) {
                hashtableInsertAt(t, &type, &p, entries[i + j], 0);
            }
        }
    }
    return perOperation(start, n);
}

static uint64_t found_sum; /* so that no lookup is left out by the compiler */

/* Finds keys from `offset` on: 0 for hits, n for misses. */
static double find(const hashtable *t, uint64_t n, uint64_t offset, uint64_t rounds) {
    int64_t start = clockMonoNs();
    for (uint64_t i = 0; i < rounds; i++) {
        uint8_t key[16];
        makeKey(key, offset + jumble(i, n));
        entry *e = hashtableInlineFind(t, &type, keyHash(key), matchEntry, key, 16);
        if (e) found_sum += e->value[0] + 1u;
    }
    return perOperation(start, rounds);
}

static double findBatch(const hashtable *t, uint64_t n, uint64_t offset, uint64_t rounds) {
    int64_t start = clockMonoNs();
    for (uint64_t i = 0; i < rounds; i += BATCH) {
        batch b;
        for (uint64_t j = 0; j < BATCH; j++) makeKey(b.keys[j], offset + jumble(i + j, n));
        batchPrefetch(t, &b);
        for (int j = 0; j < BATCH; j++) {
            entry *e = hashtableInlineFind(t, &type, b.hashes[j], matchEntry, b.keys[j], 16);
            if (e) found_sum += e->value[0] + 1u;
        }
    }
    return perOperation(start, rounds);
}

static uint64_t *shuffled;

static void shuffle(uint64_t n) {
    shuffled = memNewArray(uint64_t, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t k = randomUniform(i + 1);
        shuffled[i] = shuffled[k];
        shuffled[k] = i;
    }
}

static double delete (hashtable *t, uint64_t from, uint64_t to) {
    int64_t start = clockMonoNs();
    for (uint64_t i = from; i < to; i++) {
        uint8_t key[16];
        hashtablePosition p;
        makeKey(key, shuffled[i]);
        if (hashtableInlineFindPosition(t, &type, keyHash(key), matchEntry, key, 16, &p)) {
            hashtableDeleteAt(t, &type, &p);
        }
    }
    return perOperation(start, to - from);
}

static double deleteBatch(hashtable *t, uint64_t from, uint64_t to) {
    int64_t start = clockMonoNs();
    for (uint64_t i = from; i + BATCH <= to; i += BATCH) {
        batch b;
        for (uint64_t j = 0; j < BATCH; j++) makeKey(b.keys[j], shuffled[i + j]);
        batchPrefetch(t, &b);
        for (int j = 0; j < BATCH; j++) {
            hashtablePosition p;
            if (hashtableInlineFindPosition(t, &type, b.hashes[j], matchEntry, b.keys[j], 16, &p)) {
                hashtableDeleteAt(t, &type, &p);
            }
        }
    }
    return perOperation(start, to - from);
}

/* Deletes and inserts alternately at a constant count, without a resize, like a cache. */
static double churnBatch(hashtable *t, uint64_t n, uint64_t rounds) {
    int64_t start = clockMonoNs();
    uint64_t oldest = 0;
    for (uint64_t i = 0; i < rounds; i += BATCH) {
        batch b;
        hashtablePosition p;
        for (uint64_t j = 0; j < BATCH; j++) makeKey(b.keys[j], shuffled[(oldest + j) % n]);
        batchPrefetch(t, &b);
        for (int j = 0; j < BATCH; j++) {
            hashtableInlineFindPosition(t, &type, b.hashes[j], matchEntry, b.keys[j], 16, &p);
            entry *e = hashtableDeleteAt(t, &type, &p);
            hashtableInsert(t, &type, b.hashes[j], e, 0);
        }
        oldest = (oldest + BATCH) % (n - BATCH);
    }
    return perOperation(start, 2 * rounds);
}

#define ROUNDS_MAX 3
enum { LOAD, LOADB, HIT, HITB, MISS, MISSB, CHURNB, DELETE, DELETEB, OPERATIONS };

static void benchOps(uint64_t n) {
    static const char *const names[OPERATIONS] = {
        "load",        "load, batch",          "hit",    "hit, batch",   "miss",
        "miss, batch", "delete+insert, batch", "delete", "delete, batch"};
    double best[OPERATIONS];
    uint64_t finds = n < 2000000 ? 2000000 : n;
    makeEntries(n);
    shuffle(n);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        hashtable t = {NULL};
        double ns[OPERATIONS];
        ns[LOADB] = loadBatch(&t, n);
        hashtableFree(&t, NULL, NULL);
        ns[LOAD] = load(&t, n);
        ns[HIT] = find(&t, n, 0, finds);
        ns[HITB] = findBatch(&t, n, 0, finds);
        ns[MISS] = find(&t, n, n, finds);
        ns[MISSB] = findBatch(&t, n, n, finds);
        ns[CHURNB] = churnBatch(&t, n, n / 2);
        ns[DELETE] = delete (&t, 0, n / 4);
        ns[DELETEB] = deleteBatch(&t, n / 4, n / 2);
        hashtableFree(&t, NULL, NULL);
        for (int i = 0; i < OPERATIONS; i++) {
            if (round == 0 || ns[i] < best[i]) best[i] = ns[i];
        }
    }
    printf("%llu keys, ns per operation, best of %d:\n", (unsigned long long)n, ROUNDS_MAX);
    for (int i = 0; i < OPERATIONS; i++) printf("  %-22s %7.1f\n", names[i], best[i]);
    memFree(shuffled);
    freeEntries();
}

static void benchMemory(void) {
    hashtable t = {NULL};
    double least = 1e9, most = 0, sum = 0;
    uint64_t next = 500000, steps = 0;
    makeEntries(2000000);
    size_t before = memUsed();
    printf("bytes per key:");
    for (uint64_t i = 0; i < entry_count; i++) {
        hashtableInsert(&t, &type, hashOf(entries[i]), entries[i], 0);
        double bytes = (double)(memUsed() - before) / (double)(i + 1);
        if (i + 1 < 500000) continue;
        if (bytes < least) least = bytes;
        if (bytes > most) most = bytes;
        if (i + 1 < next) continue;
        printf(" %llu:%.2f", (unsigned long long)next, bytes);
        sum += bytes;
        steps++;
        next = next * 1091 / 1000;
    }
    printf("\n  mean %.2f, least %.2f, most %.2f\n", sum / (double)steps, least, most);
    hashtableFree(&t, NULL, NULL);
    freeEntries();
}

static void benchTables(uint64_t tables, uint64_t keys) {
    uint64_t n = tables * keys, misses = 0;
    makeEntries(n);
    size_t before = memUsed();
    hashtable *t = memNewArray(hashtable, tables);
    int64_t start = clockMonoNs();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t hash = hashOf(entries[i]);
        hashtableInsert(&t[mix(i) % tables], &type, hash, entries[i], 0);
    }
    double insert_ns = perOperation(start, n);
    double bytes = (double)(memUsed() - before) / (double)n;
    start = clockMonoNs();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id = jumble(i, n);
        uint64_t hash = hashOf(entries[id]);
        if (!hashtableInlineFind(&t[mix(id) % tables], &type, hash, matchEntry, entries[id]->key,
                                 16)) {
            misses++;
        }
    }
    printf("%llu tables of %llu keys: %.2f bytes per key, insert %.1f ns, hit %.1f ns%s\n",
           (unsigned long long)tables, (unsigned long long)keys, bytes, insert_ns,
           perOperation(start, n), misses ? " BROKEN" : "");
    for (uint64_t i = 0; i < tables; i++) hashtableFree(&t[i], NULL, NULL);
    memFree(t);
    freeEntries();
}

static void countVisit(void *context, void *e, unsigned flags) {
    (void)e;
    (void)flags;
    (*(uint64_t *)context)++;
}

static void benchVolatile(hashtable *t, uint64_t n, uint64_t volatiles) {
    uint64_t cursor = 0, calls = 0, visits = 0, draws = 2000;
    size_t before = memUsed();
    int64_t start = clockMonoNs();
    for (uint64_t i = 0; i < volatiles; i++) {
        entry *e = entries[i * (n / volatiles)];
        hashtableSetFlags(t, hashOf(e), e, HASHTABLE_VOLATILE);
    }
    double set_ns = perOperation(start, volatiles);
    start = clockMonoNs();
    do {
        cursor = hashtableScanVolatile(t, &type, cursor, countVisit, &visits);
        calls++;
    } while (cursor);
    double walk_ns = perOperation(start, 1);
    start = clockMonoNs();
    for (uint64_t i = 0; i < draws; i++) {
        void *out[5];
        found_sum += hashtableSampleVolatile(t, &type, out, COUNT_OF(out));
    }
    double sample_ns = perOperation(start, draws);
    start = clockMonoNs();
    for (uint64_t i = 0; i < draws; i++) found_sum += hashtableRandomVolatile(t, &type) != NULL;
    printf("  %8llu volatile: index %zu bytes, set %.0f ns, whole walk %.1f us (%llu calls), "
           "sample of 5 %.0f ns, random %.0f ns%s\n",
           (unsigned long long)volatiles, memUsed() - before, set_ns, walk_ns / 1000,
           (unsigned long long)calls, sample_ns, perOperation(start, draws),
           visits == volatiles ? "" : " BROKEN");
    for (uint64_t i = 0; i < volatiles; i++) {
        entry *e = entries[i * (n / volatiles)];
        hashtableSetFlags(t, hashOf(e), e, 0);
    }
}

static void benchWalk(uint64_t n) {
    hashtable t = {NULL};
    uint64_t cursor = 0, visits = 0, calls = 0;
    makeEntries(n);
    for (uint64_t i = 0; i < n; i++) {
        hashtableInsert(&t, &type, hashOf(entries[i]), entries[i], 0);
    }
    int64_t start = clockMonoNs();
    do {
        cursor = hashtableScan(&t, &type, cursor, countVisit, &visits);
        calls++;
    } while (cursor);
    printf("%llu keys: scan %.1f ns per key in %llu calls, ", (unsigned long long)n,
           perOperation(start, n), (unsigned long long)calls);
    start = clockMonoNs();
    hashtableIterator it;
    hashtableIteratorInit(&it, &t, &type);
    while (hashtableIteratorNext(&it, NULL)) visits++;
    hashtableIteratorClear(&it);
    printf("iterate %.1f, ", perOperation(start, n));
    start = clockMonoNs();
    for (int i = 0; i < 1000000; i++) found_sum += hashtableRandom(&t, &type) != NULL;
    printf("random %.1f%s\n", perOperation(start, 1000000), visits == 2 * n ? "" : " BROKEN");
    for (uint64_t volatiles = 100; volatiles <= n; volatiles *= 100)
        benchVolatile(&t, n, volatiles);
    hashtableFree(&t, NULL, NULL);
    freeEntries();
}

static int compareTimes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void benchLatency(uint64_t n) {
    hashtable t = {NULL};
    makeEntries(n);
    uint64_t *ticks = memNewArray(uint64_t, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t hash = hashOf(entries[i]), start = clockTicks();
        hashtableInsert(&t, &type, hash, entries[i], 0);
        ticks[i] = clockTicks() - start;
    }
    qsort(ticks, n, sizeof(*ticks), compareTimes);
    static const double parts[] = {0.5, 0.99, 0.999, 0.9999, 0.99999};
    printf("inserts of a load of %llu, us:", (unsigned long long)n);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        uint64_t at = (uint64_t)(parts[i] * (double)n);
        printf(" p%g %.2f", parts[i] * 100, (double)clockTicksToNs(ticks[at]) / 1000);
    }
    printf(" most %.2f\n", (double)clockTicksToNs(ticks[n - 1]) / 1000);
    memFree(ticks);
    hashtableFree(&t, NULL, NULL);
    freeEntries();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    uint64_t second = argc > 3 ? strtoull(argv[3], NULL, 10) : 60;
    bool all = strcmp(what, "all") == 0;
    clockInit();
    randomSeed(1);
    if (all || strcmp(what, "ops") == 0) benchOps(first);
    if (all || strcmp(what, "memory") == 0) benchMemory();
    if (all) benchTables(16384, 60);
    if (strcmp(what, "tables") == 0) benchTables(first, second);
    if (all || strcmp(what, "walk") == 0) benchWalk(first);
    if (all || strcmp(what, "latency") == 0) benchLatency(first);
    return found_sum == 0;
}
