/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of keys in the RDB format: as in RDB files and in the body of DUMP. Main thread, or a
 * forked child. */
#ifndef FORMAT_RDB_VALUE_H
#define FORMAT_RDB_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/rdb_format.h"
#include "format/rdb_reader.h"
#include "format/rdb_writer.h"
#include "store/store.h"
#include "store/type_list.h"
#include "store/type_set.h"
#include "store/type_stream.h"

/* The type byte to write before rdbWriteValue(). */
rdbType rdbTypeOf(const robj *o);
/* The name of a type byte in messages, as "quicklist-v2"; NULL if there is no such type. */
const char *rdbTypeName(int type);
/* True if the type exists in this RDB version. */
bool rdbTypeInVersion(rdbType type, int version);
/* The version that files of the dataset need: that of Valkey 9.2 if there are path hashes. */
int rdbVersionOfDataset(void);
/* The type that a writer with released_types writes in place of `type`. The types of Valkey have no
 * expiry times of members; for Redis, hashes with fields that expire have a type of Redis, too. */
rdbType rdbTypeWritten(const rdbWriter *w, rdbType type);
/* Writes the value, without type and key: in the form of rdbTypeOf() or, with w->released_types, in
 * that of rdbTypeWritten(). Expired fields and members are included. */
void rdbWriteValue(rdbWriter *w, const robj *o);
/* The same in parts, for a value whose elements are in a table, or in nodes: its type (`timed`:
 * fields or members have TTLs), the number of elements, paths or nodes with rdbWriteLength(), then
 * each of them; elements and paths in any order. */
rdbType rdbTypeInParts(valueType type, bool timed);
/* Writes the bytes that precede the number of elements in a value of this type. */
void rdbWriteBeforeElements(rdbWriter *w, rdbType type);
void rdbWriteElement(rdbWriter *w, rdbType type, const valueElement *e);
void rdbWriteNode(rdbWriter *w, const quicklistNodeView *node);
/* A stream: the number of nodes, the nodes, then its counters and groups, of which some `count` are
 * written by a call; false at the end. `.from` is set and the rest 0 before the first call; the
 * stream must not change until the last one. */
typedef struct rdbStreamRest {
    const stream *from;
    enum {
        RDB_REST_COUNTERS,
        RDB_REST_GROUP,
        RDB_REST_PENDING,
        RDB_REST_CONSUMER,
        RDB_REST_OWNED
    } next; /* private, like what follows */
    streamGroup *group;
    streamConsumer *consumer;
    orderedCursor groups, consumers;
    streamPendingCursor pending;
} rdbStreamRest;
void rdbWriteStreamNode(rdbWriter *w, streamId key, const streamNode *node);
bool rdbWriteStreamRest(rdbWriter *w, rdbStreamRest *r, uint64_t count);
/* True if the stream has ids of producers, or settings or counts of them. */
bool rdbHasProducers(const stream *s);
/* Writes the aux field with them (rdb_producers.h), which precedes the record of the stream in a
 * file; nothing if there are none. */
void rdbWriteProducers(rdbWriter *w, const stream *s);
/* Number of bytes that rdbWriteValue() writes, with compression: serializedlength of DEBUG
 * OBJECT. */
size_t rdbValueSize(const robj *o);

/* Limits of packed values and of nodes of streams, from the directives of the types. */
typedef struct rdbLimits {
    packLimits hash, zset;
    setLimits set;
    listLimits list;
    streamLimits stream;
} rdbLimits;

/* Parameters of reading. */
typedef struct rdbReadOptions {
    rdbLimits limits;
    int db_id;      /* of the key that a payload of DUMP is for */
    storeLook look; /* fields and members expired at its time are dropped; lookAtAll(): none */
    /* Called for each dropped field or member of a value of this type; NULL: not needed. */
    void (*item_dropped)(void *arg, slice key, valueType type, slice item);
    void *arg;
} rdbReadOptions;

/* Reads a value of `type` into a new object for `key`, which the caller owns, without expiry time.
 * *out is NULL after OK when the value has no elements, or all were dropped (*dropped).
 * Fails with ERR_SYNTAX for invalid content, ERR_NOT_FOUND for an unknown type, both with the
 * reason in the reader. */
status rdbReadValue(rdbReader *r, int type, slice key, const rdbReadOptions *options, robj **out,
                    bool *dropped) MUST_USE;

#endif
