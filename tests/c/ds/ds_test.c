/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ds_test.h. */
#include "ds_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"

hashKind itemHashKind;

static uint64_t mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

uint64_t itemHash(uint64_t id) {
    uint64_t h = mix(id);
    switch (itemHashKind) {
    case HASH_ALL_EQUAL: return 0x123456789abcdef0ull;
    case HASH_ALL_LAST: return ~0ull << 40 | h >> 40;
    case HASH_ALL_FIRST: return h >> 30;
    case HASH_FOUR_HOMES: return (h & 3) << 62 | h >> 50;
    case HASH_HALF_CLUMPED: return h & 1 ? h : h >> 24 | 7ull << 57;
    case HASH_SEQUENTIAL: return id << 40;
    default: return h;
    }
}

static uint64_t itemHashOf(const void *entry) { return itemHash(((const item *)entry)->id); }

static bool itemMatch(const void *entry, const void *key, size_t len) {
    const uint64_t *id = key;
    return len == sizeof(*id) && ((const item *)entry)->id == *id;
}

const hashtableType itemType = {.hash_of = itemHashOf, .match = itemMatch};

item *itemNew(uint64_t id) {
    item *e = memNew(item);
    e->id = id;
    return e;
}

item *itemFind(const hashtable *t, uint64_t id) {
    return hashtableFind(t, &itemType, itemHash(id), &id, sizeof(id));
}

item *itemDelete(hashtable *t, uint64_t id) {
    return hashtableDelete(t, &itemType, itemHash(id), &id, sizeof(id));
}

item *itemAdd(hashtable *t, uint64_t id, unsigned flags) {
    item *e = itemNew(id);
    hashtableInsert(t, &itemType, itemHash(id), e, flags);
    return e;
}

void itemFreeVisit(void *context, void *entry, unsigned flags) {
    (void)context;
    (void)flags;
    memFree(entry);
}

uint64_t testScale(void) {
    const char *text = getenv("TEST_SCALE");
    return text ? strtoull(text, NULL, 10) : 1;
}

void testSeed(const char *name) {
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20240917;
    printf("%s: TEST_SEED=%llu\n", name, (unsigned long long)seed);
    randomSeed(seed);
}
