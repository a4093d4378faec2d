/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random elements (random_elements.h). */
#include "store/random_elements.h"

#include "base/base.h"
#include "base/fiber.h"
#include "base/random.h"

void randomFromListpack(const uint8_t *lp, unsigned width, size_t count, bool unique,
                        listpackGroupProc *pick, void *arg) {
    hotCheck(threadIsMain());
    if (unique) {
        listpackRandomUnique(lp, width, count, pick, arg);
        return;
    }
    size_t groups = listpackCount(lp) / width;
    if (!groups) return;
    if (count < groups / 4 || count == 1) {
        while (count-- > 0 && pick(arg, listpackRandom(lp, width)) && !fiberPoint(1)) {}
        return;
    }
    const uint8_t **places = memNewArray(const uint8_t *, groups);
    listpackPositions(lp, width, places);
    while (count-- > 0 && pick(arg, places[randomUniform(groups)]) && !fiberPoint(1)) {}
    memFree(places);
}

/* For a large share of all entries: a partial shuffle. */
static void randomByShuffle(const hashtable *t, const hashtableType *type, size_t count,
                            randomElementProc *pick, void *arg) {
    size_t size = hashtableCount(t), n = 0;
    void **all = memNewArray(void *, size);
    hashtableIterator it;
    hashtableIteratorInit(&it, t, type);
    bool is_wanted = true;
    while (is_wanted && n < size && (all[n] = hashtableIteratorNext(&it, NULL))) {
        n++;
        is_wanted = !fiberPoint(1);
    }
    hashtableIteratorClear(&it);
    if (is_wanted) check(n == size);
    for (size_t i = 0; is_wanted && i < count; i++) {
        size_t other = i + (size_t)randomUniform(size - i);
        void *chosen = all[other];
        all[other] = all[i];
        is_wanted = pick(arg, chosen) && !fiberPoint(1);
    }
    memFree(all);
}

/* True if `element` is not yet in the hash set `seen` of `slots` (a power of two) entries; adds
 * it. */
static bool isNew(const void **seen, size_t slots, const void *element) {
    size_t at = (size_t)((uintptr_t)element * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slots - 1);
    for (; seen[at]; at = (at + 1) & (slots - 1)) {
        if (seen[at] == element) return false;
    }
    seen[at] = element;
    return true;
}

/* A few of many: repeated elements are skipped. */
static void randomByDrawing(const hashtable *t, const hashtableType *type, size_t count,
                            randomElementProc *pick, void *arg) {
    size_t slots = sizePowerOfTwo(2 * count);
    const void **seen = memCalloc(slots, sizeof(*seen));
    while (count > 0) {
        const void *element = hashtableRandom(t, type);
        if (!isNew(seen, slots, element)) continue;
        if (!pick(arg, element) || fiberPoint(1)) break;
        count--;
    }
    memFree(seen);
}

void randomFromTable(const hashtable *t, const hashtableType *type, size_t count, bool unique,
                     randomElementProc *pick, void *arg) {
    hotCheck(threadIsMain());
    enum { FEW = 3 }; /* above 1/3 of all entries, drawing would repeat too often */
    size_t size = hashtableCount(t);
    if (!size) return;
    if (!unique) {
        while (count-- > 0 && pick(arg, hashtableRandom(t, type)) && !fiberPoint(1)) {}
    } else if (count >= size || count > size / FEW) {
        randomByShuffle(t, type, sizeMin(count, size), pick, arg);
    } else {
        randomByDrawing(t, type, count, pick, arg);
    }
}

size_t sampledMemory(const hashtable *t, const hashtableType *type, size_t samples,
                     size_t (*memory)(const void *element)) {
    size_t size = hashtableCount(t), seen = 0, bytes = 0;
    if (samples == 0) samples = size;
    hashtableIterator it;
    hashtableIteratorInit(&it, t, type);
    const void *element;
    for (; seen < samples && (element = hashtableIteratorNext(&it, NULL)); seen++) {
        bytes += memory(element);
        if (fiberPoint(1)) break;
    }
    hashtableIteratorClear(&it);
    return seen ? (size_t)((double)bytes / (double)seen * (double)size) : 0;
}
