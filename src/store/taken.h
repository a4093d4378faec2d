/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of a slot that were taken out of their database at once: no lookup, count or scan finds
 * them any more, while their owner visits them in slices; then they are freed in the background.
 * Main thread only. */
#ifndef STORE_TAKEN_H
#define STORE_TAKEN_H

#include "store/store.h"

typedef struct takenKeys takenKeys;

/* Takes the keys of a slot of the main keyspace; NULL: there are none. O(1), unless a listener
 * wants to see each key before. */
takenKeys *dbTakeSlot(db *d, int slot);
db *takenDb(const takenKeys *t);
uint64_t takenCount(const takenKeys *t);
/* True while a snapshot still has to get some of the keys, which it does in its own slices: until
 * then takenStep() visits none, except with UINT64_MAX buckets. */
bool takenIsHeld(const takenKeys *t);
/* Passes the keys of at most `buckets` buckets, of some 7 keys each, to `visit`; NULL: the keys are
 * freed without being visited. Returns false at the end, when `t` and the keys have been freed. */
bool takenStep(takenKeys *t, uint64_t buckets, dbVisitProc *visit, void *arg);
/* Frees the keys, whether they were visited or not. */
void takenFree(takenKeys *t);

#endif
