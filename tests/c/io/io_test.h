/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of io/ share: cmocka and its includes, a printed seed, sockets and a folder to
 * play in. */
#ifndef TESTS_C_IO_IO_TEST_H
#define TESTS_C_IO_IO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

int test_bio(void);
int test_compress(void);
int test_conn(void);
int test_conn_handshake(void);
int test_conn_unpack(void);
int test_file(void);
int test_loop(void);
int test_loop_timer(void);
int test_net_addr(void);
int test_process(void);
int test_resolve(void);
int test_spsc(void);
int test_sys(void);
int test_thread(void);
int test_tls(void);

/* Seeds the generator with TEST_SEED, or a number of the clock, and prints it. */
void testSeed(const char *name);
/* Two connected non-blocking Unix sockets. */
void testPair(int ends[2]);
/* A folder of this process's own, made at the first call; testFolderRemove() clears it away. */
const char *testFolder(void);
void testFolderRemove(void);
/* "<testFolder()>/<name>". Valid until the next call but three. */
const char *testPath(const char *name);
/* Waits until `fd` is ready for reading (or writing), 10 s at most; fails the test then. */
void testAwait(int fd, bool writing);

#endif
