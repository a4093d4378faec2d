/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies: the exact bytes of every type in both protocols, as Valkey 9.1.2 sends them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "resp/resp.h"

/* What is pending must be `text`; the outbuf is empty afterwards. */
static void checkBytes(outbuf *o, const char *text, size_t len) {
    size_t pending;
    char *copy = outbufCopy(o, &pending);
    assert_int_equal(pending, len);
    assert_memory_equal(copy, text, len);
    memFree(copy);
    outbufClear(o);
}
#define WRITES(call, text) \
    do { \
        call; \
        checkBytes(&o, text, sizeof(text) - 1); \
    } while (0)

static void every_type_has_its_bytes_in_both_protocols(void **state) {
    outbuf o;
    outbufInit(&o);
    WRITES(respStatus(&o, SLICE("OK")), "+OK\r\n");
    WRITES(respError(&o, SLICE("ERR x")), "-ERR x\r\n");
    WRITES(respBulk(&o, SLICE("")), "$0\r\n\r\n");
    WRITES(respBulk(&o, sliceMake(NULL, 0)), "$0\r\n\r\n");
    WRITES(respBulk(&o, SLICE("a\0\r\n")), "$4\r\na\0\r\n\r\n");
    WRITES(respNull(&o, 2), "$-1\r\n");
    WRITES(respNull(&o, 3), "_\r\n");
    WRITES(respNullArray(&o, 2), "*-1\r\n");
    WRITES(respNullArray(&o, 3), "_\r\n");
    WRITES(respArray(&o, 0), "*0\r\n");
    WRITES(respArray(&o, 1000000), "*1000000\r\n");
    WRITES(respMap(&o, 2, 7), "*14\r\n");
    WRITES(respMap(&o, 3, 7), "%7\r\n");
    WRITES(respSet(&o, 2, 7), "*7\r\n");
    WRITES(respSet(&o, 3, 7), "~7\r\n");
    WRITES(respAttribute(&o, 2, 1), "");
    WRITES(respAttribute(&o, 3, 1), "|1\r\n");
    WRITES(respPush(&o, 2, 3), "*3\r\n");
    WRITES(respPush(&o, 3, 3), ">3\r\n");
    WRITES(respBool(&o, 2, true), ":1\r\n");
    WRITES(respBool(&o, 2, false), ":0\r\n");
    WRITES(respBool(&o, 3, true), "#t\r\n");
    WRITES(respBool(&o, 3, false), "#f\r\n");
    WRITES(respBigNumber(&o, 2, SLICE("123")), "$3\r\n123\r\n");
    WRITES(respBigNumber(&o, 3, SLICE("123")), "(123\r\n");
    WRITES(respVerbatim(&o, 2, SLICE("a\r\nb"), "txt"), "$4\r\na\r\nb\r\n");
    WRITES(respVerbatim(&o, 3, SLICE("a\r\nb"), "txt"), "=8\r\ntxt:a\r\nb\r\n");
    WRITES(respVerbatim(&o, 3, SLICE(""), "mkdX"), "=4\r\nmkd:\r\n");
}

static void a_request_is_an_array_of_bulks(void **state) {
    (void)state;
    const slice words[] = {SLICE("SET"), SLICE("key"), {"a\r\n\0b", 5}, SLICE("")};
    size_t len;
    char *bytes = respRequest(4, words, &len);
    const char expected[] = "*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n";
    assert_int_equal(len, sizeof(expected) - 1);
    assert_memory_equal(bytes, expected, len);
    memFree(bytes);
}

static void doubles_have_the_shortest_text(void **state) {
    outbuf o;
    outbufInit(&o);
    WRITES(respDouble(&o, 2, 1.5), "$3\r\n1.5\r\n");
    WRITES(respDouble(&o, 3, 1.5), ",1.5\r\n");
    WRITES(respDouble(&o, 3, 3), ",3\r\n");
    WRITES(respDouble(&o, 3, -0.0), ",-0\r\n");
    WRITES(respDouble(&o, 3, 1e20), ",1e+20\r\n");
    WRITES(respDouble(&o, 2, 1e20), "$5\r\n1e+20\r\n");
    WRITES(respDouble(&o, 3, 0.1 + 0.2), ",0.30000000000000004\r\n");
    WRITES(respDouble(&o, 3, -2.2250738585072014e-308), ",-2.2250738585072014e-308\r\n");
    WRITES(respDouble(&o, 3, INFINITY), ",inf\r\n");
    WRITES(respDouble(&o, 2, -INFINITY), "$4\r\n-inf\r\n");
    WRITES(respDouble(&o, 3, NAN), ",nan\r\n");
    WRITES(respDouble(&o, 2, NAN), "$3\r\nnan\r\n");
}

static void a_line_cannot_be_broken_from_within(void **state) {
    outbuf o;
    outbufInit(&o);
    WRITES(respError(&o, SLICE("a\r\nb")), "-a  b\r\n");
    WRITES(respError(&o, SLICE("\n")), "- \r\n");
    WRITES(respError(&o, SLICE("")), "-\r\n");
    WRITES(respStatus(&o, SLICE("a\r\n\r\nb\n")), "+a    b \r\n");
    WRITES(respBigNumber(&o, 3, SLICE("12\r\n3")), "(12  3\r\n");
    WRITES(respError(&o, SLICE("got '\0'")), "-got '\0'\r\n");
}

static void integers_and_heads_of_every_width_are_exact(void **state) {
    outbuf o;
    outbufInit(&o);
    for (int64_t n = 0; n < 20000; n++) {
        char text[64];
        int len = sprintf(text, ":%lld\r\n*%lld\r\n", (long long)n, (long long)n);
        respInteger(&o, n);
        respArray(&o, n);
        checkBytes(&o, text, (size_t)len);
    }
    int64_t n = 1;
    for (int i = 0; i < 64; i++, n = (int64_t)((uint64_t)n << 1)) {
        for (int64_t d = -1; d <= 1; d++) {
            char text[64];
            int64_t value = (int64_t)((uint64_t)n + (uint64_t)d);
            int len = sprintf(text, ":%lld\r\n", (long long)value);
            respInteger(&o, value);
            checkBytes(&o, text, (size_t)len);
            value = (int64_t)(0 - (uint64_t)value);
            len = sprintf(text, ":%lld\r\n", (long long)value);
            respInteger(&o, value);
            checkBytes(&o, text, (size_t)len);
        }
    }
    WRITES(respMap(&o, 2, INT64_MAX / 2), "*9223372036854775806\r\n");
}

static void bulks_of_every_length_are_exact(void **state) {
    static char value[70000], expected[70100];
    outbuf o;
    outbufInit(&o);
    for (size_t i = 0; i < sizeof(value); i++) value[i] = (char)(i * 31 + 7);
    for (size_t len = 0; len < sizeof(value); len += len < 300 ? 1 : 997) {
        char *exact = malloc(len ? len : 1); /* so that a read beyond is seen */
        memcpy(exact, value, len);
        int head = sprintf(expected, "$%zu\r\n", len);
        memcpy(expected + head, value, len);
        memcpy(expected + (size_t)head + len, "\r\n", 2);
        for (size_t before = 0; before < 100; before += 37) { /* at several places of a block */
            outbufAppend(&o, value, before + 1);
            outbufConsume(&o, before);
            respBulk(&o, sliceMake(exact, len));
            outbufConsume(&o, 1);
            checkBytes(&o, expected, (size_t)head + len + 2);
        }
        free(exact);
    }
    outbufPoolTrim();
}

static void a_large_blob_is_borrowed_a_small_one_copied(void **state) {
    outbuf o;
    outbufInit(&o);
    size_t size = RESP_BORROW_MIN + 10;
    blob *b = blobNew(size);
    b->len = size;
    memset(b->bytes, 'v', size);
    respBulkBlob(&o, b, 5, RESP_BORROW_MIN - 1);
    assert_int_equal(b->refs, 1);
    char *expected = malloc(size + 40);
    int head = sprintf(expected, "$%d\r\n", RESP_BORROW_MIN - 1);
    memset(expected + head, 'v', RESP_BORROW_MIN - 1);
    memcpy(expected + head + RESP_BORROW_MIN - 1, "\r\n", 2);
    checkBytes(&o, expected, (size_t)head + RESP_BORROW_MIN + 1);
    respBulkBlob(&o, b, 5, RESP_BORROW_MIN);
    assert_int_equal(b->refs, 2);
    head = sprintf(expected, "$%d\r\n", RESP_BORROW_MIN);
    memset(expected + head, 'v', RESP_BORROW_MIN);
    memcpy(expected + head + RESP_BORROW_MIN, "\r\n", 2);
    checkBytes(&o, expected, (size_t)head + RESP_BORROW_MIN + 2);
    assert_int_equal(b->refs, 1);
    free(expected);
    blobRelease(b);
}

/* Writes `count` items twice: with the count known, and with a deferred head. */
static void checkDeferred(char kind, int proto, int count, size_t item_len, size_t before) {
    static char item[5000];
    memset(item, 'i', sizeof(item));
    outbuf known, later;
    outbufInit(&known);
    outbufInit(&later);
    for (size_t i = 0; i < before; i++) outbufAppend(&known, "b", 1);
    for (size_t i = 0; i < before; i++) outbufAppend(&later, "b", 1);
    switch (kind) {
    case '*': respArray(&known, count); break;
    case '%': respMap(&known, proto, count); break;
    case '~': respSet(&known, proto, count); break;
    case '>': respPush(&known, proto, count); break;
    default: respAttribute(&known, proto, count); break;
    }
    respDeferred mark = respDeferBegin(&later);
    for (int i = 0; i < count; i++) {
        respBulk(&known, sliceMake(item, item_len));
        respBulk(&later, sliceMake(item, item_len));
    }
    respDeferEnd(&later, mark, kind, proto, count);
    outbufAppend(&known, "end", 3);
    outbufAppend(&later, "end", 3);
    size_t len;
    char *expected = outbufCopy(&known, &len);
    assert_int_equal(outbufPending(&later), len);
    checkBytes(&later, expected, len);
    memFree(expected);
    outbufClear(&known);
    outbufClear(&later);
}

static void a_count_known_later_gives_the_same_bytes(void **state) {
    static const char kinds[] = "*%~>|";
    for (const char *kind = kinds; *kind; kind++) {
        for (int proto = 2; proto <= 3; proto++) {
            for (int count = 0; count < 130; count += count < 12 ? 1 : 29) {
                for (size_t before = 0; before < 200; before += 11) {
                    checkDeferred(*kind, proto, count, (size_t)count % 40, before);
                }
                checkDeferred(*kind, proto, count, 4000, OUTBLOCK_SIZE - 50);
            }
        }
    }
    checkDeferred('*', 3, 100000, 1, 0);
    outbufPoolTrim();
}

static void counts_known_later_nest(void **state) {
    outbuf o;
    outbufInit(&o);
    for (int turn = 0; turn < 3; turn++) {
        outbufAppend(&o, "<", 1);
        respDeferred outer = respDeferBegin(&o);
        respDeferred first = respDeferBegin(&o);
        respInteger(&o, 1);
        respDeferEnd(&o, first, '~', 3, 1);
        respDeferred second = respDeferBegin(&o);
        respDeferred inner = respDeferBegin(&o);
        respDeferEnd(&o, inner, '*', 3, 0);
        respDeferEnd(&o, second, '%', 2, 12);
        outmark mark = outbufMark(&o);
        respInteger(&o, 12345);
        outbufCutTo(&o, mark);
        respDeferEnd(&o, outer, '*', 3, 2);
        outbufAppend(&o, ">", 1);
        static const char text[] = "<*2\r\n~1\r\n:1\r\n*24\r\n*0\r\n>";
        checkBytes(&o, text, sizeof(text) - 1);
    }
    outbufPoolTrim();
}

static void a_null_sink_takes_every_type(void **state) {
    outbuf o;
    outbufInit(&o);
    outbufSetNullSink(&o, true);
    blob *b = blobNew(RESP_BORROW_MIN);
    b->len = RESP_BORROW_MIN;
    respStatus(&o, SLICE("OK"));
    respError(&o, SLICE("ERR a\nb"));
    respInteger(&o, 1);
    respInteger(&o, -1234567);
    respBulk(&o, SLICE("abc"));
    respBulkBlob(&o, b, 0, b->len);
    respNull(&o, 2);
    respNullArray(&o, 3);
    respMap(&o, 3, 2);
    respDouble(&o, 2, 1.5);
    respBool(&o, 3, true);
    respBigNumber(&o, 3, SLICE("1"));
    respVerbatim(&o, 3, SLICE("x"), "txt");
    respDeferred mark = respDeferBegin(&o);
    respPush(&o, 3, 1);
    respDeferEnd(&o, mark, '*', 3, 1);
    assert_int_equal(b->refs, 1);
    assert_int_equal(outbufPending(&o), 0);
    assert_int_equal(outbufMemory(&o), 0);
    outbufSetNullSink(&o, false);
    WRITES(respInteger(&o, 2), ":2\r\n");
    blobRelease(b);
}

int test_reply_write(void);
int test_reply_write(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_bytes_in_both_protocols),
        cmocka_unit_test(a_request_is_an_array_of_bulks),
        cmocka_unit_test(doubles_have_the_shortest_text),
        cmocka_unit_test(a_line_cannot_be_broken_from_within),
        cmocka_unit_test(integers_and_heads_of_every_width_are_exact),
        cmocka_unit_test(bulks_of_every_length_are_exact),
        cmocka_unit_test(a_large_blob_is_borrowed_a_small_one_copied),
        cmocka_unit_test(a_count_known_later_gives_the_same_bytes),
        cmocka_unit_test(counts_known_later_nest),
        cmocka_unit_test(a_null_sink_takes_every_type),
    };
    return cmocka_run_group_tests_name("reply_write", tests, NULL, NULL);
}
