/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conversion of stream nodes to and from the listpacks of the disk format:
 *
 *   live, deleted, number of names, names, 0
 *   then per entry: flags (1 removed, 2 names as above), ms and seq as differences from the node's
 *   first id, [number of fields, name, value... | value...], number of listpack entries from the
 *   flags on
 *
 * streamNodeFromListpack() validates its input, which is untrusted. ANY_THREAD that owns the
 * node. */
#include "ds/stream_node_private.h"

/* ------------------------------------------------------------------ writing */

/* Writes listpack entries, or only counts their bytes. */
typedef struct packWriter {
    uint8_t *at; /* NULL: only counted */
    size_t size, count;
} packWriter;

static void put(packWriter *w, const listpackItem *item) {
    size_t size = listpackItemSize(item);
    if (w->at) {
        uint8_t *end = listpackWriteBody(w->at, item);
        w->at = listpackWriteBack(end, (size_t)(end - w->at));
    }
    w->size += size;
    w->count++;
}

static void putInt(packWriter *w, uint64_t v) {
    listpackItem item = listpackItemInt((int64_t)v);
    put(w, &item);
}

static void putEntry(packWriter *w, const streamNode *n, streamId key, const streamEntry *e) {
    hotCheck(e->at < e->next);
    streamFields fields;
    streamNodeFields(n, e, &fields);
    uint64_t count = fields.left;
    putInt(w, (e->deleted ? ENTRY_DELETED : 0u) | (e->same_fields ? ENTRY_SAME_FIELDS : 0u));
    putInt(w, e->id.ms - key.ms);
    putInt(w, e->id.seq - key.seq);
    if (!e->same_fields) putInt(w, count);
    while (fields.left) {
        listpackItem name, value;
        streamFieldsNext(&fields, &name, &value);
        if (!e->same_fields) put(w, &name);
        put(w, &value);
    }
    putInt(w, e->same_fields ? 3 + count : 4 + 2 * count);
}

static void putNode(packWriter *w, const streamNode *n, streamId key) {
    uint32_t names;
    const uint8_t *at = streamVarintRead(n->bytes, &names);
    putInt(w, n->live);
    putInt(w, n->deleted);
    putInt(w, names);
    for (uint32_t i = 0; i < names; i++) {
        listpackItem name;
        at = listpackReadBody(at, &name);
        put(w, &name);
    }
    putInt(w, 0);
    streamEntry e;
    for (bool more = streamNodeFirst(n, key, &e); more; more = streamNodeNext(n, key, &e))
        putEntry(w, n, key, &e);
}

size_t streamNodeListpackSize(const streamNode *n, streamId key) {
    packWriter w = {0};
    putNode(&w, n, key);
    return LISTPACK_EMPTY_SIZE + w.size;
}

void streamNodeToListpack(const streamNode *n, streamId key, uint8_t *out) {
    packWriter w = {.at = out + LISTPACK_HEADER};
    putNode(&w, n, key);
    *w.at = LISTPACK_END;
    storeU32(out, (uint32_t)(LISTPACK_EMPTY_SIZE + w.size));
    storeU16(out + 4, (uint16_t)sizeMin(w.count, LISTPACK_COUNT_UNKNOWN));
}

/* ------------------------------------------------------------------ reading */

/* Iteration over a listpack whose framing is valid. */
typedef struct packReader {
    const uint8_t *at; /* NULL at the end */
    streamId key, last;
    uint64_t live, deleted; /* entries so far */
} packReader;

/* Reads the next entry; false if it is not an integer in this range. */
static bool takeInt(packReader *r, int64_t min, int64_t max, int64_t *out) {
    hotCheck(min <= max);
    listpackItem item;
    if (!r->at) return false;
    r->at = listpackRead(r->at, &item);
    if (item.ptr && !numberParseInt(sliceMake(item.ptr, item.len), &item.number)) return false;
    *out = item.number;
    return item.number >= min && item.number <= max;
}

/* Copies the next `count` entries without their ends to `*to`; counts their bytes as a listpack.
 * False if there are fewer. */
static bool takeBodies(packReader *r, uint64_t count, uint8_t **to, size_t *packed) {
    for (uint64_t i = 0; i < count; i++) {
        listpackItem item;
        if (!r->at) return false;
        const uint8_t *end = listpackReadBody(r->at, &item);
        size_t body = (size_t)(end - r->at);
        memcpy(*to, r->at, body);
        *to += body;
        *packed += streamPackedSize(body);
        r->at = listpackRead(r->at, &item);
    }
    return true;
}

/* Flags, id and number of fields of an entry. */
typedef struct packedHead {
    int64_t flags;
    streamId id;
    int64_t fields;
    size_t packed; /* size of the whole listpack in canonical form */
} packedHead;

static bool takeHead(packReader *r, uint32_t names, packedHead *out) {
    int64_t ms, seq;
    if (!takeInt(r, 0, ENTRY_DELETED | ENTRY_SAME_FIELDS, &out->flags)) return false;
    if (!takeInt(r, INT64_MIN, INT64_MAX, &ms)) return false;
    if (!takeInt(r, INT64_MIN, INT64_MAX, &seq)) return false;
    out->id = (streamId){r->key.ms + (uint64_t)ms, r->key.seq + (uint64_t)seq};
    out->packed = streamPackedInt((uint64_t)out->flags) + streamPackedInt((uint64_t)ms) +
                  streamPackedInt((uint64_t)seq);
    if (out->flags & ENTRY_SAME_FIELDS) {
        out->fields = names;
        return true;
    }
    if (!takeInt(r, 0, INT32_MAX, &out->fields)) return false;
    out->packed += streamPackedInt((uint64_t)out->fields);
    return true;
}

/* Appends the next entry to the node, which has space for the whole listpack. */
static bool takeEntry(packReader *r, streamNode *n, uint32_t names) {
    hotCheck(n->used <= n->cap);
    packedHead head;
    if (!takeHead(r, names, &head)) return false;
    bool is_first = n->first == n->used;
    if (streamIdLess(head.id, r->key)) return false;
    if (!is_first && !streamIdLess(r->last, head.id)) return false;
    uint64_t ms, seq;
    bool same = head.flags & ENTRY_SAME_FIELDS;
    streamIdParts(r->key, head.id, &ms, &seq);
    uint8_t *start = (uint8_t *)n + n->used, *begin = start + VARINT_MAX;
    uint8_t *body = streamWriteId(begin, (unsigned)head.flags, ms, seq), *at = body;
    if (!same) at = streamVarintWrite(at, (uint64_t)head.fields);
    uint64_t bodies = (uint64_t)head.fields * (same ? 1 : 2);
    if (!takeBodies(r, bodies, &at, &head.packed)) return false;
    int64_t told, count = (int64_t)bodies + (same ? 3 : 4);
    if (!takeInt(r, count, count, &told)) return false;
    size_t size = (size_t)(at - begin), prefix = streamVarintSize(size);
    (void)streamVarintWrite(start, size); /* its size is known */
    memmove(start + prefix, begin, size);
    n->last = n->used;
    n->used += (uint32_t)(prefix + size);
    n->packed += (uint32_t)(head.packed + streamPackedInt((uint64_t)count));
    if (head.flags & ENTRY_DELETED) {
        n->deleted++;
        n->stale += (uint32_t)(at - body);
    } else {
        n->live++;
    }
    r->last = head.id;
    return true;
}

/* Reads the names and the announced counts. */
static bool takeMaster(packReader *r, streamNode *n, int64_t *live, int64_t *deleted,
                       uint32_t *names) {
    int64_t count, end;
    if (!takeInt(r, 0, UINT32_MAX, live) || !takeInt(r, 0, UINT32_MAX, deleted)) return false;
    if (!takeInt(r, 0, INT32_MAX, &count)) return false;
    uint8_t *at = streamVarintWrite(n->bytes, (uint64_t)count);
    size_t packed = streamPackedInt((uint64_t)count) + 2; /* the 0 */
    if (!takeBodies(r, (uint64_t)count, &at, &packed)) return false;
    if (!takeInt(r, 0, 0, &end)) return false;
    *names = (uint32_t)count;
    n->packed = (uint32_t)packed;
    n->first = n->used = (uint32_t)(at - (uint8_t *)n);
    return true;
}

streamNode *streamNodeFromListpack(const void *bytes, size_t size, streamId key) {
    /* An entry takes at least 4 listpack entries, and at most 10 bytes more here: twice its bytes
     * and 8 are enough. */
    if (size > UINT32_MAX / 4) return NULL;
    if (!listpackIsValid(bytes, size, true, NULL, NULL)) return NULL;
    streamNode *n = streamNodeAlloc(sizeof(streamNode) + 4 * size + ENTRY_HEAD_MAX + 8);
    *n = (streamNode){.cap = n->cap};
    packReader r = {.at = listpackFirst(bytes), .key = key};
    int64_t live, deleted;
    uint32_t names;
    bool sound = takeMaster(&r, n, &live, &deleted, &names);
    while (sound && r.at) sound = takeEntry(&r, n, names);
    if (!sound || n->live != live || n->deleted != deleted || n->first == n->used) {
        streamNodeFree(n, NULL);
        return NULL;
    }
    return streamNodeFit(n);
}
