/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDB files that are compressed as a whole (rdb_envelope.h): an rdbSource that reads the file and
 * returns decompressed bytes, and an rdbSink that compresses.
 *
 * Invariant: bytes [at, end) of the buffer were read from the file and have not been decompressed;
 * reader->raw is the offset in the file of the first of these bytes. */
#include "format/rdb_envelope.h"

#include <string.h>

#include "base/base.h"

struct rdbEnvelope {
    rdbSource source; /* the source of the reader: decompressed bytes */
    rdbSource *file;
    rdbReader *reader;
    decompressor *codec;
    bool is_full; /* the last step has filled its output, so there may be more */
    bool done;    /* the frame is complete */
    size_t at, end;
    char buffer[RDB_READER_BUFFER];
};

/* Fills the empty buffer. At the end of the file the buffer stays empty. */
static status fill(rdbEnvelope *e, reason *why) {
    hotCheck(e->at == e->end);
    e->at = e->end = 0;
    size_t len;
    status st = e->file->read(e->file, e->buffer, sizeof(e->buffer), &len, why);
    if (st == OK) e->end = len;
    return st;
}

static status step(rdbEnvelope *e, void *dst, size_t cap, size_t *len, reason *why) {
    reason detail;
    size_t in = e->end - e->at;
    *len = cap;
    status st = decompressorStep(e->codec, e->buffer + e->at, &in, dst, len, &e->done, &detail);
    if (st != OK)
        return reasonSet(why, ERR_SYNTAX, "Corrupt streaming-compressed RDB input (%s)",
                         detail.text);
    e->at += in;
    e->reader->raw += in;
    e->is_full = *len == cap;
    return OK;
}

/* Reads decompressed bytes; none at the end of the frame, or at the end of a file that is
 * truncated. */
static status readEnvelope(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    rdbEnvelope *e = (rdbEnvelope *)source;
    status st = OK;
    for (*len = 0; st == OK && *len == 0 && !e->done;) {
        if (e->at == e->end && !e->is_full) {
            st = fill(e, why);
            if (st != OK || e->at == e->end) break;
        }
        st = step(e, dst, cap, len, why);
    }
    return st;
}

/* Moves bytes that the reader has read from the file and not consumed to the buffer. */
static void takeRest(rdbEnvelope *e, rdbReader *r) {
    hotCheck(r->end <= RDB_READER_BUFFER);
    e->end = r->end - r->at;
    memcpy(e->buffer, r->buffer + r->at, e->end);
    r->raw = rdbReaderOffset(r);
    r->base = 0;
    r->at = r->end = r->summed = 0;
}

status rdbEnvelopeBegin(rdbReader *r, const char head[RDB_ENVELOPE_LEN], bool skip_checksums,
                        rdbEnvelope **out) {
    reason why;
    hotCheck(!r->codec);
    compressCodec codec = compressHeadParse(head, COMPRESS_FILE);
    if (codec == COMPRESS_NONE)
        return rdbReaderFail(r, "Invalid or unsupported RDB stream envelope");
    decompressor *d = NULL;
    if (decompressorNew(codec, skip_checksums, &d, &why) != OK)
        return rdbReaderFail(r, "Invalid or unsupported RDB stream envelope: %s", why.text);
    rdbEnvelope *e = memNew(rdbEnvelope);
    e->source = (rdbSource){.read = readEnvelope};
    e->file = r->source;
    e->reader = r;
    e->codec = d;
    e->is_full = e->done = false;
    e->at = 0;
    takeRest(e, r);
    r->source = &e->source;
    r->checksum = false; /* the frame has its own */
    r->codec = codec;
    *out = e;
    return OK;
}

status rdbEnvelopeEnd(rdbEnvelope *e) {
    rdbReader *r = e->reader;
    char extra[1];
    size_t len = r->end - r->at;
    status st = len ? OK : readEnvelope(&e->source, extra, sizeof(extra), &len, &r->why);
    if (st != OK) return st;
    if (len)
        return rdbReaderFail(r, "Corrupt streaming-compressed RDB input (bytes after the file)");
    if (!e->done) {
        r->short_read = true;
        return reasonSet(&r->why, ERR_IO, "Unexpected EOF reading RDB file");
    }
    r->end = e->end - e->at;
    memcpy(r->buffer, e->buffer + e->at, r->end);
    r->at = r->summed = 0;
    r->base = r->raw;
    r->codec = COMPRESS_NONE;
    return OK;
}

void rdbEnvelopeFree(rdbEnvelope *e) {
    if (!e) return;
    e->reader->source = e->file;
    decompressorFree(e->codec);
    memFree(e);
}

/* ------------------------------------------------------------------ writing */

enum { OUT_BYTES = 64 * 1024 }; /* passed on at once */

static status passOn(rdbEnvelopeSink *s, size_t least, reason *why) {
    if (s->packed.len < least || s->packed.len == 0) return OK;
    s->out_bytes += s->packed.len;
    status st = s->to->write(s->to, s->packed.ptr, s->packed.len, why);
    strClear(&s->packed);
    return st;
}

static status compressBytes(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    rdbEnvelopeSink *s = (rdbEnvelopeSink *)sink;
    s->in_bytes += len;
    if (!s->codec) {
        s->out_bytes += len;
        return s->to->write(s->to, bytes, len, why);
    }
    const char *at = bytes;
    status st = OK;
    for (size_t n; len && st == OK; at += n, len -= n) { /* long values are not stored twice */
        n = sizeMin(len, OUT_BYTES);
        st = compressorAdd(s->codec, at, n, &s->packed, why);
        if (st == OK) st = passOn(s, OUT_BYTES, why);
    }
    return st;
}

status rdbEnvelopeSinkInit(rdbEnvelopeSink *s, compressCodec codec, bool checksums, rdbSink *to,
                           reason *why) {
    *s = (rdbEnvelopeSink){.sink = {.write = compressBytes}, .to = to};
    if (codec == COMPRESS_NONE) return OK;
    const compressChecksums sums = {.blocks = checksums, .content = checksums};
    status st = compressorNew(codec, sums, &s->codec, why);
    if (st != OK) return st;
    char head[COMPRESS_HEAD_LEN];
    compressHeadPrint(head, codec, COMPRESS_FILE);
    strAppend(&s->packed, head, sizeof(head));
    return OK;
}

status rdbEnvelopeSinkEnd(rdbEnvelopeSink *s, reason *why) {
    if (!s->codec) return OK;
    status st = compressorEnd(s->codec, &s->packed, why);
    return st == OK ? passOn(s, 0, why) : st;
}

void rdbEnvelopeSinkClear(rdbEnvelopeSink *s) {
    compressorFree(s->codec);
    s->codec = NULL;
    strFree(&s->packed);
}
