/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decompression by the distribution's libraries (compress.h). Invariant: a decompressor has exactly
 * one context, that of its codec. The libraries allocate memory for the window of a frame: usually
 * 64 KB to a few megabytes, 128 MB at most. */
#include "io/compress.h"

#ifdef HAVE_LZ4
#include <lz4frame.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/base.h"

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

/* ------------------------------------------------------------------ LZ4 */

#ifdef HAVE_LZ4
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

/* ------------------------------------------------------------------ both */

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
