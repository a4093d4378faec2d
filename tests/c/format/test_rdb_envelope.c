/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of compressed files: the frames are those of the programs lz4 and zstd, with and without
 * checksums; every cut is refused, and every changed bit is refused or harmless. */
#include "format_test.h"

#include "format/rdb_envelope.h"
#include "format/rdb_file.h"
#include "io/compress.h"

/* A file of version 81 with the keys plain and long. */
#define LZ4_CHECKED \
    "56435301010001 04224d187440bd3f000000ff2156414c4b4559303831fa0a76616c6b65792d76657205392e322e" \
    "30fe000005706c61696e017800046c6f6e6740c861620200b390ff111111111111111166b55bd600000000cdfe8212"
#define LZ4_PLAIN \
    "56435301010001 04224d186040823f000000ff2156414c4b4559303831fa0a76616c6b65792d76657205392e322e" \
    "30fe000005706c61696e017800046c6f6e6740c861620200b390ff111111111111111100000000"
#define ZSTD_CHECKED \
    "56435301020001 28b52ffd24ff0d0200940356414c4b4559303831fa0a76616c6b65792d76657205392e322e30fe" \
    "000005706c61696e017800046c6f6e6740c86162ff11111111111111110100308c725011282299"
#define ZSTD_PLAIN \
    "56435301020001 28b52ffd20ff0d0200940356414c4b4559303831fa0a76616c6b65792d76657205392e322e30fe" \
    "000005706c61696e017800046c6f6e6740c86162ff11111111111111110100308c7250"
enum { KEYS = 2, FRAMES = 4, CHECKED = 2 };

static const char *const frames[FRAMES] = {LZ4_CHECKED, ZSTD_CHECKED, LZ4_PLAIN, ZSTD_PLAIN};

static bool isBuilt(const char *hex) {
    return strstr(compressBuilt(), hex[9] == '1' ? "lz4" : "zstd") != NULL;
}

/* A source that returns few bytes at once. */
typedef struct slowSource {
    rdbSource source;
    slice rest;
    size_t step;
} slowSource;

static status readSlowly(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    slowSource *s = (slowSource *)source;
    *len = sizeMin(sizeMin(cap, s->step), s->rest.len);
    memcpy(dst, s->rest.ptr, *len);
    s->rest.ptr += *len;
    s->rest.len -= *len;
    return OK;
}

static status countKey(void *arg, rdbReader *r, rdbKey *key) {
    (*(int *)arg)++;
    assert_non_null(key->o);
    objectFree(key->o);
    assert_true(rdbReaderProgress(r) > 0);
    return OK;
}

typedef struct outcome {
    status st;
    int keys;
    rdbFileResult result;
    uint64_t offset;
    bool short_read;
    reason why;
} outcome;

static outcome readFile(slice bytes, size_t step, bool checks) {
    static const rdbFileHandler handler = {.key = countKey};
    slowSource source = {.source = {.read = readSlowly}, .rest = bytes, .step = step};
    rdbFileOptions options = {.values = testOptions(), .check_checksum = checks};
    outcome out = {.keys = 0};
    rdbReader r;
    rdbReaderInit(&r, &source.source, checks);
    out.st = rdbFileRead(&r, &options, &handler, &out.keys, &out.result);
    out.offset = rdbReaderOffset(&r);
    out.short_read = r.short_read;
    out.why = r.why;
    assert_ptr_equal(r.source, &source.source);
    if (out.st == OK && out.offset < bytes.len) {
        uint8_t next;
        assert_int_equal(rdbReadByte(&r, &next), OK);
        assert_int_equal(next, (uint8_t)bytes.ptr[out.offset]);
    }
    rdbReaderClear(&r);
    return out;
}

static void test_reads_both_codecs_in_any_steps(void **state) {
    for (int i = 0; i < FRAMES; i++) {
        if (!isBuilt(frames[i])) continue;
        str bytes = testBytes(frames[i]);
        size_t len = bytes.len;
        assert_true(compressIsHead(strSlice(&bytes)));
        strAppendText(&bytes, "*1 what follows");
        for (size_t step = 1; step <= bytes.len; step++) {
            outcome o = readFile(strSlice(&bytes), step, true);
            assert_int_equal(o.st, OK);
            assert_int_equal(o.keys, KEYS);
            assert_int_equal(o.result.codec, bytes.ptr[4]);
            assert_int_equal(o.offset, len); /* what follows the frame is left */
        }
        strFree(&bytes);
    }
}

static void test_cut_files_are_refused(void **state) {
    for (int i = 0; i < FRAMES; i++) {
        if (!isBuilt(frames[i])) continue;
        str bytes = testBytes(frames[i]);
        for (size_t len = 0; len < bytes.len; len++) {
            char *exact = memDup(bytes.ptr, len); /* ASAN guards its end */
            for (int checks = 0; checks < 2; checks++) {
                outcome o = readFile(sliceMake(exact, len), 1 + len / 2, checks);
                assert_int_equal(o.st, ERR_IO);
                assert_true(o.short_read);
                assert_string_equal(o.why.text, "Unexpected EOF reading RDB file");
            }
            memFree(exact);
        }
        strFree(&bytes);
    }
}

/* With checksums a frame whose decompressed bytes differ is never accepted. */
static void test_changed_bits_are_refused_or_harmless(void **state) {
    for (int i = 0; i < FRAMES; i++) {
        if (!isBuilt(frames[i])) continue;
        str bytes = testBytes(frames[i]);
        for (size_t bit = 0; bit < 8 * bytes.len; bit++) {
            char *exact = memDup(bytes.ptr, bytes.len);
            exact[bit / 8] ^= (char)(1 << bit % 8);
            for (int checks = 0; checks < 2; checks++) {
                outcome o = readFile(sliceMake(exact, bytes.len), bytes.len, checks);
                if (o.st != OK) assert_true(o.why.text[0] != 0);
                if (o.st == OK && i < CHECKED && checks) assert_int_equal(o.keys, KEYS);
                if (bit < 8 * RDB_ENVELOPE_LEN) assert_int_not_equal(o.st, OK);
            }
            memFree(exact);
        }
        strFree(&bytes);
    }
}

static void test_wrong_checksums_are_skipped_on_demand(void **state) {
    for (int i = 0; i < CHECKED; i++) {
        if (!isBuilt(frames[i])) continue;
        str bytes = testBytes(frames[i]);
        bytes.ptr[bytes.len - 1] ^= 1;
        outcome o = readFile(strSlice(&bytes), 1000, true);
        assert_int_equal(o.st, ERR_SYNTAX);
        assert_non_null(strstr(o.why.text, "Corrupt streaming-compressed RDB input"));
        assert_int_equal(readFile(strSlice(&bytes), 1000, false).st, OK);
        strFree(&bytes);
    }
}

static void test_unsupported_envelopes_are_refused(void **state) {
    static const struct {
        int at, byte;
    } wrong[] = {{3, 0}, {3, 2}, {4, 0}, {4, 3}, {5, 1}, {6, 0}, {6, 2}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        str bytes = testBytes(LZ4_CHECKED);
        bytes.ptr[wrong[i].at] = (char)wrong[i].byte;
        outcome o = readFile(strSlice(&bytes), 1000, true);
        assert_int_equal(o.st, ERR_SYNTAX);
        assert_true(o.result.bad_header);
        assert_string_equal(o.why.text, "Invalid or unsupported RDB stream envelope");
        strFree(&bytes);
    }
    for (int i = 0; i < FRAMES; i++) {
        if (isBuilt(frames[i])) continue;
        str bytes = testBytes(frames[i]);
        outcome o = readFile(strSlice(&bytes), 1000, true);
        assert_true(o.result.bad_header);
        assert_non_null(strstr(o.why.text, "envelope: this build has no "));
        strFree(&bytes);
    }
}

int test_rdb_envelope(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_both_codecs_in_any_steps),
        cmocka_unit_test(test_cut_files_are_refused),
        cmocka_unit_test(test_changed_bits_are_refused_or_harmless),
        cmocka_unit_test(test_wrong_checksums_are_skipped_on_demand),
        cmocka_unit_test(test_unsupported_envelopes_are_refused),
    };
    return cmocka_run_group_tests_name("rdb_envelope", tests, testSetUp, testTearDown);
}
