/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams (stream.h): nodes, entries, trimming. Main thread only, but for streamFree(). */
#include "base/fiber.h"
#include "ds/stream_private.h"

enum { FIRST_NODE_SPARE = 64 }; /* bytes reserved in a stream's first node beyond its first entry */

/* ------------------------------------------------------------------ the whole */

stream *streamNew(void) { return memNew(stream); }

void streamFree(stream *s, void *by) {
    hotCheck(!s || !s->frozen);
    if (!s) return;
    streamNodesFree(s, by);
    streamFreeGroups(s);
    streamProducersDrop(s);
    memFree(s);
}

stream *streamCopy(const stream *from) {
    stream *s = memNew(stream);
    *s = *from;
    s->tail = NULL;
    s->index = NULL;
    s->parties = NULL;
    s->frozen = NULL;
    streamPlace p;
    for (bool more = streamSeek(from, STREAM_ID_MIN, &p); more; more = streamPlaceNext(&p)) {
        enum { NODE_POINTS = 32 }; /* a node takes as long as so many elements */
        streamNodesAdd(s, p.key, streamNodeCopy(p.node));
        (void)fiberPoint(NODE_POINTS); /* the copy is freed as a whole if nobody wants it */
    }
    streamCopyGroups(s, from);
    streamProducersCopy(s, from, true);
    return s;
}

size_t streamBytes(const stream *s, size_t samples) {
    return memSizeOf(s) + streamNodesBytes(s) + streamGroupsBytes(s, samples) +
           streamProducersBytes(streamProducersOf(s));
}

size_t streamFreeEffort(const stream *s) { return streamNodeCount(s) + streamGroupsEffort(s); }

/* ------------------------------------------------------------------ counters and ids */

uint64_t streamLength(const stream *s) { return s->length; }
streamId streamLastId(const stream *s) { return s->last_id; }
void streamSetLastId(stream *s, streamId id) {
    if (streamIdLess(id, s->last_id)) streamForgetOldest(s); /* ids of removed entries may return */
    s->last_id = id;
}
streamId streamFirstId(const stream *s) { return s->first_id; }
streamId streamMaxDeletedId(const stream *s) { return s->max_deleted_id; }
void streamSetMaxDeletedId(stream *s, streamId id) { s->max_deleted_id = id; }
uint64_t streamEntriesAdded(const stream *s) { return s->entries_added; }
void streamSetEntriesAdded(stream *s, uint64_t n) { s->entries_added = n; }

bool streamLastLive(const stream *s, streamId *id) {
    hotCheck(s->tail || s->length == 0);
    streamCursor c;
    streamFields fields;
    streamEntry last;
    if (s->length == 0) return false;
    if (likely(streamNodeLast(s->tail, s->tail_key, &last)) && likely(!last.deleted)) {
        *id = last.id;
        return true;
    }
    streamCursorInit(&c, s, STREAM_ID_MIN, STREAM_ID_MAX, true);
    bool found = streamCursorNext(&c, id, &fields);
    streamCursorClear(&c);
    return found;
}

bool streamCountAfter(const stream *s, streamId id, size_t nodes_max, uint64_t *out) {
    streamPlace p;
    uint64_t count = 0;
    hotCheck(nodes_max > 0);
    bool more = streamSeekBack(s, id, &p) || streamSeek(s, id, &p);
    for (; more; more = streamPlaceNext(&p)) {
        if (nodes_max-- == 0) return false;
        if (streamIdLess(id, p.key)) {
            count += p.node->live;
            continue;
        }
        streamEntry e; /* the only node with entries up to `id` */
        streamNode *copy = NULL;
        streamReadNode(s, &p, true, &copy);
        for (bool has = streamNodeSeek(p.node, p.key, id, &e); has;
             has = streamNodeNext(p.node, p.key, &e))
            count += !e.deleted && streamIdLess(id, e.id);
        memFree(copy);
    }
    *out = count;
    return true;
}

bool streamFirstKept(const stream *s, streamId *id) {
    streamPlace p;
    if (!streamSeek(s, STREAM_ID_MIN, &p)) return false;
    *id = p.key;
    return true;
}

/* ------------------------------------------------------------------ nodes */

/* Finds the node whose id range includes the id; false if there is none. */
static bool nodeFor(const stream *s, streamId id, streamPlace *out) {
    if (likely(s->tail != NULL) && !streamIdLess(id, s->tail_key)) {
        out->key = s->tail_key;
        out->node = s->tail;
        return true;
    }
    return s->index && streamSeekBack(s, id, out);
}

/* Updates the index after a node that had `cap` bytes at `old` was changed. */
ALWAYS_INLINE void nodeMoved(stream *s, streamId key, const streamNode *old, size_t cap,
                             streamNode *n) {
    if (n != old || n->cap != cap) streamNodesChanged(s, key, old, cap, n);
}

/* Before the content of a node changes. */
ALWAYS_INLINE void beforeNode(stream *s, streamId key, const streamNode *n) {
    if (unlikely(s->frozen)) streamFrozenBefore(s, key, n);
}

/* Before beforeNode(): the node can be changed. */
ALWAYS_INLINE void openNode(stream *s, streamPlace *p) {
    if (unlikely(p->node->coded | p->node->marked | p->node->futile)) streamOpenNode(s, p);
}

static void dropNode(stream *s, const streamPlace *p) {
    streamNode *n = p->node;
    streamNodesRemove(s, p->key, n);
    s->length -= n->live;
    if (unlikely(s->frozen) && streamFrozenTake(s, p->key, n)) return;
    streamNodeFree(n, NULL);
}

/* Updates first_id after the first entry was removed. */
static void findFirst(stream *s) {
    streamCursor c;
    streamFields fields;
    s->first_id = STREAM_ID_MIN;
    if (s->length == 0) return;
    streamCursorInit(&c, s, STREAM_ID_MIN, STREAM_ID_MAX, false);
    check(streamCursorNext(&c, &s->first_id, &fields));
    streamCursorClear(&c);
}

/* ------------------------------------------------------------------ appending */

static uint64_t limitOr(uint64_t limit, uint64_t none) {
    return limit == 0 || limit > none ? none : limit;
}

static bool tailTakes(const stream *s, size_t bytes, const streamLimits *limits) {
    hotCheck(!s->tail || s->tail->used <= s->tail->cap);
    const streamNode *n = s->tail;
    if (!n) return false;
    if (streamNodePackedSize(n) + bytes >= limitOr(limits->node_bytes, STREAM_ENTRY_BYTES_MAX))
        return false;
    uint64_t entries = (uint64_t)n->live + n->deleted;
    return entries < limitOr(limits->node_entries, STREAM_NODE_ENTRIES_MAX);
}

/* Space for a node that begins with an entry of `bytes`. Where the limit allows no second one like
 * it, the node gets what the entry takes, with two bytes for each of its `count` sizes. */
static size_t firstSize(size_t bytes, size_t count, const streamLimits *limits) {
    enum { ENTRY_HEAD = 16 };
    size_t cap = sizeof(streamNode) + 2 * bytes + FIRST_NODE_SPARE;
    if (2 * bytes < limitOr(limits->node_bytes, STREAM_ENTRY_BYTES_MAX)) return cap;
    return sizeMin(cap, sizeof(streamNode) + bytes + 2 * count + ENTRY_HEAD);
}

/* Starts a new node for an entry and shrinks the previous one to fit, as it will rarely change. */
static void beginNode(stream *s, streamId id, const slice *fields, size_t count, size_t cap) {
    if (s->tail) {
        streamNode *n = s->tail;
        size_t old_cap = n->cap;
        nodeMoved(s, s->tail_key, n, old_cap, streamNodeFit(n));
        if (s->tail->used > cap) cap = s->tail->used;
    }
    streamNodesAdd(s, id, streamNodeNew(fields, count, cap));
    if (unlikely(s->frozen)) streamFrozenAdded(s, id);
}

void streamAppend(stream *s, streamId id, const slice *fields, size_t count,
                  const streamLimits *limits) {
    size_t bytes = 0;
    check(streamIdLess(s->last_id, id));
    for (size_t i = 0; i < count; i++) bytes += fields[i].len;
    if (unlikely(!tailTakes(s, bytes, limits))) {
        beginNode(s, id, fields, count, firstSize(bytes, count, limits));
    }
    streamNode *n = s->tail;
    beforeNode(s, s->tail_key, n);
    size_t cap = n->cap;
    nodeMoved(s, s->tail_key, n, cap, streamNodeAppend(n, s->tail_key, id, fields, count));
    if (s->length++ == 0) s->first_id = id;
    s->last_id = id;
    s->entries_added++;
}

/* ------------------------------------------------------------------ removing */

bool streamHas(const stream *s, streamId id) {
    streamPlace p;
    streamEntry e;
    streamNode *copy = NULL;
    if (!nodeFor(s, id, &p)) return false;
    streamReadNode(s, &p, true, &copy);
    bool has = streamNodeSeek(p.node, p.key, id, &e) && !e.deleted && streamIdEqual(e.id, id);
    memFree(copy);
    return has;
}

bool streamDelete(stream *s, streamId id) {
    streamPlace p;
    streamEntry e;
    if (!nodeFor(s, id, &p)) return false;
    if (unlikely(p.node->coded)) {
        if (!streamHas(s, id)) return false;
        check(nodeFor(s, id, &p)); /* it may be another node now: streamHas() has read it */
    }
    openNode(s, &p);
    streamNode *n = p.node;
    if (!streamNodeSeek(n, p.key, id, &e) || e.deleted || !streamIdEqual(e.id, id)) return false;
    bool was_first = streamIdEqual(id, s->first_id);
    if (n->live == 1) {
        dropNode(s, &p);
        if (was_first) findFirst(s);
    } else {
        beforeNode(s, p.key, n);
        size_t cap = n->cap;
        streamNodeMark(n, &e);
        s->length--;
        /* Fast path: the next live entry is in the same node, shortly after the first one. */
        while (was_first && e.deleted) check(streamNodeNext(n, p.key, &e));
        if (was_first) s->first_id = e.id;
        nodeMoved(s, p.key, n, cap, streamNodeDropFields(n, p.key));
    }
    if (streamIdLess(s->max_deleted_id, id)) s->max_deleted_id = id;
    return true;
}

/* True if the rule ends at the entry: it and all that follow remain. */
static bool trimEnds(const stream *s, const streamTrimRule *rule, streamId id) {
    return rule->by_id ? !streamIdLess(id, rule->min_id) : s->length <= rule->length;
}

/* Marks as removed the entries of the first node that match the rule; returns their number. */
static uint64_t trimWithin(stream *s, streamPlace *first, const streamTrimRule *rule) {
    hotCheck(first->node->live > 0 || first->node->deleted > 0);
    if (unlikely(first->node->coded) && trimEnds(s, rule, s->first_id)) return 0;
    openNode(s, first);
    streamNode *n = first->node;
    streamEntry e;
    uint64_t removed = 0;
    beforeNode(s, first->key, n);
    for (bool more = streamNodeFirst(n, first->key, &e); more;
         more = streamNodeNext(n, first->key, &e)) {
        if (trimEnds(s, rule, e.id)) break;
        if (e.deleted) continue;
        if (unlikely(rule->removes)) rule->removes(rule->arg, e.id);
        streamNodeMark(n, &e);
        s->length--;
        removed++;
    }
    /* A node without live entries is kept, as in Valkey, because its last id is not below the
     * bound. */
    size_t cap = n->cap;
    nodeMoved(s, first->key, n, cap, streamNodeDropFields(n, first->key));
    return removed;
}

/* True if the rule removes all entries of the node. */
static bool takesNode(const stream *s, const streamPlace *place, const streamTrimRule *rule) {
    hotCheck(place->node->live <= s->length);
    streamPlace p = *place;
    if (!rule->by_id) return s->length - p.node->live >= rule->length;
    if (unlikely(p.node->coded)) {
        /* Ids of the next node, if there is one, are above all of this one. */
        streamPlace next = p;
        if (streamPlaceNext(&next) && !streamIdLess(rule->min_id, next.key)) return true;
    }
    streamEntry last;
    streamNode *copy = NULL;
    streamReadNode(s, &p, false, &copy);
    bool takes = streamNodeLast(p.node, p.key, &last) && streamIdLess(last.id, rule->min_id);
    memFree(copy);
    return takes;
}

/* Calls rule->removes for the entries of a node. */
static void eachRemoved(const stream *s, streamPlace place, const streamTrimRule *rule) {
    hotCheck(rule->removes);
    streamNode *copy = NULL;
    streamReadNode(s, &place, false, &copy);
    const streamNode *n = place.node;
    streamEntry e;
    for (bool more = streamNodeFirst(n, place.key, &e); more;
         more = streamNodeNext(n, place.key, &e)) {
        if (!e.deleted) rule->removes(rule->arg, e.id);
    }
    memFree(copy);
}

uint64_t streamTrim(stream *s, const streamTrimRule *rule) {
    hotCheck(s->length <= s->entries_added);
    uint64_t removed = 0;
    for (;;) {
        streamPlace first;
        if (!rule->by_id && s->length <= rule->length) break;
        if (!streamSeek(s, STREAM_ID_MIN, &first)) break;
        uint64_t live = first.node->live;
        if (rule->max_removed && removed + live > rule->max_removed) break;
        if (takesNode(s, &first, rule)) {
            if (unlikely(rule->removes)) eachRemoved(s, first, rule);
            dropNode(s, &first);
            removed += live;
            continue;
        }
        if (!rule->whole_nodes) removed += trimWithin(s, &first, rule);
        break;
    }
    if (removed) findFirst(s);
    return removed;
}

/* Ids of the live entries of a node, in a block that the caller frees; *last: id of its last entry,
 * live or not. Returns their number. */
static size_t liveIds(const stream *s, streamPlace place, streamId **out, streamId *last) {
    streamNode *copy = NULL;
    streamReadNode(s, &place, false, &copy);
    const streamNode *n = place.node;
    streamEntry e;
    size_t count = 0;
    *out = memNewArray(streamId, (size_t)n->live + 1);
    for (bool more = streamNodeFirst(n, place.key, &e); more;
         more = streamNodeNext(n, place.key, &e)) {
        if (!e.deleted) (*out)[count++] = e.id;
        *last = e.id;
    }
    hotCheck(count == n->live);
    memFree(copy);
    return count;
}

uint64_t streamTrimPermitted(stream *s, const streamTrimRule *rule, streamPermitProc *permits) {
    hotCheck(s->length <= s->entries_added);
    uint64_t removed = 0;
    streamId next = STREAM_ID_MIN;
    streamPlace p;
    bool more = true;
    while (more && streamSeek(s, next, &p)) {
        if (rule->max_removed && removed + p.node->live > rule->max_removed) break;
        bool takes_all = takesNode(s, &p, rule);
        if (rule->whole_nodes && !takes_all) break;
        streamId *ids;
        size_t count = liveIds(s, p, &ids, &next), i = 0;
        for (; i < count && !trimEnds(s, rule, ids[i]); i++)
            removed += permits(rule->arg, ids[i]) && streamDelete(s, ids[i]);
        memFree(ids);
        if (takes_all) check(i == count);
        more = takes_all && streamIdNext(&next);
    }
    return removed;
}

/* The rightmost path of a trie whose keys are added in order. */
typedef struct triePath {
    unsigned depth[sizeof(streamId)];
    unsigned count;
    uint64_t nodes;
} triePath;

/* Counts the nodes between the last branch of the path and a child at depth `child`: a run of bytes
 * between them is one node. */
static void attach(triePath *t, unsigned child) {
    if (child > t->depth[t->count - 1] + 1) t->nodes++;
}

/* Removes branches deeper than `depth` from the path; returns the depth of the child at its end. */
static unsigned closeBranches(triePath *t, unsigned depth) {
    unsigned child = sizeof(streamId);
    while (t->count && t->depth[t->count - 1] > depth) {
        attach(t, child);
        child = t->depth[--t->count];
    }
    return child;
}

/* Length of the common prefix of two keys in bytes. */
static unsigned sharedBytes(streamId a, streamId b) {
    hotCheck(!streamIdEqual(a, b));
    if (a.ms != b.ms) return (unsigned)__builtin_clzll(a.ms ^ b.ms) / 8;
    return 8 + (unsigned)__builtin_clzll(a.seq ^ b.seq) / 8;
}

uint64_t streamTrieNodes(const stream *s) {
    triePath t = {.nodes = streamNodeCount(s)};
    streamPlace p;
    if (!streamSeek(s, STREAM_ID_MIN, &p)) return 1;
    streamId last = p.key;
    while (streamPlaceNext(&p)) {
        unsigned shared = sharedBytes(last, p.key);
        unsigned child = closeBranches(&t, shared);
        if (!t.count || t.depth[t.count - 1] < shared) {
            t.depth[t.count++] = shared;
            t.nodes++;
        }
        attach(&t, child);
        last = p.key;
    }
    unsigned child = sizeof(streamId);
    while (t.count) {
        attach(&t, child);
        child = t.depth[--t.count];
    }
    return t.nodes + (child > 0);
}

/* ------------------------------------------------------------------ saving, loading, moving */

void streamEachNode(const stream *s, streamNodeProc *visit, void *arg) {
    streamPlace p;
    streamNode *copy = NULL;
    bool more = streamSeek(s, STREAM_ID_MIN, &p);
    while (more) {
        streamReadNode(s, &p, false, &copy);
        more = visit(arg, p.key, p.node) && streamPlaceNext(&p);
    }
    memFree(copy);
}

bool streamAddNode(stream *s, streamId key, streamNode **take) {
    streamEntry last;
    if (s->tail) {
        check(streamNodeLast(s->tail, s->tail_key, &last));
        if (!streamIdLess(last.id, key)) return false;
    }
    check(!s->frozen);
    streamNode *n = *take;
    *take = NULL;
    streamNodesAdd(s, key, n);
    bool was_empty = s->length == 0;
    s->length += n->live;
    check(streamNodeLast(n, key, &last));
    if (streamIdLess(s->last_id, last.id)) s->last_id = last.id;
    if (was_empty) findFirst(s);
    return true;
}

/* State of the check of all nodes. */
typedef struct nodeCheck {
    const stream *s;
    uint64_t length;
    size_t bytes;
    streamId last, first_live;
    const char *broken;
} nodeCheck;

static bool verifyNode(void *arg, streamId key, const streamNode *n) {
    nodeCheck *v = arg;
    streamEntry e;
    uint64_t live = 0, deleted = 0, offset = 0;
    for (bool more = streamNodeFirst(n, key, &e); more; more = streamNodeNext(n, key, &e)) {
        if (!streamIdLess(v->last, e.id)) v->broken = "order of entries";
        if (!e.deleted && v->length + live == 0) v->first_live = e.id;
        live += !e.deleted;
        deleted += e.deleted;
        v->last = e.id;
        offset = e.at;
    }
    if (live != n->live || deleted != n->deleted) v->broken = "counts of a node";
    if (offset != n->last) v->broken = "last entry of a node";
    if (n->used > n->cap) v->broken = "capacity of a node";
    v->length += live;
    return !v->broken;
}

const char *streamVerify(const stream *s) {
    nodeCheck v = {.s = s};
    const char *broken = streamVerifyIndex(s);
    if (broken) return broken;
    streamEachNode(s, verifyNode, &v);
    if (v.broken) return v.broken;
    if (v.length != s->length) return "length";
    if (s->tail && s->tail->coded) return "a tail that is coded";
    streamPlace p;
    for (bool more = streamSeek(s, STREAM_ID_MIN, &p); more; more = streamPlaceNext(&p))
        v.bytes += p.node->cap;
    if (v.bytes != (s->index ? s->index->node_bytes : streamNodesBytes(s))) return "bytes of nodes";
    if (!streamIdEqual(v.first_live, s->first_id)) return "first id";
    if (streamIdLess(s->last_id, v.last)) return "last id";
    broken = streamProducersVerify(streamProducersOf(s));
    return broken ? broken : streamVerifyGroups(s);
}
