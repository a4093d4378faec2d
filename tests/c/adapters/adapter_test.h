/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of one adapter of the client library: a program per adapter supplies its event loop,
 * adapter_test.c the tests. */
#ifndef ADAPTER_TEST_H
#define ADAPTER_TEST_H

#include <valkey/async.h>
#include <valkey/cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct adapterLoop {
    const char *name;
    void (*begin)(void);
    int (*attach)(valkeyAsyncContext *ac);
    int (*use)(valkeyClusterOptions *options);
    void (*turn)(void); /* handles what is ready; does not wait for long */
    void (*end)(void);
} adapterLoop;

/* Defined by the program. */
extern const adapterLoop adapter_loop;

#ifdef __cplusplus
}
#endif

#endif
