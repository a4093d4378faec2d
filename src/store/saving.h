/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks the main keyspace while it changes, and passes on every object exactly once, as it was at the start: a snapshot
 * without a fork.
 *
 * The walk visits the tables in slices (ds/hashtable_walk.h). An object that has not been visited is passed on before
 * its first change, or before it is removed, and gets a mark, so that the walk skips it. New objects beyond the cut get
 * the mark, too. The walk removes each mark that it meets; afterwards no object has one. While it runs, tables are
 * resized, slabs are compacted and objects are changed in place as always. Main thread only. */
#ifndef STORE_SAVING_H
#define STORE_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/object.h"

/* Receives the objects of the start; `db_id` is the database they were in then. The callbacks must not change the store,
 * but may call storeSavingAbandon(). */
typedef struct storeSaver {
    /* An object met by the walk. false: there is no room; it is offered again in the next slice. */
    bool (*offer)(void *arg, int db_id, const robj *o);
    /* An object that is about to change or to be removed; it cannot wait. */
    void (*take)(void *arg, int db_id, const robj *o);
    void *arg;
} storeSaver;

/* Defines the start. No walk may be under way. Costs O(databases). */
void storeSavingBegin(const storeSaver *saver);
/* Visits at most `buckets` buckets, of some 7 objects each. Returns false when the walk has ended. */
bool storeSavingStep(uint64_t buckets);
/* Passes on no more objects; the walk goes on removing marks until its end. */
void storeSavingAbandon(void);
/* True until the walk has ended, abandoned or not. */
bool storeSavingRuns(void);
bool storeSavingIsAbandoned(void);
/* Keys that were added beyond the cut since the start: the walk has to visit them, too. */
uint64_t storeSavingAdded(void);

#endif
