/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A request on keys of several slots as one request per slot (split.h): the keys are sorted by
 * slot, those of one slot keep their order. O(n log n). */
#include "gateway/split.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

typedef struct splitKey {
    int slot, number;
} splitKey;

static int compareKeys(const void *a, const void *b) {
    const splitKey *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void splitBegin(splitRequest *out, int step, int argc, const slice *argv) {
    check(argc > 1);
    check(step > 0);
    check((argc - 1) % step == 0);
    int count = (argc - 1) / step;
    splitKey *keys = memNewArray(splitKey, (size_t)count);
    for (int i = 0; i < count; i++) keys[i] = (splitKey){hashSlot(argv[1 + i * step]), i};
    qsort(keys, (size_t)count, sizeof(*keys), compareKeys);
    *out = (splitRequest){.parts = memNewArray(splitPart, (size_t)count),
                          .positions = memNewArray(int, (size_t)count),
                          .key_count = count,
                          .words = memNewArray(slice, (size_t)(argc + count))};
    slice *word = out->words;
    splitPart *part = NULL;
    for (int i = 0; i < count; i++) {
        if (!part || part->slot != keys[i].slot) {
            part = &out->parts[out->count++];
            *part = (splitPart){.slot = keys[i].slot, .argv = word, .argc = 1};
            *word++ = argv[0];
        }
        int first = 1 + keys[i].number * step;
        for (int k = first; k < first + step; k++, part->argc++) *word++ = argv[k];
        out->positions[i] = keys[i].number;
    }
    memFree(keys);
    check(word <= out->words + argc + count);
}

void splitEnd(splitRequest *s) {
    memFree(s->words);
    memFree(s->positions);
    memFree(s->parts);
    *s = (splitRequest){0};
}
