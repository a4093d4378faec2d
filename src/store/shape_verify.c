/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts the users of all shapes anew, and compares: for tests. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"
#include "store/hash_record.h"

static void countRecord(void *arg, const robj *o) {
    uint64_t *counts = arg;
    unsigned shape = recordShapeNumber(o);
    if (shape) counts[shape]++;
}

static const char *compare(const uint64_t *counts, bool exact) {
    for (unsigned id = 1; id <= SHAPES_MAX; id++) {
        if (!counts[id] && !exact) continue;
        const shape *s = shapeOfId(id);
        if (!s && counts[id]) return "a hash has a shape that was freed";
        if (!s) continue;
        uint64_t users = shapeCountNow(s);
        if (users < counts[id]) return "a shape counts fewer hashes than there are";
        if (exact && users > counts[id]) return "a shape counts more hashes than there are";
        if (s->users < users) return "a shape counts fewer hashes than one keyspace has";
    }
    return NULL;
}

const char *storeVerifyShapes(keyspace *k) {
    uint64_t *counts = memNewArray(uint64_t, SHAPES_MAX + 1);
    for (int i = 0; i < k->count; i++) {
        dbEach(k->dbs[i], -1, countRecord, counts);
        for (int slot = 0; k->hidden && slot < SLOT_COUNT; slot++)
            if (slotMaskHas(k->hidden, slot)) dbEach(k->dbs[i], slot, countRecord, counts);
    }
    /* objects that are about to be freed are in no database */
    bool exact = storeFreePending() == 0 && savingDetachedKeys() + takenKeysLeft() == 0;
    if (exact) (void)storeReclaim(); /* what was freed by the other thread is subtracted */
    keyspace *before = keyspaceUse(k);
    const char *fault = compare(counts, exact);
    (void)keyspaceUse(before); /* it was `k` */
    memFree(counts);
    return fault;
}
