/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of connections whose peer may compress: plain and compressed bytes in any pieces, what was
 * received before, damage, the end. */
#include "io_test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "io/conn_unpack.h"

typedef struct owner {
    conn c;
    str got;
    size_t most; /* bytes of a read */
    int error;   /* errno of a failure; -1: closed */
} owner;

static struct {
    loop *l;
    owner o;
    int other;
    size_t received, plain, decompressed;
} fx;

static void countBytes(size_t received, size_t plain, size_t decompressed) {
    fx.received += received;
    fx.plain += plain;
    fx.decompressed += decompressed;
}

static int openFixture(void **state) {
    (void)state;
    int ends[2];
    memset(&fx, 0, sizeof(fx));
    fx.l = loopNew(NULL, NULL);
    testPair(ends);
    connInit(&fx.o.c, &connUnix, fx.l, ends[0], CONN_OPEN);
    fx.other = ends[1];
    fx.o.most = 7;
    return 0;
}

static int closeFixture(void **state) {
    (void)state;
    connClose(&fx.o.c);
    if (fx.other >= 0) close(fx.other);
    strFree(&fx.o.got);
    loopFree(fx.l);
    return 0;
}

/* One read for each call: the rest has to be announced by connNotePending(). */
static void readOnce(conn *c) {
    owner *o = (owner *)c;
    ssize_t n = connRead(c, strReserve(&o->got, o->most), o->most);
    if (n > 0) {
        strGrow(&o->got, (size_t)n);
    } else if (n == 0 || errno != EAGAIN) {
        o->error = n == 0 ? -1 : errno;
        assert_int_equal(connOnRead(c, NULL), OK);
    }
}

static void begin(slice received) {
    connUnpack(&fx.o.c, received, countBytes);
    assert_true(connUnpacks(&fx.o.c));
    assert_int_equal(connOnRead(&fx.o.c, readOnce), OK);
}

/* Turns until so many bytes were read, or reading has failed. */
static void awaitBytes(size_t len) {
    for (int i = 0; i < 100000 && fx.o.got.len < len && !fx.o.error; i++) {
        loopLimitSleep(fx.l, 1);
        (void)loopTurn(fx.l, true);
    }
}

static str packedOf(compressCodec codec, slice text) {
    char head[COMPRESS_HEAD_LEN];
    str out = STR_EMPTY;
    compressor *c;
    reason why;
    compressHeadPrint(head, codec, COMPRESS_STREAM);
    strAppend(&out, head, sizeof(head));
    assert_int_equal(compressorNew(codec, (compressChecksums){.blocks = true}, &c, &why), OK);
    assert_int_equal(compressorAdd(c, text.ptr, text.len, &out, &why), OK);
    assert_int_equal(compressorFlush(c, &out, &why), OK);
    compressorFree(c);
    return out;
}

static compressCodec anyCodec(void) {
    return compressHas(COMPRESS_LZ4) ? COMPRESS_LZ4 : COMPRESS_ZSTD;
}

static void test_compressed_bytes(void **state) {
    compressCodec codec = anyCodec(), found;
    if (!compressHas(codec)) skip();
    str text = STR_EMPTY;
    for (int i = 0; i < 2000; i++) strAppendFormat(&text, "line %d;", i);
    str packed = packedOf(codec, strSlice(&text));
    enum { BEFORE = 9 };
    begin(sliceMake(packed.ptr, BEFORE));
    for (size_t i = BEFORE; i < packed.len; i++) {
        while (send(fx.other, packed.ptr + i, 1, 0) != 1) {
            assert_int_equal(errno, EAGAIN);
            (void)loopTurn(fx.l, true); /* reading makes room */
        }
    }
    awaitBytes(text.len);
    assert_int_equal(fx.o.got.len, text.len);
    assert_memory_equal(fx.o.got.ptr, text.ptr, text.len);
    assert_true(connUnpackCodec(&fx.o.c, &found));
    assert_int_equal(found, codec);
    assert_int_equal(fx.received, packed.len - BEFORE); /* the others were counted before */
    assert_int_equal(fx.plain, text.len);
    assert_int_equal(fx.decompressed, text.len);
    close(fx.other);
    fx.other = -1;
    awaitBytes(SIZE_MAX);
    assert_int_equal(fx.o.error, -1);
    strFree(&text);
    strFree(&packed);
}

static void test_plain_bytes(void **state) {
    compressCodec found;
    const slice texts[] = {SLICE("*1\r\n$4\r\nPING\r\n"), SLICE("V is not a head"),
                           SLICE("VC neither")};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        for (size_t before = 0; before <= texts[i].len; before++) {
            begin(sliceMake(texts[i].ptr, before));
            size_t len = texts[i].len - before;
            if (len) assert_int_equal(send(fx.other, texts[i].ptr + before, len, 0), (ssize_t)len);
            awaitBytes(texts[i].len);
            assert_true(sliceEqual(strSlice(&fx.o.got), texts[i]));
            assert_true(connUnpackCodec(&fx.o.c, &found));
            assert_int_equal(found, COMPRESS_NONE);
            assert_int_equal(fx.decompressed, 0);
            closeFixture(NULL);
            openFixture(NULL);
        }
    }
}

static void test_damage(void **state) {
    compressCodec codec = anyCodec();
    if (!compressHas(codec)) skip();
    for (size_t at = 0; at < COMPRESS_HEAD_LEN + 4; at++) {
        str packed = packedOf(codec, SLICE("some text"));
        packed.ptr[at] ^= 0x40;
        begin(strSlice(&packed));
        awaitBytes(at < COMPRESS_SIGNATURE_LEN ? packed.len : SIZE_MAX);
        if (at < COMPRESS_SIGNATURE_LEN) { /* it is no head */
            assert_true(sliceEqual(strSlice(&fx.o.got), strSlice(&packed)));
        } else {
            assert_int_equal(fx.o.got.len, 0);
            assert_int_equal(fx.o.error, EBADMSG);
            assert_int_equal(fx.o.c.state, CONN_FAILED);
            assert_non_null(strstr(connErrorText(&fx.o.c), "replication stream"));
        }
        strFree(&packed);
        closeFixture(NULL);
        openFixture(NULL);
    }
}

/* Output goes as it is. */
static void test_writing(void **state) {
    char bytes[8];
    begin(SLICE(""));
    struct iovec out = {.iov_base = (char[]){"ACK"}, .iov_len = 3};
    assert_int_equal(connWritev(&fx.o.c, &out, 1), 3);
    assert_int_equal(recv(fx.other, bytes, sizeof(bytes), 0), 3);
    assert_memory_equal(bytes, "ACK", 3);
}

int test_conn_unpack(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_compressed_bytes, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_plain_bytes, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_damage, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_writing, openFixture, closeFixture),
    };
    return cmocka_run_group_tests_name("conn_unpack", tests, NULL, NULL);
}
