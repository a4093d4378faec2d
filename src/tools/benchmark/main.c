/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey-benchmark: measures throughput and latency of servers. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tools/benchmark/compare.h"
#include "tools/benchmark/fuzz.h"
#include "tools/benchmark/html.h"
#include "tools/benchmark/report.h"
#include "tools/benchmark/tests.h"

/* What all runs of the program share. */
typedef struct bench {
    const benchOptions *options;
    target target, other; /* `other`: of --compare */
    str page;             /* of --html */
} bench;

static void prepare(void *arg, int argc, const char **argv) {
    bench *b = arg;
    targetCommand(&b->target, argc, argv);
    if (b->options->compare.host) targetCommand(&b->other, argc, argv);
}

static void reportBytesPerKey(const bench *b, double bytes, double keys) {
    double bytes_after, keys_after;
    targetMemory(&b->target, &bytes_after, &keys_after);
    double added = keys_after - keys;
    if (added < 1) {
        printf("  no keys were added\n");
    } else {
        printf("  %.0f keys added, %.1f bytes per key\n", added, (bytes_after - bytes) / added);
    }
    printf("\n");
}

static void runOne(void *arg, workload *w) {
    bench *b = arg;
    const benchOptions *o = b->options;
    if (o->compare.host) {
        compareRun(o, &b->target, &b->other, w, &b->page);
        return;
    }
    double bytes = 0, keys = 0;
    if (o->bytes_per_key) targetMemory(&b->target, &bytes, &keys);
    runResult *r = runWorkload(o, &b->target, w, false);
    reportResult(o, &b->target, w, r);
    if (o->html) {
        htmlSeries one = {targetName(&b->target.nodes[0].at), reportRate(r), &r->latencies,
                          r->rates, r->rate_count};
        htmlAdd(&b->page, w->title, &one, 1, NULL);
    }
    memFree(r);
    if (o->bytes_per_key) reportBytesPerKey(b, bytes, keys);
}

/* All of standard input; the caller frees it. */
static char *readStdin(void) {
    str text = STR_EMPTY;
    char piece[4096];
    ssize_t n;
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0) strAppend(&text, piece, (size_t)n);
    char *copy = memDup(strText(&text), text.len);
    strFree(&text);
    return copy;
}

static void runCommand(bench *b) {
    const benchOptions *o = b->options;
    int argc = o->command_count;
    const char **argv = memNewArray(const char *, (size_t)argc + 1), *error;
    memcpy(argv, o->command, (size_t)argc * sizeof(*argv));
    str title = STR_EMPTY;
    for (int i = 0; i < argc; i++) strAppendFormat(&title, "%s%s", i ? " " : "", argv[i]);
    if (o->from_stdin) argv[argc++] = readStdin();
    operation *op = operationCompile(o, argc, argv, &error);
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    workload w;
    workloadInit(&w, strText(&title), (int64_t)op->len, op);
    do runOne(b, &w);
    while (o->loop);
    workloadClear(&w);
    strFree(&title);
    if (o->from_stdin) memFree((char *)argv[argc - 1]);
    memFree(argv);
}

static void runTests(bench *b) {
    const benchOptions *o = b->options;
    do {
        if (o->mix) {
            workload w;
            testsMix(o, &w);
            runOne(b, &w);
            workloadClear(&w);
        } else {
            testsRun(o, prepare, runOne, b);
        }
        if (!o->csv) printf("\n");
    } while (o->loop);
}

int main(int argc, char **argv) {
    static benchOptions o; /* its texts live as long as the program */
    signal(SIGPIPE, SIG_IGN);
    optionsParse(&o, argc, argv);
    bench b = {.options = &o};
    if (!o.keep_alive) {
        fprintf(stderr,
                "WARNING: Keepalive disabled. You probably need 'echo 1 > "
                "/proc/sys/net/ipv4/tcp_tw_reuse' for Linux and 'sudo sysctl -w "
                "net.inet.tcp.msl=1000' for Mac OS X in order to use a lot of clients/requests\n");
    }
    if (o.fuzz.on) return fuzzRun(&o);
    targetInit(&b.target, &o, o.server);
    if (o.compare.host) targetInit(&b.other, &o, o.compare);
    if (o.idle) runIdle(&o, &b.target);
    if (o.csv) {
        if (o.compare.host) {
            printf(
                "\"test\",\"rps_a\",\"rps_b\",\"ratio\",\"spread_a_percent\",\"spread_b_percent\","
                "\"p50_a_ms\",\"p50_b_ms\",\"p99_a_ms\",\"p99_b_ms\"\n");
        } else {
            reportCsvHeader();
        }
    }
    if (o.command_count > 0 || o.from_stdin) {
        runCommand(&b);
    } else {
        runTests(&b);
    }
    if (o.html) htmlWrite(&b.page, &o);
    strFree(&b.page);
    targetFree(&b.target);
    if (o.compare.host) targetFree(&b.other);
    return 0;
}
