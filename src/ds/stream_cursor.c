/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks over the entries of a stream (stream.h). Main thread only. */
#include "ds/stream_private.h"

/* Enters the node at c->nodes. */
static void enter(streamCursor *c) {
    idEntry entry;
    idCursorRead(&c->nodes, &entry);
    c->key = entry.id;
    c->node = (const streamNode *)(uintptr_t)entry.value[0];
}

/* Notes the places of the entries up to c->end, so that they can be read from the last one on. */
static void collect(streamCursor *c) {
    size_t most = (size_t)c->node->live + c->node->deleted;
    if (most > c->place_cap) {
        memFree(c->places);
        c->places = memAlloc(most * sizeof(*c->places));
        c->place_cap = most;
    }
    c->place_count = 0;
    streamEntry e;
    for (bool more = streamNodeFirst(c->node, c->key, &e); more && !streamIdLess(c->end, e.id);
         more = streamNodeNext(c->node, c->key, &e))
        c->places[c->place_count++] = e.at;
}

/* Moves c->entry to the last entry of the node at or before c->end, if it is alone known without a look at the others. */
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
    c->places = NULL;
    c->place_count = c->place_cap = 0;
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

/* The next entry forwards, removed or not, into *e. */
static bool stepForwards(streamCursor *c, streamEntry *e) {
    if (streamIdLess(c->end, c->entry.id)) {
        c->node = NULL;
        return false;
    }
    *e = c->entry;
    return true;
}

/* Prepares the entry after the one that was read. */
static void advance(streamCursor *c) {
    if (streamNodeNext(c->node, c->key, &c->entry)) return;
    c->node = NULL;
    if (!idCursorNext(&c->nodes)) return;
    enter(c);
    check(streamNodeFirst(c->node, c->key, &c->entry));
}

/* The next entry backwards, removed or not, into *e. */
static bool stepBackwards(streamCursor *c, streamEntry *e) {
    for (;;) {
        if (c->whole_node) {
            c->whole_node = false;
            *e = c->entry;
            c->place_count = SIZE_MAX; /* the others are looked for when they are wanted */
            break;
        }
        if (c->place_count == SIZE_MAX) {
            collect(c);
            c->place_count--; /* the last one was read */
        }
        if (c->place_count > 0) {
            streamNodeRead(c->node, c->key, c->places[--c->place_count], e);
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
    memFree(c->places);
    c->places = NULL;
}
