/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the benchmarks in C share. The includer has constants ROUNDS and TIMES. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"

static volatile uint64_t sum; /* what `code` assigns to it the compiler cannot drop */

/* Prints the nanoseconds of `code`, which runs with i = 0 .. TIMES-1: the least of ROUNDS
 * rounds. */
#define BENCH_ITEM(name, code) \
    do { \
        double best = 1e9; \
        for (int round = 0; round < ROUNDS; round++) { \
            int64_t begun = clockMonoNs(); \
            for (int i = 0; i < TIMES; i++) { code; } \
            double ns = (double)(clockMonoNs() - begun) / TIMES; \
            if (ns < best) best = ns; \
        } \
        printf("%-44s %6.1f ns\n", name, best); \
    } while (0)

#endif
