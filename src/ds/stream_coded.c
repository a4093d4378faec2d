/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coded nodes of streams (stream.h, ds/node_codec.h).
 *
 * Invariant: the tail is not coded, so appending and reading new entries cost what they always do.
 * Coding or expanding a node is no change of the stream: a frozen stream does not see it, and
 * cursors remain valid, as they read copies of coded nodes, and find their place in the index anew
 * when a node has been replaced. Main thread only. */
#include "ds/stream_private.h"

void streamOpenNode(stream *s, streamPlace *p) {
    streamNode *n = p->node;
    size_t cap = n->cap;
    bool was_coded = n->coded;
    p->node = streamNodePlain(n);
    if (unlikely(was_coded)) streamNodesChanged(s, p->key, n, cap, p->node);
    hotCheck(!p->node->coded);
}

void streamReadUnusual(const stream *s, streamPlace *p, bool uses, streamNode **copy) {
    streamNode *n = p->node;
    memFree(*copy);
    *copy = NULL;
    if (!n->coded && !n->marked) return;
    nodeRead read = uses ? codedRead(n->coded && n->marked) : NODE_STAYS;
    if (n->coded && read == NODE_EXPANDS) {
        streamOpenNode((stream *)(uintptr_t)s, p); /* which is no change of the stream */
        return;
    }
    if (read != NODE_STAYS) n->marked = n->coded;
    if (n->coded) p->node = *copy = streamNodeExpand(n);
}

/* Visits one node; returns whether its text was tried. */
static bool visitNode(stream *s, const streamPlace *p, const nodeVisit *v) {
    streamNode *n = p->node;
    size_t cap = n->cap;
    bool mark = n->marked;
    unsigned dictionary = n->coded ? codedDictionary(n->bytes) : 0;
    bool tries = codedVisit(v, n->used - sizeof(*n), dictionary, n->futile, &mark);
    n->marked = mark;
    if (!tries) return false;
    streamNode *made = streamNodeCode(n, v);
    if (made) streamNodesChanged(s, p->key, n, cap, made);
    return true;
}

bool streamCodeNodes(stream *s, streamId *from, const nodeVisit *v) {
    streamPlace p;
    size_t seen = 0;
    bool more = s->index && streamSeek(s, *from, &p);
    for (bool over = false; more && p.node != s->tail && !over; more = streamPlaceNext(&p)) {
        *from = p.key;
        (void)streamIdNext(from); /* the tail has a higher one */
        if (visitNode(s, &p, v) || ++seen % CODED_VISITS == 0) over = v->is_over(v->arg);
    }
    return more && p.node != s->tail;
}

uint64_t streamCodedNodes(const stream *s) {
    uint64_t count = 0;
    streamPlace p;
    for (bool more = streamSeek(s, STREAM_ID_MIN, &p); more; more = streamPlaceNext(&p))
        count += p.node->coded;
    return count;
}

void streamSample(const stream *s, uint64_t part, size_t most, nodeTextProc *visit, void *arg) {
    streamPlace p;
    if (!s->index) return;
    check(streamSeek(s, STREAM_ID_MIN, &p));
    uint64_t first_ms = p.key.ms, ms = s->tail_key.ms - first_ms;
    streamNode *copy = NULL;
    /* The node that is the last one at a random time: not the tail. */
    if (ms) check(streamSeekBack(s, (streamId){first_ms + part % ms, UINT64_MAX}, &p));
    bool more = true;
    for (size_t i = 0; more && p.node != s->tail && i < most; i++, more = streamPlaceNext(&p)) {
        if (p.node->used > NODE_TEXT_MAX) continue;
        streamReadNode(s, &p, false, &copy);
        visit(arg, streamNodeText(p.node));
    }
    memFree(copy);
}
