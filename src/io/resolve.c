/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking up host names (resolve.h). */
#include "io/resolve.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "io/bio.h"

typedef struct resolveJob {
    char *host;
    resolveProc *done;
    void *arg;
    char addr[NET_ADDR_TEXT_MAX]; /* set by the worker */
} resolveJob;

static bool (*replaced)(const char *host, char addr[NET_ADDR_TEXT_MAX]);

void resolveSetLookup(bool (*lookup)(const char *host, char addr[NET_ADDR_TEXT_MAX])) {
    replaced = lookup;
}

bool resolveHostNow(const char *host, char addr[NET_ADDR_TEXT_MAX]) {
    if (replaced) return replaced(host, addr);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) return false;
    bool named = getnameinfo(found->ai_addr, found->ai_addrlen, addr, NET_ADDR_TEXT_MAX, NULL, 0,
                             NI_NUMERICHOST) == 0;
    freeaddrinfo(found);
    return named;
}

static int runJob(void *arg) {
    resolveJob *job = arg;
    return resolveHostNow(job->host, job->addr) ? 0 : 1;
}

static void endJob(void *arg, int failed) {
    resolveJob *job = arg;
    job->done(job->arg, failed ? NULL : job->addr);
    memFree(job->host);
    memFree(job);
}

void resolveHost(const char *host, resolveProc *done, void *arg) {
    if (netAddrIsValid(host)) {
        done(arg, host);
        return;
    }
    resolveJob *job = memNew(resolveJob);
    *job = (resolveJob){.host = memDup(host, strlen(host)), .done = done, .arg = arg};
    bioSubmitTask(BIO_RESOLVE, runJob, endJob, job);
}
