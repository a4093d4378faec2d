/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream: entries of fields and values in the order of their ids, in nodes (ds/stream_node.h) found by their first id,
 * and groups of consumers that read them (ds/stream_group.h).
 *
 * Appending costs one node's end, finding O(log nodes) and a pass over the ids of one node. Where a node ends is visible to
 * users (XINFO, XTRIM ~): it follows Valkey's rule over the node's size as a listpack. Not thread-safe: one owner at a
 * time; streamFree() may run on another thread. */
#ifndef DS_STREAM_H
#define DS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/id_tree.h"
#include "ds/stream_id.h"
#include "ds/stream_node.h"

typedef struct stream stream;

/* When a node is full; 0: no limit, but for STREAM_ENTRY_BYTES_MAX. */
typedef struct streamLimits {
    uint64_t node_bytes, node_entries;
} streamLimits;

/* ---- the whole ---- */

stream *streamNew(void);
/* `by` goes to streamMemory.free. ANY_THREAD. */
void streamFree(stream *s, void *by);
stream *streamCopy(const stream *s);
/* Bytes it takes; the size of groups and consumers is taken from `samples` of each, 0: all. */
size_t streamBytes(const stream *s, size_t samples);
/* What freeing it costs: nodes, pending entries and consumers. */
size_t streamFreeEffort(const stream *s);

/* ---- facts ---- */

/* Live entries. */
uint64_t streamLength(const stream *s);
/* The highest id ever given, or what was set; not lowered by removals. */
streamId streamLastId(const stream *s);
void streamSetLastId(stream *s, streamId id);
/* Of the first live entry; 0-0 without one. */
streamId streamFirstId(const stream *s);
/* The highest id streamDelete() removed. */
streamId streamMaxDeletedId(const stream *s);
void streamSetMaxDeletedId(stream *s, streamId id);
/* Entries ever appended. */
uint64_t streamEntriesAdded(const stream *s);
void streamSetEntriesAdded(stream *s, uint64_t n);
/* The last live entry's id; false: there is none. */
bool streamLastLive(const stream *s, streamId *id);
/* The key of the first node: the id of the first entry, removed or not, that is still kept. False: there is none. */
bool streamFirstKept(const stream *s, streamId *id);
uint64_t streamNodeCount(const stream *s);
/* Nodes of a path-compressed trie over the nodes' keys, as XINFO tells them; O(nodes). */
uint64_t streamTrieNodes(const stream *s);

/* ---- changing ---- */

/* Appends an entry whose id is above streamLastId(); `fields` are `count` slices: name, value, name... Names and values
 * together at most STREAM_ENTRY_BYTES_MAX. */
void streamAppend(stream *s, streamId id, const slice *fields, size_t count,
                  const streamLimits *limits);
/* Removes an entry; false: it is not there. */
bool streamDelete(stream *s, streamId id);

typedef struct streamTrimRule {
    bool by_id;       /* entries below min_id go, else all but the last `length` */
    bool whole_nodes; /* only nodes that go as a whole ("~") */
    uint64_t length;
    streamId min_id;
    uint64_t most; /* entries removed at most; 0: no limit */
} streamTrimRule;
/* Removes entries from the front; returns how many. */
uint64_t streamTrim(stream *s, const streamTrimRule *rule);

/* ---- reading ---- */

/* Whether a live entry has this id. */
bool streamHas(const stream *s, streamId id);

/* A walk over live entries. The stream may not change meanwhile. Not to be copied. */
typedef struct streamCursor {
    const stream *s; /* private */
    streamId start, end;
    bool backwards, whole_node;
    idCursor nodes;
    const streamNode *node; /* NULL: at the end */
    streamId key;
    streamEntry entry;
    uint32_t *places; /* of entries of the node that are still to come, when backwards */
    size_t place_count, place_cap;
} streamCursor;
/* From `start` to `end`, both included, or from `end` back to `start`. */
void streamCursorInit(streamCursor *c, const stream *s, streamId start, streamId end,
                      bool backwards);
/* The next entry; false at the end. Fields are borrowed until the stream changes. */
bool streamCursorNext(streamCursor *c, streamId *id, streamFields *fields);
void streamCursorClear(streamCursor *c);

/* ---- saving, loading, moving ---- */

/* Visits the nodes in order; see streamNodeToListpack(). False ends the walk. */
typedef bool streamNodeProc(void *arg, streamId key, const streamNode *n);
void streamEachNode(const stream *s, streamNodeProc *visit, void *arg);
/* Appends a node, whose ids must be above those there are; its entries count, and streamLastId() becomes at least the id
 * of its last entry. False: they are not, and *take stays the caller's. Counters and the like are to be set by the
 * caller. */
bool streamAddNode(stream *s, streamId key, streamNode **take);

/* Moves a node's block; NULL: it stays. */
typedef void *streamMoveProc(void *arg, void *block, size_t size);
/* Moves nodes to where they are better placed, about as many as hold `entries` entries, from where the last call ended,
 * or from the front when `begin`. `heap`: blocks of the indexes too. False at the end. Main thread. */
bool streamCompact(stream *s, bool begin, size_t entries, streamMoveProc *move, void *arg,
                   bool heap, uint64_t *moved, uint64_t *kept);
/* Checks every invariant; NULL when sound, else what is broken. For tests. */
const char *streamVerify(const stream *s);

#endif
