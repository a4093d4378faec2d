/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams as values of keyspace objects: always behind the pointer, whatever their length, and kept when empty. Nodes are
 * in the store of elements. Main thread only, but for freeing. */
#ifndef STORE_TYPE_STREAM_H
#define STORE_TYPE_STREAM_H

#include "base/alloc.h"
#include "ds/stream.h"
#include "ds/stream_group.h"
#include "store/object.h"

/* Streams take their nodes from the store of elements. Once, at startup. */
void streamTypeInit(void);
/* An object with an empty stream, for a key that does not exist. */
robj *streamObjectNew(slice key) MUST_USE;
/* The stream of an object of TYPE_STREAM; changed in place, the object stays. */
static inline stream *streamOf(const robj *o) { return objectPointer(o); }

#endif
