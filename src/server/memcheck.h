/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory test: writes and reads back patterns, then restores the original contents. */
#ifndef SERVER_MEMCHECK_H
#define SERVER_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Tests `size` bytes at `at` page by page and restores them. No other thread may access them
 * meanwhile. Returns the number of words that did not hold a pattern. Async-signal-safe; allocates
 * nothing. */
size_t memcheckRange(void *at, size_t size);
/* --test-memory: allocates `megabytes` and tests them `passes` times, reporting on stdout. False if
 * there were errors or the allocation failed. */
bool memcheckRun(size_t megabytes, int passes);

#endif
