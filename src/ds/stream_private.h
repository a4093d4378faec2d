/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private declarations of ds/stream.h and ds/stream_group.h. */
#ifndef DS_STREAM_PRIVATE_H
#define DS_STREAM_PRIVATE_H

#include "base/base.h"
#include "ds/ordered.h"
#include "ds/stream.h"
#include "ds/stream_group.h"
#include "ds/stream_producers.h"

/* Index of the nodes of a stream with more than one node (stream_index.c). */
typedef struct streamIndex {
    idTree nodes;        /* by first id; one value: the node's address */
    size_t node_bytes;   /* memory of all nodes */
    uint32_t version;    /* another one when a node has been replaced: cursors are found anew */
    streamId compact_at; /* where streamCompact() continues */
} streamIndex;

/* The groups and producers of a stream; most streams have neither. */
typedef struct streamParties {
    orderedIndex groups;        /* by name */
    streamProducers *producers; /* NULL: none */
} streamParties;

/* Invariant: only loaded nodes and the first one after trimming may be without live entries; `tail`
 * is the last node; first_id is that of the first live entry. */
struct stream {
    streamNode *tail; /* NULL: no node */
    streamId tail_key, last_id;
    uint64_t length, entries_added;
    streamId first_id, max_deleted_id;
    streamIndex *index;     /* NULL: no other node */
    streamParties *parties; /* NULL: none */
    streamFrozen *frozen;   /* NULL: not being read as of an earlier moment */
};
_Static_assert(sizeof(stream) <= 112, "a size class of the heap; most streams are short");

struct streamConsumer {
    idTree pending; /* ids, no values */
    int64_t seen_ms, active_ms;
    uint32_t number;
    uint32_t name_len;
    char name[];
};

/* Pending entries of a group in the order of their delivery; see stream_idle.c. */
typedef struct streamTimes streamTimes;

/* Invariants: an id is in `pending` if and only if it is in the tree of the consumer with the
 * number stored with it; no pending entry that is still in the stream was delivered before
 * oldest_ms. */
struct streamGroup {
    streamId last_id;
    int64_t entries_read;
    idTree pending;              /* values: delivery time, delivery count, number of the consumer */
    orderedIndex consumers;      /* by name */
    streamConsumer **by_number;  /* NULL: the number is free */
    uint32_t number_count, free; /* entries of by_number; all below `free` are in use */
    uint32_t number_cap;
    uint32_t name_len;
    int64_t oldest_ms;
    streamTimes *times;  /* NULL: idle entries are found by a walk */
    uint32_t time_walks; /* since there were no `times` */
    char name[];
};

/* Finds the first node whose key is at or above `id`, or the last node whose key is at or below it.
 * False: there is no such node, and *p is undefined. */
bool streamSeek(const stream *s, streamId id, streamPlace *p);
bool streamSeekBack(const stream *s, streamId id, streamPlace *p);
/* Moves to the following or preceding node. False: there is none, and *p must not be used any
 * more. */
bool streamPlaceNext(streamPlace *p);
bool streamPlacePrev(streamPlace *p);
/* Adds a node after the others. */
void streamNodesAdd(stream *s, streamId key, streamNode *n);
/* Called after a node that had `cap` bytes has moved from `old` to `n`, or has another size. */
void streamNodesChanged(stream *s, streamId key, const streamNode *old, size_t cap, streamNode *n);
/* Removes a node from the index; the caller frees it. */
void streamNodesRemove(stream *s, streamId key, const streamNode *n);
/* Memory of nodes and index. */
size_t streamNodesBytes(const stream *s);
/* Frees all nodes and the index. */
void streamNodesFree(stream *s, void *by);
const char *streamVerifyIndex(const stream *s);

/* Replaces the node of a place by one that can be changed. */
void streamOpenNode(stream *s, streamPlace *p);
/* Prepares the node of a place for reading. *copy is freed, and becomes NULL, or a block that the
 * node of the place is in then and that the caller frees by memFree(). `uses`: the read counts as
 * use of the node. */
void streamReadUnusual(const stream *s, streamPlace *p, bool uses, streamNode **copy);
static inline void streamReadNode(const stream *s, streamPlace *p, bool uses, streamNode **copy) {
    if (unlikely(p->node->coded | p->node->marked) || unlikely(*copy != NULL))
        streamReadUnusual(s, p, uses, copy);
}

/* Reads a pending entry from an entry of the group's tree. */
void streamToPending(const streamGroup *g, const idEntry *entry, streamPending *out);

/* Called while s->frozen is set: before the content of a node changes, and after a node was
 * added. */
void streamFrozenBefore(stream *s, streamId key, const streamNode *n);
void streamFrozenAdded(stream *s, streamId key);
/* Called after a node was removed. True: ownership of the node was taken, so the caller must not
 * free it. */
bool streamFrozenTake(stream *s, streamId key, const streamNode *n);

/* Creates s->parties if it is NULL; frees it if there are neither groups nor producers
 * (stream_group.c). */
streamParties *streamPartiesMake(stream *s);
void streamPartiesDrop(stream *s);
/* Copies and frees the groups of a stream (stream_group.c). */
void streamCopyGroups(stream *to, const stream *from);
void streamFreeGroups(stream *s);
size_t streamGroupsBytes(const stream *s, size_t samples);
/* Called when pending entries may be older than oldest_ms and `times` of their groups say: resets
 * both. */
void streamForgetOldest(stream *s);
/* If the group has `times`: an entry was delivered. It is pending since `before_ms`, when it was
 * delivered before; STREAM_UNKNOWN: it was not. */
void streamTimesAdd(streamGroup *g, const streamPending *p, int64_t before_ms);
void streamTimesFree(streamGroup *g);
size_t streamTimesBytes(const streamGroup *g);
void streamTimesCompact(streamGroup *g, uint64_t *moved, uint64_t *kept);
const char *streamTimesVerify(const stream *s, const streamGroup *g);
/* Copies the table of producers of a stream to another stream, and frees that table
 * (stream_producers.c). `of_stream`: the copy belongs to a stream, so its ids expire. */
void streamProducersCopy(stream *to, const stream *of, bool of_stream);
void streamProducersDrop(stream *s);
/* Measures, moves and verifies a table of producers; NULL is allowed. */
size_t streamProducersBytes(const streamProducers *t);
void streamProducersCompact(streamProducers *t, uint64_t *moved, uint64_t *kept);
const char *streamProducersVerify(const streamProducers *t);
/* Defragments the memory of the groups. */
void streamCompactGroups(stream *s, uint64_t *moved, uint64_t *kept);
const char *streamVerifyGroups(const stream *s);

#endif
