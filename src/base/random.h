/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers: from the kernel for secrets, from a seeded generator (xoshiro256**) for
 * everything else. Test builds can replace the source of secrets. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Unpredictable bytes from the kernel; panics if the kernel has none. ANY_THREAD. */
void randomSecret(void *dst, size_t len);
/* `len` random lower-case hex digits, unpredictable, as used in run ids and node ids; no NUL.
 * ANY_THREAD. */
void randomHex(char *dst, size_t len);
/* Fast generator with one state per thread, seeded from the kernel on first use. ANY_THREAD. */
uint64_t randomNext(void);
/* Uniform in [0, bound), without modulo bias; bound > 0. ANY_THREAD. */
uint64_t randomUniform(uint64_t bound);
/* Sets the state of this thread's generator (tests print their seed). ANY_THREAD. */
void randomSeed(uint64_t seed);
void randomSetSecretSource(void (*source)(void *dst, size_t len));

#endif
