/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node of a stream: some entries one after the other in one block, with the field names of the first one kept once.
 *
 *   [header] [number of names] [name]...  then per entry:
 *   [bytes that follow: 1-5] [flags and sizes: 1] [ms] [seq] then [value]..., for names as in the header, or
 *   [number of fields: 1-5] [name, value]...
 *
 * Names and values are listpack entries without their end (ds/listpack.h), numbers of 1 to 5 bytes have 7 bits in each
 * byte. ms is the difference from the node's first id, seq is so while ms is 0; both take as many bytes as they need.
 * Saved in RDB files, a node is the listpack that streamNodeToListpack() makes; in memory it takes 8 to 20 % less,
 * and an entry is passed over without a look at its fields.
 *
 * Removed entries are marked and keep their id; their fields are dropped when they are half of the node. The first id is
 * the node's key and kept by its owner. ANY_THREAD that owns the node. */
#ifndef DS_STREAM_NODE_H
#define DS_STREAM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/listpack.h"
#include "ds/stream_id.h"

typedef struct streamNode {
    uint32_t room, used; /* bytes of the block */
    uint32_t packed;     /* bytes of entries and names as a listpack, dropped fields included */
    uint32_t live, deleted;
    uint32_t first, last; /* offsets of the first and last entry; last 0: none */
    uint32_t stale;       /* bytes of fields of removed entries */
    uint8_t bytes[];
} streamNode;

/* Where nodes are allocated. */
typedef struct streamMemory {
    void *(*alloc)(size_t size);
    /* `by` is what the one who frees the stream passed. */
    void (*free)(void *block, size_t size, void *by);
    /* Bytes a block for `size` can hold. */
    size_t (*usable)(size_t size);
} streamMemory;
/* Before the first stream is made; memAlloc() without it. */
void streamSetMemory(const streamMemory *memory);

/* Most bytes of fields and values of one entry. */
#define STREAM_ENTRY_BYTES_MAX ((size_t)1 << 30)

/* ---- whole nodes ---- */

/* A node without entries, whose names are those of `fields` (name, value, name...), `count` slices; `room` is how large it
 * may become before it moves. */
streamNode *streamNodeNew(const slice *fields, size_t count, size_t room);
void streamNodeFree(streamNode *n, void *by);
streamNode *streamNodeCopy(const streamNode *n);
/* Returns the node in a block no larger than needed. */
streamNode *streamNodeFit(streamNode *n);
/* Bytes it would have as a listpack before any field was dropped; what Valkey's limit on a node's size counts. */
size_t streamNodePackedSize(const streamNode *n);

/* ---- entries ---- */

/* A place in a node: an entry or the end. Valid until the node changes. */
typedef struct streamEntry {
    streamId id;
    uint32_t at;   /* private: offset of the entry */
    uint32_t next; /* private: of the one after it */
    uint32_t body; /* private: of its fields */
    bool deleted, same_fields;
} streamEntry;

/* Appends an entry; fields as in streamNodeNew(). `key` is the node's first id, below or equal to `id`. Returns the node,
 * which may have moved. */
streamNode *streamNodeAppend(streamNode *n, streamId key, streamId id, const slice *fields,
                             size_t count);
/* Read the first entry or the last one, removed or not; false: there is none. */
bool streamNodeFirst(const streamNode *n, streamId key, streamEntry *out);
bool streamNodeLast(const streamNode *n, streamId key, streamEntry *out);
/* Moves to the following entry; false: there is none, and *e is as it was. */
bool streamNodeNext(const streamNode *n, streamId key, streamEntry *e);
/* The entry at an offset that a streamEntry had. */
void streamNodeRead(const streamNode *n, streamId key, uint32_t at, streamEntry *out);
/* The first entry at or after `id`, removed or not. False: there is none. */
bool streamNodeSeek(const streamNode *n, streamId key, streamId id, streamEntry *out);
/* Marks an entry that is live as removed. */
void streamNodeMark(streamNode *n, streamEntry *e);
/* Drops the fields of removed entries when they are half of the node; returns the node, which may have moved. */
streamNode *streamNodeSettle(streamNode *n, streamId key);

/* ---- fields ---- */

/* A walk over the fields of an entry. */
typedef struct streamFields {
    const uint8_t *name; /* private: NULL: names are with the values */
    const uint8_t *at;
    uint32_t left; /* fields still to come */
} streamFields;
void streamNodeFields(const streamNode *n, const streamEntry *e, streamFields *out);
/* The next field; one must be left. Content is borrowed. */
static inline void streamFieldsNext(streamFields *f, listpackItem *name, listpackItem *value) {
    f->left--;
    if (f->name) {
        f->name = listpackReadBody(f->name, name);
    } else {
        f->at = listpackReadBody(f->at, name);
    }
    f->at = listpackReadBody(f->at, value);
}

/* ---- the disk format ---- */

/* Bytes of the listpack of the node as it is. */
size_t streamNodeListpackSize(const streamNode *n, streamId key);
/* Writes that listpack. Removed entries whose fields were dropped have none. */
void streamNodeToListpack(const streamNode *n, streamId key, uint8_t *out);
/* The node that a listpack describes, whatever its bytes; NULL: it is no sound node of a stream whose first id is `key`.
 * Every entry must be sound, ids ascend, the counts be right, and nothing follow the last entry. */
streamNode *streamNodeFromListpack(const void *bytes, size_t size, streamId key);

#endif
