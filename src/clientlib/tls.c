/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS as a transport of contexts, by OpenSSL. A library of its own, so it uses only what libvalkey
 * exports. */
#ifdef HAVE_TLS

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <valkey/async.h>
#include <valkey/tls.h>

#include "clientlib/client_priv.h"

struct valkeyTLSContext {
    SSL_CTX *ssl_ctx;
    char *server_name; /* or NULL */
};

/* c->privctx of a connection. */
typedef struct tlsState {
    valkeyContextFuncs funcs; /* those of the socket, but for the transfer */
    SSL *ssl;
    /* What a read or write waits for, if it is the other direction. */
    bool read_wants_write, write_wants_read;
} tlsState;

static void setError(valkeyContext *c, int type, const char *text) {
    c->err = type;
    snprintf(c->errstr, sizeof(c->errstr), "%s", text ? text : strerror(errno));
}

/* ------------------------------------------------------------------ contexts */

const char *valkeyTLSContextGetError(valkeyTLSContextError error) {
    switch (error) {
    case VALKEY_TLS_CTX_NONE: return "No error";
    case VALKEY_TLS_CTX_CREATE_FAILED: return "Failed to create OpenSSL SSL_CTX";
    case VALKEY_TLS_CTX_CERT_KEY_REQUIRED:
        return "Client cert and key must both be specified or skipped";
    case VALKEY_TLS_CTX_CA_CERT_LOAD_FAILED: return "Failed to load CA Certificate or CA Path";
    case VALKEY_TLS_CTX_CLIENT_CERT_LOAD_FAILED: return "Failed to load client certificate";
    case VALKEY_TLS_CTX_CLIENT_DEFAULT_CERT_FAILED:
        return "Failed to set client default certificate path";
    case VALKEY_TLS_CTX_PRIVATE_KEY_LOAD_FAILED: return "Failed to load private key";
    case VALKEY_TLS_CTX_OS_CERTSTORE_OPEN_FAILED: return "Failed to open system certificate store";
    case VALKEY_TLS_CTX_OS_CERT_ADD_FAILED:
        return "Failed to add CA certificates obtained from system to the SSL context";
    case VALKEY_TLS_CTX_CIPHERS_INVALID: return "Failed to set the list of ciphers";
    default: return "Unknown error code";
    }
}

int valkeyInitOpenSSL(void) { return OPENSSL_init_ssl(0, NULL) == 1 ? VALKEY_OK : VALKEY_ERR; }

void valkeyFreeTLSContext(valkeyTLSContext *context) {
    if (!context) return;
    SSL_CTX_free(context->ssl_ctx);
    vk_free(context->server_name);
    vk_free(context);
}

static valkeyTLSContextError load(SSL_CTX *ctx, const valkeyTLSOptions *o) {
    if (o->ciphers && SSL_CTX_set_cipher_list(ctx, o->ciphers) != 1)
        return VALKEY_TLS_CTX_CIPHERS_INVALID;
    if (o->ciphersuites && SSL_CTX_set_ciphersuites(ctx, o->ciphersuites) != 1)
        return VALKEY_TLS_CTX_CIPHERS_INVALID;
    if (o->cacert_filename || o->capath) {
        if (SSL_CTX_load_verify_locations(ctx, o->cacert_filename, o->capath) != 1)
            return VALKEY_TLS_CTX_CA_CERT_LOAD_FAILED;
    } else if (SSL_CTX_set_default_verify_paths(ctx) != 1) {
        return VALKEY_TLS_CTX_CLIENT_DEFAULT_CERT_FAILED;
    }
    if (!o->cert_filename) return VALKEY_TLS_CTX_NONE;
    if (SSL_CTX_use_certificate_chain_file(ctx, o->cert_filename) != 1)
        return VALKEY_TLS_CTX_CLIENT_CERT_LOAD_FAILED;
    if (SSL_CTX_use_PrivateKey_file(ctx, o->private_key_filename, SSL_FILETYPE_PEM) != 1)
        return VALKEY_TLS_CTX_PRIVATE_KEY_LOAD_FAILED;
    return VALKEY_TLS_CTX_NONE;
}

valkeyTLSContext *valkeyCreateTLSContextWithOptions(valkeyTLSOptions *options,
                                                    valkeyTLSContextError *error) {
    valkeyTLSContextError result = VALKEY_TLS_CTX_CREATE_FAILED;
    valkeyTLSContext *context = NULL;
    if (!options->cert_filename != !options->private_key_filename) {
        result = VALKEY_TLS_CTX_CERT_KEY_REQUIRED;
        goto fail;
    }
    context = vk_calloc(1, sizeof(*context));
    if (!context) goto fail;
    if (options->server_name && !(context->server_name = vk_strdup(options->server_name)))
        goto fail;
    context->ssl_ctx = SSL_CTX_new(TLS_client_method());
    if (!context->ssl_ctx) goto fail;
    SSL_CTX_set_min_proto_version(context->ssl_ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(context->ssl_ctx, options->verify_mode, NULL);
    result = load(context->ssl_ctx, options);
    if (result != VALKEY_TLS_CTX_NONE) goto fail;
    if (error) *error = VALKEY_TLS_CTX_NONE;
    return context;
fail:
    ERR_clear_error();
    valkeyFreeTLSContext(context);
    if (error) *error = result;
    return NULL;
}

valkeyTLSContext *valkeyCreateTLSContext(const char *cacert_filename, const char *capath,
                                         const char *cert_filename,
                                         const char *private_key_filename, const char *server_name,
                                         valkeyTLSContextError *error) {
    valkeyTLSOptions options = {
        .cacert_filename = cacert_filename,
        .capath = capath,
        .cert_filename = cert_filename,
        .private_key_filename = private_key_filename,
        .server_name = server_name,
        .verify_mode = VALKEY_TLS_VERIFY_PEER,
    };
    return valkeyCreateTLSContextWithOptions(&options, error);
}

/* ------------------------------------------------------------------ transfer */

/* Result of a read or write that returned `n`: bytes, 0 to try later, or -1 with c->err. `*other`
 * is set if it waits for `wants`. */
static ssize_t transferred(valkeyContext *c, int n, int wants, bool *other) {
    tlsState *s = c->privctx;
    *other = false;
    if (n > 0) return n;
    int saved = errno, error = SSL_get_error(s->ssl, n);
    errno = saved;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        *other = error == wants;
        if (!(c->flags & VALKEY_BLOCK) || saved == EINTR) return 0;
        errno = EAGAIN; /* the time limit of the socket */
        setError(c, VALKEY_ERR_IO, NULL);
    } else if (error == SSL_ERROR_ZERO_RETURN ||
               (error == SSL_ERROR_SYSCALL && (n == 0 || saved == 0))) {
        setError(c, VALKEY_ERR_EOF, "Server closed the connection");
    } else if (error == SSL_ERROR_SYSCALL) {
        setError(c, VALKEY_ERR_IO, NULL);
    } else {
        unsigned long code = ERR_peek_last_error();
        const char *text = ERR_reason_error_string(code);
        bool eof = ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
        if (eof) {
            setError(c, VALKEY_ERR_EOF, "Server closed the connection");
        } else {
            setError(c, VALKEY_ERR_IO, text ? text : "TLS error");
        }
    }
    ERR_clear_error();
    return -1;
}

static ssize_t tlsRead(valkeyContext *c, char *buf, size_t cap) {
    tlsState *s = c->privctx;
    errno = 0;
    int n = SSL_read(s->ssl, buf, cap > INT_MAX ? INT_MAX : (int)cap);
    return transferred(c, n, SSL_ERROR_WANT_WRITE, &s->read_wants_write);
}

static ssize_t tlsWriteBytes(valkeyContext *c, const char *buf, size_t len) {
    tlsState *s = c->privctx;
    if (len == 0) return 0;
    errno = 0;
    int n = SSL_write(s->ssl, buf, len > INT_MAX ? INT_MAX : (int)len);
    return transferred(c, n, SSL_ERROR_WANT_READ, &s->write_wants_read);
}

static ssize_t tlsWrite(valkeyContext *c) { return tlsWriteBytes(c, c->obuf, vkTextLen(c->obuf)); }

static int tlsHasPending(valkeyContext *c) {
    tlsState *s = c->privctx;
    return SSL_pending(s->ssl) > 0;
}

static int tlsWriteWaits(valkeyContext *c) { return ((tlsState *)c->privctx)->write_wants_read; }

static void tlsFree(void *privctx) {
    tlsState *s = privctx;
    SSL_free(s->ssl);
    vk_free(s);
}

/* Readable: a write that was waiting for this comes first. */
static void tlsAsyncRead(valkeyAsyncContext *ac) {
    tlsState *s = ac->c.privctx;
    if (s->write_wants_read) {
        s->write_wants_read = false;
        if (ac->ev.addWrite) ac->ev.addWrite(ac->ev.data);
    }
    valkeyAsyncRead(ac);
}

static void tlsAsyncWrite(valkeyAsyncContext *ac) {
    tlsState *s = ac->c.privctx;
    if (s->read_wants_write) {
        /* The next read continues it: what is decoded may not make the socket readable. */
        s->read_wants_write = false;
        valkeyAsyncRead(ac);
        return;
    }
    valkeyAsyncWrite(ac);
}

/* ------------------------------------------------------------------ handshake */

/* The first step; a blocking context makes all. */
static int handshake(valkeyContext *c, SSL *ssl) {
    ERR_clear_error();
    errno = 0;
    int n = SSL_connect(ssl);
    if (n == 1) return VALKEY_OK;
    int saved = errno, error = SSL_get_error(ssl, n);
    bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (waits && !(c->flags & VALKEY_BLOCK)) return VALKEY_OK;
    char text[128];
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    if (waits) why = strerror(EAGAIN);
    if (error == SSL_ERROR_SYSCALL) why = saved ? strerror(saved) : "Server closed the connection";
    snprintf(text, sizeof(text), "SSL_connect failed: %s", why ? why : "unknown");
    setError(c, VALKEY_ERR_IO, text);
    ERR_clear_error();
    errno = saved;
    return VALKEY_ERR;
}

int valkeyInitiateTLS(valkeyContext *c, SSL *ssl) {
    if (c->privctx) {
        setError(c, VALKEY_ERR_OTHER, "valkeyContext was already associated");
        SSL_free(ssl);
        return VALKEY_ERR;
    }
    tlsState *s = vk_calloc(1, sizeof(*s));
    if (!s) {
        setError(c, VALKEY_ERR_OOM, "Out of memory");
        SSL_free(ssl);
        return VALKEY_ERR;
    }
    s->ssl = ssl;
    s->funcs = *c->funcs;
    s->funcs.free_privctx = tlsFree;
    s->funcs.async_read = tlsAsyncRead;
    s->funcs.async_write = tlsAsyncWrite;
    s->funcs.read = tlsRead;
    s->funcs.read_zc = NULL;
    s->funcs.read_zc_done = NULL;
    s->funcs.write = tlsWrite;
    s->funcs.write_bytes = tlsWriteBytes;
    s->funcs.has_pending = tlsHasPending;
    s->funcs.write_waits = tlsWriteWaits;
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_connect_state(ssl);
    if (SSL_set_fd(ssl, c->fd) != 1 || handshake(c, ssl) != VALKEY_OK) {
        if (!c->err) setError(c, VALKEY_ERR_OTHER, "SSL_set_fd failed");
        tlsFree(s);
        return VALKEY_ERR;
    }
    c->privctx = s;
    c->funcs = &s->funcs;
    return VALKEY_OK;
}

int valkeyInitiateTLSWithContext(valkeyContext *c, valkeyTLSContext *context) {
    SSL *ssl = context ? SSL_new(context->ssl_ctx) : NULL;
    if (!ssl) {
        setError(c, VALKEY_ERR_OTHER, "Couldn't create new SSL instance");
        return VALKEY_ERR;
    }
    if (context->server_name && SSL_set_tlsext_host_name(ssl, context->server_name) != 1) {
        setError(c, VALKEY_ERR_OTHER, "Failed to set server_name/SNI");
        SSL_free(ssl);
        return VALKEY_ERR;
    }
    return valkeyInitiateTLS(c, ssl);
}

#endif
