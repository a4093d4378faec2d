/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threshold sampling (Duffield, Lund, Thorup). With the threshold z, an item of size s is in the
 * sample if s >= z * u, where u, 0 < u <= 1, is computed from its hash: with probability s / z, and
 * always if s >= z. It adds max(s, z) to the sum, s on average. The variance of the sum is at most
 * z times the sum.
 *
 * Invariant: `sum` is the sum of max(s, z) over the items, which are those that u selects. z is 1
 * at first, which makes the sum exact, and is doubled when there are too many items; then each one
 * stays with its probability. It is never lowered: the items that are not in the sample are
 * unknown. */
#include "ds/size_sample.h"

#include "base/base.h"

enum { ITEMS_MAX = 32768, CAP_MIN = 64 };

/* Mixes group and hash: the high bits choose a place in the table, the low 32 bits are u. */
static uint64_t mix(uint32_t group, uint64_t hash) {
    uint64_t x = hash + group * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static bool isSelected(const sizeSample *s, uint64_t mixed, uint64_t size) {
    uint64_t threshold = UINT64_C(1) << s->shift;
    if (size >= threshold) return size > 0;
    double u = ((double)(uint32_t)mixed + 1) / 4294967296.0;
    return (double)size >= (double)threshold * u;
}

static uint64_t weight(const sizeSample *s, uint64_t size) {
    uint64_t threshold = UINT64_C(1) << s->shift;
    return size > threshold ? size : threshold;
}

static size_t home(const sizeSample *s, uint64_t mixed) {
    hotCheck(s->cap > 1);
    return (size_t)(mixed >> (64 - __builtin_ctzll((unsigned long long)s->cap)));
}

/* The place of an item, or the unused one where it belongs. */
static size_t find(const sizeSample *s, uint32_t group, uint64_t hash, uint64_t mixed) {
    hotCheck(s->count < s->cap);
    size_t at = home(s, mixed);
    while (s->items[at].size && (s->items[at].hash != hash || s->items[at].group != group))
        at = (at + 1) & (s->cap - 1);
    return at;
}

static void insert(sizeSample *s, const sizeSampleItem *item) {
    hotCheck(s->count + 1 < s->cap);
    s->items[find(s, item->group, item->hash, mix(item->group, item->hash))] = *item;
    s->count++;
    s->sum += weight(s, item->size);
    hotCheck(s->sum >> s->shift >= s->count);
}

/* Moves all that are selected to a table with `cap` places. */
static void rebuild(sizeSample *s, size_t cap) {
    check((cap & (cap - 1)) == 0);
    check(cap > s->count);
    sizeSample old = *s;
    s->items = memNewArray(sizeSampleItem, cap);
    s->cap = cap;
    s->count = 0;
    s->sum = 0;
    for (const sizeSampleItem *i = old.items; i < old.items + old.cap; i++) {
        if (i->size && isSelected(s, mix(i->group, i->hash), i->size)) insert(s, i);
    }
    hotCheck(s->count <= old.count);
    memFree(old.items);
}

/* Fills an unused place with later items that are not at their home. */
static void closeGap(sizeSample *s, size_t gap) {
    hotCheck(gap < s->cap);
    hotCheck(!s->items[gap].size);
    size_t mask = s->cap - 1;
    for (size_t at = (gap + 1) & mask; s->items[at].size; at = (at + 1) & mask) {
        size_t from = home(s, mix(s->items[at].group, s->items[at].hash));
        if (((at - from) & mask) < ((at - gap) & mask)) continue;
        s->items[gap] = s->items[at];
        s->items[at].size = 0;
        gap = at;
    }
}

static void removeAt(sizeSample *s, size_t at) {
    hotCheck(s->sum >= weight(s, s->items[at].size));
    s->sum -= weight(s, s->items[at].size);
    s->items[at].size = 0;
    s->count--;
    closeGap(s, at);
    hotCheck(s->sum >> s->shift >= s->count);
}

static void reserve(sizeSample *s) {
    while (s->count >= ITEMS_MAX) {
        check(s->shift < 63);
        s->shift++;
        rebuild(s, s->cap);
    }
    if (s->count >= s->cap / 4 * 3) rebuild(s, s->cap ? 2 * s->cap : CAP_MIN);
}

void sizeSampleSet(sizeSample *s, uint32_t group, uint64_t hash, uint64_t size) {
    uint64_t mixed = mix(group, hash);
    bool selected = isSelected(s, mixed, size);
    size_t at = s->cap ? find(s, group, hash, mixed) : 0;
    if (s->cap && s->items[at].size) {
        if (!selected) {
            removeAt(s, at);
            return;
        }
        s->sum += weight(s, size) - weight(s, s->items[at].size);
        s->items[at].size = size;
        return;
    }
    if (!selected) return;
    reserve(s);
    if (!isSelected(s, mixed, size)) return; /* the threshold is higher now */
    insert(s, &(sizeSampleItem){.hash = hash, .size = size, .group = group});
    hotCheck(s->count <= ITEMS_MAX);
}

void sizeSampleClear(sizeSample *s) {
    memFree(s->items);
    *s = (sizeSample){0};
}

void sizeSampleRemoveGroup(sizeSample *s, uint32_t group) {
    for (size_t at = 0; at < s->cap; at++) {
        if (s->items[at].group == group) s->items[at].size = 0;
    }
    if (s->cap) rebuild(s, s->cap);
}

size_t sizeSampleBytes(const sizeSample *s) { return memSizeOf(s->items); }

bool sizeSampleNext(const sizeSample *s, size_t *at, sizeSampleItem *out) {
    for (; *at < s->cap; (*at)++) {
        if (!s->items[*at].size) continue;
        *out = s->items[(*at)++];
        return true;
    }
    return false;
}
