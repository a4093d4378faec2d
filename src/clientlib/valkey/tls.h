/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS by OpenSSL for contexts of valkey.h and async.h; link libvalkey_tls. A program that writes to
 * connections which the server may close should ignore SIGPIPE. */
#ifndef VALKEY_TLS_H
#define VALKEY_TLS_H

#include <valkey/valkey.h>

#ifdef __cplusplus
extern "C" {
#endif

/* struct ssl_st is OpenSSL's SSL. */
struct ssl_st;

/* Certificates and keys; shared by any number of connections, and needed as long as they are
 * created. */
typedef struct valkeyTLSContext valkeyTLSContext;

typedef enum {
    VALKEY_TLS_CTX_NONE = 0,
    VALKEY_TLS_CTX_CREATE_FAILED,     /* of the context itself, or out of memory */
    VALKEY_TLS_CTX_CERT_KEY_REQUIRED, /* a certificate without its key, or the reverse */
    VALKEY_TLS_CTX_CA_CERT_LOAD_FAILED,
    VALKEY_TLS_CTX_CLIENT_CERT_LOAD_FAILED,
    VALKEY_TLS_CTX_CLIENT_DEFAULT_CERT_FAILED, /* the system's CA certificates */
    VALKEY_TLS_CTX_PRIVATE_KEY_LOAD_FAILED,
    VALKEY_TLS_CTX_OS_CERTSTORE_OPEN_FAILED,
    VALKEY_TLS_CTX_OS_CERT_ADD_FAILED,
    VALKEY_TLS_CTX_CIPHERS_INVALID
} valkeyTLSContextError;

/* Values of OpenSSL's SSL_VERIFY_*. */
#define VALKEY_TLS_VERIFY_NONE 0x00
#define VALKEY_TLS_VERIFY_PEER 0x01
#define VALKEY_TLS_VERIFY_FAIL_IF_NO_PEER_CERT 0x02
#define VALKEY_TLS_VERIFY_CLIENT_ONCE 0x04
#define VALKEY_TLS_VERIFY_POST_HANDSHAKE 0x08

/* To be zeroed first; NULL: not given. Without a CA file or folder those of the system are used. */
typedef struct {
    const char *cacert_filename;
    const char *capath;
    const char *cert_filename;
    const char *private_key_filename;
    const char *server_name;  /* the name asked for (SNI) */
    int verify_mode;          /* VALKEY_TLS_VERIFY_* */
    const char *ciphers;      /* up to TLS 1.2; the format of OpenSSL */
    const char *ciphersuites; /* TLS 1.3 */
} valkeyTLSOptions;

/* A text for an error. */
LIBVALKEY_API const char *valkeyTLSContextGetError(valkeyTLSContextError error);
/* Initialises OpenSSL; for programs that do not do it themselves. */
LIBVALKEY_API int valkeyInitOpenSSL(void);
/* NULL on failure, with the cause in `*error`, which may be NULL. The server's certificate is
 * verified. */
LIBVALKEY_API valkeyTLSContext *valkeyCreateTLSContext(
    const char *cacert_filename, const char *capath, const char *cert_filename,
    const char *private_key_filename, const char *server_name, valkeyTLSContextError *error);
LIBVALKEY_API valkeyTLSContext *valkeyCreateTLSContextWithOptions(valkeyTLSOptions *options,
                                                                  valkeyTLSContextError *error);
LIBVALKEY_API void valkeyFreeTLSContext(valkeyTLSContext *context);

/* Begins TLS on a connection on which nothing was sent. A blocking context completes the handshake;
 * another one continues it when data is read and written. VALKEY_OK, or VALKEY_ERR with c->err. */
LIBVALKEY_API int valkeyInitiateTLSWithContext(valkeyContext *c, valkeyTLSContext *context);
/* The same with an SSL of the caller's, which the context frees, on failure too. */
LIBVALKEY_API int valkeyInitiateTLS(valkeyContext *c, struct ssl_st *ssl);

#ifdef __cplusplus
}
#endif

#endif
