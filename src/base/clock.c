/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clocks. Invariant: one tick is ns_per_tick / 2^32 nanoseconds, calibrated against the monotonic
 * clock by clockInit(). Reading a clock takes about 30 ns, reading the tick counter about 10.
 * ANY_THREAD. */
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "base/assert.h"

static int64_t clockRead(clockid_t id) {
    struct timespec now;
    int failed = clock_gettime(id, &now);
    check(failed == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t kernelMonoNs(void) { return clockRead(CLOCK_MONOTONIC); }

static int64_t kernelWallUs(void) { return clockRead(CLOCK_REALTIME) / 1000; }

static const clockSource kernel_source = {kernelMonoNs, kernelWallUs};
static clockSource source_now = {kernelMonoNs, kernelWallUs};
static uint64_t ns_per_tick = (uint64_t)1 << 32; /* 32.32 fixed point */
static char source_name[48] = "POSIX clock_gettime";

void clockSetSource(const clockSource *source) {
    source_now = kernel_source;
    if (!source) return;
    if (source->mono_ns) source_now.mono_ns = source->mono_ns;
    if (source->wall_us) source_now.wall_us = source->wall_us;
}

int64_t clockMonoNs(void) { return source_now.mono_ns(); }

int64_t clockMonoUs(void) { return clockMonoNs() / 1000; }

int64_t clockMonoMs(void) { return clockMonoNs() / 1000000; }

int64_t clockWallUs(void) { return source_now.wall_us(); }

int64_t clockWallMs(void) { return clockWallUs() / 1000; }

void clockSleepUs(int64_t us) {
    check(us >= 0);
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    /* Not clock_nanosleep(): the thread sanitizer delays signals while in it. */
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

bool clockRateFrom(int64_t ticks, int64_t elapsed_ns, uint64_t *rate) {
    if (ticks <= 0 || elapsed_ns <= 0) return false;
    __uint128_t exact = ((__uint128_t)elapsed_ns << 32) / (uint64_t)ticks;
    if (exact == 0 || exact > UINT64_MAX) return false;
    *rate = (uint64_t)exact;
    return true;
}

#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
#define COUNTER_NAME "X86 TSC"
#else
#define COUNTER_NAME "ARM CNTVCT"
#endif

/* Measures for 2 ms. Returns false if the counter's rate cannot be known from that. */
static bool measure(void) {
    const int64_t measure_ns = 2000000;
    int64_t begin_ns = kernelMonoNs();
    uint64_t begin_ticks = clockTicks();
    int64_t end_ns;
    do { end_ns = kernelMonoNs(); } while (end_ns - begin_ns < measure_ns);
    int64_t ticks = (int64_t)(clockTicks() - begin_ticks);
    if (!clockRateFrom(ticks, end_ns - begin_ns, &ns_per_tick)) return false;
    snprintf(source_name, sizeof(source_name), COUNTER_NAME " @ %.2f ticks/us",
             (double)ticks * 1000.0 / (double)(end_ns - begin_ns));
    return true;
}

void clockInit(void) {
    /* A virtual machine that moves to other hardware, or a thread that moves to a processor whose
     * counter is behind, spoils one sample, not each. */
    for (int tries = 0; tries < 10; tries++) {
        if (measure()) return;
    }
    panic("The processor's tick counter goes backwards or stands still");
}
#else
void clockInit(void) { /* Ticks are already nanoseconds of the monotonic clock. */
}
#endif

const char *clockSourceName(void) { return source_name; }

int64_t clockTicksToNs(uint64_t ticks) { return (int64_t)((__uint128_t)ticks * ns_per_tick >> 32); }
