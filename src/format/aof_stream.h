/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stream as commands, whole or in parts: the entries of each node, then counters and groups. Main
 * thread, or a forked child. */
#ifndef FORMAT_AOF_STREAM_H
#define FORMAT_AOF_STREAM_H

#include <stdbool.h>

#include "ds/stream.h"
#include "ds/stream_group.h"
#include "ds/stream_producers.h"
#include "format/rdb_writer.h"

/* State of writing the commands that follow the nodes. `.from` is set and the rest 0 before the
 * first call of aofWriteStreamRest(); the stream must not change until the last one. */
typedef struct aofStreamRest {
    const stream *from;
    enum {
        AOF_REST_COUNTERS,
        AOF_REST_GROUP,
        AOF_REST_PENDING,
        AOF_REST_CONSUMER,
        AOF_REST_IDS
    } next; /* private, like what follows */
    streamGroup *group;
    streamConsumer *consumer;
    orderedCursor groups, consumers;
    streamPendingCursor pending;
    const streamProducer *producer;
    streamProducedCursor ids;
} aofStreamRest;

/* The entries of a node; `first` is its first id. */
void aofWriteStreamNode(rdbWriter *w, slice key, streamId first, const streamNode *node);
/* Writes about `count` groups, consumers, pending entries and ids of producers; false at the end.
 * For a stream without entries, this also creates the stream. */
bool aofWriteStreamRest(rdbWriter *w, slice key, aofStreamRest *r, uint64_t count);

#endif
