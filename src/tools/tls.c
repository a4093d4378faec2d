/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS of the clients (tls.h). */
#include "tools/tls.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_TLS
#include <valkey/tls.h>

static valkeyTLSContext *loaded;

static const char *errorText(const toolTls *tls, valkeyTLSContextError error) {
    switch (error) {
    case VALKEY_TLS_CTX_CA_CERT_LOAD_FAILED: return "Invalid CA Certificate File/Directory";
    case VALKEY_TLS_CTX_CLIENT_CERT_LOAD_FAILED: return "Invalid client certificate";
    case VALKEY_TLS_CTX_PRIVATE_KEY_LOAD_FAILED: return "Invalid private key";
    case VALKEY_TLS_CTX_CIPHERS_INVALID:
        return tls->ciphers ? "Error while configuring ciphers"
                            : "Error while setting cypher suites";
    default: return valkeyTLSContextGetError(error);
    }
}

void toolTlsLoad(const toolTls *tls) {
    if (loaded) return;
    valkeyTLSOptions options = {.cacert_filename = tls->cacert,
                                .capath = tls->cacertdir,
                                .cert_filename = tls->cert,
                                .private_key_filename = tls->key,
                                .server_name = tls->sni,
                                .verify_mode =
                                    tls->insecure ? VALKEY_TLS_VERIFY_NONE : VALKEY_TLS_VERIFY_PEER,
                                .ciphers = tls->ciphers,
                                .ciphersuites = tls->ciphersuites};
    valkeyTLSContextError error = VALKEY_TLS_CTX_NONE;
    valkeyInitOpenSSL();
    loaded = valkeyCreateTLSContextWithOptions(&options, &error);
    if (loaded) return;
    fprintf(stderr, "Could not negotiate a TLS connection: %s\n", errorText(tls, error));
    exit(1);
}

bool toolTlsBegin(valkeyContext *context) {
    return valkeyInitiateTLSWithContext(context, loaded) == VALKEY_OK;
}
#else
void toolTlsLoad(const toolTls *tls) {
    (void)tls;
    fputs("This program was built without TLS\n", stderr);
    exit(1);
}

bool toolTlsBegin(struct valkeyContext *context) {
    (void)context;
    return false;
}
#endif
