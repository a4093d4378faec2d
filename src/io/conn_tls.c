/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS connections (tls.h). During the handshake OpenSSL reads and writes the socket itself, then
 * through tls_wire.h.
 *
 * Reading: a read() that stops because the caller's space is full leaves decoded or received bytes
 * behind and notes it (connNotePending()).
 *
 * Writing: small pieces are gathered into records. What is encoded cannot be taken back: if the
 * socket does not take it all, the last byte is reported as not written (`owed`), so that the
 * caller tries again, and then skipped. Without tls_wire.h (kTLS) OpenSSL itself holds a finished
 * record of `held` bytes after a would-block, and the next call must offer at least those bytes
 * again, at any address. */
#ifdef HAVE_TLS

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "io/net_addr.h"
#include "io/tls_priv.h"
#include "io/tls_wire.h"

enum {
    RECORD_MAX = 16 * 1024,
    STATE_BYTES = 20 * 1024, /* of an idle session of OpenSSL 3, measured */
};

typedef struct tlsState {
    SSL *ssl;
    tlsWire wire;
    size_t held;
    bool owed; /* the first byte that the caller offers next is encoded already */
    char error[160];
} tlsState;

static bool writes_blocked;

void tlsBlockWrites(bool on) { writes_blocked = on; }

size_t tlsMemory(const conn *c) {
    const tlsState *t = c->type == &connTls ? connTransport(c) : NULL;
    return t ? sizeof(*t) + STATE_BYTES + tlsWireMemory(&t->wire) : 0;
}

/* ------------------------------------------------------------------ begin and end */

static status begin(conn *c, SSL_CTX *ctx, tlsState **out) {
    tlsState *t = memCalloc(1, sizeof(*t));
    t->wire.fd = -1;
    t->ssl = SSL_new(ctx);
    if (!t->ssl || !SSL_set_fd(t->ssl, c->fd)) {
        SSL_free(t->ssl);
        memFree(t);
        ERR_clear_error();
        return ERR_NO_MEMORY;
    }
    connSetTransport(c, t);
    *out = t;
    return OK;
}

status tlsAccept(conn *c, const tlsContext *context, tlsVerify verify) {
    static const int modes[] = {
        [TLS_VERIFY_NONE] = SSL_VERIFY_NONE,
        [TLS_VERIFY_REQUIRED] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        [TLS_VERIFY_OPTIONAL] = SSL_VERIFY_PEER,
    };
    tlsState *t;
    status st = begin(c, context->server, &t);
    if (st != OK) return st;
    SSL_set_verify(t->ssl, modes[verify], NULL);
    SSL_set_accept_state(t->ssl);
    return OK;
}

status tlsConnect(conn *c, const tlsContext *context, const char *name, bool check_name) {
    tlsState *t;
    status st = begin(c, context->client, &t);
    if (st != OK) return st;
    SSL_set_connect_state(t->ssl);
    if (name && !netAddrIsValid(name))
        (void)SSL_set_tlsext_host_name(t->ssl, name); /* without it the peer takes its default */
    if (name && check_name && !SSL_set1_host(t->ssl, name)) return ERR_NO_MEMORY;
    return OK;
}

/* Tells the peer that nothing more comes, if that is possible at once. */
static void notifyClose(const conn *c, tlsState *t) {
    if (c->state != CONN_OPEN || t->held || t->wire.unsent.len) return;
    (void)SSL_shutdown(t->ssl);
    (void)tlsWireFlush(&t->wire);
}

static void tlsShutdown(conn *c) {
    tlsState *t = connTransport(c);
    if (t) notifyClose(c, t);
    ERR_clear_error();
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void tlsClose(conn *c) {
    tlsState *t = connTransport(c);
    if (t) {
        notifyClose(c, t);
        SSL_free(t->ssl);
        tlsWireClear(&t->wire);
        memFree(t);
        connSetTransport(c, NULL);
    }
    ERR_clear_error();
    (void)close(c->fd);
}

/* ------------------------------------------------------------------ results */

static ssize_t wouldBlock(conn *c) {
    c->last_errno = errno = EAGAIN;
    return -1;
}

/* The error of OpenSSL, with the reason if the peer's certificate is refused. */
static void describeError(tlsState *t) {
    tlsErrorText(t->error, sizeof(t->error));
    long verified = SSL_get_verify_result(t->ssl);
    size_t len = strlen(t->error);
    if (verified != X509_V_OK)
        snprintf(t->error + len, sizeof(t->error) - len, " (%s)",
                 X509_verify_cert_error_string(verified));
}

/* Evaluates a call of OpenSSL that returned `result` <= 0, after `error` = errno: EAGAIN, or the
 * connection is CLOSED or FAILED. */
static ssize_t noteFailure(conn *c, tlsState *t, int result, int error) {
    switch (SSL_get_error(t->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return wouldBlock(c);
    case SSL_ERROR_ZERO_RETURN: c->state = CONN_CLOSED; return 0;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        c->state = CONN_FAILED;
        c->last_errno = errno = error ? error : ECONNRESET;
        snprintf(t->error, sizeof(t->error), "%s", strerror(c->last_errno));
        return -1;
    default:
        describeError(t);
        c->state = CONN_FAILED;
        c->last_errno = errno = EPROTO;
        return -1;
    }
}

/* Once: the kernel encrypts instead of OpenSSL (kTLS). */
static void logKernelTls(SSL *ssl) {
    static bool logged;
    if (!BIO_get_ktls_send(SSL_get_wbio(ssl)) ||
        __atomic_exchange_n(&logged, true, __ATOMIC_RELAXED))
        return;
    logNotice("TLS connections are encrypted by the kernel (kTLS)");
}

static status tlsHandshake(conn *c, int *wants) {
    tlsState *t = connTransport(c);
    if (!t) return ERR_DENIED;
    ERR_clear_error();
    errno = 0;
    int result = SSL_do_handshake(t->ssl), error = errno;
    if (result == 1) {
        logKernelTls(t->ssl);
        return tlsWireAttach(&t->wire, t->ssl, c->fd);
    }
    int code = SSL_get_error(t->ssl, result);
    *wants = code == SSL_ERROR_WANT_WRITE ? LOOP_WRITE : LOOP_READ;
    if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) return ERR_AGAIN;
    (void)noteFailure(c, t, result, error);
    if (!c->last_errno) c->last_errno = ECONNRESET;
    return ERR_IO;
}

static const char *tlsError(const conn *c) {
    const tlsState *t = connTransport(c);
    return t && t->error[0] ? t->error : strerror(c->last_errno);
}

/* ------------------------------------------------------------------ reading */

static bool hasPending(const tlsState *t) {
    return tlsWireHasUnread(&t->wire) || SSL_has_pending(t->ssl);
}

static bool tlsHasPending(const conn *c) { return hasPending(connTransport(c)); }

static ssize_t readAll(conn *c, tlsState *t, char *dst, size_t cap) {
    size_t got = 0;
    int result = 1, error = 0;
    ERR_clear_error();
    while (got < cap) {
        size_t most = sizeMin(cap - got, INT_MAX);
        errno = 0;
        result = SSL_read(t->ssl, dst + got, (int)most);
        error = errno;
        if (result <= 0) break;
        got += (size_t)result;
        if (!hasPending(t)) break;
    }
    if (got == 0) return noteFailure(c, t, result, error);
    /* A failure after some bytes is reported by the next read. */
    bool failed = result <= 0 && SSL_get_error(t->ssl, result) != SSL_ERROR_WANT_READ;
    ERR_clear_error();
    if (failed || (got == cap && hasPending(t))) connNotePending(c);
    return (ssize_t)got;
}

static ssize_t tlsRead(conn *c, void *dst, size_t cap) {
    tlsState *t = connTransport(c);
    if (unlikely(c->state != CONN_OPEN)) {
        errno = c->last_errno ? c->last_errno : ENOTCONN;
        return -1;
    }
    tlsWireBeginRead(&t->wire);
    ssize_t got = readAll(c, t, dst, cap);
    int error = errno;
    tlsWireEndRead(&t->wire);
    /* Lent: no event tells of bytes that were left in the socket. */
    if (!c->loop && got > 0 && !t->wire.drained) connNotePending(c);
    /* Reading may have written: an alert, or the answer to a new key. A failure is the next
     * write's. */
    (void)tlsWireFlush(&t->wire);
    errno = error;
    return got;
}

static ssize_t tlsReadv(conn *c, const struct iovec *iov, int count) {
    ssize_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len == 0) continue;
        ssize_t got = tlsRead(c, iov[i].iov_base, iov[i].iov_len);
        if (got <= 0) return sum ? sum : got;
        sum += got;
        if ((size_t)got < iov[i].iov_len) break;
    }
    return sum;
}

/* ------------------------------------------------------------------ writing */

/* Copies the first bytes of the pieces, at most `cap`; returns how many. */
static size_t gather(const struct iovec *iov, int count, char *dst, size_t cap) {
    size_t len = 0;
    for (int i = 0; i < count && len < cap; i++) {
        size_t part = sizeMin(iov[i].iov_len, cap - len);
        memcpy(dst + len, iov[i].iov_base, part);
        len += part;
    }
    return len;
}

/* Moves over `n` bytes of the pieces. */
static void skip(struct iovec *iov, int count, int *i, size_t n) {
    hotCheck(*i <= count);
    while (*i < count && n >= iov[*i].iov_len) n -= iov[(*i)++].iov_len;
    if (*i == count || n == 0) return;
    iov[*i].iov_base = (char *)iov[*i].iov_base + n;
    iov[*i].iov_len -= n;
}

/* Encodes the first bytes of the pieces [i, count), at least one. */
static ssize_t writeRecord(conn *c, tlsState *t, const struct iovec *iov, int count) {
    char record[RECORD_MAX];
    const char *bytes = iov->iov_base;
    size_t len = iov->iov_len;
    bool direct = len >= RECORD_MAX || (count == 1 && len >= t->held);
    if (!direct) {
        len = gather(iov, count, record, sizeof(record));
        bytes = record;
    }
    ERR_clear_error();
    errno = 0;
    int result = SSL_write(t->ssl, bytes, (int)sizeMin(len, RECORD_MAX)), error = errno;
    if (result > 0) {
        t->held = 0;
        return result;
    }
    ssize_t failure = noteFailure(c, t, result, error);
    if (failure < 0 && errno == EAGAIN) t->held = sizeMin(len, RECORD_MAX);
    if (failure == 0) { /* the peer has closed */
        errno = c->last_errno = EPIPE;
        failure = -1;
    }
    return failure;
}

/* Sends what is encoded. False if the socket has failed or is full; errno says which. */
static bool flush(conn *c, tlsState *t) {
    status st = tlsWireFlush(&t->wire);
    if (st == OK) return true;
    if (st == ERR_AGAIN) {
        (void)wouldBlock(c);
        return false;
    }
    c->state = CONN_FAILED;
    c->last_errno = errno;
    snprintf(t->error, sizeof(t->error), "%s", strerror(c->last_errno));
    return false;
}

static ssize_t writePieces(conn *c, tlsState *t, struct iovec *iov, int count) {
    if (!flush(c, t)) return -1;
    size_t sum = t->owed;
    int i = 0;
    skip(iov, count, &i, sum);
    t->owed = false;
    while (i < count && !t->wire.unsent.len) {
        ssize_t n = writeRecord(c, t, iov + i, count - i);
        if (n < 0 && (errno != EAGAIN || sum == 0)) return -1;
        if (n < 0) break;
        sum += (size_t)n;
        skip(iov, count, &i, (size_t)n);
    }
    if (!flush(c, t)) {
        if (errno != EAGAIN) return -1;
        t->owed = true;
        if (--sum == 0) return wouldBlock(c);
    }
    return (ssize_t)sum;
}

static ssize_t tlsWritev(conn *c, const struct iovec *iov, int count) {
    enum { PIECES_MAX = 64 };
    tlsState *t = connTransport(c);
    if (unlikely(c->state != CONN_OPEN)) {
        errno = c->last_errno ? c->last_errno : EPIPE;
        return -1;
    }
    if (unlikely(writes_blocked)) return wouldBlock(c);
    struct iovec pieces[PIECES_MAX];
    int n = 0;
    for (int i = 0; i < count && n < PIECES_MAX; i++)
        if (iov[i].iov_len) pieces[n++] = iov[i];
    return n ? writePieces(c, t, pieces, n) : 0;
}

const connType connTls = {.name = "tls",
                          .read = tlsRead,
                          .readv = tlsReadv,
                          .writev = tlsWritev,
                          .shutdown = tlsShutdown,
                          .close = tlsClose,
                          .handshake = tlsHandshake,
                          .has_pending = tlsHasPending,
                          .error_text = tlsError};

/* ------------------------------------------------------------------ the peer's certificate */

static X509 *peerCertificate(const conn *c) {
    const tlsState *t = connTransport(c);
    if (!t || SSL_get_verify_mode(t->ssl) == SSL_VERIFY_NONE) return NULL;
    return SSL_get_verify_result(t->ssl) == X509_V_OK ? SSL_get0_peer_certificate(t->ssl) : NULL;
}

bool tlsPeerIsVerified(const conn *c) { return peerCertificate(c) != NULL; }

bool tlsPeerCommonName(const conn *c, str *out) {
    X509 *x = peerCertificate(c);
    X509_NAME *subject = x ? X509_get_subject_name(x) : NULL;
    int at = subject ? X509_NAME_get_index_by_NID(subject, NID_commonName, -1) : -1;
    if (at < 0) return false;
    unsigned char *text = NULL;
    int len =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (len < 0) return false;
    strAppend(out, text, (size_t)len);
    OPENSSL_free(text);
    return true;
}

bool tlsPeerPem(const conn *c, str *out) {
    X509 *x = peerCertificate(c);
    BIO *memory = x ? BIO_new(BIO_s_mem()) : NULL;
    bool written = memory && PEM_write_bio_X509(memory, x) == 1;
    char *text;
    long len = written ? BIO_get_mem_data(memory, &text) : 0;
    if (len > 0) strAppend(out, text, (size_t)len);
    BIO_free(memory);
    return len > 0;
}

void tlsPeerUris(const conn *c, bool (*visit)(void *arg, slice uri), void *arg) {
    X509 *x = peerCertificate(c);
    GENERAL_NAMES *names = x ? X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL) : NULL;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_URI) continue;
        const ASN1_STRING *uri = name->d.uniformResourceIdentifier;
        if (visit(arg, sliceMake((const char *)ASN1_STRING_get0_data(uri),
                                 (size_t)ASN1_STRING_length(uri))))
            break;
    }
    GENERAL_NAMES_free(names);
}

#endif
