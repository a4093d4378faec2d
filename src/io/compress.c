/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compression by the distribution's libraries (compress.h). Invariant: a compressor or decompressor
 * has exactly one context, that of its codec. The libraries allocate memory for the window of a
 * frame: usually 64 KB to a few megabytes, 128 MB at most. */
#include "io/compress.h"

#ifdef HAVE_LZ4
#include <lz4frame.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include <string.h>

#include "base/base.h"

/* Levels at which the throughput of one processor is above that of most networks. */
enum { LZ4_LEVEL = 0, ZSTD_LEVEL = 1 };
enum { HEAD_VERSION = 1, PIECE_BYTES = 64 * 1024 };

typedef enum compressStep { STEP_ADD, STEP_FLUSH, STEP_END } compressStep;

struct compressor {
    compressCodec codec;
    compressChecksums checksums;
    bool begun, ended;
#ifdef HAVE_LZ4
    LZ4F_cctx *lz4;
#endif
#ifdef HAVE_ZSTD
    ZSTD_CCtx *zstd;
#endif
};

struct decompressor {
    compressCodec codec;
    bool skip_checksums;
#ifdef HAVE_LZ4
    LZ4F_dctx *lz4;
#endif
#ifdef HAVE_ZSTD
    ZSTD_DCtx *zstd;
#endif
};

const char *compressName(compressCodec codec) {
    static const char *const names[] = {"none", "lz4", "zstd"};
    hotCheck(codec <= COMPRESS_ZSTD);
    return names[codec];
}

const char *compressBuilt(void) {
#if defined(HAVE_LZ4) && defined(HAVE_ZSTD)
    return "lz4,zstd";
#elif defined(HAVE_LZ4)
    return "lz4";
#elif defined(HAVE_ZSTD)
    return "zstd";
#else
    return "none";
#endif
}

bool compressHas(compressCodec codec) {
    switch (codec) {
    case COMPRESS_NONE: return true;
#ifdef HAVE_LZ4
    case COMPRESS_LZ4: return true;
#endif
#ifdef HAVE_ZSTD
    case COMPRESS_ZSTD: return true;
#endif
    default: return false;
    }
}

status compressRequire(compressCodec codec, reason *why) {
    if (compressHas(codec)) return OK;
    return reasonSet(why, ERR_NOT_FOUND, "%s compression is not available in this build",
                     codec == COMPRESS_ZSTD ? "Zstandard" : "LZ4");
}

/* ------------------------------------------------------------------ the head of a frame */

bool compressIsHead(slice start) {
    return start.len >= COMPRESS_SIGNATURE_LEN &&
           memcmp(start.ptr, "VCS", COMPRESS_SIGNATURE_LEN) == 0;
}

void compressHeadPrint(char head[COMPRESS_HEAD_LEN], compressCodec codec, compressKind kind) {
    hotCheck(codec != COMPRESS_NONE);
    const char bytes[COMPRESS_HEAD_LEN] = {'V', 'C', 'S', HEAD_VERSION, (char)codec, 0, (char)kind};
    memcpy(head, bytes, sizeof(bytes));
}

compressCodec compressHeadParse(const char head[COMPRESS_HEAD_LEN], compressKind kind) {
    if (!compressIsHead(sliceMake(head, COMPRESS_HEAD_LEN))) return COMPRESS_NONE;
    if (head[3] != HEAD_VERSION || head[5] != 0 || head[6] != (char)kind) return COMPRESS_NONE;
    if (head[4] != COMPRESS_LZ4 && head[4] != COMPRESS_ZSTD) return COMPRESS_NONE;
    return (compressCodec)head[4];
}

/* ------------------------------------------------------------------ LZ4 */

#ifdef HAVE_LZ4
static LZ4F_preferences_t lz4Preferences(const compressor *c) {
    LZ4F_preferences_t p = {.compressionLevel = LZ4_LEVEL};
    p.frameInfo.blockSizeID = LZ4F_max64KB;
    p.frameInfo.blockMode = LZ4F_blockLinked;
    if (c->checksums.blocks) p.frameInfo.blockChecksumFlag = LZ4F_blockChecksumEnabled;
    if (c->checksums.content) p.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    return p;
}

static status lz4Took(size_t result, str *out, reason *why) {
    if (LZ4F_isError(result))
        return reasonSet(why, ERR_NO_MEMORY, "lz4: %s", LZ4F_getErrorName(result));
    strGrow(out, result);
    return OK;
}

static status lz4Compress(compressor *c, compressStep step, slice in, str *out, reason *why) {
    const LZ4F_preferences_t preferences = lz4Preferences(c);
    if (!c->begun) {
        char *to = strReserve(out, LZ4F_HEADER_SIZE_MAX);
        status st =
            lz4Took(LZ4F_compressBegin(c->lz4, to, LZ4F_HEADER_SIZE_MAX, &preferences), out, why);
        if (st != OK) return st;
        c->begun = true;
    }
    size_t cap = LZ4F_compressBound(in.len, &preferences);
    char *to = strReserve(out, cap);
    size_t result = step == STEP_ADD ? LZ4F_compressUpdate(c->lz4, to, cap, in.ptr, in.len, NULL)
                    : step == STEP_FLUSH ? LZ4F_flush(c->lz4, to, cap, NULL)
                                         : LZ4F_compressEnd(c->lz4, to, cap, NULL);
    return lz4Took(result, out, why);
}

static status lz4Begin(decompressor *d) {
    hotCheck(d->codec == COMPRESS_LZ4);
    return LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION)) ? ERR_NO_MEMORY
                                                                                : OK;
}

static void lz4End(decompressor *d) { (void)LZ4F_freeDecompressionContext(d->lz4); }

static status lz4Step(decompressor *d, const void *in, size_t *in_len, void *out, size_t *out_len,
                      bool *done, reason *why) {
    const LZ4F_decompressOptions_t options = {.skipChecksums = d->skip_checksums};
    size_t hint = LZ4F_decompress(d->lz4, out, out_len, in, in_len, &options);
    if (LZ4F_isError(hint)) return reasonSet(why, ERR_SYNTAX, "lz4: %s", LZ4F_getErrorName(hint));
    *done = hint == 0;
    return OK;
}
#endif

/* ------------------------------------------------------------------ Zstandard */

#ifdef HAVE_ZSTD
static status zstdNew(compressor *c) {
    c->zstd = ZSTD_createCCtx();
    if (!c->zstd) return ERR_NO_MEMORY;
    size_t level = ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    size_t sum = ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, c->checksums.content);
    check(!ZSTD_isError(level)); /* each version knows both */
    check(!ZSTD_isError(sum));
    return OK;
}

static status zstdCompress(compressor *c, ZSTD_EndDirective step, slice in, str *out, reason *why) {
    ZSTD_inBuffer from = {.src = in.ptr, .size = in.len};
    size_t left;
    do {
        size_t cap = ZSTD_CStreamOutSize();
        ZSTD_outBuffer to = {.dst = strReserve(out, cap), .size = cap};
        left = ZSTD_compressStream2(c->zstd, &to, &from, step);
        if (ZSTD_isError(left))
            return reasonSet(why, ERR_NO_MEMORY, "zstd: %s", ZSTD_getErrorName(left));
        strGrow(out, to.pos);
    } while (step == ZSTD_e_continue ? from.pos < from.size : left > 0);
    return OK;
}

static status zstdBegin(decompressor *d) {
    hotCheck(d->codec == COMPRESS_ZSTD);
    d->zstd = ZSTD_createDCtx();
    if (!d->zstd) return ERR_NO_MEMORY;
    /* The library's name of this parameter, ZSTD_d_forceIgnoreChecksum, is in its experimental
     * part. If setting it fails, checksums are compared, which is safe. */
    if (d->skip_checksums) (void)ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_experimentalParam3, 1);
    return OK;
}

static void zstdEnd(decompressor *d) { (void)ZSTD_freeDCtx(d->zstd); }

static status zstdStep(decompressor *d, const void *in, size_t *in_len, void *out, size_t *out_len,
                       bool *done, reason *why) {
    ZSTD_inBuffer from = {.src = in, .size = *in_len};
    ZSTD_outBuffer to = {.dst = out, .size = *out_len};
    size_t hint = ZSTD_decompressStream(d->zstd, &to, &from);
    if (ZSTD_isError(hint)) return reasonSet(why, ERR_SYNTAX, "zstd: %s", ZSTD_getErrorName(hint));
    *in_len = from.pos;
    *out_len = to.pos;
    *done = hint == 0;
    return OK;
}
#endif

/* ------------------------------------------------------------------ compressing */

status compressorNew(compressCodec codec, compressChecksums checksums, compressor **out,
                     reason *why) {
    check(codec == COMPRESS_LZ4 || codec == COMPRESS_ZSTD);
    status st = compressRequire(codec, why);
    if (st != OK) return st;
    compressor *c = memNew(compressor);
    *c = (compressor){.codec = codec, .checksums = checksums};
    switch (codec) {
#ifdef HAVE_LZ4
    case COMPRESS_LZ4:
        st =
            LZ4F_isError(LZ4F_createCompressionContext(&c->lz4, LZ4F_VERSION)) ? ERR_NO_MEMORY : OK;
        break;
#endif
#ifdef HAVE_ZSTD
    case COMPRESS_ZSTD: st = zstdNew(c); break;
#endif
    default: break;
    }
    if (st != OK) {
        memFree(c);
        return reasonSet(why, st, "out of memory");
    }
    *out = c;
    return OK;
}

void compressorFree(compressor *c) {
    if (!c) return;
#ifdef HAVE_LZ4
    if (c->codec == COMPRESS_LZ4) (void)LZ4F_freeCompressionContext(c->lz4);
#endif
#ifdef HAVE_ZSTD
    if (c->codec == COMPRESS_ZSTD) (void)ZSTD_freeCCtx(c->zstd);
#endif
    memFree(c);
}

static status compressIn(compressor *c, compressStep step, slice in, str *out, reason *why) {
    hotCheck(!c->ended);
    switch (c->codec) {
#ifdef HAVE_LZ4
    case COMPRESS_LZ4: return lz4Compress(c, step, in, out, why);
#endif
#ifdef HAVE_ZSTD
    case COMPRESS_ZSTD: {
        static const ZSTD_EndDirective steps[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
        return zstdCompress(c, steps[step], in, out, why);
    }
#endif
    default: break;
    }
    (void)step, (void)in, (void)out;
    return reasonSet(why, ERR_NOT_FOUND, "no codec"); /* compressorNew() never creates this */
}

status compressorAdd(compressor *c, const void *bytes, size_t len, str *out, reason *why) {
    const char *at = bytes;
    status st = OK;
    for (size_t n; len && st == OK; at += n, len -= n) {
        n = sizeMin(len, PIECE_BYTES);
        st = compressIn(c, STEP_ADD, sliceMake(at, n), out, why);
    }
    return st;
}

status compressorFlush(compressor *c, str *out, reason *why) {
    return compressIn(c, STEP_FLUSH, SLICE(""), out, why);
}

status compressorEnd(compressor *c, str *out, reason *why) {
    status st = compressIn(c, STEP_END, SLICE(""), out, why);
    c->ended = true;
    return st;
}

/* ------------------------------------------------------------------ decompressing */

/* ERR_NOT_FOUND: there is no such codec in this build. */
static status begin(decompressor *d) {
    switch (d->codec) {
#ifdef HAVE_LZ4
    case COMPRESS_LZ4: return lz4Begin(d);
#endif
#ifdef HAVE_ZSTD
    case COMPRESS_ZSTD: return zstdBegin(d);
#endif
    default: return ERR_NOT_FOUND;
    }
}

status decompressorNew(compressCodec codec, bool skip_checksums, decompressor **out, reason *why) {
    check(codec == COMPRESS_LZ4 || codec == COMPRESS_ZSTD);
    decompressor *d = memNew(decompressor);
    *d = (decompressor){.codec = codec, .skip_checksums = skip_checksums};
    status st = begin(d);
    if (st == OK) {
        *out = d;
        return OK;
    }
    memFree(d);
    if (st == ERR_NO_MEMORY) return reasonSet(why, st, "out of memory");
    return reasonSet(why, st, "this build has no %s", compressName(codec));
}

void decompressorFree(decompressor *d) {
    if (!d) return;
    switch (d->codec) {
#ifdef HAVE_LZ4
    case COMPRESS_LZ4: lz4End(d); break;
#endif
#ifdef HAVE_ZSTD
    case COMPRESS_ZSTD: zstdEnd(d); break;
#endif
    default: break;
    }
    memFree(d);
}

status decompressorStep(decompressor *d, const void *in, size_t *in_len, void *out, size_t *out_len,
                        bool *done, reason *why) {
    hotCheck(*out_len > 0);
    switch (d->codec) {
#ifdef HAVE_LZ4
    case COMPRESS_LZ4: return lz4Step(d, in, in_len, out, out_len, done, why);
#endif
#ifdef HAVE_ZSTD
    case COMPRESS_ZSTD: return zstdStep(d, in, in_len, out, out_len, done, why);
#endif
    default: break;
    }
    (void)in, (void)in_len, (void)out, (void)done;
    return reasonSet(why, ERR_SYNTAX, "no codec"); /* decompressorNew() never creates this */
}
