/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS connections: random pieces in both directions over a socket that is often full. The byte with
 * number n of a stream is a function of n. */
#include "io_test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "io/conn.h"
#include "io/tls.h"

#ifdef HAVE_TLS
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

enum { PIECES_MAX = 64, PIECE_BYTES_MAX = 40000, STREAM_BYTES = 3 * 1000 * 1000 };

typedef struct end {
    conn c;
    uint64_t sent, got;
    bool closed;
} end;

static struct {
    loop *l;
    tlsContext *context;
    end server, client;
} fx;

static char byteAt(uint64_t number) { return (char)(number * 0x9e3779b97f4a7c15u >> 56); }

/* A certificate that signs itself, and its key. */
static void makeFiles(slice name) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_set_version(x, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)name.ptr, (int)name.len, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    FILE *f = fopen(testPath("tls.crt"), "w");
    assert_true(PEM_write_X509(f, x));
    fclose(f);
    f = fopen(testPath("tls.key"), "w");
    assert_true(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
    fclose(f);
    X509_free(x);
    EVP_PKEY_free(key);
}

static tlsContext *makeContext(const char *protocols) {
    char cert[256], key[256];
    snprintf(cert, sizeof(cert), "%s", testPath("tls.crt"));
    snprintf(key, sizeof(key), "%s", testPath("tls.key"));
    tlsSettings s = {.cert_file = cert,
                     .key_file = key,
                     .alt_cert_file = "",
                     .alt_key_file = "",
                     .client_cert_file = "",
                     .client_key_file = "",
                     .ca_cert_file = cert,
                     .ca_cert_dir = "",
                     .dh_params_file = "",
                     .protocols = protocols,
                     .ciphers = "",
                     .ciphersuites = ""};
    reason why = {0};
    tlsContext *t = tlsContextNew(&s, &why);
    if (!t) fail_msg("%s", why.text);
    return t;
}

/* Reads at most a random number of bytes and compares them. */
static void readSome(conn *c) {
    static char bytes[100000];
    end *e = (end *)c;
    if (c->state != CONN_OPEN) return;
    ssize_t n = connRead(c, bytes, 1 + randomUniform(randomUniform(2) ? sizeof(bytes) : 100));
    if (n == 0) e->closed = true;
    if (n == 0 || (n < 0 && errno != EAGAIN)) assert_int_equal(connOnRead(c, NULL), OK);
    for (ssize_t i = 0; i < n; i++) assert_int_equal(bytes[i], byteAt(e->got + (uint64_t)i));
    if (n > 0) e->got += (uint64_t)n;
}

/* Offers random pieces of the stream. */
static void writeSome(end *e) {
    static char bytes[PIECES_MAX * PIECE_BYTES_MAX];
    struct iovec pieces[PIECES_MAX];
    int count = 1 + (int)randomUniform(PIECES_MAX);
    size_t most = randomUniform(3) ? 300 : PIECE_BYTES_MAX, at = 0;
    for (int i = 0; i < count; i++) {
        pieces[i] = (struct iovec){bytes + at, randomUniform(most)};
        at += pieces[i].iov_len;
    }
    for (size_t i = 0; i < at; i++) bytes[i] = byteAt(e->sent + i);
    ssize_t n = connWritev(&e->c, pieces, count);
    if (n < 0) assert_int_equal(errno, EAGAIN);
    assert_true(n <= (ssize_t)at);
    if (n > 0) e->sent += (uint64_t)n;
}

static void openWith(const char *protocols, tlsVerify verify) {
    int ends[2], bytes = 4096;
    testPair(ends);
    for (int i = 0; i < 2; i++)
        assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    fx.context = makeContext(protocols);
    fx.server = fx.client = (end){0};
    connInit(&fx.server.c, &connTls, fx.l, ends[0], CONN_OPEN);
    connInit(&fx.client.c, &connTls, fx.l, ends[1], CONN_OPEN);
    assert_int_equal(tlsAccept(&fx.server.c, fx.context, verify), OK);
    assert_int_equal(tlsConnect(&fx.client.c, fx.context, NULL, false), OK);
    assert_int_equal(connOnRead(&fx.server.c, readSome), OK);
    assert_int_equal(connOnRead(&fx.client.c, readSome), OK);
    int64_t end_ms = clockMonoMs() + 10000;
    while (clockMonoMs() < end_ms &&
           (fx.server.c.state != CONN_OPEN || fx.client.c.state != CONN_OPEN))
        loopTurn(fx.l, false);
    assert_int_equal(fx.server.c.state, CONN_OPEN);
    assert_int_equal(fx.client.c.state, CONN_OPEN);
}

static void open(const char *protocols) { openWith(protocols, TLS_VERIFY_NONE); }

static int begin(void **state) {
    (void)state;
    testSeed("test_tls");
    fx.l = loopNew(NULL, NULL);
    makeFiles(SLICE("test"));
    return 0;
}

static int finish(void **state) {
    (void)state;
    connClose(&fx.server.c);
    connClose(&fx.client.c);
    tlsContextFree(fx.context);
    loopFree(fx.l);
    return 0;
}

static void exchange(void) {
    while (fx.server.got < STREAM_BYTES || fx.client.got < STREAM_BYTES) {
        if (fx.server.sent < STREAM_BYTES) writeSome(&fx.server);
        if (fx.client.sent < STREAM_BYTES) writeSome(&fx.client);
        /* The last bytes are reported as not written until the socket has taken them. */
        if (fx.server.sent >= STREAM_BYTES && fx.client.got < fx.server.sent) writeSome(&fx.server);
        if (fx.client.sent >= STREAM_BYTES && fx.server.got < fx.client.sent) writeSome(&fx.client);
        loopTurn(fx.l, false);
    }
}

static void streams_arrive_unchanged_over_tls_1_3(void **state) {
    (void)state;
    open("TLSv1.3");
    exchange();
}

static void streams_arrive_unchanged_over_tls_1_2(void **state) {
    (void)state;
    open("TLSv1.2");
    exchange();
}

static void a_close_is_seen_after_the_last_byte(void **state) {
    (void)state;
    open("");
    char text[] = "the last";
    struct iovec piece = {text, 8};
    for (size_t i = 0; i < 8; i++) text[i] = byteAt(i);
    assert_int_equal(connWritev(&fx.server.c, &piece, 1), 8);
    connClose(&fx.server.c);
    int64_t end_ms = clockMonoMs() + 10000;
    while (!fx.client.closed && clockMonoMs() < end_ms) loopTurn(fx.l, false);
    assert_true(fx.client.closed);
    assert_int_equal(fx.client.got, 8);
}

static void bytes_not_sent_are_freed_with_the_connection(void **state) {
    (void)state;
    open("");
    for (int i = 0; i < 100; i++) writeSome(&fx.server);
    connClose(&fx.client.c);
    for (int i = 0; i < 100 && fx.server.c.state == CONN_OPEN; i++) {
        char byte = 0;
        struct iovec piece = {&byte, 1};
        (void)connWritev(&fx.server.c, &piece, 1);
    }
    assert_int_equal(fx.server.c.state, CONN_FAILED);
}

static void the_name_of_a_certificate_is_whole_even_with_a_nul(void **state) {
    (void)state;
    static const char name[] = "first\0.elsewhere";
    slice whole = sliceMake(name, sizeof(name) - 1);
    makeFiles(whole);
    openWith("", TLS_VERIFY_REQUIRED);
    str found = STR_EMPTY;
    assert_true(tlsPeerCommonName(&fx.server.c, &found));
    assert_true(sliceEqual(strSlice(&found), whole));
    strFree(&found);
}

int test_tls(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_name_of_a_certificate_is_whole_even_with_a_nul, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(streams_arrive_unchanged_over_tls_1_3, begin, finish),
        cmocka_unit_test_setup_teardown(streams_arrive_unchanged_over_tls_1_2, begin, finish),
        cmocka_unit_test_setup_teardown(a_close_is_seen_after_the_last_byte, begin, finish),
        cmocka_unit_test_setup_teardown(bytes_not_sent_are_freed_with_the_connection, begin,
                                        finish),
    };
    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}

#else

static void a_build_without_tls_says_so(void **state) {
    (void)state;
    reason why = {0};
    tlsSettings s = {0};
    assert_false(tlsIsSupported());
    assert_null(tlsContextNew(&s, &why));
    assert_true(why.text[0] != 0);
}

int test_tls(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_build_without_tls_says_so)};
    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}

#endif
