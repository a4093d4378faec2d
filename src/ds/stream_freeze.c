/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams as of one moment (stream.h): read node by node while the stream changes.
 *
 * Nodes are neither joined nor divided, and their keys ascend, so the key of the next node to be
 * read divides them: a node of the moment from there on is copied before its first change, or taken
 * over when it is removed. Invariants: `kept` has no key below `next`; a key with address 0 is that
 * of a node which was added since. Freezing takes as long as copying the groups; a node is found in
 * O(log nodes). Main thread only. */
#include "ds/stream_private.h"

struct streamFrozen {
    stream rest; /* without nodes */
    idTree kept; /* one value: address of the node */
    streamId next, last;
    uint64_t count, left; /* nodes of the moment; not read */
    streamNode *reading;  /* of `kept` */
    streamNode *copy;     /* of a coded node that is being read */
};

static size_t kept_bytes; /* of nodes of all streams */

streamFrozen *streamFreeze(stream *s) {
    check(!s->frozen);
    streamFrozen *f = memNew(streamFrozen);
    f->rest = *s;
    f->rest.tail = NULL;
    f->rest.index = NULL;
    f->rest.parties = NULL;
    streamCopyGroups(&f->rest, s);
    streamProducersCopy(&f->rest, s, false);
    f->kept.values = 1;
    f->last = s->tail_key;
    f->count = f->left = streamNodeCount(s);
    s->frozen = f;
    return f;
}

uint64_t streamFrozenNodes(const streamFrozen *f) { return f->count; }
const stream *streamFrozenRest(const streamFrozen *f) { return &f->rest; }
size_t streamFrozenBytes(void) { return kept_bytes; }

static void freeKept(streamNode *n) {
    hotCheck(!n || kept_bytes >= n->cap);
    if (!n) return;
    kept_bytes -= n->cap;
    streamNodeFree(n, NULL);
}

/* ------------------------------------------------------------------ changes */

/* True if a node with this key would be read. */
static bool isAhead(const streamFrozen *f, streamId key) {
    return f->left > 0 && !streamIdLess(key, f->next) && !streamIdLess(f->last, key);
}

/* True if the node is to be kept. */
static bool isWanted(const streamFrozen *f, streamId key) {
    idEntry entry;
    return isAhead(f, key) && !idTreeFind(&f->kept, key, &entry);
}

static void keep(streamFrozen *f, streamId key, const streamNode *n) {
    idEntry entry = {key, {(uintptr_t)n}};
    check(idTreeInsert(&f->kept, &entry));
    if (n) kept_bytes += n->cap;
}

void streamFrozenBefore(stream *s, streamId key, const streamNode *n) {
    if (isWanted(s->frozen, key)) keep(s->frozen, key, streamNodeCopy(n));
}

void streamFrozenAdded(stream *s, streamId key) {
    if (isWanted(s->frozen, key)) keep(s->frozen, key, NULL);
}

bool streamFrozenTake(stream *s, streamId key, const streamNode *n) {
    bool wanted = isWanted(s->frozen, key);
    if (wanted) keep(s->frozen, key, n);
    return wanted;
}

/* ------------------------------------------------------------------ reading */

/* Finds the first kept node that has not been read; false if there is none. */
static bool firstKept(const streamFrozen *f, idEntry *out) {
    idCursor at;
    if (!idTreeSeek(&f->kept, f->next, &at)) return false;
    idCursorRead(&at, out);
    return true;
}

bool streamFrozenNext(streamFrozen *f, const stream *s, streamId *key, const streamNode **out) {
    check(s->frozen == f);
    freeKept(f->reading);
    f->reading = NULL;
    while (f->left > 0) {
        idEntry kept;
        streamPlace now;
        bool has_kept = firstKept(f, &kept);
        bool has_now = streamSeek(s, f->next, &now);
        check(has_kept || has_now);
        if (has_kept && has_now && streamIdLess(now.key, kept.id)) has_kept = false;
        streamNode *n = has_kept ? (streamNode *)(uintptr_t)kept.value[0] : now.node;
        *key = has_kept ? kept.id : now.key;
        check(!streamIdLess(f->last, *key));
        if (has_kept) {
            check(idTreeRemove(&f->kept, kept.id, NULL));
            f->reading = n;
        }
        f->next = *key;
        bool is_highest = !streamIdNext(&f->next);
        if (!n) continue; /* added since */
        f->left--;
        check(!is_highest || f->left == 0);
        now.node = n;
        streamReadNode(s, &now, false, &f->copy);
        *out = now.node;
        return true;
    }
    return false;
}

void streamThaw(streamFrozen *f, stream *s) {
    if (!f) return;
    idEntry entry;
    check(s->frozen == f);
    s->frozen = NULL;
    memFree(f->copy);
    freeKept(f->reading);
    for (idCursor at; idTreeSeek(&f->kept, STREAM_ID_MIN, &at);) {
        idCursorRead(&at, &entry);
        check(idTreeRemove(&f->kept, entry.id, NULL));
        freeKept((streamNode *)(uintptr_t)entry.value[0]);
    }
    streamFreeGroups(&f->rest);
    streamProducersDrop(&f->rest);
    memFree(f);
}
