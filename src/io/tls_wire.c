/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A BIO over the buffers of the thread (tls_wire.h). Invariant: outside of a call of conn_tls.c the
 * buffers of the thread are empty. */
#ifdef HAVE_TLS

#include "io/tls_wire.h"

#include <errno.h>
#include <openssl/bio.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"

/* The output buffer holds the records of one writev() of the writer: 64 pieces, mostly headers and
 * values of 4 KB. */
enum { IN_BYTES = 64 * 1024, OUT_BYTES = 136 * 1024 };

static _Thread_local struct {
    char *in, *out;
    size_t in_at, in_len, out_len;
} shared;

/* At the end of a thread. */
static void freeShared(void *unused) {
    (void)unused;
    memFree(shared.in);
    memFree(shared.out);
    shared.in = shared.out = NULL;
}

static pthread_key_t shared_key;
static void makeKey(void) { check(pthread_key_create(&shared_key, freeShared) == 0); }

/* A buffer of this thread. */
static char *newShared(size_t size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, makeKey);             /* cannot fail */
    (void)pthread_setspecific(shared_key, &shared); /* if it fails, the buffers are not freed */
    return memAlloc(size);
}

/* ----------------------------------------------------------------- what is left in a connection */

static void keepRest(tlsRest *r, const char *bytes, size_t len) {
    size_t held = r->len - r->at;
    char *all = memAlloc(held + len);
    if (held) memcpy(all, r->bytes + r->at, held);
    memcpy(all + held, bytes, len);
    memFree(r->bytes);
    *r = (tlsRest){.bytes = all, .len = held + len};
}

static void takeRest(tlsRest *r, size_t n) {
    r->at += n;
    if (r->at < r->len) return;
    memFree(r->bytes);
    *r = (tlsRest){0};
}

/* ------------------------------------------------------------------ reading */

void tlsWireBeginRead(tlsWire *w) { w->received = w->drained = false; }

void tlsWireEndRead(tlsWire *w) {
    if (shared.in_at < shared.in_len)
        keepRest(&w->unread, shared.in + shared.in_at, shared.in_len - shared.in_at);
    shared.in_at = shared.in_len = 0;
}

bool tlsWireHasUnread(const tlsWire *w) { return w->unread.len || shared.in_at < shared.in_len; }

/* Fills the buffer of the thread; false if nothing has arrived. */
static bool receive(tlsWire *w, BIO *bio) {
    if (!w->received) {
        w->received = true;
        if (!shared.in) shared.in = newShared(IN_BYTES);
        ssize_t n = recv(w->fd, shared.in, IN_BYTES, 0);
        w->drained = n < IN_BYTES;
        if (n > 0) {
            shared.in_at = 0;
            shared.in_len = (size_t)n;
            return true;
        }
        w->eof = n == 0;
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    }
    BIO_set_retry_read(bio);
    return false;
}

static int bioRead(BIO *bio, char *to, size_t cap, size_t *got) {
    tlsWire *w = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    tlsRest *rest = &w->unread;
    if (rest->len) {
        *got = sizeMin(cap, rest->len - rest->at);
        memcpy(to, rest->bytes + rest->at, *got);
        takeRest(rest, *got);
        return 1;
    }
    if (shared.in_at == shared.in_len && !receive(w, bio)) return 0;
    *got = sizeMin(cap, shared.in_len - shared.in_at);
    memcpy(to, shared.in + shared.in_at, *got);
    shared.in_at += *got;
    return 1;
}

/* ------------------------------------------------------------------ writing */

/* Sends bytes; returns how many the socket took, or -1 with errno. */
static ssize_t sendSome(const tlsWire *w, const char *bytes, size_t len) {
    ssize_t n = send(w->fd, bytes, len, MSG_NOSIGNAL);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

status tlsWireFlush(tlsWire *w) {
    size_t len = shared.out_len;
    shared.out_len = 0;
    if (w->unsent.len) {
        if (len) keepRest(&w->unsent, shared.out, len);
        ssize_t n = sendSome(w, w->unsent.bytes + w->unsent.at, w->unsent.len - w->unsent.at);
        if (n < 0) return ERR_IO;
        takeRest(&w->unsent, (size_t)n);
        return w->unsent.len ? ERR_AGAIN : OK;
    }
    if (len == 0) return OK;
    ssize_t n = sendSome(w, shared.out, len);
    if (n < 0) return ERR_IO;
    if ((size_t)n == len) return OK;
    keepRest(&w->unsent, shared.out + n, len - (size_t)n);
    return ERR_AGAIN;
}

static int bioWrite(BIO *bio, const char *bytes, size_t len, size_t *put) {
    tlsWire *w = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!shared.out) shared.out = newShared(OUT_BYTES);
    if (shared.out_len + len > OUT_BYTES && tlsWireFlush(w) == ERR_IO) return 0;
    if (w->unsent.len || len > OUT_BYTES) {
        keepRest(&w->unsent, bytes, len);
    } else {
        memcpy(shared.out + shared.out_len, bytes, len);
        shared.out_len += len;
    }
    *put = len;
    return 1;
}

/* ------------------------------------------------------------------ the BIO */

static long bioControl(BIO *bio, int what, long number, void *arg) {
    (void)number, (void)arg;
    const tlsWire *w = BIO_get_data(bio);
    if (what == BIO_CTRL_EOF) return w->eof;
    return what == BIO_CTRL_FLUSH; /* conn_tls.c flushes after its calls */
}

static BIO_METHOD *wire_method; /* NULL: no memory */

static void makeMethod(void) {
    wire_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tls wire");
    if (!wire_method) return;
    BIO_meth_set_read_ex(wire_method, bioRead);
    BIO_meth_set_write_ex(wire_method, bioWrite);
    BIO_meth_set_ctrl(wire_method, bioControl);
}

static BIO *newBio(tlsWire *w) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, makeMethod); /* cannot fail */
    BIO *bio = wire_method ? BIO_new(wire_method) : NULL;
    if (!bio) return NULL;
    BIO_set_data(bio, w);
    BIO_set_init(bio, 1);
    return bio;
}

status tlsWireAttach(tlsWire *w, SSL *ssl, int fd) {
    BIO *bio = newBio(w);
    if (!bio) return ERR_NO_MEMORY;
    w->fd = fd;
    bool reads = !BIO_get_ktls_recv(SSL_get_rbio(ssl)),
         writes = !BIO_get_ktls_send(SSL_get_wbio(ssl));
    if (reads && BIO_up_ref(bio)) SSL_set0_rbio(ssl, bio);
    if (writes && BIO_up_ref(bio)) SSL_set0_wbio(ssl, bio);
    BIO_free(bio);
    return OK;
}

void tlsWireClear(tlsWire *w) {
    memFree(w->unread.bytes);
    memFree(w->unsent.bytes);
    w->unread = w->unsent = (tlsRest){0};
}

size_t tlsWireMemory(const tlsWire *w) { return w->unread.len + w->unsent.len; }

#endif
