/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at many keys to say what the keyspace is made of: all of them while they are few, else some taken by
 * chance. Costs some 0.2 us a key beside what the visitor does, at most one cache miss or two. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"

/* Draws of a few neighbours each: cheap, and near enough to single keys drawn by chance, for keys stand in the order
 * of their hashes. */
static uint64_t visitSome(const db *d, uint64_t want, dbVisitProc *visit, void *arg) {
    enum { DRAW = 8 };
    uint64_t visited = 0;
    while (visited < want) {
        void *found[DRAW];
        size_t count = kvstoreSample(d->keys, found, sizeMin(DRAW, want - visited));
        for (size_t i = 0; i < count; i++) prefetchRead(found[i]);
        for (size_t i = 0; i < count; i++) visit(arg, found[i]);
        visited += count;
        if (count == 0) break;
    }
    return visited;
}

uint64_t dbSample(const db *d, uint64_t most, dbVisitProc *visit, void *arg) {
    uint64_t size = dbSize(d);
    if (size > most) return visitSome(d, most, visit, arg);
    kvstoreIterator it;
    kvstoreIteratorInit(&it, d->keys, -1, false);
    const robj *o;
    while ((o = kvstoreIteratorNext(&it, NULL))) visit(arg, o);
    kvstoreIteratorClear(&it);
    return size;
}
