/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of base/ share: cmocka and its includes, a printed seed, and a child process for
 * functions that never return. */
#ifndef TESTS_C_BASE_BASE_TEST_H
#define TESTS_C_BASE_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/slice.h"

int test_alloc(void);
int test_assert(void);
int test_bits(void);
int test_blob(void);
int test_bytes(void);
int test_clock(void);
int test_error(void);
int test_fiber(void);
int test_glob(void);
int test_hash(void);
int test_histogram(void);
int test_log(void);
int test_map(void);
int test_number(void);
int test_number_double(void);
int test_progress_meter(void);
int test_random(void);
int test_slice(void);
int test_str(void);

/* Seeds the generator with TEST_SEED, or a number of the clock, and prints it. */
void testSeed(const char *name);
/* `len` random bytes out of `letters`. */
void testRandomText(char *dst, size_t len, const char *letters);

/* Runs `proc` in a child process and gathers what it writes to stdout, cut at `cap` - 1 bytes.
 * Returns the signal that ended it, or minus its exit code. */
int testInChild(void (*proc)(void), char *output, size_t cap);

#endif
