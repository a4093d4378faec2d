/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of the client library share: an allocator that counts and can fail, and servers
 * that reply as a test decides. */
#ifndef CLIENT_TEST_H
#define CLIENT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <valkey/async.h>

/* ------------------------------------------------------------------ memory */

/* Replaces the allocator of the library by one that counts. */
void countingStart(void);
void countingStop(void);
/* Bytes and blocks in use, and allocations since countingStart(). */
size_t countingBytes(void);
size_t countingBlocks(void);
size_t countingCalls(void);
/* The allocation with this number, from 0, fails; with `all` those after it, too. -1: none fails.
 * Counting begins anew. */
void countingFailAt(long number, bool all);
/* True if an allocation has failed since countingFailAt(). */
bool countingHasFailed(void);

/* ------------------------------------------------------------------ servers */

enum { FAKE_ARGS_MAX = 16, FAKE_NODES_MAX = 8 };

typedef struct fakeServer fakeServer;
typedef struct fakeConnection fakeConnection;

/* A request that has been received. */
typedef struct fakeRequest {
    fakeServer *server;
    fakeConnection *connection;
    void *arg;
    int node;   /* index of the listener */
    int number; /* of the connection, from 0 */
    int argc;
    char *argv[FAKE_ARGS_MAX]; /* followed by a NUL */
    size_t len[FAKE_ARGS_MAX];
} fakeRequest;

/* Called by the server's thread for each request. */
typedef void fakeProc(fakeRequest *q);

/* Listens on `nodes` ports of the loopback interface. */
fakeServer *fakeStart(int nodes, fakeProc *proc, void *arg);
/* Listens on a Unix socket. */
fakeServer *fakeStartUnix(const char *path, fakeProc *proc, void *arg);
void fakeStop(fakeServer *s);
/* Stops the server and countingStart(), whose count must be at 0 blocks: for the end of a test. */
void fakeEnd(fakeServer *s);
/* The same as a function of cmocka, with the server as the state. */
int fakeTeardown(void **state);
int fakePort(const fakeServer *s, int node);
/* Number of connections accepted so far. */
int fakeAccepted(fakeServer *s);
/* Sends bytes to the client. */
void fakeSend(fakeRequest *q, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fakeSendBytes(fakeRequest *q, const char *bytes, size_t len);
/* Closes the connection after what was sent. */
void fakeClose(fakeRequest *q);
bool fakeIs(const fakeRequest *q, int index, const char *word);
/* As fakeStart() on ::1; NULL if there is no such address. */
fakeServer *fakeStartIpv6(int nodes, fakeProc *proc, void *arg);
/* Number of connections that are open. */
int fakeOpen(fakeServer *s);

/* How a node behaves. */
typedef enum fakeMode {
    FAKE_SERVE,
    FAKE_HOLD,   /* requests are served, but their replies are sent when this mode ends */
    FAKE_DROP,   /* connections are closed when a request comes */
    FAKE_REFUSE, /* no connections */
} fakeMode;
/* Returns when it is so. */
void fakeSetMode(fakeServer *s, int node, fakeMode mode);

/* ------------------------------------------------------------------ a simulated event loop
 * Many contexts, and timers that follow a clock which only the test moves. */

void simStart(void);
void simStop(void);
int simAttach(valkeyAsyncContext *ac, void *unused);
/* Number of contexts, and of timers started so far. */
int simContexts(void);
int simTimers(void);
/* Handles what is ready, waiting up to `ms` of real time for it. */
void simTurn(int ms);
/* Moves the clock; timers expire on the way. */
void simPass(long long us);

#endif
