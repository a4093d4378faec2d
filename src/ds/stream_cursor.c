/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iteration over the entries of a stream (stream.h). Main thread only. */
#include "ds/stream_private.h"

/* Stores the offsets of the entries up to c->end, to read them in reverse order. */
static void collect(streamCursor *c) {
    size_t most = (size_t)c->place.node->live + c->place.node->deleted;
    if (most > c->offset_cap) {
        memFree(c->offsets);
        c->offsets = memAlloc(most * sizeof(*c->offsets));
        c->offset_cap = most;
    }
    c->offset_count = 0;
    streamEntry e;
    for (bool more = streamNodeFirst(c->place.node, c->place.key, &e);
         more && !streamIdLess(c->end, e.id);
         more = streamNodeNext(c->place.node, c->place.key, &e))
        c->offsets[c->offset_count++] = e.at;
    hotCheck(c->offset_count <= c->offset_cap);
}

/* Moves c->entry to the node's last entry if it is not after c->end; that entry can be read without
 * scanning the others. */
static bool enterLast(streamCursor *c) {
    streamReadNode(c->s, &c->place, true, &c->copy);
    c->whole_node = false;
    if (!streamNodeLast(c->place.node, c->place.key, &c->entry)) return false;
    if (streamIdLess(c->end, c->entry.id)) return false;
    c->whole_node = true;
    return true;
}

/* Moves to the first entry of the following node. */
static void nextNode(streamCursor *c) {
    if (unlikely(c->copy != NULL)) {
        memFree(c->left);
        c->left = c->copy;
        c->copy = NULL;
    }
    c->at_end = !streamPlaceNext(&c->place);
    if (unlikely(c->at_end)) return;
    streamReadNode(c->s, &c->place, true, &c->copy);
    check(streamNodeFirst(c->place.node, c->place.key, &c->entry));
}

void streamCursorInit(streamCursor *c, const stream *s, streamId start, streamId end,
                      bool backwards) {
    c->s = s;
    c->start = start;
    c->end = end;
    c->backwards = backwards;
    c->whole_node = false;
    c->at_end = true;
    c->copy = c->left = NULL;
    c->offsets = NULL;
    c->offset_count = c->offset_cap = 0;
    if (streamIdLess(end, start)) return;
    if (backwards) {
        if (!streamSeekBack(s, end, &c->place)) return;
        c->at_end = false;
        if (!enterLast(c)) collect(c);
        return;
    }
    if (s->tail && !streamIdLess(start, s->tail_key)) {
        /* Readers of new entries need no search, as no node follows the tail. */
        c->place = (streamPlace){.key = s->tail_key, .node = s->tail};
    } else if (!streamSeekBack(s, start, &c->place) && !streamSeek(s, STREAM_ID_MIN, &c->place)) {
        return;
    }
    c->at_end = false;
    streamReadNode(s, &c->place, true, &c->copy);
    if (!streamNodeSeek(c->place.node, c->place.key, start, &c->entry)) nextNode(c);
}

/* Reads the next entry in forward order, removed or not, into *e. */
static bool stepForwards(streamCursor *c, streamEntry *e) {
    if (streamIdLess(c->end, c->entry.id)) {
        c->at_end = true;
        return false;
    }
    *e = c->entry;
    return true;
}

/* Advances to the entry after the one just read. */
static void advance(streamCursor *c) {
    if (!streamNodeNext(c->place.node, c->place.key, &c->entry)) nextNode(c);
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
            streamNodeRead(c->place.node, c->place.key, c->offsets[--c->offset_count], e);
            break;
        }
        if (!streamPlacePrev(&c->place)) {
            c->at_end = true;
            return false;
        }
        (void)enterLast(c); /* all of its ids are below the end */
    }
    if (!streamIdLess(e->id, c->start)) return true;
    c->at_end = true;
    return false;
}

bool streamCursorNext(streamCursor *c, streamId *id, streamFields *fields) {
    while (!c->at_end) {
        streamEntry e;
        if (c->backwards ? !stepBackwards(c, &e) : !stepForwards(c, &e)) return false;
        const streamNode *n = c->place.node;
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
    memFree(c->copy);
    memFree(c->left);
    c->copy = c->left = NULL;
}
