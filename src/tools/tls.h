/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The TLS options that the clients on the command line have in common. */
#ifndef TOOLS_TLS_H
#define TOOLS_TLS_H

#include <stdbool.h>

struct valkeyContext;

/* Texts are borrowed from the command line; NULL: not given. */
typedef struct toolTls {
    bool on, insecure;
    const char *sni, *cacert, *cacertdir, *cert, *key, *ciphers, *ciphersuites;
} toolTls;

/* Loads the certificates, the first time; ends the program with an error if they are not valid.
 * Main thread. */
void toolTlsLoad(const toolTls *tls);
/* Begins TLS on a connected context, after toolTlsLoad(). False after a failure, which is in the
 * context. ANY_THREAD. */
bool toolTlsBegin(struct valkeyContext *context);

#endif
