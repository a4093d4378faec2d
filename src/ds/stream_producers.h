/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ids that producers gave to entries of a stream (XADD IDMP), so that an entry which is sent twice
 * is added once.
 *
 * A stream has this table only after it was used; without it, it costs a pointer. An id takes
 * about 80 bytes and its text. All operations are O(log n) unless a comment says otherwise. An id
 * is forgotten when its entry is older than the duration, when its producer has more than ids_max
 * of them, and when one of the two limits changes; removing the entry does not matter. Thread: as
 * the stream. */
#ifndef DS_STREAM_PRODUCERS_H
#define DS_STREAM_PRODUCERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/list.h"
#include "ds/ordered.h"
#include "ds/stream.h"

typedef struct streamProducers streamProducers;
typedef struct streamProducer streamProducer;

enum {
    STREAM_IDS_DURATION_MAX_S = 86400,
    STREAM_IDS_COUNT_MAX = 10000,
    STREAM_IDS_DEFAULT = 100, /* of both limits */
};

/* Limits and counters of a table; the counters are those since the stream was created. */
typedef struct streamProducersState {
    uint32_t duration_s, ids_max; /* ids_max: of each producer */
    uint64_t added, duplicates;
} streamProducersState;
/* True if both limits are in their ranges. */
bool streamProducersStateIsValid(const streamProducersState *state);
/* The state of a stream without a table. */
streamProducersState streamProducersStateDefault(void);
bool streamProducersStateEqual(const streamProducersState *a, const streamProducersState *b);

/* The table of a stream; NULL: it has none. */
streamProducers *streamProducersOf(const stream *s);
/* The same; creates it if there is none. */
streamProducers *streamProducersMake(stream *s);

streamProducersState streamProducersGet(const streamProducers *t);
/* Sets limits and counters; `state` is valid. Forgets all ids if a limit changes; O(ids) then. */
void streamProducersSet(streamProducers *t, const streamProducersState *state);
/* Numbers of producers that have ids, and of ids. */
uint64_t streamProducersCount(const streamProducers *t);
uint64_t streamProducersIds(const streamProducers *t);

/* Finds the entry that the producer gave this id; false if it has none that has not expired at that
 * time (0: none has). */
bool streamProducedFind(const streamProducers *t, int64_t now_ms, slice producer, slice iid,
                        streamId *out);
/* Adds an id, counts it, and forgets the producer's oldest one if it has too many. An id that
 * exists is replaced. */
void streamProducedAdd(streamProducers *t, slice producer, slice iid, streamId id);
void streamProducersCountDuplicate(streamProducers *t);
/* Forgets ids that have expired, at most `most`; returns their number. */
uint64_t streamProducersExpire(streamProducers *t, int64_t now_ms, uint64_t most);
/* Does so with some tables of all streams, in turn. Main thread. */
void streamProducersExpireSome(int64_t now_ms);

/* ---- iteration: producers by name, ids in the order in which they were added ---- */

const streamProducer *streamProducerFirst(const streamProducers *t, orderedCursor *at);
const streamProducer *streamProducerNext(orderedCursor *at);
slice streamProducerName(const streamProducer *p);
uint64_t streamProducerIds(const streamProducer *p);
/* A place among the ids of a producer. */
typedef struct streamProducedCursor {
    const list *ids; /* private */
    const listNode *next;
} streamProducedCursor;
void streamProducedBegin(streamProducedCursor *at, const streamProducer *p);
/* Borrowed until the table changes; false at the end. */
bool streamProducedNext(streamProducedCursor *at, slice *iid, streamId *id);

#endif
