/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What tls_context.c and conn_tls.c share. */
#ifndef IO_TLS_PRIV_H
#define IO_TLS_PRIV_H

#include <openssl/ssl.h>

#include "io/tls.h"

struct tlsContext {
    SSL_CTX *server, *client; /* counted by OpenSSL */
    tlsCertificate certificates[TLS_CA + 1];
};

/* The text of OpenSSL's first queued error; empties the queue. */
void tlsErrorText(char *dst, size_t cap);

#endif
