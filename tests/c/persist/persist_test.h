/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by the tests of persist/. */
#ifndef TESTS_C_PERSIST_PERSIST_TEST_H
#define TESTS_C_PERSIST_PERSIST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"
#include "persist/snapshot_stream.h"

/* Prints a new seed, or takes TEST_SEED. */
void testSeed(const char *name);
/* cmocka's setup and teardown of a group: a loop, and a folder of its own as working directory. */
int testEnter(void **state);
int testLeave(void **state);
extern loop *testLoop;

/* A stream to the file "out.rdb" with everything switched on but `relays`. */
snapshotStreamOptions testOptions(void);
/* Runs turns of the loop, which the stream wakes, until it is in a final state. */
snapshotStreamState testAwaitEnd(snapshotStream *s, reason *why);
/* One sleep of the loop; fails if nothing wakes it for 30 s. */
void testSleep(void);
/* The file's content; the caller frees it. */
str testFile(const char *name);
bool testFileExists(const char *name);

#endif
