/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers that placeholders are replaced by. */
#ifndef TOOLS_BENCHMARK_KEYS_H
#define TOOLS_BENCHMARK_KEYS_H

#include <stdatomic.h>
#include <stdint.h>

#include "tools/benchmark/options.h"

enum { KEY_DIGITS = 12, KEY_PLACEHOLDERS = 10 };

/* A distribution over the numbers from 0 to count - 1, with the constants of its sampling. */
typedef struct keySource {
    keyDistribution distribution;
    uint64_t count;
    double exponent, low, high, shift; /* of zipf */
    /* Sequential: the next number of each placeholder, shared by all threads. */
    atomic_uint_least64_t next[KEY_PLACEHOLDERS];
} keySource;

void keySourceInit(keySource *s, const benchOptions *o);
/* The next number for a placeholder, 0 to 9, with this thread's generator. ANY_THREAD. */
uint64_t keySourceNext(keySource *s, int placeholder);
/* Writes it as KEY_DIGITS decimal digits, the lowest ones if it has more. */
void keyWrite(char *to, uint64_t number);

#endif
