/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compression by the distribution's library (compress.h), for Zstandard. Invariant: a compressor
 * has a context, as there is none without the library. The library allocates about 4 MB for a
 * context of the default level. */
#include "io/compress.h"

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/base.h"

#ifdef HAVE_ZSTD
struct compressor {
    ZSTD_CCtx *zstd;
};

status compressorNew(compressCodec codec, compressor **out, reason *why) {
    if (codec != COMPRESS_ZSTD)
        return reasonSet(why, ERR_NOT_FOUND, "%s is not written", compressName(codec));
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    if (!zstd) return reasonSet(why, ERR_NO_MEMORY, "out of memory");
    /* Cannot fail: the parameter exists in all versions that stream. */
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    *out = memNew(compressor);
    (*out)->zstd = zstd;
    return OK;
}

void compressorFree(compressor *c) {
    if (!c) return;
    check(c->zstd);
    (void)ZSTD_freeCCtx(c->zstd); /* always succeeds */
    memFree(c);
}

status compressorStep(compressor *c, const void *in, size_t *in_len, void *out, size_t *out_len,
                      bool end, bool *done, reason *why) {
    hotCheck(*out_len > 0);
    ZSTD_inBuffer from = {.src = in, .size = *in_len};
    ZSTD_outBuffer to = {.dst = out, .size = *out_len};
    size_t rest = ZSTD_compressStream2(c->zstd, &to, &from, end ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(rest)) return reasonSet(why, ERR_IO, "zstd: %s", ZSTD_getErrorName(rest));
    *in_len = from.pos;
    *out_len = to.pos;
    *done = end ? rest == 0 : from.pos == from.size;
    return OK;
}
#else
status compressorNew(compressCodec codec, compressor **out, reason *why) {
    check(out);
    return reasonSet(why, ERR_NOT_FOUND, "this build has no %s", compressName(codec));
}

void compressorFree(compressor *c) { check(!c); }

status compressorStep(compressor *c, const void *in, size_t *in_len, void *out, size_t *out_len,
                      bool end, bool *done, reason *why) {
    (void)in, (void)in_len, (void)out, (void)out_len, (void)end, (void)done; /* of no use */
    check(!c);                                                               /* none exists */
    return reasonSet(why, ERR_NOT_FOUND, "this build has no codec");
}
#endif
