/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output of a snapshot through a worker thread (snapshot_stream.h).
 *
 * A block has the bytes of records, and the positions of the strings among them that the worker has
 * to encode, or to expand first. Blocks go from the main thread to the worker (`first` .. `last`),
 * and back (`returned`), under one lock that is taken once for some 64 KB.
 *
 * Invariants: `published` blocks are in one of these two lists or being encoded; a block belongs to
 * one thread at a time; references to blobs are dropped by the main thread only. `state` is final
 * when the worker no longer uses anything but the loop's wake-up. */
#include "persist/snapshot_stream.h"

#include <pthread.h>
#include <string.h>

#include "base/base.h"
#include "format/rdb_envelope.h"
#include "format/rdb_file.h"
#include "io/file_stream.h"
#include "io/thread.h"
#include "store/dictionary.h"

#ifdef HOSTILE_BUILD
enum { BLOCKS = 3, BLOCK_STRINGS = 4, BLOCK_LONGS = 2, LONG_MIN = 100, PIECE_BYTES = 1000 };
#else
enum {
    BLOCKS = 48,          /* the fixed amount of memory; 3.8 MB */
    BLOCK_STRINGS = 2032, /* makes a block fit a size class of the allocator */
    BLOCK_LONGS = 16,
    LONG_MIN = 16 * 1024, /* strings to compress from this length on are not copied into blocks */
    PIECE_BYTES = 256 * 1024, /* written or relayed between two looks at `cancelled` */
};
#endif

/* A string of the block's bytes; or (len LONG_STRING) the next one of its long strings; or (len
 * COMPRESSED) a value that is compressed with a dictionary: compressedString, then its bytes. */
#define LONG_STRING UINT32_MAX
#define COMPRESSED (UINT32_MAX - 1)
typedef struct compressedString {
    uint32_t dictionary, packed_len, len;
} compressedString;
typedef struct stringAt {
    uint32_t at, len;
} stringAt;

typedef struct longString {
    slice text;
    blob *from; /* NULL: a copy, freed by the worker */
} longString;

typedef struct block {
    struct block *next;
    uint32_t used, string_count, long_count;
    size_t long_bytes;
    longString longs[BLOCK_LONGS];
    stringAt strings[BLOCK_STRINGS];
    char bytes[RDB_WRITER_BUFFER];
} block;

/* A writer and its blocks. */
typedef struct part {
    rdbSink sink; /* first: the sink is cast to its part */
    rdbWriter writer;
    snapshotStream *stream;
    block *now;           /* being filled; its bytes are the writer's buffer */
    block *first, **last; /* complete; only of the side part */
} part;

typedef struct outSink {
    rdbSink sink;
    snapshotStream *stream;
} outSink;

typedef struct relayed {
    struct relayed *next;
    blob *bytes;
} relayed;

struct snapshotStream {
    /* Main thread. */
    part main, side;
    block *free;
    size_t published;   /* blocks */
    size_t long_bytes;  /* of their long strings */
    size_t copy_bytes;  /* of all copies of long strings */
    size_t block_count; /* allocated */
    size_t peak;
    bool compress, ended;
    thread worker;
    /* Read by both. */
    char *temporary, *name;
    int64_t sync_bytes;
    bool relays, is_rdb, checksum;
    loop *loop;
    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for the worker */
    block *first, **last, *returned;
    size_t waiting;      /* published and not returned */
    size_t waiting_long; /* bytes of their long strings */
    bool end, relay_is_dropped;
    bool starved; /* the producer waits for room */
    relayed *relay_first, **relay_last;
    size_t relay_bytes;
    snapshotStreamState state;
    reason why;
    /* Read without it. */
    bool has_returned, cancelled, failed;
    uint64_t written;
    /* Worker. */
    outSink encoded;        /* gets the bytes of the file */
    rdbEnvelopeSink packed; /* between `encoder` and `encoded` if there is a codec */
    rdbWriter encoder;
    str expanded; /* the text of a compressed value */
    fileWriter file;
};

static bool get(const bool *flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }
static void set(bool *flag, bool to) { __atomic_store_n(flag, to, __ATOMIC_RELAXED); }

/* Of the fixed memory, while so many blocks with so many bytes in long strings wait: 0 or at least
 * a block. */
static size_t room(size_t blocks, size_t long_bytes) {
    if (blocks >= BLOCKS - 1) return 0;
    size_t bytes = (BLOCKS - 1 - blocks) * RDB_WRITER_BUFFER;
    return bytes >= long_bytes + RDB_WRITER_BUFFER ? bytes - long_bytes : 0;
}

static void wake(const snapshotStream *s) {
    if (s->loop) loopWake(s->loop);
}

/* ------------------------------------------------------------------ the worker */

static void relay(snapshotStream *s, const char *bytes, size_t len) {
    hotCheck(len > 0);
    relayed *r = memNew(relayed);
    r->bytes = blobNew(len);
    memcpy(r->bytes->bytes, bytes, len);
    r->bytes->len = len;
    pthread_mutex_lock(&s->lock);
    while (s->relay_bytes >= SNAPSHOT_STREAM_RELAY && !s->relay_is_dropped && !get(&s->cancelled))
        pthread_cond_wait(&s->changed, &s->lock);
    bool unwanted = s->relay_is_dropped;
    bool was_empty = !s->relay_first;
    if (!unwanted) {
        *s->relay_last = r;
        s->relay_last = &r->next;
        s->relay_bytes += len;
    }
    pthread_mutex_unlock(&s->lock);
    if (unwanted) {
        blobRelease(r->bytes);
        memFree(r);
    } else if (was_empty) {
        wake(s);
    }
}

static status writeOut(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    snapshotStream *s = ((outSink *)sink)->stream;
    const char *at = bytes;
    status st = OK;
    for (size_t n; len && st == OK; at += n, len -= n) {
        n = sizeMin(len, PIECE_BYTES);
        if (get(&s->cancelled)) return ERR_AGAIN;
        if (s->name) st = fileWriterWrite(&s->file, at, n, why);
        if (st == OK && s->relays) relay(s, at, n);
        if (st == OK) __atomic_store_n(&s->written, s->written + n, __ATOMIC_RELAXED);
    }
    return st;
}

/* Encodes a compressed value of a block. Returns the bytes it has there. */
static uint32_t encodeCompressed(snapshotStream *s, const char *at) {
    compressedString c;
    memcpy(&c, at, sizeof(c));
    strClear(&s->expanded);
    char *text = strReserve(&s->expanded, c.len);
    bool expanded =
        dictionaryExpand(c.dictionary, sliceMake(at + sizeof(c), c.packed_len), text, c.len);
    check(expanded);
    rdbWriteString(&s->encoder, sliceMake(text, c.len));
    return (uint32_t)sizeof(c) + c.packed_len;
}

static void encode(snapshotStream *s, const block *b) {
    hotCheck(b->used <= sizeof(b->bytes));
    rdbWriter *w = &s->encoder;
    uint32_t at = 0, longs = 0;
    for (uint32_t i = 0; i < b->string_count; i++) {
        const stringAt *string = &b->strings[i];
        rdbWriteBytes(w, b->bytes + at, string->at - at);
        at = string->at;
        if (string->len == LONG_STRING) {
            const longString *l = &b->longs[longs++];
            rdbWriteString(w, l->text);
            if (!l->from) memFree((char *)(uintptr_t)l->text.ptr); /* memory of this stream */
        } else if (string->len == COMPRESSED) {
            at += encodeCompressed(s, b->bytes + at);
        } else {
            rdbWriteString(w, sliceMake(b->bytes + at, string->len));
            at += string->len;
        }
    }
    rdbWriteBytes(w, b->bytes + at, b->used - at);
}

/* The next block; NULL: no more follow, or the stream is cancelled. */
static block *nextBlock(snapshotStream *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->first && !s->end && !get(&s->cancelled)) pthread_cond_wait(&s->changed, &s->lock);
    block *b = get(&s->cancelled) ? NULL : s->first;
    if (b) {
        s->first = b->next;
        if (!s->first) s->last = &s->first;
    }
    pthread_mutex_unlock(&s->lock);
    return b;
}

static void giveBack(snapshotStream *s, block *b) {
    pthread_mutex_lock(&s->lock);
    hotCheck(s->waiting > 0);
    hotCheck(s->waiting_long >= b->long_bytes);
    b->next = s->returned;
    s->returned = b;
    s->waiting--;
    s->waiting_long -= b->long_bytes;
    bool wakes = s->starved &&
                 room(s->waiting, s->waiting_long) >= sizeMax(1, BLOCKS / 4) * RDB_WRITER_BUFFER;
    if (wakes) s->starved = false;
    set(&s->has_returned, true);
    pthread_mutex_unlock(&s->lock);
    if (wakes) wake(s);
}

static status run(snapshotStream *s, reason *why) {
    status st = s->name ? fileWriterOpen(&s->file, s->temporary, s->sync_bytes, why) : OK;
    if (st != OK) return st;
    rdbWriter *w = &s->encoder;
    for (block *b; rdbWriterStatus(w) == OK && (b = nextBlock(s));) {
        encode(s, b);
        giveBack(s, b);
    }
    if (get(&s->cancelled)) {
        st = ERR_AGAIN;
    } else if (rdbWriterStatus(w) != OK) {
        st = rdbWriterStatus(w);
        *why = w->why;
    } else if (s->is_rdb) {
        st = rdbFileEnd(w, why);
        if (st == OK) st = rdbEnvelopeSinkEnd(&s->packed, why);
    } else {
        st = rdbWriterFlush(w);
        *why = w->why;
    }
    if (!s->name) return st;
    if (st == OK) return fileWriterPublish(&s->file, s->name, why);
    fileWriterAbort(&s->file);
    return st;
}

static void *work(void *arg) {
    snapshotStream *s = arg;
    reason why = {{0}};
    threadGiveWay(); /* clients are served first */
    status st = run(s, &why);
    pthread_mutex_lock(&s->lock);
    s->why = why;
    if (st == OK) {
        s->state = SNAPSHOT_STREAM_DONE;
    } else {
        s->state = get(&s->cancelled) ? SNAPSHOT_STREAM_CANCELLED : SNAPSHOT_STREAM_FAILED;
        set(&s->failed, true);
    }
    pthread_mutex_unlock(&s->lock);
    wake(s);
    return NULL;
}

/* ------------------------------------------------------------------ blocks, main thread */

static void noteMemory(snapshotStream *s) {
    size_t now = snapshotStreamCount(s).memory;
    if (now > s->peak) s->peak = now;
}

static block *takeBlock(snapshotStream *s) {
    hotCheck(!s->free || s->block_count > 0);
    block *b = s->free;
    if (b) {
        s->free = b->next;
    } else {
        b = memAlloc(sizeof(*b));
        s->block_count++;
        noteMemory(s);
    }
    b->next = NULL;
    b->used = b->string_count = b->long_count = 0;
    b->long_bytes = 0;
    return b;
}

/* Drops the block's references; `keep`: it may be used again. */
static void freeBlock(snapshotStream *s, block *b, bool keep) {
    hotCheck(s->block_count > 0);
    for (uint32_t i = 0; i < b->long_count; i++) {
        const longString *l = &b->longs[i];
        if (!l->from) s->copy_bytes -= l->text.len;
        blobRelease(l->from);
    }
    b->long_count = 0;
    if (keep && s->block_count <= BLOCKS) {
        b->next = s->free;
        s->free = b;
    } else {
        memFree(b);
        s->block_count--;
    }
}

/* Frees blocks that the worker has not encoded. */
static void freeUnused(snapshotStream *s, block *first) {
    for (block *next; first; first = next) {
        next = first->next;
        for (uint32_t i = 0; i < first->long_count; i++) {
            if (!first->longs[i].from) memFree((char *)(uintptr_t)first->longs[i].text.ptr);
        }
        freeBlock(s, first, false);
    }
}

static void collect(snapshotStream *s) {
    if (!get(&s->has_returned)) return;
    pthread_mutex_lock(&s->lock);
    block *b = s->returned;
    s->returned = NULL;
    set(&s->has_returned, false);
    pthread_mutex_unlock(&s->lock);
    for (block *next; b; b = next) {
        next = b->next;
        s->published--;
        s->long_bytes -= b->long_bytes;
        freeBlock(s, b, true);
    }
}

/* Passes a chain of `count` blocks to the worker. */
static void publish(snapshotStream *s, block *first) {
    size_t count = 0, long_bytes = 0;
    block *last = first;
    for (block *b = first; b; b = b->next) {
        count++;
        long_bytes += b->long_bytes;
        last = b;
    }
    s->published += count;
    s->long_bytes += long_bytes;
    pthread_mutex_lock(&s->lock);
    *s->last = first;
    s->last = &last->next;
    s->waiting += count;
    s->waiting_long += long_bytes;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static bool isEmpty(const part *p) { return p->writer.used == 0 && p->now->string_count == 0; }

/* The block of a part is complete; the writer continues with another one. */
static void completeBlock(part *p) {
    snapshotStream *s = p->stream;
    block *b = p->now;
    b->used = (uint32_t)p->writer.used;
    p->writer.used = 0;
    if (unlikely(get(&s->failed))) {
        (void)snapshotStreamPoll(s, &p->writer.why); /* the reason */
        p->writer.failed = ERR_IO;
        freeUnused(s, b);
    } else if (p == &s->main) {
        publish(s, b);
    } else {
        *p->last = b;
        p->last = &b->next;
    }
    collect(s);
    p->now = takeBlock(s);
    p->writer.buffer = p->now->bytes;
}

static status takeBytes(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    part *p = (part *)sink;
    (void)why; /* is in the writer already */
    if (bytes == p->writer.buffer) {
        check(len == p->writer.used);
        completeBlock(p);
        return p->writer.failed;
    }
    const char *at = bytes; /* longer than a block: in pieces */
    while (len) {
        if (p->writer.used == RDB_WRITER_BUFFER) completeBlock(p);
        size_t n = sizeMin(len, RDB_WRITER_BUFFER - p->writer.used);
        memcpy(p->writer.buffer + p->writer.used, at, n);
        p->writer.used += n;
        at += n;
        len -= n;
    }
    return p->writer.failed;
}

static void addLong(part *p, slice text, blob *from) {
    if (p->now->long_count == BLOCK_LONGS || p->now->string_count == BLOCK_STRINGS)
        completeBlock(p);
    block *b = p->now;
    b->strings[b->string_count++] = (stringAt){.at = (uint32_t)p->writer.used, .len = LONG_STRING};
    b->longs[b->long_count++] = (longString){.text = text, .from = from};
    b->long_bytes += text.len;
    if (from) return;
    p->stream->copy_bytes += text.len;
    noteMemory(p->stream);
}

static bool takeString(rdbSink *sink, rdbWriter *w, slice text) {
    part *p = (part *)sink;
    if (!p->stream->compress) return false; /* needs no encoding */
    if (rdbWriterStatus(w) != OK) return true;
    if (text.len >= LONG_MIN) {
        char *copy = memTryAlloc(text.len);
        if (!copy) return false; /* goes into blocks, not compressed */
        memcpy(copy, text.ptr, text.len);
        addLong(p, sliceMake(copy, text.len), NULL);
        return true;
    }
    if (p->now->string_count == BLOCK_STRINGS || text.len > RDB_WRITER_BUFFER - w->used)
        completeBlock(p);
    block *b = p->now;
    b->strings[b->string_count++] = (stringAt){.at = (uint32_t)w->used, .len = (uint32_t)text.len};
    memcpy(w->buffer + w->used, text.ptr, text.len);
    w->used += text.len;
    return true;
}

static bool takeCompressed(rdbSink *sink, rdbWriter *w, uint32_t dictionary, slice packed,
                           size_t len) {
    part *p = (part *)sink;
    compressedString c = {dictionary, (uint32_t)packed.len, (uint32_t)len};
    size_t bytes = sizeof(c) + packed.len;
    if (bytes > RDB_WRITER_BUFFER) return false;
    if (rdbWriterStatus(w) != OK) return true;
    if (p->now->string_count == BLOCK_STRINGS || bytes > RDB_WRITER_BUFFER - w->used)
        completeBlock(p);
    block *b = p->now;
    b->strings[b->string_count++] = (stringAt){.at = (uint32_t)w->used, .len = COMPRESSED};
    memcpy(w->buffer + w->used, &c, sizeof(c));
    memcpy(w->buffer + w->used + sizeof(c), packed.ptr, packed.len);
    w->used += bytes;
    return true;
}

static bool takeShared(rdbSink *sink, rdbWriter *w, blob *text) {
    if (text->len < LONG_MIN) return false;
    if (rdbWriterStatus(w) == OK)
        addLong((part *)sink, sliceMake(text->bytes, text->len), blobRetain(text));
    return true;
}

/* ------------------------------------------------------------------ the producer */

static void partInit(snapshotStream *s, part *p) {
    p->stream = s;
    p->sink = (rdbSink){
        .write = takeBytes, .string = takeString, .shared = takeShared, .expand = takeCompressed};
    p->now = takeBlock(s);
    p->last = &p->first;
    rdbWriterInitBorrowed(&p->writer, &p->sink, p->now->bytes);
}

status snapshotStreamNew(const snapshotStreamOptions *options, snapshotStream **out, reason *why) {
    snapshotStream *s = memNew(snapshotStream);
    dictionariesHold(); /* values may be removed before the worker expands them */
    s->compress = options->compress;
    s->sync_bytes = options->sync_bytes;
    s->relays = options->relays;
    s->is_rdb = options->is_rdb;
    s->checksum = options->checksum;
    s->loop = options->loop;
    if (options->name) {
        s->name = memDup(options->name, strlen(options->name));
        s->temporary = memDup(options->temporary, strlen(options->temporary));
    }
    s->file.fd = -1;
    s->last = &s->first;
    s->relay_last = &s->relay_first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    partInit(s, &s->main);
    s->encoded = (outSink){.sink = {.write = writeOut}, .stream = s};
    bool packs = options->codec != COMPRESS_NONE;
    rdbWriterInit(&s->encoder, packs ? &s->packed.sink : &s->encoded.sink,
                  options->is_rdb && options->checksum && !packs, options->compress);
    status st =
        rdbEnvelopeSinkInit(&s->packed, options->codec, options->checksum, &s->encoded.sink, why);
    if (st == OK) st = threadStart(&s->worker, "snapshot", options->cpus, work, s, why);
    if (st != OK) {
        snapshotStreamFree(s);
        return st;
    }
    *out = s;
    return OK;
}

static void freePart(snapshotStream *s, part *p) {
    freeUnused(s, p->first);
    if (p->now) freeUnused(s, p->now);
    rdbWriterClear(&p->writer);
}

void snapshotStreamFree(snapshotStream *s) {
    if (!s) return;
    snapshotStreamCancel(s);
    threadJoin(&s->worker);
    collect(s);
    freeUnused(s, s->first); /* published; nothing counts them any more */
    freePart(s, &s->main);
    freePart(s, &s->side);
    for (block *next; s->free; s->free = next) {
        next = s->free->next;
        freeBlock(s, s->free, false);
    }
    snapshotStreamDropRelay(s);
    check(s->block_count == 0);
    check(s->copy_bytes == 0);
    rdbWriterClear(&s->encoder);
    rdbEnvelopeSinkClear(&s->packed);
    strFree(&s->expanded);
    dictionariesUnhold();
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    memFree(s->name);
    memFree(s->temporary);
    memFree(s);
}

rdbWriter *snapshotStreamWriter(snapshotStream *s) { return &s->main.writer; }

rdbWriter *snapshotStreamSide(snapshotStream *s) {
    if (!s->side.stream) partInit(s, &s->side);
    return &s->side.writer;
}

void snapshotStreamJoinSide(snapshotStream *s) {
    part *side = &s->side;
    if (!side->stream) return;
    if (!isEmpty(side)) completeBlock(side);
    if (!side->first) return;
    if (!isEmpty(&s->main)) completeBlock(&s->main);
    publish(s, side->first);
    side->first = NULL;
    side->last = &side->first;
}

static size_t roomNow(const snapshotStream *s) {
    return room(s->published, s->long_bytes + s->main.now->long_bytes);
}

size_t snapshotStreamRoom(snapshotStream *s) {
    collect(s);
    size_t bytes = roomNow(s);
    if (likely(bytes != 0) || get(&s->failed)) return bytes;
    if (s->main.now->long_bytes)
        completeBlock(&s->main); /* else the worker might have nothing to do */
    pthread_mutex_lock(&s->lock);
    s->starved = true;
    pthread_mutex_unlock(&s->lock);
    collect(s); /* what was returned before the worker could see that */
    return roomNow(s);
}

void snapshotStreamEnd(snapshotStream *s) {
    check(!s->ended);
    s->ended = true;
    snapshotStreamJoinSide(s);
    if (!isEmpty(&s->main)) completeBlock(&s->main);
    pthread_mutex_lock(&s->lock);
    s->end = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void snapshotStreamCancel(snapshotStream *s) {
    pthread_mutex_lock(&s->lock);
    set(&s->cancelled, true);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------ results */

snapshotStreamState snapshotStreamPoll(snapshotStream *s, reason *why) {
    collect(s);
    pthread_mutex_lock(&s->lock);
    snapshotStreamState state = s->state;
    if (why && state != SNAPSHOT_STREAM_RUNS) *why = s->why;
    pthread_mutex_unlock(&s->lock);
    return state;
}

blob *snapshotStreamTake(snapshotStream *s) {
    pthread_mutex_lock(&s->lock);
    relayed *r = s->relay_first;
    if (r) {
        s->relay_first = r->next;
        if (!r->next) s->relay_last = &s->relay_first;
        s->relay_bytes -= r->bytes->len;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (!r) return NULL;
    blob *bytes = r->bytes;
    memFree(r);
    return bytes;
}

void snapshotStreamDropRelay(snapshotStream *s) {
    pthread_mutex_lock(&s->lock);
    s->relay_is_dropped = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (blob *b; (b = snapshotStreamTake(s));) blobRelease(b);
}

size_t snapshotStreamExcess(const snapshotStream *s) {
    size_t held = s->block_count * sizeof(block) + s->copy_bytes;
    return held > BLOCKS * sizeof(block) ? held - BLOCKS * sizeof(block) : 0;
}

snapshotStreamNumbers snapshotStreamCount(const snapshotStream *s) {
    return (snapshotStreamNumbers){
        .written = __atomic_load_n(&s->written, __ATOMIC_RELAXED),
        .memory = s->block_count * sizeof(block) + s->copy_bytes + RDB_WRITER_BUFFER +
                  (s->relays ? SNAPSHOT_STREAM_RELAY : 0),
        .peak = s->peak,
    };
}
