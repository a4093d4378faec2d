/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Consumer groups of a stream, and their pending entries.
 *
 * The owner, delivery time and delivery count of a pending entry are stored once, in the group's
 * tree (ds/id_tree.h). Each consumer also has a set of the ids it owns, so iterating over one
 * consumer's entries does not visit those of the others. Both take 8 to 12 bytes per pending entry.
 * Names are binary; groups and consumers are listed in byte order of their names. Thread: as the
 * stream. */
#ifndef DS_STREAM_GROUP_H
#define DS_STREAM_GROUP_H

#include "ds/ordered.h"
#include "ds/stream.h"

typedef struct streamGroup streamGroup;
typedef struct streamConsumer streamConsumer;

/* Unknown entries-read of a group; active time of a consumer that has never received an entry. */
#define STREAM_UNKNOWN INT64_C(-1)

/* ---- groups ---- */

uint64_t streamGroupCount(const stream *s);
/* NULL: there is none. */
streamGroup *streamGroupFind(const stream *s, slice name);
/* NULL if the name exists. */
streamGroup *streamGroupCreate(stream *s, slice name, streamId last_id, int64_t entries_read);
void streamGroupDestroy(stream *s, streamGroup *g);
/* Iterate in order of names; NULL at the end. */
streamGroup *streamGroupFirst(const stream *s, orderedCursor *at);
streamGroup *streamGroupNext(orderedCursor *at);
slice streamGroupName(const streamGroup *g);

streamId streamGroupLastId(const streamGroup *g);
int64_t streamGroupEntriesRead(const streamGroup *g);
void streamGroupSetLastId(streamGroup *g, streamId id, int64_t entries_read);

/* Number of entries up to `id` that were ever added; STREAM_UNKNOWN if it cannot be derived because
 * of removals. */
int64_t streamEstimateRead(const stream *s, streamId id);
/* Number of live entries after the group's last id. False: not known, because an entry after that
 * id was removed, or because counters that were set by XSETID or XGROUP contradict it. Counts the
 * entries if they are in few nodes, else it follows from the counters. */
bool streamGroupLag(const stream *s, const streamGroup *g, int64_t *lag);
/* Updates last id and entries-read for the delivery of `id`, the entry after the group's last
 * one. */
void streamGroupAdvance(const stream *s, streamGroup *g, streamId id);

/* ---- consumers ---- */

uint64_t streamConsumerCount(const streamGroup *g);
streamConsumer *streamConsumerFind(const streamGroup *g, slice name);
/* NULL if the name exists. The new consumer was seen at `now_ms` and never active. */
streamConsumer *streamConsumerCreate(streamGroup *g, slice name, int64_t now_ms);
/* Removes the consumer with its pending entries; returns their number. */
uint64_t streamConsumerRemove(streamGroup *g, streamConsumer *c);
streamConsumer *streamConsumerFirst(const streamGroup *g, orderedCursor *at);
streamConsumer *streamConsumerNext(orderedCursor *at);
slice streamConsumerName(const streamConsumer *c);
/* Unix time in ms of its last request, and of its last request that returned an entry. */
int64_t streamConsumerSeen(const streamConsumer *c);
int64_t streamConsumerActive(const streamConsumer *c);
void streamConsumerSetSeen(streamConsumer *c, int64_t ms);
void streamConsumerSetActive(streamConsumer *c, int64_t ms);
uint64_t streamConsumerPending(const streamConsumer *c);

/* ---- pending entries ---- */

typedef struct streamPending {
    streamId id;
    streamConsumer *owner;
    int64_t delivered_ms; /* Unix time */
    uint64_t deliveries;
} streamPending;

uint64_t streamPendingCount(const streamGroup *g);
bool streamPendingFind(const streamGroup *g, streamId id, streamPending *out);
/* Adds the entry, or replaces owner, time and count of an existing one. */
void streamPendingSet(streamGroup *g, const streamPending *p);
/* False: there is none. */
bool streamPendingRemove(streamGroup *g, streamId id);

/* True if a group has not read the entry, or has it pending. */
bool streamIsReferenced(const stream *s, streamId id);

/* Finds pending entries that were delivered at or before `until_ms` and are still in the stream, at
 * most `max` (0: all): those delivered first, in this order. Returns their number; *out is a block
 * that the caller frees. If an entry may be that old, the first call looks at all pending entries
 * of the group, and the second one makes an index, which is kept while it is used; later calls cost
 * what they return. */
size_t streamPendingIdle(const stream *s, streamGroup *g, int64_t until_ms, uint64_t max,
                         streamPending **out);
/* No pending entry that is still in the stream was delivered before this time; INT64_MAX: there is
 * none. streamPendingIdle() has made it later if it found nothing. */
int64_t streamPendingOldest(const streamGroup *g);

/* Iteration in order of ids. Between two steps entries may be changed; those up to the last one
 * returned may be removed. */
typedef struct streamPendingCursor {
    const streamGroup *g; /* private */
    const idTree *ids;
    streamId next;
    bool ended;
} streamPendingCursor;
/* From the first entry at or after `from`; of one consumer if `of` is not NULL. */
void streamPendingSeek(streamPendingCursor *at, const streamGroup *g, const streamConsumer *of,
                       streamId from);
bool streamPendingNext(streamPendingCursor *at, streamPending *out);
/* The last entry of the group; false: there is none. */
bool streamPendingLast(const streamGroup *g, streamPending *out);

#endif
