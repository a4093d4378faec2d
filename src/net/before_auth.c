/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of clients that have not logged in. Together they have a budget (client-memory-before-auth, and some
 * KB for each), because anybody can connect; beyond it the largest are closed. It does not count for maxmemory, so
 * that nobody without a password can have keys evicted. Invariant: `held` is the sum of `before_auth` of all clients,
 * which is 0 for those that have logged in or are being closed. Main thread only. */
#include <stdlib.h>

#include "base/base.h"
#include "engine/memory.h"
#include "net/client.h"
#include "net/net_priv.h"

/* What each client may have without using the common budget. */
enum { OWN_BYTES = 4096 };

static struct {
    size_t held; /* bytes */
    size_t clients;
} all_before_auth;

static void count(client *cl, size_t bytes) {
    all_before_auth.held += bytes - cl->before_auth;
    all_before_auth.clients += (size_t)(bytes != 0) - (size_t)(cl->before_auth != 0);
    cl->before_auth = bytes;
    memorySetBeforeAuth(all_before_auth.held);
}

void beforeAuthUncount(client *cl) {
    if (unlikely(cl->before_auth)) count(cl, 0);
}

static int compareHeld(const void *a, const void *b) {
    const client *x = *(client *const *)a, *y = *(client *const *)b;
    return (x->before_auth < y->before_auth) - (x->before_auth > y->before_auth);
}

static void closeVictim(client *cl) {
    str line = STR_EMPTY;
    if (LOG_VERBOSE >= logLevelNow) {
        clientDescribeForLog(cl, &line);
        logVerbose("Closing client that has not logged in: %s", strText(&line));
        strFree(&line);
    }
    netStats()->input_limit_closed++;
    sessionCloseNow(&cl->session);
    readerDropInput(cl);
}

/* Closes the largest clients until an eighth of the budget is free, so that this is not repeated for each request. */
static void closeLargest(size_t budget) {
    list *all = clientAll();
    client **victims = memNewArray(client *, all->count);
    size_t count = 0, closed = 0, held = all_before_auth.held;
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (cl->before_auth) victims[count++] = cl;
    }
    qsort(victims, count, sizeof(*victims), compareHeld);
    while (closed < count && all_before_auth.held > budget - budget / 8)
        closeVictim(victims[closed++]);
    memFree(victims);
    logWarning("Closed %zu clients that have not logged in: %zu had more than "
               "client-memory-before-auth together, %zu bytes",
               closed, count, held);
}

void beforeAuthRecount(client *cl) {
    count(cl, sizeof(*cl) + clientInputMemory(cl) + outbufMemory(&cl->session.out));
    if (!netConf.client_memory_before_auth) return;
    size_t budget = (size_t)netConf.client_memory_before_auth + all_before_auth.clients * OWN_BYTES;
    if (unlikely(all_before_auth.held > budget)) closeLargest(budget);
}
