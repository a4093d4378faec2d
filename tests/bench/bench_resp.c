/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the wire language costs: nanoseconds per command parsed, per reply written, per reply read.
 * Each figure is the best of several rounds, in a buffer of 100 pipelined commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "resp/resp.h"

enum { PIPELINE = 100, ROUNDS = 15, TURNS = 4000 };

static const requestLimits limits = {512 * 1024 * 1024, INT32_MAX, true, false};
static requestBatch batch;
static uint64_t sink; /* keeps the compiler from dropping work */

static double nowNs(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Runs `work` over and over; prints the best round's cost of one of `items` things a turn does. */
static void measure(const char *name, void (*work)(void *), void *arg, double items) {
    double best = 1e300;
    for (int round = 0; round < ROUNDS; round++) {
        double start = nowNs();
        for (int i = 0; i < TURNS; i++) work(arg);
        double each = (nowNs() - start) / TURNS / items;
        if (each < best) best = each;
    }
    printf("%-44s %8.2f ns\n", name, best);
}

/* ---------------------------------------------------------------- requests */

typedef struct input {
    char *bytes;
    size_t len;
    int batch_max;
} input;

static input inputOf(const char *command, size_t len, int times) {
    input in = {calloc(1, len * (size_t)times + REQUEST_READ_SLACK), len * (size_t)times,
                REQUEST_BATCH_MAX};
    if (in.bytes == NULL) abort();
    for (int i = 0; i < times; i++) memcpy(in.bytes + len * (size_t)i, command, len);
    return in;
}

static void parseAll(void *arg) {
    input *in = arg;
    requestParser parser = {NULL};
    requestError error;
    size_t pos = 0, len = in->len;
    requestStatus st;
    do {
        st = requestParse(&parser, in->bytes, &len, &pos, &limits, &batch, in->batch_max, &error);
        sink += (uint64_t)batch.count + batch.items[0].argv[0].len;
        requestBatchClear(&batch);
    } while (st == REQUEST_BATCH_FULL);
    if (st == REQUEST_BAD) abort();
    if (pos != in->len) abort();
}

static void benchParse(const char *name, const char *command, size_t len) {
    input in = inputOf(command, len, PIPELINE);
    char title[64];
    snprintf(title, sizeof(title), "parse %s", name);
    measure(title, parseAll, &in, PIPELINE);
    free(in.bytes);
}

static void parseOne(void *arg) { parseAll(arg); }

/* Mixed sizes: what a branch predictor cannot learn by heart. */
static void benchParseMixed(void) {
    static char text[PIPELINE * 1400];
    size_t len = 0;
    uint32_t random = 12345;
    for (int i = 0; i < PIPELINE; i++) {
        random = random * 1664525 + 1013904223;
        int key = (int)(random >> 8) % 30 + 1, value = (int)(random >> 16) % 1200 + 1;
        len += (size_t)sprintf(text + len, "*3\r\n$3\r\nSET\r\n$%d\r\n%0*d\r\n$%d\r\n%0*d\r\n", key,
                               key, 0, value, value, 0);
    }
    input in = inputOf(text, len, 1);
    measure("parse SET, key 1-30 B, value 1-1200 B", parseAll, &in, PIPELINE);
    free(in.bytes);
}

/* ---------------------------------------------------------------- replies */

static outbuf out;
static char value[4096];

static void drain(void) {
    sink += outbufPending(&out);
    outbufConsume(&out, outbufPending(&out));
}
static void writeOk(void *arg) {
    (void)arg;
    for (int i = 0; i < PIPELINE; i++) outbufAppend(&out, "+OK\r\n", 5);
    drain();
}
static void writeIntegers(void *arg) {
    for (int i = 0; i < PIPELINE; i++) respInteger(&out, *(int64_t *)arg + i);
    drain();
}
static void writeBulks(void *arg) {
    slice bytes = sliceMake(value, *(size_t *)arg);
    for (int i = 0; i < PIPELINE; i++) respBulk(&out, bytes);
    drain();
}
static void writeNulls(void *arg) {
    (void)arg;
    for (int i = 0; i < PIPELINE; i++) respNull(&out, 2);
    drain();
}
static void writeDoubles(void *arg) {
    (void)arg;
    for (int i = 0; i < PIPELINE; i++) respDouble(&out, 3, 1.5 + i);
    drain();
}
static void writeDeferred(void *arg) {
    (void)arg;
    for (int i = 0; i < PIPELINE; i++) {
        respDeferred mark = respDeferBegin(&out);
        for (int item = 0; item < 3; item++) respInteger(&out, item);
        respDeferEnd(&out, mark, '*', 2, 3);
    }
    drain();
}
static void writeArray(void *arg) {
    slice bytes = sliceMake(value, *(size_t *)arg);
    respArray(&out, PIPELINE);
    for (int i = 0; i < PIPELINE; i++) respBulk(&out, bytes);
    drain();
}

static void benchWrite(void) {
    int64_t small = 0, large = 1234567890123;
    size_t sizes[] = {16, 60, 512, 4096};
    measure("write +OK", writeOk, NULL, PIPELINE);
    measure("write integer 0-99", writeIntegers, &small, PIPELINE);
    measure("write integer of 13 digits", writeIntegers, &large, PIPELINE);
    measure("write null", writeNulls, NULL, PIPELINE);
    for (int i = 0; i < 4; i++) {
        char title[64];
        snprintf(title, sizeof(title), "write bulk of %zu B", sizes[i]);
        measure(title, writeBulks, &sizes[i], PIPELINE);
    }
    measure("write array item of 16 B", writeArray, &sizes[0], PIPELINE);
    measure("write double", writeDoubles, NULL, PIPELINE);
    measure("write counted-later array of 3 integers", writeDeferred, NULL, PIPELINE);
    outbufSetNullSink(&out, true);
    measure("write bulk of 16 B to a null sink", writeBulks, &sizes[0], PIPELINE);
    outbufSetNullSink(&out, false);
}

static void readAll(void *arg) {
    input *in = arg;
    replyReader reader;
    replyEvent event;
    size_t pos = 0;
    replyReaderInit(&reader);
    while (replyRead(&reader, in->bytes, in->len, &pos, &event) == REPLY_EVENT)
        sink += event.text.len;
    if (pos != in->len) abort();
}

static void benchRead(const char *name, const char *reply) {
    input in = inputOf(reply, strlen(reply), PIPELINE);
    measure(name, readAll, &in, PIPELINE);
    free(in.bytes);
}

int main(void) {
    requestBatchInit(&batch);
    outbufInit(&out);
    memset(value, 'v', sizeof(value));
#define COMMAND(name, text) benchParse(name, text, sizeof(text) - 1)
    COMMAND("PING", "*1\r\n$4\r\nPING\r\n");
    COMMAND("GET, key 16 B", "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n");
    COMMAND("SET, key and value 16 B",
            "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$16\r\nvalue:0000000001\r\n");
    COMMAND(
        "HSET, 4 arguments",
        "*4\r\n$4\r\nHSET\r\n$10\r\nmyhash:001\r\n$9\r\nfield:001\r\n$16\r\nvalue:0000000001\r\n");
    COMMAND("PING inline", "PING\r\n");
    COMMAND("SET inline", "SET key:000000000001 value:0000000001\r\n");
    benchParseMixed();
    input one = inputOf("*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n", 36, 1);
    measure("parse GET, one in the buffer", parseOne, &one, 1);
    free(one.bytes);
    benchWrite();
    benchRead("read +OK", "+OK\r\n");
    benchRead("read bulk of 16 B", "$16\r\nvalue:0000000001\r\n");
    benchRead("read array of 3", "*3\r\n:1\r\n$1\r\na\r\n$2\r\nbb\r\n");
    outbufPoolTrim();
    return sink == 0;
}
