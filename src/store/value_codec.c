/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values and dictionaries of Zstandard (value_codec.h).
 *
 * Invariants: a packed value of at most SHORT_MAX bytes is the content of the only block of a
 * frame, whose headers are the same for all such values but for the length of the block; a longer
 * one is a whole frame, and longer than SHORT_MAX + HEADERS. A context is either in the pool or in
 * use by one thread; each place of the pool is exchanged atomically. The library allocates by
 * itself, so what it says that its objects take is added to used memory. */
#include "store/value_codec.h"

#include "base/base.h"

#ifdef HAVE_ZSTD
#include <zdict.h>
#include <zstd.h>

/* Higher levels take twice the time of a value and two to four times the memory of a dictionary for
 * 1 to 2 % less. */
enum { LEVEL = 1 };
/* Threads that use codecs at the same time: main, saving, training. */
enum { POOL = 4 };
/* Names of the library's experimental part: frames without a magic number. */
#define COMPRESS_FORMAT ZSTD_c_experimentalParam2
#define EXPAND_FORMAT ZSTD_d_experimentalParam1
enum { WITHOUT_MAGIC = 1 };
/* Headers of a frame with one block, and the longest content of a block that is kept without. */
enum { HEADERS = 5, SHORT_MAX = 1024 };

struct valueCodec {
    ZSTD_CDict *to;   /* NULL: without a dictionary */
    ZSTD_DDict *from; /* the same */
    size_t bytes;
};

static struct {
    ZSTD_CCtx *compressing[POOL];
    ZSTD_DCtx *expanding[POOL];
    size_t bytes; /* of those in the pool */
} pool;

status valueCodecRequire(reason *why) {
    (void)why;
    return OK;
}

/* ------------------------------------------------------------------ contexts */

static void countContext(size_t bytes, bool add) {
    ptrdiff_t change = add ? (ptrdiff_t)bytes : -(ptrdiff_t)bytes;
    __atomic_fetch_add(&pool.bytes, (size_t)change, __ATOMIC_RELAXED);
    memCount(change);
}

static ZSTD_CCtx *takeCompressing(void) {
    for (int i = 0; i < POOL; i++) {
        ZSTD_CCtx *c = __atomic_exchange_n(&pool.compressing[i], NULL, __ATOMIC_ACQ_REL);
        if (c) {
            countContext(ZSTD_sizeof_CCtx(c), false);
            return c;
        }
    }
    ZSTD_CCtx *c = ZSTD_createCCtx();
    if (!c) return NULL;
    static const struct {
        ZSTD_cParameter name;
        int value;
    } settings[] = {{ZSTD_c_compressionLevel, LEVEL},
                    {ZSTD_c_contentSizeFlag, 0},
                    {ZSTD_c_checksumFlag, 0},
                    {ZSTD_c_dictIDFlag, 0},
                    {COMPRESS_FORMAT, WITHOUT_MAGIC}};
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        check(!ZSTD_isError(ZSTD_CCtx_setParameter(c, settings[i].name, settings[i].value)));
    return c;
}

static void giveCompressing(ZSTD_CCtx *c) {
    size_t bytes = ZSTD_sizeof_CCtx(c);
    countContext(bytes, true);
    for (int i = 0; i < POOL; i++) {
        ZSTD_CCtx *none = NULL;
        if (__atomic_compare_exchange_n(&pool.compressing[i], &none, c, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return;
    }
    countContext(bytes, false);
    (void)ZSTD_freeCCtx(c);
}

static ZSTD_DCtx *takeExpanding(void) {
    for (int i = 0; i < POOL; i++) {
        ZSTD_DCtx *d = __atomic_exchange_n(&pool.expanding[i], NULL, __ATOMIC_ACQ_REL);
        if (d) {
            countContext(ZSTD_sizeof_DCtx(d), false);
            return d;
        }
    }
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (d) check(!ZSTD_isError(ZSTD_DCtx_setParameter(d, EXPAND_FORMAT, WITHOUT_MAGIC)));
    return d;
}

static void giveExpanding(ZSTD_DCtx *d) {
    size_t bytes = ZSTD_sizeof_DCtx(d);
    countContext(bytes, true);
    for (int i = 0; i < POOL; i++) {
        ZSTD_DCtx *none = NULL;
        if (__atomic_compare_exchange_n(&pool.expanding[i], &none, d, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return;
    }
    countContext(bytes, false);
    (void)ZSTD_freeDCtx(d);
}

size_t valueCodecContextsMemory(void) { return __atomic_load_n(&pool.bytes, __ATOMIC_RELAXED); }

void valueCodecFreeContexts(void) {
    for (int i = 0; i < POOL; i++) {
        ZSTD_CCtx *c = __atomic_exchange_n(&pool.compressing[i], NULL, __ATOMIC_ACQ_REL);
        ZSTD_DCtx *d = __atomic_exchange_n(&pool.expanding[i], NULL, __ATOMIC_ACQ_REL);
        countContext(ZSTD_sizeof_CCtx(c) + ZSTD_sizeof_DCtx(d), false);
        (void)ZSTD_freeCCtx(c); /* NULL is allowed for all four */
        (void)ZSTD_freeDCtx(d);
    }
    check(valueCodecContextsMemory() == 0);
}

/* ------------------------------------------------------------------ codecs */

status valueCodecNew(slice dictionary, valueCodec **out, reason *why) {
    valueCodec *c = memNew(valueCodec);
    if (dictionary.len) {
        c->to = ZSTD_createCDict(dictionary.ptr, dictionary.len, LEVEL);
        c->from = ZSTD_createDDict(dictionary.ptr, dictionary.len);
        c->bytes = ZSTD_sizeof_CDict(c->to) + ZSTD_sizeof_DDict(c->from);
        memCount((ptrdiff_t)c->bytes);
        if (!c->to || !c->from) {
            valueCodecFree(c);
            return reasonSet(why, ERR_NO_MEMORY, "out of memory");
        }
    }
    *out = c;
    return OK;
}

void valueCodecFree(valueCodec *c) {
    if (!c) return;
    memCount(-(ptrdiff_t)c->bytes);
    (void)ZSTD_freeCDict(c->to); /* cannot fail */
    (void)ZSTD_freeDDict(c->from);
    memFree(c);
}

size_t valueCodecMemory(const valueCodec *c) { return c->bytes + memSizeOf(c); }

static void resetCompressing(ZSTD_CCtx *context) {
    size_t n = ZSTD_CCtx_reset(context, ZSTD_reset_session_only);
    check(!ZSTD_isError(n));
}

/* Writes the headers before the content of a block: no size, no checksum and no number of a
 * dictionary follow (0); a window of 128 KB; the last block, compressed, of so many bytes. */
static void writeHeaders(char *to, size_t content_len) {
    enum { WINDOW = 7 << 3, LAST = 1, COMPRESSED = 2 << 1, LENGTH_SHIFT = 3 };
    hotCheck(content_len <= SHORT_MAX);
    to[0] = 0;
    to[1] = WINDOW;
    uint32_t block = LAST | COMPRESSED | (uint32_t)content_len << LENGTH_SHIFT;
    for (int i = 0; i < 3; i++) to[2 + i] = (char)(block >> 8 * i);
}

/* Removes the headers of a short frame; returns the bytes that remain, 0 if the frame is of another
 * kind: one that has not become smaller. */
static size_t removeHeaders(char *frame, size_t len) {
    char expected[HEADERS];
    if (len > SHORT_MAX + HEADERS) return len;
    if (len <= HEADERS) return 0;
    writeHeaders(expected, len - HEADERS);
    expected[1] = frame[1]; /* the window depends on the sizes of value and dictionary */
    if (memcmp(frame, expected, HEADERS) != 0) return 0;
    memmove(frame, frame + HEADERS, len - HEADERS);
    return len - HEADERS;
}

size_t valueCodecCompress(const valueCodec *c, slice plain, char *out, size_t cap) {
    ZSTD_CCtx *context = takeCompressing();
    if (!context) return 0;
    check(!ZSTD_isError(ZSTD_CCtx_refCDict(context, c->to)));
    size_t n = ZSTD_compress2(context, out, cap, plain.ptr, plain.len);
    /* It is in the midst of a frame, and would refuse the next dictionary. */
    if (ZSTD_isError(n)) resetCompressing(context);
    giveCompressing(context);
    if (ZSTD_isError(n)) return 0;
    hotCheck(n <= cap);
    return removeHeaders(out, n);
}

bool valueCodecExpand(const valueCodec *c, slice packed, char *out, size_t plain_len) {
    char frame[HEADERS + SHORT_MAX];
    if (packed.len <= SHORT_MAX) {
        writeHeaders(frame, packed.len);
        bytesCopy(frame + HEADERS, packed.ptr, packed.len);
        packed = sliceMake(frame, HEADERS + packed.len);
    }
    ZSTD_DCtx *context = takeExpanding();
    if (!context) return false;
    check(!ZSTD_isError(ZSTD_DCtx_refDDict(context, c->from)));
    size_t n = ZSTD_decompressDCtx(context, out, plain_len, packed.ptr, packed.len);
    if (ZSTD_isError(n)) (void)ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    giveExpanding(context);
    return !ZSTD_isError(n) && n == plain_len;
}

size_t valueCodecTrain(const char *samples, const size_t *lengths, unsigned count, char *out,
                       size_t cap) {
    hotCheck(cap >= VALUE_CODEC_DICTIONARY_MIN);
    size_t n = ZDICT_trainFromBuffer(out, cap, samples, lengths, count);
    return ZDICT_isError(n) ? 0 : n;
}

#else

struct valueCodec {
    size_t bytes;
};

status valueCodecRequire(reason *why) {
    return reasonSet(why, ERR_NOT_FOUND, "Zstandard compression is not available in this build");
}

status valueCodecNew(slice dictionary, valueCodec **out, reason *why) {
    (void)dictionary, (void)out;
    return valueCodecRequire(why);
}

/* There is no codec, so none of these is called with one. */

void valueCodecFree(valueCodec *c) { check(!c); }

size_t valueCodecMemory(const valueCodec *c) { return c->bytes; }

size_t valueCodecCompress(const valueCodec *c, slice plain, char *out, size_t cap) {
    (void)c, (void)plain, (void)out, (void)cap;
    return 0;
}

bool valueCodecExpand(const valueCodec *c, slice packed, char *out, size_t plain_len) {
    (void)c, (void)packed, (void)out, (void)plain_len;
    return false;
}

size_t valueCodecTrain(const char *samples, const size_t *lengths, unsigned count, char *out,
                       size_t cap) {
    (void)samples, (void)lengths, (void)count, (void)out, (void)cap;
    return 0;
}

size_t valueCodecContextsMemory(void) { return 0; }

void valueCodecFreeContexts(void) {}

#endif
