/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Index of the nodes of a stream by their keys, which are the ids of their first entries
 * (stream_private.h). Most streams are short and have one node: the tail. Such a stream has no
 * index.
 *
 * Invariants: `index` exists if and only if there are at least two nodes; the tail is its last
 * entry. Adding a second node costs two allocations; finding a node costs O(log nodes). Thread: the
 * one that owns the stream. */
#include "ds/stream_private.h"

static idEntry entryOf(streamId key, const streamNode *n) { return (idEntry){key, {(uintptr_t)n}}; }

/* Sets key and node of the place from its cursor in the index. */
static void readPlace(streamPlace *p) {
    idEntry entry;
    idCursorRead(&p->at, &entry);
    p->key = entry.id;
    p->node = (streamNode *)(uintptr_t)entry.value[0];
    hotCheck(p->node->coded || p->node->used <= p->node->cap);
}

/* ------------------------------------------------------------------ finding */

static bool onlyNode(const stream *s, streamPlace *p) {
    hotCheck(!s->index);
    *p = (streamPlace){.key = s->tail_key, .node = s->tail};
    return s->tail != NULL;
}

/* The cursor of the place is one of the index. */
static void noteIndex(const stream *s, streamPlace *p) {
    p->index = s->index;
    p->version = s->index->version;
}

/* Finds the entry of the place again, whose node may have been replaced when it was read. */
static NO_INLINE void renewPlace(streamPlace *p) {
    check(idTreeSeek(&p->index->nodes, p->key, &p->at));
    p->version = p->index->version;
}

bool streamSeek(const stream *s, streamId id, streamPlace *p) {
    if (likely(!s->index)) return onlyNode(s, p) && !streamIdLess(p->key, id);
    if (!idTreeSeek(&s->index->nodes, id, &p->at)) return false;
    noteIndex(s, p);
    readPlace(p);
    return true;
}

bool streamSeekBack(const stream *s, streamId id, streamPlace *p) {
    if (likely(!s->index)) return onlyNode(s, p) && !streamIdLess(id, p->key);
    if (!idTreeSeekBack(&s->index->nodes, id, &p->at)) return false;
    noteIndex(s, p);
    readPlace(p);
    return true;
}

bool streamPlaceNext(streamPlace *p) {
    hotCheck(p->node);
    if (!p->at.leaf) return false;
    if (unlikely(p->version != p->index->version)) renewPlace(p);
    if (!idCursorNext(&p->at)) return false;
    readPlace(p);
    return true;
}

bool streamPlacePrev(streamPlace *p) {
    hotCheck(p->node);
    if (!p->at.leaf) return false;
    if (unlikely(p->version != p->index->version)) renewPlace(p);
    if (!idCursorPrev(&p->at)) return false;
    readPlace(p);
    return true;
}

uint64_t streamNodeCount(const stream *s) {
    hotCheck(!s->index || s->index->nodes.count > 1);
    return s->index ? s->index->nodes.count : s->tail != NULL;
}

size_t streamNodesBytes(const stream *s) {
    if (s->index) return memSizeOf(s->index) + s->index->nodes.bytes + s->index->node_bytes;
    return s->tail ? s->tail->cap : 0;
}

/* ------------------------------------------------------------------ changing */

void streamNodesAdd(stream *s, streamId key, streamNode *n) {
    if (s->tail && !s->index) {
        s->index = memNew(streamIndex);
        s->index->nodes.values = 1;
        s->index->node_bytes = s->tail->cap;
        idEntry first = entryOf(s->tail_key, s->tail);
        check(idTreeInsert(&s->index->nodes, &first));
    }
    if (s->index) {
        hotCheck(streamIdLess(s->tail_key, key));
        idEntry entry = entryOf(key, n);
        check(idTreeInsert(&s->index->nodes, &entry));
        s->index->node_bytes += n->cap;
    }
    s->tail = n;
    s->tail_key = key;
}

void streamNodesChanged(stream *s, streamId key, const streamNode *old, size_t cap, streamNode *n) {
    hotCheck(s->tail != NULL);
    if (s->index) {
        s->index->node_bytes += n->cap - cap;
        idEntry entry = entryOf(key, n);
        if (n != old) {
            idTreeSet(&s->index->nodes, &entry);
            s->index->version++;
        }
    }
    if (s->tail == old) s->tail = n;
}

/* Frees the index. The caller has removed or freed all nodes but the tail. */
static void dropIndex(stream *s) {
    idTreeClear(&s->index->nodes);
    memFree(s->index);
    s->index = NULL;
    hotCheck(s->tail);
}

void streamNodesRemove(stream *s, streamId key, const streamNode *n) {
    hotCheck(s->tail != NULL);
    if (!s->index) {
        check(n == s->tail);
        s->tail = NULL;
        s->tail_key = STREAM_ID_MIN;
        return;
    }
    check(idTreeRemove(&s->index->nodes, key, NULL));
    s->index->node_bytes -= n->cap;
    if (n == s->tail) {
        streamPlace last;
        check(streamSeekBack(s, STREAM_ID_MAX, &last));
        streamOpenNode(s, &last); /* the tail is not coded */
        s->tail = last.node;
        s->tail_key = last.key;
    }
    if (s->index->nodes.count == 1) dropIndex(s);
}

/* ------------------------------------------------------------------ the whole */

void streamNodesFree(stream *s, void *by) {
    streamPlace p;
    for (bool more = streamSeek(s, STREAM_ID_MIN, &p); more; more = streamPlaceNext(&p))
        streamNodeFree(p.node, by);
    if (s->index) dropIndex(s);
    s->tail = NULL;
}

bool streamCompact(stream *s, bool begin, size_t entries, streamMoveProc *move, void *arg,
                   bool heap, uint64_t *moved, uint64_t *kept) {
    streamId *at = s->index ? &s->index->compact_at : &(streamId){0, 0};
    if (begin) *at = STREAM_ID_MIN;
    streamId first = *at;
    size_t seen = 0;
    for (streamPlace p; seen < entries && streamSeek(s, *at, &p);) {
        seen += sizeMax(1, p.node->live);
        size_t cap = p.node->cap;
        streamNode *now = move(arg, p.node, cap);
        if (now) streamNodesChanged(s, p.key, p.node, cap, now);
        *at = p.key;
        if (!s->index || !streamIdNext(at)) break;
    }
    if (heap && s->index)
        (void)idTreeCompact(&s->index->nodes, &first, moved, kept); /* the nodes' result counts */
    if (s->index && seen >= entries) return true;
    if (heap) streamCompactGroups(s, moved, kept);
    if (heap) streamProducersCompact(streamProducersOf(s), moved, kept);
    return false;
}

const char *streamVerifyIndex(const stream *s) {
    if (!s->index) return NULL;
    const char *broken = idTreeVerify(&s->index->nodes);
    if (broken) return broken;
    streamPlace p;
    if (s->index->nodes.count < 2) return "an index of one node";
    if (!streamSeekBack(s, STREAM_ID_MAX, &p) || p.node != s->tail) return "tail";
    return streamIdEqual(p.key, s->tail_key) ? NULL : "key of the tail";
}
