/* SPDX-License-Identifier: BSD-3-Clause
 *
 * URIs of servers on the command line: valkey://user:password@host:port/db, redis:// as well,
 * valkeys:// and rediss:// for TLS. User, password, port and db are optional. */
#ifndef TOOLS_SERVER_URI_H
#define TOOLS_SERVER_URI_H

#include <stdbool.h>

#include "base/slice.h"

/* What the URI has; NULL and -1 for what it has not. The texts are allocated and belong to the
 * caller. */
typedef struct serverUri {
    bool tls;
    char *user, *password; /* with %XX decoded */
    char *host;            /* an IPv6 address without its brackets */
    int port, db;          /* as atoi() reads them */
} serverUri;

/* Returns NULL, or what is wrong for the user. The texts of `out` are to be freed in both cases. */
const char *serverUriParse(const char *uri, serverUri *out);
void serverUriClear(serverUri *uri);
/* The address within brackets, as in "[::1]"; other names unchanged. */
slice serverHostBare(slice host);

#endif
