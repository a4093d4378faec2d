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

/* Invariant: `nodes` maps first ids to nodes; only loaded nodes and the first one after trimming
 * may be without live entries; `tail` is the last one; first_id is that of the first live entry. */
struct stream {
    idTree nodes; /* one value: the node's address */
    size_t node_bytes;
    uint64_t length, entries_added;
    streamId last_id, first_id, max_deleted_id;
    streamNode *tail; /* NULL: no node */
    streamId tail_key;
    orderedIndex groups;        /* by name */
    streamId compact_at;        /* where streamCompact() continues */
    streamFrozen *frozen;       /* NULL: not being read as of an earlier moment */
    streamProducers *producers; /* NULL: none; accessed by stream_producers.c and owners alone */
};

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
    streamConsumer **by_number;  /* NULL: free */
    uint32_t number_count, free; /* entries of by_number; all below `free` are in use */
    uint32_t number_cap;
    uint32_t name_len;
    int64_t oldest_ms;
    streamTimes *times;  /* NULL: entries are found by a walk */
    uint32_t time_walks; /* since there were no `times` */
    char name[];
};

/* An entry of the group's tree. */
void streamToPending(const streamGroup *g, const idEntry *entry, streamPending *out);

/* While s->frozen is set: before a node's content changes; after one was added. */
void streamFrozenBefore(stream *s, streamId key, const streamNode *n);
void streamFrozenAdded(stream *s, streamId key);
/* A node was removed. True: it was taken over, and is not to be freed. */
bool streamFrozenTake(stream *s, streamId key, const streamNode *n);

/* Copies and frees the groups of a stream (stream_group.c). */
void streamCopyGroups(stream *to, const stream *from);
void streamFreeGroups(stream *s);
size_t streamGroupsBytes(const stream *s, size_t samples);
/* Pending entries may have become older than their groups know (oldest_ms, times). */
void streamForgetOldest(stream *s);
/* If the group has `times`: an entry was delivered. It is pending since `before_ms`, when it was
 * delivered before; STREAM_UNKNOWN: it was not. */
void streamTimesAdd(streamGroup *g, const streamPending *p, int64_t before_ms);
void streamTimesFree(streamGroup *g);
size_t streamTimesBytes(const streamGroup *g);
void streamTimesCompact(streamGroup *g, uint64_t *moved, uint64_t *kept);
const char *streamTimesVerify(const stream *s, const streamGroup *g);
/* Copies, frees, measures and moves a table of producers (stream_producers.c); NULL is allowed.
 * `of_stream`: the copy belongs to a stream, so its ids are to expire. */
streamProducers *streamProducersCopy(const streamProducers *from, bool of_stream);
void streamProducersFree(streamProducers *t);
size_t streamProducersBytes(const streamProducers *t);
void streamProducersCompact(streamProducers *t, uint64_t *moved, uint64_t *kept);
const char *streamProducersVerify(const streamProducers *t);
/* Moves the groups' blocks. */
void streamCompactGroups(stream *s, uint64_t *moved, uint64_t *kept);
const char *streamVerifyGroups(const stream *s);

#endif
