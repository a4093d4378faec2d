/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading replies: events however the bytes are split, what is refused, skip mode, and that all
 * that reply_write writes is read back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "resp/resp.h"

/* A transcript of events: "<depth><kind letter><payload>;", '!' after one that ends a whole
 * reply. */
typedef struct transcript {
    char text[1 << 20];
    size_t len;
} transcript;

static uint64_t random_state = 88172645463325252ULL;
static size_t randomBelow(size_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % n);
}

static void note(transcript *t, const replyEvent *e) {
    static const char letters[] = "+-:$_*%~>|,#(=";
    assert_true(t->len + e->text.len + 100 < sizeof(t->text));
    t->len += (size_t)sprintf(t->text + t->len, "%d%c", e->depth, letters[e->kind]);
    switch (e->kind) {
    case REPLY_INTEGER:
    case REPLY_BOOL:
    case REPLY_ARRAY:
    case REPLY_MAP:
    case REPLY_SET:
    case REPLY_PUSH:
    case REPLY_ATTRIBUTE:
        t->len += (size_t)sprintf(t->text + t->len, "%lld", (long long)e->integer);
        break;
    case REPLY_DOUBLE: t->len += (size_t)sprintf(t->text + t->len, "%.17g", e->number); break;
    case REPLY_VERBATIM:
        t->len += (size_t)sprintf(t->text + t->len, "%s:", e->format); /* fall through */
    default:
        if (e->text.len) memcpy(t->text + t->len, e->text.ptr, e->text.len);
        t->len += e->text.len;
    }
    t->text[t->len++] = ';';
    if (e->complete) t->text[t->len++] = '!';
}

/* Reads `bytes` arriving in pieces of at most `piece` bytes, in a buffer that moves. */
static replyReadStatus readPieces(transcript *t, bool skip, const char *bytes, size_t len,
                                  size_t piece, bool random) {
    replyReader r;
    replyReaderInit(&r);
    r.skip = skip;
    t->len = 0;
    size_t have = 0, taken = 0;
    replyReadStatus st = REPLY_NEED_MORE;
    while (have < len && st != REPLY_BAD) {
        size_t n = random ? randomBelow(piece) + 1 : piece;
        have = have + n < len ? have + n : len;
        char *buf = malloc(have - taken + 1);
        memcpy(buf, bytes + taken, have - taken);
        buf = realloc(buf, have - taken ? have - taken : 1);
        size_t pos = 0;
        replyEvent e;
        while ((st = replyRead(&r, buf, have - taken, &pos, &e)) == REPLY_EVENT) note(t, &e);
        if (st == REPLY_BAD) {
            assert_non_null(r.error);
            t->len += (size_t)sprintf(t->text + t->len, "BAD %s", r.error);
        }
        taken += pos;
        free(buf);
    }
    return st;
}

static void checkTranscript(const transcript *t, const char *expected, size_t len) {
    if (t->len != len || memcmp(t->text, expected, len) != 0) {
        print_error("got      %.*s\nexpected %.*s\n", (int)t->len, t->text, (int)len, expected);
    }
    assert_int_equal(t->len, len);
    assert_memory_equal(t->text, expected, len);
}

typedef struct sample {
    const char *bytes;
    size_t len;
    const char *events;
} sample;
#define SAMPLE(bytes, events) \
    { bytes, sizeof(bytes) - 1, events }

static const sample good[] = {
    SAMPLE("", ""),
    SAMPLE("+OK\r\n", "0+OK;!"),
    SAMPLE("+\r\n-ERR x\r\n", "0+;!0-ERR x;!"),
    SAMPLE(":0\r\n:-9223372036854775808\r\n:42\r\n", "0:0;!0:-9223372036854775808;!0:42;!"),
    SAMPLE("$5\r\nhello\r\n$0\r\n\r\n$-1\r\n", "0$hello;!0$;!0_;!"),
    SAMPLE("$4\r\n\r\n\r\n\r\n", "0$\r\n\r\n;!"),
    SAMPLE("*0\r\n*-1\r\n_\r\n", "0*0;!0_;!0_;!"),
    SAMPLE("*2\r\n:1\r\n*1\r\n+a\r\n+b\r\n", "0*2;1:1;1*1;2+a;!0+b;!"),
    SAMPLE("*2\r\n*0\r\n%0\r\n", "0*2;1*0;1%0;!"),
    SAMPLE("%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n", "0%1;1+k;1*2;2:1;2:2;!"),
    SAMPLE("~2\r\n#t\r\n#f\r\n", "0~2;1#1;1#0;!"),
    SAMPLE(">2\r\n+message\r\n$1\r\nx\r\n+OK\r\n", "0>2;1+message;1$x;!0+OK;!"),
    SAMPLE(",1.5\r\n,-2e10\r\n,3\r\n", "0,1.5;!0,-20000000000;!0,3;!"),
    SAMPLE(",inf\r\n,-inf\r\n,nan\r\n", "0,inf;!0,-inf;!0,nan;!"),
    SAMPLE("(12345678901234567890\r\n(-1\r\n", "0(12345678901234567890;!0(-1;!"),
    SAMPLE("=8\r\ntxt:a\r\nb\r\n=4\r\nmkd:\r\n", "0=txt:a\r\nb;!0=mkd:;!"),
    SAMPLE("!5\r\nERR x\r\n", "0-ERR x;!"),
    /* attributes belong to what follows and are no items */
    SAMPLE("|1\r\n+ttl\r\n:3\r\n+OK\r\n", "0|1;1+ttl;1:3;0+OK;!"),
    SAMPLE("|0\r\n+OK\r\n", "0|0;0+OK;!"),
    SAMPLE("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:7\r\n:8\r\n", "0*2;1|1;2+a;2*1;3:1;1:7;1:8;!"),
    SAMPLE("|1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:2\r\n*1\r\n:3\r\n", "0|1;1+a;1:1;0|1;1+b;1:2;0*1;1:3;!"),
    /* incomplete */
    SAMPLE("+OK\r", ""),
    SAMPLE("+OK", ""),
    SAMPLE("$5\r\nhello\r", ""),
    SAMPLE("*2\r\n:1\r\n", "0*2;1:1;"),
    SAMPLE("*9223372036854775807\r\n:1\r\n", "0*9223372036854775807;1:1;"),
    SAMPLE("|1\r\n+a\r\n:1\r\n", "0|1;1+a;1:1;"),
    SAMPLE("$536870912\r\n", ""),
    SAMPLE(
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "0*1;1*1;2*1;3*1;4*1;5*1;6*1;7*1;8*1;9*1;10*1;11*1;12*1;13*1;14*1;15*1;16:1;!"),
};

static const sample bad[] = {
    SAMPLE("x\r\n", "BAD unknown type byte"),
    SAMPLE("\r\n", "BAD unknown type byte"),
    SAMPLE("+OK\r\n\n", "0+OK;!BAD unknown type byte"),
    SAMPLE("+O\nK\r\n", "BAD line feed within a line"),
    SAMPLE("+O\rK\r\n", "BAD carriage return without line feed"),
    SAMPLE(":\r\n", "BAD invalid number"),
    SAMPLE(":1x\r\n", "BAD invalid number"),
    SAMPLE(":01\r\n", "BAD invalid number"),
    SAMPLE(":+1\r\n", "BAD invalid number"),
    SAMPLE(":9223372036854775808\r\n", "BAD invalid number"),
    SAMPLE("$\r\n", "BAD invalid number"),
    SAMPLE("$-2\r\n", "BAD invalid length"),
    SAMPLE("$?\r\n", "BAD invalid number"),
    SAMPLE("!-1\r\n", "BAD invalid length"),
    SAMPLE("=-1\r\n", "BAD invalid length"),
    SAMPLE("=3\r\nabc\r\n", "BAD verbatim string without a format"),
    SAMPLE("$536870913\r\n", "BAD bulk too long"),
    SAMPLE("*-2\r\n", "BAD invalid count"),
    SAMPLE("%-1\r\n", "BAD invalid count"),
    SAMPLE("~-1\r\n", "BAD invalid count"),
    SAMPLE("%4611686018427387904\r\n", "BAD invalid count"),
    SAMPLE(">0\r\n", "BAD empty push"),
    SAMPLE("*1\r\n>1\r\n", "0*1;BAD push within a reply"),
    SAMPLE("#x\r\n", "BAD invalid boolean"),
    SAMPLE("#\r\n", "BAD invalid boolean"),
    SAMPLE("#tt\r\n", "BAD invalid boolean"),
    SAMPLE("_x\r\n", "BAD invalid null"),
    SAMPLE(",\r\n", "BAD invalid double"),
    SAMPLE(",abc\r\n", "BAD invalid double"),
    SAMPLE(",0x10\r\n", "BAD invalid double"),
    SAMPLE(", 1\r\n", "BAD invalid double"),
    SAMPLE(",1.5.2\r\n", "BAD invalid double"),
    SAMPLE(",infinity\r\n", "BAD invalid double"),
    SAMPLE("(\r\n", "BAD invalid big number"),
    SAMPLE("(-\r\n", "BAD invalid big number"),
    SAMPLE("(12x\r\n", "BAD invalid big number"),
    SAMPLE(
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        "0*1;1*1;2*1;3*1;4*1;5*1;6*1;7*1;8*1;9*1;10*1;11*1;12*1;13*1;14*1;15*1;BAD aggregates too deep"),
};

static const sample bad_bulks[] = {
    SAMPLE("$5\r\nhelloxx", "BAD bulk without its end"),
    SAMPLE("$5\r\nhello\rx", "BAD bulk without its end"),
    SAMPLE("!5\r\nhello\rx", "BAD bulk without its end"),
    SAMPLE("=5\r\ntxtx:\r\n", "BAD verbatim string without a format"),
};

static void checkSplits(const sample *samples, size_t count) {
    static transcript t;
    for (size_t i = 0; i < count; i++) {
        const sample *s = &samples[i];
        for (size_t piece = 1; piece <= s->len + 1; piece++) {
            readPieces(&t, false, s->bytes, s->len, piece, false);
            checkTranscript(&t, s->events, strlen(s->events));
        }
    }
}

static void good_replies_give_the_same_events_in_all_pieces(void **state) {
    checkSplits(good, sizeof(good) / sizeof(good[0]));
}

static void bad_replies_are_refused_in_all_pieces(void **state) {
    checkSplits(bad, sizeof(bad) / sizeof(bad[0]));
    checkSplits(bad_bulks, sizeof(bad_bulks) / sizeof(bad_bulks[0]));
}

static void long_lines_are_refused(void **state) {
    static char text[2000];
    static transcript t;
    memset(text, '1', sizeof(text));
    static const char types[] = ":$*%~>|,#_=!";
    for (const char *type = types; *type; type++) {
        text[0] = *type;
        assert_int_equal(readPieces(&t, false, text, REPLY_NUMBER_LINE_MAX + 1, 100, false),
                         REPLY_NEED_MORE);
        assert_int_equal(readPieces(&t, false, text, REPLY_NUMBER_LINE_MAX + 2, 100, false),
                         REPLY_BAD);
    }
    text[0] = '+';
    assert_int_equal(readPieces(&t, false, text, sizeof(text), 100, false), REPLY_NEED_MORE);
}

static void skip_mode_gives_one_event_per_reply(void **state) {
    static const sample skipped[] = {
        SAMPLE("+OK\r\n:1\r\n-ERR x\r\n!5\r\nERR y\r\n", "0+OK;!0:1;!0-ERR x;!0-ERR y;!"),
        SAMPLE("$5\r\nhello\r\n$0\r\n\r\n$-1\r\n=5\r\ntxt:a\r\n", "0$;!0$;!0_;!0=:;!"),
        SAMPLE("*2\r\n$5\r\nhello\r\n*1\r\n:1\r\n%0\r\n", "0*2;!0%0;!"),
        SAMPLE("*1\r\n$2\r\nab\r\n*1\r\n$2\r\nab\r\n", "0*1;!0*1;!"),
        SAMPLE("|1\r\n+a\r\n*1\r\n:1\r\n%1\r\n:1\r\n|1\r\n:5\r\n:6\r\n:2\r\n+OK\r\n",
               "0%1;!0+OK;!"),
        SAMPLE("|0\r\n:1\r\n", "0:1;!"),
        SAMPLE(">2\r\n+a\r\n+b\r\n~1\r\n_\r\n", "0>2;!0~1;!"),
        SAMPLE("*3\r\n:1\r\n:2\r\n", ""),
        SAMPLE("*1\r\n$5\r\nhelloxx", "BAD bulk without its end"),
        SAMPLE("*1\r\n$5\r\nhello\rx", "BAD bulk without its end"),
        SAMPLE("*1\r\n$x\r\n", "BAD invalid number"),
    };
    static transcript t;
    for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
        for (size_t piece = 1; piece <= skipped[i].len; piece++) {
            readPieces(&t, true, skipped[i].bytes, skipped[i].len, piece, false);
            checkTranscript(&t, skipped[i].events, strlen(skipped[i].events));
        }
    }
}

static void skipped_bulks_need_no_buffer(void **state) {
    replyReader r;
    replyEvent e;
    replyReaderInit(&r);
    r.skip = true;
    size_t pos = 0;
    static const char head[] = "*2\r\n:1\r\n$10000000\r\n";
    assert_int_equal(replyRead(&r, head, sizeof(head) - 1, &pos, &e), REPLY_NEED_MORE);
    assert_int_equal(pos, sizeof(head) - 1);
    static char piece[10000];
    for (int i = 0; i < 1000; i++) {
        pos = 0;
        assert_int_equal(replyRead(&r, piece, sizeof(piece), &pos, &e), REPLY_NEED_MORE);
        assert_int_equal(pos, sizeof(piece));
    }
    pos = 0;
    assert_int_equal(replyRead(&r, "\r\n+OK\r\n", 7, &pos, &e), REPLY_EVENT);
    assert_int_equal(e.kind, REPLY_ARRAY);
    assert_int_equal(e.integer, 2);
    assert_int_equal(pos, 2);
}

/* ---- round trips */

typedef struct writer {
    outbuf out;
    int proto;
    transcript expected;
} writer;

static void expect(writer *w, replyKind kind, int depth, const char *text, size_t len,
                   int64_t integer, double number) {
    replyEvent e = {
        .kind = kind, .depth = depth, .text = {text, len}, .integer = integer, .number = number};
    if (kind == REPLY_VERBATIM) memcpy(e.format, "txt", 4);
    note(&w->expected, &e);
}

static void writeScalar(writer *w, int depth) {
    static char bytes[50000];
    bool three = w->proto == 3;
    size_t len = randomBelow(40);
    if (randomBelow(20) == 0) len = randomBelow(sizeof(bytes));
    for (size_t i = 0; i < len; i++) bytes[i] = "ab\r\n$:1\0"[randomBelow(8)];
    slice text = sliceMake(bytes, len);
    int64_t integer = (int64_t)random_state >> randomBelow(64);
    double number = ldexp((double)integer, -(int)randomBelow(200));
    blob *b;
    switch (randomBelow(10)) {
    case 0:
        respStatus(&w->out, SLICE("fine"));
        expect(w, REPLY_STATUS, depth, "fine", 4, 0, 0);
        break;
    case 1:
        respError(&w->out, SLICE("ERR a\nb"));
        expect(w, REPLY_ERROR, depth, "ERR a b", 7, 0, 0);
        break;
    case 2:
        respInteger(&w->out, integer);
        expect(w, REPLY_INTEGER, depth, NULL, 0, integer, 0);
        break;
    case 3:
        respBool(&w->out, w->proto, integer & 1);
        expect(w, three ? REPLY_BOOL : REPLY_INTEGER, depth, NULL, 0, integer & 1, 0);
        break;
    case 4:
        respNull(&w->out, w->proto);
        expect(w, REPLY_NULL, depth, NULL, 0, 0, 0);
        break;
    case 5:
        respNullArray(&w->out, w->proto);
        expect(w, REPLY_NULL, depth, NULL, 0, 0, 0);
        break;
    case 6:
        if (!three) return writeScalar(w, depth);
        respDouble(&w->out, 3, number);
        expect(w, REPLY_DOUBLE, depth, NULL, 0, 0, number);
        break;
    case 7:
        respVerbatim(&w->out, w->proto, text, "txt");
        expect(w, three ? REPLY_VERBATIM : REPLY_BULK, depth, bytes, len, 0, 0);
        break;
    case 8:
        b = blobNew(len);
        memcpy(b->bytes, bytes, len);
        b->len = len;
        respBulkBlob(&w->out, b, 0, len);
        blobRelease(b);
        expect(w, REPLY_BULK, depth, bytes, len, 0, 0);
        break;
    default:
        respBulk(&w->out, text);
        expect(w, REPLY_BULK, depth, bytes, len, 0, 0);
        break;
    }
}

static void writeReply(writer *w, int depth);

static void writeAggregate(writer *w, int depth) {
    static const char kinds[] = "*%~>";
    static const replyKind three[] = {REPLY_ARRAY, REPLY_MAP, REPLY_SET, REPLY_PUSH};
    size_t which = randomBelow(depth == 0 ? 4 : 3);
    int64_t count = (int64_t)randomBelow(5), items = count;
    if (which == 3) count = items = count + 1;
    if (which == 1) items *= 2;
    bool two = w->proto == 2;
    expect(w, two ? REPLY_ARRAY : three[which], depth, NULL, 0, two ? items : count, 0);
    bool later = randomBelow(2);
    respDeferred mark = {NULL, 0};
    if (later) {
        mark = respDeferBegin(&w->out);
    } else if (which == 0) {
        respArray(&w->out, count);
    } else if (which == 1) {
        respMap(&w->out, w->proto, count);
    } else if (which == 2) {
        respSet(&w->out, w->proto, count);
    } else {
        respPush(&w->out, w->proto, count);
    }
    for (int64_t i = 0; i < items; i++) writeReply(w, depth + 1);
    if (later) respDeferEnd(&w->out, mark, kinds[which], w->proto, count);
}

static void writeReply(writer *w, int depth) {
    if (w->proto == 3 && randomBelow(10) == 0 && depth < 6) {
        respAttribute(&w->out, 3, 1);
        expect(w, REPLY_ATTRIBUTE, depth, NULL, 0, 1, 0);
        writeScalar(w, depth + 1);
        writeScalar(w, depth + 1);
    }
    if (depth < 6 && randomBelow(3) == 0) {
        writeAggregate(w, depth);
    } else {
        writeScalar(w, depth);
    }
}

static void what_is_written_is_read_back(void **state) {
    static writer w;
    static transcript t;
    random_state = (uint64_t)time(NULL) | 1;
    print_message("seed %llu\n", (unsigned long long)random_state);
    for (int round = 0; round < 400; round++) {
        outbufInit(&w.out);
        w.proto = round % 2 + 2;
        w.expected.len = 0;
        writeReply(&w, 0);
        /* The last event ends the reply, and only it. */
        w.expected.text[w.expected.len++] = '!';
        size_t len;
        char *bytes = outbufCopy(&w.out, &len);
        readPieces(&t, false, bytes, len, len, false);
        checkTranscript(&t, w.expected.text, w.expected.len);
        readPieces(&t, false, bytes, len, randomBelow(500) + 1, true);
        checkTranscript(&t, w.expected.text, w.expected.len);
        readPieces(&t, true, bytes, len, randomBelow(500) + 1, true);
        assert_int_equal(t.text[t.len - 1], '!');
        memFree(bytes);
        outbufClear(&w.out);
    }
    outbufPoolTrim();
}

int test_reply_read(void);
int test_reply_read(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_replies_give_the_same_events_in_all_pieces),
        cmocka_unit_test(bad_replies_are_refused_in_all_pieces),
        cmocka_unit_test(long_lines_are_refused),
        cmocka_unit_test(skip_mode_gives_one_event_per_reply),
        cmocka_unit_test(skipped_bulks_need_no_buffer),
        cmocka_unit_test(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests_name("reply_read", tests, NULL, NULL);
}
