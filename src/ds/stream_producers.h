/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Table of the ids that producers have sent with entries of a stream (XADD IDMP). An entry that is
 * sent twice with the same id is added once.
 *
 * A stream has this table only after the option was used; without the table, the stream pays for a
 * pointer. An id takes about 80 bytes and its text. All operations are O(log n) unless a comment
 * says otherwise. An id is removed when its entry is older than the duration, when its producer has
 * more than ids_max ids, or when one of the two limits changes. Deleting the entry does not remove
 * its id. Thread: the one that owns the stream. */
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
    STREAM_IDS_DEFAULT = 100, /* default of both limits */
};

/* Limits and counters of a table; the counters count since the stream was created. */
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
/* Returns the table of a stream; creates it if the stream has none. */
streamProducers *streamProducersMake(stream *s);

streamProducersState streamProducersGet(const streamProducers *t);
/* Sets limits and counters; `state` is valid. Removes all ids if a limit changes, in O(ids). */
void streamProducersSet(streamProducers *t, const streamProducersState *state);
/* The number of producers, each of which has ids, and the number of all ids. */
uint64_t streamProducersCount(const streamProducers *t);
uint64_t streamProducersIds(const streamProducers *t);

/* Finds the entry that the producer has sent with this id; false if there is none, or if the id has
 * expired at `now_ms` (0: no id has expired). */
bool streamProducedFind(const streamProducers *t, int64_t now_ms, slice producer, slice iid,
                        streamId *out);
/* Adds an id and counts it. If the producer has too many ids then, its oldest one is removed. An id
 * that exists already is replaced. */
void streamProducedAdd(streamProducers *t, slice producer, slice iid, streamId id);
void streamProducersCountDuplicate(streamProducers *t);
/* Removes ids that have expired, at most `most`; returns their number. */
uint64_t streamProducersExpire(streamProducers *t, int64_t now_ms, uint64_t most);
/* Removes expired ids from some tables; successive calls go through the tables of all streams. Main
 * thread. */
void streamProducersExpireSome(int64_t now_ms);

/* ---- iteration: producers by name, ids in the order in which they were added ---- */

const streamProducer *streamProducerFirst(const streamProducers *t, orderedCursor *at);
const streamProducer *streamProducerNext(orderedCursor *at);
slice streamProducerName(const streamProducer *p);
uint64_t streamProducerIds(const streamProducer *p);
/* A position among the ids of a producer. */
typedef struct streamProducedCursor {
    const list *ids; /* private */
    const listNode *next;
} streamProducedCursor;
void streamProducedBegin(streamProducedCursor *at, const streamProducer *p);
/* Returns the next id; `iid` is borrowed until the table changes. False at the end. */
bool streamProducedNext(streamProducedCursor *at, slice *iid, streamId *id);

#endif
