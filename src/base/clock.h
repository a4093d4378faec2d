/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Time: monotonic and wall clocks, and the processor's tick counter for measuring short intervals.
 * Tests can replace the clocks with clockSetSource(). ANY_THREAD. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clockMonoNs(void);
int64_t clockMonoUs(void);
int64_t clockMonoMs(void);
/* Since 1970-01-01 UTC. */
int64_t clockWallUs(void);
int64_t clockWallMs(void);

/* Sleeps for `us` microseconds, also if signals arrive. */
void clockSleepUs(int64_t us);

/* Measures the tick rate once (takes about 2 ms). Call at startup, before clockTicksToNs(). */
void clockInit(void);
/* The rate for clockTicksToNs(), 32.32 fixed point: `ticks` passed in `elapsed_ns`. Returns false,
 * and leaves `rate` alone, if one of them did not grow. */
bool clockRateFrom(int64_t ticks, int64_t elapsed_ns, uint64_t *rate);
/* "X86 TSC @ 2800 ticks/us", "ARM ..." or "POSIX clock_gettime": INFO monotonic_clock. */
const char *clockSourceName(void);

/* The raw tick counter: takes about 10 ns, constant rate, unit depends on the machine. */
static inline uint64_t clockTicks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc(); /* <x86intrin.h> would be 50,000 lines in each file */
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return (uint64_t)clockMonoNs();
#endif
}
/* Converts the difference of two clockTicks() values. */
int64_t clockTicksToNs(uint64_t ticks);

/* Replacements for the kernel's clocks, for tests; NULL restores the kernel's. */
typedef struct clockSource {
    int64_t (*mono_ns)(void);
    int64_t (*wall_us)(void);
} clockSource;
void clockSetSource(const clockSource *source);

#endif
