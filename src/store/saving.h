/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks the main keyspace while it changes, and passes on every object exactly once, as it was at
 * the start: a snapshot without a fork.
 *
 * The walk visits the tables in slices (ds/hashtable_walk.h). Large values are passed on in parts
 * (saving_value.h). An object that has not been visited is passed on before its first change, or
 * before it is removed, and gets a mark, so that the walk skips it. New objects beyond the cut get
 * the mark, too. The walk removes each mark that it meets; afterwards no object has one. While it
 * runs, tables are resized, slabs are compacted and objects are changed in place as always. Main
 * thread only. */
#ifndef STORE_SAVING_H
#define STORE_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slots.h"
#include "ds/quicklist.h"
#include "ds/stream.h"
#include "store/object.h"
#include "store/type.h"

/* The key of a value that is passed on in parts. */
typedef struct savedValue {
    int db_id;
    const robj *head;   /* type, key, expiry time and access; it has no value */
    uint64_t count;     /* of elements, or nodes of a list or stream */
    bool is_timed;      /* some fields of the hash have a TTL */
    const stream *rest; /* of a stream: as for stream_rest(); else NULL */
} savedValue;

/* True if the value is so large that a saver should take it in parts: by the number of its elements
 * or nodes, or by its bytes. For a value in memory of its own. */
bool storeSavingIsLarge(const robj *o);

/* Receives the objects of the start; `db_id` is the database they were in then. The callbacks must
 * not change the store. */
typedef struct storeSaver {
    /* An object met by the walk. false: there is no room; it is offered again in the next slice. */
    bool (*offer)(void *arg, int db_id, const robj *o);
    /* An object that is about to change or to be removed; it cannot wait. */
    void (*take)(void *arg, int db_id, const robj *o);
    /* Called before a change while values are open, because the last change may have put aside
     * elements or nodes, whose memory counts (storeSavingBytes()). */
    void (*limit)(void *arg);
    /* True if the value of an object, a table of elements or a list or stream of nodes, is to be
     * passed on in parts: its key, so many elements or nodes, the end. take() may be called in
     * between, element() in the course of any change. */
    bool (*divides)(void *arg, const robj *o);
    void (*begin)(void *arg, const savedValue *value);
    void (*element)(void *arg, const valueElement *element);
    void (*node)(void *arg, const quicklistNodeView *node);
    void (*stream_node)(void *arg, streamId key, const streamNode *node);
    /* After the nodes: the counters and groups of a stream that has no nodes itself. Called with
     * the same arguments until it returns false; it passes on about `count` groups, consumers and
     * pending entries. */
    bool (*stream_rest)(void *arg, const stream *rest, uint64_t count);
    void (*end)(void *arg);
    void *arg;
} storeSaver;

/* Defines the start. No walk may be under way. `slots`: of these alone, which is copied; NULL: of
 * all, hidden ones too. Costs O(databases). */
void storeSavingBegin(const storeSaver *saver, const slotMask *slots);
/* Visits at most `buckets` buckets, of some 7 objects or elements each. Returns false when the walk
 * has ended. */
bool storeSavingStep(uint64_t buckets);
/* Passes on no more objects; the walk goes on removing marks until its end. */
void storeSavingAbandon(void);
/* True until the walk has ended, abandoned or not. */
bool storeSavingRuns(void);
bool storeSavingIsAbandoned(void);
/* Keys and elements that were added beyond the cut since the start: the walk has to visit them,
 * too. */
uint64_t storeSavingAdded(void);
/* Memory of elements and nodes that were put aside until their value's turn comes, in bytes. */
size_t storeSavingBytes(void);
/* Approximate memory of values that were removed, and are freed when they have been passed on, in
 * bytes. */
size_t storeSavingKeptBytes(void);

#endif
