/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the readers of values share. Main thread. */
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

/* An announced number of elements, limited to what may be reserved for it. */
size_t rdbReserveCount(uint64_t announced);
/* Lists of nodes: ziplists, or (`second`) containers of either kind. */
status rdbReadQuicklist(valueReader *v, bool second) MUST_USE;
/* A string that holds a whole collection. */
status rdbReadPacked(valueReader *v, int type) MUST_USE;
void rdbWriteStream(rdbWriter *w, const robj *o);
/* Any of the three types of streams. */
status rdbReadStream(valueReader *v, int type) MUST_USE;

#endif
