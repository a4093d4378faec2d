/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Micro benchmarks of the client library: parsing, formatting and queueing, without a server. If
 * libhiredis is installed (it is loaded at run time), the same work is measured with it,
 * alternately.
 *
 * Minimum of ROUNDS rounds, nanoseconds per reply or command. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <valkey/valkey.h>

#include "base/clock.h"
#include "base/assert.h"

enum { ROUNDS = 15, PIPELINE = 32, BULK = 1024, BATCHES = 2000 };

/* The functions of hiredis that are compared; NULL if it is not installed. */
static struct {
    void *(*reader_create)(void);
    int (*reader_feed)(void *, const char *, size_t);
    int (*reader_get_reply)(void *, void **);
    void (*reader_free)(void *);
    void (*free_reply)(void *);
    int (*format_argv)(char **, int, const char **, const size_t *);
    int (*format)(char **, const char *, ...);
    void (*free_command)(char *);
    void *(*connect_fd)(int);
    int (*append)(void *, const char *, ...);
    int (*free_keep_fd)(void *);
} hiredis;

static bool loadHiredis(void) {
    static const char *const names[] = {"libhiredis.so", "libhiredis.so.1.1.0",
                                        "libhiredis.so.1.0.0", "libhiredis.so.0.14"};
    void *library = NULL;
    for (int i = 0; i < 4 && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    const struct {
        void *function;
        const char *name;
    } symbols[] = {
        {&hiredis.reader_create, "redisReaderCreate"},
        {&hiredis.reader_feed, "redisReaderFeed"},
        {&hiredis.reader_get_reply, "redisReaderGetReply"},
        {&hiredis.reader_free, "redisReaderFree"},
        {&hiredis.free_reply, "freeReplyObject"},
        {&hiredis.format_argv, "redisFormatCommandArgv"},
        {&hiredis.format, "redisFormatCommand"},
        {&hiredis.free_command, "redisFreeCommand"},
        {&hiredis.connect_fd, "redisConnectFd"},
        {&hiredis.append, "redisAppendCommand"},
        {&hiredis.free_keep_fd, "redisFreeKeepFd"},
    };
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) return false;
        memcpy(symbols[i].function, &address, sizeof(address));
    }
    return true;
}

/* ------------------------------------------------------------------ work */

static char *bytes; /* PIPELINE bulk replies of BULK bytes */
static size_t bytes_len;

static void makeReplies(void) {
    bytes = malloc(PIPELINE * (BULK + 32));
    check(bytes != NULL);
    for (int i = 0; i < PIPELINE; i++) {
        bytes_len += (size_t)sprintf(bytes + bytes_len, "$%d\r\n", BULK);
        memset(bytes + bytes_len, 'v', BULK);
        bytes_len += BULK;
        memcpy(bytes + bytes_len, "\r\n", 2);
        bytes_len += 2;
    }
}

/* As a context does: socket reads into the buffer that the library provides, here a copy in their
 * place. */
static void parseOurs(void) {
    valkeyReader *r = valkeyReaderCreate();
    for (int batch = 0; batch < BATCHES / 10; batch++) {
        int replies = 0;
        for (size_t at = 0; at < bytes_len;) {
            char *buf;
            size_t cap;
            void *reply;
            check(valkeyReaderGetReadBuf(r, &buf, &cap, 0) == VALKEY_OK);
            if (cap > bytes_len - at) cap = bytes_len - at;
            memcpy(buf, bytes + at, cap);
            at += cap;
            valkeyReaderCommitRead(r, cap);
            for (;;) {
                check(valkeyReaderGetReply(r, &reply) == VALKEY_OK);
                if (!reply) break;
                freeReplyObject(reply);
                replies++;
            }
        }
        check(replies == PIPELINE);
    }
    valkeyReaderFree(r);
}

/* hiredis reads up to 16 KB to its stack and feeds them. */
static void parseTheirs(void) {
    static char stack[16 * 1024];
    void *r = hiredis.reader_create();
    for (int batch = 0; batch < BATCHES / 10; batch++) {
        int replies = 0;
        for (size_t at = 0; at < bytes_len;) {
            size_t n = sizeof(stack) < bytes_len - at ? sizeof(stack) : bytes_len - at;
            void *reply;
            memcpy(stack, bytes + at, n);
            at += n;
            check(hiredis.reader_feed(r, stack, n) == 0);
            for (;;) {
                check(hiredis.reader_get_reply(r, &reply) == 0);
                if (!reply) break;
                hiredis.free_reply(reply);
                replies++;
            }
        }
        check(replies == PIPELINE);
    }
    hiredis.reader_free(r);
}

static const char *argv[] = {"SET", "key:000000012345", "some value of some length"};
static const size_t lens[] = {3, 16, 25};

static void argvOurs(void) {
    for (int i = 0; i < BATCHES; i++) {
        char *cmd;
        check(valkeyFormatCommandArgv(&cmd, 3, argv, lens) > 0);
        valkeyFreeCommand(cmd);
    }
}
static void argvTheirs(void) {
    for (int i = 0; i < BATCHES; i++) {
        char *cmd;
        check(hiredis.format_argv(&cmd, 3, argv, lens) > 0);
        hiredis.free_command(cmd);
    }
}
static void formatOurs(void) {
    for (int i = 0; i < BATCHES; i++) {
        char *cmd;
        check(valkeyFormatCommand(&cmd, "SET key:%d %b", i, argv[2], lens[2]) > 0);
        valkeyFreeCommand(cmd);
    }
}
static void formatTheirs(void) {
    for (int i = 0; i < BATCHES; i++) {
        char *cmd;
        check(hiredis.format(&cmd, "SET key:%d %b", i, argv[2], lens[2]) > 0);
        hiredis.free_command(cmd);
    }
}

enum { QUEUED = 10 };

/* Ten commands are queued, then dropped as if they were sent. */
static void queueOurs(void) {
    valkeyContext *c = valkeyConnectFd(VALKEY_INVALID_FD);
    for (int i = 0; i < BATCHES; i++) {
        for (int k = 0; k < QUEUED; k++)
            check(valkeyAppendCommand(c, "SET key:%d %b", i, argv[2], lens[2]) == VALKEY_OK);
        uint64_t none = 0;
        memcpy(c->obuf - 17, &none, sizeof(none));
    }
    valkeyFree(c);
}
/* Each command encoded for itself, as programs do that send one at a time. */
static void singlesOurs(void) {
    for (int i = 0; i < BATCHES; i++) {
        for (int k = 0; k < QUEUED; k++) {
            char *cmd;
            check(valkeyFormatCommand(&cmd, "SET key:%d %b", i, argv[2], lens[2]) > 0);
            valkeyFreeCommand(cmd);
        }
    }
}
/* The output buffer of a context of hiredis is only emptied by sending, so each batch has a context
 * of its own; that context is measured apart and subtracted. */
static void queueTheirs(void) {
    for (int i = 0; i < BATCHES; i++) {
        void *c = hiredis.connect_fd(-1);
        for (int k = 0; k < QUEUED; k++)
            check(hiredis.append(c, "SET key:%d %b", i, argv[2], lens[2]) == 0);
        hiredis.free_keep_fd(c);
    }
}
static void contextsTheirs(void) {
    for (int i = 0; i < BATCHES; i++) hiredis.free_keep_fd(hiredis.connect_fd(-1));
}

/* ------------------------------------------------------------------ measuring */

static double timeOf(void (*work)(void), double per) {
    int64_t start = clockMonoNs();
    work();
    return (double)(clockMonoNs() - start) / per;
}

/* Minimum of several rounds of each, alternately. */
static void measure(const char *what, void (*ours)(void), void (*theirs)(void),
                    void (*subtract)(void), double per) {
    double a = 1e18, b = 1e18, c = subtract ? 1e18 : 0;
    for (int round = 0; round < ROUNDS; round++) {
        double t = timeOf(ours, per);
        if (t < a) a = t;
        t = theirs ? timeOf(theirs, per) : 0;
        if (t < b) b = t;
        t = subtract ? timeOf(subtract, per) : 0;
        if (t < c) c = t;
    }
    b -= c;
    if (theirs) {
        printf("%-46s %8.1f %8.1f  %5.2f times as fast\n", what, a, b, b / a);
    } else {
        printf("%-46s %8.1f\n", what, a);
    }
}

int main(void) {
    bool have = loadHiredis();
    makeReplies();
    printf("%-46s %8s %8s\n", "ns per reply or command", "ours", have ? "hiredis" : "");
    measure("parse bulk of 1 KB, pipeline 32", parseOurs, have ? parseTheirs : NULL, NULL,
            (double)BATCHES / 10 * PIPELINE);
    measure("format SET from a vector", argvOurs, have ? argvTheirs : NULL, NULL, BATCHES);
    measure("format SET from a format", formatOurs, have ? formatTheirs : NULL, NULL, BATCHES);
    measure("queue SET, pipeline of 10", queueOurs, have ? queueTheirs : NULL,
            have ? contextsTheirs : NULL, (double)BATCHES * QUEUED);
    measure("encode 10 single SET", singlesOurs, NULL, NULL, (double)BATCHES * QUEUED);
    free(bytes);
    return 0;
}
