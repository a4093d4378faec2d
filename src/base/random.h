/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers: the kernel's for secrets, a seeded generator (xoshiro256**) for everything else.
 * The source of secrets is a pointer that test builds may swap. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Unpredictable bytes from the kernel; never fails (panics when the kernel has none).
 * ANY_THREAD. */
void randomSecret(void *dst, size_t len);
/* `len` lower-case hex digits of secret randomness, as run ids and node ids have; no NUL.
 * ANY_THREAD. */
void randomHex(char *dst, size_t len);
/* Fast generator, one state per thread, seeded from the kernel at first use. ANY_THREAD. */
uint64_t randomNext(void);
/* Uniform in 0..bound-1; bound > 0. No modulo bias. ANY_THREAD. */
uint64_t randomUniform(uint64_t bound);
/* Starts this thread's generator at a known place (tests print their seed). ANY_THREAD. */
void randomSeed(uint64_t seed);
void randomSetSecretSource(void (*source)(void *dst, size_t len));

#endif
