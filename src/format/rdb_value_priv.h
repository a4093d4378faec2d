/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the readers of values. Main thread. */
#ifndef FORMAT_RDB_VALUE_PRIV_H
#define FORMAT_RDB_VALUE_PRIV_H

#include "format/rdb_value.h"

/* One value being read. On an error `o` holds what was built so far, which rdbReadValue() frees. */
typedef struct valueReader {
    rdbReader *r;
    slice key;
    const rdbReadOptions *options;
    robj *o;
    bool dropped; /* fields had expired */
} valueReader;

/* The number of elements to reserve for an announced count, which is untrusted. */
size_t rdbReserveCount(uint64_t announced);
/* True if the field or member of v->key has expired and must not be stored. */
bool rdbDropItem(valueReader *v, valueType type, slice item, int64_t time_ms);
/* Reads the bytes of a listpack, borrowed until the next read; they are not validated yet. */
status rdbReadListpack(rdbReader *r, slice *out) MUST_USE;
/* Makes v->o an empty hash with room for `count` fields; `timed`: they may have times. */
void rdbBeginHash(valueReader *v, uint64_t count, bool timed);
/* Adds a field of a hash to v->o, which exists, unless the field has expired; the time is
 * HASH_NO_TIME for none. Fails if the hash has the field already. */
status rdbAddField(valueReader *v, const slice pair[2], int64_t time_ms) MUST_USE;
/* Reads a list of nodes: ziplists, or (`second`) plain and packed nodes. */
status rdbReadQuicklist(valueReader *v, bool second) MUST_USE;
/* Reads a collection stored as one string. */
status rdbReadPacked(valueReader *v, int type) MUST_USE;
void rdbWriteStream(rdbWriter *w, const robj *o);
/* Reads a value of a type that only files of Redis have (rdb_redis.h). */
status rdbReadRedisValue(valueReader *v, int type) MUST_USE;
/* Reads any of the types of streams. */
status rdbReadStream(valueReader *v, int type) MUST_USE;

#endif
