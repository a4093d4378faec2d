/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams (type_stream.h) as one type among others. Main thread only, but for freeing. */
#include "store/type_stream.h"

#include "base/base.h"
#include "base/number.h"
#include "store/element.h"
#include "store/type.h"

/* ------------------------------------------------------------------ memory of nodes */

static void *allocNode(size_t size) { return elementAlloc(size); }

static void freeNode(void *node, size_t size, void *by) { elementFree(node, size, by); }

static const streamMemory node_memory = {allocNode, freeNode, slabUsableSize};

void streamTypeInit(void) { streamSetMemory(&node_memory); }

robj *streamObjectNew(slice key) {
    return objectNewPointer(key, TYPE_STREAM, streamNew(), OBJECT_NO_EXPIRE, 0);
}

/* ------------------------------------------------------------------ the operations */

static const char *encodingOf(const robj *o) {
    (void)o; /* there is one */
    return "stream";
}

static size_t lengthOf(const robj *o) { return streamLength(streamOf(o)); }

static void digestStream(const robj *o, storeLook look, digest *to) {
    (void)look; /* entries have no expiry times */
    streamCursor c;
    streamId id;
    streamFields fields;
    streamCursorInit(&c, streamOf(o), STREAM_ID_MIN, STREAM_ID_MAX, false);
    while (streamCursorNext(&c, &id, &fields)) {
        digestMix(to, sliceMake(&id, sizeof(id)));
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

static void *copyStream(void *value) { return streamCopy(value); }

static size_t freeEffort(const void *value) { return streamFreeEffort(value); }

static size_t streamMemorySize(const void *value, size_t samples) {
    return streamBytes(value, samples);
}

static void *moveNode(void *by, void *node, size_t size) {
    return size > SLAB_SIZE_MAX ? elementMoveBlock(node, by) : elementMove(node, size, by);
}

static uint64_t compactStream(void **value, uint64_t cursor, compaction *by) {
    void *moved = cursor == 0 ? elementMoveBlock(*value, by) : NULL;
    if (moved) *value = moved;
    bool more = streamCompact(*value, cursor == 0, by->fields, moveNode, by, by->heap, &by->moved,
                              &by->kept);
    by->fields = 0;
    return more;
}

/* ------------------------------------------------------------------ size in an RDB file */

static size_t savedNumber(uint64_t v) {
    return v < 64 ? 1 : v < 16384 ? 2 : v <= UINT32_MAX ? 5 : 9;
}

static size_t savedId(streamId id) { return savedNumber(id.ms) + savedNumber(id.seq); }

static bool addNode(void *arg, streamId key, const streamNode *n) {
    size_t *sum = arg, size = streamNodeListpackSize(n, key);
    *sum += 1 + sizeof(streamId) + savedNumber(size) + size;
    return true;
}

static size_t savedGroup(const streamGroup *g) {
    orderedCursor at;
    size_t pending = streamPendingCount(g);
    size_t sum = savedTextSize(streamGroupName(g)) + savedId(streamGroupLastId(g)) +
                 savedNumber((uint64_t)streamGroupEntriesRead(g)) + savedNumber(pending) +
                 savedNumber(streamConsumerCount(g));
    /* Of each pending entry: id, time and count, and the id once more with its consumer. */
    sum += pending * (2 * sizeof(streamId) + sizeof(uint64_t) + 1);
    for (const streamConsumer *c = streamConsumerFirst(g, &at); c; c = streamConsumerNext(&at))
        sum += savedTextSize(streamConsumerName(c)) + 2 * sizeof(uint64_t) +
               savedNumber(streamConsumerPending(c));
    return sum;
}

static size_t savedStream(const robj *o) {
    const stream *s = streamOf(o);
    orderedCursor at;
    size_t sum = savedNumber(streamNodeCount(s)) + savedNumber(streamLength(s)) +
                 savedId(streamLastId(s)) + savedId(streamFirstId(s)) +
                 savedId(streamMaxDeletedId(s)) + savedNumber(streamEntriesAdded(s)) +
                 savedNumber(streamGroupCount(s));
    streamEachNode(s, addNode, &sum);
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at))
        sum += savedGroup(g);
    return sum;
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
    .saved_size = savedStream,
};
