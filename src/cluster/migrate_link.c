/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections of MIGRATE that are kept for the next call (migrate_link.h): an array in the order in
 * which they became idle. */
#include "cluster/migrate_link.h"

#include <string.h>

#include "base/alloc.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "net/net.h"

static struct {
    migrateLink *links[MIGRATE_LINKS_MAX];
    int count;
} idle;

static migrateLink *takeAt(int i) {
    migrateLink *link = idle.links[i];
    idle.count--;
    memmove(idle.links + i, idle.links + i + 1, (size_t)(idle.count - i) * sizeof(*idle.links));
    return link;
}

migrateLink *migrateLinkTake(const char *host, int port) {
    for (int i = idle.count; i-- > 0;) {
        if (idle.links[i]->port != port || strcmp(idle.links[i]->host, host) != 0) continue;
        migrateLink *link = takeAt(i);
        link->used = true;
        return link;
    }
    return NULL;
}

migrateLink *migrateLinkOpen(const char *host, const char *addr, int port, loop *l, reason *why) {
    int fd = netConnectTcp(addr, port, "", false, why);
    if (fd < 0) return NULL;
    (void)netSetNoDelay(fd, true); /* without it the transfer is slower */
    migrateLink *link = memCalloc(1, sizeof(*link));
    link->host = memDup(host, strlen(host));
    link->port = port;
    link->db = -1;
    bool tls = netTlsForCluster();
    connInit(&link->conn, tls ? &connTls : &connTcp, l, fd, CONN_CONNECTING);
    if (!tls || netTlsConnect(&link->conn, host) == OK) return link;
    (void)reasonSet(why, ERR_DENIED, "TLS is not configured");
    migrateLinkClose(link);
    return NULL;
}

void migrateLinkKeep(migrateLink *link, int64_t now_ms) {
    if (connOnRead(&link->conn, NULL) != OK || connOnWrite(&link->conn, NULL) != OK) {
        migrateLinkClose(link);
        return;
    }
    if (idle.count == MIGRATE_LINKS_MAX) migrateLinkClose(takeAt(0));
    link->idle_since_ms = now_ms;
    link->user = NULL;
    idle.links[idle.count++] = link;
}

void migrateLinkClose(migrateLink *link) {
    connClose(&link->conn);
    memFree(link->host);
    memFree(link);
}

void migrateLinksCloseIdle(int64_t now_ms) {
    while (idle.count && now_ms - idle.links[0]->idle_since_ms >= MIGRATE_LINK_IDLE_MS)
        migrateLinkClose(takeAt(0));
}

int migrateLinkCount(void) { return idle.count; }
