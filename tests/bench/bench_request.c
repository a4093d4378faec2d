/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a request costs between the bytes read and the bytes to write: parsing, lookup, prefetch,
 * admission, command, reply, statistics; without a socket. And what single items on that path cost,
 * for the budget table in docs/measurements.md. Prints nanoseconds: the least of many short rounds,
 * which other programs seldom disturb.
 *
 *   bench_request [KEYS]     in millions (default 1) */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/histogram.h"
#include "base/random.h"
#include "cmd/procs.h"
#include "config/config.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "resp/resp.h"
#include "store/store.h"
#include "bench.h"

static int key_count = 1000000;
enum { PIPELINE = 64, ROUNDS = 7, TIMES = 2000000, SLICES = 300, BATCHES = 100 };

#define SPEC(name_, proc_, arity_, key_, flags_) \
    { \
        .name = (name_), .proc = (proc_), .arity = (arity_), .first_key = (key_), \
        .last_key = (key_), .key_step = (key_), .flags = (flags_), .group = "bench", \
        .summary = "", .since = "1" \
    }

static const commandSpec specs[] = {
    SPEC("ping", pingCommand, -1, 0, CMD_FAST | CMD_QUICK),
    SPEC("get", getCommand, 2, 1, CMD_FAST | CMD_QUICK | CMD_READONLY),
    SPEC("set", setCommand, -3, 1, CMD_QUICK | CMD_WRITE),
};

static char input[PIPELINE * 128 + REQUEST_READ_SLACK];

static size_t fill(const char *kind) {
    size_t len = 0;
    for (int i = 0; i < PIPELINE; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key:%012d", (int)randomUniform((uint64_t)key_count));
        if (!strcmp(kind, "ping")) {
            len += (size_t)sprintf(input + len, "*1\r\n$4\r\nPING\r\n");
        } else if (!strcmp(kind, "get")) {
            len += (size_t)sprintf(input + len, "*2\r\n$3\r\nGET\r\n$16\r\n%s\r\n", key);
        } else {
            len += (size_t)sprintf(
                input + len, "*3\r\n$3\r\nSET\r\n$16\r\n%s\r\n$16\r\nxxxxxxxxxxxxxxxx\r\n", key);
        }
    }
    return len;
}

static requestBatch batch;

/* One batch from bytes to reply bytes; adds the time of its steps. */
static void runOnce(session *s, size_t len, int64_t steps[3]) {
    requestParser parser = {0};
    requestLimits limits = {
        .bulk_max = 512 << 20, .multibulk_max = INT32_MAX, .authenticated = true};
    requestError error;
    size_t pos = 0;
    uint64_t t0 = clockTicks();
    if (requestParse(&parser, input, &len, &pos, &limits, &batch, REQUEST_BATCH_MAX, &error) ==
        REQUEST_BAD)
        abort();
    for (int i = 0; i < batch.count; i++) executeResolve(&batch.items[i]);
    uint64_t t1 = clockTicks();
    executePrefetch(&(executePart){s, batch.items, batch.count}, 1);
    uint64_t t2 = clockTicks();
    if (executeRun(s, batch.items, batch.count) != PIPELINE) abort();
    uint64_t t3 = clockTicks();
    requestBatchClear(&batch);
    outbufConsume(&s->out, outbufPending(&s->out));
    outbufReap(&s->out);
    steps[0] += clockTicksToNs(t1 - t0);
    steps[1] += clockTicksToNs(t2 - t1);
    steps[2] += clockTicksToNs(t3 - t2);
}

static void benchKind(session *s, const char *kind) {
    double least[3] = {1e9, 1e9, 1e9};
    for (int slice = 0; slice < SLICES; slice++) {
        int64_t steps[3] = {0};
        for (int i = 0; i < BATCHES; i++) runOnce(s, fill(kind), steps);
        for (int k = 0; k < 3; k++) {
            double ns = (double)steps[k] / BATCHES / PIPELINE;
            if (ns < least[k]) least[k] = ns;
        }
    }
    printf("%-5s parse+resolve %6.1f  prefetch %6.1f  execute %6.1f  sum %6.1f ns per request\n",
           kind, least[0], least[1], least[2], least[0] + least[1] + least[2]);
}

static void benchItems(session *s) {
    static histogram latency;
    char key[] = "key:000000012345";
    BENCH_ITEM("empty loop", sum = (uint64_t)i);
    BENCH_ITEM("tick counter (one per run of equal commands)", sum = clockTicks());
    BENCH_ITEM("monotonic clock_gettime", sum = (uint64_t)clockMonoNs());
    BENCH_ITEM("wall clock", sum = (uint64_t)clockWallMs());
    BENCH_ITEM("latency histogram record", histogramRecord(&latency, i & 0xffff, 1));
    BENCH_ITEM("SipHash-1-3 of a 16-byte key", key[15] = (char)i; sum = hashBytes(key, 16));
    BENCH_ITEM("command lookup", sum = (uintptr_t)commandFind(SLICE("get")));
    BENCH_ITEM("gate mask test", sum = (engineHot.armed | s->armed) & commandById(i & 1)->gates);
}

int main(int argc, char **argv) {
    if (argc > 1) key_count *= atoi(argv[1]);
    static const feature *const features[] = {&engineFeature, &keyspaceFeature};
    static const uint8_t seed[16] = "bench";
    clockInit();
    hashSetSeed(seed);
    randomSeed(1);
    hooksInstall(features, 2, NULL, 0);
    storeInit(1, false);
    commandInstall(specs, 3, false);
    if (keyspaceFeature.init(NULL) != OK) return 1;
    executeNewTurn();
    engineHot.latency_tracking = true;
    session s;
    sessionInit(&s, NULL, SESSION_INTERNAL);
    for (int i = 0; i < key_count; i++) {
        char key[32];
        slice k = sliceMake(key, (size_t)snprintf(key, sizeof(key), "key:%012d", i));
        uint64_t hash = hashBytes(k.ptr, k.len);
        dbPosition at;
        robj *old = dbFind(s.db, k, hash, lookAt(0), &at);
        dbSetString(s.db, k, &at, old, SLICE("xxxxxxxxxxxxxxxx"), NULL, OBJECT_NO_EXPIRE);
    }
    benchKind(&s, "ping");
    benchKind(&s, "get");
    benchKind(&s, "set");
    printf("hits %llu misses %llu size %llu\n", (unsigned long long)storeStats(keyspaceMain()).hits,
           (unsigned long long)storeStats(keyspaceMain()).misses, (unsigned long long)dbSize(s.db));
    benchItems(&s);
    return 0;
}
