/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of streams (stream_node.h has the format).
 *
 * Invariant: the entries' ids ascend; live + deleted is the number of entries; `stale` is the size
 * in bytes of the fields of removed entries that have not been dropped. ANY_THREAD that owns the
 * node. */
#include "ds/stream_node_private.h"

static void *heapAlloc(size_t size) { return memAlloc(size); }
static void heapFree(void *block, size_t size, void *by) {
    (void)size, (void)by; /* the heap stores block sizes */
    memFree(block);
}
static size_t heapUsable(size_t size) { return size; }
static const streamMemory heap = {heapAlloc, heapFree, heapUsable};
static const streamMemory *memory = &heap;

void streamSetMemory(const streamMemory *m) { memory = m; }

/* ------------------------------------------------------------------ blocks */

streamNode *streamNodeAlloc(size_t cap) {
    cap = memory->usable(cap);
    check(cap <= UINT32_MAX);
    streamNode *n = memory->alloc(cap);
    n->cap = (uint32_t)cap;
    return n;
}

/* Bytes of the block that have content. */
static size_t contentSize(const streamNode *n) {
    return unlikely(n->coded) ? sizeof(*n) + CODED_HEAD + codedLength(n->bytes) : n->used;
}

static size_t textSize(const streamNode *n) { return n->used - sizeof(*n); }

void streamNodeFree(streamNode *n, void *by) {
    if (!n) return;
    if (unlikely(n->coded)) codedCount(n->bytes, textSize(n), false);
    memory->free(n, n->cap, by);
}

/* Reallocates the node with about this size; frees the old block. */
static streamNode *moveNode(streamNode *n, size_t cap) {
    hotCheck(cap >= n->used);
    hotCheck(!n->coded);
    streamNode *moved = streamNodeAlloc(cap);
    cap = moved->cap;
    memcpy(moved, n, n->used);
    moved->cap = (uint32_t)cap;
    streamNodeFree(n, NULL);
    return moved;
}

streamNode *streamNodeCopy(const streamNode *n) {
    size_t size = contentSize(n);
    hotCheck(size <= n->cap);
    streamNode *copy = streamNodeAlloc(size);
    uint32_t cap = copy->cap;
    memcpy(copy, n, size);
    copy->cap = cap;
    copy->marked = 0;
    if (copy->coded) codedCount(copy->bytes, textSize(copy), true);
    return copy;
}

streamNode *streamNodeFit(streamNode *n) {
    return memory->usable(n->used) < n->cap ? moveNode(n, n->used) : n;
}

/* ------------------------------------------------------------------ coding */

/* Makes the memory at `to` a node like the coded one at `from`. */
static void expandTo(streamNode *to, const streamNode *from, size_t cap) {
    check(from->coded);
    *to = *from;
    to->cap = (uint32_t)cap;
    to->coded = to->marked = to->futile = 0;
    codedExpand(from->bytes, to->bytes, textSize(from));
}

streamNode *streamNodePlain(streamNode *n) {
    n->marked = n->futile = 0;
    if (likely(!n->coded)) return n;
    streamNode *plain = streamNodeAlloc(n->used);
    expandTo(plain, n, plain->cap);
    streamNodeFree(n, NULL);
    return plain;
}

streamNode *streamNodeExpand(const streamNode *n) {
    streamNode *plain = memAlloc(n->used);
    expandTo(plain, n, n->used);
    return plain;
}

slice streamNodeText(const streamNode *n) {
    hotCheck(!n->coded);
    return sliceMake(n->bytes, textSize(n));
}

streamNode *streamNodeCode(streamNode *n, const nodeVisit *v) {
    hotCheck(n->used <= NODE_TEXT_MAX + sizeof(*n));
    /* A dictionary in place of another one need not be better. */
    size_t most = codedMemoryMost(n->coded ? memory->usable(n->used) : n->cap);
    streamNode *plain = n->coded ? streamNodeExpand(n) : n;
    slice text = streamNodeText(plain), coded = SLICE("");
    if (most > sizeof(*n) + CODED_HEAD)
        coded = v->code(v->arg, text, most - sizeof(*n) - CODED_HEAD);
    size_t size = sizeof(*n) + CODED_HEAD + coded.len;
    bool gains = coded.len && memory->usable(size) <= most;
    n->marked = 0;
    n->futile = !gains;
    streamNode *made = gains ? streamNodeAlloc(size) : NULL;
    if (made) {
        uint32_t cap = made->cap;
        *made = *n;
        made->cap = cap;
        made->coded = 1;
        codedWrite(made->bytes, v->dictionary, coded, text.len);
    }
    if (plain != n) memFree(plain);
    if (made) streamNodeFree(n, NULL);
    return made;
}

static inline const uint8_t *placeOf(const streamNode *n, uint32_t offset) {
    return (const uint8_t *)n + offset;
}

/* ------------------------------------------------------------------ creation */

size_t streamNodePackedSize(const streamNode *n) {
    return LISTPACK_EMPTY_SIZE + streamPackedInt(n->live) + streamPackedInt(n->deleted) + n->packed;
}

streamNode *streamNodeNew(const slice *fields, size_t count, size_t cap) {
    hotCheck(count % 2 == 0);
    hotCheck(count > 0);
    size_t names = count / 2, need = sizeof(streamNode) + VARINT_MAX;
    for (size_t i = 0; i < count; i += 2) need += fields[i].len + LISTPACK_BODY_EXTRA;
    streamNode *n = streamNodeAlloc(sizeMax(need, cap));
    *n = (streamNode){.cap = n->cap};
    uint8_t *at = streamVarintWrite(n->bytes, names);
    n->packed = (uint32_t)streamPackedInt(names) + 2; /* the 0 after the names */
    for (size_t i = 0; i < count; i += 2) {
        listpackItem name = listpackItemOf(fields[i]);
        uint8_t *end = listpackWriteBody(at, &name);
        n->packed += (uint32_t)streamPackedSize((size_t)(end - at));
        at = end;
    }
    n->first = n->used = (uint32_t)(at - (uint8_t *)n);
    return n;
}

/* True if these fields have the names of the node. */
static bool hasNames(const streamNode *n, const slice *fields, size_t count) {
    hotCheck(count % 2 == 0);
    uint32_t names;
    const uint8_t *at = streamVarintRead(n->bytes, &names);
    if (names != count / 2) return false;
    for (size_t i = 0; i < count; i += 2) {
        listpackItem own;
        char digits[NUMBER_TEXT_MAX];
        at = listpackReadBody(at, &own);
        if (!sliceEqual(listpackText(&own, digits), fields[i])) return false;
    }
    return true;
}

streamNode *streamNodeReserve(streamNode *n, size_t more) {
    hotCheck(n->used <= n->cap);
    size_t need = n->used + more;
    if (likely(need <= n->cap)) return n;
    return moveNode(n, need + n->used / 2);
}

streamNode *streamNodeAppend(streamNode *n, streamId key, streamId id, const slice *fields,
                             size_t count) {
    hotCheck(count % 2 == 0);
    hotCheck(!streamIdLess(id, key));
    bool same = hasNames(n, fields, count);
    size_t most = ENTRY_HEAD_MAX + VARINT_MAX + sizeof(uint64_t);
    for (size_t i = same; i < count; i += 1 + same) most += fields[i].len + LISTPACK_BODY_EXTRA;
    n = streamNodeReserve(n, most);
    uint64_t ms, seq;
    streamIdParts(key, id, &ms, &seq);
    /* Its length, which precedes it, is not known in advance; it usually takes one byte. */
    uint8_t *start = (uint8_t *)n + n->used, *begin = start + VARINT_MAX;
    uint8_t *at = streamWriteId(begin, same ? ENTRY_SAME_FIELDS : 0, ms, seq);
    size_t packed =
        2 + streamPackedInt(id.ms - key.ms) + streamPackedInt(id.seq - key.seq); /* 2: flags */
    if (!same) {
        at = streamVarintWrite(at, count / 2);
        packed += streamPackedInt(count / 2);
    }
    for (size_t i = same; i < count; i += 1 + same) {
        listpackItem item = listpackItemOf(fields[i]);
        uint8_t *end = listpackWriteBody(at, &item);
        packed += streamPackedSize((size_t)(end - at));
        at = end;
    }
    packed += streamPackedInt(same ? 3 + count / 2 : 4 + count);
    size_t size = (size_t)(at - begin), prefix = streamVarintSize(size);
    (void)streamVarintWrite(start, size); /* its size is known */
    memmove(start + prefix, begin, size);
    n->last = n->used;
    n->used += (uint32_t)(prefix + size);
    n->packed += (uint32_t)packed;
    n->live++;
    return n;
}

/* ------------------------------------------------------------------ reading */

ALWAYS_INLINE void readEntry(const streamNode *n, streamId key, uint32_t offset, streamEntry *out) {
    hotCheck(offset >= n->first);
    hotCheck(offset < n->used);
    hotCheck(!n->coded);
    uint32_t size;
    const uint8_t *at = streamVarintRead(placeOf(n, offset), &size);
    out->at = offset;
    out->next = (uint32_t)(at - (const uint8_t *)n) + size;
    unsigned head = *at++;
    unsigned ms_code = head >> MS_SHIFT & SIZE_CODES, seq_code = head >> SEQ_SHIFT & SIZE_CODES;
    uint64_t ms = streamLoadCoded(at, ms_code);
    at += streamCodeBytes(ms_code);
    uint64_t seq = streamLoadCoded(at, seq_code);
    at += streamCodeBytes(seq_code);
    out->id.ms = key.ms + ms;
    out->id.seq = ms == 0 ? key.seq + seq : seq;
    out->deleted = head & ENTRY_DELETED;
    out->same_fields = head & ENTRY_SAME_FIELDS;
    out->body = (uint32_t)(at - (const uint8_t *)n);
}

void streamNodeRead(const streamNode *n, streamId key, uint32_t at, streamEntry *out) {
    hotCheck(at < n->used);
    readEntry(n, key, at, out);
}

bool streamNodeFirst(const streamNode *n, streamId key, streamEntry *out) {
    hotCheck(n->first <= n->used);
    if (n->first == n->used) return false;
    readEntry(n, key, n->first, out);
    return true;
}

bool streamNodeLast(const streamNode *n, streamId key, streamEntry *out) {
    hotCheck(n->first <= n->used);
    if (n->first == n->used) return false;
    readEntry(n, key, n->last, out);
    return true;
}

bool streamNodeNext(const streamNode *n, streamId key, streamEntry *e) {
    hotCheck(e->next <= n->used);
    if (e->next == n->used) return false;
    readEntry(n, key, e->next, e);
    return true;
}

bool streamNodeSeek(const streamNode *n, streamId key, streamId id, streamEntry *out) {
    if (!streamNodeLast(n, key, out) || streamIdLess(out->id, id)) return false;
    if (streamIdEqual(out->id, id)) return true;
    uint32_t at = n->first;
    do {
        readEntry(n, key, at, out);
        at = out->next;
    } while (streamIdLess(out->id, id));
    return true;
}

void streamNodeFields(const streamNode *n, const streamEntry *e, streamFields *out) {
    const uint8_t *at = placeOf(n, e->body);
    if (likely(e->same_fields)) {
        out->name = streamVarintRead(n->bytes, &out->left);
        out->at = at;
    } else {
        out->name = NULL;
        out->at = streamVarintRead(at, &out->left);
    }
}

/* ------------------------------------------------------------------ removing */

void streamNodeMark(streamNode *n, streamEntry *e) {
    hotCheck(!e->deleted);
    hotCheck(n->live > 0);
    uint32_t size;
    uint8_t *head = (uint8_t *)(uintptr_t)streamVarintRead(placeOf(n, e->at), &size);
    *head |= ENTRY_DELETED;
    e->deleted = true;
    n->live--;
    n->deleted++;
    n->stale += e->next - e->body;
}

streamNode *streamNodeDropFields(streamNode *n, streamId key) {
    hotCheck(n->stale <= n->used);
    if (n->stale < n->used / 2) return n;
    uint32_t to = n->first, last = to;
    streamEntry e;
    bool more = streamNodeFirst(n, key, &e);
    while (more) {
        streamEntry next = e;
        more = streamNodeNext(n, key, &next);
        last = to;
        uint8_t *at = (uint8_t *)n + to;
        bool has_body = e.body < e.next;
        if (e.deleted && has_body) {
            /* One byte of length, flags and id, no fields. This is never longer than the old
             * content. */
            uint64_t ms, seq;
            uint8_t head[ENTRY_HEAD_MAX + sizeof(uint64_t)];
            streamIdParts(key, e.id, &ms, &seq);
            uint8_t *end = streamWriteId(head + 1, ENTRY_DELETED, ms, seq);
            *end++ = 0;
            size_t size = (size_t)(end - head);
            head[0] = (uint8_t)(size - 1);
            memcpy(at, head, size);
            to += (uint32_t)size;
        } else {
            memmove(at, placeOf(n, e.at), e.next - e.at);
            to += e.next - e.at;
        }
        e = next;
    }
    n->used = to;
    n->last = last;
    n->stale = 0;
    return streamNodeFit(n);
}
