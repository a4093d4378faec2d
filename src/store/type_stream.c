/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of the stream type (type_stream.h). Main thread only, except freeing. */
#include "store/type_stream.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "store/element.h"
#include "store/type.h"

/* ------------------------------------------------------------------ memory of nodes */

static void *allocNode(size_t size) { return elementAlloc(size); }

static void freeNode(void *node, size_t size, void *by) {
    (void)size; /* the store knows it */
    elementFree(node, by);
}

static const streamMemory node_memory = {allocNode, freeNode, slabUsableSize};

void streamTypeInit(void) { streamSetMemory(&node_memory); }

robj *streamObjectNew(slice key) {
    return objectNewPointer(key, TYPE_STREAM, streamNew(), OBJECT_NO_EXPIRE, 0);
}

/* ------------------------------------------------------------------ operations of the type */

static const char *encodingOf(const robj *o) {
    hotCheck(objectType(o) == TYPE_STREAM);
    (void)o; /* there is only one */
    return "stream";
}

static size_t lengthOf(const robj *o) { return streamLength(streamOf(o)); }

static void digestStream(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id; /* the same everywhere */
    (void)look;  /* entries have no expiry times */
    streamCursor c;
    streamId id;
    streamFields fields;
    streamCursorInit(&c, streamOf(o), STREAM_ID_MIN, STREAM_ID_MAX, false);
    while (streamCursorNext(&c, &id, &fields)) {
        char text[2 * NUMBER_TEXT_MAX];
        int len = snprintf(text, sizeof(text), "%llu.%llu", (unsigned long long)id.ms,
                           (unsigned long long)id.seq);
        digestMix(to, sliceMake(text, (size_t)len));
        while (fields.left) {
            listpackItem name, value;
            char digits[NUMBER_TEXT_MAX];
            streamFieldsNext(&fields, &name, &value);
            digestMix(to, listpackText(&name, digits));
            digestMix(to, listpackText(&value, digits));
        }
    }
    streamCursorClear(&c);
}

static void freeStream(void *value, valueFreer *by) { streamFree(value, by); }

static void *copyStream(const valuePlace *from, const valuePlace *to, void *value) {
    (void)from, (void)to; /* not needed */
    return streamCopy(value);
}

static size_t freeEffort(const valuePlace *at, const void *value) {
    (void)at; /* not needed */
    return streamFreeEffort(value);
}

static size_t streamMemorySize(const valuePlace *at, const void *value, size_t samples) {
    (void)at; /* not needed */
    return streamBytes(value, samples);
}

static void *moveNode(void *by, void *node, size_t size) {
    return size > SLAB_SIZE_MAX ? elementMoveBlock(node, by) : elementMove(node, by);
}

static uint64_t compactStream(void **value, uint64_t cursor, compaction *by) {
    void *moved = cursor == 0 ? elementMoveBlock(*value, by) : NULL;
    if (moved) *value = moved;
    bool more = streamCompact(*value, cursor == 0, by->fields, moveNode, by, by->heap, &by->moved,
                              &by->kept);
    by->fields = 0;
    return more;
}

const typeOps streamOps = {
    .encoding = encodingOf,
    .length = lengthOf,
    .digest = digestStream,
    .free_value = freeStream,
    .copy_value = copyStream,
    .free_effort = freeEffort,
    .value_memory = streamMemorySize,
    .compact_value = compactStream,
    .has_elements = true,
};
