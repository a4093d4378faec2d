/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS 1.2 and 1.3 by OpenSSL 3: contexts built from files, and a connection type. A build without
 * TLS (BUILD_TLS=no) has the same functions; contexts cannot be created then.
 *
 * A connection keeps the context it began with; a new one concerns later connections. Contexts may
 * be built on any thread, connections belong to the thread that owns their `conn`. */
#ifndef IO_TLS_H
#define IO_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "io/conn.h"

/* From where a context is built. Texts are borrowed; "" is not configured. */
typedef struct tlsSettings {
    const char *cert_file, *key_file;
    slice key_pass;
    const char *alt_cert_file, *alt_key_file; /* a second pair, of another type of keys, which
                                                 OpenSSL chooses if the client prefers it */
    slice alt_key_pass;
    const char *client_cert_file,
        *client_key_file; /* for outgoing connections; "": the pair above */
    slice client_key_pass;
    const char *ca_cert_file, *ca_cert_dir;
    const char *dh_params_file;
    const char *protocols, *ciphers, *ciphersuites; /* "": the defaults of OpenSSL, 1.2 and 1.3 */
    bool prefer_server_ciphers;
    bool session_caching;
    int session_cache_size, session_cache_timeout_s;
    bool needs_ca; /* peers are verified */
} tlsSettings;

/* What is known of a certificate. */
typedef struct tlsCertificate {
    char serial[64];      /* upper-case hexadecimal; "none" if there is no certificate */
    int64_t expires_at_s; /* Unix time */
} tlsCertificate;

typedef struct tlsContext tlsContext;

bool tlsIsSupported(void);
/* Reads all files. NULL with the reason (for the log) in `why`. ANY_THREAD. */
tlsContext *tlsContextNew(const tlsSettings *settings, reason *why) MUST_USE;
/* Connections continue to use it. */
void tlsContextFree(tlsContext *context);
typedef enum tlsRole { TLS_SERVER, TLS_SERVER_ALT, TLS_CLIENT, TLS_CA } tlsRole;
/* The certificate of a role; of the CA's certificates the one that expires first. */
const tlsCertificate *tlsContextCertificate(const tlsContext *context, tlsRole role);

enum { TLS_FINGERPRINT_SIZE = 32 };
/* A hash of the contents of all files and of the names in the CA folder. Fails if a file cannot be
 * read. ANY_THREAD. */
status tlsFingerprint(const tlsSettings *settings, uint8_t out[TLS_FINGERPRINT_SIZE],
                      reason *why) MUST_USE;

/* ------------------------------------------------------------------ connections */

extern const connType connTls;

typedef enum tlsVerify { TLS_VERIFY_NONE, TLS_VERIFY_REQUIRED, TLS_VERIFY_OPTIONAL } tlsVerify;

/* After connInit() with connTls, before its first event: the side that accepted; `verify`: whether
 * the peer must have a certificate. */
status tlsAccept(conn *c, const tlsContext *context, tlsVerify verify) MUST_USE;
/* The side that connects. The peer's certificate is verified. `name` is the host or address that
 * was named, NULL if it is not known: the peer is asked for the certificate of that host, and if
 * `check_name`, it must be issued for it. */
status tlsConnect(conn *c, const tlsContext *context, const char *name, bool check_name) MUST_USE;

/* True if the peer has a certificate, which was verified in this session or a resumed one. */
bool tlsPeerIsVerified(const conn *c);
/* The first common name of the peer's certificate; false if it has none. May contain any byte. */
bool tlsPeerCommonName(const conn *c, str *out);
/* The peer's certificate in PEM; false if it has none. */
bool tlsPeerPem(const conn *c, str *out);
/* Visits the URIs of its alternative names until `visit` returns true. */
void tlsPeerUris(const conn *c, bool (*visit)(void *arg, slice uri), void *arg);
/* Memory of the connection's TLS state in bytes, estimated. */
size_t tlsMemory(const conn *c);

/* DEBUG FORCE-TLS-WRITE-ERROR: writes act as if the socket were not writable. */
void tlsBlockWrites(bool on);

#endif
