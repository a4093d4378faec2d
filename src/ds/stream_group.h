/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups of consumers of a stream, and their pending entries.
 *
 * A pending entry's owner, delivery time and count are kept once, in the group's tree (ds/id_tree.h); each consumer has a
 * set of the ids it owns, so that walking one of many consumers costs what that one owns. Together some 8 to 12 bytes per
 * pending entry. Names are any bytes; groups and consumers are listed in their byte order. Same owner as the stream. */
#ifndef DS_STREAM_GROUP_H
#define DS_STREAM_GROUP_H

#include "ds/ordered.h"
#include "ds/stream.h"

typedef struct streamGroup streamGroup;
typedef struct streamConsumer streamConsumer;

/* entries-read of a group that does not know, active time of a consumer that never got an entry. */
#define STREAM_UNKNOWN INT64_C(-1)

/* ---- groups ---- */

uint64_t streamGroupCount(const stream *s);
/* NULL: there is none. */
streamGroup *streamGroupFind(const stream *s, slice name);
/* NULL: there is one of that name. */
streamGroup *streamGroupCreate(stream *s, slice name, streamId last_id, int64_t entries_read);
void streamGroupDestroy(stream *s, streamGroup *g);
/* Walk in order of names; NULL at the end. */
streamGroup *streamGroupFirst(const stream *s, orderedCursor *at);
streamGroup *streamGroupNext(orderedCursor *at);
slice streamGroupName(const streamGroup *g);

streamId streamGroupLastId(const streamGroup *g);
int64_t streamGroupEntriesRead(const streamGroup *g);
void streamGroupSetLastId(streamGroup *g, streamId id, int64_t entries_read);

/* What is known of the number of entries up to `id` that were ever added; STREAM_UNKNOWN when removals hide it. */
int64_t streamEstimateRead(const stream *s, streamId id);
/* How far the group is behind the stream's end; false: unknown. */
bool streamGroupLag(const stream *s, const streamGroup *g, int64_t *lag);
/* The entry `id`, which follows the group's last one, is delivered: moves last id and entries-read. */
void streamGroupAdvance(const stream *s, streamGroup *g, streamId id);

/* ---- consumers ---- */

uint64_t streamConsumerCount(const streamGroup *g);
streamConsumer *streamConsumerFind(const streamGroup *g, slice name);
/* NULL: there is one of that name. Seen at `now_ms`, never active. */
streamConsumer *streamConsumerCreate(streamGroup *g, slice name, int64_t now_ms);
/* Its pending entries go too; returns how many. */
uint64_t streamConsumerRemove(streamGroup *g, streamConsumer *c);
streamConsumer *streamConsumerFirst(const streamGroup *g, orderedCursor *at);
streamConsumer *streamConsumerNext(orderedCursor *at);
slice streamConsumerName(const streamConsumer *c);
/* Unix time in ms of its last request, and of the last one that gave it an entry. */
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
/* Adds the entry, or replaces owner, time and count of the one there is. */
void streamPendingSet(streamGroup *g, const streamPending *p);
/* False: there is none. */
bool streamPendingRemove(streamGroup *g, streamId id);

/* A walk in order of ids. Between two steps entries may be changed, and removed up to the last one that was read. */
typedef struct streamPendingCursor {
    const streamGroup *g; /* private */
    const idTree *ids;
    streamId next;
    bool ended;
} streamPendingCursor;
/* From the first entry at or after `from`; of one consumer when `of` is not NULL. */
void streamPendingSeek(streamPendingCursor *at, const streamGroup *g, const streamConsumer *of,
                       streamId from);
bool streamPendingNext(streamPendingCursor *at, streamPending *out);
/* The last entry of the group; false: there is none. */
bool streamPendingLast(const streamGroup *g, streamPending *out);

#endif
