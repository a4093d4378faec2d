/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the main thread can do when I/O threads do all the rest: a whole server in this process with
 * one I/O thread, whose clients have a transport without sockets. Each read returns the next
 * requests at once, and each write takes all, so that the thread fills batches as fast as it can,
 * and the rings, the jobs and all else are those of a server.
 *
 *     rings [CLIENTS [REQUESTS]]
 *
 * Prints for each command and pipeline (requests a read) the main thread's CPU time in us per
 * request, with falling asleep and waking; how many requests a second it would allow; and how many
 * there were, which depends on the I/O thread, too. main.c is linked under the name serverMain();
 * its loop is ringsLoop(). Needs two processors. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/hot.h"
#include "net/client.h"
#include "request_text.h"

int serverMain(int argc, char **argv);
void ringsLoop(loop *l);

enum { KEYS = 1 << 20, PREPARED = KEYS, CLIENTS_MAX = 1000 };

static int clients = 50;
static uint64_t requests = 2000000;

/* ---- the transport ---- */

/* Requests that were written in advance, one after the other. */
typedef struct source {
    char *bytes;
    size_t *ends; /* of each */
    int pipeline;
} source;

static const source *current; /* changed by the main thread */

static ssize_t ringsRead(conn *c, void *dst, size_t cap) {
    static int at; /* there is one I/O thread */
    const source *s = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    if (at + s->pipeline > PREPARED) at = 0;
    size_t from = at ? s->ends[at - 1] : 0, len = s->ends[at + s->pipeline - 1] - from;
    check(len <= cap);
    memcpy(dst, s->bytes + from, len);
    at += s->pipeline;
    connNotePending(c);
    return (ssize_t)len;
}

static ssize_t ringsWritev(conn *c, const struct iovec *iov, int count) {
    (void)c;
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += iov[i].iov_len;
    return (ssize_t)sum;
}

static const connType rings_type = {.name = "rings", .read = ringsRead, .writev = ringsWritev};

/* ---- rows ---- */

static source *prepare(const char *text, int pipeline) {
    static requestText parsed;
    static requestNumbers numbers = {.range = KEYS, .random = 1};
    static char one[REQUEST_BYTES_MAX];
    source *s = memNew(source);
    size_t cap = PREPARED * 128, len = 0;
    s->bytes = memAlloc(cap);
    s->ends = memNewArray(size_t, PREPARED);
    s->pipeline = pipeline;
    requestTextInit(&parsed, text);
    for (int i = 0; i < PREPARED; i++) {
        size_t more = requestWrite(&parsed, &numbers, one);
        check(len + more <= cap);
        memcpy(s->bytes + len, one, more);
        s->ends[i] = len += more;
    }
    return s;
}

static int64_t threadCpuNs(void) {
    struct timespec t;
    int failed = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    check(failed == 0);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void runUntil(loop *l, uint64_t commands) {
    while (engineHot.commands < commands) (void)loopTurn(l, true);
}

static void runRow(loop *l, const char *name, const char *text, int pipeline) {
    __atomic_store_n(&current, prepare(text, pipeline), __ATOMIC_RELEASE);
    runUntil(l, engineHot.commands + requests / 4);
    uint64_t before = engineHot.commands;
    int64_t cpu_ns = threadCpuNs(), wall_us = clockMonoUs();
    runUntil(l, before + requests);
    double count = (double)(engineHot.commands - before);
    double cpu = (double)(threadCpuNs() - cpu_ns) / 1000 / count;
    double second = (double)(clockMonoUs() - wall_us) / 1e6;
    printf("%s|%d|%.3f|%.2f M/s|%.2f M/s\n", name, pipeline, cpu, 1 / cpu, count / second / 1e6);
    fflush(stdout);
}

static void startClients(void) {
    for (int i = 0; i < clients; i++) {
        int pair[2];
        int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
        check(failed == 0);
        check(clientNew(pair[0], &rings_type, SESSION_LOCAL) != NULL);
        ssize_t written = write(pair[1], "x", 1); /* never read: all clients are readable, once */
        check(written == 1);
    }
}

void ringsLoop(loop *l) {
    static const char set[] = "SET key:%r %a", get[] = "GET key:%r";
    static const int pipelines[] = {1, 16, 100};
    current = prepare("SET key:%n %a", 16);
    startClients();
    runUntil(l, engineHot.commands + KEYS);
    printf("command|pipeline|us|at most|reached\n");
    for (size_t i = 0; i < COUNT_OF(pipelines); i++) {
        runRow(l, "SET", set, pipelines[i]);
        runRow(l, "GET", get, pipelines[i]);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc > 1) clients = atoi(argv[1]);
    if (argc > 2) requests = strtoull(argv[2], NULL, 10);
    if (clients < 1 || clients > CLIENTS_MAX || !requests) {
        fprintf(stderr, "usage: rings [CLIENTS [REQUESTS]]\n");
        return 2;
    }
    static char path[64];
    snprintf(path, sizeof(path), "/tmp/rings.%d", (int)getpid());
    const char *words[] = {"rings", "--port",    "0",         "--unixsocket",
                           path,    "--save",    "",          "--io-threads",
                           "2",     "--logfile", "/dev/null", "--io-threads-always-active",
                           "yes"};
    char *server_argv[COUNT_OF(words) + 1] = {NULL};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        server_argv[i] = memDup(words[i], strlen(words[i]));
    return serverMain((int)COUNT_OF(words), server_argv);
}
