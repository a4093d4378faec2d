/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changing the compression of RDB files: whatever is accepted is the same after being compressed
 * and decompressed again, and nothing depends on the pieces in which it comes.
 *
 * Input: a byte whose lowest two bits choose the codec, a byte for the size of pieces, then the
 * file. */
#include <string.h>

#include "base/base.h"
#include "format/rdb_recode.h"

enum { OUT_MAX = 4 * 1024 * 1024, CHECKSUM_BYTES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct boundedSink {
    rdbSink sink;
    str out;
    bool is_full;
} boundedSink;

static status keepBytes(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    boundedSink *s = (boundedSink *)sink;
    s->is_full |= s->out.len + len > OUT_MAX;
    if (s->is_full) return reasonSet(why, ERR_LIMIT, "too long for a test");
    strAppend(&s->out, bytes, len);
    return OK;
}

/* False if it was refused, or became too long. */
static bool recode(slice in, compressCodec codec, size_t step, boundedSink *to) {
    reason why = {{0}};
    *to = (boundedSink){.sink = {.write = keepBytes}};
    rdbRecoder *r = rdbRecoderNew(codec, true, &to->sink);
    status st = OK;
    for (size_t n; in.len && st == OK; in = sliceMake(in.ptr + n, in.len - n)) {
        n = sizeMin(step, in.len);
        st = rdbRecoderWrite(r, in.ptr, n, &why);
    }
    if (st == OK) st = rdbRecoderEnd(r, &why);
    if (st != OK) check(why.text[0] != 0);
    rdbRecoderFree(r);
    return st == OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    compressCodec codec = (compressCodec)(data[0] % 3);
    if (!compressHas(codec)) return 0;
    slice in = sliceMake((const char *)data + 2, size - 2);
    boundedSink whole, pieces, plain, again;
    bool good = recode(in, codec, SIZE_MAX, &whole);
    bool same = recode(in, codec, 1 + data[1], &pieces);
    if (!whole.is_full && !pieces.is_full) check(good == same);
    if (good && same && codec == COMPRESS_NONE)
        check(sliceEqual(strSlice(&whole.out), strSlice(&pieces.out)));
    if (good && codec != COMPRESS_NONE) {
        bool direct = recode(in, COMPRESS_NONE, SIZE_MAX, &plain);
        bool twice = recode(strSlice(&whole.out), COMPRESS_NONE, SIZE_MAX, &again);
        if (direct && twice) check(plain.out.len == again.out.len);
        if (direct && twice && plain.out.len > CHECKSUM_BYTES)
            check(!memcmp(plain.out.ptr, again.out.ptr, plain.out.len - CHECKSUM_BYTES));
        strFree(&plain.out);
        strFree(&again.out);
    }
    strFree(&whole.out);
    strFree(&pieces.out);
    return 0;
}
