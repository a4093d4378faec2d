/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections to the targets of MIGRATE, kept open for a while. Main thread. */
#ifndef CLUSTER_MIGRATE_LINK_H
#define CLUSTER_MIGRATE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "io/conn.h"

enum { MIGRATE_LINKS_MAX = 64, MIGRATE_LINK_IDLE_MS = 10000 };

typedef struct migrateLink {
    conn conn;
    char *host; /* as in the command */
    int port;
    int db;     /* selected there; -1: unknown */
    bool used;  /* was kept open from an earlier transfer */
    void *user; /* of the transfer */
    int64_t idle_since_ms;
} migrateLink;

/* Takes a kept connection out of the cache; NULL: there is none. */
migrateLink *migrateLinkTake(const char *host, int port);
/* Connects to a literal address. NULL with the reason in `why`. */
migrateLink *migrateLinkOpen(const char *host, const char *addr, int port, loop *l, reason *why);
/* Keeps an idle connection. */
void migrateLinkKeep(migrateLink *link, int64_t now_ms);
void migrateLinkClose(migrateLink *link);
void migrateLinksCloseIdle(int64_t now_ms);
int migrateLinkCount(void);

#endif
