/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library for LD_PRELOAD that moves the clocks of a server while it runs: that of the wall by
 * any amount, and the speed of both. CLOCK_FILE=PATH has a clockControl, which quorum.py writes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* In the order of the file; `version` is odd while the others are written. */
typedef struct clockControl {
    uint64_t version;
    int64_t since_ns;         /* real monotonic time from which `ppm` counts */
    int64_t ppm;              /* how much faster than the real clock */
    int64_t mono_ns, wall_ns; /* ahead of the real clocks at that time */
} clockControl;

static const volatile clockControl *control;

static void __attribute__((constructor)) start(void) {
    const char *path = getenv("CLOCK_FILE");
    if (!path) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(clockControl), PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) abort();
    close(fd);
    control = at;
}

static int64_t realNs(clockid_t id) {
    struct timespec ts;
    (void)syscall(SYS_clock_gettime, id, &ts); /* the clock exists */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t movedNs(int is_wall) {
    uint64_t before, after;
    int64_t ns, since, ppm;
    do {
        before = __atomic_load_n(&control->version, __ATOMIC_ACQUIRE);
        since = control->since_ns;
        ppm = control->ppm;
        ns = is_wall ? control->wall_ns : control->mono_ns;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = control->version;
    } while (before != after || before & 1);
    ns += (realNs(CLOCK_MONOTONIC) - since) / 1000 * ppm / 1000;
    return ns + realNs(is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC);
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int is_wall = id == CLOCK_REALTIME;
    if (!control || (!is_wall && id != CLOCK_MONOTONIC))
        return (int)syscall(SYS_clock_gettime, id, out);
    int64_t ns = movedNs(is_wall);
    out->tv_sec = ns / 1000000000;
    out->tv_nsec = ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec ts;
    (void)zone; /* obsolete */
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    out->tv_sec = ts.tv_sec;
    out->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (out) *out = ts.tv_sec;
    return ts.tv_sec;
}
