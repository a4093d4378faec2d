/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of compression: what is written in any pieces is read in any steps; what was flushed can be
 * read at once; changed and missing bytes are found where the frame has checksums. */
#include "io_test.h"

#include <stdlib.h>

#include "base/base.h"
#include "io/compress.h"

enum { CONTENT_BYTES = 300000 };

static const compressCodec codecs[] = {COMPRESS_LZ4, COMPRESS_ZSTD};

/* Text that can be compressed, with parts that cannot. */
static str testContent(void) {
    str s = STR_EMPTY;
    while (s.len < CONTENT_BYTES) {
        strAppendFormat(&s, "{\"id\":%d,\"name\":\"record %d\"}", rand(), rand() % 10);
        for (int i = rand() % 50; i > 0; i--) strAppendByte(&s, (char)rand());
    }
    return s;
}

/* Appends what the bytes decompress to; steps of up to `cap` bytes of output. */
static status readAll(decompressor *d, slice in, size_t cap, str *out, bool *done, reason *why) {
    for (bool is_full = false; (in.len || is_full) && !*done;) {
        size_t in_len = in.len, out_len = cap;
        status st = decompressorStep(d, in.ptr, &in_len, strReserve(out, cap), &out_len, done, why);
        if (st != OK) return st;
        strGrow(out, out_len);
        in = sliceMake(in.ptr + in_len, in.len - in_len);
        is_full = out_len == cap;
    }
    return OK;
}

static void test_pieces_of_any_size(void **state) {
    testSeed("compress");
    reason why;
    str content = testContent();
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        compressor *c;
        decompressor *d;
        if (!compressHas(codecs[i])) continue;
        const compressChecksums sums = {.blocks = rand() % 2, .content = rand() % 2};
        str packed = STR_EMPTY, plain = STR_EMPTY;
        bool done = false;
        assert_int_equal(compressorNew(codecs[i], sums, &c, &why), OK);
        assert_int_equal(decompressorNew(codecs[i], false, &d, &why), OK);
        for (size_t at = 0, n; at < content.len; at += n) {
            n = sizeMin(1 + (size_t)rand() % (rand() % 5 ? 300 : 100000), content.len - at);
            assert_int_equal(compressorAdd(c, content.ptr + at, n, &packed, &why), OK);
            if (rand() % 4) continue;
            /* All that was added before a flush can be read after it. */
            assert_int_equal(compressorFlush(c, &packed, &why), OK);
            assert_int_equal(
                readAll(d, strSlice(&packed), 1 + (size_t)rand() % 5000, &plain, &done, &why), OK);
            assert_int_equal(plain.len, at + n);
            assert_false(done);
            strClear(&packed);
        }
        assert_int_equal(compressorEnd(c, &packed, &why), OK);
        strAppendText(&packed, "what follows");
        assert_int_equal(readAll(d, strSlice(&packed), 1000, &plain, &done, &why), OK);
        assert_true(done);
        assert_int_equal(plain.len, content.len);
        assert_memory_equal(plain.ptr, content.ptr, content.len);
        compressorFree(c);
        decompressorFree(d);
        strFree(&packed);
        strFree(&plain);
    }
    strFree(&content);
}

/* A changed byte of a frame with checksums never gives other content. */
static void test_changed_bytes(void **state) {
    reason why;
    str content = STR_EMPTY;
    for (int i = 0; i < 40; i++) strAppendFormat(&content, "line %d of a text\n", i);
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        compressor *c;
        str packed = STR_EMPTY;
        if (!compressHas(codecs[i])) continue;
        const compressChecksums sums = {.blocks = true, .content = true};
        assert_int_equal(compressorNew(codecs[i], sums, &c, &why), OK);
        assert_int_equal(compressorAdd(c, content.ptr, content.len, &packed, &why), OK);
        assert_int_equal(compressorEnd(c, &packed, &why), OK);
        compressorFree(c);
        for (size_t bit = 0; bit < 8 * packed.len; bit++) {
            decompressor *d;
            str plain = STR_EMPTY;
            bool done = false;
            packed.ptr[bit / 8] ^= (char)(1 << bit % 8);
            assert_int_equal(decompressorNew(codecs[i], false, &d, &why), OK);
            status st = readAll(d, strSlice(&packed), 500, &plain, &done, &why);
            if (st == OK && done) assert_true(sliceEqual(strSlice(&plain), strSlice(&content)));
            if (st != OK) assert_true(why.text[0] != 0);
            packed.ptr[bit / 8] ^= (char)(1 << bit % 8);
            decompressorFree(d);
            strFree(&plain);
        }
        strFree(&packed);
    }
    strFree(&content);
}

static void test_heads(void **state) {
    char head[COMPRESS_HEAD_LEN];
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        compressHeadPrint(head, codecs[i], COMPRESS_STREAM);
        assert_true(compressIsHead(sliceMake(head, sizeof(head))));
        assert_int_equal(compressHeadParse(head, COMPRESS_STREAM), codecs[i]);
        assert_int_equal(compressHeadParse(head, COMPRESS_FILE), COMPRESS_NONE);
        for (size_t at = 0; at < sizeof(head); at++) {
            head[at] ^= 0x40;
            assert_int_equal(compressHeadParse(head, COMPRESS_STREAM), COMPRESS_NONE);
            head[at] ^= 0x40;
        }
    }
    assert_false(compressIsHead(SLICE("VC")));
    assert_true(compressHas(COMPRESS_NONE));
}

static void test_missing_codecs_are_refused(void **state) {
    reason why;
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        compressor *c;
        if (compressHas(codecs[i])) {
            assert_int_equal(compressRequire(codecs[i], &why), OK);
            continue;
        }
        assert_int_equal(compressorNew(codecs[i], (compressChecksums){0}, &c, &why), ERR_NOT_FOUND);
        assert_non_null(strstr(why.text, " compression is not available in this build"));
    }
}

int test_compress(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_any_size),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_missing_codecs_are_refused),
    };
    return cmocka_run_group_tests_name("compress", tests, NULL, NULL);
}
