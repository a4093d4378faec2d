/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream: entries of fields and values, ordered by id and stored in nodes (ds/stream_node.h), which
 * are indexed by their first id if there are several; and the consumer groups that read them
 * (ds/stream_group.h).
 *
 * Appending writes at the end of the last node; finding costs O(log nodes) and a scan of the ids of
 * one node. Node boundaries are visible to users (XINFO, XTRIM ~), so they follow Valkey's rule,
 * which is based on the node's size as a listpack. Not thread-safe: one owner at a time;
 * streamFree() may run on another thread. */
#ifndef DS_STREAM_H
#define DS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/id_tree.h"
#include "ds/stream_id.h"
#include "ds/stream_node.h"

typedef struct stream stream;

/* Limits of a node; 0: no limit other than STREAM_ENTRY_BYTES_MAX. */
typedef struct streamLimits {
    uint64_t node_bytes, node_entries;
} streamLimits;

/* ---- the whole ---- */

stream *streamNew(void);
/* `by` is passed to streamMemory.free. ANY_THREAD. */
void streamFree(stream *s, void *by);
stream *streamCopy(const stream *s);
/* Memory of the stream in bytes. The size of groups and consumers is estimated from `samples` of
 * each; 0: all. */
size_t streamBytes(const stream *s, size_t samples);
/* Effort to free the stream: the number of nodes, pending entries and consumers. */
size_t streamFreeEffort(const stream *s);
/* Effort to copy its groups and producers: groups, consumers, blocks of pending entries, ids. */
size_t streamGroupsEffort(const stream *s);

/* ---- counters and ids ---- */

/* Number of live entries. */
uint64_t streamLength(const stream *s);
/* The highest id ever assigned, or the one set by XSETID; removals do not lower it. */
streamId streamLastId(const stream *s);
void streamSetLastId(stream *s, streamId id);
/* Id of the first live entry; 0-0 if there is none. */
streamId streamFirstId(const stream *s);
/* The highest id streamDelete() removed. */
streamId streamMaxDeletedId(const stream *s);
void streamSetMaxDeletedId(stream *s, streamId id);
/* Entries ever appended. */
uint64_t streamEntriesAdded(const stream *s);
void streamSetEntriesAdded(stream *s, uint64_t n);
/* The id of the last live entry; false if there is none. */
bool streamLastLive(const stream *s, streamId *id);
/* The key of the first node: the id of the first entry, removed or not, whose data is still stored.
 * False if there are no nodes. */
bool streamFirstKept(const stream *s, streamId *id);
uint64_t streamNodeCount(const stream *s);
/* Counts the live entries after `id`. False, and *out is unchanged: they are in more than
 * `nodes_max` nodes. */
bool streamCountAfter(const stream *s, streamId id, size_t nodes_max, uint64_t *out);
/* Number of nodes of a path-compressed trie of the node keys, as reported by XINFO; O(nodes). */
uint64_t streamTrieNodes(const stream *s);

/* ---- changing ---- */

/* Appends an entry whose id is above streamLastId(); `fields` are `count` slices: name, value,
 * name... Names and values together at most STREAM_ENTRY_BYTES_MAX. */
void streamAppend(stream *s, streamId id, const slice *fields, size_t count,
                  const streamLimits *limits);
/* Removes an entry; false if there is none with this id. */
bool streamDelete(stream *s, streamId id);

typedef struct streamTrimRule {
    bool by_id;       /* removes entries below min_id; otherwise all but the last `length` */
    bool whole_nodes; /* only complete nodes are removed ("~") */
    uint64_t length;
    streamId min_id;
    uint64_t max_removed; /* 0: no limit */
    /* Called for each entry that is removed; must not change the stream. NULL: not called. */
    void (*removes)(void *arg, streamId id);
    void *arg;
} streamTrimRule;
/* Removes entries from the start of the stream; returns their number. */
uint64_t streamTrim(stream *s, const streamTrimRule *rule);
/* True if the entry may be removed. */
typedef bool streamPermitProc(void *arg, streamId id);
/* The same as streamDelete() of each entry that `permits` does not keep, which gets rule->arg. What
 * follows a kept entry is looked at, too, in all nodes that the rule removes completely and in the
 * one after them: as in Redis, later nodes do not make up for kept entries. */
uint64_t streamTrimPermitted(stream *s, const streamTrimRule *rule, streamPermitProc *permits);

/* ---- reading ---- */

/* True if there is a live entry with this id. */
bool streamHas(const stream *s, streamId id);

/* A node of a stream. */
typedef struct streamPlace {
    idCursor at; /* private; without leaf: the tail, and the cursor cannot move from it */
    const struct streamIndex *index; /* of the cursor, and its version then */
    uint32_t version;
    streamId key;
    streamNode *node;
} streamPlace;

/* Cursor over live entries. While it is used the stream must not change, nor may its nodes be
 * coded. It must not be copied. */
typedef struct streamCursor {
    const stream *s; /* private */
    streamId start, end;
    bool backwards, whole_node, at_end;
    streamPlace place; /* unless at_end */
    streamEntry entry;
    streamNode *copy;  /* of a coded node: that of the place */
    streamNode *left;  /* the copy that the fields which were read last may be in */
    uint32_t *offsets; /* of the remaining entries of the node, when backwards */
    size_t offset_count, offset_cap;
} streamCursor;
/* From `start` to `end`, both included, or from `end` back to `start`. */
void streamCursorInit(streamCursor *c, const stream *s, streamId start, streamId end,
                      bool backwards);
/* The next entry; false at the end. Fields are borrowed until the next call, or the stream
 * changes. */
bool streamCursorNext(streamCursor *c, streamId *id, streamFields *fields);
void streamCursorClear(streamCursor *c);

/* ---- saving, loading, moving ---- */

/* Visits the nodes in order, coded ones expanded; see streamNodeToListpack(). False ends it. */
typedef bool streamNodeProc(void *arg, streamId key, const streamNode *n);
void streamEachNode(const stream *s, streamNodeProc *visit, void *arg);
/* Appends a node, adds its entries to the length and raises the last id to that of its last entry,
 * if it is lower. False, and *take remains the caller's, if its ids are not above all existing
 * ones. The caller must set the other counters afterwards. */
bool streamAddNode(stream *s, streamId key, streamNode **take);

/* ---- as of one moment ---- */

/* A stream as it was when it was frozen; it is then read node by node while it changes. A node that
 * has not been read is copied before it changes. */
typedef struct streamFrozen streamFrozen;
/* The stream must not be frozen. Copies groups, consumers and pending entries. */
streamFrozen *streamFreeze(stream *s);
uint64_t streamFrozenNodes(const streamFrozen *f);
/* The next node of the moment in order; false at the end. `s` is the frozen stream, whose address
 * may have changed. The node is borrowed until the next call or change. */
bool streamFrozenNext(streamFrozen *f, const stream *s, streamId *key, const streamNode **out);
/* Counters and groups of the moment: a stream without nodes. Borrowed until streamThaw(). */
const stream *streamFrozenRest(const streamFrozen *f);
/* Memory of the nodes that were kept, of all streams, in bytes. */
size_t streamFrozenBytes(void);
/* Ends the reading, at any time. `f` NULL is allowed. */
void streamThaw(streamFrozen *f, stream *s);

/* Visits nodes from this id on and codes those that are not used (ds/node_codec.h), but never the
 * last one. *from becomes the id to continue from; false at the end. */
bool streamCodeNodes(stream *s, streamId *from, const nodeVisit *v);
uint64_t streamCodedNodes(const stream *s);
/* The texts of `most` nodes, as streamCodeNodes() codes them, from a place that `part`, a random
 * number, chooses. */
void streamSample(const stream *s, uint64_t part, size_t most, nodeTextProc *visit, void *arg);

/* Returns the new address of a node's block; NULL: not moved. */
typedef void *streamMoveProc(void *arg, void *block, size_t size);
/* Defragmentation: moves the blocks of nodes with about `entries` entries in total, continuing
 * after the previous call, or from the start if `begin`. `heap`: the indexes' blocks too. False at
 * the end. Main thread. */
bool streamCompact(stream *s, bool begin, size_t entries, streamMoveProc *move, void *arg,
                   bool heap, uint64_t *moved, uint64_t *kept);
/* Checks every invariant; NULL if all hold, else a description of the first violation. For
 * tests. */
const char *streamVerify(const stream *s);

#endif
