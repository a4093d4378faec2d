/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests: what is accepted and refused, the same for every way the bytes may be split; memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "feed.h"

#define ERR "ERR Protocol error: "
#define PING "*1\r\n$4\r\nPING\r\n"
#define PONG "1:4:PING,;"

/* Input, and the transcript it must give; all measured on Valkey 9.1.2. */
typedef struct sample {
    const char *bytes;
    size_t len;
    const char *log;
    size_t log_len;
} sample;
#define SAMPLE(bytes, log) \
    { bytes, sizeof(bytes) - 1, log, sizeof(log) - 1 }

static const sample arrays[] = {
    SAMPLE("", ""),
    SAMPLE(PING, PONG),
    SAMPLE(PING PING PING, PONG PONG PONG),
    SAMPLE("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n", "3:3:SET,1:k,5:hello,;"),
    SAMPLE("*2\r\n$0\r\n\r\n$12\r\nabcdefghijkl\r\n", "2:0:,12:abcdefghijkl,;"),
    SAMPLE("*1\r\n$4\r\n\r\n\r\n\r\n" PING, "1:4:\r\n\r\n,;" PONG),
    SAMPLE("*1\r\n$1\r\n\0\r\n", "1:1:\0,;"),
    /* nothing to run */
    SAMPLE("*0\r\n*-1\r\n*-2147483649\r\n*-9223372036854775808\r\n\r\n\n" PING, PONG),
    /* incomplete */
    SAMPLE("*", ""),
    SAMPLE("*1", ""),
    SAMPLE("*1\r", ""),
    SAMPLE(PING "*1\r\n", PONG),
    SAMPLE("*1\r\n:", ""),
    SAMPLE("*1\r\n:4\r", ""),
    SAMPLE("*1\r\n$4\r\nPIN", ""),
    SAMPLE("*1\r\n$4\r\nPINGx", ""),
    SAMPLE("*1\r\n$4\r\nPING\r", ""),
    SAMPLE("*x\r", ""),
    SAMPLE("*1\n$4\nPING\n", ""),
    SAMPLE("*2147483647\r\n", ""),
    SAMPLE("*2147483647\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", ""),
    SAMPLE("*1\r\n$536870912\r\n", ""),
    SAMPLE("*1\r\n$536870912\r\nbegin", ""),
    /* counts */
    SAMPLE("*01\r\n", ERR "invalid multibulk length"),
    SAMPLE("*00\r\n", ERR "invalid multibulk length"),
    SAMPLE("*+1\r\n", ERR "invalid multibulk length"),
    SAMPLE("* 1\r\n", ERR "invalid multibulk length"),
    SAMPLE("*1 \r\n", ERR "invalid multibulk length"),
    SAMPLE("*1x\r\n", ERR "invalid multibulk length"),
    SAMPLE("*\r\n", ERR "invalid multibulk length"),
    SAMPLE("*-\r\n", ERR "invalid multibulk length"),
    SAMPLE("*-0\r\n", ERR "invalid multibulk length"),
    SAMPLE("*-01\r\n", ERR "invalid multibulk length"),
    SAMPLE("*\n1\r\n", ERR "invalid multibulk length"),
    SAMPLE("*1\0\r\n", ERR "invalid multibulk length"),
    SAMPLE("*1:\r\n", ERR "invalid multibulk length"),
    SAMPLE("*1/\r\n", ERR "invalid multibulk length"),
    SAMPLE("*2147483648\r\n", ERR "invalid multibulk length"),
    SAMPLE("*3000000000\r\n", ERR "invalid multibulk length"),
    SAMPLE("*9223372036854775808\r\n", ERR "invalid multibulk length"),
    SAMPLE("*-9223372036854775809\r\n", ERR "invalid multibulk length"),
    SAMPLE("*99999999999999999999999\r\n", ERR "invalid multibulk length"),
    SAMPLE("*1\rx", ERR "invalid CRLF in request"),
    SAMPLE("*x\rx", ERR "invalid CRLF in request"),
    SAMPLE("*0\rx" PING, ERR "invalid CRLF in request"),
    SAMPLE("*1\r$4\r\nPING\r\n", ERR "invalid CRLF in request"),
    SAMPLE("*1\r\r\n$4\r\nPING\r\n", ERR "invalid CRLF in request"),
    /* lengths */
    SAMPLE("*1\r\n$04\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$00\r\n\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$004\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$+4\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$ 4\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$4x\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$\n4\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$4\0\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$1:3\r\nPING\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$-1\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$-0\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$-10\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$536870913\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$2000000000\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$9223372036854775807\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$99999999999999999999999\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$4\rPPING\r\n", ERR "invalid CRLF in request"),
    SAMPLE("*1\r\n$x\rx", ERR "invalid CRLF in request"),
    SAMPLE("*1\r\n$4\r\nPINGxx" PING, ERR "invalid CRLF in request"),
    SAMPLE("*1\r\n$4\r\nPING\rx" PING, ERR "invalid CRLF in request"),
    SAMPLE("*1\r\n$4\r\nPINGx\n", ERR "invalid CRLF in request"),
    SAMPLE("*1\r\n$3\r\nxAA\n\n", ERR "invalid CRLF in request"),
    SAMPLE("*1\r\n$0\r\nxx", ERR "invalid CRLF in request"),
    /* not a bulk */
    SAMPLE("*1\r\n:4\r\n", ERR "expected '$', got ':'"),
    SAMPLE("*1\r\n:4\rx", ERR "expected '$', got ':'"),
    SAMPLE("*1\r\nPING\r\n", ERR "expected '$', got 'P'"),
    SAMPLE("*1\r\n\r\n", ERR "expected '$', got ' '"),
    SAMPLE("*1\r\n\n\r\n", ERR "expected '$', got ' '"),
    SAMPLE("*1\r\n\0\r\n", ERR "expected '$', got '\0'"),
    SAMPLE("*1\r\n\xff\r\n", ERR "expected '$', got '\xff'"),
    SAMPLE("*2\r\n$4\r\nPING\r\n*1\r\n", ERR "expected '$', got '*'"),
    SAMPLE("*2\r\n$4\r\nPING\r\n" PING, ERR "expected '$', got '*'"),
    /* the error follows the requests before it */
    SAMPLE(PING PING "*x\r\n" PING, PONG PONG ERR "invalid multibulk length"),
    SAMPLE(PING "*2\r\n$1\r\na\r\n$x\r\n", PONG ERR "invalid bulk length"),
};

static const sample inlines[] = {
    SAMPLE("PING\r\n", PONG),
    SAMPLE("PING\n", PONG),
    SAMPLE("PING", ""),
    SAMPLE("PING\r", ""),
    SAMPLE(" \r\n\t\n\v\n\v \n\r\r\n" PING, PONG),
    SAMPLE("\r" PING, "1:2:*1,;1:2:$4,;" PONG),
    SAMPLE(" *1\r\n", "1:2:*1,;"),
    SAMPLE("+PING\r\n$4\r\nPING\r\n", "1:5:+PING,;1:2:$4,;" PONG),
    SAMPLE(PING "GET k\r\n" PING, PONG "2:3:GET,1:k,;" PONG),
    SAMPLE("   SET  k\tv  \r\n", "3:3:SET,1:k,1:v,;"),
    SAMPLE("ECHO\ra\n", "2:4:ECHO,1:a,;"),
    SAMPLE("ECHO a\r\r\n", "2:4:ECHO,1:a,;"),
    SAMPLE("ECHO a\vb\n", "2:4:ECHO,3:a\vb,;"),
    SAMPLE("ECHO\va\n", "1:6:ECHO\va,;"),
    SAMPLE("\vECHO \va \f b\n", "3:4:ECHO,1:a,1:b,;"),
    SAMPLE("ECHO a\\nb\n", "2:4:ECHO,4:a\\nb,;"),
    SAMPLE("ECHO \x85\xa0\n", "2:4:ECHO,2:\x85\xa0,;"),
    /* quotes */
    SAMPLE("ECHO \"a b\"\n", "2:4:ECHO,3:a b,;"),
    SAMPLE("ECHO \"\"\n", "2:4:ECHO,0:,;"),
    SAMPLE("ECHO ''\n", "2:4:ECHO,0:,;"),
    SAMPLE("\"\"\n", "1:0:,;"),
    SAMPLE("'' \n", "1:0:,;"),
    SAMPLE("\"PING\"\n", PONG),
    SAMPLE("PI\"NG\"\n", PONG),
    SAMPLE("PI'NG'\n", PONG),
    SAMPLE("ECHO \"a\"b\n", "2:4:ECHO,2:ab,;"),
    SAMPLE("ECHO 'a'b\n", "2:4:ECHO,2:ab,;"),
    SAMPLE("ECHO \"a\"'b'\"c\"\n", "2:4:ECHO,3:abc,;"),
    SAMPLE("ECHO \"a\"\v\"b\"\n", "2:4:ECHO,3:a\vb,;"),
    SAMPLE("ECHO \"a\" \"b\"\n", "3:4:ECHO,1:a,1:b,;"),
    SAMPLE("ECHO \"a\\x41\\n\\r\\t\\a\\b\\\\\\\"b\"\n", "2:4:ECHO,10:aA\n\r\t\a\b\\\"b,;"),
    SAMPLE("ECHO \"\\x00\"\n", "2:4:ECHO,1:\0,;"),
    SAMPLE("ECHO \"\\xfF\"\n", "2:4:ECHO,1:\xff,;"),
    SAMPLE("ECHO \"\\x4g\"\n", "2:4:ECHO,3:x4g,;"),
    SAMPLE("ECHO \"\\x4\"\n", "2:4:ECHO,2:x4,;"),
    SAMPLE("ECHO \"\\x\"\n", "2:4:ECHO,1:x,;"),
    SAMPLE("ECHO \"\\X41\"\n", "2:4:ECHO,3:X41,;"),
    SAMPLE("ECHO \"\\q\"\n", "2:4:ECHO,1:q,;"),
    SAMPLE("ECHO \"a\rb\"\n", "2:4:ECHO,3:a\rb,;"),
    SAMPLE("ECHO 'a\\'b'\n", "2:4:ECHO,3:a'b,;"),
    SAMPLE("ECHO 'a\\nb'\n", "2:4:ECHO,4:a\\nb,;"),
    SAMPLE("ECHO '\\\\'\n", "2:4:ECHO,2:\\\\,;"),
    /* a backslash before the quote that ends the line */
    SAMPLE("ECHO \"\\\"\n", "2:4:ECHO,1:\\,;"),
    SAMPLE("ECHO \"a\\\"\r\n", "2:4:ECHO,2:a\\,;"),
    SAMPLE("ECHO \"a\\\\\\\"\n", "2:4:ECHO,3:a\\\\,;"),
    SAMPLE("ECHO 'a\\'\n", "2:4:ECHO,2:a\\,;"),
    SAMPLE("ECHO \"a\\\"\"\n", "2:4:ECHO,2:a\",;"),
    SAMPLE("ECHO \"a\\\" b\"\n", "2:4:ECHO,4:a\" b,;"),
    SAMPLE("ECHO \"a\\\"b\" c\n", "3:4:ECHO,3:a\"b,1:c,;"),
    SAMPLE("ECHO \"a\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO 'a\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO \"a\\\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO 'a\\\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO \"a\r\n\"\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO \"a\\\"  \n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO \"a\\\"\r\r\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO \"a\\\"b\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO 'a\\' b\n", ERR "unbalanced quotes in request"),
    SAMPLE("ECHO \"\\x4\"1\"\n", ERR "unbalanced quotes in request"),
    SAMPLE("PI\"NG\n" PING, ERR "unbalanced quotes in request"),
    SAMPLE(PING "\"\r\n" PING, PONG ERR "unbalanced quotes in request"),
    /* a NUL hides the line's end, and all that follows */
    SAMPLE("ECHO a\0b\nPING\n" PING, ""),
    SAMPLE("PING\n\0\nPING\n", PONG),
    SAMPLE("ECHO \"abc\0\n", ""),
};

static const requestLimits strangers = {512 * 1024 * 1024, INT32_MAX, false, false};
static const sample unauthenticated[] = {
    SAMPLE("*11\r\n", ERR "unauthenticated multibulk length"),
    SAMPLE("*1000\r\n", ERR "unauthenticated multibulk length"),
    SAMPLE("*2147483647\r\n", ERR "unauthenticated multibulk length"),
    SAMPLE("*2147483648\r\n", ERR "invalid multibulk length"),
    SAMPLE("*x\r\n", ERR "invalid multibulk length"),
    SAMPLE("*11\rx", ERR "invalid CRLF in request"),
    SAMPLE("*10\r\n", ""),
    SAMPLE("*-1\r\n*0\r\n" PING, PONG),
    SAMPLE("*1\r\n$16384\r\n", ""),
    SAMPLE("*1\r\n$16385\r\n", ERR "unauthenticated bulk length"),
    SAMPLE("*1\r\n$1000000\r\n", ERR "unauthenticated bulk length"),
    SAMPLE("*1\r\n$536870912\r\n", ERR "unauthenticated bulk length"),
    SAMPLE("*1\r\n$536870913\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n$-1\r\n", ERR "invalid bulk length"),
    SAMPLE("*1\r\n:16385\r\n", ERR "expected '$', got ':'"),
    SAMPLE("*1\r\n$16385\rx", ERR "invalid CRLF in request"),
    SAMPLE("*10\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n"
           "$1\r\n6\r\n$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$1\r\n0\r\n",
           "10:1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8,1:9,1:0,;"),
    SAMPLE("*11\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n"
           "$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$1\r\n0\r\n$1\r\n1\r\n",
           ERR "unauthenticated multibulk length"),
    SAMPLE("a b c d e f g h i j k l\n", "12:1:a,1:b,1:c,1:d,1:e,1:f,1:g,1:h,1:i,1:j,1:k,1:l,;"),
};

static void checkLog(const feed *f, const char *log, size_t len) {
    assert_int_equal(f->log_len, len);
    if (len) assert_memory_equal(f->log, log, len);
}

/* All bytes in one call, split at every position, byte by byte, and in random pieces with batches
 * returned. */
static void checkSample(const requestLimits *limits, const char *bytes, size_t len, const char *log,
                        size_t log_len) {
    feed f;
    for (size_t cut = 0; cut <= len; cut++) {
        feedInit(&f, limits, cut);
        feedBytes(&f, bytes, cut);
        feedBytes(&f, bytes + cut, len - cut);
        checkLog(&f, log, log_len);
        feedClear(&f);
    }
    for (size_t seed = 1; seed <= 30; seed++) {
        feedInit(&f, limits, seed);
        f.random_batches = seed > 2;
        feedPieces(&f, bytes, len, seed);
        checkLog(&f, log, log_len);
        feedClear(&f);
    }
}

static void checkSamples(const requestLimits *limits, const sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const sample *s = &samples[i];
        checkSample(limits, s->bytes, s->len, s->log, s->log_len);
    }
}

static void arrays_are_accepted_and_refused_however_they_are_split(void **state) {
    checkSamples(&FEED_LIMITS, arrays, sizeof(arrays) / sizeof(arrays[0]));
}

static void inline_lines_are_accepted_and_refused_however_they_are_split(void **state) {
    checkSamples(&FEED_LIMITS, inlines, sizeof(inlines) / sizeof(inlines[0]));
}

static void unauthenticated_clients_have_limits_of_their_own(void **state) {
    checkSamples(&strangers, unauthenticated, sizeof(unauthenticated) / sizeof(unauthenticated[0]));
}

static void unauthenticated_clients_may_send_16384_bytes(void **state) {
    static char text[20000];
    for (size_t n = 16384; n <= 16385; n++) {
        int head = sprintf(text, "*1\r\n$%zu\r\n", n);
        memset(text + head, 'v', n);
        memcpy(text + (size_t)head + n, "\r\n", 2);
        for (size_t piece = 999; piece < 20000; piece += 19000) {
            feed f;
            feedInit(&f, &strangers, n);
            feedPieces(&f, text, (size_t)head + n + 2, piece);
            assert_int_equal(f.requests, n == 16384);
            assert_int_equal(f.bad, n == 16385);
            if (f.bad) checkLog(&f, ERR "unauthenticated bulk length", strlen(ERR) + 27);
            feedClear(&f);
        }
    }
}

static void every_length_of_a_bulk_is_read_exactly(void **state) {
    static char text[1100000], log[1100000];
    static const size_t sizes[] = {0,     1,     9,      10,     11,     99,     100,
                                   101,   255,   999,    1000,   1001,   9999,   10000,
                                   12345, 16383, 16384,  16385,  20480,  40000,  65535,
                                   65536, 99999, 100000, 123456, 999999, 1000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i];
        int head = sprintf(text, "*2\r\n$1\r\nk\r\n$%zu\r\n", n);
        memset(text + head, 'v', n);
        memcpy(text + head + n, "\r\n" PING, 16);
        size_t len = (size_t)head + n + 16;
        int log_head = sprintf(log, "2:1:k,%zu:", n);
        memset(log + log_head, 'v', n);
        memcpy(log + log_head + n, ",;" PONG, 12);
        size_t log_len = (size_t)log_head + n + 12;
        size_t pieces[] = {len, 7, 4096, 16384, 20000, 70000};
        for (size_t p = 0; p < 6; p++) {
            if (pieces[p] < 100 && n > 50000) continue;
            feed f;
            feedInit(&f, &FEED_LIMITS, p);
            f.random_batches = p > 2;
            feedPieces(&f, text, len, pieces[p]);
            checkLog(&f, log, log_len);
            feedClear(&f);
        }
    }
}

static void a_large_argument_of_a_trusted_sender_gets_its_block_at_once(void **state) {
    enum { SIZE = 1000000 };
    requestLimits limits = FEED_LIMITS;
    requestBatch batch;
    requestError error;
    for (int trusted = 0; trusted < 2; trusted++) {
        requestParser p = {NULL};
        char buf[128 + REQUEST_READ_SLACK];
        size_t pos = 0, room, len = (size_t)sprintf(buf, "*2\r\n$4\r\nECHO\r\n$%d\r\nv", SIZE);
        requestBatchInit(&batch);
        limits.trusted = trusted;
        assert_int_equal(requestParse(&p, buf, &len, &pos, &limits, &batch, 64, &error),
                         REQUEST_NEED_MORE);
        assert_non_null(requestParserTail(&p, &room));
        assert_int_equal(requestParserMissing(&p), SIZE - 1);
        assert_int_equal(room == SIZE - 1, trusted);
        requestParserClear(&p);
        requestBatchClear(&batch);
    }
}

static void a_trusted_sender_may_have_a_greater_limit(void **state) {
    requestLimits limits = FEED_LIMITS;
    limits.bulk_max = 1000;
    for (int trusted = 0; trusted < 2; trusted++) {
        requestParser p = {NULL};
        requestBatch batch;
        requestError error;
        char buf[128 + REQUEST_READ_SLACK];
        size_t pos = 0, room = 0,
               len = (size_t)sprintf(buf, "*2\r\n$4\r\nECHO\r\n$%d\r\nv", 1 << 30);
        requestBatchInit(&batch);
        limits.trusted = trusted;
        assert_int_equal(requestParse(&p, buf, &len, &pos, &limits, &batch, 64, &error),
                         trusted ? REQUEST_NEED_MORE : REQUEST_BAD);
        if (trusted) assert_non_null(requestParserTail(&p, &room));
        assert_true(room < 1 << 20); /* a block of the announced size is not allocated */
        requestParserClear(&p);
        requestBatchClear(&batch);
    }
}

static void proto_max_bulk_len_and_the_count_limit_are_the_callers(void **state) {
    static const requestLimits tight = {5, 2, true, false};
    static const sample samples[] = {
        SAMPLE("*2\r\n$5\r\n12345\r\n$0\r\n\r\n", "2:5:12345,0:,;"),
        SAMPLE("*1\r\n$6\r\n", ERR "invalid bulk length"),
        SAMPLE("*1\r\n$10\r\n", ERR "invalid bulk length"),
        SAMPLE("*3\r\n", ERR "invalid multibulk length"),
        /* complete ones are no better */
        SAMPLE(PING "*1\r\n$6\r\n123456\r\n", PONG ERR "invalid bulk length"),
        SAMPLE("*1\r\n$11\r\n12345678901\r\n", ERR "invalid bulk length"),
        SAMPLE("*3\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n", ERR "invalid multibulk length"),
    };
    checkSamples(&tight, samples, sizeof(samples) / sizeof(samples[0]));
    static const requestLimits tight_strangers = {5, 2, false, false};
    checkSamples(&tight_strangers, samples, sizeof(samples) / sizeof(samples[0]));
}

#define checkFilled(lead, fill, count, tail, log) \
    checkFilledBy(lead, sizeof(lead) - 1, fill, count, tail, log)
/* Feeds `lead`, `count` times `fill`, and `tail`. */
static void checkFilledBy(const char *lead, size_t lead_len, char fill, size_t count,
                          const char *tail, const char *log) {
    static char text[200000];
    size_t tail_len = strlen(tail);
    memcpy(text, lead, lead_len);
    memset(text + lead_len, fill, count);
    memcpy(text + lead_len + count, tail, tail_len);
    size_t len = lead_len + count + tail_len;
    for (size_t piece = 501; piece <= 100501; piece += 50000) {
        if (tail_len > 0 && piece < len) continue; /* where the limit bites depends on the pieces */
        feed f;
        feedInit(&f, &FEED_LIMITS, piece);
        feedPieces(&f, text, len, piece);
        checkLog(&f, log, strlen(log));
        feedClear(&f);
    }
}

static void lines_without_an_end_are_refused_beyond_64_kib(void **state) {
    checkFilled("", 'a', 65536, "", "");
    checkFilled("", 'a', 65537, "", ERR "too big inline request");
    checkFilled("PING\n", 'a', 65537, "", PONG ERR "too big inline request");
    checkFilled("", 0, 65536, "", "");
    checkFilled("\n", 0, 65537, "", ERR "too big inline request");
    checkFilled("a\0", '\n', 65534, "", "");
    checkFilled("a\0", '\n', 65535, "", ERR "too big inline request");
    checkFilled("*", '1', 65535, "", "");
    checkFilled("*", '1', 65536, "", ERR "too big mbulk count string");
    checkFilled("*1\r\n$", '1', 65535, "", "");
    checkFilled("*1\r\n$", '1', 65536, "", ERR "too big bulk count string");
    checkFilled("*1\r\n", 'x', 65536, "", "");
    checkFilled("*1\r\n", 'x', 65537, "", ERR "too big bulk count string");
    checkFilled("*2\r\n$4\r\nECHO\r\n$", '1', 65536, "", ERR "too big bulk count string");
    checkFilled("*", '1', 70000, "\r\n", ERR "invalid multibulk length");
    checkFilled("*1\r\n$", '1', 70000, "\r\n", ERR "invalid bulk length");
}

static void a_long_inline_line_that_comes_whole_is_accepted(void **state) {
    static char text[70002];
    memset(text, 'a', 70000);
    memcpy(text + 70000, "\r\n", 2);
    feed f;
    feedInit(&f, &FEED_LIMITS, 1);
    feedBytes(&f, text, sizeof(text));
    assert_int_equal(f.requests, 1);
    assert_int_equal(f.log_len, 70000 + 10);
    feedClear(&f);
}

/* A request of `count` arguments of one byte. */
static char *manyArgs(size_t count, size_t *len) {
    char *text = malloc(count * 7 + 32 + REQUEST_READ_SLACK);
    int head = sprintf(text, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) memcpy(text + head + i * 7, "$1\r\nx\r\n", 7);
    *len = (size_t)head + count * 7;
    return text;
}

/* Parses a text that arrives in place, `piece` bytes at a time; returns the most memory it took. */
static size_t parseInPlace(char *text, size_t len, size_t piece, int argc) {
    static requestBatch batch;
    requestParser p = {NULL};
    requestError error;
    size_t pos = 0, have = 0, memory_max = 0;
    while (have < len) {
        have = have + piece < len ? have + piece : len;
        requestStatus st = requestParse(&p, text, &have, &pos, &FEED_LIMITS, &batch, 1, &error);
        assert_int_equal(st, REQUEST_NEED_MORE);
        assert_int_equal(batch.count, have == len);
        size_t memory = requestParserMemory(&p);
        if (memory > memory_max) memory_max = memory;
    }
    assert_int_equal(batch.items[0].argc, argc);
    assert_int_equal(batch.items[0].argv[argc - 1].len, 1);
    assert_int_equal(pos, len);
    requestBatchClear(&batch);
    assert_null(p.partial);
    return memory_max;
}

static void a_million_arguments_arrive_in_pieces(void **state) {
    size_t len, count = 1000000;
    char *text = manyArgs(count, &len);
    size_t memory = parseInPlace(text, len, 16384, (int)count);
    /* At most twice what the arguments that came need. */
    assert_in_range(memory, count * sizeof(slice) / 2, 2 * count * sizeof(slice) + 1024);
    free(text);
}

/* Parsed from its beginning for each byte, this would take hours. */
static void a_hundred_thousand_arguments_arrive_byte_by_byte(void **state) {
    size_t len;
    char *text = manyArgs(100000, &len);
    parseInPlace(text, len, 1, 100000);
    free(text);
}

static void an_announced_length_allocates_nothing_before_bytes_arrive(void **state) {
    static const char *const announced[] = {
        "*1\r\n$536870912\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n", "*2147483647\r\n",
        "*2147483647\r\n$3\r\nDEL\r\n", "*2147483647\r\n$3\r\nDEL\r\n$536870912\r\n"};
    for (size_t i = 0; i < sizeof(announced) / sizeof(announced[0]); i++) {
        feed f;
        feedInit(&f, &FEED_LIMITS, i);
        feedBytes(&f, announced[i], strlen(announced[i]));
        assert_int_equal(f.requests, 0);
        assert_true(requestParserMemory(&f.parser) < 4096);
        feedClear(&f);
    }
}

static void a_large_argument_is_charged_for_what_has_arrived(void **state) {
    static char piece[5000];
    feed f;
    feedInit(&f, &FEED_LIMITS, 1);
    size_t room, arrived = 0, announced = 100 * 1000 * 1000;
    static const char head[] = "*2\r\n$1\r\nk\r\n$100000000\r\n";
    feedBytes(&f, head, sizeof(head) - 1);
    assert_int_equal(requestParserMissing(&f.parser), announced);
    while (arrived < 3 * 1000 * 1000) {
        char *tail = requestParserTail(&f.parser, &room);
        assert_non_null(tail);
        size_t n = room < sizeof(piece) ? room : sizeof(piece);
        memcpy(tail, piece, n);
        requestParserCommit(&f.parser, n);
        arrived += n;
        assert_int_equal(requestParserMissing(&f.parser), announced - arrived);
        size_t memory = requestParserMemory(&f.parser);
        assert_true(memory >= arrived);
        assert_true(memory <= (arrived < 65536 ? 16 : 2) * arrived + 2 * 16384 + 1024 * 1024);
    }
    feedClear(&f);
}

static void full_blocks_are_charged_too(void **state) {
    enum { SIZE = 20000, COUNT = 20 };
    static char value[SIZE];
    feed f;
    feedInit(&f, &FEED_LIMITS, 1);
    char text[64];
    size_t len = (size_t)sprintf(text, "*%d\r\n", COUNT + 1), room;
    for (size_t i = 1; i <= COUNT; i++) {
        len += (size_t)sprintf(text + len, "$%d\r\n", SIZE);
        feedBytes(&f, text, len);
        while (requestParserMissing(&f.parser) > 0) {
            char *tail = requestParserTail(&f.parser, &room);
            memcpy(tail, value, room);
            requestParserCommit(&f.parser, room);
        }
        assert_in_range(requestParserMemory(&f.parser), i * SIZE, i * (SIZE + SIZE / 2) + 4096);
        memcpy(text, "\r\n", 2);
        len = 2;
    }
    feedClear(&f);
}

static void a_large_argument_is_read_into_a_block_of_its_own(void **state) {
    enum { SIZE = 200000 };
    static char text[SIZE + 100], again[64];
    int head = sprintf(text, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", SIZE);
    memset(text + head, 'v', SIZE);
    memcpy(text + head + SIZE, "\r\n" PING, 16);
    requestParser p = {NULL};
    static requestBatch batch;
    requestError error;
    size_t pos = 0, len = (size_t)head + 50000, room;
    char *buf = malloc(len + REQUEST_READ_SLACK);
    memcpy(buf, text, len);
    assert_int_equal(requestParse(&p, buf, &len, &pos, &FEED_LIMITS, &batch, 64, &error),
                     REQUEST_NEED_MORE);
    /* The buffer keeps the head alone. */
    assert_int_equal(len, head);
    assert_int_equal(pos, 0);
    while (requestParserMissing(&p) > 0) {
        char *tail = requestParserTail(&p, &room);
        assert_in_range(room, 1, requestParserMissing(&p));
        memset(tail, 'v', room);
        requestParserCommit(&p, room);
    }
    assert_null(requestParserTail(&p, &room));
    assert_int_equal(room, 0);
    memcpy(again, buf, len);
    memcpy(again + len, "\r\n" PING, 16);
    len += 16;
    assert_int_equal(requestParse(&p, again, &len, &pos, &FEED_LIMITS, &batch, 64, &error),
                     REQUEST_NEED_MORE);
    assert_int_equal(batch.count, 2);
    assert_int_equal(pos, len);
    const request *r = &batch.items[0];
    assert_int_equal(r->argc, 3);
    assert_int_equal(r->large_count, 1);
    assert_int_equal(r->large[0].arg, 2);
    assert_int_equal(r->large[0].gap_at, head);
    assert_int_equal(r->raw.len, head + 2);
    assert_int_equal(r->raw_end, head + 2);
    /* Users of the block retain it; every announced block is used. */
    blob *taken = blobRetain(r->large[0].bytes);
    assert_int_equal(taken->len, SIZE);
    assert_in_range(taken->cap, SIZE, SIZE + SIZE / 4);
    assert_int_equal(taken->bytes[SIZE], 0);
    assert_ptr_equal(r->argv[2].ptr, taken->bytes);
    requestBatchClear(&batch);
    assert_int_equal(taken->refs, 1);
    blobRelease(taken);
    requestParserClear(&p);
    free(buf);
}

static void a_large_argument_stays_in_the_buffer_after_requests_not_run(void **state) {
    static char text[40000];
    int head = sprintf(text, PING "*2\r\n$3\r\nGET\r\n$100000\r\n");
    memset(text + head, 'v', 20000);
    requestParser p = {NULL};
    static requestBatch batch;
    requestError error;
    size_t pos = 0, whole = (size_t)head + 20000, len = whole;
    assert_int_equal(requestParse(&p, text, &len, &pos, &FEED_LIMITS, &batch, 64, &error),
                     REQUEST_NEED_MORE);
    assert_int_equal(batch.count, 1);
    assert_int_equal(len, whole);
    assert_null(p.partial);
    requestBatchClear(&batch);
    assert_int_equal(requestParse(&p, text, &len, &pos, &FEED_LIMITS, &batch, 64, &error),
                     REQUEST_NEED_MORE);
    assert_int_equal(len, head);
    assert_int_equal(requestParserMissing(&p), 80000);
    requestParserClear(&p);
    assert_int_equal(requestParserMemory(&p), 0);
}

static void one_batch_contains_requests_of_many_sessions(void **state) {
    static requestBatch batch;
    static char bufs[10][64];
    requestParser p[10] = {{NULL}};
    requestError error;
    for (int i = 0; i < 10; i++) {
        size_t len = (size_t)sprintf(bufs[i], "*2\r\n$3\r\nGET\r\n$1\r\n%d\r\n", i), pos = 0;
        requestStatus st =
            requestParse(&p[i], bufs[i], &len, &pos, &FEED_LIMITS, &batch, 64, &error);
        if (st == REQUEST_BATCH_FULL) { /* a tiny pool */
            requestBatchClear(&batch);
            st = requestParse(&p[i], bufs[i], &len, &pos, &FEED_LIMITS, &batch, 64, &error);
        }
        assert_int_equal(st, REQUEST_NEED_MORE);
        assert_int_equal(pos, len);
        const request *r = &batch.items[batch.count - 1];
        assert_int_equal(r->argv[1].ptr[0], '0' + i);
        assert_int_equal(r->raw.len, len);
    }
    requestBatchClear(&batch);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.pool_used, 0);
}

/* Random streams of good requests with arguments of all sizes, a bad one at the end of some. */
static void random_streams_read_the_same_in_all_pieces(void **state) {
    static char text[400000], log[400000];
    uint64_t seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 60; round++) {
        feed f;
        feedInit(&f, &FEED_LIMITS, seed + (uint64_t)round);
        size_t len = 0, log_len = 0;
        while (len < 60000) {
            int argc =
                feedRandom(&f) % 8 ? (int)(feedRandom(&f) % 5) + 1 : (int)(feedRandom(&f) % 60) + 1;
            len += (size_t)sprintf(text + len, "*%d\r\n", argc);
            log_len += (size_t)sprintf(log + log_len, "%d:", argc);
            for (int i = 0; i < argc; i++) {
                size_t size = feedRandom(&f) % 30;
                if (feedRandom(&f) % 20 == 0) size = feedRandom(&f) % 1000;
                if (feedRandom(&f) % 60 == 0) size = feedRandom(&f) % 50000;
                if (len > 200000) size = 1;
                len += (size_t)sprintf(text + len, "$%zu\r\n", size);
                log_len += (size_t)sprintf(log + log_len, "%zu:", size);
                for (size_t j = 0; j < size; j++) {
                    text[len + j] = log[log_len + j] = "\r\n$*1x"[feedRandom(&f) % 6];
                }
                memcpy(text + len + size, "\r\n", 2);
                len += size + 2;
                log[log_len + size] = ',';
                log_len += size + 1;
            }
            log[log_len++] = ';';
        }
        if (round % 3 == 0) {
            len += (size_t)sprintf(text + len, "*2\r\n$1\r\na\r\n$x\r\n");
            log_len += (size_t)sprintf(log + log_len, ERR "invalid bulk length");
        }
        static const size_t pieces[] = {1, 3, 100, 1000, 4000, 16384, 50000, 1000000};
        f.random_batches = round % 2;
        feedPieces(&f, text, len, pieces[round % 8]);
        checkLog(&f, log, log_len);
        feedClear(&f);
    }
}

int test_request(void);
int test_request(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_accepted_and_refused_however_they_are_split),
        cmocka_unit_test(inline_lines_are_accepted_and_refused_however_they_are_split),
        cmocka_unit_test(unauthenticated_clients_have_limits_of_their_own),
        cmocka_unit_test(unauthenticated_clients_may_send_16384_bytes),
        cmocka_unit_test(every_length_of_a_bulk_is_read_exactly),
        cmocka_unit_test(a_large_argument_of_a_trusted_sender_gets_its_block_at_once),
        cmocka_unit_test(a_trusted_sender_may_have_a_greater_limit),
        cmocka_unit_test(proto_max_bulk_len_and_the_count_limit_are_the_callers),
        cmocka_unit_test(lines_without_an_end_are_refused_beyond_64_kib),
        cmocka_unit_test(a_long_inline_line_that_comes_whole_is_accepted),
        cmocka_unit_test(a_million_arguments_arrive_in_pieces),
        cmocka_unit_test(a_hundred_thousand_arguments_arrive_byte_by_byte),
        cmocka_unit_test(an_announced_length_allocates_nothing_before_bytes_arrive),
        cmocka_unit_test(a_large_argument_is_charged_for_what_has_arrived),
        cmocka_unit_test(full_blocks_are_charged_too),
        cmocka_unit_test(a_large_argument_is_read_into_a_block_of_its_own),
        cmocka_unit_test(a_large_argument_stays_in_the_buffer_after_requests_not_run),
        cmocka_unit_test(one_batch_contains_requests_of_many_sessions),
        cmocka_unit_test(random_streams_read_the_same_in_all_pieces),
    };
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
