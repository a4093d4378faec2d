/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of slots as commands, passed on in slices between requests while they change: what a
 * fork is for elsewhere. The store passes on each key before its first change (store/saving.h), and
 * large values in parts, so a change can follow in the same stream at once, behind the key as it
 * was: nothing is collected until the walk has ended, except while a large value is under way.
 *
 * There is one walk at a time, and none beside a save: it counts as a child of kind
 * CHILD_SLOT_EXPORT. Main thread only. */
#ifndef CLUSTER_SLOT_WALK_H
#define CLUSTER_SLOT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/blob.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/slots.h"
#include "base/str.h"
#include "engine/hooks.h"

/* Receives the stream. */
typedef struct slotWalkProcs {
    /* Bytes that the receiver takes now; 0: the walk waits. */
    size_t (*room)(void *arg);
    void (*send)(void *arg, slice bytes);
    /* The same by reference: a large string. The rest of its command follows at once. */
    void (*lend)(void *arg, blob *bytes);
    /* Everything was sent. */
    void (*ended)(void *arg);
    /* The walk was stopped by childKill(). */
    void (*stopped)(void *arg);
} slotWalkProcs;

/* True if a walk can begin: there is no child, and the last one has left no marks. */
bool slotWalkCanBegin(void);
/* Defines the moment, which is now. slotWalkCanBegin() must be true. */
void slotWalkBegin(const slotMask *slots, const slotWalkProcs *procs, void *arg);
/* A change of these slots: passes it on behind the keys that it changes. */
void slotWalkChange(int db_id, const slice *spans, int count);
/* The walk that passes on to `arg` is given up; no effect if there is none. */
void slotWalkStop(const void *arg);
/* The database that is selected at the end of the stream so far. */
int slotWalkDb(void);
/* Bytes that are not passed on yet. */
size_t slotWalkPending(void);
typedef struct slotWalkProgress {
    uint64_t keys, keys_total, bytes;
    uint64_t most_bytes;         /* in one turn */
    int64_t main_us, longest_us; /* of the main thread: in all turns; in the longest one */
} slotWalkProgress;
/* The progress of the present walk, or of the last one. */
slotWalkProgress slotWalkCount(void);

#endif
