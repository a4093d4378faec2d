/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node of a stream: consecutive entries in one block, with the field names of the first one
 * stored once.
 *
 *   [header] [number of names] [name]...  then per entry:
 *   [bytes that follow: 1-5] [flags and sizes: 1] [ms] [seq] then [value]..., for names as in the
 *   header, or [number of fields: 1-5] [name, value]...
 *
 * Names and values are listpack entries without their trailing length (ds/listpack.h); numbers of 1
 * to 5 bytes have 7 bits in each byte. ms is stored as the difference from the node's first id, and
 * so is seq if that difference is 0; both take as many bytes as they need. In RDB files a node is
 * the listpack made by streamNodeToListpack(); in memory it takes 8 to 20 % less, and entries can
 * be skipped without reading their fields.
 *
 * A node that is not used may be coded (ds/node_codec.h): its header remains as it is, all else is
 * the text. Functions that take a node want one that is not coded, except where said otherwise.
 *
 * Removed entries are marked and keep their ids; their fields are dropped once they take half of
 * the node. The first id is the node's key and is stored by its owner. ANY_THREAD that owns the
 * node. */
#ifndef DS_STREAM_NODE_H
#define DS_STREAM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "ds/listpack.h"
#include "ds/node_codec.h"
#include "ds/stream_id.h"

typedef struct streamNode {
    uint32_t cap, used; /* bytes of the block */
    uint32_t packed;    /* size of entries and names as a listpack, including dropped fields */
    uint32_t live;
    uint32_t deleted : 29;
    uint32_t coded : 1;   /* `bytes` is a coded text; `used` and the offsets are those before */
    uint32_t marked : 1;  /* see ds/node_codec.h */
    uint32_t futile : 1;  /* coding it gained nothing, and it has not changed since */
    uint32_t first, last; /* offsets of the first and last entry; last 0: none */
    uint32_t stale;       /* bytes of fields of removed entries */
    uint8_t bytes[];
} streamNode;

/* Entries of a node, at most. */
#define STREAM_NODE_ENTRIES_MAX (((uint64_t)1 << 29) - 1)

/* Allocator of nodes. */
typedef struct streamMemory {
    void *(*alloc)(size_t size);
    /* `by` is the argument of streamFree(). */
    void (*free)(void *block, size_t size, void *by);
    /* Usable size of a block allocated for `size` bytes. */
    size_t (*usable)(size_t size);
} streamMemory;
/* Must be called before the first stream is created; the default is memAlloc(). */
void streamSetMemory(const streamMemory *memory);

/* Limit on the size of fields and values of one entry. */
#define STREAM_ENTRY_BYTES_MAX ((size_t)1 << 30)

/* ---- whole nodes ---- */

/* Creates a node without entries and with the names in `fields` (`count` slices: name, value,
 * name...). `cap` is the size up to which it can grow in place. */
streamNode *streamNodeNew(const slice *fields, size_t count, size_t cap);
void streamNodeFree(streamNode *n, void *by);    /* coded or not */
streamNode *streamNodeCopy(const streamNode *n); /* the same */
/* Shrinks the block to the size in use; returns the node, which may have moved. */
streamNode *streamNodeFit(streamNode *n);
/* A node that is not coded, in place of this one, which is freed; it may be the same one. */
streamNode *streamNodePlain(streamNode *n);
/* A plain copy of a coded node, for readers, who free it by memFree(). */
streamNode *streamNodeExpand(const streamNode *n) MUST_USE;
/* A coded node in place of this one, which is freed; NULL: that would gain too little, and nothing
 * is changed but its marks. */
streamNode *streamNodeCode(streamNode *n, const nodeVisit *v);
/* The text that is coded. */
slice streamNodeText(const streamNode *n);
/* Size of the node as a listpack if no fields had been dropped: Valkey's size limit applies to
 * this. */
size_t streamNodePackedSize(const streamNode *n);

/* ---- entries ---- */

/* Position of an entry in a node. Valid until the node changes. */
typedef struct streamEntry {
    streamId id;
    uint32_t at;   /* private: offset of the entry */
    uint32_t next; /* private: of the next one */
    uint32_t body; /* private: of its fields */
    bool deleted, same_fields;
} streamEntry;

/* Appends an entry; fields as in streamNodeNew(). `key` is the node's first id, below or equal to
 * `id`. Returns the node, which may have moved. */
streamNode *streamNodeAppend(streamNode *n, streamId key, streamId id, const slice *fields,
                             size_t count);
/* Read the first or the last entry, removed or not; false if there is none. */
bool streamNodeFirst(const streamNode *n, streamId key, streamEntry *out);
bool streamNodeLast(const streamNode *n, streamId key, streamEntry *out);
/* Moves to the following entry; false if there is none, *e is then unchanged. */
bool streamNodeNext(const streamNode *n, streamId key, streamEntry *e);
/* Reads the entry at an offset taken from a streamEntry. */
void streamNodeRead(const streamNode *n, streamId key, uint32_t at, streamEntry *out);
/* The first entry at or after `id`, removed or not. False: there is none. */
bool streamNodeSeek(const streamNode *n, streamId key, streamId id, streamEntry *out);
/* Marks a live entry as removed. */
void streamNodeMark(streamNode *n, streamEntry *e);
/* Drops the fields of removed entries if they take half of the node; returns the node, which may
 * have moved. */
streamNode *streamNodeDropFields(streamNode *n, streamId key);

/* ---- fields ---- */

/* Iteration over the fields of an entry. */
typedef struct streamFields {
    const uint8_t *name; /* private; NULL: the entry has its own names */
    const uint8_t *at;
    uint32_t left; /* remaining fields */
} streamFields;
void streamNodeFields(const streamNode *n, const streamEntry *e, streamFields *out);
/* Reads the next field; there must be one. The content is borrowed. */
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

/* Size of the node as a listpack, without dropped fields. */
size_t streamNodeListpackSize(const streamNode *n, streamId key);
/* Writes that listpack. */
void streamNodeToListpack(const streamNode *n, streamId key, uint8_t *out);
/* Builds a node from a listpack of untrusted bytes; NULL if it is not a valid node with first id
 * `key`. Checks every entry, the order of the ids and the counts, and that nothing follows the last
 * entry. */
streamNode *streamNodeFromListpack(const void *bytes, size_t size, streamId key);

#endif
