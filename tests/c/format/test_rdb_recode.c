/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of writing compressed files and of changing their compression: from each codec to each, in
 * pieces of each size; cut and changed files. */
#include "format_test.h"

#include "base/hash.h"
#include "format/rdb_envelope.h"
#include "format/rdb_file.h"
#include "format/rdb_recode.h"

enum { CODECS = 3, CHECKSUM_BYTES = 8 };

typedef struct memorySink {
    rdbSink sink;
    str out;
} memorySink;

static status keepBytes(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    (void)why;
    strAppend(&((memorySink *)sink)->out, bytes, len);
    return OK;
}

/* A small file with this compression, as a save writes it. */
static str fileOf(compressCodec codec) {
    memorySink to = {.sink = {.write = keepBytes}};
    rdbEnvelopeSink packed;
    rdbWriter w;
    reason why;
    bool packs = codec != COMPRESS_NONE;
    const rdbFileInfo info = {.version = RDB_VERSION, .server_version = "9.1.2"};
    assert_int_equal(rdbEnvelopeSinkInit(&packed, codec, true, &to.sink, &why), OK);
    rdbWriterInit(&w, &packed.sink, !packs, false);
    rdbFileBegin(&w, &info);
    for (int i = 0; i < 20; i++) rdbFileAux(&w, SLICE("name"), SLICE("a text that comes often"));
    assert_int_equal(rdbFileEnd(&w, &why), OK);
    assert_int_equal(rdbEnvelopeSinkEnd(&packed, &why), OK);
    if (packs) assert_true(packed.in_bytes > packed.out_bytes);
    if (!packs) assert_true(packed.in_bytes == packed.out_bytes);
    assert_true(packed.out_bytes == to.out.len);
    rdbEnvelopeSinkClear(&packed);
    rdbWriterClear(&w);
    return to.out;
}

static status recode(slice in, compressCodec codec, bool checksums, size_t step, str *out,
                     reason *why) {
    memorySink to = {.sink = {.write = keepBytes}};
    rdbRecoder *r = rdbRecoderNew(codec, checksums, &to.sink);
    status st = OK;
    for (size_t n; in.len && st == OK; in = sliceMake(in.ptr + n, in.len - n)) {
        n = sizeMin(step, in.len);
        st = rdbRecoderWrite(r, in.ptr, n, why);
    }
    if (st == OK) st = rdbRecoderEnd(r, why);
    rdbRecoderFree(r);
    *out = to.out;
    return st;
}

/* Its last bytes are the checksum of the others. */
static bool hasChecksum(const str *file) {
    size_t len = file->len - CHECKSUM_BYTES;
    return loadU64(file->ptr + len) == crc64(0, file->ptr, len);
}

static void test_from_each_codec_to_each(void **state) {
    reason why;
    str plain = fileOf(COMPRESS_NONE);
    assert_true(hasChecksum(&plain));
    for (int from = 0; from < CODECS; from++) {
        if (!compressHas((compressCodec)from)) continue;
        str file = fileOf((compressCodec)from);
        for (int to = 0; to < CODECS; to++) {
            if (!compressHas((compressCodec)to)) continue;
            for (size_t step = 1; step <= file.len; step += 1 + step / 4) {
                str out, back;
                assert_int_equal(recode(strSlice(&file), (compressCodec)to, true, step, &out, &why),
                                 OK);
                if (to == from) assert_true(sliceEqual(strSlice(&out), strSlice(&file)));
                if (to != COMPRESS_NONE) {
                    assert_true(compressIsHead(strSlice(&out)));
                    assert_int_equal(out.ptr[4], to);
                }
                assert_int_equal(recode(strSlice(&out), COMPRESS_NONE, true, SIZE_MAX, &back, &why),
                                 OK);
                assert_true(sliceEqual(strSlice(&back), strSlice(&plain)));
                strFree(&out);
                strFree(&back);
            }
        }
        strFree(&file);
    }
    strFree(&plain);
}

static void test_without_checksums(void **state) {
    reason why;
    if (!compressHas(COMPRESS_LZ4)) skip();
    str file = fileOf(COMPRESS_LZ4), out;
    assert_int_equal(recode(strSlice(&file), COMPRESS_NONE, false, 10, &out, &why), OK);
    assert_int_equal(loadU64(out.ptr + out.len - CHECKSUM_BYTES), 0);
    strFree(&out);
    strFree(&file);
}

static void test_damaged_files(void **state) {
    reason why;
    str plain = fileOf(COMPRESS_NONE), out;
    for (int codec = COMPRESS_LZ4; codec < CODECS; codec++) {
        if (!compressHas((compressCodec)codec)) continue;
        str file = fileOf((compressCodec)codec);
        for (size_t len = COMPRESS_HEAD_LEN; len < file.len; len++) {
            slice cut = sliceMake(file.ptr, len);
            assert_int_equal(recode(cut, COMPRESS_NONE, true, 7, &out, &why), ERR_SYNTAX);
            assert_non_null(strstr(why.text, "EOF"));
            strFree(&out);
        }
        for (size_t bit = 8 * COMPRESS_HEAD_LEN; bit < 8 * file.len; bit++) {
            file.ptr[bit / 8] ^= (char)(1 << bit % 8);
            status st = recode(strSlice(&file), COMPRESS_NONE, true, 100, &out, &why);
            if (st == OK) assert_true(sliceEqual(strSlice(&out), strSlice(&plain)));
            file.ptr[bit / 8] ^= (char)(1 << bit % 8);
            strFree(&out);
        }
        strAppendText(&file, "more");
        assert_int_equal(recode(strSlice(&file), COMPRESS_NONE, true, 100, &out, &why), ERR_SYNTAX);
        assert_non_null(strstr(why.text, "bytes after the file"));
        strFree(&out);
        strFree(&file);
    }
    strFree(&plain);
}

/* The load refuses them, with its own reason. */
static void test_what_is_no_file_is_passed_on(void **state) {
    reason why;
    str out;
    const slice texts[] = {SLICE(""), SLICE("VC"), SLICE("VCS\1\1"), SLICE("VCS\2\1 and more"),
                           SLICE("VALKEY")};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(recode(texts[i], COMPRESS_NONE, true, 1, &out, &why), OK);
        assert_true(sliceEqual(strSlice(&out), texts[i]));
        strFree(&out);
    }
}

int test_rdb_recode(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_each_codec_to_each),
        cmocka_unit_test(test_without_checksums),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_what_is_no_file_is_passed_on),
    };
    return cmocka_run_group_tests_name("rdb_recode", tests, testSetUp, testTearDown);
}
