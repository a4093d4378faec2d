/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sample of the memory of keys. Main thread only. */
#include "store/memory_sample.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "store/key_prefix.h"
#include "store/store.h"
#include "store/type.h"

enum { VALUE_SAMPLES = 5 };

static void addTo(memoryGroups *groups, const char *name, double bytes) {
    int i = 0;
    while (i < groups->count && strcmp(groups->list[i].name, name) != 0) i++;
    memoryGroup *g = &groups->list[i];
    if (i == groups->count) {
        if (i < MEMORY_GROUPS_MAX) {
            memcpy(g->name, name, strlen(name) + 1);
            groups->count++;
        } else {
            memcpy(g->name, "(others)", sizeof("(others)"));
        }
    }
    g->keys++;
    g->bytes += bytes;
    g->bytes_squared += bytes * bytes;
}

/* The prefix of a key; unprintable bytes become dots. */
static void prefixOf(slice key, char *name) {
    slice prefix = keyPrefix(key);
    _Static_assert((int)KEY_PREFIX_MAX <= (int)MEMORY_GROUP_NAME_MAX, "it fits");
    if (!prefix.len) {
        memcpy(name, "(none)", sizeof("(none)"));
        return;
    }
    for (size_t i = 0; i < prefix.len; i++) {
        unsigned char byte = (unsigned char)prefix.ptr[i];
        name[i] = (char)(byte > ' ' && byte < 127 ? byte : '.');
    }
    name[prefix.len] = 0;
}

static void addKey(void *arg, const robj *o) {
    memorySample *all = arg;
    char name[MEMORY_GROUP_NAME_MAX + 1];
    double bytes = (double)objectMemory(o, VALUE_SAMPLES);
    snprintf(name, sizeof(name), "%s (%s)", objectTypeName(o), objectEncoding(o));
    addTo(&all->kinds, name, bytes);
    prefixOf(objectKey(o), name);
    addTo(&all->prefixes, name, bytes);
    all->seen++;
    all->timed += objectHasExpire(o);
    all->bytes += bytes;
}

void memorySampleRead(uint64_t samples, memorySample *out) {
    hotCheck(threadIsMain());
    double keys = (double)keyspaceKeyCount(keyspaceMain());
    for (int i = 0; i < storeDbCount(); i++) {
        const db *d = storeDb(i);
        if (!dbSize(d)) continue;
        uint64_t share = (uint64_t)((double)samples * (double)dbSize(d) / keys) + 1;
        (void)dbSample(d, share, addKey, out); /* the callback counts the keys */
    }
}

static int byBytes(const void *a, const void *b) {
    double x = ((const memoryGroup *)a)->bytes, y = ((const memoryGroup *)b)->bytes;
    return (x < y) - (x > y);
}

int memoryGroupsSort(memoryGroups *groups) {
    check(groups->count <= MEMORY_GROUPS_MAX);
    int count = groups->count + (groups->list[MEMORY_GROUPS_MAX].keys > 0);
    qsort(groups->list, (size_t)count, sizeof(memoryGroup), byBytes);
    return count;
}
