/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iteration over the entries of a stream (stream.h). Main thread only. */
#include "ds/stream_private.h"

/* Enters the node at c->nodes. */
static void enter(streamCursor *c) {
    idEntry entry;
    idCursorRead(&c->nodes, &entry);
    c->key = entry.id;
    c->node = (const streamNode *)(uintptr_t)entry.value[0];
    hotCheck(c->node->used <= c->node->cap);
}

/* Stores the offsets of the entries up to c->end, to read them in reverse order. */
static void collect(streamCursor *c) {
    size_t most = (size_t)c->node->live + c->node->deleted;
    if (most > c->offset_cap) {
        memFree(c->offsets);
        c->offsets = memAlloc(most * sizeof(*c->offsets));
        c->offset_cap = most;
    }
    c->offset_count = 0;
    streamEntry e;
    for (bool more = streamNodeFirst(c->node, c->key, &e); more && !streamIdLess(c->end, e.id);
         more = streamNodeNext(c->node, c->key, &e))
        c->offsets[c->offset_count++] = e.at;
    hotCheck(c->offset_count <= c->offset_cap);
}

/* Moves c->entry to the node's last entry if it is not after c->end; that entry can be read without
 * scanning the others. */
static bool enterLast(streamCursor *c) {
    c->whole_node = false;
    if (!streamNodeLast(c->node, c->key, &c->entry)) return false;
    if (streamIdLess(c->end, c->entry.id)) return false;
    c->whole_node = true;
    return true;
}

void streamCursorInit(streamCursor *c, const stream *s, streamId start, streamId end,
                      bool backwards) {
    c->s = s;
    c->start = start;
    c->end = end;
    c->backwards = backwards;
    c->whole_node = false;
    c->node = NULL;
    c->offsets = NULL;
    c->offset_count = c->offset_cap = 0;
    if (streamIdLess(end, start)) return;
    if (backwards) {
        if (!idTreeSeekBack(&s->nodes, end, &c->nodes)) return;
        enter(c);
        if (!enterLast(c)) collect(c);
        return;
    }
    if (!idTreeSeekBack(&s->nodes, start, &c->nodes) &&
        !idTreeSeek(&s->nodes, STREAM_ID_MIN, &c->nodes))
        return;
    enter(c);
    if (streamNodeSeek(c->node, c->key, start, &c->entry)) return;
    c->node = NULL;
    if (!idCursorNext(&c->nodes)) return;
    enter(c);
    check(streamNodeFirst(c->node, c->key, &c->entry));
}

/* Reads the next entry in forward order, removed or not, into *e. */
static bool stepForwards(streamCursor *c, streamEntry *e) {
    if (streamIdLess(c->end, c->entry.id)) {
        c->node = NULL;
        return false;
    }
    *e = c->entry;
    return true;
}

/* Advances to the entry after the one just read. */
static void advance(streamCursor *c) {
    if (streamNodeNext(c->node, c->key, &c->entry)) return;
    c->node = NULL;
    if (!idCursorNext(&c->nodes)) return;
    enter(c);
    check(streamNodeFirst(c->node, c->key, &c->entry));
}

/* Reads the next entry in reverse order, removed or not, into *e. */
static bool stepBackwards(streamCursor *c, streamEntry *e) {
    for (;;) {
        if (c->whole_node) {
            c->whole_node = false;
            *e = c->entry;
            c->offset_count = SIZE_MAX; /* the other entries are scanned when needed */
            break;
        }
        if (c->offset_count == SIZE_MAX) {
            collect(c);
            c->offset_count--; /* the last one has been read */
        }
        if (c->offset_count > 0) {
            streamNodeRead(c->node, c->key, c->offsets[--c->offset_count], e);
            break;
        }
        if (!idCursorPrev(&c->nodes)) {
            c->node = NULL;
            return false;
        }
        enter(c);
        (void)enterLast(c); /* all of its ids are below the end */
    }
    if (!streamIdLess(e->id, c->start)) return true;
    c->node = NULL;
    return false;
}

bool streamCursorNext(streamCursor *c, streamId *id, streamFields *fields) {
    while (c->node) {
        streamEntry e;
        const streamNode *n = c->node;
        if (c->backwards ? !stepBackwards(c, &e) : !stepForwards(c, &e)) return false;
        if (c->backwards) n = c->node;
        if (!e.deleted) {
            *id = e.id;
            streamNodeFields(n, &e, fields);
        }
        if (!c->backwards) advance(c);
        if (!e.deleted) return true;
    }
    return false;
}

void streamCursorClear(streamCursor *c) {
    memFree(c->offsets);
    c->offsets = NULL;
}
