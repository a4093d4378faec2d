/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of the memory chips: patterns are written and read back, and what was there is put back. */
#ifndef SERVER_MEMCHECK_H
#define SERVER_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Tests `size` bytes at `at`, a page at a time, and leaves them as they were. Nobody else may touch them
 * meanwhile. Returns words that did not hold what was written. Async-signal-safe; allocates nothing. */
size_t memcheckRange(void *at, size_t size);
/* --test-memory: allocates and tests `megabytes` in so many passes, telling of it on stdout. False when there
 * were errors, or too little memory. */
bool memcheckRun(size_t megabytes, int passes);

#endif
