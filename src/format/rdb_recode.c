/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changing the compression of RDB files (rdb_recode.h).
 *
 * Invariant: the first bytes are kept in `head` until there are enough of them to tell how the file
 * is compressed. The last CHECKSUM_BYTES bytes of a file that is decompressed are kept in `tail`:
 * at the end they are its checksum, which is computed anew. */
#include "format/rdb_recode.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "format/rdb_envelope.h"

enum { CHECKSUM_BYTES = 8, STEP_BYTES = 64 * 1024 };

typedef enum recodeStep { RECODE_HEAD, RECODE_AS_IS, RECODE_PLAIN, RECODE_FRAME } recodeStep;

struct rdbRecoder {
    recodeStep step;
    compressCodec codec;
    bool checksums;
    rdbSink *to;
    char head[COMPRESS_HEAD_LEN];
    size_t head_len;
    decompressor *frame;
    bool frame_done;
    rdbEnvelopeSink packed; /* of a file that gets a codec */
    uint64_t crc;
    size_t tail_len;
    char tail[CHECKSUM_BYTES + STEP_BYTES];
};

rdbRecoder *rdbRecoderNew(compressCodec codec, bool checksums, rdbSink *to) {
    hotCheck(codec <= COMPRESS_ZSTD);
    rdbRecoder *r = memNew(rdbRecoder);
    r->codec = codec;
    r->checksums = checksums;
    r->to = to;
    return r;
}

void rdbRecoderFree(rdbRecoder *r) {
    decompressorFree(r->frame);
    rdbEnvelopeSinkClear(&r->packed);
    memFree(r);
}

/* ------------------------------------------------------------------ parts */

static status writePlain(rdbRecoder *r, const void *bytes, size_t len, reason *why) {
    rdbSink *to = r->codec == COMPRESS_NONE ? r->to : &r->packed.sink;
    return len ? to->write(to, bytes, len, why) : OK;
}

/* `len` decompressed bytes were added to the tail. */
static status passTail(rdbRecoder *r, size_t len, reason *why) {
    hotCheck(r->tail_len + len <= sizeof(r->tail));
    r->tail_len += len;
    if (r->tail_len <= CHECKSUM_BYTES) return OK;
    size_t ready = r->tail_len - CHECKSUM_BYTES;
    if (r->codec == COMPRESS_NONE) r->crc = crc64(r->crc, r->tail, ready);
    status st = writePlain(r, r->tail, ready, why);
    memmove(r->tail, r->tail + ready, CHECKSUM_BYTES);
    r->tail_len = CHECKSUM_BYTES;
    return st;
}

static status readFrame(rdbRecoder *r, const char *bytes, size_t len, reason *why) {
    status st = OK;
    bool is_full = false;
    while (st == OK && !r->frame_done && (len || is_full)) {
        reason detail;
        size_t in = len, out = sizeof(r->tail) - r->tail_len;
        size_t cap = out;
        st = decompressorStep(r->frame, bytes, &in, r->tail + r->tail_len, &out, &r->frame_done,
                              &detail);
        if (st != OK)
            return reasonSet(why, ERR_SYNTAX, "Corrupt streaming-compressed RDB input (%s)",
                             detail.text);
        is_full = out == cap;
        bytes += in;
        len -= in;
        st = passTail(r, out, why);
    }
    if (st != OK || !len) return st;
    return reasonSet(why, ERR_SYNTAX,
                     "Corrupt streaming-compressed RDB input (bytes after the file)");
}

/* ------------------------------------------------------------------ the begin */

/* It is known how the file is compressed: `from`. */
static status begin(rdbRecoder *r, compressCodec from, reason *why) {
    hotCheck(r->step == RECODE_HEAD);
    status st = OK;
    r->step = from == r->codec ? RECODE_AS_IS : from == COMPRESS_NONE ? RECODE_PLAIN : RECODE_FRAME;
    if (r->step == RECODE_AS_IS) return r->to->write(r->to, r->head, r->head_len, why);
    if (from != COMPRESS_NONE) st = decompressorNew(from, false, &r->frame, why);
    if (st == OK) st = rdbEnvelopeSinkInit(&r->packed, r->codec, r->checksums, r->to, why);
    if (st != OK || from != COMPRESS_NONE) return st;
    return writePlain(r, r->head, r->head_len, why);
}

/* Moves bytes to the head. A head that is not supported is written as it is: the load refuses
 * it. */
static status readHead(rdbRecoder *r, const char **bytes, size_t *len, reason *why) {
    size_t n = sizeMin(*len, COMPRESS_HEAD_LEN - r->head_len);
    memcpy(r->head + r->head_len, *bytes, n);
    r->head_len += n;
    *bytes += n;
    *len -= n;
    if (r->head_len < COMPRESS_HEAD_LEN) return OK;
    compressCodec from = compressHeadParse(r->head, COMPRESS_FILE);
    bool unsupported =
        from == COMPRESS_NONE && compressIsHead(sliceMake(r->head, COMPRESS_HEAD_LEN));
    return begin(r, unsupported || !compressHas(from) ? r->codec : from, why);
}

status rdbRecoderWrite(rdbRecoder *r, const void *bytes, size_t len, reason *why) {
    const char *at = bytes;
    status st = r->step == RECODE_HEAD ? readHead(r, &at, &len, why) : OK;
    if (st != OK || !len) return st;
    switch (r->step) {
    case RECODE_AS_IS: return r->to->write(r->to, at, len, why);
    case RECODE_PLAIN: return writePlain(r, at, len, why);
    default: return readFrame(r, at, len, why);
    }
}

status rdbRecoderEnd(rdbRecoder *r, reason *why) {
    status st = r->step == RECODE_HEAD ? begin(r, r->codec, why) : OK;
    if (st != OK || r->step == RECODE_AS_IS) return st;
    if (r->step == RECODE_FRAME && (!r->frame_done || r->tail_len < CHECKSUM_BYTES))
        return reasonSet(why, ERR_SYNTAX, "Unexpected EOF reading RDB file");
    if (r->step == RECODE_FRAME) {
        char sum[CHECKSUM_BYTES];
        storeU64(sum, r->checksums && r->codec == COMPRESS_NONE ? r->crc : 0);
        st = writePlain(r, sum, sizeof(sum), why);
    }
    return st == OK ? rdbEnvelopeSinkEnd(&r->packed, why) : st;
}
