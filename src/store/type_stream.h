/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams as values of objects: always in blocks of their own, never embedded in the object, and
 * kept when empty. Nodes are allocated in the element slabs. Main thread only, except freeing. */
#ifndef STORE_TYPE_STREAM_H
#define STORE_TYPE_STREAM_H

#include "base/alloc.h"
#include "ds/stream.h"
#include "ds/stream_group.h"
#include "store/object.h"

/* Sets the allocator of stream nodes to the element slabs. Called once, at startup. */
void streamTypeInit(void);
/* Creates an object with an empty stream, for a key that does not exist. */
robj *streamObjectNew(slice key) MUST_USE;
/* The stream of an object of TYPE_STREAM; it is changed in place, and the object keeps its
 * address. */
static inline stream *streamOf(const robj *o) { return objectPointer(o); }

#endif
