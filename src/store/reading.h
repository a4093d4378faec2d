/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads of the main keyspace that last over several turns of the loop, while it changes.
 *
 * Values: their reader is told before an object is changed or removed, and finishes reading then,
 * or has made sure that this does not happen. Names: a listing passes on those of one moment. While
 * values are read, neither objects nor elements are moved (compact.h). If nothing is read in this
 * way, a change pays for the same test as without it. Main thread only. */
#ifndef STORE_READING_H
#define STORE_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* Callbacks for readers of values; all may read the store, but must not change it. */
typedef struct storeReaders {
    /* An object with this hash is about to be changed or removed; is about to be added. */
    void (*before)(const db *d, uint64_t hash);
    void (*adding)(const db *d, uint64_t hash);
    /* Tables are about to be removed or exchanged, listed ones too: of one database, NULL: of
     * any. */
    void (*whole)(const db *d);
    /* Hidden members of the object with this hash are about to be shown. */
    void (*shown)(const db *d, uint64_t hash);
    /* True if the object is being read: expiry and eviction leave it for later. */
    bool (*holds)(const db *d, uint64_t hash);
} storeReaders;
/* NULL: nothing is read. Must not change while a listing exists. */
void storeSetReaders(const storeReaders *readers);

/* The keys of a database at the moment of dbListingNew(), in slices. A key that is removed before
 * its turn is visited then; later ones are not visited. */
typedef struct dbListing dbListing;
/* `slot` -1: of all slots but hidden ones. */
dbListing *dbListingNew(db *d, int slot, dbVisitProc *visit, void *arg);
/* Visits the keys of at most `buckets` buckets, of some 7 each; false at the end. */
bool dbListingStep(dbListing *l, uint64_t buckets);
void dbListingFree(dbListing *l);

/* Until the second call, lookups in the database are repeated ones: they count as no hits and
 * misses, and the listener hears of no miss. */
void dbLookupsRepeat(db *d, bool on);

#endif
