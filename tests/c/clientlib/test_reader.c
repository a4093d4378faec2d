/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader: replies of every type however their bytes arrive, what is refused, the memory it
 * holds, and replies built by functions of the caller. */
#include <math.h>

#include "client_test.h"

static int setup(void **state) {
    (void)state;
    countingStart();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    size_t blocks = countingBlocks();
    countingStop();
    assert_int_equal(blocks, 0);
    return 0;
}

/* Prints a tree: type, value, items in brackets. */
static size_t print(char *to, const valkeyReply *r) {
    static const char letters[] = "?$*:_+-,#%~|>(=";
    size_t n = 0;
    to[n++] = letters[r->type];
    switch (r->type) {
    case VALKEY_REPLY_INTEGER:
    case VALKEY_REPLY_BOOL: n += (size_t)sprintf(to + n, "%lld", r->integer); break;
    case VALKEY_REPLY_VERB: n += (size_t)sprintf(to + n, "%s:%s", r->vtype, r->str); break;
    case VALKEY_REPLY_DOUBLE: n += (size_t)sprintf(to + n, "%.17g/%s", r->dval, r->str); break;
    default:
        if (r->str) {
            memcpy(to + n, r->str, r->len);
            n += r->len;
            assert_int_equal(r->str[r->len], '\0');
        }
    }
    if (r->type == VALKEY_REPLY_ARRAY || r->type == VALKEY_REPLY_SET ||
        r->type == VALKEY_REPLY_MAP || r->type == VALKEY_REPLY_PUSH ||
        r->type == VALKEY_REPLY_ATTR) {
        to[n++] = '[';
        for (size_t i = 0; i < r->elements; i++) {
            if (i) to[n++] = ' ';
            n += print(to + n, r->element[i]);
        }
        to[n++] = ']';
    }
    to[n] = '\0';
    return n;
}

static const char all_types[] =
    "+OK\r\n-ERR no\r\n:42\r\n:-9223372036854775808\r\n$5\r\nhel\0o\r\n$0\r\n\r\n"
    "$-1\r\n*-1\r\n*0\r\n_\r\n#t\r\n#f\r\n,3.25\r\n,inf\r\n,-inf\r\n(-123456789012345678901\r\n"
    "=8\r\ntxt:some\r\n!3\r\nbad\r\n%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n>2\r\n+message\r\n*1\r\n*1\r\n:7\r\n"
    "|1\r\n+ttl\r\n:5\r\n*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n+one\r\n+two\r\n";
static const char all_printed[] =
    "+OK -ERR no :42 :-9223372036854775808 $hel\0o $ _ _ *[] _ #1 #0 ,3.25/3.25 ,inf/inf "
    ",-inf/-inf (-123456789012345678901 =txt:some -bad %[+k ~[:1 :2]] >[+message *[*[:7]]] "
    "|[+ttl :5] *[+one +two] ";

/* All bytes in pieces of `piece`, fed or read into the reader's buffer. */
static void readPieces(size_t piece, bool in_place) {
    char printed[4096];
    size_t n = 0, len = sizeof(all_types) - 1;
    valkeyReader *r = valkeyReaderCreate();
    for (size_t at = 0; at < len;) {
        size_t part = piece < len - at ? piece : len - at;
        if (in_place) {
            char *buf;
            size_t cap;
            assert_int_equal(valkeyReaderGetReadBuf(r, &buf, &cap, 0), VALKEY_OK);
            if (part > cap) part = cap;
            memcpy(buf, all_types + at, part);
            valkeyReaderCommitRead(r, part);
        } else {
            assert_int_equal(valkeyReaderFeed(r, all_types + at, part), VALKEY_OK);
        }
        at += part;
        void *reply;
        do {
            assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
            if (!reply) break;
            n += print(printed + n, reply);
            printed[n++] = ' ';
            freeReplyObject(reply);
        } while (true);
    }
    assert_int_equal(n, sizeof(all_printed) - 1);
    assert_memory_equal(printed, all_printed, n);
    valkeyReaderFree(r);
}

static void everyTypeInPiecesOfAnySize(void **state) {
    (void)state;
    for (size_t piece = 1; piece < sizeof(all_types); piece++) {
        readPieces(piece, false);
        readPieces(piece, true);
    }
}

static void refusesWhatIsNotAReply(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *error;
    } cases[] = {
        {"@foo\r\n", "Protocol error, got \"@\" as reply type byte"},
        {"\x01", "Protocol error, got \"\\x01\" as reply type byte"},
        {"\r\n", "Protocol error, got \"\\r\" as reply type byte"},
        {":1x\r\n", "Bad integer value"},
        {":01\r\n", "Bad integer value"},
        {":-0\r\n", "Bad integer value"},
        {":\r\n", "Bad integer value"},
        {":9223372036854775808\r\n", "Bad integer value"},
        {":99999999999999999999999\r\n", "Bad integer value"},
        {"$abc\r\n", "Bad bulk string length"},
        {"$-2\r\n", "Bulk string length out of range"},
        {"$9223372036854775807\r\n", "Bulk string length out of range"},
        {"$1\r\nabc", "Bad bulk string format"},
        {"*-2\r\n", "Multi-bulk length out of range"},
        {"*4294967296\r\n", "Multi-bulk length out of range"},
        {"%4294967296\r\n", "Multi-bulk length out of range"},
        {"%-2\r\n", "Multi-bulk length out of range"},
        {"~4294967296\r\n", "Multi-bulk length out of range"},
        {"|9223372036854775807\r\n", "Multi-bulk length out of range"},
        {"*x\r\n", "Bad multi-bulk length"},
        {"+a\nb\r\n", "Bad simple string value"},
        {"_x\r\n", "Bad nil value"},
        {"#x\r\n", "Bad bool value"},
        {",0x10\r\n", "Bad double value"},
        {",\r\n", "Bad double value"},
        {",1e999\r\n", "Bad double value"},
        {"(12a\r\n", "Bad bignum value"},
        {"(-\r\n", "Bad bignum value"},
        {"=3\r\nabc\r\n",
         "Verbatim string 4 bytes of content type are missing or incorrectly encoded."},
        {"=4\r\nabcd\r\n",
         "Verbatim string 4 bytes of content type are missing or incorrectly encoded."},
        {"*1\r\n|1\r\n|1\r\n", "Attribute within an attribute"},
        {"*2\r\n+first\r\n*3\r\n:1\r\n@", "Protocol error, got \"@\" as reply type byte"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        valkeyReader *r = valkeyReaderCreate();
        void *reply = (void *)r;
        assert_int_equal(valkeyReaderFeed(r, cases[i].bytes, strlen(cases[i].bytes)), VALKEY_OK);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_ERR);
        assert_null(reply);
        assert_int_equal(r->err, VALKEY_ERR_PROTOCOL);
        assert_string_equal(r->errstr, cases[i].error);
        /* The error is final. */
        assert_int_equal(valkeyReaderFeed(r, "+OK\r\n", 5), VALKEY_ERR);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_ERR);
        valkeyReaderFree(r);
    }
}

/* The limit can be lifted, but not beyond what memory can hold. */
static void lengthsThatNoMemoryHolds(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    void *reply;
    r->maxelements = 0;
    assert_int_equal(valkeyReaderFeed(r, "*9223372036854775807\r\n", 22), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_ERR);
    assert_int_equal(r->err, VALKEY_ERR_OOM);
    assert_string_equal(r->errstr, "Out of memory");
    valkeyReaderFree(r);
    /* A map has twice as many items, which no number could count. */
    r = valkeyReaderCreate();
    r->maxelements = 0;
    assert_int_equal(valkeyReaderFeed(r, "%9223372036854775807\r\n", 22), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_ERR);
    assert_int_equal(r->err, VALKEY_ERR_PROTOCOL);
    assert_string_equal(r->errstr, "Multi-bulk length out of range");
    valkeyReaderFree(r);
}

static void anAttributeBeforeAReplyIsAReply(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    static const char bytes[] = "|1\r\n+ttl\r\n:3600\r\n*1\r\n|1\r\n+a\r\n:1\r\n:7\r\n";
    void *reply;
    assert_int_equal(valkeyReaderFeed(r, bytes, sizeof(bytes) - 1), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    const valkeyReply *attribute = reply;
    assert_int_equal(attribute->type, VALKEY_REPLY_ATTR);
    assert_int_equal(attribute->elements, 2);
    assert_string_equal(attribute->element[0]->str, "ttl");
    assert_int_equal(attribute->element[1]->integer, 3600);
    freeReplyObject(reply);
    /* Within a reply it is dropped. */
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    const valkeyReply *array = reply;
    assert_int_equal(array->type, VALKEY_REPLY_ARRAY);
    assert_int_equal(array->elements, 1);
    assert_int_equal(array->element[0]->integer, 7);
    freeReplyObject(reply);
    valkeyReaderFree(r);
}

static void deepNestingIsLimited(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    void *reply;
    for (int i = 0; i < 1024; i++) assert_int_equal(valkeyReaderFeed(r, "*1\r\n", 4), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    assert_null(reply);
    assert_int_equal(valkeyReaderFeed(r, ":1\r\n", 4), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    assert_non_null(reply);
    freeReplyObject(reply);
    for (int i = 0; i < 1025; i++) assert_int_equal(valkeyReaderFeed(r, "*1\r\n", 4), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_ERR);
    assert_string_equal(r->errstr, "Max nesting depth exceeded");
    valkeyReaderFree(r);
    r = valkeyReaderCreate();
    r->maxdepth = 2;
    assert_int_equal(valkeyReaderFeed(r, "*1\r\n*1\r\n:1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 28),
                     VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    freeReplyObject(reply);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_ERR);
    valkeyReaderFree(r);
}

static void longAggregatesGrowWithTheirItems(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    void *reply;
    /* An announced count alone costs little. */
    assert_int_equal(valkeyReaderFeed(r, "*4000000000\r\n", 13), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    assert_true(countingBytes() < 20000);
    valkeyReaderFree(r);

    static const int counts[] = {63, 64, 65, 1023, 1024, 1025, 5000};
    for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
        char text[32];
        r = valkeyReaderCreate();
        assert_int_equal(valkeyReaderFeed(r, text, (size_t)sprintf(text, "*%d\r\n", counts[k])),
                         VALKEY_OK);
        for (int i = 0; i < counts[k]; i++)
            assert_int_equal(valkeyReaderFeed(r, text, (size_t)sprintf(text, ":%d\r\n", i)),
                             VALKEY_OK);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
        valkeyReply *a = reply;
        assert_int_equal(a->elements, counts[k]);
        for (int i = 0; i < counts[k]; i++) assert_int_equal(a->element[i]->integer, i);
        /* An item that the caller takes is its own. */
        valkeyReply *taken = a->element[5];
        a->element[5] = NULL;
        freeReplyObject(reply);
        assert_int_equal(taken->integer, 5);
        freeReplyObject(taken);
        valkeyReaderFree(r);
    }
}

/* Receives a bulk of `len` bytes as a socket would deliver it; returns the most bytes held. */
static size_t receiveBulk(valkeyReader *r, size_t len) {
    char head[32];
    size_t head_len = (size_t)sprintf(head, "$%zu\r\n", len), total = head_len + len + 2, at = 0,
           most = 0;
    void *reply = NULL;
    while (!reply) {
        char *buf;
        size_t cap;
        assert_int_equal(valkeyReaderGetReadBuf(r, &buf, &cap, 0), VALKEY_OK);
        if (countingBytes() > most) most = countingBytes();
        size_t n = cap < total - at ? cap : total - at;
        for (size_t i = 0; i < n; i++, at++)
            buf[i] = at < head_len     ? head[at]
                     : at == total - 2 ? '\r'
                     : at == total - 1 ? '\n'
                                       : 'x';
        valkeyReaderCommitRead(r, n);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    }
    assert_int_equal(((valkeyReply *)reply)->len, len);
    freeReplyObject(reply);
    return most;
}

static void bufferShrinksAfterALongReply(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    size_t before = countingBytes();
    assert_true(receiveBulk(r, 4 << 20) < (size_t)9 << 20);
    for (int i = 0; i < 5; i++) receiveBulk(r, 10);
    assert_true(countingBytes() - before <= VALKEY_READER_MAX_BUF);
    assert_true(countingBytes() < 4096);
    /* maxbuf 0 keeps it. */
    r->maxbuf = 0;
    receiveBulk(r, 4 << 20);
    assert_true(countingBytes() > (size_t)4 << 20);
    valkeyReaderFree(r);
}

static void maxbufIsWhatAnEmptyBufferMayKeep(void **state) {
    (void)state;
    static char zeros[100000];
    valkeyReader *r = valkeyReaderCreate();
    for (int keeps = 0; keeps < 2; keeps++) {
        r->maxbuf = keeps ? 300000 : 20000;
        void *reply;
        assert_int_equal(valkeyReaderFeed(r, "$100000\r\n", 9), VALKEY_OK);
        assert_int_equal(valkeyReaderFeed(r, zeros, sizeof(zeros)), VALKEY_OK);
        assert_int_equal(valkeyReaderFeed(r, "\r\n", 2), VALKEY_OK);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
        assert_non_null(reply);
        freeReplyObject(reply);
        assert_int_equal(countingBytes() > 100000, keeps);
        assert_int_equal(r->buf != NULL, keeps);
    }
    valkeyReaderFree(r);
}

/* A client whose pipeline never ends: what was received always ends with a part of a reply. */
static void bufferShrinksWhileAPartOfAReplyWaits(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    size_t len = (size_t)8 << 20, most = 0;
    char *bytes = calloc(1, len);
    void *reply;
    assert_int_equal(valkeyReaderFeed(r, "$8388608\r\n", 10), VALKEY_OK);
    assert_int_equal(valkeyReaderFeed(r, bytes, len), VALKEY_OK);
    assert_int_equal(valkeyReaderFeed(r, "\r\n$5\r\nhe", 8), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    freeReplyObject(reply);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
        assert_null(reply);
        if (countingBytes() > most) most = countingBytes();
        assert_int_equal(valkeyReaderFeed(r, "llo\r\n$5\r\nhe", 11), VALKEY_OK);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
        assert_string_equal(((valkeyReply *)reply)->str, "hello");
        freeReplyObject(reply);
    }
    assert_true(most < (size_t)64 << 10);
    free(bytes);
    valkeyReaderFree(r);
}

static void bufferSpaceIsAtLeastWhatIsAskedFor(void **state) {
    (void)state;
    valkeyReader *r = valkeyReaderCreate();
    static const size_t sizes[] = {0, 1, 100, 5000, 100000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *buf;
        size_t cap = 0;
        void *reply;
        assert_int_equal(valkeyReaderGetReadBuf(r, &buf, &cap, sizes[i]), VALKEY_OK);
        assert_true(cap >= 1 && cap >= sizes[i]);
        memset(buf, '+', cap);
        memcpy(buf, "+\r\n+", 4);
        valkeyReaderCommitRead(r, 4);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
        freeReplyObject(reply);
        assert_int_equal(valkeyReaderFeed(r, "\r\n", 2), VALKEY_OK);
        assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
        assert_non_null(reply);
        freeReplyObject(reply);
    }
    valkeyReaderFree(r);
}

/* ------------------------------------------------------------------ functions of the caller */

static int created[VALKEY_REPLY_VERB + 1], freed_objects;
static void *note(const valkeyReadTask *task) {
    created[task->type]++;
    assert_string_equal(task->privdata, "private");
    if (task->parent) assert_true(task->idx < task->parent->elements);
    return (void *)(intptr_t)(task->parent ? 2 : 1);
}
static void *makeString(const valkeyReadTask *task, char *str, size_t len) {
    (void)str;
    (void)len;
    return note(task);
}
static void *makeArray(const valkeyReadTask *task, size_t n) {
    assert_int_equal(task->elements, n);
    return note(task);
}
static void *makeInteger(const valkeyReadTask *task, long long n) {
    (void)n;
    return note(task);
}
static void *makeDouble(const valkeyReadTask *task, double d, char *str, size_t len) {
    (void)d;
    (void)str;
    (void)len;
    return note(task);
}
static void *makeNil(const valkeyReadTask *task) { return note(task); }
static void *makeBool(const valkeyReadTask *task, int b) {
    (void)b;
    return note(task);
}
static void forget(void *object) {
    assert_non_null(object);
    freed_objects++;
}

static void functionsOfTheCallerBuildTheReplies(void **state) {
    (void)state;
    valkeyReplyObjectFunctions functions = {makeString, makeArray, makeInteger, makeDouble,
                                            makeNil,    makeBool,  forget};
    valkeyReader *r = valkeyReaderCreateWithFunctions(&functions);
    r->privdata = (void *)"private";
    static const char bytes[] = "*5\r\n$1\r\na\r\n:1\r\n,2\r\n_\r\n#t\r\n";
    void *reply;
    assert_int_equal(valkeyReaderFeed(r, bytes, sizeof(bytes) - 1), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    assert_int_equal((intptr_t)reply, 1);
    assert_int_equal(created[VALKEY_REPLY_ARRAY] + created[VALKEY_REPLY_STRING] +
                         created[VALKEY_REPLY_INTEGER] + created[VALKEY_REPLY_DOUBLE] +
                         created[VALKEY_REPLY_NIL] + created[VALKEY_REPLY_BOOL],
                     6);
    /* A reply that nobody takes, and one that is incomplete, are freed. */
    assert_int_equal(valkeyReaderFeed(r, bytes, sizeof(bytes) - 1), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, NULL), VALKEY_OK);
    assert_int_equal(freed_objects, 1);
    assert_int_equal(valkeyReaderFeed(r, bytes, 8), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    valkeyReaderFree(r);
    assert_int_equal(freed_objects, 2);

    /* Without functions nothing is built; the type stands for the reply. */
    r = valkeyReaderCreateWithFunctions(NULL);
    assert_int_equal(valkeyReaderFeed(r, bytes, sizeof(bytes) - 1), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(r, &reply), VALKEY_OK);
    assert_int_equal((intptr_t)reply, VALKEY_REPLY_ARRAY);
    valkeyReaderFree(r);
}

static void memoryExhaustedAtAnyPointIsAnError(void **state) {
    (void)state;
    for (int all = 0; all < 2; all++) {
        for (long n = 0;; n++) {
            countingFailAt(n, all);
            valkeyReader *r = valkeyReaderCreate();
            int result = r ? VALKEY_OK : VALKEY_ERR;
            if (r) result = valkeyReaderFeed(r, all_types, sizeof(all_types) - 1);
            void *reply = NULL;
            do {
                if (result == VALKEY_OK) result = valkeyReaderGetReply(r, &reply);
                freeReplyObject(reply);
            } while (result == VALKEY_OK && reply);
            bool failed = countingHasFailed();
            assert_int_equal(result, failed ? VALKEY_ERR : VALKEY_OK);
            if (r && failed) assert_int_equal(r->err, VALKEY_ERR_OOM);
            valkeyReaderFree(r);
            assert_int_equal(countingBlocks(), 0);
            if (!failed) break;
        }
    }
    countingFailAt(-1, false);
}

int test_reader(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everyTypeInPiecesOfAnySize, setup, teardown),
        cmocka_unit_test_setup_teardown(refusesWhatIsNotAReply, setup, teardown),
        cmocka_unit_test_setup_teardown(lengthsThatNoMemoryHolds, setup, teardown),
        cmocka_unit_test_setup_teardown(anAttributeBeforeAReplyIsAReply, setup, teardown),
        cmocka_unit_test_setup_teardown(deepNestingIsLimited, setup, teardown),
        cmocka_unit_test_setup_teardown(longAggregatesGrowWithTheirItems, setup, teardown),
        cmocka_unit_test_setup_teardown(bufferShrinksAfterALongReply, setup, teardown),
        cmocka_unit_test_setup_teardown(maxbufIsWhatAnEmptyBufferMayKeep, setup, teardown),
        cmocka_unit_test_setup_teardown(bufferShrinksWhileAPartOfAReplyWaits, setup, teardown),
        cmocka_unit_test_setup_teardown(bufferSpaceIsAtLeastWhatIsAskedFor, setup, teardown),
        cmocka_unit_test_setup_teardown(functionsOfTheCallerBuildTheReplies, setup, teardown),
        cmocka_unit_test_setup_teardown(memoryExhaustedAtAnyPointIsAnError, setup, teardown),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
