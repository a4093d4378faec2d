/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that is exhausted at the k-th allocation of every public function of the synchronous part,
 * once and for ever after: the function fails and says so, or succeeds; nothing leaks, and the
 * context can be used again. Every function of client_names.txt has a row here or is one of those
 * that allocate nothing. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <valkey/adapters/poll.h>
#include <valkey/net.h>
#ifdef HAVE_TLS
#include <valkey/tls.h>
#endif

#include "client_test.h"

static void serve(fakeRequest *q) { fakeSend(q, "+OK\r\n"); }

/* What a row works with: all were made with memory. */
typedef struct subject {
    fakeServer *server;
    valkeyContext *c; /* connected, blocking */
    valkeyReader *r;  /* with a part of a reply */
    char path[64];    /* of a Unix socket that a server listens to */
    /* The function has reported that memory is exhausted, not something else. */
    bool memory_is_told;
} subject;

typedef struct row {
    const char *names; /* the functions that it calls, apart from those of other rows */
    bool (*call)(subject *s);
} row;

/* ------------------------------------------------------------------ readers */

static bool rowReaderCreate(subject *s) {
    valkeyReader *r = valkeyReaderCreate();
    s->memory_is_told = !r;
    valkeyReaderFree(r);
    return r;
}
static bool rowReaderCreateWithFunctions(subject *s) {
    valkeyReader *r = valkeyReaderCreateWithFunctions(NULL);
    s->memory_is_told = !r;
    valkeyReaderFree(r);
    return r;
}
static bool rowReaderFeed(subject *s) {
    static const char bytes[5000] = "3\r\n";
    bool ok = valkeyReaderFeed(s->r, bytes, sizeof(bytes)) == VALKEY_OK;
    s->memory_is_told = s->r->err == VALKEY_ERR_OOM;
    return ok;
}
static bool rowReaderGetReadBuf(subject *s) {
    char *buf;
    size_t cap;
    bool ok = valkeyReaderGetReadBuf(s->r, &buf, &cap, 100000) == VALKEY_OK;
    if (ok) memcpy(buf, "3", 1);
    if (ok) valkeyReaderCommitRead(s->r, 1);
    s->memory_is_told = s->r->err == VALKEY_ERR_OOM;
    return ok;
}
static bool rowReaderGetReply(subject *s) {
    void *reply = NULL;
    bool ok =
        valkeyReaderFeed(s->r, "3\r\n*2\r\n$3\r\nabc\r\n%1\r\n+k\r\n,1.5\r\n", 31) == VALKEY_OK;
    for (int i = 0; i < 2 && ok; i++) {
        ok = valkeyReaderGetReply(s->r, &reply) == VALKEY_OK && reply;
        freeReplyObject(reply);
    }
    s->memory_is_told = s->r->err == VALKEY_ERR_OOM;
    return ok;
}

/* ------------------------------------------------------------------ formats */

static bool isFormatted(subject *s, long long len, char *cmd) {
    s->memory_is_told = len == -1 && !cmd;
    valkeyFreeCommand(cmd);
    return len > 0;
}
static bool rowFormatCommand(subject *s) {
    char *cmd = NULL;
    int len = valkeyFormatCommand(&cmd, "SET %s %0200d", "key", 1);
    return isFormatted(s, len, cmd);
}
static bool formatList(subject *s, const char *format, ...) {
    char *cmd = NULL;
    va_list ap;
    va_start(ap, format);
    int len = valkeyvFormatCommand(&cmd, format, ap);
    va_end(ap);
    return isFormatted(s, len, cmd);
}
static bool rowVFormatCommand(subject *s) {
    /* More pieces than fit into a frame of the stack. */
    return formatList(s, "a%%b%%c%%d%%e%%f%%g%%h%%i%%j%%k%%l%%m%%n%%o%%p%% %s", "x");
}
static const char *const words[] = {"SET", "key", "value"};
static const size_t lengths[] = {3, 3, 5};
static bool rowFormatCommandArgv(subject *s) {
    char *cmd = NULL;
    long long len = valkeyFormatCommandArgv(&cmd, 3, (const char **)words, lengths);
    return isFormatted(s, len, cmd);
}

/* ------------------------------------------------------------------ connecting */

static bool isConnected(subject *s, valkeyContext *c) {
    bool ok = c && c->err == 0;
    s->memory_is_told = !c || c->err == VALKEY_ERR_OOM;
    valkeyFree(c);
    return ok;
}
static valkeyOptions optionsOf(subject *s) {
    static const struct timeval limit = {.tv_sec = 5};
    valkeyOptions o = {.connect_timeout = &limit, .command_timeout = &limit};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(s->server, 0));
    o.endpoint.tcp.source_addr = "127.0.0.1";
    return o;
}
static bool rowConnectWithOptions(subject *s) {
    valkeyOptions o = optionsOf(s);
    return isConnected(s, valkeyConnectWithOptions(&o));
}
static bool rowConnect(subject *s) {
    return isConnected(s, valkeyConnect("127.0.0.1", fakePort(s->server, 0)));
}
static bool rowConnectWithTimeout(subject *s) {
    struct timeval limit = {.tv_sec = 5};
    return isConnected(s, valkeyConnectWithTimeout("127.0.0.1", fakePort(s->server, 0), limit));
}
static bool rowConnectNonBlock(subject *s) {
    return isConnected(s, valkeyConnectNonBlock("127.0.0.1", fakePort(s->server, 0)));
}
static bool rowConnectBindNonBlock(subject *s) {
    int port = fakePort(s->server, 0);
    return isConnected(s, valkeyConnectBindNonBlock("127.0.0.1", port, "127.0.0.1"));
}
static bool rowConnectBindNonBlockWithReuse(subject *s) {
    int port = fakePort(s->server, 0);
    return isConnected(s, valkeyConnectBindNonBlockWithReuse("127.0.0.1", port, "127.0.0.1"));
}
static bool rowConnectUnix(subject *s) { return isConnected(s, valkeyConnectUnix(s->path)); }
static bool rowConnectUnixWithTimeout(subject *s) {
    struct timeval limit = {.tv_sec = 5};
    return isConnected(s, valkeyConnectUnixWithTimeout(s->path, limit));
}
static bool rowConnectUnixNonBlock(subject *s) {
    return isConnected(s, valkeyConnectUnixNonBlock(s->path));
}
static bool rowConnectFd(subject *s) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    valkeyContext *c = valkeyConnectFd(pair[0]);
    if (!c) close(pair[0]); /* still the caller's */
    close(pair[1]);
    return isConnected(s, c);
}
static bool rowFreeKeepFd(subject *s) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    valkeyContext *c = valkeyConnectFd(pair[0]);
    s->memory_is_told = !c;
    if (c) assert_int_equal(valkeyFreeKeepFd(c), pair[0]);
    close(pair[0]);
    close(pair[1]);
    return c;
}

static bool contextIs(subject *s, bool ok) {
    s->memory_is_told = s->c->err == VALKEY_ERR_OOM;
    return ok;
}
static bool rowReconnect(subject *s) { return contextIs(s, valkeyReconnect(s->c) == VALKEY_OK); }
static bool rowContextConnectTcp(subject *s) {
    valkeyOptions o = optionsOf(s);
    valkeyNetClose(s->c);
    return contextIs(s, valkeyContextConnectTcp(s->c, &o) == VALKEY_OK);
}
static bool rowSetTimeout(subject *s) {
    return contextIs(s, valkeySetTimeout(s->c, (struct timeval){.tv_sec = 5}) == VALKEY_OK);
}

/* ------------------------------------------------------------------ commands */

static bool isReply(subject *s, void *reply) {
    freeReplyObject(reply);
    return contextIs(s, reply);
}
static bool rowCommand(subject *s) { return isReply(s, valkeyCommand(s->c, "GET %s", "key")); }
static void *commandList(valkeyContext *c, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    void *reply = valkeyvCommand(c, format, ap);
    va_end(ap);
    return reply;
}
static bool rowVCommand(subject *s) { return isReply(s, commandList(s->c, "GET %0300d", 1)); }
static bool rowCommandArgv(subject *s) {
    return isReply(s, valkeyCommandArgv(s->c, 3, (const char **)words, lengths));
}

/* Sends what was queued, and reads its reply. */
static bool isAnswered(subject *s, int queued) {
    int done = 0;
    void *reply = NULL;
    bool ok = queued == VALKEY_OK;
    while (ok && !done) ok = valkeyBufferWrite(s->c, &done) == VALKEY_OK;
    while (ok && !reply)
        ok = valkeyBufferRead(s->c) == VALKEY_OK &&
             valkeyGetReplyFromReader(s->c, &reply) == VALKEY_OK;
    freeReplyObject(reply);
    return contextIs(s, ok);
}
static bool rowAppendCommand(subject *s) {
    return isAnswered(s, valkeyAppendCommand(s->c, "SET %s %d", "key", 1));
}
static int appendList(valkeyContext *c, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int result = valkeyvAppendCommand(c, format, ap);
    va_end(ap);
    return result;
}
static bool rowVAppendCommand(subject *s) {
    return isAnswered(s, appendList(s->c, "SET %s %0300d", "key", 1));
}
static bool rowAppendCommandArgv(subject *s) {
    return isAnswered(s, valkeyAppendCommandArgv(s->c, 3, (const char **)words, lengths));
}
static bool rowAppendFormattedCommand(subject *s) {
    return isAnswered(s, valkeyAppendFormattedCommand(s->c, "*1\r\n$4\r\nPING\r\n", 14));
}
static bool rowGetReply(subject *s) {
    void *reply = NULL;
    bool ok = valkeyAppendCommand(s->c, "PING") == VALKEY_OK &&
              valkeyGetReply(s->c, &reply) == VALKEY_OK && reply;
    freeReplyObject(reply);
    return contextIs(s, ok);
}
static bool rowWriteBytes(subject *s) {
    bool ok = valkeyWriteBytes(s->c, "*1\r\n$4\r\nPING\r\n", 14) == 14;
    return ok ? isAnswered(s, VALKEY_OK) : contextIs(s, false);
}

/* ------------------------------------------------------------------ TLS */

#ifdef HAVE_TLS
static bool rowCreateTLSContext(subject *s) {
    valkeyTLSContextError error = VALKEY_TLS_CTX_NONE;
    valkeyTLSContext *t = valkeyCreateTLSContext(NULL, NULL, NULL, NULL, "localhost", &error);
    s->memory_is_told = !t && error == VALKEY_TLS_CTX_CREATE_FAILED;
    valkeyFreeTLSContext(t);
    return t;
}
static bool rowCreateTLSContextWithOptions(subject *s) {
    valkeyTLSContextError error = VALKEY_TLS_CTX_NONE;
    valkeyTLSOptions o = {.server_name = "localhost"};
    valkeyTLSContext *t = valkeyCreateTLSContextWithOptions(&o, &error);
    s->memory_is_told = !t && error == VALKEY_TLS_CTX_CREATE_FAILED;
    valkeyFreeTLSContext(t);
    return t;
}
/* A context that does not block begins the handshake, with a peer that only listens. */
static bool rowInitiateTLS(subject *s) {
    valkeyTLSContext *t = valkeyCreateTLSContext(NULL, NULL, NULL, NULL, NULL, NULL);
    int pair[2];
    s->memory_is_told = true;
    if (!t) return false;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    valkeyOptions o = {
        .type = VALKEY_CONN_USERFD, .options = VALKEY_OPT_NONBLOCK, .endpoint.fd = pair[0]};
    valkeyContext *c = valkeyConnectWithOptions(&o);
    bool ok = c && valkeyInitiateTLSWithContext(c, t) == VALKEY_OK;
    if (c) s->memory_is_told = c->err == VALKEY_ERR_OOM;
    if (!c) close(pair[0]);
    valkeyFree(c);
    close(pair[1]);
    valkeyFreeTLSContext(t);
    return ok;
}
#endif

/* ------------------------------------------------------------------ memory itself, adapters */

static bool rowVk(subject *s) {
    char *a = vk_malloc(10), *b = vk_calloc(2, 10), *c = vk_strdup("text");
    char *more = vk_realloc(a, 20);
    bool ok = a && b && c && more;
    s->memory_is_told = !ok;
    vk_free(more ? more : a);
    vk_free(b);
    vk_free(c);
    return ok;
}
static bool rowPollAttach(subject *s) {
    countingFailAt(-1, false);
    valkeyAsyncContext *ac = valkeyAsyncConnect("127.0.0.1", fakePort(s->server, 0));
    countingFailAt(0, false);
    bool ok = valkeyPollAttach(ac) == VALKEY_OK;
    assert_false(ok);
    assert_null(ac->ev.data);
    s->memory_is_told = true;
    countingFailAt(-1, false);
    ok = valkeyPollAttach(ac) == VALKEY_OK;
    valkeyAsyncFree(ac);
    return ok;
}

static const row rows[] = {
    {"valkeyReaderCreate valkeyReaderFree", rowReaderCreate},
    {"valkeyReaderCreateWithFunctions", rowReaderCreateWithFunctions},
    {"valkeyReaderFeed", rowReaderFeed},
    {"valkeyReaderGetReadBuf valkeyReaderCommitRead", rowReaderGetReadBuf},
    {"valkeyReaderGetReply freeReplyObject", rowReaderGetReply},
    {"valkeyFormatCommand valkeyFreeCommand", rowFormatCommand},
    {"valkeyvFormatCommand", rowVFormatCommand},
    {"valkeyFormatCommandArgv", rowFormatCommandArgv},
    {"valkeyConnectWithOptions valkeyFree", rowConnectWithOptions},
    {"valkeyConnect", rowConnect},
    {"valkeyConnectWithTimeout", rowConnectWithTimeout},
    {"valkeyConnectNonBlock", rowConnectNonBlock},
    {"valkeyConnectBindNonBlock", rowConnectBindNonBlock},
    {"valkeyConnectBindNonBlockWithReuse", rowConnectBindNonBlockWithReuse},
    {"valkeyConnectUnix", rowConnectUnix},
    {"valkeyConnectUnixWithTimeout", rowConnectUnixWithTimeout},
    {"valkeyConnectUnixNonBlock", rowConnectUnixNonBlock},
    {"valkeyConnectFd", rowConnectFd},
    {"valkeyFreeKeepFd", rowFreeKeepFd},
    {"valkeyReconnect", rowReconnect},
    {"valkeyContextConnectTcp valkeyNetClose", rowContextConnectTcp},
    {"valkeySetTimeout", rowSetTimeout},
    {"valkeyCommand", rowCommand},
    {"valkeyvCommand", rowVCommand},
    {"valkeyCommandArgv", rowCommandArgv},
    {"valkeyAppendCommand valkeyBufferWrite valkeyBufferRead valkeyGetReplyFromReader",
     rowAppendCommand},
    {"valkeyvAppendCommand", rowVAppendCommand},
    {"valkeyAppendCommandArgv", rowAppendCommandArgv},
    {"valkeyAppendFormattedCommand", rowAppendFormattedCommand},
    {"valkeyGetReply", rowGetReply},
    {"valkeyWriteBytes", rowWriteBytes},
    {"vk_malloc vk_calloc vk_realloc vk_strdup vk_free", rowVk},
    {"valkeyPollAttach", rowPollAttach},
#ifdef HAVE_TLS
    {"valkeyCreateTLSContext valkeyFreeTLSContext", rowCreateTLSContext},
    {"valkeyCreateTLSContextWithOptions", rowCreateTLSContextWithOptions},
    {"valkeyInitiateTLSWithContext valkeyInitiateTLS", rowInitiateTLS},
    {"valkeyInitOpenSSL valkeyTLSContextGetError", NULL},
#endif
    /* These only set an option or a variable. */
    {"valkeySetAllocators valkeyResetAllocators valkeySetPushCallback valkeyEnableKeepAlive "
     "valkeyEnableKeepAliveWithInterval valkeySetTcpUserTimeout valkeyHasMptcp "
     "valkeyCheckSocketError valkeyTcpSetTimeout valkeyKeepAlive valkeyCheckConnectDone "
     "valkeySetTcpNoDelay valkeyContextSetTcpUserTimeout",
     NULL},
};
enum { ROWS = sizeof(rows) / sizeof(*rows) };

static int setup(void **state) {
    subject *s = calloc(1, sizeof(*s));
    s->server = fakeStart(1, serve, NULL);
    sprintf(s->path, "/tmp/clientlib-memory-%d.sock", (int)getpid());
    countingStart();
    *state = s;
    return 0;
}

static int teardown(void **state) {
    subject *s = *state;
    size_t blocks = countingBlocks();
    countingStop();
    fakeStop(s->server);
    free(s);
    assert_int_equal(blocks, 0);
    return 0;
}

/* One call with the k-th allocation failing; true if one has failed. */
static bool tryRow(subject *s, const row *row, long k, bool all) {
    s->c = valkeyConnect("127.0.0.1", fakePort(s->server, 0));
    s->r = valkeyReaderCreate();
    assert_int_equal(valkeyReaderFeed(s->r, ":12", 3), VALKEY_OK);
    s->memory_is_told = false;
    countingFailAt(k, all);
    bool ok = row->call(s), failed = countingHasFailed();
    countingFailAt(-1, false);
    if (!ok && (!failed || !s->memory_is_told))
        fail_msg("%s at allocation %ld: %s", row->names, k, failed ? "not told" : "failed");
    /* Whatever has happened to the context, it can be made anew. */
    assert_int_equal(valkeyReconnect(s->c), VALKEY_OK);
    valkeyReply *r = valkeyCommand(s->c, "PING");
    assert_non_null(r);
    freeReplyObject(r);
    valkeyFree(s->c);
    valkeyReaderFree(s->r);
    if (countingBlocks() != 0) fail_msg("%s at allocation %ld leaks", row->names, k);
    return failed;
}

static void everyFunctionSurvivesExhaustedMemory(void **state) {
    subject *s = *state;
    unlink(s->path);
    fakeServer *local = fakeStartUnix(s->path, serve, NULL);
    for (size_t i = 0; i < ROWS; i++) {
        for (int all = 0; all < 2 && rows[i].call; all++) {
            long k = 0;
            while (tryRow(s, &rows[i], k, all)) k++;
        }
    }
    fakeStop(local);
    unlink(s->path);
}

static bool hasRow(const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i < ROWS; i++) {
        for (const char *p = rows[i].names; (p = strstr(p, name)); p += len) {
            if ((p == rows[i].names || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
                return true;
        }
    }
    return false;
}

static void everyFunctionHasARow(void **state) {
    (void)state;
    FILE *names = fopen("tests/assets/client_names.txt", "r");
    assert_non_null(names);
    char line[1024], name[128];
    bool here = false;
    int count = 0;
    while (fgets(line, sizeof(line), names)) {
        if (sscanf(line, "header %127s", name) == 1) {
            here = strcmp(name, "valkey/alloc.h") == 0 || strcmp(name, "valkey/read.h") == 0 ||
                   strcmp(name, "valkey/valkey.h") == 0 || strcmp(name, "valkey/net.h") == 0;
#ifdef HAVE_TLS
            here = here || strcmp(name, "valkey/tls.h") == 0;
#endif
        } else if (here && sscanf(line, "function %127s", name) == 1) {
            count++;
            if (!hasRow(name)) fail_msg("%s has no row", name);
        }
    }
    fclose(names);
    assert_true(count > 50);
}

int test_memory(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyFunctionHasARow),
        cmocka_unit_test_setup_teardown(everyFunctionSurvivesExhaustedMemory, setup, teardown),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
