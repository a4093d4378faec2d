/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of clients that have not logged in. Together they have a budget
 * (client-memory-before-auth, and some KB for each), because anybody can connect; beyond it the
 * largest are closed. It does not count for maxmemory, so that nobody without a password can have
 * keys evicted. Invariant: `held` is the sum of `counted` of all clients with `before_auth`, which
 * those that have logged in or are being closed have not. Main thread only. */
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
} before_auth;

void beforeAuthSubtract(client *cl) {
    hotCheck(threadIsMain());
    check(cl->before_auth);
    cl->before_auth = 0;
    before_auth.held -= cl->counted;
    before_auth.clients--;
    memorySetBeforeAuth(before_auth.held);
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

/* Closes the largest clients until an eighth of the budget is free, so that this is not repeated
 * for each request. */
static void closeLargest(size_t budget) {
    hotCheck(before_auth.held > budget);
    list *all = clientAll();
    client **victims = memNewArray(client *, all->count);
    size_t count = 0, closed = 0, held = before_auth.held;
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (cl->before_auth) victims[count++] = cl;
    }
    qsort(victims, count, sizeof(*victims), clientCompareCounted);
    while (closed < count && before_auth.held > budget - budget / 8) closeVictim(victims[closed++]);
    memFree(victims);
    logWarning("Closed %zu clients that have not logged in: %zu had more than "
               "client-memory-before-auth together, %zu bytes",
               closed, count, held);
}

void beforeAuthAdd(client *cl) {
    hotCheck(threadIsMain());
    check(!cl->before_auth);
    cl->before_auth = 1;
    before_auth.held += cl->counted;
    before_auth.clients++;
    memorySetBeforeAuth(before_auth.held);
    if (!netConf.client_memory_before_auth) return;
    size_t budget = (size_t)netConf.client_memory_before_auth + before_auth.clients * OWN_BYTES;
    if (unlikely(before_auth.held > budget)) closeLargest(budget);
}
