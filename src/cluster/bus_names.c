/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks up host names that nodes announce as their addresses, and caches the results for ten
 * seconds.
 *
 * Invariant: one name is looked up at a time. Replication uses the same resolver, so a lookup that
 * gets no reply delays replication by one name at most. Main thread only. */
#include "cluster/bus_names.h"

#include <stdio.h>

#include "base/base.h"
#include "bus/bus.h"
#include "io/net_addr.h"
#include "io/resolve.h"

enum {
    NAMES_MAX = 64, /* more are looked up more often */
    FRESH_MS = 10000,
};

typedef struct knownName {
    char host[BUS_IP_MAX];
    char addr[NET_ADDR_TEXT_MAX]; /* empty: it has none */
    int64_t found_ms;
} knownName;

static struct {
    knownName known[NAMES_MAX];
    int count, next; /* `next`: is replaced by the next one */
    /* The one that is being looked up; empty: none. One at a time, so that a resolver that does not
     * answer delays replication, which uses it too, by one name at most. */
    char asked[BUS_IP_MAX];
    int64_t asked_ms;
} names;

static knownName *find(const char *host) {
    check(names.count <= NAMES_MAX);
    for (int i = 0; i < names.count; i++) {
        if (strcmp(names.known[i].host, host) == 0) return &names.known[i];
    }
    return NULL;
}

static void found(void *arg, const char *addr) {
    (void)arg; /* one at a time */
    check(names.asked[0]);
    knownName *k = find(names.asked);
    if (!k) {
        k = &names.known[names.next];
        names.next = (names.next + 1) % NAMES_MAX;
        if (names.count < NAMES_MAX) names.count++;
    }
    *k = (knownName){.found_ms = names.asked_ms};
    memcpy(k->host, names.asked, sizeof(k->host));
    snprintf(k->addr, sizeof(k->addr), "%s", addr ? addr : "");
    names.asked[0] = '\0';
}

const char *busNameAddress(const char *host, int64_t now_ms) {
    check(strlen(host) < BUS_IP_MAX);
    if (netAddrIsValid(host)) return host;
    knownName *k = find(host);
    if ((!k || now_ms - k->found_ms >= FRESH_MS) && !names.asked[0]) {
        snprintf(names.asked, sizeof(names.asked), "%s", host);
        names.asked_ms = now_ms;
        resolveHost(host, found, NULL);
    }
    return k && k->addr[0] ? k->addr : NULL;
}
