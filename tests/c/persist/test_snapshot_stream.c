/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a snapshot against a plain writer that gets the same records. */
#include "persist_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/rdb_file.h"

enum { TEXT_BYTES = 300 * 1024, RECORDS_MAX = 4000 };

/* Random bytes in the first half, repetitive ones in the second. */
static char text[TEXT_BYTES];

typedef struct record {
    enum { BYTES, STRING, INTEGER, BLOB, JOIN, KINDS } kind;
    bool is_side;
    slice content;
    int64_t number;
} record;

static void fillText(void) {
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = (char)(i < TEXT_BYTES / 2 ? randomNext() & 255 : 'a' + i / 7 % 8);
}

static slice randomText(bool is_short) {
    static const size_t most[] = {12, 40, 1000, 20 * 1024, 140 * 1024};
    size_t len = (size_t)randomUniform(most[randomUniform(is_short ? 3 : COUNT_OF(most))]);
    return sliceMake(text + randomUniform(TEXT_BYTES - len), len);
}

static record randomRecord(bool is_short) {
    record r = {.content = randomText(is_short)};
    uint64_t dice = randomUniform(100);
    r.kind = dice < 40 ? BYTES : dice < 80 ? STRING : dice < 90 ? INTEGER : dice < 97 ? BLOB : JOIN;
    r.is_side = randomUniform(10) == 0;
    r.number = (int64_t)randomNext() >> randomUniform(64);
    return r;
}

/* What the stream has to do with a record, done at once. */
static void writePlain(rdbWriter *w, const record *r) {
    switch (r->kind) {
    case BYTES: rdbWriteBytes(w, r->content.ptr, r->content.len); break;
    case INTEGER: rdbWriteIntString(w, r->number); break;
    case JOIN: break;
    default: rdbWriteString(w, r->content);
    }
}

static void writeToStream(snapshotStream *s, const record *r) {
    rdbWriter *w = r->is_side ? snapshotStreamSide(s) : snapshotStreamWriter(s);
    if (r->kind == JOIN) {
        snapshotStreamJoinSide(s);
    } else if (r->kind == BLOB) {
        blob *b = blobNew(r->content.len);
        memcpy(b->bytes, r->content.ptr, r->content.len);
        b->len = r->content.len;
        rdbWriteShared(w, b);
        blobRelease(b);
    } else {
        writePlain(w, r);
    }
}

/* The bytes that a stream of these records consists of. */
static str expected(const record *records, size_t count, const snapshotStreamOptions *options) {
    str out = STR_EMPTY;
    rdbStrSink sink;
    rdbWriter w;
    rdbStrSinkInit(&sink, &out);
    rdbWriterInit(&w, &sink.sink, options->checksum && options->is_rdb, options->compress);
    size_t side_done = 0;
    for (size_t i = 0; i <= count; i++) {
        if (i < count && records[i].kind != JOIN) {
            if (!records[i].is_side) writePlain(&w, &records[i]);
            continue;
        }
        for (; side_done < i; side_done++) {
            if (records[side_done].is_side) writePlain(&w, &records[side_done]);
        }
    }
    if (options->is_rdb) {
        assert_int_equal(rdbFileEnd(&w, NULL), OK);
    } else {
        assert_int_equal(rdbWriterFlush(&w), OK);
    }
    rdbWriterClear(&w);
    return out;
}

/* False if there was nothing to take. */
static bool takeSome(snapshotStream *s, str *out, unsigned most) {
    unsigned taken = 0;
    for (blob *b; taken < most && (b = snapshotStreamTake(s)); taken++) {
        strAppend(out, b->bytes, b->len);
        blobRelease(b);
    }
    return taken > 0;
}

static void compare(const str *got, const str *wanted) {
    assert_int_equal(got->len, wanted->len);
    assert_memory_equal(got->ptr, wanted->ptr, wanted->len);
}

static void runOnce(const record *records, size_t count, const snapshotStreamOptions *options,
                    bool forced) {
    snapshotStream *s;
    reason why;
    str relayed = STR_EMPTY, wanted = expected(records, count, options);
    assert_int_equal(snapshotStreamNew(options, &s, &why), OK);
    bool is_slow = randomUniform(2);
    for (size_t i = 0; i < count; i++) {
        while (!forced && snapshotStreamRoom(s) == 0) {
            if (!takeSome(s, &relayed, 4) && snapshotStreamRoom(s) == 0) testSleep();
        }
        writeToStream(s, &records[i]);
        if (!is_slow || randomUniform(20) == 0) (void)takeSome(s, &relayed, 1); /* if any */
    }
    snapshotStreamEnd(s);
    while (snapshotStreamPoll(s, &why) == SNAPSHOT_STREAM_RUNS) {
        if (!takeSome(s, &relayed, 1)) testSleep();
    }
    assert_int_equal(snapshotStreamPoll(s, &why), SNAPSHOT_STREAM_DONE);
    (void)takeSome(s, &relayed, UINT32_MAX); /* if any */
    assert_int_equal(snapshotStreamCount(s).written, wanted.len);
    if (options->relays) compare(&relayed, &wanted);
    if (options->name) {
        str file = testFile(options->name);
        compare(&file, &wanted);
        strFree(&file);
        assert_false(testFileExists(options->temporary));
        unlink(options->name);
    }
    snapshotStreamFree(s);
    strFree(&relayed);
    strFree(&wanted);
}

static void a_stream_equals_what_a_plain_writer_writes(void **state) {
    (void)state;
    testSeed(__func__);
    fillText();
    record *records = malloc(RECORDS_MAX * sizeof(*records));
    for (int round = 0; round < 60; round++) {
        bool is_short = randomUniform(3) > 0;
        size_t count = (size_t)randomUniform(is_short ? RECORDS_MAX : 200);
        for (size_t i = 0; i < count; i++) records[i] = randomRecord(is_short);
        snapshotStreamOptions options = testOptions();
        options.relays = randomUniform(2);
        if (options.relays && randomUniform(2)) options.name = NULL;
        options.is_rdb = randomUniform(4);
        options.checksum = randomUniform(4);
        options.compress = randomUniform(4);
        options.sync_bytes = randomUniform(2) ? 100000 : 0;
        runOnce(records, count, &options, randomUniform(4) == 0);
    }
    free(records);
}

static void an_empty_stream_is_an_end_mark(void **state) {
    (void)state;
    snapshotStreamOptions options = testOptions();
    runOnce(NULL, 0, &options, false);
    options.is_rdb = false;
    runOnce(NULL, 0, &options, false);
}

static void references_to_blobs_are_released(void **state) {
    (void)state;
    snapshotStreamOptions options = testOptions();
    snapshotStream *s;
    reason why;
    blob *b = blobNew(100 * 1024);
    b->len = b->cap;
    memset(b->bytes, 'x', b->len);
    assert_int_equal(snapshotStreamNew(&options, &s, &why), OK);
    rdbWriteShared(snapshotStreamWriter(s), b);
    assert_true(blobIsShared(b));
    rdbWriteShared(snapshotStreamSide(s), b);
    snapshotStreamEnd(s);
    assert_int_equal(testAwaitEnd(s, &why), SNAPSHOT_STREAM_DONE);
    assert_int_equal(snapshotStreamPoll(s, &why), SNAPSHOT_STREAM_DONE);
    assert_false(blobIsShared(b));
    snapshotStreamFree(s);
    unlink("out.rdb");
    /* A stream that is given up before the worker has seen them. */
    assert_int_equal(snapshotStreamNew(&options, &s, &why), OK);
    rdbWriteShared(snapshotStreamWriter(s), b);
    rdbWriteShared(snapshotStreamSide(s), b);
    snapshotStreamFree(s);
    assert_false(blobIsShared(b));
    blobRelease(b);
    assert_false(testFileExists("out.rdb"));
}

int test_snapshot_stream(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_equals_what_a_plain_writer_writes),
        cmocka_unit_test(an_empty_stream_is_an_end_mark),
        cmocka_unit_test(references_to_blobs_are_released),
    };
    return cmocka_run_group_tests_name("snapshot stream", tests, testEnter, testLeave);
}
