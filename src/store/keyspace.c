/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyspaces (keyspace.h).
 *
 * Invariant: the slab stores of the keyspace in use are those of store/slab.c; those of the others
 * are in their `slabs`, and known to slab.c, so that a block is freed to the store it came from.
 * Likewise the counts of shape.c; there hashes have to be freed while their keyspace is in use.
 * Main thread only. */
#include "store/keyspace.h"

#include "base/base.h"
#include "store/db_priv.h"
#include "store/saving.h"

keyspace *keyspaceMain(void) { return &storeNow.main; }

void keyspaceInit(keyspace *k, int count) {
    hotCheck(threadIsMain());
    check(count > 0);
    k->dbs = memNewArray(db *, (size_t)count);
    k->count = count;
    k->next = storeNow.keyspaces;
    storeNow.keyspaces = k;
    for (int i = 0; i < count; i++) {
        db *d = k->dbs[i] = memNew(db);
        d->id = i;
        d->in = k;
        dbMakeTables(d);
    }
}

void keyspaceClear(keyspace *k) {
    hotCheck(threadIsMain());
    keyspace **link = &storeNow.keyspaces;
    while (*link != k) link = &(*link)->next;
    *link = k->next;
    for (int i = 0; i < k->count; i++) {
        check(!savingDetach(k->dbs[i]));
        kvstoreFree(k->dbs[i]->keys, NULL, NULL);
        itemsForget(k->dbs[i]);
        memFree(k->dbs[i]);
    }
    memFree(k->dbs);
    memFree(k->hidden);
    evictForget(k);
    compactForget(k);
}

keyspace *keyspaceNew(void) {
    check(storeNow.main.dbs != NULL);
    keyspace *k = memNew(keyspace);
    keyspaceInit(k, storeNow.main.count);
    return k;
}

void keyspaceFree(keyspace *k, bool later) {
    hotCheck(threadIsMain());
    if (!k) return;
    check(k != &storeNow.main);
    check(k != storeNow.used);
    freeKeyspace(k, later);
    keyspaceClear(k);
    memFree(k);
}

keyspace *keyspaceUse(keyspace *k) {
    hotCheck(storeNow.used);
    keyspace *before = storeNow.used;
    if (k == before) return before;
    before->slabs = slabUse(k->slabs);
    before->shape_counts = shapeCountsUse(k->shape_counts);
    k->slabs = (slabPair){NULL, NULL};
    k->shape_counts = NULL;
    storeNow.used = k;
    return before;
}

slabPair keyspaceSlabs(keyspace *k) {
    keyspace *before = keyspaceUse(k);
    slabPair slabs = {slabKeyspace(), slabElements()};
    (void)keyspaceUse(before); /* it was `k` */
    return slabs;
}

void keyspaceSwap(keyspace *a, keyspace *b) {
    hotCheck(threadIsMain());
    check(a->count == b->count);
    if (a == b) return;
    readingBeforeWhole(NULL);
    storeSavingAbandon(); /* what is passed on belongs to the main keyspace */
    savingFreeDetached();
    for (int i = 0; i < a->count; i++) dbExchange(a->dbs[i], b->dbs[i]);
    /* Neither is in use while their memory changes hands. */
    keyspace idle = {.slabs = {NULL, NULL}};
    keyspace *before = keyspaceUse(&idle);
    slotMask *hidden = a->hidden;
    a->hidden = b->hidden;
    b->hidden = hidden;
    slabPair slabs = a->slabs;
    a->slabs = b->slabs;
    b->slabs = slabs;
    shapeCounts *counts = a->shape_counts;
    a->shape_counts = b->shape_counts;
    b->shape_counts = counts;
    (void)keyspaceUse(before); /* it was `idle` */
    evictForget(a);
    evictForget(b);
    compactForget(a);
    compactForget(b);
}

bool keyspaceForbidChanges(bool on) {
    bool before = storeNow.unchanging;
    storeNow.unchanging = on;
    return before;
}

uint64_t keyspaceKeyCount(const keyspace *k) {
    uint64_t keys = 0;
    for (int i = 0; i < k->count; i++) keys += dbSize(k->dbs[i]);
    return keys;
}

db *keyspaceDb(const keyspace *k, int id) {
    check(id >= 0);
    check(id < k->count);
    return k->dbs[id];
}

keyspace *dbKeyspace(const db *d) { return d->in; }

uint64_t keyspaceLiveBytes(const keyspace *k) {
    slabPair slabs = keyspaceSlabs((keyspace *)(uintptr_t)k); /* as it was afterwards */
    slabStats objects, elements;
    slabGetStats(slabs.objects, &objects);
    slabGetStats(slabs.elements, &elements);
    return objects.live_bytes + elements.live_bytes;
}
